#include "model/lora.h"

#include <string.h>

#include "model/operators_build.h"

/* --- adapters on one rank, and what is left of operators whose weights are frozen (model/lora.h) --- */

static const LsLinearNames a_names = { "lora-a", "lora-a-dgrad", "lora-a-wgrad" };
static const LsLinearNames b_names = { "lora-b", "lora-b-dgrad", "lora-b-wgrad" };

/* The input of all modules is one, kept once; each adds its gradient to that of the frozen layer. */
static void
append_a (GArray *operators, const LsCut *cut, const LsAdapted *what)
{
  uint64_t rank = cut->shard->lora.rank;
  LsCut own = *cut;
  own.tokens = what->cuts_in ? cut->tokens : cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, a_names.fwd, what->cuts_in ? LS_TP_ROW : LS_TP_NONE);
  for (uint32_t i = 0; i < what->n; i++) {
    ls_operator_linear (op, &own, &a_names, cut->act, what->in, rank);
    ls_operator_igrad (
        op, ls_cut_stream (cut, "lora-grad-add", LS_KERNEL_ELEMENTWISE, own.tokens, what->in, 3 * cut->elt));
    ls_operator_weight (op, what->cuts_in ? LS_TENSOR_COLUMNS : LS_TENSOR_WHOLE, rank, what->in, 1);
  }
  if (what->is_input_kept)
    op->saved_bytes = op->input_bytes = 0;
  op->is_adapter = true;
  op->param_replicated = !what->cuts_in;
  if (what->cuts_in)
    op->tp_bytes = cut->tokens * rank * cut->elt;
}

static void
append_b (GArray *operators, const LsCut *cut, const LsAdapted *what)
{
  uint64_t rank = cut->shard->lora.rank;
  LsCut own = *cut;
  own.tokens = what->cuts_out ? cut->tokens : cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, b_names.fwd, what->cuts_out ? LS_TP_COLUMN : LS_TP_NONE);
  uint64_t kept = 0;
  for (uint32_t i = 0; i < what->n; i++) {
    uint64_t out = what->out[i];
    ls_operator_igrad (
        op, ls_cut_stream (cut, "lora-scale-bwd", LS_KERNEL_ELEMENTWISE, own.tokens, out, 2 * cut->elt));
    ls_operator_linear (op, &own, &b_names, cut->act, rank, out);
    ls_operator_fwd (op,
                     ls_cut_stream (cut, "lora-scale", LS_KERNEL_ELEMENTWISE, own.tokens, out, 2 * cut->elt));
    ls_operator_fwd (op,
                     ls_cut_stream (cut, "lora-add", LS_KERNEL_ELEMENTWISE, own.tokens, out, 3 * cut->elt));
    ls_operator_weight (op, what->cuts_out ? LS_TENSOR_ROWS : LS_TENSOR_WHOLE, out, rank, 1);
    kept += op->input_bytes;
  }
  op->saved_bytes = op->input_bytes = kept;
  op->is_adapter = true;
  op->param_replicated = !what->cuts_out;
  if (what->cuts_out)
    op->tp_bytes = cut->tokens * rank * what->n * cut->elt;
}

void
ls_operators_adapter (GArray *operators, const LsCut *cut, const LsAdapted *what)
{
  if (what->n == 0)
    return;
  append_a (operators, cut, what);
  append_b (operators, cut, what);
}

void
ls_operators_adapter_of (GArray *operators, const LsCut *cut, LsLoraModule module, LsAdapted what)
{
  what.n = cut->shard->lora.rank > 0 && cut->shard->lora.modules & module ? 1 : 0;
  ls_operators_adapter (operators, cut, &what);
}

/* Written in 16 bits before each use. */
static void
dequantise (LsOperator *op, const LsCut *cut)
{
  uint64_t numel = op->param_numel[0];
  LsKernel kernel = ls_kernel_stream ("nf4-dequant", LS_KERNEL_ELEMENTWISE, cut->act, 1, numel,
                                      (double) ls_nf4_bytes (numel) + cut->elt * (double) numel, 0);
  g_assert (op->n_fwd < LS_OPERATOR_MAX_KERNELS && op->n_igrad < LS_OPERATOR_MAX_KERNELS);
  memmove (&op->fwd[1], &op->fwd[0], op->n_fwd++ * sizeof *op->fwd);
  memmove (&op->igrad[1], &op->igrad[0], op->n_igrad++ * sizeof *op->igrad);
  op->fwd[0] = op->igrad[0] = kernel;
  op->is_nf4 = true;
}

void
ls_operators_freeze (GArray *operators, guint from, const LsCut *cut)
{
  for (guint i = from; cut->shard->lora.rank > 0 && i < operators->len; i++) {
    LsOperator *op = &g_array_index (operators, LsOperator, i);
    if (op->is_adapter)
      continue;
    op->is_frozen = op->n_params > 0;
    op->n_wgrad = 0;
    op->saved_bytes -= op->input_bytes;
    op->input_bytes = 0;
    if (cut->shard->lora.is_nf4 && op->n_products > 0)
      dequantise (op, cut);
  }
}

/* --- adapters of low rank beside frozen weights (Hu et al ---------------------------------------- */

