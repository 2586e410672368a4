#include "lower/balance.h"

#include <string.h>

#include "lower/layers/lower_layers.h"
#include "lower/parts.h"
#include "schedules/sched.h"
#include "strategy/shard.h"

typedef struct {
  LsArena *arena; /* of what follows, but for times and layers */
  const LsPartTimes *times;
  uint32_t n, n_ranks, n_homes; /* chunks; homes of a chunk: one in each pipe     */
  uint32_t *home;               /* [n * n_homes] ranks                            */
  LsTime *before;               /* [n_layers + 1] of the layers before layer i    */
  LsTime *total;                /* [n_ranks] scratch                              */
  uint32_t *layers;             /* [n] the counts so far                          */
  uint32_t *first;              /* [n] the first layer of each, while one moves   */
  uint32_t *held_from, *held;   /* [n_ranks + 1], [n * n_homes] chunks of ranks   */
} Balance;

/* A layer from one chunk to another; both 0: none. */
typedef struct {
  uint32_t from, to;
} Move;

/* Less is better, the first member first. */
typedef struct {
  LsTime rank, chunk;
  uint32_t last; /* of the busiest ranks */
  double squares;
  double moment; /* sum of chunk number times its time: small if the late ones take little */
} Score;

static LsTime
ends_time (const Balance *b, uint32_t chunk)
{
  return (chunk == 0 ? b->times->embedding : 0) + (chunk == b->n - 1 ? b->times->head : 0);
}

static bool
is_end (const Balance *b, uint32_t chunk)
{
  return chunk == 0 || chunk == b->n - 1;
}

static void
find_homes (Balance *b, const LsSched *sched, const LsStrategy *s)
{
  bool has_pipes = sched->placement == LS_PLACE_PIPES;
  uint32_t n_chunks = has_pipes
      ? ls_sched_n_chunks (sched, &(LsSchedShape) { .pp = s->pp, .n_micro_batches = s->pp })
      : s->vpp;
  b->n_ranks = s->pp;
  b->n = s->pp * s->vpp;
  b->n_homes = has_pipes ? n_chunks : 1;
  b->home = ls_arena_new_array (b->arena, uint32_t, (gsize) b->n * b->n_homes);
  for (uint32_t r = 0; r < s->pp; r++)
    for (uint32_t c = 0; c < n_chunks; c++) {
      LsStageRef at = ls_place (sched->placement, s->pp, n_chunks, r, c);
      b->home[at.stage * b->n_homes + at.pipe] = r;
    }
}

/* What each rank holds. */
static void
find_held (Balance *b)
{
  uint32_t n = 0;
  b->held_from = ls_arena_new_array (b->arena, uint32_t, b->n_ranks + 1);
  b->held = ls_arena_new_array (b->arena, uint32_t, (gsize) b->n * b->n_homes);
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    b->held_from[r] = n;
    for (uint32_t i = 0; i < b->n * b->n_homes; i++)
      if (b->home[i] == r)
        b->held[n++] = i / b->n_homes;
  }
  b->held_from[b->n_ranks] = n;
}

static void
balance_init (Balance *b, const LsModel *m, const LsStrategy *s)
{
  find_homes (b, ls_sched_find (s->schedule), s);
  b->total = ls_arena_new_array (b->arena, LsTime, b->n_ranks);
  b->before = ls_arena_new_array (b->arena, LsTime, m->n_layers + 1);
  uint32_t first[LS_MAX_MODEL_KINDS], n_kinds = ls_model_first_of_kinds (m, first);
  for (uint32_t i = 0; i < m->n_layers; i++)
    b->before[i + 1] = b->before[i] + b->times->layer[ls_model_kind_place (m, first, n_kinds, i)];
}

/* To its homes. The busiest of these. */
static LsTime
add_time (const Balance *b, uint32_t chunk, LsTime time)
{
  LsTime most = 0;
  for (uint32_t i = 0; i < b->n_homes; i++) {
    LsTime *total = &b->total[b->home[chunk * b->n_homes + i]];
    *total += time;
    most = MAX (most, *total);
  }
  return most;
}

static LsTime
busiest_home (const Balance *b, uint32_t chunk)
{
  LsTime most = 0;
  for (uint32_t i = 0; i < b->n_homes; i++)
    most = MAX (most, b->total[b->home[chunk * b->n_homes + i]]);
  return most;
}

/* --- dealing out -------------------------------------------------------------------- */

/* All alike: the mean where they are not. */
static void
deal_out (const Balance *b, uint32_t n_layers)
{
  LsTime layer = MAX (1, b->before[n_layers] / n_layers);
  uint32_t left = n_layers;
  for (uint32_t c = 0; c < b->n; c++) {
    b->layers[c] = is_end (b, c) ? 0 : 1;
    left -= b->layers[c];
    add_time (b, c, ends_time (b, c) + layer * b->layers[c]);
  }
  for (; left > 0; left--) {
    uint32_t best = 0;
    for (uint32_t c = 1; c < b->n; c++) {
      LsTime rank = busiest_home (b, c), least = busiest_home (b, best);
      LsTime own = ends_time (b, c) + layer * b->layers[c],
             other = ends_time (b, best) + layer * b->layers[best];
      if (rank < least || (rank == least && own < other))
        best = c;
    }
    b->layers[best]++;
    add_time (b, best, layer);
  }
}

