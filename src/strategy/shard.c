#include "strategy/shard.h"

#include "strategy/dp_traits.h"

LsLora
ls_strategy_lora (const LsStrategy *s, const LsModel *m)
{
  LsLora lora = { .rank = s->lora_rank, .is_nf4 = s->qlora };
  g_autofree char *wrong = NULL;
  if (lora.rank > 0)
    ls_lora_modules (m, s->lora_modules, &lora.modules, &wrong);
  return lora;
}

LsShard
ls_strategy_shard (const LsStrategy *s, const LsModel *m)
{
  return (LsShard) {
    .tp = s->tp,
    .sp = s->sp && s->tp > 1,
    .micro_batch = s->micro_batch,
    .seq = s->seq,
    .attention = (LsAttention) s->attention,
    .qkv_layout = (LsQkvLayout) s->qkv_layout,
    .loss = (LsLoss) s->loss_kernel,
    .train_metrics = s->train_metrics,
    .dtype = (LsDtype) s->dtype,
    .grad_dtype = (LsDtype) s->grad_dtype,
    .cp = s->cp,
    .cp_kind = (LsCpKind) s->cp_kind,
    .cp_balance = s->cp_balance,
    .sp_save_gathered = s->sp_save_gathered,
    .ep = s->ep,
    .etp = s->etp,
    .sends_tokens_once = s->dispatcher == LS_DISPATCHER_DEEPEP && s->ep > 1,
    .dispatch_fp8 = s->dispatcher == LS_DISPATCHER_DEEPEP && s->dispatch_fp8,
    .shared_is_beside = s->shared_overlap && s->ep > 1,
    .expert_capacity = s->expert_capacity,
    .fp8_act_store = s->fp8_act_store,
    .fp8_recipe = (LsFp8Recipe) s->fp8_recipe,
    .bf16_first = s->bf16_first,
    .bf16_last = s->bf16_last,
    .apex_norm = s->apex_norm,
    .bias_is_apart = s->split_bias_dropout,
    .grad_is_fused = s->grad_fusion,
    .grad_is_cast = s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage <= 1 && s->dtype == LS_DTYPE_BF16
        && s->grad_dtype == LS_DTYPE_FP32,
    .grad_is_fresh = ls_dp_traits (s->dp_kind)->grad_is_fresh,
    .recipes = s->recipes,
    .lora = ls_strategy_lora (s, m),
    .gathers_in_pieces = s->sp && s->tp > 1 && s->tp_overlap && s->tp_overlap_kind == LS_TP_OVERLAP_RING,
  };
}
