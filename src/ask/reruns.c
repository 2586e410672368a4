#include "ask/reruns.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "analysis/report.h"
#include "base/list.h"
#include "base/order.h"
#include "base/parallel.h"
#include "data/machines/machines.h"
#include "data/text/override.h"

/* ---- a percent more of the hardware ---- */

#define PERCENT 0.01

static const struct {
  const char *key, *label;
} parameters[LS_N_SCALES] = {
  [LS_SCALE_GPU_FLOPS] = { "gpu_flops", "FLOPs" },
  [LS_SCALE_HBM_BANDWIDTH] = { "hbm_bandwidth", "HBM bandwidth" },
  [LS_SCALE_NVLINK_BANDWIDTH] = { "nvlink_bandwidth", "NVLink or ICI bandwidth" },
  [LS_SCALE_NIC_BANDWIDTH] = { "nic_bandwidth", "NIC and fabric bandwidth" },
  [LS_SCALE_NETWORK_LATENCY] = { "network_latency", "network latency" },
  [LS_SCALE_HOST_LAUNCH] = { "host_launch", "host launch cost" },
};

static const char *
label_of (guint scale, const LsClusterSpec *cluster)
{
  if (scale != LS_SCALE_GPU_FLOPS)
    return parameters[scale].label;
  g_autofree char *label
      = g_strdup_printf ("%s %s", ls_cluster_chip_word (cluster, 1), parameters[scale].label);
  return g_intern_string (label);
}

/* Each run has a place of its own: of each parameter down, then up. */
typedef struct {
  const LsJobResult *r;
  LsRunOptions options;
  LsSensitivity *rows;
  GError *errors[2 * LS_N_SCALES];
} ScaledRuns;

static void
run_scaled (guint i, gpointer data)
{
  ScaledRuns *runs = data;
  guint scale = i / 2, up = i % 2;
  GError **error = &runs->errors[i];
  LsScaled x;
  ls_scaled_init (&x, &runs->r->cluster->spec, runs->r->hardware, &runs->options.host, (LsScale) scale,
                  up ? 1 + PERCENT : 1 - PERCENT);
  const LsHardware scaled = { x.spec, x.calibration, x.nccl };
  LsRunOptions options = runs->options;
  options.host = x.host;
  g_autoptr (LsTimeline) t = ls_rerun (runs->r, &scaled, &options, NULL, error);
  if (t)
    *(up ? &runs->rows[scale].up_s : &runs->rows[scale].down_s) = ls_rerun_step_s (t);
  ls_scaled_clear (&x);
}

LsSensitivityTable *
ls_sensitivity_new (const LsJobSpec *spec, const LsJobResult *r, guint n_threads, GError **error)
{
  g_autoptr (LsSensitivityTable) table = g_new (LsSensitivityTable, 1);
  *table = (LsSensitivityTable) { .step_s = ls_job_result_step_time_s (r), .n = LS_N_SCALES };
  ScaledRuns runs = { .r = r, .rows = table->rows, .options = ls_rerun_options (spec, r) };
  if (!ls_hardware_check_alike (&r->cluster->spec, "--sensitivity", error))
    return NULL;
  ls_parallel (2 * LS_N_SCALES, n_threads, run_scaled, &runs, NULL);
  guint failed = ls_parallel_first_error (runs.errors, 2 * LS_N_SCALES, error);
  if (failed < 2 * LS_N_SCALES) {
    g_prefix_error (error, "%s a percent %s: ", label_of (failed / 2, &r->cluster->spec),
                    failed % 2 ? "up" : "down");
    return NULL;
  }
  for (guint i = 0; i < LS_N_SCALES; i++) {
    LsSensitivity *row = &table->rows[i];
    row->parameter = parameters[i].key;
    row->label = label_of (i, &r->cluster->spec);
    row->seconds_per_percent = (row->up_s - row->down_s) / 2;
    row->elasticity = row->seconds_per_percent / (PERCENT * table->step_s);
  }
  return g_steal_pointer (&table);
}

/* ---- parts that are slower, or gone ---- */

const char *const ls_fault_kind_names[LS_N_FAULT_KINDS] = { "link", "gpu", "node" };

