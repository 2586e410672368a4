/* capture/standin_nccl.c — communicators, most of whose ranks do not exist. Those that are captured together
 * with this one send it what they send; each other answers as one of these, or as this one, so that a small
 * payload comes back as it would if all ranks had sent the same. */
#include "capture/standin.h"

#include <stdio.h>
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
  int n_peers;    /* on its node */
  bool *has_peer; /* of each rank */
  int number;     /* the Python side's; -1: it has not named it */
  uint64_t key;
  int *sources;     /* of each rank the captured one that answers for it, -1: this one; NULL: for all */
  uint8_t *is_real; /* of each rank: it is that one itself */
  uint64_t n_collectives, *n_sent, *n_received; /* to and from each rank */
  bool is_told;                                 /* that its ranks send to single ones */
} Communicator;

/* --- what the Python side says of one that is to be made --- */

#define LS_MARK 16 /* at the end of an id */

/* mark "": the next split, as the colours that NCCL is given do not say which ranks have the same. */
static struct Named {
  char mark[LS_MARK + 1];
  Communicator is;
} * named;
static size_t n_named, max_named;

void
ls_capture_group (const char *mark, int number, int n, int rank, uint64_t key, const int *sources,
                  const uint8_t *is_real)
{
  size_t i = 0;
  char text[LS_MARK + 1];
  snprintf (text, sizeof text, "%s", mark ? mark : "");
  ls_enter ("group");
  while (i < n_named && strcmp (named[i].mark, text) != 0)
    i++;
  if (i == max_named)
    named = realloc (named, (max_named = max_named ? 2 * max_named : 16) * sizeof *named);
  n_named += i == n_named;
  memcpy (named[i].mark, text, sizeof text);
  named[i].is = (Communicator) { .n = n, .rank = rank, .number = number, .key = key };
  if (sources) {
    named[i].is.sources = malloc ((size_t) n * sizeof *sources);
    named[i].is.is_real = malloc ((size_t) n);
    memcpy (named[i].is.sources, sources, (size_t) n * sizeof *sources);
    memcpy (named[i].is.is_real, is_real, (size_t) n);
  }
  ls_leave ();
}

/* NULL: none has the mark. One that is split off is named once. */
static const Communicator *
take_named (const char *mark)
{
  static Communicator split;
  for (size_t i = 0; i < n_named; i++) {
    if (strncmp (named[i].mark, mark, LS_MARK) != 0)
      continue;
    if (*mark)
      return &named[i].is;
    split = named[i].is;
    named[i] = named[--n_named];
    return &split;
  }
  return NULL;
}

void
ls_unique_id (LsUniqueId *ret)
{
  static int n;
  memset (ret, 'l', sizeof *ret);
  snprintf (ret->bytes + sizeof *ret - LS_MARK, LS_MARK, "u%014d", n++);
}

static Communicator *
make_communicator (int n, int rank, const Communicator *as)
{
  size_t each = sizeof (uint64_t) + sizeof (uint64_t) + sizeof (bool);
  Communicator *c = calloc (1, sizeof *c + (size_t) n * each);
  if (as)
    *c = *as;
  else
    c->number = -1;
  c->n = n;
  c->rank = rank;
  c->n_sent = (uint64_t *) (c + 1);
  c->n_received = c->n_sent + n;
  c->has_peer = (bool *) (c->n_received + n);
  ls_count ("communicators", 1);
  return c;
}

void *
ls_communicator_new (int n, int rank, const LsUniqueId *id)
{
  const Communicator *as = id ? take_named (id->bytes + sizeof *id - LS_MARK) : NULL;
  return make_communicator (n, rank, as && as->n == n ? as : NULL);
}

