/* network/members.c — in which order the members of a call sit: host after host, by ascending GPU. */
#include <stdlib.h>
#include <string.h>

#include "base/gcd.h"
#include "base/order.h"
#include "cluster/places.h"
#include "network/memo.h"

typedef struct {
  uint32_t gpu, member;
} Seat;

static int
by_gpu (const void *a, const void *b)
{
  return LS_ORDER (((const Seat *) a)->gpu, ((const Seat *) b)->gpu);
}

/* Runs of one host put in order of their lowest members. */
static void
order_hosts (const LsCluster *c, Seat *seats, uint32_t n)
{
  uint32_t n_hosts = 0, n_in_place = 0;
  while (n_in_place < n && seats[n_in_place].member == n_in_place)
    n_in_place++;
  if (n_in_place == n)
    return;
  g_autofree Seat *by_host = g_memdup2 (seats, n * sizeof *seats);
  g_autofree Seat *first = g_new (Seat, n); /* of each host: its lowest member, and where its run begins */
  for (uint32_t i = 0; i < n; i++) {
    bool is_new = i == 0 || ls_cluster_host_of (c, seats[i].gpu) != ls_cluster_host_of (c, seats[i - 1].gpu);
    if (is_new)
      first[n_hosts++] = (Seat) { seats[i].member, i };
    first[n_hosts - 1].gpu = MIN (first[n_hosts - 1].gpu, seats[i].member);
  }
  qsort (first, n_hosts, sizeof *first, by_gpu);
  for (uint32_t h = 0, at = 0; h < n_hosts; h++) {
    uint32_t host = ls_cluster_host_of (c, by_host[first[h].member].gpu);
    for (uint32_t i = first[h].member; i < n && ls_cluster_host_of (c, by_host[i].gpu) == host; i++)
      seats[at++] = by_host[i];
  }
}

static void
sort_members (const LsCollCall *call, LsArena *arena, LsCollSeats *to)
{
  g_autofree Seat *seats = g_new (Seat, call->n);
  bool is_sorted = true;
  for (uint32_t i = 0; i < call->n; i++) {
    seats[i] = (Seat) { call->gpus[i], i };
    is_sorted = is_sorted && (i == 0 || call->gpus[i - 1] < call->gpus[i]);
  }
  if (!is_sorted)
    qsort (seats, call->n, sizeof *seats, by_gpu);
  for (uint32_t i = 1; i < call->n; i++)
    g_assert (seats[i].gpu != seats[i - 1].gpu);
  order_hosts (call->cluster, seats, call->n);
  uint32_t *sorted = ls_arena_new_array (arena, uint32_t, call->n);
  uint32_t *member = ls_arena_new_array (arena, uint32_t, call->n);
  uint32_t *seat = ls_arena_new_array (arena, uint32_t, call->n);
  for (uint32_t i = 0; i < call->n; i++) {
    g_assert (seats[i].gpu < call->cluster->n_gpus);
    sorted[i] = seats[i].gpu;
    member[i] = seats[i].member;
    seat[seats[i].member] = i;
  }
  to->sorted = sorted;
  to->member = member;
  to->seat = seat;
}

static void
group_by_host (const LsCollCall *call, LsArena *arena, LsCollSeats *to)
{
  uint32_t *host_of = ls_arena_new_array (arena, uint32_t, call->n);
  LsCollHost *hosts = ls_arena_new_array (arena, LsCollHost, MIN (call->n, call->cluster->spec.n_nodes));
  uint32_t last = UINT32_MAX;
  for (uint32_t i = 0; i < call->n; i++) {
    uint32_t host = ls_cluster_host_of (call->cluster, to->sorted[i]);
    if (host != last)
      hosts[to->n_hosts++].gpus = &to->sorted[i];
    hosts[to->n_hosts - 1].n++;
    host_of[i] = to->n_hosts - 1;
    last = host;
  }
  to->host_of = host_of;
  to->hosts = hosts;
}

/* The same GPUs of a node of the same kind; one with faults may have taken NICs from some. */
static bool
is_like (const LsCluster *c, const LsCollHost *host, const LsCollHost *other)
{
  bool are_alike = !c->kind_of_host && host->n == other->n
      && ls_places_is_sound (c, ls_cluster_host_of (c, host->gpus[0]))
      && ls_places_is_sound (c, ls_cluster_host_of (c, other->gpus[0]))
      && ls_cluster_local_of (c, host->gpus[0]) == ls_cluster_local_of (c, other->gpus[0]);
  for (uint32_t i = 1; i < host->n && are_alike; i++)
    are_alike = host->gpus[i] - host->gpus[0] == other->gpus[i] - other->gpus[0];
  return are_alike;
}

static uint32_t
find_min_nics (const LsCluster *c, const LsCollSeats *seats)
{
  uint32_t n = ls_coll_nics (c, &seats->hosts[0]);
  for (uint32_t h = 1; h < seats->n_hosts; h++)
    if (!is_like (c, &seats->hosts[h], &seats->hosts[h - 1]))
      n = MIN (n, ls_coll_nics (c, &seats->hosts[h]));
  return n;
}

/* Of channels that enter hosts differently: far more than are run (limits.c). */
#define MAX_ENTRIES (UINT64_C (1) << 20)

static uint32_t
find_n_entries (const LsCollSeats *seats)
{
  uint64_t lcm = 1;
  for (uint32_t h = 0; h < seats->n_hosts && seats->n_hosts > 1 && lcm < MAX_ENTRIES; h++)
    if (lcm % seats->hosts[h].n != 0)
      lcm = lcm / ls_gcd ((uint32_t) lcm, seats->hosts[h].n) * seats->hosts[h].n;
  return (uint32_t) MIN (lcm, MAX_ENTRIES);
}

static LsCollSeats
find_seats (const LsCollCall *call, LsArena *arena)
{
  LsCollSeats seats = { 0 };
  sort_members (call, arena, &seats);
  group_by_host (call, arena, &seats);
  seats.min_nics = find_min_nics (call->cluster, &seats);
  seats.n_entries = find_n_entries (&seats);
  return seats;
}

static const LsCollSeats *
remember (LsCollMemo *memo, const LsCollCall *call)
{
  g_assert (!memo->cluster || memo->cluster == call->cluster);
  memo->cluster = call->cluster;
  if (memo->n != call->n || memcmp (memo->gpus, call->gpus, call->n * sizeof *memo->gpus) != 0) {
    uint32_t *gpus = ls_arena_new_array (memo->arena, uint32_t, call->n);
    memcpy (gpus, call->gpus, call->n * sizeof *gpus);
    memo->n = call->n;
    memo->gpus = gpus;
    memo->has_alike = false;
    memo->seats = find_seats (call, memo->arena);
  }
  return &memo->seats;
}

void
ls_coll_take_seats (LsCollCall *call)
{
  LsCollSeats seats = call->memo ? *remember (call->memo, call) : find_seats (call, call->arena);
  call->n_hosts = seats.n_hosts;
  call->min_nics = seats.min_nics;
  call->n_entries = seats.n_entries;
  call->hosts = seats.hosts;
  call->sorted = seats.sorted;
  call->member = seats.member;
  call->seat = seats.seat;
  call->host_of = seats.host_of;
}
