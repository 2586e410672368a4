/* analysis/interval.h — how far a measured step may be from a predicted one.
 *
 * Problem. A simulated step is one number. What would be measured differs: by what the model lacks, which
 * is much the same in all runs of one source (its software, its cluster, how it was timed), and by what
 * varies from run to run. Of many published runs both are known. They come from few sources, one of which
 * may have more rows than all others together, so rows are not independent. A user's job is a new source:
 * its interval must hold what differs between sources, and which way a new one is off is not known.
 *
 * Equations. Row i of source k was measured to take T_ki; predicted were t_ki and a utilisation u_ki (MFU,
 * analysis/report.h), before anybody had seen the row where that is on record (validate/validate.h). Its
 * residual is
 *
 *     e_ki = sqrt (u_ki) ln (T_ki / t_ki)
 *
 * As fractions of the step residuals are the larger the less of it is arithmetic, in points of MFU the
 * smaller: the root is between the two. A source with n_k rows has the weight
 *
 *     w_k = n_k / (n_k + 1)
 *
 * split evenly over its rows: the mean of n_k rows scatters by a variance between sources and one within,
 * over n_k, and the two are about the same. The job's kind of software (LsResidualGroup) has sources of
 * the weight W together. As W says little where it is small, all sources, whatever their software, count
 * in addition, as much as LS_INTERVAL_OTHERS = 8 would:
 *
 *     F (x) = (sum over its sources w_k F_k (x) + 8 F_all (x)) / (W + 8)
 *
 * with F_k the distribution of |e_ki| of a source, F_all the mean of all F_k by their weights. Without a
 * run by such software it is F_all. With q the least value of which F (q) is at least L =
 * LS_INTERVAL_LEVEL, the interval of a job with a step t and an MFU u is
 *
 *     t exp (-f q / sqrt (u)) ... t exp (f q / sqrt (u))
 *
 * f is 1, or for a job unlike the runs with its software the factor below.
 *
 * Worked example. L = 0.8. Three sources with the job's software, one row each, e = 1, 2, 9 points: w =
 * 0.5, W = 1.5. Two of other software, one row each, 4 and 30. In all five sources, each a fifth of F_all.
 * Of the weight 9.5 each of the first three has 0.5 + 8 / 5 = 2.1, each of the others 1.6. Sorted: 1
 * (2.1), 2 (4.2), 4 (5.8), 9 (7.9), 30: 0.8 * 9.5 = 7.6 is held at q = 9 points. A job of 10 s and MFU 36
 * % took 10 exp (-0.09 / 0.6) = 8.61 s to 11.62 s; with MFU 9 % 7.41 s to 13.50 s.
 *
 * Unlike jobs. What the runs with the job's software do not have (below) they say nothing of. How much
 * that costs is known where it can be tried: leave out all runs with a word (of an architecture, a number
 * format, ...), find the q of each by the rest, and see what factor the left out need: the least that
 * holds a share L of their |e| / q, by the weights of their sources. Of the V needs of all words that can
 * be left out, what is new is one more: so f is the one that is not exceeded by a share L (V + 1) / V of
 * them, never below 1. It counts once, in however many aspects the job is unlike: all were left out with
 * what came with them.
 *
 * Choice. By leaving each source out in turn (`lockstep validate CASES --coverage`) and the mean interval
 * score of ln (T / t) (width, and 2 / 0.2 of what lies outside; Gneiting and Raftery 2007): the exponent
 * of u among 0, 1/4, 1/2, 3/4, 1, and 8 among 2, 4, 8, 16 and all that there are. Scores differ by 4 %
 * among these. About the prediction, though the shortest range has a better score (its ends lie near 1 on
 * the side on which few of the known sources are, and a new source falls outside there: of rows of seven
 * other sources, shared data which do not ship, it held half where it should hold eight of ten), equal
 * tails likewise. So these choices were made with errors of these rows in sight.
 *
 * Deviations. Kinds of software are few. That published runs are tuned ones, and a user's may not be, is
 * not in it. Groups are kept as LS_RESIDUAL_POINTS quantiles. Residuals of calibrations (of kernels, of
 * collectives) do not enter by themselves: what they do to a step is in its residual.
 *
 * Reference. T. S. Ferguson, A Bayesian analysis of some nonparametric problems, Annals of Statistics 1
 * (1973), for the mixture: it is the prediction of a Dirichlet process with the base F_all and the
 * concentration 8; R. Dunn, L. Wasserman, A. Ramdas, Distribution-free prediction sets for two-layer
 * hierarchical models, JASA 118 (2023), arXiv 1809.07441, for sources that count and not rows; T.
 * Gneiting, A. Raftery, Strictly proper scoring rules, JASA 102 (2007), for the interval score. */
