/* data/jobs/schedule_comm.c — sends, receives, parameters and gradients of a schedule in PyTorch's text
 * format. */
#include "data/jobs/schedule_cells.h"

enum { MADE = 1, SENT = 2, RECEIVED = 4 };

/* One thing on its way from rank to rank: made by a stage for a micro-batch, an activation
 * (F) or a gradient (B), for the stage after or before it. */
typedef struct {
  bool is_gradient;
  uint32_t pipe, stage, mb;
} Item;

typedef struct {
  Item item;
  guint rank; /* where its cell is */
  int column;
} Post;

typedef struct {
  const LsCellFile *f;
  const LsLayout *l;
  guint rank; /* the one being walked */
  bool has_p2p, has_shards;
  uint8_t *flags;                    /* [item] */
  uint32_t *n_backward;              /* [stage] B or W so far */
  uint8_t *is_gathered, *is_reduced; /* [stage] */
  GHashTable *sends, *recvs;         /* from rank * n_ranks + to rank -> GArray of Post */
} Walk;

static gsize
stage_index (const Walk *w, uint32_t pipe, uint32_t stage)
{
  return (gsize) pipe * w->l->n_stages + stage;
}

static uint8_t *
flags_of (const Walk *w, const Item *item)
{
  gsize cell = stage_index (w, item->pipe, item->stage) * w->l->n_micro_batches + item->mb;
  return &w->flags[2 * cell + item->is_gradient];
}

static char *
item_text (const Walk *w, const Item *item)
{
  char kind = item->is_gradient ? 'B' : 'F';
  if (w->l->n_pipes > 1)
    return g_strdup_printf ("d%us%u%c%u", item->pipe, item->stage, kind, item->mb);
  return g_strdup_printf ("%u%c%u", item->stage, kind, item->mb);
}

/* Who uses an item; false if nobody does. */
static bool
user_of (const Walk *w, const Item *item, uint32_t *ret_rank)
{
  if (item->is_gradient ? item->stage == 0 : item->stage + 1 >= w->l->n_stages)
    return false;
  *ret_rank = ls_layout_home (w->l, item->pipe, item->is_gradient ? item->stage - 1 : item->stage + 1).rank;
  return true;
}

static void
post (GHashTable *table, const Walk *w, guint from, guint to, const Item *item, int column)
{
  gpointer key = GSIZE_TO_POINTER ((gsize) from * w->l->n_ranks + to);
  GArray *posts = g_hash_table_lookup (table, key);
  if (!posts) {
    posts = g_array_new (FALSE, FALSE, sizeof (Post));
    g_hash_table_insert (table, key, posts);
  }
  Post p = { *item, w->rank, column };
  g_array_append_val (posts, p);
}

static bool
exists (const Walk *w, const LsCell *cell)
{
  if (cell->pipe < w->l->n_pipes && cell->stage < w->l->n_stages && cell->mb < w->l->n_micro_batches)
    return true;
  ls_cell_complain (w->f, w->rank, cell->column, NULL, "expected one of %u stages and %u micro-batches",
                    w->l->n_stages, w->l->n_micro_batches);
  return false;
}

static bool
is_home (const Walk *w, const LsCell *cell)
{
  uint32_t home = ls_layout_home (w->l, cell->pipe, cell->stage).rank;
  if (home == w->rank)
    return true;
  ls_cell_complain (w->f, w->rank, cell->column, NULL,
                    "this is on the wrong rank: stage %u belongs to rank %u", cell->stage, home);
  return false;
}

/* ---- sends and receives ---- */

static void
walk_send (Walk *w, const LsCell *cell, bool is_gradient)
{
  Item item = { is_gradient, cell->pipe, cell->stage, cell->mb };
  g_autofree char *text = item_text (w, &item);
  uint8_t *flags = flags_of (w, &item);
  uint32_t to;
  if (!user_of (w, &item, &to))
    ls_cell_complain (w->f, w->rank, cell->column, NULL, "no stage uses %s", text);
  else if (to == w->rank)
    ls_cell_complain (w->f, w->rank, cell->column, NULL, "%s is used on its own rank and need not be sent",
                      text);
  else if (*flags & SENT)
    ls_cell_complain (w->f, w->rank, cell->column, NULL, "%s is sent twice", text);
  else if (!(*flags & MADE))
    ls_cell_complain (w->f, w->rank, cell->column, NULL, "%s is sent before it is computed", text);
  else
    post (w->sends, w, w->rank, to, &item, cell->column);
  *flags |= SENT;
}

