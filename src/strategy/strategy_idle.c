/* strategy/strategy_idle.c — which options of a strategy make no difference to a job, and why. */
#include "strategy/strategy.h"

#include <string.h>

#include "model/expert_load.h"

bool
ls_strategy_recompute_frees_nothing (const LsStrategy *s)
{
  return s->recompute == LS_RECOMPUTE_SELECTIVE && s->recompute_parts == LS_RECOMPUTE_CORE
      && s->attention == LS_ATTENTION_FLASH;
}

bool
ls_strategy_recomputes_nothing (const LsStrategy *s)
{
  return ls_strategy_recompute_frees_nothing (s) && !s->recompute_flash;
}

/* --- conditions: true where the knobs named below make no difference --- */

typedef bool Condition (const LsStrategy *s, const LsModel *m);

#define CONDITION(name, expression)                                                                          \
  static bool name (const LsStrategy *s, const LsModel *m)                                                   \
  {                                                                                                          \
    return expression;                                                                                       \
  }

CONDITION (has_one_tp, s->tp == 1)
CONDITION (has_one_stage, s->pp == 1)
CONDITION (has_one_degree,
           (s->tp > 1) + (s->cp > 1) + (s->dp > 1) + (s->pp > 1) <= 1
               && (m->n_experts == 0 || s->ep == 1 || s->tp * s->cp * s->dp == s->ep * s->etp))
CONDITION (has_one_rank, s->tp * s->cp * s->dp * s->pp == 1)
CONDITION (has_one_cp, s->cp == 1)
CONDITION (has_cp, s->cp > 1)
CONDITION (has_one_copy, s->dp_kind == LS_DP_NONE)
CONDITION (has_one_issued_copy, s->dp_kind == LS_DP_NONE && !s->is_compiled)
CONDITION (has_no_sp, !s->sp)
CONDITION (fetches_everywhere_or_never, !s->batch_sync || s->pp * s->vpp <= 2 || s->p2p == LS_P2P_DEEPSPEED)
CONDITION (has_one_ep, s->ep == 1)
CONDITION (has_no_experts, m->n_experts == 0)
CONDITION (has_no_nccl_tp, s->tp == 1 || s->tp_overlap)
CONDITION (has_no_nccl_ep, s->ep == 1 || s->dispatcher != LS_DISPATCHER_ALL_TO_ALL)
CONDITION (is_not_deepep, s->ep == 1 || s->dispatcher != LS_DISPATCHER_DEEPEP)
CONDITION (is_all_to_all, s->ep == 1 || s->dispatcher == LS_DISPATCHER_ALL_TO_ALL)
CONDITION (sends_to_each_expert, is_all_to_all (s, m) && ls_expert_load_is_in_turn (s->expert_load))
CONDITION (has_no_ep_overlap, !s->ep_overlap)
CONDITION (has_even_attention, s->cp_kind == LS_CP_ULYSSES)
CONDITION (is_unfused, s->attention == LS_ATTENTION_UNFUSED)
CONDITION (is_not_fp8, s->dtype != LS_DTYPE_FP8)
CONDITION (has_own_scales, !ls_strategy_delays_scales (s) || s->tp * s->cp * s->dp == 1)
CONDITION (is_not_scaled, !ls_dtype_is_scaled ((LsDtype) s->dtype))
CONDITION (has_no_tp_overlap, !s->tp_overlap)
CONDITION (is_fsdp, s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2)
CONDITION (is_fp32, s->dtype == LS_DTYPE_FP32)
CONDITION (is_not_fsdp1, s->dp_kind != LS_DP_FSDP1)
CONDITION (is_not_fsdp2, s->dp_kind != LS_DP_FSDP2)
CONDITION (is_not_torch_fsdp, s->dp_kind != LS_DP_FSDP1 && s->dp_kind != LS_DP_FSDP2)
CONDITION (has_no_ddp_buckets, s->dp_kind != LS_DP_DDP && s->dp_kind != LS_DP_PS)
CONDITION (has_no_reducer, s->dp_kind != LS_DP_DDP || !s->dp_overlap)
CONDITION (has_no_servers, s->dp_kind != LS_DP_PS)
CONDITION (is_not_xla, s->dp_kind != LS_DP_XLA_FSDP || !s->dp_overlap)
CONDITION (is_not_looped, s->dp_kind != LS_DP_XLA_FSDP)
CONDITION (is_not_megatron, s->dp_kind != LS_DP_MEGATRON)
CONDITION (is_not_megatron1, s->dp_kind != LS_DP_MEGATRON || s->zero_stage == 0)
CONDITION (is_not_deepspeed, s->dp_kind != LS_DP_DEEPSPEED)
CONDITION (is_not_deepspeed12, s->dp_kind != LS_DP_DEEPSPEED || s->zero_stage == 0 || s->zero_stage == 3)
CONDITION (is_not_deepspeed3, s->dp_kind != LS_DP_DEEPSPEED || s->zero_stage != 3)
CONDITION (has_masters, s->dp_kind != LS_DP_NONE && s->dp_kind != LS_DP_DDP && s->master == LS_MASTER_FP32)
CONDITION (is_not_offloaded, s->offload == LS_OFFLOAD_NONE)
CONDITION (keeps_core, s->recompute != LS_RECOMPUTE_SELECTIVE || !(s->recompute_parts & LS_RECOMPUTE_CORE))
CONDITION (is_not_full, s->recompute != LS_RECOMPUTE_FULL)
CONDITION (offloads_no_activations, !s->offload_activations)
CONDITION (is_not_selective, s->recompute != LS_RECOMPUTE_SELECTIVE)
CONDITION (recomputes_nothing, ls_strategy_recomputes_nothing (s))
CONDITION (has_no_parts_to_name, ls_strategy_recomputes_nothing (s) && s->lora_rank > 0)
CONDITION (is_not_overlapped, s->p2p != LS_P2P_OVERLAPPED)
CONDITION (scatters_nothing, s->p2p == LS_P2P_SCATTER_GATHER && s->tp == 1)
CONDITION (has_no_lora, s->lora_rank == 0)
CONDITION (drops_nothing,
           ls_expert_load_is_even (s->expert_load) && s->expert_capacity >= 1
               && s->expert_padding != LS_EXPERT_PADDING_CAPACITY)
