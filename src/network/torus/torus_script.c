/* network/torus/torus_script.c — the collectives of coll_torus.c message by message.
 *
 * Seats, parts, bundles and pieces as in torus_shape.h. Parts of the array go by seat
 * (LsScript.part_of), so that block = seat * n_parts + part. The rounds of an all-gather:
 * those between slices, then those of each turn j, in which part p is on its j-th axis. A
 * reduce-scatter plays them backwards: who received then sends now.
 *
 * The rounds are in step; flow-level plans let the parts run into each other and hide the
 * latency. So with small arrays the script takes longer: rounds * (latency + message). What
 * a shorter axis has to move in a turn is spread over the rounds of the longest, shard by
 * shard: where these do not divide, a round of it may be the fuller one. */
#include "core/maxmin.h" /* LS_COEF_ONE */

#include "base/gcd.h"
#include "network/torus/torus_shape.h"

typedef struct {
  LsTorusShape shape;
  const uint32_t *seat, *member; /* of the call */
  uint32_t n_between;            /* rounds between slices      */
  uint32_t n_of_turn[LS_TORUS_AXES];
  uint32_t n_gather; /* rounds of an all-gather    */
} Data;

/* Sends go to ret, or are only counted if that is NULL. */
typedef struct {
  const Data *data;
  LsSend *ret;
  uint32_t n;
  bool reduces;
} Out;

static void
emit (Out *out, uint32_t seat_to, uint32_t first, uint32_t n, uint32_t stride)
{
  if (out->ret)
    out->ret[out->n] = (LsSend) {
      .to = out->data->member[seat_to], .first = first, .n = n, .stride = stride, .reduces = out->reduces
    };
  out->n++;
}

/* Shards first .. end - 1 of the bundle that starts at a position: those of the slices,
 * then along each axis where the part has been. The fastest of these is one message. */
static void
emit_bundle (Out *out, uint32_t seat_to, uint32_t part, uint32_t j, uint32_t origin, uint32_t first,
             uint32_t end)
{
  const LsTorusShape *s = &out->data->shape;
  uint32_t n[LS_TORUS_AXES + 1] = { s->n_slices }, step[LS_TORUS_AXES + 1] = { s->per_slice };
  for (uint32_t i = 0; i < j; i++) {
    const LsTorusLine *line = &s->axis[ls_torus_axis_of (s, part, i)];
    n[i + 1] = line->n;
    step[i + 1] = line->step;
    origin -= ls_torus_place_on (line, origin) * line->step;
  }
  uint32_t run = s->n_slices > 1 || j == 0 ? 0 : 1;
  for (uint32_t at = first; at < end;) {
    uint32_t seat = origin, rest = at;
    for (uint32_t i = 0; i <= j; i++) {
      seat += rest % n[i] * step[i];
      rest /= n[i];
    }
    uint32_t n_here = MIN (n[run] - at % n[run], end - at);
    emit (out, seat_to, seat * s->n_parts + part, n_here, step[run] * s->n_parts);
    at += n_here;
  }
}

/* A piece that place i of the line sends, addressed to `seat_to`. A turn has the rounds of
 * its longest axis; on a shorter one a step takes several, a part of the piece in each. */
static void
emit_piece (Out *out, uint32_t position, uint32_t seat_to, uint32_t part, uint32_t j, uint32_t round,
            bool is_backward)
{
  const LsTorusShape *s = &out->data->shape;
  const LsTorusLine *line = &s->axis[ls_torus_axis_of (s, part, j)];
  uint32_t i = ls_torus_place_on (line, position);
  uint32_t n_steps = ls_torus_rounds (line), n_rounds = out->data->n_of_turn[j];
  uint32_t step = ((round + 1) * n_steps - 1) / n_rounds, begin = step * n_rounds / n_steps;
  uint32_t width = (step + 1) * n_rounds / n_steps - begin;
  LsTorusPiece p = ls_torus_piece (line, ls_torus_bundle (s, part, j), i, step, is_backward);
  uint64_t n = p.end - p.first;
  uint32_t first = p.first + (uint32_t) (n * (round - begin) / width),
           end = p.first + (uint32_t) (n * (round - begin + 1) / width);
  if (end > first)
    emit_bundle (out, seat_to, part, j, position - i * line->step + p.origin * line->step, first, end);
}

