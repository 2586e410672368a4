#include "data/text/json_pull.h"

#include <stdarg.h>
#include <string.h>

#include "base/printable.h"

#define PIECE 65536

/* What may come next. */
typedef enum { AT_VALUE, AT_FIRST_VALUE, AT_KEY, AT_FIRST_KEY, AT_SEPARATOR, AT_END, AT_FAULT } State;

struct LsJsonPull {
  LsJsonDialect dialect;
  LsInput *input; /* NULL: a text in memory, which is in the piece as a whole, with a NUL behind it */
  char *name;
  const unsigned char *piece;
  unsigned char *buffer; /* for pieces of the input */
  size_t n, at;
  int line, col; /* of piece[at] */
  LsJsonWhere start;
  State state;
  int depth;
  char closer[LS_JSON_MAX_DEPTH];
  bool is_skipping; /* text is not kept */
  GString *text;
  char *fault;
  const char *hint; /* static */
  LsJsonWhere fault_at;
};

LsJsonPull *
ls_json_pull_new (LsInput *input, const char *name)
{
  LsJsonPull *p = ls_json_pull_of_text ("", LS_JSON_STRICT);
  p->input = input;
  p->piece = p->buffer = g_malloc (PIECE);
  p->name = g_strdup (name);
  return p;
}

LsJsonPull *
ls_json_pull_of_text (const char *text, LsJsonDialect dialect)
{
  LsJsonPull *p = g_new0 (LsJsonPull, 1);
  p->dialect = dialect;
  p->piece = (const unsigned char *) text;
  p->n = strlen (text);
  p->text = g_string_new (NULL);
  p->line = p->col = 1;
  return p;
}

void
ls_json_pull_free (LsJsonPull *p)
{
  if (!p)
    return;
  ls_input_free (p->input);
  g_free (p->name);
  g_free (p->buffer);
  g_string_free (p->text, TRUE);
  g_free (p->fault);
  g_free (p);
}

LsJsonWhere
ls_json_pull_where (const LsJsonPull *p)
{
  return p->start;
}

/* ---- bytes ---- */

#define NOTHING (-1)

static bool
refill (LsJsonPull *p)
{
  if (!p->input)
    return false;
  p->at = 0;
  p->n = ls_input_read (p->input, p->buffer, PIECE);
  return p->n > 0;
}

static int
peek (LsJsonPull *p)
{
  return p->at < p->n || refill (p) ? p->piece[p->at] : NOTHING;
}

/* Columns count code points: bytes that continue one do not. */
static void
step (LsJsonPull *p)
{
  unsigned char c = p->piece[p->at++];
  if (c == '\n') {
    p->line++;
    p->col = 1;
  } else if ((c & 0xc0) != 0x80) {
    p->col++;
  }
}

static LsJsonWhere
here (const LsJsonPull *p)
{
  return (LsJsonWhere) { p->line, p->col, p->at };
}

/* In a text. */
static const char *
rest (const LsJsonPull *p)
{
  return (const char *) p->piece + p->at;
}

static void
pass (LsJsonPull *p, size_t n)
{
  while (n-- > 0)
    step (p);
}

/* Whether a comment was here, which by hand may be. */
static bool
skip_comment (LsJsonPull *p)
{
  const char *at = p->dialect == LS_JSON_BY_HAND ? rest (p) : "";
  bool is_block = g_str_has_prefix (at, "/*");
  if (!is_block && *at != '#' && !g_str_has_prefix (at, "//"))
    return false;
  const char *end = is_block ? strstr (at, "*/") : strchr (at, '\n');
  pass (p, end ? (size_t) (end - at) + (is_block ? 2 : 0) : strlen (at));
  return true;
}

static void
skip_blanks (LsJsonPull *p)
{
  for (int c = peek (p); c == ' ' || c == '\n' || c == '\t' || c == '\r' || skip_comment (p); c = peek (p))
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
      step (p);
  p->start = here (p);
}

/* ---- faults ---- */

