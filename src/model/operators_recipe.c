/* Operators as some software launches them: the kernels of its list (model/recipe.h) in the place of those
 * that are built in. A framework without fusion launches one for each operation of the model's code, and
 * autograd one or more for each of these.
 *
 * Example. RMSNorm in PyTorch: x becomes fp32, is squared, averaged by rows, eps is added, the root's inverse
 * taken, multiplied with x, made 16 bits, multiplied with the weight: 8 kernels of 36 bytes an element, where
 * a fused one takes 4.
 *
 * Products one by one stay joint where they are computed in pieces beside a gather (lower_operator.c):
 * PyTorch's fused_all_gather_matmul gathers once for all of them (torch/distributed/_symmetric_memory). */
#include "model/operators_build.h"

bool
ls_operator_is_flash (const LsOperator *op)
{
  for (uint32_t k = 0; k < op->n_igrad; k++)
    if (op->igrad[k].kind == LS_KERNEL_ATTENTION_BWD)
      return true;
  return op->comm.is_context_parallel;
}

static LsSizes
sizes_of (const LsCut *cut, uint64_t tokens, uint64_t ffn)
{
  double sequences = cut->shard->micro_batch;
  bool has_rope = cut->model->position == LS_POSITION_ROPE;
  return (LsSizes) {
    .is_sent_once = cut->shard->experts.sends_tokens_once,
    .is_padded = cut->shard->experts.pads_sent_tokens,
    .is_normed = cut->model->attn.qk_norm,
    .is_rotated = has_rope && !(cut->kind & LS_LAYER_UNROTATED),
    .is_sharded = cut->shard->cp > 1,
    .at = { [LS_SIZE_EXPERTS] = cut->model->moe.n_experts,
            [LS_SIZE_CHOICES] = cut->model->moe.top_k,
            [LS_SIZE_OWN_EXPERTS] = (double) cut->model->moe.n_experts / MAX (1, cut->shard->experts.ep),
            [LS_SIZE_S] = (double) tokens / sequences,
            [LS_SIZE_B] = sequences,
            [LS_SIZE_H] = (double) cut->model->hidden,
            [LS_SIZE_Q] = (double) cut->q_width,
            [LS_SIZE_K] = (double) cut->k_width,
            [LS_SIZE_A] = (double) cut->heads,
            [LS_SIZE_D] = (double) cut->model->head_dim,
            [LS_SIZE_F] = (double) ffn,
            [LS_SIZE_V] = (double) cut->vocab,
            [LS_SIZE_ROTATED] = (double) cut->model->latent.rope_dim,
            [LS_SIZE_UNROTATED] = (double) (cut->model->head_dim - cut->model->latent.rope_dim),
            [LS_SIZE_VALUES] = (double) cut->v_width,
            [LS_SIZE_LATENT] = (double) cut->model->latent.kv_lora }
  };
}

/* What a breakdown calls them. */
static LsKernelKind
kind_of (LsRecipeOperator which, const LsRecipeKernel *k)
{
  if (k->access == LS_ACCESS_FILL)
    return LS_KERNEL_MEMSET;
  if (ls_recipe_is_norm (which))
    return LS_KERNEL_NORM;
  switch (which) {
  case LS_RECIPE_EMBEDDING:
    return LS_KERNEL_EMBEDDING;
  case LS_RECIPE_LOSS:
  case LS_RECIPE_VOCAB_LOSS:
  case LS_RECIPE_METRIC:
    return LS_KERNEL_CROSS_ENTROPY;
  default:
    return k->access == LS_ACCESS_ROWRED || k->access == LS_ACCESS_COLRED ? LS_KERNEL_REDUCTION
                                                                          : LS_KERNEL_ELEMENTWISE;
  }
}

typedef struct {
  LsRecipeOperator which;
  LsSizes sizes;
} Launch;

