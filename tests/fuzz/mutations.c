/* Pins: whatever happens to a byte of a data file, reading it ends in a value or in
 * diagnostics, and `lockstep check` in exit 0, 2, 3 or 4 with all of its output or none.
 *
 *     mutations LOCKSTEP     under LS_DATA_DIR
 *
 * Every shipped file, the first members of a set, and the files that the tests use, are mutated at random: a byte is
 * replaced, taken out, put in, a stretch is dropped, doubled or swapped, the rest cut off.
 * LS_CASES=N: mutations of each file in the process (60); a thirtieth of them also
 * through the program. A failure names the file and the seed. */
#include "ls_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "captured_bundle.h"

#include "data/jobs/job_files.h"
#include "data/machines/machines.h"
#include "data/measured/read_cases.h"
#include "data/traces/traces.h"
#include "mutate.h"

#define SPAWN_EVERY 30
#define N_MEMBERS   2 /* of a set */

/* ---- readers ---- */

static bool
read_gpu (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsGpu gpu;
  bool ok = ls_data_file_read (&ls_gpu_file, doc, &gpu, diags);
  if (ok)
    ls_gpu_clear (&gpu);
  return ok;
}

static bool
read_cluster (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsClusterSpec spec;
  bool ok = ls_data_file_read (&ls_cluster_file, doc, &spec, diags);
  if (ok) {
    ls_cluster_spec_validate (&spec, NULL);
    ls_cluster_spec_clear (&spec);
  }
  return ok;
}

static bool
read_model (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsModel model;
  bool ok = ls_model_read (doc, &model, NULL, diags);
  if (ok)
    ls_model_clear (&model);
  return ok;
}

static bool
read_strategy (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsStrategy s;
  bool ok = ls_strategy_read (doc, &s, diags);
  if (ok)
    ls_strategy_clear (&s);
  return ok;
}

static bool
read_calibration (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsCalibration c;
  bool ok = ls_data_file_read (&ls_calibration_file, doc, &c, diags);
  if (ok)
    ls_calibration_clear (&c);
  return ok;
}

static bool
read_nccl (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsNccl nccl;
  bool ok = ls_data_file_read (&ls_nccl_file, doc, &nccl, diags);
  if (ok)
    ls_nccl_clear (&nccl);
  return ok;
}

static bool
read_nccl_tables (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsNcclTables tables;
  bool ok = ls_data_file_read (&ls_nccl_tables_file, doc, &tables, diags);
  if (ok)
    ls_nccl_tables_clear (&tables);
  return ok;
}

static bool
read_access (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsAccessFile file;
  bool ok = ls_data_file_read (&ls_access_file, doc, &file, diags);
  if (ok)
    ls_fields_clear (ls_access_fields, &file);
  return ok;
}

static bool
read_recipes (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsRecipes) r = ls_recipes_read (doc, diags);
  return r != NULL;
}

static bool
read_residuals (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsResiduals) r = ls_residuals_read (doc, diags);
  return r != NULL;
}

static bool
read_trace (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsTrace) trace = ls_trace_read (doc, 0, diags);
  return trace != NULL;
}

static bool
read_captured (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsTrace) trace = captured_bundle_parse (doc, diags);
  return trace != NULL;
}

static const struct {
  const char *folder, *prefix;
  bool (*read) (const LsJsonDoc *doc, LsDiagList *diags);
} kinds[] = {
  { "models", "", read_model },
  { "strategies", "", read_strategy },
  { "traces", "", read_trace },
  { "topologies", "", read_cluster },
  { "topologies/gpu", "", read_gpu },
  { "topologies/calib", "nccl", read_nccl },
  { "topologies/calib", "access", read_access },
  { "topologies/nccl", "", read_nccl_tables },
  { "topologies/calib", "residuals", read_residuals },
  { "strategies/kernels", "", read_recipes },
  { "topologies/calib", "", read_calibration },
  { "tests/golden/data", "config", read_model },
  { "tests/golden/data", "captured", read_captured },
};

/* ---- checks ---- */

static const char *lockstep;
static guint n_files, n_mutations, n_accepted, n_spawned;

