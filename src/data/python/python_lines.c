/* data/python/python_lines.c — the words and marks of a file of Python, its lines, and the blocks that stand
 * further in behind one; what is not followed, and what is wrong. */
#include <lockstep/error.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"
#include "data/text/json_doc.h"

const PythonToken *
python_token (const PythonPlace *x)
{
  return &g_array_index (x->python->tokens, PythonToken, x->at);
}

bool
python_is (const PythonToken *t, const char *words)
{
  return (t->kind == PYTHON_MARK || t->kind == PYTHON_NAME) && ls_shell_is_one (t->word, words);
}

bool
python_take (PythonPlace *x, const char *words)
{
  bool is_there = python_is (python_token (x), words);
  x->at += is_there;
  return is_there;
}

int
python_bracket (const PythonToken *t)
{
  return python_is (t, "( [ {") ? 1 : python_is (t, ") ] }") ? -1 : 0;
}

void
python_pass_to (PythonPlace *x, const char *ends)
{
  for (int depth = 0; python_token (x)->kind != PYTHON_END; x->at++) {
    if (depth == 0 && python_is (python_token (x), ends))
      return;
    depth = MAX (0, depth + python_bracket (python_token (x)));
  }
}

char *
python_shown (const char *at, gsize n)
{
  char *shown = g_strndup (at, n);
  for (char *c = shown; *c; c++)
    *c = g_ascii_iscntrl (*c) || (*c & 0x80) ? ' ' : *c;
  return shown;
}

/* --- from text to lines ------------------------------------------------------------------------------ */

/* A text whose quote stands behind n letters, r"", f'', rb""; its length is 0 if it does not end. */
static PythonToken
text_token (const char *at, gsize n, const char *end)
{
  const char *quote = at + n, *p;
  const gsize n_quotes = quote + 2 < end && quote[1] == *quote && quote[2] == *quote ? 3 : 1;
  PythonToken t = { .kind = PYTHON_TEXT,
                    .inside = quote + n_quotes,
                    .is_raw = strcspn (at, "rR") < n,
                    .is_formatted = strcspn (at, "fF") < n };
  for (p = t.inside; p < end && (n_quotes > 1 || *p != '\n'); p++)
    if (*p == '\\')
      p++;
    else if (*p == *quote && (n_quotes == 1 || (p + 2 < end && p[1] == *quote && p[2] == *quote))) {
      t.n_inside = (gsize) (p - t.inside);
      t.n = (gsize) (p - at) + n_quotes;
      break;
    }
  return t;
}

static PythonToken
next_token (const char *at, const char *end)
{
  static const char *const marks[]
      = { "...", "**=", "//=", "<<=", ">>=", "->", ":=", "+=", "-=", "*=", "/=", "%=",
          "|=",  "&=",  "^=",  "==",  "!=",  "<=", ">=", "**", "//", "<<", ">>" };
  const gsize n_letters = strspn (at, "rRbBfFuU");
  PythonToken t = { .kind = PYTHON_MARK, .n = 1 };
  if (n_letters <= 2 && (at[n_letters] == '"' || at[n_letters] == '\''))
    return text_token (at, n_letters, end);
  if (g_ascii_isdigit (*at) || (*at == '.' && g_ascii_isdigit (at[1]))) {
    t.kind = PYTHON_NUMBER;
    t.n = strspn (at, G_CSET_DIGITS G_CSET_A_2_Z G_CSET_a_2_z "_.");
    if ((at[t.n] == '-' || at[t.n] == '+') && (at[t.n - 1] == 'e' || at[t.n - 1] == 'E') && at[1] != 'x')
      t.n += 1 + strspn (at + t.n + 1, G_CSET_DIGITS "_");
  } else if (g_ascii_isalpha (*at) || *at == '_' || (*at & 0x80)) {
    t.kind = PYTHON_NAME;
    while (at + t.n < end && (g_ascii_isalnum (at[t.n]) || at[t.n] == '_' || (at[t.n] & 0x80)))
      t.n++;
  }
  for (guint i = 0; i < G_N_ELEMENTS (marks) && t.kind == PYTHON_MARK && t.n == 1; i++)
    t.n = g_str_has_prefix (at, marks[i]) ? strlen (marks[i]) : 1;
  return t;
}

/* Ends a line, and begins another one, which stands so far in. */
static void
next_line (LsPython *p, PythonLine *line, guint number, guint indent)
{
  const PythonToken end = { .kind = PYTHON_END, .at = "", .word = "", .line = number };
  line->n = p->tokens->len - line->first;
  if (line->n > 0) {
    g_array_append_val (p->tokens, end);
    g_array_append_val (p->lines, *line);
  }
  *line = (PythonLine) { .first = p->tokens->len, .indent = indent, .module = line->module };
}

