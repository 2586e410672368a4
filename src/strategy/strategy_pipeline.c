/* What is legal of a pipeline: its p2p, its schedule, and how many micro-batches go through it, also where
 * replicas have other numbers of them; and which of these reduce gradients. */
#include <string.h>

#include "base/suggest.h"
#include "model/expert_load.h"
#include "model/mixer.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/strategy_rules.h"

/* The order of a rank counts its forwards and backwards, 2 m vpp, in 32 bits. */
static gboolean
check_order_size (const LsStrategy *s, uint32_t n_micro_batches, LsDiagList *diags)
{
  if ((uint64_t) n_micro_batches * s->vpp < G_MAXINT32)
    return TRUE;
  ls_diag_add (diags, LS_ERROR_LIMIT, NULL, 0, 0, "/global_batch", NULL, NULL,
               "expected fewer than 2^31 chunk forwards per step on a rank; got %u micro-batches, vpp %u",
               n_micro_batches, s->vpp);
  return FALSE;
}

/* The schedule, or NULL with a diagnostic. */
static const LsSched *
check_schedule (const LsStrategy *s, LsDiagList *diags)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  if (!sched) {
    g_autoptr (GPtrArray) names = g_ptr_array_new ();
    for (guint i = 0; ls_sched_at (i); i++)
      g_ptr_array_add (names, (gpointer) ls_sched_at (i)->name);
    g_ptr_array_add (names, NULL);
    const char *near = ls_suggest (s->schedule, (const char *const *) names->pdata);
    g_autofree char *hint = near ? g_strdup_printf ("did you mean \"%s\"?", near)
                                 : g_strdup ("lockstep list schedules names them");
    ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, "/schedule", NULL, hint,
                 "expected a pipeline schedule; got \"%s\"", s->schedule);
    return NULL;
  }
  return sched;
}

static void
check_p2p (const LsStrategy *s, const LsSched *sched, LsDiagList *diags)
{
  bool blocks = sched->recipe == LS_RECIPE_MEGATRON && s->vpp == 1 && s->pp > 1;
  if (s->mp.p2p == LS_P2P_NONE && s->pp > 1)
    conflict (diags, "/p2p", "expected a way to send between stages, as pp = %u; got none", s->pp);
  if (s->mp.p2p == LS_P2P_OVERLAPPED && blocks)
    conflict (diags, "/p2p",
              "expected batched or scatter-gather, as %s waits for every p2p (Megatron-LM overlaps"
              " it only with interleaved-1f1b); got overlapped",
              s->schedule);
  if (s->mp.p2p == LS_P2P_OVERLAPPED && s->launch.launch_blocking && sched->use == LS_SCHED_CHUNKS)
    conflict (diags, "/p2p",
              "expected batched or scatter-gather, as with launch_blocking the host of each stage waits for "
              "a single send"
              " before it asks for what the other sends; got overlapped");
  if (s->mp.p2p == LS_P2P_DEEPSPEED && sched->use != LS_SCHED_STAGES)
    conflict (diags, "/p2p",
              "expected another kind with %s, as DeepSpeed's pipeline engine has 1f1b only; got deepspeed",
              s->schedule);
  if (s->mp.p2p == LS_P2P_DEEPSPEED && s->sp)
    conflict (diags, "/p2p",
              "expected another kind with sequence parallelism (sp), whose activations are cut already; got "
              "deepspeed");
}

/* Whether a step is a whole number of what passes between two flushes. */
static gboolean
check_flushes (const LsStrategy *s, const LsSched *sched, uint32_t n_micro_batches, LsDiagList *diags)
{
  uint64_t n = (uint64_t) n_micro_batches * s->micro_batch;
  if (s->pp == 1 || s->mp.pipeline_batch == 0)
    return TRUE;
  if (s->mp.pipeline_batch % s->micro_batch != 0)
    conflict (diags, "/pipeline_batch", "expected a multiple of micro_batch = %u; got %u", s->micro_batch,
              s->mp.pipeline_batch);
  else if (n % s->mp.pipeline_batch != 0)
    conflict (diags, "/pipeline_batch",
              "expected a divisor of the %" G_GUINT64_FORMAT " sequences of a copy in a step; got %u", n,
              s->mp.pipeline_batch);
  else if (!ls_sched_is_flushed (sched))
    conflict (diags, "/pipeline_batch", "expected 0 with %s, which is never flushed; got %u", sched->name,
              s->mp.pipeline_batch);
  else if (s->mp.p2p == LS_P2P_DEEPSPEED)
    conflict (diags, "/pipeline_batch",
              "expected 0 with p2p deepspeed, whose engine flushes once a step; got %u",
              s->mp.pipeline_batch);
  else
    return TRUE;
  return FALSE;
}