bool
ls_fault_ask_parse (const char *text, LsFaultAsk *ret_ask)
{
  const char *equals = strchr (text, '=');
  size_t n = equals ? (size_t) (equals - text) : strlen (text);
  char *end = NULL;
  *ret_ask = (LsFaultAsk) { LS_N_FAULT_KINDS, equals ? g_ascii_strtod (equals + 1, &end) : 0.5 };
  for (int k = 0; k < LS_N_FAULT_KINDS; k++)
    if (strlen (ls_fault_kind_names[k]) == n && memcmp (ls_fault_kind_names[k], text, n) == 0)
      ret_ask->kind = (LsFaultKind) k;
  bool is_number = !equals || (end != equals + 1 && *end == '\0');
  double least = ret_ask->kind == LS_FAULT_LINK ? 0 : 1 / LS_SLOW_MAX;
  return ret_ask->kind < LS_N_FAULT_KINDS && is_number && ret_ask->share >= least && ret_ask->share < 1;
}

/* --- parts, and which of them are alike -------------------------------------------------- */

/* number: of a trunk, rank or node. */
typedef struct {
  char *pattern;
  uint32_t first, last;
  guint n;
} Group;

typedef struct {
  const LsJobResult *r;
  LsFaultKind kind;
  bool is_each;       /* no parts are alike          */
  GArray *groups;     /* Group                       */
  GHashTable *of_key; /* char * > place + 1          */
  char **classes;     /* [n_nodes]; NULL: no ranks   */
  guint n_idle;
} Parts;

static uint32_t
node_of (const LsJobResult *r, uint32_t rank)
{
  return ls_cluster_host_of (r->cluster, ls_plan_gpu (r->plan, rank));
}

/* "3,3,7": by GPU of the node the rank that stands for the one there. */
static void
find_classes (Parts *p)
{
  const LsJobResult *r = p->r;
  uint32_t n_gpus = r->cluster->n_gpus, n_nodes = r->cluster->spec.n_nodes;
  g_autofree uint32_t *at = g_new (uint32_t, n_gpus);
  memset (at, 0xff, n_gpus * sizeof *at);
  for (uint32_t rank = 0; rank < r->plan->n_ranks; rank++)
    at[ls_plan_gpu (r->plan, rank)] = ls_timeline_representative (r->timeline, rank);
  p->classes = g_new0 (char *, n_nodes + 1);
  for (uint32_t node = 0; node < n_nodes; node++) {
    GString *out = g_string_new (NULL);
    for (uint32_t g = 0; g < ls_cluster_gpus_of (r->cluster, node); g++)
      g_string_append_printf (out, "%x,", at[ls_cluster_gpu_at (r->cluster, node, g)]);
    p->classes[node] = g_string_free (out, FALSE);
  }
}

static char *
part_name (const Parts *p, uint32_t number)
{
  const LsJobResult *r = p->r;
  switch (p->kind) {
  case LS_FAULT_LINK:
    return ls_cluster_resource_name (r->cluster, number);
  case LS_FAULT_GPU:
    return g_strdup_printf ("rank %u, node%u/gpu%u", number, node_of (r, number),
                            ls_cluster_local_of (r->cluster, ls_plan_gpu (r->plan, number)));
  default:
    return g_strdup_printf ("node%u", number);
  }
}

/* The part is one of those with that key, which is taken. */
static void
add_part (Parts *p, char *key, uint32_t number)
{
  g_autofree char *name = part_name (p, number);
  guint at = p->is_each ? 0 : GPOINTER_TO_UINT (g_hash_table_lookup (p->of_key, key));
  if (at == 0) {
    const Group group = { g_steal_pointer (&name), number, number, 1 };
    g_array_append_val (p->groups, group);
    g_hash_table_replace (p->of_key, key, GUINT_TO_POINTER (p->groups->len));
    return;
  }
  Group *group = &g_array_index (p->groups, Group, at - 1);
  char *merged = ls_link_merge (group->pattern, name);
  g_free (group->pattern);
  group->pattern = merged;
  group->last = number;
  group->n++;
  g_free (key);
}

