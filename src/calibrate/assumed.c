/* calibrate/assumed.c — what a profile says besides its kernels, held against what is assumed. */
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "calibrate/calibrate_fit.h"
#include "calibrate/calibrate_run.h"
#include "data/text/json_out.h"

#define MOST_SLOWER 16.0 /* a kernel in a layer, or faster: as calibrations are read */

/* Another line of the table; use, owned: where it goes, NULL: nowhere. */
static void
add (const LsAssumed *c, const char *what, const char *unit, double assumed, double measured,
     const char *note, char *use)
{
  ls_list_add (c->assumptions, &(LsAssumedFigure) { use, what, unit, assumed, measured, note, false });
}

/* The last line is of a cluster: without one there is nothing to hold it against. */
static void
needs_cluster (const LsAssumed *a)
{
  g_array_index (a->assumptions, LsAssumedFigure, a->assumptions->len - 1).needs_cluster = !a->cluster;
}

/* A key of LsAssumed.around was set; returns where that is, newly allocated. */
static char *
put (const LsAssumed *a, const char *key, const char *group, const char *name)
{
  g_autofree char *file = g_path_get_basename (a->profile->path);
  guint i = 0;
  while (i < a->sources->len && strcmp (g_ptr_array_index (a->sources, i), key) != 0)
    i += 2;
  if (i < a->sources->len) /* of a profile before */
    g_ptr_array_remove_range (a->sources, i, 2);
  g_ptr_array_add (a->sources, g_strdup (key));
  ls_note (a->sources, "%s, rows %s of %s", file, name, group);
  return g_strdup_printf ("calibration: around.%s", key);
}

/* A change of the cluster's file, which is taken; returns where that is, newly allocated. */
static char *
change (const LsAssumed *a, char *change)
{
  g_ptr_array_add (a->changes, change);
  return g_strdup_printf ("cluster: %s", change);
}

/* --- host and queue -------------------------------------------------------------------- */

/* A time of the group `host`, which goes to a place of `around`. */
static void
compare_time (const LsAssumed *a, const char *row, const char *what, double assumed_s, const char *key,
              LsTime *place, const char *note)
{
  const LsProfileFact *f = ls_profile_fact (a->profile, "host", row);
  if (!f)
    return;
  *place = ls_time_from_s (f->time_s);
  add (a, what, "us", assumed_s * 1e6, f->time_s * 1e6, note, put (a, key, "host", row));
}

/* Gaps are from the end of a kernel to the start of the next, queued; assumed is that of the GPU's access
 * file. The launch is that of a job that pays as little as it can. */
static void
compare_host (const LsAssumed *a)
{
  const LsAround *had = &a->assumed->around;
  LsHostCosts costs;
  ls_host_costs_default (&costs);
  double times = a->cluster ? ls_cluster_call_time (a->cluster) : 1,
         launch_s = a->cluster && a->cluster->fitted.host_launch > 0
      ? ls_time_to_s (a->cluster->fitted.host_launch)
      : times * ls_time_to_s (costs.cost[LS_HOST_LAUNCH]);
  LsTime gap = had->kernel_gap > 0 ? had->kernel_gap : a->assumed->access[LS_ACCESS_VEC].launch;
  compare_time (a, "launch", "launch on the host", launch_s, "host_launch", &a->around->host_launch,
                "the least that a job pays: a framework pays more");
  compare_time (a, "kernel-gap", "between two kernels", ls_time_to_s (gap), "kernel_gap",
                &a->around->kernel_gap, a->access);
  compare_time (a, "graph-kernel-gap", "between two kernels of a graph",
                ls_time_to_s (had->graph_gap > 0 ? had->graph_gap : gap), "graph_gap", &a->around->graph_gap,
                a->around->kernel_gap > 0 ? NULL : "without effect: kernel-gap was not measured");
  compare_time (a, "priority-wait", "wait of a stream with priority", ls_time_to_s (had->priority_wait),
                "priority_wait", &a->around->priority_wait,
                "the least that communication waits: a stream without priority waits longer");
}

/* --- copies ------------------------------------------------------------------------------ */

/* A link is as fast as the rows of that name, and says where that comes from. One that is faster than its
 * rate has another rate. Returns where that is, newly allocated. */
