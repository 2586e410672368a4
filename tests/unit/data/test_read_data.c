/* Pins: every data file that ships can be read, and a few of their figures arrive
 * in base units in the right member. */
#include "ls_test.h"
#include "nccl_tables.h"

#include <stdio.h>
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/read_lab.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_placement.h"
#include "data/jobs/read_software.h"
#include "data/launch/program/program_map.h"
#include "data/machines/machines.h"
#include "data/machines/nccl_env.h"
#include "data/traces/traces.h"

static bool
has_schema (const char *path, const char *expected)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_open (path, diags);
  const cJSON *schema = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "schema") : NULL;
  return cJSON_IsString (schema) && strcmp (schema->valuestring, expected) == 0;
}

/* Of topologies/calib: kernels, access, NCCL or residuals. */
static bool
read_measured (const char *path, LsDiagList *diags)
{
  LsCalibration calibration = { 0 };
  LsNccl nccl = { 0 };
  bool ok;
  if (has_schema (path, "lockstep.residuals/1")) {
    g_autoptr (LsResiduals) r = ls_residuals_load (path, diags);
    return r != NULL;
  }
  if (has_schema (path, "lockstep.access/1"))
    return ls_access_load (path, &calibration, diags);
  if (has_schema (path, "lockstep.nccl/1"))
    ok = ls_data_file_load (&ls_nccl_file, path, &nccl, diags);
  else
    ok = ls_data_file_load (&ls_calibration_file, path, &calibration, diags);
  ls_nccl_clear (&nccl);
  ls_calibration_clear (&calibration);
  return ok;
}

static bool
read_entry (LsDataKind kind, const char *path, LsDiagList *diags)
{
  LsModel model = { 0 };
  LsClusterSpec spec = { 0 };
  LsGpu gpu = { 0 };
  LsStrategy strategy = { 0 };
  LsNcclTables tables = { 0 };
  LsReliability reliability;
  LsScalingLaw law;
  LsJitter jitter;
  LsLab *lab;
  LsSoftwareSpec software;
  bool ok = false;
  g_autoptr (LsJsonDoc) doc = NULL;
  g_autofree char *said = NULL;
  switch (kind) {
  case LS_DATA_MODELS:
    ok = ls_model_load (path, &model, NULL, diags);
    break;
  case LS_DATA_MODEL_TYPES: /* test_model_types.c */
    return true;
  case LS_DATA_MODEL_NAMES: {
    g_autoptr (LsJsonDoc) names = ls_json_doc_load (path, diags);
    ok = names && ls_model_names_check (names, diags) > 0;
    break;
  }
  case LS_DATA_SCALING:
    ok = ls_data_file_load (&ls_scaling_file, path, &law, diags);
    if (ok)
      ls_scaling_law_clear (&law);
    break;
  case LS_DATA_CLUSTERS:
    ok = ls_cluster_load (path, &spec, diags);
    break;
  case LS_DATA_GPUS:
    ok = ls_data_file_load (&ls_gpu_file, path, &gpu, diags);
    break;
  case LS_DATA_CALIBRATIONS:
    return read_measured (path, diags);
  case LS_DATA_NCCL_TABLES:
    ok = ls_data_file_load (&ls_nccl_tables_file, path, &tables, diags);
    break;
  case LS_DATA_ENVIRONMENTS:
    doc = ls_json_doc_load (path, diags);
    said = doc ? ls_nccl_env_inspect (doc, diags) : NULL;
    ok = said != NULL;
    break;
  case LS_DATA_RELIABILITY:
    ok = ls_data_file_load (&ls_reliability_file, path, &reliability, diags);
    if (ok)
      ls_reliability_clear (&reliability);
    break;
  case LS_DATA_JITTER:
    ok = ls_data_file_load (&ls_jitter_file, path, &jitter, diags);
    if (ok)
      ls_jitter_clear (&jitter);
    break;
  case LS_DATA_STRATEGIES:
    doc = ls_data_load (LS_DATA_STRATEGIES, path, diags);
    ok = doc && ls_strategy_read (doc, &strategy, diags);
    break;
  case LS_DATA_SOFTWARE:
    ok = ls_software_load (path, &software, diags);
    if (ok)
      ls_software_clear (&software);
    break;
  case LS_DATA_PROGRAMS: {
    g_autoptr (ProgramMap) map = program_map_load (path, diags);
    ok = map != NULL;
    break;
  }
  case LS_DATA_KERNELS: {
    g_autoptr (LsRecipes) recipes = ls_recipes_load (path, diags);
    ok = recipes != NULL;
    break;
  }
  case LS_DATA_OPTIMIZERS: {
    g_autoptr (LsOptimizerKind) optimizer = ls_optimizer_load (path, diags);
    ok = optimizer != NULL;
    break;
  }
  case LS_DATA_LABS:
    doc = ls_data_load (LS_DATA_LABS, path, diags);
    lab = doc ? ls_data_file_new (&ls_lab_file, doc, diags) : NULL;
    ok = lab != NULL;
    if (ok)
      ls_data_file_free (&ls_lab_file, lab);
    break;
  case LS_DATA_TRACES: {
    g_autoptr (LsTrace) trace = ls_trace_load (path, 0, diags);
    ok = trace != NULL;
    break;
  }
  case LS_N_DATA_KINDS:
    break;
  }
  ls_model_clear (&model);
  ls_cluster_spec_clear (&spec);
  ls_gpu_clear (&gpu);
  ls_strategy_clear (&strategy);
  ls_nccl_tables_clear (&tables);
  return ok;
}

