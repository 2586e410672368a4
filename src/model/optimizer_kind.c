#include "model/operators.h"
#include "base/order.h"
#include "model/optimizer_kind.h"

/* One step of mixed-precision Adam over flat buffers, on the parameters that this rank owns, as
 * Megatron-LM does it (Float16OptimizerWithFloat16Params: the masters and their gradients are fp32
 * tensors of their own; each line is a multi-tensor kernel over all of them). */

/* Bytes per parameter, with g of the gradient that was
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
 *     nvfp4           2       its maximum, as for any tensor (operators_build.h)
 *                     3.125   read it, write both layouts
 *
 * The least that fused kernels could move is g + 24 + w = 28 or 30 bytes; what is
 * listed is what runs.
 *
 * Where the optimizer steps on the weights themselves, of w bytes as gradients and moments are (PyTorch;
 * ls_optimizer_kernels_own):
 *
 *     unscale         2 w     fp16 only
 *     norm            w
 *     clip            2 w
 *     Adam            7 w     read gradient; read and write weight, m, v
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
 * Reference: PyTorch 2.11, torch/optim/adam.py (_fused_adam), torch/nn/utils/clip_grad.py; Transformer Engine
 * 2.x, pytorch/optimizers/fused_adam.py, functions get_unscaled_state,
 * _apply_scale, step; Megatron-Core, core/optimizer/optimizer_config.py (use_precision_aware_optimizer,
 * store_param_remainders).
 *
 * Reference: Megatron-LM, megatron/optimizer/optimizer.py (2021), functions
 * _copy_model_grads_to_main_grads, _unscale_main_grads_and_check_for_nan,
 * clip_grad_norm and _copy_main_params_to_model_params. */

#define MASTER_AND_MOMENTS_BYTES (3 * 2 * 4) /* three fp32 values, read and written */

static void
append_role (GArray *kernels, LsKernelRole role, const char *name, LsKernelKind kind, LsDtype dtype,
             uint64_t n_params, double bytes_per_param)
{
  LsKernel kernel = ls_kernel_stream (name, kind, dtype, 1, n_params, (double) n_params * bytes_per_param, 0);
  kernel.role = role;
  g_array_append_val (kernels, kernel);
}

static void
append (GArray *kernels, const char *name, LsKernelKind kind, LsDtype dtype, uint64_t n_params,
        double bytes_per_param)
{
  append_role (kernels, LS_ROLE_NONE, name, kind, dtype, n_params, bytes_per_param);
}

static void
append_clip (GArray *kernels, LsDtype dtype, uint64_t n_params)
{
  uint32_t g = ls_dtype_bytes (dtype);
  append_role (kernels, LS_ROLE_CLIP, "grad-norm", LS_KERNEL_REDUCTION, dtype, n_params, g);
  append_role (kernels, LS_ROLE_CLIP, "grad-clip", LS_KERNEL_OPTIMIZER, dtype, n_params, 2 * g);
}

static void
append_unscale (GArray *kernels, LsDtype dtype, uint64_t n_params)
{
  append_role (kernels, LS_ROLE_UNSCALE, "grad-unscale", LS_KERNEL_OPTIMIZER, dtype, n_params,
               2 * ls_dtype_bytes (dtype));
}

static void
append_adam (GArray *kernels, LsDtype dtype, uint64_t n_params, double bytes_per_param)
{
  append_role (kernels, LS_ROLE_STEP, "adam", LS_KERNEL_OPTIMIZER, dtype, n_params, bytes_per_param);
}

void
ls_optimizer_kernels_own (uint64_t n_params, LsDtype dtype, LsDtype weights, GArray *kernels)
{
  uint32_t w = ls_dtype_bytes (weights);
  if (dtype == LS_DTYPE_FP16)
    append_unscale (kernels, weights, n_params);
  append_clip (kernels, weights, n_params);
  append_adam (kernels, weights, n_params, w + 3 * 2 * w);
}

