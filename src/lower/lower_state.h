/* lower/lower_state.h — what the files of the lowering share.
 *
 *     lower.c          which slots are bound; a program per pipeline stage
 *     lower_build.c    a segment under construction: ops, dependencies, buffers
 *     lower_saved.c    buffers of what lives from a forward to its backward
 *     lower_operator.c one operator, with its tensor parallelism
 *     lower_tp_overlap.c the same with collectives in pieces beside its GEMM
 *     lower_cp.c       attention over sequences that are cut over ranks
 *     lower_experts.c  what expert parallelism does around operators
 *     lower_chunk.c    the passes over one chunk, with recomputation
 *     lower_dp.h       backends of data parallelism, lower_dp_X.c each
 *     lower_step.c     beginning and end of a step
 *     lower_order.c    what each rank does in which order, and roughly when
 *     lower_p2p.c      sends and receives for any order
 *     lower_pipe.h     the schedule with its p2p: instances in program order
 *     lower_validation.c the norm of the gradients without a barrier
 *     lower_replicas.c gradients and versions of parameters that are there several times
 */
#ifndef LS_LOWER_LOWER_STATE_H
#define LS_LOWER_LOWER_STATE_H

#include "lower/lower.h"
#include "model/operators.h"
#include "plan/mesh.h"
#include "plan/plan.h"
#include "schedules/sched_eval.h"
#include "strategy/strategy.h"

/* A chunk of consecutive layers and what is special about it. */
typedef struct {
  uint32_t n_layers;
  uint32_t n_recomputed; /* of these, the first so many run again as a whole      */
  bool has_embedding, has_head;
  char *kinds;          /* of its layers: "", or of a model with experts such as " d1 m3" */
  GArray *operators;    /* LsOperator in forward order                            */
  GArray *layer_of;     /* uint16_t per operator: layer in the chunk, or UINT16_MAX */
  GArray *again;        /* the operators, with what runs again of their forwards and what that keeps;
                          NULL: all of it */
  uint64_t n_params;    /* on one rank                                            */
  uint64_t n_expert;    /* of these, parameters of experts                        */
  uint64_t n_scaled[2]; /* of these, weights of fp8 or nvfp4 products: of others, of experts */
  uint64_t n_partial;   /* of these, replicated over tp, gradients in parts with SP */
} Chunk;

typedef struct {
  const LsModel *model;
  const LsStrategy *s;
  const LsLowerCosts *costs; /* NULL: not known                                  */
  const struct DpBackend *backend;
  LsShard shard;
  LsMesh mesh;
  uint32_t n_cp_roles; /* cp where its ranks compute different things, else 1    */
  uint32_t n_ep_roles; /* ep where its ranks have experts of different load, else 1; whose program
                          is being built says shard.ep_rank                      */
  uint32_t cp_rank;    /* whose program is being built, if so; else 0            */
  LsPlan *plan;
  uint32_t n_micro_batches;
  uint32_t n_stages;    /* pp * vpp, of a pipe                                    */
  uint32_t n_chunks;    /* of a rank: vpp, or as many as there are pipes          */
  Chunk *all_chunks;    /* [n_ep_roles * n_stages]                                */
  Chunk *chunks;        /* [n_stages] of these: of shard.ep_rank                  */
  uint32_t *roles;      /* [n_roles] (stage * n_cp_roles + cp_rank) * n_ep_roles + ep_rank: not all
                          need be there, as ep may span cp                       */
  double *expert_share; /* shard.expert_share                                    */
  LsDtype act;          /* of activations as they travel                          */
  const LsSched *sched;
  LsOrders *orders;    /* of all ranks, without pairs                            */
  bool has_split;      /* some backwards are I and W                             */
  LsChunkTimes *times; /* [n_stages]; NULL: nobody asked                         */
  GArray **posts;      /* [pp] of Post; NULL: none, or by a recipe (lower_megatron.c, lower_pipedream.c) */
  GArray *segments;    /* LsSegment                                              */
  GHashTable *segment_ids; /* name -> index + 1                                  */
  GArray *kernels;         /* LsKernel                                               */
  GHashTable *kernel_ids;  /* LsKernel -> index + 1                               */
  char *too_long;          /* a segment of more than MAX_OPS ops: the plan is void   */
} Lower;

