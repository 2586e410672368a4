#include "analysis/interval.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING 1e-9 /* of sums of weights, which are 1 in all */

/* ---- residuals ---- */

static void
group_clear (gpointer data)
{
  LsResidualGroup *g = data;
  g_free (g->source);
  g_free (g->family);
  g_free (g->architecture);
  g_clear_pointer (&g->residuals, g_array_unref);
}

LsResiduals *
ls_residuals_new (void)
{
  LsResiduals *r = g_new0 (LsResiduals, 1);
  r->groups = g_array_new (FALSE, TRUE, sizeof (LsResidualGroup));
  g_array_set_clear_func (r->groups, group_clear);
  return r;
}

void
ls_residuals_free (LsResiduals *r)
{
  if (!r)
    return;
  g_free (r->name);
  g_free (r->source);
  g_array_unref (r->groups);
  g_free (r);
}

const char *
ls_software_name (LsSoftware software)
{
  static const char *const names[LS_N_SOFTWARE] = { "megatron", "other", "xla" };
  return names[software];
}

const char *
ls_software_words (LsSoftware software)
{
  static const char *const words[LS_N_SOFTWARE] = { "Megatron-LM", "other software than Megatron-LM on GPUs", "XLA on TPUs" };
  return words[software];
}

double
ls_residual (double measured_s, double predicted_s, double mfu)
{
  return mfu * log (measured_s / predicted_s);
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

void
ls_residuals_add (LsResiduals *r, const char *source, const char *family, const char *architecture, LsSoftware software,
                  double lowest_mfu, double *residuals, guint n)
{
  g_assert (n > 0);
  qsort (residuals, n, sizeof *residuals, compare_doubles);
  LsResidualGroup g = {
    .source = g_strdup (source), .family = g_strdup (family), .architecture = g_strdup (architecture),
    .software = software, .n = n, .lowest_mfu = lowest_mfu, .residuals = g_array_new (FALSE, FALSE, sizeof (double)),
  };
  guint n_points = MIN (n, LS_RESIDUAL_POINTS);
  for (guint k = 0; k < n_points; k++) /* the middle one of each n-th part */
    g_array_append_val (g.residuals, residuals[(2 * (guint64) k + 1) * n / (2 * n_points)]);
  g_array_append_val (r->groups, g);
}

/* ---- what counts how much ---- */

typedef struct {
  double residual, weight;
} Point;

static bool
is_left_out (const LsResidualGroup *g, const char *without)
{
  return without && strcmp (g->source, without) == 0;
}

static bool
counts (const LsResidualGroup *g, const char *without, LsSoftware software)
{
  return g->software == (int) software && !is_left_out (g, without);
}

/* Groups that count, of each source that has any, by its name. */
static GHashTable *
count_groups (const LsResiduals *r, const char *without, LsSoftware software)
{
  GHashTable *n_groups = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    guint n = GPOINTER_TO_UINT (g_hash_table_lookup (n_groups, g->source));
    if (counts (g, without, software))
      g_hash_table_insert (n_groups, g->source, GUINT_TO_POINTER (n + 1));
  }
  return n_groups;
}

static int
compare_points (const void *a, const void *b)
{
  return compare_doubles (&((const Point *) a)->residual, &((const Point *) b)->residual);
}

/* All residuals that count, in order; weights sum to 1. */
static GArray *
weigh (const LsResiduals *r, const char *without, LsSoftware software, GHashTable *n_groups)
{
  GArray *points = g_array_new (FALSE, FALSE, sizeof (Point));
  double n_sources = g_hash_table_size (n_groups);
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    if (!counts (g, without, software))
      continue;
    double n_shares = n_sources * GPOINTER_TO_UINT (g_hash_table_lookup (n_groups, g->source)) * g->residuals->len;
    for (guint k = 0; k < g->residuals->len; k++) {
      Point p = { g_array_index (g->residuals, double, k), 1 / n_shares };
      g_array_append_val (points, p);
    }
  }
  qsort (points->data, points->len, sizeof (Point), compare_points);
  return points;
}

/* The shortest range with such a share of the weight; of equally short ones the lowest. */
static void
find_shortest (const GArray *points, double share, double *ret_low, double *ret_high)
{
  const Point *p = (const Point *) (gconstpointer) points->data;
  double held = 0, width = INFINITY;
  guint end = 0;
  for (guint i = 0; i < points->len; held -= p[i++].weight) {
    while (end < points->len && held < share - ROUNDING)
      held += p[end++].weight;
    if (held < share - ROUNDING)
      return;
    if (p[end - 1].residual - p[i].residual >= width)
      continue;
    width = p[end - 1].residual - p[i].residual;
    *ret_low = p[i].residual;
    *ret_high = p[end - 1].residual;
  }
}

/* ---- which jobs ---- */

/* Why the runs say nothing of the job; NULL: they do. */
static char *
why_unlike (const LsResiduals *r, const char *without, const LsIntervalJob *job)
{
  double lowest = INFINITY;
  bool has_architecture = false;
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    if (is_left_out (g, without))
      continue;
    lowest = MIN (lowest, g->lowest_mfu);
    has_architecture = has_architecture || strcmp (g->architecture, job->architecture) == 0;
  }
  if (!has_architecture)
    return g_strdup_printf ("none of the measured runs is on GPUs of architecture %s", job->architecture);
  if (job->mfu < lowest)
    return g_strdup_printf ("an MFU of %.1f %% is below that of all measured runs", 100 * job->mfu);
  return NULL;
}

void
ls_interval_find (const LsResiduals *r, const char *without_source, const LsIntervalJob *job, LsInterval *ret)
{
  g_autoptr (GHashTable) n_groups = count_groups (r, without_source, job->software);
  guint n = g_hash_table_size (n_groups);
  double share = n > 0 ? LS_INTERVAL_LEVEL * (n + 1) / n : INFINITY;
  *ret = (LsInterval) { .software = job->software, .n_sources = n };
  if (share > 1 + ROUNDING)
    ret->none = g_strdup_printf ("measured runs with %s, of %u source%s, are too few", ls_software_words (job->software), n,
                                 n == 1 ? "" : "s");
  else
    ret->none = why_unlike (r, without_source, job);
  if (ret->none)
    return;
  double low = 0, high = 0;
  g_autoptr (GArray) points = weigh (r, without_source, job->software, n_groups);
  find_shortest (points, share, &low, &high);
  ret->low = exp (low / job->mfu);
  ret->high = exp (high / job->mfu);
}

void
ls_interval_clear (LsInterval *interval)
{
  if (!interval)
    return;
  g_free (interval->none);
  *interval = (LsInterval) { 0 };
}
