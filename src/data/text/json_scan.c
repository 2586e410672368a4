#include "data/text/json_scan.h"

#include <glib.h>
#include <string.h>

/* JSON as people write it by hand: with comments, commas behind the last item, and words where a
 * script puts values. */

typedef struct {
  const char *at, *end;
  GString *out;
} Relax;

/* A string with its quotes, as it is. */
static void
copy_string (Relax *r)
{
  const char *start = r->at++;
  while (r->at < r->end && *r->at != '"' && *r->at != '\n')
    r->at += *r->at == '\\' && r->at + 1 < r->end ? 2 : 1;
  r->at = MIN (r->end, r->at + 1);
  g_string_append_len (r->out, start, r->at - start);
}

/* Whether a comment was here: its lines stay. */
static bool
skip_comment (Relax *r)
{
  gsize left = (gsize) (r->end - r->at);
  bool is_block = left > 1 && r->at[0] == '/' && r->at[1] == '*',
       is_line = *r->at == '#' || (left > 1 && r->at[0] == '/' && r->at[1] == '/');
  const char *end = is_block ? g_strstr_len (r->at, (gssize) left, "*/")
      : is_line              ? memchr (r->at, '\n', left)
                             : NULL;
  if (!is_block && !is_line)
    return false;
  end = !end ? r->end : is_block ? end + 2 : end;
  for (; r->at < end; r->at++)
    if (*r->at == '\n')
      g_string_append_c (r->out, '\n');
  return true;
}

/* A comma with only blanks and comments behind it up to the end of its list. */
static void
copy_comma (Relax *r)
{
  gsize where = r->out->len;
  g_string_append_c (r->out, ',');
  r->at++;
  while (r->at < r->end && (g_ascii_isspace (*r->at) || skip_comment (r)))
    if (r->at < r->end && g_ascii_isspace (*r->at))
      g_string_append_c (r->out, *r->at++);
  if (r->at < r->end && (*r->at == ']' || *r->at == '}'))
    r->out->str[where] = ' ';
}

static bool
is_word (char c)
{
  return g_ascii_isalnum (c) || strchr ("_$<>", c);
}

/* true, false and null stay; other words are what a script puts in. */
static void
copy_word (Relax *r)
{
  static const char *const plain[] = { "true", "false", "null", NULL };
  const char *start = r->at;
  bool has_braces = r->at + 1 < r->end && r->at[0] == '$' && r->at[1] == '{';
  while (r->at < r->end && (has_braces ? *r->at != '}' && *r->at != '\n' : is_word (*r->at)))
    r->at++;
  r->at += has_braces && r->at < r->end;
  g_autofree char *word = g_strndup (start, (gsize) (r->at - start));
  if (g_strv_contains (plain, word)) {
    g_string_append (r->out, word);
    return;
  }
  g_strdelimit (word, "\"\\", '_');
  const char *name = word + strspn (word, "${");
  g_string_append_printf (r->out, "\"${%.*s}\"", (int) strcspn (name, "}"), name);
}

static void
relax (Relax *r)
{
  while (r->at < r->end) {
    if (*r->at == '"')
      copy_string (r);
    else if (*r->at == ',')
      copy_comma (r);
    else if (g_ascii_isalpha (*r->at) || (*r->at != '\0' && strchr ("_$<", *r->at)))
      copy_word (r);
    else if (g_ascii_isdigit (*r->at) || *r->at == '-') /* "1e-5" */
      while (r->at < r->end && (g_ascii_isalnum (*r->at) || strchr ("+-.", *r->at)) && *r->at)
        g_string_append_c (r->out, *r->at++);
    else if (!skip_comment (r))
      g_string_append_c (r->out, *r->at++);
  }
}

LsJsonDoc *
relaxed_json_parse (const char *text, gsize n, const char *name, LsDiagList *diags)
{
  Relax r = { text, text + n, g_string_sized_new (n + 64) };
  relax (&r);
  LsJsonDoc *doc = ls_json_doc_parse (r.out->str, r.out->len, name, diags);
  g_string_free (r.out, TRUE);
  return doc;
}

