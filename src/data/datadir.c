#define _GNU_SOURCE /* dladdr1() */
#include "data/datadir.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/handover.h"
#include "base/list.h"
#include "base/near.h"
#include "base/order.h"
#include "base/suggest.h"
#include "data/text/json_out.h"
#include "data/text/override.h"

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
  [LS_DATA_ENVIRONMENTS] = { "topologies/environment", "file of variables", "nccl-environment", true },
  [LS_DATA_RELIABILITY] = { "topologies/reliability", "file of failures", "reliability" },
  [LS_DATA_JITTER] = { "topologies/jitter", "file of jitter", "jitter", true },
  [LS_DATA_STRATEGIES] = { "strategies", "strategy", "strategy" },
  [LS_DATA_SOFTWARE] = { "strategies/software", "software", "software" },
  [LS_DATA_KERNELS] = { "strategies/kernels", "file of kernels", "kernels" },
  [LS_DATA_PROGRAMS] = { "strategies/programs", "program", "program", true },
  [LS_DATA_OPTIMIZERS] = { "strategies/optimizers", "optimizer", "optimizer", true },
  [LS_DATA_TRACES] = { "traces", "trace", "trace" },
  [LS_DATA_LABS] = { "strategies/labs", "lab", "lab" },
};

/* ---- places ---- */

typedef struct {
  char *path;
  const char *from; /* static */
} Root;

/* Nothing is added of NULL. Takes path. */
static void
add_root (GArray *roots, const char *from, char *path)
{
  Root root = { path, from };
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
  GArray *roots = ls_list_new (sizeof (Root), ls_clear_text);
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

bool
ls_data_is_path (const char *name)
{
  return ls_json_is_given (name) || strchr (name, '/') || g_str_has_suffix (name, ".json")
      || strstr (name, ".json#");
}

/* ---- sets: several files in one ---- */

#define SET ".set.json"

/* The path of the set, newly allocated, and within path the name of the member; NULL: it is none. */
static char *
set_of (const char *path, const char **ret_member)
{
  const char *hash = strrchr (path, '#');
  bool is_member = hash && hash - path > (long) strlen (".json") && hash[1]
      && strncmp (hash - strlen (".json"), ".json", strlen (".json")) == 0;
  *ret_member = is_member ? hash + 1 : NULL;
  return is_member ? g_strndup (path, (gsize) (hash - path)) : NULL;
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
  g_ptr_array_sort (files, ls_compare_texts);
  return files;
}

/* Those of a set that is there and right, or that one; what is wrong with it, check says. NULL or a document.
 */
static LsJsonDoc *
open_set (const char *path, const char *member, const cJSON **ret_members)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJsonDoc *doc = ls_json_doc_load_kept (path, member, diags);
  *ret_members = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "members") : NULL;
  return doc;
}

/* --- names as people write them -------------------------------------------------------------- */

char *
ls_data_folded (const char *name)
{
  GString *folded = g_string_new (NULL);
  for (const char *at = name; *at; at++)
    if (!strchr (" ._-", *at))
      g_string_append_c (folded, g_ascii_tolower (*at));
    else if (folded->len > 0 && folded->str[folded->len - 1] != '-')
      g_string_append_c (folded, '-');
  return g_string_free (folded, FALSE);
}

static bool
is_called (const char *name, const char *folded)
{
  g_autofree char *own = ls_data_folded (name);
  return g_str_equal (own, folded);
}

/* --- "also" --------------------------------------------------------------------------------- */

/* "v5p-1024 8x8x8": what stands behind the blank if what stands before it is called so, else NULL. */
static const char *
shape_of (const char *slice, const char *folded)
{
  const char *blank = strchr (slice, ' ');
  g_autofree char *name = blank ? g_strndup (slice, (gsize) (blank - slice)) : NULL;
  return name && is_called (name, folded) ? blank + 1 : NULL;
}

/* The text of a list of the file that is called so. What is wrong with the file, who reads it says. */
static char *
find_in_list (const char *path, const char *key, const char *folded)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_open (path, diags);
  const cJSON *list = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key) : NULL, *one;
  bool is_slices = g_str_equal (key, "slices");
  cJSON_ArrayForEach (one, list) {
    const char *text = cJSON_IsString (one) ? one->valuestring : "";
    if (is_slices ? shape_of (text, folded) != NULL : is_called (text, folded))
      return g_strdup (text);
  }
  return NULL;
}

static bool
is_also (const LsDataEntry *entry, const char *folded)
{
  g_autofree char *also = find_in_list (entry->path, "also", folded);
  g_autofree char *slice = also ? NULL : find_in_list (entry->path, "slices", folded);
  return also || slice;
}

