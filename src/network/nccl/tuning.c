/* network/nccl/tuning.c — the cost model and the choice of NCCL.
 *
 * Problem. For a call (kind, n ranks on N hosts, S bytes) NCCL estimates the time of
 * each algorithm with each protocol and runs the fastest.
 *
 * Model (times in us, rates in GB/s, as in NCCL). With C channels of bw each,
 *
 *     time = latency + S / (1000 algbw)
 *     bus    = C bw for a ring with Simple; less with LL and LL128, for trees and NVLS
 *     algbw  = bus n / steps for rings and NVLS; bus / 2 for other all-reduces; bus for
 *              other all-gathers and reduce-scatters
 *     steps  = 2 (n-1) all-reduce, n-1 all-gather and reduce-scatter, n broadcast
 *     latency = base + hops inside * il + hops across * xl, of tables by protocol
 *
 * and two corrections by size: a tree's rate has a factor for each power of two, a
 * ring's latency across hosts grows with Simple. The tables, of a release and a generation of
 * GPUs, are in topologies/nccl (nccl.h).
 *
 * Worked example (nccl-a100-ring-s, tests/README.md): all-reduce of 1 GiB on the 8
 * A100 of a node, 12 channels of 20 GB/s, ring with Simple: bus 240, algbw 240 * 8 / 14
 * = 137.1 GB/s, latency 8.4 + 14 * 3.4 = 56 us, time 7885 us.
 *
 * Deviations from reality. Large messages come close: bus bandwidth of the model over
 * what is measured is 1.02 on A100, 0.98 to 1.00 on H200, 1.06 on B200 (nccl-bus-*).
 * Small and middle ones are optimistic: 0.35 to 0.6 of the measured time below 8 MiB,
 * hence nccl.c. Deviations from NCCL: trees of one host have the channels of its rings, ranks are
 * spread evenly over the hosts, one kind of GPU, one
 * operation at a time, no PCIe or CPU on a ring's way (the graph search assumes an
 * NVSwitch). The factor by size of trees is not applied to NVLS trees, as NCCL does on Blackwell
 * beside x86 CPUs.
 *
 * Reference: NCCL 2.30.7 (commit 5067397), src/graph/tuning.cc, src/graph/search.cc,
 * src/graph/topo.h, src/graph/connect.cc, src/enqueue.cc, src/init.cc. */
#include "network/nccl/tuning.h"

#include <math.h>

#define GB 1e9

/* --- which channels NCCL finds ------------------------------------------------------------------- */

/* Problem. NCCL's search lays as many channels through a node as its NVLinks and NICs
 * carry, at one of a list of rates.
 *
 * Model. For GPUs that all reach each other through NVSwitches, with V of NVLink each (as
 * NCCL counts it: links times a rate by compute capability) the search takes the rate b
 * that makes floor (V / b) b largest, the fastest of those that tie. Across nodes one
 * channel goes through each NIC at the fastest rate that both NIC and NVLinks carry: a chain through
 * n GPUs has n - 1 NVLinks, so that C chains, begun at all GPUs alike, carry V n / ((n - 1) C) each.
 * Channels of 25 GB/s and more are then doubled at half the rate, more than 4 of them
 * from a rate on that the generation has (50 GB/s since Hopper). The lists of rates are
 * in topologies/nccl.
 *
 * Trees across nodes have the channels of the rings; inside a node their rate goes up by the list until it
 * is twice the one across, if the NVLinks carry it.
 *
 * NVLS: a channel for each GPU, up to 32, in which all take part, its head both as a GPU and for the sum:
 * with H heads a GPU carries H + 1 times the rate. Across nodes the rate across goes up as that of trees.
 *
 * Worked example. H100: 18 links of 20.6 are 370.8 GB/s; 6 channels of 60 (360) beat 7 of
 * 50 (350); doubled, 12 of 30. NVLS on 8 GPUs: 370.8 / 9, so 8 of 40; on 4 GPUs 4 of 60.
 * On 8 NICs of 50 GB/s: 370.8 * 8 / (7 * 8) is 53, so 8 of 48; on one NIC 1 of 48, doubled 2 of 24, whose
 * trees have 48 inside a node. A100: 6 of 40 (240) doubled are 12 of 20. B200: 8 of 90 (720) doubled are 16
 * of 45.
 *
 * Deviations. PCIe, CPUs and NVLink meshes are not searched; the pairing of NICs on
 * different rails is assumed to succeed.
 *
 * Reference: NCCL 2.30.7 (commit 5067397) src/graph/search.cc, src/graph/topo.h. Across 2 to 32 nodes of H100
 * the graphs give what a log of NCCL 2.27.5 has (tests/unit/network/h100-2.27.5.csv). */

