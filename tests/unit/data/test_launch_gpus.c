/* Pins on how many GPUs a script is taken to start a job: by its launcher, by lines of a batch system, by what
 * another script starts; and that a launcher, or words of one, that are not known leave it open. Besides, what
 * such scripts do before they launch, and what variables that they set change. */
#include "ls_test.h"

#include "import_check.h"

#define GPT                                                                                                  \
  "pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 1 --seq-length 8 --bf16 "           \
  "--micro-batch-size 1"

/* torchrun's range of nodes is one number where both ends are. */
static void
ranges_are_told (void)
{
  LsImport import;
  check ("torchrun --nproc_per_node 8 --nnodes 2:4 " GPT, "gpus=32; ?--nnodes 2:4: as many nodes");
  check ("torchrun --nproc_per_node 8 --nnodes 4:44 " GPT, "?--nnodes 4:44: as many nodes");
  if (!read_text ("torchrun --nproc_per_node 8 --nnodes 4:4 " GPT, &import))
    return;
  check_one (&import, "gpus=32", "4:4");
  LS_CHECK (!has_line (import.unknown, "--nnodes"));
  ls_import_clear (&import);
}

static void
launchers_say_how_many (void)
{
  check ("torchrun --nproc_per_node 8 --nnodes 2 " GPT, "gpus=16");
  check ("torchrun " GPT, "gpus=1");
  check ("mpirun -np 64 python " GPT, "gpus=64");
  check ("msrun --worker_num 16 --local_worker_num 8 " GPT, "gpus=16");
  check ("aprun -n 64 -N 8 python3 " GPT, "gpus=64");
  check ("mpiexec.hydra -n 16 python " GPT, "gpus=16");
  check ("srun -n 32 python " GPT, "gpus=32");
  check ("srun -N 4 --ntasks-per-node 8 python " GPT, "gpus=32");
  check ("deepspeed --num_gpus 4 " GPT, "gpus=4");
  check ("deepspeed --include localhost:0,1,3 " GPT, "gpus=3");
  check ("deepspeed --include worker-1:0,1@worker-2:0 " GPT, "gpus");
  check ("python " GPT, "gpus=1");
  check ("nohup python3 -u " GPT, "gpus=1");
  check ("CUDA_VISIBLE_DEVICES=0 /usr/bin/python " GPT, "gpus=1");
}

static void
what_is_not_known_leaves_it_open (void)
{
  check ("jsrun -n 64 python " GPT, "gpus; ?how jsrun starts python, and on how many GPUs");
  check ("$LAUNCHER python " GPT, "gpus");
  check ("torchrun $ARGS " GPT, "gpus; ?options of the launcher: $ARGS");
  check (
      "A=\"--nproc_per_node 8 --nnodes 1\"\nif [ $N -gt 1 ]; then A=\"--nproc_per_node 8 --nnodes $N\"; fi\n"
      "torchrun $A " GPT,
      "gpus; ?options of the launcher: $A");
  check ("python " GPT " --use-mpi", "gpus");
  check ("export WORLD_SIZE=$(expr $SLURM_NNODES \\* 8)\npython " GPT, "gpus");
}

static void
a_batch_system_says_how_many (void)
{
  check ("#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\nsrun python " GPT, "gpus=32");
  check ("#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:8\ndeepspeed " GPT, "gpus=8");
  check ("#!/bin/bash\n#PBS -l select=4:ncpus=8:mpiprocs=8:ngpus=8\npython " GPT, "gpus=32");
  check ("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\n"
         "if [ -z $SLURM_JOB_ID ]; then\n  sbatch \"$0\"\n  exit\nfi\nsrun python " GPT,
         "gpus=16"); /* it is run as a job already */
}

