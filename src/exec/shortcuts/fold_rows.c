/* exec/shortcuts/fold_rows.c — what hosts send to each other, as rows. */
#include <string.h>

#include "exec/shortcuts/fold_blocks.h"
#include "exec/replay/state.h"

/* The rows of the last host at its place in a period. */
typedef struct {
  bool is_there;
  uint32_t host;
  guint first, n; /* into rows_at */
} Seen;

typedef struct {
  Blocks *b;
  GHashTable *known;       /* LsSig > row + 1                                          */
  uint32_t *peers, *ranks; /* [GPUs of a host], [twice as many] of the one looked at   */
  Seen *seen;              /* [hosts of a period]; NULL: each host is looked at        */
} Finding;

static uint32_t
rank_at (const Blocks *b, uint32_t host, uint32_t gpu)
{
  return blocks_rank (b, host * b->at->gpus_per_host + gpu);
}

/* Of each GPU of a host, the neighbour in that direction, if it matters; else UINT32_MAX. */
static void
find_peers (const Blocks *b, uint32_t host, uint32_t to_next, uint32_t *ret_peers)
{
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++) {
    uint32_t rank = rank_at (b, host, i);
    bool matters = rank != UINT32_MAX && (b->peers[ls_plan_role (b->plan, rank)] >> to_next & 1);
    ret_peers[i] = matters ? ls_plan_peer (b->plan, rank, to_next) : UINT32_MAX;
  }
}

/* Whether all these are in the stretch of the host. */
static bool
are_beside (const Blocks *b, uint32_t host, const uint32_t *peers)
{
  const Stretches *s = &b->stretches;
  if (!s->kept)
    return true;
  uint32_t own = stretch_of_gpu (s, stretch_gpu (s, host * b->at->gpus_per_host));
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++)
    if (peers[i] != UINT32_MAX && stretch_of_gpu (s, ls_plan_gpu (b->plan, peers[i])) != own)
      return false;
  return true;
}

static uint32_t
host_of_peer (const Blocks *b, uint32_t peer)
{
  return peer == UINT32_MAX ? UINT32_MAX : blocks_host (b, peer);
}

bool
rows_shape_rank (const Blocks *b, uint32_t rank, uint32_t ret_shape[3], uint32_t ret_places[2][SEND_PLACES])
{
  const RoleCalls *role = &b->roles[ls_plan_role (b->plan, rank)];
  for (uint32_t p = 0; p < 2; p++) {
    ret_shape[p] = NO_SHAPE;
    if (role->id[SENDS + p] == 0)
      continue;
    const uint32_t ranks[] = { rank, ls_plan_peer (b->plan, rank, p) };
    const uint32_t *at;
    ret_shape[p] = shapes_of_calls (b->shapes, role->keys[SENDS + p], role->id[SENDS + p], ranks, 2, &at);
    if (ret_shape[p] == NO_SHAPE)
      return false;
    for (uint32_t k = 0; k < shapes_at (b->shapes, ret_shape[p])->n_places; k++)
      ret_places[p][k] = stretch_kept (&b->stretches, at[k]);
  }
  ret_shape[2] = shapes_of_copies (b->shapes, role, rank);
  return ret_shape[2] != NO_SHAPE;
}

/* False: a call cannot be planned. */
static bool
make_row (Blocks *b, uint32_t host, uint32_t n_places, Row *row)
{
  uint32_t *shapes = ls_arena_new_array (b->arena, uint32_t, row->n);
  for (uint32_t i = 0; i < row->n; i++) {
    uint32_t shape[3], places[2][SEND_PLACES];
    if (!rows_shape_rank (b, rank_at (b, host, row->gpu + i), shape, places))
      return false;
    shapes[i] = shape[row->to_next];
    g_assert (shapes[i] == NO_SHAPE || shapes_at (b->shapes, shapes[i])->n_places == n_places);
    row->n_places = shapes[i] == NO_SHAPE ? row->n_places : n_places;
  }
  row->shape = shapes;
  row->label = b->n_row_labels;
  b->n_row_labels += MAX (1, n_places);
  return true;
}

/* UINT32_MAX: a call cannot be planned. Of `row` nothing is known but the GPUs. */
static uint32_t
number_of_row (Finding *f, LsSig key, uint32_t host, uint32_t n_places, Row row)
{
  Blocks *b = f->b;
  uint32_t number = sigs_id (f->known, b->arena, key) - 1;
  if (number < b->rows->len)
    return number;
  if (!make_row (b, host, n_places, &row))
    return UINT32_MAX;
  g_array_append_val (b->rows, row);
  return number;
}

