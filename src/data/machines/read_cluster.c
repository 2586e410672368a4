/* data/machines/read_cluster.c — topologies/ read, and written with some of it changed. */
#include "data/machines/machines.h"

#include "analysis/interval.h"
#include "base/list.h"
#include "cluster/allocation.h"
#include "data/datadir.h"
#include "data/text/override.h"

#define SPEC(member) offsetof (LsClusterSpec, member)

/* --- what joins the nodes ------------------------------------------------------------------------ */

static const LsEnumName fabric_kinds[] = { { "leaf-spine", LS_FABRIC_LEAF_SPINE },
                                           { "fat-tree", LS_FABRIC_FAT_TREE },
                                           { "list", LS_FABRIC_LIST },
                                           { "dragonfly", LS_FABRIC_DRAGONFLY },
                                           { "dragonfly+", LS_FABRIC_DRAGONFLY_PLUS },
                                           { NULL } };
static const LsEnumName routings[] = { { "ideal", LS_ROUTING_IDEAL },
                                       { "adaptive", LS_ROUTING_ADAPTIVE },
                                       { "spray", LS_ROUTING_SPRAY },
                                       { "ecmp", LS_ROUTING_ECMP },
                                       { "minimal", LS_ROUTING_MINIMAL },
                                       { "valiant", LS_ROUTING_VALIANT },
                                       { NULL } };
static const LsField switch_element[]
    = { { "", LS_FIELD_STRING, 0, .expected = "a list of names" }, { NULL } };
static const LsField switch_link_fields[] = {
  { "from", LS_FIELD_STRING, offsetof (LsListLink, from), .required = true },
  { "to", LS_FIELD_STRING, offsetof (LsListLink, to), .required = true },
  { "count", LS_FIELD_UINT, offsetof (LsListLink, count), .min = 1, .max = 1024 },
  { "link", LS_FIELD_OBJECT, offsetof (LsListLink, link), .fields = ls_link_fields },
  { .table = "cluster.switch_link" },
};

/* "5" or "0-15". */
static bool
parse_nodes (const char *text, void *target)
{
  LsListNics *nics = target;
  g_auto (GStrv) ends = g_strsplit (text, "-", 2);
  guint64 at[2];
  for (int i = 0; i < 2; i++)
    if (!g_ascii_string_to_unsigned (ends[i] ? ends[i] : ends[0], 10, 0, UINT32_MAX - 1, &at[i], NULL))
      return false;
  if (at[0] > at[1])
    return false;
  nics->first = (uint32_t) at[0];
  nics->last = (uint32_t) at[1];
  return true;
}

static char *
format_nodes (const void *target)
{
  const LsListNics *nics = target;
  return g_strdup_printf ("%u-%u", nics->first, nics->last);
}

static const LsListLink blank_link = { .count = 1 };
static const LsListNics blank_nics = { .last = UINT32_MAX - 1 };
static const LsField switch_nics_fields[] = {
  { "rail", LS_FIELD_UINT, offsetof (LsListNics, rail), .max = 1023 },
  { "nodes", LS_FIELD_CUSTOM, 0, .parse = parse_nodes, .format = format_nodes,
    .expected = "a node or a range such as \"0-15\"" },
  { "switch", LS_FIELD_STRING, offsetof (LsListNics, at), .required = true },
  { .table = "cluster.switch_nics" },
};
static const LsField fabric_fields[] = {
  { "kind", LS_FIELD_ENUM, SPEC (fabric), .required = true, .names = fabric_kinds },
  { "rails", LS_FIELD_UINT, SPEC (network.rails), .min = 1, .max = 1024 },
  { "routing", LS_FIELD_ENUM, SPEC (network.routing), .names = routings, .argument = "KIND" },
  { "seed", LS_FIELD_UINT, SPEC (network.seed), .max = UINT32_MAX },
  { "pxn", LS_FIELD_BOOL, SPEC (network.pxn), .argument = "false" },
  { "nodes_per_leaf", LS_FIELD_UINT, SPEC (network.nodes_per_leaf), .min = 1, .max = 1 << 20 },
  { "oversubscription", LS_FIELD_DOUBLE, SPEC (network.oversubscription), .min = 1, .max = 1e6 },
  { "link", LS_FIELD_OBJECT, SPEC (network.spine), .fields = ls_link_fields },
  { "nodes_per_pod", LS_FIELD_UINT, SPEC (network.nodes_per_pod), .min = 1, .max = 1 << 20 },
  { "spine_oversubscription", LS_FIELD_DOUBLE, SPEC (network.spine_oversubscription), .min = 1, .max = 1e6 },
  { "core_link", LS_FIELD_OBJECT, SPEC (network.core), .fields = ls_link_fields },
  { "nodes_per_group", LS_FIELD_UINT, SPEC (network.nodes_per_group), .min = 1, .max = 1 << 20 },
  { "groups", LS_FIELD_UINT, SPEC (network.groups), .min = 1, .max = 1 << 16 },
  { "local_links", LS_FIELD_UINT, SPEC (network.local_links), .min = 1, .max = 1024 },
  { "global_links", LS_FIELD_UINT, SPEC (network.global_links), .min = 1, .max = 1024 },
  { "global_link", LS_FIELD_OBJECT, SPEC (network.core), .fields = ls_link_fields },
  { "switches", LS_FIELD_ARRAY, SPEC (network.switches), .element_size = sizeof (char *),
    .fields = switch_element },
  { "links", LS_FIELD_ARRAY, SPEC (network.links), .element_size = sizeof (LsListLink),
    .fields = switch_link_fields, .blank = &blank_link, .lines = true },
  { "nics", LS_FIELD_ARRAY, SPEC (network.nics), .element_size = sizeof (LsListNics),
    .fields = switch_nics_fields, .blank = &blank_nics, .lines = true },
  { .table = "cluster.fabric" },
};

