/* What of a job Megatron-LM does not have. Rules as in megatron/training/arguments.py of Megatron-LM (main,
 * autumn 2025, core 0.15); its options are written by megatron_options.c. */

#include "data/launch/emit_target.h"
#include "data/jobs/strategy_values.h"
#include "data/launch/megatron/megatron_rules.h"
#include "model/beside.h"
#include "model/compressed.h"
#include "model/operators.h"
#include "model/streams.h"
#include "strategy/shard.h"

static void
check_model (Emit *e)
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
    emit_refuse (e, "--model", "layers by a pattern, or with a gate behind attention, cannot be written");
  if (m->encoder_layers > 0)
    emit_refuse (e, "--model", "an encoder stands before its decoder; pretrain_gpt.py trains decoders");
  if (m->predict_pattern || m->predict_windowed)
    emit_refuse (
        e, "--model",
        "blocks that predict further tokens are of other layers than its last, which cannot be written");
  if (m->own_layers > 0)
    emit_refuse (e, "--model", "its layers use the weights of others again, which cannot be written");
  if (m->adjugate_of > 0)
    emit_refuse (e, "--model", "small experts beside its experts cannot be written");
  if (m->attention_experts > 0)
    emit_refuse (e, "--model",
                 "queries and outputs of its attention are by experts, which cannot be written");
  if (m->expert_latent > 0)
    emit_refuse (e, "--model", "its experts are behind a latent, which cannot be written");
  if (m->unbiased_qkv)
    emit_refuse (e, "--model", "of its linear layers Q, K and V have no biases; Megatron-LM's have");
  if (m->kv_lora == 0 && ls_model_v_dim (m) != m->head_dim)
    emit_refuse (e, "--model",
                 "its values are not as wide as its keys; Megatron-LM's are, outside of latent attention");
  if (m->kv_lora == 0 && m->q_lora > 0 && !ls_model_is_compressed (m))
    emit_refuse (e, "--model",
                 "its queries come from a latent; Megatron-LM has one for them in latent attention alone");
  if (m->kv_lora > 0 && m->position != LS_POSITION_ROPE)
    emit_refuse (e, "--model", "its latent attention has no rope; Megatron-LM's has");
  if (m->index_heads > 0)
    emit_refuse (e, "--model", "an indexer chooses the keys of its attention, which cannot be written");
  if (ls_model_is_compressed (m) || ls_model_n_streams (m) > 1)
    emit_refuse (e, "--model", "attention to compressed keys and several residual streams cannot be written");
  if (ls_model_has_beside (m))
    emit_refuse (
        e, "--model",
        "inputs of layers, shared keys and values, LAuReL, sparse MLPs and alternating streams cannot "
        "be written");
  if (m->difference || m->residual_scale || m->kv_conv + m->qk_conv + m->router_hidden > 0)
    emit_refuse (e, "--model",
                 "differences of attention, convolutions of keys, layers of routers and scales of residuals "
                 "cannot be written");
  if (m->full_first)
    emit_refuse (e, "--model",
                 "its first layer sees the whole sequence, of Megatron-LM's the last of so many");
  if (ls_model_has_lists (m))
    emit_refuse (e, "--model", "its layers differ in width one by one, which cannot be written");
  if (ls_model_heads_differ (m))
    emit_refuse (e, "--model", "its layers differ in their heads; Megatron-LM's have the same");
  if (m->norm_gate_rank > 0 || m->latent_gate)
    emit_refuse (e, "--model", "gates behind norms or of latents cannot be written");
  if (m->ngram_tables > 0)
    emit_refuse (e, "--model", "embeddings of several tokens in a row cannot be written");
  if (m->zero_experts > 0)
    emit_refuse (e, "--model", "experts that do nothing cannot be written");
  if (m->logit_cap)
    emit_refuse (e, "--model", "its logits are capped; Megatron-LM's are not");
  if (m->position == LS_POSITION_ALIBI)
    emit_refuse (e, "--model", "its positions are ALiBi; Megatron-LM has learned_absolute, rope and none");
}

/* --- parallelism --- */

