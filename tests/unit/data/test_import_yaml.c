/* Pins what configurations in YAML mean: of gpt-neox, nanotron, NeMo, Megatron-Bridge, llm-foundry, MaxText
 * and axolotl, and scripts of MLPerf Training, which are a configuration of NeMo,
 * with what their programs take by default; how ${...} is resolved; that what only another file says is named,
 * and never filled in; and what is refused. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "data/launch/yaml_config.h"
#include "import_check.h"

/* --- programs ------------------------------------------------------------------------------------- */

#define NEOX                                                                                                 \
  "pipe-parallel-size: 2\nmodel_parallel_size: 4\nnum-layers: 24\nhidden_size: 2048\n"                       \
  "num_attention_heads: 16\nseq_length: 2048\ntrain_micro_batch_size_per_gpu: 4\n"

static void
gpt_neox_is_read (void)
{
  check_read (
      "gpt-neox", NEOX,
      "layers=24; hidden=2048; kv_heads=16; ffn=8192; tp=4; pp=2; schedule=1f1b; micro_batch=4; zero=0; "
      "dp_kind=deepspeed; dtype=fp32; recompute=none; attention=unfused; position=learned; norm=layernorm; "
      "linear_bias=true; tied_embeddings=true; vocab; gpus; global_batch; ?how many GPUs; ~attention unfused");
  check_read (
      "gpt-neox",
      NEOX
      "fp16: {enabled: true}\nzero_optimization: {stage: 1, overlap_comm: true, reduce_bucket_size: 500000000}\n"
      "train_batch_size: 64\ngradient_accumulation_steps: 4\ncheckpoint-activations: yes\n"
      "attention_config: [[[flash], 24]]\npos_emb: rotary\nrotary_pct: 0.25\nactivation: swiglu\n"
      "intermediate_size: 16512\nno_weight_tying: on\ngpt_j_residual: true\n"
      "tokenizer_type: GPT2BPETokenizer\nlr-decay-style: cosine\nmystery_switch: 3\n",
      "dtype=fp16; zero=1; dp_overlap=true; reduce_bucket=500000000; global_batch=64; gpus=32; recompute=full; "
      "recompute_layers=1; attention=flash; position=rope; rotary_dim=32; mlp=swiglu; ffn=5504; "
      "tied_embeddings=false; norms=shared; vocab=50257; -lr-decay-style; ?mystery_switch 3");
  check_read ("gpt-neox", NEOX "mlp_type: gated\nmlp_multiple_of: 512\nactivation: silu\n",
              "mlp=swiglu; ffn=5632; ~ffn 5632");
  check_read ("gpt-neox", NEOX "mlp_type: other\n", "mlp=gelu; ?mlp_type other: taken for two matrices");
  check_read (
      "gpt-neox", NEOX "pos_emb: alibi\nmlp_type: llama\nintermediate_size: 5632\nprecision: bfloat16\n",
      "position=alibi; mlp=swiglu; ffn=5632; dtype=bf16; linear_bias=false; software=gpt-neox; apex_norm");
  check_read ("gpt-neox",
              NEOX "layernorm_fusion: true\npartition_activations: true\ncheckpoint_activations: true\n",
              "apex_norm=true; partition_activations=true");
  check_read ("gpt-neox", NEOX "moe_num_experts: 8\nmoe_top_k: 2\n",
              "experts=8; top_k=2; expert_ffn=8192; ep=1; linear_bias=false");
  check_read ("gpt-neox", NEOX "attention_config: [[[mamba], 24]]\nmamba_inner_func_fusion: true\n",
              "layer_pattern=m; mixer=mamba1; mixer_heads=4096; mixer_state=16; mixer_conv=4; heads=16; "
              "linear_bias=false; position=none; -mamba_inner_func_fusion");
  check_read ("gpt-neox",
              NEOX "attention_config: [[[mamba, flash], 2], [[mamba], 1]]\nexpansion_factor: 1.5\n",
              "layer_pattern=mAmAm; mixer_heads=3072; attention=flash; position=learned");
  check_read (NULL, NEOX "attention_config: [[[gmlp], 24]]\n", "attention_config has gmlp");
}

#define NANOTRON                                                                                               \
  "model:\n  dtype: bfloat16\n  model_config: {is_llama_config: true, hidden_size: 64, num_hidden_layers: 8, " \
  "num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000%s}\n"                                      \
  "tokens: {sequence_length: 128, micro_batch_size: 2, batch_accumulation_per_replica: 3}\n"                   \
  "optimizer: {zero_stage: 1, accumulate_grad_in_fp32: true}\n"                                                \
  "parallelism: {dp: 4, pp: 2, tp: 2, tp_mode: REDUCE_SCATTER%s}\n"

