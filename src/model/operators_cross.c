/* Attention of a decoder's tokens to an encoder's on one rank (Raffel et al. 2020, T5, section 2.1;
 * Megatron-LM, core/transformer/attention.py, CrossAttention):
 *
 *     x ------- cross-q ----.
 *     encoder - cross-kv ---+-- cross-attention -- cross-proj
 *
 * t tokens of the decoder meet all s of the encoder: 4 s t d FLOPs per head and sequence, backward 2.5 times
 * that. Keys and values are made of the encoder's tokens anew in each layer: a GEMM of s tokens, whose input
 * is the same for all layers and kept once (operators_head.c); its gradients are summed over the layers.
 *
 * Worked example. T5 XXL: 512 and 114 tokens, h 4096, 64 heads of 64: keys and values take
 * 2 x 512 x 4096 x 8192 = 34.4 GFLOP, attention 4 x 512 x 114 x 4096 = 0.96 GFLOP. */
#include "model/operators_build.h"

static const LsLinearNames q_names = { "cross-q", "cross-q-dgrad", "cross-q-wgrad" };
static const LsLinearNames kv_names = { "cross-kv", "cross-kv-dgrad", "cross-kv-wgrad" };
static const LsLinearNames proj_names = { "cross-proj", "cross-proj-dgrad", "cross-proj-wgrad" };

static void
append_keys_and_values (GArray *operators, const LsCut *cut, const LsShard *encoder)
{
  LsCut theirs;
  LsShard shard = *encoder;
  shard.dtype = cut->shard->dtype;
  ls_cut_init (&theirs, cut->model, &shard);
  uint64_t h = cut->model->hidden, width = 2 * cut->kv_width;
  LsOperator *op = ls_operator_append (operators, "cross-kv", LS_TP_COLUMN);
  ls_operator_linear (op, &theirs, &kv_names, shard.dtype, h, width);
  ls_operator_igrad (op,
                     ls_cut_stream (&theirs, "encoder-grad-add", LS_KERNEL_ELEMENTWISE, theirs.local_tokens,
                                    h, 3 * theirs.elt));
  ls_operator_weight (op, LS_TENSOR_ROWS, width, h, 1);
  op->input_bytes = 0;
  op->saved_bytes = theirs.tokens * width * theirs.elt;
  op->tp_bytes = theirs.tokens * h * theirs.elt;
}

void
ls_operators_cross_attention (GArray *operators, const LsCut *cut, const LsShard *encoder)
{
  uint64_t h = cut->model->hidden;
  LsOperator *op = ls_operator_append (operators, "cross-q", LS_TP_COLUMN);
  ls_operator_linear (op, cut, &q_names, cut->shard->dtype, h, cut->q_width);
  ls_operator_weight (op, LS_TENSOR_ROWS, cut->q_width, h, 1);
  op->saved_bytes += cut->tokens * cut->q_width * cut->elt;

  append_keys_and_values (operators, cut, encoder);

  LsAttentionPart whole = { .queries = cut->shard->seq,
                            .keys = encoder->seq,
                            .heads = cut->heads,
                            .kv_heads = cut->kv_heads,
                            .pairs = 1 };
  op = ls_operator_append (operators, "cross-attention", LS_TP_NONE);
  ls_operator_fwd (op, ls_attention_kernel (cut, &whole, false));
  ls_operator_igrad (op, ls_attention_kernel (cut, &whole, true));
  op->saved_bytes = 4 * cut->tokens * cut->heads; /* log-sum-exp, fp32 */

  op = ls_operator_append (operators, "cross-proj", LS_TP_ROW);
  ls_operator_linear (op, cut, &proj_names, cut->shard->dtype, cut->q_width, h);
  ls_operator_weight (op, LS_TENSOR_COLUMNS, h, cut->q_width, 1);
}
