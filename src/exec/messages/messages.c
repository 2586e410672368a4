#include "exec/messages/messages.h"

#include <math.h>
#include <string.h>

#include "exec/shortcuts/refine.h"

/* --- ways ------------------------------------------------------------------------ */

/* What a message of a script uses on its way, and how long it takes alone.
 *
 * A message of n blocks is `flows` equal flows of demand bytes each: on each trunk of the routes of its
 * channels, and on the HBMs at both ends (network/script.h). Alone its bytes have left after
 *
 *     moving = ceil (demand / cap),   demand = n block_bytes / flows */

/* No event fires later (as in run.c): half of what can be represented, so that a message that
 * begins before it may take as long again. */
#define MESSAGES_CLOCK_END (LS_TIME_NEVER / 2)

typedef struct {
  LsFlowUse *uses; /* [max_uses] */
  uint32_t n_uses, max_uses;
} Way;

static double
flows_of (const LsScript *s)
{
  return (double) s->flows / (double) LS_COEF_ONE;
}

static void
add_use (Way *way, uint32_t resource, double flows)
{
  uint64_t coef = (uint64_t) llround (flows * (double) LS_COEF_ONE);
  uint32_t i = 0;
  while (i < way->n_uses && way->uses[i].resource != resource)
    i++;
  if (coef == 0)
    return;
  if (i == way->n_uses)
    way->uses[way->n_uses++] = (LsFlowUse) { .resource = resource };
  way->uses[i].coef += coef;
}

/* way: zeroed, or used before. */
static void
way_find (Way *way, const LsScript *script, uint32_t from, uint32_t to)
{
  LsRoute route;
  double flows = flows_of (script);
  way->n_uses = 0;
  for (uint32_t c = 0; c < ls_script_n_channels (script); c++) {
    double here = (double) ls_script_channel_flows (script, c) / (double) LS_COEF_ONE;
    ls_script_route_channel (script, from, to, c, &route);
    if (way->n_uses + route.n_hops + 2 > way->max_uses) {
      way->max_uses = way->n_uses + route.n_hops + 2;
      way->uses = g_renew (LsFlowUse, way->uses, way->max_uses);
    }
    for (uint32_t i = 0; i < route.n_hops; i++)
      add_use (way, route.hop[i].trunk, here * ((double) route.hop[i].share / LS_HOP_WHOLE));
  }
  if (from < script->n)
    add_use (way, ls_cluster_hbm_resource (script->cluster, script->gpus[from]), flows * script->hbm_from);
  if (to < script->n)
    add_use (way, ls_cluster_hbm_resource (script->cluster, script->gpus[to]), flows * script->hbm_to);
}

/* Bytes of each flow. */
static double
way_demand (const LsScript *script, uint32_t n)
{
  return n * script->block_bytes / flows_of (script);
}

/* MESSAGES_CLOCK_END at most. */
static LsTime
way_moving (const LsScript *script, uint32_t n, double cap)
{
  double demand = way_demand (script, n);
  return demand > 0 ? MIN (ls_time_from_s_up (demand / cap), MESSAGES_CLOCK_END) : 0;
}

/* --- messages ----------------------------------------------------------------------- */

#define NO_PLACE UINT32_MAX

/* A message whose bytes have a time to leave: an event when it arrives. */
typedef struct Message Message;
struct Message {
  LsEvent arrives;
  Messages *owner;
  Message *next;      /* of those that are free */
  uint32_t to, round; /* seat */
};

/* What a seat sends: its k-th message of the present round. */
typedef struct {
  uint32_t to;           /* place                                                */
  uint32_t n;            /* blocks of a message                                  */
  uint32_t n_begun : 31; /* messages like this, since `to` or `n` changed        */
  uint32_t is_leased : 1;
  uint32_t seat, to_seat;
  LsTime left_at; /* with a lease: when the bytes of the last have left   */
  LsTime moving, latency;
  Message *last; /* with a lease; arrives at left_at + latency           */
} Slot;