static void
nanotron_is_read (void)
{
  g_autofree char *plain = g_strdup_printf (NANOTRON, "", ", pp_engine: 1f1b"),
                  *older = g_strdup_printf (NANOTRON, ", num_key_value_heads: 2, tie_word_embeddings: true",
                                            ", recompute_layer: true, context_parallel_size: 2"),
                  *experts
      = g_strdup_printf (NANOTRON, ", sliding_window_size: 20, moe_config: {num_experts: 8, top_k: 1}", ""),
                  *mamba
      = g_strdup_printf (NANOTRON, ", is_mamba_config: true, d_model: 96, ssm_cfg: {d_state: 32}", "");
  check_read (
      "nanotron", plain,
      "layers=8; hidden=64; kv_heads=4; ffn=256; vocab=1000; seq=128; mlp=swiglu; norm=rmsnorm; tp=2; pp=2; cp=1; "
      "sp=true; gpus=16; micro_batch=2; global_batch=24; zero=1; grad_dtype=fp32; schedule=1f1b; recompute=none; "
      "tied_embeddings=false; tp_async=false; software=nanotron-2024");
  check_read (
      "nanotron", older,
      "kv_heads=2; tied_embeddings=true; schedule=gpipe; recompute=full; cp=2; gpus=32; global_batch=24");
  check_read ("nanotron", experts, "experts=8; top_k=1; expert_ffn=1408; shared_ffn; ep=1; window=20");
  check_read (
      "nanotron", mamba,
      "layer_pattern=m; mixer=mamba1; hidden=96; mixer_heads=192; mixer_state=32; mixer_conv=4; norm=rmsnorm");
}

#define NEMO                                                                                                 \
  "trainer: {devices: 8, num_nodes: 4, precision: bf16, gradient_clip_val: 1.0}\n"                           \
  "model:\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 4\n  num_layers: 32\n"           \
  "  hidden_size: 512\n  num_attention_heads: 8\n  encoder_seq_length: 1024\n  micro_batch_size: 1\n"        \
  "  global_batch_size: 64\n  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n  transformer_engine: true\n"

