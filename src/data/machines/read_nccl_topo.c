/* data/machines/read_nccl_topo.c — a topology file of NCCL or RCCL (XML) as a cluster.
 *
 * The file (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE) is the tree of CPUs, PCI devices, GPUs and network ports of
 * a node:
 *
 *     <system version="1">
 *       <cpu numaid= arch= vendor= familyid= modelid=>
 *         <pci busid= class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">   a bridge
 *           <pci busid= class="0x030200" ..>
 *             <gpu dev= sm="90" ..> <nvlink target="busid" count= tclass=/> <c2c bw= count=/> </gpu>
 *           </pci>
 *           <pci busid= class="0x020700" ..> <nic> <net name= dev= speed= ../> </nic> </pci>
 *
 * RCCL writes version 2: its <gpu> says by gcn="942" or "gfx942" what it is, while sm counts compute units,
 * and has <xgmi> in the place of <nvlink>. What clouds ship as NCCL_TOPO_FILE has neither <gpu> nor <nic>,
 * which NCCL finds by itself: there devices of the classes 0x03 (GPUs) and 0x02 (NICs) are such, of the
 * accelerator that is named, and NVLinks and NICs are as in the cluster that its file names.
 *
 * Attributes that NCCL has and we do not need, and unknown elements, are passed over; what could matter is
 * kept by name.
 * The attribute x-gpu of <system> is ours: the accelerator's name in topologies/gpu. */

#include <math.h>
#include <string.h>

#include "data/machines/node_tree.h"
#include "data/text/lookalike.h"

#define MAX_THINGS 4096
#define MAX_HEAD   4096 /* bytes that tell what another file is */
#define MAX_DEPTH  64
#define TO_ITSELF                                                                                            \
  (1u << 31) /* of `unread`, beyond the rows of attributes: as files of virtual machines have it */

/* An element that is open, and the part that its children hang on. */
typedef struct {
  const char *element; /* interned */
  uint32_t thing;
} Frame;

typedef struct {
  LsNodeTree *m;
  const char *alike; /* what the text looks like, if not like a dump of NCCL; NULL: like nothing known */
  Frame stack[MAX_DEPTH];
  uint32_t depth;
} Reading;

/* --- attributes ------------------------------------------------------------------ */

/* What an element says; 0 and NULL: nothing. */
typedef struct {
  uint64_t family, model, busid, width, sm, dev, count, bw, speed;
  const char *arch, *vendor, *link_speed, *tclass, *target, *version, *x_gpu, *gcn, *class_of;
  uint32_t unread; /* bits: attributes that NCCL heeds and nothing here does */
} Said;

typedef enum { TEXT, NUMBER, BUSID, UNREAD } AttributeKind;

static const struct {
  const char *element, *name;
  AttributeKind kind;
  size_t offset;
  uint64_t max; /* of a number; what needs no word where nobody reads it */
  bool is_required;
} attributes[] = {
  { "system", "version", TEXT, offsetof (Said, version), .is_required = true },
  { "system", "x-gpu", TEXT, offsetof (Said, x_gpu) },
  { "cpu", "arch", TEXT, offsetof (Said, arch) },
  { "cpu", "vendor", TEXT, offsetof (Said, vendor) },
  { "cpu", "familyid", NUMBER, offsetof (Said, family), UINT32_MAX },
  { "cpu", "modelid", NUMBER, offsetof (Said, model), UINT32_MAX },
  { "pci", "busid", BUSID, offsetof (Said, busid), .is_required = true },
  { "pci", "link_width", NUMBER, offsetof (Said, width), 64 },
  { "pci", "link_speed", TEXT, offsetof (Said, link_speed) },
  { "pci", "class", TEXT, offsetof (Said, class_of) },
  { "gpu", "sm", NUMBER, offsetof (Said, sm), 1000, .is_required = true },
  { "gpu", "gcn", TEXT, offsetof (Said, gcn) },
  { "gpu", "dev", NUMBER, offsetof (Said, dev), 65535, .is_required = true },
  { "nvlink", "count", NUMBER, offsetof (Said, count), 1024, .is_required = true },
  { "nvlink", "tclass", TEXT, offsetof (Said, tclass) },
  { "nvlink", "target", TEXT, offsetof (Said, target) },
  { "xgmi", "count", NUMBER, offsetof (Said, count), 1024, .is_required = true },
  { "xgmi", "target", TEXT, offsetof (Said, target) },
  { "c2c", "bw", NUMBER, offsetof (Said, bw), 10000000, .is_required = true },
  { "c2c", "count", NUMBER, offsetof (Said, count), 1024, .is_required = true },
  { "net", "speed", NUMBER, offsetof (Said, speed), 1000000000 },
  { "net", "dev", NUMBER, offsetof (Said, dev), 65535 },
  { "net", "latency", UNREAD, .max = 0 },
  { "net", "gdr", UNREAD, .max = 1 },
  { "net", "coll", UNREAD, .max = 0 },
  { "gpu", "gdr", UNREAD, .max = 1 },
};

