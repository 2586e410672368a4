/* Pins dragonflies: what a group and a switch send by each routing, worked by hand; rates of flows inside a
 * group and across groups; ways, and links that failed; what is refused. */
#include "tiny_cluster.h"
#include "ls_test.h"
#include "route_agreement.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "cluster/fabric.h"
#include "core/maxmin.h"

#define RATE  25e9
#define SHARE 0.97 /* of a link that payload reaches */
#define FLY   LS_FABRIC_DRAGONFLY
#define PLUS  LS_FABRIC_DRAGONFLY_PLUS

/* The example of fabric_tree.c. */
static void
links_for_what_leaves (void)
{
  LS_CHECK_NEAR (ls_all_to_all_links (LS_ROUTING_ADAPTIVE, 74, 74, 4), 148, 1e-12);
  LS_CHECK_NEAR (ls_all_to_all_links (LS_ROUTING_IDEAL, 74, 74, 4), 148, 1e-12);
  LS_CHECK_NEAR (ls_all_to_all_links (LS_ROUTING_VALIANT, 74, 74, 4), 144, 1e-12);
  LS_CHECK_NEAR (ls_all_to_all_links (LS_ROUTING_MINIMAL, 74, 74, 4), 4, 1e-12);
  LS_CHECK_NEAR (ls_all_to_all_links (LS_ROUTING_ADAPTIVE, 74, 2, 4), 292, 1e-12);
  LS_CHECK_NEAR (ls_all_to_all_links (LS_ROUTING_ADAPTIVE, 74, 1, 4), 292, 1e-12);
  LS_CHECK_NEAR (ls_all_to_all_links (LS_ROUTING_ADAPTIVE, 2, 2, 4), 4, 1e-12);
  LS_CHECK_NEAR (ls_all_to_all_links (LS_ROUTING_VALIANT, 2, 2, 4), 4, 1e-12);
}

/* One step of the model by itself: each of n members sends to the next, each byte that is not on a direct
 * link over all others alike. The fullest link is full with what a member is said to have. */
static void
detours_fill_the_fullest_link (void)
{
  for (uint32_t n = 3; n < 12; n++)
    for (uint32_t n_busy = 3; n_busy <= n; n_busy++) {
      double out = ls_all_to_all_links (LS_ROUTING_ADAPTIVE, n, n_busy, 1), detour = (out - 1) / (n - 2);
      g_autofree double *load = g_new0 (double, n *n);
      for (uint32_t from = 0; from < n_busy; from++) {
        uint32_t to = (from + 1) % n_busy;
        load[from * n + to] += 1;
        for (uint32_t over = 0; over < n; over++)
          if (over != from && over != to) {
            load[from * n + over] += detour;
            load[over * n + to] += detour;
          }
      }
      for (uint32_t from = 0; from < n_busy; from++) {
        double sum = 0; /* out of a member: evenly used as a whole, as an arm of a star is */
        for (uint32_t to = 0; to < n; to++)
          sum += load[from * n + to];
        LS_CHECK_NEAR (sum, n - 1, 1e-12);
      }
    }
}

static double
capacity (uint32_t n_nodes, LsFabricId kind, LsRouting routing, const char *trunk)
{
  LsClusterSpec s = tiny_dragonfly (n_nodes, kind, routing);
  g_autoptr (LsCluster) c = build (&s);
  return c ? capacity_of (c, trunk) / SHARE / RATE : 0;
}

