#include "analysis/interval.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/conformal.h"
#include "base/order.h"

#define ROUNDING 1e-9 /* of counts and distances */

/* ---- residuals ---- */

static void
string_clear (gpointer data)
{
  g_free (*(char **) data);
}

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
    g_array_set_clear_func (g->traits, string_clear); /* those that a file has made know nothing of it */
  g_clear_pointer (&g->traits, g_array_unref);
}

LsResiduals *
ls_residuals_new (void)
{
  LsResiduals *r = g_new0 (LsResiduals, 1);
  r->groups = g_array_new (FALSE, TRUE, sizeof (LsResidualGroup));
  g_array_set_clear_func (r->groups, group_clear);
  r->stretches = g_array_new (FALSE, TRUE, sizeof (LsStretch));
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
  g_array_unref (r->stretches);
  g_free (r);
}

double
ls_residual (double measured_s, double predicted_s, double mfu)
{
  return mfu * log (measured_s / predicted_s);
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
  g_autofree char *text = g_strjoin (" ", ls_aspect_key (aspect), word, NULL);
  for (guint i = 0; g->traits && i < g->traits->len; i++)
    if (strcmp (g_array_index (g->traits, char *, i), text) == 0)
      return true;
  return false;
}

void
ls_residual_group_add_traits (LsResidualGroup *g, const LsTraits *traits)
{
  if (!g->traits) {
    g->traits = g_array_new (FALSE, FALSE, sizeof (char *));
    g_array_set_clear_func (g->traits, string_clear);
  }
  for (LsAspect a = LS_ASPECT_FORMAT; a < LS_N_WORD_ASPECTS; a++) {
    if (!traits->word[a] || has_word (g, a, traits->word[a]))
      continue;
    char *text = g_strjoin (" ", ls_aspect_key (a), traits->word[a], NULL);
    g_array_append_val (g->traits, text);
  }
  for (guint k = 0; k < LS_N_FIGURE_ASPECTS; k++)
    if (g->figures[k] <= 0 || ls_aspect_is_beyond (LS_N_WORD_ASPECTS + k, traits->figure[k], g->figures[k]))
      g->figures[k] = traits->figure[k];
}

/* ---- what counts how much ---- */

static bool
is_left_out (const LsResidualGroup *g, const char *without)
{
  return without && strcmp (g->source, without) == 0;
}

static bool
counts (const LsResidualGroup *g, const char *without, const char *software)
{
  return strcmp (g->software, software) == 0 && !is_left_out (g, without);
}

/* Groups that count, of each source that has any, by its name. */
static GHashTable *
count_groups (const LsResiduals *r, const char *without, const char *software)
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

/* All residuals that count, in order; weights sum to 1. */
static GArray *
weigh (const LsResiduals *r, const char *without, const char *software, GHashTable *n_groups)
{
  GArray *points = g_array_new (FALSE, FALSE, sizeof (LsWeighted));
  double n_sources = g_hash_table_size (n_groups);
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    if (!counts (g, without, software))
      continue;
    double n_shares
        = n_sources * GPOINTER_TO_UINT (g_hash_table_lookup (n_groups, g->source)) * g->residuals->len;
    for (guint k = 0; k < g->residuals->len; k++) {
      LsWeighted p = { g_array_index (g->residuals, double, k), 1 / n_shares };
      g_array_append_val (points, p);
    }
  }
  ls_weighted_sort (points);
  return points;
}

static void
find_range (const LsResiduals *r, const char *without, const char *software, GHashTable *n_groups,
            double *ret_low, double *ret_high)
{
  g_autoptr (GArray) points = weigh (r, without, software, n_groups);
  ls_weighted_range (points, fmin (1, ls_conformal_share (g_hash_table_size (n_groups), LS_INTERVAL_LEVEL)),
                     ret_low, ret_high);
}

bool
ls_residuals_range (const LsResiduals *r, const char *software, double *ret_low, double *ret_high)
{
  g_autoptr (GHashTable) n_groups = count_groups (r, NULL, software);
  if (g_hash_table_size (n_groups) < 2)
    return false;
  find_range (r, NULL, software, n_groups, ret_low, ret_high);
  return true;
}

