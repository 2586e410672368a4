/* network/coll_ring.c — ring all-reduce, all-gather, reduce-scatter, broadcast, reduce.
 *
 * Problem. n members, k of them on each of N hosts, move an array of S bytes
 * over C channels. A channel is one ring through all members, driven by one
 * thread block per GPU; it carries S/C of the array.
 *
 * Model. Every edge of a ring carries w S / C bytes, w = ls_coll_wire_factor();
 * that is the demand of a flow. The rings of different channels enter a host at
 * different members: channel c at member c mod k, through the NIC of that
 * member, and it visits the others over NVLink (or PCIe). It leaves by the same NIC, and
 * so stays on its rail. Where PXN cannot take the data there (NCCL before 2.12, switched off, no
 * NVLink) it leaves by the same NIC only if each member has another one as near to its NIC;
 * else by the NIC of the last member, and so over the spines to another rail: groups with
 * one GPU at each PCIe switch, as those of data parallelism with tp 2 or 4. Summed over channels,
 *
 *     inside one host    each edge of the ring of members   C       flows
 *     across hosts       each edge inside a host            C (k-1)/k
 *                        each member's NIC, in and out      C / k
 *     HBM of a member    C * traffic per wire byte
 *
 * Where NVLinks join GPUs straight, GPU order would pile all channels on its single links:
 * NCCL deals them to rings that share no link (below), and so do we. Inside a host
 * channel c takes ring c mod R of R; across hosts ring c mod R of each host, from the member
 * at which it enters. Without such rings: by ascending GPU.
 *
 * NCCL gives a channel at least 32 KiB, so small messages use fewer of them; these
 * reach the bus bandwidth all the same (measured times are flat from 16 to 512
 * KiB). Across hosts they are rounded up until C/k is a whole number of 2^-20
 * flows: all sums are exact and members alike.
 *
 * Rate. A channel never exceeds bus / C. bus is what NCCL's graph search gives
 * the ring inside a node; across nodes also what NCCL gets through the NICs used.
 * Protocols, the last copy of a chunk (drain) and the filling of the pipeline (R) keep it
 * below (nccl.c); with Simple
 *
 *     time alone = latency + W / bus * (1 + drain / sends + R / (W + R))
 *
 * Worked example: all-reduce of 1 GiB over the 8 GPUs of a node, bus 240 GB/s,
 * drain 0.5, R 0: W = 1.75 GiB, 1.879e9 / 240e9 * (1 + 0.5/14) = 8.109 ms. In a hybrid cube
 * of links of 22.75 GB/s, 12 channels on 6 rings: 6 * 22.75 = 136.5 GB/s at most.
 *
 * Deviations. Where a ring leaves by the NIC of the first member, the last one hands its data
 * there; here the first one's own PCIe link carries it. From NCCL 2.20.3 on rings
 * without PXN swap NICs from host to host and stay on rails; not here. Where only some members
 * have another one near their NIC, NCCL closes the rings of those. Ramp and drain limit the rate,
 * so they vanish behind a slower link. Across hosts the rings of a mesh have unequal shares
 * where there are fewer channels than a whole round of entries and rings. Rings of
 * communicators with different numbers of members per host pair them by channel number.
 *
 * Reference: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms for
 * clusters of workstations, JPDC 69 (2009); NCCL 2.30.7 src/device/all_reduce.h,
 * src/graph/tuning.cc. Rails: release notes of NCCL 2.20.3 (alternating rings); S. Jeaugey in
 * NVIDIA/nccl issues 1933 (one NIC in and out keeps to rails) and 2193 (PXN closes rings). */
#include "network/algorithm.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/gcd.h"
#include "core/maxmin.h" /* LS_COEF_ONE */

/* ---- rings in a mesh of NVLinks ---- */

