#include "data/launch/torchtune/torchtune_options.h"

#include <glib.h>

#define AS(option, torchtitan) OPTION_AS_ROW (option, torchtitan)
#define RULE(option)           OPTION_RULE_ROW (option)
#define IGNORED(option)        OPTION_IGNORED_ROW (option)

static const OptionRow rows[] = {
  AS ("batch_size", "training.local_batch_size"),
  AS ("tensor_parallel_dim", "parallelism.tensor_parallel_degree"),
  AS ("context_parallel_dim", "parallelism.context_parallel_degree"),
  AS ("context_parallel_rotate_method", "parallelism.context_parallel_rotate_method"),
  AS ("data_parallel_shard_dim", "parallelism.data_parallel_shard_degree"),
  AS ("data_parallel_replicate_dim", "parallelism.data_parallel_replicate_degree"),
  RULE ("gradient_accumulation_steps"),
  RULE ("tensor_parallel_plan._component_"),
  RULE ("custom_sharded_layers"),
  RULE ("memory_efficient_fsdp_wrap"),
  RULE ("fsdp_reshard_after_forward"),
  RULE ("fsdp_sharding_strategy"),
  RULE ("fsdp_cpu_offload"),
  RULE ("fsdp.cpu_offload"),

  /* what computes, and in which format */
  RULE ("dtype"),
  RULE ("device"),
  RULE ("enable_fp8_training"),
  RULE ("fp8_recipe_name"),
  RULE ("compile"),
  RULE ("compile.model"),
  RULE ("compile.loss"),
  RULE ("compile.optimizer_step"),
  IGNORED ("compile.scale_grads"),
  RULE ("enable_activation_checkpointing"),
  RULE ("enable_activation_offloading"),
  RULE ("activation_offloading_use_streams"),
  RULE ("ac_mode"),
  RULE ("ac_option"),

  /* the model, which a function makes */
  RULE ("model._component_"),
  RULE ("model.lora_attn_modules"),
  RULE ("model.apply_lora_to_mlp"),
  RULE ("model.apply_lora_to_output"),
  RULE ("model.lora_rank"),
  RULE ("model.lora_dropout"),
  RULE ("model.quantize_base"),
  RULE ("model.use_dora"),
  RULE ("model.encoder_trainable"),
  IGNORED ("model.lora_alpha"),
  IGNORED ("model.*_eps"),
  IGNORED ("model.rope_base"),
  IGNORED ("model.max_seq_len"), /* of the table of rotations */
  RULE ("model.attn_dropout"),
  RULE ("model.vocab_size"),
  RULE ("model.num_layers"),
  RULE ("model.num_heads"),
  RULE ("model.num_kv_heads"),
  RULE ("model.embed_dim"),
  RULE ("model.head_dim"),
  RULE ("model.intermediate_dim"),

  /* sequences and their loss */
  RULE ("tokenizer.max_seq_len"),
  RULE ("dataset.max_seq_len"),
  RULE ("dataset.packed"),
  RULE ("dataset.0.packed"),
  RULE ("dataset.train_on_input"),
  RULE ("loss._component_"),
  RULE ("loss.num_output_chunks"),
  RULE ("quantizer._component_"),
  RULE ("early_exit_loss._component_"),
  RULE ("layer_dropout.prob"),
  RULE ("resize_token_embeddings"),

  /* the optimizer */
  RULE ("optimizer._component_"),
  RULE ("optimizer.fused"),
  RULE ("optimizer_in_bwd"),
  RULE ("clip_grad_norm"),

  /* where data and checkpoints are, what is logged, how numbers learn */
  IGNORED ("loss.*"),
  IGNORED ("quantizer.*"),
  IGNORED ("early_exit_loss.*"),
  IGNORED ("optimizer.*"),
  IGNORED ("dataset*"),
  IGNORED ("tokenizer.*"),
  IGNORED ("tensor_parallel_plan.*"),
  IGNORED ("batch_size_val"),
  IGNORED ("checkpoint_dir"),
  IGNORED ("checkpointer.*"),
  IGNORED ("collate_fn"),
  IGNORED ("cudnn_deterministic_mode"),
  IGNORED ("dataloader.*"),
  IGNORED ("enable_async_checkpointing"),
  IGNORED ("epochs"),
  IGNORED ("keep_last_n_checkpoints"),
  IGNORED ("log_every_n_steps"),
  IGNORED ("log_level"),
  IGNORED ("log_peak_memory_stats"),
  IGNORED ("low_cpu_ram"),
  IGNORED ("lr_scheduler.*"),
  IGNORED ("max_steps_per_epoch"),
  IGNORED ("metric_logger.*"),
  IGNORED ("model_type"),
  IGNORED ("name"),
  IGNORED ("output_dir"),
  IGNORED ("profiler.*"),
  IGNORED ("resume_from_checkpoint"),
  IGNORED ("run_val_every_n_steps"),
  IGNORED ("save_*"),
  IGNORED ("seed"),
  IGNORED ("shuffle"),
  IGNORED ("use_distributed_state_dict"),
};

const OptionTable torchtune_options = { rows, G_N_ELEMENTS (rows) };