void
ls_optimizer_kernels (uint64_t n_params, LsDtype dtype, LsDtype grad_dtype, GArray *kernels)
{
  bool has_master = dtype == LS_DTYPE_FP16 || dtype == LS_DTYPE_BF16 || ls_dtype_is_scaled (dtype);
  uint32_t g = ls_dtype_bytes (grad_dtype);

  if (g < 4)
    append (kernels, "main-grad-copy", LS_KERNEL_OPTIMIZER, grad_dtype, n_params, g + 4);
  if (dtype == LS_DTYPE_FP16)
    append_unscale (kernels, LS_DTYPE_FP32, n_params);
  append_clip (kernels, LS_DTYPE_FP32, n_params);
  append_adam (kernels, LS_DTYPE_FP32, n_params, 4 + MASTER_AND_MOMENTS_BYTES);
  if (has_master)
    append (kernels, "weight-copy", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params, 4 + 2);
}

bool
ls_adam_is_plain (const LsAdamStates *states)
{
  return states->master == LS_MASTER_FP32 && states->moment == LS_DTYPE_FP32
      && states->variance == LS_DTYPE_FP32;
}

bool
ls_master_is_the_weight (LsMaster master)
{
  return master == LS_MASTER_NONE || master == LS_MASTER_WEIGHTS;
}