/* What sbatch is told goes before the lines of the script that it starts. */
static void
options_of_sbatch_go_before_lines (void)
{
#define JOB                                                                                                   \
  "cat > job.sh <<'END'\n#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=8\n"                         \
  "torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 pretrain_gpt.py --num-layers $LAYERS --hidden-size 64 " \
  "--num-attention-heads 1 --seq-length 8 --micro-batch-size 1\nEND\n"
  check ("#!/bin/bash\n" JOB "sbatch --export=ALL,LAYERS=3 job.sh\n", "gpus=8; layers=3");
  check ("#!/bin/bash\n" JOB "N=4\nid=$(sbatch --parsable --nodes=$N --export=ALL,LAYERS=3 job.sh)\n",
         "gpus=32; layers=3");
  check ("#!/bin/bash\n" JOB "sbatch -N $1 --export=ALL,LAYERS=3 job.sh\n",
         "gpus=8; ?what sbatch is told by -N: the script's own lines are taken");
#undef JOB
}

/* MindSpeed-LLM says by a name of its own how context parallelism exchanges. */
static void
algorithms_of_context_are_read (void)
{
#define MSRUN                                                                                                \
  "msrun --worker_num 16 --local_worker_num 8 " GPT " --context-parallel-size 2 --context-parallel-algo "
  check (MSRUN "ulysses_cp_algo", "gpus=16; cp=2; cp_kind=ulysses");
  check (MSRUN "megatron_cp_algo", "cp_kind=ring");
  check (MSRUN "kvallgather_cp_algo", "cp_kind=all-gather");
  check (MSRUN "hybrid_cp_algo", "cp_kind=ring; ?--context-parallel-algo hybrid_cp_algo: keys and values");
#undef MSRUN
}

/* A step of a job sees what it is given; without ALL, nothing else. */
static void
options_of_srun_are_variables (void)
{
#define SRUN(options)                                                                                        \
  "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\nexport NCCL_PROTO=LL\nsrun " options           \
  " python " GPT
  check (SRUN ("--export=ALL,NCCL_ALGO=Ring"),
         "gpus=16; ?NCCL_ALGO Ring: NCCL is taken; ?NCCL_PROTO LL: NCCL is");
  check (SRUN ("--export=NCCL_ALGO=Ring"),
         "gpus=16; ?NCCL_ALGO Ring: NCCL is taken; ?NCCL_PROTO: it is set and not");
  check (SRUN ("--export=NONE"), "gpus=16; ?NCCL_PROTO: it is set and not exported");
  check (SRUN (""), "gpus=16; ?NCCL_PROTO LL: NCCL is taken");
}

static void
gradients_are_summed_as_the_optimizer_has_them (void)
{
  check ("python " GPT, "grad_dtype=fp32");
  check ("python " GPT " --use-precision-aware-optimizer --main-grads-dtype bf16", "grad_dtype=bf16");
  check ("python " GPT
         " --use-precision-aware-optimizer --main-grads-dtype bf16 --accumulate-allreduce-grads-in-fp32",
         "grad_dtype=fp32");
  check ("python " GPT " --use-precision-aware-optimizer --main-grads-dtype fp32", "grad_dtype=fp32");
}

/* Of what Megatron-LM asserts. */
static void
jobs_that_do_not_start_are_told (void)
{
  check ("python " GPT " --exp-avg-dtype fp8",
         "!--exp-avg-dtype fp8 without --use-precision-aware-optimizer");
  check ("python " GPT " --main-grads-dtype bf16", "!--main-grads-dtype bf16 without --use-precision");
  check ("python " GPT " --encoder-num-layers 3", "!--num-layers 2 and --encoder-num-layers 3");
  LsImport import;
  if (read_text ("python " GPT " --exp-avg-dtype fp32 --encoder-num-layers 2", &import))
    LS_CHECK_INT (import.conflicts->len, ==, 0);
  ls_import_clear (&import);
}

static void
other_tasks_are_refused (void)
{
  check_read (NULL, "torchrun " GPT " --max-new-tokens 256", "--max-new-tokens: text is generated");
  check_read (NULL, "torchrun " GPT " --advantage-estimator grpo", "--advantage-estimator: reinforcement");
  check_read (NULL, "torchrun " GPT " --stage dpo", "--stage: learning from preferences");
  check ("torchrun " GPT " --stage sft", "gpus=1");
}

