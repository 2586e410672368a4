/* calibrate/assumed_slowdown.c — GEMMs together with a kernel that holds r of n SMs.
 *
 * Rows of the group `slowdown` are of GEMMs that occupy the SMs in a known way (variant=tiles, clusters,
 * persistent: kernels of kernelbench), of the library's (default), which does so in a way that it does not
 * tell, and of the library's when it is told how many SMs are left (sm-target). With s = r / n and q the time
 * beside over the time alone, at equal clocks,
 *
 *     lost    sum s (1 - 1 / q) / sum s^2    over the rows: least squares of 1 / q = 1 - lost s
 *     waves   the geometric mean of q
 *
 * The library's way is that whose rule has the least sum of squared ln (q / rule) on the library's rows; of
 * tiles and clusters, whose rules are alike, clusters if cuBLASLt says that its kernel is launched in such
 * (cluster=N of the note, N > 1). What the library's own rows say then goes before what kernelbench's kernels
 * say of that way: the library is what jobs run.
 *
 * Beside a kernel that moves data (beside-copy) a GEMM that was told loses, besides the SMs, t per byte that
 * crosses HBM, in units of the time of the HBM for a byte: 1 - 1 / q = lost s + t traffic / bandwidth. An
 * all-gather moves LsNccl.hbm_per_wire bytes for one of the array, whose price is stall_per_byte. */
#include "calibrate/assumed.h"

#include <math.h>
#include <string.h>

#include "calibrate/calibrate_fit.h"
#include "calibrate/calibrate_run.h"

/* What is summed over the rows of one variant. */
typedef struct {
  guint n;
  double ss, sy;        /* s^2, s (1 - 1/q)                */
  double log_q, rule;   /* ln q; 1 / (1 - s)               */
  double traffic, rest; /* share of the HBM; its product with what is lost besides SMs */
} Sums;

typedef struct {
  double s, q, traffic;
} Row;

static bool
read_row (const LsAssumed *a, const LsProfileFact *f, const char *name, const char *variant, Row *row)
{
  g_autofree char *word = g_strconcat ("variant=", variant, NULL);
  if (strcmp (f->group, "slowdown") != 0 || strcmp (f->name, name) != 0 || !ls_profile_has_word (f, word))
    return false;
  double rule = ls_profile_noted (f, "rule"), traffic = ls_profile_noted (f, "traffic_gb_s");
  *row = (Row) { 1 - 1 / rule, ls_profile_noted (f, "ratio_at_equal_clock"),
                 isnan (traffic) ? 0 : traffic * 1e9 / a->gpu->hbm_bytes_per_s };
  return rule > 1 && row->q > 0; /* not NaN either */
}

static Sums
sum_rows (const LsAssumed *a, const char *name, const char *variant, double lost)
{
  Sums sum = { 0 };
  for (guint i = 0; i < a->profile->facts->len; i++) {
    Row r;
    if (!read_row (a, &g_array_index (a->profile->facts, LsProfileFact, i), name, variant, &r))
      continue;
    sum.n++;
    sum.ss += r.s * r.s;
    sum.sy += r.s * (1 - 1 / r.q);
    sum.log_q += log (r.q);
    sum.rule += 1 / (1 - r.s);
    sum.traffic += r.traffic * r.traffic;
    sum.rest += r.traffic * (1 - 1 / r.q - lost * r.s);
  }
  return sum;
}

/* As files have them; a GEMM that loses nothing loses little. */
static double
lost_of (const Sums *sum)
{
  return fmax (0.001, ls_fit_round (sum->sy / sum->ss, 4));
}

static double
waves_of (const Sums *sum)
{
  return fmax (1, ls_fit_round (exp (sum->log_q / sum->n), 4));
}

static double
mean_ratio (const Sums *sum)
{
  return exp (sum->log_q / sum->n);
}

/* --- the ways ---------------------------------------------------------------------------- */

static double *
figure_of (LsAround *around, LsGemms gemms)
{
  return gemms == LS_GEMMS_PERSISTENT ? &around->waves
      : gemms == LS_GEMMS_CLUSTERS    ? &around->lost_clusters
                                      : &around->lost_tiles;
}

static const struct {
  const char *variant, *key, *what;
} ways[LS_N_GEMMS] = {
  [LS_GEMMS_TILES] = { "tiles", "lost_tiles", "GEMM by tiles together with a kernel that waits" },
  [LS_GEMMS_CLUSTERS] = { "clusters", "lost_clusters", "GEMM in clusters together with a kernel that waits" },
  [LS_GEMMS_PERSISTENT] = { "persistent", "waves", "persistent GEMM together with a kernel that waits" },
};

/* Time beside over time alone, by the rule of a way with the figures of `around`. */
static double
rule_of (const LsAround *around, LsGemms gemms, double s)
{
  return gemms == LS_GEMMS_PERSISTENT ? ls_around_waves (around)
                                      : 1 / fmax (0.01, 1 - ls_around_lost (around, gemms) * s);
}

static double
mean_rule (const LsAssumed *a, const LsAround *around, LsGemms gemms, const char *variant)
{
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < a->profile->facts->len; i++) {
    Row r;
    if (!read_row (a, &g_array_index (a->profile->facts, LsProfileFact, i), "beside-spin", variant, &r))
      continue;
    sum += log (rule_of (around, gemms, r.s));
    n++;
  }
  return exp (sum / n);
}

