/* A transformer layer on one rank (norms before each half, as GPT-2 and Llama; others have them behind, on
 * what is added, or on both sides, or one before both halves, whose sums are added one after the other):
 *
 *     x --+-- norm -- qkv -- attention -- proj -- add --+-- norm -- fc1 -- act -- fc2 -- add --
 *         `------------------------------------- / -----'---------------------------- / ------'
 *
 * Column-parallel qkv and fc1, row-parallel proj and fc2 (Shoeybi et al. 2019);
 * what lies outside works on s b / t tokens with sequence parallelism
 * (Korthikanti et al. 2022).
 *
 * saved_bytes add up to the table of Korthikanti et al., section 4.1, per layer
 * (16-bit, GELU, dropout, unfused):
 *
 *     norm input 2, qkv input 2, Q K V 6/t, softmax and dropout 5as/(ht),
 *     context 2/t, mask 1, norm input 2, fc1 input 2, GELU input 8/t,
 *     fc2 input 8/t, mask 1                    = s b h (10 + 24/t + 5as/(ht))
 *
 * and all of it / t with sequence parallelism.
 *
 * The biases of proj and fc2 are added after the reduction, in the fused
 * bias-dropout-add, and belong to it: they are replicated over tp. */
#include "model/operators_build.h"

static const LsLinearNames qkv_names = LS_LINEAR ("qkv", LS_MODULE_QKV);
static const LsLinearNames proj_names = LS_LINEAR ("proj", LS_MODULE_PROJ);

/* Of an MLP, and of shared experts. */
static const LsLinearNames fc1_names[] = { { "fc1", "fc1-dgrad", "fc1-wgrad", LS_MODULE_FC1 },
                                           { "fc1", "fc1-dgrad", "fc1-wgrad", LS_MODULE_SHARED_FC1 } };
static const LsLinearNames fc2_names[] = { { "fc2", "fc2-dgrad", "fc2-wgrad", LS_MODULE_FC2 },
                                           { "fc2", "fc2-dgrad", "fc2-wgrad", LS_MODULE_SHARED_FC2 } };

/* The unfused path (Megatron-LM 2021-22) adds the QKV bias in a kernel of its
 * own, and its backward concatenates dQ, dK, dV. Later stacks add it in the GEMM
 * and let the attention kernel write the three into one buffer, unless it is given
 * views (torch.split), whose backward concatenates too. */
void
ls_operators_qkv (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t keys = cut->kind & LS_LAYER_KV_SHARED ? 0 : cut->k_width,
           values = keys > 0 && !m->attn.full_k_is_v ? cut->v_width : 0, width = cut->q_width + keys + values,
           gate = m->attn.gate ? cut->context_width : 0;
  bool has_bias = m->attn.qkv_bias || (m->linear_bias && !m->attn.unbiased_qkv);
  bool is_unfused = cut->shard->attention == LS_ATTENTION_UNFUSED,
       is_listed = ls_cut_lists (cut, LS_RECIPE_QKV);
  LsOperator *op = ls_operator_append (operators, "qkv", LS_TP_COLUMN);
  op->role = LS_OPERATOR_QKV;

  if (!is_listed && keys > 0 && (is_unfused || cut->shard->qkv_layout != LS_QKV_JOINT))
    ls_operator_passes (op, cut, cut->tokens, width, NULL, 0, "qkv-grad-concat", 2);
  ls_operator_linear (op, cut, &qkv_names, cut->shard->dtype, m->hidden, width + gate);
  ls_operator_weight (op, LS_TENSOR_ROWS, width + gate, m->hidden, 1);
  if (has_bias)
    ls_operator_bias (op, cut, (LsBias) { "qkv-bias-grad", LS_RECIPE_QKV }, cut->tokens, width);
  if (has_bias && is_unfused && !is_listed)
    ls_operator_passes (op, cut, cut->tokens, width, "qkv-bias", 2, NULL, 0);
  op->kept.saved_bytes
      += (uint64_t) (ls_scaled_attention_kept (cut) * (double) (cut->tokens * width)); /* Q, K, V */
  ls_operator_product (op, cut->q_width + gate);
  if (keys > 0)
    ls_operator_product (op, keys);
  if (values > 0)
    ls_operator_product (op, values);
  ls_operator_as_launched (op, cut, LS_RECIPE_QKV, cut->tokens, cut->ffn);
}

