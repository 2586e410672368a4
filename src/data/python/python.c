#include "data/python/python.h"

#include <lockstep/error.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/text/json_doc.h"

PythonModule *
python_module (const LsPython *p, guint i)
{
  return &g_array_index (p->modules, PythonModule, i);
}

/* --- words and marks ----------------------------------------------------------------------------------- */

const PythonToken *
python_token (const PythonPlace *x)
{
  return &g_array_index (x->python->tokens, PythonToken, x->at);
}

bool
python_is (const PythonToken *t, const char *words)
{
  return (t->kind == PYTHON_MARK || t->kind == PYTHON_NAME) && ls_is_one_of (t->word, words);
}

bool
python_take (PythonPlace *x, const char *words)
{
  bool is_there = python_is (python_token (x), words);
  x->at += is_there;
  return is_there;
}

/* +1, -1: a bracket that opens, that shuts. */
static int
bracket (const PythonToken *t)
{
  return python_is (t, "( [ {") ? 1 : python_is (t, ") ] }") ? -1 : 0;
}

guint
python_next (const PythonPlace *x, const char *ends)
{
  PythonPlace at = *x;
  for (int depth = 0; python_token (&at)->kind != PYTHON_END; at.at++) {
    if (depth == 0 && python_is (python_token (&at), ends))
      break;
    depth = MAX (0, depth + bracket (python_token (&at)));
  }
  return at.at;
}

char *
python_shown (const char *at, gsize n)
{
  char *shown = g_strndup (at, n);
  for (char *c = shown; *c; c++)
    *c = g_ascii_iscntrl (*c) || (*c & 0x80) ? ' ' : *c;
  return shown;
}

/* --- from text to lines ------------------------------------------------------------------------------ */

/* A text whose quote stands behind n letters, r"", f'', rb""; its length is 0 if it does not end. */
static PythonToken
text_token (const char *at, gsize n, const char *end)
{
  const char *quote = at + n, *p;
  const gsize n_quotes = quote + 2 < end && quote[1] == *quote && quote[2] == *quote ? 3 : 1;
  PythonToken t = { .kind = PYTHON_TEXT,
                    .inside = quote + n_quotes,
                    .is_raw = strcspn (at, "rR") < n,
                    .is_formatted = strcspn (at, "fF") < n };
  for (p = t.inside; p < end && (n_quotes > 1 || *p != '\n'); p++)
    if (*p == '\\')
      p++;
    else if (*p == *quote && (n_quotes == 1 || (p + 2 < end && p[1] == *quote && p[2] == *quote))) {
      t.n_inside = (gsize) (p - t.inside);
      t.n = (gsize) (p - at) + n_quotes;
      break;
    }
  return t;
}

static PythonToken
next_token (const char *at, const char *end)
{
  static const char *const marks[]
      = { "...", "**=", "//=", "<<=", ">>=", "->", ":=", "+=", "-=", "*=", "/=", "%=",
          "|=",  "&=",  "^=",  "==",  "!=",  "<=", ">=", "**", "//", "<<", ">>" };
  const gsize n_letters = strspn (at, "rRbBfFuU");
  PythonToken t = { .kind = PYTHON_MARK, .n = 1 };
  if (n_letters <= 2 && (at[n_letters] == '"' || at[n_letters] == '\''))
    return text_token (at, n_letters, end);
  if (g_ascii_isdigit (*at) || (*at == '.' && g_ascii_isdigit (at[1]))) {
    t.kind = PYTHON_NUMBER;
    t.n = strspn (at, G_CSET_DIGITS G_CSET_A_2_Z G_CSET_a_2_z "_.");
    if ((at[t.n] == '-' || at[t.n] == '+') && (at[t.n - 1] == 'e' || at[t.n - 1] == 'E') && at[1] != 'x')
      t.n += 1 + strspn (at + t.n + 1, G_CSET_DIGITS "_");
  } else if (g_ascii_isalpha (*at) || *at == '_' || (*at & 0x80)) {
    t.kind = PYTHON_NAME;
    while (at + t.n < end && (g_ascii_isalnum (at[t.n]) || at[t.n] == '_' || (at[t.n] & 0x80)))
      t.n++;
  }
  for (guint i = 0; i < G_N_ELEMENTS (marks) && t.kind == PYTHON_MARK && t.n == 1; i++)
    t.n = g_str_has_prefix (at, marks[i]) ? strlen (marks[i]) : 1;
  return t;
}

