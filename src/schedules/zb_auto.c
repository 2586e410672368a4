/* The automatic zero-bubble schedules: from the contract's shape to a search and back.
 *
 *   zb-auto          one chunk per rank (schedules/zb_line.c); zb-1p and zb-2p are zb-auto
 *                    with memory for p and 2 p micro-batches
 *   zbv-auto         two chunks in a V (schedules/zb_vee.c)
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

#include "schedules/sched_impl.h"
#include "schedules/zb.h"

/* Timed actions of a search: so many runs of all actions, within bounds. About 10 ns each
 * in an optimised build (8 stages, 64 micro-batches: about 0.1 s a schedule). The least is
 * what tests/unit/schedules/test_zb.c needs. */
#define LEAST_EFFORT (10 * 1000 * 1000)
#define MOST_EFFORT  (100 * 1000 * 1000)
#define RUNS         200

static double
limit_given (const LsSchedShape *shape)
{
  return shape->memory_limit;
}

static double
at_most (const LsSchedShape *shape, uint32_t limit)
{
  return shape->memory_limit > 0 ? MIN (shape->memory_limit, limit) : limit;
}

static double
limit_1p (const LsSchedShape *shape)
{
  return at_most (shape, shape->pp);
}

static double
limit_2p (const LsSchedShape *shape)
{
  return at_most (shape, 2 * shape->pp);
}

static double
limit_half (const LsSchedShape *shape)
{
  return at_most (shape, (shape->pp + 2) / 2);
}

static double
limit_min (const LsSchedShape *shape)
{
  return at_most (shape, (shape->pp + 4) / 3);
}

static const char *
refuse_limit (const LsSchedShape *shape)
{
  if (shape->memory_limit != 0 && !(shape->memory_limit >= 1))
    return "the memory limit must be at least 1 micro-batch";
  return NULL;
}

static const char *
refuse_line (const LsSchedShape *shape)
{
  const char *reason = ls_sched_refuse_chunks (shape);
  return reason ? reason : refuse_limit (shape);
}

static const char *
refuse_vee (const LsSchedShape *shape)
{
  const char *reason = ls_sched_refuse_other_than_two (shape);
  return reason ? reason : refuse_limit (shape);
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
schedule (const LsSchedShape *shape, uint32_t n_chunks, double limit, GArray **ranks)
{
  uint32_t n_stages = shape->pp * n_chunks;
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
    .limit = units (limit, n_chunks),
    .chunk = CHUNK_UNITS,
    .kept = kept,
  };
  size_t length = ls_zb_length (&job);
  LsZbSearch search;

  ls_zb_search_init (&search, &job, CLAMP (RUNS * (int64_t) (job.p * length), LEAST_EFFORT, MOST_EFFORT));
  if (n_chunks == 1)
    ls_zb_search_line (&search);
  else
    ls_zb_search_vee (&search);
  g_autofree uint8_t *order = g_malloc (job.p * length);
  LsZbScore score = ls_zb_fill (&search.run, search.best_string, search.best_rules, order);
  g_assert (score.span < INT64_MAX && score.span == search.best.span);
  for (uint32_t r = 0; r < job.p; r++)
    append_order (&job, order + r * length, ranks[r]);
  ls_zb_search_clear (&search);
}

#define DEFINE_SCHED(ident, title, place, refuse, chunks_of, n, limit_of, less)                              \
  static void ident##_orders (const LsSchedShape *shape, GArray **ranks)                                     \
  {                                                                                                          \
    schedule (shape, n, limit_of (shape), ranks);                                                            \
  }                                                                                                          \
  const LsSched ls_sched_##ident = {                                                                         \
    .name = title,                                                                                           \
    .placement = place,                                                                                      \
    .is_split = true,                                                                                        \
    .bounded = less,                                                                                         \
    .refusal = refuse,                                                                                       \
    .n_chunks = chunks_of,                                                                                   \
    .orders = ident##_orders,                                                                                \
  };

DEFINE_SCHED (zb_auto, "zb-auto", LS_PLACE_LOOP, refuse_line, NULL, 1, limit_given, "zb-1p or zb-2p")
DEFINE_SCHED (zb_1p, "zb-1p", LS_PLACE_LOOP, refuse_line, NULL, 1, limit_1p, NULL)
DEFINE_SCHED (zb_2p, "zb-2p", LS_PLACE_LOOP, refuse_line, NULL, 1, limit_2p, NULL)
DEFINE_SCHED (zbv_auto, "zbv-auto", LS_PLACE_WAVE, refuse_vee, ls_sched_two_chunks, 2, limit_given,
              "zbv, v-half or v-min")
DEFINE_SCHED (v_half, "v-half", LS_PLACE_WAVE, refuse_vee, ls_sched_two_chunks, 2, limit_half, NULL)
DEFINE_SCHED (v_min, "v-min", LS_PLACE_WAVE, refuse_vee, ls_sched_two_chunks, 2, limit_min, NULL)
