#include "data/launch/option_table.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/shell/shell.h"

#define MAX_NOTED 5000

/* --- rows ------------------------------------------------------------------------------------------ */

/* Whether two letters of names are the same, the first of a row. */
static bool
is_same (char a, char b)
{
  return (a == b && a != ' ') || (a == '-' && b == '_') || (a == '_' && b == '-');
}

/* A pattern ends at a blank, too. */
static bool
fits (const char *pattern, const char *name)
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

const OptionRow *
option_find (const OptionTable *table, const char *name)
{
  static const OptionRow ignored = OPTION_IGNORED_ROW ("");
  for (guint i = 0; i < table->n; i++)
    if (fits (table->rows[i].option, name))
      return &table->rows[i];
  for (const char *option = table->ignored; option && *option; option += strspn (option, " ")) {
    if (fits (option, name))
      return &ignored;
    option += strcspn (option, " ");
  }
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
option_is_on (const LaunchJob *job, const char *name)
{
  const char *text = option_text (job, name);
  return launch_words_find (job->words, name)
      && !(text && (g_ascii_strcasecmp (text, "false") == 0 || g_ascii_strcasecmp (text, "none") == 0));
}

bool
option_is_off (const LaunchJob *job, const char *name)
{
  return g_hash_table_contains (job->words->off, name);
}

void
option_set_model (LaunchJob *job, const char *key, const char *value)
{
  import_set_model (job->import, key, value, key);
}

/* Words by which files leave a number open; lists in Python, which have rules of their own. */
static bool
is_open_number (const char *text)
{
  static const char *const words[] = { "", "null", "none", "~", "auto", "gpu", "-1", "false", NULL };
  g_autofree char *small = g_ascii_strdown (text, -1);
  return g_strv_contains (words, small) || strchr (text, '[');
}

guint64
option_number (const LaunchJob *job, const char *name)
{
  const char *text = option_text (job, name);
  guint64 value = 0;
  if (!text || g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT32, &value, NULL))
    return value;
  g_autofree char *complaint
      = g_strdup_printf ("%s %s: expected a whole number; taken as not given", name, text);
  GPtrArray *said = job->import->unknown;
  if (!is_open_number (text) && !g_ptr_array_find_with_equal_func (said, complaint, g_str_equal, NULL))
    import_unknown (job->import, "%s", complaint);
  return 0;
}

void
option_default (LaunchJob *job, const char *key, const char *value)
{
  if (!import_has_strategy (job->import, key) && !g_hash_table_contains (job->open, key))
    import_set_strategy (job->import, key, value, key);
}

void
option_forget (LaunchJob *job, const char *key)
{
  if (!import_is_given (job->import, key))
    g_hash_table_remove (job->import->strategy_said, key);
}

/* --- each by itself -------------------------------------------------------------------------------- */

static void
tell_hole (LaunchJob *job, const char *word)
{
  if (!ls_shell_has_hole (word))
    return;
  g_autofree char *names = ls_shell_hole_names (word);
  import_unknown (job->import, "what %s stands for: the script does not say", names);
}

/* Words with holes behind an option that takes so many. */
static void
tell_holes (LaunchJob *job, const LaunchOption *o, guint n_values)
{
  for (guint i = n_values; i < o->values->len; i++)
    tell_hole (job, o->values->pdata[i]);
}

/* Behind an option that does not matter: what is to be filled in by hand, "<path to data>", is another value
 * of it; a variable may be more options. */
static void
tell_holes_that_matter (LaunchJob *job, const LaunchOption *o)
{
  for (guint i = 1; i < o->values->len; i++)
    if (!g_str_has_prefix (o->values->pdata[i], "\001<"))
      tell_hole (job, o->values->pdata[i]);
}

/* A value that the script leaves open, of a key or, NULL, of none alone; false: it does not. */
static bool
is_open (LaunchJob *job, const LaunchOption *o, const char *key)
{
  if (o->values->len == 0 || !ls_shell_has_hole (o->values->pdata[0]))
    return false;
  g_autofree char *names = ls_shell_hole_names (o->values->pdata[0]);
  static const char format[] = "%s: its value is %s, which is not said here";
  if (key)
    import_open (job->import, key, format, o->written, names);
  else
    import_unknown (job->import, format, o->written, names);
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
      = option_is_on (job, other) && !(text && (g_str_equal (text, "0") || g_str_equal (text, "1")));
  return is_there == (other == row->with);
}

static void
set_key (LaunchJob *job, const OptionRow *row, const char *value, const char *written)
{
  if (row->kind == OPTION_MODEL)
    import_set_model (job->import, row->key, value, written);
  else
    import_set_strategy (job->import, row->key, value, written);
}

