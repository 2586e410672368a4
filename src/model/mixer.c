#include "model/mixer.h"

#include <stddef.h>

#include "model/operators_build.h"

uint64_t
ls_mixer_inner (const LsModel *m)
{
  return (uint64_t) m->mixer.heads * m->mixer.head_dim;
}

static const LsMixerRow *
row_of (const LsModel *m)
{
  return &ls_mixers[m->mixer.kind];
}

static uint64_t
keys (const LsModel *m)
{
  return (uint64_t) m->mixer.groups * m->mixer.state;
}

bool
ls_mixer_selects (const LsModel *m)
{
  return row_of (m)->selects && m->mixer.rank > 0;
}

static uint64_t
ls_mixer_select_width (const LsModel *m)
{
  return m->mixer.rank + 2 * (row_of (m)->steps_by_head ? keys (m) : m->mixer.state);
}

/* Of a model of one kind: it gates what a mixer before it made (model/difference.c), and the rest of what it
 * would be is not there. */
static bool
ls_mixer_gates_memory (const LsModel *m)
{
  return m->halves.kv_shared_layers > 0;
}

uint64_t
ls_mixer_in_width (const LsModel *m)
{
  const LsMixerRow *row = row_of (m);
  uint64_t inner = ls_mixer_inner (m), inners = row->in.inners + m->mixer.full_gate - m->mixer.ungated;
  if (ls_mixer_gates_memory (m))
    return inner;
  return inners * inner
      + (ls_mixer_selects (m)
             ? 0
             : row->in.keys * keys (m) + (row->in.heads - m->mixer.undecayed) * (uint64_t) m->mixer.heads);
}

uint64_t
ls_mixer_conv_width (const LsModel *m)
{
  const LsMixerRow *row = row_of (m);
  return row->convolved.inners * ls_mixer_inner (m)
      + (ls_mixer_selects (m) ? 0 : row->convolved.keys * keys (m));
}

LsMixerPairs
ls_mixer_pairs (const LsModel *m)
{
  return row_of (m)->pairs ? row_of (m)->pairs (m) : (LsMixerPairs) { 0 };
}

/* Of the way into it. */
static uint64_t
in_biases (const LsModel *m)
{
  return m->mixer.bias && !ls_mixer_gates_memory (m) ? ls_mixer_in_width (m) : 0;
}

static uint64_t
out_biases (const LsModel *m)
{
  return m->mixer.bias && !ls_mixer_gates_memory (m) ? m->hidden : 0;
}

/* Beside the ways into it and out of it. */
static uint64_t
inner_params (const LsModel *m)
{
  const LsMixerRow *row = row_of (m);
  uint64_t inner = ls_mixer_inner (m), taps = m->mixer.conv + (row->has_conv_bias && !m->mixer.plain_conv);
  if (ls_mixer_gates_memory (m))
    return 0;
  return ls_mixer_conv_width (m) * taps + (row->learned.inners + m->mixer.gate_bias) * inner
      + (m->mixer.undecayed ? 0 : row->learned.heads * (uint64_t) m->mixer.heads)
      + row->learned.hiddens * (uint64_t) m->hidden + row->learned.head_dims * (uint64_t) m->mixer.head_dim
      + (row->params ? row->params (m) : 0);
}

uint64_t
ls_mixer_other_params (const LsModel *m)
{
  return inner_params (m) + in_biases (m) + out_biases (m);
}

/* A chunk is no longer than seq. */
static uint64_t
ls_mixer_n_chunks (const LsModel *m, uint32_t seq)
{
  uint64_t q = MAX (1, MIN (m->mixer.chunk, seq));
  return (seq + q - 1) / q;
}

/* Sizes of products: tokens of a chunk, width of a head's values and of its keys. */
enum { Q, P, N };

/* Of the chunks of one head, or group: so many alike. */
struct LsMixerProduct {
  const char *name, *grad_name, *again_name; /* static */
  uint8_t m, n, k, alike;
  uint8_t n_again;  /* as many products backward beside its two gradients, as what it gave is made again */
  uint8_t n_serial; /* in how many of the kernels that it is in, forward and backward, chunks wait for the
                       one before                                                           */
  bool is_of_groups;
};

