/* plan/plan.h — the one intermediate form: programs of roles, and the table
 * that binds ranks to them. Immutable once frozen; shared by many runs.
 *
 * A program is a list of segment instances. A segment is a small DAG of ops in
 * the order in which the host issues them; all instances of it share its ops.
 * Time, links and GPUs are unknown here: kernels carry shapes, communication
 * carries slots and bytes. */
#ifndef LS_PLAN_PLAN_H
#define LS_PLAN_PLAN_H

#include <glib.h>
#include <lockstep/units.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/enum_name.h"
#include "model/kernel.h"
#include "plan/collective.h"

/* ---- kinds of ops ---- */

/* The kinds of ops: one row each.
 *
 * A row says what is true of a kind wherever it is asked: where it runs, what its time is, which members of
 * LsOp mean something to it, what a trace assumes that gives no more, and what is wrong with one. Rooms ask
 * the row and not the kind, so that a new kind is a row here, another in exec/replay/op_begin.c (what begins
 * it), and whatever it alone needs. A room that has something of its own for each kind keeps a table with
 * LS_N_OP_KINDS rows, asserted where it stands. */

typedef enum {
  LS_OP_KERNEL,     /* a GPU kernel of the given shape                              */
  LS_OP_COLLECTIVE, /* one call on the communicator of a slot                       */
  LS_OP_P2P,        /* one group of sends and receives (ncclGroup)                  */
  LS_OP_COPY,       /* host to device or back; copy engine, no SMs                  */
  LS_OP_RECORD,     /* record event (event, mb, chunk) on a stream: no duration     */
  LS_OP_WAIT,       /* the stream waits for that event                              */
  LS_OP_HOST_SYNC,  /* the host waits for the op's dependencies                     */
  LS_OP_HOST_DELAY, /* the host is busy for `recorded`                              */
  LS_N_OP_KINDS
} LsOpKind;

/* What takes its time. */
typedef enum {
  LS_TAKES_NOTHING, /* it is over as soon as it may begin                                        */
  LS_TAKES_GPU,     /* one at a time: `recorded`, or what a kernel of its shape takes            */
  LS_TAKES_ENGINE,  /* a copy engine: `recorded`, or what the way to its memory allows           */
  LS_TAKES_NETWORK, /* what the network allows, once those that take part are there; it has SMs  */
  LS_TAKES_HOST,    /* the host, which issues nothing until it is over; it stands in no stream   */
} LsOpTakes;

/* Members of LsOp, and keys of traces, that mean something to some kinds only. */
enum {
  LS_HAS_KERNEL = 1 << 0,
  LS_HAS_RECORDED = 1 << 1,
  LS_HAS_BESIDE = 1 << 2,
  LS_HAS_REPEAT = 1 << 3,
  LS_HAS_GRAPH = 1 << 4, /* is_in_graph */
  LS_HAS_CALL = 1 << 5,  /* slot, coll, algorithm, parts, max_ctas, has_margin, is_light, root */
  LS_HAS_BYTES = 1 << 6,
  LS_HAS_DIRECTION = 1 << 7, /* direction */
  LS_HAS_EVENT = 1 << 8,
  LS_HAS_TRANSFERS = 1 << 9,
};

/* Where a copy goes: LsOp.direction. Its bytes are LsOp.bytes. */
typedef enum {
  LS_COPY_TO_DEVICE, /* from the memory of the host's CPU     */
  LS_COPY_TO_HOST,
  LS_COPY_FROM_NVME, /* past the CPU, as GPUDirect Storage is */
  LS_COPY_TO_NVME,
  LS_COPY_IN_HOST, /* traffic of the CPU in that memory     */
  LS_N_COPY_DIRECTIONS
} LsCopyDirection;

/* What is at the other end of its engine: the memory of the host's CPU, or its drives. */
typedef enum { LS_COPY_BY_HOST, LS_COPY_BY_NVME, LS_N_COPY_WAYS } LsCopyWay;

