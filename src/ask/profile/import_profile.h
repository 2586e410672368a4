/* ask/profile/import_profile.h — profiles of a real run as a trace that can be replayed.
 *
 * A profile of one rank stands for all of them: each runs its step. Of several each rank runs its own, and
 * one without a profile that of the nearest rank below it that has one.
 *
 * Kernels take the time that they took. Communication is ours where the profile says what it moves and among
 * whom: its time is that of the cluster of the replay. It is as measured where the profile does not say
 * that, between two ranks (send and receive), and if asked for. */
#ifndef LS_ASK_PROFILE_IMPORT_PROFILE_H
#define LS_ASK_PROFILE_IMPORT_PROFILE_H

#include "ask/profile/profile_step.h"
#include "plan/mesh.h"

typedef struct {
  bool without_stalls;  /* neither delays of the host nor waits that nothing explains */
  double compute_scale; /* of the time of kernels; 1: as measured                     */
} LsProfileChanges;

typedef struct {
  const char *const *paths; /* ends in NULL      */
  const char *name;         /* of the trace      */
  const char *step;         /* as of ls_measured_step_cut() */
  bool as_measured;         /* communication too */
  LsProfileChanges changes;
} LsProfileImportSpec;

/* Communication of one kind, group and size. */
typedef struct {
  uint8_t class; /* LsOpClass */
  uint64_t bytes;
  uint32_t size; /* of its group; 0: not known */
  bool is_ours;
  guint n;
  LsTime time; /* measured, of all */
} LsProfileTraffic;

typedef struct {
  char *text; /* of the trace */
  char *what; /* which step   */
  char *gpu;  /* NULL: not said */
  LsTime step, kernels,
      host_late; /* measured, of the first profile: the step, its kernels, what began late */
  guint n_profiles, n_kernels, n_copies, n_syncs;
  uint32_t n_ranks;
  bool has_mesh, takes_dp; /* it can be replayed with another dp */
  LsMesh mesh;
  GArray *traffic;  /* LsProfileTraffic, of the first profile */
  GPtrArray *notes; /* char *: what is assumed                */
} LsProfileImport;

/* loaded: a profile, which it takes; NULL: those of spec->paths. LS_ERROR_INPUT, LS_ERROR_LIMIT,
 * LS_ERROR_CONFLICT: the profiles are not of one job. */
LsProfileImport *ls_profile_import_new (LsKineto *loaded, const LsProfileImportSpec *spec, GError **error);
void ls_profile_import_free (LsProfileImport *import); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsProfileImport, ls_profile_import_free)

/* --- profiled steps as the plan of a job ------------------------------------------------------------- */

/* Each rank's program is its step's ops in the order in which the host issued them. Issuing costs nothing;
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

#endif
