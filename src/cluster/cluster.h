/* cluster/cluster.h — a cluster: accelerators of one type in nodes of one type,
 * joined by a fabric. Configured from an LsClusterSpec (one JSON file), built
 * once, then const and shareable.
 *
 * Three index spaces, never mixed: `gpu` counts accelerators of the whole
 * cluster (node * gpus_per_node + local_gpu), `node_id` counts vertices of the
 * graph, `trunk` counts what traffic shares. */
#ifndef LS_CLUSTER_CLUSTER_H
#define LS_CLUSTER_CLUSTER_H

#include <glib.h>
#include <stdint.h>

#include <lockstep/units.h>

#include "cluster/gpu.h"

/* A kind of link inside a node or in the fabric. bandwidth is one direction of
 * one physical link as the data sheet says; efficiency the share of it that
 * payload reaches; capacity = bandwidth * efficiency. */
typedef struct {
  double bandwidth_bytes_per_s;
  double efficiency; /* (0, 1] */
  LsTime latency;
  char *source;      /* of the efficiency and latency */
} LsLinkSpec;

typedef struct {
  char *name;
  char *source;
  LsGpu gpu;
  uint32_t n_nodes;
  uint32_t gpus_per_node;

  uint32_t nvswitch_planes;       /* 0: no NVSwitch                                    */
  uint32_t nvlinks_per_gpu;       /* spread over the planes, 18 on 4 as 5 5 4 4        */
  LsLinkSpec nvlink;              /* one link, one direction                           */

  uint32_t pcie_switches;         /* per node; GPUs and NICs are dealt to them evenly  */
  LsLinkSpec pcie;                /* x16, one direction                                */

  uint32_t cpu_sockets;           /* PCIe switches are dealt to them evenly            */
  LsLinkSpec cpu_interconnect;    /* between sockets                                   */
  LsLinkSpec cpu_memory;          /* of one socket                                     */
  uint64_t cpu_memory_bytes;      /* of the node                                       */

  uint32_t nvme_drives;           /* per node, dealt to the PCIe switches; 0: none     */
  LsLinkSpec nvme;                /* one drive, reads                                  */
  uint64_t nvme_bytes;            /* of one drive                                      */

  uint32_t nics;                  /* per node for compute traffic                      */
  LsLinkSpec nic;                 /* one port, NIC to leaf                             */

  /* Leaf-spine. With rails > 1, NIC i of every node goes to a leaf of rail
   * i mod rails; a leaf serves nodes_per_leaf nodes of its rail. */
  uint32_t rails;
  uint32_t nodes_per_leaf;
  double oversubscription;        /* leaf: down capacity / up capacity, >= 1           */
  LsLinkSpec spine;               /* one leaf-spine link                               */
} LsClusterSpec;

void ls_cluster_spec_clear (LsClusterSpec *spec); /* NULL allowed */

/* Whether it can be built; takes no time, whatever its size. LS_ERROR_CONFLICT: counts
 * that do not deal out evenly, a link in use without a rate, or more of something than
 * cluster/spec.h allows. */
gboolean ls_cluster_spec_validate (const LsClusterSpec *spec, GError **error);

typedef enum {
  LS_NODE_GPU,
  LS_NODE_NVSWITCH,
  LS_NODE_PCIE_SWITCH,
  LS_NODE_CPU,
  LS_NODE_CPU_MEMORY,
  LS_NODE_NVME,
  LS_NODE_NIC,
  LS_NODE_LEAF,
  LS_NODE_SPINE,
} LsNodeKind;

typedef struct {
  LsNodeKind kind;
  uint32_t host;  /* node of the cluster; UINT32_MAX for leaves and spines */
  uint32_t index; /* of its kind, within the host or the fabric            */
} LsTopoNode;

/* One direction of one or more physical links between two vertices. */
typedef struct {
  uint32_t from, to; /* node_id                                               */
  uint32_t trunk;    /* the resource that carries it                          */
  uint32_t n_physical;
  double capacity_bytes_per_s; /* payload, all physical links together        */
  LsTime latency;
} LsLink;

/* The links of one direction that ideal spreading loads evenly (a GPU's links
 * up to all NVSwitch planes, a leaf's uplinks to all spines): the unit of
 * sharing. Its capacity is the sum of theirs. */
typedef struct {
  char *name; /* "node3/gpu5>nvswitch", "node3/nic2>leaf4", "leaf4>spines" */
  double capacity_bytes_per_s;
  LsTime latency;
} LsTrunk;

typedef struct {
  LsClusterSpec spec; /* owned copy */
  uint32_t n_gpus;
  GArray *nodes;  /* LsTopoNode */
  GArray *links;  /* LsLink     */
  GArray *trunks; /* LsTrunk    */
  /* private: index tables of the builder, used by route.c */
  struct LsTopoIndex *index;
} LsCluster;

/* Takes a copy of spec; errors: those of ls_cluster_spec_validate(). Linear in the
 * number of GPUs. Free with ls_cluster_free(). */
LsCluster *ls_cluster_build (const LsClusterSpec *spec, GError **error);
void ls_cluster_free (LsCluster *cluster); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCluster, ls_cluster_free)

/* Asserts every structural invariant: link ends exist, each link has a reverse,
 * trunk capacity = sum of its links, every GPU reaches every other. */
void ls_cluster_check (const LsCluster *cluster);

static inline uint32_t
ls_cluster_host_of (const LsCluster *c, uint32_t gpu)
{
  return gpu / c->spec.gpus_per_node;
}

/* The resources that activities share: the trunks first, then each GPU's HBM. */
static inline uint32_t
ls_cluster_n_resources (const LsCluster *c)
{
  return c->trunks->len + c->n_gpus;
}
static inline uint32_t
ls_cluster_hbm_resource (const LsCluster *c, uint32_t gpu)
{
  return c->trunks->len + gpu;
}
double ls_cluster_resource_capacity (const LsCluster *c, uint32_t resource);
/* Newly allocated. */
char *ls_cluster_resource_name (const LsCluster *c, uint32_t resource);

#endif
