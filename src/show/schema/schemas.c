/* A table is read into a tree of keys, and the tree is written. */
#include "show/schema/schemas.h"

#include <gio/gio.h>
#include <stdbool.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/suggest.h"
#include "data/inspect.h"
#include "data/text/field.h"
#include "show/text_table.h"

GResource *schema_get_resource (void); /* of schema.gresource.xml */

/* --- the table ----------------------------------------------------------------------------------- */

/* Newly allocated lines of the file. */
static char **
read_lines (void)
{
  g_autoptr (GBytes) bytes = g_resource_lookup_data (
      schema_get_resource (), "/lockstep/schema/result_keys.txt", G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  g_assert (bytes);
  gsize size;
  const char *text = g_bytes_get_data (bytes, &size);
  g_autofree char *all = g_strndup (text, size);
  return g_strsplit (all, "\n", -1);
}

/* "run" and "results of lockstep run" of "== run: results of lockstep run"; false: no such line. */
static bool
read_heading (const char *line, char **ret_name, char **ret_meaning)
{
  if (!g_str_has_prefix (line, "== "))
    return false;
  g_auto (GStrv) parts = g_strsplit (line + strlen ("== "), ": ", 2);
  *ret_name = g_strdup (parts[0]);
  *ret_meaning = g_strdup (parts[1] ? parts[1] : "");
  return true;
}

/* "links[].name .bytes" as links[].name and links[].bytes. */
static char **
whole_keys (const char *shown)
{
  char **keys = g_strsplit (shown, " ", -1);
  for (guint i = 1; keys[i]; i++) {
    const char *dot = strrchr (keys[i - 1], '.');
    if (keys[i][0] != '.' || !dot)
      continue;
    char *whole = g_strdup_printf ("%.*s%s", (int) (dot - keys[i - 1]), keys[i - 1], keys[i]);
    g_free (keys[i]);
    keys[i] = whole;
  }
  return keys;
}

static void
row_free (gpointer data)
{
  LsResultRow *row = data;
  g_free ((char *) row->shown);
  g_free ((char *) row->meaning);
  g_strfreev (row->keys);
  g_strfreev (row->types);
  g_free (row);
}

static LsResultRow *
read_row (const char *line)
{
  g_auto (GStrv) cells = g_strsplit (line, " | ", 4);
  g_assert (cells[0] && cells[1]);
  LsResultRow *row = g_new0 (LsResultRow, 1);
  row->shown = g_strdup (cells[0]);
  row->meaning = g_strdup (cells[2] ? cells[2] : "");
  row->keys = whole_keys (cells[0]);
  row->types = g_strsplit (cells[1], " ", -1);
  guint n_types = g_strv_length (row->types);
  g_assert (n_types == 1 || n_types == g_strv_length (row->keys));
  return row;
}

GPtrArray *
ls_result_rows (const char *name)
{
  g_auto (GStrv) lines = read_lines ();
  GPtrArray *rows = NULL;
  bool is_here = false;
  for (guint i = 0; lines[i]; i++) {
    g_autofree char *section = NULL, *meaning = NULL;
    if (read_heading (lines[i], &section, &meaning))
      is_here = strcmp (section, name) == 0;
    else if (is_here && lines[i][0] && !strchr ("#@", lines[i][0])) {
      rows = rows ? rows : g_ptr_array_new_with_free_func (row_free);
      g_ptr_array_add (rows, read_row (lines[i]));
    }
  }
  return rows;
}

char **
ls_result_schema_names (char ***ret_meanings)
{
  g_auto (GStrv) lines = read_lines ();
  g_autoptr (GPtrArray) names = g_ptr_array_new (), meanings = g_ptr_array_new ();
  char *name, *meaning;
  for (guint i = 0; lines[i]; i++)
    if (read_heading (lines[i], &name, &meaning)) {
      g_ptr_array_add (names, name);
      g_ptr_array_add (meanings, meaning);
    }
  g_ptr_array_add (names, NULL);
  g_ptr_array_add (meanings, NULL);
  *ret_meanings = (char **) g_ptr_array_steal (meanings, NULL);
  return (char **) g_ptr_array_steal (names, NULL);
}

/* --- the tree ------------------------------------------------------------------------------------ */

typedef struct Node Node;
struct Node {
  char *name, *type, *meaning; /* NULL: an object or a list as what is in it says; nothing */
  bool is_null, is_absent;     /* may be                                                   */
  GPtrArray *members;          /* Node, of an object                                       */
  Node *item;                  /* of a list                                                */
};

static void
node_free (gpointer data)
{
  Node *node = data;
  if (!node)
    return;
  g_free (node->name);
  g_free (node->type);
  g_free (node->meaning);
  g_ptr_array_unref (node->members);
  node_free (node->item);
  g_free (node);
}

static Node *
node_new (const char *name)
{
  Node *node = g_new0 (Node, 1);
  node->name = g_strdup (name);
  node->members = g_ptr_array_new_with_free_func (node_free);
  return node;
}

static Node *
member_of (Node *node, const char *name)
{
  for (guint i = 0; i < node->members->len; i++) {
    Node *member = g_ptr_array_index (node->members, i);
    if (strcmp (member->name, name) == 0)
      return member;
  }
  g_ptr_array_add (node->members, node_new (name));
  return g_ptr_array_index (node->members, node->members->len - 1);
}

/* What "links[].name" leads to, made where it is not there. */
static Node *
node_at (Node *root, const char *way)
{
  g_auto (GStrv) steps = g_strsplit (way, ".", -1);
  Node *node = root;
  for (guint i = 0; steps[i]; i++) {
    g_autofree char *name = g_strndup (steps[i], strcspn (steps[i], "["));
    node = member_of (node, name);
    for (const char *p = strchr (steps[i], '['); p; p = strchr (p + 1, '[')) {
      if (!node->item)
        node->item = node_new ("");
      node = node->item;
    }
  }
  return node;
}

static void add_table (Node *root, const char *name);

/* type: "string/null", "=whatif/absent". */
static void
describe (Node *node, const char *type, const char *meaning)
{
  g_auto (GStrv) words = g_strsplit (type, "/", -1);
  for (guint i = 1; words[i]; i++) {
    node->is_null |= strcmp (words[i], "null") == 0;
    node->is_absent |= strcmp (words[i], "absent") == 0;
  }
  node->type = g_strdup (words[0]);
  node->meaning = *meaning ? g_strdup (meaning) : NULL;
  if (words[0][0] == '=')
    add_table (node, words[0] + 1);
}

static void
add_table (Node *root, const char *name)
{
  g_autoptr (GPtrArray) rows = ls_result_rows (name);
  g_assert (rows);
  for (guint i = 0; i < rows->len; i++) {
    const LsResultRow *row = g_ptr_array_index (rows, i);
    for (guint k = 0; row->keys[k]; k++)
      describe (node_at (root, row->keys[k]), row->types[row->types[1] ? k : 0], row->meaning);
  }
}

/* --- writing ------------------------------------------------------------------------------------- */

static const char *
json_type (const Node *node)
{
  bool is_list = node->item || g_strcmp0 (node->type, "list") == 0;
  if (is_list)
    return "array";
  bool is_object = !node->type || node->type[0] == '=' || node->members->len > 0;
  return is_object ? "object" : node->type;
}

static void
write_type (const Node *node, LsJsonOut *w)
{
  const char *type = json_type (node);
  if (!node->is_null && strcmp (type, "number") != 0) {
    ls_json_out_string (w, "type", type);
    return;
  }
  ls_json_out_begin_array (w, "type");
  ls_json_out_string (w, NULL, type);
  ls_json_out_string (w, NULL, "null");
  ls_json_out_end_array (w);
}

/* FAMILY stands for any key. */
static bool
is_any_name (const char *name)
{
  return name[strspn (name, G_CSET_A_2_Z)] == '\0';
}

static void write_node (const Node *node, const char *key, LsJsonOut *w);

static void
write_members (const Node *node, const char *schema, LsJsonOut *w)
{
  const Node *any = NULL;
  ls_json_out_begin_object (w, "properties");
  if (schema) {
    ls_json_out_begin_object (w, "schema");
    ls_json_out_string (w, "const", schema);
    ls_json_out_end_object (w);
  }
  for (guint i = 0; i < node->members->len; i++) {
    const Node *member = g_ptr_array_index (node->members, i);
    if (is_any_name (member->name))
      any = member;
    else
      write_node (member, member->name, w);
  }
  ls_json_out_end_object (w);
  if (any)
    write_node (any, "additionalProperties", w);
  ls_json_out_begin_array (w, "required");
  if (schema)
    ls_json_out_string (w, NULL, "schema");
  for (guint i = 0; i < node->members->len; i++) {
    const Node *member = g_ptr_array_index (node->members, i);
    if (!member->is_absent && member != any)
      ls_json_out_string (w, NULL, member->name);
  }
  ls_json_out_end_array (w);
}

static void
write_node (const Node *node, const char *key, LsJsonOut *w)
{
  ls_json_out_begin_object (w, key);
  if (node->meaning)
    ls_json_out_string (w, "description", node->meaning);
  write_type (node, w);
  if (node->item)
    write_node (node->item, "items", w);
  else if (node->members->len > 0)
    write_members (node, NULL, w);
  ls_json_out_end_object (w);
}

void
ls_result_schema_write (const char *name, LsJsonOut *w)
{
  Node *root = node_new ("");
  g_autofree char *schema = g_strdup_printf ("lockstep.%s/1", name);
  add_table (root, name);
  ls_json_out_string (w, "type", "object");
  write_members (root, schema, w);
  node_free (root);
}

/* --- a schema by its name --------------------------------------------------------------------------- */

/* What is written with a schema that is read too has it from the table that reads it. */
static bool
write_schema (const char *name, LsJsonOut *w)
{
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++)
    if (strcmp (kind, name) == 0) {
      ls_file_schema_write (i, w);
      return true;
    }
  g_auto (GStrv) meanings = NULL, names = ls_result_schema_names (&meanings);
  if (!g_strv_contains ((const char *const *) names, name))
    return false;
  ls_result_schema_write (name, w);
  return true;
}

