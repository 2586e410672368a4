/* data/python/python_statements.c — statements of Python that assign, return, import and define; what others
 * set is not known behind them. What a call gives: a class of the files, a function of them whose body only
 * assigns and calls, a few functions of Python itself; another call is kept as it is. */
#include <string.h>

#include "data/python/python_parts.h"

/* Whether a method changes what it is called of. */
static bool
changes_its_object (const char *method)
{
  static const char *const changes[]
      = { "append",  "extend", "update", "insert",     "pop",     "remove",  "clear",
          "reverse", "sort",   "add",    "setdefault", "popitem", "discard", NULL };
  return g_strv_contains (changes, method);
}

/* --- functions of the files --------------------------------------------------------------------------- */

/* A parameter, from its mark on. */
typedef struct {
  char *name;         /* NULL: "*", "/" */
  bool is_all;        /* "*a", "**a"    */
  bool is_named;      /* "**a"          */
  PythonValue *usual; /* NULL: it has none, or that is not asked for */
} Parameter;

/* False: there is none, or none that is followed. */
static bool
read_parameter (PythonPlace *x, bool has_usual, Parameter *ret)
{
  *ret = (Parameter) { 0 };
  ret->is_named = python_take (x, "**");
  ret->is_all = ret->is_named || python_take (x, "*");
  bool is_mark = !ret->is_named && python_token (x)->kind != PYTHON_NAME;
  if (is_mark && !ret->is_all && !python_take (x, "/"))
    return false;
  if (is_mark)
    return python_take (x, ",") || python_is (python_token (x), ")");
  ret->name = python_word (python_token (x));
  x->at++;
  python_pass_type (x);
  if (python_take (x, "=") && has_usual)
    ret->usual = python_expression (x);
  python_pass_type (x);
  bool ok = !x->python->why && (python_take (x, ",") || python_is (python_token (x), ")"));
  if (!ok)
    g_clear_pointer (&ret->name, g_free);
  return ok;
}

/* Members of a function are what its parameters usually are. */
static void
add_usual (PythonPlace *x, PythonValue *function)
{
  x->at = python_parameters_of (x->python, python_line (x->python, function->line));
  for (Parameter one; x->at > 0 && !python_is (python_token (x), ")") && read_parameter (x, true, &one);) {
    if (one.usual)
      python_set (function, one.name, one.usual, false);
    g_free (one.name);
  }
}

/* What parameters are in a call, none of whose arguments is left over. False: one of them has no value. */
static bool
bind (LsPython *p, const PythonValue *function, const PythonValue *call, GHashTable *names)
{
  const PythonLine *line = python_line (p, function->line);
  PythonPlace x = { .python = p, .module = line->module, .at = python_parameters_of (p, line) };
  guint place = 0, n_bound = 0;
  while (!python_is (python_token (&x), ")")) {
    Parameter one;
    if (!read_parameter (&x, false, &one))
      return false;
    g_autofree char *name = one.name, *number = g_strdup_printf ("%u", place);
    if (!name)
      continue;
    PythonValue *item = one.is_all ? python_new (p, one.is_named ? PYTHON_IS_DICTIONARY : PYTHON_IS_TUPLE)
                                   : python_get (call, name);
    if (!item && (item = python_get (call, number)))
      place++;
    n_bound += item && !one.is_all;
    item = item ? item : python_get (function, name);
    if (!item)
      return false;
    item->is_held = true;
    g_hash_table_insert (names, g_steal_pointer (&name), item);
  }
  return n_bound == (call->items ? call->items->len : 0);
}

PythonValue *
python_run_function (LsPython *p, const PythonValue *function, const PythonValue *call)
{
  g_autoptr (GHashTable) names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  PythonValue *result = NULL;
  if (python_enter (p, p->line) && python_parameters_of (p, python_line (p, function->line)) > 0
      && bind (p, function, call, names)) {
    result = python_run_lines (p, function->line + 1, python_block_end (p, function->line), names);
    result = result ? result : python_new (p, PYTHON_IS_NONE);
  }
  p->depth--;
  return result;
}

/* One that has control flow is a program. */
static PythonValue *
followed (PythonPlace *x, const PythonValue *function, PythonValue *call, guint statement)
{
  PythonValue *result = NULL;
  if (python_is_program (x->python, function->line)) {
    python_note_program (x->python, function->line);
    python_pass (x->python, x->module, statement);
  } else
    result = python_run_function (x->python, function, call);
  return result ? result : call;
}

