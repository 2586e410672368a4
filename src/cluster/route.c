/* cluster/route.c — a way = out of the sender's node, through the fabric, into the
 * receiver's node. */
#include "cluster/route.h"

#include <math.h>
#include <string.h>

#include "cluster/index.h"

uint32_t
ls_nic_of_gpu (const LsCluster *c, uint32_t gpu)
{
  const LsInterior *in = ls_interior_of (c, ls_cluster_host_of (c, gpu));
  const LsNodeFaults *faults = ls_faults_of_node (c, ls_cluster_host_of (c, gpu));
  uint32_t local = ls_cluster_local_of (c, gpu);
  return faults && faults->nic_of_gpu ? faults->nic_of_gpu[local] : in->kind->nic_of_gpu (in, local);
}

bool
ls_host_has_nvswitch (const LsCluster *c, uint32_t host)
{
  const LsNodeFaults *faults = ls_faults_of_node (c, host);
  return ls_interior_of (c, host)->has_nvswitch && !(faults && faults->has_nvlink_fault);
}

bool
ls_cluster_has_gpu_links (const LsCluster *c)
{
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&c->spec); k++)
    if (c->index->layouts[k].interior->has_gpu_links)
      return true;
  return false;
}

uint32_t
ls_gpu_links (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to)
{
  LsRoute r;
  if (!ls_cluster_has_gpu_links (c))
    return 0;
  ls_route (c, gpu_from, gpu_to, 0, &r);
  if (r.n_hops != 1)
    return 0;
  const LsTrunk *trunk = ls_cluster_trunk (c, r.hop[0].trunk);
  /* A degraded link is one, too. */
  return (uint32_t) ceil (trunk->capacity_bytes_per_s / ls_link_capacity (trunk->link) - 1e-9);
}

/* --- in a node --- */

/* Hops from `first` on are local to a node. Whether they all work; if not, they are off again. */
static bool
place_in (const LsCluster *c, LsRoute *r, uint32_t first, LsTime latency, uint32_t host, bool may_fail)
{
  uint32_t base = ls_first_trunk (c, host);
  bool works = true;
  for (uint32_t i = first; i < r->n_hops; i++) {
    r->hop[i].trunk += base;
    works &= !(may_fail && ls_trunk_is_failed (c, r->hop[i].trunk));
  }
  if (!works) {
    r->n_hops = first;
    r->latency = latency;
  }
  return works;
}

/* The way i to j of a table, if there are both. */
static bool
search (const LsWays *ways, uint32_t i, uint32_t j, LsRoute *r)
{
  if (!ways || ls_ways_length (ways, i, j) == LS_WAYS_NONE
      || ls_ways_n_hops (ways, i, j) > LS_ROUTE_MAX_INTERIOR / 2 - 4)
    return false;
  ls_ways_append (ways, i, j, r);
  return true;
}

bool
ls_route_leg (const LsCluster *c, uint32_t host, LsLeg leg, uint32_t from, uint32_t to, LsRoute *r)
{
  const LsNodeFaults *faults = ls_faults_of_node (c, host);
  const LsInterior *in = ls_interior_of (c, host);
  uint32_t first = r->n_hops;
  LsTime latency = r->latency;
  if (!faults || !search (faults->ways[leg], from, to, r))
    in->kind->way (in, leg, from, to, r);
  return place_in (c, r, first, latency, host, faults != NULL);
}

void
ls_route_turn_back (LsRoute *r, uint32_t first)
{
  for (uint32_t i = first, k = r->n_hops; i < k; i++) {
    LsHop other = r->hop[--k];
    other.trunk ^= 1;
    r->hop[k] = r->hop[i];
    r->hop[k].trunk ^= 1;
    r->hop[i] = other;
  }
}

bool
ls_gpu_is_as_near_to_nic_of (const LsCluster *c, uint32_t owner, uint32_t gpu)
{
  uint32_t host = ls_cluster_host_of (c, owner), nic = ls_nic_of_gpu (c, owner);
  LsRoute own = { .n_hops = 0 }, other = { .n_hops = 0 };
  return ls_route_leg (c, host, LS_LEG_TO_NIC, ls_cluster_local_of (c, owner), nic, &own)
      && ls_route_leg (c, host, LS_LEG_TO_NIC, ls_cluster_local_of (c, gpu), nic, &other)
      && other.n_hops <= own.n_hops;
}

