/* network/loads.c — loads of an algorithm's messages, added up by resource. */
#include "network/algorithm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/places.h"
#include "cluster/route.h"
#include "core/maxmin.h" /* LS_COEF_ONE */

/* A table of what is loaded, and not of all resources: most calls load few of many. One that
 * loads more than a sixteenth of them gets a slot for each after all, in order. */

#define FEWEST_SLOTS 64 /* a power of two */

LsLoadList
ls_load_list_new (const LsCluster *c)
{
  return (LsLoadList) { .cluster = c, .slots = g_new0 (LsLoad, FEWEST_SLOTS), .n_slots = FEWEST_SLOTS };
}

/* That of the resource, or the free one where it belongs. */
static inline LsLoad *
slot_of (const LsLoadList *list, uint32_t resource)
{
  if (list->has_all)
    return &list->slots[resource];
  uint32_t hash = resource * UINT32_C (2654435769); /* Knuth's multiplier: 2^32 over the golden ratio */
  uint32_t i = (uint32_t) ((uint64_t) hash * list->n_slots >> 32);
  while (list->slots[i].coef > 0 && list->slots[i].resource != resource)
    i = (i + 1) & (list->n_slots - 1);
  return &list->slots[i];
}

static void
grow (LsLoadList *list)
{
  uint32_t n_resources = ls_cluster_n_resources (list->cluster), n_old = list->n_slots;
  LsLoad *old = list->slots;
  list->has_all = list->n >= n_resources / 16;
  list->n_slots = list->has_all ? n_resources : 2 * n_old;
  list->slots = g_new0 (LsLoad, list->n_slots);
  for (uint32_t i = 0; i < n_old; i++)
    if (old[i].coef > 0)
      *slot_of (list, old[i].resource) = old[i];
  g_free (old);
}

void
ls_load_list_add (LsLoadList *list, uint32_t resource, uint64_t coef)
{
  if (coef == 0)
    return;
  LsLoad *load = slot_of (list, resource);
  bool is_new = load->coef == 0;
  load->resource = resource;
  load->coef += coef;
  list->n += is_new;
  if (2 * list->n > list->n_slots && !list->has_all)
    grow (list);
}

/* A channel has a coefficient of LS_COEF_ONE, the last one what is over. */
void
ls_load_list_add_route (LsLoadList *list, uint32_t from, uint32_t to, uint64_t coef)
{
  LsRoute route;
  LsRouteEnds ends = { .gpu_from = from, .gpu_to = to, .nic_from = LS_NIC_AUTO, .nic_to = LS_NIC_AUTO };
  bool is_hashed = list->cluster->spec.network.routing == LS_ROUTING_ECMP;
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
  for (uint32_t i = 0; i < list->n_slots; i++)
    if (list->slots[i].coef > 0)
      list->slots[i].coef = MAX (1, (uint64_t) llround ((double) list->slots[i].coef * factor));
}

void
ls_load_list_clear (LsLoadList *list)
{
  g_clear_pointer (&list->slots, g_free);
}

static int
by_resource (const void *a, const void *b)
{
  uint32_t x = ((const LsLoad *) a)->resource, y = ((const LsLoad *) b)->resource;
  return (x > y) - (x < y);
}

#define DIGIT_BITS 11
#define N_DIGITS   (1u << DIGIT_BITS)

/* By radix, the least digit first; scratch: [n]. Three passes over 32 bits, of which one or two may have
 * nothing to do. Returns where it all is in the end. */
static LsLoad *
sort_by_radix (LsLoad *loads, LsLoad *scratch, uint32_t n)
{
  for (uint32_t shift = 0; shift < 32; shift += DIGIT_BITS) {
    uint32_t first[N_DIGITS + 1] = { 0 };
    for (uint32_t i = 0; i < n; i++)
      first[(loads[i].resource >> shift & (N_DIGITS - 1)) + 1]++;
    if (first[(loads[0].resource >> shift & (N_DIGITS - 1)) + 1] == n)
      continue;
    for (uint32_t d = 0; d < N_DIGITS; d++)
      first[d + 1] += first[d];
    for (uint32_t i = 0; i < n; i++)
      scratch[first[loads[i].resource >> shift & (N_DIGITS - 1)]++] = loads[i];
    LsLoad *sorted = scratch;
    scratch = loads;
    loads = sorted;
  }
  return loads;
}

void
ls_loads_sort (LsLoad *loads, uint32_t n)
{
  uint32_t n_in_order = MIN (n, 1);
  while (n_in_order < n && loads[n_in_order - 1].resource < loads[n_in_order].resource)
    n_in_order++;
  if (n_in_order == n)
    return;
  if (n < N_DIGITS / 4) {
    qsort (loads, n, sizeof *loads, by_resource);
    return;
  }
  g_autofree LsLoad *scratch = g_new (LsLoad, n);
  const LsLoad *sorted = sort_by_radix (loads, scratch, n);
  if (sorted != loads)
    memcpy (loads, sorted, n * sizeof *loads);
}

/* Loads of hosts that are alike: *before is the first of those that may be one host before. True: there is
 * the same on the same trunk. */
static bool
is_as_before (const LsPlaces *at, const LsLoad *loads, uint32_t i, uint32_t *before)
{
  uint32_t resource = loads[i].resource;
  if (resource >= at->first_of_groups)
    return false;
  while (*before < i && loads[*before].resource + at->trunks_per_host < resource)
    ++*before;
  return loads[*before].resource + at->trunks_per_host == resource && loads[*before].coef == loads[i].coef;
}

double
ls_loads_rate (const LsCluster *c, const LsLoad *loads, uint32_t n, uint32_t n_resources)
{
  double rate = INFINITY;
  LsPlaces at;
  bool are_alike = !ls_cluster_has_faults (&c->spec) && ls_places_init (&at, c);
  for (uint32_t i = 0, before = 0; i < n && loads[i].resource < n_resources; i++) {
    if (are_alike && is_as_before (&at, loads, i, &before))
      continue;
    double flows = (double) loads[i].coef / (double) LS_COEF_ONE;
    rate = fmin (rate, ls_cluster_resource_capacity (c, loads[i].resource) / flows);
  }
  return rate;
}

void
ls_load_list_finish (LsLoadList *list, LsArena *arena, LsPhase *phase)
{
  phase->n_loads = 0;
  phase->loads = ls_arena_new_array (arena, LsLoad, list->n);
  for (uint32_t i = 0; i < list->n_slots; i++)
    if (list->slots[i].coef > 0)
      phase->loads[phase->n_loads++] = list->slots[i];
  if (!list->has_all)
    ls_loads_sort (phase->loads, phase->n_loads);
  ls_load_list_clear (list);
}
