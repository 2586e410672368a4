/* exec/messages/messages_alone.c — how long a script takes alone: where no resource can fill, its rounds as a
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
 * All begin at 0, so E has the least period of the pairs (a, b) along the cycle, and cycles whose pairs
 * are the same, from wherever they begin, end at the same time: one period of one of them is computed.
 * Eight channels of 4,096 GPUs in nodes of 8 come to 8 seats instead of 32,768.
 *
 * Cost: O(messages) without lanes. With them O(seats * way + rounds * the periods that differ). */
#include "exec/messages/messages.h"
#include "exec/messages/way.h"

#include <string.h>

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
} Seat;

typedef struct {
  const LsScript *script;
  uint32_t n_lanes, n_seats;
  Seat *seats; /* [place][n_lanes] */
  LsSend *sends;
  Leases *leases; /* none is given: they add up the loads */
  Way way;
} Unshared;

/* Whether there is room for one more such message. */
static bool
load (Unshared *u, uint32_t from, const Edge *e)
{
  way_find (&u->way, u->script, from, e->to);
  LsFlow flow = { .cap = ls_script_rate_cap (u->script, from, e->to, e->n),
                  .uses = u->way.uses,
                  .n_uses = u->way.n_uses };
  leases_enter (u->leases, &flow);
  return !leases_could_fill (u->leases, &flow);
}

