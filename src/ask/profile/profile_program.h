/* ask/profile/profile_program.h — profiled steps as the plan of a job.
 *
 * Each rank's program is its step's ops in the order in which the host issued them. Issuing costs nothing;
 * what the host did between two launches is a delay of the host, and what it waited for is a sync. Times at
 * which it issues are those of profile_step.h. A launch that took over 20 us with 500 ops ahead of the GPU
 * waited for room in the queue, which is not the host's time.
 *
 * Steps follow each other as long after each other as they did. The first one finds the GPU as far behind
 * the host as it was.
 *
 * A kernel of which b ran beside communication that is ours is slowed by 1 - b of what communication takes
 * in the replay (exec/kernel_run.c): its time holds the rest.
 *
 * Deviations. Such a kernel keeps its time where there is less communication than there was. All ranks
 * arrive at a collective together, where one profile stands for all. */
#ifndef LS_ASK_PROFILE_PROFILE_PROGRAM_H
#define LS_ASK_PROFILE_PROFILE_PROGRAM_H

#include "ask/profile/profile_groups.h"
#include "ask/profile/profile_step.h"

typedef struct {
  bool without_stalls;  /* neither delays of the host nor waits that nothing explains */
  double compute_scale; /* of the time of kernels; 1: as measured                     */
} LsProfileChanges;

/* One program for each of n steps; of one profile all ranks run it, of several role_of says which [n_ranks].
 * The plan is checked. LS_ERROR_LIMIT: too many ops; else as of ls_plan_check(). */
LsPlan *ls_profile_plan (const LsProfileStep *const *steps, const LsMeasuredStep *const *cuts, guint n,
                         const LsProfileGroups *groups, const uint32_t *role_of,
                         const LsProfileChanges *changes, GError **error);

#endif
