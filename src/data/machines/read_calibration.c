/* data/machines/read_calibration.c — topologies/calib/, jitter/ and reliability/ read: kernels, also by how
 * they touch memory, residuals; how parts differ, and how they fail. */
#include "data/machines/machines.h"

#include <math.h>
#include <string.h>

#include "compute/measured.h"
#include "data/datadir.h"

#define OF_FIT(key_, kind_) #key_, kind_, offsetof(LsKindFit, key_)
const LsField ls_kind_fit_fields[] = {
  { "fitted", LS_FIELD_BOOL, offsetof (LsKindFit, is_fitted), .required = true },
  { OF_FIT (compute_efficiency, LS_FIELD_DOUBLE), .above = true, .max = 1 },
  { OF_FIT (flops_half, LS_FIELD_DOUBLE), .max = 1e24 },
  { OF_FIT (depth_half, LS_FIELD_DOUBLE), .max = 1e9 },
  { OF_FIT (width_half, LS_FIELD_DOUBLE), .max = 1e9 },
  { OF_FIT (wide_slow, LS_FIELD_DOUBLE), .max = 10 },
  { OF_FIT (wide_head, LS_FIELD_DOUBLE), .max = 1e9 },
  { OF_FIT (width_step, LS_FIELD_DOUBLE), .max = 1e9 },
  { OF_FIT (causal_block, LS_FIELD_DOUBLE), .max = 1e9 },
  { OF_FIT (tail, LS_FIELD_DOUBLE), .max = 10 },
  { OF_FIT (tile_half, LS_FIELD_DOUBLE), .max = 1e9 },
  { OF_FIT (square_tile, LS_FIELD_DOUBLE), .max = 4096 },
  { OF_FIT (wave_blind, LS_FIELD_BOOL) },
  { OF_FIT (wave_rounding, LS_FIELD_DOUBLE), .max = 1 },
  { OF_FIT (split_launch, LS_FIELD_TIME), .max = (double) LS_S },
  { OF_FIT (throttle, LS_FIELD_DOUBLE), .max = 10 },
  { OF_FIT (burst, LS_FIELD_TIME), .max = (double) LS_S },
  { OF_FIT (overlap, LS_FIELD_DOUBLE), .max = 1e3 },
  { OF_FIT (wide_exposed, LS_FIELD_DOUBLE), .max = 1 },
  { OF_FIT (memory_efficiency, LS_FIELD_DOUBLE), .above = true, .max = 1 },
  { OF_FIT (bytes_half, LS_FIELD_DOUBLE), .max = 1e18 },
  { OF_FIT (cache_bytes, LS_FIELD_DOUBLE), .max = 1e18 },
  { OF_FIT (cache_speed, LS_FIELD_DOUBLE), .max = 1e3 },
  { OF_FIT (launch, LS_FIELD_TIME), .max = (double) LS_S },
  { OF_FIT (matrix_launch, LS_FIELD_TIME), .max = (double) LS_S },
  { OF_FIT (timed_host, LS_FIELD_TIME), .max = (double) LS_S },
  { OF_FIT (timed_efficiency, LS_FIELD_DOUBLE), .max = 1e3 },
  { OF_FIT (min_work, LS_FIELD_DOUBLE), .max = 1e24 },
  { OF_FIT (max_work, LS_FIELD_DOUBLE), .max = 1e24 },
  { OF_FIT (mape, LS_FIELD_DOUBLE), .max = 1e6 },
  { "source", LS_FIELD_IGNORED, .required = true },
  { .table = "calibration.kind_fit" },
};

#define ENTRY(slot_) LS_FIELD_OBJECT, offsetof (LsCalibration, kind[slot_]), .fields = ls_kind_fit_fields

#define KIND(key_, kind_)                                                                                    \
  {                                                                                                          \
    key_, ENTRY (kind_), .default_text = "roofline", .meaning = "coefficients of this kind of kernel"        \
  }

