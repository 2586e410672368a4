/* show/fits/write_fits.h — what fits to kernels, to steps and to collectives reached, for people. Texts are
 * newly allocated, and end in a newline. */
#ifndef LS_SHOW_FITS_WRITE_FITS_H
#define LS_SHOW_FITS_WRITE_FITS_H

#include "calibrate/assumed.h"
#include "calibrate/calibrate_nccl.h"
#include "calibrate/calibrate_runs.h"
#include "calibrate/fit_report.h"

/* What the simulator assumes of a machine beside what was measured there, with a verdict on each: they agree
 * within a tenth, or how far apart they are. "" of none. */
char *ls_assumptions_to_text (const GArray *assumptions);

/* Errors by class of kernels, and the worst of them. */
char *ls_fit_report_to_text (const LsFitReport *report);

/* How well a cluster was fitted to steps measured on it. */
char *ls_fitted_report_to_text (const LsFittedReport *report);

/* The same of measured collectives. */
char *ls_nccl_report_to_text (const LsNcclFitReport *report);

#endif
