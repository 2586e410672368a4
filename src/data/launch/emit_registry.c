/* data/launch/emit_registry.c — the programs for which launch files are written. */
#include "data/jobs/emit.h"

#include <lockstep/error.h>

#include "base/handover.h"
#include "base/suggest.h"
#include "data/launch/emit_target.h"
#include "data/jobs/job_files.h"
#include "data/launch/program/program_map.h"
#include "model/operators.h"
#include "strategy/shard.h"

static const EmitTarget emit_megatron
    = { "megatron", "Megatron-LM", NULL, OPTION_ARGUMENTS, "MEGATRON_ARGS", NULL, "megatron", true };
static const EmitTarget emit_torchtitan
    = { "torchtitan", "torchtitan", NULL, OPTION_TOML, NULL, NULL, "torchtitan" };

static const EmitTarget emit_deepspeed
    = { "deepspeed", "DeepSpeed", NULL, OPTION_JSON, NULL, NULL, "deepspeed" };

static const EmitTarget *const targets[] = { &emit_megatron, &emit_torchtitan, &emit_deepspeed };

const char *const *
ls_emit_targets (void)
{
  static const char *names[G_N_ELEMENTS (targets) + 1];
  static gsize once;
  if (ls_once_enter (&once)) {
    for (guint i = 0; i < G_N_ELEMENTS (targets); i++)
      names[i] = targets[i]->name;
    ls_once_leave (&once);
  }
  return names;
}

static const EmitTarget *
find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (targets); i++)
    if (g_str_equal (targets[i]->name, name))
      return targets[i];
  return NULL;
}

gboolean
ls_emit_check_target (const char *target, GError **error)
{
  if (find (target))
    return TRUE;
  g_autofree char *known = g_strjoinv (", ", (char **) ls_emit_targets ());
  g_autofree char *hint = ls_did_you_mean (target, ls_emit_targets ());
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--emit: expected one of %s; got \"%s\"%s", known, target,
               hint);
  return FALSE;
}

void
emit_refuse (Emit *e, const char *knob, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *why = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (e->refusals, LS_ERROR_UNSUPPORTED, NULL, 0, 0, NULL, NULL, NULL, "%s: %s", knob, why);
}

void
emit_note (Emit *e, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_string_append_vprintf (e->notes, format, args);
  va_end (args);
  g_string_append_c (e->notes, '\n');
}

void
emit_refuse_megatrons (Emit *e)
{
  if (e->s->fp8_act_store)
    emit_refuse (e, "--fp8-act-store", "Megatron-LM's activation_func_fp8_input_store");
  const LsAdamStates states = ls_strategy_adam (e->s);
  if (!ls_adam_is_plain (&states))
    emit_refuse (
        e, "--master, --moment-dtype, --variance-dtype",
        "Megatron-LM's precision-aware optimizer, or weights that the optimizer steps on themselves");
  if (e->s->cuda_graphs != LS_GRAPHS_NONE)
    emit_refuse (e, "--cuda-graphs", "only Megatron-LM's --cuda-graph-impl is written");
  if (!ls_strategy_is_ordered (e->s, "tp-cp-ep-dp-pp"))
    emit_refuse (e, "--rank-order", "ranks go by tp, cp, dp, pp there, the fastest first");
  if (e->m->predict_layers > 0)
    emit_refuse (e, "predict_layers of the model", "only Megatron-LM's --mtp-num-layers is written");
  const uint64_t words = ls_model_padded_vocab (e->m, e->s->vocab_multiple, e->s->tp);
  if (words != e->m->vocab)
    emit_note (e, "the %u tokens are padded to %" G_GUINT64_FORMAT " here (vocab_multiple %u), not there",
               e->m->vocab, words, e->s->vocab_multiple);
}

bool
emit_has_pipeline (Emit *e, const char *program)
{
  const LsStrategy *s = e->s;
  bool is_plain = s->vpp == 1 && (g_str_equal (s->schedule, "none") || g_str_equal (s->schedule, "1f1b"));
  if (s->pp == 1 && !is_plain)
    emit_refuse (e, s->vpp > 1 ? "--vpp" : "--schedule", "%s has neither chunks nor a schedule with --pp 1",
                 program);
  return s->pp > 1;
}

