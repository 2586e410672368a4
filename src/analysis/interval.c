#include "analysis/interval.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"

/* ---- in what a job may be unlike ---- */

const LsEnumName ls_aspect_names[LS_N_ASPECTS + 1] = {
  { "architecture", LS_ASPECT_ARCHITECTURE },
  { "format", LS_ASPECT_FORMAT },
  { "node", LS_ASPECT_NODE },
  { "backend", LS_ASPECT_BACKEND },
  { "schedule", LS_ASPECT_SCHEDULE },
  { "context", LS_ASPECT_CONTEXT },
  { "offload", LS_ASPECT_OFFLOAD },
  { "experts", LS_ASPECT_EXPERTS },
  { "transport", LS_ASPECT_TRANSPORT },
  { "gpus", LS_ASPECT_GPUS },
  { "fabric", LS_ASPECT_FABRIC },
  { "guessed", LS_ASPECT_GUESSED },
  { "tp", LS_ASPECT_TENSOR },
  { "params", LS_ASPECT_PARAMS },
};

bool
ls_aspect_is_beyond (LsAspect aspect, double a, double b)
{
  if (!(a > 0 && b > 0))
    return false;
  return aspect == LS_ASPECT_FABRIC ? a < b : a > b;
}

/* "is on GPUs of architecture volta": what none of the runs does. extreme: the furthest figure that they
 * have. Newly allocated. */
static char *
aspect_words (LsAspect aspect, const LsTraits *traits, double extreme)
{
  const char *word = aspect < LS_N_WORD_ASPECTS ? traits->word[aspect] : NULL;
  double figure = word ? 0 : traits->figure[aspect - LS_N_WORD_ASPECTS];
  switch (aspect) {
  case LS_ASPECT_ARCHITECTURE:
    return g_strdup_printf ("is on %s of architecture %s", traits->chips, word);
  case LS_ASPECT_FORMAT:
    return g_strdup_printf ("is in %s", word);
  case LS_ASPECT_NODE:
    return g_str_equal (word, "listed")
        ? g_strdup ("is on nodes whose vertices and links are listed")
        : g_strdup_printf ("is on nodes with %s only", g_str_equal (word, "pcie") ? "PCIe" : word);
  case LS_ASPECT_BACKEND:
    return g_strdup_printf ("has --dp-kind %s", word);
  case LS_ASPECT_SCHEDULE:
    return g_strdup_printf ("has --schedule %s", word);
  case LS_ASPECT_CONTEXT:
    return g_strdup ("has context parallelism");
  case LS_ASPECT_OFFLOAD:
    return g_strdup ("offloads");
  case LS_ASPECT_EXPERTS:
    return g_strdup ("has experts");
  case LS_ASPECT_TRANSPORT:
    return g_strdup (g_str_equal (word, "tcp") ? "is joined by TCP"
                                               : "has its data go through host memory between nodes");
  case LS_ASPECT_GPUS:
    return g_strdup_printf ("is on more than %.0f %s", extreme, traits->chips);
  case LS_ASPECT_FABRIC:
    return g_strdup_printf ("has a fabric of %.3g GB/s per %s (%.3g at least)", 1e-9 * figure, traits->chip,
                            1e-9 * extreme);
  case LS_ASPECT_TENSOR:
    return g_strdup_printf ("has --tp above %.0f", extreme);
  case LS_ASPECT_PARAMS:
    return g_strdup_printf ("has more than %.3g billion parameters", 1e-9 * extreme);
  default:
    return g_strdup_printf ("has %.0f %% of its kernel time from data sheets and guesses (%.0f %% at most)",
                            100 * figure, 100 * extreme);
  }
}

/* ---- what must be held of known values ---- */

typedef struct {
  double value, weight;
} Weighted;

#define ROUNDING 1e-9 /* of sums of weights, which are 1 in all, of counts and of distances */

/* c; above 1: n are too few. Of none: infinity. */
static double
conformal_share (guint n, double level)
{
  return n > 0 ? level * (n + 1) / n : INFINITY;
}

static bool
is_enough (guint n, double level)
{
  return conformal_share (n, level) <= 1 + ROUNDING;
}