/* PyTorch's stages reduce before each flush (distributed/pipelining/stage.py, backward_maybe_with_nosync). */
static bool
may_reduce_before_flush (const LsStrategy *s)
{
  return s->dp_kind == LS_DP_FSDP2 || (s->dp_kind == LS_DP_DDP && s->data.overlap);
}

/* Without a pipeline each micro-batch ends what would be flushed; with one flush the step does. */
void
fill_grad_sync (LsStrategy *s)
{
  bool is_sharded = s->zero_stage >= 2 && s->dp_kind != LS_DP_MEGATRON, is_alone = s->pp == 1;
  if (s->data.grad_sync == LS_GRAD_SYNC_AUTO && s->mp.pipeline_batch > 0 && !is_alone
      && may_reduce_before_flush (s))
    s->data.grad_sync = LS_GRAD_SYNC_FLUSH;
  else if (s->data.grad_sync == LS_GRAD_SYNC_AUTO)
    s->data.grad_sync = is_sharded && is_alone ? LS_GRAD_SYNC_EACH : LS_GRAD_SYNC_LAST;
  else if (s->data.grad_sync == LS_GRAD_SYNC_FLUSH && (is_alone || s->mp.pipeline_batch == 0))
    s->data.grad_sync = is_alone ? LS_GRAD_SYNC_EACH : LS_GRAD_SYNC_LAST;
}

static void
check_flush_sync (const LsStrategy *s, LsDiagList *diags)
{
  bool is_idle = s->dp_kind == LS_DP_NONE;
  if (s->data.grad_sync == LS_GRAD_SYNC_FLUSH && !is_idle && !may_reduce_before_flush (s))
    conflict (diags, "/grad_sync", "expected last or each with dp_kind %s%s; got flush",
              ls_dp_kind_name (s->dp_kind), s->dp_kind == LS_DP_DDP ? " and dp_overlap 0" : "");
}

const char *
ls_sched_job_refusal (const LsSched *sched, const LsStrategy *s, const LsModel *m, uint32_t n_micro_batches)
{
  if (ls_sched_is_flushed (sched))
    return NULL;
  if (n_micro_batches < s->pp)
    return "there must be at least pp micro-batches: as many are under way";
  if (s->pp > 1 && s->mp.p2p != LS_P2P_OVERLAPPED)
    return "p2p must be overlapped: sends and receives are in the background";
  if (s->pp > 1 && s->launch.launch_blocking)
    return "launch_blocking must be off: sends and receives are in the background";
  if (s->pp > 1 && m->tied_embeddings)
    return "the model's embeddings must not be tied: the first and the last stage update theirs at different "
           "times";
  if (s->zero_stage > 0 || (s->dp > 1 && s->dp_kind != LS_DP_DDP && s->dp_kind != LS_DP_MEGATRON))
    return "data parallelism must be ddp, or megatron with zero 0: versions of the weights are kept whole";
  if (s->dtype == LS_DTYPE_FP16)
    return "dtype must not be fp16: with loss scaling no stage updates before all have looked for infinities";
  return NULL;
}

void
check_pipeline (const LsStrategy *s, const LsModel *m, uint32_t n_micro_batches, LsDiagList *diags)
{
  const LsSched *sched = check_schedule (s, diags);
  if (!sched)
    return;
  check_p2p (s, sched, diags);
  check_flush_sync (s, diags);
  if (n_micro_batches > 0 && !check_order_size (s, n_micro_batches, diags))
    return;
  if (n_micro_batches > 0 && !check_flushes (s, sched, n_micro_batches, diags))
    return;
  /* Without a number of micro-batches, the rules on pp and vpp still hold: pp
   * micro-batches are legal wherever any number is. */
  LsSchedShape shape = ls_strategy_sched_shape (s, n_micro_batches > 0 ? n_micro_batches : s->pp);
  /* Megatron-LM's rule; the order alone does not need it. Sizes are checked elsewhere. */
  bool lacks_stages = s->pp < 2 && sched->use == LS_SCHED_CHUNKS;
  const char *rule = lacks_stages ? "pp must be greater than 1" : sched->refusal (&shape);
  if (!rule)
    rule = ls_sched_job_refusal (sched, s, m, shape.n_micro_batches);
  if (rule)
    conflict (diags, "/schedule", "%s: %s; got pp %u, vpp %u, %u micro-batches", s->schedule, rule, s->pp,
              s->vpp, shape.n_micro_batches);
}

