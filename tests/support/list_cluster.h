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
  LsListLink link = { .from = g_strdup (from),
                      .to = g_strdup (to),
                      .count = count,
                      .link = tiny_link (bytes_per_s, 1, LS_US / 2) };
  g_array_append_val (s->list_links, link);
}

/* tiny_dgx() without CPU memory and drives, GPU by GPU: "gpu3" has 5, 5, 4 and 4 NVLinks to
 * "nvs0" .. "nvs3", and is at "pcie3" with "nic3". */
static inline LsClusterSpec
list_dgx (uint32_t n_nodes)
{
  static const uint32_t n_links[] = { 5, 5, 4, 4 };
  LsClusterSpec s = list_cluster (n_nodes);
  char name[3][16];
  s.nvswitch_planes = s.nvlinks_per_gpu = 0;
  list_add (&s, LS_NODE_CPU, "cpu");
  for (uint32_t plane = 0; plane < G_N_ELEMENTS (n_links); plane++) {
    g_snprintf (name[0], sizeof name[0], "nvs%u", plane);
    list_add (&s, LS_NODE_NVSWITCH, name[0]);
  }
  for (uint32_t g = 0; g < 8; g++) {
    g_snprintf (name[0], sizeof name[0], "gpu%u", g);
    g_snprintf (name[1], sizeof name[1], "pcie%u", g);
    g_snprintf (name[2], sizeof name[2], "nic%u", g);
    list_add (&s, LS_NODE_GPU, name[0]);
    list_add (&s, LS_NODE_PCIE_SWITCH, name[1]);
    list_add (&s, LS_NODE_NIC, name[2]);
    list_join (&s, name[0], name[1], 1, 25.2e9);
    list_join (&s, name[1], name[2], 1, 25.2e9);
    list_join (&s, name[1], "cpu", 1, 25.2e9);
    for (uint32_t plane = 0; plane < G_N_ELEMENTS (n_links); plane++) {
      g_snprintf (name[1], sizeof name[1], "nvs%u", plane);
      list_join (&s, name[0], name[1], n_links[plane], 22.75e9);
    }
  }
  return s;
}

#endif
