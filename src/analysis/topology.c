#include "analysis/topology.h"

#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/parallel.h"

/* ---- maxflow ---- */

typedef struct {
  uint32_t to, back; /* vertex; arc of the other direction */
  int64_t left;
} Arc;

typedef struct {
  uint32_t n, source, sink;
  Arc *arcs;               /* those that leave a vertex follow each other: memory is read in order */
  uint32_t *first;         /* [n + 1] arcs: of a vertex; the last: how many there are */
  uint32_t *current;       /* [n] arcs not yet found useless in this round */
  uint32_t *level, *queue; /* [n] steps from the source; UINT32_MAX: out of reach */
  uint32_t *way;           /* [n] arcs from the source to where the search stands */
} Net;

/* All sources of n vertices become vertex n, all sinks vertex n + 1: what leaves one end is what any source
 * sends. */
static uint32_t
place (uint32_t n, const int8_t *side, uint32_t v)
{
  return side[v] < 0 ? n : side[v] > 0 ? n + 1 : v;
}

/* Of edges without their capacities: net_fill(). */
static void
net_init (Net *net, uint32_t n_vertices, const GArray *edges, const int8_t *side)
{
  *net = (Net) { .n = n_vertices + 2, .source = n_vertices, .sink = n_vertices + 1 };
  net->arcs = g_new (Arc, 2 * (gsize) edges->len + 1);
  net->first = g_new0 (uint32_t, 5 * (gsize) net->n + 1); /* with the four that follow */
  net->current = net->first + net->n + 1;
  net->level = net->current + net->n;
  net->queue = net->level + net->n;
  net->way = net->queue + net->n;
  for (guint i = 0; i < edges->len; i++) {
    const LsFlowEdge *e = &g_array_index (edges, LsFlowEdge, i);
    uint32_t from = place (net->source, side, e->from), to = place (net->source, side, e->to);
    net->first[from + 1] += from != to;
    net->first[to + 1] += from != to;
  }
  for (uint32_t v = 0; v < net->n; v++)
    net->first[v + 1] += net->first[v];
}

static void
net_fill (Net *net, const GArray *edges, const int8_t *side)
{
  memcpy (net->current, net->first, net->n * sizeof *net->first);
  for (guint i = 0; i < edges->len; i++) {
    const LsFlowEdge *e = &g_array_index (edges, LsFlowEdge, i);
    uint32_t from = place (net->source, side, e->from), to = place (net->source, side, e->to);
    if (from == to)
      continue;
    uint32_t way = net->current[from]++, back = net->current[to]++;
    net->arcs[way] = (Arc) { to, back, e->capacity };
    net->arcs[back] = (Arc) { from, way, 0 };
  }
}

static void
net_clear (Net *net)
{
  g_free (net->arcs);
  g_free (net->first);
}

/* Levels by breadth; whether the sink is in reach. */
static gboolean
find_levels (Net *net)
{
  uint32_t n = 0;
  memset (net->level, 0xff, net->n * sizeof *net->level);
  net->level[net->source] = 0;
  net->queue[n++] = net->source;
  for (uint32_t i = 0; i < n && net->level[net->sink] == UINT32_MAX; i++)
    for (uint32_t a = net->first[net->queue[i]]; a < net->first[net->queue[i] + 1]; a++) {
      uint32_t to = net->arcs[a].to;
      if (net->arcs[a].left == 0 || net->level[to] != UINT32_MAX)
        continue;
      net->level[to] = net->level[net->queue[i]] + 1;
      net->queue[n++] = to;
    }
  return net->level[net->sink] != UINT32_MAX;
}

/* Sends what the way of n arcs can carry. */
static int64_t
send (Net *net, uint32_t n)
{
  int64_t amount = INT64_MAX;
  for (uint32_t i = 0; i < n; i++)
    amount = MIN (amount, net->arcs[net->way[i]].left);
  for (uint32_t i = 0; i < n; i++) {
    net->arcs[net->way[i]].left -= amount;
    net->arcs[net->arcs[net->way[i]].back].left += amount;
  }
  return amount;
}

/* Saturates all shortest ways; a loop, as ways may be long. */
static int64_t
saturate (Net *net)
{
  int64_t sent = 0;
  uint32_t depth = 0, v = net->source;
  memcpy (net->current, net->first, net->n * sizeof *net->first);
  for (;;) {
    if (v == net->sink) {
      sent += send (net, depth);
      uint32_t full = 0;
      while (net->arcs[net->way[full]].left > 0)
        full++;
      v = net->arcs[net->arcs[net->way[full]].back].to; /* go on before the first arc that is full */
      depth = full;
      continue;
    }
    uint32_t a = net->current[v], end = net->first[v + 1];
    while (a < end && (net->arcs[a].left == 0 || net->level[net->arcs[a].to] != net->level[v] + 1))
      a++;
    net->current[v] = a;
    if (a < end) {
      net->way[depth++] = a;
      v = net->arcs[a].to;
    } else if (depth > 0) {
      a = net->way[--depth];
      v = net->arcs[net->arcs[a].back].to;
      net->current[v] = a + 1;
    } else {
      return sent;
    }
  }
}

