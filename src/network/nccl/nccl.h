/* network/nccl/nccl.h — NCCL as it behaves on one GPU generation: a file of
 * topologies/calib. What the figures do is in nccl.c; what NCCL itself believes, and
 * so what it chooses, in tuning.h. */
#ifndef LS_NETWORK_NCCL_NCCL_H
#define LS_NETWORK_NCCL_NCCL_H

#include <glib.h>
#include <lockstep/units.h>

#include "base/arena.h"
#include "cluster/cluster.h"
#include "plan/collective.h"

/* The numbers of NCCL's tuner, of one release and one generation of GPUs: a file of topologies/nccl. */

/* What tuning.c does with them is there. */

/* In the order in which NCCL compares them: a later one must be faster. */
typedef enum {
  LS_TUNE_TREE,
  LS_TUNE_RING,
  LS_TUNE_COLLNET_DIRECT,
  LS_TUNE_COLLNET_CHAIN,
  LS_TUNE_NVLS,
  LS_TUNE_NVLS_TREE,
  LS_TUNE_PAT,
  LS_N_TUNE_ALGORITHMS
} LsTuneAlgorithm;

/* The order of NCCL's tables. */
enum { LS_NCCL_LL, LS_NCCL_LL128, LS_NCCL_SIMPLE, LS_NCCL_N_PROTOCOLS };

/* Hosts as the tables count them: 1, 2, more. */
#define LS_NCCL_N_SCALES 3

/* The longest list of rates is 20. */
#define LS_NCCL_MAX_RATES 32

/* Powers of two of a message, from 64 bytes: more than the 24 of NCCL's tables. */
#define LS_NCCL_MAX_SIZES 32

/* Of an algorithm, by protocol: once, and for each hop over NVLink, over PCIe, across hosts. */
typedef struct {
  LsTime base[LS_NCCL_N_PROTOCOLS], nvlink[LS_NCCL_N_PROTOCOLS], pcie[LS_NCCL_N_PROTOCOLS],
      net[LS_NCCL_N_PROTOCOLS];
} LsNcclLatency;

/* By the hosts' CPUs. */
enum { LS_NCCL_CPU_OTHER, LS_NCCL_CPU_AMD, LS_NCCL_N_CPUS };

/* All rates in bytes/s. A rate of 0 is one that this generation never asks for. */
typedef struct {
  char *name, *source;
  char *generation; /* of GPUs, which tables of several releases share: "hopper" of "hopper-2.27" */
  uint32_t compute_capability; /* major number: 9 for 9.x; 0: none, not NVIDIA's  */
  char *gcn;                   /* words: what RCCL calls GPUs of AMD's, "940 942"; NULL: none */
  double nvlink;               /* of one NVLink, as NCCL counts it                */
  char *gpu;                   /* the usual one, of topologies/gpu                */
  /* Rates of a channel that the graph search tries, inside a node and across, fastest first; 0 ends. */
  double rates_intra[LS_NCCL_MAX_RATES + 1], rates_inter[LS_NCCL_MAX_RATES + 1];
  double double_many_from; /* more than 4 channels are doubled from this rate */
  double ll;               /* limit of all channels with LL on one host       */
  double ring_ll128;       /* limits of one channel, by hosts where there are three; 0: not possible (RCCL
                              has no LL128 on gfx942, and no trees with Simple on one host of it) */
  double tree_ll128[LS_NCCL_N_SCALES], tree_simple[LS_NCCL_N_SCALES];
  double tree_alone,
      tree_own_nics; /* factors of a tree across hosts: of GPUs alone on theirs, or each with a NIC
                                       of its own; 0: 1 */
  double nvls_tree[LS_NCCL_N_SCALES];
  double nvls_efficiency; /* of the rate of a channel; 0: no NVLS            */
  double nvls_share;      /* of an all-reduce over its graph's rate, up to 2.27; 0: by nvls_efficiency */
  uint32_t nvls_from;     /* GPUs of a host that it needs; 0: 2              */
  double pat;             /* of a ring's rate, what PAT reaches; 0: no PAT   */
  double collnet_direct;  /* of its own, collnet                              */
  double ring_plateau;    /* factor of the latency of a ring across hosts with much data */
  double ll_across[LS_NCCL_N_CPUS][2]; /* limit of all channels with LL across two hosts, and more */
  LsNcclLatency latency[LS_N_TUNE_ALGORITHMS];
  double tree_by_size[LS_NCCL_N_PROTOCOLS][LS_NCCL_MAX_SIZES]; /* factor of a tree's rate */
} LsNcclTables;

void ls_nccl_tables_clear (LsNcclTables *tables);

/* --- NCCL as it behaves on one GPU generation: a file of topologies/calib ------------------------ */

/* The links of a machine, one direction: what NCCL's figures are efficiencies of. 0: none. */
typedef struct {
  double nvlink, nic; /* bytes/s: all NVLinks of a GPU; one NIC */
  LsTime nvlink_latency, nic_latency, pcie_latency;
  LsTime staging_latency; /* of the way through host memory, at one end; 0: GPUDirect */
} LsNcclLinks;

/* One of the two kernels that bring tokens to their experts and back (network/coll_dispatch.c). */
typedef struct {
  LsTime token;  /* of an SM for a token, whatever its width               */
  LsTime row;    /* and for each copy of it that a member gets, or sends back */
  double per_sm; /* bytes/s that an SM moves                               */
} LsDispatchSide;

/* Such a library, DeepEP or HybridEP, on this GPU; of_nvlink 0: nothing is known of it. */
typedef struct {
  LsDispatchSide dispatch, combine;
  double of_nvlink, of_nic; /* shares of what the data sheets of the links say */
  LsTime base_intra, base_inter;
} LsDispatchFigures;