static char *
change_link (const LsAssumed *a, const LsLinkSpec *link, const char *key, const char *name, double measured)
{
  double share = measured / link->bandwidth_bytes_per_s;
  g_autofree char *file = g_path_get_basename (a->profile->path);
  g_autofree char *text = g_strdup_printf ("Rate: rows %s of %s. Before that: %s", name, file,
                                           link->source ? link->source : "");
  g_autofree char *quoted = ls_json_string (text);
  char *use = change (
      a,
      share <= 1 ? g_strdup_printf ("%s.efficiency=%.3f", key, share)
                 : g_strdup_printf ("%s.bandwidth=%.4gGB/s,%s.efficiency=1", key, measured / 1e9, key));
  g_ptr_array_add (a->changes, g_strdup_printf ("%s.source=%s", key, quoted));
  return use;
}

/* n links side by side; key: of a link in the cluster's file, NULL: no single one. */
static void
compare_copy (const LsAssumed *a, const char *name, const char *what, const LsLinkSpec *link, double n,
              const char *key, const char *note)
{
  const LsProfileFact *copy = ls_profile_fact (a->profile, "copies", name);
  if (!copy)
    return;
  bool has_link = link && link->bandwidth_bytes_per_s > 0 && n > 0;
  double measured = copy->bytes / copy->time_s;
  char *use = has_link && key ? change_link (a, link, key, name, measured / n) : NULL;
  add (a, what, "GB/s", has_link ? link->bandwidth_bytes_per_s * link->efficiency * n / 1e9 : NAN,
       measured / 1e9, use ? NULL : note, use);
  needs_cluster (a);
}

/* Bytes are those of both. A link is as fast both ways, as fast as the slower way: what is left of that. */
static void
compare_both_ways (const LsAssumed *a, const LsProfileFact *one)
{
  const LsProfileFact *both = ls_profile_fact (a->profile, "copies", "copy-both-ways");
  if (!both)
    return;
  if (!one || both->bytes != 2 * one->bytes) {
    add (a, "copies both ways at once", "GB/s", NAN, both->bytes / both->time_s / 1e9,
         "a copy as large one way was not measured", NULL);
    return;
  }
  double share = fmin (1, one->time_s / both->time_s);
  a->around->copy_duplex = ls_fit_round (share, 4);
  add (a, "each of two copies both ways", "", ls_around_duplex (&a->assumed->around), share,
       "share of the rate of the slower way", put (a, "copy_duplex", "copies", "copy-both-ways"));
}

/* A link is as fast one way as the other: both copies make its rate, the slower one where they differ. */
static void
compare_host_copies (const LsAssumed *a)
{
  static const char other_way[] = "the other way is slower: a link is as fast both ways";
  const LsClusterSpec *s = a->cluster;
  bool is_c2c = s && s->server.c2c.bandwidth_bytes_per_s > 0;
  const LsLinkSpec *link = s ? (is_c2c ? &s->server.c2c : &s->server.pcie) : NULL;
  const char *key = is_c2c                     ? "node.cpu.c2c"
      : s && ls_cluster_traits (s)->has_counts ? "node.pcie.link"
                                               : NULL;
  const LsProfileFact *in = ls_profile_fact (a->profile, "copies", "copy-host-to-device"),
                      *out = ls_profile_fact (a->profile, "copies", "copy-device-to-host");
  bool is_in = in && (!out || in->bytes / in->time_s <= out->bytes / out->time_s);
  compare_copy (a, "copy-host-to-device", "copy, host to device", link, 1, is_in ? key : NULL,
                key ? other_way : NULL);
  compare_copy (a, "copy-device-to-host", "copy, device to host", link, 1, is_in ? NULL : key,
                key ? other_way : NULL);
  compare_both_ways (a, is_in ? in : out);
}

/* Bytes are those of the tensor: the memory reads and writes each. */
static void
compare_copy_within (const LsAssumed *a)
{
  const LsProfileFact *within = ls_profile_fact (a->profile, "copies", "copy-device-to-device");
  if (!within)
    return;
  LsKernel k = ls_kernel_stream ("copy", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 1,
                                 (uint64_t) (within->bytes / 2), 2 * within->bytes, 0);
  k.access = LS_ACCESS_MEMCPY;
  double assumed = ls_time_to_s (ls_kernel_cost (a->assumed, a->gpu, &k).alone);
  a->around->memcpy_share
      = ls_fit_round (fmin (1, 2 * within->bytes / within->time_s / a->gpu->hbm_bytes_per_s), 4);
  add (a, "copy within the GPU", "GB/s", within->bytes / assumed / 1e9, within->bytes / within->time_s / 1e9,
       NULL, put (a, "memcpy_share", "copies", "copy-device-to-device"));
}

