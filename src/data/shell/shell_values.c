/* data/shell/shell_values.c — variables, and holes where a value is not known. */
#include "data/shell/shell_parts.h"

#include <string.h>

/* In a hole, behind the name of a variable that branches set, which are perhaps taken. */
#define UNDECIDED ", which the script does not decide"

#define MAX_UNSET 1000 /* names that are noted as not set */

static void
value_free (gpointer value)
{
  g_clear_pointer (&((ShellValue *) value)->items, g_ptr_array_unref);
  g_free (value);
}

LsShell *
ls_shell_new (const LsShellFuncs *funcs, gpointer data)
{
  LsShell *sh = g_new0 (LsShell, 1);
  sh->funcs = *funcs;
  sh->data = data;
  sh->values = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, value_free);
  sh->names = g_ptr_array_new_with_free_func (g_free);
  sh->functions = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  sh->outside = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  sh->exported = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  sh->unset = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  sh->outer = g_ptr_array_new ();
  sh->texts = g_ptr_array_new ();
  sh->mode = SHELL_RUN;
  return sh;
}

void
ls_shell_free (LsShell *sh)
{
  if (!sh)
    return;
  g_hash_table_unref (sh->values);
  g_ptr_array_unref (sh->names);
  g_hash_table_unref (sh->functions);
  g_hash_table_unref (sh->exported);
  g_hash_table_unref (sh->unset);
  g_hash_table_unref (sh->outside);
  g_ptr_array_unref (sh->outer);
  g_ptr_array_unref (sh->texts);
  g_free (sh->fault);
  g_free (sh);
}

void
shell_fail (LsShell *sh, const char *why)
{
  if (!sh->fault)
    sh->fault = g_strdup (why);
}

bool
shell_afford (LsShell *sh, gsize n)
{
  if (n <= LS_SHELL_MAX_BYTES - sh->n_bytes) {
    sh->n_bytes += n;
    return true;
  }
  g_autofree char *why = g_strdup_printf ("its words grow beyond %d MiB", (int) (LS_SHELL_MAX_BYTES >> 20));
  shell_fail (sh, why);
  return false;
}

/* --- holes -------------------------------------------------------------------------------------- */

bool
ls_shell_has_hole (const char *word)
{
  return strchr (word, LS_SHELL_HOLE) != NULL;
}

char *
shell_hole (const char *name)
{
  return g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, name, LS_SHELL_HOLE_END);
}

bool
shell_is_beside (const char *path)
{
  return g_str_has_prefix (path, LS_SHELL_FOLDER) && !ls_shell_has_hole (path + strlen (LS_SHELL_FOLDER));
}

char *
ls_shell_hole_names (const char *word)
{
  GString *names = g_string_new (NULL);
  for (const char *p = strchr (word, LS_SHELL_HOLE); p; p = strchr (p, LS_SHELL_HOLE)) {
    const char *end = strchr (++p, LS_SHELL_HOLE_END);
    const char *why = strstr (p, UNDECIDED);
    gsize n = end ? (gsize) (end - p) : strlen (p);
    n = why && why < p + n ? (gsize) (why - p) : n;
    g_string_append_printf (names, "%s%.*s", names->len > 0 ? ", " : "", (int) MIN (n, 60), p);
  }
  return g_string_free (names, FALSE);
}

/* --- variables ---------------------------------------------------------------------------------- */

/* A variable from outside has this become of it, unless another thing has. */
static void
note_outside (const LsShell *sh, const char *name, LsShellOutside what)
{
  gpointer state;
  if (g_hash_table_lookup_extended (sh->outside, name, NULL, &state)
      && GPOINTER_TO_INT (state) == LS_SHELL_UNASKED)
    g_hash_table_insert (sh->outside, g_strdup (name), GINT_TO_POINTER (what));
}

static const ShellValue *
look_up (const LsShell *sh, const char *name)
{
  return g_hash_table_lookup (sh->values, name);
}

const ShellValue *
shell_value (const LsShell *sh, const char *name)
{
  note_outside (sh, name, LS_SHELL_ASKED);
  return look_up (sh, name);
}

void
shell_note_unset (LsShell *sh, const char *name)
{
  if (g_hash_table_size (sh->unset) < MAX_UNSET)
    g_hash_table_add (sh->unset, g_strdup (name));
}

static GPtrArray *
new_items (char *first)
{
  GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (items, first);
  return items;
}

