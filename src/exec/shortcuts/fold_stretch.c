#include "exec/shortcuts/fold_stretch.h"

#include <string.h>

#include "base/gcd.h"

/* Tiers of which nothing is above hosts do not come again: there may be one for all. */
static void
set_tiers (Stretches *s, uint32_t n_blocks, uint32_t n)
{
  const uint32_t n_places[3] = { s->whole->n_hosts, s->whole->n_groups, s->whole->n_pods };
  const bool comes_again[3] = { true, s->whole->trunks_per_group > 0, s->whole->trunks_per_pod > 0 };
  uint32_t first = 0;
  for (int k = 0; k < 3; k++) {
    uint32_t block = MAX (1, comes_again[k] ? n_places[k] / n_blocks : n_places[k]);
    s->tier[k] = (StretchTier) { first, first, block, comes_again[k] ? block / n : block };
    first += n_places[k];
  }
  s->n = s->n_kept = n;
  s->gpus_of_block = s->tier[0].block * s->whole->gpus_per_host;
  s->gpus_of_stretch = s->tier[0].stretch * s->whole->gpus_per_host;
}

void
stretches_init (Stretches *s, const LsPlaces *whole)
{
  *s = (Stretches) { .whole = whole, .at = *whole };
  set_tiers (s, 1, 1);
}

void
stretches_clear (Stretches *s)
{
  g_clear_pointer (&s->kept, g_free);
  g_clear_pointer (&s->first, g_free);
  g_clear_pointer (&s->n_of, g_free);
}

/* Whether ranks of a block have the same roles a stretch on: a block is of whole stages, or part of one. */
static bool
have_same_roles (const LsPlan *plan, uint32_t block, uint32_t stretch)
{
  const uint32_t *role = plan->role_of_rank;
  for (uint32_t first = 0; role && first < plan->n_ranks; first += block)
    if (memcmp (&role[first], &role[first + stretch], (block - stretch) * sizeof *role) != 0)
      return false;
  return true;
}

bool
stretches_find (Stretches *s, const LsPlan *plan, uint32_t period)
{
  uint32_t per_host = s->whole->gpus_per_host, block, unit = ls_mesh_binding_repeats (plan->by_mesh, &block);
  uint64_t gpus = period * (uint64_t) per_host, stretch = gpus / ls_gcd ((uint32_t) gpus, unit) * unit;
  if (plan->n_ranks != s->whole->n_hosts * per_host || block % per_host != 0 || stretch >= block
      || block % stretch != 0 || !have_same_roles (plan, block, (uint32_t) stretch))
    return false;
  set_tiers (s, plan->n_ranks / block, (uint32_t) (block / stretch));
  return true;
}

void
stretches_keep (Stretches *s, const uint32_t *sort, uint32_t n_sorts)
{
  uint32_t *n_kept[3] = { &s->at.n_hosts, &s->at.n_groups, &s->at.n_pods }, first = 0;
  s->kept = g_memdup2 (sort, s->n * sizeof *sort);
  s->first = g_new (uint32_t, n_sorts);
  s->n_of = g_new0 (uint32_t, n_sorts);
  for (uint32_t i = 0; i < s->n; i++)
    if (s->n_of[sort[i]]++ == 0)
      s->first[sort[i]] = i;
  s->n_kept = n_sorts;
  for (int k = 0; k < 3; k++) {
    StretchTier *t = &s->tier[k];
    t->first_kept = first;
    if (t->stretch < t->block)
      *n_kept[k] = *n_kept[k] / t->block * n_sorts * t->stretch;
    first += *n_kept[k];
  }
}

void
stretches_spread (const Stretches *s, const uint32_t *of_kept, uint32_t *ret)
{
  const uint32_t n[3] = { s->whole->n_hosts, s->whole->n_groups, s->whole->n_pods };
  for (int k = 0; k < 3; k++)
    for (uint32_t i = 0; i < n[k]; i += s->tier[k].stretch) {
      uint32_t place = s->tier[k].first + i;
      memcpy (&ret[place], &of_kept[stretch_kept (s, place)],
              MIN (s->tier[k].stretch, n[k] - i) * sizeof *ret);
    }
}

uint32_t
stretch_n_gpus (const Stretches *s)
{
  return s->at.n_hosts * s->at.gpus_per_host;
}

LsRankClasses *
stretch_classes_new (const Stretches *s, uint32_t *class_of, uint32_t n_ranks)
{
  return s->kept ? ls_rank_classes_of_stretches (class_of, n_ranks, s->gpus_of_block, s->gpus_of_stretch,
                                                 s->kept, s->n_kept)
                 : ls_rank_classes_new (class_of, n_ranks);
}
