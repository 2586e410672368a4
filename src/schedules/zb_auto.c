/* The automatic zero-bubble schedules: from the contract's shape to a search and back.
 *
 *   zb-auto          one chunk per rank; zb-1p and zb-2p are zb-auto
 *                    with memory for p and 2 p micro-batches
 *   zbv-auto         two chunks in a V
 *   v-half, v-min    zbv-auto with memory for floor ((p + 2) / 2), floor ((p + 4) / 3)
 *                    micro-batches, or the limit that is given if that is less
 *
 * Memory is counted in parts of a chunk's activations: an F takes all; its I leaves what W
 * multiplies, inputs and gradients of outputs, in a job as its chunks have it, else a half; its
 * W nothing. The effort is a count of timed actions, so that orders do not depend
 * on the machine.
 *
 * Deviation: of the papers' methods the integer program is not here; the limits of v-half
 * and v-min are those of their building blocks, while the order is searched for the times
 * given.
 *
 * References: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024; Qi et al., Pipeline
 * Parallelism with Controllable Memory, NeurIPS 2024. */
#include <math.h>
#include <string.h>

#include "schedules/sched_impl.h"
#include "schedules/zb.h"

/* Timed actions of a search: so many runs of all actions, within bounds. About 10 ns each
 * in an optimised build (8 stages, 64 micro-batches: about 0.1 s a schedule). The least is
 * what tests/unit/schedules/test_zb.c needs. */
#define LEAST_EFFORT (10 * 1000 * 1000)
#define MOST_EFFORT  (100 * 1000 * 1000)
#define RUNS         200

/* Micro-batches: as given, or as few as the schedule has. */
static double
limit_of (const LsSched *sched, const LsSchedShape *shape)
{
  if (sched->limit.over == 0)
    return shape->memory_limit;
  uint32_t most = (sched->limit.times * shape->pp + sched->limit.plus) / sched->limit.over;
  return shape->memory_limit > 0 ? MIN (shape->memory_limit, most) : most;
}

/* ---- shape to job ---- */

/* f, i, w of all stages; free with g_free. */
static LsTime *
times_of (const LsSchedTimes *times, uint32_t n_stages)
{
  LsTime *all = g_new (LsTime, 3 * (size_t) n_stages);
  bool is_unset = times->chunk.f == 0 && times->chunk.i == 0 && times->chunk.w == 0;

  for (uint32_t s = 0; s < n_stages; s++) {
    LsChunkTimes t = times->stages ? times->stages[s] : times->chunk;
    if (!times->stages && is_unset)
      t = (LsChunkTimes) { .f = 1, .i = 1, .w = 1 };
    all[s] = t.f;
    all[n_stages + s] = t.i;
    all[2 * n_stages + s] = t.w;
  }
  return all;
}

/* Memory is counted in parts of a chunk. With full recomputation an I keeps many times what its F did. */
#define CHUNK_UNITS 128
#define MOST_KEPT   64

static uint32_t
units (double limit, uint32_t n_chunks)
{
  double n = limit * CHUNK_UNITS * n_chunks;
  return limit <= 0 || n >= LS_ZB_UNLIMITED ? LS_ZB_UNLIMITED : (uint32_t) n;
}

/* Of all stages, rounded up; free with g_free. */
static uint32_t *
units_kept (const LsSchedTimes *times, uint32_t n_stages)
{
  uint32_t *all = g_new (uint32_t, n_stages);
  for (uint32_t s = 0; s < n_stages; s++)
    all[s] = (uint32_t) ceil (MIN (times->kept ? times->kept[s] : 0.5, MOST_KEPT) * CHUNK_UNITS);
  return all;
}

static void
append_order (const LsZbJob *job, const uint8_t *symbols, GArray *actions)
{
  static const LsActionType types[] = { LS_ACTION_F, LS_ACTION_I, LS_ACTION_W };
  uint32_t n[6] = { 0 };
  for (size_t k = 0; k < ls_zb_length (job); k++) {
    uint32_t symbol = symbols[k];
    ls_sched_append (actions, types[symbol / 2], symbol & 1, n[symbol]++);
  }
}

