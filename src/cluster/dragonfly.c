#include "cluster/dragonfly.h"

#include <math.h>

#include "cluster/spec.h"
#include "cluster/tree.h"

/* Over which a flow splits with minimal routing: three trunks each (route.h). */
#define MAX_GATEWAYS 60

uint32_t
ls_dragonfly_leaves (const LsClusterSpec *s)
{
  return s->nics == 0 ? 0 : s->nodes_per_group / s->nodes_per_leaf * s->rails;
}

uint32_t
ls_dragonfly_spines (const LsClusterSpec *s)
{
  return ls_dragonfly_has_spines (s) ? (uint32_t) round (ls_tree_leaf_uplinks (s)) : 0;
}

uint32_t
ls_dragonfly_n_groups (const LsClusterSpec *s)
{
  return s->nics == 0 ? 0
                      : (uint32_t) (((uint64_t) s->n_nodes + s->nodes_per_group - 1) / s->nodes_per_group);
}

uint32_t
ls_dragonfly_global_links (const LsClusterSpec *s)
{
  return (s->groups - 1) * s->global_links;
}

static gboolean
check_routing (const LsClusterSpec *s, GError **error)
{
  if (s->routing != LS_ROUTING_ECMP && s->routing != LS_ROUTING_SPRAY)
    return TRUE;
  return ls_spec_conflict (error,
                           "routing \"%s\" has no meaning in a dragonfly, whose ways are of unequal length; "
                           "expected adaptive, minimal or valiant",
                           s->routing == LS_ROUTING_ECMP ? "ecmp" : "spray");
}

static gboolean
check_groups (const LsClusterSpec *s, GError **error)
{
  if (s->nodes_per_group == 0 || s->nodes_per_group % s->nodes_per_leaf != 0)
    return ls_spec_conflict (error, "%u nodes per group do not deal out to leaves of %u nodes",
                             s->nodes_per_group, s->nodes_per_leaf);
  uint64_t leaves = (uint64_t) s->nodes_per_group / s->nodes_per_leaf * s->rails;
  if (leaves > LS_CLUSTER_MAX_FABRIC)
    return ls_spec_conflict (
        error, "%u nodes per group, %u on a leaf, need %" G_GUINT64_FORMAT " leaves; expected at most %u",
        s->nodes_per_group, s->nodes_per_leaf, (guint64) leaves, LS_CLUSTER_MAX_FABRIC);
  if (ls_dragonfly_n_groups (s) > s->groups)
    return ls_spec_conflict (error, "%u nodes fill %u groups of %u nodes; the machine has %u (\"groups\")",
                             s->n_nodes, ls_dragonfly_n_groups (s), s->nodes_per_group, s->groups);
  return TRUE;
}

static gboolean
check_local (const LsClusterSpec *s, GError **error)
{
  if (ls_dragonfly_has_spines (s))
    return ls_tree_check_uplinks (s, error);
  uint32_t leaves = ls_dragonfly_leaves (s);
  if (leaves == 1 && s->groups > 1)
    return ls_spec_conflict (error,
                             "a group of %u nodes is one switch: expected two or more in a group; "
                             "switches that are joined each to each are one group",
                             s->nodes_per_group);
  if (leaves > 1 && (s->local_links == 0 || s->local_links > LS_CLUSTER_MAX_FABRIC / leaves))
    return ls_spec_conflict (error,
                             "%u links between any two of the %u switches of a group: expected 1 to %u",
                             s->local_links, leaves, LS_CLUSTER_MAX_FABRIC / leaves);
  return TRUE;
}

static gboolean
check_global (const LsClusterSpec *s, GError **error)
{
  if (s->groups < 2)
    return TRUE;
  if (!ls_spec_check_link ("fabric global_link", TRUE, &s->core, error))
    return FALSE;
  if (s->global_links == 0 || s->global_links > LS_CLUSTER_MAX_FABRIC / s->groups)
    return ls_spec_conflict (error,
                             "%u links between any two of %u groups (\"global_links\"): expected 1 to %u",
                             s->global_links, s->groups, LS_CLUSTER_MAX_FABRIC / s->groups);
  uint32_t gateways = ls_dragonfly_has_spines (s) ? 0 : MIN (ls_dragonfly_leaves (s), s->global_links);
  if (s->routing == LS_ROUTING_MINIMAL && gateways > MAX_GATEWAYS)
    return ls_spec_conflict (
        error,
        "%u links between two groups begin at %u switches; with minimal routing expected "
        "at most %d",
        s->global_links, gateways, MAX_GATEWAYS);
  return TRUE;
}

gboolean
ls_dragonfly_check (const LsClusterSpec *s, GError **error)
{
  if (s->nics == 0)
    return s->n_nodes == 1 || ls_spec_conflict (error, "%u nodes need NICs between them", s->n_nodes);
  return ls_tree_check_leaves (s, error) && check_routing (s, error) && check_groups (s, error)
      && check_local (s, error) && check_global (s, error);
}
