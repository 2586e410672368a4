/* Pins which send meets which receive. */
#include "show/run/p2p_pairs.h"

#include "ls_test.h"
#include "pipeline.h"

static const LsInstance *
instance_of (const Pipeline *p, uint32_t rank, uint32_t span)
{
  return ls_span_instance (&p->t, rank, &p->t.ranks[rank].spans[span]);
}

/* Both ends of a transfer belong to the same micro-batch and direction. */
static void
check_pairs (const Pipeline *p, const GArray *pairs)
{
  for (guint i = 0; i < pairs->len; i++) {
    const LsP2pPair *pair = &g_array_index (pairs, LsP2pPair, i);
    const LsInstance *send = instance_of (p, pair->from, pair->from_span),
                     *receive = instance_of (p, pair->to, pair->to_span);
    LS_CHECK_INT (send->mb, ==, receive->mb);
    LS_CHECK_INT (send->segment / 4, ==, receive->segment / 4);
    LS_CHECK_INT (send->stage + (send->segment < 4 ? 1 : -1), ==, receive->stage);
    LS_CHECK_INT (
        ls_span_op (&p->t, pair->from, &p->t.ranks[pair->from].spans[pair->from_span])->transfers[0].is_send,
        ==, 1);
    LS_CHECK_INT (
        ls_span_op (&p->t, pair->to, &p->t.ranks[pair->to].spans[pair->to_span])->transfers[0].is_send, ==,
        0);
  }
}

/* All 2 * (stages - 1) * micro-batches of a step; with chunks the stages go round
 * the ranks, and with two ranks both neighbours are one. */
static void
check_schedule (const char *schedule, uint32_t pp, uint32_t vpp)
{
  Pipeline p;
  pipeline_init (&p, schedule,
                 (PipelineShape) { pp, vpp, 8, 10 * LS_MS, 20 * LS_MS, 0, 0, 2 * LS_MS, LS_MS, LS_MS });
  g_autoptr (GArray) pairs = ls_p2p_pairs (&p.t);
  LS_CHECK_INT (pairs->len, ==, 2 * (pp * vpp - 1) * 8);
  check_pairs (&p, pairs);
  pipeline_clear (&p);
}

static void
every_transfer_of_1f1b_is_paired (void)
{
  check_schedule ("1f1b", 4, 1);
}
static void
every_transfer_of_interleaved_1f1b_is_paired (void)
{
  check_schedule ("interleaved-1f1b", 4, 3);
}
static void
two_ranks_keep_the_directions_apart (void)
{
  check_schedule ("interleaved-1f1b", 2, 2);
}

/* The window may hold a receive without its send: pairing must not shift. */
static void
missing_spans_do_not_shift_the_pairing (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b",
                 (PipelineShape) { 4, 1, 6, 10 * LS_MS, 20 * LS_MS, 0, 0, 2 * LS_MS, LS_MS, LS_MS });
  LsRankSpans *first = &p.t.ranks[0];
  const uint32_t n_cut = 3; /* two kernels and the first send */
  first->n -= n_cut;
  memmove (first->spans, first->spans + n_cut, first->n * sizeof *first->spans);
  g_autoptr (GArray) pairs = ls_p2p_pairs (&p.t);
  LS_CHECK_INT (pairs->len, ==, 2 * 3 * 6 - 1);
  check_pairs (&p, pairs);
  pipeline_clear (&p);
}

/* The same transfer of the next step is another one. */
static void
steps_are_kept_apart (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b",
                 (PipelineShape) { 2, 1, 1, 10 * LS_MS, 20 * LS_MS, 0, 0, 2 * LS_MS, LS_MS, LS_MS });
  for (uint32_t i = 0; i < p.t.ranks[1].n; i++)
    p.t.ranks[1].spans[i].step = 1;
  g_autoptr (GArray) pairs = ls_p2p_pairs (&p.t);
  LS_CHECK_INT (pairs->len, ==, 0);
  pipeline_clear (&p);
}

LS_TEST_SUITE (LS_TEST (every_transfer_of_1f1b_is_paired),
               LS_TEST (every_transfer_of_interleaved_1f1b_is_paired),
               LS_TEST (two_ranks_keep_the_directions_apart),
               LS_TEST (missing_spans_do_not_shift_the_pairing), LS_TEST (steps_are_kept_apart))
