/* model/optimizer_kind.h — optimizers that are not Adam, as data: what each keeps of a tensor, and the
 * kernels of its step (strategies/optimizers/NAME.json).
 *
 * A tensor belongs to the first part of the optimizer that takes it. A part may cut it into tiles of at most
 * so many rows and columns, each of which is then a tensor by itself. What a part keeps of a tensor of
 * n = rows x columns elements, in bytes, besides gradient and master weight:
 *
 *     n state_bytes + ceil (n / block) block_bytes                   a value an element, scales of blocks
 *     + rows row_bytes + columns column_bytes                        sums of rows and columns (Adafactor)
 *     + side_bytes sum of side^2 over its sides, 2 to max_side       preconditioners (Shampoo, SOAP)
 *
 * Newton-Schulz of Muon on an m x n matrix, s the smaller and l the larger of the two, is five times
 *
 *     A = X X^T, B = b A + c A A, X = a X + B X:   2 s^2 l + 2 s^3 + 2 s^2 l FLOPs
 *
 * (K. Jordan, Muon: An optimizer for hidden layers in neural networks, 2024; as a share of the step's at most
 * 5 m / B with batches of B tokens). */
#ifndef LS_MODEL_OPTIMIZER_KIND_H
#define LS_MODEL_OPTIMIZER_KIND_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/kernel.h"

/* Vectors; weights of products in layers; embeddings, and the head. */
typedef enum { LS_TENSOR_VECTOR, LS_TENSOR_MATRIX, LS_TENSOR_TABLE } LsTensorKind;
/* Which of its dimensions tensor parallelism cuts. */
typedef enum { LS_TENSOR_WHOLE, LS_TENSOR_ROWS, LS_TENSOR_COLUMNS } LsTensorCut;

/* A parameter as one rank has it. */
typedef struct {
  LsTensorKind kind;
  LsTensorCut cut;
  bool is_expert;
  uint64_t rows, columns; /* of a vector: 1 row */
} LsTensor;

typedef enum { LS_TAKES_ALL, LS_TAKES_2D, LS_TAKES_MATRICES } LsTakes;
/* A dimension of a product: of a matrix the smaller, the larger, or one by its name. */
typedef enum { LS_SIDE_SHORT, LS_SIDE_LONG, LS_SIDE_ROWS, LS_SIDE_COLUMNS } LsSide;
typedef enum { LS_SIDES_NONE, LS_SIDES_ROWS, LS_SIDES_COLUMNS } LsPreconditioned;

/* A kernel that streams, or a matrix product. */
typedef struct {
  char *name;
  double
      bytes;   /* read and written of an element, with `of` one of that side's preconditioner; 0: a product */
  int access;  /* LsAccess of a stream                         */
  bool whole;  /* a stream over the whole matrix, also where a rank owns a part of it */
  int m, n, k; /* LsSide of a product                          */
  double depth; /* so many times k                              */
  int dtype;    /* LsDtype of a product                         */
  bool adds;    /* C is read too                                */
  bool sums;    /* C is summed over tp where ranks have parts of k */
  int of;       /* LsPreconditioned: only where that side is preconditioned */
  uint32_t times;
  uint32_t every; /* steps: in each, every so manieth tensor runs it */
} LsOptimizerKernel;

typedef struct {
  int takes;             /* LsTakes                */
  uint64_t min_elements; /* smaller tensors it leaves to later parts */
  double state_bytes, block_bytes, row_bytes, column_bytes, side_bytes;
  uint64_t block, max_side, tile; /* 0: no blocks, no limit, whole tensors */
  bool by_tensor;                 /* a kernel for each tensor; else one over all */
  GArray *kernels;                /* LsOptimizerKernel, in order */
} LsOptimizerPart;

/* Frozen and shared. */
typedef struct {
  char *name, *source;
  char *note;    /* what of it is not as it runs; NULL: nothing */
  GArray *parts; /* LsOptimizerPart; the last takes all tensors */
} LsOptimizerKind;

LsOptimizerKind *ls_optimizer_kind_new (void);                  /* with one reference, empty */
LsOptimizerKind *ls_optimizer_kind_ref (LsOptimizerKind *kind); /* NULL allowed */
void ls_optimizer_kind_unref (LsOptimizerKind *kind);           /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsOptimizerKind, ls_optimizer_kind_unref)

/* What some part of one needs: whole matrices, to multiply or to sum by rows and columns; tiles of tensors;
 * products that are summed over ranks. */
typedef enum {
  LS_NEEDS_PRODUCTS = 1,
  LS_NEEDS_SUMS = 2,
  LS_NEEDS_MATRICES = LS_NEEDS_PRODUCTS | LS_NEEDS_SUMS,
  LS_NEEDS_TILES = 4,
  LS_NEEDS_SUMMED_PRODUCTS = 8
} LsOptimizerNeed;

/* A set of these. */
uint32_t ls_optimizer_needs (const LsOptimizerKind *kind);
/* The fewest bytes that it keeps of an element. */
double ls_optimizer_least_state (const LsOptimizerKind *kind);

uint64_t ls_tensor_numel (const LsTensor *t);
const LsOptimizerPart *ls_optimizer_part (const LsOptimizerKind *kind, const LsTensor *t);
/* Appends what the part steps on: t, or its tiles, whose sides are of `tile` but the last. To LsTensors. */
void ls_optimizer_tiles (const LsOptimizerPart *part, const LsTensor *t, GArray *tiles);
/* Of n elements of a tensor that a rank owns; what is by row, column or side needs all of them. */
uint64_t ls_optimizer_state_bytes (const LsOptimizerPart *part, const LsTensor *t, uint64_t n);
/* Which of n tensors, one or more, run it in a step. What runs every so many steps runs on tensors whose
 * work together is that of a mean step: from the one with most work down, where at least half of its own is
 * due. */
void ls_optimizer_runs (const LsOptimizerPart *part, const LsOptimizerKernel *k,
                        const LsTensor *const *tensors, guint n, bool *ret_runs);
/* One launch. t: the matrix that is multiplied; swapped: short are its columns, long its rows, whichever is
 * larger, or the other way round (LS_TENSOR_ROWS, LS_TENSOR_COLUMNS; LS_TENSOR_WHOLE: as they are). */
LsKernel ls_optimizer_product (const LsOptimizerKernel *k, const LsTensor *t, LsTensorCut held);
/* Over n elements of t, or over the preconditioner of the side that it is of. */
LsKernel ls_optimizer_stream (const LsOptimizerKernel *k, const LsTensor *t, uint64_t n);
/* FLOPs of all products of a tensor in a step, times and depth counted, `every` as a share. */
double ls_optimizer_flops (const LsOptimizerPart *part, const LsTensor *t);

#endif