void
emit_note_attention (Emit *e, const char *library)
{
  const LsStrategy *s = e->s;
  if (s->attention_kernel == LS_ATTENTION_KERNEL_AUTO || s->attention_kernel == s->attention_else)
    return;
  const LsField *knob = ls_field_find (ls_strategy_fields, "attention_kernel");
  g_autofree char *kernel = ls_field_text (knob, s, NULL), *option = ls_field_option (knob, kernel);
  emit_note (e, "which kernel attention runs (%s) is up to %s", option, library);
}

static char *
write (const EmitTarget *target, const LsEmitJob *job)
{
  GString *out = g_string_new (NULL);
  if (target->syntax != OPTION_JSON)
    g_string_append_printf (out, "# %s\n", job->title);
  if (target->array)
    g_string_append_printf (out, "%s=(\n", target->array);
  option_write (target->map ? program_table_find (target->map) : target->table, target->syntax, job->model,
                job->strategy, out);
  if (target->array)
    g_string_append (out, ")\n");
  return g_string_free (out, FALSE);
}

/* Whether the program has all of the job; false: *error is set. */
static bool
is_had (const EmitTarget *target, const LsEmitJob *job, GString *notes, GError **error)
{
  g_autoptr (LsDiagList) refusals = error ? ls_diag_list_new () : ls_diag_list_new_counting ();
  Emit e = { job->model, job->strategy, job->title, refusals, notes };
  if (job->order)
    emit_refuse (&e, "--order", "the order of a file; a schedule has a name there");
  if (job->strategy->fp8_attention != LS_FP8_ATTENTION_NONE)
    emit_refuse (&e, "--fp8-attention", "which releases have it as an option is not known");
  if (job->strategy->micro_batches_per_replica)
    emit_refuse (&e, "--micro-batches-per-replica", "all data-parallel ranks have as many there");
  if (job->strategy->apex_norm)
    emit_refuse (&e, "--set apex_norm=1", "Megatron-LM's kernels until early 2022");
  if (job->strategy->split_bias_dropout)
    emit_refuse (&e, "--set split_bias_dropout=1", "Megatron-LM's kernels of 2023");
  if (job->strategy->batch_sync)
    emit_refuse (&e, "--set batch_sync=1", "Megatron-LM's way until late 2023");
  if (job->strategy->lora_rank > 0)
    emit_refuse (&e, "--lora-rank", "adapters on frozen weights are none of a pre-training's options");
  if (job->strategy->launch_blocking)
    emit_note (&e, "CUDA_LAUNCH_BLOCKING=1 in the environment makes launches block");
  if (job->strategy->placement)
    emit_note (&e, "which GPU each rank has (--placement %s) is up to the scheduler and the launcher",
               job->strategy->placement);
  if (job->strategy->lengths)
    emit_note (&e, "documents in a sequence (--lengths %s) are up to the data and to the mask of attention",
               job->strategy->lengths);
  if (job->strategy->cuda_allocator == LS_CUDA_ALLOCATOR_EXPANDABLE)
    emit_note (&e,
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment makes segments of the "
               "allocator grow");
  if (target->map) {
    if (!target->is_megatron)
      emit_refuse_megatrons (&e);
    program_check_written (target->map, &e);
  } else
    target->check (&e);
  if (!error)
    return ls_diag_list_n (refusals) == 0;
  g_autoptr (GError) refused = NULL;
  if (ls_diag_list_to_error (refusals, &refused))
    return true;
  g_prefix_error (&refused, "%s cannot express this job:\n", target->program);
  g_propagate_error (error, g_steal_pointer (&refused));
  return false;
}

gboolean
ls_emit_check (const LsEmitJob *job, const char *target, GError **error)
{
  g_autoptr (GString) notes = g_string_new (NULL);
  return ls_emit_check_target (target, error) && is_had (find (target), job, notes, error);
}

char *
ls_emit (const LsEmitJob *job, const char *target, char **ret_notes, GError **error)
{
  g_autoptr (GString) notes = g_string_new (NULL);
  if (!ls_emit_check_target (target, error) || !is_had (find (target), job, notes, error))
    return NULL;
  *ret_notes = g_strdup (notes->str);
  return write (find (target), job);
}
