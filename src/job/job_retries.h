/* job/job_retries.h — a job whose segments of PyTorch's allocator meet the memory of the GPU, at the speed
 * that it then has.
 *
 * The job is simulated as if there were memory enough; its allocations are replayed at the limit
 * (exec/memory/retries.h); each call of the driver that comes out is put before its op (plan/plan_stalls.h),
 * and the job is simulated again. Only programs that use the allocator without expandable segments
 * (cuda_allocator) do so, and only where so much is in use that segments may fill the device: elsewhere
 * nothing is done.
 *
 * Deviation. A run that keeps no times (of a sweep, of validate) looks at the order of allocations to see
 * whether so much is in use, which is too low where the host gathers far ahead (fsdp1 without
 * limit_all_gathers). */
#ifndef LS_SWEEP_JOB_RETRIES_H
#define LS_SWEEP_JOB_RETRIES_H

#include "job/job.h"

/* r has its timeline, of a run with these arguments, which is replaced where there are retries; r->retries
 * says of them. Errors as of ls_run(). */
gboolean ls_job_settle_retries (LsJobResult *r, const LsHardware *chosen, const LsRunOptions *run,
                                double *ret_cost_share, GError **error);

/* What waits to be free when a retry comes is free behind it: of the memory of a job with retries no more is
 * needed than segments may take. */
void ls_job_fit_retries (LsJobResult *r);

/* Appends to the notes of a result what a user is to know of them: retries, no memory left, or segments that
 * come so near to the limit that what no simulated category holds (job/job_headroom.h) meets it. */
void ls_job_note_retries (const LsJobSpec *spec, LsJobResult *r);

#endif
