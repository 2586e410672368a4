#include "lower/data/lower_deepspeed.h"

void
deepspeed_wait (Build *b, LsStream stream)
{
  build_join_stream (b, stream);
  build_barrier (b);
}

void
deepspeed_sync_host (Build *b)
{
  static const LsStream streams[]
      = { LS_STREAM_COMPUTE, LS_STREAM_DP, LS_STREAM_GATHER, LS_STREAM_COPY, LS_STREAM_COPY_IN };
  LsDep deps[G_N_ELEMENTS (streams)];
  for (guint i = 0; i < G_N_ELEMENTS (streams); i++)
    deps[i] = (LsDep) { LS_DEP_STREAM, (uint16_t) streams[i] };
  LsOp op = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "device synchronize");
  op.host = LS_HOST_SYNC;
  build_op (b, op, deps, G_N_ELEMENTS (deps));
}

/* A whole number of elements for each of n ranks. */
static uint64_t
padded (uint64_t numel, uint32_t n)
{
  return dp_part (numel, n) * n;
}

void
deepspeed_copy_gradients (Build *b, const char *name, uint64_t numel)
{
  LsKernel copy = ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, b->l->shard.grad_dtype, 1, numel,
                                    2.0 * (double) dp_grad_bytes (b->l, numel), 0);
  build_kernel (b, &copy, LS_TAG_SYNC);
}

void
deepspeed_views (Build *b, uint64_t n)
{
  LsOp op = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "views of tensors");
  op.host = LS_HOST_VIEW;
  op.recorded = 0;
  op.repeat = (uint32_t) n;
  build_op (b, op, NULL, 0);
}

LsDtype
deepspeed_gathers (const Lower *l)
{
  return dp_gathers_fp8 (l) ? LS_DTYPE_FP8 : ls_dtype_between (l->shard.dtype);
}

uint16_t
deepspeed_copies (Build *b, LsStream stream, const char *name, LsDtype dtype, uint64_t numel, uint64_t n,
                  LsTag tag)
{
  uint64_t part = (numel + n - 1) / n;
  LsKernel copy = ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, dtype, 1, part,
                                    2.0 * (double) (part * ls_dtype_bytes (dtype)), 0);
  uint16_t op = build_kernel_on (b, stream, &copy, tag, NULL, 0);
  g_array_index (b->ops, LsOp, op).repeat = (uint32_t) n;
  return op;
}

/* A list of n views of a gradient, .grad.view (-1).narrow (...) each; c10d copies them into one array. */
static void
flatten_list (Build *b, uint64_t numel, uint32_t n)
{
  const Lower *l = b->l;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  deepspeed_views (b, 2 * (uint64_t) n);
  LsOp op = ls_op_blank (LS_OP_RECORD, LS_STREAM_DP, LS_TAG_SYNC, "gradients are there");
  build_op (b, op, &compute, 1);
  deepspeed_copies (b, LS_STREAM_DP, "grad-copy-in", l->shard.grad_dtype, numel, n, LS_TAG_SYNC);
}

static uint16_t
reduce_over (Build *b, DpGroup group, int coll, uint64_t numel, const char *name, uint16_t unit)
{
  const Lower *l = b->l;
  if (group.n <= 1)
    return NO_OP;
  uint64_t bytes = dp_grad_bytes (l, padded (numel, group.n));
  if (l->s->data.collective_lists && coll == LS_COLL_REDUCE_SCATTER)
    flatten_list (b, padded (numel, group.n), group.n);
  uint16_t op = build_coll (b, LS_STREAM_DP, group.slot, coll, bytes, l->shard.grad_dtype, LS_TAG_SYNC, name);
  g_array_index (b->ops, LsOp, op).unit = unit;
  return op;
}

uint16_t
deepspeed_reduce_whole (Build *b, uint64_t numel, bool is_expert, uint16_t unit)
{
  DpGroup all = dp_all (b->l, is_expert);
  if (all.n > 1)
    dp_average (b, numel);
  return reduce_over (b, all, LS_COLL_ALL_REDUCE, numel, "grad all-reduce", unit);
}

uint16_t
deepspeed_reduce (Build *b, uint64_t numel, bool is_expert, bool is_last, uint16_t unit)
{
  const Lower *l = b->l;
  if (dp_all (l, is_expert).n > 1)
    dp_average (b, numel);
  DpGroup shard = dp_shard (l, is_expert), replica = dp_replica (l, is_expert);
  uint16_t op = reduce_over (b, shard, LS_COLL_REDUCE_SCATTER, numel, "grad reduce-scatter", unit);
  if (!is_last)
    return op;
  uint16_t summed
      = reduce_over (b, replica, LS_COLL_ALL_REDUCE, dp_part (numel, shard.n), "grad all-reduce", unit);
  return summed != NO_OP ? summed : op;
}

uint16_t
deepspeed_gather (Build *b, uint64_t numel, bool is_expert, uint16_t after)
{
  const Lower *l = b->l;
  DpGroup shard = dp_shard (l, is_expert);
  if (shard.n <= 1)
    return NO_OP;
  LsDep copied = { LS_DEP_END, after };
  guint n_joins = b->next_deps->len;
  if (after != NO_OP)
    g_array_append_val (b->next_deps, copied);
  if (l->s->data.collective_lists)
    deepspeed_views (b, shard.n);
  uint16_t op = build_coll (b, LS_STREAM_GATHER, shard.slot, LS_COLL_ALL_GATHER,
                            dp_param_bytes (l, padded (numel, shard.n)), l->shard.dtype, LS_TAG_SYNC,
                            "parameter all-gather");
  g_array_set_size (b->next_deps, n_joins);
  LsTag tag = !b->pass ? LS_TAG_OPTIMIZER : b->pass->type == LS_ACTION_F ? LS_TAG_F : LS_TAG_B;
  if (l->s->data.collective_lists)
    op = deepspeed_copies (b, LS_STREAM_GATHER, "parameter-copy-out", deepspeed_gathers (l),
                           padded (numel, shard.n), shard.n, tag);
  return op;
}
