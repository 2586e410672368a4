/* cluster/build.c — a cluster = nodes × interior + fabric, checked, then laid out node by node. Linear
 * in the number of GPUs; index.h says where things come to lie. */
#include <lockstep/error.h>

#include "cluster/fabric.h"
#include "cluster/faults.h"
#include "cluster/index.h"
#include "cluster/interior.h"
#include "cluster/proxy.h"
#include "cluster/segment.h"
#include "cluster/spec.h"

static const LsInteriorKind *const interior_kinds[] = {
  [LS_INTERIOR_SERVER] = &ls_interior_server,
  [LS_INTERIOR_LIST] = &ls_interior_list,
  [LS_INTERIOR_TORUS] = &ls_interior_torus,
};

static const LsFabricKind *const fabric_kinds[] = {
  [LS_FABRIC_LEAF_SPINE] = &ls_fabric_leaf_spine,
  [LS_FABRIC_FAT_TREE] = &ls_fabric_fat_tree,
  [LS_FABRIC_LIST] = &ls_fabric_list,
};

static const LsInteriorKind *
interior_kind (const LsClusterSpec *spec)
{
  g_assert ((gsize) spec->interior < G_N_ELEMENTS (interior_kinds));
  return interior_kinds[spec->interior];
}

static const LsFabricKind *
fabric_kind (const LsClusterSpec *spec)
{
  g_assert ((gsize) spec->fabric < G_N_ELEMENTS (fabric_kinds));
  return fabric_kinds[spec->fabric];
}

static gboolean
check_gpus (const LsClusterSpec *s, GError **error)
{
  uint64_t n_gpus = (uint64_t) s->n_nodes * s->gpus_per_node;
  if (n_gpus <= LS_CLUSTER_MAX_GPUS)
    return TRUE;
  return ls_spec_conflict (error, "%u nodes of %u %s are %" G_GUINT64_FORMAT " %s; expected at most %u",
                           s->n_nodes, s->gpus_per_node, ls_cluster_chip_word (s, s->gpus_per_node),
                           (guint64) n_gpus, ls_cluster_chip_word (s, n_gpus), LS_CLUSTER_MAX_GPUS);
}

static gboolean
check_size (const LsClusterSpec *s, GError **error)
{
  double n = s->n_nodes * interior_kind (s)->n_links (s) + fabric_kind (s)->n_links (s);
  if (n <= LS_CLUSTER_MAX_LINKS)
    return TRUE;
  return ls_spec_conflict (error, "%u nodes and their fabric need %.0f links; expected at most %u",
                           s->n_nodes, n, LS_CLUSTER_MAX_LINKS);
}

gboolean
ls_cluster_spec_validate (const LsClusterSpec *s, GError **error)
{
  if (s->n_nodes == 0)
    return ls_spec_conflict (error, "a cluster needs at least one node");
  if (s->gpus_per_node == 0)
    return ls_spec_conflict (error, "a node needs at least one %s", ls_cluster_chip_word (s, 1));
  if (s->segment > ls_segment_trays (s))
    return ls_spec_conflict (error, "segments of %u compute trays: a node has %u (cpu.boards)", s->segment,
                             ls_segment_trays (s));
  return interior_kind (s)->check (s, error) && check_gpus (s, error) && fabric_kind (s)->check (s, error)
      && check_size (s, error);
}

static void
add_index (LsCluster *c)
{
  LsTopoIndex *x = c->index = g_new0 (LsTopoIndex, 1);
  x->names = g_string_chunk_new (16 * 1024);
  x->interior = interior_kind (&c->spec)->new (&c->spec);
  x->interior->kind = interior_kind (&c->spec);
  x->fabric = fabric_kind (&c->spec)->new (&c->spec);
  x->fabric->kind = fabric_kind (&c->spec);
  x->trunks_per_node = x->interior->n_trunks + x->fabric->trunks_per_node;
  x->fabric->first_vertex = c->spec.n_nodes * x->interior->n_vertices;
  x->fabric->first_trunk = c->spec.n_nodes * x->trunks_per_node;
}