/* text NULL: it has no such attribute. */
static bool
read_busid (const LsNodeTree *m, const char *element, const char *name, const char *text, uint64_t *ret)
{
  if (!text)
    return ls_tree_wrong (m, m->line, NULL, "<%s>: missing attribute \"%s\"", element, name);
  return ls_tree_busid (text, ret)
      || ls_tree_wrong (m, m->line, NULL,
                        "<%s>: %s: expected a PCI address like \"0000:1b:00.0\"; got \"%.40s\"", element,
                        name, text);
}

/* A whole number, decimal or 0x... */
static bool
read_number (const LsNodeTree *m, const char *element, const char *name, const char *text, uint64_t max,
             uint64_t *ret)
{
  bool is_hex = g_str_has_prefix (text, "0x");
  return g_ascii_string_to_unsigned (is_hex ? text + 2 : text, is_hex ? 16 : 10, 0, max, ret, NULL)
      || ls_tree_wrong (m, m->line, NULL,
                        "<%s>: %s: expected a whole number of at most %" G_GUINT64_FORMAT "; got \"%.40s\"",
                        element, name, (guint64) max, text);
}

static bool
read_attributes (const LsNodeTree *m, const char *element, const char **names, const char **values,
                 Said *said)
{
  bool ok = true;
  for (guint i = 0; ok && i < G_N_ELEMENTS (attributes); i++) {
    const char *text = NULL;
    void *to = (char *) said + attributes[i].offset;
    if (strcmp (attributes[i].element, element) != 0)
      continue;
    for (int k = 0; names[k] && !text; k++)
      text = strcmp (names[k], attributes[i].name) == 0 ? values[k] : NULL;
    if (!text && attributes[i].is_required)
      ok = ls_tree_wrong (m, m->line, NULL, "<%s>: missing attribute \"%s\"", element, attributes[i].name);
    else if (attributes[i].kind == UNREAD)
      said->unread |= (uint32_t) (text && g_ascii_strtod (text, NULL) != (double) attributes[i].max) << i;
    else if (attributes[i].kind == BUSID)
      ok = read_busid (m, element, attributes[i].name, text, to);
    else if (attributes[i].kind == TEXT)
      *(const char **) to = text;
    else if (text)
      ok = read_number (m, element, attributes[i].name, text, attributes[i].max, to);
  }
  return ok;
}

/* "latency of <net>", interned. */
static const char *
unread_text (uint32_t bits)
{
  g_autoptr (GString) out = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (attributes); i++)
    if (bits >> i & 1)
      g_string_append_printf (out, "%s%s of <%s>", out->len > 0 ? ", " : "", attributes[i].name,
                              attributes[i].element);
  if (bits & TO_ITSELF)
    g_string_append_printf (out, "%sNVLinks of a <gpu> to itself", out->len > 0 ? ", " : "");
  return g_intern_string (out->str);
}