static void
all_shipped_files_are_good (void)
{
  for (int kind = 0; kind < LS_N_DATA_KINDS; kind++) {
    g_autoptr (GPtrArray) entries = ls_data_list ((LsDataKind) kind);
    for (guint i = 0; i < entries->len; i++) {
      const LsDataEntry *e = entries->pdata[i];
      g_autoptr (LsDiagList) diags = ls_diag_list_new ();
      bool ok = read_entry ((LsDataKind) kind, e->path, diags);
      g_autofree char *text = ls_diag_list_format (diags);
      ls_check_impl (ok && *text == '\0', __FILE__, __LINE__, "%s:\n%s", e->path, text);
    }
  }
}

static void
the_a100_arrives_whole (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsGpu gpu;
  if (!LS_CHECK (ls_data_file_load (&ls_gpu_file, "a100-80g", &gpu, diags)))
    return;
  LS_CHECK_STR (gpu.name, "a100-80g");
  LS_CHECK_DOUBLE (gpu.peak_flops[LS_DTYPE_BF16], ==, 312e12);
  LS_CHECK_DOUBLE (gpu.peak_flops[LS_DTYPE_TF32], ==, 156e12);
  LS_CHECK_DOUBLE (gpu.peak_flops[LS_DTYPE_FP8], ==, 0);
  LS_CHECK_DOUBLE (gpu.vector_flops, ==, 19.5e12);
  LS_CHECK_DOUBLE (gpu.hbm_bytes_per_s, ==, 2039e9);
  LS_CHECK_INT (gpu.hbm_bytes, ==, G_GINT64_CONSTANT (80) << 30);
  LS_CHECK_INT (gpu.n_sm, ==, 108);
  ls_gpu_clear (&gpu);
}

