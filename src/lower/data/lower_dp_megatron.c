/* Megatron-LM's data parallelism (core/distributed/param_and_grad_buffer.py): parameters in
 * reverse order; a bucket closes at max (40e6, 1e6 dp) parameters; one bucket where nothing
 * overlaps, on every pipeline stage but the first, and of every chunk but the first (there the
 * pipeline gives enough to hide behind). Only the last micro-batch reduces, in bucket order.
 *
 * Its distributed optimizer (ZeRO-1): gradients are reduce-scattered, each rank updates its
 * part, parameters are gathered: after the optimizer; or (overlap_param_gather) in the first
 * forward of each chunk, one bucket ahead. A module that needs bucket b
 *
 *     gathers b, if nobody has yet;   waits for b;   gathers the next one
 *
 * so at most one gather is under way besides the one that is waited for, and the first of all
 * is exposed:
 *
 *     dp       | AG 2 | AG 1 |     | AG 0 |
 *     compute         | layers of 2 | of 1       | of 0 ...
 *
 * Interleaved 1F1B instead aligns the gathers and reductions of all pipeline ranks (its defaults
 * align_param_gather, align_grad_reduce: param_sync_func, grad_sync_func of
 * core/pipeline_parallel/schedules.py). Chunks 0 and 1 are gathered as a step begins, chunk c + 1 before
 * forward number k of rank r if forward k + r is the first of chunk c; chunk c is reduced
 * behind backward k if backward k - r is the last of chunk c, and what is left over at the end.
 *
 * zero 1@G (num_distributed_optimizer_instances): the optimizer is cut among G ranks; gradients
 * are reduce-scattered among these, then the parts all-reduced over the others, both on one
 * stream, so that a bucket starts when the one before it is through. */
#include "lower/data/lower_dp.h"

#define MIN_PARAMS      40000000u
#define PARAMS_PER_RANK 1000000u

static bool
is_sharded (const Lower *l)
{
  return l->s->zero_stage > 0;
}

/* Whole tensors that are dealt out (lower_step.c) have their gradients all-reduced. */
static bool
scatters_gradients (const Lower *l)
{
  return is_sharded (l) && l->s->opt.cut != LS_OPTIMIZER_CUT_TENSORS;
}

static bool
gathers_early (const Lower *l)
{
  return scatters_gradients (l) && l->s->data.gather_overlap == 1;
}

static bool
is_aligned (const Lower *l)
{
  return l->s->data.overlap && l->s->vpp > 1 && l->sched->recipe == LS_RECIPE_MEGATRON;
}

/* --- buckets ---------------------------------------------------------------------- */

static uint64_t
whole (const Lower *l, uint32_t pp_rank, guint i)
{
  return UINT64_MAX;
}

static uint64_t
capped (const Lower *l, uint32_t pp_rank, guint i)
{
  return l->s->data.bucket_params ? l->s->data.bucket_params
                                  : MAX (MIN_PARAMS, (uint64_t) PARAMS_PER_RANK * l->mesh.dp);
}

/* The first chunk of the first stage, which has the embedding; where pipes go both ways, on the last rank
 * too. */
static BucketLimit
limit_of (const Lower *l, const Chunk *c)
{
  return l->s->data.overlap && c->has_embedding ? capped : whole;
}

/* --- gathers ------------------------------------------------------------------------ */

/* NO_OP if there is nobody to gather from. */
static uint16_t
gather (Build *b, uint64_t numel, bool is_expert, uint16_t unit)
{
  DpGroup group = dp_shard (b->l, is_expert);
  if (group.n == 1)
    return NO_OP;
  uint16_t op = build_coll (b, LS_STREAM_DP, group.slot, LS_COLL_ALL_GATHER, dp_param_bytes (b->l, numel),
                            b->l->shard.dtype, LS_TAG_SYNC, "parameter all-gather");
  g_array_index (b->ops, LsOp, op).unit = unit;
  return op;
}

