/* network/coll.h — a collective as phases: a latency term, then a coupled load.
 *
 * A phase first takes `latency` with nothing moving, then moves `demand_bytes` on
 * each of its flows; every flow runs at the same rate r <= rate_cap, and loads
 * resource i with coef_i * r (coefficients are integers in units of
 * 1/LS_COEF_ONE = 2^-20: how many flows cross it). Resources are those of
 * cluster/cluster.h: trunks, then each GPU's HBM.
 *
 * A limit lives either in a trunk's capacity or in a phase's rate_cap, never in
 * both. */
#ifndef LS_NETWORK_COLL_H
#define LS_NETWORK_COLL_H

#include <glib.h>
#include <stdbool.h>

#include <lockstep/units.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/enum_name.h"
#include "cluster/cluster.h"
#include "network/nccl/nccl.h"
#include "plan/collective.h"

extern const LsEnumName ls_coll_kind_names[LS_N_COLL_KINDS]; /* of what groups call, by value */
const char *ls_coll_kind_name (LsCollKind kind);             /* static: "all-reduce", "send-recv" */
bool ls_coll_kind_has_root (LsCollKind kind);                /* broadcast, reduce, gather, scatter */

/* FLOW: a phase at a time, links shared. ALPHABETA: nothing shared. STEP: each message
 * of the algorithm is a flow of its own (script.h). */
typedef enum { LS_NETWORK_FLOW, LS_NETWORK_ALPHABETA, LS_NETWORK_STEP } LsNetworkFidelity;

/* How NCCL moves data: Simple for bandwidth, LL (half of it, a flag beside each word)
 * and LL128 (15 of 16 bytes are data) for latency. AUTO: what NCCL would choose. */
typedef enum {
  LS_PROTOCOL_AUTO,
  LS_PROTOCOL_SIMPLE,
  LS_PROTOCOL_LL,
  LS_PROTOCOL_LL128,
  LS_N_PROTOCOLS
} LsProtocol;

extern const char *const ls_protocol_names[LS_N_PROTOCOLS]; /* "Simple"; AUTO: "auto" */

typedef struct {
  uint32_t resource; /* first, as ls_compare_uint32() orders by it */
  uint64_t coef;     /* 2^-20 flows */
} LsLoad;

typedef struct {
  LsTime latency;
  double demand_bytes; /* per flow; 0: latency only */
  double rate_cap;     /* bytes/s of one flow       */
  uint32_t n_loads;
  LsLoad *loads;     /* sorted by resource, each once                                               */
  double loads_rate; /* bytes/s that these leave one flow while nothing else moves; 0: not found yet */
} LsPhase;

typedef struct {
  const char *algorithm; /* static, of ls_coll_algorithms(); "" with one member */
  const char *protocol;  /* static: "Simple"; "" with one member               */
  double sm_share;       /* of each member's GPU, from launch to end */
  double array_bytes;    /* what LsNccl.stall_per_byte counts            */
  uint32_t n_phases;
  LsPhase *phases;
  uint32_t n_periods; /* 1; more: loads are those of the first of so many periods of hosts (loads.c) */
  const uint32_t *like_period; /* [n_periods] or of the first of each sort: which one that is; NULL: there is
                                  one. Lives as long as the loads */
} LsCollPlan;

/* What calls of other sizes have in common, such as the messages of n^2 pairs by link: kept
 * from one call to the next, and added up once. Plans are the same to the bit; their loads
 * live no longer than this. For calls on one cluster, one at a time. */
typedef struct LsCollMemo LsCollMemo;
LsCollMemo *ls_coll_memo_new (void);
void ls_coll_memo_free (LsCollMemo *memo); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCollMemo, ls_coll_memo_free)

/* What is asked. gpus: n distinct GPUs in communicator order (NCCL orders its rings by
 * topology inside a node and by the lowest rank of each node across, so the order also matters
 * for send/recv, for the root, and for algorithms that NCCL does not have). root: a member
 * index, where the kind has one.
 *
 * bytes as nccl-tests counts: of the whole array (all-gather: the gathered size;
 * reduce-scatter: the size before scattering; gather, scatter: the whole at the root;
 * broadcast, reduce, send/recv, permute: one message); all-to-all: the send buffer of one member.
 * A barrier has none, whatever bytes says. */
typedef struct {
  LsCollKind kind;
  const uint32_t *gpus;
  uint32_t n;
  uint32_t root;
  uint64_t bytes;
  const char *algorithm; /* of ls_coll_algorithms(); NULL: choose */
  LsProtocol protocol;   /* LS_PROTOCOL_AUTO: choose              */
  LsCollMemo *memo;      /* NULL: none                            */
  /* All-to-all with unequal parts: member j receives weights[j] of the sum of the weights from
   * everybody, or sends so much to everybody; bytes are those that the mean member sends. Only
   * pairwise knows it: others take what the busiest member moves for all. NULL: equal parts. */
  const uint32_t *weights; /* [n]; their sum is above 0 and below 2^31 */
  bool weighs_senders;
  const LsSpread *spread; /* of dispatch and combine, which need it; NULL: none */
  bool carries_scores;    /* of these: scores of experts go with tokens, or their gradients back */
  uint32_t max_ctas;      /* thread blocks of NCCL at most (nccl.h); 0: as many as it has */
  bool is_light;          /* phases load nothing: they take their time and share with nobody */
  bool is_tiny; /* phases load nothing, and links that are slower than NCCL do not make them longer */
  const struct LsPlaces *places; /* of the cluster: the first period's loads will do; NULL: all are wanted */
} LsCollRequest;

