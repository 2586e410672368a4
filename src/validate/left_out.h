/* validate/left_out.h — a scoreboard without the rows that have a trait in common, to see what the others say
 * of them. */
#ifndef LS_VALIDATE_LEFT_OUT_H
#define LS_VALIDATE_LEFT_OUT_H

#include "validate/scores.h"

/* All rows with a word, or those whose figure lies beyond one. */
typedef struct {
  int aspect;       /* LsAspect                        */
  const char *word; /* interned or static; of a word   */
  double figure;    /* of a figure                     */
} LsLeftOut;

bool ls_left_out_has (const LsLeftOut *left_out, const LsScoreRow *row); /* false of a refused row */

/* Each word, or each figure, of the rows that leaves some out and some in, in the order of the rows.
 * LsLeftOut. */
GArray *ls_left_out_list (const LsScoreRow *rows, guint n_rows, LsAspect aspect);

/* The rows that are not left out, and not refused. LsScoreRow, whose strings are borrowed. */
GArray *ls_rows_without (const LsScoreRow *rows, guint n_rows, const LsLeftOut *left_out);

#endif
