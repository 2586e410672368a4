/* Pins: the plain replay needs nothing of the rest of exec, as this program links none of it, and comes to what
 * exec comes to with all that it has (unit/exec/test_plain_jobs.c); nothing of its time changes with the
 * queue, the solver or what is recorded. */
#include "ls_test.h"

#include "plain_jobs.h"

static LsReplayInput
input_of (Hand *h, const PlainJob *job, LsHostCosts *room)
{
  hand_freeze (h);
  *room = (LsHostCosts) { .is_final = true };
  for (int i = 0; i < LS_N_HOST_COSTS; i++)
    room->cost[i] = job->host;
  return (LsReplayInput) {
    .plan = h->plan,
    .cluster = h->cluster,
    .calibration = &h->calibration,
    .nccl = &h->nccl,
    .host = room,
    .options = { .n_steps = 4,
                 .max_spans = 1000000,
                 .max_memory_bytes = UINT64_C (1) << 30,
                 .checks = g_strcmp0 (g_getenv ("LS_DEBUG"), "check") == 0 },
  };
}

static void
jobs_take_what_they_take_with_every_hook (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (plain_jobs); i++) {
    Hand *h = plain_jobs[i].job ();
    LsHostCosts host;
    const LsReplayInput input = input_of (h, &plain_jobs[i], &host);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsTimeline) t = ls_replay (&input, &error);
    plain_job_check (&plain_jobs[i], t, error);
    hand_free (h);
  }
}

static void
queue_solver_and_spans_change_nothing (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (plain_jobs); i++)
    for (int way = 1; way < 8; way++) {
      Hand *h = plain_jobs[i].job ();
      LsHostCosts host;
      LsReplayInput input = input_of (h, &plain_jobs[i], &host);
      input.options.queue = way & 1 ? LS_QUEUE_REFERENCE : LS_QUEUE_FAST;
      input.options.solver = way & 2 ? LS_SOLVER_REFERENCE : LS_SOLVER_FAST;
      input.options.no_spans = (way & 4) != 0;
      g_autoptr (GError) error = NULL;
      g_autoptr (LsTimeline) t = ls_replay (&input, &error);
      plain_job_check (&plain_jobs[i], t, error);
      hand_free (h);
    }
}

LS_TEST_SUITE (LS_TEST (jobs_take_what_they_take_with_every_hook),
               LS_TEST (queue_solver_and_spans_change_nothing))
