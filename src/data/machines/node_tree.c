/* data/machines/node_tree.c — a node's tree as a cluster of one node, which is an explicit list. */
#include "data/machines/node_tree.h"

#include <string.h>

#include "base/order.h"
#include "base/list.h"
#include "data/datadir.h"
#include "data/text/override.h"
#include "base/printable.h"

bool
ls_tree_wrong (const LsNodeTree *m, int line, const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (m->diags, LS_ERROR_INPUT, m->path, line, line > 0 ? 1 : 0, NULL, NULL, hint, "%s", text);
  return false;
}

LsTreePart *
ls_tree_at (const LsNodeTree *m, uint32_t i)
{
  return &g_array_index (m->parts, LsTreePart, i);
}

uint32_t
ls_tree_add (LsNodeTree *m, LsTreePart part)
{
  part.line = m->line;
  g_array_append_val (m->parts, part);
  return m->parts->len - 1;
}

void
ls_tree_guess (LsNodeTree *m, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  char *text = g_strdup_vprintf (format, args);
  va_end (args);
  ls_make_printable (text);
  if (!m->spec->guessed)
    m->spec->guessed = g_array_new (FALSE, FALSE, sizeof (char *));
  g_array_append_val (m->spec->guessed, text);
}

/* --- text ----------------------------------------------------------------------------------- */

GStrv
ls_tree_words (const char *line, gsize n)
{
  g_autoptr (GString) clean = g_string_new (NULL);
  for (const char *c = line, *end = line + n; c < end; c++) {
    bool is_escape = *c == '\033';
    while (is_escape && c + 1 < end && !g_ascii_isalpha (*c))
      c++;
    g_string_append_c (clean, is_escape || *c == '\0' || strchr ("|#`>\t\r", *c) ? ' ' : *c);
  }
  char *valid = g_utf8_make_valid (clean->str, (gssize) clean->len);
  g_auto (GStrv) all = g_strsplit (valid, " ", -1);
  g_autoptr (GStrvBuilder) words = g_strv_builder_new ();
  for (char **word = all; *word; word++)
    if (**word)
      g_strv_builder_add (words, *word);
  g_free (valid);
  return g_strv_builder_end (words);
}

/* --- XML ------------------------------------------------------------------------------------ */

/* Line by line, as GMarkup itself says the next line for a tag that ends one. */
static bool
feed (LsNodeTree *m, GMarkupParseContext *context, const char *text, gsize n, GError **error)
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
bool
ls_tree_parse_xml (LsNodeTree *m, const GMarkupParser *parser, gpointer data, const char *text, gsize n)
{
  guint n_before = ls_diag_list_n (m->diags);
  GMarkupParseContext *context
      = g_markup_parse_context_new (parser, G_MARKUP_TREAT_CDATA_AS_TEXT, data, NULL);
  g_autoptr (GError) error = NULL;
  bool ok = feed (m, context, text, n, &error);
  g_markup_parse_context_free (context);
  if (ok || ls_diag_list_n (m->diags) > n_before)
    return ok;
  const char *after
      = g_str_has_prefix (error->message, "Error on line ") ? strstr (error->message, ": ") : NULL;
  return ls_tree_wrong (m, m->line, NULL, "not XML: %s", after ? after + 2 : error->message);
}

bool
ls_tree_busid (const char *text, uint64_t *ret)
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

/* --- what a file does not say --------------------------------------------------------------------- */

/* Whether the file of an accelerator says that products of its line with one of these words are others
 * ("other_forms"). */
static bool
is_other_form (const LsDataEntry *entry, char **words)
{
  g_autoptr (LsDiagList) unheard = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_open (entry->path, unheard);
  const char *forms = doc ? cJSON_GetStringValue (ls_json_doc_at (doc, "other_forms")) : NULL;
  for (; forms && *words; words++)
    if (ls_is_one_of (*words, forms))
      return true;
  return false;
}

/* The accelerator of ours whose name's parts are all words of the product's, of several that with most parts;
 * else the only one whose first part is. A card is none of an SXM module's. */
