/* data/python/python_classes.c — classes of a file: what is set in their bodies is what their objects have,
 *
 *     @dataclass
 *     class Small (Base):
 *         layers: int = 32
 *         sizes: list = field (default_factory=list)
 *
 * behind what bases have that are here too, where a call says nothing else. Of a class that has a constructor
 * of its own, or what else runs when an object is made and sets members of it, these are not known. */
#include <string.h>

#include "data/python/python_run.h"

#define MAX_CLASSES 8 /* within each other; one that makes another of itself has no end */

/* The line of "class NAME" at the start of a line of a file; n lines: there is none. */
static guint
class_line (const LsPython *p, guint module, const char *name)
{
  for (guint i = p->lines->len; i-- > 0;) {
    const PythonLine *line = python_line (p, i);
    const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
    if (line->module == module && line->indent == 0 && line->n > 2 && python_is (t, "class")
        && python_is (t + 1, name))
      return i;
  }
  return p->lines->len;
}

static bool
has_class (const LsPython *p, guint module, const char *name)
{
  return class_line (p, module, name) < p->lines->len;
}

/* field (default=1) is 1, field (default_factory=lambda: [1]) is a list; of another factory it is not known.
 * */
static cJSON *
usual_of (const LsPython *p, GHashTable *names, const PythonLine *line, const cJSON *item)
{
  const cJSON *made = cJSON_IsObject (item) ? cJSON_GetObjectItemCaseSensitive (item, "()") : NULL,
              *usual = made ? cJSON_GetObjectItemCaseSensitive (item, "default") : NULL,
              *factory = made ? cJSON_GetObjectItemCaseSensitive (item, "default_factory") : NULL;
  usual = usual ? usual : cJSON_GetObjectItemCaseSensitive (factory, "value");
  if (!made || !g_str_has_suffix (made->valuestring, "field"))
    return cJSON_Duplicate (item, true);
  PythonPlace x = { .python = (LsPython *) p, .names = names, .module = line->module, .at = line->first + 2 };
  return usual ? cJSON_Duplicate (usual, true) : python_hole (&x, NULL, line->first);
}

/* "self.a = 1" in the functions of a class: a is not known. */
typedef struct {
  cJSON *object, *hole;
} Inside;

static void
open_member (PythonPlace *x, const GPtrArray *path, guint n, gpointer data)
{
  const Inside *inside = data;
  (void) x;
  if (path->len > 1 && n > 1 && path->pdata[1] && strcmp (path->pdata[0], "self") == 0)
    python_set_key (inside->object, path->pdata[1], cJSON_Duplicate (inside->hole, true));
}

/* A function in a body that runs when an object is made. */
static bool
is_constructor (const LsPython *p, guint i, const char *name)
{
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, python_line (p, i)->first);
  return python_is (t, "def") && python_is (t + 1, name);
}

static bool add_members (LsPython *p, guint module, const char *name, cJSON *object);

/* Those of the bases of a class. False: one has a constructor. */
static bool
add_bases (LsPython *p, const PythonLine *line, cJSON *object)
{
  PythonPlace x = { .python = p, .module = line->module, .at = line->first + 2 };
  bool ok = true;
  if (!python_take (&x, "("))
    return true;
  while (ok && python_token (&x)->kind == PYTHON_NAME) {
    g_autofree char *base = g_strndup (python_token (&x)->at, python_token (&x)->n);
    x.at++;
    bool is_plain = python_is (python_token (&x), ",") || python_is (python_token (&x), ")");
    ok = !is_plain || add_members (p, line->module, base, object);
    python_pass_to (&x, ",");
    python_take (&x, ",");
  }
  return ok;
}

/* What the body of a class sets, and the members that its functions set are holes. False: it has a
 * constructor. */
static bool
add_body (LsPython *p, guint i, cJSON *object)
{
  const PythonLine *line = python_line (p, i);
  g_autoptr (GHashTable) names
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) cJSON_Delete);
  const guint end = python_block_end (p, i);
  bool ok = true;
  for (guint at = i + 1; at < end && ok; at = python_block_end (p, at))
    ok = !is_constructor (p, at, "__init__") && !is_constructor (p, at, "__new__");
  if (!ok || i + 1 >= end)
    return ok;
  g_ptr_array_add (p->frames, names);
  cJSON_Delete (python_run_body (p, i + 1, names));
  g_ptr_array_remove_index (p->frames, p->frames->len - 1);
  GList *sorted = g_list_sort (g_hash_table_get_keys (names), (GCompareFunc) strcmp);
  for (const GList *name = sorted; name; name = name->next)
    python_set_key (object, name->data, usual_of (p, names, line, g_hash_table_lookup (names, name->data)));
  g_list_free (sorted);
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first + 2 };
  Inside inside = { object, python_hole (&x, NULL, line->first) };
  for (guint at = i + 1; at < end; at = python_block_end (p, at))
    if (is_constructor (p, at, "__post_init__"))
      python_visit_set (p, at + 1, python_block_end (p, at), names, open_member, &inside);
  cJSON_Delete (inside.hole);
  return true;
}

static bool
add_members (LsPython *p, guint module, const char *name, cJSON *object)
{
  const char *there = name;
  guint m = python_follow (p, module, &there, has_class);
  if (m == p->modules->len)
    return true;
  guint i = class_line (p, m, there);
  bool ok
      = ++p->n_classes <= MAX_CLASSES && add_bases (p, python_line (p, i), object) && add_body (p, i, object);
  p->n_classes--;
  return ok;
}

cJSON *
python_members_of (LsPython *p, guint module, const char *name)
{
  const char *there = name;
  if (python_follow (p, module, &there, has_class) == p->modules->len)
    return NULL;
  cJSON *object = cJSON_CreateObject ();
  const guint n_unknown = p->n_unknown;
  if (!add_members (p, module, name, object))
    g_clear_pointer (&object, cJSON_Delete);
  p->n_unknown = n_unknown;
  return object;
}
