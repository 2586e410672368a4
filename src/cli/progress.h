/* cli/progress.h — how far a long command is: a line on a terminal, nothing into a file or a pipe. */
#ifndef LS_CLI_PROGRESS_H
#define LS_CLI_PROGRESS_H

#include <lockstep/lockstep.h>

typedef struct {
  gint64 started, shown; /* us; the same: nothing yet */
  gboolean has_terminal;
} CliProgress;

void cli_progress_begin (CliProgress *progress);
/* An LsProgressFunc, of a CliProgress. */
void cli_progress_show (guint64 n_done, guint64 n_to_do, gpointer progress);
/* The line is gone after it. */
void cli_progress_end (CliProgress *progress);

#endif
