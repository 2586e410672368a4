/* tests/support/tiny_cluster.h — cluster specs in code, so that tests below io/
 * need no files. Figures are round on purpose: a DGX-A100-like node. */
#ifndef LS_TESTS_TINY_CLUSTER_H
#define LS_TESTS_TINY_CLUSTER_H

#include "cluster/cluster.h"

static inline LsLinkSpec
tiny_link (double bytes_per_s, double efficiency, LsTime latency)
{
  return (LsLinkSpec) { .bandwidth_bytes_per_s = bytes_per_s, .efficiency = efficiency, .latency = latency };
}

/* n nodes of 8 GPUs, 6 NVSwitch planes, 4 PCIe switches, 2 sockets, 4 drives, 8
 * NICs on 8 rails, 20 nodes a leaf. Strings are NULL: nothing to clear. */
static inline LsClusterSpec
tiny_dgx (uint32_t n_nodes)
{
  return (LsClusterSpec) {
    .gpu
    = { .hbm_bytes_per_s = 2039e9, .hbm_efficiency = 0.9, .hbm_bytes = UINT64_C (80) << 30, .n_sm = 108 },
    .n_nodes = n_nodes,
    .gpus_per_node = 8,
    .server.nvswitch_planes = 6,
    .server.nvlinks_per_gpu = 12,
    .server.nvlink = tiny_link (25e9, 0.91, LS_US),
    .server.pcie_switches = 4,
    .server.pcie = tiny_link (31.5e9, 0.8, LS_US / 2),
    .server.cpu_sockets = 2,
    .server.cpu_interconnect = tiny_link (64e9, 0.8, LS_US / 2),
    .server.cpu_memory = tiny_link (200e9, 0.8, 100 * LS_NS),
    .server.cpu_memory_bytes = UINT64_C (2) << 40,
    .server.nvme_drives = 4,
    .server.nvme = tiny_link (6.8e9, 1, 80 * LS_US),
    .server.nvme_bytes = UINT64_C (3840000000000),
    .nics.n = 8,
    .nics.port = tiny_link (25e9, 0.97, LS_US),
    .network.rails = 8,
    .network.nodes_per_leaf = 20,
    .network.oversubscription = 1,
    .network.spine = tiny_link (25e9, 0.97, LS_US / 2),
  };
}

/* No NVSwitch: GPUs of a node talk over PCIe. */
static inline LsClusterSpec
tiny_pcie (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.server.nvswitch_planes = s.server.nvlinks_per_gpu = 0;
  s.nics.n = 2;
  s.network.rails = 1;
  s.network.nodes_per_leaf = 4;
  return s;
}

/* --- fabrics and faults ----------------------------------------------------------------------------- */

/* Three tiers: 4 nodes a leaf, 8 a pod. All links alike: 4 spines a pod, and with
 * spine_oversubscription 1 as many uplinks a spine as leaves in its pod. */
static inline LsClusterSpec
tiny_fat_tree (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.fabric = LS_FABRIC_FAT_TREE;
  s.network.nodes_per_leaf = 4;
  s.network.nodes_per_pod = 8;
  s.network.spine_oversubscription = 1;
  s.network.core = s.network.spine;
  return s;
}

/* Groups of 4 switches with 2 nodes of one NIC each, one link between any two switches of a group and any two
 * of 8 groups; of a dragonfly+, two uplinks a leaf. */
static inline LsClusterSpec
tiny_dragonfly (uint32_t n_nodes, LsFabricId kind, LsRouting routing)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.fabric = kind;
  s.network.routing = routing;
  s.nics.n = s.network.rails = 1;
  s.network.nodes_per_leaf = 2;
  s.network.nodes_per_group = s.network.groups = 8;
  s.network.local_links = s.network.global_links = 1;
  s.network.core = s.network.spine;
  s.network.core.latency = LS_US;
  return s;
}

static inline LsClusterSpec
listed_fabric (uint32_t n_nodes, uint32_t rails)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.fabric = LS_FABRIC_LIST;
  s.network.rails = rails;
  s.network.switches = g_array_new (FALSE, FALSE, sizeof (char *));
  s.network.links = g_array_new (FALSE, FALSE, sizeof (LsListLink));
  s.network.nics = g_array_new (FALSE, FALSE, sizeof (LsListNics));
  return s;
}

static inline void
add_switch (LsClusterSpec *s, const char *name)
{
  char *own = g_strdup (name);
  g_array_append_val (s->network.switches, own);
}

