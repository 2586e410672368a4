/* A job as sections of a torchtitan configuration (TOML). Names and rules as in
 * torchtitan/config/job_config.py of January 2026, by the table that reads it. */

#include <string.h>

#include "data/jobs/emit_target.h"
#include "data/launch/torchtitan_rules.h"

static void G_GNUC_PRINTF (2, 3) add (GString *out, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_string_append_vprintf (out, format, args);
  g_string_append_c (out, '\n');
  va_end (args);
}

/* The option of a key of ours, within its section. */
static const char *
option_of (const char *key)
{
  const char *option = option_of_strategy (&torchtitan_options, key);
  return strchr (option, '.') + 1;
}

static void
add_degree (GString *out, const char *key, uint32_t degree)
{
  add (out, "%s = %u", option_of (key), degree);
}

/* --- [training] --- */

/* With a pipeline the local batch is what passes it in a step; without, one micro-batch, and
 * gradients are accumulated up to the global batch. */
static void
add_training (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  add (out, "[training]");
  add (out, "local_batch_size = %u", s->pp > 1 ? s->global_batch / s->dp : s->micro_batch);
  add (out, "global_batch_size = %u", s->global_batch);
  add (out, "seq_len = %u", s->seq);
  if (s->dtype == LS_DTYPE_FP16)
    emit_refuse (e, "--dtype fp16", "torchtitan has bfloat16 and float32");
  add (out, "mixed_precision_param = \"%s\"", s->dtype == LS_DTYPE_FP32 ? "float32" : "bfloat16");
  if (s->grad_dtype != LS_DTYPE_FP32)
    emit_refuse (e, "--grad-dtype", "torchtitan reduces gradients in float32 only");
  add (out, "mixed_precision_reduce = \"float32\"");
  if (!s->grad_norm)
    emit_refuse (e, "--grad-norm 0", "torchtitan always clips gradients by their norm");
  if (s->post_validation)
    emit_refuse (e, "--post-validation", "torchtitan waits for the norm of the gradients");
}

/* --- [parallelism] --- */

static void
add_fsdp2 (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  uint32_t n_shards = s->zero_group > 0 ? s->zero_group : s->dp * s->cp;
  if (n_shards % s->cp != 0)
    emit_refuse (e, "--zero",
                 "groups of %u ranks; torchtitan shards over whole context-parallel groups of %u", n_shards,
                 s->cp);
  add (out, "data_parallel_replicate_degree = %u", s->dp * s->cp / n_shards);
  add (out, "data_parallel_shard_degree = %u", MAX (1, n_shards / s->cp));
  if (s->reshard_after_forward > 1)
    emit_refuse (e, "--reshard-after-forward", "a size of groups; torchtitan has always and never");
  bool is_default = s->zero_stage == 3 && s->pp > 1 && !s->reshard_after_forward;
  add (out, "fsdp_reshard_after_forward = \"%s\"",
       s->reshard_after_forward ? "always"
           : is_default         ? "default"
                                : "never");
  if (s->layers_per_unit != 1)
    emit_refuse (e, "--layers-per-unit", "torchtitan wraps each layer");
  if (s->forward_prefetch > 0 || s->backward_prefetch_units > 0)
    emit_refuse (e, s->forward_prefetch > 0 ? "--forward-prefetch" : "--backward-prefetch-units",
                 "torchtitan has no knob for what is gathered ahead");
  if (s->grad_sync == LS_GRAD_SYNC_LAST && s->pp == 1 && emit_n_micro_batches (s) > 1)
    emit_refuse (e, "--grad-sync last", "torchtitan reduces gradients with each micro-batch");
  if (s->grad_sync == LS_GRAD_SYNC_EACH && s->pp > 1 && emit_n_micro_batches (s) > 1)
    emit_refuse (e, "--grad-sync each", "PyTorch's pipelines reduce gradients with the last micro-batch");
}