static int64_t
flow_of (Net *net, const GArray *edges, const int8_t *side)
{
  int64_t flow = 0;
  net_fill (net, edges, side);
  while (find_levels (net))
    flow += saturate (net);
  return flow;
}

int64_t
ls_max_flow (uint32_t n_vertices, const GArray *edges, const int8_t *side)
{
  Net net;
  net_init (&net, n_vertices, edges, side);
  int64_t flow = flow_of (&net, edges, side);
  net_clear (&net);
  return flow;
}

/* ---- what gets through a cluster at each level, and between its halves ---- */

#define NO_HOST UINT32_MAX

static const LsLink *
link_at (const LsCluster *c, guint i)
{
  return &g_array_index (c->links, LsLink, i);
}

static const LsTrunk *
trunk_of (const LsCluster *c, const LsLink *link)
{
  return &g_array_index (c->trunks, LsTrunk, link->trunk);
}

/* Whether a link joins GPUs without PCIe: from GPU to GPU or NVSwitch. */
static bool
ls_topo_is_nvlink (const LsCluster *c, const LsLink *link)
{
  LsNodeKind a = ls_cluster_vertex (c, link->from)->kind, b = ls_cluster_vertex (c, link->to)->kind;
  return (a == LS_NODE_GPU && (b == LS_NODE_GPU || b == LS_NODE_NVSWITCH))
      || (a == LS_NODE_NVSWITCH && b == LS_NODE_GPU);
}

/* NAN as data-sheet rate where no data sheet is known. */
static LsBandwidth
rate_with (double payload, const LsLinkSpec *link)
{
  return (LsBandwidth) { link ? payload / link->efficiency : NAN, payload };
}

/* Nothing where it failed. */
static LsBandwidth
rate_of (const LsCluster *c, const LsLink *link)
{
  const LsTrunk *trunk = trunk_of (c, link);
  return rate_with (trunk->is_failed ? 0 : link->capacity_bytes_per_s, trunk->link);
}

static void
add (LsBandwidth *sum, LsBandwidth x)
{
  sum->data_sheet += x.data_sheet;
  sum->payload += x.payload;
}

/* --- sets that grow together --- */

static uint32_t
root_of (uint32_t *parent, uint32_t v)
{
  while (parent[v] != v)
    v = parent[v] = parent[parent[v]];
  return v;
}

/* The lower number stays the root: the order of links decides nothing. */
static void
join (uint32_t *parent, uint32_t a, uint32_t b)
{
  a = root_of (parent, a);
  b = root_of (parent, b);
  parent[MAX (a, b)] = MIN (a, b);
}

/* Whether NVLink or ICI alone joins all GPUs of a node: of the first, they are alike. */
static bool
has_nvlink_between_all (const LsCluster *c)
{
  g_autofree uint32_t *parent = g_new (uint32_t, c->nodes->len);
  for (guint v = 0; v < c->nodes->len; v++)
    parent[v] = v;
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = link_at (c, i);
    uint32_t host = ls_cluster_vertex (c, link->from)->host;
    if ((host == 0 || host == NO_HOST) && ls_topo_is_nvlink (c, link) && !trunk_of (c, link)->is_failed)
      join (parent, link->from, link->to);
  }
  uint32_t first = UINT32_MAX;
  for (guint v = 0; v < c->nodes->len; v++) {
    if (ls_cluster_vertex (c, v)->kind != LS_NODE_GPU || ls_cluster_vertex (c, v)->host != 0)
      continue;
    if (first == UINT32_MAX)
      first = v;
    if (root_of (parent, v) != root_of (parent, first))
      return false;
  }
  return true;
}

/* --- levels --- */

static LsBandwidth
all_gather (LsBandwidth each, uint32_t n)
{
  double factor = n > 1 ? (double) n / (n - 1) : INFINITY;
  return (LsBandwidth) { each.data_sheet * factor, each.payload * factor };
}

static void
count_part (LsTopoLevel *level, LsBandwidth out)
{
  add (&level->together, out);
  level->each.data_sheet = fmin (level->each.data_sheet, out.data_sheet);
  level->each.payload = fmin (level->each.payload, out.payload);
}

