/* In which number formats a job of a Trainer, or of accelerate, multiplies, and keeps what it steps on.
 *
 * A model is loaded in the format that torch_dtype or dtype says. Where nothing says it, from_pretrained of
 * transformers 4 makes it fp32, and 5 leaves it as the checkpoint is (trl/trainer/sft_trainer.py tells of
 * both).
 *
 *     mixed precision   loaded    one GPU, DDP                                FSDP
 *     none              16 bits   weights are stepped on as they are          shards in 16 bits
 *     bf16 or fp16      16 bits   the same: nothing is left to cast           shards in fp32
 *     bf16 or fp16      fp32      fp32 weights, cast for each product         shards in fp32
 *
 * Reference: accelerate 1.14, accelerator.py, prepare_model (torch.autocast around the forward; fp32 flat
 * parameters of FSDP 1), utils/fsdp_utils.py, fsdp2_prepare_model (fp32 where mixed_precision is not "no").
 * DeepSpeed keeps fp32 weights of its own beside those in 16 bits, whatever was loaded. Adapters are fp32
 * though what they lie on is in 16 bits (peft/mapping_func.py, autocast_adapter_dtype). */
#include <string.h>

#include "data/launch/hf_rules.h"

/* --- which release --------------------------------------------------------------------------------- */

/* Arguments that transformers 5 has no more (its MIGRATION_GUIDE_V5.md; evaluation_strategy went before), and
 * one of 4.56 on, of which 5 is the nearest that is known. */
static const HfRelease marks[] = {
  { HF_RELEASE_4, "evaluation_strategy", true },
  { HF_RELEASE_4, "overwrite_output_dir", true },
  { HF_RELEASE_4, "no_cuda", true },
  { HF_RELEASE_4, "per_gpu_train_batch_size", true },
  { HF_RELEASE_4, "fp16_backend", true },
  { HF_RELEASE_4, "half_precision_backend", true },
  { HF_RELEASE_5, "dtype", true },
};

/* Programs that are not known are of transformers 4: FastChat, LLaVA (4.37), open-r1 (4.52) and
 * alignment-handbook ask for it, and run_clm.py has had most of its life with it. */
static HfRelease
release_of (const HfJob *hf)
{
  if (hf->release.software)
    return hf->release;
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (launch_words_find (hf->job.words, marks[i].why))
      return marks[i];
  return (HfRelease) { .software = HF_RELEASE_4 };
}

/* --- which formats --------------------------------------------------------------------------------- */

typedef struct {
  const char *mixed;  /* "bf16", "fp16", or another of mixed_precision; NULL: off    */
  const char *loaded; /* "bf16", "fp16", "fp32"                                      */
  const char *said;   /* the option that says how it is loaded; NULL: none           */
  bool is_saved;      /* as the checkpoint is, which no file here says                */
  bool is_mixed_said; /* whether it is on or off                                      */
} Formats;

static const char *
format_of (const char *text)
{
  static const char *const names[][2]
      = { { "bfloat16", "bf16" }, { "bf16", "bf16" },    { "float16", "fp16" }, { "fp16", "fp16" },
          { "half", "fp16" },     { "float32", "fp32" }, { "fp32", "fp32" },    { "auto", "auto" } };
  for (guint i = 0; text && i < G_N_ELEMENTS (names); i++)
    if (strcmp (text, names[i][0]) == 0)
      return names[i][1];
  return NULL;
}

/* What a script hands to from_pretrained. */
static const char *const options[]
    = { "torch_dtype", "dtype", "model_init_kwargs.torch_dtype", "model_init_kwargs.dtype" };

/* What the configuration of DeepSpeed says itself, which a Trainer's arguments may not contradict
 * (transformers/integrations/deepspeed.py, fill_match); NULL: it leaves it to them. */
static const char *
deepspeed_format (const HfJob *hf)
{
  const LaunchJob inner = { .import = hf->job.import, .words = hf->deepspeed };
  if (!hf->deepspeed || !hf_uses_deepspeed (&hf->job))
    return NULL;
  return option_is_on (&inner, "bf16.enabled") || option_is_on (&inner, "bfloat16.enabled") ? "bf16"
      : option_is_on (&inner, "fp16.enabled")                                               ? "fp16"
                                                                                            : NULL;
}

