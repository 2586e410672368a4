/* data/text/field.c — a table of fields reads objects and flags, and says as JSON Schema what it reads. */
#include "data/text/field_kinds.h"

#include <gio/gio.h>
#include <math.h>
#include <string.h>

#include "base/handover.h"
#include "base/suggest.h"

static bool read_object (const FieldReading *r, const LsField *fields, const cJSON *object, void *target);
static bool read_value (const FieldReading *r, const LsField *f, const cJSON *node, void *target);

const LsField ls_text_element[] = { { "", LS_FIELD_STRING, 0, .required = true }, { NULL } };

/* --- names -------------------------------------------------------------------- */

static bool
same_name (const char *key, const char *name)
{
  for (; *key && *name; key++, name++)
    if (*key != (*name == '-' ? '_' : *name))
      return false;
  return *key == *name;
}

const LsField *
ls_field_find (const LsField *fields, const char *name)
{
  for (const LsField *f = fields; f->key; f++)
    if (*f->key == *name && !f->file_only && same_name (f->key, name)) /* most differ in the first letter */
      return f;
  return NULL;
}

static const LsField *
find_key (const LsField *fields, const char *key)
{
  for (const LsField *f = fields; f->key; f++)
    if (*f->key == *key && strcmp (f->key, key) == 0)
      return f;
  return NULL;
}

const char *
ls_field_suggest (const LsField *fields, const char *typed)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new ();
  for (const LsField *f = fields; f->key; f++)
    g_ptr_array_add (words, (gpointer) f->key);
  g_ptr_array_add (words, NULL);
  return ls_suggest (typed, (const char *const *) words->pdata);
}

bool
ls_field_is_value (const LsField *f)
{
  return !f->file_only || f->kind == LS_FIELD_UINT_LIST;
}

const LsField *
ls_field_find_value (const LsField *fields, const char *key)
{
  const LsField *flag = ls_field_find (fields, key), *other = flag ? NULL : find_key (fields, key);
  return other && ls_field_is_value (other) ? other : flag;
}

/* --- what keys mean: keys.txt ------------------------------------------------- */

GResource *keys_get_resource (void); /* of keys.gresource.xml */

/* Texts within the file's, which stays. */
typedef struct {
  const char *usual, *meaning; /* usual: without the key; NULL: nothing is said */
  char *end;                   /* of meaning */
} KeyText;

/* A line of what a key means, behind those before it. */
static void
add_meaning (KeyText *key, char *line)
{
  if (!key->meaning) {
    key->meaning = line;
    key->end = line + strlen (line);
    return;
  }
  *key->end = ' ';
  memmove (key->end + 1, line, strlen (line) + 1);
  key->end += 1 + strlen (key->end + 1);
}

static KeyText *
add_key (GHashTable *all, const char *table, char *line)
{
  char *usual = strstr (line, " = ");
  KeyText *key = g_new0 (KeyText, 1);
  if (usual)
    *usual = '\0';
  key->usual = usual ? usual + strlen (" = ") : NULL;
  g_hash_table_insert (all, g_strconcat (table, "/", line, NULL), key);
  return key;
}

