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

#include "base/order.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "data/text/override.h"
#include "data/text/text_place.h"
#include "data/text/read_file.h"

#define MAX_THINGS 4096
#define MAX_HEAD   4096 /* bytes that tell what another file is */
#define MAX_DEPTH  64
#define GB         1e9
#define NONE       UINT32_MAX

typedef enum { CPU, PCI, GPU, NET } ThingKind;

/* In the order of the file, so that a parent comes before its children. */
typedef struct {
  ThingKind kind;
  uint32_t parent; /* thing; NONE of a CPU                             */
  int line;
  double rate;          /* bytes/s to the parent, of PCI and GPU                  */
  uint64_t busid;       /* of PCI and GPU                                         */
  uint32_t dev, sm;     /* of GPU and NET; of GPU                                 */
  const char *gcn;      /* of a GPU of AMD's, "942", interned; NULL: sm says what it is */
  double c2c;           /* bytes/s to the CPU; 0: none                            */
  double net;           /* bytes/s of the port                                    */
  double interconnect;  /* bytes/s from a CPU to another                         */
  uint32_t unread;      /* as an element says it, of GPU and NET                 */
  char class_of[5];     /* "0x03" of PCI                                         */
  const char *cpu_name; /* static, for people                                   */
} Thing;

/* NVLinks of a GPU as its side tells them. */
typedef struct {
  uint32_t gpu; /* thing */
  uint32_t count;
  bool to_switch;
  uint64_t busid; /* of the other GPU */
} Nvlink;

/* An element that is open, and the thing that its children hang on. */
typedef struct {
  const char *element; /* interned */
  uint32_t thing;
} Frame;

/* The file on its way to a cluster. */
typedef struct {
  const char *path;
  LsDiagList *diags;
  char *gpu;         /* x-gpu; NULL: not said */
  GArray *things;    /* Thing                 */
  GArray *nvlinks;   /* Nvlink                */
  const char *alike; /* what the text looks like, if not like a dump of NCCL; NULL: like nothing known */
  int line;          /* of the end of what the parser has seen */
  Frame stack[MAX_DEPTH];
  uint32_t depth;
  LsClusterSpec *spec;
  double fastest;      /* bytes/s of the ports that are kept */
  double nvlink;       /* bytes/s of each, of another cluster; 0: as NCCL reckons for the generation */
  bool *is_used;       /* by thing: becomes a vertex */
  char **names;        /* by thing: of its vertex, borrowed from the spec */
  LsNcclTables tables; /* of the generation of its GPUs */
} Making;

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

static Thing *
thing_at (const Making *m, uint32_t i)
{
  return &g_array_index (m->things, Thing, i);
}

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

/* "0000:1b:00.0" or "00000000:1B:00.0". */
static bool
parse_busid (const char *text, uint64_t *ret)
{
  g_auto (GStrv) parts = g_strsplit_set (text, ":.", -1);
  static const int bits[] = { 32, 8, 8, 4 };
  uint64_t id = 0;
  if (g_strv_length (parts) != G_N_ELEMENTS (bits))
    return false;
  for (size_t i = 0; i < G_N_ELEMENTS (bits); i++) {
    guint64 value = 0;
    if (!g_ascii_string_to_unsigned (parts[i], 16, 0, (UINT64_C (1) << bits[i]) - 1, &value, NULL))
      return false;
    id = id << bits[i] | value;
  }
  *ret = id;
  return true;
}

/* text NULL: it has no such attribute. */
static bool
read_busid (const Making *m, const char *element, const char *name, const char *text, uint64_t *ret)
{
  if (!text)
    return complain (m, m->line, NULL, "<%s>: missing attribute \"%s\"", element, name);
  return parse_busid (text, ret)
      || complain (m, m->line, NULL, "<%s>: %s: expected a PCI address like \"0000:1b:00.0\"; got \"%.40s\"",
                   element, name, text);
}

/* A whole number, decimal or 0x... */
static bool
read_number (const Making *m, const char *element, const char *name, const char *text, uint64_t max,
             uint64_t *ret)
{
  bool is_hex = g_str_has_prefix (text, "0x");
  return g_ascii_string_to_unsigned (is_hex ? text + 2 : text, is_hex ? 16 : 10, 0, max, ret, NULL)
      || complain (m, m->line, NULL,
                   "<%s>: %s: expected a whole number of at most %" G_GUINT64_FORMAT "; got \"%.40s\"",
                   element, name, (guint64) max, text);
}

