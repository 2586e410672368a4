#include "data/text/toml.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "data/text/json_doc.h"
#include "data/text/text_place.h"

/* How a table or an array came to be, which says what may still be added to it. */
typedef enum {
  IMPLICIT = 1, /* in front of another in "[a.b]"         */
  HEADER,       /* "[a]", and the text itself             */
  DOTTED,       /* "a.b = 1"                              */
  CLOSED,       /* "{...}", "[1, 2]"                      */
  TABLES,       /* an array of tables, "[[a]]"            */
} Kind;

typedef struct {
  const char *text; /* NUL-terminated, valid UTF-8 */
  const char *at;
  char *why;    /* what is wrong, newly allocated; NULL: nothing is */
  size_t fault; /* the byte where */
  unsigned n_items;
  GRegex *numbers;
  GHashTable *items; /* Place * -> cJSON *: a table of many keys is searched as fast */
} Toml;

/* The first fault counts. */
static bool G_GNUC_PRINTF (3, 4) fail (Toml *t, const char *where, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  if (!t->why) {
    t->why = g_strdup_vprintf (format, args);
    t->fault = (size_t) (where - t->text);
  }
  va_end (args);
  return false;
}

/* --- between values -------------------------------------------------------------------------------- */

/* Spaces and tabs. */
static void
skip_blanks (Toml *t)
{
  t->at += strspn (t->at, " \t");
}

/* All but tab. */
static bool
is_control (char c)
{
  return (unsigned char) c < 0x20 ? c != '\t' : c == 0x7f;
}

/* At '#' or not. */
static bool
skip_comment (Toml *t)
{
  if (*t->at != '#')
    return true;
  while (!is_control (*t->at))
    t->at++;
  if (*t->at == '\0' || *t->at == '\n' || (t->at[0] == '\r' && t->at[1] == '\n'))
    return true;
  return fail (t, t->at, "a control character in a comment");
}

/* Whether one was there. */
static bool
skip_newline (Toml *t)
{
  gsize n = *t->at == '\n' ? 1 : t->at[0] == '\r' && t->at[1] == '\n' ? 2 : 0;
  t->at += n;
  return n > 0;
}

/* Also ends of lines and comments. */
static bool
skip_lines (Toml *t)
{
  do {
    skip_blanks (t);
    if (!skip_comment (t))
      return false;
  } while (skip_newline (t));
  return true;
}

/* The rest of a line: blanks, a comment, its end or that of the text. */
static bool
end_line (Toml *t)
{
  skip_blanks (t);
  if (!skip_comment (t))
    return false;
  return skip_newline (t) || *t->at == '\0' || fail (t, t->at, "expected the end of the line");
}

/* --- strings --------------------------------------------------------------------------------------- */

static bool
add_code_point (Toml *t, GString *out, guint n_digits)
{
  const char *start = t->at;
  gunichar c = 0;
  for (guint i = 0; i < n_digits; i++, t->at++) {
    if (!g_ascii_isxdigit (*t->at))
      return fail (t, start, "expected %u hexadecimal digits after \\%c", n_digits, start[-1]);
    c = c << 4 | (gunichar) g_ascii_xdigit_value (*t->at);
  }
  if (c == 0)
    return fail (t, start, "a NUL in a string, which is not read");
  if (!g_unichar_validate (c))
    return fail (t, start, "U+%X is no character", c);
  g_string_append_unichar (out, c);
  return true;
}

/* Behind a backslash at the end of a line: to what follows the blanks. */
static bool
skip_folded (Toml *t)
{
  const char *start = t->at;
  skip_blanks (t);
  if (!skip_newline (t))
    return fail (t, start, "not an escape that TOML knows");
  do
    skip_blanks (t);
  while (skip_newline (t));
  return true;
}

/* Behind a backslash. */
static bool
add_escape (Toml *t, GString *out, bool lines)
{
  static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
  const char *name = *t->at ? strchr (names, *t->at) : NULL;
  if (name) {
    g_string_append_c (out, values[name - names]);
    t->at++;
    return true;
  }
  if (*t->at == 'u' || *t->at == 'U')
    return add_code_point (t, out, *t->at++ == 'u' ? 4 : 8);
  return lines ? skip_folded (t) : fail (t, t->at, "not an escape that TOML knows");
}

