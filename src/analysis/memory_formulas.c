#include "analysis/memory_formulas.h"

#include <math.h>

#include "model/operators.h"
#include "schedules/sched.h"
#include "strategy/shard.h"

static bool
is_gpt (const LsModel *m)
{
  return !ls_model_has_lists (m) && m->mlp == LS_MLP_GELU && m->ffn == 4 * m->hidden
      && m->n_kv_heads == m->n_heads && m->n_heads * m->head_dim == m->hidden && m->v_dim == 0
      && m->norm == LS_NORM_LAYERNORM && m->norms == LS_NORMS_PRE && m->dropout && m->moe.n_experts == 0;
}

double
ls_layer_activation_bytes (const LsModel *m, const LsStrategy *s)
{
  if (!is_gpt (m) || s->lora.rank > 0 || s->cp > 1 || (s->sp && s->mp.sp_save_gathered)
      || s->use.qkv_layout == LS_QKV_UNPADDED || s->dtype == LS_DTYPE_FP32
      || ls_dtype_is_scaled ((LsDtype) s->dtype))
    return NAN;
  if (s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & LS_RECOMPUTE_MLP)
    return NAN;
  uint32_t seq = s->seq ? s->seq : m->seq;
  double sbh = (double) seq * s->micro_batch * m->hidden, t = s->tp;
  if (s->recompute == LS_RECOMPUTE_FULL)
    return 2 * sbh;
  bool keeps_scores = s->use.attention == LS_ATTENTION_UNFUSED && s->recompute == LS_RECOMPUTE_NONE;
  double scores = keeps_scores ? 5.0 * m->n_heads * seq / m->hidden : 0;
  return s->sp && s->tp > 1 ? sbh / t * (34 + scores) : sbh * (10 + 24 / t + scores / t);
}

double
ls_layers_held (const LsModel *m, const LsStrategy *s, uint32_t pp_rank)
{
  uint32_t n_chunks = s->pp * s->vpp;
  if (s->layout.layers_per_chunk || s->layout.micro_batches_per_replica || m->n_layers % n_chunks != 0)
    return NAN;
  double per_chunk = (double) m->n_layers / n_chunks;
  uint32_t n_mb = ls_strategy_micro_batches (s, 0);
  const LsSched *sched = ls_sched_find (s->schedule);
  if (s->pp == 1 && s->vpp == 1)
    return sched && sched->use == LS_SCHED_ONE_STAGE ? per_chunk : NAN;
  bool is_published = sched && sched->in_flight && !sched->is_split; /* split backwards keep more */
  const LsSchedShape shape = ls_strategy_sched_shape (s, n_mb);
  return is_published ? (double) ls_sched_in_flight (sched, &shape, pp_rank) * per_chunk : NAN;
}

LsMemoryFormula
ls_memory_formula (const LsModel *m, const LsStrategy *s, uint32_t pp_rank, uint64_t n_params)
{
  /* Of mixed precision by whole ranks, with Adam, all of it in fp32: not of experts, replicas of pipes,
   * scaled formats, what is elsewhere or does not learn. */
  bool is_adam = !s->opt.kind && s->opt.master == LS_MASTER_FP32 && s->opt.moment_dtype == LS_DTYPE_FP32
      && s->opt.variance_dtype == LS_DTYPE_FP32;
  bool applies = m->moe.n_experts == 0 && s->lora.rank == 0 && s->memory.offload == LS_OFFLOAD_NONE
      && !ls_dtype_is_scaled ((LsDtype) s->dtype) && !ls_dp_traits (s->dp_kind)->is_fsdp && is_adam;
  const LsSched *sched = ls_sched_find (s->schedule);
  if (!applies || (sched && (sched->placement == LS_PLACE_PIPES || !ls_sched_is_flushed (sched))))
    return (LsMemoryFormula) { NAN, NAN, NAN,
                               ls_layer_activation_bytes (m, s) * ls_layers_held (m, s, pp_rank) };
  bool is_fp32 = s->dtype == LS_DTYPE_FP32;
  double n = (double) n_params, d = s->data.zero_group > 0 ? s->data.zero_group : (double) s->dp * s->cp;
  return (LsMemoryFormula) {
    .parameters = (is_fp32 ? 4 : 2) * n / (s->zero_stage >= 3 ? d : 1),
    .gradients = (double) ls_dtype_bytes ((LsDtype) s->opt.grad_dtype) * n / (s->zero_stage >= 2 ? d : 1)
        * (ls_strategy_has_buckets (s) ? 2 : 1),
    .optimizer = (is_fp32 ? 8 : 12) * n / (s->zero_stage >= 1 ? d : 1),
    .activations = ls_layer_activation_bytes (m, s) * ls_layers_held (m, s, pp_rank),
  };
}
