/* A mixer on one rank (model/mixer.h): column-parallel into it, heads over ranks, row-parallel out of it, as
 * Megatron-Core has it (core/ssm/mamba_mixer.py). */
#include "model/mixer.h"
#include "model/operators_build.h"

static const LsLinearNames in_names = { "mixer-in", "mixer-in-dgrad", "mixer-in-wgrad", LS_MODULE_MIXER_IN };
static const LsLinearNames select_names = { "mixer-select", "mixer-select-dgrad", "mixer-select-wgrad" };
static const LsLinearNames step_names = { "mixer-step", "mixer-step-dgrad", "mixer-step-wgrad" };
static const LsLinearNames out_names
    = { "mixer-out", "mixer-out-dgrad", "mixer-out-wgrad", LS_MODULE_MIXER_OUT };

static const LsLinearNames down_names
    = { "mixer-gates-down", "mixer-gates-down-dgrad", "mixer-gates-down-wgrad" };
static const LsLinearNames up_names = { "mixer-gates-up", "mixer-gates-up-dgrad", "mixer-gates-up-wgrad" };

#define FP32_BYTES 4
#define N_LOW_RANK 4 /* products of rwkv7 */

static uint64_t
per_rank (const LsCut *cut, uint64_t columns)
{
  return columns / cut->shard->tp;
}

static uint32_t
cp_of (const LsCut *cut)
{
  return MAX (1, cut->shard->cp);
}

/* Columns of groups that are on several ranks of cp. */
static uint64_t
repeated (const LsCut *cut)
{
  uint64_t columns[LS_MIXER_MAX_EXCHANGES], all = 0;
  if (cp_of (cut) > 1)
    for (uint32_t i = ls_mixer_exchanges (cut->model, cut->shard->tp, cp_of (cut), columns); i-- > 0;)
      all += columns[i];
  return all > 0 ? all - per_rank (cut, ls_mixer_in_width (cut->model)) : 0;
}

static void
linear_weight (LsOperator *op, LsTensorCut cut, uint64_t rows, uint64_t columns, uint64_t n)
{
  ls_operator_weight (op, cut, rows, columns, n);
  op->params.is_linear = true;
}

/* Of the norm's output, which the adapters of attention beside it may keep. */
static void
append_in_adapters (GArray *operators, const LsCut *cut)
{
  const LsLora *lora = &cut->shard->lora;
  LsLoraProduct products[LS_LORA_MAX_PRODUCTS];
  uint32_t n = lora->rank > 0 ? ls_lora_products_in (cut->model, products) : 0,
           of_attention = LS_LORA_Q | LS_LORA_K | (cut->model->latent.kv_lora > 0 ? 0 : LS_LORA_V);
  LsAdapted what = { .in = cut->model->hidden,
                     .cuts_out = true,
                     .is_input_kept = cut->kind & LS_LAYER_BOTH && lora->modules & of_attention };
  for (uint32_t i = 0; i < n; i++) {
    if (lora->modules & products[i].module)
      what.out[what.n++] = per_rank (cut, products[i].columns);
    if (what.n < LS_OPERATOR_MAX_PRODUCTS && i + 1 < n)
      continue;
    ls_operators_adapter (operators, cut, &what);
    what.is_input_kept |= what.n > 0;
    what.n = 0;
  }
}

/* Of kda and linear: beside both products of each pair; what is `in` keeps their input. */
static void
append_low_rank_adapters (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t rank = ls_mixer_pair_rank (m), wide = per_rank (cut, ls_mixer_pair_width (m));
  bool has_any = cut->shard->lora.rank > 0 && cut->shard->lora.modules & LS_LORA_IN;
  uint32_t n = has_any ? ls_mixer_n_low_rank (m) : 0;
  ls_operators_adapter (
      operators, cut, &(LsAdapted) { .in = m->hidden, .is_input_kept = true, .n = n, .out = { rank, rank } });
  for (uint32_t i = 0; i < n; i++)
    ls_operators_adapter (operators, cut,
                          &(LsAdapted) { .in = rank, .cuts_out = true, .n = 1, .out = { wide } });
}

