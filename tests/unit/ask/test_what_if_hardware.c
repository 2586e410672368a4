/* Pins what better hardware does, over every rate and latency in the file of every shipped cluster and of its
 * accelerator, found in the files and not listed here: twice the rate or half the latency makes no collective
 * and no job slower; each kind of figure makes something faster on some cluster, or is one of those of which
 * the program says why it does not; and a percent more as a change of the cluster's file is, to the
 * picosecond, what --sensitivity says. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "ask/reruns.h"
#include "data/datadir.h"
#include "data/text/override.h"
#include "job/sensitivity_scale.h"

#define N_WORKLOADS 7

typedef struct {
  char *key, *change; /* "node.nics.link.bandwidth"; the same with "=100GB/s" */
} Change;

static void
change_clear (gpointer data)
{
  g_free (((Change *) data)->key);
  g_free (((Change *) data)->change);
}

/* --- figures of a file --------------------------------------------------------------------- */

static bool
is_figure (const char *key, const char *path)
{
  return g_str_has_suffix (key, "bandwidth") || strcmp (key, "latency") == 0 || strstr (path, "peak_flops.")
      || strcmp (key, "vector_flops") == 0;
}

/* "25GB/s" as "50GB/s", "300ns" as "150ns". */
static char *
better (const char *key, const char *value)
{
  char *unit, number[G_ASCII_DTOSTR_BUF_SIZE];
  double x = g_ascii_strtod (value, &unit);
  return g_strdup_printf (
      "%s%s", g_ascii_dtostr (number, sizeof number, strcmp (key, "latency") == 0 ? x / 2 : 2 * x), unit);
}

/* prefix: "gpu=\"h100:" and suffix "\"" around a change of the accelerator. */
static void
collect (const cJSON *node, const char *path, const char *prefix, const char *suffix, GArray *changes)
{
  for (const cJSON *child = node->child; child; child = child->next) {
    g_autofree char *below
        = g_strdup_printf ("%s%s%s", path, *path ? "." : "", child->string ? child->string : "");
    if (cJSON_IsObject (child))
      collect (child, below, prefix, suffix, changes);
    if (!cJSON_IsString (child) || !child->string || !is_figure (child->string, below))
      continue;
    g_autofree char *value = better (child->string, child->valuestring);
    Change c = { g_strdup_printf ("%s%s", *prefix ? "gpu." : "", below),
                 g_strdup_printf ("%s%s=%s%s", prefix, below, value, suffix) };
    g_array_append_val (changes, c);
  }
}

static GArray *
changes_of (const char *cluster)
{
  GArray *changes = g_array_new (FALSE, FALSE, sizeof (Change));
  g_array_set_clear_func (changes, change_clear);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CLUSTERS, cluster, diags);
  if (!LS_CHECK (doc != NULL))
    return changes;
  collect (ls_json_doc_root (doc), "", "", "", changes);
  const char *gpu = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "gpu")->valuestring;
  g_autoptr (LsJsonDoc) chip = ls_data_load (LS_DATA_GPUS, gpu, diags);
  g_autofree char *prefix = g_strdup_printf ("gpu=\"%s%c", gpu, strchr (gpu, ':') ? ',' : ':');
  if (LS_CHECK (chip != NULL))
    collect (ls_json_doc_root (chip), "", prefix, "\"", changes);
  return changes;
}

/* --- what runs ------------------------------------------------------------------------------- */

static double
collective (const char *cluster, const char *op, uint32_t n_nodes, uint32_t n_axes)
{
  LsCollectiveSpec spec;
  g_autoptr (GError) error = NULL;
  ls_collective_spec_init (&spec);
  spec.cluster = g_strdup (cluster);
  spec.op = g_strdup (op);
  spec.n_nodes = n_nodes;
  for (guint i = 0; i < n_axes; i++)
    spec.slice[i] = 4;
  spec.min_bytes = spec.max_bytes = UINT64_C (256)
      << 20; /* with Simple: channels of LL128 have a limit of their own */
  g_autoptr (LsCollectiveRun) run = ls_collective_run_new (&spec, &error);
  double time = run ? (double) run->table.rows[0].time : NAN;
  ls_collective_spec_clear (&spec);
  return time;
}

/* knobs: key, value, ..., NULL; NAN: not on this cluster. */
static double
job (const char *cluster, const char *const *knobs)
{
  LsJobSpec spec;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_job_spec_init (&spec);
  ls_job_spec_set (&spec, "cluster", cluster, diags);
  for (; *knobs; knobs += 2)
    ls_job_spec_set (&spec, knobs[0], knobs[1], diags);
  spec.options.steady = true;
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
  double time = r ? r->report.step_time_s : NAN;
  ls_job_spec_clear (&spec);
  return time;
}

