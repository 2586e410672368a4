/* $((...)): whole numbers of 64 bits, by precedence climbing. */
#include "data/shell/shell_parts.h"

#include <string.h>

typedef struct {
  const LsShell *sh;
  const char *p;
  int depth;
  bool is_bad;
} Sum;

static gint64 expression (Sum *s, int least);

static gint64
bad (Sum *s)
{
  s->is_bad = true;
  return 0;
}

static void
skip_blanks (Sum *s)
{
  while (g_ascii_isspace (*s->p))
    s->p++;
}

static bool
take (Sum *s, const char *text)
{
  skip_blanks (s);
  if (!g_str_has_prefix (s->p, text))
    return false;
  s->p += strlen (text);
  return true;
}

static gint64
variable (Sum *s)
{
  const char *begin = s->p;
  while (g_ascii_isalnum (*s->p) || *s->p == '_')
    s->p++;
  g_autofree char *name = g_strndup (begin, (gsize) (s->p - begin));
  const ShellValue *value = shell_value (s->sh, name);
  gint64 number = 0;
  bool is_number = value && value->items->len == 1
      && g_ascii_string_to_signed (value->items->pdata[0], 10, G_MININT64, G_MAXINT64, &number, NULL);
  return is_number ? number : bad (s);
}

static gint64
number (Sum *s)
{
  char *end = NULL;
  gint64 value = g_ascii_strtoll (s->p, &end, 10);
  if (end == s->p || g_ascii_isalnum (*end) || *end == '_' || *end == '.')
    return bad (s);
  s->p = end;
  return value;
}

static gint64
negated (Sum *s)
{
  gint64 value = expression (s, 11), result;
  return __builtin_sub_overflow ((gint64) 0, value, &result) ? bad (s) : result;
}

static gint64
operand (Sum *s)
{
  skip_blanks (s);
  if (++s->depth > 64)
    return bad (s);
  gint64 value;
  if (take (s, "(")) {
    value = expression (s, 0);
    value = take (s, ")") ? value : bad (s);
  } else if (take (s, "-"))
    value = negated (s);
  else if (take (s, "+"))
    value = expression (s, 11);
  else if (take (s, "!"))
    value = !expression (s, 11);
  else
    value = g_ascii_isalpha (*s->p) || *s->p == '_' ? variable (s) : number (s);
  s->depth--;
  return value;
}

/* In the order in which they are looked for: longer ones first. */
static const struct {
  const char *text;
  int level;
} operators[] = {
  { "**", 12 }, { "<=", 6 }, { ">=", 6 }, { "==", 5 }, { "!=", 5 }, { "&&", 3 }, { "||", 2 }, { "*", 10 },
  { "/", 10 },  { "%", 10 }, { "+", 9 },  { "-", 9 },  { "<", 6 },  { ">", 6 },  { "?", 1 },
};

static gint64
power (Sum *s, gint64 base, gint64 exponent)
{
  gint64 result = 1;
  if (exponent < 0 || exponent > 62)
    return bad (s);
  for (; exponent > 0; exponent--)
    if (__builtin_mul_overflow (result, base, &result))
      return bad (s);
  return result;
}

static gint64
arithmetic (Sum *s, char operator, gint64 a, gint64 b)
{
  gint64 result = 0;
  bool divides = operator== '/' || operator== '%';
  if (divides && (b == 0 || (a == G_MININT64 && b == -1)))
    return bad (s);
  bool is_over = operator== '+' ? __builtin_add_overflow (a, b, &result) :
      operator== '-'            ? __builtin_sub_overflow (a, b, &result)
      :
      operator== '*' ? __builtin_mul_overflow (a, b, &result)
                     : false;
  if (is_over)
    return bad (s);
  return operator== '/' ? a / b : operator== '%' ? a % b : result;
}

static gint64
apply (Sum *s, const char *operator, gint64 a, gint64 b)
{
  if (strcmp (operator, "**") == 0)
    return power (s, a, b);
  if (strcmp (operator, "&&") == 0)
    return a && b;
  if (strcmp (operator, "||") == 0)
    return a || b;
  if (strcmp (operator, "==") == 0)
    return a == b;
  if (strcmp (operator, "!=") == 0)
    return a != b;
  if (*operator== '<' || * operator== '>') {
    bool is_less = *operator== '<' ? a < b : a> b;
    return is_less || (operator[1] == '=' && a == b);
  }
  return arithmetic (s, *operator, a, b);
}

static gint64
choice (Sum *s, gint64 condition)
{
  gint64 yes = expression (s, 0);
  if (!take (s, ":"))
    return bad (s);
  gint64 no = expression (s, 1);
  return condition ? yes : no;
}

static gint64
expression (Sum *s, int least)
{
  if (++s->depth > 64)
    return bad (s);
  gint64 value = operand (s);
  for (guint i = 0; i < G_N_ELEMENTS (operators) && !s->is_bad;) {
    if (operators[i].level < least || !take (s, operators[i].text)) {
      i++;
      continue;
    }
    value = operators[i].level == 1
        ? choice (s, value)
        : apply (s, operators[i].text, value, expression (s, operators[i].level + 1));
    i = 0;
  }
  s->depth--;
  return value;
}

bool
shell_arithmetic (const LsShell *sh, const char *text, gint64 *ret_value)
{
  Sum s = { sh, text, 0, false };
  if (ls_shell_has_hole (text))
    return false;
  *ret_value = expression (&s, 0);
  skip_blanks (&s);
  return !s.is_bad && *s.p == '\0';
}
