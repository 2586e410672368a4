/* network/algorithm.h — what coll_X.c files are made of (private to network/).
 *
 * A new algorithm is one file coll_X.c that defines an LsCollAlgorithm, its number in
 * plan/collective.h, and one line in the registry of coll.c. */
#ifndef LS_NETWORK_ALGORITHM_H
#define LS_NETWORK_ALGORITHM_H

#include "cluster/places.h"
#include "network/coll.h"
#include "network/nccl/tuning.h"
#include "network/script.h"

/* The members of one call that live on one host, by ascending GPU. */
typedef struct {
  const uint32_t *gpus;
  uint32_t n;
} LsCollHost;

/* Seats: the members host after host, on each by ascending GPU. NCCL numbers nodes by the first rank that
 * it finds on them and joins its rings and trees in that order; inside it follows the wiring (NCCL 2.30.7:
 * src/init.cc, nodesFirstRank; src/graph/connect.cc, connectRings). */
typedef struct {
  uint32_t n_hosts, min_nics; /* NICs in use of the host that uses the fewest */
  uint32_t per_host;          /* members of each host; 0: hosts differ in that */
  uint32_t most, fewest;      /* of any */
  /* Least common multiple of the members per host: channels entered at 0 .. lcm - 1 are all that differ,
   * counted up to 2^20. 1 on one host. */
  uint32_t n_entries;
  const LsCollHost *hosts; /* in order of their lowest members             */
  const uint32_t *sorted;  /* [n] GPU of a seat                            */
  const uint32_t *member;  /* [n] member in that seat                      */
  const uint32_t *seat;    /* [n] seat of a member                         */
  const uint32_t *host_of; /* [n] index into hosts of a seat               */
} LsCollSeats;

typedef struct {
  const LsCluster *cluster;
  const LsNccl *nccl;
  LsCollKind kind;
  const uint32_t *gpus; /* in communicator order */
  uint32_t n, root;
  uint64_t bytes;
  LsProtocol protocol;
  LsArena *arena;
  LsCollRequest asked;               /* of which the above are settled */
  const uint32_t *weights;           /* as asked; NULL: equal parts, or not an all-to-all */
  const struct LsPlaces *places;     /* as asked; NULL while that does not matter         */
  const struct LsCollPeriod *period; /* whose loads are wanted (loads.c); NULL: those of all hosts */
  LsCollSeats seats;
  const struct LsCollAlgorithm *algorithm; /* that it is planned, or told, by */
} LsCollCall;

#define LS_COLL_BIT(kind) (1u << (kind))
/* All-reduce and its halves; what goes round rings. */
#define LS_COLL_HALVES                                                                                       \
  (LS_COLL_BIT (LS_COLL_ALL_REDUCE) | LS_COLL_BIT (LS_COLL_ALL_GATHER) | LS_COLL_BIT (LS_COLL_REDUCE_SCATTER))
#define LS_COLL_OF_RINGS (LS_COLL_HALVES | LS_COLL_BIT (LS_COLL_BROADCAST) | LS_COLL_BIT (LS_COLL_REDUCE))

typedef struct LsCollAlgorithm {
  const char *name;
  uint32_t kinds;                           /* LS_COLL_BIT of what it can do                        */
  uint32_t automatic;                       /* of what NCCL, too, uses it for without being told to */
  bool (*applies) (const LsCollCall *call); /* on these GPUs; NULL: on all */
  const char *wants;                        /* what it asks of them, in words */
  bool is_of_ici;                           /* runs where there is no NCCL, and only there */
  bool is_of_tuner;                         /* without being told to, only where NCCL's tuner chooses it */
  bool only_simple;                         /* neither LL nor LL128 */
  bool turns; /* without a root, its messages do not change where all hosts take each other's place in turn */
  /* LsCollPeriod.like of a call that does not turn, but of which each message has one back, of the same
   * bytes, and stays in its host or goes to a member; in the arena. NULL, or returns NULL: nothing is
   * known. */
  const uint32_t *(*alike) (const LsCollCall *call, const struct LsCollPeriod *period, LsArena *arena);
  /* Messages that plan() looks at, where they may be more than n log n; or NULL. */
  uint64_t (*n_messages) (const LsCollCall *call);
  /* Fills all but the names. NULL: a phase for each round of the script, at the rates of
   * NCCL's sends. */
  void (*plan) (const LsCollCall *call, LsCollPlan *ret_plan);
  /* Fills a script from ls_script_of(). */
  void (*script) (const LsCollCall *call, LsScript *ret_script);
} LsCollAlgorithm;

