/* capture/standin_nccl.c — communicators of ranks that do not exist: each answers as this one. A small
 * payload comes back as it would if all ranks had sent the same. */
#include "capture/standin.h"

#include <stdlib.h>
#include <string.h>

/* What NCCL keeps in a GPU's memory, MiB. Of a communicator's rings and trees from its first collective:
 * measured with 2 and with more of 4 A100 (NVIDIA/nccl issue 964). For each peer of the same node to which it
 * sends: 3.28 GB for 7 peers (issue 1685, 8 H100, 32 channels a peer). Between nodes peers share one buffer
 * (issue 1450), which is not counted. */
enum { LS_PAIR_MIB = 544, LS_RINGS_MIB = 688, LS_PEER_MIB = 447 };

typedef struct {
  int n, rank;
  bool has_rings;
  int n_peers;     /* on its node */
  bool has_peer[]; /* of each rank */
} Communicator;

/* Of the next split: the colours that NCCL is given do not say how many ranks have the same. */
static int expected_n, expected_rank = -1;

void
ls_capture_expect_group (int n, int rank)
{
  expected_n = n;
  expected_rank = rank;
}

void *
ls_communicator_new (int n, int rank)
{
  Communicator *c = calloc (1, sizeof *c + (size_t) n * sizeof (bool));
  c->n = n;
  c->rank = rank;
  ls_count ("communicators", 1);
  return c;
}

void *
ls_communicator_split (void *communicator)
{
  const Communicator *of = communicator;
  bool is_known = expected_rank >= 0;
  void *c = ls_communicator_new (is_known ? expected_n : of->n, is_known ? expected_rank : of->rank);
  expected_rank = -1;
  return c;
}

int
ls_communicator_n (void *communicator)
{
  return ((Communicator *) communicator)->n;
}

int
ls_communicator_rank (void *communicator)
{
  return ((Communicator *) communicator)->rank;
}

/* --- groups of calls: what was sent to a peer comes back from it, and what this rank broadcasts comes from
 * all --- */

typedef struct {
  const void *from;
  void *to;
  size_t bytes;
  int peer; /* or the root */
  bool is_broadcast;
} Pending;

static _Thread_local Pending *pending;
static _Thread_local size_t n_pending, max_pending;
static _Thread_local int depth;

void
ls_group_start (void)
{
  depth++;
}

static void
add_pending (Pending p)
{
  if (n_pending == max_pending)
    pending = realloc (pending, (max_pending = max_pending ? 2 * max_pending : 64) * sizeof *pending);
  pending[n_pending++] = p;
}

/* Its payload; NULL: none was sent. */
static const void *
sent_for (const Pending *p)
{
  for (size_t i = 0; i < n_pending; i++) {
    const Pending *q = &pending[i];
    bool fits = q->is_broadcast == p->is_broadcast && q->bytes == p->bytes && q->from && q->from != q->to;
    if (fits && (p->is_broadcast || q->peer == p->peer))
      return q->from;
  }
  return NULL;
}

void
ls_group_end (void)
{
  if (--depth > 0)
    return;
  for (size_t i = 0; i < n_pending; i++) {
    const Pending *p = &pending[i];
    const void *from = p->to && p->bytes <= LS_SMALL ? sent_for (p) : NULL;
    if (from) {
      memmove (p->to, from, p->bytes);
      ls_written (p->to, p->bytes);
    }
  }
  n_pending = 0;
}

/* ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, fp16, fp32, fp64, bf16, fp8 twice. */
static const size_t size_of_type[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

#define TIMES(type)                                                                                          \
  for (size_t i = 0; i < count; i++)                                                                         \
  ((type *) memory)[i] = (type) (((type *) memory)[i] * (type) n)

/* A sum over n equal ranks. fp16 and fp8, in which no program sends counts, keep one's own. */
static void
multiply (void *memory, size_t count, int type, int n)
{
  switch (type) {
  case 2:
    TIMES (int32_t);
    break;
  case 3:
    TIMES (uint32_t);
    break;
  case 4:
    TIMES (int64_t);
    break;
  case 5:
    TIMES (uint64_t);
    break;
  case 7:
    TIMES (float);
    break;
  case 8:
    TIMES (double);
    break;
  default:
    break;
  }
}

/* Seconds on the wire of a ring, by what each rank sends and receives. */
static double
seconds_of (size_t bytes, int n, LsSendKind kind)
{
  double share = n > 1 ? (double) (n - 1) / n : 0;
  double wire = kind == LS_SEND_ALL_REDUCE                ? 2 * share * (double) bytes
      : kind == LS_SEND_GATHER || kind == LS_SEND_SCATTER ? share * (double) bytes * n
                                                          : (double) bytes;
  return 10e-6 + wire / ls_device.bus;
}

static void
take (int mib)
{
  ls_take ((size_t) mib << 20);
  ls_count ("MiB of NCCL", mib);
}

/* That ranks of a node are neighbours is assumed. Who sends to one or two of a small group is a stage of a
 * pipeline, and those lie on other nodes. */
static void
connect_peer (Communicator *c, int peer)
{
  int per_node = ls_device.n_devices;
  if (peer < 0 || peer >= c->n || peer == c->rank || c->has_peer[peer]
      || peer / per_node != c->rank / per_node)
    return;
  c->has_peer[peer] = true;
  c->n_peers++;
  if (c->n_peers > 2)
    take (c->n_peers == 3 ? 3 * LS_PEER_MIB : LS_PEER_MIB);
}

static void
connect (Communicator *c, LsSendKind kind, int peer)
{
  if (kind == LS_SEND_PEER) {
    connect_peer (c, peer);
  } else if (kind == LS_SEND_ALL_TO_ALL) {
    for (int i = 0; i < c->n; i++)
      connect_peer (c, i);
  } else if (!c->has_rings && c->n > 1) {
    c->has_rings = true;
    take (c->n == 2 ? LS_PAIR_MIB : LS_RINGS_MIB);
  }
}

void
ls_collective (const char *name, const void *from, void *to, size_t count, int type, int op,
               void *communicator, void *stream, LsSendKind kind)
{
  Communicator *c = communicator;
  size_t bytes = count * (type >= 0 && type < 12 ? size_of_type[type] : 1);
  size_t n = (size_t) c->n;
  bool is_sum = op == 0,
       is_whole = bytes * (kind == LS_SEND_GATHER || kind == LS_SEND_SCATTER ? n : 1) <= LS_SMALL;
  (void) name;
  connect (c, kind, op);
  ls_stream_work (stream, seconds_of (bytes, c->n, kind));
  ls_count ("collectives", 1);
  if (depth > 0 && (kind == LS_SEND_ROOT || kind == LS_SEND_PEER))
    add_pending ((Pending) { from, to, bytes, op, kind == LS_SEND_ROOT });
  if (!is_whole || !from || !to)
    return;
  if (kind == LS_SEND_GATHER)
    for (size_t i = 0; i < n; i++)
      memmove ((char *) to + i * bytes, from, bytes);
  else
    memmove (to, kind == LS_SEND_SCATTER ? (const char *) from + (size_t) c->rank * bytes : from, bytes);
  ls_written (to, kind == LS_SEND_GATHER ? n * bytes : bytes);
  if (is_sum && (kind == LS_SEND_ALL_REDUCE || kind == LS_SEND_SCATTER))
    multiply (to, count, type, c->n);
}
