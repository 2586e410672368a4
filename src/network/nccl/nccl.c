/* network/nccl/nccl.c — what a call takes in NCCL as measured, and what NCCL would run.
 *
 * Problem. NCCL's own estimates (tuning.c) are right for large messages and up to three
 * times too low for small ones. They say what runs; this says how long it takes.
 *
 * Model. An algorithm with a protocol takes
 *
 *     time    = start + hops * hop + move
 *     start   = base, and a handshake with Simple and LL128
 *     move LL = W / bus
 *     move    = W / bus * (1 + drain / sends) + W R / (W + R) / bus      otherwise
 *
 * W is what the busiest member (or the NICs of a host) sends. bus is that of a ring with
 * Simple, times the share that NCCL's tables give the algorithm and protocol; across hosts
 * at most what NICs were measured to carry.
 *
 *   base       launch, and what is left of a message that has no length.
 *   hop        from one GPU to the next, 2(n-1) or n-1 of them in a ring. Across hosts
 *              NCCL's own figure for Simple (14 us), in proportion to its tables for LL
 *              and LL128.
 *   handshake  Simple waits for free buffers and fences memory, LL128 synchronises warps;
 *              LL needs neither: a flag travels with each word. On Blackwell the waits of
 *              Simple show at each hop instead (handshake_hop): fits and held-out curves
 *              are better for it there, and worse on A100 and Hopper.
 *   drain      A thread block executes its steps in order. Of sends + 1 steps per chunk the
 *              last only copies out of the receive buffer, which takes `drain` of a step:
 *              the links idle drain / sends of the time. It explains why twice the bytes
 *              cost 2 GPUs as much time as 158 GB/s in an all-gather (A100, 256 to 512
 *              MiB), but 8 GPUs as much as 216 GB/s.
 *   R          ramp_bytes: filling the pipeline costs as much as R bytes of a large
 *              message, and as much again as a small one. Each channel has its own pipeline to
 *              fill: across hosts, where there are fewer channels than inside a node, R is as
 *              much smaller. NVLS has three stages and 3 R: copy in, reduce and multicast, copy out.
 *   nvls       Among n GPUs a link carries (1 + 1/n) S of NVLS (coll_nvls.c), at the same rate whatever n
 *              is, so that bus is nvls_bus, of 8 GPUs, times (n-1)/(n+1) 9/7. It moves in steps, short
 *              ones of small calls; each costs nvls_step_cost bytes besides its own.
 *
 * Point to point: a single send has a base of its own, which is a hop longer than that of LL (the flag
 * follows the data), and is bound by NVLink or a NIC, without ramp. An all-to-all sends and receives at once,
 * which is another hop, and copies to itself what takes self_copy of the time of a message. Up to 16 KiB
 * messages go by LL through one channel each.
 *
 * Worked example: reduce-scatter of 16 MiB over 8 H200, Simple: base 5, hop 0.8, handshake
 * 4.4 us, bus 360 GB/s, drain 0.4, R 7.8 MB. W = 14.68 MB: 5 + 7 * 0.8 + 4.4 + 40.8 (1 +
 * 0.4 / 7) + 5.09 MB / 360 GB/s = 72.3 us (measured: 69.5).
 *
 * Deviations. One base, hop and handshake for all collectives of a generation. Sources
 * differ by a factor of 2 and more below 2 MiB (NCCL versions, launch counted or not): no
 * model is closer to all of them. LL and LL128 load links with their data only, not with
 * their flags. The steps in measured curves where NCCL changes threads
 * and slices are not modelled. A tree's rate has no factor by size here.
 *
 * Reference: NCCL 2.30.7 (commit 5067397), src/graph/tuning.cc, src/enqueue.cc,
 * src/device/prims_simple.h. Fitted by
 * tools/fit/fit_nccl.c. */
#include "network/nccl/nccl.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "network/algorithm.h"

/* NCCL_P2P_LL_THRESHOLD: up to here a channel uses LL. */
#define P2P_LL_BYTES 16384

#define NVLS_STAGES 3

void
ls_nccl_tables_clear (LsNcclTables *tables)
{
  g_clear_pointer (&tables->name, g_free);
  g_clear_pointer (&tables->source, g_free);
  g_clear_pointer (&tables->generation, g_free);
  g_clear_pointer (&tables->gpu, g_free);
  g_clear_pointer (&tables->gcn, g_free);
}

