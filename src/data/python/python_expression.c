#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"
#include "data/text/json_scan.h"

#define MAX_HOLE 120 /* letters of an expression that a hole shows */

bool
python_expect (PythonPlace *x, const char *text)
{
  if (python_take (x, text))
    return true;
  g_autofree char *why = g_strdup_printf ("expected \"%s\"", text);
  python_fail (x->python, python_token (x)->line, why);
  return false;
}

PythonValue
python_value_of (PythonPlace *x, cJSON *item)
{
  x->python->n_items++;
  python_check_items (x->python, python_token (x)->line);
  python_identify (x->python, item);
  return (PythonValue) { .item = item };
}

cJSON *
python_item_of (PythonPlace *x, PythonValue v)
{
  if (v.item)
    return v.item;
  cJSON *item = cJSON_CreateString (v.name ? v.name : "");
  python_identify_name (x->python, item);
  g_free (v.name);
  return python_value_of (x, item).item;
}

void
python_drop (PythonValue v)
{
  cJSON_Delete (v.item);
  g_free (v.name);
}

static cJSON *
known (const PythonPlace *x, const char *name)
{
  cJSON *item = x->names ? g_hash_table_lookup (x->names, name) : NULL;
  return item ? item : python_imported_value (x->python, x->module, name);
}

/* What a token stands for, of a name that was set to a text or to a call whose first argument is one; NULL:
 * it is as it is written. The caller frees it. */
static char *
text_of_name (const PythonPlace *x, guint at)
{
  const PythonToken *t = &g_array_index (x->python->tokens, PythonToken, at);
  bool is_name = t->kind == PYTHON_NAME && !(at > 0 && python_is (t - 1, ".")) && !python_is (t + 1, "=");
  g_autofree char *name = is_name ? g_strndup (t->at, t->n) : NULL;
  const cJSON *item = name ? known (x, name) : NULL,
              *made = cJSON_IsObject (item) ? cJSON_GetObjectItemCaseSensitive (item, "()") : NULL,
              *of = made ? cJSON_GetObjectItemCaseSensitive (item, "0") : item;
  if (!cJSON_IsString (of))
    return NULL;
  return made                ? g_strdup_printf ("%s(\"%s\")", made->valuestring, of->valuestring)
      : !python_is_text (of) ? g_strdup (of->valuestring)
                             : g_strdup_printf ("\"%s\"", of->valuestring);
}

/* Without the marks of holes. */
static void
append_bare (GString *out, const char *text)
{
  for (; *text; text++)
    if (*text != LS_SHELL_HOLE && *text != LS_SHELL_HOLE_END)
      g_string_append_c (out, *text);
}

/* Tokens of one line as they are written, with the texts that names stand for. */
static char *
written (const PythonPlace *x, guint first, guint end)
{
  GString *out = g_string_new (NULL);
  for (guint i = first; i < end && out->len < MAX_HOLE; i++) {
    const PythonToken *t = &g_array_index (x->python->tokens, PythonToken, i);
    if (t->kind == PYTHON_END)
      break;
    g_autofree char *text = text_of_name (x, i);
    if (i > first && t->at > (t - 1)->at + (t - 1)->n)
      g_string_append_len (out, (t - 1)->at + (t - 1)->n, t->at - (t - 1)->at - (gssize) (t - 1)->n);
    if (text)
      append_bare (out, text);
    else
      g_string_append_len (out, t->at, (gssize) t->n);
  }
  char *shown = python_shown (out->str, MIN (out->len, MAX_HOLE));
  g_string_free (out, TRUE);
  return shown;
}

/* In the place of v, from a token on. */
PythonValue
python_hole_of (PythonPlace *x, PythonValue v, guint first)
{
  guint end = MAX (first + 1, x->at);
  g_autofree char *shown = written (x, first, end),
                  *text = g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, shown, LS_SHELL_HOLE_END);
  python_drop (v);
  x->python->n_unknown++;
  return python_value_of (x, cJSON_CreateString (text));
}

/* "{a}" or "{a:03d}" of f"{a}", behind "{": the expression stands at a token. False: that is not known. */
static bool
append_value (GString *out, PythonPlace *x, const char **at, const char *end)
{
  cJSON *item = python_expression (x);
  bool is_whole = python_token (x)->kind == PYTHON_END && !x->python->why;
  const char *behind = python_token (x)[-1].at + python_token (x)[-1].n;
  behind += strspn (behind, " ");
  const gsize n = strcspn (behind, "{}");
  g_autofree char *format = *behind == ':' ? g_strndup (behind + 1, n - 1) : g_strdup (""),
                  *text = is_whole && (*behind == ':' || *behind == '}') && behind[n] == '}'
      ? python_formatted (item, format)
      : NULL;
  if (text) {
    g_string_append (out, text);
    *at = MIN (end, behind + n + 1);
  }
  cJSON_Delete (item);
  x->at++;
  return text;
}