typedef struct {
  const char *calls; /* of a rank, all together */
  uint8_t way;       /* LsCopyWay               */
  bool is_out;       /* goes there, not from there */
  bool is_in_host;   /* passes neither the way there nor the HBM: work of the CPU */
} LsCopyRow;

extern const LsCopyRow ls_copies[LS_N_COPY_DIRECTIONS];
extern const LsEnumName ls_copy_names[LS_N_COPY_DIRECTIONS + 1]; /* in traces */

struct LsPlan;
struct LsOp;

typedef struct {
  uint8_t takes;             /* LsOpTakes                                          */
  bool host_waits;           /* the host goes on once what it depends on is over   */
  bool records;              /* its event is there, and not waited for             */
  uint16_t has;              /* LS_HAS_ of all that mean something                 */
  uint16_t needs;            /* one of these must be given; 0: nothing must        */
  const char *lacking;       /* what is said where none is; NULL with `needs` 0   */
  uint8_t stream, tag, host; /* LsStream, LsTag, LsHostCost that a trace assumes */
  uint8_t direction;         /* LsCopyDirection, likewise, of what takes an engine               */
  /* What is wrong with what it alone has, newly allocated; NULL: nothing. The member may be NULL. */
  char *(*fault) (const struct LsPlan *plan, const struct LsOp *op);
} LsOpKindRow;

extern const LsOpKindRow ls_op_kinds[LS_N_OP_KINDS];
extern const LsEnumName ls_op_kind_names[LS_N_OP_KINDS + 1]; /* in traces */

static inline bool
ls_op_takes (uint8_t kind, LsOpTakes what)
{
  return ls_op_kinds[kind].takes == what;
}

/* Holds up the host, and with it all that is issued later. */
static inline bool
ls_op_is_of_host (uint8_t kind)
{
  return ls_op_takes (kind, LS_TAKES_HOST);
}

static inline bool
ls_op_is_communication (uint8_t kind)
{
  return ls_op_takes (kind, LS_TAKES_NETWORK);
}

/* Takes time on the device. */
static inline bool
ls_op_has_span (uint8_t kind)
{
  return !ls_op_takes (kind, LS_TAKES_NOTHING) && !ls_op_takes (kind, LS_TAKES_HOST);
}

/* Which of these (LS_HAS_) mean something to it. */
static inline unsigned
ls_op_has (uint8_t kind, unsigned members)
{
  return ls_op_kinds[kind].has & members;
}

/* ---- a plan ---- */

/* Of a record: it only makes its stream wait for its dependencies. */
#define LS_EVENT_NONE UINT16_MAX

/* What an op is for: F forward, I input gradient, W weight gradient, B both. */
typedef enum {
  LS_TAG_F,
  LS_TAG_I,
  LS_TAG_W,
  LS_TAG_B,
  LS_TAG_RECOMPUTE,
  LS_TAG_OPTIMIZER,
  LS_TAG_SYNC,
  LS_N_TAGS
} LsTag;

extern const LsEnumName ls_tag_names[LS_N_TAGS + 1]; /* by value */

/* What issuing an op costs the host, by kind; how much is in exec/replay/host.c, a strategy or a fit. */
typedef enum {
  LS_HOST_LAUNCH,  /* one kernel                        */
  LS_HOST_COMM,    /* one collective or p2p group       */
  LS_HOST_FREE,    /* events and waits                  */
  LS_HOST_SYNC,    /* a synchronising call, once it returns */
  LS_HOST_VIEW,    /* a call on a tensor that launches nothing */
  LS_HOST_BATCH,   /* a micro-batch fetched and handed out     */
  LS_HOST_PRODUCT, /* one of several products of experts        */
  LS_HOST_PYTHON,  /* a call of a function of Python, of a program that was captured */
  LS_N_HOST_COSTS
} LsHostCost;

