/* data/shell/shell_command.c — variables, and commands: what they set, export, print in $(...) or hand on. */
#include "data/shell/shell_parts.h"

#include <string.h>

/* In a hole, behind the name of a variable that branches set, which are perhaps taken. */
#define UNDECIDED ", which the script does not decide"

static void
value_free (gpointer value)
{
  g_clear_pointer (&((ShellValue *) value)->items, g_ptr_array_unref);
  g_free (value);
}

/* With the same items. of: NULL for what is not set. */
static ShellValue *
value_copy (const ShellValue *of)
{
  ShellValue *value = of ? g_memdup2 (of, sizeof *of) : g_new0 (ShellValue, 1);
  if (value->items)
    g_ptr_array_ref (value->items);
  return value;
}

LsShell *
ls_shell_new (const LsShellFuncs *funcs, gpointer data)
{
  LsShell *sh = g_new0 (LsShell, 1);
  sh->funcs = *funcs;
  sh->data = data;
  sh->values = shell_kept_new ();
  sh->names = g_ptr_array_new_with_free_func (g_free);
  sh->functions = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  sh->outside = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
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
  return g_str_has_prefix (path, LS_SHELL_FOLDER) && strrchr (path, LS_SHELL_HOLE) == path;
}

char *
ls_shell_hole_names (const char *word)
{
  GString *names = g_string_new (NULL);
  for (const char *p = strchr (word, LS_SHELL_HOLE); p; p = strchr (p, LS_SHELL_HOLE)) {
    const char *why = strstr (++p, ", which "); /* not decided, or not read */
    gsize n = strcspn (p, "\002");
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
  const ShellValue *value = g_hash_table_lookup (sh->values, name);
  return value && value->items ? value : NULL;
}

const ShellValue *
shell_value (const LsShell *sh, const char *name)
{
  note_outside (sh, name, LS_SHELL_ASKED);
  return look_up (sh, name);
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

/* It is this from now on, in any mode; exported if it was. Takes its items. */
static void
put (LsShell *sh, const char *name, ShellValue value)
{
  value.is_exported = ls_shell_exports (sh, name);
  g_hash_table_replace (sh->values, g_strdup (name), g_memdup2 (&value, sizeof value));
}

void
shell_assign (LsShell *sh, const char *name, GPtrArray *items, bool is_array, bool is_appended)
{
  const ShellValue *old = look_up (sh, name);
  const gsize n = size_of (items) + (old && is_appended ? size_of (old->items) : 0) + strlen (name);
  bool is_map = old && old->is_map && is_array, counts = sh->mode != SHELL_SKIPPED && shell_afford (sh, n);
  for (guint i = 0; counts && is_map && i < items->len; i++) { /* "[key]=value", each */
    const char *item = items->pdata[i], *close = strstr (item, "]=");
    g_autofree char *key = close ? g_strdup_printf ("%s%.*s]", name, (int) (close - item), item) : NULL;
    if (*item == '[' && key)
      shell_set (sh, key, g_strdup (close + 2));
  }
  if (is_map || !counts) {
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
  put (sh, name, (ShellValue) { .items = items, .is_array = is_array });
}

void
shell_set (LsShell *sh, const char *name, char *text)
{
  shell_assign (sh, name, new_items (text), false, false);
}

void
shell_declare_map (LsShell *sh, const char *name)
{
  const ShellValue *old = look_up (sh, name);
  if (sh->mode != SHELL_SKIPPED && !(old && old->is_map))
    put (sh, name,
         (ShellValue) { .items = g_ptr_array_new_with_free_func (g_free), .is_array = true, .is_map = true });
}

void
shell_unset (LsShell *sh, const char *name)
{
  if (sh->mode == SHELL_RUN)
    g_hash_table_remove (sh->values, name);
  else if (sh->mode == SHELL_MAYBE && look_up (sh, name))
    shell_set (sh, name, g_strdup (""));
}

void
shell_set_place (LsShell *sh, const char *name, const char *path)
{
  if (shell_is_beside (path))
    put (sh, name, (ShellValue) { .items = new_items (g_strdup (path)) });
  else
    g_hash_table_remove (sh->values, name);
}

/* --- what variables are for a while ---------------------------------------------------------------- */

GHashTable *
shell_kept_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, value_free);
}

void
shell_keep (const LsShell *sh, GHashTable *kept, const char *name)
{
  if (!g_hash_table_contains (kept, name))
    g_hash_table_insert (kept, g_strdup (name), value_copy (g_hash_table_lookup (sh->values, name)));
}

void
shell_set_back (LsShell *sh, const GHashTable *kept)
{
  GHashTableIter iter;
  gpointer name, value;
  for (g_hash_table_iter_init (&iter, (GHashTable *) kept); g_hash_table_iter_next (&iter, &name, &value);)
    g_hash_table_replace (sh->values, g_strdup (name), value_copy (value));
}

ShellOutside
shell_begin_own (LsShell *sh)
{
  const ShellOutside outside = { sh->values, sh->names->len, sh->leaves };
  sh->values = shell_kept_new ();
  shell_afford (sh, (gsize) g_hash_table_size (outside.values) * sizeof (ShellValue));
  shell_set_back (sh, outside.values);
  return outside;
}

void
shell_end_own (LsShell *sh, ShellOutside outside)
{
  g_hash_table_unref (sh->values);
  sh->values = outside.values;
  g_ptr_array_set_size (sh->names, (gint) outside.n_names);
  sh->leaves = outside.leaves;
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
  ShellValue *value = g_hash_table_lookup (sh->values, name);
  if (sh->mode == SHELL_SKIPPED)
    return;
  if (!value)
    g_hash_table_insert (sh->values, g_strdup (name), value = value_copy (NULL));
  value->is_exported = true;
}

bool
ls_shell_exports (const LsShell *sh, const char *name)
{
  const ShellValue *value = g_hash_table_lookup (sh->values, name);
  return value && value->is_exported;
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

/* --- elements of arrays --------------------------------------------------------------------------- */

void
shell_set_element (LsShell *sh, const char *p, const char *end, char *text, bool is_appended)
{
  const char *name_end = shell_name_end (p, end), *close = end;
  g_autofree char *name = g_strndup (p, (gsize) (name_end - p)), *own = text;
  const ShellValue *old = shell_value (sh, name);
  while (close > name_end && *close != ']')
    close--;
  g_autofree char *index = shell_expand_text (sh, MIN (name_end + 1, close), close, false),
                  *key = g_strdup_printf ("%s[%s]", name, index);
  bool is_map = old && old->is_map;
  gint64 at = 0;
  if (is_map && text)
    shell_assign (sh, key, new_items (g_steal_pointer (&own)), false, is_appended);
  else if (is_map)
    shell_unset (sh, key);
  bool is_known = !is_map && shell_arithmetic (sh, index, &at) && at >= 0;
  if (is_map || (!old && (!is_known || !text)))
    return; /* of an array by names nothing is known */
  GPtrArray *items
      = old ? g_ptr_array_copy (old->items, copy_text, NULL) : g_ptr_array_new_with_free_func (g_free);
  const guint n = items->len, i = (guint) MIN ((guint64) at, n);
  g_autofree char *before = is_known && i < n ? g_ptr_array_steal_index (items, i) : NULL;
  if (!is_known)
    g_ptr_array_add (items, shell_hole (name));
  else if (text)
    g_ptr_array_insert (items, (gint) i, g_strconcat (before && is_appended ? before : "", text, NULL));
  shell_assign (sh, name, items, true, false);
}

#define MAX_OUTPUT ((gsize) 64 << 10) /* of what is printed */

/* --- words ---------------------------------------------------------------------------------------- */

const char *
ls_shell_base_of (const char *word)
{
  const char *slash = strrchr (word, '/');
  return slash ? slash + 1 : word;
}

/* Of programs in whatever folder. */
static bool
is_one_of (const char *word, const char *names)
{
  return ls_is_one_of (ls_shell_base_of (word), names);
}

static bool
is_script (const char *word)
{
  return g_str_has_suffix (word, ".sh") || g_str_has_suffix (word, ".sbatch");
}

static const char submitters[] = "sbatch bash sh srun qsub bsub salloc mpirun mpiexec";

/* --- texts that commands hand on ----------------------------------------------------------------- */

/* "$@", of which $1, $2, ... are, is the words behind this one from now on. */
static void
enter_words (LsShell *sh, const GPtrArray *words, guint first)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (g_free);
  for (guint i = first + 1; i < words->len; i++)
    g_ptr_array_add (all, g_strdup (words->pdata[i]));
  put (sh, "@", (ShellValue) { .items = all, .is_array = true });
}

/* Reads a text as what the first n_outer words of a command start, a shell of its own; is_file: it is that of
 * the script that stands behind them, with its words. */
static void
read_inner (LsShell *sh, const GPtrArray *words, guint n_outer, const char *text, bool is_file)
{
  const guint n_before = sh->outer->len;
  const ShellOutside outside = shell_begin_own (sh);
  if (is_file) {
    enter_words (sh, words, n_outer);
    shell_set_place (sh, "0", words->pdata[n_outer]);
    shell_set_place (sh, "BASH_SOURCE", words->pdata[n_outer]);
  }
  for (guint i = 0; i < n_outer; i++)
    g_ptr_array_add (sh->outer, words->pdata[i]);
  sh->read (sh, text, strlen (text));
  g_ptr_array_set_size (sh->outer, (gint) n_before);
  shell_end_own (sh, outside);
}

guint
ls_shell_text_of (char *const *words, guint n)
{
  for (guint i = 1; n > 0 && is_one_of (words[0], "bash sh zsh dash") && i + 1 < n && *words[i] == '-'; i++)
    if (words[i][1] != '-' && strchr (words[i], 'c'))
      return i + 1;
  return 0;
}

/* What a command has another shell run: what stands behind "bash ... -c", or what else is a command in one
 * word, "bcprun -p 8 -c 'python train.py ...'" (NVIDIA's Base Command), but not behind python, "pdsh -w a,b
 * 'cd x; python train.py ...'"; NULL: nothing.
 * *ret_n_outer: how many words stand in front of it; 0: the command itself counts too, as that of XPK, which
 * says where it runs ("xpk workload create --command=..."). */
static const char *
inner_of (const GPtrArray *words, guint *ret_n_outer)
{
  const char *name = ls_shell_base_of (words->pdata[0]);
  bool is_xpk = strcmp (name, "xpk") == 0, is_pdsh = strcmp (name, "pdsh") == 0, is_python = false;
  for (guint i = 0, at; i < words->len; i++) {
    const char *word = words->pdata[i], *next = i + 1 < words->len ? words->pdata[i + 1] : NULL;
    at = ls_shell_text_of ((char *const *) words->pdata + i, words->len - i);
    *ret_n_outer = at > 0 ? i + at : is_xpk ? 0 : i + 1;
    if (at > 0)
      return words->pdata[i + at];
    if (is_xpk && g_str_has_prefix (word, "--command="))
      return strchr (word, '=') + 1;
    if (is_pdsh && !next && strpbrk (word, " \t\n")) {
      *ret_n_outer = i;
      return word;
    }
    if (next && ls_is_one_of (word, is_xpk ? "--command" : "-c --cmd --command --commandline --wrap")
        && (is_xpk || (!is_python && strpbrk (next, " \t\n"))))
      return next;
    is_python = is_python || g_str_has_prefix (ls_shell_base_of (word), "python");
  }
  return NULL;
}

/* The text of a file that is sourced or started, newly allocated; NULL: there is none. */
static char *
source_of (const LsShell *sh, const char *path, bool is_started)
{
  bool can_ask = sh->funcs.source && !ls_shell_has_hole (ls_shell_base_of (path));
  return can_ask ? sh->funcs.source (path, is_started, sh->data) : NULL;
}

/* "source x.sh". */
static void
read_source (LsShell *sh, const char *path)
{
  const ShellLeave leaves = sh->leaves;
  g_autofree char *text = source_of (sh, path, false);
  g_autoptr (GHashTable) kept = shell_kept_new ();
  if (!text)
    return;
  shell_keep (sh, kept, "BASH_SOURCE");
  shell_set_place (sh, "BASH_SOURCE", path);
  sh->read (sh, text, strlen (text));
  shell_set_back (sh, kept);
  sh->leaves = leaves;
}

/* "shift", "shift 2". */
static void
shift_words (LsShell *sh, const char *count)
{
  const ShellValue *old = look_up (sh, "@");
  gint64 n = 1;
  if (!old || (count && !g_ascii_string_to_signed (count, 10, 0, old->items->len, &n, NULL)))
    return;
  GPtrArray *left = g_ptr_array_copy (old->items, copy_text, NULL);
  g_ptr_array_remove_range (left, 0, (guint) MIN (n, left->len));
  shell_assign (sh, "@", left, true, false);
}

/* --- what a command sets -------------------------------------------------------------------------- */

/* "read -r A B <<< TEXT": a word each, the rest to the last; "read -d '' A <<END": all of the document. Some
 * options have a word of their own. */
static void
read_names (LsShell *sh, const GPtrArray *words, const char *text)
{
  const ShellValue *ifs = shell_value (sh, "IFS");
  const char *cuts = ifs && ifs->items->len == 1 ? ifs->items->pdata[0] : " \t\n", *option;
  guint i = 1;
  for (; i < words->len && *(option = words->pdata[i]) == '-'; i++)
    i += option[1] && strchr ("adinNptu", option[strlen (option) - 1]) != NULL;
  for (; i < words->len; i++) {
    gsize n = i + 1 < words->len && !ls_shell_has_hole (text) ? strcspn (text, cuts) : strlen (text);
    shell_set (sh, words->pdata[i], g_strndup (text, n));
    text += n == strlen (text) && ls_shell_has_hole (text) ? 0 : n + (text[n] != '\0');
  }
}

/* "printf -v NAME FORMAT WORDS...": sets it; what is printed is known of %s and %d, each with a word of its
 * own. */
static void
set_printed (LsShell *sh, const GPtrArray *words)
{
  g_autoptr (GString) text = g_string_new (NULL);
  const ShellMode mode = sh->mode;
  if (words->len < 4 || strcmp (words->pdata[1], "-v") != 0)
    return;
  g_auto (GStrv) parts = g_regex_split_simple ("%[sd]", words->pdata[3], G_REGEX_RAW, 0);
  bool is_known = MAX (g_strv_length (parts), 1) == words->len - 3;
  for (guint i = 0; is_known && parts[i]; i++) {
    is_known = !strpbrk (parts[i], "%\\");
    g_string_append_printf (text, "%s%s", i > 0 ? (char *) words->pdata[3 + i] : "", parts[i]);
  }
  if (!is_known || text->len > MAX_OUTPUT) {
    shell_enter (sh, SHELL_MAYBE);
    g_string_assign (text, "?");
  }
  shell_set (sh, words->pdata[2], g_strdup (text->str));
  sh->mode = mode;
}

/* "set -a", "set +o allexport": whether what is set is exported. */
static void
set_options (LsShell *sh, const GPtrArray *words)
{
  for (guint i = 1; i < words->len; i++) {
    const char *word = words->pdata[i], *next = i + 1 < words->len ? words->pdata[i + 1] : "";
    const bool has_name = strchr (word, 'o') != NULL;
    if ((*word != '-' && *word != '+') || word[1] == '-')
      break;
    if (sh->mode == SHELL_RUN && (strchr (word, 'a') || (has_name && strcmp (next, "allexport") == 0)))
      sh->exports_all = *word == '-';
    i += has_name;
  }
}

/* "cat <<END > FILE", "tee FILE <<END", "echo '{...}' > FILE". */
static void
write_file (LsShell *sh, const GPtrArray *words, const ShellStreams *streams)
{
  const char *name = words->pdata[0], *here = streams->here, *file = streams->target;
  bool is_echo = strcmp (name, "echo") == 0, writes = is_echo || (here && is_one_of (name, "cat tee"));
  g_autofree char *text = is_echo ? ls_joined (words, 1, " ") : g_strdup (here ? here : "");
  if (here && strcmp (name, "tee") == 0 && words->len == 2)
    file = words->pdata[1];
  if (writes && file && sh->funcs.write && shell_afford (sh, strlen (text)))
    sh->funcs.write (file, text, streams->is_appended, sh->data);
}

/* --- what a $(command) prints, where no run is needed to know it ------------------------------------- */

/* Each is newly allocated; NULL: that is not known. */

/* echo, but not with "-e" or "-ne", or with what they are for. */
static char *
echoed (const GPtrArray *words)
{
  const char *first = words->len > 1 ? words->pdata[1] : "";
  bool has_end = strcmp (first, "-n") != 0,
       has_flags = has_end && g_regex_match_simple ("^-[neE]+\\z", first, G_REGEX_RAW, 0);
  g_autofree char *text = ls_joined (words, has_end ? 1 : 2, " ");
  return has_flags || strchr (text, '\\') ? NULL : g_strconcat (text, has_end ? "\n" : "", NULL);
}

/* "expr A / B": numbers and operators, a word each. */
static char *
computed (LsShell *sh, const GPtrArray *words)
{
  g_autofree char *text = ls_joined (words, 1, " ");
  gint64 value;
  bool is_sum = g_regex_match_simple ("^(([-+]?[0-9]+|[-+*/%()])( |$))*\\z", text, G_REGEX_RAW, 0)
      && shell_arithmetic (sh, text, &value);
  return is_sum ? g_strdup_printf ("%" G_GINT64_FORMAT "\n", value) : NULL;
}

#define MAX_COUNT 1000000 /* of seq */

/* "seq LAST", "seq FIRST LAST", "seq FIRST STEP LAST" of whole numbers. */
static char *
counted (const GPtrArray *words)
{
  gint64 row[] = { 1, 1, 0 };
  GString *text = g_string_new (NULL);
  const guint n = words->len - 1;
  bool is_known = n > 0 && n <= G_N_ELEMENTS (row);
  for (guint i = 0; i < n && is_known; i++)
    is_known = g_ascii_string_to_signed (words->pdata[i + 1], 10, -MAX_COUNT, MAX_COUNT,
                                         &row[i + 1 < n ? i : 2], NULL);
  is_known = is_known && row[1] != 0;
  for (gint64 i = row[0]; is_known && (row[1] > 0 ? i <= row[2] : i >= row[2]); i += row[1]) {
    g_string_append_printf (text, "%" G_GINT64_FORMAT "\n", i);
    is_known = text->len <= MAX_OUTPUT;
  }
  return g_string_free (text, !is_known);
}

/* What a command prints of the first word that is no option, a path; "cd", of which pwd knows then, nothing.
 */
static char *
path_of (LsShell *sh, const char *name, const GPtrArray *words)
{
  guint i = 1;
  while (i < words->len && *(const char *) words->pdata[i] == '-')
    i++;
  const char *path = i < words->len ? words->pdata[i] : "", *slash = strrchr (path, '/');
  bool is_beside = shell_is_beside (path), is_whole = *path == '/' || is_beside;
  if (strcmp (name, "pwd") == 0)
    return g_strdup (sh->out.folder);
  if (*path == '\0' || (ls_shell_has_hole (path) && !is_beside))
    return NULL;
  if (strcmp (name, "cd") == 0 && sh->mode != SHELL_MAYBE && (is_whole || sh->out.folder)) {
    g_autofree char *before = sh->out.folder;
    sh->out.folder = is_whole ? g_strdup (path) : g_strconcat (before, "/", path, NULL);
    return g_strdup ("");
  }
  if (strcmp (name, "dirname") == 0 && !g_str_has_suffix (path, "/") && !g_str_has_suffix (path, ".."))
    return strcmp (path, LS_SHELL_FOLDER) == 0 ? g_strconcat (path, "/..", NULL) : g_path_get_dirname (path);
  if (strcmp (name, "basename") == 0 && words->len == 2 && slash)
    return g_strdup (slash + 1);
  bool is_same = is_whole && ls_is_one_of (name, "readlink realpath");
  return is_same ? g_strdup (path) : NULL;
}

/* Runs a command in a $(command), which is no condition. */
static ShellStatus
print_command (LsShell *sh, const GPtrArray *words, const ShellStreams *streams)
{
  const char *name = words->pdata[0];
  bool is_here = streams->here && words->len == 1 && strcmp (name, "cat") == 0,
       has_end = ls_is_one_of (name, "pwd dirname basename readlink realpath");
  g_autofree char *text = streams->target && strcmp (name, "cd") != 0 ? NULL
      : is_here                                                       ? g_strdup (streams->here)
      : strcmp (name, "echo") == 0                                    ? echoed (words)
      : strcmp (name, "expr") == 0                                    ? computed (sh, words)
      : strcmp (name, "seq") == 0                                     ? counted (words)
                                                                      : path_of (sh, name, words);
  if (!text || sh->mode == SHELL_MAYBE || sh->out.text->len + strlen (text) > MAX_OUTPUT) {
    sh->out.is_lost = true;
    return SHELL_UNKNOWN;
  }
  g_string_append_printf (sh->out.text, "%s%s", text, has_end ? "\n" : "");
  return SHELL_YES;
}

char *
shell_output_of (LsShell *sh, const char *text)
{
  const LsShell before = *sh;
  if (!shell_afford (sh, strlen (text)))
    return NULL;
  const ShellOutside outside = shell_begin_own (sh);
  sh->out = (ShellOutput) { .text = g_string_new (NULL),
                            .is_in_maybe = before.out.is_in_maybe || before.mode == SHELL_MAYBE,
                            .folder = g_strdup (before.out.folder) };
  sh->mode = SHELL_RUN;
  sh->read (sh, text, strlen (text));
  char *output = g_string_free (sh->out.text, sh->out.is_lost || sh->leaves != SHELL_STAYS);
  for (gsize length = output ? strlen (output) : 0; length > 0 && output[length - 1] == '\n'; length--)
    output[length - 1] = '\0';
  g_free (sh->out.folder);
  sh->out = before.out;
  sh->mode = before.mode;
  shell_end_own (sh, outside);
  return output;
}

/* --- commands ----------------------------------------------------------------------------------- */

/* With --no-python torchrun and its kin start any program. */
static void
run_program (LsShell *sh, GPtrArray *words, const char *here)
{
  guint n_outer = 0;
  const char *inner = inner_of (words, &n_outer);
  bool submits = is_one_of (words->pdata[0], submitters), is_handed = !inner && here && submits,
       is_inner = inner && n_outer > 0;
  if (!is_inner && !is_handed) {
    g_autoptr (GPtrArray) all = g_ptr_array_copy (sh->outer, NULL, NULL);
    g_ptr_array_extend (all, words, NULL, NULL);
    g_ptr_array_add (all, NULL);
    bool is_certain = sh->mode == SHELL_RUN && !sh->out.is_in_maybe;
    const LsShellCommand command = { (char *const *) all->pdata, all->len - 1, is_certain };
    sh->funcs.command (&command, sh->data);
  }
  if (inner || is_handed)
    read_inner (sh, words, inner ? n_outer : words->len, inner ? inner : here, false);
  bool starts_script = submits || is_script (words->pdata[0]);
  for (guint i = 0; i < words->len; i++)
    starts_script = starts_script || ls_is_one_of (words->pdata[i], "--no-python --no_python");
  guint script = is_inner || here || !starts_script ? words->len : 0;
  while (script < words->len && !is_script (words->pdata[script]))
    script++;
  g_autofree char *text = script < words->len ? source_of (sh, words->pdata[script], true) : NULL;
  if (text) /* with arguments, "bash x.sh 1 2" and "./x.sh 1 2" */
    read_inner (sh, words, script, text, true);
}

/* Runs a command in $(...) that is run for what it does: "LOG=$(torchrun train.py ...)",
 * "ID=$(sbatch --parsable job.sh)"; what it prints is not known. False: it is another one. */
static bool
run_for_output (LsShell *sh, GPtrArray *words)
{
  bool submits = is_one_of (words->pdata[0], submitters), starts = false;
  for (guint i = 0; i < words->len; i++)
    starts = starts || g_str_has_suffix (words->pdata[i], ".py") || (submits && is_script (words->pdata[i]));
  if (!starts || is_one_of (words->pdata[0], "echo expr cat dirname basename readlink realpath cd"))
    return false;
  GString *output = g_steal_pointer (&sh->out.text);
  sh->out.is_lost = false;
  run_program (sh, words, NULL);
  sh->out.text = output;
  sh->out.is_lost = true;
  return true;
}

/* What only sets, ends or starts something; false: a command of another name. A script that ends with an
 * error launches nothing: its user sees to it that it goes on. */
static bool
run_builtin (LsShell *sh, GPtrArray *words, const char *here, ShellStatus *ret_status)
{
  const char *name = words->pdata[0], *first = words->len > 1 ? words->pdata[1] : NULL;
  const bool is_run = sh->mode == SHELL_RUN;
  if (strcmp (name, "return") == 0 && sh->locals)
    sh->leaves = is_run ? SHELL_LEAVES_FUNCTION : SHELL_STAYS;
  else if (ls_is_one_of (name, "exit return"))
    sh->leaves = is_run && (!first || strcmp (first, "0") == 0) ? SHELL_LEAVES : SHELL_STAYS;
  else if (strcmp (name, "continue") == 0)
    sh->leaves = is_run ? SHELL_LEAVES_ROUND : SHELL_STAYS;
  else if (strcmp (name, "set") == 0)
    set_options (sh, words);
  else if (strcmp (name, "unset") == 0)
    for (guint i = 1; i < words->len; i++) {
      const char *one = words->pdata[i];
      if (strchr (one, '['))
        shell_set_element (sh, one, one + strlen (one), NULL, false);
      else
        shell_unset (sh, one);
    }
  else if (strcmp (name, "shift") == 0)
    shift_words (sh, first);
  else if (ls_is_one_of (name, "mapfile readarray")) {
    const char *last = words->pdata[words->len - 1];
    g_autofree char *what = g_strconcat ("$", last, LS_SHELL_UNREAD, NULL);
    shell_set (sh, last, shell_hole (what));
  } else if (strcmp (name, "read") == 0 && here)
    read_names (sh, words, here);
  else if (strcmp (name, "let") == 0)
    for (guint i = 1; i < words->len; i++)
      *ret_status = shell_set_arithmetic (sh, words->pdata[i]);
  else if (strcmp (name, "printf") == 0)
    set_printed (sh, words);
  else if (strcmp (name, "eval") == 0) {
    g_autofree char *text = ls_joined (words, 1, " ");
    if (shell_afford (sh, strlen (text)))
      sh->read (sh, text, strlen (text));
  } else if (ls_is_one_of (name, "source .") && first)
    read_source (sh, first);
  else
    return false;
  return true;
}

ShellStatus
shell_run (LsShell *sh, GPtrArray *words, const ShellStreams *streams)
{
  const char *name = words->pdata[0], *here = streams->here;
  g_autofree char *body = g_strdup (g_hash_table_lookup (sh->functions, name));
  ShellStatus status = SHELL_DONE;
  if (!shell_afford (sh, 64))
    return SHELL_UNKNOWN;
  if (!sh->out.text)
    write_file (sh, words, streams);
  if (ls_is_one_of (name, "[ test"))
    return shell_test (sh, (char *const *) words->pdata + 1, words->len - 1, false);
  if (ls_is_one_of (name, "true : false"))
    return *name != 'f';
  if (sh->out.text && !body && !here && run_for_output (sh, words))
    return SHELL_UNKNOWN;
  if (sh->out.text && !body && !ls_is_one_of (name, "exit return continue unset shift let set eval"))
    return print_command (sh, words, streams);
  if (run_builtin (sh, words, here, &status))
    return status;
  if (body) {
    g_autoptr (GHashTable) kept = shell_kept_new ();
    GHashTable *outer = sh->locals;
    shell_keep (sh, kept, "@");
    enter_words (sh, words, 0);
    sh->locals = kept;
    sh->read (sh, body, strlen (body));
    sh->locals = outer;
    shell_set_back (sh, kept);
    if (sh->leaves == SHELL_LEAVES_FUNCTION)
      sh->leaves = SHELL_STAYS;
  } else if (!ls_is_one_of (name, "echo cd mkdir rm"))
    run_program (sh, words, here);
  return status;
}