static void
append_in (GArray *operators, const LsCut *cut)
{
  uint64_t width = per_rank (cut, ls_mixer_in_width (cut->model));
  LsOperator *op = ls_operator_append (operators, "mixer-in", LS_TP_COLUMN);
  ls_operator_linear (op, cut, &in_names, cut->shard->dtype, cut->model->hidden, width);
  linear_weight (op, LS_TENSOR_ROWS, width, cut->model->hidden, 1);
  if (ls_mixer_in_biases (cut->model) > 0)
    ls_operator_bias (op, cut, (LsBias) { "mixer-in-bias-grad", LS_RECIPE_RESIDUAL }, cut->tokens, width);
  op->kept.saved_bytes += cut->tokens * width * cut->elt;
}

/* Of rwkv7: decays, learning rates, gates and how values mix, all in one kernel of as many FLOPs each
 * way. Their inputs are kept by the shift. */
static void
append_low_rank_of_rwkv (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t rank = m->mixer.rank, inner = ls_mixer_inner (m);
  LsOperator *op = ls_operator_append (operators, down_names.fwd, LS_TP_NONE);
  ls_operator_linear (op, cut, &down_names, cut->shard->dtype, m->hidden, rank);
  ls_operator_weight (op, LS_TENSOR_WHOLE, rank, m->hidden, 1);
  op->kept.saved_bytes = op->kept.input_bytes = 0;
  op = ls_operator_append (operators, up_names.fwd, LS_TP_NONE);
  ls_operator_linear (op, cut, &up_names, cut->shard->dtype, rank, inner);
  ls_operator_weight (op, LS_TENSOR_WHOLE, inner, rank, 1);
  op->kept.saved_bytes += N_LOW_RANK * cut->tokens * inner * cut->elt;
}

static void
append_passes (GArray *operators, const LsCut *cut, const char *name, const char *back, uint64_t width,
               uint32_t n_fwd, uint32_t n_back, uint32_t n_kept)
{
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  ls_operator_fwd (op,
                   ls_cut_stream (cut, name, LS_KERNEL_ELEMENTWISE, cut->tokens, width, n_fwd * cut->elt));
  ls_operator_igrad (op,
                     ls_cut_stream (cut, back, LS_KERNEL_ELEMENTWISE, cut->tokens, width, n_back * cut->elt));
  op->kept.saved_bytes = n_kept * cut->tokens * width * cut->elt;
}

/* Of rwkv7: each token mixed with the one before, six times; one of what is made is the way in's to keep. */
static void
append_shift (GArray *operators, const LsCut *cut)
{
  if (cut->model->mixer.kind == LS_MIXER_RWKV7)
    append_passes (operators, cut, "token-shift", "token-shift-bwd", cut->model->hidden, 7, 8, 6);
}

void
ls_operators_mlp_shift (GArray *operators, const LsCut *cut)
{
  if (!(cut->kind & LS_LAYER_MIXER) || ls_mixer_mlp_params (cut->model) == 0)
    return;
  append_passes (operators, cut, "mlp-shift", "mlp-shift-bwd", cut->model->hidden, 2, 3, 1);
  ls_operator_param (&g_array_index (operators, LsOperator, operators->len - 1),
                     ls_mixer_mlp_params (cut->model));
}

/* Of kda: decays, and a gate if that is of low rank; of linear: decays. The narrow products are on every rank
 * of tp, for its tokens; the wide ones, all in one kernel of as many FLOPs, gather what these make. */
