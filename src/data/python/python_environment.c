/* data/python/python_environment.c — the variables of the environment, and what a file sets them to. */
#include <string.h>

#include "data/python/python_parts.h"

bool
python_is_environment (const LsPython *p, const char *name)
{
  return p->variable && strcmp (name, "os.environ") == 0;
}

bool
python_asks_environment (const LsPython *p, const char *name)
{
  return p->variable && (strcmp (name, "os.environ.get") == 0 || strcmp (name, "os.getenv") == 0);
}

/* --- what is set ------------------------------------------------------------------------------------- */

guint
python_environment_in (const GPtrArray *path, guint n)
{
  bool is_it = n >= 2 && g_strcmp0 (path->pdata[0], "os") == 0 && g_strcmp0 (path->pdata[1], "environ") == 0;
  return is_it ? 2 : 0;
}

void
python_set_variable (LsPython *p, const char *name, cJSON *value)
{
  if (name)
    g_hash_table_insert (p->set_variables, g_strdup (name), value);
  else {
    cJSON_Delete (value);
    p->is_environment_open = true;
  }
}

void
python_forget_variables (LsPython *p)
{
  g_hash_table_remove_all (p->set_variables);
  p->is_environment_open = false;
}

/* --- what is asked for ------------------------------------------------------------------------------- */

/* What nobody knows outside is taken as not set. */
static const char *
outside (const LsPython *p, const char *name)
{
  return p->variable ? p->variable (name, p->variable_data) : NULL;
}

cJSON *
python_variable (const LsPython *p, const cJSON *name)
{
  if (!python_is_text (name) || p->is_environment_open)
    return NULL;
  const cJSON *set = g_hash_table_lookup (p->set_variables, name->valuestring);
  if (set)
    return python_is_text (set) ? cJSON_Duplicate (set, true) : NULL;
  const char *value = outside (p, name->valuestring);
  return value ? cJSON_CreateString (value) : NULL;
}

PythonTruth
python_has_variable (const LsPython *p, const cJSON *name)
{
  if (!python_is_text (name) || p->is_environment_open)
    return PYTHON_OPEN;
  const cJSON *set = g_hash_table_lookup (p->set_variables, name->valuestring);
  if (set)
    return cJSON_IsNull (set) ? PYTHON_FALSE : python_is_text (set) ? PYTHON_TRUE : PYTHON_OPEN;
  return outside (p, name->valuestring) ? PYTHON_TRUE : PYTHON_FALSE;
}

cJSON *
python_variable_or (const LsPython *p, const cJSON *call)
{
  const cJSON *name = cJSON_GetObjectItemCaseSensitive (call, "0"),
              *usual = cJSON_GetObjectItemCaseSensitive (call, "1");
  usual = usual ? usual : cJSON_GetObjectItemCaseSensitive (call, "default");
  PythonTruth truth = python_has_variable (p, name);
  if (truth == PYTHON_OPEN)
    return NULL;
  return truth == PYTHON_TRUE ? python_variable (p, name)
      : usual                 ? cJSON_Duplicate (usual, true)
                              : cJSON_CreateNull ();
}

void
ls_python_add_variables (const LsPython *p, GHashTable *variables)
{
  GHashTableIter iter;
  gpointer name, value;
  for (g_hash_table_iter_init (&iter, p->set_variables); g_hash_table_iter_next (&iter, &name, &value);)
    if (cJSON_IsString (value))
      g_hash_table_replace (variables, g_strdup (name), g_strdup (((const cJSON *) value)->valuestring));
    else
      g_hash_table_remove (variables, name);
}
