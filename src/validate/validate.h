/* validate/validate.h — simulate measured runs and score the predictions.
 *
 * Each row becomes a model (data/measured/read_cases.h), a strategy
 * and a cluster of as many nodes as its GPUs need, and is run like any job. A row
 * that cannot be simulated (a cluster without a file, a mechanism that is not built)
 * is refused with the reason and leaves the others alone.
 *
 * The predictions become a scoreboard, residuals (analysis/interval.h), and intervals made of them, which
 * hold or not: the interval of each row rests on the sources that the row is not of. A source is what a
 * family's name begins with, up to a dash. */
#ifndef LS_VALIDATE_VALIDATE_H
#define LS_VALIDATE_VALIDATE_H

#include <glib.h>

#include "analysis/interval.h"
#include "base/team.h"
#include "exec/run.h"
#include "job/job_cases.h"
#include "job/sensitivity_scale.h"
#include "strategy/strategy.h"

/* --- residuals, and intervals made of them ----------------------------------------------------------- */

/* Rows whose intervals rest on the other sources only. Shares and widths are NaN if there is no interval. */
typedef struct {
  const char *source;
  guint n;        /* with an interval                                       */
  guint n_unlike; /* without, as they are like no run of the other sources  */
  double covered; /* share of n that was measured inside                  */
  double width;   /* median of high over low                              */
  /* by software: median of that of the narrowest range with a share LS_INTERVAL_LEVEL of the rows of the
   * others; else NaN */
  double narrowest;
} LsCoverageLine;

typedef struct {
  double level;
  GPtrArray *names;    /* char *: of the lines                                   */
  GArray *sources;     /* LsCoverageLine, of each source                         */
  GArray *softwares;   /* LsCoverageLine, of each kind of software, each row counting once */
  LsCoverageLine each; /* each source counts once; of those with an interval     */
  LsCoverageLine rows; /* each row does                                          */
  GArray
      *left_out; /* LsCoverageLine: "architecture hopper" or a software, the rows with that by those without,
                       each source counting once */
} LsCoverage;

/* Of all rows that were not refused, in groups in the order of their first rows; with how much wider unlike
 * jobs are. */
LsResiduals *ls_residuals_of_rows (const LsScoreRow *rows, guint n_rows);

/* Also of the rows that have a word in common (analysis/interval.h), each by those that do not. */
LsCoverage *ls_coverage_new (const LsScoreRow *rows, guint n_rows);
void ls_coverage_free (LsCoverage *c); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCoverage, ls_coverage_free)

/* Of the step times, in the order of the rows. */
guint64 ls_predictions_digest (const LsScoreRow *rows, guint n_rows);

/* Residuals as a file that data/machines/machines.h reads. */

/* What a file was made by and from. Borrowed. */
typedef struct {
  const char *command, *version;
  const char *cases, *sha256; /* file of the measured runs */
  guint n_rows;               /* that were simulated       */
  guint64 digest;             /* of their step times       */
} LsResidualProvenance;

/* The file, newly allocated; c says how well it serves. */
char *ls_residuals_to_json (const LsResiduals *r, const char *name, const LsResidualProvenance *p,
                            const LsCoverage *c);

/* --- a scoreboard ------------------------------------------------------------------------------------ */

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

/* The scores without one mechanism. */
typedef struct {
  const char *key, *label; /* those of ls_ablations                 */
  LsScore total;
  LsScore *families; /* as those of LsScores, in the same order   */
} LsAblationScore;

/* Of the rows with a kind of software: those with an interval, and how it holds. */
typedef struct {
  const char *software; /* interned */
  guint n;
  double inside, width; /* share measured inside; median of high over low */
} LsSoftwareScore;

typedef struct {
  LsScore total;
  GArray *softwares; /* LsSoftwareScore, in the order of their first rows */
  LsScore total_baseline[LS_N_BASELINES];
  LsScore memory; /* of rows whose memory was measured: n + refused is 0 if none */
  guint n_families;
  LsFamilyScore *families;
  guint n_rows;
  const LsScoreRow *rows;
  guint n_refusals;
  const LsRefusal *refusals; /* most rows first */
  guint n_ablations;         /* 0: not asked for */
  LsAblationScore *ablations;
  const char *const *assumed;                /* "knob=value" set for every row, NULL-terminated, or NULL */
  const char *const *names[LS_N_CASE_NAMES]; /* as ls_job_cases_names(), NULL-terminated */
  const GPtrArray *cases;                    /* LsCase of the rows, which say what each rests on */
  const char *rest;                          /* what all rest on, in words; "": nothing */
  const LsCoverage *coverage;                /* NULL: not asked for */
} LsScores;

/* --- refusals --------------------------------------------------------------------------------------- */

/* Why rows were refused, grouped.
 *
 * Reasons that differ in numbers only are one: "got 7" and "got 12" are "got #". */