/* A GPU with all its links to others of its node: NVLink where that is enough. */
static LsTopoLevel
node_level (const LsCluster *c)
{
  bool by_nvlink = has_nvlink_between_all (c);
  g_autofree LsBandwidth *of = g_new0 (LsBandwidth, c->nodes->len);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = link_at (c, i);
    if (ls_cluster_vertex (c, link->from)->kind == LS_NODE_GPU
        && ls_cluster_vertex (c, link->to)->kind != LS_NODE_NIC
        && (!by_nvlink || ls_topo_is_nvlink (c, link)))
      add (&of[link->from], rate_of (c, link));
  }
  LsTopoLevel level = { .name = "node",
                        .part = "gpu",
                        .is_of_gpus = true,
                        .n_groups = c->spec.n_nodes,
                        .n_parts = c->seats.per_node };
  level.each = (LsBandwidth) { INFINITY, INFINITY };
  for (guint v = 0; v < c->nodes->len; v++)
    if (ls_cluster_vertex (c, v)->kind == LS_NODE_GPU)
      count_part (&level, of[v]);
  level.all_gather = all_gather (level.each, level.n_parts);
  return level;
}

static int
tier_of (const LsCluster *c, uint32_t v)
{
  const LsTopoNode *node = ls_cluster_vertex (c, v);
  return node->host != NO_HOST ? 0 : (int) node->kind - LS_NODE_LEAF + 1;
}

/* What a tier of switches joins; parts are what the tiers below have joined. */
typedef struct {
  const LsCluster *c;
  uint32_t *parent;  /* [vertices] */
  LsBandwidth *out;  /* [vertices] of a part's root: what leaves it upwards */
  uint32_t *n_parts; /* [vertices] of a group's root */
} Climb;

static void
join_tier (Climb *k, int tier, GArray *levels)
{
  const LsCluster *c = k->c;
  g_autofree uint32_t *part_of = g_new (uint32_t, c->nodes->len);
  for (guint v = 0; v < c->nodes->len; v++) {
    part_of[v] = root_of (k->parent, v);
    k->out[v] = (LsBandwidth) { 0 };
    k->n_parts[v] = 0;
  }
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = link_at (c, i);
    int from = tier_of (c, link->from), to = tier_of (c, link->to);
    if (from < tier && to >= tier)
      add (&k->out[part_of[link->from]], rate_of (c, link));
    if (from <= tier && to <= tier)
      join (k->parent, link->from, link->to);
  }

  static const char *const parts[] = { "node", "leaf group", "spine group", "leaf group", "group" };
  LsTopoLevel level = {
    .name = ls_topo_kind_name ((LsNodeKind) (LS_NODE_LEAF + tier - 1)),
    .part = parts[MIN ((gsize) tier, G_N_ELEMENTS (parts)) - 1],
    .each = { INFINITY, INFINITY },
  };
  for (guint v = 0; v < c->nodes->len; v++) {
    if (part_of[v] != v
        || ls_cluster_vertex (c, v)->host == NO_HOST) /* the root of what has nodes is in a node */
      continue;
    uint32_t group = root_of (k->parent, v);
    level.n_groups += k->n_parts[group]++ == 0;
    level.n_parts = MAX (level.n_parts, k->n_parts[group]);
    count_part (&level, k->out[v]);
  }
  level.all_gather = all_gather (level.each, level.n_parts);
  if (level.n_parts > 1)
    g_array_append_val (levels, level);
}

GArray *
ls_topo_levels_new (const LsCluster *c)
{
  GArray *levels = g_array_new (FALSE, FALSE, sizeof (LsTopoLevel));
  LsTopoLevel first = node_level (c);
  g_array_append_val (levels, first);

  guint n = c->nodes->len;
  g_autofree uint32_t *parent = g_new (uint32_t, n), *n_parts = g_new (uint32_t, n);
  g_autofree LsBandwidth *out = g_new (LsBandwidth, n);
  Climb k = { .c = c, .parent = parent, .out = out, .n_parts = n_parts };
  int top = 0;
  for (guint v = 0; v < n; v++) {
    bool is_next = v > 0 && ls_cluster_vertex (c, v)->host != NO_HOST
        && ls_cluster_vertex (c, v)->host == ls_cluster_vertex (c, v - 1)->host;
    parent[v] = is_next ? parent[v - 1] : v; /* a node is one part; its vertices follow each other */
    top = MAX (top, tier_of (c, v));
  }
  for (int tier = 1; tier <= top; tier++)
    join_tier (&k, tier, levels);
  return levels;
}

/* --- bisections --- */

typedef enum { DATA_SHEET, PAYLOAD } Rate;

/* Bytes/s; what is not known carries nothing. */
static double
bytes_per_s (LsBandwidth b, Rate rate)
{
  double value = rate == DATA_SHEET ? b.data_sheet : b.payload;
  return isnan (value) ? 0 : value;
}

/* A link by which bytes may get from half to half. */
typedef struct {
  uint32_t from, to;
  LsBandwidth rate;
} CutLink;

/* Of how many bytes/s a unit of capacity is: one, as rates are sums of products of few digits, so that it is
 * exact; more where all links together would not count in 2^62. */
static double
unit_of (const GArray *links, Rate rate)
{
  double sum = 0;
  for (guint i = 0; i < links->len; i++)
    sum += bytes_per_s (g_array_index (links, CutLink, i).rate, rate);
  return fmax (1, sum / 0x1p61);
}

