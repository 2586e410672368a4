/* cluster/build.c — a cluster = nodes × interior + fabric, checked, then laid out node by node. Linear
 * in the number of GPUs; index.h says where things come to lie. */
#include <lockstep/error.h>
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "cluster/index.h"

#define ROW(id, name) &ls_interior_##name,
static const LsInteriorKind *const interior_kinds[] = { LS_INTERIORS (ROW) };

static const LsFabricKind *const fabric_kinds[] = {
  [LS_FABRIC_LEAF_SPINE] = &ls_fabric_leaf_spine,
  [LS_FABRIC_FAT_TREE] = &ls_fabric_fat_tree,
  [LS_FABRIC_LIST] = &ls_fabric_list,
  [LS_FABRIC_DRAGONFLY] = &ls_fabric_dragonfly,
  [LS_FABRIC_DRAGONFLY_PLUS] = &ls_fabric_dragonfly_plus,
};

static const LsInteriorKind *
interior_kind (const LsClusterSpec *spec)
{
  g_assert ((gsize) spec->interior < G_N_ELEMENTS (interior_kinds));
  return interior_kinds[spec->interior];
}

const LsInteriorTraits *
ls_cluster_traits (const LsClusterSpec *spec)
{
  return &interior_kind (spec)->traits;
}

const char *
ls_cluster_chip_word (const LsClusterSpec *spec, uint64_t n)
{
  const LsInteriorTraits *traits = ls_cluster_traits (spec);
  return n == 1 ? traits->chip : traits->chips;
}

uint32_t
ls_cluster_n_cpu_hosts (const LsClusterSpec *spec)
{
  const LsInteriorKind *kind = interior_kind (spec);
  return kind->n_cpu_hosts ? kind->n_cpu_hosts (spec) : 1;
}

uint32_t
ls_cluster_cpu_host_of (const LsCluster *c, uint32_t gpu)
{
  const LsClusterSpec *spec = ls_cluster_node_spec (c, ls_cluster_host_of (c, gpu));
  const LsInteriorKind *kind = interior_kind (spec);
  return kind->cpu_host_of ? kind->cpu_host_of (spec, ls_cluster_local_of (c, gpu)) : 0;
}

static const LsFabricKind *
fabric_kind (const LsClusterSpec *spec)
{
  g_assert ((gsize) spec->fabric < G_N_ELEMENTS (fabric_kinds));
  return ls_is_dragonfly (spec) && spec->network.routing == LS_ROUTING_MINIMAL ? &ls_fabric_minimal
                                                                               : fabric_kinds[spec->fabric];
}

static gboolean
check_gpus (const LsClusterSpec *s, GError **error)
{
  uint64_t n_gpus = ls_cluster_spec_n_gpus (s);
  if (n_gpus <= LS_CLUSTER_MAX_GPUS)
    return TRUE;
  if (s->others)
    return ls_spec_conflict (error, "%u nodes have %" G_GUINT64_FORMAT " %s; expected at most %u", s->n_nodes,
                             (guint64) n_gpus, ls_cluster_chip_word (s, n_gpus), LS_CLUSTER_MAX_GPUS);
  return ls_spec_conflict (error, "%u nodes of %u %s are %" G_GUINT64_FORMAT " %s; expected at most %u",
                           s->n_nodes, s->gpus_per_node, ls_cluster_chip_word (s, s->gpus_per_node),
                           (guint64) n_gpus, ls_cluster_chip_word (s, n_gpus), LS_CLUSTER_MAX_GPUS);
}

static gboolean
check_size (const LsClusterSpec *s, GError **error)
{
  double of_node = interior_kind (s)->n_links (s);
  for (uint32_t k = 1; k < ls_cluster_spec_n_kinds (s); k++) {
    const LsClusterSpec *other = ls_cluster_spec_of_kind (s, k);
    of_node = MAX (of_node, interior_kind (other)->n_links (other));
  }
  double n = s->n_nodes * of_node + fabric_kind (s)->n_links (s);
  if (n <= LS_CLUSTER_MAX_LINKS)
    return TRUE;
  return ls_spec_conflict (error, "%u nodes and their fabric need %.0f links; expected at most %u",
                           s->n_nodes, n, LS_CLUSTER_MAX_LINKS);
}