/* Rings over links straight between GPUs.
 *
 * Problem. In a mesh some pairs of GPUs are joined by one link, some by two, some by none.
 * Rings that share a link share its rate, so NCCL looks for rings that share none.
 *
 * Model. Rings through all n GPUs, each over direct links only, no link and direction in two
 * rings, as many as a search finds: ring after ring, GPU after GPU, lowest numbers first, back
 * where it gets no further. It ends where a GPU has no link left that another ring could use,
 * or after MAX_STEPS; the most rings seen count. Same links, same rings.
 *
 * Worked example: the hybrid cube has 6 links per GPU and 6 rings; its GPUs 0, 1 and 2, with
 * 1, 1 and 2 links, have two: 0 1 2 and 0 2 1.
 *
 * Deviation. NCCL also lets a ring pass through another GPU (NVB) or over PCIe where that
 * is faster; here there are rings of direct links, or none.
 *
 * Reference: NCCL 2.30.7 src/graph/search.cc (a depth-first search with a time-out). */

#define MAX_GPUS  16
#define MAX_RINGS 32
/* Bounds the search, to some 3 ms. Any GPUs of the hybrid cube take fewer than 1,000, 16 that
 * are all joined to one another 98,000. */
#define MAX_STEPS 100000

typedef struct {
  uint32_t n;                        /* GPUs */
  uint32_t left[MAX_GPUS][MAX_GPUS]; /* links that no ring has */
  uint32_t n_rings, n_best, n_steps;
  uint32_t n_most; /* more there cannot be */
  uint8_t ring[MAX_RINGS + 1][MAX_GPUS], best[MAX_RINGS][MAX_GPUS];
} Search;

/* Each ring takes a link into and out of every GPU. */
static uint32_t
at_most_more (const Search *s)
{
  uint32_t most = MAX_RINGS - s->n_rings;
  for (uint32_t i = 0; i < s->n; i++) {
    uint32_t out = 0, in = 0;
    for (uint32_t j = 0; j < s->n; j++) {
      out += s->left[i][j];
      in += s->left[j][i];
    }
    most = MIN (most, MIN (out, in));
  }
  return most;
}

static void extend (Search *s, uint32_t depth, uint32_t visited);

static void
next_ring (Search *s)
{
  if (s->n_rings > s->n_best) {
    s->n_best = s->n_rings;
    memcpy (s->best, s->ring, sizeof s->best);
  }
  if (s->n_rings + at_most_more (s) > s->n_best)
    extend (s, 1, 1);
}

/* Rings come in ascending order: any other is the same set.
   Ring n_rings has `depth` GPUs, of which 0 is the first. */
static void
extend (Search *s, uint32_t depth, uint32_t visited)
{
  uint8_t *ring = s->ring[s->n_rings];
  uint32_t last = ring[depth - 1];
  if (depth == s->n) {
    if (s->left[last][0] == 0)
      return;
    s->left[last][0]--;
    s->n_rings++;
    next_ring (s);
    s->n_rings--;
    s->left[last][0]++;
    return;
  }
  for (uint32_t to = 1; to < s->n && s->n_best < s->n_most && s->n_steps < MAX_STEPS; to++) {
    ring[depth] = (uint8_t) to;
    if (s->left[last][to] == 0 || (visited & 1u << to)
        || (s->n_rings > 0 && memcmp (ring, s->ring[s->n_rings - 1], depth + 1) < 0))
      continue;
    s->n_steps++;
    s->left[last][to]--;
    extend (s, depth + 1, visited | 1u << to);
    s->left[last][to]++;
  }
}

LsMeshRings
ls_mesh_rings (const uint32_t *links, uint32_t n_gpus, LsArena *arena)
{
  LsMeshRings rings = { .n_gpus = n_gpus };
  if (n_gpus < 2 || n_gpus > MAX_GPUS)
    return rings;
  Search s = { .n = n_gpus };
  for (uint32_t i = 0; i < n_gpus * n_gpus; i++)
    s.left[i / n_gpus][i % n_gpus] = links[i];
  s.n_most = at_most_more (&s);
  next_ring (&s);
  rings.n = s.n_best;
  rings.gpu_at = ls_arena_new_array (arena, uint32_t, rings.n * n_gpus);
  rings.place_of = ls_arena_new_array (arena, uint32_t, rings.n * n_gpus);
  for (uint32_t r = 0; r < rings.n; r++)
    for (uint32_t place = 0; place < n_gpus; place++) {
      rings.gpu_at[r * n_gpus + place] = s.best[r][place];
      rings.place_of[r * n_gpus + s.best[r][place]] = place;
    }
  return rings;
}

