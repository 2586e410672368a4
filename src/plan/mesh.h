/* plan/mesh.h — rank <-> coordinates.
 *
 * Ranks are numbered by an order of dimensions, the fastest first: Megatron-LM's is tp-cp-ep-dp-pp
 * (core/parallel_state.py, RankGenerator). The coordinates of a rank without experts are
 *
 *     rank = sum over the order of index * stride, stride = product of the degrees before it
 *
 * with the degrees tp, cp, 1 (ep), dp, pp. Experts divide the same ranks by the same order with the degrees
 * etp, 1 (cp), ep, edp, pp, where edp = ranks / (etp ep pp). Both must put the stages of a rank at the same
 * ranks: the stride of pp is the same. Where pp is last it always is.
 *
 * Worked example. tp 2, dp 2, pp 2: by tp-dp-pp the stages of rank 0 are 0 and 4, its copies 0 and 2; by
 * tp-pp-dp its stages are 0 and 2, its copies 0 and 4. */
#ifndef LS_PLAN_MESH_H
#define LS_PLAN_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

typedef enum { LS_DIM_TP, LS_DIM_CP, LS_DIM_EP, LS_DIM_DP, LS_DIM_PP, LS_N_DIMS } LsDim;

/* An order of dimensions: its number among all in lexical order; 0 is tp-cp-ep-dp-pp. */
typedef uint32_t LsRankOrder;
#define LS_N_RANK_ORDERS 120

typedef struct {
  uint32_t tp, cp, dp, pp; /* degrees, each >= 1 */
  /* Second divisions of the same ranks: 0 where there is none. */
  uint32_t shard;    /* of the dp x cp ranks that have the same parameters: size of groups */
  uint32_t ep, etp;  /* of the tp x cp x dp ranks of a stage                               */
  uint32_t pipes;    /* that pass the pp ranks, half of them each way (schedules/sched.h)  */
  LsRankOrder order; /* of the numbers of ranks                                            */
  uint32_t split;    /* a stage between the first and the last that has the embedding too  */
} LsMesh;

typedef struct {
  uint32_t tp, cp, dp, pp; /* indices */
} LsCoord;

/* Of a rank among experts. */
typedef struct {
  uint32_t etp, ep, edp, pp;
} LsExpertCoord;

static inline uint32_t
ls_mesh_n_ranks (const LsMesh *m)
{
  return m->tp * m->cp * m->dp * m->pp;
}

uint32_t ls_mesh_rank (const LsMesh *m, LsCoord at);
LsCoord ls_mesh_coord (const LsMesh *m, uint32_t rank);

/* The same among experts; ep and etp divide the ranks of a stage. */
uint32_t ls_mesh_expert_rank (const LsMesh *m, LsExpertCoord at);
LsExpertCoord ls_mesh_expert_coord (const LsMesh *m, uint32_t rank);

/* Whether the stages of ranks are the same with and without experts. */
bool ls_mesh_has_one_pipeline (const LsMesh *m);
/* Whether all ranks have the same coordinates in both, which differ in nothing but the order. */
bool ls_mesh_is_alike (const LsMesh *a, const LsMesh *b);
/* The coordinates with this place among the ranks with the same parameters, which are in order of rank. */
LsCoord ls_mesh_at_copy (const LsMesh *m, LsCoord at, uint32_t copy);

/* The dimensions of an order, the fastest first. */
void ls_rank_order_dims (LsRankOrder order, LsDim ret_dims[LS_N_DIMS]);
/* "tp-cp-ep-dp-pp": names between dashes, no name twice. Those that it leaves out come last, in that order;
 * *ret_named, a set of 1 << LsDim, has the others. false: it is none. */
bool ls_rank_order_parse (const char *text, LsRankOrder *ret_order, uint32_t *ret_named);
char *ls_rank_order_text (LsRankOrder order); /* newly allocated */
extern const char *const ls_dim_names[LS_N_DIMS];

/* ---- ranks bound by their place ---- */

/* Ranks bound by their place in a mesh: role, neighbours, and the
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
 * Experts divide the n = tp cp dp ranks of a stage in another way (above): etp, ep and
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
