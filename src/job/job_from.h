/* job/job_from.h — a job that a launch file says (LsJobSpec.from): its model, what is missing, what is told.
 *
 * The file stands for a file of a model and one of a strategy: `lockstep import FILE -o mine.json` writes
 * these, and `--model mine-model.json --strategy mine.json` is the same job. --model takes the place of its
 * model, --strategy and every knob go before what it says. What it leaves open is refused unless it is given:
 * nothing is assumed about a job that somebody has. */
#ifndef LS_JOB_JOB_FROM_H
#define LS_JOB_JOB_FROM_H

#include "job/job.h"

/* Appends to the files of --from, a line each, what is said beside them: what a program makes of its options
 * depends on them together. What is no number or word says nothing there. */
void ls_job_add_known (GString *files, const char *key, const char *value);

/* LS_ERROR_USAGE: neither a model nor a launch file, or no cluster. */
gboolean ls_job_check_named (const LsJobSpec *spec, GError **error);

/* Whether a key of the strategy has a value that somebody said. */
typedef bool (*LsJobSaysFunc) (const LsJobSpec *spec, const char *key);
bool ls_job_says (const LsJobSpec *spec, const char *key);

/* Whether a replay may have another value of it than the job that the trace was made of. */
bool ls_knob_goes_with_trace (const LsField *knob);
/* Whether the launch file gives a key of the strategy, and s still has that value. */
bool ls_job_has_from (const LsJobSpec *spec, const LsField *knob, const LsStrategy *s);

/* The model of --model, or that of the launch file. Of the latter also what the job lacks, LS_ERROR_INPUT
 * with the form that gives it, and with is_strict what is not known, LS_ERROR_UNSUPPORTED. Otherwise as
 * ls_model_load(). says: of the job, or of what it is the base of. */
bool ls_job_load_model (const LsJobSpec *spec, LsJobSaysFunc says, LsModel *ret_model, GPtrArray *notes,
                        LsDiagList *diags);
/* Whether anything says how many accelerators a job of a launch file has; LS_ERROR_INPUT. */
bool ls_job_from_has_size (const LsJobSpec *spec, const LsClusterSpec *cluster, LsDiagList *diags);

/* A job on an accelerator that lacks what its launch file, its program or its model takes: attention in parts
 * where there is no flash attention. What an option says stays. The second notes it. */
void ls_job_fit_attention (const LsJobSpec *spec, const LsModel *model, const LsHardware *hardware,
                           LsStrategy *s);
void ls_job_note_attention_fit (const LsJobSpec *spec, const LsModel *model, const LsHardware *hardware,
                                const LsStrategy *s, GPtrArray *notes);

/* What a user wants to know of the reading, a line each (char *, owned by the array); none without a file. */
void ls_job_from_notes (const LsJobSpec *spec, GPtrArray *notes);

/* Takes the step that a log timed to compare with, unless --measured says one, or an option changed the job:
 * that is a note. Once all is set. */
void ls_job_from_measure (LsJobSpec *spec, GPtrArray *notes);

#endif
