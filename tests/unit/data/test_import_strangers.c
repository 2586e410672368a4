/* Pins what files are that look like those of a program and are of another one, and what a script says of a job
 * beside the options of its program. */
#include <glib/gstdio.h>

#include "import_check.h"
#include "ls_test.h"

#define TRAINER                                                                                              \
  "--model_name_or_path Qwen/Qwen2.5-1.5B --per_device_train_batch_size 2 --max_seq_length 512 --bf16 "      \
  "--output_dir out "

/* Configurations that look like those of a program, and are of another one or another task. */
static void
configurations_are_told_apart (void)
{
#define NEMO                                                                                                 \
  "trainer: {devices: 8, num_nodes: 1, precision: bf16}\nmodel:\n  num_layers: 8\n  hidden_size: 512\n"      \
  "  num_attention_heads: 8\n  tensor_model_parallel_size: 1\n  micro_batch_size: 1\n  global_batch_size: 8\n"
  check_read ("NeMo", NEMO "  optim: {name: fused_adam}\ninference: {greedy: true}\n", "layers=8; gpus=8");
  check_read (NULL, NEMO "inference: {greedy: true}\n", "inference without an optimizer: another task");
  check_read (NULL, NEMO "  reward_model_type: regression\n", "model.reward_model_type: another task");
  check_read (NULL, NEMO "  virtual_prompt_style: p-tuning\n", "model.virtual_prompt_style: another task");
  check_read (NULL, NEMO "run: {huggingface_ckpt_path: /a}\n", "run.huggingface_ckpt_path: another task");
  check_read (NULL, NEMO "run: {name: griffin_peft}\n",
              "name griffin_peft; a model of Lockstep is a decoder");
  check_read (NULL, NEMO "distributed_strategy: {tensor_model_parallel_size: 8}\n",
              "the configuration of no program that is read");
  check_read ("NeMo", NEMO "  position_embedding_type: rope\n  rotary_percentage: 0.5\n", "rotary_dim=32");
  check_read ("NeMo", NEMO "  position_embedding_type: rope\n  fused_single_qkv_rope: true\n",
              "kernels=megatron-core-fused-rope");
  check_read ("NeMo", NEMO "  position_embedding_type: rope\n  fused_single_qkv_rope: false\n", "kernels");
#undef NEMO
  check_read (
      "NeMo",
      "trainer: {devices: 8, precision: bf16}\nmodel: {restore_from_path: a.nemo, global_batch_size: 8, "
      "micro_batch_size: 1, tensor_model_parallel_size: 1}\n",
      "attention=flash; ?model.transformer_engine: the checkpoint says it");
  check_read (NULL, "tokenizer_type: GPT2BPETokenizer\nvocab_file: a.json\npreprocess_data: true\n",
              "the configuration of no program that is read");
  check_read (
      NULL,
      "#!/bin/bash\nARGS=(--total_epochs 500 --save_every 1 --batch_size 32)\ntorchrun ddp.py ${ARGS[@]}\n",
      "nothing here launches Megatron-LM, nor another program");
  check_read (NULL,
              "#!/bin/bash\npython get_model.py\npython3 -m verl.trainer.main_ppo data.train_batch_size=256 "
              "trainer.nnodes=1 model.path=a\n",
              "verl.trainer.main_ppo, which learns from rewards or preferences: another task");
}

/* A script that is called as one of TRL, with options that this has not, is another: TRL's length of a sequence is
 * not its own. */
static void
a_name_alone_is_no_program (void)
{
#define ARGUMENTS "--per_device_train_batch_size 1 --bf16 True --output_dir out "
  check_read (
      "Hugging Face Trainer",
      "torchrun --nproc-per-node 8 train/sft.py --block_size=32768 --model_name=Qwen/Qwen2.5-32B " ARGUMENTS,
      "seq=32768; layers=64; recompute=none");
  check_read ("TRL", "torchrun --nproc-per-node 8 sft.py --model_name_or_path Qwen/Qwen2.5-32B " ARGUMENTS,
              "seq=1024; layers=64; recompute=full");
#undef ARGUMENTS
}