/* The rest of it. */
typedef struct {
  LsFlow flow;
  Lease lease;
  double demand; /* bytes of each flow */
  Way way;
  GList *links; /* [way.max_uses] */
  Messages *owner;
} Side;

/* A place, or one lane of it: what goes through rounds by itself. */
typedef struct {
  LsEvent wake;   /* at left_at, if nothing else moves it on                       */
  LsTime left_at; /* of all that it sends with a lease                             */
  Messages *owner;
  uint32_t round;
  uint32_t n_receives; /* of the round, to come                                        */
  uint32_t n_flows;    /* of its sends, in the net                                     */
} Seat;

struct Messages {
  const MessageNet *net;
  const LsScript *script;
  void (*finished) (void *context, void *owner, LsTime at);
  void *owner;
  double *resource_bytes;
  uint32_t n_lanes, n_seats, n_done;
  uint32_t slots_per_seat;
  uint64_t n_arrived;
  Seat *seats; /* [place][n_lanes]       */
  Slot *slots; /* [seat][slots_per_seat] */
  Side *sides;
  LsSend *sends; /* [max_sends], scratch */
  /* [n_seats][width]: messages received in a later round than the receiver's, by round
   * modulo the width, a power of two. */
  uint32_t *early;
  uint32_t width;
  Message *free;
  LsArena *arena; /* of all of it, but ways and links */
};

#define BLOCK 1024

static void move_on (Messages *m, uint32_t seat);

static inline Side *
side_of (const Messages *m, const Slot *s)
{
  return &m->sides[s - m->slots];
}

static inline Slot *
slot_of (const Side *d)
{
  return &d->owner->slots[d - d->owner->sides];
}

static size_t
n_slots (const LsScript *s)
{
  return ((size_t) s->n + s->n_switches) * s->max_sends;
}

/* --- routes and times --------------------------------------------------------- */

/* Adds what was sent on the present route in messages of the present size. */
static void
account (const Messages *m, Slot *s)
{
  const Side *d = side_of (m, s);
  double bytes = d->demand * (double) s->n_begun;
  for (uint32_t i = 0; i < d->flow.n_uses && m->resource_bytes; i++)
    m->resource_bytes[d->way.uses[i].resource]
        += bytes * ((double) d->way.uses[i].coef / (double) LS_COEF_ONE);
  s->n_begun = 0;
}

static void
end_lease (const Messages *m, Slot *s)
{
  if (s->is_leased)
    leases_drop (m->net->leases, &side_of (m, s)->lease);
  s->is_leased = false;
}

static void
turn_to (const Messages *m, Slot *s, uint32_t to, uint32_t n)
{
  uint32_t place = s->seat / m->n_lanes;
  Side *d = side_of (m, s);
  uint32_t had_room = d->way.max_uses;
  end_lease (m, s);
  s->to = to;
  s->to_seat = to * m->n_lanes + s->seat % m->n_lanes;
  way_find (&d->way, m->script, place, to);
  if (d->way.max_uses > had_room)
    d->links = g_renew (GList, d->links, d->way.max_uses);
  d->flow.uses = d->way.uses;
  d->flow.n_uses = d->way.n_uses;
  d->lease.at = d->links;
  s->latency = ls_script_latency (m->script, place, to);
  d->flow.cap = d->flow.nominal_rate = ls_script_rate_cap (m->script, place, to, n);
}

/* The next messages are other ones than those before. */
static void
change (const Messages *m, Slot *s, const LsSend *send)
{
  Side *d = side_of (m, s);
  account (m, s);
  if (s->to != send->to || m->script->rate_cap)
    turn_to (m, s, send->to, send->n);
  s->n = send->n;
  d->demand = way_demand (m->script, s->n);
  s->moving = way_moving (m->script, s->n, d->flow.cap);
}

