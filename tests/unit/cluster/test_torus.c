/* Pins a slice of a torus: its shape (degrees, links, bisection), numbering, wrap rules,
 * ways against a search that knows nothing of axes, where a tp group lies, and the slice
 * that a job gets. */
#include "cluster_check.h"
#include "ls_test.h"
#include "tiny_cluster.h"
#include "built_cluster.h"

#include "cluster/route.h"

static LsNodeKind
kind_of (const LsCluster *c, uint32_t v)
{
  return g_array_index (c->nodes, LsTopoNode, v).kind;
}

static bool
is_ici (const LsCluster *c, const LsLink *link)
{
  return kind_of (c, link->from) == LS_NODE_GPU && kind_of (c, link->to) == LS_NODE_GPU;
}

static const struct {
  uint32_t x, y, z;
  LsTorusWrap wrap;
  uint32_t n_links; /* of ICI, both directions counted */
} shapes[] = {
  { 4, 4, 0, LS_WRAP_NONE, 2 * (3 * 4 + 4 * 3) },
  { 4, 4, 0, LS_WRAP_ALL, 2 * (16 + 16) },
  { 16, 16, 0, LS_WRAP_FULL_AXES, 2 * 512 },
  { 4, 4, 4, LS_WRAP_CUBES, 2 * 3 * 64 },
  { 4, 4, 2, LS_WRAP_CUBES, 2 * (3 * 8 + 3 * 8 + 16) }, /* no whole cubes: no wrap */
  { 5, 3, 7, LS_WRAP_ALL, 2 * 3 * 105 },
  { 2, 2, 0, LS_WRAP_ALL, 2 * 4 }, /* two chips are joined once */
  { 1, 6, 0, LS_WRAP_ALL, 2 * 6 },
};

static LsClusterSpec
spec_of (size_t i)
{
  LsClusterSpec s = tiny_torus (1, shapes[i].x, shapes[i].y, shapes[i].z, shapes[i].wrap);
  for (uint32_t a = 0; a < LS_TORUS_AXES; a++)
    if (s.torus.dims[a] % s.torus.host[a] != 0)
      s.torus.host[a] = 1;
  ls_cluster_spec_set_slice (&s, s.torus.dims);
  return s;
}

static void
slices_have_their_links (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (shapes); i++) {
    g_autoptr (LsCluster) c = built (spec_of (i));
    if (!LS_CHECK (c != NULL))
      return;
    ls_cluster_check (c);
    g_autofree uint32_t *degree = g_new0 (uint32_t, c->n_gpus);
    uint32_t n = 0, full_degree = 0;
    for (guint k = 0; k < c->links->len; k++) {
      const LsLink *link = &g_array_index (c->links, LsLink, k);
      n += is_ici (c, link);
      if (is_ici (c, link))
        degree[link->from]++;
    }
    LS_CHECK_INT (n, ==, shapes[i].n_links);
    for (uint32_t axis = 0; axis < c->spec.torus.n_axes; axis++)
      full_degree += ls_torus_wraps (&c->spec.torus, axis) ? 2 : 0;
    for (uint32_t chip = 0; chip < c->n_gpus && full_degree == 2 * c->spec.torus.n_axes; chip++)
      LS_CHECK_INT (degree[chip], ==, full_degree);
  }
}

/* Cut across y: 16 lines, both ends of each where it wraps. Cloud documentation of v5e:
 * 16 x 16 chips have a bisection bandwidth of 1.6 TB/s at 50 GB/s a link (hardware.csv). */
static void
a_v5e_pod_has_its_bisection (void)
{
  LsClusterSpec spec = tiny_torus (1, 16, 16, 0, LS_WRAP_FULL_AXES);
  spec.ici.bandwidth_bytes_per_s = 50e9;
  g_autoptr (LsCluster) c = built (spec);
  if (!LS_CHECK (c != NULL))
    return;
  double across = 0;
  for (guint k = 0; k < c->links->len; k++) {
    const LsLink *link = &g_array_index (c->links, LsLink, k);
    if (is_ici (c, link) && link->from / 16 < 8 && link->to / 16 >= 8)
      across += link->capacity_bytes_per_s;
  }
  LS_CHECK_NEAR (across, 1.6e12, 1e-9);
}

