/* data/python/python_changes.c — statements that change what is set: "n += 1", "a.append (1)", and
 * calls for what they do to their first argument. */
#include <string.h>

#include "data/python/python_run.h"

/* --- methods ------------------------------------------------------------------------------------------ */

/* What a method is called of, n steps of a path, and how. */
typedef struct {
  PythonPlace *x;
  const GPtrArray *path;
  guint n, start;
  cJSON *of; /* NULL: nothing is known of it */
  const cJSON *call;
} Change;

static const cJSON *
only_argument (const Change *c)
{
  const cJSON *first = cJSON_GetObjectItemCaseSensitive (c->call, "0");
  return c->call->child && !c->call->child->next ? first : NULL;
}

/* Behind what an array holds. False: it is not known what comes of it. */
static bool
add_item (PythonPlace *x, cJSON *array, const cJSON *item)
{
  cJSON *copy = python_item_of (x, python_copy_of (x, item));
  bool ok = python_set_part (x, array, NULL, copy, NULL);
  cJSON_Delete (copy);
  return ok;
}

static bool
add_items (PythonPlace *x, cJSON *array, const cJSON *list)
{
  cJSON *all = cJSON_IsArray (array) ? python_list_of (list) : NULL;
  bool ok = all != NULL;
  for (const cJSON *item = ok ? all->child : NULL; item && ok; item = item->next)
    ok = add_item (x, array, item);
  cJSON_Delete (all);
  return ok;
}

/* a += b of a list; of a tuple it makes another one. */
static bool
add_to_list (PythonPlace *x, cJSON *list, const cJSON *by)
{
  return !python_is_kind (list, PYTHON_TUPLE) && !python_is_kind (list, PYTHON_SET)
      && add_items (x, list, by);
}

/* Each of these says whether it is known what comes of it. */
static bool
append (const Change *c)
{
  const cJSON *item = only_argument (c);
  return item && cJSON_IsArray (c->of) && add_item (c->x, c->of, item);
}

static bool
extend (const Change *c)
{
  return add_items (c->x, c->of, only_argument (c));
}

/* Of what stands there, the part under a key becomes item, which is taken. */
static void
set_part (const Change *c, const char *key, cJSON *item)
{
  g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < c->n; i++)
    g_ptr_array_add (path, g_strdup (c->path->pdata[i]));
  g_ptr_array_add (path, python_step_of_key (key));
  python_set_path (c->x, path, path->len, item, c->start);
}

/* Of one dictionary, and of arguments by name. */
static bool
update (const Change *c)
{
  const cJSON *first = cJSON_GetObjectItemCaseSensitive (c->call, "0");
  if ((first && !python_is_dictionary (first)) || cJSON_IsArray (c->of))
    return false;
  for (const cJSON *item = first ? first->child : NULL; item; item = item->next)
    if (strcmp (item->string, "()") != 0)
      set_part (c, item->string, python_item_of (c->x, python_copy_of (c->x, item)));
  for (const cJSON *item = c->call->child; item; item = item->next)
    if (!g_ascii_isdigit (*item->string))
      set_part (c, item->string, python_item_of (c->x, python_copy_of (c->x, item)));
  return true;
}

/* The same of the environment. */
static bool
set_default_variable (const Change *c, const cJSON *key, const cJSON *item)
{
  PythonTruth is_there = python_has_variable (c->x->python, key);
  if (is_there == PYTHON_FALSE && python_is_text (item))
    python_set_variable (c->x->python, key->valuestring, cJSON_Duplicate (item, true));
  return is_there == PYTHON_TRUE || (is_there == PYTHON_FALSE && python_is_text (item));
}

/* What is there stays. */
static bool
set_default (const Change *c)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (c->call, "1");
  if (python_environment_in (c->path, c->n) > 0)
    return set_default_variable (c, cJSON_GetObjectItemCaseSensitive (c->call, "0"), item);
  g_autofree char *key = python_key_of (cJSON_GetObjectItemCaseSensitive (c->call, "0"));
  const cJSON *there = key && cJSON_IsObject (c->of) ? cJSON_GetObjectItemCaseSensitive (c->of, key) : NULL;
  bool is_missing = key && !there && python_is_dictionary (c->of);
  if (is_missing)
    set_part (c, key, item ? python_item_of (c->x, python_copy_of (c->x, item)) : cJSON_CreateNull ());
  else if (key && !there && !cJSON_IsArray (c->of)) {
    python_pass (c->x->python, c->x->module, c->start);
    set_part (c, key, python_hole (c->x, NULL, c->start));
  }
  return key && !cJSON_IsArray (c->of);
}

static const struct {
  const char *name;
  bool (*change) (const Change *c);
} methods[]
    = { { "append", append }, { "extend", extend }, { "update", update }, { "setdefault", set_default } };

/* Whether it is known what comes of a method. */
static bool
follow_method (const Change *c)
{
  for (guint i = 0; i < G_N_ELEMENTS (methods); i++)
    if (strcmp (c->path->pdata[c->n], methods[i].name) == 0)
      return methods[i].change (c);
  return false;
}

/* The call of a method stands behind its path. */
static void
call_method (PythonPlace *x, const GPtrArray *path, guint start)
{
  const guint n = path->len - 1, n_passed = x->python->passed->len;
  cJSON *call = cJSON_CreateObject ();
  x->at++;
  python_arguments (x, call);
  bool is_plain = python_token (x)->kind == PYTHON_END && x->python->passed->len == n_passed;
  const Change c = { x, path, n, start, python_at_path (x, path, n), call };
  if (!is_plain || !follow_method (&c))
    python_open_change (x, path, start);
  cJSON_Delete (call);
}