static LsJsonToken G_GNUC_PRINTF (4, 5)
    fail (LsJsonPull *p, LsJsonWhere where, const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  p->fault = g_strdup_vprintf (format, args);
  va_end (args);
  p->fault_at = where;
  p->hint = hint;
  p->state = AT_FAULT;
  return LS_TOKEN_BAD;
}

#define CUT_OFF "the file was cut off: was the profiler still writing it, or the disk full?"

/* Why there is nothing more; NULL: it is the end. */
static const char *
trouble (const LsJsonPull *p)
{
  return p->input ? ls_input_trouble (p->input) : NULL;
}

static const char *
hint_for (const LsJsonPull *p, int found, const char *expected)
{
  bool is_value = strcmp (expected, "a value") == 0;
  if (p->input)
    return is_value && (found == ',' || found == '}')
        ? "some versions of PyTorch write a key without a value for an empty description; put \"\" there"
        : NULL;
  if (!is_value && strcmp (expected, "a key") != 0)
    return NULL;
  return found == '/' || found == '#' ? "JSON has no comments; a key that starts with \"x-\" can hold one"
      : found == '\''                 ? "strings are written in double quotes"
      : found == '}' || found == ']'  ? "JSON allows no comma after the last element"
                                      : NULL;
}

/* What stands here: of a text, which is UTF-8, a character; of a file, which may be anything, a byte. */
static char *
shown_here (const LsJsonPull *p)
{
  const unsigned char *at = p->piece + p->at;
  if (p->input)
    return g_strdup_printf (*at < 0x20 || *at >= 0x7f ? "byte 0x%02x" : "'%c'", *at);
  gunichar c = g_utf8_get_char ((const char *) at);
  return g_unichar_isprint (c) ? g_strdup_printf ("'%.*s'", g_utf8_skip[*at], at)
                               : g_strdup_printf ("U+%04X", c);
}

/* The end of the bytes counts as the end of the text, unless they ended in trouble. */
static LsJsonToken
unexpected (LsJsonPull *p, const char *expected)
{
  int c = peek (p);
  if (c == NOTHING && trouble (p))
    return fail (p, here (p), NULL, "%s", trouble (p));
  if (c == NOTHING)
    return fail (p, here (p), p->input ? CUT_OFF : NULL, "unexpected end of the file; expected %s", expected);
  g_autofree char *shown = shown_here (p);
  return fail (p, here (p), hint_for (p, c, expected), "unexpected %s; expected %s", shown, expected);
}

/* ---- scalars ---- */

static void
keep (LsJsonPull *p, char c)
{
  if (!p->is_skipping)
    g_string_append_c (p->text, c);
}

/* The four digits after \u, or -1. */
static int
read_hex (LsJsonPull *p)
{
  int value = 0;
  for (int i = 0; i < 4; i++) {
    int c = peek (p);
    if (c == NOTHING || !g_ascii_isxdigit ((char) c))
      return -1;
    value = 16 * value + g_ascii_xdigit_value ((char) c);
    step (p);
  }
  return value;
}

/* The other half of a surrogate pair. */
static bool
take_low (LsJsonPull *p)
{
  static const char begin[] = "\\u";
  for (const char *c = begin; *c; c++) {
    if (peek (p) != *c)
      return false;
    step (p);
  }
  int low = read_hex (p);
  return low >= 0xdc00 && low <= 0xdfff;
}

static const char unknown_escape[] = "not an escape that JSON knows";

/* Behind \u; what is wrong, NULL: nothing. In a file, where names of kernels are for people, halves of
 * surrogate pairs become U+FFFD, whether the other one is there or not. */
static const char *
read_unicode (LsJsonPull *p)
{
  int unit = read_hex (p);
  bool is_half = unit >= 0xd800 && unit < 0xe000;
  if (unit < 0)
    return p->input ? unknown_escape : "expected four hexadecimal digits after \\u";
  if (!p->input && unit == 0)
    return "the character U+0000 is not allowed in a string";
  if (!p->input && is_half && !(unit < 0xdc00 && take_low (p)))
    return "half of a surrogate pair";
  if (!p->is_skipping)
    g_string_append_unichar (p->text, is_half || unit == 0 ? 0xfffd : (gunichar) unit);
  return NULL;
}

