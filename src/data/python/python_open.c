/* data/python/python_open.c — what lines set that are not followed: it is not known behind them. */
#include "data/python/python_run.h"

/* --- what lines set ----------------------------------------------------------------------------------- */

/* What a statement sets that begins here. */
static void
visit_statement (PythonPlace *x, PythonVisit *visit, gpointer data)
{
  g_autoptr (GPtrArray) targets = python_read_assigned (x, false),
                        path = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < targets->len; i++)
    python_visit_target (x, targets->pdata[i], visit, data);
  if (targets->len > 0 || !python_read_path (x, path, false))
    return;
  if (python_is_augmented (python_token (x))) {
    g_ptr_array_add (path, NULL); /* it may change what stands there, as a method does */
    visit (x, path, path->len - 1, data);
  } else if (python_is (python_token (x), "(") && python_is_change (path))
    visit (x, path, path->len - 1, data);
}

/* "for a, b in c: d = 1", "else: d = 2", "del a", "a = 1". */
static void
visit_line (LsPython *p, const PythonLine *line, GHashTable *names, PythonVisit *visit, gpointer data)
{
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  bool is_for = python_is (python_token (&x), "for"), is_del = python_is (python_token (&x), "del");
  if (is_for || is_del) {
    x.at++;
    g_autoptr (PythonTarget) target = python_read_target (&x, "in", false);
    if (target)
      python_visit_target (&x, target, visit, data);
  }
  if (is_for || python_is_block (p, line)) {
    python_pass_to (&x, ":");
    if (!python_take (&x, ":"))
      return;
  }
  if (!is_del)
    visit_statement (&x, visit, data);
}

/* Line i and what is further in; not what functions within it do. What is wrong there is not, as nothing of
 * it is run. */
static void
visit_block (LsPython *p, guint i, GHashTable *names, PythonVisit *visit, gpointer data)
{
  static const char *const apart[] = { "def", "class", NULL };
  const guint end = python_block_end (p, i), depth = p->depth;
  while (i < end) {
    const PythonLine *line = python_line (p, i);
    bool is_apart = python_starts (p, line, apart);
    if (!is_apart)
      visit_line (p, line, names, visit, data);
    i = is_apart ? python_block_end (p, i) : i + 1;
    g_clear_pointer (&p->why, g_free);
    p->depth = depth;
  }
}

/* --- what is done with it ----------------------------------------------------------------------------- */

/* What stands in the place of what is not known, and the token with which the line begins that decides. */
typedef struct {
  cJSON *hole;
  guint first;
} Decision;

static void
open_path (PythonPlace *x, const GPtrArray *path, guint n, gpointer data)
{
  const Decision *d = data;
  python_open_path (x, path, n, d->hole, d->first);
}

void
python_open_block (LsPython *p, guint i, guint decides, GHashTable *names)
{
  const PythonLine *line = python_line (p, decides);
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  python_pass_to (&x, ":");
  Decision d = { python_hole (&x, NULL, line->first), line->first };
  visit_block (p, i, names, open_path, &d);
  cJSON_Delete (d.hole);
}
