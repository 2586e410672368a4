/* data/datadir_load.c — a data file as it is meant: a member of a set, its paths as from its own folder, with
 * what it takes over from another and what a name changes. */
#include <string.h>

#include "base/near.h"
#include "data/datadir.h"
#include "data/datadir_called.h"
#include "data/text/json_out.h"
#include "data/text/override.h"

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

static char *
json_string (const char *value)
{
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut out;
  ls_json_out_init (&out, text, 0);
  ls_json_out_string (&out, NULL, value);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static bool
is_there (const char *path)
{
  const char *member;
  g_autofree char *set = ls_data_set_of (path, &member);
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
  g_autofree char *text = json_string (path);
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
  static const char *const keys[] = { "schema", "name", "also", "slices", "source", "successors", NULL };
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
    ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "expected the name or path of another file");
  else if (depth == MAX_BASES)
    ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL,
                      "more than %d files, each of which extends the next; does one extend itself?",
                      MAX_BASES);
  else
    base = load (kind, node->valuestring, depth + 1, diags);
  if (!base) {
    ls_json_doc_free (doc);
    return NULL;
  }
  if (!is_shown (base)) {
    ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL,
                      "expected a file of Lockstep, or one next to this");
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
    ls_json_doc_diag (set, root, LS_JSON_AT_VALUE, diags, NULL,
                      "expected \"of\", a schema, and \"members\" with an object \"%s\"", member);
    return NULL;
  }
  g_autofree char *name = g_strconcat (ls_json_doc_name (set), "#", member, NULL);
  g_autofree char *schema = json_string (of->valuestring), *called = json_string (member);
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
  g_autofree char *set_path = ls_data_set_of (path, &member);
  if (!set_path)
    return ls_json_doc_load_kept (path, diags);
  g_autoptr (LsJsonDoc) set = ls_json_doc_load_kept (set_path, diags);
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
    LsJsonDoc *doc = ls_json_is_given (path)
        ? ls_json_doc_parse_given (path, ls_data_given_name (kind), diags)
        : ls_data_open (path, diags);
    doc = doc ? complete (kind, NULL, depth, doc, diags) : NULL;
    g_autofree char *slice = kind == LS_DATA_CLUSTERS ? ls_data_slice_named (path, bare) : NULL;
    doc = doc && slice ? ls_override_apply (doc, slice, diags) : doc;
    return doc && changes ? ls_override_apply (doc, changes, diags) : doc;
  }
  ls_diag_add (diags, LS_ERROR_INPUT, NULL, 0, 0, NULL, NULL, NULL, "%s", message);
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
  ls_json_doc_diag (doc, name, LS_JSON_AT_VALUE, diags, NULL,
                    "expected at most %d files, each based on the next; got more, or a circle", MAX_BASES);
  return NULL;
}
