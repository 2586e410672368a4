/* exec/messages/messages.h — a collective message by message: runs a script (network/script.h).
 *
 * Problem. What a collective takes when each of its sends is a flow of its own, that
 * meets whatever else moves, and a place goes on when its own neighbours let it.
 *
 * Model. Each place is in a round. It begins the round's sends at once; their bytes leave
 * at their cap or what the flow net grants, and are with the receiver a latency after the
 * last of them has left. When all that it sends has left and all that it receives is there,
 * a place is in the next round. A message for a round that its receiver has not reached is
 * counted for that round. On its own,
 *
 *     ring all-reduce   base + 2 (n-1) (latency + ceil (S / (n flows cap)))
 *
 * with each message's moving time rounded up to a picosecond. Worked example: 4 members,
 * 1 MiB, one flow at 100 GB/s, latency 1 us: 6 messages one after the other, each of
 * 262,144 bytes in 2,621,440 ps: 21.72864 us.
 *
 * Where `flow` (network/coll.h: phases) differs. Alone on the network the two agree within
 * 5 % from 64 MiB on (tests/unit/exec/test_agreement.c). What is left:
 *
 *     rings over nodes: hops, of which flow counts NCCL's number (2 % at 64 MiB)
 *     pipelines (chains of broadcast and reduce, trees, NVLS, collnet): c chunks over d stages
 *         take c + d - 1 rounds here; flow takes the pipeline for full all the time. A script
 *         has 32 chunks a stage, so 3 % more; less than 2 KiB of a channel or more than 2^25
 *         messages are not cut further (network/shape.c) : a chain of 4,096 then fills for
 *         four times as long as it moves, where NCCL's larger slices fill longer still
 *     pairwise: batches one after the other, while NCCL's channels go through theirs by
 *         themselves: NVLink idles in all but the first (under 1 %)
 *     halving-doubling of a number of members that is no power of two: a phase waits for the
 *         slowest pair of its round, a member here only for its partner (0.8 to 0.9 of flow)
 *     tori: rounds pay their latency one after the other, where flow lets shards follow each
 *         other and takes the longer one of latency and bytes: rounds * longest way more
 *         (3 % of an all-to-all of 64 MiB on 512 chips in 4 rounds). Boxes whose axes do not
 *         divide: a turn lasts as long as its longest axis, over whose rounds the shorter
 *         ones are spread in whole shards (4 x 6 members: 16 %). Members that form no box:
 *         the rounds of an all-to-all are balanced only nearly
 *     small arrays: flow charges all that bytes do not explain to the call as a whole
 *
 * Up and down of a tree share the rounds of a place, though in NCCL different warps do them:
 * each moves a chunk a round, in the same time, so neither waits for the other unless one
 * direction alone is held up by other traffic.
 *
 * Speed. A message that holds a lease (exec/messages/lease.h) costs one event and no solving, a round
 * in which a place waits for its own bytes alone one more. Routes and times are kept from a
 * place's last send to the same receiver; nothing is allocated per message. Memory: O(places
 * x max_sends), and for early messages O(places x the most rounds that one is ahead).
 *
 * Not modelled: buffers of the receiver (a sender never waits for them).
 *
 * Reference: Patarasuk & Yuan, JPDC 69 (2009) for the ring; Hoefler, Schneider, Lumsdaine,
 * LogGOPSim, HPDC 2010 for replaying collectives send by send. */
#ifndef LS_EXEC_MESSAGES_MESSAGES_H
#define LS_EXEC_MESSAGES_MESSAGES_H

#include "base/parallel.h"
#include "exec/messages/lease.h"
#include "network/script.h"

/* What messages move on; one of a run. */
typedef struct {
  LsEngine *engine;
  LsFlowNet *flows;
  Leases *leases; /* NULL: every message is a flow of the net (reference); else made with
                     leases_new (flows, .., messages_revoked) */
  void *context;  /* handed to the callbacks */
  /* Is told of each flow of the net that is over, and what it was to move; may be NULL. */
  void (*flow_over) (void *context, const LsFlow *f, double asked);
  const LsProgress *progress; /* told of the messages of a script that have arrived; or NULL */
} MessageNet;

typedef struct Messages Messages;

/* What one collective needs while it runs, to be used again for the next of its kind.
 * net and script are borrowed. */
Messages *messages_new (const MessageNet *net, const LsScript *script,
                        void (*finished) (void *context, void *owner, LsTime at));
void messages_free (Messages *m);               /* NULL allowed; nothing of it is in progress */
size_t messages_bytes (const LsScript *script); /* of memory that messages_new() takes */

/* All places enter round 0 now; script->base is the caller's. finished is called, once,
 * when all are done: perhaps at once. resource_bytes: by resource, what moves is added to
 * it until then; may be NULL. */
void messages_begin (Messages *m, void *owner, double *resource_bytes);

void messages_revoked (Lease *lease);

/* The whole script on an idle cluster, base included. LS_TIME_NEVER if it is not over after
 * half of that. progress: of its messages, where they are events; or NULL. */
LsTime ls_messages_time_alone (const LsScript *script, const LsCluster *cluster, const LsProgress *progress);
/* The same by events alone (reference). */
LsTime ls_messages_time_by_events (const LsScript *script, const LsCluster *cluster,
                                   const LsProgress *progress);
/* The same without events, base not included. capacity: of the script's cluster, by resource.
 * False: a resource could fill, and events must tell. */
bool messages_time_unshared (const LsScript *script, const double *capacity, LsTime *ret_end);

#endif