guint
ls_conformal_least (double level)
{
  return (guint) ceil (level / (1 - level) - ROUNDING);
}

static void
weighted_sort (GArray *values)
{
  g_array_sort (values, ls_compare_doubles); /* by the first member */
}

/* The least that a share of the weight is not above; of no values 0. */
static double
weighted_quantile (const GArray *values, double share)
{
  const Weighted *v = (const Weighted *) (gconstpointer) values->data;
  double held = 0;
  guint i = 0;
  while (i < values->len && held < share - ROUNDING)
    held += v[i++].weight;
  return i > 0 ? v[i - 1].value : 0;
}

/* ---- residuals ---- */

static void
group_clear (gpointer data)
{
  LsResidualGroup *g = data;
  g_free (g->source);
  g_free (g->family);
  g_free (g->architecture);
  g_free (g->software);
  g_clear_pointer (&g->residuals, g_array_unref);
  if (g->traits)
    g_array_set_clear_func (g->traits, ls_clear_text); /* those that a file has made know nothing of it */
  g_clear_pointer (&g->traits, g_array_unref);
}

LsResiduals *
ls_residuals_new (void)
{
  LsResiduals *r = g_new0 (LsResiduals, 1);
  r->groups = ls_list_new (sizeof (LsResidualGroup), group_clear);
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

double
ls_residual (double measured_s, double predicted_s, double mfu)
{
  return sqrt (mfu) * log (measured_s / predicted_s);
}

void
ls_residuals_add (LsResiduals *r, const char *source, const char *family, const char *architecture,
                  const char *software, double lowest_mfu, double *residuals, guint n)
{
  g_assert (n > 0);
  qsort (residuals, n, sizeof *residuals, ls_compare_doubles);
  LsResidualGroup g = {
    .source = g_strdup (source),
    .family = g_strdup (family),
    .architecture = g_strdup (architecture),
    .software = g_strdup (software),
    .n = n,
    .lowest_mfu = lowest_mfu,
    .residuals = g_array_new (FALSE, FALSE, sizeof (double)),
  };
  guint n_points = MIN (n, LS_RESIDUAL_POINTS);
  for (guint k = 0; k < n_points; k++) /* the middle one of each n-th part */
    g_array_append_val (g.residuals, residuals[(2 * (guint64) k + 1) * n / (2 * n_points)]);
  g_array_append_val (r->groups, g);
}

static bool
has_word (const LsResidualGroup *g, LsAspect aspect, const char *word)
{
  if (aspect == LS_ASPECT_ARCHITECTURE)
    return g_strcmp0 (g->architecture, word) == 0;
  g_autofree char *text = g_strjoin (" ", ls_aspect_names[aspect].name, word, NULL);
  for (guint i = 0; g->traits && i < g->traits->len; i++)
    if (strcmp (g_array_index (g->traits, char *, i), text) == 0)
      return true;
  return false;
}

void
ls_residual_group_add_traits (LsResidualGroup *g, const LsTraits *traits)
{
  if (!g->traits)
    g->traits = ls_list_new (sizeof (char *), ls_clear_text);
  for (LsAspect a = LS_ASPECT_FORMAT; a < LS_N_WORD_ASPECTS; a++) {
    if (!traits->word[a] || has_word (g, a, traits->word[a]))
      continue;
    char *text = g_strjoin (" ", ls_aspect_names[a].name, traits->word[a], NULL);
    g_array_append_val (g->traits, text);
  }
  for (guint k = 0; k < LS_N_FIGURE_ASPECTS; k++)
    if (g->figures[k] <= 0 || ls_aspect_is_beyond (LS_N_WORD_ASPECTS + k, traits->figure[k], g->figures[k]))
      g->figures[k] = traits->figure[k];
}

/* ---- what counts how much ---- */

/* software: NULL: any. */
static bool
counts (const LsResidualGroup *g, const char *without, const char *software)
{
  return (!software || strcmp (g->software, software) == 0) && !(without && strcmp (g->source, without) == 0);
}

char *
ls_residual_source (const char *family)
{
  return g_strndup (family, strcspn (family, "-"));
}

/* Rows that count, of each source that has any, by its name. */
static GHashTable *
count_rows (const LsResiduals *r, const char *without, const char *software)
{
  GHashTable *n_rows = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    guint n = GPOINTER_TO_UINT (g_hash_table_lookup (n_rows, g->source));
    if (counts (g, without, software))
      g_hash_table_insert (n_rows, g->source, GUINT_TO_POINTER (n + g->n));
  }
  return n_rows;
}

