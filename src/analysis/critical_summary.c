#include "analysis/critical_summary.h"

#include <string.h>

void
ls_path_summary_free (LsPathSummary *s)
{
  if (!s)
    return;
  for (guint i = 0; i < s->links->len; i++)
    g_free (g_array_index (s->links, LsPathLink, i).name);
  g_array_unref (s->ops);
  g_array_unref (s->links);
  g_array_unref (s->ranks);
  g_array_unref (s->hops);
  g_free (s);
}

/* The place in an array of what has this key; a new one at its end for a new key. Takes key. */
static guint
place_of (GHashTable *places, char *key, GArray *rows)
{
  gpointer place;
  if (g_hash_table_lookup_extended (places, key, NULL, &place)) {
    g_free (key);
    return GPOINTER_TO_UINT (place);
  }
  g_hash_table_insert (places, key, GUINT_TO_POINTER (rows->len));
  g_array_set_size (rows, rows->len + 1); /* zeros */
  return rows->len - 1;
}

static void
add_op (LsPathSummary *s, GHashTable *places, const LsCriticalPath *path, const LsPathPiece *piece)
{
  const char *name = ls_path_name (path, piece);
  guint at = place_of (places, g_strdup_printf ("%d %s", (int) piece->kind, name), s->ops);
  LsPathOp *op = &g_array_index (s->ops, LsPathOp, at);
  op->name = name;
  op->kind = piece->kind;
  op->time += piece->to - piece->from;
  op->n++;
}

static void
add_link (LsPathSummary *s, GHashTable *places, const LsCriticalPath *path, const LsPathPiece *piece)
{
  if (piece->link == LS_PATH_NO_LINK)
    return;
  guint at = place_of (places, g_strdup_printf ("%u", piece->link), s->links);
  LsPathLink *link = &g_array_index (s->links, LsPathLink, at);
  if (!link->name)
    link->name = ls_cluster_resource_name (path->cluster, piece->link);
  link->n_alike = MAX (link->n_alike, piece->n_links);
  link->time += piece->to - piece->from;
  link->busy_s += piece->busy_s;
  link->n++;
}

static void
add_rank (LsPathSummary *s, GHashTable *places, const LsCriticalPath *path, const LsPathPiece *piece)
{
  const LsTimeline *t = path->timeline;
  guint at = place_of (places, g_strdup_printf ("%u", piece->rank), s->ranks);
  LsPathRank *rank = &g_array_index (s->ranks, LsPathRank, at);
  rank->rank = piece->rank;
  rank->stage = t->plan->programs[ls_plan_role (t->plan, piece->rank)].stage;
  rank->class = ls_timeline_representative (t, piece->rank);
  rank->n_class = t->multiplicity[rank->class];
  rank->time += piece->to - piece->from;
}

static void
add_hop (LsPathSummary *s, const LsCriticalPath *path, const LsPathPiece *piece, const LsPathPiece *before)
{
  if (!before || before->rank == piece->rank)
    return;
  const LsPathHop hop
      = { before->rank, piece->rank, piece->from - path->timeline->window_start, ls_path_name (path, piece) };
  g_array_append_val (s->hops, hop);
}

static int
by_order (LsTime a, LsTime b, int otherwise)
{
  return a != b ? (a > b ? -1 : 1) : otherwise;
}

static int
by_op (const void *a, const void *b)
{
  const LsPathOp *x = a, *y = b;
  int order = strcmp (x->name, y->name);
  return by_order (x->time, y->time, order != 0 ? order : (int) x->kind - (int) y->kind);
}

static int
by_link (const void *a, const void *b)
{
  const LsPathLink *x = a, *y = b;
  return by_order (x->time, y->time, strcmp (x->name, y->name));
}

static int
by_rank (const void *a, const void *b)
{
  const LsPathRank *x = a, *y = b;
  return by_order (x->time, y->time, x->rank < y->rank ? -1 : x->rank > y->rank);
}

static GHashTable *
places_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
}

LsPathSummary *
ls_path_summary_new (const LsCriticalPath *path)
{
  g_autoptr (GHashTable) ops = places_new (), links = places_new (), ranks = places_new ();
  LsPathSummary *s = g_new0 (LsPathSummary, 1);
  s->ops = g_array_new (FALSE, TRUE, sizeof (LsPathOp));
  s->links = g_array_new (FALSE, TRUE, sizeof (LsPathLink));
  s->ranks = g_array_new (FALSE, TRUE, sizeof (LsPathRank));
  s->hops = g_array_new (FALSE, TRUE, sizeof (LsPathHop));
  const LsPathPiece *pieces = (const LsPathPiece *) (gpointer) path->pieces->data;
  for (guint i = 0; i < path->pieces->len; i++) {
    s->step += pieces[i].to - pieces[i].from;
    s->by_kind[pieces[i].kind] += pieces[i].to - pieces[i].from;
    add_op (s, ops, path, &pieces[i]);
    add_link (s, links, path, &pieces[i]);
    add_rank (s, ranks, path, &pieces[i]);
    add_hop (s, path, &pieces[i], i > 0 ? &pieces[i - 1] : NULL);
  }
  g_assert_cmpint (s->step, ==, path->timeline->window_end - path->timeline->window_start);
  g_array_sort (s->ops, by_op);
  g_array_sort (s->links, by_link);
  g_array_sort (s->ranks, by_rank);
  return s;
}