static inline void
join_switches (LsClusterSpec *s, const char *from, const char *to, uint32_t count)
{
  LsListLink link = { .from = g_strdup (from), .to = g_strdup (to), .count = count };
  g_array_append_val (s->network.links, link);
}

static inline void
place_nics (LsClusterSpec *s, uint32_t rail, uint32_t first, uint32_t last, const char *at)
{
  LsListNics nics = { .rail = rail, .first = first, .last = last, .at = g_strdup (at) };
  g_array_append_val (s->network.nics, nics);
}

static inline void
add_fault (LsClusterSpec *s, const char *link, double capacity)
{
  LsFault fault = { .link = g_strdup (link), .capacity = capacity };
  if (!s->network.faults)
    s->network.faults = g_array_new (FALSE, FALSE, sizeof (LsFault));
  g_array_append_val (s->network.faults, fault);
}

static inline double
trunk_capacity (const LsCluster *c, const char *name)
{
  for (guint t = 0; t < c->trunks->len; t++)
    if (g_str_equal (g_array_index (c->trunks, LsTrunk, t).name, name))
      return g_array_index (c->trunks, LsTrunk, t).capacity_bytes_per_s;
  return -1;
}

/* --- nodes as an explicit list ---------------------------------------------------------------------- */

static inline LsClusterSpec
list_cluster (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.interior = LS_INTERIOR_LIST;
  s.nics.n = s.gpus_per_node = 0;
  s.network.rails = 1;
  s.network.nodes_per_leaf = 2;
  s.list.vertices = g_array_new (FALSE, TRUE, sizeof (LsListVertex));
  s.list.links = g_array_new (FALSE, TRUE, sizeof (LsListLink));
  return s;
}

/* Named after its kind and number: "gpu3". */
static inline void
list_add (LsClusterSpec *s, LsNodeKind kind, const char *name)
{
  LsListVertex vertex = { .name = g_strdup (name), .kind = kind };
  g_array_append_val (s->list.vertices, vertex);
  s->gpus_per_node += kind == LS_NODE_GPU;
  s->nics.n += kind == LS_NODE_NIC;
}

static inline void
list_join (LsClusterSpec *s, const char *from, const char *to, uint32_t count, double bytes_per_s)
{
  LsListLink link = { .from = g_strdup (from),
                      .to = g_strdup (to),
                      .count = count,
                      .link = tiny_link (bytes_per_s, 1, LS_US / 2) };
  g_array_append_val (s->list.links, link);
}

/* tiny_dgx() without CPU memory and drives, GPU by GPU: "gpu3" has 5, 5, 4 and 4 NVLinks to
 * "nvs0" .. "nvs3", and is at "pcie3" with "nic3". */
static inline LsClusterSpec
list_dgx (uint32_t n_nodes)
{
  static const uint32_t n_links[] = { 5, 5, 4, 4 };
  LsClusterSpec s = list_cluster (n_nodes);
  char name[3][16];
  s.server.nvswitch_planes = s.server.nvlinks_per_gpu = 0;
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

/* --- slices of a torus -------------------------------------------------------------------------------- */

/* In the round figures of the scaling book: ICI 45 GB/s and 1 us a link, PCIe 15 GB/s. */

static inline LsLinkSpec
torus_link (double bytes_per_s, LsTime latency)
{
  return (LsLinkSpec) { .bandwidth_bytes_per_s = bytes_per_s, .efficiency = 1, .latency = latency };
}

/* n slices of x by y by z chips (z 0: two axes), hosts of 2 x 2, a NIC of 12.5 GB/s for each. */
static inline LsClusterSpec
tiny_torus (uint32_t n, uint32_t x, uint32_t y, uint32_t z, LsTorusWrap wrap)
{
  LsClusterSpec s = {
    .gpu = { .hbm_bytes_per_s = 1.2e12, .hbm_efficiency = 1, .hbm_bytes = UINT64_C (32) << 30, .n_sm = 2 },
    .n_nodes = n,
    .torus = { .largest = { x, y, z }, .wrap = wrap, .host = { 2, 2, z > 0 ? 1 : 0 }, .nics_per_host = 1 },
    .ici = torus_link (45e9, LS_US),
    .server.pcie = torus_link (15e9, LS_US),
    .server.cpu_memory = torus_link (200e9, LS_US / 10),
    .server.cpu_memory_bytes = UINT64_C (512) << 30,
    .nics.port = torus_link (12.5e9, LS_US),
    .network.rails = 1,
    .network.nodes_per_leaf = 16,
    .network.oversubscription = 1,
    .network.spine = torus_link (12.5e9, LS_US),
  };
  ls_cluster_spec_init_torus (&s);
  return s;
}

#endif