static void
check_tensor (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->tp > 1 && !s->tp_async)
    emit_refuse (e, "--set tp_async=0",
                 "Megatron-LM ignores --no-async-tensor-model-parallel-allreduce by now");
  if (s->tp > 1 && s->sp && s->sp_save_gathered)
    emit_refuse (e, "--set sp_save_gathered=1", "Megatron-LM gathers again in the backward");
  if (s->tp > 1 && s->tp_overlap && !s->tp_overlap_margin)
    emit_note (e,
               "set_sm_margin 0 for what stays whole (tp_overlap_margin) is said in a file for "
               "--tp-comm-overlap-cfg");
}

/* tp_only_amax_red is in the configuration of its model alone, which arguments.py leaves out. */
static void
check_scales (Emit *e)
{
  const LsStrategy *s = e->s;
  bool agrees = ls_strategy_delays_scales (s) && s->tp * s->cp * s->dp > 1;
  if (agrees && s->fp8_amax_reduction != LS_AMAX_STAGE)
    emit_refuse (e, "--set fp8_amax_reduction", "Megatron-LM's command line has stage");
}

/* parallel_state.py asserts that dp of experts is dp where pp is not last; without experts too, whose etp is
 * tp and ep 1 then. */
static void
check_order (Emit *e)
{
  const LsStrategy *s = e->s;
  uint32_t of_experts = e->m->n_experts > 0 ? s->ep * s->etp : s->tp;
  if (ls_strategy_is_ordered (s, "tp-cp-ep-dp-pp"))
    return;
  if (!ls_strategy_is_ordered (s, "tp-cp-ep-pp-dp"))
    emit_refuse (e, "--rank-order", "Megatron-LM's command line has tp-cp-ep-dp-pp and tp-cp-ep-pp-dp");
  else if (s->tp * s->cp != of_experts)
    emit_refuse (e, "--rank-order", "where pp is not last Megatron-LM wants tp * cp = ep * etp");
}

static void
check_pipeline (Emit *e)
{
  const LsStrategy *s = e->s;
  if (!emit_has_pipeline (e, "Megatron-LM"))
    return;
  const char *own = s->vpp > 1 ? "interleaved-1f1b" : "1f1b";
  g_autofree char *schedule = g_strdup_printf ("--schedule %s", s->schedule),
                  *p2p = g_strdup_printf ("--p2p %s", ls_p2p_name (s->p2p));
  if (!g_str_equal (s->schedule, own))
    emit_refuse (e, schedule, "Megatron-LM has 1f1b, and interleaved-1f1b with --vpp above 1");
  if (s->p2p != LS_P2P_BATCHED && s->p2p != LS_P2P_OVERLAPPED)
    emit_refuse (e, p2p, "Megatron Core sends whole activations, batched or overlapped");
  if (s->vpp > 1 && s->p2p == LS_P2P_BATCHED && s->pp <= 2)
    emit_refuse (e, "--p2p batched", "with --vpp above 1 Megatron-LM wants more than 2 stages for it");
}

/* Transformer Engine's attn_forward_func_with_cp asserts that latent attention, whose values are narrower
 * than its keys, goes round a ring, and that attention with a window does not. */
static void
check_attention (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->attention_kernel == LS_ATTENTION_KERNEL_AOTRITON)
    emit_note (e, "NVTE_FUSED_ATTN_CK=0 in the environment makes AOTriton's attention the fused one");
  else if (strcmp (megatron_attention_backend (s), "auto") == 0)
    emit_note_attention (e, "Transformer Engine");
  if (s->cp > 1 && e->m->kv_lora > 0 && s->cp_kind != LS_CP_RING)
    emit_refuse (e, "--cp-kind", "Transformer Engine has a ring alone for latent attention");
  if (s->cp > 1 && e->m->window > 0 && s->cp_kind == LS_CP_RING)
    emit_refuse (e, "--cp-kind", "Transformer Engine has no ring for attention with a window");
  if (s->window_mask && e->m->window > 0)
    emit_refuse (e, "--set window_mask=1", "Transformer Engine's attention skips what is outside a window");
  if (s->cp > 1 && s->cp_kind != LS_CP_ULYSSES && !s->cp_balance)
    emit_refuse (e, "--cp-balance 0",
                 "Megatron-LM always gives a rank an early and a late part of a sequence");
}

