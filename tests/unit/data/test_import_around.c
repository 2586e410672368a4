/* Pins what programs around Megatron-LM mean: configurations of Primus, overrides on top of its own files, of
 * the program that they name; scripts of Megatron-SWIFT, members of the same namespace on a model of a hub. */
#include "ls_test.h"

#include "import_check.h"

#define MEGATRON                                                                                             \
  "modules:\n  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n    model: "
#define OVER "\n    overrides:\n"

static void
megatron_is_overridden (void)
{
  check_read ("Primus",
              MEGATRON "${PRIMUS_MODEL:llama3.1_8B}.yaml" OVER
                       "      micro_batch_size: 4\n      global_batch_size: ${GBS:128}\n"
                       "      seq_length: 8192\n      tensor_model_parallel_size: 2\n"
                       "      overlap_grad_reduce: true\n      overlap_param_gather: true\n"
                       "      stderr_sink_level: DEBUG\n      odd_option: 3\n",
              "layers=32; vocab=128256; seq=8192; tp=2; sp=true; zero=1; micro_batch=4; global_batch=128; "
              "dtype=bf16; attention=flash; dp_overlap=true; tied_embeddings=false; ?how many GPUs; "
              "?odd_option 3; ~${GBS:128}: 128; -stderr_sink_level");
  check_read ("Primus", MEGATRON "llama2_7B.yaml" OVER "      fused_single_qkv_rope: true\n",
              "kernels=megatron-core-fused-rope");
  check_read ("Primus", MEGATRON "llama2_7B.yaml" OVER "      num_layers: 4\n",
              "layers=4; hidden=4096; seq=1024; micro_batch=2; global_batch=16");
  check_read ("Primus",
              MEGATRON "llama2_7B.yaml" OVER
                       "      use_torch_fsdp2: true\n      use_distributed_optimizer: false\n"
                       "      sequence_parallel: false\n      recompute_granularity: full\n"
                       "      recompute_method: block\n      recompute_num_layers: 8\n",
              "dp_kind=fsdp2; recompute=full; recompute_method=block; recompute_layers=8; sp=false");
}

/* A model's latents may be turned off: its heads are then as wide as kv_channels. */
static void
latents_are_turned_off (void)
{
  check_read ("Primus", MEGATRON "deepseek_v2_lite.yaml" OVER "      num_layers: 4\n",
              "layers=4; kv_lora=512; head_dim=192; rope_dim=64; v_dim=128");
  check_read (
      "Primus", MEGATRON "deepseek_v2_lite.yaml" OVER "      multi_latent_attention: false\n",
      "layers=27; kv_lora; head_dim=128; rope_dim; v_dim; kv_heads=16; ~multi_latent_attention is off");
}

/* What its own kernels and schedules change is told. */
static void
turbo_is_told (void)
{
  check_read ("Primus",
              MEGATRON "deepseek_v2_lite.yaml" OVER
                       "      expert_model_parallel_size: 8\n      use_turbo_deepep: true\n"
                       "      use_turbo_attention: true\n      patch_zero_bubble: true\n"
                       "      gradient_accumulation_fusion: false\n",
              "experts=64; ep=8; dispatcher=deepep; shared_overlap=true; ?use_turbo_attention: attention is; "
              "?patch_zero_bubble: the schedule; grad_apart=true");
  check_read ("Primus",
              MEGATRON "mixtral_8x7B_v0.1.yaml" OVER "      moe_router_force_load_balancing: true\n"
                       "      moe_router_force_load_balancing_type: uniform\n",
              "experts=8; shared_overlap; ?load_balancing_type uniform: tokens");
}

static void
torchtitan_is_overridden (void)
{
#define TITAN "modules:\n  pre_trainer:\n    framework: torchtitan\n    config: pre_trainer.yaml\n    model: "
  check_read ("Primus",
              TITAN "llama3.1_8B-fp8.yaml" OVER
                    "      stderr_sink_level: DEBUG\n      training:\n        local_batch_size: 5\n"
                    "        seq_len: 8192\n      activation_checkpoint:\n        mode: full\n"
                    "      primus_turbo:\n        enable_attention_float8: true\n",
              "layers=32; micro_batch=5; seq=8192; recompute=full; dtype=fp8; "
              "kernels=torchtitan-2025-03-compile; ?kernels of Primus-Turbo; ?attention_float8");
  check_read (NULL, "modules:\n  pre_trainer:\n    framework: maxtext\n    model: llama2_7B.yaml\n",
              "framework maxtext: of Primus's, megatron and torchtitan are read");
  check_read (NULL, MEGATRON "diffusion/flux_12b.yaml" OVER "      bf16: true\n",
              "diffusion/flux_12b: another task");
}

/* A log has the namespace of arguments, in which what an option turns off is False. */
static void
namespaces_are_read (void)
{
#define LOG                                                                                                  \
  "--- arguments ---\n num_layers .... 2\n hidden_size .... 64\n num_attention_heads .... 4\n"               \
  " seq_length .... 64\n padded_vocab_size .... 512\n bf16 .... True\n world_size .... 4\n"                  \
  " tensor_model_parallel_size .... 2\n micro_batch_size .... 1\n global_batch_size .... 2\n"                \
  " accumulate_allreduce_grads_in_fp32 .... False\n"
#define END "--- end of arguments ---\n"
  check (LOG " gradient_accumulation_fusion .... True\n" END, "tp=2; grad_fusion; tp_async");
  check (LOG " gradient_accumulation_fusion .... False\n"
             " async_tensor_model_parallel_allreduce .... False\n" END,
         "tp=2; tp_async=false; grad_apart=true");
  check (LOG " transformer_impl .... transformer_engine\n"
             " async_tensor_model_parallel_allreduce .... False\n" END,
         "tp=2; tp_async; ~Transformer Engine does not heed it");
}

