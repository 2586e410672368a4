/* sweep/residuals.h — a scoreboard as residuals (analysis/interval.h), and whether intervals made of
 * them hold: the interval of each row rests on the sources that the row is not of. A source is what
 * a family's name begins with, up to a dash. */
#ifndef LS_SWEEP_RESIDUALS_H
#define LS_SWEEP_RESIDUALS_H

#include "io/write_scores.h"

/* Of all rows that were not refused, in groups in the order of their first rows; with the stretches that they tell. */
LsResiduals *ls_residuals_of_rows (const LsScoreRow *rows, guint n_rows);

typedef struct LsCoverageRun LsCoverageRun;

/* Also of the rows that have a word in common (analysis/likeness.h), each by those that do not. */
LsCoverageRun *ls_coverage_run_new (const LsScoreRow *rows, guint n_rows);
void ls_coverage_run_free (LsCoverageRun *run); /* NULL allowed */
const LsCoverage *ls_coverage_run_result (const LsCoverageRun *run); /* borrowed from run */

/* Of the step times, in the order of the rows. */
guint64 ls_predictions_digest (const LsScoreRow *rows, guint n_rows);

#endif
