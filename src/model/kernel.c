#include "model/kernel.h"

#include <glib.h>

static const char *const kind_names[] = {
  [LS_KERNEL_GEMM] = "gemm",
  [LS_KERNEL_BATCHED_GEMM] = "batched-gemm",
  [LS_KERNEL_ATTENTION_FWD] = "attention-fwd",
  [LS_KERNEL_ATTENTION_BWD] = "attention-bwd",
  [LS_KERNEL_SOFTMAX] = "softmax",
  [LS_KERNEL_NORM] = "norm",
  [LS_KERNEL_ELEMENTWISE] = "elementwise",
  [LS_KERNEL_REDUCTION] = "reduction",
  [LS_KERNEL_EMBEDDING] = "embedding",
  [LS_KERNEL_CROSS_ENTROPY] = "cross-entropy",
  [LS_KERNEL_OPTIMIZER] = "optimizer",
  [LS_KERNEL_MEMSET] = "memset",
};
G_STATIC_ASSERT (G_N_ELEMENTS (kind_names) == LS_N_KERNEL_KINDS);

static const char *const access_names[] = {
  [LS_ACCESS_NONE] = "none",
  [LS_ACCESS_VEC] = "vec",
  [LS_ACCESS_CASTDN] = "castdn",
  [LS_ACCESS_CASTUP] = "castup",
  [LS_ACCESS_BCAST16] = "bcast16",
  [LS_ACCESS_BCAST32] = "bcast32",
  [LS_ACCESS_STRIDED16] = "strided16",
  [LS_ACCESS_STRIDED32] = "strided32",
  [LS_ACCESS_CAT] = "cat",
  [LS_ACCESS_GATHER] = "gather",
  [LS_ACCESS_SCATTER] = "scatter",
  [LS_ACCESS_ROWRED] = "rowred",
  [LS_ACCESS_COLRED] = "colred",
  [LS_ACCESS_FILL] = "fill",
  [LS_ACCESS_MEMCPY] = "memcpy",
  [LS_ACCESS_MULTI] = "multi-tensor",
  [LS_ACCESS_SOFTMAX] = "softmax",
  [LS_ACCESS_TRITON] = "triton",
  [LS_ACCESS_TRITON_RED] = "triton-red",
  [LS_ACCESS_XLA] = "xla",
  [LS_ACCESS_XLA_RED] = "xla-red",
  [LS_ACCESS_XLA_COLRED] = "xla-colred",
  [LS_ACCESS_XLA_TRANSPOSE] = "xla-transpose",
  [LS_ACCESS_TINY] = "tiny",
};
G_STATIC_ASSERT (G_N_ELEMENTS (access_names) == LS_N_ACCESSES);

const char *
ls_access_name (LsAccess access)
{
  g_assert ((unsigned) access < LS_N_ACCESSES);
  return access_names[access];
}

const char *
ls_kernel_kind_name (LsKernelKind kind)
{
  g_assert ((unsigned) kind < LS_N_KERNEL_KINDS);
  return kind_names[kind];
}

LsKernel
ls_kernel_gemm (const char *name, LsDtype dtype, uint64_t m, uint64_t n, uint64_t k, uint64_t batch,
                uint32_t out_bytes_per_element, bool accumulate)
{
  double mk = (double) m * (double) k;
  double kn = (double) k * (double) n;
  double mn = (double) m * (double) n;
  double passes_over_c = accumulate ? 2 : 1;

  return (LsKernel) {
    .name = name,
    .kind = batch > 1 ? LS_KERNEL_BATCHED_GEMM : LS_KERNEL_GEMM,
    .dtype = dtype,
    .m = m,
    .n = n,
    .k = k,
    .batch = batch,
    .flops = 2 * mn * (double) k * (double) batch,
    .bytes
    = (double) batch * (ls_dtype_size (dtype) * (mk + kn) + passes_over_c * out_bytes_per_element * mn),
  };
}

LsKernel
ls_kernel_gemm_part (const LsKernel *gemm, uint32_t n)
{
  LsKernel part = *gemm;
  double b = (double) gemm->batch * ls_dtype_size (gemm->dtype) * (double) gemm->k * (double) gemm->n;
  g_assert (n > 0 && gemm->m % n == 0);
  part.m /= n;
  part.flops /= n;
  part.bytes = (gemm->bytes - b) / n + b;
  return part;
}

LsKernel
ls_kernel_gemm_columns (const LsKernel *gemm, uint64_t n)
{
  LsKernel part = *gemm;
  double a = (double) gemm->batch * ls_dtype_size (gemm->dtype) * (double) gemm->m * (double) gemm->k;
  double share = (double) n / (double) gemm->n;
  g_assert (n > 0 && n <= gemm->n);
  part.n = n;
  part.flops *= share;
  part.bytes = a + (gemm->bytes - a) * share;
  return part;
}

LsKernel
ls_kernel_gemm_resized (const LsKernel *gemm, uint64_t m, uint64_t n, uint64_t k)
{
  double elt = (double) gemm->batch * ls_dtype_size (gemm->dtype), at = (double) gemm->m,
         by = (double) gemm->n, deep = (double) gemm->k;
  double of_result = (gemm->bytes - elt * deep * (at + by)) / (at * by);
  LsKernel other = *gemm;
  other.m = m;
  other.n = n;
  other.k = k;
  other.flops = 2 * (double) m * (double) n * (double) k * (double) gemm->batch;
  other.bytes = elt * (double) k * ((double) m + (double) n) + of_result * (double) m * (double) n;
  return other;
}

LsKernel
ls_kernel_attention (const char *name, LsDtype dtype, uint64_t batch, uint64_t seq, uint64_t heads,
                     uint64_t kv_heads, uint64_t head_dim, bool is_causal, bool is_backward)
{
  double tokens = (double) batch * (double) seq, elt = ls_dtype_size (dtype);
  double q = (double) heads * (double) head_dim, kv = (double) kv_heads * (double) head_dim;
  double flops = 4 * tokens * (double) seq * q * (is_causal ? 0.5 : 1);
  double out_elt = MAX (elt, 2);

  return (LsKernel) {
    .name = name,
    .kind = is_backward ? LS_KERNEL_ATTENTION_BWD : LS_KERNEL_ATTENTION_FWD,
    .dtype = dtype,
    .m = seq,
    .n = seq,
    .k = head_dim,
    .batch = batch * heads,
    .flops = is_backward ? 2.5 * flops : flops,
    .bytes = is_backward ? elt * tokens * 4 * (q + kv) : tokens * (elt * (q + 2 * kv) + out_elt * q),
  };
}

LsKernel
ls_kernel_stream (const char *name, LsKernelKind kind, LsDtype dtype, uint64_t m, uint64_t n, double bytes,
                  double flops)
{
  return (LsKernel) {
    .name = name,
    .kind = kind,
    .dtype = dtype,
    .m = m,
    .n = n,
    .batch = 1,
    .flops = flops,
    .bytes = bytes,
  };
}
