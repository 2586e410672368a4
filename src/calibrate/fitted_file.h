/* calibrate/fitted_file.h — a cluster file with what was fitted to steps measured on it. */
#ifndef LS_CALIBRATE_FITTED_FILE_H
#define LS_CALIBRATE_FITTED_FILE_H

#include "calibrate/calibrate_runs.h"
#include "data/text/json_doc.h"

/* The cluster's file with that name, "source" and "fitted". Newly allocated. */
char *ls_fitted_to_json (const LsJsonDoc *base, const LsFittedReport *report, const char *name);

/* Appends "mean absolute error: before 12.30 %, fitted 4.10 %, ..."; what is not known is left out. */
void ls_fitted_error_print (const LsFittedError *error, GString *out);

#endif
