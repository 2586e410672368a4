/* io/write_assumed.h — what the simulator assumes of a machine beside what was measured there. */
#ifndef LS_IO_WRITE_ASSUMED_H
#define LS_IO_WRITE_ASSUMED_H

#include <glib.h>

/* One such figure. */
typedef struct {
  const char *what; /* static                                                   */
  const char *unit; /* static: "us", "GB/s", "" of a ratio                      */
  double assumed;   /* NaN: it depends on a cluster, and none was named         */
  double measured;
  const char *note; /* static: what the measurement is not; NULL: nothing to say */
  char *use;        /* how to simulate with what was measured; NULL: it cannot be told. Owned */
} LsAssumption;

void ls_assumption_clear (gpointer assumption);

/* A table with a verdict on each: they agree within a tenth, or how far apart they are. "" of
 * none. Newly allocated. */
char *ls_assumptions_to_text (const GArray *assumptions);

#endif
