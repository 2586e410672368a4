/* A mixture of experts on one rank, in the place of an MLP, as Megatron-LM runs it with its
 * all-to-all dispatcher and grouped GEMMs (core/transformer/moe, 2025):
 *
 *     x --+-- shared-fc1 -- shared-act -- shared-fc2 ------------------------------------------.
 *         `-- router -- permute -- dispatch -- expert-fc1 -- act -- fc2 -- combine -- unpermute -+--
 *
 * Problem. T tokens of this rank (s b / (c t)) go to k of E experts each. A rank has E / ep experts, a part
 * f / etp of each; the ep x etp ranks of a group send to each other.
 *
 * Model. P = T k rows leave this rank (fewer if a capacity drops some); R rows arrive for its experts: of all
 * that the group sends, their part (expert_load.h), which with even load is T k etp. Rows have h elements.
 *
 *     router      T x E x h GEMM in 16 bits, then scores and the choice of k
 *     permute     T rows read, P written, by expert
 *     dispatch    all-to-all of P; over etp gathered to R; sorted by expert if there are several here
 *     expert-fc1  a GEMM of R_e x (2) f / etp x h for each expert here, one kernel
 *     expert-act  weights each row by its router's probability, too
 *     expert-fc2  R_e x h x f / etp
 *     combine     sorted back; over etp reduce-scattered; all-to-all
 *     unpermute   P rows read, T written: sums over the k experts
 *
 * Where a token is sent once to a rank (DeepEP; network/coll_dispatch.c), it leaves as it is, is laid out for
 * each of its experts where it arrives, and their results are summed there: the kernels of permute and
 * unpermute are not there, and those of sorting read, or write, only what arrived.
 * Where a list pads rows for scales (expert-pad), these are copied before fc1 and behind fc2. Where products
 * bring tokens to experts that are padded to a capacity: operators_recipe.c.
 *
 * The grouped GEMM takes the time of one of E / ep equal matrices with R rows in all; rows of an expert are
 * rounded up to the smallest tile first, as a tile has rows of one expert only.
 * The host launches a product for each expert of a rank, on several streams (GroupedLinear of Transformer
 * Engine, cublaslt_gemm.cu), and a cast of each one's rows where no kernel has all, as with delayed scales;
 * one where all are one kernel (grouped_gemm; torch._grouped_mm, operators_recipe.c). Where code runs them
 * one after the other (LsRecipe.loops), each kernel between the orders of tokens is launched for each.
 * Left out: Python's share of an expert (NVIDIA/TransformerEngine issue 2897: 52 us a layer).
 *
 * Behind a latent (Megatron-LM, moe_latent_size) rows are expert_latent wide from permute to unpermute,
 * between two products of each rank's tokens, latent-down of h to that and latent-up back; the others see h.
 *
 * Kept: the input (by the shared experts if there are any), scores (fp32) and choices of the router, the
 * sorted rows R h, the input of the activation and its probabilities, its output:
 *
 *     2 T h + 5 T E + R (2 h + 2 (2 f) / etp + 4 + 2 f / etp)     16-bit, SwiGLU
 *
 * Worked example. Mixtral 8x7B, ep 8, etp 1, 4,096 tokens: P = R = 8,192, one expert a rank;
 * an all-to-all sends 8192 * 4096 * 2 = 67.1 MB, 7/8 of it to others; fc1 is 8192 x 28672 x 4096.
 *
 * Deviations. Rows of the ranks are those of mean tokens: each source sends alike. Left out, as small: the
 * auxiliary loss, histograms, index sorts, the all-to-all of the probabilities, 4 of 2 h + 4 bytes a row.
 *
 * Where shared experts run beside the exchange (LsBeside; Megatron-LM: moe_shared_expert_overlap), the whole
 * of what tp gathers for them is kept, and the router keeps its own part; the gradient of their input is
 * added behind the router's. A small expert that neighbours share (Grove MoE) is computed with each of them.
 *
 * Experts of attention (mixture of attention heads: Zhang et al. 2022, arXiv 2210.05144; JetMoE). Of E, a
 * token is sent to k; of the a heads of a token each makes a / k, and brings what these made back to h. Keys
 * and values are of all. Experts are whole on each copy of the model, and cut over tp by heads, as JetMoE was
 * trained without expert parallelism (Shen et al. 2024, arXiv 2404.07413, section 3.1); T is here s b / c:
 *
 *     attention-kv      T x h x 2 kv d / t, of what tp gathers for the experts, too
 *     attention-router  of this rank's tokens, as above
 *     attention-group   T rows read, P = T k written, by expert; P h are kept
 *     query-experts     P / E x h x a d / (k t) each
 *     query-ungroup     P rows of a d / (k t), read and written in the order of tokens; context-group: back
 *     output-experts    P / E x a d / (k t) x h each
 *     attention-sum     P rows read, T written, summed over tp; backward P rows more are read, which are kept
 *                       for the gradient of the weights in these sums
 *
 * (JetMoeMoA of huggingface/transformers@00dcc6dd, src/transformers/models/jetmoe/modeling_jetmoe.py.) Load
 * is even. Queries are written so that heads on one head of keys are together, and keys are not repeated,
 * which that code does. Worked example. JetMoE-8B (h 2048, E 8, k 2, 32 heads of 128 on 16): of 4096 tokens
 * 8192 rows, 1024 x 2048 x 2048 each: 8 x 8.6 GFLOP for queries.
 *
 * Reference. Fedus et al. 2022 (capacity); Megatron-LM core/transformer/moe/{router, token_dispatcher,
 * experts, moe_layer}.py. */