/* Ends a line, and begins another one, which stands so far in. */
static void
next_line (LsPython *p, PythonLine *line, guint indent)
{
  const PythonToken end = { .kind = PYTHON_END, .at = "", .word = "", .spot = p->spot };
  line->n = p->tokens->len - line->first;
  if (line->n > 0) {
    g_array_append_val (p->tokens, end);
    g_array_append_val (p->lines, *line);
  }
  *line = (PythonLine) { .first = p->tokens->len, .indent = indent, .module = line->module };
}

/* Adds what begins at `at` in a line to it; what stands behind the ":" of "if a: b = 1" is a block of its
 * own. *depth: of brackets. Returns what is behind it; NULL: python_fail() was called. */
static const char *
scan_token (LsPython *p, const char *at, const char *end, PythonLine *line, guint *depth)
{
  static const char words[] = "if elif else for while with try except finally class def async";
  PythonToken t = next_token (at, end);
  g_autofree char *word = g_strndup (at, t.n);
  if (t.n == 0)
    return python_fail (p, p->spot, "this text does not end"), NULL;
  t.at = at;
  t.spot = p->spot;
  t.word = g_string_chunk_insert_const (p->texts, word);
  bool is_block = *depth == 0 && python_is (&t, ":") && p->tokens->len > line->first
      && python_is (python_first (p, line), words);
  *depth += (guint) MAX (bracket (&t), -(int) *depth);
  g_array_append_val (p->tokens, t);
  for (gsize i = 0; i < t.n; i++)
    p->spot.line += at[i] == '\n';
  at += t.n;
  const char *rest = at + strspn (at, " \t\r");
  if (!is_block || rest >= end || strchr ("#\n\\", *rest))
    return at;
  next_line (p, line, line->indent + 1);
  return rest;
}

/* Adds the lines of a text of n bytes, of the last file, or, behind a line that begins so, of another one.
 * False: python_fail() was called. */
static bool
scan (LsPython *p, const char *text, gsize n)
{
  static const char marker[] = LS_PYTHON_FILE;
  const char *end = text + n;
  guint depth = 0;
  p->spot = (PythonSpot) { python_module (p, p->modules->len - 1)->path, 1 };
  PythonLine line = { .first = p->tokens->len, .module = p->modules->len - 1 };
  for (const char *at = text; at < end;) {
    bool is_next = *at == '\n';
    if (depth == 0 && (is_next || *at == ';'))
      next_line (p, &line, is_next ? (guint) strspn (at + 1, " \t") : line.indent);
    p->spot.line += is_next;
    if (*at == '#') {
      const gsize length = strcspn (at, "\n");
      if (g_str_has_prefix (at, marker))
        p->spot = (PythonSpot) {
          g_string_chunk_insert_len (p->texts, at + strlen (marker), (gssize) (length - strlen (marker))), 0
        };
      at += length;
    } else if (*at == '\\') { /* the line goes on */
      at += 1 + strspn (at + 1, " \t\r");
      p->spot.line += at < end && *at == '\n';
      at += at < end && *at == '\n';
    } else if (strchr (" \t\r\n\f", *at) || (depth == 0 && *at == ';'))
      at++;
    else if (!(at = scan_token (p, at, end, &line, &depth)))
      return false;
  }
  next_line (p, &line, 0);
  if (depth > 0)
    python_fail (p, p->spot, "a bracket does not end");
  return depth == 0;
}

/* --- faults ------------------------------------------------------------------------------------------ */

void
python_fail (LsPython *p, PythonSpot spot, const char *why)
{
  if (p->why)
    return;
  p->why = g_strdup (why);
  p->where = spot;
}

bool
python_enter (LsPython *p, PythonSpot spot)
{
  if (++p->depth > LS_JSON_MAX_DEPTH)
    python_fail (p, spot, "it is nested too deep, or calls itself");
  return !p->why;
}

/* What is wrong, once. */
static void
refuse (LsPython *p, LsDiagList *diags)
{
  ls_diag_add (diags, LS_ERROR_INPUT, p->where.path, p->where.line, 0, NULL, NULL, NULL, "%s", p->why);
  g_clear_pointer (&p->why, g_free);
}

/* --- what is not followed ----------------------------------------------------------------------------- */

#define MAX_PASSED 60 /* letters of a statement that is not followed */

/* As a place, PATH:LINE "STATEMENT"; the caller frees it. */
static char *
place_of (const PythonToken *t)
{
  gsize n = MIN (strcspn (t->at, "\r\n"), MAX_PASSED);
  g_autofree char *shown = g_strchomp (python_shown (t->at, n));
  return g_strdup_printf ("%s:%u \"%s%s\"", t->spot.path, t->spot.line, shown, n == MAX_PASSED ? "..." : "");
}

