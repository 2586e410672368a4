#include "data/datadir.h"

#include <string.h>

#include "base/handover.h"
#include "base/suggest.h"
#include "data/text/json_out.h"
#include "data/text/override.h"

static const struct {
  const char *folder;
  const char *what;
  const char *refers[3]; /* keys that may hold the path of another file ... */
  LsDataKind of;         /* ... of this kind, or its contents               */
  bool is_of_program;    /* what the program itself reads: also where LS_DATA_DIR has a user's files */
} kinds[LS_N_DATA_KINDS] = {
  [LS_DATA_MODELS] = { "models", "model" },
  [LS_DATA_MODEL_TYPES] = { "models/types", "file of model types", .is_of_program = true },
  [LS_DATA_MODEL_NAMES] = { "models/names", "file of names of models", .is_of_program = true },
  [LS_DATA_CLUSTERS] = { "topologies", "cluster", { "gpu" }, LS_DATA_GPUS },
  [LS_DATA_GPUS]
  = { "topologies/gpu", "accelerator", { "calibration", "nccl", "access" }, LS_DATA_CALIBRATIONS },
  [LS_DATA_CALIBRATIONS] = { "topologies/calib", "calibration", { "generation" }, LS_DATA_NCCL_TABLES },
  [LS_DATA_NCCL_TABLES] = { "topologies/nccl", "generation of GPUs in NCCL" },
  [LS_DATA_STRATEGIES] = { "strategies", "strategy" },
  [LS_DATA_SOFTWARE] = { "strategies/software", "software" },
  [LS_DATA_KERNELS] = { "strategies/kernels", "file of kernels" },
  [LS_DATA_TRACES] = { "traces", "trace" },
};

typedef struct {
  const char *from;
  const char *path; /* NULL: not set */
} Root;

#define N_ROOTS 4

/* Of a program that runs from a build tree (build/src/cli/lockstep), or was moved with what was
 * installed (bin/lockstep); NULL: neither is there. */
static const char *
root_beside_program (void)
{
  static gsize is_known;
  static char *root;
  if (ls_once_enter (&is_known)) {
    static const char *const ways[] = { "../share/lockstep", "../../.." };
    g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
    g_autofree char *folder = program ? g_path_get_dirname (program) : NULL;
    for (size_t i = 0; i < G_N_ELEMENTS (ways) && folder && !root; i++) {
      g_autofree char *path = g_build_filename (folder, ways[i], NULL),
                      *proof = g_build_filename (path, kinds[LS_DATA_GPUS].folder, NULL);
      if (g_file_test (proof, G_FILE_TEST_IS_DIR))
        root = g_canonicalize_filename (path, NULL);
    }
    ls_once_leave (&is_known);
  }
  return root;
}

static void
get_roots (LsDataKind kind, Root roots[N_ROOTS])
{
  bool is_beside = kinds[kind].is_of_program || !g_getenv ("LS_DATA_DIR");
  roots[0] = (Root) { "$LS_DATA_DIR", g_getenv ("LS_DATA_DIR") };
  roots[1] = (Root) { ".", "." };
  roots[2] = (Root) { "program", is_beside ? root_beside_program () : NULL };
  roots[3] = (Root) { "installed", LS_DATADIR };
}

const char *
ls_data_folder (LsDataKind kind)
{
  return kinds[kind].folder;
}

static bool
is_path (const char *name)
{
  return strchr (name, '/') || g_str_has_suffix (name, ".json");
}

static char *
find_named (LsDataKind kind, const char *name)
{
  Root roots[N_ROOTS];
  get_roots (kind, roots);
  g_autofree char *file = g_strconcat (name, ".json", NULL);
  for (int i = 0; i < N_ROOTS; i++) {
    if (!roots[i].path)
      continue;
    g_autofree char *path = g_build_filename (roots[i].path, kinds[kind].folder, file, NULL);
    if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&path);
  }
  return NULL;
}

static char *
not_found (LsDataKind kind, const char *name)
{
  g_autoptr (GPtrArray) entries = ls_data_list (kind);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; i < entries->len; i++)
    g_ptr_array_add (names, ((LsDataEntry *) g_ptr_array_index (entries, i))->name);
  g_ptr_array_add (names, NULL);
  const char *near = ls_suggest (name, (const char *const *) names->pdata);
  if (near)
    return g_strdup_printf ("no %s is named \"%s\"; did you mean \"%s\"?", kinds[kind].what, name, near);
  if (entries->len == 0)
    return g_strdup_printf ("no %s is named \"%s\", nor is any other to be found: run from the root of the "
                            "project, or set LS_DATA_DIR to it",
                            kinds[kind].what, name);
  return g_strdup_printf ("no %s is named \"%s\" in %s/", kinds[kind].what, name, kinds[kind].folder);
}

/* What is wrong if a file's name is followed by a colon but no KEY=VALUE, else NULL. */
static char *
half_a_change (LsDataKind kind, const char *name)
{
  const char *colon = strchr (name, ':');
  if (!colon || g_file_test (name, G_FILE_TEST_EXISTS))
    return NULL;
  g_autofree char *bare = g_strndup (name, (gsize) (colon - name));
  g_autofree char *path = is_path (bare) ? g_strdup (bare) : find_named (kind, bare);
  if (!path || !g_file_test (path, G_FILE_TEST_EXISTS))
    return NULL;
  return g_strdup_printf ("expected changes as %s:KEY=VALUE,KEY=VALUE; got \"%s\"", bare, colon + 1);
}

