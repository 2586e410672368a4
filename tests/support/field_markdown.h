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

/* A number above 0 and at most 1. */
static inline bool
is_share (const LsField *f)
{
  return f->kind == LS_FIELD_DOUBLE && f->above && f->min == 0 && f->max == 1;
}

/* " from 1 to 8" of a number is " 1–8". Limits far from what exists are left to the error that names them. */
static inline char *
range_of (const LsField *f)
{
  bool is_whole = f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_UINT64;
  bool has_range = is_whole ? f->min > 0 || f->max > 0 : f->min > 0 || f->max == 1;
  g_autofree char *range = has_range && !is_share (f) ? ls_field_value_range (f) : g_strdup ("");
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

/* Neighbours of one type and meaning. */
typedef struct {
  GString *keys;
  char *type; /* "(1–8; default 1)" */
  const char *meaning;
} ListItem;

static inline void
list_item_free (gpointer item)
{
  g_string_free (((ListItem *) item)->keys, TRUE);
  g_free (((ListItem *) item)->type);
  g_free (item);
}

static inline gsize
n_words (const char *text)
{
  gsize n = 1;
  for (; *text; text++)
    n += *text == ' ';
  return n;
}

/* "text" where the meaning says more than what an error expects. */
static inline char *
kind_of (const LsField *f, GArray *sections)
{
  const char *meaning = ls_field_meaning (f);
  bool has_words = f->kind == LS_FIELD_CUSTOM || (f->kind == LS_FIELD_UINT_LIST && f->expected);
  bool says_more
      = has_words && n_words (f->expected) > 10 && meaning && strlen (meaning) > strlen (f->expected);
  if (says_more)
    return g_strdup (f->kind == LS_FIELD_UINT_LIST ? "list" : "text");
  return is_share (f) ? g_strdup ("share") : type_of (f, sections);
}

static inline char *
whole_type_of (const LsField *f, GArray *sections)
{
  g_autofree char *type = kind_of (f, sections),
                  *range = is_share (f) || strcmp (type, "list") == 0 ? g_strdup ("") : range_of (f);
  bool is_range = strcmp (type, "integer") == 0 && strstr (range, "–"); /* says the type, too */
  const char *usual = default_of (f);
  return g_strdup_printf ("(%s%s%s%s)", is_range ? "" : type, is_range ? range + 1 : range,
                          f->required ? "; required"
                              : usual ? "; default "
                                      : "",
                          !f->required && usual ? usual : "");
}

static inline GPtrArray *
items_of (const LsField *fields, GArray *sections)
{
  GPtrArray *items = g_ptr_array_new_with_free_func (list_item_free);
  for (const LsField *f = fields; f->key; f++) {
    if (is_common (f))
      continue;
    g_autofree char *type = whole_type_of (f, sections);
    ListItem *last = items->len > 0 ? items->pdata[items->len - 1] : NULL;
    if (last && strcmp (last->type, type) == 0 && g_strcmp0 (last->meaning, ls_field_meaning (f)) == 0) {
      g_string_append_printf (last->keys, ", `%s`", f->key);
      continue;
    }
    ListItem *item = g_new (ListItem, 1);
    *item = (ListItem) { g_string_new (NULL), g_steal_pointer (&type), ls_field_meaning (f) };
    g_string_append_printf (item->keys, "`%s`", f->key);
    g_ptr_array_add (items, item);
  }
  return items;
}

/* The type that most items have; NULL: saying it once spares next to nothing. */
static inline const char *
usual_type (const GPtrArray *items)
{
  const char *usual = NULL;
  gsize most = 0;
  for (guint i = 0; i < items->len; i++) {
    const char *type = ((ListItem *) items->pdata[i])->type;
    gsize n = 0;
    for (guint k = 0; k < items->len; k++)
      n += strcmp (((ListItem *) items->pdata[k])->type, type) == 0;
    if (n > most && (n - 1) * n_words (type) > 12) {
      most = n;
      usual = type;
    }
  }
  return usual;
}

/* A list of the keys under its name, NULL: those of the file itself. */
static inline void
append_keys (GString *out, const char *name, const LsField *fields, GArray *sections)
{
  g_autoptr (GPtrArray) items = items_of (fields, sections);
  const char *usual = usual_type (items);
  if (name)
    g_string_append_printf (out, "\n`%s`%s%s:\n\n", name, usual ? ", without a type " : "",
                            usual ? usual : "");
  else if (usual)
    g_string_append_printf (out, "Keys without a type are %s:\n\n", usual);
  g_autoptr (GString) common = g_string_new (NULL);
  for (const LsField *f = fields; f->key; f++)
    if (is_common (f))
      g_string_append_printf (common, "%s`%s`", common->len > 0 ? ", " : "", f->key);
  if (common->len > 0)
    g_string_append_printf (out, "- %s: required, as [in every file](index.md#common-rules)\n", common->str);
  for (guint i = 0; i < items->len; i++) {
    const ListItem *item = items->pdata[i];
    bool is_usual = usual && strcmp (item->type, usual) == 0;
    g_string_append_printf (out, "- %s%s%s%s%s\n", item->keys->str, is_usual ? "" : " ",
                            is_usual ? "" : item->type, item->meaning ? ": " : "",
                            item->meaning ? item->meaning : "");
  }
}

/* Markdown for a page: a list of the keys (key, type, default, meaning), then one for
 * each kind of nested object. Newly allocated. */
static inline char *
ls_fields_markdown (const LsField *fields)
{
  GString *out = g_string_new (NULL);
  g_autoptr (GArray) sections = g_array_new (FALSE, FALSE, sizeof (Section));
  append_keys (out, NULL, fields, sections);
  for (guint i = 0; i < sections->len; i++) { /* grows while it is walked */
    Section section = g_array_index (sections, Section, i);
    append_keys (out, section.name, section.fields, sections);
  }
  return g_string_free (out, FALSE);
}

#endif
