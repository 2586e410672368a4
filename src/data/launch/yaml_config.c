#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/shell/shell.h"
#include "data/text/json_doc.h"
#include "data/text/read_file.h"
#include "data/text/yaml.h"

/* --- files next to those that are read, which a command names ------------------------------------------ */

#define MAX_ABOVE 4 /* folders */

char *
launch_read_beside (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n)
{
  g_autofree char *folder = g_path_get_dirname (files->files[0].path),
                  *path = g_build_filename (folder, name, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  char *text = g_file_test (path, G_FILE_TEST_IS_REGULAR)
      ? ls_read_file (path, LAUNCH_MAX_BESIDE, ret_n, diags)
      : NULL;
  const char *own = g_str_has_prefix (path, "./") ? path + 2 : path;
  if (text && is_of_job && !g_ptr_array_find_with_equal_func (files->found, own, g_str_equal, NULL))
    g_ptr_array_add (files->found, g_strdup (own)); /* it is told as one of the job's */
  return text;
}

char *
launch_read_above (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n)
{
  char *text = NULL;
  g_autoptr (GString) path = g_string_new (name);
  for (guint i = 0; i < MAX_ABOVE && !text; i++) {
    g_string_prepend (path, "../");
    text = launch_read_beside (files, path->str, is_of_job, ret_n);
  }
  return text;
}

/* is_of_job: what is found is read for the job, not to see what it is. */
static char *
find_file (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n)
{
  g_autofree char *base = g_path_get_basename (name);
  const char *written = g_hash_table_lookup (files->written, base);
  if (written) {
    *ret_n = strlen (written);
    return g_strdup (written);
  }
  for (guint i = 1; i < files->n; i++)
    if (g_str_has_suffix (files->files[i].path, base)) {
      if (is_of_job)
        import_use_file (&files->files[i]);
      *ret_n = files->files[i].n;
      return g_strndup (files->files[i].text, files->files[i].n);
    }
  bool can_be_above = strchr (name, '/') && *name != '/' && !ls_shell_has_hole (name);
  char *text = launch_read_beside (files, name, is_of_job, ret_n);
  text = text || !can_be_above ? text : launch_read_above (files, name, is_of_job, ret_n);
  return text ? text : launch_read_beside (files, base, is_of_job, ret_n);
}

char *
launch_file_of (const ImportFiles *files, const char *name, gsize *ret_n)
{
  return find_file (files, name, true, ret_n);
}

bool
launch_refuse_config (const char *name, const LsImport *import, LsDiagList *diags)
{
  return ls_file_diag (diags, LS_ERROR_INPUT, import->made.path, "give it too, after the script",
                       "a script of %s, whose configuration%s%s is not here", import->made.program,
                       name ? " " : "", name ? name : "");
}

gboolean
launch_has_line (const char *text, const char *start)
{
  for (const char *p = strstr (text, start); p; p = strstr (p + 1, start)) {
    const char *q = p;
    while (q > text && (q[-1] == ' ' || q[-1] == '\t'))
      q--;
    if (q == text || q[-1] == '\n')
      return true;
  }
  return false;
}

bool
launch_has_any_line (const char *text, const char *starts, const char *separator)
{
  return program_any_word (starts, separator, launch_has_line, text);
}

bool
launch_has_end (const char *name, const char *ends)
{
  return program_any_word (ends, " ", g_str_has_suffix, name);
}

bool
launch_is_yaml (const char *name)
{
  return launch_has_end (name, ".yaml .yml");
}

bool
launch_names_file (const ImportFiles *files, char *const *words, guint n, const char *marks)
{
  for (guint i = 0; i < n; i++) {
    const char *equals = words[i][0] == '-' ? strchr (words[i], '=') : NULL,
               *name = equals ? equals + 1 : words[i];
    gsize size;
    bool is_json = g_str_has_suffix (name, ".json");
    g_autofree char *text = launch_is_yaml (name) || is_json ? find_file (files, name, false, &size) : NULL;
    if (text && launch_has_any_line (text, marks, " "))
      return true;
  }
  return false;
}

bool
launch_has_part (const char *name, const char *separators, const char *parts)
{
  g_auto (GStrv) words = g_strsplit_set (name, separators, -1);
  for (char **word = words; *word; word++)
    if (ls_is_one_of (*word, parts))
      return true;
  return false;
}

/* --- files ---------------------------------------------------------------------------------------- */

const cJSON *
yaml_config_tree (const ImportFile *file)
{
  if (!file->yaml->is_parsed) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    file->yaml->tree = ls_yaml_parse (file->text, file->n, file->path, NULL, diags);
    file->yaml->is_parsed = true;
  }
  return file->yaml->tree;
}