/* --- replicas of unequal numbers --- */

const char *
ls_strategy_why_even (const LsStrategy *s, const LsModel *m)
{
  const LsSched *sched = s->schedule ? ls_sched_find (s->schedule) : NULL;
  bool is_zero = s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage <= 1;
  if (!ls_dp_traits (s->dp_kind)->keeps_gradients && !is_zero)
    return "ranks meet in each micro-batch; expected dp_kind ddp, megatron, or deepspeed with zero 0 or 1";
  if (ls_strategy_delays_scales (s) && s->fp8.amax_reduction == LS_AMAX_STAGE)
    return "delayed scales are agreed on in each micro-batch; expected fp8_amax_reduction tp or none";
  if (s->data.grad_sync == LS_GRAD_SYNC_EACH)
    return "gradients are reduced in each micro-batch (grad_sync each)";
  if (m->moe.n_experts > 0 && s->ep > 1)
    return "tokens are exchanged between replicas (ep) in each micro-batch";
  if (s->docs.lengths)
    return "documents (lengths) are dealt to as many micro-batches each";
  if (sched && (sched->placement == LS_PLACE_PIPES || !ls_sched_is_flushed (sched)))
    return "the schedule has replicas of its own, or no end of a step";
  return NULL;
}

/* Whether there are dp numbers, which come to the global batch. */
static bool
are_counts_right (const LsStrategy *s, LsDiagList *diags)
{
  uint64_t sum = 0;
  bool has_none = false;
  for (uint32_t d = 0; d < s->layout.n_micro_batches_per_replica; d++) {
    sum += s->layout.micro_batches_per_replica[d];
    has_none |= s->layout.micro_batches_per_replica[d] == 0;
  }
  if (s->layout.n_micro_batches_per_replica != s->dp)
    conflict (diags, "/micro_batches_per_replica", "expected a number for each of dp = %u ranks; got %u",
              s->dp, s->layout.n_micro_batches_per_replica);
  else if (has_none)
    conflict (diags, "/micro_batches_per_replica", "expected 1 or more for each rank; got 0");
  else if (sum * s->micro_batch != s->global_batch)
    conflict (diags, "/micro_batches_per_replica",
              "expected global_batch / micro_batch = %u / %u in all; got %" G_GUINT64_FORMAT, s->global_batch,
              s->micro_batch, sum);
  else
    return true;
  return false;
}

void
check_replicas (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  const char *why = ls_strategy_why_even (s, m);
  if (why)
    conflict (diags, "/micro_batches_per_replica", "expected as many for all: %s", why);
  if (s->dp == 0 || !are_counts_right (s, diags))
    return;
  guint n_before = ls_diag_list_n (diags);
  for (uint32_t d = 0; d < s->dp && ls_diag_list_n (diags) == n_before; d++)
    if (d == 0 || s->layout.micro_batches_per_replica[d] != s->layout.micro_batches_per_replica[d - 1])
      check_pipeline (s, m, s->layout.micro_batches_per_replica[d], diags);
}

/* ---- strategy experts ---- */

/* What follows, and what is legal, with a mixture of experts, latent attention, an encoder and adapters. */

/* Schedules that are made of pairs are meant for it. */
void
fill_overlap (LsStrategy *s)
{
  const LsSched *sched = s->schedule ? ls_sched_find (s->schedule) : NULL;
  bool is_paired = sched && sched->always_pairs;
  if (s->mp.ep_overlap == LS_FLAG_AUTO)
    s->mp.ep_overlap = s->ep > 1 && is_paired;
  if (s->mp.delay_wgrad == LS_FLAG_AUTO)
    s->mp.delay_wgrad = s->mp.ep_overlap && is_paired;
}

/* Whose products torchtitan's selective checkpointing counts, and what exchanges bring it keeps: whole
 * experts, by an all-to-all, or cut ones without. What JAX's policies keep of experts and latents has no
 * source here. */
