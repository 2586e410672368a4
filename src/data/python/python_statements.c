/* data/python/python_statements.c — lines of Python one after the other: conditions and loops that are
 * decided by what is known, and statements. */
#include <string.h>

#include "data/python/python_run.h"

static const char *const idle[]
    = { "assert", "import", "from", "pass", "def", "class", "global", "nonlocal", "raise", "async", NULL };

/* Whether nothing stands in a line behind ":". */
static bool
ends_line (const LsPython *p, const PythonLine *line)
{
  return python_is (&g_array_index (p->tokens, PythonToken, line->first + line->n - 1), ":");
}

/* "@dataclass", and "a: int" without a value. */
static bool
sets_nothing (PythonPlace x)
{
  if (python_take (&x, "@"))
    return python_is (python_token (&x), "dataclass")
        || (python_take (&x, "dataclasses") && python_take (&x, ".")
            && python_is (python_token (&x), "dataclass"));
  bool is_name = python_token (&x)->kind == PYTHON_NAME;
  x.at++;
  PythonPlace set = x;
  python_pass_to (&set, "=");
  return is_name && python_is (python_token (&x), ":") && python_token (&set)->kind == PYTHON_END;
}

/* What a statement returns, null if it returns nothing; NULL: it does not return. */
static cJSON *
run_statement (LsPython *p, const PythonLine *line, GHashTable *names)
{
  static const char *const returns[] = { "return", NULL };
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  if (python_starts (p, line, returns)) {
    x.at++;
    return python_token (&x)->kind == PYTHON_END ? cJSON_CreateNull () : python_tuple (&x);
  }
  static const char *const raises[] = { "raise", NULL },
                           *const may_raise[] = { "assert", "import", "from", "async", NULL };
  static const char *const globals[] = { "global", NULL }, *const functions[] = { "def", NULL };
  if (names && python_starts (p, line, globals))
    python_open_globals (&x);
  if (names && python_starts (p, line, functions))
    python_open_function (p, line, names);
  p->module = line->module;
  p->n_unknown += python_starts (p, line, may_raise);
  if (p->n_tries > 0 && python_starts (p, line, raises))
    p->raise = line->first;
  else if (python_token (&x)->kind != PYTHON_TEXT && !python_starts (p, line, idle) && !sets_nothing (x)
           && !python_assign (&x))
    python_change (&x);
  return NULL;
}

/* Whether all that is further in than line i does nothing here, imports and exceptions apart. */
static bool
is_idle (const LsPython *p, guint i)
{
  for (guint end = python_block_end (p, i++); i < end; i = python_block_end (p, i))
    if (!python_starts (p, python_line (p, i), idle))
      return false;
  return true;
}

void
python_pass_block (LsPython *p, guint i, guint decides, GHashTable *names)
{
  static const char *const returns[] = { "return", NULL };
  p->n_unknown++;
  if (ends_line (p, python_line (p, i)) && is_idle (p, i))
    return;
  if (i == decides)
    python_pass (p, python_line (p, i)->module, python_line (p, i)->first);
  p->n_open += python_block_has (p, i, returns);
  python_open_block (p, i, decides, names);
}

/* --- conditions --------------------------------------------------------------------------------------- */

/* Whether the part of "if", "elif" or "else" is run; ret_rest: what stands behind it, "if a: b = 1". */
static PythonTruth
decide (LsPython *p, const PythonLine *line, GHashTable *names, PythonLine *ret_rest)
{
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  bool is_open = false;
  x.at += !python_is (python_token (&x), "else");
  bool is_true = python_take (&x, "else") || python_is_true (&x, &is_open);
  bool is_whole = python_take (&x, ":");
  *ret_rest = *line;
  ret_rest->first = x.at;
  return is_open || !is_whole ? PYTHON_OPEN : is_true ? PYTHON_TRUE : PYTHON_FALSE;
}

/* What a decided part does. */
static cJSON *
run_part (LsPython *p, guint i, const PythonLine *rest, GHashTable *names)
{
  bool is_block = g_array_index (p->tokens, PythonToken, rest->first).kind == PYTHON_END;
  return is_block ? python_run_body (p, i + 1, names) : run_statement (p, rest, names);
}

/* "if", with what stands behind it for the case that it is not so: the part that is run, if that is known.
 * Returns where it ends. */
static guint
run_if (LsPython *p, guint i, GHashTable *names, cJSON **ret_result)
{
  static const char *const more[] = { "elif", "else", NULL };
  const PythonLine *first = python_line (p, i);
  const guint end = python_block_end (p, i);
  PythonTruth truth = PYTHON_FALSE;
  guint decides = i;
  if (python_is_guard (p, i) && !python_goes_on (p, end, first, more)) {
    *ret_result = python_run_body (p, i + 1, names);
    return end;
  }
  do {
    if (truth == PYTHON_FALSE) {
      PythonLine rest;
      truth = decide (p, python_line (p, i), names, &rest);
      if (p->raise > 0)
        return end;
      decides = i;
      if (truth == PYTHON_TRUE)
        *ret_result = run_part (p, i, &rest, names);
    }
    if (truth == PYTHON_OPEN)
      python_pass_block (p, i, decides, names);
    i = python_block_end (p, i);
  } while (python_goes_on (p, i, first, more));
  return i;
}

