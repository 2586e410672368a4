/* Options of InternEvo: sections of a configuration in Python, with the defaults of build_model_with_cfg()
 * (internlm/model/modeling_internlm2.py of InternLM/InternEvo@c628a8c8, March 2024). */
#include "data/launch/internevo/internevo_rules.h"

#define MODEL(option, key, ...) OPTION_MODEL_ROW (option, key, __VA_ARGS__)
#define RULE(option)            OPTION_RULE_ROW (option)
#define IGNORED(option)         OPTION_IGNORED_ROW (option)

static const OptionRow rows[] = {
  /* the model */
  MODEL ("model.num_layers", "layers", .otherwise = "48"),
  MODEL ("model.hidden_size", "hidden", .otherwise = "2048"),
  MODEL ("model.num_attention_heads", "heads", .otherwise = "32"),
  MODEL ("model.num_kv_attention_heads", "kv_heads", .none = "None"),
  MODEL ("model.vocab_size", "vocab", .otherwise = "50304"),
  OPTION_MODEL_ROW ("data.seq_len", "seq"),
  RULE ("model_type"),
  RULE ("model.mlp_ratio"),
  RULE ("model.no_bias"),
  RULE ("model.norm_type"),
  RULE ("model.use_swiglu"),
  RULE ("model.use_flash_attn"),
  RULE ("model.apply_post_layer_norm"),
  RULE ("model.residual_in_fp32"),
  RULE ("model.deepnorm"),
  RULE ("model.drop_rate"),
  RULE ("model.attn_drop_rate"),
  RULE ("model.is_reward"),
  RULE ("model.num_experts"),
  RULE ("model.moe_use_residual"),
  RULE ("model.moe_type"),
  RULE ("moe.top_k"),
  RULE ("moe.capacity_factor"),
  RULE ("moe.drop_tokens"),

  /* what is computed again, and in which format */
  RULE ("model.checkpoint"),
  RULE ("model.dropout_selective_checkpoint"),
  RULE ("model.dtype"),

  /* degrees */
  RULE ("model.num_chunks"),
  RULE ("parallel.zero1"),
  RULE ("parallel.zero1.size"),
  RULE ("parallel.zero1.fsdp"),
  RULE ("parallel.tensor"),
  RULE ("parallel.tensor.size"),
  RULE ("parallel.tensor.mode"),
  RULE ("parallel.pipeline"),
  RULE ("parallel.pipeline.size"),
  RULE ("parallel.pipeline.interleaved_overlap"),
  RULE ("parallel.weight"),
  RULE ("parallel.weight.size"),
  RULE ("parallel.weight.overlap"),
  RULE ("parallel.sequence_parallel"),
  RULE ("parallel.gqa"),

  /* batches, and their reduction */
  RULE ("data.micro_num"),
  RULE ("data.micro_bsz"),
  RULE ("data.gradient_accumulation"),
  RULE ("data.rampup_batch_size"),
  RULE ("data.pack_sample_into_one"),
  RULE ("data.use_packed_dataset"),
  RULE ("data.fixed_random_dataset_seqlen"),
  RULE ("hybrid_zero_optimizer.overlap_sync_grad"),
  RULE ("hybrid_zero_optimizer.zero_overlap_communication"),
  RULE ("hybrid_zero_optimizer.overlap_sync_param"),
  OPTION_STRATEGY_ROW ("hybrid_zero_optimizer.reduce_bucket_size", "reduce_bucket", .is_count = true),
  RULE ("hybrid_zero_optimizer.clip_grad_norm"),

  /* how weights start, and how numbers learn; where data and checkpoints are, what is logged */
  IGNORED ("model.*_init_std"),
  IGNORED ("model.adapt_hf"),
  IGNORED ("model.embed_grad_scale"),
  IGNORED ("model.embed_split_hidden"),
  IGNORED ("model.init_type"),
  IGNORED ("model.layer_norm_epsilon"),
  IGNORED ("model.max_position_embeddings"),
  IGNORED ("model.norm_head"),
  IGNORED ("model.parallel_output"),
  IGNORED ("model.qk_interleaved"),
  IGNORED ("model.rope_base"),
  IGNORED ("model.use_dynamic_ntk_rope"),
  IGNORED ("model.use_scaled_init"),
  IGNORED ("moe.*"),
  IGNORED ("parallel.weight.memory_pool"),
  IGNORED ("adam.*"),
  IGNORED ("beta2_scheduler.*"),
  IGNORED ("ckpt.*"),
  IGNORED ("cudnn_*"),
  IGNORED ("data.*"),
  IGNORED ("enable_tb"),
  IGNORED ("grad_scaler.*"),
  IGNORED ("hybrid_zero_optimizer.*"),
  IGNORED ("loss.*"),
  IGNORED ("lr_scheduler.*"),
  IGNORED ("metric_dtype"),
  IGNORED ("monitor.*"),
  IGNORED ("resume_tb_folder"),
  IGNORED ("tensorboard_folder"),
  IGNORED ("use_fp32_norm"),
};

const OptionTable internevo_options = { rows, G_N_ELEMENTS (rows) };