static void
schedule (const LsSched *sched, const LsSchedShape *shape, GArray **ranks)
{
  uint32_t n_chunks = sched->n_chunks ? sched->n_chunks (shape) : 1, n_stages = shape->pp * n_chunks;
  g_autofree LsTime *times = times_of (&shape->times, n_stages);
  g_autofree uint32_t *kept = units_kept (&shape->times, n_stages);
  LsZbJob job = {
    .p = shape->pp,
    .v = n_chunks,
    .m = shape->n_micro_batches,
    .f = times,
    .i = times + n_stages,
    .w = times + 2 * n_stages,
    .comm = shape->times.comm,
    .limit = units (limit_of (sched, shape), n_chunks),
    .chunk = CHUNK_UNITS,
    .kept = kept,
  };
  size_t length = ls_zb_length (&job);
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsZbSearch search;
  ls_zb_search_init (&search, &job, CLAMP (RUNS * (int64_t) (job.p * length), LEAST_EFFORT, MOST_EFFORT),
                     arena);
  if (n_chunks == 1)
    ls_zb_search_line (&search);
  else
    ls_zb_search_vee (&search);
  g_autofree uint8_t *order = g_malloc (job.p * length);
  LsZbScore score = ls_zb_fill (&search.run, search.best_string, search.best_rules, order);
  g_assert (score.span < INT64_MAX && score.span == search.best.span);
  for (uint32_t r = 0; r < job.p; r++)
    append_order (&job, order + r * length, ranks[r]);
}

/* Of one chunk per rank, or of two in a V. */
#define LINE .chunks = LS_CHUNKS_ONE, .placement = LS_PLACE_LOOP, .is_split = true, .orders = schedule
#define VEE                                                                                                  \
  .chunks = LS_CHUNKS_TWO, .placement = LS_PLACE_WAVE, .is_split = true, .n_chunks = ls_sched_two_chunks,    \
  .orders = schedule

const LsSched ls_sched_zb_auto = { .name = "zb-auto", LINE, .bounded = "zb-1p or zb-2p" };
const LsSched ls_sched_zb_1p = { .name = "zb-1p", LINE, .limit = { 1, 0, 1 } };
const LsSched ls_sched_zb_2p = { .name = "zb-2p", LINE, .limit = { 2, 0, 1 } };
const LsSched ls_sched_zbv_auto = { .name = "zbv-auto", VEE, .bounded = "zbv, v-half or v-min" };
const LsSched ls_sched_v_half = { .name = "v-half", VEE, .limit = { 1, 2, 2 } };
const LsSched ls_sched_v_min = { .name = "v-min", VEE, .limit = { 1, 4, 3 } };

/* Automatic zero bubble with one chunk per rank: ZB-1p, ZB-2p and what lies between.
 *
 * Problem. Given F, I, W, comm and a limit of memory, order each rank such that it waits
 * least. Rank r runs c(r) forwards, then pairs (I, F), then the I that are left; the W fill
 * the waits (schedules/zb_search.c). c(r) = p - r is 1F1B's; every forward more in advance
 * fills the wait for the first I, and costs memory. Search: lines
 * c(r) = min (cap, 1 + (p - 1 - r) slope) for each cap that the memory allows and slopes
 * from 1 to 2.5, each with each rule for the W; then, from the best of these, single c(r),
 * all before or behind a rank, and the rules of ranks are changed while that helps; then
 * single symbols are moved (schedules/zb_search.c).
 *
 *     p = 2, m = 3, F = I = W = 1, memory 2:   c = 2 1, span 10 = 9 + (p - 1)(F + I - W)
 *     rank 0   F0 F1 .  I0 W0 F2 I1 W1 I2 W2
 *     rank 1      F0 I0 F1 I1 W0 F2 I2 W1 W2
 *
 * 1F1B with each W right after its I is tried first, so the result is never later than that.
 *
 * Deviations: sends do not occupy a rank; no integer program.
 *
 * Reference: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 3.1. */

#define N_SLOPES 13

typedef struct {
  LsZbScore score;
  uint32_t *warmup; /* [p] */
  LsZbRule *rules;  /* [p] */
} Line;

static void
line_clear (gpointer data)
{
  Line *line = data;
  g_free (line->warmup);
  g_free (line->rules);
}

