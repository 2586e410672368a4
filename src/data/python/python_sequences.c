/* data/python/python_sequences.c — what functions of Python give of lists, tuples, dictionaries and texts. */
#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"

static const cJSON *
argument (const cJSON *call, const char *place)
{
  return cJSON_GetObjectItemCaseSensitive (call, place);
}

/* Whether nothing is handed over by name but this. */
static bool
has_no_name_but (const cJSON *call, const char *name)
{
  for (const cJSON *item = call->child; item; item = item->next)
    if (strcmp (item->string, "()") != 0 && !g_ascii_isdigit (*item->string)
        && g_strcmp0 (item->string, name) != 0)
      return false;
  return true;
}

cJSON *
python_list_of (const cJSON *of)
{
  if (python_is_dictionary (of))
    return python_parts_of (of, PYTHON_KEYS);
  return cJSON_IsArray (of) && !python_is_kind (of, PYTHON_SET) ? cJSON_Duplicate (of, true) : NULL;
}

/* A list; NULL in the place of one: it is not known. */
static cJSON *
as_new (cJSON *list, int kind)
{
  if (list) {
    list->valueint = 0; /* it is another one */
    list->type = (list->type & ~(PYTHON_TUPLE | PYTHON_SET)) | kind;
  }
  return list;
}

static cJSON *
list (const cJSON *call)
{
  const cJSON *of = argument (call, "0");
  return as_new (of ? python_list_of (of) : cJSON_CreateArray (), 0);
}

static cJSON *
tuple (const cJSON *call)
{
  const cJSON *of = argument (call, "0");
  return as_new (of ? python_list_of (of) : cJSON_CreateArray (), PYTHON_TUPLE);
}

/* --- loops of several -------------------------------------------------------------------------------- */

/* zip (a, b): up to the end of the shortest. */
static cJSON *
zip (const cJSON *call)
{
  cJSON *all = cJSON_CreateArray (), *lists = cJSON_CreateArray ();
  bool is_known = has_no_name_but (call, NULL);
  for (const cJSON *item = call->child; item && is_known; item = item->next) {
    cJSON *one = strcmp (item->string, "()") == 0 ? NULL : python_list_of (item);
    is_known = one || strcmp (item->string, "()") == 0;
    if (one)
      cJSON_AddItemToArray (lists, one);
  }
  for (bool has_more = is_known && lists->child; has_more;) {
    cJSON *row = cJSON_CreateArray ();
    for (cJSON *one = lists->child; one && has_more; one = one->next) {
      has_more = one->child != NULL;
      if (has_more)
        cJSON_AddItemToArray (row, cJSON_DetachItemFromArray (one, 0));
    }
    if (has_more)
      cJSON_AddItemToArray (all, as_new (row, PYTHON_TUPLE));
    else
      cJSON_Delete (row);
  }
  cJSON_Delete (lists);
  if (!is_known)
    g_clear_pointer (&all, cJSON_Delete);
  return all;
}

/* enumerate (a, 1), enumerate (a, start=1). */
static cJSON *
enumerate (const cJSON *call)
{
  const cJSON *of = argument (call, "0"), *start = argument (call, "1");
  start = start ? start : argument (call, "start");
  cJSON *rest = of && (!start || cJSON_IsNumber (start)) && has_no_name_but (call, "start")
      ? python_list_of (of)
      : NULL,
        *all = rest ? cJSON_CreateArray () : NULL;
  double i = cJSON_IsNumber (start) ? start->valuedouble : 0;
  for (cJSON *item; rest && (item = cJSON_DetachItemFromArray (rest, 0)); i++) {
    cJSON *pair = cJSON_CreateArray ();
    cJSON_AddItemToArray (pair, cJSON_CreateNumber (i));
    cJSON_AddItemToArray (pair, item);
    cJSON_AddItemToArray (all, as_new (pair, PYTHON_TUPLE));
  }
  cJSON_Delete (rest);
  return all;
}