/* The listed kernels, with those of `own` where the core is; without a core these are gone. */
static void
replace (const Launch *launch, const GArray *listed, LsKernel *own, uint8_t *n_own)
{
  LsKernel core[LS_OPERATOR_MAX_KERNELS];
  uint8_t n_core = *n_own, n = 0;
  for (uint8_t i = 0; i < n_core; i++)
    core[i] = own[i];
  for (guint i = 0; listed && i < listed->len; i++) {
    const LsRecipeKernel *k = &g_array_index (listed, LsRecipeKernel, i);
    g_assert (n + (k->is_core ? n_core : 1) <= LS_OPERATOR_MAX_KERNELS);
    for (uint8_t c = 0; c < n_core && k->is_core; c++) { /* how they touch memory where the list says that */
      own[n] = core[c];
      own[n].access = k->access != LS_ACCESS_NONE ? (LsAccess) k->access : core[c].access;
      n++;
    }
    if (!k->is_core && ls_recipe_is_launched (k, &launch->sizes))
      own[n++] = ls_recipe_kernel (k, &launch->sizes, kind_of (launch->which, k));
  }
  *n_own = n;
}

/* --- products one by one ----------------------------------------------------------- */

/* Which size of a product's GEMM goes over the columns of all products. */
typedef enum { ALONG_M, ALONG_N, ALONG_K } Along;

static void
one_by_one (const LsOperator *op, Along along, LsKernel *kernels, uint8_t *n_kernels)
{
  LsKernel all[LS_OPERATOR_MAX_KERNELS];
  uint8_t n_all = *n_kernels, n = 0;
  for (uint8_t i = 0; i < n_all; i++)
    all[i] = kernels[i];
  for (uint8_t i = 0; i < n_all; i++) {
    bool is_product = all[i].kind == LS_KERNEL_GEMM;
    for (uint8_t p = 0; p < (is_product ? op->n_products : 1); p++) {
      g_assert (n < LS_OPERATOR_MAX_KERNELS);
      uint64_t columns = op->product_columns[p];
      kernels[n++] = is_product ? ls_kernel_gemm_resized (&all[i], along == ALONG_M ? columns : all[i].m,
                                                          along == ALONG_N ? columns : all[i].n,
                                                          along == ALONG_K ? columns : all[i].k)
                                : all[i];
    }
  }
  *n_kernels = n;
}

/* What each product gathers is a tensor of its own, and autograd keeps it. */
static void
gather_and_reduce_each (LsOperator *op, const LsCut *cut, const LsRecipe *r)
{
  const LsShard *s = cut->shard;
  op->comm.n_gathers = r->gathers_each ? op->n_products : 1;
  bool is_joint = !r->reduces_each || (r->reduces_gathered && s->sp);
  op->comm.n_reduces = is_joint ? 1 : op->n_products;
  if (op->comm.n_gathers > 1 && s->tp > 1 && s->sp && s->sp_save_gathered)
    op->kept.saved_bytes += (op->comm.n_gathers - 1u) * op->kept.input_bytes;
}

/* --- what operators call --------------------------------------------------------------- */

bool
ls_cut_lists (const LsCut *cut, LsRecipeOperator which)
{
  return ls_recipe_find (cut->shard->recipes, which, cut->model) != NULL;
}

static void
as_launched (LsOperator *op, const LsCut *cut, LsRecipeOperator which, LsSizes sizes)
{
  const LsRecipe *r
      = ls_recipe_find_wide (cut->shard->recipes, which, cut->model, (uint64_t) sizes.at[LS_SIZE_H]);
  if (!r)
    return;
  const Launch launch = { which, sizes };
  if (r->one_by_one && !cut->shard->gathers_in_pieces) {
    one_by_one (op, ALONG_N, op->fwd, &op->n_fwd);
    one_by_one (op, ALONG_K, op->igrad, &op->n_igrad);
    one_by_one (op, ALONG_M, op->wgrad, &op->n_wgrad);
  }
  bool is_lookup = which == LS_RECIPE_EMBEDDING;
  replace (&launch, r->forward, op->fwd, &op->n_fwd);
  replace (&launch, r->backward, is_lookup ? op->wgrad : op->igrad, is_lookup ? &op->n_wgrad : &op->n_igrad);
  op->n_host_reads = (uint8_t) (op->n_host_reads + r->host_reads);
  if (r->saved)
    op->kept.saved_bytes = op->kept.input_bytes + (uint64_t) ls_expression_value (r->saved, &launch.sizes);
  if (op->tp == LS_TP_COLUMN && !cut->shard->gathers_in_pieces)
    gather_and_reduce_each (op, cut, r);
}

void
ls_operator_as_launched (LsOperator *op, const LsCut *cut, LsRecipeOperator which, uint64_t tokens,
                         uint64_t ffn)
{
  as_launched (op, cut, which, sizes_of (cut, tokens, ffn));
}

