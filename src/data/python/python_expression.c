/* data/python/python_expression.c — values of Python, and texts, numbers, names, lists, calls and operators
 * that make them. What is not known is a hole, with its words and what names in it were set to. What a call
 * gives: a class of the files, a function of them whose body only assigns and calls, a few functions of
 * Python itself; another call is kept as it is. */
#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"
#include "data/text/json_doc.h"

#define MAX_HOLE 120 /* letters of an expression that a hole shows */

/* --- values ------------------------------------------------------------------------------------------ */

PythonValue *
python_new (LsPython *p, PythonKind kind, const char *text)
{
  PythonValue *v = g_new0 (PythonValue, 1);
  v->kind = kind;
  v->text = text ? g_string_chunk_insert (p->texts, text) : NULL;
  g_ptr_array_add (p->values, v);
  if (++p->n_items > PYTHON_MAX_ITEMS)
    python_fail (p, p->spot, "it makes too much");
  return v;
}

PythonValue *
python_scalar (LsPython *p, PythonKind kind, double number, bool is_float)
{
  PythonValue *v = python_new (p, kind, NULL);
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

static void
add_item (PythonValue *to, PythonValue *item)
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
  const guint i = place_of (to, key);
  if (!to->keys) {
    to->keys = g_ptr_array_new ();
    to->items = g_ptr_array_new ();
  }
  if (i < to->keys->len) {
    g_ptr_array_remove_index (to->items, i);
    g_ptr_array_remove_index (to->keys, i);
  }
  g_ptr_array_insert (to->keys, to_end ? -1 : (gint) i, (gpointer) key);
  g_ptr_array_insert (to->items, to_end ? -1 : (gint) i, item);
  item->is_held = true;
}

/* Of an argument in order. */
static void
set_place (LsPython *p, PythonValue *to, guint i, PythonValue *item)
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
      add_item (to, from->items->pdata[i]);
}

/* Another value of lists, dictionaries and objects, and of what they hold; others are themselves. */
static PythonValue *
copy_of (LsPython *p, PythonValue *of)
{
  if (!python_is_mutable (of) || !python_enter (p, p->spot))
    return of;
  PythonValue *v = python_new (p, of->kind, of->text);
  python_merge (v, of, 0, false);
  for (guint i = 0; i < python_n (v) && !p->why; i++) {
    PythonValue *item = v->items->pdata[i] = copy_of (p, v->items->pdata[i]);
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

/* --- what is open ------------------------------------------------------------------------------------ */

bool
python_is_mutable (const PythonValue *v)
{
  return v->kind == PYTHON_IS_LIST || v->kind == PYTHON_IS_DICTIONARY || v->kind == PYTHON_IS_CALL
      || (v->kind == PYTHON_IS_HOLE && v->items);
}

/* What str () makes of a value; NULL: that is not known. The caller frees it. */
static char *
written (const PythonValue *v)
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
  bool is_list = python_is_list (v),
       has_members = (v->kind >= PYTHON_IS_LIST && v->kind <= PYTHON_IS_CALL)
      || (v->items && v->kind < PYTHON_IS_FUNCTION);
  g_autofree char *text = v->kind == PYTHON_IS_HOLE
      ? g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, v->text, LS_SHELL_HOLE_END)
      : g_strdup (v->text);
  if (++p->n_items > PYTHON_MAX_ITEMS)
    python_fail (p, p->spot, "it makes too much");
  if (v->kind == PYTHON_IS_NUMBER)
    return cJSON_CreateNumber (v->number);
  if (v->kind <= PYTHON_IS_BOOL)
    return v->kind == PYTHON_IS_NONE ? cJSON_CreateNull () : cJSON_CreateBool (v->number != 0);
  if (!has_members) {
    cJSON *plain = cJSON_CreateString (text);
    plain->valueint = v->kind != PYTHON_IS_TEXT && v->kind != PYTHON_IS_HOLE;
    return plain;
  }
  bool is_within = python_enter (p, p->spot);
  cJSON *item = !is_within ? cJSON_CreateNull () : is_list ? cJSON_CreateArray () : cJSON_CreateObject ();
  if (is_within && text && v->kind != PYTHON_IS_DICTIONARY)
    cJSON_AddStringToObject (item, "()", text);
  for (guint i = 0; is_within && i < python_n (v) && !p->why; i++)
    if (is_list)
      cJSON_AddItemToArray (item, python_json (p, v->items->pdata[i]));
    else
      cJSON_AddItemToObject (item, v->keys->pdata[i], python_json (p, v->items->pdata[i]));
  p->depth--;
  return item;
}

