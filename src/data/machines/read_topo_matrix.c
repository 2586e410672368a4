/* data/machines/read_topo_matrix.c — what `nvidia-smi topo -m` prints, as a node.
 *
 *             GPU0  GPU1  NIC0  CPU Affinity  NUMA Affinity
 *     GPU0     X    NV12  PXB   0-15          0
 *     GPU1    NV12   X    SYS   16-31         1
 *     NIC0    PXB   SYS    X
 *     ...
 *     NIC Legend:
 *       NIC0: mlx5_0
 *
 * as people post it: among other text, with escape sequences, after "#" or between "|". Words are those of
 * its own legend: PIX at most one PCIe bridge, PXB several, PHB a host bridge, NODE within a NUMA node,
 * SYS (SOC in old releases) between NUMA nodes, NV# so many NVLinks.
 *
 * It shows who is near to whom, and no rates. What PIX joins is below one PCIe switch here, what PXB joins
 * below one above these, what PHB, NODE and an equal affinity join below one CPU. NICs that are nearest to
 * GPUs are of the network that computes. NVLinks go through switches where GPUs would need more than the
 * accelerator has. */
#include "data/machines/node_tree.h"

#include <string.h>

#include "base/list.h"
#include "data/datadir.h"

#define MAX_DEVICES 256

/* Nearness; the order counts. NVLinks hide it. */
typedef enum { SELF, PIX, PXB, PHB, NODE, SYS, HIDDEN } Near;

typedef struct {
  uint32_t nvlinks;
  Near near;
} Relation;

typedef struct {
  char *name;       /* in the header: GPU0, NIC0, mlx5_0 */
  char *cpu, *numa; /* affinities as they are written; NULL: none */
  char *port;       /* what the legend calls it; NULL: nothing */
  Relation *to;     /* [devices]; NULL: no line yet */
  int line;
} Device;

typedef struct {
  LsNodeTree *m;
  GArray *devices; /* Device: GPUs, then NICs */
  uint32_t n_gpus;
  uint32_t n_listed; /* accelerators by nvidia-smi -L */
  char *unknown;     /* a product there that is none of ours, owned; NULL: none */
  bool has_numa;
} Matrix;

static void
clear_device (gpointer device)
{
  Device *d = device;
  g_free (d->name);
  g_free (d->cpu);
  g_free (d->numa);
  g_free (d->port);
  g_free (d->to);
}

static Device *
device_at (const Matrix *x, uint32_t i)
{
  return &g_array_index (x->devices, Device, i);
}

/* --- lines ---------------------------------------------------------------------------------- */

static bool
is_gpu (const char *word)
{
  return g_str_has_prefix (word, "GPU") && g_ascii_isdigit (word[3]);
}

/* Where its columns are. */
static bool
is_header (GStrv words)
{
  return words[0] && is_gpu (words[0])
      && (!words[1] || is_gpu (words[1]) || strchr (words[1], '_') || g_str_has_prefix (words[1], "NIC")
          || g_str_equal (words[1], "CPU"));
}

static uint32_t
number_of (const Matrix *x, const char *name)
{
  for (guint i = 0; i < x->devices->len; i++)
    if (g_str_equal (device_at (x, i)->name, name))
      return i;
  return LS_TREE_NONE;
}

static bool
read_relation (const Matrix *x, const char *word, bool is_self, Relation *ret)
{
  static const struct {
    const char *word;
    Near near;
  } rows[] = { { "X", SELF },    { "PIX", PIX }, { "PXB", PXB }, { "PHB", PHB },
               { "NODE", NODE }, { "SYS", SYS }, { "SOC", SYS } };
  guint64 links = 0;
  guint i = 0;
  while (i < G_N_ELEMENTS (rows) && !g_str_equal (word, rows[i].word))
    i++;
  bool is_nvlink = g_str_has_prefix (word, "NV")
      && g_ascii_string_to_unsigned (word + strlen ("NV"), 10, 1, 1024, &links, NULL);
  *ret = (Relation) { (uint32_t) links, i < G_N_ELEMENTS (rows) ? rows[i].near : HIDDEN };
  if ((is_nvlink || i < G_N_ELEMENTS (rows)) && is_self == (ret->near == SELF))
    return true;
  return ls_tree_wrong (x->m, x->m->line, NULL, "expected %s; got \"%.20s\"",
                        is_self ? "X in its own column" : "PIX, PXB, PHB, NODE, SYS or NV and a number",
                        word);
}

