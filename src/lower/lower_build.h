/* lower/lower_build.h — a lowering as it goes on, its chunks, and a segment under construction: ops,
 * dependencies, buffers (private). */
#ifndef LS_LOWER_LOWER_BUILD_H
#define LS_LOWER_LOWER_BUILD_H

#include "lower/lower.h"
#include "model/operators.h"
#include "plan/mesh.h"
#include "schedules/sched_eval.h"
#include "strategy/shard.h"

/* What copies with as many micro-batches have in common. */
typedef struct {
  uint32_t n_micro_batches, n_flushes;
  LsOrders *orders;
  GArray **posts;
} CopyOrders;

/* A chunk of consecutive layers and what is special about it. */
typedef struct {
  uint32_t n_layers;
  uint32_t n_recomputed; /* of these, the first so many run again as a whole      */
  bool has_embedding, has_head;
  /* Encoder and decoder apart: the encoder's last; the decoder's first; any of the decoder. */
  bool ends_encoder, begins_decoder, is_decoder;
  char *holds;              /* such as " 4 layers d1 m3 head": the layers' kinds where a model has several */
  GPtrArray *operators;     /* const LsOperator, in forward order; of layers, shared  */
  GArray *ends;             /* LsOperator: those of it that are in no layer           */
  GArray *layer_of;         /* uint16_t per operator: layer in the chunk, or UINT16_MAX */
  GArray *again;            /* LsOperator: the same, with what runs again of their forwards and what
                          that keeps; NULL: all of it */
  GPtrArray *again_at;      /* to these; of what runs as it ran, to operators         */
  uint32_t *passes;         /* [16] segments of its passes (lower_chunk.c), + 1; 0: not known yet */
  uint32_t n_products[2];   /* in fp8 or nvfp4: of others, of all experts of a rank side by side */
  uint64_t n_params;        /* on one rank, that learn                                */
  uint64_t n_frozen[2];     /* that do not: of others, of experts                     */
  uint64_t n_nf4;           /* of the former of these, in 4 bits                      */
  uint64_t n_frozen_scaled; /* and weights of fp8 or nvfp4 products               */
  uint64_t n_expert;        /* of these, parameters of experts                        */
  uint64_t n_scaled[2][2];  /* of these, weights of products: of others, of experts; in fp8, in nvfp4 */
  uint64_t n_partial;       /* of these, replicated over tp, gradients in parts with SP */
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
                          is being built says shard.experts.ep_rank                      */
  uint32_t n_dp_roles; /* copies whose micro-batches hold different documents, or are of different
                          number, else 1                                          */
  uint32_t *dp_role;   /* [dp] which of these                                    */
  LsPacking *packing;  /* NULL: each document fills a sequence                    */
  uint32_t cp_rank;    /* whose program is being built, if so; else 0            */
  uint32_t dp_rank;    /* likewise: the first with these documents, or so many     */
  LsPlan *plan;
  uint32_t n_micro_batches; /* of the copies whose program is being built         */
  uint32_t n_flushes;       /* of their pipeline in a step                          */
  uint32_t n_stages;        /* pp * vpp, of a pipe                                    */
  uint32_t n_chunks;        /* of a rank: vpp, or as many as there are pipes          */
  Chunk *all_chunks;        /* [n_ep_roles * n_stages]                                */
  Chunk *chunks;            /* [n_stages] of these: of shard.experts.ep_rank                  */
  uint32_t *roles;          /* [n_roles] ((stage * n_cp_roles + cp_rank) * n_ep_roles + ep_rank) *
                          n_dp_roles + dp_role: not all need be there, as ep may span cp and dp */
  double *expert_share;     /* shard.experts.share                                    */
  LsDtype act;              /* of activations as they travel                          */
  const LsSched *sched;
  LsOrders *orders;   /* of all ranks of a copy, without pairs; of the present one */
  CopyOrders *copies; /* [n_dp_roles] where numbers of micro-batches differ, else [1] */
  uint32_t n_copies;
  bool has_split;          /* some backwards are I and W                             */
  LsChunkTimes *times;     /* [n_stages]; NULL: nobody asked                         */
  double *kept;            /* likewise, of a schedule that is searched: LsSchedTimes */
  GArray **posts;          /* [pp] of Post, of what comes before a flush; NULL: none, or by a recipe
                          (lower_megatron.c, lower_pipe.c) */
  GArray *segments;        /* LsSegment                                              */
  GArray *spare_ops;       /* LsOp: emptied, the room of a segment that is built; NULL: none */
  GHashTable *segment_ids; /* name -> index + 1                                  */
  GPtrArray *layers;       /* LayerMade (lower_chunk.c): operators of each kind  */
  GHashTable *pieces;      /* name of a pass -> GArray of Piece (lower_layers.h) */
  uint16_t n_piece_events;
  GArray *kernels;        /* LsKernel                                               */
  GHashTable *kernel_ids; /* LsKernel -> index + 1                               */
  char *too_long;         /* a segment of more than MAX_OPS ops: the plan is void   */
  bool is_end_too_long;   /* it is the end of a step: the optimizer                 */
} Lower;