/* Of Q, K and V; of gate and up. */
static void
append_column_adapters (GArray *operators, const LsCut *cut, const LsLoraModule modules[3],
                        const uint64_t out[3])
{
  LsAdapted what = { .in = cut->model->hidden, .cuts_out = true };
  for (uint32_t i = 0; i < 3; i++)
    if (cut->shard->lora.rank > 0 && cut->shard->lora.modules & modules[i])
      what.out[what.n++] = out[i];
  ls_operators_adapter (operators, cut, &what);
}

static void
append_row_adapter (GArray *operators, const LsCut *cut, LsLoraModule module, uint64_t in)
{
  ls_operators_adapter_of (operators, cut, module,
                           (LsAdapted) { .cuts_in = true, .in = in, .out = { cut->model->hidden } });
}

void
ls_operators_proj (GArray *operators, const LsCut *cut)
{
  LsOperator *op
      = ls_operators_linear (operators, cut, &proj_names, LS_TP_ROW, cut->context_width, cut->model->hidden);
  ls_operator_product (op, cut->model->hidden);
  ls_operator_as_launched (op, cut, LS_RECIPE_PROJ, cut->tokens, cut->ffn);
}

/* out = residual + dropout (x + bias), one JIT-fused kernel, or x + bias in one of PyTorch's before it.
 * Without dropout its gradient is the identity. */
static void
append_bias_dropout_add (GArray *operators, const LsCut *cut, const char *name, LsRecipeOperator which)
{
  const LsModel *m = cut->model;
  uint64_t rows = cut->local_tokens, h = m->hidden;
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  op->role = LS_OPERATOR_RESIDUAL;
  uint32_t kind = cut->kind;
  bool is_own = which == LS_RECIPE_MLP_ADD ? kind & LS_LAYER_EXPERTS /* whose biases are theirs */
                                           : !ls_layer_has_attention (kind),
       is_biased = m->linear_bias && !is_own, is_apart = is_biased && cut->shard->bias_is_apart,
       has_bias = is_biased && !is_apart;

  if (is_apart) {
    LsKernel bias = ls_cut_stream (cut, "output-bias", LS_KERNEL_ELEMENTWISE, rows, h, 2 * cut->elt);
    bias.access = LS_ACCESS_BCAST16;
    ls_operator_fwd (op, bias);
  }
  if (m->dropout) {
    ls_operator_fwd (
        op,
        ls_cut_random_stream (cut, has_bias ? "bias-dropout-add" : "dropout-add", rows, h, 3 * cut->elt + 1));
    ls_operator_igrad (
        op, ls_cut_stream (cut, "bias-dropout-add-bwd", LS_KERNEL_ELEMENTWISE, rows, h, 2 * cut->elt + 1));
    op->kept.saved_bytes = rows * h; /* a byte per element: the mask */
  } else {
    ls_operator_passes (op, cut, rows, h, has_bias ? "bias-add" : "residual-add", 3, NULL, 0);
    ls_operator_as_launched (op, cut, which, cut->local_tokens, cut->ffn);
    op->n_igrad = 0; /* its backward stands beside the norm that shares the input */
  }
  if (is_biased) {
    ls_operator_bias (op, cut, (LsBias) { "row-bias-grad", which }, rows, h);
    op->params.is_replicated = true;
  }
}