/* The order in which each channel visits the members of the hosts. */
typedef struct {
  const LsCollCall *call;
  uint32_t n;                 /* channels that differ; the c-th is like c mod n */
  const LsMeshRings *mesh;    /* [n_hosts]; NULL, or no ring: by ascending GPU  */
  const bool *leaves_by_last; /* [loaded hosts]: the last member's NIC, not the first's; NULL: nowhere */
} Orders;

static uint32_t *
links_of (const LsCollCall *call, const LsCollHost *host)
{
  uint32_t *links = ls_arena_new_array (call->arena, uint32_t, host->n * host->n);
  for (uint32_t i = 0; i < host->n * host->n; i++)
    links[i] = ls_gpu_links (call->cluster, host->gpus[i / host->n], host->gpus[i % host->n]);
  return links;
}

static const LsMeshRings *
mesh_of (const LsCollCall *call)
{
  if (!ls_cluster_has_gpu_links (call->cluster))
    return NULL;
  LsMeshRings *mesh = ls_arena_new_array (call->arena, LsMeshRings, call->seats.n_hosts);
  const uint32_t *before = NULL;
  for (uint32_t h = 0; h < call->seats.n_hosts; h++) {
    uint32_t n = call->seats.hosts[h].n;
    const uint32_t *links = links_of (call, &call->seats.hosts[h]);
    bool is_alike
        = before && call->seats.hosts[h - 1].n == n && memcmp (links, before, n * n * sizeof *links) == 0;
    mesh[h] = is_alike ? mesh[h - 1] : ls_mesh_rings (links, n, call->arena);
    before = links;
  }
  return mesh;
}

/* Whether every member of the host has another one as near to its NIC. */
static bool
has_pairs (const LsCollCall *call, const LsCollHost *host)
{
  for (uint32_t i = 0; i < host->n; i++) {
    bool has_other = false;
    for (uint32_t j = 0; j < host->n && !has_other; j++)
      has_other = i != j && ls_gpu_is_as_near_to_nic_of (call->cluster, host->gpus[i], host->gpus[j]);
    if (!has_other)
      return false;
  }
  return true;
}

/* Whether PXN takes what the last member of each ring sends to the rail of the first. */
static bool
has_pxn (const LsCollCall *call, const LsCollHost *host, const LsCollHost *to)
{
  const LsCluster *c = call->cluster;
  for (uint32_t i = 0; i < host->n; i++) {
    uint32_t first = to->gpus[(i + 1) % host->n % to->n], sender = ls_route_proxy (c, host->gpus[i], first);
    if (ls_nic_of_gpu (c, sender) % c->spec.network.rails != ls_nic_of_gpu (c, first) % c->spec.network.rails)
      return false;
  }
  return true;
}

static const bool *
leaves_by_last (const LsCollCall *call)
{
  if (call->cluster->spec.network.rails < 2 || call->seats.n_hosts < 2)
    return NULL;
  uint32_t n = ls_coll_loaded_hosts (call);
  bool *by_last = ls_arena_new_array (call->arena, bool, n);
  for (uint32_t h = 0; h < n; h++) {
    const LsCollHost *host = &call->seats.hosts[h];
    by_last[h]
        = !has_pxn (call, host, &call->seats.hosts[(h + 1) % call->seats.n_hosts]) && !has_pairs (call, host);
  }
  return by_last;
}

/* Across hosts, channels that differ in where they enter or in their ring of a mesh; where there are too few
 * for all of these, as many as enter at different members. */
static uint32_t
n_across (const LsCollCall *call, const LsMeshRings *mesh)
{
  uint32_t n = call->seats.n_entries, all = n;
  for (uint32_t h = 0; mesh && h < call->seats.n_hosts; h++)
    if (mesh[h].n > 0)
      all = all / ls_gcd (all, mesh[h].n) * mesh[h].n;
  return all <= ls_coll_max_channels (call) ? all : n;
}

static Orders
orders_of (const LsCollCall *call)
{
  Orders o = { .call = call, .mesh = mesh_of (call), .leaves_by_last = leaves_by_last (call) };
  o.n = call->seats.n_hosts == 1 && o.mesh && o.mesh->n > 0 ? o.mesh->n : n_across (call, o.mesh);
  return o;
}

static const LsMeshRings *
rings_of_host (const Orders *o, uint32_t h)
{
  return o->mesh && o->mesh[h].n > 0 ? &o->mesh[h] : NULL;
}