/* Of what part of a program an op is. */
typedef enum {
  LS_SITE_OTHER, /* of none of these, or nobody knows */
  LS_SITE_EMBEDDING,
  LS_SITE_NORM,
  LS_SITE_ATTENTION, /* or what stands in its place, with the products around it */
  LS_SITE_MLP,
  LS_SITE_EXPERTS,  /* routers and shared experts too      */
  LS_SITE_RESIDUAL, /* of a layer, in none of its modules   */
  LS_SITE_HEAD,
  LS_SITE_LOSS,
  LS_SITE_DATA, /* data parallelism: gathers, reductions, copies around them */
  LS_SITE_OPTIMIZER,
  LS_N_SITES
} LsSite;

extern const LsEnumName ls_site_names[LS_N_SITES + 1]; /* by value */

/* Streams of a rank. Communicators have a stream each, as NCCL has. */
typedef enum {
  LS_STREAM_COMPUTE,
  LS_STREAM_TP,
  LS_STREAM_DP,
  LS_STREAM_PP_FWD,      /* sends to the next stage; batched groups too  */
  LS_STREAM_PP_FWD_RECV, /* receives from the previous stage             */
  LS_STREAM_PP_BWD,      /* sends of gradients to the previous stage     */
  LS_STREAM_PP_BWD_RECV, /* receives of gradients from the next stage    */
  LS_STREAM_GLOBAL,      /* model-parallel, embedding and world collectives */
  LS_STREAM_COPY,        /* copies to the host; of traces: all copies */
  LS_STREAM_COPY_IN,     /* copies from the host                   */
  LS_STREAM_GATHER,      /* parameters gathered                    */
  LS_STREAM_CP,
  LS_STREAM_EP,
  LS_STREAM_GATHER_IN, /* what is gathered next is made ready  */
  LS_STREAM_REPLICA,   /* reductions over replicas of shards   */
  LS_STREAM_SHARED,    /* shared experts, beside the exchange of tokens */
  LS_N_STREAMS
} LsStream;

extern const LsEnumName ls_stream_names[LS_N_STREAMS + 1]; /* by value */

/* A role's names for "my communicator" and "my neighbour". */
typedef enum {
  LS_SLOT_TP,
  LS_SLOT_DP, /* dp x cp: the ranks that have the same parameters     */
  LS_SLOT_CP,
  LS_SLOT_EP,
  LS_SLOT_SHARD,     /* of those, the ones among which one copy is sharded (zero N@group) */
  LS_SLOT_REPLICA,   /* of those, the ones that have the same shard          */
  LS_SLOT_ETP,       /* tensor parallelism of experts, where it is not tp's  */
  LS_SLOT_EDP,       /* the ranks that have the same experts                 */
  LS_SLOT_EMBEDDING, /* stages with the embedding: its tied gradients           */
  LS_SLOT_PIPES,     /* pipes both ways: the ranks that have the same stages            */
  LS_SLOT_TP_CP,     /* tp x cp: maxima of fp8 tensors, of one copy                     */
  LS_SLOT_STAGE,     /* tp x cp x dp, the ranks of a stage: of all copies               */
  LS_SLOT_MODEL,     /* tp x pp: gradient norm, found-inf                       */
  LS_SLOT_WORLD,     /* the same with a distributed optimizer                   */
  LS_SLOT_PREV,      /* peer that runs the previous chunk: p2p only             */
  LS_SLOT_NEXT,
  LS_N_SLOTS
} LsSlot;

/* Names of those of communicators: X (name, number) of each, for an array. */
#define LS_COMM_SLOTS(X)                                                                                     \
  X ("tp", LS_SLOT_TP), X ("dp", LS_SLOT_DP), X ("cp", LS_SLOT_CP), X ("ep", LS_SLOT_EP),                    \
      X ("shard", LS_SLOT_SHARD), X ("replica", LS_SLOT_REPLICA), X ("etp", LS_SLOT_ETP),                    \
      X ("edp", LS_SLOT_EDP), X ("embedding", LS_SLOT_EMBEDDING), X ("pipes", LS_SLOT_PIPES),                \
      X ("tp-cp", LS_SLOT_TP_CP), X ("stage", LS_SLOT_STAGE), X ("model", LS_SLOT_MODEL),                    \
      X ("world", LS_SLOT_WORLD)

extern const LsEnumName ls_slot_names[LS_N_SLOTS + 1]; /* by value */

