/* plan/bind.h — ranks bound by their place in a mesh: role, neighbours, and the
 * communicators of each slot. A slot joins the ranks that agree in all coordinates
 * but those that it spans:
 *
 *     tp         tp
 *     cp         cp
 *     dp         cp, dp
 *     shard      cp, dp: runs of mesh->shard neighbours
 *     replica    cp, dp: those at the same place of such runs
 *     embedding  pp, its first and last stage only
 *     pipes      pp, those with the same stages: mesh->pipes of them
 *     tp-cp      tp, cp
 *     stage      tp, cp, dp
 *     model      tp, pp
 *     world      tp, cp, dp, pp
 *
 * Experts divide the n = tp cp dp ranks of a stage in another way (plan/mesh.h): etp, ep and
 * edp join those that agree in all indices of experts but that one.
 *
 * Members are in order of rank, as Megatron-LM lists them. A communicator of one rank is not made.
 *
 * Nothing is kept of each rank but its role and GPU: what a rank is bound to follows from its number. A slot
 * tells its communicators apart by some of the digits of a rank, and their members by the others:
 *
 *     communicator = first + sum over its digits of digit * weight, weights as ranks are ordered
 *
 * Where all digits are dimensions of the mesh, the members of all communicators lie alike, and these share
 * one table.
 *
 * Worked example. tp 2, dp 2, pp 3: rank 7 is 1 + 2 * 1 + 4 * 1. Its dp communicator is the tp digit + 2
 * times that of pp, 3, and it is member 1 there, beside rank 5. */
#ifndef LS_PLAN_BIND_H
#define LS_PLAN_BIND_H

#include "plan/mesh.h"
#include "plan/plan.h"

typedef struct LsMeshBinding LsMeshBinding;

#define LS_SLOT_BIT(slot) (1u << (slot))

/* Slots whose communicators follow from tp, cp, dp and pp alone. */
#define LS_MESH_SLOTS                                                                                        \
  (LS_SLOT_BIT (LS_SLOT_TP) | LS_SLOT_BIT (LS_SLOT_CP) | LS_SLOT_BIT (LS_SLOT_DP)                            \
   | LS_SLOT_BIT (LS_SLOT_EMBEDDING) | LS_SLOT_BIT (LS_SLOT_TP_CP) | LS_SLOT_BIT (LS_SLOT_STAGE)             \
   | LS_SLOT_BIT (LS_SLOT_MODEL) | LS_SLOT_BIT (LS_SLOT_WORLD))

/* Fills in n_ranks, by_mesh and the communicators of the given slots, a set of LS_SLOT_BIT; for shard and
 * replica mesh->shard must be set, for the experts' mesh->ep and mesh->etp, for pipes mesh->pipes. The role
 * of a rank is its pipeline stage; its neighbours are the stages before and after, in a circle. O(ranks). */
void ls_plan_bind_mesh (LsPlan *plan, const LsMesh *mesh, uint32_t slots);

#endif