/* Both ways at once: of a trunk and its reverse the even one. */
static void
find_links (Parts *p)
{
  const LsCluster *c = p->r->cluster;
  const LsTimeline *timeline = p->r->timeline;
  g_auto (LsHostNames) names = { 0 };
  uint32_t n = MIN (c->n_trunks, timeline->n_resources);
  for (uint32_t t = 0; t + 1 < n; t += 2) {
    double up = ls_timeline_bytes (timeline, t), down = ls_timeline_bytes (timeline, t + 1);
    if (up <= 0 && down <= 0) {
      p->n_idle++;
      continue;
    }
    g_autofree char *name = ls_cluster_resource_name_with (c, t, &names), *pattern = ls_link_pattern (name);
    guint64 node
        = g_str_has_prefix (name, "node") ? g_ascii_strtoull (name + strlen ("node"), NULL, 10) : UINT64_MAX;
    const char *of
        = node < c->spec.n_nodes ? p->classes[node] : ""; /* of the node that it begins at, if any */
    add_part (p, g_strdup_printf ("%s %.9g %.9g %s", pattern, up, down, of), t);
  }
}

/* Accelerators, and the nodes that have some of the job's. */
static void
find_gpus (Parts *p)
{
  const LsJobResult *r = p->r;
  g_autofree bool *is_used = g_new0 (bool, r->cluster->spec.n_nodes);
  for (uint32_t rank = 0; rank < r->plan->n_ranks; rank++) {
    is_used[node_of (r, rank)] = true;
    if (p->kind == LS_FAULT_GPU)
      add_part (p, g_strdup_printf ("%u", ls_timeline_representative (r->timeline, rank)), rank);
  }
  for (uint32_t node = 0; node < r->cluster->spec.n_nodes && p->kind == LS_FAULT_NODE; node++)
    if (is_used[node])
      add_part (p, g_strdup (p->classes[node]), node);
}

