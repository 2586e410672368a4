/* A job written by the table that reads it; said in options of another program. */
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/launch/option_table.h"
#include "data/launch/program/program_map.h"
#include "data/text/field.h"
#include "data/text/json_out.h"

/* --- the value of a row ---------------------------------------------------------------------------- */

/* Whether an option is no longer there, or an earlier row of today says what this one would. */
static bool
is_older (const OptionTable *table, const OptionRow *row)
{
  for (const OptionRow *first = table->rows; row->key && first < row; first++)
    if (first->kind == row->kind && !first->until && first->key && strcmp (first->key, row->key) == 0
        && (!first->on || g_strcmp0 (first->on, row->on) == 0))
      return true;
  return row->until != NULL;
}

static bool
is_with (const OptionTable *table, const OptionRow *row, const LsModel *m, const LsStrategy *s)
{
  if (!row->with)
    return true;
  const char *other = row->with + (*row->with == '!');
  const OptionRow *its = option_find (table, other);
  g_autofree char *value = its ? option_value (table, its, m, s) : NULL;
  return (value != NULL) == (other == row->with);
}

static char *
theirs_of (const OptionRow *row, const char *ours)
{
  for (const OptionWord *word = row->words; word && word->theirs; word++)
    if (strcmp (word->ours, ours) == 0)
      return g_strdup (word->theirs);
  return row->words ? NULL : g_strdup (ours);
}

static char *
value_of_key (const OptionRow *row, const LsModel *m, const LsStrategy *s)
{
  bool is_model = row->kind == OPTION_MODEL;
  const LsField *f = ls_field_find (is_model ? ls_model_fields : ls_strategy_fields, row->key);
  g_autofree char *ours = ls_field_text (f, is_model ? (const void *) m : (const void *) s, NULL);
  if (!ours || (row->none && strcmp (ours, "0") == 0))
    return NULL;
  if (row->on)
    return g_strdup (strcmp (ours, row->on) == 0 ? "" : row->off);
  return theirs_of (row, ours);
}

/* Of a map: whether it is not written, as an expression says. */
static bool
is_left_out (const OptionTable *table, const OptionRow *row, const LsModel *m, const LsStrategy *s)
{
  g_autofree char *holds = row->only ? program_written (table->map, row->only, m, s) : NULL;
  return row->only && (!holds || !*holds || strcmp (holds, "0") == 0);
}

char *
option_value (const OptionTable *table, const OptionRow *row, const LsModel *m, const LsStrategy *s)
{
  if (is_left_out (table, row, m, s))
    return NULL;
  if (row->write)
    return program_written (table->map, row->write, m, s);
  if (row->kind != OPTION_MODEL && row->kind != OPTION_STRATEGY && row->only)
    return g_strdup ("");
  if ((row->kind != OPTION_MODEL && row->kind != OPTION_STRATEGY) || is_older (table, row))
    return NULL;
  return is_with (table, row, m, s) ? value_of_key (row, m, s) : NULL;
}

/* --- its syntax ------------------------------------------------------------------------------------ */

/* Several words are several values; what a shell would read otherwise is in quotes. */
static void
write_argument (const OptionRow *row, const char *value, GString *out)
{
  const char *quote = strpbrk (value, "[]()|*") ? "'" : "";
  bool is_first = out->len == 0 || !row->joins;
  g_string_append_printf (out, "%s--%s%s%s%s%s",
                          !is_first          ? " "
                              : out->len > 0 ? "\n  "
                                             : "  ",
                          row->option, *value ? " " : "", quote, value, quote);
}

/* A truth, a number, a list, or else a text. */
static bool
is_bare (const char *value)
{
  char *end;
  g_ascii_strtod (value, &end);
  return *value == '[' || *end == '\0' || strcmp (value, "true") == 0 || strcmp (value, "false") == 0;
}

static void
write_toml (const OptionRow *row, const char *value, GString *out, GString *section)
{
  const char *key = strrchr (row->option, '.') + 1, *quote = *value && !is_bare (value) ? "\"" : "";
  g_autofree char *its = g_strndup (row->option, (gsize) (key - 1 - row->option));
  if (strcmp (its, section->str) != 0)
    g_string_append_printf (out, "%s[%s]\n", section->len > 0 ? "\n" : "", its);
  g_string_assign (section, its);
  g_string_append_printf (out, "%s = %s%s%s%s%s\n", key, quote, *value ? value : "true", quote,
                          row->remark ? " # " : "", row->remark ? row->remark : "");
}