#include "base/draw.h"

#include <math.h>
#include <string.h>

#include "base/order.h"
#include "base/suggest.h"
#include "model/expert_load.h"
#include "model/operators_build.h"

#define FP32_BYTES 4
#define TILE_ROWS  64 /* of the smallest tile of a GEMM (compute/cost.c) */

static const LsLinearNames router_names = LS_LINEAR ("router", 0);
static const LsLinearNames latent_down_names = LS_LINEAR ("latent-down", LS_MODULE_LATENT_DOWN);
static const LsLinearNames latent_up_names = LS_LINEAR ("latent-up", LS_MODULE_LATENT_UP);
static const LsLinearNames fc1_names = LS_LINEAR ("expert-fc1", LS_MODULE_EXPERT_FC1);
static const LsLinearNames fc2_names = LS_LINEAR ("expert-fc2", LS_MODULE_EXPERT_FC2);

/* What one rank has to do with experts. */
typedef struct {
  LsCut cut;          /* tokens: R, with rows of zeros       */
  uint64_t local;     /* T                                   */
  uint64_t sent;      /* P                                   */
  uint64_t arrived;   /* rows: R, or fewer if a token is sent once     */
  uint64_t tiled;     /* R, with each expert's rows in whole tiles */
  uint32_t n_experts; /* here                                */
  uint32_t n_met;     /* k                                   */
  uint64_t ffn;       /* f / etp, and of small experts beside these */
  uint64_t adjugate;  /* of these, what is shared; 0: nothing */
  uint64_t width;     /* of rows: h, or the latent           */
} Experts;