static void
take_way (const LsAssumed *a, LsGemms gemms)
{
  const Sums sum = sum_rows (a, "beside-spin", ways[gemms].variant, 0);
  if (sum.n == 0)
    return;
  *figure_of (a->around, gemms) = gemms == LS_GEMMS_PERSISTENT ? waves_of (&sum) : lost_of (&sum);
  ls_assumed_add (a, ways[gemms].what, "", mean_rule (a, &a->assumed->around, gemms, ways[gemms].variant),
                  mean_ratio (&sum), NULL,
                  ls_assumed_put (a, ways[gemms].key, "slowdown", ways[gemms].variant));
}

/* --- the library's ------------------------------------------------------------------------ */

static bool
is_launched_in_clusters (const LsAssumed *a)
{
  for (guint i = 0; i < a->profile->facts->len; i++) {
    const LsProfileFact *f = &g_array_index (a->profile->facts, LsProfileFact, i);
    if (strcmp (f->group, "slowdown") == 0 && ls_profile_has_word (f, "variant=default")
        && ls_profile_noted (f, "cluster") > 1)
      return true;
  }
  return false;
}

static double
misfit (const LsAssumed *a, LsGemms gemms)
{
  double sum = 0;
  for (guint i = 0; i < a->profile->facts->len; i++) {
    Row r;
    if (read_row (a, &g_array_index (a->profile->facts, LsProfileFact, i), "beside-spin", "default", &r))
      sum += pow (log (r.q / rule_of (a->around, gemms, r.s)), 2);
  }
  return sum;
}

static LsGemms
way_of_library (const LsAssumed *a)
{
  LsGemms blocks = is_launched_in_clusters (a) ? LS_GEMMS_CLUSTERS : LS_GEMMS_TILES;
  return misfit (a, LS_GEMMS_PERSISTENT) < misfit (a, blocks) ? LS_GEMMS_PERSISTENT : blocks;
}

static void
take_library (const LsAssumed *a)
{
  const Sums sum = sum_rows (a, "beside-spin", "default", 0);
  if (sum.n == 0)
    return;
  LsGemms was = ls_around_gemms (&a->assumed->around, a->gpu->persistent_gemms, false);
  LsGemms is = way_of_library (a);
  a->around->gemms = (int) is;
  *figure_of (a->around, is) = is == LS_GEMMS_PERSISTENT ? waves_of (&sum) : lost_of (&sum);
  g_autofree char *figure = ls_assumed_put (a, ways[is].key, "slowdown", "default"),
                  *put = ls_assumed_put (a, "gemms", "slowdown", "default");
  ls_assumed_add (a, "library's GEMM together with a kernel that waits", "",
                  mean_rule (a, &a->assumed->around, was, "default"), mean_ratio (&sum), NULL,
                  g_strdup_printf ("%s=%s, %s", put, ways[is].variant, ways[is].key));
}

static void
take_told (const LsAssumed *a)
{
  const Sums sum = sum_rows (a, "beside-spin", "sm-target", 0);
  if (sum.n == 0)
    return;
  const double lost = ls_around_lost (&a->assumed->around, LS_GEMMS_PERSISTENT);
  const LsAround was = { .lost_tiles = lost };
  a->around->lost_told = lost_of (&sum);
  ls_assumed_add (a, "library's GEMM, given the number of SMs left", "",
                  mean_rule (a, &was, LS_GEMMS_TILES, "sm-target"), mean_ratio (&sum), NULL,
                  ls_assumed_put (a, "lost_told", "slowdown", "sm-target"));
}

/* --- traffic ------------------------------------------------------------------------------ */

static void
take_traffic (const LsAssumed *a)
{
  const Sums sum = sum_rows (a, "beside-copy", "sm-target", ls_around_lost (a->around, LS_GEMMS_PERSISTENT));
  if (sum.n == 0)
    return;
  const Sums spin = sum_rows (a, "beside-copy", "default", 0);
  if (spin.n > 0)
    ls_assumed_add (a, "library's GEMM together with a kernel that copies", "", NAN, mean_ratio (&spin),
                    "compared by what was given the number of SMs left", NULL);
  double passes = a->nccl ? a->nccl->hbm_per_wire_all_gather : 0;
  bool has_place = a->nccl && passes > 0 && sum.traffic > 0;
  double measured = sum.traffic > 0 ? fmax (0, sum.rest / sum.traffic) : NAN,
         stall = ls_fit_round (measured * passes, 4);
  if (isnan (measured))
    return;
  ls_assumed_add (a, "HBM time that such traffic costs, per byte", "",
                  has_place ? a->nccl->stall_per_byte / passes : NAN, measured, NULL,
                  has_place && stall <= 16
                      ? ls_assumed_change (a, g_strdup_printf ("gpu.nccl.stall_per_byte=%.4g", stall))
                      : NULL);
  ls_assumed_needs_cluster (a);
}

void
ls_assumed_slowdown (const LsAssumed *a)
{
  for (int way = LS_GEMMS_TILES; way < LS_N_GEMMS; way++)
    take_way (a, (LsGemms) way);
  take_library (a);
  take_told (a);
  take_traffic (a);
}