/* The example of a dragonfly in fabric_tree.c, in links. */
static void
arms_have_links_by_routing (void)
{
  LS_CHECK_NEAR (capacity (16, FLY, LS_ROUTING_IDEAL, "leaf5>locals"), 2, 1e-12);
  LS_CHECK_NEAR (capacity (16, FLY, LS_ROUTING_IDEAL, "group1>globals"), 7, 1e-12);
  LS_CHECK_NEAR (capacity (16, FLY, LS_ROUTING_ADAPTIVE, "globals>group0"), 7, 1e-12);
  LS_CHECK_NEAR (capacity (16, FLY, LS_ROUTING_VALIANT, "leaf5>locals"), 1, 1e-12);
  LS_CHECK_NEAR (capacity (16, FLY, LS_ROUTING_VALIANT, "group1>globals"), 6, 1e-12);
  LS_CHECK_NEAR (capacity (64, FLY, LS_ROUTING_IDEAL, "group7>globals"), 4, 1e-12);
  LS_CHECK_NEAR (capacity (4, FLY, LS_ROUTING_IDEAL, "leaf1>locals"), 3, 1e-12);
  LS_CHECK_NEAR (capacity (16, FLY, LS_ROUTING_MINIMAL, "leaf4>leaf7"), 1, 1e-12);
  LS_CHECK_NEAR (capacity (16, FLY, LS_ROUTING_MINIMAL, "group0>group1"), 1, 1e-12);
  LS_CHECK_NEAR (capacity (16, PLUS, LS_ROUTING_IDEAL, "leaf5>spines"), 2, 1e-12);
  LS_CHECK_NEAR (capacity (16, PLUS, LS_ROUTING_IDEAL, "group1>globals"), 7, 1e-12);
  LS_CHECK_NEAR (capacity (16, PLUS, LS_ROUTING_MINIMAL, "leaf5>spines"), 2, 1e-12);
  LS_CHECK_NEAR (capacity (16, PLUS, LS_ROUTING_MINIMAL, "group0>group1"), 1, 1e-12);
}

/* --- rates ------------------------------------------------------------------------------ */

#define MOST_FLOWS 64
#define MOST_USES  (MOST_FLOWS * 24)

/* The least rate of flows from the first GPU of node i to that of node (i + step) mod n, in links, i <
 * n_from. */
static double
least_rate (const LsCluster *c, uint32_t n_from, uint32_t n, uint32_t step)
{
  uint32_t first[MOST_FLOWS + 1] = { 0 }, res[MOST_USES], n_uses = 0;
  uint64_t coef[MOST_USES];
  double cap[MOST_FLOWS], rate[MOST_FLOWS];
  g_autofree double *capacities = g_new (double, ls_cluster_n_resources (c));
  for (uint32_t i = 0; i < ls_cluster_n_resources (c); i++)
    capacities[i] = ls_cluster_resource_capacity (c, i);
  for (uint32_t i = 0; i < n_from; i++) {
    LsRoute r;
    ls_route (c, 8 * i, 8 * ((i + step) % n), 0, &r);
    for (uint32_t k = 0; k < r.n_hops; k++, n_uses++) {
      res[n_uses] = r.hop[k].trunk;
      coef[n_uses] = r.hop[k].share;
    }
    first[i + 1] = n_uses;
    cap[i] = INFINITY;
  }
  LsMaxmin p = { .n_res = ls_cluster_n_resources (c),
                 .n_act = n_from,
                 .capacity = capacities,
                 .rate_cap = cap,
                 .first = first,
                 .res = res,
                 .coef = coef };
  g_autofree char *scratch = g_malloc (ls_maxmin_scratch_bytes (&p));
  ls_maxmin_solve (&p, scratch, rate);
  double least = INFINITY;
  for (uint32_t i = 0; i < n_from; i++)
    least = fmin (least, rate[i]);
  return least / SHARE / RATE;
}

static double
rate_of (LsFabricId kind, LsRouting routing, uint32_t n_from, uint32_t n, uint32_t step)
{
  LsClusterSpec s = tiny_dragonfly (16, kind, routing);
  g_autoptr (LsCluster) c = build (&s);
  return c ? least_rate (c, n_from, n, step) : 0;
}

/* Both nodes of a switch send to those of the next one: by detours at the rate of their NICs, by the one
 * direct link at half of it, as by detours alone. */
static void
inside_a_group (void)
{
  LS_CHECK_NEAR (rate_of (FLY, LS_ROUTING_IDEAL, 8, 8, 2), 1, 1e-6);
  LS_CHECK_NEAR (rate_of (FLY, LS_ROUTING_MINIMAL, 8, 8, 2), 0.5, 1e-6);
  LS_CHECK_NEAR (rate_of (FLY, LS_ROUTING_VALIANT, 8, 8, 2), 0.5, 1e-6);
  LS_CHECK_NEAR (rate_of (PLUS, LS_ROUTING_IDEAL, 8, 8, 2), 1, 1e-6);
}