/* --- filling up ----------------------------------------------------------------------- */

/* Each chunk in turn with as many layers as it takes within a time. False: some are left over. */
static bool
fill_up (const Balance *b, uint32_t n_layers, LsTime most)
{
  uint32_t first = 0;
  for (uint32_t c = 0; c < b->n; c++) {
    uint32_t n = is_end (b, c) ? 0 : 1, after = c + 1 < b->n ? b->n - c - 2 : 0; /* that these need */
    while (first + n + after < n_layers
           && ends_time (b, c) + b->before[first + n + 1] - b->before[first] <= most)
      n++;
    b->layers[c] = n;
    first += n;
  }
  return first == n_layers;
}

/* The least time of the busiest chunk within which they all fit. */
static void
fill_evenly (const Balance *b, uint32_t n_layers)
{
  LsTime low = 0, high = b->before[n_layers] + b->times->embedding + b->times->head;
  while (low < high) {
    LsTime middle = low + (high - low) / 2;
    if (fill_up (b, n_layers, middle))
      high = middle;
    else
      low = middle + 1;
  }
  fill_up (b, n_layers, low);
}

/* --- moving on ------------------------------------------------------------------------ */

/* Of a chunk, once that has moved. */
static LsTime
moved_time (const Balance *b, uint32_t c, Move m)
{
  uint32_t first = b->first[c] - (c > m.from) + (c > m.to), n = b->layers[c] - (c == m.from) + (c == m.to);
  return ends_time (b, c) + b->before[first + n] - b->before[first];
}

/* Whether a rank that holds the chunk to which it moves then takes longer: most moves end here. */
static bool
is_beyond (const Balance *b, Move m, LsTime most)
{
  for (uint32_t i = 0; i < b->n_homes; i++) {
    uint32_t r = b->home[m.to * b->n_homes + i];
    LsTime total = 0;
    for (uint32_t k = b->held_from[r]; k < b->held_from[r + 1]; k++)
      total += moved_time (b, b->held[k], m);
    if (total > most)
      return true;
  }
  return false;
}

/* Not beyond a rank that takes longer than `most`, which is as bad as any. */
static Score
score_within (const Balance *b, Move m, LsTime most)
{
  Score s = { 0 };
  for (uint32_t r = 0; r < b->n_ranks; r++)
    b->total[r] = 0;
  for (uint32_t c = 0; c < b->n; c++) {
    LsTime t = moved_time (b, c, m);
    if (add_time (b, c, t) > most)
      return (Score) { .rank = LS_TIME_NEVER };
    s.chunk = MAX (s.chunk, t);
    s.moment += (double) c * (double) t;
  }
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    s.last = b->total[r] >= s.rank ? r : s.last;
    s.rank = MAX (s.rank, b->total[r]);
    s.squares += (double) b->total[r] * (double) b->total[r];
  }
  return s;
}

static Score
score (const Balance *b)
{
  for (uint32_t c = 0, first = 0; c < b->n; first += b->layers[c], c++)
    b->first[c] = first;
  return score_within (b, (Move) { 0 }, LS_TIME_NEVER);
}

static bool
is_better (Score a, Score b)
{
  if (a.rank != b.rank)
    return a.rank < b.rank;
  if (a.chunk != b.chunk)
    return a.chunk < b.chunk;
  if (a.last != b.last)
    return a.last < b.last;
  return a.squares != b.squares ? a.squares < b.squares : a.moment < b.moment;
}

/* The best of all moves of a layer from one chunk to another. False: none helps. */
static bool
move_one (const Balance *b)
{
  Score best = score (b);
  Move move = { 0 };
  for (uint32_t i = 0; i < b->n; i++)
    for (uint32_t k = 0; k < b->n; k++) {
      const Move m = { i, k };
      if (i == k || b->layers[i] <= (is_end (b, i) ? 0 : 1) || is_beyond (b, m, best.rank))
        continue;
      Score s = score_within (b, m, best.rank);
      if (!is_better (s, best))
        continue;
      best = s;
      move = m;
    }
  if (move.from == move.to)
    return false;
  b->layers[move.from]--, b->layers[move.to]++;
  return true;
}

#define MAX_MOVED 128 /* chunks: a move costs up to their number cubed */

static Score
move_on (const Balance *b)
{
  while (b->n <= MAX_MOVED && move_one (b))
    ;
  return score (b);
}

/* From both beginnings: the better end. */
static void
balance_kinds (Balance *b, uint32_t n_layers)
{
  find_held (b);
  b->first = ls_arena_new_array (b->arena, uint32_t, b->n);
  Score dealt = move_on (b);
  g_autofree uint32_t *kept = g_memdup2 (b->layers, b->n * sizeof *kept);
  fill_evenly (b, n_layers);
  if (!is_better (move_on (b), dealt))
    memcpy (b->layers, kept, b->n * sizeof *kept);
}