void
ls_nccl_clear (LsNccl *nccl)
{
  if (!nccl)
    return;
  for (uint32_t k = 1; nccl->among && k < nccl->n_kinds; k++)
    ls_nccl_clear (&nccl->among[1u << k]);
  g_clear_pointer (&nccl->among, g_free);
  ls_nccl_tables_clear (&nccl->tables);
  for (guint i = 0; nccl->regions && i < nccl->regions->len; i++)
    g_clear_pointer (&g_array_index (nccl->regions, LsNcclRegion, i).corners, g_array_unref);
  g_clear_pointer (&nccl->regions, g_array_unref);
  g_clear_pointer (&nccl->name, g_free);
  g_clear_pointer (&nccl->source, g_free);
}

uint32_t
ls_nccl_channels (uint32_t n, uint64_t bytes, uint64_t bytes_per_channel)
{
  uint64_t affordable = bytes / bytes_per_channel;
  return (uint32_t) CLAMP (affordable, 1, n);
}

uint32_t
ls_nccl_ring_sends (LsCollKind kind, uint32_t n)
{
  return (kind == LS_COLL_ALL_REDUCE ? 2 : 1) * (n - 1);
}

double
ls_nccl_hbm_per_wire (const LsNccl *nccl, LsCollKind kind)
{
  switch (kind) {
  case LS_COLL_ALL_REDUCE:
    return nccl->hbm_per_wire_all_reduce;
  case LS_COLL_REDUCE_SCATTER:
    return nccl->hbm_per_wire_reduce_scatter;
  case LS_COLL_SEND_RECV:
  case LS_COLL_PERMUTE:
  case LS_COLL_COPY_PERMUTE:
    return nccl->hbm_per_wire_p2p;
  default:
    return nccl->hbm_per_wire_all_gather;
  }
}

/* --- held to a few thread blocks --- */

static double
carried (const LsNccl *nccl, uint32_t max_ctas)
{
  double whole = nccl->ring_bus_intra, one = nccl->tables.double_many_from;
  return max_ctas * (one > 0 && one < whole ? one : whole / nccl->channels_ring);
}

const LsNccl *
ls_nccl_with_ctas (const LsNccl *nccl, uint32_t max_ctas, LsArena *arena)
{
  double most = carried (nccl, max_ctas);
  LsNccl *held = ls_arena_new_array (arena, LsNccl, 1);
  *held = *nccl;
  held->max_ctas = max_ctas;
  held->among = NULL;
  held->ring_bus_intra = fmin (nccl->ring_bus_intra, most);
  held->nvls_bus = fmin (nccl->nvls_bus, most);
  held->p2p_intra = fmin (nccl->p2p_intra, most);
  held->p2p_inter = fmin (nccl->p2p_inter, most);
  held->channels_ring = MIN (nccl->channels_ring, max_ctas);
  held->channels_nvls = MIN (nccl->channels_nvls, max_ctas);
  held->channels_p2p = MIN (nccl->channels_p2p, max_ctas);
  return held;
}

/* --- as the tuner sees it --- */

static bool
has_nvlink_inside (const LsCollCall *call, const LsClusterSpec *spec)
{
  bool is_listed = false;
  for (guint i = 0; spec->list.vertices && i < spec->list.vertices->len; i++)
    is_listed = is_listed || g_array_index (spec->list.vertices, LsListVertex, i).kind == LS_NODE_NVSWITCH;
  return spec->server.nvswitch_planes > 0 || is_listed || ls_cluster_has_gpu_links (call->cluster);
}

static bool
has_nvlink (const LsCollCall *call)
{
  for (uint32_t h = 0; h < (call->cluster->kind_of_host ? call->seats.n_hosts : 1); h++)
    if (!has_nvlink_inside (call, ls_coll_host_spec (call, h)))
      return false;
  return true;
}

/* What PCIe carries in the slowest of the nodes, as its data sheet says. */
static double
pcie_of (const LsCollCall *call)
{
  double rate = INFINITY;
  for (uint32_t h = 0; h < (call->cluster->kind_of_host ? call->seats.n_hosts : 1); h++)
    rate = fmin (rate, ls_coll_host_spec (call, h)->server.pcie.bandwidth_bytes_per_s);
  return rate;
}

static bool
has_nvls (const LsCollCall *call)
{
  return call->nccl->nvls_bus > 0 && ls_coll_has_nvswitch (call) && call->seats.per_host > 0;
}

