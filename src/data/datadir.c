#define _GNU_SOURCE /* dladdr1() */
#include "data/datadir.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/handover.h"
#include "base/near.h"
#include "base/suggest.h"
#include "data/datadir_called.h"

static const struct {
  const char *folder;
  const char *what;
  const char *given;  /* the option that has it as JSON, mostly */
  bool is_of_program; /* what the program itself reads: also where LS_DATA_DIR has a user's files */
} kinds[LS_N_DATA_KINDS] = {
  [LS_DATA_MODELS] = { "models", "model", "model" },
  [LS_DATA_MODEL_TYPES] = { "models/types", "file of model types", "model-types", true },
  [LS_DATA_MODEL_NAMES] = { "models/names", "file of names of models", "model-names", true },
  [LS_DATA_SCALING] = { "models/scaling", "law of loss", "scaling-law" },
  [LS_DATA_CLUSTERS] = { "topologies", "cluster", "cluster" },
  [LS_DATA_GPUS] = { "topologies/gpu", "accelerator", "gpu" },
  [LS_DATA_CALIBRATIONS] = { "topologies/calib", "calibration", "calibration" },
  [LS_DATA_NCCL_TABLES] = { "topologies/nccl", "generation of GPUs in NCCL", "nccl" },
  [LS_DATA_RELIABILITY] = { "topologies/reliability", "file of failures", "reliability" },
  [LS_DATA_JITTER] = { "topologies/jitter", "file of jitter", "jitter", true },
  [LS_DATA_STRATEGIES] = { "strategies", "strategy", "strategy" },
  [LS_DATA_SOFTWARE] = { "strategies/software", "software", "software" },
  [LS_DATA_KERNELS] = { "strategies/kernels", "file of kernels", "kernels" },
  [LS_DATA_PROGRAMS] = { "strategies/programs", "program", "program", true },
  [LS_DATA_OPTIMIZERS] = { "strategies/optimizers", "optimizer", "optimizer", true },
  [LS_DATA_TRACES] = { "traces", "trace", "trace" },
};

/* ---- places ---- */

typedef struct {
  const char *from; /* static */
  char *path;
} Root;

static void
root_clear (gpointer data)
{
  g_free (((Root *) data)->path);
}

/* Nothing is added of NULL. Takes path. */
static void
add_root (GArray *roots, const char *from, char *path)
{
  Root root = { from, path };
  if (path)
    g_array_append_val (roots, root);
}

/* The shared library, or the program, that this is linked into; NULL: it cannot be told. */
static char *
own_file (void)
{
  Dl_info info;
  struct link_map *object = NULL;
  bool is_library = dladdr1 (kinds, &info, (void **) &object, RTLD_DL_LINKMAP) && object && *object->l_name;
  char *path = realpath (is_library ? object->l_name : "/proc/self/exe", NULL);
  char *copy = g_strdup (path);
  free (path);
  return copy;
}

/* Seen from bin or lib; from lib/MULTIARCH; from the folder of a Python module; from build/src/cli and from
 * build/src/include/lockstep. */
static const char *const ways[]
    = { "../share/lockstep", "../../share/lockstep", "share/lockstep", "../../..", "../../../.." };