/* Slots of neighbours; the others are of communicators. */
static inline bool
ls_slot_is_peer (uint32_t slot)
{
  return slot == LS_SLOT_PREV || slot == LS_SLOT_NEXT;
}

typedef enum { LS_AXIS_TP, LS_AXIS_DP, LS_AXIS_PP, LS_AXIS_CP, LS_AXIS_EP, LS_N_AXES } LsAxis;

extern const LsEnumName ls_axis_names[LS_N_AXES + 1]; /* by value */

/* Dependencies of an op besides its place in its stream. */
typedef enum {
  LS_DEP_END,    /* op `index` of the same instance has ended                       */
  LS_DEP_ISSUE,  /* op `index` of the same instance has been issued by the host     */
  LS_DEP_STREAM, /* all ops issued before this one on stream `index` have ended      */
} LsDepKind;

typedef struct {
  uint16_t kind;
  uint16_t index;
} LsDep;

typedef struct {
  uint64_t bytes;
  uint8_t slot; /* LS_SLOT_PREV or LS_SLOT_NEXT                                   */
  uint8_t is_send;
  uint8_t max_ctas; /* as of LsOp */
} LsTransfer;

/* What memory is used for. */
typedef enum {
  LS_MEM_PARAMETERS,
  LS_MEM_GRADIENTS,
  LS_MEM_OPTIMIZER,
  LS_MEM_ACTIVATIONS,
  LS_MEM_UNSHARDED,
  LS_MEM_COMM_BUFFERS,
  LS_MEM_WORKSPACE,
  LS_N_MEM
} LsMemCategory;

#define LS_MEM_CATEGORIES(X)                                                                                 \
  X ("parameters", LS_MEM_PARAMETERS), X ("gradients", LS_MEM_GRADIENTS), X ("optimizer", LS_MEM_OPTIMIZER), \
      X ("activations", LS_MEM_ACTIVATIONS), X ("unsharded", LS_MEM_UNSHARDED),                              \
      X ("comm_buffers", LS_MEM_COMM_BUFFERS), X ("workspace", LS_MEM_WORKSPACE)

extern const LsEnumName ls_mem_category_names[LS_N_MEM + 1]; /* by value */

typedef enum { LS_AT_ISSUE, LS_AT_START, LS_AT_END } LsMemWhen;

/* A buffer of one instance: id is unique within the program per (mb, chunk), of gradients, which live from a
 * pass to the end of the step, per chunk. What is freed at issue is free then, also where another stream used
 * it. alloc adds its bytes, free takes them away. */
typedef struct {
  uint64_t bytes;
  uint16_t id;
  uint8_t category;
  uint8_t is_free;
  uint8_t when; /* LsMemWhen */
} LsBufferEvent;

/* Of an all-to-all: whether all parts are equal, or member j receives, or sends, weight j of
 * LsPlan.weights of the sum of them. Bytes are then those that the mean member sends. */
typedef enum { LS_PARTS_EQUAL, LS_PARTS_RECEIVED, LS_PARTS_SENT, LS_N_PARTS_KINDS } LsParts;