/* What a seat sends in a round of an all-gather or, backwards, the reverse of what it
 * receives: to whom it came from. */
static void
moves_inside (Out *out, uint32_t seat, uint32_t j, uint32_t round, bool is_incoming)
{
  const LsTorusShape *s = &out->data->shape;
  uint32_t position = seat % s->per_slice, slice = seat - position;
  for (uint32_t part = 0; part < s->n_parts; part++)
    for (int back = 0; back < 2; back++) {
      const LsTorusLine *line = &s->axis[ls_torus_axis_of (s, part, j)];
      uint32_t i = ls_torus_place_on (line, position);
      if (!ls_torus_has_next (line, i, is_incoming ? !back : back))
        continue;
      uint32_t peer = ls_torus_next (line, position, is_incoming ? !back : back);
      emit_piece (out, is_incoming ? peer : position, slice + peer, part, j, round, back);
    }
}

static void
moves_between (Out *out, uint32_t seat, uint32_t round, bool is_incoming)
{
  const LsTorusShape *s = &out->data->shape;
  uint32_t n = s->n_slices * s->per_slice, before = (round + (is_incoming ? 1 : 0)) * s->per_slice;
  uint32_t owner = (seat + n - before) % n;
  uint32_t peer = (seat + (is_incoming ? n - s->per_slice : s->per_slice)) % n;
  emit (out, peer, owner * s->n_parts, s->n_parts, 1);
}

static void
moves (Out *out, uint32_t seat, uint32_t round, bool is_incoming)
{
  const Data *d = out->data;
  if (round < d->n_between) {
    moves_between (out, seat, round, is_incoming);
    return;
  }
  round -= d->n_between;
  uint32_t j = 0;
  while (round >= d->n_of_turn[j])
    round -= d->n_of_turn[j++];
  moves_inside (out, seat, j, round, is_incoming);
}

/* The round of an all-gather that a round of this script is, forwards or backwards. */
static uint32_t
gather_round (const LsScript *s, uint32_t round, bool *ret_is_reversed)
{
  const Data *d = s->data;
  *ret_is_reversed
      = (s->kind == LS_COLL_ALL_REDUCE && round < d->n_gather) || s->kind == LS_COLL_REDUCE_SCATTER;
  return *ret_is_reversed ? d->n_gather - 1 - round : round % d->n_gather;
}

static uint32_t
gathering_sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const Data *d = s->data;
  Out out = { .data = d, .ret = ret };
  uint32_t at = gather_round (s, round, &out.reduces);
  moves (&out, d->seat[place], at, out.reduces);
  return out.n;
}

static uint32_t
gathering_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  const Data *d = s->data;
  Out out = { .data = d };
  bool is_reversed;
  uint32_t at = gather_round (s, round, &is_reversed);
  moves (&out, d->seat[place], at, !is_reversed);
  return out.n;
}

/* Of a round: each run of shards of a bundle (emit_bundle) is one message, both ways. */
static uint32_t
most_sends (const LsTorusShape *s)
{
  uint32_t most = 1;
  for (uint32_t j = 0; j < s->n_axes; j++) {
    uint32_t n = 0;
    for (uint32_t part = 0; part < s->n_parts; part++) {
      uint32_t run = s->n_slices > 1 || j == 0 ? s->n_slices : s->axis[ls_torus_axis_of (s, part, 0)].n;
      n += 2 * (ls_torus_bundle (s, part, j) / run);
    }
    most = MAX (most, n);
  }
  return most;
}

