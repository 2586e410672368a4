/* The release of a program that has all options of a job. */
#include <string.h>

#include "data/launch/option_table.h"

/* Of the options that are given: from which release on, and up to which. */
typedef struct {
  guint first, last;
  const char *first_word, *last_word; /* who says so; NULL: none */
} ReleaseRange;

static const OptionSpan *
find_span (const OptionTable *table, const char *name)
{
  for (const OptionSpan *span = table->spans; span->option; span++)
    if (option_fits (span->option, name))
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

/* Of releases by number: "core 0.15 of 2025". */
static char *
dated (const OptionRelease *r)
{
  g_autofree char *year = g_strdup_printf ("%u", r->year);
  return strstr (r->name, year) ? g_strdup (r->name) : g_strdup_printf ("%s of %s", r->name, year);
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
  g_autofree char *first = dated (&of[range->first]), *last = dated (&of[range->last]);
  GString *said = g_string_new (NULL);
  import->first_year = of[range->first].year;
  import->last_year = of[range->last].year;
  g_string_append_printf (said, "its options are those of %s", first);
  if (range->first_word)
    g_string_append_printf (said, " (%s)", range->first_word);
  if (range->last > range->first)
    g_string_append_printf (said, " to %s", last);
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
