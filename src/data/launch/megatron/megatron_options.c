#include "data/launch/megatron/megatron_rules.h"

#include "model/operators.h"
#include "strategy/shard.h"

/* --- what rules write: the other side of megatron_model.c, _strategy.c and _kernels.c ---------------- */

#define VALUE  OPTION_VALUE
#define WHEN   OPTION_WHEN
#define ON     option_on_if
#define WORD   option_word_if
#define NUMBER option_number_if

WHEN (has_experts, m->n_experts > 0)
WHEN (has_rms_norm, m->norm == LS_NORM_RMSNORM)
WHEN (has_no_bias, !m->linear_bias)
WHEN (is_not_scaled, !m->scaled_rope)
WHEN (cuts_tensors, s->tp > 1)
WHEN (cuts_context, s->cp > 1)
WHEN (pads_otherwise, s->vocab_multiple != LS_VOCAB_MULTIPLE)
WHEN (overlaps_p2p, s->vpp > 1 && s->p2p == LS_P2P_OVERLAPPED)
WHEN (is_ddp, s->dp_kind == LS_DP_MEGATRON)
/* Else --optimizer says it. */
WHEN (is_distributed, is_ddp (m, s) && s->zero_stage > 0 && s->optimizer_cut != LS_OPTIMIZER_CUT_TENSORS)
WHEN (is_fsdp2, s->dp_kind == LS_DP_FSDP2)
WHEN (is_full, s->recompute == LS_RECOMPUTE_FULL)
WHEN (is_selective, s->recompute == LS_RECOMPUTE_SELECTIVE && !ls_strategy_recomputes_nothing (s))
WHEN (is_fp8, s->dtype == LS_DTYPE_FP8)
WHEN (is_bf16, ls_dtype_between ((LsDtype) s->dtype) == LS_DTYPE_BF16)
WHEN (is_flex, m->n_experts > 0 && s->dispatcher != LS_DISPATCHER_ALL_TO_ALL)

VALUE (latent, ON (m->kv_lora > 0))
VALUE (repeated, ON (m->predict_shared))
VALUE (plain_head_dim, NUMBER (m->kv_lora > 0, m->head_dim - m->rope_dim))
VALUE (grouped, ON (m->kv_lora == 0 && m->n_kv_heads != m->n_heads))
VALUE (expert_groups, NUMBER (m->expert_groups > 0, m->expert_groups))
VALUE (top_groups, NUMBER (m->expert_groups > 0, m->top_groups))
VALUE (rotary_percent,
       m->rotary_dim > 0 ? g_strdup_printf ("%g", (double) m->rotary_dim / m->head_dim) : NULL)
VALUE (yarn, WORD (m->scaled_rope, "yarn"))
VALUE (limit, WORD (m->act_limit, "7.0")) /* GPT-OSS's */
VALUE (unrotated, NUMBER (m->unrotated_every > 0, m->unrotated_every))
VALUE (window, m->window > 0 ? g_strdup_printf ("%u,0", m->window - 1) : NULL) /* keys before its own */
VALUE (full_every, NUMBER (m->full_every > 0, m->full_every))
VALUE (no_dropout, WORD (!m->dropout, "0"))
VALUE (max_positions, NUMBER (true, MAX (m->seq, s->seq)))
VALUE (sequence, NUMBER (true, s->seq))

/* With one 0 or 1 for each layer. */
static char *
moe_layers (const LsModel *m, const LsStrategy *s)
{
  if (m->n_experts == 0 || ls_model_n_moe_layers (m) == m->n_layers)
    return NULL;
  GString *layers = g_string_new (NULL);
  for (uint32_t layer = 0; layer < m->n_layers;) {
    uint32_t n = 1, has = ls_model_has_experts (m, layer);
    while (layer + n < m->n_layers && ls_model_has_experts (m, layer + n) == (bool) has)
      n++;
    g_string_append_printf (layers, "%s[%u]*%u", layer > 0 ? "+" : "", has, n);
    layer += n;
  }
  return g_string_free (layers, FALSE);
}