/* --- classes ------------------------------------------------------------------------------------------ */

/* Members that a call does not say are as they usually are. With arguments in order nobody knows which they
 * are. */
static PythonValue *
constructed (LsPython *p, const PythonValue *class, PythonValue *call)
{
  for (guint i = 0; class->items && i < class->items->len && !python_get (call, "0"); i++)
    if (!python_get (call, class->keys->pdata[i]))
      python_set (call, class->keys->pdata[i], python_copy (p, class->items->pdata[i]), true);
  return call;
}

/* --- functions of Python itself ----------------------------------------------------------------------- */

/* int, float of a number or of a text that is one; NULL: it is not known. */
static PythonValue *
converted (LsPython *p, bool is_float, const PythonValue *of)
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
  return python_number (p, is_float ? value : (double) (gint64) value, is_float);
}

/* dict (a, n=1). */
static PythonValue *
dictionary_of (LsPython *p, const PythonValue *call)
{
  const PythonValue *of = python_get (call, "0");
  PythonValue *made = python_new (p, PYTHON_IS_DICTIONARY);
  if (of && of->kind != PYTHON_IS_DICTIONARY)
    return NULL;
  for (guint i = 0; of && of->items && i < of->items->len; i++)
    python_set (made, of->keys->pdata[i], of->items->pdata[i], false);
  for (guint i = of != NULL; call->items && i < call->items->len; i++)
    python_set (made, call->keys->pdata[i], call->items->pdata[i], false);
  return made;
}

/* os.environ.get ("A", usual). */
static PythonValue *
variable_or (LsPython *p, const PythonValue *call)
{
  const PythonValue *name = python_get (call, "0");
  PythonValue *usual = python_get (call, "1");
  bool is_open = true;
  PythonValue *value = name ? python_variable (p, name, &is_open) : NULL;
  usual = usual ? usual : python_get (call, "default");
  return is_open ? NULL : value ? value : usual ? usual : python_new (p, PYTHON_IS_NONE);
}

/* NULL: it is not known, or another function. */
static PythonValue *
answer (LsPython *p, const char *name, const PythonValue *call)
{
  const PythonValue *of = call->items && call->items->len == 1 ? python_get (call, "0") : NULL;
  g_autofree char *text = of && strcmp (name, "str") == 0 ? python_written (of) : NULL;
  if (strcmp (name, "dict") == 0)
    return dictionary_of (p, call);
  if (of && (strcmp (name, "int") == 0 || strcmp (name, "float") == 0))
    return converted (p, *name == 'f', of);
  return text ? python_text (p, text) : NULL;
}

/* replace (x, a=1), copy.deepcopy (x). NULL: it is none of them. */
static PythonValue *
copied (LsPython *p, const char *name, const PythonValue *call)
{
  PythonValue *of = python_get (call, "0");
  bool is_copy = g_str_has_suffix (name, "deepcopy");
  if (!of || !python_is_mutable (of) || !(is_copy || g_str_has_suffix (name, "replace")))
    return NULL;
  PythonValue *other = is_copy ? python_copy (p, of) : python_called (p, of->kind, of->text);
  for (guint i = 0; !is_copy && of->items && i < of->items->len; i++)
    python_set (other, of->keys ? of->keys->pdata[i] : "", of->items->pdata[i], true);
  for (guint i = 1; i < call->items->len; i++)
    python_set (other, call->keys->pdata[i], call->items->pdata[i], true);
  return other;
}

/* Whether a function that is not here, and no class, is handed an object that something else holds, and may
 * change it; one that is known, unless it is called for nothing but what it does. */
static bool
may_change (const char *name, const PythonValue *call, bool is_statement)
{
  static const char *const others[]
      = { "asdict", "cast",    "dumps",     "fields",     "format",  "print",  "repr", "set",
          "sorted", "sum",     "type",      "vars",       "zip",     "pprint", "any",  "all",
          "field",  "partial", "enumerate", "isinstance", "hasattr", "join",   NULL };
  const char *dot = strrchr (name, '.'), *last = dot ? dot + 1 : name;
  if (g_ascii_isupper (*last) || g_strv_contains (others, last))
    return false;
  for (guint i = 0; call->items && i < call->items->len; i++) {
    const PythonValue *item = call->items->pdata[i];
    if (item->is_held && python_is_mutable (item) && (is_statement || !python_is_unknown (item)))
      return true;
  }
  return false;
}