/* Of LsRefusal, most rows first, of equals that which came first; ids are borrowed from the
 * rows. */
GArray *ls_refusals (const LsScoreRow *rows, guint n_rows);

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

/* --- a simulation with one mechanism off ------------------------------------------------------------- */

/* Problem. A prediction is right by mechanisms, or because errors cancel. What each is worth,
 * and whether the whole needs it, shows when it is taken away and all else stays.
 *
 * Each is switched off where it lives, for kernels and links as if nobody had thought of it:
 *
 *   contention  links and memory are not shared: each transfer has its path to itself
 *               (--network alphabeta)
 *   slowdown    kernels beside communication run as alone: it holds no SMs, stalls nothing,
 *               takes no memory bandwidth. On a torus it keeps what copies take of memory.
 *   host        issuing and waiting cost the host nothing (--host-launch 0us and its like)
 *   grad_norm   no all-reduce of the gradient norm, which is a barrier (--grad-norm 0)
 *   p2p         pipeline transfers overlap where a stage waited for them, except with 1f1b,
 *               which has no other way (--p2p overlapped)
 *   latency     links and NCCL's steps take no time besides their bytes'
 *   clocks      matrix units keep the rate of short isolated loops: no heat, no power limit
 *   tiles       arithmetic spreads evenly: no tiles, no waves, no last ones
 *   hbm         memory gives what its data sheet says
 *   kernels     all of a kernel but its roofline: a time by the data sheet, no launch
 *
 * Worked example. Five percent too fast in all, and eight without contention: contention makes
 * three percent of a step, and is needed. A mechanism whose absence makes errors smaller is
 * wrong, or hides another that is missing.
 *
 * Deviations. Mechanisms act together: what two of them are worth is not the sum. Kernels of a
 * measured table (compute/measured.h) keep their times, except with kernels. A pipeline whose
 * order is searched for is searched anew. */

typedef enum {
  LS_ABLATE_CONTENTION,
  LS_ABLATE_SLOWDOWN,
  LS_ABLATE_HOST,
  LS_ABLATE_GRAD_NORM,
  LS_ABLATE_P2P,
  LS_ABLATE_LATENCY,
  LS_ABLATE_CLOCKS,
  LS_ABLATE_TILES,
  LS_ABLATE_HBM,
  LS_ABLATE_KERNELS,
  LS_N_ABLATIONS
} LsAblation;

/* What a job is run with when the mechanism is off. */
typedef struct {
  LsHardware hardware;
  LsStrategy strategy;
  LsRunOptions options;
  LsScaled scaled; /* what the hardware then borrows from */
} LsAblated;

typedef struct {
  const char *key, *label; /* "contention"; for people */
  void (*apply) (LsAblated *a);
} LsAblationRow;
extern const LsAblationRow ls_ablations[LS_N_ABLATIONS];

/* Borrows from hardware, which must outlive it; copies the rest. */
void ls_ablated_init (LsAblated *a, LsAblation ablation, const LsHardware *hardware,
                      const LsStrategy *strategy, const LsRunOptions *options);
void ls_ablated_clear (LsAblated *a);

/* --- a validation ------------------------------------------------------------------------------------- */

typedef struct {
  const char *const *paths;  /* of tables and logs: job/job_cases.h */
  const char *cluster;       /* of logs; NULL: there are none       */
  const char *split;         /* NULL: all           */
  const char *only;          /* regex on id, or NULL */
  guint n_threads;           /* 0: one per processor */
  const LsJobSpec *job;      /* of all rows, besides what they say: how they are simulated */
  const char *const *assume; /* knobs of the strategy, host costs: "key=value"; or NULL */
  bool ablate;               /* simulate all rows again with each mechanism off */
  bool with_coverage;        /* of intervals (analysis/interval.h)           */
  LsProgress progress;       /* in simulations                */
  LsTeam *team;              /* of processes that share the rows; NULL: none */
} LsValidateSpec;

typedef struct LsValidationRun LsValidationRun;

/* The result does not depend on n_threads and team, of which each process gets all. LS_ERROR_USAGE: a bad
 * regex, or no row matches; LS_ERROR_INPUT: a bad file, or one without rows; those of ls_team_each(). Free
 * with ls_validation_run_free(). */
LsValidationRun *ls_validate (const LsValidateSpec *spec, GError **error);
void ls_validation_run_free (LsValidationRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsValidationRun, ls_validation_run_free)

/* Borrowed until the run is freed. Families in order of their first row. */
const LsScores *ls_validation_run_scores (const LsValidationRun *run);

/* The text of a file of that name that data/machines/machines.h reads. Newly allocated. */
char *ls_validation_run_residuals (const LsValidationRun *run, const char *name, const char *version);

#endif
