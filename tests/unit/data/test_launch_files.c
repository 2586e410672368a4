/* Pins how much of real users' launch files is read, and read right: every file is read or refused for a
 * reason, and the values that people read out of them are ours, where the files are there. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "data/jobs/imported.h"
#include "data/jobs/job_files.h"
#include "data/text/csv.h"

typedef struct {
  guint n_files, n_right, n_wrong, n_missing;
} Count;

/* A column of the table, and the key that it is. */
static const struct {
  const char *column, *key;
  bool is_strategy;
} columns[] = {
  { "layers", "layers", false },
  { "hidden", "hidden", false },
  { "heads", "heads", false },
  { "kv_heads", "kv_heads", false },
  { "head_dim", "head_dim", false },
  { "ffn", "ffn", false },
  { "vocab", "vocab", false },
  { "seq", "seq", false },
  { "experts", "experts", false },
  { "top_k", "top_k", false },
  { "expert_ffn", "expert_ffn", false },
  { "tp", "tp", true },
  { "pp", "pp", true },
  { "cp", "cp", true },
  { "ep", "ep", true },
  { "etp", "etp", true },
  { "zero", "zero", true },
  { "mbs", "micro_batch", true },
  { "gbs", "global_batch", true },
  { "recompute", "recompute", true },
};

static const char *
cell (const LsCsv *csv, guint row, const char *column)
{
  int c = ls_csv_column (csv, column);
  return c < 0 ? "" : ls_csv_cell (csv, row, (guint) c);
}

/* As it stands, but what others copied from a file as it is: "${multiply:4, ${.hidden_size}}" and "4 x hidden" of a
 * width; "None block 0", "None None None", False and True of a recomputation. Newly allocated. */
static char *
meant (const LsCsv *csv, guint row, const char *column)
{
  static const char *const recompute[][2] = { { "None", "none" }, { "False", "none" }, { "True", "full" } };
  const char *theirs = cell (csv, row, column);
  guint64 times = g_str_has_prefix (theirs, "${multiply:") ? 4 : strstr (theirs, " x hidden") ? 0 : 1;
  if (strcmp (column, "ffn") == 0 && times != 1) {
    times = times ? times : g_ascii_strtoull (theirs, NULL, 10);
    return g_strdup_printf ("%" G_GUINT64_FORMAT,
                            times * g_ascii_strtoull (cell (csv, row, "hidden"), NULL, 10));
  }
  if (strcmp (column, "pp") == 0 && strcmp (theirs, "0") == 0)
    return g_strdup ("1"); /* gpt-neox: both are no pipeline */
  for (guint i = 0; i < G_N_ELEMENTS (recompute) && strcmp (column, "recompute") == 0; i++)
    if (g_str_has_prefix (theirs, recompute[i][0]))
      return g_strdup (recompute[i][1]);
  return g_strdup (theirs);
}

/* "full uniform" is full, "8 layers per chunk" no number, {"mode": "full", ...} of torchtitan is full. */
static bool
agrees (const char *ours, const char *theirs)
{
  static const char mode[] = "{\"mode\": \"";
  if (g_str_has_prefix (theirs, mode)) {
    theirs += strlen (mode);
    return strncmp (ours, theirs, strlen (ours)) == 0 && theirs[strlen (ours)] == '"';
  }
  gsize n = strcspn (theirs, " ");
  return strlen (ours) == n && strncmp (ours, theirs, n) == 0;
}

static void
count_one (const LsImported *import, const char *key, const char *ours, const char *theirs, bool is_right,
           Count *count)
{
  guint *which = !ours ? &count->n_missing : is_right ? &count->n_right : &count->n_wrong;
  ++*which;
  if (ours && !is_right && g_getenv ("LS_SHOW"))
    g_print ("%s %s: %s, read by others as %s\n", import->path, key, ours, theirs);
}

/* How the table says what is not a key's own value there: of Megatron-LM, "fp8 hybrid+bf16", sp 1, "8 layers per
 * chunk", "megatron-fsdp optim_grads_params". Newly allocated. */
static char *
meant_of_megatron (const LsImported *import, const char *column, const char *theirs)
{
  guint64 layers = g_ascii_strtoull (theirs, NULL, 10);
  if (strcmp (column, "sp") == 0)
    return g_strdup (strcmp (theirs, "1") == 0 ? "true" : "false");
  if (strcmp (column, "vpp") == 0)
    return g_strdup_printf ("%u",
                            (guint) (ls_json_doc_at (import->model, "layers")->valuedouble
                                     / ls_json_doc_at (import->strategy, "pp")->valuedouble)
                                / (guint) MAX (layers, 1));
  if (g_str_has_prefix (theirs, "megatron-fsdp"))
    return g_strdup ("fsdp2");
  return g_strndup (theirs, strcspn (theirs, " "));
}

static void
judge_megatron (const LsImported *import, const LsCsv *csv, guint row, Count *count)
{
  static const char *const names[][2] = { { "vpp", "vpp" },
                                          { "sp", "sp" },
                                          { "precision", "dtype" },
                                          { "schedule", "schedule" },
                                          { "dp_kind", "dp_kind" } };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const char *said = cell (csv, row, names[i][0]);
    if (!*said)
      continue;
    g_autofree char *ours = ls_import_value (import->strategy, ls_strategy_fields, names[i][1]),
                    *theirs = meant_of_megatron (import, names[i][0], said);
    count_one (import, names[i][1], ours, theirs, g_strcmp0 (ours, theirs) == 0, count);
  }
}

