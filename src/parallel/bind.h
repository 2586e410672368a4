/* parallel/bind.h — ranks bound by their place in a mesh: role, neighbours, and the
 * communicators of each slot. A slot joins the ranks that agree in all coordinates
 * but those that it spans:
 *
 *     tp         tp
 *     dp         dp
 *     embedding  pp, its first and last stage only
 *     model      tp, pp
 *     world      tp, dp, pp
 *
 * Members are in order of rank. A communicator of one rank is not made. */
#ifndef LS_PARALLEL_BIND_H
#define LS_PARALLEL_BIND_H

#include "parallel/mesh.h"
#include "parallel/plan.h"

#define LS_SLOT_BIT(slot) (1u << (slot))

/* Slots for which there is a rule. */
#define LS_MESH_SLOTS                                                                                    \
  (LS_SLOT_BIT (LS_SLOT_TP) | LS_SLOT_BIT (LS_SLOT_DP) | LS_SLOT_BIT (LS_SLOT_EMBEDDING)                 \
   | LS_SLOT_BIT (LS_SLOT_MODEL) | LS_SLOT_BIT (LS_SLOT_WORLD))

/* Fills in n_ranks, bindings, gpu_of_rank (GPU i has rank i) and the communicators
 * of the given slots, a set of LS_SLOT_BIT. The role of a rank is its pipeline
 * stage; its neighbours are the stages before and after, in a circle. O(ranks *
 * slots). */
void ls_plan_bind_mesh (LsPlan *plan, const LsMesh *mesh, uint32_t slots);

#endif
