#include "compute/slot.h"

const char *
ls_slot_key (guint slot)
{
  static const char *const others[] = { "gemm_fp8", "attention_fp8", "vllm_rmsnorm", "vllm_silu_mul" };
  return slot < LS_N_KERNEL_KINDS ? ls_kernel_kind_name (slot) : others[slot - LS_N_KERNEL_KINDS];
}

LsKindFit *
ls_slot_fit (LsCalibration *c, guint slot)
{
  switch (slot) {
  case LS_SLOT_GEMM_FP8:
    return &c->gemm_fp8;
  case LS_SLOT_ATTENTION_FP8:
    return &c->attention_fp8;
  case LS_SLOT_VLLM_RMSNORM:
    return &c->vllm_rmsnorm;
  case LS_SLOT_VLLM_SILU_MUL:
    return &c->vllm_silu_mul;
  default:
    return &c->kind[slot];
  }
}
