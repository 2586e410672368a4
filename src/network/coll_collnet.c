/* network/coll_collnet.c — all-reduce in the switches between hosts (SHARP, NCCL's
 * CollNetDirect).
 *
 * Problem. k members on each of N hosts sum S bytes; leaf and spine switches can add.
 *
 * Model. Inside a host member l gets the host's sum of the l-th k-th by direct exchange
 * and sends it to its leaf. A leaf adds up what comes from below; where the members l sit
 * at several leaves, these send their sums on to the spines, which add up and answer.
 * Leaves copy the result to their members, and members to each other. All of it is
 * pipelined, chunk by chunk.
 *
 *     a member's links inside the host    2 (k-1)/k S out and in
 *     a member's NIC                      S/k out and in, whatever N
 *     a leaf to the spines, and back      S/k for each l with members elsewhere
 *
 * Rates are those of NCCL's rings, inside a host and for each member's share of the NICs.
 *
 *     latency = base + 2 (min (1, k-1) hop_intra + (k-1) 0.4 us) + hop_inter
 *
 * Worked example: 1 GiB over 4 hosts of 8, 240 GB/s inside, 45 GB/s per NIC, 8 NICs:
 * inside 2 * 7/8 * 1.074e9 / 240e9 = 7.83 ms is longer than across, 1.074e9 / 360e9.
 *
 * Deviations. Spines are one switch, as ideal spreading makes them. Streaming aggregation
 * in the switches is as fast as their ports and knows no limit on the number of trees.
 * NCCL's factors for fewer channels than members are left out.
 *
 * Reference: Graham et al., Scalable hierarchical aggregation protocol (SHARP), COMHPC
 * 2016; latency: NCCL 2.30.7 src/graph/tuning.cc. */
#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

#define PEER_PS (400 * LS_NS)

/* Stages of a chunk. */
enum { SCATTER, TO_LEAF, TO_SPINE, FROM_SPINE, FROM_LEAF, GATHER, N_STAGES };

/* Places: members, leaves (one for each rail and switch), and a spine for each rail. */
typedef struct {
  uint32_t rail;
  uint32_t seat; /* of a member below */
} Leaf;

typedef struct {
  const LsCollCall *call;
  uint32_t k, n_leaves;
  const uint32_t *leaf_of; /* [n] of a seat                     */
  const Leaf *leaves;
  const uint32_t *n_leaves_of; /* [k] of a rail                     */
} Collnet;

static const LsTrunk *
trunk_of (const Collnet *x, const LsHop *hop)
{
  return ls_cluster_trunk (x->call->cluster, hop->trunk);
}

/* Same place on another host. */
static uint32_t
far_seat (const Collnet *x, uint32_t seat)
{
  return (seat + x->k) % x->call->n;
}

/* Keeps hops first .. end - 1. */
static void
keep_hops (const LsCluster *c, LsRoute *r, uint32_t first, uint32_t end)
{
  r->latency = 0;
  for (uint32_t i = first; i < end; i++) {
    r->hop[i - first] = r->hop[i];
    r->latency += ls_cluster_trunk (c, r->hop[i].trunk)->latency;
  }
  r->n_hops = end - first;
}

/* First hop from `begin` on that ends at such a vertex, + 1; n_hops + 1 if none does. */
static uint32_t
after_hop_to (const Collnet *x, const LsRoute *r, uint32_t begin, LsNodeKind kind)
{
  for (uint32_t i = begin; i < r->n_hops; i++)
    if (trunk_of (x, &r->hop[i])->to == kind)
      return i + 1;
  return r->n_hops + 1;
}

static void
whole_route (const Collnet *x, uint32_t from, uint32_t to, LsRoute *ret_route)
{
  ls_route (x->call->cluster, x->call->seats.sorted[from], x->call->seats.sorted[to], 0, ret_route);
}

static void
route_to_leaf (const Collnet *x, uint32_t seat, LsRoute *ret_route)
{
  whole_route (x, seat, far_seat (x, seat), ret_route);
  keep_hops (x->call->cluster, ret_route, 0, after_hop_to (x, ret_route, 0, LS_NODE_LEAF));
}

static void
route_from_leaf (const Collnet *x, uint32_t seat, LsRoute *ret_route)
{
  whole_route (x, far_seat (x, seat), seat, ret_route);
  uint32_t last = 0;
  for (uint32_t i = 0; i < ret_route->n_hops; i++)
    if (trunk_of (x, &ret_route->hop[i])->from == LS_NODE_LEAF)
      last = i;
  keep_hops (x->call->cluster, ret_route, last, ret_route->n_hops);
}

