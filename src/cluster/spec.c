#include "cluster/spec.h"

#include <lockstep/error.h>

static LsLinkSpec *
link_at (LsClusterSpec *spec, size_t i)
{
  LsLinkSpec *links[] = { &spec->nvlink, &spec->pcie, &spec->cpu_interconnect, &spec->cpu_memory, &spec->nvme,
                          &spec->nic,    &spec->spine };
  return i < G_N_ELEMENTS (links) ? links[i] : NULL;
}

void
ls_cluster_spec_clear (LsClusterSpec *spec)
{
  if (!spec)
    return;
  g_clear_pointer (&spec->name, g_free);
  g_clear_pointer (&spec->source, g_free);
  ls_gpu_clear (&spec->gpu);
  for (size_t i = 0; link_at (spec, i); i++)
    g_clear_pointer (&link_at (spec, i)->source, g_free);
}

void
ls_cluster_spec_copy (const LsClusterSpec *spec, LsClusterSpec *ret_copy)
{
  *ret_copy = *spec;
  ret_copy->name = g_strdup (spec->name);
  ret_copy->source = g_strdup (spec->source);
  ret_copy->gpu.name = g_strdup (spec->gpu.name);
  ret_copy->gpu.source = g_strdup (spec->gpu.source);
  ret_copy->gpu.calibration = g_strdup (spec->gpu.calibration);
  for (size_t i = 0; link_at (ret_copy, i); i++)
    link_at (ret_copy, i)->source = g_strdup (link_at (ret_copy, i)->source);
}

/* "Evenly" both ways: 8 NICs on 4 switches, or 2 NICs on 4 switches. */
static gboolean
deals_out (uint32_t a, uint32_t b)
{
  return a % b == 0 || b % a == 0;
}

G_GNUC_PRINTF (2, 3)
static gboolean
conflict (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, LS_ERROR, LS_ERROR_CONFLICT, text);
  return FALSE;
}

static gboolean
check_link (const char *what, gboolean is_used, const LsLinkSpec *link, GError **error)
{
  gboolean is_legal = link->bandwidth_bytes_per_s > 0 && link->efficiency > 0 && link->efficiency <= 1
                      && link->latency >= 0;
  if (is_used && !is_legal)
    return conflict (
        error, "%s: expected a bandwidth above 0, an efficiency in (0, 1] and a latency of 0 or more", what);
  return TRUE;
}

static gboolean
check_links (const LsClusterSpec *s, GError **error)
{
  return check_link ("nvswitch link", s->nvswitch_planes > 0, &s->nvlink, error)
         && check_link ("pcie link", s->pcie_switches > 0, &s->pcie, error)
         && check_link ("cpu interconnect", s->cpu_sockets > 1, &s->cpu_interconnect, error)
         && check_link ("cpu memory", s->cpu_sockets > 0, &s->cpu_memory, error)
         && check_link ("nvme link", s->nvme_drives > 0, &s->nvme, error)
         && check_link ("nic link", s->nics > 0, &s->nic, error)
         && check_link ("fabric link", s->nics > 0, &s->spine, error);
}

static gboolean
check_node (const LsClusterSpec *s, GError **error)
{
  if (s->gpus_per_node == 0)
    return conflict (error, "a node needs at least one GPU");
  if (s->nvswitch_planes > s->nvlinks_per_gpu)
    return conflict (error, "%u NVLinks per GPU cannot reach %u NVSwitch planes", s->nvlinks_per_gpu,
                     s->nvswitch_planes);
  if (s->nvswitch_planes == 0 && s->pcie_switches == 0 && s->gpus_per_node > 1)
    return conflict (error, "%u GPUs of a node need NVSwitch or PCIe switches between them",
                     s->gpus_per_node);
  if (s->pcie_switches == 0) {
    if (s->cpu_sockets > 0 || s->nics > 0 || s->nvme_drives > 0)
      return conflict (error, "CPU, NICs and NVMe drives need a PCIe switch");
    return TRUE;
  }
  if (s->gpus_per_node % s->pcie_switches != 0)
    return conflict (error, "%u GPUs per node do not deal out to %u PCIe switches", s->gpus_per_node,
                     s->pcie_switches);
  if (s->cpu_sockets == 0 ? s->pcie_switches > 1 : s->pcie_switches % s->cpu_sockets != 0)
    return conflict (error, "%u PCIe switches do not deal out to %u CPU sockets", s->pcie_switches,
                     s->cpu_sockets);
  if (s->nvme_drives > 0 && !deals_out (s->nvme_drives, s->pcie_switches))
    return conflict (error, "%u NVMe drives do not deal out to %u PCIe switches", s->nvme_drives,
                     s->pcie_switches);
  if (s->nics > 0 && !deals_out (s->nics, s->pcie_switches))
    return conflict (error, "%u NICs do not deal out to %u PCIe switches", s->nics, s->pcie_switches);
  if (s->nics > 0 && !deals_out (s->nics, s->gpus_per_node))
    return conflict (error, "%u NICs do not deal out to %u GPUs per node", s->nics, s->gpus_per_node);
  return TRUE;
}