static gpointer
copy_text (gconstpointer text, gpointer data)
{
  return g_strdup (text);
}

static gsize
size_of (const GPtrArray *items)
{
  gsize n = 0;
  for (guint i = 0; i < items->len; i++)
    n += strlen (items->pdata[i]) + sizeof (char *);
  return n;
}

static bool
begins_with (const GPtrArray *items, const GPtrArray *old)
{
  guint i = 0;
  while (i < MIN (items->len, old->len) && strcmp (items->pdata[i], old->pdata[i]) == 0)
    i++;
  return i == old->len;
}

/* What a branch that is perhaps taken leaves of a value: the value before, with a hole behind it where the
 * branch only appends; a hole where it sets another. */
static GPtrArray *
perhaps_items (const char *name, const ShellValue *old, GPtrArray *items, bool is_array)
{
  g_autoptr (GPtrArray) made = items;
  g_autofree char *what = g_strconcat ("$", name, UNDECIDED, NULL), *hole = shell_hole (what);
  bool extends = old && !is_array && old->items->len == 1 && items->len == 1
      && g_str_has_prefix (items->pdata[0], old->items->pdata[0]) && *(char *) old->items->pdata[0];
  if (extends)
    return new_items (g_strconcat (old->items->pdata[0], " ", hole, NULL));
  if (!old || !is_array || !begins_with (items, old->items))
    return new_items (g_steal_pointer (&hole));
  GPtrArray *kept = g_ptr_array_copy (old->items, copy_text, NULL);
  g_ptr_array_add (kept, g_steal_pointer (&hole));
  return kept;
}

static GPtrArray *
appended (const ShellValue *old, GPtrArray *items, bool is_array)
{
  if (is_array || old->items->len == 0) {
    GPtrArray *all = g_ptr_array_copy (old->items, copy_text, NULL);
    g_ptr_array_extend_and_steal (all, items);
    return all;
  }
  g_autoptr (GPtrArray) more = items;
  return new_items (g_strconcat (old->items->pdata[0], more->len > 0 ? more->pdata[0] : "", NULL));
}

ShellMode
shell_enter (LsShell *sh, ShellMode mode)
{
  ShellMode before = sh->mode;
  sh->mode = MIN (before, mode);
  return before;
}

/* Whether an assignment counts. In a $(command) only that of IFS does, and of what a function of it is
 * handed: what it prints behind others is not known. */
static bool
counts (LsShell *sh, const char *name, const GPtrArray *items, gsize n)
{
  bool is_own = g_ascii_isdigit (*name) || *name == '@';
  if (sh->out.text && sh->mode == SHELL_RUN && strcmp (name, "IFS") == 0) {
    sh->out.joint = items->len > 0 ? *(const unsigned char *) items->pdata[0] : 0;
    return false;
  }
  if (sh->out.text && sh->mode != SHELL_SKIPPED && !is_own)
    sh->out.is_lost = true;
  return sh->mode != SHELL_SKIPPED && !sh->out.is_lost && shell_afford (sh, n);
}

void
shell_assign (LsShell *sh, const char *name, GPtrArray *items, bool is_array, bool is_appended)
{
  const ShellValue *old = look_up (sh, name);
  if (!counts (sh, name, items,
               size_of (items) + (old && is_appended ? size_of (old->items) : 0) + strlen (name))) {
    g_ptr_array_unref (items);
    return;
  }
  note_outside (sh, name, is_appended ? LS_SHELL_ASKED : LS_SHELL_OVERWRITTEN);
  if (old && is_appended)
    items = appended (old, items, is_array);
  bool is_same = old && old->items->len == items->len && begins_with (items, old->items);
  if (sh->mode == SHELL_MAYBE && !is_same)
    items = perhaps_items (name, old, items, is_array);
  if (!old)
    g_ptr_array_add (sh->names, g_strdup (name));
  shell_put (sh, name, items, is_array);
}

void
shell_put (LsShell *sh, const char *name, GPtrArray *items, bool is_array)
{
  ShellValue *value = g_new (ShellValue, 1);
  *value = (ShellValue) { items, is_array, false };
  g_hash_table_replace (sh->values, g_strdup (name), value);
}

void
shell_set (LsShell *sh, const char *name, char *text)
{
  shell_assign (sh, name, new_items (text), false, false);
}

