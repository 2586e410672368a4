/* Pins what is known of DeepSpeed where no file configures it: DeepSpeed-Chat's options, and what a program in
 * Python leaves open. */
#include "ls_test.h"

#include "import_check.h"

#define CHAT                                                                                                 \
  "deepspeed --num_gpus 4 main.py --data_split 2,4,4 --model_name_or_path meta-llama/Llama-2-7b-hf --deepspeed "

/* Whether the same command says something of a kind twice. */
static guint
count_lines (const GPtrArray *list, const char *part)
{
  guint n = 0;
  for (guint i = 0; i < list->len; i++)
    n += strstr (list->pdata[i], part) != NULL;
  return n;
}

static void
deepspeed_chat_has_its_own_options (void)
{
  check_read (
      "DeepSpeed-Chat", CHAT "--per_device_train_batch_size 2 --gradient_accumulation_steps 3",
      "gpus=4; global_batch=24; dtype=fp16; ~fp16 True; grad_norm=true; zero=0; ~zero_stage 0; seq=512; "
      "recompute=none; dp_overlap=true; offload; lora_rank; software=deepspeed");
  check_read ("DeepSpeed-Chat", CHAT "--dtype bf16 --zero_stage 3 --offload --gradient_checkpointing",
              "dtype=bf16; zero=3; offload=parameters; offload_to=cpu; recompute=full; micro_batch=16; "
              "global_batch=64; prefetch_bucket=30000000; persistence_threshold=10000; "
              "max_live_params=30000000");
  check_read ("DeepSpeed-Chat", CHAT "--zero_stage 2 --offload",
              "zero=2; offload=optimizer; prefetch_bucket");
  check_read ("DeepSpeed-Chat",
              "deepspeed main.py --model_name_or_path gpt2 --data_split 1,0,0 --max_seq_len 512",
              "dp_kind=deepspeed; ~deepspeed get_train_ds_config; dtype=fp16; gpus; ?how many GPUs");
}

/* Their weights are frozen, but what is no linear layer of the name learns unless it is told not to. */
static void
deepspeed_chat_has_adapters (void)
{
  check_read ("DeepSpeed-Chat", CHAT "--lora_dim 128 --lora_module_name layers. --only_optimize_lora",
              "lora_rank=128; lora_modules");
  check_read ("DeepSpeed-Chat", CHAT "--lora_dim 8", "lora_rank=8; ?without only_optimize_lora all but");
  check_read ("DeepSpeed-Chat", CHAT "--lora_dim 8 --lora_module_name h.", "?lora_module_name h.");
  check_read ("DeepSpeed-Chat", CHAT "--lora_dim 0", "lora_rank");
}

static void
deepspeed_chat_learns_more_than_tokens (void)
{
  check_read (NULL, CHAT "--num_padding_at_beginning 0", "--num_padding_at_beginning: another task");
  check_read (NULL, CHAT "--offload_reference_model", "--offload_reference_model: another task");
}

/* A plugin of accelerate clips as the Trainer does. */
static void
a_plugin_clips_as_its_trainer (void)
{
#define PLUGIN                                                                                               \
  "accelerate launch --use_deepspeed --num_processes 8 --zero_stage 3 train.py --output_dir out --bf16 "     \
  "--per_device_train_batch_size 2 "
  check (PLUGIN, "zero=3; grad_norm=true");
  check (PLUGIN "--max_grad_norm 0.2", "grad_norm=true");
  check (PLUGIN "--max_grad_norm 0", "grad_norm=false");
#undef PLUGIN
}

/* Of another program neither the defaults of a Trainer hold nor those of DeepSpeed. */
static void
what_python_configures_is_open (void)
{
#define OTHER                                                                                                \
  "deepspeed --num_gpus 4 train.py --model_name_or_path gpt2 --max_seq_len 512 --output_dir o --deepspeed "
  check (OTHER "--per_device_train_batch_size 8 --zero_stage 3",
         "gpus=4; zero=3; micro_batch=8; dtype; ?the number format: the script of Python says it; grad_norm; "
         "?gradient_clipping: its value; ~dp_overlap true; recompute");
  check (OTHER "--bf16", "dtype=bf16; zero; ?zero_optimization.stage: its value; micro_batch");
  check (OTHER "--deepspeed_config ds.json", "?they stand in ds.json, which is not here");
  check ("deepspeed --num_gpus 4 train.py --model_name_or_path gpt2 --output_dir o --deepspeed ds.json",
         "dtype=fp32; recompute=none; micro_batch=8");
}

static void
the_same_is_told_once (void)
{
  LsImport import;
  if (!read_text ("deepspeed train.py --deepspeed --zero_stage 3 --model_name_or_path gpt2 "
                  "--per_device_train_batch_size 8",
                  &import))
    return;
  LS_CHECK_INT (count_lines (import.unknown, "how many GPUs: nothing"), ==, 1);
  ls_import_clear (&import);
}

