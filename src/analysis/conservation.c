#include "analysis/conservation.h"

#include <math.h>

#include <lockstep/error.h>

#include "model/expert_load.h"
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

double
ls_dropped_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  if (m->moe.n_experts == 0 || s->experts.capacity <= 0)
    return 0;
  g_autofree char *why = NULL;
  g_autofree double *share = ls_expert_shares (s->experts.load, m, &why);
  LsShard shard = ls_strategy_shard (s, m);
  shard.seq = seq;
  shard.experts.share = share;
  double n_layers = 0;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++)
    n_layers += (ls_model_layer_kind (m, i) & LS_LAYER_EXPERTS) != 0;
  double assignments = (double) s->global_batch * seq * m->moe.top_k * n_layers;
  return 6 * (double) ls_model_expert_params (m) * assignments * (1 - ls_expert_kept_share (m, &shard));
}

/* What the mean micro-batch has of several documents in a sequence; NULL: whole sequences. */
static LsPacking *
packing_of (const LsStrategy *s, const LsModel *m, uint32_t seq)
{
  LsStrategy mean = *s; /* borrows */
  LsPacking *packing = NULL;
  mean.seq = seq;
  mean.docs.draw = LS_LENGTHS_MEAN;
  ls_packing_new (&mean, m, &packing, NULL);
  return packing;
}

double
ls_trained_flops (const LsModel *m, const LsStrategy *s, uint32_t seq, bool is_causal)
{
  const LsLora lora = ls_strategy_lora (s, m);
  uint64_t vocab = ls_model_padded_vocab (m, s->use.vocab_multiple, s->tp);
  g_autoptr (LsPacking) packing = packing_of (s, m, seq);
  return ls_model_flops (m, vocab, seq, s->global_batch, is_causal)
      - ls_lora_flops_saved (m, &lora, vocab, seq, s->global_batch)
      - (packing ? ls_documents_flops_between (m, &packing->mean, seq, s->global_batch, is_causal) : 0);
}

/* --- what operators ask for ------------------------------------------------------------------------- */

/* Sums of up to 10^8 terms that are each exact to 2^-53. */
#define FLOPS_TOLERANCE 1e-7

/* The operators of a rank, over documents that are the mean of the step. */
typedef struct {
  const LsModel *model;
  LsShard shard;
  const LsDocuments *documents; /* NULL: whole sequences */
} Rank;

static double
kernels_flops (const Rank *r, const LsOperator *o, const LsKernel *kernels, uint32_t n)
{
  double flops = 0;
  for (uint32_t i = 0; i < n; i++) {
    LsKernel k = kernels[i];
    if (r->documents && ls_kernel_is_attention (k.kind))
      ls_documents_apply (r->documents, o->layer_kind, 0, &k);
    flops += model_flops_of (&k, false);
  }
  return flops;
}

/* Attention that is cut over cp, in the mean over its ranks. */
static double
context_flops (const Rank *r, const LsOperator *o)
{
  LsContextPlace at = { .layer_kind = o->layer_kind };
  LsShard shard = r->shard;
  double flops = 0;
  shard.documents = r->documents;
  for (; at.cp_rank < shard.cp; at.cp_rank++)
    for (at.step = 0; at.step < ls_context_n_steps (&shard); at.step++) {
      LsContextStep s;
      ls_context_step (r->model, &shard, at, &s);
      flops += s.is_idle ? 0 : model_flops_of (&s.fwd, false) + model_flops_of (&s.bwd, false);
    }
  return flops / shard.cp;
}

/* Takes the operators away. */
static double
operators_flops (const Rank *r, GArray *operators)
{
  double flops = 0;
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    if (o->comm.is_context_parallel)
      flops += context_flops (r, o);
    else
      flops += kernels_flops (r, o, o->fwd, o->n_fwd) + kernels_flops (r, o, o->igrad, o->n_igrad)
          + kernels_flops (r, o, o->wgrad, o->n_wgrad);
  }
  g_array_set_size (operators, 0);
  return flops;
}

/* Of a micro-batch that passes the whole model. */
static double
passes_flops (const Rank *r)
{
  const LsModel *m = r->model;
  uint32_t first[LS_MAX_MODEL_KINDS], n_kinds = ls_model_first_of_kinds (m, first);
  double of_kind[LS_MAX_MODEL_KINDS];
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_embedding (m, &r->shard, operators);
  if (r->shard.sides_are_apart)
    ls_operators_decoder_embedding (m, &r->shard, operators);
  ls_operators_head (m, &r->shard, true, operators);
  double flops = operators_flops (r, operators);
  for (uint32_t k = 0; k < n_kinds; k++) {
    ls_operators_layer (m, &r->shard, first[k], operators);
    of_kind[k] = operators_flops (r, operators);
  }
  for (uint32_t i = 0; i < m->n_layers; i++)
    flops += of_kind[ls_model_kind_place (m, first, n_kinds, i)];
  return flops;
}

/* Of a step, over all ranks; those of an expert-parallel group differ where tokens fall on them unevenly. */
static double
asked_flops (const LsModel *m, const LsStrategy *s)
{
  g_autoptr (LsPacking) packing = packing_of (s, m, s->seq);
  g_autofree char *why = NULL;
  g_autofree double *share = ls_expert_shares (s->experts.load, m, &why);
  Rank rank = { m, ls_strategy_shard (s, m), packing ? &packing->mean : NULL };
  rank.shard.experts.share = share;
  uint32_t n = ls_expert_ranks_differ (m, &rank.shard) ? s->ep : 1;
  double sum = 0;
  for (; rank.shard.experts.ep_rank < n; rank.shard.experts.ep_rank++)
    sum += passes_flops (&rank);
  return sum / n * s->tp * s->cp * s->global_batch / s->micro_batch;
}

gboolean
ls_conserves_flops (const LsPlan *plan, const LsModel *m, const LsStrategy *s, GError **error)
{
  double asked = asked_flops (m, s), done = ls_plan_model_flops (plan, false, false);
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
