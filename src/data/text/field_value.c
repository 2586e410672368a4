/* data/text/field_value.c — kinds of fields: their values from text to memory, and written again. */
#include "data/text/field_kinds.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/suggest.h"

#define MAX_EXACT 9007199254740991.0 /* 2^53 - 1: below it every integer is a double of its own */

/* --- ranges ------------------------------------------------------------------- */

double
ls_field_value_max (const LsField *f)
{
  double max = f->max > 0 ? f->max : field_kind (f)->max;
  return max > 0 ? max : INFINITY;
}

/* Whether it lies in the field's range. */
static bool
in_range (const LsField *f, double value)
{
  return (f->above ? value > f->min : value >= f->min) && value <= ls_field_value_max (f);
}

static char *
shown_time (double limit)
{
  return ls_format_time ((LsTime) limit);
}

static char *
shown_bytes (double limit)
{
  return ls_format_bytes ((uint64_t) limit);
}

static char *
shown_whole (double limit)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (g_ascii_formatd (number, sizeof number, "%.0f", limit));
}

static char *
shown_real (double limit)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (g_ascii_formatd (number, sizeof number, "%.10g", limit));
}

char *
ls_field_value_range (const LsField *f)
{
  const FieldKind *k = field_kind (f);
  char *(*shown) (double) = k->shown ? k->shown : shown_real;
  bool has_min = f->above || f->min != 0 || shown == shown_whole;
  bool has_max = isfinite (ls_field_value_max (f));
  g_autofree char *min = shown (f->min);
  g_autofree char *max = has_max ? shown (ls_field_value_max (f)) : NULL;
  const char *comma = k->has_unit ? "," : "";
  if (has_min && has_max)
    return f->above ? g_strdup_printf ("%s above %s, at most %s", comma, min, max)
                    : g_strdup_printf ("%s from %s to %s", comma, min, max);
  if (has_max)
    return g_strdup_printf ("%s at most %s", comma, max);
  if (has_min)
    return g_strdup_printf ("%s %s %s", comma, f->above ? "above" : "at least", min);
  return g_strdup ("");
}

/* --- from text to memory ------------------------------------------------------ */

static bool
set_bool (const LsField *f, void *target, const char *text)
{
  bool yes = strcmp (text, "true") == 0 || strcmp (text, "1") == 0;
  if (!yes && strcmp (text, "false") != 0 && strcmp (text, "0") != 0)
    return false;
  *(bool *) ((char *) target + f->offset) = yes;
  return true;
}

/* Counts of elements are written as DeepSpeed's files write them too: "5e8". */
static bool
read_power (const LsField *f, const char *text, guint64 *ret)
{
  char *end = NULL;
  double value = strchr (text, 'e') && g_ascii_isdigit (*text) ? g_ascii_strtod (text, &end) : -1;
  if (value < 0 || *end != '\0' || value > ls_field_value_max (f) || value != floor (value))
    return false;
  *ret = (guint64) value;
  return in_range (f, value);
}

static bool
parse_whole (const LsField *f, const char *text, FieldNumber *ret, const char **reterr_expected)
{
  guint64 value = 0;
  bool is_whole = ls_parse_count (text, &value, NULL) && value <= (guint64) ls_field_value_max (f)
      && in_range (f, (double) value);
  ret->whole = value;
  return is_whole || read_power (f, text, &ret->whole);
}

static bool
parse_count (const LsField *f, const char *text, FieldNumber *ret, const char **reterr_expected)
{
  guint64 value;
  if (!ls_parse_count (text, &value, NULL) || value > (guint64) ls_field_value_max (f))
    return false;
  ret->count = (uint32_t) value;
  return true;
}

static bool
parse_real (const LsField *f, const char *text, FieldNumber *ret, const char **reterr_expected)
{
  char *end = NULL;
  ret->real = g_ascii_strtod (text, &end);
  return end != text && *end == '\0' && !g_ascii_isspace (*text) && isfinite (ret->real);
}