static void
nemo_is_read (void)
{
  check_read (
      "NeMo", NEMO "  optim: {name: mcore_distributed_optim, overlap_grad_sync: true}\n",
      "layers=32; ffn=2048; kv_heads=8; seq=1024; gpus=32; tp=2; pp=4; vpp; schedule=1f1b; zero=1; dtype=bf16; "
      "grad_dtype=fp32; dp_overlap=true; grad_check=false; recompute=none; attention=flash; software=nemo-2024; vocab");
  check_read (
      "NeMo",
      NEMO
      "  virtual_pipeline_model_parallel_size: 2\n  overlap_p2p_comm: true\n  fp8: true\n  fp8_hybrid: true\n  reduce_amax: false\n  ub_tp_comm_overlap_cfg: {qkv_dgrad: {method: bulk, set_sm_margin: 0}, fc2_fprop: {method: pipeline, set_sm_margin: 1}}\n"
      "  activation: fast-swiglu\n  normalization: rmsnorm\n  bias: false\n  num_query_groups: 2\n"
      "  position_embedding_type: rope\n  share_embeddings_and_output_weights: false\n"
      "  activations_checkpoint_granularity: full\n  activations_checkpoint_method: block\n"
      "  activations_checkpoint_num_layers: 2\n  optim: {name: fused_adam, grad_sync_dtype: bf16}\n"
      "  data: {seq_length: 512}\n",
      "vpp=2; schedule=interleaved-1f1b; p2p=overlapped; dtype=fp8; mlp=swiglu; norm=rmsnorm; linear_bias=false; "
      "kv_heads=2; position=rope; tied_embeddings=false; recompute=full; recompute_method=block; recompute_layers=2; "
      "zero=0; grad_dtype=bf16; fp8_amax_reduction=none; tp_overlap_margin=false; ?model.data.seq_length 512");
  check_read ("NeMo",
              NEMO "  optim: {name: distributed_fused_adam, check_for_nan_in_grad: true}\n  fsdp: true\n",
              "dp_kind=fsdp1; zero=3; grad_check=true");
  check_read ("NeMo", NEMO "  optim: {name: distributed_fused_adam}\n", "dp_kind=megatron; zero=1; kernels");
  check_read ("NeMo", NEMO "  activations_checkpoint_method: block\n  activations_checkpoint_num_layers: 0\n",
              "recompute=none; recompute_method");
  check_read (
      NULL,
      "trainer: {devices: 8}\nmodel: {tensor_model_parallel_size: 1, micro_batch_size: 1, encoder: {num_layers: 2}}\n",
      "an encoder and a decoder");
  check_read (
      "NeMo",
      "name: megatron_t5\n" NEMO "  encoder: {num_layers: 2, hidden_size: 256, activation: geglu}\n"
      "  decoder: {num_layers: 3, hidden_size: 128, activation: gelu}\n"
      "  data: {seq_length_dec: 114}\n",
      "layers=5; encoder_layers=2; hidden=256; decoder_seq=114; mlp=geglu; ?model.decoder.hidden_size; "
      "?model.decoder.activation");
  check_read (
      "NeMo",
      NEMO "  peft: {peft_scheme: lora, lora_tuning: {adapter_dim: 16, target_modules: [attention_qkv]}}\n",
      "lora_rank=16; lora_modules=q,k,v");
  check_read ("NeMo", NEMO "  peft: {peft_scheme: ptuning}\n", "lora_rank; ?adapters ptuning");
  check_read ("NeMo", NEMO "  peft: {peft_scheme: none}\n", "lora_rank");
  check_read (NULL, "name: megatron_t5\n" NEMO, "name megatron_t5");
  check_read (NULL, NEMO "  vision_pretraining_type: classify\n",
              "model.vision_pretraining_type: a model of images");
  check_read ("NeMo", NEMO "  mm_cfg: {vision_encoder: {hidden_size: 1024}}\n",
              "layers=32; ?what turns images");
  check_read ("NeMo", NEMO "  mamba_ssm_ngroups: 4\n",
              "layer_pattern=m; mixer=mamba2; mixer_heads=16; mixer_groups=4");
  check_read (
      "NeMo",
      "trainer: {devices: 8}\nmodel: {tensor_model_parallel_size: 8, pipeline_model_parallel_size: 2, "
      "micro_batch_size: 1}\n",
      "gpus; ?how many GPUs");
  check_read ("NeMo",
              "trainer: {precision: bf16}\nmodel: {tensor_model_parallel_size: 1, micro_batch_size: 1}\n",
              "gpus; ~1 node: the default; ?all of 1 node (trainer.devices is left out)");
  check_read ("NeMo",
              "trainer: {devices: -1, num_nodes: 2}\nmodel: {tensor_model_parallel_size: 1, "
              "micro_batch_size: 1}\n",
              "gpus; ?all of 2 nodes (trainer.devices -1)");
  check_read ("NeMo", "trainer: {devices: 8}\nmodel: {tensor_model_parallel_size: 4, micro_batch_size: 1}\n",
              "gpus=8; ~1 node");
  check_read (
      NULL, "name: vits\ntrainer: {devices: 8, strategy: ddp}\nmodel: {n_layers: 2, optim: {name: adamw}}\n",
      "the configuration of no program");
}

