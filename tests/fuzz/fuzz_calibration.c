/* Any bytes as a calibration: read, or refused with reasons. What is read gives
 * every kernel a time. */
#include "fuzz.h"

#include "data/machines/read_calibration.h"

static const LsGpu gpu
    = { .vector_flops = 1e13, .hbm_bytes_per_s = 1e12, .hbm_efficiency = 0.9, .n_sm = 100 };

static bool
read_calibration (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsCalibration c;
  if (!ls_calibration_read (doc, &c, diags))
    return false;
  for (int kind = 0; kind < LS_N_KERNEL_KINDS; kind++) {
    LsKernel k = ls_kernel_stream ("any", (LsKernelKind) kind, LS_DTYPE_FP16, 1024, 1024, 4e6, 2e9);
    k.k = 64;
    k.batch = 1;
    LsKernelCost cost = ls_kernel_cost (&c, &gpu, &k);
    g_assert (cost.alone >= 0 && ls_kernel_time_beside (&cost, 0.5) >= cost.alone);
  }
  ls_calibration_clear (&c);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "fuzz.json", read_calibration);
  return 0;
}