/* --- arrivals --------------------------------------------------------------------- */

static inline uint32_t *
early_of (const Messages *m, uint32_t seat, uint32_t round)
{
  return &m->early[(size_t) seat * m->width + (round & (m->width - 1))];
}

/* Makes room for messages that are `ahead` rounds ahead. */
static void
widen (Messages *m, uint32_t ahead)
{
  const uint32_t *old = m->early;
  uint32_t width = m->width;
  while (m->width <= ahead)
    m->width *= 2;
  m->early = ls_arena_new_array (m->arena, uint32_t, (size_t) m->n_seats * m->width);
  for (uint32_t p = 0; p < m->n_seats; p++)
    for (uint32_t i = 0; i < width; i++) {
      uint32_t round = m->seats[p].round + i;
      *early_of (m, p, round) = old[(size_t) p * width + (round & (width - 1))];
    }
}

#define PROGRESS_PERIOD 16384

static void
arrived (LsEvent *event, void *context)
{
  Message *msg = (Message *) event;
  Messages *m = msg->owner;
  Seat *to = &m->seats[msg->to];
  uint32_t round = msg->round, seat = msg->to;
  if (G_UNLIKELY (m->net->progress) && ++m->n_arrived % PROGRESS_PERIOD == 0)
    ls_progress_tell (m->net->progress, m->n_arrived, ls_script_n_messages (m->script));
  msg->next = m->free;
  m->free = msg;
  g_assert (round >= to->round);
  if (round == to->round) {
    g_assert (to->n_receives > 0);
    if (--to->n_receives == 0)
      move_on (m, seat);
    return;
  }
  if (round - to->round >= m->width)
    widen (m, round - to->round);
  ++*early_of (m, seat, round);
}

static void
add_block (Messages *m)
{
  Message *block = ls_arena_own (m->arena, g_new (Message, BLOCK), g_free);
  for (uint32_t i = BLOCK; i-- > 0;) {
    ls_event_init (&block[i].arrives, arrived);
    block[i].owner = m;
    block[i].next = m->free;
    m->free = &block[i];
  }
}

static inline Message *
arrive_at (Messages *m, uint32_t to, uint32_t round, LsTime at)
{
  if (G_UNLIKELY (!m->free))
    add_block (m);
  Message *msg = m->free;
  m->free = msg->next;
  msg->to = to;
  msg->round = round;
  ls_engine_at (m->net->engine, &msg->arrives, at, LS_PHASE_COMPLETE);
  return msg;
}

/* --- sends -------------------------------------------------------------------------- */

static void
flow_prepare (Messages *m, Slot *s, Side *d)
{
  d->flow.remaining = d->demand;
  d->flow.nominal = s->moving;
  m->seats[s->seat].n_flows++;
}

static void
flow_over (LsEvent *event, void *context)
{
  Side *d = (Side *) ((char *) event - G_STRUCT_OFFSET (Side, flow.done));
  Messages *m = d->owner;
  Slot *s = slot_of (d);
  Seat *p = &m->seats[s->seat];
  ls_flow_remove (m->net->flows, &d->flow);
  g_assert (p->n_flows > 0 && !s->is_leased);
  if (m->net->flow_over)
    m->net->flow_over (m->net->context, &d->flow, d->demand);
  arrive_at (m, s->to_seat, p->round, event->at + s->latency);
  if (--p->n_flows == 0)
    move_on (m, s->seat);
}

static inline void
send_one (Messages *m, Slot *s, Seat *p, const LsSend *send)
{
  LsTime now = m->net->engine->now;
  if (G_UNLIKELY (s->to != send->to || s->n != send->n || s->n_begun == G_MAXINT32))
    change (m, s, send);
  s->n_begun++;
  if (G_UNLIKELY (!s->is_leased) && m->net->leases)
    s->is_leased = leases_take (m->net->leases, &side_of (m, s)->lease);
  if (G_UNLIKELY (!s->is_leased && s->moving > 0)) {
    Side *d = side_of (m, s);
    flow_prepare (m, s, d);
    ls_flow_add (m->net->flows, &d->flow);
    return;
  }
  s->left_at = now + s->moving;
  p->left_at = MAX (p->left_at, s->left_at);
  s->last = arrive_at (m, s->to_seat, p->round, MIN (s->left_at, LS_TIME_NEVER - s->latency) + s->latency);
}