/* Calls that a plug-in's tuner settles: of so many ranks on each host, where (bytes, ranks) is within a
 * polygon, its corners one after the other, on logarithmic axes. */
typedef struct {
  uint32_t per_host;
  LsCollKind kind;
  LsTuneAlgorithm algorithm;
  int protocol;    /* LsProtocol */
  GArray *corners; /* double: bytes, ranks, bytes, ... */
} LsNcclRegion;

/* NCCL as it behaves on one GPU generation, from topologies/calib/NAME.json. Each
 * number carries its source there. nvls_bus 0: no NVLink SHARP. */
typedef struct LsNccl {
  char *name, *source;
  LsNcclLinks measured_on; /* the links for which all of the following holds (nccl.h) */
  LsNcclTables tables;     /* of its generation, for the tuner                  */
  bool names_generation;   /* its file does; without, and without nvlink, no tuner: the fastest runs */
  double nvlink;           /* bytes/s that NCCL counts for the NVLinks of a GPU; 0: none are counted */
  uint32_t channels_ring;  /* channels of ring collectives inside a node        */
  uint32_t channels_net;   /* across nodes, for each NIC that a node uses       */
  uint32_t channels_nvls;  /* of the all-reduce in the NVSwitches               */
  uint32_t channels_p2p;   /* of one peer on another node                       */
  double ring_bus_intra;   /* bytes/s, bus bandwidth of a ring inside a node    */
  double ring_bus_staged;  /* the same where host memory is between; 0: no less */
  double ring_bus_per_nic; /* bytes/s that a ring gets through one NIC          */
  double nvls_bus;         /* bytes/s, bus bandwidth of NVLS over 8 GPUs in long steps; of others nccl.c */
  double nvls_step;        /* bytes, NCCL_NVLS_CHUNKSIZE: the longest step of NVLS; 0: NCCL's own */
  double nvls_step_cost;   /* bytes that pass in the time that a step of NVLS takes to begin */
  double p2p_intra, p2p_inter; /* bytes/s of one send/recv                       */
  /* Launch-to-launch latency: base + steps * hop, per kind of hop. */
  LsTime base_all_reduce, base_all_gather, base_reduce_scatter, base_nvls, base_p2p_intra, base_p2p_inter;
  LsTime hop_intra, hop_inter;
  LsTime hop_inter_flags; /* across nodes with LL and LL128; 0: hop_inter, in proportion to NCCL's tables */
  LsTime net_latency;     /* that a plug-in for the network reports to NCCL's tuner */
  LsTime handshake;       /* with Simple and LL128 */
  LsTime handshake_hop;   /* with Simple, for each hop inside a node */
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
  LsDispatchFigures dispatch, hybrid_dispatch;
  GArray *regions;   /* LsNcclRegion, the first that holds a call settles it; owned; NULL: none */
  uint32_t max_ctas; /* of a communicator that may have no more; 0: it may (ls_nccl_with_ctas()) */
  /* By kind of collective, bits of LsTuneAlgorithm and of LsProtocol that are not chosen by themselves
   * (NCCL_ALGO, NCCL_PROTO): of a kind for which no other is left, all may be. */
  uint8_t no_algorithms[LS_N_COLL_KINDS], no_protocols[LS_N_COLL_KINDS];
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

/* Problem. A communicator may be held to a few thread blocks (ncclConfig_t.maxCTAs, NCCL_MAX_CTAS), so that
 * kernels beside it keep their SMs. It has no more channels then.
 *
 * Equations. M blocks carry M r, if that is less than what all channels do: in a ring, in NVLS, between two
 * ranks. r is what NCCL's search gives one channel before it makes two of it (double_many_from): 25 GB/s, 50
 * since Hopper; where a library doubles none, the part of a ring's rate that one of its channels has. A ring
 * for each block, of one NIC each, goes across nodes.
 *
 * Worked example. B200: 32 channels move 720 GB/s; 8 blocks 400, one block 50.
 *
 * Deviations. r is NCCL's own figure, not measured: where 16 and 32 channels share a NIC each or the NVLinks,
 * 22 to 25 GB/s were seen of each on Blackwell, as of an SM of DeepEP that sends and receives
 * (topologies/calib: dispatch_per_sm), so that one block may reach half. Trees and algorithms that NCCL does
 * not have lose SMs and, but for what the channels carry, no rate.
 *
 * Reference. NCCL 2.30.7 src/graph/search.cc, ncclTopoDupChannels; src/graph/connect.cc, ncclTopoPostset;
 * src/graph/paths.cc, ncclTopoComputeP2pChannels. */
const LsNccl *ls_nccl_with_ctas (const LsNccl *nccl, uint32_t max_ctas, LsArena *arena);

/* Rings that go across nodes at most, where each node has so many NICs. */
static inline uint32_t
ls_nccl_rings_across (const LsNccl *nccl, uint32_t n_nics)
{
  return nccl->max_ctas > 0 && nccl->max_ctas < n_nics ? nccl->max_ctas : n_nics;
}

/* Whether NCCL's tuner chooses, by what its file says; else the fastest runs. */
static inline bool
ls_nccl_has_tuner (const LsNccl *nccl)
{
  return nccl->names_generation || nccl->nvlink > 0;
}

void ls_nccl_clear (LsNccl *nccl); /* NULL allowed */

/* --- NCCL's figures, carried from the links that they were measured on to others ----------------- */

/* Problem. What NCCL gets through a NIC or an NVLink is measured on one machine. With links of
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

/* Of a cluster; 0 for what it has none of. */
LsNcclLinks ls_nccl_links_of (const LsClusterSpec *spec);

/* Figures as of these links, which are measured_on from then on. What either side has none of changes
 * nothing. */
void ls_nccl_carry (LsNccl *nccl, const LsNcclLinks *links);

#endif
