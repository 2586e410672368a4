#include "cluster/spec.h"

#include <string.h>

#include <lockstep/error.h>

static LsLinkSpec *
link_at (LsClusterSpec *spec, size_t i)
{
  LsLinkSpec *links[] = { &spec->server.nvlink,
                          &spec->ici,
                          &spec->server.pcie,
                          &spec->server.c2c,
                          &spec->server.cpu_interconnect,
                          &spec->server.cpu_memory,
                          &spec->server.nvme,
                          &spec->nics.port,
                          &spec->network.spine,
                          &spec->network.core,
                          &spec->server.write_bridge,
                          &spec->server.write_sockets };
  return i < G_N_ELEMENTS (links) ? links[i] : NULL;
}

static void
clear_links (GArray *links)
{
  for (guint i = 0; links && i < links->len; i++) {
    LsListLink *link = &g_array_index (links, LsListLink, i);
    g_free (link->from);
    g_free (link->to);
    g_free (link->link.source);
  }
}

static void
clear_strings (GArray *strings)
{
  for (guint i = 0; strings && i < strings->len; i++)
    g_free (g_array_index (strings, char *, i));
}

static void
clear_others (GArray *others)
{
  for (guint i = 0; others && i < others->len; i++) {
    LsOtherNodes *o = &g_array_index (others, LsOtherNodes, i);
    g_free (o->nodes);
    g_free (o->like);
    g_clear_pointer (&o->ranges, g_array_unref);
    ls_cluster_spec_clear (o->spec);
    g_free (o->spec);
  }
}

void
ls_cluster_spec_forget_faults (LsClusterSpec *spec)
{
  for (guint i = 0; spec->network.faults && i < spec->network.faults->len; i++)
    g_free (g_array_index (spec->network.faults, LsFault, i).link);
  g_clear_pointer (&spec->network.faults, g_array_unref);
}

static void
clear_lists (LsClusterSpec *spec)
{
  for (guint i = 0; spec->list.vertices && i < spec->list.vertices->len; i++)
    g_free (g_array_index (spec->list.vertices, LsListVertex, i).name);
  clear_strings (spec->network.switches);
  clear_strings (spec->successors);
  clear_strings (spec->also);
  clear_strings (spec->slices);
  clear_strings (spec->fitted.runs.traits);
  for (guint i = 0; spec->network.nics && i < spec->network.nics->len; i++)
    g_free (g_array_index (spec->network.nics, LsListNics, i).at);
  ls_cluster_spec_forget_faults (spec);
  clear_links (spec->list.links);
  clear_links (spec->network.links);
  clear_others (spec->others);
  GArray **lists[] = { &spec->list.vertices,    &spec->list.links,    &spec->server.mesh_links,
                       &spec->network.switches, &spec->network.links, &spec->network.nics,
                       &spec->network.faults,   &spec->successors,    &spec->fitted.runs.traits,
                       &spec->others,           &spec->also,          &spec->slices };
  for (size_t i = 0; i < G_N_ELEMENTS (lists); i++)
    g_clear_pointer (lists[i], g_array_unref);
}

void
ls_cluster_spec_clear (LsClusterSpec *spec)
{
  if (!spec)
    return;
  g_clear_pointer (&spec->name, g_free);
  g_clear_pointer (&spec->source, g_free);
  g_clear_pointer (&spec->fitted.runs.file, g_free);
  g_clear_pointer (&spec->fitted.runs.architecture, g_free);
  g_clear_pointer (&spec->network.known.of, g_free);
  ls_gpu_clear (&spec->gpu);
  for (size_t i = 0; link_at (spec, i); i++)
    g_clear_pointer (&link_at (spec, i)->source, g_free);
  clear_lists (spec);
}

static GArray *
copy_array (const GArray *array)
{
  return array ? g_array_copy ((GArray *) array) : NULL;
}

static GArray *
copy_links (const GArray *links)
{
  GArray *copy = copy_array (links);
  for (guint i = 0; copy && i < copy->len; i++) {
    LsListLink *link = &g_array_index (copy, LsListLink, i);
    link->from = g_strdup (link->from);
    link->to = g_strdup (link->to);
    link->link.source = g_strdup (link->link.source);
  }
  return copy;
}

static GArray *
copy_strings (const GArray *strings)
{
  GArray *copy = copy_array (strings);
  for (guint i = 0; copy && i < copy->len; i++)
    g_array_index (copy, char *, i) = g_strdup (g_array_index (copy, char *, i));
  return copy;
}