/* --- functions of the files --------------------------------------------------------------------------- */

bool
python_read_parameter (PythonPlace *x, bool asks_usual, PythonParameter *ret)
{
  *ret = (PythonParameter) { .is_named = python_take (x, "**") };
  ret->is_all = ret->is_named || python_take (x, "*");
  if (ret->is_named || python_token (x)->kind == PYTHON_NAME) {
    ret->name = python_token (x)->word;
    x->at++;
    x->at = python_next (x, "= , )");
    ret->has_usual = python_take (x, "=");
    if (ret->has_usual && asks_usual)
      ret->usual = python_expression (x);
    x->at = python_next (x, "= , )");
  } else if (!ret->is_all && !python_take (x, "/"))
    return false;
  return !x->python->why && (python_take (x, ",") || python_is (python_token (x), ")"));
}

/* What parameters are in a call, none of whose arguments is left over. False: one of them has no value. */
static bool
bind (LsPython *p, const PythonValue *function, const PythonValue *call, GHashTable *names)
{
  const PythonLine *line = python_line (p, function->line);
  PythonPlace x = { .python = p, .module = line->module, .at = python_parameters_of (p, line) };
  guint place = 0, n_bound = 0;
  for (PythonParameter one; !python_is (python_token (&x), ")");) {
    char number[16];
    if (!python_read_parameter (&x, false, &one))
      return false;
    if (!one.name)
      continue;
    g_snprintf (number, sizeof number, "%u", place);
    PythonValue *item = one.is_all
        ? python_new (p, one.is_named ? PYTHON_IS_DICTIONARY : PYTHON_IS_TUPLE, NULL)
        : python_get (call, one.name);
    if (!item && (item = python_get (call, number)))
      place++;
    n_bound += item && !one.is_all;
    item = item ? item : python_get (function, one.name);
    if (!item)
      return false;
    item->is_held = true;
    g_hash_table_insert (names, (gpointer) one.name, item);
  }
  return n_bound == python_n (call);
}

PythonValue *
python_run_function (LsPython *p, const PythonValue *function, const PythonValue *call)
{
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  PythonValue *result = NULL;
  if (python_enter (p, p->spot) && python_parameters_of (p, python_line (p, function->line)) > 0
      && bind (p, function, call, names)) {
    result = python_run_lines (p, function->line + 1, python_block_end (p, function->line), names);
    result = result ? result : python_new (p, PYTHON_IS_NONE, NULL);
  }
  p->depth--;
  return result;
}

/* --- functions of Python itself ----------------------------------------------------------------------- */

PythonValue *
python_converted (LsPython *p, bool is_float, const PythonValue *of)
{
  const char *text = of->kind == PYTHON_IS_TEXT ? of->text : NULL, *digits = text;
  char *end = NULL;
  double value = text ? g_ascii_strtod (text, &end) : of->number;
  digits += text && (*digits == '-' || *digits == '+');
  bool is_number = text
      ? end > text && *end == '\0' && (is_float || strspn (digits, G_CSET_DIGITS) == strlen (digits))
      : of->kind == PYTHON_IS_NUMBER;
  if (!is_number || value > 9e15 || value < -9e15)
    return NULL;
  return python_scalar (p, PYTHON_IS_NUMBER, is_float ? value : (double) (gint64) value, is_float);
}