/* --- the whole -------------------------------------------------------------------------------------- */

static const LsField other_nodes_fields[] = {
  { "nodes", LS_FIELD_STRING, offsetof (LsOtherNodes, nodes), .required = true },
  { "like", LS_FIELD_STRING, offsetof (LsOtherNodes, like), .required = true },
  { .table = "cluster.other_nodes" },
};

#define COUNT(key_, member) key_, LS_FIELD_UINT, SPEC (member), .required = true, .min = 1
#define LINK(key_, member)  key_, LS_FIELD_OBJECT, SPEC (member), .required = true, .fields = ls_link_fields

static const LsField nvswitch_fields[] = {
  { COUNT ("planes", server.nvswitch_planes), .max = 1024 },
  { COUNT ("links_per_gpu", server.nvlinks_per_gpu), .max = 1024 },
  { LINK ("link", server.nvlink) },
  { .table = "cluster.nvswitch" },
};
static const LsField write_fields[] = {
  { LINK ("bridge", server.write_bridge) },
  { "sockets", LS_FIELD_OBJECT, SPEC (server.write_sockets), .fields = ls_link_fields },
  { .table = "cluster.write" },
};
static const LsField pcie_fields[] = {
  { "switches", LS_FIELD_UINT, SPEC (server.pcie_switches), .required = true, .max = 1024 },
  { LINK ("link", server.pcie) },
  { "p2p", LS_FIELD_IGNORED, .expected = "true, false or `\"switch\"`", .argument = "false|switch" },
  { "p2p_writes", LS_FIELD_OBJECT, 0, .fields = write_fields },
  { .table = "cluster.pcie" },
};
static const LsEnumName mesh_shapes[] = {
  { "list", LS_MESH_LIST }, { "hybrid-cube", LS_MESH_HYBRID_CUBE }, { "full", LS_MESH_FULL }, { NULL }
};
static const LsField mesh_link_element[] = {
  { "", LS_FIELD_ROW, .n_row = 3, .max = 1024,
    .expected = "a list of 3 whole numbers (GPU, GPU, links), each" },
  { NULL },
};
static const LsField mesh_fields[] = {
  { "shape", LS_FIELD_ENUM, SPEC (server.mesh), .required = true, .names = mesh_shapes },
  { "links", LS_FIELD_ARRAY, SPEC (server.mesh_links), .element_size = sizeof (LsMeshLink),
    .fields = mesh_link_element, .lines = true },
  { LINK ("link", server.nvlink) },
  { .table = "cluster.mesh" },
};
static const LsField cpu_fields[] = {
  { COUNT ("sockets", server.cpu_sockets), .max = 1024 },
  { "boards", LS_FIELD_UINT, SPEC (server.cpu_boards), .min = 1, .max = 1024 },
  { "call_time", LS_FIELD_DOUBLE, SPEC (server.cpu_call_time), .above = true, .max = 100 },
  { "c2c", LS_FIELD_OBJECT, SPEC (server.c2c), .fields = ls_link_fields },
  { LINK ("interconnect", server.cpu_interconnect) },
  { LINK ("memory", server.cpu_memory) },
  { "memory_size", LS_FIELD_BYTES, SPEC (server.cpu_memory_bytes), .required = true, .above = true },
  { .table = "cluster.cpu" },
};
static const LsField nvme_fields[] = {
  { COUNT ("drives", server.nvme_drives), .max = 1024 },
  { LINK ("link", server.nvme) },
  { "size", LS_FIELD_BYTES, SPEC (server.nvme_bytes), .required = true, .above = true },
  { .table = "cluster.nvme" },
};
#define NICS_MEANING "per node, for compute traffic"
static const LsEnumName transports[] = { { "rdma", LS_NIC_RDMA }, { "tcp", LS_NIC_TCP }, { NULL } };
static const LsField nic_fields[] = {
  { "count", LS_FIELD_UINT, SPEC (nics.n), .min = 1, .max = 1024,
    .default_text = "required, but of a list those in it", .meaning = NICS_MEANING },
  { LINK ("link", nics.port) },
  { "transport", LS_FIELD_ENUM, SPEC (nics.transport), .names = transports, .argument = "tcp" },
  { "gpudirect", LS_FIELD_IGNORED, .expected = "true or false", .argument = "false" },
  { "socket_rate", LS_FIELD_RATE, SPEC (nics.socket_bytes_per_s), .above = true },
  { "known", LS_FIELD_OBJECT, SPEC (network.known), .fields = ls_known_fields },
  { .table = "cluster.nic" },
};
static const LsEnumName vertex_kinds[] = {
  { "gpu", LS_NODE_GPU },
  { "nvswitch", LS_NODE_NVSWITCH },
  { "pcie-switch", LS_NODE_PCIE_SWITCH },
  { "cpu", LS_NODE_CPU },
  { "cpu-memory", LS_NODE_CPU_MEMORY },
  { "nvme", LS_NODE_NVME },
  { "nic", LS_NODE_NIC },
  { NULL },
};
static const LsField vertex_fields[] = {
  { "name", LS_FIELD_STRING, offsetof (LsListVertex, name), .required = true },
  { "kind", LS_FIELD_ENUM, offsetof (LsListVertex, kind), .required = true, .names = vertex_kinds },
  { .table = "cluster.vertex" },
};
static const LsField list_link_fields[] = {
  { "from", LS_FIELD_STRING, offsetof (LsListLink, from), .required = true },
  { "to", LS_FIELD_STRING, offsetof (LsListLink, to), .required = true },
  { "count", LS_FIELD_UINT, offsetof (LsListLink, count), .min = 1, .max = 1024 },
  { "link", LS_FIELD_OBJECT, offsetof (LsListLink, link), .required = true, .fields = ls_link_fields },
  { .table = "cluster.list_link" },
};
static const LsField list_fields[] = {
  { "vertices", LS_FIELD_ARRAY, SPEC (list.vertices), .required = true, .element_size = sizeof (LsListVertex),
    .fields = vertex_fields, .lines = true },
  { "links", LS_FIELD_ARRAY, SPEC (list.links), .required = true, .element_size = sizeof (LsListLink),
    .fields = list_link_fields, .blank = &blank_link, .lines = true },
  { .table = "cluster.list" },
};

