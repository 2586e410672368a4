#include <math.h>
#include <string.h>

#include "base/list.h"
#include "data/jobs/job_files.h"
#include "data/launch/option_table.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/shell/shell.h"
#include "data/text/field.h"

#define MAX_NOTED      5000
#define MAX_TOLD_VALUE 200 /* bytes of a value that is told: a template of a chat has thousands */

/* --- rows ------------------------------------------------------------------------------------------ */

/* Whether two letters of names are the same, the first of a row. */
static bool
is_same (char a, char b)
{
  return (a == b && a != ' ') || (a == '-' && b == '_') || (a == '_' && b == '-');
}

bool
option_fits (const char *pattern, const char *name)
{
  const char *star = NULL, *from = NULL;
  while (*name) {
    if (*pattern == '*') {
      star = pattern++;
      from = name;
    } else if (is_same (*pattern, *name)) {
      pattern++;
      name++;
    } else if (star) {
      pattern = star + 1;
      name = ++from;
    } else
      return false;
  }
  pattern += strspn (pattern, "*");
  return *pattern == '\0' || *pattern == ' ';
}

bool
option_is_listed (const char *names, const char *name)
{
  for (; *names; names += strspn (names, " ")) {
    if (option_fits (names, name))
      return true;
    names += strcspn (names, " ");
  }
  return false;
}

const OptionRow *
option_find (const OptionTable *table, const char *name)
{
  for (guint i = 0; i < table->n; i++)
    if (option_fits (table->rows[i].option, name))
      return &table->rows[i];
  return NULL;
}

/* --- what rules ask -------------------------------------------------------------------------------- */

const char *
option_text (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = launch_words_find (job->words, name);
  return o && o->values->len > 0 && !ls_shell_has_hole (o->values->pdata[0]) ? o->values->pdata[0] : NULL;
}

bool
option_is_there (const LaunchJob *job, const char *name)
{
  const char *text = option_text (job, name);
  return launch_words_find (job->words, name)
      && !(text
           && (!*text || g_ascii_strcasecmp (text, "false") == 0 || g_ascii_strcasecmp (text, "none") == 0));
}

bool
option_is_none (const LaunchJob *job, const char *name)
{
  return g_hash_table_contains (job->words->off, name);
}

/* What is malformed is told once, however many rules ask for it. */
static void
tell_malformed (const LaunchJob *job, const char *name, const char *text, const char *expected)
{
  g_autofree char *complaint
      = g_strdup_printf ("%s%s%s: expected %s; taken as not given", name, *text ? " " : "", text, expected);
  import_unknown_once (job->import, complaint);
}

OptionSwitch
option_switch (const LaunchJob *job, const char *name)
{
  static const char *const on[] = { "true", "yes", "on", "y", "t", NULL }, *const off[] = { "",     "false",
                                                                                            "no",   "off",
                                                                                            "n",    "f",
                                                                                            "none", "null",
                                                                                            "~",    NULL };
  const char *text = option_text (job, name);
  if (!text && option_is_there (job, name))
    return OPTION_ON;
  if (!text)
    return option_is_none (job, name) ? OPTION_OFF : OPTION_NEITHER;
  g_autofree char *small = g_ascii_strdown (text, -1);
  char *end;
  double number = g_ascii_strtod (small, &end);
  if (g_strv_contains (on, small) || (end > small && !*end && number != 0))
    return OPTION_ON;
  if (g_strv_contains (off, small) || (end > small && !*end))
    return OPTION_OFF;
  tell_malformed (job, name, text, "true or false");
  return OPTION_NEITHER;
}

/* Some words leave a number open; lists in Python have rules of their own. */
guint64
option_number (const LaunchJob *job, const char *name)
{
  const char *text = option_text (job, name);
  g_autofree char *small = g_ascii_strdown (text ? text : "", -1);
  guint64 value = 0;
  if (!text || g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT32, &value, NULL))
    return value;
  if (*text && !ls_is_one_of (small, "null none ~ auto gpu -1 false") && !strchr (text, '['))
    tell_malformed (job, name, text, "a whole number");
  return 0;
}

/* --- each by itself -------------------------------------------------------------------------------- */