/* A program that nobody knows is told a configuration that its script writes, by which it runs. */
static void
configurations_in_a_script_are_read (void)
{
#define WRITES                                                                                               \
  "#!/bin/bash\nCFG=/tmp/ds.json\ncat > $CFG <<END\n{\"train_micro_batch_size_per_gpu\": 2,\n"               \
  "\"gradient_accumulation_steps\": 4, \"bf16\": {\"enabled\": true},\n\"zero_optimization\": "              \
  "{\"stage\": 3}}\nEND\n"
  check_read ("DeepSpeed", WRITES "deepspeed --num_gpus 8 train.py --deepspeed $CFG\n",
              "gpus=8; dp_kind=deepspeed; zero=3; micro_batch=2; global_batch=64; dtype=bf16; ?the model");
  check_read ("DeepSpeed", WRITES "deepspeed --num_gpus 8 train.py --deepspeed_config=ds.json --data x\n",
              "gpus=8; dp_kind=deepspeed; zero=3; global_batch=64; dtype=bf16; ?--data x");
  check_read ("DeepSpeed", "#!/bin/bash\ntorchrun --nproc_per_node 8 train.py --deepspeed other.json\n",
              "gpus=8; dp_kind=deepspeed; zero; dtype; ?they stand in other.json, which is not here");
  check_read ("Hugging Face Trainer",
              WRITES "deepspeed --num_gpus 8 train.py --deepspeed ds.json --model_name_or_path "
                     "meta-llama/Llama-2-7b-hf\n",
              "layers=32; dtype=bf16; zero=3");
#undef WRITES
}

/* Megatron-DeepSpeed: the engine shards, offloads, reduces and clips by the file; the batch and the number format
 * are those of the options. */
static void
megatron_deepspeed_reads_its_file (void)
{
#define MEGATRON(file, ...)                                                                                  \
  "#!/bin/bash\ncat <<END > ds.json\n" file "\nEND\ndeepspeed --num_gpus 8 pretrain_gpt.py "                 \
  "--num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --micro-batch-size 4 "        \
  "--global-batch-size 64 --deepspeed --deepspeed_config ds.json " __VA_ARGS__ "\n"
  check (MEGATRON ("{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}, "
                   "\"offload_param\": {\"device\": \"cpu\"}, \"reduce_bucket_size\": 7e7, "
                   "\"stage3_prefetch_bucket_size\": 3e7}, \"fp16\": {\"enabled\": true}}",
                   "--fp16 --zero-stage 3 --cpu-optimizer"),
         "zero=3; offload=parameters; offload_to=cpu; reduce_bucket=70000000; prefetch_bucket=30000000; "
         "dp_overlap=true; ~dp_overlap true; grad_norm=false; micro_batch=4; global_batch=64; dtype=fp16");
  check (
      MEGATRON (
          "{\"train_micro_batch_size_per_gpu\": 2, \"train_batch_size\": 64, \"gradient_clipping\": 1.0, "
          "\"zero_optimization\": {\"stage\": 2}}",
          "--bf16 --zero-stage 1"),
      "zero=2; ?--zero-stage 1: the file; ?train_micro_batch_size_per_gpu 2; micro_batch=4; grad_norm=true; "
      "grad_dtype=bf16");
  check (
      MEGATRON ("{\"zero_optimization\": {\"stage\": 1}, \"data_types\": {\"grad_accum_dtype\": \"fp32\"}}",
                "--bf16"),
      "zero=1; grad_dtype=fp32");
  check (MEGATRON ("{\"zero_optimization\": {\"stage\": $Z}}", "--bf16 --zero-stage 1"), "zero=1");
#undef MEGATRON
}

/* Its pipeline has an optimizer of its own for bf16, which no stage turns off. */
/* Of every two layers the last has experts by default. */
static void
megatron_deepspeed_has_experts_in_between (void)
{
#define MOE                                                                                                  \
  "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 "        \
  "--seq-length 1024 --micro-batch-size 4 --fp16 --num-experts 16 "
  check (MOE "--deepspeed --zero-stage 1", "experts=16; moe_every=2; top_k=1; ~moe_every 2: the default");
  check (MOE "--deepspeed --zero-stage 1 --expert-interval 1", "experts=16; moe_every=1");
  check (MOE "--deepspeed --zero-stage 1 --expert-interval 4", "experts=16; moe_every=4");
  check (MOE, "experts=16; moe_every");
#undef MOE
}

/* Its flash attention has several options. */
static void
megatron_deepspeed_has_flash_attention (void)
{
#define PLAIN                                                                                                \
  "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 "        \
  "--seq-length 1024 --micro-batch-size 4 --deepspeed --zero-stage 1 --fp16 "
  check (PLAIN, "attention=unfused");
  check (PLAIN "--use-flash-attn-v1", "attention=flash");
  check (PLAIN "--use-flash-attn-v2", "attention=flash");
  check (PLAIN "--use-flash-attn-triton", "attention=flash");
  check (PLAIN "--use-flash-attn-builder", "attention=flash");
#undef PLAIN
}