const char *
ops_refusal (const LsStrategy *s, const LsModel *m, uint32_t parts)
{
  const LsSched *sched = s->schedule ? ls_sched_find (s->schedule) : NULL;
  uint32_t etp = s->experts.etp ? s->experts.etp : s->tp;
  bool has_parts = m->moe.n_experts > 0 || ls_model_has_latents (m);
  return sched && sched->is_split                        ? "with backwards that are split"
      : s->lora.rank > 0                                 ? "with adapters"
      : has_parts && parts != LS_RECOMPUTE_OP            ? "with experts or latent attention, or op"
      : ls_model_is_compressed (m) || m->index.heads > 0 ? "with attention to chosen keys"
      : ls_model_n_streams (m) > 1                       ? "with several residual streams"
      : m->moe.attention_experts > 0                     ? "with experts of attention"
      : m->layers.shared_blocks > 0                      ? "with blocks that layers share"
      : ls_model_has_beside (m)                          ? "with parts next to the halves of layers"
      : m->moe.latent > 0                                ? "with experts after a latent"
      : m->moe.n_experts > 0 && etp > 1 && s->ep > 1
      ? "with experts that are cut and in groups; etp 1 has them whole"
      : m->moe.n_experts > 0 && s->experts.shared_overlap ? "with shared_overlap"
                                                          : NULL;
}

/* Megatron-LM (core/transformer/transformer_config.py) has the same rules: its combined 1F1B needs several
 * chunks per rank, and runs no layer again as a whole. */
static void
check_overlap (const LsStrategy *s, LsDiagList *diags)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  if (s->mp.delay_wgrad && !s->mp.ep_overlap)
    conflict (diags, "/delay_wgrad",
              "expected ep_overlap with it, whose exchanges run together with what is delayed;"
              " got none");
  if (!s->mp.ep_overlap)
    return;
  if (sched && !sched->always_pairs && !(sched->knobs & LS_SCHED_PAIRS))
    conflict (diags, "/ep_overlap",
              "expected a schedule that pairs a forward with a backward: none, interleaved-1f1b, dualpipe or "
              "dualpipev; got %s",
              s->schedule);
  if (s->zero_stage == 3)
    conflict (diags, "/ep_overlap",
              "expected whole parameters, as what one pass frees the other would need; got zero 3");
  bool has_layers = s->recompute == LS_RECOMPUTE_FULL
      || (s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & LS_RECOMPUTE_BY_OPERATORS);
  bool has_moe = s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & LS_RECOMPUTE_MOE;
  if (has_layers || has_moe)
    conflict (diags, "/ep_overlap",
              "expected no layers that run again as a whole, as exchanges would too; got recompute %s",
              ls_recompute_names[s->recompute].name);
}

/* Megatron-LM (core/transformer/transformer_config.py) has neither of the first two. */
static void
check_shared (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (!s->experts.shared_overlap)
    return;
  if (s->mp.ep_overlap)
    conflict (diags, "/shared_overlap",
              "expected 0 with ep_overlap, together with whose exchanges the other pass computes; got 1");
  if (s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & LS_RECOMPUTE_SHARED)
    conflict (diags, "/shared_overlap",
              "expected 0 where shared experts run again by themselves, next to no exchange; got 1");
  if (m->moe.shared_ffn == 0)
    conflict (diags, "/shared_overlap", "expected 0, as the model has no shared experts; got 1");
  if (s->zero_stage == 3)
    conflict (diags, "/shared_overlap",
              "expected whole parameters, which nobody frees before the exchange; got zero 3");
}

/* Parts that no layer has. */
static void
check_parts (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  const struct {
    uint32_t part;
    bool is_there;
    const char *name;
  } rules[] = {
    { LS_RECOMPUTE_MLP, ls_model_n_moe_layers (m) < m->n_layers, "mlp, as no layer has a dense MLP" },
    { LS_RECOMPUTE_MOE, m->moe.n_experts > 0, "moe, as the model has no experts" },
    { LS_RECOMPUTE_SHARED, m->moe.shared_ffn > 0, "shared, as the model has no shared experts" },
    { LS_RECOMPUTE_SHARED, !(s->memory.recompute_parts & LS_RECOMPUTE_MOE),
      "shared together with moe, which has it" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rules); i++)
    if (s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & rules[i].part
        && !rules[i].is_there)
      conflict (diags, "/recompute_parts", "expected no %s; got it", rules[i].name);
}

