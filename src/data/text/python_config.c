#include "data/text/python_config.h"

#include <lockstep/error.h>
#include <string.h>

#include "data/shell/shell.h"
#include "data/text/json_scan.h"
#include "data/text/python_parts.h"

#define MAX_PASSED 60 /* letters of a statement that is not followed */

void
python_fail (LsPython *p, guint line, const char *why)
{
  if (p->why)
    return;
  p->why = g_strdup (why);
  p->where = line;
}

bool
python_enter (LsPython *p, guint line)
{
  if (++p->depth > LS_JSON_MAX_DEPTH)
    python_fail (p, line, "it is nested too deep, or calls itself");
  return !p->why;
}

void
python_pass (LsPython *p, guint module, guint first)
{
  const PythonPassed passed = { .first = first, .module = module };
  PythonToken *t = &g_array_index (p->tokens, PythonToken, first);
  if (t->is_passed)
    return;
  t->is_passed = true;
  g_array_append_val (p->passed, passed);
}

void
python_forget_passed (LsPython *p, guint n)
{
  for (guint i = n; i < p->passed->len; i++)
    g_array_index (p->tokens, PythonToken, g_array_index (p->passed, PythonPassed, i).first).is_passed
        = false;
  g_array_set_size (p->passed, MIN (n, p->passed->len));
}

/* --- tokens ---------------------------------------------------------------------------------------- */

/* Of a text that begins at `at`; 0: it does not end. */
static gsize
text_length (const char *at, const char *end)
{
  const char *p = at + python_text_prefix (at);
  char quote = *p;
  bool is_long = p + 2 < end && p[1] == quote && p[2] == quote;
  for (p += is_long ? 3 : 1; p < end; p++) {
    if (*p == '\\')
      p++;
    else if (!is_long && *p == '\n')
      return 0;
    else if (*p == quote && (!is_long || (p + 2 < end && p[1] == quote && p[2] == quote)))
      return (gsize) (p + (is_long ? 3 : 1) - at);
  }
  return 0;
}

static gsize
mark_length (const char *at)
{
  static const char *const marks[] = { "**=", "//=", "<<=", ">>=", "->", ":=", "+=", "-=", "*=", "/=", "%=",
                                       "|=",  "&=",  "^=",  "==",  "!=", "<=", ">=", "**", "//", "<<", ">>" };
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (g_str_has_prefix (at, marks[i]))
      return strlen (marks[i]);
  return 1;
}

static PythonToken
next_token (const char *at, const char *end, guint line)
{
  PythonToken t = { .kind = PYTHON_MARK, .at = at, .n = 1, .line = line };
  if (*at == '"' || *at == '\'' || python_text_prefix (at) > 0) {
    t.kind = PYTHON_TEXT;
    t.n = text_length (at, end);
  } else if (g_ascii_isdigit (*at) || (*at == '.' && g_ascii_isdigit (at[1]))) {
    t.kind = PYTHON_NUMBER;
    t.n = strspn (at, G_CSET_DIGITS G_CSET_A_2_Z G_CSET_a_2_z "_.");
    if ((at[t.n] == '-' || at[t.n] == '+') && (at[t.n - 1] == 'e' || at[t.n - 1] == 'E') && at[1] != 'x')
      t.n += 1 + strspn (at + t.n + 1, G_CSET_DIGITS "_");
  } else if (g_ascii_isalpha (*at) || *at == '_' || (*at & 0x80)) {
    t.kind = PYTHON_NAME;
    while (at + t.n < end && (g_ascii_isalnum (at[t.n]) || at[t.n] == '_' || (at[t.n] & 0x80)))
      t.n++;
  } else
    t.n = mark_length (at);
  return t;
}

static guint
n_newlines (const char *at, gsize n)
{
  guint lines = 0;
  for (gsize i = 0; i < n; i++)
    lines += at[i] == '\n';
  return lines;
}

static void
end_line (LsPython *p, PythonLine *line, guint number)
{
  if (p->tokens->len == line->first)
    return;
  const PythonToken end = { .kind = PYTHON_END, .at = "", .line = number };
  line->n = p->tokens->len - line->first;
  g_array_append_val (p->tokens, end);
  g_array_append_val (p->lines, *line);
}

