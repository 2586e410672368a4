/* tests/support/closed_flops.h — FLOPs of a step in closed forms: those of the model, and what ranks compute
 * more or less than that. What operators say of themselves is held against these. */
#ifndef LS_TESTS_CLOSED_FLOPS_H
#define LS_TESTS_CLOSED_FLOPS_H

#include "ls_test.h"

#include "analysis/conservation.h"
#include "model/expert_load.h"
#include "model/mixer.h"
#include "strategy/shard.h"

/* --- weights that ranks have more than once ---------------------------------------------------------- */

static inline LsShard
shard_of_all (const LsModel *m)
{
  return (LsShard) { .tp = 1,
                     .micro_batch = 1,
                     .seq = m->seq,
                     .vocab_multiple = 1,
                     .dtype = LS_DTYPE_BF16,
                     .grad_dtype = LS_DTYPE_FP32 };
}

/* Weights of products that each rank of tp has whole, as often as a token meets them. Takes the operators
 * away. */
static inline uint64_t
whole_params_of (GArray *operators)
{
  uint64_t n = 0;
  for (guint i = 0; i < operators->len; i++) {
    const LsOperatorParams *p = &g_array_index (operators, LsOperator, i).params;
    for (uint32_t k = 0; k < p->n && p->is_replicated; k++)
      if (p->shape[k].kind == LS_TENSOR_MATRIX)
        n += p->n_met > 0 ? p->n_met * ls_tensor_numel (&p->shape[k]) : p->numel[k];
  }
  g_array_set_size (operators, 0);
  return n;
}

/* Of linear parameters, what each rank of tensor parallelism has whole, without the head. */
static inline uint64_t
whole_params (const LsModel *all)
{
  LsModel m = *all;
  const LsShard s = shard_of_all (all);
  g_autoptr (GArray) operators = ls_operators_new ();
  uint64_t n = 0;
  for (uint32_t i = 0; i < m.n_layers; i++) {
    ls_operators_of_kind (&m, &s, ls_model_layer_kind (&m, i) & ~(uint32_t) LS_LAYER_AGAIN, operators);
    n += whole_params_of (operators) + ls_streams_again_params (&m);
  }
  m.predict.shared = false;
  ls_operators_embedding (&m, &s, operators);
  ls_operators_head (&m, &s, !m.tied_embeddings, operators);
  return n + whole_params_of (operators);
}

/* Of adapters, what every rank of tp has whole and multiplies with all tokens: with sequence parallelism only
 * what stands inside of mixers. */
static inline uint64_t
repeated_adapter_params (const LsModel *m, const LsLora *lora, bool sp)
{
  LsShard s = shard_of_all (m);
  g_autoptr (GArray) operators = ls_operators_new ();
  uint64_t n = 0;
  s.lora = *lora;
  for (uint32_t i = 0; i < m->n_layers && lora->rank > 0; i++)
    ls_operators_of_kind (m, &s, ls_model_layer_kind (m, i), operators);
  for (guint i = 0; i < operators->len; i++) {
    const LsOperatorParams *p = &g_array_index (operators, LsOperator, i).params;
    bool is_repeated = p->is_adapter && p->is_replicated && (!sp || p->has_whole_grad);
    for (uint32_t k = 0; k < p->n && is_repeated; k++)
      n += p->n_met > 0 ? p->n_met * ls_tensor_numel (&p->shape[k]) : p->numel[k];
  }
  return n;
}

/* What ranks of tp beyond one for a head of keys and values have again of B, all of them together. */
static inline uint64_t
copied_adapter_params (const LsModel *m, const LsLora *lora, uint32_t tp)
{
  uint64_t columns = 0;
  for (uint32_t i = 0; lora->rank > 0 && m->latent.kv_lora == 0 && i < m->n_layers; i++) {
    uint32_t kind = ls_model_layer_kind (m, i);
    LsModel own = ls_model_of_kind (m, kind);
    uint64_t head = (lora->modules & LS_LORA_K ? own.head_dim : 0)
        + (lora->modules & LS_LORA_V ? ls_model_v_dim (&own) : 0);
    columns += ls_layer_has_attention (kind) && tp > own.n_kv_heads ? (tp - own.n_kv_heads) * head : 0;
  }
  return lora->rank * columns;
}

/* --- FLOPs ------------------------------------------------------------------------------------------- */

