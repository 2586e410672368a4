#include "data/text/json_pull.h"

#include <stdarg.h>
#include <string.h>

#include "base/printable.h"
#include "data/text/json_scan.h"

#define PIECE 65536

/* What may come next. */
typedef enum { AT_VALUE, AT_FIRST_VALUE, AT_KEY, AT_FIRST_KEY, AT_SEPARATOR, AT_END, AT_FAULT } State;

struct LsJsonPull {
  LsInput *input;
  char *name;
  unsigned char piece[PIECE];
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
  LsJsonPull *p = g_new0 (LsJsonPull, 1);
  p->input = input;
  p->name = g_strdup (name);
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

static int
peek (LsJsonPull *p)
{
  if (p->at == p->n) {
    p->at = 0;
    p->n = ls_input_read (p->input, p->piece, PIECE);
    if (p->n == 0)
      return NOTHING;
  }
  return p->piece[p->at];
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

static void
skip_blanks (LsJsonPull *p)
{
  for (int c = peek (p); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = peek (p))
    step (p);
  p->start = (LsJsonWhere) { p->line, p->col };
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

static LsJsonWhere
here (const LsJsonPull *p)
{
  return (LsJsonWhere) { p->line, p->col };
}

#define CUT_OFF "the file was cut off: was the profiler still writing it, or the disk full?"

/* The end of the bytes counts as the end of the text, unless they ended in trouble. */
static LsJsonToken
unexpected (LsJsonPull *p, const char *expected)
{
  int c = peek (p);
  const char *trouble = ls_input_trouble (p->input);
  if (c == NOTHING && trouble)
    return fail (p, here (p), NULL, "%s", trouble);
  if (c == NOTHING)
    return fail (p, here (p), CUT_OFF, "unexpected end of the file; expected %s", expected);
  const char *hint = (c == ',' || c == '}') && strcmp (expected, "a value") == 0
      ? "some versions of PyTorch write a key without a value for an empty description; put \"\" there"
      : NULL;
  if (c < 0x20 || c >= 0x7f)
    return fail (p, here (p), hint, "unexpected byte 0x%02x; expected %s", (unsigned) c, expected);
  return fail (p, here (p), hint, "unexpected '%c'; expected %s", c, expected);
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

/* Behind \u. Halves of surrogate pairs become U+FFFD, whether the other one is there or not:
 * names of kernels are for people. */
static bool
read_unicode (LsJsonPull *p)
{
  int unit = read_hex (p);
  if (unit < 0)
    return false;
  gunichar c = (gunichar) unit;
  if (unit >= 0xd800 && unit < 0xe000)
    c = 0xfffd;
  if (c == 0)
    c = 0xfffd;
  if (!p->is_skipping)
    g_string_append_unichar (p->text, c);
  return true;
}

static bool
read_escape (LsJsonPull *p)
{
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  int c = peek (p);
  if (c == 'u') {
    step (p);
    return read_unicode (p);
  }
  const char *place = c == NOTHING || c == 0 ? NULL : strchr (from, c);
  if (!place)
    return false;
  keep (p, to[place - from]);
  step (p);
  return true;
}

/* At a double quote. */
static bool
read_string (LsJsonPull *p)
{
  LsJsonWhere quote = here (p);
  step (p);
  for (;;) {
    int c = peek (p);
    if (c == NOTHING && !ls_input_trouble (p->input))
      return fail (p, quote, CUT_OFF, "a string that is not closed"), false;
    if (c == NOTHING || c < 0x20)
      return unexpected (p, "the rest of a string"), false;
    if (c == '"')
      break;
    LsJsonWhere where = here (p);
    step (p);
    if (c != '\\')
      keep (p, (char) c);
    else if (!read_escape (p))
      return fail (p, where, "write \\\\ for a backslash", "not an escape that JSON knows"), false;
    if (p->text->len > LS_JSON_PULL_MAX_TEXT)
      return fail (p, quote, NULL, "a string of more than %d MiB", (int) (LS_JSON_PULL_MAX_TEXT >> 20)),
             false;
  }
  step (p);
  return true;
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

static LsJsonToken
read_word (LsJsonPull *p)
{
  static const char *const words[] = { "true", "false", "null" };
  int first = peek (p);
  for (size_t i = 0; i < G_N_ELEMENTS (words); i++) {
    if (first != words[i][0])
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
  return c == '-' || (c != NOTHING && g_ascii_isdigit ((char) c)) ? read_number (p) : read_word (p);
}

static LsJsonToken
read_key (LsJsonPull *p)
{
  if (peek (p) != '"')
    return unexpected (p, "a key");
  if (!read_string (p))
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

/* A comma, which is no token, or what closes the container. */
static bool
pass_comma (LsJsonPull *p)
{
  bool is_object = p->closer[p->depth - 1] == '}';
  if (peek (p) != ',')
    return unexpected (p, is_object ? "',' or '}'" : "',' or ']'"), false;
  step (p);
  skip_blanks (p);
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
    return peek (p) == NOTHING && !ls_input_trouble (p->input) ? LS_TOKEN_END
                                                               : unexpected (p, "the end of the file");
  bool may_close = p->state == AT_SEPARATOR || p->state == AT_FIRST_KEY || p->state == AT_FIRST_VALUE;
  if (may_close && peek (p) == p->closer[p->depth - 1])
    return close_container (p);
  if (p->state == AT_SEPARATOR && !pass_comma (p))
    return LS_TOKEN_BAD;
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