/* --- between nodes --- */

/* The GPU of the sender's node that sends for it to this NIC; within the node. */
static uint32_t
proxy_of (const LsCluster *c, uint32_t host, uint32_t gpu, uint32_t nic_to)
{
  const LsNodeFaults *faults = ls_faults_of_node (c, host);
  const uint32_t *proxies = faults ? faults->proxies : ls_layout_of (c, host)->proxies;
  return proxies ? proxies[gpu * c->spec.network.rails + nic_to % c->spec.network.rails] : gpu;
}

uint32_t
ls_route_proxy (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to)
{
  uint32_t host = ls_cluster_host_of (c, gpu_from);
  if (host == ls_cluster_host_of (c, gpu_to))
    return gpu_from;
  return ls_cluster_gpu_at (c, host,
                            proxy_of (c, host, ls_cluster_local_of (c, gpu_from), ls_nic_of_gpu (c, gpu_to)));
}

static bool
between_nodes (const LsCluster *c, const LsRouteEnds *e, uint32_t host_from, uint32_t host_to, LsRoute *r)
{
  const LsFabric *fabric = c->index->fabric;
  uint32_t from = ls_cluster_local_of (c, e->gpu_from), sender = from;
  uint32_t nic_to = e->nic_to == LS_NIC_AUTO ? ls_nic_of_gpu (c, e->gpu_to) : e->nic_to;
  if (e->nic_from == LS_NIC_AUTO)
    sender = proxy_of (c, host_from, from, nic_to);
  LsFabricFlow flow = {
    .gpu_from = e->gpu_from,
    .gpu_to = e->gpu_to,
    .node_from = host_from,
    .nic_from
    = e->nic_from == LS_NIC_AUTO ? ls_nic_of_gpu (c, ls_cluster_gpu_at (c, host_from, sender)) : e->nic_from,
    .node_to = host_to,
    .nic_to = nic_to,
    .channel = e->channel,
  };
  bool works = (sender == from || ls_route_leg (c, host_from, LS_LEG_WITHIN, from, sender, r))
      && ls_route_leg (c, host_from, LS_LEG_TO_NIC, sender, flow.nic_from, r);
  ls_route_hop (r, ls_node_trunk (c, host_from, 2 * flow.nic_from),
                ls_cluster_node_spec (c, host_from)->nics.port.latency);
  fabric->kind->way (fabric, c, &flow, r);
  ls_route_hop (r, ls_node_trunk (c, host_to, 2 * nic_to + 1),
                ls_cluster_node_spec (c, host_to)->nics.port.latency);
  return works && ls_route_leg (c, host_to, LS_LEG_FROM_NIC, nic_to, ls_cluster_local_of (c, e->gpu_to), r);
}

void
ls_route_ends (const LsCluster *c, const LsRouteEnds *e, LsRoute *ret_route)
{
  LsRoute *r = ret_route;
  r->n_hops = 0;
  r->latency = 0;
  if (e->gpu_from == e->gpu_to)
    return;
  uint32_t host_from = ls_cluster_host_of (c, e->gpu_from), host_to = ls_cluster_host_of (c, e->gpu_to);
  bool works = host_from != host_to
      ? between_nodes (c, e, host_from, host_to, r)
      : ls_route_leg (c, host_from, LS_LEG_WITHIN, ls_cluster_local_of (c, e->gpu_from),
                      ls_cluster_local_of (c, e->gpu_to), r);
  g_assert (works); /* ls_faults_finish() has seen to it; of chosen NICs the caller */
}

void
ls_route (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t channel, LsRoute *ret_route)
{
  const LsRouteEnds ends = { gpu_from, gpu_to, LS_NIC_AUTO, LS_NIC_AUTO, channel };
  ls_route_ends (c, &ends, ret_route);
}