/* What all nodes of a cluster have in common. */
gboolean
ls_cluster_spec_check_other (const LsClusterSpec *s, const LsOtherNodes *o, GError **error)
{
  const LsClusterSpec *other = o->spec;
  if (ls_cluster_traits (s)->is_slice || ls_cluster_traits (other)->is_slice)
    return ls_spec_conflict (error, "slices of a torus are all alike: no other nodes next to or as %s",
                             o->like);
  if ((other->nics.n == 0) != (s->nics.n == 0))
    return ls_spec_conflict (error, "nodes of %s have %s NICs, those of %s %s", o->like,
                             other->nics.n == 0 ? "no" : "some", s->name,
                             s->nics.n == 0 ? "none" : "have some");
  if (other->nics.is_staged != s->nics.is_staged || other->nics.transport != s->nics.transport)
    return ls_spec_conflict (error, "nodes of %s send in another way than those of %s (transport, gpudirect)",
                             o->like, s->name);
  if (s->segment > 0)
    return ls_spec_conflict (error, "segments of compute trays go with nodes that are all alike");
  return interior_kind (other)->check (other, error)
      && (s->nics.n == 0 || ls_spec_check_link ("nic link", TRUE, &other->nics.port, error));
}

static gboolean
check_others (const LsClusterSpec *s, GError **error)
{
  for (guint i = 0; s->others && i < s->others->len; i++)
    if (!ls_cluster_spec_check_other (s, &g_array_index (s->others, LsOtherNodes, i), error))
      return FALSE;
  return TRUE;
}

static gboolean
check_routing (const LsClusterSpec *s, GError **error)
{
  bool is_of_dragonfly = s->network.routing == LS_ROUTING_MINIMAL || s->network.routing == LS_ROUTING_VALIANT;
  if (!is_of_dragonfly || ls_is_dragonfly (s))
    return TRUE;
  return ls_spec_conflict (
      error,
      "routing \"%s\" has a meaning in a dragonfly alone: in a fabric of kind \"%s\" all ways "
      "are minimal; expected ideal, adaptive, spray or ecmp",
      s->network.routing == LS_ROUTING_MINIMAL ? "minimal" : "valiant", fabric_kind (s)->name);
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
  return interior_kind (s)->check (s, error) && check_others (s, error) && check_gpus (s, error)
      && check_routing (s, error) && fabric_kind (s)->check (s, error) && check_size (s, error);
}

static void
add_starts (LsCluster *c)
{
  LsTopoIndex *x = c->index;
  uint32_t n = c->spec.n_nodes;
  x->starts = ls_arena_new_array (x->arena, LsNodeStart, n + 1);
  c->kind_of_host = ls_arena_new_array (x->arena, uint8_t, n);
  for (uint32_t host = 0; host < n; host++) {
    c->kind_of_host[host] = (uint8_t) ls_cluster_spec_kind_of (&c->spec, host);
    const LsNodeLayout *layout = ls_layout_of (c, host);
    x->starts[host + 1].vertex = x->starts[host].vertex + layout->interior->n_vertices;
    x->starts[host + 1].trunk = x->starts[host].trunk + layout->n_trunks;
  }
}

static void
add_index (LsCluster *c)
{
  LsArena *arena = ls_arena_new ();
  LsTopoIndex *x = c->index = ls_arena_new_array (arena, LsTopoIndex, 1);
  x->arena = arena;
  x->names = g_string_chunk_new (16 * 1024);
  x->fabric = fabric_kind (&c->spec)->new (&c->spec, arena);
  x->fabric->kind = fabric_kind (&c->spec);
  x->fabric->spec = &c->spec;
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&c->spec); k++) {
    const LsClusterSpec *spec = ls_cluster_spec_of_kind (&c->spec, k);
    LsInterior *interior = x->layouts[k].interior = interior_kind (spec)->new (spec, arena);
    interior->kind = interior_kind (spec);
    interior->spec = spec;
    x->layouts[k].n_trunks = interior->n_trunks + 2 * spec->nics.n;
  }
  if (c->spec.others)
    add_starts (c);
  x->fabric->first_trunk = ls_first_trunk (c, c->spec.n_nodes);
  c->n_trunks = x->fabric->first_trunk + x->fabric->n_trunks;
}

