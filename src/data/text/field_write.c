
#include <inttypes.h>
#include <string.h>

#include <lockstep/units.h>

#include "data/text/field.h"

static void write_field (const LsField *f, LsJsonOut *w, const char *key, const void *target,
                         const void *blank);
static bool is_written (const LsField *f, const void *target, const void *blank);

/* --- what is left out ---------------------------------------------------------- */

static size_t
size_of (const LsField *f)
{
  switch (f->kind) {
  case LS_FIELD_BOOL:
    return sizeof (bool);
  case LS_FIELD_UINT:
    return sizeof (uint32_t);
  case LS_FIELD_UINT64:
  case LS_FIELD_BYTES:
    return sizeof (uint64_t);
  case LS_FIELD_TIME:
    return sizeof (LsTime);
  case LS_FIELD_DOUBLE:
  case LS_FIELD_BYTES_DOUBLE:
    return sizeof (double);
  case LS_FIELD_ENUM:
    return sizeof (int);
  default:
    return 0; /* not compared */
  }
}

/* As a double; 0 for what has no range. */
static double
number_of (const LsField *f, const void *place)
{
  switch (f->kind) {
  case LS_FIELD_UINT:
    return *(const uint32_t *) place;
  case LS_FIELD_UINT64:
  case LS_FIELD_BYTES:
    return (double) *(const uint64_t *) place;
  case LS_FIELD_TIME:
    return (double) *(const LsTime *) place;
  case LS_FIELD_DOUBLE:
  case LS_FIELD_BYTES_DOUBLE:
    return *(const double *) place;
  default:
    return 0;
  }
}

static bool
has_range (LsFieldKind kind)
{
  return kind == LS_FIELD_UINT || kind == LS_FIELD_UINT64 || kind == LS_FIELD_BYTES || kind == LS_FIELD_TIME
      || kind == LS_FIELD_DOUBLE || kind == LS_FIELD_BYTES_DOUBLE;
}

static const char *
enum_name (const LsField *f, int value)
{
  for (const LsEnumName *e = f->names; e->name; e++)
    if (e->value == value)
      return e->name;
  return NULL;
}

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

static bool
is_any_written (const LsField *fields, const void *target, const void *blank)
{
  for (const LsField *f = fields; f->key; f++)
    if (is_written (f, target, blank))
      return true;
  return false;
}

static bool
is_written (const LsField *f, const void *target, const void *blank)
{
  const char *place = (const char *) target + f->offset;
  size_t size = size_of (f);
  if (has_range (f->kind) && !ls_field_value_in_range (f, number_of (f, place)))
    return false;
  if (blank && !f->required && size > 0 && memcmp (place, (const char *) blank + f->offset, size) == 0)
    return false;
  switch (f->kind) {
  case LS_FIELD_STRING:
    return *(char *const *) place != NULL;
  case LS_FIELD_ENUM:
    return enum_name (f, *(const int *) place) != NULL;
  case LS_FIELD_UINT_LIST:
    return *(uint32_t *const *) place != NULL || is_word (f, target);
  case LS_FIELD_ARRAY:
    return *(GArray *const *) place != NULL;
  case LS_FIELD_OBJECT:
    return is_any_written (f->fields, place, inside (blank, f));
  case LS_FIELD_CUSTOM:
    return f->format != NULL;
  case LS_FIELD_IGNORED:
  case LS_FIELD_SETTINGS:
  case LS_FIELD_SOURCES:
  case LS_FIELD_RATE:
  case LS_FIELD_FLOPS:
    return false;
  default:
    return true;
  }
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
  GString *text = g_string_new (values ? NULL : enum_name (f, true));
  for (uint32_t i = 0, run; values && i < n; i += run) {
    for (run = 1; i + run < n && values[i + run] == values[i];)
      run++;
    g_string_append_printf (text, run > 1 ? "%s%ux%u" : "%s%u", i > 0 ? "," : "", values[i], run);
  }
  return g_string_free (text, FALSE);
}

