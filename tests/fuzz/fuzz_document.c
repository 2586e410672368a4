/* Any bytes as a JSON file of a kind: read, or refused with reasons. FUZZ_TARGET is the kind. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "data/jobs/read_jobs.h"
#include "data/jobs/read_model.h"
#include "data/jobs/read_placement.h"
#include "data/jobs/read_scaling.h"
#include "data/machines/machines.h"
#include "data/measured/read_residuals.h"

static const LsGpu any_gpu
    = { .vector_flops = 1e13, .hbm_bytes_per_s = 1e12, .hbm_efficiency = 0.9, .n_sm = 100 };

/* What is read gives every kernel a time. */
static bool
read_calibration (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsCalibration c;
  if (!ls_calibration_read (doc, &c, diags))
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
  if (!ls_gpu_read (doc, &gpu, diags))
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
  uint64_t vocab = ls_model_padded_vocab (&m, 1), params = ls_model_params (&m, vocab);
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
  if (!ls_nccl_read (doc, &nccl, diags))
    return false;
  g_assert (nccl.ring_bus_intra > 0 && nccl.base_all_reduce >= 0);
  ls_nccl_clear (&nccl);
  return true;
}

static bool
read_nccl_tables (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsNcclTables tables;
  if (!ls_nccl_tables_read (doc, &tables, diags))
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
  const LsIntervalJob job = { "volta", "Megatron-LM", 0.4 };
  LsInterval interval;
  ls_interval_find (r, NULL, &job, &interval);
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
  if (!ls_scaling_read (doc, &law, diags))
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
  if (!ls_reliability_read (doc, &r, diags))
    return false;
  for (guint i = 0; i < r.causes->len; i++)
    g_assert (g_array_index (r.causes, LsFailureCause, i).per_day >= 0);
  ls_reliability_clear (&r);
  return true;
}

static const struct {
  const char *target, *file;
  bool (*read) (const LsJsonDoc *doc, LsDiagList *diags);
} kinds[] = {
  { "calibration", "fuzz.json", read_calibration },
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
};

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (kinds[i].target, FUZZ_TARGET) == 0) {
      fuzz_read (data, n, kinds[i].file, kinds[i].read);
      return 0;
    }
  fuzz_fail ("no kind of file: %s", FUZZ_TARGET);
}
