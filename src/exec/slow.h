/* exec/slow.h — ranks whose kernels take longer than others'.
 *
 * Named ranks take `factor` times as long. With sigma > 0 each rank draws a factor
 *
 *     exp (sigma z),  z normal with mean 0 and variance 1
 *
 * so that half of the ranks are slower than the calibration says and half faster; a named
 * rank takes its own factor on top of that. z is drawn by the polar form of Box and Muller
 * (Annals of Mathematical Statistics 29, 1958) from GLib's Mersenne twister: rank r always
 * has the same for a seed, however many ranks there are. Factors end at LS_SLOW_MIN and LS_SLOW_MAX.
 *
 * Worked example: sigma 0.05: two thirds of the ranks are within 5 %, the slowest of 1,000
 * some 1.18; a step with a barrier waits for that one.
 *
 * Deviation: a factor holds for all kernels of a rank and for the whole run. */
#ifndef LS_EXEC_SLOW_H
#define LS_EXEC_SLOW_H

#include <glib.h>
#include <stdint.h>

#define LS_SLOW_MIN 0.1
#define LS_SLOW_MAX 100.0

typedef struct {
  uint32_t rank;
  double factor; /* LS_SLOW_MIN .. LS_SLOW_MAX */
} LsSlowRank;

typedef struct {
  GArray *ranks; /* LsSlowRank; NULL: none */
  double sigma;  /* 0: none                */
  uint32_t seed;
} LsSlow;

void ls_slow_clear (LsSlow *s);

/* [n_ranks] factors, newly allocated; NULL without an error: all are 1. LS_ERROR_CONFLICT: a
 * rank that there is not. */
double *ls_slow_factors (const LsSlow *s, uint32_t n_ranks, GError **error);

#endif
