/* Pins how a flow splits over ways of one length: in proportion to capacity, and its parts add up, also where
 * 2^-20 does not divide by the number of links. */
#include "ls_test.h"

#include <math.h>

#include "cluster/ways.h"

/* A GPU, a switch, a GPU; up to seven links, of these capacities, between the switch and the last. */
static void
check_split (const double *capacity, uint32_t n)
{
  static const LsNodeKind kinds[] = { LS_NODE_GPU, LS_NODE_NVSWITCH, LS_NODE_GPU };
  const uint32_t from[] = { 0 }, to[] = { 2 };
  LsLink links[8] = { { .from = 0, .to = 1, .trunk = 0, .capacity_bytes_per_s = 100 } };
  double all = 0;
  for (uint32_t i = 0; i < n; i++) {
    links[1 + i] = (LsLink) { .from = 1, .to = 2, .trunk = 1 + i, .capacity_bytes_per_s = capacity[i] };
    all += capacity[i];
  }
  LsRoute route = { 0 };
  LsWays *ways = ls_ways_new (kinds, 3, links, 1 + n, from, 1, to, 1);
  ls_ways_append (ways, 0, 0, &route);
  LS_CHECK_INT (ls_ways_length (ways, 0, 0), ==, 4);
  uint32_t sum = 0;
  if (LS_CHECK_INT (route.n_hops, ==, 1 + n))
    for (uint32_t i = 0; i < n; i++) {
      LS_CHECK_INT (route.hop[1 + i].trunk, ==, 1 + i);
      LS_CHECK (fabs (route.hop[1 + i].share - LS_HOP_WHOLE * capacity[i] / all) <= 1);
      sum += route.hop[1 + i].share;
    }
  LS_CHECK_INT (sum, ==, LS_HOP_WHOLE);
  ls_ways_free (ways);
}

static void
parts_of_a_flow_add_up (void)
{
  static const double equal[] = { 50, 50, 50, 50, 50, 50, 50 }, unequal[] = { 50, 25, 12.5, 100, 3, 7, 11 };
  for (uint32_t n = 1; n <= 7; n++) {
    check_split (equal, n);
    check_split (unequal, n);
  }
}

LS_TEST_MAIN ("ways", LS_TEST (parts_of_a_flow_add_up))
