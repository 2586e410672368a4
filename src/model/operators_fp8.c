#include "model/operators_fp8.h"

#define SCALE_BYTES (4.0 / 128) /* of a 1 x 128 block, per element */

static LsKernel
stream (const LsCut *cut, const char *name, uint64_t rows, uint64_t cols, double bytes_per_element)
{
  return ls_cut_stream (cut, name, LS_KERNEL_ELEMENTWISE, rows, cols, bytes_per_element);
}

static LsKernel
amax (const LsCut *cut, uint64_t rows, uint64_t cols)
{
  return ls_cut_stream (cut, "fp8-amax", LS_KERNEL_REDUCTION, rows, cols, cut->elt);
}

/* Into one layout, or into both. */
static LsKernel
cast (const LsCut *cut, uint64_t rows, uint64_t cols, uint32_t n_layouts)
{
  bool is_blockwise = cut->shard->fp8_recipe == LS_FP8_BLOCKWISE;
  double per_layout = 1 + (is_blockwise ? SCALE_BYTES : 0);
  return stream (cut, n_layouts > 1 ? "fp8-cast-transpose" : "fp8-cast", rows, cols, cut->elt + n_layouts * per_layout);
}

uint32_t
ls_fp8_norm_out_bytes (const LsShard *s)
{
  return s->dtype == LS_DTYPE_FP8 && s->fp8_recipe != LS_FP8_DELAYED ? ls_dtype_bytes (LS_DTYPE_BF16) : ls_dtype_bytes (s->dtype);
}

void
ls_fp8_before_fwd (LsOperator *op, const LsCut *cut, uint64_t in)
{
  bool is_column = op->tp == LS_TP_COLUMN;
  uint64_t rows = is_column ? cut->local_tokens : cut->tokens;
  if (cut->shard->fp8_recipe == LS_FP8_CURRENT)
    ls_operator_fwd (op, amax (cut, rows, in));
  if (!is_column || cut->shard->fp8_recipe != LS_FP8_DELAYED)
    ls_operator_fwd (op, cast (cut, rows, in, is_column ? 1 : 2));
}

void
ls_fp8_before_igrad (LsOperator *op, const LsCut *cut, uint64_t out)
{
  if (cut->shard->fp8_recipe == LS_FP8_CURRENT)
    ls_operator_igrad (op, amax (cut, cut->tokens, out));
  ls_operator_igrad (op, cast (cut, cut->tokens, out, 2));
}

void
ls_fp8_before_wgrad (LsOperator *op, const LsCut *cut, uint64_t in)
{
  if (op->tp == LS_TP_COLUMN)
    ls_operator_wgrad (op, stream (cut, "fp8-transpose", cut->tokens, in, 2));
}