/* Names of all algorithms, ending in NULL; static. */
const char *const *ls_coll_algorithms (void);
const char *ls_coll_algorithm_name (LsAlgorithm algorithm);       /* static; NULL: choose        */
bool ls_coll_algorithm_find (const char *name, LsAlgorithm *ret); /* false: there is no such one */

/* Kinds of nodes that these GPUs are on, as bits. */
uint32_t ls_coll_kinds (const LsCluster *c, const uint32_t *gpus, uint32_t n);

/* Whether the request can be met: its algorithm does this kind on these GPUs (NVLS, for
 * one, wants whole nodes) with this protocol. Without an algorithm always true. */
bool ls_coll_applies (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request);
/* Why the GPUs cannot meet it with the protocol that it asks for; static; NULL: they can. */
const char *ls_coll_lacks_protocol (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request);
/* Whether NCCL's tuner has a cost for the algorithm and the protocol there: a plug-in may choose them. */
bool ls_coll_is_of_tuner (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request);
/* What that algorithm does, and what it asks of the GPUs; newly allocated. */
char *ls_coll_rule (const char *algorithm);

/* LS_ERROR_LIMIT if the plan, or with LS_NETWORK_STEP the script, is more work than can be
 * waited for: of n members that all have messages for each other at most 2^28, message by
 * message as many, 2^24 at once. Cost: little, but with STEP and no algorithm a plan's. */
gboolean ls_coll_check_size (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                             LsNetworkFidelity fidelity, GError **error);

/* LS_ERROR_LIMIT if a command that moves so many one by one is more work than can be waited for. */
gboolean ls_coll_check_all (uint64_t n_messages, GError **error);

/* With one member: no phases. Without an algorithm: of those that NCCL would consider,
 * the one that is fastest alone. Everything is allocated in arena.
 * LS_NETWORK_ALPHABETA gives the same plan without loads, its rate_cap lowered to what
 * the links allow: nothing is shared. Never fails; asserts ls_coll_applies(). */
LsCollPlan *ls_coll_plan (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                          LsNetworkFidelity fidelity, LsArena *arena);

/* Message by message: script.h. The algorithm is the request's, else the one that
 * ls_coll_plan() takes; with one member there are no rounds. In arena; keeps request->gpus. */
struct LsScript;
const struct LsScript *ls_coll_script (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                                       LsArena *arena);

/* Time of the plan with nothing else on the network, for tests and tables. */
LsTime ls_coll_time_alone (const LsCluster *c, const LsCollPlan *plan);

/* The same with memory of any bandwidth: no longer than in any run, where GPUs have as much as their fastest
 * kernel was measured with. */
LsTime ls_coll_time_on_links (const LsCluster *c, const LsCollPlan *plan);

/* busbw / algbw as nccl-tests defines it, which is what each member of a ring sends per
 * byte of `bytes`: 2(n-1)/n all-reduce, (n-1)/n all-gather, reduce-scatter, all-to-all,
 * gather and scatter, 1 broadcast, reduce, permute and send/recv; 0 for a barrier and for one
 * member. */
double ls_coll_wire_factor (LsCollKind kind, uint32_t n);

/* What calls take alone, each kind of place asked once.
 *
 * Two groups take the same time if they lie alike (cluster/places.h). In a slice of a torus they do if one is
 * the other shifted along the axes, the links of which are alike, and goes round no edge that the other
 * does not (cluster/cluster.h: a carry from one axis to the next would tell them apart). In other clusters
 * without places they do if one is the other shifted by whole nodes, inside of a node, and if no link is
 * degraded and nodes are of one kind; else it is the GPUs themselves that count. */

/* For any clusters that outlive it, with one NCCL. One thread at a time. */
typedef struct LsCallTimes LsCallTimes;
/* nccl: borrowed. on_links: of these alone, memory being of any bandwidth (ls_coll_time_on_links()): for what
 * bounds a run. */
LsCallTimes *ls_call_times_new (const LsNccl *nccl, bool on_links);
void ls_call_times_free (LsCallTimes *times); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCallTimes, ls_call_times_free)

/* gpus ascend, but for a message back. 0: it cannot be carried out, or is too large to be planned. */
LsTime ls_call_time (LsCallTimes *times, const LsCluster *cluster, LsCollKind kind, uint64_t bytes,
                     const uint32_t *gpus, uint32_t n);

#endif