/* An order names what there is more than one of; both divisions of the ranks have one pipeline, as
 * Megatron-LM asserts (core/parallel_state.py, initialize_model_parallel). */
void
check_rank_order (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  const uint32_t degree[LS_N_DIMS] = { s->tp, s->cp, m->moe.n_experts > 0 ? s->ep : 1, s->dp, s->pp };
  LsRankOrder order;
  uint32_t named, n_stage = s->tp * s->cp * s->dp;
  if (!s->layout.rank_order || !ls_rank_order_parse (s->layout.rank_order, &order, &named))
    return;
  for (int d = 0; d < LS_N_DIMS; d++)
    if (degree[d] > 1 && !(named & 1u << d))
      conflict (diags, "/rank_order", "expected %s in it, as %s is %u; got \"%s\"", ls_dim_name ((LsDim) d),
                ls_dim_name ((LsDim) d), degree[d], s->layout.rank_order);
  if (m->moe.n_experts == 0 || n_stage == 0 || s->experts.etp == 0
      || n_stage % ((uint64_t) s->ep * s->experts.etp) != 0)
    return;
  const LsMesh mesh = ls_strategy_mesh (s);
  if (!ls_mesh_has_one_pipeline (&mesh))
    conflict (diags, "/rank_order",
              "expected pp last, or as many ranks before pp with experts as without: their stages must be on "
              "the same ranks; got \"%s\"",
              s->layout.rank_order);
}

/* Layers whose experts are not those of others. */
static void
check_listed_experts (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  uint32_t first[LS_MAX_MODEL_KINDS];
  if (!ls_model_experts_differ (m))
    return;
  if (s->experts.load || s->experts.capacity > 0)
    unsupported (diags, s->experts.load ? "/expert_load" : "/expert_capacity",
                 "uneven loads and capacities where layers differ in their experts are not modelled; "
                 "expected none");
  for (uint32_t i = 0, n = ls_model_first_of_kinds (m, first); i < n; i++) {
    uint32_t kind = ls_model_layer_kind (m, first[i]);
    LsModel own = ls_model_of_kind (m, kind);
    if (!(kind & LS_LAYER_EXPERTS)
        || (own.moe.n_experts % s->ep == 0 && own.moe.expert_ffn % s->experts.etp == 0))
      continue;
    conflict (diags, "/ep",
              "expected ep that divides the %u experts of layer %u, and etp that divides their width %u; got "
              "%u and %u",
              own.moe.n_experts, first[i], own.moe.expert_ffn, s->ep, s->experts.etp);
    return;
  }
}

