/* data/python/python_targets.c — what statements set: names, members and items, alone, one like the other,
 * or by taking a value apart. */
#include <string.h>

#include "data/python/python_run.h"
#include "data/shell/shell.h"

/* What a value goes to: a path, or the parts of a tuple or a list, of which one may take the rest. */
struct PythonTarget {
  GPtrArray *path;  /* NULL: it has parts   */
  GPtrArray *parts; /* of PythonTarget *    */
  bool is_rest;     /* "*a"                 */
};

void
python_target_free (gpointer data)
{
  PythonTarget *target = data;
  g_clear_pointer (&target->path, g_ptr_array_unref);
  g_clear_pointer (&target->parts, g_ptr_array_unref);
  g_free (target);
}

static bool read_parts (PythonPlace *x, PythonTarget *to, const char *end, bool evaluates,
                        bool *ret_has_comma);

/* "a.b", "*a", "(a, b)", "[a]"; false: it is none. */
static bool
read_target (PythonPlace *x, PythonTarget *to, bool evaluates)
{
  to->is_rest = python_take (x, "*");
  bool is_list = python_is (python_token (x), "["), has_comma;
  if (!is_list && !python_is (python_token (x), "(")) {
    to->path = g_ptr_array_new_with_free_func (g_free);
    return python_read_path (x, to->path, evaluates);
  }
  x->at++;
  bool ok = python_enter (x->python, python_token (x)->line)
      && read_parts (x, to, is_list ? "]" : ")", evaluates, &has_comma)
      && python_take (x, is_list ? "]" : ")");
  x->python->depth--;
  if (!ok || is_list || has_comma)
    return ok;
  PythonTarget *only = g_ptr_array_steal_index (to->parts, 0); /* "(a)" is a */
  g_ptr_array_unref (to->parts);
  to->path = g_steal_pointer (&only->path);
  to->parts = g_steal_pointer (&only->parts);
  python_target_free (only);
  return true;
}

/* Parts with commas between them, up to `end`. */
static bool
read_parts (PythonPlace *x, PythonTarget *to, const char *end, bool evaluates, bool *ret_has_comma)
{
  guint n_rests = 0;
  to->parts = g_ptr_array_new_with_free_func (python_target_free);
  for (bool has_more = true; has_more;) {
    PythonTarget *part = g_new0 (PythonTarget, 1);
    g_ptr_array_add (to->parts, part);
    if (!read_target (x, part, evaluates))
      return false;
    n_rests += part->is_rest;
    has_more = *ret_has_comma = python_take (x, ",");
    has_more = has_more && !python_is (python_token (x), end);
  }
  *ret_has_comma = *ret_has_comma || to->parts->len > 1;
  return n_rests <= 1;
}

PythonTarget *
python_read_target (PythonPlace *x, const char *end, bool evaluates)
{
  g_autoptr (PythonTarget) all = g_new0 (PythonTarget, 1);
  bool is_tuple;
  if (!read_parts (x, all, end, evaluates, &is_tuple))
    return NULL;
  const PythonTarget *first = all->parts->pdata[0];
  if (is_tuple)
    return g_steal_pointer (&all);
  return first->is_rest ? NULL : g_ptr_array_steal_index (all->parts, 0);
}

/* The same before "=", with a type, "a: int =". */
static PythonTarget *
read_assigned (PythonPlace *x, bool evaluates)
{
  PythonPlace ahead = *x;
  python_pass_to (&ahead, "=");
  g_autoptr (PythonTarget) target
      = python_is (python_token (&ahead), "=") ? python_read_target (x, "=", evaluates) : NULL;
  if (target && target->path && python_take (x, ":"))
    python_pass_to (x, "=");
  return target && python_take (x, "=") ? g_steal_pointer (&target) : NULL;
}

/* What is to be unpacked: what stands from a token on, of a statement that begins with another one. */
typedef struct {
  PythonPlace *x;
  guint first, start;
} Unpacking;

/* "f(x)[1]", of the hole "f(x)": a part of what is not known. The caller frees it. */
static cJSON *
part_of_hole (const cJSON *hole, const char *index)
{
  g_autofree char *bare = g_strndup (hole->valuestring, strlen (hole->valuestring) - 1),
                  *text = g_strdup_printf ("%s[%s]%c", bare, index, LS_SHELL_HOLE_END);
  return cJSON_CreateString (text);
}