/* As our files spell it, newly allocated; NULL: it is none of the words. */
static char *
ours_of (const OptionRow *row, const char *theirs)
{
  char *end = NULL;
  double count = row->is_count ? g_ascii_strtod (theirs, &end) : 0;
  if (end && *theirs && !*end && count >= 0 && count < 1e18)
    return g_strdup_printf ("%.0f", floor (MAX (ls_field_find (ls_strategy_fields, row->key)->min, count)));
  for (const OptionWord *word = row->words; word && word->theirs; word++)
    if (g_ascii_strcasecmp (word->theirs, theirs) == 0)
      return g_strdup (word->ours);
  return row->words ? NULL : g_strdup (theirs);
}

static void
set_text (LaunchJob *job, const LaunchOption *o, const OptionRow *row, const char *theirs)
{
  g_autofree char *ours = ours_of (row, theirs);
  if (row->none && (g_str_equal (theirs, row->none) || g_str_equal (theirs, "0")))
    return;
  if (ours)
    set_key (job, row, ours, o->written);
  else
    import_unknown (job->import, "%s %s", o->written, theirs);
}

static bool
values_differ (const LaunchOption *o)
{
  for (guint i = 1; i < o->values->len; i++)
    if (!g_str_equal (o->values->pdata[i], o->values->pdata[0]))
      return true;
  return false;
}

static void
set_value (LaunchJob *job, const LaunchOption *o, const OptionRow *row)
{
  bool is_given = import_is_given (job->import, row->key);
  tell_holes (job, o, row->on ? 0 : 1);
  if (!is_heeded (job, row))
    return;
  if (row->on) {
    if (option_is_on (job, o->name))
      set_key (job, row, row->on, o->written);
  } else if (is_open (job, o, row->key)) {
    if (!is_given)
      g_hash_table_add (job->open, (gpointer) row->key);
  } else if (o->values->len > 0) {
    set_text (job, o, row, o->values->pdata[0]);
    if (values_differ (o))
      import_unknown (job->import, "%s: %u values where one is expected; the first is taken", o->written,
                      o->values->len);
  } else if (!is_given)
    import_conflict (job->import, "%s: a value is missing", o->written);
}

void
option_set_defaults (LaunchJob *job, OptionKind kind)
{
  for (guint i = 0; i < job->table->n; i++) {
    const OptionRow *row = &job->table->rows[i];
    if (!row->otherwise || row->kind != kind || g_hash_table_contains (job->open, row->key))
      continue;
    bool is_set = kind == OPTION_MODEL ? import_has_model (job->import, row->key)
                                       : import_has_strategy (job->import, row->key);
    if (!is_set && is_heeded (job, row))
      set_key (job, row, row->otherwise, row->option);
  }
}

static void
tell_unknown (LaunchJob *job, const LaunchOption *o)
{
  const char *value = o->values->len > 0 ? o->values->pdata[0] : "";
  bool is_shown = *value && !ls_shell_has_hole (value);
  import_unknown (job->import, "%s%s%s", o->written, is_shown ? " " : "", is_shown ? value : "");
  tell_holes (job, o, 0);
}

/* Of several the first is told. */
static void
tell_packed (LaunchJob *job, const LaunchOption *o, const OptionRow *row)
{
  const char *text = option_text (job, o->name);
  bool is_none = !option_is_on (job, o->name) || (text && (strcmp (text, "0") == 0 || *text == '-'));
  bool packs = row->on ? g_strcmp0 (text, row->on) == 0 : !is_none;
  tell_holes (job, o, 0);
  if (packs && !import_is_open (job->import, "lengths"))
    import_open (job->import, "lengths",
                 "%s: attention may be inside documents, whose lengths are not in the file: taken to be over "
                 "whole sequences (lengths)",
                 o->written);
}

static void
read_option (LaunchJob *job, const LaunchOption *o)
{
  const OptionRow *row = option_find (job->table, o->name);
  if (!row)
    tell_unknown (job, o);
  else if (row->kind == OPTION_IGNORED) {
    import_ignore (job->import, "%s", o->written);
    tell_holes_that_matter (job, o);
  } else if (row->kind == OPTION_PACKS)
    tell_packed (job, o, row);
  else if (row->kind != OPTION_RULE)
    set_value (job, o, row);
  else if (!is_open (job, o, NULL))
    tell_holes (job, o, 0);
}

/* --- releases ------------------------------------------------------------------------------------- */

/* Of the options that are given: from which release on, and up to which. */
typedef struct {
  guint first, last;
  const char *first_word, *last_word; /* who says so; NULL: none */
} ReleaseRange;

static const OptionSpan *
find_span (const OptionTable *table, const char *name)
{
  for (const OptionSpan *span = table->spans; span->option; span++)
    if (fits (span->option, name))
      return span;
  return NULL;
}