static void
append_low_rank (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t n = ls_mixer_n_low_rank (m), rank = ls_mixer_pair_rank (m),
           wide = n * per_rank (cut, ls_mixer_pair_width (m));
  if (m->mixer.kind == LS_MIXER_RWKV7)
    append_low_rank_of_rwkv (operators, cut);
  if (n == 0)
    return;
  LsCut local = *cut;
  local.tokens = cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, down_names.fwd, LS_TP_NONE);
  ls_operator_linear (op, &local, &down_names, cut->shard->dtype, m->hidden, n * rank);
  ls_operator_igrad (op,
                     ls_cut_stream (cut, "gates-grad-add", LS_KERNEL_ELEMENTWISE, cut->local_tokens,
                                    m->hidden, 3 * cut->elt));
  linear_weight (op, LS_TENSOR_WHOLE, rank, m->hidden, n);
  op->params.is_replicated = true;
  op->kept.saved_bytes = op->kept.input_bytes = 0; /* kept by the way in */
  op = ls_operator_append (operators, up_names.fwd, LS_TP_COLUMN);
  ls_operator_linear (op, cut, &up_names, cut->shard->dtype, rank, wide);
  linear_weight (op, LS_TENSOR_ROWS, wide / n, rank, n);
  op->comm.tp_bytes = cut->tokens * n * rank * cut->elt;
  op->kept.saved_bytes = op->kept.input_bytes = n * op->kept.input_bytes;
  op->kept.saved_bytes += cut->tokens * wide * cut->elt;
  append_low_rank_adapters (operators, cut);
}

/* All that is learned but the ways in and out. */
static uint64_t
inner_params (const LsModel *m)
{
  return ls_mixer_other_params (m) - ls_mixer_in_biases (m) - ls_mixer_out_biases (m);
}

static bool
is_mamba2 (const LsCut *cut)
{
  return cut->model->mixer.kind == LS_MIXER_MAMBA2;
}

static uint64_t
conv_width (const LsCut *cut)
{
  return per_rank (cut, ls_mixer_conv_width (cut->model)) + repeated (cut);
}

/* The kernels of a software's list, if it names such an operator. */
static void
as_listed (LsOperator *op, const LsCut *cut, LsRecipeOperator which)
{
  const LsModel *m = cut->model;
  uint64_t inner = per_rank (cut, ls_mixer_inner (m)), keys = (MAX (inner, conv_width (cut)) - inner) / 2;
  ls_operator_mixer_as_launched (
      op, cut, which,
      (LsSizes) { .at
                  = { [LS_SIZE_Q] = (double) inner,
                      [LS_SIZE_K] = (double) keys,
                      [LS_SIZE_A] = (double) inner / m->mixer.head_dim,
                      [LS_SIZE_D] = m->mixer.head_dim,
                      [LS_SIZE_STATES] = m->mixer.state,
                      [LS_SIZE_KEY_GROUPS] = m->mixer.state > 0 ? (double) keys / m->mixer.state : 0,
                      [LS_SIZE_CHUNK] = MIN (m->mixer.chunk, cut->shard->seq),
                      [LS_SIZE_CHUNKS] = (double) ls_mixer_n_chunks (m, cut->shard->seq) / cp_of (cut) } });
}

/* Causal, of each column by itself: fused with its activation. Of mamba2 it is made again, from what the way
 * in keeps. */
static void
append_conv (GArray *operators, const LsCut *cut)
{
  uint64_t width = conv_width (cut);
  if (width == 0)
    return;
  LsOperator *op = ls_operator_append (operators, "mixer-conv", LS_TP_NONE);
  ls_operator_fwd (op, ls_cut_pass (cut, "mixer-conv", width, 2));
  ls_operator_igrad (op, ls_cut_pass (cut, "mixer-conv-bwd", width, 3));
  ls_operator_param (op, per_rank (cut, inner_params (cut->model)));
  op->kept.saved_bytes = is_mamba2 (cut) ? 0 : cut->tokens * width * cut->elt;
  as_listed (op, cut, LS_RECIPE_MIXER_CONV);
}

/* Step sizes and keys of the inner activations, summed over ranks in Jamba as in Megatron-Core's
 * row-parallel products. */
