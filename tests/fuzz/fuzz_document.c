/* Any bytes as a JSON file of a kind: read, or refused with reasons. fuzz_target is the kind. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "captured_bundle.h"
#include "cluster_check.h"
#include "nccl_tables.h"
#include "tiny_cluster.h"

#include "analysis/conservation.h"
#include "cluster/route.h"
#include "data/jobs/read_jobs.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_placement.h"
#include "data/machines/machines.h"
#include "data/traces/traces.h"
#include "exec/run.h"
#include "lower/lower.h"

static const LsGpu any_gpu
    = { .vector_flops = 1e13, .hbm_bytes_per_s = 1e12, .hbm_efficiency = 0.9, .n_sm = 100 };

/* What is read gives every kernel a time. */
static bool
read_calibration (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsCalibration c;
  if (!ls_data_file_read (&ls_calibration_file, doc, &c, diags))
    return false;
  for (int kind = 0; kind < LS_N_KERNEL_KINDS; kind++) {
    LsKernel k = ls_kernel_stream ("any", (LsKernelKind) kind, LS_DTYPE_FP16, 1024, 1024, 4e6, 2e9);
    k.k = 64;
    k.batch = 1;
    LsKernelCost cost = ls_kernel_cost (&c, &any_gpu, &k);
    g_assert (cost.alone >= 0 && ls_kernel_time_beside (&cost, 0.5) >= cost.alone);
  }
  ls_calibration_clear (&c);
  return true;
}

static bool
read_gpu (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsGpu gpu;
  if (!ls_data_file_read (&ls_gpu_file, doc, &gpu, diags))
    return false;
  g_assert (gpu.hbm_bytes_per_s > 0 && gpu.hbm_efficiency > 0 && gpu.hbm_efficiency <= 1);
  ls_gpu_clear (&gpu);
  return true;
}

/* Also what does not say that it is one. */
static bool
read_hf (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  LsModel m;
  ls_is_hf_config (doc);
  if (!ls_model_read_hf (doc, &m, notes, diags))
    return false;
  g_assert (m.n_layers > 0 && m.hidden > 0 && m.n_heads % m.n_kv_heads == 0);
  ls_model_notes_drop_length (notes);
  ls_model_clear (&m);
  return true;
}

/* Every job can be pointed at, and at keys that it may lack. */
static bool
read_jobs (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsJobsFile f;
  if (!ls_jobs_read (doc, &f, diags))
    return false;
  g_assert (f.jobs->len >= 1 && f.jobs->len <= LS_JOBS_MAX);
  g_autoptr (LsDiagList) own = ls_diag_list_new ();
  for (guint i = 0; i < f.jobs->len; i++) {
    ls_jobs_diag (&f, i, "nodes", false, LS_ERROR_INPUT, "nodes\nnote: of a job", own);
    ls_jobs_diag (&f, i, "model", true, LS_ERROR_INPUT, "a model", own);
  }
  guint n_traffic = f.traffic ? f.traffic->len : 0;
  for (guint i = 0; i < n_traffic; i++)
    ls_jobs_diag_traffic (&f, i, "to", LS_ERROR_INPUT, "where to", own);
  g_assert (ls_diag_list_n (own) == 2 * f.jobs->len + n_traffic);
  ls_jobs_clear (&f);
  return true;
}

/* Ours or of Hugging Face. What is read can be counted: parameters do not wrap, FLOPs are finite. */
static bool
read_model (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  LsModel m;
  if (!ls_model_read (doc, &m, notes, diags))
    return false;
  uint64_t vocab = ls_model_padded_vocab (&m, 0, 1), params = ls_model_params (&m, vocab);
  g_assert (params >= ls_model_layer_params (&m, 0) && params >= ls_model_linear_params (&m, vocab));
  double flops = ls_model_flops (&m, vocab, m.seq, 1, false);
  g_assert (isfinite (flops) && flops > 0 && ls_model_flops (&m, vocab, m.seq, 1, true) <= flops);
  ls_model_clear (&m);
  return true;
}

static bool
read_nccl (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsNccl nccl;
  if (!ls_data_file_read (&ls_nccl_file, doc, &nccl, diags))
    return false;
  g_assert (nccl.ring_bus_intra > 0 && nccl.base_all_reduce >= 0);
  ls_nccl_clear (&nccl);
  return true;
}

static bool
read_nccl_tables (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsNcclTables tables;
  if (!ls_data_file_read (&ls_nccl_tables_file, doc, &tables, diags))
    return false;
  g_assert (tables.nvlink > 0 && tables.rates_intra[0] > 0 && tables.rates_intra[LS_NCCL_MAX_RATES] == 0);
  ls_nccl_tables_clear (&tables);
  return true;
}

/* What was read makes an interval, or there is a reason. */
static bool
read_residuals (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsResiduals) r = ls_residuals_read (doc, diags);
  if (!r)
    return false;
  const LsIntervalJob job = { .architecture = "volta", .software = "Megatron-LM", .mfu = 0.4 };
  LsInterval interval;
  ls_interval_find (r, &job, &interval);
  g_assert (interval.none || (interval.low > 0 && interval.low <= interval.high));
  ls_interval_clear (&interval);
  return true;
}

