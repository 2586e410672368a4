/* api/api_job.h — what a job and its result consist of (private). */
#ifndef LS_API_API_JOB_H
#define LS_API_API_JOB_H

#include <lockstep/lockstep.h>

#include "analysis/critical_summary.h"
#include "job/job_interval.h"
#include "show/run/write_memory.h"
#include "show/run/write_sensitivity.h"

struct LsJob {
  LsJobSpec spec;
};

struct LsResult {
  LsJobResult *job;
  LsMemoryOptions memory;        /* how its memory was measured */
  LsMemoryAdvice *advice;        /* NULL: nobody asked          */
  LsCriticalPath *critical_path; /* the same, as the next two */
  LsPathSummary *critical_summary;
  LsSensitivityTable *sensitivity;
  LsInterval *interval; /* NULL: not wanted */
  LsMeasured measured;
  GPtrArray *findings; /* char *: what its numbers say */
  char *title;
};

/* "gpt3-175b on 64 GPUs of dgx-a100-80g"; "tp 8 + sp, pp 8 x 3 chunks, ...", or where a trace comes from.
 * Newly allocated. */
char *ls_job_title (const LsJobResult *r);
char *ls_job_subtitle (const LsJobResult *r);

#endif