static void
a_cluster_brings_its_gpu (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsClusterSpec spec;
  if (!LS_CHECK (ls_cluster_load ("dgx-a100-80g", &spec, diags)))
    return;
  LS_CHECK_STR (spec.name, "dgx-a100-80g");
  LS_CHECK_STR (spec.gpu.name, "a100-80g");
  LS_CHECK_INT (spec.gpus_per_node, ==, 8);
  LS_CHECK_INT (spec.server.nvswitch_planes, ==, 6);
  LS_CHECK_DOUBLE (spec.server.nvlink.bandwidth_bytes_per_s, ==, 25e9);
  LS_CHECK_INT (spec.server.nvlink.latency, ==, 300 * LS_NS);
  LS_CHECK_INT (spec.server.cpu_memory_bytes, ==, G_GINT64_CONSTANT (2) << 40);
  LS_CHECK_INT (spec.server.nvme_bytes, ==, G_GINT64_CONSTANT (3840000000000));
  LS_CHECK_INT (spec.network.rails, ==, 8);
  LS_CHECK (spec.network.spine.source != NULL);
  ls_cluster_spec_clear (&spec);
}

/* In place of its name: with names and without, and its keys can be changed. */
static void
a_cluster_describes_its_gpu (void)
{
#define OWN                                                                                                     \
  "dgx-a100-80g:gpu={\"name\":\"own\",\"peak_flops\":{\"bf16\":\"100TFLOP/s\"},\"vector_flops\":\"10TFLOP/s\"," \
  "\"hbm_bandwidth\":\"1TB/s\",\"hbm_efficiency\":0.9,\"hbm_size\":\"40GiB\",\"sm\":100}"
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsClusterSpec spec;
  if (!LS_CHECK (ls_cluster_load (OWN ",gpu.reserved=2GiB,gpu.peak_flops.fp16=200TFLOP/s", &spec, diags)))
    return;
  LS_CHECK_STR (spec.gpu.name, "own");
  LS_CHECK (g_str_has_prefix (spec.gpu.source, "NVIDIA DGX A100")); /* of the cluster */
  LS_CHECK_DOUBLE (spec.gpu.peak_flops[LS_DTYPE_BF16], ==, 100e12);
  LS_CHECK_DOUBLE (spec.gpu.peak_flops[LS_DTYPE_FP16], ==, 200e12);
  LS_CHECK_INT (spec.gpu.reserved_bytes, ==, G_GINT64_CONSTANT (2) << 30);
  ls_cluster_spec_clear (&spec);
  LS_CHECK (!ls_cluster_load (OWN ",gpu.reserved=40GiB", &spec, diags));
  g_autofree char *text = ls_diag_list_format (diags);
  LS_CHECK (strstr (text, "/gpu/reserved: leaves nothing of \"hbm_size\""));
#undef OWN
}

/* The keys of the file are the names of the kinds, each in its own slot. */
static void
calibrations_name_every_kernel_kind (void)
{
  const LsField *kernels = NULL;
  for (const LsField *f = ls_calibration_fields; f->key; f++)
    if (strcmp (f->key, "kernels") == 0)
      kernels = f->fields;
  if (!LS_CHECK (kernels != NULL))
    return;
  for (int k = 0; k < LS_N_KERNEL_KINDS; k++) {
    LS_CHECK_STR (kernels[k].key, ls_kernel_kind_names[k].name);
    LS_CHECK_INT (kernels[k].offset, ==, offsetof (LsCalibration, kind) + (size_t) k * sizeof (LsKindFit));
  }
}

/* Keys of access files, names in traces and those of the kinds are one. */
static void
access_files_name_every_access (void)
{
  const LsField *kinds = NULL;
  for (const LsField *f = ls_access_fields; f->key; f++)
    if (strcmp (f->key, "access") == 0)
      kinds = f->fields;
  if (!LS_CHECK (kinds != NULL))
    return;
  for (int k = 0; k < LS_N_ACCESSES; k++) {
    LS_CHECK_STR (ls_access_names[k].name, ls_access_names[k].name);
    LS_CHECK_INT (ls_access_names[k].value, ==, k);
    if (k == LS_ACCESS_NONE)
      continue;
    LS_CHECK_STR (kinds[k - 1].key, ls_access_names[k].name);
    LS_CHECK_INT (kinds[k - 1].offset, ==, offsetof (LsAccessFile, fit) + (size_t) k * sizeof (LsAccessFit));
  }
}