typedef struct LsOp {
  uint8_t kind;      /* LsOpKind   */
  uint8_t stream;    /* LsStream   */
  uint8_t tag;       /* LsTag      */
  uint8_t host;      /* LsHostCost */
  uint8_t slot;      /* LsSlot, collectives */
  uint8_t coll;      /* LsCollKind */
  uint8_t algorithm; /* LsAlgorithm, collectives */
  uint8_t dtype;
  uint8_t direction; /* LsCopyDirection; LS_N_COPY_DIRECTIONS: no copy */
  uint8_t parts;     /* LsParts    */
  uint8_t max_ctas;  /* thread blocks that NCCL may launch for a collective; 0: as many as it has channels */
  bool has_margin;   /* a collective: GEMMs are launched on the SMs that it leaves (kernel_run.c of exec) */
  bool carries_scores; /* tokens to their experts, or gradients back: with what routers gave them */
  bool is_light;    /* a collective of few numbers: takes its time, shares with nobody, counts on no link */
  bool is_in_graph; /* a kernel: launched by a CUDA graph, behind another */
  bool is_counted : 1; /* while it is lowered: its size is of tokens that the host has counted */
  bool is_kept : 1;    /* while it is lowered: a copy of what a layer keeps for its backward */
  uint8_t site : 4;    /* LsSite; a file of a trace does not say it */
  uint16_t layer;      /* index in the chunk; UINT16_MAX: none */
  uint16_t unit;       /* bucket; UINT16_MAX: none             */
  uint16_t event;      /* record, wait: event class; LS_EVENT_NONE */
  uint16_t n_deps, n_transfers, n_buffers;
  uint32_t kernel; /* index into plan->kernels; UINT32_MAX: none */
  uint32_t repeat; /* of a kernel or host delay: so many alike, one behind the other; 0: one */
  uint32_t root;   /* of a collective: member index, 0 where its kind has none */
  LsTime recorded; /* measured duration; LS_TIME_NEVER: cost it  */
  LsTime beside;   /* of a kernel's: for so long communication ran beside it, whose slowdown is in it */
  uint64_t bytes;  /* of a collective: the whole array           */
  const LsDep *deps;
  const LsTransfer *transfers;
  const LsBufferEvent *buffers;
  const char *name; /* static or in the plan's arena */
} LsOp;

/* Marks its event as there, and not only that its stream waited. */
static inline bool
ls_op_records (const LsOp *op)
{
  return ls_op_kinds[op->kind].records && op->event != LS_EVENT_NONE;
}

/* Makes its stream wait until an event is there. */
static inline bool
ls_op_awaits (const LsOp *op)
{
  return ls_op_has (op->kind, LS_HAS_EVENT) && !ls_op_kinds[op->kind].records && op->event != LS_EVENT_NONE;
}

/* An op that names no kernel, unit, layer, event or direction, and costs the host nothing. Borrows name. */
LsOp ls_op_blank (LsOpKind kind, LsStream stream, LsTag tag, const char *name);

typedef struct {
  const char *name;
  uint32_t n_ops;
  LsOp *ops;
} LsSegment;

typedef struct {
  uint32_t segment;
  uint32_t mb;    /* micro-batch                    */
  uint16_t chunk; /* of the rank, 0 .. vpp - 1      */
  uint16_t stage; /* global (virtual) stage         */
} LsInstance;

/* The program of a role: one training step, behind what only the first one does. */
typedef struct {
  uint32_t n_instances;
  LsInstance *instances;
  uint32_t n_lead;      /* instances at the front that only the first step runs; below n_instances */
  uint32_t n_events;    /* event classes used       */
  uint32_t n_per_flush; /* micro-batches between two flushes of the pipeline; 0: it is not known */
  uint16_t stage;       /* pipeline stage of the role */
  uint64_t static_bytes[LS_N_MEM]; /* alive for the whole run */
  uint64_t host_bytes, nvme_bytes; /* of one rank, what lives there at most: states, activations */
  uint64_t n_params;               /* on one rank                 */
} LsProgram;

typedef struct {
  LsAxis axis;       /* whose exposed time it is              */
  bool spans_stages; /* waiting on it is bubble, not skew     */
  uint32_t n_ranks;
  uint32_t *offsets; /* [n_ranks] in communicator order, of many communicators the same: */
  uint32_t first;    /* member i is rank first + offsets[i]                              */
} LsCommunicator;

static inline uint32_t
ls_comm_rank (const LsCommunicator *c, uint32_t i)
{
  return c->first + c->offsets[i];
}

uint32_t *ls_comm_ranks (const LsCommunicator *c); /* [n_ranks], newly allocated */

typedef struct {
  uint32_t role;
  uint32_t comm[LS_N_SLOTS];   /* communicator id; UINT32_MAX: none          */
  uint32_t member[LS_N_SLOTS]; /* my index in it                             */
  uint32_t peer[2];            /* rank behind LS_SLOT_PREV, LS_SLOT_NEXT; UINT32_MAX: none */
} LsBinding;

