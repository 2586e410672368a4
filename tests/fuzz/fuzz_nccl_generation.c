/* Any bytes as NCCL's tables for a generation of GPUs: read, or refused with reasons. */
#include "fuzz.h"

#include "data/machines/read_nccl_tables.h"

static bool
read_tables (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsNcclTables tables;
  if (!ls_nccl_tables_read (doc, &tables, diags))
    return false;
  g_assert (tables.nvlink > 0 && tables.rates_intra[0] > 0 && tables.rates_intra[LS_NCCL_MAX_RATES] == 0);
  ls_nccl_tables_clear (&tables);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "fuzz.json", read_tables);
  return 0;
}
