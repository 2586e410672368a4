/* A job as flags of Megatron-LM: an array for a shell script. Names and rules as in
 * megatron/training/arguments.py of Megatron-LM (main, autumn 2025, core 0.15). */

#include "data/jobs/emit_target.h"
#include "model/operators.h"
#include "strategy/chunks.h"

static void G_GNUC_PRINTF (2, 3) add (GString *out, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_string_append (out, "  ");
  g_string_append_vprintf (out, format, args);
  g_string_append_c (out, '\n');
  va_end (args);
}

/* --- the model --- */

/* With one 0 or 1 for each layer. */
static void
add_moe_layers (const LsModel *m, GString *out)
{
  if (ls_model_n_moe_layers (m) == m->n_layers)
    return;
  GString *layers = g_string_new (NULL);
  for (uint32_t layer = 0; layer < m->n_layers;) {
    uint32_t n = 1, has = ls_model_has_experts (m, layer);
    while (layer + n < m->n_layers && ls_model_has_experts (m, layer + n) == (bool) has)
      n++;
    g_string_append_printf (layers, "%s[%u]*%u", layer > 0 ? "+" : "", has, n);
    layer += n;
  }
  add (out, "--moe-layer-freq '%s'", layers->str);
  g_string_free (layers, TRUE);
}

static void
add_experts (const LsModel *m, GString *out)
{
  if (m->n_experts == 0)
    return;
  add (out, "--num-experts %u", m->n_experts);
  add (out, "--moe-router-topk %u", m->top_k);
  if (m->expert_groups > 0)
    add (out, "--moe-router-num-groups %u --moe-router-group-topk %u", m->expert_groups, m->top_groups);
  add (out, "--moe-ffn-hidden-size %u", m->expert_ffn);
  if (m->shared_ffn > 0)
    add (out, "--moe-shared-expert-intermediate-size %u", m->shared_ffn);
  add_moe_layers (m, out);
}

static void
add_attention (const LsModel *m, GString *out)
{
  if (m->predict_layers > 0)
    add (out, "--mtp-num-layers %u", m->predict_layers);
  add (out, "--num-attention-heads %u", m->n_heads);
  if (m->kv_lora > 0) {
    add (out, "--multi-latent-attention");
    if (m->q_lora > 0)
      add (out, "--q-lora-rank %u", m->q_lora);
    add (out, "--kv-lora-rank %u", m->kv_lora);
    add (out, "--qk-head-dim %u", m->head_dim - m->rope_dim);
    add (out, "--qk-pos-emb-head-dim %u", m->rope_dim);
    add (out, "--v-head-dim %u", m->v_dim);
    return;
  }
  add (out, "--kv-channels %u", m->head_dim);
  if (m->n_kv_heads != m->n_heads)
    add (out, "--group-query-attention --num-query-groups %u", m->n_kv_heads);
}

/* What differs between layers; windows count the keys before the query's own. */
static void
add_layer_kinds (const LsModel *m, GString *out)
{
  if (m->rotary_dim > 0)
    add (out, "--rotary-percent %g", (double) m->rotary_dim / m->head_dim);
  if (m->unrotated_every > 0)
    add (out, "--no-rope-freq %u", m->unrotated_every);
  if (m->window > 0)
    add (out, "--window-size %u,0", m->window - 1);
  if (m->full_every > 0)
    add (out, "--window-attn-skip-freq %u", m->full_every);
}

