/* tests/support/field_markdown.h — a field table as a list of the manual. */
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
    g_string_append_printf (type, "%s%s", type->len > 0 ? "|" : "`", e->name);
  g_string_append_c (type, '`');
  return g_string_free (type, FALSE);
}

static inline char *type_of (const LsField *f, GArray *sections);

static inline char *
list_type (const LsField *element, GArray *sections)
{
  g_autofree char *type = type_of (element, sections);
  return g_strdup_printf ("list of %s", type);
}

static inline char *
type_of (const LsField *f, GArray *sections)
{
  switch (f->kind) {
  case LS_FIELD_STRING:
    return g_strdup ("text");
  case LS_FIELD_BOOL:
    return g_strdup ("boolean");
  case LS_FIELD_UINT:
  case LS_FIELD_UINT64:
    return g_strdup ("integer");
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

/* What every file has, with these words: format and page of the formats explain it. */
static inline bool
is_common (const LsField *f)
{
  static const char *const common[][2] = { { "schema", "kind and version of the file" },
                                           { "name", "the name of the file without .json" },
                                           { "source", "where the figures come from" } };
  for (size_t i = 0; i < G_N_ELEMENTS (common); i++)
    if (f->required && strcmp (f->key, common[i][0]) == 0
        && g_strcmp0 (ls_field_meaning (f), common[i][1]) == 0)
      return true;
  return false;
}

/* " from 1 to 8" of a number is " 1–8". */
static inline char *
range_of (const LsField *f)
{
  bool has_range = f->above || f->min > 0 || f->max > 0;
  g_autofree char *range = has_range ? ls_field_value_range (f) : g_strdup ("");
  char *to = strstr (range, " to ");
  if (!g_str_has_prefix (range, " from ") || !to)
    return g_steal_pointer (&range);
  *to = '\0';
  return g_strdup_printf (" %s–%s", range + strlen (" from "), to + strlen (" to "));
}

/* What holds where the key is not there; NULL: nothing, as said once for all pages. */
static inline const char *
default_of (const LsField *f)
{
  const char *usual = ls_field_default (f);
  bool is_nothing = f->kind == LS_FIELD_BOOL ? g_strcmp0 (usual, "false") == 0
                                             : f->kind != LS_FIELD_ENUM && g_strcmp0 (usual, "none") == 0;
  return is_nothing ? NULL : usual;
}

static inline void
append_key (GString *out, const LsField *f, GArray *sections)
{
  g_autofree char *type = type_of (f, sections), *range = range_of (f);
  bool is_range = strcmp (type, "integer") == 0 && strstr (range, "–"); /* says the type, too */
  const char *meaning = ls_field_meaning (f), *usual = default_of (f);
  g_string_append_printf (out, "- `%s` (%s%s", f->key, is_range ? "" : type, is_range ? range + 1 : range);
  if (f->required)
    g_string_append (out, "; required");
  else if (usual)
    g_string_append_printf (out, "; default %s", usual);
  g_string_append_printf (out, ")%s%s\n", meaning ? ": " : "", meaning ? meaning : "");
}

static inline void
append_keys (GString *out, const LsField *fields, GArray *sections)
{
  g_autoptr (GString) common = g_string_new (NULL);
  for (const LsField *f = fields; f->key; f++)
    if (is_common (f))
      g_string_append_printf (common, "%s`%s`", common->len > 0 ? ", " : "", f->key);
  if (common->len > 0)
    g_string_append_printf (out, "- %s: required, as [in every file](index.md#common-rules)\n", common->str);
  for (const LsField *f = fields; f->key; f++)
    if (!is_common (f))
      append_key (out, f, sections);
}

/* Markdown for a page: a list of the keys (key, type, default, meaning), then one for
 * each kind of nested object. Newly allocated. */
static inline char *
ls_fields_markdown (const LsField *fields)
{
  GString *out = g_string_new (NULL);
  g_autoptr (GArray) sections = g_array_new (FALSE, FALSE, sizeof (Section));
  append_keys (out, fields, sections);
  for (guint i = 0; i < sections->len; i++) { /* grows while it is walked */
    Section section = g_array_index (sections, Section, i);
    g_string_append_printf (out, "\n`%s`:\n\n", section.name);
    append_keys (out, section.fields, sections);
  }
  return g_string_free (out, FALSE);
}

#endif
