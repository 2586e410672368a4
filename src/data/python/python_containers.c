/* data/python/python_containers.c — lists, tuples and dictionaries: how they are made, and what is taken of
 * them. */
#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"

static void
count_items (PythonPlace *x, const cJSON *item)
{
  for (; item; item = item->next) {
    x->python->n_items++;
    count_items (x, item->child);
  }
}

PythonValue
python_copy_of (PythonPlace *x, const cJSON *item)
{
  cJSON *copy = cJSON_Duplicate (item, true);
  count_items (x, copy->child);
  return python_value_of (x, copy);
}

/* The members of a dictionary, "**kwargs", as arguments by name or members. */
void
python_spread (PythonPlace *x, cJSON *to, const cJSON *object)
{
  for (const cJSON *item = object->child; item; item = item->next)
    if (strcmp (item->string, "()") != 0 && !g_ascii_isdigit (*item->string))
      python_set_key (to, item->string, python_item_of (x, python_copy_of (x, item)));
}

/* --- lists and tuples ------------------------------------------------------------------------------- */

bool
python_add_item (PythonPlace *x, cJSON *list)
{
  if (!python_take (x, "*")) {
    cJSON_AddItemToArray (list, python_item_of (x, python_any (x)));
    return true;
  }
  PythonValue v = python_any (x);
  bool is_known = cJSON_IsArray (v.item);
  for (const cJSON *item = is_known ? v.item->child : NULL; item; item = item->next)
    cJSON_AddItemToArray (list, python_item_of (x, python_copy_of (x, item)));
  python_drop (v);
  return is_known;
}

/* What a name meant before, set back; NULL: nothing. */
static void
set_back (GHashTable *names, const char *name, char *key, cJSON *value)
{
  if (key)
    g_hash_table_insert (names, key, value);
  else
    g_hash_table_remove (names, name);
}

/* "f (a) for a in b", of which f (a) begins at a token and "for" stands here, up to `end`: of a list that is
 * known. NULL: it is something else, and nothing is passed over. */
static cJSON *
made_of_each (PythonPlace *x, guint body, const char *end, guint n_passed)
{
  PythonPlace at = *x;
  GHashTable *names = x->names ? x->names : python_module (x->python, x->module)->values;
  at.at++;
  g_autofree char *name = g_strndup (python_token (&at)->at, python_token (&at)->n);
  bool is_name = python_token (&at)->kind == PYTHON_NAME;
  at.at++;
  if (!is_name || !python_take (&at, "in"))
    return NULL;
  PythonValue from = python_operand (&at);
  if (!cJSON_IsArray (from.item) || !python_is (python_token (&at), end)) {
    python_drop (from);
    return NULL;
  }
  gpointer key = NULL, before = NULL;
  g_hash_table_steal_extended (names, name, &key, &before);
  python_forget_passed (x->python, n_passed);
  cJSON *list = cJSON_CreateArray ();
  for (const cJSON *item = from.item->child; item && !x->python->why; item = item->next) {
    PythonPlace one = *x;
    one.at = body;
    g_hash_table_insert (names, g_strdup (name), python_item_of (x, python_copy_of (x, item)));
    python_add_item (&one, list);
  }
  set_back (names, name, key, before);
  python_drop (from);
  x->at = at.at;
  return list;
}

PythonValue
python_items (PythonPlace *x, const char *end, bool is_tuple)
{
  guint first = x->at - 1, n_passed = x->python->passed->len;
  cJSON *list = cJSON_CreateArray ();
  bool has_comma = false, is_made = false, is_known = true;
  while (!python_is (python_token (x), end) && python_token (x)->kind != PYTHON_END && !x->python->why
         && !is_made) {
    is_known = python_add_item (x, list) && is_known;
    is_made = python_is (python_token (x), "for") || python_is (python_token (x), "async");
    if (!is_made && !python_take (x, ","))
      break;
    has_comma = !is_made;
  }
  cJSON *made = is_made && !has_comma && *end == ']' ? made_of_each (x, first + 1, end, n_passed) : NULL;
  if (made) {
    cJSON_Delete (list);
    list = made;
    is_made = false;
  }
  if (is_made)
    python_pass_to (x, end);
  python_expect (x, end);
  if (is_made || !is_known)
    return python_hole_of (x, (PythonValue) { .item = list }, first);
  if (is_tuple && !has_comma && cJSON_GetArraySize (list) == 1) {
    PythonValue only = { .item = cJSON_DetachItemFromArray (list, 0) };
    cJSON_Delete (list);
    return only;
  }
  list->type |= is_tuple ? PYTHON_TUPLE : 0;
  return python_value_of (x, list);
}

