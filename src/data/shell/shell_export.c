/* data/shell/shell_export.c — which variables processes see. */
#include <string.h>

#include "data/shell/shell_parts.h"

void
shell_export (LsShell *sh, const char *name)
{
  if (sh->mode != SHELL_SKIPPED)
    g_hash_table_add (sh->exported, g_strdup (name));
}

bool
ls_shell_exports (const LsShell *sh, const char *name)
{
  return g_hash_table_contains (sh->exported, name);
}

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
shell_export_names (LsShell *sh, const GPtrArray *words, const GPtrArray *in_front)
{
  for (guint i = 0; i < in_front->len && words->len > 0; i++)
    shell_export (sh, in_front->pdata[i]);
  for (guint i = 1; i < words->len && shell_is_export (words); i++)
    if (*(const char *) words->pdata[i] != '-')
      shell_export (sh, words->pdata[i]);
}

void
shell_set_options (LsShell *sh, const GPtrArray *words)
{
  for (guint i = 1; i < words->len; i++) {
    const char *word = words->pdata[i], *next = i + 1 < words->len ? words->pdata[i + 1] : "";
    bool is_flag = (*word == '-' || *word == '+') && word[1] != '-',
         is_it
        = is_flag && (strchr (word + 1, 'a') || (strchr (word + 1, 'o') && strcmp (next, "allexport") == 0));
    if (is_it && sh->mode == SHELL_RUN)
      sh->exports_all = *word == '-';
    if (!is_flag)
      break;
    i += strchr (word + 1, 'o') != NULL;
  }
}