void
python_pass (LsPython *p, guint first)
{
  PythonToken *t = &g_array_index (p->tokens, PythonToken, first);
  if (t->passed != p->round)
    g_ptr_array_add (p->passed, place_of (t));
  t->passed = p->round;
}

/* Appends all that is not followed to passed, NULL allowed, and begins another round. */
static void
move_passed (LsPython *p, GPtrArray *passed)
{
  for (guint i = 0; i < p->passed->len && passed; i++)
    g_ptr_array_add (passed, g_strdup (p->passed->pdata[i]));
  g_ptr_array_set_size (p->passed, 0);
  p->round++;
}

/* --- lines ------------------------------------------------------------------------------------------- */

const PythonLine *
python_line (const LsPython *p, guint i)
{
  return &g_array_index (p->lines, PythonLine, i);
}

const PythonToken *
python_first (const LsPython *p, const PythonLine *line)
{
  return &g_array_index (p->tokens, PythonToken, line->first);
}

bool
python_is_block (const LsPython *p, guint i)
{
  static const char blocks[] = "if elif else for while with try except finally match del async await";
  const PythonLine *line = python_line (p, i);
  const PythonToken *t = python_first (p, line);
  bool is_block = python_is (t, blocks);
  for (guint k = 0; k < line->n && !is_block; k++)
    is_block = python_is (t + k, ":=");
  return is_block;
}

guint
python_block_end (const LsPython *p, guint i)
{
  const PythonLine *first = python_line (p, i);
  for (i++; i < p->lines->len && python_line (p, i)->module == first->module
       && python_line (p, i)->indent > first->indent;)
    i++;
  return i;
}

bool
python_only_tells (const LsPython *p, guint i, guint end, bool is_function)
{
  static const char words[] = "import from raise pass assert print logging warnings logger _logger";
  bool are_plain = true;
  for (; i < end && are_plain; i++) {
    const PythonToken *t = python_first (p, python_line (p, i));
    bool sets_name = t->kind == PYTHON_NAME && python_is (t + 1, "= ,");
    are_plain = t->kind == PYTHON_TEXT || python_is (t, words)
        || (is_function ? sets_name || python_is (t, "return")
                        : python_is (t, "if elif else with try except finally"));
  }
  return are_plain;
}

bool
python_is_program (LsPython *p, guint i)
{
  const PythonLine *line = python_line (p, i);
  bool is_one = false;
  for (guint end = python_block_end (p, i++); i < end && !is_one; i = python_block_end (p, i)) {
    const PythonToken *t = python_first (p, python_line (p, i));
    is_one = (python_is_block (p, i) && !python_only_tells (p, i, python_block_end (p, i), false))
        || python_is (t, "global nonlocal class @ yield")
        || (python_is (t, "def") && !python_only_tells (p, i + 1, python_block_end (p, i), true));
  }
  if (is_one && !p->found.program)
    p->found.program = place_of (python_first (p, line));
  return is_one;
}

guint
python_parameters_of (const LsPython *p, const PythonLine *line)
{
  const PythonToken *t = python_first (p, line);
  bool is_one = line->indent == 0 && line->n >= 5 && python_is (t, "def") && t[1].kind == PYTHON_NAME
      && python_is (&t[2], "(");
  return is_one ? line->first + 3 : 0;
}

static void
value_free (gpointer data)
{
  PythonValue *v = data;
  g_clear_pointer (&v->items, g_ptr_array_unref);
  g_clear_pointer (&v->keys, g_ptr_array_unref);
  g_free (v);
}

/* --- files that import from each other ---------------------------------------------------------------- */

/* "from a.b.c import f as g": g of the importing file. */
typedef struct {
  const char *module, *name;
  bool is_asked; /* it is being looked for, or was in vain */
} Import;

static void
module_clear (gpointer data)
{
  PythonModule *m = data;
  g_hash_table_unref (m->values);
  g_hash_table_unref (m->imports);
  g_ptr_array_unref (m->imported);
}

/* Of a line "from a.b.c import f as g". */
static void
add_imports (LsPython *p, const PythonLine *line)
{
  g_autoptr (GString) module = g_string_new (NULL);
  const PythonToken *t = python_first (p, line), *end = t + line->n;
  PythonModule *m = python_module (p, line->module);
  if (!python_is (t, "from"))
    return;
  for (t++; t < end && !python_is (t, "import"); t++)
    g_string_append (module, t->word);
  char *name = g_string_chunk_insert (p->texts, module->str);
  g_ptr_array_add (m->imported, name);
  for (t++; t < end; t++) {
    if (t->kind != PYTHON_NAME)
      continue;
    bool has_alias = t + 2 < end && python_is (t + 1, "as") && t[2].kind == PYTHON_NAME;
    Import *import = g_new (Import, 1);
    *import = (Import) { name, t->word, false };
    t += has_alias ? 2 : 0;
    g_hash_table_insert (m->imports, (gpointer) t->word, import);
  }
}

