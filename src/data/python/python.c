#include "data/python/python.h"

#include <lockstep/error.h>
#include <string.h>

#include "data/python/python_parts.h"

static void
value_free (gpointer data)
{
  PythonValue *v = data;
  g_free (v->text);
  g_clear_pointer (&v->items, g_ptr_array_unref);
  g_clear_pointer (&v->keys, g_ptr_array_unref);
  g_free (v);
}

/* --- files ------------------------------------------------------------------------------------------ */

bool
ls_python_add (LsPython *p, const char *text, gsize n, const char *name, LsDiagList *diags)
{
  guint first = p->lines->len;
  p->module = python_add_module (p, name);
  if (!python_scan (p, text, n)) {
    python_refuse (p, diags);
    return false;
  }
  for (guint i = first; i < p->lines->len; i++)
    python_add_imports (p, python_line (p, i));
  return true;
}

/* The name of a function that begins in this line, newly allocated, if it can be called without an argument;
 * NULL: none does, or it cannot. */
static char *
function_of (LsPython *p, const PythonLine *line)
{
  PythonPlace x = { .python = p, .module = line->module, .at = python_parameters_of (p, line) };
  while (x.at > 0 && !python_is (python_token (&x), ")")) {
    bool is_rest = python_take (&x, "**") || python_take (&x, "*") || python_take (&x, "/");
    python_pass_type (&x);
    if (!python_take (&x, "=") && !is_rest)
      return NULL;
    python_pass_type (&x);
    if (!python_take (&x, ",") && !python_is (python_token (&x), ")"))
      return NULL;
  }
  return x.at > 0 ? python_word (python_first (p, line) + 1) : NULL;
}

LsPython *
ls_python_new (const char *text, gsize n, const char *name, LsDiagList *diags)
{
  LsPython *p = g_new0 (LsPython, 1);
  p->modules = g_array_new (FALSE, FALSE, sizeof (PythonModule));
  g_array_set_clear_func (p->modules, python_module_clear);
  p->tokens = g_array_new (FALSE, FALSE, sizeof (PythonToken));
  p->lines = g_array_new (FALSE, FALSE, sizeof (PythonLine));
  p->functions = g_ptr_array_new_with_free_func (g_free);
  p->values = g_ptr_array_new_with_free_func (value_free);
  p->passed = g_array_new (FALSE, FALSE, sizeof (PythonPassed));
  p->pasted = python_pasted_new ();
  p->set_variables = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  p->options = cJSON_CreateObject ();
  p->file_passed = g_ptr_array_new_with_free_func (g_free);
  if (!ls_python_add (p, text, n, name, diags)) {
    ls_python_free (p);
    return NULL;
  }
  for (guint i = 0; i < p->lines->len; i++) {
    char *function = function_of (p, python_line (p, i));
    if (function)
      g_ptr_array_add (p->functions, function);
  }
  return p;
}

const GPtrArray *
ls_python_imports (const LsPython *p, guint file)
{
  return python_module (p, file)->imported;
}

void
ls_python_free (LsPython *p)
{
  if (!p)
    return;
  g_array_unref (p->tokens);
  g_array_unref (p->lines);
  g_ptr_array_unref (p->functions);
  g_array_unref (p->modules);
  g_ptr_array_unref (p->values);
  g_array_unref (p->passed);
  g_array_unref (p->pasted);
  g_hash_table_unref (p->set_variables);
  g_ptr_array_unref (p->file_passed);
  cJSON_Delete (p->options);
  cJSON_Delete (p->engine);
  g_free (p->program);
  g_free (p->why);
  g_free (p);
}

const GPtrArray *
ls_python_functions (const LsPython *p)
{
  return p->functions;
}

const char *
ls_python_program (const LsPython *p)
{
  return p->program;
}

/* What files set, from one on, before any function is called; those that are imported from stand behind. */
static void
set_values (LsPython *p, guint first)
{
  p->n_items = p->depth = 0;
  g_hash_table_remove_all (p->set_variables);
  p->is_environment_open = false;
  for (guint m = p->modules->len; m-- > 0;) {
    g_hash_table_remove_all (python_module (p, m)->values);
    python_module (p, m)->is_run = m < first;
  }
  g_ptr_array_set_size (p->values, 0);
  g_ptr_array_set_size (p->file_passed, 0);
  g_clear_pointer (&p->program, g_free);
  for (guint m = p->modules->len; m-- > first;)
    python_run_module (p, m);
  python_move_passed (p, p->file_passed);
}

/* As JSON; NULL and a diagnostic where something is wrong. */
static cJSON *
told (LsPython *p, const PythonValue *value, GPtrArray *passed, LsDiagList *diags)
{
  cJSON *item = value && !p->why ? python_json (p, value) : NULL;
  python_move_passed (p, passed);
  if (!p->why)
    return item;
  python_refuse (p, diags);
  cJSON_Delete (item);
  return NULL;
}

cJSON *
ls_python_value (LsPython *p, const char *function, GPtrArray *passed, LsDiagList *diags)
{
  set_values (p, 0);
  const PythonValue *f = p->why ? NULL : g_hash_table_lookup (python_module (p, 0)->values, function),
                    *value = NULL;
  bool is_function = f && f->kind == PYTHON_IS_FUNCTION;
  if (is_function && python_is_program (p, f->line))
    python_note_program (p, f->line);
  else if (is_function)
    value = python_run_function (p, f, python_called (p, PYTHON_IS_CALL, function));
  value = value && value->kind == PYTHON_IS_NONE ? NULL : value;
  const bool is_wrong = p->why != NULL;
  cJSON *result = told (p, value, passed, diags);
  if (!value && !is_wrong && !p->program)
    ls_diag_add (diags, LS_ERROR_INPUT, python_module (p, 0)->path, 0, 0, NULL, NULL, NULL,
                 is_function ? "its function %s returns nothing" : "it has no function %s", function);
  return result;
}

cJSON *
ls_python_name (LsPython *p, const char *name, GPtrArray *passed, LsDiagList *diags)
{
  set_values (p, 1);
  python_module (p, 0)->is_run = false;
  if (!p->why)
    python_run_module (p, 0);
  const PythonValue *value = g_hash_table_lookup (python_module (p, 0)->values, name);
  const bool is_wrong = p->why != NULL;
  cJSON *result = told (p, value, passed, diags);
  if (!value && !is_wrong)
    ls_diag_add (diags, LS_ERROR_INPUT, python_module (p, 0)->path, 0, 0, NULL, NULL, NULL,
                 "it sets nothing of the name %s at the start of a line", name);
  return result;
}