/* os.environ.setdefault ("A", "1"), os.environ.update (A="1"). */
static void
set_variables (LsPython *p, const char *method, const PythonValue *call)
{
  const PythonValue *name = python_get (call, "0");
  bool is_open = true, is_usual = strcmp (method, "setdefault") == 0;
  if (is_usual && name && !(p->variable ? python_variable (p, name, &is_open) : NULL))
    python_set_variable (p, name,
                         is_open && p->variable ? python_called (p, PYTHON_IS_HOLE, "setdefault")
                                                : python_get (call, "1"));
  for (guint i = 0; !is_usual && call->items && i < call->items->len; i++)
    python_set_variable (p, name ? name : python_text (p, call->keys->pdata[i]), call->items->pdata[i]);
}

/* What begins behind the last end of a line before a token. */
static guint
statement_of (const PythonPlace *x, guint at)
{
  while (at > 0 && g_array_index (x->python->tokens, PythonToken, at - 1).kind != PYTHON_END)
    at--;
  return at;
}

/* Functions that are known by their names alone: what they give, else that is not known. */
static bool
is_of_python (const LsPython *p, const char *name)
{
  static const char *const names[]
      = { "int", "float", "str", "bool", "list", "tuple", "dict", "max", "min", "len", "getattr", NULL };
  static const char *const asks[] = { "os.environ.get", "os.getenv", "environ.get", "getenv", NULL };
  return g_strv_contains (names, name) || (p->variable && g_strv_contains (asks, name));
}

static PythonValue *
of_name (PythonPlace *x, const char *name, PythonValue *call, guint first)
{
  LsPython *p = x->python;
  PythonValue *made = copied (p, name, call);
  if (g_str_has_prefix (name, "os.environ.") && strcmp (name, "os.environ.get") != 0)
    set_variables (p, strrchr (name, '.') + 1, call);
  if (!made && is_of_python (p, name)) {
    made = strstr (name, "env") ? variable_or (p, call) : answer (p, name, call);
    return made ? made : python_hole (x, first);
  }
  const guint start = statement_of (x, first);
  if (!made && may_change (name, call, first == start))
    python_pass (p, x->module, start);
  return made ? made : call;
}

PythonValue *
python_call (PythonPlace *x, PythonValue *callee, PythonValue *call, guint first)
{
  if (callee->kind == PYTHON_IS_FUNCTION)
    return followed (x, callee, call, statement_of (x, first));
  if (callee->kind == PYTHON_IS_CLASS)
    return constructed (x->python, callee, call);
  if (callee->kind == PYTHON_IS_NAME)
    return of_name (x, callee->text, call, first);
  if (may_change ("", call, first == statement_of (x, first)))
    python_pass (x->python, x->module, statement_of (x, first));
  return python_hole (x, first);
}

/* --- methods ------------------------------------------------------------------------------------------ */

/* Path (__file__).with_name ("a"): a file beside. */
static PythonValue *
beside (LsPython *p, const PythonValue *of, const PythonValue *call)
{
  const PythonValue *path = python_get (of, "0"), *name = python_get (call, "0");
  bool is_known = path && name && path->kind == PYTHON_IS_TEXT && name->kind == PYTHON_IS_TEXT
      && g_str_has_suffix (of->text, "Path");
  g_autofree char *folder = is_known ? g_path_get_dirname (path->text) : NULL,
                  *file = is_known ? g_build_filename (folder, name->text, NULL) : NULL;
  return file ? python_text (p, file) : NULL;
}

PythonValue *
python_method (PythonPlace *x, PythonValue *of, const char *name, const PythonValue *call, guint first)
{
  bool is_path = of->kind == PYTHON_IS_CALL && strcmp (name, "with_name") == 0,
       is_lower = of->kind == PYTHON_IS_TEXT && strcmp (name, "lower") == 0 && g_str_is_ascii (of->text);
  g_autofree char *lower = is_lower && !call->items ? g_ascii_strdown (of->text, -1) : NULL;
  PythonValue *made = is_path ? beside (x->python, of, call) : lower ? python_text (x->python, lower) : NULL;
  if (!made && python_is_mutable (of) && changes_its_object (name)) {
    g_autofree char *text = python_hole_text (x, first, x->at);
    python_pass (x->python, x->module, statement_of (x, first));
    python_open (of, text);
  }
  return made ? made : python_hole (x, first);
}

