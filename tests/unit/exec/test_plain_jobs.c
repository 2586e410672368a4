/* Pins: with all that hangs on the hooks of the replay hand-written jobs take what the plain one says
 * (unit/replay/test_plain.c), to the picosecond and the digest. */
#include "ls_test.h"

#include "plain_jobs.h"

static void
hooks_change_nothing (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (plain_jobs); i++)
    for (int way = 0; way < 8; way++) {
      Hand *h = plain_jobs[i].job ();
      ls_run_options_init (&h->options);
      h->options.n_steps = 4;
      h->options.fold = way & 1 ? LS_SHORTCUT_AUTO : LS_SHORTCUT_OFF;
      h->options.coarsen = way & 2 ? LS_SHORTCUT_AUTO : LS_SHORTCUT_OFF;
      h->options.no_run_ahead = (way & 4) != 0;
      for (int k = 0; k < LS_N_HOST_COSTS; k++)
        h->options.host.cost[k] = plain_jobs[i].host;
      g_autoptr (GError) error = NULL;
      g_autoptr (LsTimeline) t = hand_run_error (h, &error);
      plain_job_check (&plain_jobs[i], t, error);
      hand_free (h);
    }
}

LS_TEST_SUITE (LS_TEST (hooks_change_nothing))