static LsTuneComm
comm_of (const LsCollCall *call)
{
  const LsNccl *nccl = call->nccl;
  uint32_t nics = call->seats.n_hosts == 1 ? 0 : call->seats.min_nics;
  double inside = has_nvlink (call) ? nccl->nvlink : pcie_of (call);
  double nic = ls_coll_links (call).nic;
  LsTuneComm comm = { .tables = &nccl->tables,
                      .n = call->n,
                      .n_hosts = call->seats.n_hosts,
                      .net_latency = nccl->net_latency,
                      .has_nvlink = has_nvlink (call),
                      .has_own_nics = call->seats.min_nics >= call->seats.most,
                      .has_nvls = has_nvls (call) };
  if (nccl->nvlink > 0) {
    uint32_t n_gpus = comm.has_nvlink ? call->seats.most : 0;
    comm.ring = ls_tune_ring_graph (&nccl->tables, inside, n_gpus, nics, nic);
    comm.tree = nics > 0 ? ls_tune_tree_graph (&nccl->tables, comm.ring, inside, n_gpus) : comm.ring;
    comm.nvls = ls_tune_nvls_graph (&nccl->tables, inside, MAX (1, call->seats.per_host), nics, nic);
  } else {
    uint32_t channels = ls_coll_max_channels (call);
    double rate = ls_coll_bus (call) / channels;
    comm.tree = comm.ring = (LsTuneGraph) { channels, rate, rate };
  }
  return comm;
}

const char *
ls_nccl_lacks_protocol (const LsCollCall *call)
{
  if (call->protocol == LS_PROTOCOL_AUTO)
    return NULL;
  if (!ls_cluster_traits (&call->cluster->spec)->has_nccl)
    return "the chips of a torus have none";
  if (call->protocol != LS_PROTOCOL_LL128)
    return NULL;
  if (!(LS_COLL_OF_RINGS & LS_COLL_BIT (call->kind)))
    return "what is made of sends goes by LL and Simple";
  if (!has_nvlink (call))
    return "LL128 wants NVLink between the GPUs of a node";
  if (call->nccl->tables.ring_ll128 == 0)
    return "no rate of LL128 is known of these GPUs";
  return NULL;
}

/* On an edge is within. */
static bool
holds (const GArray *corners, double x, double y)
{
  bool is_within = false;
  for (guint i = 0, n = corners->len / 2; i < n; i++) {
    const double *a = &g_array_index (corners, double, 2 * i),
                 *b = &g_array_index (corners, double, 2 * ((i + 1) % n));
    double ax = log2 (fmax (a[0], 1e-6)), bx = log2 (fmax (b[0], 1e-6)), ay = log2 (a[1]), by = log2 (b[1]);
    double cross = (bx - ax) * (y - ay) - (by - ay) * (x - ax);
    if (fabs (cross) < 1e-9 && x >= fmin (ax, bx) && x <= fmax (ax, bx) && y >= fmin (ay, by)
        && y <= fmax (ay, by))
      return true;
    if ((ay > y) != (by > y) && x < ax + (bx - ax) * (y - ay) / (by - ay))
      is_within = !is_within;
  }
  return is_within;
}

/* A plug-in's tuner settles calls on three hosts and more, NCCL's those on fewer and those in no region
 * (aws/aws-ofi-nccl@2daf7d3 src/tuner/nccl_ofi_regions.cpp). Narrows what may be chosen. */
static void
narrow_to_region (const LsCollCall *call, uint32_t among, LsTuneSet *from)
{
  const GArray *regions = call->nccl->regions;
  double x = log2 (fmax ((double) call->bytes, 1e-6)), y = log2 (call->n);
  for (guint i = 0; regions && call->seats.n_hosts > 2 && i < regions->len; i++) {
    const LsNcclRegion *r = &g_array_index (regions, LsNcclRegion, i);
    bool may = among & 1u << r->algorithm && (from->protocols == 0 || from->protocols & 1u << r->protocol);
    if (may && r->kind == call->kind && r->per_host == call->seats.per_host && holds (r->corners, x, y)) {
      *from = (LsTuneSet) { 1u << r->algorithm, 1u << r->protocol };
      return;
    }
  }
}

