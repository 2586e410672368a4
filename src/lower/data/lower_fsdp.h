/* lower/data/lower_fsdp.h — what PyTorch's two FSDPs share (private; for lower_dp_fsdp1.c and
 * lower_dp_fsdp2.c): units, how long their parameters stay gathered, and the walk over them.
 *
 * A unit is layers_per_unit layers of a chunk; the root unit has what is left: embedding,
 * final norm, head. Its parameters are gathered as one, its gradients reduced as one:
 *
 *     forward    root enters, then each unit enters and leaves
 *     backward   root enters, then each unit, from the last, enters and leaves; root leaves
 *     I and W    I as a backward that reduces nothing; W enters nothing, leaves to reduce
 *
 * Parameters are fp32 shards, gradients are accumulated in fp32 shards, and there is no copy
 * of either: 4 + 4 bytes of each parameter on its owner, 8 with Adam's moments. What is
 * computed with (16 bits) exists only while it is gathered: category `unsharded`. ZeRO's
 * table, (2 + 2 + 12) / n, has the same sum.
 *
 * How long they stay gathered: HOLD_PASS until the pass leaves the unit; HOLD_MB from the
 * forward of a micro-batch to its backward (the root always; zero 2); HOLD_STEP from the first
 * forward of the step to its last backward, where a pipeline or a backward that does not
 * reduce keeps them. Deviations: what is held for a step is counted from its begin to its end,
 * and with a pipeline HOLD_MB is HOLD_STEP. Padding is that of a unit to a multiple of the
 * group (FSDP2 pads every parameter). The shard cast to 16 bits before a gather, unit / n for
 * moments, is not counted.
 *
 * Experts are gathered and reduced with their unit, in collectives of their own. */
#ifndef LS_LOWER_DATA_LOWER_FSDP_H
#define LS_LOWER_DATA_LOWER_FSDP_H

#include "lower/data/lower_dp.h"

#define FSDP_NONE G_MAXUINT

typedef enum { HOLD_PASS, HOLD_MB, HOLD_STEP } FsdpHold;

typedef struct {
  uint64_t numel[2];  /* of a tensor-parallel rank, that learn: others, experts */
  uint64_t frozen[2]; /* bytes of those that do not                            */
  guint first;        /* operator behind which its backward is done */
  bool is_root;
} FsdpUnit;

typedef struct Fsdp Fsdp;

typedef struct {
  bool is_flat; /* a unit is one array, of which each rank has a piece */
  FsdpHold (*hold) (const Lower *l, bool is_root);
  void (*start) (Build *b, DpPass *p, Fsdp *f); /* of a pass; the root enters           */
  void (*enter) (Build *b, DpPass *p, Fsdp *f, guint unit);
  void (*leave) (Build *b, DpPass *p, Fsdp *f, guint unit);
  void (*finish) (Build *b, DpPass *p, Fsdp *f); /* behind the last; root has left       */
} FsdpHooks;

extern const FsdpHooks fsdp1_hooks, fsdp2_hooks;

/* Of a pass, from begin to end: DpPass.state. */
struct Fsdp {
  const FsdpHooks *hooks;
  GArray *units;      /* FsdpUnit: layers in forward order, then the root                */
  guint n;            /* of layers                                                       */
  guint root;         /* n, or FSDP_NONE: embedding and head are elsewhere               */
  guint inside;       /* layers' unit that was entered last, FSDP_NONE: none             */
  uint16_t *gathered; /* [units] op that gathers it in this segment; NO_OP: none         */
  GArray *free_ops;   /* fsdp1: FsdpFree, oldest first: gathers that were freed           */
  guint copied;       /* fsdp2: unit whose gather is still kept after its copy, FSDP_NONE */
  uint16_t copy_out;  /* fsdp2: that copy                                                 */
  guint reducing;     /* fsdp2: unit whose reduce-scatter is in flight, FSDP_NONE         */
  uint16_t reduce_op; /* fsdp2: that                                                      */
  bool adds;          /* fsdp2: its shards have gradients from before an earlier flush      */
};

/* An instant at which the memory of a gather was given back. */
typedef struct {
  bool has_passed; /* of an earlier micro-batch or step */
  bool is_event;   /* of the forward of the same micro-batch: event class, else op */
  uint16_t op;
} FsdpFree;

static inline const FsdpUnit *
fsdp_unit (const Fsdp *f, guint unit)
{
  return &g_array_index (f->units, FsdpUnit, unit);
}

/* --- the walk: hooks of DpBackend ------------------------------------------------------ */

char *fsdp_variant (const Lower *l, const DpPass *p);
void fsdp_begin (Build *b, DpPass *p);
void fsdp_before (Build *b, DpPass *p, guint o);
void fsdp_after (Build *b, DpPass *p, guint o);
void fsdp_end (Build *b, DpPass *p);
/* Outside of a pass: the units of a chunk, to be freed. */
Fsdp *fsdp_new (const Lower *l, const Chunk *c);
void fsdp_free (Fsdp *f);
void fsdp_static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM]);
/* Tensors that the optimizer of a rank steps on. Of flat units those that reach into its piece
 * (use_orig_params; torch/distributed/fsdp/_flat_param.py, _get_shard_metadata (): the others have no
 * gradient there), on the rank that has most of them. */