/* Connecting doubles them to at most 64. */
#define MAX_CHANNELS 32

/* From this rate on channels are doubled (dupChannels). */
#define DOUBLE_FROM 25e9

/* Of the rates, which end with 0, the fastest that is not above the limit, in GB/s. */
static double
rate_below (const double *rates, double limit)
{
  for (; *rates > 0; rates++)
    if (*rates / GB <= limit)
      return *rates / GB;
  return limit;
}

/* Of the rates that fit, the fastest of those with the largest product. */
static LsTuneGraph
best_inside (const double *rates, double nvlink)
{
  LsTuneGraph best = { .channels = 1, .intra = nvlink };
  double best_sum = 0;
  for (; *rates > 0; rates++) {
    double rate = *rates / GB, channels = fmin (floor (nvlink / rate), MAX_CHANNELS);
    if (channels * rate > best_sum) {
      best_sum = channels * rate;
      best = (LsTuneGraph) { .channels = (uint32_t) channels, .intra = rate };
    }
  }
  return best;
}

/* Fast channels are doubled at half the rate. */
static LsTuneGraph
duplicated (LsTuneGraph g, const LsNcclTables *tables)
{
  bool stays = g.intra * GB < DOUBLE_FROM || (g.channels > 4 && g.intra * GB < tables->double_many_from);
  return stays ? g : (LsTuneGraph) { 2 * g.channels, g.intra / 2, g.inter / 2 };
}

static LsTuneGraph
in_bytes (LsTuneGraph g)
{
  return (LsTuneGraph) { g.channels, g.intra * GB, g.inter * GB };
}

/* What NVLinks leave each of so many chains through n GPUs; over PCIe (n 0) a GPU has its NIC's data on the
 * same link. */
static double
chain_limit (double nvlink, uint32_t n, uint32_t channels)
{
  double hops = n == 0 ? 1 : (n - 1.0) / n;
  return hops > 0 ? nvlink / (hops * channels) : INFINITY;
}

/* One rate after the other, from the slowest on, until it is twice what it was or reaches the limit. */
static double
raised (const double *rates, double from, double limit)
{
  double rate = from;
  guint n = 0;
  while (rates[n] > 0)
    n++;
  while (n-- > 0 && rate < 2 * from && rates[n] <= limit)
    rate = fmax (rate, rates[n]);
  return rate;
}

LsTuneGraph
ls_tune_ring_graph (const LsNcclTables *tables, double nvlink, uint32_t n_gpus, uint32_t nics, double nic)
{
  if (nics == 0) {
    LsTuneGraph g = best_inside (tables->rates_intra, nvlink / GB);
    g.inter = g.intra;
    return in_bytes (duplicated (g, tables));
  }
  /* A ring for each NIC, at one rate inside and across. */
  double rate = rate_below (tables->rates_inter, fmin (nic, chain_limit (nvlink, n_gpus, nics)) / GB);
  return in_bytes (duplicated ((LsTuneGraph) { nics, rate, rate }, tables));
}

LsTuneGraph
ls_tune_tree_graph (const LsNcclTables *tables, LsTuneGraph ring, double nvlink, uint32_t n_gpus)
{
  ring.intra = raised (tables->rates_inter, ring.intra, chain_limit (nvlink, n_gpus, ring.channels));
  return ring;
}

LsTuneGraph
ls_tune_nvls_graph (const LsNcclTables *tables, double nvlink, uint32_t n_gpus, uint32_t nics, double nic)
{
  uint32_t heads = MIN (n_gpus, LS_TUNE_MAX_HEADS);
  double inside = nvlink / (heads + 1);
  if (nics == 0) {
    double rate = rate_below (tables->rates_intra, inside / GB);
    return in_bytes ((LsTuneGraph) { heads, rate, rate });
  }
  double across = nic * nics / n_gpus;
  LsTuneGraph g
      = in_bytes ((LsTuneGraph) { heads, rate_below (tables->rates_inter, fmin (inside, across) / GB), 0 });
  g.inter = raised (tables->rates_inter, g.intra, across);
  return g;
}

