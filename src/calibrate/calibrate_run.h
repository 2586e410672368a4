/* calibrate/calibrate_run.h — what a calibration in the making consists of (private). */
#ifndef LS_CALIBRATE_CALIBRATE_RUN_H
#define LS_CALIBRATE_CALIBRATE_RUN_H

#include "base/diag.h"
#include "calibrate/calibrate.h"
#include "cluster/gpu.h"
#include "compute/measured.h"
#include "data/measured/read_profile.h"
#include "job/hardware.h"

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
  GPtrArray *notes; /* char * */
};

/* calibrate_entries.c: fills calibration and slot_source. */
void ls_calibrate_slots (LsCalibrateRun *run);

#endif