VALUE (bulk, ON (s->tp > 1 && s->tp_overlap && s->tp_overlap_kind == LS_TP_OVERLAP_BULK))
WHEN (is_even, s->n_layers_per_chunk == 0 && m->n_layers % (s->pp * s->vpp) == 0)
VALUE (chunks, NUMBER (s->pp > 1 && s->vpp > 1 && is_even (m, s), s->vpp))
VALUE (batched_p2p, ON (s->vpp > 1 && s->p2p == LS_P2P_BATCHED))

VALUE (dispatcher, WORD (m->n_experts > 0, is_flex (m, s) ? "flex" : "alltoall"))
VALUE (flex_backend, WORD (is_flex (m, s), ls_dispatcher_name (s->dispatcher)))
VALUE (dispatcher_sms, NUMBER (is_flex (m, s), s->dispatch_sms))
VALUE (grouped_gemm, ON (m->n_experts > 0)) /* as they are simulated */
VALUE (shared_overlap, ON (m->n_experts > 0 && s->shared_overlap))

VALUE (distributed, ON (is_distributed (m, s)))
VALUE (instances, NUMBER (is_distributed (m, s) && s->zero_group > 0, s->dp * s->cp / MAX (1, s->zero_group)))
VALUE (fsdp2, ON (is_fsdp2 (m, s)))
VALUE (fsdp2_format, WORD (is_fsdp2 (m, s), "torch_dist"))
VALUE (keeps_gathered, ON (is_fsdp2 (m, s) && s->reshard_after_forward == 0))
VALUE (granularity, WORD (is_full (m, s) || is_selective (m, s), ls_recompute_name (s->recompute)))
VALUE (method, WORD (is_full (m, s), s->recompute_method == LS_RECOMPUTE_BLOCK ? "block" : "uniform"))

/* Of a chunk, or of a group. */
static char *
recompute_layers (const LsModel *m, const LsStrategy *s)
{
  uint32_t all = (m->n_layers + s->pp * s->vpp - 1) / (s->pp * s->vpp);
  return NUMBER (is_full (m, s), s->recompute_layers > 0 ? s->recompute_layers : all);
}

static char *
modules (const LsModel *m, const LsStrategy *s)
{
  GString *list = g_string_new (NULL);
  for (const MegatronModule *module = megatron_modules; module->theirs; module++)
    if (s->recompute_parts & module->part
        && (module->part != LS_RECOMPUTE_CORE || s->attention != LS_ATTENTION_FLASH || s->recompute_flash))
      g_string_append_printf (list, "%s%s", list->len > 0 ? " " : "", module->theirs);
  g_autofree char *text = g_string_free (list, FALSE);
  return WORD (is_selective (m, s), text);
}

VALUE (backend, WORD (true, megatron_attention_backend (s)))
VALUE (bf16, ON (s->dtype != LS_DTYPE_FP32 && is_bf16 (m, s)))
VALUE (fp16, ON (s->dtype != LS_DTYPE_FP32 && !is_bf16 (m, s)))
VALUE (fp8_format, WORD (is_fp8 (m, s), s->fp8_recipe == LS_FP8_MXFP8 ? "e4m3" : "hybrid"))
VALUE (fp4_format, WORD (s->dtype == LS_DTYPE_NVFP4, "e2m1"))
VALUE (fp4_recipe, WORD (s->dtype == LS_DTYPE_NVFP4, "nvfp4"))
VALUE (bf16_layers, ON (s->bf16_first + s->bf16_last > 0))
VALUE (sums_in_fp32, ON (s->dtype != LS_DTYPE_FP32 && s->grad_dtype == LS_DTYPE_FP32))
VALUE (reduces_in_bf16, ON (is_bf16 (m, s) && s->grad_dtype == LS_DTYPE_BF16))

static char *
precision_aware (const LsModel *m, const LsStrategy *s)
{
  const LsAdamStates states = ls_strategy_adam (s);
  return ON (!ls_adam_is_plain (&states));
}

VALUE (master_fp16, WORD (s->master == LS_MASTER_FP16, "fp16"))

/* As import_set_optimizer() reads it; dist_muon deals whole matrices out. */
static char *
optimizer (const LsModel *m, const LsStrategy *s)
{
  bool is_sgd = s->optimizer && g_str_has_prefix (s->optimizer, "sgd");
  if (g_strcmp0 (s->optimizer, "muon") == 0)
    return g_strdup (s->optimizer_cut == LS_OPTIMIZER_CUT_TENSORS ? "dist_muon" : "muon");
  return g_strdup (is_sgd ? "sgd" : s->optimizer);
}

