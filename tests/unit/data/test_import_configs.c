/* Pins what configurations of torchtitan, DeepSpeed and accelerate, and arguments of Hugging Face's Trainer mean
 * by the keys of our files: values, defaults, names of older releases, what is told and not guessed. */
#include "import_check.h"

/* --- torchtitan ------------------------------------------------------------------------------------ */

#define TITAN                                                                                                \
  "[model]\nname = 'llama3'\nflavor = '8B'\n[parallelism]\ntensor_parallel_degree = 2\n"                     \
  "data_parallel_shard_degree = 4\n"
#define TITAN_BATCH "[training]\nlocal_batch_size = 4\nseq_len = 8192\n"

static void
torchtitan_is_read (void)
{
  check (TITAN TITAN_BATCH,
         "layers=32; ffn=14336; seq=8192; tp=2; sp=true; gpus=8; dp_kind=fsdp2; zero=3; micro_batch=4; "
         "global_batch=16; ~global_batch 16; software=torchtitan; recompute=full; recompute_layers=16; "
         "~every 2 layers");
  check (TITAN TITAN_BATCH "global_batch_size = 32\n[activation_checkpoint]\nmode = 'selective'\n"
                           "selective_ac_option = 'op'\n",
         "global_batch=32; recompute=selective; recompute_parts=op");
  check (TITAN "data_parallel_replicate_degree = 2\nfsdp_reshard_after_forward = 'never'\n"
               "context_parallel_degree = 2\ncontext_parallel_rotate_method = 'alltoall'\n" TITAN_BATCH,
         "gpus=32; zero=2@8; reshard_after_forward=0; cp=2; cp_kind=ring");
  check ("[model]\nname = 'llama3'\nflavor = '8B'\n[parallelism]\ndata_parallel_shard_degree = 1\n"
         "data_parallel_replicate_degree = 4\n" TITAN_BATCH,
         "dp_kind=ddp; gpus=4; zero");
  check (TITAN TITAN_BATCH "[compile]\nenable = true\n[model.x]\n", "~that compile.enable runs");
  check (TITAN TITAN_BATCH "[compile]\nenable = true\ncomponents = ['loss']\n", "kernels");
  check (TITAN "enable_async_tensor_parallel = true\n" TITAN_BATCH,
         "tp=2; tp_overlap=true; ?torchtitan refuses it without compile");
  check ("model.converters = ['quantize.linear.float8']\n[quantize.linear.float8]\n"
         "recipe_name = 'rowwise'\nenable_fsdp_float8_all_gather = true\n" TITAN_BATCH,
         "dtype=fp8; fp8_params=true; ?rowwise; ~float8 without compile; ?model.name and model.flavor");
  check (TITAN_BATCH "[float8]\nenable_fsdp_float8_all_gather = true\n", "dtype=bf16; fp8_params");
  check (TITAN_BATCH "never_heard_of = 3\n[checkpoint]\nfolder = 'a'\n",
         "?training.never_heard_of 3; -checkpoint.folder; ?how many GPUs; gpus");
}

/* Each release has its own sections for one thing. */
static void
torchtitan_of_older_releases_is_read (void)
{
  check ("[model]\nname = 'llama3'\nflavor = '70B'\nnorm_type = 'np_layernorm'\n[training]\nbatch_size = 8\n"
         "seq_len = 4096\ndata_parallel_degree = -1\ntensor_parallel_degree = 8\ncompile = true\n",
         "layers=80; norm=layernorm; micro_batch=8; tp=8; software=torchtitan-2024-12-compile; gpus");
  check ("[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nbatch_size = 8\nseq_len = 4096\n"
         "data_parallel_shard_degree = 2\n[experimental]\npipeline_parallel_degree = 3\n"
         "pipeline_parallel_schedule = 'Interleaved1F1B'\npipeline_parallel_microbatches = 4\n",
         "pp=3; vpp=2; schedule=interleaved-1f1b; micro_batch=2; gpus=6; layers_per_chunk=5,6x2,5x3; "
         "software=torchtitan-2025-03");
  check (
      "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nbatch_size = 8\n[experimental]\n"
      "pipeline_parallel_degree = 2\npipeline_parallel_split_points = ['layers.10', 'layers.20', 'layers.30']\n",
      "vpp=2; layers_per_chunk=10x3,2");
  check (TITAN TITAN_BATCH "[float8]\nenable_float8_linear = true\n",
         "dtype=fp8; software=torchtitan-2024-12");
}

