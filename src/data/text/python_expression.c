#include <math.h>
#include <string.h>

#include "data/shell/shell.h"
#include "data/text/json_scan.h"
#include "data/text/python_parts.h"

#define MAX_ITEMS 100000
#define MAX_HOLE  60 /* letters of an expression that a hole shows */

/* item NULL: a name that means nothing here, which may be called. */
typedef struct {
  cJSON *item;
  char *name;
} Value;

static Value expression (PythonPlace *x);

gsize
python_text_prefix (const char *at)
{
  gsize n = strspn (at, "rRbBfFuU");
  return n <= 2 && (at[n] == '"' || at[n] == '\'') ? n : 0;
}

const PythonToken *
python_token (const PythonPlace *x)
{
  return &g_array_index (x->python->tokens, PythonToken, x->at);
}

bool
python_is (const PythonToken *t, const char *text)
{
  return (t->kind == PYTHON_MARK || t->kind == PYTHON_NAME) && strlen (text) == t->n
      && memcmp (t->at, text, t->n) == 0;
}

bool
python_take (PythonPlace *x, const char *text)
{
  bool is_there = python_is (python_token (x), text);
  x->at += is_there;
  return is_there;
}

static void
expect (PythonPlace *x, const char *text)
{
  if (!python_take (x, text)) {
    g_autofree char *why = g_strdup_printf ("expected \"%s\"", text);
    python_fail (x->python, python_token (x)->line, why);
  }
}

static Value
value_of (PythonPlace *x, cJSON *item)
{
  if (++x->python->n_items > MAX_ITEMS)
    python_fail (x->python, python_token (x)->line, "it makes too much");
  return (Value) { .item = item };
}

static cJSON *
item_of (PythonPlace *x, Value v)
{
  if (v.item)
    return v.item;
  cJSON *item = cJSON_CreateString (v.name ? v.name : "");
  g_free (v.name);
  return value_of (x, item).item;
}

static void
drop (Value v)
{
  cJSON_Delete (v.item);
  g_free (v.name);
}

/* In the place of v, from a token on. */
static Value
hole (PythonPlace *x, Value v, guint first)
{
  const PythonToken *from = &g_array_index (x->python->tokens, PythonToken, first);
  const PythonToken *last = &g_array_index (x->python->tokens, PythonToken, MAX (first + 1, x->at) - 1);
  gsize n = last->at >= from->at ? MIN ((gsize) (last->at + last->n - from->at), MAX_HOLE) : 0;
  g_autofree char *shown = g_strndup (from->at, n),
                  *text = g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, shown, LS_SHELL_HOLE_END);
  for (char *c = text + 1; c[0] && c[1]; c++)
    *c = g_ascii_iscntrl (*c) || (*c & 0x80) ? ' ' : *c;
  drop (v);
  return value_of (x, cJSON_CreateString (text));
}

void
python_pass_to (PythonPlace *x, const char *end)
{
  guint depth = 0;
  for (; python_token (x)->kind != PYTHON_END && (depth > 0 || !python_is (python_token (x), end)); x->at++) {
    depth += python_is (python_token (x), "(") || python_is (python_token (x), "[")
        || python_is (python_token (x), "{");
    depth -= depth > 0
        && (python_is (python_token (x), ")") || python_is (python_token (x), "]")
            || python_is (python_token (x), "}"));
  }
}

/* Whether a text has the letter in front, in either case. */
static bool
has_prefix (const PythonToken *t, char letter)
{
  gsize n = python_text_prefix (t->at);
  return memchr (t->at, letter, n) || memchr (t->at, g_ascii_toupper (letter), n);
}

static void
append_text (GString *out, const PythonToken *t)
{
  const char *p = t->at + python_text_prefix (t->at), *end = t->at + t->n;
  gsize quotes = end - p >= 6 && p[1] == *p && p[2] == *p ? 3 : 1;
  g_autofree char *inside = g_strndup (p + quotes, (gsize) (end - p) - 2 * quotes),
                  *plain = has_prefix (t, 'r') ? NULL : g_strcompress (inside);
  g_string_append (out, plain ? plain : inside);
}

