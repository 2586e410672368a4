/* cluster/reliability.h — how often parts of a cluster fail, what each failure does to a job, and how long it
 * takes until the job goes on.
 *
 * Problem. A job of many weeks is stopped again and again. What stops it, how often, and what follows, are
 * facts about a fleet, which reports give as counts: 148 GPUs of 16,384 in 54 days.
 *
 * Equations. A cause of which n were seen among U units in D days has the rate n / (U D) of each unit. A job
 * on u units meets it at u times that rate; intervals between failures are exponential, and causes are
 * independent. All causes together: the sum of their rates; its inverse is the mean time between
 * failures of the job.
 *
 * Worked example. 419 unexpected interruptions of 2,048 nodes in 54 days: 0.00379 per node and day; a
 * job on all of them is interrupted every 54 x 24 / 419 = 3.09 h, one on 128 nodes every 49 h.
 *
 * Deviations. Rates do not change over the life of a part (Weibull). Parts fail together only where a cause
 * takes several nodes at once.
 *
 * Reference: Llama team 2024, arXiv 2407.21783, table 5; Kokolis et al. 2025, arXiv 2410.21680. */
#ifndef LS_CLUSTER_RELIABILITY_H
#define LS_CLUSTER_RELIABILITY_H

#include <glib.h>
#include <lockstep/units.h>
#include <stdbool.h>

/* What of a job a cause is counted by. */
typedef enum { LS_FAILS_GPU, LS_FAILS_NODE, LS_FAILS_NIC, LS_FAILS_JOB, LS_FAILS_RACK, LS_N_FAILS } LsFails;

/* What a failure does to the job. */
typedef enum {
  LS_FAILURE_REPLACE, /* it ends; another node takes the place of the one that failed               */
  LS_FAILURE_RESTART, /* it ends, and starts again on the same nodes                                */
  LS_FAILURE_PLANNED, /* it is ended behind a checkpoint, and starts again                          */
  LS_FAILURE_STALL,   /* it waits, and goes on                                                      */
  LS_FAILURE_SLOW,    /* it is slower until that is noticed and the node replaced                   */
  LS_FAILURE_CORRUPT  /* its results are wrong until that is noticed: it goes back behind them      */
} LsFailureEffect;

typedef struct {
  char *name;
  int unit;       /* LsFails                                                                        */
  int effect;     /* LsFailureEffect                                                                */
  double count;   /* of those that were seen; 0: per_day holds                                      */
  double per_day; /* of one unit; filled in from count                                              */
  LsTime detect;  /* until somebody knows; of a stall, how long it is                               */
  LsTime locate;  /* until it is known which node, and what to do                                   */
  LsTime repair;  /* until a node that failed may be used again; 0: as the file says of all         */
  uint32_t nodes; /* of REPLACE: that it takes at once, such as those behind a switch; 0: one       */
  double factor;  /* of SLOW: a step takes so many times as long                                    */
} LsFailureCause;

/* Where causes with a count were counted. */
typedef struct {
  double days, of[LS_N_FAILS];
} LsExposure;

typedef struct {
  char *name, *source;
  LsExposure seen;
  GArray *causes;          /* LsFailureCause                                                              */
  uint32_t nodes_per_rack; /* of causes that are counted by racks; 0: there are none */
  uint32_t gpus_per_node;  /* of the nodes that were counted; 0: as those of the job                      */
  LsTime place;            /* until a job that ended has its nodes again, with up to place_gpus           */
  LsTime place_more;       /* and longer for each doubling of them                                        */
  uint32_t place_gpus;
  LsTime initialise; /* process groups, compilation, first steps                                    */
  LsTime repair;     /* until a node that failed may be used again                                  */
} LsReliability;

void ls_reliability_clear (LsReliability *r);

/* What a job runs on. */
typedef struct {
  double of[LS_N_FAILS];
} LsJobUnits;

/* Unasked: REPLACE, RESTART, CORRUPT. */
bool ls_failure_ends_job (const LsFailureCause *cause);
/* Per second, of one cause and of all that end the job. */
double ls_failure_rate (const LsFailureCause *cause, const LsJobUnits *job);
double ls_reliability_rate (const LsReliability *r, const LsJobUnits *job);

/* Seconds from the end of a job of so many GPUs until it runs again, but for reading its checkpoint. */
double ls_reliability_place_s (const LsReliability *r, double n_gpus);

/* --- how much GPUs of a kind differ, and how much the steps of one ------------------------------- */

/* Problem. Steps of a job are not all alike. GPUs have clocks of their own, which they keep; each is now and
 * then a little slower; and a whole cluster is hotter at noon.
 *
 * Equations. A kernel of GPU r in a step of T seconds takes
 *
 *     (1 + spread z_r m) (1 + noise / sqrt (T / 1 s) w) (1 + day / 2 sin (2 pi u))
 *
 * times as long. z_r is drawn once for each GPU, w for each GPU and step, both normal with mean 0 and
 * variance 1; u for each step of all GPUs, uniform. m is the part of kernel time that the clock of matrix
 * units sets. Noise is white in time: that of a step is the mean of what came by while it lasted.
 *
 * Worked example. noise 0.0054: a GPU's steps of 0.45 s differ by 0.0054 / sqrt (0.45) = 0.80 %, those of
 * 8 GPUs that wait for each other by 0.80 x 0.61 = 0.49 %, and they take 0.80 x 1.42 = 1.1 % longer.
 *
 * Deviations. Noise holds for a whole step of a GPU. It is not: what is over sooner than ranks meet
 * (tensor parallelism, each layer) makes each meeting wait, which is longer in sum. Links have no noise of
 * their own. Steps that take much longer (saves, evaluation, data that come late) are not in these figures.
 *
 * Reference. Sinha et al., Not All GPUs Are Created Equal, SC 2022 (arXiv 2208.11035), for steady
 * differences; each file of topologies/jitter for the rest. */

typedef struct {
  char *name, *source;
  double spread; /* standard deviation of the rate of matrix products; NAN: LsGpu.clock_spread */
  double noise;  /* of a GPU's kernel time in a second                                         */
  double day;    /* the slowest hour of a day over its fastest, less 1                         */
} LsJitter;

void ls_jitter_clear (LsJitter *j);

#endif
