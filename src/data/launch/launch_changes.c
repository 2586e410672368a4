/* data/launch/launch_changes.c — how somebody's files change for another configuration, in the words of
 * their program. */
#include <stdbool.h>
#include <string.h>

#include "base/diag.h"
#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"
#include "data/launch/launch_words.h"
#include "data/launch/option_table.h"
#include "data/text/field.h"
#include "data/text/read_file.h"
#include "data/text/toml.h"

/* --- where an option stands ------------------------------------------------------------------------- */

#define MAX_BYTES ((size_t) 4 << 20)

/* The lines that may be meant. */
typedef struct {
  const char *option, *value;
  const char *variable; /* NULL: none is looked for */
  guint n;              /* lines that fit           */
  const char *file;
  unsigned line;
  char *through; /* the variable that stands for the value in the line, owned; NULL: none */
} Place;

static bool
is_name_char (char c)
{
  return g_ascii_isalnum (c) || c == '_' || c == '-';
}

/* Behind the word in a line; NULL: it is not there as a whole. '_' and '-' are the same. */
static const char *
behind (const char *line, const char *word)
{
  for (const char *p = line; *p; p++) {
    gsize n = 0;
    while (word[n] && (p[n] == word[n] || (p[n] && strchr ("-_", p[n]) && strchr ("-_", word[n]))))
      n++;
    const char *front = p;
    while (front > line && front[-1] == '-')
      front--;
    if (!word[n] && !is_name_char (p[n]) && (front == line || !is_name_char (front[-1])))
      return p + n;
  }
  return NULL;
}

/* Whether a value begins there, but for what stands between it and its name. */
static bool
begins_value (const char *p, const char *value)
{
  p += strspn (p, " \t=:\"'.");
  gsize n = strlen (value);
  return strncmp (p, value, n) == 0 && !is_name_char (p[n]);
}

/* "$TP", "${TP}", "${TP:-8}": TP, newly allocated. */
static char *
variable_at (const char *p)
{
  p += strspn (p, " \t=\"'");
  if (*p != '$')
    return NULL;
  p += p[1] == '{' ? 2 : 1;
  const char *end = p;
  while (g_ascii_isalnum (*end) || *end == '_')
    end++;
  return end > p ? g_strndup (p, (gsize) (end - p)) : NULL;
}

/* "TP=8", "export TP=${TP:-8}" */
static bool
sets_variable (const char *line, const char *name, const char *value)
{
  const char *p = line + strspn (line, " \t");
  if (g_str_has_prefix (p, "export "))
    p += strlen ("export ");
  gsize n = strlen (name);
  if (strncmp (p, name, n) != 0 || p[n] != '=')
    return false;
  p += n + 1;
  p += strspn (p, "\"'");
  const char *fallback = *p == '$' ? strstr (p, ":-") : NULL;
  return begins_value (fallback ? fallback + 2 : p, value);
}

static void
take (Place *x, const char *file, unsigned line)
{
  x->n++;
  x->file = file;
  x->line = line;
}

static void
look_at (Place *x, const char *line, const char *file, unsigned number)
{
  if (*(line + strspn (line, " \t")) == '#')
    return;
  if (x->variable) {
    if (sets_variable (line, x->variable, x->value))
      take (x, file, number);
    return;
  }
  const char *p = behind (line, x->option);
  if (!p)
    return;
  g_autofree char *variable = variable_at (p);
  if (!*x->value || begins_value (p, x->value) || variable) {
    take (x, file, number);
    g_free (x->through);
    x->through = g_steal_pointer (&variable);
  }
}

static void
look (Place *x, const GPtrArray *files)
{
  for (guint i = 0; i < files->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    size_t n;
    g_autofree char *text = ls_read_file (files->pdata[i], MAX_BYTES, &n, diags);
    g_auto (GStrv) lines = text ? g_strsplit (text, "\n", -1) : NULL;
    for (unsigned k = 0; lines && lines[k]; k++)
      look_at (x, lines[k], files->pdata[i], k + 1);
  }
}

/* Of an option, "--tp-size" or "training.seq_len", and its value: the one line of the files (char *, paths)
 * that says it, or, where a variable of a shell holds the value, the line that sets this. *ret_file: newly
 * allocated; NULL if no line or several may be meant. *ret_through: the variable, newly allocated, or
 * NULL. */
