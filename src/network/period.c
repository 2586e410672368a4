/* network/period.c — calls whose hosts repeat, by the loads of the first of their periods, or of a few.
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
#include "network/period.h"

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
           first = call->hosts[0].gpus[0] / per_host;
  while (n < call->n_hosts && call->hosts[n].gpus[0] / per_host / unit == first / unit)
    n++;
  while (n < call->n_hosts && (call->hosts[n].gpus[0] / per_host - first) % unit != 0)
    n++;
  return n;
}

static bool
repeats (const LsCollCall *call, const LsCollPeriod *p)
{
  uint32_t shift = p->shift * p->at->gpus_per_host;
  for (uint32_t h = p->n_hosts; h < call->n_hosts; h++)
    if (!is_moved (&call->hosts[h], &call->hosts[h - p->n_hosts], shift))
      return false;
  return true;
}

/* Members sit in their order, hosts ascend, and those of the first period end before the second begins. */
static bool
is_in_order (const LsCollCall *call, const LsCollPeriod *p)
{
  uint32_t end = (p->first_host + p->shift) * p->at->gpus_per_host;
  for (uint32_t i = 0; i < call->n; i++)
    if (call->seat[i] != i || (i > 0 && call->gpus[i] <= call->gpus[i - 1]))
      return false;
  return call->sorted[p->n_members - 1] < end;
}

bool
ls_coll_period (const LsCollCall *call, const LsPlaces *at, LsCollPeriod *ret)
{
  uint32_t unit = unit_of (at), n_hosts = length_of (call, at);
  if (n_hosts == call->n_hosts || call->n_hosts % n_hosts != 0 || call->weights)
    return false;
  uint32_t first = call->hosts[0].gpus[0] / at->gpus_per_host,
           next = call->hosts[n_hosts].gpus[0] / at->gpus_per_host;
  *ret = (LsCollPeriod) { .at = at,
                          .n = call->n_hosts / n_hosts,
                          .n_hosts = n_hosts,
                          .n_members = (uint32_t) (call->hosts[n_hosts].gpus - call->sorted),
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

/* The resource of the first period that stands where this one stands in its own. */
static uint32_t
first_of (const LsCollPeriod *p, uint32_t resource)
{
  uint32_t local, n, place = ls_places_find (p->at, resource, &local),
                     first = begin_of_tier (p, ls_places_tier (p->at, place), &n);
  return ls_places_resource (p->at, first + (place - first) % n, local);
}

static bool
is_kept (const LsCollPeriod *p, uint32_t resource)
{
  uint32_t local, n, place = ls_places_find (p->at, resource, &local),
                     first = begin_of_tier (p, ls_places_tier (p->at, place), &n);
  return ls_coll_period_is_kept (p, (place - first) / n);
}

static void
keep (const LsCollPeriod *p, LsPhase *phase)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < phase->n_loads; i++)
    if (is_kept (p, phase->loads[i].resource))
      phase->loads[n++] = phase->loads[i];
  phase->n_loads = n;
}

void
ls_coll_period_fold (const LsCollPeriod *p, const LsCluster *c, LsArena *arena, LsPhase *phase)
{
  if (p->like) {
    keep (p, phase);
    return;
  }
  LsLoadList folded = ls_load_list_new (c);
  for (uint32_t i = 0; i < phase->n_loads; i++)
    ls_load_list_add (&folded, first_of (p, phase->loads[i].resource), phase->loads[i].coef);
  ls_load_list_finish (&folded, arena, phase);
}
