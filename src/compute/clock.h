/* compute/clock.h — the clock of a job's matrix units, relative to the GPU that was fitted.
 *
 * Problem. Kernels are timed on one GPU at its full power limit. A cluster may run its GPUs
 * at a lower limit; and no two chips of a kind are alike: under a limit of power the leakier
 * one clocks lower. Ranks of a synchronous job wait for each other at every collective, so
 * that the slowest sets the pace of all.
 *
 *     clock    min (1, limited / reached) / (1 + spread * E (n))
 *     reached  e * sustained * peak / (1 + throttle)   16-bit GEMM in a hot step (cost.h)
 *     E (n)    Phi^-1 ((n - 3/8) / (n + 1/4))          the largest of n normal draws
 *
 * `limited` and `spread` are the GPU file's power_limited and clock_spread. What runs on matrix
 * units takes 1 / clock as long in its compute term; memory has a clock of its own.
 *
 * Worked example. spread 0.015 and 64 GPUs: Phi^-1 (63.625 / 64.25) = 2.339, 1.035 times as
 * long. limited 593 of 989.4 TFLOP/s with e 0.84, throttle 0.09: reached 762, 1.285 times.
 *
 * Deviations. A mean of draws, so that ranks stay alike and fold: which GPU is slow, and the
 * slack of stages beside a slow one, need --slow. Kernels that are bound by HBM keep their
 * time, as they should; those that use the vector units do, too, as they hardly meet the limit.
 *
 * Reference. E (n): Blom, Statistical estimates and transformed beta-variables, 1958. Spread:
 * Sinha et al., Not All GPUs Are Created Equal, SC 2022 (arXiv 2208.11035). */
#ifndef LS_COMPUTE_CLOCK_H
#define LS_COMPUTE_CLOCK_H

#include "compute/cost.h"

/* In (0, 1]; n_gpus >= 1. */
double ls_clock (const LsCalibration *calibration, const LsGpu *gpu, uint32_t n_gpus);

#endif
