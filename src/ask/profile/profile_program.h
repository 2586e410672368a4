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
 * in the replay (exec/replay/kernel_run.c): its time holds the rest.
 *
 * Deviations. Such a kernel keeps its time where there is less communication than there was. All ranks
 * arrive at a collective together, where one profile stands for all. */
#ifndef LS_ASK_PROFILE_PROFILE_PROGRAM_H
#define LS_ASK_PROFILE_PROFILE_PROGRAM_H

#include "ask/profile/profile_step.h"
#include "data/measured/read_kineto.h"
#include "plan/mesh.h"
#include "plan/plan.h"

/* --- the process groups of a profile as the communicators of a job ------------------------------- */

/* A profile is of one rank and names the groups that this rank is in. All ranks are taken to have theirs by
 * the same rule: a group of n ranks at equal steps of s makes every n s neighbouring ranks s groups.
 *
 * By mesh. Where the groups are one dimension or two of a mesh, the inner one of neighbours (tp) and the
 * outer one of ranks as far apart as the inner has (dp), or all ranks, the trace has a mesh: it can be
 * replayed with another dp. What is left of the world are pipeline stages, alike. One by one otherwise: each
 * group has a slot and each rank is listed.
 *
 * Which dimension a group is, its description says ("TENSOR_MODEL_PARALLEL_GROUP", "mesh_dp_shard"). One that
 * says none: all ranks are dp, neighbours tp, others dp.
 *
 * Worked example. 16 ranks; all-gathers among [0, 1, 2, 3], reductions among [0, 4, 8, 12]: tp 4, dp 4. */

#define LS_PROFILE_MAX_RANKS  1048576 /* of a trace             */
#define LS_PROFILE_MAX_LISTED 65536   /* of ranks one by one    */

typedef struct {
  uint8_t slot; /* LsSlot */
  uint8_t axis; /* LsAxis */
  uint32_t size, stride;
  const char *called; /* borrowed */
  bool is_inferred;   /* its dimension is not that of its name */
} LsProfileGroup;

typedef struct {
  uint32_t n_ranks;
  bool has_mesh;
  LsMesh mesh;
  GArray *groups; /* LsProfileGroup: those that are bound */
} LsProfileGroups;

/* Of n profiles the groups that is_used marks, by place in groups of the profile. LS_ERROR_LIMIT: more ranks
 * than a trace has. */
gboolean ls_profile_groups_find (const LsKineto *const *profiles, const bool *const *is_used, guint n,
                                 LsProfileGroups *ret_groups, GError **error);
void ls_profile_groups_clear (LsProfileGroups *groups);
/* Of each group of a profile the slot; LS_N_SLOTS: it is not bound. Newly allocated. */
uint8_t *ls_profile_groups_slots (const LsProfileGroups *groups, const LsKineto *k);

/* --- profiled steps as the plan of a job --------------------------------------------------------- */

typedef struct {
  bool without_stalls;  /* neither delays of the host nor waits that nothing explains */
  double compute_scale; /* of the time of kernels; 1: as measured                     */
} LsProfileChanges;

/* One program for each of n steps; of one profile all ranks run it, of several role_of says which [n_ranks].
 * The plan is checked. LS_ERROR_LIMIT: too many ops; else as of ls_plan_check(). */
LsPlan *ls_profile_plan (const LsProfileStep *const *steps, guint n, const LsProfileGroups *groups,
                         const uint32_t *role_of, const LsProfileChanges *changes, GError **error);

#endif