/* Ends the objects that an option is not in, and begins those that it is in; open: their names. */
static void
enter_objects (LsJsonOut *w, char **names, guint n_names, GPtrArray *open)
{
  guint n = 0;
  while (n < open->len && n < n_names && strcmp (open->pdata[n], names[n]) == 0)
    n++;
  for (guint i = open->len; i > n; i--)
    ls_json_out_end_object (w);
  g_ptr_array_set_size (open, (gint) n);
  for (; n < n_names; n++) {
    ls_json_out_begin_object (w, names[n]);
    g_ptr_array_add (open, g_strdup (names[n]));
  }
}

static void
write_json (const OptionRow *row, const char *value, LsJsonOut *w, GPtrArray *open)
{
  g_auto (GStrv) names = g_strsplit (row->option, ".", -1);
  guint n = g_strv_length (names) - 1;
  enter_objects (w, names, n, open);
  if (!*value || strcmp (value, "true") == 0 || strcmp (value, "false") == 0)
    ls_json_out_bool (w, names[n], strcmp (value, "false") != 0);
  else if (is_bare (value))
    ls_json_out_uint (w, names[n], g_ascii_strtoull (value, NULL, 10));
  else
    ls_json_out_string (w, names[n], value);
}

void
option_write (const OptionTable *table, OptionSyntax syntax, const LsModel *m, const LsStrategy *s,
              GString *out)
{
  g_autoptr (GString) text = g_string_new (NULL), section = g_string_new (NULL);
  g_autoptr (GPtrArray) open = g_ptr_array_new_with_free_func (g_free);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  if (syntax == OPTION_JSON)
    ls_json_out_begin_object (&w, NULL);
  for (guint i = 0; i < table->n; i++) {
    const OptionRow *row = &table->rows[i];
    g_autofree char *value = option_value (table, row, m, s);
    if (!value)
      continue;
    if (syntax == OPTION_ARGUMENTS)
      write_argument (row, value, text);
    else if (syntax == OPTION_TOML)
      write_toml (row, value, text, section);
    else
      write_json (row, value, &w, open);
  }
  if (syntax == OPTION_JSON) {
    enter_objects (&w, NULL, 0, open);
    ls_json_out_end_object (&w);
  }
  g_string_append (out, text->str);
  if (syntax != OPTION_TOML)
    g_string_append_c (out, '\n');
}

/* --- in options of another program ----------------------------------------------------------------- */

static const char *
name_there (const OptionRow *row, const char *name)
{
  return strcmp (row->key, "*") == 0 ? name : row->key;
}

static void
translate (const LaunchJob *job, const LaunchOption *o, LaunchWords *to)
{
  const OptionRow *row = option_find (job->table, o->name);
  if (!option_is_known (job, o, row))
    return;
  if (row->kind == OPTION_IGNORED)
    import_ignore (job->import, "%s", o->written);
  else if (row->key)
    launch_words_add_renamed (to, name_there (row, o->name), o);
  else
    import_note_word (job->import, o->name, NULL);
}

/* Of several names of one option, that of which a file has a value holds. */
static void
translate_off (const LaunchJob *job, const char *name, LaunchWords *to)
{
  const OptionRow *row = option_find (job->table, name);
  import_note_word (job->import, name, NULL);
  if (row && row->key && !launch_words_find (to, name_there (row, name)))
    launch_words_add_value (to, name_there (row, name), "false");
}

void
option_translate (const LaunchJob *job, LaunchWords *to)
{
  const LaunchWords *w = job->words;
  GHashTableIter iter;
  gpointer name;
  for (guint i = 0; i < w->options->len; i++) {
    LaunchOption *o = w->options->pdata[i];
    if (launch_words_find (w, o->name) == o)
      translate (job, o, to);
  }
  g_hash_table_iter_init (&iter, w->off);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    translate_off (job, name, to);
}