void
check_experts (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  check_shared (s, m, diags);
  check_parts (s, m, diags);
  if (m->moe.n_experts == 0) {
    if (s->ep > 1)
      conflict (diags, "/ep", "expected 1, as the model has no experts; got %u", s->ep);
    if (s->experts.etp != s->tp)
      conflict (diags, "/etp", "expected tp = %u or nothing, as the model has no experts; got %u", s->tp,
                s->experts.etp);
    if (s->experts.capacity > 0)
      conflict (diags, "/expert_capacity", "expected none, as the model has no experts; got %g",
                s->experts.capacity);
    if (s->experts.load)
      conflict (diags, "/expert_load", "expected none, as the model has no experts; got \"%s\"",
                s->experts.load);
    if (s->mp.ep_overlap)
      conflict (diags, "/ep_overlap", "expected 0, as the model has no experts; got 1");
    if (s->mp.delay_wgrad)
      conflict (diags, "/delay_wgrad", "expected 0, as the model has no experts; got 1");
    return;
  }
  check_overlap (s, diags);
  if (s->experts.dispatcher != LS_DISPATCHER_ALL_TO_ALL && s->experts.etp > 1)
    conflict (diags, "/dispatcher",
              "expected all-to-all, or etp 1: DeepEP and HybridEP send whole tokens; got %s with etp %u",
              ls_dispatcher_names[s->experts.dispatcher].name, s->experts.etp);
  if (s->experts.dispatcher == LS_DISPATCHER_HYBRIDEP && s->experts.dispatch_fp8)
    unsupported (
        diags, "/dispatch_fp8",
        "tokens in fp8 by HybridEP, whose published times grow with ranks where SMs are few, are not "
        "modelled; expected 0");
  if (s->tp > 1 && !s->sp)
    conflict (
        diags, "/sp",
        "expected 1 with experts and tp %u, as Megatron-LM trains them no other way: each rank routes its own"
        " tokens; got 0",
        s->tp);
  if (m->moe.shared_ffn % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the shared experts' ffn width %u; got %u",
              m->moe.shared_ffn, s->tp);
  uint64_t n = s->tp * n_copies (s);
  if (m->moe.n_experts % s->ep != 0)
    conflict (diags, "/ep", "expected a divisor of the model's %u experts; got %u", m->moe.n_experts, s->ep);
  if (m->moe.adjugate_of > 0
      && (m->moe.n_experts / s->ep % m->moe.adjugate_of != 0 || m->moe.adjugate_ffn % s->experts.etp != 0))
    conflict (
        diags, "/ep",
        "expected ep that keeps the %u experts with one small expert together, and etp that divides its "
        "width %u; got %u and %u",
        m->moe.adjugate_of, m->moe.adjugate_ffn, s->ep, s->experts.etp);
  check_listed_experts (s, m, diags);
  if (s->experts.grouped_gemm && ls_recipes_loop (s->use.recipes, m))
    conflict (diags, "/grouped_gemm", "expected 0, as %s runs experts one after the other; got 1",
              s->use.recipes->name);
  if (s->experts.padding == LS_EXPERT_PADDING_CAPACITY && s->experts.capacity <= 0)
    conflict (diags, "/expert_padding", "expected expert_capacity above 0 with it; got capacity and none");
  if (n > 0 && n % ((uint64_t) s->ep * s->experts.etp) != 0)
    conflict (diags, "/ep", "expected ep * etp to divide tp * cp * dp = %" G_GUINT64_FORMAT "; got %u * %u",
              n, s->ep, s->experts.etp);
  if (m->moe.expert_ffn % s->experts.etp != 0)
    conflict (diags, "/etp", "expected a divisor of the experts' ffn width %u; got %u", m->moe.expert_ffn,
              s->experts.etp);
  g_autofree char *why = NULL;
  g_free (ls_expert_shares (s->experts.load, m, &why));
  if (why)
    conflict (diags, "/expert_load", "%s", why);
  if (s->dp_kind == LS_DP_FSDP2 && s->data.reshard_after_forward != LS_RESHARD_AUTO
      && s->data.reshard_after_forward > 1 && s->ep > 1)
    conflict (diags, "/reshard_after_forward",
              "expected 0 or 1 with ep %u: experts and the rest would be cut in different groups; got %u",
              s->ep, s->data.reshard_after_forward);
  if (s->data.zero_group > 0 && s->ep > 1)
    conflict (diags, "/zero",
              "expected no groups with ep %u: experts and the rest would be cut in different ones; got %u@%u",
              s->ep, s->zero_stage, s->data.zero_group);
}

static void
check_compressed_attention (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (m->compressed.out_groups % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the model's %u groups of attention's output; got %u",
              m->compressed.out_groups, s->tp);
  if (s->use.attention == LS_ATTENTION_UNFUSED)
    conflict (diags, "/attention", "expected flash with attention to compressed keys; got unfused");
  if (s->cp > 1)
    unsupported (diags, "/cp",
                 "context parallelism of attention to compressed keys is not modelled; expected 1, got %u",
                 s->cp);
}

void
check_latent_attention (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (ls_model_is_compressed (m))
    check_compressed_attention (s, m, diags);
  if (s->cp > 1 && m->index.heads > 0 && !ls_model_is_compressed (m))
    unsupported (diags, "/cp",
                 "context parallelism of attention with an indexer is not modelled; expected 1, got %u",
                 s->cp);
  if (m->latent.kv_lora == 0) {
    if (s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & LS_RECOMPUTE_MLA_UP)
      conflict (diags, "/recompute_parts",
                "expected no mla-up, as the model has no latent attention; got it");
    return;
  }
  if (s->use.attention == LS_ATTENTION_UNFUSED)
    conflict (diags, "/attention", "expected flash with latent attention; got unfused");
}