static void
append_selection (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t inner = per_rank (cut, ls_mixer_inner (m)), width = ls_mixer_select_width (m),
           steps = per_rank (cut, ls_mixer_n_steps (m));
  LsOperator *op = ls_operator_append (operators, "mixer-select", LS_TP_REDUCE);
  ls_operator_linear (op, cut, &select_names, cut->shard->dtype, inner, width);
  linear_weight (op, LS_TENSOR_COLUMNS, width, inner, 1);
  op->kept.saved_bytes = op->kept.input_bytes = 0; /* the convolution's output, kept already */
  op->comm.reduce_bytes = cut->tokens * width * cut->elt;
  ls_operators_adapter_of (
      operators, cut, LS_LORA_SELECT,
      (LsAdapted) {
          .cuts_in = true, .is_inside = true, .is_input_kept = true, .in = inner, .out = { width } });
  op = ls_operator_append (operators, "mixer-step", LS_TP_NONE);
  ls_operator_linear (op, cut, &step_names, cut->shard->dtype, m->mixer.rank, steps);
  linear_weight (op, LS_TENSOR_ROWS, steps, m->mixer.rank, 1);
  ls_operators_adapter_of (
      operators, cut, LS_LORA_STEP,
      (LsAdapted) { .cuts_out = true, .is_inside = true, .in = m->mixer.rank, .out = { steps } });
}

/* Reads x, z, the step sizes and B and C, writes y; 9 operations a state each way forwards, 2.5 times that
 * backwards, where the states are had again. */
static void
append_scan (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t inner = per_rank (cut, ls_mixer_inner (m));
  double tokens = (double) cut->tokens,
         bytes = tokens * cut->elt * (4.0 * (double) inner + 2 * m->mixer.state);
  double work = 9 * tokens * (double) inner * m->mixer.state;
  LsOperator *op = ls_operator_append (operators, "mixer-scan", LS_TP_NONE);
  ls_operator_fwd (
      op,
      ls_kernel_stream ("selective-scan", LS_KERNEL_ELEMENTWISE, cut->act, cut->tokens, inner, bytes, work));
  ls_operator_igrad (op,
                     ls_kernel_stream ("selective-scan-bwd", LS_KERNEL_ELEMENTWISE, cut->act, cut->tokens,
                                       inner, 2 * bytes, 2.5 * work));
  op->kept.saved_bytes = cut->tokens * inner * cut->elt;
}

/* What it gives times an activation of the other columns. */
static void
append_branch_gate (GArray *operators, const LsCut *cut)
{
  uint64_t inner = per_rank (cut, ls_mixer_inner (cut->model));
  LsOperator *op = ls_operator_append (operators, "mixer-gate", LS_TP_NONE);
  ls_operator_fwd (
      op, ls_cut_stream (cut, "branch-gate", LS_KERNEL_ELEMENTWISE, cut->tokens, inner, 3 * cut->elt));
  ls_operator_igrad (
      op, ls_cut_stream (cut, "branch-gate-bwd", LS_KERNEL_ELEMENTWISE, cut->tokens, inner, 5 * cut->elt));
}

/* Triton's kernel for a product of all chunks, which wait for each other in `n_serial` passes over them. */
static LsKernel
chunk_kernel (const LsCut *cut, LsKernel kernel, uint64_t n_serial)
{
  kernel.kind = kernel.flops > 0 ? LS_KERNEL_BATCHED_GEMM : LS_KERNEL_ELEMENTWISE;
  kernel.access = LS_ACCESS_TRITON_DOT;
  kernel.n_serial = (uint32_t) MIN (n_serial * ls_mixer_n_chunks (cut->model, cut->shard->seq), G_MAXINT32);
  return kernel;
}

/* What is made again counts as no work of the model: multiply-adds as elements, no FLOPs. */
static LsKernel
again_kernel (const LsCut *cut, const LsMixerProduct *p, const LsKernel *forward)
{
  LsKernel again = ls_kernel_stream (p->again_name, LS_KERNEL_ELEMENTWISE, cut->act, p->m * p->n * p->k,
                                     forward->batch * p->n_again, p->n_again * forward->bytes, 0);
  return chunk_kernel (cut, again, p->n_serial > 0 ? 1 : 0);
}

static LsKernel
state_pass (const LsCut *cut, const char *name, uint64_t chunks, uint64_t columns)
{
  double bytes = 2.0 * (double) chunks * (double) columns * FP32_BYTES;
  return ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, LS_DTYPE_FP32, chunks, columns, bytes, 0);
}

/* Products of chunks, each with two gradients in one kernel and what these need again, and the states between
 * chunks. */
