/* In which formats a job of torchtitan is, and what its converters make of it. */
#include <string.h>

#include "data/launch/torchtitan/torchtitan_rules.h"

static bool
has_converter (const LaunchJob *job, const char *part)
{
  const LaunchOption *o = launch_words_find (job->words, "model.converters");
  for (guint i = 0; o && i < o->values->len; i++)
    if (strstr (o->values->pdata[i], part))
      return true;
  return false;
}

bool
torchtitan_compiles (const LaunchJob *job)
{
  const LaunchOption *o = launch_words_find (job->words, "compile.components");
  bool has_model = !o;
  for (guint i = 0; o && i < o->values->len; i++)
    has_model = has_model || strcmp (o->values->pdata[i], "model") == 0;
  return option_is_on (job, "training.compile") || (option_is_on (job, "compile.enable") && has_model);
}

static const char *
recipe_of (const LaunchJob *job)
{
  const char *recipe = option_text (job, "quantize.linear.float8.recipe_name");
  recipe = recipe ? recipe : option_text (job, "float8.recipe_name");
  return recipe ? recipe : "tensorwise";
}

/* Linear layers alone are converted, unless another converter, or in 2025 a list, takes those of experts. A
 * filter leaves out the head and routers, which are not taken to be in fp8. */
static void
set_converted (LaunchJob *job)
{
  static const char *const filters[]
      = { "quantize.linear.float8.filter_fqns", "quantize.linear.mx.filter_fqns", "float8.filter_fqns",
          "mx.filter_fqns" };
  const LaunchOption *listed = launch_words_find (job->words, "float8.moe_fqns_prototype");
  bool has_experts = job->import->model.n_experts > 0,
       are_converted = has_converter (job, "grouped_mm") || (listed && listed->values->len > 0);
  if (has_experts && !are_converted)
    import_set_strategy (job->import, "bf16_experts", "1", "--");
  for (guint f = 0; f < G_N_ELEMENTS (filters); f++) {
    const LaunchOption *o = launch_words_find (job->words, filters[f]);
    for (guint i = 0; o && i < o->values->len; i++) {
      const char *name = o->values->pdata[i];
      if (!strstr (name, "output") && !strstr (name, "router") && !strstr (name, "lm_head"))
        import_unknown (job->import, "%s %s: taken to be converted", filters[f], name);
    }
  }
}

/* A scale for each row is taken for one for the whole tensor: both are found from the tensor itself. */
static void
set_float8 (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *recipe = recipe_of (job);
  bool gathers = option_is_on (job, "quantize.linear.float8.enable_fsdp_float8_all_gather")
      || option_is_on (job, "float8.enable_fsdp_float8_all_gather");
  import_set_strategy (import, "dtype", "fp8", "model.converters float8.*");
  import_set_strategy (import, "fp8_recipe", "current", "float8.recipe_name");
  if (strcmp (recipe, "tensorwise") != 0)
    import_unknown (import, "float8.recipe_name %s: taken for one scale for each tensor", recipe);
  if (gathers && !import->strategy.bf16_experts)
    import_set_strategy (import, "fp8_params", "1", "float8.enable_fsdp_float8_all_gather");
  else if (gathers)
    import_unknown (
        import, "enable_fsdp_float8_all_gather with experts in bf16: all is taken to be gathered in bf16");
  if (!torchtitan_compiles (job))
    import_infer (import, "float8 without compile: casts, several kernels each, are taken to be compiled");
}

/* Configurations in Python, since February 2026, have these outside of all sections. */
static bool
is_python (const LaunchJob *job)
{
  return torchtitan_counts_tokens (job) || g_str_has_suffix (job->import->path, ".py")
      || launch_words_find (job->words, "config") || launch_words_find (job->words, "dump_folder")
      || launch_words_find (job->words, "hf_assets_path");
}

/* Until April 2026 (pytorch/torchtitan pull request 2900) formats are mixed by fully_shard, and since June
 * 2025 by autocast where nothing is sharded nor cut (distributed/utils.py, maybe_enable_amp): all else is as
 * parameters are. */
static bool
is_unmixed (const LaunchJob *job)
{
  const LsStrategy *s = &job->import->strategy;
  bool is_cut = s->tp > 1 || s->pp > 1;
  return s->dp_kind != LS_DP_FSDP2 && (is_cut || torchtitan_is_early (job)) && !is_python (job);
}

static void
set_unmixed (LaunchJob *job)
{
  import_set_strategy (job->import, "dtype", "fp32", "training.mixed_precision_param");
  import_infer (job->import,
                "dtype fp32: without FSDP and context parallelism this release mixes no formats "
                "(\"Mixed precision training is disabled\"); from April 2026 on it does");
}

void
torchtitan_precision (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *param = option_text (job, "training.mixed_precision_param"),
             *dtype = option_text (job, "training.dtype");
  bool is_float8 = has_converter (job, "float8") || option_is_on (job, "float8.enable_float8_linear")
      || option_text (job, "training.fp8_linear");
  import_set_strategy (import, "dtype", param ? param : "bf16", "training.mixed_precision_param");
  import_set_strategy (import, "grad_dtype", "fp32", "training.mixed_precision_reduce");
  if (dtype && strcmp (dtype, "float32") != 0)
    import_unknown (import, "training.dtype %s: parameters are taken to be kept in float32", dtype);
  if (is_float8 || has_converter (job, "mx"))
    set_converted (job);
  if (is_float8)
    set_float8 (job);
  else if (is_unmixed (job))
    set_unmixed (job);
  else if (has_converter (job, "nvfp4")) {
    import_set_strategy (import, "dtype", "nvfp4", "model.converters");
    import_unknown (import, "the layers that NVFP4LinearConverter leaves in bf16: none is taken to be");
  } else if (has_converter (job, "mx")) {
    import_set_strategy (import, "dtype", "fp8", "model.converters float8.*");
    import_set_strategy (import, "fp8_recipe", "mxfp8", "model.converters");
  }
}
