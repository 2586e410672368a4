/* data/machines/read_nccl_topo.c — a topology file of NCCL (XML) as a cluster. */

#include <string.h>

#include "data/datadir.h"
#include "data/machines/nccl_topo_xml.h"
#include "data/machines/machines.h"
#include "data/text/read_file.h"

#define GB 1e9

typedef struct {
  const LsTopoXml *xml;
  const char *path;
  LsDiagList *diags;
  LsClusterSpec *spec;
  double fastest;      /* bytes/s of the ports that are kept                        */
  bool *is_used;       /* by thing: becomes a vertex                                */
  char **names;        /* by thing: of its vertex, borrowed from the spec           */
  LsNcclTables tables; /* of the generation of its GPUs                          */
} Making;

static const LsTopoThing *
thing_at (const Making *m, uint32_t i)
{
  return &g_array_index (m->xml->things, LsTopoThing, i);
}

G_GNUC_PRINTF (4, 5)
static bool
complain (const Making *m, int line, const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (m->diags, LS_ERROR_INPUT, m->path, line, line > 0 ? 1 : 0, NULL, NULL, hint, "%s", text);
  return false;
}

/* --- links ----------------------------------------------------------------------- */

static LsLinkSpec
link_of (double rate, LsTime latency, const char *source)
{
  return (LsLinkSpec) {
    .bandwidth_bytes_per_s = rate, .efficiency = 1, .latency = latency, .source = g_strdup (source)
  };
}

/* Latencies are those of topologies/dgx-h100.json. */
static LsLinkSpec
pci_link (double rate)
{
  return link_of (rate, LS_US / 2, "NCCL 2.30.7 topo.cc: link_width * v / 80 GB/s. Latency: as in dgx-h100");
}

static void
join (Making *m, const char *from, const char *to, uint32_t count, LsLinkSpec link)
{
  LsListLink item = { .from = g_strdup (from), .to = g_strdup (to), .count = count, .link = link };
  g_array_append_val (m->spec->list.links, item);
}

/* --- vertices ---------------------------------------------------------------------- */

static char *
add_vertex (Making *m, LsNodeKind kind, const char *format, uint32_t number)
{
  LsListVertex vertex = { .name = g_strdup_printf ("%s%u", format, number), .kind = kind };
  g_array_append_val (m->spec->list.vertices, vertex);
  return vertex.name;
}

/* GPUs, the fastest ports, and all that lies between them and the CPUs. */
static void
mark_used (Making *m)
{
  for (guint i = 0; i < m->xml->things->len; i++)
    m->fastest = MAX (m->fastest, thing_at (m, i)->net);
  for (guint i = 0; i < m->xml->things->len; i++) {
    const LsTopoThing *t = thing_at (m, i);
    bool is_end = t->kind == LS_TOPO_GPU || (t->kind == LS_TOPO_NET && t->net == m->fastest)
        || t->kind == LS_TOPO_CPU;
    for (uint32_t up = i; is_end && up != LS_TOPO_NONE && !m->is_used[up]; up = thing_at (m, up)->parent)
      m->is_used[up] = true;
  }
}

/* A PCI device that holds one port and nothing else is that port. */
static void
merge_ports (Making *m)
{
  g_autofree uint32_t *n_children = g_new0 (uint32_t, m->xml->things->len);
  for (guint i = 0; i < m->xml->things->len; i++)
    if (m->is_used[i] && thing_at (m, i)->parent != LS_TOPO_NONE)
      n_children[thing_at (m, i)->parent]++;
  for (guint i = 0; i < m->xml->things->len; i++) {
    uint32_t up = thing_at (m, i)->parent;
    if (m->is_used[i] && thing_at (m, i)->kind == LS_TOPO_NET && thing_at (m, up)->kind == LS_TOPO_PCI
        && n_children[up] == 1)
      m->is_used[up] = false;
  }
}

typedef struct {
  uint32_t dev, thing;
} Numbered;

static int
by_dev (gconstpointer a, gconstpointer b)
{
  const Numbered *x = a, *y = b;
  return x->dev != y->dev ? (x->dev > y->dev) - (x->dev < y->dev)
                          : (x->thing > y->thing) - (x->thing < y->thing);
}

/* GPUs and ports by their dev, CPUs and switches in the order of the file. Returns how
 * many there are. */
static uint32_t
add_vertices (Making *m, LsTopoThingKind kind, LsNodeKind node_kind, const char *name)
{
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (Numbered));
  for (guint i = 0; i < m->xml->things->len; i++) {
    const LsTopoThing *t = thing_at (m, i);
    Numbered n = { t->kind == LS_TOPO_GPU || t->kind == LS_TOPO_NET ? t->dev : 0, i };
    if (t->kind == kind && m->is_used[i])
      g_array_append_val (order, n);
  }
  g_array_sort (order, by_dev);
  for (guint k = 0; k < order->len; k++)
    m->names[g_array_index (order, Numbered, k).thing] = add_vertex (m, node_kind, name, k);
  return order->len;
}

/* --- the tree ------------------------------------------------------------------------ */