CONDITION (has_lone_experts, s->expert_padding != LS_EXPERT_PADDING_CAPACITY && m->n_experts == s->ep)
CONDITION (pads_nothing,
           ls_expert_load_is_even (s->expert_load)
               && (s->expert_padding != LS_EXPERT_PADDING_CAPACITY || s->expert_capacity == 1))
CONDITION (has_no_lengths, !s->lengths)
CONDITION (has_lengths, s->lengths)
CONDITION (has_mean_lengths, !s->lengths || s->lengths_draw == LS_LENGTHS_MEAN)
CONDITION (has_no_attention, ls_model_n_attention_layers (m) == 0)
CONDITION (has_no_layernorm, !ls_norm_is_layernorm (m->norm))
CONDITION (has_no_bias, !m->linear_bias)
CONDITION (has_no_norm, !s->grad_norm)
CONDITION (has_no_window, m->window == 0 && m->n_layer_window == 0)
CONDITION (has_whole_optimizer, s->zero_stage == 0)
CONDITION (deals_tensors, s->optimizer_cut == LS_OPTIMIZER_CUT_TENSORS)
CONDITION (needs_no_matrices,
           !s->optimizer_kind
               || !(ls_optimizer_multiplies (s->optimizer_kind) || ls_optimizer_factors (s->optimizer_kind)))
CONDITION (multiplies_nothing, !s->optimizer_kind || !ls_optimizer_multiplies (s->optimizer_kind))

static bool
has_alike_replicas (const LsStrategy *s, const LsModel *m)
{
  for (uint32_t d = 1; d < s->n_micro_batches_per_replica; d++)
    if (s->micro_batches_per_replica[d] != s->micro_batches_per_replica[0])
      return false;
  return true;
}