/* Ops and buffers of a segment are counted in 16 bits. */
#define MAX_OPS 60000u

#define NO_OP UINT16_MAX /* an index of none */

/* Event classes of a program. EVENT_PARAMS + i: parameters of bucket i gathered. */
enum { EVENT_RECV_F, EVENT_RECV_B, EVENT_NORM, EVENT_PARAMS };

/* --- lower.c --------------------------------------------------------------- */

/* All that comes before chunks. Clear it in either case. */
gboolean lower_begin (Lower *l, const LsModel *m, const LsStrategy *s, const LsLowerCosts *costs,
                      GError **error);
void lower_clear (Lower *l);

/* --- lower_build.c ------------------------------------------------------- */

typedef struct {
  Lower *l;
  GArray *ops;         /* LsOp                                     */
  GArray *next_deps;   /* LsDep: of the next compute op            */
  uint16_t layer;      /* stamped on what is emitted               */
  struct DpPass *pass; /* of lower_dp.h, while one is built        */
  bool is_too_long;    /* ops were dropped                         */
} Build;

void build_init (Build *b, Lower *l);
void build_clear (Build *b); /* instead of build_finish() */
/* Stores the segment under `name` (copied), which is apart for each cp_rank that has a program
 * of its own, and returns its id; the build is spent. */
uint32_t build_finish (Build *b, const char *name);
/* Id of a segment stored before, or UINT32_MAX. */
uint32_t build_find (Lower *l, const char *name);

LsOp op_blank (LsOpKind kind, LsStream stream, LsTag tag, const char *name);
uint16_t build_op (Build *b, LsOp op, const LsDep *deps, uint16_t n_deps);
uint16_t build_kernel (Build *b, const LsKernel *k, LsTag tag);
/* On any stream; other ones than the compute stream take no joins. */
uint16_t build_kernel_on (Build *b, LsStream stream, const LsKernel *k, LsTag tag, const LsDep *deps,
                          uint16_t n_deps);
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
/* The host waits for the compute stream, and what it has joined. */
void build_compute_sync (Build *b, const char *name);
/* The host waits for all streams that this strategy uses (torch.cuda.synchronize). */
void build_device_sync (Build *b);
void build_buffer (Build *b, uint16_t op, uint16_t id, LsMemCategory category, uint64_t bytes, bool is_free);

/* Its matrix product takes fp8 or nvfp4: what sequence parallelism gathers for it is cast before
 * (model/operators_scaled.h). */
static inline bool
multiplies_scaled (const LsOperator *o)
{
  for (uint32_t k = 0; k < o->n_fwd; k++)
    if (o->fwd[k].kind == LS_KERNEL_GEMM && ls_dtype_is_scaled (o->fwd[k].dtype))
      return true;
  return false;
}

/* --- lower_saved.c -------------------------------------------------------- */

/* The W GEMM of an operator that a split backward puts off, or NULL. */
const LsKernel *deferred_gemm (const LsOperator *o);
/* Ties the kept activation of operator i, but for what W needs of it, to an op; what W needs
 * of it: the input, and the gradient of the output. */
void keep_activation (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free);
void keep_input (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free);
/* The buffer id of the placeholder of operator i. */
uint16_t placeholder_id (Build *b, const Chunk *c, guint i);
void keep_gradient (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free);
/* All that the forward of a layer keeps. */
void saved_by_layer (Build *b, uint16_t op, const Chunk *c, uint32_t layer, bool is_free);

/* Buffer ids of a chunk: activations, inputs and gradients of operators, inputs of layers; from
 * here on what context parallelism holds while an operator runs, N_CP_BUFFERS for each; from
 * buffer_base() on what data parallelism gathers and reduces. */
enum { N_CP_BUFFERS = 3 };

static inline guint
cp_buffer_base (const Chunk *c)
{
  return 3 * c->operators->len + c->n_layers;
}

static inline guint
buffer_base (const Chunk *c)
{
  return cp_buffer_base (c) + N_CP_BUFFERS * c->operators->len;
}