static void
experts_of_torchtitan_are_read (void)
{
  check (TITAN "expert_parallel_degree = 4\nexpert_tensor_parallel_degree = 1\n" TITAN_BATCH, "ep=4; etp=1");
  check (TITAN "expert_parallel_degree = 4\nexpert_parallel_comm_backend = 'deepep'\n" TITAN_BATCH,
         "ep=4; dispatcher=deepep");
  check (TITAN "expert_parallel_degree = 4\nexpert_parallel_comm_backend = 'standard'\n" TITAN_BATCH,
         "ep=4; dispatcher");
  check (TITAN "expert_parallel_degree = 4\nexpert_parallel_comm_backend = 'hybridep'\n" TITAN_BATCH,
         "ep=4; dispatcher=hybridep");
  check (TITAN "expert_parallel_degree = 4\nexpert_parallel_comm_backend = 'uccl'\n" TITAN_BATCH,
         "ep=4; dispatcher; ?expert_parallel_comm_backend uccl");
}

static void
contradictions_of_torchtitan_are_told (void)
{
  check (TITAN "pipeline_parallel_degree = 3\npipeline_parallel_layers_per_stage = 8\n" TITAN_BATCH,
         "!5 chunks are no multiple of 3");
  check (TITAN "pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 3\n" TITAN_BATCH,
         "!a batch of 4 is no multiple of micro-batches of 3");
  check (TITAN TITAN_BATCH "global_batch_size = 24\n", "!a batch of 24 is no multiple of the 16");
  check (TITAN "expert_parallel_degree = 'x'\n" TITAN_BATCH, "!\"x\" is no value for ep");
}

#define TITAN_LOG                                                                                            \
  "[titan] 1 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]\n"                     \
  "[titan] 1 - root - INFO - Building llama3 8B with TransformerModelArgs(dim=4096)\n"                       \
  "[titan] 1 - root - INFO - Applied full activation checkpointing to the model\n"                           \
  "[titan] 1 - root - INFO - Training starts at step 1, with local batch size 2, global batch size 8, "      \
  "sequence length 8192, total steps 1000\n"
#define TITAN_STEP(step, tps, memory)                                                                        \
  "[titan] \033[31mstep: " step "  \033[32mloss: 9.1  \033[33mmemory: " memory                               \
  "GiB(50.00%)  \033[34mtps: " tps "  \033[35mmfu: 40%\033[39m\n"

/* Tokens each second of each GPU: 8 x 8,192 tokens on 8 GPUs at 4,096 a second are 2 s. */
static void
a_log_of_torchtitan_is_job_and_measurement (void)
{
  LsImport import;
  static const char text[] = TITAN_LOG TITAN_STEP (" 1", "10", "70.0") TITAN_STEP ("10", "4,000", "60.5")
      TITAN_STEP ("20", "4,096", "60.5") "validate step: 20  loss: 1  memory: 90.0GiB(9%)  tps: 1\n";
  if (!read_text (text, &import))
    return;
  static const char *const expected[] = { "layers=32",     "gpus=8",         "tp=2",     "zero=3",
                                          "micro_batch=2", "global_batch=8", "seq=8192", "recompute=full" };
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    check_one (&import, expected[i], "a log");
  LS_CHECK_INT (import.measured.n_lines, ==, 3);
  LS_CHECK_NEAR (import.measured.step_s, (2 + 8192.0 / 4000) / 2, 1e-12);
  LS_CHECK_NEAR (import.measured.reserved_bytes, 70.0 * 1073741824, 1e-12);
  ls_import_clear (&import);
}

static void
configurations_in_logs_of_torchtitan_are_read (void)
{
  check (
      "[titan] Running with args: {'model': {'name': 'llama3', 'flavor': '70B', 'converters': []}, 'training': "
      "{'local_batch_size': 1, 'seq_len': 4096, 'compile': False}, 'activation_checkpoint': {'mode': 'none'}}\n"
      "[titan] Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=2, cp=1, tp=4, ep=1, etp=1\n" TITAN_STEP (
          "10", "4,000", "60.5"),
      "layers=80; pp=2; tp=4; gpus=16; seq=4096; recompute=none; micro_batch=1");
  check (TITAN_STEP ("1", "1", "1") "Applied selective activation checkpointing to the model\n",
         "?what is recomputed selectively; ?model.name");
}