#define SIDE(kernel_, backward_)                                                                             \
  ENTRY (LS_ENTRY_ATTENTION + 2 * (kernel_ - 1) + backward_), .default_text = "not known"
#define ATTENTION(key_, kernel_)                                                                             \
  { key_ "_fwd", SIDE (kernel_, 0) },                                                                        \
  {                                                                                                          \
    key_ "_bwd", SIDE (kernel_, 1)                                                                           \
  }

/* In the order of LsCalibrationEntry. */
static const LsField kernel_fields[] = {
  LS_KERNEL_KINDS (KIND),
  { "gemm_fp8", ENTRY (LS_ENTRY_GEMM_FP8) },
  { "gemm_fp8_blocks", ENTRY (LS_ENTRY_GEMM_FP8_BLOCKS) },
  { "gemm_nvfp4", ENTRY (LS_ENTRY_GEMM_NVFP4) },
  { "attention_fp8", ENTRY (LS_ENTRY_ATTENTION_FP8) },
  { "vllm_rmsnorm", ENTRY (LS_ENTRY_VLLM_RMSNORM) },
  { "vllm_silu_mul", ENTRY (LS_ENTRY_VLLM_SILU_MUL) },
  ATTENTION ("fa1", LS_ATTENTION_KERNEL_FA1),
  ATTENTION ("triton", LS_ATTENTION_KERNEL_TRITON),
  ATTENTION ("fa2", LS_ATTENTION_KERNEL_FA2),
  ATTENTION ("fa3", LS_ATTENTION_KERNEL_FA3),
  ATTENTION ("pallas", LS_ATTENTION_KERNEL_PALLAS),
  ATTENTION ("aotriton", LS_ATTENTION_KERNEL_AOTRITON),
  ATTENTION ("cudnn", LS_ATTENTION_KERNEL_CUDNN),
  ATTENTION ("cudnn_fp8", LS_ATTENTION_KERNEL_CUDNN_FP8),
  ATTENTION ("cudnn_mxfp8", LS_ATTENTION_KERNEL_CUDNN_MXFP8),
  { .table = "calibration.kernel" },
};
G_STATIC_ASSERT (G_N_ELEMENTS (kernel_fields) == LS_N_ENTRIES + 1);

const char *
ls_entry_key (guint slot)
{
  return kernel_fields[slot].key;
}

#define MAX_SIZE                       1e9 /* of a dimension */
#define MEASURED(key_, kind_, member_) key_, kind_, offsetof (LsMeasuredKernel, member_)

static const LsEnumName dtype_names[] = { { "fp32", LS_DTYPE_FP32 },
                                          { "tf32", LS_DTYPE_TF32 },
                                          { "fp16", LS_DTYPE_FP16 },
                                          { "bf16", LS_DTYPE_BF16 },
                                          { "fp8", LS_DTYPE_FP8 },
                                          { "nvfp4", LS_DTYPE_NVFP4 },
                                          { NULL } };

/* kernelbench's own attention is a kernel that no job runs: it is none of these. */
const LsEnumName ls_measured_attentions[] = { { "fa1", LS_ATTENTION_KERNEL_FA1 },
                                              { "triton", LS_ATTENTION_KERNEL_TRITON },
                                              { "fa2", LS_ATTENTION_KERNEL_FA2 },
                                              { "fa3", LS_ATTENTION_KERNEL_FA3 },
                                              { "aotriton", LS_ATTENTION_KERNEL_AOTRITON },
                                              { "cudnn", LS_ATTENTION_KERNEL_CUDNN },
                                              { NULL } };

