#include "data/launch/option_table.h"

#define MODEL(option, ...)    OPTION_MODEL_ROW (option, __VA_ARGS__)
#define STRATEGY(option, key) OPTION_STRATEGY_ROW (option, key)
#define SWITCH(option, key)   OPTION_SWITCH_ROW (option, key)
#define RULE(option)          OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  /* the model */
  MODEL ("num_layers", "layers"),
  MODEL ("hidden_size", "hidden"),
  MODEL ("num_attention_heads", "heads"),
  MODEL ("seq_length", "seq"),
  RULE ("num_kv_heads"),
  RULE ("intermediate_size"),
  RULE ("expansion_factor"),
  RULE ("mlp_multiple_of"),
  RULE ("mlp_type"),
  RULE ("activation"),
  RULE ("norm"),
  RULE ("pos_emb"),
  RULE ("no_weight_tying"),
  RULE ("gpt_j_residual"),
  RULE ("gpt_j_tied"),
  RULE ("use_bias_in_attn_linear"),
  RULE ("use_bias_in_mlp"),
  RULE ("attention_config*"),
  RULE ("attention_dropout"),
  RULE ("hidden_dropout"),
  RULE ("tokenizer_type"),
  RULE ("train_impl"),
  RULE ("vocab_file"),
  RULE ("padded_vocab_size"),
  STRATEGY ("make_vocab_size_divisible_by", "vocab_multiple"),
  RULE ("moe_num_experts"),
  RULE ("moe_top_k"),
  RULE ("moe_expert_interval"),
  MODEL ("sliding_window_width", "window"),
  MODEL ("use_qk_layernorm", "qk_norm", .on = "true"),
  RULE ("use_bias_in_norms"),
  RULE ("rotary_pct"),

  /* degrees and batches */
  STRATEGY ("model_parallel_size", "tp"),
  RULE ("pipe_parallel_size"),
  SWITCH ("sequence_parallel", "sp"),
  RULE ("global_num_gpus"),
  RULE ("num_gpus"),
  RULE ("num_nodes"),
  STRATEGY ("train_micro_batch_size_per_gpu", "micro_batch"),
  STRATEGY ("train_batch_size", "global_batch"),
  RULE ("gradient_accumulation_steps"),
  OPTION_OLD_ROW ("batch_size", OPTION_STRATEGY, "micro_batch", NULL),
  OPTION_OLD_ROW ("gas", OPTION_RULE, NULL, NULL),

  /* precision */
  RULE ("precision"),
  RULE ("fp16.enabled"),
  RULE ("fp16.fp16"),
  RULE ("bf16.enabled"),
  RULE ("bf16.bf16"),
  RULE ("fp32_allreduce"),
  RULE ("data_types.grad_accum_dtype"),
  RULE ("gradient_clipping"),

  /* ZeRO */
  RULE ("zero_optimization.stage"),
  RULE ("zero_stage"),
  RULE ("zero_optimization.overlap_comm"),
  STRATEGY ("zero_optimization.reduce_bucket_size", "reduce_bucket"),
  STRATEGY ("zero_optimization.allgather_bucket_size", "allgather_bucket"),
  STRATEGY ("zero_optimization.stage3_prefetch_bucket_size", "prefetch_bucket"),
  STRATEGY ("zero_optimization.stage3_param_persistence_threshold", "persistence_threshold"),
  STRATEGY ("zero_optimization.stage3_max_live_parameters", "max_live_params"),
  STRATEGY ("zero_optimization.stage3_max_reuse_distance", "max_reuse_distance"),
  RULE ("zero_optimization.offload_optimizer.device"),
  RULE ("zero_optimization.offload_param.device"),
  RULE ("zero_optimization.cpu_offload"),
  RULE ("optimizer.type"),

  /* recomputation */
  RULE ("checkpoint_activations"),
  RULE ("checkpoint_num_layers"),
  RULE ("partition_activations"),
  RULE ("checkpoint_in_cpu"),

  RULE ("layernorm_fusion"),
  RULE ("max_position_embeddings"),
};

/* What matters neither to time nor to memory: checkpoints, data, logs, how numbers begin and learn. */
static const char ignored[]
    = "fp16.* zero_optimization.allgather_partitions zero_optimization.reduce_scatter "
      "zero_optimization.contiguous_gradients zero_optimization.load_from_fp32_weights "
      "zero_optimization.stage3_gather_16bit_weights_on_model_save optimizer.params.* "
      "contiguous_checkpointing deepspeed_activation_checkpointing synchronize_each_layer *_fusion "
      "init_method* output_layer_init_method output_layer_parallelism "
      "rotary_* *_epsilon pipe_partition_method lr* min_lr warmup weight_decay "
      "train_iters train_epochs *data_path* *_data_weights data_impl pack_impl dataset_impl mmap_warmup "
      "num_workers split merge_file save* load finetune checkpoint* extra_save_iters* "
      "keep_last_n_checkpoints no_save_* no_load_* eval_* do_* log* tensorboard* *wandb* *comet* "
      "steps_per_print wall_clock_breakdown peak_theoretical_tflops distributed_backend hostfile launcher "
      "deepspeed_mpi deepspeed_slurm include exclude master_* no_ssh_check comment account user_script seed "
      "loss_scale* initial_scale_power hysteresis min_scale moe_router_type moe_lbl_in_fp32 moe_jitter_eps "
      "moe_loss_coeff text_gen_type maximum_tokens prompt_end sample_* num_samples temperature top_p top_k "
      "recompute use_shared_fs s3_* profile* attention_softmax_in_fp32 fp16_lm_cross_entropy "
      "apply_query_key_layer_scaling use_cpu_initialization weight_by_num_documents short_seq_prob z_loss";

const OptionTable neox_options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };
