/* Pins what a shell script launches and writes as it is read: the cases of tests/shell (support/expected_cases.h);
 * and that nothing grows without a limit. */
#include <string.h>

#include "data/shell/shell.h"
#include "expected_cases.h"

/* "NAME: TEXT" of a file that a script writes, with \n for the ends of its lines. */
static void
note_file (const char *name, const char *text, bool is_appended, gpointer data)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autofree char *line = g_strjoinv ("\\n", lines);
  g_string_append_printf (data, "%s:%s %s\n", name, is_appended ? " +" : "", line);
}

/* "a|b {$X}?": the words of a command, holes in braces, '?' behind one that is perhaps run. */
static void
note (const LsShellCommand *c, gpointer data)
{
  GString *out = data;
  for (guint i = 0; i < c->n; i++)
    g_string_append_printf (out, "%s%s", i > 0 ? "|" : "", c->words[i]);
  g_string_append (out, c->is_certain ? "\n" : "?\n");
}

static char *
source (const char *path, bool is_started, gpointer data)
{
  const char *name = ls_shell_base_of (path);
  if (is_started)
    return strcmp (name, "base.sh") == 0 ? g_strdup ("run --tp $1 --pp $2\n") : NULL;
  return strcmp (name, "config.sh") == 0 ? g_strdup ("TP=4\nlaunch() { run --tp $TP \"$1\"; }\n") : NULL;
}

static char *
read_script (const char *script, char **ret_fault)
{
  static const LsShellFuncs funcs = { note, source, note_file };
  GString *out = g_string_new (NULL);
  g_autoptr (LsShell) sh = ls_shell_new (&funcs, out);
  *ret_fault = ls_shell_read (sh, "job.sh", script, strlen (script));
  g_strdelimit (out->str, "\001", '{');
  g_strdelimit (out->str, "\002", '}');
  return g_string_free (out, FALSE);
}

static gpointer
read_case (const LsExpectedCase *c, const char *option, char **said)
{
  g_autofree char *script = ls_case_text (&g_array_index (c->files, LsCaseFile, 0), option), *fault = NULL;
  char *found = read_script (script, &fault);
  *said = g_strdup (fault ? fault : "");
  if (fault)
    g_clear_pointer (&found, g_free);
  return found;
}

/* All lines at once. */
static char *
contradiction (gconstpointer found, const char *lines)
{
  return strcmp (found, lines) == 0 ? NULL : g_strdup (found);
}

static void
scripts_are_followed (void)
{
  static const LsCaseKind kind = { read_case, contradiction, g_free, .is_whole = true };
  ls_cases_run ("shell", &kind, 22);
}

/* Scripts that would take any time or memory, or end nowhere, are refused. */
static void
hostile_scripts_are_refused (void)
{
  GString *doubled = g_string_new ("X=aaaaaaaaaaaaaaaa\n"), *nested = g_string_new ("X="),
          *deep = g_string_new (NULL);
  for (int i = 0; i < 60; i++)
    g_string_append (doubled, "X=$X$X\n");
  for (int i = 0; i < 100000; i++)
    g_string_append (nested, "$(");
  for (int i = 0; i < 100000; i++)
    g_string_append (deep, "{ ");
  const char *const scripts[]
      = { doubled->str, nested->str, deep->str, "X='a", "cat <<E\nx", "eval \"$X\" '" };
  const char *const expected[]
      = { "its words grow beyond",    "is not closed", "nested too deep", "is not closed",
          "here document has no end", "is not closed" };
  for (guint i = 0; i < G_N_ELEMENTS (scripts); i++) {
    g_autofree char *fault = NULL, *found = read_script (scripts[i], &fault);
    ls_check_impl (fault && strstr (fault, expected[i]), __FILE__, __LINE__, "%u: %s", i,
                   fault ? fault : "read");
  }
  g_string_free (doubled, TRUE);
  g_string_free (nested, TRUE);
  g_string_free (deep, TRUE);
}

LS_TEST_SUITE (LS_TEST (scripts_are_followed), LS_TEST (hostile_scripts_are_refused))
