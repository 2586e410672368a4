/* network/nccl/tuning_graph.c — which channels NCCL finds.
 *
 * Problem. NCCL's search lays as many channels through a node as its NVLinks and NICs
 * carry, at one of a list of rates.
 *
 * Model. For GPUs that all reach each other through NVSwitches, with V of NVLink each (as
 * NCCL counts it: links times a rate by compute capability) the search takes the rate b
 * that makes floor (V / b) b largest, the fastest of those that tie. Across nodes one
 * channel goes through each NIC at the fastest rate that both NIC and NVLinks carry.
 * Channels of 25 GB/s and more are then doubled at half the rate, on Hopper and later
 * only below 5 channels or from 50 GB/s on. NVLS: a channel for each GPU, up to
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

/* Rates of a channel that the graph search tries, fastest first; 0 ends. */
#define N_SPEEDS 20
static const double intra_speeds[LS_N_NCCL_GENERATIONS][N_SPEEDS] = {
  [LS_NCCL_VOLTA] = { 40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3 },
  [LS_NCCL_AMPERE] = { 40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3 },
  [LS_NCCL_HOPPER] = { 60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3 },
  [LS_NCCL_BLACKWELL] = { 90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18 },
};
/* What was read of the lists of Hopper and Blackwell ends at 3 and 30; below that, where
 * only slow NICs are, they continue here as that of older GPUs. */
static const double inter_speeds[LS_N_NCCL_GENERATIONS][N_SPEEDS] = {
  [LS_NCCL_VOLTA] = { 48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12 },
  [LS_NCCL_AMPERE] = { 48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12 },
  [LS_NCCL_HOPPER] = { 48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12 },
  [LS_NCCL_BLACKWELL] = { 96, 86, 80, 48, 45.1, 42, 40, 30, 24, 20, 18, 15, 12, 10, 6, 3, 2.4, 1.2, 0.24, 0.12 },
};

static double
speed_below (const double speeds[N_SPEEDS], double limit)
{
  for (uint32_t i = 0; i < N_SPEEDS && speeds[i] > 0; i++)
    if (speeds[i] <= limit)
      return speeds[i];
  return limit;
}

/* Of the speeds that fit, the fastest of those with the largest product. */
static LsTuneGraph
best_inside (const double speeds[N_SPEEDS], double nvlink)
{
  LsTuneGraph best = { .channels = 1, .intra = nvlink };
  double best_sum = 0;
  for (uint32_t i = 0; i < N_SPEEDS && speeds[i] > 0; i++) {
    double channels = fmin (floor (nvlink / speeds[i]), MAX_CHANNELS);
    if (channels * speeds[i] > best_sum) {
      best_sum = channels * speeds[i];
      best = (LsTuneGraph) { .channels = (uint32_t) channels, .intra = speeds[i] };
    }
  }
  return best;
}

/* Fast channels are doubled at half the rate. */
static LsTuneGraph
duplicated (LsTuneGraph g, LsNcclGeneration generation)
{
  bool stays = g.intra < 25 || (generation > LS_NCCL_AMPERE && g.intra < 50 && g.channels > 4);
  return stays ? g : (LsTuneGraph) { 2 * g.channels, g.intra / 2, g.inter / 2 };
}

static LsTuneGraph
in_bytes (LsTuneGraph g)
{
  return (LsTuneGraph) { g.channels, g.intra * GB, g.inter * GB };
}

LsTuneGraph
ls_tune_ring_graph (LsNcclGeneration generation, double nvlink, uint32_t nics, double nic)
{
  if (nics == 0) {
    LsTuneGraph g = best_inside (intra_speeds[generation], nvlink / GB);
    g.inter = g.intra;
    return in_bytes (duplicated (g, generation));
  }
  /* A ring for each NIC, at one speed inside and across. */
  double speed = speed_below (inter_speeds[generation], fmin (nic, nvlink / nics) / GB);
  return in_bytes (duplicated ((LsTuneGraph) { nics, speed, speed }, generation));
}

LsTuneGraph
ls_tune_nvls_graph (LsNcclGeneration generation, double nvlink, uint32_t n_gpus, uint32_t nics, double nic)
{
  /* Each head has a channel, in which every GPU takes part. */
  uint32_t heads = MIN (n_gpus, LS_TUNE_MAX_HEADS);
  double intra = speed_below (intra_speeds[generation], nvlink / heads / GB);
  double inter = nics == 0 ? intra : speed_below (inter_speeds[generation], nic * nics / n_gpus / GB);
  return in_bytes ((LsTuneGraph) { heads, intra, inter });
}
