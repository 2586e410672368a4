#include "network/algorithm.h"

#include <math.h>

#include "cluster/route.h"
#include "core/maxmin.h" /* LS_COEF_ONE */

LsLoadList
ls_load_list_new (const LsCluster *c)
{
  return (LsLoadList) { .cluster = c,
                        .sum = g_new0 (uint64_t, ls_cluster_n_resources (c)),
                        .touched = g_array_new (FALSE, FALSE, sizeof (uint32_t)) };
}

void
ls_load_list_add (LsLoadList *list, uint32_t resource, uint64_t coef)
{
  if (coef == 0)
    return;
  if (list->sum[resource] == 0)
    g_array_append_val (list->touched, resource);
  list->sum[resource] += coef;
}

/* A channel has a coefficient of LS_COEF_ONE, the last one what is over. */
void
ls_load_list_add_route (LsLoadList *list, uint32_t from, uint32_t to, uint64_t coef)
{
  LsRoute route;
  LsRouteEnds ends = { .gpu_from = from, .gpu_to = to, .nic_from = LS_NIC_AUTO, .nic_to = LS_NIC_AUTO };
  bool is_hashed = list->cluster->spec.routing == LS_ROUTING_ECMP;
  for (uint64_t left = coef; left > 0; ends.channel++) {
    uint64_t part = is_hashed && left >= 2 * LS_COEF_ONE ? LS_COEF_ONE : left;
    ls_route_ends (list->cluster, &ends, &route);
    for (uint32_t i = 0; i < route.n_hops; i++)
      ls_load_list_add (list, route.hop[i].trunk, part * route.hop[i].share / LS_HOP_WHOLE);
    left -= part;
  }
}

/* What rounds to nothing stays, as the least there is. */
void
ls_load_list_scale (LsLoadList *list, double factor)
{
  for (guint i = 0; i < list->touched->len; i++) {
    uint64_t *sum = &list->sum[g_array_index (list->touched, uint32_t, i)];
    *sum = MAX (1, (uint64_t) llround ((double) *sum * factor));
  }
}

static int
by_number (gconstpointer a, gconstpointer b)
{
  uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
  return (x > y) - (x < y);
}

/* Few are sorted; many are found in order by looking at all. */
static void
put_in_order (LsLoadList *list)
{
  uint32_t n_resources = ls_cluster_n_resources (list->cluster);
  if (list->touched->len < n_resources / 16) {
    g_array_sort (list->touched, by_number);
    return;
  }
  g_array_set_size (list->touched, 0);
  for (uint32_t i = 0; i < n_resources; i++)
    if (list->sum[i] > 0)
      g_array_append_val (list->touched, i);
}

void
ls_load_list_finish (LsLoadList *list, LsArena *arena, LsPhase *phase)
{
  put_in_order (list);
  phase->n_loads = list->touched->len;
  phase->loads = ls_arena_new_array (arena, LsLoad, phase->n_loads);
  for (guint i = 0; i < phase->n_loads; i++) {
    uint32_t resource = g_array_index (list->touched, uint32_t, i);
    phase->loads[i] = (LsLoad) { .resource = resource, .coef = list->sum[resource] };
  }
  g_array_unref (g_steal_pointer (&list->touched));
  g_clear_pointer (&list->sum, g_free);
}
