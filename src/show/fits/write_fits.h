/* show/fits/write_fits.h — what fits, kernels and scoreboards came to, for people and for programs. Texts
 * are newly allocated, and end in a newline. */
#ifndef LS_SHOW_FITS_WRITE_FITS_H
#define LS_SHOW_FITS_WRITE_FITS_H

#include "ask/kernel_times.h"
#include "calibrate/calibrate_nccl.h"
#include "calibrate/calibrate_runs.h"
#include "calibrate/fit_report.h"
#include "validate/validate.h"

/* Errors by class of kernels, and the worst of them. */
char *ls_fit_report_to_text (const LsFitReport *report);

/* How well a cluster was fitted to steps measured on it. */
char *ls_fitted_report_to_text (const LsFittedReport *report);

/* The same of measured collectives. */
char *ls_nccl_report_to_text (const LsNcclFitReport *report);

/* --- write_fits.c: times of kernels, for people and for programs (`kernel --json`) --------------- */

/* Newly allocated, ending in a newline. */
char *ls_kernel_rows_to_json (const LsKernelRows *rows);
/* All of a single kernel; a line each of up to 40; of more measured ones the errors. */
char *ls_kernel_rows_to_text (const LsKernelRows *rows);

/* --- write_fits.c -------------------------------------------------------------------------------- */

/* A scoreboard of predictions against measurements, for people, for programs (`validate --json`), and as a
 * table in Markdown. */

/* Newly allocated, ending in a newline. */
char *ls_scores_to_json (const LsScores *s);
char *ls_scores_to_text (const LsScores *s);
/* Why rows were refused: a line for each reason, how many and which for example. */
char *ls_scores_refusals (const LsScores *s);
/* The scores by family as a table in Markdown; its numbers are those of the text. */
char *ls_scores_to_markdown (const LsScores *s);

#endif