/* The struct itself comes from g_new0(), all that it points to from the arena. */
typedef struct LsPlan {
  LsArena *arena; /* owns everything below */
  uint32_t n_ranks;
  uint32_t n_micro_batches, n_chunks; /* micro-batches of a pipe, if there are several */
  uint32_t n_segments;
  LsSegment *segments;
  uint32_t n_roles;
  LsProgram *programs; /* [n_roles]  */
  uint32_t n_kernels;
  LsKernel *kernels; /* interned by shape */
  uint32_t n_comms;
  LsCommunicator *comms;         /* [n_comms]; NULL: they are those of the mesh */
  LsBinding *bindings;           /* [n_ranks]; NULL: ranks are bound by a mesh, and have */
  uint32_t *role_of_rank;        /* [n_ranks] each role of one stage; NULL: the stage is the role */
  struct LsMeshBinding *by_mesh; /* plan/mesh.h */
  uint32_t *gpu_of_rank;         /* [n_ranks]; NULL: GPU i has rank i */
  uint32_t n_weights;            /* 0, or members of each communicator that has unequal parts */
  uint32_t *weights;             /* by member; their sum is below 2^31 */
  LsSpread spread;               /* of calls by LS_ALGORITHM_DISPATCH and COMBINE */
} LsPlan;

void ls_plan_free (LsPlan *plan); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsPlan, ls_plan_free)

/* A communicator, however the plan says it; its offsets are the plan's. */
LsCommunicator ls_plan_communicator (const LsPlan *plan, uint32_t id);

/* Communicators that follow on each other and lie alike: they have one table of offsets. */
typedef struct {
  LsCommunicator first;
  uint32_t n, stride; /* each begins so many ranks behind the one before */
} LsCommRun;

/* Those from this one on. Going through all by runs takes no division for each. */
LsCommRun ls_plan_comm_run (const LsPlan *plan, uint32_t id);

static inline LsCommunicator
ls_comm_of_run (const LsCommRun *run, uint32_t i)
{
  LsCommunicator c = run->first;
  c.first += i * run->stride;
  return c;
}

static inline uint32_t
ls_plan_member (const LsPlan *plan, uint32_t comm, uint32_t i)
{
  const LsCommunicator c = ls_plan_communicator (plan, comm);
  return ls_comm_rank (&c, i);
}

/* What a rank is bound to, however the plan says it. A mesh takes divisions: ask for what is needed. */
LsBinding ls_plan_binding (const LsPlan *plan, uint32_t rank);
LsBinding *ls_plan_bindings (const LsPlan *plan, LsArena *arena); /* [n_ranks] all of them, in the arena */

/* By mesh (plan/mesh.c); UINT32_MAX: none. */
uint32_t ls_mesh_binding_comm (const struct LsMeshBinding *b, uint32_t rank, LsSlot slot,
                               uint32_t *ret_member);
uint32_t ls_mesh_binding_peer (const struct LsMeshBinding *b, uint32_t rank, uint32_t peer);
/* How many communicators a slot has, from *ret_first on. */
uint32_t ls_mesh_binding_comms (const struct LsMeshBinding *b, LsSlot slot, uint32_t *ret_first);
/* Whether all ranks are bound alike. */
bool ls_mesh_binding_is_same (const struct LsMeshBinding *a, const struct LsMeshBinding *b);
/* How many stages there are, that of a rank, and the first rank of one. */
uint32_t ls_mesh_binding_stages (const struct LsMeshBinding *b);
uint32_t ls_mesh_binding_stage (const struct LsMeshBinding *b, uint32_t rank);
uint32_t ls_mesh_binding_first_of_stage (const struct LsMeshBinding *b, uint32_t stage);
/* The first rank behind those of one stage that begin with this one. */
uint32_t ls_mesh_binding_end_of_stage (const struct LsMeshBinding *b, uint32_t rank);
/* After how many ranks all may come again, in each *ret_block of them, in a circle: a whole number of
 * data-parallel copies, of those of experts too. */