void *
ls_communicator_split (void *communicator)
{
  const Communicator *of = communicator, *as = take_named ("");
  return make_communicator (as ? as->n : of->n, as ? as->rank : of->rank, as);
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

/* ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, fp16, fp32, fp64, bf16, fp8 twice. */
static const size_t size_of_type[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

/* --- what is needed of other captured ranks ------------------------------------------------------------
 *
 * A host that posts a receive early goes on, as with NCCL: what was sent is fetched when something reads the
 * memory that it is for. Nothing reads large ones, so they are not sent at all. */

typedef struct {
  Communicator *c;
  LsSendKind kind;
  char *to;
  size_t bytes;  /* at to */
  size_t part;   /* of a rank's message that belongs here */
  uint64_t key;  /* of the messages */
  int type, op;  /* op: or the root, or the peer */
  size_t n_sent; /* bytes of a rank's message */
  char *own;     /* what this rank sent; NULL: nothing */
} Awaited;

static Awaited *awaited;
static size_t n_awaited, max_awaited;

#define REDUCE(type)                                                                                         \
  for (size_t i = 0; i < n; i++) {                                                                           \
    type x = ((const type *) from)[i], *y = (type *) to + i;                                                 \
    for (int k = 0; op == 1 && k < times; k++)                                                               \
      *y = (type) (*y * x);                                                                                  \
    if (op == 2 || op == 3)                                                                                  \
      *y = (op == 2) == (x > *y) ? x : *y;                                                                   \
    if (op == 0 || op == 4)                                                                                  \
      *y = (type) (*y + x * (type) times);                                                                   \
  }                                                                                                          \
  break

/* Adds what so many ranks sent alike, as ncclRedOp_t says: sum, product, max, min, mean. Floats of 16 and 8
 * bits, in which no program sends counts, stay. */
static void
reduce (void *to, const void *from, size_t n, int type, int op, int times)
{
  switch (type) {
  case 0:
    REDUCE (int8_t);
  case 1:
    REDUCE (uint8_t);
  case 2:
    REDUCE (int32_t);
  case 3:
    REDUCE (uint32_t);
  case 4:
    REDUCE (int64_t);
  case 5:
    REDUCE (uint64_t);
  case 7:
    REDUCE (float);
  case 8:
    REDUCE (double);
  default:
    break;
  }
}

#define DIVIDE(type)                                                                                         \
  for (size_t i = 0; i < n; i++)                                                                             \
    ((type *) to)[i] = (type) (((type *) to)[i] / (type) by);                                                \
  break

static void
divide (void *to, size_t n, int type, int by)
{
  switch (type) {
  case 2:
    DIVIDE (int32_t);
  case 4:
    DIVIDE (int64_t);
  case 7:
    DIVIDE (float);
  case 8:
    DIVIDE (double);
  default:
    break;
  }
}

/* What rank j sent: *buffer, newly allocated at first, or own where nobody answers for it. */
static const char *
message_of (const Awaited *a, int j, char **buffer)
{
  int source = a->c->sources[j];
  if (source < 0)
    return a->own;
  *buffer = *buffer ? *buffer : calloc (1, a->n_sent + 1);
  bool has_come = ls_mail_get (source, a->key, *buffer, a->n_sent, !a->c->is_real[j]) >= 0;
  return has_come ? *buffer : a->own;
}

/* Of ranks for which the same one answers there is one message. */
static void
receive_all (const Awaited *a)
{
  const Communicator *c = a->c;
  char *buffer = NULL;
  bool is_sum = a->kind == LS_SEND_ALL_REDUCE || a->kind == LS_SEND_SCATTER, is_first = true;
  size_t n = is_sum ? a->part / size_of_type[a->type] : 0;
  for (int j = 0; j < c->n; j++) {
    int times = 1;
    if (is_sum && j > 0 && c->sources[j] == c->sources[j - 1])
      continue;
    while (is_sum && j + times < c->n && c->sources[j + times] == c->sources[j])
      times++;
    const char *from = message_of (a, j, &buffer);
    if (!from)
      continue;
    from += a->kind == LS_SEND_SCATTER || a->kind == LS_SEND_ALL_TO_ALL
        ? (size_t) (a->kind == LS_SEND_ALL_TO_ALL && c->sources[j] < 0 ? j : c->rank) * a->part
        : 0;
    char *to = is_sum ? a->to : a->to + (size_t) j * a->part;
    if (!is_sum || is_first)
      memcpy (to, from, a->part);
    if (is_sum && (!is_first || times > 1))
      reduce (to, from, n, a->type, a->op, is_first ? times - 1 : times);
    is_first = false;
  }
  if (is_sum && a->op == 4)
    divide (a->to, n, a->type, c->n);
  free (buffer);
}

static void
receive (Awaited a)
{
  char *buffer = NULL;
  if (a.kind == LS_SEND_ROOT || a.kind == LS_SEND_PEER) {
    const char *from = message_of (&a, a.op, &buffer);
    if (from)
      memcpy (a.to, from, a.bytes);
  } else {
    receive_all (&a);
  }
  ls_written (a.to, a.bytes);
  free (buffer);
  free (a.own);
}

static bool
meets (const Awaited *a, const void *memory, size_t bytes)
{
  const char *at = memory;
  return at < a->to + a->bytes && a->to < at + bytes;
}

/* In the order in which they were asked for. */
void
ls_settle (const void *memory, size_t bytes)
{
  for (size_t i = 0; i < n_awaited;) {
    if (!meets (&awaited[i], memory, bytes)) {
      i++;
      continue;
    }
    Awaited a = awaited[i];
    memmove (&awaited[i], &awaited[i + 1], (--n_awaited - i) * sizeof a);
    receive (a);
  }
}

void
ls_forget (const void *memory, size_t bytes)
{
  size_t n = 0;
  for (size_t i = 0; i < n_awaited; i++) {
    if (meets (&awaited[i], memory, bytes))
      free (awaited[i].own);
    else
      awaited[n++] = awaited[i];
  }
  n_awaited = n;
}

static void
await (Awaited a, const void *own)
{
  if (own) {
    a.own = malloc (a.n_sent + 1);
    memcpy (a.own, own, a.n_sent);
  }
  ls_forget (a.to, a.bytes);
  if (n_awaited == max_awaited)
    awaited = realloc (awaited, (max_awaited = max_awaited ? 2 * max_awaited : 64) * sizeof a);
  awaited[n_awaited++] = a;
}

/* The number of this operation, which all ranks know alike. */
static uint64_t
key_of (Communicator *c, LsSendKind kind, int peer, bool is_send)
{
  if (kind != LS_SEND_PEER)
    return ls_mix (c->key, c->n_collectives++);
  uint64_t way = (uint64_t) (is_send ? c->rank : peer) << 32 | (uint32_t) (is_send ? peer : c->rank);
  return ls_mix (ls_mix (c->key, ~way), is_send ? c->n_sent[peer]++ : c->n_received[peer]++);
}

/* Of a communicator with other captured ranks. part: as ls_collective's bytes. */
static void
exchange (Communicator *c, LsSendKind kind, const void *from, void *to, size_t part, int type, int op,
          uint64_t key)
{
  size_t n = (size_t) c->n;
  Awaited a = { .c = c, .kind = kind, .to = to, .key = key, .type = type, .op = op, .part = part };
  if (kind == LS_SEND_ALL_TO_ALL)
    a.part = part / n;
  a.n_sent = kind == LS_SEND_SCATTER ? n * part : part;
  a.bytes = kind == LS_SEND_GATHER ? n * part : part;
  bool is_root = kind == LS_SEND_ROOT && c->sources[op] < 0; /* or stands for it */
  if (from && (kind != LS_SEND_ROOT || is_root)) {
    ls_settle (from, a.n_sent);
    ls_capture_mail_put (key, from, a.n_sent);
  }
  if (to && from && is_root)
    memmove (to, from, a.bytes);
  else if (to)
    await (a, from);
}

/* --- groups of calls: what was sent to a peer comes back from it, and what this rank broadcasts comes from
 * all --- */

typedef struct {
  Communicator *c;
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
  if (depth++ == 0)
    ls_record_mark ("(");
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

/* An exchange: that peer sends as this rank does, but as many as it counted. */
static bool
sends_to_peer_of (const Pending *p)
{
  for (size_t i = 0; i < n_pending; i++)
    if (pending[i].from && pending[i].c == p->c && pending[i].peer == p->peer && !pending[i].is_broadcast)
      return true;
  return false;
}

/* A pipeline, or a ring: an all-to-all sends to itself, or to all others, and so may a root. */
static bool
sends_to_single_ones (const Communicator *c)
{
  int n_sent = 0, n_received = 0;
  for (size_t i = 0; i < n_pending; i++) {
    if (pending[i].c != c || pending[i].is_broadcast)
      continue;
    if (pending[i].peer == c->rank)
      return false;
    n_sent += pending[i].from != NULL;
    n_received += pending[i].to != NULL;
  }
  return c->n == 2 || (n_sent < c->n - 1 && n_received < c->n - 1);
}

static void
tell_of_peers (void)
{
  for (size_t i = 0; i < n_pending; i++) {
    Communicator *c = pending[i].c;
    if (c->is_told || c->number < 0 || pending[i].is_broadcast || !sends_to_single_ones (c))
      continue;
    c->is_told = ls_mail_call (LS_CALL_PEERS, c->number, pending[i].peer);
  }
}

void
ls_group_end (void)
{
  if (--depth > 0)
    return;
  ls_record_mark (")");
  tell_of_peers ();
  for (size_t i = 0; i < n_pending; i++) {
    const Pending *p = &pending[i];
    bool is_own = !p->c->sources || p->c->sources[p->peer] < 0;
    const void *from = p->to && is_own && p->bytes <= ls_small ? sent_for (p) : NULL;
    if (from) {
      ls_settle (from, p->bytes);
      memmove (p->to, from, p->bytes);
      ls_written (p->to, p->bytes);
    } else if (p->to && !p->from && is_own && p->bytes <= ls_small && !sends_to_peer_of (p)) {
      ls_count ("messages of ranks that are not captured", 1);
    }
  }
  n_pending = 0;
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

/* All ranks sent what this one did. */
static void
answer_alone (const Communicator *c, LsSendKind kind, const void *from, void *to, size_t bytes, size_t count,
              int type, int op)
{
  size_t n = (size_t) c->n;
  ls_settle (from, kind == LS_SEND_SCATTER ? n * bytes : bytes);
  if (kind == LS_SEND_GATHER)
    for (size_t i = 0; i < n; i++)
      memmove ((char *) to + i * bytes, from, bytes);
  else
    memmove (to, kind == LS_SEND_SCATTER ? (const char *) from + (size_t) c->rank * bytes : from, bytes);
  ls_written (to, kind == LS_SEND_GATHER ? n * bytes : bytes);
  if (op == 0 && (kind == LS_SEND_ALL_REDUCE || kind == LS_SEND_SCATTER))
    reduce (to, to, count, type, op, c->n - 1);
}

void
ls_collective (const char *name, const void *from, void *to, size_t count, int type, int op,
               void *communicator, void *stream, LsSendKind kind)
{
  Communicator *c = communicator;
  size_t bytes = count * (type >= 0 && type < 12 ? size_of_type[type] : 1);
  size_t n = (size_t) c->n;
  bool is_peer = kind == LS_SEND_PEER,
       is_whole = bytes * (kind == LS_SEND_GATHER || kind == LS_SEND_SCATTER ? n : 1) <= ls_small;
  connect (c, kind, op);
  uint64_t work = ls_trace (name, (const int64_t[]) { (int64_t) count, type, c->n, kind }, 4);
  ls_stream_work (stream, work, seconds_of (bytes, c->n, kind));
  ls_count ("collectives", 1);
  ls_group_start ();
  ls_record ('m', stream, " %d %s %zu %d %d", c->number, name, count, type, op);
  if (kind == LS_SEND_ROOT || is_peer)
    add_pending ((Pending) { c, from, to, bytes, op, kind == LS_SEND_ROOT });
  uint64_t key = key_of (c, kind, op, from != NULL);
  if (is_whole && c->sources && (!is_peer || c->sources[op] >= 0))
    exchange (c, kind, from, to, bytes, type, op, key);
  else if (is_whole && from && to)
    answer_alone (c, kind, from, to, bytes, count, type, op);
  ls_group_end ();
}
