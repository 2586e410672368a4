/* network/coll.h — a collective as phases: a latency term, then a coupled load.
 *
 * A phase first takes `latency` with nothing moving, then moves `demand_bytes` on
 * each of its flows; every flow runs at the same rate r <= rate_cap, and loads
 * resource i with coef_i * r (coefficients are integers in units of
 * 1/LS_COEF_ONE = 2^-20: how many flows cross it). Resources are those of
 * cluster/cluster.h: trunks, then each GPU's HBM.
 *
 * A limit lives either in a trunk's capacity or in a phase's rate_cap, never in
 * both. */
#ifndef LS_NETWORK_COLL_H
#define LS_NETWORK_COLL_H

#include <glib.h>

#include <lockstep/units.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "cluster/cluster.h"

/* Send/recv comes last: the others are collectives in the strict sense. */
typedef enum {
  LS_COLL_ALL_REDUCE,
  LS_COLL_ALL_GATHER,
  LS_COLL_REDUCE_SCATTER,
  LS_COLL_BROADCAST,
  LS_COLL_SEND_RECV, /* gpus[0] sends to gpus[1] */
  LS_N_COLL_KINDS
} LsCollKind;

const char *ls_coll_kind_name (LsCollKind kind); /* static: "all-reduce" */

typedef enum { LS_NETWORK_FLOW, LS_NETWORK_ALPHABETA } LsNetworkFidelity;

/* NCCL as it behaves on one GPU generation, from topologies/calib/NAME.json. Each
 * number carries its source there. nvls_bus 0: no NVLink SHARP. */
typedef struct {
  char *name, *source;
  uint32_t channels_ring;   /* channels of ring collectives inside a node        */
  uint32_t channels_net;    /* across nodes, for each NIC that a node uses       */
  uint32_t channels_nvls;   /* of the all-reduce in the NVSwitches               */
  uint32_t channels_p2p;    /* of one peer on another node                       */
  double ring_bus_intra;    /* bytes/s, bus bandwidth of a ring inside a node    */
  double ring_bus_per_nic;  /* bytes/s that a ring gets through one NIC          */
  double nvls_bus;          /* bytes/s, bus bandwidth of NVLS over a whole node  */
  double p2p_intra, p2p_inter; /* bytes/s of one send/recv                       */
  /* Launch-to-launch latency: base + steps * hop, per kind of hop. */
  LsTime base_all_reduce, base_all_gather, base_reduce_scatter, base_nvls, base_p2p_intra, base_p2p_inter;
  LsTime hop_intra, hop_inter;
  /* Ramp: small messages move at half rate, with flags between their data or in
   * half-full buffers; a message of W wire bytes costs W * ramp / (W + ramp)
   * bytes more of the bus's time (fitted). */
  double ramp_bytes;
  /* Drain: the last step of a ring only copies out of the receive buffer; the
   * time of that copy over the time of a step that also sends (fitted). */
  double drain;
  double sm_share_per_channel; /* SMs held by one channel / SMs of the GPU       */
  double hbm_per_wire_all_reduce, hbm_per_wire_all_gather, hbm_per_wire_reduce_scatter, hbm_per_wire_p2p;
} LsNccl;

void ls_nccl_clear (LsNccl *nccl); /* NULL allowed */

typedef struct {
  uint32_t resource;
  uint64_t coef; /* 2^-20 flows */
} LsLoad;

typedef struct {
  LsTime latency;
  double demand_bytes; /* per flow; 0: latency only */
  double rate_cap;     /* bytes/s of one flow       */
  uint32_t n_loads;
  LsLoad *loads; /* sorted by resource, each once */
} LsPhase;

typedef struct {
  const char *algorithm; /* static: "ring", "nvls", "p2p"; "" with one member */
  const char *protocol;  /* static: "Simple"      */
  double sm_share;       /* of each member's GPU, from launch to end */
  uint32_t n_phases;
  LsPhase *phases;
} LsCollPlan;

/* gpus: n distinct GPUs in communicator order (NCCL orders its rings by
 * topology, so the order matters for send/recv only). bytes: of the whole array,
 * as nccl-tests counts (all-gather: the gathered size; reduce-scatter: the size
 * before scattering; send/recv: the message). With one member: no phases. Of the
 * algorithms that apply, the one that is fastest alone. Everything is allocated
 * in arena. LS_NETWORK_ALPHABETA gives the same plan without loads, its rate_cap
 * lowered to what the links allow: nothing is shared. Never fails. */
LsCollPlan *ls_coll_plan (const LsCluster *c, const LsNccl *nccl, LsCollKind kind,
                          const uint32_t *gpus, uint32_t n, uint64_t bytes,
                          LsNetworkFidelity fidelity, LsArena *arena);

/* Time of the plan with nothing else on the network, for tests and tables. */
LsTime ls_coll_time_alone (const LsCluster *c, const LsCollPlan *plan);

/* Bytes that each member sends per byte of `bytes`, for n members:
 * 2(n-1)/n all-reduce, (n-1)/n all-gather and reduce-scatter (ring), 1
 * broadcast and send/recv; 0 for one member. */
double ls_coll_wire_factor (LsCollKind kind, uint32_t n);

#endif