static bool
read_attributes (const Making *m, const char *element, const char **names, const char **values, Said *said)
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
      ok = complain (m, m->line, NULL, "<%s>: missing attribute \"%s\"", element, attributes[i].name);
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

static uint32_t
add (Making *m, Thing thing)
{
  thing.line = m->line;
  g_array_append_val (m->things, thing);
  return m->things->len - 1;
}

static bool
start_system (Making *m, const Said *said, uint32_t *thing)
{
  if (strcmp (said->version, "1") != 0 && strcmp (said->version, "2") != 0)
    return complain (m, m->line, NULL, "<system>: expected version \"1\" or, of RCCL, \"2\"; got \"%.40s\"",
                     said->version);
  m->gpu = g_strdup (said->x_gpu);
  return true;
}

/* What NCCL reckons with between sockets: topo.h, by arch, vendor and model as in
 * ncclTopoAddCpu. */
static bool
start_cpu (Making *m, const Said *said, uint32_t *thing)
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
  *thing = add (
      m,
      (Thing) { .kind = CPU, .parent = NONE, .interconnect = cpus[i].rate * GB, .cpu_name = cpus[i].name });
  return true;
}

static bool
start_pci (Making *m, const Said *said, uint32_t *thing)
{
  double width = said->width ? (double) said->width : 16;
  *thing = add (m,
                (Thing) { .kind = PCI,
                          .parent = *thing,
                          .busid = said->busid,
                          .rate = width * lane_rate (said->link_speed) / 80 * GB });
  if (said->class_of)
    g_strlcpy (thing_at (m, *thing)->class_of, said->class_of, sizeof thing_at (m, *thing)->class_of);
  return true;
}

/* The PCI device becomes the GPU. */
static bool
start_gpu (Making *m, const Said *said, uint32_t *thing)
{
  Thing *gpu = thing_at (m, *thing);
  if (gpu->kind == GPU)
    return complain (m, m->line, NULL, "<gpu>: a second one in the same <pci>");
  gpu->kind = GPU;
  gpu->sm = (uint32_t) said->sm;
  if (said->gcn)
    gpu->gcn = g_intern_string (said->gcn + (g_str_has_prefix (said->gcn, "gfx") ? strlen ("gfx") : 0));
  gpu->dev = (uint32_t) said->dev;
  gpu->unread = said->unread;
  gpu->line = m->line;
  return true;
}

static bool
start_nvlink (Making *m, const Said *said, uint32_t *thing)
{
  Nvlink link = { .gpu = *thing, .count = (uint32_t) said->count };
  link.to_switch = said->tclass && g_str_has_prefix (said->tclass, "0x0680");
  if (!link.to_switch && !read_busid (m, "nvlink", "target", said->target, &link.busid))
    return false; /* all switches are one to NCCL */
  if (link.count > 0)
    g_array_append_val (m->nvlinks, link);
  return true;
}

/* bw in MB/s of one link. */
static bool
start_c2c (Making *m, const Said *said, uint32_t *thing)
{
  thing_at (m, *thing)->c2c += (double) said->bw * (double) said->count / 1000 * GB;
  return true;
}

/* speed in Mbit/s; NCCL takes 10,000 where there is none. */
static bool
start_net (Making *m, const Said *said, uint32_t *thing)
{
  double speed = said->speed ? (double) said->speed : 10000;
  *thing = add (m,
                (Thing) { .kind = NET,
                          .parent = *thing,
                          .dev = (uint32_t) said->dev,
                          .net = speed / 8000 * GB,
                          .unread = said->unread });
  return true;
}

