/* parallel/lower_bucket.c — gradient buckets of data parallelism.
 *
 * torch DDP (torch/nn/parallel/distributed.py 2.7, reducer.cpp): after its first
 * iteration the buckets follow the order in which gradients become ready; a bucket
 * takes a parameter, then closes if it has reached its limit: 1 MiB for the first,
 * 25 MiB for the others, or the user's cap for all.
 *
 * Megatron-LM (core/distributed/param_and_grad_buffer.py): parameters in reverse
 * order; a bucket closes at max (40e6, 1e6 dp) parameters; one bucket where nothing
 * overlaps, and on every pipeline stage but the first.
 *
 * Both: only the last micro-batch reduces; launched strictly in bucket order; the
 * gradients are divided by the number of ranks before, in a kernel of their own. */
#include "parallel/lower_state.h"

#define DDP_FIRST_BYTES (1u << 20)
#define DDP_CAP_BYTES (25u << 20)
#define MEGATRON_MIN_PARAMS 40000000u
#define MEGATRON_PARAMS_PER_RANK 1000000u

bool
reduces_in_backward (const Lower *l)
{
  return l->mesh.dp > 1 && l->s->dp_overlap;
}

/* Parameters, or bytes, at which bucket i closes. */
static uint64_t
limit_of (const Lower *l, uint32_t pp_rank, guint i)
{
  if (!reduces_in_backward (l))
    return UINT64_MAX;
  if (l->s->dp_kind == LS_DP_DDP) {
    uint64_t bytes = l->s->bucket_bytes ? l->s->bucket_bytes : i == 0 ? DDP_FIRST_BYTES : DDP_CAP_BYTES;
    return (bytes + ls_dtype_bytes (l->shard.grad_dtype) - 1) / ls_dtype_bytes (l->shard.grad_dtype);
  }
  if (pp_rank > 0)
    return UINT64_MAX;
  return l->s->bucket_params ? l->s->bucket_params
                             : MAX (MEGATRON_MIN_PARAMS, (uint64_t) MEGATRON_PARAMS_PER_RANK * l->mesh.dp);
}

GArray *
buckets_of_chunk (const Lower *l, const Chunk *c, uint32_t pp_rank)
{
  GArray *buckets = g_array_new (FALSE, FALSE, sizeof (Bucket));
  Bucket open = { 0 };
  for (guint i = c->operators->len; i-- > 0;) {
    const LsOperator *o = &g_array_index (c->operators, LsOperator, i);
    for (uint32_t p = o->n_params; p-- > 0;) {
      open.numel += o->param_numel[p];
      open.last_operator = i;
      if (open.numel < limit_of (l, pp_rank, buckets->len))
        continue;
      g_array_append_val (buckets, open);
      open = (Bucket) { 0 };
    }
  }
  if (open.numel > 0)
    g_array_append_val (buckets, open);
  return buckets;
}

void
build_bucket (Build *b, const Bucket *bucket, uint16_t unit)
{
  const Lower *l = b->l;
  bool is_sharded = l->s->zero_stage > 0;
  double bytes = (double) bucket->numel * ls_dtype_bytes (l->shard.grad_dtype);
  LsKernel average = ls_kernel_stream ("grad-average", LS_KERNEL_ELEMENTWISE, l->shard.grad_dtype, 1, bucket->numel,
                                       2 * bytes, 0);
  build_kernel (b, &average, LS_TAG_W);
  uint16_t op = build_coll (b, LS_STREAM_DP, LS_SLOT_DP, is_sharded ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE,
                            bucket->numel * ls_dtype_bytes (l->shard.grad_dtype), l->shard.grad_dtype, LS_TAG_SYNC,
                            is_sharded ? "grad reduce-scatter" : "grad all-reduce");
  g_array_index (b->ops, LsOp, op).unit = unit;
}
