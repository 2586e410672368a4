/* calibrate/write_calibration.h — a calibration as topologies/calib/NAME.json: coefficients with
 * their sources, what they come from, and measured kernels. */
#ifndef LS_CALIBRATE_WRITE_CALIBRATION_H
#define LS_CALIBRATE_WRITE_CALIBRATION_H

#include "calibrate/calibrate.h"
#include "compute/measured.h"

/* Newly allocated: the file. Digits are those of LsKindFit after ls_fit_solve(): reading
 * gives the same figures.
 * slot_source: of LS_N_ENTRIES, NULL: the entry is left out. around_source: keys of LsCalibration.around,
 * each with its source behind it; ends with NULL; or NULL. run: what it was made by; NULL: not told. */
char *ls_calibration_to_json (const LsCalibration *calibration, char *const *slot_source,
                              char *const *around_source, const LsCalibrateRun *run);

#endif
