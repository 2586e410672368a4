/* data/shell/shell_values.c — variables, and holes where a value is not known. */
#include "data/shell/shell_parts.h"

#include <string.h>

/* In a hole, behind the name of a variable that branches set, which are perhaps taken. */
#define UNDECIDED ", which the script does not decide"

void
shell_value_free (gpointer value)
{
  g_ptr_array_unref (((ShellValue *) value)->items);
  g_free (value);
}

ShellValue *
shell_value_copy (const ShellValue *value)
{
  if (!value)
    return NULL;
  ShellValue *copy = g_new (ShellValue, 1);
  *copy = (ShellValue) { g_ptr_array_ref (value->items), value->is_array };
  return copy;
}

LsShell *
ls_shell_new (const LsShellFuncs *funcs, gpointer data)
{
  LsShell *sh = g_new0 (LsShell, 1);
  sh->funcs = *funcs;
  sh->data = data;
  sh->values = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, shell_value_free);
  sh->names = g_ptr_array_new_with_free_func (g_free);
  sh->functions = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  sh->outside = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  sh->exported = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  sh->unset = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  sh->outer = g_ptr_array_new ();
  sh->texts = g_ptr_array_new ();
  sh->mode = SHELL_RUN;
  sh->faults = g_ptr_array_new_with_free_func (g_free);
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
  g_ptr_array_unref (sh->faults);
  g_free (sh);
}

void
shell_fail (LsShell *sh, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (sh->faults, g_strdup_vprintf (format, args));
  va_end (args);
}

bool
shell_has_failed (const LsShell *sh)
{
  return sh->faults->len > 0;
}

bool
shell_afford (LsShell *sh, gsize n)
{
  if (n > LS_SHELL_MAX_BYTES - sh->n_bytes) {
    if (!shell_has_failed (sh))
      shell_fail (sh, "its words grow beyond %d MiB", (int) (LS_SHELL_MAX_BYTES >> 20));
    return false;
  }
  sh->n_bytes += n;
  return true;
}

/* --- holes -------------------------------------------------------------------------------------- */

bool
ls_shell_has_hole (const char *word)
{
  return strchr (word, LS_SHELL_HOLE) != NULL;
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

static char *
perhaps (const char *name)
{
  return g_strdup_printf ("%c$%s" UNDECIDED "%c", LS_SHELL_HOLE, name, LS_SHELL_HOLE_END);
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
  for (guint i = 0; i < old->len; i++)
    if (i >= items->len || strcmp (items->pdata[i], old->pdata[i]) != 0)
      return false;
  return true;
}

/* What a branch that is perhaps taken leaves of a value: the value before, with a hole behind it where the
 * branch only appends; a hole where it sets another. */
static GPtrArray *
perhaps_items (const char *name, const ShellValue *old, GPtrArray *items, bool is_array)
{
  g_autoptr (GPtrArray) made = items;
  if (!old)
    return new_items (perhaps (name));
  bool appends = is_array && begins_with (items, old->items);
  bool extends = !is_array && old->items->len == 1 && items->len == 1
      && g_str_has_prefix (items->pdata[0], old->items->pdata[0]) && *(char *) old->items->pdata[0];
  g_autofree char *hole = perhaps (name);
  if (extends)
    return new_items (g_strconcat (old->items->pdata[0], " ", hole, NULL));
  if (!appends)
    return new_items (g_steal_pointer (&hole));
  GPtrArray *kept = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_extend (kept, old->items, copy_text, NULL);
  g_ptr_array_add (kept, g_steal_pointer (&hole));
  return kept;
}

static GPtrArray *
appended (const ShellValue *old, GPtrArray *items, bool is_array)
{
  g_autoptr (GPtrArray) more = items;
  if (!is_array && old->items->len > 0) {
    char *joined = g_strconcat (old->items->pdata[0], more->len > 0 ? more->pdata[0] : "", NULL);
    return new_items (joined);
  }
  GPtrArray *all = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_extend (all, old->items, copy_text, NULL);
  g_ptr_array_extend (all, more, copy_text, NULL);
  return all;
}

static bool
is_same (const ShellValue *old, const GPtrArray *items)
{
  return old && old->items->len == items->len && begins_with (items, old->items);
}

ShellMode
shell_enter (LsShell *sh, ShellMode mode)
{
  ShellMode before = sh->mode;
  sh->mode = MIN (before, mode);
  return before;
}

void
shell_assign (LsShell *sh, const char *name, GPtrArray *items, bool is_array, bool is_appended)
{
  const ShellValue *old = look_up (sh, name);
  gsize n = size_of (items) + (old && is_appended ? size_of (old->items) : 0) + strlen (name);
  bool is_own = g_ascii_isdigit (*name) || *name == '@'; /* of a function in a $(command) */
  if (sh->output && sh->mode == SHELL_RUN && strcmp (name, "IFS") == 0) {
    sh->joint = items->len > 0 ? *(const unsigned char *) items->pdata[0] : 0;
    g_ptr_array_unref (items);
    return;
  }
  if (sh->output && sh->mode != SHELL_SKIPPED && !is_own)
    sh->is_lost = true;
  if (sh->mode == SHELL_SKIPPED || sh->is_lost || !shell_afford (sh, n)) {
    g_ptr_array_unref (items);
    return;
  }
  note_outside (sh, name, is_appended ? LS_SHELL_ASKED : LS_SHELL_OVERWRITTEN);
  if (old && is_appended)
    items = appended (old, items, is_array);
  if (sh->mode == SHELL_MAYBE && !is_same (old, items))
    items = perhaps_items (name, old, items, is_array);
  ShellValue *value = g_new (ShellValue, 1);
  *value = (ShellValue) { items, is_array };
  if (!old)
    g_ptr_array_add (sh->names, g_strdup (name));
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
  sh->is_lost = sh->is_lost || sh->output;
  if (sh->is_lost)
    return;
  if (sh->mode == SHELL_RUN)
    g_hash_table_remove (sh->values, name);
  else if (sh->mode == SHELL_MAYBE && look_up (sh, name))
    shell_set (sh, name, g_strdup (""));
}

void
shell_set_path (LsShell *sh, const char *name, const char *path)
{
  ShellValue *value = g_new (ShellValue, 1);
  *value = (ShellValue) { new_items (g_strdup (path)), false };
  g_hash_table_replace (sh->values, g_strdup (name), value);
  if (!path)
    g_hash_table_remove (sh->values, name);
}

const GPtrArray *
ls_shell_names (const LsShell *sh)
{
  return sh->names;
}

GPtrArray *
ls_shell_words (const LsShell *sh, const char *name)
{
  const ShellValue *value = look_up (sh, name);
  if (!value)
    return NULL;
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < value->items->len; i++)
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
