/* Programs around a Trainer of Hugging Face: their options, what they take where none is given, and with
 * which release of transformers they run. */
#include "data/launch/hf_rules.h"

#define RULE(option)      OPTION_RULE_ROW (option)
#define AS(option, other) OPTION_AS_ROW (option, other)
#define IGNORED(option)   OPTION_IGNORED_ROW (option)

/* modelscope/ms-swift (3602360a, August 2026): swift/arguments and swift/trainers/arguments.py. The model's
 * name and author are what it is taught to call itself. */
static const OptionRow swift_rows[] = {
  AS ("model", "model_name_or_path"),
  AS ("attn_impl", "attn_implementation"),
  AS ("target_modules", "lora_target_modules"),
  AS ("lora_rank", "lora_r"),
  AS ("sequence_parallel_size", "parallelism_config_cp_size"),
  RULE ("tuner_type"),
  RULE ("train_type"),
  RULE ("sft_type"),
  RULE ("torch_dtype"),
  RULE ("quant_bits"),
  RULE ("task_type"),
  IGNORED ("model_name"),
  IGNORED ("model_author"),
  AS ("*", "*"),
};

static const HfWord swift_words[] = {
  { "tuner_type", "lora", "use_peft", "True" },
  { "tuner_type", "full", "use_peft", "False" },
  { "train_type", "lora", "use_peft", "True" },
  { "train_type", "full", "use_peft", "False" },
  { "sft_type", "lora", "use_peft", "True" },
  { "sft_type", "full", "use_peft", "False" },
  { "torch_dtype", "bfloat16", "bf16", "True" },
  { "torch_dtype", "float16", "fp16", "True" },
  { "torch_dtype", "float32", "fp16", "True" },
  { "fsdp", "fsdp2", "fsdp_version", "2" },
  { "quant_bits", "4", "load_in_4bit", "True" },
  { "torch_dtype", "bfloat16", "torch_dtype", "bfloat16" },
  { "torch_dtype", "float16", "torch_dtype", "float16" },
  { "torch_dtype", "float32", "torch_dtype", "float32" },
};

static const HfDefault swift_defaults[] = {
  { "use_peft", "True", "tuner_type train_type sft_type" },
  { "lora_r", "8", "", "use_peft" },
  { "lora_target_modules", "all-linear", "", "use_peft" },
  { "bf16", "True", "torch_dtype fp16 bf16" },
  { "torch_dtype", "auto", "torch_dtype",
    .why = "weights are as config.json says (swift/model/model_meta.py, get_model_info_meta)" },
  { "gradient_checkpointing", "True", "" },
  { "per_device_train_batch_size", "1", "" },
};

#define SWIFT_ZERO_2(stage, device)                                                                          \
  "{\"zero_optimization\": {\"stage\": " stage ", \"offload_optimizer\": {\"device\": \"" device             \
  "\"}, \"allgather_bucket_size\": 2e8, \"reduce_bucket_size\": 2e8, \"overlap_comm\": false}, " SWIFT_AUTO
#define SWIFT_ZERO_3(device)                                                                                 \
  "{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"" device                     \
  "\"}, \"offload_param\": {\"device\": \"" device "\"}, \"overlap_comm\": false, "                          \
  "\"reduce_bucket_size\": \"auto\", \"stage3_prefetch_bucket_size\": \"auto\", "                            \
  "\"stage3_param_persistence_threshold\": \"auto\", \"stage3_max_live_parameters\": 1e9, "                  \
  "\"stage3_max_reuse_distance\": 1e9}, " SWIFT_AUTO
#define SWIFT_AUTO                                                                                           \
  "\"bf16\": {\"enabled\": \"auto\"}, \"fp16\": {\"enabled\": \"auto\"}, "                                   \
  "\"gradient_accumulation_steps\": \"auto\", \"gradient_clipping\": \"auto\", "                             \
  "\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\"}"

/* Its swift/config: what a configuration of DeepSpeed says that has no other name. */
static const HfFile swift_files[] = {
  { "zero0", SWIFT_ZERO_2 ("0", "none") }, { "zero1", SWIFT_ZERO_2 ("1", "none") },
  { "zero2", SWIFT_ZERO_2 ("2", "none") }, { "zero2_offload", SWIFT_ZERO_2 ("2", "cpu") },
  { "zero3", SWIFT_ZERO_3 ("none") },      { "zero3_offload", SWIFT_ZERO_3 ("cpu") },
};

/* hiyouga/LLaMA-Factory (ff6d4d12, 2026): src/llamafactory/hparams; layers are recomputed unless it is told
 * not to (model/model_utils/checkpointing.py). */
