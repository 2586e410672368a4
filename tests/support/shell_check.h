/* support/shell_check.h — what a shell script launches and writes, against what is expected. */
#ifndef SHELL_CHECK_H
#define SHELL_CHECK_H

#include <string.h>

#include "data/shell/shell.h"
#include "ls_test.h"

/* "NAME: TEXT" of a file that a script writes. */
static inline void
note_file (const char *name, const char *text, bool is_appended, gpointer data)
{
  g_string_append_printf (data, "%s:%s %s\n", name, is_appended ? " +" : "", text);
}

/* "a|b {$X}?": the words of a command, holes in braces, '?' behind one that is perhaps run. */
static inline void
note (const LsShellCommand *c, gpointer data)
{
  GString *out = data;
  for (guint i = 0; i < c->n; i++)
    g_string_append_printf (out, "%s%s", i > 0 ? "|" : "", c->words[i]);
  g_string_append (out, c->is_certain ? "\n" : "?\n");
}

static inline char *
source (const char *path, bool is_started, gpointer data)
{
  const char *name = ls_shell_base_of (path);
  if (is_started)
    return strcmp (name, "base.sh") == 0 ? g_strdup ("run --tp $1 --pp $2\n") : NULL;
  return strcmp (name, "config.sh") == 0 ? g_strdup ("TP=4\nlaunch() { run --tp $TP \"$1\"; }\n") : NULL;
}

static inline char *
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

static inline void
shell_check (const char *script, const char *expected)
{
  g_autofree char *fault = NULL, *found = read_script (script, &fault);
  ls_check_impl (fault == NULL && strcmp (found, expected) == 0, __FILE__, __LINE__,
                 "%s\n--- expected\n%s--- found\n%s%s", script, expected, found, fault ? fault : "");
}

#endif
