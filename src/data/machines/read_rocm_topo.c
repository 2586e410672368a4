/* data/machines/read_rocm_topo.c — what `rocm-smi --showtopo` prints, as a node.
 *
 *     ============ Weight between two GPUs ============
 *            GPU0  GPU1
 *     GPU0   0     15
 *     GPU1   15    0
 *     ========== Link Type between two GPUs ===========
 *            GPU0  GPU1
 *     GPU0   0     XGMI
 *     GPU1   XGMI  0
 *     ================== Numa Nodes ===================
 *     GPU[0] : (Topology) Numa Affinity: 0
 *
 * rocm-smi says XGMI of all GPUs that xGMI leads to, in one hop or several; the weight, 15 for each hop,
 * tells which are joined (ROCm/rocm-systems issue 5763 and pull request 7372). It has neither the number of
 * links of a pair, nor NICs, nor the accelerator, unless other output of rocm-smi in the file names it. */
#include "data/machines/node_tree.h"

#include <stdio.h>
#include <string.h>

#define MAX_GPUS 256

typedef enum { OTHER, WEIGHT, TYPE } Section;

typedef struct {
  bool has_weight, has_type;
  int numa; /* -1: not known */
  uint32_t weight[MAX_GPUS];
  bool is_xgmi[MAX_GPUS];
} Gpu;

typedef struct {
  LsNodeTree *m;
  Section section;
  GPtrArray *names; /* of columns; of the first header */
  Gpu *gpus;        /* [MAX_GPUS] */
} Topo;

static bool
is_gpu (const char *word)
{
  return g_str_has_prefix (word, "GPU") && g_ascii_isdigit (word[3]);
}

static uint32_t
number_of (const Topo *t, const char *name)
{
  for (guint i = 0; i < t->names->len; i++)
    if (g_str_equal (t->names->pdata[i], name))
      return i;
  return LS_TREE_NONE;
}

/* --- lines ---------------------------------------------------------------------------------- */

/* Every matrix has the same. */
static bool
read_header (Topo *t, GStrv words)
{
  bool is_first = t->names->len == 0;
  guint i = 0;
  for (; words[i]; i++) {
    bool is_known = number_of (t, words[i]) == i;
    if (is_first && i < MAX_GPUS && number_of (t, words[i]) == LS_TREE_NONE)
      g_ptr_array_add (t->names, g_strdup (words[i]));
    else if (!is_known)
      break;
  }
  return (!words[i] && i == t->names->len)
      || ls_tree_wrong (t->m, t->m->line, NULL,
                        "expected the GPUs of each matrix in one order, each once, %d at most; got \"%.20s\"",
                        MAX_GPUS, words[i] ? words[i] : words[0]);
}

static bool
read_entry (Topo *t, Gpu *gpu, uint32_t to, const char *word, bool is_self)
{
  if (t->section == WEIGHT)
    gpu->weight[to] = (uint32_t) g_ascii_strtoull (word, NULL, 10);
  else
    gpu->is_xgmi[to] = g_str_equal (word, "XGMI");
  bool is_fine = is_self ? g_str_equal (word, "0") : gpu->is_xgmi[to] || g_str_equal (word, "PCIE");
  return t->section == WEIGHT || is_fine
      || ls_tree_wrong (t->m, t->m->line, NULL, "expected %s; got \"%.20s\"",
                        is_self ? "0 in its own column" : "XGMI or PCIE", word);
}

static bool
read_row (Topo *t, uint32_t from, GStrv words)
{
  Gpu *gpu = &t->gpus[from];
  bool *has = t->section == WEIGHT ? &gpu->has_weight : &gpu->has_type;
  if (*has || g_strv_length (words) <= t->names->len)
    return ls_tree_wrong (t->m, t->m->line, NULL, "%s: %s", words[0],
                          *has ? "a second line of it" : "fewer words than the header has GPUs");
  *has = true;
  for (uint32_t to = 0; to < t->names->len; to++)
    if (!read_entry (t, gpu, to, words[1 + to], to == from))
      return false;
  return true;
}

