/* job/job_written.h — what of a job a program's configuration does not say that was written for it
 * (data/jobs/emit.h).
 *
 * Method. The text is read again, as --from reads it; the options that make that job this one are what it
 * lacks. */
#ifndef LS_JOB_JOB_WRITTEN_H
#define LS_JOB_JOB_WRITTEN_H

#include "data/jobs/emit.h"
#include "job/job.h"

/* As ls_emit (), of a job of `spec`. A note has what it rests on, NULL: none; the last, options with which
 * `--from` of the text is the same job again; none: it needs none, or cannot be read alone. */
char *ls_job_emit (const LsJobSpec *spec, const LsEmitJob *job, const GArray *assumptions,
                   const char *program, char **ret_notes, GError **error);

#endif