/* Stages of an encoder, then stages of its decoder, which pass on what the encoder made (Megatron-LM
 * core_r0.5.0, core/pipeline_parallel/schedules.py: get_tensor_shapes; training/training.py: get_model). Its
 * interleaved schedule has no such models, and of stages that share an embedding only those of a head that
 * shares it too reduce its gradient (core/distributed/finalize_model_grads.py). */
static void
check_encoder_stages (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (s->vpp > 1 || ls_sched_find (s->schedule) != ls_sched_usual (s->pp, 1)
      || (s->mp.p2p != LS_P2P_BATCHED && s->mp.p2p != LS_P2P_SCATTER_GATHER))
    unsupported (diags, "/schedule",
                 "expected 1f1b, vpp 1 and p2p batched or scatter-gather with an encoder and pp = %u, as "
                 "Megatron-LM pipelines it; got %s, vpp %u, p2p %s",
                 s->pp, s->schedule, s->vpp, ls_p2p_name (s->mp.p2p));
  else if (ls_encoder_chunks (s, m) == 0)
    conflict (
        diags, "/layers_per_chunk",
        "expected stages of the encoder's %u layers, then stages of the decoder's %u; say how many each "
        "of the pp = %u has",
        m->sides.encoder_layers, m->n_layers - m->sides.encoder_layers, s->pp);
  if (!m->tied_embeddings)
    unsupported (diags, "/pp",
                 "an embedding of encoder and decoder on two stages that the head does not share is not "
                 "modelled; expected 1 with an encoder and tied_embeddings false, got %u",
                 s->pp);
  if (s->dp_kind != LS_DP_NONE && s->dp_kind != LS_DP_DDP && s->dp_kind != LS_DP_MEGATRON)
    unsupported (
        diags, "/dp_kind",
        "expected megatron or ddp with an encoder and pp = %u; stages of an encoder are not modelled "
        "with %s",
        s->pp, ls_dp_kind_name (s->dp_kind));
}

/* What an encoder makes goes to all layers of the decoder. */
void
check_encoder (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (m->sides.encoder_layers == 0)
    return;
  if (s->pp > 1)
    check_encoder_stages (s, m, diags);
  if (s->cp > 1)
    unsupported (diags, "/cp", "context parallelism with an encoder is not modelled; expected 1, got %u",
                 s->cp);
  if (s->tp > m->n_kv_heads)
    unsupported (
        diags, "/tp",
        "keys and values of an encoder's tokens that ranks of tp share are not modelled; expected at "
        "most the %u heads of them, got %u",
        m->n_kv_heads, s->tp);
  if (s->use.attention == LS_ATTENTION_UNFUSED)
    unsupported (diags, "/attention", "unfused attention with an encoder is not modelled; expected flash");
  uint32_t seq = ls_model_decoder_seq (m, s->seq);
  if (s->sp && seq % s->tp != 0)
    conflict (diags, "/sp", "expected a sequence length of the decoder divisible by tp = %u; got %u", s->tp,
              seq);
  if (s->recompute == LS_RECOMPUTE_FULL && seq != s->seq)
    unsupported (
        diags, "/recompute",
        "whole layers that run again where encoder and decoder have sequences of different lengths are "
        "not modelled; got %u and %u",
        s->seq, seq);
  if (s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & LS_RECOMPUTE_MLP && seq != s->seq)
    unsupported (diags, "/recompute_parts",
                 "mlp where encoder and decoder have sequences of different lengths is not modelled; got %u "
                 "and %u",
                 s->seq, seq);
}

/* Weights that several layers use are on one stage, whole: else they, and their gradients, would go between
 * stages, or be gathered for each use. */
void
check_again (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool gathers_each = (s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage == 3) || s->dp_kind == LS_DP_XLA_FSDP;
  if (gathers_each && m->predict.shared && m->predict.layers > 1)
    unsupported (diags, "/dp_kind",
                 "weights that blocks of multi-token prediction share, gathered for each of them, are not "
                 "modelled; expected another than deepspeed with zero 3, or xla-fsdp");
  if (m->layers.own + m->layers.shared_blocks == 0)
    return;
  if (s->pp > 1)
    unsupported (
        diags, "/pp",
        "layers that use the weights of others on another stage are not modelled; expected 1, got %u", s->pp);
  if (s->zero_stage == 3)
    unsupported (
        diags, "/zero_stage",
        "weights that are gathered for each of the layers that use them are not modelled; expected a "
        "stage below 3");
}

