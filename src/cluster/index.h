/* cluster/index.h — where vertices and trunks lie (private to cluster/).
 *
 * The builder emits every host alike, so that ids follow from counts and no
 * table is needed: vertex = host * vertices_per_host + v_KIND + i. Trunks come
 * in pairs, outward (away from the GPU, towards the network or memory) then
 * inward, in sections that follow one another in this order:
 *
 *     nvlink     GPU > NVSwitch planes          one pair per GPU
 *     gpu_pcie   GPU > PCIe switch              one pair per GPU
 *     uplink     PCIe switch > CPU              one pair per switch
 *     socket     CPU a > CPU b, a < b           one pair per pair of sockets
 *     memory     CPU > its memory               one pair per socket
 *     nvme       PCIe switch > drive            one pair per drive
 *     nic_pcie   PCIe switch > NIC              one pair per NIC
 *     port       NIC > leaf                     one pair per NIC
 *
 * and after all hosts: leaf > spines, one pair per leaf. */
#ifndef LS_CLUSTER_INDEX_H
#define LS_CLUSTER_INDEX_H

#include "cluster/cluster.h"

typedef struct LsTopoIndex {
  uint32_t vertices_per_host;
  uint32_t v_gpu, v_nvswitch, v_switch, v_cpu, v_memory, v_nvme, v_nic;
  uint32_t first_leaf, first_spine; /* vertices */
  uint32_t n_leaves, n_spines;

  uint32_t trunks_per_host;
  uint32_t t_nvlink, t_gpu_pcie, t_uplink, t_socket, t_memory, t_nvme, t_nic_pcie, t_port;
  uint32_t t_fabric; /* first trunk after those of the hosts */

  GStringChunk *names;
} LsTopoIndex;

typedef enum { LS_OUTWARD = 0, LS_INWARD = 1 } LsDirection;

static inline uint32_t
ls_host_trunk (const LsCluster *c, uint32_t host, uint32_t section, uint32_t i, LsDirection dir)
{
  return host * c->index->trunks_per_host + section + 2 * i + dir;
}

static inline uint32_t
ls_leaf_trunk (const LsCluster *c, uint32_t leaf, LsDirection dir)
{
  return c->index->t_fabric + 2 * leaf + dir;
}

/* The i-th of n things dealt to `to` places in runs: 8 NICs on 4 switches give
 * 0 0 1 1 2 2 3 3; 2 NICs give 0 2. */
static inline uint32_t
ls_deal (uint32_t i, uint32_t n, uint32_t to)
{
  return (uint32_t) ((uint64_t) i * to / n);
}

static inline uint32_t
ls_switch_of_gpu (const LsClusterSpec *s, uint32_t local_gpu)
{
  return ls_deal (local_gpu, s->gpus_per_node, s->pcie_switches);
}
static inline uint32_t
ls_switch_of_nic (const LsClusterSpec *s, uint32_t nic)
{
  return ls_deal (nic, s->nics, s->pcie_switches);
}
static inline uint32_t
ls_socket_of_switch (const LsClusterSpec *s, uint32_t pcie_switch)
{
  return ls_deal (pcie_switch, s->pcie_switches, s->cpu_sockets);
}
static inline uint32_t
ls_leaf_of_nic (const LsClusterSpec *s, uint32_t host, uint32_t nic)
{
  return host / s->nodes_per_leaf * s->rails + nic % s->rails;
}

/* Of the pair (a, b), a < b, in the order 01 02 .. 12 13 .. */
static inline uint32_t
ls_socket_pair (const LsClusterSpec *s, uint32_t a, uint32_t b)
{
  return a * (2 * s->cpu_sockets - a - 1) / 2 + (b - a - 1);
}

#endif
