/* calibrate/assumed.h — what a profile of kernelbench says besides its kernels, held against what the
 * simulator assumes, and put where jobs are simulated with it:
 *
 *   in the calibration   launch on the host, gaps of queues and of CUDA graphs, copies within the GPU, copies
 *                        both ways at once, the wait of a stream with priority, streams inside a layer, how
 *                        GEMMs are slowed down beside a kernel that holds SMs (compute/around.h)
 *   in the cluster       copies to and from the host and between GPUs: rate of a link; what the traffic of
 *                        communication costs GEMMs beside it (LsNccl.stall_per_byte)
 *
 * The products of a layer, against the sum of their times alone, are the calibration's `sustained`
 * (calibrate_entries.c). What has no place in the simulator is said to be unused, by name. */
#ifndef LS_CALIBRATE_ASSUMED_H
#define LS_CALIBRATE_ASSUMED_H

#include <glib.h>
#include <stdbool.h>

#include "cluster/cluster.h"
#include "compute/cost.h"
#include "data/measured/read_profile.h"
#include "network/nccl/nccl.h"

/* One such figure. */
typedef struct {
  const char *what; /* static                                                   */
  const char *unit; /* static: "us", "GB/s", "" of a ratio                      */
  double assumed;   /* NaN: nothing                                             */
  double measured;
  const char *note;   /* static: what the measurement is not, or why it is unused; NULL: nothing to say */
  char *use;          /* where it is written; NULL: nowhere. Owned                */
  bool needs_cluster; /* it is of one, and none was named                       */
} LsAssumedFigure;

void ls_assumed_figure_clear (gpointer assumption);

/* What facts are held against, and where they go. Borrows all. */
typedef struct {
  const LsProfile *profile;
  const LsGpu *gpu;
  const LsCalibration *assumed; /* that kernels are simulated with so far, with its access kinds        */
  const LsCalibration *made;    /* that is written: kernels alone, as far as they were fitted           */
  const char *access;           /* why the gap of a queue has no place there; NULL: it has              */
  const LsClusterSpec *cluster; /* NULL: none was named, then links are held against nothing            */
  const LsNccl *nccl;           /* likewise; of a torus too                                             */
  LsAround *around;             /* takes what is measured                                               */
  GPtrArray *sources;           /* char *: keys of it, each with its source behind it                   */
  GPtrArray *changes;           /* char *: "node.pcie.link.efficiency=0.8", of the cluster's file       */
  GArray *assumptions;          /* LsAssumedFigure                                                         */
} LsAssumed;

void ls_assumed_compare (const LsAssumed *a);

#endif
