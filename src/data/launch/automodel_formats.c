/* In which number formats a job of NeMo AutoModel multiplies, reduces, and keeps what it steps on.
 *
 *     how it shards   stored    optimizer                shards and moments        reduced
 *     FSDP 2          16 bits   torch.optim              in 16 bits                reduce_dtype
 *     FSDP 2          16 bits   TE FusedAdam, masters    16 bits beside fp32 ones  reduce_dtype
 *     FSDP 2          fp32      any                      fp32                      reduce_dtype
 *     DDP             any       any                      whole, as stored          as stored
 *
 * param_dtype is bfloat16 and reduce_dtype float32 by themselves (components/distributed/config.py,
 * FSDP2Config of NVIDIA-NeMo/Automodel 36044ad3). What is stored is model.torch_dtype; without it, and with
 * "auto", it is bfloat16 (docs/guides/mixed-precision-training.mdx, which says too what optimizers keep). */
#include <string.h>

#include "data/launch/automodel_options.h"

#define POLICY "distributed.mp_policy."

static bool
is_wide (const char *dtype)
{
  return dtype && strstr (dtype, "32");
}

/* "torch.bfloat16", "bf16": as our files have them; NULL: it is not known. */
static const char *
format_of (const char *dtype)
{
  return is_wide (dtype)                                     ? "fp32"
      : strstr (dtype, "bf16") || strstr (dtype, "bfloat16") ? "bf16"
      : strstr (dtype, "16") || strstr (dtype, "half")       ? "fp16"
                                                             : NULL;
}

static const char *
format_or (LaunchJob *job, const char *name, const char *otherwise)
{
  const char *dtype = option_text (job, name), *ours = dtype ? format_of (dtype) : otherwise;
  if (dtype && !ours && strcmp (dtype, "auto") != 0)
    import_unknown (job->import, "%s %s: taken for %s", name, dtype, otherwise);
  return ours ? ours : otherwise;
}

/* --- products -------------------------------------------------------------------------------------- */

/* Of products by Transformer Engine (components/models/common/utils.py, TEFp8Config). */
static void
set_te_recipe (LsImport *import, const char *name)
{
  static const char *const recipes[][2]
      = { { "mxfp8", "mxfp8" }, { "block", "blockwise" }, { "current", "current" } };
  guint i = 0;
  while (i < G_N_ELEMENTS (recipes) && strcmp (name, recipes[i][0]) != 0)
    i++;
  if (i == G_N_ELEMENTS (recipes))
    import_unknown (import, "model.backend.te_fp8.recipe %s: taken for current", name);
  import_set_strategy (import, "fp8_recipe", i < G_N_ELEMENTS (recipes) ? recipes[i][1] : "current",
                       "model.backend.te_fp8.recipe");
}

static void
set_products (LaunchJob *job, const char *format)
{
  LsImport *import = job->import;
  const char *te = option_text (job, "model.backend.te_fp8.recipe");
  bool is_said = te || option_is_on (job, "fp8.enabled"), is_fp8 = is_said && import->strategy.lora_rank == 0;
  if (is_said && !is_fp8) {
    import_unknown (import, "%s: products beside adapters are taken to be in %s, which take longer",
                    te ? "model.backend.te_fp8" : "fp8.enabled", format);
    te = NULL;
  }
  import_set_strategy (import, "dtype", is_fp8 ? "fp8" : format,
                       POLICY "param_dtype fp8.* model.backend.te_fp8.* te_fp8.*");
  if (te)
    set_te_recipe (import, te);
  else if (is_fp8) {
    const char *recipe = option_text (job, "fp8.recipe_name");
    import_set_strategy (import, "fp8_recipe", "current", "fp8.recipe_name");
    import_set_strategy (import, "fp8_linear", "torchao", "--");
    bool gathers = option_is_on (job, "fp8.enable_fsdp_float8_all_gather"),
         has_experts = import->model.n_experts > 0;
    if (has_experts)
      import_set_strategy (import, "bf16_experts", "1", "--");
    if (gathers && has_experts)
      import_unknown (
          import,
          "fp8.enable_fsdp_float8_all_gather with experts in bf16: all is taken to be gathered in bf16");
    else if (gathers)
      import_set_strategy (import, "fp8_params", "1", "fp8.enable_fsdp_float8_all_gather");
    if (recipe && strcmp (recipe, "tensorwise") != 0)
      import_unknown (import, "fp8.recipe_name %s: taken for one scale for each tensor", recipe);
  }
}

