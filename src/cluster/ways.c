#include "cluster/ways.h"

#include <string.h>

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
is_nvlink (const Search *s, const LsLink *link)
{
  LsNodeKind from = s->kinds[link->from], to = s->kinds[link->to];
  return from == LS_NODE_NVSWITCH || to == LS_NODE_NVSWITCH || (from == LS_NODE_GPU && to == LS_NODE_GPU);
}

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
  return s->dist[link->to] + (is_nvlink (s, link) ? 2 : 4);
}

static void
index_links (Search *s)
{
  s->first_out = g_new0 (uint32_t, s->n_vertices + 1);
  s->out = g_new (uint32_t, s->n_links);
  for (uint32_t i = 0; i < s->n_links; i++)
    s->first_out[s->links[i].from + 1]++;
  for (uint32_t v = 0; v < s->n_vertices; v++)
    s->first_out[v + 1] += s->first_out[v];
  g_autofree uint32_t *at = g_memdup2 (s->first_out, s->n_vertices * sizeof *at);
  for (uint32_t i = 0; i < s->n_links; i++)
    s->out[at[s->links[i].from]++] = i;
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
    if (s->links[s->out[i]].to == b && is_nvlink (s, &s->links[s->out[i]]))
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

static void
find_way (Search *s, LsWays *w, Way *way, uint32_t from)
{
  *way = (Way) { .length = LS_WAYS_NONE, .first_hop = w->hops->len };
  bool are_gpus = s->kinds[from] == LS_NODE_GPU && s->kinds[s->to] == LS_NODE_GPU;
  if (are_gpus && from != s->to && s->dist[from] > 5 && over_neighbours (s, w, way, from))
    return;
  over_shortest (s, w, way, from);
}

LsWays *
ls_ways_new (const LsNodeKind *kinds, uint32_t n_vertices, const LsLink *links, uint32_t n_links,
             const uint32_t *from, uint32_t n_from, const uint32_t *to, uint32_t n_to)
{
  LsWays *w = g_new0 (LsWays, 1);
  w->n_to = n_to;
  w->ways = g_new0 (Way, (gsize) n_from * n_to);
  w->hops = g_array_new (FALSE, FALSE, sizeof (LsHop));
  Search s = { .kinds = kinds, .n_vertices = n_vertices, .links = links, .n_links = n_links };
  index_links (&s);
  s.dist = g_new (uint32_t, n_vertices);
  s.order = g_new (uint32_t, n_vertices);
  s.flow = g_new (uint32_t, n_vertices);
  s.latency = g_new0 (LsTime, n_vertices);
  for (uint32_t j = 0; j < n_to; j++) {
    s.to = to[j];
    find_distances (&s);
    for (uint32_t i = 0; i < n_from; i++)
      find_way (&s, w, &w->ways[(gsize) i * n_to + j], from[i]);
  }
  g_free (s.first_out);
  g_free (s.out);
  g_free (s.dist);
  g_free (s.order);
  g_free (s.flow);
  g_free (s.latency);
  return w;
}

void
ls_ways_free (LsWays *w)
{
  if (!w)
    return;
  g_free (w->ways);
  g_array_unref (w->hops);
  g_free (w);
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