/* "GPU[0] : (Topology) Numa Affinity: 0", or GPU 0. */
static bool
read_affinity (Topo *t, GStrv words)
{
  g_autofree char *line = g_strjoinv (" ", words);
  uint32_t i = 0;
  int numa = -1;
  if (sscanf (line, "GPU%*[[ ]%u%*[] ]: (Topology) Numa Affinity: %d", &i, &numa) < 2 || i >= MAX_GPUS)
    return false;
  t->gpus[i].numa = numa;
  return true;
}

static bool
read_line (Topo *t, const char *line, GStrv words)
{
  static const struct {
    const char *title;
    Section section;
  } titles[] = { { "Weight between two GPUs", WEIGHT },
                 { "Link Type between two GPUs", TYPE },
                 { "Hops between two GPUs", OTHER },
                 { "Numa Nodes", OTHER },
                 { "End of ROCm SMI Log", OTHER } };
  for (guint i = 0; i < G_N_ELEMENTS (titles); i++)
    if (strstr (line, titles[i].title)) {
      t->section = titles[i].section;
      return true;
    }
  uint32_t row = words[0] ? number_of (t, words[0]) : LS_TREE_NONE;
  if (read_affinity (t, words) || t->section == OTHER || !words[0] || !is_gpu (words[0])) {
    if (t->section == OTHER && !t->m->gpu && strstr (line, "Instinct"))
      t->m->gpu = ls_tree_gpu_of_product (line);
    return true;
  }
  bool is_header = !words[1] ? row == LS_TREE_NONE : is_gpu (words[1]);
  if (!is_header && row == LS_TREE_NONE)
    return ls_tree_wrong (t->m, t->m->line, NULL, "%.20s is not in the header", words[0]);
  return is_header ? read_header (t, words) : read_row (t, row, words);
}

static bool
read_lines (Topo *t, const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i]; i++) {
    g_auto (GStrv) words = ls_tree_words (lines[i], strlen (lines[i]));
    t->m->line = (int) i + 1;
    if (!read_line (t, lines[i], words))
      return false;
  }
  for (guint i = 0; i < t->names->len; i++)
    if (!t->gpus[i].has_type)
      return ls_tree_wrong (t->m, t->m->line, NULL, "no link types of %s, which the header names: cut off?",
                            (const char *) t->names->pdata[i]);
  return t->names->len > 0
      || ls_tree_wrong (t->m, 0, NULL, "no matrix \"Link Type between two GPUs\" of rocm-smi --showtopo");
}

/* --- the node ----------------------------------------------------------------------------------- */

/* As many links as the pair has in `like`, which may not have it at all. */
static uint32_t
links_of_pair (const LsNodeTree *m, uint32_t a, uint32_t b)
{
  const GArray *links = m->like->server.mesh_links;
  for (guint i = 0; links && i < links->len; i++) {
    const LsMeshLink *link = &g_array_index (links, LsMeshLink, i);
    if (link->a == MIN (a, b) && link->b == MAX (a, b))
      return link->count;
  }
  return 1;
}

/* parts: [GPUs] */
static void
add_xgmi (const Topo *t, const uint32_t *parts)
{
  uint32_t n = t->names->len, lightest = UINT32_MAX, n_links = 0, n_far = 0;
  for (uint32_t i = 0; i < n * n; i++)
    if (t->gpus[i / n].is_xgmi[i % n])
      lightest = MIN (lightest, t->gpus[i / n].weight[i % n]);
  for (uint32_t i = 0; i < n * n; i++) {
    const Gpu *gpu = &t->gpus[i / n];
    LsTreeNvlink link = { .gpu = parts[i / n], .busid = i % n + 1 };
    bool is_joined = gpu->is_xgmi[i % n] && gpu->weight[i % n] == lightest;
    n_far += gpu->is_xgmi[i % n] && !is_joined;
    if (!is_joined)
      continue;
    n_links++;
    link.count = links_of_pair (t->m, i / n, i % n);
    g_array_append_val (t->m->nvlinks, link);
  }
  if (n_links > 0)
    ls_tree_guess (t->m, "as many xGMI links from GPU to GPU as in %s, where it joins them, else one",
                   t->m->like->name);
  if (n_links > 0 && lightest == 0)
    ls_tree_guess (t->m, "xGMI joins all GPUs that rocm-smi says XGMI of: it shows no weights");
  if (n_far > 0)
    ls_tree_guess (t->m, "%u pairs of GPUs have no xGMI link of their own, by their weight", n_far / 2);
}