/* Layers of multi-token prediction too. */
static inline uint32_t
n_with (const LsModel *m, uint32_t trait)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++)
    n += (ls_model_layer_kind (m, i) & trait) != 0;
  return n;
}

/* Of a model of one kind, the width of a pair of a key and a value as they are projected: of the key alone
 * where that is the value; 0 where both are another layer's. */
static inline uint32_t
kv_dim (const LsModel *m)
{
  return m->halves.kv_shared_layers > 0 ? 0 : m->head_dim + (m->attn.full_k_is_v ? 0 : ls_model_v_dim (m));
}

/* With more tensor-parallel ranks than key-value heads each rank computes a whole head:
 * 6 FLOPs a token for each weight of K and V that is there more than once. */
static inline double
repeated_head_flops (const LsModel *m, const LsStrategy *s, double tokens)
{
  double weights = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++) {
    LsModel own = ls_model_of_kind (m, ls_model_layer_kind (m, i));
    double n_more = s->tp > own.n_kv_heads ? s->tp - own.n_kv_heads : 0;
    if (ls_layer_has_attention (ls_model_layer_kind (m, i)))
      weights += n_more * kv_dim (&own) * (ls_model_layer_kind (m, i) & LS_LAYER_BLOCK ? 2 : 1);
  }
  return 6.0 * tokens * weights * m->hidden;
}

/* Of groups of mixers that several context-parallel ranks have. These products have no weights: none is
 * frozen. */
static inline double
repeated_group_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  double more = ls_mixer_flops (m, s->tp * s->cp, seq) - ls_mixer_flops (m, 1, seq);
  return 3.0 * s->global_batch * n_with (m, LS_LAYER_MIXER) * more;
}

/* Without sequence parallelism what is not cut is computed by every rank of tp, and so are scores of
 * indexers. */
static inline double
repeated_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  double tokens = (double) s->global_batch * seq, indexed = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m) && !s->sp; i++)
    indexed += ls_model_index_flops (m, ls_model_layer_kind (m, i), seq);
  double whole = s->sp ? 0 : 6 * tokens * (double) whole_params (m) + 3 * s->global_batch * indexed;
  double heads = ls_model_has_latents (m) ? 0 : repeated_head_flops (m, s, tokens);
  return heads + (s->tp - 1.0) * whole;
}

/* Words looked up by a product with a one-hot matrix, as some software does: no FLOPs of the model. */
static inline double
one_hot_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  const LsRecipe *r = ls_recipe_find (s->use.recipes, LS_RECIPE_EMBEDDING, m);
  double tokens = (double) s->global_batch * seq;
  double words = (double) ls_model_padded_vocab (m, s->use.vocab_multiple, s->tp);
  return r && r->is_one_hot ? 4 * tokens * (double) m->hidden * words : 0;
}

/* Attention that is not fused, which only decoders have here, computes what a window hides. */
static inline double
hidden_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  double widths = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m) && s->use.attention == LS_ATTENTION_UNFUSED; i++)
    if (ls_layer_has_attention (ls_model_layer_kind (m, i)))
      widths += (1 - 2 * ls_model_attention_pairs (m, ls_model_layer_kind (m, i), seq))
          * ls_model_attention_width (m, ls_model_layer_kind (m, i));
  return 12 * (double) s->global_batch * seq * seq * widths;
}

/* Kernels of attention without a causal mask compute what counts; those of a causal one half of it, for which
 * all count twice. */
static inline double
two_way_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  return 3 * (double) s->global_batch * ls_model_two_way_flops (m, seq);
}

/* So many rows of experts, for that share of all that tokens are assigned to. */
static inline double
rows_of_share (const LsModel *m, const LsStrategy *s, uint32_t seq,
               double share_of (const LsModel *m, const LsShard *shard))
{
  g_autofree char *why = NULL;
  g_autofree double *share = ls_expert_shares (s->experts.load, m, &why);
  LsShard shard = { .tp = s->tp,
                    .sp = s->sp && s->tp > 1,
                    .micro_batch = s->micro_batch,
                    .seq = seq,
                    .cp = s->cp,
                    .experts.ep = s->ep,
                    .experts.etp = s->experts.etp,
                    .experts.share = share,
                    .experts.capacity = s->experts.capacity,
                    .experts.padding = (LsExpertPadding) s->experts.padding };
  double assignments = (double) s->global_batch * seq * m->moe.top_k * n_with (m, LS_LAYER_EXPERTS);
  return assignments * share_of (m, &shard);
}

