/* cluster/fabric_minimal.c — dragonfly and dragonfly+ (fabric.h) with minimal routing: direct links alone.
 *
 * Each pair of groups has a trunk of its own, and so has each pair of switches of a group of a dragonfly; a
 * group of a dragonfly+ is a leaf-spine. A link between two groups begins at one switch of each, its
 * gateways: link j from group G to group H of g at switch ((H - G - 1) mod g * global_links + j) mod
 * switches of the group, of a dragonfly+ at that spine. A flow between groups spreads evenly over the links
 * between them, and so in its groups over the gateways.
 *
 * Worked example. 3 groups of 4 switches, two links between any two groups. From group 0 to group 1 they
 * begin at switches 0 and 1, and end at switches 2 and 3 of group 1, for which group 0 is the one after
 * next. A flow from switch 0 has half at the gateway at once, and half on the link to switch 1.
 *
 * Trunks behind the nodes, in pairs, of two members the one with the lower number first:
 *
 *     dragonfly    switch > switch by (group, pair), then group > group by pair
 *     dragonfly+   leaf > spines of each leaf, then group > group by pair
 *
 * A link that failed is gone around over other links between the same two, and over nothing else. */
#include "cluster/index.h"

typedef struct {
  LsFabric base;
  bool has_spines;
  uint32_t n_groups, leaves; /* with nodes; of each */
  uint32_t ends, n_gateways; /* switches of a group at which links to others may begin; those to one other */
  uint32_t t_globals;        /* trunks before those between groups */
} Minimal;

/* Pairs of n, and the number of one of them. */
static uint32_t
n_pairs (uint32_t n)
{
  return n * (n - 1) / 2;
}
static uint32_t
pair_of (uint32_t n, uint32_t a, uint32_t b)
{
  uint32_t low = MIN (a, b), high = MAX (a, b);
  return low * (2 * n - low - 1) / 2 + high - low - 1;
}

static double
n_links (const LsClusterSpec *s)
{
  double groups = ls_dragonfly_n_groups (s), leaves = ls_dragonfly_leaves (s),
         locals = ls_dragonfly_has_spines (s) ? leaves * ls_dragonfly_spines (s) : leaves * (leaves - 1) / 2;
  return 2
      * ((double) s->n_nodes * s->nics.n + groups * locals
         + groups * (groups - 1) / 2 * s->network.global_links);
}

static LsFabric *
minimal_new (const LsClusterSpec *s, LsArena *arena)
{
  Minimal *f = ls_arena_new_array (arena, Minimal, 1);
  f->has_spines = ls_dragonfly_has_spines (s);
  f->n_groups = ls_dragonfly_n_groups (s);
  f->leaves = ls_dragonfly_leaves (s);
  f->ends = f->has_spines ? ls_dragonfly_spines (s) : f->leaves;
  f->n_gateways = MIN (f->ends, s->network.global_links);
  uint32_t locals = s->nics.n == 0 ? 0 : f->has_spines ? f->leaves : n_pairs (f->leaves);
  f->t_globals = 2 * f->n_groups * locals;
  f->base = (LsFabric) {
    .n_vertices = f->n_groups * (f->leaves + (f->has_spines ? f->ends : 0)),
    .n_trunks = f->t_globals + (f->n_groups > 1 ? 2 * n_pairs (f->n_groups) : 0),
    .n_edges = f->n_groups * f->leaves,
  };
  return &f->base;
}

/* --- gateways --- */

/* Switches of both groups, by their numbers there, and how many of the links they join. */
typedef struct {
  uint32_t from, to, n_links;
} Gateway;

static uint32_t
end_of (const Minimal *f, uint32_t group, uint32_t other, uint32_t link)
{
  uint32_t groups = f->base.spec->network.groups, distance = (other + groups - group - 1) % groups;
  return (uint32_t) (((uint64_t) distance * f->base.spec->network.global_links + link) % f->ends);
}

static Gateway
gateway_of (const Minimal *f, uint32_t from, uint32_t to, uint32_t i)
{
  uint32_t n = f->base.spec->network.global_links;
  return (Gateway) { .from = end_of (f, from, to, i),
                     .to = end_of (f, to, from, i),
                     .n_links = n / f->n_gateways + (i < n % f->n_gateways) };
}

