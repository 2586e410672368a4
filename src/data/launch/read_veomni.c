/* Configurations of VeOmni: FSDP2 around a model of Hugging Face, in YAML. Names, defaults and rules as in
 * veomni/arguments/arguments_types.py of ByteDance-Seed/VeOmni@d9774494 (August 2026), and the names that its
 * "train" had in 2025. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/hf_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/yaml_config.h"

#define AS(option, trainer) OPTION_AS_ROW (option, trainer)
#define RULE(option)        OPTION_RULE_ROW (option)

#define MIXED "train.accelerator.fsdp_config.mixed_precision."

static const OptionRow rows[] = {
  AS ("model.model_path", "model_name_or_path"),
  AS ("model.lora_config.rank", "lora_r"),
  AS ("model.lora_config.lora_modules", "lora_target_modules"),
  AS ("model.ops_implementation.attn_implementation", "attn_implementation"),
  AS ("model.attn_implementation", "attn_implementation"),
  AS ("data.max_seq_len", "max_seq_length"),
  AS ("train.micro_batch_size", "per_device_train_batch_size"),
  AS ("train.global_batch_size", "global_train_batch_size"),
  AS ("train.gradient_checkpointing.enable", "gradient_checkpointing"),
  AS ("train.enable_gradient_checkpointing", "gradient_checkpointing"),
  AS ("train.optimizer.max_grad_norm", "max_grad_norm"),
  AS ("train.max_grad_norm", "max_grad_norm"),
  AS ("train.accelerator.ulysses_size", "parallelism_config_cp_size"),
  AS ("train.ulysses_parallel_size", "parallelism_config_cp_size"),
  AS ("train.accelerator.ep_size", "expert_parallel_size"),
  AS ("train.expert_parallel_size", "expert_parallel_size"),
  AS ("train.accelerator.fsdp_config.reshard_after_forward", "fsdp_reshard_after_forward"),
  AS ("train.enable_full_shard", "fsdp_reshard_after_forward"),
  RULE ("model.config_path"),
  RULE ("model.ops_implementation.cross_entropy_loss_implementation"),
  RULE ("model.ops_implementation.moe_implementation"),
  RULE ("train.optimizer"),
  RULE ("train.optimizer.type"),
  RULE ("train.accelerator.dp_replicate_size"),
  RULE ("train.accelerator.dp_shard_size"),
  RULE ("train.accelerator.fsdp_config.fsdp_mode"),
  RULE ("train.accelerator.fsdp_config.offload"),
  RULE ("train.data_parallel_mode"),
  RULE ("train.enable_fsdp_offload"),
  RULE (MIXED "enable"),
  RULE ("train.enable_mixed_precision"),
  RULE ("train.dyn_bsz"),
  RULE ("train.rmpad"),
  RULE ("train.rmpad_with_pos_ids"),
  RULE ("data.data_type"),
};

/* Where its data and checkpoints are, what it logs, and how it learns. */
static const char ignored[]
    = "data.* model.tokenizer_path model.lora_config.alpha model.ops_implementation.load_balancing_* "
      "model.ops_implementation.rotary_pos_emb_vision_* train.num_train_epochs train.max_steps "
      "train.init_device train.empty_cache_steps train.gc_steps train.eval_* train.seed train.bsz_warmup_* "
      "train.checkpoint.* train.wandb.* train.optimizer.lr* train.optimizer.weight_decay "
      "train.optimizer.no_decay_* train.optimizer.muon_lr train.broadcast_model_* train.moe_load_balance_* "
      "train.ep_sharded_* train.output_dir train.lr* train.weight_decay train.save_* train.ckpt_manager "
      "train.use_wandb train.wandb_* train.dyn_bsz_buffer_size train.freeze_vit train.vit_lr "
      "train.enable_profiling train.profile_* train.profile.* train.load_checkpoint_path "
      "train.channel_loss.* train.gradient_checkpointing.enable_reentrant train.enable_reentrant";

static const OptionTable options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

/* --- what they mean of a Trainer --------------------------------------------------------------------- */

typedef struct {
  LaunchJob job;        /* by options of VeOmni        */
  LaunchWords *trainer; /* what they are of a Trainer  */
  bool is_old;          /* names of 2025               */
} Veomni;

static void
say (const Veomni *v, const char *name, const char *value)
{
  launch_words_add_by (v->trainer, false, name, value);
}

/* What nothing says is as the classes of its arguments have it; the first is a switch. */
static void
say_defaults (const Veomni *v)
{
  static const char *const usual[][2] = { { "gradient_checkpointing", "True" },
                                          { "per_device_train_batch_size", "1" },
                                          { "max_grad_norm", "1.0" },
                                          { "max_seq_length", "2048" },
                                          { "attn_implementation", "flash_attention_2" } };
  bool is_off = option_is_off (&v->job, "train.gradient_checkpointing.enable")
      || option_is_off (&v->job, "train.enable_gradient_checkpointing");
  for (guint i = is_off; i < G_N_ELEMENTS (usual); i++)
    if (!launch_words_find (v->trainer, usual[i][0])) {
      say (v, usual[i][0], usual[i][1]);
      import_infer (v->job.import, "%s %s: the default of VeOmni", usual[i][0], usual[i][1]);
    }
  const char *loss = option_text (&v->job, "model.ops_implementation.cross_entropy_loss_implementation");
  if (!v->is_old && (!loss || strcmp (loss, "liger_kernel") == 0))
    say (v, "use_liger_kernel", "True");
}