/* What one of these gives: dict (a, n=1), int (a); NULL: it is not known. */
static PythonValue *
answer (LsPython *p, const char *name, const PythonValue *call)
{
  PythonValue *of = python_get (call, "0");
  bool is_alone = of && python_n (call) == 1;
  if (strcmp (name, "dict") == 0 && (!of || of->kind == PYTHON_IS_DICTIONARY)) {
    PythonValue *made = python_new (p, PYTHON_IS_DICTIONARY, NULL);
    python_merge (made, of, 0, false);
    python_merge (made, call, of != NULL, false);
    return made;
  }
  if (is_alone && (strcmp (name, "int") == 0 || strcmp (name, "float") == 0))
    return python_converted (p, *name == 'f', of);
  g_autofree char *text = is_alone && strcmp (name, "str") == 0 ? written (of) : NULL;
  return text ? python_new (p, PYTHON_IS_TEXT, text) : NULL;
}

/* replace (x, a=1), copy.deepcopy (x). NULL: it is none of them. */
static PythonValue *
copied (LsPython *p, const char *name, const PythonValue *call)
{
  PythonValue *of = python_get (call, "0");
  bool is_copy = g_str_has_suffix (name, "deepcopy"), is_list = of && of->kind == PYTHON_IS_LIST;
  if (!of || !python_is_mutable (of) || !(is_copy || (g_str_has_suffix (name, "replace") && !is_list)))
    return NULL;
  PythonValue *other = is_copy ? copy_of (p, of) : python_new (p, of->kind, of->text);
  if (!is_copy)
    python_merge (other, of, 0, true);
  if (!is_list)
    python_merge (other, call, 1, true);
  return other;
}

/* Whether a function that is not here, and no class, is handed an object that something else holds, and may
 * change it; one that is known, unless it is called for nothing but what it does. */
static bool
may_change (const char *name, const PythonValue *call, bool is_statement)
{
  static const char others[]
      = "asdict cast dumps fields format print repr set sorted sum type vars zip pprint "
        "any all field partial enumerate isinstance hasattr join";
  const char *dot = strrchr (name, '.'), *last = dot ? dot + 1 : name;
  bool is_changed = false;
  for (guint i = 0; i < python_n (call); i++) {
    const PythonValue *item = call->items->pdata[i];
    const char *mark = item->text ? strrchr (item->text, '.') : NULL;
    /* what a class makes is known */
    bool is_unknown = item->kind == PYTHON_IS_HOLE || item->kind == PYTHON_IS_NAME
        || (item->kind == PYTHON_IS_CALL && !g_ascii_isupper (mark ? mark[1] : *item->text));
    is_changed = is_changed || (item->is_held && python_is_mutable (item) && (is_statement || !is_unknown));
  }
  return is_changed && !g_ascii_isupper (*last) && !ls_is_one_of (last, others);
}

/* os.environ.setdefault ("A", "1"), of which nobody knows whether it is set, os.environ.update (A="1"), or of
 * a dictionary. */
static void
set_variables (LsPython *p, const char *method, const PythonValue *call)
{
  const PythonValue *first = python_get (call, "0"),
                    *all = first && first->kind == PYTHON_IS_DICTIONARY ? first : call;
  bool is_usual = first && strcmp (method, "setdefault") == 0;
  if (is_usual && first->kind == PYTHON_IS_TEXT)
    g_hash_table_insert (p->set_variables, (gpointer) first->text, python_new (p, PYTHON_IS_HOLE, method));
  for (guint i = 0; i < python_n (all) && !is_usual; i++)
    g_hash_table_insert (p->set_variables, all->keys->pdata[i], all->items->pdata[i]);
}

/* --- calls -------------------------------------------------------------------------------------------- */

/* What begins behind the last end of a line before a token. */
static guint
statement_of (const PythonPlace *x, guint at)
{
  while (at > 0 && g_array_index (x->python->tokens, PythonToken, at - 1).kind != PYTHON_END)
    at--;
  return at;
}

/* What a call gives, which begins with a token. Members that one of a class does not say are as they usually
 * are; with arguments in order nobody knows which they are. */
