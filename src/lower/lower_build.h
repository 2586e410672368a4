/* lower/lower_build.h — a segment under construction: ops, dependencies, buffers (private). */
#ifndef LS_LOWER_LOWER_BUILD_H
#define LS_LOWER_LOWER_BUILD_H

#include "lower/lower_state.h"

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
/* What is built from here on is of that operator. */
static inline void
build_at_operator (Build *b, const Chunk *c, guint i)
{
  b->layer = layer_of (c, i);
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
/* The next compute op waits for op `index`. */
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
/* Gathers parameters of a chunk as the step begins; UINT32_MAX: nothing to gather. */
uint32_t segment_early_gather (Lower *l, uint32_t pp_rank, uint32_t chunk);
/* Where lower_dp.h has them between passes. */
uint32_t segment_gather_chunk (Lower *l, uint32_t pp_rank, uint32_t chunk);
uint32_t segment_reduce_chunk (Lower *l, uint32_t pp_rank, uint32_t chunk);
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
/* Of the 16-bit weights. */
uint32_t n_weight_versions (const Lower *l, uint32_t pp_rank);

#endif