/* The lease is over. What is leaving becomes a flow as the net would have it. */
void
messages_revoked (Lease *lease)
{
  Side *d = (Side *) ((char *) lease - G_STRUCT_OFFSET (Side, lease));
  Messages *m = d->owner;
  Slot *s = slot_of (d);
  s->is_leased = false;
  if (s->left_at <= m->net->engine->now)
    return;
  ls_engine_cancel (m->net->engine, &s->last->arrives);
  s->last->next = m->free;
  m->free = s->last;
  flow_prepare (m, s, d);
  ls_flow_adopt (m->net->flows, &d->flow, s->left_at - s->moving, s->left_at);
}

/* --- seats ------------------------------------------------------------------------ */

static void
all_done (Messages *m)
{
  for (size_t i = 0; i < n_slots (m->script); i++) {
    account (m, &m->slots[i]);
    end_lease (m, &m->slots[i]);
  }
  m->finished (m->net->context, m->owner, m->net->engine->now);
}

/* Of this round, but for those that are there. */
static inline void
expect (const Messages *m, Seat *p, uint32_t seat, uint32_t n_receives)
{
  uint32_t *early = early_of (m, seat, p->round);
  g_assert (*early <= n_receives);
  p->n_receives = n_receives - *early;
  *early = 0;
}

/* The seat is in a new round: its sends. Those of a lane are the same in all rounds. */
static inline void
enter (Messages *m, Seat *p, uint32_t seat)
{
  const LsScript *script = m->script;
  Slot *slots = &m->slots[(size_t) seat * m->slots_per_seat];
  if (G_UNLIKELY (script->has_lanes)) {
    expect (m, p, seat, 1);
    send_one (m, slots, p, &(LsSend) { .to = slots->to, .n = slots->n });
    return;
  }
  uint32_t n = script->sends (script, seat, p->round, m->sends);
  g_assert (n <= script->max_sends);
  expect (m, p, seat, script->n_receives (script, seat, p->round));
  for (uint32_t k = 0; k < n; k++)
    send_one (m, &slots[k], p, &m->sends[k]);
}

/* The lanes of a place are in their first round. */
static void
enter_lanes (Messages *m, uint32_t place)
{
  uint32_t n = m->script->sends (m->script, place, 0, m->sends);
  g_assert (n == m->n_lanes && m->script->n_receives (m->script, place, 0) == n);
  for (uint32_t lane = 0, seat = place * n; lane < n; lane++, seat++) {
    expect (m, &m->seats[seat], seat, 1);
    send_one (m, &m->slots[seat], &m->seats[seat], &m->sends[lane]);
  }
}

/* As far as the seat gets by itself. */
static void
move_on (Messages *m, uint32_t seat)
{
  Seat *p = &m->seats[seat];
  LsTime now = m->net->engine->now;
  while (p->n_receives == 0 && p->n_flows == 0) {
    if (p->left_at > now) {
      ls_engine_at (m->net->engine, &p->wake, p->left_at, LS_PHASE_COMPLETE);
      return;
    }
    g_assert (p->round < m->script->n_rounds);
    if (++p->round == m->script->n_rounds) {
      if (++m->n_done == m->n_seats)
        all_done (m);
      return;
    }
    enter (m, p, seat);
  }
}

static void
woken (LsEvent *event, void *context)
{
  Seat *p = (Seat *) event;
  move_on (p->owner, (uint32_t) (p - p->owner->seats));
}

