/* data/python/python_values.c — values of Python: what is open, what is true, what is alike, and as JSON. */
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"
#include "data/text/json_doc.h"

PythonValue *
python_new (LsPython *p, PythonKind kind)
{
  PythonValue *v = g_new0 (PythonValue, 1);
  v->kind = kind;
  g_ptr_array_add (p->values, v);
  if (++p->n_items > PYTHON_MAX_ITEMS)
    python_fail (p, p->line, "it makes too much");
  return v;
}

PythonValue *
python_called (LsPython *p, PythonKind kind, const char *text)
{
  PythonValue *v = python_new (p, kind);
  v->text = text ? g_string_chunk_insert (p->texts, text) : NULL;
  return v;
}

PythonValue *
python_text (LsPython *p, const char *text)
{
  return python_called (p, PYTHON_IS_TEXT, text);
}

PythonValue *
python_number (LsPython *p, double number, bool is_float)
{
  PythonValue *v = python_new (p, PYTHON_IS_NUMBER);
  v->number = is_float ? number : number + 0.0; /* -0 is 0 */
  v->is_float = is_float;
  return v;
}

PythonValue *
python_bool (LsPython *p, bool is_true)
{
  PythonValue *v = python_new (p, PYTHON_IS_BOOL);
  v->number = is_true;
  return v;
}

bool
python_is_list (const PythonValue *v)
{
  return v->kind == PYTHON_IS_LIST || v->kind == PYTHON_IS_TUPLE;
}

/* --- items and members ------------------------------------------------------------------------------- */

guint
python_n (const PythonValue *of)
{
  return of && of->items ? of->items->len : 0;
}

void
python_add (PythonValue *to, PythonValue *item)
{
  if (!to->items)
    to->items = g_ptr_array_new ();
  item->is_held = true;
  g_ptr_array_add (to->items, item);
}

/* Which one of its items has a key; the number of its keys: none has. */
static guint
place_of (const PythonValue *of, const char *key)
{
  guint i = 0, n = of->keys ? of->keys->len : 0;
  while (i < n && strcmp (of->keys->pdata[i], key) != 0)
    i++;
  return i;
}

PythonValue *
python_get (const PythonValue *of, const char *key)
{
  guint i = place_of (of, key);
  return of->keys && i < of->keys->len ? of->items->pdata[i] : NULL;
}

void
python_set (PythonValue *to, const char *key, PythonValue *item, bool to_end)
{
  guint i = place_of (to, key);
  bool is_there = to->keys && i < to->keys->len;
  if (!to->keys)
    to->keys = g_ptr_array_new ();
  if (is_there && !to_end) {
    to->items->pdata[i] = item;
    item->is_held = true;
    return;
  }
  if (is_there) {
    g_ptr_array_remove_index (to->items, i);
    g_ptr_array_remove_index (to->keys, i);
  }
  g_ptr_array_add (to->keys, (gpointer) key);
  python_add (to, item);
}

void
python_set_place (LsPython *p, PythonValue *to, guint i, PythonValue *item)
{
  g_autofree char *key = g_strdup_printf ("%u", i);
  python_set (to, g_string_chunk_insert_const (p->texts, key), item, true);
}

void
python_merge (PythonValue *to, const PythonValue *from, guint first, bool to_end)
{
  for (guint i = first; i < python_n (from); i++)
    if (from->keys)
      python_set (to, from->keys->pdata[i], from->items->pdata[i], to_end);
    else
      python_add (to, from->items->pdata[i]);
}

PythonValue *
python_copy (LsPython *p, PythonValue *of)
{
  if (!python_is_mutable (of) || !python_enter (p, p->line))
    return of;
  PythonValue *v = python_called (p, of->kind, of->text);
  for (guint i = 0; i < python_n (of) && !p->why; i++) {
    PythonValue *item = python_copy (p, of->items->pdata[i]);
    if (of->keys)
      python_set (v, of->keys->pdata[i], item, false);
    else
      python_add (v, item);
  }
  p->depth--;
  return v;
}

void
python_open (LsPython *p, PythonValue *v, const char *text)
{
  g_clear_pointer (&v->items, g_ptr_array_unref);
  g_clear_pointer (&v->keys, g_ptr_array_unref);
  v->text = g_string_chunk_insert (p->texts, text);
  v->kind = PYTHON_IS_HOLE;
}

PythonValue **
python_item_at (const PythonValue *of, const PythonValue *key)
{
  gint64 n = python_n (of), i = n;
  if (python_is_list (of) && key->kind == PYTHON_IS_NUMBER && !key->is_float && key->number >= -n
      && key->number < n)
    i = (gint64) key->number + (key->number < 0 ? n : 0);
  else if (!python_is_list (of) && key->kind == PYTHON_IS_TEXT && of->keys)
    i = place_of (of, key->text);
  return i < n ? (PythonValue **) &of->items->pdata[i] : NULL;
}