/* Over the edges that these links are, whose capacities it sets. */
static double
cut (Net *net, const GArray *links, GArray *edges, const int8_t *side, Rate rate)
{
  bool is_known = true;
  double unit = unit_of (links, rate);
  for (guint i = 0; i < links->len; i++) {
    LsBandwidth b = g_array_index (links, CutLink, i).rate;
    g_array_index (edges, LsFlowEdge, i).capacity = llround (bytes_per_s (b, rate) / unit);
    is_known = is_known && !isnan (b.data_sheet);
  }
  double flow = unit * (double) flow_of (net, edges, side);
  return rate == DATA_SHEET && !is_known ? NAN : flow;
}

#define NOBODY  UINT32_MAX
#define SEVERAL (UINT32_MAX - 1)

/* Notes a neighbour of a vertex: its only one, or one of several. */
static void
meet (uint32_t *only, uint32_t v, uint32_t other)
{
  only[v] = only[v] == NOBODY || only[v] == other ? other : SEVERAL;
}

/* CutLink of the first n vertices, or of their NVLinks: without those among a half's GPUs and those to a
 * vertex with no other neighbour, which are most of a server's. Free with g_array_unref(). */
static GArray *
links_between (const LsCluster *c, uint32_t n, bool nvlink_only, const int8_t *side)
{
  GArray *links = g_array_new (FALSE, FALSE, sizeof (CutLink));
  g_autofree uint32_t *only = g_new (uint32_t, n + 2);
  memset (only, 0xff, (n + 2) * sizeof *only);
  for (int is_second = 0; is_second < 2; is_second++) {
    for (uint32_t i = 0; i < c->links->len; i++) {
      const LsLink *link = link_at (c, i);
      if (link->from >= n || link->to >= n || (nvlink_only && !ls_topo_is_nvlink (c, link)))
        continue;
      uint32_t from = place (n, side, link->from), to = place (n, side, link->to);
      if (from == to)
        continue;
      if (!is_second) {
        meet (only, from, to);
        meet (only, to, from);
      } else if (only[from] == SEVERAL && only[to] == SEVERAL) {
        ls_list_add (links, &(CutLink) { link->from, link->to, rate_of (c, link) });
      }
    }
    only[n] = only[n + 1] = SEVERAL; /* the ends, whatever they meet */
  }
  return links;
}

/* Of the GPUs of the first n vertices: those of which is_first() is true from the others. */
static LsBandwidth
bisect (const LsCluster *c, uint32_t n, bool nvlink_only,
        bool (*is_first) (const LsCluster *, uint32_t, uint32_t), uint32_t half)
{
  g_autofree int8_t *side = g_new0 (int8_t, n);
  for (uint32_t v = 0; v < n; v++)
    if (ls_cluster_vertex (c, v)->kind == LS_NODE_GPU)
      side[v] = is_first (c, v, half) ? -1 : 1;
  g_autoptr (GArray) links = links_between (c, n, nvlink_only, side);
  g_autoptr (GArray) edges = g_array_sized_new (FALSE, FALSE, sizeof (LsFlowEdge), links->len);
  for (guint i = 0; i < links->len; i++) {
    const CutLink *link = &g_array_index (links, CutLink, i);
    ls_list_add (edges, &(LsFlowEdge) { link->from, link->to, 0 });
  }
  Net net;
  net_init (&net, n, edges, side);
  double data_sheet = cut (&net, links, edges, side, DATA_SHEET),
         payload = cut (&net, links, edges, side, PAYLOAD);
  net_clear (&net);
  return (LsBandwidth) { data_sheet, payload };
}

static bool
is_below_index (const LsCluster *c, uint32_t v, uint32_t index)
{
  return ls_cluster_vertex (c, v)->index < index;
}

static bool
is_below_host (const LsCluster *c, uint32_t v, uint32_t host)
{
  return ls_cluster_vertex (c, v)->host < host;
}

static bool
is_below_axis (const LsCluster *c, uint32_t v, uint32_t axis)
{
  const LsTorusSpec *t = &c->spec.torus;
  return ls_torus_coord (t, ls_cluster_vertex (c, v)->index).at[axis] < t->dims[axis] / 2;
}

/* Of a torus the least of the axes that halve. */
LsBandwidth
ls_topo_node_bisection (const LsCluster *c)
{
  uint32_t n_gpus = ls_cluster_gpus_of (c, 0), n = 0;
  LsBandwidth least = { INFINITY, INFINITY };
  if (n_gpus < 2)
    return (LsBandwidth) { NAN, NAN };
  while (n < c->nodes->len && ls_cluster_vertex (c, n)->host == 0)
    n++;
  if (!ls_cluster_traits (&c->spec)->is_slice)
    return bisect (c, n, has_nvlink_between_all (c), is_below_index, n_gpus / 2);
  for (uint32_t axis = 0; axis < c->spec.torus.n_axes; axis++) {
    if (c->spec.torus.dims[axis] < 2)
      continue;
    LsBandwidth here = bisect (c, n, true, is_below_axis, axis);
    if (here.payload < least.payload)
      least = here;
  }
  return least;
}