/* --- trunks --- */

/* From one to the other of a pair. */
static uint32_t
local_trunk (const Minimal *f, uint32_t group, uint32_t from, uint32_t to)
{
  return f->base.first_trunk + 2 * (group * n_pairs (f->leaves) + pair_of (f->leaves, from, to))
      + (from > to);
}
static uint32_t
global_trunk (const Minimal *f, uint32_t from, uint32_t to)
{
  return f->base.first_trunk + f->t_globals + 2 * pair_of (f->n_groups, from, to) + (from > to);
}

/* Out of a leaf of a dragonfly+; into it is the next. */
static uint32_t
spine_trunk (const Minimal *f, uint32_t leaf)
{
  return f->base.first_trunk + 2 * leaf;
}

/* --- layout --- */

static LsEnd
leaf_end (const Minimal *f, uint32_t group, uint32_t i)
{
  uint32_t leaf = group * f->leaves + i;
  return LS_TREE_LEAF (f->base.first_vertex + leaf, leaf);
}

/* Where links between groups begin. */
static uint32_t
end_vertex (const Minimal *f, uint32_t group, uint32_t i)
{
  return f->base.first_vertex + (f->has_spines ? f->base.n_edges : 0) + group * f->ends + i;
}

static void
add_locals (const Minimal *f, LsCluster *c, uint32_t group)
{
  const LsClusterSpec *s = &c->spec;
  for (uint32_t i = 0; i < f->leaves; i++) {
    if (f->has_spines)
      ls_layout_pair (c, leaf_end (f, group, i),
                      LS_END (end_vertex (f, group, 0), LS_NO_NUMBER, "spines", LS_NO_NUMBER), f->ends,
                      f->ends, &s->network.spine);
    for (uint32_t j = i + 1; j < f->leaves && !f->has_spines; j++)
      ls_layout_pair (c, leaf_end (f, group, i), leaf_end (f, group, j), 1, s->network.local_links,
                      &s->network.spine);
  }
}

static void
add_globals (const Minimal *f, LsCluster *c, uint32_t from, uint32_t to)
{
  ls_layout_trunks (c, LS_END (0, LS_NO_NUMBER, "group", from), LS_END (0, LS_NO_NUMBER, "group", to),
                    &c->spec.network.core);
  for (uint32_t i = 0; i < f->n_gateways; i++) {
    Gateway g = gateway_of (f, from, to, i);
    ls_layout_links (c, end_vertex (f, from, g.from), end_vertex (f, to, g.to), g.n_links,
                     &c->spec.network.core);
  }
}

static void
lay_out (const LsFabric *fabric, LsCluster *c)
{
  const Minimal *f = (const Minimal *) fabric;
  ls_layout_vertices (c, LS_NODE_LEAF, LS_NO_NUMBER, fabric->n_edges);
  ls_layout_vertices (c, LS_NODE_SPINE, LS_NO_NUMBER, fabric->n_vertices - fabric->n_edges);
  for (uint32_t group = 0; group < f->n_groups; group++)
    add_locals (f, c, group);
  for (uint32_t from = 0; from < f->n_groups; from++)
    for (uint32_t to = from + 1; to < f->n_groups; to++)
      add_globals (f, c, from, to);
}

/* --- ways --- */

static bool
local_works (const Minimal *f, const LsCluster *c, uint32_t group, uint32_t from, uint32_t to)
{
  return from == to || !ls_trunk_is_failed (c, local_trunk (f, group, from, to));
}

/* Whether a way leads over this gateway from a leaf of the one group to a leaf of the other. */
static bool
gateway_works (const Minimal *f, const LsCluster *c, uint32_t from, uint32_t to, const Gateway *g)
{
  return f->has_spines
      || (local_works (f, c, from / f->leaves, from % f->leaves, g->from)
          && local_works (f, c, to / f->leaves, g->to, to % f->leaves));
}

static bool
spines_work (const Minimal *f, const LsCluster *c, uint32_t from, uint32_t to)
{
  return !f->has_spines
      || !(ls_trunk_is_failed (c, spine_trunk (f, from)) || ls_trunk_is_failed (c, spine_trunk (f, to) + 1));
}