/* --- the cost model and the choice of NCCL ------------------------------------------------------- */

enum { LL = LS_NCCL_LL, LL128 = LS_NCCL_LL128, SIMPLE = LS_NCCL_SIMPLE, N_PROTOCOLS = LS_NCCL_N_PROTOCOLS };

const char *const ls_tune_algorithm_names[LS_N_TUNE_ALGORITHMS] = {
  [LS_TUNE_TREE] = "tree",
  [LS_TUNE_RING] = "ring",
  [LS_TUNE_COLLNET_DIRECT] = "collnet",
  [LS_TUNE_COLLNET_CHAIN] = "collnet-chain",
  [LS_TUNE_NVLS] = "nvls",
  [LS_TUNE_NVLS_TREE] = "nvls-tree",
  [LS_TUNE_PAT] = "pat",
};

static uint32_t
index_of (LsProtocol protocol)
{
  g_assert (protocol != LS_PROTOCOL_AUTO);
  return protocol == LS_PROTOCOL_LL ? LL : protocol == LS_PROTOCOL_LL128 ? LL128 : SIMPLE;
}

static uint32_t
scale_of (const LsTuneComm *comm)
{
  return MIN (comm->n_hosts, LS_NCCL_N_SCALES) - 1;
}

/* Of the generation's file, in GB/s. */
static double
table_rate (double bytes_per_s)
{
  g_assert (bytes_per_s > 0);
  return bytes_per_s / GB;
}

/* Ranks on a host. */
static double
per_host (const LsTuneComm *comm)
{
  return (double) comm->n / comm->n_hosts;
}

static double
steps_of (const LsTuneComm *comm, LsCollKind kind)
{
  switch (kind) {
  case LS_COLL_ALL_REDUCE:
    return 2.0 * (comm->n - 1);
  case LS_COLL_ALL_GATHER:
  case LS_COLL_REDUCE_SCATTER:
    return comm->n - 1.0;
  default:
    return comm->n;
  }
}

static bool
scatters (LsCollKind kind)
{
  return kind == LS_COLL_ALL_GATHER || kind == LS_COLL_REDUCE_SCATTER;
}

/* --- bandwidth: GB/s of the bus --- */

static const LsTuneGraph *
graph_of (const LsTuneComm *comm, LsTuneAlgorithm a)
{
  if (a == LS_TUNE_NVLS || a == LS_TUNE_NVLS_TREE)
    return &comm->nvls;
  if (a == LS_TUNE_TREE)
    return &comm->tree;
  return a == LS_TUNE_COLLNET_DIRECT || a == LS_TUNE_COLLNET_CHAIN ? &comm->collnet : &comm->ring;
}

/* LL is bound by how the CPU polls across hosts, by how the GPU does inside. */
static double
ll_limit (const LsTuneComm *comm)
{
  uint32_t cpu = comm->is_amd ? LS_NCCL_CPU_AMD : LS_NCCL_CPU_OTHER;
  return table_rate (comm->n_hosts == 1 ? comm->tables->ll : comm->tables->ll_across[cpu][comm->n_hosts > 2]);
}

static double
ring_bus (const LsTuneComm *comm, uint32_t protocol, double channels, double bus)
{
  if (protocol == LL)
    return fmin (ll_limit (comm), 0.5 * bus);
  return protocol == LL128 ? fmin (0.92 * bus, channels * table_rate (comm->tables->ring_ll128)) : bus;
}

/* Of trees whose ends of a channel are one GPU: where it is alone on its host, and, since Hopper, where it
 * alone is next to its NIC. */
static double
plain_tree (const LsTuneComm *comm)
{
  double factor = comm->n_hosts == 1 ? 0
      : comm->n == comm->n_hosts     ? comm->tables->tree_alone
      : comm->has_own_nics           ? comm->tables->tree_own_nics
                                     : 0;
  return factor > 0 ? factor : 1;
}

