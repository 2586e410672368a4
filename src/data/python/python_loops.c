/* data/python/python_loops.c — loops: each round of what is known, as long as it is known whether there is
 * another.
 *
 * Where that is not known, what the loop sets is not, either: rounds before have set nothing else. */
#include "data/python/python_run.h"

#define MAX_LOOP_ITEMS (PYTHON_MAX_ITEMS / 2) /* what follows a loop has the others */

static const char *const loops[] = { "for", "while", NULL };

bool
python_leaps (const LsPython *p, guint i)
{
  static const char *const leaps[] = { "break", "continue", NULL };
  for (guint end = python_block_end (p, i); i < end;) {
    const PythonLine *line = python_line (p, i);
    if (python_starts (p, line, leaps))
      return true;
    i = python_starts (p, line, loops) ? python_block_end (p, i) : i + 1;
  }
  return false;
}

/* Whether there may be one more round. */
static bool
takes_round (LsPython *p)
{
  return ++p->n_rounds <= PYTHON_MAX_ROUNDS && p->n_items <= MAX_LOOP_ITEMS;
}

/* One round. Whether another one may follow; *ret_truth: open: it is not known which. */
static bool
run_round (LsPython *p, guint i, GHashTable *names, cJSON **ret_result, PythonTruth *ret_truth)
{
  *ret_result = python_run_body (p, i + 1, names);
  PythonLeap leap = p->leap;
  p->leap = PYTHON_STAYS;
  if (leap == PYTHON_OPEN_LEAP)
    *ret_truth = PYTHON_OPEN;
  else if (leap == PYTHON_BREAK)
    *ret_truth = PYTHON_TRUE;
  return leap != PYTHON_OPEN_LEAP && leap != PYTHON_BREAK && !*ret_result && !p->why && p->raise == 0;
}

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

/* "for a, b in c". Returns whether it was left early; open: it is not followed. */
static PythonTruth
run_for (LsPython *p, guint i, GHashTable *names, cJSON **ret_result)
{
  const PythonLine *line = python_line (p, i);
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first + 1 };
  g_autoptr (PythonTarget) target = python_read_target (&x, "in", true);
  guint first = x.at + 1;
  cJSON *all = target && python_take (&x, "in") ? read_rounds (&x) : NULL;
  guint n = all ? (guint) cJSON_GetArraySize (all) : 0;
  PythonTruth is_left = all && p->n_rounds + n <= PYTHON_MAX_ROUNDS ? PYTHON_FALSE : PYTHON_OPEN;
  bool goes_on = is_left == PYTHON_FALSE;
  for (const cJSON *item = goes_on ? all->child : NULL; item && goes_on; item = item->next) {
    if (!takes_round (p)) {
      is_left = PYTHON_OPEN;
      break;
    }
    python_unpack (&x, target, python_item_of (&x, python_copy_of (&x, item)), first, line->first);
    goes_on = run_round (p, i, names, ret_result, &is_left);
  }
  cJSON_Delete (all);
  return is_left;
}

/* "while a". As above. */
static PythonTruth
run_while (LsPython *p, guint i, GHashTable *names, cJSON **ret_result)
{
  const PythonLine *line = python_line (p, i);
  PythonTruth is_left = PYTHON_FALSE;
  for (bool goes_on = true; goes_on;) {
    PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first + 1 };
    bool is_open, is_true = python_is_true (&x, &is_open);
    if (p->raise > 0 || p->why)
      break;
    if (is_open || !python_take (&x, ":") || (is_true && !takes_round (p)))
      return PYTHON_OPEN;
    goes_on = is_true && run_round (p, i, names, ret_result, &is_left);
  }
  return is_left;
}

guint
python_run_loop (LsPython *p, guint i, GHashTable *names, cJSON **ret_result)
{
  static const char *const fors[] = { "for", NULL }, *const others[] = { "else", NULL };
  const PythonLine *line = python_line (p, i);
  const guint other = python_block_end (p, i);
  bool has_other = python_goes_on (p, other, line, others);
  p->n_loops++;
  PythonTruth is_left = (python_starts (p, line, fors) ? run_for : run_while) (p, i, names, ret_result);
  p->n_loops--;
  bool goes_on = !*ret_result && !p->why && p->raise == 0;
  if (is_left == PYTHON_OPEN) {
    guint n_loops = p->n_loops;
    g_clear_pointer (ret_result, cJSON_Delete);
    if (has_other)
      python_pass_block (p, other, i, names);
    p->n_loops = 0; /* leaps in it are its own */
    python_pass_block (p, i, i, names);
    p->n_loops = n_loops;
  } else if (has_other && is_left == PYTHON_FALSE && goes_on)
    *ret_result = python_run_body (p, other + 1, names);
  return has_other ? python_block_end (p, other) : other;
}