#define NAMED(name) name, name "-bwd", name "-again"

static const LsMixerProduct of_mamba2[] = {
  { NAMED ("ssd-scores"), Q, Q, N, 1, 1, 0, true },
  { NAMED ("ssd-output"), Q, P, Q, 1, 1, 0, false },
  { NAMED ("ssd-state"), P, N, Q, 1, 1, 0, false },
  { NAMED ("ssd-carried"), Q, P, N, 1, 0, 0, false },
};
static const LsMixerProduct of_linear[] = {
  { NAMED ("linear-scores"), Q, Q, N, 1, 1, 0, false },
  { NAMED ("linear-output"), Q, P, Q, 1, 0, 0, false },
  { NAMED ("linear-carried"), Q, P, N, 1, 0, 0, false },
  { NAMED ("linear-state"), N, P, Q, 1, 1, 3, false },
};
static const LsMixerProduct of_rwkv7[] = {
  /* of a shape at once */
  { NAMED ("rwkv-scores"), Q, Q, N, 4, 1, 0, false },
  { NAMED ("rwkv-output"), Q, P, Q, 4, 0, 0, false },
  { NAMED ("rwkv-carried"), Q, P, N, 2, 0, 0, false },
  { NAMED ("rwkv-state"), N, P, Q, 2, 1, 3, false },
};
static const LsMixerProduct of_delta[] = {
  { NAMED ("delta-keys"), Q, Q, N, 1, 1, 0, false },    { NAMED ("delta-w"), Q, N, Q, 1, 1, 0, false },
  { NAMED ("delta-u"), Q, P, Q, 1, 1, 0, false },       { NAMED ("delta-erase"), Q, P, N, 1, 1, 3, false },
  { NAMED ("delta-scores"), Q, Q, N, 1, 2, 0, false },  { NAMED ("delta-output"), Q, P, Q, 1, 0, 0, false },
  { NAMED ("delta-carried"), Q, P, N, 1, 0, 0, false }, { NAMED ("delta-state"), N, P, Q, 1, 1, 0, false },
};

typedef struct {
  const LsMixerProduct *of;
  uint64_t m, n, k, batch; /* batch: of a chunk of a sequence */
} Sized;

/* On one of so many ranks that heads are cut over. */
static Sized
sized (const LsModel *m, uint32_t i, uint32_t n_ranks, uint32_t seq)
{
  const LsMixerProduct *p = &row_of (m)->products[i];
  const uint64_t size[] = { [Q] = MIN (m->mixer.chunk, seq), [P] = m->mixer.head_dim, [N] = m->mixer.state };
  uint64_t n = p->is_of_groups ? MAX (1, m->mixer.groups / n_ranks) : m->mixer.heads / n_ranks;
  return (Sized) { p, size[p->m], size[p->n], size[p->k], p->alike * n };
}

double
ls_mixer_flops (const LsModel *m, uint32_t n_ranks, uint32_t seq)
{
  double flops = 0;
  for (uint32_t i = row_of (m)->n_products; i-- > 0;) {
    const Sized p = sized (m, i, n_ranks, seq);
    flops += 2.0 * (double) p.m * (double) p.n * (double) p.k * (double) p.batch;
  }
  return flops * n_ranks * (double) ls_mixer_n_chunks (m, seq);
}

/* --- with context parallelism ------------------------------------------------------------- */

bool
ls_mixer_has_context_parallelism (const LsModel *m)
{
  return row_of (m)->exchanges != LS_MIXER_UNCUT && !ls_mixer_selects (m);
}

#define MAX_EXCHANGES 5

/* Columns of a rank of tp that go from tokens to heads, each by an exchange of its own; returns how many. */
static uint32_t
exchanges (const LsModel *m, uint32_t tp, uint32_t cp, uint64_t ret_columns[MAX_EXCHANGES])
{
  uint64_t inner = ls_mixer_inner (m) / tp, groups = MAX (m->mixer.groups / tp, cp);
  const uint64_t mamba2[]
      = { inner, inner, groups * m->mixer.state, groups * m->mixer.state, m->mixer.heads / tp };
  bool is_apart = row_of (m)->exchanges == LS_MIXER_APART;
  for (uint32_t i = 0; is_apart && i < G_N_ELEMENTS (mamba2); i++)
    ret_columns[i] = mamba2[i];
  if (!is_apart)
    ret_columns[0] = ls_mixer_in_width (m) / tp;
  return is_apart ? G_N_ELEMENTS (mamba2) : 1;
}