/* What a port is plugged into, and how fast: its PCI device, or where that is plugged in. */
static void
join_port (Making *m, uint32_t i)
{
  uint32_t up = thing_at (m, i)->parent;
  const LsTopoThing *device = thing_at (m, up);
  double rate = device->kind == LS_TOPO_PCI ? device->rate : thing_at (m, i)->net;
  join (m, m->names[i], m->names[m->is_used[up] ? up : device->parent], 1, pci_link (rate));
}

static void
add_tree (Making *m)
{
  for (guint i = 0; i < m->xml->things->len; i++) {
    const LsTopoThing *t = thing_at (m, i);
    if (!m->is_used[i] || t->kind == LS_TOPO_CPU)
      continue;
    if (t->kind == LS_TOPO_NET)
      join_port (m, i);
    else if (t->c2c == 0 || thing_at (m, t->parent)->kind != LS_TOPO_CPU)
      join (m, m->names[i], m->names[t->parent], 1, pci_link (t->rate));
  }
}

static uint32_t
cpu_of (const Making *m, uint32_t i)
{
  while (thing_at (m, i)->parent != LS_TOPO_NONE)
    i = thing_at (m, i)->parent;
  return i;
}

/* Where C2C goes beside PCI straight to the CPU, it takes its place. */
static void
add_c2c (Making *m)
{
  for (guint i = 0; i < m->xml->things->len; i++)
    if (thing_at (m, i)->c2c > 0)
      join (m, m->names[i], m->names[cpu_of (m, i)], 1,
            link_of (thing_at (m, i)->c2c, 300 * LS_NS,
                     "NCCL 2.30.7 topo.cc: bw * count / 1000 GB/s. Latency: as in gb200-nvl72"));
}

static void
add_interconnects (Making *m)
{
  for (guint a = 0; a < m->xml->things->len; a++)
    for (guint b = a + 1; b < m->xml->things->len; b++) {
      const LsTopoThing *x = thing_at (m, a), *y = thing_at (m, b);
      if (x->kind != LS_TOPO_CPU || y->kind != LS_TOPO_CPU)
        continue;
      g_autofree char *source
          = g_strdup_printf ("NCCL 2.30.7 topo.h: between CPUs, %s. Latency: as in dgx-h100", x->cpu_name);
      join (m, m->names[a], m->names[b], 1,
            link_of (MIN (x->interconnect, y->interconnect), LS_US / 2, source));
    }
}

/* --- NVLink ---------------------------------------------------------------------------- */

static LsLinkSpec
nvlink (const Making *m)
{
  return link_of (m->tables.nvlink, 300 * LS_NS,
                  "NCCL 2.30.7 topo.h: rate of an NVLink by compute capability. Latency: as in dgx-h100");
}

/* Links that GPU `from` tells of towards `to`, LS_TOPO_NONE being the switches. */
static uint32_t
n_nvlinks (const Making *m, uint32_t from, uint32_t to)
{
  uint32_t n = 0;
  for (guint i = 0; i < m->xml->nvlinks->len; i++) {
    const LsTopoNvlink *link = &g_array_index (m->xml->nvlinks, LsTopoNvlink, i);
    if (link->gpu == from
        && (to == LS_TOPO_NONE ? link->to_switch
                               : !link->to_switch && link->busid == thing_at (m, to)->busid))
      n += link->count;
  }
  return n;
}

static bool
add_nvlinks (Making *m)
{
  char *nvswitch = NULL;
  for (guint a = 0; a < m->xml->things->len; a++) {
    if (thing_at (m, a)->kind != LS_TOPO_GPU)
      continue;
    uint32_t n = n_nvlinks (m, a, LS_TOPO_NONE);
    if (n > 0 && !nvswitch)
      nvswitch = add_vertex (m, LS_NODE_NVSWITCH, "nvswitch", 0);
    if (n > 0)
      join (m, m->names[a], nvswitch, n, nvlink (m));
    for (guint b = a + 1; b < m->xml->things->len; b++) {
      if (thing_at (m, b)->kind != LS_TOPO_GPU)
        continue;
      uint32_t there = n_nvlinks (m, a, b), back = n_nvlinks (m, b, a);
      if (there != back)
        return complain (m, thing_at (m, b)->line, NULL, "%s has %u NVLinks to %s, which has %u back",
                         m->names[a], there, m->names[b], back);
      if (there > 0)
        join (m, m->names[a], m->names[b], there, nvlink (m));
    }
  }
  return true;
}

/* --- the whole -------------------------------------------------------------------------- */

static int
by_busid (gconstpointer a, gconstpointer b)
{
  const LsTopoThing *x = *(const LsTopoThing *const *) a, *y = *(const LsTopoThing *const *) b;
  return x->busid != y->busid ? (x->busid > y->busid) - (x->busid < y->busid)
                              : (x->line > y->line) - (x->line < y->line);
}

