/* cluster/spec.c — copies of a spec, what its checks share, and putting parts into a cluster (index.h). */
#include <stddef.h>
#include <string.h>

#include <lockstep/error.h>

#include "cluster/index.h"

/* Strings of a struct, by their places in it. */
typedef struct {
  uint32_t n;
  size_t at[13];
} Strings;

#define STRINGS(...)                                                                                         \
  {                                                                                                          \
    sizeof ((size_t[]) { __VA_ARGS__ }) / sizeof (size_t),                                                   \
    {                                                                                                        \
      __VA_ARGS__                                                                                            \
    }                                                                                                        \
  }

#define AT(member) offsetof (LsClusterSpec, member)

const LsLinkRow ls_cluster_links[] = {
  { AT (server.nvlink), LS_LINKS_OF_GPUS, "nvlink" },
  { AT (ici), LS_LINKS_OF_GPUS, "ici" },
  { AT (server.pcie), LS_LINKS_OF_PCIE, "pcie" },
  { AT (server.c2c), LS_LINKS_OF_PCIE, "nvlink-c2c" },
  { AT (server.cpu_interconnect), LS_LINKS_OF_HOSTS, "cpu interconnect" },
  { AT (server.cpu_memory), LS_LINKS_OF_HOSTS, "memory" },
  { AT (server.nvme), LS_LINKS_OF_HOSTS, "nvme" },
  { AT (server.write_bridge), LS_LINKS_OF_HOSTS, "p2p writes" },
  { AT (server.write_sockets), LS_LINKS_OF_HOSTS, "p2p writes" },
  { AT (nics.port), LS_LINKS_OF_FABRIC, "nic" },
  { AT (network.spine), LS_LINKS_OF_FABRIC, "fabric" },
  { AT (network.core), LS_LINKS_OF_FABRIC, "core", "global" },
  { 0 },
};

static const Strings of_spec = STRINGS (AT (name), AT (source), AT (fitted.runs.file),
                                        AT (fitted.runs.architecture), AT (network.known.of));

static const Strings of_gpu = STRINGS (
    offsetof (LsGpu, name), offsetof (LsGpu, source), offsetof (LsGpu, product), offsetof (LsGpu, capability),
    offsetof (LsGpu, calibration), offsetof (LsGpu, nccl), offsetof (LsGpu, access),
    offsetof (LsGpu, cluster), offsetof (LsGpu, kernels_known.of), offsetof (LsGpu, collectives_known.of),
    offsetof (LsGpu, left_out), offsetof (LsGpu, pci), offsetof (LsGpu, other_forms));

static const Strings none
    = { 0 },
    of_string = STRINGS (0), of_vertex = STRINGS (offsetof (LsListVertex, name)),
    of_link
    = STRINGS (offsetof (LsListLink, from), offsetof (LsListLink, to), offsetof (LsListLink, link.source)),
    of_nics = STRINGS (offsetof (LsListNics, at)), of_fault = STRINGS (offsetof (LsFault, link)),
    of_others = STRINGS (offsetof (LsOtherNodes, nodes), offsetof (LsOtherNodes, like)),
    of_unsaid = STRINGS (offsetof (LsUnsaid, path), offsetof (LsUnsaid, value), offsetof (LsUnsaid, instead));

/* Lists of a spec, and the strings of their elements. */
static const struct {
  size_t at;
  const Strings *strings;
} lists[] = {
  { offsetof (LsClusterSpec, list.vertices), &of_vertex },
  { offsetof (LsClusterSpec, list.links), &of_link },
  { offsetof (LsClusterSpec, server.mesh_links), &none },
  { offsetof (LsClusterSpec, network.switches), &of_string },
  { offsetof (LsClusterSpec, network.links), &of_link },
  { offsetof (LsClusterSpec, network.nics), &of_nics },
  { offsetof (LsClusterSpec, network.faults), &of_fault },
  { offsetof (LsClusterSpec, successors), &of_string },
  { offsetof (LsClusterSpec, fitted.runs.traits), &of_string },
  { offsetof (LsClusterSpec, others), &of_others },
  { offsetof (LsClusterSpec, unsaid), &of_unsaid },
  { offsetof (LsClusterSpec, also), &of_string },
  { offsetof (LsClusterSpec, guessed), &of_string },
  { offsetof (LsClusterSpec, slices), &of_string },
};