static bool
parse_quantity (const LsField *f, const char *text, FieldNumber *ret, const char **reterr_expected)
{
  const FieldKind *k = field_kind (f);
  if (k->quantity == LS_QUANTITY_TIME)
    return ls_parse_time (text, &ret->time, reterr_expected);
  if (k->quantity == LS_QUANTITY_RATE)
    return ls_parse_rate (text, &ret->real, reterr_expected);
  if (k->quantity == LS_QUANTITY_FLOPS)
    return ls_parse_flops (text, &ret->real, reterr_expected);
  bool ok = ls_parse_bytes (text, &ret->whole, reterr_expected);
  if (ok && k->memory == FIELD_REAL)
    ret->real = (double) ret->whole;
  return ok;
}

static double
field_number (const LsField *f, const void *place)
{
  switch (field_kind (f)->memory) {
  case FIELD_COUNT:
    return *(const uint32_t *) place;
  case FIELD_WHOLE:
    return (double) *(const uint64_t *) place;
  case FIELD_MOMENT:
    return (double) *(const LsTime *) place;
  case FIELD_REAL:
    return *(const double *) place;
  default:
    return 0;
  }
}

/* In memory, of what is compared with a blank; else 0. */
static size_t
field_size (const LsField *f)
{
  static const size_t sizes[] = {
    [FIELD_FLAG] = sizeof (bool),      [FIELD_CHOICE] = sizeof (int),    [FIELD_COUNT] = sizeof (uint32_t),
    [FIELD_WHOLE] = sizeof (uint64_t), [FIELD_MOMENT] = sizeof (LsTime), [FIELD_REAL] = sizeof (double)
  };
  return sizes[field_kind (f)->memory];
}

static bool
set_number (const LsField *f, void *target, const char *text)
{
  FieldNumber n;
  if (!field_kind (f)->parse (f, text, &n, NULL) || !in_range (f, field_number (f, &n)))
    return false;
  memcpy ((char *) target + f->offset, &n, field_size (f));
  return true;
}

/* Of a value by that name; NULL: there is none. */
static const LsEnumName *
find_name (const LsEnumName *names, const char *text)
{
  while (names && names->name && g_strcmp0 (names->name, text) != 0)
    names++;
  return names && names->name ? names : NULL;
}

static bool
set_enum (const LsField *f, void *target, const char *text)
{
  const LsEnumName *e = find_name (f->names, text);
  if (e)
    *(int *) ((char *) target + f->offset) = e->value;
  return e != NULL;
}

static bool
set_string (const LsField *f, void *target, const char *text)
{
  char **place = (char **) ((char *) target + f->offset);
  if (f->required && *text == '\0')
    return false;
  g_free (*place);
  *place = g_strdup (text);
  return true;
}

void
field_clear_loaded (const LsField *f, void *target)
{
  g_clear_pointer ((char **) ((char *) target + f->offset), g_free);
  g_clear_pointer ((gpointer *) ((char *) target + f->load->offset), f->load->unref);
}

static bool
set_loaded (const LsField *f, void *target, const char *text)
{
  bool is_own = g_strv_contains (f->load->own, text);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gpointer loaded = is_own ? NULL : f->load->load (text, diags);
  if (!loaded && !is_own)
    return false;
  char *copy = is_own ? NULL : g_strdup (text);
  field_clear_loaded (f, target);
  *(char **) ((char *) target + f->offset) = copy;
  *(gpointer *) ((char *) target + f->load->offset) = loaded;
  return true;
}

static bool
set_custom (const LsField *f, void *target, const char *text)
{
  void *place = (char *) target + f->offset;
  return f->load ? set_loaded (f, target, text)
      : f->add   ? ls_list_parse (text, f->element_size, f->add, place)
                 : f->parse (text, place);
}

void
ls_field_value_set_list (const LsField *f, void *target, const uint32_t *values, uint32_t n)
{
  uint32_t **place = (uint32_t **) ((char *) target + f->offset);
  g_free (*place);
  *place = n > 0 ? g_memdup2 (values, n * sizeof *values) : NULL;
  *(uint32_t *) ((char *) target + f->n_offset) = n;
  if (f->names)
    *(int *) ((char *) target + f->word_offset) = 0;
}

