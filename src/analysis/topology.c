/* Counts, kinds of links and the tree of a node; levels and bisections are in
 * topology_bandwidth.c. */
#include "analysis/topology.h"

#include <math.h>
#include <string.h>

/* --- kinds of vertices --- */

static const struct {
  const char *name;
  int depth; /* in the drawing of a node: links are read from the deeper end */
} kinds[LS_TOPO_MAX_KINDS] = {
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

static const LsTopoNode *
vertex (const LsCluster *c, uint32_t v)
{
  return &g_array_index (c->nodes, LsTopoNode, v);
}

bool
ls_topo_is_nvlink (const LsCluster *c, const LsLink *link)
{
  LsNodeKind a = vertex (c, link->from)->kind, b = vertex (c, link->to)->kind;
  return (a == LS_NODE_GPU && (b == LS_NODE_GPU || b == LS_NODE_NVSWITCH))
      || (a == LS_NODE_NVSWITCH && b == LS_NODE_GPU);
}

static LsBandwidth
rate_of (double payload, const LsLinkSpec *link)
{
  return (LsBandwidth) { link ? payload / link->efficiency : NAN, payload };
}

LsBandwidth
ls_topo_links_rate (const LsTopoLinks *links)
{
  return rate_of (links->capacity_bytes_per_s, links->link);
}

LsBandwidth
ls_topo_trunk_rate (const LsTrunk *trunk)
{
  return rate_of (trunk->is_failed ? 0 : trunk->capacity_bytes_per_s, trunk->link);
}

/* --- kinds of links --- */

static const char *
name_in_spec (const LsClusterSpec *s, const LsLinkSpec *link)
{
  const struct {
    const LsLinkSpec *link;
    const char *name;
  } names[] = {
    { &s->nvlink, "nvlink" },     { &s->pcie, "pcie" },
    { &s->c2c, "nvlink-c2c" },    { &s->cpu_interconnect, "cpu interconnect" },
    { &s->cpu_memory, "memory" }, { &s->nvme, "nvme" },
    { &s->ici, "ici" },           { &s->nic, "nic" },
    { &s->spine, "fabric" },      { &s->core, ls_is_dragonfly (s) ? "global" : "core" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (names[i].link == link)
      return names[i].name;
  return link == &s->write_bridge || link == &s->write_sockets ? "p2p writes" : NULL;
}

static const char *
name_of_link (const LsClusterSpec *s, const LsLinkSpec *link)
{
  const char *name = NULL;
  for (uint32_t k = 0; !name && k < ls_cluster_spec_n_kinds (s); k++)
    name = name_in_spec (ls_cluster_spec_of_kind (s, k), link);
  return name ? name : "link";
}

static bool
is_same_link (const LsLinkSpec *x, const LsLinkSpec *y)
{
  if (!x || !y || x == y)
    return x == y;
  return x->bandwidth_bytes_per_s == y->bandwidth_bytes_per_s && x->efficiency == y->efficiency
      && x->latency == y->latency && g_strcmp0 (x->source, y->source) == 0;
}

static bool
is_alike (const LsTopoLinks *x, const LsTopoLinks *y)
{
  return x->a == y->a && x->b == y->b && x->capacity_bytes_per_s == y->capacity_bytes_per_s
      && x->latency == y->latency && strcmp (x->name, y->name) == 0 && is_same_link (x->link, y->link);
}

/* What a link is; its row is looked up by this. */
static LsTopoLinks
describe (const LsCluster *c, const LsLink *link)
{
  LsNodeKind a = vertex (c, link->from)->kind, b = vertex (c, link->to)->kind;
  bool is_upward = kinds[a].depth >= kinds[b].depth;
  const LsTrunk *trunk = &g_array_index (c->trunks, LsTrunk, link->trunk);
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
  for (guint i = 0; i < rows->len; i++)
    if (is_alike (&g_array_index (rows, LsTopoLinks, i), what))
      return (int) i;
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
  of[root] = part_new (vertex (c, root)->kind, 1, -1, 0);
  of[root]->vertex = root;
  g_ptr_array_add (roots, of[root]);
  g_array_append_val (queue, root);
  for (guint i = 0; i < queue->len; i++) {
    uint32_t v = g_array_index (queue, uint32_t, i);
    for (guint l = t->first[v - t->base]; l != G_MAXUINT; l = t->next[l]) {
      const LsLink *link = g_ptr_array_index (t->inside, l);
      uint32_t child = link->to;
      if (of[child] || !adopts (vertex (c, v)->kind, vertex (c, child)->kind))
        continue;
      LsTopoLinks what = describe (c, link);
      of[child] = part_new (vertex (c, child)->kind, 1, find_row (t->map->links, &what), link->n_physical);
      of[child]->vertex = child;
      g_ptr_array_add (of[v]->children, of[child]);
      g_array_append_val (queue, child);
    }
  }
  g_array_unref (queue);
}

/* Of a row, what of it is in this node. */
static void
count_inside (const NodeTree *t, int row, uint32_t *ret_n_pairs, uint32_t *ret_n_physical)
{
  uint32_t n_pairs = 0, n_physical = 0;
  for (guint i = 0; i < t->inside->len; i++) {
    const LsLink *link = g_ptr_array_index (t->inside, i);
    LsTopoLinks what = describe (t->map->cluster, link);
    if (find_row (t->map->links, &what) != row)
      continue;
    n_pairs++;
    n_physical += link->n_physical;
  }
  *ret_n_pairs = (n_pairs + 1) / 2; /* two directions */
  *ret_n_physical = (n_physical + 1) / 2;
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
    uint32_t n_pairs = 0, n_physical = 0;
    if (is_nvswitch || is_peers)
      count_inside (t, (int) i, &n_pairs, &n_physical);
    if (n_pairs == 0)
      continue;
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
    nvswitches->n += vertex (c, v)->kind == LS_NODE_NVSWITCH;
  nvswitches->n_physical = n_nvlinks / ls_cluster_gpus_of (c, vertex (c, t->base)->host);
}

static GPtrArray *
node_tree (const LsTopoMap *map, uint32_t host, bool collapses)
{
  static const LsNodeKind order[]
      = { LS_NODE_CPU, LS_NODE_PCIE_SWITCH, LS_NODE_GPU, LS_NODE_NIC, LS_NODE_NVME, LS_NODE_CPU_MEMORY };
  const LsCluster *c = map->cluster;
  GPtrArray *roots = g_ptr_array_new_with_free_func (part_free);
  NodeTree t = { .map = map, .inside = g_ptr_array_new () };
  while (vertex (c, t.base)->host != host)
    t.base++;
  while (t.base + t.n < c->nodes->len && vertex (c, t.base + t.n)->host == host)
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
      if (vertex (c, t.base + v)->kind == order[k] && !t.parts[v])
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
  for (int kind = LS_TOPO_MAX_KINDS - 1; kind >= LS_NODE_NIC; kind--) {
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

LsTopoMap *
ls_topo_map_new (const LsCluster *c)
{
  LsTopoMap *map = g_new0 (LsTopoMap, 1);
  map->cluster = c;
  for (guint i = 0; i < c->nodes->len; i++)
    map->n_of_kind[vertex (c, i)->kind]++;
  map->links = collect_links (c);
  map->node = node_tree (map, 0, true);
  map->each = node_tree (map, 0, false);
  add_others (map);
  map->fabric = fabric_tree (map);
  map->levels = ls_topo_levels_new (c);
  map->node_bisection = ls_topo_node_bisection (c);
  map->cluster_bisection = ls_topo_cluster_bisection (c);
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
  g_free (map);
}

/* --- a way --- */

LsTopoPath *
ls_topo_path_new (const LsCluster *c, uint32_t from, uint32_t to)
{
  g_assert (from != to && from < c->n_gpus && to < c->n_gpus);
  LsRoute route;
  ls_route (c, from, to, LS_NIC_AUTO, LS_NIC_AUTO, &route);
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