/* After the relations a GPU has the CPUs near it and, if the header has a column for it, their NUMA node. */
static bool
read_row (Matrix *x, uint32_t from, GStrv words)
{
  uint32_t n = x->devices->len, n_words = g_strv_length (words);
  Device *d = device_at (x, from);
  if (n_words <= n || d->to)
    return ls_tree_wrong (x->m, x->m->line, NULL, "%s: %s", d->name,
                          d->to ? "a second line of it" : "fewer words than the header has devices");
  d->to = g_new0 (Relation, n);
  d->line = x->m->line;
  for (uint32_t to = 0; to < n; to++)
    if (!read_relation (x, words[1 + to], to == from, &d->to[to]))
      return false;
  const char *const none = "", *cpu = n_words > n + 1 ? words[n + 1] : none,
                    *numa = x->has_numa && n_words > n + 2 ? words[n + 2] : none;
  d->cpu = g_ascii_isdigit (*cpu) ? g_strdup (cpu) : NULL;
  d->numa = g_ascii_isdigit (*numa) ? g_strdup (numa) : NULL;
  return true;
}

/* Names, up to the columns of affinities. */
static bool
read_header (Matrix *x, GStrv words)
{
  for (; *words && !g_str_equal (*words, "CPU") && !g_str_equal (*words, "NUMA"); words++) {
    const Device device = { .name = g_strdup (*words) };
    bool is_wrong = x->devices->len == MAX_DEVICES || number_of (x, *words) != LS_TREE_NONE
        || (is_gpu (*words) && x->n_gpus < x->devices->len);
    g_array_append_val (x->devices, device);
    x->n_gpus += is_gpu (*words);
    if (is_wrong)
      return ls_tree_wrong (x->m, x->m->line, NULL,
                            "expected GPUs, then NICs, each once, %d at most; got \"%.20s\"", MAX_DEVICES,
                            *words);
  }
  x->has_numa = g_strv_contains ((const char *const *) words, "NUMA");
  return true;
}

/* "NIC0: mlx5_0" */
static void
read_legend (Matrix *x, GStrv words)
{
  char *colon = words[0] && words[1] ? strchr (words[0], ':') : NULL;
  if (!colon)
    return;
  *colon = '\0';
  uint32_t nic = number_of (x, words[0]);
  if (nic != LS_TREE_NONE && !device_at (x, nic)->port)
    device_at (x, nic)->port = g_strdup (words[1]);
}

/* "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-..)" of nvidia-smi -L, and below it "MIG 1g.10gb Device 0: ..". */
static bool
read_listed (Matrix *x, GStrv words)
{
  bool is_gpu = g_str_equal (words[0], "GPU") && words[1] && g_str_has_suffix (words[1], ":"),
       is_mig = g_str_equal (words[0], "MIG") && words[1] && words[2] && g_str_equal (words[2], "Device");
  g_autofree char *line = is_gpu ? g_strjoinv (" ", words) : NULL;
  char *uuid = line ? strstr (line, "(UUID") : NULL;
  if (uuid) {
    *uuid = '\0';
    x->n_listed++;
    x->m->gpu = x->m->gpu ? x->m->gpu : ls_tree_gpu_of_product (line);
    const char *name = strstr (line, ": ");
    if (!x->m->gpu && !x->unknown)
      x->unknown = g_strdup (name ? name + strlen (": ") : line);
  }
  return !is_mig
      || ls_tree_wrong (x->m, x->m->line, NULL,
                        "MIG device %.20s, a part of an accelerator: those of a cluster are whole", words[1]);
}

/* A second header is of another node, or the same again. */
static bool
read_line (Matrix *x, GStrv words, bool *ret_is_end)
{
  uint32_t row = words[0] ? number_of (x, words[0]) : LS_TREE_NONE;
  *ret_is_end = is_header (words) && x->devices->len > 0;
  if (*ret_is_end)
    return true;
  if (is_header (words))
    return read_header (x, words);
  if (row != LS_TREE_NONE)
    return read_row (x, row, words);
  read_legend (x, words);
  return !words[0] || read_listed (x, words);
}

static bool
read_lines (Matrix *x, const char *text, gsize n)
{
  bool is_end = false;
  x->m->line = 1;
  for (const char *end = text + n; text < end && !is_end; x->m->line++) {
    const char *newline = memchr (text, '\n', (gsize) (end - text)), *next = newline ? newline + 1 : end;
    g_auto (GStrv) words = ls_tree_words (text, (gsize) (next - text) - (newline != NULL));
    text = next;
    if (!read_line (x, words, &is_end))
      return false;
  }
  for (guint i = 0; i < x->devices->len; i++)
    if (!device_at (x, i)->to)
      return ls_tree_wrong (x->m, x->m->line - 1, NULL, "no line of %s, which the header names: cut off?",
                            device_at (x, i)->name);
  if (x->n_gpus == 0 && x->n_listed > 0)
    return ls_tree_wrong (
        x->m, 0, "lockstep list clusters names nodes as they are sold",
        "it lists %u accelerators%s%s, and not how they are joined, which nvidia-smi topo -m "
        "does",
        x->n_listed, x->m->gpu ? " " : "", x->m->gpu ? x->m->gpu : "");
  return x->n_gpus > 0
      || ls_tree_wrong (x->m, 0, NULL, "no header \"GPU0 GPU1 ... CPU Affinity\" of nvidia-smi topo -m");
}

