#include "cluster/torus.h"

#include <string.h>

uint32_t
ls_torus_n_chips (const LsTorusSpec *t)
{
  return t->dims[0] * t->dims[1] * t->dims[2];
}

/* Chips of a host along an axis. */
static uint32_t
host_chips (const LsTorusSpec *t, uint32_t axis)
{
  return MIN (t->host[axis], t->dims[axis]);
}

uint32_t
ls_torus_n_hosts (const LsTorusSpec *t)
{
  uint32_t n = 1;
  for (uint32_t a = 0; a < LS_TORUS_AXES; a++)
    n *= t->dims[a] / host_chips (t, a);
  return n;
}

static bool
is_whole_cubes (const uint32_t *dims, uint32_t n_axes)
{
  for (uint32_t a = 0; a < n_axes; a++)
    if (dims[a] % 4 != 0)
      return false;
  return true;
}

bool
ls_torus_wraps (const LsTorusSpec *t, uint32_t axis)
{
  if (axis >= t->n_axes || t->dims[axis] < 3)
    return false;
  switch (t->wrap) {
  case LS_WRAP_ALL:
    return true;
  case LS_WRAP_FULL_AXES:
    return t->dims[axis] == t->largest[axis];
  case LS_WRAP_CUBES:
    return is_whole_cubes (t->dims, t->n_axes);
  case LS_WRAP_NONE:
  default:
    return false;
  }
}

LsTorusCoord
ls_torus_coord (const LsTorusSpec *t, uint32_t chip)
{
  return (LsTorusCoord) { { chip % t->dims[0], chip / t->dims[0] % t->dims[1],
                            chip / (t->dims[0] * t->dims[1]) } };
}

uint32_t
ls_torus_chip (const LsTorusSpec *t, LsTorusCoord c)
{
  return c.at[0] + t->dims[0] * (c.at[1] + t->dims[1] * c.at[2]);
}

uint32_t
ls_torus_host_of (const LsTorusSpec *t, uint32_t chip)
{
  LsTorusCoord c = ls_torus_coord (t, chip);
  uint32_t host = 0;
  for (uint32_t a = LS_TORUS_AXES; a-- > 0;)
    host = host * (t->dims[a] / host_chips (t, a)) + c.at[a] / host_chips (t, a);
  return host;
}

uint32_t
ls_torus_n_edges (const LsTorusSpec *t, uint32_t axis)
{
  return t->dims[axis] - (ls_torus_wraps (t, axis) ? 0 : 1);
}

LsTorusLeg
ls_torus_leg (const LsTorusSpec *t, uint32_t axis, uint32_t from, uint32_t to)
{
  if (!ls_torus_wraps (t, axis))
    return (LsTorusLeg) { .n_hops = from < to ? to - from : from - to, .is_backward = to < from };
  uint32_t forward = (to + t->dims[axis] - from) % t->dims[axis];
  uint32_t backward = (t->dims[axis] - forward) % t->dims[axis];
  return (LsTorusLeg) { .n_hops = MIN (forward, backward),
                        .is_backward = backward < forward,
                        .is_both = forward == backward && forward > 0 };
}

/* Lines along x come first, two trunks an edge, then those along y, then z. */
uint32_t
ls_torus_trunk (const LsTorusSpec *t, uint32_t chip, uint32_t axis, bool is_backward)
{
  uint32_t first = 0, n_chips = ls_torus_n_chips (t);
  for (uint32_t a = 0; a < axis; a++)
    first += 2 * ls_torus_n_edges (t, a) * (n_chips / t->dims[a]);

  LsTorusCoord c = ls_torus_coord (t, chip);
  const uint32_t line[LS_TORUS_AXES]
      = { c.at[1] + t->dims[1] * c.at[2], c.at[0] + t->dims[0] * c.at[2], c.at[0] + t->dims[0] * c.at[1] };
  uint32_t n_edges = ls_torus_n_edges (t, axis), at = c.at[axis];
  uint32_t edge = is_backward ? (at + t->dims[axis] - 1) % t->dims[axis] : at;
  return edge < n_edges ? first + 2 * (line[axis] * n_edges + edge) + is_backward : G_MAXUINT32;
}

/* --- slices of a size --- */

#define CUBE_CHIPS 64

/* Whole hosts, or a part of one; beyond one cube, whole cubes where these are the rule. */
static bool
is_slice (const LsTorusSpec *t, const uint32_t *dims)
{
  bool is_whole = true, is_part = true;
  for (uint32_t a = 0; a < t->n_axes; a++) {
    is_whole = is_whole && dims[a] % t->host[a] == 0;
    is_part = is_part && dims[a] <= t->host[a];
  }
  bool is_small = t->wrap != LS_WRAP_CUBES || dims[0] * dims[1] * dims[2] <= CUBE_CHIPS;
  return (is_whole || is_part) && (is_small || is_whole_cubes (dims, t->n_axes));
}

/* The best shape of n chips, short x first, then short y; false if there is none. */
static bool
find_shape (const LsTorusSpec *t, uint32_t n, uint32_t *ret_dims)
{
  uint32_t best_sum = G_MAXUINT32;
  for (uint32_t x = 1; x <= t->largest[0]; x++)
    for (uint32_t y = 1; n % x == 0 && y <= t->largest[1]; y++) {
      const uint32_t dims[LS_TORUS_AXES] = { x, y, n / x / y };
      if (n / x % y != 0 || dims[2] > t->largest[2] || !is_slice (t, dims) || x + y + dims[2] >= best_sum)
        continue;
      memcpy (ret_dims, dims, sizeof dims);
      best_sum = x + y + dims[2];
    }
  return best_sum < G_MAXUINT32;
}

void
ls_torus_fit (LsTorusSpec *t, uint32_t n_chips)
{
  memcpy (t->dims, t->largest, sizeof t->dims);
  uint32_t capacity = ls_torus_n_chips (t);
  if (capacity > LS_TORUS_MAX_CHIPS || !is_slice (t, t->largest))
    return; /* no slice of any size: the builder says why */
  uint32_t n_slices = (n_chips - 1) / capacity + 1;
  for (uint32_t n = (n_chips - 1) / n_slices + 1; n < capacity; n++)
    if (find_shape (t, n, t->dims))
      return;
}