/* Each rank once; a list no longer than lists may be. */
static bool
read_placement (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsAllocation) a = ls_placement_read (doc, diags);
  g_assert (!a || (a->n_seats > 0 && a->n_seats <= LS_ALLOCATION_MAX_NODES));
  g_assert (!a || ls_allocation_cluster_nodes (a) <= LS_ALLOCATION_MAX_NODES);
  return a != NULL;
}

/* No loss is below what the model can reach, and more tokens never leave more. */
static bool
read_scaling (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsScalingLaw law;
  if (!ls_data_file_read (&ls_scaling_file, doc, &law, diags))
    return false;
  double floor = ls_scaling_floor (&law, 1e9);
  g_assert (floor >= 0);
  if (ls_scaling_has_loss (&law)) {
    double few = ls_scaling_loss (&law, 1e9, 1e9), many = ls_scaling_loss (&law, 1e9, 1e12);
    g_assert (many >= floor && many <= few);
  }
  ls_scaling_law_clear (&law);
  return true;
}

/* Rates of all causes are known. */
static bool
read_reliability (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsReliability r;
  if (!ls_data_file_read (&ls_reliability_file, doc, &r, diags))
    return false;
  for (guint i = 0; i < r.causes->len; i++)
    g_assert (g_array_index (r.causes, LsFailureCause, i).per_day >= 0);
  ls_reliability_clear (&r);
  return true;
}

/* --- clusters -------------------------------------------------------------------------------------- */

/* What is read and valid can be built, unless faults or a list leave something apart; small ones are, and
 * every invariant of theirs holds. */

#define MAX_GPUS  64
#define MAX_PARTS 64 /* of a kind in a node */

static void
build (LsClusterSpec *spec)
{
  spec->n_nodes = MIN (spec->n_nodes, 4);
  bool is_small = spec->gpus_per_node * spec->n_nodes <= MAX_GPUS && spec->server.nvswitch_planes <= MAX_PARTS
      && spec->nics.n <= MAX_PARTS && spec->server.pcie_switches <= MAX_PARTS
      && spec->server.cpu_sockets <= MAX_PARTS && spec->server.nvme_drives <= MAX_PARTS;
  g_autoptr (GError) error = NULL;
  if (!ls_cluster_spec_validate (spec, &error)) {
    g_assert (error != NULL);
    return;
  }
  if (!is_small)
    return;
  g_autoptr (LsCluster) c = ls_cluster_build (spec, &error);
  g_assert (c != NULL || (error != NULL && (spec->network.faults || spec->fabric == LS_FABRIC_LIST)));
  if (!c || c->links->len > 20000)
    return;
  ls_cluster_check (c);
  LsRoute route;
  ls_route (c, 0, c->n_gpus - 1, 0, &route);
  g_assert (c->n_gpus == 1 || route.n_hops > 0);
  ls_route_host_memory (c, 0, true, &route);
}

static bool
read_cluster (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsClusterSpec spec;
  if (!ls_data_file_read (&ls_cluster_file, doc, &spec, diags))
    return false;
  build (&spec);
  ls_cluster_spec_clear (&spec);
  return true;
}

/* --- strategies ------------------------------------------------------------------------------------ */

/* What is read is resolved for a small model on 64 GPUs: refused with reasons, or lowered (if small) to a plan
 * that its own checker accepts and that keeps memory and FLOPs. */

#define N_GPUS        64
#define MAX_INSTANCES 2000

static const LsModel models[2] = {
  { .n_layers = 8,
    .hidden = 512,
    .n_heads = 8,
    .n_kv_heads = 8,
    .head_dim = 64,
    .ffn = 2048,
    .vocab = 5000,
    .seq = 256,
    .mlp = LS_MLP_GELU,
    .position = LS_POSITION_LEARNED,
    .attention = LS_ATTENTION_UNFUSED,
    .linear_bias = true,
    .tied_embeddings = true,
    .dropout = true },
  { .n_layers = 6,
    .hidden = 512,
    .n_heads = 8,
    .n_kv_heads = 4,
    .head_dim = 64,
    .ffn = 1536,
    .vocab = 5001,
    .seq = 256,
    .mlp = LS_MLP_SWIGLU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH },
};

static void
lower_small (const LsModel *m, const LsStrategy *s)
{
  double micro_batches = (double) s->global_batch / s->dp / s->micro_batch;
  if (micro_batches * s->pp * s->vpp > MAX_INSTANCES)
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsPlan) plan = ls_lower (m, s, NULL, &error);
  if (!plan) {
    g_assert (error != NULL);
    return;
  }
  if (!ls_plan_check (plan, &error))
    fuzz_fail ("a lowered plan is broken: %s", error->message);
  g_autoptr (LsMemory) memory = ls_memory_new (&(LsMemoryInput) { .plan = plan });
  if (!ls_conserves_memory (memory, &error) || !ls_conserves_flops (plan, m, s, &error))
    fuzz_fail ("%s", error->message);
}