/* --- DeepSpeed ------------------------------------------------------------------------------------- */

#define DS(more)                                                                                               \
  "{ \"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 4" more \
  "}"

static void
deepspeed_is_read (void)
{
  check (DS (", \"tensor_parallel\": {\"autotp_size\": 2}, \"sequence_parallel_size\": 4"),
         "tp=2; cp=4; cp_kind=ulysses");
  check (DS (", \"bf16\": {\"enabled\": true}, \"gradient_clipping\": 1"),
         "micro_batch=2; global_batch=64; gpus=8; ~gpus 8; zero=0; dp_kind=deepspeed; dtype=bf16; "
         "grad_norm=true; dp_overlap=false; ?the model; recompute; software=deepspeed");
  check (DS (", \"zero_optimization\": {\"stage\": 3, \"reduce_bucket_size\": 2e8, "
             "\"stage3_prefetch_bucket_size\": 1000, \"param_persistence_threshold\": 0, "
             "\"offload_param\": {\"device\": \"nvme\"}, \"mics_shard_size\": 4}"),
         "zero=3@4; dp_overlap=true; ~default of stage 3; reduce_bucket=200000000; prefetch_bucket=1000; "
         "persistence_threshold=0; offload=parameters; offload_to=nvme; dtype=fp32; grad_norm=false");
  check (DS (", \"zero_optimization\": {\"stage\": 2, \"cpu_offload\": true, \"overlap_comm\": true}"),
         "offload=optimizer; offload_to=cpu; zero=2; dp_overlap=true");
  check (
      DS (", \"zero_optimization\": true, \"activation_checkpointing\": {\"partition_activations\": true}"),
      "zero=1; recompute=full; partition_activations=true; ~activation_checkpointing is configured");
  check (DS (", \"zero_optimization\": {\"stage\": 1, \"zero_quantized_weights\": true}, \"x\": {\"y\": 1}, "
             "\"optimizer\": {\"type\": \"Lamb\"}, \"progressive_layer_drop\": {\"enabled\": true}"),
         "?zero_optimization.zero_quantized_weights; ?x.y 1; ?Lamb; ?progressive_layer_drop.enabled");
  check (DS (", \"optimizer\": {\"type\": \"SGD\", \"params\": {\"momentum\": 0.9}}"),
         "optimizer=sgd-momentum");
  check (DS (", \"zero_optimization\": {\"stage\": 2}, \"optimizer\": {\"type\": \"Muon\"}"),
         "?optimizer.type Muon: how it works on shards of matrices; optimizer");
  check (DS (", \"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\"}}, "
             "\"optimizer\": {\"type\": \"Lion\"}"),
         "?optimizer.type Lion: on the host; optimizer");
}

/* "auto", words without quotes, comments and commas behind the last item. */
static void
templates_of_deepspeed_are_read (void)
{
  check (
      "{ // a\n \"train_batch_size\": CONFIG_BATCH, # b\n\"train_micro_batch_size_per_gpu\": \"auto\", /* c */\n"
      "\"fp16\": {\"enabled\": ${FP16}, },\n}",
      "global_batch; ?${CONFIG_BATCH}; micro_batch; ?value is auto; dtype; ?${FP16}; gpus");
}

static void
contradictions_of_deepspeed_are_told (void)
{
  check (DS (", \"bf16\": {\"enabled\": true}, \"fp16\": {\"enabled\": true}"),
         "!bf16.enabled and fp16.enabled");
  check (DS (", \"zero_optimization\": {\"reduce_bucket_size\": \"many\"}"),
         "!\"many\" is no value for reduce_bucket");
  check (DS (", \"zero_optimization\": {\"stage\": 4}"), "!\"4\" is no value for zero");
}

/* Words of DeepSpeed inside of other objects make no configuration of it, nor do arguments of Megatron-LM in
 * YAML one of gpt-neox, though they share names. */
