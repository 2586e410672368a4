/* network/coll_nvls.c — all-reduce in the NVSwitches (NVLink SHARP).
 *
 * Problem. n GPUs of a node reduce S bytes. GPU g is the head of the
 * g-th n-th of the array: it reads that part from all GPUs, the switch adding up
 * on the way (multimem.ld_reduce), and writes the sum to all, the switch copying
 * (multimem.st).
 *
 * Model. Up to the switch a GPU sends S (its data, to all heads) and S/n (its
 * sums); it receives S/n and S. So each trunk carries (1 + 1/n) S, against
 * 2 (n-1)/n S of a ring. C channels, one flow each.
 *
 * Rate. NCCL's tuning model gives the bus bandwidth (in the ring's terms, so
 * that busbw compares) as bw * eff * C * (C-1)/C * 2; the fitted nvls_bus, of 8 GPUs in
 * long steps, stands for it (nccl.c). A trunk then runs at nvls_bus * 9/14, whatever n is: 5, 6, 7
 * and 8 H200 were measured to.
 *
 * The data pass through three groups of warps: one copies them into the multicast
 * buffer, one reduces and multicasts, one copies out. A pipeline of three stages
 * fills three times as long as a ring's, hence 3 * ramp_bytes.
 *
 * Worked example: H100, 1 GiB, nvls_bus 476 GB/s, ramp 0: a trunk carries
 * 1.208e9 bytes at 306 GB/s (of 376): 3.948 ms, busbw 476 GB/s.
 *
 * Deviations. NCCL's tuner prefers the ring among few GPUs (H200, n = 4: worked example
 * nccl-sel-2); across nodes see below. HBM traffic per byte of busbw is taken to be the ring's.
 *
 * Reference: Klenk et al., An in-network architecture for accelerating
 * shared-memory multiprocessor collectives, ISCA 2020; NCCL 2.30.7
 * src/graph/tuning.cc, src/device/all_reduce.h. */
#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

/* 640 threads, each worth 64 bytes (NCCL: nThreads * threadThreshold). */
#define BYTES_PER_CHANNEL 40960

static uint32_t
channels_used (const LsCollCall *call)
{
  return ls_nccl_channels (call->nccl->channels_nvls, call->bytes, BYTES_PER_CHANNEL);
}

static bool
applies (const LsCollCall *call)
{
  return call->nccl->nvls_bus > 0 && ls_coll_has_nvswitch (call) && call->seats.n_hosts == 1
      && call->seats.per_host > 2;
}

static void
add_loads (const LsCollCall *call, uint32_t n_channels, LsPhase *phase)
{
  uint64_t flows = n_channels * LS_COEF_ONE;
  double wire_per_trunk_byte = 2.0 * (call->n - 1) / (call->n + 1);
  uint64_t hbm
      = (uint64_t) llround ((double) flows * call->nccl->hbm_per_wire_all_reduce * wire_per_trunk_byte);
  LsLoadList loads = ls_load_list_new (call->cluster);
  /* A ring of single hops loads each trunk of each member once. */
  for (uint32_t i = 0; i < call->n; i++) {
    ls_load_list_add_route (&loads, call->gpus[i], call->gpus[(i + 1) % call->n], flows);
    ls_load_list_add (&loads, ls_cluster_hbm_resource (call->cluster, call->gpus[i]), hbm);
  }
  ls_load_list_finish (&loads, call->arena, phase);
}

static double
rate_of_flow (const LsCollCall *call, uint32_t n_flows)
{
  double n = call->n;
  double s = ls_nccl_seconds (call, LS_TUNE_NVLS);
  return s > 0 ? (1 + 1 / n) * (double) call->bytes / n_flows / s : call->nccl->nvls_bus / n_flows;
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  double n = call->n;
  uint32_t n_used = channels_used (call);

  LsPhase *phase = ls_plan_phases (call, n_used, 1, ret_plan);
  phase->latency = call->nccl->base_nvls;
  phase->demand_bytes = (1 + 1 / n) * (double) call->bytes / n_used;
  phase->rate_cap = rate_of_flow (call, n_used);
  if (call->bytes > 0)
    add_loads (call, n_used, phase);
}

