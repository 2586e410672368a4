/* data/python/python_open.c — what lines set that are not followed: it is not known behind them. */
#include <string.h>

#include "data/python/python_run.h"

/* --- what lines set ----------------------------------------------------------------------------------- */

/* Behind "setattr (": a member, or any of them. */
static void
visit_setattr (PythonPlace *x, PythonVisit *visit, gpointer data)
{
  g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
  if (!python_read_path (x, path, false) || !python_take (x, ","))
    return;
  bool is_said = python_token (x)->kind == PYTHON_TEXT && python_is (python_token (x) + 1, ",")
      && !python_has_prefix (python_token (x), 'f');
  g_autoptr (GString) name = g_string_new (NULL);
  if (is_said)
    python_append_text (name, python_token (x));
  g_ptr_array_add (path, is_said ? g_strdup (name->str) : NULL);
  visit (x, path, path->len - !is_said, data);
}

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
  } else if (path->len == 1 && strcmp (path->pdata[0], "setattr") == 0 && python_take (x, "("))
    visit_setattr (x, visit, data);
}

/* What is set to a name and handed to a function of the files, whose arguments begin here: it may be
 * changed. */
static void
visit_arguments (PythonPlace *x, PythonVisit *visit, gpointer data)
{
  while (!python_is (python_token (x), ")") && python_token (x)->kind != PYTHON_END) {
    bool is_named = python_token (x)->kind == PYTHON_NAME && python_is (python_token (x) + 1, "=");
    g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
    PythonPlace at = *x;
    at.at += is_named ? 2 : 0;
    const cJSON *item = python_read_path (&at, path, false) ? python_at_path (&at, path, path->len) : NULL;
    bool is_whole = python_is (python_token (&at), ",") || python_is (python_token (&at), ")");
    if (is_whole && (cJSON_IsObject (item) || cJSON_IsArray (item))) {
      g_ptr_array_add (path, NULL);
      visit (x, path, path->len - 1, data);
    }
    PythonPlace end = *x;
    python_pass_to (&end, ")");
    python_pass_to (x, ",");
    x->at = MIN (x->at, end.at);
    if (!python_take (x, ","))
      break;
  }
}

/* Calls in a line, wherever they stand, that change what is set: "b = a.pop ()", "f (a)". */
static void
visit_calls (PythonPlace x, PythonVisit *visit, gpointer data)
{
  for (guint end = x.at; python_token (&x)->kind != PYTHON_END; x.at = MAX (end, x.at + 1)) {
    g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
    PythonPlace at = x;
    end = x.at + 1;
    if (python_token (&x)->kind != PYTHON_NAME || !python_read_path (&at, path, false)
        || !python_take (&at, "("))
      continue;
    end = at.at;
    if (python_is_change (path))
      visit (&x, path, path->len - 1, data);
    else if (path->len == 1 && python_has_function (x.python, x.module, path->pdata[0]))
      visit_arguments (&at, visit, data);
  }
}

/* "for a, b in c:", "del a", "a = 1". */
static void
visit_line (LsPython *p, const PythonLine *line, GHashTable *names, PythonVisit *visit, gpointer data)
{
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  visit_calls (x, visit, data);
  bool is_for = python_is (python_token (&x), "for"), is_del = python_is (python_token (&x), "del");
  if (is_for || is_del) {
    x.at++;
    g_autoptr (PythonTarget) target = python_read_target (&x, "in", false);
    if (target)
      python_visit_target (&x, target, visit, data);
  }
  if (!python_is_block (p, line))
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

void
python_visit_set (LsPython *p, guint i, guint end, GHashTable *names, PythonVisit *visit, gpointer data)
{
  for (; i < end; i = python_block_end (p, i))
    visit_block (p, i, names, visit, data);
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

/* --- functions in functions --------------------------------------------------------------------------- */

/* What is changed, not what a name is set to, of names that are none of its own. */
typedef struct {
  Decision decision;
  GHashTable *own;
} Inner;

static void
open_outer (PythonPlace *x, const GPtrArray *path, guint n, gpointer data)
{
  Inner *inner = data;
  if (n == 1 && path->len == 1)
    g_hash_table_add (inner->own, g_strdup (path->pdata[0]));
  else if (!g_hash_table_contains (inner->own, path->pdata[0]) && python_is_set (x, path))
    python_open_path (x, path, n, inner->decision.hole, inner->decision.first);
}

/* Whether a function that is defined in line i is named behind it, within the one around it. */
static bool
is_used (const LsPython *p, guint i)
{
  const PythonToken *name = &g_array_index (p->tokens, PythonToken, python_line (p, i)->first + 1);
  const guint module = python_line (p, i)->module;
  g_autofree char *text = g_strndup (name->at, name->n);
  for (i = python_block_end (p, i); i < p->lines->len; i++) {
    const PythonLine *line = python_line (p, i);
    if (line->module != module || line->indent == 0)
      break;
    for (guint at = line->first; at < line->first + line->n; at++)
      if (python_is (&g_array_index (p->tokens, PythonToken, at), text))
        return true;
  }
  return false;
}

void
python_open_function (LsPython *p, const PythonLine *line, GHashTable *names)
{
  guint i = 0;
  while (python_line (p, i) != line)
    i++;
  if (!is_used (p, i))
    return;
  PythonPlace x = { .python = p, .names = names, .module = line->module, .at = line->first };
  g_autoptr (GHashTable) own = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint at = line->first; at < line->first + line->n; at++) {
    const PythonToken *t = &g_array_index (p->tokens, PythonToken, at);
    g_hash_table_add (own, g_strndup (t->at, t->n));
  }
  python_pass_to (&x, ":");
  Inner inner = { { python_hole (&x, NULL, line->first), line->first }, own };
  const guint n_unknown = p->n_unknown;
  for (guint end = python_block_end (p, i++); i < end; i = python_block_end (p, i))
    visit_block (p, i, names, open_outer, &inner);
  p->n_unknown = n_unknown;
  cJSON_Delete (inner.decision.hole);
}
