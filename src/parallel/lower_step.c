/* parallel/lower_step.c — how a step begins and ends on one rank.
 *
 * Begin: the gradient buffer is zeroed; with a distributed optimizer and overlap
 * the updated parameters are gathered bucket by bucket on their own stream, and the
 * first forward of each chunk waits for a bucket where it needs it (Megatron-LM's
 * overlap_param_gather). Deviation: all gathers are queued at once in forward order
 * instead of one bucket ahead.
 *
 * End (DESIGN.md section 5): data-parallel reduction finishes; with SP the
 * gradients of replicated parameters are all-reduced over tp; tied embeddings;
 * found-inf (fp16) and the gradient norm, whose values the host reads (.item ()),
 * a barrier over the stages; optimizer; parameters gathered. */
#include "parallel/lower_state.h"

#include <string.h>

bool
gathers_params_early (const Lower *l)
{
  return l->s->zero_stage > 0 && l->mesh.dp > 1 && l->s->dp_overlap;
}

static uint64_t
grad_bytes (const Lower *l, uint64_t numel)
{
  return numel * ls_dtype_bytes (l->shard.grad_dtype);
}

/* fp8 recipes gather their weights in 16 bits too. */
static uint64_t
param_bytes (const Lower *l, uint64_t numel)
{
  return numel * MAX (2, ls_dtype_bytes (l->shard.dtype));
}

static uint16_t
gather_params (Build *b, uint64_t numel, uint16_t unit)
{
  uint16_t op = build_coll (b, LS_STREAM_DP, LS_SLOT_DP, COLL_ALL_GATHER, param_bytes (b->l, numel), b->l->shard.dtype,
                            LS_TAG_SYNC, "parameter all-gather");
  g_array_index (b->ops, LsOp, op).unit = unit;
  return op;
}

static uint64_t
n_params_of_rank (const Lower *l, uint32_t pp_rank)
{
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->s->vpp; c++)
    n += chunk_at (l, pp_rank, c)->n_params;
  return n;
}

uint32_t
segment_step_begin (Lower *l, uint32_t pp_rank)
{
  Build b;
  build_init (&b, l);
  uint64_t n_params = n_params_of_rank (l, pp_rank);
  LsKernel zero = ls_kernel_stream ("zero gradients", LS_KERNEL_MEMSET, l->shard.grad_dtype, 1, n_params,
                                    (double) grad_bytes (l, n_params), 0);
  build_kernel (&b, &zero, LS_TAG_OPTIMIZER);
  g_autofree char *name = g_strdup_printf ("begin stage %u", pp_rank);
  return build_finish (&b, name);
}

/* --- end ----------------------------------------------------------------------- */

/* Whatever the backward has not reduced. */
static void
finish_gradients (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  if (l->mesh.dp == 1)
    return;
  if (reduces_in_backward (l)) {
    build_join_stream (b, LS_STREAM_DP);
    return;
  }
  for (uint32_t c = 0; c < l->s->vpp; c++) {
    g_autoptr (GArray) buckets = buckets_of_chunk (l, chunk_at (l, pp_rank, c), pp_rank);
    for (guint i = 0; i < buckets->len; i++) {
      build_bucket (b, &g_array_index (buckets, Bucket, i), (uint16_t) i);
      build_join (b, (uint16_t) (b->ops->len - 1));
    }
  }
}

static void
reduce_global (Build *b, LsSlot slot, uint64_t bytes, LsDtype dtype, const char *name)
{
  build_join (b, build_coll (b, LS_STREAM_GLOBAL, slot, COLL_ALL_REDUCE, bytes, dtype, LS_TAG_SYNC, name));
}

static void
reduce_replicated (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  uint64_t numel = 0;
  for (uint32_t c = 0; c < l->s->vpp; c++)
    numel += chunk_at (l, pp_rank, c)->n_partial;
  if (l->shard.sp && numel > 0)
    build_join (b, build_coll (b, LS_STREAM_TP, LS_SLOT_TP, COLL_ALL_REDUCE, grad_bytes (l, numel), l->shard.grad_dtype,
                               LS_TAG_SYNC, "layer-norm grad all-reduce"));
}

