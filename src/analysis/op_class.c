#include "analysis/op_class.h"

#include <string.h>

static const char *const names[] = {
  [LS_CLASS_GEMM] = "gemm",
  [LS_CLASS_ATTENTION_FWD] = "attention-fwd",
  [LS_CLASS_ATTENTION_BWD] = "attention-bwd",
  [LS_CLASS_SOFTMAX] = "softmax",
  [LS_CLASS_NORM] = "norm",
  [LS_CLASS_ELEMENTWISE] = "elementwise",
  [LS_CLASS_REDUCTION] = "reduction",
  [LS_CLASS_EMBEDDING] = "embedding",
  [LS_CLASS_CROSS_ENTROPY] = "cross-entropy",
  [LS_CLASS_OPTIMIZER] = "optimizer",
  [LS_CLASS_MEMSET] = "memset",
  [LS_CLASS_OTHER] = "other",
  [LS_CLASS_COPY] = "copy",
  [LS_CLASS_ALL_REDUCE] = "all-reduce",
  [LS_CLASS_ALL_GATHER] = "all-gather",
  [LS_CLASS_REDUCE_SCATTER] = "reduce-scatter",
  [LS_CLASS_BROADCAST] = "broadcast",
  [LS_CLASS_REDUCE] = "reduce",
  [LS_CLASS_ALL_TO_ALL] = "all-to-all",
  [LS_CLASS_GATHER] = "gather",
  [LS_CLASS_SCATTER] = "scatter",
  [LS_CLASS_SEND_RECV] = "send-recv",
};

const char *
ls_op_class_name (LsOpClass class)
{
  return names[class];
}

bool
ls_op_class_is_communication (LsOpClass class)
{
  return class >= LS_CLASS_ALL_REDUCE;
}

/* ---- of a plan ---- */

static const LsOpClass class_of_kind[] = {
  [LS_KERNEL_GEMM] = LS_CLASS_GEMM,
  [LS_KERNEL_BATCHED_GEMM] = LS_CLASS_GEMM,
  [LS_KERNEL_ATTENTION_FWD] = LS_CLASS_ATTENTION_FWD,
  [LS_KERNEL_ATTENTION_BWD] = LS_CLASS_ATTENTION_BWD,
  [LS_KERNEL_SOFTMAX] = LS_CLASS_SOFTMAX,
  [LS_KERNEL_NORM] = LS_CLASS_NORM,
  [LS_KERNEL_ELEMENTWISE] = LS_CLASS_ELEMENTWISE,
  [LS_KERNEL_REDUCTION] = LS_CLASS_REDUCTION,
  [LS_KERNEL_EMBEDDING] = LS_CLASS_EMBEDDING,
  [LS_KERNEL_CROSS_ENTROPY] = LS_CLASS_CROSS_ENTROPY,
  [LS_KERNEL_OPTIMIZER] = LS_CLASS_OPTIMIZER,
  [LS_KERNEL_MEMSET] = LS_CLASS_MEMSET,
};
G_STATIC_ASSERT (G_N_ELEMENTS (class_of_kind) == LS_N_KERNEL_KINDS);

/* A barrier of c10d is an all-reduce of one element. */
static const LsOpClass class_of_coll[] = {
  [LS_COLL_ALL_REDUCE] = LS_CLASS_ALL_REDUCE,
  [LS_COLL_ALL_GATHER] = LS_CLASS_ALL_GATHER,
  [LS_COLL_REDUCE_SCATTER] = LS_CLASS_REDUCE_SCATTER,
  [LS_COLL_BROADCAST] = LS_CLASS_BROADCAST,
  [LS_COLL_REDUCE] = LS_CLASS_REDUCE,
  [LS_COLL_ALL_TO_ALL] = LS_CLASS_ALL_TO_ALL,
  [LS_COLL_GATHER] = LS_CLASS_GATHER,
  [LS_COLL_SCATTER] = LS_CLASS_SCATTER,
  [LS_COLL_BARRIER] = LS_CLASS_ALL_REDUCE,
  [LS_COLL_PERMUTE] = LS_CLASS_SEND_RECV,
  [LS_COLL_COPY_PERMUTE] = LS_CLASS_COPY,
  [LS_COLL_SEND_RECV] = LS_CLASS_SEND_RECV,
};
G_STATIC_ASSERT (G_N_ELEMENTS (class_of_coll) == LS_N_COLL_KINDS);

