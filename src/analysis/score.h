/* analysis/score.h — how close predictions are to measurements.
 *
 *     error_i     = 100 (predicted_i / measured_i - 1)          signed, percent
 *     mape        = mean |error_i|
 *     median abs  = median |error_i|, the mean of the middle two if n is even
 *     bias        = mean error_i
 *     worst       = the error_i of largest magnitude, with its sign
 *     tau-b       = (concordant - discordant) / sqrt ((n0 - n1) (n0 - n2))
 *
 * with n0 = n (n - 1) / 2 pairs, of which n1 tie in the measurement and n2 in the
 * prediction (Kendall, The treatment of ties in ranking problems, Biometrika 33,
 * 1945). Tau asks whether the slower of two configurations is predicted to be the
 * slower; across families it would mostly ask which model is larger, so the total
 * is the mean over families weighted by their size.
 *
 *     measured 1 2 3, predicted 10 30 20: pairs +, +, -     tau = 1/3
 *
 * What is undefined is NaN: everything with n = 0, tau where one side ties
 * throughout. */
#ifndef LS_ANALYSIS_SCORE_H
#define LS_ANALYSIS_SCORE_H

#include <glib.h>

#include "analysis/interval.h"

/* Statistics of a set of cases. NaN:
 * undefined, null in JSON. */
typedef struct {
  guint n; /* simulated */
  guint refused;
  double mape_pct, median_abs_pct, bias_pct, worst_pct;
  double kendall_tau;
} LsScore;

/* What a calculator that knows one MFU says; from which runs it knows it is in
 * validate/validate.h. */
typedef enum { LS_BASELINE_OWN, LS_BASELINE_OTHERS, LS_N_BASELINES } LsBaseline;

typedef struct {
  const char *id, *family;
  const char *source; /* of the measured time; NULL or "": not said */
  double measured_s;
  double predicted_s;                 /* NaN: refused                      */
  const char *reason;                 /* of the refusal, one line, or NULL; owned by who has the row */
  double ideal_s;                     /* FLOPs of the model at the peak of all its GPUs; NaN: refused */
  double baseline_s[LS_N_BASELINES];  /* NaN: refused, or nothing to know an MFU from  */
  const char *architecture;           /* of its GPUs, static; NULL: refused */
  double mfu;                         /* predicted; NaN: refused */
  const char *software;               /* whose training loop, interned: of its row, else the textbook's */
  LsTraits traits;                    /* but for its architecture; strings static or interned */
  double measured_gib, predicted_gib; /* memory; 0: not measured. Predicted NaN: refused */
} LsScoreRow;

/* Signed, in percent of the measurement; NaN if refused. */
double ls_score_row_error_pct (const LsScoreRow *row);
double ls_score_row_memory_error_pct (const LsScoreRow *row);

/* What was predicted, for another process: floating, of type LS_SCORE_ROW_TYPE. unpack: into a row that says
 * the rest. */
#define LS_SCORE_ROW_TYPE "(ddddadmsmsmsmsmsams)"
GVariant *ls_score_row_pack (const LsScoreRow *row);
void ls_score_row_unpack (LsScoreRow *row, GVariant *packed);

void ls_score (const LsScoreRow *rows, guint n_rows, LsScore *ret_score);

/* Tau of the whole: mean of the families' taus weighted by n; families whose tau
 * is undefined do not count. */
double ls_score_mean_tau (const LsScore *families, guint n_families);

/* The score of each family, and of all rows with the mean of the families' taus.
 * ret_families: [n_families], in the order of `families`. */
void ls_score_by_family (const LsScoreRow *rows, guint n_rows, const char *const *families, guint n_families,
                         LsScore *ret_families, LsScore *ret_total);

#endif