/* Appends the sizes of the residuals that count, weighing w_k for each source; the sum of all
 * w_k. */
static double
weigh (const LsResiduals *r, const char *without, const char *software, GArray *points)
{
  g_autoptr (GHashTable) n_rows = count_rows (r, without, software);
  double all = 0;
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    if (!counts (g, without, software))
      continue;
    double share = g->n / (1.0 + GPOINTER_TO_UINT (g_hash_table_lookup (n_rows, g->source)));
    for (guint k = 0; k < g->residuals->len; k++)
      ls_list_add (points,
                   &(Weighted) { fabs (g_array_index (g->residuals, double, k)), share / g->residuals->len });
    all += share;
  }
  return all;
}

/* 0: nothing counts. */
static double
find_spread (const LsResiduals *r, const char *without, const char *software)
{
  g_autoptr (GArray) points = g_array_new (FALSE, FALSE, sizeof (Weighted));
  double all = weigh (r, without, NULL, points);
  for (guint i = 0; i < points->len; i++)
    g_array_index (points, Weighted, i).weight *= LS_INTERVAL_OTHERS / all;
  double own = weigh (r, without, software, points);
  weighted_sort (points);
  return weighted_quantile (points, LS_INTERVAL_LEVEL * (own + LS_INTERVAL_OTHERS));
}

double
ls_residuals_spread (const LsResiduals *r, const char *software)
{
  return find_spread (r, NULL, software);
}

void
ls_residuals_set_unlike (LsResiduals *r, GArray *needed)
{
  r->n_unlike = needed->len;
  r->unlike = 1;
  g_array_sort (needed, ls_compare_doubles);
  guint n
      = (guint) ceil (needed->len * fmin (1, conformal_share (needed->len, LS_INTERVAL_LEVEL)) - ROUNDING);
  if (n > 0)
    r->unlike = fmax (1, g_array_index (needed, double, n - 1));
}

/* ---- which jobs ---- */

/* Whether the groups that count say what they are in that aspect, and none is as the job. Without a word of
 * its own, a group has no experts. */
static bool
is_unlike_word (const LsResiduals *r, const LsIntervalJob *job, const char *software, LsAspect aspect)
{
  const char *word = aspect == LS_ASPECT_ARCHITECTURE ? job->architecture : job->traits.word[aspect];
  bool is_told = false;
  for (guint i = 0; word && i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    if (!counts (g, job->without, software))
      continue;
    if (has_word (g, aspect, word))
      return false;
    is_told |= aspect == LS_ASPECT_ARCHITECTURE
        ? g->architecture != NULL
        : aspect == LS_ASPECT_EXPERTS || (g->traits && g->traits->len > 0);
  }
  return is_told;
}

/* Of all groups that count, whatever their software; 0: of none. */
static double
find_extreme (const LsResiduals *r, const char *without, LsAspect aspect)
{
  double extreme = 0;
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    double figure = g->figures[aspect - LS_N_WORD_ASPECTS];
    if (counts (g, without, NULL) && (extreme <= 0 || ls_aspect_is_beyond (aspect, figure, extreme)))
      extreme = figure;
  }
  return extreme;
}

static bool
is_unlike (const LsResiduals *r, const LsIntervalJob *job, const char *software, LsAspect aspect,
           double *ret_extreme)
{
  if (aspect < LS_N_WORD_ASPECTS)
    return is_unlike_word (r, job, software, aspect);
  *ret_extreme = find_extreme (r, job->without, aspect);
  return ls_aspect_is_beyond (aspect, job->traits.figure[aspect - LS_N_WORD_ASPECTS], *ret_extreme);
}

/* "before or words", or words alone; frees before. */
static char *
join_words (char *before, const char *words)
{
  g_autofree char *owned = before;
  return before ? g_strjoin (" or ", before, words, NULL) : g_strdup (words);
}

