/* cluster/interior.h — what is inside a node (private to cluster/): a kind of
 * interior lays out the vertices, links and trunks of one node and says which trunks
 * a flow crosses in it. A node is what the fabric joins: a server of 8 GPUs, an NVL72
 * rack, a slice of a TPU pod.
 *
 * All nodes of a cluster are alike; vertex and trunk numbers here are local to the node
 * and the caller adds the node's offset. Within a node, trunk numbers of a way are in
 * order of travel. */
#ifndef LS_CLUSTER_INTERIOR_H
#define LS_CLUSTER_INTERIOR_H

#include "cluster/cluster.h"
#include "cluster/route.h"

typedef struct LsInterior LsInterior;

typedef struct {
  const char *name; /* "server", "list", "torus" */
  /* Legal, and how many vertices and trunks one node takes. */
  gboolean (*check) (const LsClusterSpec *spec, GError **error);
  LsInterior *(*new) (const LsClusterSpec *spec);
  void (*free) (LsInterior *interior);
  /* Appends one node's vertices, links and trunks to the cluster. */
  void (*lay_out) (const LsInterior *interior, LsCluster *c, uint32_t host);
  /* Append hops (local trunks, latency) to the route: between two accelerators; from an
   * accelerator to a NIC and back; to the memory of its CPU and back. */
  void (*within) (const LsInterior *interior, uint32_t from, uint32_t to, LsRoute *route);
  void (*to_nic) (const LsInterior *interior, uint32_t gpu, uint32_t nic, LsRoute *route);
  void (*from_nic) (const LsInterior *interior, uint32_t nic, uint32_t gpu, LsRoute *route);
  void (*to_memory) (const LsInterior *interior, uint32_t gpu, LsRoute *route);
  void (*from_memory) (const LsInterior *interior, uint32_t gpu, LsRoute *route);
  uint32_t (*nic_of_gpu) (const LsInterior *interior, uint32_t gpu);
} LsInteriorKind;

struct LsInterior {
  const LsInteriorKind *kind;
  uint32_t n_vertices, n_trunks; /* of one node */
};

extern const LsInteriorKind ls_interior_server, ls_interior_list, ls_interior_torus;

#endif
