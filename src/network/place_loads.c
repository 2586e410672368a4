#include "network/place_loads.h"

#define MOST_PER_GPU 4 /* hosts in between, of each of these GPUs */

static void
free_row (gpointer row)
{
  g_free (((LsPlaceRow *) row)->sums);
}

bool
ls_place_loads_init (LsPlaceLoads *p, const LsPlaces *at, const uint32_t *gpus, uint32_t n_gpus)
{
  uint32_t first = UINT32_MAX, last = 0;
  for (uint32_t i = 0; i < n_gpus; i++) {
    first = MIN (first, gpus[i]);
    last = MAX (last, gpus[i]);
  }
  first /= at->gpus_per_host;
  last /= at->gpus_per_host;
  if (n_gpus == 0 || (last - first) / MOST_PER_GPU >= n_gpus)
    return false;
  *p = (LsPlaceLoads) { .at = at, .rows = g_array_new (FALSE, FALSE, sizeof (LsPlaceRow)) };
  g_array_set_clear_func (p->rows, free_row);
  for (uint32_t tier = 0; tier < LS_N_TIERS; tier++) {
    p->first[tier] = ls_places_of_host (at, first, tier);
    p->n[tier] = ls_places_of_host (at, last, tier) - p->first[tier] + 1;
  }
  return true;
}

void
ls_place_loads_clear (LsPlaceLoads *p)
{
  g_clear_pointer (&p->rows, g_array_unref);
}

uint32_t
ls_place_loads_row (LsPlaceLoads *p, uint32_t tier, uint32_t local)
{
  for (guint i = 0; i < p->rows->len; i++) {
    const LsPlaceRow *row = &g_array_index (p->rows, LsPlaceRow, i);
    if (row->tier == tier && row->local == local)
      return i;
  }
  const LsPlaceRow row = { tier, local, g_new0 (uint64_t, p->n[tier]) };
  g_array_append_val (p->rows, row);
  return p->rows->len - 1;
}

static int
by_tier (const void *a, const void *b)
{
  const LsPlaceRow *x = a, *y = b;
  return x->tier != y->tier ? (x->tier > y->tier) - (x->tier < y->tier)
                            : (x->local > y->local) - (x->local < y->local);
}

/* Of rows of one tier, which are in order. */
static void
add_tier (const LsPlaceLoads *p, const LsPlaceRow *rows, uint32_t n_rows, LsPhase *phase)
{
  for (uint32_t place = 0; place < p->n[rows->tier]; place++)
    for (uint32_t i = 0; i < n_rows; i++)
      if (rows[i].sums[place] > 0)
        phase->loads[phase->n_loads++]
            = (LsLoad) { ls_places_resource (p->at, p->first[rows->tier] + place, rows[i].local),
                         rows[i].sums[place] };
}

static uint32_t
count (const LsPlaceLoads *p, const LsPlaceRow *rows, uint32_t n_rows)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < n_rows; i++)
    for (uint32_t place = 0; place < p->n[rows[i].tier]; place++)
      n += rows[i].sums[place] > 0;
  return n;
}

void
ls_place_loads_finish (LsPlaceLoads *p, LsArena *arena, LsPhase *phase)
{
  g_array_sort (p->rows, by_tier);
  const LsPlaceRow *rows = (const LsPlaceRow *) p->rows->data;
  phase->n_loads = 0;
  phase->loads = ls_arena_new_array (arena, LsLoad, MAX (1, count (p, rows, p->rows->len)));
  for (uint32_t from = 0, to = 0; from < p->rows->len; from = to) {
    while (to < p->rows->len && rows[to].tier == rows[from].tier)
      to++;
    add_tier (p, &rows[from], to - from, phase);
  }
}