void
ls_operator_norm_as_launched (LsOperator *op, const LsCut *cut, uint64_t rows, uint64_t width)
{
  LsSizes sizes = sizes_of (cut, rows, cut->ffn);
  sizes.at[LS_SIZE_H] = (double) width;
  as_launched (op, cut, LS_RECIPE_NORM, sizes);
}

/* Of `n` kernels, those from `from` on. */
static void
replace_from (const Launch *launch, const GArray *listed, LsKernel *own, uint8_t from, uint8_t *n)
{
  uint8_t rest = *n - from;
  replace (launch, listed, own + from, &rest);
  *n = from + rest;
  g_assert (*n <= LS_OPERATOR_MAX_KERNELS);
}

bool
ls_operator_adapter_as_launched (LsOperator *op, const LsCut *cut, LsRecipeOperator which,
                                 const LsAdapterPart *part, uint64_t *ret_saved)
{
  const LsRecipe *r = ls_recipe_find (cut->shard->recipes, which, cut->model);
  if (!r)
    return false;
  Launch launch = { which, sizes_of (cut, part->tokens, cut->ffn) };
  launch.sizes.at[LS_SIZE_H] = (double) part->width;
  replace_from (&launch, r->forward, op->fwd, part->first_fwd, &op->n_fwd);
  replace_from (&launch, r->backward, op->igrad, part->first_igrad, &op->n_igrad);
  if (r->saved)
    *ret_saved = (uint64_t) ls_expression_value (r->saved, &launch.sizes);
  return r->saved != NULL;
}

void
ls_operator_mixer_as_launched (LsOperator *op, const LsCut *cut, LsRecipeOperator which, LsSizes sizes)
{
  double sequences = cut->shard->micro_batch;
  sizes.at[LS_SIZE_S] = (double) cut->tokens / sequences;
  sizes.at[LS_SIZE_B] = sequences;
  as_launched (op, cut, which, sizes);
}

void
ls_operator_experts_as_launched (LsOperator *op, const LsCut *cut, LsRecipeOperator which, uint64_t rows)
{
  LsSizes sizes = sizes_of (cut, cut->local_tokens, cut->ffn);
  sizes.at[LS_SIZE_EXPERT_ROWS] = (double) rows;
  as_launched (op, cut, which, sizes);
}

static void
launch_each (LsKernel *kernels, uint32_t n, uint32_t n_experts, uint32_t n_products)
{
  for (uint32_t i = 0; i < n; i++) {
    bool is_product = kernels[i].kind == LS_KERNEL_GEMM;
    kernels[i].n_launches = n_experts * (is_product ? n_products : 1);
    kernels[i].batch = is_product ? kernels[i].batch : n_experts;
  }
}

void
ls_operator_launch_each (LsOperator *op, const LsCut *cut, uint32_t n_experts, bool is_fc1)
{
  const LsRecipe *fc1 = ls_recipe_find (cut->shard->recipes, LS_RECIPE_FC1, cut->model);
  uint32_t n_products = is_fc1 && fc1 && fc1->one_by_one && ls_mlp_is_gated (cut->model->mlp) ? 2 : 1;
  if (!ls_recipes_loop (cut->shard->recipes, cut->model))
    return;
  launch_each (op->fwd, op->n_fwd, n_experts, n_products);
  launch_each (op->igrad, op->n_igrad, n_experts, n_products);
  launch_each (op->wgrad, op->n_wgrad, n_experts, n_products);
}

bool
ls_operator_residual_sum (LsOperator *op, const LsCut *cut, LsRecipeOperator sum)
{
  const LsRecipe *r = ls_recipe_find (cut->shard->recipes, sum, cut->model);
  const LsSizes sizes = sizes_of (cut, cut->local_tokens, cut->ffn);
  for (guint i = 0; r && r->backward && i < r->backward->len; i++) {
    const LsRecipeKernel *k = &g_array_index (r->backward, LsRecipeKernel, i);
    ls_operator_igrad (op, ls_recipe_kernel (k, &sizes, kind_of (sum, k)));
  }
  return r != NULL;
}

