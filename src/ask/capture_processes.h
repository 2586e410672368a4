/* ask/capture_processes.h — the processes of a capture: one, or one for each role among a program's ranks.
 *
 * The first process finds out: where its ranks turn out to differ it writes the file "mail/roles" and ends
 * (capture/lockstep_ranks.py), and the capture begins anew with the ranks that the file names, side by side.
 * They meet in the folder "mail"; each writes what it saw into a folder of its own. */
#ifndef LS_ASK_CAPTURE_PROCESSES_H
#define LS_ASK_CAPTURE_PROCESSES_H

#include "ask/captured.h"

#define LS_CAPTURE_REFUSED "refused" /* the file in which the stand-ins say why they ended it */

typedef struct {
  uint32_t rank, stands_for; /* ranks; 0: all */
  uint32_t like;             /* the first of its role: it should do the same; itself: it is the first */
  GPid pid;
  char *output;              /* folder of what it saw */
  int status;                /* as of waitpid() */
  bool has_ended, was_ended; /* was_ended: by us, as another failed */
  bool is_kept;              /* it ended before the capture was interrupted, and is not run again */
} LsCaptureProcess;

/* All have ended: LsCaptureProcess, by rank. home: an empty folder, or that of the same capture, which was
 * stopped: those of its ranks that had ended are kept. NULL: LS_ERROR_USAGE: no such command;
 * LS_ERROR_FAILED: they wait for each other, with the lines on which they do; LS_ERROR_STOPPED. */
void ls_capture_remove (const char *folder); /* and what is in it */

#endif
