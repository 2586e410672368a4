/* data/python/python_passed.c — lines and their files; what is not followed, and what is wrong. */
#include <lockstep/error.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/text/json_scan.h"

#define MAX_PASSED 60 /* letters of a statement that is not followed */

void
python_fail (LsPython *p, guint line, const char *why)
{
  if (p->why)
    return;
  p->why = g_strdup (why);
  p->where = line;
}

void
python_check_items (LsPython *p, guint line)
{
  if (p->n_items > PYTHON_MAX_ITEMS)
    python_fail (p, line, "it makes too much");
}

bool
python_enter (LsPython *p, guint line)
{
  if (++p->depth > LS_JSON_MAX_DEPTH)
    python_fail (p, line, "it is nested too deep, or calls itself");
  return !p->why;
}

/* --- files ------------------------------------------------------------------------------------------- */

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
  p->n_unknown++;
  if (t->is_passed)
    return;
  t->is_passed = true;
  g_array_append_val (p->passed, passed);
}

void
python_forget_passed (LsPython *p, guint n)
{
  for (guint i = n; i < p->passed->len; i++)
    g_array_index (p->tokens, PythonToken, g_array_index (p->passed, PythonPassed, i).first).is_passed
        = false;
  g_array_set_size (p->passed, MIN (n, p->passed->len));
}

/* "a.py:12 "for x in y:"", up to the end of its line. */
static char *
passed_text (const LsPython *p, const PythonPassed *passed)
{
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, passed->first);
  gsize n = MIN (strcspn (t->at, "\r\n"), MAX_PASSED);
  g_autofree char *shown = g_strchomp (python_shown (t->at, n));
  guint line = t->line;
  const char *path = path_of (p, passed->module, &line);
  return g_strdup_printf ("%s:%u \"%s%s\"", path, line, shown, n == MAX_PASSED ? "..." : "");
}

void
python_keep_passed (LsPython *p)
{
  g_ptr_array_set_size (p->file_passed, 0);
  python_add_passed (p, p->file_passed);
}

const GPtrArray *
ls_python_file_passed (const LsPython *p)
{
  return p->file_passed;
}

void
python_add_passed (const LsPython *p, GPtrArray *passed)
{
  for (guint i = 0; i < p->passed->len; i++)
    g_ptr_array_add (passed, passed_text (p, &g_array_index (p->passed, PythonPassed, i)));
}