LsBandwidth
ls_topo_cluster_bisection (const LsCluster *c)
{
  return c->spec.n_nodes < 2 ? (LsBandwidth) { NAN, NAN }
                             : bisect (c, c->nodes->len, false, is_below_host, c->spec.n_nodes / 2);
}

/* --- kinds of vertices --- */

static const struct {
  const char *name;
  int depth; /* in the drawing of a node: links are read from the deeper end */
} kinds[LS_N_NODE_KINDS] = {
  [LS_NODE_GPU] = { "gpu", 9 },
  [LS_NODE_NVSWITCH] = { "nvswitch", 4 },
  [LS_NODE_PCIE_SWITCH] = { "pcie switch", 6 },
  [LS_NODE_CPU] = { "cpu", 5 },
  [LS_NODE_CPU_MEMORY] = { "memory", 8 },
  [LS_NODE_NVME] = { "nvme", 8 },
  [LS_NODE_NIC] = { "nic", 7 },
  [LS_NODE_BRIDGE] = { "bridge", 5 },
  [LS_NODE_LEAF] = { "leaf", 3 },
  [LS_NODE_SPINE] = { "spine", 2 },
  [LS_NODE_CORE] = { "core", 1 },
  [LS_NODE_LOCALS] = { "locals", 2 },
  [LS_NODE_GLOBALS] = { "globals", 1 },
};

const char *
ls_topo_kind_name (LsNodeKind kind)
{
  return (gsize) kind < G_N_ELEMENTS (kinds) && kinds[kind].name ? kinds[kind].name : "switch";
}

const char *
ls_topo_kind_word (const LsClusterSpec *spec, LsNodeKind kind)
{
  if (kind != LS_NODE_GPU)
    return ls_topo_kind_name (kind);
  g_autofree char *word = g_ascii_strdown (ls_cluster_chip_word (spec, 1), -1);
  return g_intern_string (word);
}

LsBandwidth
ls_topo_links_rate (const LsTopoLinks *links)
{
  return rate_with (links->capacity_bytes_per_s, links->link);
}

LsBandwidth
ls_topo_trunk_rate (const LsTrunk *trunk)
{
  return rate_with (trunk->is_failed ? 0 : trunk->capacity_bytes_per_s, trunk->link);
}

/* --- kinds of links --- */

static const char *
name_of_link (const LsClusterSpec *all, const LsLinkSpec *link)
{
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (all); k++) {
    const LsClusterSpec *s = ls_cluster_spec_of_kind (all, k);
    for (const LsLinkRow *row = ls_cluster_links; row->name; row++)
      if (ls_cluster_link (s, row) == link)
        return row->in_dragonfly && ls_is_dragonfly (s) ? row->in_dragonfly : row->name;
  }
  return "link";
}

/* What a link is; its row is looked up by this. */
static LsTopoLinks
describe (const LsCluster *c, const LsLink *link)
{
  LsNodeKind a = ls_cluster_vertex (c, link->from)->kind, b = ls_cluster_vertex (c, link->to)->kind;
  bool is_upward = kinds[a].depth >= kinds[b].depth;
  const LsTrunk *trunk = trunk_of (c, link);
  return (LsTopoLinks) {
    .name = name_of_link (&c->spec, trunk->link),
    .a = is_upward ? a : b,
    .b = is_upward ? b : a,
    .link = trunk->link,
    .capacity_bytes_per_s = trunk->is_failed ? 0 : link->capacity_bytes_per_s / link->n_physical,
    .latency = link->latency,
  };
}

static int
find_row (const GArray *rows, const LsTopoLinks *what)
{
  for (guint i = 0; i < rows->len; i++) {
    const LsTopoLinks *a = &g_array_index (rows, LsTopoLinks, i);
    const LsLinkSpec *x = a->link, *y = what->link;
    bool is_same = x == y
        || (x && y && x->bandwidth_bytes_per_s == y->bandwidth_bytes_per_s && x->efficiency == y->efficiency
            && x->latency == y->latency && g_strcmp0 (x->source, y->source) == 0);
    if (is_same && a->a == what->a && a->b == what->b && a->capacity_bytes_per_s == what->capacity_bytes_per_s
        && a->latency == what->latency && strcmp (a->name, what->name) == 0)
      return (int) i;
  }
  return -1;
}

