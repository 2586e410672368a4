/* Pins: one GPU of each host stands for another where their ways are alike, trunk by trunk, and for none where
 * they are not; and GPUs of one number are told from others. */
#include "ls_test.h"
#include "placed_cluster.h"

#include "exec/shortcuts/shapes.h"

/* The trunk of a host that stands for the one of that name in host 0; "": none does. */
static const char *
stand_in (const Made *m, const Rails *r, const char *name)
{
  for (uint32_t i = 0; i < m->at.trunks_per_host; i++)
    if (g_str_equal (g_array_index (m->c->trunks, LsTrunk, i).name, name))
      return r->local[0][i] == NO_LOCAL ? "" : g_array_index (m->c->trunks, LsTrunk, r->local[0][i]).name;
  LS_CHECK (!name);
  return "";
}

/* Eight rails, two hosts a leaf: within a group and between groups. */
static void
a_rail_stands_for_another (void)
{
  LsClusterSpec spec = tiny_dgx (8);
  spec.network.nodes_per_leaf = 2;
  spec.network.rails = 8;
  Made m = make (spec);
  static const uint32_t gpus[] = { 0, 8, 16, 24 };
  Rails r;
  LS_CHECK (rails_find (&r, m.c, &m.at, gpus, 4, 3));
  LS_CHECK_STR (stand_in (&m, &r, "node0/nic0>leaf0"), "node0/nic3>leaf3");
  LS_CHECK_STR (stand_in (&m, &r, "leaf0>node0/nic0"), "leaf3>node0/nic3");
  LS_CHECK_STR (stand_in (&m, &r, "node0/nic1>leaf1"), "");
  LS_CHECK_INT (r.local[0][m.at.trunks_per_host], ==, m.at.trunks_per_host + 3); /* HBM */
  LS_CHECK_INT (r.local[1][0], ==, 6); /* up from the leaf, a pair for each rail */
  LS_CHECK_INT (r.local[1][1], ==, 7);
  rails_clear (&r);
  ls_cluster_free (m.c);
}

/* The NIC of GPU 2 has half the rate of the others. */
static void
a_slow_rail_stands_for_none (void)
{
  LsClusterSpec spec = tiny_dgx (4);
  Made m = make (spec);
  for (guint i = 0; i < m.c->trunks->len; i++)
    if (g_str_has_prefix (g_array_index (m.c->trunks, LsTrunk, i).name, "node1/nic2>"))
      g_array_index (m.c->trunks, LsTrunk, i).capacity_bytes_per_s /= 2;
  static const uint32_t gpus[] = { 0, 8, 16 };
  Rails r;
  LS_CHECK (rails_find (&r, m.c, &m.at, gpus, 3, 1));
  rails_clear (&r);
  LS_CHECK (!rails_find (&r, m.c, &m.at, gpus, 3, 2));
  rails_clear (&r);
  ls_cluster_free (m.c);
}

static void
numbers_are_of_hosts (void)
{
  const LsPlaces at = { .gpus_per_host = 8 };
  LS_CHECK_INT (rails_number (&at, (const uint32_t[]) { 3, 11, 43 }, 3), ==, 3);
  LS_CHECK_INT (rails_number (&at, (const uint32_t[]) { 3, 11, 42 }, 3), ==, NO_GPU_NUMBER);
  LS_CHECK_INT (rails_number (&at, (const uint32_t[]) { 3, 3 }, 2), ==, NO_GPU_NUMBER);  /* of one host */
  LS_CHECK_INT (rails_number (&at, (const uint32_t[]) { 11, 3 }, 2), ==, NO_GPU_NUMBER); /* not in order */
}

LS_TEST_SUITE (LS_TEST (a_rail_stands_for_another), LS_TEST (a_slow_rail_stands_for_none),
               LS_TEST (numbers_are_of_hosts));
