/* What is legal of a pipeline: its p2p, its schedule, and how many micro-batches go through it, also where
 * replicas have other numbers of them; and which of these reduce gradients. */
#include <string.h>

#include "base/suggest.h"
#include "schedules/sched.h"
#include "strategy/dp_traits.h"
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
  if (s->p2p == LS_P2P_NONE && s->pp > 1)
    conflict (diags, "/p2p", "expected a way to send between stages, as pp = %u; got none", s->pp);
  if (s->p2p == LS_P2P_OVERLAPPED && blocks)
    conflict (diags, "/p2p",
              "expected batched or scatter-gather, as %s waits for every p2p (Megatron-LM overlaps"
              " it only with interleaved-1f1b); got overlapped",
              s->schedule);
  if (s->p2p == LS_P2P_OVERLAPPED && s->launch_blocking && strcmp (s->schedule, "interleaved-1f1b") == 0)
    conflict (diags, "/p2p",
              "expected batched or scatter-gather, as with launch_blocking the host of each stage waits for "
              "a single send"
              " before it asks for what the other sends; got overlapped");
  if (s->p2p == LS_P2P_DEEPSPEED && strcmp (s->schedule, "1f1b") != 0)
    conflict (diags, "/p2p",
              "expected another kind with %s, as DeepSpeed's pipeline engine has 1f1b only; got deepspeed",
              s->schedule);
  if (s->p2p == LS_P2P_DEEPSPEED && s->sp)
    conflict (diags, "/p2p",
              "expected another kind with sequence parallelism (sp), whose activations are cut already; got "
              "deepspeed");
}

/* Whether a step is a whole number of what passes between two flushes. */
static gboolean
check_flushes (const LsStrategy *s, const LsSched *sched, uint32_t n_micro_batches, LsDiagList *diags)
{
  uint64_t n = (uint64_t) n_micro_batches * s->micro_batch;
  if (s->pp == 1 || s->pipeline_batch == 0)
    return TRUE;
  if (s->pipeline_batch % s->micro_batch != 0)
    conflict (diags, "/pipeline_batch", "expected a multiple of micro_batch = %u; got %u", s->micro_batch,
              s->pipeline_batch);
  else if (n % s->pipeline_batch != 0)
    conflict (diags, "/pipeline_batch",
              "expected a divisor of the %" G_GUINT64_FORMAT " sequences of a copy in a step; got %u", n,
              s->pipeline_batch);
  else if (!ls_sched_is_flushed (sched))
    conflict (diags, "/pipeline_batch", "expected 0 with %s, which is never flushed; got %u", sched->name,
              s->pipeline_batch);
  else if (s->p2p == LS_P2P_DEEPSPEED)
    conflict (diags, "/pipeline_batch",
              "expected 0 with p2p deepspeed, whose engine flushes once a step; got %u", s->pipeline_batch);
  else
    return TRUE;
  return FALSE;
}

/* PyTorch's stages reduce before each flush (distributed/pipelining/stage.py, backward_maybe_with_nosync). */
static bool
may_reduce_before_flush (const LsStrategy *s)
{
  return s->dp_kind == LS_DP_FSDP2 || (s->dp_kind == LS_DP_DDP && s->dp_overlap);
}

/* Without a pipeline each micro-batch ends what would be flushed; with one flush the step does. */
void
fill_grad_sync (LsStrategy *s)
{
  bool is_sharded = s->zero_stage >= 2 && s->dp_kind != LS_DP_MEGATRON, is_alone = s->pp == 1;
  if (s->grad_sync == LS_GRAD_SYNC_AUTO && s->pipeline_batch > 0 && !is_alone && may_reduce_before_flush (s))
    s->grad_sync = LS_GRAD_SYNC_FLUSH;
  else if (s->grad_sync == LS_GRAD_SYNC_AUTO)
    s->grad_sync = is_sharded && is_alone ? LS_GRAD_SYNC_EACH : LS_GRAD_SYNC_LAST;
  else if (s->grad_sync == LS_GRAD_SYNC_FLUSH && (is_alone || s->pipeline_batch == 0))
    s->grad_sync = is_alone ? LS_GRAD_SYNC_EACH : LS_GRAD_SYNC_LAST;
}

static void
check_flush_sync (const LsStrategy *s, LsDiagList *diags)
{
  bool is_idle = s->dp_kind == LS_DP_NONE;
  if (s->grad_sync == LS_GRAD_SYNC_FLUSH && !is_idle && !may_reduce_before_flush (s))
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
  if (s->pp > 1 && s->p2p != LS_P2P_OVERLAPPED)
    return "p2p must be overlapped: sends and receives are in the background";
  if (s->pp > 1 && s->launch_blocking)
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
  bool lacks_stages = s->pp < 2 && strcmp (s->schedule, "interleaved-1f1b") == 0;
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
  if (ls_strategy_delays_scales (s) && s->fp8_amax_reduction == LS_AMAX_STAGE)
    return "delayed scales are agreed on in each micro-batch; expected fp8_amax_reduction tp or none";
  if (s->grad_sync == LS_GRAD_SYNC_EACH)
    return "gradients are reduced in each micro-batch (grad_sync each)";
  if (m->n_experts > 0 && s->ep > 1)
    return "tokens are exchanged between replicas (ep) in each micro-batch";
  if (s->lengths)
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
  for (uint32_t d = 0; d < s->n_micro_batches_per_replica; d++) {
    sum += s->micro_batches_per_replica[d];
    has_none |= s->micro_batches_per_replica[d] == 0;
  }
  if (s->n_micro_batches_per_replica != s->dp)
    conflict (diags, "/micro_batches_per_replica", "expected a number for each of dp = %u ranks; got %u",
              s->dp, s->n_micro_batches_per_replica);
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
    if (d == 0 || s->micro_batches_per_replica[d] != s->micro_batches_per_replica[d - 1])
      check_pipeline (s, m, s->micro_batches_per_replica[d], diags);
}