/* 100 Mbit/s per lane: kvDictPciGen of NCCL's topo.cc, which takes gen 3 for what it
 * does not know ("Unknown speed" and nothing at all come from machines that hide it). */
static double
lane_rate (const char *speed)
{
  static const struct {
    double gt_per_s, rate;
  } generations[] = { { 2.5, 15 }, { 5, 30 }, { 8, 60 }, { 16, 120 }, { 32, 240 }, { 64, 480 } };
  double gt_per_s = speed ? g_ascii_strtod (speed, NULL) : 0;
  for (size_t i = 0; i < G_N_ELEMENTS (generations); i++)
    if (fabs (gt_per_s - generations[i].gt_per_s) < 0.01)
      return generations[i].rate;
  return 60;
}

/* --- elements ---------------------------------------------------------------------- */

static bool
start_system (LsNodeTree *m, const Said *said, uint32_t *thing)
{
  if (strcmp (said->version, "1") != 0 && strcmp (said->version, "2") != 0)
    return ls_tree_wrong (m, m->line, NULL,
                          "<system>: expected version \"1\" or, of RCCL, \"2\"; got \"%.40s\"",
                          said->version);
  m->gpu = g_strdup (said->x_gpu);
  return true;
}

/* What NCCL reckons with between sockets: topo.h, by arch, vendor and model as in
 * ncclTopoAddCpu. */
static bool
start_cpu (LsNodeTree *m, const Said *said, uint32_t *thing)
{
  static const struct {
    const char *arch, *vendor; /* NULL: any */
    uint64_t model;            /* from this one of family 6 on; 0: any */
    double rate;
    const char *name;
  } cpus[] = { { "arm64", NULL, 0, 6, "ARM" },
               { "ppc64", NULL, 0, 32, "POWER9" },
               { NULL, "AuthenticAMD", 0, 16, "AMD" },
               { NULL, NULL, 0xCF, 40, "Intel from Emerald Rapids on" },
               { NULL, NULL, 0x8F, 22, "Intel Sapphire Rapids" },
               { NULL, NULL, 0x55, 10, "Intel Skylake" },
               { NULL, NULL, 0, 6, "Intel Broadwell or before" } };
  size_t i = 0;
  while ((cpus[i].arch && g_strcmp0 (said->arch, cpus[i].arch) != 0)
         || (cpus[i].vendor && g_strcmp0 (said->vendor, cpus[i].vendor) != 0)
         || (cpus[i].model > 0 && (said->family != 6 || said->model < cpus[i].model)))
    i++;
  *thing = ls_tree_add (m,
                        (LsTreePart) { .kind = LS_TREE_CPU,
                                       .parent = LS_TREE_NONE,
                                       .interconnect = cpus[i].rate * LS_TREE_GB,
                                       .cpu_name = cpus[i].name });
  return true;
}

static bool
start_pci (LsNodeTree *m, const Said *said, uint32_t *thing)
{
  double width = said->width ? (double) said->width : 16;
  *thing = ls_tree_add (m,
                        (LsTreePart) { .kind = LS_TREE_PCI,
                                       .parent = *thing,
                                       .busid = said->busid,
                                       .rate = width * lane_rate (said->link_speed) / 80 * LS_TREE_GB });
  if (said->class_of)
    g_strlcpy (ls_tree_at (m, *thing)->class_of, said->class_of, sizeof ls_tree_at (m, *thing)->class_of);
  return true;
}

