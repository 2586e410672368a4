/* Pins: the manual and the READMEs of the data folders are true. A list of keys, which
 * stands between "<!-- fields: KIND -->" and "<!-- /fields -->" in the manual, is what the
 * field table that reads such files says; a table of files, between "<!-- files: FOLDER -->"
 * and "<!-- /files -->", has a row for each file of the folder and for nothing else.
 * LS_UPDATE_GOLDEN=1 writes the lists of keys anew. */
#include "field_markdown.h"
#include "ls_test.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "data/jobs/read_jobs.h"
#include "data/jobs/read_ranges.h"
#include "data/jobs/read_placement.h"
#include "data/jobs/read_software.h"
#include "data/launch/program/program_map.h"
#include "data/machines/machines.h"
#include "data/machines/nccl_env.h"
#include "data/traces/trace_file.h"

#define MODELS     "models/README.md"
#define TOPOLOGIES "topologies/README.md"
#define STRATEGIES "strategies/README.md"
#define TRACES     "traces/README.md"
#define FORMATS    "src/manual/formats/"

static const struct {
  const char *page, *kind;
  const LsField *fields;
} key_tables[] = {
  { FORMATS "model.md", "model", ls_model_fields },
  { FORMATS "cluster.md", "cluster", ls_cluster_fields },
  { FORMATS "accelerator.md", "gpu", ls_gpu_fields },
  { FORMATS "calibration.md", "calibration", ls_calibration_fields },
  { FORMATS "access.md", "access", ls_access_fields },
  { FORMATS "nccl.md", "nccl", ls_nccl_fields },
  { FORMATS "nccl-generation.md", "nccl-generation", ls_nccl_tables_fields },
  { FORMATS "nccl-environment.md", "nccl-environment", ls_nccl_env_fields },
  { FORMATS "residuals.md", "residuals", ls_residuals_fields },
  { FORMATS "strategy.md", "strategy", ls_strategy_fields },
  { FORMATS "kernels.md", "kernels", ls_recipes_fields },
  { FORMATS "optimizers.md", "optimizer", ls_optimizer_fields },
  { FORMATS "placement.md", "placement", ls_placement_fields },
  { FORMATS "reliability.md", "reliability", ls_reliability_fields },
  { FORMATS "scaling.md", "scaling", ls_scaling_fields },
  { FORMATS "jitter.md", "jitter", ls_jitter_fields },
  { FORMATS "program.md", "program", ls_program_fields },
  { FORMATS "trace.md", "trace", ls_trace_fields },
};

static const struct {
  const char *readme, *folder;
} file_tables[] = {
  { MODELS, "models" },
  { MODELS, "models/scaling" },
  { TOPOLOGIES, "topologies" },
  { TOPOLOGIES, "topologies/gpu" },
  { TOPOLOGIES, "topologies/calib" },
  { TOPOLOGIES, "topologies/nccl" },
  { TOPOLOGIES, "topologies/reliability" },
  { TOPOLOGIES, "topologies/jitter" },
  { STRATEGIES, "strategies" },
  { STRATEGIES, "strategies/software" },
  { STRATEGIES, "strategies/kernels" },
  { STRATEGIES, "strategies/programs" },
  { STRATEGIES, "strategies/optimizers" },
  { TRACES, "traces" },
};

/* --- what stands between two markers ------------------------------------------ */

typedef struct {
  char *path, *text;
  const char *from, *to; /* within text */
} Block;

static void
block_clear (Block *b)
{
  g_free (b->path);
  g_free (b->text);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Block, block_clear)

/* "<!-- WHAT: NAME -->" is there once, and "<!-- /WHAT -->" after it. */
static bool
block_find (Block *b, const char *readme, const char *what, const char *name)
{
  *b = (Block) { .path = g_build_filename (g_getenv ("LS_DATA_DIR"), readme, NULL) };
  g_autofree char *begin = g_strdup_printf ("<!-- %s: %s -->\n", what, name);
  g_autofree char *end = g_strdup_printf ("<!-- /%s -->\n", what);
  if (!LS_CHECK (g_file_get_contents (b->path, &b->text, NULL, NULL)))
    return false;
  const char *marker = strstr (b->text, begin);
  b->from = marker ? marker + strlen (begin) : NULL;
  b->to = marker ? strstr (b->from, end) : NULL;
  bool is_once = b->to && !strstr (b->from, begin);
  return ls_check_impl (is_once, __FILE__, __LINE__, "%s: not once: %s", readme, begin);
}

/* --- keys ------------------------------------------------------------------------ */

static void
update (const Block *b, const char *table)
{
  g_autofree char *head = g_strndup (b->text, (gsize) (b->from - b->text));
  g_autofree char *text = g_strconcat (head, table, b->to, NULL);
  LS_CHECK (g_file_set_contents (b->path, text, -1, NULL));
}