/* As a mapping in its place is. */
static void
a_file_of_fsdp_is_read (void)
{
#define FSDP                                                                                                 \
  "torchrun --nproc_per_node 8 train.py --bf16 --fsdp \"full_shard auto_wrap\" --fsdp_config c/fsdp.json " TRAINER
  check (
      "cat > fsdp.json <<END\n{\"activation_checkpointing\": true, \"backward_prefetch\": \"backward_pre\",\n"
      "\"forward_prefetch\": \"true\", \"limit_all_gathers\": false}\nEND\n" FSDP,
      "zero=3; recompute=full; backward_prefetch=pre; forward_prefetch=1");
  check (FSDP, "zero=3; recompute=none; ?what c/fsdp.json says of FSDP: it is not here");
#undef FSDP
}

/* Of a fork, whose class of a model llm-foundry has not, nothing of transformers is said. */
static void
classes_of_forks_are_told (void)
{
#define FORK                                                                                                     \
  "max_seq_len: 64\nmodel: {name: mosaic_llama2_1.3b, d_model: 64, n_heads: 2, n_layers: 2, attn_impl: flash}\n" \
  "train_loader: {name: text}\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: 1\n"
  check_read ("llm-foundry", FORK,
              "?model.name mosaic_llama2_1.3b: a class of a fork; ?model.attn_impl flash");
#undef FORK
}

/* Which layers have adapters, in words that are no list of names. */
static void
adapters_are_on_all_layers_or_by_a_pattern (void)
{
#define ADAPTERS(words)                                                                                      \
  "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\nsequence_len: 64\ndatasets:\n  - path: x\n"               \
  "adapter: lora\nlora_r: 4\n" words "\n"
  check_read ("axolotl", ADAPTERS ("lora_target_linear: true"), "lora_rank=4; lora_modules");
  check_read ("axolotl", ADAPTERS ("lora_target_modules: 'vision_(a|b)'"),
              "lora_rank=4; lora_modules; ?is the pattern of no linear layer");
#undef ADAPTERS
}

/* verl's fine-tuning: FSDP2 of shards in fp32, reduced in fp32, a batch of all ranks. */
static void
verl_is_read (void)
{
#define VERL                                                                                                 \
  "torchrun --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer model.partial_pretrain=Qwen/Qwen3-8B "
  check (
      VERL "data.micro_batch_size_per_gpu=2 data.max_length=4096",
      "gpus=8; dp_kind=fsdp2; zero=3; micro_batch=2; global_batch=256; seq=4096; recompute=full; dtype=bf16; "
      "grad_dtype=fp32; layers=36; ~data.train_batch_size 256: the default of verl");
  check (
      VERL "data.train_batch_size=64 model.strategy=fsdp model.fsdp_config.cpu_offload=True "
           "model.fsdp_config.offload_params=True +ulysses_sequence_parallel_size=2",
      "dp_kind=fsdp1; ?fsdp_offload_params; cp=2; cp_kind=ulysses; global_batch=64; seq=1024; micro_batch=4");
  check (VERL "model.lora_rank=16 model.target_modules=[q_proj,v_proj] use_remove_padding=True",
         "lora_rank=16; ?use_remove_padding");
  check_read (NULL,
              "#!/bin/bash\ntorchrun --nproc_per_node=8 -m verl.trainer.main_ppo data.train_batch_size=8\n",
              "learns from rewards");
}