/* --- what is below what --------------------------------------------------------------------------- */

/* Whether they are at least that near, for NODE also by equal affinities. */
static bool
are_joined (const Matrix *x, uint32_t i, uint32_t j, Near level)
{
  const Device *a = device_at (x, i), *b = device_at (x, j);
  bool by_numa = a->numa && b->numa,
       is_alike = g_strcmp0 (by_numa ? a->numa : a->cpu, by_numa ? b->numa : b->cpu) == 0;
  return a->to[j].near <= level || (level == NODE && (by_numa || (a->cpu && b->cpu)) && is_alike);
}

/* [devices], newly allocated: the lowest member of the group of each. */
static uint32_t *
groups_of (const Matrix *x, Near level)
{
  uint32_t n = x->devices->len, *group = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    group[i] = i;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++) {
      uint32_t keep = MIN (group[i], group[j]), drop = MAX (group[i], group[j]);
      for (uint32_t k = 0; keep < drop && are_joined (x, i, j, level) && k < n; k++)
        group[k] = group[k] == drop ? keep : group[k];
    }
  return group;
}

/* A part for each group, of switches for several devices that are not all of a switch around them (NULL: none
 * is). parts: [devices], where each hangs so far. */
static void
add_level (Matrix *x, LsTreeKind kind, const uint32_t *group, const uint32_t *around, uint32_t *parts)
{
  uint32_t n = x->devices->len;
  g_autofree uint32_t *part = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t members = 0, outer = 0;
    for (uint32_t k = 0; k < n; k++) {
      members += group[k] == group[i];
      outer += around && around[k] == around[i];
    }
    if (kind == LS_TREE_PCI && (members == 1 || members == outer))
      continue;
    if (group[i] == i)
      part[i] = ls_tree_add (x->m, (LsTreePart) { .kind = kind, .parent = parts[i] });
    parts[i] = part[group[i]];
  }
}

static Near
nearest_gpu (const Matrix *x, uint32_t nic)
{
  Near near = HIDDEN;
  for (uint32_t g = 0; g < x->n_gpus; g++)
    near = MIN (near, device_at (x, nic)->to[g].near);
  return near;
}

static void
add_devices (Matrix *x, const uint32_t *parts)
{
  LsNodeTree *m = x->m;
  Near best = HIDDEN;
  g_autoptr (GString) left_out = g_string_new (NULL);
  for (uint32_t i = x->n_gpus; i < x->devices->len; i++)
    best = MIN (best, nearest_gpu (x, i));
  for (uint32_t i = 0; i < x->devices->len; i++) {
    const Device *d = device_at (x, i);
    bool is_kept = i < x->n_gpus || nearest_gpu (x, i) == best;
    m->line = d->line;
    uint32_t part = ls_tree_add (m,
                                 (LsTreePart) { .kind = i < x->n_gpus ? LS_TREE_GPU : LS_TREE_PCI,
                                                .parent = parts[i],
                                                .busid = i + 1,
                                                .dev = i });
    if (i >= x->n_gpus)
      ls_tree_add (m,
                   (LsTreePart) { .kind = LS_TREE_NET,
                                  .parent = part,
                                  .dev = i,
                                  .net = is_kept ? m->like->nics.port.bandwidth_bytes_per_s : 0 });
    if (!is_kept)
      g_string_append_printf (left_out, "%s%s", left_out->len > 0 ? ", " : "", d->port ? d->port : d->name);
  }
  if (left_out->len > 0)
    ls_tree_guess (m, "without %s: other NICs are nearer to GPUs", left_out->str);
}

/* --- NVLinks ---------------------------------------------------------------------------------------- */

/* The most that a GPU has of them if all are from GPU to GPU; *ret_each: how many it has to each of the
 * others where all are alike, 0: they are not. */
static uint32_t
most_nvlinks (const Matrix *x, uint32_t *ret_each)
{
  uint32_t most = 0, each = x->n_gpus > 1 ? device_at (x, 0)->to[1].nvlinks : 0;
  for (uint32_t i = 0; i < x->n_gpus; i++) {
    uint32_t sum = 0;
    for (uint32_t j = 0; j < x->n_gpus; j++) {
      sum += device_at (x, i)->to[j].nvlinks;
      each = i == j || device_at (x, i)->to[j].nvlinks == each ? each : 0;
    }
    most = MAX (most, sum);
  }
  *ret_each = each;
  return most;
}