static void
compare_copies (const LsAssumed *a)
{
  const LsClusterSpec *s = a->cluster;
  bool is_switched = s && s->server.nvswitch_planes > 0;
  compare_host_copies (a);
  compare_copy (a, "copy-peer", "copy, GPU to GPU", is_switched ? &s->server.nvlink : NULL,
                is_switched ? s->server.nvlinks_per_gpu : 0, "node.nvswitch.link",
                s ? "without NVSwitch it depends on which two" : NULL);
  compare_copy_within (a);
}

/* --- a layer -------------------------------------------------------------------------- */

/* Its streams, against what the calibration that is made says of them alone, behind their launches. NaN:
 * there are none. Their times in the profile that are alone do not do: they are isolated, with an L2 that
 * owes no writes, whereas the entries of streams are fitted to loops. */
static double
streams_in_layer (const LsAssumed *a)
{
  LsCalibration alone = *a->made; /* borrows */
  double inside_s = 0, alone_s = 0;
  alone.around.streams_in_layer = 0;
  for (guint i = 0; i < a->profile->in_layer->len; i++) {
    const LsTimedKernel *t = &g_array_index (a->profile->in_layer, LsTimedKernel, i);
    const LsKernelCost cost = ls_kernel_cost (&alone, a->gpu, &t->kernel);
    inside_s += t->measured_s - cost.launch_s;
    alone_s += fmax (cost.compute_s, cost.memory_s);
  }
  return alone_s > 0 ? inside_s / alone_s : NAN;
}

static void
compare_streams_in_layer (const LsAssumed *a)
{
  static const char what[] = "streams inside a layer";
  double measured = streams_in_layer (a),
         of_row = ls_profile_mean_noted (a->profile, "context", "layer-streams", "ratio");
  bool is_plausible = measured >= 1 / MOST_SLOWER && measured <= MOST_SLOWER;
  if (is_plausible) {
    a->around->streams_in_layer = ls_fit_round (measured, 4);
    add (a, what, "", ls_around_streams (&a->assumed->around), measured,
         "over what the calibration says of them alone",
         put (a, "streams_in_layer", "context", "of streams"));
  } else if (!isnan (measured) || !isnan (of_row))
    add (a, what, "", ls_around_streams (&a->assumed->around), isnan (measured) ? of_row : measured,
         isnan (measured) ? "the rows of its kernels are not there" : "no kernel is off by so much", NULL);
}

/* --- what there is no use for ---------------------------------------------------------- */

static void
add_unused (const LsAssumed *a, const char *group, const char *name, const char *what, const char *why)
{
  const LsProfileFact *f = ls_profile_fact (a->profile, group, name);
  if (f)
    add (a, what, "us", NAN, f->time_s * 1e6, why, NULL);
}

/* ---- GEMMs together with a kernel that holds SMs ---- */

/* GEMMs together with a kernel that holds r of n SMs.
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

/* Row of the group `slowdown`, of that name and variant. */
static GArray *
rows_of (const LsAssumed *a, const char *name, const char *variant)
{
  g_autofree char *word = g_strconcat ("variant=", variant, NULL);
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (Row));
  for (guint i = 0; i < a->profile->facts->len; i++) {
    const LsProfileFact *f = &g_array_index (a->profile->facts, LsProfileFact, i);
    if (strcmp (f->group, "slowdown") != 0 || strcmp (f->name, name) != 0 || !ls_profile_has_word (f, word))
      continue;
    double rule = ls_profile_noted (f, "rule"), traffic = ls_profile_noted (f, "traffic_gb_s");
    const Row row = { 1 - 1 / rule, ls_profile_noted (f, "ratio_at_equal_clock"),
                      isnan (traffic) ? 0 : traffic * 1e9 / a->gpu->hbm_bytes_per_s };
    if (rule > 1 && row.q > 0) /* not NaN either */
      g_array_append_val (rows, row);
  }
  return rows;
}