/* --- experts whose products hold what stands between them ------------------------------------------------
 *
 * Transformer Engine's fused operation of grouped linear, activation and grouped linear
 * (NVIDIA/TransformerEngine@b9d690e0, transformer_engine/pytorch/ops/fused/forward_grouped_mlp.py and
 * backward_grouped_mlp.py: kernels of cuDNN's front end, for mxfp8 on GPUs of compute capability 10, with
 * NVTE_CUTEDSL_FUSED_GROUPED_MLP=1).
 *
 * Model. R rows, an activation of f columns from g (2 f if gated), e bytes of a 16-bit number, c = 2 x 33 /
 * 32 bytes of one that is cast along both dimensions:
 *
 *     forward    fc1 writes its output, e g, for the backward, and the activation cast, c f
 *                fc2 reads that: no activation, no cast of its own
 *     backward   the input gradient of fc2 reads the output of fc1, e g, and writes its gradient cast, c g,
 *                in the place of e f: no kernel of the activation's gradient, no cast before fc1's
 *
 * Each product is one kernel of all experts here, and so is a cast. Deviation: how fast such kernels are was
 * not measured; they take the rate of plain products.
 *
 * Worked example. Qwen3 30B, R = 262,144, f = 768, g = 1,536: forward the activation, 6 R f bytes, and the
 * cast, 4.06 R f, are gone, and c R f more are written: 1.6 GB less. */

#define ALIGNED                                                                                              \
  64 /* columns, of which the kernels take a multiple (ops/_common.py, validate_grouped_mlp_dims) */
#define CAST_BYTES (2 * (1 + 1.0 / 32))

static bool
is_mxfp8 (const LsCut *cut, LsModule module)
{
  LsShard own;
  ls_cut_in_format (cut, module, cut->shard->dtype, &own);
  return own.dtype == LS_DTYPE_FP8 && own.fp8.recipe == LS_FP8_MXFP8 && own.fp8.linear == LS_FP8_LINEAR_TE;
}

bool
ls_cut_fuses_experts (const LsCut *cut, uint64_t ffn, uint64_t width)
{
  return ls_recipes_fuse_experts (cut->shard->recipes) && ffn % ALIGNED == 0 && width % ALIGNED == 0
      && is_mxfp8 (cut, LS_MODULE_EXPERT_FC1) && is_mxfp8 (cut, LS_MODULE_EXPERT_FC2);
}

static void
drop_casts (LsKernel *kernels, uint8_t *n_kernels)
{
  uint8_t n = 0;
  for (uint8_t i = 0; i < *n_kernels; i++)
    if (!kernels[i].is_cast)
      kernels[n++] = kernels[i];
  *n_kernels = n;
}

/* So many bytes more, or fewer, of the product among them. */
static void
add_bytes (LsKernel *kernels, uint8_t n, double bytes)
{
  for (uint8_t i = 0; i < n; i++)
    if (ls_kernel_is_gemm (kernels[i].kind))
      kernels[i].bytes += bytes;
}

static void
launch_operator_as_one (LsOperator *op)
{
  LsKernel *const all[] = { op->fwd, op->igrad, op->wgrad };
  const uint8_t n[] = { op->n_fwd, op->n_igrad, op->n_wgrad };
  for (int pass = 0; pass < 3; pass++)
    for (LsKernel *k = all[pass]; k < all[pass] + n[pass]; k++) {
      k->n_launches = 0;
      k->batch = ls_kernel_is_gemm (k->kind) ? k->batch : MIN (k->batch, 1);
    }
}

void
ls_operators_pad_experts (GArray *operators, const LsCut *cut, const char *name, uint64_t ffn)
{
  LsShard own;
  ls_cut_in_format (cut, LS_MODULE_EXPERT_FC1, cut->shard->dtype, &own);
  if (ls_dtype_is_scaled ((LsDtype) own.dtype) && ls_cut_lists (cut, LS_RECIPE_EXPERT_PAD))
    ls_operator_as_launched (ls_operator_append (operators, name, LS_TP_NONE), cut, LS_RECIPE_EXPERT_PAD,
                             cut->tokens, ffn);
}

void
ls_operators_fuse_experts (LsOperator *fc1, const LsCut *cut, uint64_t ffn)
{
  LsOperator *activation = fc1 + 1, *fc2 = fc1 + 2;
  double rows = (double) cut->tokens, f = (double) ffn, e = cut->elt,
         g = (ls_mlp_is_gated (cut->model->mlp) ? 2 : 1) * f;
  activation->n_fwd = activation->n_igrad = 0;
  drop_casts (fc2->fwd, &fc2->n_fwd);
  drop_casts (fc1->igrad, &fc1->n_igrad);
  add_bytes (fc1->fwd, fc1->n_fwd, CAST_BYTES * rows * f);
  add_bytes (fc2->igrad, fc2->n_igrad, rows * (e * g + CAST_BYTES * g - e * f));
  launch_operator_as_one (fc1);
  launch_operator_as_one (fc2);
}

