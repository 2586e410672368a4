#include "data/jobs/read_schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "data/text/read_file.h"
#include "data/text/text_place.h"
#include "schedules/sched_eval.h"

#define MAX_STAGES        32768
#define MAX_MICRO_BATCHES (1 << 29)
#define MAX_PLACES        (1 << 24) /* ranks times chunks */

typedef enum {
  LS_CELL_COMPUTE,
  LS_CELL_SEND_F,
  LS_CELL_RECV_F,
  LS_CELL_SEND_B,
  LS_CELL_RECV_B,
  LS_CELL_UNSHARD,
  LS_CELL_RESHARD,
  LS_CELL_REDUCE_GRAD,
} LsCellKind;

typedef struct {
  LsCellKind kind;
  LsActionType type; /* of COMPUTE */
  bool is_paired;    /* of COMPUTE: with the next one */
  uint32_t pipe, stage, mb;
  int column;
} LsCell;

/* A line is one rank's, the first that of rank 0. */
typedef struct {
  const char *file;
  LsDiagList *diags;
  GStrv lines;
  GPtrArray *cells; /* GArray of LsCell */
} LsCellFile;

static void G_GNUC_PRINTF (5, 6)
    ls_cell_complain (const LsCellFile *f, guint rank, int column, const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (f->diags, LS_ERROR_INPUT, f->file, (int) rank + 1, column, NULL, f->lines[rank], hint, "%s",
               message);
}

/* ---- one cell ---- */

static const struct {
  const char *name;
  LsCellKind kind;
  LsActionType type;
  bool has_mb;
} words[] = {
  { "F", LS_CELL_COMPUTE, LS_ACTION_F, true },
  { "B", LS_CELL_COMPUTE, LS_ACTION_B, true },
  { "I", LS_CELL_COMPUTE, LS_ACTION_I, true },
  { "W", LS_CELL_COMPUTE, LS_ACTION_W, true },
  { "SEND_F", LS_CELL_SEND_F, 0, true },
  { "RECV_F", LS_CELL_RECV_F, 0, true },
  { "SEND_B", LS_CELL_SEND_B, 0, true },
  { "RECV_B", LS_CELL_RECV_B, 0, true },
  { "UNSHARD", LS_CELL_UNSHARD, 0, false },
  { "RESHARD", LS_CELL_RESHARD, 0, false },
  { "REDUCE_GRAD", LS_CELL_REDUCE_GRAD, 0, false },
};

/* Digits, a number below limit; moves *text past them. */
static bool
read_number (const char **text, uint32_t limit, uint32_t *ret_number)
{
  size_t n = strspn (*text, "0123456789");
  guint64 number = n > 0 && n < 12 ? g_ascii_strtoull (*text, NULL, 10) : limit;
  if (number >= limit)
    return false;
  *ret_number = (uint32_t) number;
  *text += n;
  return true;
}

/* "d1s": the replica. */
static bool
read_pipe (const char **text, uint32_t *ret_pipe)
{
  *ret_pipe = 0;
  if (**text != 'd')
    return true;
  ++*text;
  if (!read_number (text, MAX_STAGES, ret_pipe) || **text != 's')
    return false;
  ++*text;
  return true;
}

static bool
read_action (const char *text, LsCell *cell)
{
  if (!read_pipe (&text, &cell->pipe) || !read_number (&text, MAX_STAGES, &cell->stage))
    return false;
  size_t n = strcspn (text, "0123456789");
  for (guint i = 0; i < G_N_ELEMENTS (words); i++) {
    if (strlen (words[i].name) != n || strncmp (words[i].name, text, n) != 0)
      continue;
    const char *rest = text + n;
    cell->kind = words[i].kind;
    cell->type = words[i].type;
    return (!words[i].has_mb || read_number (&rest, MAX_MICRO_BATCHES, &cell->mb)) && *rest == '\0';
  }
  return false;
}

