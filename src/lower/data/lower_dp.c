#include "lower/data/lower_dp.h"

#include "lower/layers/lower_layers.h"
#include "strategy/shard.h"

DpTurn *
dp_turns (const Lower *l, uint32_t pp_rank)
{
  DpTurn *turns = g_new (DpTurn, l->n_chunks);
  for (uint32_t c = 0; c < l->n_chunks; c++)
    turns[c] = (DpTurn) { G_MAXUINT, G_MAXUINT };
  if (l->backend->turns)
    l->backend->turns (l, pp_rank, turns);
  return turns;
}

const DpBackend dp_backend_none = { 0 };

/* --- groups ---------------------------------------------------------------------- */

DpGroup
dp_all (const Lower *l, bool is_expert)
{
  if (is_expert)
    return (DpGroup) { LS_SLOT_EDP, l->mesh.tp * l->mesh.cp * l->mesh.dp / (l->mesh.etp * l->mesh.ep) };
  return (DpGroup) { LS_SLOT_DP, l->mesh.dp * l->mesh.cp };
}

DpGroup
dp_shard (const Lower *l, bool is_expert)
{
  if (is_expert || l->s->data.zero_group == 0)
    return dp_all (l, is_expert);
  return (DpGroup) { LS_SLOT_SHARD, l->s->data.zero_group };
}

DpGroup
dp_replica (const Lower *l, bool is_expert)
{
  uint32_t n = dp_all (l, is_expert).n / dp_shard (l, is_expert).n;
  return (DpGroup) { LS_SLOT_REPLICA, n };
}

/* --- sizes ------------------------------------------------------------------------- */

uint64_t
dp_grad_bytes (const Lower *l, uint64_t numel)
{
  return numel * ls_dtype_bytes (l->shard.grad_dtype);
}

/* Megatron-Core copies masters of mxfp8 weights into a 16-bit buffer, gathers that, and casts what comes
 * (core/optimizer/distrib_optimizer.py, _copy_main_params_to_param_buffer). */
bool
dp_gathers_fp8 (const Lower *l)
{
  return l->s->fp8.params && l->s->fp8.recipe != LS_FP8_MXFP8;
}

/* Recipes of scaled formats gather their weights in 16 bits, unless fp8 is all there is. */
uint64_t
dp_param_bytes (const Lower *l, uint64_t numel)
{
  return numel * (dp_gathers_fp8 (l) ? 1 : ls_dtype_bytes (ls_dtype_between (l->shard.dtype)));
}

uint64_t
dp_frozen_bytes (const Lower *l, uint64_t n, uint64_t n_nf4, uint64_t n_scaled)
{
  uint64_t whole = ls_dtype_bytes (ls_dtype_between (l->shard.dtype));
  bool is_fp8 = l->shard.lora.is_fp8;
  uint64_t scaled = is_fp8 ? n_scaled : ls_dtype_array_bytes (l->shard.dtype, 2 * n_scaled);
  return (n - n_nf4 - (is_fp8 ? n_scaled : 0)) * whole + ls_nf4_bytes (n_nf4) + scaled;
}

uint64_t
dp_params_of_rank (const Lower *l, uint32_t pp_rank, bool is_expert)
{
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    n += is_expert ? chunk->n_expert : chunk->n_params - chunk->n_expert;
  }
  return n;
}

uint64_t
dp_part (uint64_t n, uint32_t parts)
{
  return (n + parts - 1) / parts;
}

/* Where XLA's loop reduces gradients once only, they are kept whole until then. */
uint32_t
dp_n_parts (const Lower *l, bool is_expert, DpCut what)
{
  const LsDpTraits *kind = ls_dp_traits (l->s->dp_kind);
  bool is_whole = kind->cuts_operators && what == DP_CUT_GRADS && l->s->data.grad_sync != LS_GRAD_SYNC_EACH
      && l->n_micro_batches > 1;
  bool is_cut = kind->is_fsdp || l->s->zero_stage >= what;
  return is_cut && !is_whole ? dp_shard (l, is_expert).n : 1;
}

uint64_t
dp_n_kept (const Lower *l, uint32_t pp_rank, DpCut what)
{
  uint64_t n = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++)
    n += dp_part (dp_params_of_rank (l, pp_rank, is_expert), dp_n_parts (l, is_expert, what));
  return n;
}

uint16_t
dp_last_compute (Build *b)
{
  for (guint i = b->ops->len; i-- > 0;) {
    const LsOp *op = &g_array_index (b->ops, LsOp, i);
    if (op->stream == LS_STREAM_COMPUTE && !ls_op_is_of_host (op->kind))
      return (uint16_t) i;
  }
  build_barrier (b);
  return (uint16_t) (b->ops->len - 1);
}

