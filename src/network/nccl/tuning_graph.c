/* network/nccl/tuning_graph.c — which channels NCCL finds.
 *
 * Problem. NCCL's search lays as many channels through a node as its NVLinks and NICs
 * carry, at one of a list of rates.
 *
 * Model. For GPUs that all reach each other through NVSwitches, with V of NVLink each (as
 * NCCL counts it: links times a rate by compute capability) the search takes the rate b
 * that makes floor (V / b) b largest, the fastest of those that tie. Across nodes one
 * channel goes through each NIC at the fastest rate that both NIC and NVLinks carry.
 * Channels of 25 GB/s and more are then doubled at half the rate, more than 4 of them
 * from a rate on that the generation has (50 GB/s since Hopper). The lists of rates are
 * in topologies/nccl. NVLS: a channel for each GPU, up to
 * 32, which all others take part in.
 *
 * Worked example. H100: 18 links of 20.6 are 370.8 GB/s; 6 channels of 60 (360) beat 7 of
 * 50 (350); doubled, 12 of 30. NVLS on 8 GPUs: 370.8 / 8, so 8 of 40; on 4 GPUs 4 of 60.
 * On 8 NICs of 50 GB/s: 370.8 / 8 is 46.4, so 8 of 45. A100: 6 of 40 (240) doubled are
 * 12 of 20. B200: 8 of 90 (720) doubled are 16 of 45.
 *
 * Deviations. PCIe, CPUs and NVLink meshes are not searched; the pairing of NICs on
 * different rails is assumed to succeed.
 *
 * Reference: NCCL 2.30.7 (commit 5067397) src/graph/search.cc, src/graph/topo.h. */
#include "network/nccl/tuning.h"

#include <math.h>

#define GB 1e9

/* Connecting doubles them to at most 64. */
#define MAX_CHANNELS 32

/* From this rate on channels are doubled (dupChannels). */
#define DOUBLE_FROM 25e9

/* Of the rates, which end with 0, the fastest that is not above the limit, in GB/s. */
static double
rate_below (const double *rates, double limit)
{
  for (; *rates > 0; rates++)
    if (*rates / GB <= limit)
      return *rates / GB;
  return limit;
}

/* Of the rates that fit, the fastest of those with the largest product. */
static LsTuneGraph
best_inside (const double *rates, double nvlink)
{
  LsTuneGraph best = { .channels = 1, .intra = nvlink };
  double best_sum = 0;
  for (; *rates > 0; rates++) {
    double rate = *rates / GB, channels = fmin (floor (nvlink / rate), MAX_CHANNELS);
    if (channels * rate > best_sum) {
      best_sum = channels * rate;
      best = (LsTuneGraph) { .channels = (uint32_t) channels, .intra = rate };
    }
  }
  return best;
}

/* Fast channels are doubled at half the rate. */
static LsTuneGraph
duplicated (LsTuneGraph g, const LsNcclTables *tables)
{
  bool stays = g.intra * GB < DOUBLE_FROM || (g.channels > 4 && g.intra * GB < tables->double_many_from);
  return stays ? g : (LsTuneGraph) { 2 * g.channels, g.intra / 2, g.inter / 2 };
}

static LsTuneGraph
in_bytes (LsTuneGraph g)
{
  return (LsTuneGraph) { g.channels, g.intra * GB, g.inter * GB };
}

LsTuneGraph
ls_tune_ring_graph (const LsNcclTables *tables, double nvlink, uint32_t nics, double nic)
{
  if (nics == 0) {
    LsTuneGraph g = best_inside (tables->rates_intra, nvlink / GB);
    g.inter = g.intra;
    return in_bytes (duplicated (g, tables));
  }
  /* A ring for each NIC, at one rate inside and across. */
  double rate = rate_below (tables->rates_inter, fmin (nic, nvlink / nics) / GB);
  return in_bytes (duplicated ((LsTuneGraph) { nics, rate, rate }, tables));
}

LsTuneGraph
ls_tune_nvls_graph (const LsNcclTables *tables, double nvlink, uint32_t n_gpus, uint32_t nics, double nic)
{
  /* Each head has a channel, in which every GPU takes part. */
  uint32_t heads = MIN (n_gpus, LS_TUNE_MAX_HEADS);
  double intra = rate_below (tables->rates_intra, nvlink / heads / GB);
  double inter = nics == 0 ? intra : rate_below (tables->rates_inter, nic * nics / n_gpus / GB);
  return in_bytes ((LsTuneGraph) { heads, intra, inter });
}