/* A character of a string that is none of its quotes. */
static bool
add_char (Toml *t, GString *out, char quote, bool lines)
{
  if (quote == '"' && *t->at == '\\') {
    t->at++;
    return add_escape (t, out, lines);
  }
  const char *start = t->at;
  if (lines && skip_newline (t)) {
    g_string_append_len (out, start, t->at - start);
    return true;
  }
  if (*t->at == '\0')
    return fail (t, t->at, "the text ends within a string");
  if (is_control (*t->at))
    return fail (t, t->at, lines ? "a control character in a string" : "the line ends within a string");
  g_string_append_c (out, *t->at++);
  return true;
}

/* A string, newly allocated. At its first quote; lines: whether it may be one of several lines, whose end is
 * three quotes, with two of its own in front at most. */
static char *
string (Toml *t, bool lines)
{
  g_autoptr (GString) out = g_string_new (NULL);
  const char quote = *t->at;
  const bool is_long = lines && t->at[1] == quote && t->at[2] == quote;
  const gsize n_end = is_long ? 3 : 1, most = is_long ? 5 : 1;
  t->at += n_end;
  if (is_long)
    skip_newline (t);
  for (gsize n;;) {
    for (n = 0; n < most && t->at[n] == quote;)
      n++;
    if (n >= n_end) {
      g_string_append_len (out, t->at, (gssize) (n - n_end));
      t->at += n;
      return g_string_free (g_steal_pointer (&out), FALSE);
    }
    if (!add_char (t, out, quote, is_long))
      return NULL;
  }
}

/* One part of a key, newly allocated; NULL: none is here. */
static char *
key_part (Toml *t)
{
  const char *start = t->at;
  if (*t->at == '"' || *t->at == '\'')
    return string (t, false);
  while (g_ascii_isalnum (*t->at) || *t->at == '_' || *t->at == '-')
    t->at++;
  if (t->at == start)
    fail (t, start, "expected a key");
  return t->at > start ? g_strndup (start, (gsize) (t->at - start)) : NULL;
}

/* --- numbers, dates, times and truths ------------------------------------------------------------ */

/* NULL: there are too many. Takes item. */
static cJSON *
count (Toml *t, cJSON *item)
{
  if (t->n_items++ < LS_TOML_MAX_ITEMS)
    return item;
  fail (t, t->at, "more than %d values and tables", LS_TOML_MAX_ITEMS);
  cJSON_Delete (item);
  return NULL;
}

/* --- dates and times ------------------------------------------------------------------------------- */

#define MAX_MOMENT 256 /* characters */
#define TIME       "(?:[01]\\d|2[0-3]):[0-5]\\d:(?:[0-5]\\d|60)(?:\\.\\d++|(?!\\.))"
#define OFFSET     "(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d|(?![Zz+-]))"
#define DATE       "\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])"