/* peers: of the GPUs of the row. */
static bool
add_row (Finding *f, uint32_t host, Row row, const uint32_t *peers)
{
  Blocks *b = f->b;
  const uint32_t *places;
  uint32_t n_places, n = row.n;
  for (uint32_t i = 0; i < n; i++)
    f->ranks[i] = rank_at (b, host, row.gpu + i);
  memcpy (&f->ranks[n], peers, n * sizeof *peers);
  LsSig key = shapes_key (b->shapes, row.to_next, f->ranks, 2 * n, &places, &n_places);
  for (uint32_t i = 0; i < n; i++)
    ls_sig_add (&key, b->roles[ls_plan_role (b->plan, f->ranks[i])].id[SENDS + row.to_next]);
  RowLie lie = { .from = host, .to = host_of_peer (b, peers[0]), .first = b->row_places->len };
  for (uint32_t k = 0; k < n_places; k++) {
    uint32_t place = stretch_kept (&b->stretches, places[k]);
    g_array_append_val (b->row_places, place);
  }
  lie.row = number_of_row (f, key, host, n_places, row);
  const RowAt at = { b->row_lies->len, 0 };
  g_array_append_val (b->row_lies, lie);
  g_array_append_val (b->rows_at, at);
  return lie.row != UINT32_MAX;
}

static bool
find_rows_to (Finding *f, uint32_t host, uint32_t to_next)
{
  const Blocks *b = f->b;
  uint32_t per_host = b->at->gpus_per_host;
  find_peers (b, host, to_next, f->peers);
  if (!are_beside (b, host, f->peers))
    return false;
  for (uint32_t i = 0, n; i < per_host; i += n) {
    uint32_t to = host_of_peer (b, f->peers[i]);
    for (n = 1; i + n < per_host && host_of_peer (b, f->peers[i + n]) == to;)
      n++;
    if (to != UINT32_MAX && !add_row (f, host, (Row) { .gpu = i, .n = n, .to_next = to_next }, &f->peers[i]))
      return false;
  }
  return true;
}

bool
rows_are_of_same_roles (const Blocks *b, uint32_t host, uint32_t other)
{
  uint32_t n = b->at->gpus_per_host, first = stretch_gpu (&b->stretches, host * n),
           first_of_other = stretch_gpu (&b->stretches, other * n);
  bool are_same = MAX (first, first_of_other) + n <= b->plan->n_ranks;
  for (uint32_t i = 0; i < n && are_same; i++)
    are_same = ls_plan_role (b->plan, first + i) == ls_plan_role (b->plan, first_of_other + i);
  return are_same;
}

/* As of a host that is alike but for whole periods: a role has its neighbours at one distance. */
static void
repeat_rows (Blocks *b, uint32_t host, Seen *seen)
{
  guint first = b->rows_at->len;
  g_array_set_size (b->rows_at, first + seen->n);
  RowAt *at = &g_array_index (b->rows_at, RowAt, first),
        *before = &g_array_index (b->rows_at, RowAt, seen->first);
  for (guint i = 0; i < seen->n; i++)
    at[i] = (RowAt) { before[i].lie, before[i].shift + (host - seen->host) / b->period };
  *seen = (Seen) { true, host, first, seen->n };
}

static bool
find_rows_of (Finding *f, uint32_t host)
{
  Blocks *b = f->b;
  Seen *seen = f->seen ? &f->seen[host % b->period] : NULL;
  if (seen && seen->is_there && rows_are_of_same_roles (b, host, seen->host)) {
    repeat_rows (b, host, seen);
    return true;
  }
  guint first = b->rows_at->len;
  for (uint32_t p = 0; p < 2; p++)
    if (!find_rows_to (f, host, p))
      return false;
  if (seen)
    *seen = (Seen) { true, host, first, b->rows_at->len - first };
  return true;
}

bool
rows_find (Blocks *b)
{
  uint32_t per_host = b->at->gpus_per_host;
  Finding f = { .b = b,
                .known = g_hash_table_new (ls_sig_hash, ls_sig_is_same),
                .peers = g_new (uint32_t, per_host),
                .ranks = g_new (uint32_t, 2 * per_host),
                .seen = b->period > 0 ? g_new0 (Seen, b->period) : NULL };
  b->rows = g_array_new (FALSE, FALSE, sizeof (Row));
  b->row_lies = g_array_new (FALSE, FALSE, sizeof (RowLie));
  b->rows_at = g_array_new (FALSE, FALSE, sizeof (RowAt));
  b->row_places = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  bool ok = true;
  for (uint32_t host = 0; host < b->at->n_hosts && ok; host++)
    ok = find_rows_of (&f, host);
  g_hash_table_unref (f.known);
  g_free (f.peers);
  g_free (f.ranks);
  g_free (f.seen);
  return ok;
}
