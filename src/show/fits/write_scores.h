/* show/fits/write_scores.h — a scoreboard of predictions against measurements, for
 * people and for programs (`validate --json`), and as
 * a table in Markdown. */
#ifndef LS_SHOW_FITS_WRITE_SCORES_H
#define LS_SHOW_FITS_WRITE_SCORES_H

#include "show/fits/write_coverage.h"
#include "validate/scores.h"

/* Newly allocated, ending in a newline. */
char *ls_scores_to_json (const LsScores *s);
char *ls_scores_to_text (const LsScores *s);
/* Why rows were refused: a line for each reason, how many and which for example. */
char *ls_scores_refusals (const LsScores *s);
/* The scores by family as a table in Markdown; its numbers are those of the text. */
char *ls_scores_to_markdown (const LsScores *s);

#endif