/* Texts one behind the other are one. */
static Value
text (PythonPlace *x)
{
  g_autoptr (GString) out = g_string_new (NULL);
  guint first = x->at;
  bool is_formatted = false;
  for (; python_token (x)->kind == PYTHON_TEXT; x->at++) {
    is_formatted = is_formatted || has_prefix (python_token (x), 'f');
    append_text (out, python_token (x));
  }
  if (is_formatted || !g_utf8_validate (out->str, -1, NULL))
    return hole (x, (Value) { 0 }, first);
  return value_of (x, cJSON_CreateString (out->str));
}

static Value
number (PythonPlace *x)
{
  g_autoptr (GString) digits = g_string_new_len (python_token (x)->at, (gssize) python_token (x)->n);
  char *end;
  g_string_replace (digits, "_", "", 0);
  double value = g_ascii_strtod (digits->str, &end);
  guint first = x->at++;
  return *end || !isfinite (value) ? hole (x, (Value) { 0 }, first)
                                   : value_of (x, cJSON_CreateNumber (value));
}

void
python_set_member (cJSON *object, const char *name, cJSON *item)
{
  cJSON_DeleteItemFromObjectCaseSensitive (object, name);
  cJSON_AddItemToObject (object, name, item);
}

/* Of [ ], ( ) and { } without keys, behind the bracket. */
static Value
items (PythonPlace *x, const char *end, bool is_tuple)
{
  guint first = x->at - 1;
  cJSON *list = cJSON_CreateArray ();
  bool has_comma = false, is_made = false;
  while (!python_is (python_token (x), end) && python_token (x)->kind != PYTHON_END && !x->python->why
         && !is_made) {
    python_take (x, "*");
    cJSON_AddItemToArray (list, item_of (x, expression (x)));
    is_made = python_is (python_token (x), "for") || python_is (python_token (x), "async");
    if (!is_made && !python_take (x, ","))
      break;
    has_comma = !is_made;
  }
  if (is_made)
    python_pass_to (x, end);
  expect (x, end);
  if (is_made)
    return hole (x, (Value) { .item = list }, first);
  if (is_tuple && !has_comma && cJSON_GetArraySize (list) == 1) {
    Value only = { .item = cJSON_DetachItemFromArray (list, 0) };
    cJSON_Delete (list);
    return only;
  }
  return value_of (x, list);
}

/* Behind "{". Keys are texts. */
static Value
dictionary (PythonPlace *x)
{
  guint first = x->at - 1;
  cJSON *object = cJSON_CreateObject ();
  bool is_plain = true;
  while (!python_is (python_token (x), "}") && python_token (x)->kind != PYTHON_END && !x->python->why
         && is_plain) {
    if (python_is (python_token (x), "**")) {
      is_plain = false;
      break;
    }
    Value key = expression (x);
    is_plain = key.item && cJSON_IsString (key.item) && python_take (x, ":");
    if (is_plain)
      python_set_member (object, key.item->valuestring, item_of (x, expression (x)));
    drop (key);
    is_plain = is_plain && (python_take (x, ",") || python_is (python_token (x), "}"));
  }
  python_pass_to (x, "}");
  expect (x, "}");
  return is_plain ? value_of (x, object) : hole (x, (Value) { .item = object }, first);
}

static cJSON *
known (const PythonPlace *x, const char *name)
{
  cJSON *item = x->names ? g_hash_table_lookup (x->names, name) : NULL;
  return item ? item : g_hash_table_lookup (x->python->values, name);
}

static void
count_items (PythonPlace *x, const cJSON *item)
{
  for (; item; item = item->next) {
    x->python->n_items++;
    count_items (x, item->child);
  }
}

static Value
copy_of (PythonPlace *x, const cJSON *item)
{
  cJSON *copy = cJSON_Duplicate (item, true);
  count_items (x, copy->child);
  return value_of (x, copy);
}

static Value
name (PythonPlace *x)
{
  g_autofree char *text = g_strndup (python_token (x)->at, python_token (x)->n);
  guint first = x->at++;
  if (strcmp (text, "None") == 0)
    return value_of (x, cJSON_CreateNull ());
  if (strcmp (text, "True") == 0 || strcmp (text, "False") == 0)
    return value_of (x, cJSON_CreateBool (*text == 'T'));
  if (strcmp (text, "lambda") == 0) {
    python_pass_to (x, ":");
    python_take (x, ":");
    return hole (x, expression (x), first);
  }
  const cJSON *item = known (x, text);
  return item ? copy_of (x, item) : (Value) { .name = g_steal_pointer (&text) };
}

