/* data/machines/read_infragraph.c — files of InfraGraph (Keysight/infragraph@2701fa5), YAML or JSON:
 * devices of components, joined by edges, and instances of these devices, joined by further edges.
 *
 *     devices:
 *     - name: server
 *       components: [{name: xpu, count: 4, choice: xpu}, {name: nvsw, count: 1, choice: switch}, ...]
 *       edges: [{ep1: {component: "xpu[0:4]"}, ep2: {component: nvsw}, scheme: many2many, link: nvlink}, ...]
 *     instances: [{name: host, device: server, count: 8}, {name: leaf, device: switch, count: 1}]
 *     edges: [{ep1: {instance: "host[0]", component: nic}, ep2: {instance: leaf, component: port}, ...}]
 *
 * A device with accelerators (xpu) is the node, instances of others are switches of the fabric. Names say
 * nothing here: switches that join half of the accelerators or more, and neither a CPU nor a NIC, are
 * NVSwitches, as are edges between two accelerators NVLinks; all else is PCIe. A device within a device
 * counts as one NIC, whatever it consists of. Files before version 1 have `type` for `choice`, and the text
 * "xpu.0.pcie.nic.0" for an edge. */
#include <string.h>

#include "base/list.h"
#include "data/datadir.h"
#include "data/machines/fabric_draft.h"
#include "data/machines/node_tree.h"
#include "data/text/yaml.h"

#define MAX_PARTS     4096
#define MAX_INSTANCES 1048575 /* so that all parts of all of them have numbers */
#define MAX_EDGES     262144

typedef enum { OTHER, CPU, XPU, NIC } Kind;

typedef struct {
  const char *name, *description; /* of the file */
  const cJSON *nested;            /* device of that name that it is; NULL: none */
  Kind kind;
  uint32_t first, n; /* its parts in the device */
} Component;

typedef struct {
  uint32_t a, b; /* parts; of edges between instances instance * MAX_PARTS + part */
  double rate;   /* bytes/s; 0: not said */
} Edge;

typedef struct {
  const cJSON *root, *json; /* the file, the device */
  char *why;                /* what is wrong, owned */
  GArray *components;       /* Component */
  uint32_t n;               /* parts */
  GArray *of;               /* [n] index of the component of each (uint32_t) */
  GArray *edges;            /* Edge, each once */
  GHashTable *seen;         /* ends of these, as one int64_t */
} Device;

/* --- the file ---------------------------------------------------------------------------------------- */

static const cJSON *
member (const cJSON *of, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (of, key);
}

static const char *
text_of (const cJSON *of, const char *key)
{
  const char *text = cJSON_GetStringValue (member (of, key));
  return text ? text : "";
}

static cJSON *
parse (const char *text, gsize n, const char *path, LsDiagList *diags, const cJSON **ret_root)
{
  cJSON *doc = ls_yaml_parse (text, n, path, NULL, diags);
  const cJSON *inner = member (doc, "infrastructure");
  *ret_root = inner ? inner : doc;
  return doc;
}

/* "count", 1 where there is none, at most so many. */
static uint32_t
count_of (const cJSON *of, uint32_t most)
{
  const cJSON *count = member (of, "count");
  return cJSON_IsNumber (count) ? (uint32_t) CLAMP (count->valuedouble, 0, most) : 1;
}

/* Of that name, NULL any that has accelerators; a file may be a device alone. */
static const cJSON *
device_of (const cJSON *root, const char *name)
{
  const cJSON *list = member (root, "devices") ? member (root, "devices") : member (root, "device"), *device;
  if (!list && (!name || strcmp (name, text_of (root, "name")) == 0))
    return member (root, "components") ? root : NULL;
  cJSON_ArrayForEach (device, list) {
    const cJSON *component;
    if (name && strcmp (name, text_of (device, "name")) == 0)
      return device;
    cJSON_ArrayForEach (component, member (device, "components")) {
      if (!name
          && (strcmp (text_of (component, "choice"), "xpu") == 0
              || strcmp (text_of (component, "type"), "xpu") == 0))
        return device;
    }
  }
  return NULL;
}