/* Seat of the x-th member of host h on this channel, which enters at member channel mod k; and
 * x of a seat. */
static uint32_t
seat_at (const Orders *o, uint32_t h, uint32_t channel, uint32_t x)
{
  const LsMeshRings *rings = rings_of_host (o, h);
  if (!rings)
    return ls_coll_seat_in_order (o->call, h, channel, x);
  uint32_t k = rings->n_gpus, ring = channel % rings->n * k;
  uint32_t entry = rings->place_of[ring + channel % k];
  return (uint32_t) (o->call->seats.hosts[h].gpus - o->call->seats.sorted)
      + rings->gpu_at[ring + (entry + x) % k];
}

/* The seat through whose NIC a ring of this channel leaves host h. */
static uint32_t
seat_that_sends (const Orders *o, uint32_t h, uint32_t channel)
{
  return seat_at (o, h, channel,
                  o->leaves_by_last && o->leaves_by_last[h] ? o->call->seats.hosts[h].n - 1 : 0);
}

static uint32_t
order_of_seat (const Orders *o, uint32_t seat, uint32_t channel)
{
  const LsMeshRings *rings = rings_of_host (o, o->call->seats.host_of[seat]);
  if (!rings)
    return ls_coll_order_of_seat (o->call, seat, channel);
  uint32_t k = rings->n_gpus, ring = channel % rings->n * k;
  uint32_t local
      = seat - (uint32_t) (o->call->seats.hosts[o->call->seats.host_of[seat]].gpus - o->call->seats.sorted);
  return (rings->place_of[ring + local] + k - rings->place_of[ring + channel % k]) % k;
}

/* Odd part of the number of rings that differ: what the number of flows must be
 * divisible by, as powers of two fit into 2^-20. */
static uint32_t
divisor_of_flows (const Orders *o)
{
  return o->n >> g_bit_nth_lsf (o->n, -1);
}

static uint32_t
round_up (uint32_t value, uint32_t multiple)
{
  return (value + multiple - 1) / multiple * multiple;
}

/* No ring has data to move into the root of a broadcast, or out of that of a reduction. */
static bool
is_idle (const LsCollCall *call, uint32_t from, uint32_t to)
{
  uint32_t root = call->gpus[call->root];
  return (call->kind == LS_COLL_BROADCAST && to == root) || (call->kind == LS_COLL_REDUCE && from == root);
}

/* From one seat to another of the same or the next host. */
static void
add_edge (const LsCollCall *call, uint32_t from, uint32_t to, uint64_t flows, LsLoadList *loads)
{
  if (!is_idle (call, call->seats.sorted[from], call->seats.sorted[to]))
    ls_load_list_add_route (loads, call->seats.sorted[from], call->seats.sorted[to], flows);
}

/* The rings of members inside host h; across hosts every channel leaves out the edge at
 * which it comes and goes: by ascending GPU another one each. */
static void
add_inside (const Orders *o, uint32_t h, uint64_t flows, LsLoadList *loads)
{
  const LsCollCall *call = o->call;
  uint32_t k = call->seats.hosts[h].n, n_edges = call->seats.n_hosts == 1 ? k : k - 1;
  uint64_t of_edge = call->seats.n_hosts == 1 ? flows : flows / k * n_edges;
  if (!rings_of_host (o, h)) {
    for (uint32_t x = 0; x < k && k > 1; x++)
      add_edge (call, seat_at (o, h, 0, x), seat_at (o, h, 0, (x + 1) % k), of_edge, loads);
    return;
  }
  for (uint32_t c = 0; c < o->n; c++)
    for (uint32_t x = 0; x < n_edges; x++)
      add_edge (call, seat_at (o, h, c, x), seat_at (o, h, c, (x + 1) % k), flows / o->n, loads);
}

static void
add_between (const Orders *o, uint32_t h, uint64_t flows, LsLoadList *loads)
{
  const LsCollCall *call = o->call;
  uint32_t next = (h + 1) % call->seats.n_hosts, k_from = call->seats.hosts[h].n,
           k_to = call->seats.hosts[next].n;
  uint32_t n_pairs = o->mesh ? o->n : k_from / ls_gcd (k_from, k_to) * k_to;
  for (uint32_t c = 0; c < n_pairs; c++) {
    uint32_t last = call->seats.sorted[seat_at (o, h, c, k_from - 1)];
    uint32_t from = call->seats.sorted[seat_that_sends (o, h, c)],
             to = call->seats.sorted[seat_at (o, next, c, 0)];
    if (!is_idle (call, last, to))
      ls_load_list_add_route (loads, from, to, flows / n_pairs);
  }
}

