/* data/machines/read_gpu.c — topologies/gpu/ and nccl/ read, and of topologies/calib/ NCCL. */
#include "data/machines/machines.h"

#include "base/list.h"
#include "base/order.h"
#include "data/datadir.h"
#include "data/text/override.h"

#define PEAK(dtype) LS_FIELD_FLOPS, (dtype) * sizeof (double), .above = true, .default_text = "not supported"

static const LsField peak_fields[] = {
  { "fp32", PEAK (LS_DTYPE_FP32) }, { "tf32", PEAK (LS_DTYPE_TF32) }, { "fp16", PEAK (LS_DTYPE_FP16) },
  { "bf16", PEAK (LS_DTYPE_BF16) }, { "fp8", PEAK (LS_DTYPE_FP8) },   { "nvfp4", PEAK (LS_DTYPE_NVFP4) },
  { .table = "gpu.peak" },
};

static const LsEnumName known_by[] = { { "measured", LS_KNOWN_MEASURED },
                                       { "scaled", LS_KNOWN_SCALED },
                                       { "data-sheet", LS_KNOWN_DATA_SHEET },
                                       { NULL } };

const LsField ls_known_fields[] = {
  { "by", LS_FIELD_ENUM, offsetof (LsKnown, by), .required = true, .names = known_by },
  { "of", LS_FIELD_STRING, offsetof (LsKnown, of) },
  { "error", LS_FIELD_DOUBLE, offsetof (LsKnown, error), .max = 2 },
  { .table = "gpu.known" },
};

static const LsField gpu_known_fields[] = {
  { "kernels", LS_FIELD_OBJECT, offsetof (LsGpu, kernels_known), .fields = ls_known_fields },
  { "collectives", LS_FIELD_OBJECT, offsetof (LsGpu, collectives_known), .fields = ls_known_fields },
  { .table = "gpu.gpu_known" },
};

#define WATTS(key_)                                                                                          \
#key_, LS_FIELD_DOUBLE, offsetof(LsGpuPower, key_), .required = true, .above = true, .max = 1e5

static const LsField power_fields[] = {
  { WATTS (computing) }, { WATTS (communicating) }, { WATTS (idle) },
  { WATTS (free) },      { .table = "gpu.power" },
};

#define OF_GPU(key_, kind_, member) key_, kind_, offsetof (LsGpu, member)
const LsField ls_gpu_fields[] = {
  LS_FIELDS_HEADER (LsGpu),
  { OF_GPU ("peak_flops", LS_FIELD_OBJECT, peak_flops), .required = true, .fields = peak_fields },
  { OF_GPU ("vector_flops", LS_FIELD_FLOPS, vector_flops), .required = true, .above = true },
  { OF_GPU ("hbm_bandwidth", LS_FIELD_RATE, hbm_bytes_per_s), .required = true, .above = true },
  { OF_GPU ("hbm_efficiency", LS_FIELD_DOUBLE, hbm_efficiency), .required = true, .above = true, .max = 1 },
  { OF_GPU ("power_limited", LS_FIELD_FLOPS, power_limited_flops), .above = true },
  { OF_GPU ("clock_spread", LS_FIELD_DOUBLE, clock_spread), .max = 0.2 },
  { OF_GPU ("persistent_gemms", LS_FIELD_BOOL, persistent_gemms) },
  { OF_GPU ("mxfp8", LS_FIELD_BOOL, has_mxfp8) },
  { OF_GPU ("lacks_flash", LS_FIELD_BOOL, lacks_flash) },
  { OF_GPU ("product", LS_FIELD_STRING, product) },
  { OF_GPU ("capability", LS_FIELD_STRING, capability) },
  { OF_GPU ("hbm_size", LS_FIELD_BYTES, hbm_bytes), .required = true, .above = true },
  { OF_GPU ("reserved", LS_FIELD_BYTES, reserved_bytes) },
  { OF_GPU ("blas_workspace", LS_FIELD_BYTES, blas_workspace_bytes) },
  { OF_GPU ("watts", LS_FIELD_DOUBLE, watts), .above = true, .max = 1e5 },
  { OF_GPU ("power", LS_FIELD_OBJECT, power), .fields = power_fields },
  { OF_GPU ("usd_per_hour", LS_FIELD_DOUBLE, usd_per_hour), .above = true, .max = 1e6 },
  { OF_GPU ("sm", LS_FIELD_UINT, n_sm), .required = true, .min = 1, .max = 65536 },
  { OF_GPU ("calibration", LS_FIELD_STRING, calibration) },
  { OF_GPU ("nccl", LS_FIELD_STRING, nccl) },
  { OF_GPU ("access", LS_FIELD_STRING, access) },
  { OF_GPU ("cluster", LS_FIELD_STRING, cluster) },
  { OF_GPU ("pci", LS_FIELD_STRING, pci) },
  { OF_GPU ("other_forms", LS_FIELD_STRING, other_forms) },
  { "known", LS_FIELD_OBJECT, 0, .fields = gpu_known_fields },
  { .table = "gpu" },
};

