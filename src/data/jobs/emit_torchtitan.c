/* What of a job torchtitan does not have. Rules as in torchtitan/config/job_config.py of January 2026; its
 * options are written by torchtitan_rules.c. */

#include "data/jobs/emit_target.h"
#include "data/launch/torchtitan/torchtitan_rules.h"
#include "model/operators.h"

static void
check_training (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->dtype == LS_DTYPE_FP16)
    emit_refuse (e, "--dtype fp16", "torchtitan has bfloat16 and float32");
  if (s->grad_dtype != LS_DTYPE_FP32)
    emit_refuse (e, "--grad-dtype", "torchtitan reduces gradients in float32 only");
  if (!s->grad_norm)
    emit_refuse (e, "--grad-norm 0", "torchtitan always clips gradients by their norm");
  if (s->post_validation)
    emit_refuse (e, "--post-validation", "torchtitan waits for the norm of the gradients");
}

static void
check_fsdp2 (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->zero_group % s->cp != 0)
    emit_refuse (e, "--zero",
                 "groups of %u ranks; torchtitan shards over whole context-parallel groups of %u",
                 s->zero_group, s->cp);
  if (s->reshard_after_forward > 1)
    emit_refuse (e, "--reshard-after-forward", "a size of groups; torchtitan has always and never");
  if (s->narrow_shards)
    emit_refuse (e, "--set narrow_shards=1", "shards are fp32 in what is written");
  if (s->layers_per_unit != 1)
    emit_refuse (e, "--layers-per-unit", "torchtitan wraps each layer");
  if (s->forward_prefetch > 0 || s->backward_prefetch_units > 0)
    emit_refuse (e, s->forward_prefetch > 0 ? "--forward-prefetch" : "--backward-prefetch-units",
                 "torchtitan has no knob for what is gathered ahead");
  if (s->grad_sync == LS_GRAD_SYNC_LAST && s->pp == 1 && ls_strategy_micro_batches (s, 0) > 1)
    emit_refuse (e, "--grad-sync last", "torchtitan reduces gradients with each micro-batch");
  if (s->grad_sync == LS_GRAD_SYNC_EACH && s->pp > 1 && ls_strategy_micro_batches (s, 0) > 1)
    emit_refuse (e, "--grad-sync each", "PyTorch's pipelines reduce gradients with the last micro-batch");
}

static void
check_data_parallel (Emit *e)
{
  const LsStrategy *s = e->s;
  g_autofree char *knob = g_strdup_printf ("--dp-kind %s", ls_dp_kind_name (s->dp_kind));
  bool is_alone = s->dp_kind == LS_DP_DDP || s->dp_kind == LS_DP_NONE;
  if (s->dp_kind == LS_DP_FSDP2)
    check_fsdp2 (e);
  else if (!is_alone)
    emit_refuse (e, knob, "torchtitan has fsdp2, and ddp where there is no other parallelism");
  else if (s->dp > 1 && s->tp * s->pp * s->cp > 1)
    emit_refuse (e, knob, "torchtitan has ddp only where there is no other parallelism");
  else if (s->dp > 1 && !s->dp_overlap)
    emit_refuse (e, "--dp-overlap 0", "PyTorch's DDP reduces beside the backward");
  else if (s->tp * s->pp > 1 && s->dtype != LS_DTYPE_FP32)
    emit_refuse (e, "--dtype", "without fsdp2 torchtitan trains in fp32 there until April 2026");
}

static void
check_tensor (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->tp > 1 && !s->sp)
    emit_refuse (e, "--tp",
                 "without --sp: torchtitan has sequence parallelism wherever it has tensor parallelism");
  if (e->m->n_kv_heads % s->tp != 0)
    emit_refuse (e, "--tp", "torchtitan cuts keys and values into whole heads, of which the model has %u",
                 e->m->n_kv_heads);
  if (s->tp > 1 && s->tp_overlap && s->tp_overlap_kind == LS_TP_OVERLAP_BULK)
    emit_refuse (e, "--tp-overlap-kind bulk", "async tensor parallelism pipelines pieces of a GEMM (ring)");
}

static void
check_pipeline (Emit *e)
{
  const LsStrategy *s = e->s;
  if (!emit_has_pipeline (e, "torchtitan"))
    return;
  g_autofree char *knob = g_strdup_printf ("--schedule %s", s->schedule),
                  *p2p = g_strdup_printf ("--p2p %s", ls_p2p_name (s->p2p));
  if (!torchtitan_schedule (s->schedule))
    emit_refuse (
        e, knob,
        "torchtitan has gpipe, 1f1b, interleaved-1f1b, looped-bfs, interleaved-zb, zbv and dualpipev");
  if (s->n_layers_per_chunk > 0)
    emit_refuse (e, "--layers-per-chunk",
                 "torchtitan splits evenly, with embedding and head as a layer each or none");
  if (s->p2p != LS_P2P_BATCHED)
    emit_refuse (e, p2p, "PyTorch's pipelines send whole activations, batched");
  uint32_t n = s->pipeline_batch > 0 ? s->pipeline_batch / s->micro_batch : ls_strategy_micro_batches (s, 0);
  if (n < s->pp && s->vpp == 1 && !ls_sched_fixes_chunks (ls_sched_find (s->schedule)))
    emit_refuse (
        e, "--pp",
        "PyTorch's schedules of one stage a rank want as many micro-batches as stages, %u, or more (with "
        "fewer 1F1B hangs); got %u",
        s->pp, n);
  if (s->pipeline_batch > 0 && s->grad_sync == LS_GRAD_SYNC_LAST && s->dp > 1)
    emit_refuse (e, "--grad-sync last",
                 "with --pipeline-batch: PyTorch's pipelines reduce before each flush");
}

