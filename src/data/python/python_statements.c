/* data/python/python_statements.c — statements of Python that assign, return, import, define, and declare
 * options; what others set is not known behind them. */
#include <string.h>

#include "data/python/python_parts.h"

/* --- what a value goes to ----------------------------------------------------------------------------- */

static GHashTable *
names_of (const PythonPlace *x)
{
  return x->names ? x->names : python_module (x->python, x->module)->values;
}

static void
set_name (PythonPlace *x, const char *name, PythonValue *value)
{
  value->is_held = true;
  g_hash_table_insert (names_of (x), (gpointer) name, value);
}

static bool
takes_members (const PythonValue *of)
{
  return (python_is_mutable (of) || of->kind == PYTHON_IS_HOLE || of->kind == PYTHON_IS_NAME)
      && of->kind != PYTHON_IS_LIST;
}

/* "x.a =", "x[key] =": of what is no object it is not known what is set. */
static void
set_part (PythonPlace *x, PythonValue *of, const PythonValue *key, bool is_item, PythonValue *value,
          guint first)
{
  bool is_known = is_item ? of->kind == PYTHON_IS_DICTIONARY : takes_members (of),
       is_text = key->kind == PYTHON_IS_TEXT,
       is_variable = is_item && of->kind == PYTHON_IS_NAME && strcmp (of->text, "os.environ") == 0;
  if (is_variable && is_text)
    g_hash_table_insert (x->python->set_variables, (gpointer) key->text, value);
  else if (is_known && is_text)
    python_set (of, key->text, value, !is_item);
  else if (!is_variable) {
    python_pass (x->python, first);
    if (is_item && python_is_mutable (of))
      python_open (x->python, of, python_hole_text (x, first, G_MAXUINT));
  }
  value->is_held = value->is_held || is_item;
}

/* A member or an item of what is behind a name, made where there was no member; NULL: nobody set it. */
static PythonValue *
part_of (PythonPlace *x, PythonValue *of, const PythonValue *key, bool is_item)
{
  PythonValue *part = key->kind == PYTHON_IS_TEXT ? python_get (of, key->text) : NULL;
  if (part || is_item || !takes_members (of) || python_is (python_token (x), "["))
    return part;
  part = python_new (x->python, PYTHON_IS_DICTIONARY, NULL);
  python_set (of, key->text, part, true);
  return part;
}

/* "a", "a.b", "a.b["c"]", from here up to a token; what is set on names that nobody set is left out. */
static void
assign_path (PythonPlace *x, guint end, PythonValue *value, guint first)
{
  LsPython *p = x->python;
  const char *name = python_token (x)->word;
  if (++x->at == end) {
    set_name (x, name, value);
    return;
  }
  PythonValue *of = python_lookup (x, name), *key;
  if (strcmp (name, "os") == 0 && python_is (python_token (x) + 1, "environ")) {
    of = python_new (p, PYTHON_IS_NAME, "os.environ");
    x->at += 2;
  }
  while (of && x->at < end && !p->why) {
    bool is_item = python_take (x, "[");
    if (!is_item && !python_take (x, "."))
      return;
    if (is_item) {
      key = python_is (python_token (x), ":") ? NULL : python_several (x);
      key = key && python_is (python_token (x), "]") ? key : python_new (p, PYTHON_IS_LIST, NULL);
      x->at = python_next (x, "]");
    } else
      key = python_new (p, PYTHON_IS_TEXT, python_token (x)->word);
    x->at += x->at < end;
    if (x->at >= end)
      set_part (x, of, key, is_item, value, first);
    else if (!(of = part_of (x, of, key, is_item)))
      python_pass (p, first);
  }
}

/* "a, b", "a.b", up to a token; value stands from one to another. Of what is not known each gets a part that
 * is not; in brackets, and behind "*", nothing is known. */
static void
assign (PythonPlace *x, guint end, PythonValue *value, guint first)
{
  LsPython *p = x->python;
  guint n = 0;
  for (PythonPlace part = *x; part.at < end; part.at = python_next (&part, ",") + 1)
    n++;
  bool is_alone = python_next (x, ",") >= end, is_known = python_is_list (value) && python_n (value) == n;
  if (!is_alone && !is_known)
    python_pass (p, first);
  for (guint i = 0; x->at < end && !p->why; i++) {
    const guint comma = MIN (python_next (x, ","), end);
    g_autofree char *part = g_strdup_printf ("%s[%u]", value->text ? value->text : "()", i);
    bool is_path = python_token (x)->kind == PYTHON_NAME;
    PythonValue *item = is_path && is_alone ? value
        : is_path && is_known               ? value->items->pdata[i]
                                            : python_new (p, PYTHON_IS_HOLE, part);
    if (is_path)
      assign_path (x, comma, item, first);
    else
      python_pass (p, first);
    for (; !is_path && x->at < comma; x->at++)
      if (python_token (x)->kind == PYTHON_NAME)
        set_name (x, python_token (x)->word, item);
    x->at = comma + 1;
  }
}