/* Weights are fp32 with mixed precision, which is on unless it is said (trainer/base.py), else bf16. */
static void
say_format (const Veomni *v)
{
  bool is_off
      = option_is_off (&v->job, MIXED "enable") || option_is_off (&v->job, "train.enable_mixed_precision");
  say (v, "torch_dtype", is_off ? "bfloat16" : "float32");
  say (v, "bf16", "True");
}

static void
say_shards (const Veomni *v)
{
  const char *names[] = { "train.accelerator.fsdp_config.fsdp_mode", "train.data_parallel_mode" },
             *name = names[option_text (&v->job, names[1]) != NULL], *mode = option_text (&v->job, name);
  if (g_strcmp0 (mode, "ddp") == 0)
    return;
  option_tell_other (&v->job, name, "fsdp1 fsdp2 ddp", "fsdp2");
  say (v, "fsdp", "full_shard auto_wrap");
  say (v, "fsdp_version", g_strcmp0 (mode, "fsdp1") == 0 ? "1" : "2");
  if (option_is_on (&v->job, "train.accelerator.fsdp_config.offload")
      || option_is_on (&v->job, "train.enable_fsdp_offload"))
    say (v, "fsdp_offload_params", "True");
  guint64 replicas = option_number (&v->job, "train.accelerator.dp_replicate_size");
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, replicas);
  if (replicas > 1 && replicas < G_MAXUINT16) /* -1: as many as are left */
    say (v, "parallelism_config_dp_replicate_size", text);
}

static void
say_rest (const Veomni *v)
{
  const LaunchJob *job = &v->job;
  const char *optimizer = option_text (job, v->is_old ? "train.optimizer" : "train.optimizer.type");
  if (optimizer && strstr (optimizer, "adamw"))
    say (v, "optim", "adamw_torch");
  else if (optimizer)
    import_unknown (job->import, "optimizer %s: memory and time are those of Adam", optimizer);
  if (option_number (job, "model.lora_config.rank") > 0)
    say (v, "use_peft", "True");
  if (option_number (job, "train.accelerator.ulysses_size") > 1
      || option_number (job, "train.ulysses_parallel_size") > 1)
    say (v, "context_parallel_kind", "ulysses");
  if (!launch_words_find (v->trainer, "model_name_or_path") && option_text (job, "model.config_path"))
    say (v, "model_name_or_path", option_text (job, "model.config_path"));
  if (!option_is_off (job, "train.dyn_bsz"))
    import_open (
        job->import, "lengths",
        "dyn_bsz: samples are packed, and attention is inside each; their lengths are not in the file: it is "
        "taken to be over whole sequences (lengths)");
  option_tell_other (job, "model.ops_implementation.moe_implementation", "fused fused_triton fused_quack",
                     "products of experts that are grouped");
}

/* --- files ------------------------------------------------------------------------------------------- */

/* What trains no decoder on the next token. */
static bool
check_task (const cJSON *tree, const char *path, LsDiagList *diags)
{
  static const char *const marks[] = {
    "dpo_config",         "rl_config", "model.encoders", "model.input_encoder", "model.condition_model_path",
    "train.training_task"
  };
  const char *type = cJSON_GetStringValue (yaml_config_find (tree, "data.data_type"));
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (yaml_config_find (tree, marks[i]))
      return import_refuse_task (path, diags, "%s", marks[i]);
  if (type && (strcmp (type, "diffusion") == 0 || strcmp (type, "dpo") == 0))
    return import_refuse_task (path, diags, "data.data_type %s", type);
  return true;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const char *path = files->files[0].path;
  cJSON *tree = yaml_config_load (files, import, diags);
  if (!tree || !check_task (tree, path, diags)) {
    cJSON_Delete (tree);
    return false;
  }
  bool sees = yaml_config_find (tree, "data.mm_configs") != NULL,
       is_old = !yaml_config_find (tree, "train.accelerator");
  g_autoptr (LaunchWords) words = yaml_config_words (tree), trainer = launch_words_new ();
  Veomni v = { { .import = import, .words = words, .table = &options }, trainer, is_old };
  HfJob hf
      = { .job = { .import = import, .words = trainer },
          .has_trainer = true,
          .release
          = { is_old ? HF_RELEASE_4 : HF_RELEASE_5,
              is_old ? "transformers 4 (VeOmni of 2025)" : "transformers 5.9 (its pyproject.toml)", false } };
  import->program = "VeOmni";
  if (!hf_read_model (files, import, diags))
    return false;
  option_translate (&v.job, trainer);
  say_defaults (&v);
  say_format (&v);
  say_shards (&v);
  say_rest (&v);
  hf_read (&hf);
  import_set_strategy (import, "grad_dtype", "fp32", "--"); /* reduce_dtype */
  if (sees)
    import_unknown (import, "data.mm_configs: what turns images and sounds into tokens is left out");
  return true;
}

static bool
fits (const cJSON *tree)
{
  static const char *const shards[] = { "train.accelerator", "train.data_parallel_mode",
                                        "train.gradient_checkpointing", "train.ckpt_manager" };
  bool is_its = false;
  for (guint i = 0; i < G_N_ELEMENTS (shards); i++)
    is_its = is_its || yaml_config_find (tree, shards[i]);
  return is_its && yaml_config_find (tree, "data.train_path") && yaml_config_find (tree, "model");
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "train_path", fits);
}

const ImportReader import_veomni = { "a configuration of VeOmni", is_its, read };
