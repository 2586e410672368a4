/* network/rounds.c — phases made from the messages of a script.
 *
 * Problem. Rounds of messages between many members, as one coupled load: a demand D for
 * each flow, and how many flows cross each resource.
 *
 * Model. The busiest member sends or receives B bytes, in n_flows flows of D = B /
 * n_flows. A trunk over which the messages put b bytes is crossed by b / D flows. So the
 * loads carry exactly the bytes of the script, whoever of the members is idle.
 *
 * Rate. No member moves its bytes to members of its host, of others, or to switches
 * faster than the caps of the script allow. With T the longest of these times over all
 * members, a flow gets at most D / T.
 *
 * Worked example: 4 members of one host send 1/4 of 64 MiB to each other in 3 rounds, 24
 * flows, 250 GB/s: B = 48 MiB, D = 2 MiB; a member's trunk is crossed by 24 flows;
 * T = 48 MiB / 250 GB/s = 201 us.
 *
 * Deviation. Members that have less to move are done with it no earlier: all flows of a
 * phase end together. Where rounds are phases, the slowest pair of a round makes all others
 * wait; without bytes there is one phase, which takes the longest way through the rounds. */
#include "network/algorithm.h"

#include <math.h>
#include <string.h>

#include "base/order.h"
#include "core/maxmin.h" /* LS_COEF_ONE */

/* ---- messages of a script: their ways and costs ---- */

uint32_t
ls_script_n_channels (const LsScript *s)
{
  return s->cluster->spec.network.routing == LS_ROUTING_ECMP ? (uint32_t) MAX (1, s->flows / LS_COEF_ONE) : 1;
}

uint64_t
ls_script_channel_flows (const LsScript *s, uint32_t channel)
{
  uint32_t last = ls_script_n_channels (s) - 1;
  return channel < last ? LS_COEF_ONE : s->flows - last * LS_COEF_ONE;
}

void
ls_script_route_channel (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel, LsRoute *ret_route)
{
  if (s->route)
    s->route (s, from, to, channel, ret_route);
  else
    ls_route (s->cluster, s->gpus[from], s->gpus[to], channel, ret_route);
}

static bool
is_with_switch (const LsScript *s, uint32_t from, uint32_t to)
{
  return from >= s->n || to >= s->n;
}

static bool
is_inter (const LsScript *s, uint32_t from, uint32_t to)
{
  return ls_cluster_host_of (s->cluster, s->gpus[from]) != ls_cluster_host_of (s->cluster, s->gpus[to]);
}

LsTime
ls_script_latency (const LsScript *s, uint32_t from, uint32_t to)
{
  if (is_with_switch (s, from, to))
    return s->hop_switch;
  return is_inter (s, from, to) ? s->hop_inter : s->hop_intra;
}

double
ls_script_rate_cap (const LsScript *s, uint32_t from, uint32_t to, uint32_t n)
{
  if (s->rate_cap)
    return s->rate_cap (s, from, to, n);
  if (is_with_switch (s, from, to))
    return s->rate_switch;
  return is_inter (s, from, to) ? s->rate_inter : s->rate_intra;
}

/* ---- loads by place ---- */

/* What is loaded at the same few trunks of many places.
 *
 * Messages between thousands of hosts that lie alike cross a handful of trunks of each. So sums are kept in a
 * row for each trunk of a tier, by place, where a table of all resources (LsLoadList) has to look each of
 * them up. */

#define LS_N_TIERS 3

#define LS_MOST_OF_ROW 8

/* Trunks that always carry the same, by their numbers at a place, of all places of a tier. */
typedef struct {
  uint64_t *sums; /* [places of the tier] of each trunk */
  uint32_t tier, n, local[LS_MOST_OF_ROW];
} LsPlaceRow;

typedef struct {
  const LsPlaces *at;
  uint32_t first[LS_N_TIERS], n[LS_N_TIERS]; /* places of each tier */
  GArray *rows;                              /* LsPlaceRow */
  LsArena *arena;
} LsPlaceLoads;

#define MOST_PER_GPU 4 /* hosts in between, of each of these GPUs */

/* For what lies between the first and the last of these hosts; at: borrowed. False: they are few among many,
 * and nothing is made. */