static GHashTable *
names_of (const PythonPlace *x)
{
  return x->names ? x->names : python_module (x->python, x->module)->values;
}

/* --- what a value goes to ----------------------------------------------------------------------------- */

static void
set_name (PythonPlace *x, const char *name, PythonValue *value)
{
  value->is_held = true;
  g_hash_table_insert (names_of (x), g_strdup (name), value);
}

/* "x.a =": of what is no object it is not known what is set. */
static void
set_member (PythonPlace *x, PythonValue *of, const char *key, PythonValue *value, guint first)
{
  bool is_object = python_is_mutable (of) || of->kind == PYTHON_IS_HOLE || of->kind == PYTHON_IS_NAME;
  if (is_object && of->kind != PYTHON_IS_LIST)
    python_set (of, key, value, true);
  else
    python_pass (x->python, x->module, first);
}

/* "x[key] =". */
static void
set_item (PythonPlace *x, PythonValue *of, const PythonValue *key, PythonValue *value, guint first)
{
  const char *name = key->kind == PYTHON_IS_TEXT ? key->text : NULL;
  PythonValue **item = of->kind == PYTHON_IS_LIST ? python_item_at (of, key) : NULL;
  if (of->kind == PYTHON_IS_NAME && strcmp (of->text, "os.environ") == 0)
    python_set_variable (x->python, key, value);
  else if (item)
    *item = value;
  else if (name && (of->kind == PYTHON_IS_DICTIONARY || of->kind == PYTHON_IS_HOLE))
    python_set (of, name, value, of->kind == PYTHON_IS_HOLE);
  else {
    g_autofree char *text = python_hole_text (x, first, G_MAXUINT);
    python_pass (x->python, x->module, first);
    if (python_is_mutable (of))
      python_open (of, text);
  }
  value->is_held = true;
}

/* Of what is behind a name, its member, which is made where there was none; NULL: nobody set it. */
static PythonValue *
part_of (PythonPlace *x, PythonValue *of, const char *key, bool has_items, guint first)
{
  PythonValue *part = python_get (of, key);
  bool is_object = python_is_mutable (of) || of->kind == PYTHON_IS_HOLE || of->kind == PYTHON_IS_NAME;
  if (part || !is_object || of->kind == PYTHON_IS_LIST)
    return part;
  g_autofree char *text = has_items ? python_hole_text (x, first, G_MAXUINT) : NULL;
  part
      = text ? python_called (x->python, PYTHON_IS_HOLE, text) : python_new (x->python, PYTHON_IS_DICTIONARY);
  python_set (of, key, part, true);
  return part;
}

/* "a", "a.b", "a.b["c"]", from here up to a token; what is set on names that nobody set is left out. */
static void
assign_path (PythonPlace *x, guint end, PythonValue *value, guint first)
{
  g_autofree char *name = python_word (python_token (x));
  x->at++;
  if (x->at == end) {
    set_name (x, name, value);
    return;
  }
  PythonValue *of = python_lookup (x, name);
  bool is_os = strcmp (name, "os") == 0 && python_is (python_token (x) + 1, "environ");
  if (is_os) {
    of = python_called (x->python, PYTHON_IS_NAME, "os.environ");
    x->at += 2;
  }
  while (of && x->at < end && !x->python->why) {
    PythonValue *key = NULL;
    bool is_item = python_take (x, "[");
    if (is_item) {
      key = python_is (python_token (x), ":") ? NULL : python_several (x);
      key = key && python_is (python_token (x), "]") ? key : python_new (x->python, PYTHON_IS_LIST);
      python_pass_to (x, "]");
    } else if (python_take (x, "."))
      key = python_called (x->python, PYTHON_IS_TEXT, "");
    else
      return;
    g_autofree char *word = python_word (python_token (x));
    x->at += x->at < end;
    bool is_last = x->at >= end;
    if (is_last && is_item)
      set_item (x, of, key, value, first);
    else if (is_last)
      set_member (x, of, word, value, first);
    else if (is_item) {
      PythonValue **item = of->kind == PYTHON_IS_TEXT ? NULL : python_item_at (of, key);
      bool is_new = !item && key->kind == PYTHON_IS_TEXT;
      of = item    ? *item
          : is_new ? part_of (x, of, key->text, python_is (python_token (x), "["), first)
                   : NULL;
    } else
      of = part_of (x, of, word, python_is (python_token (x), "["), first);
    if (!of)
      python_pass (x->python, x->module, first);
  }
}

