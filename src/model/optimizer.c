/* One step of mixed-precision Adam over flat buffers, on the parameters that this
 * rank owns, as Megatron-LM does it (Float16OptimizerWithFloat16Params: the masters
 * and their gradients are fp32 tensors of their own; each line is a multi-tensor
 * kernel over all of them). Bytes per parameter, with g of the gradient that was
 * accumulated and w of the weight:
 *
 *     main-grad copy  g + 4   16-bit gradients become fp32; none if they are fp32
 *     unscale         8       fp16 only (loss scaling): divide in place, look for inf
 *     norm            4       sum of squares; kind REDUCTION: the gradient-norm
 *                             all-reduce follows it
 *     clip            8       multiply in place
 *     Adam            28      read gradient; read and write fp32 master, m, v
 *     weight copy     4 + w   masters become 16-bit weights (none in fp32)
 *
 * Behind it weights of fp8 or nvfp4 products are cast, once per step: each rank's whole weights, or with fp8
 * parameters those that it owns (not of mxfp8, which are gathered in 16 bits):
 *
 *     fp8             4       read the 16-bit weight, write it in both layouts
 *     nvfp4           2       its maximum, as for any tensor (operators_scaled.h)
 *                     3.125   read it, write both layouts
 *
 * The least that fused kernels could move is g + 24 + w = 28 or 30 bytes; what is
 * listed is what runs.
 *
 * States narrower than fp32 (Megatron-Core's precision-aware optimizer; ls_optimizer_kernels_narrow), with
 * g of the gradient as above:
 *
 *     unscale         2 g     fp16 only
 *     norm            g
 *     clip            2 g
 *     state unscale   s + 4   each state of s < 4 bytes, to fp32; fp16: 8 more, times its scale
 *     Adam            g + 16 + master    both moments in fp32; master: the 16-bit weight and its other
 *                                        16 bits, read and written, 8; a master in fp32 8 + 2
 *     state scale     4 + s   each of them, from fp32; fp16: its largest value and a product, 4 + 8; fp8: 4
 *
 * Reference: Transformer Engine 2.x, pytorch/optimizers/fused_adam.py, functions get_unscaled_state,
 * _apply_scale, step; Megatron-Core, core/optimizer/optimizer_config.py (use_precision_aware_optimizer,
 * store_param_remainders).
 *
 * Reference: Megatron-LM, megatron/optimizer/optimizer.py (2021), functions
 * _copy_model_grads_to_main_grads, _unscale_main_grads_and_check_for_nan,
 * clip_grad_norm and _copy_main_params_to_model_params. */
#include "model/operators.h"

#define MASTER_AND_MOMENTS_BYTES (3 * 2 * 4) /* three fp32 values, read and written */

static void
append (GArray *kernels, const char *name, LsKernelKind kind, LsDtype dtype, uint64_t n_params,
        double bytes_per_param)
{
  LsKernel kernel = ls_kernel_stream (name, kind, dtype, 1, n_params, (double) n_params * bytes_per_param, 0);
  g_array_append_val (kernels, kernel);
}

void
ls_optimizer_kernels_sharded (uint64_t n_params, LsDtype dtype, GArray *kernels)
{
  if (dtype == LS_DTYPE_FP16)
    append (kernels, "grad-unscale", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params, 8);
  append (kernels, "grad-norm", LS_KERNEL_REDUCTION, LS_DTYPE_FP32, n_params, 4);
  append (kernels, "grad-clip", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params, 8);
  append (kernels, "adam", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params, 4 + MASTER_AND_MOMENTS_BYTES);
}

void
ls_optimizer_kernels (uint64_t n_params, LsDtype dtype, LsDtype grad_dtype, GArray *kernels)
{
  bool has_master = dtype == LS_DTYPE_FP16 || dtype == LS_DTYPE_BF16 || ls_dtype_is_scaled (dtype);
  uint32_t g = ls_dtype_bytes (grad_dtype);

  if (g < 4)
    append (kernels, "main-grad-copy", LS_KERNEL_OPTIMIZER, grad_dtype, n_params, g + 4);
  if (dtype == LS_DTYPE_FP16)
    append (kernels, "grad-unscale", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params, 8);
  append (kernels, "grad-norm", LS_KERNEL_REDUCTION, LS_DTYPE_FP32, n_params, 4);
  append (kernels, "grad-clip", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params, 8);
  append (kernels, "adam", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params, 4 + MASTER_AND_MOMENTS_BYTES);
  if (has_master)
    append (kernels, "weight-copy", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params, 4 + 2);
}

bool
ls_adam_is_plain (const LsAdamStates *states)
{
  return states->master == LS_MASTER_FP32 && states->moment == LS_DTYPE_FP32
      && states->variance == LS_DTYPE_FP32;
}

uint32_t
ls_adam_bytes (const LsAdamStates *states, LsDtype dtype)
{
  uint32_t master = dtype == LS_DTYPE_FP32 ? 0 : states->master == LS_MASTER_FP32 ? 4 : 2;
  return master + ls_dtype_bytes (states->moment) + ls_dtype_bytes (states->variance);
}