/* --- statements --------------------------------------------------------------------------------------- */

/* The next "=" of a statement outside of brackets, or one with an operator in front; the end of it: there is
 * none. */
static guint
mark_of (const PythonPlace *x)
{
  return python_next (x, "= += -= *= /= //= %= **= |= &= ^= <<= >>=");
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
  python_pass (x->python, first);
  return python_hole (x, first);
}

/* "a.n += 1", with the mark at a token; of what is no number it is not followed. */
static void
augment (PythonPlace *x, guint mark)
{
  const guint first = x->at;
  PythonPlace target = *x;
  PythonValue *of = python_expression (x);
  const PythonToken *t = &g_array_index (x->python->tokens, PythonToken, mark);
  g_autofree char *word = g_strndup (t->word, t->n - 1);
  x->at = mark + 1;
  PythonValue *made = python_arithmetic (x->python, word, of, rest_of (x));
  if (!made) {
    made = python_hole (x, first);
    python_pass (x->python, first);
  }
  if (python_is_mutable (of))
    python_open (x->python, of, made->text);
  assign_path (&target, mark, made, first);
}

/* "a: int = b = 1": each of them is. */
static void
assign_all (PythonPlace *x, guint mark)
{
  const guint first = x->at;
  PythonPlace target = *x;
  guint last = mark;
  for (target.at = mark; python_token (&target)->kind != PYTHON_END; target.at = mark_of (&target))
    last = target.at++;
  x->at = last + 1;
  PythonValue *value = rest_of (x);
  for (target.at = first; target.at < last && !x->python->why;) {
    const guint end = mark_of (&target);
    assign (&target, MIN (python_next (&target, ":"), end), value, first);
    target.at = end + 1;
  }
}

/* --- classes ------------------------------------------------------------------------------------------ */

/* field (default=1) is 1, field (default_factory=lambda: [1]) is a list; of another factory it is not known.
 */
static PythonValue *
field_of (LsPython *p, PythonValue *item)
{
  if (item->kind != PYTHON_IS_CALL || !g_str_has_suffix (item->text, "ield"))
    return item;
  const PythonValue *factory = python_get (item, "default_factory");
  PythonValue *usual = python_get (item, "default");
  usual = usual || !factory ? usual : python_get (factory, "value");
  return usual || !factory ? usual : python_new (p, PYTHON_IS_HOLE, "default_factory");
}

/* Those of its bases that are here, in front. */
static void
add_bases (PythonPlace *x, PythonValue *class)
{
  if (!python_take (x, "("))
    return;
  for (; python_token (x)->kind == PYTHON_NAME; x->at = python_next (x, ","), python_take (x, ",")) {
    const PythonToken *t = python_token (x);
    const PythonValue *base = python_is (t + 1, ".") ? NULL : python_lookup (x, t->word);
    if (base && base->kind == PYTHON_IS_CLASS)
      python_merge (class, base, 0, false);
  }
}

/* "class A (B):" in line i: what its body sets is what objects of it have. Of one that has a constructor it
 * is not known; nor is "self.a = 1" of a function that runs when an object is made. */
static PythonValue *
class_of (PythonPlace *x, guint i)
{
  LsPython *p = x->python;
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  PythonValue *class = python_new (p, PYTHON_IS_CLASS, python_token (x)->word);
  const guint end = python_block_end (p, i);
  x->at++;
  add_bases (x, class);
  for (guint at = i + 1; at < end; at = python_block_end (p, at)) {
    const PythonLine *line = python_line (p, at);
    const PythonToken *t = python_first (p, line);
    bool is_function = python_is (t, "def") && line->n > 1;
    if (is_function && python_is (t + 1, "__init__ __new__"))
      return python_new (p, PYTHON_IS_CLASS, class->text);
    bool is_made = is_function && python_is (t + 1, "__post_init__");
    for (guint k = at + 1; is_made && k < python_block_end (p, at); k++) {
      const PythonToken *self = python_first (p, python_line (p, k));
      if (python_line (p, k)->n >= 4 && python_is (self, "self") && python_is (self + 1, "."))
        python_set (class, self[2].word, python_new (p, PYTHON_IS_HOLE, "__post_init__"), false);
    }
    if (t->kind != PYTHON_NAME || (!python_is (t + 1, ":") && !python_is (t + 1, "=")))
      continue;
    python_run_lines (p, at, at + 1, names);
    PythonValue *item = g_hash_table_lookup (names, t->word), *usual = item ? field_of (p, item) : NULL;
    if (usual)
      python_set (class, t->word, usual, false);
  }
  return class;
}

