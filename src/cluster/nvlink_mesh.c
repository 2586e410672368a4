#include "cluster/nvlink_mesh.h"

#include "cluster/spec.h"

/* DGX-1 with V100, the hybrid cube mesh: two fully joined quads 0-3 and 4-7, and i joined
 * to i + 4, 6 NVLinks per GPU. Those of GPUs 0 and 1 are in the NCCL topology dump of a
 * DGX-1V of NVIDIA/nccl issue #671, the rest follows from the symmetry and the 6 links. */
static const LsMeshLink hybrid_cube[] = {
  { 0, 1, 1 }, { 0, 2, 1 }, { 0, 3, 2 }, { 0, 4, 2 }, { 1, 2, 2 }, { 1, 3, 1 }, { 1, 5, 2 }, { 2, 3, 2 },
  { 2, 6, 1 }, { 3, 7, 1 }, { 4, 5, 1 }, { 4, 6, 1 }, { 4, 7, 2 }, { 5, 6, 2 }, { 5, 7, 1 }, { 6, 7, 2 },
};
#define HYBRID_CUBE_GPUS 8

/* MI300X and its successors: a link from each GPU to each other. */
static void
append_full (GArray *links, uint32_t n_gpus)
{
  for (uint32_t a = 0; a < n_gpus; a++)
    for (uint32_t b = a + 1; b < n_gpus; b++) {
      const LsMeshLink link = { a, b, 1 };
      g_array_append_val (links, link);
    }
}

static int
by_ends (gconstpointer a, gconstpointer b)
{
  const LsMeshLink *x = a, *y = b;
  return x->a != y->a ? (x->a > y->a) - (x->a < y->a) : (x->b > y->b) - (x->b < y->b);
}

GArray *
ls_mesh_links (const LsClusterSpec *s)
{
  GArray *links = g_array_new (FALSE, FALSE, sizeof (LsMeshLink));
  if (s->mesh == LS_MESH_HYBRID_CUBE)
    g_array_append_vals (links, hybrid_cube, G_N_ELEMENTS (hybrid_cube));
  if (s->mesh == LS_MESH_FULL)
    append_full (links, s->gpus_per_node);
  for (guint i = 0; s->mesh == LS_MESH_LIST && s->mesh_links && i < s->mesh_links->len; i++) {
    LsMeshLink link = g_array_index (s->mesh_links, LsMeshLink, i);
    LsMeshLink sorted = { MIN (link.a, link.b), MAX (link.a, link.b), link.count };
    g_array_append_val (links, sorted);
  }
  g_array_sort (links, by_ends);
  return links;
}

double
ls_mesh_n_links (const LsClusterSpec *s)
{
  if (s->mesh == LS_MESH_HYBRID_CUBE)
    return G_N_ELEMENTS (hybrid_cube);
  if (s->mesh == LS_MESH_FULL)
    return 0.5 * s->gpus_per_node * (s->gpus_per_node - 1.0);
  return s->mesh == LS_MESH_LIST && s->mesh_links ? s->mesh_links->len : 0;
}

LsWays *
ls_mesh_ways (const LsClusterSpec *s, const GArray *mesh_links)
{
  uint32_t n = s->gpus_per_node;
  g_autofree LsNodeKind *kinds = g_new0 (LsNodeKind, n); /* LS_NODE_GPU */
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  g_autofree LsLink *links = g_new (LsLink, 2 * mesh_links->len);
  for (uint32_t i = 0; i < n; i++) {
    kinds[i] = LS_NODE_GPU;
    gpus[i] = i;
  }
  for (guint i = 0; i < mesh_links->len; i++) {
    const LsMeshLink *m = &g_array_index (mesh_links, LsMeshLink, i);
    LsLink link = { .from = m->a,
                    .to = m->b,
                    .trunk = 2 * i,
                    .n_physical = m->count,
                    .capacity_bytes_per_s = m->count * ls_link_capacity (&s->nvlink),
                    .latency = s->nvlink.latency };
    links[2 * i] = link;
    link.from = m->b;
    link.to = m->a;
    link.trunk++;
    links[2 * i + 1] = link;
  }
  return ls_ways_new (kinds, n, links, 2 * mesh_links->len, gpus, n, gpus, n);
}

static gboolean
check_pairs (const LsClusterSpec *s, const GArray *links, GError **error)
{
  for (guint i = 0; i < links->len; i++) {
    const LsMeshLink *link = &g_array_index (links, LsMeshLink, i);
    if (link->b >= s->gpus_per_node)
      return ls_spec_conflict (error, "nvlink_mesh: GPU %u of a node of %u GPUs (the first is 0)", link->b,
                               s->gpus_per_node);
    if (link->a == link->b)
      return ls_spec_conflict (error, "nvlink_mesh: GPU %u is joined to itself", link->a);
    if (link->count == 0)
      return ls_spec_conflict (error, "nvlink_mesh: GPUs %u and %u are joined by 0 links", link->a, link->b);
    if (i > 0 && by_ends (link - 1, link) == 0)
      return ls_spec_conflict (error,
                               "nvlink_mesh: GPUs %u and %u are joined twice; give the sum of their links",
                               link->a, link->b);
  }
  return TRUE;
}

static gboolean
check_ways (const LsClusterSpec *s, const GArray *links, GError **error)
{
  uint32_t n = s->gpus_per_node, far = 0;
  LsWays *ways = ls_mesh_ways (s, links);
  while (far < n * n && ls_ways_length (ways, far / n, far % n) != LS_WAYS_NONE)
    far++;
  ls_ways_free (ways);
  return far == n * n
      || ls_spec_conflict (
             error,
             "nvlink_mesh: GPUs %u and %u have no NVLink and no common neighbour, and there is no PCIe",
             far / n, far % n);
}

gboolean
ls_mesh_check (const LsClusterSpec *s, bool has_pcie, GError **error)
{
  if (s->mesh == LS_MESH_HYBRID_CUBE && s->gpus_per_node != HYBRID_CUBE_GPUS)
    return ls_spec_conflict (error, "nvlink_mesh: a hybrid cube mesh has %u GPUs; got %u", HYBRID_CUBE_GPUS,
                             s->gpus_per_node);
  if (s->gpus_per_node > LS_MESH_MAX_GPUS)
    return ls_spec_conflict (error, "nvlink_mesh: %u GPUs; expected at most %u", s->gpus_per_node,
                             LS_MESH_MAX_GPUS);
  g_autoptr (GArray) links = ls_mesh_links (s);
  return check_pairs (s, links, error) && (has_pcie || check_ways (s, links, error));
}