/* What the name changes in the cluster that was found for it, as data/text/override.h has changes: of
 * "v5p-1024", which is among its "slices", "node.torus.slice=[8,8,8]". Newly allocated; NULL: nothing. */
static char *
slice_named (const char *path, const char *name)
{
  if (ls_data_is_path (name))
    return NULL;
  g_autofree char *folded = ls_data_folded (name);
  g_autofree char *slice = find_in_list (path, "slices", folded);
  if (!slice)
    return NULL;
  g_auto (GStrv) axes = g_strsplit (shape_of (slice, folded), "x", -1);
  g_autofree char *list = g_strjoinv (",", axes);
  return g_strdup_printf ("node.torus.slice=[%s]", list);
}

/* The file of that kind whose name is the same but for that, or of a cluster that has it in "also" or among
 * its "slices"; the first of ls_data_list(). Newly allocated; NULL: none. */
static char *
find_called (LsDataKind kind, const char *name)
{
  g_autofree char *folded = ls_data_folded (name);
  g_autoptr (GPtrArray) entries = ls_data_list (kind);
  for (guint i = 0; i < entries->len && *folded; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    if (is_called (entry->name, folded))
      return g_strdup (entry->path);
  }
  for (guint i = 0; i < entries->len && *folded && kind == LS_DATA_CLUSTERS; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    if (is_also (entry, folded))
      return g_strdup (entry->path);
  }
  return NULL;
}

/* --- clusters by their accelerators ------------------------------------------------------- */

#define MOST_NAMED 12

/* Those that a word is the name of, else the beginning of: "a100" of "a100-40g" and "a100-80g". */
static void
add_gpus (GPtrArray *gpus, const GPtrArray *entries, const char *word)
{
  size_t n = strlen (word);
  for (int is_beginning = 0; is_beginning < 2 && gpus->len == 0; is_beginning++)
    for (guint i = 0; i < entries->len; i++) {
      const LsDataEntry *entry = entries->pdata[i];
      g_autofree char *folded = ls_data_folded (entry->name);
      if (strncmp (folded, word, n) == 0 && folded[n] == (is_beginning ? '-' : '\0'))
        g_ptr_array_add (gpus, g_strdup (entry->name));
    }
}

/* Names of accelerators, char *; that of the first word that names one. */
static GPtrArray *
gpus_named (const char *folded)
{
  GPtrArray *gpus = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) words = g_strsplit (folded, "-", -1);
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_GPUS);
  for (char **word = words; *word; word++)
    if (g_ascii_isalpha (**word) && strpbrk (*word, "0123456789")) /* it may name a GPU */
      add_gpus (gpus, entries, *word);
  return gpus;
}

static bool
has_gpu (const LsDataEntry *cluster, const GPtrArray *gpus)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CLUSTERS, cluster->path, diags);
  const cJSON *gpu = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "gpu") : NULL;
  return cJSON_IsString (gpu)
      && g_ptr_array_find_with_equal_func ((GPtrArray *) gpus, gpu->valuestring, g_str_equal, NULL);
}

static char *
join (const GPtrArray *names, const char *last)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < MIN (names->len, MOST_NAMED); i++)
    g_string_append_printf (text, "%s%s",
                            i == 0                    ? ""
                                : i + 1 == names->len ? last
                                                      : ", ",
                            (const char *) names->pdata[i]);
  if (names->len > MOST_NAMED)
    g_string_append_printf (text, " and %u more (lockstep list clusters)", names->len - MOST_NAMED);
  return g_string_free (text, FALSE);
}

/* "dgx-a100": what was typed are several words, and the beginning of a cluster's name. */
static bool
begins_a_cluster (const char *folded, const GPtrArray *clusters)
{
  size_t n = strlen (folded);
  bool begins = false;
  for (guint i = 0; i < clusters->len && strchr (folded, '-'); i++) {
    g_autofree char *name = ls_data_folded (((const LsDataEntry *) clusters->pdata[i])->name);
    begins = begins || (strncmp (name, folded, n) == 0 && name[n] == '-');
  }
  return begins;
}

/* Of a name of no cluster that names an accelerator, alone or among other words ("H100", "A100-SXM4-80GB"): a
 * sentence with the clusters that have one, newly allocated. NULL: it names none. */
