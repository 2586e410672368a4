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

bool
python_is_one (const PythonToken *t, const char *const *words)
{
  for (; *words; words++)
    if (python_is (t, *words))
      return true;
  return false;
}

int
python_bracket (const PythonToken *t)
{
  return t->kind != PYTHON_MARK || t->n != 1 ? 0
      : strchr ("([{", *t->at)               ? 1
      : strchr (")]}", *t->at)               ? -1
                                             : 0;
}

void
python_pass_to (PythonPlace *x, const char *end)
{
  for (int depth = 0; python_token (x)->kind != PYTHON_END; x->at++) {
    if (depth == 0 && python_is (python_token (x), end))
      return;
    depth = MAX (0, depth + python_bracket (python_token (x)));
  }
}

char *
python_word (const PythonToken *t)
{
  return g_strndup (t->at, t->n);
}

bool
python_has_prefix (const PythonToken *t, char letter)
{
  gsize n = python_text_prefix (t->at);
  return memchr (t->at, letter, n) || memchr (t->at, g_ascii_toupper (letter), n);
}

const char *
python_text_inside (const PythonToken *t, gsize *ret_n)
{
  const char *p = t->at + python_text_prefix (t->at), *end = t->at + t->n;
  const gsize quotes = end - p >= 6 && p[1] == *p && p[2] == *p ? 3 : 1;
  *ret_n = (gsize) (end - p) - 2 * quotes;
  return p + quotes;
}

bool
python_append_text (GString *out, const PythonToken *t, const char *at, gsize n)
{
  static const char letters[] = "nt\\'\"", meant[] = "\n\t\\'\"";
  for (const char *end = at + n; at < end; at++) {
    bool is_escape = *at == '\\' && !python_has_prefix (t, 'r');
    at += is_escape;
    const char *letter = is_escape && at < end ? memchr (letters, *at, sizeof letters - 1) : NULL;
    if (is_escape && !letter && *at != '\n')
      return false;
    if (letter || !is_escape)
      g_string_append_c (out, letter ? meant[letter - letters] : *at);
  }
  return true;
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
  static const char *const marks[]
      = { "...", "**=", "//=", "<<=", ">>=", "->", ":=", "+=", "-=", "*=", "/=", "%=",
          "|=",  "&=",  "^=",  "==",  "!=",  "<=", ">=", "**", "//", "<<", ">>" };
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

/* Whether what stands in a line behind ":" is a block of its own: "if a: b = 1". */
static bool
begins_block (const LsPython *p, const PythonLine *line)
{
  static const char *const words[] = { "if",     "elif",    "else",  "for", "while", "with", "try",
                                       "except", "finally", "class", "def", "async", NULL };
  return p->tokens->len > line->first && python_is_one (python_first (p, line), words);
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
  *depth += (guint) MAX (python_bracket (&t), -(int) *depth);
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
  return depth == 0 || (python_fail (p, number, "a bracket does not end"), false);
}