void
dp_around_again (Build *b, guint o, bool is_before)
{
  const DpBackend *backend = b->pass ? b->pass->backend : &dp_backend_none;
  void (*hook) (Build * b, DpPass * p, guint o) = is_before ? backend->before_again : backend->after_again;
  dp_hook (hook, b, b->pass, o);
}

uint16_t
dp_buffer (Build *b, const Chunk *c, guint n)
{
  b->is_too_long |= n + buffer_base (c) > UINT16_MAX;
  return (uint16_t) (UINT16_MAX - n);
}

void
dp_pass_gradients (Build *b, const char *name, uint32_t n_passes, uint64_t numel)
{
  LsKernel k = ls_kernel_stream (name, n_passes > 1 ? LS_KERNEL_ELEMENTWISE : LS_KERNEL_REDUCTION,
                                 b->l->shard.grad_dtype, 1, numel,
                                 n_passes * (double) dp_grad_bytes (b->l, numel), 0);
  build_kernel (b, &k, LS_TAG_SYNC);
}

uint16_t *
dp_no_ops (guint n)
{
  uint16_t *ops = g_new (uint16_t, n);
  for (guint i = 0; i < n; i++)
    ops[i] = NO_OP;
  return ops;
}

static void
add_to_bucket (Bucket *to, uint64_t numel, guint o)
{
  if (!to->tensors)
    to->tensors = g_array_new (FALSE, FALSE, sizeof numel);
  g_array_append_val (to->tensors, numel);
  to->numel += numel;
  to->last_operator = o;
}

static void
close_bucket (GArray *buckets, Bucket *open)
{
  g_array_append_val (buckets, *open);
  *open = (Bucket) { .is_expert = open->is_expert };
}

static void
clear_bucket (gpointer bucket)
{
  g_array_unref (((Bucket *) bucket)->tensors);
}

/* Elements of each of an operator's parameters, in definition order. Megatron's are as they are joined. */
static void
parameters_of (const Lower *l, const LsOperator *o, GArray *numel)
{
  g_array_set_size (numel, 0);
  if (o->params.is_frozen)
    return;
  if (ls_dp_traits (l->s->dp_kind)->is_megatron) {
    g_array_append_vals (numel, o->params.numel, o->params.n);
    return;
  }
  g_autoptr (GArray) tensors = g_array_new (FALSE, FALSE, sizeof (LsTensor));
  ls_operator_tensors (o, true, tensors);
  for (guint i = 0; i < tensors->len; i++) {
    uint64_t n = ls_tensor_numel (&g_array_index (tensors, LsTensor, i));
    g_array_append_val (numel, n);
  }
}

GArray *
buckets_new (const Lower *l, const Chunk *c, uint32_t pp_rank, BucketLimit limit)
{
  GArray *buckets = g_array_new (FALSE, FALSE, sizeof (Bucket));
  g_autoptr (GArray) numel = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  g_array_set_clear_func (buckets, clear_bucket);
  Bucket open[2] = { { .is_expert = false }, { .is_expert = true } };
  for (guint i = c->operators->len; i-- > 0;) {
    const LsOperator *o = operator_at (c, i);
    Bucket *to = &open[o->params.is_expert];
    parameters_of (l, o, numel);
    for (guint p = numel->len; p-- > 0;) {
      add_to_bucket (to, g_array_index (numel, uint64_t, p), i);
      if (to->numel >= limit (l, pp_rank, buckets->len))
        close_bucket (buckets, to);
    }
  }
  /* What is left over: ready in the order of the last operator. */
  Bucket *later = open[0].last_operator <= open[1].last_operator ? &open[0] : &open[1];
  Bucket *sooner = later == &open[0] ? &open[1] : &open[0];
  if (sooner->numel > 0)
    close_bucket (buckets, sooner);
  if (later->numel > 0)
    close_bucket (buckets, later);
  return buckets;
}

/* Number of the first bucket from `from` on that is not ready once operator o is done. */
static guint
buckets_ready (const GArray *buckets, guint from, guint o)
{
  while (from < buckets->len && g_array_index (buckets, Bucket, from).last_operator >= o)
    from++;
  return from;
}

/* --- of a pass that reduces ------------------------------------------------------- */

typedef struct {
  GArray *buckets;
  guint next;
} Launches;

/* DistributedDataParallel divides each gradient where it becomes ready, and gives each back. */
static bool
goes_by_tensor (const Lower *l)
{
  return l->s->dp_kind == LS_DP_DDP && l->s->data.overlap;
}