/* Offload only where it may matter; others are NAN. */
static void
run_all (const char *cluster, uint32_t n_nodes, uint32_t n_axes, const char *dtype, bool offloads,
         double ret_times[N_WORKLOADS])
{
  static const char *const ops[] = { "all-reduce", "all-gather", "all-to-all", "p2p" };
  g_autofree char *nodes = g_strdup_printf ("%u", n_nodes);
  const char *const small[] = { "model",
                                "llama3.1-8b:layers=1",
                                "nodes",
                                nodes,
                                "tp",
                                "2",
                                "dtype",
                                dtype,
                                n_axes > 0 ? "slice" : NULL,
                                n_axes == 2 ? "4x4" : "4x4x4",
                                NULL };
  const char *const cpu[]
      = { "model",   "llama3.1-8b:layers=1", "gpus",  "2",   "zero", "3", "dp-kind", "deepspeed",
          "offload", "parameters",           "dtype", dtype, NULL };
  const char *const nvme[]
      = { "model",   "llama3.1-8b:layers=1", "gpus",       "2",    "zero",  "3",   "dp-kind", "deepspeed",
          "offload", "parameters",           "offload-to", "nvme", "dtype", dtype, NULL };
  for (guint i = 0; i < G_N_ELEMENTS (ops); i++)
    ret_times[i] = collective (cluster, ops[i], n_nodes, n_axes);
  ret_times[4] = job (cluster, small);
  ret_times[5] = offloads ? job (cluster, cpu) : NAN;
  ret_times[6] = offloads ? job (cluster, nvme) : NAN;
}

/* What lies on the way of a GPU to the memory of its host. */
static bool
is_of_host (const char *key)
{
  return strstr (key, "cpu") || strstr (key, "nvme") || strstr (key, "pcie") || strstr (key, "host");
}

/* --- better is never slower ------------------------------------------------------------------ */

/* Figures that the workloads here do not depend on, on no cluster; the program says so of each. */
static const char *const without_effect[] = {
  "gpu.peak_flops.fp32",                   /* a number format that no matrix product here has         */
  "gpu.peak_flops.tf32",                   /* the same                                                */
  "gpu.vector_flops",                      /* streaming kernels wait for the memory                   */
  "fabric.link.bandwidth",                 /* as many links as the oversubscription asks for          */
  "fabric.link.latency",                   /* NCCL's figures are those of one leaf                     */
  "fabric.global_link.bandwidth",          /* all nodes are in one group of a dragonfly               */
  "fabric.global_link.latency",            /* the same                                                */
  "node.cpu.interconnect.latency",         /* a GPU's memory is at its own socket                  */
  "node.pcie.p2p_writes.bridge.bandwidth", /* both sockets have GPUs, and less is between these */
  "node.pcie.p2p_writes.bridge.latency",   /* none: it is in NCCL's                    */
  "node.pcie.p2p_writes.sockets.latency",  /* the same                                 */
};

static bool
is_without_effect (const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (without_effect); i++)
    if (strcmp (without_effect[i], key) == 0)
      return true;
  return false;
}

/* V100s with a faster NIC: NCCL's tuner takes rings by the rate of the line, and those of this generation do
 * not fill it (topologies/calib/nccl.set.json, ring_bus_per_nic), where trees were chosen before. */
static const char *const chosen_worse[]
    = { "aws-p3dn:node.nics.link.bandwidth=", "azure-ndv2:node.nics.link.bandwidth=" };

static bool
is_chosen_worse (const char *changed)
{
  for (guint i = 0; i < G_N_ELEMENTS (chosen_worse); i++)
    if (g_str_has_prefix (changed, chosen_worse[i]))
      return true;
  return false;
}

/* What was tried of a kind of figure. */
typedef struct {
  guint n_tried;
  bool is_faster;
} Kind;

static Kind *
kind_of (GHashTable *kinds, const char *key)
{
  Kind *kind = g_hash_table_lookup (kinds, key);
  if (!kind)
    g_hash_table_insert (kinds, g_strdup (key), kind = g_new0 (Kind, 1));
  return kind;
}

/* Of a kind that is known to matter, or not to, a few clusters show that better is not slower. */
static bool
is_shown (const Kind *kind, const char *key)
{
  return kind->n_tried >= ls_test_cases (3, 30) && (kind->is_faster || is_without_effect (key));
}