static void
add_loads (const Orders *o, uint32_t n_flows, LsPhase *phase)
{
  const LsCollCall *call = o->call;
  uint64_t flows = n_flows * LS_COEF_ONE;
  uint64_t hbm = (uint64_t) llround ((double) flows * ls_nccl_hbm_per_wire (call->nccl, call->kind));
  LsLoadList loads = ls_load_list_new (call->cluster);
  for (uint32_t h = 0; h < ls_coll_loaded_hosts (call); h++) {
    add_inside (o, h, flows, &loads);
    if (call->seats.n_hosts > 1)
      add_between (o, h, flows, &loads);
  }
  for (uint32_t i = 0; i < ls_coll_loaded_members (call); i++)
    ls_load_list_add (&loads, ls_cluster_hbm_resource (call->cluster, call->seats.sorted[i]), hbm);
  ls_load_list_finish (&loads, call->arena, phase);
  if (call->period)
    ls_coll_period_fold (call->period, call->cluster, call->arena, phase);
}

/* Bytes/s at most. */
static double
rate_of_flow (const LsCollCall *call, uint32_t n_flows)
{
  double wire = ls_coll_wire_factor (call->kind, call->n) * (double) call->bytes;
  double s = ls_nccl_seconds (call, LS_TUNE_RING);
  return s > 0 ? wire / n_flows / s : ls_coll_bus (call) / n_flows;
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  Orders o = orders_of (call);
  uint32_t n_used = ls_coll_channels (call);
  uint32_t n_flows = round_up (n_used, divisor_of_flows (&o));
  double wire = ls_coll_wire_factor (call->kind, call->n) * (double) call->bytes;

  LsPhase *phase = ls_plan_phases (call, n_used, 1, ret_plan);
  phase->latency = ls_nccl_latency (call, LS_TUNE_RING);
  phase->demand_bytes = wire / n_flows;
  phase->rate_cap = rate_of_flow (call, n_flows);
  if (call->bytes > 0 && !call->asked.is_tiny)
    add_loads (&o, n_flows, phase);
}

/* --- message by message -------------------------------------------------------
 *
 * n_rings rings that enter the hosts at different members, each with its share of every
 * part: part i has n_rings blocks. In ring e, position p of the ring starts with part p
 * (all-gather), or with its contribution to all (reduce-scatter); parts go around one
 * position a round. Broadcast and reduce are chains of n - 1 edges, through which the
 * share of a ring goes in chunks, one behind the other. */

typedef struct {
  const LsCollCall *call;
  Orders orders;
  uint32_t n_rings;
} Rings;

static uint32_t
position_of (const Rings *x, uint32_t ring, uint32_t member)
{
  const LsCollCall *call = x->call;
  uint32_t seat = call->seats.seat[member];
  uint32_t first = (uint32_t) (call->seats.hosts[call->seats.host_of[seat]].gpus - call->seats.sorted);
  return first + order_of_seat (&x->orders, seat, ring);
}

static uint32_t
member_at (const Rings *x, uint32_t ring, uint32_t position)
{
  const LsCollCall *call = x->call;
  uint32_t h = call->seats.host_of[position];
  uint32_t first = (uint32_t) (call->seats.hosts[h].gpus - call->seats.sorted);
  return call->seats.member[seat_at (&x->orders, h, ring, position - first)];
}

/* Part that position p sends in this round, as the position that it belongs to. */
static uint32_t
part_sent (const LsScript *s, uint32_t p, uint32_t round)
{
  uint32_t n = s->n;
  if (s->kind == LS_COLL_ALL_GATHER)
    return (p + n - round) % n;
  if (round < n - 1)
    return (p + 2 * n - 1 - round) % n;
  return (p + n - (round - (n - 1))) % n;
}