uint32_t ls_mesh_binding_repeats (const struct LsMeshBinding *b, uint32_t *ret_block);

static inline uint32_t
ls_plan_role (const LsPlan *plan, uint32_t rank)
{
  if (plan->bindings)
    return plan->bindings[rank].role;
  return plan->role_of_rank ? plan->role_of_rank[rank] : ls_mesh_binding_stage (plan->by_mesh, rank);
}

static inline uint32_t
ls_plan_gpu (const LsPlan *plan, uint32_t rank)
{
  return plan->gpu_of_rank ? plan->gpu_of_rank[rank] : rank;
}

/* [n_ranks] GPUs of ranks, a list that can be written: made where the plan has none. */
uint32_t *ls_plan_gpus (LsPlan *plan);
/* Whether all ranks of both, which are as many, have the same GPUs. */
bool ls_plan_has_same_gpus (const LsPlan *a, const LsPlan *b);

/* The first rank behind those of one role that begin with this one; of a mesh, as far as its stage. */
uint32_t ls_plan_end_of_role (const LsPlan *plan, uint32_t rank);

/* The communicator of a slot below LS_SLOT_PREV, UINT32_MAX: none; and the index there. */
static inline uint32_t
ls_plan_comm (const LsPlan *plan, uint32_t rank, LsSlot slot, uint32_t *ret_member)
{
  if (!plan->bindings)
    return ls_mesh_binding_comm (plan->by_mesh, rank, slot, ret_member);
  *ret_member = plan->bindings[rank].member[slot];
  return plan->bindings[rank].comm[slot];
}

static inline uint32_t
ls_plan_comm_of (const LsPlan *plan, uint32_t rank, LsSlot slot)
{
  uint32_t member;
  return ls_plan_comm (plan, rank, slot, &member);
}

/* The slots, as bits, that a rank binds to a communicator; 0: it is no member. */
static inline uint32_t
ls_plan_slots_to (const LsPlan *plan, uint32_t rank, uint32_t comm)
{
  uint32_t slots = 0;
  for (uint32_t slot = 0; slot < LS_SLOT_PREV; slot++)
    if (ls_plan_comm_of (plan, rank, slot) == comm)
      slots |= 1u << slot;
  return slots;
}

/* The rank behind LS_SLOT_PREV (0) or LS_SLOT_NEXT (1); UINT32_MAX: none. */
static inline uint32_t
ls_plan_peer (const LsPlan *plan, uint32_t rank, uint32_t peer)
{
  return plan->bindings ? plan->bindings[rank].peer[peer] : ls_mesh_binding_peer (plan->by_mesh, rank, peer);
}

/* Which of a rank's n_events x n_micro_batches x n_chunks events the op, in this instance, records or waits
 * for. */
static inline size_t
ls_plan_event (const LsPlan *plan, const LsInstance *instance, const LsOp *op)
{
  return ((size_t) op->event * plan->n_micro_batches + instance->mb) * plan->n_chunks + instance->chunk;
}

/* The name of a buffer or event of a program, for a hash table: its id, micro-batch and chunk in the bits of
 * a pointer. */
G_STATIC_ASSERT (sizeof (gpointer) == 8);

static inline gpointer
ls_name_key (const LsInstance *instance, uint16_t id)
{
  return GSIZE_TO_POINTER ((gsize) instance->mb << 32 | (gsize) instance->chunk << 16 | id);
}

/* The micro-batch by which a buffer is named. */
static inline uint32_t
ls_buffer_mb (const LsInstance *instance, const LsBufferEvent *b)
{
  return b->category == LS_MEM_GRADIENTS ? 0 : instance->mb;
}

static inline gpointer
ls_buffer_key (const LsInstance *instance, const LsBufferEvent *b)
{
  LsInstance of = *instance;
  of.mb = ls_buffer_mb (instance, b);
  return ls_name_key (&of, b->id);
}

guint ls_name_hash (gconstpointer key);

/* Ops that one step executes over all ranks. */
uint64_t ls_plan_n_op_instances (const LsPlan *plan);