static bool
ls_place_loads_init (LsPlaceLoads *p, const LsPlaces *at, const uint32_t *gpus, uint32_t n_gpus,
                     LsArena *arena)
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
  *p = (LsPlaceLoads) { .at = at, .rows = ls_arena_list (arena, sizeof (LsPlaceRow)), .arena = arena };
  for (uint32_t tier = 0; tier < LS_N_TIERS; tier++) {
    p->first[tier] = ls_places_of_host (at, first, tier);
    p->n[tier] = ls_places_of_host (at, last, tier) - p->first[tier] + 1;
  }
  return true;
}

/* The number of a row of n trunks, which is made if there is none. A trunk may be in several. */
static uint32_t
ls_place_loads_row (LsPlaceLoads *p, uint32_t tier, const uint32_t *local, uint32_t n)
{
  for (guint i = 0; i < p->rows->len; i++) {
    const LsPlaceRow *row = &g_array_index (p->rows, LsPlaceRow, i);
    if (row->tier == tier && row->n == n && memcmp (row->local, local, n * sizeof *local) == 0)
      return i;
  }
  LsPlaceRow row = { .tier = tier, .n = n, .sums = ls_arena_new_array (p->arena, uint64_t, p->n[tier]) };
  memcpy (row.local, local, n * sizeof *local);
  g_array_append_val (p->rows, row);
  return p->rows->len - 1;
}

/* A trunk of a tier, by its number at a place. */
typedef struct {
  uint32_t local; /* first, as they are sorted by it */
  uint64_t *sums; /* [places of the tier]            */
} Trunk;

static uint64_t *
sums_of (const LsPlaceLoads *p, GArray *trunks, uint32_t tier, uint32_t local)
{
  for (guint i = 0; i < trunks->len; i++)
    if (g_array_index (trunks, Trunk, i).local == local)
      return g_array_index (trunks, Trunk, i).sums;
  const Trunk own = { local, ls_arena_new_array (p->arena, uint64_t, p->n[tier]) };
  g_array_append_val (trunks, own);
  return own.sums;
}