static void
judge (const LsImported *import, const LsCsv *csv, guint row, Count *count)
{
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++) {
    g_autofree char *theirs = meant (csv, row, columns[i].column);
    if (!*theirs)
      continue;
    g_autofree char *ours = columns[i].is_strategy
        ? ls_import_value (import->strategy, ls_strategy_fields, columns[i].key)
        : ls_import_value (import->model, ls_model_fields, columns[i].key);
    count_one (import, columns[i].key, ours, theirs, ours && agrees (ours, theirs), count);
  }
  if (g_str_has_prefix (cell (csv, row, "framework"), "megatron"))
    judge_megatron (import, csv, row, count);
  const char *time = cell (csv, row, "measured_iteration_s");
  if (*time && import->measured.step_s > 0)
    ++*(fabs (import->measured.step_s / g_ascii_strtod (time, NULL) - 1) < 0.002 ? &count->n_right
                                                                                 : &count->n_wrong);
}

/* Of a script with several jobs, the one that it has as it stands. */
static bool
is_default (const char *variant)
{
  return !*variant || strstr (variant, "default") || strcmp (variant, "log") == 0;
}

static void
judge_table (const char *folder, const char *frameworks, Count *count)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *path = g_build_filename (folder, "oracle.csv", NULL);
  g_autoptr (LsCsv) csv = ls_csv_parse (path, NULL, -1, diags);
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++) {
    g_autoptr (LsDiagList) why = ls_diag_list_new ();
    g_autofree char *file = g_build_filename (folder, cell (csv, row, "file"), NULL);
    const char *const paths[] = { file, NULL };
    LsImported import;
    if (!strstr (frameworks, cell (csv, row, "framework")) || !is_default (cell (csv, row, "variant"))
        || !ls_import_load (paths, NULL, &import, why))
      continue;
    count->n_files++;
    judge (&import, csv, row, count);
    ls_import_clear (&import);
  }
}

static char *
launch_folder (void)
{
  const char *shared = ls_test_shared_data ();
  return shared ? g_build_filename (shared, "launch", NULL) : NULL;
}

static void
check_values (const char *frameworks, guint n_files, guint n_right, guint n_wrong)
{
  g_autofree char *folder = launch_folder ();
  Count count = { 0 };
  if (!folder || !g_file_test (folder, G_FILE_TEST_IS_DIR))
    return;
  judge_table (folder, frameworks, &count);
  g_print ("%s: %u files: %u values right, %u others, %u missing\n", frameworks, count.n_files, count.n_right,
           count.n_wrong, count.n_missing);
  LS_CHECK_INT (count.n_files, >=, n_files);
  LS_CHECK_INT (count.n_right, >=, n_right);
  LS_CHECK_INT (count.n_wrong, <=, n_wrong);
}

/* The few that differ mean another thing: vocabularies with their padding, heads of latent attention that count
 * their rotated part, Megatron-FSDP with optim_grads_params, which shards parameters whatever
 * --use-distributed-optimizer says, a dump without DeepSpeed, chunks that a script has only if it is asked, and
 * schedules of layouts with more chunks than stages, which are interleaved (megatron/training/arguments.py), and a
 * length of sequences that is shorter than the table of positions. */
static void
values_of_megatron_files_are_right (void)
{
  check_values ("megatron-lm megatron-deepspeed", 55, 780, 15);
}

/* The one that differs: every second layer is recomputed as a whole, which is full of half of them here. */
static void
values_of_torchtitan_files_are_right (void)
{
  check_values ("torchtitan", 30, 190, 1);
}

static void
check_family (const char *folder, const char *framework, guint n_files, guint n_right, guint n_wrong)
{
  Count count = { 0 };
  judge_table (folder, framework, &count);
  g_print ("%s: %u files, %u values right, %u others, %u missing\n", framework, count.n_files, count.n_right,
           count.n_wrong, count.n_missing);
  LS_CHECK_INT (count.n_files, >=, n_files);
  LS_CHECK_INT (count.n_right, >=, n_right);
  LS_CHECK_INT (count.n_wrong, <=, n_wrong);
  LS_CHECK_INT (count.n_missing, ==, 0);
}

/* The two that differ are widths of gpt-neox, of which a file names three times as much: two matrices of a gate in
 * two thirds of it. */
static void
values_of_yaml_files_are_right (void)
{
  g_autofree char *folder = launch_folder ();
  if (!folder || !g_file_test (folder, G_FILE_TEST_IS_DIR))
    return;
  check_family (folder, "gpt-neox", 21, 180, 2);
  check_family (folder, "llm-foundry", 8, 64, 0);
  check_family (folder, "nanotron", 26, 350, 0);
  check_family (folder, "nemo 1", 28, 330, 0);
}

static void
every_file_is_read_or_refused_for_a_reason (void)
{
  g_autofree char *folder = launch_folder (),
                  *path = folder ? g_build_filename (folder, "index.csv", NULL) : NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  guint n_read = 0;
  if (!path || !g_file_test (path, G_FILE_TEST_IS_REGULAR))
    return;
  g_autoptr (LsCsv) csv = ls_csv_parse (path, NULL, -1, diags);
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++) {
    g_autoptr (LsDiagList) why = ls_diag_list_new ();
    g_autofree char *file = g_build_filename (folder, cell (csv, row, "file"), NULL);
    const char *const paths[] = { file, NULL };
    LsImported import;
    bool ok = ls_import_load (paths, NULL, &import, why);
    ls_check_impl (ok || ls_diag_list_n (why) > 0, __FILE__, __LINE__, "%s: refused without a word", file);
    if (ok)
      ls_import_clear (&import);
    n_read += ok;
  }
  g_print ("%u files are read\n", n_read);
  LS_CHECK_INT (n_read, >=, 367);
}

LS_TEST_SUITE (LS_TEST (values_of_megatron_files_are_right), LS_TEST (values_of_torchtitan_files_are_right),
               LS_TEST (values_of_yaml_files_are_right), LS_TEST (every_file_is_read_or_refused_for_a_reason))