static void
walk_recv (Walk *w, const LsCell *cell, bool is_gradient)
{
  bool is_first = is_gradient ? cell->stage + 1 >= w->l->n_stages : cell->stage == 0;
  if (is_first) {
    ls_cell_complain (w->f, w->rank, cell->column, NULL, "stage %u receives no %s", cell->stage,
                      is_gradient ? "gradients" : "activations");
    return;
  }
  Item item = { is_gradient, cell->pipe, is_gradient ? cell->stage + 1 : cell->stage - 1, cell->mb };
  g_autofree char *text = item_text (w, &item);
  uint8_t *flags = flags_of (w, &item);
  uint32_t from = ls_layout_home (w->l, item.pipe, item.stage).rank;
  if (from == w->rank)
    ls_cell_complain (w->f, w->rank, cell->column, NULL,
                      "%s is computed on this rank and need not be received", text);
  else if (*flags & RECEIVED)
    ls_cell_complain (w->f, w->rank, cell->column, NULL, "%s is received twice", text);
  else
    post (w->recvs, w, from, w->rank, &item, cell->column);
  *flags |= RECEIVED;
}

static void
require_received (const Walk *w, const LsCell *cell, const Item *item)
{
  bool is_here = ls_layout_home (w->l, item->pipe, item->stage).rank == w->rank;
  if (!w->has_p2p || is_here || *flags_of (w, item) & RECEIVED)
    return;
  g_autofree char *text = item_text (w, item);
  ls_cell_complain (w->f, w->rank, cell->column, NULL,
                    "this needs %s, which is not received before it: expected %uRECV_%c%u", text, cell->stage,
                    item->is_gradient ? 'B' : 'F', cell->mb);
}

/* Sends and receives between two ranks are matched by their order. */
static void
compare_posts (const Walk *w, guint from, guint to)
{
  gpointer key = GSIZE_TO_POINTER ((gsize) from * w->l->n_ranks + to);
  const GArray *sends = g_hash_table_lookup (w->sends, key), *recvs = g_hash_table_lookup (w->recvs, key);
  guint n_sends = sends ? sends->len : 0, n_recvs = recvs ? recvs->len : 0;
  for (guint i = 0; i < n_recvs; i++) {
    const Post *r = &g_array_index (recvs, Post, i),
               *s = i < n_sends ? &g_array_index (sends, Post, i) : NULL;
    g_autofree char *wanted = item_text (w, &r->item), *sent = s ? item_text (w, &s->item) : NULL;
    if (s && g_str_equal (wanted, sent))
      continue;
    if (s)
      ls_cell_complain (w->f, r->rank, r->column,
                        "sends and receives between two ranks are matched by their order",
                        "receive %u from rank %u expects %s; got %s", i, from, wanted, sent);
    else
      ls_cell_complain (w->f, r->rank, r->column, NULL, "rank %u never sends %s", from, wanted);
    return;
  }
  if (n_sends > n_recvs) {
    const Post *s = &g_array_index (sends, Post, n_recvs);
    g_autofree char *sent = item_text (w, &s->item);
    ls_cell_complain (w->f, s->rank, s->column, NULL, "rank %u never receives %s", to, sent);
  }
}

/* ---- parameters and gradients ---- */

static void
walk_shard (Walk *w, const LsCell *cell)
{
  uint8_t *is_gathered = &w->is_gathered[stage_index (w, cell->pipe, cell->stage)];
  bool gathers = cell->kind == LS_CELL_UNSHARD;
  if (*is_gathered == gathers)
    ls_cell_complain (w->f, w->rank, cell->column, NULL, "the parameters of stage %u are %s already",
                      cell->stage, gathers ? "gathered" : "sharded");
  *is_gathered = gathers;
}

static void
walk_reduce (Walk *w, const LsCell *cell)
{
  gsize stage = stage_index (w, cell->pipe, cell->stage);
  if (w->is_reduced[stage])
    ls_cell_complain (w->f, w->rank, cell->column, NULL, "the gradients of stage %u are reduced twice",
                      cell->stage);
  else if (w->n_backward[stage] < w->l->n_micro_batches)
    ls_cell_complain (w->f, w->rank, cell->column, NULL,
                      "the gradients of stage %u are reduced after %u of %u micro-batches", cell->stage,
                      w->n_backward[stage], w->l->n_micro_batches);
  w->is_reduced[stage] = true;
}

