/* network/rounds.c — phases made from the messages of a script.
 *
 * Problem. Rounds of messages between many members, as one coupled load: a demand D for
 * each flow, and how many flows cross each resource.
 *
 * Model. The busiest member sends or receives B bytes, in n_flows flows of D = B /
 * n_flows. A trunk over which the messages put b bytes is crossed by b / D flows. So the
 * loads carry exactly the bytes of the script, whoever of the members is idle.
 *
 * Rate. No member moves its bytes to members of its host, of others, or to switches
 * faster than the caps of the script allow. With T the longest of these times over all
 * members, a flow gets at most D / T.
 *
 * Worked example: 4 members of one host send 1/4 of 64 MiB to each other in 3 rounds, 24
 * flows, 250 GB/s: B = 48 MiB, D = 2 MiB; a member's trunk is crossed by 24 flows;
 * T = 48 MiB / 250 GB/s = 201 us.
 *
 * Deviation. Members that have less to move are done with it no earlier: all flows of a
 * phase end together. Where rounds are phases, the slowest pair of a round makes all others
 * wait; without bytes there is one phase, which takes the longest way through the rounds. */
#include <math.h>
#include <string.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"
#include "network/sums.h"

static uint64_t
sum_of (const uint64_t *blocks)
{
  return blocks[LS_WAY_INTRA] + blocks[LS_WAY_INTER] + blocks[LS_WAY_SWITCH];
}

static uint64_t
busiest (const LsScript *s, const LsSums *sums)
{
  uint64_t max = 0;
  for (uint32_t i = 0; i < s->n; i++)
    max = MAX (max, MAX (sum_of (sums->traffic[i].out), sum_of (sums->traffic[i].in)));
  return max;
}

/* Of what all members move, with n_flows flows each. */
static double
longest_s (const LsScript *s, const LsSums *sums, uint32_t n_flows)
{
  const double rate[LS_N_WAYS] = { s->rate_intra, s->rate_inter, s->rate_switch };
  double longest = 0;
  for (uint32_t i = 0; i < s->n; i++)
    for (int way = 0; way < LS_N_WAYS; way++) {
      uint64_t blocks = MAX (sums->traffic[i].out[way], sums->traffic[i].in[way]);
      if (blocks > 0)
        longest = fmax (longest, (double) blocks * s->block_bytes / (rate[way] * n_flows));
    }
  return longest;
}

static void
add_hbm (const LsScript *s, const LsSums *sums, LsLoadList *loads)
{
  for (uint32_t i = 0; i < s->n; i++) {
    const LsTraffic *t = &sums->traffic[i];
    double blocks = (double) sum_of (t->out) * s->hbm_from + (double) sum_of (t->in) * s->hbm_to;
    ls_load_list_add (loads, ls_cluster_hbm_resource (s->cluster, s->gpus[i]),
                      (uint64_t) llround (blocks * (double) LS_HOP_WHOLE));
  }
}

static LsTime
longest_hop (const LsScript *s, const LsSums *sums)
{
  const LsTime hop[LS_N_WAYS] = { s->hop_intra, s->hop_inter, s->hop_switch };
  LsTime longest = 0;
  for (int way = 0; way < LS_N_WAYS; way++)
    longest = sums->has_way[way] ? MAX (longest, hop[way]) : longest;
  return longest;
}

static void
phase_of_sums (const LsCollCall *call, const LsScript *s, const LsSums *sums, const LsRounds *rounds,
               uint32_t n_flows, LsPhase *ret_phase)
{
  uint64_t max = busiest (s, sums);
  double repeats = rounds->is_same ? rounds->n_rounds : 1;
  double min_s = rounds->min_s > 0 ? rounds->min_s : longest_s (s, sums, n_flows) * repeats;
  ret_phase->demand_bytes = (double) max * s->block_bytes * repeats / n_flows;
  ret_phase->rate_cap = ret_phase->demand_bytes / min_s;
  LsLoadList loads = ls_load_list_new (s->cluster);
  for (uint32_t i = 0; i < sums->n_loads; i++)
    ls_load_list_add (&loads, sums->loads[i].resource, sums->loads[i].coef);
  add_hbm (s, sums, &loads);
  ls_load_list_scale (&loads, (double) n_flows / (double) max * ((double) LS_COEF_ONE / LS_HOP_WHOLE));
  ls_load_list_finish (&loads, call->arena, ret_phase);
}

