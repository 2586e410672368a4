/* compute/slot.h — the entries of a calibration: one for each kernel kind, in its order,
 * then those that stand beside a kind. */
#ifndef LS_COMPUTE_SLOT_H
#define LS_COMPUTE_SLOT_H

#include "compute/cost.h"

enum {
  LS_SLOT_GEMM_FP8 = LS_N_KERNEL_KINDS,
  LS_SLOT_ATTENTION_FP8,
  LS_SLOT_VLLM_RMSNORM,
  LS_SLOT_VLLM_SILU_MUL,
  LS_N_SLOTS
};

const char *ls_slot_key (guint slot); /* static: its key in the file */
LsKindFit *ls_slot_fit (LsCalibration *calibration, guint slot);

#endif