double
ls_stretch_needed (GArray *const *distances, guint n_sources)
{
  g_autoptr (GArray) points = g_array_new (FALSE, FALSE, sizeof (LsWeighted));
  for (guint k = 0; k < n_sources; k++)
    for (guint i = 0; i < distances[k]->len; i++) {
      LsWeighted p = { g_array_index (distances[k], double, i), 1.0 / n_sources / distances[k]->len };
      g_array_append_val (points, p);
    }
  ls_weighted_sort (points);
  return fmax (1, ls_weighted_quantile (points, fmin (1, ls_conformal_share (n_sources, LS_INTERVAL_LEVEL))));
}

void
ls_residuals_add_stretch (LsResiduals *r, LsAspect aspect, GArray *needed, double reach)
{
  if (needed->len < 2)
    return;
  qsort (needed->data, needed->len, sizeof (double), ls_compare_doubles);
  guint n
      = (guint) ceil (needed->len * fmin (1, ls_conformal_share (needed->len, LS_INTERVAL_LEVEL)) - ROUNDING);
  LsStretch s = {
    .aspect = aspect, .factor = g_array_index (needed, double, n - 1), .n = needed->len, .reach = reach
  };
  g_array_append_val (r->stretches, s);
}

/* ---- which jobs ---- */

static bool
is_below_all (const LsResiduals *r, const char *without, double mfu)
{
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    if (!is_left_out (g, without) && mfu >= g->lowest_mfu)
      return false;
  }
  return r->groups->len > 0;
}

/* Without a word of its own, a group has no experts. */
static bool
is_told_of (const LsResidualGroup *g, LsAspect aspect)
{
  if (aspect == LS_ASPECT_ARCHITECTURE)
    return g->architecture != NULL;
  return aspect == LS_ASPECT_EXPERTS || (g->traits && g->traits->len > 0);
}

/* Whether the groups that count say what they are in that aspect, and none is as the job. */
static bool
is_unlike_word (const LsResiduals *r, const char *without, const LsIntervalJob *job, LsAspect aspect)
{
  const char *word = aspect == LS_ASPECT_ARCHITECTURE ? job->architecture : job->traits.word[aspect];
  bool is_told = false;
  for (guint i = 0; word && i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    if (!counts (g, without, job->software))
      continue;
    if (has_word (g, aspect, word))
      return false;
    is_told = is_told || is_told_of (g, aspect);
  }
  return is_told;
}

/* 0: of no group that counts. */
static double
find_extreme (const LsResiduals *r, const char *without, const char *software, LsAspect aspect)
{
  double extreme = 0;
  for (guint i = 0; i < r->groups->len; i++) {
    const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, i);
    double figure = g->figures[aspect - LS_N_WORD_ASPECTS];
    if (counts (g, without, software) && (extreme <= 0 || ls_aspect_is_beyond (aspect, figure, extreme)))
      extreme = figure;
  }
  return extreme;
}

static bool
is_unlike (const LsResiduals *r, const char *without, const LsIntervalJob *job, LsAspect aspect,
           double *ret_extreme)
{
  if (aspect < LS_N_WORD_ASPECTS)
    return is_unlike_word (r, without, job, aspect);
  *ret_extreme = find_extreme (r, without, job->software, aspect);
  return ls_aspect_is_beyond (aspect, job->traits.figure[aspect - LS_N_WORD_ASPECTS], *ret_extreme);
}

/* 0: not known, so far from the runs. */
static double
stretch_of (const LsResiduals *r, LsAspect aspect, const LsTraits *traits, double extreme)
{
  for (guint i = 0; i < r->stretches->len; i++) {
    const LsStretch *s = &g_array_index (r->stretches, LsStretch, i);
    if (s->aspect != (int) aspect)
      continue;
    bool is_word = aspect < LS_N_WORD_ASPECTS;
    double far
        = is_word ? 0 : ls_aspect_distance (aspect, traits->figure[aspect - LS_N_WORD_ASPECTS], extreme);
    return far > s->reach + ROUNDING ? 0 : s->factor;
  }
  return 0;
}

/* "before or words", or words alone; frees before. */
static char *
join_words (char *before, const char *words)
{
  g_autofree char *owned = before;
  return before ? g_strjoin (" or ", before, words, NULL) : g_strdup (words);
}