static void
lay_out_node (LsCluster *c, uint32_t host)
{
  LsNodeLayout *layout = &c->index->layouts[ls_cluster_kind_of (c, host)];
  const LsFabric *fabric = c->index->fabric;
  uint32_t first = c->links->len;
  layout->interior->kind->lay_out (layout->interior, c, host);
  layout->interior_links = c->links->len - first;
  ls_fabric_lay_out_ports (fabric, c, host);
  layout->n_links = c->links->len - first;
  if (c->index->starts)
    c->index->starts[host + 1].link = c->links->len;
  g_assert (c->nodes->len == ls_first_vertex (c, host) + layout->interior->n_vertices);
  g_assert (c->trunks->len == ls_first_trunk_slot (c, host) + layout->n_trunks);
  g_assert (c->links->len == ls_first_link (c, host) + layout->n_links);
}

static void
lay_out (LsCluster *c)
{
  LsTopoIndex *x = c->index;
  const LsFabric *fabric = x->fabric;
  x->has_links = true;
  for (uint32_t i = 0; i < ls_slot_of (c, c->spec.n_nodes); i++) /* hosts that are there one by one */
    lay_out_node (c, !x->is_brief ? i : i > 0 ? x->own[i - 1] : x->first_alike);
  c->index->has_links = !c->index->is_brief;
  fabric->kind->lay_out (fabric, c);
  g_assert (c->nodes->len == fabric->first_vertex + fabric->n_vertices);
  g_assert (c->trunks->len == ls_first_trunk_slot (c, c->spec.n_nodes) + ls_fabric_slots (c));
}

/* What depends on all that is laid out. */
static gboolean
finish (LsCluster *c, GError **error)
{
  LsFabric *fabric = c->index->fabric;
  if (!ls_faults_apply (c, error) || (fabric->kind->finish && !fabric->kind->finish (fabric, c, error)))
    return FALSE;
  /* Of a node that stands for all of its kind; one with faults has its own. */
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&c->spec); k++) {
    uint32_t host = ls_first_sound_node (c, k);
    c->index->layouts[k].proxies = host < c->spec.n_nodes ? ls_proxies_new (c, host) : NULL;
  }
  return ls_faults_finish (c, error);
}

#define NAME_BYTES 32 /* of a trunk and of a vertex, in the string chunk: "node12345/gpu7>nvswitch0" */

static gboolean
check_bytes (const LsCluster *c, uint64_t max_bytes, GError **error)
{
  const LsFabric *fabric = c->index->fabric;
  uint64_t n_vertices = (uint64_t) fabric->first_vertex + fabric->n_vertices,
           n_trunks = (uint64_t) ls_first_trunk_slot (c, c->spec.n_nodes) + ls_fabric_slots (c);
  uint64_t bytes = n_vertices * (sizeof (LsTopoNode) + NAME_BYTES)
      + n_trunks * (sizeof (LsLink) + sizeof (LsTrunk) + NAME_BYTES);
  if (bytes <= max_bytes)
    return TRUE;
  g_autofree char *need = ls_format_bytes (bytes), *may = ls_format_bytes (max_bytes);
  return ls_fail (error, LS_ERROR_LIMIT,
                  "a cluster of %u %s with %" G_GUINT64_FORMAT
                  " links needs about %s of memory; --max-memory is %s",
                  c->n_gpus, ls_cluster_chip_word (&c->spec, c->n_gpus), (uint64_t) c->n_trunks, need, may);
}

static bool
can_be_brief (const LsCluster *c)
{
  const LsFabric *fabric = c->index->fabric;
  LsPlaces places;
  return !c->spec.others && fabric->kind->groups && fabric->kind->groups (fabric, &places);
}

/* Nodes with faults stand for themselves, and the first without for all others. False: a fault is in no node,
 * or there is one in each. */
static bool
find_own (LsCluster *c)
{
  LsTopoIndex *x = c->index;
  guint n = c->spec.network.faults ? c->spec.network.faults->len : 0;
  x->own = ls_arena_new_array (x->arena, uint32_t, n + 1);
  for (guint i = 0; i < n; i++) {
    x->own[i] = ls_faults_node_named (&c->spec, g_array_index (c->spec.network.faults, LsFault, i).link);
    if (x->own[i] == c->spec.n_nodes)
      return false;
  }
  qsort (x->own, n, sizeof *x->own, ls_compare_uint32);
  for (guint i = 0; i < n; i++)
    if (i == 0 || x->own[i] != x->own[i - 1])
      x->own[x->n_own++] = x->own[i];
  while (x->first_alike < x->n_own && x->own[x->first_alike] == x->first_alike)
    x->first_alike++;
  return x->first_alike < c->spec.n_nodes;
}