static ReleaseRange
range_of (const LaunchJob *job, guint n_releases)
{
  ReleaseRange range = { 0, n_releases - 1, NULL, NULL };
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o = job->words->options->pdata[i];
    const OptionSpan *span = find_span (job->table, o->name);
    if (span && span->first > range.first) {
      range.first = span->first;
      range.first_word = o->written;
    }
    if (span && span->last < range.last) {
      range.last = span->last;
      range.last_word = o->written;
    }
  }
  return range;
}

/* The last up to that one, and not before `first`, which has a profile; else the first behind it. */
static const OptionRelease *
find_profile (const OptionTable *table, guint first, guint last)
{
  const OptionRelease *r = &table->releases[last];
  for (guint i = last + 1; i-- > first;)
    if (table->releases[i].software)
      return &table->releases[i];
  while (r->name && !r->software)
    r++;
  return r;
}

/* "of core 0.9 (--moe-token-dispatcher-type) to core 0.15" */
static void
tell_range (LaunchJob *job, const ReleaseRange *range, const OptionRelease *taken)
{
  const OptionRelease *of = job->table->releases;
  LsImport *import = job->import;
  if (range->first > range->last) {
    import_infer (import, "software %s: no release of %s has both %s (%s on) and %s (up to %s)",
                  taken->software, import->program, range->first_word, of[range->first].name,
                  range->last_word, of[range->last].name);
    return;
  }
  GString *said = g_string_new (NULL);
  g_string_append_printf (said, "its options are those of %s", of[range->first].name);
  if (range->first_word)
    g_string_append_printf (said, " (%s)", range->first_word);
  if (range->last > range->first)
    g_string_append_printf (said, " to %s", of[range->last].name);
  if (range->last_word && g_strcmp0 (range->last_word, range->first_word) != 0)
    g_string_append_printf (said, " (%s)", range->last_word);
  import_infer (import, "software %s: %s%s%s", taken->software, said->str,
                taken == &of[range->last] ? "" : "; the nearest that is known is ",
                taken == &of[range->last] ? "" : taken->name);
  g_string_free (said, TRUE);
}

static void
release_by_spans (LaunchJob *job)
{
  guint n = 0;
  while (job->table->releases[n].name)
    n++;
  ReleaseRange range = range_of (job, n);
  const OptionRelease *taken = find_profile (job->table, MIN (range.first, range.last), range.last);
  import_set_software (job->import, taken->software);
  tell_range (job, &range, taken);
}

void
option_release (LaunchJob *job, const char *today)
{
  if (job->table->releases) {
    release_by_spans (job);
    return;
  }
  const char *until = NULL, *word = NULL;
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o = job->words->options->pdata[i];
    const OptionRow *row = option_find (job->table, o->name);
    if (row && row->until && (!until || strcmp (row->until, until) < 0)) {
      until = row->until;
      word = o->written;
    }
  }
  import_set_software (job->import, until ? until : today);
  if (until)
    import_infer (job->import, "software %s: %s is an option of its time", until, word);
  else
    import_infer (job->import, "software %s: no option says an earlier release", today);
}

static void
note_option (LsImport *import, const LaunchOption *o)
{
  if (import->options->len >= MAX_NOTED)
    return;
  GString *value = o->values->len > 0 ? g_string_new (NULL) : NULL;
  for (guint i = 0; i < o->values->len; i++)
    if (!ls_shell_has_hole (o->values->pdata[i]))
      g_string_append_printf (value, "%s%s", value->len > 0 ? " " : "", (const char *) o->values->pdata[i]);
  const LsImportOption option = { g_strdup (o->written), value ? g_string_free (value, FALSE) : NULL };
  g_array_append_val (import->options, option);
}

void
option_read_all (LaunchJob *job)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_direct_hash, g_direct_equal);
  job->open = g_hash_table_new (g_str_hash, g_str_equal);
  job->import->table = job->table;
  for (guint i = 0; i < job->words->options->len; i++) {
    LaunchOption *o = launch_words_find (job->words, ((LaunchOption *) job->words->options->pdata[i])->name);
    if (!o || !g_hash_table_add (seen, o))
      continue;
    note_option (job->import, o);
    read_option (job, o);
  }
  for (guint i = 0; i < job->words->others->len; i++)
    tell_hole (job, job->words->others->pdata[i]);
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
  const char *value = o->values->len > 0 ? o->values->pdata[0] : "";
  if (!row)
    import_unknown (job->import, "%s%s%s", o->written, *value ? " " : "", value);
  else if (row->kind == OPTION_IGNORED)
    import_ignore (job->import, "%s", o->written);
  else if (row->key)
    launch_words_add_renamed (to, name_there (row, o->name), o);
}

/* Of several names of one option, that of which a file has a value holds. */
static void
translate_off (const LaunchJob *job, const char *name, LaunchWords *to)
{
  const OptionRow *row = option_find (job->table, name);
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