static cJSON *
member (const cJSON *object, const char *key, gsize n)
{
  for (cJSON *item = object ? object->child : NULL; item; item = item->next) {
    const char *own = item->string;
    gsize i = 0;
    while (own && i < n && (own[i] == '-' ? '_' : own[i]) == (key[i] == '-' ? '_' : key[i]))
      i++;
    if (own && i == n && own[n] == '\0')
      return item;
  }
  return NULL;
}

/* What from has is moved. A large mapping is looked up by a table, as two may come together. */
void
yaml_config_merge (cJSON *into, cJSON *from)
{
  g_autoptr (GHashTable) keys = g_hash_table_new (g_str_hash, g_str_equal);
  cJSON *item, *next;
  cJSON_ArrayForEach (item, into)
    g_hash_table_insert (keys, item->string, item);
  for (item = from->child; item; item = next) {
    next = item->next;
    cJSON *before = g_hash_table_lookup (keys, item->string);
    cJSON_DetachItemViaPointer (from, item);
    if (cJSON_IsObject (before) && cJSON_IsObject (item)) {
      yaml_config_merge (before, item);
      cJSON_Delete (item);
      continue;
    }
    if (before) {
      g_hash_table_remove (keys, before->string);
      cJSON_Delete (cJSON_DetachItemViaPointer (into, before));
    }
    cJSON_AddItemToArray (into, item); /* keeps its key */
    g_hash_table_insert (keys, item->string, item);
  }
}

cJSON *
yaml_config_parse (const ImportFile *file, LsImport *import, LsDiagList *diags)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  cJSON *tree = ls_yaml_parse (file->text, file->n, file->path, notes, diags);
  for (guint i = 0; i < notes->len; i++)
    import_infer (import, "%s", (const char *) notes->pdata[i]);
  return tree;
}

bool
yaml_config_add (cJSON *into, const ImportFile *file, LsImport *import, LsDiagList *diags)
{
  g_autoptr (cJSON) tree = yaml_config_parse (file, import, diags);
  bool ok = cJSON_IsObject (tree);
  if (tree && !ok)
    ls_file_diag (diags, LS_ERROR_INPUT, file->path, NULL, "expected a mapping in YAML");
  if (ok)
    yaml_config_merge (into, tree);
  import_use_file (file);
  return ok;
}

char *
yaml_config_as_json (const char *text, gsize n, const char *name)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (cJSON) tree = ls_yaml_parse (text, n, name, NULL, diags);
  return cJSON_IsObject (tree) ? cJSON_PrintUnformatted (tree) : NULL;
}

cJSON *
yaml_config_of_name (const ImportFiles *files, const char *said, LsImport *import, LsDiagList *diags)
{
  g_autofree char *name = said
      ? g_strconcat (said, launch_is_yaml (said) || g_str_has_suffix (said, ".json") ? "" : ".yaml", NULL)
      : NULL;
  gsize n = 0;
  g_autofree char *text = name ? launch_file_of (files, name, &n) : NULL;
  g_autoptr (cJSON) tree = cJSON_CreateObject ();
  bool ok = text ? yaml_config_add (tree, &(ImportFile) { .path = name, .text = text, .n = n }, import, diags)
                 : launch_refuse_config (name, import, diags);
  return ok ? g_steal_pointer (&tree) : NULL;
}

bool
yaml_config_refuse (const ImportFile *file, LsDiagList *diags)
{
  if (!launch_is_yaml (file->path))
    return false;
  cJSON *tree = ls_yaml_parse (file->text, file->n, file->path, NULL, diags), *item;
  if (!tree)
    return true;
  GString *keys = g_string_new (NULL);
  guint n = 0;
  for (item = cJSON_IsObject (tree) ? tree->child : NULL; item && n < 8; item = item->next, n++)
    g_string_append_printf (keys, "%s%s", n > 0 ? ", " : "; it has ", item->string);
  bool is_chart = yaml_config_find (tree, "workload.gpus") || yaml_config_find (tree, "workload.image");
  ls_file_diag (diags, LS_ERROR_INPUT, file->path,
                is_chart
                    ? "values of a chart of Helm: give the script that it starts, or what `helm template` "
                      "makes of the chart"
                    : IMPORT_ELSE,
                "YAML, but the configuration of no program that is read%s%s", keys->str, item ? ", ..." : "");
  g_string_free (keys, TRUE);
  cJSON_Delete (tree);
  return true;
}