void
ls_json_blank_infinities (char *text)
{
  static const char word[] = "Infinity", blank[] = "null";
  bool is_string = false;
  for (char *p = strstr (text, word) ? text : text + strlen (text); *p; p++) {
    if (is_string && *p == '\\' && p[1])
      p++;
    else if (*p == '"')
      is_string = !is_string;
    else if (!is_string && strncmp (p, word, sizeof word - 1) == 0) {
      char *from = p > text && p[-1] == '-' ? p - 1 : p;
      memset (from, ' ', (gsize) (p - from) + sizeof word - 1);
      memcpy (from, blank, 4);
      p += sizeof word - 2;
    }
  }
}

/* --- is this text JSON (RFC 8259)? Strict, iterative, and exact about where and why not ---------- */

typedef struct {
  const char *text;
  const char *at;
  int depth;
  char closer[LS_JSON_MAX_DEPTH]; /* what closes each open container */
  LsJsonFault *fault;
} Scan;

static bool
fail_at (Scan *s, const char *where, const char *hint, char *message)
{
  s->fault->offset = (size_t) (where - s->text);
  s->fault->message = message;
  s->fault->hint = hint;
  return false;
}

static const char *
hint_for (char found)
{
  switch (found) {
  case '/':
  case '#':
    return "JSON has no comments; a key that starts with \"x-\" can hold one";
  case '\'':
    return "strings are written in double quotes";
  case '}':
  case ']':
    return "JSON allows no comma after the last element";
  default:
    return NULL;
  }
}

static bool
unexpected (Scan *s, const char *expected)
{
  if (*s->at == '\0')
    return fail_at (s, s->at, NULL, g_strdup_printf ("unexpected end of the file; expected %s", expected));
  gunichar c = g_utf8_get_char (s->at);
  char shown[8] = { 0 };
  g_unichar_to_utf8 (c, shown);
  const char *hint
      = strcmp (expected, "a value") == 0 || strcmp (expected, "a key") == 0 ? hint_for (*s->at) : NULL;
  if (!g_unichar_isprint (c))
    return fail_at (s, s->at, hint, g_strdup_printf ("unexpected U+%04X; expected %s", c, expected));
  return fail_at (s, s->at, hint, g_strdup_printf ("unexpected '%s'; expected %s", shown, expected));
}

static void
skip_blanks (Scan *s)
{
  s->at += strspn (s->at, " \t\r\n");
}

/* The four digits after \u, or -1. */
static int
hex4 (const char *p)
{
  int value = 0;
  for (int i = 0; i < 4; i++) {
    if (!g_ascii_isxdigit (p[i]))
      return -1;
    value = 16 * value + g_ascii_xdigit_value (p[i]);
  }
  return value;
}

/* At a backslash. */
static bool
scan_escape (Scan *s)
{
  const char *start = s->at++;
  if (*s->at != 'u') {
    if (*s->at == '\0' || !strchr ("\"\\/bfnrt", *s->at))
      return fail_at (s, start, "write \\\\ for a backslash", g_strdup ("not an escape that JSON knows"));
    s->at++;
    return true;
  }
  int unit = hex4 (++s->at);
  if (unit < 0)
    return fail_at (s, start, NULL, g_strdup ("expected four hexadecimal digits after \\u"));
  s->at += 4;
  if (unit == 0)
    return fail_at (s, start, NULL, g_strdup ("the character U+0000 is not allowed in a string"));
  if (unit >= 0xd800 && unit < 0xdc00) {
    int low = s->at[0] == '\\' && s->at[1] == 'u' ? hex4 (s->at + 2) : -1;
    if (low < 0xdc00 || low > 0xdfff)
      return fail_at (s, start, NULL, g_strdup ("half of a surrogate pair"));
    s->at += 6;
  } else if (unit >= 0xdc00 && unit <= 0xdfff) {
    return fail_at (s, start, NULL, g_strdup ("half of a surrogate pair"));
  }
  return true;
}