static void
reduce_over (Build *b, DpGroup group, int coll, uint64_t numel, uint16_t unit, const char *name)
{
  const Lower *l = b->l;
  if (group.n == 1)
    return;
  uint16_t op = build_coll (b, LS_STREAM_DP, group.slot, coll, dp_grad_bytes (l, numel), l->shard.grad_dtype,
                            LS_TAG_SYNC, name);
  g_array_index (b->ops, LsOp, op).unit = unit;
  if (l->s->dp_kind == LS_DP_PS)
    g_array_index (b->ops, LsOp, op).algorithm
        = l->s->data.ps_servers == LS_PS_ONE ? LS_ALGORITHM_NAIVE : LS_ALGORITHM_SERVER;
  if (goes_by_tensor (l) && l->s->data.bucket_wait)
    build_join (b, op);
}

static void
pass_each (Build *b, const char *name, const Bucket *bucket)
{
  for (guint i = 0; i < bucket->tensors->len; i++)
    dp_pass_gradients (b, name, 2, g_array_index (bucket->tensors, uint64_t, i));
}

void
bucket_reduce (Build *b, const Bucket *bucket, uint16_t unit, bool scatters)
{
  const Lower *l = b->l;
  /* grad_data.norm (p=2), which the host reads: Megatron-Core, core/distributed/param_and_grad_buffer.py,
   * check_for_nan_in_grad. */
  if (l->s->data.grad_check && l->s->dp_kind == LS_DP_MEGATRON) {
    dp_pass_gradients (b, "grad-check", 1, bucket->numel);
    build_compute_sync (b, "host reads the check of a bucket");
  }
  if (goes_by_tensor (l))
    pass_each (b, "grad-average", bucket);
  else
    dp_pass_gradients (b, "grad-average", 2, bucket->numel);
  if (!scatters) {
    reduce_over (b, dp_all (l, bucket->is_expert), LS_COLL_ALL_REDUCE, bucket->numel, unit,
                 "grad all-reduce");
    return;
  }
  DpGroup shard = dp_shard (l, bucket->is_expert);
  reduce_over (b, shard, LS_COLL_REDUCE_SCATTER, bucket->numel, unit, "grad reduce-scatter");
  reduce_over (b, dp_replica (l, bucket->is_expert), LS_COLL_ALL_REDUCE, dp_part (bucket->numel, shard.n),
               unit, "shard all-reduce");
}

void
buckets_begin (Build *b, DpPass *p, BucketLimit limit)
{
  Launches *launches = g_new0 (Launches, 1);
  launches->buckets = buckets_new (b->l, p->c, p->pp_rank, limit);
  p->state = launches;
}

void
buckets_after (Build *b, DpPass *p, guint o, bool scatters)
{
  Launches *launches = p->state;
  if (!launches)
    return;
  for (guint end = buckets_ready (launches->buckets, launches->next, o); launches->next < end;
       launches->next++)
    bucket_reduce (b, &g_array_index (launches->buckets, Bucket, launches->next), (uint16_t) launches->next,
                   scatters);
}

static void
buckets_after_sum (Build *b, DpPass *p, guint o)
{
  buckets_after (b, p, o, false);
}

void
buckets_end (Build *b, DpPass *p)
{
  Launches *launches = p->state;
  if (!launches)
    return;
  g_array_unref (launches->buckets);
  g_clear_pointer (&p->state, g_free);
}

void
buckets_reduce_rest (Build *b, uint32_t pp_rank, BucketLimit limit, bool scatters)
{
  Lower *l = b->l;
  if (l->s->data.overlap) {
    build_join_stream (b, LS_STREAM_DP);
    return;
  }
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    g_autoptr (GArray) buckets = buckets_new (l, chunk_at (l, pp_rank, c), pp_rank, limit);
    for (guint i = 0; i < buckets->len; i++) {
      bucket_reduce (b, &g_array_index (buckets, Bucket, i), (uint16_t) i, scatters);
      build_join (b, (uint16_t) (b->ops->len - 1));
    }
  }
}