static void
append_action (LsCellFile *f, guint rank, char *text, int column, bool is_paired)
{
  LsCell cell = { .column = column, .is_paired = is_paired };
  if (!read_action (g_strstrip (text), &cell))
    ls_cell_complain (
        f, rank, column,
        strstr (text, "BW") ? "files from before late 2024 write BW for B and B for I" : NULL,
        "expected STAGE, then F, B, I, W, SEND_F, RECV_F, SEND_B or RECV_B and a micro-batch, or UNSHARD, "
        "RESHARD or REDUCE_GRAD; got \"%s\"",
        text);
  g_array_append_val ((GArray *) f->cells->pdata[rank], cell);
}

/* "(0F7;7B3)OVERLAP_F_B" */
static void
append_pair (LsCellFile *f, guint rank, const char *text, int column)
{
  g_auto (GStrv) parts = g_strsplit (text + 1, ";", -1);
  char *end = parts[0] && parts[1] ? strchr (parts[1], ')') : NULL;
  if (!end || parts[2] || strcmp (end, ")OVERLAP_F_B") != 0) {
    ls_cell_complain (f, rank, column, NULL, "expected (FORWARD;BACKWARD)OVERLAP_F_B; got \"%s\"", text);
    return;
  }
  *end = '\0';
  append_action (f, rank, parts[0], column, true);
  append_action (f, rank, parts[1], column, false);
}

static int
n_code_points (const char *text)
{
  int n = 0;
  for (; *text; text++)
    n += (*text & 0xc0) != 0x80;
  return n;
}

static void
append_line (LsCellFile *f, guint rank)
{
  g_auto (GStrv) cells = g_strsplit (f->lines[rank], ",", -1);
  int column = 1;
  g_ptr_array_add (f->cells, g_array_new (FALSE, TRUE, sizeof (LsCell)));
  for (char **c = cells; *c; c++) {
    int n = n_code_points (*c);
    char *cell = g_strchug (*c);
    int at = column + n - n_code_points (cell);
    g_strchomp (cell);
    if (*cell == '(')
      append_pair (f, rank, cell, at);
    else if (*cell)
      append_action (f, rank, cell, at, false);
    column += n + 1;
  }
}

/* ---- layout ---- */

static uint32_t
key_of (const LsCell *cell)
{
  return cell->pipe * MAX_STAGES + cell->stage;
}

/* The stages that a rank computes: uint32_t keys in ascending order. */
static GArray *
stages_of (const GArray *cells)
{
  GArray *keys = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (guint i = 0; i < cells->len; i++) {
    const LsCell *cell = &g_array_index (cells, LsCell, i);
    uint32_t key = key_of (cell);
    if (cell->kind == LS_CELL_COMPUTE)
      g_array_append_val (keys, key);
  }
  g_array_sort (keys, ls_compare_uint32);
  guint n = 0;
  for (guint i = 0; i < keys->len; i++)
    if (n == 0 || g_array_index (keys, uint32_t, n - 1) != g_array_index (keys, uint32_t, i))
      g_array_index (keys, uint32_t, n++) = g_array_index (keys, uint32_t, i);
  g_array_set_size (keys, n);
  return keys;
}

typedef struct {
  uint32_t n_pipes, n_stages, n_micro_batches, n_chunks;
  guint n_actions;
  GPtrArray *stages; /* [rank] GArray of keys */
} Extent;

static void
measure (const LsCellFile *f, Extent *e)
{
  e->stages = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  for (guint rank = 0; rank < f->cells->len; rank++) {
    const GArray *cells = f->cells->pdata[rank];
    for (guint i = 0; i < cells->len; i++) {
      const LsCell *cell = &g_array_index (cells, LsCell, i);
      if (cell->kind != LS_CELL_COMPUTE)
        continue;
      e->n_actions++;
      e->n_pipes = MAX (e->n_pipes, cell->pipe + 1);
      e->n_stages = MAX (e->n_stages, cell->stage + 1);
      e->n_micro_batches = MAX (e->n_micro_batches, cell->mb + 1);
    }
    GArray *keys = stages_of (cells);
    g_ptr_array_add (e->stages, keys);
    e->n_chunks = MAX (e->n_chunks, keys->len);
    if (keys->len == 0)
      ls_cell_complain (f, rank, 1, NULL, "expected actions of rank %u; got none", rank);
  }
}