/* Directions are counted first, and halved: most links go both ways alike. */
static GArray *
collect_links (const LsCluster *c)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (LsTopoLinks));
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    LsTopoLinks what = describe (c, link);
    int at = find_row (rows, &what);
    if (at < 0) {
      at = (int) rows->len;
      g_array_append_val (rows, what);
    }
    LsTopoLinks *row = &g_array_index (rows, LsTopoLinks, at);
    row->n_pairs++;
    row->n_physical += link->n_physical;
  }
  for (guint i = 0; i < rows->len; i++) {
    LsTopoLinks *row = &g_array_index (rows, LsTopoLinks, i);
    row->n_pairs = (row->n_pairs + 1) / 2;
    row->n_physical = (row->n_physical + 1) / 2;
  }
  return rows;
}

/* --- trees --- */

static void
part_free (gpointer data)
{
  LsTopoPart *part = data;
  g_ptr_array_unref (part->children);
  g_free (part);
}

static LsTopoPart *
part_new (LsNodeKind kind, uint32_t n, int links, uint32_t n_physical)
{
  LsTopoPart *part = g_new0 (LsTopoPart, 1);
  *part = (LsTopoPart) { .n = n, .kind = kind, .links = links, .n_physical = n_physical };
  part->children = g_ptr_array_new_with_free_func (part_free);
  return part;
}

static LsTopoPart *
part_at (const GPtrArray *parts, guint i)
{
  return g_ptr_array_index (parts, i);
}

static bool
is_same_tree (const LsTopoPart *x, const LsTopoPart *y)
{
  if (x->kind != y->kind || x->links != y->links || x->n_physical != y->n_physical
      || x->is_peers != y->is_peers || x->children->len != y->children->len)
    return false;
  for (guint i = 0; i < x->children->len; i++)
    if (part_at (x->children, i)->n != part_at (y->children, i)->n
        || !is_same_tree (part_at (x->children, i), part_at (y->children, i)))
      return false;
  return true;
}

/* Those alike become one, in the place of the first; from the leaves up. */
static void
collapse (GPtrArray *parts)
{
  for (guint i = 0; i < parts->len; i++)
    collapse (part_at (parts, i)->children);
  for (guint i = 0; i < parts->len; i++)
    for (guint j = parts->len - 1; j > i; j--)
      if (is_same_tree (part_at (parts, i), part_at (parts, j))) {
        part_at (parts, i)->n += part_at (parts, j)->n;
        g_ptr_array_remove_index (parts, j);
      }
}

/* One node: who hangs below whom. NVSwitches and links between equals are apart. */
typedef struct {
  const LsTopoMap *map;
  uint32_t base, n;    /* vertices of the cluster: the first, how many */
  GPtrArray *inside;   /* const LsLink * with both ends in it */
  guint *first, *next; /* [n], [inside]: those that leave a vertex, in order; G_MAXUINT: no more */
  LsTopoPart **parts;  /* [n] owned by their parents; NULL: not placed yet */
} NodeTree;

static void
index_links (NodeTree *t)
{
  t->first = g_new (guint, t->n + 1);
  t->next = g_new (guint, t->inside->len + 1);
  memset (t->first, 0xff, (t->n + 1) * sizeof *t->first);
  for (guint l = t->inside->len; l-- > 0;) {
    uint32_t from = ((const LsLink *) g_ptr_array_index (t->inside, l))->from - t->base;
    t->next[l] = t->first[from];
    t->first[from] = l;
  }
}

static bool
adopts (LsNodeKind parent, LsNodeKind child)
{
  if (child == LS_NODE_NVSWITCH || child == LS_NODE_CPU || child == LS_NODE_BRIDGE || child >= LS_NODE_LEAF)
    return false;
  if (parent == LS_NODE_GPU)
    return child == LS_NODE_NIC || child == LS_NODE_NVME;
  return parent == LS_NODE_CPU || parent == LS_NODE_PCIE_SWITCH;
}

/* Breadth first from one root. */
static void
grow (NodeTree *t, GPtrArray *roots, uint32_t root)
{
  const LsCluster *c = t->map->cluster;
  GArray *queue = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  LsTopoPart **of = t->parts - t->base; /* by vertex of the cluster */
  of[root] = part_new (ls_cluster_vertex (c, root)->kind, 1, -1, 0);
  of[root]->vertex = root;
  g_ptr_array_add (roots, of[root]);
  g_array_append_val (queue, root);
  for (guint i = 0; i < queue->len; i++) {
    uint32_t v = g_array_index (queue, uint32_t, i);
    for (guint l = t->first[v - t->base]; l != G_MAXUINT; l = t->next[l]) {
      const LsLink *link = g_ptr_array_index (t->inside, l);
      uint32_t child = link->to;
      if (of[child] || !adopts (ls_cluster_vertex (c, v)->kind, ls_cluster_vertex (c, child)->kind))
        continue;
      LsTopoLinks what = describe (c, link);
      of[child] = part_new (ls_cluster_vertex (c, child)->kind, 1, find_row (t->map->links, &what),
                            link->n_physical);
      of[child]->vertex = child;
      g_ptr_array_add (of[v]->children, of[child]);
      g_array_append_val (queue, child);
    }
  }
  g_array_unref (queue);
}