/* --- on one rank: column-parallel into it, heads over ranks, row-parallel out of it, as Megatron-Core has it
 * (core/ssm/mamba_mixer.py) --- */

static const LsLinearNames in_names = LS_LINEAR ("mixer-in", LS_MODULE_MIXER_IN);
static const LsLinearNames select_names = LS_LINEAR ("mixer-select", 0);
static const LsLinearNames step_names = LS_LINEAR ("mixer-step", 0);
static const LsLinearNames out_names = LS_LINEAR ("mixer-out", LS_MODULE_MIXER_OUT);

static const LsLinearNames down_names = LS_LINEAR ("mixer-gates-down", 0);
static const LsLinearNames up_names = LS_LINEAR ("mixer-gates-up", 0);

#define FP32_BYTES 4
#define N_LOW_RANK 4 /* products of rwkv7 */

static uint64_t
per_rank (const LsCut *cut, uint64_t columns)
{
  return columns / cut->shard->tp;
}

static uint64_t
inner_of (const LsCut *cut)
{
  return per_rank (cut, ls_mixer_inner (cut->model));
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
  uint64_t columns[MAX_EXCHANGES], all = 0;
  if (cp_of (cut) > 1)
    for (uint32_t i = exchanges (cut->model, cut->shard->tp, cp_of (cut), columns); i-- > 0;)
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
  const LsMixerPairs pairs = ls_mixer_pairs (m);
  uint64_t rank = pairs.rank, wide = per_rank (cut, pairs.width);
  bool has_any = cut->shard->lora.rank > 0 && cut->shard->lora.modules & LS_LORA_IN;
  uint32_t n = has_any ? pairs.n : 0;
  ls_operators_adapter (
      operators, cut, &(LsAdapted) { .in = m->hidden, .is_input_kept = true, .n = n, .out = { rank, rank } });
  for (uint32_t i = 0; i < n; i++)
    ls_operators_adapter (operators, cut,
                          &(LsAdapted) { .in = rank, .cuts_out = true, .n = 1, .out = { wide } });
}

/* Of rwkv7: decays, learning rates, gates and how values mix, all in one kernel of as many FLOPs each
 * way. Their inputs are kept by the shift. Then what makes keys and values of them. */
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
  ls_operators_passes (operators, cut, cut->tokens, inner, "mixer-mix", 11, "mixer-mix-bwd", 17, 5);
}

void
ls_operators_mlp_shift (GArray *operators, const LsCut *cut)
{
  if (!(cut->kind & LS_LAYER_MIXER) || !row_of (cut->model)->shifts)
    return;
  LsOperator *op = ls_operators_passes (operators, cut, cut->tokens, cut->model->hidden, "mlp-shift", 2,
                                        "mlp-shift-bwd", 3, 1);
  ls_operator_param (op, cut->model->hidden); /* what mixes tokens with those before */
}

/* Of kda: decays, and a gate if that is of low rank; of linear: decays. The narrow products are on every rank
 * of tp, for its tokens; the wide ones, all in one kernel of as many FLOPs, gather what these make. */
static void
append_low_rank (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  const LsMixerPairs pairs = ls_mixer_pairs (m);
  uint64_t n = pairs.n, rank = pairs.rank, wide = n * per_rank (cut, pairs.width);
  if (n == 0)
    return;
  LsCut local = *cut;
  local.tokens = cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, down_names.fwd, LS_TP_NONE);
  ls_operator_linear (op, &local, &down_names, cut->shard->dtype, m->hidden, n * rank);
  ls_operator_passes (op, cut, cut->local_tokens, m->hidden, NULL, 0, "gates-grad-add", 3);
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
  uint64_t inner = inner_of (cut), keys = (MAX (inner, conv_width (cut)) - inner) / 2;
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
  LsOperator *op = ls_operators_passes (operators, cut, cut->tokens, width, "mixer-conv", 2, "mixer-conv-bwd",
                                        3, row_of (cut->model)->makes_again ? 0 : 1);
  ls_operator_param (op, per_rank (cut, inner_params (cut->model)));
  as_listed (op, cut, LS_RECIPE_MIXER_CONV);
}