static LsTraits
all_traits (const LsIntervalJob *job)
{
  LsTraits traits = job->traits;
  traits.word[LS_ASPECT_ARCHITECTURE] = job->architecture;
  return traits;
}

char *
ls_residuals_unlike (const LsResiduals *r, const LsIntervalJob *job)
{
  const LsTraits traits = all_traits (job);
  char *all = NULL;
  for (LsAspect a = 0; a < LS_N_ASPECTS; a++) {
    double extreme = 0;
    if (!is_unlike (r, NULL, job, a, &extreme))
      continue;
    g_autofree char *words = ls_aspect_words (a, &traits, extreme);
    all = join_words (all, words);
  }
  return all;
}

/* Fills stretch and wider, or none. */
static void
compare_job (const LsResiduals *r, const char *without, const LsIntervalJob *job, LsInterval *ret)
{
  const LsTraits traits = all_traits (job);
  for (LsAspect a = 0; a < LS_N_ASPECTS; a++) {
    double extreme = 0;
    if (!is_unlike (r, without, job, a, &extreme))
      continue;
    g_autofree char *words = ls_aspect_words (a, &traits, extreme);
    double factor = stretch_of (r, a, &traits, extreme);
    ret->wider = join_words (ret->wider, words);
    ret->stretch *= factor;
    if (factor > 0)
      continue;
    ret->none = g_strdup_printf ("none of the measured runs %s", words);
    g_clear_pointer (&ret->wider, g_free);
    return;
  }
}

void
ls_interval_find (const LsResiduals *r, const char *without_source, const LsIntervalJob *job, LsInterval *ret)
{
  g_autoptr (GHashTable) n_groups = count_groups (r, without_source, job->software);
  guint n = g_hash_table_size (n_groups);
  *ret = (LsInterval) { .software = job->software, .n_sources = n, .stretch = 1 };
  if (!ls_conformal_is_enough (n, LS_INTERVAL_LEVEL))
    ret->none = g_strdup_printf ("measured runs with %s, of %u source%s, are too few", job->software, n,
                                 n == 1 ? "" : "s");
  else if (is_below_all (r, without_source, job->mfu))
    ret->none = g_strdup_printf ("an MFU of %.1f %% is below that of all measured runs", 100 * job->mfu);
  else
    compare_job (r, without_source, job, ret);
  if (ret->none)
    return;
  double low = 0, high = 0;
  find_range (r, without_source, job->software, n_groups, &low, &high);
  double middle = (low + high) / 2, half = (high - low) / 2 * ret->stretch;
  ret->low = exp ((middle - half) / job->mfu);
  ret->high = exp ((middle + half) / job->mfu);
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

static void
append_sources (const LsInterval *i, GString *text)
{
  g_string_append_printf (text, "%u published source%s with %s", i->n_sources, i->n_sources == 1 ? "" : "s",
                          i->software);
}

/* Of runs that were not off at all nothing is so many times as wide. */
static void
append_wider (const LsInterval *i, GString *text)
{
  if (!i->wider)
    return;
  g_string_append (text, "; ");
  if (isfinite (i->stretch))
    g_string_append_printf (text, "%.1f times as wide as for a job like these", i->stretch);
  else
    g_string_append (text, "wider than for a job like these");
  if (i->n_runs > 0 && i->n_sources > 0) {
    g_string_append (text, ", by what is added for the errors on ");
    append_sources (i, text);
  }
  g_string_append_printf (text, ", as none of %s %s", i->n_runs > 0 ? "yours" : "them", i->wider);
}

char *
ls_interval_label (const LsInterval *i)
{
  GString *text = g_string_new (NULL);
  if (i->none) {
    g_string_append_printf (text, "unknown: %s", i->none);
  } else {
    g_string_append_printf (text, "%.0f %% interval, ", 100 * LS_INTERVAL_LEVEL);
    if (i->n_runs > 0) {
      g_string_append_printf (text, "from %u of your runs (%s), left out one at a time", i->n_runs, i->runs);
    } else {
      g_string_append (text, "from the errors on ");
      append_sources (i, text);
    }
    append_wider (i, text);
  }
  if (i->remark)
    g_string_append_printf (text, "; %s", i->remark);
  return g_string_free (text, FALSE);
}
