/* A libnccl for tests: collectives on the host's memory, of one process, done when a group ends.
 * KB_NCCL_WRONG=1: the results are wrong. */
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 8

typedef struct {
  const float *send;
  float *receive;
  size_t count;
  int kind; /* 0 all-reduce, 1 all-gather, 2 reduce-scatter */
} Call;

static Call calls[MAX_RANKS];
static int n_calls;

int
ncclGetVersion (int *version)
{
  *version = 22807;
  return 0;
}

const char *
ncclGetErrorString (int status)
{
  return status == 0 ? "no error" : "unhandled";
}

int
ncclCommInitAll (void **comms, int n, const int *devices)
{
  static int communicator;
  for (int i = 0; i < n; i++)
    comms[i] = &communicator;
  return n <= MAX_RANKS && devices ? 0 : 4;
}

int
ncclCommDestroy (void *comm)
{
  return comm ? 0 : 4;
}

int
ncclGroupStart (void)
{
  n_calls = 0;
  return 0;
}

/* Over copies: in place, one rank's result is another's operand. */
int
ncclGroupEnd (void)
{
  size_t count = calls[0].count, n = (size_t) n_calls, whole = calls[0].kind == 2 ? n * count : count;
  float *sent = malloc (n * whole * sizeof (float));
  for (size_t r = 0; r < n; r++)
    memcpy (sent + r * whole, calls[r].send, whole * sizeof (float));
  for (size_t r = 0; r < n; r++)
    for (size_t i = 0; i < (calls[r].kind == 1 ? n * count : count); i++) {
      float sum = 0;
      for (size_t s = 0; s < n; s++)
        sum += sent[s * whole + (calls[r].kind == 2 ? r * count + i : i % whole)];
      calls[r].receive[i] = calls[r].kind == 1 ? sent[i / count * whole + i % count] : sum + (getenv ("KB_NCCL_WRONG") != NULL);
    }
  free (sent);
  return 0;
}

static int
add (const void *send, void *receive, size_t count, int kind)
{
  calls[n_calls++] = (Call) { send, receive, count, kind };
  return 0;
}

int
ncclAllReduce (const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream)
{
  return type == 7 && op == 0 && comm && stream ? add (send, receive, count, 0) : 4;
}

int
ncclAllGather (const void *send, void *receive, size_t count, int type, void *comm, void *stream)
{
  return type == 7 && comm && stream ? add (send, receive, count, 1) : 4;
}

int
ncclReduceScatter (const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream)
{
  return type == 7 && op == 0 && comm && stream ? add (send, receive, count, 2) : 4;
}
