/* Options of LitGPT: arguments of setup() of each command, and fields of TrainArgs, EvalArgs and LogArgs
 * (litgpt/pretrain.py, litgpt/finetune, litgpt/args.py of Lightning-AI/litgpt@26857050, June 2026). */
#include <string.h>

#include "data/launch/litgpt/litgpt_rules.h"
#include "data/launch/yaml_config.h"

#define RULE(option)    OPTION_RULE_ROW (option)
#define IGNORED(option) OPTION_IGNORED_ROW (option)

static const OptionRow rows[] = {
  RULE ("checkpoint_dir"),
  RULE ("model_name"),
  RULE ("precision"),
  RULE ("quantize"),
  RULE ("devices"),
  RULE ("num_nodes"),
  RULE ("train.global_batch_size"),
  RULE ("train.micro_batch_size"),
  RULE ("train.max_seq_length"),
  RULE ("train.tie_embeddings"),
  RULE ("train.max_norm"),
  RULE ("train.max_tokens"),
  RULE ("train.epochs"),
  RULE ("optimizer"),
  RULE ("optimizer.class_path"),
  RULE ("optimizer.init_args.fused"),
  RULE ("optimizer.init_args.foreach"),
  RULE ("optimizer.init_args.momentum"),
  RULE ("data"),
  RULE ("data.class_path"),
  RULE ("lora_r"),
  RULE ("lora_dropout"),
  RULE ("lora_query"),
  RULE ("lora_key"),
  RULE ("lora_value"),
  RULE ("lora_projection"),
  RULE ("lora_mlp"),
  RULE ("lora_head"),

  /* the model, where it is said in place */
  RULE ("model_config.n_layer"),
  RULE ("model_config.n_embd"),
  RULE ("model_config.n_head"),
  RULE ("model_config.n_query_groups"),
  RULE ("model_config.head_size"),
  RULE ("model_config.intermediate_size"),
  RULE ("model_config.moe_intermediate_size"),
  RULE ("model_config.vocab_size"),
  RULE ("model_config.padding_multiple"),
  RULE ("model_config.padded_vocab_size"),
  RULE ("model_config.block_size"),
  RULE ("model_config.rotary_percentage"),
  RULE ("model_config.parallel_residual"),
  RULE ("model_config.shared_attention_norm"),
  RULE ("model_config.bias"),
  RULE ("model_config.attn_bias"),
  RULE ("model_config.norm_class_name"),
  RULE ("model_config.mlp_class_name"),
  RULE ("model_config.norm_1"),
  RULE ("model_config.norm_2"),
  RULE ("model_config.norm_qk"),
  RULE ("model_config.norm_qk_type"),
  RULE ("model_config.post_attention_norm"),
  RULE ("model_config.post_mlp_norm"),
  RULE ("model_config.n_expert"),
  RULE ("model_config.n_expert_per_token"),
  RULE ("model_config.sliding_window_size"),
  RULE ("model_config.sliding_window_indices"),
  RULE ("model_config.attention_logit_softcapping"),
  RULE ("model_config.final_logit_softcapping"),
  RULE ("model_config.n_shared_expert"),
  RULE ("model_config.first_k_dense_replace"),
  RULE ("model_config.n_expert_groups"),
  RULE ("model_config.latent_attention.*"),
  RULE ("model_config.lm_head_bias"),

  /* scales, and how positions are turned */
  IGNORED ("model_config.name"),
  IGNORED ("model_config.hf_config*"),
  IGNORED ("model_config.attention_scores_scalar"),
  IGNORED ("model_config.gelu_approximate"),
  IGNORED ("model_config.n_topk_groups"),
  IGNORED ("model_config.n_topk_scores_per_group"),
  IGNORED ("model_config.norm_eps"),
  IGNORED ("model_config.norm_topk_prob"),
  IGNORED ("model_config.rope_*"),
  IGNORED ("model_config.routed_scaling_factor"),
  IGNORED ("model_config.scale_embeddings"),

  /* where data and checkpoints are, what is logged and evaluated, how numbers learn */
  IGNORED ("access_token"),
  IGNORED ("data.*"),
  IGNORED ("eval.*"),
  IGNORED ("initial_checkpoint_dir"),
  IGNORED ("log.*"),
  IGNORED ("logger_name"),
  IGNORED ("lora_alpha"),
  IGNORED ("optimizer.init_args.*"),
  IGNORED ("out_dir"),
  IGNORED ("resume"),
  IGNORED ("seed"),
  IGNORED ("tokenizer_dir"),
  IGNORED ("train.log_interval"),
  IGNORED ("train.lr_warmup_*"),
  IGNORED ("train.max_steps"),
  IGNORED ("train.max_time"),
  IGNORED ("train.min_lr"),
  IGNORED ("train.save_interval"),
};

const OptionTable litgpt_options = { rows, G_N_ELEMENTS (rows) };

/* --- commands ---------------------------------------------------------------------------------------- */

#define FULL                                                                                                 \
  .model = "checkpoint_dir", .sharded = "litgpt-2026", .whole = "litgpt-2026",                               \
  .mixed = "litgpt-2026-autocast", .dp_kind = "fsdp1", .global_batch = 16, .micro_batch = 1, .devices = 1,   \
  .recomputes = true
#define LORA                                                                                                 \
  .model = "checkpoint_dir", .sharded = "litgpt-2026-lora", .whole = "litgpt-2026-lora",                     \
  .mixed = "litgpt-2026-autocast", .dp_kind = "fsdp2", .global_batch = 16, .micro_batch = 1, .devices = 1,   \
  .recomputes = true, .has_adapters = true, .reduces_as_wide = true
#define PROMPTS "trains prompts of LLaMA-Adapter, which cannot be simulated"

static const LitgptCommand commands[] = {
  { .name = "pretrain",
    .model = "model_name",
    .sharded = "litgpt-2026-compile",
    .whole = "litgpt-2026-compile",
    .mixed = "litgpt-2026-compile",
    .dp_kind = "fsdp1",
    .global_batch = 512,
    .micro_batch = 4,
    .is_within_node = true,
    .trains_whole_sequences = true },
  { .name = "finetune_full", FULL },
  { .name = "finetune_lora", LORA },
  { .name = "finetune", LORA },
  { .name = "finetune_adapter", .model = "checkpoint_dir", .refused = PROMPTS },
  { .name = "finetune_adapter_v2", .model = "checkpoint_dir", .refused = PROMPTS },
};

const LitgptCommand *
litgpt_command (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    if (strcmp (commands[i].name, name) == 0)
      return &commands[i];
  return NULL;
}

/* The first with an option that those behind it lack. */
const LitgptCommand *
litgpt_command_of (const cJSON *tree)
{
  static const char *const options[][2] = { { "model_name", "pretrain" },
                                            { "lora_r", "finetune_lora" },
                                            { "lora_query", "finetune_lora" },
                                            { "quantize", "finetune_lora" },
                                            { "checkpoint_dir", "finetune_full" } };
  for (guint i = 0; i < G_N_ELEMENTS (options); i++)
    if (yaml_config_find (tree, options[i][0]))
      return litgpt_command (options[i][1]);
  return NULL;
}