static const OptionRow llama_factory_rows[] = {
  AS ("lora_target", "lora_target_modules"),
  AS ("lora_rank", "lora_r"),
  AS ("enable_liger_kernel", "use_liger_kernel"),
  RULE ("finetuning_type"),
  RULE ("stage"),
  RULE ("flash_attn"),
  RULE ("quantization_bit"),
  RULE ("disable_gradient_checkpointing"),
  RULE ("pure_bf16"),
  IGNORED ("max_samples"),
  IGNORED ("plot_loss"),
  IGNORED ("val_size"),
  AS ("*", "*"),
};

static const HfWord llama_factory_words[] = {
  { "finetuning_type", "lora", "use_peft", "True" },
  { "finetuning_type", "full", "use_peft", "False" },
  { "use_badam", NULL, "torch_dtype", "auto" },
  { "pure_bf16", NULL, "torch_dtype", "bfloat16" },
  { "disable_gradient_checkpointing", NULL, "gradient_checkpointing", "False" },
  { "flash_attn", "disabled", "attn_implementation", "eager" },
  { "flash_attn", "sdpa", "attn_implementation", "sdpa" },
  { "flash_attn", "fa2", "attn_implementation", "flash_attention_2" },
  { "flash_attn", "fa3", "attn_implementation", "flash_attention_3" },
  { "flash_attn", "auto", "attn_implementation", "sdpa" },
  { "quantization_bit", "4", "load_in_4bit", "True" },
};

static const HfDefault llama_factory_defaults[] = {
  { "use_peft", "True", "finetuning_type" },
  { "lora_r", "8", "", "use_peft" },
  { "lora_target_modules", "all", "", "use_peft" },
  { "torch_dtype", "auto", "pure_bf16", "use_peft",
    .why = "weights are as a checkpoint has them (model/loader.py, load_model)" },
  { "torch_dtype", "float32", "pure_bf16",
    .why = "all that is trained is made fp32 without pure_bf16 (model/adapter.py, init_adapter)" },
  { "gradient_checkpointing", "True", "disable_gradient_checkpointing" },
  { "cutoff_len", "2048", "" },
};

/* Its second trainer, USE_V1: src/llamafactory/v1/config. It always has a norm of gradients
 * (core/base_trainer.py, fit). What else its options mean is in hf_factory.c. */
static const OptionRow llama_factory_1_rows[] = {
  AS ("model", "model_name_or_path"),
  AS ("micro_batch_size", "per_device_train_batch_size"),
  AS ("global_batch_size", "global_train_batch_size"),
  AS ("cutoff_len", "cutoff_len"),
  AS ("flash_attn", "attn_implementation"),
  AS ("enable_activation_checkpointing", "gradient_checkpointing"),
  AS ("dist_config.reshard_after_forward", "fsdp_reshard_after_forward"),
  AS ("dist_config.offload_params", "fsdp_offload_params"),
  AS ("dist_config.config_file", "deepspeed"),
  AS ("dist_config.ep_size", "expert_parallel_size"),
  AS ("optim_config.name", "optim"),
  AS ("peft_config.r", "lora_r"),
  AS ("peft_config.lora_dropout", "lora_dropout"),
  AS ("peft_config.target_modules", "lora_target_modules"),
  RULE ("batching_strategy"),
  RULE ("bf16"),
  RULE ("cp_mode"),
  RULE ("cp_size"),
  RULE ("dist_config.ep_dispatcher"),
  RULE ("dist_config.name"),
  RULE ("dp_size"),
  RULE ("kernel_config.name"),
  RULE ("model_class"),
  RULE ("mp_replicate_size"),
  RULE ("mp_shard_size"),
  RULE ("peft_config.name"),
  RULE ("quant_config.name"),
  RULE ("quant_config.quantization_bit"),
};

static const char llama_factory_1_ignored[]
    = "batching_workers custom_chat_template dist_config.dcp_path dist_config.pin_memory dist_timeout "
      "dpo_label_smoothing eval_dataset init_config.* kernel_config.* ld_alpha learning_rate "
      "logging_steps lr_scheduler_config.* max_grad_norm max_new_tokens max_steps num_train_epochs "
      "optim_config.* output_dir peft_config.adapter_name_or_path peft_config.export_* "
      "peft_config.freeze_* peft_config.infer_dtype peft_config.lora_alpha peft_config.use_rslora pref_* "
      "quant_config.* resume_from_checkpoint sample_backend save_* seed simpo_gamma train_dataset "
      "trust_remote_code";