/* Of a first forward. Buckets are in backward order. */
typedef struct {
  GArray *buckets;
  uint16_t *op; /* [buckets->len] NO_OP: not dispatched, or nobody to gather from */
} Gathers;

static Gathers *
gathers_new (const Build *b, const DpPass *p)
{
  Gathers *g = g_new (Gathers, 1);
  g->buckets = buckets_new (b->l, p->c, p->pp_rank, limit_of (b->l, p->c));
  g->op = dp_no_ops (g->buckets->len);
  return g;
}

static void
gathers_free (Gathers *g)
{
  g_array_unref (g->buckets);
  g_free (g->op);
  g_free (g);
}

static void
dispatch (Build *b, Gathers *g, guint i)
{
  const Bucket *bucket = &g_array_index (g->buckets, Bucket, i);
  if (g->op[i] == NO_OP)
    g->op[i] = gather (b, bucket->numel, bucket->is_expert, (uint16_t) i);
}

/* Buckets of experts follow each other, and so do the others. */
static void
dispatch_next (Build *b, Gathers *g, guint i)
{
  bool is_expert = g_array_index (g->buckets, Bucket, i).is_expert;
  while (i-- > 0)
    if (g_array_index (g->buckets, Bucket, i).is_expert == is_expert) {
      dispatch (b, g, i);
      return;
    }
}

/* --- passes --------------------------------------------------------------------------- */

static bool
reduces (const Lower *l, const DpPass *p)
{
  return dp_completes (p) && l->s->data.overlap && !is_aligned (l);
}

static bool
needs_gathers (const Lower *l, const DpPass *p)
{
  return p->type == LS_ACTION_F && p->is_first && gathers_early (l);
}

static char *
variant (const Lower *l, const DpPass *p)
{
  return reduces (l, p) ? g_strdup (" reduces") : needs_gathers (l, p) ? g_strdup (" gathers") : NULL;
}

static void
begin (Build *b, DpPass *p)
{
  if (reduces (b->l, p))
    buckets_begin (b, p, limit_of (b->l, p->c));
  else if (needs_gathers (b->l, p))
    p->state = gathers_new (b, p);
}

static void
await_gathered (Build *b, guint i)
{
  LsOp wait = ls_op_blank (LS_OP_WAIT, LS_STREAM_COMPUTE, LS_TAG_SYNC, "wait parameters");
  wait.event = event_params (b->l, i);
  wait.unit = (uint16_t) i;
  build_op (b, wait, NULL, 0);
}

/* The parameters of a bucket are needed by the first of its operators. */
static void
before (Build *b, DpPass *p, guint o)
{
  Gathers *g = needs_gathers (b->l, p) ? p->state : NULL;
  for (guint i = g ? g->buckets->len : 0; i-- > 0;) {
    if (g_array_index (g->buckets, Bucket, i).last_operator != o)
      continue;
    if (is_aligned (b->l)) {
      await_gathered (b, i);
      continue;
    }
    dispatch (b, g, i);
    build_join (b, g->op[i]);
    dispatch_next (b, g, i);
  }
}

static void
after (Build *b, DpPass *p, guint o)
{
  if (reduces (b->l, p))
    buckets_after (b, p, o, scatters_gradients (b->l));
}

static void
end (Build *b, DpPass *p)
{
  if (needs_gathers (b->l, p))
    gathers_free (p->state);
  else
    buckets_end (b, p);
}

/* --- between passes ----------------------------------------------------------------------- */

/* Numbers of the forwards, or of the backwards, among the actions of a rank. */
static GArray *
numbers_of (const GArray *actions, LsActionType type)
{
  GArray *numbers = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; i < actions->len; i++)
    if (g_array_index (actions, LsAction, i).type == type)
      g_array_append_val (numbers, i);
  return numbers;
}

