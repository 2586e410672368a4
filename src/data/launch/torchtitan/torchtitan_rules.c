/* What is trained and in which formats, by which kernels: what torchtitan makes of its options. */
#include "data/launch/torchtitan/torchtitan_rules.h"

#include <string.h>

#include <lockstep/error.h>

const char *
torchtitan_text (const LaunchJob *job, const char *name)
{
  static const char *const sections[] = { "parallelism", "experimental", "training" };
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++) {
    g_autofree char *option = g_strconcat (sections[i], ".", name, NULL);
    const char *text = option_text (job, option);
    if (text)
      return text;
  }
  return NULL;
}

/* --- the model ------------------------------------------------------------------------------------- */

/* What it trains beside decoders. */
static bool
check_model (const LaunchJob *job, LsDiagList *diags)
{
  static const char *const others[] = { "flux", "vlm", "llama3-siglip2", NULL };
  const char *name = option_text (job, "model.name");
  if (!name || !g_strv_contains (others, name))
    return true;
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, job->import->path, 0, 0, NULL, NULL, NULL,
               "model.name \"%s\" has images, and is no decoder; a model of Lockstep is one", name);
  return false;
}

/* Layers of torchtitan are built from a flavor, or from a repository of Hugging Face. */
static void
set_model (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *name = option_text (job, "model.name"), *flavor = option_text (job, "model.flavor"),
             *hub = option_text (job, "hf_transformers.model");
  g_autofree char *both = g_strconcat (name ? name : "llama3", "/", flavor ? flavor : "debugmodel", NULL);
  bool is_hub = hub && g_strcmp0 (flavor, "full") == 0;
  if (name || flavor)
    import_model_of_name (import, is_hub ? hub : both);
  else
    import_unknown (import, "model.name and model.flavor: which model is trained is not said");
}

static void
set_norm (LaunchJob *job)
{
  const char *norm = option_text (job, "model.norm_type");
  if (norm)
    import_set_model (job->import, "norm", strstr (norm, "rmsnorm") ? "rmsnorm" : "layernorm",
                      "model.norm_type");
}

/* --- precision ------------------------------------------------------------------------------------- */

static bool
has_converter (const LaunchJob *job, const char *part)
{
  const LaunchOption *o = launch_words_find (job->words, "model.converters");
  for (guint i = 0; o && i < o->values->len; i++)
    if (strstr (o->values->pdata[i], part))
      return true;
  return false;
}

static const char *
recipe_of (const LaunchJob *job)
{
  const char *recipe = option_text (job, "quantize.linear.float8.recipe_name");
  recipe = recipe ? recipe : option_text (job, "float8.recipe_name");
  return recipe ? recipe : "tensorwise";
}

/* A scale for each row is taken for one for the whole tensor: both are found from the tensor itself. */
static void
set_float8 (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *recipe = recipe_of (job);
  bool gathers = option_is_on (job, "quantize.linear.float8.enable_fsdp_float8_all_gather")
      || option_is_on (job, "float8.enable_fsdp_float8_all_gather");
  import_set_strategy (import, "dtype", "fp8", "model.converters");
  import_set_strategy (import, "fp8_recipe", "current", "float8.recipe_name");
  if (strcmp (recipe, "tensorwise") != 0)
    import_unknown (import, "float8.recipe_name %s: taken for one scale for each tensor", recipe);
  if (gathers)
    import_set_strategy (import, "fp8_params", "1", "float8.enable_fsdp_float8_all_gather");
}

static void
set_precision (LaunchJob *job)
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
  if (is_float8)
    set_float8 (job);
  else if (has_converter (job, "mx")) {
    import_set_strategy (import, "dtype", "fp8", "model.converters");
    import_set_strategy (import, "fp8_recipe", "mxfp8", "model.converters");
  }
}

/* --- kernels --------------------------------------------------------------------------------------- */

static bool
compiles_model (const LaunchJob *job)
{
  const LaunchOption *o = launch_words_find (job->words, "compile.components");
  bool has_model = !o;
  for (guint i = 0; o && i < o->values->len; i++)
    has_model = has_model || strcmp (o->values->pdata[i], "model") == 0;
  return option_is_on (job, "training.compile") || (option_is_on (job, "compile.enable") && has_model);
}

/* scaled_dot_product_attention, which takes a fused kernel, or flex_attention, which is one. */
static void
set_attention (LaunchJob *job)
{
  import_set_strategy (job->import, "attention", "flash", "--");
  import_infer (job->import, "attention flash: PyTorch's, which is fused");
}

/* Releases with torch.compile are software of their own; of today's only the kernels are. */
static void
set_compile (LaunchJob *job)
{
  LsImport *import = job->import;
  char **software = &import->strategy.software;
  if (!compiles_model (job))
    return;
  if (strcmp (*software, "torchtitan") == 0) {
    import_set_strategy (import, "kernels", "torchtitan-2025-03-compile", "compile.enable");
    import_infer (import, "kernels torchtitan-2025-03-compile: those that compile.enable runs");
    return;
  }
  char *compiled = g_strconcat (*software, "-compile", NULL);
  import_infer (import, "software %s: with training.compile", compiled);
  g_free (*software);
  *software = compiled;
}

static void
set_optimizer (LaunchJob *job)
{
  const char *name = option_text (job, "optimizer.name"),
             *how = option_text (job, "optimizer.implementation");
  import_set_optimizer (job->import, name, 0, "optimizer.name");
  if (how && strcmp (how, "fused") != 0)
    import_unknown (job->import, "optimizer.implementation %s: taken for fused", how);
}

/* What is taken to be off. */
static void
tell_switches (LaunchJob *job)
{
  static const char *const options[]
      = { "fault_tolerance.enable", "debug.deterministic", "training.deterministic" };
  for (guint i = 0; i < G_N_ELEMENTS (options); i++)
    if (option_is_on (job, options[i]))
      import_unknown (job->import, "%s: taken to be off", options[i]);
}

bool
torchtitan_read (LaunchJob *job, LsDiagList *diags)
{
  job->table = &torchtitan_options;
  if (!check_model (job, diags))
    return false;
  option_release (job, "torchtitan");
  option_read_all (job);
  set_model (job);
  set_norm (job);
  torchtitan_strategy (job);
  set_precision (job);
  set_attention (job);
  set_compile (job);
  set_optimizer (job);
  tell_switches (job);
  g_hash_table_unref (job->open);
  return true;
}
