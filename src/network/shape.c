/* network/shape.c — how the members of a call lie on hosts, and what NCCL makes of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/diag.h"
#include "base/gcd.h"
#include "base/order.h"
#include "network/algorithm.h"

/* How finely a script cuts a pipeline. That data follow one another through it is physical;
 * how finely is not. NCCL 2.30.7 moves slices of 16 to 512 KiB a channel (src/enqueue.cc,
 * calcCollChunking) while more of them come in, and what filling the pipeline costs was
 * measured with all else and is in the time of the call (ramp_bytes, nccl.h). Rounds must
 * not charge for it again: so many chunks that filling takes 1 / 32 of the time. */
#define CHUNKS_PER_STAGE 32
#define MIN_CHUNK_BYTES  2048
/* Bounds a script: some 4 s. Beyond it chunks grow, and filling takes longer. */
#define MAX_MESSAGES (UINT64_C (1) << 25)

uint32_t
ls_coll_loaded_hosts (const LsCollCall *call)
{
  return call->period && !call->period->like ? call->period->n_hosts : call->seats.n_hosts;
}

uint32_t
ls_coll_loaded_members (const LsCollCall *call)
{
  return call->period && !call->period->like ? call->period->n_members : call->n;
}

bool
ls_coll_has_nvswitch (const LsCollCall *call)
{
  const LsCluster *c = call->cluster;
  uint32_t n = c->kind_of_host || c->spec.network.faults
      ? call->seats.n_hosts
      : MIN (call->seats.n_hosts, 1); /* else all are alike */
  for (uint32_t h = 0; h < n; h++)
    if (!ls_host_has_nvswitch (c, ls_cluster_host_of (c, call->seats.hosts[h].gpus[0])))
      return false;
  return true;
}

uint32_t
ls_coll_nics (const LsCluster *c, const LsCollHost *host)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < host->n; i++)
    n += i == 0 || ls_nic_of_gpu (c, host->gpus[i]) != ls_nic_of_gpu (c, host->gpus[i - 1]);
  return n;
}

const LsClusterSpec *
ls_coll_host_spec (const LsCollCall *call, uint32_t h)
{
  const LsCluster *c = call->cluster;
  return ls_cluster_node_spec (c, ls_cluster_host_of (c, call->seats.hosts[h].gpus[0]));
}

LsNcclLinks
ls_coll_links (const LsCollCall *call)
{
  LsNcclLinks least = ls_nccl_links_of (ls_coll_host_spec (call, 0));
  for (uint32_t h = 1; call->cluster->kind_of_host && h < call->seats.n_hosts; h++) {
    const LsNcclLinks links = ls_nccl_links_of (ls_coll_host_spec (call, h));
    least.nvlink = fmin (least.nvlink, links.nvlink);
    least.nic = fmin (least.nic, links.nic);
  }
  return least;
}

/* Whether a ring over the GPUs of a host has a step that is staged in the memory of its CPUs. */
static bool
is_staged (const LsCollCall *call, uint32_t h)
{
  const LsClusterSpec *s = ls_coll_host_spec (call, h);
  const LsCollHost *host = &call->seats.hosts[h];
  if (ls_server_has_nvlink (&s->server) || !ls_cluster_traits (s)->has_counts)
    return false;
  for (uint32_t i = 1; i < host->n; i++)
    if (!ls_gpus_copy (s, ls_cluster_local_of (call->cluster, host->gpus[0]),
                       ls_cluster_local_of (call->cluster, host->gpus[i])))
      return true;
  return false;
}

double
ls_coll_bus_inside (const LsCollCall *call)
{
  const LsNccl *nccl = call->nccl;
  for (uint32_t h = 0; nccl->ring_bus_staged > 0 && h < call->seats.n_hosts; h++)
    if (is_staged (call, h))
      return fmin (nccl->ring_bus_intra, nccl->ring_bus_staged);
  return nccl->ring_bus_intra;
}

double
ls_coll_bus (const LsCollCall *call)
{
  const LsNccl *nccl = call->nccl;
  double inside = ls_coll_bus_inside (call);
  if (call->seats.n_hosts == 1)
    return inside;
  return fmin (inside, ls_nccl_rings_across (nccl, call->seats.min_nics) * nccl->ring_bus_per_nic);
}