/* "TABLE/KEY" to KeyText; it and the text stay. */
static GHashTable *
read_keys (char **ret_text)
{
  g_autoptr (GBytes) bytes = g_resource_lookup_data (keys_get_resource (), "/lockstep/data/keys.txt",
                                                     G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  g_assert (bytes);
  *ret_text = g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  GHashTable *all = g_hash_table_new (g_str_hash, g_str_equal);
  const char *table = NULL;
  KeyText *key = NULL;
  for (char *line = *ret_text, *next; line; line = next) {
    next = strchr (line, '\n');
    if (next)
      *next++ = '\0';
    if (*line == '@')
      table = line + 1;
    else if (*line == ' ')
      add_meaning (key, line + strlen ("  "));
    else if (*line && *line != '#')
      key = add_key (all, table, line);
  }
  return all;
}

/* NULL: its table is not described there, or it has no such key. */
static const KeyText *
text_of_key (const LsField *f)
{
  static GHashTable *all;
  static char *all_text;
  static gsize is_made;
  const LsField *end = f;
  while (end->key)
    end++;
  if (!end->table)
    return NULL;
  if (ls_once_enter (&is_made)) {
    all = read_keys (&all_text);
    ls_once_leave (&is_made);
  }
  g_autofree char *path = g_strconcat (end->table, "/", f->key, NULL);
  return g_hash_table_lookup (all, path);
}

const char *
ls_field_meaning (const LsField *f)
{
  const KeyText *text = f->meaning ? NULL : text_of_key (f);
  return text ? text->meaning : f->meaning;
}

const char *
ls_field_default (const LsField *f)
{
  const KeyText *text = f->default_text ? NULL : text_of_key (f);
  return text ? text->usual : f->default_text;
}

char *
ls_fields_left_out (const LsField *fields, const char *const *keys, const cJSON *object, const void *target)
{
  g_autoptr (GString) all = g_string_new (NULL);
  for (; *keys; keys++) {
    const bool is_there = ls_json_at (object, *keys);
    g_autofree char *value = is_there ? NULL : ls_field_text (ls_field_find (fields, *keys), target, NULL);
    if (value)
      g_string_append_printf (all, "%s%s %s", all->len > 0 ? ", " : "", *keys, value);
  }
  return all->len > 0 ? g_strdup (all->str) : NULL;
}

/* --- one value of a JSON file ------------------------------------------------- */

/* Whether a text may stand for a number: a count with a letter, "8k". */
static bool
is_lettered (const LsField *f, const char *text)
{
  gsize n = strlen (text);
  return (f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_UINT64) && n > 0 && g_ascii_isalpha (text[n - 1]);
}

/* The text of a scalar of the JSON type that the kind asks for; NULL otherwise. */
static char *
text_of (const LsField *f, const cJSON *node)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  bool wants_number = f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_UINT64 || f->kind == LS_FIELD_DOUBLE;
  if (f->kind == LS_FIELD_BOOL)
    return cJSON_IsBool (node) ? g_strdup (cJSON_IsTrue (node) ? "true" : "false") : NULL;
  if (cJSON_IsNumber (node) && (wants_number || f->kind == LS_FIELD_CUSTOM))
    return g_strdup (g_ascii_formatd (number, sizeof number, "%.17g", node->valuedouble));
  bool is_text = cJSON_IsString (node) && (!wants_number || is_lettered (f, node->valuestring));
  return is_text ? g_strdup (node->valuestring) : NULL;
}

static bool
complain (const FieldReading *r, const LsField *f, const cJSON *node)
{
  g_autofree char *got = ls_json_describe (node);
  g_autofree char *message
      = ls_field_value_complaint (f, LS_FIELD_IN_JSON, cJSON_IsString (node) ? node->valuestring : NULL, got);
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  const char *text = cJSON_IsNumber (node)
      ? g_ascii_formatd (number, sizeof number, "%.15g", node->valuedouble)
      : cJSON_IsString (node) ? node->valuestring
                              : "";
  g_autofree char *hint = ls_field_value_hint (f, text);
  return ls_json_doc_diag (r->doc, node, LS_JSON_AT_VALUE, r->diags, hint, "%s", message);
}

static bool
read_scalar (const FieldReading *r, const LsField *f, const cJSON *node, void *target)
{
  g_autofree char *text = text_of (f, node);
  return (text && ls_field_value_set (f, target, text)) || complain (r, f, node);
}

/* Each of a list's numbers, of a row as many as it may have. */
static bool
read_numbers (const FieldReading *r, const LsField *f, const cJSON *node, GArray *values)
{
  LsField element = *f;
  element.kind = LS_FIELD_UINT;
  element.offset = 0;
  bool ok = true;
  for (const cJSON *c = node->child; c; c = c->next) {
    uint32_t value = 0;
    if (f->kind == LS_FIELD_ROW && values->len == f->n_row)
      return complain (r, f, node);
    ok = read_scalar (r, &element, c, &value) && ok;
    g_array_append_val (values, value);
  }
  return ok;
}

