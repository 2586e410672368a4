/* model/model.h — what is trained: the dimensions of a dense decoder.
 *
 * Letters as in the literature: L layers, h hidden, a heads, f ffn, V
 * vocabulary, s sequence, b micro-batch, t tensor-parallel degree. */
#ifndef LS_MODEL_MODEL_H
#define LS_MODEL_MODEL_H

#include <glib.h>
#include <stdint.h>

#include "base/dtype.h"

typedef enum { LS_MLP_GELU, LS_MLP_RELU2, LS_MLP_SWIGLU } LsMlp;           /* 2, 2, 3 matrices */
typedef enum { LS_NORM_LAYERNORM, LS_NORM_RMSNORM } LsNorm;
typedef enum { LS_POSITION_LEARNED, LS_POSITION_ROPE, LS_POSITION_ALIBI, LS_POSITION_NONE } LsPosition;
typedef enum { LS_ATTENTION_UNFUSED, LS_ATTENTION_FLASH } LsAttention;

typedef struct {
  char *name;
  char *source;
  uint32_t n_layers;
  uint32_t hidden;
  uint32_t n_heads;
  uint32_t n_kv_heads; /* = n_heads without GQA           */
  uint32_t head_dim;   /* usually hidden / n_heads        */
  uint32_t ffn;        /* inner width of the MLP          */
  uint32_t vocab;      /* as published, before padding    */
  uint32_t seq;        /* training sequence length        */
  LsMlp mlp;
  LsNorm norm;
  LsPosition position;
  LsAttention attention; /* default of the runs           */
  bool linear_bias;      /* biases on the linear layers   */
  bool qkv_bias;         /* bias on QKV only (Qwen)       */
  bool tied_embeddings;
  bool dropout;          /* trained with dropout          */
} LsModel;

void ls_model_clear (LsModel *model);                       /* NULL allowed */
void ls_model_copy (LsModel *dest, const LsModel *source);  /* deep */

/* V padded to a multiple of 128 * tp (Megatron-LM, --make-vocab-size-divisible-by). */
uint64_t ls_model_padded_vocab (const LsModel *m, uint32_t tp);

/* Parameter counts of the whole model, with the given vocabulary. Linear
 * parameters are those that a token multiplies (no embedding lookup, no norms,
 * no biases); a tied or untied head counts once. */
uint64_t ls_model_params (const LsModel *m, uint64_t vocab);
uint64_t ls_model_layer_params (const LsModel *m);
uint64_t ls_model_linear_params (const LsModel *m, uint64_t vocab);

/* Model FLOPs of one training step (forward + backward, no recomputation) over
 * n_sequences of length seq. causal: count only the lower triangle of attention.
 * Megatron-LM's num_floating_point_operations since r0.8 (non-causal); causal as
 * Megatron-Bridge 2025+. */
double ls_model_flops (const LsModel *m, uint64_t vocab, uint32_t seq, double n_sequences, bool causal);

#endif