#define TRAINER                                                                                              \
  "deepspeed --num_gpus 8 train.py --model_name_or_path Qwen/Qwen2.5-1.5B --bf16 "                           \
  "--per_device_train_batch_size 4 --deepspeed "

/* "--$X" is no value of the option before it. */
static void
an_option_that_is_not_said_may_be_the_format (void)
{
  static const char gpt[]
      = "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 1 "
        "--seq-length 8 --micro-batch-size 1 --no-gradient-accumulation-fusion --$DTYPE",
      trainer[] = "torchrun train.py --model_name_or_path Qwen/Qwen2.5-1.5B --do_train "
                  "--per_device_train_batch_size 4 $precision";
  check (gpt, "dtype; ?--bf16 may be among the words; ?what $DTYPE");
  check (trainer, "dtype; ?bf16 or fp16 may be among the words; ?what $precision");
}

/* A configuration whose name is not decided is not one without a stage. */
static void
a_file_without_a_name_says_nothing (void)
{
  check (TRAINER "$DIR/ds_zero2.json", "gpus=8; zero; ?the ZeRO stage and its buckets");
  check (TRAINER "cfg/ds_zero2.json", "gpus=8; zero; ?the ZeRO stage and its buckets");
}

/* Variables change a job too, whatever program a script starts. */
static void
the_environment_is_heeded (void)
{
#define ARGUMENTS                                                                                            \
  "--model_name_or_path Qwen/Qwen2.5-1.5B --per_device_train_batch_size 2 --max_seq_length 512 --bf16 "      \
  "--output_dir out "
  static const char *const few_nics[] = { "mlx5_0,mlx5_1:1", "=mlx5_0", "mlx5_0,", "rdma0", "bnxt_re0:1" };
  static const char *const all_nics[]
      = { "mlx5", "mlx5_", "bnxt_re", "^mlx5_bond_0", "mlx5_0,rdma", "a_0,a_1,a_2,a_3,a_4,a_5,a_6,a_7" };
#define MEGATRON                                                                                             \
  "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 "   \
  "--seq-length 1024 --micro-batch-size 4\n"
  check ("export CUDA_LAUNCH_BLOCKING=1\n" MEGATRON, "launch_blocking=true");
  check ("export CUDA_LAUNCH_BLOCKING=0\n" MEGATRON, "launch_blocking");
  check ("export HIP_LAUNCH_BLOCKING=1\n" MEGATRON, "launch_blocking=true");
  check ("export LIBTPU_INIT_ARGS=--xla_tpu_enable_async_collective_fusion=true\n" MEGATRON,
         "?LIBTPU_INIT_ARGS: what communicates");
  check ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True torchrun --nproc_per_node 2 train.py " ARGUMENTS,
         "cuda_allocator=expandable");
  check ("export NCCL_ALGO=Ring NCCL_NVLS_ENABLE=0 NCCL_IB_DISABLE=0 NCCL_PROTO=$P\n" MEGATRON,
         "?NCCL_ALGO Ring: NCCL; ?NCCL_NVLS_ENABLE 0: NCCL; ?NCCL_PROTO: its value is $P");
  check ("export RCCL_MSCCLPP_ENABLE=1\n" MEGATRON, "?RCCL_MSCCLPP_ENABLE 1: NCCL is taken to choose");
  check ("export NVTE_FUSED_ATTN_CK=0\n" MEGATRON, "attention_kernel=aotriton");
  check ("export NVTE_FLASH_ATTN=0 NVTE_FUSED_ATTN=1 NVTE_FUSED_ATTN_CK=0\n" MEGATRON,
         "attention_kernel=aotriton");
  check ("export NVTE_FUSED_ATTN_CK=1 TORCH_ROCM_FA_PREFER_CK=0\n" MEGATRON, "attention_kernel");
  check ("export NVTE_FUSED_ATTN_CK=0 NVTE_FUSED_ATTN_AOTRITON=0\n" MEGATRON, "attention_kernel=fa2");
  check ("export NVTE_FUSED_ATTN=0 NVTE_FUSED_ATTN_CK=0\n" MEGATRON, "attention_kernel=fa2");
  check ("export NVTE_FLASH_ATTN=0 NVTE_FUSED_ATTN_AOTRITON=0\n" MEGATRON, "attention_kernel=cudnn");
  check ("export TORCH_ROCM_FA_PREFER_CK=1\n" MEGATRON, "attention_kernel");
  check ("export TORCH_ROCM_FA_PREFER_CK=1\ntorchrun --nproc_per_node 2 train.py " ARGUMENTS,
         "attention_kernel=fa2");
  check ("export NVTE_FUSED_ATTN=0\ntorchrun --nproc_per_node 2 train.py " ARGUMENTS, "attention_kernel");
  for (guint i = 0; i < G_N_ELEMENTS (few_nics); i++) {
    g_autofree char *text = g_strconcat ("export NCCL_IB_HCA=", few_nics[i], "\n" MEGATRON, NULL),
                    *line
        = g_strdup_printf ("?NCCL_IB_HCA %s: jobs of several nodes use all NICs", few_nics[i]);
    check (text, line);
  }
  for (guint i = 0; i < G_N_ELEMENTS (all_nics); i++) {
    g_autofree char *text = g_strconcat ("export NCCL_IB_HCA=", all_nics[i], "\n" MEGATRON, NULL);
    LsImport import = { 0 };
    if (read_text (text, &import))
      LS_CHECK (!has_line (import.unknown, "NCCL_IB_HCA"));
    ls_import_clear (&import);
  }
  check (
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\nNCCL_IB_DISABLE=0\nCUDA_LAUNCH_BLOCKING=1\n" MEGATRON,
      "?PYTORCH_CUDA_ALLOC_CONF: it is set and not exported; ?CUDA_LAUNCH_BLOCKING: it is set and not exported");
  check (
      "NCCL_ALGO=Ring\nNCCL_PROTO=LL\nexport NCCL_PROTO X\nset -euo pipefail\ndeclare -x NCCL_MIN_CTAS=4\nset -a\n"
      "NCCL_MAX_CTAS=8\nset +o allexport\nNCCL_NTHREADS=64\n" MEGATRON,
      "?NCCL_ALGO: it is set and not exported; ?NCCL_PROTO LL: NCCL; ?NCCL_MIN_CTAS 4: NCCL; ?NCCL_MAX_CTAS 8: NCCL; "
      "?NCCL_NTHREADS: it is set and not exported");
  check ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True CUDA_LAUNCH_BLOCKING=1 python prep.py\n" MEGATRON,
         "cuda_allocator; launch_blocking");
  check (MEGATRON "\nexport CUDA_LAUNCH_BLOCKING=1\n", "launch_blocking");
