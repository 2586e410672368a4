/* network/coll_dispatch.c — tokens to their experts and back, by kernels that know of tokens.
 *
 * Problem. A token goes to k experts, and an all-to-all sends it k times. Several of its experts may lie on
 * one GPU, and several of these GPUs on one host.
 *
 * Model. With n members on H hosts, c of them on each, and T tokens a member of s bytes, a token reaches r
 * members and h hosts in the mean (base/draw.h). It is sent once to each other host, to the GPU of its own
 * place there, and from that over NVLink to each member that has an expert of it: dispatch. Combine is the
 * way back: sums of a host are made there. For a member
 *
 *     across hosts     T s h (H - 1) / H       through its NICs
 *     inside a host    T s r (c - 1) / c       over NVLink
 *
 *     time = base + max (T (token + r (row + s / rate)) / SMs    what the kernel's blocks can do
 *                        T s r / (share of NVLink)               measured with its own rows counted
 *                        T s h (H - 1) / H / (share of a NIC))
 *
 * HybridEP sends with a token the scores of all experts of the host that it goes to, in fp32, and gathers
 * gradients of as many on the way back of the backward: s is then larger by 4 E c / n bytes for E experts.
 *
 * With other than even load the busiest member's. Both ways are under way at once, so all is one phase.
 *
 * Worked example. 4,096 tokens of 7,168 fp8 numbers with a scale for each 128 (7,392 bytes), 8 of 256 experts
 * on the 8 H200 of a node, 24 SMs: r = 5.29, 160 MB; blocks need 4096 (0.39 us + 5.29 * 7392 / 22 GB/s) / 24
 * = 370 us, NVLink 160 MB / (0.76 * 450 GB/s) = 469 us; with the base 503 us. Measured 502.
 *
 * Deviations. A token's hosts and members are drawn evenly; that blocks also feed the NICs is in no figure,
 * as the NICs are slower. What the host waits for before (the counts) is an op of its own.
 *
 * Reference. deepseek-ai/DeepEP, csrc/kernels/{intranode,internode}.cu, docs/legacy.md and README.md (2025);
 * the figures are those of topologies/calib/nccl-*.json, key dispatch. NVIDIA's HybridEP (deepseek-ai/DeepEP,
 * branch hybrid-ep, Hybrid-EP_Implementation.md) sends tokens the same ways, as TMA copies by fewer SMs; key
 * hybrid_dispatch. Its rows, too, are counted with a member's own; rows of 4 KB on an H100:
 * NVIDIA-NeMo/Automodel, docs/deepep_vs_hybridep_benchmark.md (July 2026). */
#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

#define FP32_BYTES 4
#define BLOCKS     65536 /* of a token's bytes times tokens: what messages are cut into */

typedef struct {
  const LsCollCall *call;
  const LsDispatchSide *side;
  uint32_t k;            /* members of a host */
  double copy;           /* T s */
  double ranks, hosts;   /* r, h */
  double inside, across; /* copies that a member sends: to others of its host, to other hosts */
} Spread;

static const LsDispatchFigures *
figures_of (const LsCollCall *call)
{
  return call->asked.spread->is_hybrid ? &call->nccl->hybrid_dispatch : &call->nccl->dispatch;
}

static bool
applies (const LsCollCall *call)
{
  return call->asked.spread && call->asked.spread->draw.n_drawn > 0 && call->seats.per_host > 0
      && figures_of (call)->of_nvlink > 0 && call->asked.spread->draw.n_items % call->n == 0;
}

/* T rows of a score for each expert of a host (hybrid_ep_backend.cuh, deepseek-ai/DeepEP@94a9f8f6, branch
 * hybrid-ep: FORWARD_DISPATCH, BACKWARD_COMBINE). DeepEP sends those of a token's own experts, a few. */
static double
scores_bytes (const LsCollCall *call, uint32_t members_of_host)
{
  const LsSpread *s = call->asked.spread;
  double experts = (double) s->draw.n_items / call->n * members_of_host;
  return s->is_hybrid && call->asked.carries_scores ? (double) s->n_tokens * experts * FP32_BYTES : 0;
}

static Spread
spread_of (const LsCollCall *call)
{
  const LsDispatchFigures *f = figures_of (call);
  Spread x = { .call = call,
               .side = call->algorithm == &ls_coll_combine ? &f->combine : &f->dispatch,
               .k = call->seats.per_host };
  const LsDraw *draw = &call->asked.spread->draw;
  x.copy = (double) call->bytes / draw->n_drawn + scores_bytes (call, x.k);
  x.ranks = ls_draw_parts (draw, call->n);
  x.hosts = ls_draw_parts (draw, call->seats.n_hosts);
  x.inside = x.ranks * (x.k - 1) / x.k;
  x.across = x.hosts * (call->seats.n_hosts - 1) / call->seats.n_hosts;
  return x;
}

static double
blocks_seconds (const Spread *x)
{
  double token = ls_time_to_s (x->side->token) + ls_time_to_s (x->side->row) * x->ranks;
  return (token * (double) x->call->asked.spread->n_tokens + x->copy * x->ranks / x->side->per_sm)
      / x->call->asked.spread->n_sms;
}

static double
inside_seconds (const Spread *x)
{
  const LsDispatchFigures *f = figures_of (x->call);
  double nvlink = ls_coll_links (x->call).nvlink * f->of_nvlink;
  return x->k > 1 && nvlink > 0 ? x->copy * x->ranks / nvlink : 0;
}

static double
across_seconds (const Spread *x)
{
  double nics = ls_coll_links (x->call).nic * x->call->seats.min_nics / x->k; /* of a member */
  return x->across > 0 ? x->copy * x->across / (nics * figures_of (x->call)->of_nic) : 0;
}