static void
add_nvlinks (Matrix *x)
{
  uint32_t each, most = most_nvlinks (x, &each), own = ls_cluster_nvlinks_per_gpu (x->m->like);
  bool to_switch = each > 0 && own > 0 && most > own;
  if (to_switch)
    ls_tree_guess (x->m, "NVLinks through switches: %u from a GPU to each other one would be %u", each, most);
  for (uint32_t i = 0; i < x->m->parts->len; i++) {
    const LsTreePart *gpu = ls_tree_at (x->m, i);
    for (uint32_t j = 0; gpu->kind == LS_TREE_GPU && j < (to_switch ? 1 : x->n_gpus); j++) {
      const LsTreeNvlink link = { .gpu = i,
                                  .to_switch = to_switch,
                                  .busid = j + 1,
                                  .count = to_switch ? each : device_at (x, gpu->dev)->to[j].nvlinks };
      if (link.count > 0)
        g_array_append_val (x->m->nvlinks, link);
    }
  }
}

/* The usual accelerator of the oldest generation whose own have n > 0 NVLinks; NULL: none. One that names no
 * cluster is none of them. */
static char *
usual_gpu (const Matrix *x, uint32_t n)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_NCCL_TABLES);
  g_autoptr (LsDiagList) unheard = ls_diag_list_new ();
  char *usual = NULL;
  uint32_t oldest = UINT32_MAX;
  for (guint i = 0; n > 0 && i < entries->len; i++) {
    LsNcclTables t;
    LsNodeTree m = *x->m;
    m.diags = unheard;
    if (!ls_data_file_load (&ls_nccl_tables_file, ((LsDataEntry *) entries->pdata[i])->path, &t, x->m->diags))
      break;
    bool is_older
        = t.compute_capability > 0 && t.compute_capability < oldest && ls_tree_take_like (&m, t.gpu);
    if (is_older && ls_cluster_nvlinks_per_gpu (m.like) == n) {
      g_free (usual);
      usual = g_strdup (t.gpu);
      oldest = t.compute_capability;
    }
    g_clear_pointer (&m.like, ls_tree_free_like);
    ls_nccl_tables_clear (&t);
  }
  return usual;
}

static bool
take_gpu (Matrix *x, const char *named)
{
  uint32_t each, most = most_nvlinks (x, &each);
  LsNodeTree *m = x->m;
  bool is_listed = !named && m->gpu;
  if (!named && x->unknown)
    return ls_tree_wrong (m, 0, "lockstep list gpus",
                          "%s is of no file in topologies/gpu: name the accelerator, %s:gpu=h100",
                          g_strchomp (x->unknown), m->path);
  if (!is_listed) {
    g_free (m->gpu);
    m->gpu = named ? g_strdup (named) : usual_gpu (x, most);
  }
  if (!m->gpu && !(m->gpu = usual_gpu (x, each)))
    return ls_tree_wrong (m, 0, "lockstep list gpus",
                          "it does not say which accelerators these are: name them, %s:gpu=h100", m->path);
  if (is_listed)
    ls_tree_guess (m, "accelerators %s: by their names in nvidia-smi -L", m->gpu);
  else if (!named)
    ls_tree_guess (
        m, "accelerators %s: the oldest usual ones with so many NVLinks (FILE:gpu=NAME for others)", m->gpu);
  return ls_tree_take_like (m, m->gpu);
}

bool
ls_tree_read_matrix (LsNodeTree *m, const char *text, gsize n, const char *gpu)
{
  g_autoptr (GArray) devices = ls_list_new (sizeof (Device), clear_device);
  Matrix x = { .m = m, .devices = devices };
  bool ok = read_lines (&x, text, n) && take_gpu (&x, gpu);
  g_free (x.unknown);
  if (!ok)
    return false;
  g_autofree uint32_t *cpu = groups_of (&x, NODE), *upper = groups_of (&x, PXB), *lower = groups_of (&x, PIX),
                      *parts = g_new (uint32_t, devices->len);
  for (uint32_t i = 0; i < devices->len; i++)
    parts[i] = LS_TREE_NONE;
  add_level (&x, LS_TREE_CPU, cpu, NULL, parts);
  add_level (&x, LS_TREE_PCI, upper, NULL, parts);
  add_level (&x, LS_TREE_PCI, lower, upper, parts);
  add_devices (&x, parts);
  add_nvlinks (&x);
  return true;
}
