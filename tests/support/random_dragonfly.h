/* tests/support/random_dragonfly.h — dragonflies of either kind, with any routing, of a few nodes. */
#ifndef LS_TESTS_RANDOM_DRAGONFLY_H
#define LS_TESTS_RANDOM_DRAGONFLY_H

#include "tiny_cluster.h"

static inline LsRouting
random_dragonfly_routing (GRand *rand)
{
  static const LsRouting routings[] = { LS_ROUTING_IDEAL, LS_ROUTING_MINIMAL, LS_ROUTING_VALIANT };
  return routings[g_rand_int_range (rand, 0, G_N_ELEMENTS (routings))];
}

/* Without faults and rails. */
static inline LsClusterSpec
random_dragonfly (GRand *rand, uint32_t n_nodes)
{
  static const uint32_t global_links[] = { 1, 3, 8 };
  LsFabricId kind = g_rand_boolean (rand) ? LS_FABRIC_DRAGONFLY : LS_FABRIC_DRAGONFLY_PLUS;
  LsClusterSpec s = tiny_dragonfly (n_nodes, kind, random_dragonfly_routing (rand));
  s.network.nodes_per_leaf = g_rand_boolean (rand) ? 1 : 2;
  s.network.nodes_per_group = 4;
  s.nics.n = g_rand_boolean (rand) ? 1 : 8;
  s.network.local_links = g_rand_boolean (rand) ? 1 : 4;
  s.network.global_links = global_links[g_rand_int_range (rand, 0, 3)];
  s.network.groups = (n_nodes + 3) / 4 + (uint32_t) g_rand_int_range (rand, 0, 10);
  return s;
}

/* With rails or without, and perhaps with links between groups at half their rate. Of 8 nodes, in two
 * groups. */
static inline LsClusterSpec
random_dragonfly_with_faults (GRand *rand)
{
  LsClusterSpec s = random_dragonfly (rand, 8);
  s.network.rails = s.nics.n == 8 && g_rand_boolean (rand) ? 8 : 1;
  if (g_rand_int_range (rand, 0, 4) == 0)
    add_fault (&s, s.network.routing == LS_ROUTING_MINIMAL ? "group0>group1" : "group1>globals", 0.5);
  return s;
}

#endif