bool
ls_known_check (const LsJsonDoc *doc, const cJSON *at, const LsKnown *known, LsDiagList *diags)
{
  bool is_measured = known->by == LS_KNOWN_MEASURED;
  if (!at || is_measured == (known->error == 0))
    return true;
  return ls_json_doc_wrong (doc, at, diags,
                            is_measured ? "what was measured has no \"error\" here"
                                        : "what was not measured wants an \"error\" above 0");
}

static bool
finish_gpu (const LsJsonDoc *doc, const cJSON *object, void *object_gpu, LsDiagList *diags)
{
  static const char *const keys[]
      = { "clock_spread", "persistent_gemms", "reserved", "blas_workspace", NULL };
  LsGpu *gpu = object_gpu;
  if (gpu->reserved_bytes >= gpu->hbm_bytes)
    return ls_json_doc_wrong (doc, ls_json_at (object, "reserved"), diags, "leaves nothing of \"hbm_size\"");
  bool ok = ls_known_check (doc, ls_json_at (object, "known.kernels"), &gpu->kernels_known, diags);
  ok = ls_known_check (doc, ls_json_at (object, "known.collectives"), &gpu->collectives_known, diags) && ok;
  gpu->left_out = ok ? ls_fields_left_out (ls_gpu_fields, keys, object, gpu) : NULL;
  return ok;
}

static void
clear_gpu (void *object)
{
  ls_fields_clear (ls_gpu_fields, object);
  g_free (((LsGpu *) object)->left_out);
}

const LsDataFile ls_gpu_file
    = { "gpu", LS_DATA_GPUS, ls_gpu_fields, sizeof (LsGpu), .finish = finish_gpu, .clear = clear_gpu };

bool
ls_gpu_load (const char *name, LsGpu *ret_gpu, LsDiagList *diags)
{
  g_autofree char *bare = ls_override_bare (name);
  bool ok = ls_data_file_load (&ls_gpu_file, name, ret_gpu, diags);
  if (ok && !ls_data_is_path (bare))
    g_clear_pointer (&ret_gpu->left_out, g_free);
  return ok;
}

bool
ls_gpu_read_part (const LsJsonDoc *doc, const cJSON *object, const char *as_name, const char *as_source,
                  LsGpu *ret_gpu, LsDiagList *diags)
{
  LsGpu gpu = { .name = g_strdup (as_name), .source = g_strdup (as_source) };
  bool ok = ls_fields_read (ls_gpu_fields, doc, object, &gpu, NULL, diags)
      && finish_gpu (doc, object, &gpu, diags);
  if (ok)
    *ret_gpu = gpu;
  else
    ls_gpu_clear (&gpu);
  return ok;
}

/* --- topologies/nccl/ --------------------------------------------------------------------------- */

/* As the file has it: lists of any length. */
typedef struct {
  LsNcclTables tables;
  GArray *rates_intra, *rates_inter;         /* double */
  GArray *tree_by_size[LS_NCCL_N_PROTOCOLS]; /* double */
} TablesFile;

#define SCALE(scale_) LS_FIELD_RATE, (scale_) * sizeof (double), .required = true, .above = true