static GArray *
copy_others (const GArray *others)
{
  GArray *copy = copy_array (others);
  for (guint i = 0; copy && i < copy->len; i++) {
    LsOtherNodes *o = &g_array_index (copy, LsOtherNodes, i);
    const LsClusterSpec *spec = o->spec;
    o->nodes = g_strdup (o->nodes);
    o->like = g_strdup (o->like);
    o->ranges = copy_array (o->ranges);
    o->spec = g_new (LsClusterSpec, 1);
    ls_cluster_spec_copy (spec, o->spec);
  }
  return copy;
}

static void
copy_lists (LsClusterSpec *spec)
{
  spec->server.mesh_links = copy_array (spec->server.mesh_links);
  spec->list.vertices = copy_array (spec->list.vertices);
  spec->list.links = copy_links (spec->list.links);
  spec->network.switches = copy_strings (spec->network.switches);
  spec->successors = copy_strings (spec->successors);
  spec->also = copy_strings (spec->also);
  spec->slices = copy_strings (spec->slices);
  spec->fitted.runs.traits = copy_strings (spec->fitted.runs.traits);
  spec->network.links = copy_links (spec->network.links);
  spec->network.nics = copy_array (spec->network.nics);
  spec->network.faults = copy_array (spec->network.faults);
  spec->others = copy_others (spec->others);
  for (guint i = 0; spec->list.vertices && i < spec->list.vertices->len; i++) {
    LsListVertex *vertex = &g_array_index (spec->list.vertices, LsListVertex, i);
    vertex->name = g_strdup (vertex->name);
  }
  for (guint i = 0; spec->network.nics && i < spec->network.nics->len; i++) {
    LsListNics *nics = &g_array_index (spec->network.nics, LsListNics, i);
    nics->at = g_strdup (nics->at);
  }
  for (guint i = 0; spec->network.faults && i < spec->network.faults->len; i++) {
    LsFault *fault = &g_array_index (spec->network.faults, LsFault, i);
    fault->link = g_strdup (fault->link);
  }
}

void
ls_cluster_spec_copy (const LsClusterSpec *spec, LsClusterSpec *ret_copy)
{
  *ret_copy = *spec;
  ret_copy->name = g_strdup (spec->name);
  ret_copy->source = g_strdup (spec->source);
  ret_copy->fitted.runs.file = g_strdup (spec->fitted.runs.file);
  ret_copy->fitted.runs.architecture = g_strdup (spec->fitted.runs.architecture);
  ret_copy->network.known.of = g_strdup (spec->network.known.of);
  ls_gpu_copy (&spec->gpu, &ret_copy->gpu);
  for (size_t i = 0; link_at (ret_copy, i); i++)
    link_at (ret_copy, i)->source = g_strdup (link_at (ret_copy, i)->source);
  copy_lists (ret_copy);
}

int
ls_spec_list_kind (const LsClusterSpec *s, const char *name)
{
  for (guint i = 0; i < s->list.vertices->len; i++) {
    const LsListVertex *v = &g_array_index (s->list.vertices, LsListVertex, i);
    if (strcmp (v->name, name) == 0)
      return v->kind;
  }
  return -1;
}

static bool
joins_gpus (const LsClusterSpec *s, const char *name)
{
  int kind = ls_spec_list_kind (s, name);
  return kind == LS_NODE_GPU || kind == LS_NODE_NVSWITCH;
}

bool
ls_cluster_spec_is_nvlink (const LsClusterSpec *s, const LsListLink *link)
{
  return joins_gpus (s, link->from) && joins_gpus (s, link->to);
}

gboolean
ls_spec_conflict (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, LS_ERROR, LS_ERROR_CONFLICT, text);
  return FALSE;
}

gboolean
ls_spec_check_link (const char *what, gboolean is_used, const LsLinkSpec *link, GError **error)
{
  gboolean is_legal = link->bandwidth_bytes_per_s > 0 && link->efficiency > 0 && link->efficiency <= 1
      && link->latency >= 0;
  if (is_used && !is_legal)
    return ls_spec_conflict (
        error, "%s: expected a bandwidth above 0, an efficiency in (0, 1] and a latency of 0 or more", what);
  return TRUE;
}

uint32_t
ls_cluster_spec_n_kinds (const LsClusterSpec *s)
{
  return 1 + (s->others ? s->others->len : 0);
}

