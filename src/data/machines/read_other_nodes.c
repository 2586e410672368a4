/* data/machines/read_other_nodes.c — the nodes of a cluster file that are as those of another. */
#include "data/machines/machines.h"

#include "cluster/allocation.h"
#include "data/datadir.h"
#include "data/text/override.h"

const LsField ls_other_nodes_fields[] = {
  { "nodes", LS_FIELD_STRING, offsetof (LsOtherNodes, nodes), .required = true,
    .meaning = "their numbers, from 0: `\"2-3,7\"`" },
  { "like", LS_FIELD_STRING, offsetof (LsOtherNodes, like), .required = true,
    .meaning = "a cluster by name or path, changes after a colon included: its accelerator, what is in a "
               "node, its NICs; not its fabric and faults" },
  { NULL },
};

static bool
complain (const LsJsonDoc *doc, const cJSON *at, LsDiagList *diags, const char *message)
{
  ls_json_doc_diag (doc, at, LS_JSON_AT_VALUE, diags, NULL, "%s", message);
  return false;
}

/* Whether node n of those that are there is in no range yet; owners: [n_nodes] its entry + 1. */
static bool
take_node (const LsClusterSpec *s, uint32_t node, guint entry, uint32_t *owners, GArray *ranges,
           char **reterr_why)
{
  if (node >= s->n_nodes) {
    *reterr_why = g_strdup_printf ("node %u: the cluster has %u, 0 to %u", node, s->n_nodes, s->n_nodes - 1);
    return false;
  }
  if (owners[node] > 0) {
    *reterr_why = g_strdup_printf ("node %u is there twice, first in entry %u", node, owners[node] - 1);
    return false;
  }
  owners[node] = entry + 1;
  LsNodeRange *last = ranges->len > 0 ? &g_array_index (ranges, LsNodeRange, ranges->len - 1) : NULL;
  if (last && last->last + 1 == node)
    last->last = node;
  else
    g_array_append_val (ranges, ((LsNodeRange) { node, node }));
  return true;
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
  return !why || complain (doc, at, diags, why);
}

/* Not read at all where it has other nodes itself: its file may be this one. */
static bool
read_like (const LsJsonDoc *doc, const cJSON *at, const LsClusterSpec *s, LsOtherNodes *other,
           LsDiagList *diags)
{
  bool is_xml = ls_is_nccl_topo (other->like);
  g_autofree char *message = NULL;
  const char *changes = ls_override_find (other->like);
  g_autofree char *name
      = changes ? g_strndup (other->like, (gsize) (changes - 1 - other->like)) : g_strdup (other->like);
  g_autofree char *path = is_xml ? g_strdup (name) : ls_data_find (LS_DATA_CLUSTERS, name, &message);
  if (!path)
    return complain (doc, at, diags, message);
  g_autoptr (LsJsonDoc) like = is_xml ? NULL : ls_data_load (LS_DATA_CLUSTERS, other->like, diags);
  if (!is_xml && !like)
    return false;
  if (like && cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (like), "other_nodes"))
    return complain (doc, at, diags, "a cluster whose nodes are all alike goes here");
  g_autofree LsClusterSpec *spec = g_new0 (LsClusterSpec, 1);
  if (!ls_cluster_load (other->like, spec, diags))
    return false;
  other->spec = g_steal_pointer (&spec);
  g_autoptr (GError) error = NULL;
  return ls_cluster_spec_check_other (s, other, &error) || complain (doc, at, diags, error->message);
}

bool
ls_other_nodes_finish (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "other_nodes");
  bool ok = true;
  if (!s->others)
    return true;
  if (s->others->len == 0 || s->others->len >= LS_MAX_NODE_KINDS) {
    g_autofree char *what = g_strdup_printf ("expected 1 to %d other kinds of nodes; got %u",
                                             LS_MAX_NODE_KINDS - 1, s->others->len);
    return complain (doc, list, diags, what);
  }
  g_autofree uint32_t *owners = g_new0 (uint32_t, s->n_nodes);
  for (guint i = 0; i < s->others->len; i++) {
    LsOtherNodes *other = &g_array_index (s->others, LsOtherNodes, i);
    const cJSON *entry = cJSON_GetArrayItem (list, (int) i);
    ok = read_ranges (doc, cJSON_GetObjectItemCaseSensitive (entry, "nodes"), s, i, owners, other, diags)
        && ok;
    ok = read_like (doc, cJSON_GetObjectItemCaseSensitive (entry, "like"), s, other, diags) && ok;
  }
  const cJSON *fitted = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "fitted");
  if (!fitted)
    return ok;
  ls_json_doc_diag (doc, fitted, LS_JSON_AT_KEY, diags, NULL,
                    "goes with nodes that are all alike: it does not say of which kind it is");
  return false;
}
