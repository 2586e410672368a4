/* torch DistributedDataParallel (torch/nn/parallel/distributed.py 2.7, reducer.cpp): every rank
 * has everything. After its first iteration the buckets follow the order in which gradients
 * become ready; a bucket takes a parameter, then closes if it has reached its limit: 1 MiB
 * for the first, 25 MiB for the others, or the user's cap for all. Buckets are launched
 * strictly in order; gradients are divided by the number of ranks before, in a kernel of
 * their own. At the end of a backward that reduces the compute stream waits for all buckets.
 *
 * Memory. Buckets are there beside the gradients for as long as the job runs, and what was
 * reduced is copied back (reducer.cpp, initialize_buckets and copy_bucket_to_grad); with
 * bucket_view gradients are views of them.
 *
 * Only the last micro-batch reduces (no_sync), or each does (grad_sync each). Where nothing
 * overlaps there is one bucket, reduced at the end of the step: Megatron-LM's DDP of 2021; or
 * at the end of each backward.
 *
 * Not here: find_unused_parameters and static_graph, which order buckets otherwise. */
#include "lower/data/lower_bucket.h"

#include "strategy/shard.h"

#define FIRST_BYTES (1u << 20)
#define CAP_BYTES   (25u << 20)

static uint64_t
limit_of (const Lower *l, uint32_t pp_rank, guint i)
{
  if (!l->s->data.overlap)
    return UINT64_MAX;
  uint64_t bytes = l->s->data.bucket_bytes ? l->s->data.bucket_bytes : i == 0 ? FIRST_BYTES : CAP_BYTES;
  return (bytes + ls_dtype_bytes (l->shard.grad_dtype) - 1) / ls_dtype_bytes (l->shard.grad_dtype);
}

static bool
is_each (const Lower *l)
{
  return l->s->data.grad_sync == LS_GRAD_SYNC_EACH;
}

static bool
reduces (const Lower *l, const DpPass *p)
{
  bool has_weights = p->type == LS_ACTION_B || p->type == LS_ACTION_W;
  return has_weights && (is_each (l) || (p->is_last && l->s->data.overlap));
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
copy_back (Build *b, const Chunk *c)
{
  LsKernel copy = ls_kernel_stream ("grad-from-bucket", LS_KERNEL_ELEMENTWISE, b->l->shard.grad_dtype, 1,
                                    c->n_params, 2.0 * (double) dp_grad_bytes (b->l, c->n_params), 0);
  build_kernel (b, &copy, LS_TAG_SYNC);
}

static void
end (Build *b, DpPass *p)
{
  if (reduces (b->l, p))
    build_join_stream (b, LS_STREAM_DP);
  if (reduces (b->l, p) && ls_strategy_has_buckets (b->l->s) && p->c->n_params > 0)
    copy_back (b, p->c);
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
  .name = "ddp",
  .variant = variant,
  .begin = begin,
  .after = buckets_after_sum,
  .end = end,
  .reduce_rest = reduce_rest,
  .cuts = dp_cut_nothing,
  .static_memory = static_memory,
};
