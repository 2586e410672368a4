/* data/text/python_functions.c — functions of a file of Python, and what comes of calling them. */
#include <string.h>

#include "data/text/python_parts.h"

/* Behind the "(" of its parameters, a token, where one begins in this line; 0: none does. */
static guint
parameters_of (const LsPython *p, const PythonLine *line)
{
  static const char *const defines[] = { "def", NULL };
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
  bool is_one = line->indent == 0 && line->n >= 5 && python_starts (p, line, defines)
      && t[1].kind == PYTHON_NAME && python_is (&t[2], "(");
  return is_one ? line->first + 3 : 0;
}

char *
python_function_of (const LsPython *p, const PythonLine *line)
{
  guint at = parameters_of (p, line);
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
  return at > 0 && python_is (&t[3], ")") ? g_strndup (t[1].at, t[1].n) : NULL;
}

guint
python_function_line (const LsPython *p, guint module, const char *name)
{
  for (guint i = p->lines->len; i-- > 0;) {
    const PythonLine *line = python_line (p, i);
    const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
    if (line->module == module && parameters_of (p, line) > 0 && t[1].n == strlen (name)
        && strncmp (t[1].at, name, t[1].n) == 0)
      return i;
  }
  return p->lines->len;
}

bool
python_defines (const LsPython *p, guint module, const char *name)
{
  return python_function_line (p, module, name) < p->lines->len;
}

bool
python_has_function (const LsPython *p, guint module, const char *name)
{
  return python_find_function (p, module, name) < p->lines->len;
}

/* Behind what is further in than line i. */
static guint
pass_block (const LsPython *p, guint i)
{
  guint indent = python_line (p, i)->indent;
  for (i++; i < p->lines->len && python_line (p, i)->indent > indent;)
    i++;
  return i;
}

static cJSON *run_body (LsPython *p, guint first, GHashTable *names);

/* "if", with what stands behind it for the case that it is not so: the part that is run, if that is known.
 * Returns where it ends. */
static guint
run_if (LsPython *p, guint i, GHashTable *names, cJSON **ret_result)
{
  static const char *const more[] = { "elif", "else", NULL };
  const guint indent = python_line (p, i)->indent, module = python_line (p, i)->module;
  bool is_done = false, is_open = false;
  for (bool is_first = true; i < p->lines->len; is_first = false, i = pass_block (p, i)) {
    const PythonLine *line = python_line (p, i);
    if (line->indent != indent || line->module != module || (!is_first && !python_starts (p, line, more)))
      break;
    if (is_done)
      continue;
    PythonPlace x = { .python = p, .names = names, .module = module, .at = line->first };
    x.at += !python_is (python_token (&x), "else");
    bool is_true = python_take (&x, "else") || python_is_true (&x, &is_open);
    python_take (&x, ":");
    if (python_token (&x)->kind != PYTHON_END) { /* "if a: b" */
      is_true = false;
      is_open = true;
    }
    is_done = is_true || is_open;
    p->n_passed += is_open;
    p->n_open += is_open;
    if (is_true)
      *ret_result = run_body (p, i + 1, names);
  }
  return i;
}

static cJSON *
run_body (LsPython *p, guint first, GHashTable *names)
{
  guint indent = first < p->lines->len ? python_line (p, first)->indent : 0;
  cJSON *result = NULL;
  static const char *const ifs[] = { "if", NULL };
  for (guint i = first; i < p->lines->len && !result && !p->why && indent > 0;) {
    const PythonLine *line = python_line (p, i);
    if (line->indent < indent)
      break;
    if (line->indent == indent && python_starts (p, line, ifs)) {
      i = run_if (p, i, names, &result);
      continue;
    }
    if (line->indent == indent)
      result = python_statement (p, line, names);
    i++;
  }
  return result;
}

/* Passes over what a parameter's type is. */
static void
pass_type (PythonPlace *x)
{
  for (int depth = 0; python_token (x)->kind != PYTHON_END; x->at++) {
    const PythonToken *t = python_token (x);
    if (depth == 0 && (python_is (t, "=") || python_is (t, ",") || python_is (t, ")")))
      return;
    depth += python_is (t, "[") || python_is (t, "(");
    depth -= python_is (t, "]") || python_is (t, ")");
  }
}

/* What parameters are in a call, which is an object of arguments; *ret_first: the name of the first, newly
 * allocated. False: one of them has no value. */
static bool
bind (LsPython *p, const PythonLine *line, cJSON *arguments, GHashTable *names, char **ret_first)
{
  PythonPlace x = { .python = p, .module = line->module, .at = parameters_of (p, line) };
  for (guint i = 0; python_token (&x)->kind == PYTHON_NAME || python_take (&x, "*"); i++) {
    python_take (&x, ",");
    g_autofree char *name = g_strndup (python_token (&x)->at, python_token (&x)->n),
                    *place = g_strdup_printf ("%u", i);
    x.at++;
    pass_type (&x);
    cJSON *usual = python_take (&x, "=") ? python_expression (&x) : NULL,
          *item = cJSON_DetachItemFromObjectCaseSensitive (arguments, name);
    item = item ? item : cJSON_DetachItemFromObjectCaseSensitive (arguments, place);
    if (item)
      cJSON_Delete (usual);
    if (!item && !usual)
      return false;
    g_hash_table_insert (names, g_strdup (name), item ? item : usual);
    *ret_first = *ret_first ? *ret_first : g_strdup (name);
    python_take (&x, ",");
  }
  return python_is (python_token (&x), ")");
}

cJSON *
python_call (LsPython *p, guint module, const char *name, cJSON *arguments, guint line)
{
  g_autoptr (GHashTable) names
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) cJSON_Delete);
  g_autofree char *first = NULL;
  guint i = python_find_function (p, module, name);
  cJSON *result = NULL;
  if (i == p->lines->len)
    return NULL;
  python_enter (p, line);
  if (!p->why && bind (p, python_line (p, i), arguments, names, &first)) {
    result = run_body (p, i + 1, names);
    cJSON_Delete (p->first);
    cJSON *mine = first ? g_hash_table_lookup (names, first) : NULL;
    p->first = mine ? cJSON_Duplicate (mine, true) : NULL;
  }
  p->depth--;
  return result;
}

cJSON *
python_replaced (cJSON *call)
{
  cJSON *object = cJSON_DetachItemFromObjectCaseSensitive (call, "0"), *item;
  cJSON_DeleteItemFromObjectCaseSensitive (call, "()");
  while ((item = cJSON_DetachItemFromArray (call, 0)))
    python_set_member (object, item->string, item);
  cJSON_Delete (call);
  return object;
}
