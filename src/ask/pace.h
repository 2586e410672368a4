/* ask/pace.h — how a step follows ranks that are slower than others.
 *
 * Problem. Each rank has a speed of its own. How long is the step then? Its parts that wait for each other
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
 * ranks may meet more second waves (exec/kernel_run.c).
 *
 * Against runs of all ranks with speeds drawn with a deviation of 1.5 %, which take 1.5 to 3.1 % longer for
 * it: nine jobs of tests/unit/ask/test_step_spread.c on 32 and 64 GPUs within 0.11 % of the step in the
 * mean of five draws; llama3.1-405b interleaved over 16 stages 0.30 % short; mixtral-8x7b, experts over 8
 * ranks without a pipeline, 0.75 % short, by second waves. */
#ifndef LS_ASK_PACE_H
#define LS_ASK_PACE_H

#include "job/job.h"

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

/* A step of replicas one by one: each stage's slowest x, then what the step takes over all alike, less 1. */
typedef struct {
  const LsPace *pace;
  double *slowest; /* [n_stages] of all replicas so far, where they meet each layer */
  double longest;  /* of all replicas so far */
} LsPaceStep;
void ls_pace_step_init (LsPaceStep *step, const LsPace *pace, double *slowest);
void ls_pace_step_add (LsPaceStep *step, const double *slowest_of_stage);
double ls_pace_step_end (const LsPaceStep *step);

#endif
