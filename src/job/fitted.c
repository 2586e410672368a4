#include "job/fitted.h"

#include <math.h>

#include "compute/measured.h"

static bool
is_compute (int kind)
{
  return ls_kernel_is_gemm (kind) || ls_kernel_is_attention (kind);
}

/* The table goes before the fit, and must be as fast. */
static void
apply_compute (LsCalibration *c, double by)
{
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++)
    ls_entry_fit (c, slot)->compute_efficiency *= by;
  for (guint i = 0; c->measured && i < c->measured->len; i++) {
    LsMeasuredKernel *row = &g_array_index (c->measured, LsMeasuredKernel, i);
    if (is_compute (row->kind))
      row->time = (LsTime) llround ((double) row->time / by);
  }
}

static void
apply_link (LsLinkSpec *link, double by)
{
  link->efficiency = fmin (1, link->efficiency * by);
}

static void
apply_links (GArray *links, double by)
{
  for (guint i = 0; links && i < links->len; i++)
    apply_link (&g_array_index (links, LsListLink, i).link, by);
}

static void
apply_intra (LsHardware *h, double by)
{
  LsClusterSpec *s = &h->spec;
  LsLinkSpec *const links[] = { &s->server.nvlink, &s->server.pcie, &s->server.c2c, &s->ici };
  for (guint i = 0; i < G_N_ELEMENTS (links); i++)
    apply_link (links[i], by);
  apply_links (s->list.links, by);
  h->nccl.ring_bus_intra *= by;
  h->nccl.nvls_bus *= by;
  h->nccl.p2p_intra *= by;
}

static void
apply_inter (LsHardware *h, double by)
{
  LsClusterSpec *s = &h->spec;
  LsLinkSpec *const links[] = { &s->nics.port, &s->network.spine, &s->network.core };
  for (guint i = 0; i < G_N_ELEMENTS (links); i++)
    apply_link (links[i], by);
  apply_links (s->network.links, by);
  h->nccl.ring_bus_per_nic *= by;
  h->nccl.p2p_inter *= by;
}

static bool
changes (double factor)
{
  return factor > 0 && factor != 1;
}

void
ls_fitted_apply (LsHardware *h, const LsFitted *f)
{
  if (changes (f->compute))
    apply_compute (&h->calibration, f->compute);
  if (changes (f->overlap))
    h->nccl.stall_per_byte *= f->overlap;
  if (changes (f->intra_node))
    apply_intra (h, f->intra_node);
  if (changes (f->inter_node))
    apply_inter (h, f->inter_node);
}

static GArray *
list_copy (GArray *list)
{
  return list ? g_array_copy (list) : NULL;
}

LsHardware *
ls_fitted_copy_new (const LsHardware *base, const LsFitted *fitted)
{
  LsHardware *h = g_new (LsHardware, 1);
  *h = *base;
  h->calibration.measured = list_copy (base->calibration.measured);
  h->spec.list.links = list_copy (base->spec.list.links);
  h->spec.network.links = list_copy (base->spec.network.links);
  h->spec.fitted = *fitted;
  ls_fitted_apply (h, fitted);
  return h;
}

void
ls_fitted_copy_free (LsHardware *h)
{
  if (!h)
    return;
  g_clear_pointer (&h->calibration.measured, g_array_unref);
  g_clear_pointer (&h->spec.list.links, g_array_unref);
  g_clear_pointer (&h->spec.network.links, g_array_unref);
  g_free (h);
}