static void
refuse_model (Emit *e)
{
  const LsModel *m = e->m;
  if (m->mlp == LS_MLP_GEGLU)
    emit_refuse (e, "--model", "its MLP is gated by GELU; Megatron-LM has --swiglu");
  if (m->norms != LS_NORMS_PRE)
    emit_refuse (e, "--model", "its norms do not stand before attention and the MLP; Megatron-LM's do");
  if (m->norm != LS_NORM_RMSNORM && m->norm != LS_NORM_LAYERNORM)
    emit_refuse (e, "--model", "its layer norms have no bias; Megatron-LM's have one");
  if (m->qk_norm && m->qk_norm_over != LS_QK_NORM_HEAD)
    emit_refuse (e, "--model",
                 "norms of queries and keys are over all heads; Megatron-LM's are of each head");
  if (m->window > 0 && m->window_kind != LS_WINDOW_SLIDING)
    emit_refuse (e, "--model", "attention in chunks; Megatron-LM has sliding windows");
  if (m->unrotated_every > 0 && m->n_layers % m->unrotated_every != 0)
    emit_refuse (e, "--model", "Megatron-LM's --no-rope-freq divides the number of layers");
  if (m->layer_pattern || m->attention_gate)
    emit_refuse (e, "--model", "layers without attention, or with a gate behind it, cannot be written");
  if (m->encoder_layers > 0)
    emit_refuse (e, "--model", "an encoder stands before its decoder; pretrain_gpt.py trains decoders");
  if (m->expert_latent > 0)
    emit_refuse (e, "--model", "its experts are behind a latent, which cannot be written");
  if (m->kv_lora > 0 && m->position != LS_POSITION_ROPE)
    emit_refuse (e, "--model", "its latent attention has no rope; Megatron-LM's has");
  if (m->index_heads > 0)
    emit_refuse (e, "--model", "an indexer chooses the keys of its attention, which cannot be written");
  if (m->logit_cap)
    emit_refuse (e, "--model", "its logits are capped; Megatron-LM's are not");
}

static void
add_model (Emit *e, GString *out)
{
  const LsModel *m = e->m;
  add (out, "--num-layers %u", m->n_layers);
  add (out, "--hidden-size %u", m->hidden);
  add (out, "--ffn-hidden-size %u", m->ffn);
  add_attention (m, out);
  add_experts (m, out);
  refuse_model (e);
  if (m->mlp != LS_MLP_GELU)
    add (out, m->mlp == LS_MLP_SWIGLU ? "--swiglu" : "--squared-relu");
  if (m->norm == LS_NORM_RMSNORM)
    add (out, "--normalization RMSNorm");
  if (m->position == LS_POSITION_ALIBI)
    emit_refuse (e, "--model", "its positions are ALiBi; Megatron-LM has learned_absolute, rope and none");
  add (out, "--position-embedding-type %s",
       m->position == LS_POSITION_ROPE          ? "rope"
           : m->position == LS_POSITION_LEARNED ? "learned_absolute"
                                                : "none");
  add_layer_kinds (m, out);
  if (!m->tied_embeddings)
    add (out, "--untie-embeddings-and-output-weights");
  if (!m->linear_bias)
    add (out, "--disable-bias-linear");
  if (m->qkv_bias && !m->linear_bias)
    add (out, "--add-qkv-bias");
  if (m->qk_norm)
    add (out, "--qk-layernorm");
  if (!m->dropout)
    add (out, "--attention-dropout 0 --hidden-dropout 0");
  add (out, "--vocab-size %u", m->vocab);
  add (out, "--max-position-embeddings %u", MAX (m->seq, e->s->seq));
}

/* --- parallelism --- */

/* Whether all chunks have as many layers. */
static bool
is_even (const LsStrategy *s, const LsModel *m)
{
  return s->n_layers_per_chunk == 0 && m->n_layers % (s->pp * s->vpp) == 0;
}

/* "Ett|tt|ttL": what each chunk holds, in model order. */
static void
add_layout (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  uint32_t n = s->pp * s->vpp;
  g_autofree uint32_t *layers = g_new0 (uint32_t, n);
  g_autoptr (LsDiagList) none = ls_diag_list_new (); /* it was resolved: it is legal */
  if (!ls_chunk_layers (s, e->m, layers, none))
    return;
  GString *layout = g_string_new ("E");
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0)
      g_string_append_c (layout, '|');
    if (layers[i] > 0)
      g_string_append_printf (layout, layers[i] > 1 ? "t*%u" : "t", layers[i]);
  }
  g_string_append_c (layout, 'L');
  add (out, "--pipeline-model-parallel-layout '%s'", layout->str);
  g_string_free (layout, TRUE);
}