static Formats
formats_of (const HfJob *hf)
{
  const LaunchJob *job = &hf->job;
  const char *mixed = hf_text (job, "mixed_precision"), *own = deepspeed_format (hf);
  mixed = own ? own : mixed;
  Formats f = { .mixed = hf_is_on (job, "bf16") ? "bf16" : hf_is_on (job, "fp16") ? "fp16" : mixed };
  f.is_mixed_said = f.mixed != NULL;
  if (f.mixed && strcmp (f.mixed, "no") == 0)
    f.mixed = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (options) && !f.loaded; i++) {
    f.loaded = format_of (option_text (job, options[i]));
    f.said = f.loaded ? options[i] : NULL;
  }
  f.is_saved
      = f.loaded ? strcmp (f.loaded, "auto") == 0 : strcmp (release_of (hf).software, HF_RELEASE_5) == 0;
  if (f.is_saved)
    f.loaded = format_of (f.mixed) ? format_of (f.mixed) : "bf16";
  if (!f.loaded)
    f.loaded = "fp32";
  return f;
}

static bool
is_wide (const char *format)
{
  return strcmp (format, "fp32") == 0;
}

/* A Trainer's arguments say it too. */
static bool
is_absent (const HfJob *hf)
{
  return !hf->has_trainer && !hf->deepspeed && hf_deepspeed_file (&hf->job) != NULL;
}

/* Of accelerate (utils/dataclasses.py, AORecipeKwargs and TERecipeKwargs; of those that are installed the
 * first, Accelerator.__init__): linear layers alone. FSDP2 gathers what torchao casts, by itself. */
void
hf_set_fp8 (HfJob *hf)
{
  const LaunchJob *job = &hf->job;
  LsImport *import = job->import;
  if (import->strategy.dtype != LS_DTYPE_FP8)
    return;
  const char *said = hf_text (job, "fp8_config.backend"),
             *backend = said ? said : hf_text (job, "fp8_backend");
  bool is_te = backend && g_ascii_strcasecmp (backend, "te") == 0,
       is_ao = !backend || g_ascii_strcasecmp (backend, "ao") == 0,
       is_off = option_is_off (job, "fp8_config.enable_fsdp_float8_all_gather"),
       has_experts = import->model.n_experts > 0;
  if (!backend)
    import_unknown (import, "mixed_precision fp8 without a backend: torchao's linear layers are taken");
  else if (!is_te && !is_ao)
    import_unknown (import, "fp8 backend %s: taken for Transformer Engine", backend);
  import_set_strategy (import, "fp8_recipe",
                       is_ao                                                          ? "current"
                           : option_is_on (job, "fp8_config.use_mxfp8_block_scaling") ? "mxfp8"
                                                                                      : "delayed",
                       "fp8_config.backend fp8_config.use_mxfp8_block_scaling");
  import_set_strategy (import, "fp8_linear", is_ao ? "torchao" : "te", "fp8_config.backend");
  if (is_ao && has_experts)
    import_set_strategy (import, "bf16_experts", "1", "--");
  else if (is_ao && !is_off && import->strategy.dp_kind == LS_DP_FSDP2)
    import_set_strategy (import, "fp8_params", "1", "fp8_config.enable_fsdp_float8_all_gather");
}

void
hf_set_dtype (HfJob *hf)
{
  LsImport *import = hf->job.import;
  Formats f = formats_of (hf);
  bool is_python = hf_deepspeed_is_python (&hf->job);
  if (hf_is_on (&hf->job, "bf16") && hf_is_on (&hf->job, "fp16"))
    import_conflict (import, "bf16 and fp16");
  for (guint i = 0; i < G_N_ELEMENTS (options); i++) {
    const char *text = option_text (&hf->job, options[i]);
    if (text && !format_of (text))
      import_unknown (import, "%s %s: no number format that is known", options[i], text);
  }
  const char *why = is_python ? "the script of Python says it"
      : is_absent (hf)        ? "the configuration of DeepSpeed says it, which is not here"
      : import->may_have_more ? "bf16 or fp16 may be among the words that are not said"
                              : NULL;
  if (deepspeed_format (hf))
    import_note_word (import, "bf16.enabled", NULL);
  if (!f.is_mixed_said && is_wide (f.loaded) && why)
    import_open (import, "dtype", "the number format: %s", why);
  else
    import_set_strategy (import, "dtype", f.mixed ? f.mixed : f.loaded,
                         "mixed_precision bf16 fp16 torch_dtype dtype pure_bf16 bf16.enabled");
}