static void
check_experts (Emit *e)
{
  const LsStrategy *s = e->s;
  if (e->m->n_experts == 0)
    return;
  if (s->grouped_gemm)
    emit_refuse (e, "--grouped-gemm 1", "Transformer Engine launches the products of experts one by one");
  if (s->expert_padding == LS_EXPERT_PADDING_FULLEST)
    emit_refuse (e, "--expert-padding fullest", "Megatron-LM pads experts to their capacity, or not at all");
  if (s->dispatcher != LS_DISPATCHER_ALL_TO_ALL && (s->dispatch_fp8 || s->dispatch_margin))
    emit_refuse (
        e, s->dispatch_fp8 ? "--dispatch-fp8 1" : "--dispatch-margin 1",
        "Megatron-LM sends tokens in 16 bits, and its products know nothing of the SMs that this takes");
  if (s->expert_load)
    emit_note (e, "how tokens fall on experts (--expert-load %s) is up to the router", s->expert_load);
}

/* --- data parallelism --- */

static void
check_fsdp2 (Emit *e)
{
  const LsStrategy *s = e->s;
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
  if (s->narrow_shards)
    emit_refuse (e, "--set narrow_shards=1", "shards are fp32 in what is written");
  if (s->layers_per_unit != 1)
    emit_refuse (e, "--layers-per-unit", "Megatron-LM wraps each layer");
  if (s->forward_prefetch > 0 || s->backward_prefetch_units > 0)
    emit_refuse (e, s->forward_prefetch > 0 ? "--forward-prefetch" : "--backward-prefetch-units",
                 "Megatron-LM has no list of what to gather ahead");
  if (s->grad_sync == LS_GRAD_SYNC_LAST && ls_strategy_micro_batches (s, 0) > 1)
    emit_refuse (e, "--grad-sync last",
                 "Megatron-LM reduces gradients with each micro-batch with --use-torch-fsdp2");
  emit_note (e, "FSDP wants CUDA_DEVICE_MAX_CONNECTIONS other than 1");
}

static void
check_data_parallel (Emit *e)
{
  const LsStrategy *s = e->s;
  g_autofree char *knob = g_strdup_printf ("--dp-kind %s", ls_dp_kind_name (s->dp_kind));
  bool is_ddp = s->dp_kind == LS_DP_MEGATRON;
  if (s->dp_kind == LS_DP_FSDP2)
    check_fsdp2 (e);
  else if (!is_ddp && s->dp_kind != LS_DP_NONE)
    emit_refuse (e, knob, "Megatron-LM has megatron and fsdp2");
  if (is_ddp && s->zero_stage > 0 && s->gather_overlap == 1 && !s->dp_overlap)
    emit_refuse (e, "--dp-overlap 0", "Megatron-LM's --overlap-param-gather needs --overlap-grad-reduce");
  if (is_ddp && s->zero_stage > 1)
    emit_refuse (e, "--zero",
                 "Megatron-LM's distributed optimizer is stage 1; stages 2 and 3 are --dp-kind fsdp2");
  if (is_ddp && s->grad_sync == LS_GRAD_SYNC_EACH && ls_strategy_micro_batches (s, 0) > 1)
    emit_refuse (e, "--grad-sync each", "Megatron-LM reduces gradients with the last micro-batch");
  if (is_ddp && s->grad_check)
    emit_refuse (e, "--set grad_check=1",
                 "its release decides whether Megatron-LM reads them; no option is written for it");
}

/* --- the rest --- */

