/* data/python/python_lines.c — lines of Python and the blocks that stand further in behind one; what is not
 * followed, and what is wrong. */
#include <lockstep/error.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/text/json_doc.h"

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