static double
rate_of (const cJSON *of, const char *link)
{
  static const struct {
    const char *unit;
    double rate;
  } units[] = { { "gigabits_per_second", 1e9 / 8 }, { "gigabytes_per_second", 1e9 } };
  const cJSON *item;
  cJSON_ArrayForEach (item, member (of, "links")) {
    const cJSON *physical = member (item, "physical"),
                *bandwidth = member (physical ? physical : item, "bandwidth");
    for (guint i = 0; strcmp (link, text_of (item, "name")) == 0 && i < G_N_ELEMENTS (units); i++)
      if (cJSON_IsNumber (member (bandwidth, units[i].unit)))
        return MAX (0, member (bandwidth, units[i].unit)->valuedouble * units[i].rate);
  }
  return 0;
}

/* --- components and their slices -------------------------------------------------------------------- */

static Component *
component_of (const Device *d, const char *name, gsize n)
{
  for (guint i = 0; i < d->components->len; i++) {
    Component *c = &g_array_index (d->components, Component, i);
    if (strlen (c->name) == n && strncmp (c->name, name, n) == 0)
      return c;
  }
  return NULL;
}

G_GNUC_PRINTF (2, 3)
static bool
wrong (Device *d, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  if (!d->why)
    d->why = g_strdup_vprintf (format, args);
  va_end (args);
  return false;
}

/* "[2:4]" after a name, of so many; without one all. */
static bool
slice_of (Device *d, const char *text, uint32_t count, uint32_t *ret_from, uint32_t *ret_to)
{
  char *end;
  *ret_from = 0;
  *ret_to = count;
  if (*text != '[')
    return true;
  guint64 from = g_ascii_strtoull (text + 1, &end, 10), to = from + 1;
  if (*end == ':')
    to = end[1] == ']' ? count : g_ascii_strtoull (end + 1, &end, 10);
  if (from > to || to > count)
    return wrong (d, "%s: there are not so many", text);
  *ret_from = (uint32_t) from;
  *ret_to = (uint32_t) to;
  return strchr (end, ']') || wrong (d, "%s: expected [FROM:TO]", text);
}

/* Parts that a nested device has of "port[0:2]", of which all are one here. */
static uint32_t
n_inside (Device *d, const cJSON *nested, const char *text)
{
  const cJSON *component;
  uint32_t from, to;
  gsize n = strcspn (text, "[.");
  cJSON_ArrayForEach (component, member (nested, "components")) {
    const char *name = text_of (component, "name");
    if (strlen (name) == n && strncmp (name, text, n) == 0)
      return slice_of (d, text + n, count_of (component, MAX_PARTS), &from, &to) ? to - from : 0;
  }
  return 1;
}

/* Appends the parts (uint32_t) that "xpu[0:2]", "cx5[0].port" are; base is added to each. */
static bool
expand (Device *d, const char *text, uint32_t base, GArray *parts)
{
  gsize n = strcspn (text, "[.");
  const Component *c = component_of (d, text, n);
  uint32_t from, to;
  if (!c)
    return wrong (d, "no component %s", text);
  if (!slice_of (d, text + n, c->n, &from, &to))
    return false;
  const char *dot = strchr (text, '.');
  uint32_t times = dot && c->nested ? n_inside (d, c->nested, dot + 1) : 1;
  if ((uint64_t) (to - from) * times + parts->len > MAX_EDGES)
    return wrong (d, "%s: more than 262,144 ends of edges", text);
  for (uint32_t i = from; i < to; i++)
    for (uint32_t k = 0; k < times; k++) {
      uint32_t part = base + c->first + i;
      g_array_append_val (parts, part);
    }
  return true;
}

static bool
pair (Device *d, const char *scheme, const GArray *a, const GArray *b, double rate)
{
  bool is_many = strcmp (scheme, "many2many") == 0;
  if (!is_many && strcmp (scheme, "one2one") != 0)
    return wrong (d, "scheme %s is not covered", scheme);
  if (is_many && (uint64_t) a->len * b->len > MAX_EDGES)
    return wrong (d, "more than 262,144 edges");
  for (guint i = 0; i < a->len; i++)
    for (guint k = is_many ? 0 : i; k < (is_many ? b->len : MIN (b->len, i + 1)); k++) {
      const Edge edge = { g_array_index (a, uint32_t, i), g_array_index (b, uint32_t, k), rate };
      int64_t ends = (int64_t) MIN (edge.a, edge.b) << 32 | MAX (edge.a, edge.b);
      if (edge.a != edge.b && g_hash_table_add (d->seen, g_memdup2 (&ends, sizeof ends)))
        g_array_append_val (d->edges, edge);
    }
  return d->edges->len <= MAX_EDGES || wrong (d, "more than 262,144 edges");
}

