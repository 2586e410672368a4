/* validate/baseline.h — what a calculator that knows one MFU would say.
 *
 * Problem. Is a simulation worth it? Much of a step's time follows from its FLOPs alone:
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
#ifndef LS_VALIDATE_BASELINE_H
#define LS_VALIDATE_BASELINE_H

#include "validate/scores.h"

/* Sets baseline_s of all rows from their measured_s and ideal_s. */
void ls_baseline (LsScoreRow *rows, guint n);

#endif