static guint
comma_of (const PythonPlace *x, guint end)
{
  PythonPlace at = *x;
  python_pass_to (&at, ",");
  return MIN (at.at, end);
}

/* "a, b", "(a, b)", "a.b", up to a token; value stands from one to another. Of what is not known each gets a
 * part that is not. */
static void
assign (PythonPlace *x, guint end, PythonValue *value, guint first)
{
  PythonPlace inner = { .python = x->python, .at = x->at + 1 };
  bool is_inner = python_bracket (python_token (x)) > 0 && end > x->at + 1;
  if (is_inner)
    python_pass_to (&inner, python_is (python_token (x), "(") ? ")" : "]");
  is_inner = is_inner && inner.at == end - 1;
  bool is_list = is_inner && python_take (x, "[");
  x->at += is_inner && !is_list;
  end -= is_inner;
  if (!is_list && comma_of (x, end) == end) {
    if (python_token (x)->kind == PYTHON_NAME)
      assign_path (x, end, value, first);
    else if (is_inner)
      assign (x, end, value, first);
    else
      python_pass (x->python, x->module, first);
    return;
  }
  PythonPlace count = *x;
  guint n = 0;
  bool is_plain = true;
  for (; count.at < end; count.at = comma_of (&count, end) + 1, n++)
    is_plain = is_plain && !python_is (python_token (&count), "*");
  bool is_known = is_plain && python_is_list (value) && value->items && value->items->len == n;
  if (!is_known)
    python_pass (x->python, x->module, first);
  for (guint i = 0; x->at < end && !x->python->why; i++) {
    guint comma = comma_of (x, end);
    g_autofree char *part = g_strdup_printf ("%s[%u]", value->text ? value->text : "()", i);
    python_take (x, "*");
    if (python_enter (x->python, python_token (x)->line))
      assign (x, comma, is_known ? value->items->pdata[i] : python_called (x->python, PYTHON_IS_HOLE, part),
              first);
    x->python->depth--;
    x->at = comma + 1;
  }
}

/* --- statements --------------------------------------------------------------------------------------- */

/* The next "=" of a statement outside of brackets, or one with an operator in front; the end of it: there is
 * none. */
static guint
mark_of (const PythonPlace *x, bool *ret_is_augmented)
{
  static const char *const marks[]
      = { "+=", "-=", "*=", "/=", "//=", "%=", "**=", "|=", "&=", "^=", "<<=", ">>=", NULL };
  PythonPlace at = *x;
  for (int depth = 0; python_token (&at)->kind != PYTHON_END; at.at++) {
    depth += python_bracket (python_token (&at));
    *ret_is_augmented = python_is_one (python_token (&at), marks);
    if (depth == 0 && (*ret_is_augmented || python_is (python_token (&at), "=")))
      break;
  }
  return at.at;
}

/* What stands up to the end of a statement. */
static PythonValue *
rest_of (PythonPlace *x)
{
  guint first = x->at;
  PythonValue *value = python_several (x);
  if (python_token (x)->kind == PYTHON_END)
    return value;
  while (python_token (x)->kind != PYTHON_END)
    x->at++;
  python_pass (x->python, x->module, first);
  return python_hole (x, first);
}

/* "a.n += 1", with the mark at a token: a list is extended in place. */
static void
augment (PythonPlace *x, guint mark)
{
  guint first = x->at;
  PythonPlace target = *x;
  PythonValue *of = python_expression (x);
  g_autofree char *word = python_word (&g_array_index (x->python->tokens, PythonToken, mark));
  word[strlen (word) - 1] = '\0';
  const PythonToken operator= { .kind = PYTHON_MARK, .at = word, .n = strlen (word) };
  x->at = mark + 1;
  PythonValue *by = rest_of (x), *made = NULL;
  if (of->kind == PYTHON_IS_LIST && python_is_list (by) && strcmp (word, "+") == 0 && of != by) {
    for (guint i = 0; by->items && i < by->items->len; i++)
      python_add (of, by->items->pdata[i]);
    return;
  }
  made = python_arithmetic (x->python, &operator, of, by);
  made = made ? made : python_hole (x, first);
  if (python_is_mutable (of))
    python_open (of, made->kind == PYTHON_IS_HOLE ? made->text : word);
  assign_path (&target, mark, made, first);
}

