/* Pins in which number formats jobs of a Trainer keep weights and step on them, and by which release of
 * transformers they are simulated: defaults of programs, what shards, adapters. */
#include "import_check.h"

#define OPTIONS " --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir o --per_device_train_batch_size 1 "
#define RUN     "torchrun --nproc_per_node 2 train.py" OPTIONS
#define ONE     "python run_clm.py" OPTIONS

static void
check_all (const char *const (*rows)[2], gsize n)
{
  for (gsize i = 0; i < n; i++)
    check (rows[i][0], rows[i][1]);
}

static void
weights_are_kept_as_they_are_loaded (void)
{
  static const char *const rows[][2] = {
    { RUN "--bf16",
      "dtype=bf16; master=weights; software=hf-trainer-2024-autocast; dp_kind=ddp; "
      "~nothing says which release; ~weights fp32, cast for each product: no torch_dtype" },
    { ONE "--fp16", "dtype=fp16; master=weights; software=hf-trainer-2024-autocast; gpus=1" },
    { RUN "--gradient_checkpointing True --gradient_checkpointing_kwargs '{\"use_reentrant\": false}'",
      "recompute=full; recompute_early_stop=true" },
    { "stage: sft\ndo_train: true\nfinetuning_type: full\nmodel_name_or_path: Qwen/Qwen3-8B\ntemplate: qwen3\n"
      "cutoff_len: 2048\nuse_reentrant_gc: false\n",
      "recompute=full; recompute_early_stop=true" },
    { RUN "--gradient_checkpointing True", "recompute=full; recompute_early_stop" },
    { RUN "--grad_checkpoint True", "recompute=full" },
    { RUN "--grad_checkpoint False", "recompute=none" },
    { RUN "--bf16 --torch_dtype bfloat16",
      "dtype=bf16; master=none; software=hf-trainer-2024; "
      "~weights bf16, which are stepped on as they are" },
    { RUN "--torch_dtype bfloat16", "dtype=bf16; master=none; software=hf-trainer-2024" },
    { RUN "--bf16 --torch_dtype float32", "dtype=bf16; master=weights; software=hf-trainer-2024-autocast" },
    { RUN "--bf16 --torch_dtype auto", "master=none; ~loaded as the checkpoint is (torch_dtype)" },
    { RUN "--torch_dtype auto", "dtype=bf16; master=none" },
    { RUN "--torch_dtype float32", "dtype=fp32; master; software=hf-trainer-2024" },
    { RUN, "dtype=fp32; master; software=hf-trainer-2024" },
    { RUN "--fp16 --torch_dtype float16", "dtype=fp16; master=none; ?fp16 with weights in fp16" },
    { RUN "--bf16 --use_liger_kernel", "software=hf-trainer-2024-liger; master=weights" },
    { RUN "--use_liger_kernel True $MORE", "software=hf-trainer-2024-liger; dtype; master" },
    { "distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 8\n",
      "dtype=bf16; master=weights; software=hf-trainer-2024-autocast" },
    { "distributed_type: FSDP\nmixed_precision: fp8\nfp8_config:\n  backend: AO\nfsdp_config:\n"
      "  fsdp_version: 2\nnum_processes: 8\n",
      "dtype=fp8; fp8_recipe=current; fp8_linear=torchao; fp8_params=true" },
    { "distributed_type: FSDP\nmixed_precision: fp8\nfp8_config:\n  backend: AO\n"
      "  enable_fsdp_float8_all_gather: false\nfsdp_config:\n  fsdp_version: 2\nnum_processes: 8\n",
      "fp8_linear=torchao; fp8_params" },
    { "distributed_type: MULTI_GPU\nmixed_precision: fp8\nfp8_config:\n  backend: TE\nnum_processes: 8\n",
      "dtype=fp8; fp8_recipe=delayed; fp8_linear=te; fp8_params" },
    { "distributed_type: MULTI_GPU\nmixed_precision: fp8\nnum_processes: 8\n",
      "fp8_linear=torchao; ?mixed_precision fp8 without a backend" },
    { "distributed_type: MULTI_GPU\nmixed_precision: no\nnum_processes: 8\n", "dtype=fp32; master" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
}

/* FSDP has shards in fp32 where precision is mixed, DeepSpeed weights of its own. */
static void
shards_have_formats_of_their_own (void)
{
  static const char *const rows[][2] = {
    { RUN "--bf16 --fsdp full_shard",
      "zero=3; master; narrow_shards; software=hf-trainer-2024; ~shards fp32" },
    { RUN "--bf16 --torch_dtype bfloat16 --fsdp full_shard", "master; narrow_shards; ~shards fp32" },
    { RUN "--torch_dtype bfloat16 --fsdp full_shard", "zero=3; dtype=bf16; master; narrow_shards=true" },
    { RUN "--bf16 --torch_dtype bfloat16 --fsdp no_shard", "dp_kind=ddp; master=weights; narrow_shards" },
    { RUN "--torch_dtype bfloat16 --fsdp no_shard", "dp_kind=ddp; master=none; narrow_shards" },
    { ONE "--bf16 --torch_dtype bfloat16 --fsdp full_shard", "gpus=1; master=weights; narrow_shards" },
    { "accelerate launch --use_fsdp --fsdp_version 2 --num_processes 8 --mixed_precision no x.py "
      "--model_name_or_path gpt2 --output_dir o --dtype bfloat16",
      "dp_kind=fsdp2; narrow_shards=true; software=hf-trainer-2026" },
    { RUN "--bf16 --torch_dtype bfloat16 --deepspeed z.json", "software=deepspeed; master; narrow_shards" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
}

static void
adapters_are_fp32 (void)
{
  static const char *const rows[][2] = {
    { RUN "--bf16 --torch_dtype bfloat16 --use_peft",
      "lora_rank=16; master=weights; software=hf-trainer-2024; ~adapters fp32: PEFT; ~weights bf16, frozen" },
    { RUN "--bf16 --use_peft",
      "master=weights; software=hf-trainer-2024; "
      "?frozen weights are loaded in fp32 (no torch_dtype): taken to be in 16 bits" },
    { RUN "--bf16 --use_peft --load_in_4bit", "qlora=true; master=weights" },
    { RUN "--bf16 --use_peft --deepspeed z.json", "lora_rank=16; master" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
}

static void
options_tell_the_release_of_a_trainer (void)
{
  static const char *const rows[][2] = {
    { RUN "--bf16 --dtype bfloat16",
      "master=none; software=hf-trainer-2026; ~dtype is an option of its time" },
    { RUN "--bf16 --dtype float32", "master=weights; software=hf-trainer-2026-autocast" },
    { RUN "--bf16 --dtype never", "master=none; software=hf-trainer-2026; ?dtype never: no number format" },
    { RUN "--bf16 --evaluation_strategy no --dtype float32",
      "software=hf-trainer-2024-autocast; ~evaluation_strategy is an option" },
    { RUN "--bf16 --overwrite_output_dir", "software=hf-trainer-2024-autocast; ~overwrite_output_dir is" },
    { RUN "--bf16 --eval_strategy no", "~nothing says which release" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
}

#define FACTORY                                                                                              \
  "CUDA_VISIBLE_DEVICES=0 llamafactory-cli train --model_name_or_path Qwen/Qwen2.5-1.5B --stage sft "        \
  "--output_dir o "
#define SWIFT "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-1.5B --max_length 2048 "
#define TRL   "python trl/scripts/sft.py" OPTIONS

/* LLaMA-Factory makes what is trained fp32, but with pure_bf16 and BAdam. */
static void
programs_load_in_formats_of_their_own (void)
{
  static const char *const rows[][2] = {
    { FACTORY "--bf16 --finetuning_type full",
      "dtype=bf16; master=weights; software=hf-trainer-2026-autocast; ~all that is trained is made fp32" },
    { FACTORY "--pure_bf16 --finetuning_type full", "dtype=bf16; master=none; software=hf-trainer-2026" },
    { FACTORY "--bf16 --use_badam --finetuning_type full",
      "master=none; software=hf-trainer-2026; ?use_badam" },
    { FACTORY "--finetuning_type full", "dtype=fp32; master" },
    { FACTORY "--bf16 --finetuning_type lora",
      "lora_rank=8; master=weights; software=hf-trainer-2026; ~weights bf16, frozen: loaded as the checkpoint" },
    { FACTORY "--bf16 --finetuning_type full --deepspeed z.json", "master; software=deepspeed" },
    { SWIFT "--tuner_type full",
      "dtype=bf16; master=none; software=hf-trainer-2026; ~weights are as config.json" },
    { SWIFT "--tuner_type full --torch_dtype float32",
      "dtype=fp16; master=weights; "
      "software=hf-trainer-2026-autocast" },
    { SWIFT,
      "lora_rank=8; master=weights; software=hf-trainer-2026; ~ms-swift asks for transformers below 5.17" },
    { TRL,
      "dtype=bf16; recompute=full; seq=1024; master=weights; software=hf-trainer-2026-autocast; "
      "~torch_dtype float32: the default of dtype of TRL; ~TRL asks for transformers from 4.56" },
    { TRL "--dtype bfloat16 --use_peft", "lora_rank=16; master=weights; software=hf-trainer-2026" },
    { TRL "--torch_dtype bfloat16 --bf16 --max_seq_length 512",
      "seq=512; recompute=none; master=none; software=hf-trainer-2024; ~torch_dtype is an option of its time" },
    { TRL "--max_seq_length 512", "dtype=fp32; master; software=hf-trainer-2024" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
  check_read (NULL, "trl dpo --model_name_or_path a --output_dir o --per_device_train_batch_size 1",
              "trl dpo");
}

/* Axolotl loads weights in the format that it trains in. */
static void
axolotl_trains_in_the_format_of_its_weights (void)
{
#define AXOLOTL "base_model: Qwen/Qwen2.5-1.5B\nmicro_batch_size: 1\nsequence_len: 512\nworld_size: 8\n"
#define FSDP    "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n"
  static const char *const rows[][2] = {
    { AXOLOTL "bf16: auto\nflash_attention: true\n",
      "dtype=bf16; master=none; software=hf-trainer-2026; ~axolotl asks for transformers 5.14; "
      "~torch_dtype bfloat16: axolotl loads weights so" },
    { AXOLOTL "bf16: true\n",
      "master=none; grouped_gemm; ?embeddings are made fp32 without flash attention" },
    { AXOLOTL "bf16: full\n", "dtype=bf16; master=none" },
    { AXOLOTL "bfloat16: true\n", "dtype=bf16; master=none" },
    { AXOLOTL "float16: true\nbf16: false\n", "dtype=fp16; master=none" },
    { AXOLOTL "fp16: true\nbf16: false\nadapter: lora\n", "dtype=fp16; master=weights; lora_rank=8" },
    { AXOLOTL "bf16: false\nfp16: false\n", "dtype=fp32; master" },
    { AXOLOTL FSDP "bf16: true\n", "dtype=bf16; dp_kind=fsdp2; narrow_shards; master; ~shards fp32" },
    { AXOLOTL FSDP "bf16: full\n", "dtype=bf16; dp_kind=fsdp2; narrow_shards=true" },
    { "base_model: Qwen/Qwen3-30B-A3B\nmicro_batch_size: 1\nsequence_len: 512\n", "grouped_gemm=false" },
    { "base_model: Qwen/Qwen3-30B-A3B\nmicro_batch_size: 1\nsequence_len: 512\n"
      "experts_implementation: grouped_mm\n",
      "grouped_gemm" },
    { "base_model: Qwen/Qwen3-30B-A3B\nmicro_batch_size: 1\nsequence_len: 512\n"
      "experts_implementation: scattermoe\n",
      "grouped_gemm=false; ?experts_implementation scattermoe" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    check_read ("axolotl", rows[i][0], rows[i][1]);
#undef AXOLOTL
#undef FSDP
}

/* Adapters that are not on all layers, or not of one rank, are told. */
static void
axolotl_has_uneven_adapters (void)
{
#define ADAPTERS                                                                                             \
  "base_model: Qwen/Qwen2.5-1.5B\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nsequence_len: 512\n"  \
  "adapter: lora\n"
  check_read ("axolotl", ADAPTERS "lora_layers_to_transform: [1, 2]\nlora_rank_pattern: {q_proj: 4}\n",
              "?lora_layers_to_transform: adapters are taken to be on all; ?lora_rank_pattern: all adapters");
  check_read ("axolotl", ADAPTERS "peft_layers_to_transform: [1, 2]\npeft_layer_replication: [[0, 4]]\n",
              "?peft_layers_to_transform: adapters are taken to be on all; ?peft_layer_replication: layers");
#undef ADAPTERS
}

/* torchao converts linear layers; experts are none. */
static void
experts_of_torchtitan_have_a_converter (void)
{
#define QWEN                                                                                                 \
  "name = 'qwen3'\nflavor = '30B-A3B'\n[training]\nlocal_batch_size = 4\n[parallelism]\n"                    \
  "data_parallel_shard_degree = 8\n"
#define LINEAR  "[model]\nconverters = ['quantize.linear.float8']\n"
#define EXPERTS "[model]\nconverters = ['quantize.linear.float8', 'quantize.grouped_mm.float8']\n"
  static const char *const rows[][2] = {
    { LINEAR QWEN, "dtype=fp8; bf16_experts=true; fp8_params" },
    { EXPERTS QWEN, "dtype=fp8; bf16_experts; fp8_params" },
    { LINEAR QWEN "[float8]\nmoe_fqns_prototype = ['experts']\n", "bf16_experts" },
    { LINEAR QWEN "[quantize.linear.float8]\nenable_fsdp_float8_all_gather = true\n",
      "bf16_experts=true; fp8_params; ?enable_fsdp_float8_all_gather with experts in bf16" },
    { EXPERTS QWEN "[quantize.linear.float8]\nfilter_fqns = ['output', 'router.gate', 'wk']\n",
      "dtype=fp8; ?filter_fqns wk: taken to be converted" },
    { "[model]\nconverters = ['quantize.linear.mx']\n" QWEN, "fp8_recipe=mxfp8; bf16_experts=true" },
    { "[model]\n" QWEN, "dtype=bf16; bf16_experts" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
}

#define AXOLOTL                                                                                              \
  "base_model: Qwen/Qwen3-8B\nsequence_len: 8192\nsample_packing: true\nmicro_batch_size: 2\n"               \
  "datasets:\n  - path: x\n"

/* Beside adapters what is offloaded is not recomputed, but for the inputs of layers. */
static void
axolotl_offloads_activations (void)
{
  check_read ("axolotl", AXOLOTL "gradient_checkpointing: true\nactivation_offloading: true\n",
              "recompute=full; offload_activations=true");
  check_read ("axolotl",
              AXOLOTL "adapter: qlora\ngradient_checkpointing: true\nactivation_offloading: true\n",
              "recompute=none; offload_activations=true; lora_rank=8");
  check_read ("axolotl",
              AXOLOTL "adapter: lora\ngradient_checkpointing: true\nactivation_offloading: hidden_states\n",
              "recompute=full; offload_activations=true");
  check_read ("axolotl", AXOLOTL "adapter: lora\ngradient_checkpointing: offload\n",
              "recompute=full; offload_activations=true");
  check_read ("axolotl", AXOLOTL "gradient_checkpointing: true\nactivation_offloading: legacy\n",
              "offload_activations=true; ?activation_offloading legacy");
  check_read ("axolotl", AXOLOTL "gradient_checkpointing: true\nactivation_offloading: disk\n",
              "offload_activations; ?stay on the GPU");
  check_read ("axolotl", AXOLOTL "gradient_checkpointing: true\nactivation_offloading: false\n",
              "recompute=full; offload_activations");
  check_read ("axolotl", AXOLOTL "activation_offloading: true\n", "!without gradient_checkpointing");
}

/* Until April 2026 torchtitan mixes formats by FSDP, or by autocast where nothing is cut: a pipeline or tensor
 * parallelism without FSDP and context parallelism trains in fp32, in older releases DDP and one GPU too. */
static void
torchtitan_without_fsdp_is_in_fp32 (void)
{
#define ALONE                                                                                                \
  "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 8\nseq_len = 512\n"               \
  "[parallelism]\ndata_parallel_shard_degree = 1\n"
#define SAID "~\"Mixed precision training is disabled\""
  static const char *const rows[][2] = {
    { ALONE "pipeline_parallel_degree = 2\n", "dtype=fp32; dp_kind=none; " SAID },
    { ALONE "tensor_parallel_degree = 2\n", "dtype=fp32; " SAID },
    { ALONE "tensor_parallel_degree = 2\ndata_parallel_replicate_degree = 2\n",
      "dtype=fp32; dp_kind=ddp; " SAID },
    { ALONE "pipeline_parallel_degree = 2\ncontext_parallel_degree = 2\n", "dtype=bf16; dp_kind=fsdp2" },
    { ALONE "data_parallel_replicate_degree = 2\n", "dtype=bf16; dp_kind=ddp" },
    { ALONE "data_parallel_replicate_degree = 2\n[metrics]\nenable_color_printing = true\n",
      "software=torchtitan-2024-12; dtype=fp32; " SAID },
    { "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 8\n[parallelism]\n"
      "pipeline_parallel_degree = 2\ndata_parallel_shard_degree = 2\n",
      "dtype=bf16; dp_kind=fsdp2" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
}

/* A Trainer's AdamW is torch's where DeepSpeed's configuration names no optimizer; fused with Transformers 5. */
static void
an_optimizer_that_deepspeed_lacks_is_torchs (void)
{
#define STAGE_2                                                                                              \
  "cat > ds.json <<'END'\n{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}, "           \
  "\"train_micro_batch_size_per_gpu\": 1 %s}\nEND\n"
  static const struct {
    const char *more, *script, *options, *expected;
  } rows[] = {
    { "", "train.py", "", "kernels=hf-transformers-4.49+deepspeed-torch-adamw; ~AdamW is torch's" },
    { "", "src/train_bash.py", "", "kernels=hf-transformers-4.49+deepspeed-torch-adamw-2023" },
    { "", "train.py", "--optim adamw_torch_fused", "kernels" },
    { "", "train.py", "--dtype bfloat16", "kernels" },
    { ", \"optimizer\": {\"type\": \"AdamW\"}", "train.py", "", "kernels" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (GString) text = g_string_new (STAGE_2);
    g_string_replace (text, "%s", rows[i].more, 1);
    g_string_append_printf (
        text,
        "deepspeed --num_gpus 8 %s --model_name_or_path meta-llama/Llama-2-7b-hf "
        "--output_dir out --per_device_train_batch_size 1 --bf16 --deepspeed ds.json %s\n",
        rows[i].script, rows[i].options);
    check (text->str, rows[i].expected);
  }
}

LS_TEST_SUITE (LS_TEST (torchtitan_without_fsdp_is_in_fp32),
               LS_TEST (an_optimizer_that_deepspeed_lacks_is_torchs), LS_TEST (axolotl_offloads_activations),
               LS_TEST (experts_of_torchtitan_have_a_converter), LS_TEST (axolotl_has_uneven_adapters),
               LS_TEST (weights_are_kept_as_they_are_loaded), LS_TEST (shards_have_formats_of_their_own),
               LS_TEST (adapters_are_fp32), LS_TEST (options_tell_the_release_of_a_trainer),
               LS_TEST (programs_load_in_formats_of_their_own),
               LS_TEST (axolotl_trains_in_the_format_of_its_weights))
