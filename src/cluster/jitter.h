/* cluster/jitter.h — how much GPUs of a kind differ, and how much the steps of one.
 *
 * Problem. Steps of a job are not all alike. GPUs have clocks of their own, which they keep; each is now and
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
#ifndef LS_CLUSTER_JITTER_H
#define LS_CLUSTER_JITTER_H

typedef struct {
  char *name, *source;
  double spread; /* standard deviation of the rate of matrix products; NAN: LsGpu.clock_spread */
  double noise;  /* of a GPU's kernel time in a second                                         */
  double day;    /* the slowest hour of a day over its fastest, less 1                         */
} LsJitter;

void ls_jitter_clear (LsJitter *j);

#endif