static char *
clusters_with (const char *name)
{
  g_autofree char *folded = ls_data_folded (name);
  g_autoptr (GPtrArray) gpus = gpus_named (folded), entries = ls_data_list (LS_DATA_CLUSTERS);
  if (gpus->len == 0 || begins_a_cluster (folded, entries))
    return NULL;
  g_autoptr (GPtrArray) clusters = g_ptr_array_new ();
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    if (has_gpu (entry, gpus))
      g_ptr_array_add (clusters, entry->name);
  }
  g_autofree char *which = join (gpus, " or "), *where = join (clusters, " and ");
  if (clusters->len == 0)
    return g_strdup_printf ("none has the accelerator %s: a file of your own may name it in \"gpu\"", which);
  return g_strdup_printf ("the accelerator %s is in %s", which, where);
}

/* --- finding ----------------------------------------------------------------------------------- */

/* Whether it may be one of a set: to read is cheaper than to parse. */
static bool
mentions (const char *path, const char *name)
{
  g_autofree char *text = NULL, *quoted = g_strconcat ("\"", name, "\"", NULL);
  return !g_file_get_contents (path, &text, NULL, NULL) || strstr (text, quoted);
}

static char *
find_in_sets (const char *folder, const char *name)
{
  g_autoptr (GPtrArray) sets = files_in (folder, SET);
  for (guint i = 0; i < sets->len; i++) {
    g_autofree char *path = g_build_filename (folder, sets->pdata[i], NULL);
    const cJSON *members;
    g_autoptr (LsJsonDoc) doc = mentions (path, name) ? open_set (path, name, &members) : NULL;
    if (doc && cJSON_GetObjectItemCaseSensitive (members, name))
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
  g_autofree char *machines = kind == LS_DATA_CLUSTERS ? clusters_with (name) : NULL;
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
    path = find_called (kind, name);
  if (!path && g_file_test (name, G_FILE_TEST_IS_REGULAR))
    path = g_strdup (name); /* "topo.txt": its reader says what it is */
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
  g_autoptr (LsJsonDoc) doc = open_set (path, NULL, &members);
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

/* --- a file as it is meant: a member of a set, its paths, what it takes over from another -------- */

/* Which keys of a kind may hold the path of another file, or its contents, and of which kind that is. */
static const struct {
  const char *refers[3];
  LsDataKind of;
} references[LS_N_DATA_KINDS] = {
  [LS_DATA_CLUSTERS] = { { "gpu" }, LS_DATA_GPUS },
  [LS_DATA_GPUS] = { { "calibration", "nccl", "access" }, LS_DATA_CALIBRATIONS },
  [LS_DATA_CALIBRATIONS] = { { "generation" }, LS_DATA_NCCL_TABLES },
};

/* ---- paths ---- */

static bool
is_there (const char *path)
{
  const char *member;
  g_autofree char *set = set_of (path, &member);
  return g_file_test (set ? set : path, G_FILE_TEST_IS_REGULAR);
}

char *
ls_data_beside (const char *file, const char *name)
{
  g_autofree char *folder = g_path_get_dirname (file);
  const char *changes = ls_override_find (name);
  g_autofree char *bare = ls_override_bare (name);
  g_autofree char *there = g_build_filename (folder, bare, NULL);
  bool is_here = g_str_equal (folder, ".") || g_path_is_absolute (bare) || !ls_data_is_path (bare);
  if (is_here || !is_there (there))
    return g_strdup (name);
  return g_strconcat (there, changes ? ":" : "", changes ? changes : "", NULL);
}

/* A path that stands in the document, as from here. Takes doc. */
static LsJsonDoc *
rebase_path (LsJsonDoc *doc, const cJSON *node, LsDiagList *diags)
{
  g_autofree char *path = ls_data_beside (ls_json_doc_name (doc), node->valuestring);
  if (g_str_equal (path, node->valuestring))
    return doc;
  g_autofree char *text = ls_json_string (path);
  return ls_json_doc_replace (doc, node, text, diags);
}

/* An object of the root, or with NULL the root. */
static const cJSON *
object_of (const LsJsonDoc *doc, const char *outer)
{
  const cJSON *root = ls_json_doc_root (doc);
  return outer ? cJSON_GetObjectItemCaseSensitive (root, outer) : root;
}

static LsJsonDoc *
rebase_key (LsJsonDoc *doc, const char *outer, const char *key, LsDiagList *diags)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (object_of (doc, outer), key);
  return cJSON_IsString (node) ? rebase_path (doc, node, diags) : doc;
}

/* ---- what is taken over ---- */

/* What a file says of itself alone. */
static bool
is_own (const char *key)
{
  static const char *const keys[]
      = { "schema", "name", "also", "slices", "source", "pci", "successors", NULL };
  return g_strv_contains (keys, key);
}

/* The object that `way` (of keys, from the root) leads to. */
static const cJSON *
at_way (const LsJsonDoc *doc, const GPtrArray *way)
{
  const cJSON *node = ls_json_doc_root (doc);
  for (guint i = 0; i < way->len; i++)
    node = cJSON_GetObjectItemCaseSensitive (node, way->pdata[i]);
  return node;
}

static void
prepend_member (GString *members, const cJSON *node)
{
  char *text = cJSON_PrintUnformatted (node);
  g_autofree char *member
      = g_strdup_printf ("\"%s\": %s%s", node->string, text, members->len > 0 ? ", " : "");
  g_string_prepend (members, member);
  cJSON_free (text);
}

/* What the base has of the object that `way` leads to: a key that the object has not, as it is; of objects
 * each key; null here: gone. The outermost object keeps what it says of itself, or does not say. Takes doc,
 * which is parsed again once for each object that gains keys. */
static LsJsonDoc *
take_over (LsJsonDoc *doc, GPtrArray *way, const cJSON *base, bool is_outermost, LsDiagList *diags)
{
  g_autoptr (GString) members = g_string_new (NULL);
  for (const cJSON *key = base->child; doc && key; key = key->next) {
    if (is_outermost && is_own (key->string))
      continue;
    const cJSON *own = cJSON_GetObjectItemCaseSensitive (at_way (doc, way), key->string);
    if (!own)
      prepend_member (members, key);
    else if (cJSON_IsNull (own))
      doc = ls_json_doc_remove (doc, own, diags);
    else if (cJSON_IsObject (own) && cJSON_IsObject (key)) {
      g_ptr_array_add (way, key->string);
      doc = take_over (doc, way, key, false, diags);
      g_ptr_array_remove_index (way, way->len - 1);
    }
  }
  return doc && members->len > 0 ? ls_json_doc_insert (doc, at_way (doc, way), members->str, diags) : doc;
}

#define MAX_BASES 8

/* What a file takes over is shown where it is wrong: of what lies elsewhere only what is ours. */
static bool
is_shown (const LsJsonDoc *base)
{
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (base), "schema");
  return ls_is_near (ls_json_doc_name (base))
      || (cJSON_IsString (schema) && g_str_has_prefix (schema->valuestring, "lockstep."));
}