static cJSON *
reversed (const cJSON *call)
{
  const cJSON *of = argument (call, "0");
  cJSON *rest = of ? python_list_of (of) : NULL, *all = rest ? cJSON_CreateArray () : NULL;
  for (int n = cJSON_GetArraySize (rest); n > 0; n--)
    cJSON_AddItemToArray (all, cJSON_DetachItemFromArray (rest, n - 1));
  cJSON_Delete (rest);
  return all;
}

/* Whether a stands behind b; *is_known: both are numbers, or texts. */
static bool
is_behind (const cJSON *a, const cJSON *b, bool *is_known)
{
  bool are_texts = python_is_text (a) && python_is_text (b);
  *is_known = *is_known && (are_texts || (cJSON_IsNumber (a) && cJSON_IsNumber (b)));
  return are_texts ? strcmp (a->valuestring, b->valuestring) > 0
                   : *is_known && a->valuedouble > b->valuedouble;
}

/* Of numbers, or of texts; sets have no order of their own. */
static cJSON *
sorted (const cJSON *call)
{
  const cJSON *of = argument (call, "0"), *is_down = argument (call, "reverse");
  bool is_known = of && has_no_name_but (call, "reverse") && (!is_down || cJSON_IsBool (is_down))
      && !argument (call, "1");
  cJSON *rest = !is_known  ? NULL
      : cJSON_IsArray (of) ? cJSON_Duplicate (of, true)
                           : python_list_of (of),
        *all = rest ? cJSON_CreateArray () : NULL;
  g_autoptr (GPtrArray) in_order = g_ptr_array_new_with_free_func ((GDestroyNotify) cJSON_Delete);
  for (cJSON *item; rest && (item = cJSON_DetachItemFromArray (rest, 0));) {
    guint i = 0;
    is_known = is_known && (python_is_text (item) || cJSON_IsNumber (item));
    while (i < in_order->len
           && !(cJSON_IsTrue (is_down) ? is_behind (item, in_order->pdata[i], &is_known)
                                       : is_behind (in_order->pdata[i], item, &is_known)))
      i++;
    g_ptr_array_insert (in_order, (gint) i, item);
  }
  while (is_known && all && in_order->len > 0)
    cJSON_AddItemToArray (all, g_ptr_array_steal_index (in_order, 0));
  cJSON_Delete (rest);
  if (!is_known)
    g_clear_pointer (&all, cJSON_Delete);
  return all;
}

/* --- one value of many ------------------------------------------------------------------------------- */

static cJSON *
sum (const cJSON *call)
{
  const cJSON *of = argument (call, "0"), *start = argument (call, "1");
  double all = cJSON_IsNumber (start) ? start->valuedouble : 0;
  bool is_float = python_is_kind (start, PYTHON_FLOAT);
  if (!cJSON_IsArray (of) || (start && !cJSON_IsNumber (start)) || !has_no_name_but (call, NULL))
    return NULL;
  for (const cJSON *item = of->child; item; item = item->next) {
    if (!cJSON_IsNumber (item) && !cJSON_IsBool (item))
      return NULL;
    all += cJSON_IsBool (item) ? cJSON_IsTrue (item) : item->valuedouble;
    is_float = is_float || python_is_kind (item, PYTHON_FLOAT);
  }
  return python_number (all, is_float);
}

/* Whether one of them is true, or not all are. */
static cJSON *
decided (const cJSON *call, PythonTruth by)
{
  const cJSON *of = argument (call, "0");
  bool is_open = false;
  if (!cJSON_IsArray (of))
    return NULL;
  for (const cJSON *item = of->child; item; item = item->next) {
    PythonTruth truth = python_truth_of (item);
    if (truth == by)
      return cJSON_CreateBool (by == PYTHON_TRUE);
    is_open = is_open || truth == PYTHON_OPEN;
  }
  return is_open ? NULL : cJSON_CreateBool (by == PYTHON_FALSE);
}

