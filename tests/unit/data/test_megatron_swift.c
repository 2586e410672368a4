/* Pins what scripts of Megatron-SWIFT mean: members of Megatron-LM's namespace on a model of a hub, with
 * defaults of their own. */
#include "ls_test.h"

#include "import_check.h"

#define PROGRAM "Megatron-SWIFT"
#define SFT     "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --dataset a b "

static void
defaults_are_its_own (void)
{
  check_read (
      PROGRAM, SFT "--max_length 4096",
      "layers=36; seq=4096; gpus=8; tp=1; sp=false; zero=1; micro_batch=1; global_batch=16; "
      "recompute=selective; dtype=bf16; grad_dtype=fp32; attention=flash; vocab_multiple=1; lora_rank; "
      "dp_overlap=false; ~--no-rope-fusion; ~config.json is taken to say bfloat16; "
      "?without packing most are shorter; -dataset");
  check_read (PROGRAM, SFT "--max_length 4096 --torch_dtype float32", "dtype=fp16; grad_dtype=fp16");
  check_read (PROGRAM, SFT "--recompute_granularity none", "recompute=none; seq");
  check_read (PROGRAM, "megatron pt --model Qwen/Qwen3-8B --max_length 64", "gpus; ?how many GPUs");
}

static void
options_are_members (void)
{
  check_read (PROGRAM,
              SFT "--max_length 8192 --packing true --tensor_model_parallel_size 4 --sequence_parallel true "
                  "--recompute_granularity full --recompute_method uniform --recompute_num_layers 1 "
                  "--optimizer dist_muon --overlap_grad_reduce true --apply_rope_fusion true "
                  "--never_heard_of 3 --save_safetensors true",
              "tp=4; sp=true; recompute=full; recompute_layers=1; optimizer=muon; dp_overlap=true; "
              "?--packing: attention is inside documents; ?--never_heard_of 3; -save_safetensors");
  check_read (PROGRAM, SFT "--packing true --packing_length 16384 --max_length 4096", "seq=16384");
  check_read (PROGRAM,
              "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B --max_length 64 "
              "--tensor_model_parallel_size 4 --expert_model_parallel_size 8",
              "tp=4; ep=8; etp=1");
  check_read (PROGRAM, SFT "--max_length 64 --sequence_parallel true", "tp=1; sp=false");
  check_read (PROGRAM,
              SFT "--max_length 64 --pipeline_model_parallel_size 2 --virtual_pipeline_model_parallel_size 3 "
                  "--overlap_p2p_comm false",
              "pp=2; vpp=3; schedule=interleaved-1f1b; p2p=batched");
  check_read (PROGRAM,
              SFT "--max_length 64 --fp8_format hybrid --fp8_recipe blockwise --fp8_param_gather true",
              "dtype=fp8; fp8_recipe=blockwise; fp8_params=true");
}

static void
adapters_are_read (void)
{
  check_read (PROGRAM, SFT "--max_length 64 --tuner_type lora", "lora_rank=8; lora_modules; ~lora_rank 8");
  check_read (PROGRAM,
              SFT "--max_length 64 --train_type lora --lora_rank 32 --target_modules linear_qkv linear_proj",
              "lora_rank=32; lora_modules=q,k,v,o");
}

/* Arguments of a file stand before those of the command; its ENV is what processes see. */
static void
files_are_read (void)
{
  check_read (PROGRAM,
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
}

static void
others_are_refused (void)
{
  check_read (NULL, "megatron rlhf --rlhf_type dpo --model a", "megatron rlhf: another task");
  check_read (NULL, "megatron export --model a --to_hf true", "megatron export: another task");
  check_read (NULL, SFT "--task_type seq_cls", "--task_type seq_cls: another task");
  check_read (PROGRAM, "megatron sft --load Qwen3-8B-mcore --max_length 64",
              "layers; ?the checkpoint Qwen3-8B-mcore names none");
}

LS_TEST_SUITE (LS_TEST (defaults_are_its_own), LS_TEST (options_are_members), LS_TEST (adapters_are_read),
               LS_TEST (files_are_read), LS_TEST (a_trainer_is_another_program), LS_TEST (others_are_refused))