bool
field_read_list (const FieldReading *r, const LsField *f, const cJSON *node, void *target)
{
  if (f->runs && cJSON_IsString (node))
    return read_scalar (r, f, node, target);
  if (!cJSON_IsArray (node))
    return complain (r, f, node);
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  bool ok = read_numbers (r, f, node, values);
  if (ok)
    ls_field_value_set_list (f, target, (const uint32_t *) (gpointer) values->data, values->len);
  return ok;
}

bool
field_read_row (const FieldReading *r, const LsField *f, const cJSON *node, void *target)
{
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  if (!cJSON_IsArray (node) || !node->child)
    return complain (r, f, node);
  bool ok = read_numbers (r, f, node, values);
  memcpy ((char *) target + f->offset, values->data, values->len * sizeof (uint32_t));
  return ok;
}

/* A new one at the end. */
static void *
add_element (const LsField *f, GArray *array)
{
  g_array_set_size (array, array->len + 1);
  void *element = array->data + (array->len - 1) * f->element_size;
  if (f->blank)
    memcpy (element, f->blank, f->element_size);
  return element;
}

/* What a text stands for, as a list or as one value of a list; false: for nothing. */
static bool
read_items (const LsField *f, const cJSON *node, GArray *array)
{
  g_auto (GStrv) items = f->items && cJSON_IsString (node) ? f->items (node->valuestring) : NULL;
  bool ok = items != NULL;
  for (guint i = 0; ok && items[i]; i++)
    ok = ls_field_value_set (f->fields, add_element (f, array), items[i]);
  return ok;
}

bool
field_read_array (const FieldReading *r, const LsField *f, const cJSON *node, void *target)
{
  GArray **place = (GArray **) ((char *) target + f->offset);
  if (!*place)
    *place = g_array_new (FALSE, TRUE, (guint) f->element_size);
  if (!cJSON_IsArray (node))
    return read_items (f, node, *place) || complain (r, f, node);
  bool ok = true, is_value = *f->fields->key == '\0';
  for (const cJSON *c = node->child; c; c = c->next) {
    if (read_items (f, c, *place))
      continue;
    void *element = add_element (f, *place);
    ok = (is_value ? read_value (r, f->fields, c, element) : read_object (r, f->fields, c, element)) && ok;
  }
  return ok;
}

bool
field_read_sources (const FieldReading *r, const LsField *f, const cJSON *node, void *target)
{
  if (!cJSON_IsObject (node))
    return complain (r, f, node);
  static const LsField source = { "source", LS_FIELD_STRING };
  bool ok = true;
  for (const cJSON *c = node->child; c; c = c->next)
    ok = (cJSON_IsString (c) || complain (r, &source, c)) && ok;
  return ok;
}

static bool unknown_key (const FieldReading *r, const LsField *fields, const cJSON *node);

/* A value as a flag would have it; NULL: it is a list, an object or null. */
static char *
setting_text (const cJSON *node)
{
  if (cJSON_IsString (node))
    return g_strdup (node->valuestring);
  if (cJSON_IsBool (node))
    return g_strdup (cJSON_IsTrue (node) ? "true" : "false");
  return cJSON_IsNumber (node) ? g_strdup_printf ("%.15g", node->valuedouble) : NULL;
}

/* Whether a field of f would take it. */
static bool
check_setting (const FieldReading *r, const LsField *f, const cJSON *node, const char *text)
{
  const LsField *field = ls_field_find (f->fields, node->string);
  if (!field)
    return unknown_key (r, f->fields, node);
  g_autofree void *scratch = g_malloc0 (f->element_size);
  bool ok = ls_field_value_set (field, scratch, text);
  ls_fields_clear (f->fields, scratch);
  return ok || complain (r, field, node);
}