static const LsField scale_fields[] = {
  { "one_host", LS_FIELD_RATE, 0, .above = true },
  { "two_hosts", SCALE (1) },
  { "more_hosts", SCALE (2) },
  { .table = "gpu.scale" },
};
static const LsField two_or_more_fields[]
    = { { "two_hosts", SCALE (0) }, { "more_hosts", SCALE (1) }, { .table = "gpu.two_or_more" } };
static const LsField across_fields[]
    = { { "two_hosts", SCALE (1) }, { "more_hosts", SCALE (2) }, { .table = "gpu.across" } };
static const LsField ll_across_fields[] = {
  { "amd", LS_FIELD_OBJECT, LS_NCCL_CPU_AMD * 2 * sizeof (double), .required = true,
    .fields = two_or_more_fields },
  { "other", LS_FIELD_OBJECT, LS_NCCL_CPU_OTHER * 2 * sizeof (double), .required = true,
    .fields = two_or_more_fields },
  { .table = "gpu.ll_across" },
};

#define PROTOCOL(protocol_) LS_FIELD_TIME, (protocol_) * sizeof (LsTime), .max = (double) LS_S
static const LsField by_protocol_fields[]
    = { { "ll", PROTOCOL (LS_NCCL_LL) },
        { "ll128", PROTOCOL (LS_NCCL_LL128) },
        { "simple", PROTOCOL (LS_NCCL_SIMPLE), .required = true, .above = true },
        { .table = "gpu.by_protocol" } };

#define HOP(member) #member, LS_FIELD_OBJECT, offsetof(LsNcclLatency, member), .fields = by_protocol_fields
static const LsField latency_fields[] = { { HOP (base) },
                                          { HOP (nvlink) },
                                          { HOP (pcie) },
                                          { HOP (net), .required = true },
                                          { .table = "gpu.latency" } };

#define ALGORITHM(of_)                                                                                       \
  LS_FIELD_OBJECT, (of_) * sizeof (LsNcclLatency), .required = true, .fields = latency_fields
static const LsField algorithm_fields[] = { { "tree", ALGORITHM (LS_TUNE_TREE) },
                                            { "ring", ALGORITHM (LS_TUNE_RING) },
                                            { "collnet_direct", ALGORITHM (LS_TUNE_COLLNET_DIRECT) },
                                            { "collnet_chain", ALGORITHM (LS_TUNE_COLLNET_CHAIN) },
                                            { "nvls", ALGORITHM (LS_TUNE_NVLS) },
                                            { "nvls_tree", ALGORITHM (LS_TUNE_NVLS_TREE) },
                                            { "pat", ALGORITHM (LS_TUNE_PAT) },
                                            { .table = "gpu.algorithm" } };

static const LsField number_element[] = { { "", LS_FIELD_DOUBLE, 0, .above = true, .max = 1 }, { NULL } };

#define BY_SIZE(protocol_)                                                                                   \
  LS_FIELD_ARRAY, (protocol_) * sizeof (GArray *), .required = true, .element_size = sizeof (double),        \
                                                   .fields = number_element
static const LsField by_size_fields[] = { { "ll", BY_SIZE (LS_NCCL_LL) },
                                          { "ll128", BY_SIZE (LS_NCCL_LL128) },
                                          { "simple", BY_SIZE (LS_NCCL_SIMPLE) },
                                          { .table = "gpu.by_size" } };

static const LsField rate_element[] = { { "", LS_FIELD_RATE, 0, .above = true }, { NULL } };

#define TABLES(member, kind_) #member, kind_, offsetof(LsNcclTables, member)
#define RATES(member)                                                                                        \
#member, LS_FIELD_ARRAY, offsetof(TablesFile, member), .required = true, .element_size = sizeof(double),   \
                                                         .fields = rate_element

