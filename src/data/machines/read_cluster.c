/* data/machines/read_cluster.c — topologies/ read. */
#include "data/machines/machines.h"

#include "data/datadir.h"
#include "data/text/override.h"

const LsField ls_link_fields[] = {
  { "bandwidth", LS_FIELD_RATE, offsetof (LsLinkSpec, bandwidth_bytes_per_s), .required = true, .above = true,
    .max = 1e15, .meaning = "one direction of one physical link, as the data sheet says" },
  { "efficiency", LS_FIELD_DOUBLE, offsetof (LsLinkSpec, efficiency), .required = true, .above = true,
    .max = 1, .meaning = "share of it that payload reaches" },
  { "latency", LS_FIELD_TIME, offsetof (LsLinkSpec, latency), .required = true, .max = (double) LS_S,
    .meaning = "of one hop" },
  { "source", LS_FIELD_STRING, offsetof (LsLinkSpec, source), .required = true,
    .meaning = "where these three come from" },
  { NULL },
};

#define SPEC(member) offsetof (LsClusterSpec, member)
#define COUNT(key_, member, max_, meaning_)                                                                  \
  {                                                                                                          \
    key_, LS_FIELD_UINT, SPEC (member), .required = true, .min = 1, .max = (max_), .meaning = (meaning_)     \
  }
#define LINK(key_, member, meaning_)                                                                         \
  {                                                                                                          \
    key_, LS_FIELD_OBJECT, SPEC (member), .required = true, .fields = ls_link_fields, .meaning = (meaning_)  \
  }

