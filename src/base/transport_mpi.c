/* base/transport_mpi.c — LsTransport over MPI: all of lockstep-mpi.so, the one file that sees mpi.h. */
#include <gmodule.h>
#include <mpi.h>

#include "base/team.h"

G_MODULE_EXPORT extern const LsTransport ls_transport;

static bool has_begun; /* by us, not by the program that links liblockstep */

static const char *
join (guint *ret_rank, guint *ret_n, guint *ret_n_here)
{
  int has_mpi, level, rank, n, n_here;
  MPI_Initialized (&has_mpi);
  if (!has_mpi && MPI_Init_thread (NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
    return "MPI does not start";
  has_begun = !has_mpi;
  MPI_Query_thread (&level);
  if (level < MPI_THREAD_FUNNELED)
    return "this MPI does not go with threads";
  MPI_Comm here;
  MPI_Comm_rank (MPI_COMM_WORLD, &rank);
  MPI_Comm_size (MPI_COMM_WORLD, &n);
  MPI_Comm_split_type (MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_size (here, &n_here);
  MPI_Comm_free (&here);
  *ret_rank = (guint) rank;
  *ret_n = (guint) n;
  *ret_n_here = (guint) n_here;
  return NULL;
}

static void
send (guint to, const void *data, guint size)
{
  MPI_Send (data, (int) size, MPI_BYTE, (int) to, 0, MPI_COMM_WORLD);
}

static bool
receive (void *data, guint size, guint *ret_from)
{
  int is_there;
  MPI_Status status;
  MPI_Iprobe (MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &is_there, &status);
  if (!is_there)
    return false;
  MPI_Recv (data, (int) size, MPI_BYTE, status.MPI_SOURCE, 0, MPI_COMM_WORLD, &status);
  *ret_from = (guint) status.MPI_SOURCE;
  return true;
}

static void
leave (void)
{
  if (has_begun)
    MPI_Finalize ();
}

const LsTransport ls_transport = { join, send, receive, leave };