/* at_once: each W right after its I. */
static void
write_string (LsZbSearch *search, const uint32_t *warmup, bool at_once)
{
  const LsZbJob *job = search->run.job;
  for (uint32_t r = 0; r < job->p; r++) {
    uint8_t *at = search->string + r * ls_zb_length (job);
    for (uint32_t k = 0; k < job->m + warmup[r]; k++) {
      if (k >= warmup[r])
        *at++ = LS_ZB_I;
      if (k >= warmup[r] && at_once)
        *at++ = LS_ZB_W;
      if (k < job->m)
        *at++ = LS_ZB_F;
    }
    memset (at, LS_ZB_W, at_once ? 0 : job->m);
  }
}

/* 1F1B, each W right after its I: what the result must not be worse than. */
static void
try_1f1b (LsZbSearch *search)
{
  const LsZbJob *job = search->run.job;
  g_autofree uint32_t *warmup = g_new (uint32_t, job->p);
  for (uint32_t r = 0; r < job->p; r++)
    warmup[r] = MIN (job->p - r, MIN (job->m, job->limit / ls_zb_takes (job)));
  write_string (search, warmup, true);
  ls_zb_try_rules (search, LS_ZB_RULES_FEW);
}

/* ---- from global rules ---- */

/* Of what begins with its score. */
static gint
by_score (gconstpointer a, gconstpointer b)
{
  const LsZbScore *x = a, *y = b;
  return ls_zb_is_better (*x, *y) ? -1 : ls_zb_is_better (*y, *x) ? 1 : 0;
}

static void
try_line (LsZbSearch *search, const uint32_t *warmup, GArray *lines)
{
  uint32_t p = search->run.job->p;
  write_string (search, warmup, false);
  Line best = { .score = ls_zb_try_rules (search, LS_ZB_RULES_IGNORE) };
  if (best.score.span == INT64_MAX)
    return;
  best.warmup = g_memdup2 (warmup, p * sizeof *warmup);
  best.rules = g_memdup2 (search->rules, p * sizeof *search->rules);
  g_array_append_val (lines, best);
}

static void
try_lines (LsZbSearch *search, uint32_t most, int64_t reserve, GArray *lines)
{
  uint32_t p = search->run.job->p;
  g_autofree uint32_t *warmup = g_new (uint32_t, p);
  uint32_t n_caps = MIN (most, 3 * p), step = 1 + n_caps / 32;

  for (uint32_t below = 0; below < n_caps; below += step)
    for (uint32_t q = 0; q < N_SLOPES; q++) {
      if (ls_zb_search_is_over (search) || (lines->len > 0 && search->run.budget < reserve))
        return;
      /* eighths from 1 to 2.5, 1F1B's and ZB-2p's first */
      uint32_t slope = 8 + q * 8 % N_SLOPES;
      for (uint32_t r = 0; r < p; r++)
        warmup[r] = MIN (1 + ((p - 1 - r) * slope + 4) / 8, most - below);
      try_line (search, warmup, lines);
    }
}

/* ---- from one line to a better ---- */

typedef enum { ONE, UP_TO, FROM, N_GROUPS } Group;

static bool
is_in (Group group, uint32_t rank, uint32_t pivot)
{
  return group == ONE ? rank == pivot : group == UP_TO ? rank <= pivot : rank >= pivot;
}

static bool
shift_warmup (Line *to, const Line *from, uint32_t p, Group group, uint32_t pivot, int by, uint32_t most)
{
  for (uint32_t r = 0; r < p; r++) {
    int64_t c = (int64_t) from->warmup[r] + (is_in (group, r, pivot) ? by : 0);
    if (c < 1 || c > most)
      return false;
    to->warmup[r] = (uint32_t) c;
  }
  memcpy (to->rules, from->rules, p * sizeof *to->rules);
  return true;
}

static void
set_rules (Line *to, const Line *from, uint32_t p, Group group, uint32_t pivot, LsZbRule rule)
{
  memcpy (to->warmup, from->warmup, p * sizeof *to->warmup);
  for (uint32_t r = 0; r < p; r++)
    to->rules[r] = is_in (group, r, pivot) ? rule : from->rules[r];
}

static bool
adopt_if_better (LsZbSearch *search, Line *line, const Line *other)
{
  uint32_t p = search->run.job->p;
  write_string (search, other->warmup, false);
  memcpy (search->rules, other->rules, p * sizeof *search->rules);
  search->run.cutoff = line->score.span;
  LsZbScore score = ls_zb_try (search);
  search->run.cutoff = INT64_MAX;
  if (!ls_zb_is_better (score, line->score))
    return false;
  line->score = score;
  memcpy (line->warmup, other->warmup, p * sizeof *line->warmup);
  memcpy (line->rules, other->rules, p * sizeof *line->rules);
  return true;
}