static const LsField nvswitch_fields[] = {
  COUNT ("planes", server.nvswitch_planes, 1024, "NVSwitch chips that every GPU is joined to"),
  COUNT ("links_per_gpu", server.nvlinks_per_gpu, 1024, "NVLinks of one GPU, spread over the planes"),
  LINK ("link", server.nvlink, "one NVLink"),
  { NULL },
};
static const LsField write_fields[] = {
  LINK ("bridge", server.write_bridge,
        "through the host bridge of a CPU: of one switch, or of one GPU without"),
  { "sockets", LS_FIELD_OBJECT, SPEC (server.write_sockets), .fields = ls_link_fields,
    .default_text = "with sockets "
                    "of one board required",
    .meaning = "from one socket to another" },
  { NULL },
};
static const LsField pcie_fields[] = {
  { "switches", LS_FIELD_UINT, SPEC (server.pcie_switches), .required = true, .max = 1024,
    .meaning = "per node; GPUs, NICs and drives are dealt to them evenly; 0: to the CPUs themselves" },
  LINK ("link", server.pcie, "x16"),
  { "p2p", LS_FIELD_IGNORED, .expected = "true, false or `\"switch\"`", .default_text = "true",
    .meaning = "false: GPUs do not copy to each other over PCIe (GeForce, virtual machines, "
               "NCCL_P2P_DISABLE=1); data pass the memory of the sender's CPU. switch: only below one "
               "switch, as NCCL has it where no NVLink is" },
  { "p2p_writes", LS_FIELD_OBJECT, 0, .fields = write_fields, .default_text = "what the links carry",
    .meaning = "what kernels of a GPU write into another one through CPUs, each way, where NCCL lets them "
               "(NCCL_P2P_LEVEL=SYS, a virtual machine that hides the CPUs); goes with p2p true" },
  { NULL },
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
  { "shape", LS_FIELD_ENUM, SPEC (server.mesh), .required = true, .names = mesh_shapes,
    .meaning = "who is joined to whom: as listed, as in DGX-1, or all to all by one link each" },
  { "links", LS_FIELD_ARRAY, SPEC (server.mesh_links), .element_size = sizeof (LsMeshLink),
    .fields = mesh_link_element, .lines = true, .default_text = "none",
    .meaning = "of a list: GPU, GPU, links between them" },
  LINK ("link", server.nvlink, "one NVLink or xGMI link"),
  { NULL },
};
static const LsField cpu_fields[] = {
  COUNT ("sockets", server.cpu_sockets, 1024, "per node; PCIe switches are dealt to them evenly"),
  { "boards", LS_FIELD_UINT, SPEC (server.cpu_boards), .min = 1, .max = 1024, .default_text = "1",
    .meaning = "sockets are dealt to them; between boards there is no CPU link" },
  { "call_time", LS_FIELD_DOUBLE, SPEC (server.cpu_call_time), .above = true, .max = 100, .default_text = "1",
    .meaning = "what a call of the program costs the host (`run --help host`), times what it costs an Intel "
               "Xeon Platinum 8480C" },
  { "c2c", LS_FIELD_OBJECT, SPEC (server.c2c), .fields = ls_link_fields, .default_text = "none",
    .meaning = "GPU to CPU by NVLink-C2C instead of PCIe, of one GPU" },
  LINK ("interconnect", server.cpu_interconnect, "between two sockets of a board"),
  LINK ("memory", server.cpu_memory, "of one socket"),
  { "memory_size", LS_FIELD_BYTES, SPEC (server.cpu_memory_bytes), .required = true, .above = true,
    .meaning = "of the node" },
  { NULL },
};
static const LsField nvme_fields[] = {
  COUNT ("drives", server.nvme_drives, 1024, "per node, dealt to the PCIe switches"),
  LINK ("link", server.nvme, "one drive, reads"),
  { "size", LS_FIELD_BYTES, SPEC (server.nvme_bytes), .required = true, .above = true,
    .meaning = "of one drive" },
  { NULL },
};
#define NICS_MEANING "per node, for compute traffic"
static const LsEnumName transports[] = { { "rdma", LS_NIC_RDMA }, { "tcp", LS_NIC_TCP }, { NULL } };
static const LsField nic_fields[] = {
  { "count", LS_FIELD_UINT, SPEC (nics.n), .min = 1, .max = 1024,
    .default_text = "required, but of a list those in it", .meaning = NICS_MEANING },
  LINK ("link", nics.port, "one port, NIC to leaf"),
  { "transport", LS_FIELD_ENUM, SPEC (nics.transport), .names = transports, .default_text = "`\"rdma\"`",
    .meaning = "InfiniBand verbs and RoCE, or sockets (NCCL_IB_DISABLE=1)" },
  { "gpudirect", LS_FIELD_IGNORED, .expected = "true or false", .default_text = "true with `\"rdma\"`",
    .meaning = "false: data wait in the memory of the CPUs on both sides, and there is no PXN" },
  { "known", LS_FIELD_OBJECT, SPEC (network.known), .fields = ls_known_fields, .default_text = "measured",
    .meaning = "how what the accelerator's `nccl` reaches through them is known" },
  { NULL },
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
  { "name", LS_FIELD_STRING, offsetof (LsListVertex, name), .required = true,
    .meaning = "unique in the node" },
  { "kind", LS_FIELD_ENUM, offsetof (LsListVertex, kind), .required = true, .names = vertex_kinds,
    .meaning = "GPU i of a node is the i-th gpu of the list, and so on" },
  { NULL },
};
static const LsField list_link_fields[] = {
  { "from", LS_FIELD_STRING, offsetof (LsListLink, from), .required = true, .meaning = "name of a vertex" },
  { "to", LS_FIELD_STRING, offsetof (LsListLink, to), .required = true,
    .meaning = "name of a vertex; the way back is alike" },
  { "count", LS_FIELD_UINT, offsetof (LsListLink, count), .min = 1, .max = 1024, .default_text = "1",
    .meaning = "physical links side by side" },
  { "link", LS_FIELD_OBJECT, offsetof (LsListLink, link), .required = true, .fields = ls_link_fields,
    .meaning = "one of these" },
  { NULL },
};
static const LsListLink blank_list_link = { .count = 1 };
static const LsField list_fields[] = {
  { "vertices", LS_FIELD_ARRAY, SPEC (list.vertices), .required = true, .element_size = sizeof (LsListVertex),
    .fields = vertex_fields, .lines = true, .meaning = "what there is in a node" },
  { "links", LS_FIELD_ARRAY, SPEC (list.links), .required = true, .element_size = sizeof (LsListLink),
    .fields = list_link_fields, .blank = &blank_list_link, .lines = true, .meaning = "what is joined" },
  { NULL },
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
    .max = LS_TORUS_MAX_AXIS, .expected = "a list of 2 or 3 whole numbers",
    .meaning = "chips of one host along x, y (and z), or all of a shorter axis" },
  LINK ("pcie", server.pcie, "chip to host"),
  LINK ("memory", server.cpu_memory, "of the host"),
  { "memory_size", LS_FIELD_BYTES, SPEC (server.cpu_memory_bytes), .required = true, .above = true,
    .meaning = "of the host" },
  { "nics", LS_FIELD_UINT, SPEC (torus.nics_per_host), .max = 64, .default_text = "0",
    .meaning = "that the chips of the host share, for traffic between slices" },
  { "nic", LS_FIELD_OBJECT, SPEC (nics.port), .fields = ls_link_fields, .default_text = "none",
    .meaning = "one port, NIC to leaf" },
  { NULL },
};
static const LsField torus_fields[] = {
  { "dims", LS_FIELD_ROW, SPEC (torus.largest), .n_row = LS_TORUS_AXES, .required = true, .min = 1,
    .max = LS_TORUS_MAX_AXIS, .expected = "a list of 2 or 3 whole numbers",
    .meaning = "chips of the largest slice along x, y (and z)" },
  { "slice", LS_FIELD_ROW, SPEC (torus.dims), .n_row = LS_TORUS_AXES, .min = 1, .max = LS_TORUS_MAX_AXIS,
    .expected = "a list of 2 or 3 whole numbers", .default_text = "as the job needs, up to dims",
    .meaning = "chips of a slice along x, y (and z)" },
  { "wrap", LS_FIELD_ENUM, SPEC (torus.wrap), .required = true, .names = wrap_rules,
    .meaning = "axes whose last chip is joined to the first: full-axes: those as long as in the largest "
               "slice; cubes: all if "
               "each is a multiple of 4" },
  LINK ("link", ici, "between two chips"),
  { "start", LS_FIELD_TIME, SPEC (torus.start), .max = (double) LS_S, .default_text = "0us",
    .meaning = "what a collective takes once, in addition to the latency of its hops" },
  { "host", LS_FIELD_OBJECT, 0, .required = true, .fields = torus_host_fields,
    .meaning = "the CPU hosts of the chips" },
  { NULL },
};

