/* job/price.h — what tokens cost, in money and in energy.
 *
 *     $ per token   = GPUs * price of a GPU hour / 3600 s * step time / tokens of a step
 *     kWh per token = GPUs * watts of a GPU * PUE / 3.6e6 J * step time / tokens of a step
 *
 * Defaults are of the file of the accelerator (topologies/gpu), with their source; where there is none,
 * NAN. Worked example: 1,024 A100 at $2 and 400 W, PUE 1.1, 150,000 tokens/s: 1e12 tokens
 * take 6.67e6 s, 1.90e6 GPU hours, $3.79e6, 834 MWh.
 *
 * Watts follow what a GPU does, where that is published (LsGpuPower): a step has shares of computing, of
 * communication that nothing hides, and of waiting. With one number of watts, and where only the board limit
 * is known, that counts all the time.
 *
 * Deviations. All kernels draw the same, and what is hidden behind them nothing; a rank that waits for its
 * peers draws as if it were idle. Hosts, switches and disks draw nothing (a DGX H100 may draw 10.2 kW, 5.6 of
 * them its GPUs): give the watts of a GPU with its share of these where they matter. */
#ifndef LS_JOB_PRICE_H
#define LS_JOB_PRICE_H

#include <glib.h>
#include <math.h>

#include "analysis/report.h"
#include "cluster/cluster.h"

#define LS_PRICE_PUE 1.1 /* of hyperscale data centres: 1.1 to 1.2 */

typedef struct {
  double usd_per_gpu_hour; /* NAN: not known */
  double gpu_watts;        /* the same: of all it does, or at most */
  double pue;
  LsGpuPower power; /* by what it does; all gpu_watts where that alone is known, or was given */
} LsPrice;

/* Of that accelerator, where `given` does not say otherwise (NAN: it does not). */
#define LS_PRICE_NOT_GIVEN ((LsPrice) { NAN, NAN, NAN, { NAN, NAN, NAN, NAN } })
LsPrice ls_price_of (const LsPrice *given, const LsGpu *gpu);
/* Of those of a cluster: the mean over its nodes, unknown where that of one kind is. */
LsPrice ls_price_of_cluster (const LsPrice *given, const LsClusterSpec *spec);

/* Whether what a GPU does makes a difference. */
bool ls_price_has_activities (const LsPrice *p);

/* Seconds of a step that a rank computes, communicates behind nothing, waits. */
typedef struct {
  double computing_s, communicating_s, idle_s;
} LsActivities;
LsActivities ls_activities_of (const double breakdown_s[LS_N_PARTS]);
/* The mean over such a step; without a breakdown (all 0) gpu_watts. */
double ls_price_step_watts (const LsPrice *p, const LsActivities *step);

/* Adds what an hour of a GPU costs to what a question rests on (job/assumptions.h), or that it is not known.
 * words, why, instead: as of ls_assumptions_add(). */
void ls_price_assume_hour (const LsPrice *p, const char *words, const char *why, const char *instead,
                           GArray **assumptions);
/* The same with watts and PUE, of a command that has options for all three. is_told: its text has the numbers
 * elsewhere, the sentence then only those that are not known. */
void ls_price_assume (const LsPrice *p, const LsPrice *given, bool is_told, GArray **assumptions);

/* Of one token; at one token a second, of a second. watts: of a GPU. */
double ls_price_usd (const LsPrice *p, guint n_gpus, double tokens_per_s);
double ls_price_kwh (const LsPrice *p, double watts, guint n_gpus, double tokens_per_s);

#endif
