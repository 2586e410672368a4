/* Any bytes as an accelerator: read, or refused with reasons. */
#include "fuzz.h"

#include "data/machines/read_gpu.h"

static bool
read_gpu (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsGpu gpu;
  if (!ls_gpu_read (doc, &gpu, diags))
    return false;
  g_assert (gpu.hbm_bytes_per_s > 0 && gpu.hbm_efficiency > 0 && gpu.hbm_efficiency <= 1);
  ls_gpu_clear (&gpu);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "fuzz.json", read_gpu);
  return 0;
}