const LsField ls_nccl_tables_fields[] = {
  LS_FIELDS_HEADER (LsNcclTables),
  { "generation", LS_FIELD_STRING, offsetof (LsNcclTables, generation) },
  { "compute_capability", LS_FIELD_UINT, offsetof (LsNcclTables, compute_capability), .min = 1, .max = 99 },
  { "gcn", LS_FIELD_STRING, offsetof (LsNcclTables, gcn) },
  { "gpu", LS_FIELD_STRING, offsetof (LsNcclTables, gpu), .required = true },
  { TABLES (nvlink, LS_FIELD_RATE), .above = true, .required = true },
  { RATES (rates_intra) },
  { RATES (rates_inter) },
  { TABLES (double_many_from, LS_FIELD_RATE), .above = true, .required = true },
  { TABLES (ll, LS_FIELD_RATE), .above = true, .required = true },
  { TABLES (ring_ll128, LS_FIELD_RATE), .above = true },
  { TABLES (tree_ll128, LS_FIELD_OBJECT), .fields = scale_fields },
  { TABLES (tree_simple, LS_FIELD_OBJECT), .fields = scale_fields, .required = true },
  { TABLES (tree_alone, LS_FIELD_DOUBLE), .above = true, .max = 1 },
  { TABLES (tree_own_nics, LS_FIELD_DOUBLE), .above = true, .max = 1 },
  { TABLES (nvls_efficiency, LS_FIELD_DOUBLE), .above = true, .max = 1 },
  { TABLES (nvls_share, LS_FIELD_DOUBLE), .above = true, .max = 1 },
  { TABLES (nvls_from, LS_FIELD_UINT), .min = 2, .max = 32 },
  { TABLES (nvls_tree, LS_FIELD_OBJECT), .fields = across_fields },
  { TABLES (pat, LS_FIELD_DOUBLE), .above = true, .max = 1 },
  { TABLES (collnet_direct, LS_FIELD_DOUBLE), .above = true, .max = 1 },
  { TABLES (ring_plateau, LS_FIELD_DOUBLE), .above = true, .max = 100, .required = true },
  { TABLES (ll_across, LS_FIELD_OBJECT), .fields = ll_across_fields, .required = true },
  { TABLES (latency, LS_FIELD_OBJECT), .fields = algorithm_fields, .required = true },
  { "tree_by_size", LS_FIELD_OBJECT, offsetof (TablesFile, tree_by_size), .required = true,
    .fields = by_size_fields },
  { "sources", LS_FIELD_SOURCES },
  { .table = "nccl-generation" },
};

static bool
complain (const LsJsonDoc *doc, const char *key, LsDiagList *diags, const char *message)
{
  return ls_json_doc_wrong (doc, ls_json_doc_at (doc, key), diags, "%s", message);
}

/* Into to, which has room for the 0 after the last. */
static bool
take_rates (const LsJsonDoc *doc, const char *key, const GArray *from, double to[LS_NCCL_MAX_RATES + 1],
            LsDiagList *diags)
{
  if (from->len == 0 || from->len > LS_NCCL_MAX_RATES)
    return complain (doc, key, diags, "expected 1 to " G_STRINGIFY (LS_NCCL_MAX_RATES) " rates");
  for (guint i = 0; i < from->len; i++) {
    to[i] = g_array_index (from, double, i);
    if (i > 0 && to[i] >= to[i - 1])
      return complain (doc, key, diags, "expected each rate below the one before it");
  }
  return true;
}

static bool
take_factors (const LsJsonDoc *doc, TablesFile *file, LsDiagList *diags)
{
  for (uint32_t p = 0; p < LS_NCCL_N_PROTOCOLS; p++) {
    const GArray *from = file->tree_by_size[p];
    if (from->len > LS_NCCL_MAX_SIZES)
      return complain (doc, "tree_by_size", diags,
                       "expected at most " G_STRINGIFY (LS_NCCL_MAX_SIZES) " factors");
    for (guint i = 0; i < LS_NCCL_MAX_SIZES; i++)
      file->tables.tree_by_size[p][i] = i < from->len ? g_array_index (from, double, i) : 1;
  }
  return true;
}

