/* model/operators.h — every operator of a layer, of the embedding, of the head
 * and of the loss, as kernels on one rank.
 *
 * An operator has forward kernels, input-gradient kernels (I) and weight-gradient
 * kernels (W), the bytes that it keeps from its forward to its backward, and its
 * parameters. What tensor parallelism does around it is said by `tp`; the
 * collectives themselves are inserted by parallel/:
 *
 *   LS_TP_NONE    nothing. With sequence parallelism its activations are 1/t.
 *   LS_TP_COLUMN  forward: input gathered (SP). backward: gradient of the input
 *                 all-reduced, or reduce-scattered (SP), beside the W GEMM;
 *                 input gathered again (SP) beside the I GEMM.
 *   LS_TP_ROW     forward: output all-reduced, or reduce-scattered (SP).
 *                 backward: gradient of the output gathered (SP).
 *   LS_TP_VOCAB   as LS_TP_ROW, but the output is all-reduced even with SP: learned
 *                 positions are added to whole sequences, which are cut afterwards.
 *   LS_TP_REDUCE  forward: `reduce_bytes` all-reduced afterwards, no overlap;
 *                 backward: nothing (vocabulary-parallel cross-entropy).
 */
#ifndef LS_MODEL_OPERATORS_H
#define LS_MODEL_OPERATORS_H

#include "model/kernel.h"
#include "model/model.h"

typedef enum { LS_TP_NONE, LS_TP_COLUMN, LS_TP_ROW, LS_TP_VOCAB, LS_TP_REDUCE } LsTpMode;

#define LS_OPERATOR_MAX_KERNELS 4
#define LS_OPERATOR_MAX_PARAMS 2

typedef struct {
  const char *name; /* static */
  LsTpMode tp;
  bool attention_core; /* recomputed by selective recomputation (Korthikanti et al. 2022, section 5) */
  uint8_t n_fwd, n_igrad, n_wgrad, n_params;
  LsKernel fwd[LS_OPERATOR_MAX_KERNELS];
  LsKernel igrad[LS_OPERATOR_MAX_KERNELS];
  LsKernel wgrad[LS_OPERATOR_MAX_KERNELS];
  uint64_t param_numel[LS_OPERATOR_MAX_PARAMS]; /* of this rank: weight, bias, in definition order */
  bool param_replicated; /* not divided by t (norms, row biases, positions)      */
  bool grad_is_whole;    /* replicated, yet with SP each rank has the whole gradient: no
                            all-reduce over tp (positions)                         */
  uint64_t saved_bytes;  /* kept on this rank from forward to backward          */
  uint64_t reduce_bytes; /* LS_TP_REDUCE only                                    */
} LsOperator;

/* How a model is cut, as far as one rank's operators depend on it. */
typedef struct {
  uint32_t tp;
  bool sp;              /* sequence parallelism; no effect with tp 1 */
  uint32_t micro_batch; /* sequences                                 */
  uint32_t seq;         /* tokens per sequence                       */
  LsAttention attention;
  LsDtype dtype;        /* of activations and weights                */
  LsDtype grad_dtype;   /* of the gradients that W accumulates into  */
} LsShard;

/* Append LsOperator values to a GArray in forward order. */
void ls_operators_embedding (const LsModel *m, const LsShard *s, GArray *operators);
void ls_operators_layer (const LsModel *m, const LsShard *s, GArray *operators);
/* Final norm, logits, loss. with_weight: the head has a weight of its own here
 * (untied, or tied but on another stage than the embedding). */
void ls_operators_head (const LsModel *m, const LsShard *s, bool with_weight, GArray *operators);

/* Bytes of the tensor between two layers on one rank (2sbh, /t with SP). */
uint64_t ls_boundary_bytes (const LsModel *m, const LsShard *s);

/* One optimizer step over n_params local parameters with mixed-precision Adam, as
 * Megatron-LM launches it; bytes per parameter follow from the dtypes
 * (optimizer.c). Appends LsKernel values. The one of kind REDUCTION is the gradient
 * norm, and "grad-unscale" (fp16) looks for inf: their all-reduces follow them. */
void ls_optimizer_kernels (uint64_t n_params, LsDtype dtype, LsDtype grad_dtype, GArray *kernels);

#endif
