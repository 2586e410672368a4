/* network/loads.c — loads of an algorithm's messages, added up by resource. */
#include "network/algorithm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
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

/* Not inlined: rare, where adding is hot. */
static G_GNUC_NO_INLINE void
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
  bool is_hashed = list->cluster->spec.network.routing == LS_ROUTING_ECMP;
  uint32_t channel = 0;
  for (uint64_t left = coef; left > 0; channel++) {
    uint64_t part = is_hashed && left >= 2 * LS_COEF_ONE ? LS_COEF_ONE : left;
    ls_route (list->cluster, from, to, channel, &route);
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
    qsort (loads, n, sizeof *loads, ls_compare_uint32);
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

/* Calls whose hosts repeat, by the loads of the first of their periods, or of a few.
 *
 * Problem. An all-gather over a million GPUs loads some ten million resources, and nearly all of them as
 * their neighbours: to add that up takes a second, to keep it a hundred megabytes.
 *
 * Model. The hosts of the call, in its order, are a *period* that is repeated: host i + P is D hosts behind
 * host i and has the same GPUs in the call, and D is whole pods (groups, where there are no pods). A turn by
 * P hosts takes each message of an algorithm that turns to one of the same size between hosts that lie to
 * each other as before: which trunks a way crosses depends on no more (cluster/places.h). So what all
 * messages load at a place, they load at the place of the same number in each period. It is the sum, over the
 * messages of the first period's members, of what they load at that place in any period.
 *
 * Worked example. 64 hosts, 4 to a group, 2 groups to a pod, a member in each; a ring. P = D = 8. Its first
 * period sends 8 messages: 6 inside their groups, one over the spines of the pod, and one to the next pod,
 * which comes down in the first group of the next period: so in that of the first, too. The table of 64 hosts
 * is the table of 8, eight times.
 *
 * Where messages do not turn. In a tree some hosts have other edges than others, but there are few sorts of
 * periods (LsCollPeriod.like). The first of each is *kept*: what is loaded in it, by messages from its
 * members and to them, is loaded in all that are like it. Where each message has one back of the same bytes,
 * those to its members are known from theirs.
 *
 * Deviations. Calls with a root, or with unequal parts, do not turn; nor do faults. */

/* Hosts that a turn may go by at the least. */
static uint32_t
unit_of (const LsPlaces *at)
{
  uint32_t per_group = at->trunks_per_group + at->trunks_per_pod > 0 ? at->hosts_per_group : 1;
  return at->trunks_per_pod > 0 ? per_group * at->groups_per_pod : per_group;
}

static bool
is_moved (const LsCollHost *host, const LsCollHost *first, uint32_t shift)
{
  if (host->n != first->n)
    return false;
  for (uint32_t i = 0; i < host->n; i++)
    if (host->gpus[i] != first->gpus[i] + shift)
      return false;
  return true;
}

/* Hosts of the first period; all of them: there is no other. */
static uint32_t
length_of (const LsCollCall *call, const LsPlaces *at)
{
  uint32_t per_host = at->gpus_per_host, unit = unit_of (at), n = 1,
           first = call->seats.hosts[0].gpus[0] / per_host;
  while (n < call->seats.n_hosts && call->seats.hosts[n].gpus[0] / per_host / unit == first / unit)
    n++;
  while (n < call->seats.n_hosts && (call->seats.hosts[n].gpus[0] / per_host - first) % unit != 0)
    n++;
  return n;
}

static bool
repeats (const LsCollCall *call, const LsCollPeriod *p)
{
  uint32_t shift = p->shift * p->at->gpus_per_host;
  for (uint32_t h = p->n_hosts; h < call->seats.n_hosts; h++)
    if (!is_moved (&call->seats.hosts[h], &call->seats.hosts[h - p->n_hosts], shift))
      return false;
  return true;
}

/* Members sit in their order, hosts ascend, and those of the first period end before the second begins. */
static bool
is_in_order (const LsCollCall *call, const LsCollPeriod *p)
{
  uint32_t end = (p->first_host + p->shift) * p->at->gpus_per_host;
  for (uint32_t i = 0; i < call->n; i++)
    if (call->seats.seat[i] != i || (i > 0 && call->gpus[i] <= call->gpus[i - 1]))
      return false;
  return call->seats.sorted[p->n_members - 1] < end;
}

bool
ls_coll_period (const LsCollCall *call, const LsPlaces *at, LsCollPeriod *ret)
{
  uint32_t unit = unit_of (at), n_hosts = length_of (call, at);
  if (n_hosts == call->seats.n_hosts || call->seats.n_hosts % n_hosts != 0 || call->weights)
    return false;
  uint32_t first = call->seats.hosts[0].gpus[0] / at->gpus_per_host,
           next = call->seats.hosts[n_hosts].gpus[0] / at->gpus_per_host;
  *ret = (LsCollPeriod) { .at = at,
                          .n = call->seats.n_hosts / n_hosts,
                          .n_hosts = n_hosts,
                          .n_members = (uint32_t) (call->seats.hosts[n_hosts].gpus - call->seats.sorted),
                          .first_host = first / unit * unit,
                          .shift = next - first };
  return next > first && repeats (call, ret) && is_in_order (call, ret);
}

/* The first place of a tier that is in the first period, and how many are in each. */
static uint32_t
begin_of_tier (const LsCollPeriod *p, uint32_t tier, uint32_t *ret_n)
{
  const LsPlaces *at = p->at;
  const uint32_t begin[3] = { 0, at->n_hosts, at->n_hosts + at->n_groups },
                 size[3] = { 1, at->hosts_per_group, at->hosts_per_group * at->groups_per_pod };
  *ret_n = p->shift / size[tier];
  return begin[tier] + p->first_host / size[tier];
}

/* The resource of the first period that stands where this one stands in its own, the k-th. */
static uint32_t
first_of (const LsCollPeriod *p, uint32_t resource, uint32_t *ret_k)
{
  uint32_t local, n, place = ls_places_find (p->at, resource, &local),
                     first = begin_of_tier (p, ls_places_tier (p->at, place), &n);
  *ret_k = (place - first) / n;
  return ls_places_resource (p->at, first + (place - first) % n, local);
}

void
ls_coll_period_fold (const LsCollPeriod *p, const LsCluster *c, LsArena *arena, LsPhase *phase)
{
  LsLoadList folded = p->like ? (LsLoadList) { 0 } : ls_load_list_new (c);
  uint32_t n_kept = 0, k;
  for (uint32_t i = 0; i < phase->n_loads; i++) {
    uint32_t first = first_of (p, phase->loads[i].resource, &k);
    if (!p->like)
      ls_load_list_add (&folded, first, phase->loads[i].coef);
    else if (ls_coll_period_is_kept (p, k))
      phase->loads[n_kept++] = phase->loads[i];
  }
  if (p->like)
    phase->n_loads = n_kept;
  else
    ls_load_list_finish (&folded, arena, phase);
}