/* --- what is stepped on ---------------------------------------------------------------------------- */

typedef enum { SHARDS_NONE, SHARDS_FSDP, SHARDS_DEEPSPEED } Shards;

static Shards
shards_of (const LaunchJob *job)
{
  return hf_uses_deepspeed (job) ? SHARDS_DEEPSPEED : hf_uses_fsdp (job) ? SHARDS_FSDP : SHARDS_NONE;
}

static void
tell_loaded (const HfJob *hf, const Formats *f, const char *how)
{
  LsImport *import = hf->job.import;
  if (f->is_saved)
    import_infer (import, "weights %s%s: loaded as the checkpoint is (%s), which is taken for %s", f->loaded,
                  how, f->said ? f->said : "transformers 5 without dtype", f->loaded);
  else if (f->said)
    import_infer (import, "weights %s%s: so %s has it", f->loaded, how, f->said);
  else
    import_infer (import,
                  "weights %s%s: no torch_dtype, without which from_pretrained of transformers 4 makes "
                  "them fp32; a script may do otherwise",
                  f->loaded, how);
}

/* All weights are trained, and no shard is cut of them. */
static void
set_whole (const HfJob *hf, const Formats *f)
{
  LsImport *import = hf->job.import;
  bool is_cast = is_wide (f->loaded);
  import_set_strategy (import, "master", is_cast ? "weights" : "none", "--");
  tell_loaded (hf, f, is_cast ? ", cast for each product" : ", which are stepped on as they are");
  if (f->mixed && strcmp (f->mixed, "fp16") == 0 && strcmp (f->loaded, "fp16") == 0)
    import_unknown (import,
                    "fp16 with weights in fp16: PyTorch does not scale such gradients; a program that "
                    "makes fp32 of the weights takes more memory");
}

static void
set_adapters (const HfJob *hf, const Formats *f)
{
  LsImport *import = hf->job.import;
  import_set_strategy (import, "master", "weights", "--");
  import_infer (import, "adapters fp32: PEFT makes them so (autocast_adapter_dtype)");
  if (is_wide (f->loaded) && !import->strategy.qlora)
    import_unknown (import,
                    "frozen weights are loaded in fp32 (%s): taken to be in 16 bits, half of their memory",
                    f->said ? f->said : "no torch_dtype");
  else if (!import->strategy.qlora)
    tell_loaded (hf, f, ", frozen");
}

/* On one GPU, and with NO_SHARD, nothing is cut. */
static void
set_shards (const HfJob *hf, const Formats *f)
{
  LsImport *import = hf->job.import;
  bool is_whole = import->strategy.gpus == 1 || import->strategy.dp_kind == LS_DP_DDP,
       is_fp32 = f->mixed || is_wide (f->loaded);
  if (is_whole)
    import_set_strategy (import, "master", is_fp32 ? "weights" : "none", "--");
  else if (!is_fp32)
    import_set_strategy (import, "narrow_shards", "1", "--");
  if (f->mixed && f->said && is_wide (f->loaded))
    tell_loaded (hf, f, ", and so are shards");
  else if (f->mixed)
    import_infer (import, "shards fp32: accelerate makes what FSDP trains fp32 with mixed_precision %s",
                  f->mixed);
  else
    tell_loaded (hf, f, ", and so are shards: mixed_precision is off");
}

/* --- the profile ----------------------------------------------------------------------------------- */

static void
tell_release (LsImport *import, const HfRelease *r, const char *name)
{
  if (!r->why)
    import_infer (
        import, "software %s: nothing says which release of transformers; most such scripts are of 4", name);
  else if (r->is_option)
    import_infer (import, "software %s: %s is an option of its time", name, r->why);
  else
    import_infer (import, "software %s: %s asks for %s", name, import->program, r->why);
}

/* Where DeepSpeed's configuration names no optimizer a Trainer makes one, torch's AdamW (transformers:
 * integrations/deepspeed.py, deepspeed_optim_sched), by foreach if it is asked for no other. LLaMA-Factory's
 * train_bash.py, until May 2024, ran with PyTorch 1.13 on. */
