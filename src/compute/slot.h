/* compute/slot.h — the entries of a calibration: one for each kernel kind, in its order,
 * then those that stand beside a kind. */
#ifndef LS_COMPUTE_SLOT_H
#define LS_COMPUTE_SLOT_H

#include "compute/cost.h"

enum {
  LS_SLOT_GEMM_FP8 = LS_N_KERNEL_KINDS,
  LS_SLOT_GEMM_NVFP4,
  LS_SLOT_ATTENTION_FP8,
  LS_SLOT_VLLM_RMSNORM,
  LS_SLOT_VLLM_SILU_MUL,
  LS_SLOT_ATTENTION, /* forward and backward of the first implementation, then of the others */
  LS_N_SLOTS = LS_SLOT_ATTENTION + 2 * (LS_N_ATTENTION_KERNELS - 1)
};

static inline guint
ls_slot_attention (LsAttentionKernel kernel, bool is_backward)
{
  return LS_SLOT_ATTENTION + 2 * ((guint) kernel - 1) + is_backward;
}

const char *ls_slot_key (guint slot); /* static: its key in the file */
LsKindFit *ls_slot_fit (LsCalibration *calibration, guint slot);

#endif
