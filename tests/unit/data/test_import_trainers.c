/* Pins what configurations and scripts of OLMo, lingua and nanochat mean, and models of MaxText's
 * benchmark_runner, of which tests/golden/import.txt asks for one of several. */
#include "ls_test.h"

#include "import_check.h"

/* --- OLMo ------------------------------------------------------------------------------------------------ */

#define MODEL                                                                                                \
  "  d_model: 1024\n  n_heads: 16\n  n_layers: 10\n  mlp_hidden_size: 8192\n  max_sequence_length: 512\n"    \
  "  block_type: sequential\n  activation_type: swiglu\n  rope: true\n  flash_attention: true\n"             \
  "  include_bias: false\n  bias_for_layer_norm: false\n  weight_tying: false\n  vocab_size: 1000\n"         \
  "  embedding_size: 1024\n"
#define QUIET "  attention_dropout: 0.0\n  residual_dropout: 0.0\n  embedding_dropout: 0.0\n"
#define REST                                                                                                 \
  "optimizer: {name: adamw, learning_rate: 3.0e-4, metrics_log_interval: 10}\n"                              \
  "global_train_batch_size: 64\ndevice_train_microbatch_size: 4\nprecision: amp_bf16\n"                      \
  "max_grad_norm: 1.0\ndevice_eval_batch_size: ${device_train_microbatch_size}\n"                            \
  "evaluators:\n  - {label: a, type: downstream}\n"

/* A second model: RMS norms behind each half, and of queries and keys over all heads; the fused loss. */
static void
olmo_configurations_are_read (void)
{
  check_read (
      "OLMo",
      "run_name: a\nmodel:\n" MODEL QUIET
      "  layer_norm_type: rms\n  norm_after: true\n  attention_layer_norm: true\n"
      "compile: null\nfused_loss: true\nsoftmax_auxiliary_loss: true\n" REST
      "fsdp: {wrapping_strategy: by_block_and_size, precision: mixed}\n",
      "layers=10; hidden=1024; heads=16; kv_heads=16; ffn=4096; vocab=1024; seq=512; mlp=swiglu; norm=rmsnorm; "
      "norms=post; qk_norm=true; qk_norm_over=all; position=rope; linear_bias=false; tied_embeddings=false; "
      "dropout=false; software=olmo-2025; kernels=olmo-2025+olmo-fused-loss; dp_kind=fsdp1; zero=3; "
      "grad_dtype=fp32; grad_sync=each; layers_per_unit=1; micro_batch=4; global_batch=64; recompute=none; "
      "dtype=bf16; optimizer=adam; attention=flash; gpus; ?how many GPUs; -evaluators; -run_name; -max_grad_norm");
  check_read (
      "OLMo",
      "model:\n" MODEL QUIET "  layer_norm_type: default\n  layer_norm_with_affine: false\n  clip_qkv: 8.0\n"
      "compile: {fullgraph: false}\nwandb: {project: a}\n" REST
      "fsdp: {wrapping_strategy: by_block, precision: pure}\nactivation_checkpointing: one_in_four\n",
      "norm=layernorm_plain; norms=pre; qk_norm=false; software=olmo-2025-compile; kernels; grad_dtype=bf16; "
      "recompute=full; recompute_method=block; recompute_layers=3; ?model.clip_qkv; "
      "?optimizer.metrics_log_interval 10 with wandb");
}

/* What olmo/config.py takes where a file says nothing: GPT-2's model, Lion, one unit, gradients in bf16. */
static void
olmo_defaults_are_told (void)
{
  check_read (
      "OLMo",
      "model: {d_model: 768, layer_norm_type: default}\nglobal_train_batch_size: 32\nprecision: amp_bf16\n",
      "layers=12; heads=12; seq=1024; vocab=50304; ffn=1536; position=learned; norm=layernorm; "
      "linear_bias=true; tied_embeddings=true; dropout=true; micro_batch=16; grad_dtype=bf16; zero=2; "
      "layers_per_unit=12; optimizer=lion; ~vocab 50304; ~dropout; ~zero 2; ~optimizer lion; "
      "~pure by default; ?fsdp.wrapping_strategy null");
  check_read ("OLMo",
              "model: {d_model: 768, layer_norm_type: default, embedding_size: null, vocab_size: 700}\n"
              "global_train_batch_size: 32\n",
              "vocab=700; !precision is not said");
}

