#include "data/text/yaml.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#define MAX_WHOLE 9007199254740992.0 /* 2^53: beyond it a double is not exact */

static bool
is_one_of (const char *text, const char *const *words)
{
  return g_strv_contains (words, text);
}

static bool
is_null (const char *text)
{
  return is_one_of (text, (const char *const[]) { "", "~", "null", "Null", "NULL", NULL });
}

static bool
is_true (const char *text)
{
  static const char *const words[] = { "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", NULL };
  return is_one_of (text, words);
}

static bool
is_false (const char *text)
{
  static const char *const words[]
      = { "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", NULL };
  return is_one_of (text, words);
}

/* --- numbers -------------------------------------------------------------------------------------- */

static bool
is_sign (char c)
{
  return c == '-' || c == '+';
}

/* Of the characters in set, and not only of '_'. */
static bool
is_all (const char *text, const char *set)
{
  return text[strspn (text, set)] == '\0' && text[strspn (text, "_")] != '\0';
}

static double
digits_value (const char *text, guint base)
{
  double value = 0;
  for (; *text; text++)
    if (*text != '_')
      value = value * base + g_ascii_xdigit_value (*text);
  return value;
}

/* "1:30:00": 5400. */
static bool
read_sexagesimal (const char *text, double *ret_value)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", 16);
  guint n = g_strv_length (parts);
  if (n < 2 || n >= 16 || !is_all (parts[0], "0123456789_") || text[0] < '1' || text[0] > '9')
    return false;
  *ret_value = digits_value (parts[0], 10);
  for (guint i = 1; i < n; i++) {
    gsize length = strlen (parts[i]);
    if (length == 0 || length > 2 || !is_all (parts[i], "0123456789") || (length == 2 && parts[i][0] > '5'))
      return false;
    *ret_value = *ret_value * 60 + digits_value (parts[i], 10);
  }
  return true;
}

/* Without its sign. */
static bool
read_whole (const char *text, double *ret_value)
{
  guint base = 10;
  const char *set = "0123456789_";
  if (text[0] == '0' && text[1]) {
    bool is_binary = text[1] == 'b', is_hex = text[1] == 'x';
    base = is_binary ? 2 : is_hex ? 16 : 8;
    set = is_binary ? "01_" : is_hex ? "0123456789abcdefABCDEF_" : "01234567_";
    text += is_binary || is_hex ? 2 : 1;
  } else if (!g_ascii_isdigit (text[0]))
    return false;
  if (!is_all (text, set))
    return read_sexagesimal (text, ret_value);
  *ret_value = digits_value (text, base);
  return true;
}

/* Without its sign: digits, a point, digits, and an exponent with a sign. */
static bool
is_float (const char *text)
{
  gsize before = strspn (text, "0123456789_");
  if (text[before] != '.' || text[0] == '_' || (before == 0 && !g_ascii_isdigit (text[1])))
    return false;
  text += before + 1;
  text += strspn (text, "0123456789_");
  if ((*text == 'e' || *text == 'E') && is_sign (text[1]) && text[2])
    text += 2 + strspn (text + 2, "0123456789");
  return *text == '\0';
}

static cJSON *
float_node (const char *text)
{
  GString *plain = g_string_new (NULL);
  for (; *text; text++)
    if (*text != '_')
      g_string_append_c (plain, *text);
  double value = g_ascii_strtod (plain->str, NULL);
  g_string_free (plain, TRUE);
  return isfinite (value) ? cJSON_CreateNumber (value) : NULL;
}

/* NULL: it is none, or none that a double holds. */
static cJSON *
number_node (const char *text)
{
  const char *bare = text + is_sign (text[0]);
  double value;
  if (read_whole (bare, &value))
    return value <= MAX_WHOLE ? cJSON_CreateNumber (text[0] == '-' ? -value : value) : NULL;
  return is_float (bare) ? float_node (text) : NULL;
}

/* --- scalars -------------------------------------------------------------------------------------- */

cJSON *
ls_yaml_scalar (const char *text)
{
  if (is_null (text))
    return cJSON_CreateNull ();
  if (is_true (text) || is_false (text))
    return cJSON_CreateBool (is_true (text));
  cJSON *number = number_node (text);
  return number ? number : cJSON_CreateString (text);
}

cJSON *
ls_yaml_tagged (const char *type, const char *text)
{
  cJSON *node = NULL;
  if (strcmp (type, "null") == 0)
    node = cJSON_CreateNull ();
  else if (strcmp (type, "bool") == 0 && (is_true (text) || is_false (text)))
    node = cJSON_CreateBool (is_true (text));
  else if (strcmp (type, "int") == 0)
    node = number_node (text);
  else if (strcmp (type, "float") == 0) {
    char *end;
    double value = g_ascii_strtod (text, &end); /* "1e9" is a float here */
    node = end > text && !*end && isfinite (value) ? cJSON_CreateNumber (value) : NULL;
  }
  return node ? node : cJSON_CreateString (text);
}