/* --- what is open, what is true, what is alike -------------------------------------------------------- */

bool
python_is_mutable (const PythonValue *v)
{
  return v->kind == PYTHON_IS_LIST || v->kind == PYTHON_IS_DICTIONARY || v->kind == PYTHON_IS_CALL
      || (v->kind == PYTHON_IS_HOLE && v->items);
}

bool
python_is_unknown (const PythonValue *v)
{
  const char *dot = v->text ? strrchr (v->text, '.') : NULL;
  return v->kind == PYTHON_IS_HOLE || v->kind == PYTHON_IS_NAME
      || (v->kind == PYTHON_IS_CALL && !g_ascii_isupper (dot ? dot[1] : *v->text));
}

PythonTruth
python_truth_of (const PythonValue *v)
{
  if (python_is_unknown (v))
    return PYTHON_OPEN;
  bool is_true = v->kind <= PYTHON_IS_NUMBER ? v->number != 0
      : v->kind == PYTHON_IS_TEXT            ? *v->text != '\0'
                                             : v->kind >= PYTHON_IS_CALL || python_n (v) > 0;
  return is_true ? PYTHON_TRUE : PYTHON_FALSE;
}

/* Lists and objects are told apart by nothing here. */
PythonTruth
python_is_same (const PythonValue *a, const PythonValue *b)
{
  if (python_is_unknown (a) || python_is_unknown (b) || MAX (a->kind, b->kind) > PYTHON_IS_TEXT)
    return PYTHON_OPEN;
  bool are_numbers = a->kind + b->kind == PYTHON_IS_BOOL + PYTHON_IS_NUMBER; /* True == 1 */
  bool is_same
      = (a->kind == b->kind || are_numbers) && a->number == b->number && g_strcmp0 (a->text, b->text) == 0;
  return is_same ? PYTHON_TRUE : PYTHON_FALSE;
}

char *
python_written (const PythonValue *v)
{
  if (v->kind == PYTHON_IS_TEXT)
    return g_strdup (v->text);
  if (v->kind <= PYTHON_IS_BOOL)
    return g_strdup (v->kind == PYTHON_IS_NONE ? "None" : v->number != 0 ? "True" : "False");
  bool is_whole = v->kind == PYTHON_IS_NUMBER && v->number == (double) (gint64) v->number && v->number > -1e15
      && v->number < 1e15;
  return is_whole ? g_strdup_printf (v->is_float ? "%.1f" : "%.0f", v->number) : NULL;
}

/* --- JSON --------------------------------------------------------------------------------------------- */

/* What makes an object is its "()"; a name is a text with a mark, which a text has not. */
cJSON *
python_json (LsPython *p, const PythonValue *v)
{
  bool is_list = python_is_list (v), is_scalar = v->kind <= PYTHON_IS_NUMBER,
       has_members = (v->kind >= PYTHON_IS_LIST && v->kind <= PYTHON_IS_CALL)
      || (v->items && v->kind < PYTHON_IS_FUNCTION);
  g_autofree char *text = v->kind == PYTHON_IS_HOLE
      ? g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, v->text, LS_SHELL_HOLE_END)
      : g_strdup (v->text);
  if (++p->n_items > PYTHON_MAX_ITEMS)
    python_fail (p, p->line, "it makes too much");
  if (is_scalar)
    return v->kind == PYTHON_IS_NONE ? cJSON_CreateNull ()
        : v->kind == PYTHON_IS_BOOL  ? cJSON_CreateBool (v->number != 0)
                                     : cJSON_CreateNumber (v->number);
  cJSON *item = !has_members ? cJSON_CreateString (text)
      : is_list              ? cJSON_CreateArray ()
                             : cJSON_CreateObject ();
  if (!has_members) {
    item->valueint = v->kind != PYTHON_IS_TEXT && v->kind != PYTHON_IS_HOLE;
    return item;
  }
  bool is_within = python_enter (p, p->line);
  if (is_within && text && v->kind != PYTHON_IS_DICTIONARY)
    cJSON_AddStringToObject (item, "()", text);
  for (guint i = 0; is_within && i < python_n (v) && !p->why; i++) {
    cJSON *inner = python_json (p, v->items->pdata[i]);
    if (is_list)
      cJSON_AddItemToArray (item, inner);
    else
      cJSON_AddItemToObject (item, v->keys->pdata[i], inner);
  }
  p->depth--;
  return item;
}
