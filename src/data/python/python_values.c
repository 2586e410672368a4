/* data/python/python_values.c — values of Python: what is open, what is true, what is a dictionary. */
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"

bool
python_is_open (const cJSON *item)
{
  return !item || (cJSON_IsString (item) && ls_shell_has_hole (item->valuestring));
}

PythonTruth
python_truth_of (const cJSON *item)
{
  if (python_is_open (item))
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

/* A key that is there keeps its place. */
void
python_set_key (cJSON *dictionary, const char *key, cJSON *item)
{
  if (cJSON_GetObjectItemCaseSensitive (dictionary, key))
    cJSON_ReplaceItemInObjectCaseSensitive (dictionary, key, item);
  else
    cJSON_AddItemToObject (dictionary, key, item);
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