static const LsField measured_fields[] = {
  { MEASURED ("kernel", LS_FIELD_ENUM, kind), .required = true, .names = ls_kernel_kind_names },
  { MEASURED ("name", LS_FIELD_STRING, name) },
  { MEASURED ("implementation", LS_FIELD_ENUM, implementation), .names = ls_measured_attentions },
  { MEASURED ("dtype", LS_FIELD_ENUM, dtype), .required = true, .names = dtype_names },
  { MEASURED ("m", LS_FIELD_UINT64, m), .required = true, .min = 1, .max = MAX_SIZE },
  { MEASURED ("n", LS_FIELD_UINT64, n), .required = true, .min = 1, .max = MAX_SIZE },
  { MEASURED ("k", LS_FIELD_UINT64, k), .max = MAX_SIZE },
  { MEASURED ("batch", LS_FIELD_UINT64, batch), .max = MAX_SIZE },
  { MEASURED ("flops", LS_FIELD_DOUBLE, flops), .max = 1e24 },
  { MEASURED ("bytes", LS_FIELD_DOUBLE, bytes), .required = true, .above = true, .max = 1e18 },
  { MEASURED ("time", LS_FIELD_TIME, time), .required = true, .above = true, .max = (double) (1000 * LS_S) },
  { .table = "calibration.measured" },
};

const LsEnumName ls_gemms_names[] = {
  { "tiles", LS_GEMMS_TILES },
  { "clusters", LS_GEMMS_CLUSTERS },
  { "persistent", LS_GEMMS_PERSISTENT },
  { NULL },
};

#define AROUND(key_, kind_, member_) key_, kind_, offsetof (LsCalibration, around.member_), .above = true
static const LsField around_fields[] = {
  { AROUND ("host_launch", LS_FIELD_TIME, host_launch), .max = (double) LS_S },
  { AROUND ("kernel_gap", LS_FIELD_TIME, kernel_gap), .max = (double) LS_S },
  { AROUND ("graph_gap", LS_FIELD_TIME, graph_gap), .max = (double) LS_S },
  { AROUND ("memcpy_share", LS_FIELD_DOUBLE, memcpy_share), .max = 1 },
  { AROUND ("copy_duplex", LS_FIELD_DOUBLE, copy_duplex), .max = 1 },
  { AROUND ("priority_wait", LS_FIELD_TIME, priority_wait), .max = (double) LS_S },
  { AROUND ("streams_in_layer", LS_FIELD_DOUBLE, streams_in_layer), .max = 16 },
  { "gemms", LS_FIELD_ENUM, offsetof (LsCalibration, around.gemms), .names = ls_gemms_names },
  { AROUND ("lost_tiles", LS_FIELD_DOUBLE, lost_tiles), .max = 16 },
  { AROUND ("lost_clusters", LS_FIELD_DOUBLE, lost_clusters), .max = 16 },
  { AROUND ("lost_told", LS_FIELD_DOUBLE, lost_told), .max = 16 },
  { AROUND ("waves", LS_FIELD_DOUBLE, waves), .max = 16 },
  { "source", LS_FIELD_SOURCES },
  { .table = "calibration.around" },
};

const LsField ls_calibration_fields[] = {
  LS_FIELDS_HEADER (LsCalibration),
  { "provenance", LS_FIELD_IGNORED, .expected = "object" },
  { "sustained", LS_FIELD_DOUBLE, offsetof (LsCalibration, sustained), .above = true, .max = 1 },
  { "sustained_fp8", LS_FIELD_DOUBLE, offsetof (LsCalibration, sustained_fp8), .above = true, .max = 1 },
  { "sustained_nvfp4", LS_FIELD_DOUBLE, offsetof (LsCalibration, sustained_nvfp4), .above = true, .max = 1 },
  { "gemm_unaligned", LS_FIELD_DOUBLE, offsetof (LsCalibration, gemm_unaligned), .above = true, .max = 1 },
  { "attention_masked", LS_FIELD_DOUBLE, offsetof (LsCalibration, attention_masked), .above = true,
    .max = 1 },
  { "around", LS_FIELD_OBJECT, 0, .fields = around_fields },
  { "kernels", LS_FIELD_OBJECT, 0, .required = true, .fields = kernel_fields },
  { "measured", LS_FIELD_ARRAY, offsetof (LsCalibration, measured), .fields = measured_fields,
    .element_size = sizeof (LsMeasuredKernel), .lines = true },
  { .table = "calibration" },
};