uint32_t
ls_coll_max_channels (const LsCollCall *call)
{
  const LsNccl *nccl = call->nccl;
  uint32_t all = call->seats.n_hosts == 1 ? nccl->channels_ring : nccl->channels_net * call->seats.min_nics;
  return nccl->max_ctas > 0 ? MIN (all, nccl->max_ctas) : all;
}

uint32_t
ls_coll_channels (const LsCollCall *call)
{
  return ls_tune_channels (LS_TUNE_RING, call->protocol, call->n, ls_coll_max_channels (call), call->bytes);
}

uint32_t
ls_coll_chunks (const LsCollCall *call, uint32_t n_channels, uint32_t stages, uint64_t n_messages)
{
  uint64_t wanted = (uint64_t) CHUNKS_PER_STAGE * MAX (1, stages - 1);
  uint64_t may = MIN (call->bytes / n_channels / MIN_CHUNK_BYTES, MAX_MESSAGES / n_messages);
  return (uint32_t) MAX (1, MIN (wanted, may));
}

uint32_t
ls_coll_seat_in_order (const LsCollCall *call, uint32_t h, uint32_t entry, uint32_t x)
{
  const LsCollHost *host = &call->seats.hosts[h];
  return (uint32_t) (host->gpus - call->seats.sorted) + (entry + x) % host->n;
}

uint32_t
ls_coll_order_of_seat (const LsCollCall *call, uint32_t seat, uint32_t entry)
{
  const LsCollHost *host = &call->seats.hosts[call->seats.host_of[seat]];
  uint32_t local = seat - (uint32_t) (host->gpus - call->seats.sorted);
  return (local + host->n - entry % host->n) % host->n;
}

uint64_t
ls_coll_sum_of_weights (const LsCollCall *call)
{
  uint64_t sum = 0;
  for (uint32_t i = 0; i < call->n; i++)
    sum += call->weights[i];
  return sum;
}

double
ls_coll_busiest_over_mean (const LsCollCall *call)
{
  uint32_t most = 0;
  for (uint32_t i = 0; i < call->n && call->weights; i++)
    most = MAX (most, call->weights[i]);
  return call->weights ? (double) most * call->n / (double) ls_coll_sum_of_weights (call) : 1;
}

/* How much work a call may be. Above a limit a plan or a script is
 * refused before it is begun; both are counted from above, at no cost. */

/* A plan looks at 2^24 messages a second, more or less; a run at 2^23 (one core of 2020). */
#define LIMITS_MAX_MESSAGES (UINT64_C (1) << 28)
/* Messages of all places at once, each of which keeps its route: some 700 bytes. */
#define MAX_AT_ONCE (UINT64_C (1) << 24)