/* Behind a backslash; the same. */
static const char *
read_escape (LsJsonPull *p)
{
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  int c = peek (p);
  const char *place = c == NOTHING || c == 0 ? NULL : strchr (from, c);
  if (!place && c != 'u')
    return unknown_escape;
  step (p);
  if (!place)
    return read_unicode (p);
  keep (p, to[place - from]);
  return NULL;
}

/* What stands for itself. */
static void
take_plain (LsJsonPull *p)
{
  const unsigned char *c, *end;
  do {
    if (peek (p) == NOTHING)
      return;
    const unsigned char *from = c = p->piece + p->at;
    end = p->piece + p->n;
    for (; c < end && *c >= 0x20 && *c != '"' && *c != '\\'; c++)
      p->col += (*c & 0xc0) != 0x80;
    if (!p->is_skipping)
      g_string_append_len (p->text, (const char *) from, c - from);
    p->at = (size_t) (c - p->piece);
  } while (c == end && p->text->len <= LS_JSON_PULL_MAX_TEXT);
}

/* At what no string may hold. */
static bool
refuse_string (LsJsonPull *p, LsJsonWhere quote)
{
  int c = peek (p);
  if (!p->input && (c == NOTHING || c == '\n'))
    fail (p, quote, NULL, "a string that is not closed on its line");
  else if (!p->input)
    fail (p, here (p), "write it as an escape such as \\t",
          "the control character U+%04X is not allowed in a string", (unsigned) c);
  else if (c == NOTHING && !trouble (p))
    fail (p, quote, CUT_OFF, "a string that is not closed");
  else
    unexpected (p, "the rest of a string");
  return false;
}

/* At a double quote. */
static bool
read_string (LsJsonPull *p)
{
  LsJsonWhere quote = here (p);
  for (step (p);;) {
    take_plain (p);
    if (p->text->len > LS_JSON_PULL_MAX_TEXT)
      return fail (p, quote, NULL, "a string of more than %d MiB", (int) (LS_JSON_PULL_MAX_TEXT >> 20)),
             false;
    LsJsonWhere where = here (p);
    int c = peek (p);
    if (c != '"' && c != '\\')
      return refuse_string (p, quote);
    step (p);
    if (c == '"')
      return true;
    const char *wrong = read_escape (p);
    if (wrong)
      return fail (p, where, wrong == unknown_escape ? "write \\\\ for a backslash" : NULL, "%s", wrong),
             false;
  }
}

static bool
read_digits (LsJsonPull *p)
{
  int c = peek (p);
  if (c == NOTHING || !g_ascii_isdigit ((char) c))
    return unexpected (p, "a digit"), false;
  for (; c != NOTHING && g_ascii_isdigit ((char) c) && p->text->len < LS_JSON_PULL_MAX_TEXT; c = peek (p)) {
    keep (p, (char) c);
    step (p);
  }
  return true;
}

/* One of two characters, if it is there. */
static bool
accept (LsJsonPull *p, int a, int b)
{
  int c = peek (p);
  if (c != a && c != b)
    return false;
  keep (p, (char) c);
  step (p);
  return true;
}

static LsJsonToken
read_number (LsJsonPull *p)
{
  accept (p, '-', '-');
  LsJsonWhere digits = here (p);
  bool has_zero = peek (p) == '0';
  if (!read_digits (p))
    return LS_TOKEN_BAD;
  if (has_zero && p->col > digits.col + 1)
    return fail (p, digits, NULL, "a number may not start with 0");
  if (accept (p, '.', '.') && !read_digits (p))
    return LS_TOKEN_BAD;
  if (accept (p, 'e', 'E')) {
    accept (p, '+', '-');
    if (!read_digits (p))
      return LS_TOKEN_BAD;
  }
  return LS_TOKEN_NUMBER;
}