static const struct {
  const char *key;
  Condition *is_idle;
  const char *why;
} rules[] = {
  { "rank_order", has_one_degree, "one degree at most is above 1" },
  { "placement", has_one_rank, "there is one rank" },
  { "micro_batches_per_replica", has_alike_replicas, "all replicas have as many" },
  { "sp", has_one_tp, "tp is 1" },
  { "sp_save_gathered", has_no_sp, "it needs --sp, and tp above 1" },
  { "tp_overlap", has_one_tp, "tp is 1" },
  { "tp_overlap_kind", has_no_tp_overlap, "it needs --tp-overlap 1" },
  { "tp_overlap_margin", has_no_tp_overlap, "it needs --tp-overlap 1" },
  { "tp_async", has_one_tp, "tp is 1" },
  { "tp_max_ctas", has_no_nccl_tp, "tp is 1, or tp_overlap has communication of its own" },
  { "cp_max_ctas", has_one_cp, "cp is 1" },
  { "ep_max_ctas", has_no_nccl_ep,
    "ep is 1, or the dispatcher's kernels have blocks of their own (--dispatch-sms)" },
  { "dp_max_ctas", has_one_copy, "nothing is reduced over copies" },
  { "pp_max_ctas", has_one_stage, "pp is 1" },
  { "expert_capacity", drops_nothing,
    "tokens fall on experts evenly (--expert-load): none has more than the mean" },
  { "expert_load", sends_to_each_expert,
    "it needs ep above 1 and --dispatcher deepep or hybridep: else a token is sent to each of its experts" },
  { "expert_padding", has_no_experts, "the model has no experts" },
  { "expert_padding", has_lone_experts, "a rank has one expert, which is its fullest" },
  { "expert_padding", pads_nothing, "tokens fall on experts evenly (--expert-load): they are alike" },
  { "dispatcher", has_one_ep, "ep is 1" },
  { "dispatch_sms", is_all_to_all, "it needs ep above 1 and --dispatcher deepep or hybridep" },
  { "dispatch_fp8", is_not_deepep, "it needs ep above 1 and --dispatcher deepep" },
  { "dispatch_margin", is_all_to_all, "it needs ep above 1 and --dispatcher deepep or hybridep" },
  { "grouped_gemm", has_no_experts, "the model has no experts" },
  { "ep_overlap", has_one_ep, "ep is 1" },
  { "delay_wgrad", has_no_ep_overlap, "it needs --ep-overlap 1" },
  { "shared_overlap", has_one_ep, "ep is 1" },
  { "cp_kind", has_one_cp, "cp is 1" },
  { "cp_steps", has_one_cp, "cp is 1" },
  { "cp_steps", has_even_attention, "with ulysses each rank has whole sequences of some heads" },
  { "cp_balance", has_one_cp, "cp is 1" },
  { "cp_balance", has_even_attention, "with ulysses each rank has whole sequences of some heads" },
  { "zero", has_one_copy, "there is one copy of the model: dp and cp are 1" },
  { "dp_kind", has_one_issued_copy, "there is one copy of the model: dp and cp are 1" },
  { "dp_overlap", has_one_copy, "there is one copy of the model: dp and cp are 1" },
  { "dp_overlap", is_fsdp, "FSDP always reduces together with the backward" },
  { "grad_sync", has_one_copy, "there is one copy of the model: dp and cp are 1" },
  { "loop_overlap", is_not_xla, "it needs --dp-kind xla-fsdp with --dp-overlap 1" },
  { "loop_copies", is_not_looped, "it needs --dp-kind xla-fsdp" },
  { "gather_overlap", is_not_megatron1, "it needs --dp-kind megatron with --zero 1" },
  { "gather_overlap", deals_tensors, "tensors that are dealt out are gathered after the step" },
  { "master", has_masters, "it needs one copy of the model, or --dp-kind ddp" },
  { "optimizer_cut", has_whole_optimizer, "zero is 0: each rank steps on all of its parameters" },
  { "optimizer_cut", needs_no_matrices, "the optimizer steps on each element by itself" },
  { "optimizer_tp", has_one_tp, "tp is 1" },
  { "optimizer_tp", multiplies_nothing, "the optimizer multiplies no matrices" },
  { "layers_per_unit", is_not_torch_fsdp, "it needs --dp-kind fsdp1 or fsdp2" },
  { "narrow_shards", is_not_torch_fsdp, "it needs --dp-kind fsdp1 or fsdp2" },
  { "narrow_shards", is_fp32, "weights are fp32" },
  { "limit_all_gathers", is_not_fsdp1, "it needs --dp-kind fsdp1" },
  { "backward_prefetch", is_not_fsdp1, "it needs --dp-kind fsdp1" },
  { "forward_prefetch", is_not_torch_fsdp, "it needs --dp-kind fsdp1 or fsdp2" },
  { "backward_prefetch_units", is_not_fsdp2, "it needs --dp-kind fsdp2" },
  { "reshard_after_forward", is_not_fsdp2, "it needs --dp-kind fsdp2" },
  { "reduce_bucket", is_not_deepspeed, "it needs --dp-kind deepspeed" },
  { "allgather_bucket", is_not_deepspeed12, "it needs --dp-kind deepspeed with --zero 1 or 2" },
  { "prefetch_bucket", is_not_deepspeed3, "it needs --dp-kind deepspeed with --zero 3" },
  { "persistence_threshold", is_not_deepspeed3, "it needs --dp-kind deepspeed with --zero 3" },
  { "max_live_params", is_not_deepspeed3, "it needs --dp-kind deepspeed with --zero 3" },
  { "max_reuse_distance", is_not_deepspeed3, "it needs --dp-kind deepspeed with --zero 3" },
  { "collective_lists", is_not_deepspeed3, "it needs --dp-kind deepspeed with --zero 3" },
  { "offload_to", is_not_offloaded, "it needs --offload optimizer or parameters" },
  { "ps_servers", has_no_servers, "it needs --dp-kind ps" },
  { "bucket_bytes", has_no_ddp_buckets, "it needs --dp-kind ddp or ps" },
  { "bucket_view", has_no_reducer, "it needs --dp-kind ddp, and --dp-overlap" },
  { "bucket_params", is_not_megatron, "it needs --dp-kind megatron" },
  { "grad_check", is_not_megatron, "it needs --dp-kind megatron" },
  { "p2p", has_one_stage, "pp is 1" },
  { "p2p", scatters_nothing, "tp is 1: there is nothing to scatter" },
  { "pipeline_batch", has_one_stage, "pp is 1" },
  { "p2p_warmup_flush", is_not_overlapped, "it needs --p2p overlapped" },
  { "post_validation", has_no_norm, "no norm of the gradients is taken" },
  { "recompute", has_no_parts_to_name,
    "flash attention computes its inside again by itself; together with adapters --recompute full drops "
    "more" },
  { "recompute", recomputes_nothing,
    "flash attention computes its inside again by itself; --recompute-parts norm,activation drops more" },
  { "recompute_parts", is_not_selective, "it needs --recompute selective" },
  { "recompute_flash", keeps_core, "it needs --recompute selective with the part core" },
  { "recompute_flash", is_unfused, "it needs --attention flash" },
  { "recompute_method", is_not_full, "it needs --recompute full" },
  { "partition_activations", has_one_tp, "tp is 1" },
  { "recompute_layers", is_not_full, "it needs --recompute full" },
  { "recompute_early_stop", is_not_full, "it needs --recompute full" },
  { "offload_layers", offloads_no_activations, "it needs --offload-activations" },
  { "apex_norm", has_no_layernorm, "the model has no layer norms" },
  { "batch_ends", fetches_everywhere_or_never, "it needs --set batch_sync=1 and more than two stages" },
  { "split_bias_dropout", has_no_bias, "the model's products have no bias" },
  { "attention_kernel", is_unfused, "it needs --attention flash" },
  { "qkv_layout", is_unfused, "it needs --attention flash" },
  { "window_mask", is_unfused, "attention that is not fused masks anyway" },
  { "window_mask", has_no_window, "no layer of the model has a window" },
  { "window_mask", has_cp, "it needs --cp 1" },
  { "window_mask", has_lengths, "kernels that keep documents apart skip what a window leaves out" },
  { "fp8_recipe", is_not_fp8, "it needs --dtype fp8" },
  { "fp8_linear", is_not_fp8, "it needs --dtype fp8" },
  { "fp8_amax_reduction", has_own_scales,
    "it needs --dtype fp8 --fp8-recipe delayed, and more than one rank" },
  { "fp8_attention", is_not_scaled, "it needs --dtype fp8 or nvfp4" },
  { "bf16_first", is_not_scaled, "it needs --dtype fp8 or nvfp4" },
  { "bf16_experts", is_not_scaled, "it needs --dtype fp8 or nvfp4" },
  { "bf16_experts", has_no_experts, "the model has no experts" },
  { "bf16_last", is_not_scaled, "it needs --dtype fp8 or nvfp4" },
  { "module_formats", is_not_scaled, "it needs --dtype fp8 or nvfp4" },
  { "fp8_params", is_not_fp8, "it needs --dtype fp8" },
  { "lengths", has_no_attention, "the model has no attention" },
  { "lengths_draw", has_no_lengths, "it needs --lengths" },
  { "lengths_balance", has_mean_lengths, "it needs --lengths, and --lengths-draw each" },
  { "lengths_seed", has_no_lengths, "it needs --lengths" },
  { "lora_modules", has_no_lora, "it needs --lora-rank" },
  { "qlora", has_no_lora, "it needs --lora-rank" },
};

const char *
ls_strategy_idle (const LsStrategy *s, const LsModel *m, const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (rules); i++)
    if (strcmp (rules[i].key, key) == 0 && rules[i].is_idle (s, m))
      return rules[i].why;
  return NULL;
}