static uint32_t
sends_of_parts (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const Rings *x = s->data;
  bool reduces = s->kind != LS_COLL_ALL_GATHER && round < s->n - 1;
  for (uint32_t e = 0; e < x->n_rings; e++) {
    uint32_t p = position_of (x, e, place);
    uint32_t owner = member_at (x, e, part_sent (s, p, round));
    ret[e] = (LsSend) {
      .to = member_at (x, e, (p + 1) % s->n), .first = owner * x->n_rings + e, .n = 1, .reduces = reduces
    };
  }
  return x->n_rings;
}

static void
edges_of_chain (const LsScript *s, uint32_t place, LsEdges *ret)
{
  const Rings *x = s->data;
  for (uint32_t e = 0; e < x->n_rings; e++) {
    /* Place in the chain of a ring: a broadcast starts at its root, a reduction ends there. */
    uint32_t p = position_of (x, e, place), root = position_of (x, e, s->root),
             link = (p + 2 * s->n - (s->kind == LS_COLL_BROADCAST ? root : root + 1)) % s->n;
    ls_edges_add (ret,
                  (LsEdge) { .to = member_at (x, e, (p + 1) % s->n),
                             .out = link == s->n - 1 ? LS_NEVER : link,
                             .in = link == 0 ? LS_NEVER : link - 1,
                             .first = e * s->n_chunks,
                             .n = 1,
                             .reduces = s->kind == LS_COLL_REDUCE });
  }
}

/* The seat that sends for the last of a ring, which leaves its host between these two. */
static uint32_t
sender_between (const Rings *x, uint32_t from, uint32_t to)
{
  const LsCollCall *call = x->call;
  uint32_t h = call->seats.host_of[from], next = call->seats.host_of[to], k = call->seats.hosts[h].n;
  uint32_t c = to - (uint32_t) (call->seats.hosts[next].gpus - call->seats.sorted);
  while (c < x->n_rings && seat_at (&x->orders, h, c, k - 1) != from)
    c += call->seats.hosts[next].n;
  g_assert (c < x->n_rings);
  return seat_that_sends (&x->orders, h, c);
}

/* As the flows of a plan. */
static void
route (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel, LsRoute *ret_route)
{
  const Rings *x = s->data;
  const LsCollCall *call = x->call;
  uint32_t seat = call->seats.seat[from];
  if (ls_coll_is_across (call, from, to))
    seat = sender_between (x, seat, call->seats.seat[to]);
  ls_route (s->cluster, call->seats.sorted[seat], s->gpus[to], channel, ret_route);
}

static void
script (const LsCollCall *call, LsScript *s)
{
  Rings *x = ls_arena_new_array (call->arena, Rings, 1);
  x->orders = orders_of (call);
  uint32_t n_flows = round_up (ls_coll_channels (call), divisor_of_flows (&x->orders));
  bool is_chain = call->kind == LS_COLL_BROADCAST || call->kind == LS_COLL_REDUCE;
  x->call = call;
  x->n_rings = x->orders.n;
  s->data = x;
  s->n_rounds = ls_nccl_ring_sends (call->kind, call->n);
  s->max_sends = x->n_rings;
  s->has_lanes = !is_chain;
  s->sends = sends_of_parts;
  s->n_receives = ls_script_receives_most;
  if (is_chain)
    ls_script_pipe (s, ls_coll_chunks (call, n_flows, call->n - 1, (uint64_t) x->n_rings * (call->n - 1)), 1,
                    call->n - 1, edges_of_chain);
  ls_script_cut (call, s, x->n_rings * (is_chain ? s->n_chunks : call->n));
  s->route = route;
  s->base = ls_nccl_start (call);
  s->hop_intra = ls_nccl_ring_hop_intra (call);
  s->hop_inter = ls_nccl_hop_inter (call, LS_TUNE_RING);
  s->rate_intra = s->rate_inter = rate_of_flow (call, n_flows);
  s->flows = n_flows * LS_COEF_ONE / x->n_rings;
  if (is_chain)
    ls_script_pipeline (call, s, ls_nccl_latency (call, LS_TUNE_RING) - s->base);
}

const LsCollAlgorithm ls_coll_ring = { .name = "ring",
                                       .kinds = LS_COLL_OF_RINGS,
                                       .automatic = LS_COLL_OF_RINGS,
                                       .turns = true,
                                       .plan = plan,
                                       .script = script };
