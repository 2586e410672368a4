/* Pins how objects of Kubernetes, and workloads of XPK, are read: which command a container runs, with which
 * variables, on how many GPUs; and that what a file leaves open is told. */
#include "ls_test.h"

#include "import_check.h"

#define GPT                                                                                                  \
  "pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --bf16 "           \
  "--micro-batch-size 1"

/* A PyTorchJob; specs: its replicas with containers. */
#define TORCH_JOB(spec) "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: gpt}\nspec:\n" spec
#define REPLICA(kind, n, container)                                                                          \
  "    " kind ":\n      replicas: " n "\n      template:\n        spec:\n          containers:\n"            \
  "            - name: pytorch\n" container
#define ROW(text)             "              " text "\n"
#define WORKERS(n, container) TORCH_JOB ("  pytorchReplicaSpecs:\n" REPLICA ("Worker", n, container))

static void
a_command_is_that_of_the_container (void)
{
  check (WORKERS ("4",
                  ROW ("env: [{name: TP, value: \"4\"}, {name: NCCL_ALGO, value: Ring}]")
                      ROW ("resources: {limits: {nvidia.com/gpu: 8}}")
                          ROW ("command: [torchrun, --nproc_per_node=8, --nnodes=4]")
                              ROW ("args: [pretrain_gpt.py, --num-layers, 2, --hidden-size, 64, --bf16,")
                                  ROW ("  --num-attention-heads=4, --seq-length=8, --micro-batch-size=1,")
                                      ROW ("  --tensor-model-parallel-size, $(TP)]")),
         "gpus=32; layers=2; tp=4; global_batch=8; ~a PyTorchJob of Kubernetes: 4 pods with 8 accelerators "
         "each; ?NCCL_ALGO Ring");
}

/* $(NAME) is the container's, $(date) the shell's; a script in the container has its quotes. */
static void
a_script_of_the_container_is_followed (void)
{
  check (
      "apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: 2\n  template:\n    spec:\n"
      "      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}\n"
      "      containers:\n      - name: main\n        env: [{name: LAYERS, value: 3}]\n"
      "        resources: {requests: {nvidia.com/gpu: \"4\"}}\n        command: [bash, -exc]\n        args:\n"
      "        - |\n          echo 'start' $(date)\n          ARGS=\"--num-layers $(LAYERS)\"\n"
      "          torchrun --nproc_per_node=4 --nnodes=2 pretrain_gpt.py $ARGS --hidden-size 64 "
      "--num-attention-heads 4 --seq-length 8 --micro-batch-size 1\n          exit 0\n",
      "gpus=8; layers=3; ~nodes with gke-accelerator nvidia-h100-80gb");
}

/* training-operator: PET_NNODES without an elastic policy, PET_NPROC_PER_NODE with a master. */
static void
operators_say_what_torchrun_is_not_told (void)
{
#define GPUS  ROW ("resources: {limits: {nvidia.com/gpu: 8}}")
#define PLAIN GPUS ROW ("command: [bash, -c, \"torchrun " GPT "\"]")
  check (TORCH_JOB ("  nprocPerNode: \"8\"\n  pytorchReplicaSpecs:\n" REPLICA ("Master", "1", PLAIN)
                        REPLICA ("Worker", "3", PLAIN)),
         "gpus=32");
  check (TORCH_JOB ("  pytorchReplicaSpecs:\n" REPLICA ("Master", "1", PLAIN)), "gpus=8"); /* auto */
  check (WORKERS ("4", PLAIN), "gpus=4; ?starts 4 processes; its pods have 32 GPUs");
  check (TORCH_JOB ("  elasticPolicy: {minReplicas: 1, maxReplicas: 9, nProcPerNode: 8}\n"
                    "  pytorchReplicaSpecs:\n" REPLICA ("Worker", "3", PLAIN)),
         "gpus=24");
  check (
      WORKERS ("2", GPUS ROW ("command: [bash, -c, \"torchrun --nproc_per_node=auto --nnodes=2 " GPT "\"]")),
      "gpus=16");
  check ("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec:\n  trainer:\n    numNodes: 2\n"
         "    numProcPerNode: 4\n    resourcesPerNode: {limits: {nvidia.com/gpu: 4}}\n"
         "    command: [bash, -c, \"torchrun " GPT "\"]\n",
         "gpus=8");
}

static void
other_launchers_start_on_pods (void)
{
  check (
      "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspec:\n  slotsPerWorker: 8\n  mpiReplicaSpecs:\n" REPLICA (
          "Launcher", "1", ROW ("command: [bash, -c, \"mpirun -np 16 python " GPT "\"]"))
          REPLICA ("Worker", "2", GPUS),
      "gpus=16");
  check (WORKERS ("2", GPUS ROW ("command: [bash, -c, \"deepspeed --hostfile=/etc/hosts " GPT "\"]")),
         "gpus=16; ~gpus 16: all that its pods have");
  check ("apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nspec:\n  replicas: 1\n"
         "  leaderWorkerTemplate:\n    size: 4\n    workerTemplate:\n      spec:\n        containers:\n"
         "        - name: main\n          resources: {limits: {nvidia.com/gpu: 8}}\n"
         "          command: [bash, -c, \"torchrun --nnodes=4 --nproc_per_node=8 " GPT "\"]\n",
         "gpus=32");
}

