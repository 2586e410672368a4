/* lockstep/lockstep.h — predict one training step of a large model on a cluster.
 *
 *   #include <stdio.h>
 *
 *   #include <lockstep/lockstep.h>
 *
 *   static LsResult *
 *   simulate (GError **error)
 *   {
 *     static const char *const knobs[][2] = {
 *       { "model", "llama3.1-8b" }, { "cluster", "dgx-h100" }, { "gpus", "8" }, { "tp", "2" }, { "pp", "2" },
 *     };
 *     g_autoptr (LsJob) job = ls_job_new ();
 *     for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
 *       if (!ls_job_set (job, knobs[i][0], knobs[i][1], error))
 *         return NULL;
 *     return ls_job_run (job, error);
 *   }
 *
 *   int
 *   main (void)
 *   {
 *     g_autoptr (GError) error = NULL;
 *     g_autoptr (LsResult) result = simulate (&error);
 *     if (!result) {
 *       fprintf (stderr, "%s\n", error->message);
 *       return ls_error_exit_code (error);
 *     }
 *     g_autofree char *summary = ls_result_summary (result, LS_TEXT_PLAIN);
 *     printf ("%s", summary);
 *     return 0;
 *   }
 *
 * All functions that can fail return FALSE or NULL and set an error of LS_ERROR;
 * ls_error_exit_code() turns it into the exit code that the program uses.
 * Nothing is printed, nothing exits. Objects are independent of each other: two
 * threads may run two jobs at once, but not share one. Returned strings are
 * newly allocated UTF-8 (g_free) unless said otherwise.
 *
 * Names of models, clusters, strategies and traces are looked up as a path, then in
 * $LS_DATA_DIR, ./models (./topologies, ./strategies, ./traces) and the installed data. */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <lockstep/error.h>
#include <lockstep/explore.h>
#include <lockstep/job.h>
#include <lockstep/measure.h>
#include <lockstep/units.h>
#include <lockstep/version.h>

#endif
