/* ask/step_spread.h — how the steps of a job are distributed.
 *
 * Problem. A predicted step is one number. How far is a step from it, how often, and why? And are steps
 * longer on more GPUs, as each waits for the slowest of more?
 *
 * Method. Clusters are drawn, each with a speed for each GPU, and steps of each with noise
 * (cluster/reliability.h); how long such a step is says ask/step_spread.h.
 *
 * What is in the predicted step already. Its clock is that of the slowest of n GPUs in the mean
 * (compute/cost.c): so the mean over clusters of what the spread of GPUs costs is not added again. Here
 *
 *     slowest   mean over clusters, without noise, over all GPUs alike, less 1: it is in the predicted step
 *     noise     mean over clusters and steps over that, less 1: it is not
 *     shift     1 + slowest of a spread that was given, over the same of the GPU's file, less 1
 *     mean      predicted step x (1 + shift) x (1 + noise)
 *
 * and every other figure is the predicted step times what was drawn over the mean without noise. The mean
 * without noise may be below the predicted step, which has all ranks as slow as the slowest, where a pipeline
 * waits for one stage only: `slack`.
 *
 * Worked example. 1,024 replicas of one GPU that meet once a step, noise of 1 % of a step, no spread: the
 * largest of 1,024 normals is 3.25 in the mean, so steps are 3.2 % longer; 5 % are below 1.0276.
 *
 * Deviations. Smaller and larger jobs of the table are those of fewer replicas: what data parallelism takes
 * among these is not simulated again. */
#ifndef LS_ASK_STEP_SPREAD_H
#define LS_ASK_STEP_SPREAD_H

#include "base/parallel.h"
#include "cluster/reliability.h"
#include "job/job.h"

/* --- how a step follows ranks that are slower than others ---------------------------------------- */

/* Problem. Each rank has a speed of its own. How long is the step then? Its parts that wait for each other
 * all the time go at the pace of their slowest rank; a pipeline goes at that of its slowest stage, for most
 * of it; and the replicas of data parallelism meet at the end.
 *
 * Method. The plan is run again with all ranks alike (no spread of clocks), with all slower by PROBE, with
 * the clock of all lower by as much, and with one stage slower. From these
 *
 *     c     step per factor of all ranks          (T (all) / T (alike) - 1) / PROBE
 *     c_s   of stage s alone                      the same of T (s); first, middle and last, others as the
 * middle
 *     d     of a stage beside the slowest         (c - max c_s) / (stages - 1): filling and draining
 *     m     of the clock, to that of kernels      (T (clock) - T (alike)) / (T (all) - T (alike))
 *
 * With x the kernel time of a rank over that of all alike, less 1, and x_sg the largest among the ranks of
 * stage s that meet each layer (tensor, context and expert parallelism),
 *
 *     T = T (alike) (1 + max over replicas g of (max over s of (c_s - d) x_sg + d sum over s of x_sg))
 *
 * Where parameters are gathered for each layer (ZeRO 3), stages go at the pace of their slowest replica:
 * x_sg is the same for all g.
 *
 * Worked example. One stage, 8 replicas, kernels 0.9 of the step: a rank that is 2 % slower makes the step
 * 1.8 % longer, whichever it is; two of them no more than that.
 *
 * Deviations. T is taken as linear from alike to PROBE and beyond. A stage that has less to do than others
 * delays them only once it is later than they are; a stage between those tried has the middle's c_s. Where
 * data parallelism hides behind the backward pass, a slow replica delays what it hides, and GEMMs of other
 * ranks may meet more second waves (exec/replay/kernel_run.c).
 *
 * Against runs of all ranks with speeds drawn with a deviation of 1.5 %, which take 1.5 to 3.1 % longer for
 * it: nine jobs of tests/unit/ask/test_step_spread.c on 32 and 64 GPUs within 0.11 % of the step in the
 * mean of five draws; llama3.1-405b interleaved over 16 stages 0.30 % short; mixtral-8x7b, experts over 8
 * ranks without a pipeline, 0.75 % short, by second waves. */

typedef struct {
  uint32_t n_stages;
  uint32_t n_replicas;   /* of each stage                                       */
  uint32_t n_together;   /* ranks of a stage and replica                        */
  bool meets_each_layer; /* all replicas of a stage do                          */
  double step_s;         /* all alike                                           */
  double clock;          /* m                                                   */
  double beside;         /* d                                                   */
  double alone[];        /* [n_stages] c_s                                      */
} LsPace;

/* r: the job as it ran, not of a trace and without stragglers of its own. n_threads 0: one per processor.
 * Errors of a run; LS_ERROR_UNSUPPORTED: a trace; LS_ERROR_CONFLICT: stragglers. Free with g_free(). */
LsPace *ls_pace_new (const LsJobSpec *spec, const LsJobResult *r, guint n_threads, GError **error);

/* What a step of so many replicas takes over all alike, less 1. x: [replica][stage], each stage's slowest. */
double ls_pace_step (const LsPace *pace, const double *x, uint32_t n_replicas);

/* --- how the steps of a job are distributed: over clusters that it may get, and its steps -------- */

#define LS_JITTER_DEFAULT "mlperf-5.1"
#define LS_JITTER_OFF     "off"

#define LS_SPREAD_N_QUANTILES 21

/* A job of so many replicas. Over the mean without noise: but for the first two. */
typedef struct {
  uint32_t n_replicas, n_gpus;
  uint32_t n_clusters, n_steps;           /* drawn; steps of each cluster */
  double slowest, noise;                  /* as above */
  double low, median, high;               /* 5 % of steps are shorter, half, 95 % */
  double quantile[LS_SPREAD_N_QUANTILES]; /* at the middle of as many equal parts */
  double of_gpus, of_noise, of_day;       /* standard deviations that these bring */
} LsSpreadRow;

typedef struct {
  char *jitter, *source;
  const char *chip;          /* static: "GPU"                                   */
  double spread, noise, day; /* as they were used; noise: of a step of this job */
  double step_s;             /* as predicted                                    */
  double alike_s;            /* all GPUs alike                                  */
  double slack;              /* the mean without noise over the predicted step, less 1 */
  double shift;              /* above; 0: the spread is that of the GPU's file             */
  uint32_t seed;
  GArray *rows; /* LsSpreadRow: fewer replicas first, the job itself last */
} LsStepSpread;

/* How much steps of `r` vary. Errors as of ls_pace_new(). Free with ls_step_spread_free(). */
LsStepSpread *ls_step_spread_new (const LsJobSpec *spec, const LsJobResult *r, const LsJitter *jitter,
                                  uint32_t seed, guint n_threads, GError **error);
void ls_step_spread_free (LsStepSpread *spread); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsStepSpread, ls_step_spread_free)

const LsSpreadRow *ls_step_spread_of_job (const LsStepSpread *spread);
/* Adds how much was drawn to what an answer rests on (job/assumptions.h). */
void ls_step_spread_assume (const LsStepSpread *spread, GArray **assumptions);
/* Of the job, without noise: the mean that all its figures are over. */
double ls_step_spread_base_s (const LsStepSpread *spread);

/* One job of so many replicas. spread and noise: standard deviations, of the clock and of kernels of a step.
 * The same at any number of threads. */
void ls_spread_draw (const LsPace *pace, uint32_t n_replicas, double spread, double noise, double day,
                     uint32_t seed, guint n_threads, LsSpreadRow *ret_row);

#endif