/* A seat of the same rail below another leaf. */
static uint32_t
other_leaf_seat (const Collnet *x, uint32_t leaf)
{
  for (uint32_t i = 0; i < x->n_leaves; i++)
    if (i != leaf && x->leaves[i].rail == x->leaves[leaf].rail)
      return x->leaves[i].seat;
  g_assert_not_reached ();
}

static void
route (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel, LsRoute *ret_route)
{
  const Collnet *x = s->data;
  uint32_t spines = s->n + x->n_leaves;
  if (from < s->n && to < s->n)
    ls_route (s->cluster, s->gpus[from], s->gpus[to], channel, ret_route);
  else if (from < s->n)
    route_to_leaf (x, x->call->seats.seat[from], ret_route);
  else if (to < s->n)
    route_from_leaf (x, x->call->seats.seat[to], ret_route);
  else {
    bool is_up = to >= spines;
    uint32_t leaf = (is_up ? from : to) - s->n, own = x->leaves[leaf].seat, other = other_leaf_seat (x, leaf);
    whole_route (x, is_up ? own : other, is_up ? other : own, ret_route);
    uint32_t first = after_hop_to (x, ret_route, 0, is_up ? LS_NODE_LEAF : LS_NODE_SPINE);
    keep_hops (s->cluster, ret_route, first,
               after_hop_to (x, ret_route, first, is_up ? LS_NODE_SPINE : LS_NODE_LEAF));
  }
}

/* --- who sits at which leaf --- */

static void
find_leaves (LsArena *arena, Collnet *x)
{
  uint32_t n = x->call->n, *leaf_of = ls_arena_new_array (arena, uint32_t, n);
  uint32_t *count = ls_arena_new_array (arena, uint32_t, x->k);
  Leaf *leaves = ls_arena_new_array (arena, Leaf, n);
  g_autofree uint32_t *edge = g_new (uint32_t, n);
  for (uint32_t rail = 0; rail < x->k; rail++) {
    uint32_t first = x->n_leaves;
    for (uint32_t seat = rail; seat < n; seat += x->k) {
      LsRoute r;
      route_to_leaf (x, seat, &r);
      uint32_t at = ls_cluster_edge_of_trunk (x->call->cluster, r.hop[r.n_hops - 1].trunk), i = first;
      while (i < x->n_leaves && edge[i] != at)
        i++;
      if (i == x->n_leaves) {
        leaves[x->n_leaves++] = (Leaf) { .rail = rail, .seat = seat };
        edge[i] = at;
        count[rail]++;
      }
      leaf_of[seat] = i;
    }
  }
  x->leaf_of = leaf_of;
  x->leaves = leaves;
  x->n_leaves_of = count;
}

/* --- the script --- */

static void
edges_of_member (const LsScript *s, uint32_t place, LsEdges *ret)
{
  const Collnet *x = s->data;
  uint32_t seat = x->call->seats.seat[place], h = seat / x->k, l = seat % x->k;
  for (uint32_t i = 1; i < x->k; i++) {
    uint32_t peer = (l + i) % x->k, to = x->call->seats.member[h * x->k + peer];
    ls_edges_add (
        ret, (LsEdge) { .to = to, .out = SCATTER, .in = SCATTER, .first = peer, .n = 1, .reduces = true });
    ls_edges_add (ret, (LsEdge) { .to = to, .out = GATHER, .in = GATHER, .first = l, .n = 1 });
  }
  ls_edges_add (ret,
                (LsEdge) { .to = s->n + x->leaf_of[seat],
                           .out = TO_LEAF,
                           .in = FROM_LEAF,
                           .first = l,
                           .n = 1,
                           .reduces = true });
}

static void
edges_of_leaf (const LsScript *s, uint32_t leaf, LsEdges *ret)
{
  const Collnet *x = s->data;
  uint32_t rail = x->leaves[leaf].rail;
  if (x->n_leaves_of[rail] > 1)
    ls_edges_add (ret,
                  (LsEdge) { .to = s->n + x->n_leaves + rail,
                             .out = TO_SPINE,
                             .in = FROM_SPINE,
                             .first = rail,
                             .n = 1,
                             .reduces = true });
  for (uint32_t seat = rail; seat < s->n; seat += x->k)
    if (x->leaf_of[seat] == leaf)
      ls_edges_add (
          ret,
          (LsEdge) {
              .to = x->call->seats.member[seat], .out = FROM_LEAF, .in = TO_LEAF, .first = rail, .n = 1 });
}

