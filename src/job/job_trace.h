/* job/job_trace.h — a job that a trace holds, up to its plan (private to job*.c). */
#ifndef LS_JOB_JOB_TRACE_H
#define LS_JOB_JOB_TRACE_H

#include "job/job.h"

/* Of a spec with a trace. Errors: those of reading it, LS_ERROR_USAGE (knobs that it has fixed),
 * LS_ERROR_CONFLICT. */
LsJobResult *ls_job_prepare_trace (const LsJobSpec *spec, GError **error);

/* Of so many nodes, 0: as many as the job or the file says. s: its number of GPUs, or degrees, of which it
 * follows. */
LsCluster *ls_job_build_cluster (LsStrategy *s, const LsHardware *hardware, uint32_t n_nodes, GError **error);

#endif