/* Tables of stages are made before what is missing is looked for. */
static void
check_extent (const LsCellFile *f, const Extent *e)
{
  if ((guint64) e->n_pipes * e->n_stages > e->n_actions)
    ls_file_diag (f->diags, LS_ERROR_INPUT, f->file, NULL,
                  "expected a forward and a backward of each stage; got %u actions of stages up to %u",
                  e->n_actions, e->n_stages - 1);
  if ((guint64) f->cells->len * e->n_chunks > MAX_PLACES)
    ls_file_diag (f->diags, LS_ERROR_INPUT, f->file, NULL,
                  "expected at most %d stages over all ranks; got %u on one of %u ranks", MAX_PLACES,
                  e->n_chunks, f->cells->len);
}

static uint16_t
chunk_of (const GArray *keys, uint32_t key)
{
  const uint32_t *at = bsearch (&key, keys->data, keys->len, sizeof key, ls_compare_uint32);
  return (uint16_t) (at - (const uint32_t *) (const void *) keys->data);
}

/* A stage is where most of its actions are: a cell that strayed does not take it along. */
static void
set_homes (LsOrders *orders, const Extent *e)
{
  LsLayout *l = &orders->layout;
  g_autofree guint *most = g_new0 (guint, (gsize) l->n_pipes * l->n_stages);
  g_autofree guint *n = g_new (guint, l->n_chunks);
  for (uint32_t rank = 0; rank < l->n_ranks; rank++) {
    const GArray *actions = orders->ranks[rank], *keys = g_ptr_array_index (e->stages, rank);
    memset (n, 0, l->n_chunks * sizeof *n);
    for (guint i = 0; i < actions->len; i++)
      n[g_array_index (actions, LsAction, i).chunk]++;
    for (guint chunk = 0; chunk < keys->len; chunk++) {
      LsStageRef ref = ls_layout_stage (l, rank, chunk);
      guint cell = ref.pipe * l->n_stages + ref.stage;
      if (n[chunk] <= most[cell])
        continue;
      most[cell] = n[chunk];
      l->homes[cell] = (LsHome) { rank, (uint16_t) chunk };
    }
  }
}

static LsOrders *
orders_of (const LsCellFile *f, const Extent *e)
{
  guint n_ranks = f->cells->len;
  g_autofree LsStageRef *stages = g_new (LsStageRef, (gsize) n_ranks * e->n_chunks);
  for (gsize i = 0; i < (gsize) n_ranks * e->n_chunks; i++)
    stages[i] = (LsStageRef) { UINT16_MAX, UINT16_MAX };
  for (guint rank = 0; rank < n_ranks; rank++) {
    const GArray *keys = g_ptr_array_index (e->stages, rank);
    for (guint chunk = 0; chunk < keys->len; chunk++) {
      uint32_t key = g_array_index (keys, uint32_t, chunk);
      stages[rank * e->n_chunks + chunk]
          = (LsStageRef) { (uint16_t) (key / MAX_STAGES), (uint16_t) (key % MAX_STAGES) };
    }
  }
  LsOrders *orders
      = ls_orders_new (n_ranks, e->n_chunks, e->n_pipes, e->n_stages, e->n_micro_batches, stages);
  for (guint rank = 0; rank < n_ranks; rank++) {
    const GArray *cells = f->cells->pdata[rank];
    for (guint i = 0; i < cells->len; i++) {
      const LsCell *cell = &g_array_index (cells, LsCell, i);
      LsAction a = { .mb = cell->mb, .type = (uint8_t) cell->type, .is_paired = cell->is_paired };
      if (cell->kind != LS_CELL_COMPUTE)
        continue;
      a.chunk = chunk_of (g_ptr_array_index (e->stages, rank), key_of (cell));
      g_array_append_val (orders->ranks[rank], a);
    }
  }
  set_homes (orders, e);
  return orders;
}