/* "a: int = b = 1": each of them is. */
static void
assign_all (PythonPlace *x, guint mark)
{
  const guint first = x->at;
  bool is_augmented;
  PythonPlace target = *x;
  guint last = mark;
  for (target.at = mark; python_token (&target)->kind != PYTHON_END;
       target.at = mark_of (&target, &is_augmented))
    last = target.at++;
  x->at = last + 1;
  PythonValue *value = rest_of (x);
  for (target.at = first; target.at < last && !x->python->why;) {
    const guint end = mark_of (&target, &is_augmented);
    PythonPlace type = target;
    python_pass_to (&type, ":");
    assign (&target, MIN (type.at, end), value, first);
    target.at = end + 1;
  }
}

/* What a statement calls for what it does: of what is not followed, and has a name, it is told. */
static void
call_alone (PythonPlace *x)
{
  const guint first = x->at;
  PythonPlace path = *x;
  g_autofree char *name = python_word (python_token (x));
  const PythonValue *of = python_lookup (x, name);
  guint dot = 0;
  for (path.at++; python_is (python_token (&path), ".") && python_token (&path)[1].kind == PYTHON_NAME;
       path.at += 2)
    dot = path.at;
  g_autofree char *method = dot > 0 ? python_word (python_token (&path) - 1) : g_strdup ("");
  bool is_change
      = of && python_is (python_token (&path), "(") && changes_its_object (method) && dot > first + 1;
  const guint n_passed = x->python->passed->len;
  const PythonValue *v = rest_of (x);
  if (is_change && v->kind == PYTHON_IS_HOLE && x->python->passed->len == n_passed) {
    PythonPlace target = *x;
    target.at = first;
    assign_path (&target, dot, python_hole (x, first), first);
    python_pass (x->python, x->module, first);
  } else if (of && dot > 0 && python_is_mutable (of) && v->kind == PYTHON_IS_HOLE
             && !g_str_has_suffix (name, "logger"))
    python_pass (x->python, x->module, first);
}

/* --- classes ------------------------------------------------------------------------------------------ */

/* field (default=1) is 1, field (default_factory=lambda: [1]) is a list; of another factory it is not known.
 */
static PythonValue *
field_of (LsPython *p, PythonValue *item)
{
  bool is_field = item->kind == PYTHON_IS_CALL && g_str_has_suffix (item->text, "ield");
  const PythonValue *factory = is_field ? python_get (item, "default_factory") : NULL;
  PythonValue *usual = is_field ? python_get (item, "default") : item;
  usual = usual || !factory ? usual : python_get (factory, "value");
  return usual ? usual : is_field && factory ? python_called (p, PYTHON_IS_HOLE, "default_factory") : NULL;
}

/* "self.a = 1" in a function that runs when an object is made: a is not known. */
static void
open_members (LsPython *p, PythonValue *class, guint first, guint end)
{
  for (guint i = first; i < end; i++) {
    const PythonLine *line = python_line (p, i);
    const PythonToken *t = python_first (p, line);
    if (line->n < 4 || !python_is (t, "self") || !python_is (t + 1, "."))
      continue;
    g_autofree char *name = python_word (t + 2);
    python_set (class, name, python_called (p, PYTHON_IS_HOLE, "__post_init__"), false);
  }
}

/* Those of its bases that are here, in front. */
static void
add_bases (PythonPlace *x, PythonValue *class)
{
  if (!python_take (x, "("))
    return;
  for (; python_token (x)->kind == PYTHON_NAME; python_pass_to (x, ","), python_take (x, ",")) {
    g_autofree char *word = python_word (python_token (x));
    const PythonValue *base = python_is (python_token (x) + 1, ".") ? NULL : python_lookup (x, word);
    for (guint i = 0; base && base->kind == PYTHON_IS_CLASS && base->items && i < base->items->len; i++)
      python_set (class, base->keys->pdata[i], base->items->pdata[i], false);
  }
}

/* "class A (B):" in line i: what its body sets is what objects of it have. Of one that has a constructor it
 * is not known. */
