/* network/nccl/tables.h — the numbers of NCCL's tuner, of one release and one generation of GPUs: a
 * file of topologies/nccl. What tuning.c and tuning_graph.c do with them is there. */
#ifndef LS_NETWORK_NCCL_TABLES_H
#define LS_NETWORK_NCCL_TABLES_H

#include <lockstep/units.h>

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
  uint32_t compute_capability; /* major number: 9 for 9.x; 0: none, not NVIDIA's  */
  double nvlink;               /* of one NVLink, as NCCL counts it                */
  char *gpu;                   /* the usual one, of topologies/gpu                */
  /* Rates of a channel that the graph search tries, inside a node and across, fastest first; 0 ends. */
  double rates_intra[LS_NCCL_MAX_RATES + 1], rates_inter[LS_NCCL_MAX_RATES + 1];
  double double_many_from; /* more than 4 channels are doubled from this rate */
  double ll;               /* limit of all channels with LL on one host       */
  double ring_ll128;       /* limits of one channel, by hosts where there are three; 0: not possible (RCCL
                              has no LL128 on gfx942, and no trees with Simple on one host of it) */
  double tree_ll128[LS_NCCL_N_SCALES], tree_simple[LS_NCCL_N_SCALES];
  double nvls_tree[LS_NCCL_N_SCALES];
  double nvls_efficiency;              /* of the rate of a channel; 0: no NVLS            */
  double collnet_direct;               /* the same with collnet                           */
  double ring_plateau;                 /* factor of the latency of a ring across hosts with much data */
  double ll_across[LS_NCCL_N_CPUS][2]; /* limit of all channels with LL across two hosts, and more */
  LsNcclLatency latency[LS_N_TUNE_ALGORITHMS];
  double tree_by_size[LS_NCCL_N_PROTOCOLS][LS_NCCL_MAX_SIZES]; /* factor of a tree's rate */
} LsNcclTables;

void ls_nccl_tables_clear (LsNcclTables *tables);

#endif