#define MAX_RUNS (1u << 20) /* numbers of a list */

/* "4", or "4x13" where the field has runs. */
static bool
append_run (const LsField *f, GArray *values, char *text)
{
  char *times = f->runs ? strchr (text, 'x') : NULL;
  guint64 n = 1;
  if (times && !g_ascii_string_to_unsigned (times + 1, 10, 1, MAX_RUNS, &n, NULL))
    return false;
  if (times)
    *times = '\0';
  FieldNumber value;
  if (!parse_count (f, text, &value, NULL) || !in_range (f, value.count)
      || n > MAX_RUNS - MIN (values->len, MAX_RUNS))
    return false;
  for (guint64 i = 0; i < n; i++)
    g_array_append_val (values, value.count);
  return true;
}

static bool
set_word (const LsField *f, void *target, const char *text)
{
  const LsEnumName *e = find_name (f->names, text);
  if (!e)
    return false;
  ls_field_value_set_list (f, target, NULL, 0);
  *(int *) ((char *) target + f->word_offset) = e->value;
  return true;
}

static bool
set_list (const LsField *f, void *target, const char *text)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  if (set_word (f, target, text))
    return true;
  for (guint i = 0; parts[i]; i++)
    if (!append_run (f, values, g_strstrip (parts[i])))
      return false;
  if (values->len == 0)
    return false;
  ls_field_value_set_list (f, target, (const uint32_t *) (gpointer) values->data, values->len);
  return true;
}

/* --- what is written, and what is left out --------------------------------------- */

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

static bool
has_pointer (const LsField *f, const void *target, const void *blank)
{
  return *(const gconstpointer *) inside (target, f) != NULL;
}

static bool
has_name (const LsField *f, const void *target, const void *blank)
{
  return ls_enum_name (f->names, *(const int *) inside (target, f)) != NULL;
}

static bool
has_list (const LsField *f, const void *target, const void *blank)
{
  return has_pointer (f, target, blank) || is_word (f, target);
}

static bool
has_members (const LsField *f, const void *target, const void *blank)
{
  for (const LsField *member = f->fields; member->key; member++)
    if (is_written (member, inside (target, f), inside (blank, f)))
      return true;
  return false;
}

static bool
has_format (const LsField *f, const void *target, const void *blank)
{
  return f->format || f->load;
}

static bool
is_written (const LsField *f, const void *target, const void *blank)
{
  const FieldKind *k = field_kind (f);
  const void *place = inside (target, f);
  size_t size = field_size (f);
  if (!k->write || (k->parse && !in_range (f, field_number (f, place))))
    return false;
  if (blank && !f->required && size > 0 && memcmp (place, inside (blank, f), size) == 0)
    return false;
  return !k->is_there || k->is_there (f, target, blank);
}

/* --- values ---------------------------------------------------------------------- */

