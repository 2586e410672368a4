/* analysis/op_class.h — what kind of work an op of a GPU is, by which what was predicted and
 * what was profiled are laid next to each other.
 *
 * Of a plan it follows from the kind of a kernel, a collective or a copy. Of a profile only names are there,
 * and names are a library's: cuBLAS and CUTLASS ("ampere_bf16_s16816gemm", "sm90_xmma_gemm", "nvjet_hsh",
 * "cutlass::Kernel2"), hipBLASLt ("Cijk_Alik_Bljk"), flash-attention ("flash_fwd_kernel",
 * "flash_bwd_dq_dk_dv"), cuDNN ("fmha_fprop", "cudnn_generated_fort_native_sdpa"), PyTorch
 * ("vectorized_elementwise_kernel", "multi_tensor_apply_kernel", "cunn_SoftMaxForward"), Inductor
 * ("triton_poi_fused_", "triton_red_", "triton_per_"), NCCL ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
 * older "ncclKernel_"). The first rule that fits counts: op_class.c. What none fits is LS_CLASS_OTHER, and
 * said to be. */
#ifndef LS_ANALYSIS_OP_CLASS_H
#define LS_ANALYSIS_OP_CLASS_H

#include <stdbool.h>

#include "plan/plan.h"

/* Kinds of kernels and of collectives by their own numbers; batched products are GEMMs. */
typedef enum {
  LS_CLASS_GEMM = LS_KERNEL_GEMM,
  LS_CLASS_ATTENTION_FWD = LS_KERNEL_ATTENTION_FWD,
  LS_CLASS_ATTENTION_BWD = LS_KERNEL_ATTENTION_BWD,
  LS_CLASS_SOFTMAX = LS_KERNEL_SOFTMAX,
  LS_CLASS_NORM = LS_KERNEL_NORM,
  LS_CLASS_ELEMENTWISE = LS_KERNEL_ELEMENTWISE,
  LS_CLASS_REDUCTION = LS_KERNEL_REDUCTION,
  LS_CLASS_EMBEDDING = LS_KERNEL_EMBEDDING,
  LS_CLASS_CROSS_ENTROPY = LS_KERNEL_CROSS_ENTROPY,
  LS_CLASS_OPTIMIZER = LS_KERNEL_OPTIMIZER,
  LS_CLASS_MEMSET = LS_KERNEL_MEMSET,
  LS_CLASS_OTHER = LS_N_KERNEL_KINDS,
  LS_CLASS_COPY, /* between GPU and host, or on the GPU */
  LS_CLASS_OF_COLL,
  LS_CLASS_ALL_REDUCE = LS_CLASS_OF_COLL + LS_COLL_ALL_REDUCE,
  LS_CLASS_ALL_GATHER = LS_CLASS_OF_COLL + LS_COLL_ALL_GATHER,
  LS_CLASS_REDUCE_SCATTER = LS_CLASS_OF_COLL + LS_COLL_REDUCE_SCATTER,
  LS_CLASS_BROADCAST = LS_CLASS_OF_COLL + LS_COLL_BROADCAST,
  LS_CLASS_REDUCE = LS_CLASS_OF_COLL + LS_COLL_REDUCE,
  LS_CLASS_ALL_TO_ALL = LS_CLASS_OF_COLL + LS_COLL_ALL_TO_ALL,
  LS_CLASS_GATHER = LS_CLASS_OF_COLL + LS_COLL_GATHER,
  LS_CLASS_SCATTER = LS_CLASS_OF_COLL + LS_COLL_SCATTER,
  LS_CLASS_SEND_RECV = LS_CLASS_OF_COLL + LS_COLL_SEND_RECV,
  LS_N_CLASSES
} LsOpClass;

const char *ls_op_class_name (LsOpClass class); /* static: "gemm", "all-reduce" */
bool ls_op_class_is_communication (LsOpClass class);

/* Of an op of a plan; false: nothing that a GPU runs (an event, the host). */
bool ls_op_class_of_op (const LsPlan *plan, const LsOp *op, LsOpClass *ret_class);
/* A copy of an imported profile that stands for a wait. */
#define LS_OP_NOT_EXPLAINED "not explained"
/* What takes a copy's place for a time that was measured: "copies, send-recv", newly allocated; NULL:
 * nothing. */
char *ls_op_classes_recorded (const LsPlan *plan);
/* Of a kernel by its name. */
LsOpClass ls_op_class_of_kernel (const char *name);
/* What a kernel of one operation does, as far as layers are told apart by it: by its functor. Sharding:
 * FSDP's copies around its collectives. */
typedef enum { LS_DOES_OTHER, LS_DOES_ADD, LS_DOES_COPY, LS_DOES_DROPOUT, LS_DOES_SHARDING } LsKernelDoes;
LsKernelDoes ls_kernel_does (const char *name);
/* Of a collective as c10d calls it ("allreduce", "_allgather_base"); LS_CLASS_OTHER: unknown. */
LsOpClass ls_op_class_of_collective (const char *name);

#endif
