/* data/python/python_lines.c — the words and marks of a file of Python, its lines, and the blocks that stand
 * further in behind one; what is not followed, and what is wrong. */
#include <lockstep/error.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/text/json_doc.h"

/* Letters in front of a quote, r"", f'', rb""; 0: there are none, or no text begins so. */
static gsize
text_prefix (const char *at)
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
  gsize n = text_prefix (t->at);
  return memchr (t->at, letter, n) || memchr (t->at, g_ascii_toupper (letter), n);
}

const char *
python_text_inside (const PythonToken *t, gsize *ret_n)
{
  const char *p = t->at + text_prefix (t->at), *end = t->at + t->n;
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
  const char *p = at + text_prefix (at);
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
  if (*at == '"' || *at == '\'' || text_prefix (at) > 0) {
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

/* --- lines ------------------------------------------------------------------------------------------- */

const PythonLine *
python_line (const LsPython *p, guint i)
{
  return &g_array_index (p->lines, PythonLine, i);
}

const PythonToken *
python_first (const LsPython *p, const PythonLine *line)
{
  return &g_array_index (p->tokens, PythonToken, line->first);
}

bool
python_is_block (const LsPython *p, guint i)
{
  static const char *const blocks[] = { "if",     "elif",    "else",  "for", "while", "with",  "try",
                                        "except", "finally", "match", "del", "async", "await", NULL };
  const PythonLine *line = python_line (p, i);
  const PythonToken *t = python_first (p, line);
  bool is_block = python_is_one (t, blocks);
  for (guint k = 0; k < line->n && !is_block; k++)
    is_block = python_is (t + k, ":=");
  return is_block;
}

guint
python_block_end (const LsPython *p, guint i)
{
  const PythonLine *first = python_line (p, i);
  for (i++; i < p->lines->len && python_line (p, i)->module == first->module
       && python_line (p, i)->indent > first->indent;)
    i++;
  return i;
}

bool
python_is_harmless (const LsPython *p, guint i)
{
  static const char *const words[]
      = { "if",    "elif", "else",   "with",    "import",  "from",     "raise",  "pass",    "assert",
          "print", "try",  "except", "finally", "logging", "warnings", "logger", "_logger", NULL };
  for (guint end = python_block_end (p, i); i < end; i++) {
    const PythonToken *t = python_first (p, python_line (p, i));
    if (!python_is_one (t, words) && t->kind != PYTHON_TEXT)
      return false;
  }
  return true;
}

/* Whether a function within another only returns, and sets names of its own. */
static bool
is_plain_function (const LsPython *p, guint i)
{
  for (guint end = python_block_end (p, i++); i < end; i++) {
    const PythonToken *t = python_first (p, python_line (p, i));
    bool sets_name = t->kind == PYTHON_NAME && (python_is (t + 1, "=") || python_is (t + 1, ","));
    if (!sets_name && !python_is (t, "return") && (python_is_block (p, i) || !python_is_harmless (p, i)))
      return false;
  }
  return true;
}

bool
python_is_program (const LsPython *p, guint i)
{
  static const char *const words[] = { "global", "nonlocal", "class", "@", "yield", NULL };
  for (guint end = python_block_end (p, i++); i < end; i = python_block_end (p, i)) {
    const PythonToken *t = python_first (p, python_line (p, i));
    bool is_loose = python_is_block (p, i) && !python_is_harmless (p, i);
    if (is_loose || python_is_one (t, words) || (python_is (t, "def") && !is_plain_function (p, i)))
      return true;
  }
  return false;
}

void
python_note_program (LsPython *p, guint i)
{
  const PythonLine *line = python_line (p, i);
  if (!p->program)
    p->program = python_place (p, line->module, line->first);
}

guint
python_parameters_of (const LsPython *p, const PythonLine *line)
{
  const PythonToken *t = python_first (p, line);
  bool is_one = line->indent == 0 && line->n >= 5 && python_is (t, "def") && t[1].kind == PYTHON_NAME
      && python_is (&t[2], "(");
  return is_one ? line->first + 3 : 0;
}

void
python_pass_type (PythonPlace *x)
{
  static const char *const ends[] = { "=", ",", ")", NULL };
  for (int depth = 0; python_token (x)->kind != PYTHON_END; x->at++) {
    if (depth == 0 && python_is_one (python_token (x), ends))
      return;
    depth += python_bracket (python_token (x));
  }
}

/* --- faults ------------------------------------------------------------------------------------------ */

#define MAX_PASSED 60 /* letters of a statement that is not followed */

void
python_fail (LsPython *p, guint line, const char *why)
{
  if (p->why)
    return;
  p->why = g_strdup (why);
  p->where = line;
}

bool
python_enter (LsPython *p, guint line)
{
  if (++p->depth > LS_JSON_MAX_DEPTH)
    python_fail (p, line, "it is nested too deep, or calls itself");
  return !p->why;
}

/* --- files ------------------------------------------------------------------------------------------- */

/* Of the first file, from a line on. */
typedef struct {
  guint line, from;
  char *path;
} PythonPasted;

static void
pasted_clear (gpointer pasted)
{
  g_free (((PythonPasted *) pasted)->path);
}

GArray *
python_pasted_new (void)
{
  GArray *pasted = g_array_new (FALSE, FALSE, sizeof (PythonPasted));
  g_array_set_clear_func (pasted, pasted_clear);
  return pasted;
}

void
ls_python_paste (LsPython *p, guint line, const char *name, guint from)
{
  const PythonPasted pasted = { line, from, g_strdup (name) };
  g_array_append_val (p->pasted, pasted);
}

/* The file that a line of one is of, and its line there. */
static const char *
path_of (const LsPython *p, guint module, guint *line)
{
  for (guint i = module == 0 ? p->pasted->len : 0; i-- > 0;) {
    const PythonPasted *pasted = &g_array_index (p->pasted, PythonPasted, i);
    if (pasted->line <= *line) {
      *line = *line - pasted->line + pasted->from;
      return pasted->path;
    }
  }
  return g_array_index (p->modules, PythonModule, module).path;
}

void
python_refuse (LsPython *p, LsDiagList *diags)
{
  guint line = p->where;
  const char *path = path_of (p, p->module, &line);
  ls_diag_add (diags, LS_ERROR_INPUT, path, line, 0, NULL, NULL, NULL, "%s", p->why);
  g_clear_pointer (&p->why, g_free);
}

/* --- what is not followed ----------------------------------------------------------------------------- */

void
python_pass (LsPython *p, guint module, guint first)
{
  const PythonPassed passed = { .first = first, .module = module };
  PythonToken *t = &g_array_index (p->tokens, PythonToken, first);
  if (t->is_passed)
    return;
  t->is_passed = true;
  g_array_append_val (p->passed, passed);
}

/* "a.py:12 "for x in y:"", up to the end of its line. */
char *
python_place (const LsPython *p, guint module, guint first)
{
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, first);
  gsize n = MIN (strcspn (t->at, "\r\n"), MAX_PASSED);
  g_autofree char *shown = g_strchomp (python_shown (t->at, n));
  guint line = t->line;
  const char *path = path_of (p, module, &line);
  return g_strdup_printf ("%s:%u \"%s%s\"", path, line, shown, n == MAX_PASSED ? "..." : "");
}

void
python_move_passed (LsPython *p, GPtrArray *passed)
{
  for (guint i = 0; i < p->passed->len; i++) {
    const PythonPassed *one = &g_array_index (p->passed, PythonPassed, i);
    if (passed)
      g_ptr_array_add (passed, python_place (p, one->module, one->first));
    g_array_index (p->tokens, PythonToken, one->first).is_passed = false;
  }
  g_array_set_size (p->passed, 0);
}

const GPtrArray *
ls_python_file_passed (const LsPython *p)
{
  return p->file_passed;
}