/* A date, a time, or both, with an offset or not. */
static cJSON *
read_date_or_time (Toml *t)
{
  static const char pattern[] = TIME "|" DATE "(?:(?:[Tt]| (?=\\d))" TIME OFFSET "|(?![Tt]| \\d))";
  g_autoptr (GRegex) regex = g_regex_new (pattern, G_REGEX_RAW | G_REGEX_ANCHORED, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  bool is_moment
      = g_regex_match_full (regex, t->at, (gssize) strnlen (t->at, MAX_MOMENT), 0, 0, &match, NULL);
  g_autofree char *text = is_moment ? g_match_info_fetch (match, 0) : NULL;
  int year = atoi (t->at); /* the year 0 is as long as the year 4 */
  if (is_moment && t->at[2] != ':')
    is_moment = g_date_valid_dmy ((GDateDay) atoi (t->at + 8), (GDateMonth) atoi (t->at + 5),
                                  (GDateYear) (year == 0 ? 4 : year));
  if (!is_moment)
    return fail (t, t->at, "not a date or time as TOML writes them"), NULL;
  t->at += strlen (text);
  return cJSON_CreateString (text);
}

/* --- numbers --------------------------------------------------------------------------------------- */

#define DIGITS "\\d(?:_?\\d)*+"
#define WHOLE  "[+-]?(?:0|[1-9](?:_?\\d)*+)"
#define BASED  "0x[[:xdigit:]](?:_?[[:xdigit:]])*+|0o[0-7](?:_?[0-7])*+|0b[01](?:_?[01])*+"
#define REAL   WHOLE "(?:\\." DIGITS ")?(?:[eE][+-]?" DIGITS ")?|[+-]?(?:inf|nan)"

/* What it is by the group that fits. */
enum { IS_BASED = 1, IS_WHOLE, IS_REAL };
static const char numbers[] = "(?:(" BASED ")|(" WHOLE ")|(" REAL "))\\z";

/* Of a whole number of n characters; beyond what a double holds its digits. */
static cJSON *
read_whole (Toml *t, const char *digits, guint base)
{
  gint64 value;
  if (!g_ascii_string_to_signed (digits, base, G_MININT64, G_MAXINT64, &value, NULL))
    return fail (t, t->at, base == 10 ? "a whole number beyond 64 bits" : "not a whole number"), NULL;
  char text[24];
  g_snprintf (text, sizeof text, "%" G_GINT64_FORMAT, value);
  bool is_exact = value <= ((gint64) 1 << 53) && value >= -((gint64) 1 << 53);
  return is_exact ? cJSON_CreateNumber ((double) value) : cJSON_CreateRaw (text);
}

/* A number of n characters. */
static cJSON *
read_number (Toml *t, gsize n)
{
  g_autofree char *word = g_strndup (t->at, n);
  g_autoptr (GMatchInfo) match = NULL;
  const bool is_based = n > 2 && word[0] == '0' && strchr ("xob", word[1]);
  if (!g_regex_match (t->numbers, word, 0, &match))
    return fail (t, t->at, is_based ? "not a whole number" : "not a value as TOML writes them"), NULL;
  const int what = g_match_info_get_match_count (match) - 1;
  g_autoptr (GString) text = g_string_new (word + (*word == '+'));
  g_string_replace (text, "_", "", 0);
  if (what == IS_REAL)
    return cJSON_CreateNumber (g_ascii_strtod (text->str, NULL));
  return what == IS_WHOLE ? read_whole (t, text->str, 10)
                          : read_whole (t, text->str + 2,
                                        word[1] == 'x'       ? 16
                                            : word[1] == 'o' ? 8
                                                             : 2);
}

static bool
is_moment (const char *at)
{
  gsize n = strspn (at, "0123456789");
  return (n == 4 && at[4] == '-') || (n == 2 && at[2] == ':');
}

/* A string, number, date, time, true or false. NULL: none is here. */
static cJSON *
scalar (Toml *t)
{
  if (*t->at == '"' || *t->at == '\'') {
    g_autofree char *text = string (t, true);
    return text ? cJSON_CreateString (text) : NULL;
  }
  if (is_moment (t->at))
    return read_date_or_time (t);
  gsize n = strcspn (t->at, " \t\r\n#,]}");
  bool is_true = n == 4 && g_str_has_prefix (t->at, "true"),
       is_truth = is_true || (n == 5 && g_str_has_prefix (t->at, "false"));
  cJSON *item = is_truth ? cJSON_CreateBool (is_true) : read_number (t, n);
  t->at += item ? n : 0;
  return item;
}

/* --- tables and arrays ----------------------------------------------------------------------------- */

typedef struct {
  const cJSON *table;
  const char *key; /* of the item */
} Place;

static guint
place_hash (gconstpointer place)
{
  const Place *p = place;
  return g_direct_hash (p->table) * 31 + g_str_hash (p->key);
}

static gboolean
place_equal (gconstpointer a, gconstpointer b)
{
  const Place *p = a, *q = b;
  return p->table == q->table && strcmp (p->key, q->key) == 0;
}

/* It is kept where cJSON has the value of a number. */
static Kind
kind_of (const cJSON *item)
{
  return cJSON_IsObject (item) || cJSON_IsArray (item) ? (Kind) item->valueint : 0;
}

static void
set_kind (cJSON *item, Kind kind)
{
  item->valueint = (int) kind;
}

static cJSON *
find (const Toml *t, const cJSON *table, const char *key)
{
  return g_hash_table_lookup (t->items, &(Place) { table, key });
}

/* Takes item, which may be NULL; returns it. */
static cJSON *
add (Toml *t, cJSON *table, const char *key, cJSON *item)
{
  if (!item)
    return NULL;
  cJSON_AddItemToObject (table, key, item);
  Place *place = g_new (Place, 1);
  *place = (Place) { table, item->string };
  g_hash_table_insert (t->items, place, item);
  return item;
}

/* --- keys ------------------------------------------------------------------------------------------ */

/* The parts of a key: char *, owned by the array. NULL: there is none. */
static GPtrArray *
read_key (Toml *t, guint depth)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  for (;;) {
    skip_blanks (t);
    char *part = key_part (t);
    if (!part)
      return NULL;
    g_ptr_array_add (parts, part);
    if (depth + parts->len >= LS_JSON_MAX_DEPTH)
      return fail (t, t->at, "nested deeper than %d", LS_JSON_MAX_DEPTH), NULL;
    skip_blanks (t);
    if (*t->at != '.')
      return g_steal_pointer (&parts);
    t->at++;
  }
}