/* NICs where the accelerator's cluster has them: one of as many GPUs. */
static uint32_t
n_nics (LsNodeTree *m, uint32_t n_gpus)
{
  const LsClusterSpec *like = m->like;
  bool is_alike = like->gpus_per_node == n_gpus;
  if (is_alike)
    ls_tree_guess (m, "%u NICs, as in %s, each at a PCIe switch of a GPU", like->nics.n, like->name);
  else
    ls_tree_guess (m, "no NICs, which rocm-smi does not show: %s has %u GPUs in a node, these are %u",
                   like->name, like->gpus_per_node, n_gpus);
  return is_alike ? like->nics.n : 0;
}

static void
add_parts (const Topo *t, uint32_t *parts)
{
  LsNodeTree *m = t->m;
  uint32_t n = t->names->len, n_unknown = 0, nics = n_nics (m, n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t cpu = LS_TREE_NONE;
    for (uint32_t k = 0; k < i && cpu == LS_TREE_NONE; k++)
      if (t->gpus[k].numa == t->gpus[i].numa)
        cpu = ls_tree_at (m, ls_tree_at (m, parts[k])->parent)->parent;
    if (cpu == LS_TREE_NONE)
      cpu = ls_tree_add (m, (LsTreePart) { .kind = LS_TREE_CPU, .parent = LS_TREE_NONE });
    uint32_t bridge
        = ls_tree_add (m, (LsTreePart) { .kind = LS_TREE_PCI, .parent = cpu, .busid = MAX_GPUS + i });
    parts[i]
        = ls_tree_add (m, (LsTreePart) { .kind = LS_TREE_GPU, .parent = bridge, .busid = i + 1, .dev = i });
    n_unknown += t->gpus[i].numa < 0;
  }
  for (uint32_t k = 0; k < nics; k++)
    ls_tree_add (m,
                 (LsTreePart) { .kind = LS_TREE_NET,
                                .parent = ls_tree_at (m, parts[(guint64) k * n / nics])->parent,
                                .dev = k,
                                .net = m->like->nics.port.bandwidth_bytes_per_s });
  if (n_unknown > 0)
    ls_tree_guess (m, "%u GPUs without a Numa Affinity are at one CPU", n_unknown);
}

static bool
take_gpu (Topo *t, const char *named)
{
  LsNodeTree *m = t->m;
  if (!named && !m->gpu)
    return ls_tree_wrong (m, 0, "lockstep list gpus",
                          "it does not say which accelerators these are: name them, %s:gpu=mi300x", m->path);
  if (!named)
    ls_tree_guess (m, "accelerators %s: words of the file", m->gpu);
  return ls_tree_take_like (m, named ? named : m->gpu);
}

bool
ls_tree_read_rocm (LsNodeTree *m, const char *text, gsize n, const char *gpu)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autofree Gpu *gpus = g_new0 (Gpu, MAX_GPUS);
  g_autofree uint32_t *parts = g_new0 (uint32_t, MAX_GPUS);
  Topo t = { .m = m, .names = names, .gpus = gpus };
  for (uint32_t i = 0; i < MAX_GPUS; i++)
    gpus[i].numa = -1;
  if (!read_lines (&t, text) || !take_gpu (&t, gpu))
    return false;
  add_parts (&t, parts);
  add_xgmi (&t, parts);
  return true;
}