/* All-reduce in the NVSwitches of each host, and over double
 * binary trees between hosts.
 *
 * Problem. k GPUs of each of N hosts sum S bytes.
 *
 * Model. In each host GPU g is the head of the g-th k-th of the array: it gets the host's
 * sum from the NVSwitches (coll_nvls.c), adds it up with that of the heads g of the other
 * hosts over a double tree (coll_tree.c), both trees with half of it, and gives the
 * result to the NVSwitches, which copy it to all. All of it is pipelined, chunk by chunk.
 *
 *     a GPU's NVLinks     S + S/k up and down
 *     a GPU's NIC         2 S/k (N - 1)/N on average, in and out
 *
 * Latency and rate are those of nccl.c: NVLS inside a host, and what goes through the
 * NICs of the busiest host, whichever takes longer.
 *
 *     time alone = base_nvls + 2 floor(log2 N) hop_inter + max (NVLS of S, 2 S / NICs)
 *
 * Worked example: 1 GiB over 4 hosts of 8, NVLS 476 GB/s, 8 NICs of 45 GB/s, base 25 us,
 * hop 14 us, no ramp: 25 + 56 us + max (1.75 * 1.074e9 / 476e9, 2 * 1.074e9 / 360e9) =
 * 6.046 ms.
 *
 * Deviations. As for trees, each channel takes both trees here. Between nodes of unequal size NCCL has as
 * many heads as the smallest node, and the other GPUs reach these through the switch (minHeadNum of
 * src/graph/connect.cc); what that takes is in no source, so there it is rings and trees here.
 *
 * Reference: NCCL 2.30.7 src/graph/tuning.cc, src/device/all_reduce.h (runNvlsTree). */

typedef struct {
  const LsCollCall *call;
  LsDoubleTree trees;
  uint32_t k;
} NvlsTree;

static uint32_t
block_of (const NvlsTree *x, uint32_t head, uint32_t tree)
{
  return head * x->trees.n_trees + tree;
}

/* Head g of host h on one tree. */
static void
edges_on_tree (const NvlsTree *x, uint32_t h, uint32_t g, uint32_t tree, LsEdges *ret)
{
  const LsTreeNode *node = &x->trees.node[tree][h];
  const uint32_t *member = x->call->seats.member;
  uint32_t top = 2 + x->trees.depth, children[2], n = 0;
  for (uint32_t i = 0; i < 2; i++)
    if (node->child[i] != LS_NO_HOST)
      children[n++] = member[node->child[i] * x->k + g];
  uint32_t parent = node->parent == LS_NO_HOST ? UINT32_MAX : member[node->parent * x->k + g];
  ls_edges_add_tree (ret, parent, children, n, top - node->depth, top + node->depth, block_of (x, g, tree));
}

static void
edges_of_member (const LsScript *s, uint32_t place, LsEdges *ret)
{
  const NvlsTree *x = s->data;
  uint32_t n_trees = x->trees.n_trees, seat = x->call->seats.seat[place], h = seat / x->k, g = seat % x->k,
           back = 2 + 2 * x->trees.depth;
  ls_edges_add (ret, (LsEdge) { .to = s->n + h, .out = 0, .in = 1, .n = x->k * n_trees, .reduces = true });
  for (uint32_t t = 0; t < n_trees; t++)
    edges_on_tree (x, h, g, t, ret);
  ls_edges_add (
      ret,
      (LsEdge) { .to = s->n + h, .out = back, .in = back + 1, .first = block_of (x, g, 0), .n = n_trees });
}

/* Stages: 0 in, 1 to the heads, 2 .. on the trees, then back and out. */
static void
edges (const LsScript *s, uint32_t place, LsEdges *ret)
{
  const NvlsTree *x = s->data;
  uint32_t n_trees = x->trees.n_trees, back = 2 + 2 * x->trees.depth;
  if (place < s->n)
    edges_of_member (s, place, ret);
  for (uint32_t g = 0; place >= s->n && g < x->k; g++) {
    uint32_t to = x->call->seats.member[(place - s->n) * x->k + g];
    ls_edges_add (ret, (LsEdge) { .to = to, .out = 1, .in = 0, .first = block_of (x, g, 0), .n = n_trees });
    ls_edges_add (ret, (LsEdge) { .to = to, .out = back + 1, .in = back, .n = x->k * n_trees });
  }
}

/* Between a GPU and the NVSwitches of its node, which has at least two GPUs: half of the way to the next one,
 * which goes up to all of them, then down from all. */
static void
route (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel, LsRoute *ret_route)
{
  bool is_up = to >= s->n;
  if (!is_up && from < s->n) {
    ls_route (s->cluster, s->gpus[from], s->gpus[to], channel, ret_route);
    return;
  }
  const LsCluster *c = s->cluster;
  uint32_t gpu = s->gpus[is_up ? from : to], local = ls_cluster_local_of (c, gpu),
           other = gpu - local + (local + 1) % ls_cluster_gpus_of (c, ls_cluster_host_of (c, gpu));
  ls_route (c, is_up ? gpu : other, is_up ? other : gpu, 0, ret_route);
  g_assert (ret_route->n_hops > 0 && ret_route->n_hops % 2 == 0);
  ret_route->n_hops /= 2;
  ret_route->latency = 0;
  for (uint32_t i = 0; i < ret_route->n_hops; i++) {
    ret_route->hop[i] = ret_route->hop[is_up ? i : i + ret_route->n_hops];
    ret_route->latency = MAX (ret_route->latency, ls_cluster_trunk (c, ret_route->hop[i].trunk)->latency);
  }
}

