/* lockstep/lockstep.h — predict one training step of a large model on a cluster.
 *
 *   #include <stdio.h>
 *
 *   #include <lockstep/lockstep.h>
 *
 *   static LsAnswer *
 *   simulate (GError **error)
 *   {
 *     static const char *const options[][2] = {
 *       { "model", "llama3.1-8b" }, { "cluster", "dgx-h100" }, { "gpus", "8" }, { "tp", "2" }, { "pp", "2" },
 *     };
 *     g_autoptr (LsRequest) request = ls_request_new ("run", error);
 *     for (guint i = 0; i < G_N_ELEMENTS (options); i++)
 *       if (!ls_request_set (request, options[i][0], options[i][1], error))
 *         return NULL;
 *     return ls_request_run (request, error);
 *   }
 *
 *   int
 *   main (void)
 *   {
 *     g_autoptr (GError) error = NULL;
 *     g_autoptr (LsAnswer) answer = simulate (&error);
 *     if (!answer) {
 *       fprintf (stderr, "%s\n", error->message);
 *       return ls_error_exit_code (error);
 *     }
 *     g_autofree char *text = ls_answer_format (answer, LS_FORM_TEXT, NULL);
 *     printf ("%s", text);
 *     return 0;
 *   }
 *
 * What the command line does, a program does: it asks with a command, keys and values, and gets an answer as
 * text, JSON or CSV. ls_commands() and ls_command_options() list what there is to ask.
 *
 * All functions that can fail return FALSE or NULL and set an error of LS_ERROR;
 * ls_error_exit_code() turns it into the exit code that the program uses.
 * Nothing is printed, nothing exits. Objects are independent of each other, and an answer outlives its
 * request: two threads may run two requests at once, but not share one. Returned strings are
 * newly allocated UTF-8 (g_free) unless said otherwise.
 *
 * Names of models, clusters, strategies and traces are looked up as a path, then in
 * $LS_DATA_DIR, ./models (./topologies, ./strategies, ./traces) and the installed data. */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <lockstep/command.h>
#include <lockstep/error.h>
#include <lockstep/request.h>
#include <lockstep/units.h>
#include <lockstep/version.h>

#endif