static void
script_gathering (const LsCollCall *call, LsScript *s)
{
  Data *d = ls_arena_new_array (call->arena, Data, 1);
  *d = (Data) { .shape = ls_torus_shape (call), .seat = call->seats.seat, .member = call->seats.member };
  const LsTorusShape *shape = &d->shape;
  d->n_gather = d->n_between = shape->n_slices - 1;
  for (uint32_t j = 0; j < shape->n_axes; j++) {
    for (uint32_t axis = 0; axis < shape->n_axes; axis++)
      d->n_of_turn[j] = MAX (d->n_of_turn[j], ls_torus_rounds (&shape->axis[axis]));
    d->n_gather += d->n_of_turn[j];
  }
  s->data = d;
  s->part_of = call->seats.seat;
  s->n_blocks = call->n * shape->n_parts;
  s->n_rounds = d->n_gather * (s->kind == LS_COLL_ALL_REDUCE ? 2 : 1);
  s->max_sends = most_sends (shape);
  s->sends = gathering_sends;
  s->n_receives = gathering_receives;
}

static void
spread_route (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel, LsRoute *ret_route)
{
  ls_torus_spread (s->cluster, s->gpus[from], s->gpus[to], ret_route);
}

/* Trunks of two ways that begin with different axes are different ones. */
void
ls_torus_spread (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, LsRoute *ret_route)
{
  uint32_t per_node = c->spec.gpus_per_node;
  if (gpu_from / per_node != gpu_to / per_node) {
    ls_route (c, gpu_from, gpu_to, 0, ret_route);
    return;
  }
  const LsTorusSpec *t = &c->spec.torus;
  LsTorusCoord from = ls_torus_coord (t, gpu_from % per_node), to = ls_torus_coord (t, gpu_to % per_node);
  uint32_t n_ways = 0, share = LS_HOP_WHOLE;
  for (uint32_t axis = 0; axis < t->n_axes; axis++)
    n_ways += from.at[axis] != to.at[axis];

  ret_route->n_hops = 0;
  ret_route->latency = 0;
  for (uint32_t axis = 0; axis < t->n_axes; axis++) {
    if (from.at[axis] == to.at[axis])
      continue;
    LsRoute way;
    ls_route_torus (c, gpu_from, gpu_to, axis, &way);
    uint32_t part = share / n_ways--;
    share -= part;
    for (uint32_t i = 0; i < way.n_hops; i++)
      ret_route->hop[ret_route->n_hops++]
          = (LsHop) { way.hop[i].trunk, (uint32_t) ((uint64_t) way.hop[i].share * part / LS_HOP_WHOLE) };
    ret_route->latency = way.latency;
  }
}

/* --- a chain through the seats, both ways from the root, chunk by chunk --- */

/* A link of the chain moves its first chunk as the message from the root, or to it, comes there. */
static void
chain_edges (const LsScript *s, uint32_t place, LsEdges *ret)
{
  const Data *d = s->data;
  uint32_t seat = d->seat[place], root = d->seat[s->root], n_links = s->n_rounds - s->n_chunks + 1;
  bool reduces = s->kind == LS_COLL_REDUCE;
  for (int up = 1; up >= 0; up--) {
    if (seat == (up ? s->n - 1 : 0))
      continue;
    bool is_behind = up ? seat >= root : seat <= root; /* farther from the root */
    uint32_t links = (seat > root ? seat - root : root - seat) - !is_behind;
    uint32_t stage = reduces ? n_links - 1 - links : links;
    bool sends = is_behind != reduces;
    ls_edges_add (ret,
                  (LsEdge) { .to = d->member[up ? seat + 1 : seat - 1],
                             .out = sends ? stage : LS_NEVER,
                             .in = sends ? LS_NEVER : stage,
                             .n = 1,
                             .reduces = reduces });
  }
}

static void
script_chain (const LsCollCall *call, LsScript *s)
{
  Data *d = ls_arena_new_array (call->arena, Data, 1);
  *d = (Data) { .seat = call->seats.seat, .member = call->seats.member };
  uint32_t root = call->seats.seat[call->root], n_links = MAX (root, call->n - 1 - root);
  s->data = d;
  s->n_blocks = ls_coll_chunks (call, 1, n_links, call->n - 1);
  s->max_sends = 2;
  ls_script_pipe (s, s->n_blocks, 1, n_links, chain_edges);
}

