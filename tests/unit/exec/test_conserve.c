/* Pins: that what was asked to move has moved is checked, not assumed: a flow that moved
 * a byte too few, a call that is not over, or one too many is an internal error that
 * says what and how much. (That it holds in runs, every other test of exec relies on.) */
#include "ls_test.h"

#include <string.h>

#include <lockstep/error.h>

#include "hand_trace.h"

#include "exec/motion.h"
#include "exec/state.h"

/* Two ranks and an all-reduce of 1 MiB, as a run leaves them behind after step 0. */
typedef struct {
  Hand *hand;
  Run run;
  XJob job;
  Comm comm;
  Channel channels[4];
  Call call;
  LsCollPlan plan;
  LsPhase phase;
} Fixture;

static void
fixture_init (Fixture *f)
{
  *f = (Fixture) { .hand = hand_new (2) };
  Hand *h = f->hand;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, (const uint32_t[]) { 0, 1 }, 2);
  for (uint32_t r = 0; r < 2; r++)
    hand_sync (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1 << 20);
  hand_freeze (h);
  f->phase = (LsPhase) { .demand_bytes = 1e6, .rate_cap = 1e9 };
  f->plan = (LsCollPlan) { .n_phases = 1, .phases = &f->phase };
  f->call = (Call) {
    .key = { .bytes = 1 << 20 }, .plan = &f->plan, .step = { 1, 0 }, .count = { 1, 0 }, .n_over = { 1, 0 }
  };
  f->comm.calls = &f->call;
  f->job = (XJob) { .plan = h->plan, .calibration = &h->calibration, .host = &h->options.host };
  f->run = (Run) { .plan = h->plan,
                   .jobs = &f->job,
                   .n_jobs = 1,
                   .cluster = h->cluster,
                   .options = &h->options,
                   .arena = ls_arena_new (),
                   .comms = &f->comm,
                   .channels = f->channels };
  LS_CHECK (run_compile (&f->run, NULL));
  copies_init (&f->run);
}

static void
fixture_clear (Fixture *f)
{
  g_free (f->run.copies);
  ls_arena_free (f->run.arena);
  hand_free (f->hand);
}

static void
check_message (const GError *error, const char *expected)
{
  LS_CHECK (error && error->code == LS_ERROR_FAILED);
  LS_CHECK_STR (error ? error->message : NULL, expected);
}

static void
what_was_asked_for_is_what_moved (void)
{
  Fixture f;
  fixture_init (&f);
  g_autoptr (GError) error = NULL;
  LS_CHECK (conserve_step (&f.run, &f.job, 0, &error));
  LS_CHECK_NO_ERROR (error);
  fixture_clear (&f);
}

static void
a_call_that_is_not_over_is_noticed (void)
{
  Fixture f;
  fixture_init (&f);
  g_autoptr (GError) error = NULL;
  f.call.n_over[0] = 0;
  LS_CHECK (!conserve_step (&f.run, &f.job, 0, &error));
  check_message (
      error,
      "internal error: communicator 0: 1048576 bytes in 1 calls were asked for in step 0, 0 bytes in 0 calls moved");
  fixture_clear (&f);
}

static void
a_call_of_another_size_is_noticed (void)
{
  Fixture f;
  fixture_init (&f);
  g_autoptr (GError) error = NULL;
  f.call.key.bytes = 1000;
  LS_CHECK (!conserve_step (&f.run, &f.job, 0, &error));
  check_message (
      error,
      "internal error: communicator 0: 1048576 bytes in 1 calls were asked for in step 0, 1000 bytes in 1 calls moved");
  fixture_clear (&f);
}

static void
a_transfer_that_nobody_asked_for_is_noticed (void)
{
  Fixture f;
  fixture_init (&f);
  g_autoptr (GError) error = NULL;
  Call send = { .key = { .bytes = 7 }, .plan = &f.plan, .step = { 1, 0 }, .n_over = { 1, 0 } };
  f.channels[3].calls = &send;
  LS_CHECK (!conserve_step (&f.run, &f.job, 0, &error));
  check_message (
      error,
      "internal error: sends to the previous of rank 1: 0 bytes in 0 calls were asked for in step 0, 7 bytes in 1 calls moved");
  fixture_clear (&f);
}

/* Every direction has words of its own. */
static void
a_copy_that_did_not_move_is_noticed (void)
{
  static const char *const words[LS_N_COPY_DIRECTIONS] = {
    [LS_COPY_TO_DEVICE] = "copies to the device",    [LS_COPY_TO_HOST] = "copies to the host",
    [LS_COPY_FROM_NVME] = "reads from NVMe",         [LS_COPY_TO_NVME] = "writes to NVMe",
    [LS_COPY_IN_HOST] = "work in the host's memory",
  };
  for (uint32_t d = 0; d < LS_N_COPY_DIRECTIONS; d++) {
    Fixture f;
    fixture_init (&f);
    g_autoptr (GError) error = NULL;
    f.call.step[0] = 0; /* the collective of rank 0 becomes a copy */
    LsOp *op = &f.hand->plan->segments[f.hand->plan->programs[0].instances[0].segment].ops[0];
    op->kind = LS_OP_COPY;
    op->root = d;
    LS_CHECK (!conserve_step (&f.run, &f.job, 0, &error));
    g_autofree char *expected = g_strdup_printf (
        "internal error: %s of rank 0: 1048576 bytes in 1 calls were asked for in step 0, 0 bytes in 0 calls moved",
        words[d]);
    check_message (error, expected);
    fixture_clear (&f);
  }
}

static void
a_flow_that_lost_a_byte_is_noticed (void)
{
  Fixture f;
  fixture_init (&f);
  LsFlow flow = { .moved = 1e6, .cap = 1e9 };
  conserve_flow (&f.run, &flow, 1e6);
  LS_CHECK (f.run.error == NULL);
  flow.moved = 1e6 - 1;
  conserve_flow (&f.run, &flow, 1e6);
  check_message (
      f.run.error,
      "internal error: a flow over no link was asked to move 1000000 bytes and moved 999999 until 0 ps");
  g_clear_error (&f.run.error);
  fixture_clear (&f);
}

LS_TEST_SUITE (LS_TEST (what_was_asked_for_is_what_moved), LS_TEST (a_call_that_is_not_over_is_noticed),
               LS_TEST (a_call_of_another_size_is_noticed),
               LS_TEST (a_transfer_that_nobody_asked_for_is_noticed),
               LS_TEST (a_copy_that_did_not_move_is_noticed), LS_TEST (a_flow_that_lost_a_byte_is_noticed))