static void
resolve (const LsStrategy *read, const LsModel *m)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy s;
  ls_strategy_copy (&s, read);
  bool ok = ls_strategy_resolve (&s, m, N_GPUS, 8, diags);
  g_assert (ok == (ls_diag_list_n (diags) == 0));
  if (ok)
    lower_small (m, &s);
  ls_strategy_clear (&s);
}

static bool
read_strategy (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsStrategy s;
  if (!ls_strategy_read (doc, &s, diags))
    return false;
  for (guint i = 0; i < G_N_ELEMENTS (models); i++)
    resolve (&s, &models[i]);
  ls_strategy_clear (&s);
  return true;
}

/* --- traces ---------------------------------------------------------------------------------------- */

/* What is read is a legal plan; it is written as a file that reads back as one that is written alike; if it is
 * small it runs, to a result, an error or a deadlock report. */

#define MAX_OPS 5000

static char *
format (const LsTrace *t)
{
  LsTraceHead head = { .name = t->name,
                       .source = t->source,
                       .mesh = &t->mesh,
                       .model = t->has_model ? &t->model : NULL,
                       .strategy = t->has_model ? &t->strategy : NULL };
  g_autoptr (GError) error = NULL;
  char *text = ls_trace_format (t->plan, &head, &error);
  if (!text && error->code != LS_ERROR_UNSUPPORTED)
    fuzz_fail ("not written: %s", error->message);
  return text;
}

static void
check_round_trip (const LsTrace *t)
{
  g_autofree char *once = format (t);
  if (!once)
    return;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (once, strlen (once), "fuzz.json", diags);
  g_autoptr (LsTrace) again = doc ? ls_trace_read (doc, 0, diags) : NULL;
  g_autofree char *said = ls_diag_list_format (diags), *twice = again ? format (again) : NULL;
  if (g_strcmp0 (once, twice) != 0)
    fuzz_fail ("written as\n%s\nread back with\n%s\nas\n%s", once, said, twice ? twice : "nothing");
}

static void
run (const LsPlan *plan)
{
  static LsCluster *cluster;
  static LsCalibration calibration;
  static const LsNccl nccl = {
    .tables = LS_TEST_NCCL_VOLTA,
    .channels_ring = 8,
    .channels_net = 2,
    .channels_p2p = 2,
    .ring_bus_intra = 200e9,
    .ring_bus_per_nic = 20e9,
    .p2p_intra = 200e9,
    .p2p_inter = 20e9,
    .sm_share_per_channel = 0.0093,
    .hbm_per_wire_all_reduce = 3,
    .hbm_per_wire_p2p = 2,
  };
  LsClusterSpec spec = tiny_dgx (2);
  if (!cluster) {
    cluster = ls_cluster_build (&spec, NULL);
    ls_calibration_init_roofline (&calibration);
  }
  LsRunOptions options;
  ls_run_options_init (&options);
  options.max_memory_bytes = 64 << 20;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsTimeline) t = ls_run (plan, cluster, &calibration, &nccl, &options, NULL, &error);
  if (!t && error->code != LS_ERROR_DEADLOCK && error->code != LS_ERROR_LIMIT
      && error->code != LS_ERROR_CONFLICT)
    fuzz_fail ("a legal plan: %s", error->message);
}

static bool
check_trace (const LsTrace *t)
{
  if (!t)
    return false;
  g_autoptr (GError) error = NULL;
  if (!ls_plan_check (t->plan, &error))
    fuzz_fail ("an illegal plan: %s", error->message);
  if (ls_plan_n_op_instances (t->plan) > MAX_OPS)
    return true;
  check_round_trip (t);
  run (t->plan);
  return true;
}

static bool
read_trace (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsTrace) t = ls_trace_read (doc, 0, diags);
  return check_trace (t);
}

static bool
read_captured (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsTrace) t = captured_bundle_parse (doc, diags);
  return check_trace (t);
}

static const struct {
  const char *target, *file;
  bool (*read) (const LsJsonDoc *doc, LsDiagList *diags);
} kinds[] = {
  { "calibration", "fuzz.json", read_calibration },
  { "captured", "fuzz.json", read_captured },
  { "cluster", "fuzz.json", read_cluster },
  { "gpu", "fuzz.json", read_gpu },
  { "hf", "folder/config.json", read_hf },
  { "jobs", "fuzz.json", read_jobs },
  { "model", "fuzz.json", read_model },
  { "nccl", "fuzz.json", read_nccl },
  { "nccl_generation", "fuzz.json", read_nccl_tables },
  { "placement", "fuzz.json", read_placement },
  { "reliability", "fuzz.json", read_reliability },
  { "residuals", "residuals.json", read_residuals },
  { "scaling", "fuzz.json", read_scaling },
  { "strategy", "fuzz.json", read_strategy },
  { "trace", "fuzz.json", read_trace },
};

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (kinds[i].target, fuzz_target) == 0) {
      fuzz_read (data, n, kinds[i].file, kinds[i].read);
      return 0;
    }
  fuzz_fail ("no kind of file: %s", fuzz_target);
}
