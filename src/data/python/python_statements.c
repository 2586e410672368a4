/* data/python/python_statements.c — statements of Python that assign, return, import and define; what others
 * set is not known behind them. */
#include <string.h>

#include "data/python/python_parts.h"

bool
python_is_change (const char *method)
{
  static const char *const changes[]
      = { "append",  "extend", "update", "insert",     "pop",     "remove",  "clear",
          "reverse", "sort",   "add",    "setdefault", "popitem", "discard", NULL };
  return g_strv_contains (changes, method);
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
      = of && python_is (python_token (&path), "(") && python_is_change (method) && dot > first + 1;
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
      python_add_usual (x, made);
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