extern const LsCollAlgorithm ls_coll_ring, ls_coll_tree, ls_coll_nvls, ls_coll_nvls_tree, ls_coll_p2p,
    ls_coll_shift, ls_coll_pairwise, ls_coll_direct, ls_coll_dissemination, ls_coll_hierarchical,
    ls_coll_halving, ls_coll_collnet, ls_coll_pat, ls_coll_server, ls_coll_naive, ls_coll_torus,
    ls_coll_dispatch, ls_coll_combine;

/* --- the shape of a call (shape.c) --- */

/* Hosts, and members, whose messages are wanted: the first ones. */
uint32_t ls_coll_loaded_hosts (const LsCollCall *call);
uint32_t ls_coll_loaded_members (const LsCollCall *call);
/* Whether NVSwitches join all GPUs of each host. */
bool ls_coll_has_nvswitch (const LsCollCall *call);
/* What the busiest member moves of an all-to-all over what the mean one does: 1 with equal parts. */
uint64_t ls_coll_sum_of_weights (const LsCollCall *call);
double ls_coll_busiest_over_mean (const LsCollCall *call);
/* NICs in use of a host. */
uint32_t ls_coll_nics (const LsCluster *c, const LsCollHost *host);
/* What a host is; the least of what the links of all hosts carry, by their data sheets. */
const LsClusterSpec *ls_coll_host_spec (const LsCollCall *call, uint32_t h);
LsNcclLinks ls_coll_links (const LsCollCall *call);
/* Bytes/s that NCCL's channels move on each edge of a ring, all channels together. */
double ls_coll_bus (const LsCollCall *call);
/* The same inside a node: less where a step is staged in host memory. */
double ls_coll_bus_inside (const LsCollCall *call);
/* Channels that NCCL opens on this shape, and those that this many bytes use. */
uint32_t ls_coll_max_channels (const LsCollCall *call);
uint32_t ls_coll_channels (const LsCollCall *call);
/* Chunks of a pipeline of this many stages, through which each of n_channels moves its part
 * of the bytes; n_messages: what the script sends for each chunk. Filling takes 3 % of the
 * time at most, if a chunk has 2 KiB a channel and the script at most 2^25 messages. */
uint32_t ls_coll_chunks (const LsCollCall *call, uint32_t n_channels, uint32_t stages, uint64_t n_messages);
/* Seat of the x-th member of host h, in the order of a channel that enters each host at
 * its member `entry`; and x of a seat. */
uint32_t ls_coll_seat_in_order (const LsCollCall *call, uint32_t h, uint32_t entry, uint32_t x);
uint32_t ls_coll_order_of_seat (const LsCollCall *call, uint32_t seat, uint32_t entry);

/* --- seats (shape.c) --- */

/* Those of its GPUs, in its arena. With a memo: once. */
void ls_coll_take_seats (LsCollCall *call);

/* --- limits (shape.c): LS_ERROR_LIMIT if there is more to do --- */

gboolean ls_coll_plan_is_small (const LsCollCall *call, const LsCollAlgorithm *a, GError **error);
gboolean ls_coll_script_is_small (const LsCollCall *call, const LsCollAlgorithm *a, const LsScript *s,
                                  GError **error);

/* --- plans from scripts (rounds.c) --- */

/* kind, n, root, gpus, cluster, and HBM as in a ring; no blocks, no rounds. */
LsScript ls_script_of (const LsCollCall *call);
/* All-to-all: n_blocks of all members together, n^2, which counts modulo 2^32 from 65,536
 * members on: a block is bytes / n all the same. */
void ls_script_cut (const LsCollCall *call, LsScript *s, uint32_t n_blocks);