VALUE (momentum,
       g_strcmp0 (s->optimizer, "sgd-momentum") == 0 ? g_strdup ("0.9")
                                                     : WORD (g_strcmp0 (s->optimizer, "sgd") == 0, "0"))
VALUE (no_clip, WORD (!s->grad_norm, "0"))
VALUE (graphs, WORD (s->cuda_graphs != LS_GRAPHS_NONE, "local"))
VALUE (graph_scope, WORD (s->cuda_graphs == LS_GRAPHS_STEP, "full_iteration"))

static char *
muon_mode (const LsModel *m, const LsStrategy *s)
{
  static const char *const modes[] = { [LS_OPTIMIZER_TP_BLOCKWISE] = "blockwise",
                                       [LS_OPTIMIZER_TP_DUPLICATED] = "duplicated",
                                       [LS_OPTIMIZER_TP_DISTRIBUTED] = "distributed" };
  return WORD (g_strcmp0 (s->optimizer, "muon") == 0, modes[s->optimizer_tp]);
}

/* --- words ----------------------------------------------------------------------------------------- */

static const OptionWord norms[] = { { "RMSNorm", "rmsnorm" }, { "LayerNorm", "layernorm" }, { NULL, NULL } };
static const OptionWord gates[] = { { "swiglu", "swiglu" }, { "geglu", "geglu" }, { NULL, NULL } };
static const OptionWord positions[]
    = { { "rope", "rope" }, { "yarn", "rope" },   { "rotary", "rope" }, { "learned_absolute", "learned" },
        { "none", "none" }, { "alibi", "alibi" }, { NULL, NULL } };
static const OptionWord cp_kinds[] = { { "p2p", "ring" },
                                       { "a2a", "ulysses" },
                                       { "all_gather", "all-gather" },
                                       { "allgather", "all-gather" },
                                       { NULL, NULL } };
static const OptionWord fp8_recipes[] = { { "delayed", "delayed" },
                                          { "tensorwise", "current" },
                                          { "blockwise", "blockwise" },
                                          { "mxfp8", "mxfp8" },
                                          { NULL, NULL } };
static const OptionWord state_dtypes[] = { { "fp32", "fp32" },
                                           { "fp16", "fp16" },
                                           { "bf16", "bf16" },
                                           { "fp8", "fp8" },
                                           { "torch.float32", "fp32" },
                                           { "torch.float16", "fp16" },
                                           { "torch.bfloat16", "bf16" },
                                           { "torch.uint8", "fp8" },
                                           { NULL, NULL } };

/* --- options --------------------------------------------------------------------------------------- */

#define MODEL    OPTION_MODEL_ROW
#define STRATEGY OPTION_STRATEGY_ROW
#define SWITCH   OPTION_SWITCH_ROW
#define RULE     OPTION_RULE_ROW
#define DECIDES  OPTION_DECIDES_ROW
#define IGNORED  OPTION_IGNORED_ROW
#define OLD      OPTION_OLD_ROW
#define LATENT   "multi-latent-attention"

