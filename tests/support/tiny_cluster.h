/* tests/support/tiny_cluster.h — cluster specs in code, so that tests below io/
 * need no files. Figures are round on purpose: a DGX-A100-like node. */
#ifndef LS_TESTS_TINY_CLUSTER_H
#define LS_TESTS_TINY_CLUSTER_H

#include "cluster/cluster.h"

static inline LsLinkSpec
tiny_link (double bytes_per_s, double efficiency, LsTime latency)
{
  return (LsLinkSpec) { .bandwidth_bytes_per_s = bytes_per_s, .efficiency = efficiency, .latency = latency };
}

/* n nodes of 8 GPUs, 6 NVSwitch planes, 4 PCIe switches, 2 sockets, 4 drives, 8
 * NICs on 8 rails, 20 nodes a leaf. Strings are NULL: nothing to clear. */
static inline LsClusterSpec
tiny_dgx (uint32_t n_nodes)
{
  return (LsClusterSpec) {
    .gpu
    = { .hbm_bytes_per_s = 2039e9, .hbm_efficiency = 0.9, .hbm_bytes = UINT64_C (80) << 30, .n_sm = 108 },
    .n_nodes = n_nodes,
    .gpus_per_node = 8,
    .nvswitch_planes = 6,
    .nvlinks_per_gpu = 12,
    .nvlink = tiny_link (25e9, 0.91, LS_US),
    .pcie_switches = 4,
    .pcie = tiny_link (31.5e9, 0.8, LS_US / 2),
    .cpu_sockets = 2,
    .cpu_interconnect = tiny_link (64e9, 0.8, LS_US / 2),
    .cpu_memory = tiny_link (200e9, 0.8, 100 * LS_NS),
    .cpu_memory_bytes = UINT64_C (2) << 40,
    .nvme_drives = 4,
    .nvme = tiny_link (6.8e9, 1, 80 * LS_US),
    .nvme_bytes = UINT64_C (3840000000000),
    .nics = 8,
    .nic = tiny_link (25e9, 0.97, LS_US),
    .rails = 8,
    .nodes_per_leaf = 20,
    .oversubscription = 1,
    .spine = tiny_link (25e9, 0.97, LS_US / 2),
  };
}

/* No NVSwitch: GPUs of a node talk over PCIe. */
static inline LsClusterSpec
tiny_pcie (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.nvswitch_planes = s.nvlinks_per_gpu = 0;
  s.nics = 2;
  s.rails = 1;
  s.nodes_per_leaf = 4;
  return s;
}

#endif
