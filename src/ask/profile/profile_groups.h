/* ask/profile/profile_groups.h — the process groups of a profile as the communicators of a job.
 *
 * A profile is of one rank and names the groups that this rank is in. All ranks are taken to have theirs by
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
#ifndef LS_ASK_PROFILE_PROFILE_GROUPS_H
#define LS_ASK_PROFILE_PROFILE_GROUPS_H

#include "data/measured/read_kineto.h"
#include "plan/mesh.h"
#include "plan/plan.h"

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

/* Binds all ranks of the plan: their roles are their stages, or, not NULL, those of role_of [n_ranks], which
 * lists them. */
void ls_profile_groups_bind (const LsProfileGroups *groups, const uint32_t *role_of, LsPlan *plan);

#endif
