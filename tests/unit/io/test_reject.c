/* Pins: the exact diagnostics of wrong files. A case is tests/reject/KIND/CASE.json
 * with CASE.expect beside it, in which @ stands for the path of the file.
 * LS_UPDATE_GOLDEN=1 writes the .expect files anew. */
#include "ls_test.h"

#include <stdio.h>
#include <string.h>

#include "io/read_calibration.h"
#include "io/read_cluster.h"
#include "io/read_gpu.h"
#include "io/read_model.h"
#include "io/read_nccl.h"
#include "io/read_strategy.h"

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

static const struct {
  const char *folder;
  bool (*read) (const char *path, LsDiagList *diags);
} kinds[] = {
  { "json", read_json },         { "gpu", read_gpu },   { "cluster", read_cluster },
  { "model", read_model },       { "hf", read_model },  { "strategy", read_strategy },
  { "calibration", read_calibration }, { "nccl", read_nccl },
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
  g_autofree char *raw = ls_diag_list_format (diags), *got = with_path_as_at (raw, path);

  g_autofree char *stem = g_strndup (path, strlen (path) - strlen (".json"));
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
    if (!g_str_has_suffix (file, ".json"))
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
  LS_CHECK_INT (n, >=, 40);
}

LS_TEST_MAIN ("reject", LS_TEST (wrong_files_are_explained))
