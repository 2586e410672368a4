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
#include "lower/data/lower_bucket.h"

#define PARTITION_BYTES 4096000u

static uint64_t
limit_of (const Lower *l, uint32_t pp_rank, guint i)
{
  if (!l->s->data.overlap)
    return UINT64_MAX;
  uint64_t bytes = l->s->data.bucket_bytes ? l->s->data.bucket_bytes : PARTITION_BYTES;
  return dp_part (bytes, ls_dtype_bytes (l->shard.grad_dtype));
}

static bool
reduces (const Lower *l, const DpPass *p)
{
  return dp_completes (p) && l->s->data.overlap;
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
reduce_rest (Build *b, uint32_t pp_rank)
{
  buckets_reduce_rest (b, pp_rank, limit_of, false);
}

const DpBackend dp_backend_ps = {
  .name = "ps",
  .variant = variant,
  .begin = begin,
  .after = buckets_after_sum,
  .end = buckets_end,
  .reduce_rest = reduce_rest,
  .cuts = dp_cut_nothing,
};
