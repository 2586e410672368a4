/* compute/entry.h — the entries of a calibration: one for each kernel kind, in its order,
 * then those that stand beside a kind. */
#ifndef LS_COMPUTE_ENTRY_H
#define LS_COMPUTE_ENTRY_H

#include "compute/cost.h"

enum {
  LS_ENTRY_GEMM_FP8 = LS_N_KERNEL_KINDS,
  LS_ENTRY_GEMM_FP8_BLOCKS,
  LS_ENTRY_GEMM_NVFP4,
  LS_ENTRY_ATTENTION_FP8,
  LS_ENTRY_VLLM_RMSNORM,
  LS_ENTRY_VLLM_SILU_MUL,
  LS_ENTRY_ATTENTION, /* forward and backward of the first implementation, then of the others */
  LS_N_ENTRIES = LS_ENTRY_ATTENTION + 2 * (LS_N_ATTENTION_KERNELS - 1)
};

static inline guint
ls_entry_attention (LsAttentionKernel kernel, bool is_backward)
{
  return LS_ENTRY_ATTENTION + 2 * ((guint) kernel - 1) + is_backward;
}

const char *ls_entry_key (guint slot); /* static: its key in the file */
LsKindFit *ls_entry_fit (LsCalibration *calibration, guint slot);

#endif
