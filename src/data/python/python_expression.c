/* data/python/python_expression.c — values of Python, and texts, numbers, names, lists, calls and operators
 * that make them. What is not known is a hole, with its words and what names in it were set to. */
#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"
#include "data/text/json_doc.h"

#define MAX_HOLE 120 /* letters of an expression that a hole shows */

/* --- values ------------------------------------------------------------------------------------------ */

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
python_scalar (LsPython *p, PythonKind kind, double number, bool is_float)
{
  PythonValue *v = python_new (p, kind);
  v->number = is_float ? number : number + 0.0; /* -0 is 0 */
  v->is_float = is_float;
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
  python_merge (v, of, 0, false);
  for (guint i = 0; i < python_n (v) && !p->why; i++) {
    PythonValue *item = v->items->pdata[i] = python_copy (p, v->items->pdata[i]);
    item->is_held = true;
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
static PythonTruth
is_same (const PythonValue *a, const PythonValue *b)
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
  if (!has_members) {
    cJSON *plain = cJSON_CreateString (text);
    plain->valueint = v->kind != PYTHON_IS_TEXT && v->kind != PYTHON_IS_HOLE;
    return plain;
  }
  bool is_within = python_enter (p, p->line);
  cJSON *item = !is_within ? cJSON_CreateNull () : is_list ? cJSON_CreateArray () : cJSON_CreateObject ();
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

static bool
expect (PythonPlace *x, const char *text)
{
  if (python_take (x, text))
    return true;
  g_autofree char *why = g_strdup_printf ("expected \"%s\"", text);
  python_fail (x->python, python_token (x)->line, why);
  return false;
}

/* --- holes -------------------------------------------------------------------------------------------- */

const char *
python_hole_text (const PythonPlace *x, guint first, guint end)
{
  g_autoptr (GString) out = g_string_new (NULL);
  const PythonToken *t = &g_array_index (x->python->tokens, PythonToken, first);
  for (guint i = first; i < end && out->len < MAX_HOLE && t->kind != PYTHON_END; i++, t++) {
    bool is_name = t->kind == PYTHON_NAME && !(i > 0 && python_is (t - 1, ".")) && !python_is (t + 1, "=");
    const PythonValue *v = is_name ? python_lookup (x, t->word) : NULL,
                      *of = v && v->kind == PYTHON_IS_CALL ? python_get (v, "0") : v;
    if (i > first && t->at > t[-1].at + t[-1].n)
      g_string_append_len (out, t[-1].at + t[-1].n, t->at - t[-1].at - (gssize) t[-1].n);
    if (of && of->kind == PYTHON_IS_TEXT)
      g_string_append_printf (out, v != of ? "%s(\"%s\")" : "%s\"%s\"", v != of ? v->text : "", of->text);
    else if (of && v == of && (of->kind == PYTHON_IS_HOLE || of->kind == PYTHON_IS_NAME))
      g_string_append (out, of->text);
    else
      g_string_append_len (out, t->at, (gssize) t->n);
  }
  g_autofree char *shown = python_shown (out->str, MIN (out->len, MAX_HOLE));
  return g_string_chunk_insert (x->python->texts, shown);
}

PythonValue *
python_hole (PythonPlace *x, guint first)
{
  return python_called (x->python, PYTHON_IS_HOLE, python_hole_text (x, first, MAX (first + 1, x->at)));
}

/* --- texts, numbers and names --------------------------------------------------------------------------- */

/* "{a}", "{a.b}" of f"{a}": what stands behind "{". Returns how many letters it has, with its "}"; 0: that is
 * not known. */
static gsize
append_value (GString *out, const PythonPlace *x, const char *at)
{
  g_autofree char *path = g_strndup (at, strcspn (at, "}"));
  g_auto (GStrv) names = g_strsplit (g_strstrip (path), ".", -1);
  const PythonValue *v = *names ? python_lookup (x, *names) : NULL;
  for (char **name = names + 1; v && *name; name++)
    v = python_get (v, *name);
  g_autofree char *text = v ? python_written (v) : NULL;
  g_string_append (out, text ? text : "");
  return text ? strcspn (at, "}") + 1 : 0;
}

/* Appends n letters of a text. False: what a backslash means there is not known. */
static bool
append_letters (GString *out, const PythonToken *t, const char *at, gsize n)
{
  static const char letters[] = "nt\\'\"", meant[] = "\n\t\\'\"";
  for (const char *end = at + n; at < end; at++) {
    bool is_escape = *at == '\\' && !t->is_raw;
    at += is_escape;
    const char *letter = is_escape && at < end ? memchr (letters, *at, sizeof letters - 1) : NULL;
    if (is_escape && !letter && *at != '\n')
      return false;
    if (letter || !is_escape)
      g_string_append_c (out, letter ? meant[letter - letters] : *at);
  }
  return true;
}

/* One text. False: it is not known. */
static bool
append_text (GString *out, const PythonPlace *x)
{
  const PythonToken *t = python_token (x);
  const char *at = t->inside, *end = at + t->n_inside;
  if (!t->is_formatted)
    return append_letters (out, t, at, t->n_inside);
  for (gsize part; at < end; at += part) {
    bool is_value = *at == '{' && at[1] != '{', is_mark = !is_value && strchr ("{}", *at);
    part = is_mark ? 1 : MIN (strcspn (at, "{}"), (gsize) (end - at));
    if (is_value && (part = append_value (out, x, at + 1)) > 0)
      part++;
    else if (is_value || (is_mark && at[1] != *at) || !append_letters (out, t, at, part))
      return false;
    part += is_mark;
  }
  return true;
}

/* Texts one behind the other are one. */
static PythonValue *
text (PythonPlace *x)
{
  g_autoptr (GString) out = g_string_new (NULL);
  guint first = x->at;
  bool is_known = true;
  for (; python_token (x)->kind == PYTHON_TEXT; x->at++)
    is_known = append_text (out, x) && is_known;
  is_known = is_known && g_utf8_validate (out->str, -1, NULL);
  return is_known ? python_called (x->python, PYTHON_IS_TEXT, out->str) : python_hole (x, first);
}

static PythonValue *
number (PythonPlace *x)
{
  g_autoptr (GString) digits = g_string_new (python_token (x)->word);
  char *end;
  g_string_replace (digits, "_", "", 0);
  double value = g_ascii_strtod (digits->str, &end);
  bool is_float = strpbrk (digits->str, ".eE") && !strpbrk (digits->str, "xX");
  guint first = x->at++;
  return *end || !isfinite (value) ? python_hole (x, first)
                                   : python_scalar (x->python, PYTHON_IS_NUMBER, value, is_float);
}

/* "lambda: [1, 2]" is a call that has what it returns as `value`; of one with arguments it is not known. */
static PythonValue *
name (PythonPlace *x)
{
  const char *word = python_token (x)->word;
  guint first = x->at++;
  if (strcmp (word, "None") == 0)
    return python_new (x->python, PYTHON_IS_NONE);
  if (ls_shell_is_one (word, "True False"))
    return python_scalar (x->python, PYTHON_IS_BOOL, *word == 'T', false);
  if (strcmp (word, "lambda") == 0) {
    bool has_none = python_is (python_token (x), ":");
    python_pass_to (x, ":");
    python_take (x, ":");
    PythonValue *value = python_expression (x), *made = python_called (x->python, PYTHON_IS_CALL, word);
    python_set (made, "value", value, false);
    return has_none && value->kind != PYTHON_IS_HOLE ? made : python_hole (x, first);
  }
  if (strcmp (word, "__file__") == 0)
    return python_called (x->python, PYTHON_IS_TEXT, python_module (x->python, x->module)->path);
  PythonValue *value = python_lookup (x, word);
  return value ? value : python_called (x->python, PYTHON_IS_NAME, word);
}

/* --- lists, dictionaries and arguments ---------------------------------------------------------------- */

/* Whether behind what was read stands what is not known, "for a in b"; it is passed over then. */
static bool
has_more (PythonPlace *x, const char *end)
{
  const bool has_none = python_is (python_token (x), ",") || python_is (python_token (x), end);
  if (!has_none)
    python_pass_to (x, end);
  return !has_none;
}

/* One of what stands in a list, a tuple or a dictionary: "a", "*a", "**a" or "key: a"; a set is a list.
 * False: it is not known. */
static bool
add_element (PythonPlace *x, PythonValue *to)
{
  bool is_members = to->kind == PYTHON_IS_DICTIONARY && python_take (x, "**"),
       is_items = !is_members && python_take (x, "*");
  PythonValue *item = python_expression (x);
  if (!is_members && to->kind == PYTHON_IS_DICTIONARY && !to->keys && !python_is (python_token (x), ":"))
    to->kind = PYTHON_IS_LIST;
  if (is_members || is_items) {
    bool is_known = is_items ? python_is_list (item) : item->kind == PYTHON_IS_DICTIONARY;
    python_merge (to, is_known ? item : NULL, 0, false);
    return is_known;
  }
  PythonValue *value = to->kind == PYTHON_IS_DICTIONARY && expect (x, ":") ? python_expression (x) : item;
  if (to->kind != PYTHON_IS_DICTIONARY)
    python_add (to, item);
  else if (item->kind == PYTHON_IS_TEXT)
    python_set (to, item->text, value, false);
  return to->kind != PYTHON_IS_DICTIONARY || item->kind == PYTHON_IS_TEXT;
}

static bool
goes_on (const PythonPlace *x, const char *ends)
{
  return !python_is (python_token (x), ends) && python_token (x)->kind != PYTHON_END && !x->python->why;
}

/* Adds what stands up to the bracket at the end, or, without brackets, up to one of the ends; one item in
 * brackets is no tuple. */
static PythonValue *
elements (PythonPlace *x, PythonValue *all, const char *ends, guint first)
{
  const bool has_bracket = ends[1] == '\0';
  bool is_known = true, is_tuple = all->kind != PYTHON_IS_TUPLE || python_n (all) > 0;
  while (goes_on (x, ends)) {
    is_tuple = is_tuple || python_is (python_token (x), "*");
    is_known = add_element (x, all) && is_known;
    is_known = !(has_bracket && has_more (x, ends)) && is_known;
    if (!python_take (x, ","))
      break;
    is_tuple = true;
  }
  if (has_bracket)
    expect (x, ends);
  return !is_known ? python_hole (x, first) : is_tuple || !all->items ? all : all->items->pdata[0];
}

PythonValue *
python_several (PythonPlace *x)
{
  const guint first = x->at;
  PythonValue *item = python_is (python_token (x), "*") ? NULL : python_expression (x);
  if (item && !python_take (x, ","))
    return item;
  PythonValue *all = python_new (x->python, PYTHON_IS_TUPLE);
  if (item)
    python_add (all, item);
  return elements (x, all, "= ] )", first);
}

/* What is not known of "*a" and "**a" is named. */
PythonValue *
python_arguments (PythonPlace *x, const char *callee)
{
  PythonValue *call = python_called (x->python, PYTHON_IS_CALL, callee);
  for (guint n = 0; goes_on (x, ")");) {
    const PythonToken *t = python_token (x);
    bool is_named = t->kind == PYTHON_NAME && python_is (t + 1, "="), is_list = python_take (x, "*"),
         is_members = !is_list && python_take (x, "**");
    x->at += is_named ? 2 : 0;
    const guint first = x->at;
    PythonValue *v = python_expression (x);
    bool is_held = v->is_held; /* an argument alone is held by nobody else */
    if (is_list ? !python_is_list (v) : is_members && v->kind != PYTHON_IS_DICTIONARY)
      python_pass (x->python, first - 1);
    else if (is_members)
      python_merge (call, v, 0, false);
    else if (is_list)
      for (guint i = 0; i < python_n (v); i++)
        python_set_place (x->python, call, n++, v->items->pdata[i]);
    else {
      if (has_more (x, ")"))
        is_held = (v = python_hole (x, first))->is_held;
      if (is_named)
        python_set (call, t->word, v, true);
      else
        python_set_place (x->python, call, n++, v);
      v->is_held = is_held;
    }
    if (!python_take (x, ","))
      break;
  }
  expect (x, ")");
  return call;
}

/* --- members and places ------------------------------------------------------------------------------- */

/* "a" behind the dot, or "lower ()" of a value that is known. */
static PythonValue *
member (PythonPlace *x, PythonValue *v, guint first)
{
  const char *word = python_token (x)->word;
  bool is_path = v->kind == PYTHON_IS_NAME || v->kind == PYTHON_IS_CLASS;
  if (python_token (x)->kind != PYTHON_NAME)
    return python_fail (x->python, python_token (x)->line, "expected a name"), v;
  x->at++;
  if (!is_path && python_take (x, "("))
    return python_method (x, v, word, python_arguments (x, word), first);
  PythonValue *item = python_is_list (v) ? NULL : python_get (v, word);
  g_autofree char *longer = !item && is_path ? g_strconcat (v->text, ".", word, NULL) : NULL;
  return item ? item : longer ? python_called (x->python, PYTHON_IS_NAME, longer) : python_hole (x, first);
}

/* Behind "[": of a text, and of more than one place, it is not known; os.environ["A"]. */
static PythonValue *
subscript (PythonPlace *x, const PythonValue *v, guint first)
{
  PythonValue *key = python_is (python_token (x), ":") ? NULL : python_several (x), *value = NULL;
  bool is_open, is_one = key && python_is (python_token (x), "]");
  python_pass_to (x, "]");
  expect (x, "]");
  if (is_one && v->kind == PYTHON_IS_NAME && strcmp (v->text, "os.environ") == 0) {
    value = python_variable (x->python, key, &is_open);
    value = value && value->kind == PYTHON_IS_TEXT ? value : NULL;
  } else if (is_one && v->kind >= PYTHON_IS_LIST && v->kind <= PYTHON_IS_DICTIONARY) {
    PythonValue **item = python_item_at (v, key);
    value = item ? *item : NULL;
  }
  return value ? value : python_hole (x, first);
}

static PythonValue *
atom (PythonPlace *x)
{
  static const struct {
    const char *begin, *end;
    PythonKind kind;
  } brackets[]
      = { { "(", ")", PYTHON_IS_TUPLE }, { "[", "]", PYTHON_IS_LIST }, { "{", "}", PYTHON_IS_DICTIONARY } };
  const PythonToken *t = python_token (x);
  if (t->kind == PYTHON_TEXT)
    return text (x);
  if (t->kind == PYTHON_NUMBER)
    return number (x);
  if (t->kind == PYTHON_NAME)
    return name (x);
  for (guint i = 0; i < G_N_ELEMENTS (brackets); i++)
    if (python_take (x, brackets[i].begin))
      return elements (x, python_new (x->python, brackets[i].kind), brackets[i].end, x->at - 1);
  if (python_take (x, "..."))
    return python_hole (x, x->at - 1);
  python_fail (x->python, t->line, "expected a value");
  return python_new (x->python, PYTHON_IS_NONE);
}

static PythonValue *
operand (PythonPlace *x)
{
  guint first = x->at;
  PythonValue *v = atom (x);
  while (!x->python->why)
    if (python_take (x, "."))
      v = member (x, v, first);
    else if (python_take (x, "("))
      v = python_call (x, v, python_arguments (x, v->text ? v->text : ""), first);
    else if (python_take (x, "["))
      v = subscript (x, v, first);
    else
      break;
  return v;
}

/* --- operators ------------------------------------------------------------------------------------------ */

/* a % b, which has the sign of b. */
static double
rest_of (double a, double b)
{
  double rest = fmod (a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* NaN: it is none of numbers. */
static double
computed (const char *mark, double a, double b)
{
  if (strlen (mark) == 2)
    return strcmp (mark, "//") == 0 ? floor ((a - rest_of (a, b)) / b + 0.5)
        : strcmp (mark, "**") == 0  ? pow (a, b)
                                    : NAN;
  return *mark == '+' ? a + b
      : *mark == '-'  ? a - b
      : *mark == '*'  ? a * b
      : *mark == '/'  ? a / b
      : *mark == '%'  ? rest_of (a, b)
                      : NAN;
}

/* Of whole numbers whole ones, as far as they are exact. */
PythonValue *
python_arithmetic (LsPython *p, const char *mark, const PythonValue *a, const PythonValue *b)
{
  bool are_texts = a->kind == PYTHON_IS_TEXT && b->kind == PYTHON_IS_TEXT && strcmp (mark, "+") == 0;
  g_autofree char *joined = are_texts ? g_strconcat (a->text, b->text, NULL) : NULL;
  if (joined)
    return python_called (p, PYTHON_IS_TEXT, joined);
  if (a->kind != PYTHON_IS_NUMBER || b->kind != PYTHON_IS_NUMBER)
    return NULL;
  double value = computed (mark, a->number, b->number);
  bool is_float
      = a->is_float || b->is_float || strcmp (mark, "/") == 0 || (strcmp (mark, "**") == 0 && b->number < 0),
      is_exact = is_float || fabs (value) <= 9007199254740992;
  return isfinite (value) && is_exact ? python_scalar (p, PYTHON_IS_NUMBER, value, is_float) : NULL;
}

static PythonTruth
inverse (PythonTruth truth)
{
  return truth == PYTHON_OPEN ? truth : PYTHON_TRUE - truth;
}

/* "a == b"; None, and nothing else that is known, is None. */
static PythonTruth
is_equal (const PythonValue *a, const PythonValue *b)
{
  if (a->kind != PYTHON_IS_NONE && b->kind != PYTHON_IS_NONE)
    return is_same (a, b);
  if (a->kind == b->kind)
    return PYTHON_TRUE;
  return python_is_unknown (a) || python_is_unknown (b) ? PYTHON_OPEN : PYTHON_FALSE;
}

static PythonTruth
compared (const char *mark, const PythonValue *a, const PythonValue *b)
{
  if (strcmp (mark, "in") == 0 && python_is_list (b)) {
    PythonTruth truth = PYTHON_FALSE;
    for (guint i = 0; i < python_n (b) && truth != PYTHON_TRUE; i++) {
      PythonTruth is_it = is_same (b->items->pdata[i], a);
      truth = is_it == PYTHON_FALSE ? truth : is_it;
    }
    return truth;
  }
  if (ls_shell_is_one (mark, "== is"))
    return is_equal (a, b);
  if (strcmp (mark, "!=") == 0)
    return inverse (is_equal (a, b));
  if (strcmp (mark, "in") == 0 || a->kind != PYTHON_IS_NUMBER || b->kind != PYTHON_IS_NUMBER)
    return PYTHON_OPEN;
  const double below = a->number - b->number;
  return strcmp (mark, "<") == 0 ? below < 0
      : strcmp (mark, ">") == 0  ? below > 0
      : strcmp (mark, "<=") == 0 ? below <= 0
                                 : below >= 0;
}

/* "-a", "a ** b", which binds more than the sign of a, and less than that of b. */
static PythonValue *
unary (PythonPlace *x)
{
  const guint first = x->at;
  double sign = 1;
  for (; python_is (python_token (x), "- +"); x->at++)
    sign = python_is (python_token (x), "-") ? -sign : sign;
  bool is_known = !python_take (x, "~") && !python_take (x, "await");
  const guint begin = x->at;
  PythonValue *v = operand (x);
  if (python_is (python_token (x), "**") && python_enter (x->python, python_token (x)->line)) {
    x->at++;
    PythonValue *made = python_arithmetic (x->python, "**", v, unary (x));
    v = made ? made : python_hole (x, begin);
    x->python->depth--;
  }
  if (begin == first)
    return v;
  return is_known && v->kind == PYTHON_IS_NUMBER
      ? python_scalar (x->python, PYTHON_IS_NUMBER, v->number * sign, v->is_float)
      : python_hole (x, first);
}

/* Those that bind least come first; "not" in front binds less than what compares. */
enum { OR, AND, COMPARISON, N_LEVELS = 6 };
static const char *const levels[N_LEVELS]
    = { "or", "and", "== != < > <= >= in is not", "| & ^ << >>", "+ -", "* / // % @" };

static PythonValue *operators (PythonPlace *x, guint level);

/* "not a". */
static PythonValue *
negation (PythonPlace *x)
{
  guint first = x->at;
  bool is_not = false;
  while (python_take (x, "not"))
    is_not = !is_not;
  const bool is_plain = x->at == first;
  PythonValue *v = operators (x, COMPARISON);
  if (is_plain)
    return v;
  PythonTruth truth = python_truth_of (v);
  return truth == PYTHON_OPEN
      ? python_hole (x, first)
      : python_scalar (x->python, PYTHON_IS_BOOL, (truth == PYTHON_TRUE) != is_not, false);
}

/* What stands between operators of a level. */
static PythonValue *
part (PythonPlace *x, guint level)
{
  return level == AND ? negation (x) : level + 1 == N_LEVELS ? unary (x) : operators (x, level + 1);
}

/* An operator behind v with what stands behind it; "a or b" is a if that is true, "a and b" if that is false.
 * NULL: it is not known. is_chain: of "a < b < c", which is not. */
static PythonValue *
applied (PythonPlace *x, guint level, PythonValue *v, bool is_chain)
{
  bool is_not = level == COMPARISON && python_take (x, "not");
  const char *mark = python_token (x)->word;
  x->at += python_token (x)->kind != PYTHON_END;
  is_not = is_not || (level == COMPARISON && strcmp (mark, "is") == 0 && python_take (x, "not"));
  PythonValue *other = part (x, level);
  if (level > COMPARISON)
    return python_arithmetic (x->python, mark, v, other);
  PythonTruth truth = level < COMPARISON ? python_truth_of (v)
      : is_chain                         ? PYTHON_OPEN
                                         : compared (mark, v, other);
  if (level == COMPARISON)
    return truth == PYTHON_OPEN
        ? NULL
        : python_scalar (x->python, PYTHON_IS_BOOL, (truth == PYTHON_TRUE) != is_not, false);
  return truth == PYTHON_OPEN ? NULL : truth == (level == AND ? PYTHON_FALSE : PYTHON_TRUE) ? v : other;
}

static PythonValue *
operators (PythonPlace *x, guint level)
{
  guint first = x->at;
  PythonValue *v = part (x, level);
  for (guint n = 0; python_is (python_token (x), levels[level]) && !x->python->why; n++) {
    PythonValue *made = applied (x, level, v, n > 0);
    v = made ? made : python_hole (x, first);
  }
  return v;
}

PythonValue *
python_expression (PythonPlace *x)
{
  guint first = x->at;
  LsPython *p = x->python;
  PythonValue *v
      = python_enter (p, python_token (x)->line) ? operators (x, OR) : python_new (p, PYTHON_IS_NONE);
  if (!p->why && python_take (x, "if")) {
    PythonTruth truth = python_truth_of (python_expression (x));
    PythonValue *other = expect (x, "else") ? python_expression (x) : v;
    v = truth == PYTHON_OPEN ? python_hole (x, first) : truth == PYTHON_FALSE ? other : v;
  }
  p->depth--;
  return v;
}
