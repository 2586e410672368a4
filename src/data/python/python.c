#include "data/python/python.h"

#include <lockstep/error.h>

#include "data/python/python_run.h"

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

LsPython *
ls_python_new (const char *text, gsize n, const char *name, LsDiagList *diags)
{
  LsPython *p = g_new0 (LsPython, 1);
  p->modules = g_array_new (FALSE, FALSE, sizeof (PythonModule));
  g_array_set_clear_func (p->modules, python_module_clear);
  p->tokens = g_array_new (FALSE, FALSE, sizeof (PythonToken));
  p->lines = g_array_new (FALSE, FALSE, sizeof (PythonLine));
  p->functions = g_ptr_array_new_with_free_func (g_free);
  p->passed = g_array_new (FALSE, FALSE, sizeof (PythonPassed));
  p->pasted = python_pasted_new ();
  p->frames = g_ptr_array_new ();
  p->running = g_array_new (FALSE, FALSE, sizeof (guint));
  p->usual = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) cJSON_Delete);
  p->set_variables = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) cJSON_Delete);
  p->call = python_call;
  p->members = python_members_of;
  p->options = cJSON_CreateObject ();
  p->file_passed = g_ptr_array_new_with_free_func (g_free);
  if (!ls_python_add (p, text, n, name, diags)) {
    ls_python_free (p);
    return NULL;
  }
  for (guint i = 0; i < p->lines->len; i++) {
    char *function = python_function_of (p, python_line (p, i));
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
  g_array_unref (p->passed);
  g_array_unref (p->pasted);
  g_ptr_array_unref (p->frames);
  g_array_unref (p->running);
  g_hash_table_unref (p->usual);
  g_hash_table_unref (p->set_variables);
  g_ptr_array_unref (p->file_passed);
  cJSON_Delete (p->options);
  cJSON_Delete (p->engine);
  g_free (p->why);
  g_free (p);
}

const GPtrArray *
ls_python_functions (const LsPython *p)
{
  return p->functions;
}

/* What files set, from one on, before any function is called; those that are imported from stand behind. */
static void
set_values (LsPython *p, guint first)
{
  p->n_items = p->n_rounds = p->depth = 0;
  p->n_objects = 0;
  g_hash_table_remove_all (p->usual);
  python_forget_variables (p);
  for (guint m = p->modules->len; m-- > 0;)
    g_hash_table_remove_all (python_module (p, m)->values);
  for (guint m = p->modules->len; m-- > first;)
    if (!p->why)
      python_run (p, m);
  python_keep_passed (p);
  python_forget_passed (p, 0);
  p->n_open = p->raise = 0;
}

cJSON *
ls_python_value (LsPython *p, const char *function, GPtrArray *passed, LsDiagList *diags)
{
  set_values (p, 0);
  cJSON *result = p->why ? NULL : python_call (p, 0, function, NULL, 0);
  if (passed)
    python_add_passed (p, passed);
  if (cJSON_IsNull (result))
    g_clear_pointer (&result, cJSON_Delete);
  if (!result && !p->why)
    ls_diag_add (diags, LS_ERROR_INPUT, python_module (p, 0)->path, 0, 0, NULL, NULL, NULL,
                 python_has_function (p, 0, function) ? "its function %s returns nothing"
                                                      : "it has no function %s",
                 function);
  if (!p->why)
    return result;
  python_refuse (p, diags);
  cJSON_Delete (result);
  return NULL;
}

cJSON *
ls_python_name (LsPython *p, const char *name, GPtrArray *passed, LsDiagList *diags)
{
  set_values (p, 1);
  if (!p->why)
    python_run (p, 0);
  if (passed)
    python_add_passed (p, passed);
  if (p->why) {
    python_refuse (p, diags);
    return NULL;
  }
  const cJSON *value = g_hash_table_lookup (python_module (p, 0)->values, name);
  if (!value)
    ls_diag_add (diags, LS_ERROR_INPUT, python_module (p, 0)->path, 0, 0, NULL, NULL, NULL,
                 "it sets nothing of the name %s at the start of a line", name);
  return value ? cJSON_Duplicate (value, true) : NULL;
}

/* --- a program and its command ------------------------------------------------------------------------ */

void
ls_python_set_arguments (LsPython *p, const GPtrArray *words)
{
  p->arguments = words;
}

void
ls_python_start (LsPython *p)
{
  p->is_script = true;
  set_values (p, 1);
  if (!p->why)
    python_run (p, 0);
  python_read_declared (p);
  python_forget_passed (p, 0);
  g_clear_pointer (&p->why, g_free);
  p->is_script = false;
}

const cJSON *
ls_python_options (const LsPython *p)
{
  return p->options;
}

void
ls_python_set_environment (LsPython *p, LsPythonVariable *variable, gpointer data)
{
  p->variable = variable;
  p->variable_data = data;
}

const cJSON *
ls_python_engine (const LsPython *p)
{
  return p->engine;
}