/* --- calls ----------------------------------------------------------------------------------------- */

static void
argument (PythonPlace *x, cJSON *call, guint *n)
{
  bool is_named = python_token (x)->kind == PYTHON_NAME && python_is (python_token (x) + 1, "=");
  bool is_spread = !is_named && (python_take (x, "**") || python_take (x, "*"));
  g_autofree char *key
      = is_named ? g_strndup (python_token (x)->at, python_token (x)->n) : g_strdup_printf ("%u", *n);
  guint first = x->at;
  x->at += is_named ? 2 : 0;
  Value v = expression (x);
  if (python_is (python_token (x), "for")) {
    python_pass_to (x, ")");
    v = hole (x, v, first);
  }
  *n += !is_named && !is_spread;
  if (is_spread)
    drop (v);
  else
    python_set_member (call, key, item_of (x, v));
  x->python->n_passed += is_spread;
}

/* What a call of a function gives whose body is followed; call: its arguments, which are taken. */
static cJSON *
followed (PythonPlace *x, const char *name, cJSON *call, bool is_bare, guint line)
{
  cJSON *result = python_call (x->python, name, call, line);
  if (!result && !is_bare)
    return call;
  cJSON_Delete (call);
  return result;
}

/* Behind "(". callee: a name, or something of which a method is called. */
static Value
call (PythonPlace *x, Value callee, guint first)
{
  cJSON *object = cJSON_CreateObject ();
  guint n = 0, line = python_token (x)->line;
  bool is_statement = x->python->is_statement;
  x->python->is_statement = false;
  if (callee.name)
    cJSON_AddStringToObject (object, "()", callee.name);
  bool is_bare = python_is (python_token (x), ")");
  while (!python_is (python_token (x), ")") && python_token (x)->kind != PYTHON_END && !x->python->why) {
    argument (x, object, &n);
    if (!python_take (x, ","))
      break;
  }
  expect (x, ")");
  if (!callee.name) {
    cJSON_Delete (object);
    return hole (x, callee, first);
  }
  bool replaces = g_str_has_suffix (callee.name, "replace")
      && cJSON_IsObject (cJSON_GetObjectItemCaseSensitive (object, "0"));
  if (python_is_followed (x->python, callee.name, is_bare, is_statement))
    object = followed (x, callee.name, object, is_bare, line);
  else if (replaces)
    object = python_replaced (object);
  g_free (callee.name);
  return value_of (x, object ? object : cJSON_CreateNull ());
}

static Value
member (PythonPlace *x, Value v, guint first)
{
  g_autofree char *key = g_strndup (python_token (x)->at, python_token (x)->n);
  x->at++;
  if (v.name) {
    char *longer = g_strconcat (v.name, ".", key, NULL);
    g_free (v.name);
    return (Value) { .name = longer };
  }
  const cJSON *item = cJSON_IsObject (v.item) ? cJSON_GetObjectItemCaseSensitive (v.item, key) : NULL;
  if (!item || python_is (python_token (x), "("))
    return hole (x, v, first);
  Value copy = copy_of (x, item);
  drop (v);
  return copy;
}

static Value
atom (PythonPlace *x)
{
  const PythonToken *t = python_token (x);
  if (t->kind == PYTHON_TEXT)
    return text (x);
  if (t->kind == PYTHON_NUMBER)
    return number (x);
  if (t->kind == PYTHON_NAME)
    return name (x);
  if (python_take (x, "("))
    return items (x, ")", true);
  if (python_take (x, "["))
    return items (x, "]", false);
  if (python_take (x, "{"))
    return dictionary (x);
  python_fail (x->python, t->line, "expected a value");
  return (Value) { .item = cJSON_CreateNull () };
}