static bool
is_permute (const LsScript *s)
{
  return s->kind == LS_COLL_PERMUTE || s->kind == LS_COLL_COPY_PERMUTE;
}

/* --- costs --- */

static LsTime
latency_between (const LsCollCall *call, uint32_t seat_from, uint32_t seat_to)
{
  LsRoute route;
  ls_route (call->cluster, call->seats.sorted[seat_from], call->seats.sorted[seat_to], 0, &route);
  return route.latency;
}

/* Of a chain, its longer side. */
static LsTime
latency_of_chain (const LsCollCall *call)
{
  LsTime latency[2] = { 0, 0 };
  for (uint32_t seat = 0; seat + 1 < call->n; seat++)
    latency[seat >= call->seats.seat[call->root]] += latency_between (call, seat, seat + 1);
  return MAX (latency[0], latency[1]);
}

/* Longest way of a message, within a slice and between two; of messages between pairs,
 * the longest from the root or the first member. */
static void
set_latency (const LsCollCall *call, LsScript *s)
{
  bool is_shift = is_permute (s), is_pairs = !is_shift && s->sends != gathering_sends;
  uint32_t root = call->seats.seat[call->root];
  const LsTorusShape shape = ls_torus_shape (call);
  for (uint32_t seat = 0; seat < call->n; seat++) {
    uint32_t from = is_pairs ? root : seat, to = is_pairs ? seat : (seat + 1) % call->n;
    if (is_shift)
      to = call->seats.seat[(call->seats.member[from] + 1) % call->n];
    LsTime *longest = call->seats.host_of[from] == call->seats.host_of[to] ? &s->hop_intra : &s->hop_inter;
    bool is_used = is_pairs || is_shift || !shape.is_box || longest == &s->hop_inter;
    LsTime latency = is_used ? latency_between (call, from, to) : 0;
    *longest = MAX (*longest, latency);
  }
  for (uint32_t axis = 0; axis < shape.n_axes && s->sends == gathering_sends; axis++) {
    LsTime latency = latency_between (call, 0, ls_torus_next (&shape.axis[axis], 0, false));
    s->hop_intra = MAX (s->hop_intra, latency);
  }
}

static void
set_costs (const LsCollCall *call, LsScript *s)
{
  const LsClusterSpec *spec = &call->cluster->spec;
  s->block_bytes = (double) call->bytes
      / (call->kind == LS_COLL_ALL_TO_ALL ? call->n
             : is_permute (s)             ? 1
                                          : s->n_blocks);
  s->rate_intra
      = 2 * spec->torus.n_axes * spec->ici.bandwidth_bytes_per_s * spec->ici.efficiency; /* all ports */
  s->rate_inter = spec->server.pcie.bandwidth_bytes_per_s * spec->server.pcie.efficiency;
  s->base = spec->torus.start;
  s->flows = LS_COEF_ONE;
  s->hbm_from = s->hbm_to = 1;
  if (s->edges)
    ls_script_pipeline (call, s, latency_of_chain (call));
  else
    set_latency (call, s);
}

