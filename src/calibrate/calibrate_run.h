/* calibrate/calibrate_run.h — what a calibration in the making consists of (private). */
#ifndef LS_CALIBRATE_CALIBRATE_RUN_H
#define LS_CALIBRATE_CALIBRATE_RUN_H

#include "calibrate/calibrate.h"
#include "cluster/cluster.h"
#include "cluster/gpu.h"
#include "data/measured/read_kernels.h"
#include "job/hardware.h"
#include "network/nccl/nccl.h"

struct LsCalibrateRun {
  LsGpu gpu;
  GPtrArray *profiles;           /* LsProfile                                    */
  GArray *samples[LS_N_ENTRIES]; /* LsTimedKernel; NULL: none                    */
  GArray *sustained;             /* LsTimedKernel: 16-bit GEMMs on a hot GPU     */
  bool has_base;
  LsCalibration base; /* the GPU's own, if it has one                 */
  char *base_sha256;
  bool base_has[LS_N_ENTRIES], has_followed[LS_N_ENTRIES]; /* entries: of base; that moved with another */
  LsCalibration calibration;
  char *slot_source[LS_N_ENTRIES];
  bool is_alone[LS_N_ENTRIES]; /* all of its kernels are held out: then none is */
  bool has_sustained;          /* enough of them                               */
  GArray *n_used;              /* guint: kernels of each profile that are used */
  bool holds_half;
  GPtrArray *around_sources; /* char *: keys of calibration.around, each with its source */
  char *machine_name;        /* cluster that was named; NULL: none           */
  LsHardware *machine;
  GPtrArray *changes; /* char *: of its file                          */
  char *version;
  LsFitReport report;
};

/* calibrate_entries.c: fills calibration and slot_source. */
void ls_calibrate_slots (LsCalibrateRun *run);

/* --- assumed.c ---------------------------------------------------------------------------------------- */

/* What a profile of kernelbench says besides its kernels, held against what the
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