/* Of a pass whose documents have that number: 0 is the mean, others are one above those of the packing. NULL:
 * each fills a sequence. */
static inline const LsDocuments *
documents_at (const Lower *l, uint32_t number)
{
  const LsPacking *p = l->packing;
  return !p ? NULL : number > 0 ? &p->drawn[number - 1] : &p->mean;
}

/* All that comes before chunks. Clear it in either case. */
gboolean lower_begin (Lower *l, const LsModel *m, const LsStrategy *s, const LsLowerCosts *costs,
                      GError **error);
void lower_clear (Lower *l);

/* Of LsOperator, which must stay where they are. */
static inline GPtrArray *
pointers_to (const GArray *operators)
{
  GPtrArray *pointers = g_ptr_array_sized_new (operators->len);
  for (guint i = 0; i < operators->len; i++)
    g_ptr_array_add (pointers, &g_array_index (operators, LsOperator, i));
  return pointers;
}

static inline const LsOperator *
operator_at (const Chunk *c, guint i)
{
  return c->operators->pdata[i];
}

/* Elements of an operator that learn. */
static inline uint64_t
trained_params (const LsOperator *o)
{
  uint64_t n = 0;
  for (uint32_t k = 0; k < o->params.n && !o->params.is_frozen; k++)
    n += o->params.numel[k];
  return n;
}

static inline uint16_t
layer_of (const Chunk *c, guint i)
{
  return g_array_index (c->layer_of, uint16_t, i);
}

static inline bool
is_layer (const Chunk *c, guint i)
{
  return layer_of (c, i) != UINT16_MAX;
}

/* Of a layer of the chunk, or of a block of multi-token prediction, which is with the head. */
static inline bool
is_in_layer (const Chunk *c, guint i)
{
  return is_layer (c, i) || operator_at (c, i)->is_of_block;
}

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

/* --- a segment ------------------------------------------------------------------------------ */

/* Ops and buffers of a segment are counted in 16 bits. */
#define MAX_OPS 60000u

#define NO_OP UINT16_MAX /* an index of none */

/* A pass that is cut, to run beside another (lower/layers/lower_layers.h): where its pieces begin. */
typedef enum { PIECE_COMPUTE, PIECE_EXCHANGE, PIECE_WEIGHTS } PieceKind;
typedef struct {
  guint first; /* op */
  PieceKind kind;
} PieceStart;

/* Event classes of a program. EVENT_PIECES + i: a piece of a pass that is cut (lower_layers.h); behind
 * these: parameters of bucket i gathered. */
enum { EVENT_RECV_F, EVENT_RECV_B, EVENT_NORM, EVENT_PIECES };

static inline uint16_t
event_params (const Lower *l, guint i)
{
  return (uint16_t) (EVENT_PIECES + l->n_piece_events + i);
}

/* Operators that wait for an exchange to run beside (lower/layers/lower_experts.c). */
typedef struct {
  const Chunk *c;    /* borrowed; NULL: none */
  guint first;       /* of the layer's       */
  LsTag tag;         /* of a forward         */
  bool keeps;        /* what it saves        */
  LsActionType pass; /* LS_ACTION_F, B or I  */
} SharedExperts;