/* --- what is not followed ------------------------------------------------------------------------------- */

/* What one line sets. */
static void
open_line (PythonPlace *x, const PythonLine *line, const char *hole)
{
  static const char others[] = "print logging warnings logger raise assert import from return pass if elif "
                               "while else try except finally break continue";
  LsPython *p = x->python;
  PythonValue *open = python_new (p, PYTHON_IS_HOLE, hole);
  x->at = line->first;
  bool is_removed = python_take (x, "del");
  const PythonToken *t = python_token (x);
  const guint end = line->first + line->n, mark = is_removed ? end : mark_of (x);
  if (python_is (t, "for with def class async global")) { /* of "for a in b", "with a as b", "def a (b)" */
    for (guint i = 1; i < line->n && !python_is (t + i, "in"); i++)
      if (t[i].kind == PYTHON_NAME && !python_is (t + i - 1, ".")
          && ((i == 1 && python_is (t, "for")) || g_hash_table_contains (names_of (x), t[i].word)))
        set_name (x, t[i].word, open);
  } else if ((is_removed || mark < end) && t->kind == PYTHON_NAME) {
    const guint n = p->passed->len;
    assign (x, MIN (mark, python_next (x, ":")), open, line->first);
    g_ptr_array_set_size (p->passed, (gint) n); /* the block is told */
  } else
    for (guint i = 0; i < line->n && !python_is (t, others); i++) { /* what objects it names */
      PythonValue *v = t[i].kind == PYTHON_NAME && !(i > 0 && python_is (t + i - 1, "."))
          ? python_lookup (x, t[i].word)
          : NULL;
      if (v && python_is_mutable (v))
        python_open (p, v, hole);
    }
}

/* What the lines from one on, up to another, set is not known, as the first one is not followed. */
static void
open_lines (LsPython *p, guint first, guint end)
{
  const PythonLine *line = python_line (p, first);
  PythonPlace x = { .python = p, .module = line->module };
  guint behind = line->first + line->n;
  behind -= behind > line->first + 1 && python_is (&g_array_index (p->tokens, PythonToken, behind - 1), ":");
  const char *hole = python_hole_text (&x, line->first, behind);
  for (guint i = first; i < end && !p->why; i++)
    open_line (&x, python_line (p, i), hole);
}

/* --- lines -------------------------------------------------------------------------------------------- */

/* One line that is no block; *ret_value: what it returns, else NULL. Members of a function are what its
 * parameters usually are; what one within another gives is not known. */
static void
run_line (PythonPlace *x, guint i, PythonValue **ret_value)
{
  static const char others[] = "import from pass assert raise @ global nonlocal ... print";
  const PythonToken *t = python_token (x);
  guint mark = mark_of (x);
  bool is_function = python_is (t, "def");
  if (python_is (t, "def class") && t[1].kind == PYTHON_NAME) {
    x->at++;
    PythonValue *made = is_function
        ? python_new (x->python, x->names ? PYTHON_IS_HOLE : PYTHON_IS_FUNCTION, t[1].word)
        : class_of (x, i);
    made->line = i;
    x->at
        = made->kind == PYTHON_IS_FUNCTION ? python_parameters_of (x->python, python_line (x->python, i)) : 0;
    for (PythonParameter one;
         x->at > 0 && !python_is (python_token (x), ")") && python_read_parameter (x, true, &one);)
      if (one.usual)
        python_set (made, one.name, one.usual, false);
    set_name (x, t[1].word, made);
  } else if (python_take (x, "return"))
    *ret_value
        = python_token (x)->kind == PYTHON_END ? python_new (x->python, PYTHON_IS_NONE, NULL) : rest_of (x);
  else if (t->kind == PYTHON_TEXT || python_is (t, others))
    return;
  else if (python_is (&t[mark - x->at], "="))
    assign_all (x, mark);
  else if (t[mark - x->at].kind != PYTHON_END)
    augment (x, mark);
  else if (t->kind == PYTHON_NAME && !python_is (t + 1, ":")) { /* it calls for what that does */
    const guint first = x->at;
    const PythonValue *of = python_is (t + 1, ".") ? python_lookup (x, t->word) : NULL;
    if (rest_of (x)->kind == PYTHON_IS_HOLE && of && python_is_mutable (of)
        && !g_str_has_suffix (t->word, "logger"))
      python_pass (x->python, first);
  }
}