/* In what the job is unlike all groups with that software (NULL: with any), "is in fp8 or ..."; NULL: it is
 * like them. Newly allocated. */
static char *
residuals_unlike (const LsResiduals *r, const LsIntervalJob *job, const char *software)
{
  LsTraits traits = job->traits;
  traits.word[LS_ASPECT_ARCHITECTURE] = job->architecture;
  char *all = g_strdup (job->unlike);
  for (LsAspect a = 0; a < LS_N_ASPECTS; a++) {
    double extreme = 0;
    if (!is_unlike (r, job, software, a, &extreme))
      continue;
    g_autofree char *words = aspect_words (a, &traits, extreme);
    all = join_words (all, words);
  }
  return all;
}

static double
lowest_mfu (const LsResiduals *r, const char *without)
{
  double lowest = INFINITY;
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    if (counts (g, without, NULL))
      lowest = fmin (lowest, g->lowest_mfu);
  }
  return lowest;
}

void
ls_interval_find (const LsResiduals *r, const LsIntervalJob *job, LsInterval *ret)
{
  g_autoptr (GHashTable) own = count_rows (r, job->without, job->software),
                         all = count_rows (r, job->without, NULL);
  guint n = g_hash_table_size (own), n_all = g_hash_table_size (all);
  *ret = (LsInterval) { .software = job->software, .n_sources = n, .n_others = n_all - n, .stretch = 1 };
  if (!is_enough (n_all, LS_INTERVAL_LEVEL)) {
    ret->none = g_strdup_printf ("measured runs, of %u source%s, are too few", n_all, n_all == 1 ? "" : "s");
    return;
  }
  double lowest = lowest_mfu (r, job->without);
  ret->wider = residuals_unlike (r, job, n > 0 ? job->software : NULL);
  if (!(job->mfu >= lowest)) {
    g_autofree char *words = g_strdup_printf ("has an MFU below %.1f %%", 100 * lowest);
    ret->wider = join_words (ret->wider, words);
  }
  if (ret->wider)
    ret->stretch = fmax (1, r->unlike);
  double spread = ret->stretch * find_spread (r, job->without, job->software) / sqrt (job->mfu);
  ret->low = exp (-spread);
  ret->high = exp (spread);
}

/* Takes the text. */
static void
add_remark (LsInterval *i, char *text)
{
  g_autofree char *before = i->remark, *added = text;
  i->remark = g_strconcat (before ? before : "", before ? "; " : "", added, NULL);
}

void
ls_interval_lengthen (LsInterval *i, double factor, const char *words)
{
  if (i->none)
    return;
  i->high *= factor;
  add_remark (i, g_strdup_printf ("up to %.3g times as long, as it is not simulated: %s", factor, words));
}

void
ls_interval_widen (LsInterval *i, double error, const char *words)
{
  add_remark (
      i, g_strdup_printf ("%snot measured on this machine: %s", i->none ? "" : "wider for what was ", words));
  if (i->none)
    return;
  i->low *= exp (-error);
  i->high *= exp (error);
}

void
ls_interval_clear (LsInterval *interval)
{
  if (!interval)
    return;
  g_free (interval->none);
  g_free (interval->wider);
  g_free (interval->runs);
  g_free (interval->remark);
  *interval = (LsInterval) { 0 };
}

#include "analysis/interval_text.h"

/* ---- the range on a cluster that was fitted to runs of its owner ---- */

/* How many of the first n are of this job. */
static guint
count_alike (const guint *jobs, guint n, guint job)
{
  guint count = 0;
  for (guint i = 0; i < n; i++)
    count += jobs[i] == job;
  return count;
}

void
ls_own_runs_set_range (const double *errors, const guint *jobs, guint n, LsFittedRuns *ret)
{
  ret->n = 0;
  for (guint i = 0; i < n; i++)
    ret->n += count_alike (jobs, i, jobs[i]) == 0;
  ret->low = ret->high = 0;
  if (!is_enough (ret->n, LS_INTERVAL_LEVEL))
    return;
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (Weighted));
  for (guint i = 0; i < n; i++)
    ls_list_add (values, &(Weighted) { fabs (errors[i]), 1.0 / ret->n / count_alike (jobs, n, jobs[i]) });
  weighted_sort (values);
  double most = weighted_quantile (values, conformal_share (ret->n, LS_INTERVAL_LEVEL));
  ret->low = exp (-most);
  ret->high = exp (most);
}

