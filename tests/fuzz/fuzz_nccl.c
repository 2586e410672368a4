/* Any bytes as what NCCL does on an accelerator: read, or refused with reasons. */
#include "fuzz.h"

#include "data/machines/read_nccl.h"

static bool
read_nccl (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsNccl nccl;
  if (!ls_nccl_read (doc, &nccl, diags))
    return false;
  g_assert (nccl.ring_bus_intra > 0 && nccl.base_all_reduce >= 0);
  ls_nccl_clear (&nccl);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "fuzz.json", read_nccl);
  return 0;
}
