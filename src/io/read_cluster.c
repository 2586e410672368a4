#include "io/read_cluster.h"

#include "io/datadir.h"
#include "io/read_gpu.h"

/* What the file says: the name of the accelerator instead of the accelerator. */
typedef struct {
  LsClusterSpec spec; /* first: its name and source have the offsets of the header */
  char *gpu;
  int fabric_kind;
} ClusterFile;

static const LsField link_fields[] = {
  { "bandwidth", LS_FIELD_RATE, offsetof (LsLinkSpec, bandwidth_bytes_per_s), .required = true, .above = true,
    .meaning = "one direction of one physical link, as the data sheet says" },
  { "efficiency", LS_FIELD_DOUBLE, offsetof (LsLinkSpec, efficiency), .required = true, .above = true, .max = 1,
    .meaning = "share of it that payload reaches" },
  { "latency", LS_FIELD_TIME, offsetof (LsLinkSpec, latency), .required = true, .max = (double) LS_S,
    .meaning = "of one hop" },
  { "source", LS_FIELD_STRING, offsetof (LsLinkSpec, source), .required = true,
    .meaning = "where these three come from" },
  { NULL },
};

#define SPEC(member) offsetof (ClusterFile, spec.member)
#define COUNT(key_, member, max_, meaning_) \
  { key_, LS_FIELD_UINT, SPEC (member), .required = true, .min = 1, .max = (max_), .meaning = (meaning_) }
#define LINK(key_, member, meaning_) \
  { key_, LS_FIELD_OBJECT, SPEC (member), .required = true, .fields = link_fields, .meaning = (meaning_) }

static const LsField nvswitch_fields[] = {
  COUNT ("planes", nvswitch_planes, 1024, "NVSwitch chips that every GPU is joined to"),
  COUNT ("links_per_gpu", nvlinks_per_gpu, 1024, "NVLinks of one GPU, spread over the planes"),
  LINK ("link", nvlink, "one NVLink"),
  { NULL },
};
static const LsField pcie_fields[] = {
  COUNT ("switches", pcie_switches, 1024, "per node; GPUs, NICs and drives are dealt to them evenly"),
  LINK ("link", pcie, "x16"),
  { NULL },
};
static const LsField cpu_fields[] = {
  COUNT ("sockets", cpu_sockets, 1024, "per node; PCIe switches are dealt to them evenly"),
  LINK ("interconnect", cpu_interconnect, "between two sockets"),
  LINK ("memory", cpu_memory, "of one socket"),
  { "memory_size", LS_FIELD_BYTES, SPEC (cpu_memory_bytes), .required = true, .above = true,
    .meaning = "of the node" },
  { NULL },
};
static const LsField nvme_fields[] = {
  COUNT ("drives", nvme_drives, 1024, "per node, dealt to the PCIe switches"),
  LINK ("link", nvme, "one drive, reads"),
  { "size", LS_FIELD_BYTES, SPEC (nvme_bytes), .required = true, .above = true, .meaning = "of one drive" },
  { NULL },
};
static const LsField nic_fields[] = {
  COUNT ("count", nics, 1024, "per node, for compute traffic"),
  LINK ("link", nic, "one port, NIC to leaf"),
  { NULL },
};
static const LsField node_fields[] = {
  COUNT ("gpus", gpus_per_node, 1024, "accelerators of one node"),
  { "nvswitch", LS_FIELD_OBJECT, 0, .fields = nvswitch_fields, .default_text = "none",
    .meaning = "NVLink inside the node" },
  { "pcie", LS_FIELD_OBJECT, 0, .fields = pcie_fields, .default_text = "none", .meaning = "PCIe inside the node" },
  { "cpu", LS_FIELD_OBJECT, 0, .fields = cpu_fields, .default_text = "none", .meaning = "processors and their memory" },
  { "nvme", LS_FIELD_OBJECT, 0, .fields = nvme_fields, .default_text = "none", .meaning = "local drives" },
  { "nics", LS_FIELD_OBJECT, 0, .fields = nic_fields, .default_text = "none", .meaning = "network ports" },
  { NULL },
};

static const LsEnumName fabric_kinds[] = { { "leaf-spine", 0 }, { NULL } };
static const LsField fabric_fields[] = {
  { "kind", LS_FIELD_ENUM, offsetof (ClusterFile, fabric_kind), .required = true, .names = fabric_kinds,
    .meaning = "shape of the network between nodes" },
  { "rails", LS_FIELD_UINT, SPEC (rails), .min = 1, .max = 1024, .default_text = "1",
    .meaning = "NIC i of every node goes to a leaf of rail i mod rails" },
  COUNT ("nodes_per_leaf", nodes_per_leaf, 1 << 20, "nodes that one leaf of a rail serves"),
  { "oversubscription", LS_FIELD_DOUBLE, SPEC (oversubscription), .min = 1, .max = 1e6, .default_text = "1",
    .meaning = "of a leaf: capacity down / capacity up" },
  LINK ("link", spine, "one leaf-spine link"),
  { NULL },
};

const LsField ls_cluster_fields[] = {
  LS_FIELDS_HEADER (LsClusterSpec),
  { "gpu", LS_FIELD_STRING, offsetof (ClusterFile, gpu), .required = true,
    .meaning = "name of a file in topologies/gpu" },
  { "nodes", LS_FIELD_UINT, SPEC (n_nodes), .min = 1, .max = 1 << 20, .default_text = "1",
    .meaning = "nodes of the cluster" },
  { "node", LS_FIELD_OBJECT, 0, .required = true, .fields = node_fields, .meaning = "what one node holds" },
  { "fabric", LS_FIELD_OBJECT, 0, .fields = fabric_fields, .default_text = "none",
    .meaning = "what joins the nodes" },
  { NULL },
};

/* A complaint about the accelerator points at the key that names it. */
static bool
read_gpu_of (const LsJsonDoc *doc, ClusterFile *file, LsDiagList *diags)
{
  g_autofree char *message = NULL;
  g_autofree char *path = ls_data_find (LS_DATA_GPUS, file->gpu, &message);
  if (path)
    return ls_gpu_load (path, &file->spec.gpu, diags);
  ls_json_doc_diag (doc, cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "gpu"), LS_JSON_AT_VALUE, diags,
                    NULL, "%s", message);
  return false;
}

static bool
check_fabric (const LsJsonDoc *doc, const ClusterFile *file, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc);
  if ((file->spec.nics == 0 && file->spec.n_nodes == 1) || cJSON_GetObjectItemCaseSensitive (root, "fabric"))
    return true;
  ls_json_doc_diag (doc, root, LS_JSON_AT_VALUE, diags, NULL, "missing key \"fabric\" (what joins the nodes)");
  return false;
}

static void
cluster_file_clear (ClusterFile *file)
{
  ls_cluster_spec_clear (&file->spec);
  g_free (file->gpu);
}

bool
ls_cluster_read (const LsJsonDoc *doc, LsClusterSpec *ret_spec, LsDiagList *diags)
{
  ClusterFile file = { .spec = { .n_nodes = 1, .rails = 1, .oversubscription = 1 } };
  bool ok = ls_fields_read_file (ls_cluster_fields, "cluster", doc, &file, diags)
            && check_fabric (doc, &file, diags) && read_gpu_of (doc, &file, diags);
  if (ok) {
    *ret_spec = file.spec;
    file.spec = (LsClusterSpec) { 0 };
  }
  cluster_file_clear (&file);
  return ok;
}

bool
ls_cluster_load (const char *name, LsClusterSpec *ret_spec, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CLUSTERS, name, diags);
  return doc && ls_cluster_read (doc, ret_spec, diags);
}
