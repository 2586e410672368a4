/* Pins what the builder lays out: invariants on every shape, names, capacity
 * sums, oversubscription, refusals, linear cost; that a brief cluster says what a whole one says. */
#include "cluster_check.h"
#include "tiny_cluster.h"
#include "ls_test.h"
#include "built_cluster.h"

#include <string.h>

#include <lockstep/error.h>

#include "cluster/route.h"

static const LsTrunk *
trunk_named (const LsCluster *c, const char *name)
{
  for (guint i = 0; i < c->trunks->len; i++)
    if (strcmp (g_array_index (c->trunks, LsTrunk, i).name, name) == 0)
      return &g_array_index (c->trunks, LsTrunk, i);
  return NULL;
}

static guint
n_of_kind (const LsCluster *c, LsNodeKind kind)
{
  guint n = 0;
  for (guint i = 0; i < c->nodes->len; i++)
    n += g_array_index (c->nodes, LsTopoNode, i).kind == kind;
  return n;
}

static void
invariants_hold_on_all_shapes (void)
{
  static const struct {
    uint32_t nodes, gpus, planes, nvlinks, switches, sockets, nics, rails, per_leaf;
    double oversubscription;
  } shapes[] = {
    { 1, 8, 6, 12, 4, 2, 8, 8, 20, 1 }, { 1, 1, 0, 0, 0, 0, 0, 0, 0, 1 },
    { 1, 4, 4, 18, 0, 0, 0, 0, 0, 1 },  { 2, 8, 4, 18, 4, 2, 8, 8, 32, 1 },
    { 5, 8, 6, 12, 4, 2, 4, 1, 2, 2 },  { 7, 8, 6, 12, 4, 2, 2, 2, 3, 1.5 },
    { 3, 4, 0, 0, 2, 2, 1, 1, 1, 1 },   { 9, 16, 6, 12, 8, 4, 8, 4, 4, 4 },
    { 2, 2, 0, 0, 1, 1, 4, 2, 8, 1 },   { 40, 8, 6, 12, 4, 2, 8, 8, 20, 1 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (shapes); i++) {
    LsClusterSpec s = tiny_dgx (shapes[i].nodes);
    s.gpus_per_node = shapes[i].gpus;
    s.server.nvswitch_planes = shapes[i].planes;
    s.server.nvlinks_per_gpu = shapes[i].nvlinks;
    s.server.pcie_switches = shapes[i].switches;
    s.server.cpu_sockets = shapes[i].sockets;
    s.server.nvme_drives = shapes[i].switches;
    s.nics.n = shapes[i].nics;
    s.network.rails = shapes[i].rails;
    s.network.nodes_per_leaf = shapes[i].per_leaf;
    s.network.oversubscription = shapes[i].oversubscription;
    g_autoptr (LsCluster) c = build (&s);
    if (!LS_CHECK (c != NULL))
      return;
    ls_cluster_check (c);
    LS_CHECK_INT (c->n_gpus, ==, shapes[i].nodes * shapes[i].gpus);
    LS_CHECK_INT (n_of_kind (c, LS_NODE_GPU), ==, c->n_gpus);
    LS_CHECK_INT (n_of_kind (c, LS_NODE_NVSWITCH), ==, shapes[i].nodes * shapes[i].planes);
  }
}

static void
trunks_carry_names_of_people (void)
{
  LsClusterSpec s = tiny_dgx (40);
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  static const char *const names[]
      = { "node3/gpu5>nvswitch", "node3/nvswitch>gpu5", "node39/nic2>leaf10", "leaf10>node39/nic2",
          "leaf4>spines",        "spines>leaf4",        "node0/cpu0>cpu1",    "node0/pcie3>cpu1",
          "node0/cpu1>memory1",  "node0/pcie2>nvme2",   "node0/gpu7>pcie3",   "node0/pcie0>nic1" };
  for (size_t i = 0; i < G_N_ELEMENTS (names); i++)
    if (!trunk_named (c, names[i]))
      ls_check_impl (false, __FILE__, __LINE__, "no trunk \"%s\"", names[i]);

  g_autofree char *hbm = ls_cluster_resource_name (c, ls_cluster_hbm_resource (c, 29));
  LS_CHECK_STR (hbm, "node3/gpu5/hbm");
  g_autofree char *first = ls_cluster_resource_name (c, 0);
  LS_CHECK_STR (first, "node0/gpu0>nvswitch");
}

static void
trunk_capacity_is_the_sum_of_its_links (void)
{
  LsClusterSpec s = tiny_dgx (40);
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  LS_CHECK_NEAR (capacity_of (c, "node3/gpu5>nvswitch"), 12 * 25e9 * 0.91, 1e-12);
  LS_CHECK_NEAR (capacity_of (c, "node3/nic2>leaf2"), 25e9 * 0.97, 1e-12);
  /* Non-blocking: a leaf's 20 ports down are matched by 20 up. */
  LS_CHECK_NEAR (capacity_of (c, "leaf2>spines"), 20 * 25e9 * 0.97, 1e-12);
  LS_CHECK_INT (n_of_kind (c, LS_NODE_LEAF), ==, 16);
  LS_CHECK_INT (n_of_kind (c, LS_NODE_SPINE), ==, 20);
  LS_CHECK_NEAR (ls_cluster_resource_capacity (c, ls_cluster_hbm_resource (c, 0)), 2039e9 * 0.9, 1e-12);
}

static void
uneven_planes_keep_all_links (void)
{
  LsClusterSpec s = tiny_dgx (1);
  s.server.nvswitch_planes = 4;
  s.server.nvlinks_per_gpu = 18; /* DGX H100: 5 4 4 5 */
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  ls_cluster_check (c);
  uint32_t n_physical = 0;
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (link->trunk == 0) {
      n_physical += link->n_physical;
      LS_CHECK (link->n_physical == 4 || link->n_physical == 5);
    }
  }
  LS_CHECK_INT (n_physical, ==, 18);
}

