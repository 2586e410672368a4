#!/bin/bash
# Llama 3.1 8B on 2 nodes.
#SBATCH --nodes=2

GPUS_PER_NODE=8
TP=2
PP=2
SEQ=${SEQ:-8192}

. ./config.sh

if [ "$TP" -gt 1 ]; then
  MODEL_ARGS+=(--sequence-parallel)
fi

TRAINING_ARGS="--micro-batch-size 1 --global-batch-size $((16 * GPUS_PER_NODE)) --bf16 \
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --recompute-activations"

srun torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $SLURM_NNODES --master_addr $(hostname) pretrain_gpt.py \
  ${MODEL_ARGS[@]} \
  ${TRAINING_ARGS} \
  --tensor-model-parallel-size $TP \
  --pipeline-model-parallel-size $PP \
  --num-layers-per-virtual-pipeline-stage 4 \
  --data-path $DATA --save $1 --lr 3e-4 --train-iters 1000 \
  --moe-new-dispatcher \
  $EXTRA_ARGS