const LsDataFile ls_calibration_file
    = { "calibration",          LS_DATA_CALIBRATIONS,   ls_calibration_fields,
        sizeof (LsCalibration), .blank = &ls_rooflines, .clear = (GDestroyNotify) ls_calibration_clear };

/* --- kernels by how they touch memory ----------------------------------------------------------- */

static const LsField fit_fields[] = {
  { "fitted", LS_FIELD_BOOL, offsetof (LsAccessFit, is_fitted), .required = true },
  { "share", LS_FIELD_DOUBLE, offsetof (LsAccessFit, share), .above = true, .max = 1 },
  { "elements_per_sm", LS_FIELD_DOUBLE, offsetof (LsAccessFit, elements_per_sm), .max = 1e15 },
  { "launch", LS_FIELD_TIME, offsetof (LsAccessFit, launch), .max = (double) LS_S },
  { "step", LS_FIELD_TIME, offsetof (LsAccessFit, step), .max = (double) LS_S },
  { "source", LS_FIELD_IGNORED, .required = true },
  { .table = "calibration.fit" },
};

#define ACCESS(key_, access_)                                                                                \
  {                                                                                                          \
    key_, LS_FIELD_OBJECT, offsetof (LsAccessFile, fit[access_]), .fields = fit_fields                       \
  }
static const LsField kind_fields[] = { LS_ACCESSES (ACCESS), { .table = "access.kind" } };
G_STATIC_ASSERT (G_N_ELEMENTS (kind_fields) == LS_N_ACCESSES);

const LsField ls_access_fields[] = {
  LS_FIELDS_HEADER (LsAccessFile),
  { "gap", LS_FIELD_TIME, offsetof (LsAccessFile, gap), .max = (double) LS_S },
  { "access", LS_FIELD_OBJECT, 0, .required = true, .fields = kind_fields },
  { .table = "access" },
};

static const LsAccessFile at_bandwidth = { .fit = { [0 ... LS_N_ACCESSES - 1] = { .share = 1 } } };

const LsDataFile ls_access_file
    = { "access", LS_DATA_CALIBRATIONS, ls_access_fields, sizeof (LsAccessFile), .blank = &at_bandwidth };

static void
put_copy (LsCalibration *c)
{
  LsAccessFit *copy = &c->access[LS_ACCESS_MEMCPY];
  if (c->around.memcpy_share <= 0)
    return;
  copy->share = c->around.memcpy_share;
  copy->is_fitted = true;
}

/* The file of that name; NULL: at the bandwidth. Its gap is 0 unless it says one. */
static bool
load_access (const char *name, LsAccessFile *ret_file, LsDiagList *diags)
{
  *ret_file = at_bandwidth;
  return !name || ls_data_file_load (&ls_access_file, name, ret_file, diags);
}

bool
ls_access_gap (const char *name, LsTime *ret_gap, LsDiagList *diags)
{
  LsAccessFile file;
  bool ok = load_access (name, &file, diags);
  *ret_gap = file.gap;
  ls_fields_clear (ls_access_fields, &file);
  return ok;
}

bool
ls_access_load (const char *name, LsCalibration *c, LsDiagList *diags)
{
  LsAccessFile file;
  if (!load_access (name, &file, diags))
    return false;
  memcpy (c->access, file.fit, sizeof file.fit);
  if (file.gap > 0 || !name)
    for (int i = 0; i < LS_N_ACCESSES; i++)
      c->access[i].launch = ls_around_launch (&c->around, c->access[i].launch, file.gap);
  put_copy (c);
  ls_fields_clear (ls_access_fields, &file);
  return true;
}

/* --- what published runs measured -------------------------------------------------------------------- */