static void
append_fc1 (GArray *operators, const LsCut *cut, const LsMlpNames *names)
{
  const LsModel *m = cut->model;
  uint64_t width = ls_mlp_is_gated (m->mlp) ? 2 * cut->ffn : cut->ffn;
  LsOperator *op = ls_operator_append (operators, names->fc1, LS_TP_COLUMN);

  ls_operator_linear (op, cut, &fc1_names[names->is_shared], cut->shard->dtype, m->hidden, width);
  ls_operator_weight (op, LS_TENSOR_ROWS, width, m->hidden, 1);
  if (m->linear_bias)
    ls_operator_bias (op, cut, (LsBias) { "fc1-bias-grad", LS_RECIPE_FC1 }, cut->tokens, width);
  for (uint64_t columns = 0; columns < width; columns += cut->ffn)
    ls_operator_product (op, cut->ffn);
  ls_operator_as_launched (op, cut, LS_RECIPE_FC1, cut->tokens, cut->ffn);
}

/* What an activation reads and writes, in tensors of tokens x ffn / t. */
typedef struct {
  const char *fwd, *fwd_bias, *bwd;
  uint32_t n_inputs; /* with a gate: that and up */
} Activation;

static const Activation activations[] = {
  [LS_MLP_GELU] = { "gelu", "bias-gelu", "gelu-bwd", 1 },
  [LS_MLP_RELU2] = { "squared-relu", "bias-squared-relu", "squared-relu-bwd", 1 },
  [LS_MLP_SWIGLU] = { "swiglu", "bias-swiglu", "swiglu-bwd", 2 },
  [LS_MLP_GEGLU] = { "geglu", "bias-geglu", "geglu-bwd", 2 },
  [LS_MLP_QUICK_GEGLU] = { "quick-geglu", "bias-quick-geglu", "quick-geglu-bwd", 2 },
};

/* Megatron-LM of the unfused path has TorchScript fuse bias and GELU, in the approximation with tanh. What
 * that makes does not keep up with memory: 2^25 elements took 133.2 us forward on an A100-40GB
 * (csarofeen/pytorch, issue 888, 2021, the fuser that was the default then; 2^27 take 0.5 ms in
 * EleutherAI/cookbook, benchmarks/sizing/sample_results/ transformer.out, whose GPU is not named). Less 2 us
 * a launch, at 1357 GB/s and overlapping as for apex's norms (operators_build.c),
 *
 *     3.91^p = 2.95^p + a^p    in ps per element
 *
 * leaves a = 2.15 ps, or 42 FLOPs at 19.5 TFLOP/s. No time of that fuser's backward is printed. Of nvFuser's
 * there are both, 243.1 and 262.7 us, in which the backward computes for 0.93 of the time of the forward. */
#define JIT_GELU_FWD_FLOPS 42.0
#define JIT_GELU_BWD_FLOPS 39.0

static LsKernel
activation_stream (const LsCut *cut, const char *name, uint64_t rows, uint64_t cols, uint32_t n_tensors,
                   double jit_flops)
{
  LsKernel kernel = ls_cut_stream (cut, name, LS_KERNEL_ELEMENTWISE, rows, cols, n_tensors * cut->elt);
  const LsModel *m = cut->model;
  if (m->mlp == LS_MLP_GELU && m->linear_bias && cut->shard->attention == LS_ATTENTION_UNFUSED)
    kernel.flops = jit_flops * (double) rows * (double) cols;
  return kernel;
}

void
ls_operator_activation (LsOperator *op, const LsCut *cut, LsRecipeOperator which, uint64_t rows,
                        uint64_t cols)
{
  const Activation *a = &activations[cut->model->mlp];
  bool adds_bias = cut->model->linear_bias && which == LS_RECIPE_ACTIVATION; /* experts' is in products */
  const char *fwd = adds_bias ? a->fwd_bias : a->fwd;

  ls_operator_fwd (op, activation_stream (cut, fwd, rows, cols, a->n_inputs + 1, JIT_GELU_FWD_FLOPS));
  ls_operator_igrad (op,
                     activation_stream (cut, a->bwd, rows, cols, 2 * a->n_inputs + 1, JIT_GELU_BWD_FLOPS));
  op->kept.saved_bytes = rows * cols * a->n_inputs * (cut->shard->fp8.act_store ? 1 : cut->elt);
  op->kept.is_activation = true;
  ls_operator_as_launched (op, cut, which, rows, cols);
}

