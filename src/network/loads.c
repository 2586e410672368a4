#include "network/algorithm.h"

#include <stdlib.h>

#include "cluster/route.h"

LsLoadList
ls_load_list_new (void)
{
  return (LsLoadList) { .items = g_array_new (FALSE, FALSE, sizeof (LsLoad)) };
}

void
ls_load_list_add (LsLoadList *list, uint32_t resource, uint64_t coef)
{
  LsLoad load = { .resource = resource, .coef = coef };
  if (coef > 0)
    g_array_append_val (list->items, load);
}

void
ls_load_list_add_route (LsLoadList *list, const LsCluster *c, uint32_t from, uint32_t to, uint64_t coef)
{
  LsRoute route;
  ls_route (c, from, to, LS_NIC_AUTO, LS_NIC_AUTO, &route);
  for (uint32_t i = 0; i < route.n_hops; i++)
    ls_load_list_add (list, route.hop[i].trunk, coef * route.hop[i].share / LS_HOP_WHOLE);
}

static int
by_resource (gconstpointer a, gconstpointer b)
{
  uint32_t x = ((const LsLoad *) a)->resource, y = ((const LsLoad *) b)->resource;
  return (x > y) - (x < y);
}

void
ls_load_list_finish (LsLoadList *list, LsArena *arena, LsPhase *phase)
{
  GArray *items = list->items;
  g_array_sort (items, by_resource);
  phase->loads = ls_arena_new_array (arena, LsLoad, items->len);
  phase->n_loads = 0;
  for (guint i = 0; i < items->len; i++) {
    const LsLoad *load = &g_array_index (items, LsLoad, i);
    LsLoad *last = phase->n_loads > 0 ? &phase->loads[phase->n_loads - 1] : NULL;
    if (last && last->resource == load->resource)
      last->coef += load->coef;
    else
      phase->loads[phase->n_loads++] = *load;
  }
  g_array_unref (g_steal_pointer (&list->items));
}