/* Orders from a file may differ from Megatron-LM's: then no later than it is needed. */
static void
turns (const Lower *l, uint32_t pp_rank, DpTurn *ret_turns)
{
  if (!is_aligned (l))
    return;
  const GArray *actions = l->orders->ranks[pp_rank];
  g_autoptr (GArray) forwards = numbers_of (actions, LS_ACTION_F),
                     backwards = numbers_of (actions, LS_ACTION_B);
  g_autofree guint *first = g_new0 (guint, l->n_chunks), *last = g_new0 (guint, l->n_chunks);
  for (guint k = forwards->len; k-- > 0;)
    first[g_array_index (actions, LsAction, g_array_index (forwards, guint, k)).chunk] = k;
  for (guint k = 0; k < backwards->len; k++)
    last[g_array_index (actions, LsAction, g_array_index (backwards, guint, k)).chunk] = k;
  for (uint32_t c = 2; gathers_early (l) && c < l->n_chunks; c++) { /* 0 and 1 are there from the start */
    guint k = first[c - 1] > pp_rank ? first[c - 1] - pp_rank : 0;
    ret_turns[c].gather_before = g_array_index (forwards, guint, MIN (k, first[c]));
  }
  for (uint32_t c = 0; c < l->n_chunks; c++)
    if (last[c] + pp_rank < backwards->len)
      ret_turns[c].reduce_after = g_array_index (backwards, guint, last[c] + pp_rank);
}

static bool
gather_chunk (Build *b, uint32_t pp_rank, uint32_t chunk)
{
  Lower *l = b->l;
  if (!is_aligned (l) || !gathers_early (l))
    return false;
  const Chunk *c = chunk_at (l, pp_rank, chunk);
  g_autoptr (GArray) buckets = buckets_new (l, c, pp_rank, limit_of (l, c));
  for (guint i = buckets->len; i-- > 0;) {
    const Bucket *bucket = &g_array_index (buckets, Bucket, i);
    LsDep gathered = { LS_DEP_END, gather (b, bucket->numel, bucket->is_expert, (uint16_t) i) };
    build_event (b, LS_OP_RECORD, LS_STREAM_DP, "parameters gathered", event_params (b->l, i),
                 gathered.index != NO_OP ? &gathered : NULL);
  }
  return true;
}

static bool
early_gather (Build *b, uint32_t pp_rank, uint32_t chunk)
{
  return chunk < 2 && gather_chunk (b, pp_rank, chunk);
}

static bool
reduce_chunk (Build *b, uint32_t pp_rank, uint32_t chunk)
{
  const Chunk *c = chunk_at (b->l, pp_rank, chunk);
  g_autoptr (GArray) buckets = buckets_new (b->l, c, pp_rank, limit_of (b->l, c));
  for (guint i = 0; i < buckets->len; i++)
    bucket_reduce (b, &g_array_index (buckets, Bucket, i), (uint16_t) i, scatters_gradients (b->l));
  return true;
}

static void
reduce_rest (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  g_autofree DpTurn *all = is_aligned (l) ? dp_turns (l, pp_rank) : NULL;
  for (uint32_t c = 0; all && c < l->n_chunks; c++)
    if (all[c].reduce_after == G_MAXUINT)
      reduce_chunk (b, pp_rank, c);
  buckets_reduce_rest (b, pp_rank, whole, scatters_gradients (l));
}

static void
step_end (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  if (!is_sharded (l) || gathers_early (l))
    return;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    const uint64_t n[] = { chunk->n_params - chunk->n_expert, chunk->n_expert };
    for (int is_expert = 0; is_expert < 2; is_expert++)
      build_join (b, n[is_expert] > 0 ? gather (b, n[is_expert], is_expert, UINT16_MAX) : NO_OP);
  }
}

const DpBackend dp_backend_megatron = {
  .variant = variant,
  .begin = begin,
  .before = before,
  .after = after,
  .end = end,
  .turns = turns,
  .gather_chunk = gather_chunk,
  .reduce_chunk = reduce_chunk,
  .reduce_rest = reduce_rest,
  .early_gather = early_gather,
  .step_end = step_end,
};
