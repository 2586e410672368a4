/* Strings and parts of keys, and what stands between values. */
#include <string.h>

#include "data/text/toml_parts.h"

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

char *
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
