/* network/nccl/tuning.h — NCCL's own model of its collectives, by which it chooses an
 * algorithm and a protocol. It is what NCCL believes, not what it reaches (tuning.c
 * gives measured ratios): here it decides what runs, nccl.c how long that takes. */
#ifndef LS_NETWORK_NCCL_TUNING_H
#define LS_NETWORK_NCCL_TUNING_H

#include "network/coll.h"

extern const char *const ls_tune_algorithm_names[LS_N_TUNE_ALGORITHMS]; /* by value: "ring", as coll_X.c */

/* Channels of a graph, before NCCL doubles them on connection, and bytes/s of each
 * inside a node and across. */
typedef struct {
  uint32_t channels;
  double intra, inter;
} LsTuneGraph;

/* A communicator as the tuner sees it. */
typedef struct {
  const LsNcclTables *tables; /* of the generation of its GPUs, borrowed */
  uint32_t n, n_hosts;
  LsTime net_latency; /* of the network, as its plug-in says; 0: InfiniBand's says none */
  bool has_nvlink;    /* else GPUs of a node meet over PCIe; then no LL128       */
  bool has_nvls;      /* NVSwitches that compute, and the node's GPUs all in use */
  bool has_collnet;   /* switches of the fabric that compute, and a plugin       */
  bool has_own_nics;  /* each GPU of a host: no two are next to one NIC          */
  bool is_amd;        /* CPUs of the node                                        */
  LsTuneGraph ring, tree, nvls, collnet;
} LsTuneComm;

typedef struct {
  double latency_us;  /* of one operation, corrected for its size       */
  double bytes_per_s; /* algbw, corrected for its size; 0: not possible */
  double time_us;
} LsTuneCost;

typedef struct {
  LsTuneAlgorithm algorithm;
  LsProtocol protocol;
  LsTuneCost cost;
} LsTuneChoice;

/* NCCL_MAX_NVLS_ARITY: GPUs that NVLS may share an array among. With more GPUs of a node these are
 * the first ones. */
#define LS_TUNE_MAX_HEADS 32

/* NCCL's graph search for GPUs that all reach each other through NVSwitches: rings (or NVLS)
 * of n_gpus of a node (0: over PCIe) with nvlink bytes/s of NVLink each, as NCCL counts it, and
 * across nodes through `nics` NICs of nic bytes/s each (nics 0: one node). */
LsTuneGraph ls_tune_ring_graph (const LsNcclTables *tables, double nvlink, uint32_t n_gpus, uint32_t nics,
                                double nic);
/* Trees across nodes, of the rings' graph. */
LsTuneGraph ls_tune_tree_graph (const LsNcclTables *tables, LsTuneGraph ring, double nvlink, uint32_t n_gpus);
LsTuneGraph ls_tune_nvls_graph (const LsNcclTables *tables, double nvlink, uint32_t n_gpus, uint32_t nics,
                                double nic);

/* bytes as nccl-tests counts them. kind: all-reduce, all-gather, reduce-scatter,
 * broadcast or reduce; protocol: not AUTO. */
LsTuneCost ls_tune_cost (const LsTuneComm *comm, LsTuneAlgorithm algorithm, LsProtocol protocol,
                         LsCollKind kind, uint64_t bytes);
/* Of the Simple bandwidth of a ring, the share that this gets with large messages; 0: not
 * possible. */
double ls_tune_share (const LsTuneComm *comm, LsTuneAlgorithm algorithm, LsProtocol protocol,
                      LsCollKind kind);
/* What a hop across hosts takes, in us. */
double ls_tune_net_hop_us (const LsNcclTables *tables, LsTuneAlgorithm algorithm, LsProtocol protocol);

/* What to choose from: bits of algorithms and of protocols, 0: all. */
typedef struct {
  uint32_t algorithms, protocols;
} LsTuneSet;

/* The least time of what is possible; if nothing is, its time_us is infinite. Of
 * everything, a ring always is possible. */
LsTuneChoice ls_tune_choose (const LsTuneComm *comm, LsCollKind kind, uint64_t bytes, LsTuneSet from);

/* Of max_channels (connected ones), those that a call of this size gets: each has enough
 * bytes to occupy its threads. */
uint32_t ls_tune_channels (LsTuneAlgorithm algorithm, LsProtocol protocol, uint32_t n, uint32_t max_channels,
                           uint64_t bytes);

/* How much of the buffer of a channel is payload. NCCL 2.30.7 src/init.cc. */
uint64_t ls_tune_buffer_bytes (LsProtocol protocol);

#endif