static void
clear_strings (gpointer of, const Strings *strings)
{
  for (uint32_t i = 0; i < strings->n; i++)
    g_clear_pointer (&G_STRUCT_MEMBER (char *, of, strings->at[i]), g_free);
}

static void
copy_strings (gpointer of, const Strings *strings)
{
  for (uint32_t i = 0; i < strings->n; i++)
    G_STRUCT_MEMBER (char *, of, strings->at[i]) = g_strdup (G_STRUCT_MEMBER (char *, of, strings->at[i]));
}

/* Of each element of a list. */
static void
of_each (GArray *list, void what (gpointer of, const Strings *strings), const Strings *strings)
{
  for (guint i = 0; list && i < list->len; i++)
    what (list->data + i * g_array_get_element_size (list), strings);
}

void
ls_cluster_spec_forget_faults (LsClusterSpec *spec)
{
  of_each (spec->network.faults, clear_strings, &of_fault);
  g_clear_pointer (&spec->network.faults, g_array_unref);
}

void
ls_cluster_spec_clear (LsClusterSpec *spec)
{
  if (!spec)
    return;
  clear_strings (spec, &of_spec);
  for (const LsLinkRow *row = ls_cluster_links; row->name; row++)
    g_clear_pointer (&ls_cluster_link (spec, row)->source, g_free);
  ls_gpu_clear (&spec->gpu);
  for (guint i = 0; spec->others && i < spec->others->len; i++) {
    LsOtherNodes *o = &g_array_index (spec->others, LsOtherNodes, i);
    g_clear_pointer (&o->ranges, g_array_unref);
    ls_cluster_spec_clear (o->spec);
    g_free (o->spec);
  }
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    GArray **list = &G_STRUCT_MEMBER (GArray *, spec, lists[i].at);
    of_each (*list, clear_strings, lists[i].strings);
    g_clear_pointer (list, g_array_unref);
  }
}

static GArray *
copy_array (GArray *array)
{
  return array ? g_array_copy (array) : NULL;
}

void
ls_cluster_spec_copy (const LsClusterSpec *spec, LsClusterSpec *ret_copy)
{
  *ret_copy = *spec;
  copy_strings (ret_copy, &of_spec);
  for (const LsLinkRow *row = ls_cluster_links; row->name; row++)
    ls_cluster_link (ret_copy, row)->source = g_strdup (ls_cluster_link (spec, row)->source);
  ls_gpu_copy (&spec->gpu, &ret_copy->gpu);
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    GArray **list = &G_STRUCT_MEMBER (GArray *, ret_copy, lists[i].at);
    *list = copy_array (*list);
    of_each (*list, copy_strings, lists[i].strings);
  }
  for (guint i = 0; ret_copy->others && i < ret_copy->others->len; i++) {
    LsOtherNodes *o = &g_array_index (ret_copy->others, LsOtherNodes, i);
    const LsClusterSpec *own = o->spec;
    o->ranges = copy_array (o->ranges);
    o->spec = g_new (LsClusterSpec, 1);
    ls_cluster_spec_copy (own, o->spec);
  }
}

int
ls_spec_list_kind (const LsClusterSpec *s, const char *name)
{
  for (guint i = 0; i < s->list.vertices->len; i++) {
    const LsListVertex *v = &g_array_index (s->list.vertices, LsListVertex, i);
    if (strcmp (v->name, name) == 0)
      return v->kind;
  }
  return -1;
}

static bool
joins_gpus (const LsClusterSpec *s, const char *name)
{
  int kind = ls_spec_list_kind (s, name);
  return kind == LS_NODE_GPU || kind == LS_NODE_NVSWITCH;
}

