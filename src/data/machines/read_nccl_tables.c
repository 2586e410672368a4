/* data/machines/read_nccl_tables.c — topologies/nccl/ read. */
#include "data/machines/machines.h"

#include "data/datadir.h"

/* As the file has it: lists of any length. */
typedef struct {
  LsNcclTables tables;
  GArray *rates_intra, *rates_inter;         /* double */
  GArray *tree_by_size[LS_NCCL_N_PROTOCOLS]; /* double */
} File;

#define SCALE(key_, scale_, meaning_)                                                                        \
  {                                                                                                          \
    key_, LS_FIELD_RATE, (scale_) * sizeof (double), .required = true, .above = true, .meaning = (meaning_)  \
  }

static const LsField scale_fields[] = {
  { "one_host", LS_FIELD_RATE, 0, .above = true, .default_text = "not possible",
    .meaning = "ranks on one host" },
  SCALE ("two_hosts", 1, "ranks on two hosts"),
  SCALE ("more_hosts", 2, "ranks on more hosts"),
  { NULL },
};
static const LsField two_or_more_fields[] = { SCALE ("two_hosts", 0, "ranks on two hosts"),
                                              SCALE ("more_hosts", 1, "ranks on more hosts"),
                                              { NULL } };
static const LsField across_fields[] = { SCALE ("two_hosts", 1, "ranks on two hosts"),
                                         SCALE ("more_hosts", 2, "ranks on more hosts"),
                                         { NULL } };
static const LsField ll_across_fields[] = {
  { "amd", LS_FIELD_OBJECT, LS_NCCL_CPU_AMD * 2 * sizeof (double), .required = true,
    .fields = two_or_more_fields, .meaning = "hosts with CPUs of AMD" },
  { "other", LS_FIELD_OBJECT, LS_NCCL_CPU_OTHER * 2 * sizeof (double), .required = true,
    .fields = two_or_more_fields, .meaning = "other hosts" },
  { NULL },
};

#define LATENCY(key_, protocol_, ...)                                                                        \
  {                                                                                                          \
    key_, LS_FIELD_TIME, (protocol_) * sizeof (LsTime), .max = (double) LS_S, __VA_ARGS__                    \
  }
static const LsField by_protocol_fields[]
    = { LATENCY ("ll", LS_NCCL_LL, .default_text = "0us", .meaning = "with LL"),
        LATENCY ("ll128", LS_NCCL_LL128, .default_text = "0us", .meaning = "with LL128"),
        LATENCY ("simple", LS_NCCL_SIMPLE, .required = true, .above = true, .meaning = "with Simple"),
        { NULL } };

#define HOP(member, ...)                                                                                     \
  {                                                                                                          \
#member, LS_FIELD_OBJECT, offsetof(LsNcclLatency, member), .fields = by_protocol_fields, __VA_ARGS__     \
  }
static const LsField latency_fields[]
    = { HOP (base, .default_text = "none", .meaning = "once"),
        HOP (nvlink, .default_text = "none", .meaning = "each hop between GPUs over NVLink"),
        HOP (pcie, .default_text = "none", .meaning = "each hop between GPUs over PCIe"),
        HOP (net, .required = true, .meaning = "each hop across hosts"),
        { NULL } };

#define ALGORITHM(key_, algorithm, meaning_)                                                                 \
  {                                                                                                          \
    key_, LS_FIELD_OBJECT, (algorithm) * sizeof (LsNcclLatency), .required = true, .fields = latency_fields, \
                                                                 .meaning = (meaning_)                       \
  }
static const LsField algorithm_fields[]
    = { ALGORITHM ("tree", LS_TUNE_TREE, "trees"),
        ALGORITHM ("ring", LS_TUNE_RING, "rings"),
        ALGORITHM ("collnet_direct", LS_TUNE_COLLNET_DIRECT, "reductions in switches, from each GPU"),
        ALGORITHM ("collnet_chain", LS_TUNE_COLLNET_CHAIN, "the same, along a chain"),
        ALGORITHM ("nvls", LS_TUNE_NVLS, "reductions in NVSwitches"),
        ALGORITHM ("nvls_tree", LS_TUNE_NVLS_TREE, "the same, with trees across hosts"),
        ALGORITHM ("pat", LS_TUNE_PAT, "parallel aggregated trees"),
        { NULL } };

