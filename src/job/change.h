/* job/change.h — a change to a job, as the options that make it.
 *
 * A change is kept as keys and values of ls_job_spec_set(), so whatever is said of it holds for the job that
 * a user starts with these options appended. Which changes there are: ask/whatif.h. */
#ifndef LS_JOB_CHANGE_H
#define LS_JOB_CHANGE_H

#include "job/job.h"

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
void ls_change_need (LsChange *change, const char *cost); /* more than the job has */

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
