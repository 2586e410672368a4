/* DeepSpeed's ZeRO stages 0, 1 and 2 (runtime/zero/stage_1_and_2.py; stage 0:
 * runtime/engine.py, buffered_allreduce_fallback).
 *
 * Stage 0. Behind the last backward, gradients are flattened into buckets that take a tensor,
 * then close if they have more than reduce_bucket elements; all-reduced and copied back, one
 * after the other.
 *
 * Stages 1 and 2. As a gradient becomes ready it is copied to a contiguous bucket (ipg). A bucket is
 * reduced BEFORE the gradient that it would overflow with; a larger gradient is reduced alone
 * and in place. With overlap_comm (dp_overlap) there are two buckets: when one is queued, the
 * compute stream first waits for what was queued before, so at most one reduction is beside
 * compute; at the end of the backward the rest is flushed and the host waits for the device.
 * Without it, compute waits for each. Stage 1 reduces at the boundary of the step only, stage 2
 * in each micro-step. A pipeline has no overlap: all is reduced behind its last backward
 * (engine.py: "Pipeline parallelism does not support overlapped communication").
 *
 *     compute  B B B | copy B B B | wait, copy B B ...
 *     dp               [ bucket 0 ]  [ bucket 1 ]
 *
 * Stage 1 of bf16 weights with fp32 gradients (runtime/bf16_optimizer.py; BLOOM's). Gradients are one
 * flat fp32 tensor, to which each micro-batch adds (model/operators_build.c). Behind the last one all
 * of it is averaged, all-reduced, although a rank needs its part only, and copied back; nothing overlaps
 * (engine.py: _bf16_reduce_grads (), buffered_allreduce_fallback (), allreduce_and_copy ()).
 *
 * Each rank updates its part, and parameters are gathered in chunks of about
 * allgather_bucket elements, as many as fit whole.
 *
 * N@G. Parts are of groups of G ranks; behind the reduce-scatter in a group the replicas
 * all-reduce a part (DeepSpeed has this for stage 3 only, as MiCS; InternEvo for stage 1).
 *
 * Memory. Stage 1 keeps whole gradients throughout; stage 2 its part, and while a backward
 * runs both have the one or two buckets of reduce_bucket elements, however small the model.
 *
 * Wire bytes of a rank, of Psi bytes and n ranks: reduce-scatter (n - 1)/n Psi, gather as much:
 * k = 2, for stage 2 in each micro-step one more.
 *
 * Deviations. Gradients are reduce-scattered, as the ZeRO paper says (Rajbhandari et al. 2020,
 * section 7); DeepSpeed's default (use_multi_rank_bucket_allreduce) all-reduces a bucket, which
 * is twice the bytes. The average is a kernel of the compute stream. With 16-bit gradients and
 * stage 2 the copy to the bucket is the operator's accumulation (three passes for two). Copies
 * of the part that a rank keeps, a share 1/n of a bucket, are left out. Newer versions gather
 * in one piece. */
#include "lower/data/lower_deepspeed.h"

typedef struct {
  uint64_t elements[2]; /* in the open bucket: of others, of experts */
  guint n_reduced;
  bool overlaps, is_last;
} Ipg;

enum { BUFFER_IPG };

/* Stage 1 with 16-bit weights and fp32 gradients is another optimizer's. */
static bool
has_flat_gradients (const Lower *l)
{
  return l->shard.grad_is_cast && l->s->zero_stage == 1;
}

static bool
overlaps (const Lower *l)
{
  return l->s->data.overlap && l->mesh.pp == 1 && !has_flat_gradients (l);
}

/* A pass in which gradients are reduced; else all are at the end of the step. */
static bool
reduces (const Lower *l, const DpPass *p)
{
  bool completes = p->type == LS_ACTION_B || p->type == LS_ACTION_W;
  if (l->s->zero_stage == 1)
    return completes && p->is_last && overlaps (l);
  return completes && l->s->zero_stage == 2;
}