static Sums
sum_rows (const LsAssumed *a, const char *name, const char *variant, double lost)
{
  g_autoptr (GArray) rows = rows_of (a, name, variant);
  Sums sum = { .n = rows->len };
  for (guint i = 0; i < rows->len; i++) {
    const Row r = g_array_index (rows, Row, i);
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
mean_ratio (const Sums *sum)
{
  return exp (sum->log_q / sum->n);
}

static double
waves_of (const Sums *sum)
{
  return fmax (1, ls_fit_round (mean_ratio (sum), 4));
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
  g_autoptr (GArray) rows = rows_of (a, "beside-spin", variant);
  double sum = 0;
  for (guint i = 0; i < rows->len; i++)
    sum += log (rule_of (around, gemms, g_array_index (rows, Row, i).s));
  return exp (sum / rows->len);
}

static void
take_way (const LsAssumed *a, LsGemms gemms)
{
  const Sums sum = sum_rows (a, "beside-spin", ways[gemms].variant, 0);
  if (sum.n == 0)
    return;
  *figure_of (a->around, gemms) = gemms == LS_GEMMS_PERSISTENT ? waves_of (&sum) : lost_of (&sum);
  add (a, ways[gemms].what, "", mean_rule (a, &a->assumed->around, gemms, ways[gemms].variant),
       mean_ratio (&sum), NULL, put (a, ways[gemms].key, "slowdown", ways[gemms].variant));
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
  g_autoptr (GArray) rows = rows_of (a, "beside-spin", "default");
  double sum = 0;
  for (guint i = 0; i < rows->len; i++) {
    const Row *r = &g_array_index (rows, Row, i);
    sum += pow (log (r->q / rule_of (a->around, gemms, r->s)), 2);
  }
  return sum;
}

static void
take_library (const LsAssumed *a)
{
  const Sums sum = sum_rows (a, "beside-spin", "default", 0);
  if (sum.n == 0)
    return;
  LsGemms was = ls_around_gemms (&a->assumed->around, a->gpu->persistent_gemms, false);
  LsGemms blocks = is_launched_in_clusters (a) ? LS_GEMMS_CLUSTERS : LS_GEMMS_TILES;
  LsGemms is = misfit (a, LS_GEMMS_PERSISTENT) < misfit (a, blocks) ? LS_GEMMS_PERSISTENT : blocks;
  a->around->gemms = (int) is;
  *figure_of (a->around, is) = is == LS_GEMMS_PERSISTENT ? waves_of (&sum) : lost_of (&sum);
  g_autofree char *figure = put (a, ways[is].key, "slowdown", "default"),
                  *placed = put (a, "gemms", "slowdown", "default");
  add (a, "library's GEMM together with a kernel that waits", "",
       mean_rule (a, &a->assumed->around, was, "default"), mean_ratio (&sum), NULL,
       g_strdup_printf ("%s=%s, %s", placed, ways[is].variant, ways[is].key));
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
  add (a, "library's GEMM, given the number of SMs left", "",
       mean_rule (a, &was, LS_GEMMS_TILES, "sm-target"), mean_ratio (&sum), NULL,
       put (a, "lost_told", "slowdown", "sm-target"));
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
    add (a, "library's GEMM together with a kernel that copies", "", NAN, mean_ratio (&spin),
         "compared by what was given the number of SMs left", NULL);
  double passes = a->nccl ? a->nccl->hbm_per_wire_all_gather : 0;
  bool has_place = a->nccl && passes > 0 && sum.traffic > 0;
  double measured = sum.traffic > 0 ? fmax (0, sum.rest / sum.traffic) : NAN,
         stall = ls_fit_round (measured * passes, 4);
  if (isnan (measured))
    return;
  add (a, "HBM time that such traffic costs, per byte", "",
       has_place ? a->nccl->stall_per_byte / passes : NAN, measured, NULL,
       has_place && stall <= 16 ? change (a, g_strdup_printf ("gpu.nccl.stall_per_byte=%.4g", stall)) : NULL);
  needs_cluster (a);
}

void
ls_assumed_compare (const LsAssumed *a)
{
  compare_host (a);
  add_unused (a, "host", "empty-kernel-period", "empty kernels, one to the next",
              "the gap, and the least that a kernel takes");
  add_unused (a, "host", "event-bracket", "an empty kernel between two events",
              "event-pair is taken off isolated times instead");
  compare_copies (a);
  for (int way = LS_GEMMS_TILES; way < LS_N_GEMMS; way++)
    take_way (a, (LsGemms) way);
  take_library (a);
  take_told (a);
  take_traffic (a);
  /* the products of a layer against the sum of their times alone: `sustained` */
  double products = ls_profile_mean_noted (a->profile, "context", "layer-gemms", "ratio"),
         sustained = a->assumed->sustained > 0 ? a->assumed->sustained : 1;
  if (!isnan (products))
    add (a, "products inside a layer", "", 1 / sustained, products, NULL,
         g_strdup ("calibration: sustained"));
  compare_streams_in_layer (a);
  add_unused (a, "context", "layer", "a whole layer", "its products and streams are compared one by one");
}
