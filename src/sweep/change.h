/* sweep/change.h — single changes to a job, each as the options that make it.
 *
 * Problem. Which one thing should a user change? A change is kept as keys and values of
 * ls_job_spec_set(), so whatever is said of it holds for the job that a user starts with
 * these options appended.
 *
 * Worked example. To a job with tp 4, dp 8 and 1f1b on 2 stages "pipeline schedule" proposes
 * {schedule zb-h1}, {schedule interleaved-1f1b, vpp 2} and others; "layout" proposes
 * {tp 8, dp 4}, {tp 2, dp 16} and others.
 *
 * Deviation. What is proposed may be illegal for the job: resolving it says so. */
#ifndef LS_SWEEP_CHANGE_H
#define LS_SWEEP_CHANGE_H

#include "sweep/job.h"

typedef struct {
  const char *idea; /* static: what kind of change: "pipeline schedule" */
  const char *cost; /* static: what it takes beside time and memory: "other accelerators"; NULL: nothing */
  GPtrArray *settings; /* char *, owned: key, value, key, value, ... */
} LsChange;

/* Proposed for the job of `spec`, which ran as r, always in the same sequence. A GPtrArray of LsChange
 * that frees them; none for a trace, which has fixed everything. Of a job whose pipeline runs in the order of a
 * file, none that would need another order. */
GPtrArray *ls_changes_propose (const LsJobSpec *spec, const LsJobResult *r);

/* Which kinds of change are not proposed for this job, and why: a static sentence; NULL: all are. */
const char *ls_changes_left_out (const LsJobSpec *spec);

/* "--schedule interleaved-1f1b --vpp 2": to append to the options of the job. A switch that is turned
 * off has no option: "without --sp". Newly allocated. */
char *ls_change_text (const LsChange *change);

/* Sets all of it. Diagnostics as of ls_job_spec_set(). */
gboolean ls_change_apply (const LsChange *change, LsJobSpec *spec, LsDiagList *diags);

#endif
