/* data/python/python_identity.c — copies of one object: what is changed in one of them is changed in all.
 *
 * In Python names and members share an object: behind "c.peft = a" it is one, and "a.dim = 16" is seen as
 * c.peft.dim. Here each has a copy. A number says which are copies of the same: valueint, which cJSON has no
 * use for in objects, arrays and texts, and which it copies with them. */
#include "data/python/python_parts.h"
#include "data/shell/shell.h"

/* Not numbers, of which valueint is a part of the value. */
static bool
may_be_shared (const cJSON *item)
{
  return cJSON_IsObject (item) || cJSON_IsArray (item) || cJSON_IsString (item);
}

void
python_identify (LsPython *p, cJSON *item)
{
  bool is_text = cJSON_IsString (item) && !ls_shell_has_hole (item->valuestring);
  if (may_be_shared (item) && !is_text)
    python_identify_name (p, item);
}

void
python_identify_name (LsPython *p, cJSON *item)
{
  if (item->valueint == 0)
    item->valueint = ++p->n_objects;
}

/* Not what such an item holds, as it may end with it. */
static void
collect (cJSON *item, int number, GPtrArray *all)
{
  for (; item; item = item->next)
    if (may_be_shared (item) && item->valueint == number)
      g_ptr_array_add (all, item);
    else
      collect (item->child, number, all);
}

static void
collect_named (GHashTable *names, int number, GPtrArray *all)
{
  GHashTableIter iter;
  gpointer value;
  for (g_hash_table_iter_init (&iter, names); g_hash_table_iter_next (&iter, NULL, &value);)
    collect (value, number, all);
}

/* All that has this number: of functions that are called, of files, of what parameters usually are. */
static void
collect_all (const LsPython *p, int number, GPtrArray *all)
{
  for (guint i = 0; i < p->frames->len && number > 0; i++)
    collect_named (p->frames->pdata[i], number, all);
  for (guint i = 0; i < p->modules->len && number > 0; i++)
    collect_named (python_module (p, i)->values, number, all);
  if (number > 0)
    collect_named (p->usual, number, all);
}

/* All copies of what a name or a member of one is, itself among them. */
static GPtrArray *
copies_of (LsPython *p, cJSON *item)
{
  GPtrArray *all = g_ptr_array_new ();
  collect_all (p, item->valueint, all);
  if (all->len == 0)
    g_ptr_array_add (all, item);
  return all;
}

bool
python_is_shared (const LsPython *p, const cJSON *item)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  if (cJSON_IsObject (item) || cJSON_IsArray (item))
    collect_all (p, item->valueint, all);
  return all->len > 0;
}

/* An object that holds itself has no end here. */
static bool
holds (cJSON *item, const cJSON *other)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  if (other->valueint > 0)
    collect (item, other->valueint, all);
  return all->len > 0;
}

static guint
n_items (const cJSON *item)
{
  guint n = 0;
  for (; item; item = item->next)
    n += 1 + n_items (item->child);
  return n;
}

bool
python_set_part (PythonPlace *x, cJSON *holder, const char *name, cJSON *item,
                 void set (cJSON *, const char *, cJSON *))
{
  LsPython *p = x->python;
  if (holds (item, holder))
    return false;
  g_autoptr (GPtrArray) all = copies_of (p, holder);
  p->n_items += (all->len - 1) * (1 + n_items (item->child));
  python_check_items (p, python_token (x)->line);
  for (guint i = 0; i < all->len && !p->why; i++)
    if (set)
      set (all->pdata[i], name, cJSON_Duplicate (item, true));
    else
      cJSON_AddItemToArray (all->pdata[i], cJSON_Duplicate (item, true));
  return true;
}

/* A text, in its place. */
static void
become (cJSON *item, int type, const char *text)
{
  cJSON_Delete (item->child);
  cJSON_free (item->valuestring);
  item->child = NULL;
  item->valuestring = NULL;
  item->type = (item->type & ~(0xff | PYTHON_FLOAT | PYTHON_TUPLE | PYTHON_SET)) | type;
  if (type == cJSON_Object)
    cJSON_AddStringToObject (item, "()", text);
  else {
    cJSON *source = cJSON_CreateString (text);
    item->valuestring = g_steal_pointer (&source->valuestring);
    cJSON_Delete (source);
  }
}

void
python_make_object (LsPython *p, cJSON *text)
{
  g_autofree char *made = g_strdup (text->valuestring);
  g_autoptr (GPtrArray) all = copies_of (p, text);
  for (guint i = 0; i < all->len; i++)
    become (all->pdata[i], cJSON_Object, made);
}

void
python_make_hole (LsPython *p, cJSON *item, const cJSON *hole)
{
  g_autoptr (GPtrArray) all = copies_of (p, item);
  for (guint i = 0; i < all->len; i++)
    become (all->pdata[i], cJSON_String, hole->valuestring);
}
