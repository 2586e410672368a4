/* What of a job DeepSpeed's configuration does not have, or leaves to the caller's code: pipeline and tensor
 * parallelism, too. Rules as in docs/_pages/config-json.md of DeepSpeed; its keys are written by
 * deepspeed_rules.c. */
#include "data/launch/emit_target.h"
#include "data/launch/deepspeed_rules.h"

static void
check_formats (Emit *e)
{
  const LsStrategy *s = e->s;
  if (ls_dtype_is_scaled ((LsDtype) s->dtype))
    emit_refuse (e, s->dtype == LS_DTYPE_FP8 ? "--dtype fp8" : "--dtype nvfp4",
                 "DeepSpeed has fp16, bf16 and fp32");
}

static void
check_zero (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->zero_group > 0 && s->zero_stage == 3)
    emit_note (e, "groups of ranks (MiCS): the model is built within deepspeed.zero.MiCS_Init");
  else if (s->zero_group > 0)
    emit_refuse (e, "--zero", "groups of ranks; DeepSpeed has them with stage 3 only (MiCS)");
  if (s->collective_lists)
    emit_note (e,
               "gathers and scatters over lists of tensors are those of DeepSpeed until early 2021; no "
               "setting brings them back");
  if (s->offload != LS_OFFLOAD_NONE && s->offload_to == LS_OFFLOAD_TO_NVME)
    emit_note (e, "nvme_path, where the drives are mounted, is still to be set");
}

static void
check_recompute (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->recompute == LS_RECOMPUTE_SELECTIVE)
    emit_note (e, "selective recomputation is up to the model's code");
  if (s->offload_activations && s->recompute != LS_RECOMPUTE_FULL)
    emit_refuse (e, "--offload-activations", "DeepSpeed offloads what full recomputation keeps");
  if (s->recompute == LS_RECOMPUTE_FULL)
    emit_note (e,
               "which layers are recomputed is up to the model's code: it calls "
               "deepspeed.checkpointing.checkpoint()");
}

static void
note_code (Emit *e)
{
  const LsStrategy *s = e->s;
  if (s->tp > 1)
    emit_note (e, "tensor parallelism (--tp %u%s) is up to the model's code, handed over as mpu", s->tp,
               s->sp ? " --sp" : "");
  if (s->pp > 1)
    emit_note (e, "the pipeline (--pp %u) is up to the model's code: PipelineModule (num_stages=%u)", s->pp,
               s->pp);
  if (s->pp > 1 && !g_str_equal (s->schedule, "1f1b"))
    emit_refuse (e, "--schedule", "DeepSpeed's pipeline engine has 1f1b");
  if (s->n_layers_per_chunk > 0)
    emit_refuse (e, "--layers-per-chunk",
                 "PipelineModule counts layers or parameters (partition_method) and takes no list");
  if (s->vpp > 1)
    emit_refuse (e, "--vpp", "DeepSpeed's pipeline engine has one chunk per stage");
  if (s->pp > 1 && s->zero_stage > 1)
    emit_refuse (e, "--zero", "stage %u with --pp: DeepSpeed's pipeline engine has stages 0 and 1",
                 s->zero_stage);
  if (s->cp > 1 && s->cp_kind != LS_CP_ULYSSES)
    emit_refuse (e, "--cp-kind", "DeepSpeed has ulysses");
  if (s->cp > 1)
    emit_note (e, "--cp %u is up to the model's code: DistributedAttention of deepspeed.sequence", s->cp);
  if (s->ep_overlap || s->shared_overlap)
    emit_refuse (e, s->ep_overlap ? "--ep-overlap" : "--shared-overlap",
                 "DeepSpeed's experts wait for their tokens");
  if (e->m->n_experts > 0)
    emit_note (e, "experts (--ep %u) are up to the model's code: deepspeed.moe.layer.MoE (ep_size=%u)", s->ep,
               s->ep);
  if (s->optimizer)
    emit_note (e, "the optimizer (--optimizer %s) is up to the model's code, or to \"optimizer\" in the file",
               s->optimizer);
  emit_note (e, "%s attention is up to the model's code; so are optimizer and data; the world has %u ranks",
             s->attention == LS_ATTENTION_FLASH ? "flash" : "unfused", s->gpus);
}

static void
check_data_parallel (Emit *e)
{
  const LsStrategy *s = e->s;
  g_autofree char *knob = g_strdup_printf ("--dp-kind %s", ls_dp_kind_name (s->dp_kind));
  if (s->dp_kind != LS_DP_DEEPSPEED && s->dp_kind != LS_DP_NONE)
    emit_refuse (e, knob, "expected deepspeed");
  if (e->m->n_experts > 0 && s->grouped_gemm)
    emit_refuse (e, "--grouped-gemm 1", "DeepSpeed multiplies with one expert after the other");
  if (s->pipeline_batch > 0)
    emit_refuse (e, "--pipeline-batch", "DeepSpeed flushes its pipeline once a step");
  if (s->post_validation)
    emit_refuse (e, "--post-validation", "DeepSpeed waits for the norm of the gradients");
}

static void
check (Emit *e)
{
  emit_refuse_megatrons (e);
  if (e->m->n_experts > 0 && e->s->dispatcher != LS_DISPATCHER_ALL_TO_ALL)
    emit_refuse (e, "--dispatcher deepep", "DeepSpeed's experts exchange tokens by NCCL's all-to-all");
  check_data_parallel (e);
  check_formats (e);
  check_zero (e);
  check_recompute (e);
  note_code (e);
}

const EmitTarget emit_deepspeed = { "deepspeed", "DeepSpeed", &deepspeed_options, OPTION_JSON, NULL, check };