#ifndef LS_ANALYSIS_INTERVAL_H
#define LS_ANALYSIS_INTERVAL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/enum_name.h"
#include "cluster/cluster.h"

/* --- in what a job may be unlike the runs that its interval rests on --------------------------------- */

/* A run has traits: words, such as the number format, and figures, such as how many GPUs. A job is unlike a
 * set of runs in an aspect if none of them has its word, or if its figure lies beyond all of theirs: more
 * GPUs, a slower fabric, a larger model, a larger share of kernels that nobody measured. A faster fabric or
 * fewer GPUs are not unlike: there is less to go wrong there. Of a smaller model less is arithmetic: that an
 * interval knows by its MFU. */

typedef enum {
  LS_ASPECT_ARCHITECTURE, /* of the GPUs: "ampere"                                                 */
  LS_ASPECT_FORMAT,       /* of the matrix products: "bf16"                                        */
  LS_ASPECT_NODE,         /* what joins its GPUs: "nvlink", "pcie", "ici", "listed"                */
  LS_ASPECT_BACKEND,      /* of data parallelism: "fsdp2"                                          */
  LS_ASPECT_SCHEDULE,     /* of the pipeline: "1f1b"                                               */
  LS_ASPECT_CONTEXT,      /* context parallelism: "on"                                             */
  LS_ASPECT_OFFLOAD,      /* to the host or to drives: "on"                                        */
  LS_ASPECT_EXPERTS,      /* a mixture of experts: "on"                                            */
  LS_ASPECT_TRANSPORT,    /* between nodes, if not by RDMA with GPUDirect: "tcp", "host-memory"    */
  LS_N_WORD_ASPECTS,
  LS_ASPECT_GPUS = LS_N_WORD_ASPECTS, /* how many                                                  */
  LS_ASPECT_FABRIC,  /* bytes/s of the NICs per GPU, of jobs on several nodes                 */
  LS_ASPECT_GUESSED, /* share of kernel time by data sheets and stated guesses                */
  LS_ASPECT_TENSOR,  /* degree of tensor parallelism                                          */
  LS_ASPECT_PARAMS,  /* parameters of the model                                               */
  LS_N_ASPECTS
} LsAspect;

#define LS_N_FIGURE_ASPECTS (LS_N_ASPECTS - LS_N_WORD_ASPECTS)

/* word: static or interned, by aspect; NULL: there is none, which is like all. figure: by aspect less
 * LS_N_WORD_ASPECTS; 0: the same. */
typedef struct {
  const char *word[LS_N_WORD_ASPECTS];
  double figure[LS_N_FIGURE_ASPECTS];
  const char *chip, *chips; /* what its accelerators are called, one and several; static */
} LsTraits;

extern const LsEnumName ls_aspect_names[LS_N_ASPECTS + 1]; /* for programs, by value: "architecture" */

/* Of figures of an aspect: is a more extreme than b? 0 is not, and nothing is more extreme than 0 there. */
bool ls_aspect_is_beyond (LsAspect aspect, double a, double b);

/* --- what must be held of known values so that one more is held -------------------------------------- */