static void
nemo_2_and_bridge_are_read (void)
{
  check_read (
      "NeMo 2",
      "_target_: nemo.collections.llm.api.pretrain\n"
      "model: {_target_: a.LlamaModel, config: {_target_: a.Llama3Config8B, seq_length: 8192}}\n"
      "trainer:\n  devices: 8\n  num_nodes: 2\n  plugins: {precision: bf16-mixed}\n"
      "  strategy: {_target_: a.MegatronStrategy, tensor_model_parallel_size: 4, context_parallel_size: 2, "
      "ddp: {overlap_grad_reduce: true}}\n"
      "data: {global_batch_size: 512, micro_batch_size: 1}\n",
      "gpus=16; tp=4; cp=2; global_batch=512; seq=8192; dtype=bf16; dp_overlap=true; layers=32; mlp=swiglu; "
      "~model nemo/Llama3Config8B");
  check_read ("NeMo 2",
              "trainer: {devices: 1, strategy: {_target_: a.M}}\nmodel: {config: {_target_: a.OwnConfig}}\n",
              "layers; mlp; norm; gpus=1; ?model nemo/OwnConfig: its dimensions");
  check_read (
      "Megatron-Bridge",
      "train: {micro_batch_size: 1, global_batch_size: 128}\n"
      "model: {num_layers: 32, hidden_size: 4096, ffn_hidden_size: 14336, num_attention_heads: 32, "
      "num_query_groups: 8, seq_length: 8192, gated_linear_unit: true, activation_func: {_target_: "
      "torch.nn.functional.silu}, normalization: RMSNorm, add_bias_linear: false, vocab_size: 128256, "
      "share_embeddings_and_output_weights: false, position_embedding_type: rope, recompute_granularity: null}\n"
      "ddp: {use_distributed_optimizer: true, grad_reduce_in_fp32: false, overlap_param_gather: true}\n"
      "mixed_precision: bf16_with_mxfp8_mixed\n",
      "layers=32; kv_heads=8; mlp=swiglu; norm=rmsnorm; vocab=128256; tied_embeddings=false; linear_bias=false; zero=1; "
      "dtype=fp8; fp8_recipe=mxfp8; grad_dtype=fp32; gather_overlap=1; recompute=none; gpus; ?how many GPUs; ~mixed_precision bf16_with_mxfp8_mixed goes over it");
  check_read ("Megatron-Bridge",
              "train: {global_batch_size: 8}\nmodel: {seq_length: 4096, tensor_model_parallel_size: 2}\n",
              "tp=2; seq=4096; global_batch=8; dtype; recompute; mlp; zero; ?what this file leaves as it is");
  static const char *const adapters[][2] = {
    { "lora.LoRA, dim: 8, alpha: 16, target_modules: [linear_qkv, linear_proj]",
      "lora_rank=8; lora_modules=q,k,v,o; -peft.alpha" },
    { "lora.LoRA", "lora_rank=32; lora_modules; ~lora_rank 32: the default" },
    { "dora.DoRA, dim: 8", "lora_rank; ?adapters megatron.bridge.peft.dora.DoRA" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (adapters); i++) {
    g_autofree char *text = g_strdup_printf ("train: {global_batch_size: 8}\nmodel: {seq_length: 4096}\n"
                                             "peft: {_target_: megatron.bridge.peft.%s}\n",
                                             adapters[i][0]);
    check_read ("Megatron-Bridge", text, adapters[i][1]);
  }
  check_read (
      "Megatron-Bridge",
      "#!/bin/bash\nMODEL=gpt_oss_20b\nfor C in 2,4 4,2; do\n  IFS=, read -r TP PP <<< $C\n"
      "  CMD=\"run_recipe.py --recipe ${MODEL}_pretrain_config model.tensor_model_parallel_size=$TP\"\n"
      "  torchrun --nproc_per_node 8 $CMD model.pipeline_model_parallel_size=$PP train.micro_batch_size=1\n"
      "done\n",
      "gpus=8; tp=2; pp=4; micro_batch=1; layers=24; experts=32; global_batch; ~model bridge/gpt_oss_20b; "
      "?what this file leaves as it is");
  check_read (
      "Megatron-Bridge",
      "#!/bin/bash\nD=FP8_CS\npython3 setup_experiment.py --model_recipe_name qwen3_30b_a3b --gpu h100 "
      "--num_gpus 16 --compute_dtype ${D,,} -tp 2\n",
      "gpus=16; tp=2; dtype=fp8; fp8_recipe=current; layers=48; pp");
  check_read (
      "Megatron-Bridge",
      "#!/bin/bash\npython3 setup_experiment.py --model_recipe_name x_peft --num_gpus $N --compute_dtype $D\n",
      "gpus; dtype; layers; ?model bridge/x: its dimensions; ~adapters: those of the recipe; ?--compute_dtype; ?how many GPUs");
}

#define MPT                                                                                                  \
  "variables: {seq: 2048}\nmax_seq_len: ${variables.seq}\ntrain_loader: {name: text}\n"                      \
  "model: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32, vocab_size: 50368%s}\n"            \
  "global_train_batch_size: 1024\ndevice_train_microbatch_size: %s\nprecision: amp_bf16\n"                   \
  "fsdp_config: {sharding_strategy: %s, mixed_precision: PURE, activation_checkpointing: true, "             \
  "activation_checkpointing_reentrant: false}\n"

static void
llm_foundry_is_read (void)
{
  g_autofree char *plain = g_strdup_printf (MPT, "", "8", "FULL_SHARD"),
                  *other
      = g_strdup_printf (MPT,
                         ", expansion_ratio: 3.5, no_bias: true, tie_word_embeddings: false, "
                         "attn_config: {attn_impl: torch, alibi: true, kv_n_heads: 8}",
                         "auto", "SHARD_GRAD_OP");
  check_read (
      "llm-foundry", plain,
      "layers=32; hidden=4096; kv_heads=32; ffn=16384; seq=2048; vocab=50368; position=learned; linear_bias=true; "
      "tied_embeddings=true; micro_batch=8; global_batch=1024; zero=3; dp_kind=fsdp1; recompute=full; "
      "recompute_early_stop=true; dtype=bf16; attention=flash; grad_norm=false; gpus; ?how many GPUs");
  check_read (
      "llm-foundry", other,
      "ffn=14336; linear_bias=false; tied_embeddings=false; position=alibi; attention=unfused; kv_heads=8; zero=2; "
      "micro_batch; ?device_train_microbatch_size auto");
  check_read (
      "llm-foundry",
      "name: x\ncompute: {gpus: 16}\nparameters:\n  global_train_batch_size: 8\n  train_loader: {}\n"
      "  model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Meta-Llama-3.1-8B-Instruct}\n",
      "gpus=16; layers=32; kv_heads=8; mlp=swiglu; norm=rmsnorm; vocab=128256; ~model meta-llama/Meta-Llama-3.1-8B-Instruct");
  check_read ("llm-foundry",
              "model: {name: hf_causal_lm, pretrained_model_name_or_path: a/b}\ntrain_loader: {}\n",
              "layers; ?model a/b: its dimensions");
  check_read (NULL, "model: {name: hf_t5}\ntrain_loader: {}\n", "no decoder");
}

static void
maxtext_is_read (void)
{
  check_read (
      "MaxText",
      "base_config: base.yml\nbase_emb_dim: 4096\nbase_num_query_heads: 32\nbase_num_kv_heads: 8\n"
      "base_mlp_dim: 14336\nbase_num_decoder_layers: 32\nmlp_activations: [silu, linear]\nvocab_size: 32_000\n"
      "decoder_block: mistral\nhardware: gpu\nper_device_batch_size: 0.5\nici_tensor_parallelism: 4\n"
      "ici_fsdp_parallelism: 2\ndcn_data_parallelism: 2\nremat_policy: minimal_flash\nmax_target_length: 4096\n",
      "layers=32; kv_heads=8; head_dim=128; mlp=swiglu; norm=rmsnorm; gpus=16; tp=4; zero=3@2; micro_batch=2; "
      "global_batch=8; recompute=selective; recompute_parts=dots-flash; software=maxtext-2024-12-gpu; dtype=bf16; "
      "dp_kind=xla-fsdp; ~head_dim of base.yml");
  check_read (
      "MaxText",
      "echo run\npython3 -m MaxText.train MaxText/configs/base.yml steps=15 per_device_batch_size=2 \\\n"
      "  remat_policy=full global_parameter_scale=32 ici_fsdp_parallelism=-1 ici_tensor_parallelism=4 "
      "attention='flash' quantization=\"\"\n",
      "layers=32; hidden=8192; heads=64; ffn=28672; seq=2048; tp=4; zero=3; micro_batch=8; recompute=full; gpus; "
      "software=maxtext-2024; ?how many devices; ~ffn 28672: base_mlp_dim of base.yml");
  check_read (
      "MaxText",
      "python3 -m maxtext.train configs/other.yml dcn_data_parallelism=16 ici_fsdp_parallelism=8 model_name=default\n",
      "gpus=128; layers; hidden; micro_batch; recompute; seq; dtype=bf16; ?what other.yml says");
  check_read ("MaxText", "base_config: base.yml\nmodel_name: no-such-model\n",
              "layers; hidden; mlp; ?model maxtext/no-such-model");
  check_read (NULL, "base_config: inference.yml\nmodel_name: llama2-70b\n", "inference");
}

#define AXOLOTL                                                                                              \
  "base_model: Qwen/Qwen3-8B\nsequence_len: 8192\nsample_packing: true\nmicro_batch_size: 2\n"               \
  "datasets:\n  - path: x\ngradient_accumulation_steps: 4\n"

static void
axolotl_is_read (void)
{
  check_read (
      "axolotl",
      AXOLOTL "dp_shard_size: 4\ncontext_parallel_size: 2\ntensor_parallel_size: 2\nfsdp_version: 2\n"
              "fsdp_config:\n  reshard_after_forward: true\nbf16: auto\nflash_attention: true\n"
              "gradient_checkpointing: true\nresize_token_embeddings_to_32x: true\n",
      "layers=36; seq=8192; micro_batch=2; gpus=16; tp=2; cp=2; dp_kind=fsdp2; zero=3; "
      "global_batch=32; dtype=bf16; recompute=full; attention=flash; ~gpus 16: dp_shard_size; ~bf16 is on; "
      "-datasets.0.path; vocab_multiple=32; cp_kind=all-gather; cp_balance=false; ~ring_attn_func varlen_llama3");
  check_read (
      "axolotl",
      "base_model: Qwen/Qwen3-8B\nsequence_len: 8192\nmicro_batch_size: 1\ndatasets:\n  - path: x\ndp_shard_size: 4\n"
      "context_parallel_size: 2\nflash_attention: true\n",
      "cp=2; cp_kind=ring; cp_balance=false; ~ring_attn_func batch_ring");
  check_read ("axolotl", AXOLOTL "adapter: qlora\nload_in_4bit: true\nfp16: true\nbf16: false\n",
              "dtype=fp16; dp_kind=ddp; lora_rank=8; lora_modules=q,v; qlora=true; ~lora_modules q,v");
  check_read ("axolotl",
              AXOLOTL "adapter: lora\nlora_r: 32\nlora_alpha: 16\nlora_dropout: 0.05\nlora_target_modules:\n"
                      "  - q_proj\n  - o_proj\n  - down_proj\n  - lm_head\n",
              "lora_rank=32; lora_modules=q,o,down; ?lora_dropout 0.05; ?lm_head is no linear layer");
  check_read ("axolotl",
              AXOLOTL
              "adapter: lora\nlora_target_modules: 'model.layers.[\\d]+.(mlp|self_attn).(up|q)_proj'\n",
              "lora_rank=8; lora_modules=q,up; ~its pattern is that of q,up");
  check_read ("axolotl",
              AXOLOTL "gradient_checkpointing: true\ngradient_checkpointing_kwargs: {use_reentrant: false}\n",
              "recompute=full; recompute_early_stop=true");
  check_read ("axolotl", AXOLOTL "gradient_checkpointing: true\n", "recompute=full; recompute_early_stop");
  check_read ("axolotl", AXOLOTL "adapter: llama-adapter\n", "?adapter llama-adapter");
  check_read ("axolotl",
              AXOLOTL "deepspeed:\n  zero_optimization:\n    stage: 3\n  bf16:\n    enabled: true\n"
                      "liger_rms_norm: true\n",
              "dp_kind=deepspeed; zero=3; software=deepspeed; ?use_liger_kernel");
  check_read ("axolotl", AXOLOTL "liger_rms_norm: true\nworld_size: 8\n",
              "software=hf-trainer-2024-liger; gpus=8; global_batch=64");
  check_read ("axolotl", "base_model: x\ndatasets: []\nval_set_size: 0\n",
              "seq=512; micro_batch=1; ~default of axolotl; ?sample_packing is off; ?model x");
  check_read (NULL, AXOLOTL "rl: dpo\n", "rl dpo: another task");
  check_read (NULL, AXOLOTL "diffusion:\n  eps: 1\n", "diffusion: another task");
}

#define MLPERF                                                                                               \
  "export MINIBS=144\nexport TENSOR_MODEL_PARALLEL=4\nexport PIPELINE_MODEL_PARALLEL=8\n"                    \
  "export MICRO_BATCH_SIZE=1\nexport DGXNNODES=128\nexport DGXNGPU=4\n"                                      \
  "export WALLTIME=$((5 + ${NEXP:-1} * 5))\n"

static void
scripts_of_mlperf_are_read (void)
{
  check_read (
      "NeMo for MLPerf",
      MLPERF "export INTERLEAVED_PIPELINE=8\nexport CONTEXT_PARALLEL=2\nexport MODEL_SIZE=405b\n"
             "export FP8=True\nexport FULL_CUDA_GRAPH=1\n",
      "layers=126; seq=8192; gpus=512; tp=4; sp=true; pp=8; vpp=8; cp=2; micro_batch=1; global_batch=1152; "
      "dtype=fp8; zero=1; cuda_graphs=step; software=nemo-mlperf-2025; ~MINIBS for each of 8 copies");
  check_read ("NeMo for MLPerf",
              "source $(dirname $0)/config_common_405b.sh\n" MLPERF
              "export FP4=True\nexport CONTEXT_PARALLEL=2\n",
              "layers=126; dtype=nvfp4; vpp; ?config_common_405b.sh sets");
  check_read ("NeMo for MLPerf", MLPERF "source $(dirname $0)/config_common.sh\n",
              "layers; dtype; cp=1; seq=2048; software=nemo-mlperf-2024; ?the model; ?FP8: whether it is on");
  check_read (
      "NeMo for MLPerf",
      "export MINIBS=1\nexport TP=4\nexport CP=2\nexport SP=1\nexport MBS=1\nexport DGXNNODES=8\n"
      "export FP8=True\nexport FP8_DPA=1\nexport FP8_REDUCE_AMAX=False\n",
      "tp=4; cp=2; gpus=64; global_batch=8; dtype=fp8; fp8_amax_reduction=none; sp=true; seq=8192; lora_rank=16; lora_modules=q,k,v,o; fp8_attention; ?FP8_DPA with parts; ~devices 8");
  check_read (NULL, "export MINIBS=1\nexport DGXSYSTEM=x\nexport WALLTIME=1\n", "how many nodes there are");
  check_read (NULL, "export FP8_AMAX_HISTORY=32\nexport FP8_REDUCE_AMAX=True\n", "a part of a configuration");
}

static void
others_are_told_apart (void)
{
  check_read (NULL, "steps: [a]\nimages: b\n",
              "the configuration of no program that is read; it has steps, images");
  check_read (NULL, "a: [1\nb: 2\n", "job.yaml:2:");
  check_read (
      NULL,
      "srun python pretrain.py --config-name=llama trainer.num_nodes=2 ++model.tensor_model_parallel_size=2\n",
      "changes the configuration llama, which");
}

/* --- what is shared ------------------------------------------------------------------------------- */

static void
resolved_as (const char *text, const char *expected)
{
  LsImport import = { .inferred = g_ptr_array_new_with_free_func (g_free) };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const ImportFile file = { .path = "a.yaml", .text = (char *) text, .n = strlen (text) };
  cJSON *tree = yaml_config_load (&(ImportFiles) { .files = &file, .n = 1 }, &import, diags);
  yaml_config_resolve (tree);
  char *json = cJSON_PrintUnformatted (tree);
  LS_CHECK_STR (json, expected);
  cJSON_free (json);
  cJSON_Delete (tree);
  g_ptr_array_unref (import.inferred);
}

/* Examples of the manual of OmegaConf 2.3, and what it would refuse: left as holes. */
static void
interpolations_are_resolved (void)
{
  resolved_as ("{a: 3, b: '${a}', c: {d: '${..a}', e: '${.d}'}, f: 'x${a}y'}",
               "{\"a\":3,\"b\":3,\"c\":{\"d\":3,\"e\":3},\"f\":\"x3y\"}");
  resolved_as (
      "{a: 3, b: '${multiply:4, ${.a}}', c: '${sum:${b},-1}', d: '${oc.env:X,7}', e: '${divide_ceil:7,2}'}",
      "{\"a\":3,\"b\":12,\"c\":11,\"d\":7,\"e\":4}");
  resolved_as ("{a: [1, 2], b: '${a}', c: '${a[1]}', k: a, d: '${${k}}'}",
               "{\"a\":[1,2],\"b\":[1,2],\"c\":2,\"k\":\"a\",\"d\":[1,2]}");
  resolved_as ("{model: {x: 1}, y: '${training.model.x}'}", "{\"model\":{\"x\":1},\"y\":1}");
  resolved_as ("{a: '${b}', b: '${a}'}", "{\"a\":\"\\u0001${a}\\u0002\",\"b\":\"\\u0001${a}\\u0002\"}");
  resolved_as ("{a: '${nothing}/x', b: '?"
               "?"
               "?', c: '${', d: '${oc.env:HOME}', e: '${multiply:a,2}'}",
               "{\"a\":\"\\u0001${nothing}\\u0002/x\",\"b\":\"\\u0001?"
               "??\\u0002\",\"c\":\"${\","
               "\"d\":\"\\u0001${oc.env:HOME}\\u0002\",\"e\":\"\\u0001${multiply:a,2}\\u0002\"}");
}

/* Each a copy of the next, twice; a chain in which each holds the next; braces that never close. */
static void
interpolations_are_bounded (void)
{
  GString *text = g_string_new ("{"), *chain = g_string_new ("{z: {v: 1}"), *open = g_string_new ("{a: '");
  for (int i = 0; i < 60; i++) {
    g_string_append_printf (text, "a%d: '${a%d}${a%d}', ", i, i + 1, i + 1);
    g_string_append_printf (chain, ", b%d: {v: '${%s}'}", i, i == 0 ? "z" : "x");
  }
  g_string_append (text, "a60: xxxxxxxx}");
  g_string_append_c (chain, '}');
  for (int i = 0; i < 20000; i++)
    g_string_append (open, "${");
  g_string_append (open, "'}");
  const char *const texts[] = { text->str, chain->str, open->str };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    LsImport import = { .inferred = g_ptr_array_new_with_free_func (g_free) };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    const ImportFile file = { .path = "a.yaml", .text = (char *) texts[i], .n = strlen (texts[i]) };
    cJSON *tree = yaml_config_load (&(ImportFiles) { .files = &file, .n = 1 }, &import, diags);
    yaml_config_resolve (tree);
    char *json = cJSON_PrintUnformatted (tree);
    LS_CHECK (json && strlen (json) < 64 << 20);
    cJSON_free (json);
    cJSON_Delete (tree);
    g_ptr_array_unref (import.inferred);
  }
  g_string_free (text, TRUE);
  g_string_free (chain, TRUE);
  g_string_free (open, TRUE);
}