/* Whether it has ops that take that (LsOpTakes) for a time that was measured, whatever they run on (of the
 * host, beside what calls cost); not is_recorded: for one that follows from what they run on. */
bool ls_plan_has_ops (const LsPlan *plan, LsOpTakes takes, bool is_recorded);

/* [n_segments], newly allocated: how often a program runs each, from an instance on. */
uint32_t *ls_program_uses (const LsPlan *plan, const LsProgram *program, uint32_t from);
/* [n_roles], newly allocated: how many ranks run each program. */
uint64_t *ls_plan_ranks_of_roles (const LsPlan *plan);
/* Whether ranks have the same GPUs, roles, neighbours and communicators in both. */
bool ls_plan_has_same_ranks (const LsPlan *a, const LsPlan *b);

/* Static verification: indices in range, dependencies acyclic and backward, events
 * recorded before they are waited for, every slot bound, members of a communicator
 * call the same collectives in the same order, sends match receives, every buffer
 * freed once. LS_ERROR_INPUT with rank, instance and op in the message. O(ops of all
 * roles + ranks). */
gboolean ls_plan_check (const LsPlan *plan, GError **error);

/* An op of a role's program, in issue order. */
typedef struct {
  uint32_t role;
  uint32_t instance;
  uint32_t op;
} LsOpPlace;

static inline const LsOp *
ls_op_at (const LsPlan *plan, LsOpPlace at)
{
  return &plan->segments[plan->programs[at.role].instances[at.instance].segment].ops[at.op];
}

/* Moves to the next op; FALSE at the end of the program. LS_OP_BEFORE() stands before the first. */
gboolean ls_op_next (const LsPlan *plan, LsOpPlace *at);
#define LS_OP_BEFORE(r) ((LsOpPlace) { .role = (r), .op = UINT32_MAX })

/* The same; *reterr_at is the op at fault, with role UINT32_MAX if it is no one op's. */
gboolean ls_plan_check_at (const LsPlan *plan, LsOpPlace *reterr_at, GError **error);

/* Several plans as one: ranks, communicators, roles, segments and kernels of each behind those of the
 * one before. */

/* Nothing of one plan is bound to anything of another, so what each does stays what it
 * was; what they have in common is the cluster that they run on.
 *
 *     plan a   ranks 0 .. 7    roles 0 1   segments 0 .. 4
 *     plan b   ranks 0 .. 3    role  0     segments 0 .. 2
 *     joined   ranks 0 .. 11   roles 0 1 2 segments 0 .. 7     rank 0 of b is rank 8, its role 2
 *
 * No role is of two plans, so a fold (exec/shortcuts/fold.h) never takes ranks of two plans for alike.
 * Weights of members and the spread of tokens stay with the plans: the joined one has none. */

/* Where what is of one plan begins in the joined one. */
typedef struct {
  uint32_t rank, comm, role, segment, kernel;
} LsPlanPart;

/* ret_parts: [n]. plans are borrowed, and their texts: they must outlive the result. LS_ERROR_LIMIT: more
 * ranks, communicators or kernels than can be counted. Free with ls_plan_free(). */
LsPlan *ls_plan_join (const LsPlan *const *plans, uint32_t n, LsPlanPart *ret_parts, GError **error);

/* The host is held up before ops of a plan: by calls of the driver, which none knows when it is made. */

/* Each instance with a stall gets a segment of its own: before the op stand a wait for all that was issued
 * before, on every stream, where there is to be one, and the time that the host is busy. */
typedef struct {
  uint32_t instance;
  uint16_t op;
  bool waits;  /* for the device */
  LsTime time; /* of the host, behind the wait */
} LsStall;

/* Into the program of a role. stalls: LsStall, by instance, then op, of each op at most one. Only what
 * `segments`, `n_segments` and the program's `instances` point to is replaced; the arena keeps what was
 * there. LS_ERROR_LIMIT where a segment would have too many ops; the plan is then as before. */
gboolean ls_plan_add_stalls (LsPlan *plan, uint32_t role, const GArray *stalls, GError **error);

#endif