static LsTime
base_of (const LsCollCall *call)
{
  return call->seats.n_hosts > 1 ? figures_of (call)->base_inter : figures_of (call)->base_intra;
}

/* --- message by message: across hosts, then inside ------------------------------------------------ */

static bool
is_across (const LsScript *s, uint32_t round)
{
  const Spread *x = s->data;
  return x->call->seats.n_hosts > 1 && round == 0;
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const Spread *x = s->data;
  bool goes_across = is_across (s, round);
  uint32_t seat = x->call->seats.seat[place], h = seat / x->k, l = seat % x->k;
  uint32_t n = goes_across ? x->call->seats.n_hosts : x->k;
  double copies = goes_across ? x->across : x->inside;
  for (uint32_t i = 1; i < n; i++) {
    uint32_t to = goes_across ? (h + i) % n * x->k + l : h * x->k + (l + i) % n;
    ret[i - 1]
        = (LsSend) { .to = x->call->seats.member[to], .n = (uint32_t) lround (BLOCKS * copies / (n - 1)) };
  }
  return n - 1;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  const Spread *x = s->data;
  return (is_across (s, round) ? x->call->seats.n_hosts : x->k) - 1;
}

static double
rate_cap (const LsScript *s, uint32_t from, uint32_t to, uint32_t n)
{
  const Spread *x = s->data;
  bool goes_across = ls_coll_is_across (x->call, from, to);
  double seconds = goes_across ? across_seconds (x) : fmax (inside_seconds (x), blocks_seconds (x));
  return x->copy * (goes_across ? x->across : x->inside) / seconds
      / ((goes_across ? x->call->seats.n_hosts : x->k) - 1);
}

static void
script (const LsCollCall *call, LsScript *s)
{
  Spread *x = ls_arena_new_array (call->arena, Spread, 1);
  *x = spread_of (call);
  ls_script_cut (call, s, call->n * call->n);
  ls_script_like_p2p (call, s);
  s->block_bytes = x->copy / BLOCKS;
  s->data = x;
  s->n_rounds = (call->seats.n_hosts > 1) + (x->k > 1);
  s->max_sends = MAX (call->seats.n_hosts, x->k);
  s->sends = sends;
  s->n_receives = n_receives;
  s->rate_cap = rate_cap;
  s->flows = LS_COEF_ONE;
  s->base = base_of (call);
  s->hop_intra = s->hop_inter = 0;
}

/* --- as one phase ------------------------------------------------------------------------------- */

static void
add_routes (const Spread *x, LsLoadList *loads)
{
  const LsCollCall *call = x->call;
  double across = x->across / x->ranks / MAX (1, call->seats.n_hosts - 1),
         inside = x->inside / x->ranks / MAX (1, x->k - 1);
  for (uint32_t from = 0; from < call->n; from++) {
    uint32_t h = from / x->k, l = from % x->k;
    for (uint32_t i = 1; i < call->seats.n_hosts; i++)
      ls_load_list_add_route (loads, call->seats.sorted[from],
                              call->seats.sorted[(h + i) % call->seats.n_hosts * x->k + l],
                              (uint64_t) llround (across * (double) LS_COEF_ONE));
    for (uint32_t i = 1; i < x->k; i++)
      ls_load_list_add_route (loads, call->seats.sorted[from], call->seats.sorted[h * x->k + (l + i) % x->k],
                              (uint64_t) llround (inside * (double) LS_COEF_ONE));
    ls_load_list_add (loads, ls_cluster_hbm_resource (call->cluster, call->seats.sorted[from]),
                      (uint64_t) llround (call->nccl->hbm_per_wire_p2p * (double) LS_COEF_ONE));
  }
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  Spread x = spread_of (call);
  LsPhase *phase = ls_arena_new_array (call->arena, LsPhase, 1);
  double seconds = fmax (blocks_seconds (&x), fmax (inside_seconds (&x), across_seconds (&x)))
      * ls_coll_busiest_over_mean (call);
  *phase = (LsPhase) { .latency = base_of (call), .demand_bytes = x.copy * x.ranks };
  ret_plan->n_phases = 1;
  ret_plan->phases = phase;
  ret_plan->array_bytes = phase->demand_bytes;
  for (uint32_t h = 0; h < call->seats.n_hosts; h++)
    ret_plan->sm_share
        = fmax (ret_plan->sm_share,
                fmin (1, (double) call->asked.spread->n_sms / ls_coll_host_spec (call, h)->gpu.n_sm));
  if (phase->demand_bytes <= 0)
    return;
  phase->rate_cap = phase->demand_bytes / seconds;
  LsLoadList loads = ls_load_list_new (call->cluster);
  add_routes (&x, &loads);
  ls_load_list_finish (&loads, call->arena, phase);
}

#define WANTS                                                                                                \
  "tokens that go to experts (dispatcher deepep or hybridep), as many ranks on each node, a GPU whose "      \
  "figures are known"

const LsCollAlgorithm ls_coll_dispatch = { .name = "dispatch",
                                           .kinds = LS_COLL_BIT (LS_COLL_ALL_TO_ALL),
                                           .applies = applies,
                                           .wants = WANTS,
                                           .plan = plan,
                                           .script = script };
const LsCollAlgorithm ls_coll_combine = { .name = "combine",
                                          .kinds = LS_COLL_BIT (LS_COLL_ALL_TO_ALL),
                                          .applies = applies,
                                          .wants = WANTS,
                                          .plan = plan,
                                          .script = script };
