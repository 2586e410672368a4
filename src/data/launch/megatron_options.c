#include "data/launch/megatron_options.h"

#include <glib.h>
#include <string.h>

#define MODEL(option, key)                                                                                   \
  {                                                                                                          \
    option, MEGATRON_MODEL, key, NULL                                                                        \
  }
#define STRATEGY(option, key)                                                                                \
  {                                                                                                          \
    option, MEGATRON_STRATEGY, key, NULL                                                                     \
  }
#define SWITCH(option, key)                                                                                  \
  {                                                                                                          \
    option, MEGATRON_SWITCH, key, NULL                                                                       \
  }
#define RULE(option)                                                                                         \
  {                                                                                                          \
    option, MEGATRON_RULE, NULL, NULL                                                                        \
  }
#define IGNORED(option)                                                                                      \
  {                                                                                                          \
    option, MEGATRON_IGNORED, NULL, NULL                                                                     \
  }
#define OLD(option, kind, key, until)                                                                        \
  {                                                                                                          \
    option, kind, key, until                                                                                 \
  }

/* Of several for one key the first is today's. */
static const MegatronOption table[] = {
  /* the model */
  MODEL ("num-layers", "layers"),
  MODEL ("hidden-size", "hidden"),
  MODEL ("num-attention-heads", "heads"),
  RULE ("ffn-hidden-size"),
  RULE ("kv-channels"),
  RULE ("group-query-attention"),
  RULE ("num-query-groups"),
  RULE ("multi-latent-attention"),
  RULE ("q-lora-rank"),
  RULE ("kv-lora-rank"),
  RULE ("qk-head-dim"),
  RULE ("qk-nope-head-dim"),
  RULE ("qk-pos-emb-head-dim"),
  RULE ("qk-rope-head-dim"),
  RULE ("v-head-dim"),
  MODEL ("seq-length", "seq"),
  OLD ("encoder-seq-length", MEGATRON_MODEL, "seq", NULL),
  RULE ("num-experts"),
  RULE ("moe-router-topk"),
  RULE ("topk"),
  RULE ("moe-ffn-hidden-size"),
  RULE ("moe-shared-expert-intermediate-size"),
  RULE ("moe-layer-freq"),
  RULE ("expert-interval"),
  RULE ("vocab-size"),
  RULE ("padded-vocab-size"),
  RULE ("pad-vocab-size-to"),
  RULE ("make-vocab-size-divisible-by"),
  RULE ("tokenizer-type"),
  RULE ("tokenizer-model"),
  RULE ("swiglu"),
  RULE ("squared-relu"),
  RULE ("geglu"),
  RULE ("quick-geglu"),
  RULE ("normalization"),
  RULE ("position-embedding-type"),
  RULE ("use-rotary-position-embeddings"),
  RULE ("no-position-embedding"),
  RULE ("add-position-embedding"),
  RULE ("untie-embeddings-and-output-weights"),
  RULE ("disable-bias-linear"),
  RULE ("add-bias-linear"),
  RULE ("add-qkv-bias"),
  RULE ("qk-layernorm"),
  RULE ("attention-dropout"),
  RULE ("hidden-dropout"),
  RULE ("encoder-num-layers"),
  RULE ("decoder-num-layers"),

  /* degrees */
  STRATEGY ("tensor-model-parallel-size", "tp"),
  OLD ("model-parallel-size", MEGATRON_STRATEGY, "tp", "megatron-lm-2021-04"),
  STRATEGY ("pipeline-model-parallel-size", "pp"),
  STRATEGY ("context-parallel-size", "cp"),
  STRATEGY ("expert-model-parallel-size", "ep"),
  OLD ("moe-expert-parallel-size", MEGATRON_STRATEGY, "ep", NULL),
  STRATEGY ("expert-tensor-parallel-size", "etp"),
  RULE ("num-virtual-stages-per-pipeline-rank"),
  RULE ("num-layers-per-virtual-pipeline-stage"),
  RULE ("virtual-pipeline-model-parallel-size"),
  RULE ("pipeline-model-parallel-layout"),
  RULE ("decoder-first-pipeline-num-layers"),
  RULE ("decoder-last-pipeline-num-layers"),
  RULE ("account-for-embedding-in-pipeline-split"),
  RULE ("account-for-loss-in-pipeline-split"),
  RULE ("no-pipeline-parallel"),
  RULE ("cp-comm-type"),
  SWITCH ("sequence-parallel", "sp"),
  RULE ("ds-sequence-parallel-size"),
  RULE ("world-size"),
  RULE ("data-parallel-size"),

  /* the batch */
  STRATEGY ("micro-batch-size", "micro_batch"),
  OLD ("batch-size", MEGATRON_STRATEGY, "micro_batch", "megatron-lm-2021-04"),
  STRATEGY ("global-batch-size", "global_batch"),
  RULE ("rampup-batch-size"),

  /* memory */
  RULE ("recompute-granularity"),
  RULE ("recompute-method"),
  RULE ("recompute-num-layers"),
  RULE ("recompute-modules"),
  RULE ("recompute-activations"),
  OLD ("checkpoint-activations", MEGATRON_RULE, NULL, "megatron-lm-2021-04"),
  OLD ("checkpoint-num-layers", MEGATRON_RULE, NULL, "megatron-lm-2021-04"),
  OLD ("activations-checkpoint-method", MEGATRON_RULE, NULL, "megatron-lm-2021-04"),
  OLD ("activations-checkpoint-num-layers", MEGATRON_RULE, NULL, "megatron-lm-2021-04"),
  SWITCH ("distribute-saved-activations", "partition_activations"),
  OLD ("distribute-checkpointed-activations", MEGATRON_SWITCH, "partition_activations",
       "megatron-lm-2021-04"),

  /* precision */
  RULE ("bf16"),
  RULE ("fp16"),
  RULE ("params-dtype"),
  RULE ("fp8-format"),
  RULE ("fp8"),
  RULE ("fp8-hybrid"),
  RULE ("fp8-e4m3"),
  RULE ("fp8-recipe"),
  RULE ("fp4-format"),
  RULE ("fp4-recipe"),
  SWITCH ("fp8-param-gather", "fp8_params"),
  RULE ("first-last-layers-bf16"),
  STRATEGY ("num-layers-at-start-in-bf16", "bf16_first"),
  STRATEGY ("num-layers-at-end-in-bf16", "bf16_last"),
  RULE ("accumulate-allreduce-grads-in-fp32"),
  RULE ("grad-reduce-in-bf16"),

  /* kernels */
  RULE ("use-flash-attn"),
  RULE ("use-flash-attn-v2"),
  RULE ("attention-backend"),
  RULE ("transformer-impl"),

  /* data parallelism */
  RULE ("use-distributed-optimizer"),
  RULE ("num-distributed-optimizer-instances"),
  SWITCH ("overlap-grad-reduce", "dp_overlap"),
  SWITCH ("overlap-param-gather", "gather_overlap"),
  STRATEGY ("ddp-bucket-size", "bucket_params"),
  OLD ("DDP-impl", MEGATRON_RULE, NULL, "megatron-lm-2022-05"),
  RULE ("use-torch-fsdp2"),
  RULE ("torch-fsdp2-no-reshard-after-forward"),
  RULE ("use-megatron-fsdp"),
  RULE ("use-custom-fsdp"),
  RULE ("data-parallel-sharding-strategy"),
  RULE ("deepspeed"),
  RULE ("zero-stage"),
  RULE ("clip-grad"),
  IGNORED ("no-gradient-accumulation-fusion"), /* with FSDP only, where it has no meaning */

  /* tensor and pipeline parallelism */
  SWITCH ("tp-comm-overlap", "tp_overlap"),
  RULE ("disable-tp-comm-overlap-ag"),
  RULE ("disable-tp-comm-overlap-rs"),
  RULE ("no-overlap-p2p-communication"),
  SWITCH ("overlap-p2p-communication-warmup-flush", "p2p_warmup_flush"),
  RULE ("no-scatter-gather-tensors-in-pipeline"),
  RULE ("enable-zero-bubble"),
  RULE ("zero-bubble-v-schedule"),
  SWITCH ("enable-optimizer-post-validation", "post_validation"),
  RULE ("no-async-tensor-model-parallel-allreduce"),

  /* experts */
  RULE ("moe-token-dispatcher-type"),
  STRATEGY ("moe-expert-capacity-factor", "expert_capacity"),

  /* what matters neither to time nor to memory: where data and checkpoints are, what is logged, how numbers
   * begin and learn, which order sequences have */
  IGNORED ("adam-*"),
  IGNORED ("adlr-autoresume*"),
  IGNORED ("async-save"),
  IGNORED ("attention-softmax-in-fp32"),
  IGNORED ("auto-detect-ckpt-format"),
  IGNORED ("bert-*"),
  IGNORED ("block-data-path"),
  IGNORED ("ckpt-*"),
  IGNORED ("config-logger-dir"),
  IGNORED ("consumed-*"),
  IGNORED ("cpu-offloading-num-layers"), /* without cpu-offloading it does nothing */
  IGNORED ("data-args-path"),
  IGNORED ("data-cache-path"),
  IGNORED ("data-impl"),
  IGNORED ("data-path"),
  IGNORED ("dataloader-type"),
  IGNORED ("dataset"),
  IGNORED ("deepspeed-config"), /* zero-stage says what of it matters, and is missed where it is not there */
  IGNORED ("deepspeed-mpi"),
  IGNORED ("deepspeed-activation-checkpointing"),
  IGNORED ("dist-ckpt-*"),
  IGNORED ("dist-url"),
  IGNORED ("distributed-backend"),
  IGNORED ("distributed-timeout-*"),
  IGNORED ("eod-mask-loss"),
  IGNORED ("eval-*"),
  IGNORED ("evidence-data-path"),
  IGNORED ("exit-*"),
  IGNORED ("finetune"),
  IGNORED ("hysteresis"),
  IGNORED ("ict-*"),
  IGNORED ("indexer-*"),
  IGNORED ("img-*"),
  IGNORED ("inference-*"),
  IGNORED ("init-method-*"),
  IGNORED ("initial-loss-scale"),
  IGNORED ("layernorm-epsilon"),
  IGNORED ("load"),
  IGNORED ("local-rank"),
  IGNORED ("log-*"),
  IGNORED ("logging-level"),
  IGNORED ("loss-scale"),
  IGNORED ("loss-scale-window"),
  IGNORED ("lr"),
  IGNORED ("lr-*"),
  IGNORED ("manual-gc-interval"),
  IGNORED ("mask-*"),
  IGNORED ("max-position-embeddings"),
  IGNORED ("merge-file"),
  IGNORED ("min-loss-scale"),
  IGNORED ("min-lr"),
  IGNORED ("mmap-warmup"),
  IGNORED ("mock-data"),
  IGNORED ("moe-aux-loss-coeff"),
  IGNORED ("moe-per-layer-logging"),
  IGNORED ("moe-router-bias-update-rate"),
  IGNORED ("moe-router-topk-scaling-factor"),
  IGNORED ("moe-z-loss-coeff"),
  IGNORED ("no-create-attention-mask-in-dataloader"),
  IGNORED ("no-ckpt-fully-parallel-save"),
  IGNORED ("no-load-*"),
  IGNORED ("no-log-*"),
  IGNORED ("no-mmap-bin-files"),
  IGNORED ("no-save-*"),
  IGNORED ("no-barrier-with-level-1-timing"),
  IGNORED ("norm-epsilon"),
  IGNORED ("num-classes"),
  IGNORED ("num-channels"),
  IGNORED ("num-workers"),
  IGNORED ("one-logger-*"),
  IGNORED ("onnx-safe"),
  IGNORED ("override-lr-scheduler"),
  IGNORED ("override-opt-param-scheduler"),
  IGNORED ("patch-dim"),
  IGNORED ("patch-tokenizer-type"),
  IGNORED ("pretrained-checkpoint"),
  IGNORED ("profile-*"),
  IGNORED ("query-in-block-prob"),
  IGNORED ("rank"),
  IGNORED ("reset-attention-mask"),
  IGNORED ("reset-position-ids"),
  IGNORED ("retriever-*"),
  IGNORED ("rope-scaling-factor"),
  IGNORED ("rotary-*"),
  IGNORED ("sample-rate"),
  IGNORED ("save"),
  IGNORED ("save-interval"),
  IGNORED ("seed"),
  IGNORED ("sgd-momentum"),
  IGNORED ("short-seq-prob"),
  IGNORED ("split"),
  IGNORED ("start-weight-decay"),
  IGNORED ("end-weight-decay"),
  IGNORED ("tensorboard-*"),
  IGNORED ("test-data-path"),
  IGNORED ("tiktoken-*"),
  IGNORED ("timing-log-*"),
  IGNORED ("titles-data-path"),
  IGNORED ("tokenizer-name-or-path"),
  IGNORED ("train-data-path"),
  IGNORED ("train-iters"),
  IGNORED ("train-samples"),
  IGNORED ("train-tokens"),
  IGNORED ("train-weighted-split-paths-path"),
  IGNORED ("use-checkpoint-*"),
  IGNORED ("use-cpu-initialization"),
  IGNORED ("use-mcore-models"),
  IGNORED ("use-one-sent-docs"),
  IGNORED ("valid-data-path"),
  IGNORED ("valid-weighted-split-paths-path"),
  IGNORED ("vocab-extra-ids"),
  IGNORED ("vocab-file"),
  IGNORED ("wandb-*"),
  IGNORED ("weight-decay"),
  IGNORED ("weight-decay-incr-style"),
};

static bool
fits (const char *pattern, const char *name)
{
  gsize n = strlen (pattern);
  return pattern[n - 1] == '*' ? strncmp (pattern, name, n - 1) == 0 : strcmp (pattern, name) == 0;
}

const MegatronOption *
megatron_option (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (table); i++)
    if (fits (table[i].option, name))
      return &table[i];
  return NULL;
}

static const char *
option_of (MegatronKind kind, const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (table); i++)
    if (table[i].kind == kind && strcmp (table[i].key, key) == 0)
      return table[i].option;
  return NULL;
}

const char *
megatron_option_of_model (const char *key)
{
  return option_of (MEGATRON_MODEL, key);
}

const char *
megatron_option_of_strategy (const char *key)
{
  const char *option = option_of (MEGATRON_STRATEGY, key);
  return option ? option : option_of (MEGATRON_SWITCH, key);
}
