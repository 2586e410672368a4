/* data/machines/read_lstopo.c — what `lstopo FILE.xml` writes (hwloc 1 and 2), as a node; without hwloc.
 *
 *     <topology version="2.0">
 *       <object type="Machine"> <object type="Package"> <info name="CPUVendor" value=../>
 *         <object type="Bridge" bridge_type="0-1">                              a host bridge
 *           <object type="Bridge" bridge_type="1-1" pci_busid=.. pci_link_speed="15.753846">
 *             <object type="PCIDev" pci_busid=.. pci_type="0302 [10de:1db1] [..] a1" pci_link_speed=../>
 *             <object type="PCIDev" ..> <object type="OSDev" name="mlx5_0" osdev_type="3"/> </object>
 *     <distances2hetero nbobjs="3" name="NVLinkBandwidth">
 *       <indexes>OSDev:332 OSDev:333 PCIDev:449</indexes> <u64values>1000000 0 25000 ..</u64values>
 *
 * An object that has PCI in it is a CPU, bridges that lead to several devices are switches. GPUs are
 * devices of classes 03 and 12 whose vendor and number a file of topologies/gpu has, or that NVML, CUDA or
 * ROCm SMI have a device of; ports are devices of OpenFabrics. NVLinks and xGMI links are in a matrix of MB/s
 * between devices by their gp_index, where lstopo was built with NVML or ROCm SMI. Without it they are as in
 * the accelerator's cluster where these go through switches, as meshes differ. Rates of networks are not
 * there. */
#include "data/machines/node_tree.h"

#include <math.h>
#include <string.h>

#include "base/list.h"
#include "data/datadir.h"

#define MAX_PARTS 4096
#define MAX_DEPTH 64
/* GPUs idle at 2.5 GT/s, and so do the bridges above them: what is as slow as 16 such lanes says nothing. */
#define IDLE       4.0
#define MAX_MATRIX 256 /* devices in a matrix of links */
#define MB         1e6 /* its unit, a second */
/* hwloc counts gigabytes/s after the line code: 15.753846 of gen 3 x16, of which NCCL takes 12 (topo.cc,
 * 60 * 16 / 80). */
#define NCCL_SHARE (12 / 15.753846)

typedef struct {
  uint32_t cpu, part; /* LS_TREE_NONE: none yet; what children hang on within PCI */
} Frame;

typedef struct {
  LsNodeTree *m;
  Frame stack[MAX_DEPTH];
  uint32_t depth;
  uint32_t n_gpus, n_nics;
  char *first_id;     /* of a device of a GPU's class; NULL: none */
  char *model;        /* of the first GPU, as a driver says it; NULL: none does */
  const char *driver; /* whose devices are GPUs without PCI, interned; NULL: none */
  bool is_bits;       /* hwloc 3: kinds of devices are sets of bits */
  GHashTable *by_gp;  /* 1 + part of a gp_index */
  const char *matrix; /* of links: "NVLinkBandwidth", interned; NULL: none */
  bool is_in_matrix;
  GArray *ends, *rates; /* of it: parts, LS_TREE_NONE being others (uint32_t); MB/s (double) */
  uint32_t n_odd;       /* rates that are no multiple of a link's */
} Reading;

static const char *
value_of (const char **names, const char **values, const char *name)
{
  for (int i = 0; names[i]; i++)
    if (g_str_equal (names[i], name))
      return values[i];
  return "";
}

/* The accelerator whose file has "10de:1db1"; NULL: none. Newly allocated. */
static char *
gpu_of_id (const char *id, LsDiagList *diags)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_GPUS);
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    g_autoptr (LsJsonDoc) doc = ls_data_open (entry->path, diags);
    const char *ids = doc ? cJSON_GetStringValue (ls_json_doc_at (doc, "pci")) : NULL;
    if (ids && ls_is_one_of (id, ids))
      return g_strdup (entry->name);
  }
  return NULL;
}

/* "0302 [10de:1db1] ..." as "10de:1db1", newly allocated; NULL: not of a class of GPUs. */
static char *
accelerator_id (const char *pci_type)
{
  const char *bracket = strchr (pci_type, '[');
  bool is_one = (g_str_has_prefix (pci_type, "03") || g_str_has_prefix (pci_type, "12")) && bracket
      && (g_str_has_prefix (bracket, "[10de:") || g_str_has_prefix (bracket, "[1002:"));
  return is_one && strlen (bracket) > 10 ? g_strndup (bracket + 1, 9) : NULL;
}

/* The object that PCI begins in. */
static uint32_t
cpu_of (Reading *r)
{
  Frame *f = &r->stack[r->depth - 1];
  if (f->cpu == LS_TREE_NONE)
    f->cpu = ls_tree_add (r->m, (LsTreePart) { .kind = LS_TREE_CPU, .parent = LS_TREE_NONE });
  return f->cpu;
}