/* What joins GPUs to NVSwitches, and equals to each other. Of several rows to the
 * NVSwitches, some of degraded links, the first with links here stands for all. */
static void
add_rest (const NodeTree *t, GPtrArray *roots)
{
  LsTopoPart *nvswitches = NULL;
  const LsCluster *c = t->map->cluster;
  uint32_t n_nvlinks = 0;
  for (guint i = 0; i < t->map->links->len; i++) {
    const LsTopoLinks *row = &g_array_index (t->map->links, LsTopoLinks, i);
    bool is_nvswitch = row->b == LS_NODE_NVSWITCH, is_peers = row->a == row->b && row->a < LS_NODE_LEAF;
    uint32_t n_pairs = 0, n_physical = 0; /* of the row in this node, in two directions */
    for (guint l = 0; l < t->inside->len && (is_nvswitch || is_peers); l++) {
      const LsLink *link = g_ptr_array_index (t->inside, l);
      LsTopoLinks what = describe (c, link);
      bool is_it = find_row (t->map->links, &what) == (int) i;
      n_pairs += is_it;
      n_physical += is_it ? link->n_physical : 0;
    }
    if (n_pairs == 0)
      continue;
    n_pairs = (n_pairs + 1) / 2;
    n_physical = (n_physical + 1) / 2;
    n_nvlinks += is_nvswitch ? n_physical : 0;
    if (is_nvswitch && nvswitches)
      continue;
    LsTopoPart *part = part_new (row->b, n_pairs, (int) i, n_physical);
    part->is_peers = is_peers;
    g_ptr_array_add (roots, part);
    nvswitches = is_nvswitch ? part : nvswitches;
  }
  if (!nvswitches)
    return;
  nvswitches->n = 0;
  for (uint32_t v = t->base; v < t->base + t->n; v++)
    nvswitches->n += ls_cluster_vertex (c, v)->kind == LS_NODE_NVSWITCH;
  nvswitches->n_physical = n_nvlinks / ls_cluster_gpus_of (c, ls_cluster_vertex (c, t->base)->host);
}

static GPtrArray *
node_tree (const LsTopoMap *map, uint32_t host, bool collapses)
{
  static const LsNodeKind order[]
      = { LS_NODE_CPU, LS_NODE_PCIE_SWITCH, LS_NODE_GPU, LS_NODE_NIC, LS_NODE_NVME, LS_NODE_CPU_MEMORY };
  const LsCluster *c = map->cluster;
  GPtrArray *roots = g_ptr_array_new_with_free_func (part_free);
  NodeTree t = { .map = map, .inside = g_ptr_array_new () };
  while (ls_cluster_vertex (c, t.base)->host != host)
    t.base++;
  while (t.base + t.n < c->nodes->len && ls_cluster_vertex (c, t.base + t.n)->host == host)
    t.n++;
  t.parts = g_new0 (LsTopoPart *, t.n + 1);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (link->from - t.base < t.n && link->to - t.base < t.n) /* below the first: a large number */
      g_ptr_array_add (t.inside, (gpointer) link);
  }
  index_links (&t);
  add_rest (&t, roots);
  for (guint k = 0; k < G_N_ELEMENTS (order); k++)
    for (uint32_t v = 0; v < t.n; v++)
      if (ls_cluster_vertex (c, t.base + v)->kind == order[k] && !t.parts[v])
        grow (&t, roots, t.base + v);
  if (collapses)
    collapse (roots);
  g_ptr_array_unref (t.inside);
  g_free (t.first);
  g_free (t.next);
  g_free (t.parts);
  return roots;
}

/* A tier below the other, down to the NICs; each kind of switch is one part. */
static GPtrArray *
fabric_tree (const LsTopoMap *map)
{
  GPtrArray *top = g_ptr_array_new_with_free_func (part_free), *at = top;
  LsNodeKind parent = LS_NODE_GPU; /* none yet */
  for (int kind = LS_N_NODE_KINDS - 1; kind >= LS_NODE_NIC; kind--) {
    bool is_switch = kind >= LS_NODE_LEAF;
    if (map->n_of_kind[kind] == 0 || (!is_switch && parent == LS_NODE_GPU))
      continue;
    int links = -1; /* the most usual ones: some may be degraded */
    uint64_t n_physical = 0;
    for (guint i = 0; i < map->links->len; i++) {
      const LsTopoLinks *row = &g_array_index (map->links, LsTopoLinks, i);
      if (row->a != (LsNodeKind) kind || row->b != parent)
        continue;
      if (links < 0 || row->n_physical > g_array_index (map->links, LsTopoLinks, links).n_physical)
        links = (int) i;
      n_physical += row->n_physical;
    }
    uint32_t n = (uint32_t) map->n_of_kind[kind];
    LsTopoPart *part = part_new ((LsNodeKind) kind, n, links, (uint32_t) (n_physical / n));
    g_ptr_array_add (at, part);
    at = part->children;
    parent = (LsNodeKind) kind;
  }
  return top;
}