/* A way inside the GPU's node that ends or begins at the GPU. */
static void
route_local (const LsCluster *c, uint32_t gpu, LsLeg leg, LsRoute *ret_route)
{
  uint32_t host = ls_cluster_host_of (c, gpu), local = ls_cluster_local_of (c, gpu);
  const LsInterior *in = ls_interior_of (c, host);
  ret_route->n_hops = 0;
  ret_route->latency = 0;
  in->kind->way (in, leg, local, local, ret_route);
  place_in (c, ret_route, 0, 0, host, false);
}

void
ls_route_host_memory (const LsCluster *c, uint32_t gpu, bool is_to_host, LsRoute *ret_route)
{
  route_local (c, gpu, is_to_host ? LS_LEG_TO_MEMORY : LS_LEG_FROM_MEMORY, ret_route);
}

bool
ls_cluster_has_nvme (const LsCluster *c)
{
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&c->spec); k++)
    if (ls_cluster_spec_of_kind (&c->spec, k)->server.nvme_drives == 0
        || !c->index->layouts[k].interior->kind->reaches_nvme)
      return false;
  return true;
}

void
ls_route_nvme (const LsCluster *c, uint32_t gpu, bool is_to_nvme, LsRoute *ret_route)
{
  g_assert (ls_cluster_has_nvme (c));
  route_local (c, gpu, is_to_nvme ? LS_LEG_TO_NVME : LS_LEG_FROM_NVME, ret_route);
}

/* ---- proxy ---- */

/* A way must leave room for the other node (interior_list.c). */
#define MAX_HOPS (LS_ROUTE_MAX_INTERIOR / 2 - 4)

bool
ls_link_is_nvlink (const LsCluster *c, const LsLink *link)
{
  return ls_ways_is_nvlink (g_array_index (c->nodes, LsTopoNode, link->from).kind,
                            g_array_index (c->nodes, LsTopoNode, link->to).kind);
}

/* Trunks of the node's NVLinks, by local number; NULL if it has none. */
static bool *
find_nvlinks (const LsCluster *c, uint32_t host)
{
  const LsNodeLayout *layout = ls_layout_of (c, host);
  bool *is_nvlink = g_new0 (bool, layout->interior->n_trunks + 1), has_some = false;
  uint32_t first = ls_first_link (c, host);
  for (guint i = first; i < first + layout->interior_links; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    bool is = ls_link_is_nvlink (c, link);
    is_nvlink[link->trunk - ls_first_trunk_slot (c, host)] |= is;
    has_some |= is;
  }
  if (!has_some)
    g_clear_pointer (&is_nvlink, g_free);
  return is_nvlink;
}

static bool
nvlink_leads (const LsCluster *c, uint32_t host, const bool *is_nvlink, uint32_t from, uint32_t to)
{
  LsRoute r = { .n_hops = 0 };
  if (!ls_route_leg (c, host, LS_LEG_WITHIN, from, to, &r))
    return false;
  for (uint32_t i = 0; i < r.n_hops; i++)
    if (!is_nvlink[r.hop[i].trunk - ls_first_trunk (c, host)])
      return false;
  return ls_route_leg (c, host, LS_LEG_TO_NIC, to, ls_nic_of_gpu (c, ls_cluster_gpu_at (c, host, to)), &r)
      && r.n_hops <= MAX_HOPS;
}

static uint32_t
proxy_to (const LsCluster *c, uint32_t host, const bool *is_nvlink, uint32_t gpu, uint32_t rail)
{
  uint32_t n_gpus = ls_cluster_gpus_of (c, host), n = 0;
  g_autofree uint32_t *able = g_new (uint32_t, n_gpus);
  for (uint32_t g = 0; g < n_gpus; g++) {
    if (ls_nic_of_gpu (c, ls_cluster_gpu_at (c, host, g)) % c->spec.network.rails != rail)
      continue;
    if (g == gpu)
      return gpu;
    if (nvlink_leads (c, host, is_nvlink, gpu, g))
      able[n++] = g;
  }
  return n > 0 ? able[gpu % n] : gpu;
}