static void
add_p2p (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  g_autofree char *kind = g_strdup_printf ("--p2p %s", ls_p2p_name (s->p2p));
  if (s->p2p != LS_P2P_BATCHED && s->p2p != LS_P2P_OVERLAPPED)
    emit_refuse (e, kind, "Megatron Core sends whole activations, batched or overlapped");
  if (s->vpp > 1 && s->p2p == LS_P2P_BATCHED && s->pp <= 2)
    emit_refuse (e, "--p2p batched", "with --vpp above 1 Megatron-LM wants more than 2 stages for it");
  if (s->vpp > 1 && s->p2p == LS_P2P_BATCHED)
    add (out, "--no-overlap-p2p-communication");
  if (s->vpp > 1 && s->p2p == LS_P2P_OVERLAPPED && s->p2p_warmup_flush)
    add (out, "--overlap-p2p-communication-warmup-flush");
}

static void
add_pipeline (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  add (out, "--pipeline-model-parallel-size %u", s->pp);
  bool is_plain = s->vpp == 1 && (g_str_equal (s->schedule, "none") || g_str_equal (s->schedule, "1f1b"));
  if (s->pp == 1 && !is_plain)
    emit_refuse (e, s->vpp > 1 ? "--vpp" : "--schedule",
                 "Megatron-LM has neither chunks nor a schedule with --pp 1");
  if (s->pp == 1)
    return;
  const char *own = s->vpp > 1 ? "interleaved-1f1b" : "1f1b";
  g_autofree char *knob = g_strdup_printf ("--schedule %s", s->schedule);
  if (!g_str_equal (s->schedule, own))
    emit_refuse (e, knob, "Megatron-LM has 1f1b, and interleaved-1f1b with --vpp above 1");
  if (!is_even (s, e->m))
    add_layout (e, out);
  else if (s->vpp > 1)
    add (out, "--num-virtual-stages-per-pipeline-rank %u", s->vpp);
  add_p2p (e, out);
}

static void
add_tensor (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  add (out, "--tensor-model-parallel-size %u", s->tp);
  if (s->tp == 1)
    return;
  if (s->sp)
    add (out, "--sequence-parallel");
  if (!s->tp_async)
    emit_refuse (e, "--set tp_async=0",
                 "Megatron-LM ignores --no-async-tensor-model-parallel-allreduce by now");
  if (s->sp && s->sp_save_gathered)
    emit_refuse (e, "--set sp_save_gathered=1", "Megatron-LM gathers again in the backward");
  if (!s->tp_overlap)
    return;
  add (out, "--tp-comm-overlap");
  if (s->tp_overlap_kind == LS_TP_OVERLAP_BULK)
    add (out, "--disable-tp-comm-overlap-ag --disable-tp-comm-overlap-rs");
}

static void
add_context (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  if (s->cp == 1)
    return;
  add (out, "--context-parallel-size %u", s->cp);
  add (out, "--cp-comm-type %s",
       s->cp_kind == LS_CP_RING          ? "p2p"
           : s->cp_kind == LS_CP_ULYSSES ? "a2a"
                                         : "allgather");
  if (s->cp_kind != LS_CP_ULYSSES && !s->cp_balance)
    emit_refuse (e, "--cp-balance 0",
                 "Megatron-LM always gives a rank an early and a late part of a sequence");
}

static void
add_expert_parallel (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  if (e->m->n_experts == 0)
    return;
  add (out, "--expert-model-parallel-size %u", s->ep);
  add (out, "--expert-tensor-parallel-size %u", s->etp);
  bool is_deepep = s->dispatcher == LS_DISPATCHER_DEEPEP;
  add (out, "--moe-token-dispatcher-type %s", is_deepep ? "flex" : "alltoall");
  if (is_deepep)
    add (out, "--moe-flex-dispatcher-backend deepep --moe-flex-dispatcher-num-sms %u", s->dispatch_sms);
  if (is_deepep && (s->dispatch_fp8 || s->dispatch_margin))
    emit_refuse (
        e, s->dispatch_fp8 ? "--dispatch-fp8 1" : "--dispatch-margin 1",
        "Megatron-LM sends tokens in 16 bits, and its products know nothing of the SMs that this takes");
  if (s->ep_overlap)
    add (out, "--overlap-moe-expert-parallel-comm%s", s->delay_wgrad ? " --delay-wgrad-compute" : "");
  if (s->shared_overlap)
    add (out, "--moe-shared-expert-overlap");
  if (s->expert_capacity > 0)
    add (out, "--moe-expert-capacity-factor %g", s->expert_capacity);
  if (s->expert_load)
    emit_note (e, "how tokens fall on experts (--expert-load %s) is up to the router", s->expert_load);
}