/* How many of the last parts of "a.b.c" the path "x/b/c.py" ends with. */
static guint
n_alike (const char *path, const char *module)
{
  g_autofree char *plain = g_strndup (path, strlen (path) - (g_str_has_suffix (path, ".py") ? 3 : 0));
  g_auto (GStrv) folders = g_strsplit (plain, "/", -1), parts = g_strsplit (module, ".", -1);
  guint n_folders = g_strv_length (folders), n_parts = g_strv_length (parts), n = 0;
  n_folders -= n_folders > 1 && strcmp (folders[n_folders - 1], "__init__") == 0;
  while (n < n_folders && n < n_parts && *parts[n_parts - 1 - n]
         && strcmp (folders[n_folders - 1 - n], parts[n_parts - 1 - n]) == 0)
    n++;
  return n;
}

bool
ls_python_add (LsPython *p, const char *text, gsize n, const char *name, LsDiagList *diags)
{
  PythonModule m = {
    .path = g_string_chunk_insert (p->texts, name),
    .values = g_hash_table_new (g_str_hash, g_str_equal),
    .imports = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_free),
    .imported = g_ptr_array_new (),
    .first_line = p->lines->len,
  };
  g_array_append_val (p->modules, m);
  if (!scan (p, text, n)) {
    refuse (p, diags);
    return false;
  }
  python_module (p, p->modules->len - 1)->end_line = p->lines->len;
  for (guint i = m.first_line; i < p->lines->len; i++)
    add_imports (p, python_line (p, i));
  return true;
}

LsPython *
ls_python_new (const char *text, gsize n, const char *name, LsDiagList *diags)
{
  LsPython *p = g_new0 (LsPython, 1);
  p->texts = g_string_chunk_new (1024);
  p->modules = ls_list_new (sizeof (PythonModule), module_clear);
  p->tokens = g_array_new (FALSE, FALSE, sizeof (PythonToken));
  p->lines = g_array_new (FALSE, FALSE, sizeof (PythonLine));
  p->found.functions = g_ptr_array_new ();
  p->values = g_ptr_array_new_with_free_func (value_free);
  p->passed = g_ptr_array_new_with_free_func (g_free);
  p->round = 1;
  p->set_variables = g_hash_table_new (g_str_hash, g_str_equal);
  p->found.options = cJSON_CreateObject ();
  p->found.file_passed = g_ptr_array_new_with_free_func (g_free);
  if (!ls_python_add (p, text, n, name, diags)) {
    ls_python_free (p);
    return NULL;
  }
  for (guint i = 0; i < p->lines->len; i++) {
    PythonPlace x = { .python = p, .at = python_parameters_of (p, python_line (p, i)) };
    bool can_be_called = x.at > 0;
    for (PythonParameter one; can_be_called && !python_is (python_token (&x), ")");)
      can_be_called = python_read_parameter (&x, false, &one) && (!one.name || one.is_all || one.has_usual);
    if (can_be_called)
      g_ptr_array_add (p->found.functions, (gpointer) python_first (p, python_line (p, i))[1].word);
  }
  return p;
}

void
ls_python_free (LsPython *p)
{
  if (!p)
    return;
  g_array_unref (p->tokens);
  g_array_unref (p->lines);
  g_ptr_array_unref (p->found.functions);
  g_array_unref (p->modules);
  g_ptr_array_unref (p->values);
  g_ptr_array_unref (p->passed);
  g_hash_table_unref (p->set_variables);
  g_ptr_array_unref (p->found.file_passed);
  cJSON_Delete (p->found.options);
  cJSON_Delete (p->found.engine);
  g_string_chunk_free (p->texts);
  g_free (p->found.program);
  g_free (p->why);
  g_free (p);
}

const GPtrArray *
ls_python_imports (const LsPython *p, guint file)
{
  return python_module (p, file)->imported;
}

const LsPythonFound *
ls_python_found (const LsPython *p)
{
  return &p->found;
}

/* --- what a name means -------------------------------------------------------------------------------- */

/* What a file sets a name to, or imports: of the other file that this most likely is for, of those in which
 * the name means something. */