static const LsEnumName wrap_rules[] = {
  { "none", LS_WRAP_NONE },
  { "all", LS_WRAP_ALL },
  { "full-axes", LS_WRAP_FULL_AXES },
  { "cubes", LS_WRAP_CUBES },
  { NULL },
};
static const LsField torus_host_fields[] = {
  { "chips", LS_FIELD_ROW, SPEC (torus.host), .n_row = LS_TORUS_AXES, .required = true, .min = 1,
    .max = LS_TORUS_MAX_AXIS, .expected = "a list of 2 or 3 whole numbers" },
  { LINK ("pcie", server.pcie) },
  { LINK ("memory", server.cpu_memory) },
  { "memory_size", LS_FIELD_BYTES, SPEC (server.cpu_memory_bytes), .required = true, .above = true },
  { "nics", LS_FIELD_UINT, SPEC (torus.nics_per_host), .max = 64 },
  { "nic", LS_FIELD_OBJECT, SPEC (nics.port), .fields = ls_link_fields },
  { .table = "cluster.torus_host" },
};
static const LsField torus_fields[] = {
  { "dims", LS_FIELD_ROW, SPEC (torus.largest), .n_row = LS_TORUS_AXES, .required = true, .min = 1,
    .max = LS_TORUS_MAX_AXIS, .expected = "a list of 2 or 3 whole numbers" },
  { "slice", LS_FIELD_ROW, SPEC (torus.dims), .n_row = LS_TORUS_AXES, .min = 1, .max = LS_TORUS_MAX_AXIS,
    .expected = "a list of 2 or 3 whole numbers" },
  { "wrap", LS_FIELD_ENUM, SPEC (torus.wrap), .required = true, .names = wrap_rules },
  { LINK ("link", ici) },
  { "start", LS_FIELD_TIME, SPEC (torus.start), .max = (double) LS_S },
  { "host", LS_FIELD_OBJECT, 0, .required = true, .fields = torus_host_fields },
  { .table = "cluster.torus" },
};

#define GPUS_MEANING "accelerators of one node"
static const LsField node_fields[] = {
  { "gpus", LS_FIELD_UINT, SPEC (gpus_per_node), .min = 1, .max = 1024,
    .default_text = "required, but of a list those in it", .meaning = GPUS_MEANING },
  { "segment", LS_FIELD_UINT, SPEC (segment), .min = 1, .max = 1024 },
  { "list", LS_FIELD_OBJECT, 0, .fields = list_fields },
  { "torus", LS_FIELD_OBJECT, 0, .fields = torus_fields },
  { "nvswitch", LS_FIELD_OBJECT, 0, .fields = nvswitch_fields },
  { "nvlink_mesh", LS_FIELD_OBJECT, 0, .fields = mesh_fields },
  { "pcie", LS_FIELD_OBJECT, 0, .fields = pcie_fields },
  { "cpu", LS_FIELD_OBJECT, 0, .fields = cpu_fields },
  { "nvme", LS_FIELD_OBJECT, 0, .fields = nvme_fields },
  { "nics", LS_FIELD_OBJECT, 0, .fields = nic_fields },
  { .table = "cluster.node" },
};

static const LsField name_element[] = { { "", LS_FIELD_STRING, 0, .required = true, .max = 64 }, { NULL } };

/* What runs on the cluster itself say about it. */
#define MOST(key_, member)                                                                                   \
  key_, LS_FIELD_DOUBLE, SPEC (fitted.runs.member), .above = true, .default_text = "not known"
static const LsField left_out_fields[] = {
  { "runs", LS_FIELD_UINT, SPEC (fitted.runs.n), .required = true, .min = 1 },
  { "file", LS_FIELD_STRING, SPEC (fitted.runs.file), .required = true },
  { "low", LS_FIELD_DOUBLE, SPEC (fitted.runs.low), .above = true, .max = 1000 },
  { "high", LS_FIELD_DOUBLE, SPEC (fitted.runs.high), .above = true, .max = 1000 },
  { "architecture", LS_FIELD_STRING, SPEC (fitted.runs.architecture) },
  { MOST ("lowest_mfu", lowest_mfu), .max = 10 },
  { MOST ("gpus", gpus), .max = 1e9 },
  { MOST ("tp", tp), .max = 1e9 },
  { MOST ("params", params), .max = 1e18 },
  { MOST ("fabric", fabric), .max = 1e15 },
  { "traits", LS_FIELD_ARRAY, SPEC (fitted.runs.traits), .fields = name_element,
    .element_size = sizeof (char *) },
  { .table = "cluster.left_out" },
};