/* `thing` is what the element stands in, and becomes what its children hang on. */
static const struct {
  const char *name, *inside, *or_inside, *where;
  bool (*start) (Making *m, const Said *said, uint32_t *thing);
} elements[] = {
  { "cpu", "system", NULL, "<system>", start_cpu }, { "pci", "cpu", "pci", "<cpu> and <pci>", start_pci },
  { "gpu", "pci", NULL, "<pci>", start_gpu },       { "nvlink", "gpu", NULL, "<gpu>", start_nvlink },
  { "xgmi", "gpu", NULL, "<gpu>", start_nvlink },   { "c2c", "gpu", NULL, "<gpu>", start_c2c },
  { "nic", "pci", "cpu", "<pci> and <cpu>", NULL }, { "net", "nic", NULL, "<nic>", start_net },
  { "system", NULL, NULL, NULL, start_system },
};

static bool
read_element (Making *m, const char *name, const char **names, const char **values, uint32_t *thing)
{
  const char *outer = m->depth > 0 ? m->stack[m->depth - 1].element : NULL;
  guint i = 0;
  Said said = { 0 };
  while (i < G_N_ELEMENTS (elements) && strcmp (name, elements[i].name) != 0)
    i++;
  if (i == G_N_ELEMENTS (elements))
    return true;
  if (g_strcmp0 (outer, elements[i].inside) != 0 && g_strcmp0 (outer, elements[i].or_inside) != 0)
    return complain (m, m->line, NULL, "<%s> stands outside of %s", name, elements[i].where);
  return read_attributes (m, name, names, values, &said)
      && (!elements[i].start || elements[i].start (m, &said, thing));
}

/* --- the file ------------------------------------------------------------------------ */

static bool
start_in_place (Making *m, const char *name, const char **names, const char **values)
{
  static const char expected[] = "a topology file of NCCL begins with <system version=\"1\">";
  uint32_t thing = m->depth > 0 ? m->stack[m->depth - 1].thing : NONE;
  bool is_system = strcmp (name, "system") == 0;
  if (m->depth == 0 && !is_system)
    return complain (m, m->line, m->alike ? m->alike : expected, "expected <system>; got <%s>", name);
  if (m->depth > 0 && is_system)
    return complain (m, m->line, expected, "<%s> inside <system>", name);
  if (m->depth == MAX_DEPTH || m->things->len >= MAX_THINGS)
    return complain (m, m->line, NULL, "more than %d levels or %d devices", MAX_DEPTH, MAX_THINGS);
  if (!read_element (m, name, names, values, &thing))
    return false;
  m->stack[m->depth++] = (Frame) { g_intern_string (name), thing };
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
  ((Making *) making)->depth--;
}

/* Line by line, as GMarkup itself says the next line for a tag that ends one. */
static bool
feed (Making *m, GMarkupParseContext *context, const char *text, gsize n, GError **error)
{
  const char *end = text + n;
  for (m->line = 1; text < end; m->line++) {
    const char *newline = memchr (text, '\n', (gsize) (end - text)), *next = newline ? newline + 1 : end;
    if (!g_markup_parse_context_parse (context, text, next - text, error))
      return false;
    text = next;
    if (text == end)
      break;
  }
  return g_markup_parse_context_end_parse (context, error);
}

/* What GMarkup itself complains of is shown without the place that it puts in front. */
static bool
read_things (Making *m, const char *text, gsize n)
{
  static const GMarkupParser parser = { .start_element = start, .end_element = end };
  guint n_before = ls_diag_list_n (m->diags);
  g_autofree char *head = g_strndup (text, MIN (n, MAX_HEAD));
  m->alike = ls_lookalike_hint (head);
  GMarkupParseContext *context = g_markup_parse_context_new (&parser, G_MARKUP_TREAT_CDATA_AS_TEXT, m, NULL);
  g_autoptr (GError) error = NULL;
  bool ok = feed (m, context, text, n, &error);
  g_markup_parse_context_free (context);
  if (ok || ls_diag_list_n (m->diags) > n_before)
    return ok;
  const char *after
      = g_str_has_prefix (error->message, "Error on line ") ? strstr (error->message, ": ") : NULL;
  return complain (m, m->line, NULL, "not XML: %s", after ? after + 2 : error->message);
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
  for (guint i = 0; i < m->things->len; i++)
    m->fastest = MAX (m->fastest, thing_at (m, i)->net);
  for (guint i = 0; i < m->things->len; i++) {
    const Thing *t = thing_at (m, i);
    bool is_end = t->kind == GPU || (t->kind == NET && t->net == m->fastest) || t->kind == CPU;
    for (uint32_t up = i; is_end && up != NONE && !m->is_used[up]; up = thing_at (m, up)->parent)
      m->is_used[up] = true;
  }
}

