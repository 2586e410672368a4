/* Pins: the exact diagnostics of wrong files, and the exit code that they stand for: the
 * cases of tests/reject (support/reject.h). */
#include "reject.h"

#include "data/datadir.h"
#include "data/inspect.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_jobs.h"
#include "data/jobs/read_ranges.h"
#include "data/jobs/read_placement.h"
#include "data/jobs/read_software.h"
#include "data/jobs/imported.h"
#include "data/machines/machines.h"
#include "data/measured/read_cases.h"
#include "data/measured/read_kernels.h"
#include "data/measured/read_kineto.h"
#include "data/measured/read_nccl_tests.h"
#include "data/measured/read_result.h"
#include "data/traces/traces.h"

/* Readers that must fail: what they would return is not looked at. */
static bool
read_json (const char *path, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load (path, diags);
  return doc != NULL;
}

static bool
read_gpu (const char *path, LsDiagList *diags)
{
  LsGpu gpu;
  return ls_data_file_load (&ls_gpu_file, path, &gpu, diags);
}

static bool
read_cluster (const char *path, LsDiagList *diags)
{
  LsClusterSpec spec;
  return ls_cluster_load (path, &spec, diags);
}

static bool
read_model (const char *path, LsDiagList *diags)
{
  LsModel model;
  return ls_model_load (path, &model, NULL, diags);
}

static bool
read_strategy (const char *path, LsDiagList *diags)
{
  LsStrategy strategy;
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, path, diags);
  return doc && ls_strategy_read (doc, &strategy, diags);
}

static bool
read_jobs (const char *path, LsDiagList *diags)
{
  LsJobsFile file;
  bool ok = ls_jobs_load (path, &file, diags);
  if (ok)
    ls_jobs_clear (&file);
  return ok;
}

static bool
read_ranges (const char *path, LsDiagList *diags)
{
  LsRanges ranges;
  return ls_ranges_load (path, &ranges, diags);
}

static bool
read_software (const char *path, LsDiagList *diags)
{
  LsSoftwareSpec software;
  return ls_software_load (path, &software, diags);
}

static bool
read_access (const char *path, LsDiagList *diags)
{
  LsCalibration calibration = { 0 };
  return ls_access_load (path, &calibration, diags);
}

static bool
read_optimizer (const char *path, LsDiagList *diags)
{
  g_autoptr (LsOptimizerKind) kind = ls_optimizer_load (path, diags);
  return kind != NULL;
}

static bool
read_reliability (const char *path, LsDiagList *diags)
{
  LsReliability r;
  bool ok = ls_data_file_load (&ls_reliability_file, path, &r, diags);
  if (ok)
    ls_reliability_clear (&r);
  return ok;
}

static bool
read_scaling (const char *path, LsDiagList *diags)
{
  LsScalingLaw law;
  bool ok = ls_data_file_load (&ls_scaling_file, path, &law, diags);
  if (ok)
    ls_scaling_law_clear (&law);
  return ok;
}

static bool
read_jitter (const char *path, LsDiagList *diags)
{
  LsJitter j;
  bool ok = ls_data_file_load (&ls_jitter_file, path, &j, diags);
  if (ok)
    ls_jitter_clear (&j);
  return ok;
}

static bool
read_recipes (const char *path, LsDiagList *diags)
{
  g_autoptr (LsRecipes) recipes = ls_recipes_load (path, diags);
  return recipes != NULL;
}

static bool
read_calibration (const char *path, LsDiagList *diags)
{
  LsCalibration calibration;
  return ls_data_file_load (&ls_calibration_file, path, &calibration, diags);
}

static bool
read_nccl (const char *path, LsDiagList *diags)
{
  LsNccl nccl;
  return ls_data_file_load (&ls_nccl_file, path, &nccl, diags);
}

static bool
read_nccl_tables (const char *path, LsDiagList *diags)
{
  LsNcclTables tables;
  return ls_data_file_load (&ls_nccl_tables_file, path, &tables, diags);
}

static bool
read_residuals (const char *path, LsDiagList *diags)
{
  g_autoptr (LsResiduals) r = ls_residuals_load (path, diags);
  return r != NULL;
}

static bool
read_cases (const char *path, LsDiagList *diags)
{
  g_autoptr (GPtrArray) cases = ls_read_cases (path, NULL, false, diags);
  return cases != NULL;
}

