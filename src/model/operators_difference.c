/* Differences of two attentions, gates on what a mixer before made, convolutions of keys, on one rank
 * (model/difference.h). */
#include "model/difference.h"

#include "model/mixer.h"
#include "model/operators_build.h"

/* Four calls: two of the heads of each attention, which are half of all unless they are grouped. */
static void
append_calls (GArray *operators, const LsCut *cut)
{
  uint64_t s = cut->shard->seq, q = cut->q_width, second = ls_difference_noise_heads (cut->model, cut->heads);
  LsAttentionPart half = { .queries = s, .keys = s, .kv_heads = cut->kv_heads / 2, .pairs = 0.5 };
  LsOperator *op = ls_operator_append (operators, "attention", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;
  op->layer_kind = cut->kind;
  for (uint32_t i = 0; i < 4; i++) {
    half.heads = i < 2 ? cut->heads - second : second;
    ls_operator_fwd (op, ls_attention_kernel (cut, &half, false));
    ls_operator_igrad (op, ls_attention_kernel (cut, &half, true));
  }
  ls_operator_igrad (op, ls_cut_pass (cut, "call-grad-add", q + cut->k_width + cut->v_width, 3));
  op->kept.saved_bytes = 8 * cut->tokens * cut->heads + 2 * cut->tokens * q * cut->elt;
}

void
ls_operators_difference (GArray *operators, const LsCut *cut)
{
  uint64_t q = cut->q_width, made = cut->context_width, pair = 2ull * cut->model->head_dim,
           rows = cut->tokens * (made / pair);
  append_calls (operators, cut);
  LsOperator *op = ls_operator_append (operators, "attention-difference", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;
  ls_operator_fwd (op, ls_cut_pass (cut, "attention-join", q, 4));
  ls_operator_fwd (op, ls_cut_pass (cut, "attention-difference", 2 * q + made, 1));
  ls_operator_igrad (op, ls_cut_pass (cut, "attention-difference-bwd", 2 * q + made, 1));
  ls_operator_igrad (op, ls_cut_pass (cut, "attention-part", q, 4));
  op->kept.saved_bytes = cut->tokens * (2 * q - made) * cut->elt; /* the second */
  op = ls_operator_append (operators, "difference-norm", LS_TP_NONE);
  op->role = LS_OPERATOR_NORM;
  ls_operator_fwd (op, ls_cut_stream (cut, "difference-norm", LS_KERNEL_NORM, rows, pair, 2 * cut->elt));
  ls_operator_fwd (op, ls_cut_pass (cut, "difference-factor", made, 2));
  ls_operator_igrad (op, ls_cut_pass (cut, "difference-factor-bwd", made, 2));
  ls_operator_igrad (op,
                     ls_cut_stream (cut, "difference-norm-bwd", LS_KERNEL_NORM, rows, pair, 5 * cut->elt));
  ls_operator_param (op, ls_difference_params (cut->model));
  op->params.is_replicated = true;
  op->kept.saved_bytes = cut->tokens * made * cut->elt;
}

/* Both inputs are kept by what made them. */
void
ls_operators_memory_gate (GArray *operators, const LsCut *cut)
{
  uint64_t inner = ls_mixer_inner (cut->model) / cut->shard->tp;
  LsOperator *op = ls_operator_append (operators, "memory-gate", LS_TP_NONE);
  ls_operator_fwd (op, ls_cut_pass (cut, "memory-gate", inner, 3));
  ls_operator_igrad (op, ls_cut_pass (cut, "memory-gate-bwd", inner, 5));
  ls_operator_igrad (op, ls_cut_pass (cut, "memory-grad-add", inner, 3));
}

/* Each head by itself. */
void
ls_operators_kv_conv (GArray *operators, const LsCut *cut)
{
  uint64_t width = cut->k_width + cut->v_width;
  if (cut->model->attn.kv_conv == 0)
    return;
  LsOperator *op = ls_operator_append (operators, "kv-conv", LS_TP_NONE);
  ls_operator_fwd (op, ls_cut_pass (cut, "kv-conv", width, 2));
  ls_operator_igrad (op, ls_cut_pass (cut, "kv-conv-bwd", width, 3));
  ls_operator_param (op, 2 * cut->kv_heads * cut->model->attn.kv_conv);
  op->kept.saved_bytes = cut->tokens * width * cut->elt;
}