/* "parser.add_argument ("--a", default=1)", as above. */
static void
declare (PythonPlace *x, const GPtrArray *path, guint start)
{
  const guint n = path->len - 1;
  cJSON *call = cJSON_CreateObject ();
  x->at++;
  python_arguments (x, call);
  if (!python_declare (x, python_at_path (x, path, n), path->pdata[n], call))
    python_pass (x->python, x->module, start);
  cJSON_Delete (call);
}

/* --- operators ---------------------------------------------------------------------------------------- */

bool
python_is_augmented (const PythonToken *t)
{
  return t->kind == PYTHON_MARK && t->n > 1 && t->at[t->n - 1] == '=' && !python_is (t, "==")
      && !python_is (t, "!=") && !python_is (t, "<=") && !python_is (t, ">=") && !python_is (t, ":=");
}

/* "n += 1" with the mark here. */
static void
augment (PythonPlace *x, const GPtrArray *path, guint start)
{
  PythonToken mark = *python_token (x);
  PythonPlace before = *x;
  mark.n--;
  before.at = start;
  PythonValue v = python_operand (&before);
  x->at++;
  PythonValue by = { .item = python_tuple (x) };
  bool is_whole = python_token (x)->kind == PYTHON_END,
       is_extended = is_whole && python_is (&mark, "+") && x->python->raise == 0
      && add_to_list (x, python_at_path (x, path, path->len), by.item);
  if (is_extended || x->python->raise > 0) {
    python_drop (v);
    python_drop (by);
    return;
  }
  v = python_arithmetic (x, &mark, v, by, start);
  cJSON *of = python_at_path (x, path, path->len);
  bool is_in_place = cJSON_IsObject (of) || (cJSON_IsArray (of) && !python_is_kind (of, PYTHON_TUPLE));
  v = is_whole && !is_in_place ? v : python_hole_of (x, v, start);
  if (is_in_place)
    python_make_hole (x->python, of, v.item);
  python_set_path (x, path, path->len, python_item_of (x, v), start);
}

/* --- setattr ------------------------------------------------------------------------------------------ */

/* "setattr (c.a, "n", 1)", of which the path of c.a is read, and a comma stands here. */
static void
set_attribute (PythonPlace *x, GPtrArray *path, guint start)
{
  guint n = path->len;
  x->at++;
  cJSON *name = python_expression (x), *item = python_expect (x, ",") ? python_expression (x) : NULL;
  python_take (x, ",");
  bool is_whole = python_expect (x, ")") && python_token (x)->kind == PYTHON_END;
  g_ptr_array_add (path, is_whole && python_is_text (name) ? g_strdup (name->valuestring) : NULL);
  if (item)
    python_set_path (x, path, n + 1, item, start);
  cJSON_Delete (name);
}

/* False: it is another statement. */
static bool
set_by_name (PythonPlace *x)
{
  PythonPlace at = *x;
  g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
  bool is_it = python_take (&at, "setattr") && python_take (&at, "(") && python_read_path (&at, path, true)
      && python_is (python_token (&at), ",") && python_is_set (x, path);
  if (is_it)
    set_attribute (&at, path, x->at);
  return is_it;
}

/* --- calls of functions -------------------------------------------------------------------------------- */

/* "f (a)" of a function of the files. What it does to what it is handed is done, as copies of that are the
 * same object. False: it is no such call. */
static bool
perform (PythonPlace *x)
{
  LsPython *p = x->python;
  guint start = x->at;
  const PythonToken *t = python_token (x);
  g_autofree char *function = t->kind == PYTHON_NAME ? g_strndup (t->at, t->n) : NULL;
  if (!function || !python_is (t + 1, "(") || !python_has_function (p, x->module, function))
    return false;
  p->is_called = false;
  p->is_statement = true;
  cJSON_Delete (python_expression (x));
  p->is_statement = false;
  if (!p->is_called && p->raise == 0)
    python_pass (p, x->module, start);
  return true;
}

/* "run (parser.parse_args ())" of a function that is not here: in a program that is started, for what it asks
 * the command. */
static void
ask_command (PythonPlace x)
{
  LsPython *p = x.python;
  const guint depth = p->depth;
  if (!p->is_script || p->why)
    return;
  cJSON_Delete (python_expression (&x));
  if (p->n_items <= PYTHON_MAX_ITEMS) {
    g_clear_pointer (&p->why, g_free);
    p->depth = depth;
  }
}

void
python_change (PythonPlace *x)
{
  guint start = x->at;
  g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
  PythonPlace behind = *x;
  bool is_path = python_read_path (&behind, path, true);
  const PythonToken *t = python_token (&behind);
  if (is_path && python_is_augmented (t))
    augment (&behind, path, start);
  else if (is_path && python_is (t, "(") && python_is_change (path)
           && (python_is_set (x, path) || python_environment_in (path, path->len - 1) > 0))
    call_method (&behind, path, start);
  else if (is_path && python_is (t, "(") && python_declares (path) && python_is_set (x, path))
    declare (&behind, path, start);
  else if (!set_by_name (x) && !perform (x)) {
    ask_command (*x);
    python_pass (x->python, x->module, start);
  }
}