static void
lay_out (LsCluster *c)
{
  const LsInterior *interior = c->index->interior;
  const LsFabric *fabric = c->index->fabric;
  for (uint32_t host = 0; host < c->spec.n_nodes; host++) {
    interior->kind->lay_out (interior, c, host);
    g_assert (c->nodes->len == (host + 1) * interior->n_vertices);
    c->index->interior_links = c->links->len - host * c->index->links_per_node;
    fabric->kind->lay_out_node (fabric, c, host);
    g_assert (c->trunks->len == (host + 1) * c->index->trunks_per_node);
    c->index->links_per_node = c->links->len / (host + 1);
  }
  fabric->kind->lay_out (fabric, c);
  g_assert (c->nodes->len == fabric->first_vertex + fabric->n_vertices);
  g_assert (c->trunks->len == fabric->first_trunk + fabric->n_trunks);
}

/* What depends on all that is laid out. */
static gboolean
finish (LsCluster *c, GError **error)
{
  LsFabric *fabric = c->index->fabric;
  if (!ls_faults_apply (c, error) || (fabric->kind->finish && !fabric->kind->finish (fabric, c, error)))
    return FALSE;
  /* Of a node that stands for all; one with faults has its own. */
  c->index->proxies = ls_proxies_new (c, ls_first_sound_node (c));
  return ls_faults_finish (c, error);
}

#define NAME_BYTES 32 /* of a trunk and of a vertex, in the string chunk: "node12345/gpu7>nvswitch0" */

static gboolean
check_bytes (const LsCluster *c, uint64_t max_bytes, GError **error)
{
  const LsFabric *fabric = c->index->fabric;
  uint64_t n_vertices = (uint64_t) fabric->first_vertex + fabric->n_vertices,
           n_trunks = (uint64_t) fabric->first_trunk + fabric->n_trunks;
  uint64_t bytes = n_vertices * (sizeof (LsTopoNode) + NAME_BYTES)
      + n_trunks * (sizeof (LsLink) + sizeof (LsTrunk) + NAME_BYTES);
  if (bytes <= max_bytes)
    return TRUE;
  g_autofree char *need = ls_format_bytes (bytes), *may = ls_format_bytes (max_bytes);
  g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
               "a cluster of %u %s with %" G_GUINT64_FORMAT
               " links needs about %s of memory; --max-memory is %s",
               c->n_gpus, ls_cluster_chip_word (&c->spec, c->n_gpus), n_trunks, need, may);
  return FALSE;
}

LsCluster *
ls_cluster_build (const LsClusterSpec *spec, GError **error)
{
  return ls_cluster_build_within (spec, UINT64_MAX, error);
}

LsCluster *
ls_cluster_build_within (const LsClusterSpec *spec, uint64_t max_bytes, GError **error)
{
  if (!ls_cluster_spec_validate (spec, error))
    return NULL;

  LsCluster *c = g_new0 (LsCluster, 1);
  ls_cluster_spec_copy (spec, &c->spec);
  c->n_gpus = spec->n_nodes * spec->gpus_per_node;
  add_index (c);
  if (!check_bytes (c, max_bytes, error)) {
    ls_cluster_free (c);
    return NULL;
  }
  const LsFabric *fabric = c->index->fabric;
  guint n_trunks = fabric->first_trunk + fabric->n_trunks;
  c->nodes = g_array_sized_new (FALSE, FALSE, sizeof (LsTopoNode), fabric->first_vertex + fabric->n_vertices);
  c->links = g_array_sized_new (FALSE, FALSE, sizeof (LsLink), n_trunks);
  c->trunks = g_array_sized_new (FALSE, FALSE, sizeof (LsTrunk), n_trunks);
  lay_out (c);
  if (!finish (c, error))
    g_clear_pointer (&c, ls_cluster_free);
  return c;
}

void
ls_cluster_free (LsCluster *c)
{
  if (!c)
    return;
  c->index->interior->kind->free (c->index->interior);
  c->index->fabric->kind->free (c->index->fabric);
  g_string_chunk_free (c->index->names);
  g_free (c->index->proxies);
  g_clear_pointer (&c->index->faulty_nodes, g_hash_table_unref);
  g_free (c->index);
  g_clear_pointer (&c->nodes, g_array_unref);
  g_clear_pointer (&c->links, g_array_unref);
  g_clear_pointer (&c->trunks, g_array_unref);
  ls_cluster_spec_clear (&c->spec);
  g_free (c);
}