/* --- a collective ------------------------------------------------------------------- */

size_t
messages_bytes (const LsScript *script)
{
  size_t path = 10; /* of a leaf-spine, both HBMs included */
  return n_slots (script)
      * (sizeof (Slot) + sizeof (Side) + sizeof (Message) + path * (sizeof (LsFlowUse) + sizeof (GList)));
}

static void
slot_init (Messages *m, size_t i)
{
  Side *d = &m->sides[i];
  m->slots[i].seat = (uint32_t) (i / m->slots_per_seat);
  m->slots[i].to = NO_PLACE;
  ls_flow_init (&d->flow, flow_over);
  d->lease.flow = &d->flow;
  d->owner = m;
}

Messages *
messages_new (const MessageNet *net, const LsScript *script,
              void (*finished) (void *context, void *owner, LsTime at))
{
  LsArena *arena = ls_arena_new ();
  Messages *m = ls_arena_new_array (arena, Messages, 1);
  *m = (Messages) { .net = net, .script = script, .finished = finished, .width = 2, .arena = arena };
  m->n_lanes = script->has_lanes ? script->max_sends : 1;
  m->n_seats = (script->n + script->n_switches) * m->n_lanes;
  m->slots_per_seat = script->max_sends / m->n_lanes;
  m->seats = ls_arena_new_array (arena, Seat, m->n_seats);
  for (uint32_t p = 0; p < m->n_seats; p++) {
    ls_event_init (&m->seats[p].wake, woken);
    m->seats[p].owner = m;
  }
  m->early = ls_arena_new_array (arena, uint32_t, (size_t) m->n_seats * m->width);
  m->sends = ls_arena_new_array (arena, LsSend, script->max_sends);
  m->slots = ls_arena_new_array (arena, Slot, n_slots (script));
  m->sides = ls_arena_new_array (arena, Side, n_slots (script));
  for (size_t i = 0; i < n_slots (script); i++)
    slot_init (m, i);
  return m;
}

void
messages_free (Messages *m)
{
  if (!m)
    return;
  for (size_t i = 0; i < n_slots (m->script); i++) {
    g_free (m->sides[i].way.uses);
    g_free (m->sides[i].links);
  }
  ls_arena_free (m->arena);
}

/* All are in the first round before anyone is in the second. */
void
messages_begin (Messages *m, void *owner, double *resource_bytes)
{
  m->owner = owner;
  m->resource_bytes = resource_bytes;
  m->n_done = 0;
  if (m->script->n_rounds == 0) {
    all_done (m);
    return;
  }
  for (uint32_t p = 0; p < m->n_seats; p++)
    m->seats[p].round = 0;
  for (uint32_t p = 0; p < m->n_seats; p += m->n_lanes)
    if (m->script->has_lanes)
      enter_lanes (m, p / m->n_lanes);
    else
      enter (m, &m->seats[p], p);
  for (uint32_t p = 0; p < m->n_seats; p++)
    move_on (m, p);
}

/* ---- alone ---- */