/* Of several files, the last holds; gpt-neox refuses a key that two of its files have. */
static void
files_lie_on_top_of_each_other (void)
{
  g_autofree char *folder = g_dir_make_tmp ("lockstep-yaml-XXXXXX", NULL),
                  *a = g_build_filename (folder, "a.yml", NULL),
                  *b = g_build_filename (folder, "b.yml", NULL);
  const char *const paths[] = { a, b, NULL };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImport import;
  LS_CHECK (g_file_set_contents (a, NEOX, -1, NULL));
  LS_CHECK (g_file_set_contents (b, "global_num_gpus: 32\nprecision: fp16\nnum_layers: 12\n", -1, NULL));
  if (LS_CHECK (ls_import_load (paths, &import, diags))) {
    check_one (&import, "gpus=32", "files");
    check_one (&import, "global_batch=16", "files");
    check_one (&import, "dtype=fp16", "files");
    check_one (&import, "!num_layers: ", "files");
    ls_import_clear (&import);
  }
  LS_CHECK (g_file_set_contents (a, NEMO, -1, NULL));
  LS_CHECK (g_file_set_contents (b, "model: {num_layers: 12, hidden_size: 1024}\n", -1, NULL));
  if (LS_CHECK (ls_import_load (paths, &import, diags))) {
    check_one (&import, "layers=12", "files");
    check_one (&import, "ffn=4096", "files");
    check_one (&import, "heads=8", "files");
    ls_import_clear (&import);
  }
  g_remove (a);
  g_remove (b);
  g_rmdir (folder);
}