static cJSON *
new_table (Toml *t, cJSON *table, const char *key, Kind kind)
{
  cJSON *item = add (t, table, key, count (t, cJSON_CreateObject ()));
  if (item)
    set_kind (item, kind);
  return item;
}

/* --- values ---------------------------------------------------------------------------------------- */

static bool read_pair (Toml *t, cJSON *table, guint depth);
static cJSON *read_value (Toml *t, guint depth);

/* What stands in brackets: an array of values, on several lines, or a table of pairs, on one line and without
 * a comma behind the last. */
static bool
fill (Toml *t, cJSON *item, guint depth)
{
  const bool is_array = cJSON_IsArray (item);
  const char end = is_array ? ']' : '}';
  for (bool is_first = true;; is_first = false, t->at++) {
    skip_blanks (t);
    if (is_array && !skip_lines (t))
      return false;
    if (*t->at == end && (is_array || is_first))
      return true;
    cJSON *value = is_array ? read_value (t, depth) : NULL;
    if (is_array ? !value : !read_pair (t, item, depth))
      return false;
    if (value)
      cJSON_AddItemToArray (item, value);
    skip_blanks (t);
    if (is_array && !skip_lines (t))
      return false;
    if (*t->at != ',')
      return *t->at == end || fail (t, t->at, "expected ',' or '%c'", end);
  }
}

/* All tables within a value are complete with it. */
static void
close_tables (cJSON *item)
{
  for (cJSON *c = item->child; c; c = c->next)
    close_tables (c);
  if (cJSON_IsObject (item) || cJSON_IsArray (item))
    set_kind (item, CLOSED);
}

static cJSON *
read_container (Toml *t, guint depth)
{
  bool is_array = *t->at == '[';
  if (depth + 1 >= LS_JSON_MAX_DEPTH)
    return fail (t, t->at, "nested deeper than %d", LS_JSON_MAX_DEPTH), NULL;
  t->at++;
  cJSON *item = count (t, is_array ? cJSON_CreateArray () : cJSON_CreateObject ());
  if (item && !is_array)
    set_kind (item, DOTTED);
  if (!item || !fill (t, item, depth + 1)) {
    cJSON_Delete (item);
    return NULL;
  }
  t->at++;
  return item;
}

static cJSON *
read_value (Toml *t, guint depth)
{
  if (*t->at == '[' || *t->at == '{')
    return read_container (t, depth);
  if (*t->at == '\0' || strchr ("\r\n#,]}", *t->at))
    return fail (t, t->at, "expected a value"), NULL;
  cJSON *item = scalar (t);
  return item ? count (t, item) : NULL;
}

/* The table that the front of a dotted key names, within that of its section, or of a header; NULL: it cannot
 * be. */
static cJSON *
descend (Toml *t, cJSON *table, const GPtrArray *parts, const char *where, bool is_header)
{
  for (guint i = 0; table && i + 1 < parts->len; i++) {
    const char *part = parts->pdata[i];
    cJSON *next = find (t, table, part);
    Kind kind = next ? kind_of (next) : 0;
    if (next && (is_header ? kind == CLOSED || kind == 0 : kind != DOTTED))
      return fail (t, where, "\"%s\" is defined already, and %s", part,
                   is_header ? "no table" : "not by such keys"),
             NULL;
    if (kind == TABLES)
      next = next->child->prev; /* the last */
    table = next ? next : new_table (t, table, part, is_header ? IMPLICIT : DOTTED);
  }
  return table;
}