void
option_tell_hole (const LaunchJob *job, const char *word)
{
  if (!ls_shell_has_hole (word))
    return;
  g_autofree char *names = ls_shell_hole_names (word);
  job->import->may_have_more = true;
  import_unknown (job->import, "what %s stands for: %s", names,
                  strstr (word, LS_SHELL_UNREAD) ? "it is not read" : "the script does not say");
}

/* Words with holes behind an option that takes so many. */
static void
tell_holes (const LaunchJob *job, const LaunchOption *o, guint n_values)
{
  for (guint i = n_values; i < o->values->len; i++)
    option_tell_hole (job, o->values->pdata[i]);
}

/* --- what no row fits ------------------------------------------------------------------------------ */

/* "tokens.sequence_length.train": a mapping where an option has a value, whose members a row with '*' would
 * ignore. Newly allocated: the name of the option; NULL: it is none. */
static char *
option_above (const OptionTable *table, const char *name, const OptionRow *row)
{
  bool is_ignored = row && row->kind == OPTION_IGNORED;
  for (const char *dot = is_ignored ? strchr (name, '.') : NULL; dot; dot = strchr (dot + 1, '.')) {
    g_autofree char *above = g_strndup (name, (gsize) (dot - name));
    const OptionRow *other = option_find (table, above);
    bool is_one = other && other->kind != OPTION_IGNORED && !strchr (other->option, '*');
    for (guint i = 0; is_one && i < table->n; i++) { /* unless it has members, "fsdp_config.offload_params" */
      const char *option = table->rows[i].option;
      gsize n = 0;
      while (above[n] && is_same (option[n], above[n]))
        n++;
      is_one = above[n] != '\0' || option[n] != '.';
    }
    if (is_one)
      return g_steal_pointer (&above);
  }
  return NULL;
}

/* Tells an option that no row fits, and a mapping where the table has an option with a value, of which it
 * would ignore the members; false: it is one of these. row: of option_find(). */
static bool
is_known (const LaunchJob *job, const LaunchOption *o, const OptionRow *row)
{
  g_autofree char *above = option_above (job->table, o->name, row);
  if (above)
    tell_malformed (job, above, "", "a value, not a mapping");
  if (above || row)
    return !above;
  const char *value = o->values->len > 0 ? o->values->pdata[0] : "";
  bool is_shown = *value && !ls_shell_has_hole (value), is_long = is_shown && strlen (value) > MAX_TOLD_VALUE;
  gsize n = is_long ? MAX_TOLD_VALUE : strlen (value);
  while (is_long && n > 0 && ((guchar) value[n] & 0xC0) == 0x80)
    n--; /* within a character */
  import_unknown (job->import, "%s%s%.*s%s", o->written, is_shown ? " " : "", is_shown ? (int) n : 0, value,
                  is_long ? "..." : "");
  tell_holes (job, o, 0);
  return false;
}

/* --- each by its row ------------------------------------------------------------------------------- */

/* A value that the script leaves open, of a key or, NULL, of none alone; false: it does not. */
static bool
is_open (LaunchJob *job, const LaunchOption *o, const char *key)
{
  if (o->values->len == 0 || !ls_shell_has_hole (o->values->pdata[0]))
    return false;
  g_autofree char *names = ls_shell_hole_names (o->values->pdata[0]);
  static const char format[] = "%s: its value is %s, which is not %s";
  const char *why = strstr (o->values->pdata[0], LS_SHELL_UNREAD) ? "read" : "said here";
  if (key)
    import_open (job->import, key, format, o->written, names, why);
  else
    import_unknown (job->import, format, o->written, names, why);
  return true;
}

/* Whether that what it goes with is there. */
static bool
is_heeded (const LaunchJob *job, const OptionRow *row)
{
  if (!row->with)
    return true;
  const char *other = row->with + (*row->with == '!'), *text = option_text (job, other);
  bool is_there
      = option_is_there (job, other) && !(text && (g_str_equal (text, "0") || g_str_equal (text, "1")));
  return is_there == (other == row->with);
}

/* Keys of the model, or of the strategy. */
static const LsField *
fields_of (OptionKind kind)
{
  return kind == OPTION_MODEL ? ls_model_fields : ls_strategy_fields;
}

