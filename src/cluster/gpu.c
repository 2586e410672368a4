#include "cluster/gpu.h"

void
ls_gpu_copy (const LsGpu *gpu, LsGpu *ret_copy)
{
  *ret_copy = *gpu;
  ret_copy->name = g_strdup (gpu->name);
  ret_copy->source = g_strdup (gpu->source);
  ret_copy->calibration = g_strdup (gpu->calibration);
  ret_copy->nccl = g_strdup (gpu->nccl);
  ret_copy->access = g_strdup (gpu->access);
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
  g_clear_pointer (&gpu->calibration, g_free);
  g_clear_pointer (&gpu->nccl, g_free);
  g_clear_pointer (&gpu->access, g_free);
  g_clear_pointer (&gpu->kernels_known.of, g_free);
  g_clear_pointer (&gpu->collectives_known.of, g_free);
}
