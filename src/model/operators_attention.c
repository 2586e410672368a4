/* The attention of a layer on one rank: a/t heads over whole sequences.
 *
 * Unfused, as Megatron-LM of 2021-22 launches it: baddbmm for the scores, one
 * fused scale-mask-softmax, dropout, bmm with V, and a copy of the context from
 * [b a s d] to [s b a d]. Q, K, V are views of the QKV output and need no copy.
 * GEMMs compute whole squares; the fused softmax reads only what the causal mask
 * leaves (its loads stop at the row's own token) and writes zeros elsewhere.
 *
 * Flash (Dao et al. 2022, 2023): one kernel each way, causal. FLOPs: forward
 * 4 s^2 d per head and sequence, half of it if causal; backward 2.5 times that,
 * because it computes Q K^T again. With a window it skips the keys outside; unfused kernels mask them. So
 * does PyTorch's scaled_dot_product_attention, which knows no windows: transformers (masking_utils.py,
 * _ignore_causal_mask_sdpa) hands it a mask where the window is not longer than the sequence. The kernel
 * meets all s keys then, twice what a causal mask leaves, and each call makes 16-bit numbers of the mask,
 * which are kept: 2 s^2 bytes a sequence. Worked example: Mistral-7B, a window of 4,096 and as many tokens:
 * 32 heads of 128 have 4 * 4096^2 * 4096 = 2.7e11 FLOPs forward, and the mask 34 MB. Such a kernel has a rate
 * of its own (attention_masked of compute/cost.h). Deviation: keys are not copied for each head of queries,
 * as transformers does with a mask.
 * Of packed documents it meets the keys of each document alone (model/documents.h).
 *
 * Unpadded (llm-foundry's attn_impl flash of 2023, llmfoundry/models/layers/attention.py, flash_attn_fn;
 * flash_attn/bert_padding.py): each of Q, K and V is gathered by an index of the tokens that are no padding,
 * which is made anew from a mask and whose length and longest sequence the host reads; the context is
 * scattered into zeros. Backward, the gradients go the same ways. Of the six kernels that make an index,
 * the two are kept that read the mask.
 *
 * saved_bytes: Q, K and V are kept by the QKV operator and the context by the
 * projection, so the operators here that selective recomputation covers keep
 * exactly 5 a s^2 b / t (16-bit, dropout): softmax output, mask, dropout output.
 *
 * Values may be narrower than keys: of MiMo-V2-Flash 128 and 192 (huggingface/transformers@019770dd,
 * src/transformers/models/mimo_v2_flash/modeling_mimo_v2_flash.py). With keys n and values v wide a
 * flash kernel has 2 s^2 (n + v) FLOPs per head, as if both were (n + v) / 2 wide; unfused, the scores
 * have n and the context v. Lists of kernels (model/recipe.h) have one width for both, that of a key. */
#include "model/operators_build.h"

/* --- attention of a decoder's tokens to an encoder's on one rank (Raffel et al ------------------- */

/* 2020, T5, section 2.1;
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

static const LsLinearNames q_names = LS_LINEAR ("cross-q", 0);
static const LsLinearNames kv_names = LS_LINEAR ("cross-kv", 0);
static const LsLinearNames proj_names = LS_LINEAR ("cross-proj", 0);

static void
append_keys_and_values (GArray *operators, const LsCut *cut, bool is_merged)
{
  LsCut theirs;
  LsShard shard = *cut->encoder;
  shard.dtype = cut->shard->dtype;
  ls_cut_init (&theirs, cut->model, &shard);
  uint64_t h = cut->model->hidden, width = cut->k_width + cut->v_width;
  LsOperator *op = ls_operator_append (operators, "cross-kv", LS_TP_COLUMN);
  ls_operator_linear (op, &theirs, &kv_names, shard.dtype, h, width);
  ls_operator_passes (op, &theirs, theirs.local_tokens, h, NULL, 0, "encoder-grad-add", 3);
  if (!is_merged) /* else they are those of its own tokens */
    ls_operator_weight (op, LS_TENSOR_ROWS, width, h, 1);
  op->kept.input_bytes = 0;
  op->kept.saved_bytes = theirs.tokens * width * theirs.elt;
  op->comm.tp_bytes = theirs.tokens * h * theirs.elt;
}