static void
check_context (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->cp > 1 && s->cp_kind == LS_CP_ULYSSES)
    emit_refuse (e, "--cp-kind ulysses", "torchtitan has ring and all-gather");
  if (s->cp > 1 && !s->cp_balance)
    emit_refuse (e, "--cp-balance 0", "PyTorch's context parallelism is balanced");
}

static void
check_experts (Emit *e)
{
  const LsStrategy *s = e->s;
  if (e->m->n_experts == 0)
    return;
  bool is_legal = s->etp == s->tp || (s->ep > 1 && s->etp == 1);
  if (!is_legal)
    emit_refuse (
        e, "--etp",
        "torchtitan cuts experts over as many ranks as the rest of a layer, or, in groups, over none");
  if (s->ep > 1 && s->dp_kind != LS_DP_FSDP2)
    emit_refuse (e, "--ep", "torchtitan takes experts' ranks from those of fsdp2");
  if (s->ep > 1 && s->ep < s->cp)
    emit_refuse (e, "--ep", "below --cp: torchtitan wants whole context-parallel groups");
  if (s->dispatcher != LS_DISPATCHER_ALL_TO_ALL && (s->dispatch_fp8 || s->dispatch_margin))
    emit_refuse (
        e, s->dispatch_fp8 ? "--dispatch-fp8 1" : "--dispatch-margin 1",
        "torchtitan sends tokens in 16 bits, and its products know nothing of the SMs that this takes");
  if (!s->grouped_gemm)
    emit_refuse (e, "--grouped-gemm 0", "torchtitan multiplies all experts of a rank in one kernel");
  if (s->expert_capacity > 0)
    emit_refuse (e, "--expert-capacity", "torchtitan drops no tokens");
  if (s->expert_padding != LS_EXPERT_PADDING_NONE)
    emit_refuse (e, "--expert-padding", "torchtitan multiplies with the tokens of an expert, and no more");
  if (s->ep_overlap)
    emit_refuse (e, "--ep-overlap", "torchtitan runs its passes one after the other");
  if (s->shared_overlap)
    emit_refuse (e, "--shared-overlap", "torchtitan runs shared experts on the stream of all others");
  if (s->expert_load)
    emit_note (e, "how tokens fall on experts (--expert-load %s) is up to the router", s->expert_load);
}

/* --- the rest --- */

static void
check_recompute (Emit *e)
{
  const LsStrategy *s = e->s;
  bool is_each = s->recompute_method == LS_RECOMPUTE_UNIFORM && s->recompute_layers <= 1;
  if (s->recompute == LS_RECOMPUTE_SELECTIVE && s->recompute_parts != LS_RECOMPUTE_OP)
    emit_refuse (e, "--recompute selective",
                 "torchtitan's selective modes choose other ops, or every n-th layer");
  if (s->recompute == LS_RECOMPUTE_FULL && !is_each)
    emit_refuse (
        e, s->recompute_method == LS_RECOMPUTE_BLOCK ? "--recompute-method block" : "--recompute-layers",
        "torchtitan checkpoints each layer");
  if (s->partition_activations)
    emit_refuse (e, "--partition-activations", "torchtitan keeps checkpoints as they are");
  if (s->offload_activations)
    emit_refuse (e, "--offload-activations", "torchtitan keeps activations on the device");
}

static void
check_fp8 (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->dtype == LS_DTYPE_NVFP4)
    emit_refuse (e, "--dtype nvfp4", "torchtitan has bfloat16, float32 and float8");
  if (s->dtype != LS_DTYPE_FP8)
    return;
  if (s->fp8_recipe != LS_FP8_CURRENT)
    emit_refuse (e, "--fp8-recipe", "torchtitan scales by the tensor itself (current)");
  if (s->bf16_first + s->bf16_last > 0)
    emit_refuse (e, s->bf16_last > 0 ? "--bf16-last" : "--bf16-first",
                 "torchtitan names products, not layers, that stay in bfloat16");
}

static void
check (Emit *e)
{
  emit_refuse_megatrons (e);
  check_training (e);
  check_data_parallel (e);
  check_tensor (e);
  check_pipeline (e);
  check_context (e);
  check_experts (e);
  check_recompute (e);
  check_fp8 (e);
  if (e->s->tp_overlap && !(e->s->kernels && g_str_has_suffix (e->s->kernels, "-compile")))
    emit_note (e, "with [compile] layers run other kernels: --kernels torchtitan-2025-03-compile");
  if (e->s->attention != LS_ATTENTION_FLASH)
    emit_refuse (e, "--attention unfused", "torchtitan's attention is PyTorch's, which is fused");
  emit_note_attention (e, "PyTorch");
  if (e->s->window_mask && e->m->window > 0)
    emit_refuse (e, "--set window_mask=1", "torchtitan's FlexAttention skips what is outside a window");
  if (e->s->optimizer)
    emit_refuse (e, "--optimizer", "torchtitan has Adam and AdamW");
  emit_note (
      e,
      "[model] is there where torchtitan has the model; data, optimizer and checkpoints are not part of "
      "it; the world has %u ranks",
      e->s->gpus);
}

const EmitTarget emit_torchtitan
    = { "torchtitan", "torchtitan", &torchtitan_options, OPTION_TOML, NULL, check };