static void
check_change (const char *cluster, const Change *change, uint32_t n_nodes, uint32_t n_axes, const char *dtype,
              const double before[N_WORKLOADS], GHashTable *kinds)
{
  double after[N_WORKLOADS];
  Kind *kind = kind_of (kinds, change->key);
  if (is_shown (kind, change->key))
    return;
  g_autofree char *changed = g_strdup_printf ("%s:%s", cluster, change->change);
  bool is_faster = false;
  run_all (changed, n_nodes, n_axes, dtype, is_of_host (change->key), after);
  for (guint i = 0; i < N_WORKLOADS; i++) {
    if (isnan (after[i])) /* refused, as the same job before, or as the leaves have not that many ports */
      continue;
    if (!is_chosen_worse (changed) && !LS_CHECK (after[i] <= before[i] * (1 + 1e-9)))
      printf ("# %s: workload %u took %.9g, now %.9g\n", changed, i, before[i], after[i]);
    is_faster = is_faster || after[i] < before[i];
  }
  kind->n_tried++;
  kind->is_faster |= is_faster;
}

static void
check_cluster (const char *cluster, GHashTable *kinds)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load (cluster, diags);
  if (!LS_CHECK (h != NULL))
    return;
  const double *peak = h->spec.gpu.peak_flops;
  bool has_limit
      = h->spec.gpu.power_limited_flops > 0; /* of 16 bits: more of these a clock, fewer clocks a second */
  const char *dtype = has_limit  ? (peak[LS_DTYPE_BF16] > 0 ? "bf16" : "fp16")
      : peak[LS_DTYPE_NVFP4] > 0 ? "nvfp4"
      : peak[LS_DTYPE_FP8] > 0   ? "fp8"
      : peak[LS_DTYPE_BF16] > 0  ? "bf16"
                                 : "fp16";
  uint32_t n_nodes = h->spec.nics.n > 0 || h->spec.torus.nics_per_host > 0 ? 2 : 1;
  uint32_t n_axes = h->spec.interior == LS_INTERIOR_TORUS ? h->spec.torus.n_axes : 0;
  double before[N_WORKLOADS];
  g_autoptr (GArray) changes = changes_of (cluster);
  LS_CHECK (changes->len > 5);
  run_all (cluster, n_nodes, n_axes, dtype, true, before);
  for (guint i = 0; i < changes->len; i++)
    check_change (cluster, &g_array_index (changes, Change, i), n_nodes, n_axes, dtype, before, kinds);
}

static void
better_hardware_is_never_slower (void)
{
  g_autoptr (GHashTable) kinds = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_autoptr (GPtrArray) clusters = ls_data_list (LS_DATA_CLUSTERS);
  for (guint i = 0; i < clusters->len; i++)
    check_cluster (((LsDataEntry *) clusters->pdata[i])->name, kinds);
  LS_CHECK (clusters->len > 20 && g_hash_table_size (kinds) > 20);
  GHashTableIter iter;
  gpointer key, value;
  g_hash_table_iter_init (&iter, kinds);
  while (g_hash_table_iter_next (&iter, &key, &value))
    if (!LS_CHECK (((Kind *) value)->is_faster != is_without_effect (key)))
      printf ("# %s: %s\n", (char *) key, ((Kind *) value)->is_faster ? "has an effect" : "has none");
}

/* --- what changes nothing is told ------------------------------------------------------------- */

static char *
note_of_job (const char *cluster)
{
  LsJobSpec spec;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  ls_job_spec_init (&spec);
  ls_job_spec_set (&spec, "cluster", cluster, diags);
  ls_job_spec_set (&spec, "model", "llama3.1-8b:layers=1", diags);
  ls_job_spec_set (&spec, "gpus", "8", diags);
  ls_job_spec_set (&spec, "tp", "2", diags);
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
  if (LS_CHECK (r != NULL))
    ls_override_note_job (&spec, r, "the step", NULL, notes);
  ls_job_spec_clear (&spec);
  g_ptr_array_add (notes, NULL);
  return g_strjoinv ("|", (char **) notes->pdata);
}