static char *
variant (const Lower *l, const DpPass *p)
{
  return reduces (l, p) ? g_strconcat (" reduces", p->is_last ? " last" : "", offload_variant (l, p), NULL)
                        : NULL;
}

/* --- buckets --------------------------------------------------------------------- */

static void
flush (Build *b, Ipg *ipg, bool is_expert, const DpPass *p)
{
  uint64_t numel = ipg->elements[is_expert];
  ipg->elements[is_expert] = 0;
  if (numel == 0)
    return;
  if (ipg->overlaps && ipg->n_reduced > 0)
    deepspeed_wait (b, LS_STREAM_DP);
  uint16_t reduced = deepspeed_reduce (b, numel, is_expert, ipg->is_last, (uint16_t) ipg->n_reduced++);
  offload_gradients (b, p, dp_part (numel, dp_shard (b->l, is_expert).n), reduced);
  if (!ipg->overlaps && reduced != NO_OP)
    build_join (b, reduced);
}

static void
take (Build *b, Ipg *ipg, uint64_t numel, bool is_expert, const DpPass *p)
{
  const Lower *l = b->l;
  uint64_t limit = l->s->data.reduce_bucket;
  if (ipg->elements[is_expert] + numel > limit)
    flush (b, ipg, is_expert, p);
  bool is_copied_already = l->s->zero_stage == 2 && ls_dtype_bytes (l->shard.grad_dtype) < 4;
  if (numel <= limit && !is_copied_already)
    deepspeed_copy_gradients (b, "grad-to-bucket", numel);
  ipg->elements[is_expert] += numel;
}

static void
take_operator (Build *b, Ipg *ipg, const LsOperator *o, const DpPass *p)
{
  for (uint32_t i = o->params.is_frozen ? 0 : o->params.n; i-- > 0;)
    take (b, ipg, o->params.numel[i], o->params.is_expert, p);
}

static uint64_t
ipg_bytes (const Lower *l)
{
  return dp_grad_bytes (l, l->s->data.reduce_bucket) * (overlaps (l) ? 2 : 1);
}

static void
ipg_buffer (Build *b, const DpPass *p, bool is_free)
{
  build_buffer (b, dp_last_compute (b), dp_buffer (b, p->c, BUFFER_IPG), LS_MEM_UNSHARDED, ipg_bytes (b->l),
                is_free);
}

/* --- hooks ----------------------------------------------------------------------- */

static void
begin (Build *b, DpPass *p)
{
  if (!reduces (b->l, p))
    return;
  Ipg *ipg = g_new0 (Ipg, 1);
  ipg->overlaps = overlaps (b->l);
  ipg->is_last = p->is_last;
  p->state = ipg;
  ipg_buffer (b, p, false);
}

static void
after (Build *b, DpPass *p, guint o)
{
  if (p->state)
    take_operator (b, p->state, operator_at (p->c, o), p);
}

static void
end (Build *b, DpPass *p)
{
  Ipg *ipg = p->state;
  if (!ipg)
    return;
  flush (b, ipg, false, p);
  flush (b, ipg, true, p);
  if (ipg->overlaps)
    deepspeed_wait (b, LS_STREAM_DP);
  if (b->next_deps->len > 0)
    build_barrier (b);
  if (ipg->overlaps)
    deepspeed_sync_host (b);
  ipg_buffer (b, p, true);
  g_clear_pointer (&p->state, g_free);
}