bool
ls_op_class_of_op (const LsPlan *plan, const LsOp *op, LsOpClass *ret_class)
{
  switch ((LsOpTakes) ls_op_kinds[op->kind].takes) {
  case LS_TAKES_GPU:
    *ret_class = op->kernel == UINT32_MAX ? LS_CLASS_OTHER : class_of_kind[plan->kernels[op->kernel].kind];
    return true;
  case LS_TAKES_NETWORK:
    *ret_class = ls_op_has (op->kind, LS_HAS_CALL) ? class_of_coll[op->coll] : LS_CLASS_SEND_RECV;
    return true;
  case LS_TAKES_ENGINE:
    *ret_class = LS_CLASS_COPY;
    return op->root != LS_COPY_IN_HOST;
  case LS_TAKES_HOST:
  case LS_TAKES_NOTHING:
    return false;
  }
  g_return_val_if_reached (false);
}

/* ---- by names ---- */

typedef struct {
  const char *part; /* of the name in small letters */
  LsOpClass class;
} Rule;

/* From the special to the general: a GEMM with a fused epilogue is a GEMM, a softmax inside
 * flash attention is attention. */
static const Rule rules[] = {
  { "multi_tensor_apply", LS_CLASS_OPTIMIZER },
  { "adam", LS_CLASS_OPTIMIZER },
  { "flash_bwd", LS_CLASS_ATTENTION_BWD },
  { "fmha_bprop", LS_CLASS_ATTENTION_BWD },
  { "fmha_bwd", LS_CLASS_ATTENTION_BWD },
  { "fmha_cutlassb", LS_CLASS_ATTENTION_BWD },
  /* cuDNN's, around its backward: sums over heads that share keys, dO O, dQ that was summed in fp32 */
  { "fmha_reduce_head", LS_CLASS_ATTENTION_BWD },
  { "compute_dot_do_o", LS_CLASS_ATTENTION_BWD },
  { "convert_dq_to_16bits", LS_CLASS_ATTENTION_BWD },
  { "sdpa_bprop", LS_CLASS_ATTENTION_BWD },
  { "sdpa_flash_bprop", LS_CLASS_ATTENTION_BWD },
  { "sdpa_sm90_flash_bprop", LS_CLASS_ATTENTION_BWD },
  { "flashattnbwd", LS_CLASS_ATTENTION_BWD },
  { "attention_backward", LS_CLASS_ATTENTION_BWD },
  { "attn_bwd", LS_CLASS_ATTENTION_BWD },
  { "bwd_kernel_dk_dv", LS_CLASS_ATTENTION_BWD },
  { "bwd_kernel_dq", LS_CLASS_ATTENTION_BWD },
  { "attn_fwd", LS_CLASS_ATTENTION_FWD },
  { "flash_fwd", LS_CLASS_ATTENTION_FWD },
  { "flashattnfwd", LS_CLASS_ATTENTION_FWD },
  { "fmha", LS_CLASS_ATTENTION_FWD },
  { "sdpa", LS_CLASS_ATTENTION_FWD },
  { "attention_kernel", LS_CLASS_ATTENTION_FWD },
  { "cross_entropy", LS_CLASS_CROSS_ENTROPY },
  { "nll_loss", LS_CLASS_CROSS_ENTROPY },
  { "log_softmax", LS_CLASS_CROSS_ENTROPY },
  { "logsoftmax", LS_CLASS_CROSS_ENTROPY },
  { "softmax", LS_CLASS_SOFTMAX },
  { "layer_norm", LS_CLASS_NORM },
  { "layernorm", LS_CLASS_NORM },
  { "rms_norm", LS_CLASS_NORM },
  { "rmsnorm", LS_CLASS_NORM },
  { "gammabeta", LS_CLASS_NORM },
  { "ln_fwd", LS_CLASS_NORM },
  { "ln_bwd", LS_CLASS_NORM },
  { "rotary", LS_CLASS_ELEMENTWISE },
  { "fused_rope", LS_CLASS_ELEMENTWISE },
  { "embedding", LS_CLASS_EMBEDDING },
  { "splitkreduce", LS_CLASS_GEMM },
  { "gemm", LS_CLASS_GEMM },
  { "gemv", LS_CLASS_GEMM },
  { "nvjet", LS_CLASS_GEMM },
  { "cutlass", LS_CLASS_GEMM },
  { "cublas", LS_CLASS_GEMM },
  { "xmma", LS_CLASS_GEMM },
  { "cijk_", LS_CLASS_GEMM },
  { "triton_red", LS_CLASS_REDUCTION },
  { "triton_per", LS_CLASS_REDUCTION },
  { "reduce_kernel", LS_CLASS_REDUCTION },
  { "reduction", LS_CLASS_REDUCTION },
  { "elementwise_kernel", LS_CLASS_ELEMENTWISE },
  { "triton_poi", LS_CLASS_ELEMENTWISE },
  { "dropout", LS_CLASS_ELEMENTWISE },
  { "catarraybatchedcopy", LS_CLASS_ELEMENTWISE },
  { "swiglu", LS_CLASS_ELEMENTWISE },
  { "gelu", LS_CLASS_ELEMENTWISE },
  { "indexselect", LS_CLASS_EMBEDDING },
};