static void
parts_init (Parts *p, const LsJobResult *r, const LsFaultAsk *ask, bool is_each)
{
  *p = (Parts) { .r = r,
                 .kind = ask->kind,
                 .is_each = is_each,
                 .groups = ls_list_new (sizeof (Group), ls_clear_text),
                 .of_key = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  find_classes (p);
  (p->kind == LS_FAULT_LINK ? find_links : find_gpus) (p);
}

/* --- running ----------------------------------------------------------------------------- */

/* Each run has a place of its own: of a group the first part, and the last where that is checked. */
typedef struct {
  const LsJobResult *r;
  const LsFaultAsk *ask;
  const Parts *parts;
  LsRunOptions options;
  const double *slow; /* [n_ranks] of the job itself; NULL: none */
  guint n_of_group;
  LsTime *step;
  GError **errors;
} FaultRuns;

/* Those of the cluster, and the link's; a later one of the same link counts. */
static GArray *
faults_with (const LsCluster *c, uint32_t trunk, double share)
{
  GArray *all = ls_list_new (sizeof (LsFault), ls_clear_text);
  for (guint i = 0; c->spec.network.faults && i < c->spec.network.faults->len; i++) {
    LsFault fault = g_array_index (c->spec.network.faults, LsFault, i);
    fault.link = g_strdup (fault.link);
    g_array_append_val (all, fault);
  }
  ls_list_add (all, &(LsFault) { .link = ls_cluster_resource_name (c, trunk), .capacity = share });
  return all;
}

/* [n_ranks] kernels of the part take 1 / share as long. */
static double *
slow_with (const FaultRuns *runs, uint32_t number)
{
  uint32_t n = runs->r->plan->n_ranks;
  double *slow = g_new (double, n);
  for (uint32_t rank = 0; rank < n; rank++) {
    bool is_hit = runs->ask->kind == LS_FAULT_GPU ? rank == number : node_of (runs->r, rank) == number;
    slow[rank] = (runs->slow ? runs->slow[rank] : 1) / (is_hit ? runs->ask->share : 1);
  }
  return slow;
}

static LsTime
run_with (const FaultRuns *runs, uint32_t number, GError **error)
{
  LsRunOptions options = runs->options;
  LsClusterSpec spec = runs->r->cluster->spec; /* borrows all */
  g_autoptr (GArray) faults = NULL;
  g_autofree double *slow = NULL;
  if (runs->ask->kind == LS_FAULT_LINK)
    spec.network.faults = faults = faults_with (runs->r->cluster, number, runs->ask->share);
  else
    options.slow = slow = slow_with (runs, number);
  const LsHardware changed = { spec, runs->r->hardware->calibration, runs->r->hardware->nccl };
  g_autoptr (LsTimeline) t = ls_rerun (runs->r, &changed, &options, NULL, error);
  return t ? t->window_end - t->window_start : 0;
}

static void
run_part (guint i, gpointer data)
{
  FaultRuns *runs = data;
  const Group *g = &g_array_index (runs->parts->groups, Group, i / runs->n_of_group);
  if (i % runs->n_of_group == 0 || g->n > 1)
    runs->step[i] = run_with (runs, i % runs->n_of_group == 0 ? g->first : g->last, &runs->errors[i]);
}

/* --- the table --------------------------------------------------------------------------- */

/* What cuts off comes first; of equals those of which there are more. */
static int
compare_rows (gconstpointer a, gconstpointer b)
{
  const LsFaultRow *x = a, *y = b;
  if (!x->cut_off != !y->cut_off)
    return x->cut_off ? -1 : 1;
  if (!x->cut_off && x->step_s != y->step_s)
    return LS_ORDER (y->step_s, x->step_s);
  return x->n_alike != y->n_alike ? LS_ORDER (y->n_alike, x->n_alike) : strcmp (x->first, y->first);
}

/* Whether both parts of a group that were run gave the same. */
static gboolean
check_alike (const FaultRuns *runs, guint i, GError **error)
{
  const Group *g = &g_array_index (runs->parts->groups, Group, i);
  guint at = i * runs->n_of_group, last = at + runs->n_of_group - 1;
  if (last == at || g->n == 1
      || (runs->step[at] == runs->step[last] && !runs->errors[at] == !runs->errors[last]))
    return TRUE;
  g_autofree char *first = part_name (runs->parts, g->first), *other = part_name (runs->parts, g->last);
  return ls_fail (error, LS_ERROR_FAILED, "%s and %s were assumed to be alike, but the step differs", first,
                  other);
}

/* Only what is cut off is a result; other errors are errors. */
static gboolean
add_row (const FaultRuns *runs, guint i, GArray *rows, GError **error)
{
  const Group *g = &g_array_index (runs->parts->groups, Group, i);
  guint at = i * runs->n_of_group;
  GError *failed = runs->errors[at];
  if (failed && !(runs->ask->share == 0 && g_error_matches (failed, LS_ERROR, LS_ERROR_CONFLICT))) {
    g_propagate_error (error, g_error_copy (failed));
    return FALSE;
  }
  const LsFaultRow row = {
    .first = part_name (runs->parts, g->first),
    .pattern = g->n > 1 ? g_strdup (g->pattern) : NULL,
    .n_alike = g->n,
    .step_s = failed ? NAN : ls_time_to_s (runs->step[at]),
    .cut_off = failed ? g_strdup (failed->message) : NULL,
  };
  g_array_append_val (rows, row);
  return check_alike (runs, i, error);
}

static gboolean
run_parts (FaultRuns *runs, guint n_threads, const LsProgress *progress, LsFaultTable *table, GError **error)
{
  guint n = runs->parts->groups->len;
  gboolean ok = TRUE;
  g_autofree LsTime *step = runs->step = g_new0 (LsTime, n * runs->n_of_group + 1);
  g_autofree GError **errors = runs->errors = g_new0 (GError *, n * runs->n_of_group + 1);
  ls_parallel (n * runs->n_of_group, n_threads, run_part, runs, progress);
  for (guint i = 0; ok && i < n; i++)
    ok = add_row (runs, i, table->rows, error);
  for (guint i = 0; i < n * runs->n_of_group; i++)
    g_clear_error (&errors[i]);
  g_array_sort (table->rows, compare_rows);
  return ok;
}

/* What asks which links carry how much. */
static gboolean
check_counts (const LsJobSpec *spec, GError **error)
{
  return spec->network != LS_JOB_NETWORK_ALPHABETA
      || ls_fail (error, LS_ERROR_CONFLICT,
                  "--network alphabeta does not count what links carry: expected another network");
}

LsFaultTable *
ls_fault_table_new (const LsJobSpec *spec, const LsJobResult *r, const LsFaultAsk *ask, guint n_threads,
                    const LsProgress *progress, GError **error)
{
  if (ask->kind == LS_FAULT_LINK && !check_counts (spec, error))
    return NULL;
  FaultRuns runs = { .r = r, .ask = ask, .options = ls_rerun_options (spec, r) };
  g_autoptr (GError) failed = NULL;
  g_autofree double *slow
      = runs.options.stragglers ? ls_slow_factors (runs.options.stragglers, r->plan->n_ranks, &failed) : NULL;
  if (failed)
    return ls_fail_null (error, (LsErrorCode) failed->code, "%s", failed->message);
  runs.slow = slow;
  Parts parts;
  parts_init (&parts, r, ask, spec->options.fold == LS_SHORTCUT_OFF);
  runs.parts = &parts;
  runs.n_of_group = spec->options.fold == LS_SHORTCUT_CHECK ? 2 : 1;
  g_autoptr (LsFaultTable) table = g_new (LsFaultTable, 1);
  *table = (LsFaultTable) { *ask, ls_cluster_chip_word (&r->cluster->spec, 1), ls_job_result_step_time_s (r),
                            parts.n_idle, ls_list_new (sizeof (LsFaultRow), ls_clear_3_texts) };
  gboolean ok = parts.groups->len <= LS_FAULTS_MAX
      || ls_fail (error, LS_ERROR_LIMIT, "%u %ss differ, more than %d", parts.groups->len,
                  ls_fault_kind_names[ask->kind], LS_FAULTS_MAX);
  ok = ok && run_parts (&runs, n_threads, progress, table, error);
  g_array_unref (parts.groups);
  g_hash_table_unref (parts.of_key);
  g_strfreev (parts.classes);
  return ok ? g_steal_pointer (&table) : NULL;
}

void
ls_fault_table_free (LsFaultTable *table)
{
  if (!table)
    return;
  g_array_unref (table->rows);
  g_free (table);
}

/* ---- seeds of the hash ---- */

/* Links of one direction between two tiers of switches. */
typedef struct {
  uint32_t from, to; /* LsNodeKind */
  guint n;
  double sum, most;
  uint32_t busiest;
} Tier;

static const LsSortKey by_ends[] = { { LS_RISING (Tier, from) }, { LS_RISING (Tier, to) }, { 0 } };

/* Links of one trunk carry the same. */
static void
find_crowding (const LsTimeline *t, const LsCluster *c, LsEcmpDraw *draw)
{
  g_autoptr (GArray) tiers = g_array_new (FALSE, FALSE, sizeof (Tier));
  g_autofree bool *is_seen = g_new0 (bool, c->n_trunks + 1);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    uint32_t from = g_array_index (c->nodes, LsTopoNode, link->from).kind,
             to = g_array_index (c->nodes, LsTopoNode, link->to).kind;
    bool is_of_switches = from >= LS_NODE_LEAF && to >= LS_NODE_LEAF;
    if (!is_of_switches || is_seen[link->trunk] || link->trunk >= t->n_resources)
      continue;
    is_seen[link->trunk] = true;
    Tier *tier = ls_list_like (tiers, by_ends, &(Tier) { .from = from, .to = to });
    double bytes = ls_timeline_bytes (t, link->trunk);
    tier->n++;
    tier->sum += bytes;
    if (bytes > tier->most) {
      tier->most = bytes;
      tier->busiest = link->trunk;
    }
  }
  for (guint i = 0; i < tiers->len; i++) {
    const Tier *tier = &g_array_index (tiers, Tier, i);
    double crowding = tier->sum > 0 ? tier->most * tier->n / tier->sum : 0;
    if (crowding <= draw->crowding)
      continue;
    draw->crowding = crowding;
    g_free (draw->busiest);
    draw->busiest = ls_cluster_resource_name (c, tier->busiest);
  }
}