static void
edges (const LsScript *s, uint32_t place, LsEdges *ret)
{
  const Collnet *x = s->data;
  uint32_t n_before = s->n + x->n_leaves;
  if (place < s->n)
    edges_of_member (s, place, ret);
  else if (place < n_before)
    edges_of_leaf (s, place - s->n, ret);
  for (uint32_t i = 0; place >= n_before && x->n_leaves_of[place - n_before] > 1 && i < x->n_leaves; i++)
    if (x->leaves[i].rail == place - n_before)
      ls_edges_add (
          ret,
          (LsEdge) { .to = s->n + i, .out = FROM_SPINE, .in = TO_SPINE, .first = place - n_before, .n = 1 });
}

static void
script_of (const LsCollCall *call, uint32_t n_chunks, LsScript *s)
{
  Collnet *x = ls_arena_new_array (call->arena, Collnet, 1);
  const LsNccl *nccl = call->nccl;
  uint32_t n_channels = ls_coll_channels (call);
  x->call = call;
  x->k = call->seats.per_host;
  find_leaves (call->arena, x);
  ls_script_cut (call, s, n_chunks * x->k);
  ls_script_pipe (s, n_chunks, x->k, N_STAGES, edges);
  s->data = x;
  s->n_switches = x->n_leaves + x->k;
  s->max_sends = MAX (2 * x->k, MAX (call->seats.n_hosts, x->n_leaves) + 1);
  s->route = route;
  s->base = ls_nccl_base (nccl, call->kind);
  s->rate_intra = nccl->ring_bus_intra / n_channels;
  s->rate_inter = s->rate_switch = call->seats.min_nics * nccl->ring_bus_per_nic / x->k / n_channels;
  s->flows = n_channels * LS_COEF_ONE;
}

/* Without base. */
static LsTime
latency (const LsCollCall *call)
{
  uint32_t k = call->seats.per_host;
  return 2 * ((k > 1 ? call->nccl->hop_intra : 0) + (LsTime) (k - 1) * PEER_PS) + call->nccl->hop_inter;
}

static void
script (const LsCollCall *call, LsScript *s)
{
  uint64_t n_messages = 2 * (uint64_t) call->n * call->seats.per_host;
  script_of (call, ls_coll_chunks (call, ls_coll_channels (call), N_STAGES, n_messages), s);
  /* Of a member's 2 (k - 1) messages inside its host each has its part of the channels;
   * the one to its leaf must not be slower for that. */
  uint32_t at_once = MAX (1, 2 * (call->seats.per_host - 1));
  s->flows /= at_once;
  s->rate_switch *= at_once;
  ls_script_pipeline (call, s, latency (call));
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  script_of (call, 1, &s);
  ls_plan_as_one (call, &s, ls_coll_channels (call), s.base + latency (call), 0, ret_plan);
}

/* The way between hosts begins at a leaf and ends at one, and knows nothing above spines. */
static bool
applies (const LsCollCall *call)
{
  bool has_spines = call->cluster->spec.fabric != LS_FABRIC_DRAGONFLY;
  if (!has_spines || call->seats.n_hosts < 2 || call->seats.per_host == 0)
    return false;
  Collnet x = { .call = call, .k = call->seats.per_host };
  LsRoute r;
  whole_route (&x, 0, call->n - x.k, &r);
  uint32_t first = after_hop_to (&x, &r, 0, LS_NODE_LEAF);
  for (uint32_t i = first; i < r.n_hops; i++) {
    uint8_t from = trunk_of (&x, &r.hop[i])->from, to = trunk_of (&x, &r.hop[i])->to;
    if (from == LS_NODE_SPINE && to >= LS_NODE_SPINE)
      return false;
  }
  return first <= r.n_hops;
}

const LsCollAlgorithm ls_coll_collnet
    = { .name = "collnet",
        .kinds = LS_COLL_BIT (LS_COLL_ALL_REDUCE),
        .applies = applies,
        .wants = "two nodes or more, as many ranks on each, below one layer of spines",
        .only_simple = true,
        .plan = plan,
        .script = script };