/* ---- a job ---- */

char *
ls_own_runs_unlike (const LsFittedRuns *own, const LsIntervalJob *job)
{
  LsResidualGroup group = { .source = (char *) "",
                            .architecture = own->architecture,
                            .software = (char *) job->software,
                            .traits = own->traits };
  group.figures[LS_ASPECT_GPUS - LS_N_WORD_ASPECTS] = own->gpus;
  group.figures[LS_ASPECT_FABRIC - LS_N_WORD_ASPECTS] = own->fabric;
  group.figures[LS_ASPECT_TENSOR - LS_N_WORD_ASPECTS] = own->tp;
  group.figures[LS_ASPECT_PARAMS - LS_N_WORD_ASPECTS] = own->params;
  g_autoptr (GArray) groups = g_array_new (FALSE, FALSE, sizeof (LsResidualGroup));
  g_array_append_val (groups, group);
  const LsResiduals one = { .groups = groups };
  return residuals_unlike (&one, job, job->software);
}

void
ls_own_runs_interval (const LsFittedRuns *own, const LsIntervalJob *job, LsInterval *interval)
{
  if (own->low <= 0) {
    interval->remark
        = g_strdup_printf ("your %u run%s (%s) are too few for an interval of their own, %u are enough",
                           own->n, own->n == 1 ? "" : "s", own->file, ls_conformal_least (LS_INTERVAL_LEVEL));
    return;
  }
  char *wider = ls_own_runs_unlike (own, job);
  if (wider && interval->none) {
    g_autofree char *published = interval->none, *unlike = wider;
    interval->none = g_strdup_printf ("none of your %u runs (%s) %s; of published ones: %s", own->n,
                                      own->file, unlike, published);
    return;
  }
  bool is_added = wider != NULL;
  double added = is_added ? log (interval->high / interval->low) / 2 : 0;
  guint n_sources = is_added ? interval->n_sources : 0;
  double low = log (own->low), high = log (own->high), scale = own->lowest_mfu / job->mfu;
  if (scale > 1) { /* errors are so much larger */
    g_autofree char *words = g_strdup_printf ("has an MFU below %.1f %%", 100 * own->lowest_mfu);
    wider = join_words (wider, words);
  } else
    scale = 1;
  double half = scale * (high - low) / 2 + added, middle = scale * (low + high) / 2;
  double stretch = high > low ? 2 * half / (high - low) : half > 0 ? INFINITY : 1;
  ls_interval_clear (interval);
  *interval = (LsInterval) { .low = exp (middle - half),
                             .high = exp (middle + half),
                             .stretch = stretch,
                             .wider = wider,
                             .software = job->software,
                             .n_sources = n_sources,
                             .n_runs = own->n,
                             .runs = g_strdup (own->file) };
}

/* --- how close predictions are to measurements --------------------------------------------------------- */

static double
tau_b (const LsScoreRow *rows, guint n_rows)
{
  gint64 balance = 0, n_untied_measured = 0, n_untied_predicted = 0;
  for (guint i = 0; i < n_rows; i++)
    for (guint k = 0; k < i; k++) {
      if (isnan (rows[i].predicted_s) || isnan (rows[k].predicted_s))
        continue;
      int measured = LS_ORDER (rows[i].measured_s, rows[k].measured_s);
      int predicted = LS_ORDER (rows[i].predicted_s, rows[k].predicted_s);
      balance += measured * predicted;
      n_untied_measured += measured != 0;
      n_untied_predicted += predicted != 0;
    }
  if (n_untied_measured == 0 || n_untied_predicted == 0)
    return NAN;
  return (double) balance / sqrt ((double) n_untied_measured * (double) n_untied_predicted);
}