char *
ls_tree_gpu_of_product (const char *product)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_GPUS);
  g_autofree char *lower = g_ascii_strdown (product, -1);
  g_auto (GStrv) words = g_strsplit_set (lower, " -_/[]()", -1);
  const char *best = NULL, *only = NULL;
  guint n_best = 0, n_only = 0;
  for (guint i = 0; i < entries->len; i++) {
    const char *name = ((const LsDataEntry *) entries->pdata[i])->name;
    g_auto (GStrv) parts = g_strsplit (name, "-", -1);
    guint n = 0;
    while (parts[n]) { /* "80g" of ours is "80gb" of a product's */
      g_autofree char *size = g_strconcat (parts[n], "b", NULL);
      if (!g_strv_contains ((const char *const *) words, parts[n])
          && !(g_ascii_isdigit (*size) && g_strv_contains ((const char *const *) words, size)))
        break;
      n++;
    }
    if (n > 0 && is_other_form (entries->pdata[i], words))
      continue;
    only = n > 0 ? name : only;
    n_only += n > 0;
    if (!parts[n] && n > n_best) {
      best = name;
      n_best = n;
    }
  }
  for (char **word = words; *word; word++) /* of a size that no name has */
    n_only += g_ascii_isdigit (**word) && g_str_has_suffix (*word, "gb");
  return g_strdup (best ? best : n_only == 1 ? only : NULL);
}

void
ls_tree_free_like (LsClusterSpec *like)
{
  ls_cluster_spec_clear (like);
  g_free (like);
}

bool
ls_tree_take_like (LsNodeTree *m, const char *name)
{
  LsGpu gpu = { 0 };
  if (!ls_data_file_load (&ls_gpu_file, name, &gpu, m->diags))
    return false;
  g_autofree LsClusterSpec *like = g_new0 (LsClusterSpec, 1);
  bool ok = gpu.cluster ? m->load (gpu.cluster, like, m->diags)
                        : ls_tree_wrong (m, 0, "lockstep list gpus",
                                         "%s names no cluster, as whose NVLinks and NICs could be", name);
  ls_gpu_clear (&gpu);
  if (!ok)
    return false;
  const LsServerSpec *server = &like->server;
  if (server->pcie.bandwidth_bytes_per_s == 0 || like->network.spine.bandwidth_bytes_per_s == 0) {
    ls_tree_wrong (m, 0, "lockstep list gpus", "%s has no figures of PCIe and a fabric to take over",
                   like->name);
    ls_cluster_spec_clear (like);
    return false;
  }
  m->spec->links_like = g_intern_string (like->name);
  m->like = g_steal_pointer (&like);
  return true;
}

/* --- links ----------------------------------------------------------------------- */

static LsLinkSpec
link_of (double rate, LsTime latency, const char *source)
{
  return (LsLinkSpec) {
    .bandwidth_bytes_per_s = rate, .efficiency = 1, .latency = latency, .source = g_strdup (source)
  };
}

static LsLinkSpec
copy_of (const LsLinkSpec *link)
{
  LsLinkSpec copy = *link;
  copy.source = g_strdup (link->source);
  return copy;
}

/* Latencies are those of topologies/dgx-h100.json. */
static LsLinkSpec
pci_link (const LsNodeTree *m, double rate)
{
  static const char source[] = "NCCL 2.30.7 topo.cc: link_width * v / 80 GB/s. Latency: as in dgx-h100";
  return rate > 0 ? link_of (rate, LS_US / 2, m->rates ? m->rates : source) : copy_of (&m->like->server.pcie);
}

static void
join (LsNodeTree *m, const char *from, const char *to, uint32_t count, LsLinkSpec link)
{
  LsListLink item = { .from = g_strdup (from), .to = g_strdup (to), .count = count, .link = link };
  g_array_append_val (m->spec->list.links, item);
}

/* --- vertices ---------------------------------------------------------------------- */

static char *
add_vertex (LsNodeTree *m, LsNodeKind kind, const char *format, uint32_t number)
{
  LsListVertex vertex = { .name = g_strdup_printf ("%s%u", format, number), .kind = kind };
  g_array_append_val (m->spec->list.vertices, vertex);
  return vertex.name;
}

/* GPUs, the fastest ports, and all that lies between them and the CPUs. */
static void
mark_used (LsNodeTree *m)
{
  for (guint i = 0; i < m->parts->len; i++)
    m->fastest = MAX (m->fastest, ls_tree_at (m, i)->net);
  for (guint i = 0; i < m->parts->len; i++) {
    const LsTreePart *t = ls_tree_at (m, i);
    bool is_end = t->kind == LS_TREE_GPU || (t->kind == LS_TREE_NET && t->net == m->fastest)
        || t->kind == LS_TREE_CPU;
    for (uint32_t up = i; is_end && up != LS_TREE_NONE && !m->is_used[up]; up = ls_tree_at (m, up)->parent)
      m->is_used[up] = true;
  }
}

