/* base/transport.h — how processes of a team talk: what lockstep-mpi.so implements.
 *
 * The module is loaded by --mpi alone, so that the program starts, and runs, where there is no MPI.
 * All is called from one thread. What goes wrong on the way ends all processes (MPI's own handler):
 * none of these fails but join. */
#ifndef LS_SWEEP_TRANSPORT_H
#define LS_SWEEP_TRANSPORT_H

#include <glib.h>
#include <stdbool.h>

typedef struct {
  /* n_here: processes on this machine. NULL, or what is wrong (static). */
  const char *(*join) (guint *ret_rank, guint *ret_n, guint *ret_n_here);
  void (*send) (guint to, const void *data, guint size);
  /* False: nothing is there. Messages of one sender come in their order. */
  bool (*receive) (void *data, guint size, guint *ret_from);
  void (*leave) (void);
} LsTransport;

/* The one name that the module exports, of an LsTransport. */
#define LS_TRANSPORT_SYMBOL "ls_transport"
#define LS_TRANSPORT_MODULE "lockstep-mpi.so"

#endif