static void
oversubscription_takes_uplinks_away (void)
{
  static const double ratios[] = { 1, 2, 4, 5 };
  for (size_t i = 0; i < G_N_ELEMENTS (ratios); i++) {
    LsClusterSpec s = tiny_dgx (60);
    s.network.oversubscription = ratios[i];
    g_autoptr (LsCluster) c = build (&s);
    if (!LS_CHECK (c != NULL))
      return;
    LS_CHECK_NEAR (capacity_of (c, "leaf0>spines") * ratios[i], 20 * capacity_of (c, "node0/nic0>leaf0"),
                   1e-12);
  }
}

static void
one_leaf_needs_no_spine (void)
{
  LsClusterSpec s = tiny_pcie (4);
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  LS_CHECK_INT (n_of_kind (c, LS_NODE_LEAF), ==, 1);
  LS_CHECK_INT (n_of_kind (c, LS_NODE_SPINE), ==, 0);
  LS_CHECK (trunk_named (c, "leaf0>spines") == NULL);
}

static void
refuse (LsClusterSpec s, int code, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (&s, &error);
  LS_CHECK (c == NULL);
  if (!g_error_matches (error, LS_ERROR, code) || !strstr (error->message, part))
    ls_check_impl (false, __FILE__, __LINE__, "expected \"%s\", got \"%s\"", part,
                   error ? error->message : "no error");
}

#define REFUSE(code, part, ...)                                                                              \
  G_STMT_START                                                                                               \
  {                                                                                                          \
    LsClusterSpec s = tiny_dgx (40);                                                                         \
    __VA_ARGS__;                                                                                             \
    refuse (s, code, part);                                                                                  \
  }                                                                                                          \
  G_STMT_END

static void
counts_that_do_not_deal_out_are_refused (void)
{
  REFUSE (LS_ERROR_CONFLICT, "at least one node", s.n_nodes = 0);
  REFUSE (LS_ERROR_CONFLICT, "at least one GPU", s.gpus_per_node = 0);
  REFUSE (LS_ERROR_CONFLICT, "8 GPUs per node do not deal out to 3 PCIe switches",
          s.server.pcie_switches = 3);
  REFUSE (LS_ERROR_CONFLICT, "4 PCIe switches do not deal out to 3 CPU sockets", s.server.cpu_sockets = 3);
  REFUSE (LS_ERROR_CONFLICT, "4 NVLinks per GPU cannot reach 6 NVSwitch planes",
          s.server.nvlinks_per_gpu = 4);
  REFUSE (LS_ERROR_CONFLICT, "5 NICs do not deal out to 4 PCIe switches", s.nics.n = 5);
  REFUSE (LS_ERROR_CONFLICT, "8 NICs per node do not deal out to 3 rails: \"rails\" is to divide \"nics\"",
          s.network.rails = 3);
  REFUSE (LS_ERROR_CONFLICT, "40 nodes need NICs", s.nics.n = 0);
  REFUSE (LS_ERROR_CONFLICT, "oversubscription 0.5", s.network.oversubscription = 0.5);
  REFUSE (LS_ERROR_CONFLICT, "not a whole number", s.network.oversubscription = 3);
  REFUSE (LS_ERROR_CONFLICT, "nic link", s.nics.port.efficiency = 1.5);
  REFUSE (LS_ERROR_CONFLICT, "fabric link", s.network.spine.bandwidth_bytes_per_s = 0);
  REFUSE (LS_ERROR_CONFLICT, "need a PCIe switch or a CPU",
          s.server.pcie_switches = s.server.cpu_sockets = 0);
}