static void
append_chunks (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  LsMixerProduct products[LS_MIXER_MAX_PRODUCTS];
  uint32_t seq = cut->shard->seq, cp = cp_of (cut);
  uint32_t n = ls_mixer_products (m, cut->shard->tp * cp, seq, products);
  uint64_t chunks = ls_mixer_n_chunks (m, seq) * cut->shard->micro_batch;
  uint64_t inner = per_rank (cut, ls_mixer_inner (m)), own = inner / cp;
  LsOperator *op = ls_operator_append (operators, "mixer-chunks", LS_TP_NONE);
  if (is_mamba2 (cut)) {
    ls_operator_igrad (op, ls_cut_pass (cut, "mixer-conv-again", conv_width (cut), 2));
    ls_operator_igrad (op, state_pass (cut, "state-passing-again", chunks, own * m->mixer.state));
  }
  for (uint32_t i = 0; i < n; i++) {
    const LsMixerProduct *p = &products[i];
    LsKernel forward
        = ls_kernel_gemm (p->name, cut->act, p->m, p->n, p->k, p->batch * chunks, cut->elt, false);
    ls_operator_fwd (op, chunk_kernel (cut, forward, p->n_serial > 0 ? 1 : 0));
    if (p->n_again > 0)
      ls_operator_igrad (op, again_kernel (cut, p, &forward));
    LsKernel gradients
        = ls_kernel_gemm (p->grad_name, cut->act, p->m, p->k, p->n, 2 * p->batch * chunks, cut->elt, false);
    ls_operator_igrad (op, chunk_kernel (cut, gradients, p->n_serial > 0 ? p->n_serial - 1 : 0));
  }
  ls_operator_fwd (op, state_pass (cut, "state-passing", chunks, own * m->mixer.state));
  ls_operator_igrad (op, state_pass (cut, "state-passing-bwd", chunks, own * m->mixer.state));
  op->kept.saved_bytes
      = (is_mamba2 (cut) ? 0 : chunks * own * m->mixer.state * FP32_BYTES) + cut->tokens * inner * cut->elt;
  as_listed (op, cut, LS_RECIPE_MIXER_CHUNKS);
}

/* y times a gate, if it has one, normed, in one kernel. */
static void
append_gate (GArray *operators, const LsCut *cut)
{
  uint64_t inner = per_rank (cut, ls_mixer_inner (cut->model));
  if (cut->model->mixer.kind == LS_MIXER_RWKV7) {
    append_passes (operators, cut, "mixer-gate", "mixer-gate-bwd", inner, 6, 12, 0);
    ls_operator_param (&g_array_index (operators, LsOperator, operators->len - 1), inner_params (cut->model));
    return;
  }
  LsOperator *op = ls_operator_append (operators, "mixer-gate", LS_TP_NONE);
  bool has_gate = !cut->model->mixer.ungated;
  ls_operator_fwd (op,
                   ls_cut_stream (cut, has_gate ? "gated-norm" : "head-norm", LS_KERNEL_NORM, cut->tokens,
                                  inner, (has_gate ? 3 : 2) * cut->elt));
  ls_operator_igrad (op,
                     ls_cut_stream (cut, has_gate ? "gated-norm-bwd" : "head-norm-bwd", LS_KERNEL_NORM,
                                    cut->tokens, inner, (has_gate ? 5 : 3) * cut->elt));
  if (ls_mixer_conv_width (cut->model) == 0)
    ls_operator_param (op, per_rank (cut, inner_params (cut->model)));
  as_listed (op, cut, LS_RECIPE_MIXER_GATE);
}

/* Copies that go with an exchange: of tokens what goes to one rank put together; of heads what came apart put
 * together, and tokens in their order. Backward they are undone. */