/* All 8 nodes of a group send to the other group: over 7 links, over the direct one, and over 6 or, within
 * the group, half a link for each node. */
static void
across_groups (void)
{
  LS_CHECK_NEAR (rate_of (FLY, LS_ROUTING_IDEAL, 8, 16, 8), 7.0 / 8, 1e-6);
  LS_CHECK_NEAR (rate_of (FLY, LS_ROUTING_MINIMAL, 8, 16, 8), 1.0 / 8, 1e-6);
  LS_CHECK_NEAR (rate_of (FLY, LS_ROUTING_VALIANT, 8, 16, 8), 0.5, 1e-6);
  LS_CHECK_NEAR (rate_of (PLUS, LS_ROUTING_IDEAL, 8, 16, 8), 7.0 / 8, 1e-6);
  LS_CHECK_NEAR (rate_of (PLUS, LS_ROUTING_MINIMAL, 8, 16, 8), 1.0 / 8, 1e-6);
  LS_CHECK_NEAR (rate_of (PLUS, LS_ROUTING_VALIANT, 8, 16, 8), 6.0 / 8, 1e-6);
  /* Both ways at once, no faster and no slower. */
  LS_CHECK_NEAR (rate_of (FLY, LS_ROUTING_IDEAL, 16, 16, 8), 7.0 / 8, 1e-6);
}

/* --- ways ------------------------------------------------------------------------------- */

static char *
way_of (const LsCluster *c, uint32_t from, uint32_t to, LsTime *ret_latency)
{
  LsRoute r;
  ls_route (c, 8 * from, 8 * to, 0, &r);
  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < r.n_hops; i++) {
    const char *name = g_array_index (c->trunks, LsTrunk, r.hop[i].trunk).name;
    if (!strstr (name, "node"))
      g_string_append_printf (text, "%s%s %g", text->len > 0 ? ", " : "", name,
                              (double) r.hop[i].share / LS_HOP_WHOLE);
  }
  *ret_latency = r.latency;
  return g_string_free (text, FALSE);
}