static const LsField residual_element[] = {
  { "", LS_FIELD_DOUBLE, 0, .min = -1.5, .max = 1.5 },
  { NULL },
};

#define TEXT(member) #member, LS_FIELD_STRING, offsetof(LsResidualGroup, member), .required = true

static const LsField trait_element[] = { { "", LS_FIELD_STRING, 0, .required = true, .max = 64 }, { NULL } };

#define FIGURE(aspect, max_)                                                                                 \
  LS_FIELD_DOUBLE, offsetof (LsResidualGroup, figures) + ((aspect) -LS_N_WORD_ASPECTS) * sizeof (double),    \
      .max = (max_)

static const LsField group_fields[] = {
  { TEXT (source) },
  { TEXT (family) },
  { TEXT (architecture) },
  { TEXT (software) },
  { "n", LS_FIELD_UINT, offsetof (LsResidualGroup, n), .required = true, .min = 1 },
  { "lowest_mfu", LS_FIELD_DOUBLE, offsetof (LsResidualGroup, lowest_mfu), .required = true, .min = 1e-4,
    .max = 1 },
  { "gpus", FIGURE (LS_ASPECT_GPUS, 1e9) },
  { "fabric", FIGURE (LS_ASPECT_FABRIC, 1e15) },
  { "guessed", FIGURE (LS_ASPECT_GUESSED, 1) },
  { "tp", FIGURE (LS_ASPECT_TENSOR, 1e9) },
  { "params", FIGURE (LS_ASPECT_PARAMS, 1e18) },
  { "traits", LS_FIELD_ARRAY, offsetof (LsResidualGroup, traits), .fields = trait_element,
    .element_size = sizeof (char *) },
  { "residuals", LS_FIELD_ARRAY, offsetof (LsResidualGroup, residuals), .required = true,
    .fields = residual_element, .element_size = sizeof (double) },
  { .table = "calibration.group" },
};

const LsField ls_residuals_fields[] = {
  LS_FIELDS_HEADER (LsResiduals),
  { "provenance", LS_FIELD_SOURCES },
  { "unlike", LS_FIELD_DOUBLE, offsetof (LsResiduals, unlike), .min = 1, .max = 1e6 },
  { "n_unlike", LS_FIELD_UINT, offsetof (LsResiduals, n_unlike) },
  { "groups", LS_FIELD_ARRAY, offsetof (LsResiduals, groups), .required = true, .fields = group_fields,
    .element_size = sizeof (LsResidualGroup) },
  { .table = "residuals" },
};

/* What keys by themselves do not show. */
static bool
check_group (const LsJsonDoc *doc, const LsResidualGroup *g, const cJSON *node, LsDiagList *diags)
{
  bool is_sorted = true;
  for (guint k = 1; k < g->residuals->len; k++)
    is_sorted
        = is_sorted && g_array_index (g->residuals, double, k - 1) <= g_array_index (g->residuals, double, k);
  if (g->residuals->len > 0 && g->residuals->len <= g->n && is_sorted)
    return true;
  return ls_json_doc_diag (doc, ls_json_at (node, "residuals"), LS_JSON_AT_VALUE, diags,
                           "lockstep validate CASES.csv --residuals FILE.json writes such a file",
                           "expected 1 to n = %u numbers, ascending; got %u%s", g->n, g->residuals->len,
                           is_sorted ? "" : ", not ascending");
}

LsResiduals *
ls_residuals_read (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  if (!ls_fields_read_file (ls_residuals_fields, "residuals", doc, r, diags))
    return NULL;
  const cJSON *node = ls_json_doc_at (doc, "groups")->child;
  bool ok = true;
  for (guint i = 0; i < r->groups->len; i++, node = node->next)
    ok = check_group (doc, &g_array_index (r->groups, LsResidualGroup, i), node, diags) && ok;
  return ok ? g_steal_pointer (&r) : NULL;
}