static bool
check_gpus (Making *m)
{
  g_autoptr (GPtrArray) gpus = g_ptr_array_new ();
  for (guint i = 0; i < m->xml->things->len; i++)
    if (thing_at (m, i)->kind == LS_TOPO_GPU)
      g_ptr_array_add (gpus, (gpointer) thing_at (m, i));
  if (gpus->len == 0)
    return complain (m, 0, NULL,
                     "no <gpu>: what NCCL dumps on a machine with GPUs has them (NCCL_TOPO_DUMP_FILE); files "
                     "that clouds ship as NCCL_TOPO_FILE have none, and are not read");
  g_ptr_array_sort (gpus, by_busid);
  const LsTopoThing *first = gpus->pdata[0];
  for (guint i = 0; i < gpus->len; i++) {
    const LsTopoThing *gpu = gpus->pdata[i];
    if (i > 0 && gpu->busid == ((const LsTopoThing *) gpus->pdata[i - 1])->busid)
      return complain (m, gpu->line, NULL, "a second GPU with the bus id of that in line %d",
                       ((const LsTopoThing *) gpus->pdata[i - 1])->line);
    if (gpu->sm != first->sm)
      return complain (m, gpu->line, NULL, "sm %u, but %u in line %d: a cluster has one kind of accelerator",
                       gpu->sm, first->sm, first->line);
  }
  g_autofree char *why = NULL;
  bool ok = ls_nccl_tables_find (first->sm / 10, &m->tables, &why, m->diags);
  return ok || (why && complain (m, first->line, NULL, "sm %u: %s", first->sm, why));
}

static bool
load_gpu (Making *m, const char *named)
{
  const char *name = named ? named : m->xml->gpu ? m->xml->gpu : m->tables.gpu;
  g_autofree char *message = NULL;
  g_autofree char *path = ls_data_find (LS_DATA_GPUS, name, &message);
  return path ? ls_gpu_load (path, &m->spec->gpu, m->diags) : complain (m, 0, NULL, "%s", message);
}

static char *
stem_of (const char *path)
{
  g_autofree char *base = g_path_get_basename (path);
  return g_strndup (base, g_str_has_suffix (base, ".xml") ? strlen (base) - 4 : strlen (base));
}

static void
add_network (Making *m, uint32_t n_nics)
{
  LsClusterSpec *s = m->spec;
  s->nics.n = s->network.rails = n_nics;
  s->network.nodes_per_leaf = 32;
  s->network.oversubscription = 1;
  s->nics.port
      = link_of (m->fastest, 300 * LS_NS, "NCCL 2.30.7 topo.cc: speed / 8000 GB/s. Latency: as in dgx-h100");
  s->network.spine = link_of (m->fastest, 280 * LS_NS, "As NIC to leaf. Latency: as in dgx-h100");
}

static bool
make (Making *m, const char *gpu)
{
  LsClusterSpec *s = m->spec;
  if (!check_gpus (m) || !load_gpu (m, gpu))
    return false;
  s->name = stem_of (m->path);
  s->source
      = g_strdup_printf ("%s, a topology file of NCCL; fabric assumed: non-blocking leaf-spine", m->path);
  s->n_nodes = 1;
  s->interior = LS_INTERIOR_LIST;
  s->list.vertices = g_array_new (FALSE, TRUE, sizeof (LsListVertex));
  s->list.links = g_array_new (FALSE, TRUE, sizeof (LsListLink));
  mark_used (m);
  merge_ports (m);
  s->gpus_per_node = add_vertices (m, LS_TOPO_GPU, LS_NODE_GPU, "gpu");
  add_vertices (m, LS_TOPO_CPU, LS_NODE_CPU, "cpu");
  add_vertices (m, LS_TOPO_PCI, LS_NODE_PCIE_SWITCH, "pcie");
  add_network (m, add_vertices (m, LS_TOPO_NET, LS_NODE_NIC, "nic"));
  if (!add_nvlinks (m))
    return false;
  add_tree (m);
  add_c2c (m);
  add_interconnects (m);
  return true;
}

bool
ls_is_nccl_topo (const char *path)
{
  return g_str_has_suffix (path, ".xml");
}

bool
ls_nccl_topo_parse (const char *text, gsize n, const char *path, const char *gpu, LsClusterSpec *ret_spec,
                    LsDiagList *diags)
{
  LsTopoXml xml;
  if (!ls_topo_xml_parse (text, n, path, &xml, diags))
    return false;
  LsClusterSpec spec = { 0 };
  Making m = { .xml = &xml, .path = path, .diags = diags, .spec = &spec };
  m.is_used = g_new0 (bool, xml.things->len + 1);
  m.names = g_new0 (char *, xml.things->len + 1);
  bool ok = make (&m, gpu);
  if (ok)
    *ret_spec = spec;
  else
    ls_cluster_spec_clear (&spec);
  g_free (m.is_used);
  g_free (m.names);
  ls_nccl_tables_clear (&m.tables);
  ls_topo_xml_clear (&xml);
  return ok;
}

bool
ls_nccl_topo_load (const char *path, const char *gpu, LsClusterSpec *ret_spec, LsDiagList *diags)
{
  gsize n = 0;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  return text && ls_nccl_topo_parse (text, n, path, gpu, ret_spec, diags);
}
