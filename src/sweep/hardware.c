#include "sweep/hardware.h"

#include <lockstep/error.h>

#include "io/read_calibration.h"
#include "io/read_cluster.h"
#include "io/read_nccl.h"

void
ls_hardware_free (LsHardware *h)
{
  if (!h)
    return;
  ls_cluster_spec_clear (&h->spec);
  ls_calibration_clear (&h->calibration);
  ls_nccl_clear (&h->nccl);
  g_free (h);
}

/* What was measured on a GPU: kernels, or a plain roofline if it names no file. */
static gboolean
load_kernels (LsHardware *h, LsDiagList *diags)
{
  if (h->spec.gpu.calibration)
    return ls_calibration_load (h->spec.gpu.calibration, &h->calibration, diags);
  ls_calibration_init_roofline (&h->calibration);
  return TRUE;
}

char *
ls_hardware_nccl_name (const LsGpu *gpu)
{
  return gpu->nccl ? g_strdup (gpu->nccl) : g_strconcat ("nccl-", gpu->calibration ? gpu->calibration : gpu->name, NULL);
}

/* Communication: a file of its own, beside that of the kernels. ICI needs none. */
static gboolean
load_nccl (LsHardware *h, LsDiagList *diags)
{
  if (h->spec.interior == LS_INTERIOR_TORUS)
    return TRUE;
  g_autofree char *name = ls_hardware_nccl_name (&h->spec.gpu);
  return ls_nccl_load (name, &h->nccl, diags);
}

LsHardware *
ls_hardware_load (const char *name_or_path, LsDiagList *diags)
{
  g_autoptr (LsHardware) h = g_new0 (LsHardware, 1);
  if (!ls_cluster_load (name_or_path, &h->spec, diags) || !load_kernels (h, diags)
      || !load_nccl (h, diags))
    return NULL;
  return g_steal_pointer (&h);
}

LsCluster *
ls_hardware_build (const LsHardware *h, uint32_t n_nodes, GError **error)
{
  LsClusterSpec spec = h->spec; /* borrows the strings; the cluster copies them */
  spec.n_nodes = n_nodes;
  return ls_cluster_build (&spec, error);
}

LsCluster *
ls_hardware_build_for (const LsHardware *h, uint32_t n_gpus, GError **error)
{
  LsClusterSpec spec = h->spec; /* borrows, as above */
  ls_cluster_spec_fit (&spec, n_gpus);
  return ls_cluster_build (&spec, error);
}

gboolean
ls_hardware_set_slice (LsHardware *h, const uint32_t slice[LS_TORUS_AXES], GError **error)
{
  const LsTorusSpec *t = &h->spec.torus;
  uint32_t dims[LS_TORUS_AXES] = { 1, 1, 1 }, n = 0;
  while (n < LS_TORUS_AXES && slice[n] > 0) {
    dims[n] = slice[n];
    n++;
  }
  if (n > 0 && n != t->n_axes) {
    g_autofree char *axes = h->spec.interior == LS_INTERIOR_TORUS ? g_strdup_printf ("a torus of %u axes", t->n_axes) : g_strdup ("no torus");
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "--slice with %u axes: %s is %s", n, h->spec.name, axes);
    return FALSE;
  }
  if (n > 0) {
    ls_cluster_spec_set_slice (&h->spec, dims);
    h->spec.torus.is_given = true;
  }
  return TRUE;
}