static PythonValue *
call_of (PythonPlace *x, PythonValue *callee, PythonValue *call, guint first)
{
  LsPython *p = x->python;
  const guint start = statement_of (x, first);
  bool is_function = callee->kind == PYTHON_IS_FUNCTION, is_class = callee->kind == PYTHON_IS_CLASS,
       is_program = is_function && python_is_program (p, callee->line);
  const char *name = callee->kind == PYTHON_IS_NAME ? callee->text : "";
  for (guint i = 0; is_class && i < python_n (callee) && !python_get (call, "0"); i++)
    if (!python_get (call, callee->keys->pdata[i]))
      python_set (call, callee->keys->pdata[i], copy_of (p, callee->items->pdata[i]), true);
  PythonValue *made = is_class ? call
      : is_function            ? (is_program ? NULL : python_run_function (p, callee, call))
      : *name                  ? copied (p, name, call)
                               : NULL;
  bool is_own = ls_is_one_of (name,
                              "int float str bool list tuple dict max min len getattr "
                              "os.environ.get os.getenv environ.get getenv");
  if (g_str_has_prefix (name, "os.environ.") && strcmp (name, "os.environ.get") != 0)
    set_variables (p, strrchr (name, '.') + 1, call);
  if (!made && is_own) {
    made = answer (p, name, call);
    return made ? made : python_hole (x, first);
  }
  if (is_program || (!made && !is_function && may_change (name, call, first == start)))
    python_pass (p, start);
  return made ? made : is_function || *name ? call : python_hole (x, first);
}

/* What a method of a value gives. */
static PythonValue *
call_method (PythonPlace *x, PythonValue *of, const char *name, const PythonValue *call, guint first)
{
  static const char changes[] = "append extend update insert pop remove clear reverse sort add setdefault "
                                "popitem discard";
  const PythonValue *file = python_get (call, "0");
  bool is_beside
      = of->kind == PYTHON_IS_CALL && strcmp (name, "with_name") == 0 && g_str_has_suffix (of->text, "Path");
  const PythonValue *path = is_beside ? python_get (of, "0") : NULL;
  if (path && file && path->kind == PYTHON_IS_TEXT && file->kind == PYTHON_IS_TEXT) {
    g_autofree char *folder = g_path_get_dirname (path->text),
                    *beside = g_build_filename (folder, file->text, NULL);
    return python_new (x->python, PYTHON_IS_TEXT, beside);
  }
  if (python_is_mutable (of) && ls_is_one_of (name, changes)) {
    python_pass (x->python, statement_of (x, first));
    python_open (x->python, of, python_hole_text (x, first, x->at));
  }
  return python_hole (x, first);
}

static bool
expect (PythonPlace *x, const char *text)
{
  if (python_take (x, text))
    return true;
  g_autofree char *why = g_strdup_printf ("expected \"%s\"", text);
  python_fail (x->python, python_token (x)->spot, why);
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
  return python_new (x->python, PYTHON_IS_HOLE, python_hole_text (x, first, MAX (first + 1, x->at)));
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
  g_autofree char *text = v ? written (v) : NULL;
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

/* Texts one behind the other are one. */
static PythonValue *
text (PythonPlace *x)
{
  g_autoptr (GString) out = g_string_new (NULL);
  guint first = x->at;
  bool is_known = true;
  for (const PythonToken *t; (t = python_token (x))->kind == PYTHON_TEXT; x->at++) {
    const char *at = t->inside, *end = at + t->n_inside;
    for (gsize part; is_known && at < end; at += part) {
      bool is_value = t->is_formatted && *at == '{' && at[1] != '{',
           is_mark = t->is_formatted && !is_value && strchr ("{}", *at);
      part = is_mark ? 1 : t->is_formatted ? MIN (strcspn (at, "{}"), (gsize) (end - at)) : t->n_inside;
      if (is_value && (part = append_value (out, x, at + 1)) > 0)
        part++;
      else
        is_known = !is_value && (!is_mark || at[1] == *at) && append_letters (out, t, at, part);
      part += is_mark;
    }
  }
  is_known = is_known && g_utf8_validate (out->str, -1, NULL);
  return is_known ? python_new (x->python, PYTHON_IS_TEXT, out->str) : python_hole (x, first);
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
    return python_new (x->python, PYTHON_IS_NONE, NULL);
  if (ls_is_one_of (word, "True False"))
    return python_scalar (x->python, PYTHON_IS_BOOL, *word == 'T', false);
  if (strcmp (word, "lambda") == 0) {
    bool has_none = python_is (python_token (x), ":");
    x->at = python_next (x, ":");
    python_take (x, ":");
    PythonValue *value = python_expression (x), *made = python_new (x->python, PYTHON_IS_CALL, word);
    python_set (made, "value", value, false);
    return has_none && value->kind != PYTHON_IS_HOLE ? made : python_hole (x, first);
  }
  if (strcmp (word, "__file__") == 0)
    return python_new (x->python, PYTHON_IS_TEXT, python_module (x->python, x->module)->path);
  PythonValue *value = python_lookup (x, word);
  return value ? value : python_new (x->python, PYTHON_IS_NAME, word);
}

/* --- lists, dictionaries and arguments ---------------------------------------------------------------- */

/* Whether behind what was read stands what is not known, "for a in b"; it is passed over then. */
static bool
has_more (PythonPlace *x, const char *end)
{
  const bool has_none = python_is (python_token (x), ",") || python_is (python_token (x), end);
  if (!has_none)
    x->at = python_next (x, end);
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
    bool is_known
        = is_items ? python_is_list (item) && python_is_list (to) : item->kind == PYTHON_IS_DICTIONARY;
    python_merge (to, is_known ? item : NULL, 0, false);
    return is_known;
  }
  PythonValue *value = to->kind == PYTHON_IS_DICTIONARY && expect (x, ":") ? python_expression (x) : item;
  if (to->kind != PYTHON_IS_DICTIONARY)
    add_item (to, item);
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
  PythonValue *all = python_new (x->python, PYTHON_IS_TUPLE, NULL);
  if (item)
    add_item (all, item);
  return elements (x, all, "= ] )", first);
}

