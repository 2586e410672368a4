/* model/convolved.c — queries and keys that pass convolutions over tokens, routers with layers of their own,
 * residuals that are scaled.
 *
 * Compressed convolutional attention (Figliolia et al. 2025, arXiv 2510.04476). Queries and keys together, C
 * columns of a + b heads of d, pass a convolution of t taps of each column, then one of u taps in which the
 * columns of a head meet each other: a product of d u by d for each head. The means of queries and keys of a
 * group are added, heads are normed without weights, keys scaled by a number each. Of values one half is that
 * of the token before. Weights beside those of plain attention: C d u, of products; C t + 2 C + b.
 *
 * Routers: a product to R columns, to which those of the layer before are added, scaled; a norm; two products
 * of R x R with biases; one to the experts. h R + 2 R^2 + R E, and 5 R (of which the first layer has 4 R).
 *
 * Residuals: each half adds (x + b1) s1 + (r + b2) s2, four vectors of h.
 *
 * Elements moved beside the products, of C and of values v: 2 C and 3 C back for taps, 4 C each way for
 * means, 2 C and 3 C for norms, 2 v each way; of h 4, and 6 back, for scales. Kept: C twice, R six times, h
 * twice.
 *
 * Worked example. ZAYA1-8B (h 2048, 8 heads of 128, 2 of keys, R 256, 16 experts of 2048): convolutions have
 * 0.33 M of 5.6 M weights of attention, a router 0.66 M, the experts 201.3 M; 40 layers with one table of
 * 262,272 rows 8.84 G.
 *
 * Deviations. The number that biases and scales of a router add, and what a first layer's router lacks, are
 * R; residuals in fp32 are taken in 16 bits.
 *
 * Reference: huggingface/transformers@060988b6 src/transformers/models/zaya/modular_zaya.py.
 *
 * Convolutions of queries and keys, routers with layers of their own and scales of residuals, on one rank
 *. */
#include "model/operators_build.h"

static const LsLinearNames down_names = LS_LINEAR ("router-down", 0);
static const LsLinearNames inner_names = LS_LINEAR ("router-inner", 0);

/* Each head's columns of the last few tokens, by a matrix of its own. */
static void
append_mix (GArray *operators, const LsCut *cut)
{
  static const LsLinearNames names = LS_LINEAR ("qk-mix", 0);
  const LsModel *m = cut->model;
  uint64_t heads = cut->heads + cut->kv_heads, out = m->head_dim, in = out * m->attn.qk_mix;
  LsOperator *op = ls_operator_append (operators, "qk-mix", LS_TP_NONE);
  ls_operator_each_head (op, cut, &names, heads, in, out);
  ls_operator_weight (op, LS_TENSOR_WHOLE, out, in, heads);
  op->kept.saved_bytes = cut->tokens * out * heads * cut->elt;
}

void
ls_operators_qk_conv (GArray *operators, const LsCut *cut)
{
  uint64_t width = cut->q_width + cut->k_width;
  if (cut->model->attn.qk_conv == 0)
    return;
  LsOperator *op
      = ls_operators_passes (operators, cut, cut->tokens, width, "qk-conv", 2, "qk-conv-bwd", 3, 0);
  ls_operator_param (op, width * (cut->model->attn.qk_conv + 2) + cut->kv_heads);
  append_mix (operators, cut);
  op = ls_operator_append (operators, "qk-scale", LS_TP_NONE);
  ls_operator_fwd (op, ls_cut_pass (cut, "qk-means", width, 4));
  ls_operator_fwd (op, ls_cut_stream (cut, "qk-scale", LS_KERNEL_NORM, cut->tokens, width, 2 * cut->elt));
  ls_operator_passes (op, cut, cut->tokens, cut->v_width, "value-shift", 2, "value-shift-bwd", 2);
  ls_operator_igrad (op,
                     ls_cut_stream (cut, "qk-scale-bwd", LS_KERNEL_NORM, cut->tokens, width, 3 * cut->elt));
  ls_operator_igrad (op, ls_cut_pass (cut, "qk-means-bwd", width, 4));
  op->kept.saved_bytes = cut->tokens * width * cut->elt;
}

/* Up to what scores are made of. */
uint64_t
ls_operators_router_layers (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t r = m->moe.router_hidden;
  if (r == 0)
    return m->hidden;
  LsOperator *op = ls_operators_local (operators, cut, &down_names, cut->act, m->hidden, r);
  ls_operator_param (op, 2 * r); /* its bias, and the scale of what the layer before gives */
  ls_operators_latent_norm (operators, cut, "router-norm", cut->local_tokens, r);
  for (uint32_t i = 0; i < 2; i++) {
    op = ls_operators_local (operators, cut, &inner_names, cut->act, r, r);
    ls_operator_passes (op, cut, cut->local_tokens, r, "router-act", 2, "router-act-bwd", 3);
    ls_operator_param (op, r);
    op->kept.saved_bytes += cut->local_tokens * r * cut->elt;
  }
  return r;
}

void
ls_operators_residual_scale (GArray *operators, const LsCut *cut)
{
  uint64_t rows = cut->local_tokens, h = cut->model->hidden;
  if (!cut->model->halves.residual_scale)
    return;
  LsOperator *op
      = ls_operators_passes (operators, cut, rows, h, "residual-scale", 4, "residual-scale-bwd", 6, 2);
  ls_operator_param (op, 4 * h);
  op->params.is_replicated = true;
}
