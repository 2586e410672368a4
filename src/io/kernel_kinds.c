#include "io/kernel_kinds.h"

#define KIND(name, kind) [kind] = { name, kind }

const LsEnumName ls_kernel_kind_names[LS_N_KERNEL_KINDS + 1] = {
  KIND ("gemm", LS_KERNEL_GEMM),
  KIND ("batched-gemm", LS_KERNEL_BATCHED_GEMM),
  KIND ("attention-fwd", LS_KERNEL_ATTENTION_FWD),
  KIND ("attention-bwd", LS_KERNEL_ATTENTION_BWD),
  KIND ("softmax", LS_KERNEL_SOFTMAX),
  KIND ("norm", LS_KERNEL_NORM),
  KIND ("elementwise", LS_KERNEL_ELEMENTWISE),
  KIND ("reduction", LS_KERNEL_REDUCTION),
  KIND ("embedding", LS_KERNEL_EMBEDDING),
  KIND ("cross-entropy", LS_KERNEL_CROSS_ENTROPY),
  KIND ("optimizer", LS_KERNEL_OPTIMIZER),
  KIND ("memset", LS_KERNEL_MEMSET),
};
G_STATIC_ASSERT (LS_KERNEL_ATTENTION_BWD + 1 == LS_KERNEL_SOFTMAX);