static void
find_place (const GPtrArray *files, const char *option, const char *value, char **ret_file,
            unsigned *ret_line, char **ret_through)
{
  const char *dot = strrchr (option, '.');
  Place x = { .option = dot ? dot + 1 : option + strspn (option, "-"), .value = value };
  look (&x, files);
  *ret_file = *ret_through = NULL;
  if (x.n == 1 && x.through) {
    Place y = { .option = x.option, .value = value, .variable = x.through };
    look (&y, files);
    bool is_one = y.n == 1;
    *ret_file = g_strdup (is_one ? y.file : x.file);
    *ret_line = is_one ? y.line : x.line;
    *ret_through = is_one ? g_steal_pointer (&x.through) : NULL;
  } else if (x.n == 1) {
    *ret_file = g_strdup (x.file);
    *ret_line = x.line;
  }
  g_free (x.through);
}

/* --- fragments ------------------------------------------------------------------------------------- */

/* "NAME=(", options, ")": the lines between. */
static void
add_array (LaunchWords *w, const char *text)
{
  GString *options = g_string_new (NULL);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (g_str_has_prefix (g_strstrip (*line), "--"))
      g_string_append_printf (options, "%s ", *line);
  gint n = 0;
  g_auto (GStrv) words = NULL;
  if (g_shell_parse_argv (options->str, &n, &words, NULL))
    launch_words_add (w, words, (guint) n);
  g_string_free (options, TRUE);
}

/* What an emit_X.c writes: JSON, TOML or an array of options. */
static LaunchWords *
words_of (const char *text)
{
  LaunchWords *w = launch_words_new ();
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool is_array = strstr (text, "=(\n") != NULL;
  cJSON *tree = is_array ? NULL
      : *text == '{'     ? cJSON_Parse (text)
                         : ls_toml_parse (text, strlen (text), "", diags);
  if (tree)
    launch_words_add_tree (w, tree);
  else if (is_array)
    add_array (w, text);
  cJSON_Delete (tree);
  return w;
}

static char *
value_of (const LaunchOption *o)
{
  GString *value = g_string_new (NULL);
  for (guint i = 0; i < o->values->len; i++)
    g_string_append_printf (value, "%s%s", i > 0 ? " " : "", (const char *) o->values->pdata[i]);
  return g_string_free (value, FALSE);
}

/* --- the user's options ---------------------------------------------------------------------------- */

/* Names without the dashes in front, '_' and '-' being the same. */
static bool
is_same_name (const char *a, const char *b)
{
  a += strspn (a, "-");
  b += strspn (b, "-");
  for (; *a && *b; a++, b++)
    if (*a != *b && !(strchr ("-_", *a) && strchr ("-_", *b)))
      return false;
  return *a == *b;
}

static const LsImportOption *
option_named (const LsImport *import, const char *name)
{
  for (guint i = 0; i < import->options->len; i++) {
    const LsImportOption *o = &g_array_index (import->options, LsImportOption, i);
    if (is_same_name (o->written, name))
      return o;
  }
  return NULL;
}

/* What an option decides, a key; NULL: not it alone. */
static const char *
key_of (const LsImport *import, const char *name)
{
  const OptionRow *row = import->table ? option_find (import->table, name + strspn (name, "-")) : NULL;
  return row ? row->key : NULL;
}

char *
ls_launch_option_of (const LsImport *import, const char *key)
{
  for (guint i = 0; i < import->options->len; i++) {
    const LsImportOption *o = &g_array_index (import->options, LsImportOption, i);
    if (g_strcmp0 (key_of (import, o->written), key) == 0)
      return o->value && *o->value ? g_strdup_printf ("%s %s", o->written, o->value) : g_strdup (o->written);
  }
  return NULL;
}

typedef struct {
  const LsImport *import;
  LaunchWords *now, *wanted; /* now: NULL if it cannot be written */
  GPtrArray *changes;
  GHashTable *told; /* LsImportOption */
} Work;

static void
change_free (gpointer change)
{
  LsLaunchChange *c = change;
  g_free (c->option);
  g_free (c->before);
  g_free (c->after);
  g_free (c->file);
  g_free (c->through);
  g_free (c);
}

/* user: the option in the file; NULL: it is not there. */
static void
add_change (Work *w, const LsImportOption *user, const char *option, const char *after)
{
  LsLaunchChange *c = g_new0 (LsLaunchChange, 1);
  c->option = g_strdup (user ? user->written : option);
  c->before = user ? g_strdup (user->value ? user->value : "") : NULL;
  c->after = g_strdup (after);
  if (user)
    find_place (w->import->files, c->option, c->before, &c->file, &c->line, &c->through);
  if (user)
    g_hash_table_add (w->told, (gpointer) user);
  g_ptr_array_add (w->changes, c);
}

