/* torch DistributedDataParallel (torch/nn/parallel/distributed.py 2.7, reducer.cpp): every rank
 * has everything. After its first iteration the buckets follow the order in which gradients
 * become ready; a bucket takes a parameter, then closes if it has reached its limit: 1 MiB
 * for the first, 25 MiB for the others, or the user's cap for all. Buckets are launched
 * strictly in order; gradients are divided by the number of ranks before, in a kernel of
 * their own. At the end of a backward that reduces the compute stream waits for all buckets.
 *
 * Only the last micro-batch reduces (no_sync), or each does (grad_sync each). Where nothing
 * overlaps there is one bucket, reduced at the end of the step: Megatron-LM's DDP of 2021; or
 * at the end of each backward.
 *
 * Not here: find_unused_parameters and static_graph, which order buckets otherwise. */
#include "lower/data/lower_bucket.h"

#define FIRST_BYTES (1u << 20)
#define CAP_BYTES   (25u << 20)

static uint64_t
limit_of (const Lower *l, uint32_t pp_rank, guint i)
{
  if (!l->s->dp_overlap)
    return UINT64_MAX;
  uint64_t bytes = l->s->bucket_bytes ? l->s->bucket_bytes : i == 0 ? FIRST_BYTES : CAP_BYTES;
  return (bytes + ls_dtype_bytes (l->shard.grad_dtype) - 1) / ls_dtype_bytes (l->shard.grad_dtype);
}

static bool
is_each (const Lower *l)
{
  return l->s->grad_sync == LS_GRAD_SYNC_EACH;
}

static bool
reduces (const Lower *l, const DpPass *p)
{
  bool has_weights = p->type == LS_ACTION_B || p->type == LS_ACTION_W;
  return has_weights && (is_each (l) || (p->is_last && l->s->dp_overlap));
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
  buckets_end (b, p);
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
};