/* A device: GPUs of another kind than the first (what a display hangs on) are none of the node's. */
static bool
add_device (Reading *r, const char *type, const char **names, const char **values, Frame *f)
{
  const char *busid = value_of (names, values, "pci_busid");
  double speed = g_ascii_strtod (value_of (names, values, "pci_link_speed"), NULL);
  LsTreePart part = { .kind = LS_TREE_PCI,
                      .parent = f->part == LS_TREE_NONE ? cpu_of (r) : f->part,
                      .rate = speed > IDLE && speed < 1e4 ? round (speed * NCCL_SHARE * LS_TREE_GB) : 0 };
  g_autofree char *id
      = g_str_equal (type, "PCIDev") ? accelerator_id (value_of (names, values, "pci_type")) : NULL;
  bool is_gpu = id && (!r->first_id || g_str_equal (id, r->first_id));
  if (!ls_tree_busid (busid, &part.busid))
    return ls_tree_wrong (
        r->m, r->m->line, NULL,
        "<object type=\"%s\">: pci_busid: expected a PCI address like \"0000:1b:00.0\"; got \"%.40s\"", type,
        busid);
  if (is_gpu) {
    part.kind = LS_TREE_GPU;
    part.dev = r->n_gpus++;
  }
  if (!r->first_id)
    r->first_id = g_steal_pointer (&id);
  f->part = ls_tree_add (r->m, part);
  return true;
}

static uint32_t
nth_gpu (const LsNodeTree *m, uint64_t n)
{
  for (guint i = 0; i < m->parts->len; i++)
    if (ls_tree_at (m, i)->kind == LS_TREE_GPU && ls_tree_at (m, i)->dev == n)
      return i;
  return LS_TREE_NONE;
}

/* A device of an operating system or driver: a port, or a GPU that has no PCI device. */
static void
add_os_device (Reading *r, const char **names, const char **values, Frame *f)
{
  static const char *const drivers[] = { "nvml", "cuda", "rsmi" };
  uint64_t kind = g_ascii_strtoull (value_of (names, values, "osdev_type"), NULL, 10);
  const char *name = value_of (names, values, "name"), *driver = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (drivers) && !driver; i++)
    driver = g_str_has_prefix (name, drivers[i]) ? drivers[i] : NULL;
  bool is_port = r->is_bits ? kind >> 5 & 1 : kind == 3;
  if (is_port && f->part != LS_TREE_NONE)
    ls_tree_add (r->m, (LsTreePart) { .kind = LS_TREE_NET, .parent = f->part, .dev = r->n_nics++ });
  if (!driver || (f->part != LS_TREE_NONE && ls_tree_at (r->m, f->part)->kind != LS_TREE_CPU))
    return;
  if (r->driver && r->driver != driver) { /* the same GPUs once more */
    f->part = nth_gpu (r->m, g_ascii_strtoull (name + strlen (driver), NULL, 10));
    return;
  }
  r->driver = driver;
  const LsTreePart gpu = { .kind = LS_TREE_GPU,
                           .parent = f->part != LS_TREE_NONE ? f->part : cpu_of (r),
                           .busid = UINT64_C (1) << 63 | r->n_gpus, /* of no PCI device */
                           .dev = r->n_gpus };
  r->n_gpus++;
  f->part = ls_tree_add (r->m, gpu);
}

static bool
start_object (Reading *r, const char **names, const char **values, Frame *f)
{
  const char *type = value_of (names, values, "type");
  bool is_host = g_str_equal (value_of (names, values, "bridge_type"), "0-1");
  if ((g_str_equal (type, "PCIDev") || (g_str_equal (type, "Bridge") && !is_host))
      && !add_device (r, type, names, values, f))
    return false;
  if (is_host)
    f->part = cpu_of (r);
  if (g_str_equal (type, "OSDev"))
    add_os_device (r, names, values, f);
  uint64_t gp = g_ascii_strtoull (value_of (names, values, "gp_index"), NULL, 10);
  if (f->part != LS_TREE_NONE && gp > 0 && gp < G_MAXINT)
    g_hash_table_insert (r->by_gp, GUINT_TO_POINTER (gp), GUINT_TO_POINTER (f->part + 1));
  return true;
}