uint32_t
ls_adam_bytes (const LsAdamStates *states, LsDtype dtype)
{
  bool has_none = dtype == LS_DTYPE_FP32 || ls_master_is_the_weight (states->master);
  uint32_t master = has_none ? 0 : states->master == LS_MASTER_FP32 ? 4 : 2;
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
    append_role (kernels, LS_ROLE_CAST_STATE, is_before ? "state-unscale" : "state-scale",
                 LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, n_params, bytes);
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
    append_unscale (kernels, grad_dtype, n_params);
  append_clip (kernels, grad_dtype, n_params);
  append_casts (dtypes, n, true, n_params, kernels);
  append_adam (kernels, LS_DTYPE_FP32, n_params, g + 2 * 8 + (dtype == LS_DTYPE_FP32 ? 8 : master));
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

/* The place of the first kernel of this role, all of which are there and then gone. */
static guint
take_out (GArray *kernels, LsKernelRole role)
{
  guint place = kernels->len;
  for (guint i = kernels->len; i-- > 0;)
    if (g_array_index (kernels, LsKernel, i).role == role) {
      g_array_remove_index (kernels, i);
      place = i;
    }
  return place;
}

static LsSizes
sizes_of (LsStepped stepped)
{
  return (LsSizes) {
    .at = { [LS_SIZE_SHARD] = (double) stepped.n_params, [LS_SIZE_TENSORS] = (double) stepped.n_tensors }
  };
}

/* A list is of fp32: narrower weights, with gradients and moments like them, move less. */
static void
put_in (GArray *kernels, guint place, const LsRecipe *r, LsStepped stepped)
{
  const LsSizes sizes = sizes_of (stepped);
  for (guint i = 0; i < r->forward->len; i++) {
    bool is_norm = r->operator_ == LS_RECIPE_CLIP && i == 0;
    LsKernel k = ls_recipe_kernel (&g_array_index (r->forward, LsRecipeKernel, i), &sizes,
                                   is_norm ? LS_KERNEL_REDUCTION : LS_KERNEL_OPTIMIZER);
    if (stepped.is_narrow) {
      k.bytes /= 2;
      k.access = ls_access_narrow (k.access);
    }
    g_array_insert_val (kernels, place + i, k);
  }
}

void
ls_optimizer_as_launched (const LsRecipes *recipes, const LsModel *model, LsStepped stepped, GArray *kernels)
{
  const LsRecipe *clips = ls_recipe_find (recipes, LS_RECIPE_CLIP, model),
                 *steps = ls_recipe_find (recipes, LS_RECIPE_OPTIMIZER, model);
  if (clips)
    put_in (kernels, take_out (kernels, LS_ROLE_CLIP), clips, stepped);
  if (steps && !stepped.is_not_adam)
    put_in (kernels, take_out (kernels, LS_ROLE_STEP), steps, stepped);
}

uint64_t
ls_optimizer_held_bytes (const LsRecipes *recipes, const LsModel *model, LsStepped stepped)
{
  const LsRecipe *steps = ls_recipe_find (recipes, LS_RECIPE_OPTIMIZER, model);
  const LsSizes sizes = sizes_of (stepped);
  if (!steps || !steps->saved || stepped.is_not_adam)
    return 0;
  return (uint64_t) ls_expression_value (steps->saved, &sizes) / (stepped.is_narrow ? 2 : 1);
}

/* Optimizers that are not Adam, as data: what each keeps of a tensor, and the kernels of its step
 * (strategies/optimizers/NAME.json). */

/* --- ownership -------------------------------------------------------------------- */

static void
part_clear (LsOptimizerPart *part)
{
  for (guint i = 0; part->kernels && i < part->kernels->len; i++)
    g_free (g_array_index (part->kernels, LsOptimizerKernel, i).name);
  if (part->kernels)
    g_array_unref (part->kernels);
}

static void
kind_clear (gpointer data)
{
  LsOptimizerKind *kind = data;
  g_free (kind->name);
  g_free (kind->source);
  g_free (kind->note);
  for (guint i = 0; kind->parts && i < kind->parts->len; i++)
    part_clear (&g_array_index (kind->parts, LsOptimizerPart, i));
  if (kind->parts)
    g_array_unref (kind->parts);
}

LsOptimizerKind *
ls_optimizer_kind_new (void)
{
  return g_atomic_rc_box_new0 (LsOptimizerKind);
}

LsOptimizerKind *
ls_optimizer_kind_ref (LsOptimizerKind *kind)
{
  return kind ? g_atomic_rc_box_acquire (kind) : NULL;
}

void
ls_optimizer_kind_unref (LsOptimizerKind *kind)
{
  if (kind)
    g_atomic_rc_box_release_full (kind, kind_clear);
}

/* --- what it is --------------------------------------------------------------------- */

static const LsOptimizerPart *
part_at (const LsOptimizerKind *kind, guint i)
{
  return &g_array_index (kind->parts, LsOptimizerPart, i);
}

static const LsOptimizerKernel *
kernel_at (const LsOptimizerPart *part, guint i)
{
  return &g_array_index (part->kernels, LsOptimizerKernel, i);
}

uint32_t
ls_optimizer_needs (const LsOptimizerKind *kind)
{
  uint32_t needs = 0;
  for (guint p = 0; p < kind->parts->len; p++) {
    const LsOptimizerPart *part = part_at (kind, p);
    needs |= part->row_bytes + part->column_bytes > 0 ? LS_NEEDS_SUMS : 0;
    needs |= part->tile > 0 ? LS_NEEDS_TILES : 0;
    for (guint i = 0; i < part->kernels->len; i++) {
      needs |= kernel_at (part, i)->bytes == 0 ? LS_NEEDS_PRODUCTS : 0;
      needs |= kernel_at (part, i)->sums ? LS_NEEDS_SUMMED_PRODUCTS : 0;
    }
  }
  return needs;
}

double
ls_optimizer_least_state (const LsOptimizerKind *kind)
{
  double least = part_at (kind, 0)->state_bytes;
  for (guint p = 1; p < kind->parts->len; p++)
    least = MIN (least, part_at (kind, p)->state_bytes);
  return least;
}

uint64_t
ls_tensor_numel (const LsTensor *t)
{
  return t->rows * t->columns;
}

static bool
takes (const LsOptimizerPart *part, const LsTensor *t)
{
  bool fits = part->takes == LS_TAKES_ALL || t->kind == LS_TENSOR_MATRIX
      || (part->takes == LS_TAKES_2D && t->kind == LS_TENSOR_TABLE);
  return fits && ls_tensor_numel (t) >= part->min_elements;
}

const LsOptimizerPart *
ls_optimizer_part (const LsOptimizerKind *kind, const LsTensor *t)
{
  guint p = 0;
  while (!takes (part_at (kind, p), t))
    p++;
  return part_at (kind, p);
}

void
ls_optimizer_tiles (const LsOptimizerPart *part, const LsTensor *t, GArray *tiles)
{
  uint64_t tall = part->tile > 0 ? part->tile : t->rows, wide = part->tile > 0 ? part->tile : t->columns;
  for (uint64_t row = 0; row < t->rows; row += tall)
    for (uint64_t column = 0; column < t->columns; column += wide) {
      LsTensor tile = *t;
      tile.rows = MIN (tall, t->rows - row);
      tile.columns = MIN (wide, t->columns - column);
      g_array_append_val (tiles, tile);
    }
}

/* --- what it keeps -------------------------------------------------------------------- */

static bool
has_side (const LsOptimizerPart *part, uint64_t side)
{
  return side > 1 && (part->max_side == 0 || side <= part->max_side);
}

static double
squared (const LsOptimizerPart *part, uint64_t side)
{
  return has_side (part, side) ? (double) side * (double) side : 0;
}

uint64_t
ls_optimizer_state_bytes (const LsOptimizerPart *part, const LsTensor *t, uint64_t n)
{
  double bytes = part->state_bytes * (double) n;
  if (part->block > 0)
    bytes += part->block_bytes * (double) ((n + part->block - 1) / part->block);
  if (n == ls_tensor_numel (t))
    bytes += part->row_bytes * (double) t->rows + part->column_bytes * (double) t->columns
        + part->side_bytes * (squared (part, t->rows) + squared (part, t->columns));
  return (uint64_t) bytes;
}

/* --- what it runs ----------------------------------------------------------------------- */

static uint64_t
preconditioned (const LsOptimizerKernel *k, const LsTensor *t)
{
  return k->of == LS_SIDES_ROWS ? t->rows : t->columns;
}

static bool
applies (const LsOptimizerPart *part, const LsOptimizerKernel *k, const LsTensor *t)
{
  return k->of == LS_SIDES_NONE || has_side (part, preconditioned (k, t));
}

static uint64_t
side_of (int side, const LsTensor *t, LsTensorCut held)
{
  bool rows_are_short = held == LS_TENSOR_WHOLE ? t->rows <= t->columns : held == LS_TENSOR_COLUMNS;
  if (side == LS_SIDE_ROWS || side == LS_SIDE_COLUMNS)
    return side == LS_SIDE_ROWS ? t->rows : t->columns;
  return (side == LS_SIDE_SHORT) == rows_are_short ? t->rows : t->columns;
}

LsKernel
ls_optimizer_product (const LsOptimizerKernel *k, const LsTensor *t, LsTensorCut held)
{
  uint64_t depth = (uint64_t) (k->depth * (double) side_of (k->k, t, held) + 0.5);
  return ls_kernel_gemm (g_intern_string (k->name), (LsDtype) k->dtype, side_of (k->m, t, held),
                         side_of (k->n, t, held), MAX (depth, 1), 1, ls_dtype_bytes ((LsDtype) k->dtype),
                         k->adds);
}

LsKernel
ls_optimizer_stream (const LsOptimizerKernel *k, const LsTensor *t, uint64_t n)
{
  if (k->of != LS_SIDES_NONE)
    n = preconditioned (k, t) * preconditioned (k, t);
  LsKernel kernel = ls_kernel_stream (g_intern_string (k->name), LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, 1, n,
                                      k->bytes * (double) n, 0);
  kernel.access = (LsAccess) k->access;
  kernel.batch = 1;
  return kernel;
}

static double
work_of (const LsOptimizerKernel *k, const LsTensor *t)
{
  return k->bytes == 0 ? ls_optimizer_product (k, t, LS_TENSOR_WHOLE).flops
                       : ls_optimizer_stream (k, t, ls_tensor_numel (t)).bytes;
}

typedef struct {
  double work;
  guint i;
} Turn;

static const LsSortKey most_work_first[] = { { LS_FALLING (Turn, work) }, { LS_RISING (Turn, i) }, { 0 } };

void
ls_optimizer_runs (const LsOptimizerPart *part, const LsOptimizerKernel *k, const LsTensor *const *tensors,
                   guint n, bool *ret_runs)
{
  g_autofree Turn *turns = g_new (Turn, n);
  guint n_turns = 0;
  for (guint i = 0; i < n; i++) {
    ret_runs[i] = applies (part, k, tensors[i]) && k->every == 1;
    if (applies (part, k, tensors[i]) && k->every > 1)
      turns[n_turns++] = (Turn) { work_of (k, tensors[i]), i };
  }
  g_qsort_with_data (turns, (gint) n_turns, sizeof *turns, ls_compare_by, (gpointer) most_work_first);
  double due = 0;
  for (guint j = 0; j < n_turns; j++) {
    due += turns[j].work / k->every;
    ret_runs[turns[j].i] = due >= turns[j].work / 2;
    due -= ret_runs[turns[j].i] ? turns[j].work : 0;
  }
}

double
ls_optimizer_flops (const LsOptimizerPart *part, const LsTensor *t)
{
  double flops = 0;
  for (guint i = 0; i < part->kernels->len; i++) {
    const LsOptimizerKernel *k = kernel_at (part, i);
    if (k->bytes == 0 && applies (part, k, t))
      flops += ls_optimizer_product (k, t, LS_TENSOR_WHOLE).flops * k->times / k->every;
  }
  return flops;
}