/* --- data parallelism --- */

/* Megatron-LM's own, with or without the distributed optimizer. */
static void
add_ddp (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  if (s->dp_overlap)
    add (out, "--overlap-grad-reduce");
  if (s->bucket_params > 0)
    add (out, "--ddp-bucket-size %" G_GUINT64_FORMAT, s->bucket_params);
  if (s->zero_stage > 1)
    emit_refuse (e, "--zero",
                 "Megatron-LM's distributed optimizer is stage 1; stages 2 and 3 are --dp-kind fsdp2");
  if (s->zero_stage == 0)
    return;
  if (s->optimizer_cut == LS_OPTIMIZER_CUT_TENSORS) /* --optimizer dist_muon says it */
    return;
  add (out, "--use-distributed-optimizer");
  if (s->gather_overlap)
    add (out, "--overlap-param-gather");
  if (s->zero_group > 0)
    add (out, "--num-distributed-optimizer-instances %u", s->dp * s->cp / s->zero_group);
}

static void
add_fsdp2 (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  add (out, "--use-torch-fsdp2 --no-gradient-accumulation-fusion --ckpt-format torch_dist");
  if (s->reshard_after_forward == 0)
    add (out, "--torch-fsdp2-no-reshard-after-forward");
  if (s->reshard_after_forward > 1)
    emit_refuse (e, "--reshard-after-forward", "a size of groups; Megatron-LM has yes and no");
  if (s->pp > 1)
    emit_refuse (e, "--pp", "Megatron-LM has no pipeline with --use-torch-fsdp2");
  if (s->ep > 1)
    emit_refuse (e, "--ep", "Megatron-LM has no expert parallelism with --use-torch-fsdp2");
  if (e->m->tied_embeddings)
    emit_refuse (e, "--model",
                 "its embeddings are tied; Megatron-LM wants them untied with --use-torch-fsdp2");
  if (s->dtype == LS_DTYPE_FP16)
    emit_refuse (e, "--dtype fp16", "not with --use-torch-fsdp2");
  if (s->zero_group > 0)
    emit_refuse (e, "--zero", "groups of ranks; --use-torch-fsdp2 shards over all of them");
  if (s->layers_per_unit != 1)
    emit_refuse (e, "--layers-per-unit", "Megatron-LM wraps each layer");
  if (s->forward_prefetch > 0 || s->backward_prefetch_units > 0)
    emit_refuse (e, s->forward_prefetch > 0 ? "--forward-prefetch" : "--backward-prefetch-units",
                 "Megatron-LM has no list of what to gather ahead");
  emit_note (e, "FSDP wants CUDA_DEVICE_MAX_CONNECTIONS other than 1");
}

static void
add_data_parallel (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  g_autofree char *knob = g_strdup_printf ("--dp-kind %s", ls_dp_kind_name (s->dp_kind));
  if (s->dp_kind == LS_DP_FSDP2)
    add_fsdp2 (e, out);
  else if (s->dp_kind == LS_DP_MEGATRON)
    add_ddp (e, out);
  else if (s->dp_kind != LS_DP_NONE)
    emit_refuse (e, knob, "Megatron-LM has megatron and fsdp2");
  if (s->dp_kind == LS_DP_MEGATRON && s->grad_sync == LS_GRAD_SYNC_EACH && emit_n_micro_batches (s) > 1)
    emit_refuse (e, "--grad-sync each", "Megatron-LM reduces gradients with the last micro-batch");
}

/* --- the rest --- */