static Value
postfix (PythonPlace *x)
{
  guint first = x->at;
  Value v = atom (x);
  while (!x->python->why)
    if (python_take (x, "."))
      v = member (x, v, first);
    else if (python_take (x, "("))
      v = call (x, v, first);
    else if (python_take (x, "[")) {
      python_pass_to (x, "]");
      expect (x, "]");
      v = hole (x, v, first);
    } else
      break;
  return v;
}

/* --- operators ------------------------------------------------------------------------------------- */

static Value
unary (PythonPlace *x)
{
  guint first = x->at;
  double sign = 1;
  bool is_known = true;
  for (; python_is (python_token (x), "-") || python_is (python_token (x), "+")
       || python_is (python_token (x), "~") || python_is (python_token (x), "not")
       || python_is (python_token (x), "await");
       x->at++) {
    sign = python_is (python_token (x), "-") ? -sign : sign;
    is_known = is_known && (python_is (python_token (x), "-") || python_is (python_token (x), "+"));
  }
  bool is_plain = x->at == first;
  Value v = postfix (x);
  if (is_plain)
    return v;
  if (!is_known || !cJSON_IsNumber (v.item))
    return hole (x, v, first);
  cJSON_SetNumberHelper (v.item, sign * v.item->valuedouble);
  return v;
}

/* NaN: it is none of numbers. */
static double
computed (const PythonToken *mark, double a, double b)
{
  return python_is (mark, "+") ? a + b
      : python_is (mark, "-")  ? a - b
      : python_is (mark, "*")  ? a * b
      : python_is (mark, "/")  ? a / b
      : python_is (mark, "//") ? floor (a / b)
      : python_is (mark, "%")  ? a - b * floor (a / b)
                               : NAN;
}

static Value
combined (PythonPlace *x, const PythonToken *mark, Value a, Value b, guint first)
{
  bool are_texts = cJSON_IsString (a.item) && cJSON_IsString (b.item);
  double result = cJSON_IsNumber (a.item) && cJSON_IsNumber (b.item)
      ? computed (mark, a.item->valuedouble, b.item->valuedouble)
      : NAN;
  g_autofree char *joined = are_texts && python_is (mark, "+") && !ls_shell_has_hole (a.item->valuestring)
      ? g_strconcat (a.item->valuestring, b.item->valuestring, NULL)
      : NULL;
  drop (b);
  if (!joined && !isfinite (result))
    return hole (x, a, first);
  drop (a);
  return value_of (x, joined ? cJSON_CreateString (joined) : cJSON_CreateNumber (result));
}

/* From those that bind least. */
static const char *const levels[][9] = {
  { "or", "and" },
  { "==", "!=", "<", ">", "<=", ">=", "in", "is", "not" },
  { "|", "&", "^", "<<", ">>" },
  { "+", "-" },
  { "*", "/", "//", "%", "**", "@" },
};

static bool
is_of_level (const PythonToken *t, guint level)
{
  for (guint i = 0; i < G_N_ELEMENTS (levels[level]) && levels[level][i]; i++)
    if (python_is (t, levels[level][i]))
      return true;
  return false;
}

static Value
binary (PythonPlace *x, guint level)
{
  if (level == G_N_ELEMENTS (levels))
    return unary (x);
  guint first = x->at;
  Value v = binary (x, level + 1);
  while (is_of_level (python_token (x), level) && !x->python->why) {
    const PythonToken *mark = python_token (x);
    x->at++;
    if (python_is (mark, "is") || python_is (mark, "not"))
      x->at += python_is (python_token (x), "not") || python_is (python_token (x), "in");
    v = combined (x, mark, v, binary (x, level + 1), first);
  }
  return v;
}

static Value
expression (PythonPlace *x)
{
  guint first = x->at;
  bool is_near = python_enter (x->python, python_token (x)->line);
  Value v = is_near ? binary (x, 0) : (Value) { .item = cJSON_CreateNull () };
  if (python_is (python_token (x), "if") && !x->python->why) {
    x->at++;
    drop (expression (x));
    expect (x, "else");
    drop (expression (x));
    v = hole (x, v, first);
  }
  x->python->depth--;
  return v;
}

cJSON *
python_expression (PythonPlace *x)
{
  return item_of (x, expression (x));
}

cJSON *
python_hole (PythonPlace *x, cJSON *item, guint first)
{
  return hole (x, (Value) { .item = item }, first).item;
}
