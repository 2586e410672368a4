/* data/python/python_files.c — files of Python that import from each other: what a name means in one; and the
 * variables of the environment. */
#include <string.h>

#include "data/python/python_parts.h"

/* --- files -------------------------------------------------------------------------------------------- */

/* "from a.b.c import f as g": g of the importing file. */
typedef struct {
  char *module, *name;
  bool is_asked; /* it is being looked for, or was in vain */
} Import;

static void
import_free (gpointer data)
{
  Import *import = data;
  g_free (import->module);
  g_free (import->name);
  g_free (import);
}

void
python_module_clear (gpointer data)
{
  PythonModule *m = data;
  g_free (m->path);
  g_hash_table_unref (m->values);
  g_hash_table_unref (m->imports);
  g_ptr_array_unref (m->imported);
}

guint
python_add_module (LsPython *p, const char *path)
{
  PythonModule m = {
    .path = g_strdup (path),
    .values = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
    .imports = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, import_free),
    .imported = g_ptr_array_new_with_free_func (g_free),
  };
  g_array_append_val (p->modules, m);
  return p->modules->len - 1;
}

PythonModule *
python_module (const LsPython *p, guint i)
{
  return &g_array_index (p->modules, PythonModule, i);
}

/* The dotted name behind "from", and where "import" is. */
static char *
read_module (const PythonToken *t, guint n, guint *ret_at)
{
  g_autoptr (GString) name = g_string_new (NULL);
  guint i = 1;
  for (; i < n && !python_is (&t[i], "import"); i++)
    g_string_append_len (name, t[i].at, (gssize) t[i].n);
  *ret_at = i;
  return g_string_free (g_steal_pointer (&name), FALSE);
}

void
python_add_imports (LsPython *p, const PythonLine *line)
{
  const PythonToken *t = python_first (p, line);
  PythonModule *m = python_module (p, line->module);
  guint i;
  if (!python_is (t, "from"))
    return;
  g_autofree char *module = read_module (t, line->n, &i);
  g_ptr_array_add (m->imported, g_strdup (module));
  for (i++; i < line->n; i++) {
    if (t[i].kind != PYTHON_NAME)
      continue;
    bool has_alias = i + 2 < line->n && python_is (&t[i + 1], "as") && t[i + 2].kind == PYTHON_NAME;
    Import *import = g_new0 (Import, 1);
    import->module = g_strdup (module);
    import->name = python_word (&t[i]);
    g_hash_table_insert (m->imports, python_word (has_alias ? &t[i + 2] : &t[i]), import);
    i += has_alias ? 2 : 0;
  }
}

/* How many of the last parts of "a.b.c" the path "x/b/c.py" ends with. */
static guint
n_alike (const char *path, const char *module)
{
  g_autofree char *plain = g_strndup (path, strlen (path) - (g_str_has_suffix (path, ".py") ? 3 : 0));
  g_auto (GStrv) folders = g_strsplit (plain, "/", -1), parts = g_strsplit (module, ".", -1);
  guint n_folders = g_strv_length (folders), n_parts = g_strv_length (parts), n = 0;
  n_folders -= n_folders > 1 && strcmp (folders[n_folders - 1], "__init__") == 0;
  while (n < n_folders && n < n_parts && *parts[n_parts - 1 - n]
         && strcmp (folders[n_folders - 1 - n], parts[n_parts - 1 - n]) == 0)
    n++;
  return n;
}

/* --- what a name means -------------------------------------------------------------------------------- */

static PythonValue *value_in (LsPython *p, guint module, const char *name);

/* Of the other file that an import most likely is for, of those in which the name means something. */
static PythonValue *
imported (LsPython *p, guint module, const char *name)
{
  Import *import = g_hash_table_lookup (python_module (p, module)->imports, name);
  PythonValue *best = NULL;
  guint most = 0;
  if (!import || import->is_asked)
    return NULL;
  import->is_asked = true;
  for (guint i = 0; i < p->modules->len; i++) {
    guint n = i == module ? 0 : 1 + n_alike (python_module (p, i)->path, import->module);
    PythonValue *value = n >= MAX (most, 1) ? value_in (p, i, import->name) : NULL;
    best = value ? value : best;
    most = value ? n : most;
  }
  import->is_asked = best == NULL;
  if (best)
    g_hash_table_insert (python_module (p, module)->values, g_strdup (name), best);
  return best;
}

/* What a file sets a name to, or imports. */
static PythonValue *
value_in (LsPython *p, guint module, const char *name)
{
  python_run_module (p, module);
  PythonValue *value = g_hash_table_lookup (python_module (p, module)->values, name);
  return value ? value : imported (p, module, name);
}

PythonValue *
python_lookup (const PythonPlace *x, const char *name)
{
  LsPython *p = x->python;
  PythonValue *value = x->names ? g_hash_table_lookup (x->names, name) : NULL;
  value = value ? value : value_in (p, x->module, name);
  /* of "from m import *", of what is known of the program */
  for (guint i = p->modules->len; !value && i-- > 0;)
    value = i != x->module ? g_hash_table_lookup (python_module (p, i)->values, name) : NULL;
  return value;
}

/* --- the environment ---------------------------------------------------------------------------------- */

void
python_set_variable (LsPython *p, const PythonValue *name, PythonValue *value)
{
  if (name->kind == PYTHON_IS_TEXT)
    g_hash_table_insert (p->set_variables, g_strdup (name->text), value);
  else
    p->is_environment_open = true;
}

PythonValue *
python_variable (LsPython *p, const PythonValue *name, bool *ret_is_open)
{
  bool is_known = p->variable && name->kind == PYTHON_IS_TEXT && !p->is_environment_open;
  PythonValue *set = is_known ? g_hash_table_lookup (p->set_variables, name->text) : NULL;
  *ret_is_open = !is_known || (set && set->kind != PYTHON_IS_TEXT);
  if (*ret_is_open || set)
    return set;
  const char *outside = p->variable (name->text, p->variable_data);
  return outside ? python_text (p, outside) : NULL;
}

void
ls_python_add_variables (const LsPython *p, GHashTable *variables)
{
  GHashTableIter iter;
  gpointer name, value;
  for (g_hash_table_iter_init (&iter, p->set_variables); g_hash_table_iter_next (&iter, &name, &value);) {
    cJSON *item = python_json ((LsPython *) p, value);
    if (cJSON_IsString (item))
      g_hash_table_replace (variables, g_strdup (name), g_strdup (item->valuestring));
    cJSON_Delete (item);
  }
}

void
ls_python_set_environment (LsPython *p, LsPythonVariable *variable, gpointer data)
{
  p->variable = variable;
  p->variable_data = data;
}