/* f"a{b}". False: it is not known. */
static bool
append_formatted (GString *out, const PythonPlace *x)
{
  const PythonToken *t = python_token (x);
  const gsize quotes = python_text_quotes (t);
  const char *at = t->at + python_text_prefix (t->at) + quotes, *end = t->at + t->n - quotes;
  PythonPlace inner = *x;
  inner.at = t->inner;
  for (bool is_known = t->inner > 0; at < end;) {
    gsize n = MIN (strcspn (at, "{}"), (gsize) (end - at));
    python_append_part (out, t, at, n);
    at += n;
    if (at == end)
      return is_known;
    bool is_brace = at[1] == *at, is_value = *at == '{' && !is_brace;
    if (is_brace)
      g_string_append_c (out, *at);
    at += 1 + is_brace;
    is_known = is_known && (is_brace || is_value);
    if (!is_known || (!is_brace && !append_value (out, &inner, &at, end)))
      return false;
  }
  return t->inner > 0;
}

/* Texts one behind the other are one. */
static PythonValue
text (PythonPlace *x)
{
  g_autoptr (GString) out = g_string_new (NULL);
  guint first = x->at;
  bool is_known = true;
  for (; python_token (x)->kind == PYTHON_TEXT; x->at++)
    if (python_has_prefix (python_token (x), 'f'))
      is_known = append_formatted (out, x) && is_known;
    else
      python_append_text (out, python_token (x));
  if (!is_known || !g_utf8_validate (out->str, -1, NULL))
    return python_hole_of (x, (PythonValue) { 0 }, first);
  return python_value_of (x, cJSON_CreateString (out->str));
}

/* Behind "lambda": "lambda: [1, 2]" is an object that has what it returns as `value`; of one with arguments,
 * or that returns no list, it is not known. */
static PythonValue
lambda_of (PythonPlace *x, guint first)
{
  bool has_none = python_is (python_token (x), ":");
  python_pass_to (x, ":");
  python_take (x, ":");
  PythonValue v = python_any (x);
  if (!has_none || !cJSON_IsArray (v.item))
    return python_hole_of (x, v, first);
  cJSON *made = cJSON_CreateObject ();
  cJSON_AddStringToObject (made, "()", "lambda");
  cJSON_AddItemToObject (made, "value", v.item);
  return python_value_of (x, made);
}

static PythonValue
number (PythonPlace *x)
{
  g_autoptr (GString) digits = g_string_new_len (python_token (x)->at, (gssize) python_token (x)->n);
  char *end;
  g_string_replace (digits, "_", "", 0);
  double value = g_ascii_strtod (digits->str, &end);
  bool is_float = strpbrk (digits->str, ".eE") && !strpbrk (digits->str, "xX");
  guint first = x->at++;
  return *end || !isfinite (value) ? python_hole_of (x, (PythonValue) { 0 }, first)
                                   : python_value_of (x, python_number (value, is_float));
}

static PythonValue
name (PythonPlace *x)
{
  g_autofree char *text = g_strndup (python_token (x)->at, python_token (x)->n);
  guint first = x->at++;
  if (strcmp (text, "None") == 0)
    return python_value_of (x, cJSON_CreateNull ());
  if (strcmp (text, "True") == 0 || strcmp (text, "False") == 0)
    return python_value_of (x, cJSON_CreateBool (*text == 'T'));
  if (strcmp (text, "lambda") == 0)
    return lambda_of (x, first);
  if (strcmp (text, "__name__") == 0 && x->python->is_script && x->module == 0)
    return python_value_of (x, cJSON_CreateString ("__main__"));
  if (strcmp (text, "__file__") == 0)
    return python_value_of (
        x, cJSON_CreateString (g_array_index (x->python->modules, PythonModule, x->module).path));
  const cJSON *item = known (x, text);
  return item ? python_copy_of (x, item) : (PythonValue) { .name = g_steal_pointer (&text) };
}

/* --- calls ----------------------------------------------------------------------------------------- */

/* "**b" and "*b" behind the mark. What is not known of it is named. */
static void
spread_argument (PythonPlace *x, cJSON *call, guint *n, bool is_list)
{
  guint mark = x->at - 1;
  PythonValue v = python_any (x);
  if (!is_list && python_is_dictionary (v.item))
    python_spread (x, call, v.item);
  else if (is_list && cJSON_IsArray (v.item))
    for (const cJSON *item = v.item->child; item; item = item->next) {
      g_autofree char *key = g_strdup_printf ("%u", (*n)++);
      python_set_member (call, key, python_item_of (x, python_copy_of (x, item)));
    }
  else
    python_pass (x->python, x->module, mark);
  python_drop (v);
}