static bool
climb_at (LsZbSearch *search, Line *line, Line *other, uint32_t pivot, uint32_t most)
{
  uint32_t p = search->run.job->p;
  bool helped = false;
  guint first, n = ls_zb_n_rules (LS_ZB_RULES_IGNORE, &first);

  for (Group group = ONE; group < N_GROUPS; group++) {
    for (int by = -2; by <= 2; by++)
      if (by != 0 && shift_warmup (other, line, p, group, pivot, by, most))
        helped |= adopt_if_better (search, line, other);
    for (guint i = first; i < first + n; i++) {
      set_rules (other, line, p, group, pivot, ls_zb_rules[i]);
      helped |= adopt_if_better (search, line, other);
    }
  }
  return helped;
}

static void
climb (LsZbSearch *search, Line *line, uint32_t most)
{
  uint32_t p = search->run.job->p;
  Line other = { .warmup = g_new (uint32_t, p), .rules = g_new (LsZbRule, p) };

  for (bool helped = true; helped;) {
    helped = false;
    for (uint32_t r = 0; r < p && !ls_zb_search_is_over (search); r++)
      helped |= climb_at (search, line, &other, r, most);
  }
  line_clear (&other);
}

void
ls_zb_search_line (LsZbSearch *search)
{
  const LsZbJob *job = search->run.job;
  uint32_t most = MIN (job->m, job->limit / ls_zb_takes (job));
  int64_t budget = search->run.budget;
  g_autoptr (GArray) lines = g_array_new (FALSE, FALSE, sizeof (Line));
  g_array_set_clear_func (lines, line_clear);

  try_1f1b (search);
  try_lines (search, most, budget * 2 / 3, lines);
  g_array_sort (lines, by_score);
  LsZbScore last = LS_ZB_NEVER;
  for (guint i = 0; i < lines->len && search->run.budget > budget / 8; i++) {
    Line *line = &g_array_index (lines, Line, i);
    LsZbScore start = line->score;
    if (start.span == last.span && start.sum == last.sum)
      continue;
    last = start;
    climb (search, line, most);
  }
  ls_zb_polish_best (search);
}

/* Automatic zero bubble on a V of two chunks per rank: ZB-V, V-Half, V-Min and what lies
 * between, as memory allows.
 *
 * Problem. Rank r holds stages r and 2p - 1 - r; given F, I, W, comm and a limit of memory,
 * order each rank such that it waits least. A micro-batch passes each rank four times
 * (F0 down, F1 up, I1 down, I0 up); the faster it comes back, the less memory it takes.
 *
 * Model. Two ways to make a string, both by list scheduling (schedules/zb_search.c):
 *
 * - Greedy: kinds by a fixed priority, with a cap on the micro-batches that rank r holds.
 *   Finds ZB-V and better where memory is ample.
 * - Building blocks: one micro-batch is drawn in a grid of six slots (F0, F1, I1, I0, W1,
 *   W0) and repeated every six. With d0, d1, d2, d3 slots from rank to rank on the four
 *   passes and t0, t1, t2 at the turns,
 *
 *       F0(r) = d0 r                 F1(r) = F0(p-1) + t0 + d1 (p-1-r)
 *       I1(r) = F1(0) + t1 + d2 r    I0(r) = I1(p-1) + t2 + d3 (p-1-r)
 *
 *   a block is legal if on every rank the four differ modulo six; the W take the two slots
 *   that are left, as soon as they may. A rank holds about (d0 + d1 + d2 + d3)(p - 1) / 6
 *   or (d1 + d2)(p - 1) / 3 chunks: V-Min is d = 1 1 1 1, V-Half 2 1 2 1, ZB-V up to
 *   12 in all. The block gives the order of the steady state whatever the times; in the
 *   warm-up and the drain ready symbols may overtake by up to a window.
 *
 *     p = 2, d = 1 1 1 1, t = 1 1 1, slots:   0  1  2  3  4  5  6  7  8  9 10
 *     rank 0                                  F0 .  .  F1 I1 W1 .  I0 W0
 *     rank 1                                     F0 F1 .  .  I1 I0 .  .  W0 W1
 *
 * Search: all blocks that memory may allow; the best of them with windows;
 * greedy ones; single symbols moved (schedules/zb_search.c). A job of many micro-batches is
 * searched with 3 p of them, and the best ways are applied to all.
 *
 * Deviations: the grid has slots of equal length; a block need not suit very unequal times.
 *
 * Reference: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024. */