static uint64_t
times (uint64_t a, uint64_t b)
{
  return b > 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static gboolean
is_below (const LsCollCall *call, const char *algorithm, const char *what, uint64_t n, uint64_t limit,
          GError **error)
{
  if (n <= limit)
    return TRUE;
  return ls_fail (error, LS_ERROR_LIMIT,
                  "%s over %u %s by %s is %.3g %s; the limit is %.3g\n"
                  "note: take fewer %s%s, or another algorithm if there is one",
                  ls_coll_kind_name (call->kind), call->n,
                  ls_cluster_chip_word (&call->cluster->spec, call->n), algorithm, (double) n, what,
                  (double) limit, ls_cluster_chip_word (&call->cluster->spec, 2),
                  call->seats.n_hosts > 1 && call->seats.per_host == 0 ? ", as many of each node" : "");
}

gboolean
ls_coll_plan_is_small (const LsCollCall *call, const LsCollAlgorithm *a, GError **error)
{
  return !a->n_messages
      || is_below (call, a->name, "messages to add up", a->n_messages (call), LIMITS_MAX_MESSAGES, error);
}

uint64_t
ls_script_n_messages (const LsScript *s)
{
  return times (times ((uint64_t) s->n + s->n_switches, s->max_sends), s->n_rounds);
}

gboolean
ls_coll_check_all (uint64_t n_messages, GError **error)
{
  if (n_messages <= LIMITS_MAX_MESSAGES)
    return TRUE;
  return ls_fail (error, LS_ERROR_LIMIT,
                  "all sizes together are %.3g messages, one by one; the limit is %.3g\n"
                  "note: take fewer sizes (--min, --max, --factor), fewer --gpus, or --network flow",
                  (double) n_messages, (double) LIMITS_MAX_MESSAGES);
}

gboolean
ls_coll_script_is_small (const LsCollCall *call, const LsCollAlgorithm *a, const LsScript *s, GError **error)
{
  uint64_t at_once = times ((uint64_t) s->n + s->n_switches, s->max_sends), n = ls_script_n_messages (s);
  return is_below (call, a->name, "messages at once, one by one", at_once, MAX_AT_ONCE, error)
      && is_below (call, a->name, "messages, one by one", n, LIMITS_MAX_MESSAGES, error);
}

/* In which order the members of a call sit: host after host, by ascending GPU. */

/* Sorted by the first, with ls_compare_uint32(). */
typedef struct {
  uint32_t gpu, member;
} Seat;

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
  qsort (first, n_hosts, sizeof *first, ls_compare_uint32);
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
    qsort (seats, call->n, sizeof *seats, ls_compare_uint32);
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
  to->fewest = call->n;
  for (uint32_t h = 0; h < to->n_hosts; h++) {
    to->most = MAX (to->most, hosts[h].n);
    to->fewest = MIN (to->fewest, hosts[h].n);
  }
  to->per_host = to->most == to->fewest ? to->most : 0;
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

/* Of channels that enter hosts differently: far more than are run (shape.c). */
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
  call->seats = call->asked.memo ? *remember (call->asked.memo, call) : find_seats (call, call->arena);
}

/* Kinds of collectives and protocols: names, and what a kind moves. */

const char *const ls_protocol_names[LS_N_PROTOCOLS] = {
  [LS_PROTOCOL_AUTO] = "auto",
  [LS_PROTOCOL_SIMPLE] = "Simple",
  [LS_PROTOCOL_LL] = "LL",
  [LS_PROTOCOL_LL128] = "LL128",
};

const LsEnumName ls_coll_kind_names[LS_N_COLL_KINDS] = {
  { "all-reduce", LS_COLL_ALL_REDUCE },
  { "all-gather", LS_COLL_ALL_GATHER },
  { "reduce-scatter", LS_COLL_REDUCE_SCATTER },
  { "broadcast", LS_COLL_BROADCAST },
  { "reduce", LS_COLL_REDUCE },
  { "all-to-all", LS_COLL_ALL_TO_ALL },
  { "gather", LS_COLL_GATHER },
  { "scatter", LS_COLL_SCATTER },
  { "barrier", LS_COLL_BARRIER },
  { "permute", LS_COLL_PERMUTE },
  { "copy-permute", LS_COLL_COPY_PERMUTE },
};

const char *
ls_coll_kind_name (LsCollKind kind)
{
  g_assert (kind < LS_N_COLL_KINDS);
  return kind == LS_COLL_SEND_RECV ? "send-recv" : ls_coll_kind_names[kind].name;
}

bool
ls_coll_kind_has_root (LsCollKind kind)
{
  return kind == LS_COLL_BROADCAST || kind == LS_COLL_REDUCE || kind == LS_COLL_GATHER
      || kind == LS_COLL_SCATTER;
}

double
ls_coll_wire_factor (LsCollKind kind, uint32_t n)
{
  if (n < 2)
    return 0;
  switch (kind) {
  case LS_COLL_ALL_REDUCE:
    return 2.0 * (n - 1) / n;
  case LS_COLL_ALL_GATHER:
  case LS_COLL_REDUCE_SCATTER:
  case LS_COLL_ALL_TO_ALL:
  case LS_COLL_GATHER:
  case LS_COLL_SCATTER:
    return (n - 1.0) / n;
  case LS_COLL_BARRIER:
    return 0;
  default:
    return 1;
  }
}