bool
field_read_settings (const FieldReading *r, const LsField *f, const cJSON *node, void *target)
{
  char ***place = (char ***) ((char *) target + f->offset);
  static const LsField value = { "value", LS_FIELD_STRING };
  if (!cJSON_IsObject (node))
    return complain (r, f, node);
  GPtrArray *settings = g_ptr_array_new ();
  bool ok = true;
  for (const cJSON *c = node->child; c; c = c->next) {
    g_autofree char *text = setting_text (c);
    ok = (text ? !f->fields || check_setting (r, f, c, text) : complain (r, &value, c)) && ok;
    g_ptr_array_add (settings, g_strdup_printf ("%s=%s", c->string, text ? text : ""));
  }
  g_ptr_array_add (settings, NULL);
  g_strfreev (*place);
  *place = (char **) g_ptr_array_free (settings, FALSE);
  return ok;
}

bool
field_read_nothing (const FieldReading *r, const LsField *f, const cJSON *node, void *target)
{
  return true;
}

bool
field_read_object (const FieldReading *r, const LsField *f, const cJSON *node, void *target)
{
  return read_object (r, f->fields, node, (char *) target + f->offset);
}

static bool
read_value (const FieldReading *r, const LsField *f, const cJSON *node, void *target)
{
  FieldRead *read = field_kind (f)->read;
  return (read ? read : read_scalar) (r, f, node, target);
}

/* --- objects ------------------------------------------------------------------ */

static bool
unknown_key (const FieldReading *r, const LsField *fields, const cJSON *node)
{
  if (g_str_has_prefix (node->string, "x-"))
    return true;
  if (r->notes && cJSON_IsNull (node)) /* it asks for nothing */
    return true;
  if (r->notes) {
    g_ptr_array_add (r->notes, g_strdup_printf ("key \"%s\" is not used", node->string));
    return true;
  }
  const char *near = ls_field_suggest (fields, node->string);
  if (near)
    ls_json_doc_diag (r->doc, node, LS_JSON_AT_KEY, r->diags, NULL, "unknown key; did you mean \"%s\"?",
                      near);
  else
    ls_json_doc_diag (r->doc, node, LS_JSON_AT_KEY, r->diags,
                      "keys that start with \"x-\" are free for notes", "unknown key");
  return false;
}

static bool
is_absent (const FieldReading *r, const cJSON *node)
{
  return !node || (r->notes && cJSON_IsNull (node));
}

static bool
check_required (const FieldReading *r, const LsField *fields, const cJSON *object)
{
  bool ok = true, is_root = object == ls_json_doc_root (r->doc);
  for (const LsField *f = fields; f->key; f++) {
    bool is_own = f->root_only && (!is_root || ls_json_doc_is_given (r->doc));
    if (!f->required || is_own || !is_absent (r, cJSON_GetObjectItemCaseSensitive (object, f->key)))
      continue;
    const char *meaning = ls_field_meaning (f);
    ok = ls_json_doc_wrong (r->doc, object, r->diags, "missing key \"%s\"%s%s%s", f->key, meaning ? " (" : "",
                            meaning ? meaning : "", meaning ? ")" : "");
  }
  return ok;
}

static bool
read_object (const FieldReading *r, const LsField *fields, const cJSON *object, void *target)
{
  static const LsField as_object = { "", LS_FIELD_OBJECT };
  if (!cJSON_IsObject (object))
    return complain (r, &as_object, object);
  bool ok = true;
  for (const cJSON *node = object->child; node; node = node->next) {
    if (is_absent (r, node))
      continue;
    const LsField *f = find_key (fields, node->string);
    ok = (f ? read_value (r, f, node, target) : unknown_key (r, fields, node)) && ok;
  }
  return check_required (r, fields, object) && ok;
}

bool
ls_fields_read (const LsField *fields, const LsJsonDoc *doc, const cJSON *object, void *target,
                GPtrArray *notes, LsDiagList *diags)
{
  FieldReading r = { .doc = doc, .notes = notes, .diags = diags };
  return read_object (&r, fields, object, target);
}

/* --- files -------------------------------------------------------------------- */