uint32_t
ls_cluster_spec_kind_of (const LsClusterSpec *s, uint32_t host)
{
  for (guint i = 0; s->others && i < s->others->len; i++) {
    const GArray *ranges = g_array_index (s->others, LsOtherNodes, i).ranges;
    for (guint r = 0; r < ranges->len; r++) {
      const LsNodeRange *range = &g_array_index (ranges, LsNodeRange, r);
      if (host >= range->first && host <= range->last)
        return i + 1;
    }
  }
  return 0;
}

const LsClusterSpec *
ls_cluster_spec_of_kind (const LsClusterSpec *s, uint32_t kind)
{
  return kind == 0 ? s : g_array_index (s->others, LsOtherNodes, kind - 1).spec;
}

uint32_t
ls_cluster_spec_gpus_of (const LsClusterSpec *s, uint32_t host)
{
  return ls_cluster_spec_of_kind (s, ls_cluster_spec_kind_of (s, host))->gpus_per_node;
}

void
ls_cluster_spec_take_nodes (LsClusterSpec *s, const uint32_t *nodes, uint32_t n)
{
  GArray *ranges[LS_MAX_NODE_KINDS] = { NULL };
  if (!s->others)
    return;
  for (uint32_t k = 1; k <= s->others->len; k++)
    ranges[k] = g_array_new (FALSE, FALSE, sizeof (LsNodeRange));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t kind = ls_cluster_spec_kind_of (s, nodes[i]);
    if (kind > 0)
      g_array_append_val (ranges[kind], ((LsNodeRange) { i, i }));
  }
  for (uint32_t k = 1; k <= s->others->len; k++) {
    LsOtherNodes *o = &g_array_index (s->others, LsOtherNodes, k - 1);
    g_array_unref (o->ranges);
    o->ranges = ranges[k];
  }
}

/* Nodes of a range that are there. */
static uint64_t
n_of_range (const LsClusterSpec *s, const LsNodeRange *range)
{
  return range->first < s->n_nodes ? (uint64_t) MIN (range->last, s->n_nodes - 1) - range->first + 1 : 0;
}

uint64_t
ls_cluster_spec_n_gpus (const LsClusterSpec *s)
{
  uint64_t n = 0, n_other = 0;
  for (guint i = 0; s->others && i < s->others->len; i++) {
    const LsOtherNodes *o = &g_array_index (s->others, LsOtherNodes, i);
    for (guint r = 0; r < o->ranges->len; r++) {
      uint64_t nodes = n_of_range (s, &g_array_index (o->ranges, LsNodeRange, r));
      n += nodes * o->spec->gpus_per_node;
      n_other += nodes;
    }
  }
  return n + (s->n_nodes - n_other) * s->gpus_per_node;
}

const char *
ls_cluster_chip_word (const LsClusterSpec *spec, uint64_t n)
{
  bool is_tpu = spec->interior == LS_INTERIOR_TORUS;
  return is_tpu ? (n == 1 ? "chip" : "chips") : n == 1 ? "GPU" : "GPUs";
}

void
ls_gpu_copy (const LsGpu *gpu, LsGpu *ret_copy)
{
  *ret_copy = *gpu;
  ret_copy->name = g_strdup (gpu->name);
  ret_copy->source = g_strdup (gpu->source);
  ret_copy->product = g_strdup (gpu->product);
  ret_copy->capability = g_strdup (gpu->capability);
  ret_copy->calibration = g_strdup (gpu->calibration);
  ret_copy->nccl = g_strdup (gpu->nccl);
  ret_copy->access = g_strdup (gpu->access);
  ret_copy->cluster = g_strdup (gpu->cluster);
  ret_copy->kernels_known.of = g_strdup (gpu->kernels_known.of);
  ret_copy->collectives_known.of = g_strdup (gpu->collectives_known.of);
}

void
ls_gpu_clear (LsGpu *gpu)
{
  if (!gpu)
    return;
  g_clear_pointer (&gpu->name, g_free);
  g_clear_pointer (&gpu->source, g_free);
  g_clear_pointer (&gpu->product, g_free);
  g_clear_pointer (&gpu->capability, g_free);
  g_clear_pointer (&gpu->calibration, g_free);
  g_clear_pointer (&gpu->nccl, g_free);
  g_clear_pointer (&gpu->access, g_free);
  g_clear_pointer (&gpu->cluster, g_free);
  g_clear_pointer (&gpu->kernels_known.of, g_free);
  g_clear_pointer (&gpu->collectives_known.of, g_free);
}
