/* validate/refusals.h — why rows were refused, grouped.
 *
 * Reasons that differ in numbers only are one: "got 7" and "got 12" are "got #". */
#ifndef LS_VALIDATE_REFUSALS_H
#define LS_VALIDATE_REFUSALS_H

#include "validate/scores.h"

/* Of LsRefusal, most rows first, of equals that which came first; ids are borrowed from the
 * rows. */
GArray *ls_refusals (const LsScoreRow *rows, guint n_rows);

#endif