static const struct {
  const char *name;
  LsLoraModule module;
} names[] = {
  { "q", LS_LORA_Q },       { "k", LS_LORA_K },   { "v", LS_LORA_V },       { "o", LS_LORA_O },
  { "gate", LS_LORA_GATE }, { "up", LS_LORA_UP }, { "down", LS_LORA_DOWN },
};

static uint32_t
module_named (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (names[i].name, name) == 0)
      return names[i].module;
  return 0;
}

/* Experts have none; keys and values that are made of one latent have theirs together. */
static uint32_t
all_of (const LsModel *m)
{
  uint32_t mlp = m->n_experts > 0 ? 0 : LS_LORA_MLP,
           attention = m->kv_lora > 0 ? LS_LORA_ATTENTION & ~(uint32_t) LS_LORA_V : LS_LORA_ATTENTION;
  return attention | (ls_mlp_is_gated (m->mlp) ? mlp : mlp & ~(uint32_t) LS_LORA_GATE);
}

bool
ls_lora_modules (const LsModel *m, const char *text, uint32_t *ret_modules, char **ret_wrong)
{
  *ret_modules = all_of (m);
  if (!text || strcmp (text, "all-linear") == 0)
    return true;
  g_auto (GStrv) words = g_strsplit (text, ",", -1);
  uint32_t set = 0;
  for (guint i = 0; words[i]; i++) {
    uint32_t module = module_named (words[i]);
    if ((module & all_of (m)) == 0) {
      *ret_wrong = g_strdup (words[i]);
      return false;
    }
    set |= module;
  }
  *ret_modules = set;
  return true;
}

#define NF4_BITS 4.127

uint64_t
ls_nf4_bytes (uint64_t numel)
{
  return (uint64_t) ((double) numel * NF4_BITS / 8);
}

/* In and out of adapters of a layer, and what of it every rank of tp has whole. */
typedef struct {
  uint64_t all, repeated;
} Widths;

static void
add (Widths *w, uint64_t in, bool cuts_in, uint64_t out, bool cuts_out)
{
  w->all += in + out;
  w->repeated += (cuts_in ? 0 : in) + (cuts_out ? 0 : out);
}

/* Of latents and of what they make. */
static void
add_latents (Widths *w, const LsModel *m, uint32_t modules)
{
  uint64_t h = m->hidden, q = (uint64_t) m->n_heads * m->head_dim,
           kv = (uint64_t) m->n_heads * (m->head_dim - m->rope_dim + m->v_dim);
  if (modules & LS_LORA_Q && m->q_lora > 0)
    add (w, h, false, m->q_lora, false);
  if (modules & LS_LORA_Q)
    add (w, m->q_lora > 0 ? m->q_lora : h, false, q, true);
  if (modules & LS_LORA_K) {
    add (w, h, false, m->kv_lora + m->rope_dim, false);
    add (w, m->kv_lora, false, kv, true);
  }
}

static void
add_qkv (Widths *w, const LsModel *m, uint32_t modules)
{
  uint64_t h = m->hidden;
  if (modules & LS_LORA_Q)
    add (w, h, false, (uint64_t) m->n_heads * m->head_dim, true);
  if (modules & LS_LORA_K)
    add (w, h, false, (uint64_t) m->n_kv_heads * m->head_dim, true);
  if (modules & LS_LORA_V)
    add (w, h, false, (uint64_t) m->n_kv_heads * ls_model_v_dim (m), true);
}

static Widths
widths (const LsModel *all, uint32_t kind, uint32_t modules)
{
  LsModel own = ls_model_of_kind (all, kind), *m = &own;
  Widths w = { 0 };
  (m->kv_lora > 0 ? add_latents : add_qkv) (&w, m, modules);
  if (modules & LS_LORA_O)
    add (&w, (uint64_t) m->n_heads * ls_model_v_dim (m), true, m->hidden, false);
  for (uint32_t mlp = LS_LORA_GATE; mlp <= LS_LORA_DOWN; mlp <<= 1)
    if (modules & mlp && !(kind & LS_LAYER_EXPERTS)) {
      bool is_row = mlp == LS_LORA_DOWN;
      add (&w, is_row ? m->ffn : m->hidden, is_row, is_row ? m->hidden : m->ffn, !is_row);
    }
  return w;
}

static Widths
all_widths (const LsModel *m, const LsLora *lora)
{
  Widths sum = { 0 };
  for (uint32_t i = 0; lora->rank > 0 && i < m->n_layers; i++) {
    const Widths w = widths (m, ls_model_layer_kind (m, i), lora->modules);
    sum.all += w.all;
    sum.repeated += w.repeated;
  }
  return sum;
}

uint64_t
ls_lora_params (const LsModel *m, const LsLora *lora)
{
  return lora->rank * all_widths (m, lora).all;
}

uint64_t
ls_lora_repeated_params (const LsModel *m, const LsLora *lora)
{
  return lora->rank * all_widths (m, lora).repeated;
}

double
ls_lora_flops_saved (const LsModel *m, const LsLora *lora, uint64_t vocab, uint32_t seq, double n_sequences)
{
  if (lora->rank == 0)
    return 0;
  double tokens = n_sequences * seq, frozen = (double) ls_model_linear_params (m, vocab);
  return tokens * (2 * frozen - 6 * (double) ls_lora_params (m, lora));
}
