/* data/text/field_schema.c — a field table as others see it: a JSON Schema, knobs of the command line. */
#include <math.h>
#include <string.h>

#include "data/text/field_kinds.h"

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
  g_autoptr (GString) text = g_string_new (f->meaning);
  if (f->kind == LS_FIELD_CUSTOM && f->expected)
    g_string_append_printf (text, "%s%s", text->len > 0 ? "; " : "", f->expected);
  if (f->default_text)
    g_string_append_printf (text, "%sdefault: %s", text->len > 0 ? "; " : "", f->default_text);
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
