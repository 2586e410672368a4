#include "data/python/python.h"

#include <lockstep/error.h>
#include <string.h>

#include "data/python/python_run.h"
#include "data/shell/shell.h"
#include "data/text/json_scan.h"

/* --- tokens ---------------------------------------------------------------------------------------- */

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

/* False: fail() was called. */
static bool
scan (LsPython *p, const char *text, gsize n)
{
  const char *end = text + n;
  guint number = 1, depth = 0;
  PythonLine line = { .first = p->tokens->len, .module = p->modules->len - 1 };
  for (const char *at = text; at < end;) {
    if (*at == '\n' && depth == 0) {
      end_line (p, &line, number);
      line = (PythonLine) { .first = p->tokens->len,
                            .indent = (guint) strspn (at + 1, " \t"),
                            .module = line.module };
    }
    number += *at == '\n';
    if (*at == '#')
      at += strcspn (at, "\n");
    else if (strchr (" \t\r\n\f\\", *at))
      at++;
    else {
      PythonToken t = next_token (at, end, number);
      if (t.n == 0)
        return python_fail (p, number, "this text does not end"), false;
      depth += t.kind == PYTHON_MARK && strchr ("([{", *at) != NULL;
      depth -= t.kind == PYTHON_MARK && strchr (")]}", *at) != NULL && depth > 0;
      g_array_append_val (p->tokens, t);
      number += n_newlines (at, t.n);
      at += t.n;
    }
  }
  end_line (p, &line, number);
  return depth == 0 || (python_fail (p, number, "a bracket does not end"), false);
}

/* --- files ------------------------------------------------------------------------------------------ */

bool
ls_python_add (LsPython *p, const char *text, gsize n, const char *name, LsDiagList *diags)
{
  guint first = p->lines->len;
  p->module = python_add_module (p, name);
  if (!scan (p, text, n)) {
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
  p->call = python_call;
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
  g_ptr_array_unref (p->file_passed);
  cJSON_Delete (p->first);
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

void
ls_python_set_environment (LsPython *p, LsPythonVariable *variable, gpointer data)
{
  p->variable = variable;
  p->variable_data = data;
}
