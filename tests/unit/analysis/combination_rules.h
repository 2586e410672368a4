/* tests/unit/analysis/combination_rules.h — which rules of a strategy a random job breaks, written down once more
 * and not taken from strategy/. */
#ifndef LS_TESTS_COMBINATION_RULES_H
#define LS_TESTS_COMBINATION_RULES_H

#include <string.h>

#include "model/operators.h"
#include "schedules/sched.h"
#include "strategy/strategy.h"

typedef struct {
  LsModel model;
  LsStrategy s;
  uint32_t n_micro_batches;
} Ask;

typedef struct {
  GPtrArray *pointers; /* of rules that are broken */
} Broken;

static void
rule (Broken *b, bool is_kept, const char *pointer)
{
  if (!is_kept)
    g_ptr_array_add (b->pointers, (gpointer) pointer);
}

static uint32_t
stage_of (const LsStrategy *s, int kind)
{
  if (s->zero_stage != LS_ZERO_AUTO)
    return s->zero_stage;
  return kind == LS_DP_FSDP1 || kind == LS_DP_FSDP2 || kind == LS_DP_XLA_FSDP ? 3 : 0;
}

static void
rules_of_sharding (const Ask *a, Broken *b)
{
  LsStrategy s = a->s;
  uint32_t dp = s.gpus / (s.tp * s.pp * s.cp), copies = dp * s.cp,
           etp = s.experts.etp > 0 ? s.experts.etp : s.tp;
  uint32_t expert_copies = a->model.moe.n_experts > 0 ? s.tp * copies / (s.ep * etp) : 1;
  bool may_offload = s.dp_kind == LS_DP_AUTO || s.dp_kind == LS_DP_DEEPSPEED;
  rule (b, s.memory.offload == LS_OFFLOAD_NONE || may_offload || (copies == 1 && expert_copies <= 1 && false),
        "/offload");
  if (s.memory.offload != LS_OFFLOAD_NONE && may_offload) {
    s.dp_kind = LS_DP_DEEPSPEED;
    if (s.zero_stage == LS_ZERO_AUTO)
      s.zero_stage = s.memory.offload == LS_OFFLOAD_PARAMETERS ? 3 : 2;
    rule (b, s.zero_stage > 0 && (s.memory.offload != LS_OFFLOAD_PARAMETERS || s.zero_stage == 3),
          "/offload");
    rule (b, !s.opt.post_validation, "/post_validation");
  } else if (copies == 1 && expert_copies <= 1)
    return;
  rule (b, s.dp_kind != LS_DP_NONE, "/dp_kind");
  if (s.dp_kind == LS_DP_AUTO)
    s.dp_kind = s.zero_stage != LS_ZERO_AUTO && s.zero_stage >= 2 ? LS_DP_DEEPSPEED : LS_DP_MEGATRON;
  uint32_t stage = stage_of (&s, s.dp_kind);
  static const char *const stages[] = {
    [LS_DP_PS] = "0",     [LS_DP_DDP] = "0",    [LS_DP_MEGATRON] = "01", [LS_DP_DEEPSPEED] = "0123",
    [LS_DP_FSDP1] = "23", [LS_DP_FSDP2] = "23", [LS_DP_XLA_FSDP] = "3",
  };
  rule (b, s.dp_kind == LS_DP_NONE || strchr (stages[s.dp_kind], (int) ('0' + stage)), "/zero");
  uint32_t group = stage == 0 || s.data.zero_group == copies ? 0 : s.data.zero_group;
  rule (b, group == 0 || copies % group == 0, "/zero");
  rule (b, group == 0 || s.ep == 1 || a->model.moe.n_experts == 0, "/zero");
  rule (b, s.dp_kind != LS_DP_DEEPSPEED || stage < 2 || s.pp == 1, "/zero");
  rule (b,
        !s.data.collective_lists
            || (s.dp_kind == LS_DP_DEEPSPEED && stage == 3 && s.memory.offload == LS_OFFLOAD_NONE),
        "/collective_lists");
  rule (b, (s.dp_kind != LS_DP_MEGATRON && s.dp_kind != LS_DP_PS) || s.data.grad_sync != LS_GRAD_SYNC_EACH,
        "/grad_sync");
  int of_stage = stage >= 2 ? LS_GRAD_SYNC_EACH : LS_GRAD_SYNC_LAST;
  rule (b,
        s.dp_kind != LS_DP_DEEPSPEED || s.pp > 1 || s.data.grad_sync == LS_GRAD_SYNC_AUTO
            || s.data.grad_sync == of_stage,
        "/grad_sync");
  rule (b, s.dp_kind != LS_DP_MEGATRON || stage == 0 || s.data.gather_overlap != 1 || s.data.overlap,
        "/gather_overlap");
  uint32_t unit = s.dp_kind == LS_DP_FSDP1 || s.dp_kind == LS_DP_FSDP2 ? s.data.layers_per_unit : 1;
  uint32_t n = s.data.reshard_after_forward;
  bool reshards = s.dp_kind == LS_DP_FSDP2 && n != LS_RESHARD_AUTO;
  rule (b, !reshards || n == 0 || stage != 2, "/reshard_after_forward");
  rule (b, !reshards || n < 2 || (copies % n == 0 && group == 0 && s.ep == 1), "/reshard_after_forward");
  bool is_grouped = s.recompute == LS_RECOMPUTE_FULL && s.memory.recompute_method == LS_RECOMPUTE_UNIFORM
      && s.memory.recompute_layers > 1;
  rule (b,
        !is_grouped || stage != 3 || (s.dp_kind != LS_DP_FSDP1 && s.dp_kind != LS_DP_FSDP2)
            || unit % s.memory.recompute_layers == 0,
        "/recompute_layers");
}

