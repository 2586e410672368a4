/* analysis/own_runs.h — the interval of a job on a cluster that was fitted to runs of its owner.
 *
 * Problem. The published runs of analysis/interval.h were predicted without a fit. Once figures of a cluster
 * are fitted to runs on it (calibrate/calibrate_runs.h), these say more: what such a fit does not explain of
 * a run that it has not seen.
 *
 * Equations. Run i of n was measured to take T_i; the fit to all runs but it (calibrate/runs_fit.h) predicts
 * t_i. Its error is
 *
 *     e_i = ln (T_i / t_i)
 *
 * Of n + 1 exchangeable errors that of the job is unknown, so q is the least that the share c = L (n + 1) / n
 * of the |e_i| does not exceed (analysis/conformal.h), L = LS_INTERVAL_LEVEL: four runs are the fewest. A job
 * with a step t has
 *
 *     t exp (-q) ... t exp (q)
 *
 * Runs of one job are one: they are left out together, and share its weight 1 / n.
 *
 * Unlike jobs. Errors in fractions of a step go as 1 / MFU (analysis/interval.h): with an MFU below the
 * lowest of the runs, q grows by the ratio of the two. Of a job that is unlike all the runs in another aspect
 * (analysis/likeness.h: more GPUs, a larger model, more tensor parallelism, another format, schedule or
 * backend) they say how far off the fit is where it was made, and published runs how far off a prediction of
 * its kind is: half the width of their interval is added on either side. Where they have none, the job has
 * none.
 *
 * Worked example. Five runs, e = -2 -1 0 1 4 %: c = 0.96, all five, and q = 4 %. A job of 10 s took 9.61 to
 * 10.41 s. At half of their lowest MFU q = 8 %, 9.23 to 10.83 s. On more GPUs than any of them, where the
 * published interval is 9.0 to 11.0 s: its half is ln (11 / 9) / 2 = 10.0 %, q = 14.0 %, 8.69 to 11.51 s.
 *
 * Choice. Around the prediction, not the shortest range as of published runs: of few runs that holds less
 * than it says. All of n runs span a range that holds one more with (n - 1) / (n + 1), 60 % of four, and
 * their largest |e| holds it with n / (n + 1), 80 %. A fit leaves little to either side.
 *
 * Deviations. The fits without a run are one step away from the fit to all (calibrate/runs_fit.h), and fit
 * the same figures: that all runs chose these makes errors a little small. The share of kernel time by
 * guesses is not compared: the GPU and its calibration are those of the runs. That the two halves are added,
 * as if both came together at their worst, is a choice.
 *
 * Reference. R. F. Barber, E. Candes, A. Ramdas, R. Tibshirani, Predictive inference with the jackknife+,
 * Annals of Statistics 49 (2021), for errors of what was left out. */
#ifndef LS_ANALYSIS_OWN_RUNS_H
#define LS_ANALYSIS_OWN_RUNS_H

#include "analysis/interval.h"
#include "cluster/cluster.h"

/* errors: e_i of n runs. jobs: of each a number that runs of the same job share. Sets n, low and high of
 * *ret_runs; low and high are 0 where the jobs are too few. */
void ls_own_runs_set_range (const double *errors, const guint *jobs, guint n, LsFittedRuns *ret_runs);

/* In what the job is unlike all runs, "is in fp8 or ..."; NULL: it is like them. Their lowest MFU is no part
 * of it. Newly allocated. */
char *ls_own_runs_unlike (const LsFittedRuns *runs, const LsIntervalJob *job);

/* *interval: what published runs say of the job, which becomes what these runs say. Where they are too few it
 * stays, with a remark. */
void ls_own_runs_interval (const LsFittedRuns *runs, const LsIntervalJob *job, LsInterval *interval);

#endif
