/* data/text/field_schema.c — a field table as others see it: a JSON Schema, knobs of the command line. */
#include <lockstep/units.h>
#include <math.h>
#include <string.h>

#include "data/text/field.h"

/* What is being described. */
typedef struct {
  LsJsonOut *w;
  bool is_root;    /* the object is a file, not one within it                */
  bool is_partial; /* it extends another: nothing must be there, null is one */
} Writing;

static void write_object (const Writing *x, const LsField *fields, const char *kind);
static void write_value (const Writing *x, const LsField *f);
static void write_count (const Writing *x, const LsField *f);

/* --- parts --------------------------------------------------------------------------------------- */

/* types: "string" or "string number". */
static void
write_type (const Writing *x, const char *types)
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

static void
write_range (const Writing *x, const LsField *f)
{
  double max = ls_field_value_max (f);
  ls_json_out_double (x->w, f->above ? "exclusiveMinimum" : "minimum", f->min);
  if (isfinite (max))
    ls_json_out_double (x->w, "maximum", max);
}

static void
write_quantity (const Writing *x, LsQuantity quantity)
{
  g_autofree char *pattern = ls_quantity_pattern (quantity);
  write_type (x, "string");
  ls_json_out_string (x->w, "pattern", pattern);
}

static void
write_names (const Writing *x, const LsField *f)
{
  ls_json_out_begin_array (x->w, "enum");
  for (const LsEnumName *e = f->names; e->name; e++)
    ls_json_out_string (x->w, NULL, e->name);
  if (x->is_partial)
    ls_json_out_null (x->w, NULL);
  ls_json_out_end_array (x->w);
}

/* What is in a list is whole, also where the file takes over from another. */
static Writing
within (const Writing *x)
{
  return (Writing) { .w = x->w };
}

static void
write_items (const Writing *x, const LsField *f)
{
  Writing inner = within (x);
  ls_json_out_begin_object (x->w, "items");
  if (f->items)
    write_type (&inner, "integer string");
  else if (f->kind != LS_FIELD_ARRAY)
    write_count (&inner, f);
  else if (*f->fields->key == '\0')
    write_value (&inner, f->fields);
  else
    write_object (&inner, f->fields, NULL);
  ls_json_out_end_object (x->w);
}

static void
write_list (const Writing *x, const LsField *f)
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
write_free_keys (const Writing *x)
{
  ls_json_out_begin_object (x->w, "^x-");
  ls_json_out_end_object (x->w);
}

/* Values of a flag, by any key or those of a table, in either spelling. */
static void
write_settings (const Writing *x, const LsField *f)
{
  write_type (x, "object");
  Writing inner = within (x);
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
static void
write_ignored (const Writing *x, const LsField *f)
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

static void
write_string (const Writing *x, const LsField *f)
{
  write_type (x, "string");
  if (f->required)
    ls_json_out_uint (x->w, "minLength", 1);
}

static void
write_sources (const Writing *x)
{
  write_type (x, "object");
  ls_json_out_begin_object (x->w, "additionalProperties");
  write_type (x, "string");
  ls_json_out_end_object (x->w);
}

static void
write_number (const Writing *x, const LsField *f)
{
  write_type (x, "number");
  write_range (x, f);
}

/* 8192, or "8k". */
static void
write_count (const Writing *x, const LsField *f)
{
  g_autofree char *pattern = ls_quantity_pattern (LS_QUANTITY_COUNT);
  write_type (x, "integer string");
  write_range (x, f);
  ls_json_out_string (x->w, "pattern", pattern);
}

static void
write_value (const Writing *x, const LsField *f)
{
  switch (f->kind) {
  case LS_FIELD_STRING:
    return write_string (x, f);
  case LS_FIELD_BOOL:
    return write_type (x, "boolean");
  case LS_FIELD_UINT:
  case LS_FIELD_UINT64:
    return write_count (x, f);
  case LS_FIELD_DOUBLE:
    return write_number (x, f);
  case LS_FIELD_TIME:
    return write_quantity (x, LS_QUANTITY_TIME);
  case LS_FIELD_BYTES:
  case LS_FIELD_BYTES_DOUBLE:
    return write_quantity (x, LS_QUANTITY_BYTES);
  case LS_FIELD_RATE:
    return write_quantity (x, LS_QUANTITY_RATE);
  case LS_FIELD_FLOPS:
    return write_quantity (x, LS_QUANTITY_FLOPS);
  case LS_FIELD_ENUM:
    return write_names (x, f);
  case LS_FIELD_UINT_LIST:
  case LS_FIELD_ROW:
  case LS_FIELD_ARRAY:
    return write_list (x, f);
  case LS_FIELD_CUSTOM:
    return write_type (x, "string number");
  case LS_FIELD_OBJECT:
    return write_object (x, f->fields, NULL);
  case LS_FIELD_SETTINGS:
    return write_settings (x, f);
  case LS_FIELD_SOURCES:
    return write_sources (x);
  case LS_FIELD_IGNORED:
    return write_ignored (x, f);
  }
}

/* "of one hop; a list of 2 or 3 whole numbers; default: 1". */
static void
write_description (const Writing *x, const LsField *f)
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
write_key (const Writing *x, const LsField *f, const char *kind)
{
  bool is_schema = kind && strcmp (f->key, "schema") == 0;
  g_autofree char *schema = g_strdup_printf ("lockstep.%s/1", kind ? kind : "");
  Writing inner = { .w = x->w, .is_partial = x->is_partial && !f->root_only };
  ls_json_out_begin_object (x->w, f->key);
  write_description (x, f);
  if (is_schema)
    ls_json_out_string (x->w, "const", schema);
  else
    write_value (&inner, f);
  ls_json_out_end_object (x->w);
}

/* Those that there must be: of a file that extends another only what it says of itself. */
static bool
is_required (const Writing *x, const LsField *f)
{
  return f->required && (!f->root_only || x->is_root) && (!x->is_partial || f->root_only);
}

static void
write_required (const Writing *x, const LsField *fields)
{
  ls_json_out_begin_array (x->w, "required");
  for (const LsField *f = fields; f->key; f++)
    if (is_required (x, f))
      ls_json_out_string (x->w, NULL, f->key);
  ls_json_out_end_array (x->w);
}

static void
write_object (const Writing *x, const LsField *fields, const char *kind)
{
  Writing whole = within (x);
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
  Writing whole = { .w = w, .is_root = true }, part = { .w = w, .is_root = true, .is_partial = true };
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
  if (f->argument)
    return f->argument;
  switch (f->kind) {
  case LS_FIELD_BOOL:
    return f->set_only ? "0|1" : NULL;
  case LS_FIELD_UINT:
  case LS_FIELD_UINT64:
    return "N";
  case LS_FIELD_DOUBLE:
    return "X";
  case LS_FIELD_TIME:
    return "TIME";
  case LS_FIELD_BYTES:
    return "SIZE";
  case LS_FIELD_ENUM:
    return "KIND";
  default:
    return "NAME";
  }
}

bool
ls_field_is_of_program (const LsField *f)
{
  return f->set_only || f->of_program;
}