static void
walk_compute (Walk *w, const LsCell *cell)
{
  gsize stage = stage_index (w, cell->pipe, cell->stage);
  if (w->has_shards && !w->is_gathered[stage])
    ls_cell_complain (w->f, w->rank, cell->column, NULL,
                      "this uses the parameters of stage %u while they are sharded", cell->stage);
  bool is_forward = cell->type == LS_ACTION_F;
  w->n_backward[stage] += cell->type == LS_ACTION_B || cell->type == LS_ACTION_W;
  if (cell->type == LS_ACTION_W)
    return;
  Item made = { !is_forward, cell->pipe, cell->stage, cell->mb };
  *flags_of (w, &made) |= MADE;
  if (is_forward && cell->stage > 0)
    require_received (w, cell, &(Item) { false, cell->pipe, cell->stage - 1, cell->mb });
  if (!is_forward && cell->stage + 1 < w->l->n_stages)
    require_received (w, cell, &(Item) { true, cell->pipe, cell->stage + 1, cell->mb });
}

static void
walk_cell (Walk *w, const LsCell *cell)
{
  if (!exists (w, cell) || !is_home (w, cell))
    return;
  switch (cell->kind) {
  case LS_CELL_COMPUTE:
    walk_compute (w, cell);
    break;
  case LS_CELL_SEND_F:
  case LS_CELL_SEND_B:
    walk_send (w, cell, cell->kind == LS_CELL_SEND_B);
    break;
  case LS_CELL_RECV_F:
  case LS_CELL_RECV_B:
    walk_recv (w, cell, cell->kind == LS_CELL_RECV_B);
    break;
  case LS_CELL_UNSHARD:
  case LS_CELL_RESHARD:
    walk_shard (w, cell);
    break;
  case LS_CELL_REDUCE_GRAD:
    walk_reduce (w, cell);
    break;
  }
}

static const GArray *
cells_of (const Walk *w, guint rank)
{
  return ((const LsCellLine *) g_ptr_array_index (w->f->lines, rank))->cells;
}

static void
find_features (Walk *w)
{
  for (guint rank = 0; rank < w->f->lines->len; rank++) {
    const GArray *cells = cells_of (w, rank);
    for (guint i = 0; i < cells->len; i++) {
      LsCellKind kind = g_array_index (cells, LsCell, i).kind;
      w->has_p2p |= kind >= LS_CELL_SEND_F && kind <= LS_CELL_RECV_B;
      w->has_shards |= kind == LS_CELL_UNSHARD || kind == LS_CELL_RESHARD;
    }
  }
}

void
ls_cells_check_comm (const LsCellFile *f, const LsLayout *l)
{
  gsize n_stages = (gsize) l->n_pipes * l->n_stages;
  guint n_before = ls_diag_list_n (f->diags);
  Walk w = {
    .f = f,
    .l = l,
    .flags = g_new0 (uint8_t, 2 * n_stages * l->n_micro_batches),
    .n_backward = g_new0 (uint32_t, n_stages),
    .is_gathered = g_new0 (uint8_t, n_stages),
    .is_reduced = g_new0 (uint8_t, n_stages),
    .sends = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_array_unref),
    .recvs = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_array_unref),
  };
  find_features (&w);
  for (w.rank = 0; w.rank < l->n_ranks; w.rank++) {
    const GArray *cells = cells_of (&w, w.rank);
    for (guint i = 0; i < cells->len; i++)
      walk_cell (&w, &g_array_index (cells, LsCell, i));
  }
  bool is_matched = w.has_p2p && ls_diag_list_n (f->diags) == n_before;
  for (guint from = 0; is_matched && from < l->n_ranks; from++)
    for (guint to = 0; to < l->n_ranks; to++)
      compare_posts (&w, from, to);
  g_free (w.flags);
  g_free (w.n_backward);
  g_free (w.is_gathered);
  g_free (w.is_reduced);
  g_hash_table_unref (w.sends);
  g_hash_table_unref (w.recvs);
}