static void
add_data_parallel (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  g_autofree char *knob = g_strdup_printf ("--dp-kind %s", ls_dp_kind_name (s->dp_kind));
  bool is_alone = s->dp_kind == LS_DP_DDP || s->dp_kind == LS_DP_NONE;
  if (s->dp_kind == LS_DP_FSDP2) {
    add_fsdp2 (e, out);
    return;
  }
  if (!is_alone)
    emit_refuse (e, knob, "torchtitan has fsdp2, and ddp where there is no other parallelism");
  else if (s->dp > 1 && s->tp * s->pp * s->cp > 1)
    emit_refuse (e, knob, "torchtitan has ddp only where there is no other parallelism");
  add (out, "data_parallel_replicate_degree = %u", s->dp);
  add (out, "data_parallel_shard_degree = 1");
}

static void
add_tensor (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  add_degree (out, "tp", s->tp);
  if (s->tp == 1)
    return;
  if (!s->sp)
    emit_refuse (e, "--tp",
                 "without --sp: torchtitan has sequence parallelism wherever it has tensor parallelism");
  if (s->tp_overlap)
    add (out, "%s = true", option_of ("tp_overlap"));
  if (s->tp_overlap && s->tp_overlap_kind == LS_TP_OVERLAP_BULK)
    emit_refuse (e, "--tp-overlap-kind bulk", "async tensor parallelism pipelines pieces of a GEMM (ring)");
}

/* torchtitan counts embedding and head as `less` layers of the first and last chunk. */
static void
add_chunks (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  uint32_t n = s->pp * s->vpp, less = e->m->n_layers % n == 0 ? 0 : 1;
  if (s->n_layers_per_chunk > 0)
    emit_refuse (e, "--layers-per-chunk",
                 "torchtitan splits evenly, with embedding and head as a layer each or none");
  add (out, "pipeline_parallel_layers_per_stage = %u", (e->m->n_layers + 2 * less) / n);
  add (out, "pipeline_parallel_first_stage_less_layers = %u", less);
  add (out, "pipeline_parallel_last_stage_less_layers = %u", less);
}

static void
add_pipeline (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  bool is_plain = s->vpp == 1 && (g_str_equal (s->schedule, "none") || g_str_equal (s->schedule, "1f1b"));
  add_degree (out, "pp", s->pp);
  if (s->pp == 1 && !is_plain)
    emit_refuse (e, s->vpp > 1 ? "--vpp" : "--schedule",
                 "torchtitan has neither chunks nor a schedule with --pp 1");
  if (s->pp == 1)
    return;
  const char *name = torchtitan_schedule (s->schedule);
  g_autofree char *knob = g_strdup_printf ("--schedule %s", s->schedule);
  if (!name)
    emit_refuse (
        e, knob,
        "torchtitan has gpipe, 1f1b, interleaved-1f1b, looped-bfs, interleaved-zb, zbv and dualpipev");
  else
    add (out, "pipeline_parallel_schedule = \"%s\"", name);
  add (out, "pipeline_parallel_microbatch_size = %u", s->micro_batch);
  add_chunks (e, out);
  g_autofree char *p2p = g_strdup_printf ("--p2p %s", ls_p2p_name (s->p2p));
  if (s->p2p != LS_P2P_BATCHED)
    emit_refuse (e, p2p, "PyTorch's pipelines send whole activations, batched");
}

static void
add_context (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  add_degree (out, "cp", s->cp);
  if (s->cp == 1)
    return;
  if (s->cp_kind == LS_CP_ULYSSES)
    emit_refuse (e, "--cp-kind ulysses", "torchtitan has ring and all-gather");
  if (!s->cp_balance)
    emit_refuse (e, "--cp-balance 0", "PyTorch's context parallelism is balanced");
  add (out, "context_parallel_rotate_method = \"%s\"", s->cp_kind == LS_CP_RING ? "alltoall" : "allgather");
}