#define N_SLOTS    6
#define MAX_STEP   6 /* of d */
#define MAX_TURN   5
#define N_TURNS    (MAX_TURN * MAX_TURN * MAX_TURN)
#define N_WAYS     16 /* that are kept */
#define N_WINDOWED 12 /* blocks that are tried with windows */

typedef struct {
  uint16_t step[4], turn[3];
} Block;

/* How a string is made. */
typedef struct {
  LsZbScore score;
  bool is_block;
  Block block;
  LsZbList list; /* its keys are set when it is used */
} Way;

typedef struct {
  LsZbSearch *search;
  double (*keys)[6];
  GArray *ways; /* of Way */
} Vee;

/* ---- building blocks ---- */

static void
places (const Block *b, uint32_t p, uint32_t rank, uint32_t at[LS_ZB_N_KINDS])
{
  uint32_t up = p - 1 - rank, f1 = (p - 1) * b->step[0] + b->turn[0];
  uint32_t i1 = f1 + (p - 1) * b->step[1] + b->turn[1];
  uint32_t i0 = i1 + (p - 1) * b->step[2] + b->turn[2];

  at[LS_ZB_F] = rank * b->step[0];
  at[LS_ZB_F + 1] = f1 + up * b->step[1];
  at[LS_ZB_I + 1] = i1 + rank * b->step[2];
  at[LS_ZB_I] = i0 + up * b->step[3];
}

/* The slots that the four leave; false if two of them meet. */
static bool
free_slots (const uint32_t at[LS_ZB_N_KINDS], uint32_t ret_free[2])
{
  bool used[N_SLOTS] = { false };
  uint32_t n = 0;

  for (uint32_t k = 0; k < LS_ZB_N_KINDS; k++) {
    if (used[at[k] % N_SLOTS])
      return false;
    used[at[k] % N_SLOTS] = true;
  }
  for (uint32_t slot = 0; slot < N_SLOTS; slot++)
    if (!used[slot])
      ret_free[n++] = slot;
  return true;
}

static uint32_t
next_at (uint32_t after, uint32_t slot)
{
  return after + 1 + (slot + N_SLOTS - (after + 1) % N_SLOTS) % N_SLOTS;
}

static bool
block_is_legal (const Block *b, uint32_t p)
{
  uint32_t at[LS_ZB_N_KINDS], slots[2];
  for (uint32_t r = 0; r < p; r++) {
    places (b, p, r, at);
    if (!free_slots (at, slots))
      return false;
  }
  return true;
}

static void
block_keys (const Block *b, uint32_t p, double (*keys)[6])
{
  for (uint32_t r = 0; r < p; r++) {
    uint32_t at[LS_ZB_N_KINDS], slots[2];
    places (b, p, r, at);
    free_slots (at, slots);
    uint32_t w0[2], w1[2];
    for (uint32_t k = 0; k < 2; k++) {
      w0[k] = next_at (at[LS_ZB_I], slots[k]);
      w1[k] = next_at (at[LS_ZB_I + 1], slots[!k]);
    }
    uint32_t k = w0[1] + w1[1] < w0[0] + w1[0];
    for (uint32_t kind = 0; kind < LS_ZB_N_KINDS; kind++)
      keys[r][kind] = (double) at[kind] / N_SLOTS;
    keys[r][LS_ZB_W] = (double) w0[k] / N_SLOTS;
    keys[r][LS_ZB_W + 1] = (double) w1[k] / N_SLOTS;
  }
}

/* The chunks that the first and the last rank hold, turns left out, times N_SLOTS. */
static uint64_t
first_held (const Block *b, uint32_t p)
{
  return (uint64_t) (p - 1) * (b->step[0] + b->step[1] + b->step[2] + b->step[3]);
}

static uint64_t
last_held (const Block *b, uint32_t p)
{
  return (uint64_t) (p - 1) * 2 * (b->step[1] + b->step[2]);
}

