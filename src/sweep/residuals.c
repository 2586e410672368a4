#include "sweep/residuals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "sweep/family.h"

/* ---- residuals ---- */

static char *
source_of (const char *family)
{
  return g_strndup (family, strcspn (family, "-"));
}

static bool
is_refused (const LsScoreRow *row)
{
  return isnan (row->predicted_s);
}

static LsSoftware
software_of (const LsScoreRow *row)
{
  return ls_family_software (row->family, row->software);
}

static bool
is_same_group (const LsScoreRow *a, const LsScoreRow *b)
{
  return !is_refused (a) && !is_refused (b) && strcmp (a->family, b->family) == 0
         && strcmp (a->architecture, b->architecture) == 0 && software_of (a) == software_of (b);
}

static bool
is_first_of_group (const LsScoreRow *rows, guint i)
{
  if (is_refused (&rows[i]))
    return false;
  for (guint k = 0; k < i; k++)
    if (is_same_group (&rows[k], &rows[i]))
      return false;
  return true;
}

static void
add_group (LsResiduals *r, const LsScoreRow *rows, guint n_rows, const LsScoreRow *first)
{
  g_autofree double *residuals = g_new (double, n_rows);
  double lowest = first->mfu;
  guint n = 0;
  for (guint i = 0; i < n_rows; i++)
    if (is_same_group (&rows[i], first)) {
      residuals[n++] = ls_residual (rows[i].measured_s, rows[i].predicted_s, rows[i].mfu);
      lowest = MIN (lowest, rows[i].mfu);
    }
  g_autofree char *source = source_of (first->family);
  ls_residuals_add (r, source, first->family, first->architecture, software_of (first), lowest, residuals, n);
}

LsResiduals *
ls_residuals_of_rows (const LsScoreRow *rows, guint n_rows)
{
  LsResiduals *r = ls_residuals_new ();
  for (guint i = 0; i < n_rows; i++)
    if (is_first_of_group (rows, i))
      add_group (r, rows, n_rows, &rows[i]);
  return r;
}

guint64
ls_predictions_digest (const LsScoreRow *rows, guint n_rows)
{
  LsDigest d;
  ls_digest_init (&d);
  for (guint i = 0; i < n_rows; i++) {
    guint64 bits;
    memcpy (&bits, &rows[i].predicted_s, sizeof bits);
    ls_digest_u64 (&d, is_refused (&rows[i]) ? 0 : bits);
  }
  return ls_digest_get (&d);
}

/* ---- coverage ---- */

/* A row with an interval. */
typedef struct {
  double width, weight;
  bool is_covered;
} Tried;

struct LsCoverageRun {
  GPtrArray *names; /* char *: of the sources, owned */
  GArray *lines;    /* LsCoverageLine, of each       */
  LsCoverage result;
};

void
ls_coverage_run_free (LsCoverageRun *run)
{
  if (!run)
    return;
  g_ptr_array_unref (run->names);
  g_array_unref (run->lines);
  g_free (run);
}

static int
by_width (const void *a, const void *b)
{
  double x = ((const Tried *) a)->width, y = ((const Tried *) b)->width;
  return (x > y) - (x < y);
}

/* Share that is covered and median width, by weight; sorts. */
static void
sum_up (GArray *tried, LsCoverageLine *line)
{
  Tried *t = (Tried *) (gpointer) tried->data;
  double all = 0, covered = 0, below = 0;
  for (guint i = 0; i < tried->len; i++) {
    all += t[i].weight;
    covered += t[i].is_covered ? t[i].weight : 0;
  }
  line->n = tried->len;
  line->covered = line->width = NAN;
  if (tried->len == 0)
    return;
  line->covered = covered / all;
  qsort (t, tried->len, sizeof *t, by_width);
  for (guint i = 0; i < tried->len && below < all / 2; below += t[i++].weight)
    line->width = t[i].width;
}

/* The rows of one source by the others; appends those with an interval to `each` and `rows`. */
static LsCoverageLine
try_source (const LsResiduals *r, const char *source, const LsScoreRow *rows, guint n_rows, GArray *each, GArray *all)
{
  LsCoverageLine line = { .source = source };
  g_autoptr (GArray) tried = g_array_new (FALSE, FALSE, sizeof (Tried));
  for (guint i = 0; i < n_rows; i++) {
    g_autofree char *own = source_of (rows[i].family);
    if (is_refused (&rows[i]) || strcmp (own, source) != 0)
      continue;
    const LsIntervalJob job = { rows[i].architecture, rows[i].software, rows[i].mfu };
    double over = rows[i].measured_s / rows[i].predicted_s;
    LsInterval interval;
    ls_interval_find (r, source, &job, &interval);
    Tried t = { interval.high - interval.low, 1, interval.low <= over && over <= interval.high };
    if (interval.none)
      line.n_unlike++;
    else
      g_array_append_val (tried, t);
    ls_interval_clear (&interval);
  }
  sum_up (tried, &line);
  g_array_append_vals (all, tried->data, tried->len);
  for (guint i = 0; i < tried->len; i++)
    g_array_index (tried, Tried, i).weight = 1.0 / tried->len;
  g_array_append_vals (each, tried->data, tried->len);
  return line;
}

static void
list_sources (LsCoverageRun *run, const LsResiduals *r)
{
  for (guint i = 0; i < r->groups->len; i++) {
    const char *source = g_array_index (r->groups, LsResidualGroup, i).source;
    if (!g_ptr_array_find_with_equal_func (run->names, source, g_str_equal, NULL))
      g_ptr_array_add (run->names, g_strdup (source));
  }
}

LsCoverageRun *
ls_coverage_run_new (const LsResiduals *r, const LsScoreRow *rows, guint n_rows)
{
  LsCoverageRun *run = g_new0 (LsCoverageRun, 1);
  run->names = g_ptr_array_new_with_free_func (g_free);
  run->lines = g_array_new (FALSE, TRUE, sizeof (LsCoverageLine));
  list_sources (run, r);
  g_autoptr (GArray) each = g_array_new (FALSE, FALSE, sizeof (Tried));
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Tried));
  LsCoverageLine once = { .source = "each source once" }, every = { .source = "each row once" };
  for (guint k = 0; k < run->names->len; k++) {
    LsCoverageLine line = try_source (r, run->names->pdata[k], rows, n_rows, each, all);
    once.n_unlike += line.n_unlike;
    g_array_append_val (run->lines, line);
  }
  every.n_unlike = once.n_unlike;
  sum_up (each, &once);
  sum_up (all, &every);
  run->result = (LsCoverage) {
    .level = LS_INTERVAL_LEVEL, .n_sources = run->lines->len,
    .sources = (const LsCoverageLine *) (gpointer) run->lines->data, .each = once, .rows = every,
  };
  return run;
}

const LsCoverage *
ls_coverage_run_result (const LsCoverageRun *run)
{
  return &run->result;
}
