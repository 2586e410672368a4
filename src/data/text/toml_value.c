/* data/text/toml_value.c — scalars of TOML: strings, parts of keys, numbers, dates, times and truths,
 * and what stands between them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/text/toml.h"
#include "data/text/toml_parts.h"

/* --- strings and parts of keys, and what stands between values ----------------------------------- */

bool
toml_fail (TomlScan *s, const char *where, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  if (!s->why) {
    s->why = g_strdup_vprintf (format, args);
    s->fault = (size_t) (where - s->text);
  }
  va_end (args);
  return false;
}

/* --- between values -------------------------------------------------------------------------------- */

void
toml_skip_blanks (TomlScan *s)
{
  s->at += strspn (s->at, " \t");
}

/* All but tab. */
static bool
is_control (char c)
{
  return (unsigned char) c < 0x20 ? c != '\t' : c == 0x7f;
}

/* At '#' or not. */
static bool
skip_comment (TomlScan *s)
{
  if (*s->at != '#')
    return true;
  while (!is_control (*s->at))
    s->at++;
  if (*s->at == '\0' || *s->at == '\n' || (s->at[0] == '\r' && s->at[1] == '\n'))
    return true;
  return toml_fail (s, s->at, "a control character in a comment");
}

/* Whether one was there. */
static bool
skip_newline (TomlScan *s)
{
  gsize n = *s->at == '\n' ? 1 : s->at[0] == '\r' && s->at[1] == '\n' ? 2 : 0;
  s->at += n;
  return n > 0;
}

bool
toml_skip_lines (TomlScan *s)
{
  do {
    toml_skip_blanks (s);
    if (!skip_comment (s))
      return false;
  } while (skip_newline (s));
  return true;
}

bool
toml_end_line (TomlScan *s)
{
  toml_skip_blanks (s);
  if (!skip_comment (s))
    return false;
  return skip_newline (s) || *s->at == '\0' || toml_fail (s, s->at, "expected the end of the line");
}

/* --- strings --------------------------------------------------------------------------------------- */

static bool
add_code_point (TomlScan *s, GString *out, guint n_digits)
{
  const char *start = s->at;
  gunichar c = 0;
  for (guint i = 0; i < n_digits; i++, s->at++) {
    if (!g_ascii_isxdigit (*s->at))
      return toml_fail (s, start, "expected %u hexadecimal digits behind \\%c", n_digits, start[-1]);
    c = c << 4 | (gunichar) g_ascii_xdigit_value (*s->at);
  }
  if (c == 0)
    return toml_fail (s, start, "a NUL in a string, which is not read");
  if (!g_unichar_validate (c))
    return toml_fail (s, start, "U+%X is no character", c);
  g_string_append_unichar (out, c);
  return true;
}

/* Behind a backslash at the end of a line: to what follows the blanks. */
static bool
skip_folded (TomlScan *s)
{
  const char *start = s->at;
  toml_skip_blanks (s);
  if (!skip_newline (s))
    return toml_fail (s, start, "not an escape that TOML knows");
  do
    toml_skip_blanks (s);
  while (skip_newline (s));
  return true;
}

/* Behind a backslash. */
static bool
add_escape (TomlScan *s, GString *out, bool lines)
{
  static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
  const char *name = *s->at ? strchr (names, *s->at) : NULL;
  if (name) {
    g_string_append_c (out, values[name - names]);
    s->at++;
    return true;
  }
  if (*s->at == 'u' || *s->at == 'U')
    return add_code_point (s, out, *s->at++ == 'u' ? 4 : 8);
  return lines ? skip_folded (s) : toml_fail (s, s->at, "not an escape that TOML knows");
}

/* A character of a string that is none of its quotes. */
static bool
add_char (TomlScan *s, GString *out, char quote, bool lines)
{
  if (quote == '"' && *s->at == '\\') {
    s->at++;
    return add_escape (s, out, lines);
  }
  const char *start = s->at;
  if (lines && skip_newline (s)) {
    g_string_append_len (out, start, s->at - start);
    return true;
  }
  if (*s->at == '\0')
    return toml_fail (s, s->at, "the text ends within a string");
  if (is_control (*s->at))
    return toml_fail (s, s->at, lines ? "a control character in a string" : "the line ends within a string");
  g_string_append_c (out, *s->at++);
  return true;
}

/* How many of such quotes are here, of five at most: two of them may belong to the string. */
static gsize
count_quotes (const char *at, char quote)
{
  gsize n = 0;
  while (n < 5 && at[n] == quote)
    n++;
  return n;
}

/* Behind the three quotes. */
static bool
add_lines (TomlScan *s, GString *out, char quote)
{
  skip_newline (s);
  for (;;) {
    gsize n = count_quotes (s->at, quote);
    s->at += n;
    for (gsize i = n >= 3 ? 3 : 0; i < n; i++)
      g_string_append_c (out, quote);
    if (n >= 3)
      return true;
    if (n == 0 && !add_char (s, out, quote, true))
      return false;
  }
}