static PythonValue *
class_of (PythonPlace *x, guint i)
{
  static const char *const makes[] = { "__init__", "__new__", NULL };
  LsPython *p = x->python;
  g_autoptr (GHashTable) names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree char *word = python_word (python_token (x));
  PythonValue *class = python_called (p, PYTHON_IS_CLASS, word);
  const guint end = python_block_end (p, i);
  class->line = i;
  x->at++;
  add_bases (x, class);
  for (guint at = i + 1; at < end; at = python_block_end (p, at)) {
    const PythonLine *line = python_line (p, at);
    const PythonToken *t = python_first (p, line);
    bool is_function = python_is (t, "def") && line->n > 1;
    if (is_function && python_is_one (t + 1, makes)) {
      g_clear_pointer (&class->items, g_ptr_array_unref);
      g_clear_pointer (&class->keys, g_ptr_array_unref);
      return class;
    }
    if (is_function && python_is (t + 1, "__post_init__"))
      open_members (p, class, at + 1, python_block_end (p, at));
    if (t->kind != PYTHON_NAME || (!python_is (t + 1, ":") && !python_is (t + 1, "=")))
      continue;
    g_autofree char *name = python_word (t);
    python_run_lines (p, at, at + 1, names);
    PythonValue *item = g_hash_table_lookup (names, name), *usual = item ? field_of (p, item) : NULL;
    if (usual)
      python_set (class, name, usual, false);
  }
  return class;
}

/* --- lines -------------------------------------------------------------------------------------------- */

/* What a token stands for is not known any more, as line i is not followed. */
static void
open_name (PythonPlace *x, guint at, const char *hole)
{
  const PythonToken *t = &g_array_index (x->python->tokens, PythonToken, at);
  g_autofree char *name
      = t->kind == PYTHON_NAME && !(at > 0 && python_is (t - 1, ".")) ? python_word (t) : NULL;
  PythonValue *v = name ? python_lookup (x, name) : NULL;
  if (v && python_is_mutable (v))
    python_open (v, hole);
}

/* What one line sets. */
static void
open_line (PythonPlace *x, const PythonLine *line, const char *hole)
{
  static const char *const others[]
      = { "print", "logging", "warnings", "logger", "raise", "assert", "import",  "from",  "return",   "pass",
          "if",    "elif",    "while",    "else",   "try",   "except", "finally", "break", "continue", NULL };
  static const char *const names[] = { "for", "with", "def", "class", "async", "global", NULL };
  LsPython *p = x->python;
  PythonValue *open = python_called (p, PYTHON_IS_HOLE, hole);
  bool is_augmented;
  x->at = line->first;
  bool is_removed = python_take (x, "del");
  const PythonToken *t = python_token (x);
  const guint end = line->first + line->n, mark = is_removed ? end : mark_of (x, &is_augmented);
  if (python_is_one (t, names)) {
    for (guint i = 1; i < line->n && !python_is (t + i, "in"); i++) {
      g_autofree char *name = t[i].kind == PYTHON_NAME ? python_word (t + i) : NULL;
      if (name && !python_is (t + i - 1, ".") && g_hash_table_contains (names_of (x), name))
        set_name (x, name, open);
    }
    if (python_is (t, "for") && t[1].kind == PYTHON_NAME) {
      g_autofree char *name = python_word (t + 1);
      set_name (x, name, open);
    }
  } else if ((is_removed || mark < end) && t->kind == PYTHON_NAME) {
    PythonPlace type = *x;
    python_pass_to (&type, ":");
    guint n = p->passed->len;
    assign (x, MIN (mark, type.at), open, line->first);
    for (guint i = p->passed->len; i-- > n;) { /* the block is told */
      g_array_index (p->tokens, PythonToken, g_array_index (p->passed, PythonPassed, i).first).is_passed
          = false;
      g_array_remove_index (p->passed, i);
    }
  } else if (!python_is_one (t, others))
    for (guint i = line->first; i < end; i++)
      open_name (x, i, hole);
  for (guint i = 0; i + 1 < line->n && mark == end && !is_removed; i++)
    if (python_is (t + i, "os") && python_is (t + i + 1, ".") && python_is (t + i + 2, "environ")
        && !python_is_one (t, others))
      p->is_environment_open = true;
}

void
python_open_lines (LsPython *p, guint first, guint end)
{
  const PythonLine *line = python_line (p, first);
  PythonPlace x = { .python = p, .module = line->module };
  guint behind = line->first + line->n;
  behind -= behind > line->first + 1 && python_is (&g_array_index (p->tokens, PythonToken, behind - 1), ":");
  g_autofree char *hole = python_hole_text (&x, line->first, behind);
  for (guint i = first; i < end && !p->why; i++)
    open_line (&x, python_line (p, i), hole);
}

