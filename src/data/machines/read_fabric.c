/* data/machines/read_fabric.c — of a cluster file, what joins the nodes and what is broken. */
#include "data/machines/machines.h"

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
  { "from", LS_FIELD_STRING, offsetof (LsListLink, from), .required = true, .meaning = "name of a switch" },
  { "to", LS_FIELD_STRING, offsetof (LsListLink, to), .required = true,
    .meaning = "name of a switch; the way back is alike" },
  { "count", LS_FIELD_UINT, offsetof (LsListLink, count), .min = 1, .max = 1024, .default_text = "1",
    .meaning = "physical links side by side" },
  { "link", LS_FIELD_OBJECT, offsetof (LsListLink, link), .fields = ls_link_fields,
    .default_text = "that of the fabric", .meaning = "one of these" },
  { NULL },
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
  { "rail", LS_FIELD_UINT, offsetof (LsListNics, rail), .max = 1023, .default_text = "0",
    .meaning = "the NICs i of a node with i mod rails equal to this" },
  { "nodes", LS_FIELD_CUSTOM, 0, .parse = parse_nodes, .format = format_nodes,
    .expected = "a node or a range such as \"0-15\"", .default_text = "all",
    .meaning = "of these nodes; those that the cluster does not have count for nothing" },
  { "switch", LS_FIELD_STRING, offsetof (LsListNics, at), .required = true, .meaning = "are at this switch" },
  { NULL },
};
const LsField ls_fabric_fields[] = {
  { "kind", LS_FIELD_ENUM, offsetof (LsClusterSpec, fabric), .required = true, .names = fabric_kinds,
    .meaning
    = "two tiers of switches, three, as listed, or groups of switches that are joined each to each" },
  { "rails", LS_FIELD_UINT, offsetof (LsClusterSpec, network.rails), .min = 1, .max = 1024,
    .default_text = "1", .meaning = "NIC i of every node goes to a leaf of rail i mod rails" },
  { "routing", LS_FIELD_ENUM, offsetof (LsClusterSpec, network.routing), .names = routings,
    .default_text = "ideal",
    .meaning
    = "how flows take to equally good links: spread over all, each packet to the least loaded or in "
      "turn, or each flow hashed onto one; of a dragonfly, which ways: direct links and detours when "
      "these are full (`ideal`, `adaptive`), direct links alone, detours alone" },
  { "seed", LS_FIELD_UINT, offsetof (LsClusterSpec, network.seed), .max = UINT32_MAX, .default_text = "0",
    .meaning = "of the hash of `ecmp`" },
  { "pxn", LS_FIELD_BOOL, offsetof (LsClusterSpec, network.pxn), .default_text = "true",
    .meaning = "with rails, what goes to another rail is sent over NVLink to the GPU whose NIC is there, and "
               "rings keep to rails; NCCL before 2.12 has none" },
  { "nodes_per_leaf", LS_FIELD_UINT, offsetof (LsClusterSpec, network.nodes_per_leaf), .min = 1,
    .max = 1 << 20, .default_text = "required but of a list",
    .meaning = "nodes that one leaf of a rail serves; of a dragonfly, a switch" },
  { "oversubscription", LS_FIELD_DOUBLE, offsetof (LsClusterSpec, network.oversubscription), .min = 1,
    .max = 1e6, .default_text = "1",
    .meaning = "of a leaf: bandwidth down / bandwidth up; not of a dragonfly" },
  { "link", LS_FIELD_OBJECT, offsetof (LsClusterSpec, network.spine), .fields = ls_link_fields,
    .default_text = "required but of a list",
    .meaning = "one leaf-spine link, or between switches of a group; of a list, those without `link`" },
  { "nodes_per_pod", LS_FIELD_UINT, offsetof (LsClusterSpec, network.nodes_per_pod), .min = 1, .max = 1 << 20,
    .default_text = "required of a fat-tree",
    .meaning = "nodes whose leaves share spines; a multiple of nodes_per_leaf" },
  { "spine_oversubscription", LS_FIELD_DOUBLE, offsetof (LsClusterSpec, network.spine_oversubscription),
    .min = 1, .max = 1e6, .default_text = "1",
    .meaning = "of a fat-tree, of a spine: bandwidth down / bandwidth up" },
  { "core_link", LS_FIELD_OBJECT, offsetof (LsClusterSpec, network.core), .fields = ls_link_fields,
    .default_text = "required of a fat-tree", .meaning = "one spine-core link" },
  { "nodes_per_group", LS_FIELD_UINT, offsetof (LsClusterSpec, network.nodes_per_group), .min = 1,
    .max = 1 << 20, .default_text = "required of a dragonfly",
    .meaning = "nodes of a group of switches; a multiple of nodes_per_leaf" },
  { "groups", LS_FIELD_UINT, offsetof (LsClusterSpec, network.groups), .min = 1, .max = 1 << 16,
    .default_text = "required of a dragonfly",
    .meaning = "of the machine, those without nodes of the cluster included: detours lead over them" },
  { "local_links", LS_FIELD_UINT, offsetof (LsClusterSpec, network.local_links), .min = 1, .max = 1024,
    .default_text = "1", .meaning = "of a dragonfly: links between any two switches of a group" },
  { "global_links", LS_FIELD_UINT, offsetof (LsClusterSpec, network.global_links), .min = 1, .max = 1024,
    .default_text = "required of a dragonfly", .meaning = "links between any two groups" },
  { "global_link", LS_FIELD_OBJECT, offsetof (LsClusterSpec, network.core), .fields = ls_link_fields,
    .default_text = "required of a dragonfly", .meaning = "one link between groups" },
  { "switches", LS_FIELD_ARRAY, offsetof (LsClusterSpec, network.switches), .element_size = sizeof (char *),
    .fields = switch_element, .default_text = "required of a list", .meaning = "names" },
  { "links", LS_FIELD_ARRAY, offsetof (LsClusterSpec, network.links), .element_size = sizeof (LsListLink),
    .fields = switch_link_fields, .blank = &blank_link, .lines = true, .default_text = "none",
    .meaning = "of a list: which switches are joined" },
  { "nics", LS_FIELD_ARRAY, offsetof (LsClusterSpec, network.nics), .element_size = sizeof (LsListNics),
    .fields = switch_nics_fields, .blank = &blank_nics, .lines = true, .default_text = "required of a list",
    .meaning = "which NICs are at which switch" },
  { NULL },
};

