#include "analysis/op_class.h"

#include <string.h>

#include "network/coll.h"

const char *
ls_op_class_name (LsOpClass class)
{
  return class < LS_CLASS_OTHER   ? ls_kernel_kind_names[class].name
      : class >= LS_CLASS_OF_COLL ? ls_coll_kind_name ((LsCollKind) (class - LS_CLASS_OF_COLL))
      : class == LS_CLASS_COPY    ? "copy"
                                  : "other";
}

bool
ls_op_class_is_communication (LsOpClass class)
{
  return class >= LS_CLASS_OF_COLL;
}

/* ---- of a plan ---- */

bool
ls_op_class_of_op (const LsPlan *plan, const LsOp *op, LsOpClass *ret_class)
{
  switch ((LsOpTakes) ls_op_kinds[op->kind].takes) {
  case LS_TAKES_GPU:
    *ret_class = op->kernel == UINT32_MAX ? LS_CLASS_OTHER : (LsOpClass) plan->kernels[op->kernel].kind;
    if (*ret_class == (LsOpClass) LS_KERNEL_BATCHED_GEMM)
      *ret_class = LS_CLASS_GEMM;
    return true;
  case LS_TAKES_NETWORK:
    *ret_class = !ls_op_has (op->kind, LS_HAS_CALL) || op->coll == LS_COLL_PERMUTE ? LS_CLASS_SEND_RECV
        : op->coll == LS_COLL_BARRIER      ? LS_CLASS_ALL_REDUCE /* c10d's is one of one element */
        : op->coll == LS_COLL_COPY_PERMUTE ? LS_CLASS_COPY
                                           : (LsOpClass) (LS_CLASS_OF_COLL + op->coll);
    return true;
  case LS_TAKES_ENGINE:
    *ret_class = LS_CLASS_COPY;
    return !ls_copies[op->direction].is_in_host;
  case LS_TAKES_HOST:
  case LS_TAKES_NOTHING:
    return false;
  }
  g_return_val_if_reached (false);
}

char *
ls_op_classes_recorded (const LsPlan *plan)
{
  uint64_t classes = 0;
  for (uint32_t role = 0; role < plan->n_roles; role++) {
    const LsProgram *p = &plan->programs[role];
    g_autofree uint32_t *uses = ls_program_uses (plan, p, p->n_lead);
    for (uint32_t s = 0; s < plan->n_segments; s++)
      for (uint32_t o = 0; uses[s] > 0 && o < plan->segments[s].n_ops; o++) {
        const LsOp *op = &plan->segments[s].ops[o];
        if (ls_op_takes (op->kind, LS_TAKES_ENGINE) && op->recorded != LS_TIME_NEVER)
          classes |= UINT64_C (1) << (strcmp (op->name, LS_OP_NOT_EXPLAINED) == 0
                                          ? LS_CLASS_COPY
                                          : ls_op_class_of_kernel (op->name));
      }
  }
  GString *out = classes ? g_string_new (NULL) : NULL;
  for (int c = 0; c < LS_N_CLASSES; c++)
    if (classes >> c & 1)
      g_string_append_printf (out, "%s%s", out->len > 0 ? ", " : "",
                              c == LS_CLASS_COPY        ? "unexplained waits"
                                  : c == LS_CLASS_OTHER ? "copies"
                                                        : ls_op_class_name ((LsOpClass) c));
  return out ? g_string_free (out, FALSE) : NULL;
}

/* ---- by names ---- */

typedef struct {
  LsOpClass class;
  const char *parts[18]; /* of the name in small letters; NULL behind the last */
} Rule;

/* From the special to the general: a GEMM with a fused epilogue is a GEMM, a softmax inside
 * flash attention is attention. cuDNN has kernels around its backward: sums over heads that share keys, dO O,
 * dQ that was summed in fp32. */
static const Rule rules[] = {
  { LS_CLASS_MEMSET, { "fillfunctor", "memset" } }, /* the former runs as an elementwise kernel */
  { LS_CLASS_OPTIMIZER, { "multi_tensor_apply", "adam" } },
  { LS_CLASS_ATTENTION_BWD,
    { "flash_bwd", "fmha_bprop", "fmha_bwd", "fmha_cutlassb", "fmha_reduce_head", "compute_dot_do_o",
      "convert_dq_to_16bits", "sdpa_bprop", "sdpa_flash_bprop", "sdpa_sm90_flash_bprop", "flashattnbwd",
      "attention_backward", "attn_bwd", "bwd_kernel_dk_dv", "bwd_kernel_dq" } },
  { LS_CLASS_ATTENTION_FWD, { "attn_fwd", "flash_fwd", "flashattnfwd", "fmha", "sdpa", "attention_kernel" } },
  { LS_CLASS_CROSS_ENTROPY, { "cross_entropy", "nll_loss", "log_softmax", "logsoftmax" } },
  { LS_CLASS_SOFTMAX, { "softmax" } },
  { LS_CLASS_NORM, { "layer_norm", "layernorm", "rms_norm", "rmsnorm", "gammabeta", "ln_fwd", "ln_bwd" } },
  { LS_CLASS_ELEMENTWISE, { "rotary", "fused_rope" } },
  { LS_CLASS_EMBEDDING, { "embedding" } },
  { LS_CLASS_GEMM, { "splitkreduce", "gemm", "gemv", "nvjet", "cutlass", "cublas", "xmma", "cijk_" } },
  { LS_CLASS_REDUCTION, { "triton_red", "triton_per", "reduce_kernel", "reduction" } },
  { LS_CLASS_ELEMENTWISE,
    { "elementwise_kernel", "triton_poi", "dropout", "catarraybatchedcopy", "swiglu", "gelu" } },
  { LS_CLASS_EMBEDDING, { "indexselect" } },
};

static const Rule collectives[] = {
  { LS_CLASS_ALL_REDUCE, { "allreduce", "barrier" } },
  { LS_CLASS_ALL_GATHER, { "allgather" } },
  { LS_CLASS_REDUCE_SCATTER, { "reducescatter" } },
  { LS_CLASS_ALL_TO_ALL, { "alltoall" } },
  { LS_CLASS_BROADCAST, { "broadcast" } },
  { LS_CLASS_SEND_RECV, { "sendrecv", "send", "recv" } },
  { LS_CLASS_OTHER, { "coalesced" } }, /* a group: its kernel says of what */
  { LS_CLASS_REDUCE, { "reduce" } },
  { LS_CLASS_GATHER, { "gather" } },
  { LS_CLASS_SCATTER, { "scatter" } },
};

static LsOpClass
first_rule (const Rule *list, guint n, const char *name)
{
  for (guint i = 0; i < n; i++)
    for (const char *const *part = list[i].parts; *part; part++)
      if (strstr (name, *part))
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
LsOpClass
ls_op_class_of_kernel (const char *name)
{
  g_autofree char *small = g_ascii_strdown (name, -1);
  if (!g_str_has_prefix (small, "nccl"))
    return first_rule (rules, G_N_ELEMENTS (rules), small);
  g_auto (GStrv) parts = g_strsplit (small, "_", 3);
  return parts[0] && parts[1] ? ls_op_class_of_collective (parts[1]) : LS_CLASS_OTHER;
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