/* --- what is stepped on ---------------------------------------------------------------------------- */

/* All weights are trained, and no shard is cut of them. */
static void
set_whole (LaunchJob *job, const char *stored)
{
  set_products (job, stored);
  if (strcmp (stored, "fp32") == 0)
    return;
  import_set_strategy (job->import, "master", "none", "--");
  import_infer (job->import, "weights %s: so they are stored, and so they are stepped on", stored);
}

/* Transformer Engine's Adam alone has fp32 weights beside those in 16 bits. */
static void
set_shards (LaunchJob *job, const char *stored)
{
  LsImport *import = job->import;
  const char *class = option_text (job, "optimizer._target_");
  bool is_torch = !class || !strstr (class, "FusedAdam"), is_lora = import->strategy.lora_rank > 0;
  if (strcmp (stored, "fp32") == 0) {
    import_infer (import, "shards fp32: model.torch_dtype float32");
    return;
  }
  if (is_torch && !is_lora) {
    import_set_strategy (import, "narrow_shards", "1", "--");
    import_infer (import, "shards %s, and so are the moments: weights are stored so (model.torch_dtype)",
                  stored);
  } else if (!is_torch)
    import_unknown (import, "%s with weights stored in %s: shards and their gradients are taken to be fp32",
                    class, stored);
}

static void
set_formats (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *stored = format_or (job, "model.torch_dtype", "bf16");
  bool is_whole = import->strategy.dp_kind == LS_DP_DDP;
  const char *products
      = option_is_none (job, POLICY "param_dtype") ? stored : format_or (job, POLICY "param_dtype", "bf16");
  if (is_whole) {
    set_whole (job, stored);
    return;
  }
  set_products (job, products);
  if (strcmp (products, "fp32") == 0)
    return;
  import_set_strategy (
      import, "grad_dtype",
      option_is_none (job, POLICY "reduce_dtype") ? products : format_or (job, POLICY "reduce_dtype", "fp32"),
      POLICY "reduce_dtype");
  set_shards (job, stored);
  if (is_wide (option_text (job, POLICY "output_dtype")))
    import_unknown (import, POLICY "output_dtype float32: what passes between layers is taken to be %s",
                    products);
}

/* --- the optimizer --------------------------------------------------------------------------------- */

/* A class: torch.optim.AdamW. */
static void
set_optimizer (LaunchJob *job)
{
  const char *class = option_text (job, "optimizer._target_"), *name = class ? strrchr (class, '.') : NULL,
             *first = option_text (job, "optimizer.exp_avg_dtype"),
             *second = option_text (job, "optimizer.exp_avg_sq_dtype");
  bool is_narrow = (first && !is_wide (first)) || (second && !is_wide (second));
  name = name ? name + 1 : class;
  import_set_optimizer (job->import, g_strcmp0 (name, "FusedAdam") == 0 ? "fused_adam" : name, 0,
                        "optimizer._target_");
  if (is_narrow || option_is_on (job, "optimizer.store_param_remainders"))
    import_unknown (job->import,
                    "optimizer.exp_avg_dtype, exp_avg_sq_dtype, store_param_remainders: all taken as fp32");
}

void
automodel_formats (LaunchJob *job)
{
  set_formats (job);
  set_optimizer (job);
}
