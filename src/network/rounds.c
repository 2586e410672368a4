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
#include <math.h>
#include <string.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/memo.h"
#include "network/moved_route.h"
#include "network/period.h"

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

/* What was asked for, and the answer. Of a cluster only the messages tell scripts apart:
 * who computes them, of what. */
typedef struct {
  uint32_t (*sends) (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret);
  LsCollKind kind;
  uint32_t n, root, n_blocks, first, n_rounds;
  uint64_t flows;     /* over how many ways a message spreads */
  uint32_t n_members; /* whose messages they are              */
  const uint32_t *like;
  const uint32_t *weights;
  bool weighs_senders;
  const uint32_t *gpus;
  LsSums sums;
} Known;

static bool
is_same (const Known *a, const Known *b)
{
  return a->sends == b->sends && a->kind == b->kind && a->n == b->n && a->root == b->root
      && a->n_blocks == b->n_blocks && a->first == b->first && a->n_rounds == b->n_rounds
      && a->flows == b->flows && a->n_members == b->n_members && a->like == b->like
      && a->weights == b->weights && a->weighs_senders == b->weighs_senders
      && memcmp (a->gpus, b->gpus, a->n * sizeof *a->gpus) == 0;
}

static LsWay
way_of (const LsCollCall *call, const LsScript *s, uint32_t from, uint32_t to)
{
  if (from >= s->n || to >= s->n)
    return LS_WAY_SWITCH;
  return call->host_of[call->seat[from]] == call->host_of[call->seat[to]] ? LS_WAY_INTRA : LS_WAY_INTER;
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
  LsWay way = way_of (a->call, s, from, send->to);
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

/* Whether it sends to a member of whom nobody asks what he sends back. */
static bool
is_to_other (const Adding *a, const LsSend *send)
{
  const LsCollPeriod *p = a->call->period;
  return p && p->like && send->to < a->s->n && !ls_coll_period_is_kept (p, send->to / p->n_members);
}

static void
add_places (Adding *a, uint32_t round, uint32_t first, uint32_t n_places, LsSend *sends)
{
  for (uint32_t place = first; place < first + n_places; place++) {
    uint32_t n = a->s->sends (a->s, place, round, sends);
    for (uint32_t i = 0; i < n; i++) {
      add_message (a, place, &sends[i]);
      const LsSend back = { .to = place, .n = sends[i].n };
      if (is_to_other (a, &sends[i]))
        add_message (a, sends[i].to, &back);
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

/* They have sent, and heard, a part of what they do. */
static void
forget_others (const LsCollPeriod *p, LsTraffic *traffic)
{
  for (uint32_t k = 0; p->like && k < p->n; k++)
    if (!ls_coll_period_is_kept (p, k))
      memset (&traffic[k * p->n_members], 0, p->n_members * sizeof *traffic);
}

static void
add_up (const LsCollCall *call, const LsScript *s, uint32_t first, uint32_t n_rounds, LsArena *arena,
        LsSums *sums)
{
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  sums->n = ls_coll_loaded_members (call);
  Adding a = { .call = call,
               .s = s,
               .loads = ls_load_list_new (s->cluster),
               .traffic = ls_arena_new_array (arena, LsTraffic, sums->n),
               .sums = sums };
  bool may_move = call->places && !s->route && ls_script_n_channels (s) == 1;
  ls_moved_routes_init (&a.routes, may_move ? call->places : NULL, call->period ? NULL : s->gpus, s->n);
  for (uint32_t r = first; r < first + n_rounds; r++)
    add_round (&a, r, sends);
  LsPhase phase;
  ls_moved_routes_finish (&a.routes, &a.loads, arena, &phase);
  ls_moved_routes_clear (&a.routes);
  if (call->period) {
    ls_coll_period_fold (call->period, s->cluster, arena, &phase);
    forget_others (call->period, a.traffic);
  }
  sums->traffic = a.traffic;
  sums->n_loads = phase.n_loads;
  sums->loads = phase.loads;
}

static Known *
find (const LsCollMemo *memo, const Known *wanted)
{
  for (guint i = 0; i < memo->known->len; i++)
    if (is_same (memo->known->pdata[i], wanted))
      return memo->known->pdata[i];
  return NULL;
}

/* Rounds first .. first + n_rounds - 1. Of call->memo, or else in arena. Cost: linear in the
 * messages, where the memo does not know it. */
static LsSums *
sums_of_rounds (const LsCollCall *call, const LsScript *s, uint32_t first, uint32_t n_rounds, LsArena *arena)
{
  LsCollMemo *memo = call->memo;
  Known wanted = { s->sends,
                   s->kind,
                   s->n,
                   s->root,
                   s->n_blocks,
                   first,
                   n_rounds,
                   ls_script_n_channels (s) > 1 ? s->flows : 0,
                   ls_coll_loaded_members (call),
                   call->period ? call->period->like : NULL,
                   call->weights,
                   call->weighs_senders,
                   s->gpus,
                   { 0 } };
  Known *known = memo ? find (memo, &wanted) : NULL;
  if (known)
    return &known->sums;
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

/* What a member moves through its memory, in the unit of LsSums.loads. */
static uint64_t
hbm_of (const LsScript *s, const LsTraffic *t)
{
  double blocks = (double) sum_of (t->out) * s->hbm_from + (double) sum_of (t->in) * s->hbm_to;
  return (uint64_t) llround (blocks * (double) LS_HOP_WHOLE);
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

static bool
is_same_traffic (const LsTraffic *a, const LsTraffic *b)
{
  return memcmp (a, b, sizeof *a) == 0;
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
    if (i == 0 || !is_same_traffic (&sums->traffic[i], &sums->traffic[i - 1]))
      hbm = hbm_of (s, &sums->traffic[i]);
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
  LsArena *arena = call->memo ? call->memo->arena : call->arena;
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
  if (call->is_tiny && rounds->min_s > 0) {
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

void
ls_plan_of_rounds (const LsCollCall *call, const LsScript *s, LsCollPlan *ret_plan)
{
  uint32_t n_flows = ls_coll_channels (call);
  bool has_bytes = s->block_bytes > 0;
  ret_plan->n_phases = has_bytes ? s->n_rounds : 1;
  ret_plan->phases = ls_arena_new_array (call->arena, LsPhase, ret_plan->n_phases);
  ret_plan->sm_share = fmin (1, n_flows * call->nccl->sm_share_per_channel);
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
  return (LsScript) {
    .kind = call->kind, .n = call->n, .root = call->root, .gpus = call->gpus, .cluster = call->cluster
  };
}

void
ls_script_cut (const LsCollCall *call, LsScript *s, uint32_t n_blocks)
{
  s->n_blocks = n_blocks;
  s->block_bytes = (double) call->bytes / (call->kind == LS_COLL_ALL_TO_ALL ? call->n : n_blocks);
}

static LsTime
base_of (const LsCollCall *call)
{
  if (call->kind == LS_COLL_ALL_TO_ALL || call->kind == LS_COLL_GATHER || call->kind == LS_COLL_SCATTER)
    return call->n_hosts == 1 ? call->nccl->base_p2p_intra : call->nccl->base_p2p_inter;
  return ls_nccl_base (call->nccl, call->kind);
}

void
ls_script_like_p2p (const LsCollCall *call, LsScript *s)
{
  const LsNccl *nccl = call->nccl;
  uint32_t n_channels = ls_coll_channels (call);
  s->base = base_of (call);
  s->hop_intra = nccl->hop_intra;
  s->hop_inter = nccl->hop_inter;
  s->rate_intra = nccl->p2p_intra / n_channels;
  s->rate_inter = nccl->p2p_inter / n_channels;
  s->flows = n_channels * LS_COEF_ONE;
  s->hbm_from = s->hbm_to = ls_nccl_hbm_per_wire (nccl, call->kind) / 2;
}

void
ls_script_star (const LsCollCall *call, LsScript *s, uint32_t k)
{
  uint32_t n = call->n - 1;
  s->flows = MAX (1, s->flows / n);
  s->rate_intra *= (double) n / MAX (1, k - 1);
  s->rate_inter *= (double) n / MAX (1, call->n - k);
}

void
ls_script_pipeline (LsScript *s, LsTime latency)
{
  s->hop_intra = s->hop_inter = s->hop_switch = 1;
  s->hop_intra = s->hop_inter = s->hop_switch = latency / MAX (1, longest_way (s));
}