/* The all-to-all of coll_torus.c message by message.
 *
 * Problem. Everybody has a message for everybody else, and what a round lasts its busiest
 * link decides. A round in which all send equally far along one axis leaves the others idle.
 *
 * Model. A message is a displacement (d_x, d_y, .., d_slice), each modulo the members along
 * its axis; all members send the same ones in a round, so that links of one axis and
 * direction are loaded alike. The displacements (t, t + a, t + b, ..) for t = 0 .. L - 1, L
 * the least common multiple of the lengths of all axes, make a diagonal: on it each axis
 * meets each of its distances equally often, both ways. So each diagonal loads all axes as
 * the whole exchange does, and rounds made of whole diagonals take together what the whole
 * takes. a, b, .. run up to the greatest common divisor of an axis and of L so far. A round
 * holds as many diagonals as give 2^16 messages of all members together, at least 8 of
 * each; of a diagonal that is longer, every J-th displacement, J prime to all lengths.
 *
 * Worked example: 16 x 16: L = 16, 16 diagonals, all in one round of 255 messages. 32 x 32:
 * 64 messages of each of 1,024 members at once: 2 diagonals of 32, 16 rounds.
 *
 * Deviations. A round ends with a way of the longest latency, which a machine that starts
 * the next messages earlier hides: rounds * latency are all that comes on top of the busiest
 * link. Parts of a diagonal are balanced only nearly.
 *
 * Reference: none; the loads are those of an all-to-all on a ring (How to Scale Your Model, chapter
 * Sharding, jax-ml/scaling-book@0819a7d). */

#define IN_FLIGHT (1u << 16) /* bounds what a run keeps: some 700 bytes a message */
#define MIN_SENDS 8

#define MAX_AXES (LS_TORUS_AXES + 1) /* and the slices */

typedef struct {
  const LsCollCall *call;
  uint32_t n_axes;
  uint32_t n[MAX_AXES], step[MAX_AXES]; /* members along it; seats from one to the next  */
  uint32_t n_offsets[MAX_AXES];         /* of a diagonal along it                        */
  uint32_t length, n_diagonals;
  uint32_t per_round; /* diagonals                                     */
  uint32_t n_parts;   /* rounds of a diagonal; 1 where per_round > 1   */
} Exchange;

/* The displacements of a round: n, every stride-th from the first one on. */
typedef struct {
  uint32_t first, n, stride;
} Round;

static void
add_axis (Exchange *x, uint32_t n, uint32_t step)
{
  uint32_t offsets = ls_gcd (x->length, n);
  x->n[x->n_axes] = n;
  x->step[x->n_axes] = step;
  x->n_offsets[x->n_axes++] = offsets;
  x->n_diagonals *= offsets;
  x->length = x->length / offsets * n;
}

/* Whether every n-th displacement meets all distances along each axis. */
static bool
is_even (const Exchange *x, uint32_t n)
{
  const LsTorusSpec *t = &x->call->cluster->spec.torus;
  bool is_even = ls_gcd (n, x->length) == 1;
  for (uint32_t axis = 0; axis < t->n_axes; axis++)
    is_even = is_even && ls_gcd (n, t->dims[axis]) == 1;
  return is_even;
}

/* Evens out the rounds. */
static void
divide (Exchange *x)
{
  uint32_t at_once = MAX (MIN_SENDS, IN_FLIGHT / x->call->n);
  x->n_parts = (x->length + at_once - 1) / at_once;
  while (!is_even (x, x->n_parts))
    x->n_parts++;
  x->per_round = MIN (x->n_diagonals, MAX (1, at_once / x->length));
  uint32_t n_rounds = (x->n_diagonals + x->per_round - 1) / x->per_round;
  x->per_round = (x->n_diagonals + n_rounds - 1) / n_rounds;
}

static Round
round_at (const Exchange *x, uint32_t round)
{
  if (x->n_parts > 1) {
    uint32_t part = round % x->n_parts;
    return (Round) { round / x->n_parts * x->length + part, (x->length - part + x->n_parts - 1) / x->n_parts,
                     x->n_parts };
  }
  uint32_t first = round * x->per_round;
  return (Round) { first * x->length, MIN (x->per_round, x->n_diagonals - first) * x->length, 1 };
}

/* Where a message of this displacement, t + length * diagonal, goes. */
static uint32_t
seat_after (const Exchange *x, uint32_t seat, uint32_t displacement)
{
  uint32_t t = displacement % x->length, diagonal = displacement / x->length, to = seat;
  for (uint32_t i = 0; i < x->n_axes; i++) {
    uint32_t shift = t + diagonal % x->n_offsets[i], at = seat / x->step[i] % x->n[i];
    diagonal /= x->n_offsets[i];
    to += (at + shift) % x->n[i] * x->step[i] - at * x->step[i];
  }
  return to;
}

