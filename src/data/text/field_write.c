/* data/text/field_write.c — an object written by the table of fields that reads it. */
#include <inttypes.h>
#include <string.h>

#include "data/text/field_kinds.h"

static bool is_written (const LsField *f, const void *target, const void *blank);

/* --- what is left out ---------------------------------------------------------- */

static const void *
inside (const void *object, const LsField *f)
{
  return object ? (const char *) object + f->offset : NULL;
}

/* Stands for a list, and is not what it is without: that is the word of 0. */
static bool
is_word (const LsField *f, const void *target)
{
  return f->names && *(const int *) ((const char *) target + f->word_offset) != 0;
}

bool
field_has_pointer (const LsField *f, const void *target, const void *blank)
{
  return *(const gconstpointer *) inside (target, f) != NULL;
}

bool
field_has_name (const LsField *f, const void *target, const void *blank)
{
  return ls_enum_name (f->names, *(const int *) inside (target, f)) != NULL;
}

bool
field_has_list (const LsField *f, const void *target, const void *blank)
{
  return field_has_pointer (f, target, blank) || is_word (f, target);
}

bool
field_has_members (const LsField *f, const void *target, const void *blank)
{
  for (const LsField *member = f->fields; member->key; member++)
    if (is_written (member, inside (target, f), inside (blank, f)))
      return true;
  return false;
}

bool
field_has_format (const LsField *f, const void *target, const void *blank)
{
  return f->format != NULL;
}

static bool
is_written (const LsField *f, const void *target, const void *blank)
{
  const FieldKind *k = field_kind (f);
  const void *place = inside (target, f);
  size_t size = field_size (f);
  if (!k->write || (k->parse && !ls_field_value_in_range (f, field_number (f, place))))
    return false;
  if (blank && !f->required && size > 0 && memcmp (place, inside (blank, f), size) == 0)
    return false;
  return !k->is_there || k->is_there (f, target, blank);
}

/* --- values ---------------------------------------------------------------------- */

static void
write_numbers (LsJsonOut *w, const char *key, const uint32_t *values, uint32_t n)
{
  int indent = w->indent;
  ls_json_out_begin_array (w, key);
  w->indent = 0; /* on one line */
  for (uint32_t i = 0; i < n; i++)
    ls_json_out_uint (w, NULL, values[i]);
  ls_json_out_end_array (w);
  w->indent = indent;
}

/* As the flag has it: "7,8x14,7", or a word; newly allocated. */
static char *
list_text (const LsField *f, const void *target)
{
  const uint32_t *values = *(uint32_t *const *) ((const char *) target + f->offset);
  uint32_t n = *(const uint32_t *) ((const char *) target + f->n_offset);
  GString *text = g_string_new (values ? NULL : ls_enum_name (f->names, true));
  for (uint32_t i = 0, run; values && i < n; i += run) {
    for (run = 1; i + run < n && values[i + run] == values[i];)
      run++;
    g_string_append_printf (text, run > 1 ? "%s%ux%u" : "%s%u", i > 0 ? "," : "", values[i], run);
  }
  return g_string_free (text, FALSE);
}

void
field_write_list (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  const uint32_t *values = *(uint32_t *const *) inside (target, f);
  if (values)
    write_numbers (w, key, values, *(const uint32_t *) ((const char *) target + f->n_offset));
  else
    ls_json_out_string (w, key, ls_enum_name (f->names, true));
}

void
field_write_row (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  write_numbers (w, key, inside (target, f), f->n_row);
}

void
field_write_string (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  ls_json_out_string (w, key, *(char *const *) inside (target, f));
}

void
field_write_bool (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  ls_json_out_bool (w, key, *(const bool *) inside (target, f));
}

void
field_write_name (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  ls_json_out_string (w, key, ls_enum_name (f->names, *(const int *) inside (target, f)));
}

/* With its unit as a text. */
void
field_write_number (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  const FieldKind *k = field_kind (f);
  const void *place = inside (target, f);
  uint64_t whole = k->memory == FIELD_WHOLE || k->memory == FIELD_MOMENT ? *(const uint64_t *) place
                                                                         : (uint64_t) field_number (f, place);
  g_autofree char *text = g_strdup_printf ("%" PRIu64 "%s", whole, k->unit ? k->unit : "");
  if (k->unit)
    ls_json_out_string (w, key, text);
  else if (k->memory == FIELD_REAL)
    ls_json_out_double (w, key, field_number (f, place));
  else
    ls_json_out_uint (w, key, whole);
}

static bool
has_lines (const LsField *fields)
{
  for (const LsField *f = fields; f->key; f++)
    if (f->lines)
      return true;
  return false;
}

static void
write_element (const LsField *f, LsJsonOut *w, const void *element)
{
  if (*f->fields->key == '\0') {
    field_kind (f->fields)->write (f->fields, w, NULL, element, NULL);
    return;
  }
  int indent = w->indent;
  ls_json_out_begin_object (w, NULL);
  w->indent = has_lines (f->fields) ? indent : 0;
  ls_fields_write (f->fields, w, element, f->blank);
  ls_json_out_end_object (w);
  w->indent = indent;
}

void
field_write_array (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  const GArray *array = *(GArray *const *) inside (target, f);
  int indent = w->indent;
  ls_json_out_begin_array (w, key);
  w->indent = f->lines ? indent : 0;
  for (guint i = 0; i < array->len; i++)
    write_element (f, w, array->data + i * f->element_size);
  ls_json_out_end_array (w);
  w->indent = indent;
}

void
field_write_object (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  int indent = w->indent;
  ls_json_out_begin_object (w, key);
  w->indent = 0;
  ls_fields_write (f->fields, w, inside (target, f), inside (blank, f));
  ls_json_out_end_object (w);
  w->indent = indent;
}

void
field_write_custom (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  g_autofree char *text = f->format (target);
  guint64 number;
  if (g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT32, &number, NULL))
    ls_json_out_uint (w, key, number);
  else
    ls_json_out_string (w, key, text);
}

char *
ls_field_text (const LsField *f, const void *target, const void *blank)
{
  if (!is_written (f, target, blank))
    return NULL;
  if (f->kind == LS_FIELD_UINT_LIST && f->runs)
    return list_text (f, target);
  if (f->kind == LS_FIELD_CUSTOM)
    return f->format (target);
  g_autoptr (GString) json = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, json, 0);
  field_kind (f)->write (f, &w, NULL, target, blank);
  /* "text", [1, 2] or a bare value: none of these has anything to escape. */
  g_autofree char *bare = g_strdelimit (g_strdup (json->str), "\"[] ", '\n');
  g_auto (GStrv) parts = g_strsplit (bare, "\n", -1);
  return g_strjoinv ("", parts);
}

void
ls_fields_write (const LsField *fields, LsJsonOut *w, const void *target, const void *blank)
{
  for (const LsField *f = fields; f->key; f++)
    if (is_written (f, target, blank))
      field_kind (f)->write (f, w, f->key, target, blank);
}

char *
ls_fields_text (const LsField *fields, const void *target, const void *blank)
{
  GString *text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_fields_write (fields, &w, target, blank);
  ls_json_out_end_object (&w);
  return g_string_free (text, FALSE);
}
