#include "job/sensitivity_scale.h"

#include <math.h>

#include "compute/measured.h"
#include "network/nccl/nccl.h"

/* --- the plan of a job run again on hardware that is a little different -------------------------- */

LsRunOptions
ls_rerun_options (const LsJobSpec *spec, const LsJobResult *r)
{
  LsRunOptions options = ls_job_spec_options (spec);
  ls_hardware_host (r->hardware, &r->strategy, &options.host);
  options.no_spans = options.steady = true;
  if (options.fold == LS_SHORTCUT_CHECK)
    options.fold = LS_SHORTCUT_AUTO;
  return options;
}

LsTimeline *
ls_rerun (const LsJobResult *r, const LsHardware *hardware, const LsRunOptions *options,
          LsCluster **ret_cluster, GError **error)
{
  LsHardware h;
  ls_job_hardware (r, hardware, options, &h);
  g_autoptr (LsCluster) cluster = ls_cluster_build (&h.spec, error);
  LsTimeline *t = cluster ? ls_run (r->plan, cluster, &h.calibration, &h.nccl, options, NULL, error) : NULL;
  if (t && ret_cluster)
    *ret_cluster = g_steal_pointer (&cluster);
  return t;
}

/* --- hardware with one parameter scaled ---------------------------------------------------------- */

/* Takes the place of a list that others share; elements are copied, their strings borrowed. */
static GArray *
own_list (LsScaled *x, GArray **list)
{
  if (!*list)
    return NULL;
  GArray *own = g_array_copy (*list);
  for (guint i = 0; i < G_N_ELEMENTS (x->own); i++)
    if (!x->own[i]) {
      x->own[i] = own;
      break;
    }
  *list = own;
  return own;
}

/* --- parameters --- */

static void
scale_time (LsTime *t, double by)
{
  *t = (LsTime) llround ((double) *t * by);
}

static void
scale_gpu (LsScaled *x, double flops, double hbm)
{
  LsGpu *gpu = &x->spec.gpu;
  LsGpu before = *gpu;
  for (int dtype = 0; dtype < LS_N_DTYPES; dtype++)
    gpu->peak_flops[dtype] *= flops;
  gpu->vector_flops *= flops;
  gpu->hbm_bytes_per_s *= hbm;
  GArray *measured = own_list (x, &x->calibration.measured);
  for (guint i = 0; measured && i < measured->len; i++) {
    LsMeasuredKernel *row = &g_array_index (measured, LsMeasuredKernel, i);
    const LsKernel kernel = ls_measured_shape (row);
    const LsKindFit *fit = ls_calibration_fit (&x->calibration, &kernel);
    LsTime old = ls_kernel_cost_by (fit, 1, &before, &kernel).alone,
           now = ls_kernel_cost_by (fit, 1, gpu, &kernel).alone;
    if (old > 0)
      scale_time (&row->time, (double) now / (double) old);
  }
}

static void
scale_rates (LsScaled *x, LsLinkPlace place, double by)
{
  LsClusterSpec *s = &x->spec;
  bool is_fabric = place == LS_LINKS_OF_FABRIC;
  for (const LsLinkRow *row = ls_cluster_links; row->name; row++)
    if (row->place == place)
      ls_cluster_link (s, row)->bandwidth_bytes_per_s *= by;
  GArray *links = own_list (x, is_fabric ? &s->network.links : &s->list.links);
  for (guint i = 0; links && i < links->len; i++) {
    LsListLink *link = &g_array_index (links, LsListLink, i);
    if (is_fabric || ls_cluster_spec_is_nvlink (s, link))
      link->link.bandwidth_bytes_per_s *= by;
  }
}

/* NCCL's latencies have those of the links in them: both are scaled, so the links add nothing. */
static void
scale_latency (LsScaled *x, double by)
{
  LsClusterSpec *s = &x->spec;
  LsNccl *n = &x->nccl;
  LsTime *times[] = {
    &n->base_all_reduce,
    &n->base_all_gather,
    &n->base_reduce_scatter,
    &n->base_nvls,
    &n->base_p2p_intra,
    &n->base_p2p_inter,
    &n->hop_intra,
    &n->hop_inter,
    &n->handshake,
    &n->handshake_hop,
    &n->measured_on.nvlink_latency,
    &n->measured_on.nic_latency,
    &n->measured_on.pcie_latency,
    &n->measured_on.staging_latency,
  };
  for (guint i = 0; i < G_N_ELEMENTS (times); i++)
    scale_time (times[i], by);
  for (const LsLinkRow *row = ls_cluster_links; row->name; row++)
    scale_time (&ls_cluster_link (s, row)->latency, by);
  GArray *lists[] = { own_list (x, &s->list.links), own_list (x, &s->network.links) };
  for (guint l = 0; l < G_N_ELEMENTS (lists); l++)
    for (guint i = 0; lists[l] && i < lists[l]->len; i++)
      scale_time (&g_array_index (lists[l], LsListLink, i).link.latency, by);
}

void
ls_scaled_init (LsScaled *x, const LsClusterSpec *spec, const LsHardware *hardware, const LsHostCosts *host,
                LsScale scale, double factor)
{
  *x = (LsScaled) { *spec, hardware->calibration, hardware->nccl, *host, { NULL } };
  switch (scale) {
  case LS_SCALE_GPU_FLOPS:
    scale_gpu (x, factor, 1);
    break;
  case LS_SCALE_HBM_BANDWIDTH:
    scale_gpu (x, 1, factor);
    break;
  case LS_SCALE_NVLINK_BANDWIDTH:
    scale_rates (x, LS_LINKS_OF_GPUS, factor);
    break;
  case LS_SCALE_NIC_BANDWIDTH:
    scale_rates (x, LS_LINKS_OF_FABRIC, factor);
    break;
  case LS_SCALE_NETWORK_LATENCY:
    scale_latency (x, factor);
    break;
  case LS_SCALE_HOST_LAUNCH:
    scale_time (&x->host.cost[LS_HOST_LAUNCH], factor);
    scale_time (&x->host.cost[LS_HOST_COMM], factor);
    scale_time (&x->host.cost[LS_HOST_VIEW], factor);
    scale_time (&x->host.cost[LS_HOST_BATCH], factor);
    scale_time (&x->host.cost[LS_HOST_PRODUCT], factor);
    scale_time (&x->host.cost[LS_HOST_PYTHON], factor);
    break;
  case LS_N_SCALES:
    g_assert_not_reached ();
  }
  const LsNcclLinks links = ls_nccl_links_of (&x->spec);
  ls_nccl_carry (&x->nccl, &links);
}

void
ls_scaled_clear (LsScaled *x)
{
  for (guint i = 0; i < G_N_ELEMENTS (x->own); i++)
    g_clear_pointer (&x->own[i], g_array_unref);
}