uint32_t *
ls_proxies_new (const LsCluster *c, uint32_t host)
{
  const LsClusterSpec *s = &c->spec;
  if (!s->network.pxn || s->nics.is_staged || s->network.rails < 2 || s->nics.n == 0
      || ls_interior_of (c, host)->kind->traits.is_slice)
    return NULL;
  g_autofree bool *is_nvlink = find_nvlinks (c, host);
  if (!is_nvlink)
    return NULL;
  uint32_t n_gpus = ls_cluster_gpus_of (c, host),
           *proxies = ls_arena_new_array (c->index->arena, uint32_t, (gsize) n_gpus * s->network.rails);
  for (uint32_t gpu = 0; gpu < n_gpus; gpu++)
    for (uint32_t rail = 0; rail < s->network.rails; rail++)
      proxies[gpu * s->network.rails + rail] = proxy_to (c, host, is_nvlink, gpu, rail);
  return proxies;
}

/* ---- ecmp ---- */

static uint64_t
mix (uint64_t x)
{
  x += UINT64_C (0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C (0x94d049bb133111eb);
  return x ^ x >> 31;
}

uint32_t
ls_ecmp_choose (const LsClusterSpec *spec, const LsFabricFlow *flow, uint32_t switch_number, uint32_t n)
{
  uint64_t h = mix (spec->network.seed);
  h = mix (h + ((uint64_t) flow->node_from << 32 | flow->nic_from));
  h = mix (h + ((uint64_t) flow->node_to << 32 | flow->nic_to));
  h = mix (h + ((uint64_t) flow->channel << 32 | switch_number));
  return (uint32_t) ((h >> 32) * n >> 32);
}

typedef struct {
  uint32_t length, first_hop, n_hops;
  LsTime latency;
} Way;

struct LsWays {
  uint32_t n_to;
  Way *ways;    /* [n_from * n_to] */
  GArray *hops; /* LsHop */
};

/* The graph, and what is found out about it for one destination. */
typedef struct {
  const LsNodeKind *kinds;
  uint32_t n_vertices;
  const LsLink *links;
  uint32_t n_links;
  uint32_t *first_out, *out; /* links by their from: out[first_out[v] .. first_out[v + 1] - 1] */
  uint32_t to;
  uint32_t *dist;  /* to the destination, GPUs not forwarding */
  uint32_t *order; /* vertices that reach it, nearest first   */
  uint32_t n_order;
  uint32_t *flow;  /* 2^-20 */
  LsTime *latency; /* of the slowest shortest path */
} Search;

static bool
forwards (const Search *s, uint32_t v)
{
  return s->kinds[v] == LS_NODE_NVSWITCH || s->kinds[v] == LS_NODE_PCIE_SWITCH || s->kinds[v] == LS_NODE_CPU
      || s->kinds[v] >= LS_NODE_LEAF;
}

static uint32_t
length_over (const Search *s, const LsLink *link)
{
  if ((link->to != s->to && !forwards (s, link->to)) || s->dist[link->to] == LS_WAYS_NONE)
    return LS_WAYS_NONE;
  return s->dist[link->to] + (ls_ways_is_nvlink (s->kinds[link->from], s->kinds[link->to]) ? 2 : 4);
}

void
ls_ways_links (const LsLinkSpec *spec, uint32_t count, uint32_t trunk, uint32_t from, uint32_t to,
               LsLink ret_links[2])
{
  for (uint32_t back = 0; back < 2; back++)
    ret_links[back] = (LsLink) { .from = back ? to : from,
                                 .to = back ? from : to,
                                 .trunk = trunk + back,
                                 .n_physical = count,
                                 .capacity_bytes_per_s = count * ls_link_capacity (spec),
                                 .latency = spec->latency };
}

void
ls_ways_index (const LsLink *links, uint32_t n_links, uint32_t n_vertices, bool by_from, uint32_t *ret_first,
               uint32_t *ret_links)
{
  memset (ret_first, 0, (n_vertices + 1) * sizeof *ret_first);
  for (uint32_t i = 0; i < n_links; i++)
    ret_first[(by_from ? links[i].from : links[i].to) + 1]++;
  for (uint32_t v = 0; v < n_vertices; v++)
    ret_first[v + 1] += ret_first[v];
  g_autofree uint32_t *at = g_memdup2 (ret_first, n_vertices * sizeof *at);
  for (uint32_t i = 0; i < n_links; i++)
    ret_links[at[by_from ? links[i].from : links[i].to]++] = i;
}

/* Nearest first, of equals the last: the flow goes through them from the end. */
static int
by_distance (gconstpointer a, gconstpointer b, gpointer dist_)
{
  const uint32_t *dist = dist_, x = *(const uint32_t *) a, y = *(const uint32_t *) b;
  return dist[x] != dist[y] ? (dist[x] > dist[y]) - (dist[x] < dist[y]) : (x < y) - (x > y);
}

static void
find_distances (Search *s)
{
  for (uint32_t v = 0; v < s->n_vertices; v++)
    s->dist[v] = LS_WAYS_NONE;
  s->dist[s->to] = 0;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (uint32_t i = 0; i < s->n_links; i++) {
      uint32_t length = length_over (s, &s->links[i]);
      if (length < s->dist[s->links[i].from]) {
        s->dist[s->links[i].from] = length;
        has_changed = true;
      }
    }
  }
  s->n_order = 0;
  for (uint32_t v = 0; v < s->n_vertices; v++)
    if (s->dist[v] != LS_WAYS_NONE)
      s->order[s->n_order++] = v;
  g_qsort_with_data (s->order, (gint) s->n_order, sizeof *s->order, by_distance, s->dist);
  for (uint32_t k = 0; k < s->n_order; k++) { /* the onward ends come first */
    uint32_t v = s->order[k];
    s->latency[v] = 0;
    for (uint32_t i = s->first_out[v]; i < s->first_out[v + 1]; i++) {
      const LsLink *link = &s->links[s->out[i]];
      if (v != s->to && length_over (s, link) == s->dist[v])
        s->latency[v] = MAX (s->latency[v], link->latency + s->latency[link->to]);
    }
  }
}

