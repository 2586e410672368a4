/* show/fits/write_ablation.h — the part of a scoreboard that says what each mechanism is worth
 * (private to the writers of scores). Appends nothing if there were no ablations. */
#ifndef LS_SHOW_FITS_WRITE_ABLATION_H
#define LS_SHOW_FITS_WRITE_ABLATION_H

#include "show/fits/write_scores.h"

/* A table of mean absolute errors and one of biases: a row for each mechanism that is off,
 * a column for each family. */
void ls_ablations_to_text (const LsScores *s, GString *out);

/* One table, "mape / bias". */
void ls_ablations_to_markdown (const LsScores *s, GString *out);

#endif