/* *n counts those without a name, *n_open those whose value is a name that means nothing here. */
static void
argument (PythonPlace *x, cJSON *call, guint *n, guint *n_open)
{
  bool is_named = python_token (x)->kind == PYTHON_NAME && python_is (python_token (x) + 1, "="),
       is_list = python_take (x, "*");
  if (is_list || python_take (x, "**")) {
    spread_argument (x, call, n, is_list);
    return;
  }
  g_autofree char *key
      = is_named ? g_strndup (python_token (x)->at, python_token (x)->n) : g_strdup_printf ("%u", *n);
  guint first = x->at;
  x->at += is_named ? 2 : 0;
  guint n_passed = x->python->passed->len;
  PythonValue v = python_any (x);
  if (python_is (python_token (x), "for")) {
    cJSON *made = python_made_of_each (x, first, ")", false, n_passed);
    if (!made)
      python_pass_to (x, ")");
    else
      python_drop (v);
    v = made ? python_value_of (x, made) : python_hole_of (x, v, first);
  }
  *n += !is_named;
  *n_open += !v.item;
  python_set_member (call, key, python_item_of (x, v));
}

/* replace (x, a=1): what a call of it is, which is taken. */
static cJSON *
replaced (cJSON *call)
{
  cJSON *object = cJSON_DetachItemFromObjectCaseSensitive (call, "0"), *item;
  cJSON_DeleteItemFromObjectCaseSensitive (call, "()");
  object->valueint = 0; /* it is another one */
  while ((item = cJSON_DetachItemFromArray (call, 0)))
    python_set_member (object, item->string, item);
  cJSON_Delete (call);
  return object;
}

/* What a call of a class makes, which is taken: members that it does not say are as they usually are; members
 * is taken. With arguments in order nobody knows which they are. */
static cJSON *
constructed (cJSON *members, cJSON *call)
{
  cJSON *item;
  if (cJSON_GetObjectItemCaseSensitive (call, "0"))
    cJSON_Delete (members);
  else {
    while ((item = cJSON_DetachItemFromArray (members, 0)))
      if (cJSON_GetObjectItemCaseSensitive (call, item->string))
        cJSON_Delete (item);
      else
        cJSON_AddItemToObject (call, item->string, item);
    cJSON_Delete (members);
  }
  return call;
}

/* What a call of a function gives whose body is followed; call: its arguments, which are taken. As it is
 * written where a condition in the body is not known, and the call hands something over. */
static cJSON *
followed (PythonPlace *x, const char *name, cJSON *call, bool is_bare, bool is_statement, guint line)
{
  LsPython *p = x->python;
  guint n_open = p->n_open, n_passed = p->passed->len;
  cJSON *arguments = cJSON_Duplicate (call, true), *result = p->call (p, x->module, name, arguments, line);
  bool is_whole = is_bare || is_statement || (result && p->n_open == n_open);
  cJSON_Delete (is_whole ? call : result);
  cJSON_Delete (arguments);
  if (!is_whole) { /* what is open in it is so no more for those around it */
    python_forget_passed (p, n_passed);
    p->n_open = n_open;
  }
  return is_whole ? result : call;
}

guint
python_arguments (PythonPlace *x, cJSON *call)
{
  guint n = 0, n_open = 0;
  while (!python_is (python_token (x), ")") && python_token (x)->kind != PYTHON_END && !x->python->why) {
    argument (x, call, &n, &n_open);
    if (!python_take (x, ","))
      break;
  }
  python_expect (x, ")");
  return n_open;
}

/* Where the line of a token begins. */
static guint
line_start (const LsPython *p, guint at)
{
  while (at > 0 && g_array_index (p->tokens, PythonToken, at - 1).kind != PYTHON_END)
    at--;
  return at;
}

/* Whether a function that is not here, and no class, is handed an object that is set to a name, and may
 * change it. */
static bool
may_change (const LsPython *p, const char *name, const cJSON *call)
{
  static const char *const others[]
      = { "asdict", "astuple", "cast",  "dumps",  "fields",  "format", "hash",  "id",
          "iter",   "map",     "next",  "print",  "repr",    "set",    "slice", "filter",
          "type",   "vars",    "super", "pprint", "partial", NULL };
  const char *dot = strrchr (name, '.'), *last = dot ? dot + 1 : name;
  if (g_ascii_isupper (*last) || g_strv_contains (others, last))
    return false;
  for (const cJSON *item = call->child; item; item = item->next)
    if (!python_is_unknown (item) && python_is_shared (p, item))
      return true;
  return false;
}

