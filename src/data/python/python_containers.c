/* data/python/python_containers.c — lists, tuples and dictionaries: how they are made, and what is taken of
 * them. */
#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"

static void
count_items (PythonPlace *x, const cJSON *item)
{
  for (; item; item = item->next) {
    x->python->n_items++;
    count_items (x, item->child);
  }
}

PythonValue
python_copy_of (PythonPlace *x, const cJSON *item)
{
  cJSON *copy = cJSON_Duplicate (item, true);
  count_items (x, copy->child);
  return python_value_of (x, copy);
}

/* The members of a dictionary, "**kwargs", as arguments by name or members. */
void
python_spread (PythonPlace *x, cJSON *to, const cJSON *object)
{
  for (const cJSON *item = object->child; item; item = item->next)
    if (strcmp (item->string, "()") != 0 && !g_ascii_isdigit (*item->string))
      python_set_key (to, item->string, python_item_of (x, python_copy_of (x, item)));
}

/* --- lists and tuples ------------------------------------------------------------------------------- */

bool
python_add_item (PythonPlace *x, cJSON *list)
{
  if (!python_take (x, "*")) {
    cJSON_AddItemToArray (list, python_item_of (x, python_any (x)));
    return true;
  }
  PythonValue v = python_any (x);
  bool is_known = cJSON_IsArray (v.item) && !python_is_kind (v.item, PYTHON_SET);
  for (const cJSON *item = is_known ? v.item->child : NULL; item; item = item->next)
    cJSON_AddItemToArray (list, python_item_of (x, python_copy_of (x, item)));
  python_drop (v);
  return is_known;
}

/* --- comprehensions ----------------------------------------------------------------------------------- */

/* "[f (a) for a in b if a > 1]": what begins at the token `body` is made of each, up to `end`. */
typedef struct {
  guint body;
  const char *end;
  cJSON *made; /* an array, or an object of "k: v" */
} Making;

static bool entry (PythonPlace *x, cJSON *object);

/* Sets the names of "a, (b, c)", up to `end`, to parts of item. False: it has other parts, or it is no such
 * target. */
static bool
bind (PythonPlace *x, const char *end, const cJSON *item)
{
  bool is_tuple = false;
  const cJSON *part = item;
  PythonPlace ahead = *x;
  python_pass_to (&ahead, ",");
  PythonPlace last = *x;
  python_pass_to (&last, end);
  is_tuple = ahead.at < last.at;
  if (is_tuple && (!cJSON_IsArray (item) || python_is_kind (item, PYTHON_SET)))
    return false;
  for (part = is_tuple ? item->child : item; part && !python_is (python_token (x), end);
       part = is_tuple ? part->next : NULL) {
    if (python_take (x, "(")) {
      if (!bind (x, ")", part) || !python_take (x, ")"))
        return false;
    } else if (python_token (x)->kind == PYTHON_NAME) {
      char *name = g_strndup (python_token (x)->at, python_token (x)->n);
      x->at++;
      g_hash_table_insert (python_names_with (x, name), name, python_item_of (x, python_copy_of (x, part)));
    } else
      return false;
    if (is_tuple && !python_take (x, ",") && !python_is (python_token (x), end))
      return false;
  }
  return !part && python_is (python_token (x), end);
}

/* Clauses from "for" or "if" on, then the body. False: something of it is not known. */
static bool
make_each (Making *m, PythonPlace x)
{
  LsPython *p = x.python;
  if (python_is (python_token (&x), m->end)) {
    x.at = m->body;
    return cJSON_IsObject (m->made) ? entry (&x, m->made) : python_add_item (&x, m->made);
  }
  if (python_take (&x, "if")) {
    PythonValue v = python_either (&x);
    PythonTruth truth = python_truth_of (v.item);
    python_drop (v);
    return truth == PYTHON_TRUE ? make_each (m, x) : truth == PYTHON_FALSE;
  }
  PythonPlace target = x;
  target.at++;
  if (!python_take (&x, "for"))
    return false;
  python_pass_to (&x, "in");
  bool is_near = python_take (&x, "in") && python_enter (p, python_token (&x)->line);
  PythonValue from = is_near ? python_either (&x) : (PythonValue) { 0 };
  cJSON *list = python_list_of (from.item);
  bool is_known = list != NULL;
  python_drop (from);
  for (const cJSON *item = is_known ? list->child : NULL; item && is_known && !p->why; item = item->next) {
    PythonPlace at = target;
    p->n_items++;
    is_known = bind (&at, "in", item) && make_each (m, x);
  }
  p->depth -= is_near;
  cJSON_Delete (list);
  return is_known;
}

