/* data/machines/read_nccl_topo.h — a node as NCCL sees it: a topology file of NCCL (*.xml, from
 * NCCL_TOPO_DUMP_FILE) as a cluster of one node.
 *
 * The node is an explicit list. Rates are those that NCCL 2.30.7 reckons with
 * (src/graph/topo.cc, topo.h), net of overheads, so all efficiencies are 1:
 *
 *     PCI      link_width · v / 80 GB/s, v 15 30 60 120 240 480 for gen 1 to 6; x16
 *              where the width is not known, gen 3 where the speed is not
 *     NVLink   count · 20, 20, 20.6, 40.1 GB/s for sm 70, 80, 90, 100; all NVSwitches
 *              are one
 *     C2C      bw · count / 1000 GB/s, GPU to CPU
 *     CPUs     any two joined: 6 10 22 40 GB/s Intel by model, 16 AMD, 6 ARM, 32 POWER9
 *     NIC      speed / 8000 GB/s at the port; the fastest ports of the node, the others
 *              (storage, management) are left out
 *
 * PCI devices that lead to no GPU and no such port are left out, and so are NVLinks to
 * GPUs that the file does not have. The file knows neither latencies nor switches
 * outside: latencies are those of the shipped clusters, and the nodes are joined by a
 * non-blocking leaf-spine with a rail for each NIC.
 *
 * Deviations: NCCL multiplies PCI traffic between GPUs at Intel CPUs by 6/5; not here. */
#ifndef LS_DATA_MACHINES_READ_NCCL_TOPO_H
#define LS_DATA_MACHINES_READ_NCCL_TOPO_H

#include "base/diag.h"
#include "cluster/cluster.h"

bool ls_is_nccl_topo (const char *path); /* ends in ".xml" */

/* gpu: name of the accelerator, or NULL: as the attribute x-gpu of <system> says, else
 * by compute capability (70 v100, 80 a100-80g, 90 h100, 100 b200: the file does not know
 * the memory). On success the caller clears *ret_spec; on failure it is untouched and
 * diags says why (LS_ERROR_INPUT). */
bool ls_nccl_topo_load (const char *path, const char *gpu, LsClusterSpec *ret_spec, LsDiagList *diags);
bool ls_nccl_topo_parse (const char *text, gsize n, const char *path, const char *gpu,
                         LsClusterSpec *ret_spec, LsDiagList *diags);

#endif
