/* Pins ls_route() against ls_route_bfs(), trunk by trunk, and a few routes by
 * name. */
#include "ls_test.h"
#include "tiny_cluster.h"

#include "cluster/route.h"

static LsCluster *
build (const LsClusterSpec *spec)
{
  g_autoptr (GError) error = NULL;
  LsCluster *c = ls_cluster_build (spec, &error);
  LS_CHECK_NO_ERROR (error);
  return c;
}

static char *
describe (const LsCluster *c, const LsRoute *r)
{
  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < r->n_hops; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "",
                            g_array_index (c->trunks, LsTrunk, r->hop[i].trunk).name);
  return g_string_free (text, FALSE);
}

static bool
agree (const LsCluster *c, uint32_t from, uint32_t to)
{
  g_autofree double *load = g_new (double, c->trunks->len);
  g_autofree bool *on_route = g_new0 (bool, c->trunks->len);
  LsRoute r;
  ls_route (c, from, to, LS_NIC_AUTO, LS_NIC_AUTO, &r);
  ls_route_bfs (c, from, to, load);
  LsTime latency = 0;
  for (uint32_t i = 0; i < r.n_hops; i++) {
    if (!LS_CHECK (!on_route[r.hop[i].trunk]))
      return false;
    on_route[r.hop[i].trunk] = true;
    latency += g_array_index (c->trunks, LsTrunk, r.hop[i].trunk).latency;
  }
  LS_CHECK_INT (r.latency, ==, latency);
  for (guint t = 0; t < c->trunks->len; t++) {
    double expected = on_route[t] ? 1 : 0;
    if (load[t] < expected - 1e-12 || load[t] > expected + 1e-12) {
      g_autofree char *route = describe (c, &r);
      ls_check_impl (false, __FILE__, __LINE__, "gpu %u to %u: %s carries %g by search, %g by shape (%s)",
                     from, to, g_array_index (c->trunks, LsTrunk, t).name, load[t], expected, route);
      return false;
    }
  }
  return true;
}

static void
shape_and_search_agree_on_random_pairs (void)
{
  LsClusterSpec specs[] = { tiny_dgx (1),  tiny_dgx (3), tiny_dgx (45), tiny_pcie (1), tiny_pcie (3),
                            tiny_pcie (9), tiny_dgx (5), tiny_dgx (6),  tiny_dgx (8) };
  specs[6].nvswitch_planes = 4; /* 18 links on 4 planes: unequal shares */
  specs[6].nvlinks_per_gpu = 18;
  specs[7].nics = 4;
  specs[7].rails = 2;
  specs[7].nodes_per_leaf = 2;
  specs[7].oversubscription = 2;
  specs[8].gpus_per_node = 16;
  specs[8].pcie_switches = 8;
  specs[8].cpu_sockets = 4;
  specs[8].nics = 2; /* far NICs: the path goes through other sockets */
  specs[8].rails = 1;
  specs[8].nodes_per_leaf = 4;

  g_autoptr (GRand) rand = g_rand_new_with_seed (20240501);
  for (size_t i = 0; i < G_N_ELEMENTS (specs); i++) {
    g_autoptr (LsCluster) c = build (&specs[i]);
    if (!LS_CHECK (c != NULL))
      return;
    for (int k = 0; k < 60; k++) {
      uint32_t from = (uint32_t) g_rand_int_range (rand, 0, (gint32) c->n_gpus);
      uint32_t to = (uint32_t) g_rand_int_range (rand, 0, (gint32) c->n_gpus);
      if (!agree (c, from, to))
        return;
    }
  }
}

static void
check_route (const LsClusterSpec *spec, uint32_t from, uint32_t to, const char *expected)
{
  g_autoptr (LsCluster) c = build (spec);
  if (!LS_CHECK (c != NULL))
    return;
  LsRoute r;
  ls_route (c, from, to, LS_NIC_AUTO, LS_NIC_AUTO, &r);
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (text, expected);
}

static void
routes_read_as_expected (void)
{
  LsClusterSpec dgx = tiny_dgx (40), pcie = tiny_pcie (2);
  check_route (&dgx, 3, 3, "");
  check_route (&dgx, 0, 5, "node0/gpu0>nvswitch node0/nvswitch>gpu5");
  check_route (&dgx, 1, 9,
               "node0/gpu1>pcie0 node0/pcie0>nic1 node0/nic1>leaf1 leaf1>node1/nic1 node1/nic1>pcie0 "
               "node1/pcie0>gpu1");
  /* Another rail: over the spines. */
  check_route (&dgx, 0, 13,
               "node0/gpu0>pcie0 node0/pcie0>nic0 node0/nic0>leaf0 leaf0>spines spines>leaf5 "
               "leaf5>node1/nic5 node1/nic5>pcie2 node1/pcie2>gpu5");
  check_route (&pcie, 0, 1, "node0/gpu0>pcie0 node0/pcie0>gpu1");
  check_route (&pcie, 0, 2, "node0/gpu0>pcie0 node0/pcie0>cpu0 node0/cpu0>pcie1 node0/pcie1>gpu2");
  check_route (&pcie, 7, 0,
               "node0/gpu7>pcie3 node0/pcie3>cpu1 node0/cpu1>cpu0 node0/cpu0>pcie0 node0/pcie0>gpu0");
}

static void
nics_can_be_chosen (void)
{
  LsClusterSpec dgx = tiny_dgx (2);
  g_autoptr (LsCluster) c = build (&dgx);
  if (!LS_CHECK (c != NULL))
    return;
  LsRoute r;
  ls_route (c, 0, 8, 6, 6, &r);
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (
      text,
      "node0/gpu0>pcie0 node0/pcie0>cpu0 node0/cpu0>cpu1 node0/cpu1>pcie3 node0/pcie3>nic6 node0/nic6>leaf6 "
      "leaf6>node1/nic6 node1/nic6>pcie3 node1/pcie3>cpu1 node1/cpu1>cpu0 node1/cpu0>pcie0 node1/pcie0>gpu0");
  for (uint32_t gpu = 0; gpu < c->n_gpus; gpu++)
    LS_CHECK_INT (ls_nic_of_gpu (c, gpu), ==, gpu % 8);
}

LS_TEST_MAIN ("route", LS_TEST (shape_and_search_agree_on_random_pairs), LS_TEST (routes_read_as_expected),
              LS_TEST (nics_can_be_chosen))
