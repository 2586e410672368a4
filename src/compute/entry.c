#include "compute/entry.h"

const char *
ls_entry_key (guint slot)
{
  static const char *const others[]
      = { "gemm_fp8", "gemm_fp8_blocks", "gemm_nvfp4", "attention_fp8", "vllm_rmsnorm", "vllm_silu_mul",
          "fa1_fwd",  "fa1_bwd",         "triton_fwd", "triton_bwd",    "fa2_fwd",      "fa2_bwd",
          "fa3_fwd",  "fa3_bwd",         "cudnn_fwd",  "cudnn_bwd" };
  G_STATIC_ASSERT (G_N_ELEMENTS (others) == LS_N_ENTRIES - LS_N_KERNEL_KINDS);
  return slot < LS_N_KERNEL_KINDS ? ls_kernel_kind_name (slot) : others[slot - LS_N_KERNEL_KINDS];
}

LsKindFit *
ls_entry_fit (LsCalibration *c, guint slot)
{
  if (slot >= LS_ENTRY_ATTENTION)
    return &c->attention[(slot - LS_ENTRY_ATTENTION) / 2 + 1][(slot - LS_ENTRY_ATTENTION) % 2];
  switch (slot) {
  case LS_ENTRY_GEMM_FP8:
    return &c->gemm_fp8;
  case LS_ENTRY_GEMM_FP8_BLOCKS:
    return &c->gemm_fp8_blocks;
  case LS_ENTRY_GEMM_NVFP4:
    return &c->gemm_nvfp4;
  case LS_ENTRY_ATTENTION_FP8:
    return &c->attention_fp8;
  case LS_ENTRY_VLLM_RMSNORM:
    return &c->vllm_rmsnorm;
  case LS_ENTRY_VLLM_SILU_MUL:
    return &c->vllm_silu_mul;
  default:
    return &c->kind[slot];
  }
}
