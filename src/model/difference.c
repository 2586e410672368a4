/* model/difference.c — differences of two attentions, mixers that gate what one before them made, and keys
 * and values that meet those of the tokens before.
 *
 * Differences (Ye et al. 2024, Differential Transformer, arXiv 2410.05258, section 2.1). Heads of queries,
 * keys and values are in pairs. The first of each pair make one attention, the second another one, both over
 * the values of both; with l a number learned of four vectors of a head's width d
 *
 *     y = (1 - l0) norm (A1 - l A2)              A1, A2: as wide as all heads, the norm over 2 d
 *
 * Grouped (Grouped Differential Attention, 2025, arXiv 2510.06949): of a heads n make the second, which
 * (a - n) / n heads of the first share; keys are half of each. The context is 2 (a - n) d wide.
 *
 * As kernels have values as wide as keys, each attention is two calls, for the values of the first and of the
 * second: four calls of half of the heads each, which compute scores twice, 8 s^2 d a head instead of 4.
 * FLOPs of a model count what these calls do. Elements of the context of q columns that are moved beside
 * them: 4 q to join, 3 q for the difference, 2 q each for the norm and its factor; backward 5 q, 3 q, 2 q and
 * 4 q to part, and 3 q + 3 of keys and values for sums of two gradients each. Kept: what four calls make
 * (2 q), the second attention, the norm's input. Learned: 6 d of a layer, 4 d where
 * the norm has no weights (DiffLlama: huggingface/transformers modular_diffllama.py).
 *
 * Shared memory (Ren et al. 2025, Decoder-Hybrid-Decoder Architecture for Efficient Reasoning with Long
 * Generation, arXiv 2507.06607, section 2): where layers share keys and values (model/beside.c), mixers among
 * them are gated memory units. With m what the scan of the last mixer before them gave, of I columns,
 *
 *     y = W2 (m * silu (W1 x))                   W1: h x I, W2: I x h
 *
 * and the gradients of m are summed over them. m is kept by the mixer that made it.
 *
 * Convolutions (Baichuan-M1; mlx-lm baichuan_m1.py): each head of keys, and of values, is a sum of its last
 * few tokens, with a weight for each tap: 2 a taps of a layer with a such heads. One kernel each way is taken
 * to read and write each number once, backward three numbers; what goes in is kept.
 *
 * Worked example. Phi-4-mini-flash (h 2560, 40 heads of 64, 20 of keys, f 10240, I 5120): of 32 layers 9 have
 * mamba1 (41.2 M), 9 attention (19.7 M), 7 such units (26.2 M), 7 attention without keys (13.1 M), all an MLP
 * (78.6 M); with one table of 200,064 rows 3.85 G.
 *
 * Deviations. l is left out, and which rows of a buffer a view of every second head skips.
 *
 * References: microsoft/Phi-4-mini-flash-reasoning modeling_phi4flash.py, as in NVIDIA/TensorRT-LLM
 * tensorrt_llm/_torch/auto_deploy/models/custom and vllm-project/vllm@03356f8c
 * vllm/model_executor/models/phi4flash.py.
 *
 * Differences of two attentions, convolutions of keys, on one rank
 *. */
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
  LsOperator *op
      = ls_operators_passes (operators, cut, cut->tokens, width, "kv-conv", 2, "kv-conv-bwd", 3, 1);
  ls_operator_param (op, 2 * cut->kv_heads * cut->model->attn.kv_conv);
}