/* False if this is a file of another kind: then its keys are not worth reading. */
static bool
check_schema (const char *kind, const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc);
  g_autofree char *expected = g_strdup_printf ("lockstep.%s/1", kind);
  if (!cJSON_IsObject (root))
    return ls_json_doc_unexpected (doc, root, diags, "an object");
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive (root, "schema");
  if (!schema && ls_json_doc_is_given (doc))
    return true;
  if (!schema)
    return ls_json_doc_wrong (doc, root, diags, "missing key \"schema\"; expected \"schema\": \"%s\"",
                              expected);
  if (cJSON_IsString (schema) && strcmp (schema->valuestring, expected) == 0)
    return true;
  g_autofree char *got = ls_json_describe (schema);
  return ls_json_doc_wrong (doc, schema, diags, "expected \"%s\"; got %s", expected, got);
}

static bool
check_name (const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *name = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "name");
  g_autofree char *stem = ls_json_doc_stem (doc);
  if (ls_json_doc_is_given (doc) || !cJSON_IsString (name) || strcmp (name->valuestring, stem) == 0)
    return true; /* or reported already */
  g_autofree char *got = ls_json_describe (name);
  return ls_json_doc_diag (doc, name, LS_JSON_AT_VALUE, diags,
                           "a file is found by its name; both must say the same",
                           "expected \"%s\" as in the name of the file; got %s", stem, got);
}

/* What JSON in place of a file need not say of itself. */
static void
name_given (const LsField *fields, const LsJsonDoc *doc, void *target)
{
  for (const LsField *f = fields; f->key; f++) {
    char **text = (char **) ((char *) target + f->offset);
    if (!f->root_only || f->kind != LS_FIELD_STRING || *text)
      continue;
    if (strcmp (f->key, "name") == 0)
      *text = ls_json_doc_stem (doc);
    else if (strcmp (f->key, "source") == 0)
      *text = g_strdup ("given");
  }
}

bool
ls_fields_read_file (const LsField *fields, const char *kind, const LsJsonDoc *doc, void *target,
                     LsDiagList *diags)
{
  if (!check_schema (kind, doc, diags))
    return false;
  bool ok = ls_fields_read (fields, doc, ls_json_doc_root (doc), target, NULL, diags);
  if (ls_json_doc_is_given (doc))
    name_given (fields, doc, target);
  return check_name (doc, diags) && ok;
}

/* --- clearing ------------------------------------------------------------------ */

static void
clear_array (const LsField *f, GArray **place)
{
  for (guint i = 0; *place && i < (*place)->len; i++)
    ls_fields_clear (f->fields, (*place)->data + i * f->element_size);
  g_clear_pointer (place, g_array_unref);
}

void
ls_fields_clear (const LsField *fields, void *target)
{
  for (const LsField *f = fields; f->key; f++) {
    void *place = (char *) target + f->offset;
    if (f->kind == LS_FIELD_STRING)
      g_clear_pointer ((char **) place, g_free);
    else if (f->kind == LS_FIELD_UINT_LIST)
      g_clear_pointer ((uint32_t **) place, g_free);
    else if (f->kind == LS_FIELD_SETTINGS)
      g_clear_pointer ((char ***) place, g_strfreev);
    else if (f->kind == LS_FIELD_ARRAY)
      clear_array (f, place);
    else if (f->kind == LS_FIELD_OBJECT)
      ls_fields_clear (f->fields, place);
    else if (f->load)
      field_clear_loaded (f, target);
    else if (f->add)
      g_clear_pointer ((GArray **) place, g_array_unref);
    else if (f->clear)
      f->clear (target);
  }
}

/* --- flags -------------------------------------------------------------------- */

static bool
unknown_flag (const LsField *fields, const char *name, LsDiagList *diags)
{
  g_autofree char *flag = g_strdelimit (g_strconcat ("--", name, NULL), "_", '-');
  g_autofree char *key = g_strdelimit (g_strdup (name), "-", '_');
  const char *near = ls_field_suggest (fields, key);
  g_autofree char *near_flag = near ? ls_field_flag (find_key (fields, near)) : NULL;
  if (near)
    ls_diag_add (diags, LS_ERROR_USAGE, NULL, 0, 0, flag, NULL, NULL, "unknown option; did you mean \"%s\"?",
                 near_flag);
  else
    ls_diag_add (diags, LS_ERROR_USAGE, NULL, 0, 0, flag, NULL, NULL, "unknown option");
  return false;
}