/* The name of the first GPU, and which matrix its values are of. */
static void
start_other (Reading *r, const char *element, const char **names, const char **values)
{
  const char *name = value_of (names, values, "name");
  uint32_t part = r->depth > 0 ? r->stack[r->depth - 1].part : LS_TREE_NONE;
  bool is_links = g_str_equal (name, "NVLinkBandwidth") || g_str_equal (name, "XGMIBandwidth");
  if (g_str_has_prefix (element, "distances2")) {
    r->is_in_matrix = is_links && !r->matrix;
    r->matrix = r->is_in_matrix ? g_intern_string (name) : r->matrix;
  }
  if (g_str_equal (element, "topology"))
    r->is_bits = g_ascii_strtod (value_of (names, values, "version"), NULL) >= 3;
  if (g_str_equal (element, "info") && g_str_equal (name, "GPUModel") && !r->model && part != LS_TREE_NONE
      && ls_tree_at (r->m, part)->kind == LS_TREE_GPU)
    r->model = g_strdup (value_of (names, values, "value"));
}

static bool
start_in_place (Reading *r, const char *name, const char **names, const char **values)
{
  Frame f = { LS_TREE_NONE, r->depth > 0 ? r->stack[r->depth - 1].part : LS_TREE_NONE };
  if (r->depth == 0 && !g_str_equal (name, "topology"))
    return ls_tree_wrong (r->m, r->m->line, NULL, "expected <topology> of hwloc; got <%s>", name);
  if (r->depth == MAX_DEPTH || r->m->parts->len >= MAX_PARTS)
    return ls_tree_wrong (r->m, r->m->line, NULL, "more than %d levels or %d devices", MAX_DEPTH, MAX_PARTS);
  if (g_str_equal (name, "object") && r->depth > 0 && !start_object (r, names, values, &f))
    return false;
  start_other (r, name, names, values);
  r->stack[r->depth++] = f;
  return true;
}

static void
start (GMarkupParseContext *context, const gchar *name, const gchar **names, const gchar **values,
       gpointer reading, GError **error)
{
  if (!start_in_place (reading, name, names, values))
    g_set_error_literal (error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT, "refused");
}

static void
end (GMarkupParseContext *context, const gchar *name, gpointer reading, GError **error)
{
  Reading *r = reading;
  r->depth--;
  r->is_in_matrix = r->is_in_matrix && !g_str_has_prefix (name, "distances2");
}

/* Indexes and values of the matrix, in lines of some. */
static void
add_text (GMarkupParseContext *context, const char *text, gsize n, gpointer reading, GError **error)
{
  Reading *r = reading;
  bool is_ends = g_str_equal (g_markup_parse_context_get_element (context), "indexes"),
       is_rates = g_str_equal (g_markup_parse_context_get_element (context), "u64values");
  g_autofree char *own = g_strndup (text, n);
  g_auto (GStrv) words = g_strsplit_set (own, " \n", -1);
  for (char **word = words; r->is_in_matrix && *word; word++) {
    const char *colon = strchr (*word, ':');
    uint64_t gp = g_ascii_strtoull (colon ? colon + 1 : *word, NULL, 10);
    uint32_t part = GPOINTER_TO_UINT (g_hash_table_lookup (r->by_gp, GSIZE_TO_POINTER (gp))) - 1;
    double rate = g_ascii_strtod (*word, NULL);
    if (**word && is_ends && r->ends->len <= MAX_MATRIX)
      g_array_append_val (r->ends, part);
    if (**word && is_rates && r->rates->len <= MAX_MATRIX * MAX_MATRIX)
      g_array_append_val (r->rates, rate);
  }
}

/* --- NVLinks ---------------------------------------------------------------------------------------- */

/* Of two ends of the matrix: a device that is no GPU is a switch, and what is no device a CPU. Returns how
 * many links there are of that rate, and adds them. */
static uint32_t
add_link (Reading *r, uint32_t from, uint32_t to, double rate)
{
  LsNodeTree *m = r->m;
  double own = m->like->server.nvlink.bandwidth_bytes_per_s;
  const LsTreePart *a = ls_tree_at (m, from), *b = to != LS_TREE_NONE ? ls_tree_at (m, to) : NULL;
  if (!b || rate <= 0 || own <= 0 || a->kind != LS_TREE_GPU || from == to)
    return 0;
  const LsTreeNvlink link = { .gpu = from,
                              .count = (uint32_t) MAX (1, round (MIN (rate * MB / own, 1000))),
                              .to_switch = b->kind != LS_TREE_GPU,
                              .busid = b->busid };
  g_array_append_val (m->nvlinks, link);
  r->n_odd += link.count * own != rate * MB;
  return link.count;
}

/* Whether the matrix is one of links: as many rates as it should have, and no more links at a GPU than the
 * accelerator has. Rates of ROCm SMI are the same for all GPUs that xGMI leads to, in any number of hops. */