/* As our files spell it: a count, or one of the words. */
static void
set_text (LaunchJob *job, const LaunchOption *o, const OptionRow *row, const char *theirs)
{
  char *end = NULL;
  double count = row->is_count ? g_ascii_strtod (theirs, &end) : 0;
  bool is_count = end && *theirs && !*end && count >= 0 && count < 1e18;
  const OptionWord *word = is_count ? NULL : row->words;
  while (word && word->theirs && g_ascii_strcasecmp (word->theirs, theirs) != 0)
    word++;
  g_autofree char *ours = is_count
      ? g_strdup_printf ("%.0f", floor (MAX (ls_field_find (ls_strategy_fields, row->key)->min, count)))
      : g_strdup (word             ? word->ours
                      : row->words ? NULL
                                   : theirs);
  if (row->none && (g_str_equal (theirs, row->none) || g_str_equal (theirs, "0")))
    return;
  if (!row->words && ls_is_one_of (theirs, "None none null")) /* of a program that reads arguments as YAML */
    return;
  if (ours)
    import_set (job->import, fields_of (row->kind), row->key, ours, o->written);
  else
    import_unknown (job->import, "%s %s", o->written, theirs);
}

/* How many values it has, if they differ; else 0. Words that are not known may be none. */
static guint
count_values (const LaunchOption *o)
{
  guint n = 0;
  bool differ = false;
  for (guint i = 0; i < o->values->len; i++) {
    const char *value = o->values->pdata[i];
    bool is_known = !ls_shell_has_hole (value);
    n += is_known;
    differ = differ || (is_known && !g_str_equal (value, o->values->pdata[0]));
  }
  return differ ? n : 0;
}

static void
set_value (LaunchJob *job, const LaunchOption *o, const OptionRow *row)
{
  bool is_given = import_is_given (job->import, row->key);
  tell_holes (job, o, row->on ? 0 : 1);
  if (!is_heeded (job, row))
    return;
  if (row->on) {
    if (option_switch (job, o->name) == OPTION_ON)
      import_set (job->import, fields_of (row->kind), row->key, row->on, o->written);
  } else if (is_open (job, o, row->key)) {
    if (!is_given)
      g_hash_table_add (job->open, (gpointer) row->key);
  } else if (o->values->len > 0) {
    set_text (job, o, row, o->values->pdata[0]);
    const guint n = count_values (o);
    if (n > 0)
      import_unknown (job->import, "%s: %u values where one is expected; the first is taken", o->written, n);
  } else if (!is_given)
    import_conflict (job->import, "%s: a value is missing", o->written);
}

void
option_set_defaults (LaunchJob *job, OptionKind kind)
{
  for (guint i = 0; i < job->table->n && !(job->is_part && kind == OPTION_MODEL); i++) {
    const OptionRow *row = &job->table->rows[i];
    if (!row->otherwise || row->kind != kind || g_hash_table_contains (job->open, row->key))
      continue;
    if (import_has (job->import, fields_of (kind), row->key) || !is_heeded (job, row))
      continue;
    import_set (job->import, fields_of (row->kind), row->key, row->otherwise, row->option);
    if (kind == OPTION_MODEL && !launch_words_has_any (job->words, row->option))
      g_hash_table_add (job->import->model_by_rule, (gpointer) row->key);
  }
}

/* Of several the first is told. */
static void
tell_packed (LaunchJob *job, const LaunchOption *o, const OptionRow *row)
{
  const char *text = option_text (job, o->name);
  bool is_negative = text && *text == '-';
  bool packs
      = row->on ? g_strcmp0 (text, row->on) == 0 : !is_negative && option_switch (job, o->name) == OPTION_ON;
  tell_holes (job, o, 0);
  if (packs && !import_is_open (job->import, "lengths"))
    import_open (
        job->import, "lengths",
        "%s: attention may be inside documents, whose lengths are not in the file: assumed to be over "
        "whole sequences (lengths)",
        o->written);
}

/* What the row of an option decides of the strategy; NULL: nothing. */
static const char *
key_of (const OptionRow *row)
{
  return row && (row->kind == OPTION_STRATEGY || row->kind == OPTION_RULE) ? row->key : NULL;
}