bool
ls_cluster_spec_is_nvlink (const LsClusterSpec *s, const LsListLink *link)
{
  return joins_gpus (s, link->from) && joins_gpus (s, link->to);
}

gboolean
ls_spec_check_link (const char *what, gboolean is_used, const LsLinkSpec *link, GError **error)
{
  gboolean is_legal = link->bandwidth_bytes_per_s > 0 && link->efficiency > 0 && link->efficiency <= 1
      && link->latency >= 0;
  if (is_used && !is_legal)
    return ls_spec_conflict (
        error, "%s: expected a bandwidth above 0, an efficiency in (0, 1] and a latency of 0 or more", what);
  return TRUE;
}

gboolean
ls_spec_check_listed (const char *what, guint i, const LsListLink *link, bool is_in_order,
                      const LsLinkSpec *figures, GHashTable *joined, GError **error)
{
  int order = strcmp (link->from, link->to);
  const char *low = order < 0 ? link->from : link->to, *high = order < 0 ? link->to : link->from;
  const char *a = is_in_order ? low : link->from, *b = is_in_order ? high : link->to;
  if (order == 0)
    return ls_spec_conflict (error, "%s: link %u joins \"%s\" to itself", what, i, link->from);
  if (!g_hash_table_add (joined, g_strdup_printf ("%s\n%s", low, high)))
    return ls_spec_conflict (error, "%s: \"%s\" and \"%s\" are joined twice; give the sum as \"count\"", what,
                             a, b);
  if (link->count == 0)
    return ls_spec_conflict (error, "%s: \"%s\" and \"%s\" are joined by 0 links", what, a, b);
  g_autofree char *text = g_strdup_printf ("%s: link of \"%s\" and \"%s\"", what, link->from, link->to);
  return ls_spec_check_link (text, TRUE, figures, error);
}

uint32_t
ls_cluster_spec_n_kinds (const LsClusterSpec *s)
{
  return 1 + (s->others ? s->others->len : 0);
}

uint32_t
ls_cluster_spec_kind_of (const LsClusterSpec *s, uint32_t host)
{
  for (guint i = 0; s->others && i < s->others->len; i++) {
    const GArray *ranges = g_array_index (s->others, LsOtherNodes, i).ranges;
    for (guint r = 0; r < ranges->len; r++) {
      const LsNodeRange *range = &g_array_index (ranges, LsNodeRange, r);
      if (host >= range->first && host <= range->last)
        return i + 1;
    }
  }
  return 0;
}

const LsClusterSpec *
ls_cluster_spec_of_kind (const LsClusterSpec *s, uint32_t kind)
{
  return kind == 0 ? s : g_array_index (s->others, LsOtherNodes, kind - 1).spec;
}

uint32_t
ls_cluster_spec_gpus_of (const LsClusterSpec *s, uint32_t host)
{
  return ls_cluster_spec_of_kind (s, ls_cluster_spec_kind_of (s, host))->gpus_per_node;
}

void
ls_cluster_spec_take_nodes (LsClusterSpec *s, const uint32_t *nodes, uint32_t n)
{
  GArray *ranges[LS_MAX_NODE_KINDS] = { NULL };
  if (!s->others)
    return;
  for (uint32_t k = 1; k <= s->others->len; k++)
    ranges[k] = g_array_new (FALSE, FALSE, sizeof (LsNodeRange));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t kind = ls_cluster_spec_kind_of (s, nodes[i]);
    if (kind > 0)
      g_array_append_val (ranges[kind], ((LsNodeRange) { i, i }));
  }
  for (uint32_t k = 1; k <= s->others->len; k++) {
    LsOtherNodes *o = &g_array_index (s->others, LsOtherNodes, k - 1);
    g_array_unref (o->ranges);
    o->ranges = ranges[k];
  }
}

