/* validate/scores.h — a scoreboard of predictions against measurements. */
#ifndef LS_VALIDATE_SCORES_H
#define LS_VALIDATE_SCORES_H

#include <glib.h>

#include "analysis/score.h"
#include "validate/residuals.h"

typedef struct {
  const char *family;
  LsScore score;
  LsScore baseline[LS_N_BASELINES];
} LsFamilyScore;

/* Rows refused for one reason. */
typedef struct {
  char *reason; /* its numbers as "#" where they differ */
  guint n;
  const char *example; /* id of the first                      */
} LsRefusal;

/* The scores without one mechanism (validate/ablation.h). */
typedef struct {
  const char *key;   /* static: "contention"                      */
  const char *label; /* static: for people                        */
  LsScore total;
  const LsScore *families; /* as those of LsScores, in the same order   */
} LsAblationScore;

typedef struct {
  LsScore total;
  LsScore total_baseline[LS_N_BASELINES];
  LsScore memory; /* of rows whose memory was measured: n + refused is 0 if none */
  guint n_families;
  const LsFamilyScore *families;
  guint n_rows;
  const LsScoreRow *rows;
  guint n_refusals;
  const LsRefusal *refusals; /* most rows first */
  guint n_ablations;         /* 0: not asked for */
  const LsAblationScore *ablations;
  const char *const *assumed; /* "knob=value" set for every row, NULL-terminated, or NULL */
  const char *const
      *own_knobs; /* families of which more is known than their tables say, NULL-terminated, or NULL */
  const char *const *by_hardware; /* clusters of rows that name none, NULL-terminated, or NULL */
  const char *const *ignored;     /* columns that nothing reads, likewise */
  const LsCoverage *coverage;     /* NULL: not asked for */
} LsScores;

/* --- refusals --------------------------------------------------------------------------------------- */

/* Why rows were refused, grouped.
 *
 * Reasons that differ in numbers only are one: "got 7" and "got 12" are "got #". */

/* Of LsRefusal, most rows first, of equals that which came first; ids are borrowed from the
 * rows. */
GArray *ls_refusals (const LsScoreRow *rows, guint n_rows);

/* --- without some of the rows ----------------------------------------------------------------------- */

/* A scoreboard without the rows that have a trait in common, to see what the others say
 * of them. */

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

/* --- what a calculator that knows one MFU would say ---------------------------------------------- */

/* Problem. Is a simulation worth it? Much of a step's time follows from its FLOPs alone:
 *
 *     T = F / (n P u)       F model FLOPs, n GPUs with peak P of the dtype, u the MFU
 *
 * Equations. u is learnt from other measured rows, never from the one that is judged: the
 * median of their MFUs t_i / T_i, with t_i = F_i / (n_i P_i), the ideal time of a row, and T_i
 * its measured time. The median makes half of the rows too fast and half too slow, and no outlier
 * moves it.
 *
 *   own     the other rows of its family, each row left out in turn: who has run that very
 *           software on such a cluster already. A family of one row has no others: as below.
 *   others  all rows of the other families: who has not, as this simulator.
 *
 * Worked example. Three rows of a family with MFUs 0.5, 0.4 and 0.2: the first is told 0.3 by
 * the others, 67 % too slow; the second 0.35, 14 % too slow; the third 0.45, 56 % too fast.
 *
 * Measured. The 43 multi-node runs of vTrain (Bang et al. 2024) that are in the collection of
 * tests/unit/validate/test_residuals.c: own 17.5 % off in the mean. The mean of MFUs instead, 19.7 %;
 * what makes this mean error least, 17.0 %.
 *
 * Deviations. FLOPs as Megatron-LM counts them (ls_model_flops(), attention not halved,
 * recomputation not counted). Only rows that were simulated teach, as only those are judged. */

/* Sets baseline_s of all rows from their measured_s and ideal_s. */
void ls_baseline (LsScoreRow *rows, guint n);

#endif
