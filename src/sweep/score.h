/* sweep/score.h — how close predictions are to measurements.
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
#ifndef LS_SWEEP_SCORE_H
#define LS_SWEEP_SCORE_H

#include "io/write_scores.h"

void ls_score (const LsScoreRow *rows, guint n_rows, LsScore *ret_score);

/* Tau of the whole: mean of the families' taus weighted by n; families whose tau
 * is undefined do not count. */
double ls_score_mean_tau (const LsScore *families, guint n_families);

/* The score of each family, and of all rows with the mean of the families' taus.
 * ret_families: [n_families], in the order of `families`. */
void ls_score_by_family (const LsScoreRow *rows, guint n_rows, const char *const *families, guint n_families,
                         LsScore *ret_families, LsScore *ret_total);

#endif
