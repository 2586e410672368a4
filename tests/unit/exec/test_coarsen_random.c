/* Pins: a segment that runs in one piece changes nothing. Random programs of kernels, collectives, copies,
 * records and waits of the host run in pieces and op by op and come out the same: times, issue times, causes,
 * bytes, digest (--coarsen check); nor do they take less than exec/shortcuts/plan_bound.h says. LS_CASES says
 * how many. */
#include "ls_test.h"

#include "hand_trace.h"

#include "exec/shortcuts/plan_bound.h"

static const LsStream others[] = { LS_STREAM_TP, LS_STREAM_DP, LS_STREAM_COPY };

static LsTime
draw_time (GRand *rand)
{
  static const LsTime times[]
      = { 0, LS_US, LS_US, 2 * LS_US, 7 * LS_US, 40 * LS_US }; /* few, so that they tie */
  return times[g_rand_int_range (rand, 0, G_N_ELEMENTS (times))];
}

/* Of the segment that is written: the tail of a stream, mostly of compute; or an op. */
static LsDep
draw_dep (GRand *rand, guint n_ops)
{
  int what = g_rand_int_range (rand, 0, 12);
  if (what == 0 && n_ops > 0)
    return (LsDep) { LS_DEP_END, (uint16_t) g_rand_int_range (rand, 0, (gint32) n_ops) };
  return (LsDep) { LS_DEP_STREAM,
                   (uint16_t) (what == 1 ? others[g_rand_int_range (rand, 0, 3)] : LS_STREAM_COMPUTE) };
}

static void
draw_op (Hand *h, uint32_t rank, GRand *rand, guint n_ops, bool has_comm)
{
  int what = g_rand_int_range (rand, 0, 40);
  LsStream other = others[g_rand_int_range (rand, 0, 3)];
  LsDep dep = draw_dep (rand, n_ops);
  LsOpKind kind = what == 0 ? LS_OP_HOST_SYNC
      : what == 1           ? LS_OP_HOST_DELAY
      : what == 2           ? LS_OP_COPY
      : what < 6            ? LS_OP_RECORD
                            : LS_OP_KERNEL;
  bool is_rare = kind == LS_OP_HOST_SYNC || kind == LS_OP_HOST_DELAY || kind == LS_OP_COPY;
  if (is_rare && g_rand_int_range (rand, 0, 4) > 0)
    kind = LS_OP_KERNEL;
  if (has_comm && (what == 38 || what == 39)) {
    (what == 38 ? hand_async : hand_sync) (h, rank, LS_SLOT_TP, other, LS_COLL_ALL_REDUCE,
                                           1u << g_rand_int_range (rand, 10, 22));
    return;
  }
  bool is_besides = kind == LS_OP_COPY || kind == LS_OP_RECORD || (kind == LS_OP_KERNEL && what > 34);
  LsOp op = ls_op_blank (kind, is_besides ? other : LS_STREAM_COMPUTE, LS_TAG_F, "random");
  op.host = kind == LS_OP_KERNEL ? LS_HOST_LAUNCH : LS_HOST_FREE;
  op.recorded = draw_time (rand);
  op.event = kind == LS_OP_RECORD && g_rand_boolean (rand) ? (uint16_t) g_rand_int_range (rand, 0, 4)
                                                           : LS_EVENT_NONE;
  bool has_dep = is_besides ? g_rand_int_range (rand, 0, 100) > 0
                            : kind == LS_OP_HOST_SYNC || g_rand_int_range (rand, 0, 8) == 0;
  uint16_t at = hand_op (h, rank, op, &dep, has_dep ? 1 : 0);
  if (is_besides && g_rand_boolean (rand))
    hand_join (h, rank, at);
}

static void
draw_program (Hand *h, uint32_t rank, GRand *rand, bool has_comm)
{
  static const int sizes[] = { 3, 12, 60, 300 };
  guint n_ops[HAND_MAX_SEGMENTS], total = 0;
  for (uint32_t s = 0; s < HAND_MAX_SEGMENTS; s++) {
    if (s > 0)
      hand_next_segment (h, rank);
    n_ops[s] = (guint) g_rand_int_range (rand, 1, sizes[g_rand_int_range (rand, 0, 4)]);
    hand_kernel (h, rank, LS_TAG_F, draw_time (rand));
    while (h->ops[rank]->len - h->first[rank][s] < n_ops[s])
      draw_op (h, rank, rand, h->ops[rank]->len - h->first[rank][s], has_comm);
    g_array_set_size (h->next_deps[rank], 0); /* those of a segment are its own */
    if (g_rand_int_range (rand, 0, 4) > 0)
      hand_kernel (h, rank, LS_TAG_F, draw_time (rand));
  }
  while (total < 2500) {
    uint32_t s = (uint32_t) g_rand_int_range (rand, 0, HAND_MAX_SEGMENTS),
             n = (uint32_t) g_rand_int_range (rand, 1, 30);
    hand_then (h, rank, s, n);
    total += n * n_ops[s];
  }
}

/* One rank, two alike with a communicator, or two with nothing in common. */
static bool
check_random_program (guint32 seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  uint32_t n_ranks = 1 + (seed % 3 > 0);
  bool has_comm = seed % 3 == 1;
  Hand *h = hand_coarse_new (n_ranks);
  if (has_comm) {
    h->plan->bindings[1].role = 0;
    hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, (const uint32_t[]) { 0, 1 }, 2);
    h->options.fold = LS_SHORTCUT_CHECK;
  }
  for (uint32_t r = 0; r < (has_comm ? 1 : n_ranks); r++)
    draw_program (h, r, rand, has_comm);
  const double slow[] = { 1, 1.25 };
  h->options.slow = n_ranks == 2 && !has_comm && g_rand_boolean (rand) ? slow : NULL;
  h->options.n_steps = (uint32_t) g_rand_int_range (rand, 1, 6);
  h->options.steady = g_rand_boolean (rand);
  h->options.no_spans = g_rand_int_range (rand, 0, 4) == 0;
  h->options.host.cost[LS_HOST_LAUNCH] = draw_time (rand) / 7;
  h->options.host.cost[LS_HOST_COMM] = draw_time (rand) / 3;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsTimeline) t = hand_run_error (h, &error);
  ls_check_impl (t != NULL, __FILE__, __LINE__, "seed %u: %s", seed, error ? error->message : "");
  LsTime least = ls_plan_bound (h->plan, h->cluster, &h->calibration, &h->nccl, &h->options);
  uint32_t n_whole = t ? t->n_steps - (t->first_step == 0) : 0;
  ls_check_impl (!t || n_whole * least <= t->window_end, __FILE__, __LINE__,
                 "seed %u: its steps take less than the plan can", seed);
  bool has_pieces = t && t->n_coarse > 0;
  hand_free (h);
  return has_pieces;
}

static void
random_programs (void)
{
  guint32 n = ls_test_cases (32, 32), n_coarse = 0;
  for (guint32 seed = 1; seed <= n; seed++)
    n_coarse += check_random_program (seed);
  if (n < 881)
    check_random_program (
        881); /* what the host does itself counted as queued, so it was trusted too far ahead */
  if (n < 2785)
    check_random_program (2785); /* a tie at the quiescent point, and another cause */
  LS_CHECK_INT (n_coarse, >, n / 4);
  printf ("of %u programs %u had segments in one piece\n", n, n_coarse);
}

LS_TEST_SUITE (LS_TEST (random_programs))
