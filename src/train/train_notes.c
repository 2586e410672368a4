/* train/train_notes.c — what is assumed of a training run; options without effect. */
#include <math.h>
#include <string.h>

#include "train/train_steps.h"

void
ls_train_note_storage (LsTrainReport *r, const LsTrainChoice *choice)
{
  const LsCheckpointTimes *t = &r->checkpoint.times;
  g_autofree char *takes = g_strdup_printf ("%.4g s", t->write_s),
                  *has = g_strdup_printf ("%.4g s", choice->interval_s);
  if (t->write_s <= choice->interval_s
      || strcmp (takes, has) == 0) /* what it waits then is nothing to tell */
    return;
  g_ptr_array_add (r->notes,
                   g_strdup_printf ("writing a checkpoint takes %s, longer than the %s to the next: the job "
                                    "waits for it each time",
                                    takes, has));
}

static void
note (LsTrainReport *r, bool holds, const char *text)
{
  if (holds)
    g_ptr_array_add (r->notes, g_strdup (text));
}

static bool
replaces_nodes (const LsReliability *reliability)
{
  for (guint i = 0; i < reliability->causes->len; i++) {
    int effect = g_array_index (reliability->causes, LsFailureCause, i).effect;
    if (effect == LS_FAILURE_REPLACE || effect == LS_FAILURE_SLOW || effect == LS_FAILURE_CORRUPT)
      return true;
  }
  return false;
}

#define FAR 2 /* times as many GPUs, or as few */

/* What is counted by the job does not grow with it. */
static void
note_causes_of_jobs (LsTrainReport *r, const LsReliability *reliability)
{
  double seen = reliability->seen.of[LS_FAILS_GPU], own = r->n_gpus;
  g_autoptr (GString) names = g_string_new (NULL);
  for (guint i = 0; i < reliability->causes->len; i++) {
    const LsFailureCause *cause = &g_array_index (reliability->causes, LsFailureCause, i);
    if (cause->unit == LS_FAILS_JOB)
      g_string_append_printf (names, "%s%s", names->len > 0 ? ", " : "", cause->name);
  }
  if (names->len > 0 && seen > 0 && (own * FAR < seen || own > seen * FAR))
    g_ptr_array_add (r->notes,
                     g_strdup_printf ("%s: taken as often as in the job of %.0f GPUs where it was counted, "
                                      "though this one has %.0f: how it depends on size is not known",
                                      names->str, seen, own));
}

/* Checkpoints of all phases are those of the last. */
static void
note_phases_of_other_state (LsTrainReport *r)
{
  for (guint i = 0; i < r->phases->len; i++) {
    const LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, i);
    g_autofree char *own = ls_format_bytes ((uint64_t) p->checkpoint_bytes),
                    *counted = ls_format_bytes ((uint64_t) r->checkpoint.bytes);
    if (p->checkpoint_bytes != r->checkpoint.bytes)
      g_ptr_array_add (r->notes,
                       g_strdup_printf ("a checkpoint of phase %s has %s: it is counted as one of "
                                        "the last phase, %s",
                                        p->name, own, counted));
  }
}

void
ls_train_notes (LsTrainReport *r, const LsTrainSpec *spec, const LsReliability *reliability)
{
  bool is_storage = spec->checkpoint_to == LS_CHECKPOINT_STORAGE;
  bool has_spare = !spec->spares || g_array_index (spec->spares, uint32_t, 0) == LS_SPARES_ANY;
  bool is_given = spec->given.save != LS_TIME_NEVER && spec->given.read != LS_TIME_NEVER;
  note (r, !spec->reliability && r->causes->len == 0,
        "nothing is known of failures of these chips: none is assumed");
  note (
      r, !r->job->model.name && !is_given,
      "the trace does not say what a checkpoint holds: each rank is assumed to write its own parameters and "
      "state of the optimizer, which is too much where ranks hold the same (--checkpoint-save, "
      "--checkpoint-read)");
  note (
      r, r->goal.law.name && r->goal.critical_batch == 0,
      "the law of the loss says nothing of batches: this one is taken to need no more tokens than small ones "
      "(--critical-batch)");
  note_causes_of_jobs (r, reliability);
  note_phases_of_other_state (r);
  note (r, spec->elastic && has_spare, "--elastic has no effect here: a spare node is always free");
  note (r, spec->elastic && r->job->strategy.dp == 1, "--elastic has no effect here: there is one replica");
  note (r, spec->spares && !replaces_nodes (reliability), "--spares has no effect here: no node is replaced");
  note (r, spec->storage_every > 0 && is_storage,
        "--storage-every has no effect here: each checkpoint goes to storage");
  note (r, spec->checkpoint_async && !is_storage,
        "--checkpoint-async has no effect here: the job never waits for storage");
  note (r, spec->storage_bytes_per_s > 0 && is_storage && is_given && !spec->checkpoint_async,
        "--storage-bandwidth has no effect here: how long saving and reading take is given");
  note (r, spec->seed != 1 && r->causes->len == 0, "--first-seed has no effect here: nothing fails");
  note (r, !r->step_spread && spec->jitter_seed != 1, "--jitter-seed has no effect here: steps do not vary");
  note (r, spec->job.trace && !spec->jitter,
        "steps do not vary: a trace does not say which ranks make up a replica");
  note (r, spec->job.slow.ranks && !spec->jitter,
        "steps do not vary: --slow says how fast each rank is (--jitter)");
  note (r, spec->co2_g_per_kwh > 0 && isnan (r->mwh),
        "--co2 has no effect here: the power of a chip is not known");
  note (r, !isnan (spec->price.pue) && isnan (r->mwh),
        "--pue has no effect here: the power of a chip is not known (--gpu-watts)");
}
