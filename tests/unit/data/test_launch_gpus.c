/* Pins on how many GPUs a script is taken to start a job: by its launcher, by lines of a batch system, by what
 * another script starts; and that a launcher, or words of one, that are not known leave it open. Besides, what
 * such scripts do before they launch. */
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

LS_TEST_SUITE (LS_TEST (ranges_are_told), LS_TEST (launchers_say_how_many),
               LS_TEST (what_is_not_known_leaves_it_open), LS_TEST (options_of_sbatch_go_before_lines),
               LS_TEST (options_of_srun_are_variables), LS_TEST (algorithms_of_context_are_read),
               LS_TEST (a_batch_system_says_how_many),
               LS_TEST (gradients_are_summed_as_the_optimizer_has_them), LS_TEST (other_tasks_are_refused),
               LS_TEST (jobs_that_do_not_start_are_told),
               LS_TEST (an_option_that_is_not_said_may_be_the_format),
               LS_TEST (a_file_without_a_name_says_nothing))