/* Whether two members are on different hosts. */
static inline bool
ls_coll_is_across (const LsCollCall *call, uint32_t from, uint32_t to)
{
  return call->seats.host_of[call->seats.seat[from]] != call->seats.host_of[call->seats.seat[to]];
}

/* Rounds of a script in which all members send to the root, or it to all, by its kind; and one in which each
 * sends a block to the next. All else is left to do (coll_star.c, coll_p2p.c). */
void ls_script_of_root (LsScript *s);
void ls_script_shift (LsScript *s);
/* Of a script in each of whose rounds every place receives max_sends messages. */
uint32_t ls_script_receives_most (const LsScript *s, uint32_t place, uint32_t round);

/* Costs of a script whose messages move like single sends of NCCL: hops, p2p rates, all
 * channels for each message. */
void ls_script_like_p2p (const LsCollCall *call, LsScript *s);
/* Then: one member sends to, or hears from, all others at once, k of all on its host. Its
 * channels are dealt to the messages; those to its host share what it can move there, and
 * the others what it can move elsewhere. */
void ls_script_star (const LsCollCall *call, LsScript *s, uint32_t k);

/* --- pipelines: chunks that follow one another through stages (coll_tree.c) --- */

#define LS_NEVER (UINT32_C (1) << 31) /* for a stage */

/* Of a place: it sends chunk c to another one in round `out` + c, and has a message of c from anywhere in
 * round `in` + c. */
typedef struct {
  uint32_t to, out, in;
  uint32_t first, n; /* blocks of chunk 0 */
  bool reduces;
} LsEdge;

/* All of them; else those of one round: what is sent in it, or, if that is NULL, how much is received. */
struct LsEdges {
  const LsScript *s;
  GArray *all; /* LsEdge */
  uint32_t round, n;
  LsSend *sends;
};

static inline void
ls_edges_add (LsEdges *e, LsEdge edge)
{
  if (e->all) {
    g_array_append_val (e->all, edge);
    return;
  }
  uint32_t stage = e->sends ? edge.out : edge.in;
  uint32_t chunk = stage == LS_NEVER || e->s->n_rounds > 1 ? e->round - stage : 0;
  if (chunk >= e->s->n_chunks)
    return;
  if (e->sends)
    e->sends[e->n] = (LsSend) {
      .to = edge.to, .first = edge.first + chunk * e->s->step, .n = edge.n, .reduces = edge.reduces
    };
  e->n++;
}

/* In a tree: a block of each chunk goes up to the parent (UINT32_MAX: there is none) and, from a stage `down`
 * on, to the children. */
void ls_edges_add_tree (LsEdges *edges, uint32_t parent, const uint32_t *children, uint32_t n_children,
                        uint32_t up, uint32_t down, uint32_t first);

/* Rounds of a script of so many stages. In a script of one round each edge carries its chunk in that. No
 * place has more than max_sends edges. */
void ls_script_pipe (LsScript *s, uint32_t n_chunks, uint32_t step, uint32_t n_stages,
                     void (*edges) (const LsScript *s, uint32_t place, LsEdges *ret));

/* A pipeline pays its latency (without base) once, not for every chunk, as chunks are on
 * their way while others are waited for: a hop is latency / (hops one after another in the longest
 * way through the rounds), n - 1 in a chain, near n_rounds where places wait for each other. All
 * else of the script is set; its edges, which all rounds ask for, are found here once. */
void ls_script_pipeline (const LsCollCall *call, LsScript *s, LsTime latency);

/* One phase for rounds first .. first + n_rounds - 1 of a script, run into each other. */
typedef struct {
  uint32_t first, n_rounds;
  bool is_same; /* all these rounds have the messages of the first              */
  LsTime latency;
  double min_s; /* what the bytes take at the least, for limits other than links; 0:
                  * from the rate caps of the script                             */
} LsRounds;

/* So many blank phases of a plan on as many flows. */
LsPhase *ls_plan_phases (const LsCollCall *call, uint32_t n_flows, uint32_t n, LsCollPlan *ret_plan);

