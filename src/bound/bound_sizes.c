/* bound/bound_sizes.c — what a layer, the embedding or the head holds at least on one rank: parameters, and
 * bytes from a forward to its backward, as lower/layers/lower_saved.c and lower_recompute.c keep them; what a
 * rank holds of its parameters throughout, as lower_step.c cuts them. */
#include "bound/bound_parts.h"

#include "lower/lower.h"
#include "strategy/dp_traits.h"
#include "strategy/shard.h"

/* Full recomputation of whole layers; the inside of attention; parts. */
bool
bound_runs_again (const BoundCut *x, const LsOperator *o, bool is_last)
{
  const LsStrategy *s = x->s;
  if (!x->is_layer || s->recompute == LS_RECOMPUTE_NONE)
    return false;
  if (s->recompute == LS_RECOMPUTE_SELECTIVE) {
    bool is_in_moe = o->part == LS_MLP_PART_MOE || o->part == LS_MLP_PART_SHARED;
    uint32_t parts = (o->attention_core ? LS_RECOMPUTE_CORE : 0) | (is_in_moe ? LS_RECOMPUTE_MOE : 0)
        | (o->part == LS_MLP_PART_DENSE ? LS_RECOMPUTE_MLP : 0)
        | (o->part == LS_MLP_PART_SHARED ? LS_RECOMPUTE_SHARED : 0);
    return s->recompute_parts & parts;
  }
  bool may_stop_before = s->recompute_early_stop && is_last && o->saved_bytes == o->input_bytes;
  return s->recompute_method == LS_RECOMPUTE_UNIFORM && !may_stop_before;
}

/* It may be made again from what the operator before it keeps; what is before a layer is not known. */
static bool
may_drop_input (const LsStrategy *s, const LsOperator *before)
{
  uint32_t parts = s->recompute_parts;
  return (parts & LS_RECOMPUTE_NORM && (!before || before->is_norm))
      || (parts & LS_RECOMPUTE_ACTIVATION && (!before || before->is_activation));
}

/* Of selective recomputation of parts. */
static uint64_t
kept_beside_parts (const BoundCut *x, const LsOperator *o, const LsOperator *before)
{
  bool is_made_again = x->s->recompute_parts & LS_RECOMPUTE_MLA_UP && o->is_latent_up;
  if (is_made_again || bound_runs_again (x, o, false))
    return 0;
  return o->saved_bytes - (may_drop_input (x->s, before) ? o->input_bytes : 0);
}

/* Bytes of a layer's operator that surely stay; of the input of layers that run again: below. before: NULL:
 * the first. again: where outputs are kept by operator, with what is made again, else NULL. */
static uint64_t
kept_bytes (const BoundCut *x, const LsOperator *o, const LsOperator *before, const LsOperator *again)
{
  const LsStrategy *s = x->s;
  bool is_even = !s->expert_load || !o->is_expert;
  if (!x->is_layer || !is_even || s->offload_activations || s->recompute == LS_RECOMPUTE_FULL)
    return 0;
  if (s->recompute == LS_RECOMPUTE_NONE)
    return o->saved_bytes;
  if (s->recompute_parts & LS_RECOMPUTE_BY_OPERATORS)
    return again ? o->saved_bytes - again->saved_bytes : 0;
  return kept_beside_parts (x, o, before);
}

/* The input of each layer stays. */
static bool
keeps_input (const BoundCut *x)
{
  const LsStrategy *s = x->s;
  bool is_whole = s->recompute == LS_RECOMPUTE_FULL && s->recompute_method == LS_RECOMPUTE_UNIFORM
      && s->recompute_layers == 1;
  bool has_ops = s->recompute == LS_RECOMPUTE_SELECTIVE && s->recompute_parts & LS_RECOMPUTE_BY_OPERATORS;
  return x->is_layer && (is_whole || has_ops) && !s->partition_activations && !s->offload_activations;
}

static void
add_params (const LsStrategy *s, const LsOperator *o, BoundPart *p)
{
  for (uint32_t n = 0; n < o->n_params && o->is_frozen; n++) {
    p->n_frozen += o->param_numel[n];
    p->n_frozen_experts += o->is_expert ? o->param_numel[n] : 0;
    p->n_nf4 += o->is_nf4 && n == 0 ? o->param_numel[n] : 0;
  }
  for (uint32_t n = 0; n < o->n_params && !o->is_frozen; n++) {
    p->n_params += o->param_numel[n];
    p->n_expert += o->is_expert ? o->param_numel[n] : 0;
    uint64_t *persistent = o->is_expert ? &p->n_persistent_experts : &p->n_persistent;
    *persistent += o->param_numel[n] <= s->persistence_threshold ? o->param_numel[n] : 0;
  }
}

BoundPart
bound_operators_sizes (const BoundCut *x, const GArray *operators, const GArray *again)
{
  BoundPart p = { .kept = keeps_input (x) ? ls_boundary_bytes (x->model, &x->shard) : 0 };
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    p.kept += kept_bytes (x, o, i > 0 ? o - 1 : NULL, again ? &g_array_index (again, LsOperator, i) : NULL);
    add_params (x->s, o, &p);
  }
  return p;
}

