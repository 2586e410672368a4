/* tools/fit/hot_loops.h — products that were timed on a hot chip, one after another. */
#ifndef LS_FIT_HOT_LOOPS_H
#define LS_FIT_HOT_LOOPS_H

#include "base/diag.h"
#include "compute/cost.h"

/* Rows of `path` with that GPU and number format: gpu, dtype, products ("MxNxK+MxNxK": one after another, 16-bit results),
 * milliseconds of all of them together. The median over the rows of the time that the fits predict of a hot chip over the
 * measured one; NaN: no such row, or, with a diagnostic, a bad one. */
double ls_hot_loops_ratio (const char *path, const char *gpu_name, LsDtype dtype, const LsCalibration *calibration,
                           const LsGpu *gpu, LsDiagList *diags);

#endif