/* --- running ----------------------------------------------------------------------------- */

/* Run 0 is the one with ideal spreading. */
typedef struct {
  const LsJobResult *r;
  LsRunOptions options;
  LsEcmpDraw *draws; /* [n + 1] */
  GError **errors;
} SeedRuns;

static void
run_seed (guint i, gpointer data)
{
  SeedRuns *runs = data;
  LsHardware changed = { runs->r->cluster->spec, runs->r->hardware->calibration, runs->r->hardware->nccl };
  changed.spec.network.routing = i == 0 ? LS_ROUTING_IDEAL : LS_ROUTING_ECMP;
  changed.spec.network.seed = i == 0 ? 0 : i - 1;
  g_autoptr (LsCluster) cluster = NULL;
  g_autoptr (LsTimeline) t = ls_rerun (runs->r, &changed, &runs->options, &cluster, &runs->errors[i]);
  runs->draws[i].seed = changed.spec.network.seed;
  if (!t)
    return;
  runs->draws[i].step_s = ls_rerun_step_s (t);
  find_crowding (t, cluster, &runs->draws[i]);
}

static const LsSortKey by_step[]
    = { { LS_RISING (LsEcmpDraw, step_s) }, { LS_RISING (LsEcmpDraw, seed) }, { 0 } };

