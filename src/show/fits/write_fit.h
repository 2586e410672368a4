/* show/fits/write_fit.h — what a fit to measured kernels reached: errors by class of kernels,
 * the worst of them, for people. */
#ifndef LS_SHOW_FITS_WRITE_FIT_H
#define LS_SHOW_FITS_WRITE_FIT_H

#include "calibrate/fit_report.h"
#include "show/fits/write_assumed.h"

/* Newly allocated, ending in a newline. */
char *ls_fit_report_to_text (const LsFitReport *report);

#endif