/* False: fail() was called. */
static bool
scan (LsPython *p, const char *text, gsize n)
{
  const char *end = text + n;
  guint number = 1, depth = 0;
  PythonLine line = { .first = p->tokens->len, .module = p->modules->len - 1 };
  for (const char *at = text; at < end;) {
    if (*at == '\n' && depth == 0) {
      end_line (p, &line, number);
      line = (PythonLine) { .first = p->tokens->len,
                            .indent = (guint) strspn (at + 1, " \t"),
                            .module = line.module };
    }
    number += *at == '\n';
    if (*at == '#')
      at += strcspn (at, "\n");
    else if (strchr (" \t\r\n\f\\", *at))
      at++;
    else {
      PythonToken t = next_token (at, end, number);
      if (t.n == 0)
        return python_fail (p, number, "this text does not end"), false;
      depth += t.kind == PYTHON_MARK && strchr ("([{", *at) != NULL;
      depth -= t.kind == PYTHON_MARK && strchr (")]}", *at) != NULL && depth > 0;
      g_array_append_val (p->tokens, t);
      number += n_newlines (at, t.n);
      at += t.n;
    }
  }
  end_line (p, &line, number);
  return depth == 0 || (python_fail (p, number, "a bracket does not end"), false);
}

/* --- statements ------------------------------------------------------------------------------------ */

const PythonLine *
python_line (const LsPython *p, guint i)
{
  return &g_array_index (p->lines, PythonLine, i);
}

bool
python_starts (const LsPython *p, const PythonLine *line, const char *const *words)
{
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, line->first);
  g_autofree char *word = g_strndup (t->at, t->n);
  return t->kind == PYTHON_NAME && g_strv_contains (words, word);
}

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

/* One path, before "=" or, of several, "," ; to targets, each a GPtrArray of char *. */
static bool
add_target (PythonPlace *x, GPtrArray *targets)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (targets, names);
  return read_path (x, names);
}

/* "a.b =", "a: int =", "a, b =", "(a, b) =", before a value; *ret_is_tuple: the value is unpacked. */
static bool
read_targets (PythonPlace *x, GPtrArray *targets, bool *ret_is_tuple)
{
  bool is_list = python_take (x, "["), is_bracketed = is_list || python_take (x, "(");
  *ret_is_tuple = is_list;
  if (!add_target (x, targets))
    return false;
  while (python_take (x, ",")) {
    *ret_is_tuple = true;
    if (python_token (x)->kind == PYTHON_NAME && !add_target (x, targets))
      return false;
  }
  if (is_bracketed && !python_take (x, is_list ? "]" : ")"))
    return false;
  if (!*ret_is_tuple && python_take (x, ":"))
    python_pass_to (x, "=");
  return python_take (x, "=");
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

/* "f(x)[1]", of the hole "f(x)": a part of what is not known. The caller frees it. */
static cJSON *
part_of_hole (const cJSON *hole, guint i)
{
  g_autofree char *bare = g_strndup (hole->valuestring, strlen (hole->valuestring) - 1),
                  *text = g_strdup_printf ("%s[%u]%c", bare, i, LS_SHELL_HOLE_END);
  return cJSON_CreateString (text);
}

/* Each target gets its part of item, which is taken and stands from a token on. Where it has not as many that
 * are known, the statement, which begins at start, is named, and each part is a hole. */
static void
unpack (PythonPlace *x, const GPtrArray *targets, cJSON *item, guint first, guint start)
{
  bool is_known = cJSON_IsArray (item) && (guint) cJSON_GetArraySize (item) == targets->len;
  if (!is_known) {
    python_pass (x->python, x->module, start);
    item = python_hole (x, item, first);
  }
  for (guint i = 0; i < targets->len; i++)
    set_target (x, targets->pdata[i], is_known ? cJSON_DetachItemFromArray (item, 0) : part_of_hole (item, i),
                start);
  cJSON_Delete (item);
}

static void
assign (LsPython *p, const PythonLine *line, GHashTable *names)
{
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  g_autoptr (GPtrArray) targets = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  bool is_tuple;
  if (!read_targets (&x, targets, &is_tuple)) {
    perform (p, line, names);
    return;
  }
  guint first = x.at;
  cJSON *item = python_tuple (&x);
  if (python_token (&x)->kind != PYTHON_END && !p->why) /* a = b = ... */
    item = python_hole (&x, item, first);
  if (is_tuple)
    unpack (&x, targets, item, first, line->first);
  else
    set_target (&x, targets->pdata[0], item, line->first);
}

static const char *const idle[]
    = { "assert", "import", "from", "pass", "def", "class", "global", "raise", "async", NULL };
static const char *const blocks[]
    = { "if", "elif", "else", "for", "while", "with", "try", "except", "finally", "match", "del", NULL };

cJSON *
python_statement (LsPython *p, const PythonLine *line, GHashTable *names)
{
  static const char *const returns[] = { "return", NULL };
  if (python_starts (p, line, returns)) {
    PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first + 1 };
    return python_token (&x)->kind == PYTHON_END ? cJSON_CreateNull () : python_tuple (&x);
  }
  PythonTokenKind kind = g_array_index (p->tokens, PythonToken, line->first).kind;
  p->module = line->module;
  if (python_starts (p, line, blocks))
    python_pass (p, line->module, line->first);
  else if (kind != PYTHON_TEXT && !python_starts (p, line, idle))
    assign (p, line, names);
  return NULL;
}

