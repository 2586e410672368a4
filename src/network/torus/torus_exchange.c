/* network/torus/torus_exchange.c — the all-to-all of coll_torus.c message by message.
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
#include "network/torus/torus_shape.h"

#include "base/gcd.h"

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
    uint32_t to = call->member[seat_after (x, call->seat[place], r.first + i * r.stride)];
    ret[n++] = (LsSend) { .to = to, .first = place * s->n + to, .n = 1 };
  }
  return n;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  (void) place;
  return round_at (s->data, round).n - (round == 0 ? 1 : 0);
}

void
ls_torus_script_exchange (const LsCollCall *call, LsScript *s)
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
