/* job/knobs.h — a strategy in words; a change to a job, as the options that make it. */
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
/* Whether launch files of the job, if it has any, can be read with the knobs of the resolved s; diags says
 * why not. */
bool ls_job_is_read (const LsJobSpec *job, const LsModel *model, const LsStrategy *s, LsDiagList *diags);
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

/* A change to a job, as the options that make it.
 *
 * A change is kept as keys and values of ls_job_spec_set(), so whatever is said of it holds for the job that
 * a user starts with these options appended. Which changes there are: ask/whatif.h. */

typedef struct {
  const char *idea;    /* static: what kind of change: "pipeline schedule" */
  const char *cost;    /* static: what it takes beside time and memory: "other accelerators"; NULL: nothing */
  bool needs_more;     /* software, machines, memory or numerics that the job does not have */
  GPtrArray *settings; /* char *, owned: key, value, key, value, ...; each key once */
} LsChange;

LsChange *ls_change_new (const char *idea, const char *cost, bool needs_more); /* of nothing yet */
void ls_change_free (LsChange *change);                                        /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsChange, ls_change_free)

/* In place of what it had for this key. */
void ls_change_set (LsChange *change, const char *key, const char *format, ...) G_GNUC_PRINTF (3, 4);
const char *ls_change_setting (const LsChange *change, const char *key); /* NULL: it sets nothing of it */
void ls_change_need (LsChange *change, const char *cost);                /* more than the job has */

/* Both, b after a: of a key that both have, the value of b. */
LsChange *ls_change_join (const LsChange *a, const LsChange *b);

/* "--schedule interleaved-1f1b --vpp 2": to append to the options of the job. A switch that is turned
 * off has no option: "without --sp". Newly allocated. */
char *ls_change_text (const LsChange *change);

/* Equal for equal changes, whatever the order of their keys. Newly allocated. */
char *ls_change_key (const LsChange *change);

/* The job with all of it, which the caller clears in any case. Launch files are read again, as for the
 * options that it is: rules of their program may follow it. But the batch stays, for which it gets an option
 * more where a rule would have another one. Diagnostics as of ls_job_spec_set(). */
bool ls_change_make (LsChange *change, const LsJobSpec *spec, LsJobSpec *ret_changed, LsDiagList *diags);
/* The same of the model, the program and the launch files of the job alone, without other options that it
 * has. names_program: one that they bring is named, too, as a whole command does. */
bool ls_change_make_alone (const LsChange *change, const LsJobSpec *spec, bool names_program, LsJobSpec *ret,
                           LsDiagList *diags);

#endif