#define GPUS_MEANING "accelerators of one node"
static const LsField node_fields[] = {
  { "gpus", LS_FIELD_UINT, SPEC (gpus_per_node), .min = 1, .max = 1024,
    .default_text = "required, but of a list those in it", .meaning = GPUS_MEANING },
  { "segment", LS_FIELD_UINT, SPEC (segment), .min = 1, .max = 1024, .default_text = "nodes are filled",
    .meaning = "compute trays (cpu.boards) that jobs on several nodes take together; those of whole segments "
               "leave the rest of a node free" },
  { "list", LS_FIELD_OBJECT, 0, .fields = list_fields, .default_text = "none",
    .meaning = "all vertices and links, instead of the keys from here to nvme" },
  { "torus", LS_FIELD_OBJECT, 0, .fields = torus_fields, .default_text = "none",
    .meaning = "a slice of a TPU pod, instead of all other keys of a node" },
  { "nvswitch", LS_FIELD_OBJECT, 0, .fields = nvswitch_fields, .default_text = "none",
    .meaning = "NVLink inside the node, through switches" },
  { "nvlink_mesh", LS_FIELD_OBJECT, 0, .fields = mesh_fields, .default_text = "none",
    .meaning = "NVLink or xGMI (Infinity Fabric) inside the node, from GPU to GPU" },
  { "pcie", LS_FIELD_OBJECT, 0, .fields = pcie_fields, .default_text = "none",
    .meaning = "PCIe inside the node" },
  { "cpu", LS_FIELD_OBJECT, 0, .fields = cpu_fields, .default_text = "none",
    .meaning = "processors and their memory" },
  { "nvme", LS_FIELD_OBJECT, 0, .fields = nvme_fields, .default_text = "none", .meaning = "local drives" },
  { "nics", LS_FIELD_OBJECT, 0, .fields = nic_fields, .default_text = "none", .meaning = "network ports" },
  { NULL },
};

