/* data/python/python_tokens.c — the words and marks of a file of Python, one by one. */
#include <string.h>

#include "data/python/python_parts.h"

gsize
python_text_prefix (const char *at)
{
  gsize n = strspn (at, "rRbBfFuU");
  return n <= 2 && (at[n] == '"' || at[n] == '\'') ? n : 0;
}

const PythonToken *
python_token (const PythonPlace *x)
{
  return &g_array_index (x->python->tokens, PythonToken, x->at);
}

bool
python_is (const PythonToken *t, const char *text)
{
  return (t->kind == PYTHON_MARK || t->kind == PYTHON_NAME) && strlen (text) == t->n
      && memcmp (t->at, text, t->n) == 0;
}

bool
python_take (PythonPlace *x, const char *text)
{
  bool is_there = python_is (python_token (x), text);
  x->at += is_there;
  return is_there;
}

char *
python_shown (const char *at, gsize n)
{
  char *shown = g_strndup (at, n);
  for (char *c = shown; *c; c++)
    *c = g_ascii_iscntrl (*c) || (*c & 0x80) ? ' ' : *c;
  return shown;
}

void
python_pass_to (PythonPlace *x, const char *end)
{
  guint depth = 0;
  for (; python_token (x)->kind != PYTHON_END && (depth > 0 || !python_is (python_token (x), end)); x->at++) {
    depth += python_is (python_token (x), "(") || python_is (python_token (x), "[")
        || python_is (python_token (x), "{");
    depth -= depth > 0
        && (python_is (python_token (x), ")") || python_is (python_token (x), "]")
            || python_is (python_token (x), "}"));
  }
}

bool
python_has_prefix (const PythonToken *t, char letter)
{
  gsize n = python_text_prefix (t->at);
  return memchr (t->at, letter, n) || memchr (t->at, g_ascii_toupper (letter), n);
}

gsize
python_text_quotes (const PythonToken *t)
{
  const char *p = t->at + python_text_prefix (t->at), *end = t->at + t->n;
  return end - p >= 6 && p[1] == *p && p[2] == *p ? 3 : 1;
}