bool
ls_nccl_choose (LsCollCall *call, uint32_t among, LsTuneAlgorithm *ret_algorithm)
{
  bool is_tuned = LS_COLL_OF_RINGS & LS_COLL_BIT (call->kind); /* others are made of sends */
  if (!ls_nccl_has_tuner (call->nccl) || !is_tuned || among == 0)
    return false;
  LsTuneSet from = { .algorithms = among };
  if (call->protocol != LS_PROTOCOL_AUTO)
    from.protocols = 1u << call->protocol;
  else if (call->nccl->no_protocols[call->kind])
    from.protocols = (uint8_t) ~call->nccl->no_protocols[call->kind];
  LsTuneComm comm = comm_of (call);
  narrow_to_region (call, among, &from);
  LsTuneChoice choice = ls_tune_choose (&comm, call->kind, call->bytes, from);
  if (isinf (choice.cost.time_us) && call->protocol == LS_PROTOCOL_AUTO)
    choice = ls_tune_choose (&comm, call->kind, call->bytes, (LsTuneSet) { .algorithms = among });
  if (isinf (choice.cost.time_us))
    return false;
  call->protocol = choice.protocol;
  *ret_algorithm = choice.algorithm;
  return true;
}

/* --- latency --- */

LsTime
ls_nccl_base (const LsNccl *nccl, LsCollKind kind)
{
  switch (kind) {
  case LS_COLL_ALL_REDUCE:
    return nccl->base_all_reduce;
  case LS_COLL_REDUCE_SCATTER:
    return nccl->base_reduce_scatter;
  default:
    return nccl->base_all_gather;
  }
}

LsTime
ls_nccl_start (const LsCollCall *call)
{
  return ls_nccl_base (call->nccl, call->kind)
      + (call->protocol == LS_PROTOCOL_LL ? 0 : call->nccl->handshake);
}

LsTime
ls_nccl_hop_inter (const LsCollCall *call, LsTuneAlgorithm a)
{
  const LsNcclTables *tables = &call->nccl->tables;
  if (call->nccl->hop_inter_flags > 0 && call->protocol != LS_PROTOCOL_SIMPLE)
    return call->nccl->hop_inter_flags;
  double of_simple
      = ls_tune_net_hop_us (tables, a, call->protocol) / ls_tune_net_hop_us (tables, a, LS_PROTOCOL_SIMPLE);
  return (LsTime) llround ((double) call->nccl->hop_inter * of_simple);
}

LsTime
ls_nccl_ring_hop_intra (const LsCollCall *call)
{
  return call->nccl->hop_intra + (call->protocol == LS_PROTOCOL_SIMPLE ? call->nccl->handshake_hop : 0);
}

static LsTime
ring_latency (const LsCollCall *call)
{
  uint32_t sends = ls_nccl_ring_sends (call->kind, call->n);
  uint32_t across = call->seats.n_hosts == 1 ? 0 : ls_nccl_ring_sends (call->kind, call->seats.n_hosts);
  return (LsTime) (sends - across) * ls_nccl_ring_hop_intra (call)
      + (LsTime) across * ls_nccl_hop_inter (call, LS_TUNE_RING);
}

LsTime
ls_nccl_latency (const LsCollCall *call, LsTuneAlgorithm a)
{
  LsTime depth = g_bit_storage (call->seats.n_hosts) - 1;
  switch (a) {
  case LS_TUNE_TREE:
    return ls_nccl_start (call)
        + 2 * ((LsTime) (call->seats.most - 1) * call->nccl->hop_intra + depth * ls_nccl_hop_inter (call, a));
  case LS_TUNE_NVLS:
    return call->nccl->base_nvls;
  case LS_TUNE_NVLS_TREE:
    return call->nccl->base_nvls + 2 * depth * ls_nccl_hop_inter (call, LS_TUNE_TREE);
  default:
    return ls_nccl_start (call) + ring_latency (call);
  }
}

/* --- moving --- */

/* Seconds that a bus needs for the bytes and for filling pipelines: 1 for all channels of a node. */
static double
seconds (const LsCollCall *call, double wire, double bus, double pipelines)
{
  double ramp = call->protocol == LS_PROTOCOL_LL ? 0 : pipelines * call->nccl->ramp_bytes;
  double fill = ramp > 0 ? wire * ramp / (wire + ramp) : 0;
  return (wire + fill) / bus;
}

/* Each channel has a pipeline of its own. No measurement has more channels across nodes than inside. */
static double
channel_pipelines (const LsCollCall *call)
{
  return fmin (1, (double) ls_coll_max_channels (call) / call->nccl->channels_ring);
}

/* What all channels move together: inside a node as measured, across nodes as NCCL's
 * graph says; times the share of the algorithm and protocol. */