/* Links between the groups over which a way leads. */
static uint32_t
n_working (const Minimal *f, const LsCluster *c, uint32_t from, uint32_t to)
{
  uint32_t n = 0, group_from = from / f->leaves, group_to = to / f->leaves;
  if (!spines_work (f, c, from, to) || ls_trunk_is_failed (c, global_trunk (f, group_from, group_to)))
    return 0;
  for (uint32_t i = 0; i < f->n_gateways; i++) {
    Gateway g = gateway_of (f, group_from, group_to, i);
    n += gateway_works (f, c, from, to, &g) ? g.n_links : 0;
  }
  return n;
}

static bool
reaches (const LsFabric *fabric, const LsCluster *c, uint32_t from, uint32_t to)
{
  const Minimal *f = (const Minimal *) fabric;
  if (from == to)
    return true;
  if (from / f->leaves != to / f->leaves)
    return n_working (f, c, from, to) > 0;
  return f->has_spines ? spines_work (f, c, from, to)
                       : local_works (f, c, from / f->leaves, from % f->leaves, to % f->leaves);
}

/* Within the group of a leaf, what goes out of it to gateways, or comes from these: each gets what its share
 * of the links is, and the last of them what is left of all. */
static void
spread (const Minimal *f, const LsCluster *c, uint32_t from, uint32_t to, uint32_t n, bool is_out, LsRoute *r)
{
  uint32_t group_from = from / f->leaves, group_to = to / f->leaves, left = n, share_left = LS_HOP_WHOLE;
  bool has_hop = false;
  for (uint32_t i = 0; i < f->n_gateways; i++) {
    Gateway g = gateway_of (f, group_from, group_to, i);
    if (!gateway_works (f, c, from, to, &g))
      continue;
    uint32_t share = (uint32_t) ((uint64_t) share_left * g.n_links / left);
    left -= g.n_links;
    share_left -= share;
    uint32_t own = (is_out ? from : to) % f->leaves, gateway = is_out ? g.from : g.to;
    if (own == gateway || share == 0)
      continue;
    uint32_t trunk
        = is_out ? local_trunk (f, group_from, own, gateway) : local_trunk (f, group_to, gateway, own);
    ls_route_hop (r, trunk, has_hop ? 0 : f->base.spec->network.spine.latency);
    r->hop[r->n_hops - 1].share = share;
    has_hop = true;
  }
}

static void
cross (const Minimal *f, const LsCluster *c, uint32_t from, uint32_t to, LsRoute *r)
{
  const LsClusterSpec *s = f->base.spec;
  uint32_t group_from = from / f->leaves, group_to = to / f->leaves;
  uint32_t n = group_from == group_to || f->has_spines ? 0 : n_working (f, c, from, to);
  if (f->has_spines)
    ls_route_hop (r, spine_trunk (f, from), s->network.spine.latency);
  if (n > 0)
    spread (f, c, from, to, n, true, r);
  if (group_from != group_to)
    ls_route_hop (r, global_trunk (f, group_from, group_to), s->network.core.latency);
  else if (!f->has_spines)
    ls_route_hop (r, local_trunk (f, group_from, from % f->leaves, to % f->leaves), s->network.spine.latency);
  if (n > 0)
    spread (f, c, from, to, n, false, r);
  if (f->has_spines)
    ls_route_hop (r, spine_trunk (f, to) + 1, s->network.spine.latency);
}

static void
way (const LsFabric *fabric, const LsCluster *c, const LsFabricFlow *flow, LsRoute *r)
{
  const Minimal *f = (const Minimal *) fabric;
  uint32_t from = ls_tree_leaf_of (fabric, flow->node_from, flow->nic_from),
           to = ls_tree_leaf_of (fabric, flow->node_to, flow->nic_to);
  if (from != to)
    cross (f, c, from, to, r);
}

const LsFabricKind ls_fabric_minimal = {
  .name = "minimal",
  .check = ls_dragonfly_check,
  .n_links = n_links,
  .new = minimal_new,
  .lay_out = lay_out,
  .edge = ls_tree_leaf_of,
  .reaches = reaches,
  .way = way,
};
