/* See chunk_weights.h. */
#include "lower/chunk_weights.h"

#include <string.h>

static double
layer_weights (const LsModel *m)
{
  double heads = 4.0 * m->n_heads * m->head_dim, mlp = (ls_mlp_is_gated (m->mlp) ? 3.0 : 2.0) * m->ffn;
  return (heads + mlp) * m->hidden;
}

bool
ls_chunks_by_weights (const LsModel *m, uint32_t n, uint32_t *ret_layers)
{
  double w = layer_weights (m), whole = m->n_layers * w + (double) m->vocab * m->hidden;
  memset (ret_layers, 0, n * sizeof *ret_layers);
  uint32_t c = 0;
  for (uint32_t i = 0; i < m->n_layers; i++) {
    ret_layers[c]++;
    if (c + 1 < n && (i + 1) * w > whole * ((c + 1.0) / n))
      c++;
  }
  return c == n - 1;
}