/* --- members -------------------------------------------------------------------------------------- */

cJSON *
yaml_config_find (const cJSON *tree, const char *path)
{
  const cJSON *at = tree;
  while (at && *path) {
    gsize n = strcspn (path, ".");
    at = cJSON_IsObject (at) ? member (at, path, n) : NULL;
    path += n + (path[n] == '.');
  }
  return (cJSON *) at;
}

cJSON *
yaml_config_detach (cJSON *tree, const char *path)
{
  const char *dot = strrchr (path, '.');
  g_autofree char *above = g_strndup (path, dot ? (gsize) (dot - path) : 0);
  cJSON *item = *path ? yaml_config_find (tree, path) : NULL;
  return item ? cJSON_DetachItemViaPointer (yaml_config_find (tree, above), item) : NULL;
}

void
yaml_config_set_node (cJSON *tree, const char *path, cJSON *node)
{
  cJSON *at = tree;
  while (strchr (path, '.')) {
    gsize n = strcspn (path, ".");
    g_autofree char *key = g_strndup (path, n);
    cJSON *next = member (at, path, n);
    if (next && !cJSON_IsObject (next)) {
      cJSON_Delete (cJSON_DetachItemViaPointer (at, next));
      next = NULL;
    }
    at = next ? next : cJSON_AddObjectToObject (at, key);
    path += n + 1;
  }
  cJSON_Delete (yaml_config_detach (at, path));
  cJSON_AddItemToObject (at, path, node);
}

void
yaml_config_lift (cJSON *tree, const char *key)
{
  g_autoptr (cJSON) part
      = cJSON_IsObject (yaml_config_find (tree, key)) ? yaml_config_detach (tree, key) : NULL;
  if (part)
    yaml_config_merge (tree, part);
}

/* A text that is no YAML by itself is a text. */
void
yaml_config_set (cJSON *tree, const char *path, const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  cJSON *node = strpbrk (text, "$\n") ? NULL : ls_yaml_parse (text, strlen (text), "a value", NULL, diags);
  yaml_config_set_node (tree, path, node ? node : cJSON_CreateString (text));
}

void
yaml_config_set_pair (cJSON *tree, const char *word)
{
  const char *name = word + strspn (word, "+"), *equals = strchr (name, '=');
  g_autofree char *path = equals ? g_strndup (name, (gsize) (equals - name)) : NULL;
  if (path && g_ascii_isalpha (path[0]))
    yaml_config_set (tree, path, equals + 1);
}

LaunchWords *
yaml_config_words (cJSON *tree)
{
  LaunchWords *words = launch_words_new ();
  yaml_config_resolve (tree);
  launch_words_add_tree (words, tree);
  cJSON_Delete (tree);
  return words;
}

/* --- interpolations ---------------------------------------------------------------------------------- */

/* OmegaConf's interpolations, https://omegaconf.readthedocs.io (2.3, "Variable interpolation"), with the
 * resolvers that NeMo and its launcher register: multiply, add, subtract, divide_ceil, divide_floor. */

#define MAX_TEXT   ((gsize) 16 << 20) /* bytes that are searched for interpolations, and added by them */
#define MAX_NESTED 16                 /* ${ within ${ */

typedef struct {
  cJSON *tree;
  GHashTable *above; /* cJSON * -> cJSON *: the mapping or list around it */
  GHashTable *open;  /* cJSON *: being resolved */
  GHashTable *done;  /* cJSON * */
  gsize n_bytes;
  guint n_nested;
} Resolve;

static void resolve_node (Resolve *r, cJSON *node);

/* --- what a text may mean ------------------------------------------------------------------------- */

/* The } that closes what begins at text; NULL: none does. */
static const char *
find_close (Resolve *r, const char *text)
{
  guint depth = 0;
  for (; *text && r->n_bytes <= MAX_TEXT; text++) {
    r->n_bytes++;
    if (text[0] == '$' && text[1] == '{') {
      depth++;
      text++;
    } else if (*text == '}' && depth-- == 0)
      return text;
  }
  return NULL;
}

/* --- what it names -------------------------------------------------------------------------------- */

