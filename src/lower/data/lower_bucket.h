/* lower/data/lower_bucket.h — gradients that are reduced together, cut by the order in which
 * they become ready (private; for the backends of lower_dp.h that have buckets). */
#ifndef LS_LOWER_DATA_LOWER_BUCKET_H
#define LS_LOWER_DATA_LOWER_BUCKET_H

#include "lower/data/lower_dp.h"

/* Ready when operator `last_operator` has done its weight gradients, in backward order. */
typedef struct {
  uint64_t numel;
  uint32_t last_operator;
  bool is_expert; /* experts have buckets of their own */
} Bucket;

/* Parameters at which bucket i closes: it takes one, then closes if it has reached that. */
typedef uint64_t (*BucketLimit) (const Lower *l, uint32_t pp_rank, guint i);

/* Buckets of a chunk in the order in which they become ready; a parameter is never split. */
GArray *buckets_new (const Lower *l, const Chunk *c, uint32_t pp_rank, BucketLimit limit);
/* Number of the first bucket from `from` on that is not ready once operator o is done. */
guint buckets_ready (const GArray *buckets, guint from, guint o);

/* Averages a bucket and reduces it over all ranks that have its parameters. It scatters among
 * those that share one copy, then sums the parts over the copies (lower_dp.h), both in order
 * on one stream. */
void bucket_reduce (Build *b, const Bucket *bucket, uint16_t unit, bool scatters);

/* Hooks of a pass that launches its buckets, strictly in order, as they become ready; begin
 * sets p->state, without which the others do nothing. */
void buckets_begin (Build *b, DpPass *p, BucketLimit limit);
void buckets_after (Build *b, DpPass *p, guint o, bool scatters);
/* The same where every rank keeps whole sums. */
void buckets_after_sum (Build *b, DpPass *p, guint o);
void buckets_end (Build *b, DpPass *p);
/* Where nothing overlaps all buckets, one after the other; else the stream is waited for. */
void buckets_reduce_rest (Build *b, uint32_t pp_rank, BucketLimit limit, bool scatters);

#endif
