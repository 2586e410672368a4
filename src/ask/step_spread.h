/* ask/step_spread.h — how the steps of a job are distributed: over clusters that it may get, and its steps.
 *
 * Problem. A predicted step is one number. How far is a step from it, how often, and why? And are steps
 * longer on more GPUs, as each waits for the slowest of more?
 *
 * Method. Clusters are drawn, each with a speed for each GPU, and steps of each with noise
 * (cluster/jitter.h); how long such a step is says ask/pace.h.
 *
 * What is in the predicted step already. Its clock is that of the slowest of n GPUs in the mean
 * (compute/clock.h): so the mean over clusters of what the spread of GPUs costs is not added again. Here
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

#include "ask/pace.h"
#include "base/parallel.h"
#include "cluster/jitter.h"

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
/* Of the job, without noise: the mean that all its figures are over. */
double ls_step_spread_base_s (const LsStepSpread *spread);

/* One job of so many replicas. spread and noise: standard deviations, of the clock and of kernels of a step.
 * The same at any number of threads. */
void ls_spread_draw (const LsPace *pace, uint32_t n_replicas, double spread, double noise, double day,
                     uint32_t seed, guint n_threads, LsSpreadRow *ret_row);

#endif