static bool
add_component (Device *d, const cJSON *json)
{
  const char *choice = *text_of (json, "choice") ? text_of (json, "choice") : text_of (json, "type");
  const cJSON *count = member (json, "count");
  Component c = { .name = text_of (json, "name"),
                  .description = text_of (json, "description"),
                  .first = d->n,
                  .n = count ? count_of (json, MAX_PARTS) : 0 };
  c.nested = strcmp (choice, "device") == 0 ? device_of (d->root, c.name) : NULL;
  c.kind = c.nested || strcmp (choice, "nic") == 0 ? NIC
      : strcmp (choice, "xpu") == 0                ? XPU
      : strcmp (choice, "cpu") == 0                ? CPU
                                                   : OTHER;
  const cJSON *inner;
  cJSON_ArrayForEach (inner, member (c.nested, "components")) {
    if (strcmp (text_of (inner, "choice"), "xpu") == 0)
      return wrong (d, "%s is a device with accelerators within a device, which is not covered", c.name);
  }
  if (!count) { /* of old files: as many as edges name */
    const cJSON *text;
    cJSON_ArrayForEach (text, member (d->json, "connections")) {
      g_auto (GStrv) words = g_strsplit (cJSON_IsString (text) ? text->valuestring : "", ".", -1);
      for (guint i = 0; g_strv_length (words) == 5 && i < 5; i += 3)
        if (strcmp (words[i], c.name) == 0)
          c.n = MAX (c.n, (uint32_t) MIN (g_ascii_strtoull (words[i + 1], NULL, 10), MAX_PARTS) + 1);
    }
  }
  for (uint32_t k = 0, number = d->components->len; k < c.n; k++)
    g_array_append_val (d->of, number);
  d->n += c.n;
  g_array_append_val (d->components, c);
  return d->n <= MAX_PARTS || wrong (d, "%s: more than 4,096 parts", text_of (d->json, "name"));
}

static void
clear_device (Device *d)
{
  g_clear_pointer (&d->components, g_array_unref);
  g_clear_pointer (&d->of, g_array_unref);
  g_clear_pointer (&d->edges, g_array_unref);
  g_clear_pointer (&d->seen, g_hash_table_unref);
  g_clear_pointer (&d->why, g_free);
}

/* "cx5[0].port[1]" of an end, newly allocated: the device within the device is a member of its own, or before
 * a point. Of an old edge "a.0.link.b.1" the words of that end. */
static char *
end_text (const cJSON *edge, char *const *words, int end)
{
  const cJSON *ep = member (edge, end ? "ep2" : "ep1");
  const char *device = text_of (ep, "device"), *component = text_of (ep, "component");
  if (words)
    return g_strdup_printf ("%s[%s]", words[3 * end], words[3 * end + 1]);
  return *device ? g_strconcat (device, ".", component, NULL) : g_strdup (component);
}

static bool
read_edge (Device *d, const cJSON *json)
{
  g_autoptr (GArray) a = g_array_new (FALSE, FALSE, sizeof (uint32_t)),
                     b = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  const char *old = cJSON_GetStringValue (json);
  g_auto (GStrv) words = old ? g_strsplit (old, ".", -1) : NULL;
  if (old && g_strv_length (words) != 5)
    return wrong (d, "%s: expected PART.NUMBER.LINK.PART.NUMBER", old);
  g_autofree char *from = end_text (json, words, 0), *to = end_text (json, words, 1);
  return expand (d, from, 0, a) && expand (d, to, 0, b)
      && pair (d, old ? "one2one" : text_of (json, "scheme"), a, b,
               rate_of (d->json, old ? words[2] : text_of (json, "link")));
}

/* Its components, and its edges if they are wanted. clear_device() it, also on failure, of which `why`
 * says why. */