/* A link within a group takes 0.5 us, one between groups 1 us, and what is beside them always the same. */
static void
ways_read_as_expected (void)
{
  static const struct {
    LsFabricId kind;
    LsRouting routing;
    uint32_t to;
    LsTime latency;
    const char *way;
  } cases[] = {
    { FLY, LS_ROUTING_IDEAL, 1, 0, "" },
    { FLY, LS_ROUTING_IDEAL, 2, LS_US / 2, "leaf0>locals 1, locals>leaf1 1" },
    { FLY, LS_ROUTING_IDEAL, 8, 2 * LS_US,
      "leaf0>locals 1, group0>globals 1, globals>group1 1, locals>leaf4 1" },
    { FLY, LS_ROUTING_VALIANT, 8, 7 * LS_US / 2,
      "leaf0>locals 1, group0>globals 1, globals>group1 1, locals>leaf4 1" },
    { PLUS, LS_ROUTING_IDEAL, 8, 2 * LS_US,
      "leaf0>spines 1, group0>globals 1, globals>group1 1, spines>leaf4 1" },
    { FLY, LS_ROUTING_MINIMAL, 2, LS_US / 2, "leaf0>leaf1 1" },
    { FLY, LS_ROUTING_MINIMAL, 8, 2 * LS_US,
      "leaf0>leaf1 0.5, group0>group1 1, leaf6>leaf4 0.5, leaf7>leaf4 0.5" },
    { PLUS, LS_ROUTING_MINIMAL, 8, 2 * LS_US, "leaf0>spines 1, group0>group1 1, spines>leaf4 1" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsClusterSpec s = tiny_dragonfly (16, cases[i].kind, cases[i].routing);
    if (cases[i].routing == LS_ROUTING_MINIMAL) { /* the example of fabric_minimal.c */
      s.network.groups = 3;
      s.network.global_links = 2;
    }
    g_autoptr (LsCluster) c = build (&s);
    if (!c)
      return;
    LsTime beside, latency;
    g_free (way_of (c, 0, 1, &beside));
    g_autofree char *way = way_of (c, 0, cases[i].to, &latency);
    LS_CHECK_STR (way, cases[i].way);
    LS_CHECK_INT (latency - beside, ==, cases[i].latency);
  }
}

static void
ways_agree_with_search (void)
{
  LsClusterSpec specs[] = {
    tiny_dragonfly (64, FLY, LS_ROUTING_IDEAL),     tiny_dragonfly (21, FLY, LS_ROUTING_VALIANT),
    tiny_dragonfly (40, PLUS, LS_ROUTING_ADAPTIVE), tiny_dragonfly (5, FLY, LS_ROUTING_IDEAL),
    tiny_dragonfly (40, PLUS, LS_ROUTING_MINIMAL),  tiny_dragonfly (8, FLY, LS_ROUTING_MINIMAL),
  };
  specs[0].nics.n = specs[0].network.rails = 8;
  specs[2].nics.n = 4;
  specs[2].network.rails = 2;
  specs[4].network.global_links = 3; /* at two spines */
  for (guint i = 0; i < G_N_ELEMENTS (specs); i++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (8000 + i);
    LS_CHECK (agree_on_pairs (&specs[i], rand, 40));
  }
}

/* What goes into a group comes out of it, and the way back mirrors the way there. */
static void
minimal_ways_are_whole (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  for (guint i = 0; i < 200; i++) {
    LsClusterSpec s = tiny_dragonfly ((uint32_t) g_rand_int_range (rand, 9, 65), FLY, LS_ROUTING_MINIMAL);
    s.network.global_links = (uint32_t) g_rand_int_range (rand, 1, 8);
    s.network.groups = (uint32_t) g_rand_int_range (rand, 8, 20);
    g_autoptr (LsCluster) c = build (&s);
    if (!c)
      return;
    uint32_t from = (uint32_t) g_rand_int_range (rand, 0, 8),
             to = (uint32_t) g_rand_int_range (rand, 8, (gint32) s.n_nodes);
    g_autofree double *there = g_new0 (double, c->n_trunks), *back = g_new0 (double, c->n_trunks);
    LsRoute r;
    ls_route (c, 8 * from, 8 * to, 0, &r);
    LS_CHECK (loads_of (&r, there));
    ls_route (c, 8 * to, 8 * from, 0, &r);
    LS_CHECK (loads_of (&r, back));
    double at_leaves = 0, at_gateways = 0; /* beyond those that are both */
    for (guint k = 0; k < c->links->len; k++) {
      const LsLink *link = &g_array_index (c->links, LsLink, k);
      const LsTrunk *trunk = &g_array_index (c->trunks, LsTrunk, link->trunk);
      LS_CHECK_NEAR (1 + there[link->trunk], 1 + back[link->trunk ^ 1], 1e-5);
      if (g_str_has_prefix (trunk->name, "group") && there[link->trunk] > 0) {
        double part = (double) link->n_physical / s.network.global_links;
        at_gateways += part * (link->from != c->nodes->len - c->index->fabric->n_vertices + from / 2);
        at_gateways += part * (link->to != c->nodes->len - c->index->fabric->n_vertices + to / 2);
      } else if (trunk->from == LS_NODE_LEAF && trunk->to == LS_NODE_LEAF)
        at_leaves += there[link->trunk];
    }
    LS_CHECK_NEAR (1 + at_leaves, 1 + at_gateways, 1e-5);
  }
}

/* --- links that failed ------------------------------------------------------------------ */

static void
fail_link (LsClusterSpec *s, const char *link, uint32_t n)
{
  add_fault (s, link, 1);
  g_array_index (s->network.faults, LsFault, s->network.faults->len - 1).failed_links = n;
}

static void
a_global_link_fails (void)
{
  LsClusterSpec s = tiny_dragonfly (16, FLY, LS_ROUTING_IDEAL);
  fail_link (&s, "group0>globals", 1);
  g_autoptr (LsCluster) c = build (&s);
  if (LS_CHECK (c != NULL))
    LS_CHECK_NEAR (least_rate (c, 8, 16, 8), 6.0 / 8, 1e-6);
  ls_cluster_spec_clear (&s);

  s = tiny_dragonfly (16, FLY, LS_ROUTING_MINIMAL);
  s.network.global_links = 2;
  fail_link (&s, "group1>group0", 1);
  g_autoptr (LsCluster) minimal = build (&s);
  if (LS_CHECK (minimal != NULL))
    LS_CHECK_NEAR (least_rate (minimal, 8, 16, 8), 1.0 / 8, 1e-6);
  ls_cluster_spec_clear (&s);
}

/* A gateway that a switch does not reach is left out: what is left of two takes all. */
static void
a_local_link_fails (void)
{
  LsClusterSpec s = tiny_dragonfly (16, FLY, LS_ROUTING_MINIMAL);
  s.network.groups = 3;
  s.network.global_links = 2;
  add_fault (&s, "leaf4>leaf7", 0);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) cut = ls_cluster_build (&s, &error);
  LS_CHECK (!cut && g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT)
            && strstr (error->message, "no way from leaf4 (node8/nic0) to leaf7 (node14/nic0)"));
  ls_cluster_spec_clear (&s);

  s = tiny_dragonfly (9, FLY, LS_ROUTING_MINIMAL); /* nobody is at leaf 7 */
  s.network.groups = 3;
  s.network.global_links = 2;
  add_fault (&s, "group0>group1", 0);
  g_clear_error (&error);
  g_autoptr (LsCluster) apart = ls_cluster_build (&s, &error);
  LS_CHECK (!apart && strstr (error->message, "faults: no way from leaf0"));
  ls_cluster_spec_clear (&s);
}

