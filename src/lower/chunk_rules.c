/* See chunk_rules.h. */
#include "lower/chunk_rules.h"

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

#define N_OTHERS 3 /* modules: embedding, before the layers; last norm and head, behind them */

bool
ls_chunks_by_modules (const LsModel *m, uint32_t n, uint32_t *ret_layers)
{
  uint64_t n_modules = (uint64_t) m->n_layers + N_OTHERS, first = 0, n_empty = 0;
  for (uint32_t c = 0; c < n; c++) {
    uint64_t end = first + n_modules / n + (c < n_modules % n ? 1 : 0);
    uint64_t from = MAX (first, 1), to = MIN (end, m->n_layers + UINT64_C (1));
    ret_layers[c] = to > from ? (uint32_t) (to - from) : 0;
    n_empty += c > 0 && c + 1 < n && ret_layers[c] == 0;
    first = end;
  }
  return n_empty == 0;
}