/* The PCI device becomes the GPU. */
static bool
start_gpu (LsNodeTree *m, const Said *said, uint32_t *thing)
{
  LsTreePart *gpu = ls_tree_at (m, *thing);
  if (gpu->kind == LS_TREE_GPU)
    return ls_tree_wrong (m, m->line, NULL, "<gpu>: a second one in the same <pci>");
  gpu->kind = LS_TREE_GPU;
  gpu->sm = (uint32_t) said->sm;
  if (said->gcn)
    gpu->gcn = g_intern_string (said->gcn + (g_str_has_prefix (said->gcn, "gfx") ? strlen ("gfx") : 0));
  gpu->dev = (uint32_t) said->dev;
  gpu->unread = said->unread;
  gpu->line = m->line;
  return true;
}

static bool
start_nvlink (LsNodeTree *m, const Said *said, uint32_t *thing)
{
  LsTreeNvlink link = { .gpu = *thing, .count = (uint32_t) said->count };
  link.to_switch = said->tclass && g_str_has_prefix (said->tclass, "0x0680");
  if (!link.to_switch && !read_busid (m, "nvlink", "target", said->target, &link.busid))
    return false; /* all switches are one to NCCL */
  if (!link.to_switch && link.busid == ls_tree_at (m, *thing)->busid)
    ls_tree_at (m, *thing)->unread |= TO_ITSELF;
  if (link.count > 0)
    g_array_append_val (m->nvlinks, link);
  return true;
}

/* bw in MB/s of one link. */
static bool
start_c2c (LsNodeTree *m, const Said *said, uint32_t *thing)
{
  ls_tree_at (m, *thing)->c2c += (double) said->bw * (double) said->count / 1000 * LS_TREE_GB;
  return true;
}

/* speed in Mbit/s; NCCL takes 10,000 where there is none. */
static bool
start_net (LsNodeTree *m, const Said *said, uint32_t *thing)
{
  double speed = said->speed ? (double) said->speed : 10000;
  *thing = ls_tree_add (m,
                        (LsTreePart) { .kind = LS_TREE_NET,
                                       .parent = *thing,
                                       .dev = (uint32_t) said->dev,
                                       .net = speed / 8000 * LS_TREE_GB,
                                       .unread = said->unread });
  return true;
}

/* `thing` is what the element stands in, and becomes what its children hang on. */
static const struct {
  const char *name, *inside, *or_inside, *where;
  bool (*start) (LsNodeTree *m, const Said *said, uint32_t *thing);
} elements[] = {
  { "cpu", "system", NULL, "<system>", start_cpu }, { "pci", "cpu", "pci", "<cpu> and <pci>", start_pci },
  { "gpu", "pci", NULL, "<pci>", start_gpu },       { "nvlink", "gpu", NULL, "<gpu>", start_nvlink },
  { "xgmi", "gpu", NULL, "<gpu>", start_nvlink },   { "c2c", "gpu", NULL, "<gpu>", start_c2c },
  { "nic", "pci", "cpu", "<pci> and <cpu>", NULL }, { "net", "nic", NULL, "<nic>", start_net },
  { "system", NULL, NULL, NULL, start_system },
};

static bool
read_element (Reading *r, const char *name, const char **names, const char **values, uint32_t *thing)
{
  LsNodeTree *m = r->m;
  const char *outer = r->depth > 0 ? r->stack[r->depth - 1].element : NULL;
  guint i = 0;
  Said said = { 0 };
  while (i < G_N_ELEMENTS (elements) && strcmp (name, elements[i].name) != 0)
    i++;
  if (i == G_N_ELEMENTS (elements))
    return true;
  if (g_strcmp0 (outer, elements[i].inside) != 0 && g_strcmp0 (outer, elements[i].or_inside) != 0)
    return ls_tree_wrong (m, m->line, NULL, "<%s> stands outside of %s", name, elements[i].where);
  return read_attributes (m, name, names, values, &said)
      && (!elements[i].start || elements[i].start (m, &said, thing));
}

/* --- the file ------------------------------------------------------------------------ */

