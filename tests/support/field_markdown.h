/* tests/support/field_markdown.h — a field table as a table of the manual. */
#ifndef LS_TESTS_FIELD_MARKDOWN_H
#define LS_TESTS_FIELD_MARKDOWN_H

#include "data/text/field.h"

/* A kind of nested object, named by the first key that leads to it. */
typedef struct {
  const LsField *fields;
  const char *name;
} Section;

static inline const char *
section_name (GArray *sections, const LsField *f)
{
  for (guint i = 0; i < sections->len; i++)
    if (g_array_index (sections, Section, i).fields == f->fields)
      return g_array_index (sections, Section, i).name;
  Section section = { f->fields, f->key };
  g_array_append_val (sections, section);
  return f->key;
}

static inline char *
enum_type (const LsField *f)
{
  GString *type = g_string_new (NULL);
  for (const LsEnumName *e = f->names; e->name; e++)
    g_string_append_printf (type, "%s`\"%s\"`", type->len > 0 ? ", " : "", e->name);
  return g_string_free (type, FALSE);
}

static inline char *type_of (const LsField *f, GArray *sections);

static inline char *
list_type (const LsField *element, GArray *sections)
{
  g_autofree char *type = type_of (element, sections);
  return g_strdup_printf ("list; each %s", type);
}

static inline char *
type_of (const LsField *f, GArray *sections)
{
  switch (f->kind) {
  case LS_FIELD_STRING:
    return g_strdup ("text");
  case LS_FIELD_BOOL:
    return g_strdup ("`true` or `false`");
  case LS_FIELD_UINT:
  case LS_FIELD_UINT64:
    return g_strdup ("whole number");
  case LS_FIELD_DOUBLE:
    return g_strdup ("number");
  case LS_FIELD_TIME:
    return g_strdup ("time");
  case LS_FIELD_BYTES:
  case LS_FIELD_BYTES_DOUBLE:
    return g_strdup ("size");
  case LS_FIELD_RATE:
    return g_strdup ("rate");
  case LS_FIELD_FLOPS:
    return g_strdup ("FLOP rate");
  case LS_FIELD_ENUM:
    return enum_type (f);
  case LS_FIELD_UINT_LIST:
    return g_strdup (f->expected ? f->expected : "list of whole numbers");
  case LS_FIELD_ARRAY:
    return *f->fields->key ? g_strdup_printf ("list of objects: `%s`", section_name (sections, f))
                           : list_type (f->fields, sections);
  case LS_FIELD_ROW:
  case LS_FIELD_CUSTOM:
    return g_strdup (f->expected);
  case LS_FIELD_OBJECT:
    return f->table ? g_strdup_printf ("object: keys of a %s", f->table)
                    : g_strdup_printf ("object: `%s`", section_name (sections, f));
  case LS_FIELD_SETTINGS:
    return f->table ? g_strdup_printf ("object: keys of a %s", f->table) : g_strdup ("object of values");
  case LS_FIELD_SOURCES:
    return g_strdup ("object of texts");
  case LS_FIELD_IGNORED:
    break;
  }
  return g_strdup (f->expected ? f->expected : "text");
}

static inline const char *
unit_of (LsFieldKind kind)
{
  switch (kind) {
  case LS_FIELD_TIME:
    return "`\"2us\"`";
  case LS_FIELD_BYTES:
  case LS_FIELD_BYTES_DOUBLE:
    return "`\"80GiB\"`, `\"4MB\"`";
  case LS_FIELD_RATE:
    return "`\"25GB/s\"`, `\"400Gbit/s\"`";
  case LS_FIELD_FLOPS:
    return "`\"312TFLOP/s\"`";
  default:
    return "";
  }
}

static inline void
append_row (GString *out, const LsField *f, GArray *sections)
{
  g_autofree char *type = type_of (f, sections);
  bool has_range = f->above || f->min > 0 || f->max > 0;
  g_autofree char *range = has_range ? ls_field_value_range (f) : g_strdup ("");
  const char *meaning = ls_field_meaning (f), *usual = ls_field_default (f),
             *absent = f->required ? "required"
      : usual                      ? usual
                                   : "";
  g_string_append_printf (out, "| `%s` | %s%s | %s | %s | %s |\n", f->key, type, range, unit_of (f->kind),
                          absent, meaning ? meaning : "");
}

static inline void
append_table (GString *out, const LsField *fields, GArray *sections)
{
  g_string_append (out, "| Key | Type | Unit as in | Default | Meaning |\n|---|---|---|---|---|\n");
  for (const LsField *f = fields; f->key; f++)
    append_row (out, f, sections);
}

/* Markdown for a README: a table of the keys (key, type, unit, default, meaning),
 * then one for each kind of nested object. Newly allocated. */
static inline char *
ls_fields_markdown (const LsField *fields)
{
  GString *out = g_string_new (NULL);
  g_autoptr (GArray) sections = g_array_new (FALSE, FALSE, sizeof (Section));
  append_table (out, fields, sections);
  for (guint i = 0; i < sections->len; i++) { /* grows while it is walked */
    Section section = g_array_index (sections, Section, i);
    g_string_append_printf (out, "\n`%s`:\n\n", section.name);
    append_table (out, section.fields, sections);
  }
  return g_string_free (out, FALSE);
}

#endif
