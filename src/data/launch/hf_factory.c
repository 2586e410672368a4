/* The second trainer of LLaMA-Factory, v1 (hiyouga/LLaMA-Factory@ff6d4d12, src/llamafactory/v1): what its
 * options mean together, in those of a Trainer. Its loop is its own. Only FSDP2 computes in another format
 * than that of the weights:
 *
 *     trained    dist_config   weights          products
 *     all        fsdp2         fp32             bf16, but with bf16 off
 *     all        fsdpturbo     bf16, fp32       the same
 *     adapters   fsdp2         as saved         bf16, but with bf16 off
 *     any        deepspeed     DeepSpeed's own  as its configuration says, "auto" is bf16
 *     any        none          fp32, as saved   the same
 *
 * On one GPU that torchrun does not start there is no mesh, and FSDP2 wraps nothing. Reference:
 * core/model_engine.py, _init_model; core/base_trainer.py, _shard_model; distributed/fsdp2.py, get_mp_policy,
 * prepare_model; distributed/fsdpturbo.py, shard_model; model_plugins/deepspeed_utils.py. */
#include <string.h>

#include "data/launch/hf_rules.h"

typedef struct {
  const LaunchJob *own;
  LaunchWords *to;
  const char *sharder; /* of dist_config; "": none */
  guint64 gpus, cp;    /* 0: not known */
} Factory;

static bool
shards_by (const Factory *f, const char *name)
{
  return strcmp (f->sharder, name) == 0;
}

static void
say (const Factory *f, const char *name, const char *value)
{
  launch_words_add_value (f->to, name, value);
}

static void
say_number (const Factory *f, const char *name, guint64 n)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, n);
  say (f, name, text);
}

/* --- who shards ------------------------------------------------------------------------------------ */

/* mp_shard_size is over context parallelism too. */
static void
say_replicas (const Factory *f)
{
  guint64 replicas = option_number (f->own, "mp_replicate_size"),
          shards = option_number (f->own, "mp_shard_size");
  if (replicas <= 1)
    return;
  shards = shards > 0 ? shards : f->gpus / replicas;
  if (shards == 0 || shards % f->cp != 0) {
    import_unknown (f->own->import, "mp_replicate_size: shards are taken to be over all GPUs");
    return;
  }
  say_number (f, "parallelism_config_dp_replicate_size", replicas);
  say_number (f, "parallelism_config_dp_shard_size", shards / f->cp);
}

static void
say_context (const Factory *f)
{
  LsImport *import = f->own->import;
  option_tell_other (f->own, "cp_mode", "ulysses", "ulysses");
  if (f->cp <= 1)
    return;
  say_number (f, "parallelism_config_cp_size", f->cp);
  say (f, "context_parallel_kind", "ulysses");
  if (shards_by (f, "deepspeed"))
    import_conflict (import, "cp_size with dist_config.name deepspeed: LLaMA-Factory refuses it");
  if (g_strcmp0 (option_text (f->own, "flash_attn"), "flash_attention_2") != 0)
    import_conflict (import, "cp_size without flash_attn flash_attention_2: LLaMA-Factory refuses it");
}

/* True: FSDP2 wraps the model. */
static bool
say_sharder (const Factory *f)
{
  LsImport *import = f->own->import;
  bool is_turbo = shards_by (f, "fsdpturbo"), is_fsdp = is_turbo || shards_by (f, "fsdp2");
  option_tell_other (f->own, "dist_config.name", "fsdp2 fsdpturbo deepspeed", "DDP");
  if (is_fsdp && f->gpus == 1) {
    import_unknown (import,
                    "dist_config.name %s on one GPU: taken to be started without torchrun (FORCE_TORCHRUN), "
                    "where it wraps nothing",
                    f->sharder);
    return false;
  }
  if (!is_fsdp)
    return false;
  say (f, "use_fsdp", "True");
  say (f, "fsdp_version", "2");
  say_replicas (f);
  if (is_turbo && option_number (f->own, "dist_config.ep_size") > 1)
    import_unknown (import,
                    "dist_config.ep_size: how FSDPTurbo exchanges tokens is not known here; an all-to-all is "
                    "taken");
  return true;
}

/* --- number formats -------------------------------------------------------------------------------- */