static bool
read_device (const cJSON *root, const cJSON *json, bool with_edges, Device *ret)
{
  *ret = (Device) { .root = root,
                    .json = json,
                    .seen = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL) };
  ret->components = g_array_new (FALSE, FALSE, sizeof (Component));
  ret->of = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  ret->edges = g_array_new (FALSE, FALSE, sizeof (Edge));
  const cJSON *item;
  cJSON_ArrayForEach (item, member (json, "components")) {
    if (!add_component (ret, item))
      return false;
  }
  const cJSON *edges = with_edges ? member (json, member (json, "edges") ? "edges" : "connections") : NULL;
  cJSON_ArrayForEach (item, edges) {
    if (!read_edge (ret, item))
      return false;
  }
  return true;
}

static const Component *
component_at (const Device *d, uint32_t part)
{
  return &g_array_index (d->components, Component, g_array_index (d->of, uint32_t, part));
}

/* --- the node ------------------------------------------------------------------------------------------ */

typedef struct {
  LsNodeTree *m;
  Device d;
  bool *is_nvswitch;   /* [parts] */
  uint32_t *tree;      /* [parts] in the tree; LS_TREE_NONE: none yet */
  GPtrArray *ports_of; /* names of components that the fabric's edges name; none: all NICs */
} Node;

static Kind
kind_at (const Node *x, uint32_t part)
{
  return component_at (&x->d, part)->kind;
}

static void
find_nvswitches (Node *x)
{
  g_autofree uint32_t *n_xpus = g_new0 (uint32_t, x->d.n);
  g_autofree bool *is_pci = g_new0 (bool, x->d.n);
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->d.n; i++)
    n += kind_at (x, i) == XPU;
  for (guint i = 0; i < x->d.edges->len; i++) {
    const Edge *e = &g_array_index (x->d.edges, Edge, i);
    Kind a = kind_at (x, e->a), b = kind_at (x, e->b);
    n_xpus[e->a] += b == XPU;
    n_xpus[e->b] += a == XPU;
    is_pci[e->a] = is_pci[e->a] || b == CPU || b == NIC;
    is_pci[e->b] = is_pci[e->b] || a == CPU || a == NIC;
  }
  for (uint32_t i = 0; i < x->d.n; i++)
    x->is_nvswitch[i] = kind_at (x, i) == OTHER && !is_pci[i] && n_xpus[i] > 1 && 2 * n_xpus[i] >= n;
}

static bool
is_pci_edge (const Node *x, const Edge *e)
{
  return !x->is_nvswitch[e->a] && !x->is_nvswitch[e->b]
      && (kind_at (x, e->a) != XPU || kind_at (x, e->b) != XPU)
      && (kind_at (x, e->a) != CPU || kind_at (x, e->b) != CPU);
}

static bool
is_port (const Node *x, uint32_t part)
{
  return kind_at (x, part) == NIC
      && (x->ports_of->len == 0
          || g_ptr_array_find_with_equal_func (x->ports_of, component_at (&x->d, part)->name, g_str_equal,
                                               NULL));
}

static void
place (Node *x, uint32_t part, uint32_t parent, double rate)
{
  LsNodeTree *m = x->m;
  Kind kind = kind_at (x, part);
  const LsTreePart own = { .kind = kind == CPU ? LS_TREE_CPU
                               : kind == XPU   ? LS_TREE_GPU
                                               : LS_TREE_PCI,
                           .parent = parent,
                           .rate = rate,
                           .busid = part + 1,
                           .dev = part };
  x->tree[part] = ls_tree_add (m, own);
  if (is_port (x, part))
    ls_tree_add (m,
                 (LsTreePart) { .kind = LS_TREE_NET,
                                .parent = x->tree[part],
                                .dev = part,
                                .net = m->like->nics.port.bandwidth_bytes_per_s });
}

/* All that hangs on what has a place, the nearest first; accelerators and NICs lead nowhere. */
static void
grow (Node *x, uint32_t root)
{
  g_autoptr (GArray) queue = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_array_append_val (queue, root);
  for (guint head = 0; head < queue->len; head++) {
    uint32_t at = g_array_index (queue, uint32_t, head);
    for (guint i = 0; i < x->d.edges->len; i++) {
      const Edge *e = &g_array_index (x->d.edges, Edge, i);
      uint32_t other = e->a == at ? e->b : e->a;
      if ((e->a != at && e->b != at) || !is_pci_edge (x, e) || x->tree[other] != LS_TREE_NONE
          || kind_at (x, other) == CPU)
        continue;
      place (x, other, x->tree[at], e->rate);
      if (kind_at (x, other) == OTHER)
        g_array_append_val (queue, other);
    }
  }
}