/* To all of the encoder's tokens. */
static void
append_cross (GArray *operators, const LsCut *cut)
{
  LsAttentionPart whole = { .queries = cut->shard->seq,
                            .keys = cut->encoder->seq,
                            .heads = cut->heads,
                            .kv_heads = cut->kv_heads,
                            .pairs = 1 };
  LsOperator *op = ls_operator_append (operators, "cross-attention", LS_TP_NONE);
  ls_operator_fwd (op, ls_attention_kernel (cut, &whole, false));
  ls_operator_igrad (op, ls_attention_kernel (cut, &whole, true));
  op->kept.saved_bytes = 4 * cut->tokens * cut->heads; /* log-sum-exp, fp32 */
}

void
ls_operators_cross_attention (GArray *operators, const LsCut *cut)
{
  bool is_merged = cut->kind & LS_LAYER_MERGED;
  uint64_t h = cut->model->hidden;
  if (!is_merged)
    ls_operators_linear (operators, cut, &q_names, LS_TP_COLUMN, h, cut->q_width)->kept.saved_bytes
        += cut->tokens * cut->q_width * cut->elt;
  append_keys_and_values (operators, cut, is_merged);
  append_cross (operators, cut);
  if (!is_merged)
    ls_operators_linear (operators, cut, &proj_names, LS_TP_ROW, cut->context_width, h);
}

/* --- the attention of a layer on one rank: a/t heads over whole sequences ------------------------ */

#define INDEX_BYTES 8 /* int64 */

/* [sequences * heads, s, s], the scores; rows x cols as the softmax sees them. */
static LsKernel
score_stream (const LsCut *cut, const char *name, LsKernelKind kind, double bytes_per_element)
{
  uint64_t rows = cut->tokens * cut->heads;
  return ls_cut_stream (cut, name, kind, rows, cut->shard->seq, bytes_per_element);
}

static uint64_t
n_scores (const LsCut *cut)
{
  return cut->tokens * cut->heads * cut->shard->seq;
}

static LsKernel
batched_gemm (const LsCut *cut, const char *name, uint64_t m, uint64_t n, uint64_t k, bool accumulate)
{
  uint64_t batch = cut->shard->micro_batch * cut->heads;
  return ls_kernel_gemm (name, cut->act, m, n, k, batch, cut->elt, accumulate);
}

/* Without grouped-query support in bmm, K and V are repeated for each query head
 * and their gradients summed over the group, unless the list of a software says what is launched instead. */
static bool
repeats_heads (const LsCut *cut, LsRecipeOperator which)
{
  return cut->kv_heads < cut->heads && !ls_cut_lists (cut, which);
}

static LsKernel
kv_expand (const LsCut *cut, const char *name, LsKernelKind kind, uint64_t width)
{
  double per_element = cut->elt * (1 + (double) cut->kv_heads / (double) cut->heads);
  return ls_cut_stream (cut, name, kind, cut->tokens, width, per_element);
}