static void
append_fc2 (GArray *operators, const LsCut *cut, const LsMlpNames *names)
{
  LsOperator *op = ls_operator_append (operators, names->fc2, LS_TP_ROW);

  ls_operator_linear (op, cut, &fc2_names[names->is_shared], cut->shard->dtype, cut->ffn, cut->model->hidden);
  ls_operator_weight (op, LS_TENSOR_COLUMNS, cut->model->hidden, cut->ffn, 1);
  ls_operator_product (op, cut->model->hidden);
  ls_operator_as_launched (op, cut, LS_RECIPE_FC2, cut->tokens, cut->ffn);
}

void
ls_operators_mlp (GArray *operators, const LsCut *cut, const LsMlpNames *names)
{
  append_fc1 (operators, cut, names);
  append_column_adapters (operators, cut, (LsLoraModule[]) { LS_LORA_GATE, LS_LORA_UP, 0 },
                          (uint64_t[]) { cut->ffn, cut->ffn, 0 });
  ls_operators_low_rank (operators, cut,
                         &(LsLowRank) { cut->model->hidden,
                                        names->adapter_rank,
                                        1,
                                        { cut->ffn * (ls_mlp_is_gated (cut->model->mlp) ? 2 : 1) } });
  ls_operator_activation (ls_operator_append (operators, names->act, LS_TP_NONE), cut, LS_RECIPE_ACTIVATION,
                          cut->tokens, cut->ffn);
  append_fc2 (operators, cut, names);
  append_row_adapter (operators, cut, LS_LORA_DOWN, cut->ffn);
}

/* A gate of a product of its own has an adapter of its own; else it is one with the queries. */
static void
append_qkv_adapters (GArray *operators, const LsCut *cut)
{
  bool is_own = cut->model->attn.gate_own;
  uint64_t gate = cut->model->attn.gate ? cut->context_width : 0;
  append_column_adapters (operators, cut, (LsLoraModule[]) { LS_LORA_Q, LS_LORA_K, LS_LORA_V },
                          (uint64_t[]) { cut->q_width + (is_own ? 0 : gate), cut->k_width, cut->v_width });
  if (is_own)
    ls_operators_adapter_of (
        operators, cut, LS_LORA_Q,
        (LsAdapted) { .cuts_out = true, .is_input_kept = true, .in = cut->model->hidden, .out = { gate } });
}

static void
append_attention (GArray *operators, const LsCut *cut)
{
  (cut->model->latent.q_lora > 0 ? ls_operators_latent_qkv : ls_operators_qkv) (operators, cut);
  append_qkv_adapters (operators, cut);
  if (cut->model->attn.qk_norm)
    ls_operators_qk_norm (operators, cut);
  ls_operators_kv_conv (operators, cut);
  ls_operators_qk_conv (operators, cut);
  ls_operators_shared_keys (operators, cut);
  const LsModel *m = cut->model;
  uint32_t block = MAX (1, m->index.block);
  if (m->index.heads > 0) /* of blocks, by heads of its own */
    ls_operators_indexer (operators, cut,
                          &(LsIndexer) { .columns = m->index.dim,
                                         .norm = m->index.dim,
                                         .ratio = 1,
                                         .chosen = m->index.heads * (m->attn.window / block),
                                         .scores = (double) m->index.heads / block });
  ls_operators_attention (operators, cut);
  if (cut->kind & LS_LAYER_MERGED)
    ls_operators_cross_attention (operators, cut);
  if (cut->model->attn.gate)
    ls_operator_gate (operators, cut, cut->context_width);
  ls_operators_proj (operators, cut);
  append_row_adapter (operators, cut, LS_LORA_O, cut->context_width);
}