/* "\\x41" and "\\u0041", which have so many digits behind their letter; 0: it is no such thing. */
static gsize
n_digits_of (char letter)
{
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

/* The letter of a number behind a backslash, "101", "x41"; *ret_n: how many bytes that takes. 0: it is
 * none. */
static gunichar
numbered_letter (const char *at, gsize n, gsize *ret_n)
{
  const gsize octal = MIN (strspn (at, "01234567"), MIN (n, 3)), hex = octal > 0 ? 0 : n_digits_of (*at);
  g_autofree char *digits = octal > 0 ? g_strndup (at, octal) : g_strndup (at + 1, MIN (hex, n - 1));
  bool is_number = octal > 0 || (hex > 0 && strspn (digits, "0123456789abcdefABCDEF") == hex);
  const gunichar letter = is_number ? (gunichar) g_ascii_strtoull (digits, NULL, octal > 0 ? 8 : 16) : 0;
  *ret_n = octal > 0 ? octal : 1 + hex;
  return g_unichar_validate (letter) ? letter : 0;
}

/* What stands behind a backslash, of n bytes, at least one; returns how many it takes. One that means nothing
 * stays as it is written. */
static gsize
append_escape (GString *out, const char *at, gsize n)
{
  static const char letters[] = "abfnrtv\\'\"", meant[] = "\a\b\f\n\r\t\v\\'\"";
  const char *letter = memchr (letters, *at, sizeof letters - 1);
  gsize taken;
  gunichar numbered = numbered_letter (at, n, &taken);
  if (numbered > 0) {
    g_string_append_unichar (out, numbered);
    return taken;
  }
  if (letter)
    g_string_append_c (out, meant[letter - letters]);
  else if (*at != '\n')
    g_string_append_c (out, '\\');
  return letter || *at == '\n';
}

void
python_append_part (GString *out, const PythonToken *t, const char *at, gsize n)
{
  bool is_raw = python_has_prefix (t, 'r');
  for (const char *end = at + n; at < end;) {
    gsize plain = is_raw ? (gsize) (end - at) : MIN (strcspn (at, "\\"), (gsize) (end - at));
    g_string_append_len (out, at, (gssize) plain);
    at += plain;
    if (end - at > 1)
      at += 1 + append_escape (out, at + 1, (gsize) (end - at) - 1);
    else
      at = end;
  }
}

void
python_append_text (GString *out, const PythonToken *t)
{
  gsize prefix = python_text_prefix (t->at), quotes = python_text_quotes (t);
  python_append_part (out, t, t->at + prefix + quotes, t->n - prefix - 2 * quotes);
}

/* --- from text to lines ------------------------------------------------------------------------------ */

/* Of a text that begins at `at`; 0: it does not end. */
static gsize
text_length (const char *at, const char *end)
{
  const char *p = at + python_text_prefix (at);
  char quote = *p;
  bool is_long = p + 2 < end && p[1] == quote && p[2] == quote;
  for (p += is_long ? 3 : 1; p < end; p++) {
    if (*p == '\\')
      p++;
    else if (!is_long && *p == '\n')
      return 0;
    else if (*p == quote && (!is_long || (p + 2 < end && p[1] == quote && p[2] == quote)))
      return (gsize) (p + (is_long ? 3 : 1) - at);
  }
  return 0;
}

static gsize
mark_length (const char *at)
{
  static const char *const marks[] = { "**=", "//=", "<<=", ">>=", "->", ":=", "+=", "-=", "*=", "/=", "%=",
                                       "|=",  "&=",  "^=",  "==",  "!=", "<=", ">=", "**", "//", "<<", ">>" };
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (g_str_has_prefix (at, marks[i]))
      return strlen (marks[i]);
  return 1;
}

static PythonToken
next_token (const char *at, const char *end, guint line)
{
  PythonToken t = { .kind = PYTHON_MARK, .at = at, .n = 1, .line = line };
  if (*at == '"' || *at == '\'' || python_text_prefix (at) > 0) {
    t.kind = PYTHON_TEXT;
    t.n = text_length (at, end);
  } else if (g_ascii_isdigit (*at) || (*at == '.' && g_ascii_isdigit (at[1]))) {
    t.kind = PYTHON_NUMBER;
    t.n = strspn (at, G_CSET_DIGITS G_CSET_A_2_Z G_CSET_a_2_z "_.");
    if ((at[t.n] == '-' || at[t.n] == '+') && (at[t.n - 1] == 'e' || at[t.n - 1] == 'E') && at[1] != 'x')
      t.n += 1 + strspn (at + t.n + 1, G_CSET_DIGITS "_");
  } else if (g_ascii_isalpha (*at) || *at == '_' || (*at & 0x80)) {
    t.kind = PYTHON_NAME;
    while (at + t.n < end && (g_ascii_isalnum (at[t.n]) || at[t.n] == '_' || (at[t.n] & 0x80)))
      t.n++;
  } else
    t.n = mark_length (at);
  return t;
}

static guint
n_newlines (const char *at, gsize n)
{
  guint lines = 0;
  for (gsize i = 0; i < n; i++)
    lines += at[i] == '\n';
  return lines;
}

static void
end_line (LsPython *p, PythonLine *line, guint number)
{
  if (p->tokens->len == line->first)
    return;
  const PythonToken end = { .kind = PYTHON_END, .at = "", .line = number };
  line->n = p->tokens->len - line->first;
  g_array_append_val (p->tokens, end);
  g_array_append_val (p->lines, *line);
}

/* --- what stands in f"{a}" ---------------------------------------------------------------------------- */

/* Whether an expression in a text ends here, "a}", "a:03d}", "a!r}", "a=}". */
static bool
ends_expression (const char *at)
{
  return strchr ("}:!=", *at) && !g_str_has_prefix (at, "!=") && !g_str_has_prefix (at, "==");
}

/* The words of an expression in a text, from behind "{" up to its end. Returns where that is; NULL: there is
 * none. */
static const char *
scan_expression (LsPython *p, const char *at, const char *end, guint line)
{
  const guint first = p->tokens->len;
  guint depth = 0;
  while (at < end && (depth > 0 || !ends_expression (at))) {
    if (g_ascii_isspace (*at)) {
      at++;
      continue;
    }
    PythonToken t = next_token (at, end, line);
    if (t.n == 0 || t.at + t.n > end)
      return NULL;
    depth += t.kind == PYTHON_MARK && strchr ("([{", *at) != NULL;
    depth -= t.kind == PYTHON_MARK && strchr (")]}", *at) != NULL && depth > 0;
    g_array_append_val (p->tokens, t);
    at += t.n;
  }
  if (p->tokens->len == first)
    return NULL;
  const PythonToken stop = { .kind = PYTHON_END, .at = "", .line = line };
  g_array_append_val (p->tokens, stop);
  return at < end ? at : NULL;
}

/* The expressions of a text, one behind the other, behind the words of its file. */
static void
scan_formatted (LsPython *p, guint i)
{
  const PythonToken t = g_array_index (p->tokens, PythonToken, i);
  const guint first = p->tokens->len;
  const char *end = t.at + t.n;
  bool ok = true;
  for (const char *at = t.at + python_text_prefix (t.at);
       ok && (at = memchr (at, '{', (gsize) (end - at)));) {
    bool is_brace = at[1] == '{';
    const char *stop = is_brace ? at + 1 : scan_expression (p, at + 1, end, t.line);
    for (guint depth = 1; stop && !is_brace && stop < end && depth > 0; stop++)
      depth += (*stop == '{') - (*stop == '}');
    ok = stop && stop < end;
    at = ok ? stop + is_brace : end;
  }
  g_array_index (p->tokens, PythonToken, i).inner = ok ? first : 0;
}

/* Whether what stands in a line behind ":" is a block of its own: "if a: b = 1". */
static bool
begins_block (const LsPython *p, const PythonLine *line)
{
  static const char *const words[] = { "if",     "elif",    "else",  "for", "while", "with", "try",
                                       "except", "finally", "class", "def", "async", NULL };
  return p->tokens->len > line->first && python_starts (p, line, words);
}

/* Adds what begins at `at` in a line to it. *depth: of brackets. Returns what is behind it; NULL:
 * python_fail() was called. */
static const char *
scan_token (LsPython *p, const char *at, const char *end, PythonLine *line, guint *number, guint *depth)
{
  PythonToken t = next_token (at, end, *number);
  if (t.n == 0)
    return python_fail (p, *number, "this text does not end"), NULL;
  bool is_mark = t.kind == PYTHON_MARK,
       is_block = is_mark && *depth == 0 && t.n == 1 && *at == ':' && begins_block (p, line);
  *depth += is_mark && strchr ("([{", *at) != NULL;
  *depth -= is_mark && strchr (")]}", *at) != NULL && *depth > 0;
  g_array_append_val (p->tokens, t);
  *number += n_newlines (at, t.n);
  at += t.n;
  const char *rest = at + strspn (at, " \t\r");
  if (!is_block || rest >= end || strchr ("#\n\\", *rest))
    return at;
  end_line (p, line, *number);
  *line = (PythonLine) { .first = p->tokens->len, .indent = line->indent + 1, .module = line->module };
  return rest;
}

bool
python_scan (LsPython *p, const char *text, gsize n)
{
  const guint first_token = p->tokens->len;
  const char *end = text + n;
  guint number = 1, depth = 0;
  PythonLine line = { .first = p->tokens->len, .module = p->modules->len - 1 };
  for (const char *at = text; at < end;) {
    bool is_next = *at == '\n';
    if (depth == 0 && (is_next || *at == ';')) {
      end_line (p, &line, number);
      line = (PythonLine) { .first = p->tokens->len,
                            .indent = is_next ? (guint) strspn (at + 1, " \t") : line.indent,
                            .module = line.module };
    }
    number += is_next;
    if (*at == '#')
      at += strcspn (at, "\n");
    else if (*at == '\\') { /* the line goes on */
      at += 1 + strspn (at + 1, " \t\r");
      number += at < end && *at == '\n';
      at += at < end && *at == '\n';
    } else if (strchr (" \t\r\n\f", *at) || (depth == 0 && *at == ';'))
      at++;
    else if (!(at = scan_token (p, at, end, &line, &number, &depth)))
      return false;
  }
  end_line (p, &line, number);
  for (guint i = first_token, all = p->tokens->len; i < all; i++) {
    const PythonToken *t = &g_array_index (p->tokens, PythonToken, i);
    if (t->kind == PYTHON_TEXT && python_has_prefix (t, 'f'))
      scan_formatted (p, i);
  }
  return depth == 0 || (python_fail (p, number, "a bracket does not end"), false);
}