/* From the numbers alone, before anything is laid out: each of these would take more
 * memory than there is. */
static void
what_no_machine_has_is_refused (void)
{
  REFUSE (LS_ERROR_CONFLICT, "4294967295 nodes of 8 GPUs are 34359738360 GPUs; expected at most 1048576",
          s.n_nodes = UINT32_MAX);
  REFUSE (LS_ERROR_CONFLICT,
          "131072 nodes, 1 on a leaf, with 8 rails need 1048576 leaves; expected at most 65536",
          s.n_nodes = 131072, s.network.nodes_per_leaf = 1);
  REFUSE (LS_ERROR_CONFLICT, "a leaf of 1000000 nodes with 1 NICs each", s.network.nodes_per_leaf = 1000000);
  REFUSE (LS_ERROR_CONFLICT, "uplinks; expected at most 65536", s.nics.port.bandwidth_bytes_per_s = 1e16);
  REFUSE (LS_ERROR_CONFLICT, "uplinks; expected at most 65536", s.n_nodes = 1,
          s.network.spine.bandwidth_bytes_per_s = 1e-300);
  REFUSE (LS_ERROR_CONFLICT, "0.000 uplinks", s.network.oversubscription = 1e300);
  REFUSE (LS_ERROR_CONFLICT, "links; expected at most 67108864", s.n_nodes = 100,
          s.server.cpu_sockets = s.server.pcie_switches = s.gpus_per_node = s.nics.n = 1024,
          s.network.rails = 1024, s.network.nodes_per_leaf = 20);
}

/* 8 times the nodes, 8 times the trunks and vertices; and no time to speak of. */
static void
size_is_linear_in_gpus (void)
{
  LsClusterSpec small = tiny_dgx (40), large = tiny_dgx (320);
  g_autoptr (LsCluster) a = build (&small), b = build (&large);
  if (!LS_CHECK (a && b))
    return;
  LS_CHECK_INT (b->trunks->len, ==, 8 * a->trunks->len);
  guint spines = n_of_kind (a, LS_NODE_SPINE);
  LS_CHECK_INT (b->nodes->len - spines, ==, 8 * (a->nodes->len - spines));
}

static void
check_alike (const LsCluster *brief, const LsCluster *whole)
{
  for (uint32_t i = 0; i < ls_cluster_n_resources (whole); i++) {
    g_autofree char *a = ls_cluster_resource_name (brief, i), *b = ls_cluster_resource_name (whole, i);
    LS_CHECK_STR (a, b);
    LS_CHECK (ls_cluster_resource_capacity (brief, i) == ls_cluster_resource_capacity (whole, i));
    if (i >= whole->n_trunks)
      continue;
    const LsTrunk *x = ls_cluster_trunk (brief, i), *y = ls_cluster_trunk (whole, i);
    LS_CHECK (x->latency == y->latency && x->from == y->from && x->to == y->to);
    LS_CHECK (x->is_failed == y->is_failed);
    LS_CHECK (x->link->bandwidth_bytes_per_s == y->link->bandwidth_bytes_per_s);
  }
}

static void
check_ways (const LsCluster *brief, const LsCluster *whole, GRand *rand)
{
  for (int i = 0; i < 200; i++) {
    LsRoute a, b;
    uint32_t from = (uint32_t) g_rand_int_range (rand, 0, (gint32) whole->n_gpus),
             to = (uint32_t) g_rand_int_range (rand, 0, (gint32) whole->n_gpus);
    ls_route (brief, from, to, 0, &a);
    ls_route (whole, from, to, 0, &b);
    LS_CHECK (a.n_hops == b.n_hops && a.latency == b.latency);
    for (uint32_t h = 0; h < a.n_hops && h < b.n_hops; h++) {
      LS_CHECK (a.hop[h].trunk == b.hop[h].trunk && a.hop[h].share == b.hop[h].share);
      const LsTrunk *trunk = ls_cluster_trunk (whole, b.hop[h].trunk);
      if (trunk->from == LS_NODE_NIC && trunk->to == LS_NODE_LEAF)
        LS_CHECK_INT (ls_cluster_edge_of_trunk (brief, a.hop[h].trunk), ==,
                      ls_cluster_edge_of_trunk (whole, b.hop[h].trunk));
    }
  }
}