static void
chips_are_numbered_with_x_fastest (void)
{
  const LsTorusSpec t = { .n_axes = 3, .dims = { 4, 3, 2 }, .host = { 2, 1, 1 }, .nics_per_host = 1 };
  LS_CHECK_INT (ls_torus_chip (&t, (LsTorusCoord) { { 1, 0, 0 } }), ==, 1);
  LS_CHECK_INT (ls_torus_chip (&t, (LsTorusCoord) { { 0, 1, 0 } }), ==, 4);
  LS_CHECK_INT (ls_torus_chip (&t, (LsTorusCoord) { { 0, 0, 1 } }), ==, 12);
  for (uint32_t chip = 0; chip < ls_torus_n_chips (&t); chip++) {
    LS_CHECK_INT (ls_torus_chip (&t, ls_torus_coord (&t, chip)), ==, chip);
    LS_CHECK_INT (ls_torus_host_of (&t, chip), ==, chip / 2);
  }
}

/* Wrap rules of the pods: jax-ml/scaling-book tpus.md@0819a7d. */
static void
axes_wrap_by_rule (void)
{
  LsClusterSpec v5e = tiny_torus (1, 16, 16, 0, LS_WRAP_FULL_AXES),
                v5p = tiny_torus (1, 16, 16, 24, LS_WRAP_CUBES);
  const struct {
    LsClusterSpec *spec;
    uint32_t dims[LS_TORUS_AXES];
    bool wraps[LS_TORUS_AXES];
  } cases[] = {
    { &v5e, { 16, 16, 1 }, { true, true, false } }, { &v5e, { 8, 16, 1 }, { false, true, false } },
    { &v5e, { 8, 8, 1 }, { false, false, false } }, { &v5p, { 4, 4, 4 }, { true, true, true } },
    { &v5p, { 8, 12, 16 }, { true, true, true } },  { &v5p, { 4, 4, 2 }, { false, false, false } },
    { &v5p, { 8, 8, 6 }, { false, false, false } },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    ls_cluster_spec_set_slice (cases[i].spec, cases[i].dims);
    for (uint32_t axis = 0; axis < LS_TORUS_AXES; axis++)
      LS_CHECK_INT (ls_torus_wraps (&cases[i].spec->torus, axis), ==, cases[i].wraps[axis]);
  }
}

/* --- ways --- */

/* Links of the shortest way between chips, by relaxing all ICI links. */
static void
distances (const LsCluster *c, uint32_t from, uint32_t *dist)
{
  for (uint32_t i = 0; i < c->n_gpus; i++)
    dist[i] = i == from ? 0 : UINT32_MAX / 2;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (guint k = 0; k < c->links->len; k++) {
      const LsLink *link = &g_array_index (c->links, LsLink, k);
      if (is_ici (c, link) && dist[link->from] + 1 < dist[link->to]) {
        dist[link->to] = dist[link->from] + 1;
        has_changed = true;
      }
    }
  }
}

/* The shares that enter and leave each chip balance; all of it leaves `from`. */
static bool
is_flow (const LsCluster *c, uint32_t from, uint32_t to, const LsRoute *r)
{
  g_autofree int64_t *net = g_new0 (int64_t, c->n_gpus);
  g_autofree uint32_t *link_of = g_new0 (uint32_t, c->trunks->len);
  for (guint k = 0; k < c->links->len; k++)
    link_of[g_array_index (c->links, LsLink, k).trunk] = k;
  for (uint32_t i = 0; i < r->n_hops; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, link_of[r->hop[i].trunk]);
    if (!LS_CHECK (is_ici (c, link)))
      return false;
    net[link->from] += r->hop[i].share;
    net[link->to] -= r->hop[i].share;
  }
  for (uint32_t i = 0; i < c->n_gpus; i++) {
    int64_t expected = from == to ? 0
        : i == from               ? (int64_t) LS_HOP_WHOLE
        : i == to                 ? -(int64_t) LS_HOP_WHOLE
                                  : 0;
    if (!LS_CHECK_INT (net[i], ==, expected))
      return false;
  }
  return true;
}

static void
ways_are_shortest (void)
{
  for (size_t k = 0; k < G_N_ELEMENTS (shapes); k++) {
    g_autoptr (LsCluster) c = built (spec_of (k));
    if (!LS_CHECK (c != NULL))
      return;
    g_autofree uint32_t *dist = g_new (uint32_t, c->n_gpus);
    for (uint32_t from = 0; from < c->n_gpus; from += 1 + c->n_gpus / 8) {
      distances (c, from, dist);
      for (uint32_t to = 0; to < c->n_gpus; to++) {
        LsRoute r;
        ls_route (c, from, to, 0, &r);
        if (!LS_CHECK_INT (r.latency, ==, dist[to] * LS_US) || (c->n_gpus < 64 && !is_flow (c, from, to, &r)))
          return;
      }
    }
  }
}

static char *
describe (const LsCluster *c, const LsRoute *r)
{
  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < r->n_hops; i++)
    g_string_append_printf (text, "%s%s*%g", i > 0 ? " " : "",
                            g_array_index (c->trunks, LsTrunk, r->hop[i].trunk).name,
                            r->hop[i].share / (double) LS_HOP_WHOLE);
  return g_string_free (text, FALSE);
}