void
ls_phase_of_rounds (const LsCollCall *call, const LsScript *s, const LsRounds *rounds, uint32_t n_flows,
                    LsPhase *ret_phase)
{
  *ret_phase = (LsPhase) { .latency = rounds->latency };
  if (s->block_bytes <= 0)
    return;
  g_autoptr (LsArena) scratch = ls_arena_new ();
  const LsSums *sums
      = ls_sums_of_rounds (call, s, rounds->first, rounds->is_same ? 1 : rounds->n_rounds, scratch);
  phase_of_sums (call, s, sums, rounds, n_flows, ret_phase);
}

/* Without bytes: from the first round to the end of the last, each place waiting for its own
 * messages. */
static LsTime
longest_way (const LsScript *s)
{
  uint32_t n_places = s->n + s->n_switches;
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  g_autofree LsTime *at = g_new0 (LsTime, n_places), *next = g_new (LsTime, n_places);
  LsTime longest = 0;
  for (uint32_t r = 0; r < s->n_rounds; r++) {
    memcpy (next, at, n_places * sizeof *at);
    for (uint32_t place = 0; place < n_places; place++) {
      uint32_t n = s->sends (s, place, r, sends);
      for (uint32_t i = 0; i < n; i++)
        next[sends[i].to] = MAX (next[sends[i].to], at[place] + ls_script_latency (s, place, sends[i].to));
    }
    memcpy (at, next, n_places * sizeof *at);
  }
  for (uint32_t place = 0; place < n_places; place++)
    longest = MAX (longest, at[place]);
  return longest;
}

void
ls_plan_of_rounds (const LsCollCall *call, const LsScript *s, LsCollPlan *ret_plan)
{
  uint32_t n_flows = ls_coll_channels (call);
  bool has_bytes = s->block_bytes > 0;
  ret_plan->n_phases = has_bytes ? s->n_rounds : 1;
  ret_plan->phases = ls_arena_new_array (call->arena, LsPhase, ret_plan->n_phases);
  ret_plan->sm_share = fmin (1, n_flows * call->nccl->sm_share_per_channel);
  if (!has_bytes)
    ret_plan->phases[0].latency = longest_way (s);
  for (uint32_t r = 0; r < s->n_rounds && has_bytes; r++) {
    g_autoptr (LsArena) scratch = ls_arena_new ();
    LsRounds round = { .first = r, .n_rounds = 1 };
    const LsSums *sums = ls_sums_of_rounds (call, s, r, 1, scratch);
    phase_of_sums (call, s, sums, &round, n_flows, &ret_plan->phases[r]);
    ret_plan->phases[r].latency = longest_hop (s, sums);
  }
  ret_plan->phases[0].latency += s->base;
}

LsScript
ls_script_of (const LsCollCall *call)
{
  return (LsScript) {
    .kind = call->kind, .n = call->n, .root = call->root, .gpus = call->gpus, .cluster = call->cluster
  };
}

void
ls_script_cut (const LsCollCall *call, LsScript *s, uint32_t n_blocks)
{
  s->n_blocks = n_blocks;
  s->block_bytes = (double) call->bytes / (call->kind == LS_COLL_ALL_TO_ALL ? call->n : n_blocks);
}

static LsTime
base_of (const LsCollCall *call)
{
  if (call->kind == LS_COLL_ALL_TO_ALL || call->kind == LS_COLL_GATHER || call->kind == LS_COLL_SCATTER)
    return call->n_hosts == 1 ? call->nccl->base_p2p_intra : call->nccl->base_p2p_inter;
  return ls_nccl_base (call->nccl, call->kind);
}

void
ls_script_like_p2p (const LsCollCall *call, LsScript *s)
{
  const LsNccl *nccl = call->nccl;
  uint32_t n_channels = ls_coll_channels (call);
  s->base = base_of (call);
  s->hop_intra = nccl->hop_intra;
  s->hop_inter = nccl->hop_inter;
  s->rate_intra = nccl->p2p_intra / n_channels;
  s->rate_inter = nccl->p2p_inter / n_channels;
  s->flows = n_channels * LS_COEF_ONE;
  s->hbm_from = s->hbm_to = ls_nccl_hbm_per_wire (nccl, call->kind) / 2;
}

void
ls_script_star (const LsCollCall *call, LsScript *s, uint32_t k)
{
  uint32_t n = call->n - 1;
  s->flows = MAX (1, s->flows / n);
  s->rate_intra *= (double) n / MAX (1, k - 1);
  s->rate_inter *= (double) n / MAX (1, call->n - k);
}

void
ls_script_pipeline (LsScript *s, LsTime latency)
{
  s->hop_intra = s->hop_inter = s->hop_switch = latency / s->n_rounds;
}
