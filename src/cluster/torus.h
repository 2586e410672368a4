/* cluster/torus.h — a slice of a TPU pod: X x Y (x Z) chips, each joined to its
 * neighbours by ICI links. A slice is a node of the cluster.
 *
 * Numbering: x runs fastest, chip = x + X (y + Y z). Ranks are placed in chip order with
 * tp fastest, so a tp group lies on a line along x while tp divides X, and fills whole
 * lines, then planes, when it is a multiple of X; cp, dp and pp follow on what is left of
 * x, then y, then z.
 *
 * Wrap. On some axes the last chip is joined to the first:
 *
 *     none, all    as said
 *     full-axes    on an axis that has the length of the largest slice (v5e, v6e: 16;
 *                  v3: 32)
 *     cubes        on all axes if each is a multiple of 4, which is when the optical
 *                  switches join whole 4 x 4 x 4 cubes (v4, v5p, TPU7x)
 *
 * Never on an axis of fewer than 3 chips: both ways would be one link.
 *
 * Not modelled: twisted tori (v4 and v5p offer them for 4 x 4 x 8 and the like). */
#ifndef LS_CLUSTER_TORUS_H
#define LS_CLUSTER_TORUS_H

#include <glib.h>
#include <lockstep/units.h>
#include <stdbool.h>
#include <stdint.h>

#define LS_TORUS_AXES      3
#define LS_TORUS_MAX_AXIS  1024
#define LS_TORUS_MAX_CHIPS (1u << 16)

typedef enum { LS_WRAP_NONE, LS_WRAP_ALL, LS_WRAP_FULL_AXES, LS_WRAP_CUBES } LsTorusWrap;

typedef struct {
  uint32_t n_axes;                 /* 2 or 3; 0: no torus                              */
  uint32_t dims[LS_TORUS_AXES];    /* chips along x, y, z; 1 beyond n_axes             */
  uint32_t largest[LS_TORUS_AXES]; /* as dims, of the largest slice                  */
  bool is_given;                   /* dims were asked for; else they follow the job    */
  LsTorusWrap wrap;
  uint32_t host[LS_TORUS_AXES]; /* chips of one host along each axis, or all of a
                                    shorter axis                                     */
  uint32_t nics_per_host;
  LsTime start; /* of a collective, beside its hops                                    */
} LsTorusSpec;

typedef struct {
  uint32_t at[LS_TORUS_AXES];
} LsTorusCoord;

uint32_t ls_torus_n_chips (const LsTorusSpec *t);
uint32_t ls_torus_n_hosts (const LsTorusSpec *t);
bool ls_torus_wraps (const LsTorusSpec *t, uint32_t axis);
LsTorusCoord ls_torus_coord (const LsTorusSpec *t, uint32_t chip);
uint32_t ls_torus_chip (const LsTorusSpec *t, LsTorusCoord coord);
uint32_t ls_torus_host_of (const LsTorusSpec *t, uint32_t chip);

/* Which way a flow goes along an axis, and how far; the shorter one. On a ring of even
 * length half way round is as far both ways: then is_both, and half of it goes each way. */
typedef struct {
  uint32_t n_hops;
  bool is_backward, is_both;
} LsTorusLeg;

/* --- slices of a size --- */

#endif