/* In a brief cluster, of what stands for others. */
static void
forget_names (LsCluster *c, guint n_node_trunks)
{
  for (guint t = 0; c->index->is_brief && t < c->trunks->len; t++)
    if (t < c->index->layouts[0].n_trunks || t >= n_node_trunks)
      g_array_index (c->trunks, LsTrunk, t).name = NULL;
}

LsCluster *
ls_cluster_build_within (const LsClusterSpec *spec, bool is_brief, uint64_t max_bytes, GError **error)
{
  if (!ls_cluster_spec_validate (spec, error))
    return NULL;

  LsCluster *c = g_new0 (LsCluster, 1);
  ls_cluster_spec_copy (spec, &c->spec);
  ls_seats_init (&c->seats, &c->spec);
  c->n_gpus = c->seats.n_gpus;
  add_index (c);
  c->index->is_brief = is_brief && can_be_brief (c) && find_own (c);
  c->index->fabric->first_vertex = ls_first_vertex (c, c->spec.n_nodes);
  if (!check_bytes (c, max_bytes, error)) {
    ls_cluster_free (c);
    return NULL;
  }
  const LsFabric *fabric = c->index->fabric;
  guint n_node_trunks = ls_first_trunk_slot (c, c->spec.n_nodes),
        n_trunks = n_node_trunks + ls_fabric_slots (c),
        n_vertices = fabric->first_vertex + fabric->n_vertices;
  c->nodes = g_array_sized_new (FALSE, FALSE, sizeof (LsTopoNode), n_vertices);
  c->links = g_array_sized_new (FALSE, FALSE, sizeof (LsLink), c->index->is_brief ? n_node_trunks : n_trunks);
  c->trunks = g_array_sized_new (FALSE, FALSE, sizeof (LsTrunk), n_trunks);
  lay_out (c);
  if (!finish (c, error))
    g_clear_pointer (&c, ls_cluster_free);
  if (c)
    forget_names (c, n_node_trunks);
  return c;
}

LsCluster *
ls_cluster_build (const LsClusterSpec *spec, GError **error)
{
  return ls_cluster_build_within (spec, false, UINT64_MAX, error);
}

LsCluster *
ls_cluster_spell_out (const LsCluster *c)
{
  return ls_cluster_build (&c->spec, NULL);
}

void
ls_cluster_free (LsCluster *c)
{
  if (!c)
    return;
  ls_seats_clear (&c->seats);
  g_string_chunk_free (c->index->names);
  ls_arena_free (c->index->arena);
  g_clear_pointer (&c->nodes, g_array_unref);
  g_clear_pointer (&c->links, g_array_unref);
  g_clear_pointer (&c->trunks, g_array_unref);
  ls_cluster_spec_clear (&c->spec);
  g_free (c);
}

/* ---- what is probably a mistake ---- */

/* The slowest link of a list that leads to a NIC; 0: there is none. */
static double
rate_to_nics (const LsClusterSpec *c)
{
  double rate = INFINITY;
  for (guint i = 0; i < c->list.links->len; i++) {
    const LsListLink *l = &g_array_index (c->list.links, LsListLink, i);
    if (ls_spec_list_kind (c, l->from) == LS_NODE_NIC || ls_spec_list_kind (c, l->to) == LS_NODE_NIC)
      rate = fmin (rate, MAX (l->count, 1) * l->link.bandwidth_bytes_per_s);
  }
  return isinf (rate) ? 0 : rate;
}

/* A network card is on PCIe, and no faster; not those of the hosts of TPUs, which chips do not send by. */
static void
doubt_nic (const LsClusterSpec *c, GPtrArray *notes)
{
  double nic = c->nics.port.bandwidth_bytes_per_s,
         pcie = c->list.links ? rate_to_nics (c) : c->server.pcie.bandwidth_bytes_per_s;
  if (ls_cluster_traits (c)->is_slice || c->nics.n == 0 || pcie <= 0 || nic <= pcie)
    return;
  g_autofree char *fast = ls_format_rate (nic), *slow = ls_format_rate (pcie);
  /* nobody typed the rates of files of other programs */
  const char *typed = c->guessed ? "" : ": is node.nics.link.bandwidth in bits (400Gbit/s is 50GB/s)?";
  g_ptr_array_add (
      notes, g_strdup_printf ("a NIC of %s is behind PCIe of %s, which holds it up%s", fast, slow, typed));
}

void
ls_cluster_doubts (const LsClusterSpec *cluster, GPtrArray *notes)
{
  ls_gpu_doubts (&cluster->gpu, notes);
  doubt_nic (cluster, notes);
}