static void
write_list (const LsField *f, LsJsonOut *w, const char *key, const void *target)
{
  const uint32_t *values = *(uint32_t *const *) ((const char *) target + f->offset);
  if (values)
    write_numbers (w, key, values, *(const uint32_t *) ((const char *) target + f->n_offset));
  else
    ls_json_out_string (w, key, enum_name (f, true));
}

static void
write_time (LsJsonOut *w, const char *key, LsTime time)
{
  g_autofree char *text = g_strdup_printf ("%" PRId64 "ps", time);
  ls_json_out_string (w, key, text);
}

static void
write_bytes (LsJsonOut *w, const char *key, uint64_t bytes)
{
  g_autofree char *text = g_strdup_printf ("%" PRIu64 "B", bytes);
  ls_json_out_string (w, key, text);
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
    write_field (f->fields, w, NULL, element, NULL);
    return;
  }
  int indent = w->indent;
  ls_json_out_begin_object (w, NULL);
  w->indent = has_lines (f->fields) ? indent : 0;
  ls_fields_write (f->fields, w, element, f->blank);
  ls_json_out_end_object (w);
  w->indent = indent;
}

static void
write_array (const LsField *f, LsJsonOut *w, const char *key, const GArray *array)
{
  int indent = w->indent;
  ls_json_out_begin_array (w, key);
  w->indent = f->lines ? indent : 0;
  for (guint i = 0; i < array->len; i++)
    write_element (f, w, array->data + i * f->element_size);
  ls_json_out_end_array (w);
  w->indent = indent;
}

static void
write_object (const LsField *f, LsJsonOut *w, const char *key, const void *place, const void *blank)
{
  int indent = w->indent;
  ls_json_out_begin_object (w, key);
  w->indent = 0;
  ls_fields_write (f->fields, w, place, blank);
  ls_json_out_end_object (w);
  w->indent = indent;
}

static void
write_custom (const LsField *f, LsJsonOut *w, const char *key, const void *target)
{
  g_autofree char *text = f->format (target);
  guint64 number;
  if (g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT32, &number, NULL))
    ls_json_out_uint (w, key, number);
  else
    ls_json_out_string (w, key, text);
}

static void
write_field (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  const void *place = (const char *) target + f->offset;
  switch (f->kind) {
  case LS_FIELD_STRING:
    ls_json_out_string (w, key, *(char *const *) place);
    break;
  case LS_FIELD_BOOL:
    ls_json_out_bool (w, key, *(const bool *) place);
    break;
  case LS_FIELD_UINT:
    ls_json_out_uint (w, key, *(const uint32_t *) place);
    break;
  case LS_FIELD_UINT64:
    ls_json_out_uint (w, key, *(const uint64_t *) place);
    break;
  case LS_FIELD_DOUBLE:
    ls_json_out_double (w, key, *(const double *) place);
    break;
  case LS_FIELD_TIME:
    write_time (w, key, *(const LsTime *) place);
    break;
  case LS_FIELD_BYTES:
    write_bytes (w, key, *(const uint64_t *) place);
    break;
  case LS_FIELD_BYTES_DOUBLE:
    write_bytes (w, key, (uint64_t) * (const double *) place);
    break;
  case LS_FIELD_ENUM:
    ls_json_out_string (w, key, enum_name (f, *(const int *) place));
    break;
  case LS_FIELD_UINT_LIST:
    write_list (f, w, key, target);
    break;
  case LS_FIELD_ROW:
    write_numbers (w, key, place, f->n_row);
    break;
  case LS_FIELD_ARRAY:
    write_array (f, w, key, *(GArray *const *) place);
    break;
  case LS_FIELD_OBJECT:
    write_object (f, w, key, place, inside (blank, f));
    break;
  case LS_FIELD_CUSTOM:
    write_custom (f, w, key, target);
    break;
  case LS_FIELD_RATE:
  case LS_FIELD_FLOPS:
  case LS_FIELD_SETTINGS:
  case LS_FIELD_SOURCES:
  case LS_FIELD_IGNORED:
    break; /* is_written() says no */
  }
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
  write_field (f, &w, NULL, target, blank);
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
      write_field (f, w, f->key, target, blank);
}
