/* validate/residuals.h — a scoreboard as residuals (analysis/interval.h), and whether intervals made of them
 * hold: the interval of each row rests on the sources that the row is not of. A source is what a family's
 * name begins with, up to a dash. */
#ifndef LS_VALIDATE_RESIDUALS_H
#define LS_VALIDATE_RESIDUALS_H

#include "analysis/interval.h"
#include "analysis/score.h"

/* Rows whose intervals rest on the other sources only. Shares and widths are NaN if there is no interval. */
typedef struct {
  const char *source;
  guint n;        /* with an interval                                       */
  guint n_unlike; /* without, as they are like no run of the other sources  */
  double covered; /* share of n that was measured inside                    */
  double width;   /* median of (high - low) / predicted                     */
} LsCoverageLine;

typedef struct {
  double level;
  guint n_sources;
  const LsCoverageLine *sources;
  LsCoverageLine each; /* each source counts once; of those with an interval */
  LsCoverageLine rows; /* each row does                                      */
  guint n_left_out;
  const LsCoverageLine
      *left_out; /* "architecture hopper": the rows with that by those without, each source counting once */
} LsCoverage;

/* Of all rows that were not refused, in groups in the order of their first rows; with the stretches that they
 * tell. */
LsResiduals *ls_residuals_of_rows (const LsScoreRow *rows, guint n_rows);

typedef struct LsCoverageRun LsCoverageRun;

/* Also of the rows that have a word in common (analysis/likeness.h), each by those that do not. */
LsCoverageRun *ls_coverage_run_new (const LsScoreRow *rows, guint n_rows);
void ls_coverage_run_free (LsCoverageRun *run);                      /* NULL allowed */
const LsCoverage *ls_coverage_run_result (const LsCoverageRun *run); /* borrowed from run */

/* Of the step times, in the order of the rows. */
guint64 ls_predictions_digest (const LsScoreRow *rows, guint n_rows);

/* --- residuals.c: residuals as a file that data/machines/machines.h reads --------------- */

/* What a file was made by and from. Borrowed. */
typedef struct {
  const char *command, *version;
  const char *cases, *sha256; /* file of the measured runs */
  guint n_rows;               /* that were simulated       */
  guint64 digest;             /* of their step times       */
} LsResidualProvenance;

/* The file, newly allocated; c says how well it serves. */
char *ls_residuals_to_json (const LsResiduals *r, const char *name, const LsResidualProvenance *p,
                            const LsCoverage *c);

#endif