/* What all rows say of each trunk of a tier, in order. */
static GArray *
trunks_of (const LsPlaceLoads *p, uint32_t tier)
{
  GArray *trunks = ls_arena_list (p->arena, sizeof (Trunk));
  for (guint r = 0; r < p->rows->len; r++) {
    const LsPlaceRow *row = &g_array_index (p->rows, LsPlaceRow, r);
    for (uint32_t i = 0; row->tier == tier && i < row->n; i++) {
      uint64_t *sums = sums_of (p, trunks, tier, row->local[i]);
      for (uint32_t place = 0; place < p->n[tier]; place++)
        sums[place] += row->sums[place];
    }
  }
  g_array_sort (trunks, ls_compare_uint32);
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

/* All that is not 0 into the phase, in the arena, in order of resource. */
static void
ls_place_loads_finish (LsPlaceLoads *p, LsArena *arena, LsPhase *phase)
{
  GArray *trunks[LS_N_TIERS];
  uint32_t n = 0;
  for (uint32_t tier = 0; tier < LS_N_TIERS; tier++) {
    trunks[tier] = trunks_of (p, tier);
    n += count (p, tier, trunks[tier]);
  }
  phase->n_loads = 0;
  phase->loads = ls_arena_new_array (arena, LsLoad, MAX (1, n));
  for (uint32_t tier = 0; tier < LS_N_TIERS; tier++)
    add_tier (p, tier, trunks[tier], phase);
}

/* ---- routes between many pairs of GPUs, each found once for all pairs that lie alike  ---- */

/* Which trunks a flow crosses depends on the numbers of its GPUs in their hosts, and on whether the hosts,
 * their groups and their pods are the same (cluster/places.h). So the route of the first pair is that of the
 * next one that lies so, with each trunk at the same place of the other host, group or pod. That holds
 * without faults. */

/* Trunks that carry the same share of a flow at one place: the sender's host, group or pod, or the
 * receiver's. */
typedef struct {
  bool is_at_receiver;
  uint8_t tier;
  uint32_t share;
  uint32_t n, local[LS_MOST_OF_ROW];
  uint32_t row; /* of LsPlaceLoads */
} LsMovedPart;

/* Of pairs that lie alike. */
typedef struct {
  uint32_t n_parts; /* UINT32_MAX: a trunk is elsewhere, and each pair has a route of its own */
  LsMovedPart *parts;
} LsMovedRoute;

typedef struct {
  const LsPlaces *at;
  LsArena *arena; /* of all that is found out */
  bool
      has_rows; /* of places, where loads that are at hosts, groups and pods are added up; else in the list */
  LsPlaceLoads rows;
  LsMovedRoute **known; /* [4 * GPUs of a host squared] by how hosts lie to each other, and by the numbers of
                           the GPUs there; NULL: none is known */
} LsMovedRoutes;

#define ON_ITS_OWN UINT32_MAX

/* at: borrowed; NULL: nothing may be added. gpus: between which messages go; NULL: few are loaded of many. */
static void
ls_moved_routes_init (LsMovedRoutes *r, const LsPlaces *at, const uint32_t *gpus, uint32_t n_gpus,
                      LsArena *arena)
{
  *r = (LsMovedRoutes) { .at = at, .arena = arena };
  if (at)
    r->known = ls_arena_new_array (arena, LsMovedRoute *, 4 * (gsize) at->gpus_per_host * at->gpus_per_host);
  r->has_rows = at && gpus && ls_place_loads_init (&r->rows, at, gpus, n_gpus, arena);
}

/* All that was added, and what is in the list besides, which is freed: as ls_load_list_finish(). */
static void
ls_moved_routes_finish (LsMovedRoutes *r, LsLoadList *loads, LsArena *arena, LsPhase *phase)
{
  if (!r->has_rows) {
    ls_load_list_finish (loads, arena, phase);
    return;
  }
  bool is_all = loads->n == 0;
  ls_place_loads_finish (&r->rows, arena, phase);
  for (uint32_t i = 0; i < phase->n_loads && !is_all; i++)
    ls_load_list_add (loads, phase->loads[i].resource, phase->loads[i].coef);
  if (is_all)
    ls_load_list_clear (loads);
  else
    ls_load_list_finish (loads, arena, phase);
}

/* A part of one trunk. False: it is at neither. */
static bool
find_part (const LsPlaces *at, uint32_t host_from, uint32_t host_to, LsHop hop, LsMovedPart *ret)
{
  *ret = (LsMovedPart) { .share = hop.share, .n = 1 };
  uint32_t place = ls_places_find (at, hop.trunk, &ret->local[0]);
  ret->tier = (uint8_t) ls_places_tier (at, place);
  ret->is_at_receiver = place != ls_places_of_host (at, host_from, ret->tier);
  return !ret->is_at_receiver || place == ls_places_of_host (at, host_to, ret->tier);
}

/* To one that goes the same way, or as one more. */
static void
add_part (LsMovedRoute *r, const LsMovedPart *own)
{
  uint32_t i = 0;
  while (i < r->n_parts
         && (r->parts[i].is_at_receiver != own->is_at_receiver || r->parts[i].tier != own->tier
             || r->parts[i].share != own->share || r->parts[i].n == LS_MOST_OF_ROW))
    i++;
  if (i == r->n_parts)
    r->parts[r->n_parts++] = *own;
  else
    r->parts[i].local[r->parts[i].n++] = own->local[0];
}

static LsMovedRoute *
route_new (LsMovedRoutes *routes, const LsCluster *c, uint32_t from, uint32_t to)
{
  const LsPlaces *at = routes->at;
  LsRoute route;
  ls_route (c, from, to, 0, &route);
  LsMovedRoute *r = ls_arena_new_array (routes->arena, LsMovedRoute, 1);
  *r = (LsMovedRoute) { 0, ls_arena_new_array (routes->arena, LsMovedPart, route.n_hops) };
  bool ok = true;
  for (uint32_t i = 0; i < route.n_hops && ok; i++) {
    LsMovedPart own;
    ok = find_part (at, from / at->gpus_per_host, to / at->gpus_per_host, route.hop[i], &own);
    if (ok)
      add_part (r, &own);
  }
  for (uint32_t i = 0; routes->has_rows && ok && i < r->n_parts; i++)
    r->parts[i].row = ls_place_loads_row (&routes->rows, r->parts[i].tier, r->parts[i].local, r->parts[i].n);
  if (!ok)
    r->n_parts = ON_ITS_OWN;
  return r;
}

/* A GPU: its number in its host, and the places where that is. */
typedef struct {
  uint32_t number, place[3];
} End;

static End
end_of (const LsPlaces *at, uint32_t gpu)
{
  uint32_t host = gpu / at->gpus_per_host;
  return (End) { gpu - host * at->gpus_per_host,
                 { host, ls_places_group_of (at, host), ls_places_pod_of (at, host) } };
}

static void
add_own (const LsCluster *c, uint32_t from, uint32_t to, uint64_t blocks, LsLoadList *loads)
{
  LsRoute own;
  ls_route (c, from, to, 0, &own);
  for (uint32_t i = 0; i < own.n_hops; i++)
    ls_load_list_add (loads, own.hop[i].trunk, blocks * own.hop[i].share);
}

/* Adds what `blocks` of LS_HOP_WHOLE each load on the way from one GPU to another. */
static void
ls_moved_routes_add (LsMovedRoutes *r, const LsCluster *c, uint32_t from, uint32_t to, uint64_t blocks,
                     LsLoadList *loads)
{
  const End sender = end_of (r->at, from), receiver = end_of (r->at, to);
  uint32_t per_host = r->at->gpus_per_host,
           relation = ls_places_relation (r->at, sender.place[0], receiver.place[0]);
  LsMovedRoute **known = &r->known[(relation * per_host + sender.number) * per_host + receiver.number];
  const LsMovedRoute *route = *known = *known ? *known : route_new (r, c, from, to);
  if (route->n_parts == ON_ITS_OWN) {
    add_own (c, from, to, blocks, loads);
    return;
  }
  for (uint32_t i = 0; i < route->n_parts; i++) {
    const LsMovedPart *part = &route->parts[i];
    uint32_t place = (part->is_at_receiver ? receiver : sender).place[part->tier];
    if (r->has_rows) {
      const LsPlaceRow *row = &g_array_index (r->rows.rows, LsPlaceRow, part->row);
      row->sums[place - r->rows.first[row->tier]] += blocks * part->share;
    }
    for (uint32_t k = 0; k < part->n && !r->has_rows; k++)
      ls_load_list_add (loads, ls_places_resource (r->at, place, part->local[k]), blocks * part->share);
  }
}

/* --- what the messages of rounds add up to, in blocks: on members, and on trunks ----------------- */

/* The same for an array of any size. */

typedef enum { LS_WAY_INTRA, LS_WAY_INTER, LS_WAY_SWITCH, LS_N_WAYS } LsWay;

/* Blocks that a member sends and receives. */
typedef struct {
  uint64_t out[LS_N_WAYS], in[LS_N_WAYS];
} LsTraffic;

/* What sums load by a factor, and what moves through memory for a block that is sent or received. */
typedef struct Loaded Loaded;
struct Loaded {
  Loaded *next;
  double factor, hbm_from, hbm_to, rate; /* rate: LsPhase.loads_rate */
  uint32_t n_loads;
  LsLoad *loads;
};

typedef struct {
  const LsTraffic *traffic; /* [n] of the members whose messages they are            */
  uint32_t n, n_loads;
  const LsLoad *loads;     /* coef: blocks times LS_HOP_WHOLE; sorted by resource   */
  bool has_way[LS_N_WAYS]; /* whether any message goes this way, blocks or not      */
  Loaded *loaded;          /* as far as it was asked for                            */
} LsSums;

/* What was asked for. No gaps: compared as bytes. Of a cluster only the messages tell scripts apart: who
 * computes them, of what. */
typedef struct {
  uint32_t (*sends) (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret);
  void (*edges) (const LsScript *s, uint32_t place, LsEdges *ret);
  uint64_t flows; /* over how many ways a message spreads */
  const uint32_t *like;
  const uint32_t *weights;
  uint32_t weighs_senders, kind, n, root, n_blocks, first, n_rounds;
  uint32_t n_members; /* whose messages they are */
} Wanted;

/* And the answer. */
typedef struct {
  Wanted what;
  const uint32_t *gpus;
  LsSums sums;
} Known;

static gboolean
is_same (gconstpointer known, gconstpointer wanted)
{
  const Known *a = known, *b = wanted;
  return memcmp (&a->what, &b->what, sizeof a->what) == 0
      && memcmp (a->gpus, b->gpus, a->what.n * sizeof *a->gpus) == 0;
}

/* Each channel has its share of the blocks. */
static void
add_route (const LsScript *s, uint32_t from, const LsSend *send, LsLoadList *loads)
{
  LsRoute route;
  uint32_t n_channels = ls_script_n_channels (s);
  for (uint32_t c = 0; c < n_channels; c++) {
    uint64_t part = n_channels == 1 ? LS_HOP_WHOLE : ls_script_channel_flows (s, c) * LS_HOP_WHOLE / s->flows;
    ls_script_route_channel (s, from, send->to, c, &route);
    for (uint32_t i = 0; i < route.n_hops; i++)
      ls_load_list_add (loads, route.hop[i].trunk, send->n * (part * route.hop[i].share / LS_HOP_WHOLE));
  }
}

/* Messages as they are added up. */
typedef struct {
  const LsCollCall *call;
  const LsScript *s;
  LsMovedRoutes routes;
  LsLoadList loads;
  LsTraffic *traffic;
  LsSums *sums;
} Adding;

/* Without places each route is found by itself. */
static void
add_message (Adding *a, uint32_t from, const LsSend *send)
{
  const LsScript *s = a->s;
  bool is_switch = from >= s->n || send->to >= s->n;
  LsWay way = is_switch                             ? LS_WAY_SWITCH
      : ls_coll_is_across (a->call, from, send->to) ? LS_WAY_INTER
                                                    : LS_WAY_INTRA;
  a->sums->has_way[way] = true;
  if (from < s->n)
    a->traffic[from].out[way] += send->n;
  if (send->to < s->n)
    a->traffic[send->to % a->sums->n].in[way] += send->n;
  if (a->routes.at)
    ls_moved_routes_add (&a->routes, s->cluster, s->gpus[from], s->gpus[send->to], send->n, &a->loads);
  else
    add_route (s, from, send, &a->loads);
}

static void
add_places (Adding *a, uint32_t round, uint32_t first, uint32_t n_places, LsSend *sends)
{
  const LsCollPeriod *p = a->call->period;
  for (uint32_t place = first; place < first + n_places; place++) {
    uint32_t n = a->s->sends (a->s, place, round, sends);
    for (uint32_t i = 0; i < n; i++) {
      add_message (a, place, &sends[i]);
      const LsSend back = { .to = place, .n = sends[i].n };
      if (p && p->like && sends[i].to < a->s->n && !ls_coll_period_is_kept (p, sends[i].to / p->n_members))
        add_message (a, sends[i].to, &back); /* nobody asks that member what it sends back */
    }
  }
}

/* Of members and switches, or of those in periods that are kept. */
static void
add_round (Adding *a, uint32_t round, LsSend *sends)
{
  const LsCollPeriod *p = a->call->period;
  const LsScript *s = a->s;
  for (uint32_t k = 0; p && k < p->n; k++) {
    if (!ls_coll_period_is_kept (p, k))
      continue;
    add_places (a, round, k * p->n_members, p->n_members, sends);
    add_places (a, round, s->n + k * p->n_hosts, s->n_switches > 0 ? p->n_hosts : 0, sends);
  }
  if (!p)
    add_places (a, round, 0, s->n + s->n_switches, sends);
}

static void
add_up (const LsCollCall *call, const LsScript *s, uint32_t first, uint32_t n_rounds, LsArena *arena,
        LsSums *sums)
{
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  g_autoptr (LsArena) scratch = ls_arena_new ();
  sums->n = ls_coll_loaded_members (call);
  Adding a = { .call = call,
               .s = s,
               .loads = ls_load_list_new (s->cluster),
               .traffic = ls_arena_new_array (arena, LsTraffic, sums->n),
               .sums = sums };
  bool may_move = call->places && !s->route && ls_script_n_channels (s) == 1;
  ls_moved_routes_init (&a.routes, may_move ? call->places : NULL, call->period ? NULL : s->gpus, s->n,
                        scratch);
  for (uint32_t r = first; r < first + n_rounds; r++)
    add_round (&a, r, sends);
  LsPhase phase;
  ls_moved_routes_finish (&a.routes, &a.loads, arena, &phase);
  const LsCollPeriod *p = call->period;
  if (p)
    ls_coll_period_fold (p, s->cluster, arena, &phase);
  for (uint32_t k = 0; p && p->like && k < p->n; k++)
    if (!ls_coll_period_is_kept (p, k)) /* they have sent, and heard, a part of what they do */
      memset (&a.traffic[k * p->n_members], 0, p->n_members * sizeof *a.traffic);
  sums->traffic = a.traffic;
  sums->n_loads = phase.n_loads;
  sums->loads = phase.loads;
}

/* Rounds first .. first + n_rounds - 1. Of call->asked.memo, or else in arena. Cost: linear in the
 * messages, where the memo does not know it. */
static LsSums *
sums_of_rounds (const LsCollCall *call, const LsScript *s, uint32_t first, uint32_t n_rounds, LsArena *arena)
{
  LsCollMemo *memo = call->asked.memo;
  const Known wanted = { .what = { .sends = s->sends,
                                   .edges = s->edges,
                                   .flows = ls_script_n_channels (s) > 1 ? s->flows : 0,
                                   .like = call->period ? call->period->like : NULL,
                                   .weights = call->weights,
                                   .weighs_senders = call->asked.weighs_senders,
                                   .kind = s->kind,
                                   .n = s->n,
                                   .root = s->root,
                                   .n_blocks = s->n_blocks,
                                   .first = first,
                                   .n_rounds = n_rounds,
                                   .n_members = ls_coll_loaded_members (call) },
                         .gpus = s->gpus };
  guint at;
  if (memo && g_ptr_array_find_with_equal_func (memo->known, &wanted, is_same, &at))
    return &((Known *) memo->known->pdata[at])->sums;
  LsArena *to = memo ? memo->arena : arena;
  Known *new = ls_arena_new_array (to, Known, 1);
  *new = wanted;
  add_up (call, s, first, n_rounds, to, &new->sums);
  if (memo) {
    uint32_t *gpus = ls_arena_new_array (to, uint32_t, s->n);
    memcpy (gpus, s->gpus, s->n * sizeof *gpus);
    new->gpus = gpus;
    g_ptr_array_add (memo->known, new);
  }
  return &new->sums;
}

/* --- phases made from the messages of a script --------------------------------------------------- */

static uint64_t
sum_of (const uint64_t *blocks)
{
  return blocks[LS_WAY_INTRA] + blocks[LS_WAY_INTER] + blocks[LS_WAY_SWITCH];
}

static uint64_t
busiest (const LsSums *sums)
{
  uint64_t max = 0;
  for (uint32_t i = 0; i < sums->n; i++)
    max = MAX (max, MAX (sum_of (sums->traffic[i].out), sum_of (sums->traffic[i].in)));
  return max;
}

/* Of what all members move, with n_flows flows each. */
static double
longest_s (const LsScript *s, const LsSums *sums, uint32_t n_flows)
{
  const double rate[LS_N_WAYS] = { s->rate_intra, s->rate_inter, s->rate_switch };
  double longest = 0;
  for (uint32_t i = 0; i < sums->n; i++)
    for (int way = 0; way < LS_N_WAYS; way++) {
      uint64_t blocks = MAX (sums->traffic[i].out[way], sums->traffic[i].in[way]);
      if (blocks > 0)
        longest = fmax (longest, (double) blocks * s->block_bytes / (rate[way] * n_flows));
    }
  return longest;
}

/* A load of `coef` times the factor of *last, which has the one before: neighbours mostly carry the same.
 * What rounds to nothing stays, as the least there is. */
typedef struct {
  double factor;
  uint64_t coef, scaled;
} Scaled;

static uint64_t
scaled_by (Scaled *last, uint64_t coef)
{
  if (coef != last->coef) {
    last->coef = coef;
    last->scaled = MAX (1, (uint64_t) llround ((double) coef * last->factor));
  }
  return last->scaled;
}

/* Trunks, which are in order, and behind them the memory of members: nothing is there twice. */
static void
load_all (const LsScript *s, const LsSums *sums, LsArena *arena, Loaded *ret)
{
  LsLoad *loads = ls_arena_new_array (arena, LsLoad, sums->n_loads + sums->n);
  Scaled of_trunks = { .factor = ret->factor }, of_memory = { .factor = ret->factor };
  uint32_t n = 0;
  for (; n < sums->n_loads; n++)
    loads[n] = (LsLoad) { sums->loads[n].resource, scaled_by (&of_trunks, sums->loads[n].coef) };
  uint64_t hbm = 0;
  for (uint32_t i = 0; i < sums->n; i++) {
    if (i == 0 || memcmp (&sums->traffic[i], &sums->traffic[i - 1], sizeof *sums->traffic) != 0)
      hbm = (uint64_t) llround (((double) sum_of (sums->traffic[i].out) * s->hbm_from
                                 + (double) sum_of (sums->traffic[i].in) * s->hbm_to)
                                * (double) LS_HOP_WHOLE);
    if (hbm > 0)
      loads[n++] = (LsLoad) { ls_cluster_hbm_resource (s->cluster, s->gpus[i]), scaled_by (&of_memory, hbm) };
  }
  ls_loads_sort (&loads[sums->n_loads], n - sums->n_loads);
  ret->loads = loads;
  ret->n_loads = n;
  ret->rate = ls_loads_rate (s->cluster, loads, n, ls_cluster_n_resources (s->cluster));
}

/* Loads do not depend on bytes: calls of many sizes have the same ones. */
static void
load_phase (const LsCollCall *call, const LsScript *s, LsSums *sums, double factor, LsPhase *phase)
{
  LsArena *arena = call->asked.memo ? call->asked.memo->arena : call->arena;
  Loaded *l = sums->loaded;
  while (l && (l->factor != factor || l->hbm_from != s->hbm_from || l->hbm_to != s->hbm_to))
    l = l->next;
  if (!l) {
    l = ls_arena_new_array (arena, Loaded, 1);
    *l = (Loaded) { .next = sums->loaded, .factor = factor, .hbm_from = s->hbm_from, .hbm_to = s->hbm_to };
    load_all (s, sums, arena, l);
    sums->loaded = l;
  }
  phase->loads = l->loads;
  phase->n_loads = l->n_loads;
  phase->loads_rate = l->rate;
}

static LsTime
longest_hop (const LsScript *s, const LsSums *sums)
{
  const LsTime hop[LS_N_WAYS] = { s->hop_intra, s->hop_inter, s->hop_switch };
  LsTime longest = 0;
  for (int way = 0; way < LS_N_WAYS; way++)
    longest = sums->has_way[way] ? MAX (longest, hop[way]) : longest;
  return longest;
}

static void
phase_of_sums (const LsCollCall *call, const LsScript *s, LsSums *sums, const LsRounds *rounds,
               uint32_t n_flows, LsPhase *ret_phase)
{
  uint64_t max = busiest (sums);
  double repeats = rounds->is_same ? rounds->n_rounds : 1;
  double min_s = rounds->min_s > 0 ? rounds->min_s : longest_s (s, sums, n_flows) * repeats;
  ret_phase->demand_bytes = (double) max * s->block_bytes * repeats / n_flows;
  ret_phase->rate_cap = ret_phase->demand_bytes / min_s;
  double factor = (double) n_flows / (double) max * ((double) LS_COEF_ONE / LS_HOP_WHOLE);
  load_phase (call, s, sums, factor, ret_phase);
}

void
ls_phase_of_rounds (const LsCollCall *call, const LsScript *s, const LsRounds *rounds, uint32_t n_flows,
                    LsPhase *ret_phase)
{
  *ret_phase = (LsPhase) { .latency = rounds->latency };
  if (s->block_bytes <= 0)
    return;
  if (call->asked.is_tiny && rounds->min_s > 0) {
    ret_phase->demand_bytes = s->block_bytes;
    ret_phase->rate_cap = s->block_bytes / rounds->min_s;
    return;
  }
  g_autoptr (LsArena) scratch = ls_arena_new ();
  LsSums *sums = sums_of_rounds (call, s, rounds->first, rounds->is_same ? 1 : rounds->n_rounds, scratch);
  phase_of_sums (call, s, sums, rounds, n_flows, ret_phase);
}

/* Without bytes: from the first round to the end of the last, each place waiting for its own
 * messages. */
static LsTime
longest_way (const LsScript *s)
{
  uint32_t n_places = s->n + s->n_switches;
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  g_autofree LsTime *at = g_new0 (LsTime, n_places), *next = g_new (LsTime, n_places);
  LsTime longest = 0;
  for (uint32_t r = 0; r < s->n_rounds; r++) {
    memcpy (next, at, n_places * sizeof *at);
    for (uint32_t place = 0; place < n_places; place++) {
      uint32_t n = s->sends (s, place, r, sends);
      for (uint32_t i = 0; i < n; i++)
        next[sends[i].to] = MAX (next[sends[i].to], at[place] + ls_script_latency (s, place, sends[i].to));
    }
    memcpy (at, next, n_places * sizeof *at);
  }
  for (uint32_t place = 0; place < n_places; place++)
    longest = MAX (longest, at[place]);
  return longest;
}

LsPhase *
ls_plan_phases (const LsCollCall *call, uint32_t n_flows, uint32_t n, LsCollPlan *ret_plan)
{
  ret_plan->sm_share = fmin (1, n_flows * call->nccl->sm_share_per_channel);
  ret_plan->n_phases = n;
  ret_plan->phases = ls_arena_new_array (call->arena, LsPhase, n);
  return ret_plan->phases;
}

void
ls_plan_as_one (const LsCollCall *call, const LsScript *s, uint32_t n_flows, LsTime latency, double min_s,
                LsCollPlan *ret_plan)
{
  const LsRounds all = { .n_rounds = s->n_rounds, .latency = latency, .min_s = min_s };
  ls_phase_of_rounds (call, s, &all, n_flows, ls_plan_phases (call, n_flows, 1, ret_plan));
}

void
ls_plan_of_rounds (const LsCollCall *call, const LsScript *s, LsCollPlan *ret_plan)
{
  uint32_t n_flows = ls_coll_channels (call);
  bool has_bytes = s->block_bytes > 0;
  ls_plan_phases (call, n_flows, has_bytes ? s->n_rounds : 1, ret_plan);
  if (!has_bytes)
    ret_plan->phases[0].latency = longest_way (s);
  for (uint32_t r = 0; r < s->n_rounds && has_bytes; r++) {
    g_autoptr (LsArena) scratch = ls_arena_new ();
    LsRounds round = { .first = r, .n_rounds = 1 };
    LsSums *sums = sums_of_rounds (call, s, r, 1, scratch);
    phase_of_sums (call, s, sums, &round, n_flows, &ret_plan->phases[r]);
    ret_plan->phases[r].latency = longest_hop (s, sums);
  }
  ret_plan->phases[0].latency += s->base;
}

LsScript
ls_script_of (const LsCollCall *call)
{
  double hbm = ls_nccl_hbm_per_wire (call->nccl, call->kind) / 2;
  return (LsScript) { .kind = call->kind,
                      .n = call->n,
                      .root = call->root,
                      .gpus = call->gpus,
                      .cluster = call->cluster,
                      .hbm_from = hbm,
                      .hbm_to = hbm };
}

void
ls_script_cut (const LsCollCall *call, LsScript *s, uint32_t n_blocks)
{
  s->n_blocks = n_blocks;
  s->block_bytes = (double) call->bytes / (call->kind == LS_COLL_ALL_TO_ALL ? call->n : n_blocks);
}

void
ls_script_like_p2p (const LsCollCall *call, LsScript *s)
{
  const LsNccl *nccl = call->nccl;
  uint32_t n_channels = ls_coll_channels (call);
  bool is_of_sends
      = call->kind == LS_COLL_ALL_TO_ALL || call->kind == LS_COLL_GATHER || call->kind == LS_COLL_SCATTER;
  s->base = !is_of_sends         ? ls_nccl_base (nccl, call->kind)
      : call->seats.n_hosts == 1 ? nccl->base_p2p_intra
                                 : nccl->base_p2p_inter;
  s->hop_intra = nccl->hop_intra;
  s->hop_inter = nccl->hop_inter;
  s->rate_intra = nccl->p2p_intra / n_channels;
  s->rate_inter = nccl->p2p_inter / n_channels;
  s->flows = n_channels * LS_COEF_ONE;
}

void
ls_script_star (const LsCollCall *call, LsScript *s, uint32_t k)
{
  uint32_t n = call->n - 1;
  s->flows = MAX (1, s->flows / n);
  s->rate_intra *= (double) n / MAX (1, k - 1);
  s->rate_inter *= (double) n / MAX (1, call->n - k);
}

static void
find_edges (const LsCollCall *call, LsScript *s)
{
  uint32_t n_places = s->n + s->n_switches, *n_edges = ls_arena_new_array (call->arena, uint32_t, n_places);
  LsEdges e = { .s = s, .all = g_array_new (FALSE, FALSE, sizeof (LsEdge)) };
  ls_arena_own (call->arena, e.all, (GDestroyNotify) g_array_unref);
  for (uint32_t place = 0; place < n_places; place++) {
    s->edges (s, place, &e);
    n_edges[place] = e.all->len;
  }
  s->known_edges = e.all;
  s->n_edges = n_edges;
}

void
ls_script_pipeline (const LsCollCall *call, LsScript *s, LsTime latency)
{
  find_edges (call, s);
  s->hop_intra = s->hop_inter = s->hop_switch = 1;
  s->hop_intra = s->hop_inter = s->hop_switch = latency / MAX (1, longest_way (s));
}

LsCollMemo *
ls_coll_memo_new (void)
{
  LsArena *arena = ls_arena_new ();
  LsCollMemo *memo = ls_arena_new_array (arena, LsCollMemo, 1);
  memo->arena = arena;
  memo->known = ls_arena_own (arena, g_ptr_array_new (), (GDestroyNotify) g_ptr_array_unref);
  return memo;
}

void
ls_coll_memo_free (LsCollMemo *memo)
{
  if (memo)
    ls_arena_free (memo->arena);
}
