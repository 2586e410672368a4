#include "model/expression.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct {
  double factor;
  guint8 power[LS_N_SIZES];
} Term;

struct LsExpression {
  GArray *terms; /* Term, to be added */
};

#define MAX_POWER 2 /* of one size in a product */

typedef struct {
  const char *text, *at; /* at: what comes next, no space */
  char *message;         /* what is wrong; NULL: nothing yet */
} Parser;

static void
skip_spaces (Parser *p)
{
  while (g_ascii_isspace (*p->at))
    p->at++;
}

static bool
complain (Parser *p, const char *expected)
{
  if (*p->at)
    p->message = g_strdup_printf ("expected %s at \"%s\" of \"%s\"", expected, p->at, p->text);
  else
    p->message = g_strdup_printf ("expected %s at the end of \"%s\"", expected, p->text);
  return false;
}

/* 'e' begins an exponent only behind a digit, so no size is named so. */
static bool
parse_number (Parser *p, Term *term)
{
  char *end = NULL;
  double value = g_ascii_strtod (p->at, &end);
  if (!isfinite (value) || end == p->at)
    return complain (p, "a number");
  term->factor *= value;
  p->at = end;
  return true;
}

static bool
parse_factor (Parser *p, Term *term)
{
  const char *size = *p->at ? strchr (LS_SIZE_LETTERS, *p->at) : NULL;
  if (g_ascii_isdigit (*p->at)) {
    if (!parse_number (p, term))
      return false;
  } else if (!size || g_ascii_isalnum (p->at[1])) {
    return complain (p, "a number or one of the sizes " LS_SIZE_LETTERS);
  } else if (++term->power[size - LS_SIZE_LETTERS] > MAX_POWER) {
    return complain (p, "fewer factors of one size");
  } else {
    p->at++;
  }
  skip_spaces (p);
  return true;
}

static bool
take (Parser *p, char what)
{
  if (*p->at != what)
    return false;
  p->at++;
  skip_spaces (p);
  return true;
}

static bool
parse_product (Parser *p, GArray *terms)
{
  Term term = { .factor = 1 };
  do
    if (!parse_factor (p, &term))
      return false;
  while (take (p, '*'));
  g_array_append_val (terms, term);
  return true;
}

static bool
parse_sum (Parser *p, GArray *terms)
{
  do
    if (!parse_product (p, terms))
      return false;
  while (take (p, '+'));
  return *p->at == '\0' || complain (p, "* or +");
}

LsExpression *
ls_expression_parse (const char *text, char **reterr_message)
{
  Parser p = { .text = text, .at = text };
  GArray *terms = g_array_new (FALSE, FALSE, sizeof (Term));
  skip_spaces (&p);
  if (!parse_sum (&p, terms)) {
    g_array_unref (terms);
    *reterr_message = p.message;
    return NULL;
  }
  LsExpression *e = g_new (LsExpression, 1);
  e->terms = terms;
  return e;
}

void
ls_expression_free (LsExpression *expression)
{
  if (expression)
    g_array_unref (expression->terms);
  g_free (expression);
}

char
ls_expression_foreign_size (const LsExpression *expression, const char *letters)
{
  for (guint i = 0; i < expression->terms->len; i++)
    for (int size = 0; size < LS_N_SIZES; size++)
      if (g_array_index (expression->terms, Term, i).power[size] > 0
          && !strchr (letters, LS_SIZE_LETTERS[size]))
        return LS_SIZE_LETTERS[size];
  return '\0';
}

double
ls_expression_value (const LsExpression *expression, const LsSizes *sizes)
{
  double sum = 0;
  for (guint i = 0; i < expression->terms->len; i++) {
    const Term *term = &g_array_index (expression->terms, Term, i);
    double product = term->factor;
    for (int size = 0; size < LS_N_SIZES; size++)
      for (guint8 n = 0; n < term->power[size]; n++)
        product *= sizes->at[size];
    sum += product;
  }
  return sum;
}