/* FillFunctor runs as an elementwise kernel, and sets memory. */
static bool
sets_memory (const char *name)
{
  return strstr (name, "fillfunctor") || strstr (name, "memset");
}

static const Rule collectives[] = {
  { "allreduce", LS_CLASS_ALL_REDUCE },
  { "barrier", LS_CLASS_ALL_REDUCE },
  { "allgather", LS_CLASS_ALL_GATHER },
  { "reducescatter", LS_CLASS_REDUCE_SCATTER },
  { "alltoall", LS_CLASS_ALL_TO_ALL },
  { "broadcast", LS_CLASS_BROADCAST },
  { "sendrecv", LS_CLASS_SEND_RECV },
  { "send", LS_CLASS_SEND_RECV },
  { "recv", LS_CLASS_SEND_RECV },
  { "coalesced", LS_CLASS_OTHER }, /* a group: its kernel says of what */
  { "reduce", LS_CLASS_REDUCE },
  { "gather", LS_CLASS_GATHER },
  { "scatter", LS_CLASS_SCATTER },
};

static LsOpClass
first_rule (const Rule *list, guint n, const char *name)
{
  for (guint i = 0; i < n; i++)
    if (strstr (name, list[i].part))
      return list[i].class;
  return LS_CLASS_OTHER;
}

LsOpClass
ls_op_class_of_collective (const char *name)
{
  g_autoptr (GString) small = g_string_new (NULL);
  for (const char *c = name; *c; c++)
    if (*c != '_' && *c != '-')
      g_string_append_c (small, g_ascii_tolower (*c));
  return first_rule (collectives, G_N_ELEMENTS (collectives), small->str);
}

/* "ncclDevKernel_AllReduce_Sum_...": what stands between the first two underscores. */
static LsOpClass
class_of_nccl (const char *name)
{
  g_auto (GStrv) parts = g_strsplit (name, "_", 3);
  return parts[0] && parts[1] ? ls_op_class_of_collective (parts[1]) : LS_CLASS_OTHER;
}

LsOpClass
ls_op_class_of_kernel (const char *name)
{
  g_autofree char *small = g_ascii_strdown (name, -1);
  if (g_str_has_prefix (small, "nccl"))
    return class_of_nccl (small);
  return sets_memory (small) ? LS_CLASS_MEMSET : first_rule (rules, G_N_ELEMENTS (rules), small);
}

/* A cast is no copy: it has a functor of its own ("bfloat16_copy_kernel", "float16_copy_kernel"). */
LsKernelDoes
ls_kernel_does (const char *name)
{
  static const struct {
    const char *part;
    LsKernelDoes does;
  } functors[] = {
    { "CUDAFunctorOnSelf_add", LS_DOES_OTHER },
    { "CUDAFunctor_add", LS_DOES_ADD },
    { "triton_poi_fused_add", LS_DOES_ADD },
    { "direct_copy_kernel", LS_DOES_COPY },
    { "DtoD", LS_DOES_COPY },
    { "dropout", LS_DOES_DROPOUT },
    { "split_with_sizes_copy", LS_DOES_SHARDING },
    { "chunk_cat", LS_DOES_SHARDING },
  };
  for (guint i = 0; i < G_N_ELEMENTS (functors); i++)
    if (strstr (name, functors[i].part))
      return functors[i].does;
  return LS_DOES_OTHER;
}
