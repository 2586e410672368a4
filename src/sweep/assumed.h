/* sweep/assumed.h — what a profile of kernelbench says besides its kernels, held against what the
 * simulator assumes: what a launch costs, gaps, copies, the slowdown beside a resident kernel, a
 * layer against the sum of its kernels, CUDA graphs, priorities of streams. */
#ifndef LS_SWEEP_ASSUMED_H
#define LS_SWEEP_ASSUMED_H

#include "cluster/cluster.h"
#include "cluster/gpu.h"
#include "compute/cost.h"
#include "io/read_profile.h"
#include "io/write_assumed.h"

/* Appends an LsAssumption for each of these that the profile has, to `assumptions`. calibration:
 * that the kernels are simulated with; cluster: NULL where none was named, then launches are
 * held against the default and links against nothing. */
void ls_assumed_compare (const LsProfile *profile, const LsGpu *gpu, const LsCalibration *calibration, const LsClusterSpec *cluster,
                         GArray *assumptions);

#endif
