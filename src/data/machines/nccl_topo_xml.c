#include "data/machines/nccl_topo_xml.h"

#include <math.h>
#include <string.h>

#include "data/text/text_place.h"

#define MAX_THINGS 4096
#define MAX_HEAD   4096 /* bytes that tell what another file is */
#define MAX_DEPTH  64
#define GB         1e9

/* An element that is open, and the thing that its children hang on. */
typedef struct {
  const char *element; /* interned */
  uint32_t thing;
} Frame;

typedef struct {
  LsTopoXml *xml;
  const char *path;
  LsDiagList *diags;
  const char
      *alike; /* what the text looks like, if not like a dump of NCCL; NULL: like nothing that is known */
  int line;   /* of the end of what the parser has seen */
  Frame stack[MAX_DEPTH];
  uint32_t depth;
} Reading;

/* Adds a diagnostic at this line and stops the parser. */
G_GNUC_PRINTF (4, 5)
static void
complain (Reading *r, GError **error, const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (r->diags, LS_ERROR_INPUT, r->path, r->line, 1, NULL, NULL, hint, "%s", text);
  g_set_error_literal (error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT, text);
}

/* --- attributes ------------------------------------------------------------------ */

typedef struct {
  Reading *r;
  const char *element, **names, **values;
  GError **error;
} Element;

static const char *
attribute (const Element *e, const char *name)
{
  for (int i = 0; e->names[i]; i++)
    if (strcmp (e->names[i], name) == 0)
      return e->values[i];
  return NULL;
}

static const char *
required (const Element *e, const char *name)
{
  const char *value = attribute (e, name);
  if (!value)
    complain (e->r, e->error, NULL, "<%s>: missing attribute \"%s\"", e->element, name);
  return value;
}

/* A whole number, decimal or 0x..; fallback where the attribute is absent. */
static bool
number (const Element *e, const char *name, uint64_t max, uint64_t fallback, uint64_t *ret)
{
  const char *text = attribute (e, name);
  *ret = fallback;
  if (!text)
    return true;
  bool is_hex = g_str_has_prefix (text, "0x");
  if (g_ascii_string_to_unsigned (is_hex ? text + 2 : text, is_hex ? 16 : 10, 0, max, ret, NULL))
    return true;
  complain (e->r, e->error, NULL,
            "<%s>: %s: expected a whole number of at most %" G_GUINT64_FORMAT "; got \"%.40s\"", e->element,
            name, (guint64) max, text);
  return false;
}

static bool
required_number (const Element *e, const char *name, uint64_t max, uint64_t *ret)
{
  return required (e, name) && number (e, name, max, 0, ret);
}

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

