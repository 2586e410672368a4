/* Pins what a configuration of LLaMA-Factory v1, its second trainer, means. */
#include "import_check.h"

#define NAME    "LLaMA-Factory v1"
#define BASE    "model: Qwen/Qwen3-0.6B\ntrain_dataset: data/mine.yaml\n"
#define FSDP    BASE "dist_config: {name: fsdp2}\n"
#define SEVERAL "dp_size: 8\n"
#define ONE     "dp_size: 1\n"
#define LORA    "peft_config: {name: lora}\n"

static void
check_all (const char *const (*rows)[2], gsize n)
{
  for (gsize i = 0; i < n; i++)
    check_read (NAME, rows[i][0], rows[i][1]);
}

static void
defaults_are_those_of_the_second_trainer (void)
{
  static const char *const rows[][2] = {
    { FSDP SEVERAL,
      "gpus=8; dp_kind=fsdp2; zero=3; reshard_after_forward=1; dtype=bf16; narrow_shards; micro_batch=1; "
      "global_batch=8; seq=2048; recompute=full; recompute_early_stop=true; lora_rank; "
      "software=llama-factory-v1-2026; grad_dtype; layers=28; ~torch_dtype float32: LLaMA-Factory v1 makes" },
    { FSDP "global_batch_size: 64\nmicro_batch_size: 4\ncutoff_len: 512\n" SEVERAL,
      "global_batch=64; micro_batch=4; seq=512" },
    { FSDP "enable_activation_checkpointing: false\n" SEVERAL, "recompute=none; recompute_early_stop" },
    { FSDP "max_grad_norm: 0\nlearning_rate: 1.0e-5\nsave_steps: 10\n",
      "grad_norm; gpus; global_batch; -max_grad_norm; -save_steps; ?how many GPUs" },
    { "model: Qwen/Qwen3-0.6B\ndist_config:\n  name: fsdp2\n  reshard_after_forward: false\n",
      "zero=2; reshard_after_forward=0" },
    { BASE "dist_config: {name: fsdp2, offload_params: true}\n", "?fsdp_offload_params: taken to be off" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
}

/* Only FSDP2 casts weights for products. */
static void
products_have_the_format_of_the_weights_without_fsdp (void)
{
  static const char *const rows[][2] = {
    { FSDP ONE, "gpus=1; dp_kind=none; dtype=fp32; ?on one GPU: taken to be started without torchrun" },
    { BASE "kernel_config: {name: auto}\nbf16: true\n" SEVERAL,
      "dp_kind=ddp; dtype=fp32; ~bf16 has no effect" },
    { FSDP "bf16: false\n" SEVERAL, "dp_kind=fsdp2; dtype=fp32" },
    { FSDP "bf16: false\nflash_attn: flash_attention_2\n" SEVERAL,
      "attention_kernel=fa2; ?with products in fp32" },
    { BASE LORA SEVERAL, "dp_kind=ddp; dtype=bf16; master=weights; lora_rank=8; ~weights bf16, frozen" },
    { FSDP LORA ONE, "dtype=bf16; dp_kind=none; lora_rank=8" },
    { FSDP LORA SEVERAL, "dtype=bf16; dp_kind=fsdp2; ?each matrix of an adapter is a unit of its own" },
    { FSDP LORA "bf16: false\n" SEVERAL, "dtype=fp32" },
    { BASE "dist_config: {name: fsdpturbo, ep_size: 4}\n" SEVERAL,
      "dp_kind=fsdp2; ep=4; dtype=bf16; narrow_shards=true; ?how FSDPTurbo exchanges tokens" },
    { BASE "dist_config: {name: fsdpturbo}\nbf16: false\n" SEVERAL,
      "dp_kind=fsdp2; dtype=fp32; narrow_shards" },
    { BASE "dist_config: {name: deepspeed, config_file: z.json}\nbf16: false\n" SEVERAL,
      "dp_kind=deepspeed; dtype=bf16; software=deepspeed; ?they stand in z.json" },
    { BASE "dist_config: {name: other}\n" SEVERAL, "dp_kind=ddp; ?dist_config.name other" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
}

static void
shards_and_sequences_are_cut_as_it_says (void)
{
#define ULYSSES FSDP "cp_size: 2\nflash_attn: flash_attention_2\n"
  static const char *const rows[][2] = {
    { ULYSSES "dp_size: 4\n", "gpus=8; cp=2; cp_kind=ulysses; zero=3; attention_kernel=fa2; global_batch=4" },
    { ULYSSES "dp_size: 4\nmp_replicate_size: 2\n", "gpus=8; zero=3@4" },
    { FSDP "mp_replicate_size: 2\n" SEVERAL, "zero=3@4" },
    { FSDP "mp_replicate_size: 4\nmp_shard_size: 2\n" SEVERAL, "zero=3@2" },
    { FSDP "mp_replicate_size: 4\n", "zero=3; ?mp_replicate_size: shards are taken to be over all GPUs" },
    { FSDP "cp_size: 2\n", "!cp_size without flash_attn flash_attention_2" },
    { BASE "dist_config: {name: deepspeed, config_file: z.json}\ncp_size: 2\n"
           "flash_attn: flash_attention_2\n",
      "!cp_size with dist_config.name deepspeed" },
    { ULYSSES "cp_mode: ring\n", "cp_kind=ulysses; ?cp_mode ring" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
#undef ULYSSES
}

static void
adapters_kernels_and_batches_are_read (void)
{
  static const char *const rows[][2] = {
    { FSDP "peft_config: {name: lora, r: 4, target_modules: [q_proj, v_proj], lora_alpha: 8}\n",
      "lora_rank=4; lora_modules=q,v; -peft_config.lora_alpha; ?lora_dropout 0.05" },
    { FSDP "peft_config: {name: lora, use_dora: true, lora_dropout: 0}\n", "?peft_config.use_dora" },
    { FSDP "peft_config: {name: freeze, freeze_trainable_layers: 2}\n",
      "lora_rank; ?freeze: all weights are taken to be trained" },
    { FSDP LORA "quant_config: {name: bnb, quantization_bit: 4}\n", "qlora=true" },
    { FSDP LORA "quant_config: {name: bnb}\n", "qlora=true" },
    { FSDP LORA "quant_config: {name: auto}\n", "lora_rank=8; qlora" },
    { FSDP LORA "quant_config: {name: bnb, quantization_bit: 8}\n", "qlora; ?quantization_bit 8" },
    { FSDP "kernel_config: {name: \"auto, liger_kernel\"}\n",
      "?kernel_config.name liger_kernel: taken to be off" },
    { FSDP "optim_config: {name: muon, wd: 0.1}\n" SEVERAL, "optimizer; ?optim muon; -optim_config.wd" },
    { BASE "optim_config: {name: muon}\n" SEVERAL, "optimizer=muon" },
    { FSDP "batching_strategy: padding_free\nflash_attn: flash_attention_2\n", "?padding_free: attention" },
    { FSDP "batching_strategy: dynamic_batching\n", "micro_batch=1; ?cutoff_len: sequences are taken" },
    { FSDP "batching_strategy: new\n", "?batching_strategy new" },
  };
  check_all (rows, G_N_ELEMENTS (rows));
}

static void
another_task_of_it_is_refused (void)
{
  check_read (NULL, "model: a\npeft_config: {name: lora, export_dir: out}\n",
              "peft_config.export_dir without train_dataset: another task");
  check_read (NULL, "model: a\ntrain_dataset: data/some_dpo_pairs.yaml\ndist_config: {name: fsdp2}\n",
              "train_dataset data/some_dpo_pairs.yaml: another task");
  check_read (NULL, FSDP "pref_beta: 0.1\n", "pref_beta: another task");
  check_read (NULL, FSDP "model_class: cls\n", "model_class=cls: another task");
  check_read (NAME, FSDP "model_class: llm\n", "dp_kind=fsdp2");
}

#define WRITTEN(command) "cat > mine.yaml <<END\n" FSDP "END\nNNODES=2 NPROC_PER_NODE=8 " command "\n"

/* Either trainer has the command `train`; a file of the second is of the second. */
static void
a_command_names_the_file (void)
{
  check_read (NAME, WRITTEN ("USE_V1=1 llamafactory-cli train mine.yaml"),
              "gpus=16; dp_kind=fsdp2; seq=2048");
  check_read (NAME, WRITTEN ("llamafactory-cli sft mine.yaml micro_batch_size=4 cutoff_len=64"),
              "gpus=16; micro_batch=4; seq=64; global_batch=64");
  check_read (NULL, WRITTEN ("llamafactory-cli dpo mine.yaml"), "llamafactory-cli dpo: another task");
  check_read (NULL, WRITTEN ("llamafactory-cli rm mine.yaml"), "llamafactory-cli rm: another task");
  check_read ("LLaMA-Factory",
              "llamafactory-cli train --model_name_or_path Qwen/Qwen3-0.6B --finetuning_type lora "
              "--output_dir o --per_device_train_batch_size 1",
              "lora_rank=8");
}

LS_TEST_SUITE (LS_TEST (defaults_are_those_of_the_second_trainer),
               LS_TEST (products_have_the_format_of_the_weights_without_fsdp),
               LS_TEST (shards_and_sequences_are_cut_as_it_says),
               LS_TEST (adapters_kernels_and_batches_are_read), LS_TEST (another_task_of_it_is_refused),
               LS_TEST (a_command_names_the_file))