static void
script_of (const LsCollCall *call, bool is_flat, LsScript *s)
{
  NvlsTree *x = ls_arena_new_array (call->arena, NvlsTree, 1);
  x->call = call;
  x->trees = ls_double_tree (call->seats.n_hosts, call->arena);
  x->k = call->seats.per_host;
  uint32_t n_stages = 4 + 2 * x->trees.depth, n_blocks = x->k * x->trees.n_trees;
  uint64_t n_messages
      = 4 * (uint64_t) call->n + 2 * (uint64_t) x->k * x->trees.n_trees * (call->seats.n_hosts - 1);
  uint32_t n_chunks = is_flat ? 1 : ls_coll_chunks (call, channels_used (call), n_stages, n_messages);
  ls_script_cut (call, s, n_chunks * n_blocks);
  ls_script_pipe (s, n_chunks, n_blocks, is_flat ? 1 : n_stages, edges);
  s->data = x;
  s->n_switches = call->seats.n_hosts;
  s->max_sends = MAX (3 * x->trees.n_trees + 2, 2 * x->k);
  s->route = route;
  double n = x->k; /* as NVLS inside a host */
  s->hbm_from = s->hbm_to = call->nccl->hbm_per_wire_all_reduce * (n - 1) / (n + 1);
}

/* --- one host --- */

/* A chunk's n blocks and another's single one are on the way at once. */
static double
rate_cap (const LsScript *s, uint32_t from, uint32_t to, uint32_t n)
{
  return s->rate_switch * n / (s->n + 1);
}

static void
script (const LsCollCall *call, LsScript *s)
{
  script_of (call, false, s);
  s->base = call->nccl->base_nvls; /* hops included */
  s->rate_switch = rate_of_flow (call, channels_used (call));
  s->rate_cap = rate_cap;
  s->flows = channels_used (call) * LS_COEF_ONE;
}

#define KINDS LS_COLL_BIT (LS_COLL_ALL_REDUCE)

const LsCollAlgorithm ls_coll_nvls = { .name = "nvls",
                                       .kinds = KINDS,
                                       .automatic = KINDS,
                                       .applies = applies,
                                       .wants = "more than 2 ranks, of one node, and NVSwitches that compute",
                                       .only_simple = true,
                                       .plan = plan,
                                       .script = script };

/* --- several --- */

static bool
tree_applies (const LsCollCall *call)
{
  return call->nccl->nvls_bus > 0 && ls_coll_has_nvswitch (call) && call->seats.n_hosts > 1
      && call->seats.per_host > 2;
}

/* Each message takes the time of a chunk. */
static double
tree_rate_cap (const LsScript *s, uint32_t from, uint32_t to, uint32_t n)
{
  const NvlsTree *x = s->data;
  return s->rate_switch * n / (x->k * x->trees.n_trees);
}

static void
tree_script (const LsCollCall *call, LsScript *s)
{
  script_of (call, false, s);
  double alg = call->bytes > 0 ? (double) call->bytes / ls_nccl_seconds (call, LS_TUNE_NVLS_TREE)
                               : ls_coll_bus (call);
  double n_flows = channels_used (call);
  s->base = call->nccl->base_nvls;
  ls_script_pipeline (call, s, ls_nccl_latency (call, LS_TUNE_NVLS_TREE) - s->base);
  s->flows = channels_used (call) * LS_COEF_ONE;
  /* In a round a GPU gives the switch a chunk, and another's part of its head; on each
   * edge of a tree goes its part of another. All of it takes as long. */
  s->rate_switch = s->rate_intra = s->rate_inter = alg / n_flows;
  s->rate_cap = tree_rate_cap;
}

static void
tree_plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  script_of (call, true, &s);
  ls_plan_as_one (call, &s, channels_used (call), ls_nccl_latency (call, LS_TUNE_NVLS_TREE),
                  ls_nccl_seconds (call, LS_TUNE_NVLS_TREE), ret_plan);
}

const LsCollAlgorithm ls_coll_nvls_tree
    = { .name = "nvls-tree",
        .kinds = KINDS,
        .automatic = KINDS,
        .applies = tree_applies,
        .wants = "two nodes or more, as many ranks on each, more than 2, and NVSwitches that compute",
        .only_simple = true,
        .alike = ls_double_tree_alike,
        .plan = tree_plan,
        .script = tree_script };