static const HfWord llama_factory_1_words[] = {
  { "batching_strategy", "padding_free", "padding_free", "True" },
  { "batching_strategy", "dynamic_padding_free", "padding_free", "True" },
  { "batching_strategy", "normal", "padding_free", "False" },
  { "batching_strategy", "dynamic_batching", "padding_free", "False" },
};

static const HfDefault llama_factory_1_defaults[] = {
  { "model_name_or_path", "Qwen/Qwen3-4B-Instruct-2507", "" },
  { "per_device_train_batch_size", "1", "" },
  { "cutoff_len", "2048", "" },
  { "gradient_checkpointing", "True", "enable_activation_checkpointing" },
  { "gradient_checkpointing_kwargs", "{\"use_reentrant\": false}", "", "gradient_checkpointing",
    "layers are checkpointed without reentrance (v1/core/base_trainer.py)" },
  { "lora_r", "8", "", "use_peft" },
  { "lora_dropout", "0.05", "", "use_peft" },
  { "lora_target_modules", "all", "", "use_peft" },
};

/* deepspeedai/DeepSpeedExamples (45b4b715, March 2026): applications/DeepSpeed-Chat, main.py of
 * training/step1_supervised_finetuning. Linear layers whose names contain lora_module_name have adapters. */
static const OptionRow deepspeed_chat_rows[] = {
  AS ("lora_dim", "lora_r"),
  RULE ("lora_module_name"),
  RULE ("only_optimize_lora"),
  RULE ("dtype"),
  RULE ("offload"),
  IGNORED ("add_eot_token"),
  IGNORED ("enable_tensorboard"),
  IGNORED ("eot_token"),
  IGNORED ("print_loss"),
  IGNORED ("sft_only_data_path"),
  IGNORED ("tensorboard_path"),
  AS ("*", "*"),
};

static const HfWord deepspeed_chat_words[] = {
  { "deepspeed", NULL, "deepspeed", "get_train_ds_config" },
  { "dtype", "fp16", "fp16", "True" },
  { "dtype", "bf16", "bf16", "True" },
  { "offload", NULL, "offload_optimizer_device", "cpu" },
  { "offload", NULL, "offload_param_device", "cpu" },
  { "lora_dim", NULL, "use_peft", "True" },
  { "lora_module_name", "decoder.layers.", "lora_target_modules", "all-linear" },
  { "lora_module_name", "layers.", "lora_target_modules", "all-linear" },
};

static const HfDefault deepspeed_chat_defaults[] = {
  { "deepspeed", "get_train_ds_config", "" },
  { "fp16", "True", "dtype" },
  { "zero_stage", "0", "" },
  { "offload_optimizer_device", "none", "" },
  { "offload_param_device", "none", "" },
  { "per_device_train_batch_size", "16", "" },
  { "max_seq_len", "512", "" },
  { "lora_target_modules", "all-linear", "lora_module_name", "use_peft" },
};

/* Made by dschat/utils/ds_utils.py. */
static const HfFile deepspeed_chat_files[] = {
  { "get_train_ds_config",
    "{\"zero_optimization\": {\"stage\": \"auto\", \"overlap_comm\": true, "
    "\"offload_param\": {\"device\": \"auto\"}, \"offload_optimizer\": {\"device\": \"auto\"}, "
    "\"stage3_param_persistence_threshold\": 1e4, \"stage3_max_live_parameters\": 3e7, "
    "\"stage3_prefetch_bucket_size\": 3e7}, \"bf16\": {\"enabled\": \"auto\"}, "
    "\"fp16\": {\"enabled\": \"auto\"}, \"gradient_clipping\": 1.0, "
    "\"gradient_accumulation_steps\": \"auto\", \"train_batch_size\": \"auto\", "
    "\"train_micro_batch_size_per_gpu\": \"auto\"}" },
};

/* huggingface/trl (f2cd5771, July 2026): trl/scripts/sft.py, trainer/model_config.py and base_config.py; also
 * what alignment-handbook and open-r1 start, whose recipes have options of older releases: torch_dtype until
 * December 2025, max_seq_length until July 2025. Their defaults are those of a Trainer. */
#define TRL_OLD "torch_dtype max_seq_length overwrite_output_dir evaluation_strategy"

static const OptionRow trl_rows[] = { AS ("*", "*") };

static const HfDefault trl_defaults[] = {
  { "torch_dtype", "float32", TRL_OLD " dtype model_init_kwargs.dtype model_init_kwargs.torch_dtype",
    .why = "the default of dtype of TRL (trainer/model_config.py)" },
  { "bf16", "True", TRL_OLD " bf16 fp16" },
  { "gradient_checkpointing", "True", TRL_OLD },
  { "max_length", "1024", TRL_OLD },
};

