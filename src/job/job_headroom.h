/* job/job_headroom.h — how much memory a job is to leave free, and whose program it is.
 *
 * Asked for: `--headroom` says so, a size or a share of the accelerator's memory; with `--for` alone it is
 * what that program takes. Otherwise it is what the program takes whose way to be data parallel the
 * job has (dp_kinds in strategies/software), and is told, not demanded. */
#ifndef LS_JOB_JOB_HEADROOM_H
#define LS_JOB_JOB_HEADROOM_H

#include "analysis/headroom.h"
#include "data/jobs/read_software.h"
#include "exec/memory/memory.h"
#include "job/hardware.h"

typedef struct {
  bool is_set;
  uint64_t bytes;
  double percent; /* of the accelerator's memory */
} LsHeadroomAsk;

/* "6GiB", "8%", "0". */
#define LS_HEADROOM_EXPECTED "a size such as 6GiB, a share of the accelerator's memory such as 8%, or 0"
bool ls_headroom_parse (const char *text, LsHeadroomAsk *ret_ask);

/* Of a job with that LsDpKind on that machine. software: that it is for, or NULL: the one that it is taken to
 * run (job/softwares.h). */
void ls_headroom_of (const LsHeadroomAsk *ask, const LsSoftwareSpec *software, int dp_kind,
                     const LsHardware *hardware, const LsMemoryOptions *memory, LsHeadroom *ret);

#endif
