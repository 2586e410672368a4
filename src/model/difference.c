/* Differences of two attentions, convolutions of keys, on one rank
 * (model/difference.h). */
#include "model/difference.h"

#include "model/operators_build.h"

const char *
ls_model_check_difference (const LsModel *m)
{
  if (m->attn.noise_heads > 0
      && (!m->attn.difference || m->attn.noise_heads >= m->n_heads || m->n_heads % m->attn.noise_heads != 0))
    return "expected \"difference\", and a divisor of the heads, less than all, with \"noise_heads\"";
  if (!m->attn.difference)
    return m->attn.difference_plain ? "expected \"difference\" with \"difference_plain\"" : NULL;
  if (m->n_heads % 2 != 0 || m->n_kv_heads % 2 != 0)
    return "expected pairs of heads, of keys too, with differences of attention";
  bool is_plain = m->latent.kv_lora + m->latent.q_lora + m->compressed.out_groups + m->index.heads
              + m->sides.encoder_layers + m->moe.attention_experts + m->layers.shared_blocks + m->v_dim
          == 0
      && !ls_model_heads_differ (m);
  return is_plain ? NULL
                  : "expected neither latents, indexers, an encoder, experts of attention, shared blocks, "
                    "v_dim nor heads that differ with differences of attention";
}

const char *
ls_model_check_kv_conv (const LsModel *m)
{
  bool is_plain = m->latent.kv_lora + m->compressed.out_groups + m->index.heads + m->sides.encoder_layers
              + m->halves.kv_shared_layers + m->moe.attention_experts + m->layers.shared_blocks
          == 0
      && !m->attn.full_k_is_v;
  return m->attn.kv_conv == 0 || is_plain
      ? NULL
      : "expected neither latents of keys, indexers, an encoder, shared keys or blocks, experts of attention "
        "nor keys that are values with a convolution of keys and values";
}

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
  ls_operator_passes (op, cut, cut->tokens, 2 * q + made, "attention-difference", 1,
                      "attention-difference-bwd", 1);
  ls_operator_igrad (op, ls_cut_pass (cut, "attention-part", q, 4));
  op->kept.saved_bytes = cut->tokens * (2 * q - made) * cut->elt; /* the second */
  op = ls_operator_append (operators, "difference-norm", LS_TP_NONE);
  op->role = LS_OPERATOR_NORM;
  ls_operator_fwd (op, ls_cut_stream (cut, "difference-norm", LS_KERNEL_NORM, rows, pair, 2 * cut->elt));
  ls_operator_passes (op, cut, cut->tokens, made, "difference-factor", 2, "difference-factor-bwd", 2);
  ls_operator_igrad (op,
                     ls_cut_stream (cut, "difference-norm-bwd", LS_KERNEL_NORM, rows, pair, 5 * cut->elt));
  ls_operator_param (op, (cut->model->attn.difference_plain ? 4 : 6) * (uint64_t) cut->model->head_dim);
  op->params.is_replicated = true;
  op->kept.saved_bytes = cut->tokens * made * cut->elt;
}

/* Each head by itself. */
void
ls_operators_kv_conv (GArray *operators, const LsCut *cut)
{
  uint64_t width = cut->k_width + cut->v_width;
  if (cut->model->attn.kv_conv == 0)
    return;
  LsOperator *op = ls_operator_append (operators, "kv-conv", LS_TP_NONE);
  ls_operator_passes (op, cut, cut->tokens, width, "kv-conv", 2, "kv-conv-bwd", 3);
  ls_operator_param (op, 2 * cut->kv_heads * cut->model->attn.kv_conv);
  op->kept.saved_bytes = cut->tokens * width * cut->elt;
}