/* Step sizes and keys of the inner activations, summed over ranks in Jamba as in Megatron-Core's
 * row-parallel products. */
static void
append_selection (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t inner = inner_of (cut), width = ls_mixer_select_width (m),
           steps = per_rank (cut, row_of (m)->steps_by_head ? m->mixer.heads : ls_mixer_inner (m));
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

/* A scan forwards, which keeps what it gives; 2.5 times its operations and twice its bytes backwards, where
 * the states are had again. */
static void
append_scan_of (GArray *operators, const LsCut *cut, const char *name, const char *back, double bytes,
                double work)
{
  uint64_t inner = inner_of (cut);
  LsOperator *op = ls_operator_append (operators, "mixer-scan", LS_TP_NONE);
  ls_operator_fwd (op,
                   ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, cut->act, cut->tokens, inner, bytes, work));
  ls_operator_igrad (
      op,
      ls_kernel_stream (back, LS_KERNEL_ELEMENTWISE, cut->act, cut->tokens, inner, 2 * bytes, 2.5 * work));
  op->kept.saved_bytes = cut->tokens * inner * cut->elt;
}

/* Reads x, z, the step sizes and B and C, writes y; 9 operations a state. */
static void
append_scan (GArray *operators, const LsCut *cut)
{
  double tokens = (double) cut->tokens, inner = (double) inner_of (cut), state = cut->model->mixer.state;
  append_scan_of (operators, cut, "selective-scan", "selective-scan-bwd",
                  tokens * cut->elt * (4.0 * inner + 2 * state), 9 * tokens * inner * state);
}

