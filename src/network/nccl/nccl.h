/* network/nccl/nccl.h — NCCL as it behaves on one GPU generation: a file of
 * topologies/calib. What the figures do is in nccl.c; what NCCL itself believes, and
 * so what it chooses, in tuning.h. */
#ifndef LS_NETWORK_NCCL_NCCL_H
#define LS_NETWORK_NCCL_NCCL_H

#include <glib.h>

#include <lockstep/units.h>

#include "network/nccl/tables.h"

/* The links of a machine, one direction: what NCCL's figures are efficiencies of. 0: none. */
typedef struct {
  double nvlink, nic; /* bytes/s: all NVLinks of a GPU; one NIC */
  LsTime nvlink_latency, nic_latency, pcie_latency;
  LsTime staging_latency; /* of the way through host memory, at one end; 0: GPUDirect */
} LsNcclLinks;

/* One of the two kernels that bring tokens to their experts and back (network/coll_dispatch.c). */
typedef struct {
  LsTime token;  /* a token of an SM, whatever its width */
  double per_sm; /* bytes/s that an SM moves             */
} LsDispatchSide;

/* Such a library, DeepEP, on this GPU; of_nvlink 0: nothing is known of it. */
typedef struct {
  LsDispatchSide dispatch, combine;
  double of_nvlink, of_nic; /* shares of what the data sheets of the links say */
  LsTime base_intra, base_inter;
} LsDispatchFigures;

/* NCCL as it behaves on one GPU generation, from topologies/calib/NAME.json. Each
 * number carries its source there. nvls_bus 0: no NVLink SHARP. */
typedef struct LsNccl {
  char *name, *source;
  LsNcclLinks measured_on;     /* the links for which all of the following holds (nccl_links.h) */
  LsNcclTables tables;         /* of its generation, for the tuner                  */
  double nvlink;               /* bytes/s that NCCL counts for the NVLinks of a GPU; 0: no
                             * tuner, the fastest algorithm runs, with Simple    */
  uint32_t channels_ring;      /* channels of ring collectives inside a node        */
  uint32_t channels_net;       /* across nodes, for each NIC that a node uses       */
  uint32_t channels_nvls;      /* of the all-reduce in the NVSwitches               */
  uint32_t channels_p2p;       /* of one peer on another node                       */
  double ring_bus_intra;       /* bytes/s, bus bandwidth of a ring inside a node    */
  double ring_bus_per_nic;     /* bytes/s that a ring gets through one NIC          */
  double nvls_bus;             /* bytes/s, bus bandwidth of NVLS over a whole node  */
  double p2p_intra, p2p_inter; /* bytes/s of one send/recv                       */
  /* Launch-to-launch latency: base + steps * hop, per kind of hop. */
  LsTime base_all_reduce, base_all_gather, base_reduce_scatter, base_nvls, base_p2p_intra, base_p2p_inter;
  LsTime hop_intra, hop_inter;
  LsTime handshake;     /* with Simple and LL128 */
  LsTime handshake_hop; /* with Simple, for each hop inside a node */
  /* Ramp: what filling the pipeline of Simple or LL128 costs; a message of W wire bytes
   * takes W * ramp / (W + ramp) bytes more of the bus's time (fitted). */
  double ramp_bytes;
  /* Drain: the last step of a ring only copies out of the receive buffer; the
   * time of that copy over the time of a step that also sends (fitted). */
  double drain;
  /* All-to-all: time of what a member copies to itself over that of a message. */
  double self_copy;
  double sm_share_per_channel; /* SMs held by one channel / SMs of the GPU       */
  /* While a collective moves, a compute-bound kernel beside it stands still for as long
   * as the HBM takes for this many bytes per byte of the array (twice for all-reduce),
   * beyond the SMs that it has lost (fitted: tools/fit/fit_overlap.c). */
  double stall_per_byte;
  double hbm_per_wire_all_reduce, hbm_per_wire_all_gather, hbm_per_wire_reduce_scatter, hbm_per_wire_p2p;
  LsDispatchFigures dispatch;
  /* Of a cluster with several kinds of nodes, by the kinds that a call is on (bits): [2^n_kinds], owned but
   * for the strings, which are each kind's; those of kind k > 0 are freed with it. NULL: all are alike. */
  struct LsNccl *among;
  uint32_t n_kinds;
} LsNccl;

/* As it behaves where members are on nodes of these kinds (bits, at least one). Borrowed. */
static inline const LsNccl *
ls_nccl_among (const LsNccl *nccl, uint32_t kinds)
{
  return nccl->among ? &nccl->among[kinds] : nccl;
}

/* Fills `among`: kinds [n_kinds], of which the first is nccl itself; takes over the strings of the others.
 * A call on several kinds goes at the pace
 * of the slower in each respect: the lower of two rates and numbers of channels, the higher of two latencies
 * and costs, the tuner of the one with less NVLink, as NCCL's ranks agree on the least of their graphs
 * (NCCL 2.30.7 src/init.cc, initTransportsRank: channels and bandwidths are the minimum over all ranks).
 * Where one has no NVLS, or no tuner, there is none. */
void ls_nccl_mix (LsNccl *nccl, const LsNccl *const *kinds, uint32_t n_kinds);

void ls_nccl_clear (LsNccl *nccl); /* NULL allowed */

#endif