LsResiduals *
ls_residuals_load (const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, name, diags);
  return doc ? ls_residuals_read (doc, diags) : NULL;
}

bool
ls_residuals_exist (const char *name)
{
  g_autofree char *message = NULL, *path = ls_data_find (LS_DATA_CALIBRATIONS, name, &message);
  return path && g_file_test (path, G_FILE_TEST_EXISTS);
}

/* --- topologies/jitter/ -------------------------------------------------------------------------- */

#define OF_JITTER(key_, member_) key_, LS_FIELD_DOUBLE, offsetof (LsJitter, member_)

const LsField ls_jitter_fields[] = {
  LS_FIELDS_HEADER (LsJitter),
  { OF_JITTER ("noise", noise), .required = true, .max = 0.5 },
  { OF_JITTER ("spread", spread), .max = 0.2 },
  { OF_JITTER ("day", day), .max = 0.5 },
  { "sources", LS_FIELD_SOURCES },
  { .table = "jitter" },
};

const LsDataFile ls_jitter_file = { "jitter", LS_DATA_JITTER, ls_jitter_fields, sizeof (LsJitter),
                                    .blank = &(const LsJitter) { .spread = NAN } };

/* --- topologies/reliability/ --------------------------------------------------------------------- */

#define MAX_PER_DAY 1e6
#define MAX_TIME_PS (90.0 * 86400 * (double) LS_S)

#define SEEN(unit_)                                                                                          \
  LS_FIELD_DOUBLE, offsetof (LsExposure, of) + (unit_) * sizeof (double), .above = true, .max = 1e9,         \
                                                                          .default_text = "not said"

static const LsField seen_fields[] = {
  { "days", LS_FIELD_DOUBLE, offsetof (LsExposure, days), .required = true, .above = true, .max = 1e5 },
  { "gpus", SEEN (LS_FAILS_GPU) },
  { "nodes", SEEN (LS_FAILS_NODE) },
  { "nics", SEEN (LS_FAILS_NIC) },
  { "jobs", SEEN (LS_FAILS_JOB) },
  { "racks", SEEN (LS_FAILS_RACK) },
  { .table = "calibration.seen" },
};

static const LsEnumName units[]
    = { { "gpu", LS_FAILS_GPU }, { "node", LS_FAILS_NODE }, { "nic", LS_FAILS_NIC },
        { "job", LS_FAILS_JOB }, { "rack", LS_FAILS_RACK }, { NULL } };
static const LsEnumName effects[] = { { "replace", LS_FAILURE_REPLACE },
                                      { "restart", LS_FAILURE_RESTART },
                                      { "planned", LS_FAILURE_PLANNED },
                                      { "stall", LS_FAILURE_STALL },
                                      { "slow", LS_FAILURE_SLOW },
                                      { "corrupt", LS_FAILURE_CORRUPT },
                                      { NULL } };

#define CAUSE(key_, kind_, member_) key_, kind_, offsetof (LsFailureCause, member_)
#define OF(key_, kind_, member_)    key_, kind_, offsetof (LsReliability, member_)

static const LsField cause_fields[] = {
  { CAUSE ("name", LS_FIELD_STRING, name), .required = true },
  { CAUSE ("unit", LS_FIELD_ENUM, unit), .required = true, .names = units },
  { CAUSE ("effect", LS_FIELD_ENUM, effect), .names = effects },
  { CAUSE ("count", LS_FIELD_DOUBLE, count), .max = 1e9 },
  { CAUSE ("per_day", LS_FIELD_DOUBLE, per_day), .max = MAX_PER_DAY },
  { CAUSE ("detect", LS_FIELD_TIME, detect), .max = MAX_TIME_PS },
  { CAUSE ("locate", LS_FIELD_TIME, locate), .max = MAX_TIME_PS },
  { CAUSE ("repair", LS_FIELD_TIME, repair), .max = MAX_TIME_PS },
  { CAUSE ("nodes", LS_FIELD_UINT, nodes), .min = 1, .max = 100000 },
  { CAUSE ("factor", LS_FIELD_DOUBLE, factor), .min = 1, .max = 100 },
  { .table = "calibration.cause" },
};