static bool
add_line (TomlScan *s, GString *out, char quote)
{
  while (*s->at != quote)
    if (!add_char (s, out, quote, false))
      return false;
  s->at++;
  return true;
}

/* A string, newly allocated. At its first quote; lines: whether it may be one of several lines. */
static char *
toml_string (TomlScan *s, bool lines)
{
  GString *out = g_string_new (NULL);
  char quote = *s->at;
  bool is_long = lines && s->at[1] == quote && s->at[2] == quote;
  s->at += is_long ? 3 : 1;
  bool ok = is_long ? add_lines (s, out, quote) : add_line (s, out, quote);
  return g_string_free (out, !ok);
}

char *
toml_key_part (TomlScan *s)
{
  const char *start = s->at;
  if (*s->at == '"' || *s->at == '\'')
    return toml_string (s, false);
  while (g_ascii_isalnum (*s->at) || *s->at == '_' || *s->at == '-')
    s->at++;
  if (s->at == start)
    toml_fail (s, start, "expected a key");
  return s->at > start ? g_strndup (start, (gsize) (s->at - start)) : NULL;
}

/* --- numbers, dates, times and truths ------------------------------------------------------------ */

cJSON *
toml_count (TomlScan *s, cJSON *item)
{
  if (s->n_items++ < LS_TOML_MAX_ITEMS)
    return item;
  toml_fail (s, s->at, "more than %d values and tables", LS_TOML_MAX_ITEMS);
  cJSON_Delete (item);
  return NULL;
}

/* --- dates and times ------------------------------------------------------------------------------- */

/* n digits, from..to; moves *at. */
static bool
read_digits (const char **at, guint n, int from, int to)
{
  int value = 0;
  for (guint i = 0; i < n; i++, (*at)++) {
    if (!g_ascii_isdigit (**at))
      return false;
    value = value * 10 + (**at - '0');
  }
  return value >= from && value <= to;
}

static bool
read_char (const char **at, const char *chars)
{
  return **at && strchr (chars, **at) && (*at)++;
}

static bool
read_date (const char **at)
{
  const char *start = *at;
  if (!read_digits (at, 4, 0, 9999) || !read_char (at, "-") || !read_digits (at, 2, 1, 12)
      || !read_char (at, "-") || !read_digits (at, 2, 1, 31))
    return false;
  GDateYear year = (GDateYear) MAX (1, atoi (start)); /* the year 0 is as long as the year 4 */
  return g_date_valid_dmy ((GDateDay) atoi (start + 8), (GDateMonth) atoi (start + 5),
                           (GDateYear) (atoi (start) == 0 ? 4 : year));
}

static bool
read_time (const char **at)
{
  if (!read_digits (at, 2, 0, 23) || !read_char (at, ":") || !read_digits (at, 2, 0, 59)
      || !read_char (at, ":") || !read_digits (at, 2, 0, 60))
    return false;
  if (**at != '.')
    return true;
  gsize n = strspn (*at + 1, "0123456789");
  *at += 1 + n;
  return n > 0;
}

static bool
read_offset (const char **at)
{
  if (read_char (at, "Zz"))
    return true;
  return read_char (at, "+-") && read_digits (at, 2, 0, 23) && read_char (at, ":")
      && read_digits (at, 2, 0, 59);
}

/* A date, a time, or both, with an offset or not: to behind it; NULL: it is wrong. */
static const char *
read_moment (const char *at)
{
  if (at[2] == ':')
    return read_time (&at) ? at : NULL;
  if (!read_date (&at))
    return NULL;
  bool has_time = strchr ("Tt", *at) ? *at != '\0' : *at == ' ' && g_ascii_isdigit (at[1]);
  if (!has_time)
    return at;
  at++;
  if (!read_time (&at))
    return NULL;
  return !strchr ("Zz+-", *at) || *at == '\0' || read_offset (&at) ? at : NULL;
}

static cJSON *
read_date_or_time (TomlScan *s)
{
  const char *end = read_moment (s->at);
  if (!end) {
    toml_fail (s, s->at, "not a date or time as TOML writes them");
    return NULL;
  }
  g_autofree char *text = g_strndup (s->at, (gsize) (end - s->at));
  s->at = end;
  return cJSON_CreateString (text);
}

/* --- numbers --------------------------------------------------------------------------------------- */

/* Digits with single '_' between them, without the '_'; NULL: it is none such. */
static char *
digits_of (const char *at, gsize n, const char *allowed)
{
  GString *out = g_string_new (NULL);
  bool ok = n > 0 && at[0] != '_' && at[n - 1] != '_';
  for (gsize i = 0; ok && i < n; i++) {
    ok = at[i] == '_' ? at[i - 1] != '_' : strchr (allowed, at[i]) != NULL;
    if (at[i] != '_')
      g_string_append_c (out, at[i]);
  }
  return g_string_free (out, !ok);
}