static const LsField number_element[] = { { "", LS_FIELD_DOUBLE, 0, .above = true, .max = 1 }, { NULL } };

#define BY_SIZE(key_, protocol_, meaning_)                                                                   \
  {                                                                                                          \
    key_, LS_FIELD_ARRAY, (protocol_) * sizeof (GArray *),                                                   \
        .required = true, .element_size = sizeof (double), .fields = number_element, .meaning = (meaning_)   \
  }
static const LsField by_size_fields[] = { BY_SIZE ("ll", LS_NCCL_LL, "with LL"),
                                          BY_SIZE ("ll128", LS_NCCL_LL128, "with LL128"),
                                          BY_SIZE ("simple", LS_NCCL_SIMPLE, "with Simple"),
                                          { NULL } };

static const LsField rate_element[] = { { "", LS_FIELD_RATE, 0, .above = true }, { NULL } };

#define RATE(member, ...)                                                                                    \
  {                                                                                                          \
#member, LS_FIELD_RATE, offsetof(LsNcclTables, member), .above = true, __VA_ARGS__                       \
  }
#define RATES(member, meaning_)                                                                              \
  {                                                                                                          \
#member, LS_FIELD_ARRAY, offsetof(File, member), .required = true, .element_size = sizeof(double),       \
                                                     .fields = rate_element, .meaning = (meaning_)           \
  }
#define NUMBER(member, max_, ...)                                                                            \
  {                                                                                                          \
#member, LS_FIELD_DOUBLE, offsetof(LsNcclTables, member), .above = true, .max = (max_), __VA_ARGS__      \
  }
#define TABLE(member, fields_, ...)                                                                          \
  {                                                                                                          \
#member, LS_FIELD_OBJECT, offsetof(LsNcclTables, member), .fields = (fields_), __VA_ARGS__               \
  }

const LsField ls_nccl_tables_fields[] = {
  LS_FIELDS_HEADER (LsNcclTables),
  { "compute_capability", LS_FIELD_UINT, offsetof (LsNcclTables, compute_capability), .min = 1, .max = 99,
    .default_text = "none: no GPU of NVIDIA",
    .meaning = "its major number, by which a topology file of NCCL names it: 9 for 9.x" },
  { "gpu", LS_FIELD_STRING, offsetof (LsNcclTables, gpu), .required = true,
    .meaning = "name of a file in topologies/gpu: what a topology file of NCCL means that names no GPU" },
  RATE (nvlink, .required = true, .meaning = "what NCCL counts for one NVLink, one direction"),
  RATES (rates_intra, "rates of a channel that the graph search tries inside a node, fastest first"),
  RATES (rates_inter, "the same across nodes"),
  RATE (double_many_from, .required = true,
        .meaning
        = "from this rate on more than 4 channels are doubled at half of it; up to 4 from 25 GB/s on"),
  RATE (ll, .required = true, .meaning = "limit of the bus with the protocol LL on one host"),
  RATE (ring_ll128, .default_text = "no LL128", .meaning = "limit of one channel of a ring with LL128"),
  TABLE (tree_ll128, scale_fields, .default_text = "no LL128",
         .meaning = "limit of one channel of a tree with LL128"),
  TABLE (tree_simple, scale_fields, .required = true,
         .meaning = "limit of one channel of a tree with Simple"),
  NUMBER (nvls_efficiency, 1, .default_text = "no NVLS",
          .meaning = "of the rate of a channel, what NVLS reaches"),
  TABLE (nvls_tree, across_fields, .default_text = "no NVLS",
         .meaning = "limit of one channel of a tree of nodes that reduce in their NVSwitches"),
  NUMBER (collnet_direct, 1, .default_text = "1",
          .meaning = "of the rate of a channel, what reductions in the fabric's switches reach"),
  NUMBER (ring_plateau, 100, .required = true,
          .meaning = "factor of the latency of a ring's all-reduce across hosts with Simple, from 64 bytes "
                     "for each channel and rank on"),
  TABLE (ll_across, ll_across_fields, .required = true,
         .meaning = "limit of the bus with the protocol LL across hosts, whose CPUs poll for the data"),
  TABLE (latency, algorithm_fields, .required = true, .meaning = "latencies by algorithm and protocol"),
  { "tree_by_size", LS_FIELD_OBJECT, offsetof (File, tree_by_size), .required = true,
    .fields = by_size_fields,
    .meaning = "factors of a tree's rate: up to 127 bytes, then for each power of two; 1 beyond the list" },
  { "sources", LS_FIELD_SOURCES, .default_text = "none", .meaning = "where each figure comes from, by key" },
  { NULL },
};