/* What names that "for" sets from here on, up to `end`, meant before: name -> cJSON *, NULL for nothing. */
static GHashTable *
save_names (PythonPlace x, const char *end)
{
  GHashTable *saved = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) cJSON_Delete);
  PythonPlace last = x;
  python_pass_to (&last, end);
  for (bool is_target = false; x.at < last.at; x.at++) {
    const PythonToken *t = python_token (&x);
    is_target = python_is (t, "for") || (is_target && !python_is (t, "in"));
    g_autofree char *name = is_target && t->kind == PYTHON_NAME ? g_strndup (t->at, t->n) : NULL;
    const cJSON *before = name ? g_hash_table_lookup (python_names_with (&x, name), name) : NULL;
    if (name && !g_hash_table_contains (saved, name))
      g_hash_table_insert (saved, g_strdup (name), before ? cJSON_Duplicate (before, true) : NULL);
  }
  return saved;
}

static void
set_back (PythonPlace *x, GHashTable *saved)
{
  GHashTableIter iter;
  gpointer name, value;
  for (g_hash_table_iter_init (&iter, saved); g_hash_table_iter_next (&iter, &name, &value);)
    if (value)
      g_hash_table_insert (python_names_with (x, name), g_strdup (name), cJSON_Duplicate (value, true));
    else
      g_hash_table_remove (python_names_with (x, name), name);
}

cJSON *
python_made_of_each (PythonPlace *x, guint body, const char *end, bool is_dictionary, guint n_passed)
{
  g_autoptr (GHashTable) saved = save_names (*x, end);
  Making m = { body, end, is_dictionary ? cJSON_CreateObject () : cJSON_CreateArray () };
  python_forget_passed (x->python, n_passed);
  bool is_known = make_each (&m, *x);
  set_back (x, saved);
  if (is_known)
    python_pass_to (x, end);
  else
    g_clear_pointer (&m.made, cJSON_Delete);
  return m.made;
}

/* --- lists, tuples and sets ---------------------------------------------------------------------------- */

/* One of each. False: it is not known which are alike. */
static bool
make_set (cJSON *list)
{
  bool is_known = true;
  for (cJSON *item = list->child; item; item = item->next)
    for (cJSON *other = item->next, *next; other; other = next) {
      next = other->next;
      PythonTruth is_same = python_is_same (item, other);
      is_known = is_known && is_same != PYTHON_OPEN;
      if (is_same == PYTHON_TRUE)
        cJSON_Delete (cJSON_DetachItemViaPointer (list, other));
    }
  list->type |= PYTHON_SET;
  return is_known;
}

PythonValue
python_items (PythonPlace *x, const char *end, bool is_tuple)
{
  guint first = x->at - 1, n_passed = x->python->passed->len;
  cJSON *list = cJSON_CreateArray ();
  bool has_comma = false, is_made = false, is_known = true;
  while (!python_is (python_token (x), end) && python_token (x)->kind != PYTHON_END && !x->python->why
         && !is_made) {
    is_known = python_add_item (x, list) && is_known;
    is_made = python_is (python_token (x), "for") || python_is (python_token (x), "async");
    if (!is_made && !python_take (x, ","))
      break;
    has_comma = !is_made;
  }
  cJSON *made = is_made && !has_comma ? python_made_of_each (x, first + 1, end, false, n_passed) : NULL;
  if (made) {
    cJSON_Delete (list);
    list = made;
    is_made = false;
  }
  if (is_made)
    python_pass_to (x, end);
  python_expect (x, end);
  if (is_made || !is_known)
    return python_hole_of (x, (PythonValue) { .item = list }, first);
  if (is_tuple && !has_comma && !made && cJSON_GetArraySize (list) == 1) {
    PythonValue only = { .item = cJSON_DetachItemFromArray (list, 0) };
    cJSON_Delete (list);
    return only;
  }
  list->type |= is_tuple && !made ? PYTHON_TUPLE : 0;
  if (*end == '}' && !make_set (list))
    return python_hole_of (x, (PythonValue) { .item = list }, first);
  return python_value_of (x, list);
}

