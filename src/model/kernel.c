#include "model/kernel.h"

#include <glib.h>

#define NAME(name, number) [number] = name

static const char *const kind_names[] = { LS_KERNEL_KINDS (NAME) };
G_STATIC_ASSERT (G_N_ELEMENTS (kind_names) == LS_N_KERNEL_KINDS);
static const char *const access_names[] = { LS_ACCESSES (NAME) };
G_STATIC_ASSERT (G_N_ELEMENTS (access_names) == LS_N_ACCESSES);

const char *
ls_access_name (LsAccess access)
{
  g_assert ((unsigned) access < LS_N_ACCESSES);
  return access_names[access];
}

LsAccess
ls_access_narrow (LsAccess access)
{
  static const LsAccess narrow[LS_N_ACCESSES] = { [LS_ACCESS_BCAST32] = LS_ACCESS_BCAST16,
                                                  [LS_ACCESS_STRIDED32] = LS_ACCESS_STRIDED16,
                                                  [LS_ACCESS_MULTI] = LS_ACCESS_MULTI16,
                                                  [LS_ACCESS_ADAM] = LS_ACCESS_ADAM16 };
  g_assert ((unsigned) access < LS_N_ACCESSES);
  return narrow[access] != LS_ACCESS_NONE ? narrow[access] : access;
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

double
ls_attention_group_sum_bytes (uint64_t tokens, uint64_t heads, uint64_t kv_heads, uint64_t width)
{
  double gradients = (double) tokens * (double) width;
  return kv_heads < heads ? gradients * (8 * (double) heads + 2 * (double) kv_heads) : 0;
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