static bool
busid (const Element *e, const char *name, uint64_t *ret)
{
  const char *text = required (e, name);
  if (!text)
    return false;
  if (parse_busid (text, ret))
    return true;
  complain (e->r, e->error, NULL, "<%s>: %s: expected a PCI address like \"0000:1b:00.0\"; got \"%.40s\"",
            e->element, name, text);
  return false;
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
add (Reading *r, LsTopoThing thing)
{
  thing.line = r->line;
  g_array_append_val (r->xml->things, thing);
  return r->xml->things->len - 1;
}

static const Frame *
top (const Reading *r)
{
  return r->depth > 0 ? &r->stack[r->depth - 1] : NULL;
}

static bool
is_in (const Reading *r, const char *element)
{
  return top (r) && strcmp (top (r)->element, element) == 0;
}

static bool
must_be_in (const Element *e, bool is_ok, const char *where)
{
  if (!is_ok)
    complain (e->r, e->error, NULL, "<%s> stands outside of %s", e->element, where);
  return is_ok;
}

static bool
start_system (const Element *e, uint32_t *ret_thing)
{
  const char *version = required (e, "version");
  if (!version)
    return false;
  if (strcmp (version, "1") != 0) {
    complain (e->r, e->error, NULL,
              "<system>: expected version \"1\", as NCCL dumps it; got \"%.40s\", and RCCL's is 2", version);
    return false;
  }
  g_free (e->r->xml->gpu);
  e->r->xml->gpu = g_strdup (attribute (e, "x-gpu"));
  *ret_thing = LS_TOPO_NONE;
  return true;
}

/* What NCCL reckons with between sockets: topo.h, by arch, vendor and model as in
 * ncclTopoAddCpu. */
static bool
set_cpu (const Element *e, LsTopoThing *cpu)
{
  const char *arch = attribute (e, "arch"), *vendor = attribute (e, "vendor");
  uint64_t family, model;
  if (!number (e, "familyid", UINT32_MAX, 0, &family) || !number (e, "modelid", UINT32_MAX, 0, &model))
    return false;
  static const struct {
    uint64_t model;
    double rate;
    const char *name;
  } intel[] = { { 0xCF, 40, "Intel from Emerald Rapids on" },
                { 0x8F, 22, "Intel Sapphire Rapids" },
                { 0x55, 10, "Intel Skylake" },
                { 0, 6, "Intel Broadwell or before" } };
  size_t i = 0;
  while (intel[i].model > 0 && (family != 6 || model < intel[i].model))
    i++;
  bool is_amd = g_strcmp0 (vendor, "AuthenticAMD") == 0;
  cpu->interconnect = (g_strcmp0 (arch, "arm64") == 0       ? 6
                           : g_strcmp0 (arch, "ppc64") == 0 ? 32
                           : is_amd                         ? 16
                                                            : intel[i].rate)
      * GB;
  cpu->cpu_name = g_strcmp0 (arch, "arm64") == 0 ? "ARM"
      : g_strcmp0 (arch, "ppc64") == 0           ? "POWER9"
      : is_amd                                   ? "AMD"
                                                 : intel[i].name;
  return true;
}

static bool
start_cpu (const Element *e, uint32_t *ret_thing)
{
  LsTopoThing cpu = { .kind = LS_TOPO_CPU, .parent = LS_TOPO_NONE };
  if (!must_be_in (e, is_in (e->r, "system"), "<system>") || !set_cpu (e, &cpu))
    return false;
  *ret_thing = add (e->r, cpu);
  return true;
}

static bool
start_pci (const Element *e, uint32_t *ret_thing)
{
  uint64_t width;
  LsTopoThing pci = { .kind = LS_TOPO_PCI };
  if (!must_be_in (e, is_in (e->r, "cpu") || is_in (e->r, "pci"), "<cpu> and <pci>")
      || !busid (e, "busid", &pci.busid) || !number (e, "link_width", 64, 0, &width))
    return false;
  pci.parent = top (e->r)->thing;
  pci.rate = (width ? (double) width : 16) * lane_rate (attribute (e, "link_speed")) / 80 * GB;
  *ret_thing = add (e->r, pci);
  return true;
}

/* The PCI device becomes the GPU. */
static bool
start_gpu (const Element *e, uint32_t *ret_thing)
{
  uint64_t sm, dev;
  if (!must_be_in (e, is_in (e->r, "pci"), "<pci>") || !required_number (e, "sm", 1000, &sm)
      || !required_number (e, "dev", 65535, &dev))
    return false;
  LsTopoThing *gpu = &g_array_index (e->r->xml->things, LsTopoThing, top (e->r)->thing);
  if (gpu->kind == LS_TOPO_GPU) {
    complain (e->r, e->error, NULL, "<gpu>: a second one in the same <pci>");
    return false;
  }
  gpu->kind = LS_TOPO_GPU;
  gpu->sm = (uint32_t) sm;
  gpu->dev = (uint32_t) dev;
  gpu->line = e->r->line;
  *ret_thing = top (e->r)->thing;
  return true;
}

static bool
start_nvlink (const Element *e, uint32_t *ret_thing)
{
  uint64_t count;
  LsTopoNvlink link = { .line = e->r->line };
  const char *class = attribute (e, "tclass");
  if (!must_be_in (e, is_in (e->r, "gpu"), "<gpu>") || !required_number (e, "count", 1024, &count))
    return false;
  link.gpu = top (e->r)->thing;
  link.count = (uint32_t) count;
  link.to_switch = class && g_str_has_prefix (class, "0x0680");
  if (!link.to_switch && !busid (e, "target", &link.busid)) /* all switches are one to NCCL */
    return false;
  if (count > 0)
    g_array_append_val (e->r->xml->nvlinks, link);
  *ret_thing = link.gpu;
  return true;
}

/* bw in MB/s of one link. */
static bool
start_c2c (const Element *e, uint32_t *ret_thing)
{
  uint64_t bw, count;
  if (!must_be_in (e, is_in (e->r, "gpu"), "<gpu>") || !required_number (e, "bw", 10000000, &bw)
      || !required_number (e, "count", 1024, &count))
    return false;
  *ret_thing = top (e->r)->thing;
  g_array_index (e->r->xml->things, LsTopoThing, *ret_thing).c2c += (double) bw * (double) count / 1000 * GB;
  return true;
}

static bool
start_nic (const Element *e, uint32_t *ret_thing)
{
  if (!must_be_in (e, is_in (e->r, "pci") || is_in (e->r, "cpu"), "<pci> and <cpu>"))
    return false;
  *ret_thing = top (e->r)->thing;
  return true;
}

/* speed in Mbit/s; NCCL takes 10,000 where there is none. */
static bool
start_net (const Element *e, uint32_t *ret_thing)
{
  uint64_t speed, dev;
  if (!must_be_in (e, is_in (e->r, "nic"), "<nic>") || !number (e, "speed", 100000000, 0, &speed)
      || !number (e, "dev", 65535, 0, &dev))
    return false;
  LsTopoThing net = { .kind = LS_TOPO_NET, .parent = top (e->r)->thing, .dev = (uint32_t) dev };
  net.net = (speed ? (double) speed : 10000) / 8000 * GB;
  *ret_thing = add (e->r, net);
  return true;
}

static const struct {
  const char *name;
  bool (*start) (const Element *e, uint32_t *ret_thing);
} elements[] = {
  { "cpu", start_cpu }, { "pci", start_pci }, { "gpu", start_gpu }, { "nvlink", start_nvlink },
  { "c2c", start_c2c }, { "nic", start_nic }, { "net", start_net }, { "system", start_system },
};

static void
start (GMarkupParseContext *context, const gchar *name, const gchar **names, const gchar **values,
       gpointer reading, GError **error)
{
  Reading *r = reading;
  Element e = { .r = r, .element = name, .names = names, .values = values, .error = error };
  uint32_t thing = top (r) ? top (r)->thing : LS_TOPO_NONE;
  if ((r->depth == 0) != (strcmp (name, "system") == 0)) {
    complain (r, error,
              r->depth == 0 && r->alike ? r->alike
                                        : "a topology file of NCCL begins with <system version=\"1\">",
              r->depth == 0 ? "expected <system>; got <%s>" : "<%s> inside <system>", name);
    return;
  }
  if (r->depth == MAX_DEPTH || r->xml->things->len >= MAX_THINGS) {
    complain (r, error, NULL, "more than %d levels or %d devices", MAX_DEPTH, MAX_THINGS);
    return;
  }
  for (size_t i = 0; i < G_N_ELEMENTS (elements); i++)
    if (strcmp (name, elements[i].name) == 0 && !elements[i].start (&e, &thing))
      return;
  r->stack[r->depth++] = (Frame) { g_intern_string (name), thing };
}

static void
end (GMarkupParseContext *context, const gchar *name, gpointer reading, GError **error)
{
  ((Reading *) reading)->depth--;
}

/* GMarkup's own complaint, without the place that it puts in front. */
static void
complain_of_syntax (Reading *r, const GError *error)
{
  const char *text = error->message;
  const char *after = g_str_has_prefix (text, "Error on line ") ? strstr (text, ": ") : NULL;
  ls_diag_add (r->diags, LS_ERROR_INPUT, r->path, r->line, 1, NULL, NULL, NULL, "not XML: %s",
               after ? after + 2 : text);
}

/* Line by line, as GMarkup itself says the next line for a tag that ends one. */
static bool
feed (Reading *r, GMarkupParseContext *context, const char *text, gsize n, GError **error)
{
  const char *end = text + n;
  for (r->line = 1; text < end; r->line++) {
    const char *newline = memchr (text, '\n', (gsize) (end - text)), *next = newline ? newline + 1 : end;
    if (!g_markup_parse_context_parse (context, text, next - text, error))
      return false;
    text = next;
    if (text == end)
      break;
  }
  return g_markup_parse_context_end_parse (context, error);
}

bool
ls_topo_xml_parse (const char *text, gsize n, const char *path, LsTopoXml *ret_xml, LsDiagList *diags)
{
  static const GMarkupParser parser = { .start_element = start, .end_element = end };
  guint n_before = ls_diag_list_n (diags);
  *ret_xml = (LsTopoXml) { .things = g_array_new (FALSE, FALSE, sizeof (LsTopoThing)),
                           .nvlinks = g_array_new (FALSE, FALSE, sizeof (LsTopoNvlink)) };
  g_autofree char *head = g_strndup (text, MIN (n, MAX_HEAD));
  Reading r = { .xml = ret_xml, .path = path, .diags = diags, .alike = ls_lookalike_hint (head) };
  GMarkupParseContext *context = g_markup_parse_context_new (&parser, G_MARKUP_TREAT_CDATA_AS_TEXT, &r, NULL);
  g_autoptr (GError) error = NULL;
  bool ok = feed (&r, context, text, n, &error);
  if (!ok && ls_diag_list_n (diags) == n_before)
    complain_of_syntax (&r, error);
  g_markup_parse_context_free (context);
  if (!ok)
    ls_topo_xml_clear (ret_xml);
  return ok;
}

void
ls_topo_xml_clear (LsTopoXml *xml)
{
  g_clear_pointer (&xml->gpu, g_free);
  g_clear_pointer (&xml->things, g_array_unref);
  g_clear_pointer (&xml->nvlinks, g_array_unref);
}