static void
files_that_only_look_alike_are_refused (void)
{
  check_read (NULL, "{\"results\": {\"a\": 1}, \"config\": {\"train_batch_size\": 16}}",
              "configuration of no program");
  check_read (NULL, "{\"a\": [\"\\\"train_batch_size\", {\"zero_optimization\": 1}]}",
              "configuration of no program");
  check_read ("DeepSpeed", "{ # {\n/* { */ \"train_batch_size\": 16}", "global_batch=16");
  check_read (NULL,
              "bases: [base.yaml]\nnum_layers: 28\nhidden_size: 1536\ntokenizer_type: HuggingFaceTokenizer\n"
              "ffn_hidden_size: 8960\nnum_query_groups: 2\nswiglu: true\n",
              "the configuration of no program that is read; it has bases, num_layers");
  check_read (
      NULL, "language_model: {num_layers: 24}\nmodel_parallel: {bf16: true}\nvocab_file: a\ntrain_iters: 1\n",
      "the configuration of no program that is read; it has language_model, model_parallel");
  check_read ("gpt-neox",
              "num_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\ntokenizer_type: x\nvocab_file: y\n",
              "layers=2");
}

/* Models that make images, and encoders, in configurations that look like those of decoders. */
static void
other_models_are_refused (void)
{
  check_read (NULL, "model: {name: mosaic_bert}\nglobal_train_batch_size: 8\n",
              "model.name mosaic_bert: no decoder");
  check_read (NULL, "model: {name: CompVis/stable-diffusion-v1-4}\ntrain_loader: {a: 1}\n", "no decoder");
  check_read (NULL, "per_device_batch_size: 1\nactivations_dtype: bfloat16\nrun_name: a\n", "MaxDiffusion");
}

/* A command that a package installs is known by its first two words, and not by a file of Python that an option
 * names: what stands in front of that is heeded. */
