/* data/shell/shell_export.c — which variables processes see. */
#include <string.h>

#include "data/shell/shell_parts.h"

bool
shell_is_declaration (const GPtrArray *words)
{
  static const char *const all[] = { "export", "declare", "local", "readonly", "typeset", NULL };
  return words->len > 0 && g_strv_contains (all, words->pdata[0]);
}

bool
shell_is_export (const GPtrArray *words)
{
  bool has_flag = false;
  for (guint i = 1; i < words->len; i++) {
    const char *word = words->pdata[i];
    has_flag = has_flag || (*word == '-' && strchr (word, 'x'));
  }
  return words->len > 0 && shell_is_declaration (words)
      && (has_flag || strcmp (words->pdata[0], "export") == 0);
}

void
shell_export_names (LsShell *sh, const GPtrArray *words, GHashTable *in_front)
{
  GHashTableIter iter;
  gpointer name;
  for (g_hash_table_iter_init (&iter, in_front);
       words->len > 0 && g_hash_table_iter_next (&iter, &name, NULL);)
    shell_export (sh, name);
  for (guint i = 1; i < words->len && shell_is_export (words); i++)
    if (*(const char *) words->pdata[i] != '-')
      shell_export (sh, words->pdata[i]);
}

/* --- what is set in front of a command ----------------------------------------------------------------- */

/* What a variable was before. */
typedef struct {
  ShellValue *value; /* NULL: it was not set */
  bool is_exported;
} Before;

static void
before_free (gpointer data)
{
  Before *before = data;
  if (before->value)
    shell_value_free (before->value);
  g_free (before);
}

GHashTable *
shell_in_front_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, before_free);
}

void
shell_assign_in_command (LsShell *sh, const char *p, const char *end, const GPtrArray *words,
                         GHashTable *in_front)
{
  const char *name_end = shell_name_end (p, end);
  g_autofree char *name = g_strndup (p, (gsize) (name_end - p));
  bool exports = shell_is_export (words) || sh->exports_all;
  if (words->len == 0 && !g_hash_table_contains (in_front, name)) {
    Before *before = g_new (Before, 1);
    *before = (Before) { shell_value_copy (g_hash_table_lookup (sh->values, name)),
                         exports || ls_shell_exports (sh, name) };
    g_hash_table_insert (in_front, g_strdup (name), before);
  }
  shell_perform_assignment (sh, p, end);
  if (exports)
    shell_export (sh, name);
}

void
shell_set_back (LsShell *sh, GHashTable *in_front)
{
  GHashTableIter iter;
  gpointer name, data;
  for (g_hash_table_iter_init (&iter, in_front); g_hash_table_iter_next (&iter, &name, &data);) {
    Before *before = data;
    if (!before->is_exported)
      g_hash_table_remove (sh->exported, name);
    if (before->value)
      g_hash_table_replace (sh->values, g_strdup (name), g_steal_pointer (&before->value));
    else
      g_hash_table_remove (sh->values, name);
  }
}