static const char *const words[] = { "true", "false", "null", NULL };

static LsJsonToken
read_word (LsJsonPull *p)
{
  int first = peek (p);
  for (size_t i = 0; words[i]; i++) {
    bool is_here = p->input ? first == words[i][0] : g_str_has_prefix (rest (p), words[i]);
    if (!is_here)
      continue;
    for (const char *c = words[i]; *c; c++) {
      if (peek (p) != *c)
        return unexpected (p, "a value");
      keep (p, *c);
      step (p);
    }
    return LS_TOKEN_WORD;
  }
  return unexpected (p, "a value");
}

/* Of Python. */
static bool
take_infinity (LsJsonPull *p)
{
  static const char word[] = "Infinity";
  const size_t sign = *rest (p) == '-';
  if (!g_str_has_prefix (rest (p) + sign, word))
    return false;
  pass (p, sign + strlen (word));
  g_string_append (p->text, "null");
  return true;
}

/* A word without quotes: true, false, null, or what a script puts a value in place of. */
static LsJsonToken
read_bare (LsJsonPull *p)
{
  const char *at = rest (p);
  const size_t n_braces = g_str_has_prefix (at, "${") ? strcspn (at, "}\n") : 0;
  const size_t n = n_braces > 0 ? n_braces + (at[n_braces] == '}')
                                : strspn (at, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_$<>");
  g_autofree char *word = g_strdelimit (g_strndup (at, n), "\"\\", '_');
  const char *name = word + strspn (word, "${");
  bool is_plain = g_strv_contains (words, word);
  pass (p, n);
  g_string_append_printf (p->text, is_plain ? "%.*s" : "${%.*s}", (int) strcspn (name, "}"), name);
  return is_plain ? LS_TOKEN_WORD : LS_TOKEN_STRING;
}

static bool
is_bare (const LsJsonPull *p, int c)
{
  return p->dialect == LS_JSON_BY_HAND && c > 0 && (g_ascii_isalpha (c) || strchr ("_$<", c));
}

/* ---- structure ---- */

static LsJsonToken
close_container (LsJsonPull *p)
{
  char closer = p->closer[--p->depth];
  step (p);
  p->state = p->depth > 0 ? AT_SEPARATOR : AT_END;
  return closer == '}' ? LS_TOKEN_OBJECT_END : LS_TOKEN_ARRAY_END;
}

static LsJsonToken
read_value (LsJsonPull *p)
{
  int c = peek (p);
  if (c == '{' || c == '[') {
    if (p->depth == LS_JSON_MAX_DEPTH)
      return fail (p, here (p), NULL, "nested deeper than %d levels", LS_JSON_MAX_DEPTH);
    p->closer[p->depth++] = c == '{' ? '}' : ']';
    step (p);
    p->state = c == '{' ? AT_FIRST_KEY : AT_FIRST_VALUE;
    return c == '{' ? LS_TOKEN_OBJECT : LS_TOKEN_ARRAY;
  }
  p->state = p->depth > 0 ? AT_SEPARATOR : AT_END;
  if (c == '"')
    return read_string (p) ? LS_TOKEN_STRING : LS_TOKEN_BAD;
  if (is_bare (p, c))
    return read_bare (p);
  if (p->dialect == LS_JSON_PYTHON && take_infinity (p))
    return LS_TOKEN_WORD;
  return c == '-' || (c != NOTHING && g_ascii_isdigit ((char) c)) ? read_number (p) : read_word (p);
}

static LsJsonToken
read_key (LsJsonPull *p)
{
  bool is_word = is_bare (p, peek (p));
  if (!is_word && peek (p) != '"')
    return unexpected (p, "a key");
  if (is_word)
    read_bare (p);
  else if (!read_string (p))
    return LS_TOKEN_BAD;
  LsJsonWhere start = p->start;
  skip_blanks (p);
  p->start = start;
  if (peek (p) != ':')
    return unexpected (p, "':' after the key");
  step (p);
  p->state = AT_VALUE;
  return LS_TOKEN_KEY;
}

/* A comma, which is no token, or what closes the container; by hand, that may stand behind a comma too. */
static bool
pass_comma (LsJsonPull *p)
{
  bool is_object = p->closer[p->depth - 1] == '}';
  if (peek (p) != ',')
    return unexpected (p, is_object ? "',' or '}'" : "',' or ']'"), false;
  step (p);
  skip_blanks (p);
  if (p->dialect == LS_JSON_BY_HAND)
    p->state = is_object ? AT_FIRST_KEY : AT_FIRST_VALUE;
  else
    p->state = is_object ? AT_KEY : AT_VALUE;
  return true;
}

LsJsonToken
ls_json_pull_next (LsJsonPull *p)
{
  if (p->state == AT_FAULT)
    return LS_TOKEN_BAD;
  g_string_truncate (p->text, 0);
  skip_blanks (p);
  if (p->state == AT_END)
    return peek (p) == NOTHING && !trouble (p) ? LS_TOKEN_END : unexpected (p, "the end of the file");
  if (p->state == AT_SEPARATOR && peek (p) != p->closer[p->depth - 1] && !pass_comma (p))
    return LS_TOKEN_BAD;
  bool may_close = p->state == AT_SEPARATOR || p->state == AT_FIRST_KEY || p->state == AT_FIRST_VALUE;
  if (may_close && peek (p) == p->closer[p->depth - 1])
    return close_container (p);
  return p->state == AT_KEY || p->state == AT_FIRST_KEY ? read_key (p) : read_value (p);
}

bool
ls_json_pull_skip (LsJsonPull *p, LsJsonToken token)
{
  if (token != LS_TOKEN_OBJECT && token != LS_TOKEN_ARRAY)
    return token != LS_TOKEN_BAD;
  int depth = p->depth;
  p->is_skipping = true;
  while (p->depth >= depth && token != LS_TOKEN_BAD)
    token = ls_json_pull_next (p);
  p->is_skipping = false;
  return token != LS_TOKEN_BAD;
}

/* ---- telling ---- */

const char *
ls_json_pull_text (LsJsonPull *p)
{
  if (!g_utf8_validate (p->text->str, (gssize) p->text->len, NULL)) {
    g_autofree char *valid = g_utf8_make_valid (p->text->str, (gssize) p->text->len);
    g_string_assign (p->text, valid);
  }
  ls_make_printable (p->text->str);
  g_string_truncate (p->text, strlen (p->text->str));
  return p->text->str;
}

char *
ls_json_pull_describe (LsJsonPull *p, LsJsonToken token)
{
  g_autofree char *cut = g_strndup (ls_json_pull_text (p), 40);
  g_autofree char *valid = g_utf8_make_valid (cut, -1); /* the cut may go through a character */
  switch (token) {
  case LS_TOKEN_STRING:
    return g_strdup_printf ("\"%s\"", valid);
  case LS_TOKEN_NUMBER:
    return g_strdup_printf ("the number %s", valid);
  case LS_TOKEN_WORD:
    return g_strdup (p->text->str);
  case LS_TOKEN_ARRAY:
    return g_strdup ("an array");
  default:
    return g_strdup ("an object");
  }
}

void
ls_json_pull_diag (const LsJsonPull *p, LsJsonWhere where, LsDiagList *diags, const char *hint,
                   const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (diags, LS_ERROR_INPUT, p->name, where.line, where.col, NULL, NULL, hint, "%s", message);
}

void
ls_json_pull_complain (const LsJsonPull *p, LsDiagList *diags)
{
  ls_json_pull_diag (p, p->fault_at, diags, p->hint, "%s", p->fault ? p->fault : "no JSON");
}

size_t
ls_json_pull_behind (const LsJsonPull *p)
{
  return p->at;
}

LsJsonFault
ls_json_pull_fault (const LsJsonPull *p)
{
  return (LsJsonFault) { p->fault_at.offset, p->fault, p->hint };
}