/* What it gives times an activation of the other columns. */
static void
append_branch_gate (GArray *operators, const LsCut *cut)
{
  uint64_t inner = inner_of (cut);
  LsOperator *op = ls_operator_append (operators, "mixer-gate", LS_TP_NONE);
  ls_operator_passes (op, cut, cut->tokens, inner, "branch-gate", 3, "branch-gate-bwd", 5);
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
again_kernel (const LsCut *cut, const Sized *s, const LsKernel *forward)
{
  const LsMixerProduct *p = s->of;
  LsKernel again = ls_kernel_stream (p->again_name, LS_KERNEL_ELEMENTWISE, cut->act, s->m * s->n * s->k,
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
  uint32_t seq = cut->shard->seq, cp = cp_of (cut);
  uint64_t chunks = ls_mixer_n_chunks (m, seq) * cut->shard->micro_batch;
  uint64_t inner = inner_of (cut), own = inner / cp;
  LsOperator *op = ls_operator_append (operators, "mixer-chunks", LS_TP_NONE);
  if (row_of (cut->model)->makes_again) {
    ls_operator_igrad (op, ls_cut_pass (cut, "mixer-conv-again", conv_width (cut), 2));
    ls_operator_igrad (op, state_pass (cut, "state-passing-again", chunks, own * m->mixer.state));
  }
  for (uint32_t i = 0; i < row_of (m)->n_products; i++) {
    const Sized sizes = sized (m, i, cut->shard->tp * cp, seq), *s = &sizes;
    const LsMixerProduct *p = s->of;
    LsKernel forward
        = ls_kernel_gemm (p->name, cut->act, s->m, s->n, s->k, s->batch * chunks, cut->elt, false);
    ls_operator_fwd (op, chunk_kernel (cut, forward, p->n_serial > 0 ? 1 : 0));
    if (p->n_again > 0)
      ls_operator_igrad (op, again_kernel (cut, s, &forward));
    LsKernel gradients
        = ls_kernel_gemm (p->grad_name, cut->act, s->m, s->k, s->n, 2 * s->batch * chunks, cut->elt, false);
    ls_operator_igrad (op, chunk_kernel (cut, gradients, p->n_serial > 0 ? p->n_serial - 1 : 0));
  }
  ls_operator_fwd (op, state_pass (cut, "state-passing", chunks, own * m->mixer.state));
  ls_operator_igrad (op, state_pass (cut, "state-passing-bwd", chunks, own * m->mixer.state));
  op->kept.saved_bytes = (row_of (cut->model)->makes_again ? 0 : chunks * own * m->mixer.state * FP32_BYTES)
      + cut->tokens * inner * cut->elt;
  as_listed (op, cut, LS_RECIPE_MIXER_CHUNKS);
}

/* y times a gate, if it has one, normed, in one kernel. */
static void
append_gate (GArray *operators, const LsCut *cut)
{
  uint64_t inner = inner_of (cut);
  LsOperator *op = ls_operator_append (operators, "mixer-gate", LS_TP_NONE);
  bool has_gate = !cut->model->mixer.ungated;
  if (has_gate)
    ls_operator_streams (op, cut, LS_KERNEL_NORM, cut->tokens, inner, "gated-norm", 3, "gated-norm-bwd", 5);
  else
    ls_operator_streams (op, cut, LS_KERNEL_NORM, cut->tokens, inner, "head-norm", 2, "head-norm-bwd", 3);
  if (ls_mixer_conv_width (cut->model) == 0)
    ls_operator_param (op, per_rank (cut, inner_params (cut->model)));
  as_listed (op, cut, LS_RECIPE_MIXER_GATE);
}

static void
append_gate_of_rwkv (GArray *operators, const LsCut *cut)
{
  LsOperator *op = ls_operators_passes (operators, cut, cut->tokens, inner_of (cut), "mixer-gate", 6,
                                        "mixer-gate-bwd", 12, 0);
  ls_operator_param (op, inner_params (cut->model));
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
  uint64_t columns[MAX_EXCHANGES] = { inner_of (cut) }, bytes = 0;
  if (cp_of (cut) == 1)
    return;
  LsOperator *op
      = ls_operator_append (operators, is_to_heads ? "mixer-to-heads" : "mixer-to-tokens", LS_TP_NONE);
  uint32_t n = is_to_heads ? exchanges (cut->model, cut->shard->tp, cp_of (cut), columns) : 1;
  op->comm.cp.n = (uint8_t) n;
  op->comm.cp.is_behind_first = is_to_heads;
  for (uint32_t i = 0; i < n; i++)
    bytes += op->comm.cp.bytes[i] = cut->tokens * columns[i] * cut->elt;
  append_copies (op, cut, is_to_heads, bytes);
  op->kept.saved_bytes = is_to_heads ? cut->tokens * repeated (cut) * cut->elt : 0;
}

/* Both gates of each head in one product, of the convolution's output, which is kept already. */
static void
append_head_gates (GArray *operators, const LsCut *cut)
{
  static const LsLinearNames names = LS_LINEAR ("head-gates", 0);
  uint64_t heads = per_rank (cut, cut->model->mixer.heads), width = cut->model->mixer.head_dim;
  LsOperator *op = ls_operator_append (operators, "mixer-head-gates", LS_TP_NONE);
  ls_operator_each_head (op, cut, &names, heads, width, 2 * width);
  ls_operator_weight (op, LS_TENSOR_WHOLE, width, width, 2 * heads);
  op->kept.saved_bytes = cut->tokens * 2 * width * heads * cut->elt;
}

/* Reads x and both gates, writes h; backwards h and its gradient too, and three gradients. */
static void
append_recurrence (GArray *operators, const LsCut *cut)
{
  append_head_gates (operators, cut);
  double elements = (double) cut->tokens * (double) inner_of (cut);
  append_scan_of (operators, cut, "recurrence", "recurrence-bwd", 4 * elements * cut->elt, 10 * elements);
}

/* All of it but the way out. */
static void
append_inner (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  const LsMixerRow *row = row_of (m);
  if (row->shifts) /* each token six times; one of what is made is the way in's to keep */
    ls_operators_passes (operators, cut, cut->tokens, m->hidden, "token-shift", 7, "token-shift-bwd", 8, 6);
  uint64_t width = per_rank (cut, ls_mixer_in_width (m));
  LsOperator *in = ls_operators_linear (operators, cut, &in_names, LS_TP_COLUMN, m->hidden, width);
  in->params.is_linear = true;
  if (in_biases (m) > 0)
    ls_operator_bias (in, cut, (LsBias) { "mixer-in-bias-grad", LS_RECIPE_RESIDUAL }, cut->tokens, width);
  in->kept.saved_bytes += cut->tokens * width * cut->elt;
  append_in_adapters (operators, cut);
  if (ls_mixer_gates_memory (m)) {
    /* Both inputs are kept by what made them. */
    LsOperator *op = ls_operators_passes (operators, cut, cut->tokens, inner_of (cut), "memory-gate", 3,
                                          "memory-gate-bwd", 5, 0);
    ls_operator_igrad (op, ls_cut_pass (cut, "memory-grad-add", inner_of (cut), 3));
    return;
  }
  append_low_rank (operators, cut);
  if (row->append_more)
    row->append_more (operators, cut);
  append_exchange (operators, cut, true);
  append_conv (operators, cut);
  if (ls_mixer_selects (m))
    append_selection (operators, cut);
  if (row->append_mixing)
    row->append_mixing (operators, cut);
  append_exchange (operators, cut, false);
  if (row->append_gate)
    (ls_mixer_selects (m) ? append_branch_gate : row->append_gate) (operators, cut);
}

void
ls_operators_mixer (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t inner = inner_of (cut);
  if (ls_mixer_in_width (m) > 0)
    append_inner (operators, cut);
  ls_operators_linear (operators, cut, &out_names, LS_TP_ROW, inner, m->hidden)->params.is_linear = true;
  if (out_biases (m) > 0) { /* added by the product before it; its gradient is a sum over tokens of a rank */
    LsOperator *op = ls_operator_append (operators, "mixer-out-bias", LS_TP_NONE);
    ls_operator_bias (op, cut, (LsBias) { "mixer-out-bias-grad", LS_RECIPE_RESIDUAL }, cut->local_tokens,
                      m->hidden);
    op->params.is_replicated = true;
  }
  ls_operators_adapter_of (operators, cut, ls_lora_way_out (m),
                           (LsAdapted) { .cuts_in = true, .in = inner, .out = { m->hidden } });
}

/* --- the kinds --- */

static uint64_t
mamba1_params (const LsModel *m)
{
  return ls_mixer_inner (m) * (m->mixer.state + 2) + (m->mixer.plain_keys ? 0 : ls_mixer_select_width (m));
}

/* A norm of what selects is as wide, and the convolution then has no bias. */
static uint64_t
mamba2_params (const LsModel *m)
{
  return !ls_mixer_selects (m) ? ls_mixer_inner (m)
                               : ls_mixer_select_width (m) - !m->mixer.plain_conv * ls_mixer_conv_width (m);
}

static uint64_t
linear_params (const LsModel *m)
{
  return (m->mixer.head_norm ? m->mixer.head_dim : ls_mixer_inner (m)) + (m->mixer.rank > 0 ? keys (m) : 0);
}

static uint64_t
conv_params (const LsModel *m)
{
  return m->mixer.bias * ls_mixer_conv_width (m);
}

static LsMixerPairs
linear_pairs (const LsModel *m)
{
  return (LsMixerPairs) { m->mixer.rank > 0, m->mixer.rank, keys (m) };
}

static LsMixerPairs
kda_pairs (const LsModel *m)
{
  return (LsMixerPairs) { m->mixer.full_gate ? 1 : 2, m->mixer.head_dim, ls_mixer_inner (m) };
}

const LsEnumName ls_mixer_names[LS_N_MIXERS + 1] = {
  { "none", LS_MIXER_NONE },   { "mamba1", LS_MIXER_MAMBA1 },   { "mamba2", LS_MIXER_MAMBA2 },
  { "delta", LS_MIXER_DELTA }, { "linear", LS_MIXER_LINEAR },   { "conv", LS_MIXER_CONV },
  { "kda", LS_MIXER_KDA },     { "rglru", LS_MIXER_RGLRU },     { "mlstm", LS_MIXER_MLSTM },
  { "rwkv7", LS_MIXER_RWKV7 }, { "product", LS_MIXER_PRODUCT }, { NULL },
};

#define PRODUCTS(of) .products = of, .n_products = G_N_ELEMENTS (of)

/* clang-format off */
const LsMixerRow ls_mixers[LS_N_MIXERS] = {
  [LS_MIXER_NONE] = { .exchanges = LS_MIXER_TOGETHER },
  [LS_MIXER_MAMBA1] = { .in = { .inners = 2 }, .convolved = { .inners = 1 }, .has_conv_bias = true,
    .may = { .rank = 1, .bias = true, .plain_conv = true, .plain_keys = true }, .chunk = 256,
    .kernels = LS_MIXER_SCAN, .selects = true, .params = mamba1_params, .append_mixing = append_scan },
  [LS_MIXER_MAMBA2] = { .in = { .inners = 2, .keys = 2, .heads = 1 }, .convolved = { .inners = 1, .keys = 2 },
    .has_conv_bias = true, .learned = { .heads = 3 },
    .may = { .rank = 1, .bias = true, .plain_conv = true, .groups = 1 }, .chunk = 256,
    .kernels = LS_MIXER_CHUNKS, .selects = true, .steps_by_head = true, .makes_again = true,
    .exchanges = LS_MIXER_APART, PRODUCTS (of_mamba2), .params = mamba2_params,
    .append_mixing = append_chunks, .append_gate = append_gate },
  [LS_MIXER_DELTA] = { .in = { .inners = 2, .keys = 2, .heads = 2 }, .convolved = { .inners = 1, .keys = 2 },
    .learned = { .heads = 2, .head_dims = 1 }, .may = { .groups = 1, .ungated = true, .undecayed = true },
    .chunk = 64, .kernels = LS_MIXER_MEASURED_CHUNKS, .exchanges = LS_MIXER_TOGETHER, PRODUCTS (of_delta),
    .append_mixing = append_chunks, .append_gate = append_gate },
  [LS_MIXER_LINEAR] = { .in = { .inners = 2, .keys = 2 }, .chunk = 256, .kernels = LS_MIXER_CHUNKS,
    .may = { .rank = 1, .ungated = true, .head_norm = true }, PRODUCTS (of_linear), .pairs = linear_pairs,
    .params = linear_params, .append_mixing = append_chunks, .append_gate = append_gate },
  [LS_MIXER_CONV] = { .in = { .inners = 3 }, .convolved = { .inners = 1 }, .may = { .bias = true },
    .chunk = 256, .params = conv_params, .append_gate = append_gate },
  [LS_MIXER_KDA] = { .in = { .inners = 1, .keys = 2, .heads = 1 }, .convolved = { .inners = 1, .keys = 2 },
    .learned = { .inners = 1, .heads = 1, .head_dims = 1 }, .chunk = 64, .kernels = LS_MIXER_CHUNKS,
    .may = { .groups = 1, .full_gate = true, .gate_bias = true }, PRODUCTS (of_delta),
    .pairs = kda_pairs, .append_mixing = append_chunks, .append_gate = append_gate },
  [LS_MIXER_RGLRU] = { .in = { .inners = 2 }, .convolved = { .inners = 1 }, .has_conv_bias = true,
    .learned = { .inners = 5, .hiddens = 1 }, .chunk = 256, .kernels = LS_MIXER_SCAN,
    .append_mixing = append_recurrence, .append_gate = append_branch_gate },
  [LS_MIXER_MLSTM] = { .in = { .inners = 2, .keys = 2, .heads = 2 }, .learned = { .inners = 1, .heads = 2 },
    .may = { .groups = 1 }, .chunk = 64, .kernels = LS_MIXER_CHUNKS,
    PRODUCTS (of_linear), .append_mixing = append_chunks, .append_gate = append_gate },
  [LS_MIXER_RWKV7] = { .in = { .inners = 3 }, .learned = { .inners = 8, .hiddens = 6 }, .may = { .rank = 1 },
    .chunk = 64, .kernels = LS_MIXER_CHUNKS, .is_whole = true, .shifts = true,
    .no_adapters = "time mixing of RWKV-7", PRODUCTS (of_rwkv7), .append_more = append_low_rank_of_rwkv,
    .append_mixing = append_chunks, .append_gate = append_gate_of_rwkv },
  [LS_MIXER_PRODUCT] = { .chunk = 256, .is_whole = true },
};
/* clang-format on */