/* What no edge leads to from a CPU: what edges join to it is at one place of the first CPU. */
static void
place_others (Node *x, uint32_t cpu)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->d.n; i++) {
    if (x->tree[i] != LS_TREE_NONE || (kind_at (x, i) != XPU && !is_port (x, i)))
      continue;
    uint32_t at = ls_tree_add (x->m, (LsTreePart) { .kind = LS_TREE_PCI, .parent = cpu });
    place (x, i, at, 0);
    n++;
    for (guint k = 0; k < x->d.edges->len; k++) {
      const Edge *e = &g_array_index (x->d.edges, Edge, k);
      uint32_t other = e->a == i ? e->b : e->a;
      if ((e->a == i || e->b == i) && is_pci_edge (x, e) && x->tree[other] == LS_TREE_NONE
          && (kind_at (x, other) == XPU || is_port (x, other))) {
        place (x, other, at, e->rate);
        n++;
      }
    }
  }
  if (n > 0)
    ls_tree_guess (x->m, "%u accelerators and NICs, to which no edge leads from a CPU: at the first one", n);
}

static void
grow_all (Node *x)
{
  uint32_t first = LS_TREE_NONE;
  for (uint32_t i = 0; i < x->d.n; i++)
    if (kind_at (x, i) == CPU) {
      place (x, i, LS_TREE_NONE, 0);
      first = first == LS_TREE_NONE ? x->tree[i] : first;
    }
  for (uint32_t i = 0; i < x->d.n; i++)
    if (kind_at (x, i) == CPU)
      grow (x, i);
  if (first == LS_TREE_NONE)
    first = ls_tree_add (x->m, (LsTreePart) { .kind = LS_TREE_CPU, .parent = LS_TREE_NONE });
  place_others (x, first);
}

static void
add_nvlinks (Node *x)
{
  uint32_t own = ls_cluster_nvlinks_per_gpu (x->m->like), n_edges = 0, n_direct = 0;
  double most = 0;
  for (uint32_t i = 0; i < x->d.n; i++) {
    uint32_t n_switches = 0;
    double rate = 0;
    for (guint k = 0; kind_at (x, i) == XPU && k < x->d.edges->len; k++) {
      const Edge *e = &g_array_index (x->d.edges, Edge, k);
      uint32_t other = e->a == i ? e->b : e->a;
      const LsTreeNvlink link = { .gpu = x->tree[i], .count = 1, .busid = other + 1 };
      if (e->a != i && e->b != i)
        continue;
      n_switches += x->is_nvswitch[other];
      rate += x->is_nvswitch[other] ? e->rate : 0;
      if (kind_at (x, other) == XPU)
        g_array_append_val (x->m->nvlinks, link);
      n_direct += kind_at (x, other) == XPU;
    }
    const LsTreeNvlink link = { .gpu = x->tree[i], .count = own > 0 ? own : n_switches, .to_switch = true };
    n_edges = MAX (n_edges, n_switches);
    most = MAX (most, rate / MAX (1, link.count));
    if (n_switches > 0)
      g_array_append_val (x->m->nvlinks, link);
  }
  x->m->nvlink = most;
  if (n_direct > 0)
    ls_tree_guess (x->m, "one NVLink for each edge between two accelerators");
  if (n_edges > 0 && own > 0 && n_edges != own)
    ls_tree_guess (x->m, "NVLinks of an accelerator to the switches: %u, as in %s; edges: %u", own,
                   x->m->like->name, n_edges);
}

/* The accelerator by its description, unless it is named. */
static bool
take_gpu (Node *x, const char *named)
{
  LsNodeTree *m = x->m;
  for (guint i = 0; i < x->d.components->len && !named && !m->gpu; i++) {
    const Component *c = &g_array_index (x->d.components, Component, i);
    m->gpu = c->kind == XPU ? ls_tree_gpu_of_product (c->description) : NULL;
    if (m->gpu)
      ls_tree_guess (m, "accelerators %s: by the description \"%.60s\"", m->gpu, c->description);
  }
  if (named)
    m->gpu = g_strdup (named);
  if (!m->gpu)
    return ls_tree_wrong (m, 0, "lockstep list gpus",
                          "it does not say which accelerators these are: name them, %s:gpu=h100", m->path);
  return ls_tree_take_like (m, m->gpu);
}