static void
check_diags (bool ok, const LsDiagList *diags, const char *path, guint32 seed)
{
  g_autoptr (GError) error = NULL;
  ls_diag_list_to_error (diags, &error);
  int code = ls_error_exit_code (error);
  ls_check_impl (ok == (error == NULL), __FILE__, __LINE__, "%s, seed %u: %s", path, seed,
                 ok ? "read, but complained of" : "refused without a reason");
  ls_check_impl (code == 0 || code == 3 || code == 4, __FILE__, __LINE__, "%s, seed %u: exit code %d", path,
                 seed, code);
  ls_check_impl (!error || g_utf8_validate (error->message, -1, NULL), __FILE__, __LINE__,
                 "%s, seed %u: not UTF-8", path, seed);
  n_mutations++;
  n_accepted += ok;
}

static void
check_program (const char *path, const GByteArray *b, guint32 seed)
{
  g_autofree char *folder = g_dir_make_tmp ("lockstep-mutation-XXXXXX", NULL),
                  *base = g_path_get_basename (path);
  g_autofree char *file = g_build_filename (folder, base, NULL), *out = NULL, *err = NULL;
  int status = 0;
  const char *const command[] = { lockstep, "check", file, NULL };
  LS_CHECK (g_file_set_contents (file, (const char *) b->data, b->len, NULL));
  LS_CHECK (g_spawn_sync (NULL, (char **) command, NULL, 0, NULL, NULL, &out, &err, &status, NULL));
  int code = status & 0x7f ? -(status & 0x7f) : status >> 8 & 0xff;
  ls_check_impl (code == 0 || code == 2 || code == 3 || code == 4, __FILE__, __LINE__,
                 "%s, seed %u: exit %d\n%s", path, seed, code, err);
  bool is_whole = out && (code == 0 ? g_str_has_suffix (out, "\n") && !*err : !*out && *err);
  ls_check_impl (is_whole, __FILE__, __LINE__, "%s, seed %u: exit %d with\n%s---\n%s", path, seed, code, out,
                 err);
  remove (file);
  remove (folder);
  n_spawned++;
}

static void
check_json (const char *path, const GByteArray *b, guint32 seed,
            bool (*read) (const LsJsonDoc *, LsDiagList *))
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *exact = g_memdup2 (b->data, b->len); /* of exactly this size, for the sanitizer */
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (exact ? exact : "", b->len, path, diags);
  check_diags (doc && read (doc, diags), diags, path, seed);
}

static void
check_cases (const char *path, const GByteArray *b, guint32 seed)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *text = g_strndup ((const char *) b->data, b->len);
  g_autoptr (GPtrArray) cases = ls_read_cases (path, text, false, diags);
  check_diags (cases != NULL, diags, path, seed);
}

static guint
n_cases (void)
{
  const char *n = g_getenv ("LS_CASES");
  return n ? (guint) g_ascii_strtoull (n, NULL, 10) : 60;
}

static void
check_text (const char *path, const char *text, gsize n, bool (*read) (const LsJsonDoc *, LsDiagList *))
{
  n_files++;
  for (guint32 seed = 1; seed <= n_cases (); seed++) {
    g_autoptr (GByteArray) b = mutate_bytes (text, n, seed * 1000 + n_files);
    if (!read) {
      check_cases (path, b, seed);
      continue;
    }
    check_json (path, b, seed, read);
    if (seed % SPAWN_EVERY == 0)
      check_program (path, b, seed);
  }
}

/* The first members of a set, each as the file that it could be. */
static void
check_members (const char *path, const char *text, bool (*read) (const LsJsonDoc *, LsDiagList *))
{
  cJSON *set = cJSON_Parse (text);
  const char *schema = cJSON_GetStringValue (cJSON_GetObjectItem (set, "of"));
  cJSON *member = cJSON_GetObjectItem (set, "members");
  member = member ? member->child : NULL;
  LS_CHECK (schema && member);
  for (guint i = 0; i < N_MEMBERS && member; i++, member = member->next) {
    cJSON_AddStringToObject (member, "schema", schema);
    cJSON_AddStringToObject (member, "name", member->string);
    char *own = cJSON_Print (member);
    check_text (path, own, strlen (own), read);
    cJSON_free (own);
  }
  cJSON_Delete (set);
}

static void
check_file (const char *path, bool (*read) (const LsJsonDoc *, LsDiagList *))
{
  g_autofree char *text = NULL;
  gsize n = 0;
  if (!LS_CHECK (g_file_get_contents (path, &text, &n, NULL)))
    return;
  check_text (path, text, n, read);
  if (g_str_has_suffix (path, ".set.json"))
    check_members (path, text, read);
}