/* --yaml-cfg: its file says all, members of its two parts are arguments. */
static void
arguments_in_yaml_are_read (void)
{
#define YAML(model)                                                                                          \
  "cat > gpt.yaml <<'END'\nlanguage_model:\n  num_layers: 24\n  hidden_size: 1024\n"                         \
  "  num_attention_heads: 16\n  num_query_groups: 4\n  normalization: RMSNorm\n  add_bias_linear: False\n"   \
  "  recompute_granularity: null\n" model                                                                    \
  "model_parallel:\n  tensor_model_parallel_size: 2\n  sequence_parallel: True\n  bf16: True\n"              \
  "micro_batch_size: 2\nglobal_batch_size: 32\nseq_length: 2048\nposition_embedding_type: rope\n"            \
  "use_distributed_optimizer: True\nuntie_embeddings_and_output_weights: True\nEND\n"                        \
  "torchrun --nproc_per_node 8 pretrain_gpt.py --yaml-cfg "
  check (
      YAML ("  activation_func: swiglu\n  ffn_hidden_size: 2816\n") "gpt.yaml\n",
      "layers=24; hidden=1024; kv_heads=4; ffn=2816; mlp=swiglu; norm=rmsnorm; linear_bias=false; position=rope; "
      "tied_embeddings=false; gpus=8; tp=2; sp=true; zero=1; micro_batch=2; global_batch=32; dtype=bf16; seq=2048");
  check (YAML ("  activation_func: squaredrelu\n") "gpt.yaml --num-layers 2\n",
         "layers=24; mlp=relu2; ffn=4096; ?--num-layers: with --yaml-cfg the file says all");
  check_read (
      NULL,
      "torchrun --nproc_per_node 8 pretrain_gpt.py --yaml-cfg none.yaml --num-layers 2 --hidden-size 64 "
      "--num-attention-heads 4 --bf16\n",
      "whose configuration none.yaml is not here");
}

/* Levanter: FSDP over the data axis; what each does at once follows from the devices, unless it is said. */
static void
levanter_is_read (void)
{
#define LEVANTER(model, trainer)                                                                             \
  "data: {tokenizer: NousResearch/Llama-2-7b-hf}\nmodel: {" model "}\n"                                      \
  "trainer: {mp: 'p=f32,c=bfloat16', num_train_steps: 10, " trainer "}\noptimizer: {learning_rate: 0.1}\n"
  check_read (
      "Levanter", LEVANTER ("type: llama, num_kv_heads: 8, seq_len: 4096", "train_batch_size: 1024"),
      "layers=32; hidden=4096; heads=32; kv_heads=8; ffn=11008; seq=4096; mlp=swiglu; norm=rmsnorm; "
      "tied_embeddings=false; dp_kind=xla-fsdp; zero=3; tp=1; global_batch=1024; micro_batch; recompute=full; "
      "dtype=bf16; gpus; vocab=32000; ~tokenizer NousResearch/Llama-2-7b-hf is; ~hidden 4096: the default");
  check_read (
      "Levanter",
      LEVANTER ("type: gpt2, hidden_dim: 1024, num_heads: 16, gradient_checkpointing: false",
                "train_batch_size: 64, per_device_parallelism: 4, model_axis_size: 2, fsdp_axis: null"),
      "layers=12; ffn=4096; mlp=gelu; position=learned; tied_embeddings=true; micro_batch=4; tp=2; zero=0; "
      "recompute=none");
  check_read ("Levanter", LEVANTER ("type: mixtral", "quantization: {int8: true}"),
              "layers; global_batch=512; ?model.type mixtral; ?trainer.quantization");
}

#define RUN                                                                                                  \
  "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir out --bf16 "

/* By options that no other task has; text that is generated by those of generation, without one of training. */
static void
other_tasks_of_a_trainer_are_refused (void)
{
  check_read (NULL, RUN "--learning_rate 1e-5 --beta 0.1 --max_prompt_length 512\n",
              "--max_prompt_length: another");
  check_read (NULL, RUN "--learning_rate 1e-5 --reference_model_name_or_path a\n",
              "--reference_model_name_or_path");
  check_read (NULL, RUN "--learning_rate 1e-5 --num_raft_iteration 20\n",
              "--num_raft_iteration: another task");
  check_read (NULL, RUN "--learning_rate 1e-5 --instance_prompt 'a dog'\n",
              "--instance_prompt: another task");
  check_read (
      NULL, "python cceval.py --model_name_or_path Qwen/Qwen2.5-1.5B --max_seq_length 8192 --gen_length 50\n",
      "--gen_length without an option of training");
  check_read (NULL, "deepspeed examples/chatbot.py --deepspeed ds.json --model_name_or_path gpt2 --bf16\n",
              "chatbot.py: another task");
  check (RUN "--per_device_train_batch_size 4 --max_new_tokens 32 --temperature 1\n", "micro_batch=4");
}

