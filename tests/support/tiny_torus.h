/* tests/support/tiny_torus.h — slices of a torus in code, in the round figures of the
 * scaling book: ICI 45 GB/s and 1 us a link, PCIe 15 GB/s. */
#ifndef LS_TESTS_TINY_TORUS_H
#define LS_TESTS_TINY_TORUS_H

#include "cluster/cluster.h"

static inline LsLinkSpec
torus_link (double bytes_per_s, LsTime latency)
{
  return (LsLinkSpec) { .bandwidth_bytes_per_s = bytes_per_s, .efficiency = 1, .latency = latency };
}

/* n slices of x by y by z chips (z 0: two axes), hosts of 2 x 2, a NIC of 12.5 GB/s for each. */
static inline LsClusterSpec
tiny_torus (uint32_t n, uint32_t x, uint32_t y, uint32_t z, LsTorusWrap wrap)
{
  LsClusterSpec s = {
    .gpu = { .hbm_bytes_per_s = 1.2e12, .hbm_efficiency = 1, .hbm_bytes = UINT64_C (32) << 30, .n_sm = 2 },
    .n_nodes = n,
    .torus = { .largest = { x, y, z }, .wrap = wrap, .host = { 2, 2, z > 0 ? 1 : 0 }, .nics_per_host = 1 },
    .ici = torus_link (45e9, LS_US),
    .pcie = torus_link (15e9, LS_US),
    .cpu_memory = torus_link (200e9, LS_US / 10),
    .cpu_memory_bytes = UINT64_C (512) << 30,
    .nic = torus_link (12.5e9, LS_US),
    .rails = 1,
    .nodes_per_leaf = 16,
    .oversubscription = 1,
    .spine = torus_link (12.5e9, LS_US),
  };
  ls_cluster_spec_init_torus (&s);
  return s;
}

#endif