static void
refuse (const char *name, GError **error)
{
  g_auto (GStrv) meanings = NULL, written = ls_result_schema_names (&meanings);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++)
    g_ptr_array_add (names, (gpointer) kind);
  for (guint i = 0; written[i]; i++)
    g_ptr_array_add (names, written[i]);
  g_ptr_array_add (names, NULL);
  const char *near = ls_suggest (name, (const char *const *) names->pdata);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "there is no schema \"%s\"%s%s%s", name,
               near ? "; did you mean \"" : "; lockstep schema lists them", near ? near : "",
               near ? "\"?" : "");
}

char *
ls_schema_to_json (const char *asked, GError **error)
{
  bool is_whole = g_str_has_prefix (asked, "lockstep.") && g_str_has_suffix (asked, "/1");
  const char *begin = asked + (is_whole ? strlen ("lockstep.") : 0);
  g_autofree char *name = g_strndup (begin, strlen (begin) - (is_whole ? strlen ("/1") : 0));
  g_autofree char *id = g_strdup_printf ("urn:lockstep:%s:1", name);
  g_autofree char *title = g_strdup_printf ("lockstep.%s/1", name);
  LsJsonOut w;
  ls_json_out_open (&w);
  ls_json_out_string (&w, "$schema", LS_JSON_SCHEMA_DIALECT);
  ls_json_out_string (&w, "$id", id);
  ls_json_out_string (&w, "title", title);
  bool is_known = write_schema (name, &w);
  g_autofree char *text = ls_json_out_close (&w);
  if (!is_known)
    refuse (name, error);
  return is_known ? g_steal_pointer (&text) : NULL;
}

char *
ls_schemas_list (void)
{
  g_auto (GStrv) meanings = NULL, names = ls_result_schema_names (&meanings);
  GString *out = g_string_new ("read\n");
  LsTextTable table;
  ls_text_table_init (&table, "ll");
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++) {
    ls_text_table_add (&table, "%s\v%s", kind, ls_file_schema_meaning (i));
  }
  ls_text_table_print (&table, 2, out);
  g_string_append (out, "\nwritten\n");
  ls_text_table_init (&table, "ll");
  for (guint i = 0; names[i]; i++) {
    ls_text_table_add (&table, "%s\v%s", names[i], meanings[i]);
  }
  ls_text_table_print (&table, 2, out);
  return g_string_free (out, FALSE);
}