char *
ls_data_find (LsDataKind kind, const char *name, char **reterr_message)
{
  if ((*reterr_message = half_a_change (kind, name)))
    return NULL;
  if (is_path (name))
    return g_strdup (name);
  char *path = *name ? find_named (kind, name) : NULL;
  if (!path)
    *reterr_message = not_found (kind, name);
  return path;
}

/* A path that stands in the document, as from here. Takes doc. */
static LsJsonDoc *
rebase_path (LsJsonDoc *doc, const cJSON *node, LsDiagList *diags)
{
  g_autofree char *folder = g_path_get_dirname (ls_json_doc_name (doc));
  const char *changes = ls_override_find (node->valuestring);
  g_autofree char *bare = changes ? g_strndup (node->valuestring, (gsize) (changes - 1 - node->valuestring))
                                  : g_strdup (node->valuestring);
  g_autofree char *there = g_build_filename (folder, bare, NULL);
  if (g_path_is_absolute (bare) || !is_path (bare) || !g_file_test (there, G_FILE_TEST_IS_REGULAR))
    return doc;
  g_autofree char *all = g_strconcat (there, changes ? ":" : "", changes ? changes : "", NULL);
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut out;
  ls_json_out_init (&out, text, 0);
  ls_json_out_string (&out, NULL, all);
  return ls_json_doc_replace (doc, node, text->str, diags);
}

/* What the root, or its object `outer` if that is not NULL, refers to. Takes doc; NULL is allowed. */
static LsJsonDoc *
rebase_keys (LsDataKind kind, const char *outer, LsJsonDoc *doc, LsDiagList *diags)
{
  for (size_t i = 0; doc && i < G_N_ELEMENTS (kinds[kind].refers) && kinds[kind].refers[i]; i++) {
    const cJSON *root = ls_json_doc_root (doc),
                *object = outer ? cJSON_GetObjectItemCaseSensitive (root, outer) : root;
    const cJSON *node = cJSON_GetObjectItemCaseSensitive (object, kinds[kind].refers[i]);
    if (cJSON_IsString (node))
      doc = rebase_path (doc, node, diags);
    else if (cJSON_IsObject (node) && !outer)
      doc = rebase_keys (kinds[kind].of, kinds[kind].refers[i], doc, diags);
  }
  return doc;
}

LsJsonDoc *
ls_data_rebase (LsDataKind kind, LsJsonDoc *doc, LsDiagList *diags)
{
  return rebase_keys (kind, NULL, doc, diags);
}

LsJsonDoc *
ls_data_load (LsDataKind kind, const char *name, LsDiagList *diags)
{
  const char *changes = ls_override_find (name);
  g_autofree char *bare = changes ? g_strndup (name, (gsize) (changes - 1 - name)) : g_strdup (name);
  g_autofree char *message = NULL;
  g_autofree char *path = ls_data_find (kind, bare, &message);
  if (path) {
    LsJsonDoc *doc = ls_json_doc_load (path, diags);
    doc = doc ? ls_data_rebase (kind, doc, diags) : NULL;
    return doc && changes ? ls_override_apply (doc, changes, diags) : doc;
  }
  ls_diag_add (diags, LS_ERROR_INPUT, NULL, 0, 0, NULL, NULL, NULL, "%s", message);
  return NULL;
}

/* --- listing ------------------------------------------------------------------ */

static void
entry_free (gpointer data)
{
  LsDataEntry *entry = data;
  g_free (entry->name);
  g_free (entry->path);
  g_free (entry);
}

static gint
by_name (gconstpointer a, gconstpointer b)
{
  const LsDataEntry *const *x = a, *const *y = b;
  return strcmp ((*x)->name, (*y)->name);
}

static bool
has_name (const GPtrArray *entries, const char *name)
{
  for (guint i = 0; i < entries->len; i++)
    if (strcmp (((const LsDataEntry *) entries->pdata[i])->name, name) == 0)
      return true;
  return false;
}

static void
add_file (GPtrArray *entries, const Root *root, const char *folder, const char *file)
{
  if (!g_str_has_suffix (file, ".json"))
    return;
  g_autofree char *name = g_strndup (file, strlen (file) - strlen (".json"));
  g_autofree char *path = g_build_filename (folder, file, NULL);
  if (has_name (entries, name) || !g_file_test (path, G_FILE_TEST_IS_REGULAR))
    return;
  LsDataEntry *entry = g_new (LsDataEntry, 1);
  *entry = (LsDataEntry) { g_steal_pointer (&name), g_steal_pointer (&path), root->from };
  g_ptr_array_add (entries, entry);
}

GPtrArray *
ls_data_list (LsDataKind kind)
{
  Root roots[N_ROOTS];
  get_roots (kind, roots);
  GPtrArray *entries = g_ptr_array_new_with_free_func (entry_free);
  for (int i = 0; i < N_ROOTS; i++) {
    if (!roots[i].path)
      continue;
    g_autofree char *folder = g_build_filename (roots[i].path, kinds[kind].folder, NULL);
    g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
    for (const char *file = dir ? g_dir_read_name (dir) : NULL; file; file = g_dir_read_name (dir))
      add_file (entries, &roots[i], folder, file);
  }
  g_ptr_array_sort (entries, by_name);
  return entries;
}
