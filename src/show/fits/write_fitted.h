/* show/fits/write_fitted.h — how well a cluster was fitted to steps measured on it. */
#ifndef LS_SHOW_FITS_WRITE_FITTED_H
#define LS_SHOW_FITS_WRITE_FITTED_H

#include "calibrate/calibrate_runs.h"

/* Newly allocated, ending in a newline. */
char *ls_fitted_report_to_text (const LsFittedReport *report);

#endif