/* Of several for one key the first is today's; in the order in which they are written. */
static const OptionRow rows[] = {
  /* the model */
  MODEL ("num-layers", "layers"),
  MODEL ("hidden-size", "hidden"),
  MODEL ("ffn-hidden-size", "ffn"),
  MODEL ("mtp-num-layers", "predict_layers", .none = "0"),
  MODEL ("num-attention-heads", "heads"),
  RULE (LATENT, .value = latent),
  MODEL ("q-lora-rank", "q_lora", .with = LATENT, .none = "0"),
  MODEL ("kv-lora-rank", "kv_lora", .with = LATENT, .otherwise = "32"),
  RULE ("qk-head-dim", .value = plain_head_dim),
  RULE ("qk-nope-head-dim"),
  MODEL ("qk-pos-emb-head-dim", "rope_dim", .with = LATENT, .otherwise = "64"),
  MODEL ("qk-rope-head-dim", "rope_dim", .with = LATENT),
  MODEL ("v-head-dim", "v_dim", .with = LATENT, .otherwise = "128"),
  MODEL ("kv-channels", "head_dim", .with = "!" LATENT),
  RULE ("group-query-attention", .value = grouped),
  MODEL ("num-query-groups", "kv_heads", .with = "group-query-attention", .otherwise = "1", .joins = true),
  RULE ("num-key-value-heads"),                  /* of Megatron-DeepSpeed */
  RULE ("attention-head-type"),                  /* of BigCode's fork */
  MODEL ("num-experts", "experts", .none = "1"), /* Megatron-DeepSpeed's 1 is dense */
  MODEL ("moe-router-topk", "top_k", .with = "num-experts", .none = "0"),
  MODEL ("topk", "top_k", .with = "num-experts"),
  RULE ("moe-router-num-groups", .value = expert_groups),
  RULE ("moe-router-group-topk", .value = top_groups, .joins = true),
  MODEL ("moe-ffn-hidden-size", "expert_ffn", .with = "num-experts"),
  MODEL ("moe-shared-expert-intermediate-size", "shared_ffn", .with = "num-experts", .none = "0"),
  RULE ("moe-layer-freq", .value = moe_layers),
  RULE ("first-k-dense-replace"), /* of MindSpeed-LLM, as the next */
  RULE ("n-shared-experts"),
  RULE ("noop-layers"),
  RULE ("schedules-method"),
  RULE ("swap-optimizer"),
  RULE ("expert-interval"),
  RULE ("hybrid-layer-pattern"),
  OLD ("hybrid-override-pattern", OPTION_RULE, NULL, NULL),
  RULE ("mtp-hybrid-override-pattern"),
  RULE ("mtp-use-repeated-layer", .value = repeated),
  OLD ("hybrid-attention-ratio", OPTION_RULE, NULL, NULL),
  OLD ("hybrid-mlp-ratio", OPTION_RULE, NULL, NULL),
  RULE ("is-hybrid-model"),
  RULE ("mamba-state-dim"),
  RULE ("mamba-head-dim"),
  RULE ("mamba-num-heads"),
  RULE ("mamba-num-groups"),
  RULE ("experimental-attention-variant"),
  RULE ("attention-output-gate"),
  RULE ("linear-attention-freq"),
  RULE ("linear-conv-kernel-dim"),
  RULE ("linear-key-head-dim"),
  RULE ("linear-value-head-dim"),
  RULE ("linear-num-key-heads"),
  RULE ("linear-num-value-heads"),
  RULE ("moe-shared-expert-gate"),
  RULE ("language-model-type"),
  MODEL ("swiglu", "mlp", .on = "swiglu", .otherwise = "gelu"),
  MODEL ("squared-relu", "mlp", .on = "relu2"),
  MODEL ("geglu", "mlp", .on = "geglu"),
  MODEL ("quick-geglu", "mlp", .on = "quick-geglu"),
  MODEL ("glu-activation", "mlp", .words = gates, .until = "megatron-deepspeed-2022"), /* of a fork */
  MODEL ("t5-swiglu", "mlp", .on = "swiglu"),
  DECIDES ("activation-func-clamp-value", "act_limit", .value = limit),
  MODEL ("normalization", "norm", .words = norms, .otherwise = "layernorm", .when = has_rms_norm),
  MODEL ("apply-layernorm-rms", "norm", .on = "rmsnorm"), /* of forks, as multiple-of */
  MODEL ("position-embedding-type", "position", .words = positions, .otherwise = "learned",
         .when = is_not_scaled),
  RULE ("position-embedding-type", .value = yarn),
  RULE ("use-rotary-position-embeddings"),
  RULE ("no-position-embedding"),
  RULE ("add-position-embedding"),
  RULE ("rotary-percent", .value = rotary_percent),
  RULE ("no-rope-freq", .value = unrotated),
  RULE ("window-size", .value = window),
  RULE ("window-attn-skip-freq", .value = full_every),
  MODEL ("untie-embeddings-and-output-weights", "tied_embeddings", .on = "false", .otherwise = "true"),
  MODEL ("disable-bias-linear", "linear_bias", .on = "false", .otherwise = "true"),
  RULE ("add-bias-linear"),
  MODEL ("add-qkv-bias", "qkv_bias", .on = "true", .when = has_no_bias),
  MODEL ("qk-layernorm", "qk_norm", .on = "true", .with = "!" LATENT),
  RULE ("attention-dropout", .value = no_dropout),
  RULE ("hidden-dropout", .value = no_dropout, .joins = true),
  MODEL ("vocab-size", "vocab"),
  RULE ("vocab-extra-ids"),
  RULE ("padded-vocab-size"),
  RULE ("pad-vocab-size-to"),
  STRATEGY ("make-vocab-size-divisible-by", "vocab_multiple", .when = pads_otherwise),
  RULE ("tokenizer-type"),
  RULE ("tokenizer-model"),
  RULE ("max-position-embeddings", .value = max_positions),
  RULE ("encoder-num-layers"),
  RULE ("decoder-num-layers"),
  RULE ("decoder-seq-length"),

  /* tensor and pipeline parallelism, contexts */
  STRATEGY ("tensor-model-parallel-size", "tp", .otherwise = "1"),
  STRATEGY ("model-parallel-size", "tp"),
  SWITCH ("sequence-parallel", "sp", .otherwise = "false", .when = cuts_tensors),
  SWITCH ("tp-comm-overlap", "tp_overlap", .when = cuts_tensors),
  RULE ("disable-tp-comm-overlap-ag", .value = bulk),
  RULE ("disable-tp-comm-overlap-rs", .value = bulk, .joins = true),
  RULE ("no-async-tensor-model-parallel-allreduce"),
  STRATEGY ("pipeline-model-parallel-size", "pp", .otherwise = "1"),
  STRATEGY ("use-tp-pp-dp-mapping", "rank_order", .on = "tp-cp-ep-pp-dp", .value = megatron_mapping),
  DECIDES ("num-virtual-stages-per-pipeline-rank", "vpp", .value = chunks),
  DECIDES ("num-layers-per-virtual-pipeline-stage", "vpp"),
  DECIDES ("virtual-pipeline-model-parallel-size", "vpp"),
  DECIDES ("pipeline-model-parallel-layout", "vpp", .value = megatron_layout),
  RULE ("decoder-first-pipeline-num-layers"),
  RULE ("decoder-last-pipeline-num-layers"),
  RULE ("pipeline-model-parallel-split-rank"),
  RULE ("encoder-pipeline-model-parallel-size"),
  RULE ("pp-partition-method"), /* of Megatron-DeepSpeed */
  RULE ("account-for-*"),       /* embedding or loss in pipeline split */
  RULE ("no-pipeline-parallel"),
  RULE ("no-overlap-p2p-communication", .value = batched_p2p),
  SWITCH ("overlap-p2p-communication-warmup-flush", "p2p_warmup_flush", .when = overlaps_p2p),
  RULE ("no-scatter-gather-tensors-in-pipeline"),
  RULE ("enable-zero-bubble"),
  RULE ("zero-bubble-v-schedule"),
  SWITCH ("enable-optimizer-post-validation", "post_validation"),
  STRATEGY ("context-parallel-size", "cp", .otherwise = "1", .when = cuts_context),
  STRATEGY ("cp-comm-type", "cp_kind", .words = cp_kinds, .with = "context-parallel-size"),
  RULE ("ds-sequence-parallel-size"),
  RULE ("context-parallel-algo"), /* of MindSpeed-LLM */
  RULE ("world-size"),
  RULE ("actor-num-nodes"), /* of slime */
  RULE ("actor-num-gpus-per-node"),
  RULE ("data-parallel-size"),

  /* experts */
  STRATEGY ("expert-model-parallel-size", "ep", .when = has_experts),
  STRATEGY ("moe-expert-parallel-size", "ep"),
  STRATEGY ("expert-tensor-parallel-size", "etp", .when = has_experts),
  RULE ("moe-token-dispatcher-type", .value = dispatcher),
  RULE ("moe-enable-deepep"),
  RULE ("moe-flex-dispatcher-backend", .value = flex_backend),
  RULE ("moe-flex-dispatcher-num-sms", .value = dispatcher_sms, .joins = true),
  RULE ("moe-*ep-num-sms"), /* deepep, hybridep */
  STRATEGY ("overlap-moe-expert-parallel-comm", "ep_overlap", .on = "1", .when = has_experts),
  STRATEGY ("delay-wgrad-compute", "delay_wgrad", .on = "1", .when = has_experts, .joins = true),
  RULE ("moe-shared-expert-overlap", .value = shared_overlap),
  STRATEGY ("moe-expert-capacity-factor", "expert_capacity", .none = "0"),
  STRATEGY ("moe-pad-expert-input-to-capacity", "expert_padding", .on = "capacity", .when = has_experts),
  RULE ("moe-train-capacity-factor"), /* of Megatron-DeepSpeed */
  RULE ("disable-moe-token-dropping"),
  RULE ("moe-grouped-gemm", .value = grouped_gemm),
  RULE ("moe-router-topk-limited-devices"),

  /* data parallelism */
  SWITCH ("overlap-grad-reduce", "dp_overlap", .when = is_ddp),
  STRATEGY ("ddp-bucket-size", "bucket_params", .when = is_ddp),
  DECIDES ("use-distributed-optimizer", "zero", .value = distributed),
  STRATEGY ("overlap-param-gather", "gather_overlap", .on = "1", .when = is_distributed),
  RULE ("num-distributed-optimizer-instances", .value = instances),
  OLD ("DDP-impl", OPTION_RULE, NULL, NULL),
  DECIDES ("use-torch-fsdp2", "dp_kind", .value = fsdp2),
  RULE ("no-gradient-accumulation-fusion", .value = fsdp2, .joins = true),
  IGNORED ("ckpt-format", .value = fsdp2_format, .joins = true),
  RULE ("torch-fsdp2-no-reshard-after-forward", .value = keeps_gathered),
  DECIDES ("use-megatron-fsdp", "dp_kind"),
  DECIDES ("use-custom-fsdp", "dp_kind"),
  RULE ("data-parallel-sharding-strategy"),
  RULE ("deepspeed"),
  DECIDES ("zero-stage", "zero"),
  RULE ("deepspeed-config"),
  RULE ("cpu-optimizer"),
  RULE ("partition-activations"),
  RULE ("checkpoint-in-cpu"),

  /* the batch */
  STRATEGY ("micro-batch-size", "micro_batch"),
  STRATEGY ("batch-size", "micro_batch"),
  STRATEGY ("global-batch-size", "global_batch"),
  RULE ("rampup-batch-size"),
  MODEL ("seq-length", "seq", .value = sequence),
  OPTION_PACKS_ROW ("reset-attention-mask"),
  MODEL ("encoder-seq-length", "seq"),

  /* memory */
  DECIDES ("recompute-granularity", "recompute", .value = granularity),
  DECIDES ("recompute-modules", "recompute", .value = modules, .joins = true),
  DECIDES ("recompute-method", "recompute", .value = method, .joins = true),
  DECIDES ("recompute-num-layers", "recompute", .value = recompute_layers, .joins = true),
  DECIDES ("recompute-activations", "recompute"),
  DECIDES ("checkpoint-activations", "recompute"),
  DECIDES ("checkpoint-num-layers", "recompute"),
  DECIDES ("activations-checkpoint-method", "recompute"),
  DECIDES ("activations-checkpoint-num-layers", "recompute"),
  SWITCH ("distribute-saved-activations", "partition_activations", .when = is_full),
  SWITCH ("distribute-checkpointed-activations", "partition_activations"),
  RULE ("empty-unused-memory-level"),

  /* attention and precision */
  DECIDES ("attention-backend", "attention", .value = backend),
  DECIDES ("use-flash-attn", "attention"),
  DECIDES ("use-flash-attn-*", "attention"), /* of Megatron-DeepSpeed */
  RULE ("transformer-impl"),
  DECIDES ("bf16", "dtype", .value = bf16),
  DECIDES ("fp16", "dtype", .value = fp16),
  RULE ("params-dtype"),
  RULE ("fp8-format", .value = fp8_format),
  RULE ("fp8"),
  RULE ("fp8-hybrid"),
  RULE ("fp8-e4m3"),
  STRATEGY ("fp8-recipe", "fp8_recipe", .words = fp8_recipes, .when = is_fp8, .joins = true),
  SWITCH ("fp8-param-gather", "fp8_params", .when = is_fp8, .joins = true),
  RULE ("tp-only-amax-red"), /* of forks; Megatron-LM has it in its configuration only */
  RULE ("reuse-grad-buf-for-mxfp8-param-ag"),
  RULE ("fp8-dot-product-attention"),
  SWITCH ("activation-func-fp8-input-store", "fp8_act_store"),
  STRATEGY ("use-transformer-engine-op-fuser", "kernels", .on = "megatron-core-op-fuser"),
  RULE ("fused-single-qkv-rope"),
  RULE ("fp4-format", .value = fp4_format),
  RULE ("te-precision-config-file"),
  RULE ("fp4-recipe", .value = fp4_recipe, .joins = true),
  RULE ("first-last-layers-bf16", .value = bf16_layers),
  STRATEGY ("num-layers-at-start-in-bf16", "bf16_first", .with = "first-last-layers-bf16", .otherwise = "1",
            .joins = true),
  STRATEGY ("num-layers-at-end-in-bf16", "bf16_last", .with = "first-last-layers-bf16", .otherwise = "1",
            .joins = true),
  DECIDES ("accumulate-allreduce-grads-in-fp32", "grad_dtype", .value = sums_in_fp32),
  DECIDES ("grad-reduce-in-bf16", "grad_dtype", .value = reduces_in_bf16),

  /* the optimizer */
  RULE ("use-precision-aware-optimizer", .value = precision_aware),
  STRATEGY ("exp-avg-dtype", "moment_dtype", .words = state_dtypes, .with = "use-precision-aware-optimizer",
            .joins = true),
  STRATEGY ("exp-avg-sq-dtype", "variance_dtype", .words = state_dtypes,
            .with = "use-precision-aware-optimizer", .joins = true),
  RULE ("main-params-dtype", .value = master_fp16, .joins = true),
  RULE ("main-grads-dtype"),
  RULE ("optimizer", .value = optimizer),
  RULE ("sgd-momentum", .value = momentum, .joins = true),
  RULE ("muon-tp-mode", .value = muon_mode, .joins = true),
  RULE ("muon-num-ns-steps"),
  RULE ("muon-no-split-qkv"),
  RULE ("clip-grad", .value = no_clip),

  /* kernels */
  RULE ("cuda-graph-impl", .value = graphs),
  RULE ("cuda-graph-scope", .value = graph_scope, .joins = true),
  RULE ("enable-cuda-graph"),
  RULE ("external-cuda-graph"),
  RULE ("no-rope-fusion"),
  RULE ("no-bias-gelu-fusion"),
  RULE ("no-bias-swiglu-fusion"),
  RULE ("no-bias-dropout-fusion"),
  RULE ("no-masked-softmax-fusion"),
  RULE ("no-persist-layer-norm"),
  RULE ("no-gradient-reduce-div-fusion"),
  RULE ("cross-entropy-loss-fusion"),
  RULE ("moe-permute-fusion"),
  RULE ("moe-router-fusion"),
  RULE ("moe-router-padding-for-*"),
  RULE ("apply-layernorm-1p"),
  RULE ("multiple-of"),
  RULE ("hidden-dim-multiplier"),
  RULE ("fp16-lm-cross-entropy"),
  RULE ("embed-layernorm"),
};

