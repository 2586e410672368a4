/* network/mesh_rings.h — rings over links straight between GPUs (private to network/).
 *
 * Problem. In a mesh some pairs of GPUs are joined by one link, some by two, some by none.
 * Rings that share a link share its rate, so NCCL looks for rings that share none.
 *
 * Model. Rings through all n GPUs, each over direct links only, no link and direction in two
 * rings, as many as a search finds: ring after ring, GPU after GPU, lowest numbers first, back
 * where it gets no further. It ends where a GPU has no link left that another ring could use,
 * or after MAX_STEPS (coll_ring.c); the most rings seen count. Same links, same rings.
 *
 * Worked example: the hybrid cube has 6 links per GPU and 6 rings; its GPUs 0, 1 and 2, with
 * 1, 1 and 2 links, have two: 0 1 2 and 0 2 1.
 *
 * Deviation. NCCL also lets a ring pass through another GPU (NVB) or over PCIe where that
 * is faster; here there are rings of direct links, or none.
 *
 * Reference: NCCL 2.30.7 src/graph/search.cc (a depth-first search with a time-out). */
#ifndef LS_NETWORK_MESH_RINGS_H
#define LS_NETWORK_MESH_RINGS_H

#include <stdint.h>

#include "base/arena.h"

typedef struct {
  uint32_t n, n_gpus; /* rings; none of more than 16 GPUs            */
  uint32_t *gpu_at;   /* [n * n_gpus] GPU at a place of a ring       */
  uint32_t *place_of; /* [n * n_gpus] the inverse                    */
} LsMeshRings;

/* links: [n_gpus * n_gpus], from GPU i to j at i n_gpus + j. In arena. */
LsMeshRings ls_mesh_rings (const uint32_t *links, uint32_t n_gpus, LsArena *arena);

#endif