/* The value of an enum as a user may write it: "BF16", "torch.bfloat16". */
static const char *
usual_name (const LsField *f, const char *text)
{
  const char *name = g_str_has_prefix (text, "torch.") ? text + strlen ("torch.") : text;
  for (const LsEnumName *e = f->kind == LS_FIELD_ENUM ? f->names : NULL; e && e->name; e++)
    if (g_ascii_strcasecmp (e->name, name) == 0)
      return e->name;
  return text;
}

bool
ls_field_set_text (const LsField *fields, void *target, const char *name, const char *text, LsDiagList *diags)
{
  const LsField *f = ls_field_find_value (fields, name);
  if (!f)
    return unknown_flag (fields, name, diags);
  if (ls_field_value_set (f, target, usual_name (f, text)))
    return true;
  g_autofree char *flag = ls_field_flag (f);
  g_autofree char *got = g_strdup_printf ("\"%s\"", text);
  g_autofree char *message = ls_field_value_complaint (f, LS_FIELD_IN_TEXT, text, got);
  g_autofree char *hint = ls_field_value_hint (f, text);
  ls_diag_add (diags, LS_ERROR_USAGE, NULL, 0, 0, flag, NULL, hint, "%s", message);
  return false;
}

bool
ls_field_add_text (const LsField *fields, void *target, const char *name, const char *text, LsDiagList *diags)
{
  const LsField *f = ls_field_find_value (fields, name);
  const char *before
      = f && f->repeated && f->kind == LS_FIELD_STRING ? G_STRUCT_MEMBER (char *, target, f->offset) : NULL;
  g_autofree char *all = before ? g_strconcat (before, " ", text, NULL) : NULL;
  return ls_field_set_text (fields, target, name, all ? all : text, diags);
}

/* --- JSON Schema ------------------------------------------------------------------- */

static void write_object (const FieldSchema *x, const LsField *fields, const char *kind);
static void write_value (const FieldSchema *x, LsFieldKind kind, const LsField *f);

/* --- parts --------------------------------------------------------------------------------------- */

/* types: "string" or "string number". */
static void
write_type (const FieldSchema *x, const char *types)
{
  g_autofree char *all = g_strconcat (types, x->is_partial ? " null" : "", NULL);
  g_auto (GStrv) each = g_strsplit (all, " ", -1);
  if (!each[1]) {
    ls_json_out_string (x->w, "type", each[0]);
    return;
  }
  ls_json_out_begin_array (x->w, "type");
  for (guint i = 0; each[i]; i++)
    ls_json_out_string (x->w, NULL, each[i]);
  ls_json_out_end_array (x->w);
}

void
field_describe_real (const FieldSchema *x, const LsField *f)
{
  double max = ls_field_value_max (f);
  ls_json_out_double (x->w, f->above ? "exclusiveMinimum" : "minimum", f->min);
  if (isfinite (max))
    ls_json_out_double (x->w, "maximum", max);
}

static void
write_pattern (const FieldSchema *x, LsQuantity quantity)
{
  g_autofree char *pattern = ls_quantity_pattern (quantity);
  ls_json_out_string (x->w, "pattern", pattern);
}

/* 8192, or "8k"; also each of a list of them. */
void
field_describe_count (const FieldSchema *x, const LsField *f)
{
  field_describe_real (x, f);
  write_pattern (x, LS_QUANTITY_COUNT);
}

void
field_describe_names (const FieldSchema *x, const LsField *f)
{
  ls_json_out_begin_array (x->w, "enum");
  for (const LsEnumName *e = f->names; e->name; e++)
    ls_json_out_string (x->w, NULL, e->name);
  if (x->is_partial)
    ls_json_out_null (x->w, NULL);
  ls_json_out_end_array (x->w);
}

/* What is in a list is whole, also where the file takes over from another. */
static FieldSchema
within (const FieldSchema *x)
{
  return (FieldSchema) { .w = x->w };
}