static void
reduce_tied_embedding (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  bool is_end = pp_rank == 0 || pp_rank == last_rank (l);
  if (!is_tied_over_ranks (l) || !is_end)
    return;
  uint64_t numel = ls_model_padded_vocab (l->model, l->mesh.tp) / l->mesh.tp * l->model->hidden;
  reduce_global (b, LS_SLOT_EMBEDDING, grad_bytes (l, numel), l->shard.grad_dtype, "embedding grad all-reduce");
}

/* The communicator over which all parameters of the model are spread. */
static bool
norm_slot (const Lower *l, LsSlot *ret_slot)
{
  bool is_sharded = l->s->zero_stage > 0 && l->mesh.dp > 1;
  *ret_slot = is_sharded ? LS_SLOT_WORLD : LS_SLOT_MODEL;
  return l->mesh.tp * l->mesh.pp > 1 || is_sharded;
}

static void
host_reads (Build *b)
{
  if (b->next_deps->len > 0)
    build_barrier (b);
  build_device_sync (b);
}

static void
optimizer (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  uint64_t n = n_params_of_rank (l, pp_rank);
  if (l->s->zero_stage > 0)
    n = (n + l->mesh.dp - 1) / l->mesh.dp;
  g_autoptr (GArray) kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  ls_optimizer_kernels (n, l->shard.dtype, l->shard.grad_dtype, kernels);
  LsSlot slot;
  bool is_spread = norm_slot (l, &slot);
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernel *k = &g_array_index (kernels, LsKernel, i);
    bool is_norm = k->kind == LS_KERNEL_REDUCTION;
    bool finds_inf = strcmp (k->name, "grad-unscale") == 0;
    if (is_norm && !l->s->grad_norm)
      continue;
    build_kernel (b, k, LS_TAG_OPTIMIZER);
    if (!is_norm && !finds_inf)
      continue;
    if (is_spread && l->s->grad_norm)
      reduce_global (b, slot, 4, LS_DTYPE_FP32, is_norm ? "grad-norm all-reduce" : "found-inf all-reduce");
    host_reads (b);
  }
}

uint32_t
segment_step_end (Lower *l, uint32_t pp_rank)
{
  Build b;
  build_init (&b, l);
  finish_gradients (&b, pp_rank);
  reduce_replicated (&b, pp_rank);
  reduce_tied_embedding (&b, pp_rank);
  optimizer (&b, pp_rank);
  if (l->s->zero_stage > 0 && l->mesh.dp > 1 && !gathers_params_early (l))
    for (uint32_t c = 0; c < l->s->vpp; c++)
      build_join (&b, gather_params (&b, chunk_at (l, pp_rank, c)->n_params, UINT16_MAX));
  g_autofree char *name = g_strdup_printf ("end stage %u", pp_rank);
  return build_finish (&b, name);
}

uint32_t
segment_gather_params (Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  Build b;
  build_init (&b, l);
  g_autoptr (GArray) buckets = buckets_of_chunk (l, chunk_at (l, pp_rank, chunk), pp_rank);
  for (guint i = buckets->len; i-- > 0;) { /* buckets are in backward order */
    LsDep gathered = { LS_DEP_END, gather_params (&b, g_array_index (buckets, Bucket, i).numel, (uint16_t) i) };
    LsOp record = op_blank (LS_OP_RECORD, LS_STREAM_DP, LS_TAG_SYNC, "parameters gathered");
    record.event = (uint16_t) (EVENT_PARAMS + i);
    build_op (&b, record, &gathered, 1);
  }
  g_autofree char *name = g_strdup_printf ("gather parameters stage %u chunk %u", pp_rank, chunk);
  return build_finish (&b, name);
}