static bool
has_fabric (const cJSON *root)
{
  return cJSON_GetArraySize (member (root, "edges")) > 0
      && cJSON_GetArraySize (member (root, "instances")) > 0;
}

static void
find_ports (Node *x)
{
  const cJSON *edges = x->d.json == x->d.root ? NULL : member (x->d.root, "edges"), *edge, *instance;
  cJSON_ArrayForEach (edge, edges) {
    for (int end = 0; end < 2; end++) {
      const cJSON *ep = member (edge, end ? "ep2" : "ep1");
      const char *of = text_of (ep, "instance"), *component = text_of (ep, "component");
      cJSON_ArrayForEach (instance, member (x->d.root, "instances")) {
        gsize n = strcspn (of, "[");
        if (strlen (text_of (instance, "name")) == n && strncmp (text_of (instance, "name"), of, n) == 0
            && strcmp (text_of (instance, "device"), text_of (x->d.json, "name")) == 0)
          g_ptr_array_add (x->ports_of, g_strndup (component, strcspn (component, "[.")));
      }
    }
  }
}

bool
ls_tree_read_infragraph (LsNodeTree *m, const char *text, gsize n, const char *gpu)
{
  const cJSON *root;
  cJSON *doc = parse (text, n, m->path, m->diags, &root);
  if (!doc)
    return false;
  g_autoptr (GPtrArray) ports_of = g_ptr_array_new_with_free_func (g_free);
  Node x = { .m = m, .ports_of = ports_of };
  m->rates = "bandwidth of a link of InfraGraph. Latency: as in dgx-h100";
  const cJSON *device = device_of (root, NULL);
  bool ok = device ? read_device (root, device, true, &x.d)
          || ls_tree_wrong (m, 0, NULL, "%s: %s", text_of (device, "name"), x.d.why)
                   : ls_tree_wrong (m, 0, "with the fabric of this file: --from dgx-h100 --from FILE",
                                    "no device with accelerators (a component that is an xpu)");
  g_autofree bool *is_nvswitch = x.is_nvswitch = g_new0 (bool, x.d.n + 1);
  g_autofree uint32_t *tree = x.tree = g_new (uint32_t, x.d.n + 1);
  memset (tree, 0xff, (x.d.n + 1) * sizeof *tree);
  ok = ok && take_gpu (&x, gpu);
  if (ok) {
    if (member (root, "instances") && !has_fabric (root))
      ls_tree_guess (m, "without what joins instances: of \"connections\" those within a device are read");
    find_ports (&x);
    find_nvswitches (&x);
    grow_all (&x);
    add_nvlinks (&x);
  }
  clear_device (&x.d);
  cJSON_Delete (doc);
  return ok;
}

/* --- the fabric ------------------------------------------------------------------------------------- */

typedef struct {
  const char *name;
  uint32_t count;
  bool is_host;
  Device d;
} Instance;

static void
clear_instance (gpointer instance)
{
  clear_device (&((Instance *) instance)->d);
}

static bool
read_instance (LsFabricDraft *draft, const cJSON *root, const cJSON *json, GArray *instances)
{
  const char *of = text_of (json, "device");
  const cJSON *device = device_of (root, of);
  Instance i = { .name = text_of (json, "name"), .count = count_of (json, MAX_INSTANCES) };
  if (!device)
    return ls_draft_wrong (draft, 0, "instance %s: no device %s in the file", i.name, of);
  bool ok = read_device (root, device, false, &i.d);
  for (guint k = 0; k < i.d.components->len; k++)
    i.is_host = i.is_host || g_array_index (i.d.components, Component, k).kind == XPU;
  if (!ok)
    ls_draft_wrong (draft, 0, "%s: %s", of, i.d.why);
  g_array_append_val (instances, i);
  return ok;
}