static const LsField name_element[] = { { "", LS_FIELD_STRING, 0, .required = true, .max = 64 }, { NULL } };

const LsField ls_cluster_fields[] = {
  LS_FIELDS_HEADER (LsClusterSpec),
  { "also", LS_FIELD_ARRAY, SPEC (also), .element_size = sizeof (char *), .fields = name_element,
    .default_text = "none",
    .meaning = "what else it is called, such as a type of machine of a cloud: a name too" },
  { "slices", LS_FIELD_ARRAY, SPEC (slices), .element_size = sizeof (char *), .fields = name_element,
    .default_text = "none",
    .meaning = "of a torus: names of slices and their chips along x, y (and z), as \"v5p-1024 8x8x8\": each "
               "name is one of the cluster with that slice" },
  { "gpu", LS_FIELD_IGNORED, .expected = "text or object", .required = true,
    .meaning = "name of a file in topologies/gpu, a path, or an object with the keys of such a file" },
  { "nodes", LS_FIELD_UINT, SPEC (n_nodes), .min = 1, .max = 1 << 20, .default_text = "1",
    .meaning = "nodes of the cluster" },
  { "node", LS_FIELD_OBJECT, 0, .required = true, .fields = node_fields, .meaning = "what one node holds" },
  { "fabric", LS_FIELD_OBJECT, 0, .fields = ls_fabric_fields, .default_text = "none",
    .meaning = "what joins the nodes" },
  { "other_nodes", LS_FIELD_ARRAY, SPEC (others), .element_size = sizeof (LsOtherNodes),
    .fields = ls_other_nodes_fields, .default_text = "none: all are alike",
    .meaning = "nodes of up to 3 other kinds" },
  { "fitted", LS_FIELD_OBJECT, 0, .fields = ls_fitted_fields, .default_text = "none",
    .meaning = "what `lockstep calibrate --runs` found on the cluster itself" },
  { "successors", LS_FIELD_ARRAY, SPEC (successors), .element_size = sizeof (char *), .fields = name_element,
    .default_text = "none",
    .meaning = "names of clusters of later accelerators, which `lockstep whatif` tries instead" },
  { "faults", LS_FIELD_IGNORED, .expected = "object", .default_text = "none",
    .meaning = "by name of a link, the share of its capacity that is left, from 0 (failed) to 1, or an "
               "object" },
  { NULL },
};

/* A complaint about the name of an accelerator points at the key that has it. */
static bool
load_gpu (const LsJsonDoc *doc, const cJSON *node, LsGpu *ret_gpu, LsDiagList *diags)
{
  const char *changes = ls_override_find (node->valuestring);
  g_autofree char *name = changes ? g_strndup (node->valuestring, (gsize) (changes - 1 - node->valuestring))
                                  : g_strdup (node->valuestring);
  g_autofree char *message = NULL;
  g_autofree char *path = ls_data_find (LS_DATA_GPUS, name, &message);
  if (path)
    return ls_gpu_load (node->valuestring, ret_gpu, diags);
  ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "%s", message);
  return false;
}

/* By name or path, or described in place: then it is called as the cluster where it has no name. */
static bool
read_gpu_of (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "gpu");
  if (cJSON_IsObject (node))
    return ls_gpu_read_part (doc, node, s->name, s->source, &s->gpu, diags);
  if (cJSON_IsString (node) && *node->valuestring)
    return load_gpu (doc, node, &s->gpu, diags);
  g_autofree char *got = ls_json_describe (node);
  ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL,
                    "expected the name of an accelerator, or an object that describes it; got %s", got);
  return false;
}

static bool
complain (const LsJsonDoc *doc, const cJSON *node, LsJsonPlace place, LsDiagList *diags, const char *message)
{
  ls_json_doc_diag (doc, node, place, diags, NULL, "%s", message);
  return false;
}

static uint32_t
n_of_kind (const LsClusterSpec *s, LsNodeKind kind)
{
  uint32_t n = 0;
  for (guint i = 0; i < s->list.vertices->len; i++)
    n += g_array_index (s->list.vertices, LsListVertex, i).kind == (int) kind;
  return n;
}