/* Of n + 1 exchangeable values one is unknown, and might lie anywhere. To hold a share L of the n + 1, of the
 * n known ones the share
 *
 *     c = L (n + 1) / n        so n >= L / (1 - L): four for L = 0.8
 *
 * must be held. That is exact where it holds the smallest ones, as of distances: k of n hold one more with k
 * / (n + 1). A range that is spanned by k of n values holds it with (k - 1) / (n + 1). Values weigh what the
 * caller says; weights sum to 1.
 *
 * Reference. V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in a Random World (2005). */

guint ls_conformal_least (double level); /* how many are enough; level below 1 */

/* --- how far a measured step may be from a predicted one --------------------------------------------- */

#define LS_INTERVAL_LEVEL  0.8
#define LS_INTERVAL_OTHERS 8 /* what all sources weigh next to those of the job's software */
#define LS_RESIDUAL_POINTS 20

/* Rows of one family on one architecture. All owned. */
typedef struct {
  char *source;       /* paper or benchmark: "sc21"                      */
  char *family;       /* what of it: "sc21-t1"                           */
  char *architecture; /* of the GPUs: "ampere"                           */
  char *software;     /* whose training loop, in words (runs_like of data/jobs/read_software.h) */
  uint32_t n;         /* rows                                            */
  double lowest_mfu;  /* of them, predicted                              */
  /* double: LS_RESIDUAL_POINTS of them, or n if fewer, ascending; fractions, 0.01 is a point */
  GArray *residuals;
  /* char *: words that rows have but the architecture, as "format bf16"; NULL or empty: not known */
  GArray *traits;
  double figures[LS_N_FIGURE_ASPECTS]; /* the most extreme one; 0: not known, or not there */
} LsResidualGroup;

/* A data file, or what becomes one. */
typedef struct {
  char *name, *source; /* NULL: no file yet */
  GArray *groups;      /* LsResidualGroup   */
  double unlike;       /* times as wide the interval of a job must be that is unlike the runs; 0: 1 */
  uint32_t n_unlike;   /* words that were left out in turn to find it                      */
} LsResiduals;

LsResiduals *ls_residuals_new (void);
void ls_residuals_free (LsResiduals *r); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsResiduals, ls_residuals_free)

double ls_residual (double measured_s, double predicted_s, double mfu);

/* Adds a group from the residuals of its rows, n > 0, which are sorted on the way. Its traits are left
 * out. */
void ls_residuals_add (LsResiduals *r, const char *source, const char *family, const char *architecture,
                       const char *software, double lowest_mfu, double *residuals, guint n);

/* Takes in that a row of the group has these. */
void ls_residual_group_add_traits (LsResidualGroup *group, const LsTraits *traits);

/* q above, before any factor; 0: of no residuals. */
double ls_residuals_spread (const LsResiduals *r, const char *software);

/* From what each word needed that was left out in turn (double, sorted here), f above. */
void ls_residuals_set_unlike (LsResiduals *r, GArray *needed);

typedef struct {
  const char *architecture;
  const char *software; /* as of a group */
  double mfu;           /* predicted, above 0 */
  LsTraits traits;      /* but for its architecture */
  const char *unlike;   /* what else no published run is or has, "has an encoder"; NULL: nothing */
  const char *without;  /* source that does not count, as it is the job's; NULL: all do */
} LsIntervalJob;

typedef struct {
  double low, high; /* over the predicted step      */
  /* times as wide as for a job like the runs; 1: it is one; infinity: as runs that were not off at all */
  double stretch;
  char *wider;          /* what none of the runs does, "is in fp8 or ..."; NULL: it is like them. Owned */
  const char *software; /* as of a group; borrowed */
  guint n_sources;      /* published ones with that software which it rests on; 0: on none */
  guint n_others;       /* and with other software, which count less */
  guint n_runs;         /* runs of the user which it rests on (below); 0: on none */
  char *runs;           /* their file. Owned            */
  char *remark;         /* why runs of the user do not count, what is not known of the machine; NULL: nothing.
                           Owned */
  char *none;           /* why there is none; NULL: low and high hold. Owned */
} LsInterval;

