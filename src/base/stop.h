/* base/stop.h — work that its user may not want any longer.
 *
 * Problem. A simulation of a few seconds is asked to end: by a signal, or as its time is over. What it does
 * then is in the innermost loops of several rooms, which have nothing else to do with who asked.
 *
 * Who gives work to a thread says to whom that thread listens (ls_stop_begin). Loops that may be long ask
 * (ls_stop_tick) and leave off. What they have made then is of no use: who gave the work asks once more when
 * it comes back (ls_stopped), and throws it away. A thread that listens to nobody is never stopped. */
#ifndef LS_BASE_STOP_H
#define LS_BASE_STOP_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  const gint *asked; /* not 0: stop; NULL: nobody can ask. Read atomically, borrowed */
  gint64 deadline;   /* us, monotonic; 0: none                                       */
  gint64 since;      /* us, monotonic: when somebody saw that it was asked; 0 at first. Atomic */
} LsStop;

/* Whether it was asked, grace_us ago or longer. Once it is so it stays so. */
bool ls_stop_is_asked (LsStop *stop, gint64 grace_us);

/* What this thread, and those of a loop that it runs (ls_parallel), do from now on ends grace_us after it is
 * asked. Borrowed; NULL: nobody asks. */
void ls_stop_begin (LsStop *stop, gint64 grace_us);

/* To whom this thread listens, and with which grace; NULL: to nobody. */
LsStop *ls_stop_current (gint64 *ret_grace_us);

/* Whether this thread is to leave off. */
bool ls_stopped (void);

/* The same, looked at one time in 1,024. n: of the loop, 0 at first. */
static inline bool
ls_stop_tick (uint32_t *n)
{
  return G_UNLIKELY ((++*n & 1023) == 0) && ls_stopped ();
}

#endif
