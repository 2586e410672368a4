/* One step of mixed-precision Adam over flat buffers (apex multi-tensor
 * kernels), on the parameters that this rank owns. Bytes per parameter, with g of
 * the gradient and w of the weight:
 *
 *     unscale    2 g        fp16 only (loss scaling): divide in place, look for inf
 *     norm       g          sum of squares; kind REDUCTION: the gradient-norm
 *                           all-reduce follows it
 *     clip       2 g        multiply in place
 *     Adam       g + 24 + w read gradient; read and write fp32 master, m, v; write
 *                           the 16-bit weight: 28 or 30 (none of its own in fp32)
 *     cast       4          fp8 only: read the 16-bit weight, write it as fp8 in
 *                           both layouts
 *
 * Deviation: Megatron-LM of 2021 copies 16-bit gradients to fp32 before, and the
 * masters to 16 bits after Adam, in kernels of their own (about 10 more bytes). */
#include "model/operators.h"

#define MASTER_AND_MOMENTS_BYTES (3 * 2 * 4) /* three fp32 values, read and written */

static void
append (GArray *kernels, const char *name, LsKernelKind kind, LsDtype dtype, uint64_t n_params,
        uint32_t bytes_per_param)
{
  LsKernel kernel = ls_kernel_stream (name, kind, dtype, 1, n_params,
                                      (double) n_params * bytes_per_param, 0);
  g_array_append_val (kernels, kernel);
}

void
ls_optimizer_kernels (uint64_t n_params, LsDtype dtype, LsDtype grad_dtype, GArray *kernels)
{
  bool has_master = dtype == LS_DTYPE_FP16 || dtype == LS_DTYPE_BF16 || dtype == LS_DTYPE_FP8;
  uint32_t g = ls_dtype_bytes (grad_dtype);
  uint32_t w = has_master ? ls_dtype_bytes (LS_DTYPE_BF16) : 0;

  if (dtype == LS_DTYPE_FP16)
    append (kernels, "grad-unscale", LS_KERNEL_OPTIMIZER, grad_dtype, n_params, 2 * g);
  append (kernels, "grad-norm", LS_KERNEL_REDUCTION, grad_dtype, n_params, g);
  append (kernels, "grad-clip", LS_KERNEL_OPTIMIZER, grad_dtype, n_params, 2 * g);
  append (kernels, "adam", LS_KERNEL_OPTIMIZER, grad_dtype, n_params, g + MASTER_AND_MOMENTS_BYTES + w);
  if (dtype == LS_DTYPE_FP8)
    append (kernels, "fp8-weight-cast", LS_KERNEL_OPTIMIZER, LS_DTYPE_BF16, n_params, 4);
}
