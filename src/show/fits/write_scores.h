/* show/fits/write_scores.h — a scoreboard of predictions against measurements, for people, for programs
 * (`validate --json`), and as a table in Markdown. */
#ifndef LS_SHOW_FITS_WRITE_SCORES_H
#define LS_SHOW_FITS_WRITE_SCORES_H

#include "data/text/json_out.h"
#include "validate/residuals.h"
#include "validate/scores.h"

/* Newly allocated, ending in a newline. */
char *ls_scores_to_json (const LsScores *s);
char *ls_scores_to_text (const LsScores *s);
/* Why rows were refused: a line for each reason, how many and which for example. */
char *ls_scores_refusals (const LsScores *s);
/* The scores by family as a table in Markdown; its numbers are those of the text. */
char *ls_scores_to_markdown (const LsScores *s);

/* How well intervals that rest on residuals hold. */
void ls_coverage_to_json (const LsCoverage *c, LsJsonOut *w); /* as the member "coverage" */
void ls_coverage_to_text (const LsCoverage *c, GString *out);

/* What each mechanism is worth (private to the writers of scores); nothing if there were no ablations. A
 * table of mean absolute errors and one of biases: a row for each mechanism that is off, a column for each
 * family. */
void ls_ablations_to_text (const LsScores *s, GString *out);

/* One table, "mape / bias". */
void ls_ablations_to_markdown (const LsScores *s, GString *out);

#endif