/* What the program declares beside the script, whether its command says it or not. */
static void
a_program_with_a_reference_model_is_refused (void)
{
#define PROGRAM(option)                                                                                      \
  "cat > train.py <<'EOF'\nimport argparse\np = argparse.ArgumentParser()\np.add_argument('--" option        \
  "', action='store_true')\nargs = p.parse_args()\nEOF\n" RUN "--per_device_train_batch_size 4\n"
  check_read (NULL, PROGRAM ("offload_reference_model"), "--offload_reference_model: another task");
  check (PROGRAM ("offload_model"), "micro_batch=4");
#undef PROGRAM
}

static void
software_of_other_accelerators_is_refused (void)
{
#define ACCELERATE(type) "compute_environment: LOCAL_MACHINE\ndistributed_type: " type "\nnum_processes: 8\n"
  check_read (NULL, ACCELERATE ("TPU"), "TPU: PyTorch/XLA");
  check_read (NULL, ACCELERATE ("MULTI_HPU"), "Intel Gaudi");
  check_read ("accelerate", ACCELERATE ("MULTI_GPU"), "gpus=8; dp_kind=ddp");
#undef ACCELERATE
  check_read (
      NULL,
      "python3 gaudi_spawn.py --world_size 8 --use_mpi run_clm.py --model_name_or_path gpt2 --do_train --bf16\n",
      "gaudi_spawn.py: software of Intel Gaudi");
  check_read (NULL, RUN "--per_device_train_batch_size 4 --use_habana\n",
              "use_habana: software of Intel Gaudi");
  check (RUN "--per_device_train_batch_size 4 --use_habana False\n", "gpus=8");
  check_read (NULL,
              "cat > fsdp.json <<'END'\n{\"xla\": true, \"xla_fsdp_v2\": true}\nEND\n" RUN
              "--per_device_train_batch_size 4 --fsdp full_shard --fsdp_config fsdp.json\n",
              "fsdp_config.xla: PyTorch/XLA");
}

/* A mesh that is not read would be another job: it is not left out. */
static void
degrees_of_unknown_programs_are_refused (void)
{
  check_read (NULL, RUN "--per_device_train_batch_size 1 --cp_degree 2\n",
              "--cp_degree 2: a degree of parallelism");
  check (RUN "--per_device_train_batch_size 1 --cp_degree 1\n", "gpus=8");
}

/* Programs some of whose options have the names of Megatron-LM's. */
static void
most_options_of_another_program_are_another (void)
{
#define OTHER                                                                                                         \
  "--num-layers 4 --embedding-dim 4096 --seq-length 2048 --micro-batch-size 1 --fp16 --model-name a --total-steps 9 " \
  "--pipeline-group-size 8 --data-group-size 1 --pp-mode gpipe --dp-mode allreduce --job-id 0 --cuda-id 0 "
  check_read (NULL, "python dist_clm_train.py " OTHER "\n",
              "dist_clm_train.py: most of its options are not those of Megatron-LM");
  check ("torchrun --nproc_per_node 8 dist_clm_train.py " OTHER "--hidden-size 64 --num-attention-heads 4\n",
         "hidden=64; ?--pipeline-group-size 8");
#undef OTHER
}

/* VeOmni has "model", "data" and "train" as Megatron-Bridge has; options of Megatron-Bridge's "train" that are not
 * known are told. */
static void
files_with_train_are_told_apart (void)
{
  check_read (
      "Megatron-Bridge",
      "model: {num_layers: 4, hidden_size: 64, num_attention_heads: 4, seq_length: 64}\n"
      "train: {train_iters: 9, global_batch_size: 8, micro_batch_size: 1, manual_gc: true, new_thing: 2}\n",
      "micro_batch=1; global_batch=8; ?train.new_thing 2; -train.manual_gc");
}