/* A list says itself how many GPUs and NICs there are, and goes with nothing else. */
static bool
finish_list (const LsJsonDoc *doc, const cJSON *node, LsClusterSpec *s, LsDiagList *diags)
{
  static const char *const others[] = { "nvswitch", "nvlink_mesh", "pcie", "cpu", "nvme" };
  bool ok = true;
  for (size_t i = 0; i < G_N_ELEMENTS (others); i++) {
    const cJSON *other = cJSON_GetObjectItemCaseSensitive (node, others[i]);
    if (other)
      ok = complain (doc, other, LS_JSON_AT_KEY, diags,
                     "a node is given by \"list\" or by its parts, not both");
  }
  s->interior = LS_INTERIOR_LIST;
  if (!cJSON_GetObjectItemCaseSensitive (node, "gpus"))
    s->gpus_per_node = n_of_kind (s, LS_NODE_GPU);
  const cJSON *nics = cJSON_GetObjectItemCaseSensitive (node, "nics");
  if (nics && !cJSON_GetObjectItemCaseSensitive (nics, "count"))
    s->nics.n = n_of_kind (s, LS_NODE_NIC);
  return ok;
}

/* A torus says how many chips and NICs there are, and goes with nothing else. */
static bool
finish_torus (const LsJsonDoc *doc, const cJSON *node, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *torus = cJSON_GetObjectItemCaseSensitive (node, "torus");
  const cJSON *dims = cJSON_GetObjectItemCaseSensitive (torus, "dims");
  const cJSON *slice = cJSON_GetObjectItemCaseSensitive (torus, "slice");
  const cJSON *host = cJSON_GetObjectItemCaseSensitive (torus, "host");
  const cJSON *chips = cJSON_GetObjectItemCaseSensitive (host, "chips");
  bool ok = true;
  for (const cJSON *key = node->child; key; key = key->next)
    if (key != torus && !g_str_has_prefix (key->string, "x-"))
      ok = complain (doc, key, LS_JSON_AT_KEY, diags,
                     "a node is given by \"torus\" or by its parts, not both");
  if (cJSON_GetArraySize (dims) < 2)
    ok = complain (doc, dims, LS_JSON_AT_VALUE, diags, "expected 2 or 3 axes");
  if (cJSON_GetArraySize (chips) != cJSON_GetArraySize (dims))
    ok = complain (doc, chips, LS_JSON_AT_VALUE, diags, "expected as many axes as \"dims\" has");
  if (slice && cJSON_GetArraySize (slice) != cJSON_GetArraySize (dims))
    ok = complain (doc, slice, LS_JSON_AT_VALUE, diags, "expected as many axes as \"dims\" has");
  if (s->torus.nics_per_host > 0 && !cJSON_GetObjectItemCaseSensitive (host, "nic"))
    ok = complain (doc, host, LS_JSON_AT_VALUE, diags, "missing key \"nic\" (one port, NIC to leaf)");
  if (ok)
    ls_cluster_spec_init_torus (s);
  return ok;
}

/* What is true or false, or not said: then `otherwise`. */
static bool
read_truth (const LsJsonDoc *doc, const cJSON *node, bool otherwise, bool *ret, LsDiagList *diags)
{
  *ret = node ? cJSON_IsTrue (node) : otherwise;
  if (!node || cJSON_IsBool (node))
    return true;
  g_autofree char *got = ls_json_describe (node);
  ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "expected true or false; got %s", got);
  return false;
}

/* GPUs copy to each other unless the file says that they do not, or where they do. */
static bool
finish_p2p (const LsJsonDoc *doc, const cJSON *pcie, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *p2p = cJSON_GetObjectItemCaseSensitive (pcie, "p2p");
  bool is_below = cJSON_IsString (p2p) && g_str_equal (p2p->valuestring, "switch");
  s->server.copies = is_below ? LS_COPIES_BELOW_SWITCH : LS_COPIES_ANYWHERE;
  if (!p2p || is_below || cJSON_IsTrue (p2p))
    return true;
  s->server.copies = LS_COPIES_NOWHERE;
  if (cJSON_IsFalse (p2p))
    return true;
  g_autofree char *got = ls_json_describe (p2p);
  ls_json_doc_diag (doc, p2p, LS_JSON_AT_VALUE, diags, NULL, "expected true, false or \"switch\"; got %s",
                    got);
  return false;
}