static void
rules_of_experts (const Ask *a, Broken *b)
{
  const LsStrategy *s = &a->s;
  const LsModel *m = &a->model;
  uint32_t dp = s->gpus / (s->tp * s->pp * s->cp), etp = s->experts.etp > 0 ? s->experts.etp : s->tp;
  rule (b, m->moe.n_experts > 0 || s->ep == 1, "/ep");
  rule (b, m->moe.n_experts > 0 || s->experts.capacity <= 0, "/expert_capacity");
  rule (b,
        m->moe.n_experts == 0 || s->experts.capacity > 0 || s->experts.padding != LS_EXPERT_PADDING_CAPACITY,
        "/expert_padding");
  if (m->moe.n_experts == 0)
    return;
  rule (b, s->tp == 1 || s->sp, "/sp");
  rule (b, m->moe.n_experts % s->ep == 0 && s->tp * s->cp * dp % (s->ep * etp) == 0, "/ep");
  rule (b, m->moe.expert_ffn % etp == 0, "/etp");
  rule (b, s->experts.dispatcher != LS_DISPATCHER_DEEPEP || etp == 1, "/dispatcher");
}

static void
rules_of_attention (const Ask *a, Broken *b)
{
  const LsStrategy *s = &a->s;
  const LsModel *m = &a->model;
  int attention = s->use.attention == LS_ATTENTION_AUTO ? (int) m->attention : s->use.attention;
  rule (b, s->cp == 1 || attention == LS_ATTENTION_FLASH, "/cp");
  rule (b, !s->docs.lengths || attention == LS_ATTENTION_FLASH, "/lengths");
  rule (b, s->cp == 1 || s->mp.cp_kind != LS_CP_ULYSSES || m->n_kv_heads / s->tp % s->cp == 0, "/cp");
  rule (b, !s->mp.tp_overlap || s->tp == 1 || s->sp, "/tp_overlap");
  rule (b, !s->memory.partition_activations || s->tp == 1 || (s->recompute == LS_RECOMPUTE_FULL && !s->sp),
        "/partition_activations");
}

/* Of all parameters: nothing to reduce, nothing to cut. */
static bool
has_one_copy (const Ask *a)
{
  const LsStrategy *s = &a->s;
  uint32_t rest = s->gpus / s->pp, per_copy = s->ep * (s->experts.etp > 0 ? s->experts.etp : s->tp);
  bool may_offload = s->dp_kind == LS_DP_AUTO || s->dp_kind == LS_DP_DEEPSPEED;
  bool has_expert_copies = a->model.moe.n_experts > 0 && rest / per_copy > 1;
  return rest == s->tp && !has_expert_copies && !(s->memory.offload != LS_OFFLOAD_NONE && may_offload);
}

static const char *
schedule_of (const LsStrategy *s)
{
  return s->schedule ? s->schedule : s->vpp > 1 ? "interleaved-1f1b" : s->pp > 1 ? "1f1b" : "none";
}