#define FACTOR(key_, member)                                                                                 \
  key_, LS_FIELD_DOUBLE, SPEC (fitted.member), .above = true, .max = 10, .default_text = "1"
static const LsField fitted_fields[] = {
  { FACTOR ("compute", compute) },
  { FACTOR ("overlap", overlap) },
  { FACTOR ("intra_node", intra_node) },
  { FACTOR ("inter_node", inter_node) },
  { "host_launch", LS_FIELD_TIME, SPEC (fitted.host_launch), .above = true, .max = (double) LS_S },
  { "left_out", LS_FIELD_OBJECT, 0, .fields = left_out_fields },
  { "provenance", LS_FIELD_SOURCES },
  { .table = "cluster.fitted" },
};

const LsField ls_cluster_fields[] = {
  LS_FIELDS_HEADER (LsClusterSpec),
  { "also", LS_FIELD_ARRAY, SPEC (also), .element_size = sizeof (char *), .fields = name_element },
  { "slices", LS_FIELD_ARRAY, SPEC (slices), .element_size = sizeof (char *), .fields = name_element },
  { "gpu", LS_FIELD_IGNORED, .expected = "text or object", .required = true },
  { "nodes", LS_FIELD_UINT, SPEC (n_nodes), .min = 1, .max = 1 << 20 },
  { "node", LS_FIELD_OBJECT, 0, .required = true, .fields = node_fields },
  { "fabric", LS_FIELD_OBJECT, 0, .fields = fabric_fields },
  { "other_nodes", LS_FIELD_ARRAY, SPEC (others), .element_size = sizeof (LsOtherNodes),
    .fields = other_nodes_fields },
  { "fitted", LS_FIELD_OBJECT, 0, .fields = fitted_fields },
  { "successors", LS_FIELD_ARRAY, SPEC (successors), .element_size = sizeof (char *),
    .fields = name_element },
  { "faults", LS_FIELD_IGNORED, .expected = "object" },
  { "guessed", LS_FIELD_ARRAY, SPEC (guessed), LS_FIELD_TEXTS, .lines = true },
  { .table = "cluster" },
};

/* --- what only some kinds need --- */

/* Of kinds (bits) that need a key, or that have no use for one. */
#define TREES   (1u << LS_FABRIC_LEAF_SPINE | 1u << LS_FABRIC_FAT_TREE)
#define FAT     (1u << LS_FABRIC_FAT_TREE)
#define LIST    (1u << LS_FABRIC_LIST)
#define FLY     (1u << LS_FABRIC_DRAGONFLY)
#define PLUS    (1u << LS_FABRIC_DRAGONFLY_PLUS)
#define GROUPED (FLY | PLUS)
static const struct {
  const char *key;
  unsigned needed, allowed;
} by_kind[] = {
  { "nodes_per_leaf", TREES | GROUPED, TREES | GROUPED },
  { "oversubscription", 0, TREES | PLUS },
  { "link", TREES | GROUPED, TREES | GROUPED | LIST },
  { "nodes_per_pod", FAT, FAT },
  { "spine_oversubscription", 0, FAT },
  { "core_link", FAT, FAT },
  { "nodes_per_group", GROUPED, GROUPED },
  { "groups", GROUPED, GROUPED },
  { "local_links", 0, FLY },
  { "global_links", GROUPED, GROUPED },
  { "global_link", GROUPED, GROUPED },
  { "switches", LIST, LIST },
  { "links", 0, LIST },
  { "nics", LIST, LIST },
};

static bool
check_keys (const LsJsonDoc *doc, const cJSON *fabric, LsFabricId kind, LsDiagList *diags)
{
  bool ok = true;
  for (size_t i = 0; i < G_N_ELEMENTS (by_kind); i++) {
    const cJSON *value = ls_json_at (fabric, by_kind[i].key);
    const char *name = fabric_kinds[kind].name;
    if (!value && by_kind[i].needed & 1u << kind)
      ls_json_doc_wrong (doc, fabric, diags, "missing key \"%s\" (%s)", by_kind[i].key,
                         ls_field_meaning (ls_field_find (fabric_fields, by_kind[i].key)));
    else if (value && !(by_kind[i].allowed & 1u << kind))
      ls_json_doc_diag (doc, value, LS_JSON_AT_KEY, diags, NULL, "has no meaning in a fabric of kind \"%s\"",
                        name);
    else
      continue;
    ok = false;
  }
  return ok;
}

/* --- faults --- */

static const LsField fault_fields[] = {
  { "capacity", LS_FIELD_DOUBLE, offsetof (LsFault, capacity), .max = 1 },
  { "links", LS_FIELD_UINT, offsetof (LsFault, n_links), .max = UINT32_MAX },
  { "failed_links", LS_FIELD_UINT, offsetof (LsFault, failed_links), .max = UINT32_MAX },
  { "one_way", LS_FIELD_BOOL, offsetof (LsFault, one_way) },
  { .table = "cluster.fault" },
};

static bool
read_fault (const LsJsonDoc *doc, const cJSON *value, LsFault *ret_fault, LsDiagList *diags)
{
  *ret_fault = (LsFault) { .capacity = 1 };
  if (cJSON_IsObject (value))
    return ls_fields_read (fault_fields, doc, value, ret_fault, NULL, diags);
  if (cJSON_IsNumber (value) && value->valuedouble >= 0 && value->valuedouble <= 1) {
    ret_fault->capacity = value->valuedouble;
    return true;
  }
  return ls_json_doc_unexpected (doc, value, diags, "a share of capacity from 0 to 1, or an object");
}

