/* validate/ablation.h — a simulation with one mechanism off.
 *
 * Problem. A prediction is right by mechanisms, or because errors cancel. What each is worth,
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
#ifndef LS_VALIDATE_ABLATION_H
#define LS_VALIDATE_ABLATION_H

#include "exec/run.h"
#include "job/hardware.h"
#include "job/sensitivity_scale.h"
#include "strategy/strategy.h"

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

const char *ls_ablation_key (LsAblation ablation);   /* "contention" */
const char *ls_ablation_label (LsAblation ablation); /* for people   */

/* What a job is run with when the mechanism is off. */
typedef struct {
  LsHardware hardware;
  LsStrategy strategy;
  LsRunOptions options;
  LsScaled scaled; /* what the hardware then borrows from */
} LsAblated;

/* Borrows from hardware, which must outlive it; copies the rest. */
void ls_ablated_init (LsAblated *a, LsAblation ablation, const LsHardware *hardware,
                      const LsStrategy *strategy, const LsRunOptions *options);
void ls_ablated_clear (LsAblated *a);

#endif