static bool
start_in_place (Reading *r, const char *name, const char **names, const char **values)
{
  static const char expected[] = "a topology file of NCCL begins with <system version=\"1\">";
  LsNodeTree *m = r->m;
  uint32_t thing = r->depth > 0 ? r->stack[r->depth - 1].thing : LS_TREE_NONE;
  bool is_system = strcmp (name, "system") == 0;
  if (r->depth == 0 && !is_system)
    return ls_tree_wrong (m, m->line, r->alike ? r->alike : expected, "expected <system>; got <%s>", name);
  if (r->depth > 0 && is_system)
    return ls_tree_wrong (m, m->line, expected, "<%s> inside <system>", name);
  if (r->depth == MAX_DEPTH || m->parts->len >= MAX_THINGS)
    return ls_tree_wrong (m, m->line, NULL, "more than %d levels or %d devices", MAX_DEPTH, MAX_THINGS);
  if (!read_element (r, name, names, values, &thing))
    return false;
  r->stack[r->depth++] = (Frame) { g_intern_string (name), thing };
  return true;
}

/* What is wrong has a diagnostic, and stops the parser. */
static void
start (GMarkupParseContext *context, const gchar *name, const gchar **names, const gchar **values,
       gpointer making, GError **error)
{
  if (!start_in_place (making, name, names, values))
    g_set_error_literal (error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT, "refused");
}

static void
end (GMarkupParseContext *context, const gchar *name, gpointer making, GError **error)
{
  ((Reading *) making)->depth--;
}

/* --- what clouds ship: see the top -------------------------------------------------------- */

/* By their classes, numbered in the order of the file. */
static void
find_devices (LsNodeTree *m)
{
  const LsClusterSpec *like = m->like;
  uint32_t n_gpus = 0, n_nics = 0, n = m->parts->len;
  for (guint i = 0; i < n; i++) {
    LsTreePart *t = ls_tree_at (m, i);
    if (t->kind == LS_TREE_PCI && strcmp (t->class_of, "0x03") == 0) {
      t->kind = LS_TREE_GPU;
      t->dev = n_gpus++;
    } else if (t->kind == LS_TREE_PCI && strcmp (t->class_of, "0x02") == 0) {
      const LsTreePart port
          = { LS_TREE_NET, i, t->line, .dev = n_nics++, .net = like->nics.port.bandwidth_bytes_per_s };
      g_array_append_val (m->parts, port);
    }
  }
  m->nvlink = like->server.nvlink.bandwidth_bytes_per_s;
  for (guint i = 0; i < n && like->server.nvswitch_planes > 0; i++) {
    const LsTreeNvlink link = { .gpu = i, .count = like->server.nvlinks_per_gpu, .to_switch = true };
    if (ls_tree_at (m, i)->kind == LS_TREE_GPU)
      g_array_append_val (m->nvlinks, link);
  }
}

bool
ls_tree_read_nccl (LsNodeTree *m, const char *text, gsize n, const char *gpu)
{
  static const GMarkupParser parser = { .start_element = start, .end_element = end };
  g_autofree char *head = g_strndup (text, MIN (n, MAX_HEAD));
  g_autofree Reading *r = g_new0 (Reading, 1);
  *r = (Reading) { .m = m, .alike = ls_lookalike_hint (head) };
  m->unread_text = unread_text;
  if (!ls_tree_parse_xml (m, &parser, r, text, n))
    return false;
  if (ls_tree_has (m, LS_TREE_GPU))
    return true;
  const char *name = gpu ? gpu : m->gpu;
  if (!name)
    return ls_tree_wrong (
        m, 0,
        "what NCCL dumps on the machine itself has all of it (NCCL_TOPO_DUMP_FILE); lockstep "
        "list gpus",
        "no <gpu>, as in files that clouds ship: name it, %s:gpu=h100, or "
        "x-gpu=\"h100\" in <system>",
        m->path);
  if (!ls_tree_take_like (m, name))
    return false;
  find_devices (m);
  g_clear_pointer (&m->like, ls_tree_free_like); /* rates of PCI are those of the file */
  return true;
}
