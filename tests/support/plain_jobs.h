/* tests/support/plain_jobs.h — hand-written jobs, what their steps take and the digests of these. The plain
 * replay (unit/replay) and the whole of exec with all that it has (unit/exec) must come to the same. */
#ifndef LS_TESTS_PLAIN_JOBS_H
#define LS_TESTS_PLAIN_JOBS_H

#include "hand_trace.h"

#define PLAIN_BYTES (1 << 20)

/* Kernels of 10 and 20 us on each of two GPUs: 30 us. */
static inline Hand *
plain_kernels (void)
{
  Hand *h = hand_plan_new (2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, 10 * LS_US);
    hand_kernel (h, r, LS_TAG_B, 20 * LS_US);
  }
  return h;
}

static inline void
plain_pair (Hand *h)
{
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, (const uint32_t[]) { 0, 1 }, 2);
}

/* 10 and 30 us, an all-reduce once both are there, 5 us. */
static inline Hand *
plain_all_reduce (void)
{
  Hand *h = hand_plan_new (2);
  plain_pair (h);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, r == 0 ? 10 * LS_US : 30 * LS_US);
    hand_sync (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, PLAIN_BYTES);
    hand_kernel (h, r, LS_TAG_F, 5 * LS_US);
  }
  return h;
}

/* An all-gather beside a kernel, which it slows down. */
static inline Hand *
plain_beside (void)
{
  Hand *h = hand_plan_new (2);
  plain_pair (h);
  h->nccl.stall_per_byte = 1;
  for (uint32_t r = 0; r < 2; r++) {
    hand_async (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_GATHER, PLAIN_BYTES);
    hand_kernel (h, r, LS_TAG_F, 40 * LS_US);
  }
  return h;
}

/* Four stages: each receives from the one before, but for the first, computes, and sends on. */
static inline Hand *
plain_stages (void)
{
  Hand *h = hand_plan_new (4);
  for (uint32_t r = 0; r < 4; r++) {
    if (r > 0)
      hand_join (h, r, hand_p2p (h, r, LS_SLOT_PREV, false, PLAIN_BYTES));
    hand_kernel (h, r, LS_TAG_F, (r + 1) * 7 * LS_US);
    if (r < 3)
      hand_p2p (h, r, LS_SLOT_NEXT, true, PLAIN_BYTES);
  }
  return h;
}

/* Both ways over PCIe beside kernels; the host waits for what comes in. */
static inline Hand *
plain_copies (void)
{
  Hand *h = hand_plan_new (1);
  hand_copy (h, 0, LS_COPY_TO_HOST, 4 * PLAIN_BYTES);
  uint16_t in = hand_copy (h, 0, LS_COPY_TO_DEVICE, 2 * PLAIN_BYTES);
  hand_kernel (h, 0, LS_TAG_F, 50 * LS_US);
  hand_host_sync (h, 0, in);
  hand_kernel (h, 0, LS_TAG_B, 50 * LS_US);
  return h;
}

/* Two segments over and over, with an all-reduce in one of them. */
static inline Hand *
plain_micro_batches (void)
{
  Hand *h = hand_plan_new (2);
  plain_pair (h);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, 10 * LS_US);
    hand_next_segment (h, r);
    hand_kernel (h, r, LS_TAG_B, (20 + r) * LS_US);
    hand_sync (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, PLAIN_BYTES);
    hand_kernel (h, r, LS_TAG_B, LS_US);
    for (int i = 0; i < 5; i++) {
      hand_then (h, r, 0, 2);
      hand_then (h, r, 1, 1);
    }
  }
  return h;
}

/* A call that the other never makes. */
static inline Hand *
plain_deadlock (void)
{
  Hand *h = hand_plan_new (2);
  plain_pair (h);
  hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, PLAIN_BYTES);
  for (uint32_t r = 0; r < 2; r++)
    hand_kernel (h, r, LS_TAG_F, LS_US);
  return h;
}

typedef struct {
  const char *name;
  Hand *(*job) (void);
  LsTime host;     /* that issuing each op costs */
  LsTime step;     /* the last of four           */
  uint64_t digest; /* of it                      */
  const char *error;
} PlainJob;

static const PlainJob plain_jobs[] = {
  { "kernels", plain_kernels, 0, 30 * LS_US, 0xdf0ad571719ea9d2, NULL },
  { "all-reduce", plain_all_reduce, 0, 50242880, 0x5ff9007fd8217d39, NULL },
  { "kernel and all-gather", plain_beside, 0, 43669621, 0x7fbe0100444318f7, NULL },
  { "stages", plain_stages, LS_US, 41485760, 0x39d4ec97920eb0da, NULL },
  { "copies", plain_copies, 2 * LS_US, 257860953, 0xeeba118f5041ebc4, NULL },
  { "micro-batches", plain_micro_batches, 3 * LS_US, 286214400, 0x221a5b713b679fd2, NULL },
  { "deadlock", plain_deadlock, 0, 0, 0,
    "deadlock: 2 of 2 ranks wait and no event is left\n"
    "  rank 0 waits in collective (segment hand-written, micro-batch 0, chunk 0, op 0): all-reduce on the tp "
    "communicator; missing: rank 1\n"
    "  rank 1 has finished its program or waits for its host" },
};

static inline void
plain_job_check (const PlainJob *job, const LsTimeline *t, const GError *error)
{
  LsTime step = t ? t->window_end - t->window_start : 0;
  if (step != job->step || (t ? t->digest : 0) != job->digest
      || g_strcmp0 (error ? error->message : NULL, job->error) != 0)
    g_printerr ("%s: %" G_GINT64_FORMAT " ps, digest 0x%016" G_GINT64_MODIFIER "x, %s\n", job->name, step,
                t ? t->digest : 0, error ? error->message : "no error");
  LS_CHECK_INT (step, ==, job->step);
  LS_CHECK (!t || t->digest == job->digest);
  LS_CHECK_STR (error ? error->message : NULL, job->error);
}

#endif