/* How long a script takes alone: where no resource can fill, its rounds as a
 * recurrence; else by events.
 *
 * Problem. On an idle cluster most scripts load no trunk beyond its capacity. Then every message
 * leaves at its cap whatever the others do, and neither events nor rates are needed.
 *
 * Equations. moving (m) is the time in which message m leaves, latency (m) what it takes besides. A
 * seat (a place, or one lane of it) enters round r + 1 at
 *
 *     E[s, r+1] = max ( E[s, r],  E[s, r] + moving (m)                over m that s sends in round r,
 *                                 E[q, r] + moving (m) + latency (m)  over m that s receives of q )
 *
 * with E[s, 0] = 0; the last is over at the greatest E after the last round. It is what
 * messages.c finds event by event, to the picosecond (tests/unit/exec/test_messages.c).
 *
 * When it holds. A seat sends to a place in any round at most `most` messages of n blocks. If on each
 * resource the sum of most * cap * coefficient, over all of these, is not above its capacity, in the
 * whole numbers of a lease (exec/messages/lease.h), it cannot fill, however far apart the rounds are.
 * Where the sum is above, or the sends of a seat differ too much, the answer is no, and events must
 * tell. Both are known from the sends as they come up: the answer may be no only after some rounds.
 *
 * Lanes. The seats of a lane send to one seat each, always the same: they form cycles, and
 *
 *     E[i, r+1] = max (E[i, r] + a[i],  E[i-1, r] + b[i-1]),   a: moving, b: moving + latency
 *
 * All begin at 0, so seats with the same pairs (a, b) behind them, as far as one goes back, have the same E:
 * one of them is computed. Eight channels of 4,096 GPUs in nodes of 8 come to 8 seats instead of 32,768.
 *
 * Cost: O(messages) without lanes. With them O(seats * (way + log seats) + rounds * seats that differ). */

/* Of a seat: what goes to more places is looked up too long. */
#define MAX_EDGES 64

/* The messages of a seat to one place, of n blocks each. */
typedef struct {
  uint32_t to, n;
  uint32_t round, count, most; /* in this round; in any */
  LsTime moving, latency;
} Edge;

typedef struct {
  LsTime entered, next;
  Edge *edges;
  uint32_t n_edges, max_edges;
} LoneSeat;

typedef struct {
  const LsScript *script;
  uint32_t n_lanes, n_seats;
  LoneSeat *seats; /* [place][n_lanes] */
  LsSend *sends;
  Leases *leases; /* none is given: they add up the loads */
  Way way;
} Unshared;

/* Whether there is room for one more such message. */
static bool
load_once (Unshared *u, uint32_t from, const Edge *e)
{
  way_find (&u->way, u->script, from, e->to);
  LsFlow flow = { .cap = ls_script_rate_cap (u->script, from, e->to, e->n),
                  .uses = u->way.uses,
                  .n_uses = u->way.n_uses };
  leases_enter (u->leases, &flow);
  return !leases_could_fill (u->leases, &flow);
}

static Edge *
add_edge (Unshared *u, uint32_t from, LoneSeat *s, const LsSend *send)
{
  if (s->n_edges == MAX_EDGES)
    return NULL;
  if (s->n_edges == s->max_edges) {
    s->max_edges = MAX (1, 2 * s->max_edges);
    s->edges = g_renew (Edge, s->edges, s->max_edges);
  }
  double cap = ls_script_rate_cap (u->script, from, send->to, send->n);
  s->edges[s->n_edges] = (Edge) { .to = send->to,
                                  .n = send->n,
                                  .moving = way_moving (u->script, send->n, cap),
                                  .latency = ls_script_latency (u->script, from, send->to) };
  return &s->edges[s->n_edges++];
}

/* One more message of this round. NULL: it may share. */
static const Edge *
edge_of (Unshared *u, uint32_t from, LoneSeat *s, uint32_t round, const LsSend *send)
{
  Edge *e = s->edges, *end = e + s->n_edges;
  while (e < end && (e->to != send->to || e->n != send->n))
    e++;
  if (e == end && !(e = add_edge (u, from, s, send)))
    return NULL;
  if (e->round != round) {
    e->round = round;
    e->count = 0;
  }
  if (++e->count <= e->most)
    return e;
  e->most++;
  return load_once (u, from, e) ? e : NULL;
}

static LsTime
later (LsTime at, LsTime by)
{
  return MIN (at, LS_TIME_NEVER - by) + by;
}

/* --- places ------------------------------------------------------------------------- */