static void
megatron_deepspeed_shards_bf16 (void)
{
#define MEGATRON                                                                                             \
  "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 "        \
  "--seq-length 1024 --micro-batch-size 4 --deepspeed "
  check (MEGATRON "--zero-stage 0 --bf16", "zero=1; grad_dtype=fp32; ~bf16_optimizer.py");
  check (MEGATRON "--zero-stage 0 --bf16 --no-pipeline-parallel", "zero=0; grad_dtype=bf16");
  check (MEGATRON "--zero-stage 0 --fp16", "zero=0; grad_dtype=fp16");
  check (MEGATRON "--zero-stage 0 $DTYPE", "zero=0; dtype; ?the number format");
  check (MEGATRON "--zero-stage 1 --fp16 --deepspeed_config=other.json --cpu-optimizer",
         "zero=1; ?what other.json says: it is not here; ?--cpu-optimizer: no file");
  check (MEGATRON
         "--zero-stage 1 --fp16 --checkpoint-activations --partition-activations --checkpoint-in-cpu "
         "--tensor-model-parallel-size 2",
         "recompute=full; partition_activations=true; offload_activations=true");
  check (MEGATRON "--zero-stage 0 --fp16 --pipeline-model-parallel-size 2 --pp-partition-method "
                  "'type:transformer|embedding'",
         "layers_per_chunk=4x2");
  check (MEGATRON "--zero-stage 0 --fp16 --pipeline-model-parallel-size 5 --pp-partition-method "
                  "'type:transformer|embedding'",
         "layers_per_chunk=1,2x3,1");
  check (MEGATRON "--zero-stage 0 --fp16 --pipeline-model-parallel-size 2 --pp-partition-method parameters",
         "layers_per_chunk; ?--pp-partition-method parameters: layers");
  check (MEGATRON "--zero-stage 1 --fp16 --position-embedding-type rotary", "position=rope");
  check (MEGATRON "--zero-stage 1 --fp16 --checkpoint-activations --partition-activations",
         "partition_activations; ---partition-activations: no rank");
#undef MEGATRON
  check ("{num_layers: 8, hidden_size: 1024, num_attention_heads: 8, seq_length: 64, pipe_parallel_size: 1, "
         "train_micro_batch_size_per_gpu: 2, precision: bfloat16, zero_optimization: {stage: 0}}",
         "zero=1; grad_dtype=fp32; ~bf16_optimizer.py");
}

/* Options of OpenRLHF before 2026 and since; its batch is that of all ranks. */
static void
openrlhf_is_read (void)
{
#define OPENRLHF "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft "
  check (
      OPENRLHF "--max_len 4096 --train_batch_size 256 --micro_train_batch_size 2 --pretrain "
               "meta-llama/Llama-2-7b-hf --zero_stage 3 --bf16 --flash_attn --gradient_checkpointing "
               "--packing_samples --adam_offload --ring_attn_size 2 --zpg 8 --l2 0 --max_norm 0.5",
      "layers=32; seq=4096; gpus=8; zero=3; cp=2; cp_kind=ring; micro_batch=2; global_batch=256; dtype=bf16; "
      "attention=flash; recompute=full; recompute_early_stop=true; offload=optimizer; grad_norm=true; ?packing_samples; ?zpg 8; -l2");
  check ("#!/bin/bash\nread -r -d '' ARGS <<END\nopenrlhf.cli.train_sft \\\n"
         " --train.batch_size 64 --model.model_name_or_path mistralai/Mixtral-8x7B-v0.1 \\\n"
         " --ds.lora.rank 64 --ds.overlap_comm --adam.lr 5e-6\nEND\ndeepspeed --module $ARGS\n",
         "experts=8; seq=2048; gpus; zero=2; micro_batch=8; global_batch=64; dtype=bf16; recompute=none; "
         "lora_rank=64; dp_overlap=true; ?how many GPUs; ~attn_implementation flash_attention_2; -adam.lr");
  check (OPENRLHF "--pretrain meta-llama/Llama-2-7b-hf --bf16",
         "attention=flash; ~attn_implementation flash_attention_2: the default since August 2025");
  check (OPENRLHF "--pretrain meta-llama/Llama-2-7b-hf --bf16 --packing_samples",
         "attention=flash; ~attn_implementation flash_attention_2: packing_samples turns it on");
  check (OPENRLHF "--pretrain meta-llama/Llama-2-7b-hf --bf16 --attn_implementation eager",
         "attention=unfused");
  check_read (NULL, "#!/bin/bash\ndeepspeed --module openrlhf.cli.train_dpo --pretrain a/b --zero_stage 3\n",
              "openrlhf.cli.train_dpo: another task");
#undef OPENRLHF
}

LS_TEST_SUITE (LS_TEST (megatron_deepspeed_reads_its_file), LS_TEST (megatron_deepspeed_shards_bf16),
               LS_TEST (megatron_deepspeed_has_experts_in_between),
               LS_TEST (megatron_deepspeed_has_flash_attention), LS_TEST (openrlhf_is_read),
               LS_TEST (a_plugin_clips_as_its_trainer), LS_TEST (configurations_in_a_script_are_read),
               LS_TEST (deepspeed_chat_has_its_own_options), LS_TEST (deepspeed_chat_has_adapters),
               LS_TEST (deepspeed_chat_learns_more_than_tokens), LS_TEST (what_python_configures_is_open),
               LS_TEST (the_same_is_told_once))