/* Displacement 0, to itself, is no message. */
static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const Exchange *x = s->data;
  const LsCollCall *call = x->call;
  Round r = round_at (x, round);
  uint32_t n = 0;
  for (uint32_t i = round == 0 ? 1 : 0; i < r.n; i++) {
    uint32_t to = call->seats.member[seat_after (x, call->seats.seat[place], r.first + i * r.stride)];
    ret[n++] = (LsSend) { .to = to, .first = place * s->n + to, .n = 1 };
  }
  return n;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  return round_at (s->data, round).n - (round == 0 ? 1 : 0);
}

static void
script_exchange (const LsCollCall *call, LsScript *s)
{
  Exchange *x = ls_arena_new_array (call->arena, Exchange, 1);
  LsTorusShape shape = ls_torus_shape (call);
  *x = (Exchange) { .call = call, .length = 1, .n_diagonals = 1 };
  for (uint32_t axis = 0; axis < shape.n_axes; axis++)
    add_axis (x, shape.axis[axis].n, shape.axis[axis].step);
  if (shape.n_slices > 1)
    add_axis (x, shape.n_slices, shape.per_slice);
  divide (x);
  s->data = x;
  s->n_blocks = call->n * call->n;
  s->n_rounds = (x->n_diagonals + x->per_round - 1) / x->per_round * x->n_parts;
  s->max_sends = round_at (x, 0).n;
  s->sends = sends;
  s->n_receives = n_receives;
}

void
ls_torus_script (const LsCollCall *call, LsScript *s)
{
  switch (call->kind) {
  case LS_COLL_BROADCAST:
  case LS_COLL_REDUCE:
    script_chain (call, s);
    break;
  case LS_COLL_ALL_TO_ALL:
    script_exchange (call, s);
    break;
  case LS_COLL_SEND_RECV:
  case LS_COLL_GATHER:
  case LS_COLL_SCATTER:
    s->n_blocks = call->kind == LS_COLL_SEND_RECV ? 1 : call->n;
    s->route = spread_route;
    ls_script_of_root (s);
    break;
  case LS_COLL_PERMUTE:
  case LS_COLL_COPY_PERMUTE:
    s->n_blocks = call->n;
    s->route = spread_route;
    ls_script_shift (s);
    break;
  default:
    script_gathering (call, s);
  }
  set_costs (call, s);
}

/* Distinct coordinates along an axis, evenly apart; false if they are not. */
static bool
find_line (const LsTorusSpec *t, uint32_t axis, const uint32_t *chips, uint32_t n, LsTorusLine *ret_line)
{
  g_autofree bool *is_taken = g_new0 (bool, t->dims[axis]);
  for (uint32_t i = 0; i < n; i++)
    is_taken[ls_torus_coord (t, chips[i]).at[axis]] = true;

  uint32_t count = 0, last = 0, distance = 0;
  for (uint32_t x = 0; x < t->dims[axis]; x++) {
    if (!is_taken[x])
      continue;
    if (count == 1)
      distance = x - last;
    if (count > 1 && x - last != distance)
      return false;
    count++;
    last = x;
  }
  *ret_line = (LsTorusLine) { .n = count,
                              .is_ring = ls_torus_wraps (t, axis) && count * distance == t->dims[axis] };
  return true;
}

/* n seats of one slice. */
static bool
find_box (const LsCluster *c, const uint32_t *gpus, uint32_t n, LsTorusShape *ret_shape)
{
  const LsTorusSpec *t = &c->spec.torus;
  g_autofree uint32_t *chips = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    chips[i] = gpus[i] % c->spec.gpus_per_node;

  uint64_t volume = 1;
  *ret_shape = (LsTorusShape) { .per_slice = n };
  for (uint32_t axis = 0; axis < t->n_axes; axis++) {
    LsTorusLine line;
    if (!find_line (t, axis, chips, n, &line))
      return false;
    line.step = (uint32_t) volume;
    volume *= line.n;
    if (line.n > 1)
      ret_shape->axis[ret_shape->n_axes++] = line;
  }
  return volume == n;
}