/* The lists become those of the tables. */
static bool
finish_tables (const LsJsonDoc *doc, const cJSON *root, void *object, LsDiagList *diags)
{
  TablesFile *file = object;
  LsNcclTables *t = &file->tables;
  bool ok = take_rates (doc, "rates_intra", file->rates_intra, t->rates_intra, diags);
  ok &= take_rates (doc, "rates_inter", file->rates_inter, t->rates_inter, diags);
  ok &= take_factors (doc, file, diags);
  if ((t->ring_ll128 > 0) != (t->tree_ll128[1] > 0))
    ok = complain (doc, t->ring_ll128 > 0 ? "ring_ll128" : "tree_ll128", diags,
                   "\"ring_ll128\" and \"tree_ll128\" go together");
  if ((t->nvls_efficiency > 0) != (t->nvls_tree[1] > 0))
    ok = complain (doc, t->nvls_efficiency > 0 ? "nvls_efficiency" : "nvls_tree", diags,
                   "\"nvls_efficiency\" and \"nvls_tree\" go together");
  t->generation = t->generation ? t->generation : g_strdup (t->name);
  g_clear_pointer (&file->rates_intra, g_array_unref);
  g_clear_pointer (&file->rates_inter, g_array_unref);
  for (uint32_t p = 0; p < LS_NCCL_N_PROTOCOLS; p++)
    g_clear_pointer (&file->tree_by_size[p], g_array_unref);
  return ok;
}

const LsDataFile ls_nccl_tables_file
    = { "nccl-generation",      LS_DATA_NCCL_TABLES, ls_nccl_tables_fields,
        sizeof (LsNcclTables),  sizeof (TablesFile), .blank = &(const LsNcclTables) { .collnet_direct = 1 },
        .finish = finish_tables };

/* --- all of them ------------------------------------------------------------------ */

/* Those of which a dump names the GPUs by a compute capability, or by a gcn. NULL with diagnostics if one
 * cannot be read. */
static GArray *
load_all (bool have_gcn, LsDiagList *diags)
{
  g_autoptr (GArray) all = ls_list_new (sizeof (LsNcclTables), (GDestroyNotify) ls_nccl_tables_clear);
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_NCCL_TABLES);
  for (guint i = 0; i < entries->len; i++) {
    LsNcclTables tables;
    const LsDataEntry *entry = entries->pdata[i];
    if (!ls_data_file_load (&ls_nccl_tables_file, entry->path, &tables, diags))
      return NULL;
    if (have_gcn ? tables.gcn != NULL : tables.compute_capability > 0)
      g_array_append_val (all, tables);
    else
      ls_nccl_tables_clear (&tables);
  }
  return g_steal_pointer (&all);
}

static const LsSortKey by_compute_capability[] = { { LS_RISING (LsNcclTables, compute_capability) }, { 0 } };

/* "expected 7x (v100), 8x (a100-80g) or 9x (h100)". Sorts all. */
static char *
expectation (GArray *all)
{
  ls_sort_by (all, by_compute_capability);
  GString *text = g_string_new (all->len > 0 ? "expected " : "there are no files in topologies/nccl");
  for (guint i = 0; i < all->len; i++) {
    const LsNcclTables *t = &g_array_index (all, LsNcclTables, i);
    g_autofree char *number = t->gcn ? g_strdup (t->gcn) : g_strdup_printf ("%ux", t->compute_capability);
    g_string_append_printf (text, "%s%s (%s)",
                            i == 0                 ? ""
                                : i + 1 < all->len ? ", "
                                                   : " or ",
                            number, t->gpu);
  }
  return g_string_free (text, FALSE);
}

bool
ls_nccl_tables_find (uint32_t compute_capability, const char *gcn, LsNcclTables *ret_tables,
                     char **reterr_why, LsDiagList *diags)
{
  g_autoptr (GArray) all = load_all (gcn != NULL, diags);
  for (guint i = 0; all && i < all->len; i++) {
    LsNcclTables *t = &g_array_index (all, LsNcclTables, i);
    if (gcn ? ls_is_one_of (gcn, t->gcn) : t->compute_capability == compute_capability) {
      *ret_tables = *t;
      *t = (LsNcclTables) { 0 };
      return true;
    }
  }
  *reterr_why = all ? expectation (all) : NULL;
  return false;
}

/* --- NCCL on an accelerator -------------------------------------------------------------------- */

#define USUAL_GENERATION "volta"

/* As the file has it: the name of the generation. */
typedef struct {
  LsNccl nccl;
  char *generation, *algorithms, *protocols;
} File;

