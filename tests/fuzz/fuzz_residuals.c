/* Any bytes as what published runs measured: read, or refused with reasons; what was read makes
 * an interval, or there is a reason. */
#include "fuzz.h"

#include "data/measured/read_residuals.h"

static bool
read_residuals (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsResiduals) r = ls_residuals_read (doc, diags);
  if (!r)
    return false;
  const LsIntervalJob job = { "volta", "Megatron-LM", 0.4 };
  LsInterval interval;
  ls_interval_find (r, NULL, &job, &interval);
  g_assert (interval.none || (interval.low > 0 && interval.low <= interval.high));
  ls_interval_clear (&interval);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "residuals.json", read_residuals);
  return 0;
}