/* --- tokens that reach experts by products with masks ---------------------------------------------------
 *
 * Problem. Where each expert has a capacity and is padded to it, all sizes are known, and some software
 * permutes by products (LsRecipe.is_one_hot of permute): XLA has fast ones, and moves single rows slowly.
 *
 * Model. P rows of h go to experts from T tokens of b sequences, of T / b tokens each. For each sequence a
 * mask has P / b rows and T / b columns: 1 where a row is that token's, or its probability on the way back.
 *
 *     in      mask x tokens: P / b x h x T / b, b times; backward its transpose times the gradient
 *     out     transpose of the mask x rows; backward the mask times the gradient, and the gradient of the
 *             mask of probabilities, P / b x T / b x h: what experts made is kept for that, 2 P h bytes
 *
 * 2 P h T / b FLOPs each, which are none of the model.
 *
 * Worked example. Mixtral 8x7B, 12 sequences of 4,096, a capacity of 1.25: P = 122,880, and a product is
 * 4.1 TFLOP; the five of a layer are a sixth of what its experts compute forward and backward.
 *
 * Deviation. What makes the masks is left out, as if fused into the products.
 *
 * Reference. Shazeer et al. 2018, Mesh-TensorFlow (arXiv 1811.02084); AI-Hypercomputer/maxtext@14b5876e
 * MaxText/layers/moe.py, dense_matmul. */

bool
ls_cut_masks_tokens (const LsCut *cut)
{
  const LsShard *s = cut->shard;
  return ls_recipes_mask_tokens (s->recipes, cut->model) && !s->experts.sends_tokens_once
      && s->experts.padding == LS_EXPERT_PADDING_CAPACITY;
}

bool
ls_cut_lists_order (const LsCut *cut)
{
  const LsRecipe *r = ls_recipe_find (cut->shard->recipes, LS_RECIPE_PERMUTE, cut->model);
  return r && !cut->shard->experts.sends_tokens_once && (!r->is_one_hot || ls_cut_masks_tokens (cut));
}

typedef struct {
  uint64_t rows, tokens; /* of a mask  */
  uint64_t width;        /* of a token */
  double flops;          /* of all masks */
} Mask;

static Mask
mask_of (const LsCut *cut, uint64_t sent, uint64_t width)
{
  uint64_t n = MAX (1, cut->shard->micro_batch);
  return (Mask) { .rows = MAX (1, sent / n),
                  .tokens = MAX (1, cut->local_tokens / n),
                  .width = width,
                  .flops = 2 * (double) sent * (double) width * (double) cut->local_tokens / (double) n };
}

static LsKernel
product (const LsCut *cut, const Mask *mask, const char *name, uint64_t m, uint64_t n, uint64_t k)
{
  uint64_t n_masks = MAX (1, cut->shard->micro_batch);
  LsKernel gemm = ls_kernel_gemm (name, cut->act, m, n, k, n_masks, cut->elt, false);
  gemm.flops = mask->flops;
  return gemm;
}

void
ls_operator_mask_in (LsOperator *op, const LsCut *cut, uint64_t sent, uint64_t width)
{
  const Mask x = mask_of (cut, sent, width);
  ls_operator_fwd (op, product (cut, &x, "permute", x.rows, x.width, x.tokens));
  ls_operator_igrad (op, product (cut, &x, "permute-bwd", x.tokens, x.width, x.rows));
}

void
ls_operator_mask_out (LsOperator *op, const LsCut *cut, uint64_t sent, uint64_t width)
{
  const Mask x = mask_of (cut, sent, width);
  ls_operator_fwd (op, product (cut, &x, "unpermute", x.tokens, x.width, x.rows));
  ls_operator_igrad (op, product (cut, &x, "unpermute-bwd", x.rows, x.width, x.tokens));
  ls_operator_igrad (op, product (cut, &x, "unpermute-mask-grad", x.rows, x.tokens, x.width));
  op->kept.saved_bytes += sent * width * cut->elt;
}