static bool
complain (const LsJsonDoc *doc, const char *key, LsDiagList *diags, const char *message)
{
  ls_json_doc_diag (doc, cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key), LS_JSON_AT_VALUE,
                    diags, NULL, "%s", message);
  return false;
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
take_factors (const LsJsonDoc *doc, File *file, LsDiagList *diags)
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

/* What one key alone cannot show. */
static bool
finish (const LsJsonDoc *doc, File *file, LsDiagList *diags)
{
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
  return ok;
}

bool
ls_nccl_tables_read (const LsJsonDoc *doc, LsNcclTables *ret_tables, LsDiagList *diags)
{
  File file = { .tables = { .collnet_direct = 1 } };
  bool ok = ls_fields_read_file (ls_nccl_tables_fields, "nccl-generation", doc, &file, diags)
      && finish (doc, &file, diags);
  g_clear_pointer (&file.rates_intra, g_array_unref);
  g_clear_pointer (&file.rates_inter, g_array_unref);
  for (uint32_t p = 0; p < LS_NCCL_N_PROTOCOLS; p++)
    g_clear_pointer (&file.tree_by_size[p], g_array_unref);
  if (ok)
    *ret_tables = file.tables;
  else
    ls_nccl_tables_clear (&file.tables);
  return ok;
}

bool
ls_nccl_tables_load (const char *name, LsNcclTables *ret_tables, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_NCCL_TABLES, name, diags);
  return doc && ls_nccl_tables_read (doc, ret_tables, diags);
}

/* --- all of them ------------------------------------------------------------------ */

static void
clear_tables (gpointer tables)
{
  ls_nccl_tables_clear (tables);
}

/* Those with a compute capability. NULL with diagnostics if one cannot be read. */
static GArray *
load_all (LsDiagList *diags)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (LsNcclTables));
  g_array_set_clear_func (all, clear_tables);
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_NCCL_TABLES);
  for (guint i = 0; i < entries->len; i++) {
    LsNcclTables tables;
    if (!ls_nccl_tables_load (((const LsDataEntry *) entries->pdata[i])->path, &tables, diags))
      return NULL;
    if (tables.compute_capability > 0)
      g_array_append_val (all, tables);
    else
      ls_nccl_tables_clear (&tables);
  }
  return g_steal_pointer (&all);
}

static gint
by_compute_capability (gconstpointer a, gconstpointer b)
{
  const LsNcclTables *x = a, *y = b;
  return (x->compute_capability > y->compute_capability) - (x->compute_capability < y->compute_capability);
}

/* "expected 7x (v100), 8x (a100-80g) or 9x (h100)". Sorts all. */
static char *
expectation (GArray *all)
{
  g_array_sort (all, by_compute_capability);
  GString *text = g_string_new (all->len > 0 ? "expected " : "there are no files in topologies/nccl");
  for (guint i = 0; i < all->len; i++) {
    const LsNcclTables *t = &g_array_index (all, LsNcclTables, i);
    g_string_append_printf (text, "%s%ux (%s)",
                            i == 0                 ? ""
                                : i + 1 < all->len ? ", "
                                                   : " or ",
                            t->compute_capability, t->gpu);
  }
  return g_string_free (text, FALSE);
}

bool
ls_nccl_tables_find (uint32_t compute_capability, LsNcclTables *ret_tables, char **reterr_why,
                     LsDiagList *diags)
{
  g_autoptr (GArray) all = load_all (diags);
  for (guint i = 0; all && i < all->len; i++) {
    LsNcclTables *t = &g_array_index (all, LsNcclTables, i);
    if (t->compute_capability == compute_capability) {
      *ret_tables = *t;
      *t = (LsNcclTables) { 0 };
      return true;
    }
  }
  *reterr_why = all ? expectation (all) : NULL;
  return false;
}