/* Of what is used: "latency of <net>", interned; NULL: nothing. */
static const char *
unread_text (const Making *m)
{
  uint32_t bits = 0;
  g_autoptr (GString) out = g_string_new (NULL);
  for (guint i = 0; i < m->things->len; i++)
    bits |= m->is_used[i] ? thing_at (m, i)->unread : 0;
  for (guint i = 0; i < G_N_ELEMENTS (attributes); i++)
    if (bits >> i & 1)
      g_string_append_printf (out, "%s%s of <%s>", out->len > 0 ? ", " : "", attributes[i].name,
                              attributes[i].element);
  return out->len > 0 ? g_intern_string (out->str) : NULL;
}

/* A PCI device that holds one port and nothing else is that port. */
static void
merge_ports (Making *m)
{
  g_autofree uint32_t *n_children = g_new0 (uint32_t, m->things->len);
  for (guint i = 0; i < m->things->len; i++)
    if (m->is_used[i] && thing_at (m, i)->parent != NONE)
      n_children[thing_at (m, i)->parent]++;
  for (guint i = 0; i < m->things->len; i++) {
    uint32_t up = thing_at (m, i)->parent;
    if (m->is_used[i] && thing_at (m, i)->kind == NET && thing_at (m, up)->kind == PCI && n_children[up] == 1)
      m->is_used[up] = false;
  }
}

/* GPUs and ports by their dev, CPUs and switches in the order of the file. Returns how
 * many there are. */
static uint32_t
add_vertices (Making *m, ThingKind kind, LsNodeKind node_kind, const char *name)
{
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (int64_t)); /* dev, then place */
  for (guint i = 0; i < m->things->len; i++) {
    const Thing *t = thing_at (m, i);
    int64_t at = (int64_t) (t->kind == GPU || t->kind == NET ? t->dev : 0) << 32 | i;
    if (t->kind == kind && m->is_used[i])
      g_array_append_val (order, at);
  }
  g_array_sort (order, ls_compare_int64);
  for (guint k = 0; k < order->len; k++)
    m->names[(uint32_t) g_array_index (order, int64_t, k)] = add_vertex (m, node_kind, name, k);
  return order->len;
}

/* --- the tree ------------------------------------------------------------------------ */

/* A port is plugged into its PCI device, or where that is plugged in. */
static void
add_tree (Making *m)
{
  for (guint i = 0; i < m->things->len; i++) {
    const Thing *t = thing_at (m, i);
    if (!m->is_used[i] || t->kind == CPU)
      continue;
    const Thing *device = thing_at (m, t->parent);
    if (t->kind == NET)
      join (m, m->names[i], m->names[m->is_used[t->parent] ? t->parent : device->parent], 1,
            pci_link (device->kind == PCI ? device->rate : t->net));
    else if (t->c2c == 0 || device->kind != CPU)
      join (m, m->names[i], m->names[t->parent], 1, pci_link (t->rate));
  }
}

/* Where C2C goes beside PCI straight to the CPU, it takes its place. */
static void
add_c2c (Making *m)
{
  for (guint i = 0; i < m->things->len; i++) {
    uint32_t cpu = i;
    while (thing_at (m, cpu)->parent != NONE)
      cpu = thing_at (m, cpu)->parent;
    if (thing_at (m, i)->c2c > 0)
      join (m, m->names[i], m->names[cpu], 1,
            link_of (thing_at (m, i)->c2c, 300 * LS_NS,
                     "NCCL 2.30.7 topo.cc: bw * count / 1000 GB/s. Latency: as in gb200-nvl72"));
  }
}

