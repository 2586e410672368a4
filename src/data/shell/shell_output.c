/* data/shell/shell_output.c — what a $(command) prints, where no run is needed to know it: conditions with
 * echo, documents by cat, arithmetic by expr, and where the script lies. */
#include "data/shell/shell_parts.h"

#include <string.h>

#define MAX_OUTPUT ((gsize) 64 << 10)

static ShellStatus
lose (LsShell *sh)
{
  sh->is_lost = true;
  return SHELL_UNKNOWN;
}

static ShellStatus
print (LsShell *sh, const char *text, bool has_newline)
{
  if (sh->mode == SHELL_MAYBE || sh->output->len + strlen (text) > MAX_OUTPUT)
    return lose (sh);
  g_string_append_printf (sh->output, "%s%s", text, has_newline ? "\n" : "");
  return SHELL_YES;
}

/* "-e", "-ne" of echo, but not "-n". */
static bool
has_flags (const GPtrArray *words)
{
  const char *first = words->len > 1 ? words->pdata[1] : "";
  gsize n = strlen (first);
  return n > 1 && *first == '-' && strspn (first + 1, "neE") == n - 1 && strcmp (first, "-n") != 0;
}

static ShellStatus
print_words (LsShell *sh, const GPtrArray *words)
{
  bool has_newline = words->len < 2 || strcmp (words->pdata[1], "-n") != 0;
  GString *text = g_string_new (NULL);
  for (guint i = has_newline ? 1 : 2; i < words->len; i++)
    g_string_append_printf (text, "%s%s", text->len > 0 ? " " : "", (const char *) words->pdata[i]);
  bool is_plain = !has_flags (words) && !strchr (text->str, '\\');
  ShellStatus status = is_plain ? print (sh, text->str, has_newline) : lose (sh);
  g_string_free (text, TRUE);
  return status;
}

/* "expr A / B": numbers and operators, a word each. */
static ShellStatus
print_expr (LsShell *sh, const GPtrArray *words)
{
  static const char *const operators[] = { "+", "-", "*", "/", "%", "(", ")", NULL };
  GString *text = g_string_new (NULL);
  gint64 value;
  bool is_sum = true;
  for (guint i = 1; i < words->len; i++) {
    is_sum = is_sum
        && (g_ascii_string_to_signed (words->pdata[i], 10, G_MININT64, G_MAXINT64, &value, NULL)
            || g_strv_contains (operators, words->pdata[i]));
    g_string_append_printf (text, "%s ", (const char *) words->pdata[i]);
  }
  is_sum = is_sum && shell_arithmetic (sh, text->str, &value);
  g_string_printf (text, "%" G_GINT64_FORMAT, is_sum ? value : 0);
  ShellStatus status = is_sum ? print (sh, text->str, true) : lose (sh);
  g_string_free (text, TRUE);
  return status;
}

/* --- printf --------------------------------------------------------------------------------------- */

/* A format of %s and %d alone, each with a word of its own; NULL: it is another one. */
static char *
formatted (const char *format, char *const *words, guint n)
{
  g_autoptr (GString) text = g_string_new (NULL);
  guint at = 0;
  for (const char *p = format; *p; p++) {
    bool is_word = p[0] == '%' && (p[1] == 's' || p[1] == 'd');
    if ((*p == '%' && !is_word) || *p == '\\' || (is_word && at == n))
      return NULL;
    if (is_word)
      g_string_append (text, words[at++]);
    else
      g_string_append_c (text, *p);
    p += is_word;
  }
  return at == n && text->len <= MAX_OUTPUT ? g_strdup (text->str) : NULL;
}

void
shell_set_printed (LsShell *sh, const GPtrArray *words)
{
  if (words->len < 4 || strcmp (words->pdata[1], "-v") != 0)
    return;
  ShellMode mode = sh->mode;
  char *text = formatted (words->pdata[3], (char *const *) words->pdata + 4, words->len - 4);
  if (!text)
    shell_enter (sh, SHELL_MAYBE);
  shell_set (sh, words->pdata[2], text ? text : g_strdup ("?"));
  sh->mode = mode;
}

/* --- paths ---------------------------------------------------------------------------------------- */