static bool
read_faults (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *faults = ls_json_doc_at (doc, "faults");
  if (!faults)
    return true;
  if (!cJSON_IsObject (faults))
    return ls_json_doc_unexpected (doc, faults, diags, "an object");
  bool ok = true;
  s->network.faults = g_array_new (FALSE, TRUE, sizeof (LsFault));
  for (const cJSON *value = faults->child; value; value = value->next) {
    LsFault fault;
    if (g_str_has_prefix (value->string, "x-"))
      continue;
    ok = read_fault (doc, value, &fault, diags) && ok;
    fault.link = g_strdup (value->string);
    g_array_append_val (s->network.faults, fault);
  }
  return ok;
}

static bool
finish_fabric (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *fabric = ls_json_doc_at (doc, "fabric");
  bool ok = fabric ? check_keys (doc, fabric, s->fabric, diags)
      : s->nics.n == 0 && s->n_nodes == 1
      ? true
      : ls_json_doc_wrong (doc, ls_json_doc_root (doc), diags,
                           "missing key \"fabric\" (what joins the nodes)");
  return read_faults (doc, s, diags) && ok;
}

/* --- nodes of other kinds ----------------------------------------------------------------------- */

/* A node of those that are there, which is in no range yet; owners: [n_nodes] its entry + 1. */
static void
take_node (const LsClusterSpec *s, uint32_t node, guint entry, uint32_t *owners, GArray *ranges,
           char **reterr_why)
{
  if (node >= s->n_nodes) {
    *reterr_why = g_strdup_printf ("node %u: the cluster has %u, 0 to %u", node, s->n_nodes, s->n_nodes - 1);
    return;
  }
  if (owners[node] > 0) {
    *reterr_why = g_strdup_printf ("node %u is there twice, first in entry %u", node, owners[node] - 1);
    return;
  }
  owners[node] = entry + 1;
  LsNodeRange *last = ranges->len > 0 ? &g_array_index (ranges, LsNodeRange, ranges->len - 1) : NULL;
  if (last && last->last + 1 == node)
    last->last = node;
  else
    g_array_append_val (ranges, ((LsNodeRange) { node, node }));
}

static bool
read_ranges (const LsJsonDoc *doc, const cJSON *at, const LsClusterSpec *s, guint entry, uint32_t *owners,
             LsOtherNodes *other, LsDiagList *diags)
{
  g_autofree char *why = NULL;
  g_autoptr (LsAllocation) nodes = ls_allocation_parse (other->nodes, &why);
  if (nodes && nodes->kind != LS_ALLOCATION_NODES)
    why = g_strdup_printf ("expected numbers of nodes, such as \"2-3,7\"; got \"%s\"", other->nodes);
  other->ranges = g_array_new (FALSE, FALSE, sizeof (LsNodeRange));
  for (uint32_t i = 0; !why && i < nodes->n_seats; i++)
    take_node (s, nodes->seats[i].node, entry, owners, other->ranges, &why);
  return !why || ls_json_doc_wrong (doc, at, diags, "%s", why);
}

/* Not read at all where it has other nodes itself: its file may be this one. */
static bool
read_like (const LsJsonDoc *doc, const cJSON *at, const LsClusterSpec *s, LsOtherNodes *other,
           LsDiagList *diags)
{
  g_autofree char *message = NULL, *name = ls_override_bare (other->like),
                  *path = ls_data_find (LS_DATA_CLUSTERS, name, &message);
  if (!path && !ls_cluster_is_of_files (name))
    return ls_json_doc_wrong (doc, at, diags, "%s", message);
  g_autoptr (LsJsonDoc) like = ls_cluster_open (other->like, diags);
  if (!like)
    return false;
  if (ls_json_doc_at (like, "other_nodes"))
    return ls_json_doc_wrong (doc, at, diags, "a cluster whose nodes are all alike goes here");
  g_autofree LsClusterSpec *spec = g_new0 (LsClusterSpec, 1);
  if (!ls_cluster_load (other->like, spec, diags))
    return false;
  other->spec = g_steal_pointer (&spec);
  g_autoptr (GError) error = NULL;
  return ls_cluster_spec_check_other (s, other, &error)
      || ls_json_doc_wrong (doc, at, diags, "%s", error->message);
}

static bool
finish_other_nodes (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *list = ls_json_doc_at (doc, "other_nodes");
  bool ok = true;
  if (!s->others)
    return true;
  if (s->others->len == 0 || s->others->len >= LS_MAX_NODE_KINDS)
    return ls_json_doc_wrong (doc, list, diags, "expected 1 to %d other kinds of nodes; got %u",
                              LS_MAX_NODE_KINDS - 1, s->others->len);
  g_autofree uint32_t *owners = g_new0 (uint32_t, s->n_nodes);
  for (guint i = 0; i < s->others->len; i++) {
    LsOtherNodes *other = &g_array_index (s->others, LsOtherNodes, i);
    const cJSON *entry = cJSON_GetArrayItem (list, (int) i);
    ok = read_ranges (doc, ls_json_at (entry, "nodes"), s, i, owners, other, diags) && ok;
    ok = read_like (doc, ls_json_at (entry, "like"), s, other, diags) && ok;
  }
  const cJSON *fitted = ls_json_doc_at (doc, "fitted");
  return fitted ? ls_json_doc_diag (doc, fitted, LS_JSON_AT_KEY, diags, NULL,
                                    "goes with nodes that are all alike: it does not say of which kind it is")
                : ok;
}