static void
add_interconnects (Making *m)
{
  for (guint a = 0; a < m->things->len; a++)
    for (guint b = a + 1; b < m->things->len; b++) {
      const Thing *x = thing_at (m, a), *y = thing_at (m, b);
      if (x->kind != CPU || y->kind != CPU)
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
  return link_of (m->nvlink > 0 ? m->nvlink : m->tables.nvlink, 300 * LS_NS,
                  "NCCL 2.30.7 topo.h: rate of an NVLink by compute capability. Latency: as in dgx-h100");
}

/* Links that GPU `from` tells of towards `to`, NONE being the switches. */
static uint32_t
n_nvlinks (const Making *m, uint32_t from, uint32_t to)
{
  uint32_t n = 0;
  for (guint i = 0; i < m->nvlinks->len; i++) {
    const Nvlink *link = &g_array_index (m->nvlinks, Nvlink, i);
    if (link->gpu == from
        && (to == NONE ? link->to_switch : !link->to_switch && link->busid == thing_at (m, to)->busid))
      n += link->count;
  }
  return n;
}

static bool
add_nvlinks (Making *m)
{
  char *nvswitch = NULL;
  for (guint a = 0; a < m->things->len; a++) {
    if (thing_at (m, a)->kind != GPU)
      continue;
    uint32_t n = n_nvlinks (m, a, NONE);
    if (n > 0 && !nvswitch)
      nvswitch = add_vertex (m, LS_NODE_NVSWITCH, "nvswitch", 0);
    if (n > 0)
      join (m, m->names[a], nvswitch, n, nvlink (m));
    for (guint b = a + 1; b < m->things->len; b++) {
      if (thing_at (m, b)->kind != GPU)
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
  const Thing *x = *(const Thing *const *) a, *y = *(const Thing *const *) b;
  LS_SMALLER_FIRST (x->busid, y->busid);
  return LS_ORDER (x->line, y->line);
}

/* --- what clouds ship: see the top -------------------------------------------------------- */

static bool
has_kind (const Making *m, ThingKind kind)
{
  for (guint i = 0; i < m->things->len; i++)
    if (thing_at (m, i)->kind == kind)
      return true;
  return false;
}

/* By their classes, numbered in the order of the file. */
static void
find_devices (Making *m, const LsClusterSpec *like)
{
  uint32_t n_gpus = 0, n_nics = 0, n = m->things->len;
  for (guint i = 0; i < n; i++) {
    Thing *t = thing_at (m, i);
    if (t->kind == PCI && strcmp (t->class_of, "0x03") == 0) {
      t->kind = GPU;
      t->dev = n_gpus++;
    } else if (t->kind == PCI && strcmp (t->class_of, "0x02") == 0) {
      const Thing port = { NET, i, t->line, .dev = n_nics++, .net = like->nics.port.bandwidth_bytes_per_s };
      g_array_append_val (m->things, port);
    }
  }
  m->nvlink = like->server.nvlink.bandwidth_bytes_per_s;
  for (guint i = 0; i < n && like->server.nvswitch_planes > 0; i++) {
    const Nvlink link = { .gpu = i, .count = like->server.nvlinks_per_gpu, .to_switch = true };
    if (thing_at (m, i)->kind == GPU)
      g_array_append_val (m->nvlinks, link);
  }
}

/* NVLinks and NICs are as in the cluster of the accelerator that is named. */
static bool
take_devices (Making *m, const char *named)
{
  static const char hint[]
      = "what NCCL dumps on the machine itself has all of it (NCCL_TOPO_DUMP_FILE); lockstep list gpus";
  const char *name = named ? named : m->gpu;
  LsGpu gpu = { 0 };
  LsClusterSpec like = { 0 };
  if (!name)
    return complain (m, 0, hint,
                     "no <gpu>, as in files that clouds ship: name it, --cluster %s:gpu=h100, or "
                     "x-gpu=\"h100\" in <system>",
                     m->path);
  if (!ls_data_file_load (&ls_gpu_file, name, &gpu, m->diags))
    return false;
  bool ok = gpu.cluster
      ? ls_cluster_load (gpu.cluster, &like, m->diags)
      : complain (m, 0, hint, "%s names no cluster, as whose NVLinks and NICs could be", name);
  if (ok) {
    find_devices (m, &like);
    m->spec->links_like = g_intern_string (like.name);
    ls_cluster_spec_clear (&like);
  }
  ls_gpu_clear (&gpu);
  return ok;
}

static bool
check_gpus (Making *m)
{
  g_autoptr (GPtrArray) gpus = g_ptr_array_new ();
  for (guint i = 0; i < m->things->len; i++)
    if (thing_at (m, i)->kind == GPU)
      g_ptr_array_add (gpus, (gpointer) thing_at (m, i));
  if (gpus->len == 0)
    return complain (m, 0, NULL, "no <gpu>, and no <pci> of a GPU's class, 0x03");
  g_ptr_array_sort (gpus, by_busid);
  const Thing *first = gpus->pdata[0];
  for (guint i = 0; i < gpus->len; i++) {
    const Thing *gpu = gpus->pdata[i];
    if (i > 0 && gpu->busid == ((const Thing *) gpus->pdata[i - 1])->busid)
      return complain (m, gpu->line, NULL, "a second GPU with the bus id of that in line %d",
                       ((const Thing *) gpus->pdata[i - 1])->line);
    if (gpu->sm != first->sm || gpu->gcn != first->gcn)
      return complain (m, gpu->line, NULL, "sm %u, but %u in line %d: a cluster has one kind of accelerator",
                       gpu->sm, first->sm, first->line);
  }
  if (m->spec->links_like)
    return true;
  g_autofree char *why = NULL,
                  *is
      = first->gcn ? g_strconcat ("gcn ", first->gcn, NULL) : g_strdup_printf ("sm %u", first->sm);
  bool ok = ls_nccl_tables_find (first->sm / 10, first->gcn, &m->tables, &why, m->diags);
  return ok || (why && complain (m, first->line, NULL, "%s: %s", is, why));
}

static bool
load_gpu (Making *m, const char *named)
{
  const char *name = named ? named : m->gpu ? m->gpu : m->tables.gpu;
  g_autofree char *message = NULL, *bare = ls_override_bare (name),
                  *path = ls_data_find (LS_DATA_GPUS, bare, &message);
  if (!path)
    return complain (m, 0, NULL, "%s", message);
  bool ok = ls_gpu_load (name, &m->spec->gpu, m->diags);
  m->spec->gpu.name = ok ? ls_override_name (m->spec->gpu.name, name) : NULL;
  return ok;
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
  if ((!has_kind (m, GPU) && !take_devices (m, gpu)) || !check_gpus (m) || !load_gpu (m, gpu))
    return false;
  g_autofree char *base = g_path_get_basename (m->path);
  s->name = g_strndup (base, strlen (base) - (g_str_has_suffix (base, ".xml") ? strlen (".xml") : 0));
  s->source
      = g_strdup_printf ("%s, a topology file of NCCL; fabric assumed: non-blocking leaf-spine", m->path);
  s->gpu_is_assumed = !gpu && !m->gpu;
  s->fabric_is_assumed = true;
  s->n_nodes = 1;
  s->interior = LS_INTERIOR_LIST;
  s->list.vertices = g_array_new (FALSE, TRUE, sizeof (LsListVertex));
  s->list.links = g_array_new (FALSE, TRUE, sizeof (LsListLink));
  mark_used (m);
  s->unread = unread_text (m);
  merge_ports (m);
  s->gpus_per_node = add_vertices (m, GPU, LS_NODE_GPU, "gpu");
  add_vertices (m, CPU, LS_NODE_CPU, "cpu");
  add_vertices (m, PCI, LS_NODE_PCIE_SWITCH, "pcie");
  add_network (m, add_vertices (m, NET, LS_NODE_NIC, "nic"));
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
  g_autofree char *own = text ? NULL : ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  if (!text && !(text = own))
    return false;
  LsClusterSpec spec = { 0 };
  g_autoptr (GArray) things = g_array_new (FALSE, FALSE, sizeof (Thing)),
                     nvlinks = g_array_new (FALSE, FALSE, sizeof (Nvlink));
  Making m = { .path = path, .diags = diags, .things = things, .nvlinks = nvlinks, .spec = &spec };
  bool ok = read_things (&m, text, n);
  g_autofree bool *is_used = m.is_used = g_new0 (bool, 2 * things->len + 1); /* each device may get a port */
  g_autofree char **names = m.names = g_new0 (char *, 2 * things->len + 1);
  ok = ok && make (&m, gpu);
  if (ok)
    *ret_spec = spec;
  else
    ls_cluster_spec_clear (&spec);
  g_free (m.gpu);
  ls_nccl_tables_clear (&m.tables);
  return ok;
}