void
ls_score (const LsScoreRow *rows, guint n_rows, LsScore *ret_score)
{
  LsScore s = { .mape_pct = NAN, .median_abs_pct = NAN, .bias_pct = NAN, .worst_pct = NAN };
  g_autofree double *magnitude = g_new (double, n_rows);
  double sum = 0, sum_abs = 0, worst = 0;

  for (guint i = 0; i < n_rows; i++) {
    double error = ls_score_row_error_pct (&rows[i]);
    if (isnan (error)) {
      s.refused++;
      continue;
    }
    magnitude[s.n++] = fabs (error);
    sum += error;
    sum_abs += fabs (error);
    if (fabs (error) > fabs (worst))
      worst = error;
  }
  if (s.n > 0) {
    s.mape_pct = sum_abs / s.n;
    s.bias_pct = sum / s.n;
    s.worst_pct = worst;
    s.median_abs_pct = ls_median (magnitude, s.n);
  }
  s.kendall_tau = tau_b (rows, n_rows);
  *ret_score = s;
}

double
ls_score_mean_tau (const LsScore *families, guint n_families)
{
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < n_families; i++)
    if (!isnan (families[i].kendall_tau)) {
      sum += families[i].n * families[i].kendall_tau;
      n += families[i].n;
    }
  return n > 0 ? sum / n : NAN;
}

void
ls_score_by_family (const LsScoreRow *rows, guint n_rows, const char *const *families, guint n_families,
                    LsScore *ret_families, LsScore *ret_total)
{
  g_autofree LsScoreRow *chosen = g_new (LsScoreRow, n_rows);
  for (guint f = 0; f < n_families; f++) {
    guint n = 0;
    for (guint i = 0; i < n_rows; i++)
      if (g_str_equal (rows[i].family, families[f]))
        chosen[n++] = rows[i];
    ls_score (chosen, n, &ret_families[f]);
  }
  ls_score (rows, n_rows, ret_total);
  ret_total->kendall_tau = ls_score_mean_tau (ret_families, n_families);
}

double
ls_score_row_error_pct (const LsScoreRow *row)
{
  return 100 * (row->predicted_s / row->measured_s - 1);
}

double
ls_score_row_memory_error_pct (const LsScoreRow *row)
{
  return 100 * (row->predicted_gib / row->measured_gib - 1);
}

bool
ls_score_row_is_inside (const LsScoreRow *row)
{
  double over = row->measured_s / row->predicted_s;
  return row->low <= over && over <= row->high;
}

/* --- for another process ------------------------------------------------------------------- */

GVariant *
ls_score_row_pack (const LsScoreRow *row)
{
  const LsTraits *t = &row->traits;
  GVariant *figures
      = g_variant_new_fixed_array (G_VARIANT_TYPE_DOUBLE, t->figure, LS_N_FIGURE_ASPECTS, sizeof *t->figure);
  GVariantBuilder words;
  g_variant_builder_init (&words, G_VARIANT_TYPE ("ams"));
  for (int i = 0; i < LS_N_WORD_ASPECTS; i++)
    g_variant_builder_add (&words, "ms", t->word[i]);
  return g_variant_new ("(dddddd@admsmsmsmsmsams)", row->predicted_s, row->ideal_s, row->mfu,
                        row->predicted_gib, row->low, row->high, figures, row->reason, row->architecture,
                        row->software, t->chip, t->chips, &words);
}

void
ls_score_row_unpack (LsScoreRow *row, GVariant *packed)
{
  LsTraits *t = &row->traits;
  g_autoptr (GVariant) figures = NULL;
  g_autoptr (GVariantIter) words = NULL;
  const char *architecture, *software, *chip, *chips;
  char *reason;
  gsize n;
  g_variant_get (packed, "(dddddd@admsm&sm&sm&sm&sams)", &row->predicted_s, &row->ideal_s, &row->mfu,
                 &row->predicted_gib, &row->low, &row->high, &figures, &reason, &architecture, &software,
                 &chip, &chips, &words);
  row->reason = reason;
  row->architecture = g_intern_string (architecture);
  row->software = g_intern_string (software);
  t->chip = g_intern_string (chip);
  t->chips = g_intern_string (chips);
  memcpy (t->figure, g_variant_get_fixed_array (figures, &n, sizeof *t->figure), sizeof t->figure);
  for (int i = 0; i < LS_N_WORD_ASPECTS; i++) {
    const char *word = NULL;
    g_variant_iter_next (words, "m&s", &word);
    t->word[i] = g_intern_string (word);
  }
}