/* Whether they may fit, a little above the limit included: those of the turns come on top,
 * the drain may hold less. */
static bool
block_may_fit (const Block *b, const LsZbJob *job)
{
  uint64_t limit = MIN (job->limit, (uint64_t) 2 * job->p * ls_zb_takes (job)); /* more is for the greedy */
  uint64_t most = N_SLOTS * limit / ls_zb_takes (job) + 2 * N_SLOTS;
  return first_held (b, job->p) <= most && last_held (b, job->p) <= most;
}

/* Those that use most memory first: where effort ends early, they are the ones to try. */
static gint
by_memory (gconstpointer a, gconstpointer b, gpointer data)
{
  uint32_t p = *(const uint32_t *) data;
  uint64_t x = first_held (a, p) + last_held (a, p), y = first_held (b, p) + last_held (b, p);
  return (x < y) - (x > y);
}

static GArray *
blocks_of (const LsZbJob *job)
{
  GArray *blocks = g_array_new (FALSE, FALSE, sizeof (Block));
  for (uint32_t d = 0; d < MAX_STEP * MAX_STEP * MAX_STEP * MAX_STEP; d++) {
    Block b;
    for (uint32_t k = 0, x = d; k < 4; k++, x /= MAX_STEP)
      b.step[k] = (uint16_t) (1 + x % MAX_STEP);
    for (uint32_t t = 0; block_may_fit (&b, job) && t < N_TURNS; t++) {
      for (uint32_t k = 0, x = t; k < 3; k++, x /= MAX_TURN)
        b.turn[k] = (uint16_t) (1 + x % MAX_TURN);
      if (block_is_legal (&b, job->p))
        g_array_append_val (blocks, b);
    }
  }
  uint32_t p = job->p;
  g_array_sort_with_data (blocks, by_memory, &p);
  return blocks;
}

/* ---- ways ---- */

static void
try_way (Vee *vee, Way *way, LsZbRules rules)
{
  LsZbSearch *search = vee->search;
  way->score = LS_ZB_NEVER;
  way->list.keys = NULL;
  if (way->is_block) {
    block_keys (&way->block, search->run.job->p, vee->keys);
    way->list.keys = (const double (*)[6]) vee->keys;
  }
  if (!ls_zb_list (&search->run, &way->list, search->string))
    return;
  way->score = ls_zb_try_rules (search, rules);
  if (way->score.span < INT64_MAX)
    g_array_append_val (vee->ways, *way);
}

static void
try_blocks (Vee *vee, int64_t reserve)
{
  g_autoptr (GArray) blocks = blocks_of (vee->search->run.job);
  for (guint i = 0; i < blocks->len; i++) {
    if (ls_zb_search_is_over (vee->search) || vee->search->run.budget < reserve)
      return;
    Way way = { .is_block = true, .block = g_array_index (blocks, Block, i), .list = { .sixteenths = 16 } };
    try_way (vee, &way, LS_ZB_RULES_FEW);
  }
}

/* The best ways so far, again with windows. */
static void
try_windows (Vee *vee, int64_t reserve)
{
  static const double warm[] = { 0, 0.67, 1.5, 3 }, drain[] = { 0.34, 1.5, 100 };
  g_array_sort (vee->ways, by_score);
  Way starts[N_WINDOWED];
  guint n = MIN (vee->ways->len, N_WINDOWED);
  for (guint i = 0; i < n; i++)
    starts[i] = g_array_index (vee->ways, Way, i);

  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < G_N_ELEMENTS (warm) * G_N_ELEMENTS (drain) * 4; k++) {
      if (ls_zb_search_is_over (vee->search) || vee->search->run.budget < reserve)
        return;
      Way way = starts[i];
      if (!way.is_block)
        break;
      way.list.warm_window = warm[k / 4 % G_N_ELEMENTS (warm)];
      way.list.drain_window = drain[k / 4 / G_N_ELEMENTS (warm)];
      way.list.drains_late = k & 1;
      way.list.sixteenths = k & 2 ? 4 : 16;
      try_way (vee, &way, LS_ZB_RULES_FEW);
    }
}