static cJSON *
whole_number (gint64 value)
{
  char text[24];
  g_snprintf (text, sizeof text, "%" G_GINT64_FORMAT, value);
  bool is_exact = value <= ((gint64) 1 << 53) && value >= -((gint64) 1 << 53);
  return is_exact ? cJSON_CreateNumber ((double) value) : cJSON_CreateRaw (text);
}

/* "0x..", "0o..", "0b..": n characters. */
static cJSON *
read_based (TomlScan *s, gsize n)
{
  guint base = s->at[1] == 'x' ? 16 : s->at[1] == 'o' ? 8 : 2;
  g_autofree char *digits = digits_of (s->at + 2, n - 2,
                                       base == 16      ? "0123456789abcdefABCDEF"
                                           : base == 8 ? "01234567"
                                                       : "01");
  guint64 value;
  if (digits && g_ascii_string_to_unsigned (digits, base, 0, G_MAXINT64, &value, NULL))
    return whole_number ((gint64) value);
  toml_fail (s, s->at, "not a whole number");
  return NULL;
}

/* Decimal digits of at most so many characters, in front of what is not: how many characters; 0: none. */
static gsize
span_digits (const char *at)
{
  gsize n = strspn (at, "0123456789_");
  g_autofree char *digits = digits_of (at, n, "0123456789");
  return digits ? n : 0;
}

/* [+-]digits[.digits][e[+-]digits] of n characters; *ret_whole: neither point nor exponent. */
static bool
is_decimal (const char *at, gsize n, bool *ret_whole)
{
  const char *p = at + (*at == '+' || *at == '-');
  gsize k = span_digits (p);
  if (k == 0 || (p[0] == '0' && k > 1))
    return false;
  p += k;
  *ret_whole = p == at + n;
  if (*p == '.') {
    k = span_digits (p + 1);
    p += 1 + k;
    if (k == 0)
      return false;
  }
  if (*p == 'e' || *p == 'E') {
    p += 1 + (p[1] == '+' || p[1] == '-');
    k = span_digits (p);
    p += k;
    if (k == 0)
      return false;
  }
  return p == at + n;
}

static cJSON *
read_decimal (TomlScan *s, gsize n)
{
  bool is_whole = false;
  gint64 value;
  if (!is_decimal (s->at, n, &is_whole)) {
    toml_fail (s, s->at, "not a value as TOML writes them");
    return NULL;
  }
  GString *text = g_string_new_len (s->at + (*s->at == '+'), (gssize) (n - (*s->at == '+')));
  g_string_replace (text, "_", "", 0);
  bool fits = !is_whole || g_ascii_string_to_signed (text->str, 10, G_MININT64, G_MAXINT64, &value, NULL);
  double x = g_ascii_strtod (text->str, NULL);
  g_string_free (text, TRUE);
  if (!fits)
    toml_fail (s, s->at, "a whole number beyond 64 bits");
  return !fits ? NULL : is_whole ? whole_number (value) : cJSON_CreateNumber (x);
}

/* --- words ----------------------------------------------------------------------------------------- */

static cJSON *
read_word (const char *at, gsize n)
{
  static const struct {
    const char *word;
    double value;
  } numbers[] = { { "inf", INFINITY }, { "+inf", INFINITY }, { "-inf", -INFINITY },
                  { "nan", NAN },      { "+nan", NAN },      { "-nan", NAN } };
  if (n == 4 && memcmp (at, "true", 4) == 0)
    return cJSON_CreateTrue ();
  if (n == 5 && memcmp (at, "false", 5) == 0)
    return cJSON_CreateFalse ();
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (strlen (numbers[i].word) == n && memcmp (at, numbers[i].word, n) == 0)
      return cJSON_CreateNumber (numbers[i].value);
  return NULL;
}

static bool
is_moment (const char *at)
{
  gsize n = strspn (at, "0123456789");
  return (n == 4 && at[4] == '-') || (n == 2 && at[2] == ':');
}

cJSON *
toml_scalar (TomlScan *s)
{
  if (*s->at == '"' || *s->at == '\'') {
    g_autofree char *text = toml_string (s, true);
    return text ? cJSON_CreateString (text) : NULL;
  }
  if (is_moment (s->at))
    return read_date_or_time (s);
  gsize n = strcspn (s->at, " \t\r\n#,]}");
  cJSON *item = read_word (s->at, n);
  bool is_based = n > 2 && s->at[0] == '0' && strchr ("xob", s->at[1]);
  if (!item)
    item = is_based ? read_based (s, n) : read_decimal (s, n);
  s->at += item ? n : 0;
  return item;
}
