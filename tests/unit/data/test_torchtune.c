/* Pins what configurations of torchtune's recipes mean. */
#include "ls_test.h"

#include "import_check.h"

#define MODEL(function) "model:\n  _component_: torchtune.models." function "\n"
#define REST                                                                                                 \
  "tokenizer:\n  _component_: torchtune.models.llama3.llama3_tokenizer\n  path: /tmp/tokenizer.model\n"      \
  "  max_seq_len: 4096\ndataset:\n  _component_: torchtune.datasets.alpaca_cleaned_dataset\n"                \
  "  packed: True\nbatch_size: 2\ndevice: cuda\n"                                                            \
  "loss:\n  _component_: torchtune.modules.loss.LinearCrossEntropyLoss\n"
#define ADAMW "optimizer:\n  _component_: torch.optim.AdamW\n  fused: True\n  lr: 2e-5\n"

/* A model is made in the format that it computes in; each micro-batch reduces, and no norm is computed. */
static void
full_recipes_are_read (void)
{
  check_read (
      "torchtune",
      MODEL ("llama3.llama3_8b") REST ADAMW
      "dtype: bf16\ngradient_accumulation_steps: 8\nclip_grad_norm: null\ncompile: False\n"
      "data_parallel_shard_dim: 8\nenable_activation_checkpointing: True\n",
      "layers=32; vocab=128256; seq=4096; gpus=8; dp_kind=fsdp2; zero=3; reshard_after_forward=1; "
      "micro_batch=2; global_batch=128; recompute=full; dtype=bf16; grad_dtype=bf16; narrow_shards=true; "
      "grad_sync=each; grad_norm=false; optimizer=adam; software=torchtune-2025; "
      "?lengths; -optimizer.lr");
  check_read (
      "torchtune",
      MODEL ("llama3_3.llama3_3_70b") REST ADAMW
      "dtype: bf16\ngradient_accumulation_steps: 1\nclip_grad_norm: 1.0\n"
      "compile:\n  model: True\n  loss: False\ntensor_parallel_dim: 8\n"
      "tensor_parallel_plan:\n  _component_: torchtune.models.llama3.base_llama_tp_plan\n"
      "data_parallel_shard_dim: 2\ndata_parallel_replicate_dim: 2\ncustom_sharded_layers: ['output']\n"
      "fsdp_reshard_after_forward: False\nenable_activation_checkpointing: True\n"
      "enable_activation_offloading: True\n",
      "layers=80; tp=8; sp=true; gpus=32; zero=2@2; reshard_after_forward=0; global_batch=8; "
      "grad_norm=true; offload_activations=true; software=torchtune-2025-compile; "
      "?custom_sharded_layers");
  check_read (
      "torchtune",
      MODEL ("qwen2_5.qwen2_5_7b_instruct") REST ADAMW
      "dtype: fp32\nac_mode: selective\nac_option: 2\nenable_activation_checkpointing: False\n",
      "layers=28; gpus; global_batch; dtype=fp32; grad_dtype=fp32; narrow_shards=false; recompute=full; "
      "recompute_method=block; recompute_layers=14; ?how many GPUs; ?the global batch");
  check_read ("torchtune",
              MODEL ("llama3_1.llama3_1_8b") REST ADAMW
              "dtype: bf16\nenable_fp8_training: True\ndata_parallel_shard_dim: 8\n",
              "dtype=fp8; fp8_params=true; grad_dtype=bf16");
  check_read ("torchtune",
              MODEL ("llama3_1.llama3_1_8b") REST ADAMW
              "dtype: bf16\ncompile:\n  model: True\n  loss: False\n",
              "software=torchtune-2025-compile; ?compile.loss");
}

/* A function that is given its dimensions; that of Llama 2 has a width of its own for the MLP. */
static void
dimensions_are_read (void)
{
  check_read ("torchtune",
              MODEL ("llama2.llama2") "  vocab_size: 32000\n  num_layers: 22\n  num_heads: 32\n"
                                      "  num_kv_heads: 4\n  embed_dim: 2048\n" REST ADAMW "dtype: bf16\n",
              "layers=22; hidden=2048; heads=32; kv_heads=4; ffn=5632; vocab=32000; mlp=swiglu; ~ffn: 8/3");
}

/* Alone a GPU has the weights whole, and steps on them as they are. */
static void
single_devices_are_read (void)
{
  check_read ("torchtune",
              MODEL ("llama3_1.llama3_1_8b") REST
              "optimizer:\n  _component_: bitsandbytes.optim.PagedAdamW8bit\n  lr: 2e-5\ndtype: bf16\n"
              "optimizer_in_bwd: True\ngradient_accumulation_steps: 1\nclip_grad_norm: null\n"
              "data_parallel_shard_dim: 1\n",
              "gpus=1; dp_kind=none; narrow_shards; master=none; optimizer=adamw-8bit; "
              "?optimizer_in_bwd; ~its pages stay");
}

/* Files of recipes for one GPU say so by their names alone. */
static void
a_single_device_is_told_by_a_name (void)
{
  static const char text[] = MODEL ("llama3_1.llama3_1_8b") REST ADAMW "dtype: bf16\n";
  static const char *const rows[][2]
      = { { "8B_full_single_device.yaml", "gpus=1" }, { "8B_full.yaml", "gpus" } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsImport import;
    if (!LS_CHECK (ls_import_read (text, strlen (text), rows[i][0], &import, diags)))
      continue;
    check_one (&import, rows[i][1], rows[i][0]);
    ls_import_clear (&import);
  }
}