static PythonValue *
value_in (LsPython *p, guint module, const char *name)
{
  python_run_module (p, module);
  PythonModule *m = python_module (p, module);
  PythonValue *best = g_hash_table_lookup (m->values, name);
  Import *import = best ? NULL : g_hash_table_lookup (m->imports, name);
  guint most = 0;
  if (!import || import->is_asked)
    return best;
  import->is_asked = true;
  for (guint i = 0; i < p->modules->len; i++) {
    guint n = i == module ? 0 : 1 + n_alike (python_module (p, i)->path, import->module);
    PythonValue *value = n >= MAX (most, 1) ? value_in (p, i, import->name) : NULL;
    best = value ? value : best;
    most = value ? n : most;
  }
  import->is_asked = best == NULL;
  if (best)
    g_hash_table_insert (m->values, g_string_chunk_insert_const (p->texts, name), best);
  return best;
}

PythonValue *
python_lookup (const PythonPlace *x, const char *name)
{
  LsPython *p = x->python;
  PythonValue *value = x->names ? g_hash_table_lookup (x->names, name) : NULL;
  value = value ? value : value_in (p, x->module, name);
  /* of "from m import *", of what is known of the program */
  for (guint i = p->modules->len; !value && i-- > 0;)
    value = i != x->module ? g_hash_table_lookup (python_module (p, i)->values, name) : NULL;
  return value;
}

/* --- the environment ---------------------------------------------------------------------------------- */

void
ls_python_add_variables (const LsPython *p, GHashTable *variables)
{
  GHashTableIter iter;
  gpointer name, value;
  for (g_hash_table_iter_init (&iter, p->set_variables); g_hash_table_iter_next (&iter, &name, &value);) {
    cJSON *item = python_json ((LsPython *) p, value);
    if (cJSON_IsString (item))
      g_hash_table_replace (variables, g_strdup (name), g_strdup (item->valuestring));
    cJSON_Delete (item);
  }
}

/* --- what is asked ------------------------------------------------------------------------------------ */

/* What files set, from one on, before any function is called; those that are imported from stand behind. */
static void
set_values (LsPython *p, guint first)
{
  move_passed (p, NULL);
  p->n_items = p->depth = 0;
  g_hash_table_remove_all (p->set_variables);
  for (guint m = p->modules->len; m-- > 0;) {
    g_hash_table_remove_all (python_module (p, m)->values);
    python_module (p, m)->is_run = m < first;
  }
  g_ptr_array_set_size (p->values, 0);
  g_ptr_array_set_size (p->found.file_passed, 0);
  g_clear_pointer (&p->found.program, g_free);
  for (guint m = p->modules->len; m-- > first;)
    python_run_module (p, m);
  move_passed (p, p->found.file_passed);
}

/* As JSON; NULL and a diagnostic where something is wrong, or where there is no value and `lacks` says so. */
static cJSON *
report (LsPython *p, const PythonValue *value, GPtrArray *passed, LsDiagList *diags, const char *lacks)
{
  cJSON *item = value && !p->why ? python_json (p, value) : NULL;
  move_passed (p, passed);
  if (p->why) {
    refuse (p, diags);
    g_clear_pointer (&item, cJSON_Delete);
  } else if (!value && lacks)
    ls_file_diag (diags, LS_ERROR_INPUT, python_module (p, 0)->path, NULL, "%s", lacks);
  return item;
}

cJSON *
ls_python_value (LsPython *p, const char *function, GPtrArray *passed, LsDiagList *diags)
{
  set_values (p, 0);
  const PythonValue *f = p->why ? NULL : g_hash_table_lookup (python_module (p, 0)->values, function),
                    *value = NULL;
  bool is_function = f && f->kind == PYTHON_IS_FUNCTION;
  if (is_function && !python_is_program (p, f->line))
    value = python_run_function (p, f, python_new (p, PYTHON_IS_CALL, function));
  g_autofree char *lacks
      = g_strdup_printf (is_function ? "its function %s returns nothing" : "it has no function %s", function);
  return report (p, value && value->kind == PYTHON_IS_NONE ? NULL : value, passed, diags,
                 p->found.program ? NULL : lacks);
}

cJSON *
ls_python_name (LsPython *p, const char *name, GPtrArray *passed, LsDiagList *diags)
{
  set_values (p, 1);
  python_module (p, 0)->is_run = false;
  if (!p->why)
    python_run_module (p, 0);
  g_autofree char *lacks = g_strdup_printf ("it sets nothing of the name %s at the start of a line", name);
  return report (p, g_hash_table_lookup (python_module (p, 0)->values, name), passed, diags, lacks);
}