static void
what_changes_nothing_is_told (void)
{
  static const struct {
    const char *cluster, *note;
  } cases[] = {
    { "dgx-h100:node.nvswitch.link.bandwidth=50GB/s", "" },
    { "dgx-h100:nodes=4", "" },
    { "frontier:nodes=1024", "" },
    { "frontier:nodes=100000",
      "nodes=100000 changes nothing: the job is simulated on the nodes that it takes (1); --nodes 100000: 100000 "
      "nodes fill 782 groups of 128 nodes; the machine has 74 (\"groups\")" },
    { "dgx-h100:node.nics.link.bandwidth=100GB/s",
      "node.nics.link.bandwidth=100GB/s does not change the step: nothing crosses such a link here" },
    { "dgx-h100:gpu=\"h100:vector_flops=100TFLOP/s\",node.nvswitch.link.bandwidth=50GB/s",
      "gpu=\"h100:vector_flops=100TFLOP/s\" does not change the step: it is the same without it" },
    { "dgx-h100:gpu.reserved=1GiB",
      "gpu.reserved=1GiB does not change the step: that is what it is without it" },
    { "dgx-h100:node.nvswitch.link.latency=0.3us",
      "node.nvswitch.link.latency=0.3us does not change the step: that is what it is without it" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *note = note_of_job (cases[i].cluster);
    LS_CHECK_STR (note, cases[i].note);
  }
}

/* --- the NICs of 64 GPUs ------------------------------------------------------------------------ */

static void
faster_nics_speed_up_every_operation (void)
{
  static const char *const ops[] = { "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "p2p" };
  for (guint i = 0; i < G_N_ELEMENTS (ops); i++) {
    uint32_t n_nodes = strcmp (ops[i], "p2p") == 0 ? 2 : 8;
    double now = collective ("dgx-h100", ops[i], n_nodes, 0);
    double faster = collective ("dgx-h100:node.nics.link.bandwidth=100GB/s", ops[i], n_nodes, 0);
    double wider = collective ("dgx-h100:node.nics.link.bandwidth=100GB/s,node.pcie.link.bandwidth=126GB/s",
                               ops[i], n_nodes, 0);
    double slower = collective ("dgx-h100:node.nics.link.bandwidth=25GB/s", ops[i], n_nodes, 0);
    if (!LS_CHECK (faster < 0.95 * now && wider <= faster && slower > 1.5 * now))
      printf ("# %s: %g, with faster NICs %g, and PCIe %g, with slower NICs %g\n", ops[i], now, faster, wider,
              slower);
  }
}

/* --- as --sensitivity says --------------------------------------------------------------------- */

/* A percent more of all links of a kind, by hand. */
static const struct {
  const char *cluster, *changes;
  LsScale scale;
} percents[] = {
  { "dgx-h100", "node.nics.link.bandwidth=50.5GB/s,fabric.link.bandwidth=50.5GB/s", LS_SCALE_NIC_BANDWIDTH },
  { "dgx-h100", "node.nvswitch.link.bandwidth=25.25GB/s", LS_SCALE_NVLINK_BANDWIDTH },
  { "dgx-a100-80g", "node.nics.link.bandwidth=25.25GB/s,fabric.link.bandwidth=25.25GB/s",
    LS_SCALE_NIC_BANDWIDTH },
  { "dgx-1-v100", "node.nvlink_mesh.link.bandwidth=25.25GB/s", LS_SCALE_NVLINK_BANDWIDTH },
  { "dgx-b200", "node.nics.link.bandwidth=50.5GB/s,fabric.link.bandwidth=50.5GB/s", LS_SCALE_NIC_BANDWIDTH },
  { "dgx-h200", "gpu=\"h200:hbm_bandwidth=4.848TB/s\"", LS_SCALE_HBM_BANDWIDTH },
};

static void
a_percent_by_hand_is_the_sensitivity (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (percents); i++) {
    LsJobSpec spec;
    g_autoptr (GError) error = NULL;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    bool is_volta = strcmp (percents[i].cluster, "dgx-1-v100") == 0;
    const char *const knobs[] = { "model", "llama3.1-8b:layers=2",     "nodes", "2", "tp", "4",
                                  "dtype", is_volta ? "fp16" : "bf16", NULL };
    ls_job_spec_init (&spec);
    ls_job_spec_set (&spec, "cluster", percents[i].cluster, diags);
    for (guint k = 0; knobs[k]; k += 2)
      ls_job_spec_set (&spec, knobs[k], knobs[k + 1], diags);
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
    g_autoptr (LsSensitivityTable) t = r ? ls_sensitivity_new (&spec, r, 1, &error) : NULL;
    LS_CHECK_NO_ERROR (error);
    g_autofree char *changed = g_strdup_printf ("%s:%s", percents[i].cluster, percents[i].changes);
    double by_hand = job (changed, knobs);
    if (t && !LS_CHECK (fabs (by_hand - t->rows[percents[i].scale].up_s) < 2e-12))
      printf ("# %s: %.15g s, by --sensitivity %.15g s\n", changed, by_hand, t->rows[percents[i].scale].up_s);
    LS_CHECK (r && by_hand <= r->report.step_time_s);
    ls_job_spec_clear (&spec);
  }
}

LS_TEST_SUITE (LS_TEST (better_hardware_is_never_slower), LS_TEST (what_changes_nothing_is_told),
               LS_TEST (faster_nics_speed_up_every_operation), LS_TEST (a_percent_by_hand_is_the_sensitivity))
