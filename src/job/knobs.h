/* job/knobs.h — a strategy in words. */
#ifndef LS_JOB_KNOBS_H
#define LS_JOB_KNOBS_H

#include "data/text/field.h"
#include "job/job.h"
#include "model/model.h"
#include "strategy/strategy.h"

/* The knobs of a resolved strategy as one would type them: "--tp 8 --pp 8 ...", without those that are
 * so by themselves; the usual numbers and words are always there. Newly allocated. */
char *ls_knobs_format (const LsStrategy *s);
/* The knobs of a strategy, which is the resolved one of a job of the model with other knobs: so that they
 * hold behind --for, --software and --from of the job, and without. is_brief: those that are idle in the
 * model are left out, as a recipe of fp8 in bf16. Newly allocated. */
char *ls_job_knobs (const LsJobSpec *job, const LsModel *model, bool is_brief, const LsStrategy *s);
/* Options but model and cluster that were set, each with a blank after it: "--steps 5 ". Newly allocated. */
char *ls_job_options (const LsJobSpec *job);
/* The whole command that runs it: what was said of the job, then the knobs that it lacks. Newly allocated. */
char *ls_job_command (const LsJobSpec *job, const LsModel *model, const LsStrategy *s);

/* The knobs that, behind the command of `first`, make it that of s; none that make no difference to the model
 * m. Newly allocated. */
char *ls_job_knobs_instead (const LsJobSpec *job, const LsModel *m, const LsStrategy *s,
                            const LsStrategy *first);

/* A knob under the defaults of a program, on the accelerator of s; NULL: defaults is, or they say nothing.
 * Newly allocated. */
char *ls_knob_of_program (const LsField *knob, const LsStrategy *s, const LsStrategy *defaults);

/* What matters at a glance: "tp 8 + sp, pp 8 x 3 chunks, dp 1, ...", with all degrees that ranks are the
 * product of, and what a job of the model has otherwise than by itself: sequences of another length than m's,
 * weights that stay whole after a forward, which parts are recomputed. Newly allocated. */
char *ls_knobs_summary (const LsStrategy *s, const LsModel *m);

/* What is recomputed, in a word or two: "none", "full", "selective", or its parts where they are others than
 * by itself: "norm,activation". Newly allocated. */
char *ls_knobs_recompute (const LsStrategy *s);

/* A word for a shell: as it is, or in quotes where it needs them. Newly allocated. */
char *ls_shell_quote (const char *word);

#endif
