/* A job as DeepSpeed's configuration (JSON). Names and rules as in docs/_pages/config-json.md
 * of DeepSpeed; of ZeRO also deepspeed/runtime/zero/config.py. DeepSpeed counts pipeline and
 * tensor parallelism among what the caller's code does. */
#include "data/jobs/emit_target.h"
#include "data/text/json_out.h"

static const char *
format_name (int dtype)
{
  return ls_dtype_name ((LsDtype) dtype);
}

static void
add_switch (LsJsonOut *w, const char *key)
{
  ls_json_out_begin_object (w, key);
  ls_json_out_bool (w, "enabled", true);
  ls_json_out_end_object (w);
}

static void
add_formats (Emit *e, LsJsonOut *w)
{
  const LsStrategy *s = e->s;
  if (ls_dtype_is_scaled ((LsDtype) s->dtype))
    emit_refuse (e, s->dtype == LS_DTYPE_FP8 ? "--dtype fp8" : "--dtype nvfp4",
                 "DeepSpeed has fp16, bf16 and fp32");
  if (s->dtype == LS_DTYPE_BF16)
    add_switch (w, "bf16");
  if (s->dtype == LS_DTYPE_FP16)
    add_switch (w, "fp16");
  ls_json_out_begin_object (w, "data_types");
  ls_json_out_string (w, "grad_accum_dtype", format_name (s->grad_dtype));
  ls_json_out_end_object (w);
  ls_json_out_string (w, "communication_data_type", format_name (s->grad_dtype));
}

static void
add_offload (LsJsonOut *w, const char *key, const char *place)
{
  ls_json_out_begin_object (w, key);
  ls_json_out_string (w, "device", place);
  ls_json_out_bool (w, "pin_memory", true);
  ls_json_out_end_object (w);
}

static void
add_offloads (Emit *e, LsJsonOut *w)
{
  const LsStrategy *s = e->s;
  const char *place = s->offload_to == LS_OFFLOAD_TO_NVME ? "nvme" : "cpu";
  if (s->offload == LS_OFFLOAD_NONE)
    return;
  add_offload (w, "offload_optimizer", place);
  if (s->offload == LS_OFFLOAD_PARAMETERS)
    add_offload (w, "offload_param", place);
  if (s->offload_to == LS_OFFLOAD_TO_NVME)
    emit_note (e, "nvme_path, where the drives are mounted, is still to be set");
}

static void
add_zero (Emit *e, LsJsonOut *w)
{
  const LsStrategy *s = e->s;
  ls_json_out_begin_object (w, "zero_optimization");
  ls_json_out_uint (w, "stage", s->zero_stage);
  ls_json_out_bool (w, "overlap_comm", s->dp_overlap);
  ls_json_out_bool (w, "contiguous_gradients", true);
  ls_json_out_bool (w, "reduce_scatter", true);
  ls_json_out_uint (w, "reduce_bucket_size", s->reduce_bucket);
  if (s->zero_stage == 1 || s->zero_stage == 2) {
    ls_json_out_bool (w, "allgather_partitions", true);
    ls_json_out_uint (w, "allgather_bucket_size", s->allgather_bucket);
  }
  if (s->zero_stage == 3) {
    ls_json_out_uint (w, "stage3_prefetch_bucket_size", s->prefetch_bucket);
    ls_json_out_uint (w, "stage3_param_persistence_threshold", s->persistence_threshold);
    ls_json_out_uint (w, "stage3_max_live_parameters", s->max_live_params);
    ls_json_out_uint (w, "stage3_max_reuse_distance", s->max_reuse_distance);
  }
  if (s->zero_group > 0 && s->zero_stage == 3) {
    ls_json_out_uint (w, "mics_shard_size", s->zero_group);
    emit_note (e, "groups of ranks (MiCS): the model is built within deepspeed.zero.MiCS_Init");
  } else if (s->zero_group > 0)
    emit_refuse (e, "--zero", "groups of ranks; DeepSpeed has them with stage 3 only (MiCS)");
  if (s->collective_lists)
    emit_note (e,
               "gathers and scatters over lists of tensors are those of DeepSpeed until early 2021; no "
               "setting brings them back");
  add_offloads (e, w);
  ls_json_out_end_object (w);
}

static void
add_recompute (Emit *e, LsJsonOut *w)
{
  const LsStrategy *s = e->s;
  if (s->recompute == LS_RECOMPUTE_SELECTIVE)
    emit_note (e, "selective recomputation is up to the model's code");
  if (s->recompute != LS_RECOMPUTE_FULL && !s->offload_activations)
    return;
  if (s->offload_activations && s->recompute != LS_RECOMPUTE_FULL)
    emit_refuse (e, "--offload-activations", "DeepSpeed offloads what full recomputation keeps");
  ls_json_out_begin_object (w, "activation_checkpointing");
  ls_json_out_bool (w, "partition_activations", s->partition_activations);
  ls_json_out_bool (w, "cpu_checkpointing", s->offload_activations);
  ls_json_out_end_object (w);
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
  if (s->post_validation)
    emit_refuse (e, "--post-validation", "DeepSpeed waits for the norm of the gradients");
}

static void
emit (Emit *e, GString *out)
{
  const LsStrategy *s = e->s;
  LsJsonOut w;
  emit_refuse_megatrons (e);
  check_data_parallel (e);
  ls_json_out_init (&w, out, 2);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_uint (&w, "train_batch_size", s->global_batch);
  ls_json_out_uint (&w, "train_micro_batch_size_per_gpu", s->micro_batch);
  ls_json_out_uint (&w, "gradient_accumulation_steps", emit_n_micro_batches (s));
  ls_json_out_double (&w, "gradient_clipping", s->grad_norm ? 1.0 : 0.0);
  add_formats (e, &w);
  add_zero (e, &w);
  add_recompute (e, &w);
  ls_json_out_end_object (&w);
  g_string_append_c (out, '\n');
  note_code (e);
}

const EmitTarget emit_deepspeed = { "deepspeed", "DeepSpeed", emit };
