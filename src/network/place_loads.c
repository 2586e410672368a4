#include "network/place_loads.h"

#include <string.h>

#include "base/order.h"

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
ls_place_loads_row (LsPlaceLoads *p, uint32_t tier, const uint32_t *local, uint32_t n)
{
  for (guint i = 0; i < p->rows->len; i++) {
    const LsPlaceRow *row = &g_array_index (p->rows, LsPlaceRow, i);
    if (row->tier == tier && row->n == n && memcmp (row->local, local, n * sizeof *local) == 0)
      return i;
  }
  LsPlaceRow row = { .tier = tier, .n = n, .sums = g_new0 (uint64_t, p->n[tier]) };
  memcpy (row.local, local, n * sizeof *local);
  g_array_append_val (p->rows, row);
  return p->rows->len - 1;
}

/* A trunk of a tier, by its number at a place. */
typedef struct {
  uint32_t local;
  uint64_t *sums; /* [places of the tier] */
} Trunk;

static void
free_trunk (gpointer trunk)
{
  g_free (((Trunk *) trunk)->sums);
}

static int
by_local (const void *a, const void *b)
{
  return LS_ORDER (((const Trunk *) a)->local, ((const Trunk *) b)->local);
}

static uint64_t *
sums_of (const LsPlaceLoads *p, GArray *trunks, uint32_t tier, uint32_t local)
{
  for (guint i = 0; i < trunks->len; i++)
    if (g_array_index (trunks, Trunk, i).local == local)
      return g_array_index (trunks, Trunk, i).sums;
  const Trunk own = { local, g_new0 (uint64_t, p->n[tier]) };
  g_array_append_val (trunks, own);
  return own.sums;
}

/* What all rows say of each trunk of a tier, in order; newly allocated. */
static GArray *
trunks_new (const LsPlaceLoads *p, uint32_t tier)
{
  GArray *trunks = g_array_new (FALSE, FALSE, sizeof (Trunk));
  g_array_set_clear_func (trunks, free_trunk);
  for (guint r = 0; r < p->rows->len; r++) {
    const LsPlaceRow *row = &g_array_index (p->rows, LsPlaceRow, r);
    for (uint32_t i = 0; row->tier == tier && i < row->n; i++) {
      uint64_t *sums = sums_of (p, trunks, tier, row->local[i]);
      for (uint32_t place = 0; place < p->n[tier]; place++)
        sums[place] += row->sums[place];
    }
  }
  g_array_sort (trunks, by_local);
  return trunks;
}

static void
add_tier (const LsPlaceLoads *p, uint32_t tier, const GArray *trunks, LsPhase *phase)
{
  const Trunk *trunk = (const Trunk *) trunks->data;
  for (uint32_t place = 0; place < p->n[tier]; place++)
    for (guint i = 0; i < trunks->len; i++)
      if (trunk[i].sums[place] > 0)
        phase->loads[phase->n_loads++]
            = (LsLoad) { ls_places_resource (p->at, p->first[tier] + place, trunk[i].local),
                         trunk[i].sums[place] };
}

static uint32_t
count (const LsPlaceLoads *p, uint32_t tier, const GArray *trunks)
{
  uint32_t n = 0;
  for (guint i = 0; i < trunks->len; i++)
    for (uint32_t place = 0; place < p->n[tier]; place++)
      n += g_array_index (trunks, Trunk, i).sums[place] > 0;
  return n;
}

void
ls_place_loads_finish (LsPlaceLoads *p, LsArena *arena, LsPhase *phase)
{
  GArray *trunks[LS_N_TIERS];
  uint32_t n = 0;
  for (uint32_t tier = 0; tier < LS_N_TIERS; tier++) {
    trunks[tier] = trunks_new (p, tier);
    n += count (p, tier, trunks[tier]);
  }
  phase->n_loads = 0;
  phase->loads = ls_arena_new_array (arena, LsLoad, MAX (1, n));
  for (uint32_t tier = 0; tier < LS_N_TIERS; tier++) {
    add_tier (p, tier, trunks[tier], phase);
    g_array_unref (trunks[tier]);
  }
}