/* OpenRLHF/OpenRLHF (3c3be623, August 2026): openrlhf/cli/train_sft.py; options have sections since April
 * 2026. train_batch_size is that of all ranks; param_dtype was a switch bf16. */
static const OptionRow openrlhf_rows[] = {
  AS ("pretrain", "model_name_or_path"),
  AS ("model.model_name_or_path", "model_name_or_path"),
  AS ("max_len", "max_seq_length"),
  AS ("data.max_len", "max_seq_length"),
  AS ("train_batch_size", "global_train_batch_size"),
  AS ("train.batch_size", "global_train_batch_size"),
  AS ("micro_train_batch_size", "per_device_train_batch_size"),
  AS ("train.micro_batch_size", "per_device_train_batch_size"),
  AS ("model.gradient_checkpointing_enable", "gradient_checkpointing"),
  AS ("max_norm", "max_grad_norm"),
  AS ("ds.zero_stage", "zero_stage"),
  AS ("ds.attn_implementation", "attn_implementation"),
  AS ("ds.use_liger_kernel", "use_liger_kernel"),
  AS ("packing_samples", "packing"),
  AS ("ds.packing_samples", "packing"),
  AS ("ring_attn_size", "parallelism_config_cp_size"),
  AS ("ds.ring_attn_size", "parallelism_config_cp_size"),
  AS ("ds_tensor_parallel_size", "parallelism_config_tp_size"),
  AS ("ds.tensor_parallel_size", "parallelism_config_tp_size"),
  AS ("lora_rank", "lora_r"),
  AS ("ds.lora.rank", "lora_r"),
  AS ("target_modules", "lora_target_modules"),
  AS ("ds.lora.target_modules", "lora_target_modules"),
  AS ("ds.lora.dropout", "lora_dropout"),
  AS ("ds.load_in_4bit", "load_in_4bit"),
  RULE ("ds.param_dtype"),
  RULE ("param_dtype"),
  RULE ("adam_offload"),
  RULE ("ds.adam_offload"),
  RULE ("overlap_comm"),
  RULE ("ds.overlap_comm"),
  RULE ("flash_attn"),
  IGNORED ("adam.*"),
  IGNORED ("adam_betas"),
  IGNORED ("ckpt*"),
  IGNORED ("data.*"),
  IGNORED ("dataset*"),
  IGNORED ("ds.lora.alpha"),
  IGNORED ("eval.*"),
  IGNORED ("input_*"),
  IGNORED ("*aux_loss_coef"),
  IGNORED ("l2"),
  IGNORED ("load_checkpoint"),
  IGNORED ("logger.*"),
  IGNORED ("max_ckpt_*"),
  IGNORED ("max_epochs"),
  IGNORED ("max_samples"),
  IGNORED ("multiturn"),
  IGNORED ("output_key"),
  IGNORED ("pretrain_mode"),
  IGNORED ("model.pretrain_mode_enable"),
  IGNORED ("save_path"),
  IGNORED ("train.max_epochs"),
  IGNORED ("train.seed"),
  IGNORED ("use_wandb"),
  AS ("*", "*"),
};

static const HfWord openrlhf_words[] = {
  { "ds.param_dtype", "bf16", "bf16", "True" },
  { "ds.param_dtype", "fp16", "fp16", "True" },
  { "param_dtype", "bf16", "bf16", "True" },
  { "param_dtype", "fp16", "fp16", "True" },
  { "adam_offload", NULL, "offload_optimizer_device", "cpu" },
  { "ds.adam_offload", NULL, "offload_optimizer_device", "cpu" },
  { "overlap_comm", NULL, "deepspeed", "overlapped" },
  { "ds.overlap_comm", NULL, "deepspeed", "overlapped" },
  { "flash_attn", NULL, "attn_implementation", "flash_attention_2" },
  { "lora_rank", NULL, "use_peft", "True" },
  { "ds.lora.rank", NULL, "use_peft", "True" },
};

static const HfDefault openrlhf_defaults[] = {
  { "deepspeed", "get_train_ds_config", "" },
  { "bf16", "True", "bf16 fp16 ds.param_dtype param_dtype" },
  { "zero_stage", "2", "" },
  { "offload_optimizer_device", "none", "" },
  { "per_device_train_batch_size", "8", "" },
  { "global_train_batch_size", "128", "" },
  { "max_seq_length", "2048", "" },
  { "attn_implementation", "flash_attention_2", "flash_attn bf16" },
  { "attn_implementation", "flash_attention_2", "", "packing", "packing_samples turns it on" },
  { "attn_implementation", "flash_attention_2", "", NULL,
    "the default since August 2025; with --flash_attn left out it was eager before" },
  { "gradient_checkpointing_kwargs", "{\"use_reentrant\": false}",
    "gradient_checkpointing_use_reentrant model.gradient_checkpointing_reentrant", "gradient_checkpointing" },
  { "gradient_checkpointing", "False", "" },
  { "lora_target_modules", "all-linear", "", "use_peft" },
  { "context_parallel_kind", "ring", "", "parallelism_config_cp_size" },
};