/* Behind "(". callee: a name, or something of which a method is called. */
static PythonValue
call (PythonPlace *x, PythonValue callee, guint first)
{
  cJSON *object = cJSON_CreateObject ();
  guint line = python_token (x)->line;
  bool is_statement = x->python->is_statement;
  x->python->is_statement = false;
  if (callee.name)
    cJSON_AddStringToObject (object, "()", callee.name);
  bool is_bare = python_is (python_token (x), ")");
  guint n_open = python_arguments (x, object);
  if (!callee.name) {
    cJSON_Delete (object);
    return python_hole_of (x, callee, first);
  }
  bool replaces = g_str_has_suffix (callee.name, "replace")
      && cJSON_IsObject (cJSON_GetObjectItemCaseSensitive (object, "0"));
  if (python_is_builtin (x->python, callee.name)) {
    cJSON *answer = python_answer (x->python, callee.name, object, n_open);
    cJSON_Delete (object);
    return answer ? (python_drop (callee), python_value_of (x, answer)) : python_hole_of (x, callee, first);
  }
  cJSON *members = python_has_function (x->python, x->module, callee.name)
      ? NULL
      : x->python->members (x->python, x->module, callee.name);
  if (members)
    object = constructed (members, object);
  else if (python_has_function (x->python, x->module, callee.name))
    object = followed (x, callee.name, object, is_bare, is_statement, line);
  else if (replaces)
    object = replaced (object);
  else if (python_adds_options (callee.name, object))
    object = python_taken (object, "0");
  else {
    x->python->n_unknown++;
    python_note_engine (x->python, callee.name, object);
    if (may_change (x->python, callee.name, object))
      python_pass (x->python, x->module, line_start (x->python, first));
  }
  g_free (callee.name);
  return python_value_of (x, object ? object : cJSON_CreateNull ());
}

static PythonValue
member (PythonPlace *x, PythonValue v, guint first)
{
  g_autofree char *key = g_strndup (python_token (x)->at, python_token (x)->n);
  x->at++;
  cJSON *members = v.name && !python_is (python_token (x), "(")
      ? x->python->members (x->python, x->module, v.name)
      : NULL,
        *of_class = members ? cJSON_DetachItemFromObjectCaseSensitive (members, key) : NULL;
  cJSON_Delete (members);
  if (of_class) {
    python_drop (v);
    return python_value_of (x, of_class);
  }
  if (v.name) {
    char *longer = g_strconcat (v.name, ".", key, NULL);
    g_free (v.name);
    return (PythonValue) { .name = longer };
  }
  const cJSON *item = cJSON_IsObject (v.item) ? cJSON_GetObjectItemCaseSensitive (v.item, key) : NULL;
  if (!item || python_is (python_token (x), "("))
    return python_hole_of (x, v, first);
  PythonValue copy = python_copy_of (x, item);
  python_drop (v);
  return copy;
}

/* What a method is called of that may change it, whose arguments begin here: a path with the method, from a
 * token on; NULL: it is none. */
static GPtrArray *
changed_by (const PythonPlace *x, guint first)
{
  PythonPlace at = *x;
  g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
  at.at = first;
  bool is_path = python_read_path (&at, path, false) && at.at + 1 == x->at;
  return is_path && python_is_change (path) && python_is_set (x, path) ? g_steal_pointer (&path) : NULL;
}

/* "lower ()" of a value that is known, behind the dot. */
static PythonValue
method (PythonPlace *x, PythonValue v, guint first)
{
  g_autofree char *name = g_strndup (python_token (x)->at, python_token (x)->n);
  cJSON *arguments = cJSON_CreateObject ();
  x->at += 2;
  g_autoptr (GPtrArray) changed = changed_by (x, first);
  bool is_open = python_arguments (x, arguments) > 0;
  cJSON *answer = is_open || changed ? NULL
      : python_is_parser (v.item)    ? python_parse (x, v.item, name, arguments, first)
                                     : python_method (v.item, name, arguments);
  cJSON_Delete (arguments);
  if (!answer) {
    v = python_hole_of (x, v, first);
    if (changed)
      python_open_change (x, changed, first);
    return v;
  }
  python_drop (v);
  return python_value_of (x, answer);
}

static PythonValue
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
    return python_items (x, ")", true);
  if (python_take (x, "["))
    return python_items (x, "]", false);
  if (python_take (x, "{"))
    return python_dictionary (x);
  python_fail (x->python, t->line, "expected a value");
  return (PythonValue) { .item = cJSON_CreateNull () };
}

PythonValue
python_operand (PythonPlace *x)
{
  guint first = x->at;
  PythonValue v = atom (x);
  while (!x->python->why)
    if (python_take (x, "."))
      v = v.item && python_is (python_token (x) + 1, "(") ? method (x, v, first) : member (x, v, first);
    else if (python_take (x, "("))
      v = call (x, v, first);
    else if (python_take (x, "["))
      v = python_subscript (x, v, first);
    else
      break;
  return v;
}
