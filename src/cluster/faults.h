/* cluster/faults.h — links that are degraded or failed (private to cluster/).
 *
 * A fault names a trunk as reports do ("node3/nic2>leaf4", "leaf1>spines") and says what
 * share of its capacity is left; by default both ways. Nothing left: no route takes it.
 *
 *   in the fabric  ideal spreading and hashing leave out what leads nowhere: fabric_X.c
 *   in a node      GPU to GPU and GPU to NIC by search over what works (route.h), so that a
 *                  GPU without NVLink is reached over PCIe
 *   a NIC          works if its port does, both ways; its GPUs take the nearest that works,
 *                  of equals the next after it
 *
 * Nodes with faults have tables of their own; all others stay arithmetic. What is cut off is
 * an error that names the two ends: two GPUs of a node, a GPU and all NICs, a GPU and the
 * memory of its CPU, two switches with NICs. A torus, and a node of more than 256 GPUs, has
 * no search: a failed link in one is an error unless no way needs it.
 *
 * Deviations. Nothing fails during a run. NCCL's choice of algorithm and its channels
 * (network/nccl/tuning.h) do not see a fault, except that NVLS needs all NVLinks of the node, and
 * rings of a mesh take those that work. */
#ifndef LS_CLUSTER_FAULTS_H
#define LS_CLUSTER_FAULTS_H

#include "cluster/cluster.h"
#include "cluster/index.h"
#include "cluster/route.h"

typedef struct {
  LsWays *ways[LS_LEG_FROM_NIC + 1]; /* by leg; NULL: no search here     */
  uint32_t *nic_of_gpu;              /* [GPUs of the node]; NULL: no NICs  */
  uint32_t *proxies;                 /* as LsTopoIndex.proxies          */
  bool has_nvlink_fault;             /* a failed one                    */
} LsNodeFaults;

/* All in the order of a build. Marks trunks and scales capacities. LS_ERROR_CONFLICT: no such link. */
gboolean ls_faults_apply (LsCluster *c, GError **error);
/* After the fabric is finished: tables of the nodes concerned, and whether all that must
 * be reached can be. */
gboolean ls_faults_finish (LsCluster *c, GError **error);

/* The node that a trunk of this name is in; n_nodes: in none. */
uint32_t ls_faults_node_named (const LsClusterSpec *spec, const char *trunk);

/* NULL: this node has none. */
static inline const LsNodeFaults *
ls_faults_of_node (const LsCluster *c, uint32_t host)
{
  GHashTable *faulty = c->index->faulty_nodes;
  return faulty ? g_hash_table_lookup (faulty, GUINT_TO_POINTER (host)) : NULL;
}

/* A node of that kind without, else one with; n_nodes: there is none of that kind. */
uint32_t ls_first_sound_node (const LsCluster *c, uint32_t kind);

#endif
