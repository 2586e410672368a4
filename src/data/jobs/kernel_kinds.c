#include "data/jobs/kernel_kinds.h"

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

const LsEnumName ls_access_names[LS_N_ACCESSES + 1] = {
  KIND ("none", LS_ACCESS_NONE),
  KIND ("vec", LS_ACCESS_VEC),
  KIND ("castdn", LS_ACCESS_CASTDN),
  KIND ("castup", LS_ACCESS_CASTUP),
  KIND ("bcast16", LS_ACCESS_BCAST16),
  KIND ("bcast32", LS_ACCESS_BCAST32),
  KIND ("strided16", LS_ACCESS_STRIDED16),
  KIND ("strided32", LS_ACCESS_STRIDED32),
  KIND ("cat", LS_ACCESS_CAT),
  KIND ("gather", LS_ACCESS_GATHER),
  KIND ("scatter", LS_ACCESS_SCATTER),
  KIND ("rowred", LS_ACCESS_ROWRED),
  KIND ("colred", LS_ACCESS_COLRED),
  KIND ("fill", LS_ACCESS_FILL),
  KIND ("memcpy", LS_ACCESS_MEMCPY),
  KIND ("multi-tensor", LS_ACCESS_MULTI),
  KIND ("softmax", LS_ACCESS_SOFTMAX),
  KIND ("triton", LS_ACCESS_TRITON),
  KIND ("triton-red", LS_ACCESS_TRITON_RED),
  KIND ("xla", LS_ACCESS_XLA),
  KIND ("xla-red", LS_ACCESS_XLA_RED),
  KIND ("xla-colred", LS_ACCESS_XLA_COLRED),
  KIND ("xla-transpose", LS_ACCESS_XLA_TRANSPOSE),
  KIND ("tiny", LS_ACCESS_TINY),
};