static bool
send_all (Unshared *u, uint32_t place, uint32_t round)
{
  LoneSeat *s = &u->seats[place];
  uint32_t n = u->script->sends (u->script, place, round, u->sends);
  for (uint32_t k = 0; k < n; k++) {
    const Edge *e = edge_of (u, place, s, round, &u->sends[k]);
    if (!e)
      return false;
    LoneSeat *to = &u->seats[e->to];
    LsTime left = later (s->entered, e->moving);
    s->next = MAX (s->next, left);
    to->next = MAX (to->next, later (left, e->latency));
  }
  return true;
}

/* False: they may share. */
static bool
run_rounds (Unshared *u, LsTime *ret_end)
{
  *ret_end = 0;
  for (uint32_t round = 0; round < u->script->n_rounds && *ret_end < MESSAGES_CLOCK_END; round++) {
    for (uint32_t place = 0; place < u->n_seats; place++)
      if (!send_all (u, place, round))
        return false;
    for (uint32_t place = 0; place < u->n_seats; place++) {
      u->seats[place].entered = u->seats[place].next;
      *ret_end = MAX (*ret_end, u->seats[place].next);
    }
  }
  return true;
}

/* --- lanes -------------------------------------------------------------------------- */

/* Seats that are alike. */
typedef struct {
  LsTime entered, next;
  LsTime moving, arriving; /* a, b */
  uint32_t from;           /* class of those that send to it */
} LoneClass;

static const Edge *
only_edge (const Unshared *u, uint32_t seat)
{
  g_assert (u->seats[seat].n_edges == 1);
  return u->seats[seat].edges;
}

/* Which seats have the same pairs behind them: of one, two, four and more seats each, until no class splits.
 * from: who sends to each. Returns how many classes; ret: [seats]. */
static uint32_t
classify (const Unshared *u, const uint32_t *from, uint32_t *ret)
{
  size_t size = u->n_seats * sizeof *from;
  g_autofree LsSig *sig = g_new (LsSig, u->n_seats);
  g_autofree uint32_t *back = g_memdup2 (from, size), *further = g_new (uint32_t, u->n_seats);
  for (uint32_t i = 0; i < u->n_seats; i++) {
    sig[i] = ls_sig_of ((uint64_t) only_edge (u, i)->moving);
    ls_sig_add (&sig[i], (uint64_t) only_edge (u, i)->latency);
  }
  uint32_t before = 0, n = sigs_number (sig, u->n_seats, ret);
  while (n != before) {
    for (uint32_t i = 0; i < u->n_seats; i++) {
      sig[i] = ls_sig_of ((uint64_t) ret[i] << 32 | ret[back[i]]);
      further[i] = back[back[i]];
    }
    memcpy (back, further, size);
    before = n;
    n = sigs_number (sig, u->n_seats, ret);
  }
  return n;
}

/* Newly allocated: what each class is. */
static LoneClass *
classes_of (const Unshared *u, uint32_t *ret_n)
{
  g_autofree uint32_t *from = g_new0 (uint32_t, u->n_seats), *class = g_new (uint32_t, u->n_seats);
  for (uint32_t i = 0; i < u->n_seats; i++)
    from[only_edge (u, i)->to * u->n_lanes + i % u->n_lanes] = i;
  *ret_n = classify (u, from, class);
  LoneClass *c = g_new0 (LoneClass, *ret_n);
  for (uint32_t i = 0; i < u->n_seats; i++) {
    const Edge *e = only_edge (u, i);
    /* a sum that cannot be told is beyond the clock's end, as either part of it is then or the other */
    c[class[i]] = (LoneClass) { .moving = e->moving,
                                .arriving = MIN (later (e->moving, e->latency), MESSAGES_CLOCK_END),
                                .from = class[from[i]] };
  }
  return c;
}

static bool
find_edges (Unshared *u)
{
  for (uint32_t place = 0; place < u->n_seats / u->n_lanes; place++) {
    uint32_t n = u->script->sends (u->script, place, 0, u->sends);
    g_assert (n == u->n_lanes);
    for (uint32_t lane = 0; lane < n; lane++)
      if (!edge_of (u, place, &u->seats[place * n + lane], 0, &u->sends[lane]))
        return false;
  }
  return true;
}