/* NULL: there are no data. */
static const char *
root_beside_program (void)
{
  static gsize is_known;
  static char *root;
  if (ls_once_enter (&is_known)) {
    g_autofree char *own = own_file (), *folder = own ? g_path_get_dirname (own) : NULL;
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

/* A relative path in XDG's variables is to be ignored: XDG Base Directory Specification 0.8. */
static void
add_xdg (GArray *roots, const char *from, const char *folder)
{
  if (g_path_is_absolute (folder))
    add_root (roots, from, g_build_filename (folder, "lockstep", NULL));
}

/* GArray of Root. */
static GArray *
roots_of (LsDataKind kind)
{
  GArray *roots = g_array_new (FALSE, FALSE, sizeof (Root));
  g_array_set_clear_func (roots, root_clear);
  const char *named = g_getenv ("LS_DATA_DIR");
  add_root (roots, "$LS_DATA_DIR", g_strdup (named));
  add_root (roots, ".", g_strdup ("."));
  if (!named)
    add_xdg (roots, "user", g_get_user_data_dir ());
  if (!named || kinds[kind].is_of_program)
    add_root (roots, "program", g_strdup (root_beside_program ()));
  add_root (roots, "installed", g_strdup (LS_DATADIR));
  for (const char *const *dir = g_get_system_data_dirs (); !named && *dir; dir++)
    add_xdg (roots, "system", *dir);
  return roots;
}

void
ls_data_are_near (void)
{
  for (int kind = 0; kind < LS_N_DATA_KINDS; kind++) {
    g_autoptr (GArray) roots = roots_of ((LsDataKind) kind);
    for (guint i = 0; i < roots->len; i++) {
      g_autofree char *path
          = g_build_filename (g_array_index (roots, Root, i).path, kinds[kind].folder, NULL);
      ls_near_add (path);
    }
  }
}

const char *
ls_data_folder (LsDataKind kind)
{
  return kinds[kind].folder;
}

const char *
ls_data_given_name (LsDataKind kind)
{
  return kinds[kind].given;
}

bool
ls_data_is_path (const char *name)
{
  return ls_json_is_given (name) || strchr (name, '/') || g_str_has_suffix (name, ".json")
      || strstr (name, ".json#");
}

/* ---- sets: several files in one ---- */

#define SET ".set.json"

char *
ls_data_set_of (const char *path, const char **ret_member)
{
  const char *hash = strrchr (path, '#');
  bool is_member = hash && hash - path > (long) strlen (".json") && hash[1]
      && strncmp (hash - strlen (".json"), ".json", strlen (".json")) == 0;
  *ret_member = is_member ? hash + 1 : NULL;
  return is_member ? g_strndup (path, (gsize) (hash - path)) : NULL;
}

static gint
by_text (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

/* Sorted, char *. */
static GPtrArray *
files_in (const char *folder, const char *suffix)
{
  GPtrArray *files = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *file = dir ? g_dir_read_name (dir) : NULL; file; file = g_dir_read_name (dir))
    if (g_str_has_suffix (file, suffix))
      g_ptr_array_add (files, g_strdup (file));
  g_ptr_array_sort (files, by_text);
  return files;
}

/* Those of a set that is there and right; what is wrong with it, check says. NULL or a document. */
static LsJsonDoc *
open_set (const char *path, const cJSON **ret_members)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJsonDoc *doc = ls_json_doc_load_kept (path, diags);
  *ret_members = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "members") : NULL;
  return doc;
}

static char *
find_in_sets (const char *folder, const char *name)
{
  g_autoptr (GPtrArray) sets = files_in (folder, SET);
  for (guint i = 0; i < sets->len; i++) {
    g_autofree char *path = g_build_filename (folder, sets->pdata[i], NULL);
    const cJSON *members;
    g_autoptr (LsJsonDoc) doc = open_set (path, &members);
    if (cJSON_GetObjectItemCaseSensitive (members, name))
      return g_strconcat (path, "#", name, NULL);
  }
  return NULL;
}