/* Sockets know nothing of GPUs, unless the file says so. */
static bool
finish_transport (const LsJsonDoc *doc, const cJSON *nics, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (nics, "gpudirect");
  bool has_gpudirect;
  if (!read_truth (doc, node, s->nics.transport != LS_NIC_TCP, &has_gpudirect, diags))
    return false;
  s->nics.is_staged = !has_gpudirect;
  const cJSON *key = node ? node : cJSON_GetObjectItemCaseSensitive (nics, "transport");
  return !s->nics.is_staged || !s->list.vertices
      || complain (doc, key, LS_JSON_AT_KEY, diags,
                   "a way through host memory goes with a node given by its parts, not with \"list\"");
}

/* What only some kinds of node need. */
static bool
finish_node (const LsJsonDoc *doc, LsClusterSpec *s, LsDiagList *diags)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "node");
  const cJSON *nics = cJSON_GetObjectItemCaseSensitive (node, "nics");
  if (cJSON_GetObjectItemCaseSensitive (node, "torus"))
    return finish_torus (doc, node, s, diags);
  bool ok = finish_transport (doc, nics, s, diags);
  ok = finish_p2p (doc, cJSON_GetObjectItemCaseSensitive (node, "pcie"), s, diags) && ok;
  ok = ls_known_check (doc, cJSON_GetObjectItemCaseSensitive (nics, "known"), &s->network.known, diags) && ok;
  if (s->list.vertices)
    return finish_list (doc, node, s, diags) && ok;
  if (s->server.mesh != LS_MESH_LIST && s->server.mesh_links)
    ok = complain (
        doc,
        cJSON_GetObjectItemCaseSensitive (cJSON_GetObjectItemCaseSensitive (node, "nvlink_mesh"), "links"),
        LS_JSON_AT_KEY, diags, "goes with \"shape\": \"list\"");
  if (s->gpus_per_node == 0)
    ok = complain (doc, node, LS_JSON_AT_VALUE, diags, "missing key \"gpus\" (" GPUS_MEANING ")");
  if (nics && s->nics.n == 0)
    ok = complain (doc, nics, LS_JSON_AT_VALUE, diags, "missing key \"count\" (" NICS_MEANING ")");
  return ok;
}

bool
ls_cluster_read (const LsJsonDoc *doc, LsClusterSpec *ret_spec, LsDiagList *diags)
{
  LsClusterSpec spec = { .n_nodes = 1,
                         .network.rails = 1,
                         .network.oversubscription = 1,
                         .network.spine_oversubscription = 1,
                         .network.local_links = 1,
                         .network.pxn = true };
  bool ok = ls_fields_read_file (ls_cluster_fields, "cluster", doc, &spec, diags)
      && finish_node (doc, &spec, diags) && ls_fabric_finish (doc, &spec, diags)
      && ls_fitted_finish (doc, &spec.fitted, diags) && read_gpu_of (doc, &spec, diags)
      && ls_other_nodes_finish (doc, &spec, diags);
  if (ok)
    *ret_spec = spec;
  else
    ls_cluster_spec_clear (&spec);
  return ok;
}

bool
ls_cluster_load (const char *name, LsClusterSpec *ret_spec, LsDiagList *diags)
{
  if (ls_is_nccl_topo (name))
    return ls_nccl_topo_load (name, NULL, ret_spec, diags);
  if (!ls_json_is_given (name) && strstr (name, ".xml:")) {
    ls_diag_add (diags, LS_ERROR_INPUT, NULL, 0, 0, NULL, NULL, "--nodes gives it another number of nodes",
                 "\"%s\": changes go with JSON; an XML file takes none", name);
    return false;
  }
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CLUSTERS, name, diags);
  if (!doc || !ls_cluster_read (doc, ret_spec, diags))
    return false;
  ret_spec->name = ls_override_name (ret_spec->name, name);
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
