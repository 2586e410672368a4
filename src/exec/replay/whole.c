#include "exec/replay/whole.h"

#include "exec/replay/state.h"

void
whole_is_itself (Whole *w, const Run *x)
{
  w->n_resources = ls_cluster_n_resources (x->cluster);
  w->capacity = run_capacities (x);
}

void
whole_clear (Whole *w)
{
  ls_rank_classes_free (w->classes);
  g_free (w->rank);
  g_free (w->n_of_rank);
  g_free (w->comm);
  g_free (w->n_of_comm);
  g_free (w->capacity);
  place_classes_free (w->places);
  g_free (w->comm_weight);
  g_free (w->channel_weight);
  g_free (w->copy_weight);
  g_free (w->calls);
}

void
whole_uses (const Whole *w, const LsLoad *loads, uint32_t n, LsFlowUse *ret_uses)
{
  for (uint32_t i = 0; i < n; i++) {
    g_assert (loads[i].resource < w->n_resources && loads[i].coef > 0);
    ret_uses[i] = (LsFlowUse) { .resource = loads[i].resource, .coef = loads[i].coef };
  }
}

uint64_t
whole_weight_of_comm (const Whole *w, uint32_t comm)
{
  return w->comm_weight ? w->comm_weight[comm] : digest_of (comm);
}

/* To a rank at a distance. */
uint64_t
whole_weight_of_channel (const Whole *w, uint32_t channel)
{
  uint32_t rank = channel / 2;
  return w->channel_weight ? w->channel_weight[channel]
                           : digest_weight (ls_plan_peer (w->plan, rank, 1 - channel % 2) - rank, rank);
}

uint64_t
whole_weight_of_copy (const Whole *w, uint32_t rank)
{
  return w->copy_weight ? w->copy_weight[rank] : digest_weight (DIGEST_COPY, rank);
}
