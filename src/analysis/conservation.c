#include "analysis/conservation.h"

#include <math.h>

#include <lockstep/error.h>

#include "model/compressed.h"
#include "model/expert_load.h"
#include "model/mixer.h"
#include "model/predict.h"
#include "strategy/shard.h"

/* FLOPs of a kernel as model FLOPs count them: matrix products only, and
 * attention over all pairs of positions, or as a causal mask leaves them. A decoder's kernels are causal and
 * compute half of the pairs, or parts of that half (cp): of all pairs, what they compute counts twice. The
 * backward of attention counts twice its forward, of which its kernel has 2.5: what a flash
 * kernel recomputes inside is not the recipe's recomputation. */
static double
model_flops_of (const LsKernel *k, bool is_causal)
{
  double pairs = is_causal ? 1 : 2;
  switch (k->kind) {
  case LS_KERNEL_GEMM:
  case LS_KERNEL_BATCHED_GEMM:
    return k->flops;
  case LS_KERNEL_ATTENTION_FWD:
    return pairs * k->flops;
  case LS_KERNEL_ATTENTION_BWD:
    return pairs * k->flops * 2 / 2.5;
  default:
    return 0;
  }
}

static double
flops_of_segment (const LsPlan *plan, const LsSegment *segment, bool is_recomputed, bool is_causal)
{
  double flops = 0;
  for (uint32_t i = 0; i < segment->n_ops; i++) {
    const LsOp *op = &segment->ops[i];
    if (ls_op_takes (op->kind, LS_TAKES_GPU) && op->tag != LS_TAG_OPTIMIZER
        && (op->tag == LS_TAG_RECOMPUTE) == is_recomputed && op->kernel != UINT32_MAX)
      flops += model_flops_of (&plan->kernels[op->kernel], is_causal);
  }
  return flops;
}

double
ls_plan_model_flops (const LsPlan *plan, bool is_recomputed, bool is_causal)
{
  g_autofree double *of_segment = g_new (double, plan->n_segments);
  for (uint32_t i = 0; i < plan->n_segments; i++)
    of_segment[i] = flops_of_segment (plan, &plan->segments[i], is_recomputed, is_causal);

  g_autofree uint64_t *n_ranks = ls_plan_ranks_of_roles (plan);
  double flops = 0;
  for (uint32_t role = 0; role < plan->n_roles; role++) {
    const LsProgram *program = &plan->programs[role];
    double of_rank = 0;
    for (uint32_t i = program->n_lead; i < program->n_instances; i++)
      of_rank += of_segment[program->instances[i].segment];
    flops += of_rank * n_ranks[role];
  }
  return flops;
}

/* Sums of up to 10^8 terms that are each exact to 2^-53. */
#define FLOPS_TOLERANCE 1e-7

/* Layers of multi-token prediction too. */
static uint32_t
n_with (const LsModel *m, uint32_t trait)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++)
    n += (ls_model_layer_kind (m, i) & trait) != 0;
  return n;
}

/* With more tensor-parallel ranks than key-value heads each rank computes a whole head:
 * 6 FLOPs a token for each weight of K and V that is there more than once. */
static double
repeated_head_flops (const LsModel *m, const LsStrategy *s, double tokens)
{
  double weights = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++) {
    LsModel own = ls_model_of_kind (m, ls_model_layer_kind (m, i));
    double n_more = s->tp > own.n_kv_heads ? s->tp - own.n_kv_heads : 0;
    if (ls_layer_has_attention (ls_model_layer_kind (m, i)))
      weights += n_more * ls_model_kv_dim (&own) * (ls_model_layer_kind (m, i) & LS_LAYER_BLOCK ? 2 : 1);
  }
  return 6.0 * tokens * weights * m->hidden;
}

/* Of groups of mixers that several context-parallel ranks have. These products have no weights: none is
 * frozen. */
static double
repeated_group_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  double more = ls_mixer_flops (m, s->tp * s->cp, seq) - ls_mixer_flops (m, 1, seq);
  return 3.0 * s->global_batch * n_with (m, LS_LAYER_MIXER) * more;
}

/* Without sequence parallelism what is not cut is computed by every rank of tp, and so are scores of
 * indexers. */
static double
repeated_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  double tokens = (double) s->global_batch * seq, indexed = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m) && !s->sp; i++)
    indexed += ls_model_index_flops (m, ls_model_layer_kind (m, i), seq);
  double whole = s->sp ? 0 : 6 * tokens * (double) ls_model_whole_params (m) + 3 * s->global_batch * indexed;
  double heads = ls_model_has_latents (m) ? 0 : repeated_head_flops (m, s, tokens);
  return heads + (s->tp - 1.0) * whole;
}

/* Words looked up by a product with a one-hot matrix, as some software does: no FLOPs of the model. */
static double
one_hot_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  const LsRecipe *r = ls_recipe_find (s->use.recipes, LS_RECIPE_EMBEDDING, m);
  double tokens = (double) s->global_batch * seq;
  double words = (double) ls_model_padded_vocab (m, s->use.vocab_multiple, s->tp);
  return r && r->is_one_hot ? 4 * tokens * (double) m->hidden * words : 0;
}

/* Attention that is not fused, which only decoders have here, computes what a window hides. */
static double
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
static double
two_way_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  return 3 * (double) s->global_batch * ls_model_two_way_flops (m, seq);
}

