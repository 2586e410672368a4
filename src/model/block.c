/* model/block.c — a block of attention and an MLP whose weights several layers share, before a mixer (Zamba).
 *
 * Problem. A model of mixers has one or a few transformer blocks, which come again at many places: layers B
 * of its pattern take the `shared_blocks` sets of weights in turn. With x what comes in, e the embedding of
 * the same tokens, h hidden, q and k the widths of all queries, and of all keys, f ffn:
 *
 *     u = norm [x; e]                            of 2 h
 *     a = norm (attention (u) W)                 queries, keys and values of 2 h, W of q x h; the norm of h
 *     y = x + (MLP (a)) L                        L of h x h, each place its own
 *     out = x + mixer (norm (y))
 *
 * with no residual inside of the block. Adapters of each place (Hu et al. 2021, LoRA; trained as all else
 * is): of rank r beside gate and up, h r + r 2 f; of rank s beside queries, keys and values, 2 h s + s q (or
 * s k) each. Weights:
 *
 *     of a set       2 h (q + 2 k) + q h + 3 h f (with a gate), norms of 3 h
 *     of a place     h^2, its adapters, its mixer with a norm
 *
 * Worked example. Zamba2-2.7B (h 2560, f 10240, q = k = 5120, r 128, two sets, nine places of 54 layers): a
 * set has 170.4 M, a place 9.5 M beside its mixer of 39.9 M; all 2.66 G.
 *
 * Tensor parallelism. The block is cut as other layers are; what tp gathers before attention is 2 h wide. L
 * and the narrow products of adapters are on every rank, for its tokens.
 *
 * Deviations. The copy of e that the code makes (torch.clone) is left out: the first layer keeps e.
 *
 * References: Glorioso et al. 2024, Zamba, arXiv 2405.16712, section 2, and The Zamba2 Suite, arXiv
 * 2411.15242, section 2; huggingface/transformers@00511f5d src/transformers/models/zamba2/modular_zamba2.py,
 * huggingface/transformers@010496ec src/transformers/models/zamba/modeling_zamba.py.
 *
 * A block that layers share, on one rank: what stands before the mixer of a layer B. It is
 * cut as other layers are, its input [x; e] is twice as wide. Weights of a set are those of its first place:
 * others compute products and gradients, which add to the same sums. */

#include "model/operators_build.h"

static const LsLinearNames down_names = LS_LINEAR ("adapter-down", 0);
static const LsLinearNames up_names = LS_LINEAR ("adapter-up", 0);
static const LsLinearNames out_names = LS_LINEAR ("block-out", 0);

/* The input is kept by what stands before. */
static void
append_down (GArray *operators, const LsCut *cut, const LsLowRank *what)
{
  LsCut local = *cut;
  local.tokens = cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, down_names.fwd, LS_TP_NONE);
  for (uint32_t i = 0; i < what->n; i++) {
    ls_operator_linear (op, &local, &down_names, cut->act, what->in, what->rank);
    ls_operator_passes (op, cut, cut->local_tokens, what->in, NULL, 0, "adapter-grad-add", 3);
    ls_operator_weight (op, LS_TENSOR_WHOLE, what->rank, what->in, 1);
  }
  op->params.is_replicated = true;
  op->kept.saved_bytes = op->kept.input_bytes = 0;
}

static void
append_up (GArray *operators, const LsCut *cut, const LsLowRank *what)
{
  LsOperator *op = ls_operator_append (operators, up_names.fwd, LS_TP_COLUMN);
  uint64_t kept = 0;
  for (uint32_t i = 0; i < what->n; i++) {
    ls_operator_linear (op, cut, &up_names, cut->act, what->rank, what->out[i]);
    ls_operator_passes (op, cut, cut->tokens, what->out[i], "adapter-add", 3, NULL, 0);
    ls_operator_weight (op, LS_TENSOR_ROWS, what->out[i], what->rank, 1);
    kept += op->kept.input_bytes;
  }
  op->kept.saved_bytes = op->kept.input_bytes = kept;
  op->comm.tp_bytes = cut->tokens * what->rank * what->n * cut->elt;
}

void
ls_operators_low_rank (GArray *operators, const LsCut *cut, const LsLowRank *what)
{
  if (what->rank == 0)
    return;
  append_down (operators, cut, what);
  append_up (operators, cut, what);
}

/* Of another place. */
static void
leave_weights (GArray *operators, guint from, const LsCut *cut)
{
  if (cut->kind & LS_LAYER_AGAIN)
    ls_operators_leave_params (operators, from);
}

static void
append_block_attention (GArray *operators, const LsCut *cut)
{
  static const LsNormPlace place = { "block-norm", LS_RECIPE_INPUT_NORM, LS_RECIPE_ATTENTION_ADD, false };
  LsModel wide = *cut->model;
  LsCut in = *cut;
  wide.hidden = 2 * cut->model->hidden;
  in.model = &wide;
  ls_operators_passes (operators, cut, cut->local_tokens, cut->model->hidden, "embedding-concat", 4,
                       "embedding-concat-bwd", 6, 0);
  guint from = operators->len;
  ls_operators_norm (operators, &in, &place, ls_scaled_norm_out_bytes (cut->shard));
  ls_operators_qkv (operators, &in);
  g_array_index (operators, LsOperator, operators->len - 1).comm.tp_bytes
      = cut->tokens * wide.hidden * cut->elt;
  leave_weights (operators, from, cut);
  ls_operators_low_rank (operators, cut,
                         &(LsLowRank) { .in = wide.hidden,
                                        .rank = cut->model->layers.block_attention_rank,
                                        .n = 3,
                                        .out = { cut->q_width, cut->k_width, cut->v_width } });
  ls_operators_attention (operators, cut);
  from = operators->len;
  ls_operators_proj (operators, cut);
  leave_weights (operators, from, cut);
}

/* All but the adapter is shared. */
static void
append_block_mlp (GArray *operators, const LsCut *cut)
{
  static const LsNormPlace place = { "block-mlp-norm", LS_RECIPE_MLP_NORM, LS_RECIPE_MLP_ADD, false };
  const LsMlpNames names = { "fc1", "mlp-act", "fc2", .adapter_rank = cut->model->layers.block_mlp_rank };
  guint from = operators->len;
  ls_operators_norm (operators, cut, &place, ls_scaled_norm_out_bytes (cut->shard));
  guint mlp = operators->len;
  ls_operators_mlp (operators, cut, &names);
  for (guint i = from; i < operators->len; i++) {
    LsOperator *op = &g_array_index (operators, LsOperator, i);
    bool is_own = op->name == down_names.fwd || op->name == up_names.fwd;
    op->part = i >= mlp ? LS_MLP_PART_DENSE : op->part;
    op->params.n = cut->kind & LS_LAYER_AGAIN && !is_own ? 0 : op->params.n;
  }
}

void
ls_operators_block (GArray *operators, const LsCut *cut)
{
  append_block_attention (operators, cut);
  append_block_mlp (operators, cut);
  uint64_t h = cut->model->hidden;
  ls_operators_local (operators, cut, &out_names, cut->shard->dtype, h, h);
  ls_operators_passes (operators, cut, cut->local_tokens, h, "block-add", 3, NULL, 0, 0)->role
      = LS_OPERATOR_RESIDUAL;
}