/* Stage 0: tensors in the order of the backward. */
static void
all_reduce (Build *b, const Chunk *c, bool is_expert)
{
  const Lower *l = b->l;
  uint64_t numel = 0;
  uint16_t unit = 0;
  if (dp_all (l, is_expert).n == 1)
    return;
  for (guint i = c->operators->len; i-- > 0;) {
    const LsOperator *o = operator_at (c, i);
    for (uint32_t k = 0; k < o->params.n && o->params.is_expert == is_expert && !o->params.is_frozen; k++) {
      numel += o->params.numel[k];
      if (numel <= l->s->data.reduce_bucket)
        continue;
      deepspeed_copy_gradients (b, "grad-flatten", numel);
      build_join (b, deepspeed_reduce_whole (b, numel, is_expert, unit++));
      deepspeed_copy_gradients (b, "grad-unflatten", numel);
      numel = 0;
    }
  }
  if (numel == 0)
    return;
  deepspeed_copy_gradients (b, "grad-flatten", numel);
  build_join (b, deepspeed_reduce_whole (b, numel, is_expert, unit));
  deepspeed_copy_gradients (b, "grad-unflatten", numel);
}

static void
all_reduce_flat (Build *b, uint32_t pp_rank)
{
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    uint64_t numel = dp_params_of_rank (b->l, pp_rank, is_expert);
    if (numel == 0 || dp_all (b->l, is_expert).n == 1)
      continue;
    build_join (b, deepspeed_reduce_whole (b, numel, is_expert, 0));
    deepspeed_copy_gradients (b, "grad-copy-back", numel);
  }
}

static void
reduce_chunk (Build *b, uint32_t pp_rank, const Chunk *c)
{
  DpPass p = { .c = c, .pp_rank = pp_rank, .type = LS_ACTION_B, .is_first = true, .is_last = true };
  Ipg ipg = { .is_last = true };
  for (guint i = c->operators->len; i-- > 0;)
    take_operator (b, &ipg, operator_at (c, i), &p);
  flush (b, &ipg, false, &p);
  flush (b, &ipg, true, &p);
}

static void
reduce_rest (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  if (has_flat_gradients (l)) {
    all_reduce_flat (b, pp_rank);
    return;
  }
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    if (l->s->zero_stage == 0)
      for (int is_expert = 0; is_expert < 2; is_expert++)
        all_reduce (b, chunk, is_expert);
    else if (l->s->zero_stage == 1 && !overlaps (l))
      reduce_chunk (b, pp_rank, chunk);
  }
}

/* Chunks are cut from each rank's part alike. */
static void
gather_in_chunks (Build *b, uint64_t numel, bool is_expert)
{
  uint32_t n = dp_shard (b->l, is_expert).n;
  uint64_t n_chunks = MAX (1, numel / b->l->s->data.allgather_bucket), part = dp_part (numel, n),
           size = part / n_chunks;
  uint16_t last = NO_OP;
  for (uint64_t i = 0; i < n_chunks && !b->is_too_long; i++)
    last = deepspeed_gather (b, n * (i + 1 < n_chunks ? size : part - size * i), is_expert, NO_OP);
  if (last != NO_OP) /* the others are before it on their stream */
    build_join (b, last);
}

static void
step_end (Build *b, uint32_t pp_rank)
{
  if (b->l->s->zero_stage == 0)
    return;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    uint64_t numel = dp_params_of_rank (b->l, pp_rank, is_expert);
    if (numel > 0)
      gather_in_chunks (b, numel, is_expert);
  }
}

static void
cuts (const Lower *l, bool is_expert, uint32_t *ret_params, uint32_t *ret_grads, uint32_t *ret_optimizer)
{
  uint32_t n = dp_shard (l, is_expert).n;
  *ret_params = 1;
  *ret_grads = l->s->zero_stage >= 2 ? n : 1;
  *ret_optimizer = l->s->zero_stage >= 1 ? n : 1;
}

static void
static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM])
{
  offload_static_memory (l, bytes);
}

const DpBackend dp_backend_deepspeed = {
  .name = "deepspeed",
  .copies_gradients = true,
  .variant = variant,
  .begin = begin,
  .after = after,
  .end = end,
  .reduce_rest = reduce_rest,
  .step_end = step_end,
  .cuts = cuts,
  .static_memory = static_memory,
};