/* [parts] that are used, newly allocated. */
static uint32_t *
count_children (const LsNodeTree *m)
{
  uint32_t *n_children = g_new0 (uint32_t, m->parts->len);
  for (guint i = 0; i < m->parts->len; i++)
    if (m->is_used[i] && ls_tree_at (m, i)->parent != LS_TREE_NONE)
      n_children[ls_tree_at (m, i)->parent]++;
  return n_children;
}

/* A PCI device that holds one port and nothing else is that port. */
static void
merge_ports (LsNodeTree *m)
{
  g_autofree uint32_t *n_children = count_children (m);
  for (guint i = 0; i < m->parts->len; i++) {
    uint32_t up = ls_tree_at (m, i)->parent;
    if (m->is_used[i] && ls_tree_at (m, i)->kind == LS_TREE_NET && ls_tree_at (m, up)->kind == LS_TREE_PCI
        && n_children[up] == 1)
      m->is_used[up] = false;
  }
}

/* Bridges that lead to a single device are none of a switch: ports of switches are bridges, too. */
static void
skip_single_bridges (LsNodeTree *m)
{
  g_autofree uint32_t *n_children = count_children (m);
  for (guint i = 0; i < m->parts->len; i++) {
    LsTreePart *t = ls_tree_at (m, i);
    const LsTreePart *up = t->parent != LS_TREE_NONE ? ls_tree_at (m, t->parent) : NULL;
    while (m->is_used[i] && t->kind != LS_TREE_NET && up && up->kind == LS_TREE_PCI
           && n_children[t->parent] == 1) {
      m->is_used[t->parent] = false;
      t->rate = t->rate > 0 && up->rate > 0 ? MIN (t->rate, up->rate) : MAX (t->rate, up->rate);
      t->parent = up->parent;
      up = ls_tree_at (m, t->parent);
    }
  }
}

/* GPUs and ports by their dev, CPUs and switches in the order of the file. Returns how
 * many there are. */