/* --- sends, receives, parameters and gradients --------------------------------------------------- */

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

static void
find_features (Walk *w)
{
  for (guint rank = 0; rank < w->f->cells->len; rank++) {
    const GArray *cells = w->f->cells->pdata[rank];
    for (guint i = 0; i < cells->len; i++) {
      LsCellKind kind = g_array_index (cells, LsCell, i).kind;
      w->has_p2p |= kind >= LS_CELL_SEND_F && kind <= LS_CELL_RECV_B;
      w->has_shards |= kind == LS_CELL_UNSHARD || kind == LS_CELL_RESHARD;
    }
  }
}

static void
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
    const GArray *cells = f->cells->pdata[w.rank];
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

/* ---- the whole ---- */

/* Columns of a rank's actions, then of the end of its line. */
static int *
columns_of (const LsCellFile *f, guint rank)
{
  const GArray *cells = f->cells->pdata[rank];
  int *columns = g_new (int, cells->len + 1);
  guint n = 0;
  for (guint i = 0; i < cells->len; i++) {
    const LsCell *cell = &g_array_index (cells, LsCell, i);
    if (cell->kind == LS_CELL_COMPUTE)
      columns[n++] = cell->column;
  }
  columns[n] = n_code_points (f->lines[rank]) + 1;
  return columns;
}

static void
check_orders (const LsCellFile *f, const LsOrders *orders)
{
  g_autoptr (GPtrArray) columns = g_ptr_array_new_with_free_func (g_free);
  for (guint rank = 0; rank < f->cells->len; rank++)
    g_ptr_array_add (columns, columns_of (f, rank));
  const LsOrderPlaces places = { f->file, f->lines, (const int *const *) columns->pdata };
  ls_orders_check (orders, &places, f->diags);
}

/* Blank lines at the end are no ranks. */
static void
read_lines (LsCellFile *f, const char *text)
{
  f->lines = g_strsplit (text, "\n", -1);
  guint n = g_strv_length (f->lines);
  while (n > 0 && *g_strchomp (f->lines[n - 1]) == '\0')
    n--;
  for (guint rank = 0; rank < n; rank++) {
    g_strchomp (f->lines[rank]);
    append_line (f, rank);
  }
}

LsOrders *
ls_parse_schedule (const char *name, const char *text, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  LsCellFile f = { name, diags, NULL, g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref) };
  Extent e = { 0 };
  g_autoptr (LsOrders) orders = NULL;

  read_lines (&f, text);
  if (f.cells->len == 0)
    ls_file_diag (diags, LS_ERROR_INPUT, name, NULL, "expected a line of actions for each rank; got none");
  if (ls_diag_list_n (diags) == n_before)
    measure (&f, &e);
  if (ls_diag_list_n (diags) == n_before)
    check_extent (&f, &e);
  if (ls_diag_list_n (diags) == n_before) {
    orders = orders_of (&f, &e);
    check_orders (&f, orders);
  }
  if (ls_diag_list_n (diags) == n_before)
    ls_cells_check_comm (&f, &orders->layout);
  g_strfreev (f.lines);
  g_ptr_array_unref (f.cells);
  g_clear_pointer (&e.stages, g_ptr_array_unref);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&orders) : NULL;
}

LsOrders *
ls_read_schedule (const char *path, LsDiagList *diags)
{
  size_t n;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  if (!text)
    return NULL;
  if (strlen (text) == n)
    return ls_parse_schedule (path, text, diags);
  ls_file_diag (diags, LS_ERROR_INPUT, path, NULL, "expected text; got a NUL byte");
  return NULL;
}
