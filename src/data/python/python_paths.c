/* data/python/python_paths.c — places that are set: a name, and members and items behind it. */
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"

/* A step that is a key begins with it, which no name does. */
#define KEY '['

/* Whether a key is said, not a name or a call that means nothing here. */
static bool
is_said (const cJSON *key)
{
  for (const cJSON *part = key->child; part; part = part->next)
    if (!is_said (part))
      return false;
  return !cJSON_IsString (key) || key->valueint == 0;
}

/* What stands behind "[", as a step; NULL: it is not known. */
static char *
read_key (PythonPlace *x, bool evaluates)
{
  const PythonToken *t = python_token (x);
  bool is_plain = (t->kind == PYTHON_TEXT || t->kind == PYTHON_NUMBER) && python_is (t + 1, "]");
  if (!is_plain && !evaluates) {
    python_pass_to (x, "]");
    python_expect (x, "]");
    return NULL;
  }
  cJSON *key = python_key (x);
  g_autofree char *name = key && is_said (key) ? python_key_of (key) : NULL;
  cJSON_Delete (key);
  return name ? python_step_of_key (name) : NULL;
}

bool
python_read_path (PythonPlace *x, GPtrArray *path, bool evaluates)
{
  do {
    if (python_token (x)->kind != PYTHON_NAME)
      return false;
    g_ptr_array_add (path, g_strndup (python_token (x)->at, python_token (x)->n));
    x->at++;
    while (python_take (x, "["))
      g_ptr_array_add (path, read_key (x, evaluates));
  } while (python_take (x, "."));
  return true;
}

char *
python_step_of_key (const char *key)
{
  return g_strdup_printf ("%c%s", KEY, key);
}

static const char *
name_of (const char *step)
{
  return step + (*step == KEY);
}

/* What no name is, in the names of a function. */
static char *
mark_of_global (const char *name)
{
  return g_strconcat ("global ", name, NULL);
}

GHashTable *
python_names_with (const PythonPlace *x, const char *name)
{
  g_autofree char *mark = mark_of_global (name);
  bool is_own = x->names && !g_hash_table_contains (x->names, mark);
  return is_own ? x->names : python_module (x->python, x->module)->values;
}

void
python_add_globals (PythonPlace *x)
{
  for (x->at++; python_token (x)->kind == PYTHON_NAME; python_take (x, ",")) {
    g_autofree char *name = g_strndup (python_token (x)->at, python_token (x)->n);
    g_hash_table_insert (x->names, mark_of_global (name), cJSON_CreateNull ());
    x->at++;
  }
}

/* What the name of a path was set to, in the function or in a file; NULL: it was not. */
static cJSON *
root_of (const PythonPlace *x, const GPtrArray *path)
{
  cJSON *root = g_hash_table_lookup (python_names_with (x, path->pdata[0]), path->pdata[0]);
  return root ? root : python_imported_value (x->python, x->module, path->pdata[0]);
}

bool
python_is_set (const PythonPlace *x, const GPtrArray *path)
{
  return root_of (x, path) != NULL;
}

/* What a step leads to; NULL: nothing, or that is not known. */
static cJSON *
child_of (const cJSON *item, const char *step)
{
  if (cJSON_IsArray (item))
    return step && *step == KEY ? python_item_at (item, name_of (step)) : NULL;
  return step && cJSON_IsObject (item) ? cJSON_GetObjectItemCaseSensitive (item, name_of (step)) : NULL;
}

cJSON *
python_at_path (const PythonPlace *x, const GPtrArray *path, guint n)
{
  cJSON *item = root_of (x, path);
  for (guint i = 1; i < n && item; i++)
    item = child_of (item, path->pdata[i]);
  return item;
}

/* The member or item of an object that a step leads to, as what may hold the next one: an object for a text,
 * which is a name or a call that is not known, and where there is nothing, or a value of another kind; of
 * nothing, for a key, what is not known here. */
static cJSON *
part_of (PythonPlace *x, cJSON *object, const char *step, const char *next, guint start)
{
  const char *name = name_of (step);
  cJSON *part = cJSON_GetObjectItemCaseSensitive (object, name);
  if (cJSON_IsObject (part) || cJSON_IsArray (part))
    return part;
  if (cJSON_IsString (part)) {
    python_make_object (x->python, part);
    return part;
  }
  cJSON *made = cJSON_CreateObject ();
  if (!part && next && *next == KEY)
    cJSON_AddItemToObject (made, "()", python_hole (x, NULL, start));
  python_identify (x->python, made);
  python_set_part (x, object, name, made, python_set_member);
  cJSON_Delete (made);
  return cJSON_GetObjectItemCaseSensitive (object, name);
}

