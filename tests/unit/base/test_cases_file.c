/* Pins: the form of the files of tests/reject (support/reject.h): what is read is written again byte for
 * byte, and a text of another form is refused with its line, so that no case is passed over. */
#include "ls_test.h"

#include "reject.h"

static void
what_is_read_is_written_again (void)
{
  static const char text[]
      = "# Wrong files.\n\n=== k/a.json\n{\n# no comment\n\n}\n=>\n@: error: no\nexit 3\n\n# Next.\n"
        "=== k/b.json escaped\n\\377\\000x\\\\\n=>\n=== k/empty.csv\n=>\nexit 2\n=== k/cut.json without newline\n{\n=>\n"
        "exit 3\n# The end.\n";
  g_autofree char *tail = NULL;
  const char *why = NULL;
  guint line = 0;
  g_autoptr (GPtrArray) cases = ls_cases_parse (text, &tail, &line, &why);
  if (!LS_CHECK (cases && cases->len == 4))
    return;
  const LsDocCase *a = cases->pdata[0], *b = cases->pdata[1], *empty = cases->pdata[2],
                  *cut = cases->pdata[3];
  LS_CHECK_STR (a->kind, "k");
  LS_CHECK_STR (a->name, "a.json");
  LS_CHECK_STR (a->document, "{\n# no comment\n\n}\n");
  LS_CHECK_STR (a->expected, "@: error: no\nexit 3\n");
  LS_CHECK_STR (b->above, "\n# Next.\n");
  LS_CHECK_STR (b->name, "b.json");
  LS_CHECK (!a->is_escaped && b->is_escaped && !empty->is_escaped);
  GString *bytes = ls_doc_case_bytes (b), *cut_bytes = ls_doc_case_bytes (cut);
  LS_CHECK (bytes->len == 5 && memcmp (bytes->str, "\377\0x\\\n", 5) == 0);
  LS_CHECK_STR (cut_bytes->str, "{");
  g_string_free (bytes, TRUE);
  g_string_free (cut_bytes, TRUE);
  LS_CHECK_STR (b->expected, "");
  LS_CHECK_STR (empty->document, "");
  LS_CHECK_STR (cut->name, "cut.json");
  LS_CHECK (cut->lacks_newline && !a->lacks_newline);
  g_autofree char *again = ls_cases_format (cases, tail);
  LS_CHECK_STR (again, text);
}

static void
another_form_is_refused_with_its_line (void)
{
  static const struct {
    const char *text;
    guint line;
  } wrong[] = {
    { "{}\n=>\nexit 3\n", 1 },                                     /* no name */
    { "# x\n\n=== k/a\n{}\n", 3 },                                 /* no arrow */
    { "=== k/a\n{}\n=== k/b\n{}\n=>\nexit 3\n", 1 },               /* the same */
    { "=== k/a\n{}\n=>\nexit 3\nmore\n", 5 },                      /* after the exit code */
    { "=== k/a\n{}\n=>\n@: error\n=== k/b\n{}\n=>\nexit 3\n", 4 }, /* diagnostics without one */
    { "=== k/a\n{}\n=>\nx\n=>\n@: error\nexit 3\n", 4 },           /* an arrow in the document */
    { "=== k/a escaped twice\n{}\n=>\nexit 3\n", 1 },              /* no such form */
    { "=== k/a b\n{}\n=>\nexit 3\n", 1 },                          /* a name of two words */
    { "=== k/../a\n{}\n=>\nexit 3\n", 1 },                         /* a path */
    { "=== a\n{}\n=>\nexit 3\n", 1 },                              /* no kind */
    { "=== /a\n{}\n=>\nexit 3\n", 1 },
    { "=== b k/a\n{}\n=>\nexit 3\n", 1 },
    { "=== \n{}\n=>\nexit 3\n", 1 },
    { "=== k/a without newline\n=>\nexit 3\n", 1 },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autofree char *tail = NULL;
    const char *why = NULL;
    guint line = 0;
    g_autoptr (GPtrArray) cases = ls_cases_parse (wrong[i].text, &tail, &line, &why);
    ls_check_impl (!cases && why, __FILE__, __LINE__, "read: %s", wrong[i].text);
    ls_check_impl (line == wrong[i].line, __FILE__, __LINE__, "line %u, not %u: %s", line, wrong[i].line,
                   wrong[i].text);
  }
}

LS_TEST_SUITE (LS_TEST (what_is_read_is_written_again), LS_TEST (another_form_is_refused_with_its_line))