static uint32_t
add_vertices (LsNodeTree *m, LsTreeKind kind, LsNodeKind node_kind, const char *name)
{
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (int64_t)); /* dev, then place */
  for (guint i = 0; i < m->parts->len; i++) {
    const LsTreePart *t = ls_tree_at (m, i);
    int64_t at = (int64_t) (t->kind == LS_TREE_GPU || t->kind == LS_TREE_NET ? t->dev : 0) << 32 | i;
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
add_tree (LsNodeTree *m)
{
  for (guint i = 0; i < m->parts->len; i++) {
    const LsTreePart *t = ls_tree_at (m, i);
    if (!m->is_used[i] || t->kind == LS_TREE_CPU)
      continue;
    const LsTreePart *device = ls_tree_at (m, t->parent);
    if (t->kind == LS_TREE_NET)
      join (m, m->names[i], m->names[m->is_used[t->parent] ? t->parent : device->parent], 1,
            pci_link (m, device->kind == LS_TREE_PCI ? device->rate : t->net));
    else if (t->c2c == 0 || device->kind != LS_TREE_CPU)
      join (m, m->names[i], m->names[t->parent], 1, pci_link (m, t->rate));
  }
}

/* C2C that leads straight to the CPU takes the place of PCI. */
static void
add_c2c (LsNodeTree *m)
{
  for (guint i = 0; i < m->parts->len; i++) {
    uint32_t cpu = i;
    while (ls_tree_at (m, cpu)->parent != LS_TREE_NONE)
      cpu = ls_tree_at (m, cpu)->parent;
    if (ls_tree_at (m, i)->c2c > 0)
      join (m, m->names[i], m->names[cpu], 1,
            link_of (ls_tree_at (m, i)->c2c, 300 * LS_NS,
                     "NCCL 2.30.7 topo.cc: bw * count / 1000 GB/s. Latency: as in gb200-nvl72"));
  }
}

/* As NCCL reckons, or as in `like`; one with a single CPU has what leads to it. */
static LsLinkSpec
interconnect (const LsNodeTree *m, const LsTreePart *a, const LsTreePart *b)
{
  double rate = MIN (a->interconnect, b->interconnect);
  if (rate == 0)
    return copy_of (m->like->server.cpu_interconnect.bandwidth_bytes_per_s > 0
                        ? &m->like->server.cpu_interconnect
                        : &m->like->server.pcie);
  g_autofree char *source
      = g_strdup_printf ("NCCL 2.30.7 topo.h: between CPUs, %s. Latency: as in dgx-h100", a->cpu_name);
  return link_of (rate, LS_US / 2, source);
}

static void
add_interconnects (LsNodeTree *m)
{
  for (guint a = 0; a < m->parts->len; a++)
    for (guint b = a + 1; b < m->parts->len; b++)
      if (ls_tree_at (m, a)->kind == LS_TREE_CPU && ls_tree_at (m, b)->kind == LS_TREE_CPU)
        join (m, m->names[a], m->names[b], 1, interconnect (m, ls_tree_at (m, a), ls_tree_at (m, b)));
}

/* --- NVLink ---------------------------------------------------------------------------- */

static LsLinkSpec
nvlink (const LsNodeTree *m)
{
  if (m->like) {
    LsLinkSpec link = copy_of (&m->like->server.nvlink);
    link.bandwidth_bytes_per_s = m->nvlink > 0 ? m->nvlink : link.bandwidth_bytes_per_s;
    return link;
  }
  return link_of (m->nvlink > 0 ? m->nvlink : m->tables.nvlink, 300 * LS_NS,
                  "NCCL 2.30.7 topo.h: rate of an NVLink by compute capability. Latency: as in dgx-h100");
}

/* Links that GPU `from` tells of towards `to`, NONE being the switches. */
static uint32_t
n_nvlinks (const LsNodeTree *m, uint32_t from, uint32_t to)
{
  uint32_t n = 0;
  for (guint i = 0; i < m->nvlinks->len; i++) {
    const LsTreeNvlink *link = &g_array_index (m->nvlinks, LsTreeNvlink, i);
    if (link->gpu == from
        && (to == LS_TREE_NONE ? link->to_switch
                               : !link->to_switch && link->busid == ls_tree_at (m, to)->busid))
      n += link->count;
  }
  return n;
}

static bool
add_nvlinks (LsNodeTree *m)
{
  char *nvswitch = NULL;
  for (guint a = 0; a < m->parts->len; a++) {
    if (ls_tree_at (m, a)->kind != LS_TREE_GPU)
      continue;
    uint32_t n = n_nvlinks (m, a, LS_TREE_NONE);
    if (n > 0 && !nvswitch)
      nvswitch = add_vertex (m, LS_NODE_NVSWITCH, "nvswitch", 0);
    if (n > 0)
      join (m, m->names[a], nvswitch, n, nvlink (m));
    for (guint b = a + 1; b < m->parts->len; b++) {
      if (ls_tree_at (m, b)->kind != LS_TREE_GPU)
        continue;
      uint32_t there = n_nvlinks (m, a, b), back = n_nvlinks (m, b, a);
      if (there != back)
        return ls_tree_wrong (m, ls_tree_at (m, b)->line, NULL, "%s has %u NVLinks to %s, which has %u back",
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
  const LsTreePart *x = *(const LsTreePart *const *) a, *y = *(const LsTreePart *const *) b;
  LS_SMALLER_FIRST (x->busid, y->busid);
  return LS_ORDER (x->line, y->line);
}

bool
ls_tree_has (const LsNodeTree *m, LsTreeKind kind)
{
  for (guint i = 0; i < m->parts->len; i++)
    if (ls_tree_at (m, i)->kind == kind)
      return true;
  return false;
}

static bool
check_gpus (LsNodeTree *m)
{
  g_autoptr (GPtrArray) gpus = g_ptr_array_new ();
  for (guint i = 0; i < m->parts->len; i++)
    if (ls_tree_at (m, i)->kind == LS_TREE_GPU)
      g_ptr_array_add (gpus, (gpointer) ls_tree_at (m, i));
  if (gpus->len == 0)
    return ls_tree_wrong (m, 0, NULL, "no <gpu>, and no <pci> of a GPU's class, 0x03");
  g_ptr_array_sort (gpus, by_busid);
  const LsTreePart *first = gpus->pdata[0];
  for (guint i = 0; i < gpus->len; i++) {
    const LsTreePart *gpu = gpus->pdata[i];
    if (i > 0 && gpu->busid == ((const LsTreePart *) gpus->pdata[i - 1])->busid)
      return ls_tree_wrong (m, gpu->line, NULL, "a second GPU with the bus id of that in line %d",
                            ((const LsTreePart *) gpus->pdata[i - 1])->line);
    if (gpu->sm != first->sm || gpu->gcn != first->gcn)
      return ls_tree_wrong (m, gpu->line, NULL,
                            "sm %u, but %u in line %d: a cluster has one kind of accelerator", gpu->sm,
                            first->sm, first->line);
  }
  if (m->spec->links_like)
    return true;
  g_autofree char *why = NULL,
                  *is
      = first->gcn ? g_strconcat ("gcn ", first->gcn, NULL) : g_strdup_printf ("sm %u", first->sm);
  bool ok = ls_nccl_tables_find (first->sm / 10, first->gcn, &m->tables, &why, m->diags);
  return ok || (why && ls_tree_wrong (m, first->line, NULL, "%s: %s", is, why));
}

static bool
load_gpu (LsNodeTree *m, const char *named)
{
  const char *name = named ? named : m->gpu ? m->gpu : m->tables.gpu;
  g_autofree char *message = NULL, *bare = ls_override_bare (name),
                  *path = ls_data_find (LS_DATA_GPUS, bare, &message);
  if (!path)
    return ls_tree_wrong (m, 0, NULL, "%s", message);
  bool ok = ls_gpu_load (name, &m->spec->gpu, m->diags);
  m->spec->gpu.name = ok ? ls_override_name (m->spec->gpu.name, name) : NULL;
  return ok;
}

static void
add_network (LsNodeTree *m, uint32_t n_nics)
{
  LsClusterSpec *s = m->spec;
  s->nics.n = s->network.rails = n_nics;
  s->network.nodes_per_leaf = 32;
  s->network.oversubscription = 1;
  s->nics.port = m->like
      ? copy_of (&m->like->nics.port)
      : link_of (m->fastest, 300 * LS_NS, "NCCL 2.30.7 topo.cc: speed / 8000 GB/s. Latency: as in dgx-h100");
  s->network.spine = m->like ? copy_of (&m->like->network.spine)
                             : link_of (m->fastest, 280 * LS_NS, "As NIC to leaf. Latency: as in dgx-h100");
}

static bool
make (LsNodeTree *m, const char *gpu)
{
  LsClusterSpec *s = m->spec;
  uint32_t unread = 0;
  if (!check_gpus (m) || !load_gpu (m, gpu))
    return false;
  g_autofree char *base = g_path_get_basename (m->path);
  s->name = g_strndup (base, strlen (base) - (g_str_has_suffix (base, ".xml") ? strlen (".xml") : 0));
  s->source = g_strdup_printf ("%s, %s; fabric assumed: non-blocking leaf-spine", m->path, m->what);
  s->gpu_is_assumed = !gpu && !m->gpu;
  s->n_nodes = 1;
  s->interior = LS_INTERIOR_LIST;
  s->list.vertices = g_array_new (FALSE, TRUE, sizeof (LsListVertex));
  s->list.links = g_array_new (FALSE, TRUE, sizeof (LsListLink));
  mark_used (m);
  for (guint i = 0; i < m->parts->len; i++)
    unread |= m->is_used[i] ? ls_tree_at (m, i)->unread : 0;
  s->unread = unread ? m->unread_text (unread) : NULL;
  if (m->like)
    skip_single_bridges (m);
  merge_ports (m);
  s->gpus_per_node = add_vertices (m, LS_TREE_GPU, LS_NODE_GPU, "gpu");
  add_vertices (m, LS_TREE_CPU, LS_NODE_CPU, "cpu");
  add_vertices (m, LS_TREE_PCI, LS_NODE_PCIE_SWITCH, "pcie");
  add_network (m, add_vertices (m, LS_TREE_NET, LS_NODE_NIC, "nic"));
  if (!add_nvlinks (m))
    return false;
  add_tree (m);
  add_c2c (m);
  add_interconnects (m);
  return true;
}

bool
ls_tree_read (LsTreeReader read, LsTreeLoad load, const char *what, const char *text, gsize n,
              const char *path, const char *gpu, LsClusterSpec *ret_spec, LsDiagList *diags)
{
  LsClusterSpec spec = { 0 };
  g_autoptr (GArray) parts = g_array_new (FALSE, FALSE, sizeof (LsTreePart)),
                     nvlinks = g_array_new (FALSE, FALSE, sizeof (LsTreeNvlink));
  LsNodeTree m = { .path = path,
                   .what = what,
                   .diags = diags,
                   .load = load,
                   .parts = parts,
                   .nvlinks = nvlinks,
                   .spec = &spec };
  bool ok = read (&m, text, n, gpu);
  g_autofree bool *is_used = m.is_used = g_new0 (bool, parts->len + 1);
  g_autofree char **names = m.names = g_new0 (char *, parts->len + 1);
  ok = ok && make (&m, gpu);
  if (ok)
    *ret_spec = spec;
  else
    ls_cluster_spec_clear (&spec);
  g_free (m.gpu);
  g_clear_pointer (&m.like, ls_tree_free_like);
  ls_nccl_tables_clear (&m.tables);
  return ok;
}