static void
say_formats (const Factory *f, bool is_wrapped, bool is_lora)
{
  LsImport *import = f->own->import;
  bool is_16 = !option_is_off (f->own, "bf16"), is_turbo = is_wrapped && shards_by (f, "fsdpturbo"),
       is_cast = is_wrapped && is_16 && (!is_turbo || is_lora);
  if (shards_by (f, "deepspeed")) {
    launch_words_add_by (f->to, false, "bf16", "True");
    import_infer (import, "bf16: what LLaMA-Factory v1 makes of \"auto\" for DeepSpeed");
  } else if (is_cast) {
    launch_words_add_by (f->to, option_is_on (f->own, "bf16"), "bf16", "True");
    import_infer (import, "bf16: FSDP2 gathers weights in it (plugins/trainer_plugins/distributed/fsdp2.py)");
  } else if (is_16 && !is_turbo) {
    import_infer (import, "bf16 has no effect without FSDP2: products are in the format of the weights");
  }
  if (is_lora && (is_16 || !is_wrapped)) {
    launch_words_add_by (f->to, false, "torch_dtype", "auto");
  } else {
    launch_words_add_by (f->to, false, "torch_dtype", is_turbo && is_16 ? "bfloat16" : "float32");
    import_infer (import, "torch_dtype %s: LLaMA-Factory v1 makes all that is trained so (%s)",
                  is_turbo && is_16 ? "bfloat16" : "float32",
                  is_turbo ? "plugins/trainer_plugins/distributed/fsdpturbo.py" : "core/model_engine.py");
  }
}

/* --- the model ------------------------------------------------------------------------------------- */

/* bnb without a number of bits is of 4, auto of none (plugins/model_plugins/quantization.py). */
static void
say_quantization (const Factory *f)
{
  const char *name = option_text (f->own, "quant_config.name");
  guint64 bits = option_number (f->own, "quant_config.quantization_bit");
  bool is_bnb = name && strcmp (name, "bnb") == 0;
  option_tell_other (f->own, "quant_config.name", "bnb auto", "none");
  bits = bits == 0 && is_bnb ? 4 : bits;
  if (bits == 4)
    say (f, "load_in_4bit", "True");
  else if (bits > 0)
    import_unknown (f->own->import,
                    "quant_config.quantization_bit %" G_GUINT64_FORMAT
                    ": frozen weights are taken to be in 16 bits",
                    bits);
}

/* FlashAttention has no products in fp32; what becomes of such a job depends on releases. */
static void
tell_attention (const Factory *f)
{
  const char *how = option_text (f->own, "flash_attn"),
             *format = option_text (&(LaunchJob) { .words = f->to }, "torch_dtype");
  if (!launch_words_find (f->to, "bf16") && g_strcmp0 (format, "float32") == 0
      && g_strcmp0 (how, "flash_attention_2") == 0)
    import_unknown (f->own->import,
                    "flash_attn flash_attention_2 with products in fp32: it is taken to run in fp32 too");
}

/* True: adapters are trained. FSDP2 wraps each matrix of one (prepare_model). */
static bool
say_tuning (const Factory *f, bool is_wrapped)
{
  const char *name = option_text (f->own, "peft_config.name");
  bool is_lora = name && strcmp (name, "lora") == 0;
  if (is_lora)
    say (f, "use_peft", "True");
  if (is_lora && is_wrapped)
    import_unknown (
        f->own->import,
        "peft_config.name lora with FSDP2: each matrix of an adapter is a unit of its own, gathered "
        "and reduced apart; here it is with its layer");
  if (name && !is_lora)
    import_unknown (f->own->import, "peft_config.name %s: all weights are taken to be trained", name);
  return is_lora;
}

/* "auto" changes nothing but on NPUs; a loss that keeps no logits is off in training
 * (plugins/model_plugins/kernels/interface.py, require_logits). */
static void
tell_kernels (const Factory *f)
{
  const char *text = option_text (f->own, "kernel_config.name");
  g_auto (GStrv) names = g_strsplit (text ? text : "", ",", -1);
  for (char **name = names; *name; name++) {
    g_strstrip (*name);
    if (**name && strcmp (*name, "auto") != 0)
      import_unknown (f->own->import, "kernel_config.name %s: taken to be off", *name);
  }
}

void
hf_factory_say (const LaunchJob *own, guint64 gpus, LaunchWords *to)
{
  guint64 cp = MAX (1, option_number (own, "cp_size")), copies = option_number (own, "dp_size");
  const char *sharder = option_text (own, "dist_config.name");
  Factory f = { .own = own,
                .to = to,
                .sharder = sharder ? sharder : "",
                .gpus = gpus > 0 ? gpus : MIN (copies, G_MAXUINT32) * MIN (cp, G_MAXUINT32),
                .cp = cp };
  if (gpus == 0 && f.gpus > 0)
    say_number (&f, "num_processes", f.gpus);
  say_context (&f);
  bool is_wrapped = say_sharder (&f), is_lora = say_tuning (&f, is_wrapped);
  say_formats (&f, is_wrapped, is_lora);
  tell_attention (&f);
  say_quantization (&f);
  tell_kernels (&f);
}