static void
add_recompute_parts (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  bool has_mlp = e->m->n_experts == 0 || ls_model_n_moe_layers (e->m) < e->m->n_layers;
  if (s->recompute_parts & LS_RECOMPUTE_BY_OPERATORS)
    emit_refuse (e, s->recompute_parts & LS_RECOMPUTE_OP ? "--recompute-parts op" : "--recompute-parts dots",
                 "Megatron-LM recomputes modules, not all but some products");
  if (s->recompute_parts & LS_RECOMPUTE_ACTIVATION && has_mlp)
    emit_refuse (e, "--recompute-parts activation", "Megatron-LM recomputes the activation of experts only");
  add (out, "--recompute-granularity selective --recompute-modules%s%s%s%s%s%s%s",
       s->recompute_parts & LS_RECOMPUTE_CORE ? " core_attn" : "",
       s->recompute_parts & LS_RECOMPUTE_NORM ? " layernorm" : "",
       s->recompute_parts & LS_RECOMPUTE_ACTIVATION ? " moe_act" : "",
       s->recompute_parts & LS_RECOMPUTE_MLA_UP ? " mla_up_proj" : "",
       s->recompute_parts & LS_RECOMPUTE_MLP ? " mlp" : "",
       s->recompute_parts & LS_RECOMPUTE_MOE ? " moe" : "",
       s->recompute_parts & LS_RECOMPUTE_SHARED ? " shared_experts" : "");
}

static void
add_recompute (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  bool is_block = s->recompute_method == LS_RECOMPUTE_BLOCK;
  if (s->offload_activations)
    emit_refuse (e, "--offload-activations",
                 "Megatron-LM counts layers to offload, of which we know nothing");
  if (s->recompute == LS_RECOMPUTE_SELECTIVE)
    add_recompute_parts (e, out);
  if (s->recompute != LS_RECOMPUTE_FULL)
    return;
  if (s->n_recompute_stages > 0)
    emit_refuse (e, "--recompute-stages", "Megatron-LM has one number of layers for all stages");
  uint32_t all = (e->m->n_layers + s->pp * s->vpp - 1) / (s->pp * s->vpp);
  add (out, "--recompute-granularity full --recompute-method %s --recompute-num-layers %u",
       is_block ? "block" : "uniform", s->recompute_layers > 0 ? s->recompute_layers : all);
  if (s->partition_activations)
    add (out, "--distribute-saved-activations");
}

static void
add_formats (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  /* as LsFp8Recipe */
  static const char *const recipes[] = { "delayed", "tensorwise", "blockwise", "mxfp8" };
  bool is_bf16 = ls_dtype_between ((LsDtype) s->dtype) == LS_DTYPE_BF16;
  if (s->dtype != LS_DTYPE_FP32)
    add (out, is_bf16 ? "--bf16" : "--fp16");
  if (s->dtype == LS_DTYPE_FP8 && s->fp8_recipe == LS_FP8_DEEPSEEK)
    emit_refuse (e, "--fp8-recipe deepseek", "Megatron-LM casts by Transformer Engine's kernels");
  else if (s->dtype == LS_DTYPE_FP8)
    add (out, "--fp8-format %s --fp8-recipe %s%s", s->fp8_recipe == LS_FP8_MXFP8 ? "e4m3" : "hybrid",
         recipes[s->fp8_recipe], s->fp8_params ? " --fp8-param-gather" : "");
  if (s->fp8_act_store)
    add (out, "--activation-func-fp8-input-store");
  if (s->dtype == LS_DTYPE_NVFP4)
    add (out, "--fp4-format e2m1 --fp4-recipe nvfp4");
  if (s->bf16_first + s->bf16_last > 0)
    add (out, "--first-last-layers-bf16 --num-layers-at-start-in-bf16 %u --num-layers-at-end-in-bf16 %u",
         s->bf16_first, s->bf16_last);
  if (s->dtype == LS_DTYPE_NVFP4 && s->tp_overlap)
    emit_refuse (e, "--tp-overlap", "Transformer Engine has no user buffers for nvfp4");
  if (s->dtype != LS_DTYPE_FP32 && s->grad_dtype == LS_DTYPE_FP32)
    add (out, "--accumulate-allreduce-grads-in-fp32");
  if (is_bf16 && s->grad_dtype == LS_DTYPE_BF16)
    add (out, "--grad-reduce-in-bf16");
  if ((is_bf16 && s->grad_dtype == LS_DTYPE_FP16)
      || (s->dtype == LS_DTYPE_FP16 && s->grad_dtype == LS_DTYPE_BF16))
    emit_refuse (e, "--grad-dtype", "Megatron-LM has fp32 and the type of the parameters");
}

