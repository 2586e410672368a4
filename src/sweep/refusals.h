/* sweep/refusals.h — why rows were refused, grouped.
 *
 * Reasons that differ in numbers only are one: "got 7" and "got 12" are "got #". */
#ifndef LS_SWEEP_REFUSALS_H
#define LS_SWEEP_REFUSALS_H

#include "io/write_scores.h"

/* Of LsRefusal, most rows first, of equals that which came first; ids are borrowed from the
 * rows. */
GArray *ls_refusals (const LsScoreRow *rows, guint n_rows);

#endif