/* "1", of a part behind the rest "-1", of the rest "1:" or "1:-1". */
static char *
index_of (const GPtrArray *parts, guint i)
{
  guint rest = 0;
  while (rest < parts->len && !((const PythonTarget *) parts->pdata[rest])->is_rest)
    rest++;
  guint behind = parts->len - i;
  return i < rest   ? g_strdup_printf ("%u", i)
      : i > rest    ? g_strdup_printf ("-%u", behind)
      : behind == 1 ? g_strdup_printf ("%u:", i)
                    : g_strdup_printf ("%u:-%u", i, behind - 1);
}

/* The first n of a list, which are taken out of it. */
static cJSON *
take_items (cJSON *list, guint n)
{
  cJSON *taken = cJSON_CreateArray ();
  for (guint i = 0; i < n; i++)
    cJSON_AddItemToArray (taken, cJSON_DetachItemFromArray (list, 0));
  return taken;
}

/* Each target gets its part of item, which is taken. Where it has not as many that are known, the statement
 * is named, and each part is a hole; hole: what item is then, NULL: as it is written. */
static void
unpack (const Unpacking *u, const PythonTarget *target, cJSON *item, const cJSON *hole)
{
  if (target->path) {
    python_set_path (u->x, target->path, target->path->len, item, u->start);
    return;
  }
  guint n_parts = target->parts->len, n_rests = 0;
  for (guint i = 0; i < n_parts; i++)
    n_rests += ((const PythonTarget *) target->parts->pdata[i])->is_rest;
  guint n = cJSON_IsArray (item) ? (guint) cJSON_GetArraySize (item) : 0;
  bool is_known = cJSON_IsArray (item) && (n_rests > 0 ? n + 1 >= n_parts : n == n_parts);
  if (!is_known)
    python_pass (u->x->python, u->x->module, u->start);
  const guint n_unknown = u->x->python->n_unknown;
  cJSON *whole = hole ? cJSON_Duplicate (hole, true) : python_hole (u->x, NULL, u->first);
  u->x->python->n_unknown = n_unknown; /* it may not be needed */
  for (guint i = 0; i < n_parts; i++) {
    const PythonTarget *part = target->parts->pdata[i];
    g_autofree char *index = index_of (target->parts, i);
    cJSON *open = part_of_hole (whole, index),
          *value = !is_known ? cJSON_Duplicate (open, true)
        : part->is_rest      ? take_items (item, n + 1 - n_parts)
                             : cJSON_DetachItemFromArray (item, 0);
    unpack (u, part, value, open);
    cJSON_Delete (open);
  }
  cJSON_Delete (whole);
  cJSON_Delete (item);
}

void
python_unpack (PythonPlace *x, const PythonTarget *target, cJSON *item, guint first, guint start)
{
  unpack (&(Unpacking) { x, first, start }, target, item, NULL);
}

void
python_visit_target (PythonPlace *x, const PythonTarget *target, PythonVisit *visit, gpointer data)
{
  if (target->path)
    visit (x, target->path, target->path->len, data);
  for (guint i = 0; target->parts && i < target->parts->len; i++)
    python_visit_target (x, target->parts->pdata[i], visit, data);
}

/* --- statements -------------------------------------------------------------------------------------- */

GPtrArray *
python_read_assigned (PythonPlace *x, bool evaluates)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (python_target_free);
  PythonPlace ahead = *x;
  for (PythonTarget *target; (target = read_assigned (&ahead, evaluates)); *x = ahead)
    g_ptr_array_add (all, target);
  return all;
}

bool
python_assign (PythonPlace *x)
{
  guint start = x->at;
  g_autoptr (GPtrArray) targets = python_read_assigned (x, true);
  if (targets->len == 0)
    return false;
  guint first = x->at;
  cJSON *item = python_tuple (x);
  if (python_token (x)->kind != PYTHON_END && !x->python->why)
    item = python_hole (x, item, first);
  if (x->python->raise > 0) {
    cJSON_Delete (item);
    return true;
  }
  for (guint i = 0; i + 1 < targets->len; i++)
    python_unpack (x, targets->pdata[i], python_item_of (x, python_copy_of (x, item)), first, start);
  python_unpack (x, targets->pdata[targets->len - 1], item, first, start);
  return true;
}