static double
tree_bus (const LsTuneComm *comm, uint32_t protocol, double channels, double bus)
{
  uint32_t scale = scale_of (comm);
  double simple = fmin (0.92 * bus, channels * table_rate (comm->tables->tree_simple[scale]));
  double of_protocol = simple;
  if (protocol == LL)
    of_protocol = fmin (simple / 3.8, ll_limit (comm));
  if (protocol == LL128)
    of_protocol = fmin (simple * (comm->n_hosts == 1 ? 7.0 / 9 : 120.0 / 128),
                        channels * table_rate (comm->tables->tree_ll128[scale]));
  return of_protocol * plain_tree (comm);
}

static double
nvls_bus (const LsTuneComm *comm, LsTuneAlgorithm a, LsCollKind kind, const LsTuneGraph *g)
{
  double channels = g->channels;
  if (comm->tables->nvls_share > 0 && kind == LS_COLL_ALL_REDUCE) {
    double across
        = comm->n_hosts == 1 ? INFINITY : g->inter / (a == LS_TUNE_NVLS_TREE && comm->n_hosts > 2 ? 2 : 1);
    return channels * fmin (g->intra, across) / GB * comm->tables->nvls_share * steps_of (comm, kind)
        / comm->n;
  }
  double of_kind = kind == LS_COLL_ALL_REDUCE ? 2 : (per_host (comm) - 1) / per_host (comm);
  double rate = g->intra / GB * comm->tables->nvls_efficiency * (channels - 1) / channels * of_kind;
  if (comm->n_hosts > 1)
    rate = fmin (rate, g->inter / GB * (a == LS_TUNE_NVLS_TREE && comm->n_hosts == 2 ? 2 : 1));
  if (a == LS_TUNE_NVLS_TREE)
    rate = fmin (rate, table_rate (comm->tables->nvls_tree[scale_of (comm)]));
  return channels * rate;
}

static double
collnet_direct_bus (const LsTuneComm *comm, LsCollKind kind, const LsTuneGraph *g)
{
  if (scatters (kind))
    return per_host (comm) * fmin (g->intra, 0.9 * g->inter) / GB;
  double factor = per_host (comm) / g->channels;
  factor -= (factor - 1) / 2;
  return g->channels * g->intra / GB / factor * comm->tables->collnet_direct;
}

static double
bus_of (const LsTuneComm *comm, LsTuneAlgorithm a, uint32_t protocol, LsCollKind kind)
{
  const LsTuneGraph *g = graph_of (comm, a);
  double rate = comm->n_hosts <= 2 || a == LS_TUNE_COLLNET_CHAIN ? g->intra : g->inter;
  double bus = g->channels * rate / GB;
  switch (a) {
  case LS_TUNE_RING:
    return ring_bus (comm, protocol, g->channels, bus);
  case LS_TUNE_TREE:
    return tree_bus (comm, protocol, g->channels, bus);
  case LS_TUNE_NVLS:
  case LS_TUNE_NVLS_TREE:
    return nvls_bus (comm, a, kind, g);
  case LS_TUNE_COLLNET_DIRECT:
    return collnet_direct_bus (comm, kind, g);
  case LS_TUNE_PAT:
    return comm->tables->pat * bus;
  default:
    return bus;
  }
}

static double
algbw_of (const LsTuneComm *comm, LsTuneAlgorithm a, LsCollKind kind, double bus)
{
  if (a == LS_TUNE_RING || a == LS_TUNE_NVLS || a == LS_TUNE_NVLS_TREE)
    return bus * comm->n / steps_of (comm, kind);
  return scatters (kind) ? bus : 0.5 * bus;
}

/* --- latency: us --- */

static double
us (LsTime t)
{
  return (double) t / (double) LS_US;
}

static double
ring_latency (const LsTuneComm *comm, uint32_t protocol, LsCollKind kind, double intra, double inter)
{
  if (kind != LS_COLL_ALL_REDUCE && !scatters (kind))
    return intra; /* broadcast and reduce: a pipeline through the same channels */
  double across = comm->n_hosts == 1 ? 0 : (kind == LS_COLL_ALL_REDUCE ? 2.0 : 1.0) * (comm->n_hosts - 1);
  double overhead = comm->n_hosts == 1 ? 0 : (comm->is_amd ? 2 : 1) * (protocol == SIMPLE ? 3 : 1);
  return (steps_of (comm, kind) - across) * fmax (intra, overhead) + across * inter;
}

