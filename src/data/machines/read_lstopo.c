/* data/machines/read_lstopo.c — what `lstopo FILE.xml` writes (hwloc 1 and 2), as a node; without hwloc.
 *
 *     <topology version="2.0">
 *       <object type="Machine"> <object type="Package"> <info name="CPUVendor" value=../>
 *         <object type="Bridge" bridge_type="0-1">                              a host bridge
 *           <object type="Bridge" bridge_type="1-1" pci_busid=.. pci_link_speed="15.753846">
 *             <object type="PCIDev" pci_busid=.. pci_type="0302 [10de:1db1] [..] a1" pci_link_speed=../>
 *             <object type="PCIDev" ..> <object type="OSDev" name="mlx5_0" osdev_type="3"/> </object>
 *
 * An object that has PCI in it is a CPU, bridges that lead to several devices are switches. GPUs are
 * devices of classes 03 and 12 whose vendor and number a file of topologies/gpu has, ports are devices of
 * OpenFabrics (3). It has neither NVLinks (matrices of distances apart, which are not read) nor rates of
 * networks: these are as in the accelerator's cluster, NVLinks only where these go through switches, as
 * meshes differ. */
#include "data/machines/node_tree.h"

#include <math.h>
#include <string.h>

#include "base/list.h"
#include "data/datadir.h"

#define MAX_PARTS 4096
#define MAX_DEPTH 64
/* GPUs idle at 2.5 GT/s, and so do the bridges above them: what is as slow as 16 such lanes says nothing. */
#define IDLE 4.0
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
  char *first_id; /* of a device of a GPU's class; NULL: none */
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

static bool
start_object (Reading *r, const char **names, const char **values, Frame *f)
{
  const char *type = value_of (names, values, "type");
  bool is_host = g_str_equal (value_of (names, values, "bridge_type"), "0-1");
  if (g_str_equal (type, "PCIDev") || (g_str_equal (type, "Bridge") && !is_host))
    return add_device (r, type, names, values, f);
  if (is_host)
    f->part = cpu_of (r);
  if (g_str_equal (type, "OSDev") && f->part != LS_TREE_NONE
      && g_str_equal (value_of (names, values, "osdev_type"), "3"))
    ls_tree_add (r->m, (LsTreePart) { .kind = LS_TREE_NET, .parent = f->part, .dev = r->n_nics++ });
  return true;
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
  ((Reading *) reading)->depth--;
}

/* Where the accelerator's cluster has switches; ports are as fast as there. */
static void
take_links (LsNodeTree *m)
{
  const LsServerSpec *server = &m->like->server;
  uint32_t n = server->nvswitch_planes > 0 ? server->nvlinks_per_gpu : 0;
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
  else if (ls_cluster_nvlinks_per_gpu (m->like) > 0)
    ls_tree_guess (m, "no NVLinks, which %s has from GPU to GPU", m->like->name);
}

static bool
finish (Reading *r, const char *named)
{
  LsNodeTree *m = r->m;
  if (r->n_gpus == 0)
    return ls_tree_wrong (m, 0, "lstopo --whole-io, or --no-io was given: it shows PCI devices by default",
                          "no PCI device that is an accelerator of NVIDIA or AMD");
  m->gpu = named ? g_strdup (named) : gpu_of_id (r->first_id, m->diags);
  if (!m->gpu)
    return ls_tree_wrong (
        m, 0, "lockstep list gpus",
        "PCI device %s is of no file in topologies/gpu: name the accelerator, --from %s:gpu=h100",
        r->first_id, m->path);
  if (!ls_tree_take_like (m, m->gpu))
    return false;
  if (!named)
    ls_tree_guess (m, "accelerators %s: PCI device %s", m->gpu, r->first_id);
  take_links (m);
  return true;
}

bool
ls_tree_read_lstopo (LsNodeTree *m, const char *text, gsize n, const char *gpu)
{
  static const GMarkupParser parser = { .start_element = start, .end_element = end };
  g_autofree Reading *r = g_new0 (Reading, 1);
  r->m = m;
  bool ok = ls_tree_parse_xml (m, &parser, r, text, n) && finish (r, gpu);
  g_free (r->first_id);
  return ok;
}
