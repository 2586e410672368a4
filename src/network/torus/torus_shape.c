#include "network/torus/torus_shape.h"

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

static LsTorusShape
one_ring (uint32_t n)
{
  return (LsTorusShape) { .n_slices = 1,
                          .per_slice = n,
                          .n_axes = 1,
                          .n_parts = 1,
                          .axis[0] = { .n = n, .step = 1, .is_ring = true } };
}

LsTorusShape
ls_torus_shape (const LsCollCall *call)
{
  LsTorusShape shape = { 0 };
  for (uint32_t h = 0; h < call->n_hosts; h++) {
    LsTorusShape here;
    if (!find_box (call->cluster, call->hosts[h].gpus, call->hosts[h].n, &here)
        || (h > 0 && !is_same_box (&here, &shape)))
      return one_ring (call->n);
    shape = here;
  }
  shape.n_slices = call->n_hosts;
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
