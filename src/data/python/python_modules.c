/* data/python/python_modules.c — files of Python that import from each other: what a name means in
 * one, and where its function begins. */
#include <string.h>

#include "data/python/python_parts.h"

/* --- what a name means in a file ---------------------------------------------------------------------- */

/* "from a.b.c import f as g": g of the importing file. */
typedef struct {
  char *module, *name;
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
    .values = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) cJSON_Delete),
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
  static const char *const from[] = { "from", NULL };
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
  PythonModule *m = python_module (p, line->module);
  guint i;
  if (!python_starts (p, line, from))
    return;
  g_autofree char *module = read_module (t, line->n, &i);
  g_ptr_array_add (m->imported, g_strdup (module));
  for (i++; i < line->n; i++) {
    if (t[i].kind != PYTHON_NAME)
      continue;
    bool has_alias = i + 2 < line->n && python_is (&t[i + 1], "as") && t[i + 2].kind == PYTHON_NAME;
    const PythonToken *here = has_alias ? &t[i + 2] : &t[i];
    Import *import = g_new0 (Import, 1);
    import->module = g_strdup (module);
    import->name = g_strndup (t[i].at, t[i].n);
    g_hash_table_insert (m->imports, g_strndup (here->at, here->n), import);
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

/* The other file that an import most likely is for, of those in which the name means something; n: none. */
static guint
find_module (const LsPython *p, guint from, const Import *import,
             bool has (const LsPython *, guint, const char *))
{
  guint best = p->modules->len, most = 0;
  for (guint i = 0; i < p->modules->len; i++) {
    guint n = i == from ? 0 : 1 + n_alike (python_module (p, i)->path, import->module);
    bool has_it = n >= MAX (most, 1)
        && (has (p, i, import->name) || g_hash_table_contains (python_module (p, i)->imports, import->name));
    best = has_it ? i : best;
    most = has_it ? n : most;
  }
  return best;
}

guint
python_follow (const LsPython *p, guint module, const char **name,
               bool has (const LsPython *, guint, const char *))
{
  for (guint n = 0; n <= p->modules->len && module < p->modules->len && !has (p, module, *name); n++) {
    const Import *import = g_hash_table_lookup (python_module (p, module)->imports, *name);
    if (!import)
      return p->modules->len;
    module = find_module (p, module, import, has);
    *name = import->name;
  }
  return module < p->modules->len && has (p, module, *name) ? module : p->modules->len;
}

/* Whether a function is being called: "from m import f as g" does not mean the f that calls g. */
static bool
is_running (const LsPython *p, guint line)
{
  for (guint i = 0; i < p->running->len; i++)
    if (g_array_index (p->running, guint, i) == line)
      return true;
  return false;
}

guint
python_find_function (const LsPython *p, guint module, const char *name)
{
  const char *there = name;
  guint m = python_follow (p, module, &there, python_defines);
  if (m < p->modules->len)
    return python_function_line (p, m, there);
  /* of "from m import *", of what is known of the program, pasted */
  for (guint i = p->modules->len; i-- > 0;) {
    guint line
        = i != module || strcmp (there, name) != 0 ? python_function_line (p, i, there) : p->lines->len;
    if (line < p->lines->len && !is_running (p, line))
      return line;
  }
  return p->lines->len;
}

static bool
sets (const LsPython *p, guint module, const char *name)
{
  return g_hash_table_contains (python_module (p, module)->values, name);
}

cJSON *
python_imported_value (const LsPython *p, guint module, const char *name)
{
  const char *there = name;
  guint m = python_follow (p, module, &there, sets);
  for (guint i = p->modules->len; m == p->modules->len && i-- > 0;)
    if (i != module && sets (p, i, there))
      m = i;
  return m < p->modules->len ? g_hash_table_lookup (python_module (p, m)->values, there) : NULL;
}

/* --- functions ---------------------------------------------------------------------------------------- */

/* Behind the "(" of its parameters, a token, where one begins in this line; 0: none does. */
guint
python_parameters_of (const LsPython *p, const PythonLine *line)
{
  static const char *const defines[] = { "def", NULL };
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
  bool is_one = line->indent == 0 && line->n >= 5 && python_starts (p, line, defines)
      && t[1].kind == PYTHON_NAME && python_is (&t[2], "(");
  return is_one ? line->first + 3 : 0;
}

/* Passes over a parameter's type, or over its usual value. */
void
python_pass_type (PythonPlace *x)
{
  for (int depth = 0; python_token (x)->kind != PYTHON_END; x->at++) {
    const PythonToken *t = python_token (x);
    if (depth == 0 && (python_is (t, "=") || python_is (t, ",") || python_is (t, ")")))
      return;
    depth += python_is (t, "[") || python_is (t, "(") || python_is (t, "{");
    depth -= python_is (t, "]") || python_is (t, ")") || python_is (t, "}");
  }
}

char *
python_function_of (LsPython *p, const PythonLine *line)
{
  guint at = python_parameters_of (p, line);
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
  PythonPlace x = { .python = p, .module = line->module, .at = at };
  while (at > 0 && !python_is (python_token (&x), ")")) {
    bool is_rest = python_take (&x, "**") || python_take (&x, "*") || python_take (&x, "/");
    python_pass_type (&x);
    if (!python_take (&x, "=") && !is_rest)
      return NULL;
    python_pass_type (&x);
    if (!python_take (&x, ",") && !python_is (python_token (&x), ")"))
      return NULL;
  }
  return at > 0 ? g_strndup (t[1].at, t[1].n) : NULL;
}

guint
python_function_line (const LsPython *p, guint module, const char *name)
{
  for (guint i = p->lines->len; i-- > 0;) {
    const PythonLine *line = python_line (p, i);
    const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
    if (line->module == module && python_parameters_of (p, line) > 0 && t[1].n == strlen (name)
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