static int
by_name (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (*(const char *const *) a, *(const char *const *) b);
}

static void
check_folder (const char *root, size_t kind)
{
  g_autofree char *folder = g_build_filename (root, kinds[kind].folder, NULL);
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name; name = g_dir_read_name (dir)) {
    bool is_ours = g_str_has_suffix (name, ".json") && g_str_has_prefix (name, kinds[kind].prefix);
    bool has_own_reader = g_str_has_prefix (name, "nccl") || g_str_has_prefix (name, "access");
    if (is_ours && !(kinds[kind].read == read_calibration && has_own_reader))
      g_ptr_array_add (paths, g_build_filename (folder, name, NULL));
  }
  ls_check_impl (paths->len > 0, __FILE__, __LINE__, "%s: no files", folder);
  g_ptr_array_sort (paths, by_name);
  for (guint i = 0; i < paths->len; i++)
    check_file (paths->pdata[i], kinds[kind].read);
}

static void
any_byte_may_be_wrong (void)
{
  const char *root = g_getenv ("LS_DATA_DIR");
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    check_folder (root, i);
  g_autofree char *cases = g_build_filename (root, "tests", "accuracy", "cases.csv", NULL);
  check_file (cases, NULL);
  printf ("%u mutations of %u files, %u accepted; %u through the program\n", n_mutations, n_files, n_accepted,
          n_spawned);
  LS_CHECK (n_mutations >= 20 * n_files && n_accepted > 0 && n_accepted < n_mutations);
  LS_CHECK_INT (n_spawned, >, 0);
}

/* Files of other programs, each as a node of its own or the fabric of a known one. */
static void
a_topology_may_be_wrong (void)
{
  static const struct {
    const char *name, *gpu; /* ":gpu=NAME" */
    bool is_fabric;
  } rows[] = { { "topo/topo-m.txt", NULL, false },       { "topo/topo-pcie.txt", ":gpu=l40s", false },
               { "topo/lstopo.xml", NULL, false },       { "topo/lstopo-nvml.xml", NULL, false },
               { "topo/ibnetdiscover.txt", NULL, true }, { "topo/ibnetdiscover-p.txt", NULL, true },
               { "topo/topology.conf", NULL, true },     { "topo/rocm-smi.txt", NULL, false },
               { "topo/infragraph.yaml", NULL, false },  { "nccl-dgx.xml", NULL, false } };
  g_autofree char *folder = g_dir_make_tmp ("lockstep-mutation-XXXXXX", NULL),
                  *file = g_build_filename (folder, "file", NULL);
  for (guint i = 0, before = n_accepted; i < G_N_ELEMENTS (rows); i++, before = n_accepted) {
    g_autofree char *path
        = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "golden", "data", rows[i].name, NULL),
        *text = NULL, *named = g_strconcat (file, rows[i].gpu, NULL);
    gsize n = 0;
    if (!LS_CHECK (g_file_get_contents (path, &text, &n, NULL)))
      continue;
    for (guint32 seed = 1; seed <= n_cases (); seed++) {
      g_autoptr (LsDiagList) diags = ls_diag_list_new ();
      g_autoptr (GByteArray) b = mutate_bytes (text, n, seed);
      const char *const files[] = { named, rows[i].is_fabric ? "dgx-h100" : NULL, NULL };
      LS_CHECK (g_file_set_contents (file, (const char *) b->data, b->len, NULL));
      g_autofree char *json = ls_topology_from (files, "fuzz", diags);
      check_diags (json != NULL, diags, rows[i].name, seed);
    }
    ls_check_impl (n_accepted > before, __FILE__, __LINE__, "%s: nothing was read", rows[i].name);
  }
  remove (file);
  remove (folder);
}

int
main (int argc, char **argv)
{
  static const LsTestCase tests[] = { LS_TEST (any_byte_may_be_wrong), LS_TEST (a_topology_may_be_wrong) };
  if (argc != 2) {
    fprintf (stderr, "usage: %s LOCKSTEP\n", argv[0]);
    return EXIT_FAILURE;
  }
  lockstep = argv[1];
  return ls_test_run ("mutations", tests, G_N_ELEMENTS (tests));
}