/* What JSON in place of a file does not say of itself. */
static void
a_calibration_that_is_given_is_called_so (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsCalibration c;
  if (!LS_CHECK (ls_data_file_load (&ls_calibration_file, "{\"kernels\":{}}", &c, diags)))
    return;
  LS_CHECK_STR (c.name, "calibration");
  LS_CHECK_STR (c.source, "given");
  ls_calibration_clear (&c);
}

static void
kinds_that_are_left_out_are_rooflines (void)
{
  static const char text[]
      = "{\"schema\":\"lockstep.calibration/1\",\"name\":\"t\",\"source\":\"test\",\"kernels\":"
        "{\"gemm\":{\"fitted\":true,\"compute_efficiency\":0.8,\"launch\":\"6us\",\"source\":\"x\"}}}";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "t.json", diags);
  LsCalibration c;
  if (!LS_CHECK (doc && ls_data_file_read (&ls_calibration_file, doc, &c, diags)))
    return;
  LS_CHECK (c.kind[LS_KERNEL_GEMM].is_fitted);
  LS_CHECK_DOUBLE (c.kind[LS_KERNEL_GEMM].compute_efficiency, ==, 0.8);
  LS_CHECK_DOUBLE (c.kind[LS_KERNEL_GEMM].memory_efficiency, ==, 1);
  LS_CHECK_INT (c.kind[LS_KERNEL_GEMM].launch, ==, 6 * LS_US);
  LS_CHECK (!c.kind[LS_KERNEL_NORM].is_fitted);
  LS_CHECK_DOUBLE (c.kind[LS_KERNEL_NORM].compute_efficiency, ==, 1);
  LS_CHECK (!c.kind[LS_ENTRY_GEMM_FP8].is_fitted);
  ls_calibration_clear (&c);
}

static void
nccl_figures_arrive_in_base_units (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsNccl nccl;
  if (!LS_CHECK (ls_data_file_load (&ls_nccl_file, "nccl-a100", &nccl, diags)))
    return;
  LS_CHECK_STR (nccl.name, "nccl-a100");
  LS_CHECK_INT (nccl.channels_ring, ==, 24);
  LS_CHECK_DOUBLE (nccl.ring_bus_intra, ==, 240e9);
  LS_CHECK (nccl.base_all_reduce > LS_US && nccl.base_all_reduce < LS_MS);
  LS_CHECK (nccl.ramp_bytes > 1e6);
  ls_nccl_clear (&nccl);
}

static void
check_rates (const double got[LS_NCCL_MAX_RATES + 1], const double expected[LS_NCCL_MAX_RATES + 1],
             const char *name)
{
  for (int i = 0; i <= LS_NCCL_MAX_RATES; i++)
    ls_check_impl (got[i] == expected[i], __FILE__, __LINE__, "%s: rate %d: %g, not %g", name, i, got[i],
                   expected[i]);
}

