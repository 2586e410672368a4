/* data/python/python_functions.c — what comes of calling a function of a file of Python. */
#include <string.h>

#include "data/python/python_run.h"

/* What is left in a call: for "*" what has no name, for "**" what has one. The caller frees it. */
static cJSON *
take_rest (cJSON *arguments, bool is_named)
{
  cJSON *rest = is_named ? cJSON_CreateObject () : cJSON_CreateArray ();
  for (cJSON *item = arguments ? arguments->child : NULL, *next; item; item = next) {
    next = item->next;
    if (strcmp (item->string, "()") == 0 || is_named == (bool) g_ascii_isdigit (*item->string))
      continue;
    cJSON *taken = cJSON_DetachItemViaPointer (arguments, item);
    if (is_named)
      python_set_member (rest, taken->string, taken);
    else
      cJSON_AddItemToArray (rest, taken);
  }
  return rest;
}

/* What a parameter usually is, behind its type, borrowed; NULL: nothing. It is found once; where what stands
 * there is malformed, it is not known. */
static const cJSON *
usual_of (PythonPlace *x)
{
  LsPython *p = x->python;
  if (!python_take (x, "="))
    return NULL;
  g_autofree char *key = g_strdup_printf ("%u", x->at);
  cJSON *usual = g_hash_table_lookup (p->usual, key);
  if (usual) {
    python_pass_type (x);
    return usual;
  }
  const guint first = x->at, depth = p->depth;
  usual = python_expression (x);
  if (p->why && p->n_items <= PYTHON_MAX_ITEMS) {
    g_clear_pointer (&p->why, g_free);
    p->depth = depth;
    x->at = first;
    python_pass_type (x);
    usual = python_hole (x, usual, first);
  }
  g_hash_table_insert (p->usual, g_steal_pointer (&key), usual);
  return usual;
}

/* What a parameter is in a call, behind its name: by name, by its place, as is usual; NULL: nothing. */
static cJSON *
take_argument (PythonPlace *x, cJSON *arguments, const char *name, guint place)
{
  g_autofree char *number = g_strdup_printf ("%u", place);
  python_pass_type (x);
  const cJSON *usual = usual_of (x);
  cJSON *item = cJSON_DetachItemFromObjectCaseSensitive (arguments, name);
  item = item ? item : cJSON_DetachItemFromObjectCaseSensitive (arguments, number);
  return item ? item : usual ? python_copy_of (x, usual).item : NULL;
}

void
python_keep_usual (LsPython *p, const PythonLine *line)
{
  PythonPlace x = { .python = p, .module = line->module, .at = python_parameters_of (p, line) };
  const guint n_passed = p->passed->len, n_unknown = p->n_unknown;
  while (x.at > 0 && !p->why && python_token (&x)->kind != PYTHON_END
         && !python_is (python_token (&x), ")")) {
    python_pass_type (&x);
    usual_of (&x);
    if (!python_take (&x, ","))
      break;
  }
  python_forget_passed (p, n_passed); /* it is told where the function is called */
  p->n_unknown = n_unknown;
}

cJSON *
python_usual_of_function (LsPython *p, guint module, const char *name)
{
  guint i = python_find_function (p, module, name);
  if (i == p->lines->len)
    return NULL;
  const PythonLine *line = python_line (p, i);
  PythonPlace x = { .python = p, .module = line->module, .at = python_parameters_of (p, line) };
  cJSON *all = cJSON_CreateObject ();
  while (x.at > 0 && !p->why && !python_is (python_token (&x), ")")) {
    bool is_rest = python_take (&x, "**") || python_take (&x, "*") || python_take (&x, "/"),
         is_name = python_token (&x)->kind == PYTHON_NAME;
    g_autofree char *own = g_strndup (python_token (&x)->at, is_name ? python_token (&x)->n : 0);
    x.at += is_name;
    python_pass_type (&x);
    const cJSON *usual = usual_of (&x);
    if (usual && !is_rest)
      python_set_key (all, own, cJSON_Duplicate (usual, true));
    if (!python_take (&x, ","))
      break;
  }
  return all;
}

/* What parameters are in a call, which is an object of arguments. False: one of them has no value. */
static bool
bind (LsPython *p, const PythonLine *line, cJSON *arguments, GHashTable *names)
{
  PythonPlace x = { .python = p, .module = line->module, .at = python_parameters_of (p, line) };
  for (guint place = 0; !python_is (python_token (&x), ")");) {
    bool is_named = python_take (&x, "**"), is_rest = is_named || python_take (&x, "*");
    if (python_token (&x)->kind == PYTHON_NAME) {
      g_autofree char *name = g_strndup (python_token (&x)->at, python_token (&x)->n);
      x.at++;
      if (is_rest)
        python_pass_type (&x);
      cJSON *item = is_rest ? take_rest (arguments, is_named) : take_argument (&x, arguments, name, place++);
      if (!item)
        return false;
      g_hash_table_insert (names, g_strdup (name), item);
    } else if (is_named || (!is_rest && !python_take (&x, "/")))
      return false;
    if (!python_take (&x, ","))
      break;
  }
  return python_is (python_token (&x), ")");
}

cJSON *
python_call (LsPython *p, guint module, const char *name, cJSON *arguments, guint line)
{
  g_autoptr (GHashTable) names
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) cJSON_Delete);
  guint i = python_find_function (p, module, name);
  cJSON *result = NULL;
  if (i == p->lines->len)
    return NULL;
  python_enter (p, line);
  g_ptr_array_add (p->frames, names);
  g_array_append_val (p->running, i);
  if (!p->why && bind (p, python_line (p, i), arguments, names)) {
    result = python_run_body (p, i + 1, names);
    p->is_called = true;
  }
  g_ptr_array_remove_index (p->frames, p->frames->len - 1);
  g_array_set_size (p->running, p->running->len - 1);
  p->depth--;
  return result;
}