/* --- dictionaries ----------------------------------------------------------------------------------- */

/* "a: 1" or "**b" of a dictionary. False: it is not known. */
static bool
entry (PythonPlace *x, cJSON *object)
{
  bool is_spread = python_take (x, "**");
  PythonValue key = python_any (x);
  g_autofree char *name = is_spread ? NULL : python_key_of (key.item);
  bool is_known = is_spread ? python_is_dictionary (key.item) : name && python_take (x, ":");
  if (is_known && is_spread)
    python_spread (x, object, key.item);
  else if (is_known)
    python_set_key (object, name, python_item_of (x, python_any (x)));
  python_drop (key);
  return is_known && (python_take (x, ",") || python_is (python_token (x), "}"));
}

PythonValue
python_dictionary (PythonPlace *x)
{
  guint first = x->at - 1;
  cJSON *object = cJSON_CreateObject ();
  bool is_plain = true;
  while (!python_is (python_token (x), "}") && python_token (x)->kind != PYTHON_END && !x->python->why
         && is_plain)
    is_plain = entry (x, object);
  python_pass_to (x, "}");
  python_expect (x, "}");
  return is_plain ? python_value_of (x, object) : python_hole_of (x, (PythonValue) { .item = object }, first);
}

/* --- what is taken of them -------------------------------------------------------------------------- */

/* NULL: it is not there, or that is not known. */
static const cJSON *
at_key (const cJSON *of, const cJSON *key)
{
  g_autofree char *name = cJSON_IsObject (of) ? python_key_of (key) : NULL;
  if (name)
    return cJSON_GetObjectItemCaseSensitive (of, name);
  if (!cJSON_IsArray (of) || !cJSON_IsNumber (key) || key->valuedouble != floor (key->valuedouble)
      || fabs (key->valuedouble) > G_MAXINT)
    return NULL;
  int n = cJSON_GetArraySize (of), i = (int) key->valuedouble;
  return cJSON_GetArrayItem (of, i < 0 && i >= -n ? i + n : i);
}

cJSON *
python_key (PythonPlace *x)
{
  const PythonToken *t = python_token (x);
  bool is_key = t->kind == PYTHON_TEXT || t->kind == PYTHON_NUMBER || t->kind == PYTHON_NAME
      || python_is (t, "(") || python_is (t, "-");
  cJSON *key = is_key ? python_tuple (x) : NULL;
  if (!python_is (python_token (x), "]"))
    g_clear_pointer (&key, cJSON_Delete);
  python_pass_to (x, "]");
  python_expect (x, "]");
  return key;
}

PythonValue
python_subscript (PythonPlace *x, PythonValue v, guint first)
{
  bool is_environment = v.name && python_is_environment (x->python, v.name),
       is_of = is_environment || python_is_dictionary (v.item) || cJSON_IsArray (v.item);
  if (!is_of) {
    python_pass_to (x, "]");
    python_expect (x, "]");
    return python_hole_of (x, v, first);
  }
  cJSON *key = python_key (x), *variable = is_environment ? python_variable (x->python, key) : NULL;
  const cJSON *item = is_environment ? NULL : at_key (v.item, key);
  PythonValue part = item ? python_copy_of (x, item) : (PythonValue) { .item = variable };
  cJSON_Delete (key);
  if (!part.item)
    return python_hole_of (x, v, first);
  python_drop (v);
  return part;
}