static void
note_words (const LaunchJob *job)
{
  const LaunchWords *w = job->words;
  for (guint i = 0; i < w->options->len; i++) {
    const LaunchOption *o = w->options->pdata[i];
    if (o->is_default || launch_words_find (w, o->name) != o)
      continue;
    import_note_word (job->import, o->name, key_of (option_find (job->table, o->name)));
    import_note_word (job->import, o->written, NULL);
  }
  GHashTableIter iter;
  gpointer name, said;
  for (g_hash_table_iter_init (&iter, w->off); g_hash_table_iter_next (&iter, &name, &said);)
    if (said)
      import_note_word (job->import, name, key_of (option_find (job->table, name)));
}

static void
read_option (LaunchJob *job, const LaunchOption *o)
{
  const OptionRow *row = option_find (job->table, o->name);
  if (!is_known (job, o, row))
    return;
  if (row->kind == OPTION_IGNORED) {
    import_ignore (job->import, "%s", o->written);
    for (guint i = 1; i < o->values->len; i++) /* "<path to data>", of a user, is another value of it */
      if (!g_str_has_prefix (o->values->pdata[i], "\001<"))
        option_tell_hole (job, o->values->pdata[i]);
  } else if (row->kind == OPTION_PACKS)
    tell_packed (job, o, row);
  else if (row->kind != OPTION_RULE)
    set_value (job, o, row);
  else if (!(row->key && g_hash_table_contains (job->import->given, row->key)) && !is_open (job, o, NULL))
    tell_holes (job, o, 0);
}

/* Another value of an option that matters: its program takes the last. */
static void
tell_earlier (LaunchJob *job, const LaunchOption *o)
{
  const LaunchOption *last = launch_words_find (job->words, o->name);
  const OptionRow *row = option_find (job->table, o->name);
  const char *own = o->values->len > 0 ? o->values->pdata[0] : "",
             *other = last && last->values->len > 0 ? last->values->pdata[0] : "";
  if (last && last != o && !o->is_default && !last->is_default && strcmp (own, other) != 0 && row
      && row->kind != OPTION_IGNORED && !ls_shell_has_hole (own) && !ls_shell_has_hole (other))
    import_infer (job->import, "%s %s is not used: %s %s comes after it", o->written, own, last->written,
                  other);
}

void
option_read_all (LaunchJob *job)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_direct_hash, g_direct_equal);
  job->open = g_hash_table_new (g_str_hash, g_str_equal);
  job->import->made.table = job->table;
  note_words (job);
  for (guint i = 0; i < job->words->options->len; i++) {
    tell_earlier (job, job->words->options->pdata[i]);
    LaunchOption *o = launch_words_find (job->words, ((LaunchOption *) job->words->options->pdata[i])->name);
    if (!o || !g_hash_table_add (seen, o))
      continue;
    GString *value = g_string_new (NULL);
    for (guint k = 0; k < o->values->len; k++)
      if (!ls_shell_has_hole (o->values->pdata[k]))
        g_string_append_printf (value, "%s%s", value->len > 0 ? " " : "", (char *) o->values->pdata[k]);
    g_autofree char *own = g_string_free (value, o->values->len == 0);
    if (job->import->n_told[LS_REMARK_OPTION]++ < MAX_NOTED) {
      const LsRemark option = { g_strdup (o->written), g_steal_pointer (&own), NULL, LS_REMARK_OPTION };
      g_array_append_val (job->import->made.remarks, option);
    }
    read_option (job, o);
  }
  for (guint i = 0; i < job->words->others->len; i++)
    option_tell_hole (job, job->words->others->pdata[i]);
}

/* --- the value of a row ---------------------------------------------------------------------------- */

/* Whether a row of a key is not written: its option is no longer there, an earlier row of today says what it
 * would, or what it goes with is not as it should be. */
static bool
is_left_out (const OptionTable *table, const OptionRow *row, const LsModel *m, const LsStrategy *s)
{
  const char *other = row->with && *row->with == '!' ? row->with + 1 : row->with;
  const OptionRow *its = other ? option_find (table, other) : NULL;
  g_autofree char *value = its ? option_value (table, its, m, s) : NULL;
  for (const OptionRow *first = table->rows; row->key && first < row; first++)
    if (first->kind == row->kind && !first->until && first->key && strcmp (first->key, row->key) == 0
        && (!first->on || g_strcmp0 (first->on, row->on) == 0))
      return true;
  return row->until || (other && (value != NULL) != (other == row->with));
}