static void
write_numbers (LsJsonOut *w, const char *key, const uint32_t *values, uint32_t n)
{
  ls_json_out_begin_array (w, key);
  w->indent = 0; /* on one line */
  for (uint32_t i = 0; i < n; i++)
    ls_json_out_uint (w, NULL, values[i]);
  ls_json_out_end_array (w);
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

static void
write_list (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  const uint32_t *values = *(uint32_t *const *) inside (target, f);
  if (values)
    write_numbers (w, key, values, *(const uint32_t *) ((const char *) target + f->n_offset));
  else
    ls_json_out_string (w, key, ls_enum_name (f->names, true));
}

static void
write_row (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  write_numbers (w, key, inside (target, f), f->n_row);
}

static void
write_string (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  ls_json_out_string (w, key, *(char *const *) inside (target, f));
}

static void
write_bool (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  ls_json_out_bool (w, key, *(const bool *) inside (target, f));
}

static void
write_name (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  ls_json_out_string (w, key, ls_enum_name (f->names, *(const int *) inside (target, f)));
}

/* With its unit as a text. */
static void
write_number (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  const FieldKind *k = field_kind (f);
  const void *place = inside (target, f);
  uint64_t whole = k->memory == FIELD_WHOLE || k->memory == FIELD_MOMENT
      ? *(const uint64_t *) place
      : (uint64_t) llround (field_number (f, place));
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
  ls_json_out_begin_object (w, NULL);
  w->indent = has_lines (f->fields) ? w->indent : 0;
  ls_fields_write (f->fields, w, element, f->blank);
  ls_json_out_end_object (w);
}

static void
write_array (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  const GArray *array = *(GArray *const *) inside (target, f);
  ls_json_out_begin_array (w, key);
  w->indent = f->lines ? w->indent : 0;
  for (guint i = 0; i < array->len; i++)
    write_element (f, w, array->data + i * f->element_size);
  ls_json_out_end_array (w);
}

static void
write_object (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  ls_json_out_begin_object (w, key);
  w->indent = 0;
  ls_fields_write (f->fields, w, inside (target, f), inside (blank, f));
  ls_json_out_end_object (w);
}

static char *
custom_text (const LsField *f, const void *target)
{
  const char *text = f->load ? *(char *const *) inside (target, f) : NULL;
  return f->load ? g_strdup (text ? text : f->load->own[0]) : f->format (target);
}

static void
write_custom (const LsField *f, LsJsonOut *w, const char *key, const void *target, const void *blank)
{
  g_autofree char *text = custom_text (f, target);
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
    return custom_text (f, target);
  if (f->kind == LS_FIELD_STRING) /* with its blanks: "NCCL_ALGO=Ring NCCL_NET=Socket" */
    return g_strdup (*(char *const *) ((const char *) target + f->offset));
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

/* --- kinds ---------------------------------------------------------------------- */

static const FieldKind kinds[] = {
  [LS_FIELD_STRING] = { FIELD_OTHER, .set = set_string, .is_there = has_pointer, .write = write_string,
                        .types = "string", .describe = field_describe_string, .expected = "a string" },
  [LS_FIELD_BOOL] = { FIELD_FLAG, .set = set_bool, .write = write_bool, .types = "boolean" },
  [LS_FIELD_UINT]
  = { FIELD_COUNT, parse_count, UINT32_MAX, shown_whole, .write = write_number, .types = "integer string",
      .describe = field_describe_count, .expected = "a whole number", .argument = "N" },
  [LS_FIELD_UINT64]
  = { FIELD_WHOLE, parse_whole, MAX_EXACT, shown_whole, .write = write_number, .types = "integer string",
      .describe = field_describe_count, .expected = "a whole number", .argument = "N" },
  [LS_FIELD_DOUBLE] = { FIELD_REAL, parse_real, 0, shown_real, .write = write_number, .types = "number",
                        .describe = field_describe_real, .expected = "a number", .argument = "X" },
  [LS_FIELD_TIME] = { FIELD_MOMENT, parse_quantity, 0, shown_time, true, "ps", LS_QUANTITY_TIME,
                      .write = write_number, .types = "string", .argument = "TIME" },
  [LS_FIELD_BYTES] = { FIELD_WHOLE, parse_quantity, 0, shown_bytes, true, "B", LS_QUANTITY_BYTES,
                       .write = write_number, .types = "string", .argument = "SIZE" },
  [LS_FIELD_BYTES_DOUBLE] = { FIELD_REAL, parse_quantity, 0, shown_bytes, true, "B", LS_QUANTITY_BYTES,
                              .write = write_number, .types = "string" },
  [LS_FIELD_RATE] = { FIELD_REAL, parse_quantity, 0, ls_format_rate, true, "B/s", LS_QUANTITY_RATE,
                      .write = write_number, .types = "string" },
  [LS_FIELD_FLOPS]
  = { FIELD_REAL, parse_quantity, 0, ls_format_flops, true, NULL, LS_QUANTITY_FLOPS, .types = "string" },
  [LS_FIELD_ENUM] = { FIELD_CHOICE, .set = set_enum, .is_there = has_name, .write = write_name,
                      .describe = field_describe_names, .argument = "KIND" },
  [LS_FIELD_UINT_LIST] = { FIELD_OTHER, .max = UINT32_MAX, .shown = shown_whole, .set = set_list,
                           .read = field_read_list, .is_there = has_list, .write = write_list,
                           .describe = field_describe_list, .expected = "a list of whole numbers, each" },
  [LS_FIELD_ROW] = { FIELD_OTHER, .max = UINT32_MAX, .shown = shown_whole, .read = field_read_row,
                     .write = write_row, .describe = field_describe_list },
  [LS_FIELD_ARRAY] = { FIELD_OTHER, .read = field_read_array, .is_there = has_pointer, .write = write_array,
                       .describe = field_describe_list, .expected = "a list" },
  [LS_FIELD_CUSTOM] = { FIELD_OTHER, .set = set_custom, .is_there = has_format, .write = write_custom,
                        .types = "string number" },
  [LS_FIELD_OBJECT] = { FIELD_OTHER, .read = field_read_object, .is_there = has_members,
                        .write = write_object, .describe = field_describe_object },
  [LS_FIELD_SETTINGS]
  = { FIELD_OTHER, .read = field_read_settings, .types = "object", .describe = field_describe_settings },
  [LS_FIELD_SOURCES] = { FIELD_OTHER, .read = field_read_sources, .types = "object",
                         .describe = field_describe_sources, .expected = "an object of strings" },
  [LS_FIELD_IGNORED] = { FIELD_OTHER, .read = field_read_nothing, .describe = field_describe_ignored },
};

const FieldKind *
field_kind (const LsField *f)
{
  return &kinds[f->kind];
}

bool
ls_field_value_set (const LsField *f, void *target, const char *text)
{
  const FieldKind *k = field_kind (f);
  return k->set ? k->set (f, target, text) : k->parse && set_number (f, target, text);
}

/* --- what was wrong with it --------------------------------------------------- */

static const char *
expected_kind (const LsField *f, LsFieldOrigin origin)
{
  const FieldKind *k = field_kind (f);
  bool is_own = f->kind == LS_FIELD_UINT_LIST || !(k->expected || k->parse);
  const char *expected = is_own && f->expected ? f->expected : k->expected;
  FieldNumber none;
  if (f->kind == LS_FIELD_STRING && f->required)
    return "a string that is not empty";
  if (f->kind == LS_FIELD_BOOL)
    return origin == LS_FIELD_IN_JSON ? "true or false" : "0 or 1";
  if (!expected && k->parse)
    k->parse (f, "", &none, &expected);
  return expected ? expected : "an object";
}

int
ls_enum_value (const LsEnumName *names, const char *name)
{
  const LsEnumName *e = find_name (names, name);
  return e ? e->value : -1;
}

bool
ls_enum_is_first (const LsEnumName *names, const LsEnumName *name)
{
  return ls_enum_name (names, name->value) == name->name;
}

/* Of words that a value may be or hold; newly allocated. */
static char *
hint_of (const LsField *f, const char *text)
{
  if (f->words)
    return ls_did_you_mean (text, f->words);
  g_autoptr (GPtrArray) words = g_ptr_array_new ();
  for (const LsEnumName *e = f->names; e && e->name; e++)
    g_ptr_array_add (words, (gpointer) e->name);
  g_ptr_array_add (words, NULL);
  return ls_did_you_mean (text, (const char *const *) words->pdata);
}

static char *
enum_complaint (const LsField *f, const char *text, const char *got)
{
  g_autoptr (GString) list = g_string_new (NULL);
  for (const LsEnumName *e = f->names; e->name; e++)
    if (ls_enum_is_first (f->names, e))
      g_string_append_printf (list, "%s\"%s\"", list->len > 0 ? ", " : "", e->name);
  g_autofree char *hint = text ? hint_of (f, text) : g_strdup ("");
  return g_strdup_printf ("expected one of %s; got %s%s", list->str, got, hint);
}

char *
ls_field_value_complaint (const LsField *f, LsFieldOrigin origin, const char *text, const char *got)
{
  if (f->kind == LS_FIELD_ENUM)
    return enum_complaint (f, text, got);
  g_autofree char *why = f->why && text ? f->why (text) : NULL;
  g_autofree char *hint = text ? hint_of (f, text) : g_strdup ("");
  if (why)
    return g_strconcat (why, hint, NULL);
  g_autofree char *range = field_kind (f)->shown ? ls_field_value_range (f) : g_strdup ("");
  return g_strdup_printf ("expected %s%s; got %s%s", expected_kind (f, origin), range, got, hint);
}

/* The number that text begins with, "" if none; *ret_rest is what follows it. */
static char *
leading_number (const char *text, const char **ret_rest)
{
  char *end = (char *) text;
  if (g_ascii_isdigit (*text))
    g_ascii_strtod (text, &end);
  *ret_rest = end;
  return g_strndup (text, (gsize) (end - text));
}

/* Whether the unit is what is wrong, not the range. */
static bool
unit_is_wrong (const LsField *f, const char *text)
{
  const LsField anything = { .kind = f->kind };
  FieldNumber scratch;
  return !set_number (&anything, &scratch, text);
}

static const char *
limit_of (LsFieldKind kind)
{
  return kind == LS_FIELD_TIME ? "times are counted up to 106 days"
      : kind == LS_FIELD_BYTES ? "sizes are counted up to 16 EiB"
                               : NULL;
}

/* "2..8" of one job, "40MB" of what has no unit. */
static char *
count_hint (const char *text)
{
  const char *rest;
  if (g_str_has_prefix (text + strspn (text, G_CSET_DIGITS), ".."))
    return g_strdup ("lockstep sweep and other commands with lists take several values");
  g_autofree char *n = leading_number (text, &rest);
  bool has_letter = *n && *rest && strchr ("kKMG", *rest);
  bool has_unit = has_letter && (strcmp (rest + 1, "B") == 0 || strcmp (rest + 1, "iB") == 0);
  g_autofree char *lettered = has_unit ? g_strdup_printf ("%s%c", n, *rest) : NULL;
  uint64_t count;
  if (!has_unit || !ls_parse_count (lettered, &count, NULL))
    return NULL;
  return g_strdup_printf ("it is a count, without a unit: \"%s\" is %" G_GUINT64_FORMAT, lettered,
                          (guint64) count);
}

char *
ls_field_value_hint (const LsField *f, const char *text)
{
  if (f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_UINT64)
    return count_hint (text);
  if (!field_kind (f)->has_unit || !unit_is_wrong (f, text))
    return NULL;
  const char *rest;
  g_autofree char *n = leading_number (text, &rest);
  if (*n == '\0' || *rest == ',')
    return NULL;
  g_autofree char *one = g_strconcat ("1", rest, NULL);
  if (!unit_is_wrong (f, one))
    return g_strdup (limit_of (f->kind));
  switch (f->kind) {
  case LS_FIELD_TIME:
    return g_strdup_printf ("write \"%sus\" for microseconds or \"%sms\" for milliseconds", n, n);
  case LS_FIELD_RATE:
    return g_strdup_printf ("write \"%sGbit/s\" for bits or \"%sGB/s\" for bytes", n, n);
  case LS_FIELD_FLOPS:
    return g_ascii_strtod (n, NULL) < 1e6
        ? g_strdup_printf ("write \"%sTFLOP/s\" for 1e12 operations per second", n)
        : g_strdup_printf ("write \"%sFLOP/s\" for operations per second", n);
  default:
    if (strlen (n) > 5) /* too large for anything but bytes */
      return g_strdup_printf ("write \"%sB\" for bytes", n);
    return g_strdup_printf ("write \"%sB\" for bytes, \"%sGB\" for 1e9 or \"%sGiB\" for 2^30", n, n, n);
  }
}
