/* model/operators_scaled.h — what fp8 and nvfp4 add around matrix products (private), as
 * Transformer Engine does it (2.x, module/linear.py and layernorm_linear.py). Recipes of fp8:
 *
 *   delayed    scales come from earlier steps: a tensor is cast, and transposed for the W
 *              GEMM, in one pass, which notes its maximum as well; a norm writes fp8 itself
 *   current    the tensor's own maximum: a pass over it before the cast
 *   blockwise  a scale for each 1 x 128 block: one pass, no maximum of the whole, 4 bytes of
 *              scale per block (DeepSeek-V3, section 3.3.2)
 *   deepseek   blockwise, by DeepSeek's own kernels, below
 *   mxfp8      a scale of one byte for each 1 x 32 block (OCP Microscaling Formats 1.0)
 *
 * nvfp4: a scale of one byte for each 1 x 16 block, and one for the tensor, from its maximum: a pass over it
 * before the cast (NVFP4Quantizer::quantize_impl in csrc/quantizer.cpp). All three products are in fp4. The
 * random Hadamard transform of what W takes, stochastic rounding and 16 x 16 blocks of weights are in these
 * passes: no traffic of their own.
 *
 * Scales of blocks go along one direction, so of mxfp8 and nvfp4 both layouts are made from the 16-bit
 * tensor, in one pass. Of the others the input of a COLUMN layer is cast on this rank's tokens before
 * sequence parallelism gathers it (so fp8 is what moves), and transposed when the W GEMM wants it; that of a
 * ROW layer, and gradients, are cast into both layouts at once. The fp4 layout for W lies transposed: where
 * it is gathered over ranks, their parts are put together by a kernel (distributed.py,
 * _post_process_nvfp4_gather). Weights are cast once per step, by the optimizer. Hopper's GEMMs want both
 * operands K-major, hence the transposes; Blackwell's would do without for delayed scaling: not modelled.
 * Blockwise and mxfp8 GEMMs are costed as those with one scale, but deepseek's W (LsKernel.by_blocks). The
 * all-reduce of the maxima over the ranks of a stage, once per pass with delayed scaling, 4 bytes a tensor,
 * is not modelled.
 *
 * deepseek: what the published profile of DeepSeek-V3's training launches (deepseek-ai/profile-data,
 * train.json; DeepSeek-V3 Technical Report, section 3.5.2, which regrets it). Each layout is a pass over the
 * tensor by itself: per_token_cast_to_fp8 of an input before its product, and of a gradient before I's; for W
 * per_channel_cast_and_transpose of both, as its scales go along the tokens; and batched_transpose of the
 * weight before each I. What experts get in fp8 was cast before it was sent, and is cast anew for W from fp8.
 * Worked example: T tokens, a product of h x f: forward 3.03 T h bytes, I 3.03 T f + 2 h f, W 3.03 T (h + f),
 * where Transformer Engine moves 3.03 T h, 4.06 T f and 2 T h. Deviations: transposes of scales (10 us each
 * in the profile), and the formats of more bits in which some inputs are kept, are left out. */
#ifndef LS_MODEL_OPERATORS_SCALED_H
#define LS_MODEL_OPERATORS_SCALED_H

#include "model/operators_build.h"

/* Bytes per element that the norm before a COLUMN layer writes. */
uint32_t ls_scaled_norm_out_bytes (const LsShard *s);

/* A product, or n of them side by side over all tokens together. */
typedef struct {
  uint64_t in, out, n;
  bool is_sent; /* its input came from other ranks in fp8 */
} LsScaled;

/* Kernels that precede the GEMM; its gradient's; W's. */
void ls_scaled_before_fwd (LsOperator *op, const LsCut *cut, const LsScaled *p);
void ls_scaled_before_igrad (LsOperator *op, const LsCut *cut, const LsScaled *p);
void ls_scaled_before_wgrad (LsOperator *op, const LsCut *cut, const LsScaled *p);
/* W's product, whose operands both have scales of blocks along the tokens where that is so. */
LsKernel ls_scaled_wgrad (const LsShard *s, LsKernel gemm);
/* What is sent in fp8 is cast before, by a kernel of its own. */
bool ls_scaled_casts_sent (const LsShard *s);
LsKernel ls_scaled_cast_sent (const LsCut *cut, uint64_t rows, uint64_t cols);

#endif