/* "a.b", "a[0]", ".b", "..b" from a node; NULL: there is none. */
static cJSON *
find (const Resolve *r, const cJSON *from, const char *path)
{
  gsize up = strspn (path, ".");
  cJSON *at = up > 0 ? (cJSON *) from : NULL;
  for (gsize i = 0; at && i < up; i++)
    at = g_hash_table_lookup (r->above, at);
  at = at ? at : r->tree;
  g_auto (GStrv) keys = g_strsplit_set (path + up, ".[]", 2 * LS_JSON_MAX_DEPTH);
  for (char **key = keys; *key && at; key++) {
    guint64 index = G_MAXINT;
    if (**key && cJSON_IsArray (at) && !g_ascii_string_to_unsigned (*key, 10, 0, G_MAXINT, &index, NULL))
      return NULL;
    at = !**key              ? at
        : cJSON_IsArray (at) ? cJSON_GetArrayItem (at, (int) index)
                             : cJSON_GetObjectItemCaseSensitive (at, *key);
  }
  return at;
}

/* NULL: nothing. A part of a larger configuration may name itself from the root of that, as the files of
 * NeMo's launcher do by "training.". */
static cJSON *
named (Resolve *r, const cJSON *from, const char *path)
{
  cJSON *node = find (r, from, path);
  if (!node && g_str_has_prefix (path, "training."))
    node = find (r, from, path + strlen ("training."));
  if (!node || node == r->tree)
    return NULL;
  resolve_node (r, node);
  return g_hash_table_contains (r->open, node) ? NULL : node;
}

/* --- what a call gives ---------------------------------------------------------------------------- */

/* Newly allocated; NULL: not known. */
static char *
call (const char *name, char **args, guint n)
{
  char *end[2] = { NULL, NULL };
  if (strcmp (name, "oc.env") == 0)
    return n == 2 ? g_strdup (args[1]) : NULL;
  if (strcmp (name, "oc.decode") == 0)
    return n == 1 ? g_strdup (args[0]) : NULL;
  if (n != 2)
    return NULL;
  double a = g_ascii_strtod (args[0], &end[0]), b = g_ascii_strtod (args[1], &end[1]);
  if (end[0] == args[0] || *end[0] || end[1] == args[1] || *end[1])
    return NULL;
  const struct {
    const char *name;
    double value;
  } calls[] = { { "multiply", a * b },
                { "add", a + b },
                { "sum", a + b },
                { "subtract", a - b },
                { "divide_ceil", ceil (a / b) },
                { "divide_floor", floor (a / b) },
                { "int_div", floor (a / b) },
                { "divide", a / b } };
  for (guint i = 0; i < G_N_ELEMENTS (calls); i++)
    if (strcmp (name, calls[i].name) == 0 && isfinite (calls[i].value))
      return launch_scalar_text (&(cJSON) { .type = cJSON_Number, .valuedouble = calls[i].value });
  return NULL;
}

static char *resolve_text (Resolve *r, const cJSON *from, const char *text);

/* Its arguments stand between commas outside of braces. */
static char *
resolve_call (Resolve *r, const cJSON *from, const char *inner, const char *colon)
{
  g_autofree char *name = g_strndup (inner, (gsize) (colon - inner));
  g_autoptr (GPtrArray) args = g_ptr_array_new_with_free_func (g_free);
  guint depth = 0;
  for (const char *p = colon + 1, *begin = p; begin; p++) {
    depth += p[0] == '$' && p[1] == '{';
    depth -= *p == '}' && depth > 0;
    if (*p && (*p != ',' || depth > 0))
      continue;
    g_autofree char *arg = g_strstrip (g_strndup (begin, (gsize) (p - begin)));
    g_ptr_array_add (args, resolve_text (r, from, arg));
    begin = *p ? p + 1 : NULL;
  }
  return call (name, (char **) args->pdata, args->len);
}

/* What stands between ${ and }: its node, or else its text, newly allocated; both NULL: not known. */
static cJSON *
resolve_inner (Resolve *r, const cJSON *from, const char *inner, char **ret_text)
{
  const char *colon = strchr (inner, ':'), *nested = strstr (inner, "${");
  *ret_text = NULL;
  if (r->n_nested >= MAX_NESTED)
    return NULL;
  r->n_nested++;
  cJSON *node = NULL;
  if (colon && (!nested || colon < nested))
    *ret_text = resolve_call (r, from, inner, colon);
  else {
    g_autofree char *path = resolve_text (r, from, inner);
    node = named (r, from, g_strstrip (path));
  }
  r->n_nested--;
  return node;
}