static void
check_brief (const LsClusterSpec *s, bool is_small, GRand *rand)
{
  g_autoptr (LsCluster) whole = build (s);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) brief = ls_cluster_build_within (s, true, UINT64_MAX, &error);
  LS_CHECK_NO_ERROR (error);
  if (!whole || !brief)
    return;
  LS_CHECK_INT (brief->n_trunks, ==, whole->n_trunks);
  check_alike (brief, whole);
  check_ways (brief, whole, rand);
  LS_CHECK (is_small == (brief->trunks->len < whole->trunks->len / 4));
}

/* Also where it cannot be brief: hashed. */
static void
a_brief_cluster_says_what_a_whole_one_says (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  for (int i = 0; i < 6; i++) {
    LsClusterSpec s = i == 0 ? tiny_pcie (9) : i < 3 ? tiny_fat_tree (10 + 9 * (uint32_t) i) : tiny_dgx (45);
    s.network.pxn = i == 3;
    s.network.rails = i == 4 ? 4 : s.network.rails;
    s.network.routing = i == 5 ? LS_ROUTING_ECMP : LS_ROUTING_IDEAL;
    check_brief (&s, i < 5, rand);
  }
}

/* Nodes with faults are laid out beside one that has none, be it the first or not; not so faults between
 * switches. */
static void
faults_of_nodes_leave_it_brief (void)
{
  static const struct {
    struct {
      const char *link;
      double left;
    } fault[4];
    bool is_small;
  } cases[] = {
    { { { "node0/gpu0>nvswitch", 0.5 } }, true },
    { { { "node1/gpu3>nvswitch", 0 }, { "node0/nic2>leaf2", 0.25 } }, true },
    { { { "node44/nic7>leaf23", 0 }, { "leaf8>node20/nic0", 0.5 }, { "node20/gpu1>nvswitch", 0 } }, true },
    { { { "leaf0>spines", 0.5 } }, false },
    { { { "node0/gpu0>nvswitch", 0.5 }, { "leaf3>spines", 0.5 } }, false },
  };
  g_autoptr (GRand) rand = g_rand_new_with_seed (2);
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsClusterSpec s = tiny_dgx (45);
    s.network.pxn = true;
    for (size_t k = 0; k < G_N_ELEMENTS (cases[i].fault) && cases[i].fault[k].link; k++)
      add_fault (&s, cases[i].fault[k].link, cases[i].fault[k].left);
    check_brief (&s, cases[i].is_small, rand);
    ls_cluster_spec_clear (&s);
  }
}

static void
a_brief_cluster_refuses_what_a_whole_one_refuses (void)
{
  static const char *const links[]
      = { "node3/gpu9>nvswitch", "node45/gpu0>nvswitch", "node/gpu0>nvswitch", "node*/gpu0>nvswitch",
          "leaf3>node4x/nic3",   "leaf3>node4/nic9",     "spines>leaf0",       "" };
  for (size_t i = 0; i < G_N_ELEMENTS (links); i++) {
    LsClusterSpec s = tiny_dgx (45);
    g_autoptr (GError) of_whole = NULL, of_brief = NULL;
    add_fault (&s, links[i], 0.5);
    g_autoptr (LsCluster) whole = ls_cluster_build (&s, &of_whole);
    g_autoptr (LsCluster) brief = ls_cluster_build_within (&s, true, UINT64_MAX, &of_brief);
    LS_CHECK ((whole == NULL) == (brief == NULL));
    if (of_whole && LS_CHECK (of_brief))
      LS_CHECK_STR (of_brief->message, of_whole->message);
    ls_cluster_spec_clear (&s);
  }
}

LS_TEST_SUITE (LS_TEST (invariants_hold_on_all_shapes), LS_TEST (trunks_carry_names_of_people),
               LS_TEST (trunk_capacity_is_the_sum_of_its_links), LS_TEST (uneven_planes_keep_all_links),
               LS_TEST (oversubscription_takes_uplinks_away), LS_TEST (one_leaf_needs_no_spine),
               LS_TEST (counts_that_do_not_deal_out_are_refused), LS_TEST (what_no_machine_has_is_refused),
               LS_TEST (size_is_linear_in_gpus), LS_TEST (a_brief_cluster_says_what_a_whole_one_says),
               LS_TEST (faults_of_nodes_leave_it_brief),
               LS_TEST (a_brief_cluster_refuses_what_a_whole_one_refuses))