static void
append_copies (LsOperator *op, const LsCut *cut, bool is_to_heads, uint64_t bytes)
{
  const LsShard *s = cut->shard;
  bool is_apart = op->comm.cp.n > 1, has_order = s->cp_kind != LS_CP_ULYSSES && s->cp_balance;
  const char *const names[]
      = { "mixer-pack", is_apart ? "mixer-join" : NULL, has_order ? "mixer-order" : NULL };
  for (guint i = 0, last = G_N_ELEMENTS (names) - 1; i <= last; i++) {
    const char *forward = names[is_to_heads ? i : last - i], *backward = names[is_to_heads ? last - i : i];
    if (forward)
      ls_operator_fwd (op, ls_context_copy (s, forward, bytes));
    if (backward)
      ls_operator_igrad (op, ls_context_copy (s, backward, bytes));
  }
}

/* From all heads of some tokens to all tokens of some heads, or back. */
static void
append_exchange (GArray *operators, const LsCut *cut, bool is_to_heads)
{
  uint64_t columns[LS_MIXER_MAX_EXCHANGES] = { per_rank (cut, ls_mixer_inner (cut->model)) }, bytes = 0;
  if (cp_of (cut) == 1)
    return;
  LsOperator *op
      = ls_operator_append (operators, is_to_heads ? "mixer-to-heads" : "mixer-to-tokens", LS_TP_NONE);
  uint32_t n = is_to_heads ? ls_mixer_exchanges (cut->model, cut->shard->tp, cp_of (cut), columns) : 1;
  op->comm.cp.n = (uint8_t) n;
  op->comm.cp.is_behind_first = is_to_heads;
  for (uint32_t i = 0; i < n; i++)
    bytes += op->comm.cp.bytes[i] = cut->tokens * columns[i] * cut->elt;
  append_copies (op, cut, is_to_heads, bytes);
  op->kept.saved_bytes = is_to_heads ? cut->tokens * repeated (cut) * cut->elt : 0;
}

/* All of it but the way out. */
static void
append_inner (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  append_shift (operators, cut);
  append_in (operators, cut);
  append_in_adapters (operators, cut);
  if (ls_mixer_gates_memory (m)) {
    ls_operators_memory_gate (operators, cut);
    return;
  }
  append_low_rank (operators, cut);
  if (m->mixer.kind == LS_MIXER_RWKV7)
    append_passes (operators, cut, "mixer-mix", "mixer-mix-bwd", ls_mixer_inner (m), 11, 17, 5);
  append_exchange (operators, cut, true);
  append_conv (operators, cut);
  if (ls_mixer_selects (m))
    append_selection (operators, cut);
  if (m->mixer.kind == LS_MIXER_MAMBA1) {
    append_scan (operators, cut);
    return;
  }
  if (m->mixer.kind == LS_MIXER_RGLRU) {
    ls_operators_recurrence (operators, cut);
  } else if (m->mixer.kind != LS_MIXER_CONV) {
    append_chunks (operators, cut);
  }
  append_exchange (operators, cut, false);
  if (m->mixer.kind == LS_MIXER_RGLRU || ls_mixer_selects (m))
    append_branch_gate (operators, cut);
  else
    append_gate (operators, cut);
}

/* Added by the product before it; its gradient is a sum over tokens of a rank. */
static void
append_out_bias (GArray *operators, const LsCut *cut)
{
  if (ls_mixer_out_biases (cut->model) == 0)
    return;
  LsOperator *op = ls_operator_append (operators, "mixer-out-bias", LS_TP_NONE);
  ls_operator_bias (op, cut, (LsBias) { "mixer-out-bias-grad", LS_RECIPE_RESIDUAL }, cut->local_tokens,
                    cut->model->hidden);
  op->params.is_replicated = true;
}

void
ls_operators_mixer (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t inner = per_rank (cut, ls_mixer_inner (m));
  if (m->mixer.kind != LS_MIXER_PRODUCT)
    append_inner (operators, cut);
  LsOperator *op = ls_operator_append (operators, "mixer-out", LS_TP_ROW);
  ls_operator_linear (op, cut, &out_names, cut->shard->dtype, inner, m->hidden);
  linear_weight (op, LS_TENSOR_COLUMNS, m->hidden, inner, 1);
  append_out_bias (operators, cut);
  ls_operators_adapter_of (operators, cut, ls_lora_way_out (m),
                           (LsAdapted) { .cuts_in = true, .in = inner, .out = { m->hidden } });
}
