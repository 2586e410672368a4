#include "cluster/gpu.h"

void
ls_gpu_clear (LsGpu *gpu)
{
  if (!gpu)
    return;
  g_clear_pointer (&gpu->name, g_free);
  g_clear_pointer (&gpu->source, g_free);
  g_clear_pointer (&gpu->calibration, g_free);
}