LsEcmpTable *
ls_ecmp_table_new (const LsJobSpec *spec, const LsJobResult *r, guint n_seeds, guint n_threads,
                   GError **error)
{
  g_assert (n_seeds > 0 && n_seeds <= LS_ECMP_MAX_SEEDS);
  const LsClusterSpec *c = &r->cluster->spec;
  if (c->n_nodes < 2 || ls_cluster_traits (c)->is_slice || ls_is_dragonfly (c))
    return ls_fail_null (error, LS_ERROR_CONFLICT, "no switch of a fabric chooses a link here: %s",
                         ls_cluster_traits (c)->is_slice ? "chips of a torus have links to each other"
                             : c->n_nodes < 2            ? "the job is on one node"
                                                         : "those of a dragonfly go by load, not by hash");
  if (!check_counts (spec, error))
    return NULL;
  g_autoptr (LsEcmpTable) table = g_new (LsEcmpTable, 1);
  *table = (LsEcmpTable) { .n = n_seeds, .draws = g_new0 (LsEcmpDraw, n_seeds + 1) };
  g_autofree GError **errors = g_new0 (GError *, n_seeds + 1);
  SeedRuns runs = { .r = r, .draws = table->draws, .errors = errors, .options = ls_rerun_options (spec, r) };
  ls_parallel (n_seeds + 1, n_threads, run_seed, &runs, NULL);
  if (ls_parallel_first_error (errors, n_seeds + 1, error) <= n_seeds)
    return NULL;
  table->ideal = table->draws[0];
  memmove (table->draws, table->draws + 1, n_seeds * sizeof *table->draws);
  table->draws[n_seeds] = (LsEcmpDraw) { 0 };
  g_qsort_with_data (table->draws, n_seeds, sizeof *table->draws, ls_compare_by, (gpointer) by_step);
  return g_steal_pointer (&table);
}

void
ls_ecmp_table_free (LsEcmpTable *table)
{
  if (!table)
    return;
  g_free (table->ideal.busiest);
  for (guint i = 0; i <= table->n; i++)
    g_free (table->draws[i].busiest);
  g_free (table->draws);
  g_free (table);
}

const LsEcmpDraw *
ls_ecmp_quantile (const LsEcmpTable *table, double share)
{
  double at = ceil (share * table->n) - 1;
  return &table->draws[(guint) CLAMP (at, 0, table->n - 1)];
}

/* ---- which changes of a cluster's file change nothing ---- */

/* `name` without its i-th change. Newly allocated. */
static char *
without (const char *name, const GPtrArray *changes, guint i)
{
  GString *out = g_string_new_len (name, ls_override_find (name) - 1 - name);
  for (guint k = 0, n = 0; k < changes->len; k++)
    if (k != i)
      g_string_append_printf (out, "%c%s", n++ == 0 ? ':' : ',', (const char *) changes->pdata[k]);
  return g_string_free (out, FALSE);
}