/* S = Q K^T. ALiBi is broadcast into the output first; baddbmm adds to it. */
static void
append_scores (GArray *operators, const LsCut *cut)
{
  uint64_t s = cut->shard->seq, d = cut->model->head_dim;
  bool has_alibi = cut->model->position == LS_POSITION_ALIBI;
  LsOperator *op = ls_operator_append (operators, "attention-scores", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;

  op->kept.is_core = true;
  if (repeats_heads (cut, LS_RECIPE_SCORES))
    ls_operator_fwd (op, kv_expand (cut, "repeat-k", LS_KERNEL_ELEMENTWISE, cut->q_width));
  if (has_alibi)
    ls_operator_fwd (op, score_stream (cut, "alibi-broadcast", LS_KERNEL_ELEMENTWISE, cut->elt));
  ls_operator_fwd (op, batched_gemm (cut, "scores-bmm", s, s, d, has_alibi));

  ls_operator_igrad (op, batched_gemm (cut, "dq-bmm", s, d, s, false));
  ls_operator_igrad (op, batched_gemm (cut, "dk-bmm", s, d, s, false));
  if (repeats_heads (cut, LS_RECIPE_SCORES))
    ls_operator_igrad (op, kv_expand (cut, "dk-group-sum", LS_KERNEL_REDUCTION, cut->q_width));
  ls_operator_as_launched (op, cut, LS_RECIPE_SCORES, cut->tokens, cut->ffn);
}

static void
append_softmax (GArray *operators, const LsCut *cut)
{
  LsOperator *op = ls_operator_append (operators, "attention-softmax", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;
  double lower_triangle = (cut->shard->seq + 1.0) / (2.0 * cut->shard->seq);

  op->kept.is_core = true;
  ls_operator_fwd (
      op, score_stream (cut, "scale-mask-softmax", LS_KERNEL_SOFTMAX, cut->elt * (1 + lower_triangle)));
  ls_operator_igrad (
      op,
      score_stream (cut, "scale-mask-softmax-bwd", LS_KERNEL_SOFTMAX, cut->elt * (1 + 2 * lower_triangle)));
  op->kept.saved_bytes = n_scores (cut) * cut->elt;
  ls_operator_as_launched (op, cut, LS_RECIPE_SOFTMAX, cut->tokens, cut->ffn);
}

static void
append_dropout (GArray *operators, const LsCut *cut)
{
  LsOperator *op = ls_operator_append (operators, "attention-dropout", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;

  op->kept.is_core = true;
  ls_operator_fwd (op,
                   ls_cut_random_stream (cut, "attention-dropout", cut->tokens * cut->heads, cut->shard->seq,
                                         2 * cut->elt + 1));
  ls_operator_igrad (op,
                     score_stream (cut, "attention-dropout-bwd", LS_KERNEL_ELEMENTWISE, 2 * cut->elt + 1));
  op->kept.saved_bytes = n_scores (cut); /* a byte per element: the mask */
}

/* O = P V. Without dropout P is the softmax output, which is kept already. */
static void
append_context (GArray *operators, const LsCut *cut)
{
  uint64_t s = cut->shard->seq, d = ls_model_v_dim (cut->model);
  LsOperator *op = ls_operator_append (operators, "attention-context", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;

  op->kept.is_core = true;
  if (repeats_heads (cut, LS_RECIPE_CONTEXT))
    ls_operator_fwd (op, kv_expand (cut, "repeat-v", LS_KERNEL_ELEMENTWISE, cut->context_width));
  ls_operator_fwd (op, batched_gemm (cut, "context-bmm", s, d, s, false));
  if (!ls_cut_lists (cut, LS_RECIPE_CONTEXT))
    ls_operator_passes (op, cut, cut->tokens, cut->context_width, "context-transpose", 2, NULL, 0);

  ls_operator_igrad (op, batched_gemm (cut, "dp-bmm", s, s, d, false));
  ls_operator_igrad (op, batched_gemm (cut, "dv-bmm", s, d, s, false));
  if (repeats_heads (cut, LS_RECIPE_CONTEXT))
    ls_operator_igrad (op, kv_expand (cut, "dv-group-sum", LS_KERNEL_REDUCTION, cut->context_width));
  if (cut->model->dropout)
    op->kept.saved_bytes = n_scores (cut) * cut->elt;
  ls_operator_as_launched (op, cut, LS_RECIPE_CONTEXT, cut->tokens, cut->ffn);
}

static bool
has_window_mask (const LsCut *cut)
{
  const LsShard *s = cut->shard;
  return s->window_mask && s->cp <= 1 && ls_model_masks_window (cut->model, cut->kind, s->seq);
}

/* Of all pairs. cuDNN's backward in fp8 skips nothing that a window leaves out: its rate for windows falls to
 * 8 to 78 TFLOP/s where that in bf16 does not (topologies/calib, attention of cudnn-fp8). */
static double
met_share (const LsCut *cut, const LsAttentionPart *part, bool is_backward)
{
  bool skips = !is_backward || !ls_scaled_attention (cut);
  if (has_window_mask (cut))
    return 1;
  return part->pairs * 2
      * ls_model_attention_pairs (cut->model, skips ? cut->kind : cut->kind & ~(uint32_t) LS_LAYER_WINDOWED,
                                  cut->shard->seq);
}

/* q, kv: elements of queries, of keys and as many values. Forward Q, K, V in, O out; backward these and dO
 * in, three gradients out. */
static void
set_fp8 (const LsCut *cut, LsKernel *kernel, double q, double kv, double lse)
{
  const LsScaledAttention bytes = ls_scaled_attention_bytes (cut);
  bool is_backward = kernel->kind == LS_KERNEL_ATTENTION_BWD;
  kernel->dtype = LS_DTYPE_FP8;
  kernel->by_blocks = bytes.by_blocks;
  kernel->bytes = is_backward ? bytes.in * 2 * (q + kv) + bytes.out * 2 * (q + kv) + lse
                              : bytes.in * (q + 2 * kv) + bytes.out * q + lse;
}

LsKernel
ls_attention_kernel (const LsCut *cut, const LsAttentionPart *part, bool is_backward)
{
  uint64_t width = cut->model->head_dim + ls_model_v_dim (cut->model);
  double sequences = cut->shard->micro_batch, head_dim = (double) width / 2;
  double q = sequences * (double) part->queries * (double) part->heads * head_dim;
  double kv = sequences * (double) part->keys * (double) part->kv_heads * head_dim;
  double flops = 4 * q * (double) part->keys * met_share (cut, part, is_backward);
  double lse
      = 4 * sequences * (double) part->queries * (double) part->heads; /* log-sum-exp of each row, fp32 */
  uint32_t n_tensors = is_backward ? 4 : 2;                            /* q, k, v, o; and do, dq, dk, dv */

  LsKernel kernel = {
    .name = is_backward ? "flash-attention-bwd" : "flash-attention-fwd",
    .kind = is_backward ? LS_KERNEL_ATTENTION_BWD : LS_KERNEL_ATTENTION_FWD,
    .dtype = cut->act,
    .m = part->queries,
    .n = part->keys,
    .k = width / 2,
    .batch = cut->shard->micro_batch * part->heads,
    .flops = is_backward ? 2.5 * flops : flops,
    .bytes = cut->elt * n_tensors * (q + kv) + lse,
  };
  kernel.masked = has_window_mask (cut);
  if (ls_scaled_attention (cut))
    set_fp8 (cut, &kernel, q, kv, lse);
  if (cut->shard->documents)
    ls_documents_apply (cut->shard->documents, cut->kind, part->cp_rank, &kernel);
  return kernel;
}

/* torch.gather of the tokens in the index, by rows; zeros and torch.scatter_ for the gradient. */
static void
append_unpad (GArray *operators, const LsCut *cut, const char *name, uint64_t width)
{
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  ls_operator_fwd (op, ls_cut_stream (cut, "mask-lengths", LS_KERNEL_REDUCTION, cut->tokens, 1, 1));
  ls_operator_fwd (op,
                   ls_cut_stream (cut, "mask-index", LS_KERNEL_ELEMENTWISE, cut->tokens, 1, 1 + INDEX_BYTES));
  ls_operator_fwd (op, ls_cut_stream (cut, "unpad", LS_KERNEL_ELEMENTWISE, cut->tokens, width, 2 * cut->elt));
  op->n_host_reads = 2; /* torch.nonzero: how many; .item (): the longest sequence */
  ls_operator_igrad (op,
                     ls_cut_stream (cut, "unpad-grad-zero", LS_KERNEL_MEMSET, cut->tokens, width, cut->elt));
  ls_operator_passes (op, cut, cut->tokens, width, NULL, 0, "unpad-grad", 2);
}

static void
append_pad (GArray *operators, const LsCut *cut)
{
  LsOperator *op = ls_operator_append (operators, "attention-pad", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;
  ls_operator_fwd (
      op, ls_cut_stream (cut, "pad-zero", LS_KERNEL_MEMSET, cut->tokens, cut->context_width, cut->elt));
  ls_operator_passes (op, cut, cut->tokens, cut->context_width, "pad", 2, "pad-grad", 2);
  op->kept.saved_bytes
      = cut->tokens * cut->context_width * cut->elt; /* the context, which attention keeps as it made it */
}

static void
append_passes (LsOperator *op, const LsCut *cut, const LsAttentionPart *whole)
{
  bool is_fp8 = ls_scaled_attention (cut);
  if (is_fp8)
    ls_scaled_before_attention (op, cut, false);
  ls_operator_fwd (op, ls_attention_kernel (cut, whole, false));
  if (is_fp8) {
    ls_scaled_after_attention (op, cut, false);
    ls_scaled_before_attention (op, cut, true);
  }
  ls_operator_igrad (op, ls_attention_kernel (cut, whole, true));
  if (is_fp8)
    ls_scaled_after_attention (op, cut, true);
}

/* It recomputes the scores by itself, and has nothing of that size to drop. A checkpoint around it runs it
 * again all the same. */
static void
append_flash (GArray *operators, const LsCut *cut)
{
  uint64_t s = cut->shard->seq;
  LsAttentionPart whole
      = { .queries = s, .keys = s, .heads = cut->heads, .kv_heads = cut->kv_heads, .pairs = 0.5 };
  bool is_unpadded = cut->shard->qkv_layout == LS_QKV_UNPADDED;
  if (is_unpadded) {
    append_unpad (operators, cut, "unpad-q", cut->q_width);
    append_unpad (operators, cut, "unpad-k", cut->k_width);
    append_unpad (operators, cut, "unpad-v", cut->v_width);
  }
  LsOperator *op = ls_operator_append (operators, "attention", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;

  op->layer_kind = cut->kind;
  op->kept.is_core = cut->shard->flash_is_core;
  if (cut->shard->cp > 1) {
    ls_operator_context_parallel (op, cut);
    return;
  }
  if (has_window_mask (cut)) {
    LsKernel mask = ls_cut_stream (cut, "window-mask", LS_KERNEL_ELEMENTWISE, cut->tokens, s, 1 + cut->elt);
    mask.access = LS_ACCESS_BCAST16; /* torch.where with a number */
    ls_operator_fwd (op, mask);
  }
  append_passes (op, cut, &whole);
  op->kept.saved_bytes
      = 4 * cut->tokens * cut->heads + (has_window_mask (cut) ? cut->tokens * s * cut->elt : 0);
  ls_operator_as_launched (op, cut, LS_RECIPE_ATTENTION, cut->tokens, cut->ffn);
  if (is_unpadded)
    append_pad (operators, cut);
}

/* Of keys that the layer makes itself. */
static uint64_t
own_key_width (const LsCut *cut)
{
  return cut->kind & LS_LAYER_KV_SHARED ? 0 : cut->k_width;
}

/* Of so wide a Q or K, or of both in one kernel. */
static LsOperator *
append_qk_norm (GArray *operators, const LsCut *cut, const char *name, uint64_t width)
{
  bool is_over_all = cut->model->attn.qk_norm_over == LS_QK_NORM_ALL;
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  op->role = LS_OPERATOR_NORM;
  ls_operator_streams (op, cut, LS_KERNEL_NORM, cut->tokens, width, "qk-norm-fwd", 2, "qk-norm-bwd", 3);
  op->params.is_replicated = !is_over_all;
  op->kept.saved_bytes = cut->tokens * width * cut->elt;
  return op;
}

static uint64_t
qk_norm_weights (const LsModel *m, uint64_t width)
{
  return m->attn.qk_norm_over == LS_QK_NORM_ALL ? width : m->head_dim;
}

/* As listed: a norm of Q, or of K. */
static void
append_listed_norm (GArray *operators, const LsCut *cut, const char *name, uint64_t width)
{
  uint64_t n = qk_norm_weights (cut->model, width);
  LsOperator *op = append_qk_norm (operators, cut, name, width);
  ls_operator_param (op, n);
  ls_operator_norm_as_launched (op, cut, cut->tokens * (width / n), n);
}

/* Each head of Q and K by itself, with weights as wide as a head (Qwen3), or all heads together (OLMo 2),
 * whose sums of squares over tp are left out: 8 bytes a token. */
void
ls_operators_qk_norm (GArray *operators, const LsCut *cut)
{
  uint64_t keys = own_key_width (cut);
  if (ls_cut_lists (cut, LS_RECIPE_NORM)) {
    append_listed_norm (operators, cut, "q-norm", cut->q_width);
    if (keys > 0)
      append_listed_norm (operators, cut, "k-norm", keys);
    return;
  }
  LsOperator *op = append_qk_norm (operators, cut, "qk-norm", cut->q_width + keys);
  ls_operator_param (op, qk_norm_weights (cut->model, cut->q_width));
  if (keys > 0)
    ls_operator_param (op, qk_norm_weights (cut->model, keys));
}

void
ls_operator_gate (GArray *operators, const LsCut *cut, uint64_t width)
{
  ls_operators_passes (operators, cut, cut->tokens, width, "attention-gate", 3, "attention-gate-bwd", 5, 2)
      ->role
      = LS_OPERATOR_ATTENTION;
}

/* Fused rotation of Q and K, of so much of a head as is rotated. It is linear, so its backward needs no
 * activation. */
static void
append_rope (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t width = cut->q_width + own_key_width (cut);
  LsOperator *op = ls_operator_append (operators, "rope", LS_TP_NONE);
  op->role = LS_OPERATOR_ROPE;

  if (m->attn.rotary_dim > 0)
    width = width / m->head_dim * m->attn.rotary_dim;

  ls_operator_passes (op, cut, cut->tokens, width, "rope-fwd", 2, "rope-bwd", 2);
  ls_operator_as_launched (op, cut, LS_RECIPE_ROPE, cut->tokens, cut->ffn);
}

void
ls_operators_attention (GArray *operators, const LsCut *cut)
{
  if (cut->model->position == LS_POSITION_ROPE && !(cut->kind & LS_LAYER_UNROTATED))
    append_rope (operators, cut);
  if (cut->model->attn.difference) {
    ls_operators_difference (operators, cut);
    return;
  }
  if (cut->shard->attention == LS_ATTENTION_FLASH) {
    append_flash (operators, cut);
    return;
  }
  append_scores (operators, cut);
  append_softmax (operators, cut);
  if (cut->model->dropout)
    append_dropout (operators, cut);
  append_context (operators, cut);
}

/* Attention over sequences that are cut over c context-parallel ranks; what moves between
 * them is added by lower/layers/lower_cp.c.
 *
 * Problem. A rank has s/c tokens of each sequence and, with a causal mask, needs the keys and
 * values of all tokens before them.
 *
 * Ring (Liu et al. 2023; Transformer Engine's AttnFuncWithCPAndKVP2P): c steps, each with the
 * keys and values of one rank, which travel. Balanced, a rank has parts i and 2c - 1 - i of 2c:
 * its own tokens first, causal; then either all queries with half of the keys, or half of the
 * queries with all keys. FLOPs forward, with d the width of all heads:
 *
 *     step 0   4 b (s/c)^2 d / 2        step 1 to c - 1   4 b (s/c) (s/2c) d, the same
 *
 * Rank i has i steps of the first kind, c - 1 - i of the second; all ranks run the program of
 * rank c/2 here. Unbalanced, rank i computes in steps 0 to i, whole squares after the first,
 * and idles in the others: programs differ (ls_context_is_uneven).
 * Each partial result is scaled by its log-sum-exp into the sum of those before; the backward
 * adds up dQ, dK and dV likewise.
 *
 * All-gather (Llama 3, Grattafiori et al. 2024, section 3.3.2): s/c queries with all s keys,
 * half of the pairs if balanced; unbalanced, rank i sees the keys of ranks 0 to i.
 *
 * Ulysses (Jacobs et al. 2023): all s tokens, heads / c. Fewer heads of keys and values than ranks are
 * repeated to c before they are exchanged, one for each rank (InternLM/xtuner@b934f462,
 * xtuner/v1/module/attention/mha.py, repeat_kv); the copy is the one that packs them, and the sum of their
 * gradients the one that unpacks.
 *
 * Worked example: s = 8192, c = 4, b = 1, d = 4096: 4 steps of 4 * 2048^2 * 4096 / 2 = 34.4
 * GFLOP, 137 together; times 4 ranks that is 4 s^2 d / 2.
 *
 * Latent attention cuts and sends what its up-projections make: keys n wide, values and so the context v
 * wide (Transformer Engine, AttnFuncWithCPAndKVP2P with enable_mla); its kernels are those of heads
 * (n + v) / 2 wide (operators_mla.c). An indexer would need the keys of all ranks before it chooses: refused.
 *
 * A window leaves less of each step: all steps are taken to lose the same share, and all keys and values
 * travel. So do documents in a ring, which cuts each of them over its ranks (Transformer Engine's thd
 * layout); with an all-gather whole sequences are cut, and a rank meets what it meets (model/documents.h).
 *
 * PyTorch's ring (torch/distributed/tensor/experimental/_attention.py, pytorch/pytorch@f2127dbd, of 2025):
 * the steps of a balanced ring, whether keys and values come one by one or are gathered at the first step.
 * They are those of all heads (repeat_kv). Bytes per element of O, or of dQ, dK and dV, that a step has:
 *
 *                     eager                                      compiled: one kernel of what is pointwise
 *     first forward   O to fp32: 6                               -
 *     others          O to fp32, a difference, a product, a      the sum so far and O read, the new sum
 *                     difference: 42; half of Q: cat, 8 of all   written: 10, 8 of them of the whole sum;
 *     last            O to 16 bits: 6                            the first read, the last written in 16 bits
 *     first backward  zeros 4, += 10; dK, dV joined: 8           6
 *     others          += 10, of a half: cat, 8 of all; joined    10, 8 of them of the whole sum
 *     last            dQ to 16 bits: 6; dK, dV once they came    6
 *
 * Log-sum-exps, 1/d of O, are left out. Worked example: 32,768 tokens, d 4096, c 8, compiled: a step forward
 * with all queries moves 10 x 134 M bytes to sum up.
 *
 * Deviations. Transformer Engine runs even and odd steps on two streams, so that the last
 * tiles of one meet the first of the next; here steps follow each other. Its two kernels of an
 * all-gather (one per part of the sequence, side by side too) are one.
 *
 * saved_bytes: Q, K, V of this rank are kept by the QKV operator and the context by the
 * projection, as without cp; received keys and values are not kept (Transformer Engine's ring
 * keeps those it held last instead of its own, which are as many). Ulysses keeps the context
 * twice: before its all-to-all, for the backward of attention, and after it. */

bool
ls_context_is_pytorchs (const LsShard *s)
{
  return s->cp > 1 && s->cp_steps != LS_CP_STEPS_TE && s->cp_kind != LS_CP_ULYSSES;
}

static bool
is_ring (const LsShard *s)
{
  return s->cp_kind == LS_CP_RING || ls_context_is_pytorchs (s);
}

uint32_t
ls_context_n_steps (const LsShard *s)
{
  return is_ring (s) ? s->cp : 1;
}

bool
ls_context_is_uneven (const LsShard *s)
{
  return s->cp > 1 && s->cp_kind != LS_CP_ULYSSES && !s->cp_balance;
}

/* false: nothing is left by the mask. */
static bool
ring_part (const LsShard *s, uint32_t cp_rank, uint32_t step, LsAttentionPart *part)
{
  part->queries = part->keys = s->seq / s->cp;
  part->pairs = step == 0 ? 0.5 : 1;
  if (!s->cp_balance)
    return step <= cp_rank;
  if (step > 0 && step <= s->cp / 2)
    part->keys /= 2;
  else if (step > 0)
    part->queries /= 2;
  return true;
}

static bool
part_of (const LsCut *cut, uint32_t cp_rank, uint32_t step, LsAttentionPart *part)
{
  const LsShard *s = cut->shard;
  *part = (LsAttentionPart) {
    .queries = s->seq,
    .keys = s->seq,
    .heads = cut->heads,
    .kv_heads = ls_context_is_pytorchs (s) ? cut->heads : cut->kv_heads,
    .pairs = 0.5,
    .cp_rank = cp_rank,
  };
  if (is_ring (s))
    return ring_part (s, cp_rank, step, part);
  if (s->cp_kind == LS_CP_ULYSSES) {
    part->heads /= s->cp;
    part->kv_heads = MAX (part->kv_heads / s->cp, 1);
    return true;
  }
  part->queries = s->seq / s->cp;
  if (!s->cp_balance) {
    part->keys = part->queries * (cp_rank + 1);
    part->pairs = (cp_rank + 0.5) / (cp_rank + 1);
  }
  return true;
}

/* The first result is copied, others are added to: read both, write one. The context is as wide as values. */
static LsKernel
merge_of (const LsCut *cut, const LsAttentionPart *part, bool is_first, bool is_backward)
{
  double sequences = cut->shard->micro_batch, head_dim = cut->model->head_dim,
         v_dim = ls_model_v_dim (cut->model);
  double q = sequences * (double) part->queries * (double) part->heads;
  double kv = sequences * (double) part->keys * (double) part->kv_heads;
  double passes = is_first ? 2 : 3;
  double bytes = is_backward ? passes * cut->elt * (q * head_dim + kv * (head_dim + v_dim))
                             : passes * (cut->elt * q * v_dim + 4 * q /* log-sum-exp */);
  return ls_kernel_stream (is_backward ? "attention-grad-merge" : "attention-merge", LS_KERNEL_ELEMENTWISE,
                           cut->act, part->queries * cut->shard->micro_batch,
                           part->heads * (is_backward ? cut->model->head_dim : ls_model_v_dim (cut->model)),
                           bytes, 0);
}

/* --- PyTorch's ring ----------------------------------------------------------------------------------- */

/* Elements of a tensor: of all tokens of this rank, and of those of a step. */
typedef struct {
  double all, part;
} Elements;

static Elements
elements (const LsCut *cut, uint64_t tokens, uint64_t width)
{
  double heads = (double) cut->heads * cut->shard->micro_batch;
  double all = (double) cut->shard->seq / cut->shard->cp;
  return (Elements) { all * heads * (double) width, (double) tokens * heads * (double) width };
}

static double
eager_sum (Elements o, bool is_first, bool is_last)
{
  double sum = is_first ? 6 * o.all : 42 * o.part + (o.part < o.all ? 8 * o.all : 0);
  return sum + (is_last ? 6 * o.all : 0);
}

static double
compiled_sum (Elements o, uint32_t step, bool is_last)
{
  return step == 0 ? 0 : ((step == 1 ? 2 : 4) + (is_last ? 2 : 4)) * o.all + 2 * o.part;
}

/* is_sent: joined with another for the next rank. */
static double
eager_grad (Elements x, bool is_first, bool is_last, bool is_sent)
{
  double sum = is_first ? 14 * x.all : 10 * x.part + (x.part < x.all ? 8 * x.all : 0);
  return sum + (is_sent ? 8 * x.all : 0) + (is_last ? 6 * x.all : 0);
}

static double
compiled_grad (Elements x, bool is_first, bool is_last)
{
  return (is_first ? 4 : 8) * x.all + 2 * x.part + (is_last ? 6 * x.all : 0);
}

static void
sum_as_pytorch (const LsCut *cut, const LsAttentionPart *part, uint32_t step, LsContextStep *ret)
{
  const LsModel *m = cut->model;
  bool is_eager = cut->shard->cp_steps == LS_CP_STEPS_PYTORCH, is_first = step == 0,
       is_last = step + 1 == cut->shard->cp;
  uint64_t v = ls_model_v_dim (m), kv = m->head_dim + v;
  Elements o = elements (cut, part->queries, v), dq = elements (cut, part->queries, m->head_dim),
           dkv = elements (cut, part->keys, kv);
  double sum = is_eager ? eager_sum (o, is_first, is_last) : compiled_sum (o, step, is_last);
  double grad = is_eager ? eager_grad (dq, is_first, is_last, false) + eager_grad (dkv, is_first, false, true)
                         : compiled_grad (dq, is_first, is_last) + compiled_grad (dkv, is_first, false);
  uint64_t rows = part->queries * cut->shard->micro_batch;
  ret->merge
      = ls_kernel_stream ("attention-merge", LS_KERNEL_ELEMENTWISE, cut->act, rows, cut->heads * v, sum, 0);
  ret->merge_grad = ls_kernel_stream ("attention-grad-merge", LS_KERNEL_ELEMENTWISE, cut->act, rows,
                                      cut->heads * m->head_dim, grad, 0);
}

void
ls_context_step (const LsModel *m, const LsShard *s, LsContextPlace place, LsContextStep *ret_step)
{
  LsCut cut;
  LsAttentionPart part;
  uint32_t step = place.step;
  ls_cut_init (&cut, m, s);
  cut.kind = place.layer_kind;
  *ret_step = (LsContextStep) { 0 };
  ret_step->is_idle = !part_of (&cut, place.cp_rank, step, &part);
  if (ret_step->is_idle)
    return;
  ret_step->fwd = ls_attention_kernel (&cut, &part, false);
  ret_step->bwd = ls_attention_kernel (&cut, &part, true);
  if (ls_context_is_pytorchs (s))
    sum_as_pytorch (&cut, &part, step, ret_step);
  if (!is_ring (s) || ls_context_is_pytorchs (s))
    return;
  ret_step->merge = merge_of (&cut, &part, step == 0, false);
  ret_step->merge_grad = merge_of (&cut, &part, step == s->cp - 1, true); /* backwards the last comes first */
}

LsKernel
ls_context_copy (const LsShard *s, const char *name, uint64_t n_bytes)
{
  LsDtype act = ls_dtype_between (s->dtype);
  return ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, act, 1, n_bytes / ls_dtype_bytes (act),
                           2.0 * (double) n_bytes, 0);
}

LsContextBytes
ls_context_bytes (const LsModel *m, const LsShard *s)
{
  LsCut cut;
  ls_cut_init (&cut, m, s);
  bool has_all = ls_context_is_pytorchs (s);
  uint64_t times = s->cp_kind == LS_CP_ULYSSES ? MAX (s->cp / cut.kv_heads, 1) : 1;
  uint64_t element = ls_scaled_attention (&cut) ? 1 : cut.elt; /* cast before the exchange */
  return (LsContextBytes) {
    .q = cut.tokens * cut.q_width * element,
    .k = cut.tokens * (has_all ? cut.q_width : cut.k_width * times) * element,
    .v = cut.tokens * (has_all ? cut.context_width : cut.v_width * times) * element,
    .context = cut.tokens * cut.context_width * element,
  };
}

void
ls_operator_context_parallel (LsOperator *op, const LsCut *cut)
{
  op->comm.is_context_parallel = true;
  op->kept.saved_bytes = 4 * cut->tokens * cut->heads;
  if (cut->shard->cp_kind == LS_CP_ULYSSES)
    op->kept.saved_bytes
        += (uint64_t) (ls_scaled_attention_kept (cut) * (double) (cut->tokens * cut->context_width));
  if (!ls_scaled_attention (cut))
    return;
  ls_scaled_before_attention (op, cut, false);
  ls_scaled_after_attention (op, cut, false);
  ls_scaled_before_attention (op, cut, true);
  ls_scaled_after_attention (op, cut, true);
}