/* Takes out options of the file that decide what another option does now. */
static void
take_out_others (Work *w, const char *name)
{
  const char *key = key_of (w->import, name);
  for (guint i = 0; key && i < w->import->options->len; i++) {
    const LsImportOption *o = &g_array_index (w->import->options, LsImportOption, i);
    if (!is_same_name (o->written, name) && g_strcmp0 (key_of (w->import, o->written), key) == 0
        && !g_hash_table_contains (w->told, o)
        && !launch_words_find (w->wanted, o->written + strspn (o->written, "-")))
      add_change (w, o, NULL, NULL);
  }
}

/* A value as our files write it; NULL: it is none of the key. */
static char *
text_of (const char *key, const char *value)
{
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  const LsField *f = ls_field_find (ls_strategy_fields, key);
  LsStrategy s;
  ls_strategy_init (&s);
  char *text = f && !f->file_only && ls_field_set_text (ls_strategy_fields, &s, key, value, none)
      ? ls_field_text (f, &s, NULL)
      : NULL;
  ls_strategy_clear (&s);
  return text;
}

/* Of a job that cannot be written as it is: whether what is known of it says this already, by another option
 * or by a default. */
static bool
is_said (const Work *w, const LaunchOption *wanted, const char *after)
{
  const OptionRow *row = w->import->table ? option_find (w->import->table, wanted->name) : NULL;
  if (w->now || !row || !row->key)
    return !w->now && row && row->kind == OPTION_IGNORED;
  g_autofree char *known = row->kind == OPTION_MODEL ? ls_import_model_value (w->import, row->key)
                                                     : ls_import_strategy_value (w->import, row->key),
                  *value = row->kind == OPTION_MODEL ? g_strdup (after)
      : row->on                                      ? g_strdup (row->on)
                                                     : text_of (row->key, after);
  return known && g_strcmp0 (known, value) == 0;
}

static void
set_option (Work *w, const LaunchOption *wanted)
{
  const LaunchOption *now = w->now ? launch_words_find (w->now, wanted->name) : NULL;
  g_autofree char *after = value_of (wanted), *before = now ? value_of (now) : NULL;
  if (now && strcmp (before, after) == 0)
    return;
  const LsImportOption *user = option_named (w->import, wanted->name);
  if (is_said (w, wanted, after))
    return;
  if (user && g_strcmp0 (user->value ? user->value : "", after) == 0)
    return;
  take_out_others (w, wanted->name);
  add_change (w, user, wanted->written, after);
}

/* Whether another option of what is wanted decides the same, or one of the file that was told. */
static bool
is_decided (const Work *w, const char *name)
{
  const char *key = key_of (w->import, name);
  for (guint i = 0; key && i < w->wanted->options->len; i++)
    if (g_strcmp0 (key_of (w->import, ((LaunchOption *) w->wanted->options->pdata[i])->name), key) == 0)
      return true;
  for (guint i = 0; key && i < w->changes->len; i++)
    if (g_strcmp0 (key_of (w->import, ((LsLaunchChange *) w->changes->pdata[i])->option), key) == 0)
      return true;
  return false;
}

/* What the file says in words that are not known to be of this option. */
static void
add_other_words (Work *w, const LaunchOption *now)
{
  LsLaunchChange *c = g_new0 (LsLaunchChange, 1);
  c->option = g_strdup (now->written);
  c->before = value_of (now);
  g_ptr_array_add (w->changes, c);
}

static void
take_out (Work *w, const LaunchOption *now)
{
  if (launch_words_find (w->wanted, now->name))
    return;
  const LsImportOption *user = option_named (w->import, now->name);
  bool is_off = g_hash_table_contains (w->wanted->off, now->name);
  guint n = w->changes->len;
  if (user && g_hash_table_contains (w->told, user))
    return;
  if (user || is_off)
    add_change (w, user, now->written, is_off ? "false" : NULL);
  else
    take_out_others (w, now->name);
  if (w->changes->len == n && !is_decided (w, now->name))
    add_other_words (w, now);
}

GPtrArray *
ls_launch_changes (const LsImport *import, const char *now, const char *wanted)
{
  Work w = { import, now ? words_of (now) : NULL, words_of (wanted), NULL, NULL };
  w.changes = g_ptr_array_new_with_free_func (change_free);
  w.told = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < w.wanted->options->len; i++)
    set_option (&w, w.wanted->options->pdata[i]);
  for (guint i = 0; w.now && i < w.now->options->len; i++)
    take_out (&w, w.now->options->pdata[i]);
  g_hash_table_unref (w.told);
  launch_words_free (w.now);
  launch_words_free (w.wanted);
  return w.changes;
}