/* A recipe for adapters has its own, which a script may change. */
static void
recipes_have_adapters (void)
{
#define RECIPE                                                                                               \
  "#!/bin/bash\ntorchrun --nproc_per_node=2 run_recipe.py -gb 8 -mb 1 -sl 2048 "                             \
  "model.tensor_model_parallel_size=1 mixed_precision=bf16_mixed "
  check_read ("Megatron-Bridge", RECIPE "--recipe llama31_8b_peft_1gpu_h100_bf16_config\n",
              "lora_rank=8; lora_modules; ~adapters: those of the recipe");
  check_read ("Megatron-Bridge", RECIPE "--recipe qwen3_8b_peft_1gpu_h100_bf16_config peft.dim=64\n",
              "lora_rank=64; lora_modules=q,k,v,o");
  check_read ("Megatron-Bridge", RECIPE "--model qwen3_14b --mode lora\n", "lora_rank=32; lora_modules");
  check_read ("Megatron-Bridge", RECIPE "--model qwen3_14b --mode dora\n",
              "lora_rank; ?dora.DoRA: all weights");
  check_read ("Megatron-Bridge", RECIPE "--model qwen3_14b --mode sft\n", "lora_rank");
#undef RECIPE
}

LS_TEST_SUITE (LS_TEST (recipes_have_adapters), LS_TEST (gpt_neox_is_read), LS_TEST (nanotron_is_read),
               LS_TEST (nemo_is_read), LS_TEST (nemo_2_and_bridge_are_read), LS_TEST (llm_foundry_is_read),
               LS_TEST (maxtext_is_read), LS_TEST (axolotl_is_read), LS_TEST (scripts_of_mlperf_are_read),
               LS_TEST (others_are_told_apart), LS_TEST (interpolations_are_resolved),
               LS_TEST (interpolations_are_bounded), LS_TEST (files_lie_on_top_of_each_other))
