/* plan/mesh.h — rank <-> coordinates, in Megatron-LM's order: tp fastest,
 * then cp, dp, pp slowest. */
#ifndef LS_PLAN_MESH_H
#define LS_PLAN_MESH_H

#include <stdint.h>

typedef struct {
  uint32_t tp, cp, dp, pp; /* degrees, each >= 1 */
  /* Second divisions of the same ranks: 0 where there is none. */
  uint32_t shard;   /* of the dp x cp ranks that have the same parameters: size of groups */
  uint32_t ep, etp; /* of the tp x cp x dp ranks of a stage: etp fastest, then ep         */
  uint32_t pipes;   /* that pass the pp ranks, half of them each way (schedules/sched.h)   */
} LsMesh;

typedef struct {
  uint32_t tp, cp, dp, pp; /* indices */
} LsCoord;

static inline uint32_t
ls_mesh_n_ranks (const LsMesh *m)
{
  return m->tp * m->cp * m->dp * m->pp;
}

uint32_t ls_mesh_rank (const LsMesh *m, LsCoord at);
LsCoord ls_mesh_coord (const LsMesh *m, uint32_t rank);

#endif