/* --- loops -------------------------------------------------------------------------------------------- */

/* What "for" goes over, an array; NULL: it is not known. The caller frees it. */
static cJSON *
read_rounds (PythonPlace *x)
{
  cJSON *over = python_tuple (x), *all = python_list_of (over);
  bool is_whole = python_take (x, ":") && python_token (x)->kind == PYTHON_END;
  cJSON_Delete (over);
  if (!is_whole)
    g_clear_pointer (&all, cJSON_Delete);
  return all;
}

/* Not if it may end early. */
static bool
may_follow (const LsPython *p, guint i)
{
  static const char *const others[] = { "else", NULL }, *const leaps[] = { "break", "continue", NULL };
  return !python_goes_on (p, python_block_end (p, i), python_line (p, i), others)
      && !python_block_has (p, i, leaps);
}

/* "for a, b in c", each round of it, if it is known what c is. Returns where it ends. */
static guint
run_for (LsPython *p, guint i, GHashTable *names, cJSON **ret_result)
{
  const PythonLine *line = python_line (p, i);
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first + 1 };
  g_autoptr (PythonTarget) target = python_read_target (&x, "in", true);
  guint first = x.at + 1;
  cJSON *all = target && python_take (&x, "in") ? read_rounds (&x) : NULL;
  guint n = all ? (guint) cJSON_GetArraySize (all) : 0;
  bool is_followed = all && p->n_rounds + n <= PYTHON_MAX_ROUNDS && may_follow (p, i);
  p->n_rounds += is_followed ? n : 0;
  for (const cJSON *item = is_followed ? all->child : NULL; item && !*ret_result && !p->why && p->raise == 0;
       item = item->next) {
    python_unpack (&x, target, python_item_of (&x, python_copy_of (&x, item)), first, line->first);
    *ret_result = python_run_body (p, i + 1, names);
  }
  if (!is_followed)
    python_pass_block (p, i, i, names);
  cJSON_Delete (all);
  return python_block_end (p, i);
}

/* --- with --------------------------------------------------------------------------------------------- */

/* "with (a as b, c as d):" */
static bool
is_in_brackets (PythonPlace x)
{
  if (!python_take (&x, "("))
    return false;
  PythonPlace as = x;
  python_pass_to (&as, "as");
  python_pass_to (&x, ")");
  return as.at < x.at;
}

/* "with a as b, c:", whose body is run once. Returns where it ends. */
static guint
run_with (LsPython *p, guint i, GHashTable *names, cJSON **ret_result)
{
  const PythonLine *line = python_line (p, i);
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  bool is_plain = true;
  do {
    guint first = ++x.at;
    is_plain = !is_in_brackets (x);
    if (!is_plain)
      break;
    cJSON *item = python_expression (&x);
    cJSON_Delete (item);
    if (python_take (&x, "as")) {
      g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
      is_plain = python_read_path (&x, path, true);
      if (is_plain)
        python_set_path (&x, path, path->len, python_hole (&x, NULL, first), line->first);
    }
  } while (is_plain && python_is (python_token (&x), ","));
  PythonLine rest = *line;
  is_plain = is_plain && python_take (&x, ":");
  rest.first = x.at;
  p->n_unknown++;
  if (is_plain && !p->why)
    *ret_result = run_part (p, i, &rest, names);
  else
    python_pass_block (p, i, i, names);
  return python_block_end (p, i);
}

/* --- lines -------------------------------------------------------------------------------------------- */

/* From line i on, those that are as far in, up to one that is less far, or of another file. */
static cJSON *
run_lines (LsPython *p, guint i, GHashTable *names)
{
  static const char *const ifs[] = { "if", NULL }, *const fors[] = { "for", NULL },
                           *const tries[] = { "try", NULL }, *const blocks[] = { "with", NULL };
  const guint indent = python_line (p, i)->indent, module = python_line (p, i)->module;
  cJSON *result = NULL;
  while (i < p->lines->len && !result && !p->why && p->raise == 0) {
    const PythonLine *line = python_line (p, i);
    if (line->indent < indent || line->module != module)
      break;
    if (line->indent > indent) {
      i++;
      continue;
    }
    p->module = module;
    if (python_starts (p, line, ifs))
      i = run_if (p, i, names, &result);
    else if (python_starts (p, line, fors))
      i = run_for (p, i, names, &result);
    else if (python_starts (p, line, tries))
      i = python_run_try (p, i, names, &result);
    else if (python_starts (p, line, blocks))
      i = run_with (p, i, names, &result);
    else if (python_is_block (p, line)) {
      python_pass_block (p, i, i, names);
      i = python_block_end (p, i);
    } else {
      result = run_statement (p, line, names);
      i++;
    }
  }
  return result;
}

cJSON *
python_run_body (LsPython *p, guint first, GHashTable *names)
{
  bool is_further_in = first < p->lines->len && python_line (p, first)->indent > 0;
  return is_further_in ? run_lines (p, first, names) : NULL;
}

void
python_run (LsPython *p, guint module)
{
  for (guint i = 0; i < p->lines->len; i++)
    if (python_line (p, i)->module == module) {
      cJSON_Delete (run_lines (p, i, NULL));
      return;
    }
}
