#include "ask/rank_parts.h"

#include "model/operators.h"
#include "strategy/shard.h"

uint32_t *
ls_first_layers (const LsJobResult *r, uint32_t *ret_n_stages)
{
  const LsStrategy *s = &r->strategy;
  *ret_n_stages = s->pp * s->vpp;
  if (!r->model.name || ls_chunks_want_balance (s, &r->model))
    return NULL;
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  g_autofree uint32_t *layers = g_new0 (uint32_t, *ret_n_stages + 1);
  if (!ls_chunk_layers (s, &r->model, layers, none))
    return NULL;
  uint32_t sum = 0;
  for (uint32_t i = 0; i <= *ret_n_stages; i++) {
    uint32_t n = layers[i];
    layers[i] = sum;
    sum += n;
  }
  return g_steal_pointer (&layers);
}

static void
add_part (GArray *parts, uint32_t layer, const GArray *operators)
{
  LsRankPart part = { .layer = layer };
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    for (uint32_t p = 0; p < o->params.n; p++)
      part.n_params += o->params.numel[p];
  }
  g_array_append_val (parts, part);
}

/* Which stages its program passes. */
static bool *
stages_of (const LsProgram *p, uint32_t n_stages)
{
  bool *is_held = g_new0 (bool, n_stages);
  for (uint32_t i = 0; i < p->n_instances; i++)
    if (p->instances[i].stage < n_stages)
      is_held[p->instances[i].stage] = true;
  return is_held;
}

GArray *
ls_rank_parts (const LsJobResult *r, uint32_t role, const uint32_t *first_layers, uint32_t n_stages)
{
  GArray *parts = g_array_new (FALSE, FALSE, sizeof (LsRankPart));
  if (!first_layers)
    return parts;
  const LsModel *m = &r->model;
  const LsShard shard = ls_strategy_shard (&r->strategy, &r->model);
  g_autofree bool *is_held = stages_of (&r->plan->programs[role], n_stages);
  g_autoptr (GArray) operators = ls_operators_new ();
  if (is_held[0]) {
    ls_operators_embedding (m, &shard, operators);
    add_part (parts, LS_PART_EMBEDDING, operators);
  }
  for (uint32_t stage = 1; stage < n_stages && shard.sides_are_apart; stage++)
    if (is_held[stage] && first_layers[stage] == m->sides.encoder_layers) {
      ls_operators_decoder_embedding (m, &shard, operators);
      add_part (parts, LS_PART_EMBEDDING, operators);
    }
  for (uint32_t stage = 0; stage < n_stages; stage++)
    for (uint32_t l = first_layers[stage]; is_held[stage] && l < first_layers[stage + 1]; l++) {
      g_array_set_size (operators, 0);
      ls_operators_layer (m, &shard, l, operators);
      if (shard.sides_are_apart && l + 1 == m->sides.encoder_layers)
        ls_operators_encoder_end (m, &shard, operators);
      add_part (parts, l, operators);
    }
  g_array_set_size (operators, 0);
  if (is_held[n_stages - 1]) {
    ls_operators_head (m, &shard, !m->tied_embeddings || !is_held[0], operators);
    add_part (parts, LS_PART_HEAD, operators);
  }
  return parts;
}