/* Torch DistributedDataParallel (torch/nn/parallel/distributed.py 2.7, reducer.cpp): every rank
 * has everything. After its first iteration the buckets follow the order in which gradients
 * become ready; a bucket takes a parameter, then closes if it has reached its limit: 1 MiB
 * for the first, 25 MiB for the others, or the user's cap for all. Buckets are launched
 * strictly in order; gradients are divided by the number of ranks before, each in a kernel of
 * its own (mark_variable_ready_dense). At the end of a backward that reduces the compute stream
 * waits for all buckets.
 *
 * Memory. Buckets are there beside the gradients for as long as the job runs, and what was
 * reduced is copied back (reducer.cpp, initialize_buckets and copy_bucket_to_grad); with
 * bucket_view gradients are views of them.
 *
 * With bucket_wait the compute stream waits for each reduction where it is launched, as the hook's
 * Work::getFuture() of the backend nccl2 has it (PyTorch 2.15's default; TORCH_DIST_USE_NCCL2=0 takes
 * the former one, which waits at the end). Seen in captures of transformers' Trainer.
 *
 * Only the last micro-batch reduces (no_sync), or each does (grad_sync each). Where nothing
 * overlaps there is one bucket, reduced at the end of the step: Megatron-LM's DDP of 2021; or
 * at the end of each backward.
 *
 * Not here: find_unused_parameters and static_graph, which order buckets otherwise. */

#define FIRST_BYTES (1u << 20)
#define CAP_BYTES   (25u << 20)
/* Of parameter servers, below. */
#define PARTITION_BYTES 4096000u

static uint64_t
limit_of (const Lower *l, uint32_t pp_rank, guint i)
{
  if (!l->s->data.overlap)
    return UINT64_MAX;
  uint64_t bytes = l->s->data.bucket_bytes ? l->s->data.bucket_bytes
      : l->s->dp_kind == LS_DP_PS          ? PARTITION_BYTES
      : i == 0                             ? FIRST_BYTES
                                           : CAP_BYTES;
  return dp_part (bytes, ls_dtype_bytes (l->shard.grad_dtype));
}

static bool
is_each (const Lower *l)
{
  return l->s->data.grad_sync == LS_GRAD_SYNC_EACH;
}

static bool
reduces (const Lower *l, const DpPass *p)
{
  return dp_has_weights (p) && (is_each (l) || (p->is_last && l->s->data.overlap));
}

static char *
variant (const Lower *l, const DpPass *p)
{
  return reduces (l, p) ? g_strdup (" reduces") : NULL;
}

static void
begin (Build *b, DpPass *p)
{
  if (reduces (b->l, p))
    buckets_begin (b, p, limit_of);
}

static void
end (Build *b, DpPass *p)
{
  if (reduces (b->l, p))
    build_join_stream (b, LS_STREAM_DP);
  const Launches *launches = p->state;
  for (guint i = 0; launches && ls_strategy_has_buckets (b->l->s) && i < launches->buckets->len; i++)
    pass_each (b, "grad-from-bucket", &g_array_index (launches->buckets, Bucket, i));
  buckets_end (b, p);
}

static void
static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM])
{
  uint64_t n = dp_params_of_rank (l, pp_rank, false) + dp_params_of_rank (l, pp_rank, true);
  if (ls_strategy_has_buckets (l->s))
    bytes[LS_MEM_GRADIENTS] += dp_grad_bytes (l, n);
}

static void
reduce_rest (Build *b, uint32_t pp_rank)
{
  if (!is_each (b->l))
    buckets_reduce_rest (b, pp_rank, limit_of, false);
}

const DpBackend dp_backend_ddp = {
  .variant = variant,
  .begin = begin,
  .after = buckets_after_sum,
  .end = end,
  .reduce_rest = reduce_rest,
  .static_memory = static_memory,
};

/* --- parameter servers --------------------------------------------------------------------------- */

/* Parameter servers, as BytePS runs them (Jiang et al., OSDI 2020): one server next to
 * the ranks of each host has a part of all gradients. A rank pushes gradients to the servers,
 * which sum them, and pulls the sums; each rank then updates its own parameters. That is an
 * all-reduce by network/coll_star.c for each bucket. With --ps-servers one there is one server
 * for all, beside the first rank of each group that reduces together: all push to it and pull from
 * it (network/coll_star.c), as in figure 1 of Li et al., OSDI 2014, with a single server.
 *
 * A bucket closes at 4,096,000 bytes (BYTEPS_PARTITION_BYTES), or at the user's limit; they are
 * launched in the order in which they become ready, beside the backward of the last
 * micro-batch.
 *
 * Deviations. A tensor larger than a bucket is not cut into several. BytePS pulls in order of
 * priority, those of the first layers first, and lets the next forward begin before the last
 * has come; here the optimizer waits for all. */

const DpBackend dp_backend_ps = {
  .variant = variant,
  .begin = begin,
  .after = buckets_after_sum,
  .end = buckets_end,
  .reduce_rest = reduce_rest,
};