#define SWIFT "swift sft --model Qwen/Qwen2.5-1.5B --max_length 2048\n"
  check ("#!/bin/bash\nNPROC_PER_NODE=4\nexport CUDA_VISIBLE_DEVICES=0\n" SWIFT, "gpus=1");
  check ("#!/bin/bash\nexport NPROC_PER_NODE=4\n" SWIFT, "gpus=4");
#undef SWIFT
  check ("CUDA_LAUNCH_BLOCKING=0 python prep.py\nCUDA_LAUNCH_BLOCKING=1\n" MEGATRON,
         "launch_blocking; ?CUDA_LAUNCH_BLOCKING: it is set and not exported");
  check (
      "A=2\nA=9 B=3 python prep.py\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
      "--num-attention-heads 8 --tensor-model-parallel-size $A --seq-length 1024 --micro-batch-size ${B:-4}\n",
      "tp=2; micro_batch=4");
  check ("export NVTE_FLASH_ATTN=0\nexport NVTE_FUSED_ATTN=0\n" MEGATRON,
         "attention=unfused; ~NVTE_FUSED_ATTN are 0");
  check ("torchrun --nproc_per_node 8 train.py --language-model-type yi --num-layers 8 --hidden-size 1024 "
         "--num-attention-heads 8 --seq-length 261 --decoder-seq-length 3200 --micro-batch-size 4\n",
         "seq=3200; ~--decoder-seq-length, as");
  check ("export NVTE_FUSED_ATTN=0\n" MEGATRON, "attention=flash; attention_kernel=fa2");
  check ("export NVTE_FLASH_ATTN=0\nexport NVTE_FUSED_ATTN=1\n" MEGATRON, "attention_kernel=cudnn");
  check ("export NVTE_FLASH_ATTN=1\nexport NVTE_FUSED_ATTN=1\n" MEGATRON,
         "attention=flash; attention_kernel");