static void
experts_init (Experts *x, const LsCut *cut)
{
  const LsModel *m = cut->model;
  const LsShard *s = cut->shard;
  uint32_t ep = MAX (1, s->experts.ep), etp = MAX (1, s->experts.etp);
  g_autofree uint64_t *brought = g_new (uint64_t, m->moe.n_experts),
                      *computed = g_new (uint64_t, m->moe.n_experts);
  uint64_t sum = 0;

  *x = (Experts) { .cut = *cut,
                   .local = cut->local_tokens,
                   .n_experts = m->moe.n_experts / ep,
                   .n_met = m->moe.top_k,
                   .ffn = (m->moe.expert_ffn + m->moe.adjugate_ffn) / etp,
                   .adjugate = m->moe.adjugate_ffn / etp,
                   .width = ls_model_expert_width (m) };
  ls_expert_rows (m, s, brought, computed);
  x->cut.tokens = 0;
  for (uint32_t e = 0; e < m->moe.n_experts; e++) {
    sum += brought[e];
    if (e / x->n_experts != s->experts.ep_rank)
      continue;
    x->arrived += brought[e];
    x->cut.tokens += computed[e];
    x->tiled += (computed[e] + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
  }
  x->sent = sum / (ep * etp);
  if (s->experts.sends_tokens_once) {
    LsDraw draw = ls_expert_draw (m, s);
    x->arrived = (uint64_t) ((double) x->arrived * ls_draw_parts (&draw, ep) / m->moe.top_k);
  }
}

/* Rows as experts see them, moved once. */
static LsKernel
row_copy (const Experts *x, const char *name, uint64_t rows)
{
  return ls_cut_stream (&x->cut, name, LS_KERNEL_ELEMENTWISE, rows, x->width, x->cut.elt);
}

/* Of this rank's tokens, x h: two tensors to one. */
static LsKernel
token_sum (const Experts *x, const char *name)
{
  return ls_cut_stream (&x->cut, name, LS_KERNEL_ELEMENTWISE, x->local, x->cut.model->hidden, 3 * x->cut.elt);
}

/* Of shared experts that run beside the exchange of tokens. */
static bool
keeps_gathered (const LsShard *s)
{
  return s->experts.shared_is_beside && s->sp && s->tp > 1;
}

static void
append_router (GArray *operators, const Experts *x)
{
  const LsModel *m = x->cut.model;
  const LsShard *s = x->cut.shard;
  uint64_t scores = x->local * ls_model_router_width (m),
           width = ls_operators_router_layers (operators, &x->cut);
  LsOperator *op = ls_operator_append (operators, "router", LS_TP_NONE);

  /* Scores in 16 bits become probabilities in fp32 and a choice, a byte each. */
  LsKernel choose = ls_cut_stream (&x->cut, "router-softmax-topk", LS_KERNEL_SOFTMAX, x->local,
                                   ls_model_router_width (m), x->cut.elt + FP32_BYTES + 1);
  LsKernel back = ls_cut_stream (&x->cut, "router-softmax-bwd", LS_KERNEL_SOFTMAX, x->local,
                                 ls_model_router_width (m), x->cut.elt + 2 * FP32_BYTES + 1);
  bool is_listed = ls_cut_lists (&x->cut, LS_RECIPE_ROUTER);
  if (!is_listed)
    ls_operator_igrad (op, back);
  ls_operator_local_linear (op, &x->cut, &router_names, x->cut.act, width, ls_model_router_width (m));
  if (m->linear_bias)
    ls_operator_bias (op, &x->cut, (LsBias) { "router-bias-grad", LS_RECIPE_ROUTER }, x->local,
                      ls_model_router_width (m));
  if (!is_listed)
    ls_operator_fwd (op, choose);
  ls_operator_experts_as_launched (op, &x->cut, LS_RECIPE_ROUTER, x->cut.tokens);
  ls_operator_igrad (op, token_sum (x, "moe-grad-add"));
  if (m->moe.shared_ffn > 0 && !keeps_gathered (s))
    op->kept.saved_bytes = op->kept.input_bytes = 0; /* the shared experts keep it */
  op->kept.saved_bytes += scores * (FP32_BYTES + 1);
  if (m->moe.shared_ffn > 0 && s->experts.shared_is_beside) {
    ls_operator_igrad (op, token_sum (x, "moe-grad-add"));
    op->beside = LS_BESIDE_GRAD_SUM;
  }
}

/* On each rank, for its tokens. */
static void
append_latent (GArray *operators, const Experts *x, const LsLinearNames *names, uint64_t in, uint64_t out)
{
  LsOperator *op = ls_operators_local (operators, &x->cut, names, x->cut.shard->dtype, in, out);
  if (in == x->cut.model->hidden) { /* what the router sees, and keeps */
    op->kept.saved_bytes = op->kept.input_bytes = 0;
    ls_operator_igrad (op, token_sum (x, "moe-grad-add"));
  }
}

static void
append_permute (GArray *operators, const Experts *x)
{
  LsOperator *op = ls_operator_append (operators, "permute", LS_TP_NONE);
  ls_scaled_cast_sent (op, &x->cut, x->local, x->width);
  if (ls_cut_masks_tokens (&x->cut)) {
    ls_operator_mask_in (op, &x->cut, x->sent, x->width);
  } else if (!x->cut.shard->experts.sends_tokens_once) {
    ls_operator_fwd (op, row_copy (x, "permute", x->local + x->sent));
    ls_operator_igrad (op, row_copy (x, "permute-bwd", x->local + x->sent));
    if (ls_cut_lists_order (&x->cut))
      ls_operator_experts_as_launched (op, &x->cut, LS_RECIPE_PERMUTE, x->cut.tokens);
  }
  if (x->cut.model->moe.shared_ffn > 0 && x->cut.shard->experts.shared_is_beside)
    op->beside = LS_BESIDE_GATHER;
  else if (x->cut.model->moe.shared_ffn > 0)
    ls_operator_igrad (op, token_sum (x, "moe-grad-add"));
}

static void
append_exchange (GArray *operators, const Experts *x, const char *name, LsEpMode mode)
{
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  op->ep = mode;
  uint64_t sent = x->sent * x->width;
  op->comm.ep_bytes = sent * x->cut.elt;
  op->comm.to_ep_bytes = x->cut.shard->experts.dispatch_fp8
      ? ls_dtype_cast_bytes (LS_DTYPE_FP8, op->comm.ep_bytes)
      : op->comm.ep_bytes;
  op->comm.etp_bytes = x->cut.tokens * x->width * x->cut.elt;
  uint64_t back = x->cut.shard->experts.sends_tokens_once ? x->local : x->sent;
  op->comm.brought_bytes = (mode == LS_EP_DISPATCH ? x->arrived : back) * x->width * x->cut.elt;
  if (x->n_experts > 1 && !ls_cut_lists_order (&x->cut)) {
    ls_operator_fwd (op, row_copy (x, "expert-sort", x->cut.tokens + x->arrived));
    ls_operator_igrad (op, row_copy (x, "expert-sort-bwd", x->cut.tokens + x->arrived));
  }
}

/* One of n_experts equal matrices; FLOPs and bytes are those of all. */
static LsKernel
grouped_gemm (const Experts *x, const char *name, LsDtype dtype, uint64_t out, uint64_t in, bool is_wgrad)
{
  bool is_fused = ls_cut_fuses_gradients (&x->cut);
  uint64_t n = x->n_experts, rows = MAX (1, (is_wgrad ? x->cut.tokens : x->tiled) / n);
  double R = (double) x->cut.tokens, weights = (double) n * (double) out * (double) in;
  double elt = ls_dtype_size (dtype);
  uint32_t out_elt = is_wgrad && is_fused ? 2 * FP32_BYTES : x->cut.elt;
  LsKernel k = is_wgrad ? ls_kernel_gemm (name, dtype, out, in, rows, 1, 0, false)
                        : ls_kernel_gemm (name, dtype, rows, out, in, 1, 0, false);
  k.batch = n;
  k.n_launches = x->cut.shard->experts.grouped_gemm ? 0 : (uint32_t) n;
  k.flops = 2 * R * (double) out * (double) in;
  k.bytes = is_wgrad ? elt * R * (double) (out + in) + out_elt * weights
                     : elt * (R * (double) in + weights) + out_elt * R * (double) out;
  return k;
}

/* Of small experts there are fewer. */
static void
append_weights (LsOperator *op, const Experts *x, LsTensorCut cut, uint64_t in, uint64_t out)
{
  uint64_t n = x->n_experts, own = x->ffn - x->adjugate;
  bool is_in = cut == LS_TENSOR_COLUMNS;
  if (x->adjugate == 0) {
    ls_operator_weight (op, cut, out, in, n);
    return;
  }
  uint64_t n_shared = n / x->cut.model->moe.adjugate_of;
  ls_operator_weight (op, cut, is_in ? out : out / x->ffn * own, is_in ? own : in, n);
  ls_operator_weight (op, cut, is_in ? out : out / x->ffn * x->adjugate, is_in ? x->adjugate : in, n_shared);
}

static void
append_linear (GArray *operators, const Experts *x, const LsLinearNames *names, LsTensorCut cut, uint64_t in,
               uint64_t out)
{
  LsShard own;
  const LsCut inside = ls_cut_in_format (&x->cut, names->module, x->cut.shard->dtype, &own);
  LsDtype dtype = own.dtype;
  LsOperator *op = ls_operator_append (operators, names->fwd, LS_TP_NONE);
  if (ls_dtype_is_scaled (dtype)) {
    bool is_sent = names == &fc1_names && own.experts.dispatch_fp8;
    const LsScaled product = { .in = in, .out = out, .n = x->n_experts, .is_sent = is_sent };
    ls_scaled_before_fwd (op, &inside, &product);
    ls_scaled_before_igrad (op, &inside, &product);
    ls_scaled_before_wgrad (op, &inside, &product);
  }
  ls_operator_fwd (op, grouped_gemm (x, names->fwd, dtype, out, in, false));
  ls_operator_igrad (op, grouped_gemm (x, names->igrad, dtype, in, out, false));
  ls_operator_wgrad (op, ls_scaled_wgrad (&own, grouped_gemm (x, names->wgrad, dtype, out, in, true)));
  ls_operator_launch_each (op, &x->cut, x->n_experts, names == &fc1_names);
  ls_operator_accumulate (op, &x->cut, in, x->n_experts * out);
  append_weights (op, x, cut, in, out);
  op->params.is_expert = true;
  op->params.n_met = x->n_met;
  op->kept.saved_bytes = op->kept.input_bytes
      = ls_dtype_array_bytes (ls_scaled_kept (&own, dtype), x->cut.tokens * in);
}

/* A product of all experts here, with their biases, as the job's software launches it. */
static void
append_product (GArray *operators, const Experts *x, const LsLinearNames *names, LsBias bias, uint64_t in,
                uint64_t out)
{
  append_linear (operators, x, names, bias.which == LS_RECIPE_EXPERT_FC1 ? LS_TENSOR_ROWS : LS_TENSOR_COLUMNS,
                 in, out);
  LsOperator *op = &g_array_index (operators, LsOperator, operators->len - 1);
  bias.n = x->n_experts;
  if (x->cut.model->linear_bias)
    ls_operator_bias (op, &x->cut, bias, x->cut.tokens, out);
  ls_operator_as_launched (op, &x->cut, bias.which, x->cut.tokens, x->ffn);
}

static void
append_activation (GArray *operators, const Experts *x)
{
  uint64_t rows = x->cut.tokens;
  LsOperator *op = ls_operator_append (operators, "expert-act", LS_TP_NONE);
  ls_operator_activation (op, &x->cut, LS_RECIPE_EXPERT_ACTIVATION, rows, x->ffn);
  if (!ls_cut_lists_order (&x->cut)) { /* else the probabilities are there */
    op->fwd[0].bytes += FP32_BYTES * (double) rows;
    op->igrad[0].bytes += 2 * FP32_BYTES * (double) rows;
  }
  op->kept.saved_bytes += FP32_BYTES * rows;
  ls_operator_launch_each (op, &x->cut, x->n_experts, false);
}

static void
append_unpermute (GArray *operators, const Experts *x)
{
  LsOperator *op = ls_operator_append (operators, "unpermute", LS_TP_NONE);
  if (ls_cut_masks_tokens (&x->cut)) {
    ls_operator_mask_out (op, &x->cut, x->sent, x->width);
  } else if (!x->cut.shard->experts.sends_tokens_once) {
    ls_operator_fwd (op, row_copy (x, "unpermute", x->local + x->sent));
    ls_operator_igrad (op, row_copy (x, "unpermute-bwd", x->local + x->sent));
    ls_operator_experts_as_launched (op, &x->cut, LS_RECIPE_UNPERMUTE, x->cut.tokens);
  }
  if (x->cut.model->moe.shared_ffn == 0)
    return;
  ls_operator_fwd (op, token_sum (x, "shared-expert-add"));
  if (x->cut.shard->experts.shared_is_beside)
    op->beside = LS_BESIDE_SUM;
}

static void
append_shared (GArray *operators, const LsCut *cut)
{
  static const LsMlpNames names = { "shared-fc1", "shared-act", "shared-fc2", .is_shared = true };
  LsCut shared = *cut;
  LsShard keeping = *cut->shard;
  guint from = operators->len;
  keeping.sp_save_gathered |= keeps_gathered (cut->shard);
  shared.shard = &keeping;
  shared.ffn = cut->model->moe.shared_ffn / cut->shard->tp;
  ls_operators_mlp (operators, &shared, &names);
  for (guint i = from; i < operators->len; i++) {
    LsOperator *op = &g_array_index (operators, LsOperator, i);
    bool is_last = i + 1 == operators->len;
    op->part = LS_MLP_PART_SHARED;
    if (cut->shard->experts.shared_is_beside)
      op->beside = is_last ? LS_BESIDE_COMBINE : LS_BESIDE_DISPATCH;
  }
}

void
ls_operators_experts (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  Experts x;
  experts_init (&x, cut);

  if (m->moe.shared_ffn > 0)
    append_shared (operators, cut);
  guint from = operators->len;
  append_router (operators, &x);
  if (m->moe.latent > 0)
    append_latent (operators, &x, &latent_down_names, m->hidden, x.width);
  append_permute (operators, &x);
  guint counted = operators->len;
  append_exchange (operators, &x, "dispatch", LS_EP_DISPATCH);
  ls_operators_pad_experts (operators, &x.cut, "expert-pad", x.ffn);
  guint products = operators->len;
  append_product (operators, &x, &fc1_names, (LsBias) { "expert-fc1-bias-grad", LS_RECIPE_EXPERT_FC1 },
                  x.width, (ls_mlp_is_gated (m->mlp) ? 2 : 1) * x.ffn);
  append_activation (operators, &x);
  append_product (operators, &x, &fc2_names, (LsBias) { "expert-fc2-bias-grad", LS_RECIPE_EXPERT_FC2 }, x.ffn,
                  x.width);
  if (ls_cut_fuses_experts (cut, x.ffn, x.width))
    ls_operators_fuse_experts (&g_array_index (operators, LsOperator, products), &x.cut, x.ffn);
  ls_operators_pad_experts (operators, &x.cut, "expert-unpad", x.ffn);
  if (ls_cut_lists (cut, LS_RECIPE_EXPERT_STASH)) /* copies of what experts keep */
    ls_operator_as_launched (ls_operator_append (operators, "expert-stash", LS_TP_NONE), &x.cut,
                             LS_RECIPE_EXPERT_STASH, x.cut.tokens, x.ffn);
  append_exchange (operators, &x, "combine", LS_EP_COMBINE);
  for (guint i = counted; i < operators->len; i++)
    g_array_index (operators, LsOperator, i).is_counted = true;
  append_unpermute (operators, &x);
  if (m->moe.latent > 0)
    append_latent (operators, &x, &latent_up_names, x.width, m->hidden);
  for (guint i = from; i < operators->len; i++)
    g_array_index (operators, LsOperator, i).part = LS_MLP_PART_MOE;
}

/* --- experts of attention ----------------------------------------------------------------- */

static const LsLinearNames kv_names = LS_LINEAR ("attention-kv", 0);
static const LsLinearNames attention_router_names = LS_LINEAR ("attention-router", 0);
static const LsLinearNames query_names = LS_LINEAR ("query-experts", LS_MODULE_EXPERT_FC1);
static const LsLinearNames output_names = LS_LINEAR ("output-experts", LS_MODULE_EXPERT_FC2);

static Experts
attention_experts (const LsCut *cut)
{
  uint32_t n = cut->model->moe.attention_experts;
  Experts x = { .cut = *cut,
                .local = cut->tokens,
                .n_experts = n,
                .n_met = cut->model->moe.attention_top_k,
                .width = cut->model->hidden };
  x.sent = x.arrived = x.cut.tokens = cut->tokens * x.n_met;
  uint64_t each = (x.sent + n - 1) / n;
  x.tiled = n * ((each + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS);
  return x;
}

/* Backward its input's gradient meets that of the experts'. */
static void
append_attention_kv (GArray *operators, const LsCut *cut, const Experts *x)
{
  uint64_t h = cut->model->hidden, width = cut->k_width + cut->v_width;
  LsOperator *op = ls_operators_linear (operators, cut, &kv_names, LS_TP_COLUMN, h, width);
  op->role = LS_OPERATOR_ATTENTION;
  ls_operator_igrad (op, token_sum (x, "moe-grad-add"));
  ls_operator_product (op, cut->k_width);
  ls_operator_product (op, cut->v_width);
  op->kept.saved_bytes += cut->tokens * width * cut->elt;
}

static void
append_attention_router (GArray *operators, const LsCut *cut)
{
  uint64_t rows = cut->local_tokens, n = cut->model->moe.attention_experts, h = cut->model->hidden;
  LsOperator *op = ls_operator_append (operators, attention_router_names.fwd, LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;
  ls_operator_igrad (
      op,
      ls_cut_stream (cut, "router-softmax-bwd", LS_KERNEL_SOFTMAX, rows, n, cut->elt + 2 * FP32_BYTES + 1));
  ls_operator_local_linear (op, cut, &attention_router_names, cut->act, h, n);
  ls_operator_fwd (
      op, ls_cut_stream (cut, "router-softmax-topk", LS_KERNEL_SOFTMAX, rows, n, cut->elt + FP32_BYTES + 1));
  ls_operator_passes (op, cut, rows, h, NULL, 0, "moe-grad-add", 3);
  op->kept.input_bytes = 0; /* keys and values keep it */
  op->kept.saved_bytes = rows * n * (FP32_BYTES + 1);
}

/* Rows so wide, in another order: so many are moved each way. */
static LsOperator *
append_order (GArray *operators, const Experts *x, const char *name, const char *grad_name, uint64_t rows,
              uint64_t width, uint64_t kept)
{
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  ls_operator_fwd (op, ls_cut_stream (&x->cut, name, LS_KERNEL_ELEMENTWISE, rows, width, x->cut.elt));
  ls_operator_igrad (op, ls_cut_stream (&x->cut, grad_name, LS_KERNEL_ELEMENTWISE, rows, width, x->cut.elt));
  op->kept.saved_bytes = kept * width * x->cut.elt;
  return op;
}

static void
append_attention_linear (GArray *operators, const Experts *x, const LsLinearNames *names, LsTensorCut cut,
                         uint64_t in, uint64_t out)
{
  append_linear (operators, x, names, cut, in, out);
  g_array_index (operators, LsOperator, operators->len - 1).params.is_expert
      = false; /* on each copy of the model */
}

static void
append_attention_sum (GArray *operators, const Experts *x)
{
  LsOperator *op = ls_operator_append (operators, "attention-sum", LS_TP_ROW);
  op->role = LS_OPERATOR_ATTENTION;
  ls_operator_fwd (op, row_copy (x, "attention-sum", x->local + x->sent));
  ls_operator_igrad (op, row_copy (x, "attention-sum-bwd", x->local + 2 * x->sent));
  op->kept.saved_bytes = x->sent * x->width * x->cut.elt;
  op->comm.tp_bytes = x->local * x->width * x->cut.elt;
}

void
ls_operators_attention_experts (GArray *operators, const LsCut *cut)
{
  const Experts x = attention_experts (cut);
  uint64_t h = x.width, query = cut->q_width / cut->model->moe.attention_top_k,
           context = cut->context_width / cut->model->moe.attention_top_k;
  append_attention_kv (operators, cut, &x);
  append_attention_router (operators, cut);
  append_order (operators, &x, "attention-group", "attention-group-bwd", x.local + x.sent, h, 0)->role
      = LS_OPERATOR_ATTENTION;
  append_attention_linear (operators, &x, &query_names, LS_TENSOR_ROWS, h, query);
  append_order (operators, &x, "query-ungroup", "query-ungroup-bwd", 2 * x.sent, query, x.sent); /* Q */
  ls_operators_attention (operators, cut);
  append_order (operators, &x, "context-group", "context-group-bwd", 2 * x.sent, context, x.sent);
  append_attention_linear (operators, &x, &output_names, LS_TENSOR_COLUMNS, context, h);
  append_attention_sum (operators, &x);
}

bool
ls_expert_load_is_in_turn (const char *load)
{
  return load && strcmp (load, "round-robin") == 0;
}

bool
ls_expert_load_is_even (const char *load)
{
  return !load || strcmp (load, "even") == 0 || ls_expert_load_is_in_turn (load);
}

LsDraw
ls_expert_draw (const LsModel *m, const LsShard *s)
{
  return (LsDraw) { m->moe.n_experts, m->moe.top_k, m->moe.groups, m->moe.top_groups,
                    s->experts.routes_in_turn };
}

/* --- shares ------------------------------------------------------------------------ */

static bool
read_number (const char **text, double *ret)
{
  char *end;
  *ret = g_ascii_strtod (*text, &end);
  bool ok = end != *text && isfinite (*ret) && *ret >= 0;
  *text = end;
  return ok;
}

static bool
fill_zipf (const char *text, uint32_t n, double *w)
{
  double exponent;
  if (!read_number (&text, &exponent) || *text != '\0' || exponent > 16)
    return false;
  for (uint32_t e = 0; e < n; e++)
    w[e] = pow (e + 1, -exponent);
  return true;
}

static bool
fill_lognormal (const char *text, uint32_t n, double *w)
{
  double sigma;
  if (!read_number (&text, &sigma) || *text != ':' || sigma > 16)
    return false;
  char *end;
  uint64_t state = g_ascii_strtoull (++text, &end, 10);
  if (!g_ascii_isdigit (*text) || *end != '\0')
    return false;
  for (uint32_t e = 0; e < n; e++)
    w[e] = exp (sigma * ls_draw_normal (&state));
  return true;
}

static bool
fill_list (const char *text, uint32_t n, double *w)
{
  g_autoptr (GArray) list = g_array_new (FALSE, FALSE, sizeof (double));
  for (;; text++) {
    double x;
    if (!read_number (&text, &x) || x > 1e12)
      return false;
    g_array_append_val (list, x);
    if (*text != ',')
      break;
  }
  for (uint32_t e = 0; e < n; e++)
    w[e] = g_array_index (list, double, e % list->len);
  return *text == '\0' && list->len <= n && (list->len > 1 || n == 1); /* one weight is no comparison */
}

static double
sum_of (const double *w, uint32_t n)
{
  double sum = 0;
  for (uint32_t e = 0; e < n; e++)
    sum += w[e];
  return sum;
}

/* Shares above `most` are cut to it; the others grow in proportion, until all fit. */
static bool
limit (double *w, uint32_t n, double most)
{
  g_autofree bool *is_full = g_new0 (bool, n);
  for (uint32_t n_full = 0, before = UINT32_MAX; n_full != before;) {
    double others = 0;
    before = n_full;
    for (uint32_t e = 0; e < n; e++)
      others += is_full[e] ? 0 : w[e];
    if (others <= 0)
      return most * n_full >= 1 - 1e-9;
    for (uint32_t e = 0; e < n; e++)
      w[e] = is_full[e] ? most : w[e] * (1 - most * before) / others;
    for (uint32_t e = 0; e < n; e++)
      if (!is_full[e] && w[e] > most) {
        is_full[e] = true;
        n_full++;
      }
  }
  return true;
}

double *
ls_expert_shares (const char *load, const LsModel *m, char **ret_why)
{
  uint32_t n = m->moe.n_experts;
  *ret_why = NULL;
  if (ls_expert_load_is_even (load) || n == 0)
    return NULL;
  g_autofree double *w = g_new0 (double, n);
  bool is_read = g_str_has_prefix (load, "zipf:") ? fill_zipf (load + strlen ("zipf:"), n, w)
      : g_str_has_prefix (load, "lognormal:")     ? fill_lognormal (load + strlen ("lognormal:"), n, w)
                                                  : fill_list (load, n, w);
  double sum = is_read ? sum_of (w, n) : 0;
  if (!is_read) {
    static const char *const words[] = { "even", "round-robin", "zipf:S", "lognormal:SIGMA:SEED", NULL };
    g_autofree char *hint = ls_did_you_mean (load, words);
    *ret_why = g_strdup_printf (
        "expected even, round-robin, zipf:S, lognormal:SIGMA:SEED, or 2 to %u weights a,b,c...; "
        "got \"%s\"%s",
        n, load, hint);
  } else if (!isfinite (sum) || sum <= 0)
    *ret_why = g_strdup_printf ("expected weights that add up to more than 0; got \"%s\"", load);
  if (*ret_why)
    return NULL;
  for (uint32_t e = 0; e < n; e++)
    w[e] /= sum;
  if (!limit (w, n, 1.0 / m->moe.top_k)) {
    *ret_why = g_strdup_printf (
        "expected weights above 0 for %u experts at least, as a token goes to as many; got \"%s\"",
        m->moe.top_k, load);
    return NULL;
  }
  return g_steal_pointer (&w);
}

/* --- tokens --------------------------------------------------------------------------- */

/* Tokens of all ranks that send to the same experts. */
static uint64_t
tokens_of_group (const LsShard *s)
{
  uint64_t local = (uint64_t) s->seq / MAX (1, s->cp) * s->micro_batch / (s->sp ? s->tp : 1);
  return local * MAX (1, s->experts.ep) * MAX (1, s->experts.etp);
}

typedef struct {
  double remainder;
  uint32_t expert;
} Remainder;

static const LsSortKey by_remainder[]
    = { { LS_FALLING (Remainder, remainder) }, { LS_RISING (Remainder, expert) }, { 0 } };

/* Whole numbers in proportion to the shares that add up to n; none is above `most`, if n
 * can be had so. */
static void
share_out (const double *share, uint32_t n_experts, uint64_t n, uint64_t most, uint64_t *tokens)
{
  g_autofree Remainder *r = g_new (Remainder, n_experts);
  uint64_t left = n;
  for (uint32_t e = 0; e < n_experts; e++) {
    double exact = (share ? share[e] : 1.0 / n_experts) * (double) n;
    tokens[e] = share ? MIN ((uint64_t) exact, most) : n / n_experts;
    tokens[e] = MIN (tokens[e], left);
    left -= tokens[e];
    r[e] = (Remainder) { share ? exact - (double) tokens[e] : 0, e };
  }
  g_qsort_with_data (r, (gint) n_experts, sizeof *r, ls_compare_by, (gpointer) by_remainder);
  for (uint32_t i = 0; left > 0; i = (i + 1) % n_experts)
    if (tokens[r[i].expert] < most) {
      tokens[r[i].expert]++;
      left--;
    }
}

/* What an expert takes of n assignments at most. */
static uint64_t
capacity_of (const LsModel *m, const LsShard *s, uint64_t n)
{
  double mean = (double) n / m->moe.n_experts;
  return s->experts.capacity > 0 ? (uint64_t) ceil (s->experts.capacity * mean) : UINT64_MAX;
}

void
ls_expert_tokens (const LsModel *m, const LsShard *s, uint64_t *ret_kept, uint64_t *ret_sent)
{
  uint64_t tokens = tokens_of_group (s), n = tokens * m->moe.top_k, limit = capacity_of (m, s, n);
  g_autofree uint64_t *sent = g_new (uint64_t, m->moe.n_experts);
  share_out (s->experts.share, m->moe.n_experts, n, tokens, sent);
  for (uint32_t e = 0; e < m->moe.n_experts; e++) {
    if (ret_sent)
      ret_sent[e] = sent[e];
    if (ret_kept)
      ret_kept[e] = MIN (sent[e], limit);
  }
}

void
ls_expert_rows (const LsModel *m, const LsShard *s, uint64_t *ret_brought, uint64_t *ret_computed)
{
  uint32_t per_rank = m->moe.n_experts / MAX (1, s->experts.ep);
  uint64_t limit = capacity_of (m, s, tokens_of_group (s) * m->moe.top_k);
  ls_expert_tokens (m, s, ret_brought, NULL);
  for (uint32_t e = 0; e < m->moe.n_experts && s->experts.padding == LS_EXPERT_PADDING_CAPACITY; e++)
    ret_brought[e] = limit;
  for (uint32_t first = 0; first < m->moe.n_experts; first += per_rank) {
    uint64_t fullest = 0;
    for (uint32_t e = first; e < first + per_rank; e++)
      fullest = MAX (fullest, ret_brought[e]);
    for (uint32_t e = first; e < first + per_rank; e++)
      ret_computed[e] = s->experts.padding == LS_EXPERT_PADDING_FULLEST ? fullest : ret_brought[e];
  }
}

void
ls_expert_rows_of_ranks (const LsModel *m, const LsShard *s, uint64_t *ret_rows)
{
  uint32_t ep = MAX (1, s->experts.ep), per_rank = m->moe.n_experts / ep;
  g_autofree uint64_t *brought = g_new (uint64_t, m->moe.n_experts),
                      *computed = g_new (uint64_t, m->moe.n_experts);
  ls_expert_rows (m, s, brought, computed);
  for (uint32_t r = 0; r < ep; r++) {
    ret_rows[r] = 0;
    for (uint32_t e = 0; e < per_rank; e++)
      ret_rows[r] += brought[r * per_rank + e];
  }
}

bool
ls_expert_ranks_differ (const LsModel *m, const LsShard *s)
{
  uint32_t n = m->moe.n_experts > 0 ? MAX (1, s->experts.ep) : 0;
  g_autofree uint64_t *rows = g_new (uint64_t, n + 1);
  if (n > 0)
    ls_expert_rows_of_ranks (m, s, rows);
  for (uint32_t r = 1; r < n; r++)
    if (rows[r] != rows[0])
      return true;
  return false;
}

static double
sum_of_rows (const uint64_t *x, uint32_t n)
{
  double sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += (double) x[i];
  return sum;
}

double
ls_expert_kept_share (const LsModel *m, const LsShard *s)
{
  g_autofree uint64_t *kept = g_new (uint64_t, m->moe.n_experts), *sent = g_new (uint64_t, m->moe.n_experts);
  ls_expert_tokens (m, s, kept, sent);
  double n_sent = sum_of_rows (sent, m->moe.n_experts);
  return n_sent > 0 ? sum_of_rows (kept, m->moe.n_experts) / n_sent : 1;
}

double
ls_expert_blank_share (const LsModel *m, const LsShard *s)
{
  g_autofree uint64_t *brought = g_new (uint64_t, m->moe.n_experts),
                      *computed = g_new (uint64_t, m->moe.n_experts),
                      *kept = g_new (uint64_t, m->moe.n_experts), *sent = g_new (uint64_t, m->moe.n_experts);
  ls_expert_tokens (m, s, kept, sent);
  ls_expert_rows (m, s, brought, computed);
  double n_sent = sum_of_rows (sent, m->moe.n_experts);
  return n_sent > 0
      ? (sum_of_rows (computed, m->moe.n_experts) - sum_of_rows (kept, m->moe.n_experts)) / n_sent
      : 0;
}
