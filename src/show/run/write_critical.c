#include "show/run/write_run.h"

#include "show/text_table.h"

/* Rows of a text. */
#define MAX_OPS   20
#define MAX_LINKS 10
#define MAX_RANKS 10

static void
add_time (LsTextTable *t, const LsPathSummary *s, LsTime time)
{
  ls_text_table_add (t, "%.3f ms\v%.1f %%", 1e3 * ls_time_to_s (time),
                     100.0 * (double) time / (double) s->step);
}

static void
add_kinds (const LsPathSummary *s, GString *out)
{
  LsTextTable t;
  ls_text_table_init (&t, "lrr");
  for (int kind = 0; kind < LS_N_PATH_KINDS; kind++) {
    if (s->by_kind[kind] == 0)
      continue;
    ls_text_table_add (&t, "%s", ls_path_kind_name ((LsPathKind) kind));
    add_time (&t, s, s->by_kind[kind]);
  }
  ls_text_table_add (&t, "step");
  add_time (&t, s, s->step);
  ls_text_table_print (&t, 2, out);
}

static void
add_ops (const LsPathSummary *s, bool is_color, GString *out)
{
  LsTextTable t;
  guint n = MIN (s->ops->len, MAX_OPS);
  ls_text_heading (out, is_color, "Ops on it", "the longest %u of %u by name and kind; how often", n,
                   s->ops->len);
  ls_text_table_init (&t, "llrrr");
  for (guint i = 0; i < n; i++) {
    const LsPathOp *op = &g_array_index (s->ops, LsPathOp, i);
    ls_text_table_add (&t, "%s\v%s", op->name, ls_path_kind_name (op->kind));
    add_time (&t, s, op->time);
    ls_text_table_add (&t, "%u", op->n);
  }
  ls_text_table_print (&t, 2, out);
}

static double
utilisation (const LsPathLink *link)
{
  return link->busy_s / ls_time_to_s (link->time);
}

static void
add_links (const LsPathSummary *s, bool is_color, GString *out)
{
  if (s->links->len == 0)
    return;
  LsTextTable t;
  ls_text_heading (out, is_color, "Links that limit what moves on it",
                   "how much of the link its own data use; how often; links alike");
  ls_text_table_init (&t, "lrrrrr");
  for (guint i = 0; i < MIN (s->links->len, MAX_LINKS); i++) {
    const LsPathLink *link = &g_array_index (s->links, LsPathLink, i);
    ls_text_table_add (&t, "%s", link->name);
    add_time (&t, s, link->time);
    ls_text_table_add (&t, "uses %.1f %%\v%u", 100 * utilisation (link), link->n);
    ls_text_table_take (&t, link->n_alike > 1 ? g_strdup_printf ("(%u alike)", link->n_alike) : NULL);
  }
  ls_text_table_print (&t, 2, out);
}

static void
add_ranks (const LsPathSummary *s, bool is_color, GString *out)
{
  LsTextTable t;
  guint n = MIN (s->ranks->len, MAX_RANKS);
  ls_text_heading (out, is_color, "Ranks on it", "the longest %u of %u; it changes ranks %u times", n,
                   s->ranks->len, s->hops->len);
  ls_text_table_init (&t, "llrrl");
  for (guint i = 0; i < n; i++) {
    const LsPathRank *rank = &g_array_index (s->ranks, LsPathRank, i);
    ls_text_table_add (&t, "rank %u\vstage %u", rank->rank, rank->stage);
    add_time (&t, s, rank->time);
    ls_text_table_take (&t,
                        rank->n_class > 1
                            ? g_strdup_printf ("one of %u alike, as rank %u", rank->n_class, rank->class)
                            : NULL);
  }
  ls_text_table_print (&t, 2, out);
}

void
ls_critical_to_text (const LsPathSummary *s, bool is_color, GString *out)
{
  ls_text_heading (out, is_color, "Critical path",
                   "what the step waited for, from its end back to its start");
  add_kinds (s, out);
  add_ops (s, is_color, out);
  add_links (s, is_color, out);
  add_ranks (s, is_color, out);
}