/* All layers as the fastest: in the scaled number format. */
LsShard
bound_shard (const LsStrategy *s, const LsModel *m)
{
  LsShard shard = ls_strategy_shard (s, m);
  shard.bf16_first = shard.bf16_last = 0;
  shard.grad_is_fresh |= shard.grad_is_own; /* the first micro-batch's, the least that others take */
  return shard;
}

void
bound_sizes (const LsModel *m, const LsStrategy *s, bool has_head_weight, BoundPart ret_parts[N_BOUND_PARTS])
{
  BoundCut x = { m, s, bound_shard (s, m), false };
  g_autoptr (GArray) operators = g_array_sized_new (FALSE, FALSE, sizeof (LsOperator), LS_OPERATORS_USUAL);
  ls_operators_embedding (m, &x.shard, operators);
  ret_parts[PART_EMBEDDING] = bound_operators_sizes (&x, operators, NULL);
  g_array_set_size (operators, 0);
  ls_operators_head (m, &x.shard, has_head_weight, operators);
  ret_parts[PART_HEAD] = bound_operators_sizes (&x, operators, NULL);
  x.is_layer = true;
  uint32_t first[LS_MAX_MODEL_KINDS], n_kinds = ls_model_first_of_kinds (m, first);
  for (uint32_t k = 0; k < n_kinds; k++) {
    g_array_set_size (operators, 0);
    ls_operators_layer (m, &x.shard, first[k], operators);
    g_autoptr (GArray) again = ls_layer_again (m, s, &x.shard, operators);
    ret_parts[PART_LAYER + k] = bound_operators_sizes (&x, operators, again);
  }
}

/* --- a rank --- */

/* Ranks that an element is cut over. */
typedef struct {
  uint64_t dense, expert;
} Cut;

static uint64_t
share (const BoundPart *p, Cut cut)
{
  return (p->n_params - p->n_expert) / cut.dense + p->n_expert / cut.expert;
}

static Cut
cut_of (const LsModel *m, const LsStrategy *s)
{
  uint64_t copies = (uint64_t) s->dp * s->cp,
           of_experts = m->n_experts ? s->tp * copies / ((uint64_t) s->ep * s->etp) : copies;
  return (Cut) { MAX (1, copies), MAX (1, of_experts) };
}

uint64_t
bound_n_owned (const LsModel *m, const LsStrategy *s, const BoundPart *p)
{
  return s->zero_stage >= 1 ? share (p, cut_of (m, s)) : p->n_params;
}

/* At least, of an element; of other optimizers than Adam with its master weight. */
static double
optimizer_bytes (const LsStrategy *s)
{
  const LsAdamStates states = ls_strategy_adam (s);
  if (!s->optimizer_kind && s->narrow_shards && ls_dp_traits (s->dp_kind)->is_fsdp)
    return 2 * ls_dtype_bytes (ls_strategy_weights (s));
  if (!s->optimizer_kind)
    return ls_adam_bytes (&states, (LsDtype) s->dtype);
  bool has_master = s->dtype != LS_DTYPE_FP32 && ls_dp_traits (s->dp_kind)->keeps_gradients
      && !ls_master_is_the_weight (states.master);
  return ls_optimizer_least_state (s->optimizer_kind) + (has_master ? 4 : 0);
}

/* Weights that do not learn. */
static uint64_t
frozen_bytes (const BoundPart *p, const LsStrategy *s, Cut cut)
{
  uint64_t size = s->dtype == LS_DTYPE_FP32 ? 4
      : s->fp8_params                       ? 1
                                            : 2,
           n = p->n_frozen - p->n_frozen_experts - p->n_nf4;
  return (n * size + ls_nf4_bytes (p->n_nf4)) / cut.dense + p->n_frozen_experts * size / cut.expert;
}

uint64_t
bound_static_bytes (const LsModel *m, const LsStrategy *s, const BoundPart *p)
{
  const Cut whole = { 1, 1 }, cut = cut_of (m, s);
  uint64_t z = s->zero_stage, grad_size = s->grad_dtype == LS_DTYPE_FP32 ? 4 : 2;
  const LsDpTraits *kind = ls_dp_traits (s->dp_kind);
  if (s->zero_group > 0 || s->offload != LS_OFFLOAD_NONE)
    return 0;
  bool keeps_gradients = kind->keeps_gradients && !ls_master_is_the_weight ((LsMaster) s->master);
  bool is_gathered = kind->has_reshard && (z == 2 || s->reshard_after_forward == 0); /* until the backward */
  return share (p, z >= 3 && !is_gathered ? cut : whole) * (s->fp8_params ? 1 : 2)
      + frozen_bytes (p, s, z >= 3 ? cut : whole) + (keeps_gradients ? p->n_params * grad_size : 0)
      + (uint64_t) ((double) share (p, z >= 1 ? cut : whole) * optimizer_bytes (s));
}
