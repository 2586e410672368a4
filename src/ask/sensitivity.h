/* ask/sensitivity.h — what a percent more of the hardware is worth to a job.
 *
 * Problem. Which of FLOPs, memory, links and host should a machine have more of? Shares of time
 * do not say: what overlaps may cost nothing, and a late rank makes others wait.
 *
 * Method. The plan is run again with one parameter p a percent higher and lower, and
 *
 *     elasticity = (T (1.01 p) - T (0.99 p)) / (0.02 T (p))
 *
 * percent of the step per percent of p: -1 if the step is all p, 0 if p does not matter. Each is scaled where
 * it lives, as a change of the cluster's file would, and what was calibrated stays a share of it:
 *
 *     gpu_flops          peak rates of the matrix and vector units
 *     hbm_bandwidth      of the data sheet
 *     nvlink_bandwidth   NVLinks (of a torus, ICI) and what NCCL gets through them
 *     nic_bandwidth      NICs and what NCCL gets through them; links of the fabric go along,
 *                        as their number follows from the ratio of both
 *     network_latency    of all links, and NCCL's steps
 *     host_launch        issuing a kernel, a view, a communication call, and a batch
 *
 * Measured kernels (compute/measured.h) are scaled as their fits are: a timing is an efficiency
 * of the GPU that it was taken on.
 *
 * Worked example. A job of one kernel that FLOPs bound, without a launch time, has gpu_flops
 * (1/1.01 - 1/0.99) / 0.02 = -1.0001, and 0 for the rest.
 *
 * Deviations. The plan is the same in all runs, also where its pipeline was ordered by times.
 * Algorithms and protocols are chosen anew: a choice that flips within a percent shows as a
 * step. Recorded durations of a trace belong to no parameter. */
#ifndef LS_ASK_SENSITIVITY_H
#define LS_ASK_SENSITIVITY_H

#include <glib.h>
#include <stdbool.h>

#include "job/job.h"

/* One parameter of the hardware, a percent up and down. */
typedef struct {
  const char *parameter; /* static: "gpu_flops"                                              */
  const char *label;     /* static: for people                                               */
  double elasticity;     /* percent of the step's time per percent of the parameter         */
  double seconds_per_percent;
  double up_s, down_s; /* the step with the parameter a percent higher, and lower         */
} LsSensitivity;

typedef struct {
  double step_s;
  guint n;
  LsSensitivity *rows; /* [n], in the order of the parameters */
} LsSensitivityTable;

/* r: the job as it ran. n_threads 0: one per processor; the result is the same. The first run
 * that fails, in the order of the parameters, gives the error. */
LsSensitivityTable *ls_sensitivity_new (const LsJobSpec *spec, const LsJobResult *r, guint n_threads,
                                        GError **error);
void ls_sensitivity_free (LsSensitivityTable *table); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSensitivityTable, ls_sensitivity_free)

#endif
