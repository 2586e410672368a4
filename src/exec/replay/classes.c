#include "exec/replay/classes.h"

#include <stdbool.h>

LsRankClasses *
ls_rank_classes_of_stretches (uint32_t *class_of, uint32_t n_ranks, uint32_t per_block, uint32_t per_stretch,
                              const uint32_t *kept, uint32_t n_kept)
{
  uint32_t n = n_ranks / per_block * n_kept * per_stretch;
  LsRankClasses *c = g_new (LsRankClasses, 1);
  *c = (LsRankClasses) { .n_ranks = n_ranks,
                         .per_block = per_block,
                         .per_stretch = per_stretch,
                         .n_kept = n_kept,
                         .kept = g_memdup2 (kept, per_block / per_stretch * sizeof *kept),
                         .class_of = class_of,
                         .n_alike = g_new (uint32_t, (gsize) n + 1) };
  for (uint32_t i = n; i-- > 0;) {
    bool goes_on = (i + 1) % per_stretch != 0 && class_of[i] == class_of[i + 1];
    c->n_alike[i] = goes_on ? c->n_alike[i + 1] + 1 : 1;
  }
  return c;
}

LsRankClasses *
ls_rank_classes_new (uint32_t *class_of, uint32_t n_ranks)
{
  const uint32_t one = 0;
  return ls_rank_classes_of_stretches (class_of, n_ranks, n_ranks, n_ranks, &one, 1);
}

void
ls_rank_classes_free (LsRankClasses *c)
{
  if (!c)
    return;
  g_free (c->kept);
  g_free (c->class_of);
  g_free (c->n_alike);
  g_free (c);
}

void
ls_rank_classes_count (const LsRankClasses *c, uint32_t *ret_first, uint32_t *ret_n)
{
  for (uint32_t rank = 0, end; rank < c->n_ranks; rank = end) {
    uint32_t class = ls_rank_class (c, rank);
    end = ls_rank_classes_end (c, rank);
    if (ret_n[class] == 0)
      ret_first[class] = rank;
    ret_n[class] += end - rank;
  }
}

/* ---- of resources ---- */

void
place_classes_free (PlaceClasses *p)
{
  if (!p)
    return;
  g_free (p->class_of_place);
  g_free (p->first);
  g_free (p->class_of);
  g_free (p);
}

uint32_t
place_classes_of (const PlaceClasses *p, uint32_t resource)
{
  uint32_t local, place = ls_places_find (&p->at, resource, &local);
  return p->class_of[p->first[p->class_of_place[place]] + local];
}