/* Adds what begins at `at` in a line to it; what stands behind the ":" of "if a: b = 1" is a block of its
 * own. *depth: of brackets. Returns what is behind it; NULL:
 * python_fail() was called. */
static const char *
scan_token (LsPython *p, const char *at, const char *end, PythonLine *line, guint *number, guint *depth)
{
  static const char words[] = "if elif else for while with try except finally class def async";
  PythonToken t = next_token (at, end);
  g_autofree char *word = g_strndup (at, t.n);
  if (t.n == 0)
    return python_fail (p, *number, "this text does not end"), NULL;
  t.at = at;
  t.line = *number;
  t.word = g_string_chunk_insert_const (p->texts, word);
  bool is_block = *depth == 0 && python_is (&t, ":") && p->tokens->len > line->first
      && python_is (python_first (p, line), words);
  *depth += (guint) MAX (python_bracket (&t), -(int) *depth);
  g_array_append_val (p->tokens, t);
  for (gsize i = 0; i < t.n; i++)
    *number += at[i] == '\n';
  at += t.n;
  const char *rest = at + strspn (at, " \t\r");
  if (!is_block || rest >= end || strchr ("#\n\\", *rest))
    return at;
  next_line (p, line, *number, line->indent + 1);
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
    if (depth == 0 && (is_next || *at == ';'))
      next_line (p, &line, number, is_next ? (guint) strspn (at + 1, " \t") : line.indent);
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
  next_line (p, &line, number, 0);
  if (depth > 0)
    python_fail (p, number, "a bracket does not end");
  return depth == 0;
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
  static const char blocks[] = "if elif else for while with try except finally match del async await";
  const PythonLine *line = python_line (p, i);
  const PythonToken *t = python_first (p, line);
  bool is_block = python_is (t, blocks);
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
  static const char words[] = "if elif else with import from raise pass assert print try except finally "
                              "logging warnings logger _logger";
  for (guint end = python_block_end (p, i); i < end; i++) {
    const PythonToken *t = python_first (p, python_line (p, i));
    if (!python_is (t, words) && t->kind != PYTHON_TEXT)
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
python_is_program (LsPython *p, guint i)
{
  const PythonLine *line = python_line (p, i);
  bool is_one = false;
  for (guint end = python_block_end (p, i++); i < end && !is_one; i = python_block_end (p, i)) {
    const PythonToken *t = python_first (p, python_line (p, i));
    is_one = (python_is_block (p, i) && !python_is_harmless (p, i))
        || python_is (t, "global nonlocal class @ yield")
        || (python_is (t, "def") && !is_plain_function (p, i));
  }
  if (is_one && !p->found.program)
    p->found.program = python_place (p, line->first);
  return is_one;
}

guint
python_parameters_of (const LsPython *p, const PythonLine *line)
{
  const PythonToken *t = python_first (p, line);
  bool is_one = line->indent == 0 && line->n >= 5 && python_is (t, "def") && t[1].kind == PYTHON_NAME
      && python_is (&t[2], "(");
  return is_one ? line->first + 3 : 0;
}

/* --- faults ------------------------------------------------------------------------------------------ */

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

void
python_refuse (LsPython *p, LsDiagList *diags)
{
  guint line = p->where;
  const char *path = python_path_of (p, p->module, &line);
  ls_diag_add (diags, LS_ERROR_INPUT, path, line, 0, NULL, NULL, NULL, "%s", p->why);
  g_clear_pointer (&p->why, g_free);
}

/* --- what is not followed ----------------------------------------------------------------------------- */

#define MAX_PASSED 60 /* letters of a statement that is not followed */

void
python_pass (LsPython *p, guint first)
{
  PythonToken *t = &g_array_index (p->tokens, PythonToken, first);
  if (!t->is_passed)
    g_array_append_val (p->passed, first);
  t->is_passed = true;
}

void
python_forget_passed (LsPython *p, guint n)
{
  for (guint i = n; i < p->passed->len; i++)
    g_array_index (p->tokens, PythonToken, g_array_index (p->passed, guint, i)).is_passed = false;
  g_array_set_size (p->passed, n);
}

char *
python_place (const LsPython *p, guint first)
{
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, first);
  gsize n = MIN (strcspn (t->at, "\r\n"), MAX_PASSED);
  g_autofree char *shown = g_strchomp (python_shown (t->at, n));
  guint line = t->line, module = 0;
  while (module + 1 < p->modules->len && python_module (p, module)->end_token <= first)
    module++;
  const char *path = python_path_of (p, module, &line);
  return g_strdup_printf ("%s:%u \"%s%s\"", path, line, shown, n == MAX_PASSED ? "..." : "");
}

void
python_move_passed (LsPython *p, GPtrArray *passed)
{
  for (guint i = 0; i < p->passed->len && passed; i++)
    g_ptr_array_add (passed, python_place (p, g_array_index (p->passed, guint, i)));
  python_forget_passed (p, 0);
}