/* --- the whole --- */

/* The first node of each kind but that of node 0. */
static void
add_others (LsTopoMap *map)
{
  const LsCluster *c = map->cluster;
  uint32_t seen = 1u << ls_cluster_kind_of (c, 0);
  for (uint32_t host = 1; host < c->spec.n_nodes && c->kind_of_host; host++) {
    uint32_t kind = ls_cluster_kind_of (c, host);
    if (seen >> kind & 1)
      continue;
    seen |= 1u << kind;
    if (!map->others)
      map->others = g_array_new (FALSE, FALSE, sizeof (LsTopoOther));
    g_array_append_val (map->others, ((LsTopoOther) { host, node_tree (map, host, true) }));
  }
}

char *
ls_topo_nodes_text (const LsCluster *c)
{
  const LsClusterSpec *s = &c->spec;
  GString *out = g_string_new (NULL);
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (s); k++) {
    uint32_t n = 0;
    for (uint32_t host = 0; host < s->n_nodes; host++)
      n += ls_cluster_kind_of (c, host) == k;
    if (n > 0)
      g_string_append_printf (out, "%s%u %sof %u x %s", out->len > 0 ? ", " : "", n,
                              out->len > 0 ? ""
                                  : n == 1 ? "node "
                                           : "nodes ",
                              ls_cluster_spec_of_kind (s, k)->gpus_per_node,
                              ls_cluster_spec_of_kind (s, k)->gpu.name);
  }
  return g_string_free (out, FALSE);
}

static void
map_parts (LsTopoMap *map)
{
  map->links = collect_links (map->cluster);
  map->node = node_tree (map, 0, true);
  map->each = node_tree (map, 0, false);
  add_others (map);
  map->fabric = fabric_tree (map);
}

static void
map_levels (LsTopoMap *map)
{
  map->levels = ls_topo_levels_new (map->cluster);
  map->node_bisection = ls_topo_node_bisection (map->cluster);
}

static void
map_halves (LsTopoMap *map)
{
  map->cluster_bisection = ls_topo_cluster_bisection (map->cluster);
}

static void (*const map_pieces[]) (LsTopoMap *)
    = { map_halves, map_parts, map_levels }; /* the longest first */

static void
map_piece (guint i, gpointer map)
{
  map_pieces[i](map);
}

LsTopoMap *
ls_topo_map_new (const LsCluster *c)
{
  LsTopoMap *map = g_new0 (LsTopoMap, 1);
  map->cluster = c;
  for (guint i = 0; i < c->nodes->len; i++)
    map->n_of_kind[ls_cluster_vertex (c, i)->kind]++;
  guint n_threads = c->links->len < 100000 ? 1 : 0; /* which take less time than threads */
  ls_parallel (G_N_ELEMENTS (map_pieces), n_threads, map_piece, map, NULL);
  return map;
}

void
ls_topo_map_free (LsTopoMap *map)
{
  if (!map)
    return;
  g_array_unref (map->links);
  g_array_unref (map->levels);
  g_ptr_array_unref (map->node);
  g_ptr_array_unref (map->each);
  for (guint i = 0; map->others && i < map->others->len; i++)
    g_ptr_array_unref (g_array_index (map->others, LsTopoOther, i).parts);
  g_clear_pointer (&map->others, g_array_unref);
  g_ptr_array_unref (map->fabric);
  g_clear_pointer (&map->assumptions, g_array_unref);
  g_free (map);
}

/* --- a way --- */

LsTopoPath *
ls_topo_path_new (const LsCluster *c, uint32_t from, uint32_t to)
{
  g_assert (from != to && from < c->n_gpus && to < c->n_gpus);
  LsRoute route;
  ls_route (c, from, to, 0, &route);
  LsTopoPath *path = g_new0 (LsTopoPath, 1);
  *path = (LsTopoPath) { .from = from, .to = to, .rate = INFINITY, .latency = route.latency };
  path->hops = g_array_new (FALSE, FALSE, sizeof (LsTopoHop));
  for (uint32_t i = 0; i < route.n_hops; i++) {
    LsTopoHop hop = { &g_array_index (c->trunks, LsTrunk, route.hop[i].trunk),
                      (double) route.hop[i].share / LS_HOP_WHOLE };
    double rate = hop.trunk->capacity_bytes_per_s / hop.share;
    if (rate < path->rate) {
      path->rate = rate;
      path->narrowest = i;
    }
    g_array_append_val (path->hops, hop);
  }
  return path;
}

void
ls_topo_path_free (LsTopoPath *path)
{
  if (!path)
    return;
  g_array_unref (path->hops);
  g_free (path);
}
