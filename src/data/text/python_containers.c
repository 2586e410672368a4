/* data/text/python_containers.c — lists, tuples and dictionaries: how they are made, what is taken of them,
 * and what is set by taking them apart. */
#include <math.h>
#include <string.h>

#include "data/shell/shell.h"
#include "data/text/python_parts.h"

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

/* Whether an object is a dictionary, and not what an unknown function makes. */
bool
python_is_dictionary (const cJSON *item)
{
  const cJSON *made = cJSON_IsObject (item) ? cJSON_GetObjectItemCaseSensitive (item, "()") : NULL;
  return cJSON_IsObject (item) && (!cJSON_IsString (made) || strcmp (made->valuestring, "dict") == 0);
}

/* The members of a dictionary, "**kwargs", as arguments by name or members. */
void
python_spread (PythonPlace *x, cJSON *to, const cJSON *object)
{
  for (const cJSON *item = object->child; item; item = item->next)
    if (strcmp (item->string, "()") != 0 && !g_ascii_isdigit (*item->string))
      python_set_member (to, item->string, python_item_of (x, python_copy_of (x, item)));
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
  bool is_known = cJSON_IsArray (v.item);
  for (const cJSON *item = is_known ? v.item->child : NULL; item; item = item->next)
    cJSON_AddItemToArray (list, python_item_of (x, python_copy_of (x, item)));
  python_drop (v);
  return is_known;
}

/* What a name meant before, set back; NULL: nothing. */
static void
set_back (GHashTable *names, const char *name, char *key, cJSON *value)
{
  if (key)
    g_hash_table_insert (names, key, value);
  else
    g_hash_table_remove (names, name);
}

/* "f (a) for a in b", of which f (a) begins at a token and "for" stands here, up to `end`: of a list that is
 * known. NULL: it is something else, and nothing is passed over. */
static cJSON *
made_of_each (PythonPlace *x, guint body, const char *end, guint n_passed)
{
  PythonPlace at = *x;
  GHashTable *names = x->names ? x->names : python_module (x->python, x->module)->values;
  at.at++;
  g_autofree char *name = g_strndup (python_token (&at)->at, python_token (&at)->n);
  bool is_name = python_token (&at)->kind == PYTHON_NAME;
  at.at++;
  if (!is_name || !python_take (&at, "in"))
    return NULL;
  PythonValue from = python_operand (&at);
  if (!cJSON_IsArray (from.item) || !python_is (python_token (&at), end)) {
    python_drop (from);
    return NULL;
  }
  gpointer key = NULL, before = NULL;
  g_hash_table_steal_extended (names, name, &key, &before);
  python_forget_passed (x->python, n_passed);
  cJSON *list = cJSON_CreateArray ();
  for (const cJSON *item = from.item->child; item && !x->python->why; item = item->next) {
    PythonPlace one = *x;
    one.at = body;
    g_hash_table_insert (names, g_strdup (name), python_item_of (x, python_copy_of (x, item)));
    python_add_item (&one, list);
  }
  set_back (names, name, key, before);
  python_drop (from);
  x->at = at.at;
  return list;
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
  cJSON *made = is_made && !has_comma && *end == ']' ? made_of_each (x, first + 1, end, n_passed) : NULL;
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
  if (is_tuple && !has_comma && cJSON_GetArraySize (list) == 1) {
    PythonValue only = { .item = cJSON_DetachItemFromArray (list, 0) };
    cJSON_Delete (list);
    return only;
  }
  return python_value_of (x, list);
}

/* --- dictionaries ----------------------------------------------------------------------------------- */

/* A key as the name of a member: a text as it is, else as "(8)" and "(\"a\",1)", which no argument of a call
 * has. NULL: it is not known, or is no key. The caller frees it. */
static char *
key_of (const cJSON *key)
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
  g_autofree char *name = key_of (key);
  if (!name || !python_is_dictionary (dictionary))
    return PYTHON_OPEN;
  return cJSON_GetObjectItemCaseSensitive (dictionary, name) ? PYTHON_TRUE : PYTHON_FALSE;
}

/* "a: 1" or "**b" of a dictionary. False: it is not known. */
static bool
entry (PythonPlace *x, cJSON *object)
{
  bool is_spread = python_take (x, "**");
  PythonValue key = python_any (x);
  g_autofree char *name = is_spread ? NULL : key_of (key.item);
  bool is_known = is_spread ? python_is_dictionary (key.item) : name && python_take (x, ":");
  if (is_known && is_spread)
    python_spread (x, object, key.item);
  else if (is_known)
    python_set_member (object, name, python_item_of (x, python_any (x)));
  python_drop (key);
  return is_known && (python_take (x, ",") || python_is (python_token (x), "}"));
}