#define OF_NCCL(member, kind_) #member, kind_, offsetof(LsNccl, member)
#define CHANNELS(member)                                                                                     \
#member, LS_FIELD_UINT, offsetof(LsNccl, member), .required = true, .min = 1, .max = 1024
#define RATE(member) #member, LS_FIELD_RATE, offsetof(LsNccl, member), .required = true, .above = true
#define LATENCY(member)                                                                                      \
#member, LS_FIELD_TIME, offsetof(LsNccl, member), .required = true, .max = (double) LS_S
#define NUMBER(member) #member, LS_FIELD_DOUBLE, offsetof(LsNccl, member), .required = true

#define LINK_RATE(member)                                                                                    \
#member, LS_FIELD_RATE, offsetof(LsNcclLinks, member), .above = true, .default_text = "none"
#define LINK_LATENCY(member)                                                                                 \
#member, LS_FIELD_TIME, offsetof(LsNcclLinks, member), .max = (double) LS_S, .default_text = "0us"

static const LsField links_fields[] = {
  { LINK_RATE (nvlink) },         { LINK_LATENCY (nvlink_latency) }, { LINK_RATE (nic) },
  { LINK_LATENCY (nic_latency) }, { LINK_LATENCY (pcie_latency) },   { .table = "gpu.links" },
};

#define DISPATCH(key_, kind_, member) key_, kind_, offsetof (LsDispatchFigures, member)
static const LsField dispatch_fields[] = {
  { DISPATCH ("dispatch_token", LS_FIELD_TIME, dispatch.token), .required = true, .max = (double) LS_MS },
  { DISPATCH ("dispatch_per_sm", LS_FIELD_RATE, dispatch.per_sm), .required = true, .above = true },
  { DISPATCH ("combine_token", LS_FIELD_TIME, combine.token), .required = true, .max = (double) LS_MS },
  { DISPATCH ("combine_per_sm", LS_FIELD_RATE, combine.per_sm), .required = true, .above = true },
  { DISPATCH ("dispatch_row", LS_FIELD_TIME, dispatch.row), .max = (double) LS_MS },
  { DISPATCH ("combine_row", LS_FIELD_TIME, combine.row), .max = (double) LS_MS },
  { DISPATCH ("of_nvlink", LS_FIELD_DOUBLE, of_nvlink), .required = true, .above = true, .max = 1 },
  { DISPATCH ("of_nic", LS_FIELD_DOUBLE, of_nic), .required = true, .above = true, .max = 1 },
  { DISPATCH ("base_intra", LS_FIELD_TIME, base_intra), .required = true, .max = (double) LS_S },
  { DISPATCH ("base_inter", LS_FIELD_TIME, base_inter), .required = true, .max = (double) LS_S },
  { .table = "gpu.dispatch" },
};

static const LsEnumName region_ops[] = { { "all-reduce", LS_COLL_ALL_REDUCE },
                                         { "all-gather", LS_COLL_ALL_GATHER },
                                         { "reduce-scatter", LS_COLL_REDUCE_SCATTER },
                                         { NULL } };
static const LsEnumName region_algorithms[] = { { "ring", LS_TUNE_RING },
                                                { "tree", LS_TUNE_TREE },
                                                { "nvls-tree", LS_TUNE_NVLS_TREE },
                                                { "pat", LS_TUNE_PAT },
                                                { NULL } };
static const LsEnumName region_protocols[] = {
  { "Simple", LS_PROTOCOL_SIMPLE }, { "LL", LS_PROTOCOL_LL }, { "LL128", LS_PROTOCOL_LL128 }, { NULL }
};
static const LsField corner_element[] = { { "", LS_FIELD_DOUBLE, 0 }, { NULL } };
#define OF_REGION(key_, kind_, member) key_, kind_, offsetof (LsNcclRegion, member), .required = true
static const LsField region_fields[] = {
  { OF_REGION ("op", LS_FIELD_ENUM, kind), .names = region_ops },
  { OF_REGION ("per_host", LS_FIELD_UINT, per_host), .min = 1, .max = 1024 },
  { OF_REGION ("algorithm", LS_FIELD_ENUM, algorithm), .names = region_algorithms },
  { OF_REGION ("protocol", LS_FIELD_ENUM, protocol), .names = region_protocols },
  { OF_REGION ("corners", LS_FIELD_ARRAY, corners), .element_size = sizeof (double),
    .fields = corner_element },
  { .table = "gpu.region" },
};

