/* analysis/topology_bandwidth.c — what gets through a cluster at each level, and between its halves. */
#include "analysis/topology.h"

#include <math.h>

#include "analysis/maxflow.h"

#define NO_HOST UINT32_MAX

static const LsTopoNode *
vertex (const LsCluster *c, uint32_t v)
{
  return &g_array_index (c->nodes, LsTopoNode, v);
}

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

/* NAN as data-sheet rate where no data sheet is known; nothing where it failed. */
static LsBandwidth
rate_of (const LsCluster *c, const LsLink *link)
{
  const LsTrunk *trunk = trunk_of (c, link);
  double payload = trunk->is_failed ? 0 : link->capacity_bytes_per_s;
  return (LsBandwidth) { trunk->link ? payload / trunk->link->efficiency : NAN, payload };
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
  for (guint i = 0; i < c->links->len; i++)
    if (ls_topo_is_nvlink (c, link_at (c, i)) && !trunk_of (c, link_at (c, i))->is_failed)
      join (parent, link_at (c, i)->from, link_at (c, i)->to);
  uint32_t first = UINT32_MAX;
  for (guint v = 0; v < c->nodes->len; v++) {
    if (vertex (c, v)->kind != LS_NODE_GPU || vertex (c, v)->host != 0)
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

/* A GPU with all its links to others of its node: NVLink where that is enough. */
static LsTopoLevel
node_level (const LsCluster *c)
{
  bool by_nvlink = has_nvlink_between_all (c);
  g_autofree LsBandwidth *of = g_new0 (LsBandwidth, c->nodes->len);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = link_at (c, i);
    if (vertex (c, link->from)->kind == LS_NODE_GPU && vertex (c, link->to)->kind != LS_NODE_NIC
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
    if (vertex (c, v)->kind == LS_NODE_GPU) {
      add (&level.together, of[v]);
      level.each.data_sheet = fmin (level.each.data_sheet, of[v].data_sheet);
      level.each.payload = fmin (level.each.payload, of[v].payload);
    }
  level.all_gather = all_gather (level.each, level.n_parts);
  return level;
}

static int
tier_of (const LsCluster *c, uint32_t v)
{
  const LsTopoNode *node = vertex (c, v);
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
    if (part_of[v] != v || vertex (c, v)->host == NO_HOST) /* the root of what has nodes is in a node */
      continue;
    uint32_t group = root_of (k->parent, v);
    level.n_groups += k->n_parts[group]++ == 0;
    level.n_parts = MAX (level.n_parts, k->n_parts[group]);
    add (&level.together, k->out[v]);
    level.each.data_sheet = fmin (level.each.data_sheet, k->out[v].data_sheet);
    level.each.payload = fmin (level.each.payload, k->out[v].payload);
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
    bool is_next = v > 0 && vertex (c, v)->host != NO_HOST && vertex (c, v)->host == vertex (c, v - 1)->host;
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

/* Of how many bytes/s a unit of capacity is: one, as rates are sums of products of few digits, so that it is
 * exact; more where all links together would not count in 2^62. */
static double
unit_of (const LsCluster *c, Rate rate)
{
  double sum = 0;
  for (guint i = 0; i < c->links->len; i++)
    sum += bytes_per_s (rate_of (c, link_at (c, i)), rate);
  return fmax (1, sum / 0x1p61);
}

/* Over the links between the vertices below n: all, or those of NVLink. */
static double
cut (const LsCluster *c, uint32_t n, bool nvlink_only, const int8_t *side, Rate rate)
{
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (LsFlowEdge));
  bool is_known = true;
  double unit = unit_of (c, rate);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = link_at (c, i);
    if (link->from >= n || link->to >= n || (nvlink_only && !ls_topo_is_nvlink (c, link)))
      continue;
    LsBandwidth b = rate_of (c, link);
    LsFlowEdge edge = { link->from, link->to, llround (bytes_per_s (b, rate) / unit) };
    g_array_append_val (edges, edge);
    is_known = is_known && !isnan (b.data_sheet);
  }
  double flow = unit * (double) ls_max_flow (n, edges, side);
  g_array_unref (edges);
  return rate == DATA_SHEET && !is_known ? NAN : flow;
}

static LsBandwidth
both_cuts (const LsCluster *c, uint32_t n, bool nvlink_only, const int8_t *side)
{
  return (LsBandwidth) { cut (c, n, nvlink_only, side, DATA_SHEET), cut (c, n, nvlink_only, side, PAYLOAD) };
}

static uint32_t
vertices_of_a_node (const LsCluster *c)
{
  uint32_t n = 0;
  while (n < c->nodes->len && vertex (c, n)->host == 0)
    n++;
  return n;
}

/* The least of the axes that halve. */
static LsBandwidth
torus_bisection (const LsCluster *c)
{
  const LsTorusSpec *t = &c->spec.torus;
  uint32_t n = vertices_of_a_node (c);
  g_autofree int8_t *side = g_new0 (int8_t, n);
  LsBandwidth least = { INFINITY, INFINITY };
  for (uint32_t axis = 0; axis < t->n_axes; axis++) {
    if (t->dims[axis] < 2)
      continue;
    for (uint32_t v = 0; v < n; v++)
      if (vertex (c, v)->kind == LS_NODE_GPU)
        side[v] = ls_torus_coord (t, vertex (c, v)->index).at[axis] < t->dims[axis] / 2 ? -1 : 1;
    LsBandwidth here = both_cuts (c, n, true, side);
    if (here.payload < least.payload)
      least = here;
  }
  return least;
}

LsBandwidth
ls_topo_node_bisection (const LsCluster *c)
{
  if (ls_cluster_gpus_of (c, 0) < 2)
    return (LsBandwidth) { NAN, NAN };
  if (c->spec.interior == LS_INTERIOR_TORUS)
    return torus_bisection (c);
  uint32_t n = vertices_of_a_node (c);
  g_autofree int8_t *side = g_new0 (int8_t, n);
  for (uint32_t v = 0; v < n; v++)
    if (vertex (c, v)->kind == LS_NODE_GPU)
      side[v] = vertex (c, v)->index < ls_cluster_gpus_of (c, 0) / 2 ? -1 : 1;
  return both_cuts (c, n, has_nvlink_between_all (c), side);
}

LsBandwidth
ls_topo_cluster_bisection (const LsCluster *c)
{
  if (c->spec.n_nodes < 2)
    return (LsBandwidth) { NAN, NAN };
  uint32_t n = c->nodes->len;
  g_autofree int8_t *side = g_new0 (int8_t, n);
  for (uint32_t v = 0; v < n; v++)
    if (vertex (c, v)->kind == LS_NODE_GPU)
      side[v] = vertex (c, v)->host < c->spec.n_nodes / 2 ? -1 : 1;
  return both_cuts (c, n, false, side);
}