static void
check_way (const LsCluster *c, uint32_t from, uint32_t to, const char *expected)
{
  LsRoute r;
  ls_route (c, from, to, 0, &r);
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (text, expected);
}

static void
ways_are_dimension_ordered (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (2, 4, 4, 0, LS_WRAP_ALL));
  if (!LS_CHECK (c != NULL))
    return;
  check_way (c, 0, 5, "node0/gpu0>gpu1*1 node0/gpu1>gpu5*1");
  check_way (c, 0, 3, "node0/gpu0>gpu3*1"); /* around the end */
  check_way (c, 1, 13, "node0/gpu1>gpu13*1");
  check_way (c, 0, 2, "node0/gpu0>gpu1*0.5 node0/gpu1>gpu2*0.5 node0/gpu0>gpu3*0.5 node0/gpu3>gpu2*0.5");
  /* Out through the host's NIC: chips 0 1 4 5 are of host 0, 2 3 6 7 of host 1. */
  check_way (c, 2, 16 + 5,
             "node0/gpu2>cpu1*1 node0/cpu1>nic1*1 node0/nic1>leaf0*1 leaf0>node1/nic0*1 node1/nic0>cpu0*1 "
             "node1/cpu0>gpu5*1");
  LsRoute r;
  ls_route_host_memory (c, 16 + 10, true, &r);
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (text, "node1/gpu10>cpu3*1 node1/cpu3>memory3*1");
  LS_CHECK_INT (ls_nic_of_gpu (c, 16 + 15), ==, 3);
}

/* --- where the ranks of a mesh lie --- */

static uint32_t
n_distinct (const LsTorusSpec *t, uint32_t first, uint32_t n, uint32_t axis)
{
  g_autofree bool *is_seen = g_new0 (bool, t->dims[axis]);
  uint32_t n_seen = 0;
  for (uint32_t chip = first; chip < first + n; chip++) {
    bool *seen = &is_seen[ls_torus_coord (t, chip).at[axis]];
    n_seen += !*seen;
    *seen = true;
  }
  return n_seen;
}

/* Ranks go to chips in order, and a tp group is tp ranks in a row (plan/mesh.h, pinned
 * in parallel/test_mesh.c). */
static void
tp_groups_lie_on_lines_then_planes (void)
{
  const LsTorusSpec t = { .n_axes = 3, .dims = { 4, 4, 8 }, .host = { 2, 2, 1 } };
  for (uint32_t tp = 2; tp <= 16; tp *= 2)
    for (uint32_t first = 0; first < ls_torus_n_chips (&t); first += tp) {
      LS_CHECK_INT (n_distinct (&t, first, tp, 0), ==, MIN (tp, 4));
      LS_CHECK_INT (n_distinct (&t, first, tp, 1), ==, MAX (1, tp / 4));
      LS_CHECK_INT (n_distinct (&t, first, tp, 2), ==, 1);
    }
}

/* --- the slice of a job --- */

static void
jobs_get_slices_that_fit (void)
{
  LsClusterSpec v5e = tiny_torus (1, 16, 16, 0, LS_WRAP_FULL_AXES),
                v5p = tiny_torus (1, 16, 16, 24, LS_WRAP_CUBES);
  v5e.torus.host[1] = 4;
  v5p.torus.host[2] = 1;
  const struct {
    LsClusterSpec *spec;
    uint32_t n_gpus, n_nodes, dims[LS_TORUS_AXES];
  } cases[] = {
    { &v5e, 1, 1, { 1, 1, 1 } },       { &v5e, 4, 1, { 2, 2, 1 } },       { &v5e, 8, 1, { 2, 4, 1 } },
    { &v5e, 12, 1, { 4, 4, 1 } },      { &v5e, 16, 1, { 4, 4, 1 } },      { &v5p, 4, 1, { 2, 2, 1 } },
    { &v5p, 16, 1, { 2, 2, 4 } },      { &v5e, 32, 1, { 4, 8, 1 } },      { &v5e, 64, 1, { 8, 8, 1 } },
    { &v5e, 128, 1, { 8, 16, 1 } },    { &v5e, 200, 1, { 14, 16, 1 } },   { &v5e, 256, 1, { 16, 16, 1 } },
    { &v5e, 257, 2, { 12, 12, 1 } },   { &v5e, 8192, 32, { 16, 16, 1 } }, { &v5p, 8, 1, { 2, 2, 2 } },
    { &v5p, 64, 1, { 4, 4, 4 } },      { &v5p, 128, 1, { 4, 4, 8 } },     { &v5p, 192, 1, { 4, 4, 12 } },
    { &v5p, 768, 1, { 8, 8, 12 } },    { &v5p, 2048, 1, { 8, 16, 16 } },  { &v5p, 6144, 1, { 16, 16, 24 } },
    { &v5p, 6145, 2, { 12, 12, 24 } }, { &v5p, 8192, 2, { 16, 16, 16 } }, { &v5p, 200, 1, { 4, 8, 8 } },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsClusterSpec s = *cases[i].spec;
    ls_cluster_spec_fit (&s, cases[i].n_gpus);
    LS_CHECK_INT (s.n_nodes, ==, cases[i].n_nodes);
    for (uint32_t axis = 0; axis < LS_TORUS_AXES; axis++)
      LS_CHECK_INT (s.torus.dims[axis], ==, cases[i].dims[axis]);
    LS_CHECK (s.n_nodes * s.gpus_per_node >= cases[i].n_gpus);
    g_autoptr (GError) error = NULL;
    LS_CHECK (ls_cluster_spec_validate (&s, &error));
    LS_CHECK_NO_ERROR (error);
  }
}