static Edge *
add_edge (Unshared *u, uint32_t from, Seat *s, const LsSend *send)
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
edge_of (Unshared *u, uint32_t from, Seat *s, uint32_t round, const LsSend *send)
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
  return load (u, from, e) ? e : NULL;
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
  Seat *s = &u->seats[place];
  uint32_t n = u->script->sends (u->script, place, round, u->sends);
  for (uint32_t k = 0; k < n; k++) {
    const Edge *e = edge_of (u, place, s, round, &u->sends[k]);
    if (!e)
      return false;
    Seat *to = &u->seats[e->to];
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

typedef struct {
  LsTime moving, arriving; /* a, b */
} Pair;

/* One period of a cycle, from where it is least. */
typedef struct {
  Pair *pairs;
  uint32_t n;
} Cycle;

static bool
is_less (const Pair *a, const Pair *b)
{
  return a->moving != b->moving ? a->moving < b->moving : a->arriving < b->arriving;
}

static bool
is_equal (const Pair *a, const Pair *b)
{
  return a->moving == b->moving && a->arriving == b->arriving;
}

/* Where the least rotation begins: two candidates, of which the greater is given up with all
 * that lies before where it differs. */
static uint32_t
least_rotation (const Pair *p, uint32_t n)
{
  uint32_t i = 0, j = 1, k = 0;
  while (i < n && j < n && k < n) {
    const Pair *a = &p[(i + k) % n], *b = &p[(j + k) % n];
    if (is_equal (a, b)) {
      k++;
      continue;
    }
    if (is_less (b, a))
      i += k + 1;
    else
      j += k + 1;
    j += i == j;
    k = 0;
  }
  return MIN (i, j);
}

/* The least d that divides n for which the pairs repeat: from the longest border of each prefix
 * (D. E. Knuth, J. H. Morris, V. R. Pratt, SIAM J. Comput. 6, 1977). */
static uint32_t
least_period (const Pair *p, uint32_t n)
{
  g_autofree uint32_t *border = g_new0 (uint32_t, n);
  for (uint32_t i = 1, k = 0; i < n; i++) {
    while (k > 0 && !is_equal (&p[i], &p[k]))
      k = border[k - 1];
    k += is_equal (&p[i], &p[k]);
    border[i] = k;
  }
  uint32_t d = n - border[n - 1];
  return n % d == 0 ? d : n;
}

static Cycle
cycle_of (const Pair *p, uint32_t n)
{
  uint32_t first = least_rotation (p, n);
  Cycle c = { g_new (Pair, n), least_period (p, n) };
  for (uint32_t i = 0; i < n; i++)
    c.pairs[i] = p[(first + i) % n];
  return c;
}

static void
clear_cycle (gpointer cycle)
{
  g_free (((Cycle *) cycle)->pairs);
}

static bool
is_among (const GArray *cycles, const Cycle *c)
{
  for (guint i = 0; i < cycles->len; i++) {
    const Cycle *other = &g_array_index (cycles, Cycle, i);
    if (other->n == c->n && memcmp (other->pairs, c->pairs, c->n * sizeof *c->pairs) == 0)
      return true;
  }
  return false;
}

static LsTime
run_cycle (const Cycle *c, uint32_t n_rounds)
{
  g_autofree LsTime *entered = g_new0 (LsTime, c->n);
  LsTime end = 0;
  for (uint32_t round = 0; round < n_rounds && end < MESSAGES_CLOCK_END; round++) {
    LsTime arrived = entered[c->n - 1] + c->pairs[c->n - 1].arriving;
    for (uint32_t i = 0; i < c->n; i++) {
      LsTime next = MAX (entered[i] + c->pairs[i].moving, arrived);
      arrived = entered[i] + c->pairs[i].arriving;
      entered[i] = next;
      end = MAX (end, next);
    }
  }
  return end;
}

/* The cycle that begins at this seat. Its seats are struck off: they have no edge afterwards. */
static void
follow (Unshared *u, uint32_t seat, GArray *pairs)
{
  g_array_set_size (pairs, 0);
  for (Seat *s = &u->seats[seat]; s->n_edges > 0; s = &u->seats[seat]) {
    const Edge *e = s->edges;
    /* a sum that cannot be told is beyond the clock's end, as either part of it is then or the other */
    Pair p = { e->moving, MIN (later (e->moving, e->latency), MESSAGES_CLOCK_END) };
    g_array_append_val (pairs, p);
    s->n_edges = 0;
    seat = e->to * u->n_lanes + seat % u->n_lanes;
  }
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
  *ret_end = 0;
  if (!find_edges (u))
    return false;
  g_autoptr (GArray) pairs = g_array_new (FALSE, FALSE, sizeof (Pair));
  g_autoptr (GArray) cycles = g_array_new (FALSE, FALSE, sizeof (Cycle));
  g_array_set_clear_func (cycles, clear_cycle);
  for (uint32_t seat = 0; seat < u->n_seats; seat++) {
    follow (u, seat, pairs);
    if (pairs->len == 0)
      continue;
    Cycle c = cycle_of ((const Pair *) (gpointer) pairs->data, pairs->len);
    if (is_among (cycles, &c)) {
      clear_cycle (&c);
      continue;
    }
    g_array_append_val (cycles, c);
    *ret_end = MAX (*ret_end, run_cycle (&c, u->script->n_rounds));
  }
  return true;
}

/* --- the whole ---------------------------------------------------------------------- */

bool
messages_time_unshared (const LsScript *script, const double *capacity, LsTime *ret_end)
{
  Unshared u = { .script = script, .n_lanes = script->has_lanes ? script->max_sends : 1 };
  u.n_seats = (script->n + script->n_switches) * u.n_lanes;
  u.seats = g_new0 (Seat, u.n_seats);
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
  way_clear (&u.way);
  return is_known;
}

/* --- by events ------------------------------------------------------------------------------------- */

static void
note_end (void *context, void *owner, LsTime at)
{
  *(LsTime *) owner = at;
}

static LsTime
after_base (const LsScript *script, LsTime end)
{
  return end >= LS_TIME_NEVER - script->base ? LS_TIME_NEVER : script->base + end;
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
  return after_base (script, end);
}

LsTime
ls_messages_time_alone (const LsScript *script, const LsCluster *cluster, const LsProgress *progress)
{
  g_autofree double *capacity = capacities_of (cluster);
  LsTime end;
  if (messages_time_unshared (script, capacity, &end))
    return after_base (script, end);
  return ls_messages_time_by_events (script, cluster, progress);
}
