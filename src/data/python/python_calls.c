/* data/python/python_calls.c — what a call gives: a class of the files, a function of them whose body only
 * assigns and calls, a few functions of Python itself; another call is kept as it is. */
#include <string.h>

#include "data/python/python_parts.h"

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

void
python_add_usual (PythonPlace *x, PythonValue *function)
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
  if (!made && python_is_mutable (of) && python_is_change (name)) {
    g_autofree char *text = python_hole_text (x, first, x->at);
    python_pass (x->python, x->module, statement_of (x, first));
    python_open (of, text);
  }
  return made ? made : python_hole (x, first);
}
