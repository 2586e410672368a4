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
 * (H200, n = 4: worked example nccl-sel-2); across nodes see coll_nvls_tree.c. HBM
 * traffic per byte of busbw is taken to be the ring's.
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

static bool
applies (const LsCollCall *call)
{
  return call->nccl->nvls_bus > 0 && ls_coll_has_nvswitch (call) && call->n_hosts == 1
      && ls_coll_whole_hosts (call) > 2;
}

static void
add_loads (const LsCollCall *call, uint32_t n_channels, LsPhase *phase)
{
  uint64_t flows = n_channels * LS_COEF_ONE;
  double wire_per_trunk_byte = 2.0 * (call->n - 1) / (call->n + 1);
  uint64_t hbm
      = (uint64_t) llround ((double) flows * call->nccl->hbm_per_wire_all_reduce * wire_per_trunk_byte);
  LsLoadList loads = ls_load_list_new (call->cluster);
  /* A ring of single hops loads each trunk of each member once. */
  for (uint32_t i = 0; i < call->n; i++) {
    ls_load_list_add_route (&loads, call->gpus[i], call->gpus[(i + 1) % call->n], flows);
    ls_load_list_add (&loads, ls_cluster_hbm_resource (call->cluster, call->gpus[i]), hbm);
  }
  ls_load_list_finish (&loads, call->arena, phase);
}

static double
rate_of_flow (const LsCollCall *call, uint32_t n_flows)
{
  double n = call->n;
  double s = ls_nccl_seconds (call, LS_TUNE_NVLS);
  return s > 0 ? (1 + 1 / n) * (double) call->bytes / n_flows / s : call->nccl->nvls_bus / n_flows;
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  const LsNccl *nccl = call->nccl;
  double n = call->n;
  uint32_t n_used = ls_nccl_channels (nccl->channels_nvls, call->bytes, BYTES_PER_CHANNEL);

  LsPhase *phase = ls_arena_new_array (call->arena, LsPhase, 1);
  phase->latency = nccl->base_nvls;
  phase->demand_bytes = (1 + 1 / n) * (double) call->bytes / n_used;
  phase->rate_cap = rate_of_flow (call, n_used);
  if (call->bytes > 0)
    add_loads (call, n_used, phase);
  ret_plan->sm_share = fmin (1, n_used * nccl->sm_share_per_channel);
  ret_plan->n_phases = 1;
  ret_plan->phases = phase;
}

/* --- message by message: place n is the switch ----------------------------------
 *
 * A chunk has a block for each head. Round c + 0: all members give theirs of chunk c to
 * the switch, which adds up; c + 1: it answers each head; c + 2: the heads give it their
 * sums; c + 3: it copies them to all. */

#define N_STAGES 4

typedef struct {
  uint32_t n_chunks;
} Nvls;

/* Of stage 0 .. 3 in this round; none if >= n_chunks. */
static uint32_t
chunk_at (const LsScript *s, uint32_t stage, uint32_t round)
{
  return round - stage;
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  uint32_t n = s->n, n_chunks = ((const Nvls *) s->data)->n_chunks, k = 0;
  uint32_t c[N_STAGES];
  for (uint32_t stage = 0; stage < N_STAGES; stage++)
    c[stage] = chunk_at (s, stage, round);
  if (place < n) {
    if (c[0] < n_chunks)
      ret[k++] = (LsSend) { .to = n, .first = c[0] * n, .n = n, .reduces = true };
    if (c[2] < n_chunks)
      ret[k++] = (LsSend) { .to = n, .first = c[2] * n + place, .n = 1 };
    return k;
  }
  for (uint32_t i = 0; i < n && c[1] < n_chunks; i++)
    ret[k++] = (LsSend) { .to = i, .first = c[1] * n + i, .n = 1 };
  for (uint32_t i = 0; i < n && c[3] < n_chunks; i++)
    ret[k++] = (LsSend) { .to = i, .first = c[3] * n, .n = n };
  return k;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  uint32_t n_chunks = ((const Nvls *) s->data)->n_chunks;
  uint32_t a = place < s->n ? 1 : 0;
  uint32_t n = (chunk_at (s, a, round) < n_chunks) + (chunk_at (s, a + 2, round) < n_chunks);
  return place < s->n ? n : n * s->n;
}

static void
route (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel, LsRoute *ret_route)
{
  if (from < s->n)
    ls_route_up (s->cluster, s->gpus[from], ret_route);
  else
    ls_route_down (s->cluster, s->gpus[to], ret_route);
}

/* A chunk's n blocks and another's single one are on the way at once. */
static double
rate_cap (const LsScript *s, uint32_t from, uint32_t to, uint32_t n)
{
  return s->rate_switch * n / (s->n + 1);
}

static void
script (const LsCollCall *call, LsScript *s)
{
  Nvls *x = ls_arena_new_array (call->arena, Nvls, 1);
  const LsNccl *nccl = call->nccl;
  uint32_t n = call->n, n_used = ls_nccl_channels (nccl->channels_nvls, call->bytes, BYTES_PER_CHANNEL);
  x->n_chunks = ls_coll_chunks (call, n_used, N_STAGES, 4 * (uint64_t) n);
  ls_script_cut (call, s, n * x->n_chunks);
  s->data = x;
  s->n_switches = 1;
  s->n_rounds = x->n_chunks + N_STAGES - 1;
  s->max_sends = 2 * n;
  s->sends = sends;
  s->n_receives = n_receives;
  s->route = route;
  s->base = nccl->base_nvls; /* hops included */
  s->rate_switch = rate_of_flow (call, n_used);
  s->rate_cap = rate_cap;
  s->flows = n_used * LS_COEF_ONE;
  s->hbm_from = s->hbm_to = nccl->hbm_per_wire_all_reduce * (n - 1.0) / (n + 1);
}

#define KINDS LS_COLL_BIT (LS_COLL_ALL_REDUCE)

const LsCollAlgorithm ls_coll_nvls
    = { .name = "nvls",
        .kinds = KINDS,
        .automatic = KINDS,
        .applies = applies,
        .wants = "ranks on all of one node, more than 2, and NVSwitches that compute",
        .only_simple = true,
        .plan = plan,
        .script = script };