static void
commands_that_train_no_decoder_are_refused (void)
{
#define SIZES " --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 1"
  static const char *const rows[][2] = {
    { "megatron export --external_plugins a.py" SIZES, "megatron export: another task" },
    { "NPROC_PER_NODE=8 megatron rlhf" SIZES, "megatron rlhf: another task" },
    { "torchrun convert.py" SIZES, "convert.py converts a checkpoint" },
    { "python hf2mcore_qwen.py" SIZES, "hf2mcore_qwen.py converts a checkpoint" },
    { "python x.py --target-tensor-model-parallel-size 2" SIZES, "a checkpoint is converted" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    check_read (NULL, rows[i][0], rows[i][1]);
#undef SIZES
}

/* --- Hugging Face ---------------------------------------------------------------------------------- */

#define TRAINER "train.py --model_name_or_path meta-llama/Llama-2-7b-hf --output_dir out "

static void
trainers_are_read (void)
{
  check ("torchrun --nproc_per_node 8 --nnodes 2 " TRAINER "--bf16 --per_device_train_batch_size 2 "
         "--gradient_accumulation_steps 4 --fsdp 'full_shard auto_wrap' --gradient_checkpointing "
         "--model_max_length 4096",
         "gpus=16; micro_batch=2; global_batch=128; ~global_batch 128; dp_kind=fsdp1; zero=3; dtype=bf16; "
         "recompute=full; layers=32; seq=4096; software=hf-trainer-2024; -output_dir");
  check ("torchrun --nproc_per_node 4 " TRAINER "--fp16 --block_size 1024",
         "dp_kind=ddp; micro_batch=8; ~the default; dtype=fp16; recompute=none; zero");
  check ("deepspeed --num_gpus 8 --num_nodes 1 " TRAINER
         "--deepspeed absent.json --per_device_train_batch_size 1",
         "dp_kind=deepspeed; ?absent.json, which is not here; zero; gpus=8; software=deepspeed");
  check (
      "accelerate launch --num_processes 8 --use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP --mixed_precision "
      "bf16 " TRAINER "--per_device_train_batch_size 1 --never_heard_of 3",
      "gpus=8; dp_kind=fsdp1; zero=2; dtype=bf16; ?--never_heard_of 3");
  check (
      "deepspeed --num_gpus 4 main.py --model_name_or_path gpt2 --per_device_train_batch_size 8 --max_seq_len 512 "
      "--gradient_accumulation_steps 1 --zero_stage 3 --deepspeed --gradient_checkpointing --offload",
      "gpus=4; ~1 node; zero=3; seq=512; recompute=full; global_batch=32; ?--offload");
  check ("torchrun --nproc_per_node 4 " TRAINER
         "--bf16 --use_peft --lora_r 32 --lora_alpha 16 --lora_target_modules "
         "q_proj k_proj up_proj --load_in_4bit",
         "lora_rank=32; lora_modules=q,k,up; qlora=true; -lora_alpha");
  check ("torchrun --nproc_per_node 4 " TRAINER "--bf16 --use_peft --lora_dropout 0.1",
         "lora_rank=16; lora_modules=q,v; ~lora_rank 16; ?lora_dropout 0.1");
  check ("python -m accelerate.commands.launch --multi_gpu " TRAINER, "gpus; ?how many GPUs; dp_kind=ddp");
  check ("accelerate launch --num_processes 8 --use_deepspeed --zero_stage 2 " TRAINER
         "--per_device_train_batch_size 1",
         "zero=2; dp_kind=deepspeed; global_batch=8");
}

/* Programs around a Trainer: their names, their defaults, files that come with them, other tasks. */
static void
programs_around_a_trainer_are_read (void)
{
#define SWIFT "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-1.5B --max_length 2048 "
  check_read (
      "ms-swift", SWIFT "--model_name bot --external_plugins a.py",
      "layers=28; seq=2048; gpus=4; dtype=bf16; recompute=full; lora_rank=8; lora_modules; micro_batch=1; "
      "global_batch=16; ~gradient_accumulation_steps 4: as many as make up 16; -model_name; ?external_plugins");
  check_read ("ms-swift",
              SWIFT
              "--tuner_type full --torch_dtype float32 --deepspeed zero2 --gradient_checkpointing false "
              "--per_device_train_batch_size 2 --gradient_accumulation_steps 3",
              "lora_rank; dtype=fp16; recompute=none; zero=2; reduce_bucket=200000000; dp_overlap=false; "
              "micro_batch=2; global_batch=24");
  check_read ("ms-swift", SWIFT "--train_type lora --lora_rank 4 --target_modules q_proj,v_proj --fsdp fsdp2",
              "lora_rank=4; lora_modules=q,v; dp_kind=fsdp2; zero=3");
  check_read ("ms-swift", SWIFT "--tuner_type longlora --deepspeed zero3_offload",
              "lora_rank; ?tuner_type longlora; zero=3; offload=parameters");
  check_read ("ms-swift", SWIFT "--gradient_accumulation_steps $(cat steps) --deepspeed zero1",
              "zero=1; global_batch; ?how often gradients are accumulated is not said");
  check_read ("ms-swift", SWIFT "--sequence_parallel_size 2 --gradient_accumulation_steps 1",
              "cp=2; global_batch=2; cp_kind=ulysses");
  check_read ("ms-swift", SWIFT "--per_device_train_batch_size 2", "micro_batch=2; global_batch=16");
  check_read (NULL, SWIFT "--task_type seq_cls", "task_type=seq_cls: another task");
  check_read (NULL, "swift rlhf --rlhf_type dpo --model a --per_device_train_batch_size 1",
              "swift rlhf: another task");
#define FACTORY                                                                                                 \
  "CUDA_VISIBLE_DEVICES=0 llamafactory-cli train --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir o --bf16 " \
  "--per_device_train_batch_size 2 "
  check_read ("LLaMA-Factory", FACTORY "--stage sft --finetuning_type lora --lora_target q_proj,v_proj",
              "gpus=1; lora_rank=8; lora_modules=q,v; recompute=full; dtype=bf16; seq=2048; global_batch=2");
  check_read ("LLaMA-Factory",
              FACTORY "--stage pt --finetuning_type full --disable_gradient_checkpointing --cutoff_len 512 "
                      "--flash_attn disabled",
              "lora_rank; recompute=none; seq=512; attention=unfused");
  check_read (NULL, FACTORY "--stage dpo", "stage=dpo: another task");
  check_read (NULL, "llamafactory-cli export --model_name_or_path a --finetuning_type lora",
              "llamafactory-cli export");
  check_read (
      "LLaMA-Factory",
      "model_name_or_path: Qwen/Qwen2.5-1.5B\nstage: sft\nfinetuning_type: lora\nlora_rank: 4\n"
      "pure_bf16: true\ncutoff_len: 64\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 8\n",
      "lora_rank=4; lora_modules; recompute=full; dtype=bf16; seq=64; micro_batch=2; gpus");
  check_read (NULL, "model_name_or_path: a\nstage: rm\nfinetuning_type: lora\n", "stage=rm: another task");
#undef SWIFT
#undef FACTORY
}

/* What a Trainer is told of weights and adapters is not passed over. */
static void
options_of_other_trainers_are_told (void)
{
#define RUN "torchrun --nproc_per_node 2 train.py --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir o "
  check (RUN "--lora_enable True --lora_r 16",
         "lora_rank=16; ?lora_enable: which modules have adapters is not said: all linear ones are taken to");
  check (RUN "--use_lora --lora_target_modules q_proj v_proj", "lora_rank=8; lora_modules=q,v");
  check (RUN "--lora_rank 4 --lora_target_modules q_proj", "lora_rank=4; lora_modules=q");
  check (RUN "--use_lora False --lora_r 16", "lora_rank");
  check (RUN "--peft_enable False", "lora_rank");
  check (RUN "--fsdp full_shard --fsdp_config f.json", "zero=3; ?what f.json says of FSDP: it is not here");
#undef RUN
}

static void
configurations_of_accelerate_are_read (void)
{
  check ("distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 16\nfsdp_config:\n  fsdp_version: 2\n"
         "  fsdp_reshard_after_forward: false\n  fsdp_activation_checkpointing: true\nparallelism_config:\n"
         "  parallelism_config_dp_replicate_size: 2\n  parallelism_config_dp_shard_size: 4\n"
         "  parallelism_config_tp_size: 2\n",
         "gpus=16; tp=2; dp_kind=fsdp2; zero=2@4; reshard_after_forward=0; recompute=full; dtype=bf16; "
         "?the micro-batch; ?how long a sequence is; ?the model");
  check ("distributed_type: FSDP\nfsdp_config:\n  sharding_strategy: 4\nmixed_precision: no\n",
         "dp_kind=fsdp1; zero=3@8; ?ranks of a node; dtype=fp32; ?how many GPUs");
  check ("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n  offload_param_device: cpu\n"
         "  gradient_clipping: 1.0\nmixed_precision: fp16\nnum_processes: 8\n",
         "zero=3; offload=parameters; grad_norm=true; dtype=fp16; gpus=8");
  check ("distributed_type: 'NO'\nnum_processes: 1\n", "dp_kind=none; gpus=1");
}

#define DS_LOG                                                                                               \
  "[2024-05-01 10:00:00] [INFO] [config.py:996:print] DeepSpeedEngine configuration:\n"                      \
  "[INFO] [config.py:1000:print]   gradient_accumulation_steps .. 4\n"                                       \
  "[INFO] [config.py:1000:print]   train_batch_size ............. 128\n"                                     \
  "[INFO] [config.py:1000:print]   world_size ................... 8\n"                                       \
  "[INFO] [config.py:986:print_user_config]   json = {\n    \"train_batch_size\": \"auto\", \n"              \
  "    \"train_micro_batch_size_per_gpu\": 4, \n    \"bf16\": {\n        \"enabled\": true\n    }, \n"       \
  "    \"zero_optimization\": {\n        \"stage\": 3\n    }\n}\n"
#define DS_STEP(rate, memory)                                                                                \
  "[INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=1.5, "           \
  "CurrSamplesPerSec=" rate ", MemAllocated=12.25GB, MaxMemAllocated=" memory "GB\n"

/* Samples of all GPUs each second: 128 of them, 32 a second, are 4 s. */
static void
a_log_of_deepspeed_is_job_and_measurement (void)
{
  LsImport import;
  if (!read_text (DS_LOG DS_STEP ("16", "40.5") DS_STEP ("31", "41.5") DS_STEP ("32", "41.0"), &import))
    return;
  static const char *const expected[] = { "gpus=8",     "zero=3",     "micro_batch=4", "global_batch=128",
                                          "dtype=bf16", "?the model", "~world_size" };
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    check_one (&import, expected[i], "a log");
  LS_CHECK_INT (import.measured.n_lines, ==, 3);
  LS_CHECK_NEAR (import.measured.step_s, (128.0 / 31 + 4) / 2, 1e-12);
  LS_CHECK_NEAR (import.measured.allocated_bytes, 41.5 * 1073741824, 1e-12);
  ls_import_clear (&import);
  if (!read_text (DS_LOG "steps: 10 loss: 5.0 iter time (s): 1.25 samples/sec: 102.4\n", &import))
    return;
  LS_CHECK_NEAR (import.measured.step_s, 1.25, 1e-12);
  ls_import_clear (&import);
}

#define HEREDOC(stage)                                                                                       \
  "#!/bin/bash\nZERO=" stage "\nDS=/tmp/ds.json\ncat <<EOF > $DS\n{ \"train_batch_size\": 256,\n"            \
  "  \"zero_optimization\": { \"stage\": $ZERO, \"overlap_comm\": true }, \"bf16\": { \"enabled\": true,\n"  \
  "  \"loss_scale\": $LOSS } }\nEOF\n"

/* A configuration that the script writes is beside it then. */
static void
files_that_a_script_writes_are_read (void)
{
  check (
      HEREDOC ("2") "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 "
                    "--num-attention-heads 16 --seq-length 1024 --micro-batch-size 4 --global-batch-size 256 "
                    "--bf16 --deepspeed --deepspeed_config=$DS\n",
      "dp_kind=deepspeed; zero=2; layers=24");
  check (HEREDOC ("3") "deepspeed --num_gpus 8 train.py --model_name_or_path Qwen/Qwen3-8B --output_dir x "
                       "--per_device_train_batch_size 4 --bf16 --deepspeed $DS\n",
         "dp_kind=deepspeed; zero=3; dp_overlap=true; global_batch=256; layers=36");
  check (
      "echo '{\"zero_optimization\": {\"stage\": 1}}' > ds.json\ndeepspeed --num_gpus 8 train.py --output_dir x "
      "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 4 --deepspeed ds.json\n",
      "zero=1; gpus=8");
}

/* An optimizer by the name that each program has for it; what needs whole matrices is told where they are cut, and
 * whatever is not known. */
static void
optimizers_of_programs_are_ours (void)
{
  check (TRAINER "--optim adamw_torch_fused", "optimizer=adam");
  check (TRAINER "--optim adamw_bnb_8bit", "optimizer=adamw-8bit");
  check (TRAINER "--optim adamw_torch_4bit", "optimizer=adamw-4bit");
  check (TRAINER "--optim paged_adamw_8bit", "optimizer=adamw-8bit; ~optim paged_adamw_8bit: its pages");
  check (TRAINER "--optim adafactor", "optimizer=adafactor");
  check (TRAINER "--optim lion_32bit", "optimizer=lion");
  check (TRAINER "--optim galore_adamw", "?optim galore_adamw: memory and time are those of Adam; optimizer");
  check ("torchrun --nproc_per_node 8 " TRAINER "--fsdp 'full_shard auto_wrap' --optim adafactor",
         "dp_kind=fsdp1; ?optim adafactor: how it works on shards; optimizer");
  check (TITAN TITAN_BATCH "[optimizer]\nname = 'Muon'\n",
         "?optimizer.name Muon: how it works on shards; optimizer");
  check (TITAN TITAN_BATCH "[optimizer]\nname = 'AdamW'\n", "optimizer=adam");
  check_read ("gpt-neox",
              "num-layers: 2\nhidden_size: 64\nnum_attention_heads: 2\nseq_length: 64\n"
              "train_micro_batch_size_per_gpu: 1\npipe-parallel-size: 1\noptimizer: {type: Lion}\n",
              "optimizer=lion");
  check_read (
      "nanotron",
      "model:\n  dtype: bfloat16\n  model_config: {is_llama_config: true, hidden_size: 64, "
      "num_hidden_layers: 8, num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000}\n"
      "tokens: {sequence_length: 128, micro_batch_size: 2, batch_accumulation_per_replica: 3}\n"
      "optimizer: {zero_stage: 0, optimizer_factory: {name: sgd}}\nparallelism: {dp: 4, pp: 2, tp: 2}\n",
      "optimizer=sgd");
  check_read (
      "llm-foundry",
      "max_seq_len: 64\nmodel: {name: mpt_causal_lm, d_model: 64, n_heads: 2, n_layers: 2, vocab_size: 100}\n"
      "train_loader: {name: text}\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: 1\n"
      "optimizer: {name: decoupled_lionw}\n",
      "optimizer=lion");
#define MAXTEXT                                                                                              \
  "base_config: base.yml\nbase_emb_dim: 64\nbase_num_query_heads: 4\nbase_num_kv_heads: 4\n"                 \
  "base_mlp_dim: 128\nbase_num_decoder_layers: 2\nhardware: gpu\nper_device_batch_size: 1\n"                 \
  "ici_fsdp_parallelism: 2\n"
  check_read ("MaxText", MAXTEXT "opt_type: sgd\n", "dp_kind=xla-fsdp; optimizer=sgd");
  check_read ("MaxText", MAXTEXT "opt_type: muon\n", "?opt_type muon: how it works on shards; optimizer");
  check_read (
      "NeMo",
      "trainer: {devices: 8, num_nodes: 1, precision: bf16}\nmodel:\n  tensor_model_parallel_size: 2\n"
      "  num_layers: 4\n  hidden_size: 512\n  num_attention_heads: 8\n  encoder_seq_length: 1024\n"
      "  micro_batch_size: 1\n  global_batch_size: 8\n  optim: {name: lion}\n",
      "optimizer=lion");
}

/* Not where the option is off, nor where another mask is named. */
static void
packed_documents_are_told (void)
{
  static const char foundry[]
      = "model: {name: mpt_causal_lm, d_model: 64, n_heads: 4, n_layers: 2, max_seq_len: 128, vocab_size: 100, "
        "attn_config: {attn_uses_sequence_id: %s}}\nglobal_train_batch_size: 8\n"
        "device_train_microbatch_size: 1\n";
  static const struct {
    const char *text, *on, *off;
  } rows[] = {
    { "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
      "--micro-batch-size 1 --global-batch-size 8 %s",
      "--reset-attention-mask", "--bf16" },
    { TITAN_BATCH "[model]\nname = 'llama3'\nflavor = '8B'\nattn_mask_type = '%s'\n", "block_causal",
      "causal" },
    { TRAINER "--packing %s", "true", "false" },
    { foundry, "true", "false" },
    { "trainer: {devices: 8, num_nodes: 1, precision: bf16}\nmodel:\n  num_layers: 4\n  hidden_size: 512\n"
      "  num_attention_heads: 8\n  encoder_seq_length: 1024\n  micro_batch_size: 1\n  global_batch_size: 8\n"
      "  data: {packed_sequence_size: %s}\n",
      "4096", "-1" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    for (int is_on = 0; is_on < 2; is_on++) {
      GString *text = g_string_new (rows[i].text);
      LsImport import;
      g_string_replace (text, "%s", is_on ? rows[i].on : rows[i].off, 0);
      if (read_text (text->str, &import)) {
        ls_check_impl (has_line (import.unknown, "attention may be inside documents") == is_on, __FILE__,
                       __LINE__, "%s", text->str);
        ls_import_clear (&import);
      }
      g_string_free (text, TRUE);
    }
}

LS_TEST_SUITE (LS_TEST (optimizers_of_programs_are_ours), LS_TEST (files_that_only_look_alike_are_refused),
               LS_TEST (other_models_are_refused), LS_TEST (programs_around_a_trainer_are_read),
               LS_TEST (options_of_other_trainers_are_told),
               LS_TEST (commands_that_train_no_decoder_are_refused), LS_TEST (torchtitan_is_read),
               LS_TEST (torchtitan_of_older_releases_is_read), LS_TEST (experts_of_torchtitan_are_read),
               LS_TEST (contradictions_of_torchtitan_are_told),
               LS_TEST (a_log_of_torchtitan_is_job_and_measurement),
               LS_TEST (configurations_in_logs_of_torchtitan_are_read), LS_TEST (deepspeed_is_read),
               LS_TEST (templates_of_deepspeed_are_read), LS_TEST (contradictions_of_deepspeed_are_told),
               LS_TEST (trainers_are_read), LS_TEST (configurations_of_accelerate_are_read),
               LS_TEST (a_log_of_deepspeed_is_job_and_measurement),
               LS_TEST (files_that_a_script_writes_are_read), LS_TEST (packed_documents_are_told))