/* What is not known of "*a" and "**a" is named. */
PythonValue *
python_arguments (PythonPlace *x, const char *callee)
{
  PythonValue *call = python_new (x->python, PYTHON_IS_CALL, callee);
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
        set_place (x->python, call, n++, v->items->pdata[i]);
    else {
      if (has_more (x, ")"))
        is_held = (v = python_hole (x, first))->is_held;
      if (is_named)
        python_set (call, t->word, v, true);
      else
        set_place (x->python, call, n++, v);
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
    return python_fail (x->python, python_token (x)->spot, "expected a name"), v;
  x->at++;
  if (!is_path && python_take (x, "("))
    return call_method (x, v, word, python_arguments (x, word), first);
  PythonValue *item = python_is_list (v) ? NULL : python_get (v, word);
  g_autofree char *longer = !item && is_path ? g_strconcat (v->text, ".", word, NULL) : NULL;
  return item ? item : longer ? python_new (x->python, PYTHON_IS_NAME, longer) : python_hole (x, first);
}

/* Behind "[": of a list by its place, from its end too, of a dictionary by its key; of a text, and of more
 * than one place, it is not known. */
static PythonValue *
subscript (PythonPlace *x, const PythonValue *v, guint first)
{
  const PythonValue *key = python_is (python_token (x), ":") ? NULL : python_several (x);
  gint64 n = python_n (v), i = n;
  bool is_one = key && python_is (python_token (x), "]"),
       is_place
      = key && key->kind == PYTHON_IS_NUMBER && !key->is_float && key->number >= -n && key->number < n;
  if (is_one && python_is_list (v) && is_place)
    i = (gint64) key->number + (key->number < 0 ? n : 0);
  else if (is_one && v->kind == PYTHON_IS_DICTIONARY && key->kind == PYTHON_IS_TEXT)
    i = place_of (v, key->text);
  x->at = python_next (x, "]");
  expect (x, "]");
  return i < n ? v->items->pdata[i] : python_hole (x, first);
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
      return elements (x, python_new (x->python, brackets[i].kind, NULL), brackets[i].end, x->at - 1);
  if (python_take (x, "..."))
    return python_hole (x, x->at - 1);
  python_fail (x->python, t->spot, "expected a value");
  return python_new (x->python, PYTHON_IS_NONE, NULL);
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
      v = call_of (x, v, python_arguments (x, v->text ? v->text : ""), first);
    else if (python_take (x, "["))
      v = subscript (x, v, first);
    else
      break;
  return v;
}

/* --- operators ------------------------------------------------------------------------------------------ */

/* Of whole numbers whole ones, as far as they are exact. */
PythonValue *
python_arithmetic (LsPython *p, const char *mark, const PythonValue *a, const PythonValue *b)
{
  bool are_texts = a->kind == PYTHON_IS_TEXT && b->kind == PYTHON_IS_TEXT && strcmp (mark, "+") == 0;
  g_autofree char *joined = are_texts ? g_strconcat (a->text, b->text, NULL) : NULL;
  if (joined)
    return python_new (p, PYTHON_IS_TEXT, joined);
  if (a->kind != PYTHON_IS_NUMBER || b->kind != PYTHON_IS_NUMBER)
    return NULL;
  const double x = a->number, y = b->number, ratio = x / y,
               value = strcmp (mark, "//") == 0 ? floor (ratio)
      : strcmp (mark, "**") == 0                ? pow (x, y)
      : mark[1] != '\0'                         ? NAN
      : *mark == '+'                            ? x + y
      : *mark == '-'                            ? x - y
      : *mark == '*'                            ? x * y
      : *mark == '/'                            ? ratio
      : *mark == '%'                            ? x - y * floor (ratio)
                                                : NAN; /* it is none of numbers */
  bool is_float
      = a->is_float || b->is_float || strcmp (mark, "/") == 0 || (strcmp (mark, "**") == 0 && b->number < 0),
      is_exact = is_float ? !ls_is_one_of (mark, "// %") : fabs (value) <= 9007199254740992;
  return isfinite (value) && is_exact ? python_scalar (p, PYTHON_IS_NUMBER, value, is_float) : NULL;
}

/* "-a", "a ** b", which binds more than the sign of a, and less than that of b. */
static PythonValue *
unary (PythonPlace *x)
{
  const guint first = x->at;
  double sign = 1;
  bool is_known = true;
  for (; python_is (python_token (x), "- + ~ not await"); x->at++) {
    sign = python_is (python_token (x), "-") ? -sign : sign;
    is_known = is_known && python_is (python_token (x), "- +");
  }
  const guint begin = x->at;
  PythonValue *v = operand (x);
  if (python_is (python_token (x), "**") && python_enter (x->python, python_token (x)->spot)) {
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

/* "a == b", "a != b"; NULL: it is not known, as of lists and objects. */
static PythonValue *
compared (LsPython *p, const char *mark, const PythonValue *a, const PythonValue *b)
{
  bool is_same = a->kind == b->kind, is_none = a->kind == PYTHON_IS_NONE || b->kind == PYTHON_IS_NONE;
  if ((!is_same && !is_none) || MAX (a->kind, b->kind) > PYTHON_IS_TEXT || !ls_is_one_of (mark, "== !="))
    return NULL;
  bool is_equal = is_same && a->number == b->number && g_strcmp0 (a->text, b->text) == 0;
  return python_scalar (p, PYTHON_IS_BOOL, is_equal == (*mark == '='), false);
}

/* Those that bind least come first; what those give that neither compare nor are of numbers is not known, nor
 * is "a < b < c". */
static PythonValue *
operators (PythonPlace *x, guint level)
{
  static const char *const levels[]
      = { "or", "and", "== != < > <= >= in is not", "| & ^ << >>", "+ -", "* / // % @" };
  const guint first = x->at;
  if (level == G_N_ELEMENTS (levels))
    return unary (x);
  PythonValue *v = operators (x, level + 1);
  for (guint n = 0; python_is (python_token (x), levels[level]) && !x->python->why; n++) {
    const char *mark = python_token (x)->word;
    x->at++;
    python_take (x, "in"); /* "not in" */
    PythonValue *other = operators (x, level + 1), *made = python_arithmetic (x->python, mark, v, other);
    made = made || n > 0 ? made : compared (x->python, mark, v, other);
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
      = python_enter (p, python_token (x)->spot) ? operators (x, 0) : python_new (p, PYTHON_IS_NONE, NULL);
  if (!p->why && python_take (x, "if")) {
    python_expression (x);
    if (expect (x, "else"))
      python_expression (x);
    v = python_hole (x, first);
  }
  p->depth--;
  return v;
}
