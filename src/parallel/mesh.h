/* parallel/mesh.h — rank <-> coordinates, in Megatron-LM's order: tp fastest,
 * then cp, dp, pp slowest. */
#ifndef LS_PARALLEL_MESH_H
#define LS_PARALLEL_MESH_H

#include <stdint.h>

typedef struct {
  uint32_t tp, cp, dp, pp; /* degrees, each >= 1 */
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
