/* Any bytes as the config.json of a Hugging Face model, also if they do not say that
 * they are one. */
#include "fuzz.h"

#include "data/jobs/read_hf.h"

static bool
read_hf (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  LsModel m;
  ls_is_hf_config (doc);
  if (!ls_model_read_hf (doc, &m, notes, diags))
    return false;
  g_assert (m.n_layers > 0 && m.hidden > 0 && m.n_heads % m.n_kv_heads == 0);
  ls_model_notes_drop_length (notes);
  ls_model_clear (&m);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "folder/config.json", read_hf);
  return 0;
}