/* --- lower_operator.c ----------------------------------------------------- */

/* keeps: what it saves lives on; else it will be computed again. */
/* The op at `from`, or the last before it where nothing was built there: what buffers of an operator without
 * kernels are tied to. */
uint16_t first_op (Build *b, guint from);
void build_forward_operator (Build *b, const Chunk *c, guint i, LsTag tag, bool keeps);
/* pass: LS_ACTION_B or I. */
void build_backward_operator (Build *b, const Chunk *c, guint i, LsActionType pass);
void build_weight_operator (Build *b, const Chunk *c, guint i);

/* --- lower_recompute.c ---------------------------------------------------- */

/* Of n_layers layers of a chunk on a pipeline rank, how many run again as a whole. */
uint32_t recompute_n_layers (const Lower *l, uint32_t pp_rank, uint32_t n_layers);
/* The forward keeps nothing of operator i; it keeps all but its input, which what stands
 * before it makes again. */
bool is_recomputed (const Lower *l, const Chunk *c, guint i);
bool drops_input (const Lower *l, const Chunk *c, guint i);
/* Layers run again but for the outputs of some operators. What of the bytes that operator i keeps
 * is then there from the forward on; makes chunk->again, if so. */
bool recomputes_ops (const Lower *l);
bool recomputes_no_products (const Lower *l); /* by operators, but for matrix products */
uint64_t recompute_kept_bytes (const Lower *l, const Chunk *c, guint i);
void recompute_prepare (const Lower *l, Chunk *c);
/* In a forward, behind operator i, whose first op that is: the input of layers that will
 * run again; in a backward, before and behind operator i. done_from: operators from there on
 * have run again; at first how many there are. */
void recompute_keep (Build *b, const Chunk *c, guint i, guint first_op);
void recompute_before (Build *b, const Chunk *c, guint i, guint *done_from);
void recompute_release (Build *b, const Chunk *c, guint i);
/* Ties the input of layers that run again to an op, if operator i begins them. */
void keep_group_input (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free);

/* --- lower_offload_activations.c ------------------------------------------ */

/* The copy back that is under way for the layer before `layer`. */
typedef struct {
  uint32_t layer;
  uint16_t op;
  bool is_under_way;
} Reload;

/* In a forward, behind operator i; in a backward, before it (r->layer UINT32_MAX at first). */
void offload_behind (Build *b, const Chunk *c, guint i);
void reload_before (Build *b, const Chunk *c, guint i, Reload *r);

/* --- lower_placeholders.c --------------------------------------------------- */

/* Those of linears, for the whole run. */
uint64_t placeholder_bytes (const Lower *l, uint32_t pp_rank);
/* That of the head, if operator i is it: from before its weight gradient to behind it. */
void hold_placeholder (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free);

/* --- lower_cp.c ------------------------------------------------------------ */

/* Operator i, which is attention of sequences that are cut over cp ranks; the last op. */
void build_context_forward (Build *b, const Chunk *c, guint i, LsTag tag);
uint16_t build_context_backward (Build *b, const Chunk *c, guint i);

/* --- lower_tp_overlap.c ---------------------------------------------------- */

/* Whether the collective before or behind operator i runs in pieces beside its GEMM. */
bool pipelines_tp (const Lower *l, const Chunk *c, guint i);
/* Kernels of which one is that GEMM, instead of the collective and it; the last op. */
uint16_t build_gather_gemm (Build *b, const LsKernel *kernels, uint32_t n, LsTag tag, LsTag comm_tag);
uint16_t build_gemm_scatter (Build *b, const LsKernel *kernels, uint32_t n, LsTag tag, LsTag comm_tag);

/* --- lower_experts.c ------------------------------------------------------- */

/* Communication of an expert-parallel operator before, and after, its kernels. */
void experts_before (Build *b, const LsOperator *o, bool is_backward, LsTag tag);
void experts_after (Build *b, const LsOperator *o, bool is_backward, LsTag tag);

/* --- lower_chunk.c -------------------------------------------------------- */

/* first_layer: of the model. */
void chunk_init (Lower *l, Chunk *c, uint32_t first_layer, uint32_t n_layers, bool has_embedding,
                 bool has_head);