static bool
take_matrix (Reading *r)
{
  LsNodeTree *m = r->m;
  guint n = r->ends->len;
  uint32_t own = ls_cluster_nvlinks_per_gpu (m->like), n_cpus = 0;
  bool ok = own > 0 && n > 0 && n <= MAX_MATRIX && r->rates->len == n * n;
  for (guint i = 0; ok && i < n; i++) {
    uint32_t sum = 0, from = g_array_index (r->ends, uint32_t, i);
    for (guint j = 0; j < n && from != LS_TREE_NONE; j++) {
      uint32_t to = g_array_index (r->ends, uint32_t, j);
      double rate = g_array_index (r->rates, double, i *n + j);
      sum += add_link (r, from, to, rate);
      n_cpus += to == LS_TREE_NONE && rate > 0 && ls_tree_at (m, from)->kind == LS_TREE_GPU;
    }
    ok = sum <= own;
  }
  if (!ok) {
    g_array_set_size (m->nvlinks, 0);
    ls_tree_guess (m, "without the matrix %s, which is cut off or has more links at a GPU than the %u of %s",
                   r->matrix, own, m->like->name);
    return false;
  }
  if (r->n_odd > 0)
    ls_tree_guess (m, "rates of %s as the nearest number of links of %s", r->matrix, m->like->name);
  if (n_cpus > 0)
    ls_tree_guess (m, "without NVLinks of %u GPUs to CPUs", n_cpus);
  return true;
}

/* Where no matrix says it and the accelerator's cluster has switches; ports are as fast as there. */
static void
take_links (Reading *r)
{
  LsNodeTree *m = r->m;
  const LsServerSpec *server = &m->like->server;
  bool is_known = r->matrix && take_matrix (r);
  uint32_t n = server->nvswitch_planes > 0 && !is_known ? server->nvlinks_per_gpu : 0;
  for (guint i = 0; i < m->parts->len; i++) {
    LsTreePart *part = ls_tree_at (m, i);
    const LsTreeNvlink link = { .gpu = i, .count = n, .to_switch = true };
    if (part->kind == LS_TREE_NET)
      part->net = m->like->nics.port.bandwidth_bytes_per_s;
    if (part->kind == LS_TREE_GPU && n > 0)
      g_array_append_val (m->nvlinks, link);
  }
  ls_tree_guess (m, "PCIe of what lstopo saw idle (2.5 GT/s) or without a speed: as in %s", m->like->name);
  if (n > 0)
    ls_tree_guess (m, "%u NVLinks from each GPU to switches", n);
  else if (ls_cluster_nvlinks_per_gpu (m->like) > 0 && !is_known)
    ls_tree_guess (m, "no NVLinks, which %s has from GPU to GPU", m->like->name);
}

static bool
finish (Reading *r, const char *named)
{
  LsNodeTree *m = r->m;
  if (r->n_gpus == 0)
    return ls_tree_wrong (m, 0, "lstopo --whole-io, or --no-io was given: it shows PCI devices by default",
                          "no device that is an accelerator of NVIDIA or AMD");
  m->gpu = named ? g_strdup (named) : r->first_id ? gpu_of_id (r->first_id, m->diags) : NULL;
  bool by_model = !m->gpu && r->model && (m->gpu = ls_tree_gpu_of_product (r->model));
  if (!m->gpu)
    return ls_tree_wrong (m, 0, "lockstep list gpus",
                          "%s %s is of no file in topologies/gpu: name the accelerator, %s:gpu=h100",
                          r->first_id ? "PCI device" : "accelerator",
                          r->first_id    ? r->first_id
                              : r->model ? r->model
                                         : "unnamed",
                          m->path);
  if (!ls_tree_take_like (m, m->gpu))
    return false;
  if (!named && by_model)
    ls_tree_guess (m, "accelerators %s: %s by its driver", m->gpu, r->model);
  else if (!named)
    ls_tree_guess (m, "accelerators %s: PCI device %s", m->gpu, r->first_id);
  take_links (r);
  return true;
}

bool
ls_tree_read_lstopo (LsNodeTree *m, const char *text, gsize n, const char *gpu)
{
  static const GMarkupParser parser = { .start_element = start, .end_element = end, .text = add_text };
  g_autoptr (GHashTable) by_gp = g_hash_table_new (NULL, NULL);
  g_autoptr (GArray) ends = g_array_new (FALSE, FALSE, sizeof (uint32_t)),
                     rates = g_array_new (FALSE, FALSE, sizeof (double));
  g_autofree Reading *r = g_new0 (Reading, 1);
  *r = (Reading) { .m = m, .by_gp = by_gp, .ends = ends, .rates = rates };
  bool ok = ls_tree_parse_xml (m, &parser, r, text, n) && finish (r, gpu);
  g_free (r->first_id);
  g_free (r->model);
  return ok;
}