static void
add_muon (Emit *e, GString *out)
{
  static const char *const modes[] = { [LS_OPTIMIZER_TP_BLOCKWISE] = "blockwise",
                                       [LS_OPTIMIZER_TP_DUPLICATED] = "duplicated",
                                       [LS_OPTIMIZER_TP_DISTRIBUTED] = "distributed" };
  const LsStrategy *s = e->s;
  bool is_dealt = s->optimizer_cut == LS_OPTIMIZER_CUT_TENSORS;
  if (s->zero_stage > 0 && !is_dealt)
    emit_refuse (e, "--optimizer-cut elements", "Megatron-LM's muon has whole matrices on a rank");
  add (out, "--optimizer %s --muon-tp-mode %s", is_dealt ? "dist_muon" : "muon", modes[s->optimizer_tp]);
}

static void
add_optimizer (Emit *e, GString *out)
{
  static const char *const words[][2] = { { "sgd", "--optimizer sgd --sgd-momentum 0" },
                                          { "sgd-momentum", "--optimizer sgd --sgd-momentum 0.9" },
                                          { "lion", "--optimizer lion" } };
  const LsStrategy *s = e->s;
  const LsAdamStates states
      = { (LsMaster) s->master, (LsDtype) s->moment_dtype, (LsDtype) s->variance_dtype };
  if (!ls_adam_is_plain (&states)) {
    add (out, "--use-precision-aware-optimizer --exp-avg-dtype %s --exp-avg-sq-dtype %s%s",
         ls_dtype_name (states.moment), ls_dtype_name (states.variance),
         states.master == LS_MASTER_FP16 ? " --main-params-dtype fp16" : "");
    if (states.master == LS_MASTER_FP32 && s->dtype != LS_DTYPE_FP16)
      emit_refuse (
          e, "--master fp32",
          "Megatron-LM's precision-aware optimizer keeps the 16 bits that bf16 weights lack (remainder)");
  }
  if (!s->optimizer)
    return;
  if (g_str_equal (s->optimizer, "muon")) {
    add_muon (e, out);
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (g_str_equal (s->optimizer, words[i][0])) {
      add (out, "%s", words[i][1]);
      return;
    }
  emit_refuse (e, "--optimizer", "Megatron-LM has adam, sgd, lion and muon as they are here");
}

static void
emit (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  g_string_append_printf (out, "# %s\nMEGATRON_ARGS=(\n", e->title);
  add_model (e, out);
  add_tensor (e, out);
  add_pipeline (e, out);
  add_context (e, out);
  add_expert_parallel (e, out);
  add_data_parallel (e, out);
  add (out, "--micro-batch-size %u", s->micro_batch);
  add (out, "--global-batch-size %u", s->global_batch);
  add (out, "--seq-length %u", s->seq);
  add_recompute (e, out);
  add (out, "--attention-backend %s", s->attention == LS_ATTENTION_FLASH ? "flash" : "unfused");
  add_formats (e, out);
  add_optimizer (e, out);
  if (!s->grad_norm)
    add (out, "--clip-grad 0");
  if (s->post_validation)
    emit_refuse (e, "--post-validation", "Megatron-LM waits for the norm of the gradients");
  g_string_append (out, ")\n");
  emit_note (e, "data, tokenizer, learning rate and checkpoints are not part of it; the world has %u ranks",
             s->gpus);
}

const EmitTarget emit_megatron = { "megatron", "Megatron-LM", emit };