char *
option_value (const OptionTable *table, const OptionRow *row, const LsModel *m, const LsStrategy *s)
{
  g_autofree char *holds = row->only ? program_written (table->map, row->only, m, s) : NULL;
  bool is_key = row->kind == OPTION_MODEL || row->kind == OPTION_STRATEGY;
  if (row->only && (!holds || !*holds || strcmp (holds, "0") == 0))
    return NULL;
  if (row->write)
    return program_written (table->map, row->write, m, s);
  if (!is_key)
    return row->only ? g_strdup ("") : NULL;
  const void *target = row->kind == OPTION_MODEL ? (const void *) m : s;
  g_autofree char *ours = ls_field_text (ls_field_find (fields_of (row->kind), row->key), target, NULL);
  if (!ours || (row->none && strcmp (ours, "0") == 0) || is_left_out (table, row, m, s))
    return NULL;
  if (row->on)
    return g_strdup (strcmp (ours, row->on) == 0 ? "" : row->off);
  const OptionWord *word = row->words;
  while (word && word->theirs && strcmp (word->ours, ours) != 0)
    word++;
  return g_strdup (word ? word->theirs : row->words ? NULL : ours);
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

/* A truth, a number, a list, what stands between quotes, or else a text. */
static bool
is_bare (const char *value)
{
  char *end;
  g_ascii_strtod (value, &end);
  return *value == '[' || *value == '"' || *end == '\0' || ls_is_one_of (value, "true false");
}

static void
write_toml (const OptionRow *row, const char *value, GString *out, GString *section)
{
  const char *dot = strrchr (row->option, '.'), *key = dot ? dot + 1 : row->option,
             *quote = *value && !is_bare (value) ? "\"" : "";
  g_autofree char *its = g_strndup (row->option, dot ? (gsize) (dot - row->option) : 0);
  if (strcmp (its, section->str) != 0)
    g_string_append_printf (out, "%s[%s]\n", out->len > 0 ? "\n" : "", its);
  g_string_assign (section, its);
  g_string_append_printf (out, "%s = %s%s%s%s%s\n", key, quote, *value ? value : "true", quote,
                          row->remark ? " # " : "", row->remark ? row->remark : "");
}

static cJSON *
json_of (const char *value)
{
  if (!*value || ls_is_one_of (value, "true false"))
    return cJSON_CreateBool (strcmp (value, "false") != 0);
  return is_bare (value) ? cJSON_CreateNumber ((double) g_ascii_strtoull (value, NULL, 10))
                         : cJSON_CreateString (value);
}

void
option_write (const OptionTable *table, OptionSyntax syntax, const LsModel *m, const LsStrategy *s,
              GString *out)
{
  g_autoptr (GString) text = g_string_new (NULL), section = g_string_new (NULL);
  g_autoptr (cJSON) tree = cJSON_CreateObject ();
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
      yaml_config_set_node (tree, row->option, json_of (value));
  }
  if (syntax == OPTION_JSON) { /* with two blanks a level */
    g_autofree char *json = cJSON_Print (tree);
    g_string_assign (text, json);
    g_string_replace (text, ":\t", ": ", 0);
    g_string_replace (text, "\t", "  ", 0);
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
  if (!is_known (job, o, row))
    return;
  if (row->kind == OPTION_IGNORED)
    import_ignore (job->import, "%s", o->written);
  else if (row->key)
    launch_words_add_renamed (to, name_there (row, o->name), o);
  else
    import_note_word (job->import, o->name, NULL);
}

/* Of several names of one option, that of which a file has a value holds. */
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
  while (g_hash_table_iter_next (&iter, &name, NULL)) {
    const OptionRow *row = option_find (job->table, name);
    import_note_word (job->import, name, NULL);
    if (row && row->key && !launch_words_find (to, name_there (row, name)))
      launch_words_add_value (to, name_there (row, name), "false");
  }
}
