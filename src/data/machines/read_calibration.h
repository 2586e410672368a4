/* data/machines/read_calibration.h — topologies/calib/NAME.json: how close the kernels of one
 * accelerator come to its peaks. */
#ifndef LS_DATA_MACHINES_READ_CALIBRATION_H
#define LS_DATA_MACHINES_READ_CALIBRATION_H

#include "compute/cost.h"
#include "data/text/field.h"

extern const LsField ls_calibration_fields[];
extern const LsField ls_kind_fit_fields[];        /* of an LsKindFit */
extern const LsEnumName ls_measured_attentions[]; /* LsAttentionKernel that rows may be of */
extern const LsEnumName ls_gemms_names[];         /* LsGemms */

/* By name or path. Kernel kinds that the file leaves out are plain rooflines, not
 * fitted. On success the caller clears *ret_calibration; on failure it is
 * untouched and diags says why (LS_ERROR_INPUT). */
bool ls_calibration_load (const char *name, LsCalibration *ret_calibration, LsDiagList *diags);
bool ls_calibration_read (const LsJsonDoc *doc, LsCalibration *ret_calibration, LsDiagList *diags);

#endif