static void
check_recompute (Emit *e)
{
  const LsStrategy *s = e->s;
  bool is_selective = s->recompute == LS_RECOMPUTE_SELECTIVE,
       has_mlp = e->m->n_experts == 0 || ls_model_n_moe_layers (e->m) < e->m->n_layers;
  if (s->offload_activations)
    emit_refuse (e, "--offload-activations",
                 "Megatron-LM counts layers to offload, of which we know nothing");
  if (is_selective && s->recompute_parts & LS_RECOMPUTE_BY_OPERATORS) {
    g_autofree char *parts = strategy_format_parts (s),
                    *knob = g_strconcat ("--recompute-parts ", parts, NULL);
    emit_refuse (e, knob, "Megatron-LM recomputes modules, not all but some products");
  }
  if (is_selective && s->recompute_parts & LS_RECOMPUTE_ACTIVATION && has_mlp)
    emit_refuse (e, "--recompute-parts activation", "Megatron-LM recomputes the activation of experts only");
  if (s->recompute == LS_RECOMPUTE_FULL && s->n_recompute_stages > 0)
    emit_refuse (e, "--recompute-stages", "Megatron-LM has one number of layers for all stages");
}

static void
check_formats (Emit *e)
{
  const LsStrategy *s = e->s;
  bool is_bf16 = ls_dtype_between ((LsDtype) s->dtype) == LS_DTYPE_BF16;
  if (s->bf16_experts && e->m->n_experts > 0)
    emit_refuse (e, "--bf16-experts", "Megatron-LM has experts in the format of linear layers");
  if (ls_formats_any (&s->module_formats))
    emit_refuse (e, "--module-formats", "Megatron-LM reads them from a file (--te-precision-config-file)");
  if (s->dtype == LS_DTYPE_FP8 && s->fp8_recipe == LS_FP8_DEEPSEEK)
    emit_refuse (e, "--fp8-recipe deepseek", "Megatron-LM casts by Transformer Engine's kernels");
  if (s->dtype == LS_DTYPE_NVFP4 && s->tp_overlap)
    emit_refuse (e, "--tp-overlap", "Transformer Engine has no user buffers for nvfp4");
  if ((is_bf16 && s->grad_dtype == LS_DTYPE_FP16)
      || (s->dtype == LS_DTYPE_FP16 && s->grad_dtype == LS_DTYPE_BF16))
    emit_refuse (e, "--grad-dtype", "Megatron-LM has fp32 and the type of the parameters");
}

static void
check_optimizer (Emit *e)
{
  static const char *const known[] = { "sgd", "sgd-momentum", "lion", "muon", NULL };
  const LsStrategy *s = e->s;
  const LsAdamStates states = ls_strategy_adam (s);
  bool is_muon = g_strcmp0 (s->optimizer, "muon") == 0;
  if (!ls_adam_is_plain (&states) && states.master == LS_MASTER_FP32 && s->dtype != LS_DTYPE_FP16)
    emit_refuse (
        e, "--master fp32",
        "Megatron-LM's precision-aware optimizer keeps the 16 bits that bf16 weights lack (remainder)");
  if (ls_master_is_the_weight (states.master))
    emit_refuse (e, "--master none or weights",
                 "Megatron-LM's optimizer steps on fp32 weights beside those in 16 bits");
  if (is_muon && s->zero_stage > 0 && s->optimizer_cut != LS_OPTIMIZER_CUT_TENSORS)
    emit_refuse (e, "--optimizer-cut elements", "Megatron-LM's muon has whole matrices on a rank");
  if (s->optimizer && !g_strv_contains (known, s->optimizer))
    emit_refuse (e, "--optimizer", "Megatron-LM has adam, sgd, lion and muon as they are here");
}

static void
check (Emit *e)
{
  check_model (e);
  check_tensor (e);
  check_scales (e);
  check_order (e);
  check_pipeline (e);
  check_attention (e);
  check_experts (e);
  check_data_parallel (e);
  check_recompute (e);
  check_formats (e);
  check_optimizer (e);
  if (e->s->pipeline_batch > 0)
    emit_refuse (e, "--pipeline-batch", "Megatron-LM flushes its pipeline once a step");
  if (e->s->post_validation)
    emit_refuse (e, "--post-validation", "Megatron-LM waits for the norm of the gradients");
  emit_note (e, "data, tokenizer, learning rate and checkpoints are not part of it; the world has %u ranks",
             e->s->gpus);
}

const EmitTarget emit_megatron
    = { "megatron", "Megatron-LM", &megatron_options, OPTION_ARGUMENTS, "MEGATRON_ARGS", check };