/* What is wrong, once. */
static void
refuse (LsPython *p, LsDiagList *diags)
{
  ls_diag_add (diags, LS_ERROR_INPUT, python_module (p, p->module)->path, p->where, 0, NULL, NULL, NULL, "%s",
               p->why);
  g_clear_pointer (&p->why, g_free);
}

bool
ls_python_add (LsPython *p, const char *text, gsize n, const char *name, LsDiagList *diags)
{
  guint first = p->lines->len;
  p->module = python_add_module (p, name);
  if (!scan (p, text, n)) {
    refuse (p, diags);
    return false;
  }
  for (guint i = first; i < p->lines->len; i++)
    python_add_imports (p, python_line (p, i));
  return true;
}

LsPython *
ls_python_new (const char *text, gsize n, const char *name, LsDiagList *diags)
{
  LsPython *p = g_new0 (LsPython, 1);
  p->modules = g_array_new (FALSE, FALSE, sizeof (PythonModule));
  g_array_set_clear_func (p->modules, python_module_clear);
  p->tokens = g_array_new (FALSE, FALSE, sizeof (PythonToken));
  p->lines = g_array_new (FALSE, FALSE, sizeof (PythonLine));
  p->functions = g_ptr_array_new_with_free_func (g_free);
  p->passed = g_array_new (FALSE, FALSE, sizeof (PythonPassed));
  if (!ls_python_add (p, text, n, name, diags)) {
    ls_python_free (p);
    return NULL;
  }
  for (guint i = 0; i < p->lines->len; i++) {
    char *function = python_function_of (p, python_line (p, i));
    if (function)
      g_ptr_array_add (p->functions, function);
  }
  return p;
}

const GPtrArray *
ls_python_imports (const LsPython *p, guint file)
{
  return python_module (p, file)->imported;
}

void
ls_python_free (LsPython *p)
{
  if (!p)
    return;
  g_array_unref (p->tokens);
  g_array_unref (p->lines);
  g_ptr_array_unref (p->functions);
  g_array_unref (p->modules);
  g_array_unref (p->passed);
  cJSON_Delete (p->first);
  g_free (p->why);
  g_free (p);
}

const GPtrArray *
ls_python_functions (const LsPython *p)
{
  return p->functions;
}

/* What the files set, before any function is called; those that are imported from stand behind. */
static void
set_values (LsPython *p)
{
  for (guint m = p->modules->len; m-- > 0;) {
    g_hash_table_remove_all (python_module (p, m)->values);
    for (guint i = 0; i < p->lines->len && !p->why; i++)
      if (python_line (p, i)->indent == 0 && python_line (p, i)->module == m)
        cJSON_Delete (python_statement (p, python_line (p, i), NULL));
  }
}

/* "a.py:12 "for x in y:"", up to the end of its line. */
static char *
passed_text (const LsPython *p, const PythonPassed *passed)
{
  const PythonToken *t = &g_array_index (p->tokens, PythonToken, passed->first);
  gsize n = MIN (strcspn (t->at, "\r\n"), MAX_PASSED);
  g_autofree char *shown = g_strchomp (python_shown (t->at, n));
  return g_strdup_printf ("%s:%u \"%s%s\"", python_module (p, passed->module)->path, t->line, shown,
                          n == MAX_PASSED ? "..." : "");
}

static void
add_passed (const LsPython *p, GPtrArray *passed)
{
  for (guint i = 0; i < p->passed->len; i++)
    g_ptr_array_add (passed, passed_text (p, &g_array_index (p->passed, PythonPassed, i)));
}

cJSON *
ls_python_value (LsPython *p, const char *function, GPtrArray *passed, LsDiagList *diags)
{
  p->n_items = p->depth = 0;
  set_values (p);
  python_forget_passed (p, 0);
  p->n_open = 0;
  cJSON *result = p->why ? NULL : python_call (p, 0, function, NULL, 0);
  if (passed)
    add_passed (p, passed);
  if (cJSON_IsNull (result))
    g_clear_pointer (&result, cJSON_Delete);
  if (!result && !p->why)
    ls_diag_add (diags, LS_ERROR_INPUT, python_module (p, 0)->path, 0, 0, NULL, NULL, NULL,
                 python_has_function (p, 0, function) ? "its function %s returns nothing"
                                                      : "it has no function %s",
                 function);
  if (!p->why)
    return result;
  refuse (p, diags);
  cJSON_Delete (result);
  return NULL;
}