/* With its parts replaced, newly allocated. */
static char *
resolve_text (Resolve *r, const cJSON *from, const char *text)
{
  GString *out = g_string_new (NULL);
  while (*text) {
    const char *close = text[0] == '$' && text[1] == '{' ? find_close (r, text + 2) : NULL;
    if (!close) {
      g_string_append_c (out, *text++);
      continue;
    }
    g_autofree char *inner = g_strndup (text + 2, (gsize) (close - text - 2)), *part = NULL;
    cJSON *node = resolve_inner (r, from, inner, &part);
    part = part ? part : node ? launch_scalar_text (node) : NULL;
    if (!part || (r->n_bytes += strlen (part)) > MAX_TEXT) {
      g_free (part);
      part = g_strdup_printf ("%c${%.200s}%c", LS_SHELL_HOLE, inner, LS_SHELL_HOLE_END);
    }
    g_string_append (out, part);
    text = close + 1;
  }
  return g_string_free (out, FALSE);
}

/* --- in place ------------------------------------------------------------------------------------- */

/* node becomes what other is; takes other. */
static void
become (cJSON *node, cJSON *other)
{
  cJSON old = { .type = node->type, .child = node->child, .valuestring = node->valuestring };
  node->type = other->type;
  node->child = other->child;
  node->valuestring = other->valuestring;
  node->valueint = other->valueint;
  node->valuedouble = other->valuedouble;
  other->type = old.type;
  other->child = old.child;
  other->valuestring = old.valuestring;
  cJSON_Delete (other);
}

/* All of the text is one ${...}, which keeps its type; false: it has none. A mapping or list is copied where
 * it is one of scalars, as that makes nothing deeper. */
static bool
resolve_whole (Resolve *r, cJSON *node, const char *inner)
{
  g_autofree char *part = NULL;
  const cJSON *other = resolve_inner (r, node, inner, &part), *child = other && !part ? other->child : NULL;
  for (; child && !child->child && r->n_bytes <= MAX_TEXT; child = child->next)
    r->n_bytes += sizeof *child + (child->valuestring ? strlen (child->valuestring) : 0);
  if (!part && (!other || child || (other->child && r->n_bytes > MAX_TEXT)))
    return false;
  become (node, part ? ls_yaml_scalar (part) : cJSON_Duplicate (other, true));
  return true;
}

static void
resolve_string (Resolve *r, cJSON *node)
{
  const char *text = node->valuestring;
  const char *close = g_str_has_prefix (text, "${") ? find_close (r, text + 2) : NULL;
  g_autofree char *inner = close && !close[1] ? g_strndup (text + 2, (gsize) (close - text - 2)) : NULL;
  if (inner && resolve_whole (r, node, inner))
    return;
  bool is_missing = strcmp (text, "???") == 0;
  g_autofree char *resolved = is_missing ? g_strdup_printf ("%c???%c", LS_SHELL_HOLE, LS_SHELL_HOLE_END)
                                         : resolve_text (r, node, text);
  become (node, cJSON_CreateString (resolved));
}

/* With all below it. */
static void
resolve_node (Resolve *r, cJSON *node)
{
  if (g_hash_table_contains (r->done, node) || !g_hash_table_add (r->open, node))
    return;
  if (cJSON_IsString (node) && (strstr (node->valuestring, "${") || strcmp (node->valuestring, "???") == 0))
    resolve_string (r, node);
  else
    for (cJSON *child = node->child; child; child = child->next)
      resolve_node (r, child);
  g_hash_table_remove (r->open, node);
  g_hash_table_add (r->done, node);
}

static void
note_above (Resolve *r, cJSON *node)
{
  for (cJSON *child = node->child; child; child = child->next) {
    g_hash_table_insert (r->above, child, node);
    note_above (r, child);
  }
}

void
yaml_config_resolve (cJSON *tree)
{
  Resolve r = { .tree = tree };
  r.above = g_hash_table_new (g_direct_hash, g_direct_equal);
  r.open = g_hash_table_new (g_direct_hash, g_direct_equal);
  r.done = g_hash_table_new (g_direct_hash, g_direct_equal);
  note_above (&r, tree);
  resolve_node (&r, tree);
  g_hash_table_unref (r.above);
  g_hash_table_unref (r.open);
  g_hash_table_unref (r.done);
}