PythonValue
python_dictionary (PythonPlace *x)
{
  guint first = x->at - 1;
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
  g_autofree char *name = cJSON_IsObject (of) ? key_of (key) : NULL;
  if (name)
    return cJSON_GetObjectItemCaseSensitive (of, name);
  if (!cJSON_IsArray (of) || !cJSON_IsNumber (key) || key->valuedouble != floor (key->valuedouble)
      || fabs (key->valuedouble) > G_MAXINT)
    return NULL;
  int n = cJSON_GetArraySize (of), i = (int) key->valuedouble;
  return cJSON_GetArrayItem (of, i < 0 && i >= -n ? i + n : i);
}

PythonValue
python_subscript (PythonPlace *x, PythonValue v, guint first)
{
  const PythonToken *t = python_token (x);
  bool is_environment = v.name && python_is_environment (x->python, v.name),
       is_of = is_environment || python_is_dictionary (v.item) || cJSON_IsArray (v.item),
       is_key = t->kind == PYTHON_TEXT || t->kind == PYTHON_NUMBER || t->kind == PYTHON_NAME
      || python_is (t, "(") || python_is (t, "-");
  cJSON *key = is_of && is_key ? python_tuple (x) : NULL;
  bool is_whole = key && python_is (python_token (x), "]");
  cJSON *variable = is_whole && is_environment ? python_variable (x->python, key) : NULL;
  const cJSON *item = is_whole && !is_environment ? at_key (v.item, key) : NULL;
  PythonValue part = item ? python_copy_of (x, item) : (PythonValue) { .item = variable };
  cJSON_Delete (key);
  python_pass_to (x, "]");
  python_expect (x, "]");
  if (!part.item)
    return python_hole_of (x, v, first);
  python_drop (v);
  return part;
}

/* --- what is set ------------------------------------------------------------------------------------ */

/* c.training.steps; names: char *. False: it is no such thing. */
static bool
read_path (PythonPlace *x, GPtrArray *names)
{
  do {
    if (python_token (x)->kind != PYTHON_NAME)
      return false;
    g_ptr_array_add (names, g_strndup (python_token (x)->at, python_token (x)->n));
    x->at++;
  } while (python_take (x, "."));
  return true;
}

/* What a value goes to: a path, or the parts of a tuple or a list, of which one may take the rest. */
typedef struct {
  GPtrArray *names; /* char *: of a path; NULL: it has parts */
  GPtrArray *parts; /* of Target *                           */
  bool is_rest;     /* "*a"                                  */
} Target;

static void
target_free (gpointer data)
{
  Target *target = data;
  g_clear_pointer (&target->names, g_ptr_array_unref);
  g_clear_pointer (&target->parts, g_ptr_array_unref);
  g_free (target);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Target, target_free)

static bool read_parts (PythonPlace *x, Target *to, const char *end, bool *ret_has_comma);

/* "a.b", "*a", "(a, b)", "[a]"; false: it is none. */
static bool
read_target (PythonPlace *x, Target *to)
{
  to->is_rest = python_take (x, "*");
  bool is_list = python_is (python_token (x), "["), has_comma;
  if (!is_list && !python_is (python_token (x), "(")) {
    to->names = g_ptr_array_new_with_free_func (g_free);
    return read_path (x, to->names);
  }
  x->at++;
  bool ok = python_enter (x->python, python_token (x)->line)
      && read_parts (x, to, is_list ? "]" : ")", &has_comma) && python_take (x, is_list ? "]" : ")");
  x->python->depth--;
  if (!ok || is_list || has_comma)
    return ok;
  Target *only = g_ptr_array_steal_index (to->parts, 0); /* "(a)" is a */
  g_ptr_array_unref (to->parts);
  to->names = g_steal_pointer (&only->names);
  to->parts = g_steal_pointer (&only->parts);
  target_free (only);
  return true;
}

/* Parts with commas between them, up to `end`. */
static bool
read_parts (PythonPlace *x, Target *to, const char *end, bool *ret_has_comma)
{
  guint n_rests = 0;
  to->parts = g_ptr_array_new_with_free_func (target_free);
  for (bool has_more = true; has_more;) {
    Target *part = g_new0 (Target, 1);
    g_ptr_array_add (to->parts, part);
    if (!read_target (x, part))
      return false;
    n_rests += part->is_rest;
    has_more = *ret_has_comma = python_take (x, ",");
    has_more = has_more && !python_is (python_token (x), end);
  }
  *ret_has_comma = *ret_has_comma || to->parts->len > 1;
  return n_rests <= 1;
}

