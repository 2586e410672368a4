/* calibrate/calibrate.h — a calibration of a GPU made from measured kernels.
 *
 * Files of data/measured/read_kernels.h are read and checked, their kernels sorted into the entries of
 * a calibration (compute/measured.h), and each entry fitted (calibrate_fit.h) to the families
 * that are not held out. How many coefficients are free goes with the number of kernels:
 * half of it at most, the most telling first. What cannot be told keeps its
 * physical limit, and a weak prior draws the rest there.
 *
 * Entries without kernels of their own take those of another kind, marked as a guess:
 * batched GEMMs those of GEMMs, attention backward those of the forward, streaming kinds
 * those of elementwise; else they are left out, which is a roofline.
 *
 * Kernels of kernelbench's profiles (own measurements) are kept as a measured table
 * (compute/measured.h), held out or not; those of tables of others only shape
 * coefficients. */
#ifndef LS_CALIBRATE_CALIBRATE_H
#define LS_CALIBRATE_CALIBRATE_H

#include <glib.h>
#include <stdbool.h>

#include "calibrate/fit_report.h"
#include "compute/cost.h"

typedef struct {
  const char *const *files; /* at least one, NULL at the end                       */
  const char *gpu;          /* name or file of topologies/gpu; NULL: that which the
                               profiles name                                       */
  const char *cluster;      /* name or file: whose links and launches a profile is held against; NULL: none */
  bool holds_half;          /* half of the families is held out, not a fifth        */
  const char *version;      /* of Lockstep, for the provenance                     */
} LsCalibrateSpec;

typedef struct LsCalibrateRun LsCalibrateRun;

/* NULL: LS_ERROR_USAGE (no file, no GPU to be found), LS_ERROR_INPUT (a file is missing or
 * damaged; a time beats the GPU's peak; one kernel has two times). */
LsCalibrateRun *ls_calibrate_run_new (const LsCalibrateSpec *spec, GError **error);
void ls_calibrate_run_free (LsCalibrateRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCalibrateRun, ls_calibrate_run_free)

const LsFitReport *ls_calibrate_run_report (const LsCalibrateRun *run);
/* The calibration as a file of that name; newly allocated. */
char *ls_calibrate_run_json (LsCalibrateRun *run, const char *name);
/* The cluster of the spec as a file of that name at `path`, with what was measured of
 * its links; with the calibration that is written at `calibration`, unless that is NULL. Newly allocated.
 * LS_ERROR_USAGE: no cluster was named; LS_ERROR_CONFLICT: it has other GPUs than were measured;
 * LS_ERROR_UNSUPPORTED: it came from XML. */
char *ls_calibrate_run_machine_json (const LsCalibrateRun *run, const char *name, const char *path,
                                     const char *calibration, GError **error);

/* A calibration as topologies/calib/NAME.json: coefficients with their sources, what they come from, and
 * measured kernels; newly allocated. Digits are those of LsKindFit after ls_fit_solve(): reading gives the
 * same figures.
 * slot_source: of LS_N_ENTRIES, NULL: the entry is left out. around_source: keys of LsCalibration.around,
 * each with its source behind it; ends with NULL; or NULL. run: what it was made by; NULL: not told. */
char *ls_calibration_to_json (const LsCalibration *calibration, char *const *slot_source,
                              char *const *around_source, const LsCalibrateRun *run);

#endif