static inline double
flops_of_share (const LsModel *m, const LsStrategy *s, uint32_t seq,
                double share_of (const LsModel *m, const LsShard *shard))
{
  return 6 * (double) ls_model_expert_params (m) * rows_of_share (m, s, seq, share_of);
}

/* Of rows of zeros. */
static inline double
blank_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  bool has_none = m->moe.n_experts == 0 || s->experts.padding == LS_EXPERT_PADDING_NONE;
  return has_none ? 0 : flops_of_share (m, s, seq, ls_expert_blank_share);
}

static inline double
computed_share (const LsModel *m, const LsShard *shard)
{
  return ls_expert_kept_share (m, shard) + ls_expert_blank_share (m, shard);
}

/* Tokens that reach experts, and come back, by products with masks: two forward and three backward for each
 * row, with the tokens of a sequence that a rank has. */
static inline double
mask_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  bool has_none
      = !ls_recipes_mask_tokens (s->use.recipes, m) || s->experts.padding != LS_EXPERT_PADDING_CAPACITY;
  uint32_t n_parts = s->cp * (s->sp ? s->tp : 1);
  return has_none ? 0
                  : 10 * (double) ls_model_expert_width (m) * (seq / (double) n_parts)
          * rows_of_share (m, s, seq, computed_share);
}

/* Adapters that every rank of tp has for all tokens: but for some of mixers without sequence parallelism. And
 * copies of those of keys and values. */
static inline double
repeated_adapters (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  const LsLora lora = ls_strategy_lora (s, m);
  double tokens = (double) s->global_batch * seq;
  return 6 * tokens
      * ((s->tp - 1.0) * (double) repeated_adapter_params (m, &lora, s->sp)
         + (double) copied_adapter_params (m, &lora, s->tp));
}

/* Of pairs that a mask hides, which its kernel meets: twice as many, as all of attention counts. */
static inline double
masked_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  if (!s->use.window_mask || s->cp > 1 || s->docs.lengths || s->use.attention != LS_ATTENTION_FLASH)
    return 0;
  double widths = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++) {
    uint32_t kind = ls_model_layer_kind (m, i);
    if (ls_layer_has_attention (kind) && ls_model_masks_window (m, kind, seq))
      widths += 2 * (1 - ls_model_attention_pairs (m, kind, seq)) * ls_model_attention_width (m, kind);
  }
  return 12.0 * s->global_batch * seq * seq * widths;
}

/* What a window leaves out, and attention's backward in fp8 computes all the same: 8 of 12. */
static inline double
unskipped_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  double widths = 0;
  if (s->fp8.attention == LS_FP8_ATTENTION_NONE)
    return 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++) {
    uint32_t kind = ls_model_layer_kind (m, i), all = kind & ~(uint32_t) LS_LAYER_WINDOWED;
    if (ls_layer_has_attention (kind) && kind != all)
      widths += 2 * (ls_model_attention_pairs (m, all, seq) - ls_model_attention_pairs (m, kind, seq))
          * ls_model_attention_width (m, kind);
  }
  return 8.0 * s->global_batch * seq * seq * widths;
}

/* The third that is for gradients of weights is not computed of what is frozen. */
static inline double
of_frozen (const LsStrategy *s, double flops)
{
  return s->lora.rank > 0 ? flops * 2 / 3 : flops;
}

/* Of a step over all ranks, without what runs again. */
static inline double
closed_flops (const LsModel *m, const LsStrategy *s)
{
  uint32_t seq = s->seq ? s->seq : m->seq;
  double one_hot = one_hot_flops (m, s, seq);
  return ls_trained_flops (m, s, seq, false) + of_frozen (s, repeated_flops (m, s, seq))
      + mask_flops (m, s, seq) + repeated_group_flops (m, s, seq) + (s->lora.rank > 0 ? one_hot / 2 : one_hot)
      + hidden_flops (m, s, seq) + two_way_flops (m, s, seq) + masked_flops (m, s, seq)
      + unskipped_flops (m, s, seq) + repeated_adapters (m, s, seq)
      + of_frozen (s, blank_flops (m, s, seq) - ls_dropped_flops (m, s, seq));
}

/* Whether a plan computes as many. */
static inline bool
computes_closed_flops (const LsPlan *plan, const LsModel *m, const LsStrategy *s)
{
  return LS_CHECK_NEAR (ls_plan_model_flops (plan, false, false), closed_flops (m, s), 1e-7);
}

#endif
