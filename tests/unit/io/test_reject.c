/* Pins: the exact diagnostics of wrong files, and the exit code that they stand for. A
 * case is tests/reject/KIND/CASE.json (.csv, .xml, .txt) with CASE.expect beside it, in which @
 * stands for the path of the file. LS_UPDATE_GOLDEN=1 writes the .expect files anew. */
#include "ls_test.h"

#include <stdio.h>
#include <string.h>

#include "io/inspect.h"
#include "io/read_access.h"
#include "io/read_calibration.h"
#include "io/read_cases.h"
#include "io/read_cluster.h"
#include "io/read_collectives.h"
#include "io/read_gpu.h"
#include "io/read_kernels.h"
#include "io/read_kineto.h"
#include "io/read_model.h"
#include "io/read_nccl.h"
#include "io/read_nccl_tests.h"
#include "io/read_profile.h"
#include "io/read_ranges.h"
#include "io/read_recipes.h"
#include "io/read_residuals.h"
#include "io/read_result.h"
#include "io/read_spans.h"
#include "io/read_software.h"
#include "io/read_strategy.h"
#include "io/trace_json.h"

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
  return ls_gpu_load (path, &gpu, diags);
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
  return ls_strategy_load (path, &strategy, diags);
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
  LsAccessFit access[LS_N_ACCESSES];
  return ls_access_load (path, access, diags);
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
  return ls_calibration_load (path, &calibration, diags);
}

static bool
read_nccl (const char *path, LsDiagList *diags)
{
  LsNccl nccl;
  return ls_nccl_load (path, &nccl, diags);
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
  g_autoptr (GPtrArray) cases = ls_read_cases (path, NULL, diags);
  return cases != NULL;
}

static bool
read_collectives (const char *path, LsDiagList *diags)
{
  g_autoptr (GPtrArray) rows = ls_read_collectives (path, diags);
  return rows != NULL;
}

static bool
read_kernels (const char *path, LsDiagList *diags)
{
  g_autoptr (GArray) rows = ls_read_kernels (path, "a100", diags);
  return rows != NULL;
}

static bool
read_profile (const char *path, LsDiagList *diags)
{
  g_autoptr (LsProfile) profile = ls_profile_load (path, "a100", diags);
  return profile != NULL;
}

static bool
read_kineto (const char *path, LsDiagList *diags)
{
  g_autoptr (LsKineto) k = ls_kineto_load (path, diags);
  return k != NULL;
}

static bool
read_nccl_tests (const char *path, LsDiagList *diags)
{
  g_autoptr (GPtrArray) tests = ls_nccl_tests_load (path, diags);
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
  if (!ls_strategy_load (path, &s, diags) || !ls_model_load ("gpt-1.7b", &model, NULL, diags))
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
  LsFileKind kind;
  g_autofree char *line = ls_inspect_file (path, &kind, diags);
  return line != NULL;
}

static bool
read_trace (const char *path, LsDiagList *diags)
{
  g_autoptr (LsTrace) trace = ls_trace_load (path, 0, diags);
  return trace != NULL;
}

static const struct {
  const char *folder;
  bool (*read) (const char *path, LsDiagList *diags);
} kinds[] = {
  { "json", read_json },         { "gpu", read_gpu },   { "cluster", read_cluster },
  { "model", read_model },       { "hf", read_model },  { "strategy", read_strategy },
  { "access", read_access }, { "recipes", read_recipes }, { "calibration", read_calibration }, { "nccl", read_nccl },
  { "residuals", read_residuals },
  { "trace", read_trace },       { "nccl-topo", read_cluster },
  { "cases", read_cases },       { "collectives", read_collectives },
  { "kernels", read_kernels },   { "profile", read_profile },
  { "kineto", read_kineto },     { "ranges", read_ranges },
  { "software", read_software },
  { "nccl-tests", read_nccl_tests },
  { "result", read_result },     { "spans", read_spans },
  { "resolve", resolve }, { "build", inspect },
};

static char *
with_path_as_at (const char *text, const char *path)
{
  g_auto (GStrv) parts = g_strsplit (text, path, -1);
  return g_strjoinv ("@", parts);
}

static void
check_case (const char *path, bool (*read) (const char *, LsDiagList *))
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_check_impl (!read (path, diags), __FILE__, __LINE__, "%s: was accepted", path);
  g_autoptr (GError) error = NULL;
  ls_diag_list_to_error (diags, &error);
  g_autofree char *raw = ls_diag_list_format (diags), *said = with_path_as_at (raw, path);
  g_autofree char *got = g_strdup_printf ("%sexit %d\n", said, ls_error_exit_code (error));

  g_autofree char *stem = g_strndup (path, (gsize) (strrchr (path, '.') - path));
  g_autofree char *golden = g_strconcat (stem, ".expect", NULL), *expected = NULL;
  if (g_strcmp0 (g_getenv ("LS_UPDATE_GOLDEN"), "1") == 0)
    LS_CHECK (g_file_set_contents (golden, got, -1, NULL));
  g_file_get_contents (golden, &expected, NULL, NULL);
  ls_check_impl (g_strcmp0 (got, expected) == 0, __FILE__, __LINE__, "%s:\n%s--- expected:\n%s", path, got,
                 expected ? expected : "(no .expect file)\n");
}

static guint
check_folder (const char *root, const char *folder, bool (*read) (const char *, LsDiagList *))
{
  guint n = 0;
  g_autofree char *path = g_build_filename (root, folder, NULL);
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  for (const char *file = dir ? g_dir_read_name (dir) : NULL; file; file = g_dir_read_name (dir)) {
    if (!g_str_has_suffix (file, ".json") && !g_str_has_suffix (file, ".csv") && !g_str_has_suffix (file, ".xml")
        && !g_str_has_suffix (file, ".txt"))
      continue;
    g_autofree char *case_path = g_build_filename (path, file, NULL);
    check_case (case_path, read);
    n++;
  }
  ls_check_impl (n > 0, __FILE__, __LINE__, "%s: no cases", path);
  return n;
}

static void
wrong_files_are_explained (void)
{
  g_autofree char *root = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "reject", NULL);
  guint n = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    n += check_folder (root, kinds[i].folder, kinds[i].read);
  printf ("%u cases\n", n);
  LS_CHECK_INT (n, >=, 180);
}

LS_TEST_MAIN ("reject", LS_TEST (wrong_files_are_explained))