static char *
find_named (LsDataKind kind, const char *name)
{
  g_autoptr (GArray) roots = roots_of (kind);
  g_autofree char *file = g_strconcat (name, ".json", NULL);
  for (guint i = 0; i < roots->len; i++) {
    g_autofree char *folder
        = g_build_filename (g_array_index (roots, Root, i).path, kinds[kind].folder, NULL);
    g_autofree char *path = g_build_filename (folder, file, NULL);
    char *found
        = g_file_test (path, G_FILE_TEST_IS_REGULAR) ? g_steal_pointer (&path) : find_in_sets (folder, name);
    if (found)
      return found;
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
  g_autofree char *machines = kind == LS_DATA_CLUSTERS ? ls_data_clusters_with (name) : NULL;
  const char *near = machines ? NULL : ls_suggest (name, (const char *const *) names->pdata);
  if (machines)
    return g_strdup_printf ("no cluster is named \"%s\"; %s", name, machines);
  if (near)
    return g_strdup_printf ("no %s is named \"%s\"; did you mean \"%s\"?", kinds[kind].what, name, near);
  if (entries->len == 0)
    return g_strdup_printf ("no %s is named \"%s\", nor is any other to be found: run from the root of the "
                            "project, or set LS_DATA_DIR to it, or to share/lockstep of an installation",
                            kinds[kind].what, name);
  return g_strdup_printf ("no %s is named \"%s\" in %s/%s", kinds[kind].what, name, kinds[kind].folder,
                          kind == LS_DATA_MODELS ? "; the path of a Hugging Face config.json does too" : "");
}

/* What is wrong if a file's name is followed by a colon but no KEY=VALUE, else NULL. */
static char *
half_a_change (LsDataKind kind, const char *name)
{
  const char *colon = strchr (name, ':');
  if (!colon || ls_json_is_given (name) || g_file_test (name, G_FILE_TEST_EXISTS))
    return NULL;
  g_autofree char *bare = g_strndup (name, (gsize) (colon - name));
  g_autofree char *path = ls_data_is_path (bare) ? g_strdup (bare) : find_named (kind, bare);
  if (!path || !g_file_test (path, G_FILE_TEST_EXISTS))
    return NULL;
  return g_strdup_printf ("expected changes as %s:KEY=VALUE,KEY=VALUE; got \"%s\"", bare, colon + 1);
}

char *
ls_data_find (LsDataKind kind, const char *name, char **reterr_message)
{
  if ((*reterr_message = half_a_change (kind, name)))
    return NULL;
  if (ls_data_is_path (name))
    return g_strdup (name);
  char *path = *name ? find_named (kind, name) : NULL;
  if (!path)
    path = ls_data_find_called (kind, name);
  if (!path)
    *reterr_message = not_found (kind, name);
  return path;
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

/* Takes path. */
static void
add_entry (GPtrArray *entries, const Root *root, const char *name, char *path)
{
  if (has_name (entries, name)) {
    g_free (path);
    return;
  }
  LsDataEntry *entry = g_new (LsDataEntry, 1);
  *entry = (LsDataEntry) { g_strdup (name), path, root->from };
  g_ptr_array_add (entries, entry);
}

static void
add_set (GPtrArray *entries, const Root *root, const char *path)
{
  const cJSON *members;
  g_autoptr (LsJsonDoc) doc = open_set (path, &members);
  for (const cJSON *m = members ? members->child : NULL; m; m = m->next)
    if (m->string)
      add_entry (entries, root, m->string, g_strconcat (path, "#", m->string, NULL));
}

/* Files first: their names go before those of sets. */
static void
add_folder (GPtrArray *entries, const Root *root, const char *folder)
{
  g_autoptr (GPtrArray) files = files_in (folder, ".json");
  for (int is_set = 0; is_set < 2; is_set++)
    for (guint i = 0; i < files->len; i++) {
      const char *file = files->pdata[i];
      g_autofree char *path = g_build_filename (folder, file, NULL);
      if (g_str_has_suffix (file, SET) != is_set || !g_file_test (path, G_FILE_TEST_IS_REGULAR))
        continue;
      g_autofree char *name = g_strndup (file, strlen (file) - strlen (".json"));
      if (is_set)
        add_set (entries, root, path);
      else
        add_entry (entries, root, name, g_steal_pointer (&path));
    }
}

GPtrArray *
ls_data_list (LsDataKind kind)
{
  g_autoptr (GArray) roots = roots_of (kind);
  GPtrArray *entries = g_ptr_array_new_with_free_func (entry_free);
  for (guint i = 0; i < roots->len; i++) {
    const Root *root = &g_array_index (roots, Root, i);
    g_autofree char *folder = g_build_filename (root->path, kinds[kind].folder, NULL);
    add_folder (entries, root, folder);
  }
  g_ptr_array_sort (entries, by_name);
  return entries;
}
