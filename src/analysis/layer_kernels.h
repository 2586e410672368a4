/* analysis/layer_kernels.h — which kernels a transformer layer launches: of a profile, told apart by where
 * they stand; of a job, by their operators.
 *
 * Problem. Names of eager kernels say what they do to elements, not for whom: a multiplication may be of a
 * norm, of rope or of an activation. But attention and matrix products have names, and a layer has them in
 * one order:
 *
 *     attention | copies | proj | residual sum, norm | fc1 (gate, up) | activation | fc2 |
 *     residual sum, norm | qkv (q, k, v) | rope, copies | attention
 *
 * From an attention to the next one there are 1 + fc1 + 1 + qkv products, with 1 or 2 for fc1 and 1 to 3 for
 * qkv: 4 to 7. Which of the splits it is follows from where other kernels stand: some before fc1, fc2 and the
 * first of qkv, none between q, k and v. Before a norm what adds, behind what drops out, is the residual sum;
 * copies right before attention are its own; kernels that are named as a norm are one anywhere.
 *
 * Worked example. Of an eager layer: A c G + n*8 G s G m G + n*8 G G G r*10 c c c A has 7 products, so fc1 2
 * and qkv 3: copies 4, residual sums 2, norms 16, activation 2 (also between gate and up), rope 10.
 *
 * Several kernels of one attention in a row count as one, and so does a product with the sum of its split K.
 * The most frequent of all stretches between two attentions is the layer; those with an embedding, a loss or
 * an optimizer in them are none. Where the split does not come out (experts, latent attention) all but
 * products, attention and memsets is `rest`; backwards always, as autograd orders operators by their inputs.
 * A stretch backwards has no forward in it: of a job that recomputes its layers the profile shows the forward
 * only.
 *
 * Deviation. Norms of Q and K that are launched as several elementwise kernels count as rope. */
#ifndef LS_ANALYSIS_LAYER_KERNELS_H
#define LS_ANALYSIS_LAYER_KERNELS_H

#include "analysis/reconcile.h"
#include "compute/cost.h"
#include "model/operators.h"

typedef enum {
  LS_LAYER_GEMM,
  LS_LAYER_ATTENTION,
  LS_LAYER_NORM,
  LS_LAYER_RESIDUAL,
  LS_LAYER_ROPE,
  LS_LAYER_COPIES, /* around attention */
  LS_LAYER_ACTIVATION,
  LS_LAYER_BESIDE, /* products: biases, between Q, K and V */
  LS_LAYER_REST,
  LS_LAYER_MEMSET,
  LS_N_LAYER_PARTS
} LsLayerPart;

extern const char *const ls_layer_part_names[LS_N_LAYER_PARTS]; /* by value: "gemm", "residual sum" */

/* A layer one way; of a profile on average over those that are alike. */
typedef struct {
  guint n[LS_N_LAYER_PARTS];
  LsTime time[LS_N_LAYER_PARTS];
  guint n_layers; /* that are alike; 0: the profile shows none */
  guint n_spans;  /* of so many stretches between two attentions */
  bool is_split;  /* else all that is not told apart is `rest` */
} LsPassKernels;

typedef enum { LS_PASS_FORWARD, LS_PASS_BACKWARD, LS_N_PASSES } LsPass;

typedef struct {
  LsPassKernels pass[LS_N_PASSES];
} LsLayerKernels;

LsLayerKernels ls_layer_kernels_of_side (const LsStepSide *side);
/* operators: LsOperator of a layer; times alone, with the gap before each kernel. */
LsLayerKernels ls_layer_kernels_of_operators (const GArray *operators, const LsCalibration *calibration,
                                              const LsGpu *gpu);

/* `of` told apart no further than `like` is. */
LsPassKernels ls_pass_kernels_as (const LsPassKernels *of, const LsPassKernels *like);
guint ls_pass_kernels_total (const LsPassKernels *p); /* without memsets */
/* Kernels that one has more or less than the profile, by part, memsets left out; passes that the profile does
 * not show too. */
guint ls_layer_kernels_off (const LsLayerKernels *measured, const LsLayerKernels *other);

#endif