PythonValue *
python_run_lines (LsPython *p, guint first, guint end, GHashTable *names)
{
  PythonValue *value = NULL;
  for (guint i = first, behind; i < end && !value && !p->why; i = behind) {
    const PythonLine *line = python_line (p, i);
    PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
    p->spot = python_first (p, line)->spot;
    behind = python_block_end (p, i);
    if (!python_is_block (p, i))
      run_line (&x, i, &value);
    else if (!python_only_tells (p, i, behind, false)) {
      python_pass (p, line->first);
      open_lines (p, i, behind);
    }
  }
  return value;
}

void
python_run_module (LsPython *p, guint module)
{
  PythonModule *m = python_module (p, module);
  const PythonSpot spot = p->spot;
  bool is_run = m->is_run;
  m->is_run = true;
  if (!is_run)
    python_run_lines (p, m->first_line, m->end_line, NULL);
  p->spot = spot;
}

/* --- options that a program declares ------------------------------------------------------------------- */

/* Wherever it does:
 *
 *     parser.add_argument ("--layers", type=int, default=32)
 *     HfArgumentParser ((A, B)), tyro.cli (A)       the members of dataclasses
 *     fire.Fire (train), typer.run (train)          the parameters of train
 *
 * with what each is where the command does not say it. What is declared under a condition, or twice in two
 * ways, is not known; neither is what the program computes of it. */

/* The last part of the name of a class or a function, "argparse.ArgumentParser"; "": it is none. */
static const char *
last_name (const PythonValue *v)
{
  const char *name = v && v->text ? v->text : "", *dot = strrchr (name, '.');
  return dot ? dot + 1 : name;
}

/* A hole where two of them differ. */
static void
add_option (LsPython *p, const char *name, const PythonValue *usual)
{
  cJSON *item = python_json (p, usual), *other = cJSON_GetObjectItemCaseSensitive (p->found.options, name);
  if (!other) {
    cJSON_AddItemToObject (p->found.options, name, item);
    return;
  }
  if (!cJSON_Compare (item, other, true))
    cJSON_ReplaceItemInObjectCaseSensitive (p->found.options, name,
                                            python_json (p, python_new (p, PYTHON_IS_HOLE, name)));
  cJSON_Delete (item);
}

/* --- argparse ------------------------------------------------------------------------------- */

/* What an option is that a command does not say; of a type that is not known here a text is not known. */
static PythonValue *
usual_of (LsPython *p, const PythonValue *call)
{
  PythonValue *usual = python_get (call, "default");
  const char *action = last_name (python_get (call, "action")), *type = last_name (python_get (call, "type"));
  if (!usual)
    return g_str_has_prefix (action, "store_")
        ? python_scalar (p, PYTHON_IS_BOOL, strcmp (action, "store_false") == 0, false)
        : python_new (p, PYTHON_IS_NONE, NULL);
  if (usual->kind != PYTHON_IS_TEXT || *type == '\0' || strcmp (type, "str") == 0)
    return usual;
  bool is_float = strcmp (type, "float") == 0;
  PythonValue *made = is_float || strcmp (type, "int") == 0 ? python_converted (p, is_float, usual) : NULL;
  return made ? made : python_new (p, PYTHON_IS_HOLE, usual->text);
}

/* Whether a line stands in a block that is perhaps not run. */
static bool
is_conditional (const LsPython *p, guint i)
{
  guint indent = python_line (p, i)->indent;
  for (; i-- > 0 && indent > 0;) {
    const PythonLine *line = python_line (p, i);
    if (line->indent >= indent)
      continue;
    const PythonToken *t = python_first (p, line);
    indent = line->indent;
    if (python_is_block (p, i) && !python_is (t + 1, "__name__"))
      return true;
  }
  return false;
}

