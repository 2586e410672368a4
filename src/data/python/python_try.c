/* data/python/python_try.c — "try" with one "except" behind it, where it is known whether it raises.
 *
 * What is not known may raise: an import, a function that is not here, a value that is not evaluated. */
#include "data/python/python_run.h"

/* Whether "except" in a line is for what "raise" in another one raises, by its name. */
static bool
catches (const LsPython *p, const PythonLine *line, guint raise)
{
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first + 1),
                    *raised = &g_array_index (p->tokens, PythonToken, raise + 1);
  g_autofree char *name = g_strndup (raised->at, raised->n);
  bool is_all = python_is (t, ":"), is_it = raised->kind == PYTHON_NAME && python_is (t, name);
  return is_all
      || ((is_it || python_is (t, "Exception")) && (python_is (t + 1, ":") || python_is (t + 1, "as")));
}

/* Runs the body in line i. Whether it is known what it does; ret_raise: the statement that raises, or 0. */
static bool
run_body (LsPython *p, guint i, GHashTable *names, cJSON **ret_result, guint *ret_raise)
{
  guint n_unknown = p->n_unknown;
  p->n_tries++;
  *ret_result = python_run_body (p, i + 1, names);
  p->n_tries--;
  *ret_raise = p->raise;
  p->raise = 0;
  return p->n_unknown == n_unknown;
}

guint
python_run_try (LsPython *p, guint i, GHashTable *names, cJSON **ret_result)
{
  static const char *const excepts[] = { "except", NULL },
                           *const more[] = { "except", "else", "finally", NULL };
  const PythonLine *line = python_line (p, i);
  const guint handler = python_block_end (p, i);
  bool has_handler = python_goes_on (p, handler, line, excepts);
  guint end = has_handler ? python_block_end (p, handler) : handler, raise;
  bool is_plain = has_handler && !python_goes_on (p, end, line, more),
       is_known = run_body (p, i, names, ret_result, &raise) && is_plain,
       is_caught = raise > 0 && has_handler && catches (p, python_line (p, handler), raise);
  if (is_known && raise == 0)
    return end;
  g_clear_pointer (ret_result, cJSON_Delete);
  if (is_known && is_caught) {
    *ret_result = python_run_body (p, handler + 1, names);
    return end;
  }
  python_pass_block (p, i, i, names);
  return handler;
}
