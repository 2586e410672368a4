/* data/python/python_values.c — values of Python: what is open, what is true, what is a dictionary. */
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"

bool
python_is_open (const cJSON *item)
{
  return !item || (cJSON_IsString (item) && ls_shell_has_hole (item->valuestring));
}

bool
python_is_text (const cJSON *item)
{
  return cJSON_IsString (item) && item->valueint == 0 && !ls_shell_has_hole (item->valuestring);
}

/* Whether "a.b.C" is called as classes are. */
static bool
is_class (const char *name)
{
  const char *dot = strrchr (name, '.');
  return g_ascii_isupper (dot ? dot[1] : *name) && !ls_shell_has_hole (name);
}

bool
python_is_unknown (const cJSON *item)
{
  const cJSON *made = cJSON_IsObject (item) ? cJSON_GetObjectItemCaseSensitive (item, "()") : NULL;
  return made ? !python_is_dictionary (item) && !(cJSON_IsString (made) && is_class (made->valuestring))
              : python_is_open (item) || (cJSON_IsString (item) && item->valueint > 0);
}

PythonTruth
python_truth_of (const cJSON *item)
{
  if (python_is_unknown (item))
    return PYTHON_OPEN;
  bool is_true = cJSON_IsBool (item) ? cJSON_IsTrue (item)
      : cJSON_IsNumber (item)        ? item->valuedouble != 0
      : cJSON_IsString (item)        ? *item->valuestring != '\0'
                                     : item->child != NULL;
  return is_true ? PYTHON_TRUE : PYTHON_FALSE;
}

bool
python_holds_open (const cJSON *item)
{
  if (python_is_open (item))
    return true;
  for (const cJSON *one = item->child; one; one = one->next)
    if (python_holds_open (one))
      return true;
  return false;
}

/* --- numbers, tuples and sets ------------------------------------------------------------------------ */

cJSON *
python_number (double value, bool is_float)
{
  cJSON *number = cJSON_CreateNumber (value);
  number->type |= is_float ? PYTHON_FLOAT : 0;
  return number;
}

bool
python_is_kind (const cJSON *item, PythonKind kind)
{
  return item && (item->type & (int) kind) != 0;
}

/* --- what is alike ----------------------------------------------------------------------------------- */

/* Of names, which of one class, "A.x" and "A.y", are alike where they are called alike. */
static PythonTruth
is_same_name (const cJSON *a, const cJSON *b)
{
  bool are_names = cJSON_IsString (a) && cJSON_IsString (b) && a->valueint > 0 && b->valueint > 0
      && !python_is_open (a) && !python_is_open (b);
  if (!are_names)
    return PYTHON_OPEN;
  if (strcmp (a->valuestring, b->valuestring) == 0)
    return PYTHON_TRUE;
  const char *dot = strrchr (a->valuestring, '.');
  gsize n = dot ? (gsize) (dot - a->valuestring) + 1 : 0;
  return n > 0 && strncmp (a->valuestring, b->valuestring, n) == 0 && !strchr (b->valuestring + n, '.')
      ? PYTHON_FALSE
      : PYTHON_OPEN;
}

static bool
is_number (const cJSON *item)
{
  return cJSON_IsNumber (item) || cJSON_IsBool (item);
}

static double
value_of (const cJSON *item)
{
  return cJSON_IsBool (item) ? cJSON_IsTrue (item) : item->valuedouble;
}

static PythonTruth
are_same_lists (const cJSON *a, const cJSON *b)
{
  PythonTruth truth = cJSON_GetArraySize (a) == cJSON_GetArraySize (b) ? PYTHON_TRUE : PYTHON_FALSE;
  if (python_is_kind (a, PYTHON_SET) || python_is_kind (b, PYTHON_SET))
    return PYTHON_OPEN;
  if (python_is_kind (a, PYTHON_TUPLE) != python_is_kind (b, PYTHON_TUPLE))
    return PYTHON_FALSE;
  const cJSON *x = a->child, *y = b->child;
  for (; x && y && truth != PYTHON_FALSE; x = x->next, y = y->next) {
    PythonTruth part = python_is_same (x, y);
    truth = part == PYTHON_TRUE ? truth : part;
  }
  return truth;
}

