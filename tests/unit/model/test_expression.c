/* Pins: expressions of sizes have the value that their sums and products say, and what is no such
 * expression is refused with the place. */
#include "ls_test.h"

#include "model/expression.h"

static const LsSizes sizes = { { [LS_SIZE_S] = 4096,
                                 [LS_SIZE_B] = 2,
                                 [LS_SIZE_H] = 1024,
                                 [LS_SIZE_Q] = 512,
                                 [LS_SIZE_K] = 128,
                                 [LS_SIZE_A] = 8,
                                 [LS_SIZE_D] = 64,
                                 [LS_SIZE_F] = 2816,
                                 [LS_SIZE_V] = 32000,
                                 [LS_SIZE_SHARD] = 1e6 } };

static void
sums_of_products_have_their_value (void)
{
  static const struct {
    const char *text;
    double value;
  } cases[] = {
    { "7", 7 },
    { "s", 4096 },
    { "s*b*h", 4096.0 * 2 * 1024 },
    { " 0.5 * s*b*h+3 ", 4194307 },
    { "2*s*b*k + 2*s*b*q", 2 * 8192.0 * 640 },
    { "a*d+f+V", 512 + 2816 + 32000 },
    { "S + 1e3*S", 1.001e9 },
    { "h*h", 1048576 },
    { "0", 0 },
    { "0*V", 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *message = NULL;
    LsExpression *e = ls_expression_parse (cases[i].text, &message);
    if (LS_CHECK (e != NULL))
      LS_CHECK_DOUBLE (ls_expression_value (e, &sizes), ==, cases[i].value);
    ls_expression_free (e);
  }
}

static void
anything_else_is_refused_with_its_place (void)
{
  static const char factor[] = "a number or one of the sizes " LS_SIZE_LETTERS;
  static const struct {
    const char *text, *expected, *at;
  } cases[] = {
    { "", factor, "the end of \"\"" },
    { "s*", factor, "the end of \"s*\"" },
    { "s*x", factor, "\"x\" of \"s*x\"" },
    { "sb", factor, "\"sb\" of \"sb\"" },
    { "s b", "* or +", "\"b\" of \"s b\"" },
    { "s-b", "* or +", "\"-b\" of \"s-b\"" },
    { "-1", factor, "\"-1\" of \"-1\"" },
    { "s/2", "* or +", "\"/2\" of \"s/2\"" },
    { "(s)", factor, "\"(s)\" of \"(s)\"" },
    { "1e999*s", "a number", "\"1e999*s\" of \"1e999*s\"" },
    { "2s", "* or +", "\"s\" of \"2s\"" },
    { "nan", factor, "\"nan\" of \"nan\"" },
    { "s*s*s*b", "fewer factors of one size", "\"s*b\" of \"s*s*s*b\"" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *message = NULL,
                    *want = g_strdup_printf ("expected %s at %s", cases[i].expected, cases[i].at);
    LS_CHECK (ls_expression_parse (cases[i].text, &message) == NULL);
    LS_CHECK_STR (message, want);
  }
  ls_expression_free (NULL);
}

static void
sizes_that_are_not_there_are_found (void)
{
  g_autofree char *message = NULL;
  LsExpression *e = ls_expression_parse ("2*s*b*h + s*V", &message);
  LS_CHECK_INT (ls_expression_foreign_size (e, "sbhV"), ==, 0);
  LS_CHECK_INT (ls_expression_foreign_size (e, "sbh"), ==, 'V');
  LS_CHECK_INT (ls_expression_foreign_size (e, "bhV"), ==, 's');
  ls_expression_free (e);
}

LS_TEST_SUITE (LS_TEST (sums_of_products_have_their_value), LS_TEST (anything_else_is_refused_with_its_place),
               LS_TEST (sizes_that_are_not_there_are_found))