/* Of weights in 16 bits, or in fp8 alone, that are whole on each copy. */
static void
check_scaled_adapters (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_whole = ls_dp_traits (s->dp_kind)->is_megatron && s->zero_stage <= 1;
  if (!ls_dtype_is_scaled ((LsDtype) s->dtype))
    return;
  if (!is_whole || s->lora.qlora || m->moe.n_experts > 0 || s->fp8.bf16_first + s->fp8.bf16_last > 0
      || (s->dtype == LS_DTYPE_FP8 && s->fp8.recipe == LS_FP8_DEEPSEEK))
    unsupported (
        diags, "/lora_rank",
        "adapters on products in a scaled format are modelled of dense models in Megatron-LM's loop, "
        "without qlora, layers in bf16 and DeepSeek's recipe; expected 0");
}

const char *
ls_strategy_bars_adapters (const LsModel *m)
{
  return ls_mixers[m->mixer.kind].no_adapters          ? ls_mixers[m->mixer.kind].no_adapters
      : m->layers.shared_blocks > 0                    ? "blocks that layers share"
      : ls_model_is_compressed (m)                     ? "attention to compressed keys"
      : m->index.heads > 0                             ? "attention to keys that an indexer chooses"
      : m->latent.q_lora > 0 && m->latent.kv_lora == 0 ? "latents of queries alone"
      : m->latent.kv_lora > 0 && (m->latent.gate || m->attn.gate) ? "gates of latent attention"
      : m->moe.attention_experts > 0                              ? "experts of attention"
      : ls_model_n_streams (m) > 1                                ? "several residual streams"
      : m->sides.encoder_layers > 0                               ? "an encoder"
      : m->predict.layers > 0                                     ? "layers that predict further tokens"
      : m->layers.own > 0                                         ? "layers that come again"
      : ls_model_has_beside (m) ? "inputs of layers, layers that share keys or sparse MLPs"
                                : NULL;
}

/* Of a strategy with adapters on frozen weights: what is not modelled beside it. */
static void
check_beside_adapters (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  const LsSched *sched = s->schedule ? ls_sched_find (s->schedule) : NULL;
  const char *without = ls_strategy_bars_adapters (m);
  if (without)
    unsupported (diags, "/lora_rank", "adapters of a model with %s are not modelled; expected 0", without);
  if (s->dp_kind == LS_DP_PS || s->dp_kind == LS_DP_XLA_FSDP || s->memory.offload != LS_OFFLOAD_NONE)
    unsupported (diags, "/lora_rank",
                 "frozen weights with parameter servers, XLA's FSDP or offload are not modelled; expected 0");
  check_scaled_adapters (s, m, diags);
  if ((sched && sched->is_split) || s->mp.delay_wgrad)
    unsupported (diags, "/lora_rank",
                 "adapters where weight gradients are delayed are not modelled; expected 0");
  if (s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & ~(uint32_t) LS_RECOMPUTE_CORE)
    unsupported (
        diags, "/lora_rank",
        "adapters where parts of layers other than core run again are not modelled, as a frozen layer "
        "keeps no input and its adapter does; expected 0");
  if (m->attn.full_k_is_v)
    unsupported (diags, "/lora_rank",
                 "adapters of layers whose keys are their values are not modelled; expected 0");
}

void
check_lora (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  uint32_t modules;
  g_autofree char *wrong = NULL;
  if (s->lora.rank == 0)
    return;
  if (!ls_lora_modules (m, s->lora.modules, &modules, &wrong)) {
    ls_lora_modules (m, NULL, &modules, NULL);
    g_autofree char *own = ls_lora_words (modules, ", ");
    conflict (diags, "/lora_modules",
              "expected all-linear or several of %s%s, which are the model's linear layers; got %s", own,
              m->latent.kv_lora > 0 ? " (k: keys and values, made of one latent)" : "", wrong);
  }
  if (s->lora.qlora && m->moe.n_experts > 0)
    unsupported (diags, "/qlora", "experts in 4 bits are not modelled; expected 0");
  if (s->lora.qlora && s->zero_stage == 3 && s->dp_kind == LS_DP_DEEPSPEED)
    unsupported (diags, "/qlora", "DeepSpeed's ZeRO 3 gathers no weights of 4 bits; expected 0");
  check_beside_adapters (s, m, diags);
}