/* The same of a list, which has the item; NULL: that may hold nothing. */
static cJSON *
item_of (PythonPlace *x, const cJSON *list, const char *step)
{
  cJSON *item = child_of (list, step);
  if (cJSON_IsString (item))
    python_make_object (x->python, item);
  return cJSON_IsObject (item) || cJSON_IsArray (item) ? item : NULL;
}

/* The object or list that holds the last of n steps; NULL: there is none, and from step *ret_n on it cannot
 * be said what is set. */
static cJSON *
holder_of (PythonPlace *x, const GPtrArray *path, guint n, guint start, guint *ret_n)
{
  cJSON *object = root_of (x, path);
  if (cJSON_IsString (object))
    python_make_object (x->python, object);
  guint i = 1;
  for (cJSON *next = NULL; i + 1 < n && path->pdata[i]; i++, object = next) {
    next = cJSON_IsObject (object) ? part_of (x, object, path->pdata[i], path->pdata[i + 1], start)
        : cJSON_IsArray (object)   ? item_of (x, object, path->pdata[i])
                                   : NULL;
    if (!next)
      break;
  }
  *ret_n = i;
  bool is_holder = i + 1 == n && (cJSON_IsObject (object) || child_of (object, path->pdata[i]));
  return is_holder && path->pdata[i] ? object : NULL;
}

/* False: it cannot be said what is set. */
static bool
set_last (PythonPlace *x, cJSON *holder, const char *step, cJSON *item)
{
  return holder
      && python_set_part (x, holder, name_of (step), item,
                          cJSON_IsArray (holder) ? python_set_item
                              : *step == KEY     ? python_set_key
                                                 : python_set_member);
}

/* What stands there after n steps is a hole, and so are its copies. */
static void
open_whole (PythonPlace *x, const GPtrArray *path, guint n, cJSON *hole)
{
  cJSON *whole = python_at_path (x, path, n);
  if (cJSON_IsObject (whole) || cJSON_IsArray (whole))
    python_make_hole (x->python, whole, hole);
  else if (!whole && python_imported_value (x->python, x->module, path->pdata[0]))
    g_hash_table_insert (python_names_with (x, path->pdata[0]), g_strdup (path->pdata[0]),
                         cJSON_Duplicate (hole, true));
}

void
python_set_path (PythonPlace *x, const GPtrArray *path, guint n, cJSON *item, guint start)
{
  python_identify (x->python, item);
  if (n == 1) {
    g_hash_table_insert (python_names_with (x, path->pdata[0]), g_strdup (path->pdata[0]), item);
    return;
  }
  guint n_known = python_environment_in (path, n);
  if (n_known > 0) {
    const char *name = n == n_known + 1 ? path->pdata[n_known] : NULL;
    if (!name)
      python_pass (x->python, x->module, start);
    python_set_variable (x->python, name ? name_of (name) : NULL, item);
    return;
  }
  cJSON *holder = holder_of (x, path, n, start, &n_known);
  if (!set_last (x, holder, path->pdata[n - 1], item)) {
    cJSON *hole = python_is_open (item) ? cJSON_Duplicate (item, true) : python_hole (x, NULL, start);
    python_pass (x->python, x->module, start);
    open_whole (x, path, holder ? n - 1 : n_known, hole);
    cJSON_Delete (hole);
  }
  cJSON_Delete (item);
}

void
python_open_path (PythonPlace *x, const GPtrArray *path, guint n, const cJSON *hole, guint start)
{
  cJSON *whole = python_at_path (x, path, n);
  bool is_object = cJSON_IsObject (whole) || cJSON_IsArray (whole);
  if (is_object && path->len > n)
    python_make_hole (x->python, whole, hole);
  else
    python_set_path (x, path, n, cJSON_Duplicate (hole, true), start);
}

bool
python_is_change (const GPtrArray *path)
{
  static const char *const methods[]
      = { "append",  "extend", "update", "setdefault", "insert", "remove",  "pop",
          "popitem", "clear",  "sort",   "reverse",    "add",    "discard", NULL };
  const char *last = path->len > 1 ? path->pdata[path->len - 1] : NULL;
  return last && g_strv_contains (methods, last);
}

void
python_open_change (PythonPlace *x, const GPtrArray *path, guint start)
{
  cJSON *hole = python_hole (x, NULL, start);
  python_pass (x->python, x->module, start);
  python_open_path (x, path, path->len - 1, hole, start);
  cJSON_Delete (hole);
}