static cJSON *
any (const cJSON *call)
{
  return decided (call, PYTHON_TRUE);
}

static cJSON *
all (const cJSON *call)
{
  return decided (call, PYTHON_FALSE);
}

static cJSON *
absolute (const cJSON *call)
{
  const cJSON *of = argument (call, "0");
  return cJSON_IsNumber (of) ? python_number (fabs (of->valuedouble), python_is_kind (of, PYTHON_FLOAT))
                             : NULL;
}

/* --- other objects like these ------------------------------------------------------------------------- */

/* The objects in it are others, too. */
static void
forget_identity (cJSON *item)
{
  for (; item; item = item->next) {
    if (cJSON_IsObject (item) || cJSON_IsArray (item))
      item->valueint = 0;
    forget_identity (item->child);
  }
}

static cJSON *
shallow_copy (const cJSON *call)
{
  const cJSON *of = argument (call, "0");
  cJSON *copy = cJSON_IsObject (of) || cJSON_IsArray (of) ? cJSON_Duplicate (of, true) : NULL;
  if (copy)
    copy->valueint = 0;
  return copy;
}

static cJSON *
deep_copy (const cJSON *call)
{
  cJSON *copy = shallow_copy (call);
  forget_identity (copy ? copy->child : NULL);
  return copy;
}

/* dict (a, b=1), of a dictionary or of pairs. */
static cJSON *
dictionary (const cJSON *call)
{
  const cJSON *of = argument (call, "0");
  cJSON *made = python_is_dictionary (of) ? cJSON_Duplicate (of, true) : cJSON_CreateObject ();
  bool is_known = !argument (call, "1") && (!of || cJSON_IsArray (of) || python_is_dictionary (of));
  made->valueint = 0;
  cJSON_DeleteItemFromObjectCaseSensitive (made, "()");
  for (const cJSON *pair = cJSON_IsArray (of) ? of->child : NULL; pair && is_known; pair = pair->next) {
    g_autofree char *key = cJSON_GetArraySize (pair) == 2 ? python_key_of (pair->child) : NULL;
    is_known = cJSON_IsArray (pair) && key;
    if (is_known)
      python_set_key (made, key, cJSON_Duplicate (pair->child->next, true));
  }
  for (const cJSON *item = call->child; item; item = item->next)
    if (strcmp (item->string, "()") != 0 && !g_ascii_isdigit (*item->string))
      python_set_key (made, item->string, cJSON_Duplicate (item, true));
  if (!is_known)
    g_clear_pointer (&made, cJSON_Delete);
  return made;
}

/* vars (args), of what argparse makes. */
static cJSON *
members_of (const cJSON *call)
{
  const cJSON *of = argument (call, "0"), *made = cJSON_IsObject (of) ? argument (of, "()") : NULL;
  bool is_known = cJSON_IsString (made) && strcmp (made->valuestring, "Namespace") == 0;
  cJSON *members = is_known ? cJSON_Duplicate (of, true) : NULL;
  cJSON_DeleteItemFromObjectCaseSensitive (members, "()");
  return as_new (members, 0);
}

/* --- which one ---------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  cJSON *(*make) (const cJSON *call); /* NULL: that is not known */
} functions[] = { { "list", list },
                  { "tuple", tuple },
                  { "zip", zip },
                  { "enumerate", enumerate },
                  { "reversed", reversed },
                  { "sorted", sorted },
                  { "sum", sum },
                  { "any", any },
                  { "all", all },
                  { "abs", absolute },
                  { "copy.copy", shallow_copy },
                  { "copy.deepcopy", deep_copy },
                  { "deepcopy", deep_copy },
                  { "dict", dictionary },
                  { "vars", members_of } };

PythonMake *
python_sequence_function (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (functions); i++)
    if (strcmp (name, functions[i].name) == 0)
      return functions[i].make;
  return NULL;
}