/* One line that is no block; *ret_value: what it returns, else NULL. */
static void
run_line (PythonPlace *x, guint i, PythonValue **ret_value)
{
  static const char *const others[]
      = { "import", "from", "pass", "assert", "raise", "@", "global", "nonlocal", "...", "print", NULL };
  const PythonToken *t = python_token (x);
  bool is_function = python_is (t, "def"), is_augmented, is_end = t->kind == PYTHON_TEXT;
  guint mark = mark_of (x, &is_augmented);
  if ((is_function || python_is (t, "class")) && t[1].kind == PYTHON_NAME) {
    x->at++;
    g_autofree char *name = python_word (python_token (x));
    bool is_inner = is_function && x->names; /* what it gives is not known */
    PythonKind kind = is_inner ? PYTHON_IS_HOLE : PYTHON_IS_FUNCTION;
    PythonValue *made = is_function ? python_called (x->python, kind, name) : class_of (x, i);
    made->line = i;
    if (is_function && !is_inner)
      add_usual (x, made);
    set_name (x, name, made);
  } else if (python_take (x, "return"))
    *ret_value = python_token (x)->kind == PYTHON_END ? python_new (x->python, PYTHON_IS_NONE) : rest_of (x);
  else if (is_end || python_is_one (t, others))
    return;
  else if (is_augmented)
    augment (x, mark);
  else if (mark < python_line (x->python, i)->first + python_line (x->python, i)->n)
    assign_all (x, mark);
  else if (t->kind == PYTHON_NAME && !python_is (t + 1, ":"))
    call_alone (x);
}

/* Whether a block of a file is run: "if" whose condition is known, with its "elif" and "else"; of another
 * that is open. *is_chain: this may be the "else" of what stands in front; *is_done: one of those was run. */
static PythonTruth
is_run (PythonPlace *x, bool *is_chain, bool *is_done)
{
  bool is_if = python_take (x, "if"), is_else = !is_if && *is_chain && python_take (x, "else"),
       is_elif = !is_if && !is_else && *is_chain && python_take (x, "elif");
  PythonTruth truth = is_else ? PYTHON_TRUE : PYTHON_OPEN;
  *is_done = *is_done && !is_if;
  if ((is_else || is_elif) && *is_done)
    truth = PYTHON_FALSE;
  else if (is_if || is_elif)
    truth = python_truth_of (python_expression (x));
  if (truth != PYTHON_OPEN && !python_is (python_token (x), ":") && !*is_done)
    truth = PYTHON_OPEN;
  *is_done = *is_done || truth == PYTHON_TRUE;
  *is_chain = truth != PYTHON_OPEN;
  return truth;
}

PythonValue *
python_run_lines (LsPython *p, guint first, guint end, GHashTable *names)
{
  PythonValue *value = NULL;
  bool is_chain = false, is_done = false;
  for (guint i = first; i < end && !value && !p->why; i = python_block_end (p, i)) {
    const PythonLine *line = python_line (p, i);
    PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
    p->line = python_first (p, line)->line;
    if (!python_is_block (p, i)) {
      run_line (&x, i, &value);
      is_chain = false;
      continue;
    }
    const guint behind = python_block_end (p, i);
    PythonTruth truth = names ? PYTHON_OPEN : is_run (&x, &is_chain, &is_done);
    if (truth == PYTHON_OPEN && !python_is_harmless (p, i)) {
      python_pass (p, line->module, line->first);
      python_open_lines (p, i, behind);
    } else if (truth == PYTHON_TRUE && python_enter (p, p->line))
      value = python_run_lines (p, i + 1, behind, names);
    p->depth -= truth == PYTHON_TRUE;
  }
  return value;
}

void
python_run_module (LsPython *p, guint module)
{
  PythonModule *m = python_module (p, module);
  guint first = 0;
  if (m->is_run)
    return;
  m->is_run = true;
  while (first < p->lines->len && python_line (p, first)->module != module)
    first++;
  guint end = first;
  while (end < p->lines->len && python_line (p, end)->module == module)
    end++;
  const guint line = p->line;
  python_run_lines (p, first, end, NULL);
  p->line = line;
}