/* --- what only some nodes need ------------------------------------------------------------------- */

/* By name or path, or described in place: then it is called as the cluster where it has no name. A complaint
 * about a name points at the key that has it. */
static bool
read_gpu_of (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *node = ls_json_doc_at (doc, "gpu");
  if (cJSON_IsObject (node))
    return ls_gpu_read_part (doc, node, s->name, s->source, &s->gpu, diags);
  if (!cJSON_IsString (node) || !*node->valuestring)
    return ls_json_doc_unexpected (doc, node, diags,
                                   "the name of an accelerator, or an object that describes it");
  g_autofree char *message = NULL, *name = ls_override_bare (node->valuestring),
                  *path = ls_data_find (LS_DATA_GPUS, name, &message);
  return path ? ls_gpu_load (node->valuestring, &s->gpu, diags)
              : ls_json_doc_wrong (doc, node, diags, "%s", message);
}

static uint32_t
n_of_kind (const LsClusterSpec *s, LsNodeKind kind)
{
  uint32_t n = 0;
  for (guint i = 0; i < s->list.vertices->len; i++)
    n += g_array_index (s->list.vertices, LsListVertex, i).kind == (int) kind;
  return n;
}

/* A kind of node but a server is a key by its name. It goes with counts of GPUs and NICs, unless it says them
 * itself, and with nothing else. */
static bool
finish_interior (const LsJsonDoc *doc, const cJSON *node, LsClusterSpec *s, LsDiagList *diags)
{
  static const char *const counts[] = { "gpus", "segment", "nics", NULL };
  const LsInteriorTraits *traits = NULL;
  bool ok = true;
  for (s->interior = LS_N_INTERIORS - 1; s->interior != LS_INTERIOR_SERVER; s->interior--)
    if (ls_json_at (node, (traits = ls_cluster_traits (s))->name))
      break;
  for (const cJSON *key = node->child; key && s->interior != LS_INTERIOR_SERVER; key = key->next)
    if (!g_str_equal (key->string, traits->name) && !g_str_has_prefix (key->string, "x-")
        && (traits->is_slice || !g_strv_contains (counts, key->string)))
      ok = ls_json_doc_diag (doc, key, LS_JSON_AT_KEY, diags, NULL,
                             "a node is given by \"%s\" or by its parts, not both", traits->name);
  return ok;
}

/* A torus says how many chips and NICs there are. */
static bool
finish_torus (const LsJsonDoc *doc, const cJSON *node, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *torus = ls_json_at (node, "torus"), *dims = ls_json_at (torus, "dims"),
              *slice = ls_json_at (torus, "slice"), *host = ls_json_at (torus, "host"),
              *chips = ls_json_at (host, "chips");
  bool ok = true;
  if (cJSON_GetArraySize (dims) < 2)
    ok = ls_json_doc_wrong (doc, dims, diags, "expected 2 or 3 axes");
  if (cJSON_GetArraySize (chips) != cJSON_GetArraySize (dims))
    ok = ls_json_doc_wrong (doc, chips, diags, "expected as many axes as \"dims\" has");
  if (slice && cJSON_GetArraySize (slice) != cJSON_GetArraySize (dims))
    ok = ls_json_doc_wrong (doc, slice, diags, "expected as many axes as \"dims\" has");
  if (s->torus.nics_per_host > 0 && !ls_json_at (host, "nic"))
    ok = ls_json_doc_wrong (doc, host, diags, "missing key \"nic\" (one port, NIC to leaf)");
  if (ok)
    ls_cluster_spec_init_torus (s);
  return ok;
}

/* GPUs copy to each other unless the file says that they do not, or where they do. */
static bool
finish_p2p (const LsJsonDoc *doc, const cJSON *pcie, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *p2p = ls_json_at (pcie, "p2p");
  bool is_below = cJSON_IsString (p2p) && g_str_equal (p2p->valuestring, "switch");
  s->server.copies = is_below ? LS_COPIES_BELOW_SWITCH : LS_COPIES_ANYWHERE;
  if (!p2p || is_below || cJSON_IsTrue (p2p))
    return true;
  s->server.copies = LS_COPIES_NOWHERE;
  if (cJSON_IsFalse (p2p))
    return true;
  return ls_json_doc_unexpected (doc, p2p, diags, "true, false or \"switch\"");
}

static void
bound_sockets (LsNicSpec *nics)
{
  bool are_copied = nics->transport == LS_NIC_TCP && nics->is_staged;
  double rate = nics->socket_bytes_per_s > 0 ? nics->socket_bytes_per_s : LS_SOCKET_RATE;
  nics->socket_bytes_per_s = are_copied && rate < ls_link_capacity (&nics->port) ? rate : 0;
  if (nics->socket_bytes_per_s > 0) /* NCCL's search sees the line */
    nics->port.efficiency = rate / nics->port.bandwidth_bytes_per_s;
}

/* Sockets know nothing of GPUs, unless the file says so. */
static bool
finish_transport (const LsJsonDoc *doc, const cJSON *nics, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *node = ls_json_at (nics, "gpudirect");
  if (node && !cJSON_IsBool (node))
    return ls_json_doc_unexpected (doc, node, diags, "true or false");
  s->nics.is_staged = node ? cJSON_IsFalse (node) : s->nics.transport == LS_NIC_TCP;
  bound_sockets (&s->nics);
  const cJSON *key = node ? node : ls_json_at (nics, "transport");
  return !s->nics.is_staged || !s->list.vertices
      || ls_json_doc_diag (
          doc, key, LS_JSON_AT_KEY, diags, NULL,
          "a way through host memory goes with a node given by its parts, not with \"list\"");
}

