#include "strategy/dp_traits.h"

static const LsDpTraits kinds[LS_N_DP_KINDS] = {
  [LS_DP_AUTO] = { .name = "auto" },
  [LS_DP_NONE] = { .name = "none", .keeps_gradients = true, .is_megatron = true },
  [LS_DP_PS] = { .name = "ps",
                 .stages = 1,
                 .expected = "0, as servers sum gradients and each rank keeps the rest",
                 .has_overlap = true,
                 .has_byte_buckets = true,
                 .is_megatron = true },
  [LS_DP_DDP]
  = { .name = "ddp",
      .stages = 1,
      .expected
      = "0, as ddp replicates optimizer, gradients and parameters (--dp-kind fsdp2, deepspeed do not)",
      .keeps_gradients = true,
      .has_overlap = true,
      .has_byte_buckets = true },
  [LS_DP_MEGATRON] = { .name = "megatron",
                       .stages = 1 | 2,
                       .expected = "0 or 1, as Megatron-LM's distributed optimizer shards the optimizer only",
                       .keeps_gradients = true,
                       .has_overlap = true,
                       .has_param_buckets = true,
                       .is_megatron = true },
  [LS_DP_FSDP1] = { .name = "fsdp1",
                    .stages = 4 | 8,
                    .expected = "2 (SHARD_GRAD_OP) or 3 (FULL_SHARD)",
                    .is_fsdp = true,
                    .grad_is_fresh = true },
  [LS_DP_FSDP2] = { .name = "fsdp2",
                    .stages = 4 | 8,
                    .expected = "2 (reshard_after_forward false) or 3",
                    .is_fsdp = true,
                    .has_reshard = true,
                    .grad_is_fresh = true,
                    .reduces_at_the_end = true },
  [LS_DP_DEEPSPEED]
  = { .name = "deepspeed", .stages = 1 | 2 | 4 | 8, .expected = "0 to 3", .has_overlap = true },
  [LS_DP_XLA_FSDP] = { .name = "xla-fsdp",
                       .stages = 8,
                       .expected = "3, as XLA's FSDP shards everything",
                       .is_fsdp = true,
                       .cuts_operators = true,
                       .has_overlap = true },
};

const LsDpTraits *
ls_dp_traits (int dp_kind)
{
  return &kinds[dp_kind];
}