/* So many rows of experts, for that share of all that tokens are assigned to. */
static double
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
                    .ep = s->ep,
                    .etp = s->experts.etp,
                    .expert_share = share,
                    .expert_capacity = s->experts.capacity,
                    .expert_padding = (LsExpertPadding) s->experts.padding };
  double assignments = (double) s->global_batch * seq * m->moe.top_k * n_with (m, LS_LAYER_EXPERTS);
  return assignments * share_of (m, &shard);
}

static double
flops_of_share (const LsModel *m, const LsStrategy *s, uint32_t seq,
                double share_of (const LsModel *m, const LsShard *shard))
{
  return 6 * (double) ls_model_expert_params (m) * rows_of_share (m, s, seq, share_of);
}

static double
dropped_share (const LsModel *m, const LsShard *shard)
{
  return 1 - ls_expert_kept_share (m, shard);
}

double
ls_dropped_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  return m->moe.n_experts == 0 || s->experts.capacity <= 0 ? 0 : flops_of_share (m, s, seq, dropped_share);
}

/* Of rows of zeros. */
static double
blank_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  bool has_none = m->moe.n_experts == 0 || s->experts.padding == LS_EXPERT_PADDING_NONE;
  return has_none ? 0 : flops_of_share (m, s, seq, ls_expert_blank_share);
}

static double
computed_share (const LsModel *m, const LsShard *shard)
{
  return ls_expert_kept_share (m, shard) + ls_expert_blank_share (m, shard);
}

/* Tokens that reach experts, and come back, by products with masks: two forward and three backward for each
 * row, with the tokens of a sequence that a rank has. */
static double
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
static double
repeated_adapters (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  const LsLora lora = ls_strategy_lora (s, m);
  double tokens = (double) s->global_batch * seq;
  return 6 * tokens
      * ((s->tp - 1.0) * (double) ls_lora_repeated_params (m, &lora, s->sp)
         + (double) ls_lora_copied_params (m, &lora, s->tp));
}

/* Of pairs that a mask hides, which its kernel meets: twice as many, as all of attention counts. */
static double
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
static double
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
static double
of_frozen (const LsStrategy *s, double flops)
{
  return s->lora.rank > 0 ? flops * 2 / 3 : flops;
}

/* Of a step of sequences with several documents, attention from one to another. */
static double
flops_between_documents (const LsModel *m, const LsStrategy *s, uint32_t seq, bool is_causal)
{
  LsStrategy mean = *s; /* borrows */
  g_autoptr (LsPacking) packing = NULL;
  mean.seq = seq;
  mean.docs.draw = LS_LENGTHS_MEAN;
  if (!ls_packing_new (&mean, m, &packing, NULL) || !packing)
    return 0;
  return ls_documents_flops_between (m, &packing->mean, seq, s->global_batch, is_causal);
}

double
ls_trained_flops (const LsModel *m, const LsStrategy *s, uint32_t seq, bool is_causal)
{
  const LsLora lora = ls_strategy_lora (s, m);
  uint64_t vocab = ls_model_padded_vocab (m, s->use.vocab_multiple, s->tp);
  return ls_model_flops (m, vocab, seq, s->global_batch, is_causal)
      - ls_lora_flops_saved (m, &lora, vocab, seq, s->global_batch)
      - flops_between_documents (m, s, seq, is_causal);
}

gboolean
ls_conserves_flops (const LsPlan *plan, const LsModel *m, const LsStrategy *s, GError **error)
{
  uint32_t seq = s->seq ? s->seq : m->seq;
  double one_hot = one_hot_flops (m, s, seq);
  double asked = ls_trained_flops (m, s, seq, false) + of_frozen (s, repeated_flops (m, s, seq))
      + mask_flops (m, s, seq) + repeated_group_flops (m, s, seq) + (s->lora.rank > 0 ? one_hot / 2 : one_hot)
      + hidden_flops (m, s, seq) + two_way_flops (m, s, seq) + masked_flops (m, s, seq)
      + unskipped_flops (m, s, seq) + repeated_adapters (m, s, seq)
      + of_frozen (s, blank_flops (m, s, seq) - ls_dropped_flops (m, s, seq));
  double done = ls_plan_model_flops (plan, false, false);
  return fabs (done - asked) <= FLOPS_TOLERANCE * asked
      || ls_fail (
             error, LS_ERROR_FAILED,
             "internal error: the kernels of a step compute %.17g FLOPs without what they recompute; the "
             "model has %.17g",
             done, asked);
}

gboolean
ls_conserves_memory (const LsMemory *memory, GError **error)
{
  for (uint32_t i = 0; i < memory->n_classes; i++)
    for (int c = 0; c < LS_N_MEM; c++) {
      const LsClassMemory *m = &memory->classes[i];
      uint64_t begin = m->at_begin[c], end = m->at_end[c];
      if (begin == end && m->overfreed_bytes == 0)
        continue;
      return ls_fail (error, LS_ERROR_FAILED,
                      "internal error: a step of role %u begins with %" G_GUINT64_FORMAT
                      " bytes of %s and ends with %" G_GUINT64_FORMAT "; %" G_GUINT64_FORMAT
                      " bytes were freed "
                      "that were not "
                      "alive",
                      m->role, begin, ls_mem_category_names[c].name, end, m->overfreed_bytes);
    }
  return TRUE;
}