LsDtype
ls_layer_dtype (const LsModel *m, const LsShard *s, uint32_t layer)
{
  bool is_at_end = layer < s->fp8.bf16_first || layer + s->fp8.bf16_last >= m->n_layers,
       is_of_block = layer >= m->n_layers; /* of multi-token prediction */
  return is_at_end && !is_of_block ? ls_dtype_between (s->dtype) : s->dtype;
}

/* A part of a layer: attention, what stands for the MLP, attention to an encoder's tokens. */
typedef struct {
  LsNormPlace before, after;
  const char *branch, *sum, *streams;
} Half;

static const Half halves[] = {
  { { "input-norm", LS_RECIPE_INPUT_NORM, LS_RECIPE_ATTENTION_ADD, true },
    { "attention-post-norm", LS_RECIPE_INPUT_NORM, LS_RECIPE_ATTENTION_ADD, false },
    "attention-input",
    "attention-add",
    "attention-streams" },
  { { "mlp-norm", LS_RECIPE_MLP_NORM, LS_RECIPE_MLP_ADD, true },
    { "mlp-post-norm", LS_RECIPE_MLP_NORM, LS_RECIPE_MLP_ADD, false },
    "mlp-input",
    "mlp-add",
    "mlp-streams" },
  { { "cross-norm", LS_RECIPE_INPUT_NORM, LS_RECIPE_ATTENTION_ADD, true },
    { "cross-post-norm", LS_RECIPE_INPUT_NORM, LS_RECIPE_ATTENTION_ADD, false },
    "cross-input",
    "cross-add",
    "cross-streams" },
};

static void
begin_half (GArray *operators, const LsCut *cut, const Half *half)
{
  LsNormPlaces norms = cut->model->norms;
  LsNormPlace before = half->before;
  if (ls_streams_mix (cut->model)) {
    ls_operators_streams_in (operators, cut, half->streams);
    before.in_residual = false;
  }
  /* Where no norm stands at the beginning, the gradient of the residual meets that of attention or the MLP in
   * a sum of its own. */
  if (norms == LS_NORMS_POST || (norms == LS_NORMS_SHARED && half != &halves[0]))
    ls_operator_passes (ls_operator_append (operators, half->branch, LS_TP_NONE), cut, cut->local_tokens,
                        cut->model->hidden, NULL, 0, "residual-grad-add", 3);
  else
    ls_operators_norm (operators, cut, &before, ls_scaled_norm_out_bytes (cut->shard));
}

static void
end_half (GArray *operators, const LsCut *cut, const Half *half)
{
  LsNormPlaces norms = cut->model->norms;
  if (norms == LS_NORMS_POST || norms == LS_NORMS_BOTH)
    ls_operators_norm (operators, cut, &half->after, cut->elt);
  if (ls_streams_mix (cut->model)) {
    ls_operators_streams_out (operators, cut, half->sum);
    return;
  }
  ls_operators_residual_scale (operators, cut);
  append_bias_dropout_add (operators, cut, half->sum, half->before.sum);
}

/* The output of a norm is kept once: by what computes Q, K and V. */
static void
share_input (GArray *operators, guint from)
{
  LsOperator *first = &g_array_index (operators, LsOperator, from);
  first->kept.saved_bytes -= first->kept.input_bytes;
  first->kept.input_bytes = 0;
}

static void
append_mlp (GArray *operators, const LsCut *cut)
{
  static const LsMlpNames names = { "fc1", "mlp-act", "fc2" };
  guint from = operators->len;
  if (cut->kind & LS_LAYER_EXPERTS) {
    ls_operators_experts (operators, cut);
    return;
  }
  ls_operators_mlp (operators, cut, &names);
  ls_operators_sparse_gate (operators, cut);
  for (guint i = from; i < operators->len; i++)
    g_array_index (operators, LsOperator, i).part = LS_MLP_PART_DENSE;
  if (cut->model->norms == LS_NORMS_SHARED)
    share_input (operators, from);
}