static LsJsonDoc *load (LsDataKind kind, const char *name, guint depth, LsDiagList *diags);

/* Of the root, or of its object `outer`: "extends" replaced by what it names. Takes doc. */
static LsJsonDoc *
extend (LsDataKind kind, const char *outer, guint depth, LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (object_of (doc, outer), "extends");
  if (!node)
    return doc;
  g_autoptr (LsJsonDoc) base = NULL;
  if (!cJSON_IsString (node))
    ls_json_doc_wrong (doc, node, diags, "expected the name or path of another file");
  else if (depth == MAX_BASES)
    ls_json_doc_wrong (doc, node, diags,
                       "more than %d files, each of which extends the next; does one extend itself?",
                       MAX_BASES);
  else
    base = load (kind, node->valuestring, depth + 1, diags);
  if (!base) {
    ls_json_doc_free (doc);
    return NULL;
  }
  if (!is_shown (base)) {
    ls_json_doc_wrong (doc, node, diags, "expected a file of Lockstep, or one next to this");
    ls_json_doc_free (doc);
    return NULL;
  }
  doc = ls_json_doc_remove (doc, node, diags);
  g_autoptr (GPtrArray) way = g_ptr_array_new ();
  if (outer)
    g_ptr_array_add (way, (gpointer) outer);
  return doc ? take_over (doc, way, ls_json_doc_root (base), true, diags) : NULL;
}

static LsJsonDoc *
complete (LsDataKind kind, const char *outer, guint depth, LsJsonDoc *doc, LsDiagList *diags)
{
  doc = rebase_key (doc, outer, "extends", diags);
  for (size_t i = 0; doc && i < G_N_ELEMENTS (references[kind].refers) && references[kind].refers[i]; i++) {
    const char *key = references[kind].refers[i];
    const cJSON *node = cJSON_GetObjectItemCaseSensitive (object_of (doc, outer), key);
    if (cJSON_IsObject (node) && !outer)
      doc = complete (references[kind].of, key, depth, doc, diags);
    else
      doc = rebase_key (doc, outer, key, diags);
  }
  return doc ? extend (kind, outer, depth, doc, diags) : NULL;
}