static void
write_items (const FieldSchema *x, const LsField *f)
{
  FieldSchema inner = within (x);
  ls_json_out_begin_object (x->w, "items");
  if (f->items)
    write_type (&inner, "integer string");
  else if (f->kind != LS_FIELD_ARRAY)
    write_value (&inner, LS_FIELD_UINT, f);
  else if (*f->fields->key == '\0')
    write_value (&inner, f->fields->kind, f->fields);
  else
    write_object (&inner, f->fields, NULL);
  ls_json_out_end_object (x->w);
}

void
field_describe_list (const FieldSchema *x, const LsField *f)
{
  write_type (x, (f->kind == LS_FIELD_UINT_LIST && f->runs) || f->items ? "array string" : "array");
  write_items (x, f);
  if (f->kind == LS_FIELD_ROW) {
    ls_json_out_uint (x->w, "minItems", 1);
    ls_json_out_uint (x->w, "maxItems", f->n_row);
  }
}

/* Keys for notes, within "patternProperties". */
static void
write_free_keys (const FieldSchema *x)
{
  ls_json_out_begin_object (x->w, "^x-");
  ls_json_out_end_object (x->w);
}

/* Values of a flag, by any key or those of a table, in either spelling. */
void
field_describe_settings (const FieldSchema *x, const LsField *f)
{
  FieldSchema inner = within (x);
  ls_json_out_begin_object (x->w, f->fields ? "patternProperties" : "additionalProperties");
  for (const LsField *key = f->fields; key && key->key; key++) {
    if (key->file_only)
      continue;
    g_auto (GStrv) words = g_strsplit (key->key, "_", -1);
    g_autofree char *either = g_strjoinv ("[-_]", words), *pattern = g_strdup_printf ("^%s$", either);
    ls_json_out_begin_object (x->w, pattern);
    write_type (&inner, "string number boolean");
    ls_json_out_end_object (x->w);
  }
  if (!f->fields)
    write_type (&inner, "string number boolean");
  else
    write_free_keys (x);
  ls_json_out_end_object (x->w);
  if (f->fields)
    ls_json_out_bool (x->w, "additionalProperties", false);
}

/* What another reader looks at: its type in words. */
void
field_describe_ignored (const FieldSchema *x, const LsField *f)
{
  static const struct {
    const char *expected, *types;
  } known[]
      = { { "true or false", "boolean" }, { "object", "object" }, { "text or object", "string object" } };
  for (gsize i = 0; f->expected && i < G_N_ELEMENTS (known); i++)
    if (strcmp (known[i].expected, f->expected) == 0)
      write_type (x, known[i].types);
}

/* --- values -------------------------------------------------------------------------------------- */

void
field_describe_string (const FieldSchema *x, const LsField *f)
{
  if (f->required)
    ls_json_out_uint (x->w, "minLength", 1);
}

void
field_describe_sources (const FieldSchema *x, const LsField *f)
{
  ls_json_out_begin_object (x->w, "additionalProperties");
  write_type (x, "string");
  ls_json_out_end_object (x->w);
}

void
field_describe_object (const FieldSchema *x, const LsField *f)
{
  write_object (x, f->fields, NULL);
}

/* As a field of that kind is. */
static void
write_value (const FieldSchema *x, LsFieldKind kind, const LsField *f)
{
  const FieldKind *k = field_kind (&(LsField) { .kind = kind });
  if (k->types)
    write_type (x, k->types);
  if (k->describe)
    k->describe (x, f);
  else if (k->has_unit)
    write_pattern (x, k->quantity);
}

/* "of one hop; a list of 2 or 3 whole numbers; default: 1". */
static void
write_description (const FieldSchema *x, const LsField *f)
{
  const char *usual = ls_field_default (f);
  g_autoptr (GString) text = g_string_new (ls_field_meaning (f));
  if (f->kind == LS_FIELD_CUSTOM && f->expected)
    g_string_append_printf (text, "%s%s", text->len > 0 ? "; " : "", f->expected);
  if (usual)
    g_string_append_printf (text, "%sdefault: %s", text->len > 0 ? "; " : "", usual);
  if (text->len > 0)
    ls_json_out_string (x->w, "description", text->str);
}