static bool
run_lanes (Unshared *u, LsTime *ret_end)
{
  uint32_t n;
  *ret_end = 0;
  if (!find_edges (u))
    return false;
  g_autofree LoneClass *classes = classes_of (u, &n);
  for (uint32_t round = 0; round < u->script->n_rounds && *ret_end < MESSAGES_CLOCK_END; round++) {
    for (LoneClass *c = classes; c < classes + n; c++) {
      c->next = MAX (c->entered + c->moving, classes[c->from].entered + classes[c->from].arriving);
      *ret_end = MAX (*ret_end, c->next);
    }
    for (LoneClass *c = classes; c < classes + n; c++)
      c->entered = c->next;
  }
  return true;
}

/* --- the whole ---------------------------------------------------------------------- */

bool
messages_time_unshared (const LsScript *script, const double *capacity, LsTime *ret_end)
{
  Unshared u = { .script = script, .n_lanes = script->has_lanes ? script->max_sends : 1 };
  u.n_seats = (script->n + script->n_switches) * u.n_lanes;
  u.seats = g_new0 (LoneSeat, u.n_seats);
  u.sends = g_new0 (LsSend, script->max_sends);
  u.leases = leases_new (NULL, ls_cluster_n_resources (script->cluster), capacity, NULL);
  *ret_end = 0;
  bool is_known
      = script->n_rounds == 0 || (script->has_lanes ? run_lanes (&u, ret_end) : run_rounds (&u, ret_end));
  if (*ret_end >= MESSAGES_CLOCK_END)
    *ret_end = LS_TIME_NEVER;
  for (uint32_t i = 0; i < u.n_seats; i++)
    g_free (u.seats[i].edges);
  g_free (u.seats);
  g_free (u.sends);
  leases_free (u.leases);
  g_free (u.way.uses);
  return is_known;
}

/* --- by events ------------------------------------------------------------------------------------- */

static void
note_end (void *context, void *owner, LsTime at)
{
  *(LsTime *) owner = at;
}

static double *
capacities_of (const LsCluster *c)
{
  double *capacity = g_new (double, ls_cluster_n_resources (c));
  for (uint32_t i = 0; i < ls_cluster_n_resources (c); i++)
    capacity[i] = ls_cluster_resource_capacity (c, i);
  return capacity;
}

LsTime
ls_messages_time_by_events (const LsScript *script, const LsCluster *cluster, const LsProgress *progress)
{
  uint32_t n = ls_cluster_n_resources (cluster);
  g_autofree double *capacity = capacities_of (cluster);
  LsEngine engine;
  LsTime end = LS_TIME_NEVER;
  ls_engine_init (&engine, &ls_evq_radix, NULL);
  engine.stop_at = MESSAGES_CLOCK_END;
  MessageNet net
      = { .engine = &engine, .flows = ls_flow_net_new (&engine, n, capacity, false), .progress = progress };
  net.leases = leases_new (net.flows, n, capacity, messages_revoked);
  Messages *m = messages_new (&net, script, note_end);
  messages_begin (m, &end, NULL);
  LsEngineEnd how = ls_engine_run (&engine);
  g_assert (how == LS_ENGINE_STOPPED || (how == LS_ENGINE_DRAINED && end != LS_TIME_NEVER));
  messages_free (m);
  leases_free (net.leases);
  ls_flow_net_free (net.flows);
  ls_engine_clear (&engine);
  return later (end, script->base);
}

LsTime
ls_messages_time_alone (const LsScript *script, const LsCluster *cluster, const LsProgress *progress)
{
  g_autofree double *capacity = capacities_of (cluster);
  LsTime end;
  if (messages_time_unshared (script, capacity, &end))
    return later (end, script->base);
  return ls_messages_time_by_events (script, cluster, progress);
}