/* VeOmni: what nothing says is as its classes have it; names of 2025, and of 2026. */
static void
veomni_is_read (void)
{
#define VEOMNI(model, data, train)                                                                           \
  "model: {" model "}\ndata: {train_path: a, " data "}\ntrain:\n  global_batch_size: 64\n" train
  check_read (
      "VeOmni",
      VEOMNI ("model_path: Qwen/Qwen3-8B", "max_seq_len: 4096",
              "  micro_batch_size: 2\n  accelerator: {ulysses_size: 2, ep_size: 4, dp_replicate_size: 2}\n"),
      "layers=36; seq=4096; micro_batch=2; global_batch=64; cp=2; cp_kind=ulysses; ep=4; dp_kind=fsdp2; zero=3; "
      "recompute=full; dtype=bf16; grad_dtype=fp32; attention_kernel=fa2; gpus; ?dyn_bsz: samples are packed");
  check_read (
      "VeOmni",
      VEOMNI ("model_path: Qwen/Qwen3-8B", "max_seq_len: 4096",
              "  accelerator: {fsdp_config: {mixed_precision: {enable: false}, offload: true}}\n"
              "  gradient_checkpointing: {enable: false}\n  new_thing: 3\n  optimizer: {type: muon}\n"),
      "micro_batch=1; recompute=none; ?fsdp_offload_params; ?optimizer muon; ?train.new_thing 3; cp_kind");
  check_read (
      "VeOmni",
      VEOMNI ("config_path: Qwen/Qwen3-8B, attn_implementation: sdpa", "max_seq_len: 512",
              "  data_parallel_mode: ddp\n  enable_gradient_checkpointing: false\n  optimizer: adamw\n"
              "  expert_parallel_size: 1\n"),
      "layers=36; dp_kind=ddp; recompute=none; attention=flash; optimizer=adam");
  check_read (NULL, VEOMNI ("model_path: a", "data_type: diffusion", "  accelerator: {ep_size: 1}\n"),
              "data.data_type diffusion: another task");
  check_read (
      NULL,
      VEOMNI ("model_path: a", "max_seq_len: 8", "  accelerator: {ep_size: 1}\ndpo_config: {beta: 1}\n"),
      "dpo_config: another task");
#undef VEOMNI
}

/* Fine-tuning by slime is in bf16 with a distributed optimizer, whatever the command says. */
static void
slime_sets_what_it_does_not_say (void)
{
#define SLIME                                                                                                \
  "ray job submit -- python3 train_async.py --actor-num-nodes 2 --actor-num-gpus-per-node 8 --num-layers 8 " \
  "--hidden-size 512 --num-attention-heads 8 --loss-type sft_loss --seq-length 64 --micro-batch-size 1 "
  check (SLIME "\n", "gpus=16; zero=1; dtype=bf16");
  check (SLIME "--fp16\n", "dtype=fp16; zero=1");
#undef SLIME
}

/* What submits a command to nodes starts its processes on each. */
static void
nodes_of_a_submitter_count (void)
{
#define SUBMIT(nodes, machines)                                                                              \
  "python mason.py --cluster a --num_nodes " nodes " --gpus 8 -- accelerate launch --mixed_precision bf16 "  \
  "--num_processes 8 " machines                                                                              \
  "sft.py --model_name_or_path Qwen/Qwen2.5-1.5B --per_device_train_batch_size 1\n"
  check (SUBMIT ("4", ""), "gpus=32; global_batch=32; ~gpus 32: 4 nodes");
  check (SUBMIT ("1", ""), "gpus=8");
  check (SUBMIT ("4", "--num_machines 1 "), "gpus=8");
  check (SUBMIT ("4", "--num_processes 32 "), "gpus=32"); /* those of all */
#undef SUBMIT
}

/* mpirun without a number that is decided has all of the job. */
static void
mpirun_has_all_of_the_job (void)
{
#define MPI(n)                                                                                               \
  "#!/bin/bash\n#PBS -l select=4:ncpus=8:mpiprocs=8:ngpus=8\nN=$(cat $HOSTS)\nmpirun " n                     \
  " python pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 64 "        \
  "--micro-batch-size 1 --bf16\n"
  check (MPI ("-np $((N * 8))"), "gpus=32; ~gpus 32: all of the job's nodes");
  check (MPI ("-np 16"), "gpus=16");
#undef MPI
}