/* What only some kinds of node need. */
static bool
finish_node (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *node = ls_json_doc_at (doc, "node");
  const cJSON *nics = ls_json_at (node, "nics");
  bool ok = finish_interior (doc, node, s, diags);
  if (s->interior == LS_INTERIOR_TORUS)
    return finish_torus (doc, node, s, diags) && ok;
  ok = finish_transport (doc, nics, s, diags) && ok;
  ok = finish_p2p (doc, ls_json_at (node, "pcie"), s, diags) && ok;
  ok = ls_known_check (doc, ls_json_at (nics, "known"), &s->network.known, diags) && ok;
  if (s->list.vertices) { /* says itself how many there are */
    s->gpus_per_node = ls_json_at (node, "gpus") ? s->gpus_per_node : n_of_kind (s, LS_NODE_GPU);
    s->nics.n = !nics || ls_json_at (nics, "count") ? s->nics.n : n_of_kind (s, LS_NODE_NIC);
    return ok;
  }
  if (s->server.mesh != LS_MESH_LIST && s->server.mesh_links)
    ok = ls_json_doc_diag (doc, ls_json_at (node, "nvlink_mesh.links"), LS_JSON_AT_KEY, diags, NULL,
                           "goes with \"shape\": \"list\"");
  if (s->gpus_per_node == 0)
    ok = ls_json_doc_wrong (doc, node, diags, "missing key \"gpus\" (" GPUS_MEANING ")");
  if (nics && s->nics.n == 0)
    ok = ls_json_doc_wrong (doc, nics, diags, "missing key \"count\" (" NICS_MEANING ")");
  return ok;
}

/* What keys by themselves do not show: a range has two ends in order, and as many runs as it takes. */
static bool
finish_fitted (const LsJsonDoc *doc, const LsFittedRuns *r, LsDiagList *diags)
{
  const cJSON *left_out = ls_json_doc_at (doc, "fitted.left_out");
  guint least = ls_conformal_least (LS_INTERVAL_LEVEL);
  bool has_low = r->low > 0, has_high = r->high > 0, ok = true;
  if (has_low != has_high || (left_out && has_low != (r->n >= least)))
    ok = ls_json_doc_wrong (doc, left_out, diags,
                            "expected both \"low\" and \"high\" of %u runs or more, of fewer neither", least);
  if (r->low > r->high && has_high)
    ok = ls_json_doc_wrong (doc, ls_json_at (left_out, "high"), diags, "expected at least \"low\"");
  return ok;
}

/* --- what a file does not say --- */

/* What holds without a key that has an argument; NULL: another value would change nothing there. */
static char *
usual_of (const LsClusterSpec *s, const LsField *f, bool is_in_node)
{
  bool has_nvlink = ls_server_has_nvlink (&s->server);
  if (is_in_node ? has_nvlink || s->gpus_per_node == 1
                 : f->kind == LS_FIELD_BOOL && (s->network.rails == 1 || !has_nvlink || s->nics.is_staged))
    return NULL;
  if (f->kind == LS_FIELD_ENUM)
    return ls_field_text (f, s, NULL);
  const char *usual = ls_field_default (f);
  return is_in_node || f->kind != LS_FIELD_IGNORED ? g_strdup (usual)
                                                   : g_strdup (s->nics.is_staged ? "false" : "true");
}

static void
add_unsaid (LsClusterSpec *s, const cJSON *object, const LsField *fields, const char *prefix)
{
  const bool is_in_node = fields == pcie_fields;
  for (const LsField *f = fields; f->key; f++) {
    const cJSON *value = ls_json_at (object, f->key);
    g_autofree char *path = g_strconcat (prefix, f->key, NULL), *below = g_strconcat (path, ".", NULL),
                    *usual = f->argument && !value ? usual_of (s, f, is_in_node) : NULL;
    if (f->kind == LS_FIELD_OBJECT && value)
      add_unsaid (s, value, f->fields, below);
    const LsUnsaid unsaid
        = { path, usual, usual ? g_strconcat (path, "=", f->argument, NULL) : NULL, is_in_node };
    if (!usual)
      continue;
    g_array_append_val (s->unsaid, unsaid);
    path = usual = NULL;
  }
}

static bool
finish_cluster (const LsJsonDoc *doc, const cJSON *root, void *object, LsDiagList *diags)
{
  LsClusterSpec *spec = object;
  bool ok = finish_node (doc, spec, diags) && finish_fabric (doc, spec, diags)
      && finish_fitted (doc, &spec->fitted.runs, diags) && read_gpu_of (doc, spec, diags)
      && finish_other_nodes (doc, spec, diags);
  spec->unsaid = g_array_new (FALSE, TRUE, sizeof (LsUnsaid));
  if (ok)
    add_unsaid (spec, root, ls_cluster_fields, "");
  return ok;
}

static const LsClusterSpec one_node = { .n_nodes = 1,
                                        .network.rails = 1,
                                        .network.oversubscription = 1,
                                        .network.spine_oversubscription = 1,
                                        .network.local_links = 1,
                                        .network.pxn = true };

const LsDataFile ls_cluster_file = { "cluster",
                                     LS_DATA_CLUSTERS,
                                     ls_cluster_fields,
                                     sizeof one_node,
                                     .blank = &one_node,
                                     .finish = finish_cluster,
                                     .clear = (GDestroyNotify) ls_cluster_spec_clear };

