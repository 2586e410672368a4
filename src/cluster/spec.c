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

/* Uplinks of a leaf as a number that need not be whole. */
static double
uplinks (const LsClusterSpec *s)
{
  double down = s->nics / s->rails * (double) s->nodes_per_leaf * ls_link_capacity (&s->nic);
  return down / s->oversubscription / ls_link_capacity (&s->spine);
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
  if (ls_cluster_n_leaves (s) > 1 && fabs (uplinks (s) - round (uplinks (s))) > 1e-6)
    return conflict (
        error, "oversubscription %g leaves %.3f uplinks per leaf, not a whole number; change nodes_per_leaf",
        s->oversubscription, uplinks (s));
  return TRUE;
}

uint32_t
ls_cluster_n_leaves (const LsClusterSpec *s)
{
  return s->nics == 0 ? 0 : (s->n_nodes + s->nodes_per_leaf - 1) / s->nodes_per_leaf * s->rails;
}

uint32_t
ls_cluster_n_spines (const LsClusterSpec *s)
{
  return ls_cluster_n_leaves (s) > 1 ? (uint32_t) round (uplinks (s)) : 0;
}

gboolean
ls_cluster_spec_validate (const LsClusterSpec *s, GError **error)
{
  if (s->n_nodes == 0)
    return conflict (error, "a cluster needs at least one node");
  if (!check_node (s, error) || !check_links (s, error) || !check_fabric (s, error))
    return FALSE;
  if ((uint64_t) s->n_nodes * s->gpus_per_node > LS_CLUSTER_MAX_GPUS) {
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT, "%" G_GUINT64_FORMAT " GPUs exceed the limit of %u",
                 (guint64) s->n_nodes * s->gpus_per_node, LS_CLUSTER_MAX_GPUS);
    return FALSE;
  }
  return TRUE;
}