uint64_t
ls_cluster_spec_n_gpus (const LsClusterSpec *s)
{
  uint64_t n = 0, n_other = 0;
  for (guint i = 0; s->others && i < s->others->len; i++) {
    const LsOtherNodes *o = &g_array_index (s->others, LsOtherNodes, i);
    for (guint r = 0; r < o->ranges->len; r++) {
      const LsNodeRange *range = &g_array_index (o->ranges, LsNodeRange, r);
      uint64_t end = MIN ((uint64_t) range->last + 1, s->n_nodes),
               nodes = MAX (end, range->first) - range->first;
      n += nodes * o->spec->gpus_per_node;
      n_other += nodes;
    }
  }
  return n + (s->n_nodes - n_other) * s->gpus_per_node;
}

void
ls_gpu_copy (const LsGpu *gpu, LsGpu *ret_copy)
{
  *ret_copy = *gpu;
  copy_strings (ret_copy, &of_gpu);
}

void
ls_gpu_clear (LsGpu *gpu)
{
  if (gpu)
    clear_strings (gpu, &of_gpu);
}

/* --- names: "node3/gpu5>nvswitch". printf would dominate the build. --- */

typedef struct {
  char text[2 * LS_MAX_VERTEX_NAME + 64];
  size_t n;
} Name;

static void
put (Name *name, const char *text)
{
  size_t n = strlen (text);
  g_assert (name->n + n < sizeof name->text);
  memcpy (name->text + name->n, text, n + 1);
  name->n += n;
}

static void
put_number (Name *name, uint32_t value)
{
  char digits[12];
  size_t i = sizeof digits;
  digits[--i] = '\0';
  do
    digits[--i] = (char) ('0' + value % 10);
  while (value /= 10);
  put (name, digits + i);
}

static void
put_end (Name *name, const LsEnd *end, uint32_t named_host)
{
  if (end->host != LS_NO_NUMBER && end->host != named_host) {
    put (name, "node");
    put_number (name, end->host);
    put (name, "/");
  }
  put (name, end->kind);
  if (end->number != LS_NO_NUMBER)
    put_number (name, end->number);
}

static Name
name_of (const LsEnd *from, const LsEnd *to)
{
  Name name = { .n = 0 };
  put_end (&name, from, LS_NO_NUMBER);
  put (&name, ">");
  put_end (&name, to, from->host);
  return name;
}

char *
ls_layout_name (LsEnd from, LsEnd to)
{
  const Name name = name_of (&from, &to);
  return g_strdup (name.text);
}

static char *
trunk_name (const LsCluster *c, const LsEnd *from, const LsEnd *to)
{
  const Name name = name_of (from, to);
  return g_string_chunk_insert_len (c->index->names, name.text, (gssize) name.n);
}

/* --- vertices, links, trunks --- */

void
ls_layout_vertices (LsCluster *c, LsNodeKind kind, uint32_t host, uint32_t n)
{
  guint first = c->nodes->len;
  g_array_set_size (c->nodes, first + n);
  LsTopoNode *nodes = &g_array_index (c->nodes, LsTopoNode, first);
  for (uint32_t i = 0; i < n; i++)
    nodes[i] = (LsTopoNode) { .kind = kind, .host = host, .index = i };
}

/* Those of the fabric come last. */
static LsNodeKind
kind_of (const LsCluster *c, uint32_t vertex)
{
  return vertex < c->nodes->len ? g_array_index (c->nodes, LsTopoNode, vertex).kind : LS_NODE_LEAF;
}

static void
add_link (LsCluster *c, uint32_t from, uint32_t to, uint32_t trunk, uint32_t n_physical,
          const LsLinkSpec *spec)
{
  LsLink link = { .from = from,
                  .to = to,
                  .trunk = trunk,
                  .n_physical = n_physical,
                  .capacity_bytes_per_s = n_physical * ls_link_capacity (spec),
                  .latency = spec->latency };
  LsTrunk *carrier = &g_array_index (c->trunks, LsTrunk, trunk);
  carrier->from = (uint8_t) kind_of (c, from);
  carrier->to = (uint8_t) kind_of (c, to);
  if (c->index->has_links)
    g_array_append_val (c->links, link);
}