/* What a script counts of its nodes and GPUs is what the batch system was asked for. */
static void
counts_of_nodes_are_those_of_the_job (void)
{
#define COUNT(lines, nodes, each)                                                                            \
  "#!/bin/bash\n" lines "\nN=" nodes "\nG=" each                                                             \
  "\ntorchrun --nnodes $N --nproc_per_node $G pretrain_gpt.py "                                              \
  "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 64 --micro-batch-size 1 --bf16\n"
#define SLURM "#SBATCH --nodes=4\n#SBATCH --gres=gpu:8"
  check (
      COUNT (SLURM, "$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | wc -l)", "$(nvidia-smi -L | wc -l)"),
      "gpus=32");
  check (COUNT (SLURM, "`scontrol show hostname $SLURM_NODELIST|sort|wc -l`",
                "$(nvidia-smi --list-gpus | wc -l )"),
         "gpus=32");
  check (COUNT ("#PBS -l select=4:ngpus=8", "$(cat $PBS_NODEFILE | sort | uniq | wc -l)", "8"), "gpus=32");
  check (COUNT ("#PBS -l select=4:ngpus=8", "$(cat $PBS_NODEFILE | wc -l)", "8"),
         "gpus"); /* one line a rank */
  check (COUNT (SLURM, "$(scontrol show hostnames | grep a | wc -l)", "8"), "gpus");
  check (COUNT ("", "2", "$(nvidia-smi -L | wc -l)"), "gpus");
#undef COUNT
#undef SLURM
}

/* A script that only submits another one, or hands it arguments, which lies beside it: the program is that one's. */
static void
a_script_beside_says_the_program (void)
{
#define MEGATRON                                                                                             \
  "torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 4 --hidden-size $1 --num-attention-heads 4 "     \
  "--seq-length 64 --micro-batch-size 1\n"
  static const char *const rows[][4] = {
    { "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:8\nsrun bash ./job.sh\n",
      "#!/bin/bash\n" RUN "--per_device_train_batch_size 4\n", "Hugging Face Trainer", "gpus=8" },
    { "sh job.sh 512\n", "#!/bin/bash\n" MEGATRON, "Megatron-LM", "hidden=512" },
  };
  g_autofree char *folder = g_dir_make_tmp ("lockstep-beside-XXXXXX", NULL),
                  *a = g_build_filename (folder, "submit.sh", NULL),
                  *b = g_build_filename (folder, "job.sh", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsImport import;
    LS_CHECK (g_file_set_contents (a, rows[i][0], -1, NULL) && g_file_set_contents (b, rows[i][1], -1, NULL));
    if (LS_CHECK (ls_import_load ((const char *const[]) { a, NULL }, &import, diags))) {
      LS_CHECK_STR (import.program, rows[i][2]);
      check_one (&import, rows[i][3], "beside");
      ls_import_clear (&import);
    }
  }
  g_remove (a);
  g_remove (b);
  g_rmdir (folder);
}

LS_TEST_SUITE (LS_TEST (other_tasks_of_a_trainer_are_refused),
               LS_TEST (a_program_with_a_reference_model_is_refused),
               LS_TEST (software_of_other_accelerators_is_refused),
               LS_TEST (degrees_of_unknown_programs_are_refused),
               LS_TEST (most_options_of_another_program_are_another),
               LS_TEST (files_with_train_are_told_apart), LS_TEST (veomni_is_read),
               LS_TEST (slime_sets_what_it_does_not_say), LS_TEST (nodes_of_a_submitter_count),
               LS_TEST (mpirun_has_all_of_the_job), LS_TEST (counts_of_nodes_are_those_of_the_job),
               LS_TEST (a_script_beside_says_the_program), LS_TEST (arguments_in_yaml_are_read),
               LS_TEST (levanter_is_read), LS_TEST (verl_is_read), LS_TEST (configurations_are_told_apart),
               LS_TEST (a_name_alone_is_no_program), LS_TEST (a_file_of_fsdp_is_read),
               LS_TEST (classes_of_forks_are_told), LS_TEST (adapters_are_on_all_layers_or_by_a_pattern))
