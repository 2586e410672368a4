/* network/nccl/nccl_links.h — NCCL's figures, carried from the links that they were measured on to others.
 *
 * Problem. What NCCL gets through a NIC or an NVLink is measured on one machine. With links of
 * another rate or latency a measured rate is no limit, and a measured latency is no constant.
 *
 * Equations. A rate is an efficiency of its link, a latency has the links of its way in it:
 *
 *     rate'    = rate * link' / link
 *     latency' = latency + (way' - way)
 *
 *     inside a node   way = 2 NVLinks (GPU, switch, GPU);
 *                     rates: nvlink, ring_bus_intra, nvls_bus, p2p_intra
 *     across nodes    way = 4 PCIe + 2 NIC links (GPU, switch, NIC, leaf and back);
 *                     rates: ring_bus_per_nic, p2p_inter
 *
 * Without GPUDirect data go down to the memory of the CPU and up again at both ends: 2 PCIe + 2 memory links
 * more at each.
 *
 * Worked example. 36.5 GB/s through a NIC of 50 GB/s are 73 GB/s through one of 100 GB/s, unless PCIe
 * with a payload of 55.4 GB/s lies on the way. NIC links of 100 ns instead of 300 ns take 0.4 us off a hop.
 *
 * Deviations. Links between switches are not in the way: figures are those of one leaf. That NCCL is as
 * efficient on a faster link is an assumption. A launch costs what it costs.
 *
 * Reference. topologies/calib/nccl-*.json, key measured_on. */
#ifndef LS_NETWORK_NCCL_NCCL_LINKS_H
#define LS_NETWORK_NCCL_NCCL_LINKS_H

#include "cluster/cluster.h"
#include "network/nccl/nccl.h"

/* Of a cluster; 0 for what it has none of. */
LsNcclLinks ls_nccl_links_of (const LsClusterSpec *spec);

/* Figures as of these links, which are measured_on from then on. What either side has none of changes
 * nothing. */
void ls_nccl_carry (LsNccl *nccl, const LsNcclLinks *links);

#endif