static void
olmo_recomputation_is_read (void)
{
  static const char *const rows[][2] = {
    { "whole_layer", "recompute=full; recompute_method; recompute_layers" },
    { "true", "recompute=full; recompute_layers" },
    { "false", "recompute=none" },
    { "two_in_three", "recompute=full; recompute_method=block; recompute_layers=6" },
    { "three_in_four", "recompute_layers=7" },
    { "one_in_eight", "recompute_layers=2" },
    { "fine_grained",
      "recompute=selective; recompute_parts=core,norm,activation; recompute_flash=true; "
      "?fine_grained" },
    { "some", "recompute=none; ?activation_checkpointing some" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *text = g_strdup_printf (
        "model:\n" MODEL QUIET "  layer_norm_type: rms\n" REST "activation_checkpointing: %s\n", rows[i][0]);
    check_read ("OLMo", text, rows[i][1]);
  }
}

/* Whole weights are in fp32, and autocast casts them. */
static void
olmo_other_strategies_are_read (void)
{
#define WITH(rest) "model:\n" MODEL QUIET "  layer_norm_type: rms\n" REST rest
  check_read ("OLMo",
              WITH ("distributed_strategy: ddp\nddp: {grad_sync_mode: micro_batch}\nfused_loss: true\n"),
              "dp_kind=ddp; zero; master=weights; grad_dtype=fp32; grad_sync=each; software=olmo-2025-ddp; "
              "kernels=olmo-2025-autocast+olmo-fused-loss");
  check_read ("OLMo", WITH ("distributed_strategy: single\n"),
              "dp_kind=none; gpus=1; master=weights; micro_batch=4");
  check_read (
      "OLMo",
      WITH ("fsdp: {sharding_strategy: SHARD_GRAD_OP, wrapping_strategy: by_block_group, precision: null}\n"),
      "zero=2; !block_group_size 1; ?fsdp.precision null");
  check_read ("OLMo", WITH ("fsdp: {sharding_strategy: HYBRID_SHARD, wrapping_strategy: by_block}\n"),
              "zero; ?how many GPUs share a copy");
  check_read ("OLMo", WITH ("fsdp: {wrapping_strategy: one_in_two}\ndata: {generate_doc_lengths: true}\n"),
              "?fsdp.wrapping_strategy one_in_two; lengths; ?data.generate_doc_lengths");
#undef WITH
}

/* What OLMo refuses, and what it knows no word for. */
static void
olmo_bad_configurations_are_told (void)
{
  check_read ("OLMo",
              "model:\n" MODEL "  alibi: true\n  n_kv_heads: 4\n  multi_query_attention: true\n"
              "  layer_norm_type: group\n" REST,
              "attention=unfused; !model.rope with model.alibi; !multi_query_attention; "
              "!flash_attention with model.alibi; ?model.layer_norm_type group; dropout=true");
  check_read (
      "OLMo",
      "model: {d_model: 768, layer_norm_type: rms, mlp_hidden_size: 3071, embedding_size: 64, vocab_size: 65, "
      "n_layers: -3, mystery: 1}\nglobal_train_batch_size: many\nprecision: fp8\n",
      "!mlp_hidden_size 3071 is odd; !embedding_size 64 below; ?model.mystery; ?precision fp8; "
      "?global_train_batch_size");
  check_read (NULL, "model: {d_model: 768}\nglobal_train_batch_size: 32\n",
              "the configuration of no program");
}

#define WRITTEN "cat > a.yaml <<END\nmodel:\n" MODEL QUIET "  layer_norm_type: rms\n" REST "END\n"

/* Options lie on top; a rank's share of the batch bounds a micro-batch. */
static void
olmo_scripts_are_read (void)
{
  check_read (
      "OLMo",
      WRITTEN "torchrun --nnodes 4 --nproc-per-node 8 scripts/train.py a.yaml --save_overwrite "
              "--fsdp.sharding_strategy=HYBRID_SHARD --fsdp.wrapping-strategy=by_block "
              "--compile.fullgraph=false --activation_checkpointing=one_in_two\n",
      "gpus=32; zero=3@8; micro_batch=2; global_batch=64; recompute_layers=5; software=olmo-2025-compile; "
      "-save_overwrite; ~micro_batch 2");
  check_read ("OLMo",
              WRITTEN
              "torchrun --nnodes 4 --nproc-per-node 8 scripts/train.py a.yaml --run_name=b "
              "--fsdp.sharding_strategy=_HYBRID_SHARD_ZERO2 --fsdp.hybrid_sharding_num_model_replicas=2\n",
              "gpus=32; zero=2@16");
  check_read ("OLMo",
              WRITTEN "torchrun --nnodes 4 --nproc-per-node 8 scripts/train.py a.yaml --run_name=b "
                      "--fsdp.sharding_strategy=HYBRID_SHARD --fsdp.hybrid_sharding_num_model_replicas=$1\n",
              "gpus=32; zero; ?how many GPUs share a copy");
  check_read (NULL, "torchrun --nproc-per-node 8 scripts/train.py b.yaml --save_overwrite\n",
              "whose configuration b.yaml is not here");
  check_read (NULL, "cat > b.yaml <<END\na: 1\nEND\ntorchrun scripts/train.py b.yaml --save_overwrite\n",
              "b.yaml: it is no configuration of OLMo");
}

#undef MODEL
#undef QUIET
#undef REST
#undef WRITTEN

/* --- lingua ---------------------------------------------------------------------------------------------- */

#define DISTRIBUTED(rest)                                                                                    \
  "distributed:\n  fsdp_type: full_shard\n  compile: true\n  model_dtype: bf16\n  tp_size: 1\n"              \
  "  matmul_allow_tf32: false\n" rest
#define DATA                                                                                                 \
  "data:\n  root_dir: d\n  sources: {a: 1.0}\n  batch_size: 4\n  seq_len: 1024\n"                            \
  "  tokenizer: {name: tiktoken, path: words.model}\noptim: {lr: 1e-3, clip: 1.0}\n"
#define MODEL "model:\n  dim: 1024\n  n_layers: 6\n  n_heads: 8\n"

/* Weights stay gathered behind the forward; the last micro-batch reduces. */
static void
lingua_configurations_are_read (void)
{
  check_read (
      "lingua",
      "name: a\nsteps: 1000\ngrad_acc_steps: 2\nprobe_freq: 100\n" MODEL DISTRIBUTED ("  dp_shard: 8\n"
                                                                                      "  dp_replicate: 2\n")
          DATA,
      "layers=6; hidden=1024; heads=8; kv_heads=8; ffn=2816; seq=1024; vocab; mlp=swiglu; norm=rmsnorm; "
      "position=rope; tied_embeddings=false; dropout=false; software=lingua-2025-compile; gpus=16; "
      "dp_kind=fsdp2; zero=2@8; micro_batch=4; global_batch=128; grad_sync=last; grad_dtype=fp32; dtype=bf16; "
      "recompute=none; ?vocab; ~zero 2; ~without a probe; -optim.clip; -data.sources.a");
  check_read (
      "lingua",
      "model: {dim: 768, head_dim: 64, n_kv_heads: 4, ffn_dim_multiplier: 1.5, multiple_of: 64, "
      "vocab_size: 5000, weight_tying: true}\n" DISTRIBUTED ("  dp_replicate: 8\n") DATA,
      "heads=12; kv_heads=4; head_dim=64; ffn=3072; vocab=5000; layers=8; tied_embeddings=true; gpus=8; "
      "zero=2; ~layers 8: the default of lingua");
}

static void
lingua_defaults_are_told (void)
{
  check_read ("lingua",
              "model: {n_heads: 8}\ndistributed: {fsdp_type: no_shard, model_dtype: bf16}\n"
              "data: {seq_len: 64}\noptim: {lr: 1e-3}\n",
              "hidden=512; vocab=258; micro_batch=2; dp_kind=fsdp2; zero=2@1; software=lingua-2025; gpus; "
              "global_batch; ~vocab 258; ?how many GPUs; ?the global batch");
}

static void
lingua_what_is_left_out_is_told (void)
{
  check_read ("lingua",
              MODEL DISTRIBUTED ("  selective_activation_checkpointing: true\n  float8_recipe: rowwise\n"
                                 "  detect_anomaly: true\n  mystery: 1\n") DATA,
              "recompute=selective; recompute_parts=dots-flash; dtype=fp8; fp8_recipe=current; "
              "?one checkpoint around; ?float8_recipe rowwise; ?detect_anomaly; ?distributed.mystery");
  check_read (
      "lingua",
      "model: {dim: 512, sliding_window: 64}\n"
      "distributed: {fsdp_type: full_shard, compile: true, model_dtype: int8, tp_size: 2, dp_shard: 3, "
      "dp_replicate: 1}\n" DATA,
      "tp=2; sp=true; gpus=6; zero=2; window; ~no window; !neither model.n_heads; !tp_size 2 with compile; "
      "?logits are gathered; ?model_dtype int8");
}

/* The repository's other programs train other models with the same words. */
static void
lingua_other_models_are_refused (void)
{
  check_read (NULL, "model: {dim: 64, n_heads: 2, conv_size: 4}\n" DISTRIBUTED ("") DATA,
              "model.conv_size: a model of another program than apps/main of lingua");
  check_read (NULL, "model: {dim: 64, n_heads: 2, n_future_head: 3}\n" DISTRIBUTED ("") DATA,
              "model.n_future_head: a model of another program");
  check_read (NULL, "name: a\nharness: {tasks: [b]}\ngenerator: {dtype: bf16}\n",
              "the configuration of no program that is read");
}

#define WRITTEN "cat > a.yaml <<END\n" MODEL DISTRIBUTED ("") DATA "END\n"

/* torchrun says how many, or stool, of 8 GPUs each. */
static void
lingua_scripts_are_read (void)
{
  check_read ("lingua",
              WRITTEN "torchrun --nproc-per-node 4 -m apps.main.train config=a.yaml data.batch_size=8 "
                      "grad_acc_steps=2 distributed.compile=false\n",
              "gpus=4; micro_batch=8; global_batch=64; zero=2; software=lingua-2025");
  check_read ("lingua",
              WRITTEN "torchrun --nproc-per-node 6 -m apps.main.train config=a.yaml distributed.dp_shard=4\n",
              "!6 GPUs are no multiple");
  check_read ("lingua", WRITTEN "python -m lingua.stool script=apps.main.train config=a.yaml nodes=2\n",
              "gpus=16; global_batch=64");
  check_read ("lingua", WRITTEN "python -m lingua.stool config=a.yaml nodes=2 ngpu=4\n", "gpus=8");
  check_read (NULL, WRITTEN "python -m lingua.stool script=apps.mamba.train config=a.yaml nodes=2\n",
              "script=apps.mamba.train: of lingua apps.main.train alone is read");
  check_read (NULL, "torchrun --nproc-per-node 4 -m apps.main.train config=b.yaml\n",
              "whose configuration b.yaml is not here");
}

#undef DISTRIBUTED
#undef DATA
#undef MODEL
#undef WRITTEN

/* --- MaxText --------------------------------------------------------------------------------------------- */

#define ONE                                                                                                  \
  "FLAGS = {\"enable_checkpointing\": True}\nall_models = {}\n\n"                                            \
  "llama_70b = _add_to_model_dictionary(\n    all_models,\n    MaxTextModel(\n"                              \
  "        model_name=\"llama-70b\",\n        model_type=\"llama2-70b\",\n        tuning_params={\n"         \
  "            \"per_device_batch_size\": 4,\n            \"remat_policy\": \"full\",\n"                     \
  "            \"max_target_length\": 4096,\n            \"attention\": \"flash\",\n"
#define END "        },\n        xla_flags=(library.SOME_FLAG + library.OTHER),\n    ),\n)\n"

/* Options on top of base.yml; degrees of -1 are what is left of the devices, shards by another name too. */
static void
maxtext_models_are_read (void)
{
  check_read ("MaxText", ONE "\"ici_fsdp_parallelism\": 1, \"ici_fsdp_transpose_parallelism\": -1,\n" END,
              "layers=80; seq=4096; gpus; zero=3; dp_kind=xla-fsdp; micro_batch=4; recompute=full; "
              "~xla_flags; ?how many devices");
  check_read ("MaxText", ONE "\"ici_fsdp_parallelism\": 1, \"ici_expert_parallelism\": -1,\n" END,
              "zero=3; ep; ?ep: what the other degrees leave");
  check_read ("MaxText",
              ONE "\"ici_fsdp_parallelism\": 8, \"ici_tensor_parallelism\": 2, \"a_new_one\": 3,\n" END,
              "gpus=16; tp=2; global_batch=64; ?a_new_one");
}

/* XLA's flags say what its loop over layers runs beside compute, whatever else of them is open; without a loop
 * nothing is stacked. */
static void
the_loop_of_xla_is_read (void)
{
#define FLAGS(more)                                                                                          \
  "export XLA_FLAGS=\"--xla_dump_to=$OUT/$(date)/ --xla_gpu_enable_latency_hiding_scheduler=true " more      \
  "\"\npython3 MaxText/train.py MaxText/configs/base.yml model_name=llama2-7b hardware=gpu "                 \
  "per_device_batch_size=2 ici_fsdp_parallelism=8 "
  check_read ("MaxText", FLAGS (""), "loop_overlap=turn; loop_copies; sp=false");
  check_read ("MaxText", FLAGS ("") "ici_tensor_parallelism=4",
              "tp=4; sp=true; ~cut over tensor, by its width");
  check_read ("MaxText", FLAGS ("--xla_gpu_enable_pipelined_all_gather=true"),
              "loop_overlap=pipelined; loop_copies=weights");
  check_read ("MaxText",
              FLAGS ("--xla_gpu_pipeline_all_gather=on\n--xla_gpu_enable_while_loop_double_buffering=true"),
              "loop_overlap=pipelined; loop_copies");
  check_read ("MaxText", FLAGS ("--xla_gpu_enable_while_loop_double_buffering=true") "scan_layers=false",
              "loop_overlap=turn; loop_copies=none");
  check_read ("MaxText",
              "export XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true\npython3 MaxText/train.py "
              "MaxText/configs/base.yml model_name=llama2-7b per_device_batch_size=2 ici_fsdp_parallelism=8",
              "loop_overlap=gathers; loop_copies=none");
  check_read ("MaxText", FLAGS ("") "ici_context_parallelism=2", "cp=2; cp_kind=all-gather");
  check_read ("MaxText", FLAGS ("") "ici_context_parallelism=2 context_parallel_strategy=ring",
              "cp=2; cp_kind=ring");
#undef FLAGS
}

/* Policies name outputs; a part of which some stay runs again, and it is told. */
static void
what_a_policy_names_stays (void)
{
#define DENSE                                                                                                \
  "base_config: base.yml\nmodel_name: llama2-7b\nhardware: gpu\nper_device_batch_size: 1\nremat_policy: "
  static const char *const cases[][2] = {
    { "save_qkv_proj\n", "recompute=selective; recompute_parts=but-qkv; offload_activations" },
    { "save_out_proj\n", "recompute=selective; recompute_parts=but-projection" },
    { "save_dot_except_mlp\n", "recompute_parts=but-qkv,but-projection" },
    { "save_dot_except_mlpwi\n", "recompute_parts=but-qkv,but-projection,but-down" },
    { "save_dot_with_context_except_mlp\n", "recompute_parts=but-qkv,but-attention,but-projection" },
    { "minimal_offloaded\n", "recompute_parts=dots; offload_activations=true; ~inputs of layers" },
    { "custom\nquery_proj: device\nkey_proj: device\nvalue_proj: device\nmlpwi: device\n",
      "recompute=selective; recompute_parts=but-qkv,but-up; offload_activations" },
    { "custom\nquery_proj: device\nmlpwi_0: device\nout_proj: device\n",
      "recompute_parts=but-projection; ?it keeps query_proj mlpwi_0, which are taken to run again" },
    { "custom\ndecoder_layer_input: offload\nquery_proj: offload\nkey_proj: offload\nvalue_proj: offload\n",
      "recompute_parts=but-qkv; offload_activations=true" },
    { "custom\nqkv_proj: offload\nout_proj: device\n",
      "recompute_parts=but-qkv,but-projection; offload_activations; ?all is taken to stay on the device" },
    { "custom\nmlpwi: device\nout_proj: device\nqkv_proj: device\nmlpwo: device\n", "recompute_parts=dots" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *file = g_strconcat (DENSE, cases[i][0], NULL);
    check_read ("MaxText", file, cases[i][1]);
  }
#undef DENSE
}

static void
maxtext_several_are_told_apart (void)
{
  check_read (NULL, ONE END "other = _add_to_model_dictionary(all_models, MaxTextModel(model_name=\"b\"))\n",
              "it has several models: llama_70b, other");
}

#undef ONE
#undef END

/* --- SageMaker HyperPod ------------------------------------------------------------------------------ */

static void
hyperpod_is_refused (void)
{
  check_read (
      NULL,
      "run: {name: a, model_type: llm_finetuning_aws}\ntraining_config: {training_args: {trainer_type: sft}}\n",
      "a recipe of SageMaker HyperPod: what it starts for run.model_type llm_finetuning_aws is not read");
  check_read (
      NULL, "run: {model_type: llm_finetuning_aws}\ntraining_config: {training_args: {trainer_type: dpo}}\n",
      "a recipe of SageMaker HyperPod for dpo: another task");
  check_read (NULL, "run: {model_type: verl}\ntraining_config: {algorithm: {adv_estimator: grpo}}\n",
              "a recipe of SageMaker HyperPod for grpo: another task");
}

/* --- nanochat ---------------------------------------------------------------------------------------- */

/* A model and a batch follow from its depth. */
#define NANOCHAT "torchrun --standalone --nproc_per_node=8 -m scripts.base_train -- "

static void
all_follows_from_the_depth (void)
{
  check_read ("nanochat", NANOCHAT "--depth=24 --device-batch-size=16 --run=a",
              "layers=24; hidden=1536; heads=12; kv_heads=12; head_dim=128; ffn=6144; vocab=32768; seq=2048; "
              "layer_window=513x3,0,513x3,0,513x3,0,513x3,0,513x3,0,513x3,0; mlp=relu2; qk_norm=true; "
              "logit_cap=true; gpus=8; micro_batch=16; global_batch=512; zero=1; dp_kind=megatron; "
              "optimizer=muon-nanochat; dtype=bf16; grad_dtype=fp32; software=nanochat-2026; "
              "~--total-batch-size 1048576 tokens; ?12 tables with 604 million parameters; -run");
  check_read ("nanochat", NANOCHAT "--depth=12", "hidden=768; heads=6; micro_batch=32; global_batch=256");
  check_read ("nanochat", NANOCHAT "--depth=13 --aspect-ratio 50", "hidden=768; heads=6; layers=13");
  check_read ("nanochat", NANOCHAT, "layers=20; hidden=1280; ~layers 20: the default of nanochat");
}

/* The last layer sees the whole sequence, whatever the pattern; other lengths have other windows. */
static void
windows_are_read (void)
{
  check_read ("nanochat", NANOCHAT "--depth=4 --window-pattern=SL", "layer_window=513,0,513,0");
  check_read ("nanochat", NANOCHAT "--depth=3 --window-pattern=s --max-seq-len=1000",
              "layer_window=257x2,0; seq=1000; !are no multiple of");
  check_read ("nanochat", NANOCHAT "--depth=4 --window-pattern L", "layer_window; layers=4");
  check_read ("nanochat", NANOCHAT "--depth=4 --window-pattern=SX", "layer_window; !--window-pattern SX");
}

static void
batches_and_formats_are_read (void)
{
  check_read ("nanochat", NANOCHAT "--depth=4 --total-batch-size=1048576", "global_batch=512");
  check_read ("nanochat", NANOCHAT "--depth=4 --total-batch-size=500000", "!nanochat refuses it");
  check_read ("nanochat", "python -m scripts.base_train --depth=4 --max-seq-len=512 --total-batch-size=16384",
              "gpus=1; dp_kind=none; zero; global_batch=32");
  check_read ("nanochat", NANOCHAT "--depth=4 --fp8",
              "dtype=fp8; fp8_recipe=current; fp8_linear=torchao; ?the head, which is in fp8 too");
  check_read ("nanochat", NANOCHAT "--depth=4 --fp8 --fp8-recipe=rowwise", "!knows tensorwise alone");
  check_read ("nanochat", "export NANOCHAT_DTYPE=float32\n" NANOCHAT "--depth=4", "dtype=fp32");
  check_read (NULL, NANOCHAT "--device-type=cpu", "--device-type cpu");
}

LS_TEST_SUITE (LS_TEST (hyperpod_is_refused), LS_TEST (olmo_configurations_are_read),
               LS_TEST (olmo_defaults_are_told), LS_TEST (olmo_recomputation_is_read),
               LS_TEST (olmo_other_strategies_are_read), LS_TEST (olmo_bad_configurations_are_told),
               LS_TEST (olmo_scripts_are_read), LS_TEST (lingua_configurations_are_read),
               LS_TEST (lingua_defaults_are_told), LS_TEST (lingua_what_is_left_out_is_told),
               LS_TEST (lingua_other_models_are_refused), LS_TEST (lingua_scripts_are_read),
               LS_TEST (maxtext_models_are_read), LS_TEST (maxtext_several_are_told_apart),
               LS_TEST (what_a_policy_names_stays), LS_TEST (the_loop_of_xla_is_read),
               LS_TEST (all_follows_from_the_depth), LS_TEST (windows_are_read),
               LS_TEST (batches_and_formats_are_read))