static double
latency_of (const LsTuneComm *comm, LsTuneAlgorithm a, uint32_t protocol, LsCollKind kind)
{
  const LsNcclLatency *table = comm->tables->latency;
  double intra = us ((comm->has_nvlink ? table[a].nvlink : table[a].pcie)[protocol]);
  double inter = us (table[per_host (comm) <= 1 ? LS_TUNE_TREE : a].net[protocol]
                     + (protocol == SIMPLE ? 2 : 1) * comm->net_latency); /* Simple also flushes */
  double others = per_host (comm) - 1, depth = g_bit_storage (comm->n_hosts) - 1;
  double base = us (table[a].base[protocol]);
  switch (a) {
  case LS_TUNE_RING:
    return base + ring_latency (comm, protocol, kind, intra, inter);
  case LS_TUNE_TREE:
    return base + 2 * (others * intra + depth * inter);
  case LS_TUNE_COLLNET_DIRECT:
    return base + 2 * (fmin (1, others) * intra + others * 0.4) + inter;
  case LS_TUNE_COLLNET_CHAIN:
    return base + 2 * others * intra + inter;
  case LS_TUNE_NVLS:
    return intra + (comm->n_hosts > 1 ? inter : 0);
  case LS_TUNE_NVLS_TREE:
    return base + intra + 2 * depth * inter;
  default: /* PAT */
    return base + depth * inter / 3.5 + 2.8 * comm->n;
  }
}

/* --- what is possible --- */

/* On a node of more GPUs than heads NCCL only all-reduces (src/enqueue.cc, updateCollCostTable). */
static bool
nvls_is_possible (const LsTuneComm *comm, LsTuneAlgorithm a, LsCollKind kind)
{
  if (!comm->has_nvls || comm->nvls.channels < MAX (2, comm->tables->nvls_from)
      || comm->tables->nvls_efficiency == 0)
    return false;
  if (a == LS_TUNE_NVLS_TREE)
    return kind == LS_COLL_ALL_REDUCE && comm->n_hosts > 1;
  bool knows = kind == LS_COLL_ALL_REDUCE || (scatters (kind) && per_host (comm) <= LS_TUNE_MAX_HEADS);
  return knows && (comm->n_hosts == 1 || comm->has_collnet);
}

static bool
is_possible (const LsTuneComm *comm, LsTuneAlgorithm a, uint32_t protocol, LsCollKind kind)
{
  if (a != LS_TUNE_RING && a != LS_TUNE_TREE && protocol != SIMPLE)
    return false;
  if (protocol == LL128 && (!comm->has_nvlink || comm->tables->ring_ll128 == 0))
    return false;
  switch (a) {
  case LS_TUNE_RING:
    return true;
  case LS_TUNE_TREE:
    return kind == LS_COLL_ALL_REDUCE && comm->tables->tree_simple[scale_of (comm)] > 0;
  case LS_TUNE_COLLNET_DIRECT:
    return comm->has_collnet && (kind == LS_COLL_ALL_REDUCE || scatters (kind));
  case LS_TUNE_COLLNET_CHAIN:
    return comm->has_collnet && kind == LS_COLL_ALL_REDUCE;
  case LS_TUNE_PAT:
    return scatters (kind) && comm->n == comm->n_hosts && comm->tables->pat > 0;
  default:
    return nvls_is_possible (comm, a, kind);
  }
}

/* --- cost and choice --- */

static double
tree_correction (const LsTuneComm *comm, LsTuneAlgorithm a, uint32_t protocol, LsCollKind kind,
                 uint64_t bytes)
{
  if (a != LS_TUNE_TREE || kind != LS_COLL_ALL_REDUCE)
    return 1;
  guint size = g_bit_storage ((gulong) (bytes / 64));
  return size > LS_NCCL_MAX_SIZES ? 1 : comm->tables->tree_by_size[protocol][size - 1];
}