static const LsFailureCause cause_blank
    = { .effect = LS_FAILURE_REPLACE, .factor = 1, .nodes = 1, .repair = LS_TIME_NEVER };

const LsField ls_reliability_fields[] = {
  LS_FIELDS_HEADER (LsReliability),
  { "seen", LS_FIELD_OBJECT, offsetof (LsReliability, seen), .fields = seen_fields },
  { OF ("causes", LS_FIELD_ARRAY, causes), .required = true, .fields = cause_fields, .blank = &cause_blank,
    .element_size = sizeof (LsFailureCause) },
  { OF ("gpus_per_node", LS_FIELD_UINT, gpus_per_node), .max = 1e6 },
  { OF ("nodes_per_rack", LS_FIELD_UINT, nodes_per_rack), .min = 1, .max = 1e6 },
  { OF ("place", LS_FIELD_TIME, place), .max = MAX_TIME_PS },
  { OF ("place_gpus", LS_FIELD_UINT, place_gpus) },
  { OF ("place_more", LS_FIELD_TIME, place_more), .max = MAX_TIME_PS },
  { OF ("initialise", LS_FIELD_TIME, initialise), .max = MAX_TIME_PS },
  { OF ("repair", LS_FIELD_TIME, repair), .max = MAX_TIME_PS },
  { "sources", LS_FIELD_SOURCES },
  { .table = "reliability" },
};

/* The rate of a cause that was counted. */
static bool
finish_cause (const LsJsonDoc *doc, const cJSON *node, const LsReliability *r, LsFailureCause *c,
              LsDiagList *diags)
{
  bool has_count = cJSON_GetObjectItemCaseSensitive (node, "count"),
       has_rate = cJSON_GetObjectItemCaseSensitive (node, "per_day");
  if (has_count == has_rate)
    return ls_json_doc_wrong (doc, node, diags, "expected either \"count\" or \"per_day\"");
  if (has_count && !(r->seen.days > 0 && r->seen.of[c->unit] > 0))
    return ls_json_doc_wrong (doc, node, diags,
                              "a \"count\" needs \"seen\" with days, and how many units there were");
  if (has_count)
    c->per_day = c->count / (r->seen.days * r->seen.of[c->unit]);
  if (!(c->per_day <= MAX_PER_DAY))
    return ls_json_doc_wrong (doc, node, diags, "expected at most 1e6 a day of one unit");
  if ((c->effect == LS_FAILURE_SLOW) != (c->factor > 1))
    return ls_json_doc_wrong (doc, node, diags, "a \"factor\" above 1 and the effect slow go together");
  if (c->nodes > 1 && c->effect != LS_FAILURE_REPLACE)
    return ls_json_doc_wrong (doc, node, diags, "several \"nodes\" go with the effect replace");
  if (c->unit == LS_FAILS_RACK && r->nodes_per_rack == 0)
    return ls_json_doc_wrong (doc, node, diags, "the unit rack needs \"nodes_per_rack\"");
  if (c->repair == LS_TIME_NEVER)
    c->repair = r->repair;
  return true;
}

static bool
finish_causes (const LsJsonDoc *doc, const cJSON *root, void *reliability, LsDiagList *diags)
{
  const LsReliability *r = reliability;
  const cJSON *node = ls_json_at (root, "causes")->child;
  bool ok = true;
  for (guint i = 0; ok && i < r->causes->len; i++, node = node->next)
    ok = finish_cause (doc, node, r, &g_array_index (r->causes, LsFailureCause, i), diags);
  return ok;
}

const LsDataFile ls_reliability_file = { "reliability", LS_DATA_RELIABILITY, ls_reliability_fields,
                                         sizeof (LsReliability), .finish = finish_causes };
