/* parallel/lower_state.h — what the files of the lowering share.
 *
 *     lower.c          which slots are bound; a program per pipeline stage
 *     lower_build.c    a segment under construction: ops, dependencies, buffers
 *     lower_chunk.c    forward and backward of one chunk, with tensor parallelism
 *                      and recomputation
 *     lower_bucket.c   gradient buckets of data parallelism
 *     lower_step.c     beginning and end of a step
 *     lower_order.c    what each rank does in which order, and roughly when
 *     lower_p2p.c      sends and receives for any order
 *     lower_pipe.c     the schedule with its p2p: instances in program order
 */
#ifndef LS_PARALLEL_LOWER_STATE_H
#define LS_PARALLEL_LOWER_STATE_H

#include "model/operators.h"
#include "parallel/lower.h"
#include "parallel/mesh.h"
#include "parallel/plan.h"
#include "parallel/sched_eval.h"
#include "parallel/strategy.h"

/* A chunk of consecutive layers and what is special about it. */
typedef struct {
  uint32_t n_layers;
  bool has_embedding, has_head;
  GArray *operators;   /* LsOperator in forward order                            */
  GArray *layer_of;    /* uint16_t per operator: layer in the chunk, or UINT16_MAX */
  uint64_t n_params;   /* on one rank                                            */
  uint64_t n_partial;  /* of these, replicated over tp, gradients in parts with SP */
} Chunk;

typedef struct {
  const LsModel *model;
  const LsStrategy *s;
  const LsLowerCosts *costs; /* NULL: not known                                  */
  LsShard shard;
  LsMesh mesh;
  LsPlan *plan;
  uint32_t n_micro_batches;
  Chunk *chunks;       /* [pp * vpp], by global stage                            */
  const LsSched *sched;
  LsOrders *orders;    /* of all ranks, without pairs                            */
  bool has_split;      /* some backwards are I and W                             */
  LsChunkTimes *times; /* [pp * vpp], by global stage; NULL: nobody asked        */
  GArray **posts;      /* [pp] of Post; NULL: none, or by a recipe (lower_pipe.c) */
  GArray *segments;    /* LsSegment                                              */
  GHashTable *segment_ids; /* name -> index + 1                                  */
  GArray *kernels;     /* LsKernel                                               */
  GHashTable *kernel_ids; /* LsKernel -> index + 1                               */
  char *too_long;      /* a segment of more than MAX_OPS ops: the plan is void   */
} Lower;

/* Ops and buffers of a segment are counted in 16 bits. */
#define MAX_OPS 60000u

/* Event classes of a program. EVENT_PARAMS + i: parameters of bucket i gathered. */
enum { EVENT_RECV_F, EVENT_RECV_B, EVENT_PARAMS };

/* --- lower_build.c ------------------------------------------------------- */

typedef struct {
  Lower *l;
  GArray *ops;           /* LsOp                                     */
  GArray *next_deps;     /* LsDep: of the next compute op            */
  uint16_t layer;        /* stamped on what is emitted               */
  bool is_too_long;      /* ops were dropped                         */
} Build;

void build_init (Build *b, Lower *l);
void build_clear (Build *b); /* instead of build_finish() */
/* Stores the segment under `name` (copied) and returns its id; the build is spent. */
uint32_t build_finish (Build *b, const char *name);
/* Id of a segment stored before, or UINT32_MAX. */
uint32_t build_find (Lower *l, const char *name);

LsOp op_blank (LsOpKind kind, LsStream stream, LsTag tag, const char *name);
uint16_t build_op (Build *b, LsOp op, const LsDep *deps, uint16_t n_deps);
uint16_t build_kernel (Build *b, const LsKernel *k, LsTag tag);
/* A collective that starts when all compute so far is done. */
uint16_t build_coll (Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, LsDtype dtype,
                     LsTag tag, const char *name);
/* The next compute op waits for op `index`. */
void build_join (Build *b, uint16_t index);
/* The next compute op waits for all issued so far on a stream. */
void build_join_stream (Build *b, LsStream stream);
/* An empty op on the compute stream that carries the joins; for segments that
 * end in communication which later segments must wait for. */
void build_barrier (Build *b);
/* The host waits for all streams that this strategy uses (torch.cuda.synchronize). */
void build_device_sync (Build *b);
void build_buffer (Build *b, uint16_t op, uint16_t id, LsMemCategory category, uint64_t bytes, bool is_free);