static uint64_t
n_leaves (const LsClusterSpec *s)
{
  return s->nics == 0 ? 0 : ((uint64_t) s->n_nodes + s->nodes_per_leaf - 1) / s->nodes_per_leaf * s->rails;
}

/* Bytes/s that the nodes below a leaf can send into it. */
static double
leaf_intake (const LsClusterSpec *s)
{
  return s->nics / s->rails * (double) s->nodes_per_leaf * ls_link_capacity (&s->nic);
}

/* Uplinks of a leaf as a number that need not be whole. */
static double
uplinks (const LsClusterSpec *s)
{
  return leaf_intake (s) / s->oversubscription / ls_link_capacity (&s->spine);
}

/* Also where one leaf serves all: a leaf like that is a mistake with any number. */
static gboolean
check_fabric_size (const LsClusterSpec *s, GError **error)
{
  if (n_leaves (s) > LS_CLUSTER_MAX_FABRIC)
    return conflict (error, "%u nodes, %u on a leaf, with %u rails need %" G_GUINT64_FORMAT " leaves; expected at most %u",
                     s->n_nodes, s->nodes_per_leaf, s->rails, (guint64) n_leaves (s), LS_CLUSTER_MAX_FABRIC);
  if (uplinks (s) <= LS_CLUSTER_MAX_FABRIC)
    return TRUE;
  g_autofree char *down = ls_format_rate (leaf_intake (s)), *up = ls_format_rate (ls_link_capacity (&s->spine));
  return conflict (error,
                   "a leaf of %u nodes with %u NICs each on its rail takes %s; with oversubscription %g and %s an uplink"
                   " it needs %.0f uplinks; expected at most %u",
                   s->nodes_per_leaf, s->nics / s->rails, down, s->oversubscription, up, ceil (uplinks (s)),
                   LS_CLUSTER_MAX_FABRIC);
}

/* Pairs of vertices that are joined, both directions, as the builder does it. */
static double
n_links (const LsClusterSpec *s)
{
  double sockets = s->cpu_sockets;
  double of_host = (double) s->gpus_per_node * s->nvswitch_planes + (s->pcie_switches > 0 ? s->gpus_per_node : 0)
                   + (sockets > 0 ? s->pcie_switches : 0) + sockets * (sockets - 1) / 2 + sockets + s->nvme_drives
                   + 2.0 * s->nics;
  return 2 * (s->n_nodes * of_host + (double) ls_cluster_n_leaves (s) * ls_cluster_n_spines (s));
}

static gboolean
check_size (const LsClusterSpec *s, GError **error)
{
  if (n_links (s) <= LS_CLUSTER_MAX_LINKS)
    return TRUE;
  return conflict (error, "%u nodes, %u leaves and %u spines need %.0f links; expected at most %u", s->n_nodes,
                   ls_cluster_n_leaves (s), ls_cluster_n_spines (s), n_links (s), LS_CLUSTER_MAX_LINKS);
}

static gboolean
check_fabric (const LsClusterSpec *s, GError **error)
{
  if (s->nics == 0)
    return s->n_nodes == 1 || conflict (error, "%u nodes need NICs between them", s->n_nodes);
  if (s->rails == 0 || s->nics % s->rails != 0)
    return conflict (error, "%u NICs per node do not deal out to %u rails", s->nics, s->rails);
  if (s->nodes_per_leaf == 0)
    return conflict (error, "a leaf needs at least one node");
  if (!(s->oversubscription >= 1))
    return conflict (error, "oversubscription %g: expected 1 or more", s->oversubscription);
  if (!check_fabric_size (s, error))
    return FALSE;
  if (n_leaves (s) > 1 && (round (uplinks (s)) < 1 || fabs (uplinks (s) - round (uplinks (s))) > 1e-6))
    return conflict (
        error, "oversubscription %g leaves %.3f uplinks per leaf, not a whole number; change nodes_per_leaf",
        s->oversubscription, uplinks (s));
  return TRUE;
}

uint32_t
ls_cluster_n_leaves (const LsClusterSpec *s)
{
  return (uint32_t) n_leaves (s);
}

uint32_t
ls_cluster_n_spines (const LsClusterSpec *s)
{
  return ls_cluster_n_leaves (s) > 1 ? (uint32_t) round (uplinks (s)) : 0;
}

static gboolean
check_gpus (const LsClusterSpec *s, GError **error)
{
  uint64_t n_gpus = (uint64_t) s->n_nodes * s->gpus_per_node;
  if (n_gpus <= LS_CLUSTER_MAX_GPUS)
    return TRUE;
  return conflict (error, "%u nodes of %u GPUs are %" G_GUINT64_FORMAT " GPUs; expected at most %u", s->n_nodes,
                   s->gpus_per_node, (guint64) n_gpus, LS_CLUSTER_MAX_GPUS);
}

gboolean
ls_cluster_spec_validate (const LsClusterSpec *s, GError **error)
{
  if (s->n_nodes == 0)
    return conflict (error, "a cluster needs at least one node");
  return check_node (s, error) && check_gpus (s, error) && check_links (s, error) && check_fabric (s, error)
         && check_size (s, error);
}