static void
try_greedy (Vee *vee, int64_t reserve)
{
  static const uint8_t priorities[][LS_ZB_N_KINDS] = {
    { 3, 2, 1, 0 }, { 3, 2, 0, 1 }, { 1, 3, 2, 0 }, { 2, 1, 3, 0 }, { 3, 1, 2, 0 }, { 2, 3, 1, 0 },
    { 1, 0, 3, 2 }, { 1, 2, 3, 0 }, { 3, 1, 0, 2 }, { 1, 3, 0, 2 }, { 0, 1, 2, 3 },
  };
  const LsZbJob *job = vee->search->run.job;
  uint32_t most = MIN (job->m, 2 * job->p + 2), step = 1 + most / 16;

  for (uint32_t below = 0; below < most; below += step)
    for (uint32_t slope = 0; slope < 4; slope++)
      for (guint k = 0; k < 2 * G_N_ELEMENTS (priorities); k++) {
        if (vee->ways->len > 0 && (ls_zb_search_is_over (vee->search) || vee->search->run.budget < reserve))
          return;
        Way way = { .list = { .cap = most - below, .cap_slope = slope * 0.5, .sixteenths = k & 1 ? 4 : 16 } };
        for (guint i = 0; i < LS_ZB_N_KINDS; i++)
          way.list.priority[i] = priorities[k / 2][i];
        try_way (vee, &way, LS_ZB_RULES_FEW);
      }
}

/* Fills vee->ways, best first. The first greedy way cannot stall: there is always one. */
static void
find_ways (Vee *vee)
{
  int64_t budget = vee->search->run.budget;
  const LsZbJob *job = vee->search->run.job;
  bool is_ample = job->limit >= (uint64_t) 2 * job->p * ls_zb_takes (job);

  try_greedy (vee, is_ample ? budget / 3 : budget * 7 / 8);
  try_blocks (vee, is_ample ? budget / 5 : budget * 4 / 8);
  try_windows (vee, is_ample ? 0 : budget / 8);
  try_greedy (vee, 0);
  g_array_sort (vee->ways, by_score);
}

static void
vee_init (Vee *vee, LsZbSearch *search)
{
  *vee = (Vee) {
    .search = search,
    .keys = g_malloc_n (search->run.job->p, sizeof *vee->keys),
    .ways = g_array_new (FALSE, FALSE, sizeof (Way)),
  };
}

static void
vee_clear (Vee *vee)
{
  g_free (vee->keys);
  g_array_unref (vee->ways);
}

/* Ways found with fewer micro-batches, applied to all. */
static void
search_by_sample (Vee *vee, uint32_t n_sample)
{
  LsZbSearch *search = vee->search;
  LsZbJob job = *search->run.job;
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsZbSearch sample;
  Vee few;

  job.m = n_sample;
  ls_zb_search_init (&sample, &job, search->run.budget / 2, arena);
  vee_init (&few, &sample);
  find_ways (&few);
  for (guint i = 0; i < MIN (few.ways->len, N_WAYS) && (i == 0 || !ls_zb_search_is_over (search)); i++)
    try_way (vee, &g_array_index (few.ways, Way, i), LS_ZB_RULES_ALL);
  vee_clear (&few);
  search->run.budget -= search->run.budget / 2 - MAX (sample.run.budget, 0);
}

/* Local moves, first from the best order, then from the next best ways. */
static void
polish (Vee *vee)
{
  LsZbSearch *search = vee->search;
  LsZbScore last = LS_ZB_NEVER;

  ls_zb_polish_best (search);
  for (guint i = 0, n = vee->ways->len; i < n && !ls_zb_search_is_over (search); i++) {
    Way way = g_array_index (vee->ways, Way, i);
    bool is_new = way.score.span != last.span || way.score.sum != last.sum;
    last = way.score;
    if (!is_new)
      continue;
    try_way (vee, &way, LS_ZB_RULES_FEW);
    ls_zb_polish (search);
  }
}

void
ls_zb_search_vee (LsZbSearch *search)
{
  const LsZbJob *job = search->run.job;
  Vee vee;

  vee_init (&vee, search);
  if (job->m > 4 * job->p)
    search_by_sample (&vee, 3 * job->p);
  if (vee.ways->len == 0) {
    int64_t kept = search->run.budget / 4;
    search->run.budget -= kept;
    find_ways (&vee);
    search->run.budget += kept;
  }
  polish (&vee);
  vee_clear (&vee);
}