/* --- lower_bucket.c ------------------------------------------------------- */

/* Gradients that are reduced together. Ready when operator `last_operator` has
 * done its weight gradients, in backward order. */
typedef struct {
  uint64_t numel;
  uint32_t last_operator;
} Bucket;

/* Buckets of a chunk in the order in which they become ready. */
GArray *buckets_of_chunk (const Lower *l, const Chunk *c, uint32_t pp_rank);
bool reduces_in_backward (const Lower *l);
void build_bucket (Build *b, const Bucket *bucket, uint16_t unit);

/* --- lower_chunk.c -------------------------------------------------------- */

void chunk_init (Lower *l, Chunk *c, uint32_t n_layers, bool has_embedding, bool has_head);
void chunk_clear (Chunk *c);
uint32_t segment_forward (Lower *l, const Chunk *c, uint32_t pp_rank, bool waits_for_params);
/* pass: LS_ACTION_B, or its halves I and W. The last one of a chunk launches gradient
 * buckets as they become ready. */
uint32_t segment_backward (Lower *l, const Chunk *c, uint32_t pp_rank, LsActionType pass, bool is_last);
/* The ops of a pass alone, into a build that is then thrown away. */
void build_pass (Build *b, const Chunk *c, LsActionType pass);

/* --- lower_step.c ----------------------------------------------------------- */

uint32_t segment_step_begin (Lower *l, uint32_t pp_rank);
uint32_t segment_step_end (Lower *l, uint32_t pp_rank);
/* Gather the parameters of one chunk and record EVENT_PARAMS; for early gathers. */
uint32_t segment_gather_params (Lower *l, uint32_t pp_rank, uint32_t chunk);
bool gathers_params_early (const Lower *l);

/* --- lower_order.c ----------------------------------------------------------- */

/* Fills in orders, and times and posts where somebody needs them. given: other orders
 * than the schedule's, copied; or NULL. */
void orders_init (Lower *l, const LsOrders *given);

/* --- lower_p2p.c ------------------------------------------------------------- */

/* Bytes of one message; a tp-th of the tensor if it is scattered. */
uint64_t message_bytes (const Lower *l);
bool scatters (const Lower *l);

/* A send or a receive of a rank, before its action number `before`. */
typedef struct {
  uint32_t before;
  bool is_beside; /* arrives while that action runs: not in the group of what comes before */
  bool is_send, is_next, is_gradient;
  uint32_t mb;
  uint16_t chunk; /* of the rank */
} Post;

/* Fills in posts, those of a rank in the order in which they are issued. */
void posts_init (Lower *l, const LsSchedTimes *times);
void posts_clear (Lower *l);
/* One group of posts, n above 0; its receives record no event. */
uint32_t segment_posts (Lower *l, const Post *posts, guint n);
/* A post alone, on the stream of its channel. */
uint32_t segment_post (Lower *l, const Post *post);
/* Says that what was received is there; on the stream of the post, if it was posted alone. */
uint32_t segment_received (Lower *l, const Post *post, bool is_alone);
/* The compute stream waits for it. */
uint32_t segment_await (Lower *l, bool is_gradient);

/* --- lower_pipe.c ------------------------------------------------------------ */

/* The instances of pipeline rank pp_rank, LsInstance. */
GArray *pipe_instances (Lower *l, uint32_t pp_rank);

/* Global stage of a rank's chunk. */
static inline uint32_t
stage_at (const Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  return ls_place (l->sched->placement, l->mesh.pp, l->s->vpp, pp_rank, chunk).stage;
}

static inline Chunk *
chunk_at (const Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  return &l->chunks[stage_at (l, pp_rank, chunk)];
}

/* The rank of the last stage, which holds the head: that of the embedding too where the
 * stages go down the ranks and back. */
static inline uint32_t
last_rank (const Lower *l)
{
  return l->sched->placement == LS_PLACE_WAVE && l->s->vpp % 2 == 0 ? 0 : l->mesh.pp - 1;
}

/* A weight that embedding and head share is there twice, on two ranks. */
static inline bool
is_tied_over_ranks (const Lower *l)
{
  return l->model->tied_embeddings && last_rank (l) != 0;
}

/* Collectives as numbers, in the order of network/coll.h, which this room does
 * not see. A test holds the two together. */
enum { COLL_ALL_REDUCE, COLL_ALL_GATHER, COLL_REDUCE_SCATTER };

#endif