static bool
is_path (const char *path)
{
  return *path && (shell_is_beside (path) || !ls_shell_has_hole (path));
}

/* The first word that is no option; NULL: there is none, or it is no path that is known. */
static const char *
path_of (const GPtrArray *words)
{
  guint i = 1;
  while (i < words->len && *(const char *) words->pdata[i] == '-')
    i++;
  return i < words->len && is_path (words->pdata[i]) ? words->pdata[i] : NULL;
}

static ShellStatus
print_dirname (LsShell *sh, const char *path)
{
  const char *slash = strrchr (path, '/');
  g_autofree char *folder = strcmp (path, LS_SHELL_FOLDER) == 0 ? g_strconcat (path, "/..", NULL)
      : slash ? g_strndup (path, MAX (1, (gsize) (slash - path)))
              : g_strdup (".");
  bool is_plain = !g_str_has_suffix (path, "/") && !g_str_has_suffix (path, "..");
  return is_plain ? print (sh, folder, true) : lose (sh);
}

static ShellStatus
change_folder (LsShell *sh, const char *path)
{
  bool is_whole = *path == '/' || shell_is_beside (path);
  if (sh->mode == SHELL_MAYBE || (!is_whole && !sh->folder))
    return lose (sh);
  char *folder = is_whole ? g_strdup (path) : g_strconcat (sh->folder, "/", path, NULL);
  g_free (sh->folder);
  sh->folder = folder;
  return SHELL_YES;
}

static ShellStatus
print_path (LsShell *sh, const char *name, const GPtrArray *words)
{
  const char *path = path_of (words);
  if (strcmp (name, "pwd") == 0)
    return sh->folder ? print (sh, sh->folder, true) : lose (sh);
  if (!path)
    return lose (sh);
  if (strcmp (name, "cd") == 0)
    return change_folder (sh, path);
  if (strcmp (name, "dirname") == 0)
    return print_dirname (sh, path);
  if (strcmp (name, "basename") == 0 && words->len == 2 && strchr (path, '/'))
    return print (sh, ls_shell_base_of (path), true);
  bool is_same = (strcmp (name, "readlink") == 0 || strcmp (name, "realpath") == 0)
      && (*path == '/' || shell_is_beside (path));
  return is_same ? print (sh, path, true) : lose (sh);
}

/* --- the whole ------------------------------------------------------------------------------------ */

ShellStatus
shell_print (LsShell *sh, const GPtrArray *words, const char *here, const char *target)
{
  const char *name = words->pdata[0];
  if (target && strcmp (name, "cd") != 0)
    return lose (sh);
  if (here && words->len == 1 && strcmp (name, "cat") == 0)
    return print (sh, here, false);
  if (strcmp (name, "echo") == 0)
    return print_words (sh, words);
  if (strcmp (name, "expr") == 0)
    return print_expr (sh, words);
  return print_path (sh, name, words);
}

static char *
taken_output (LsShell *sh, guint n_faults)
{
  bool is_lost = sh->is_lost || sh->has_left || sh->faults->len > n_faults;
  g_ptr_array_set_size (sh->faults, (gint) n_faults);
  while (sh->output->len > 0 && sh->output->str[sh->output->len - 1] == '\n')
    g_string_truncate (sh->output, sh->output->len - 1);
  return g_string_free (sh->output, is_lost);
}

char *
shell_output_of (LsShell *sh, const char *text, gsize n)
{
  const LsShell before = *sh;
  g_autofree char *copy = g_strndup (text, n);
  if (!shell_afford (sh, n))
    return NULL;
  sh->output = g_string_new (NULL);
  sh->folder = g_strdup (before.folder);
  sh->is_lost = false;
  sh->joint = -1;
  sh->is_in_maybe = before.is_in_maybe || before.mode == SHELL_MAYBE;
  sh->mode = SHELL_RUN;
  sh->read (sh, copy, strlen (copy));
  char *output = taken_output (sh, before.faults->len);
  g_free (sh->folder);
  sh->output = before.output;
  sh->folder = before.folder;
  sh->is_lost = before.is_lost;
  sh->joint = before.joint;
  sh->is_in_maybe = before.is_in_maybe;
  sh->mode = before.mode;
  sh->has_left = before.has_left;
  sh->continues = before.continues;
  return output;
}