/* Made by openrlhf/utils/deepspeed/deepspeed_utils.py. */
#define OPENRLHF_CONFIG(overlap)                                                                             \
  "{\"zero_optimization\": {\"stage\": \"auto\"" overlap                                                     \
  ", \"offload_optimizer\": {\"device\": \"auto\"}}, \"bf16\": {\"enabled\": \"auto\"}, "                    \
  "\"fp16\": {\"enabled\": \"auto\"}, \"gradient_clipping\": \"auto\"}"
static const HfFile openrlhf_files[] = {
  { "get_train_ds_config", OPENRLHF_CONFIG ("") },
  { "overlapped", OPENRLHF_CONFIG (", \"overlap_comm\": true, \"contiguous_gradients\": true") },
};

#define COUNTED(table) (table), G_N_ELEMENTS (table)

const HfDialect hf_dialects[] = {
  { "ms-swift",
    "swift ",
    "swift sft swift pt swift.cli.sft swift.cli.pt",
    "tuner_type train_type sft_type",
    "task_type=causal_lm",
    "",
    { COUNTED (swift_rows) },
    COUNTED (swift_words),
    COUNTED (swift_defaults),
    COUNTED (swift_files),
    .release = "hf-trainer-2026",
    .pins = "transformers below 5.17 (requirements/framework.txt of August 2026)",
    .least_batch = 16,
    .say = hf_swift_say },
  { "LLaMA-Factory",
    "llamafactory-cli ",
    "llamafactory-cli train",
    "finetuning_type",
    "stage=pt stage=sft",
    "export_dir infer_backend predict_with_generate do_predict n_shot",
    { COUNTED (llama_factory_rows) },
    COUNTED (llama_factory_words),
    COUNTED (llama_factory_defaults),
    .release = "hf-trainer-2026",
    .pins = "transformers up to 5.8 (pyproject.toml of August 2026)" },
  { "LLaMA-Factory v1",
    "llamafactory-cli ",
    "llamafactory-cli sft llamafactory-cli train",
    "dist_config.name kernel_config.name quant_config.name peft_config.name optim_config.name "
    "init_config.name",
    "model_class=llm",
    "peft_config.export_dir",
    { COUNTED (llama_factory_1_rows), llama_factory_1_ignored },
    COUNTED (llama_factory_1_words),
    .defaults = llama_factory_1_defaults,
    .n_defaults = G_N_ELEMENTS (llama_factory_1_defaults),
    .release = "llama-factory-v1-2026",
    .pins = "transformers up to 5.8 (pyproject.toml of August 2026)",
    .trains = "train_dataset",
    .learns = "pref_loss pref_beta pref_ftx simpo_gamma dpo_label_smoothing ld_alpha",
    .data = "train_dataset",
    .say = hf_factory_say },
  { "DeepSpeed-Chat",
    NULL,
    "",
    "lora_dim only_optimize_lora data_split",
    "",
    "",
    { COUNTED (deepspeed_chat_rows) },
    COUNTED (deepspeed_chat_words),
    COUNTED (deepspeed_chat_defaults),
    COUNTED (deepspeed_chat_files),
    .freezes = "only_optimize_lora" },
  { "OpenRLHF",
    "openrlhf.cli.",
    "openrlhf.cli.train_sft",
    "",
    "",
    "",
    { COUNTED (openrlhf_rows) },
    COUNTED (openrlhf_words),
    COUNTED (openrlhf_defaults),
    COUNTED (openrlhf_files) },
  { "TRL",
    "trl ",
    "trl sft sft.py run_sft.py",
    "",
    "",
    "",
    { COUNTED (trl_rows) },
    .defaults = trl_defaults,
    .n_defaults = G_N_ELEMENTS (trl_defaults),
    .release = "hf-trainer-2026",
    .pins = "transformers from 4.56 on, which is 5 today (pyproject.toml of July 2026)",
    .old = TRL_OLD,
    .lacks = "block_size cutoff_len data_path max_seq_len model_max_length model_name seq_length train_file "
             "train_file_path" },
  { NULL },
};