uint64_t fsdp_n_tensors (const Lower *l, uint32_t pp_rank);

/* Does a pass gather a unit; does a pass complete gradients, and are these reduced? */
bool fsdp_gathers (const Lower *l, const DpPass *p, const Fsdp *f, guint unit);
bool fsdp_has_gradients (const DpPass *p);
bool fsdp_reduces (const Lower *l, const DpPass *p);
/* Gradients are kept whole from one micro-batch to the next. */
bool fsdp_accumulates_whole (const Lower *l);

/* --- sizes -------------------------------------------------------------------------- */

uint64_t fsdp_numel (const FsdpUnit *u);                          /* that learn */
uint64_t fsdp_gathered_bytes (const Lower *l, const FsdpUnit *u); /* of all, as computed with, or in 4 bits */
uint64_t fsdp_frozen_shard_bytes (const Lower *l, const FsdpUnit *u);
uint32_t fsdp_param_size (const Lower *l);  /* bytes of what is computed with    */
uint32_t fsdp_shard_size (const Lower *l);  /* bytes of what is kept, of each    */
uint32_t fsdp_grad_size (const Lower *l);   /* bytes of what autograd makes      */
uint32_t fsdp_reduce_size (const Lower *l); /* bytes of what is reduced          */
/* Elements of a unit on one rank, padded. */
uint64_t fsdp_shard_numel (const Lower *l, const FsdpUnit *u);

/* --- ops ----------------------------------------------------------------------------- */

/* A kernel that moves `bytes` on any stream; tag of the pass. */
uint16_t fsdp_kernel (Build *b, const DpPass *p, LsStream stream, LsFsdpCopy copy, uint64_t numel,
                      uint64_t bytes, const LsDep *deps, uint16_t n_deps);
/* A stream waits for what the compute stream has done so far, or for an op; no duration. */
uint16_t fsdp_wait_compute (Build *b, LsStream stream);
uint16_t fsdp_wait_op (Build *b, LsStream stream, uint16_t op);
/* The collectives of a unit on a stream, one behind the other, over its shards' group or over n
 * neighbours in it (n 0: all). Waits for dep. Returns the last op; dep's if the group is 1. */
uint16_t fsdp_collective (Build *b, const FsdpUnit *u, LsStream stream, int coll, uint32_t n,
                          uint32_t element_size, guint unit, LsDep dep);
/* Behind a reduce-scatter on stream dp: all-reduce over replicas on a stream of its own, then
 * `post` kernels: division, cast to fp32, sum with what is there. */
void fsdp_finish_reduction (Build *b, const DpPass *p, const Fsdp *f, guint unit, uint16_t scattered,
                            uint32_t divisor);
/* torch's factors for n ranks: before and after the sum (default_hooks.py, DefaultState). */
uint32_t fsdp_predivide (uint32_t n);
/* Ranks that a gradient is averaged over. */
uint32_t fsdp_n_averaged (const Lower *l);

/* --- buffers of category unsharded --------------------------------------------------- */

typedef enum {
  FSDP_PARAMS,   /* what is computed with                          */
  FSDP_GATHERED, /* fsdp2: where the collective writes             */
  FSDP_GRADS,    /* fsdp1: the flat gradient                       */
  FSDP_REDUCED,  /* what the reduce-scatter reads                  */
  FSDP_PART,     /* fsdp2: kept when it was resharded to a group   */
  FSDP_N_BUFFERS
} FsdpBuffer;

void fsdp_buffer (Build *b, const DpPass *p, const Fsdp *f, guint unit, FsdpBuffer what, uint16_t op,
                  uint64_t bytes, bool is_free);
/* Gradients of an operator, or of all of a unit, as autograd makes them. */
void fsdp_alloc_grads (Build *b, const DpPass *p, const Fsdp *f, guint o);
void fsdp_free_grads (Build *b, const DpPass *p, const Fsdp *f, guint unit, uint16_t op);
/* What is held for the whole step. */
void fsdp_step_begin (Build *b, uint32_t pp_rank);
void fsdp_step_held (Build *b, uint32_t pp_rank, uint16_t op, bool is_free);

/* A backend, but for what reduces before a flush, and the rest. */
#define FSDP_BACKEND(name_, reduce_flush_, reduce_rest_)                                                     \
  {                                                                                                          \
    .name = (name_), .variant = fsdp_variant, .begin = fsdp_begin, .before = fsdp_before,                    \
    .after = fsdp_after, .end = fsdp_end, .step_begin = fsdp_step_begin, .reduce_flush = (reduce_flush_),    \
    .reduce_rest = (reduce_rest_), .cuts = dp_cut_all, .steps_on_shards = true, .n_tensors = fsdp_n_tensors, \
    .static_memory = fsdp_static_memory                                                                      \
  }

#endif
