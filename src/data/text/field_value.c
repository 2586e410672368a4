#include "data/text/field.h"

#include <math.h>
#include <string.h>

#include <lockstep/units.h>

#include "base/suggest.h"

#define MAX_EXACT 9007199254740991.0 /* 2^53 - 1: below it every integer is a double of its own */

static bool
is_quantity (LsFieldKind kind)
{
  return kind == LS_FIELD_TIME || kind == LS_FIELD_BYTES || kind == LS_FIELD_BYTES_DOUBLE
      || kind == LS_FIELD_RATE || kind == LS_FIELD_FLOPS;
}

static bool
is_whole (LsFieldKind kind)
{
  return kind == LS_FIELD_UINT || kind == LS_FIELD_UINT64 || kind == LS_FIELD_UINT_LIST
      || kind == LS_FIELD_ROW;
}

/* --- ranges ------------------------------------------------------------------- */

double
ls_field_value_max (const LsField *f)
{
  if (f->max > 0)
    return f->max;
  if (f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_UINT_LIST || f->kind == LS_FIELD_ROW)
    return UINT32_MAX;
  return f->kind == LS_FIELD_UINT64 ? MAX_EXACT : INFINITY;
}

bool
ls_field_value_in_range (const LsField *f, double value)
{
  return (f->above ? value > f->min : value >= f->min) && value <= ls_field_value_max (f);
}

static char *
format_limit (const LsField *f, double value)
{
  switch (f->kind) {
  case LS_FIELD_TIME:
    return ls_format_time ((LsTime) value);
  case LS_FIELD_BYTES:
  case LS_FIELD_BYTES_DOUBLE:
    return ls_format_bytes ((uint64_t) value);
  case LS_FIELD_RATE:
    return ls_format_rate (value);
  case LS_FIELD_FLOPS:
    return ls_format_flops (value);
  default: {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    return g_strdup (g_ascii_formatd (number, sizeof number, is_whole (f->kind) ? "%.0f" : "%.10g", value));
  }
  }
}

