/* job/price.h — what tokens cost, in money and in energy.
 *
 *     $ per token   = GPUs * price of a GPU hour / 3600 s * step time / tokens of a step
 *     kWh per token = GPUs * watts of a GPU * PUE / 3.6e6 J * step time / tokens of a step
 *
 * Defaults are of the file of the accelerator (topologies/gpu), with their source; where there is none,
 * NAN. Worked example: 1,024 A100 at $2 and 400 W, PUE 1.1, 150,000 tokens/s: 1e12 tokens
 * take 6.67e6 s, 1.90e6 GPU hours, $3.79e6, 834 MWh.
 *
 * Deviations. All GPUs draw their board limit all the time, also when they wait; hosts, switches
 * and disks draw nothing (a DGX H100 may draw 10.2 kW, 5.6 of them its GPUs): give the watts of a
 * GPU with its share of these where they matter. */
#ifndef LS_JOB_PRICE_H
#define LS_JOB_PRICE_H

#include <glib.h>
#include <math.h>

#include "cluster/gpu.h"

#define LS_PRICE_PUE 1.1 /* of hyperscale data centres: 1.1 to 1.2 */

typedef struct {
  double usd_per_gpu_hour; /* NAN: not known */
  double gpu_watts;        /* the same       */
  double pue;
} LsPrice;

/* Of that accelerator, where `given` does not say otherwise (NAN: it does not). */
#define LS_PRICE_NOT_GIVEN ((LsPrice) { NAN, NAN, NAN })
LsPrice ls_price_of (const LsPrice *given, const LsGpu *gpu);

/* Of one token; at one token a second, of a second. */
double ls_price_usd (const LsPrice *p, guint n_gpus, double tokens_per_s);
double ls_price_kwh (const LsPrice *p, guint n_gpus, double tokens_per_s);

#endif