const LsField ls_nccl_fields[] = {
  LS_FIELDS_HEADER (LsNccl),
  { OF_NCCL (measured_on, LS_FIELD_OBJECT), .fields = links_fields },
  { "generation", LS_FIELD_STRING, offsetof (File, generation),
    .default_text = "`\"" USUAL_GENERATION "\"`" },
  { "algorithms", LS_FIELD_STRING, offsetof (File, algorithms) },
  { "protocols", LS_FIELD_STRING, offsetof (File, protocols) },
  { OF_NCCL (max_ctas, LS_FIELD_UINT), .max = 255 },
  { OF_NCCL (nvlink, LS_FIELD_RATE) },
  { CHANNELS (channels_ring) },
  { CHANNELS (channels_net) },
  { OF_NCCL (channels_nvls, LS_FIELD_UINT), .required = true, .max = 1024 },
  { CHANNELS (channels_p2p) },
  { RATE (ring_bus_intra) },
  { OF_NCCL (ring_bus_staged, LS_FIELD_RATE) },
  { RATE (ring_bus_per_nic) },
  { OF_NCCL (nvls_bus, LS_FIELD_RATE), .required = true },
  { OF_NCCL (nvls_step, LS_FIELD_BYTES_DOUBLE) },
  { OF_NCCL (nvls_step_cost, LS_FIELD_BYTES_DOUBLE) },
  { RATE (p2p_intra) },
  { RATE (p2p_inter) },
  { LATENCY (base_all_reduce) },
  { LATENCY (base_all_gather) },
  { LATENCY (base_reduce_scatter) },
  { LATENCY (base_nvls) },
  { LATENCY (base_p2p_intra) },
  { LATENCY (base_p2p_inter) },
  { LATENCY (hop_intra) },
  { LATENCY (hop_inter) },
  { OF_NCCL (hop_inter_flags, LS_FIELD_TIME), .max = (double) LS_S },
  { OF_NCCL (net_latency, LS_FIELD_TIME), .max = (double) LS_S },
  { OF_NCCL (regions, LS_FIELD_ARRAY), .element_size = sizeof (LsNcclRegion), .fields = region_fields },
  { OF_NCCL (handshake, LS_FIELD_TIME), .max = (double) LS_S },
  { OF_NCCL (handshake_hop, LS_FIELD_TIME), .max = (double) LS_S },
  { OF_NCCL (ramp_bytes, LS_FIELD_BYTES_DOUBLE), .required = true },
  { NUMBER (drain), .max = 16 },
  { OF_NCCL (self_copy, LS_FIELD_DOUBLE), .max = 16 },
  { NUMBER (sm_share_per_channel), .max = 1 },
  { OF_NCCL (stall_per_byte, LS_FIELD_DOUBLE), .max = 16 },
  { NUMBER (hbm_per_wire_all_reduce), .max = 16 },
  { NUMBER (hbm_per_wire_all_gather), .max = 16 },
  { NUMBER (hbm_per_wire_reduce_scatter), .max = 16 },
  { NUMBER (hbm_per_wire_p2p), .max = 16 },
  { OF_NCCL (dispatch, LS_FIELD_OBJECT), .fields = dispatch_fields },
  { OF_NCCL (hybrid_dispatch, LS_FIELD_OBJECT), .fields = dispatch_fields },
  { "sources", LS_FIELD_SOURCES },
  { .table = "nccl" },
};

/* --- what NCCL may choose from, as NCCL_ALGO and NCCL_PROTO say it --- */

/* By bit (LsTuneAlgorithm, LsProtocol): as NCCL's environment spells them, in any case. */
static const char *const algorithm_words[]
    = { "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat", NULL };
static const char *const protocol_words[] = { "", "simple", "ll", "ll128", NULL };