/* --- dictionaries ----------------------------------------------------------------------------------- */

/* "a: 1" or "**b" of a dictionary. False: it is not known. */
static bool
entry (PythonPlace *x, cJSON *object)
{
  bool is_spread = python_take (x, "**");
  PythonValue key = python_any (x);
  g_autofree char *name = is_spread ? NULL : python_key_of (key.item);
  bool is_known = is_spread ? python_is_dictionary (key.item) : name && python_take (x, ":");
  if (is_known && is_spread)
    python_spread (x, object, key.item);
  else if (is_known)
    python_set_key (object, name, python_item_of (x, python_any (x)));
  python_drop (key);
  return is_known
      && (python_take (x, ",") || python_is (python_token (x), "}") || python_is (python_token (x), "for"));
}

/* Whether the first of what stands in { } is no "a: 1". */
static bool
is_set (const PythonPlace *x)
{
  PythonPlace comma = *x, mark = *x, end = *x;
  if (python_is (python_token (x), "}") || python_is (python_token (x), "**"))
    return false;
  python_pass_to (&comma, ",");
  python_pass_to (&mark, ":");
  python_pass_to (&end, "}");
  return mark.at > MIN (comma.at, end.at);
}

PythonValue
python_dictionary (PythonPlace *x)
{
  guint first = x->at - 1, n_passed = x->python->passed->len;
  if (is_set (x))
    return python_items (x, "}", false);
  PythonPlace each = *x, end = *x;
  python_pass_to (&each, "for");
  python_pass_to (&end, "}");
  if (each.at < end.at) {
    x->at = each.at;
    cJSON *made = python_made_of_each (x, first + 1, "}", true, n_passed);
    x->at = end.at;
    python_expect (x, "}");
    return made ? python_value_of (x, made) : python_hole_of (x, (PythonValue) { 0 }, first);
  }
  cJSON *object = cJSON_CreateObject ();
  bool is_plain = true;
  while (!python_is (python_token (x), "}") && python_token (x)->kind != PYTHON_END && !x->python->why
         && is_plain)
    is_plain = entry (x, object);
  python_pass_to (x, "}");
  python_expect (x, "}");
  return is_plain ? python_value_of (x, object) : python_hole_of (x, (PythonValue) { .item = object }, first);
}

/* --- what is taken of them -------------------------------------------------------------------------- */

/* NULL: it is not there, or that is not known. */
static const cJSON *
at_key (const cJSON *of, const cJSON *key)
{
  g_autofree char *name = cJSON_IsObject (of) ? python_key_of (key) : NULL;
  if (name)
    return cJSON_GetObjectItemCaseSensitive (of, name);
  if (!cJSON_IsArray (of) || !cJSON_IsNumber (key) || key->valuedouble != floor (key->valuedouble)
      || fabs (key->valuedouble) > G_MAXINT)
    return NULL;
  int n = cJSON_GetArraySize (of), i = (int) key->valuedouble;
  return cJSON_GetArrayItem (of, i < 0 && i >= -n ? i + n : i);
}

cJSON *
python_key (PythonPlace *x)
{
  const PythonToken *t = python_token (x);
  bool is_key = t->kind == PYTHON_TEXT || t->kind == PYTHON_NUMBER || t->kind == PYTHON_NAME
      || python_is (t, "(") || python_is (t, "-");
  cJSON *key = is_key ? python_tuple (x) : NULL;
  if (!python_is (python_token (x), "]"))
    g_clear_pointer (&key, cJSON_Delete);
  python_pass_to (x, "]");
  python_expect (x, "]");
  return key;
}

/* --- slices -------------------------------------------------------------------------------------------- */

/* "a:b:c", behind "[": what its parts are, NULL for one that is not there. */
typedef struct {
  cJSON *parts[3];
} Slice;

/* Whether a slice stands behind "[". */
static bool
is_slice (const PythonPlace *x)
{
  PythonPlace mark = *x, end = *x;
  python_pass_to (&mark, ":");
  python_pass_to (&end, "]");
  return mark.at < end.at && !python_is (python_token (x), "lambda");
}

