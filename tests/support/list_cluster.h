/* tests/support/list_cluster.h — nodes given as an explicit list, in code. */
#ifndef LS_TESTS_LIST_CLUSTER_H
#define LS_TESTS_LIST_CLUSTER_H

#include "tiny_cluster.h"

static inline LsClusterSpec
list_cluster (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.interior = LS_INTERIOR_LIST;
  s.nics = s.gpus_per_node = 0;
  s.rails = 1;
  s.nodes_per_leaf = 2;
  s.list_vertices = g_array_new (FALSE, TRUE, sizeof (LsListVertex));
  s.list_links = g_array_new (FALSE, TRUE, sizeof (LsListLink));
  return s;
}

/* Named after its kind and number: "gpu3". */
static inline void
list_add (LsClusterSpec *s, LsNodeKind kind, const char *name)
{
  LsListVertex vertex = { .name = g_strdup (name), .kind = kind };
  g_array_append_val (s->list_vertices, vertex);
  s->gpus_per_node += kind == LS_NODE_GPU;
  s->nics += kind == LS_NODE_NIC;
}

static inline void
list_join (LsClusterSpec *s, const char *from, const char *to, uint32_t count, double bytes_per_s)
{
  LsListLink link
      = { .from = g_strdup (from), .to = g_strdup (to), .count = count, .link = tiny_link (bytes_per_s, 1, LS_US / 2) };
  g_array_append_val (s->list_links, link);
}

#endif