/* What envsubst and Argo put in. */
static void
values_that_are_put_in_are_variables (void)
{
#define NODES                                                                                                \
  ROW ("resources: {limits: {nvidia.com/gpu: 8}}")                                                           \
  ROW ("command: [bash, -c, \"torchrun --nnodes=$NODES --nproc_per_node=8 " GPT "\"]")
  check (WORKERS ("$NODES", NODES), "gpus; ?how many pods there are: $NODES is not said here");
  check (
      "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec:\n  arguments:\n    parameters:\n"
      "    - {name: num-gpus, value: 4}\n  templates:\n  - name: main\n    container:\n"
      "      command: [bash, -c]\n      args: [\"deepspeed --num_gpus {{workflow.parameters.num-gpus}} " GPT
      "\"]\n",
      "gpus=4");
}

/* Files of a ConfigMap, one of several documents. */
static void
files_of_a_config_map_are_there (void)
{
  check ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata:\n  run.sh: |\n    torchrun "
         "--nproc_per_node $GPUS " GPT "\n  gpus: \"2\"\n---\n"
         "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: main\n    env:\n    - name: GPUS\n"
         "      valueFrom: {configMapKeyRef: {name: cm, key: gpus}}\n    command: [bash, /scripts/run.sh]\n",
         "gpus=2; layers=2");
}

static void
what_launches_nothing_is_refused (void)
{
  check_read (NULL, "apiVersion: v1\nkind: Pod\nspec:\n  containers: [{name: a, image: b}]\n",
              "no container of them has a command");
  check_read (NULL, "apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: {{ .Values.nodes }}\n",
              "a template of objects of Kubernetes");
  check_read (NULL, "queue: null\nworkload: {gpus: 64, image: nemo}\n", "values of a chart of Helm");
  check_read (NULL,
              "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - {name: a, command: [python, serve.py]}\n",
              "it starts serve.py");
}

#define MAXTEXT                                                                                              \
  "python3 -m MaxText.train MaxText/configs/base.yml model_name=llama3.1-70b max_target_length=8192 "        \
  "remat_policy=full attention=flash per_device_batch_size=2"

/* JAX has two devices on a chip of TPU7x, and one on one of v5p, whose names count TensorCores. */
static void
slices_of_tpus_say_how_many_chips (void)
{
#define XPK(type, n) "#!/bin/bash\nxpk workload create --" type " --num-slices=" n " --command=\"" MAXTEXT
  check (XPK ("tpu-type=v6e-256", "2") "\"", "gpus=512; micro_batch=2; global_batch=1024; zero=3@256");
  check (XPK ("tpu-type=v5p-512", "1") "\"", "gpus=256; micro_batch=2; global_batch=512; zero=3");
  check (XPK ("device-type=tpu7x-4x4x4", "1") "\"",
         "gpus=64; micro_batch=4; global_batch=256; ~micro_batch: sequences of a chip");
  check (XPK ("device-type=tpu7x-4x4x4", "1") " ici_fsdp_parallelism=64 ici_data_parallelism=2\"",
         "gpus=64; micro_batch=4; global_batch=256; zero=3@32");
  check (XPK ("device-type=v6e-64", "1") " ici_fsdp_parallelism=32\"",
         "gpus=32; ?its degrees make 32 accelerators, and it is started on 64");
  check (
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec:\n  replicatedJobs:\n  - name: slice\n"
      "    replicas: 2\n    template:\n      spec:\n        parallelism: 16\n        template:\n"
      "          spec:\n            nodeSelector:\n              cloud.google.com/gke-tpu-accelerator: tpu7x\n"
      "              cloud.google.com/gke-tpu-topology: 4x4x4\n            containers:\n"
      "            - name: jax\n              resources: {limits: {google.com/tpu: 4}}\n"
      "              command: [bash, -c, \"" MAXTEXT "\"]\n",
      "gpus=128; micro_batch=4; global_batch=512; zero=3@64");
}

/* "run" of a task on its nodes, with its variables; what has no "run" is another file. */
static void
a_task_of_skypilot_is_its_script (void)
{
#define SKY(accelerators, run)                                                                               \
  "name: gpt\nresources:\n  accelerators: " accelerators "\nnum_nodes: 2\nenvs:\n  TP: 4\nrun: |\n  " run "\n"
  check (SKY ("H100:8",
              "torchrun --nnodes=$SKYPILOT_NUM_NODES --nproc_per_node=$SKYPILOT_NUM_GPUS_PER_NODE " GPT
              " --tensor-model-parallel-size $TP"),
         "gpus=16; tp=4; layers=2; ~a task of SkyPilot: 2 nodes with 8 accelerators each");
  check (SKY ("H100:8",
              "N=`echo \"$SKYPILOT_NODE_IPS\" | wc -l`\n  if [ $SKYPILOT_NODE_RANK == 0 ]; then\n"
              "    torchrun --nnodes=$N --nproc_per_node=8 " GPT "\n  fi"),
         "gpus=16");
  check (SKY ("{A100: 4}",
              "torchrun --nnodes=$SKYPILOT_NUM_NODES --nproc_per_node=$SKYPILOT_NUM_GPUS_PER_NODE " GPT),
         "gpus=8");
  check_read (NULL, "resources: {accelerators: H100:8}\nrun: |\n  echo hi\n", "nothing here launches");
  check_read (NULL, "resources: {accelerators: H100:8}\nnum_nodes: 2\n", "configuration of no program");
#undef SKY
}

LS_TEST_SUITE (LS_TEST (a_task_of_skypilot_is_its_script), LS_TEST (a_command_is_that_of_the_container),
               LS_TEST (a_script_of_the_container_is_followed),
               LS_TEST (operators_say_what_torchrun_is_not_told), LS_TEST (other_launchers_start_on_pods),
               LS_TEST (values_that_are_put_in_are_variables), LS_TEST (files_of_a_config_map_are_there),
               LS_TEST (what_launches_nothing_is_refused), LS_TEST (slices_of_tpus_say_how_many_chips))