void chunk_clear (Chunk *c);
/* The ops of a pass alone, into a build that is then thrown away. */
void build_pass (Build *b, const Chunk *c, LsActionType pass);

static inline const LsOperator *
operator_at (const Chunk *c, guint i)
{
  return &g_array_index (c->operators, LsOperator, i);
}

static inline uint16_t
layer_of (const Chunk *c, guint i)
{
  return g_array_index (c->layer_of, uint16_t, i);
}

/* --- lower_step.c ----------------------------------------------------------- */

uint32_t segment_step_begin (Lower *l, uint32_t pp_rank);
uint32_t segment_step_end (Lower *l, uint32_t pp_rank);
/* Gathers parameters of a chunk as the step begins; UINT32_MAX: nothing to gather. */
uint32_t segment_early_gather (Lower *l, uint32_t pp_rank, uint32_t chunk);
/* Where lower_dp.h has them between passes. */
uint32_t segment_gather_chunk (Lower *l, uint32_t pp_rank, uint32_t chunk);
uint32_t segment_reduce_chunk (Lower *l, uint32_t pp_rank, uint32_t chunk);
/* Bytes alive for the whole run, and what lives outside: weights, gradients, what the optimizer keeps. */
void step_static_memory (const Lower *l, uint32_t pp_rank, LsProgram *p);

/* --- lower_order.c ----------------------------------------------------------- */

/* Fills in orders, and times and posts where somebody needs them. given: other orders
 * than the schedule's, copied; or NULL. */
void orders_init (Lower *l, const LsOrders *given);
/* Of all its kernels and collectives, each alone. At least 1 ps, so that what needs another's output ends
 * later. */
LsTime pass_time (Lower *l, const Chunk *c, LsActionType pass);

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

/* --- lower_validation.c -------------------------------------------------------- */

/* The optimizer waits for the norm of this stage and those before it only. */
void pass_norm_on (Build *b, uint32_t pp_rank);
/* At the begin of a step: the whole norm, from the last stage to the first; computing does not
 * wait for it. Nothing to do without post-validation. */
void send_norm_back (Build *b, uint32_t pp_rank);
/* It waits; for micro-batch 0, chunk 0. UINT32_MAX: nothing to check. */
uint32_t segment_check_norm (Lower *l, uint32_t pp_rank);

/* --- lower_replicas.c --------------------------------------------------------- */

/* Sums gradients over the ranks that hold the same stages; nothing to do without pipes. */
void reduce_pipes (Build *b, uint32_t pp_rank);
/* Of the 16-bit weights. */
uint32_t n_weight_versions (const Lower *l, uint32_t pp_rank);

/* --- lower_pipe.c ------------------------------------------------------------ */

/* The instances of pipeline rank pp_rank, LsInstance; of these, only the first step runs the
 * first *ret_n_lead. */
GArray *pipe_instances (Lower *l, uint32_t pp_rank, uint32_t *ret_n_lead);

/* Stage of a rank's chunk, of whichever pipe. */
static inline uint32_t
stage_at (const Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  return ls_place (l->sched->placement, l->mesh.pp, l->n_chunks, pp_rank, chunk).stage;
}

static inline Chunk *
chunk_at (const Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  return &l->chunks[stage_at (l, pp_rank, chunk)];
}

/* The rank of the last stage, which holds the head: that of the embedding too where the
 * stages go down the ranks and back, or where pipes go both ways. */
static inline uint32_t
last_rank (const Lower *l)
{
  bool is_first = (l->sched->placement == LS_PLACE_WAVE && l->n_chunks % 2 == 0)
      || l->sched->placement == LS_PLACE_PIPES;
  return is_first ? 0 : l->mesh.pp - 1;
}

/* Whether ranks share replicas of the parameters because pipes go both ways. */
static inline bool
has_pipes (const Lower *l)
{
  return l->sched->placement == LS_PLACE_PIPES;
}

/* A weight that embedding and head share is there twice, on two ranks. */
static inline bool
is_tied_over_ranks (const Lower *l)
{
  return l->model->tied_embeddings && last_rank (l) != 0;
}

#endif