static void
read_slice (PythonPlace *x, Slice *slice)
{
  for (guint i = 0; i < G_N_ELEMENTS (slice->parts); i++) {
    bool is_there = !python_is (python_token (x), ":") && !python_is (python_token (x), "]");
    slice->parts[i] = is_there ? python_expression (x) : NULL;
    if (!python_take (x, ":"))
      break;
  }
  python_expect (x, "]");
}

/* A part as a number, as is usual where it is not there or None; false: it is no whole number. */
static bool
bound (const cJSON *part, double usual, double *ret)
{
  *ret = part && !cJSON_IsNull (part) ? part->valuedouble : usual;
  return !part || cJSON_IsNull (part) || (cJSON_IsNumber (part) && *ret == floor (*ret));
}

/* Of n items, as Python counts: from the end where it is below 0. */
static double
place_of (double at, double n, double least, double most)
{
  return CLAMP (at < 0 ? at + n : at, least, most);
}

/* What a slice takes of a list, or of a text of ASCII; NULL: it is not known. */
static cJSON *
taken (const cJSON *of, const Slice *slice)
{
  bool is_text = python_is_text (of) && g_str_is_ascii (of->valuestring);
  double n = is_text ? (double) strlen (of->valuestring) : cJSON_GetArraySize (of), step, first, end;
  bool ok = is_text || (cJSON_IsArray (of) && !python_is_kind (of, PYTHON_SET));
  if (!ok || !bound (slice->parts[2], 1, &step) || step == 0)
    return NULL;
  bool is_down = step < 0;
  if (!bound (slice->parts[0], is_down ? n - 1 : 0, &first) || !bound (slice->parts[1], n, &end))
    return NULL;
  bool has_end = slice->parts[1] && !cJSON_IsNull (slice->parts[1]);
  first = place_of (first, n, is_down ? -1 : 0, is_down ? n - 1 : n);
  end = !has_end && is_down ? -1 : place_of (end, n, is_down ? -1 : 0, is_down ? n - 1 : n);
  g_autoptr (GString) text = g_string_new (NULL);
  cJSON *list = cJSON_CreateArray ();
  for (double i = first; is_down ? i > end : i < end; i += step)
    if (is_text)
      g_string_append_c (text, of->valuestring[(gsize) i]);
    else
      cJSON_AddItemToArray (list, cJSON_Duplicate (cJSON_GetArrayItem (of, (int) i), true));
  list->type |= python_is_kind (of, PYTHON_TUPLE) ? PYTHON_TUPLE : 0;
  if (!is_text)
    return list;
  cJSON_Delete (list);
  return cJSON_CreateString (text->str);
}

static PythonValue
slice_of (PythonPlace *x, PythonValue v, guint first)
{
  Slice slice = { { NULL } };
  read_slice (x, &slice);
  cJSON *part = x->python->why ? NULL : taken (v.item, &slice);
  for (guint i = 0; i < G_N_ELEMENTS (slice.parts); i++)
    cJSON_Delete (slice.parts[i]);
  if (!part)
    return python_hole_of (x, v, first);
  python_drop (v);
  v = python_copy_of (x, part);
  cJSON_Delete (part);
  return v;
}

PythonValue
python_subscript (PythonPlace *x, PythonValue v, guint first)
{
  bool is_environment = v.name && python_is_environment (x->python, v.name),
       is_of = is_environment || python_is_dictionary (v.item)
      || (cJSON_IsArray (v.item) && !python_is_kind (v.item, PYTHON_SET));
  if (!is_environment && is_slice (x) && (is_of || python_is_text (v.item)))
    return slice_of (x, v, first);
  if (!is_of) {
    python_pass_to (x, "]");
    python_expect (x, "]");
    return python_hole_of (x, v, first);
  }
  cJSON *key = python_key (x), *variable = is_environment ? python_variable (x->python, key) : NULL;
  const cJSON *item = is_environment ? NULL : at_key (v.item, key);
  PythonValue part = item ? python_copy_of (x, item) : (PythonValue) { .item = variable };
  cJSON_Delete (key);
  if (!part.item)
    return python_hole_of (x, v, first);
  python_drop (v);
  return part;
}
