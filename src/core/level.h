/* core/level.h — rates as whole numbers.
 *
 * A level is a rate in units of a quantum: the power of two of which the greatest
 * capacity is less than 2^53. Capacities are rounded up to it and caps down, so caps
 * that add up to a capacity fit into it although C / n is rounded, and every level up
 * to the greatest capacity is a double. Loads are sums of coefficient times level:
 * integers, whatever the order. What a resource has left, divided by the coefficients
 * that still rise on it, is rounded down.
 *
 * Deviation: a resource may keep less than one quantum per flow to itself, 2^-53 of the
 * greatest capacity. No flow gets less than a quantum, nor more than LS_LEVEL_MAX, 2^9
 * times the greatest capacity, unless it crosses no resource. */
#ifndef LS_CORE_LEVEL_H
#define LS_CORE_LEVEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/maxmin.h"

typedef __int128 LsLoad; /* in quanta / LS_COEF_ONE */

#define LS_LEVEL_NEVER INT64_MAX           /* of a resource that nobody fills */
#define LS_LEVEL_MAX   (INT64_C (1) << 62) /* of a cap                        */

static inline double
ls_level_quantum (uint32_t n, const double *capacity)
{
  double most = 0;
  for (uint32_t i = 0; i < n; i++)
    most = fmax (most, capacity[i]);
  int exponent = 53;
  if (most > 0)
    frexp (most, &exponent);
  return ldexp (1, exponent - 53);
}

static inline int64_t
ls_level_of_cap (double cap, double quantum)
{
  double level = floor (cap / quantum);
  return level < 1 ? 1 : level < (double) LS_LEVEL_MAX ? (int64_t) level : LS_LEVEL_MAX;
}

static inline LsLoad
ls_load_of_capacity (double capacity, double quantum)
{
  return (LsLoad) ceil (capacity / quantum) * (LsLoad) LS_COEF_ONE;
}

static inline LsLoad
ls_load_of_level (int64_t level, uint64_t coef)
{
  return (LsLoad) level * (int64_t) coef;
}

/* The level at which `left` is used up by coefficients that sum to `rising` > 0. */
static inline int64_t
ls_level_of_fill (LsLoad left, uint64_t rising)
{
  if (left < (LsLoad) rising)
    return 1;
  unsigned __int128 level = (unsigned __int128) left / rising;
  return level < (unsigned __int128) LS_LEVEL_MAX ? (int64_t) level : LS_LEVEL_NEVER;
}

static inline double
ls_rate_at_cap (double cap, int64_t level, double quantum, bool has_resources)
{
  return level == LS_LEVEL_MAX && has_resources ? fmin (cap, (double) level * quantum) : cap;
}

#endif