void
ls_balance_layers (const LsModel *m, const LsStrategy *s, const LsPartTimes *times, uint32_t *ret_layers)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  Balance b = { .arena = arena, .times = times, .layers = ret_layers };
  balance_init (&b, m, s);
  deal_out (&b, m->n_layers);
  if (ls_model_n_layer_kinds (m) > 1)
    balance_kinds (&b, m->n_layers);
}

/* --- rules of programs ------------------------------------------------------------------- */

static double
layer_weights (const LsModel *m)
{
  double heads = 4.0 * m->n_heads * m->head_dim, mlp = (ls_mlp_is_gated (m->mlp) ? 3.0 : 2.0) * m->ffn;
  return (heads + mlp) * m->hidden;
}

bool
ls_chunks_by_weights (const LsModel *m, uint32_t n, uint32_t *ret_layers)
{
  double w = layer_weights (m), whole = m->n_layers * w + (double) m->vocab * m->hidden;
  memset (ret_layers, 0, n * sizeof *ret_layers);
  uint32_t c = 0;
  for (uint32_t i = 0; i < m->n_layers; i++) {
    ret_layers[c]++;
    if (c + 1 < n && (i + 1) * w > whole * ((c + 1.0) / n))
      c++;
  }
  return c == n - 1;
}

#define N_OTHERS 3 /* modules: embedding, before the layers; last norm and head, behind them */

bool
ls_chunks_by_modules (const LsModel *m, uint32_t n, uint32_t *ret_layers)
{
  uint64_t n_modules = (uint64_t) m->n_layers + N_OTHERS, first = 0, n_empty = 0;
  for (uint32_t c = 0; c < n; c++) {
    uint64_t end = first + n_modules / n + (c < n_modules % n ? 1 : 0);
    uint64_t from = MAX (first, 1), to = MIN (end, m->n_layers + UINT64_C (1));
    ret_layers[c] = to > from ? (uint32_t) (to - from) : 0;
    n_empty += c > 0 && c + 1 < n && ret_layers[c] == 0;
    first = end;
  }
  return n_empty == 0;
}

/* The first of the most frequent kind; of the dense one if it is as frequent as another. */
static uint32_t
usual_layer (const LsModel *m)
{
  uint32_t first[LS_MAX_MODEL_KINDS], n_kinds = ls_model_first_of_kinds (m, first);
  uint32_t n_of[LS_MAX_MODEL_KINDS] = { 0 }, best = 0;
  for (uint32_t i = 0; i < m->n_layers; i++)
    n_of[ls_model_kind_place (m, first, n_kinds, i)]++;
  for (uint32_t k = 1; k < n_kinds; k++) {
    bool is_plainer = ls_model_layer_kind (m, first[k]) < ls_model_layer_kind (m, first[best]);
    best = n_of[k] > n_of[best] || (n_of[k] == n_of[best] && is_plainer) ? k : best;
  }
  return first[best];
}

gboolean
ls_layer_operators (const LsModel *m, const LsStrategy *s, GArray *operators, GError **error)
{
  Lower l;
  gboolean ok = lower_begin (&l, m, s, NULL, error);
  l.shard.fp8.bf16_first = l.shard.fp8.bf16_last = 0;
  l.shard.documents = documents_at (&l, 0);
  if (ok)
    ls_operators_layer (m, &l.shard, usual_layer (m), operators);
  lower_clear (&l);
  return ok;
}

gboolean
ls_strategy_balance (LsStrategy *s, const LsModel *m, const LsLowerCosts *costs, GError **error)
{
  if (!ls_chunks_want_balance (s, m))
    return TRUE;
  g_autoptr (LsPartsMemo) memo = ls_parts_memo_new (m);
  const LsModelParts *parts = ls_parts_of (memo, s, 0, LS_PARTS_USUAL, error);
  if (!parts)
    return FALSE;
  const LsPartTimes times = ls_part_times (memo, parts, costs);
  ls_strategy_set_balanced (s, m, &times);
  return TRUE;
}

void
ls_strategy_set_layers (LsStrategy *s, const uint32_t *layers)
{
  s->layout.n_layers_per_chunk = s->pp * s->vpp;
  s->layout.layers_per_chunk = g_memdup2 (layers, s->layout.n_layers_per_chunk * sizeof *layers);
  s->layout.layers_are_found = true;
}

static bool
is_by_rule (const LsStrategy *s, const LsModel *m, uint32_t *ret_layers)
{
  uint32_t n = s->pp * s->vpp;
  return (s->layout.layer_rule == LS_LAYER_RULE_WEIGHTS && ls_chunks_by_weights (m, n, ret_layers))
      || (s->layout.layer_rule == LS_LAYER_RULE_MODULES && ls_chunks_by_modules (m, n, ret_layers));
}

void
ls_strategy_set_balanced (LsStrategy *s, const LsModel *m, const LsPartTimes *times)
{
  g_autofree uint32_t *layers = g_new (uint32_t, (gsize) s->pp * s->vpp);
  if (!is_by_rule (s, m, layers))
    ls_balance_layers (m, s, times, layers);
  ls_strategy_set_layers (s, layers);
}