static void
rules_of_overlap (const Ask *a, Broken *b)
{
  const LsStrategy *s = &a->s;
  bool has_experts = a->model.moe.n_experts > 0, has_exchange = has_experts && s->ep > 1;
  const char *name = schedule_of (s);
  bool is_dual = g_str_has_prefix (name, "dualpipe"),
       may_pair = is_dual || g_str_equal (name, "none") || g_str_equal (name, "interleaved-1f1b");
  bool overlaps = s->mp.ep_overlap == 1 ? has_exchange || !has_experts
                                        : s->mp.ep_overlap != 0 && has_exchange && is_dual;
  bool delays = s->mp.delay_wgrad == 1 || (overlaps && is_dual && s->mp.delay_wgrad != 0);
  bool has_shared = a->model.moe.shared_ffn > 0;
  rule (b, !s->experts.shared_overlap || (has_shared && !overlaps && s->zero_stage != 3), "/shared_overlap");
  rule (b, !overlaps || has_experts, "/ep_overlap");
  uint32_t parts = s->recompute == LS_RECOMPUTE_SELECTIVE ? s->memory.recompute_parts : 0;
  bool runs_exchange_again = s->recompute == LS_RECOMPUTE_FULL || parts & LS_RECOMPUTE_MOE;
  rule (b, !overlaps || !has_experts || (may_pair && !runs_exchange_again), "/ep_overlap");
  rule (b, !(parts & LS_RECOMPUTE_SHARED) || !s->experts.shared_overlap, "/shared_overlap");
  rule (b, !(parts & LS_RECOMPUTE_SHARED) || has_shared, "/recompute_parts");
  rule (b, !(parts & LS_RECOMPUTE_MOE) || has_experts, "/recompute_parts");
  rule (b, !(parts & LS_RECOMPUTE_MLP) || !has_experts, "/recompute_parts");
  rule (b, !delays || (overlaps && has_experts) || (has_experts && s->ep == 1), "/delay_wgrad");
}

/* Of the chunks only the first and the last may be without layers. */
static bool
has_gap (const LsStrategy *s)
{
  for (uint32_t i = 1; i + 1 < s->layout.n_layers_per_chunk; i++)
    if (s->layout.layers_per_chunk[i] == 0)
      return true;
  return false;
}

static void
rules_of_pipeline (const Ask *a, Broken *b)
{
  LsStrategy s = a->s;
  s.dp = s.gpus / (s.tp * s.pp * s.cp);
  const char *name = schedule_of (&s);
  const LsSched *sched = ls_sched_find (name);
  bool divides = sched->n_chunks && sched->placement != LS_PLACE_PIPES;
  if (s.vpp == 1 && divides)
    s.vpp = sched->n_chunks (&(LsSchedShape) { .pp = s.pp, .n_micro_batches = 1 });
  LsSchedShape shape = { .pp = s.pp, .vpp = s.vpp, .n_micro_batches = a->n_micro_batches };
  if (s.mp.p2p == LS_P2P_AUTO && sched->n_versions)
    s.mp.p2p = LS_P2P_OVERLAPPED;
  if (s.zero_stage == LS_ZERO_AUTO)
    s.zero_stage = stage_of (&s, s.dp_kind);
  if (s.dp_kind == LS_DP_AUTO)
    s.dp_kind = s.zero_stage >= 2 ? LS_DP_DEEPSPEED : LS_DP_MEGATRON;
  if (has_one_copy (a)) {
    s.dp_kind = LS_DP_NONE;
    s.zero_stage = 0;
  }
  bool lacks_stages = s.pp < 2 && strcmp (name, "interleaved-1f1b") == 0;
  rule (b,
        !lacks_stages && !ls_sched_refusal (sched, &shape)
            && !ls_sched_job_refusal (sched, &s, &a->model, a->n_micro_batches),
        "/schedule");
  rule (b, s.pp == 1 || s.mp.p2p != LS_P2P_OVERLAPPED || strcmp (name, "1f1b") != 0, "/p2p");
  rule (b,
        s.pp == 1 || s.mp.p2p != LS_P2P_OVERLAPPED || !s.launch.launch_blocking
            || strcmp (name, "interleaved-1f1b") != 0,
        "/p2p");
  rule (b, s.pp == 1 || s.mp.p2p != LS_P2P_DEEPSPEED || (strcmp (name, "1f1b") == 0 && !(s.sp && s.tp > 1)),
        "/p2p");
  if (s.layout.layers_per_chunk)
    rule (b, s.layout.n_layers_per_chunk == s.pp * s.vpp && !has_gap (&s), "/layers_per_chunk");
  else
    rule (b, s.pp * s.vpp <= a->model.n_layers + 2, "/pp");
}

static GPtrArray *
broken_rules (const Ask *a)
{
  Broken b = { g_ptr_array_new () };
  rules_of_sharding (a, &b);
  rules_of_experts (a, &b);
  rules_of_overlap (a, &b);
  rules_of_attention (a, &b);
  rules_of_pipeline (a, &b);
  return b.pointers;
}

#endif
