/* calibrate/assumed.h — what a profile of kernelbench says besides its kernels, held against what the
 * simulator assumes: what a launch costs, gaps, copies, the slowdown beside a resident kernel, a
 * layer against the sum of its kernels, CUDA graphs, priorities of streams. */
#ifndef LS_CALIBRATE_ASSUMED_H
#define LS_CALIBRATE_ASSUMED_H

#include <glib.h>

#include "cluster/cluster.h"
#include "cluster/gpu.h"
#include "compute/cost.h"
#include "data/measured/read_profile.h"

/* One such figure. */
typedef struct {
  const char *what; /* static                                                   */
  const char *unit; /* static: "us", "GB/s", "" of a ratio                      */
  double assumed;   /* NaN: it depends on a cluster, and none was named         */
  double measured;
  const char *note; /* static: what the measurement is not; NULL: nothing to say */
  char *use;        /* how to simulate with what was measured; NULL: it cannot be told. Owned */
} LsAssumption;

void ls_assumption_clear (gpointer assumption);

/* Appends an LsAssumption for each of these that the profile has, to `assumptions`. calibration:
 * that the kernels are simulated with; cluster: NULL where none was named, then launches are
 * held against the default and links against nothing. */
void ls_assumed_compare (const LsProfile *profile, const LsGpu *gpu, const LsCalibration *calibration, const LsClusterSpec *cluster,
                         GArray *assumptions);

#endif