static bool
is_size (const char *change)
{
  return g_str_has_prefix (change, "nodes=");
}

/* --- reasons ----------------------------------------------------------------------------- */

/* Why a key of a link has no effect; bytes: what crosses such links, negative: that is not known. */
static const char *
reason_of (const char *key, double bytes)
{
  if (bytes == 0)
    return "nothing crosses such a link here";
  if (bytes < 0)
    return "nothing here crosses such a link, or something else limits what does";
  if (g_str_has_suffix (key, ".latency"))
    return "NCCL's own latencies hold for the way to the leaf and back, and this link is not on it, or hides "
           "after others";
  return "what crosses such links is limited elsewhere (--critical-path and --sensitivity show where)";
}

/* A figure of the accelerator, by the last part of its key. */
static bool
is_same_figure (const LsGpu *a, const LsGpu *b, const char *key)
{
  static const gsize sizes[] = {
    [LS_FIELD_BYTES] = sizeof (uint64_t), [LS_FIELD_UINT] = sizeof (uint32_t),
    [LS_FIELD_BOOL] = sizeof (bool),      [LS_FIELD_DOUBLE] = sizeof (double),
    [LS_FIELD_RATE] = sizeof (double),    [LS_FIELD_FLOPS] = sizeof (double),
  };
  const LsField *f = ls_field_find (ls_gpu_fields, key);
  gsize size = f && f->kind < G_N_ELEMENTS (sizes) ? sizes[f->kind] : 0;
  return size > 0 && memcmp ((const char *) a + f->offset, (const char *) b + f->offset, size) == 0;
}

/* Whether the cluster has that value without the change too. other: its name without. */
static bool
is_said_already (const char *key, const LsClusterSpec *spec, const char *other)
{
  LsClusterSpec without;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!ls_cluster_load (other, &without, diags))
    return false;
  const LsLinkSpec *a = ls_cluster_link_at (spec, key), *b = ls_cluster_link_at (&without, key);
  bool is = a && b
      ? a->bandwidth_bytes_per_s == b->bandwidth_bytes_per_s && a->efficiency == b->efficiency
          && a->latency == b->latency
      : g_str_has_prefix (key, "gpu.") && is_same_figure (&spec->gpu, &without.gpu, key + strlen ("gpu."));
  ls_cluster_spec_clear (&without);
  return is;
}

/* other: the cluster without the change. */
static void
add_note (GPtrArray *notes, const char *change, const char *what, const char *other,
          const LsClusterSpec *spec, const LsJobResult *r)
{
  g_autofree char *key = g_strndup (change, strcspn (change, "="));
  const LsLinkSpec *link = ls_cluster_link_at (spec, key);
  double bytes = link && r ? 0 : -1;
  for (guint i = 0; link && r && i < r->cluster->n_trunks && i < r->timeline->n_resources; i++)
    if (ls_cluster_trunk (r->cluster, i)->link == link)
      bytes += ls_timeline_bytes (r->timeline, i);
  const char *reason = is_said_already (key, spec, other) ? "that is what it is without it"
      : link                                              ? reason_of (key, bytes)
                                                          : "it is the same without it";
  ls_note (notes, "%s does not change %s: %s", change, what, reason);
}

/* --- jobs -------------------------------------------------------------------------------- */

/* The job on another cluster. */
static LsJobResult *
run_on (const LsJobSpec *spec, char *cluster, uint32_t n_nodes, GError **error)
{
  LsJobSpec other = *spec; /* borrows all else */
  other.cluster = cluster;
  other.n_nodes = n_nodes;
  other.options.steady = true;
  other.network = spec->network == LS_JOB_NETWORK_ALL ? LS_JOB_NETWORK_FLOW : spec->network;
  return ls_job_spec_run (&other, error);
}

/* The step, what a GPU can hold and what it must are the same with another cluster. */
static bool
is_same_job (const LsJobSpec *spec, const LsJobResult *r, char *cluster)
{
  g_autoptr (LsJobResult) x = run_on (spec, cluster, spec->n_nodes, NULL);
  return x && x->report.step_time_s == r->report.step_time_s
      && x->report.capacity_bytes == r->report.capacity_bytes
      && x->report.context_bytes == r->report.context_bytes
      && x->report.needed_bytes == r->report.needed_bytes;
}

