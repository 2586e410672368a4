/* Any bytes as a model, ours or of Hugging Face: read, or refused with reasons. What
 * is read can be counted: parameters do not wrap, FLOPs are finite. */
#include "fuzz.h"

#include <math.h>

#include "data/jobs/read_model.h"

static bool
read_model (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  LsModel m;
  if (!ls_model_read (doc, &m, notes, diags))
    return false;
  uint64_t vocab = ls_model_padded_vocab (&m, 1), params = ls_model_params (&m, vocab);
  g_assert (params >= ls_model_layer_params (&m, 0) && params >= ls_model_linear_params (&m, vocab));
  double flops = ls_model_flops (&m, vocab, m.seq, 1, false);
  g_assert (isfinite (flops) && flops > 0 && ls_model_flops (&m, vocab, m.seq, 1, true) <= flops);
  ls_model_clear (&m);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "fuzz.json", read_model);
  return 0;
}
