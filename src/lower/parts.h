/* lower/parts.h — the passes over what a model is made of, each lowered once.
 *
 * Problem. Thousands of configurations of a sweep differ in how many stages, copies and micro-batches they
 * have, and run the same layers. What these take is asked of each: for layers that come out even
 * (lower/balance.h), and for what a step takes at least (bound/bound.h).
 *
 * An embedding, a head and a layer of each kind are lowered as chunks of their own, forwards and backwards
 * with what runs again, without data parallelism and without what is at the ends of passes. What is
 * remembered says which kernels and collectives run, on which streams, after what; whoever asks knows what
 * each takes.
 *
 * Deviations: products of all layers are in one format, also where those at the ends of the model are in
 * bf16; full recomputation by block runs only the first layers of a chunk again; here each layer runs again,
 * or none does. */
#ifndef LS_LOWER_PARTS_H
#define LS_LOWER_PARTS_H

#include "lower/lower.h"

/* Of a pass. The host's are there, too, so that dependencies are numbered as in a plan. */
typedef struct {
  union {
    uint64_t bytes;  /* of a collective: the whole array */
    uint32_t kernel; /* ls_parts_kernel()                */
  };
  const LsDep *deps; /* [n_deps] */
  uint16_t n_deps;
  uint8_t stream, slot, coll, kind; /* as in LsOp */
} LsPartOp;

typedef struct {
  const LsPartOp *ops;
  uint32_t n_ops;
} LsPartPass;

/* LS_MODEL_LAYER + i: the i-th of ls_model_first_of_kinds(). */
enum {
  LS_MODEL_EMBEDDING,
  LS_MODEL_HEAD,
  LS_MODEL_LAYER,
  LS_N_MODEL_PARTS = LS_MODEL_LAYER + LS_MAX_MODEL_KINDS
};

/* Backwards are B, or I with the weights' gradients apart. */
typedef enum { LS_PARTS_FORWARD, LS_PARTS_BACKWARD, LS_PARTS_WEIGHTS, LS_N_PARTS_PASSES } LsPartPassKind;

/* Of a part on one rank. */
typedef struct {
  uint64_t n_params, n_expert;                /* the latter of the former: experts; those that learn */
  uint64_t n_frozen, n_frozen_experts, n_nf4; /* that do not; the others of the first                */
  uint64_t kept; /* bytes of activations from its forward to its backward, at least; of layers */
} LsPartSizes;

typedef struct {
  LsPartPass pass[LS_N_PARTS_PASSES];
  LsPartSizes size;
} LsModelPart;

typedef struct {
  LsModelPart *part; /* [n] */
  uint32_t n;        /* LS_MODEL_LAYER, and kinds that the model has */
} LsModelParts;

/* Of which rank and micro-batch. */
typedef enum {
  LS_PARTS_USUAL, /* the slowest of cp, with the mean of documents       */
  /* The ranks with index 0, and only what runs on each in every micro-batch: nothing of operators whose
   * tokens are of uneven number, nor of gradients that are there before, nor of layers that not all chunks
   * run again. Backwards: B, or I and W. */
  LS_PARTS_LEAST,
  LS_PARTS_LEAST_SPLIT,
} LsPartsOf;

/* What was lowered. */
typedef struct LsPartsMemo LsPartsMemo;
LsPartsMemo *ls_parts_memo_new (const LsModel *m); /* borrowed; of one reference */
LsPartsMemo *ls_parts_memo_ref (LsPartsMemo *memo);
void ls_parts_memo_unref (LsPartsMemo *memo); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsPartsMemo, ls_parts_memo_unref)

/* s: resolved. variant: strategies with the same agree in all that has no axis of its own in a sweep
 * (sweep/space.h). The memo's; NULL: errors, as of ls_lower(), told the first time. */
const LsModelParts *ls_parts_of (LsPartsMemo *memo, const LsStrategy *s, uint64_t variant, LsPartsOf of,
                                 GError **error);
/* Below the number that there are now. */
const LsKernel *ls_parts_kernel (const LsPartsMemo *memo, uint32_t kernel);

/* Of parts with whole backwards. costs: as of ls_lower(). */
LsPartTimes ls_part_times (const LsPartsMemo *memo, const LsModelParts *parts, const LsLowerCosts *costs);

#endif