/* The block of a kind is this text. */
static void
check_block (const char *readme, const char *kind, const char *expected)
{
  g_auto (Block) b = { 0 };
  if (!block_find (&b, readme, "fields", kind))
    return;
  if (g_strcmp0 (g_getenv ("LS_UPDATE_GOLDEN"), "1") == 0) {
    update (&b, expected);
    return;
  }
  g_autofree char *got = g_strndup (b.from, (gsize) (b.to - b.from));
  ls_check_impl (strcmp (got, expected) == 0, __FILE__, __LINE__,
                 "%s, keys of %s (LS_UPDATE_GOLDEN=1 writes them anew) should be:\n%s", readme, kind,
                 expected);
}

static void
check_keys (const char *readme, const char *kind, const LsField *fields)
{
  g_autofree char *expected = ls_fields_markdown (fields);
  check_block (readme, kind, expected);
}

static const LsField *
field_named (const LsField *fields, const char *key)
{
  for (const LsField *f = fields; f->key; f++)
    if (strcmp (f->key, key) == 0)
      return f;
  return NULL;
}

/* Strategies explain the axes: the page has those with a default of their own, and which keys are none. */
static void
check_ranges (void)
{
  g_autoptr (GString) text = g_string_new (NULL), none = g_string_new (NULL);
  for (const LsField *f = ls_ranges_fields (); f->key; f++) {
    LS_CHECK (field_named (ls_strategy_fields, f->key) != NULL);
    if (!f->required && g_strcmp0 (ls_field_default (f), "that of the job") != 0)
      g_string_append_printf (text, "- `%s`: %s\n", f->key, ls_field_default (f));
  }
  for (const LsField *s = ls_strategy_fields; s->key; s++)
    if (!field_named (ls_ranges_fields (), s->key))
      g_string_append_printf (none, "%s`%s`", none->len > 0 ? ", " : "", s->key);
  g_string_append_printf (text, "- every other key of a strategy: the value of the job; no axes are %s\n",
                          none->str);
  check_block (FORMATS "ranges.md", "ranges", text->str);
}

static void
keys_are_those_that_are_read (void)
{
  check_ranges ();
  check_keys (FORMATS "jobs.md", "jobs", ls_jobs_fields);
  check_keys (FORMATS "software.md", "software", ls_software_fields ());
  for (size_t i = 0; i < G_N_ELEMENTS (key_tables); i++)
    check_keys (key_tables[i].page, key_tables[i].kind, key_tables[i].fields);
}

/* --- files ----------------------------------------------------------------------- */

/* First column of a table without its heading and rule, backquotes removed. */
static GPtrArray *
names_of_rows (const Block *b)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *table = g_strndup (b->from, (gsize) (b->to - b->from));
  g_auto (GStrv) rows = g_strsplit (table, "\n", -1);
  for (guint i = 2; i < g_strv_length (rows) && rows[i][0] == '|'; i++) {
    g_auto (GStrv) cells = g_strsplit (rows[i], "|", 3);
    g_ptr_array_add (names, g_strdup (g_strstrip (g_strdelimit (cells[1], "`", ' '))));
  }
  return names;
}

/* Of a set its members. */
static void
add_members (GPtrArray *names, const char *path)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load (path, diags);
  const cJSON *members = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "members") : NULL;
  for (const cJSON *m = members ? members->child : NULL; m; m = m->next)
    g_ptr_array_add (names, g_strdup (m->string));
}

static GPtrArray *
names_of_files (const char *folder)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *path = g_build_filename (g_getenv ("LS_DATA_DIR"), folder, NULL);
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  for (const char *file = dir ? g_dir_read_name (dir) : NULL; file; file = g_dir_read_name (dir)) {
    g_autofree char *whole = g_build_filename (path, file, NULL);
    if (g_str_has_suffix (file, ".set.json"))
      add_members (names, whole);
    else if (g_str_has_suffix (file, ".json"))
      g_ptr_array_add (names, g_strndup (file, strlen (file) - strlen (".json")));
  }
  return names;
}

/* Each name of a is one of b. */
static void
check_subset (const GPtrArray *a, const GPtrArray *b, const char *folder, const char *complaint)
{
  for (guint i = 0; i < a->len; i++)
    ls_check_impl (g_ptr_array_find_with_equal_func ((GPtrArray *) b, a->pdata[i], g_str_equal, NULL),
                   __FILE__, __LINE__, "%s/%s.json: %s", folder, (char *) a->pdata[i], complaint);
}

static void
check_files (const char *readme, const char *folder)
{
  g_auto (Block) b = { 0 };
  if (!block_find (&b, readme, "files", folder))
    return;
  g_autoptr (GPtrArray) rows = names_of_rows (&b), files = names_of_files (folder);
  ls_check_impl (files->len > 0, __FILE__, __LINE__, "%s: no files", folder);
  check_subset (files, rows, folder, "no row in the README");
  check_subset (rows, files, folder, "a row in the README, but no such file");
  LS_CHECK_INT (rows->len, ==, files->len);
}

static void
files_are_those_of_the_folder (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (file_tables); i++)
    check_files (file_tables[i].readme, file_tables[i].folder);
}

LS_TEST_SUITE (LS_TEST (keys_are_those_that_are_read), LS_TEST (files_are_those_of_the_folder))