typedef struct Build {
  Lower *l;
  GArray *ops;                  /* LsOp                                     */
  GArray *next_deps;            /* LsDep: of the next op on that stream     */
  LsStream stream;              /* of kernels: the compute stream, or that of shared experts */
  uint16_t layer;               /* stamped on what is emitted               */
  uint8_t site;                 /* likewise, LsSite                         */
  bool is_counted;              /* likewise: of an operator of counted tokens */
  struct DpPass *pass;          /* of lower_dp.h, while one is built        */
  bool is_end;                  /* of the end of a step: the optimizer      */
  bool is_too_long;             /* ops were dropped                         */
  uint32_t segment;             /* that build_reuses() found                */
  uint32_t layer_kind;          /* of the attention at hand, with cp > 1    */
  const LsDocuments *documents; /* that it meets; NULL: whole sequences */
  GArray *cuts;                 /* PieceStart; NULL: the pass is not cut          */
  GArray *delayed; /* guint: operators whose weight gradients are to come; NULL: none are delayed */
  void (*behind_exchange) (struct Build *b);       /* computes these; NULL: none are delayed */
  SharedExperts shared;                            /* of the layer at hand, that run beside its exchanges */
  void (*beside) (struct Build *b, LsBeside what); /* builds these; NULL: nothing runs beside */
} Build;

void build_init (Build *b, Lower *l);
/* Of what part of a model operator i is. */
LsSite site_of (const Chunk *c, guint i);

/* What is built from here on is of that operator. */
static inline void
build_at_operator (Build *b, const Chunk *c, guint i)
{
  b->layer = layer_of (c, i);
  b->site = (uint8_t) site_of (c, i);
  b->is_counted = operator_at (c, i)->is_counted;
}
/* What is built from here on is a piece of that kind; nothing where the pass is not cut. */
void build_piece (Build *b, PieceKind kind);
void build_clear (Build *b); /* instead of build_finish() */
/* Stores the segment under `name` (copied), which is apart for each cp_rank that has a program
 * of its own, and returns its id; the build is spent. */
uint32_t build_finish (Build *b, const char *name);
/* A name as it is apart for each role that has a program of its own; newly allocated. */
char *build_role_name (const Lower *l, const char *name);
/* Whether a segment was stored under that name before: it is b->segment. If not, begins to build it. */
bool build_reuses (Build *b, Lower *l, const char *name);

uint16_t build_op (Build *b, LsOp op, const LsDep *deps, uint16_t n_deps);
/* The host spends so many of these costs. */
void build_waits (Build *b, LsHostCost each, uint32_t n, LsTag tag);
uint16_t build_kernel (Build *b, const LsKernel *k, LsTag tag);
/* On any stream; other ones than the compute stream take no joins. */
uint16_t build_kernel_on (Build *b, LsStream stream, const LsKernel *k, LsTag tag, const LsDep *deps,
                          uint16_t n_deps);
/* A collective that starts when all on b->stream so far is done. */
uint16_t build_coll (Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, LsDtype dtype,
                     LsTag tag, const char *name);
/* The same behind dep alone (NULL: nothing), and what is before it on its stream. */
uint16_t build_coll_after (Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, LsDtype dtype,
                           LsTag tag, const char *name, const LsDep *dep);
/* The same, for which the next compute op waits. */
void build_coll_joined (Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, LsDtype dtype,
                        LsTag tag, const char *name);
/* Behind what the next compute op would wait for, and all on that stream so far. */
uint16_t build_behind (Build *b, LsStream stream, LsOp op);
/* Sends and receives, in the arena, as one group; behind the compute stream so far. */
uint16_t build_transfers (Build *b, LsStream stream, LsTransfer *transfers, uint16_t n, const char *name);
/* A stream records, or waits for, an event (LS_EVENT_NONE: none); behind dep, if that is not NULL. */
uint16_t build_event (Build *b, LsOpKind kind, LsStream stream, const char *name, uint16_t event,
                      const LsDep *dep);