LsJsonDoc *
ls_data_complete (LsDataKind kind, LsJsonDoc *doc, LsDiagList *diags)
{
  return complete (kind, NULL, 0, doc, diags);
}

/* ---- sets ---- */

/* With the name and the schema that a file of its own would have. */
LsJsonDoc *
ls_data_member (const LsJsonDoc *set, const char *member, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (set), *of = cJSON_GetObjectItemCaseSensitive (root, "of"),
              *members = cJSON_GetObjectItemCaseSensitive (root, "members"),
              *node = cJSON_GetObjectItemCaseSensitive (members, member);
  if (!cJSON_IsString (of) || !cJSON_IsObject (node)) {
    ls_json_doc_wrong (set, root, diags, "expected \"of\", a schema, and \"members\" with an object \"%s\"",
                       member);
    return NULL;
  }
  g_autofree char *name = g_strconcat (ls_json_doc_name (set), "#", member, NULL);
  g_autofree char *schema = ls_json_string (of->valuestring), *called = ls_json_string (member);
  g_autofree char *own = g_strdup_printf ("\"schema\": %s, \"name\": %s", schema, called);
  LsJsonDoc *doc = ls_json_doc_part (set, node, name);
  return ls_json_doc_insert (doc, ls_json_doc_root (doc), own, diags);
}

LsJsonDoc *
ls_data_open (const char *path, LsDiagList *diags)
{
  const char *member;
  if (ls_json_is_given (path))
    return ls_json_doc_parse_given (path, "file", diags);
  g_autofree char *set_path = set_of (path, &member);
  if (!set_path)
    return ls_json_doc_load_kept (path, NULL, diags);
  g_autoptr (LsJsonDoc) set = ls_json_doc_load_kept (set_path, member, diags);
  return set ? ls_data_member (set, member, diags) : NULL;
}

/* ---- loading ---- */

static LsJsonDoc *
load (LsDataKind kind, const char *name, guint depth, LsDiagList *diags)
{
  const char *changes = ls_override_find (name);
  g_autofree char *bare = ls_override_bare (name);
  g_autofree char *message = NULL;
  g_autofree char *path = ls_data_find (kind, bare, &message);
  if (path) {
    LsJsonDoc *doc = ls_json_is_given (path) ? ls_json_doc_parse_given (path, kinds[kind].given, diags)
                                             : ls_data_open (path, diags);
    doc = doc ? complete (kind, NULL, depth, doc, diags) : NULL;
    g_autofree char *slice = kind == LS_DATA_CLUSTERS ? slice_named (path, bare) : NULL;
    doc = doc && slice ? ls_override_apply (doc, slice, diags) : doc;
    return doc && changes ? ls_override_apply (doc, changes, diags) : doc;
  }
  ls_diag_fail (diags, LS_ERROR_INPUT, "%s", message);
  return NULL;
}

LsJsonDoc *
ls_data_load (LsDataKind kind, const char *name, LsDiagList *diags)
{
  return load (kind, name, 0, diags);
}

LsJsonDoc *
ls_data_load_base (LsDataKind kind, const LsJsonDoc *doc, guint n_bases, LsDiagList *diags)
{
  const cJSON *name = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "based_on");
  if (n_bases < MAX_BASES)
    return ls_data_load (kind, name->valuestring, diags);
  ls_json_doc_wrong (doc, name, diags,
                     "expected at most %d files, each based on the next; got more, or a circle", MAX_BASES);
  return NULL;
}

/* ---- what is in them ---- */

void
ls_data_file_free (const LsDataFile *file, void *object)
{
  if (file->clear)
    file->clear (object);
  else
    ls_fields_clear (file->fields, object);
  g_free (object);
}

void *
ls_data_file_new (const LsDataFile *file, const LsJsonDoc *doc, LsDiagList *diags)
{
  void *object = g_malloc0 (MAX (file->size, file->room));
  if (file->blank)
    memcpy (object, file->blank, file->size);
  if (ls_fields_read_file (file->fields, file->kind, doc, object, diags)
      && (!file->finish || file->finish (doc, ls_json_doc_root (doc), object, diags)))
    return object;
  ls_data_file_free (file, object);
  return NULL;
}

bool
ls_data_file_read (const LsDataFile *file, const LsJsonDoc *doc, void *ret, LsDiagList *diags)
{
  g_autofree void *object = ls_data_file_new (file, doc, diags);
  if (object)
    memcpy (ret, object, file->size);
  return object != NULL;
}

bool
ls_data_file_load (const LsDataFile *file, const char *name, void *ret, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (file->of, name, diags);
  return doc && ls_data_file_read (file, doc, ret, diags);
}