#define BACKEND(kind)                                                                                        \
  "torchrun --nproc_per_node 8 pretrain_gpt.py --attention-backend " kind " --num-layers 8 "                 \
  "--hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --micro-batch-size 4\n"
  check (BACKEND ("flash"), "attention=flash; attention_kernel=fa2");
  check (BACKEND ("fused"), "attention=flash; attention_kernel=cudnn");
  check (BACKEND ("auto"), "attention=flash; attention_kernel");
  check ("export NVTE_FUSED_ATTN_CK=0\n" BACKEND ("fused"), "attention=flash; attention_kernel=aotriton");
#undef BACKEND
  check ("NVTE_FUSED_ATTN=0\n" MEGATRON, "attention_kernel; ?NVTE_FUSED_ATTN: it is set and not exported");
#undef MEGATRON
#undef ARGUMENTS
}

/* Transformer Engine's norms by cuDNN: of a script, of a test's variables, of a benchmark's; of one way alone
 * it is told. */
static void
norms_by_cudnn_are_heeded (void)
{
#define MEGATRON                                                                                             \
  "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 "   \
  "--seq-length 1024 --micro-batch-size 4"
#define FORWARD  "export NVTE_NORM_FWD_USE_CUDNN=1\n"
#define BACKWARD "export NVTE_NORM_BWD_USE_CUDNN=1\n"
  check (FORWARD BACKWARD MEGATRON "\n", "kernels=megatron-core+transformer-engine-cudnn-norms");
  check (FORWARD BACKWARD MEGATRON " --use-transformer-engine-op-fuser\n",
         "kernels=megatron-core-op-fuser+transformer-engine-cudnn-norms");
  check (FORWARD BACKWARD MEGATRON " --num-experts 8 --moe-router-padding-for-fp8\n",
         "kernels=megatron-core+megatron-core-router-padding+transformer-engine-cudnn-norms");
  check (FORWARD MEGATRON "\n", "kernels; ?NVTE_NORM_FWD_USE_CUDNN without NVTE_NORM_BWD_USE_CUDNN");
  check ("export NVTE_NORM_FWD_USE_CUDNN=0\n" MEGATRON "\n", "kernels");
  check ("ENV_VARS:\n  NVTE_NORM_FWD_USE_CUDNN: 1\n  NVTE_NORM_BWD_USE_CUDNN: 1\n"
         "  PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True\nTEST_TYPE: release\nMODEL_ARGS:\n"
         "  --num-layers: 24\n  --hidden-size: 1024\n  --num-attention-heads: 16\n  --seq-length: 2048\n"
         "  --micro-batch-size: 4\n",
         "cuda_allocator=expandable; kernels=megatron-core+transformer-engine-cudnn-norms");
#undef MEGATRON
#undef FORWARD
#undef BACKWARD
}

LS_TEST_SUITE (LS_TEST (ranges_are_told), LS_TEST (launchers_say_how_many),
               LS_TEST (what_is_not_known_leaves_it_open), LS_TEST (options_of_sbatch_go_before_lines),
               LS_TEST (options_of_srun_are_variables), LS_TEST (algorithms_of_context_are_read),
               LS_TEST (a_batch_system_says_how_many),
               LS_TEST (gradients_are_summed_as_the_optimizer_has_them), LS_TEST (other_tasks_are_refused),
               LS_TEST (jobs_that_do_not_start_are_told),
               LS_TEST (an_option_that_is_not_said_may_be_the_format),
               LS_TEST (a_file_without_a_name_says_nothing), LS_TEST (the_environment_is_heeded),
               LS_TEST (norms_by_cudnn_are_heeded))