static void
append_mixing (GArray *operators, const LsCut *cut)
{
  guint from = operators->len;
  if (ls_layer_has_attention (cut->kind) && !(cut->kind & LS_LAYER_BLOCK))
    (ls_model_is_compressed (cut->model)         ? ls_operators_compressed_attention
         : cut->model->latent.kv_lora > 0        ? ls_operators_latent_attention
         : cut->model->moe.attention_experts > 0 ? ls_operators_attention_experts
                                                 : append_attention) (operators, cut);
  if (!(cut->kind & LS_LAYER_MIXER))
    return;
  bool is_beside = operators->len > from;
  from = operators->len;
  ls_operators_mixer (operators, cut);
  if (!is_beside)
    return;
  share_input (operators, from);
  ls_operators_passes (operators, cut, cut->local_tokens, cut->model->hidden, "side-sum", 3, "side-grad-add",
                       3, 0);
}

static void
append_halves (GArray *operators, const LsCut *cut)
{
  bool alternates = ls_streams_alternate (cut->model);
  if (alternates)
    ls_operators_streams_predict (operators, cut);
  if (cut->kind & LS_LAYER_BLOCK)
    ls_operators_block (operators, cut);
  if (!(cut->kind & LS_LAYER_NO_MIXING)) {
    begin_half (operators, cut, &halves[0]);
    ls_operators_norm_gate (operators, cut);
    append_mixing (operators, cut);
    end_half (operators, cut, &halves[0]);
    ls_operators_laurel (operators, cut);
  }
  if (cut->kind & LS_LAYER_CROSS && !(cut->kind & LS_LAYER_MERGED)) {
    begin_half (operators, cut, &halves[2]);
    ls_operators_cross_attention (operators, cut);
    end_half (operators, cut, &halves[2]);
  }
  if (!(cut->kind & LS_LAYER_NO_MLP)) {
    begin_half (operators, cut, &halves[1]);
    if (cut->kind & LS_LAYER_EXPERTS)
      ls_operators_norm_gate (operators, cut);
    ls_operators_mlp_shift (operators, cut);
    append_mlp (operators, cut);
    end_half (operators, cut, &halves[1]);
  }
  if (alternates)
    ls_operators_streams_correct (operators, cut);
  ls_operators_layer_input (operators, cut);
}

void
ls_operators_of_kind (const LsModel *m, const LsShard *all, uint32_t kind, GArray *operators)
{
  LsShard own = *all;
  guint from = operators->len;
  own.seq = kind & LS_LAYER_CROSS ? ls_model_decoder_seq (m, all->seq) : all->seq;
  LsModel model = ls_model_of_kind (m, kind);
  LsCut cut;
  ls_cut_init (&cut, &model, &own);
  cut.kind = kind;
  cut.encoder = all;

  append_halves (operators, &cut);
  for (guint i = from; i < operators->len && own.seq != all->seq; i++) {
    LsOperator *op = &g_array_index (operators, LsOperator, i);
    if (op->tp != LS_TP_NONE && op->tp != LS_TP_REDUCE && op->comm.tp_bytes == 0)
      op->comm.tp_bytes = cut.tokens * cut.model->hidden * cut.elt; /* of another length than most */
  }
  ls_operators_mark_unaligned (operators, from, &cut);
  ls_operators_freeze (operators, from, &cut);
  if (kind & LS_LAYER_AGAIN && !(kind & LS_LAYER_BLOCK))
    ls_operators_leave_params (operators, from);
}

void
ls_operators_layer (const LsModel *m, const LsShard *all, uint32_t layer, GArray *operators)
{
  LsShard own = *all;
  own.dtype = ls_layer_dtype (m, all, layer);
  ls_operators_of_kind (m, &own, ls_model_layer_kind (m, layer), operators);
}