/* A job has a cluster of the nodes that it takes, whatever a file has, but with --nodes. What that many
 * change (detours of a dragonfly, hashed ways) is told. */
static void
note_size (const LsJobSpec *spec, const LsJobResult *r, const char *change, GPtrArray *notes)
{
  double asked = g_ascii_strtod (change + strlen ("nodes="), NULL);
  uint32_t has = r->cluster->spec.n_nodes;
  if (spec->n_nodes > 0 || asked <= has || asked > UINT32_MAX)
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) x = run_on (spec, spec->cluster, (uint32_t) asked, &error);
  if (x && x->report.step_time_s == r->report.step_time_s)
    return;
  g_autofree char *words
      = x ? g_strdup (" has all of them, and another step") : g_strconcat (": ", error->message, NULL);
  ls_note (notes,
           "%s changes nothing: the job is simulated on the nodes that it "
           "takes (%u); --nodes %u%s",
           change, has, (uint32_t) asked, words);
}

void
ls_override_note_job (const LsJobSpec *spec, const LsJobResult *r, const char *what, const char *but,
                      GPtrArray *notes)
{
  const char *text = spec->cluster ? ls_override_find (spec->cluster) : NULL;
  g_autoptr (GPtrArray) changes = text ? ls_override_split (text) : NULL;
  for (guint i = 0; changes && i < changes->len; i++) {
    const char *change = changes->pdata[i];
    g_autofree char *cluster = without (spec->cluster, changes, i),
                    *key = g_strndup (change, strcspn (change, "="));
    if (but && ls_is_one_of (key, but))
      continue;
    if (is_size (changes->pdata[i]))
      note_size (spec, r, changes->pdata[i], notes);
    else if (is_same_job (spec, r, cluster))
      add_note (notes, changes->pdata[i], what, cluster, &r->cluster->spec,
                check_counts (spec, NULL) ? r : NULL);
  }
  LsJobSpec other = *spec; /* borrows all else */
  other.nccl = NULL;
  if (spec->nccl && !spec->trace && is_same_job (&other, r, spec->cluster))
    ls_note (notes, "--nccl %s does not change %s: with the accelerator's it is the same", spec->nccl, what);
  other = *spec;
  other.gpu_calibration = NULL;
  if (spec->gpu_calibration && !spec->trace && is_same_job (&other, r, spec->cluster))
    ls_note (notes, "--gpu-calibration %s does not change %s: with the accelerator's it is the same",
             spec->gpu_calibration, what);
}

/* --- collectives ------------------------------------------------------------------------- */

static bool
is_same_table (const LsCollectiveSpec *spec, const LsCollectiveTable *table, char *cluster)
{
  LsCollectiveSpec other = *spec; /* borrows all else */
  other.cluster = cluster;
  g_autoptr (LsCollectiveRun) run = ls_collective_run_new (&other, NULL);
  const LsCollectiveTable *t = run ? &run->table : NULL;
  bool same = t && t->n_rows == table->n_rows;
  for (guint i = 0; same && i < t->n_rows; i++)
    same = t->rows[i].time == table->rows[i].time;
  return same;
}

void
ls_override_note_collective (const LsCollectiveSpec *spec, const LsCollectiveTable *table, GPtrArray *notes)
{
  const char *text = spec->cluster && !spec->compare ? ls_override_find (spec->cluster) : NULL;
  g_autoptr (GPtrArray) changes = text ? ls_override_split (text) : NULL;
  LsClusterSpec cluster;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!changes || !ls_cluster_load (spec->cluster, &cluster, diags))
    return;
  for (guint i = 0; i < changes->len; i++) {
    g_autofree char *name = without (spec->cluster, changes, i);
    if (!is_size (changes->pdata[i]) && is_same_table (spec, table, name))
      add_note (notes, changes->pdata[i], "the time", name, &cluster, NULL);
  }
  ls_cluster_spec_clear (&cluster);
}