static void
adapters_are_read (void)
{
  check_read ("torchtune",
              MODEL ("llama3_1.lora_llama3_1_8b") "  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']\n"
                                                  "  apply_lora_to_mlp: True\n  apply_lora_to_output: False\n"
                                                  "  lora_rank: 64\n" REST ADAMW "dtype: bf16\n",
              "layers=32; lora_rank=64; lora_modules=q,v,o,gate,up,down; qlora; narrow_shards=true");
  check_read ("torchtune",
              MODEL ("llama3.qlora_llama3_8b") "  lora_attn_modules: ['q_proj', 'v_proj']\n"
                                               "  apply_lora_to_mlp: False\n  apply_lora_to_output: True\n"
                                               "  lora_rank: 8\n  use_dora: True\n" REST ADAMW
                                               "dtype: bf16\n",
              "lora_rank=8; lora_modules=q,v; qlora=true; ?apply_lora_to_output; ?use_dora");
}

/* What torchtune itself refuses, and what is not told in silence. */
static void
contradictions_are_told (void)
{
  check_read (
      "torchtune",
      MODEL ("llama3.llama3_8b") "  encoder_trainable: frozen\n" REST ADAMW
                                 "dtype: bf16\ndata_parallel_shard_dim: 1\ndata_parallel_replicate_dim: 2\n",
      "gpus=2; dp_kind=ddp; master=none; ?reduces no gradients; ?what sees is left out");
  check_read ("torchtune", MODEL ("llama3.llama3_8b") REST ADAMW "dtype: bf16\ntensor_parallel_dim: 2\n",
              "!without a tensor_parallel_plan");
  check_read ("torchtune",
              MODEL ("llama3.llama3_8b") REST ADAMW "dtype: bf16\nenable_activation_offloading: True\n",
              "!without enable_activation_checkpointing");
  check_read ("torchtune",
              MODEL ("llama3.llama3_8b") REST ADAMW
              "dtype: bf16\noptimizer_in_bwd: True\ngradient_accumulation_steps: 2\n",
              "!optimizer_in_bwd with");
  check_read ("torchtune",
              MODEL ("llama3.llama3_8b") REST
              "optimizer:\n  _component_: torch.optim.AdamW\ndtype: bf16\nfsdp_cpu_offload: True\n"
              "quantizer:\n  _component_: torchtune.training.quantization.Int8DynActInt4WeightQATQuantizer\n"
              "  groupsize: 256\nsome_new_key: 3\n",
              "?optimizer.fused; ?fsdp_cpu_offload; ?quantizer._component_; ?some_new_key");
}

static void
other_tasks_are_refused (void)
{
  check_read (NULL, MODEL ("llama3.llama3_8b") REST "dtype: bf16\n", "no optimizer: another task");
  check_read (
      NULL,
      MODEL (
          "llama3_2.lora_llama3_2_1b") "teacher_model:\n  _component_: torchtune.models.llama3.llama3_8b\n" REST
          ADAMW,
      "teacher_model: another task");
  check_read (NULL, MODEL ("llama3_2_vision.llama3_2_vision_11b") REST ADAMW, "another task");
}

#define WRITTEN                                                                                              \
  "#!/bin/bash\n#SBATCH --nodes=2\ncat > llama.yaml <<END\n" MODEL ("llama3.llama3_8b") REST ADAMW           \
      "lr_scheduler:\n  _component_: torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup\n"     \
      "dtype: bf16\ncompile: False\ngradient_accumulation_steps: 1\nclip_grad_norm: null\nEND\n"

/* Of the command the GPUs, and what lies on top of the configuration that it names. */
static void
commands_are_read (void)
{
  check_read (
      "torchtune",
      WRITTEN
      "srun tune run --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d "
      "full_finetune_distributed --config llama.yaml batch_size=4 compile=True "
      "~lr_scheduler ~tokenizer.path ~no.such optimizer=bitsandbytes.optim.AdamW8bit tokenizer.max_seq_len=2048\n",
      "gpus=16; seq=2048; micro_batch=4; global_batch=64; optimizer=adamw-8bit; "
      "software=torchtune-2025-compile; dp_kind=fsdp2; -dataset._component_");
  check_read ("torchtune", WRITTEN "tune run full_finetune_single_device --config llama.yaml\n",
              "gpus=1; global_batch=2; dp_kind=none; master=none");
  check_read (
      "torchtune",
      WRITTEN
      "tune run --nproc_per_node 6 full_finetune_distributed --config llama.yaml "
      "tensor_parallel_dim=4 tensor_parallel_plan._component_=torchtune.models.llama3.base_llama_tp_plan\n",
      "tp=4; !6 GPUs are not tp 4");
  check_read ("torchtune",
              WRITTEN "tune run --nproc_per_node $1 full_finetune_distributed --config llama.yaml\n",
              "gpus; global_batch; ?how many GPUs");
  check_read (NULL, "tune run --nproc_per_node 8 full_finetune_distributed --config llama3/8B_full\n",
              "whose configuration llama3/8B_full.yaml is not here");
}

LS_TEST_SUITE (LS_TEST (commands_are_read), LS_TEST (full_recipes_are_read), LS_TEST (dimensions_are_read),
               LS_TEST (single_devices_are_read), LS_TEST (a_single_device_is_told_by_a_name),
               LS_TEST (adapters_are_read), LS_TEST (contradictions_are_told),
               LS_TEST (other_tasks_are_refused))