static double
channel_bus (const LsCollCall *call, LsTuneAlgorithm a)
{
  LsTuneComm comm = comm_of (call);
  double bus = ls_coll_bus_inside (call);
  if (call->seats.n_hosts > 1)
    bus = fmin (bus, comm.ring.channels * comm.ring.intra);
  return bus * ls_tune_share (&comm, a, call->protocol, call->kind);
}

/* Data that pass so many NICs: LL sends a flag with each word, LL128 8 of 128 bytes. */
static double
bus_of_nics (const LsCollCall *call, uint32_t n)
{
  double payload = call->protocol == LS_PROTOCOL_LL ? 0.5
      : call->protocol == LS_PROTOCOL_LL128         ? 120.0 / 128
                                                    : 1;
  return call->seats.n_hosts == 1 ? INFINITY : n * call->nccl->ring_bus_per_nic * payload;
}

static double
nic_bus (const LsCollCall *call)
{
  return bus_of_nics (call, ls_nccl_rings_across (call->nccl, call->seats.min_nics));
}

/* Of the host whose NICs take longest for what its members send to others. */
static double
across_seconds (const LsCollCall *call, double message)
{
  double longest = 0;
  for (uint32_t h = 0; h < call->seats.n_hosts; h++) {
    uint32_t k = call->seats.hosts[h].n;
    longest = fmax (longest,
                    seconds (call, message * (call->n - k) * k,
                             bus_of_nics (call, ls_coll_nics (call->cluster, &call->seats.hosts[h])), 1));
  }
  return longest;
}

static double
ring_seconds (const LsCollCall *call)
{
  double wire = ls_coll_wire_factor (call->kind, call->n) * (double) call->bytes;
  double bus = fmin (channel_bus (call, LS_TUNE_RING), nic_bus (call));
  double idle
      = call->protocol == LS_PROTOCOL_LL ? 0 : call->nccl->drain / ls_nccl_ring_sends (call->kind, call->n);
  return wire / bus * idle + seconds (call, wire, bus, channel_pipelines (call));
}

/* Half of the array goes through each edge of either tree, both ways. Of the host that has the
 * most edges: two hosts have one edge in each tree; of three, one is in the middle of one tree
 * and at an end of the other; from four on a host has three edges in one tree and one in the other. */
static double
tree_bytes_of_host (const LsCollCall *call)
{
  static const double edges[] = { 0, 0, 2, 3, 4 };
  return (double) call->bytes / 2 * edges[MIN (call->seats.n_hosts, G_N_ELEMENTS (edges) - 1)];
}

/* Everything passes every member twice, up and down, at the rate of the channels; what
 * leaves a host may be bound by its NICs first. */
static double
tree_seconds (const LsCollCall *call)
{
  double pipelines = channel_pipelines (call);
  return fmax (seconds (call, 2 * (double) call->bytes, channel_bus (call, LS_TUNE_TREE), pipelines),
               seconds (call, tree_bytes_of_host (call), nic_bus (call), pipelines));
}

/* With less than `rounds` times what all channels and heads move at once, steps are no longer than this:
 * NCCL 2.30.7 src/enqueue.cc, calcCollChunking, of one host and of trees between several. */
static const struct {
  double rounds, step;
} nvls_steps[2][5] = { { { 64, 65536 }, { 8, 32768 }, { 2, 16384 } },
                       { { 32, 262144 }, { 16, 131072 }, { 4, 65536 }, { 1, 32768 } } };

#define NVLS_STEP        131072.0 /* NCCL_NVLS_CHUNKSIZE by default; from four hosts on half of it */
#define NVLS_BUS_IS_OF_N 8

static double
nvls_step (const LsCollCall *call)
{
  bool is_across = call->seats.n_hosts > 1;
  double own = call->seats.n_hosts < 4 ? NVLS_STEP : NVLS_STEP / 2;
  double step = call->nccl->nvls_step > 0 ? call->nccl->nvls_step : own;
  double at_once = (double) call->nccl->channels_nvls * MIN (call->seats.most, LS_TUNE_MAX_HEADS);
  for (guint i = 0; nvls_steps[is_across][i].step > 0; i++)
    if ((double) call->bytes < nvls_steps[is_across][i].rounds * at_once * step)
      step = fmin (step, nvls_steps[is_across][i].step);
  return step;
}