static void
add_experts (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  if (e->m->n_experts == 0)
    return;
  add_degree (out, "ep", s->ep);
  add (out, "expert_tensor_parallel_degree = %u", s->etp);
  bool is_legal = s->etp == s->tp || (s->ep > 1 && s->etp == 1);
  if (!is_legal)
    emit_refuse (
        e, "--etp",
        "torchtitan cuts experts over as many ranks as the rest of a layer, or, in groups, over none");
  if (s->ep > 1 && s->dp_kind != LS_DP_FSDP2)
    emit_refuse (e, "--ep", "torchtitan takes experts' ranks from those of fsdp2");
  if (s->ep > 1 && s->ep < s->cp)
    emit_refuse (e, "--ep", "below --cp: torchtitan wants whole context-parallel groups");
  if (s->expert_capacity > 0)
    emit_refuse (e, "--expert-capacity", "torchtitan drops no tokens");
  if (s->dispatcher != LS_DISPATCHER_ALL_TO_ALL)
    emit_refuse (e, "--dispatcher deepep", "no option of torchtitan is written for it");
  if (s->ep_overlap)
    emit_refuse (e, "--ep-overlap", "torchtitan runs its passes one after the other");
  if (s->shared_overlap)
    emit_refuse (e, "--shared-overlap", "torchtitan runs shared experts on the stream of all others");
  if (s->expert_load)
    emit_note (e, "how tokens fall on experts (--expert-load %s) is up to the router", s->expert_load);
}

/* --- the rest --- */

static void
add_recompute (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  add (out, "\n[activation_checkpoint]");
  add (out, "mode = \"%s\"", ls_recompute_name (s->recompute));
  if (s->recompute == LS_RECOMPUTE_SELECTIVE && s->recompute_parts == LS_RECOMPUTE_OP)
    add (out, "selective_ac_option = \"op\"");
  else if (s->recompute == LS_RECOMPUTE_SELECTIVE)
    emit_refuse (e, "--recompute selective",
                 "torchtitan's selective modes choose other ops, or every n-th layer");
  bool is_each = s->recompute_method == LS_RECOMPUTE_UNIFORM && s->recompute_layers <= 1;
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
add_fp8 (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  if (s->dtype == LS_DTYPE_NVFP4)
    emit_refuse (e, "--dtype nvfp4", "torchtitan has bfloat16, float32 and float8");
  if (s->dtype != LS_DTYPE_FP8)
    return;
  add (out, "\n[model]\nconverters = [\"quantize.linear.float8\"]");
  add (out, "\n[quantize.linear.float8]\nrecipe_name = \"tensorwise\"");
  if (s->fp8_recipe != LS_FP8_CURRENT)
    emit_refuse (e, "--fp8-recipe", "torchtitan scales by the tensor itself (current)");
  if (s->bf16_first + s->bf16_last > 0)
    emit_refuse (e, s->bf16_last > 0 ? "--bf16-last" : "--bf16-first",
                 "torchtitan names products, not layers, that stay in bfloat16");
  if (s->fp8_params)
    add (out, "enable_fsdp_float8_all_gather = true");
}

/* What its layers are compiled for. */
static void
add_compile (Emit *e, GString *out)
{
  if (!e->s->tp_overlap)
    return;
  add (out, "\n[compile]\nenable = true # async tensor parallelism wants it");
  emit_note (e, "with [compile] layers run other kernels: --kernels torchtitan-2025-03-compile");
}

static void
emit (Emit *e, GString *out)
{
  emit_refuse_megatrons (e);
  add (out, "# %s", e->title);
  add_training (e, out);
  add (out, "\n[parallelism]");
  add_data_parallel (e, out);
  add_tensor (e, out);
  add_pipeline (e, out);
  add_context (e, out);
  add_experts (e, out);
  add_recompute (e, out);
  add_fp8 (e, out);
  add_compile (e, out);
  if (e->s->attention != LS_ATTENTION_FLASH)
    emit_refuse (e, "--attention unfused", "torchtitan's attention is PyTorch's, which is fused");
  if (e->s->optimizer)
    emit_refuse (e, "--optimizer", "torchtitan has Adam and AdamW");
  emit_note (
      e,
      "[model] name and flavor, data, optimizer and checkpoints are not part of it; the world has %u ranks",
      e->s->gpus);
}

const EmitTarget emit_torchtitan = { "torchtitan", "torchtitan", emit };