void
ls_layout_trunks (LsCluster *c, LsEnd a, LsEnd b, const LsLinkSpec *spec)
{
  LsTrunk trunk = { .name = trunk_name (c, &a, &b), .latency = spec->latency, .link = spec };
  g_array_append_val (c->trunks, trunk);
  trunk.name = trunk_name (c, &b, &a);
  g_array_append_val (c->trunks, trunk);
}

void
ls_layout_links (LsCluster *c, uint32_t a, uint32_t b, uint32_t n_physical, const LsLinkSpec *spec)
{
  uint32_t outward = c->trunks->len - 2;
  add_link (c, a, b, outward, n_physical, spec);
  add_link (c, b, a, outward + 1, n_physical, spec);
  for (uint32_t t = outward; t < outward + 2; t++)
    g_array_index (c->trunks, LsTrunk, t).capacity_bytes_per_s += n_physical * ls_link_capacity (spec);
}

/* Where links are not kept, the first says between what they are. */
void
ls_layout_pair (LsCluster *c, LsEnd a, LsEnd b, uint32_t n, uint32_t n_physical, const LsLinkSpec *spec)
{
  uint32_t outward = c->trunks->len, n_seen = c->index->has_links ? n : MIN (n, 1);
  ls_layout_trunks (c, a, b, spec);
  for (uint32_t i = 0; i < n_seen; i++)
    ls_layout_links (c, a.vertex, b.vertex + i, n_physical / n + (i < n_physical % n), spec);
  for (uint32_t t = outward; t < outward + 2; t++) /* one product, not a rounded sum */
    g_array_index (c->trunks, LsTrunk, t).capacity_bytes_per_s = n_physical * ls_link_capacity (spec);
}

void
ls_layout_limit (LsCluster *c, double share, LsTime latency)
{
  uint32_t outward = c->trunks->len - 2;
  for (guint i = c->links->len; i-- > 0 && g_array_index (c->links, LsLink, i).trunk >= outward;) {
    g_array_index (c->links, LsLink, i).capacity_bytes_per_s *= share;
    g_array_index (c->links, LsLink, i).latency = latency;
  }
  for (uint32_t t = outward; t < outward + 2; t++) {
    g_array_index (c->trunks, LsTrunk, t).capacity_bytes_per_s *= share;
    g_array_index (c->trunks, LsTrunk, t).latency = latency;
  }
}

void
ls_fabric_lay_out_ports (const LsFabric *fabric, LsCluster *c, uint32_t host)
{
  const LsClusterSpec *s = ls_cluster_node_spec (c, host);
  for (uint32_t i = 0; i < s->nics.n; i++) {
    uint32_t edge = fabric->kind->edge (fabric, host, i), v = fabric->first_vertex + edge;
    LsEnd end = fabric->kind->edge_name
        ? LS_END (v, LS_NO_NUMBER, fabric->kind->edge_name (fabric, edge), LS_NO_NUMBER)
        : LS_TREE_LEAF (v, edge);
    ls_layout_pair (c, LS_END (ls_nic_vertex (c, host, i), host, "nic", i), end, 1, 1, &s->nics.port);
  }
}

GStrv
ls_cluster_host_trunk_names (const LsCluster *c, uint32_t host)
{
  LsTopoIndex index = *c->index;
  LsCluster one = *c;
  index.names = g_string_chunk_new (4096);
  one.index = &index;
  one.nodes = g_array_new (FALSE, FALSE, sizeof (LsTopoNode));
  one.links = g_array_new (FALSE, FALSE, sizeof (LsLink));
  one.trunks = g_array_new (FALSE, FALSE, sizeof (LsTrunk));
  const LsInterior *interior = ls_interior_of (c, host);
  interior->kind->lay_out (interior, &one, host);
  ls_fabric_lay_out_ports (index.fabric, &one, host);
  GStrv names = g_new0 (char *, one.trunks->len + 1);
  for (guint i = 0; i < one.trunks->len; i++)
    names[i] = g_strdup (g_array_index (one.trunks, LsTrunk, i).name);
  g_array_unref (one.nodes);
  g_array_unref (one.links);
  g_array_unref (one.trunks);
  g_string_chunk_free (index.names);
  return names;
}