PythonTruth
python_is_same (const cJSON *a, const cJSON *b)
{
  if (python_is_unknown (a) || python_is_unknown (b))
    return is_same_name (a, b);
  if (is_number (a) && is_number (b))
    return value_of (a) == value_of (b) ? PYTHON_TRUE : PYTHON_FALSE;
  if (cJSON_IsArray (a) && cJSON_IsArray (b))
    return are_same_lists (a, b);
  if (python_holds_open (a) || python_holds_open (b))
    return PYTHON_OPEN;
  return cJSON_Compare (a, b, true) ? PYTHON_TRUE : PYTHON_FALSE;
}

/* --- dictionaries and members ------------------------------------------------------------------------ */

bool
python_is_dictionary (const cJSON *item)
{
  const cJSON *made = cJSON_IsObject (item) ? cJSON_GetObjectItemCaseSensitive (item, "()") : NULL;
  return cJSON_IsObject (item) && (!cJSON_IsString (made) || strcmp (made->valuestring, "dict") == 0);
}

char *
python_key_of (const cJSON *key)
{
  bool is_empty = cJSON_IsArray (key) && !key->child; /* "()" is what makes an object */
  if (!key || is_empty || cJSON_IsObject (key) || python_holds_open (key))
    return NULL;
  if (cJSON_IsString (key))
    return g_strdup (key->valuestring);
  if (cJSON_IsBool (key)) /* is the same key as 1 or 0 */
    return g_strdup (cJSON_IsTrue (key) ? "(1)" : "(0)");
  char *json = cJSON_PrintUnformatted (key);
  gsize n = strlen (json);
  char *text = cJSON_IsArray (key) ? g_strdup_printf ("(%.*s)", (int) n - 2, json + 1)
                                   : g_strdup_printf ("(%s)", json);
  cJSON_free (json);
  return text;
}

PythonTruth
python_has_key (const cJSON *dictionary, const cJSON *key)
{
  g_autofree char *name = python_key_of (key);
  if (!name || !python_is_dictionary (dictionary))
    return PYTHON_OPEN;
  return cJSON_GetObjectItemCaseSensitive (dictionary, name) ? PYTHON_TRUE : PYTHON_FALSE;
}

void
python_set_member (cJSON *object, const char *name, cJSON *item)
{
  cJSON_DeleteItemFromObjectCaseSensitive (object, name);
  cJSON_AddItemToObject (object, name, item);
}

cJSON *
python_taken (cJSON *object, const char *name)
{
  cJSON *member = cJSON_DetachItemFromObjectCaseSensitive (object, name);
  cJSON_Delete (object);
  return member;
}

/* A key that is there keeps its place. */
void
python_set_key (cJSON *dictionary, const char *key, cJSON *item)
{
  if (cJSON_GetObjectItemCaseSensitive (dictionary, key))
    cJSON_ReplaceItemInObjectCaseSensitive (dictionary, key, item);
  else
    cJSON_AddItemToObject (dictionary, key, item);
}

cJSON *
python_item_at (const cJSON *list, const char *key)
{
  char *end;
  gint64 n = cJSON_GetArraySize (list), i = *key == '(' ? g_ascii_strtoll (key + 1, &end, 10) : n;
  if (i == n || strcmp (end, ")") != 0 || i < -n || i > n)
    return NULL;
  return cJSON_GetArrayItem (list, (int) (i < 0 ? i + n : i));
}

void
python_set_item (cJSON *list, const char *key, cJSON *item)
{
  cJSON_ReplaceItemViaPointer (list, python_item_at (list, key), item);
}

static cJSON *
pair_of (const cJSON *member)
{
  cJSON *pair = cJSON_CreateArray ();
  cJSON_AddItemToArray (pair, cJSON_CreateString (member->string));
  cJSON_AddItemToArray (pair, cJSON_Duplicate (member, true));
  return pair;
}

cJSON *
python_parts_of (const cJSON *dictionary, PythonDictionaryPart part)
{
  cJSON *all = cJSON_CreateArray ();
  bool is_call = cJSON_HasObjectItem (dictionary, "()");
  for (const cJSON *one = dictionary->child; one; one = one->next) {
    if (strcmp (one->string, "()") == 0)
      continue;
    if (*one->string == '(' || (is_call && g_ascii_isdigit (*one->string))) {
      cJSON_Delete (all);
      return NULL;
    }
    cJSON_AddItemToArray (all,
                          part == PYTHON_KEYS         ? cJSON_CreateString (one->string)
                              : part == PYTHON_VALUES ? cJSON_Duplicate (one, true)
                                                      : pair_of (one));
  }
  return all;
}