/* Splits `share` over links in proportion to capacity: cumulated, so that the parts add
 * up. Returns the part of the k-th as sums[k] - sums[k - 1]. */
static uint32_t
part (uint32_t share, double before, double own, double all)
{
  return (uint32_t) (share * ((before + own) / all) + 0.5) - (uint32_t) (share * (before / all) + 0.5);
}

static void
add_hop (LsWays *w, Way *way, uint32_t trunk, uint32_t share)
{
  LsHop hop = { .trunk = trunk, .share = share };
  for (uint32_t i = 0; i < way->n_hops; i++) {
    LsHop *old = &g_array_index (w->hops, LsHop, way->first_hop + i);
    if (old->trunk == trunk) {
      old->share += share;
      return;
    }
  }
  g_array_append_val (w->hops, hop);
  way->n_hops++;
}

/* Pushes the flow that has come to v onto the shortest onward links. */
static void
push_on (Search *s, LsWays *w, Way *way, uint32_t v)
{
  double all = 0, before = 0;
  for (uint32_t i = s->first_out[v]; i < s->first_out[v + 1]; i++)
    if (length_over (s, &s->links[s->out[i]]) == s->dist[v])
      all += s->links[s->out[i]].capacity_bytes_per_s;
  for (uint32_t i = s->first_out[v]; i < s->first_out[v + 1]; i++) {
    const LsLink *link = &s->links[s->out[i]];
    if (length_over (s, link) != s->dist[v])
      continue;
    uint32_t share = part (s->flow[v], before, link->capacity_bytes_per_s, all);
    before += link->capacity_bytes_per_s;
    s->flow[link->to] += share;
    if (share > 0)
      add_hop (w, way, link->trunk, share);
  }
}

static void
over_shortest (Search *s, LsWays *w, Way *way, uint32_t from)
{
  way->length = s->dist[from];
  if (way->length == LS_WAYS_NONE)
    return;
  way->latency = s->latency[from];
  memset (s->flow, 0, s->n_vertices * sizeof *s->flow);
  s->flow[from] = LS_HOP_WHOLE;
  for (uint32_t k = s->n_order; k-- > 0;)
    if (s->order[k] != s->to && s->flow[s->order[k]] > 0)
      push_on (s, w, way, s->order[k]);
}

