/* cluster/proxy.h — which GPU sends for which (private to cluster/): PXN. With rails, a
 * message to a NIC on another rail goes over NVLink to a GPU whose own NIC is on that rail,
 * and so crosses one leaf instead of the spines.
 *
 * Rule: a GPU whose own NIC is on the rail sends itself. Of the others of its node whose NIC
 * is, and to which NVLink leads, GPU i takes the (i mod n)-th. Without any it sends itself.
 *
 * Reference: NCCL 2.30.7 src/graph/paths.cc. Deviation: NCCL also asks whether the NIC is nearer to the other
 * GPU than PCIe allows. Without GPUDirect there is no PXN. */
#ifndef LS_CLUSTER_PROXY_H
#define LS_CLUSTER_PROXY_H

#include "cluster/cluster.h"

/* [GPUs of the node * rails], GPUs of the node; NULL where PXN makes no difference: switched
 * off, one rail, no NVLink, or chips of a torus. Free with g_free(). */
uint32_t *ls_proxies_new (const LsCluster *c, uint32_t host);

#endif