/* "add_argument (" behind a dot, in a line; an option has its longest name. */
static void
declare (LsPython *p, guint i, const PythonValue *call)
{
  const char *said = NULL;
  for (guint k = 0; k < python_n (call); k++) {
    const PythonValue *item = call->items->pdata[k];
    bool is_name = g_ascii_isdigit (*(char *) call->keys->pdata[k]) && item->kind == PYTHON_IS_TEXT
        && *item->text == '-';
    if (is_name && (!said || (g_str_has_prefix (item->text, "--") && !g_str_has_prefix (said, "--"))))
      said = item->text;
  }
  const PythonValue *usual = usual_of (p, call);
  if (!said || p->why || strcmp (last_name (usual), "SUPPRESS") == 0)
    return;
  g_autofree char *name = g_strdup (said + strspn (said, "-"));
  add_option (p, name, is_conditional (p, i) ? python_new (p, PYTHON_IS_HOLE, name) : usual);
}

/* --- DeepSpeed ---------------------------------------------------------------------------------------- */

/* "deepspeed.initialize (": the name of a file is its configuration; what a program makes is not known. */
static void
note_engine (LsPython *p, PythonPlace x)
{
  const PythonValue *call = python_arguments (&x, "deepspeed.initialize"),
                    *config = python_get (call, "config");
  config = config ? config : python_get (call, "config_params");
  bool is_path = config && config->kind == PYTHON_IS_TEXT;
  if (p->found.engine && (!config || !cJSON_IsNull (p->found.engine)))
    return;
  cJSON_Delete (p->found.engine);
  p->found.engine = config ? python_json (p, is_path ? config : python_new (p, PYTHON_IS_HOLE, "config"))
                           : cJSON_CreateNull ();
}

/* --- lines -------------------------------------------------------------------------------------------- */

/* What a call declares, whose name stands at a token of line i, k words from its begin. */
static void
read_call (LsPython *p, guint i, const PythonToken *t, guint k)
{
  const PythonLine *line = python_line (p, i);
  PythonPlace x = { .python = p, .module = line->module, .at = line->first + k + 2 };
  bool is_method = k > 1 && python_is (t - 1, "."),
       is_start = python_is (t, "HfArgumentParser TrlParser")
      || (is_method && python_is (t, "Fire run cli") && python_is (t - 2, "fire typer tyro"));
  const PythonValue *call
      = is_method && python_is (t, "add_argument set_defaults") ? python_arguments (&x, t->word) : NULL;
  if (call && python_is (t, "add_argument"))
    declare (p, i, call);
  for (guint n = 0; n < python_n (call) && python_is (t, "set_defaults"); n++) { /* that were declared */
    g_autofree char *name = g_strdelimit (g_strdup (call->keys->pdata[n]), "_", '-');
    const char *own = cJSON_HasObjectItem (p->found.options, name) ? name : call->keys->pdata[n];
    cJSON_DeleteItemFromObjectCaseSensitive (p->found.options, own);
    add_option (p, own, is_conditional (p, i) ? python_new (p, PYTHON_IS_HOLE, own) : call->items->pdata[n]);
  }
  if (is_method && python_is (t, "initialize") && python_is (t - 2, "deepspeed"))
    note_engine (p, x);
  for (const guint end = is_start ? python_next (&x, ")") : 0; x.at < end; x.at++) { /* what is named there */
    const PythonToken *one = python_token (&x);
    const PythonValue *of = one->kind == PYTHON_NAME ? python_lookup (&x, one->word) : NULL;
    bool has_usual = of && of->kind >= PYTHON_IS_FUNCTION;
    for (guint n = 0; has_usual && n < python_n (of); n++)
      add_option (p, of->keys->pdata[n], of->items->pdata[n]);
  }
}

void
ls_python_start (LsPython *p)
{
  for (guint m = p->modules->len; m-- > 0;)
    python_run_module (p, m);
  for (guint i = 0; i < p->lines->len; i++) {
    const PythonLine *line = python_line (p, i);
    const PythonToken *t = python_first (p, line);
    g_clear_pointer (&p->why, g_free);
    p->depth = 0;
    for (guint k = 0; k + 1 < line->n; k++)
      if (t[k].kind == PYTHON_NAME && python_is (t + k + 1, "("))
        read_call (p, i, t + k, k);
    if (line->n > 1 && line->indent > 0 && python_is (t, "os") && python_is (t + 2, "environ"))
      open_lines (p, i, i + 1);
  }
  g_clear_pointer (&p->why, g_free);
}