/* Connected channels are twice those of the graph. */
static double
ring_correction (const LsTuneComm *comm, LsTuneAlgorithm a, uint32_t protocol, LsCollKind kind,
                 uint64_t bytes)
{
  if (a != LS_TUNE_RING || protocol != SIMPLE || kind != LS_COLL_ALL_REDUCE || comm->n_hosts == 1
      || bytes / (2 * (uint64_t) comm->ring.channels * comm->n) < 64)
    return 1;
  return comm->tables->ring_plateau;
}

LsTuneCost
ls_tune_cost (const LsTuneComm *comm, LsTuneAlgorithm a, LsProtocol protocol, LsCollKind kind, uint64_t bytes)
{
  g_assert (comm->n > 1 && comm->n_hosts > 0 && a < LS_N_TUNE_ALGORITHMS);
  uint32_t p = index_of (protocol);
  if (!is_possible (comm, a, p, kind))
    return (LsTuneCost) { 0 };
  double algbw
      = algbw_of (comm, a, kind, bus_of (comm, a, p, kind)) * tree_correction (comm, a, p, kind, bytes);
  double latency = latency_of (comm, a, p, kind) * ring_correction (comm, a, p, kind, bytes);
  return (LsTuneCost) { .latency_us = latency,
                        .bytes_per_s = algbw * GB,
                        .time_us = latency + (double) bytes / (1000 * algbw) };
}

double
ls_tune_share (const LsTuneComm *comm, LsTuneAlgorithm a, LsProtocol protocol, LsCollKind kind)
{
  uint32_t p = index_of (protocol);
  return is_possible (comm, a, p, kind)
      ? bus_of (comm, a, p, kind) / bus_of (comm, LS_TUNE_RING, SIMPLE, kind)
      : 0;
}

double
ls_tune_net_hop_us (const LsNcclTables *tables, LsTuneAlgorithm a, LsProtocol protocol)
{
  return us (tables->latency[a].net[index_of (protocol)]);
}

LsTuneChoice
ls_tune_choose (const LsTuneComm *comm, LsCollKind kind, uint64_t bytes, LsTuneSet from)
{
  static const LsProtocol protocols[N_PROTOCOLS] = { LS_PROTOCOL_LL, LS_PROTOCOL_LL128, LS_PROTOCOL_SIMPLE };
  LsTuneChoice best = { .cost = { .time_us = INFINITY } };
  for (LsTuneAlgorithm a = 0; a < LS_N_TUNE_ALGORITHMS; a++)
    for (uint32_t p = 0; p < N_PROTOCOLS; p++) {
      if ((from.algorithms && !(from.algorithms & 1u << a))
          || (from.protocols && !(from.protocols & 1u << protocols[p])))
        continue;
      LsTuneCost cost = ls_tune_cost (comm, a, protocols[p], kind, bytes);
      if (cost.bytes_per_s > 0 && cost.time_us < best.cost.time_us)
        best = (LsTuneChoice) { a, protocols[p], cost };
    }
  return best;
}

/* --- channels and chunks --- */

uint32_t
ls_tune_channels (LsTuneAlgorithm a, LsProtocol protocol, uint32_t n, uint32_t max_channels, uint64_t bytes)
{
  bool is_wide = a != LS_TUNE_RING && a != LS_TUNE_TREE && a != LS_TUNE_PAT;
  uint64_t threads = protocol == LS_PROTOCOL_LL128 || is_wide ? 640 : 512;
  uint64_t threshold = protocol == LS_PROTOCOL_SIMPLE ? 64 : 8;
  if (protocol == LS_PROTOCOL_LL && a == LS_TUNE_RING)
    threshold *= n;
  if (a == LS_TUNE_COLLNET_DIRECT || a == LS_TUNE_COLLNET_CHAIN)
    threshold = 512;
  uint64_t affordable = bytes / (threads * threshold);
  return (uint32_t) CLAMP (affordable, 1, max_channels);
}

#define STEPS 8 /* NCCL_STEPS */

uint64_t
ls_tune_buffer_bytes (LsProtocol protocol)
{
  switch (protocol) {
  case LS_PROTOCOL_LL:
    return 8 * 512 * STEPS * 16;
  case LS_PROTOCOL_LL128:
    return 120 * 640 * STEPS * 8;
  default:
    return 4 << 20;
  }
}