static double
nvls_bus (const LsCollCall *call)
{
  double n = call->seats.most, of = NVLS_BUS_IS_OF_N;
  double by_n = (n - 1) / (n + 1) / ((of - 1) / (of + 1));
  return call->nccl->nvls_bus * by_n / (1 + call->nccl->nvls_step_cost / nvls_step (call));
}

static double
nvls_seconds (const LsCollCall *call)
{
  uint32_t k = call->seats.most;
  double inside = ls_coll_wire_factor (call->kind, k) * (double) call->bytes;
  return fmax (seconds (call, inside, nvls_bus (call), NVLS_STAGES),
               seconds (call, tree_bytes_of_host (call), nic_bus (call), NVLS_STAGES));
}

double
ls_nccl_seconds (const LsCollCall *call, LsTuneAlgorithm a)
{
  switch (a) {
  case LS_TUNE_TREE:
    return tree_seconds (call);
  case LS_TUNE_NVLS:
  case LS_TUNE_NVLS_TREE:
    return nvls_seconds (call);
  default:
    return ring_seconds (call);
  }
}

/* --- point to point --- */

static double
bytes_of_message (const LsCollCall *call)
{
  return (double) call->bytes / (call->kind == LS_COLL_ALL_TO_ALL ? call->n : 1);
}

LsProtocol
ls_nccl_p2p_protocol (const LsCollCall *call)
{
  bool is_ll = call->nccl->nvlink > 0 && bytes_of_message (call) <= P2P_LL_BYTES;
  return is_ll ? LS_PROTOCOL_LL : LS_PROTOCOL_SIMPLE;
}

LsTime
ls_nccl_p2p_latency (const LsCollCall *call)
{
  const LsNccl *nccl = call->nccl;
  bool is_across = call->seats.n_hosts > 1, is_ll = call->protocol == LS_PROTOCOL_LL;
  LsTime base = is_across ? nccl->base_p2p_inter : nccl->base_p2p_intra;
  if (call->kind != LS_COLL_ALL_TO_ALL)
    return is_ll && !is_across ? ls_nccl_base (nccl, call->kind) : base;
  return base + nccl->hop_intra + (is_ll ? 0 : nccl->handshake + nccl->handshake_hop);
}

/* Of LL, what one channel moves. */
static double
ll_channel_rate (const LsCollCall *call)
{
  return channel_bus (call, LS_TUNE_RING) / ls_coll_max_channels (call);
}

void
ls_nccl_all_to_all_seconds (const LsCollCall *call, double *ret_inside, double *ret_across)
{
  const LsNccl *nccl = call->nccl;
  double message = bytes_of_message (call);
  *ret_inside = message / ll_channel_rate (call);
  *ret_across = 0;
  if (call->seats.n_hosts == 1 && call->protocol == LS_PROTOCOL_LL)
    return;
  uint32_t k = call->seats.most;
  double inside = message * (k - 1);
  double self = message * nccl->self_copy / nccl->ring_bus_intra;
  *ret_inside = self + seconds (call, inside, nccl->ring_bus_intra, 1);
  *ret_across = across_seconds (call, message);
}

double
ls_nccl_p2p_seconds (const LsCollCall *call)
{
  if (call->kind == LS_COLL_ALL_TO_ALL) {
    double inside, across;
    ls_nccl_all_to_all_seconds (call, &inside, &across);
    return fmax (inside, across);
  }
  if (call->seats.n_hosts == 1 && call->protocol == LS_PROTOCOL_LL)
    return bytes_of_message (call) / ll_channel_rate (call);
  return (double) call->bytes / (call->seats.n_hosts == 1 ? call->nccl->p2p_intra : call->nccl->p2p_inter);
}

/* ---- NCCL's figures, carried from the links that they were measured on to others, and to nodes of several
 * kinds ---- */

/* --- the links of a cluster --- */

static const char *
first_gpu (const LsClusterSpec *s)
{
  for (guint i = 0; s->list.vertices && i < s->list.vertices->len; i++)
    if (g_array_index (s->list.vertices, LsListVertex, i).kind == LS_NODE_GPU)
      return g_array_index (s->list.vertices, LsListVertex, i).name;
  return "";
}

