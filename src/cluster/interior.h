/* cluster/interior.h — what is inside a node (private to cluster/): a kind of
 * interior lays out the vertices, links and trunks of one node and says which trunks
 * a flow crosses in it. A node is what the fabric joins: a server of 8 GPUs, an NVL72
 * rack, a slice of a TPU pod.
 *
 * All nodes of a kind are alike, so an interior describes one and knows nothing of
 * the cluster's size: vertex and trunk numbers here are local to the node (0 ..), and
 * the caller (route.c) adds the node's offset. Tables per pair of vertices of one node
 * are fine, tables per pair of the cluster are not.
 *
 * A new kind: one file interior_X.c that defines an LsInteriorKind, its name in LS_INTERIORS and
 * its members of LsClusterSpec (cluster.h), a row of each of its links (spec.c) and its keys in
 * data/machines/read_cluster.c. The search of tests must agree with it. */
#ifndef LS_CLUSTER_INTERIOR_H
#define LS_CLUSTER_INTERIOR_H

#include "cluster/route.h"

typedef struct LsInterior LsInterior;

typedef struct {
  LsInteriorTraits traits;

  /* Whether one node can be built, its links included (LS_ERROR_CONFLICT). Takes no time
   * and no memory, whatever the spec says; called before anything else. */
  gboolean (*check) (const LsClusterSpec *spec, GError **error);
  /* Links of one node of a spec that was checked, each direction one. */
  double (*n_links) (const LsClusterSpec *spec);

  /* In arena. spec: of nodes of this kind; it outlives the interior. */
  LsInterior *(*new) (const LsClusterSpec *spec, LsArena *arena);

  /* Appends one node's vertices, links and trunks to the cluster (index.h), n_vertices
   * and n_trunks of them, numbered from c->nodes->len and c->trunks->len on. */
  void (*lay_out) (const LsInterior *interior, LsCluster *c, uint32_t host);

  /* Appends hops with local trunks and adds their latency to the route: between two accelerators
   * (never from == to); between an accelerator and a NIC; between an accelerator, which is both ends, and
   * the memory of its CPU, or its NVMe drive. Nothing to cross: nothing is appended. */
  void (*way) (const LsInterior *interior, LsLeg leg, uint32_t from, uint32_t to, LsRoute *route);
  bool reaches_nvme; /* it knows ways to drives, past the CPU's memory */

  uint32_t (*nic_of_gpu) (const LsInterior *interior, uint32_t gpu);

  /* CPU hosts of a node, and which of them an accelerator of it has; NULL: the node is one. */
  uint32_t (*n_cpu_hosts) (const LsClusterSpec *spec);
  uint32_t (*cpu_host_of) (const LsClusterSpec *spec, uint32_t gpu);
} LsInteriorKind;

/* The first member of each kind's own struct; new() fills in what follows the spec. */
struct LsInterior {
  const LsInteriorKind *kind; /* by the builder, as the spec: that of new() */
  const LsClusterSpec *spec;
  uint32_t n_vertices, n_trunks; /* of one node                                         */
  uint32_t v_gpu, v_nic;         /* the first GPU and NIC; the others follow in order    */
  bool has_nvswitch;             /* any two GPUs are joined by NVSwitches, in two hops   */
  bool has_gpu_links;            /* some are joined straight by NVLinks                  */
};

#define LS_INTERIOR_KIND(id, name) extern const LsInteriorKind ls_interior_##name;
LS_INTERIORS (LS_INTERIOR_KIND)

#endif