/* "a.b =", "a: int =", "a, b =", "(a, *b), c =", before a value. NULL: it is no such thing. */
static Target *
read_targets (PythonPlace *x)
{
  g_autoptr (Target) all = g_new0 (Target, 1);
  bool is_tuple;
  if (!read_parts (x, all, "=", &is_tuple))
    return NULL;
  Target *first = all->parts->pdata[0];
  if (!is_tuple && !first->is_rest) {
    if (first->names && python_take (x, ":"))
      python_pass_to (x, "=");
    return python_take (x, "=") ? g_ptr_array_steal_index (all->parts, 0) : NULL;
  }
  return python_take (x, "=") && is_tuple ? g_steal_pointer (&all) : NULL;
}

/* An object for members of what has none: of a text, which is a name or a call that is not known, what it
 * makes; else an empty one. The caller frees it. */
static cJSON *
made_of (const cJSON *item)
{
  cJSON *object = cJSON_CreateObject ();
  if (cJSON_IsString (item))
    cJSON_AddStringToObject (object, "()", item->valuestring);
  return object;
}

/* start: the token with which the statement begins. */
static void
set_target (PythonPlace *x, const GPtrArray *names, cJSON *item, guint start)
{
  GHashTable *all = x->names ? x->names : python_module (x->python, x->module)->values;
  cJSON *object = names->len > 1 ? g_hash_table_lookup (all, names->pdata[0]) : NULL;
  if (names->len == 1) {
    g_hash_table_insert (all, g_strdup (names->pdata[0]), item);
    return;
  }
  if (names->len > 1 && cJSON_IsString (object))
    g_hash_table_insert (all, g_strdup (names->pdata[0]), object = made_of (object));
  for (guint i = 1; i + 1 < names->len && cJSON_IsObject (object); i++) {
    cJSON *part = cJSON_GetObjectItemCaseSensitive (object, names->pdata[i]);
    if (!cJSON_IsObject (part))
      python_set_member (object, names->pdata[i], part = made_of (part));
    object = part;
  }
  if (cJSON_IsObject (object))
    python_set_member (object, names->pdata[names->len - 1], item);
  else {
    python_pass (x->python, x->module, start);
    cJSON_Delete (item);
  }
}

/* "f (cfg.model, n=1)": f, and in `of` what is handed over first. */
static char *
read_call (PythonPlace x, GPtrArray *of)
{
  const PythonToken *t = python_token (&x);
  x.at++;
  bool is_call = t->kind == PYTHON_NAME && python_take (&x, "(") && read_path (&x, of)
      && (python_is (python_token (&x), ")") || python_is (python_token (&x), ","));
  return is_call ? g_strndup (t->at, t->n) : NULL;
}

/* What the function sets in its first argument is set here. */
static void
perform (LsPython *p, const PythonLine *line, GHashTable *names)
{
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  g_autoptr (GPtrArray) of = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *function = line->n >= 4 ? read_call (x, of) : NULL;
  g_clear_pointer (&p->first, cJSON_Delete);
  if (!names || !function || !g_hash_table_contains (names, of->pdata[0])
      || !python_has_function (p, line->module, function)) {
    python_pass (p, line->module, line->first);
    return;
  }
  p->is_statement = true;
  cJSON_Delete (python_expression (&x));
  p->is_statement = false;
  if (p->first)
    set_target (&x, of, g_steal_pointer (&p->first), line->first);
  else
    python_pass (p, line->module, line->first);
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
  while (rest < parts->len && !((const Target *) parts->pdata[rest])->is_rest)
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
unpack (const Unpacking *u, const Target *target, cJSON *item, const cJSON *hole)
{
  if (target->names) {
    set_target (u->x, target->names, item, u->start);
    return;
  }
  guint n_parts = target->parts->len, n_rests = 0;
  for (guint i = 0; i < n_parts; i++)
    n_rests += ((const Target *) target->parts->pdata[i])->is_rest;
  guint n = cJSON_IsArray (item) ? (guint) cJSON_GetArraySize (item) : 0;
  bool is_known = cJSON_IsArray (item) && (n_rests > 0 ? n + 1 >= n_parts : n == n_parts);
  if (!is_known)
    python_pass (u->x->python, u->x->module, u->start);
  cJSON *whole = hole ? cJSON_Duplicate (hole, true) : python_hole (u->x, NULL, u->first);
  for (guint i = 0; i < n_parts; i++) {
    const Target *part = target->parts->pdata[i];
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
python_assign (LsPython *p, const PythonLine *line, GHashTable *names)
{
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  g_autoptr (Target) target = read_targets (&x);
  if (!target) {
    perform (p, line, names);
    return;
  }
  guint first = x.at;
  cJSON *item = python_tuple (&x);
  if (python_token (&x)->kind != PYTHON_END && !p->why) /* a = b = ... */
    item = python_hole (&x, item, first);
  unpack (&(Unpacking) { &x, first, line->first }, target, item, NULL);
}