/* The NVLink from a to b; NULL if there is none. */
static const LsLink *
nvlink_between (const Search *s, uint32_t a, uint32_t b)
{
  for (uint32_t i = s->first_out[a]; i < s->first_out[a + 1]; i++)
    if (s->links[s->out[i]].to == b && ls_ways_is_nvlink (s->kinds[a], s->kinds[b]))
      return &s->links[s->out[i]];
  return NULL;
}

/* Over the GPUs that both are joined to by NVLink; false if there are none. */
static bool
over_neighbours (Search *s, LsWays *w, Way *way, uint32_t from)
{
  double all = 0, before = 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = s->first_out[from]; i < s->first_out[from + 1]; i++) {
      const LsLink *first = &s->links[s->out[i]];
      const LsLink *second = s->kinds[first->to] == LS_NODE_GPU ? nvlink_between (s, first->to, s->to) : NULL;
      if (!second)
        continue;
      if (pass == 0) {
        all += first->capacity_bytes_per_s;
        continue;
      }
      uint32_t share = part (LS_HOP_WHOLE, before, first->capacity_bytes_per_s, all);
      before += first->capacity_bytes_per_s;
      add_hop (w, way, first->trunk, share);
      add_hop (w, way, second->trunk, share);
      way->latency = MAX (way->latency, first->latency + second->latency);
    }
  way->length = all > 0 ? 5 : way->length;
  return all > 0;
}

LsWays *
ls_ways_new (const LsNodeKind *kinds, uint32_t n_vertices, const LsLink *links, uint32_t n_links,
             LsVertices from, LsVertices to, LsArena *arena)
{
  LsWays *w = ls_arena_new_array (arena, LsWays, 1);
  *w = (LsWays) { to.n, ls_arena_new_array (arena, Way, (gsize) from.n * to.n),
                  ls_arena_list (arena, sizeof (LsHop)) };
  g_autoptr (LsArena) scratch = ls_arena_new ();
  Search s = { .kinds = kinds,
               .n_vertices = n_vertices,
               .links = links,
               .n_links = n_links,
               .first_out = ls_arena_new_array (scratch, uint32_t, n_vertices + 1),
               .out = ls_arena_new_array (scratch, uint32_t, n_links),
               .dist = ls_arena_new_array (scratch, uint32_t, n_vertices),
               .order = ls_arena_new_array (scratch, uint32_t, n_vertices),
               .flow = ls_arena_new_array (scratch, uint32_t, n_vertices),
               .latency = ls_arena_new_array (scratch, LsTime, n_vertices) };
  ls_ways_index (links, n_links, n_vertices, true, s.first_out, s.out);
  for (uint32_t j = 0; j < to.n; j++) {
    s.to = to.first + j;
    find_distances (&s);
    for (uint32_t i = 0; i < from.n; i++) {
      uint32_t v = from.first + i;
      Way *way = &w->ways[(gsize) i * to.n + j];
      *way = (Way) { .length = LS_WAYS_NONE, .first_hop = w->hops->len };
      bool are_gpus = kinds[v] == LS_NODE_GPU && kinds[s.to] == LS_NODE_GPU;
      if (!are_gpus || v == s.to || s.dist[v] <= 5 || !over_neighbours (&s, w, way, v))
        over_shortest (&s, w, way, v);
    }
  }
  return w;
}

static const Way *
way_of (const LsWays *w, uint32_t i, uint32_t j)
{
  return &w->ways[(gsize) i * w->n_to + j];
}

uint32_t
ls_ways_length (const LsWays *w, uint32_t i, uint32_t j)
{
  return way_of (w, i, j)->length;
}

uint32_t
ls_ways_n_hops (const LsWays *w, uint32_t i, uint32_t j)
{
  return way_of (w, i, j)->n_hops;
}

void
ls_ways_append (const LsWays *w, uint32_t i, uint32_t j, LsRoute *r)
{
  const Way *way = way_of (w, i, j);
  g_assert (r->n_hops + way->n_hops <= LS_ROUTE_MAX_HOPS);
  if (way->n_hops == 0)
    return;
  memcpy (&r->hop[r->n_hops], (const LsHop *) (gconstpointer) w->hops->data + way->first_hop,
          way->n_hops * sizeof (LsHop));
  r->n_hops += way->n_hops;
  r->latency += way->latency;
}