/* A flow's demand is 1 / n_flows of what the busiest member sends or receives. Cost:
 * linear in the messages. */
void ls_phase_of_rounds (const LsCollCall *call, const LsScript *s, const LsRounds *rounds, uint32_t n_flows,
                         LsPhase *ret_phase);

/* One phase for all rounds of a script, run into each other; min_s as in LsRounds. */
void ls_plan_as_one (const LsCollCall *call, const LsScript *s, uint32_t n_flows, LsTime latency,
                     double min_s, LsCollPlan *ret_plan);

/* A phase for each round, with all channels for what a member sends; latency of a round:
 * the longest of its messages', and base before the first. Without bytes one phase: base,
 * and the longest way through the rounds. */
void ls_plan_of_rounds (const LsCollCall *call, const LsScript *s, LsCollPlan *ret_plan);

/* --- loads: added in any order, then summed by resource and sorted --- */

typedef struct {
  const LsCluster *cluster;
  LsLoad *slots; /* hashed by resource, or all of them in order; coef 0: free */
  uint32_t n, n_slots;
  bool has_all;
} LsLoadList;

LsLoadList ls_load_list_new (const LsCluster *c);
void ls_load_list_add (LsLoadList *list, uint32_t resource, uint64_t coef);
/* coef on each trunk between the two GPUs; where switches hash, channel by channel. */
void ls_load_list_add_route (LsLoadList *list, uint32_t from, uint32_t to, uint64_t coef);
/* All sums so far times `factor`, rounded. */
void ls_load_list_scale (LsLoadList *list, double factor);
/* Moves the sums into the phase and frees the list. */
void ls_load_list_finish (LsLoadList *list, LsArena *arena, LsPhase *phase);
/* Frees it as it is. */
void ls_load_list_clear (LsLoadList *list);
/* By resource, of which none is there twice. */
void ls_loads_sort (LsLoad *loads, uint32_t n);
/* Bytes/s that one flow gets while nothing else moves, of resources below n_resources; INFINITY: it loads
 * none of them. */
double ls_loads_rate (const LsCluster *c, const LsLoad *loads, uint32_t n, uint32_t n_resources);

/* --- what NCCL does, by numbers (nccl.c) --- */

/* Channels that a message of this size uses out of n: NCCL gives each at least
 * `bytes_per_channel`, and never takes fewer than one. */
uint32_t ls_nccl_channels (uint32_t n, uint64_t bytes, uint64_t bytes_per_channel);

/* Steps at which a member of a ring sends: 2(n-1) for all-reduce, else n-1. */
uint32_t ls_nccl_ring_sends (LsCollKind kind, uint32_t n);
LsTime ls_nccl_base (const LsNccl *nccl, LsCollKind kind); /* latency that no hop explains */
double ls_nccl_hbm_per_wire (const LsNccl *nccl, LsCollKind kind);

/* All that follow go by call->protocol, which is not AUTO then. */

/* Base and handshake; a hop of a ring inside a host; a hop across hosts. */
LsTime ls_nccl_start (const LsCollCall *call);
LsTime ls_nccl_ring_hop_intra (const LsCollCall *call);
LsTime ls_nccl_hop_inter (const LsCollCall *call, LsTuneAlgorithm algorithm);
/* A run of tree, ring, nvls or nvls-tree: latency, then seconds in which its bytes move if
 * NCCL alone limits them (0 without bytes). */
LsTime ls_nccl_latency (const LsCollCall *call, LsTuneAlgorithm algorithm);
double ls_nccl_seconds (const LsCollCall *call, LsTuneAlgorithm algorithm);
/* The same of a send/recv, a permute or an all-to-all, and which protocol is NCCL's. */
LsProtocol ls_nccl_p2p_protocol (const LsCollCall *call);
LsTime ls_nccl_p2p_latency (const LsCollCall *call);
double ls_nccl_p2p_seconds (const LsCollCall *call);
/* Of an all-to-all: seconds in which a member moves what stays on its host, and what does
 * not, side by side; the longer one is that of ls_nccl_p2p_seconds(). */