bool
ls_cluster_load (const char *name, LsClusterSpec *ret_spec, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_cluster_open (name, diags);
  if (!doc || !ls_data_file_read (&ls_cluster_file, doc, ret_spec, diags))
    return false;
  g_autofree char *bare = ls_override_bare (name);
  bool is_own = ls_data_is_path (bare);
  if (!is_own && g_str_equal (ret_spec->gpu.name, ret_spec->name)) /* a part of the file */
    g_clear_pointer (&ret_spec->gpu.left_out, g_free);
  ret_spec->name = ls_override_name (ret_spec->name, name);
  for (guint i = 0; i < ret_spec->unsaid->len; i++) {
    LsUnsaid *unsaid = &g_array_index (ret_spec->unsaid, LsUnsaid, i);
    g_autofree char *change = unsaid->instead,
                    *changed = ls_override_add (ls_json_is_given (name) ? ret_spec->name : name, change);
    unsaid->instead = g_strconcat ("--cluster ", changed, NULL);
    if (!is_own)
      ls_clear_3_texts (unsaid);
  }
  if (!is_own)
    g_array_set_size (ret_spec->unsaid, 0);
  return true;
}

const LsLinkSpec *
ls_cluster_link_at (const LsClusterSpec *spec, const char *path)
{
  g_auto (GStrv) keys = g_strsplit (path, ".", -1);
  const LsField *fields = ls_cluster_fields;
  size_t offset = 0;
  for (char **key = keys; *key && fields != ls_link_fields; key++) {
    const LsField *f = ls_field_find (fields, *key);
    if (!f || f->kind != LS_FIELD_OBJECT)
      return NULL;
    offset += f->offset;
    fields = f->fields;
  }
  return fields == ls_link_fields ? (const LsLinkSpec *) (gconstpointer) ((const char *) spec + offset)
                                  : NULL;
}

/* --- a cluster's file with some of it changed ---------------------------------------------------- */

/* cJSON indents with tabs; our files have two blanks. Tabs inside strings are escapes. */
char *
ls_cluster_print (const cJSON *root)
{
  char *printed = cJSON_Print (root);
  GString *out = g_string_new (NULL);
  for (const char *c = printed; *c; c++)
    if (*c != '\t')
      g_string_append_c (out, *c);
    else
      g_string_append (out, c[-1] == ':' ? " " : "  ");
  cJSON_free (printed);
  return g_string_free (g_string_append_c (out, '\n'), FALSE);
}

char *
ls_cluster_list_to_json (const LsClusterSpec *s)
{
  static const LsField nics[] = { { LINK ("link", nics.port) }, { NULL } };
  static const LsField no_nics[] = { { "list", LS_FIELD_OBJECT, 0, .fields = list_fields }, { NULL } };
  static const LsField node[] = { { "list", LS_FIELD_OBJECT, 0, .fields = list_fields },
                                  { "nics", LS_FIELD_OBJECT, 0, .fields = nics },
                                  { NULL } };
  static const LsField fabric[] = { { "kind", LS_FIELD_ENUM, SPEC (fabric), .names = fabric_kinds },
                                    { "rails", LS_FIELD_UINT, SPEC (network.rails) },
                                    { "nodes_per_leaf", LS_FIELD_UINT, SPEC (network.nodes_per_leaf) },
                                    { LINK ("link", network.spine) },
                                    { NULL } };
  LsJsonOut w;
  ls_json_out_open_as (&w, "cluster");
  ls_json_out_string (&w, "name", s->name);
  ls_json_out_string (&w, "source", s->source);
  ls_json_out_string (&w, "gpu", s->gpu.name);
  ls_json_out_begin_object (&w, "node");
  ls_fields_write (s->nics.n > 0 ? node : no_nics, &w, s, NULL);
  ls_json_out_end_object (&w);
  if (s->nics.n > 0) {
    ls_json_out_begin_object (&w, "fabric");
    ls_fields_write (fabric, &w, s, NULL);
    ls_json_out_end_object (&w);
  }
  return ls_json_out_close (&w);
}

LsJsonDoc *
ls_cluster_with_own_gpu (LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *node = ls_json_doc_at (doc, "gpu");
  if (!cJSON_IsString (node))
    return doc;
  g_autoptr (LsJsonDoc) gpu = ls_data_load (LS_DATA_GPUS, node->valuestring, diags);
  if (!gpu) {
    ls_json_doc_free (doc);
    return NULL;
  }
  cJSON *own = cJSON_Duplicate (ls_json_doc_root (gpu), true);
  cJSON_DeleteItemFromObjectCaseSensitive (own, "schema");
  char *text = cJSON_PrintUnformatted (own);
  doc = ls_json_doc_replace (doc, node, text, diags);
  cJSON_free (text);
  cJSON_Delete (own);
  return doc;
}

char *
ls_cluster_changed_to_json (LsJsonDoc *base, const GPtrArray *changes, const char *name, const char *source,
                            LsDiagList *diags)
{
  for (guint i = 0; base && i < changes->len; i++)
    base = ls_override_apply (base, g_ptr_array_index (changes, i), diags);
  if (!base)
    return NULL;
  cJSON *root = cJSON_Duplicate (ls_json_doc_root (base), true);
  cJSON_ReplaceItemInObjectCaseSensitive (root, "name", cJSON_CreateString (name));
  cJSON_ReplaceItemInObjectCaseSensitive (root, "source", cJSON_CreateString (source));
  char *text = ls_cluster_print (root);
  cJSON_Delete (root);
  ls_json_doc_free (base);
  return text;
}
