/* The program at the beginning of lockstep.h, which run.sh holds against it, and builds
 * and runs against an installed Lockstep. */
#include <stdio.h>

#include <lockstep/lockstep.h>

static LsResult *
simulate (GError **error)
{
  static const char *const knobs[][2] = {
    { "model", "llama3.1-8b" }, { "cluster", "dgx-h100" }, { "gpus", "8" }, { "tp", "2" }, { "pp", "2" },
  };
  g_autoptr (LsJob) job = ls_job_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (!ls_job_set (job, knobs[i][0], knobs[i][1], error))
      return NULL;
  return ls_job_run (job, error);
}

int
main (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsResult) result = simulate (&error);
  if (!result) {
    fprintf (stderr, "%s\n", error->message);
    return ls_error_exit_code (error);
  }
  g_autofree char *summary = ls_result_summary (result, LS_TEXT_PLAIN);
  printf ("%s", summary);
  return 0;
}