static bool
is_same_box (const LsTorusShape *a, const LsTorusShape *b)
{
  if (a->per_slice != b->per_slice || a->n_axes != b->n_axes)
    return false;
  for (uint32_t i = 0; i < a->n_axes; i++)
    if (a->axis[i].n != b->axis[i].n || a->axis[i].is_ring != b->axis[i].is_ring)
      return false;
  return true;
}

LsTorusShape
ls_torus_shape (const LsCollCall *call)
{
  LsTorusShape shape = { 0 };
  for (uint32_t h = 0; h < call->seats.n_hosts; h++) {
    LsTorusShape here;
    if (!find_box (call->cluster, call->seats.hosts[h].gpus, call->seats.hosts[h].n, &here)
        || (h > 0 && !is_same_box (&here, &shape)))
      return (LsTorusShape) { .n_slices = 1, /* one ring */
                              .per_slice = call->n,
                              .n_axes = 1,
                              .n_parts = 1,
                              .axis[0] = { .n = call->n, .step = 1, .is_ring = true } };
    shape = here;
  }
  shape.n_slices = call->seats.n_hosts;
  shape.n_parts = MAX (shape.n_axes, 1);
  shape.is_box = true;
  return shape;
}

uint32_t
ls_torus_axis_of (const LsTorusShape *s, uint32_t part, uint32_t j)
{
  return (part + j) % s->n_axes;
}

uint32_t
ls_torus_bundle (const LsTorusShape *s, uint32_t part, uint32_t j)
{
  uint32_t m = s->n_slices;
  for (uint32_t i = 0; i < j; i++)
    m *= s->axis[ls_torus_axis_of (s, part, i)].n;
  return m;
}

uint32_t
ls_torus_rounds (const LsTorusLine *line)
{
  return line->is_ring ? line->n / 2 : line->n - 1;
}

bool
ls_torus_has_next (const LsTorusLine *line, uint32_t i, bool is_backward)
{
  return line->is_ring || (is_backward ? i > 0 : i + 1 < line->n);
}

uint32_t
ls_torus_next (const LsTorusLine *line, uint32_t position, bool is_backward)
{
  uint32_t i = ls_torus_place_on (line, position);
  uint32_t next = (i + (is_backward ? line->n - 1 : 1)) % line->n;
  return position - i * line->step + next * line->step;
}

LsTorusPiece
ls_torus_piece (const LsTorusLine *line, uint32_t bundle, uint32_t i, uint32_t round, bool is_backward)
{
  const LsTorusPiece nothing = { 0 };
  uint32_t n = line->n, half = (bundle + 1) / 2;
  if (round >= ls_torus_rounds (line) || !ls_torus_has_next (line, i, is_backward))
    return nothing;
  if (!line->is_ring && (is_backward ? i + round >= n : i < round))
    return nothing;
  LsTorusPiece piece = { .origin = (is_backward ? i + round : i + n - round) % n, .end = bundle };
  if (line->is_ring && 2 * (round + 1) == n) {
    piece.first = is_backward ? half : 0;
    piece.end = is_backward ? bundle : half;
  }
  return piece.first < piece.end ? piece : nothing;
}

uint64_t
ls_torus_shards (const LsTorusLine *line, uint32_t bundle, uint32_t i, bool is_backward)
{
  if (!ls_torus_has_next (line, i, is_backward))
    return 0;
  if (!line->is_ring)
    return (uint64_t) bundle * (is_backward ? line->n - i : i + 1);
  uint64_t whole = (uint64_t) bundle * ((line->n - 1) / 2);
  return line->n % 2 != 0 ? whole : whole + (is_backward ? bundle / 2 : (bundle + 1) / 2);
}