static void
a_given_slice_stays (void)
{
  LsClusterSpec s = tiny_torus (1, 16, 16, 24, LS_WRAP_CUBES);
  s.torus.dims[0] = s.torus.dims[1] = s.torus.dims[2] = 8;
  ls_cluster_spec_init_torus (&s);
  ls_cluster_spec_fit (&s, 1024);
  LS_CHECK_INT (s.gpus_per_node, ==, 512);
  LS_CHECK_INT (s.n_nodes, ==, 2);
  LS_CHECK_INT (s.nics.n, ==, 128);
}

static void
check_refused (LsClusterSpec s, const char *expected)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_cluster_spec_validate (&s, &error));
  LS_CHECK_STR (error ? error->message : "nothing", expected);
}

static void
bad_slices_are_refused (void)
{
  LsClusterSpec s = tiny_torus (1, 5, 4, 0, LS_WRAP_ALL);
  check_refused (s, "torus: 5 chips along axis x do not deal out to hosts of 2");
  s = tiny_torus (1, 4, 200, 0, LS_WRAP_NONE);
  check_refused (s, "torus: a way across 4x200x1 chips can take 202 links; expected at most 80");
  s = tiny_torus (1, 512, 512, 0, LS_WRAP_NONE);
  check_refused (s, "torus: a slice of 512x512x1 chips; expected at most 65536 chips");
  s = tiny_torus (1, 4, 4, 0, LS_WRAP_ALL);
  s.gpus_per_node = 8;
  check_refused (s, "torus: 8 chips and 4 NICs a node; the slice has 16 chips and 4 NICs");
  s = tiny_torus (1, 4, 4, 0, LS_WRAP_ALL);
  s.ici.bandwidth_bytes_per_s = 0;
  check_refused (
      s, "torus link: expected a bandwidth above 0, an efficiency in (0, 1] and a latency of 0 or more");
}

/* Worked examples tpu-pod-1 and tpu-pod-2 (tests/README.md). */
static void
pods_have_their_hosts (void)
{
  LsClusterSpec v5e = tiny_torus (1, 16, 16, 0, LS_WRAP_FULL_AXES),
                v5p = tiny_torus (1, 16, 20, 28, LS_WRAP_CUBES);
  v5e.torus.host[1] = 4;
  LS_CHECK_INT (ls_torus_n_hosts (&v5e.torus), ==, 32);
  LS_CHECK_NEAR (ls_torus_n_chips (&v5e.torus) * 2e14, 5.1e16, 0.01);
  LS_CHECK_INT (ls_torus_n_hosts (&v5p.torus), ==, 2240);
  LS_CHECK_INT (2 * ls_torus_n_chips (&v5p.torus), ==, 17920);
  LS_CHECK_NEAR (ls_torus_n_chips (&v5p.torus) * 4.5e14, 4.03e18, 0.01);
  LS_CHECK_NEAR (ls_torus_n_chips (&v5p.torus) * 96e9, 860e12, 0.01);
}

LS_TEST_SUITE (LS_TEST (slices_have_their_links), LS_TEST (a_v5e_pod_has_its_bisection),
               LS_TEST (chips_are_numbered_with_x_fastest), LS_TEST (axes_wrap_by_rule),
               LS_TEST (ways_are_shortest), LS_TEST (ways_are_dimension_ordered),
               LS_TEST (tp_groups_lie_on_lines_then_planes), LS_TEST (jobs_get_slices_that_fit),
               LS_TEST (a_given_slice_stays), LS_TEST (bad_slices_are_refused),
               LS_TEST (pods_have_their_hosts))