static void
check_tables (const LsNcclTables *got, const LsNcclTables *expected)
{
  LS_CHECK_STR (got->name, expected->name);
  LS_CHECK_STR (got->gpu, expected->gpu);
  LS_CHECK_INT (got->compute_capability, ==, expected->compute_capability);
  check_rates (got->rates_intra, expected->rates_intra, got->name);
  check_rates (got->rates_inter, expected->rates_inter, got->name);
  LS_CHECK_DOUBLE (got->nvlink, ==, expected->nvlink);
  LS_CHECK_DOUBLE (got->double_many_from, ==, expected->double_many_from);
  LS_CHECK_DOUBLE (got->ll, ==, expected->ll);
  LS_CHECK_DOUBLE (got->ring_ll128, ==, expected->ring_ll128);
  for (int s = 0; s < LS_NCCL_N_SCALES; s++) {
    LS_CHECK_DOUBLE (got->tree_ll128[s], ==, expected->tree_ll128[s]);
    LS_CHECK_DOUBLE (got->tree_simple[s], ==, expected->tree_simple[s]);
    LS_CHECK_DOUBLE (got->nvls_tree[s], ==, expected->nvls_tree[s]);
  }
  LS_CHECK_DOUBLE (got->pat, ==, expected->pat);
  LS_CHECK_DOUBLE (got->tree_alone, ==, expected->tree_alone);
  LS_CHECK_DOUBLE (got->tree_own_nics, ==, expected->tree_own_nics);
  LS_CHECK_DOUBLE (got->nvls_efficiency, ==, expected->nvls_efficiency);
  LS_CHECK_DOUBLE (got->collnet_direct, ==, expected->collnet_direct);
  LS_CHECK_DOUBLE (got->ring_plateau, ==, expected->ring_plateau);
  LS_CHECK (memcmp (got->ll_across, expected->ll_across, sizeof got->ll_across) == 0);
  LS_CHECK (memcmp (got->latency, expected->latency, sizeof got->latency) == 0);
  LS_CHECK (memcmp (got->tree_by_size, expected->tree_by_size, sizeof got->tree_by_size) == 0);
}

/* Written down twice, in files and in nccl_tables.h, from the same source. */
static void
tables_of_nccl_are_those_of_its_source (void)
{
  static const LsNcclTables all[]
      = { LS_TEST_NCCL_VOLTA, LS_TEST_NCCL_AMPERE, LS_TEST_NCCL_HOPPER, LS_TEST_NCCL_BLACKWELL };
  for (size_t i = 0; i < G_N_ELEMENTS (all); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsNcclTables got;
    if (!LS_CHECK (ls_data_file_load (&ls_nccl_tables_file, all[i].name, &got, diags)))
      continue;
    check_tables (&got, &all[i]);
    ls_nccl_tables_clear (&got);
  }
}

static void
tables_are_found_by_compute_capability (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *why = NULL;
  LsNcclTables found;
  if (LS_CHECK (ls_nccl_tables_find (9, NULL, &found, &why, diags))) {
    LS_CHECK_STR (found.gpu, "h100");
    ls_nccl_tables_clear (&found);
  }
  LS_CHECK (!ls_nccl_tables_find (6, NULL, &found, &why, diags));
  LS_CHECK (why && strstr (why, "8x (a100-80g), 9x (h100)"));
}

static void
check_table (const LsField *fields)
{
  for (const LsField *f = fields; f->key; f++) {
    for (const LsField *other = fields; other < f; other++)
      ls_check_impl (strcmp (other->key, f->key) != 0, __FILE__, __LINE__, "%s: two rows", f->key);
    LS_CHECK (f->kind != LS_FIELD_ENUM || f->names);
    LS_CHECK (f->kind != LS_FIELD_CUSTOM || ((f->parse || f->load) && f->expected));
    ls_check_impl (ls_field_meaning (f) != NULL, __FILE__, __LINE__, "%s: no meaning for the README", f->key);
    ls_check_impl (f->required || ls_field_default (f), __FILE__, __LINE__, "%s: no default for the README",
                   f->key);
    if (f->kind == LS_FIELD_OBJECT && LS_CHECK (f->fields != NULL))
      check_table (f->fields);
  }
}

/* Whatever characters name and source have. */
static void
a_placement_that_is_written_is_read (void)
{
  const LsCluster four = { .spec = { .name = (char *) "four", .n_nodes = 2 }, .seats = { .per_node = 4 } };
  const uint32_t gpus[] = { 5, 0, 3 };
  g_autofree char *text = ls_placement_to_json ("gr\u00f6\u00dfer", "a \"test\" \v\\ \u00fc", &four, gpus, 3);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "gr\u00f6\u00dfer.json", diags);
  g_autoptr (LsAllocation) a = doc ? ls_placement_read (doc, diags) : NULL;
  LS_CHECK (a != NULL && ls_diag_list_n (diags) == 0);
  LS_CHECK (a && a->n_seats == 3 && a->n_cluster_nodes == 2 && a->seats[0].node == 1 && a->seats[0].gpu == 1);
}