/* NVLinks of the first GPU of a listed node. */
static void
add_listed_nvlinks (const LsClusterSpec *s, LsNcclLinks *l)
{
  const char *gpu = first_gpu (s);
  for (guint i = 0; s->list.links && i < s->list.links->len; i++) {
    const LsListLink *link = &g_array_index (s->list.links, LsListLink, i);
    bool is_its_own = strcmp (link->from, gpu) == 0 || strcmp (link->to, gpu) == 0;
    if (!is_its_own || !ls_cluster_spec_is_nvlink (s, link))
      continue;
    l->nvlink += link->count * link->link.bandwidth_bytes_per_s;
    l->nvlink_latency = link->link.latency;
  }
}

/* Links of the first GPU of a mesh; a hybrid cube has six. */
static uint32_t
n_mesh_links (const LsClusterSpec *s)
{
  uint32_t n = s->server.mesh == LS_MESH_HYBRID_CUBE ? 6
      : s->server.mesh == LS_MESH_FULL               ? s->gpus_per_node - 1
                                                     : 0;
  for (guint i = 0; s->server.mesh == LS_MESH_LIST && s->server.mesh_links && i < s->server.mesh_links->len;
       i++) {
    const LsMeshLink *link = &g_array_index (s->server.mesh_links, LsMeshLink, i);
    n += link->a == 0 || link->b == 0 ? link->count : 0;
  }
  return n;
}

/* Of the kernel of the host at one end of a message by TCP: some 10 us a message, where RDMA takes less than
 * one (vllm-project/vllm, pull request 42075). */
#define SOCKET_LATENCY (5 * LS_US)

LsNcclLinks
ls_nccl_links_of (const LsClusterSpec *s)
{
  LsNcclLinks l = { .nic = s->nics.port.bandwidth_bytes_per_s,
                    .nic_latency = s->nics.port.latency,
                    .pcie_latency = s->server.pcie.latency };
  if (s->nics.is_staged)
    l.staging_latency = 2 * s->server.pcie.latency + 2 * s->server.cpu_memory.latency;
  if (s->nics.is_staged && s->nics.transport == LS_NIC_TCP)
    l.staging_latency += SOCKET_LATENCY;
  uint32_t n = s->server.nvswitch_planes > 0 ? s->server.nvlinks_per_gpu : n_mesh_links (s);
  l.nvlink = n * s->server.nvlink.bandwidth_bytes_per_s;
  l.nvlink_latency = s->server.nvlink.latency;
  add_listed_nvlinks (s, &l);
  return l;
}

/* --- carrying --- */

static void
scale (double *const *rates, guint n, double by)
{
  for (guint i = 0; i < n; i++)
    *rates[i] *= by;
}

static void
lengthen (LsTime *const *latencies, guint n, LsTime by)
{
  for (guint i = 0; i < n; i++)
    *latencies[i] = MAX (0, *latencies[i] + by);
}

static void
carry_inside (LsNccl *n, const LsNcclLinks *to)
{
  const LsNcclLinks *from = &n->measured_on;
  double *const rates[] = { &n->nvlink, &n->ring_bus_intra, &n->nvls_bus, &n->p2p_intra };
  LsTime *const latencies[] = { &n->hop_intra, &n->base_p2p_intra, &n->base_nvls };
  if (from->nvlink <= 0 || to->nvlink <= 0)
    return;
  scale (rates, G_N_ELEMENTS (rates), to->nvlink / from->nvlink);
  lengthen (latencies, G_N_ELEMENTS (latencies), 2 * (to->nvlink_latency - from->nvlink_latency));
}

static void
carry_across (LsNccl *n, const LsNcclLinks *to)
{
  const LsNcclLinks *from = &n->measured_on;
  double *const rates[] = { &n->ring_bus_per_nic, &n->p2p_inter };
  LsTime *const latencies[] = { &n->hop_inter, &n->base_p2p_inter, &n->hop_inter_flags };
  guint n_latencies = G_N_ELEMENTS (latencies) - (n->hop_inter_flags == 0);
  if (from->nic <= 0 || to->nic <= 0)
    return;
  LsTime pcie
      = from->pcie_latency > 0 && to->pcie_latency > 0 ? 4 * (to->pcie_latency - from->pcie_latency) : 0;
  pcie += 2 * (to->staging_latency - from->staging_latency);
  scale (rates, G_N_ELEMENTS (rates), to->nic / from->nic);
  lengthen (latencies, n_latencies, pcie + 2 * (to->nic_latency - from->nic_latency));
}

void
ls_nccl_carry (LsNccl *nccl, const LsNcclLinks *links)
{
  carry_inside (nccl, links);
  carry_across (nccl, links);
  nccl->measured_on = *links;
}

