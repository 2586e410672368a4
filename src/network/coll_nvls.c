/* network/coll_nvls.c — all-reduce in the NVSwitches (NVLink SHARP).
 *
 * Problem. The n GPUs of a whole node reduce S bytes. GPU g is the head of the
 * g-th n-th of the array: it reads that part from all GPUs, the switch adding up
 * on the way (multimem.ld_reduce), and writes the sum to all, the switch copying
 * (multimem.st).
 *
 * Model. Up to the switch a GPU sends S (its data, to all heads) and S/n (its
 * sums); it receives S/n and S. So each trunk carries (1 + 1/n) S, against
 * 2 (n-1)/n S of a ring. C channels, one flow each.
 *
 * Rate. NCCL's tuning model gives the bus bandwidth (in the ring's terms, so
 * that busbw compares) as bw * eff * C * (C-1)/C * 2; the fitted nvls_bus stands
 * for it. A trunk then runs at nvls_bus * (n+1) / (2 (n-1)).
 *
 * The data pass through three groups of warps: one copies them into the multicast
 * buffer, one reduces and multicasts, one copies out. A pipeline of three stages
 * fills three times as long as a ring's, hence 3 * ramp_bytes.
 *
 * Worked example: H100, 1 GiB, nvls_bus 476 GB/s, ramp 0: a trunk carries
 * 1.208e9 bytes at 306 GB/s (of 376): 3.948 ms, busbw 476 GB/s.
 *
 * Deviations. Only on whole nodes: on part of one NCCL's tuner prefers the ring
 * (H200, n = 4: worked example nccl-sel-2), and across nodes NVLSTree is not
 * modelled. HBM traffic per byte of busbw is taken to be the ring's.
 *
 * Reference: Klenk et al., An in-network architecture for accelerating
 * shared-memory multiprocessor collectives, ISCA 2020; NCCL 2.30.7
 * src/graph/tuning.cc, src/device/all_reduce.h. */
#include <math.h>

#include "cluster/route.h"
#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

/* 640 threads, each worth 64 bytes (NCCL: nThreads * threadThreshold). */
#define BYTES_PER_CHANNEL 40960

/* Copy in, reduce and multicast, copy out. */
#define STAGES 3

static bool
applies (const LsCollCall *call)
{
  const LsClusterSpec *s = &call->cluster->spec;
  return call->kind == LS_COLL_ALL_REDUCE && call->nccl->nvls_bus > 0 && s->nvswitch_planes > 0
         && call->n_hosts == 1 && call->n == s->gpus_per_node && call->n > 2;
}

static void
add_loads (const LsCollCall *call, uint32_t n_channels, LsPhase *phase)
{
  uint64_t flows = n_channels * LS_COEF_ONE;
  double wire_per_trunk_byte = 2.0 * (call->n - 1) / (call->n + 1);
  uint64_t hbm
      = (uint64_t) llround ((double) flows * call->nccl->hbm_per_wire_all_reduce * wire_per_trunk_byte);
  LsLoadList loads = ls_load_list_new ();
  /* A ring of single hops loads each trunk of each member once. */
  for (uint32_t i = 0; i < call->n; i++) {
    ls_load_list_add_route (&loads, call->cluster, call->gpus[i], call->gpus[(i + 1) % call->n], flows);
    ls_load_list_add (&loads, ls_cluster_hbm_resource (call->cluster, call->gpus[i]), hbm);
  }
  ls_load_list_finish (&loads, call->arena, phase);
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  const LsNccl *nccl = call->nccl;
  double n = call->n;
  uint32_t n_used = ls_nccl_channels (nccl->channels_nvls, call->bytes, BYTES_PER_CHANNEL);
  double wire = ls_coll_wire_factor (call->kind, call->n) * (double) call->bytes;
  double trunk_rate = nccl->nvls_bus * (n + 1) / (2 * (n - 1));

  LsPhase *phase = ls_arena_new_array (call->arena, LsPhase, 1);
  phase->latency = nccl->base_nvls;
  phase->demand_bytes = (1 + 1 / n) * (double) call->bytes / n_used;
  phase->rate_cap = trunk_rate / n_used * ls_nccl_ramp (nccl, STAGES, wire);
  if (call->bytes > 0)
    add_loads (call, n_used, phase);
  ret_plan->sm_share = fmin (1, n_used * nccl->sm_share_per_channel);
  ret_plan->n_phases = 1;
  ret_plan->phases = phase;
}

const LsCollAlgorithm ls_coll_nvls = { .name = "nvls", .applies = applies, .plan = plan };
