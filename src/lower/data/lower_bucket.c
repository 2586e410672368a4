#include "lower/data/lower_bucket.h"

static void
close_bucket (GArray *buckets, Bucket *open)
{
  g_array_append_val (buckets, *open);
  *open = (Bucket) { .is_expert = open->is_expert };
}

GArray *
buckets_new (const Lower *l, const Chunk *c, uint32_t pp_rank, BucketLimit limit)
{
  GArray *buckets = g_array_new (FALSE, FALSE, sizeof (Bucket));
  Bucket open[2] = { { .is_expert = false }, { .is_expert = true } };
  for (guint i = c->operators->len; i-- > 0;) {
    const LsOperator *o = operator_at (c, i);
    Bucket *to = &open[o->params.is_expert];
    for (uint32_t p = o->params.is_frozen ? 0 : o->params.n; p-- > 0;) {
      to->numel += o->params.numel[p];
      to->last_operator = i;
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

guint
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
}

/* grad_data.norm (p=2), which the host reads: Megatron-Core, core/distributed/param_and_grad_buffer.py,
 * check_for_nan_in_grad. */
static void
check_gradients (Build *b, uint64_t numel)
{
  LsDtype dtype = b->l->shard.grad_dtype;
  LsKernel norm = ls_kernel_stream ("grad-check", LS_KERNEL_REDUCTION, dtype, 1, numel,
                                    (double) numel * ls_dtype_bytes (dtype), 0);
  build_kernel (b, &norm, LS_TAG_SYNC);
  build_compute_sync (b, "host reads the check of a bucket");
}

void
bucket_reduce (Build *b, const Bucket *bucket, uint16_t unit, bool scatters)
{
  const Lower *l = b->l;
  if (l->s->data.grad_check && l->s->dp_kind == LS_DP_MEGATRON)
    check_gradients (b, bucket->numel);
  dp_average (b, bucket->numel);
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

void
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