/* --- NCCL between nodes of several kinds: see ls_nccl_mix() -------------------------------------- */

#define AT(member)          offsetof (LsNccl, member)
#define OF_LINKS(member)    AT (measured_on.member)
#define OF_DISPATCH(member) AT (dispatch.member), AT (hybrid_dispatch.member)

/* Of which the slower one has the lower, and the higher. */
static const size_t channels[]
    = { AT (channels_ring), AT (channels_net), AT (channels_nvls), AT (channels_p2p) };
static const size_t rates[] = { AT (ring_bus_intra),
                                AT (ring_bus_per_nic),
                                AT (nvls_bus),
                                AT (p2p_intra),
                                AT (p2p_inter),
                                OF_LINKS (nvlink),
                                OF_LINKS (nic),
                                OF_DISPATCH (dispatch.per_sm),
                                OF_DISPATCH (combine.per_sm),
                                OF_DISPATCH (of_nvlink),
                                OF_DISPATCH (of_nic) };
static const size_t latencies[] = { AT (base_all_reduce),
                                    AT (base_all_gather),
                                    AT (base_reduce_scatter),
                                    AT (base_nvls),
                                    AT (base_p2p_intra),
                                    AT (base_p2p_inter),
                                    AT (hop_intra),
                                    AT (hop_inter),
                                    AT (hop_inter_flags),
                                    AT (net_latency),
                                    AT (handshake),
                                    AT (handshake_hop),
                                    OF_LINKS (nvlink_latency),
                                    OF_LINKS (nic_latency),
                                    OF_LINKS (pcie_latency),
                                    OF_LINKS (staging_latency),
                                    OF_DISPATCH (dispatch.token),
                                    OF_DISPATCH (dispatch.row),
                                    OF_DISPATCH (combine.token),
                                    OF_DISPATCH (combine.row),
                                    OF_DISPATCH (base_intra),
                                    OF_DISPATCH (base_inter) };
static const size_t costs[] = { AT (ramp_bytes),
                                AT (nvls_step_cost),
                                AT (drain),
                                AT (self_copy),
                                AT (sm_share_per_channel),
                                AT (stall_per_byte),
                                AT (hbm_per_wire_all_reduce),
                                AT (hbm_per_wire_all_gather),
                                AT (hbm_per_wire_reduce_scatter),
                                AT (hbm_per_wire_p2p) };

#define MEMBER(type, of, at) G_STRUCT_MEMBER (type, of, at)

static void
take (LsNccl *a, const LsNccl *b)
{
  double staged = fmin (a->ring_bus_staged, b->ring_bus_staged);
  a->ring_bus_staged = staged > 0 ? staged : fmax (a->ring_bus_staged, b->ring_bus_staged);
  if (b->nvlink < a->nvlink) {
    a->tables = b->tables;
    a->regions = b->regions;
    a->nvlink = b->nvlink;
  }
  for (guint i = 0; i < G_N_ELEMENTS (channels); i++)
    MEMBER (uint32_t, a, channels[i])
        = MIN (MEMBER (uint32_t, a, channels[i]), MEMBER (uint32_t, b, channels[i]));
  for (guint i = 0; i < G_N_ELEMENTS (rates); i++)
    MEMBER (double, a, rates[i]) = fmin (MEMBER (double, a, rates[i]), MEMBER (double, b, rates[i]));
  for (guint i = 0; i < G_N_ELEMENTS (latencies); i++)
    MEMBER (LsTime, a, latencies[i])
        = MAX (MEMBER (LsTime, a, latencies[i]), MEMBER (LsTime, b, latencies[i]));
  for (guint i = 0; i < G_N_ELEMENTS (costs); i++)
    MEMBER (double, a, costs[i]) = fmax (MEMBER (double, a, costs[i]), MEMBER (double, b, costs[i]));
}

void
ls_nccl_mix (LsNccl *nccl, const LsNccl *const *kinds, uint32_t n_kinds)
{
  LsNccl *among = g_new0 (LsNccl, 1u << n_kinds);
  for (uint32_t set = 1; set < 1u << n_kinds; set++) {
    uint32_t first = (uint32_t) g_bit_nth_lsf (set, -1);
    among[set] = *kinds[first];
    for (uint32_t k = first + 1; k < n_kinds; k++)
      if (set >> k & 1)
        take (&among[set], kinds[k]);
    among[set].among = NULL;
  }
  nccl->among = among;
  nccl->n_kinds = n_kinds;
}