/* --- objects ------------------------------------------------------------------------------------- */

static void
write_key (const FieldSchema *x, const LsField *f, const char *kind)
{
  bool is_schema = kind && strcmp (f->key, "schema") == 0;
  g_autofree char *schema = g_strdup_printf ("lockstep.%s/1", kind ? kind : "");
  FieldSchema inner = { .w = x->w, .is_partial = x->is_partial && !f->root_only };
  ls_json_out_begin_object (x->w, f->key);
  write_description (x, f);
  if (is_schema)
    ls_json_out_string (x->w, "const", schema);
  else
    write_value (&inner, f->kind, f);
  ls_json_out_end_object (x->w);
}

/* Those that there must be: of a file that extends another only what it says of itself. */
static bool
is_required (const FieldSchema *x, const LsField *f)
{
  return f->required && (!f->root_only || x->is_root) && (!x->is_partial || f->root_only);
}

static void
write_required (const FieldSchema *x, const LsField *fields)
{
  ls_json_out_begin_array (x->w, "required");
  for (const LsField *f = fields; f->key; f++)
    if (is_required (x, f))
      ls_json_out_string (x->w, NULL, f->key);
  ls_json_out_end_array (x->w);
}

static void
write_object (const FieldSchema *x, const LsField *fields, const char *kind)
{
  FieldSchema whole = within (x);
  write_type (kind ? &whole : x, "object");
  ls_json_out_begin_object (x->w, "properties");
  for (const LsField *f = fields; f->key; f++)
    write_key (x, f, kind);
  if (kind && x->is_partial) {
    ls_json_out_begin_object (x->w, "extends");
    ls_json_out_string (x->w, "type", "string");
    ls_json_out_end_object (x->w);
  }
  ls_json_out_end_object (x->w);
  write_required (x, fields);
  ls_json_out_begin_object (x->w, "patternProperties");
  write_free_keys (x);
  ls_json_out_end_object (x->w);
  ls_json_out_bool (x->w, "additionalProperties", false);
}

void
ls_fields_schema (const LsField *fields, const char *kind, bool extends, LsJsonOut *w)
{
  FieldSchema whole = { .w = w, .is_root = true }, part = { .w = w, .is_root = true, .is_partial = true };
  if (!extends) {
    write_object (&whole, fields, kind);
    return;
  }
  ls_json_out_begin_object (w, "if");
  ls_json_out_begin_array (w, "required");
  ls_json_out_string (w, NULL, "extends");
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
  ls_json_out_begin_object (w, "then");
  write_object (&part, fields, kind);
  ls_json_out_end_object (w);
  ls_json_out_begin_object (w, "else");
  write_object (&whole, fields, kind);
  ls_json_out_end_object (w);
}

/* --- how a field is typed on the command line ---------------------------------------------------- */

bool
ls_field_is_switch (const LsField *f)
{
  return f->kind == LS_FIELD_BOOL && !f->argument && !f->set_only;
}

char *
ls_field_flag (const LsField *f)
{
  return f->set_only ? g_strconcat ("--set ", f->key, NULL)
                     : g_strdelimit (g_strconcat ("--", f->key, NULL), "_", '-');
}

const char *
ls_field_typed (const LsField *f, const char *value)
{
  if (f->kind != LS_FIELD_BOOL)
    return value;
  return strcmp (value, "true") == 0 ? "1" : strcmp (value, "false") == 0 ? "0" : value;
}

char *
ls_field_option (const LsField *f, const char *value)
{
  g_autofree char *flag = ls_field_flag (f);
  const char *typed = ls_field_typed (f, value);
  if (ls_field_is_switch (f) && strcmp (typed, "1") == 0)
    return g_steal_pointer (&flag);
  return g_strconcat (flag, f->set_only ? "=" : " ", typed, NULL);
}

const char *
ls_field_argument (const LsField *f)
{
  const char *usual = field_kind (f)->argument;
  if (f->argument || f->kind == LS_FIELD_BOOL)
    return f->argument ? f->argument : f->set_only ? "0|1" : NULL;
  return usual ? usual : "NAME";
}