static void
set_step (HfJob *hf)
{
  LaunchJob *job = &hf->job;
  const LsStrategy *s = &job->import->strategy;
  const char *optim = option_text (job, "optim");
  bool is_old = job->script && g_str_has_suffix (job->script, "train_bash.py"),
       is_of_5 = !is_old && strcmp (release_of (hf).software, HF_RELEASE_5) == 0,
       is_fused = optim ? strstr (optim, "fused") != NULL : is_of_5;
  if (!hf->has_trainer || !hf->deepspeed || launch_words_find (hf->deepspeed, "optimizer.type") || is_fused
      || s->zero_stage == 0 || s->optimizer_kind || s->offload != LS_OFFLOAD_NONE)
    return;
  import_set_strategy (job->import, "kernels",
                       is_old ? "hf-transformers-4.49+deepspeed-torch-adamw-2023"
                              : "hf-transformers-4.49+deepspeed-torch-adamw",
                       "optim");
  import_infer (job->import,
                "kernels %s: DeepSpeed configures no optimizer, so that the Trainer's AdamW is "
                "torch's, which is not fused",
                job->import->strategy.kernels);
}

/* Liger's kernels are software of their own, of one release; DeepSpeed's runs with those of Transformers. */
static void
set_software (HfJob *hf, const Formats *f, Shards shards, bool is_lora)
{
  LsImport *import = hf->job.import;
  bool is_liger = hf_is_on (&hf->job, "use_liger_kernel");
  if (shards == SHARDS_DEEPSPEED) {
    if (!import->strategy.software) /* no configuration of it was read */
      option_release (&hf->job, "deepspeed");
    if (is_liger)
      import_unknown (import, "use_liger_kernel: taken to be off");
    set_step (hf);
    return;
  }
  if (is_liger) {
    import_set_software (import, "hf-trainer-2024-liger");
    import_infer (import, "software hf-trainer-2024-liger: with use_liger_kernel");
    return;
  }
  HfRelease r = release_of (hf);
  bool is_cast = shards == SHARDS_NONE && f->mixed && is_wide (f->loaded) && !is_lora;
  g_autofree char *name = g_strconcat (r.software, is_cast ? "-autocast" : "", NULL);
  import_set_software (import, name);
  tell_release (import, &r, name);
}

void
hf_set_formats (HfJob *hf)
{
  LsImport *import = hf->job.import;
  Formats f = formats_of (hf);
  Shards shards = shards_of (&hf->job);
  bool is_lora = import->strategy.lora_rank > 0, is_open = import_is_open (import, "dtype");
  set_software (hf, &f, shards, is_lora);
  if (shards == SHARDS_DEEPSPEED || is_open || import->strategy.dtype == LS_DTYPE_FP32)
    return;
  if (is_lora)
    set_adapters (hf, &f);
  else if (shards == SHARDS_FSDP)
    set_shards (hf, &f);
  else
    set_whole (hf, &f);
}

/* --- attention by a name ------------------------------------------------------------------------------ */

/* Of flash_attention_2, flash_attention_3 and the kernels of the Hub (kernels-community/flash-attn, -attn2,
 * vllm-flash-attn3, and behind an @ their revision), which transformers.modeling_utils loads by their names.
 * NULL: none that is known. */
static const char *
flash_of (const char *how)
{
  static const char package[] = "flash-attn";
  const char *plain = strstr (how, package);
  if (strstr (how, "flash_attention_3") || strstr (how, "flash-attn3"))
    return "fa3";
  bool is_fa2 = strstr (how, "flash_attention_2") || strstr (how, "flash-attn2")
      || (plain && !g_ascii_isdigit (plain[strlen (package)]));
  return is_fa2 ? "fa2" : NULL;
}

void
hf_set_attention (LaunchJob *job)
{
  const char *how = option_text (job, "attn_implementation"), *kernel = how ? flash_of (how) : NULL;
  if (!how)
    return;
  import_set_strategy (job->import, "attention", strcmp (how, "eager") == 0 ? "unfused" : "flash",
                       "attn_implementation");
  if (strstr (how, "flash"))
    import_set_strategy (job->import, "window_mask", "0", "--");
  if (kernel)
    import_set_strategy (job->import, "attention_kernel", kernel, "attn_implementation");
  else if (strcmp (how, "eager") != 0 && strcmp (how, "sdpa") != 0)
    import_unknown (job->import, "attn_implementation %s: attention takes the time of sdpa", how);
}