/* The interval of a job. Clear with ls_interval_clear(). */
void ls_interval_find (const LsResiduals *r, const LsIntervalJob *job, LsInterval *ret);
/* The source of a family of rows: what its name begins with, up to a dash. Newly allocated. */
char *ls_residual_source (const char *family);
/* What is not known of the machine itself: the errors of figures that were carried from another one or taken
 * from data sheets (cluster/gpu.h, LsKnown), each times its share of the step, add up to error > 0. They may
 * all lie on one side, so the interval is exp (error) times as far out at both ends. words: which figures;
 * they are told where there is no interval, too. */
void ls_interval_widen (LsInterval *interval, double error, const char *words);
/* What is not simulated of its program makes a step up to so many times as long, factor > 1: of the interval
 * that its upper end is. words: what that is. */
void ls_interval_lengthen (LsInterval *interval, double factor, const char *words);
void ls_interval_clear (LsInterval *interval); /* zeroes; NULL allowed */

/* What an interval is, or why there is none: "80 % interval, from the errors on 6 published sources
 * with Megatron-LM and, with less weight, 40 with other software". Newly allocated. */
char *ls_interval_label (const LsInterval *interval);

/* --- the interval of a job on a cluster that was fitted to runs of its owner ------------------------- */

/* Problem. The published runs above were predicted without a fit. Once figures of a cluster
 * are fitted to runs on it (calibrate/calibrate_runs.h), these say more: what such a fit does not explain of
 * a run that it has not seen.
 *
 * Equations. Run i of n was measured to take T_i; the fit to all runs but it (calibrate/runs_fit.h) predicts
 * t_i. Its error is
 *
 *     e_i = ln (T_i / t_i)
 *
 * Of n + 1 exchangeable errors that of the job is unknown, so q is the least that the share c = L (n + 1) / n
 * of the |e_i| does not exceed (above), L = LS_INTERVAL_LEVEL: four runs are the fewest. A job
 * with a step t has
 *
 *     t exp (-q) ... t exp (q)
 *
 * Runs of one job are one: they are left out together, and share its weight 1 / n.
 *
 * Unlike jobs. Errors in fractions of a step go as 1 / MFU (above): with an MFU below the
 * lowest of the runs, q grows by the ratio of the two. Of a job that is unlike all the runs in another aspect
 * (above: more GPUs, a larger model, more tensor parallelism, another format, schedule or
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

/* errors: e_i of n runs. jobs: of each a number that runs of the same job share. Sets n, low and high of
 * *ret_runs; low and high are 0 where the jobs are too few. */
void ls_own_runs_set_range (const double *errors, const guint *jobs, guint n, LsFittedRuns *ret_runs);

/* In what the job is unlike all runs, "is in fp8 or ..."; NULL: it is like them. Their lowest MFU is no part
 * of it. Newly allocated. */
char *ls_own_runs_unlike (const LsFittedRuns *runs, const LsIntervalJob *job);

/* *interval: what published runs say of the job, which becomes what these runs say. Where they are too few it
 * stays, with a remark. */
void ls_own_runs_interval (const LsFittedRuns *runs, const LsIntervalJob *job, LsInterval *interval);

/* --- how close predictions are to measurements --------------------------------------------------------- */

/*
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
  double first_s;   /* predicted before anybody had seen it; 0: not known, or not so simulated here */
  double low, high; /* its interval, over the predicted step, by all sources but its own; NaN: none */
} LsScoreRow;

/* Signed, in percent of the measurement; NaN if refused. */
double ls_score_row_error_pct (const LsScoreRow *row);
double ls_score_row_memory_error_pct (const LsScoreRow *row);
bool ls_score_row_is_inside (const LsScoreRow *row); /* its interval; false without one */

/* What was predicted, for another process: floating, of type LS_SCORE_ROW_TYPE. unpack: into a row that says
 * the rest. */
#define LS_SCORE_ROW_TYPE "(ddddddadmsmsmsmsmsams)"
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