void
shell_unset (LsShell *sh, const char *name)
{
  sh->out.is_lost = sh->out.is_lost || sh->out.text;
  if (sh->out.is_lost)
    return;
  if (sh->mode == SHELL_RUN)
    g_hash_table_remove (sh->values, name);
  else if (sh->mode == SHELL_MAYBE && look_up (sh, name))
    shell_set (sh, name, g_strdup (""));
}

void
shell_set_place (LsShell *sh, const char *path, bool is_started)
{
  static const char *const names[] = { "BASH_SOURCE", "0" };
  for (guint i = 0; i < (is_started ? 2 : 1); i++)
    if (path)
      shell_put (sh, names[i], new_items (g_strdup (path)), false);
    else
      g_hash_table_remove (sh->values, names[i]);
}

/* --- what variables are for a while ---------------------------------------------------------------- */

GHashTable *
shell_kept_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, value_free);
}

void
shell_keep (LsShell *sh, GHashTable *kept, const char *name, bool is_exported)
{
  const ShellValue *value = look_up (sh, name);
  ShellValue *one = g_new (ShellValue, 1);
  *one
      = (ShellValue) { value ? g_ptr_array_ref (value->items) : NULL, value && value->is_array, is_exported };
  g_hash_table_insert (kept, g_strdup (name), one);
}

void
shell_set_back (LsShell *sh, GHashTable *kept)
{
  GHashTableIter iter;
  gpointer name, data;
  for (g_hash_table_iter_init (&iter, kept); g_hash_table_iter_next (&iter, &name, &data);) {
    ShellValue *one = data;
    if (!one->is_exported)
      g_hash_table_remove (sh->exported, name);
    if (one->items)
      shell_put (sh, name, g_steal_pointer (&one->items), one->is_array);
    else
      g_hash_table_remove (sh->values, name);
  }
}

GHashTable *
shell_keep_all (LsShell *sh)
{
  GHashTable *kept = shell_kept_new ();
  GHashTableIter iter;
  gpointer name;
  for (g_hash_table_iter_init (&iter, sh->values); g_hash_table_iter_next (&iter, &name, NULL);)
    shell_keep (sh, kept, name, ls_shell_exports (sh, name));
  for (g_hash_table_iter_init (&iter, sh->exported); g_hash_table_iter_next (&iter, &name, NULL);)
    shell_keep (sh, kept, name, true);
  return kept;
}

static gboolean
is_new (gpointer name, gpointer value, gpointer kept)
{
  return !g_hash_table_contains (kept, name);
}

void
shell_set_all_back (LsShell *sh, GHashTable *kept)
{
  g_hash_table_foreach_remove (sh->values, is_new, kept);
  g_hash_table_foreach_remove (sh->exported, is_new, kept);
  shell_set_back (sh, kept);
}

/* --- what is asked of it -------------------------------------------------------------------------- */

const GPtrArray *
ls_shell_names (const LsShell *sh)
{
  return sh->names;
}

void
shell_split (const char *text, GPtrArray *words)
{
  for (const char *p = text; *p;) {
    bool is_in_hole = false;
    while (g_ascii_isspace (*p))
      p++;
    const char *begin = p;
    for (; *p && (is_in_hole || !g_ascii_isspace (*p)); p++)
      is_in_hole = *p == LS_SHELL_HOLE || (is_in_hole && *p != LS_SHELL_HOLE_END);
    if (p > begin)
      g_ptr_array_add (words, g_strndup (begin, (gsize) (p - begin)));
  }
}

GPtrArray *
ls_shell_words (const LsShell *sh, const char *name)
{
  const ShellValue *value = look_up (sh, name);
  GPtrArray *words = value ? g_ptr_array_new_with_free_func (g_free) : NULL;
  for (guint i = 0; value && i < value->items->len; i++)
    shell_split (value->items->pdata[i], words);
  return words;
}

GList *
ls_shell_unset (const LsShell *sh)
{
  return g_list_sort (g_hash_table_get_keys (sh->unset), (GCompareFunc) strcmp);
}

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

void
ls_shell_set (LsShell *sh, const char *name, const char *text)
{
  shell_set (sh, name, g_strdup (text));
  shell_export (sh, name);
  g_hash_table_insert (sh->outside, g_strdup (name), GINT_TO_POINTER (LS_SHELL_UNASKED));
}

LsShellOutside
ls_shell_outside (const LsShell *sh, const char *name)
{
  return (LsShellOutside) GPOINTER_TO_INT (g_hash_table_lookup (sh->outside, name));
}
