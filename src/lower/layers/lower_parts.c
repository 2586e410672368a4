/* lower/layers/lower_parts.c — what an embedding, a layer of each kind and a head take on one rank: each
 * lowered as a chunk of its own, forwards and backwards with what runs again, as lower_p2p.c times
 * the passes of chunks; and the operators of a layer, with what of them runs again.
 *
 * Deviations: products of all layers are in one format, also where those at the ends of the model are in
 * bf16; full recomputation by block runs only the first layers of a chunk again; here each layer runs again,
 * or none does. */

#include <string.h>

#include "lower/balance.h"
#include "lower/layers/lower_layers.h"
#include "lower/pipeline/lower_pipe.h"
#include "strategy/shard.h"

/* ---- See balance.h ---- */

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

/* An embedding, a layer or a head; without any of them 0. */
static LsTime
part_time (Lower *l, uint32_t layer, uint32_t n_layers, bool has_embedding, bool has_head)
{
  Chunk c;
  chunk_init (l, &c, layer, n_layers, has_embedding, has_head);
  c.n_recomputed = recompute_n_layers (l, 0, n_layers);
  recompute_prepare (l, &c);
  LsTime time = pass_time (l, &c, LS_ACTION_F) + pass_time (l, &c, LS_ACTION_B);
  chunk_clear (&c);
  return time;
}

/* Of the first layer of each kind. */
static void
layer_times (Lower *l, LsTime ret_times[LS_MAX_MODEL_KINDS])
{
  uint32_t first[LS_MAX_MODEL_KINDS], n = ls_model_first_of_kinds (l->model, first);
  for (uint32_t k = 0; k < n; k++)
    ret_times[k] = part_time (l, first[k], 1, false, false);
}

gboolean
ls_part_times (const LsModel *m, const LsStrategy *s, const LsLowerCosts *costs, LsPartTimes *ret_times,
               GError **error)
{
  Lower l;
  gboolean ok = lower_begin (&l, m, s, costs, error);
  l.shard.bf16_first = l.shard.bf16_last = 0;
  if (ok) {
    *ret_times = (LsPartTimes) {
      .embedding = part_time (&l, 0, 0, true, false),
      .head = part_time (&l, 0, 0, false, true),
    };
    layer_times (&l, ret_times->layer);
  }
  lower_clear (&l);
  return ok;
}

/* The first of the most frequent kind; of the dense one if it is as frequent as another. */
static uint32_t
usual_layer (const LsModel *m)
{
  uint32_t first[LS_MAX_MODEL_KINDS], n_kinds = ls_model_first_of_kinds (m, first);
  uint32_t n_of[LS_MAX_MODEL_KINDS] = { 0 }, best = 0;
  for (uint32_t i = 0; i < m->n_layers; i++)
    n_of[ls_model_kind_place (m, first, n_kinds, i)]++;
  for (uint32_t k = 1; k < n_kinds; k++) {
    bool is_plainer = ls_model_layer_kind (m, first[k]) < ls_model_layer_kind (m, first[best]);
    best = n_of[k] > n_of[best] || (n_of[k] == n_of[best] && is_plainer) ? k : best;
  }
  return first[best];
}

gboolean
ls_layer_operators (const LsModel *m, const LsStrategy *s, GArray *operators, GError **error)
{
  Lower l;
  gboolean ok = lower_begin (&l, m, s, NULL, error);
  l.shard.bf16_first = l.shard.bf16_last = 0;
  l.shard.documents = documents_at (&l, 0);
  if (ok)
    ls_operators_layer (m, &l.shard, usual_layer (m), operators);
  lower_clear (&l);
  return ok;
}

gboolean
ls_strategy_balance (LsStrategy *s, const LsModel *m, const LsLowerCosts *costs, GError **error)
{
  LsPartTimes times;
  if (!ls_chunks_want_balance (s, m))
    return TRUE;
  if (!ls_part_times (m, s, costs, &times, error))
    return FALSE;
  ls_strategy_set_balanced (s, m, &times);
  return TRUE;
}

void
ls_strategy_set_layers (LsStrategy *s, const uint32_t *layers)
{
  s->layout.n_layers_per_chunk = s->pp * s->vpp;
  s->layout.layers_per_chunk = g_memdup2 (layers, s->layout.n_layers_per_chunk * sizeof *layers);
  s->layout.layers_are_found = true;
}

static bool
is_by_rule (const LsStrategy *s, const LsModel *m, uint32_t *ret_layers)
{
  uint32_t n = s->pp * s->vpp;
  return (s->layout.layer_rule == LS_LAYER_RULE_WEIGHTS && ls_chunks_by_weights (m, n, ret_layers))
      || (s->layout.layer_rule == LS_LAYER_RULE_MODULES && ls_chunks_by_modules (m, n, ret_layers));
}

void
ls_strategy_set_balanced (LsStrategy *s, const LsModel *m, const LsPartTimes *times)
{
  g_autofree uint32_t *layers = g_new (uint32_t, (gsize) s->pp * s->vpp);
  if (!is_by_rule (s, m, layers))
    ls_balance_layers (m, s, times, layers);
  ls_strategy_set_layers (s, layers);
}

GArray *
ls_layer_again (const LsModel *m, const LsStrategy *s, const LsShard *shard, const GArray *operators)
{
  Lower l = { .model = m, .s = s, .shard = *shard, .act = ls_dtype_between (shard->dtype) };
  g_autoptr (GArray) layer_of = g_array_sized_new (FALSE, TRUE, sizeof (uint16_t), operators->len);
  g_array_set_size (layer_of, operators->len);
  g_autoptr (GPtrArray) pointers = pointers_to (operators);
  Chunk c = { .n_layers = 1, .n_recomputed = 1, .operators = pointers, .layer_of = layer_of };
  if (recomputes_ops (&l))
    recompute_prepare (&l, &c);
  g_clear_pointer (&c.again_at, g_ptr_array_unref);
  return c.again;
}