/* --- Megatron-SWIFT -------------------------------------------------------------------------------- */

#define SWIFT "Megatron-SWIFT"
#define SFT   "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --dataset a b "

static void
defaults_are_its_own (void)
{
  check_read (
      SWIFT, SFT "--max_length 4096",
      "layers=36; seq=4096; gpus=8; tp=1; sp=false; zero=1; micro_batch=1; global_batch=16; "
      "recompute=selective; dtype=bf16; grad_dtype=fp32; attention=flash; vocab_multiple=1; lora_rank; "
      "dp_overlap=false; ~--no-rope-fusion; ~config.json is taken to say bfloat16; "
      "?without packing most are shorter; -dataset");
  check_read (SWIFT, SFT "--max_length 4096 --torch_dtype float32", "dtype=fp16; grad_dtype=fp16");
  check_read (SWIFT, SFT "--recompute_granularity none", "recompute=none; seq");
  check_read (SWIFT, "megatron pt --model Qwen/Qwen3-8B --max_length 64", "gpus; ?how many GPUs");
}

static void
options_are_members (void)
{
  check_read (SWIFT,
              SFT "--max_length 8192 --packing true --tensor_model_parallel_size 4 --sequence_parallel true "
                  "--recompute_granularity full --recompute_method uniform --recompute_num_layers 1 "
                  "--optimizer dist_muon --overlap_grad_reduce true --apply_rope_fusion true "
                  "--never_heard_of 3 --save_safetensors true",
              "tp=4; sp=true; recompute=full; recompute_layers=1; optimizer=muon; dp_overlap=true; "
              "?--packing: attention is inside documents; ?--never_heard_of 3; -save_safetensors");
  check_read (SWIFT, SFT "--packing true --packing_length 16384 --max_length 4096", "seq=16384");
  check_read (SWIFT,
              "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B --max_length 64 "
              "--tensor_model_parallel_size 4 --expert_model_parallel_size 8",
              "tp=4; ep=8; etp=1");
  check_read (SWIFT, SFT "--max_length 64 --sequence_parallel true", "tp=1; sp=false");
  check_read (SWIFT,
              SFT "--max_length 64 --pipeline_model_parallel_size 2 --virtual_pipeline_model_parallel_size 3 "
                  "--overlap_p2p_comm false",
              "pp=2; vpp=3; schedule=interleaved-1f1b; p2p=batched");
  check_read (SWIFT, SFT "--max_length 64 --fp8_format hybrid --fp8_recipe blockwise --fp8_param_gather true",
              "dtype=fp8; fp8_recipe=blockwise; fp8_params=true");
}

static void
adapters_are_read (void)
{
  check_read (SWIFT, SFT "--max_length 64 --tuner_type lora", "lora_rank=8; lora_modules; ~lora_rank 8");
  check_read (SWIFT,
              SFT "--max_length 64 --train_type lora --lora_rank 32 --target_modules linear_qkv linear_proj",
              "lora_rank=32; lora_modules=q,k,v,o");
}

/* Arguments of a file stand before those of the command; its ENV is what processes see. */
static void
files_are_read (void)
{
  check_read (SWIFT,
              "cat <<END > sft.yaml\nENV:\n  PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'\n"
              "model: Qwen/Qwen3-8B\nmax_length: 128\nmicro_batch_size: 2\ndataset: [a, b]\nEND\n"
              "NPROC_PER_NODE=4 megatron sft sft.yaml --micro_batch_size 4\n",
              "layers=36; seq=128; gpus=4; micro_batch=4; cuda_allocator=expandable");
  check_read (NULL, "megatron sft absent.yaml", "whose configuration absent.yaml is not here");
}

/* The rest of ms-swift is a Trainer, also by the path of its program. */
static void
a_trainer_is_another_program (void)
{
  check_read ("ms-swift",
              "deepspeed --num_gpus 2 swift/cli/sft.py --model Qwen/Qwen2.5-1.5B --tuner_type lora",
              "layers=28; lora_rank=8; gpus=2");
  check_read ("ms-swift", "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-1.5B --sequence_parallel_size 8",
              "cp=8; cp_kind=ring; ?Ulysses over 2 ranks, as 2 heads of keys allow");
  check_read ("ms-swift", "NPROC_PER_NODE=8 swift sft --model /data/mine --sequence_parallel_size 8",
              "cp=8; cp_kind=ulysses; ?taken for Ulysses");
}

static void
others_are_refused (void)
{
  check_read (NULL, "megatron rlhf --rlhf_type dpo --model a", "megatron rlhf: another task");
  check_read (NULL, "megatron export --model a --to_hf true", "megatron export: another task");
  check_read (NULL, SFT "--task_type seq_cls", "--task_type seq_cls: another task");
  check_read (SWIFT, "megatron sft --load Qwen3-8B-mcore --max_length 64",
              "layers; ?the checkpoint Qwen3-8B-mcore names none");
}

LS_TEST_SUITE (LS_TEST (megatron_is_overridden), LS_TEST (latents_are_turned_off), LS_TEST (turbo_is_told),
               LS_TEST (torchtitan_is_overridden), LS_TEST (namespaces_are_read),
               LS_TEST (defaults_are_its_own), LS_TEST (options_are_members), LS_TEST (adapters_are_read),
               LS_TEST (files_are_read), LS_TEST (a_trainer_is_another_program), LS_TEST (others_are_refused))