/* --- what is refused -------------------------------------------------------------------- */

static void
refuse (LsClusterSpec s, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (&s, &error);
  LS_CHECK (c == NULL);
  if (!g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT) || !strstr (error->message, part))
    ls_check_impl (false, __FILE__, __LINE__, "expected \"%s\", got \"%s\"", part,
                   error ? error->message : "no error");
}

#define REFUSE(part, ...)                                                                                    \
  G_STMT_START                                                                                               \
  {                                                                                                          \
    LsClusterSpec s = tiny_dragonfly (16, FLY, LS_ROUTING_IDEAL);                                            \
    __VA_ARGS__;                                                                                             \
    refuse (s, part);                                                                                        \
  }                                                                                                          \
  G_STMT_END

static void
what_cannot_be_built_is_refused (void)
{
  REFUSE ("16 nodes fill 2 groups of 8 nodes; the machine has 1 (\"groups\")", s.network.groups = 1);
  REFUSE ("7 nodes per group do not deal out to leaves of 2", s.network.nodes_per_group = 7);
  REFUSE ("routing \"ecmp\" has no meaning in a dragonfly", s.network.routing = LS_ROUTING_ECMP);
  REFUSE ("routing \"spray\" has no meaning", s.network.routing = LS_ROUTING_SPRAY);
  REFUSE ("a group of 8 nodes is one switch", s.network.nodes_per_leaf = 8);
  REFUSE ("fabric global_link", s.network.core.efficiency = 0);
  REFUSE ("0 links between any two of 8 groups", s.network.global_links = 0);
  REFUSE ("0 links between any two of the 4 switches", s.network.local_links = 0);
  REFUSE ("expected at most 60", s.network.routing = LS_ROUTING_MINIMAL, s.network.global_links = 64,
          s.network.nodes_per_group = 128);
  REFUSE ("oversubscription 3 leaves 0.667 uplinks per leaf", s.fabric = PLUS,
          s.network.oversubscription = 3);
  REFUSE ("routing \"minimal\" has a meaning in a dragonfly alone", s.fabric = LS_FABRIC_LEAF_SPINE,
          s.network.routing = LS_ROUTING_MINIMAL);
}

LS_TEST_SUITE (LS_TEST (links_for_what_leaves), LS_TEST (detours_fill_the_fullest_link),
               LS_TEST (arms_have_links_by_routing), LS_TEST (inside_a_group), LS_TEST (across_groups),
               LS_TEST (ways_read_as_expected), LS_TEST (ways_agree_with_search),
               LS_TEST (minimal_ways_are_whole), LS_TEST (a_global_link_fails), LS_TEST (a_local_link_fails),
               LS_TEST (what_cannot_be_built_is_refused))