/* One end of an edge: its instance, and its parts of one instance after the other. */
static Instance *
end_of (LsFabricDraft *draft, GArray *instances, const cJSON *ep, GArray *parts)
{
  const char *text = text_of (ep, "instance");
  gsize n = strcspn (text, "[");
  for (guint i = 0; i < instances->len; i++) {
    Instance *of = &g_array_index (instances, Instance, i);
    uint32_t from = 0, to = 0;
    if (strlen (of->name) != n || strncmp (of->name, text, n) != 0)
      continue;
    bool ok = slice_of (&of->d, text + n, of->count, &from, &to);
    for (uint32_t k = from; ok && k < to; k++)
      ok = expand (&of->d, text_of (ep, "component"), k * MAX_PARTS, parts);
    if (!ok)
      ls_draft_wrong (draft, 0, "an edge of %s: %s", of->name, of->d.why);
    return ok ? of : NULL;
  }
  ls_draft_wrong (draft, 0, "an edge of %s, which is no instance", text);
  return NULL;
}

static uint32_t
place_of (LsFabricDraft *draft, const Instance *of, uint32_t end)
{
  g_autofree char *key = g_strdup_printf ("%s.%u", of->name, end / MAX_PARTS);
  return of->is_host ? ls_draft_host (draft, key) : ls_draft_switch (draft, key, NULL);
}

static bool
add_edge (LsFabricDraft *draft, const Instance *a, const Instance *b, const Edge *e)
{
  if (a->is_host && b->is_host)
    return ls_draft_wrong (draft, 0, "%s and %s: nodes without a switch between them are not covered",
                           a->name, b->name);
  uint32_t from = place_of (draft, a, e->a), to = place_of (draft, b, e->b);
  if (!a->is_host && !b->is_host) {
    ls_draft_link (draft, (LsDraftLink) { .from = from, .to = to, .rate = e->rate });
    return true;
  }
  const Instance *host = a->is_host ? a : b;
  uint32_t part = (a->is_host ? e->a : e->b) % MAX_PARTS;
  const Component *c = component_at (&host->d, part);
  if (c->kind != NIC)
    return ls_draft_wrong (draft, 0, "%s.%s at a switch outside the node: only NICs are covered", host->name,
                           c->name);
  g_autofree char *nic = g_strdup_printf ("%s%u", c->name, part - c->first);
  ls_draft_port (draft, a->is_host ? from : to, a->is_host ? to : from, e->rate, nic, 0);
  return true;
}

static bool
read_fabric_edge (LsFabricDraft *draft, const cJSON *root, GArray *instances, const cJSON *json)
{
  g_autoptr (GArray) a = g_array_new (FALSE, FALSE, sizeof (uint32_t)),
                     b = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  const Instance *from = end_of (draft, instances, member (json, "ep1"), a),
                 *to = from ? end_of (draft, instances, member (json, "ep2"), b) : NULL;
  Device pairs = { .edges = g_array_new (FALSE, FALSE, sizeof (Edge)),
                   .seen = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL) };
  bool ok = from && to;
  if (ok && !pair (&pairs, text_of (json, "scheme"), a, b, rate_of (root, text_of (json, "link"))))
    ok = ls_draft_wrong (draft, 0, "%s", pairs.why);
  for (guint i = 0; ok && i < pairs.edges->len; i++)
    ok = add_edge (draft, from, to, &g_array_index (pairs.edges, Edge, i));
  clear_device (&pairs);
  return ok;
}

bool
ls_draft_read_infragraph (LsFabricDraft *d, const char *text, gsize n)
{
  const cJSON *root, *item;
  cJSON *doc = parse (text, n, d->path, d->diags, &root);
  g_autoptr (GArray) instances = ls_list_new (sizeof (Instance), clear_instance);
  bool ok = doc != NULL;
  cJSON_ArrayForEach (item, member (root, "instances")) {
    ok = ok && read_instance (d, root, item, instances);
  }
  cJSON_ArrayForEach (item, member (root, "edges")) {
    ok = ok && read_fabric_edge (d, root, instances, item);
  }
  cJSON_Delete (doc);
  return ok;
}

bool
ls_draft_infragraph_has_fabric (const char *text, gsize n)
{
  g_autoptr (LsDiagList) unheard = ls_diag_list_new ();
  const cJSON *root;
  cJSON *doc = parse (text, n, "", unheard, &root);
  bool has = has_fabric (root);
  cJSON_Delete (doc);
  return has;
}