static bool
read_pair (Toml *t, cJSON *table, guint depth)
{
  skip_blanks (t);
  const char *where = t->at;
  g_autoptr (GPtrArray) parts = read_key (t, depth);
  if (!parts)
    return false;
  if (*t->at != '=')
    return fail (t, t->at, "expected '=' after a key");
  t->at++;
  cJSON *target = descend (t, table, parts, where, false);
  const char *key = parts->pdata[parts->len - 1];
  if (!target)
    return false;
  if (find (t, target, key))
    return fail (t, where, "\"%s\" is defined already", key);
  skip_blanks (t);
  cJSON *value = read_value (t, depth + parts->len);
  if (!value)
    return false;
  close_tables (value);
  add (t, target, key, value);
  return true;
}

/* --- sections -------------------------------------------------------------------------------------- */

/* "[a.b]" */
static cJSON *
open_table (Toml *t, cJSON *parent, const char *key, const char *where)
{
  cJSON *item = find (t, parent, key);
  if (!item)
    return new_table (t, parent, key, HEADER);
  if (kind_of (item) != IMPLICIT)
    return fail (t, where, "\"%s\" is defined already", key), NULL;
  set_kind (item, HEADER);
  return item;
}

/* "[[a.b]]" */
static cJSON *
open_item (Toml *t, cJSON *parent, const char *key, const char *where)
{
  cJSON *array = find (t, parent, key);
  if (array && kind_of (array) != TABLES)
    return fail (t, where, "\"%s\" is defined already, and no array of tables", key), NULL;
  if (!array) {
    array = add (t, parent, key, count (t, cJSON_CreateArray ()));
    if (!array)
      return NULL;
    set_kind (array, TABLES);
  }
  cJSON *item = count (t, cJSON_CreateObject ());
  if (item) {
    cJSON_AddItemToArray (array, item);
    set_kind (item, HEADER);
  } else if (!array->child)
    set_kind (array, CLOSED);
  return item;
}

/* The table that the lines below belong to. */
static cJSON *
read_header (Toml *t, cJSON *root)
{
  bool is_item = t->at[1] == '[';
  t->at += is_item ? 2 : 1;
  const char *where = t->at;
  g_autoptr (GPtrArray) parts = read_key (t, is_item ? 1 : 0);
  if (!parts)
    return NULL;
  if (t->at[0] != ']' || (is_item && t->at[1] != ']'))
    return fail (t, t->at, is_item ? "expected ']]'" : "expected ']'"), NULL;
  t->at += is_item ? 2 : 1;
  cJSON *parent = descend (t, root, parts, where, true);
  const char *key = parts->pdata[parts->len - 1];
  cJSON *table = !parent ? NULL
      : is_item          ? open_item (t, parent, key, where)
                         : open_table (t, parent, key, where);
  return table && end_line (t) ? table : NULL;
}

static bool
read_text (Toml *t, cJSON *root)
{
  cJSON *table = root;
  while (skip_lines (t) && *t->at) {
    if (*t->at == '[')
      table = read_header (t, root);
    else if (!read_pair (t, table, 1) || !end_line (t))
      return false;
    if (!table)
      return false;
  }
  return t->why == NULL;
}

/* --- the whole ------------------------------------------------------------------------------------- */

cJSON *
ls_toml_parse (const char *text, size_t n, const char *name, LsDiagList *diags)
{
  g_autofree char *copy = g_strndup (text, n);
  if (!ls_text_check (copy, n, name, "TOML", diags))
    return NULL;
  g_autoptr (GRegex) regex = g_regex_new (numbers, G_REGEX_RAW | G_REGEX_ANCHORED, 0, NULL);
  g_autoptr (GHashTable) items = g_hash_table_new_full (place_hash, place_equal, g_free, NULL);
  Toml t = { .text = copy, .at = copy, .numbers = regex, .items = items };
  cJSON *root = cJSON_CreateObject ();
  set_kind (root, HEADER);
  bool ok = read_text (&t, root);
  if (ok)
    return root;
  ls_text_diag (LS_ERROR_INPUT, name, copy, t.fault, diags, NULL, NULL, t.why);
  g_free (t.why);
  cJSON_Delete (root);
  return NULL;
}