/* A state that is not stepped on as it is: its format; fp32: it is. */
static guint
narrow_states (const LsAdamStates *states, LsDtype ret_dtypes[3])
{
  guint n = 0;
  if (states->master == LS_MASTER_FP16)
    ret_dtypes[n++] = LS_DTYPE_FP16;
  if (states->moment != LS_DTYPE_FP32)
    ret_dtypes[n++] = states->moment;
  if (states->variance != LS_DTYPE_FP32)
    ret_dtypes[n++] = states->variance;
  return n;
}

uint32_t
ls_adam_scratch_bytes (const LsAdamStates *states)
{
  LsDtype dtypes[3];
  return 4 * narrow_states (states, dtypes);
}

static void
append_casts (const LsDtype *dtypes, guint n, bool is_before, uint64_t n_params, GArray *kernels)
{
  for (guint i = 0; i < n; i++) {
    bool is_scaled = dtypes[i] == LS_DTYPE_FP16;
    double bytes = ls_dtype_bytes (dtypes[i]) + 4;
    bytes += is_scaled ? 8 : 0;
    bytes += !is_before && dtypes[i] != LS_DTYPE_BF16 ? 4 : 0; /* the largest value */
    append (kernels, is_before ? "state-unscale" : "state-scale", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32,
            n_params, bytes);
  }
}

void
ls_optimizer_kernels_narrow (uint64_t n_params, LsDtype dtype, LsDtype grad_dtype, const LsAdamStates *states,
                             GArray *kernels)
{
  LsDtype dtypes[3];
  guint n = narrow_states (states, dtypes);
  double g = ls_dtype_bytes (grad_dtype), master = states->master == LS_MASTER_REMAINDER ? 8 : 10;
  if (dtype == LS_DTYPE_FP16)
    append (kernels, "grad-unscale", LS_KERNEL_OPTIMIZER, grad_dtype, n_params, 2 * g);
  append (kernels, "grad-norm", LS_KERNEL_REDUCTION, grad_dtype, n_params, g);
  append (kernels, "grad-clip", LS_KERNEL_OPTIMIZER, grad_dtype, n_params, 2 * g);
  append_casts (dtypes, n, true, n_params, kernels);
  append (kernels, "adam", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params,
          g + 2 * 8 + (dtype == LS_DTYPE_FP32 ? 8 : master));
  append_casts (dtypes, n, false, n_params, kernels);
}

void
ls_weight_cast_kernels (uint64_t n_weights, LsDtype dtype, GArray *kernels)
{
  if (n_weights == 0)
    return;
  if (dtype == LS_DTYPE_FP8)
    append (kernels, "fp8-weight-cast", LS_KERNEL_OPTIMIZER, LS_DTYPE_BF16, n_weights, 4);
  if (dtype != LS_DTYPE_NVFP4)
    return;
  append (kernels, "nvfp4-weight-amax", LS_KERNEL_OPTIMIZER, LS_DTYPE_BF16, n_weights, 2);
  append (kernels, "nvfp4-weight-cast", LS_KERNEL_OPTIMIZER, LS_DTYPE_BF16, n_weights,
          2 + 2 * ls_dtype_size (LS_DTYPE_NVFP4));
}

/* The place of the first kernel of these names, which are there and then gone. */
static guint
take_out (GArray *kernels, const char *const *names)
{
  guint place = kernels->len;
  for (guint i = kernels->len; i-- > 0;)
    if (g_strv_contains (names, g_array_index (kernels, LsKernel, i).name)) {
      g_array_remove_index (kernels, i);
      place = i;
    }
  return place;
}

static void
put_in (GArray *kernels, guint place, const LsRecipe *r, LsStepped stepped)
{
  const LsSizes sizes
      = { .at
          = { [LS_SIZE_SHARD] = (double) stepped.n_params, [LS_SIZE_TENSORS] = (double) stepped.n_tensors } };
  for (guint i = 0; i < r->forward->len; i++) {
    bool is_norm = r->operator_ == LS_RECIPE_CLIP && i == 0;
    LsKernel k = ls_recipe_kernel (&g_array_index (r->forward, LsRecipeKernel, i), &sizes,
                                   is_norm ? LS_KERNEL_REDUCTION : LS_KERNEL_OPTIMIZER);
    g_array_insert_val (kernels, place + i, k);
  }
}

void
ls_optimizer_as_launched (const LsRecipes *recipes, const LsModel *model, LsStepped stepped, GArray *kernels)
{
  static const char *const clip[] = { "grad-norm", "grad-clip", NULL }, *const adam[] = { "adam", NULL };
  const LsRecipe *clips = ls_recipe_find (recipes, LS_RECIPE_CLIP, model),
                 *steps = ls_recipe_find (recipes, LS_RECIPE_OPTIMIZER, model);
  if (clips)
    put_in (kernels, take_out (kernels, clip), clips, stepped);
  if (steps && !stepped.is_not_adam)
    put_in (kernels, take_out (kernels, adam), steps, stepped);
}