/* The host waits for these. */
void build_host_sync (Build *b, LsTag tag, const char *name, const LsDep *deps, uint16_t n_deps);
/* The host makes n calls, of a kind; name: static. */
void build_host_calls (Build *b, LsTag tag, LsHostCost of, uint64_t n, const char *name);
/* The next compute op waits for op `index`, if that is not NO_OP. */
void build_join (Build *b, uint16_t index);
/* The next compute op waits for all issued so far on a stream. */
void build_join_stream (Build *b, LsStream stream);
/* An empty op on b->stream that carries the joins; for segments that
 * end in communication which later segments must wait for. */
void build_barrier (Build *b);
/* The host waits for the compute stream, and what it has joined. */
void build_compute_sync (Build *b, const char *name);
/* The host waits for all streams that this strategy uses (torch.cuda.synchronize). */
void build_device_sync (Build *b);
void build_buffer (Build *b, uint16_t op, uint16_t id, LsMemCategory category, uint64_t bytes, bool is_free);
/* The same, counted from or until then. */
void build_buffer_at (Build *b, uint16_t op, uint16_t id, LsMemCategory category, uint64_t bytes,
                      bool is_free, LsMemWhen when);

/* Whether ranks agree on the largest numbers of fp8 tensors over that communicator (lower_operator.c). */
bool is_amax_slot (const Lower *l, LsSlot slot);

/* Its matrix products that take fp8 or nvfp4; those of all experts of a rank are one. */
static inline uint32_t
n_scaled_products (const LsOperator *o)
{
  uint32_t n = 0;
  for (uint32_t k = 0; k < o->n_fwd; k++)
    if (o->fwd[k].kind == LS_KERNEL_GEMM && ls_dtype_is_scaled (o->fwd[k].dtype))
      n++;
  return n;
}

/* LS_ERROR_UNSUPPORTED, with what of the job would make l->too_long shorter and is not so already. FALSE. */
gboolean refuse_long_segment (const Lower *l, GError **error);

/* There is one. */
static inline bool
multiplies_scaled (const LsOperator *o)
{
  return n_scaled_products (o) > 0;
}

/* The format of the first of these; else LS_DTYPE_BF16. */
static inline LsDtype
scaled_dtype (const LsOperator *o)
{
  for (uint32_t k = 0; k < o->n_fwd; k++)
    if (o->fwd[k].kind == LS_KERNEL_GEMM && ls_dtype_is_scaled (o->fwd[k].dtype))
      return o->fwd[k].dtype;
  return LS_DTYPE_BF16;
}

/* What sequence parallelism gathers for it is cast before (model/operators_build.h). */
static inline bool
gathers_scaled (const Lower *l, const LsOperator *o)
{
  return multiplies_scaled (o) && !ls_scaled_keeps_input (&l->shard);
}

/* How a step begins and ends (private). */

uint32_t segment_step_begin (Lower *l, uint32_t pp_rank);
uint32_t segment_step_end (Lower *l, uint32_t pp_rank);
/* Between two flushes of the pipeline; the first of the step. */
uint32_t segment_flush (Lower *l, uint32_t pp_rank, bool is_first);
/* Of a chunk by a hook of the backend (lower_dp.h), which it need not have; what: its name. UINT32_MAX: the
 * hook has nothing to do. */
uint32_t segment_by (Lower *l, bool hook (Build *b, uint32_t pp_rank, uint32_t chunk), const char *what,
                     uint32_t pp_rank, uint32_t chunk);
/* Bytes alive for the whole run, and what lives outside: weights, gradients, what the optimizer keeps. */
void step_static_memory (const Lower *l, uint32_t pp_rank, LsProgram *p);

/* --- lower_step.c: of an optimizer that is not Adam --- */

/* What the fullest rank keeps besides gradients, with a master weight of so many bytes. */
uint64_t optimizer_state_bytes (const Lower *l, uint32_t pp_rank, uint32_t master_bytes);
/* Elements that the busiest rank steps on, where tensors are dealt out. */
uint64_t n_dealt (const Lower *l, uint32_t pp_rank);

/* --- lower_step.c --- */

/* It waits; for micro-batch 0, chunk 0. UINT32_MAX: nothing to check. */
uint32_t segment_check_norm (Lower *l, uint32_t pp_rank);

/* --- lower_pipe.c --- */

/* Sums gradients over the ranks that hold the same stages; nothing to do without pipes. */
void reduce_pipes (Build *b, uint32_t pp_rank);

#endif
