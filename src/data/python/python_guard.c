/* data/python/python_guard.c — "if hasattr (a, 'b') and a.b: a.b = False": behind it a.b is false, whatever
 * it was. */
#include "data/python/python_run.h"

static bool
is_same_path (const GPtrArray *a, const GPtrArray *b)
{
  bool is_same = a->len == b->len;
  for (guint i = 0; is_same && i < a->len; i++)
    is_same = a->pdata[i] && g_strcmp0 (a->pdata[i], b->pdata[i]) == 0;
  return is_same;
}

static GPtrArray *
path_at (PythonPlace *x)
{
  GPtrArray *path = g_ptr_array_new_with_free_func (g_free);
  return python_read_path (x, path, false) ? path : (g_ptr_array_unref (path), NULL);
}

/* Behind "hasattr (", the attribute as a path; NULL: it is something else. */
static GPtrArray *
asked_attribute (PythonPlace *x)
{
  g_autoptr (GPtrArray) path = path_at (x);
  if (!path || !python_take (x, ",") || python_token (x)->kind != PYTHON_TEXT)
    return NULL;
  GString *name = g_string_new (NULL);
  python_append_text (name, python_token (x));
  g_ptr_array_add (path, g_string_free (name, FALSE));
  x->at++;
  return python_take (x, ")") && python_take (x, "and") ? g_steal_pointer (&path) : NULL;
}

/* What is true if the condition is, and else false, or not there; NULL: the condition is another one. */
static GPtrArray *
guarded (PythonPlace *x)
{
  bool asks = python_take (x, "hasattr") && python_take (x, "(");
  g_autoptr (GPtrArray) asked = asks ? asked_attribute (x) : NULL, path = NULL;
  if (!asks || asked)
    path = path_at (x);
  bool is_whole = path && python_take (x, ":") && python_token (x)->kind == PYTHON_END;
  return is_whole && (!asks || is_same_path (asked, path)) ? g_steal_pointer (&path) : NULL;
}

bool
python_is_guard (LsPython *p, guint i)
{
  const PythonLine *line = python_line (p, i);
  if (python_block_end (p, i) != i + 2)
    return false;
  PythonPlace x = { .python = p, .module = line->module, .at = line->first + 1 };
  g_autoptr (GPtrArray) path = guarded (&x);
  x.at = python_line (p, i + 1)->first;
  g_autoptr (GPtrArray) set = path ? path_at (&x) : NULL;
  return set && is_same_path (path, set) && python_take (&x, "=")
      && (python_take (&x, "False") || python_take (&x, "None")) && python_token (&x)->kind == PYTHON_END;
}
