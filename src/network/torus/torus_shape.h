/* network/torus/torus_shape.h — how the members of a call lie in slices of a torus, and which
 * shards move along which axis, in which order (private to network/).
 *
 * Seats (members by ascending GPU) of a slice are positions 0, 1, .. of a box, the first
 * axis fastest, because chips are numbered with x fastest. Axes along which the box has
 * one member are left out; members may lie some chips apart, all by the same distance.
 * What is no box, or not the same box in every slice, counts as one ring through all
 * seats.
 *
 * An array is cut into n_parts parts, one for each axis. All-gather: part p moves first
 * between slices, then along axis p, p + 1, .. (cyclic). On an axis every member starts
 * with a bundle: the shards of part p of the m members from which it has them already.
 *
 *     ring of X   whole bundles go both ways, X/2 (rounded down) rounds; if X is even the
 *                 opposite member's comes half from either side, in whole shards
 *     line of X   whole bundles go both ways to the ends, X - 1 rounds
 *     slices      whole bundles go round one way, H - 1 rounds
 *
 * Reduce-scatter is the same backwards in time and direction. */
#ifndef LS_NETWORK_TORUS_TORUS_SHAPE_H
#define LS_NETWORK_TORUS_TORUS_SHAPE_H

#include "network/algorithm.h"

typedef struct {
  uint32_t n;    /* members along it, > 1 */
  uint32_t step; /* from one to the next, in positions */
  bool is_ring;
} LsTorusLine;

typedef struct {
  uint32_t n_slices, per_slice; /* seat = slice * per_slice + position */
  uint32_t n_axes, n_parts;     /* n_parts = n_axes, or 1 of none      */
  bool is_box;                  /* else a ring through all seats       */
  LsTorusLine axis[LS_TORUS_AXES];
} LsTorusShape;

LsTorusShape ls_torus_shape (const LsCollCall *call);

/* Axis that part p moves along as its j-th, and the shards of a bundle then. */
uint32_t ls_torus_axis_of (const LsTorusShape *s, uint32_t part, uint32_t j);
uint32_t ls_torus_bundle (const LsTorusShape *s, uint32_t part, uint32_t j);

uint32_t ls_torus_rounds (const LsTorusLine *line);
static inline uint32_t
ls_torus_place_on (const LsTorusLine *line, uint32_t position)
{
  return position / line->step % line->n;
}
/* Whether there is a next member from place i on, forward or backward. */
bool ls_torus_has_next (const LsTorusLine *line, uint32_t i, bool is_backward);
/* Position of the next member. */
uint32_t ls_torus_next (const LsTorusLine *line, uint32_t position, bool is_backward);

/* What place i sends on in a round of an all-gather: shards first .. end - 1 of the
 * bundle of place `origin`; none if end == 0. */
typedef struct {
  uint32_t origin, first, end;
} LsTorusPiece;
LsTorusPiece ls_torus_piece (const LsTorusLine *line, uint32_t bundle, uint32_t i, uint32_t round,
                             bool is_backward);
/* Shards in all rounds together. */
uint64_t ls_torus_shards (const LsTorusLine *line, uint32_t bundle, uint32_t i, bool is_backward);

/* --- what coll_torus.c and torus_script.c share -------------------------------- */

/* From one chip to another, a message's equal shares on all dimension-ordered ways that
 * begin with different axes; between slices as ls_route(). */
void ls_torus_spread (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, LsRoute *ret_route);

void ls_torus_script (const LsCollCall *call, LsScript *ret_script);

#endif
