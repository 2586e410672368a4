/* Pins the flow through small graphs: by hand, and against the least cut of all that there
 * are, on random ones. */
#include "analysis/maxflow.h"

#include <stdlib.h>

#include "ls_test.h"

#define MAX_VERTICES 8

static void
add (GArray *edges, uint32_t from, uint32_t to, int64_t capacity)
{
  LsFlowEdge edge = { from, to, capacity };
  g_array_append_val (edges, edge);
}

/* 0 > 1 > 3 and 0 > 2 > 3 with a bridge 1 > 2, which one unit takes:
 *
 *        3        2
 *     0 ---> 1 ------> 3         in all 5: 3 + 2 leave the source
 *      \     | 2      /
 *     2 \--> 2 ------/ 4
 */
static void
flows_take_all_ways (void)
{
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (LsFlowEdge));
  add (edges, 0, 1, 3);
  add (edges, 0, 2, 2);
  add (edges, 1, 3, 2);
  add (edges, 1, 2, 2);
  add (edges, 2, 3, 4);
  LS_CHECK_INT (ls_max_flow (4, edges, (const int8_t[]) { -1, 0, 0, 1 }), ==, 5);
  LS_CHECK_INT (ls_max_flow (4, edges, (const int8_t[]) { 1, 0, 0, -1 }), ==, 0); /* one direction only */
  LS_CHECK_INT (ls_max_flow (4, edges, (const int8_t[]) { -1, -1, 1, 1 }), ==, 6);
  g_array_unref (edges);
}

/* The shortest way, 0 1 2 3, blocks both of two longer ones: they flow only if the second
 * of them sends back what the first has sent from 1 to 2. */
static void
flow_can_be_sent_back (void)
{
  static const uint32_t ways[][2]
      = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 0, 4 }, { 4, 5 }, { 5, 2 }, { 1, 6 }, { 6, 7 }, { 7, 3 } };
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (LsFlowEdge));
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    add (edges, ways[i][0], ways[i][1], 1);
  LS_CHECK_INT (ls_max_flow (8, edges, (const int8_t[]) { -1, 0, 0, 1, 0, 0, 0, 0 }), ==, 2);
  g_array_unref (edges);
}

static void
no_edge_no_flow (void)
{
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (LsFlowEdge));
  LS_CHECK_INT (ls_max_flow (2, edges, (const int8_t[]) { -1, 1 }), ==, 0);
  g_array_unref (edges);
}

/* The definition: over every way to deal the inner vertices to the two sides. */
static int64_t
least_cut (uint32_t n, const GArray *edges, const int8_t *side)
{
  int64_t least = INT64_MAX;
  for (uint32_t set = 0; set < 1u << n; set++) {
    bool is_legal = true;
    for (uint32_t v = 0; v < n; v++)
      is_legal = is_legal && (side[v] == 0 || (side[v] < 0) == ((set >> v & 1) != 0));
    int64_t cut = 0;
    for (guint i = 0; i < edges->len; i++) {
      const LsFlowEdge *e = &g_array_index (edges, LsFlowEdge, i);
      if (set >> e->from & 1 && !(set >> e->to & 1))
        cut += e->capacity;
    }
    if (is_legal && cut < least)
      least = cut;
  }
  return least;
}

static void
flow_is_the_least_cut (void)
{
  const char *cases = g_getenv ("LS_CASES");
  for (uint32_t seed = 1; seed <= (cases ? (uint32_t) atoi (cases) : 300); seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    uint32_t n = (uint32_t) g_rand_int_range (rand, 2, MAX_VERTICES + 1);
    GArray *edges = g_array_new (FALSE, FALSE, sizeof (LsFlowEdge));
    for (int i = g_rand_int_range (rand, 0, 24); i > 0; i--)
      add (edges, (uint32_t) g_rand_int_range (rand, 0, (gint32) n),
           (uint32_t) g_rand_int_range (rand, 0, (gint32) n), g_rand_int_range (rand, 0, 10));
    int8_t side[MAX_VERTICES] = { -1, 1 };
    for (uint32_t v = 2; v < n; v++)
      side[v] = (int8_t) g_rand_int_range (rand, -1, 2);
    int64_t flow = ls_max_flow (n, edges, side), cut = least_cut (n, edges, side);
    g_array_unref (edges);
    if (!ls_check_impl (flow == cut, __FILE__, __LINE__,
                        "seed %u: %" G_GINT64_FORMAT " flow, the least cut is %" G_GINT64_FORMAT, seed, flow,
                        cut))
      return;
  }
}

LS_TEST_SUITE (LS_TEST (flows_take_all_ways), LS_TEST (flow_can_be_sent_back), LS_TEST (no_edge_no_flow),
               LS_TEST (flow_is_the_least_cut))