void ls_nccl_all_to_all_seconds (const LsCollCall *call, double *ret_inside, double *ret_across);

/* Why the call cannot go by the protocol that it asks for; static; NULL: it can. */
const char *ls_nccl_lacks_protocol (const LsCollCall *call);

/* What NCCL's tuner runs of `among`, a bit for each LsTuneAlgorithm, and with which protocol:
 * sets call->protocol if it is AUTO. false: the tuner does not know the call, or none of these. */
bool ls_nccl_choose (LsCollCall *call, uint32_t among, LsTuneAlgorithm *ret_algorithm);

/* --- calls whose hosts repeat (loads.c) --- */

typedef struct LsCollPeriod {
  const LsPlaces *at;
  uint32_t n;                  /* periods: two or more                              */
  uint32_t n_hosts, n_members; /* of one                                            */
  uint32_t first_host, shift;  /* where that of the first begins; hosts to the next */
  const uint32_t *like;        /* [n] of a call that does not turn: the first period that is loaded so */
} LsCollPeriod;

/* False: they do not repeat, or the call does not turn. Borrows the places. Cost: linear in the members. */
bool ls_coll_period (const LsCollCall *call, const LsPlaces *at, LsCollPeriod *ret);

/* Whether a period is the first of its sort. */
static inline bool
ls_coll_period_is_kept (const LsCollPeriod *p, uint32_t k)
{
  return p->like ? p->like[k] == k : k == 0;
}

/* What all periods load at a place of those that are kept, of what messages of these load anywhere: their
 * messages and, where the call does not turn, those to their members. */
void ls_coll_period_fold (const LsCollPeriod *p, const LsCluster *c, LsArena *arena, LsPhase *phase);

/* --- rings over links straight between GPUs (coll_ring.c) --- */

typedef struct {
  uint32_t n, n_gpus; /* rings; none of more than 16 GPUs            */
  uint32_t *gpu_at;   /* [n * n_gpus] GPU at a place of a ring       */
  uint32_t *place_of; /* [n * n_gpus] the inverse                    */
} LsMeshRings;

/* links: [n_gpus * n_gpus], from GPU i to j at i n_gpus + j. In arena. */
LsMeshRings ls_mesh_rings (const uint32_t *links, uint32_t n_gpus, LsArena *arena);

/* --- two binary trees over n hosts (coll_tree.c) --- */

#define LS_NO_HOST UINT32_MAX

typedef struct {
  uint32_t parent;   /* LS_NO_HOST at the root            */
  uint32_t child[2]; /* in order; LS_NO_HOST: none        */
  uint32_t depth;    /* 0 at the root; of ls_double_tree() */
} LsTreeNode;

typedef struct {
  uint32_t n_trees;    /* ls_n_trees()      */
  uint32_t depth;      /* of the deeper one */
  LsTreeNode *node[2]; /* [n] */
} LsDoubleTree;

/* Two, or one over one host. */
static inline uint32_t
ls_n_trees (uint32_t n_hosts)
{
  return n_hosts > 1 ? 2 : 1;
}

/* Without its depth. */
LsTreeNode ls_tree_node (uint32_t n_hosts, uint32_t tree, uint32_t host);
LsDoubleTree ls_double_tree (uint32_t n_hosts, LsArena *arena);

/* LsCollPeriod.like of a call whose hosts are joined by these trees; NULL: hosts have not the same GPUs, or
 * most periods are like no other. In the arena. Cost: linear in the hosts. */
const uint32_t *ls_double_tree_alike (const LsCollCall *call, const LsCollPeriod *p, LsArena *arena);

/* --- what calls on the same GPUs have in common, kept from one to the next --- */

struct LsCollMemo {
  LsArena *arena;
  const LsCluster *cluster; /* NULL: not used yet                             */
  GPtrArray *known;         /* of rounds.c                                    */
  const uint32_t *gpus;     /* [n] of the latest call                         */
  uint32_t n;
  LsCollSeats seats;     /* theirs                                        */
  bool has_alike;        /* LsCollAlgorithm.alike, of theirs, was asked for */
  const uint32_t *alike; /* what it said                                  */
};

#endif