/* A walk through the file for each node would take minutes. */
static void
many_nodes_are_placed_in_one_walk (void)
{
  enum { N = 300000 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GString) text = g_string_new ("# all\n"), json = g_string_new ("[");
  for (guint i = 0; i < N; i++) {
    g_string_append_printf (text, " node%06u\n", i);
    g_string_append_printf (json, "%s%06u", i > 0 ? "," : "", 100000 + i);
  }
  g_string_append_c (json, ']');
  g_autofree char *path = g_build_filename (g_get_tmp_dir (), "many-nodes.txt", NULL);
  LS_CHECK (g_file_set_contents (path, text->str, -1, NULL));
  g_autoptr (LsAllocation) a = ls_placement_load (path, diags);
  remove (path);
  LS_CHECK (a && a->n_seats == N && a->seats[N - 1].node == N - 1);
  LS_CHECK (a && a->seats[N - 1].line == N + 1 && a->seats[N - 1].col == 2);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (json->str, json->len, "many.json", diags);
  g_autofree LsJsonSpot *spots = g_new (LsJsonSpot, N);
  LS_CHECK (doc != NULL);
  ls_json_doc_locate_all (doc, ls_json_doc_root (doc), spots);
  LS_CHECK (spots[N - 1].line == 1 && spots[N - 1].col == 2 + 7 * (N - 1));
}

/* Each is found from the one before, not from the first. */
static void
many_causes_are_read_in_one_walk (void)
{
  enum { N = 100000 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GString) text = g_string_new ("{ \"schema\": \"lockstep.reliability/1\", \"name\": \"many\", "
                                           "\"source\": \"a test\", \"causes\": [");
  for (guint i = 0; i < N; i++)
    g_string_append_printf (text, "%s{ \"name\": \"a\", \"unit\": \"gpu\", \"per_day\": %u }",
                            i > 0 ? "," : "", i);
  g_string_append (text, "] }");
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text->str, text->len, "many.json", diags);
  LsReliability r = { 0 };
  LS_CHECK (doc && ls_data_file_read (&ls_reliability_file, doc, &r, diags));
  LS_CHECK (r.causes && r.causes->len == N
            && g_array_index (r.causes, LsFailureCause, N - 1).per_day == N - 1);
  ls_reliability_clear (&r);
}

/* A knob without a topic would be in no help. */
static void
knobs_have_topics (void)
{
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    ls_check_impl (f->file_only == !f->topic, __FILE__, __LINE__, "%s: a topic, or of files only", f->key);
}

static void
tables_are_well_formed (void)
{
  check_table (ls_gpu_fields);
  check_table (ls_cluster_fields);
  check_table (ls_model_fields);
  check_table (ls_strategy_fields);
  check_table (ls_calibration_fields);
  check_table (ls_access_fields);
  check_table (ls_nccl_fields);
  check_table (ls_nccl_tables_fields);
}

LS_TEST_SUITE (LS_TEST (tables_are_well_formed), LS_TEST (knobs_have_topics),
               LS_TEST (a_placement_that_is_written_is_read), LS_TEST (many_nodes_are_placed_in_one_walk),
               LS_TEST (many_causes_are_read_in_one_walk), LS_TEST (all_shipped_files_are_good),
               LS_TEST (the_a100_arrives_whole), LS_TEST (a_cluster_brings_its_gpu),
               LS_TEST (a_cluster_describes_its_gpu), LS_TEST (calibrations_name_every_kernel_kind),
               LS_TEST (access_files_name_every_access), LS_TEST (a_calibration_that_is_given_is_called_so),
               LS_TEST (kinds_that_are_left_out_are_rooflines), LS_TEST (nccl_figures_arrive_in_base_units),
               LS_TEST (tables_of_nccl_are_those_of_its_source),
               LS_TEST (tables_are_found_by_compute_capability))