static bool
read_collectives (const char *path, LsDiagList *diags)
{
  g_autoptr (GPtrArray) rows = ls_read_collectives (path, NULL, NULL, diags);
  return rows != NULL;
}

static bool
read_kernels (const char *path, LsDiagList *diags)
{
  g_autoptr (GArray) rows = ls_read_kernels (path, NULL, "a100", NULL, NULL, diags);
  return rows != NULL;
}

static bool
read_profile (const char *path, LsDiagList *diags)
{
  g_autoptr (LsProfile) profile = ls_profile_parse (path, NULL, 0, "a100", diags);
  return profile != NULL;
}

static bool
read_kineto (const char *path, LsDiagList *diags)
{
  g_autoptr (LsKineto) k = ls_kineto_load (path, diags);
  return k != NULL;
}

static bool
read_launch (const char *path, LsDiagList *diags)
{
  LsImported import;
  return ls_import_load ((const char *const[]) { path, NULL }, NULL, &import, diags);
}

static bool
read_nccl_tests (const char *path, LsDiagList *diags)
{
  g_autoptr (GPtrArray) tests = ls_nccl_tests_parse (path, NULL, 0, diags);
  return tests != NULL;
}

static bool
read_result (const char *path, LsDiagList *diags)
{
  g_autoptr (LsResultFile) file = ls_result_file_load (path, diags);
  return file != NULL;
}

static bool
read_spans (const char *path, LsDiagList *diags)
{
  g_autoptr (LsSpanTable) table = ls_span_table_load (path, diags);
  return table != NULL;
}

/* Legal by itself, but not for GPT 1.7B (24 layers, 24 heads) on 8 nodes of 8 GPUs. */
static bool
resolve (const char *path, LsDiagList *diags)
{
  LsModel model;
  LsStrategy s;
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, path, diags);
  if (!doc || !ls_strategy_read (doc, &s, diags) || !ls_model_load ("gpt-1.7b", &model, NULL, diags))
    return false;
  bool ok = ls_strategy_resolve (&s, &model, 64, 8, diags);
  ls_strategy_clear (&s);
  ls_model_clear (&model);
  return ok;
}

/* A cluster that reads, but cannot be built. */
static bool
inspect (const char *path, LsDiagList *diags)
{
  const char *kind;
  g_autofree char *line = ls_inspect_file (path, &kind, diags);
  return line != NULL;
}

/* A list of nodes, or a GPU for each rank. */
static bool
read_placement (const char *path, LsDiagList *diags)
{
  g_autoptr (LsAllocation) a = ls_placement_load (path, diags);
  return a != NULL;
}

static bool
read_trace (const char *path, LsDiagList *diags)
{
  g_autoptr (LsTrace) trace = ls_trace_load (path, 0, diags);
  return trace != NULL;
}

static const char *const files[]
    = { "cluster", "job", "json", "launch", "machine", "measured", "model", "strategy", "trace", NULL };

static const LsRejectKind kinds[] = {
  { "access", read_access },
  { "build", inspect },
  { "calibration", read_calibration },
  { "cases", read_cases },
  { "cluster", read_cluster },
  { "collectives", read_collectives },
  { "gpu", read_gpu },
  { "hf", read_model },
  { "jitter", read_jitter },
  { "json", read_json },
  { "kernels", read_kernels },
  { "kineto", read_kineto },
  { "launch", read_launch },
  { "model", read_model },
  { "nccl", read_nccl },
  { "nccl-generation", read_nccl_tables },
  { "nccl-tests", read_nccl_tests },
  { "nccl-topo", read_cluster },
  { "optimizers", read_optimizer },
  { "placement", read_placement },
  { "profile", read_profile },
  { "jobs", read_jobs },
  { "ranges", read_ranges },
  { "recipes", read_recipes },
  { "reliability", read_reliability },
  { "residuals", read_residuals },
  { "resolve", resolve },
  { "result", read_result },
  { "scaling", read_scaling },
  { "software", read_software },
  { "spans", read_spans },
  { "strategy", read_strategy },
  { "trace", read_trace },
};

static void
wrong_files_are_explained (void)
{
  ls_reject_run (files, kinds, G_N_ELEMENTS (kinds), 580);
}

LS_TEST_SUITE (LS_TEST (wrong_files_are_explained))