static const struct {
  const char *word;
  LsCollKind kind;
} functions[] = { { "allreduce", LS_COLL_ALL_REDUCE },
                  { "allgather", LS_COLL_ALL_GATHER },
                  { "reducescatter", LS_COLL_REDUCE_SCATTER },
                  { "broadcast", LS_COLL_BROADCAST },
                  { "reduce", LS_COLL_REDUCE } };

/* "ring,tree", or "^nvls", all but that, as bits of those that are left out. */
static bool
left_out (const char *list, const char *const *words, uint8_t *ret)
{
  bool is_but = *list == '^';
  uint8_t named = 0;
  g_auto (GStrv) parts = g_strsplit (list + is_but, ",", -1);
  for (char **part = parts; *part; part++) {
    guint bit = 0;
    while (words[bit] && strcmp (words[bit], *part) != 0)
      bit++;
    if (!words[bit] || !**part)
      return false;
    named |= (uint8_t) (1u << bit);
  }
  *ret = is_but ? named : (uint8_t) ~named;
  return true;
}

/* "ring", "ring;allreduce:tree,nvls": lists of all operations and of one, a later one holds. */
static bool
take_choices (const char *text, const char *const *words, uint8_t ret[LS_N_COLL_KINDS])
{
  g_autofree char *lower = g_ascii_strdown (text ? text : "", -1);
  g_auto (GStrv) lists = g_strsplit (lower, ";", -1);
  for (char **list = lists; *list; list++) {
    const char *colon = strchr (*list, ':');
    uint8_t out;
    bool is_known = left_out (colon ? colon + 1 : *list, words, &out), is_of_any = false;
    for (guint f = 0; f < G_N_ELEMENTS (functions); f++) {
      bool is_it = !colon
          || (strlen (functions[f].word) == (gsize) (colon - *list)
              && g_str_has_prefix (*list, functions[f].word));
      if (is_known && is_it)
        ret[functions[f].kind] = out;
      is_of_any = is_of_any || is_it;
    }
    if (!is_known || !is_of_any)
      return false;
  }
  return true;
}

static bool
take_both_choices (const LsJsonDoc *doc, File *file, LsDiagList *diags)
{
  bool ok = true;
  if (file->algorithms && !take_choices (file->algorithms, algorithm_words, file->nccl.no_algorithms))
    ok = complain (doc, "algorithms", diags,
                   "expected a list of ring, tree, collnetdirect, collnetchain, nvls, nvlstree and pat, "
                   "with ^ before it of all others, or several by operation as NCCL_ALGO has them");
  if (file->protocols && !take_choices (file->protocols, protocol_words, file->nccl.no_protocols))
    ok = complain (doc, "protocols", diags, "expected a list of simple, ll and ll128, as NCCL_PROTO has it");
  g_clear_pointer (&file->algorithms, g_free);
  g_clear_pointer (&file->protocols, g_free);
  return ok;
}

/* A complaint about the name of a generation points at the key that has it. */
static bool
take_generation (const LsJsonDoc *doc, const cJSON *root, void *object, LsDiagList *diags)
{
  File *file = object;
  g_autofree char *name = g_steal_pointer (&file->generation), *message = NULL;
  file->nccl.names_generation = name != NULL;
  name = name ? name : g_strdup (USUAL_GENERATION);
  g_autofree char *bare = ls_override_bare (name), *path = ls_data_find (LS_DATA_NCCL_TABLES, bare, &message);
  if (!take_both_choices (doc, file, diags))
    return false;
  return path ? ls_data_file_load (&ls_nccl_tables_file, name, &file->nccl.tables, diags)
              : complain (doc, "generation", diags, message);
}

static void
clear_nccl (void *object)
{
  ls_nccl_clear (&((File *) object)->nccl);
  g_free (((File *) object)->generation);
  g_free (((File *) object)->algorithms);
  g_free (((File *) object)->protocols);
}

const LsDataFile ls_nccl_file
    = { "nccl",        LS_DATA_CALIBRATIONS,      ls_nccl_fields,     sizeof (LsNccl),
        sizeof (File), .finish = take_generation, .clear = clear_nccl };