/* What matters neither to time nor to memory: data, checkpoints, logs, how numbers begin and learn. */
static const char ignored[]
    = "abort-on-unmet-fused-kernel-constraints adam-* adlr-autoresume* app-tag-* "
      "apply-query-key-layer-scaling apply-rope-fusion apply-wd-to-qk-layernorm async-save async-strategy "
      "attention-softmax-in-fp32 auto-detect-ckpt-format batch-split-seed bert-* bias-dropout-fusion "
      "bias-gelu-fusion bias-swiglu-fusion biencoder-* block-data-path calc-ft-timeouts "
      "calculate-per-token-loss check-for-large-grads check-for-nan-in-grad check-for-nan-in-loss-and-grad "
      "check-for-spiky-loss check-weight-hash-* ckpt-* classes-fraction config-logger-dir consumed-* "
      "create-attention-mask-in-dataloader create-moe-param-group cross-entropy-fusion-impl "
      "cuda-graph-warmup-steps data-args-path data-cache-path data-impl data-path data-per-class-fraction "
      "data-sharding dataloader-* dataset ddp-average-in-collective decoupled-lr decoupled-min-lr "
      "deepspeed-activation-checkpointing deepspeed-mpi dino-* disable-msc dist-ckpt-* dist-url "
      "distributed-backend distributed-timeout-* embedding-path enable-experimental enable-ft-package "
      "enable-gloo-process-groups enable-msc enable-one-logger end-weight-decay eod-mask-loss epochs "
      "error-injection-* eval-* evidence-data-path exit-* export-te-mcore-model fim-* finetune fp8-amax-* "
      "fp8-interval fp8-margin ft-* global-retriever* gradient-accumulation-fusion "
      "gradient-reduce-div-fusion grpo-* head-lr-mult high-priority-stream-groups hysteresis ict-* img-* "
      "indexer-* inference-* init-method-* init-model-with-meta-device initial-loss-scale inprocess-* "
      "iter-per-epoch langrl-* layernorm-epsilon lion-* load load-iteration local-rank log-* logging-level "
      "logits-save-* loss-scale loss-scale-* lr lr-* manual-gc manual-gc-eval manual-gc-interval mask-* "
      "max-padding-length max-tokens-to-oom merge-* mid-level-dataset-surplus min-loss-scale "
      "min-loss-scale-* min-lr mmap-warmup mock-data moe-aux-loss-* moe-eval-capacity-factor "
      "moe-expert-rank-in-one-host moe-extended-tp-* moe-input-jitter-eps moe-loss-coeff moe-min-capacity "
      "moe-per-layer-logging moe-router-bias-* moe-router-dtype moe-router-enable-expert-bias "
      "moe-router-force-load-balancing moe-router-load-balancing-type moe-router-num-groups "
      "moe-router-pre-softmax moe-router-score-function moe-router-topk-scaling-factor moe-token-drop-policy "
      "moe-token-dropping moe-z-loss-coeff mscale mscale-all-dim mtp-loss-scaling-factor muon-* "
      "no-barrier-with-level-1-timing no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save "
      "no-create-attention-mask-in-dataloader no-data-sharding no-dataset-* no-initialization no-load-* "
      "no-log-* no-mmap-bin-files no-one-logger no-query-key-layer-scaling no-save-* "
      "no-use-tokenizer-model-from-checkpoint-args no-weight-decay-cond-type non-persistent-* norm-epsilon "
      "num-channels num-classes num-dataset-builder-threads num-workers nvidia-smi-* "
      "object-storage-cache-path one-logger-* onnx-safe openai-gelu otel-* output-bert-embeddings override-* "
      "patch-dim patch-tokenizer-type per-dataset-sequences-path per-split-data-args-path "
      "perform-initialization persist-layer-norm pretrained-checkpoint profile-* prompt-path "
      "query-in-block-prob rank replication-* rerun-mode reset-iteration reset-position-ids "
      "result-rejected-tracker-filename retriever-* return-data-index rl-* rope-fusion rope-scaling-* "
      "rope-type rotary-* run-workload-inspector-server sample-rate save save-interval save-retain-interval "
      "scatter-gather-tensors-in-pipeline seed seq-len-interpolation-factor short-seq-prob "
      "special-tokens-file split start-weight-decay straggler-* structured-logs* swin-* tensorboard-* "
      "test-data-path tiktoken-* timing-log-* titles-data-path tokenizer-* train-data "
      "train-data-exact-num-epochs train-data-path train-iters train-samples train-sync-interval "
      "train-tokens train-weighted-split-paths-path universal-checkpoint use-checkpoint-* "
      "use-cpu-initialization use-dist-ckpt use-mcore-models use-one-sent-docs use-persistent-ckpt-worker "
      "use-pytorch-profiler use-rope-scaling use-same-sampling-seed-across-dp-ranks "
      "use-tokenizer-model-from-checkpoint-args valid-data valid-data-path valid-num-workers "
      "valid-weighted-split-paths-path vision-* vocab-file wandb-* warmup weight-decay* yarn-*";

const OptionTable megatron_options
    = { rows, G_N_ELEMENTS (rows), ignored, megatron_releases, megatron_spans };