/* At a double quote. */
static bool
scan_string (Scan *s)
{
  const char *start = s->at++;
  while (*s->at != '"') {
    unsigned char c = (unsigned char) *s->at;
    if (c == '\0' || c == '\n')
      return fail_at (s, start, NULL, g_strdup ("a string that is not closed on its line"));
    if (c < 0x20)
      return fail_at (s, s->at, "write it as an escape such as \\t",
                      g_strdup_printf ("the control character U+%04X is not allowed in a string", c));
    if (c != '\\')
      s->at++;
    else if (!scan_escape (s))
      return false;
  }
  s->at++;
  return true;
}

static bool
scan_digits (Scan *s)
{
  if (!g_ascii_isdigit (*s->at))
    return unexpected (s, "a digit");
  while (g_ascii_isdigit (*s->at))
    s->at++;
  return true;
}

/* At a minus sign or a digit. */
static bool
scan_number (Scan *s)
{
  if (*s->at == '-')
    s->at++;
  const char *integer = s->at;
  if (!scan_digits (s))
    return false;
  if (*integer == '0' && s->at > integer + 1)
    return fail_at (s, integer, NULL, g_strdup ("a number may not start with 0"));
  if (*s->at == '.') {
    s->at++;
    if (!scan_digits (s))
      return false;
  }
  if (*s->at == 'e' || *s->at == 'E') {
    s->at++;
    if (*s->at == '+' || *s->at == '-')
      s->at++;
    if (!scan_digits (s))
      return false;
  }
  return true;
}

static bool
scan_word (Scan *s)
{
  static const char *const words[] = { "true", "false", "null" };
  for (size_t i = 0; i < G_N_ELEMENTS (words); i++)
    if (g_str_has_prefix (s->at, words[i])) {
      s->at += strlen (words[i]);
      return true;
    }
  return unexpected (s, "a value");
}

static bool
open_container (Scan *s)
{
  if (s->depth == LS_JSON_MAX_DEPTH)
    return fail_at (s, s->at, NULL, g_strdup_printf ("nested deeper than %d levels", LS_JSON_MAX_DEPTH));
  s->closer[s->depth++] = *s->at++ == '{' ? '}' : ']';
  return true;
}

/* A key and its colon, if what is open is an object. */
static bool
scan_key (Scan *s)
{
  if (s->closer[s->depth - 1] == ']')
    return true;
  skip_blanks (s);
  if (*s->at != '"')
    return unexpected (s, "a key");
  if (!scan_string (s))
    return false;
  skip_blanks (s);
  if (*s->at != ':')
    return unexpected (s, "':' after the key");
  s->at++;
  return true;
}

static bool
at_closer (Scan *s)
{
  skip_blanks (s);
  return s->depth > 0 && *s->at == s->closer[s->depth - 1];
}

/* One value without what is inside a container; *ret_opened if that comes next. */
static bool
scan_value (Scan *s, bool *ret_opened)
{
  *ret_opened = false;
  skip_blanks (s);
  switch (*s->at) {
  case '{':
  case '[':
    if (!open_container (s))
      return false;
    *ret_opened = !at_closer (s);
    return true;
  case '"':
    return scan_string (s);
  case '-':
  case '0' ... '9':
    return scan_number (s);
  default:
    return scan_word (s);
  }
}

/* After a value: closes what ends here, then steps over a comma. */
static bool
scan_separator (Scan *s)
{
  while (at_closer (s)) {
    s->depth--;
    s->at++;
  }
  if (s->depth == 0)
    return true;
  if (*s->at != ',')
    return unexpected (s, s->closer[s->depth - 1] == '}' ? "',' or '}'" : "',' or ']'");
  s->at++;
  return true;
}

bool
ls_json_scan (const char *text, LsJsonFault *reterr_fault)
{
  Scan s = { .text = text, .at = text, .fault = reterr_fault };
  do {
    bool opened;
    if ((s.depth > 0 && !scan_key (&s)) || !scan_value (&s, &opened))
      return false;
    if (!opened && !scan_separator (&s))
      return false;
  } while (s.depth > 0);
  return *s.at == '\0' || unexpected (&s, "the end of the file");
}