char *
ls_field_value_range (const LsField *f)
{
  bool has_min = f->above || f->min != 0 || is_whole (f->kind);
  bool has_max = isfinite (ls_field_value_max (f));
  g_autofree char *min = format_limit (f, f->min);
  g_autofree char *max = has_max ? format_limit (f, ls_field_value_max (f)) : NULL;
  const char *comma = is_quantity (f->kind) ? "," : "";
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
set_bool (bool *place, const char *text)
{
  bool yes = strcmp (text, "true") == 0 || strcmp (text, "1") == 0;
  if (!yes && strcmp (text, "false") != 0 && strcmp (text, "0") != 0)
    return false;
  *place = yes;
  return true;
}

static bool
read_whole (const LsField *f, const char *text, guint64 *ret)
{
  return ls_parse_count (text, ret, NULL) && *ret <= (guint64) ls_field_value_max (f)
      && ls_field_value_in_range (f, (double) *ret);
}

static bool
set_uint (const LsField *f, uint32_t *place, const char *text)
{
  guint64 value;
  if (!read_whole (f, text, &value))
    return false;
  *place = (uint32_t) value;
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
  return ls_field_value_in_range (f, value);
}

static bool
set_uint64 (const LsField *f, uint64_t *place, const char *text)
{
  guint64 value;
  if (!read_whole (f, text, &value) && !read_power (f, text, &value))
    return false;
  *place = value;
  return true;
}

static bool
read_plain_double (const char *text, double *ret)
{
  char *end = NULL;
  *ret = g_ascii_strtod (text, &end);
  return end != text && *end == '\0' && !g_ascii_isspace (*text) && isfinite (*ret);
}

static bool
read_double (const LsField *f, const char *text, double *ret)
{
  uint64_t n_bytes;
  switch (f->kind) {
  case LS_FIELD_RATE:
    return ls_parse_rate (text, ret, NULL);
  case LS_FIELD_FLOPS:
    return ls_parse_flops (text, ret, NULL);
  case LS_FIELD_BYTES_DOUBLE:
    if (!ls_parse_bytes (text, &n_bytes, NULL))
      return false;
    *ret = (double) n_bytes;
    return true;
  default:
    return read_plain_double (text, ret);
  }
}

static bool
set_double (const LsField *f, double *place, const char *text)
{
  double value;
  if (!read_double (f, text, &value) || !ls_field_value_in_range (f, value))
    return false;
  *place = value;
  return true;
}

static bool
set_time (const LsField *f, LsTime *place, const char *text)
{
  LsTime value;
  if (!ls_parse_time (text, &value, NULL) || !ls_field_value_in_range (f, (double) value))
    return false;
  *place = value;
  return true;
}

static bool
set_bytes (const LsField *f, uint64_t *place, const char *text)
{
  uint64_t value;
  if (!ls_parse_bytes (text, &value, NULL) || !ls_field_value_in_range (f, (double) value))
    return false;
  *place = value;
  return true;
}

static bool
set_enum (const LsField *f, int *place, const char *text)
{
  for (const LsEnumName *e = f->names; e->name; e++)
    if (strcmp (e->name, text) == 0) {
      *place = e->value;
      return true;
    }
  return false;
}

static bool
set_string (const LsField *f, char **place, const char *text)
{
  if (f->required && *text == '\0')
    return false;
  g_free (*place);
  *place = g_strdup (text);
  return true;
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
  uint32_t value;
  if (!set_uint (f, &value, text) || n > MAX_RUNS - MIN (values->len, MAX_RUNS))
    return false;
  for (guint64 i = 0; i < n; i++)
    g_array_append_val (values, value);
  return true;
}

static bool
set_word (const LsField *f, void *target, const char *text)
{
  for (const LsEnumName *e = f->names; e && e->name; e++)
    if (strcmp (e->name, text) == 0) {
      ls_field_value_set_list (f, target, NULL, 0);
      *(int *) ((char *) target + f->word_offset) = e->value;
      return true;
    }
  return false;
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

bool
ls_field_value_set (const LsField *f, void *target, const char *text)
{
  void *place = (char *) target + f->offset;
  switch (f->kind) {
  case LS_FIELD_STRING:
    return set_string (f, place, text);
  case LS_FIELD_BOOL:
    return set_bool (place, text);
  case LS_FIELD_UINT:
    return set_uint (f, place, text);
  case LS_FIELD_UINT64:
    return set_uint64 (f, place, text);
  case LS_FIELD_DOUBLE:
  case LS_FIELD_BYTES_DOUBLE:
  case LS_FIELD_RATE:
  case LS_FIELD_FLOPS:
    return set_double (f, place, text);
  case LS_FIELD_TIME:
    return set_time (f, place, text);
  case LS_FIELD_BYTES:
    return set_bytes (f, place, text);
  case LS_FIELD_ENUM:
    return set_enum (f, place, text);
  case LS_FIELD_UINT_LIST:
    return set_list (f, target, text);
  case LS_FIELD_CUSTOM:
    return f->parse (text, target);
  case LS_FIELD_ROW:
  case LS_FIELD_ARRAY:
  case LS_FIELD_OBJECT:
  case LS_FIELD_SETTINGS:
  case LS_FIELD_SOURCES:
  case LS_FIELD_IGNORED:
    break;
  }
  return false;
}

/* --- what was wrong with it --------------------------------------------------- */

static const char *
expected_kind (const LsField *f, LsFieldOrigin origin)
{
  const char *expected = NULL;
  uint64_t bytes;
  double rate;
  LsTime time;
  switch (f->kind) {
  case LS_FIELD_STRING:
    return f->required ? "a string that is not empty" : "a string";
  case LS_FIELD_BOOL:
    return origin == LS_FIELD_IN_JSON ? "true or false" : "0 or 1";
  case LS_FIELD_UINT:
  case LS_FIELD_UINT64:
    return "a whole number";
  case LS_FIELD_DOUBLE:
    return "a number";
  case LS_FIELD_TIME:
    ls_parse_time ("", &time, &expected);
    return expected;
  case LS_FIELD_BYTES:
  case LS_FIELD_BYTES_DOUBLE:
    ls_parse_bytes ("", &bytes, &expected);
    return expected;
  case LS_FIELD_RATE:
    ls_parse_rate ("", &rate, &expected);
    return expected;
  case LS_FIELD_FLOPS:
    ls_parse_flops ("", &rate, &expected);
    return expected;
  case LS_FIELD_UINT_LIST:
    return f->expected ? f->expected : "a list of whole numbers, each";
  case LS_FIELD_CUSTOM:
  case LS_FIELD_ROW:
    return f->expected;
  case LS_FIELD_ARRAY:
    return "a list";
  case LS_FIELD_SOURCES:
    return "an object of strings";
  case LS_FIELD_SETTINGS:
  case LS_FIELD_ENUM:
  case LS_FIELD_OBJECT:
  case LS_FIELD_IGNORED:
    break;
  }
  return "an object";
}

/* Not another spelling of a value that was listed already. */
static bool
is_first_of_value (const LsField *f, const LsEnumName *name)
{
  for (const LsEnumName *e = f->names; e < name; e++)
    if (e->value == name->value)
      return false;
  return true;
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
    if (is_first_of_value (f, e))
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
  bool has_range = is_whole (f->kind) || is_quantity (f->kind) || f->kind == LS_FIELD_DOUBLE;
  g_autofree char *range = has_range ? ls_field_value_range (f) : g_strdup ("");
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
  LsField anything = *f;
  anything.min = 0;
  anything.max = 0;
  anything.above = false;
  union {
    uint64_t u64;
    LsTime time;
    double number;
  } scratch;
  anything.offset = 0;
  return !ls_field_value_set (&anything, &scratch, text);
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
  if (!is_quantity (f->kind) || !unit_is_wrong (f, text))
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
