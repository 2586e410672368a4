/* data/python/python_statements.c — lines of Python one after the other: conditions and loops that are
 * decided by what is known, and statements. */
#include <string.h>

#include "data/python/python_run.h"

static const char *const idle[]
    = { "assert", "import", "from", "pass", "def", "class", "global", "nonlocal", "raise", "async", NULL };

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
    python_add_globals (&x);
  if (names && python_starts (p, line, functions))
    python_open_function (p, line, names);
  if (!names && python_starts (p, line, functions))
    python_keep_usual (p, line);
  if (p->n_loops > 0
      && (python_is (python_token (&x), "break") || python_is (python_token (&x), "continue"))) {
    p->leap = python_is (python_token (&x), "break") ? PYTHON_BREAK : PYTHON_CONTINUE;
    return NULL;
  }
  p->module = line->module;
  p->n_unknown += python_starts (p, line, may_raise);
  if (p->n_tries > 0 && python_starts (p, line, raises))
    p->raise = line->first;
  else if (python_token (&x)->kind != PYTHON_TEXT && !python_starts (p, line, idle) && !sets_nothing (x)
           && !python_assign (&x))
    python_change (&x);
  return NULL;
}

/* Whether there is something further in than line i, and it does nothing here, imports and exceptions
 * apart. */
static bool
is_idle (const LsPython *p, guint i)
{
  if (python_block_end (p, i) == i + 1)
    return false;
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
  if (is_idle (p, i))
    return;
  if (i == decides)
    python_pass (p, python_line (p, i)->module, python_line (p, i)->first);
  p->n_open += python_block_has (p, i, returns);
  if (p->n_loops > 0 && python_leaps (p, i))
    p->leap = PYTHON_OPEN_LEAP;
  python_open_block (p, i, decides, names);
}

/* --- conditions --------------------------------------------------------------------------------------- */

/* Whether the part of "if", "elif" or "else" is run. */
static PythonTruth
decide (LsPython *p, const PythonLine *line, GHashTable *names)
{
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  bool is_open = false;
  x.at += !python_is (python_token (&x), "else");
  bool is_true = python_take (&x, "else") || python_is_true (&x, &is_open);
  bool is_whole = python_take (&x, ":");
  return is_open || !is_whole ? PYTHON_OPEN : is_true ? PYTHON_TRUE : PYTHON_FALSE;
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
      truth = decide (p, python_line (p, i), names);
      if (p->raise > 0)
        return end;
      decides = i;
      if (truth == PYTHON_TRUE)
        *ret_result = python_run_body (p, i + 1, names);
    }
    if (truth == PYTHON_OPEN)
      python_pass_block (p, i, decides, names);
    i = python_block_end (p, i);
  } while (python_goes_on (p, i, first, more));
  return i;
}

/* --- with --------------------------------------------------------------------------------------------- */

/* Whether all of "with (a as b, c as d):" stands in brackets. */
static bool
is_in_brackets (PythonPlace x)
{
  if (!python_take (&x, "("))
    return false;
  python_pass_to (&x, ")");
  return python_take (&x, ")") && python_is (python_token (&x), ":");
}

/* "a as b", whose b is not known. False: it is something else. */
static bool
enter (PythonPlace *x, guint start)
{
  guint first = x->at;
  cJSON_Delete (python_expression (x));
  if (!python_take (x, "as"))
    return true;
  g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
  bool is_path = python_read_path (x, path, true);
  if (is_path)
    python_set_path (x, path, path->len, python_hole (x, NULL, first), start);
  return is_path;
}

/* "with a as b, c:", whose body is run once. Returns where it ends. */
static guint
run_with (LsPython *p, guint i, GHashTable *names, cJSON **ret_result)
{
  const PythonLine *line = python_line (p, i);
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first + 1 };
  bool is_plain, has_brackets = is_in_brackets (x), has_more;
  x.at += has_brackets;
  do {
    is_plain = enter (&x, line->first);
    has_more = is_plain && python_take (&x, ",") && !python_is (python_token (&x), ")");
  } while (has_more);
  is_plain = is_plain && (!has_brackets || python_take (&x, ")")) && python_take (&x, ":");
  p->n_unknown++;
  if (is_plain && !p->why)
    *ret_result = python_run_body (p, i + 1, names);
  else
    python_pass_block (p, i, i, names);
  return python_block_end (p, i);
}

/* --- lines -------------------------------------------------------------------------------------------- */

/* From line i on, those that are as far in, up to one that is less far, or of another file. */
static cJSON *
run_lines (LsPython *p, guint i, GHashTable *names)
{
  static const char *const ifs[] = { "if", NULL }, *const loops[] = { "for", "while", NULL },
                           *const tries[] = { "try", NULL }, *const blocks[] = { "with", NULL };
  const guint indent = python_line (p, i)->indent, module = python_line (p, i)->module;
  cJSON *result = NULL;
  while (i < p->lines->len && !result && !p->why && p->raise == 0 && p->leap == PYTHON_STAYS) {
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
    else if (python_starts (p, line, loops))
      i = python_run_loop (p, i, names, &result);
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
