/* tests/support/fabric_cluster.h — fabrics and faults, in code. */
#ifndef LS_TESTS_FABRIC_CLUSTER_H
#define LS_TESTS_FABRIC_CLUSTER_H

#include "tiny_cluster.h"

/* Three tiers: 4 nodes a leaf, 8 a pod. All links alike: 4 spines a pod, and with
 * spine_oversubscription 1 as many uplinks a spine as leaves in its pod. */
static inline LsClusterSpec
tiny_fat_tree (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.fabric = LS_FABRIC_FAT_TREE;
  s.nodes_per_leaf = 4;
  s.nodes_per_pod = 8;
  s.spine_oversubscription = 1;
  s.core = s.spine;
  return s;
}

static inline LsClusterSpec
listed_fabric (uint32_t n_nodes, uint32_t rails)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.fabric = LS_FABRIC_LIST;
  s.rails = rails;
  s.switches = g_array_new (FALSE, FALSE, sizeof (char *));
  s.switch_links = g_array_new (FALSE, FALSE, sizeof (LsListLink));
  s.switch_nics = g_array_new (FALSE, FALSE, sizeof (LsListNics));
  return s;
}

static inline void
add_switch (LsClusterSpec *s, const char *name)
{
  char *own = g_strdup (name);
  g_array_append_val (s->switches, own);
}

static inline void
join_switches (LsClusterSpec *s, const char *from, const char *to, uint32_t count)
{
  LsListLink link = { .from = g_strdup (from), .to = g_strdup (to), .count = count };
  g_array_append_val (s->switch_links, link);
}

static inline void
place_nics (LsClusterSpec *s, uint32_t rail, uint32_t first, uint32_t last, const char *at)
{
  LsListNics nics = { .rail = rail, .first = first, .last = last, .at = g_strdup (at) };
  g_array_append_val (s->switch_nics, nics);
}

static inline void
add_fault (LsClusterSpec *s, const char *link, double capacity)
{
  LsFault fault = { .link = g_strdup (link), .capacity = capacity };
  if (!s->faults)
    s->faults = g_array_new (FALSE, FALSE, sizeof (LsFault));
  g_array_append_val (s->faults, fault);
}

static inline double
trunk_capacity (const LsCluster *c, const char *name)
{
  for (guint t = 0; t < c->trunks->len; t++)
    if (g_str_equal (g_array_index (c->trunks, LsTrunk, t).name, name))
      return g_array_index (c->trunks, LsTrunk, t).capacity_bytes_per_s;
  return -1;
}

#endif
