/* show/fits/write_nccl.h — what a fit to measured collectives reached. */
#ifndef LS_SHOW_FITS_WRITE_NCCL_H
#define LS_SHOW_FITS_WRITE_NCCL_H

#include "calibrate/calibrate_nccl.h"

/* Newly allocated, ending in a newline. */
char *ls_nccl_report_to_text (const LsNcclFitReport *report);

#endif