/* --- what only some kinds need --- */

static const cJSON *
child (const cJSON *node, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (node, key);
}

static const LsField *
field_of (const char *key)
{
  const LsField *f = ls_fabric_fields;
  while (g_strcmp0 (f->key, key) != 0)
    f++;
  return f;
}

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
    const cJSON *value = child (fabric, by_kind[i].key);
    const char *name = fabric_kinds[kind].name;
    if (!value && by_kind[i].needed & 1u << kind)
      ls_json_doc_diag (doc, fabric, LS_JSON_AT_VALUE, diags, NULL, "missing key \"%s\" (%s)", by_kind[i].key,
                        field_of (by_kind[i].key)->meaning);
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
  { "capacity", LS_FIELD_DOUBLE, offsetof (LsFault, capacity), .max = 1, .default_text = "1",
    .meaning = "share that is left of the capacity; 0: failed" },
  { "links", LS_FIELD_UINT, offsetof (LsFault, n_links), .max = UINT32_MAX, .default_text = "all",
    .meaning = "so many of the physical links have that capacity, the others all of theirs" },
  { "failed_links", LS_FIELD_UINT, offsetof (LsFault, failed_links), .max = UINT32_MAX, .default_text = "0",
    .meaning = "of the physical links that it stands for" },
  { "one_way", LS_FIELD_BOOL, offsetof (LsFault, one_way), .default_text = "false",
    .meaning = "the way back is as ever" },
  { NULL },
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
  g_autofree char *got = ls_json_describe (value);
  ls_json_doc_diag (doc, value, LS_JSON_AT_VALUE, diags, NULL,
                    "expected a share of capacity from 0 to 1, or an object; got %s", got);
  return false;
}

static bool
read_faults (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *faults = child (ls_json_doc_root (doc), "faults");
  if (!faults)
    return true;
  if (!cJSON_IsObject (faults)) {
    g_autofree char *got = ls_json_describe (faults);
    ls_json_doc_diag (doc, faults, LS_JSON_AT_VALUE, diags, NULL, "expected an object; got %s", got);
    return false;
  }
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

bool
ls_fabric_finish (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *fabric = child (root, "fabric");
  bool ok = fabric || (s->nics.n == 0 && s->n_nodes == 1);
  if (!ok)
    ls_json_doc_diag (doc, root, LS_JSON_AT_VALUE, diags, NULL,
                      "missing key \"fabric\" (what joins the nodes)");
  if (fabric)
    ok = check_keys (doc, fabric, s->fabric, diags);
  return read_faults (doc, s, diags) && ok;
}
