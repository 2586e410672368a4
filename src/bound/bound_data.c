/* bound/bound_data.c — what data parallelism adds to the passes of a rank at least: as lower_dp_megatron.c,
 * lower_dp_fsdp1.c and lower_dp_fsdp2.c build it.
 *
 * FSDP. Of a pass that computes for t and gathers its units for g in all, one behind the other:
 *
 *     forward    max (t + copies out, g) behind the root's gather, as none begins before the pass does
 *     backward   max (t + copies, g less those ahead of it, what it reduces); gathers are ahead of what
 *                is computed by no more units than are prefetched (FSDP2; if it is one, it begins behind
 *                the copy of the one before), or a forward and its backward together take no less than
 *                the gathers of both (FSDP1)
 *
 * Megatron-LM, without interleaving. Stages but the first have one bucket of experts and one of all else:
 *
 *     forward    the first waits for both gathers, each where it is first needed, with nothing beside them
 *     backward   the last is over before all else is reduced; experts are reduced before that, from where
 *                their first layer is done
 *
 * The first stage has many buckets: what takes longer than the pass itself counts.
 *
 * DeepSpeed's ZeRO-3. A pass gathers what is not persistent, none of it before it begins, but for what a
 * backward finds there still (lower_zero3.h); gradients are reduced in each backward.
 *
 * Worked example. A backward of 30 ms, of which the first layer takes 8; experts' gradients take 40 ms to
 * reduce, all others 5: they are reduced 40 + 5 - 8 = 37 ms behind the backward. */
#include "bound/bound_parts.h"

#include "strategy/dp_traits.h"

/* --- FSDP ---------------------------------------------------------------------------------- */

static bool
is_fsdp2 (const LsStrategy *s)
{
  return ls_dp_traits (s->dp_kind)->has_reshard;
}

static bool
reduces_each (const LsStrategy *s)
{
  return s->grad_sync == LS_GRAD_SYNC_EACH;
}

/* Units stay from forward to backward. */
static bool
keeps_units (const LsStrategy *s)
{
  return is_fsdp2 (s) ? s->reshard_after_forward == 0 : s->zero_stage == 2;
}

/* What stays does so for a step. */
static bool
keeps_for_step (const LsStrategy *s)
{
  return s->pp > 1 || (!is_fsdp2 (s) && s->zero_stage == 2 && !reduces_each (s));
}

LsTime
bound_fsdp_forward (const LsStrategy *s, const BoundPart *chunk)
{
  const BoundUnits *u = &chunk->units;
  return s->ep_overlap ? 0 : u->root + MAX (u->copy_out, u->gather - chunk->f);
}

/* More than a backward computes. */
static LsTime
backward_time (const LsStrategy *s, const BoundPart *chunk, bool reduces)
{
  const BoundUnits *u = &chunk->units;
  bool gathers = is_fsdp2 (s) ? s->reshard_after_forward == 1 : s->zero_stage == 3;
  LsTime n_ahead = MAX (1, s->backward_prefetch_units), copies = gathers ? u->copy_out : 0,
         left = is_fsdp2 (s) ? u->gather - n_ahead * u->most
      : s->pp == 1           ? 2 * u->gather - MAX (chunk->f, u->gather)
                             : 0;
  LsTime copied_in = reduces ? u->copy_in : 0, time = copies + copied_in;
  if (gathers) /* one ahead begins behind the copy of the one before */
    time = MAX (time, left - chunk->b + (n_ahead == 1 ? copies : 0));
  if (reduces)
    time = MAX (time, u->reduce - chunk->b);
  return s->ep_overlap ? 0 : time;
}

LsTime
bound_fsdp_passes (const LsStrategy *s, const BoundPart *chunk, uint32_t n_mb)
{
  const BoundUnits *u = &chunk->units;
  bool is_behind = is_fsdp2 (s) && s->pp > 1; /* all of a step is reduced behind its last backward */
  LsTime n = n_mb, n_forwards = keeps_units (s) && keeps_for_step (s) ? 1 : n,
         n_roots = keeps_for_step (s) ? 1 : n,
         n_reduced = reduces_each (s) ? n
      : is_behind                     ? 0
                                      : 1;
  LsTime root = s->ep_overlap ? 0 : u->root;
  return n_roots * root + n_forwards * (bound_fsdp_forward (s, chunk) - root)
      + n_reduced * backward_time (s, chunk, true) + (n - n_reduced) * backward_time (s, chunk, false)
      + (reduces_each (s) ? 0 : n - 1) * u->add;
}

/* --- DeepSpeed ----------------------------------------------------------------------------- */

static LsTime
zero3_gathers_time (const BoundComm *c, uint64_t n_others, uint64_t n_experts)
{
  uint64_t size = c->s->fp8_params ? 1 : 2;
  return bound_dp_time (c, LS_COLL_ALL_GATHER, n_others * size)
      + bound_edp_time (c, LS_COLL_ALL_GATHER, n_experts * size);
}

/* At most, what a backward finds gathered: to be used again soon, fetched ahead or passed over. */
static uint64_t
most_left_over (const LsStrategy *s, const BoundPart *p)
{
  return s->max_reuse_distance + s->max_live_params + s->prefetch_bucket + 2 * p->n_most;
}

LsTime
bound_zero3_passes (const BoundComm *c, const BoundPart *p, uint32_t n_mb)
{
  const LsStrategy *s = c->s;
  if (s->dp_kind != LS_DP_DEEPSPEED || s->zero_stage < 3 || s->pp > 1 || s->zero_group > 0
      || s->offload != LS_OFFLOAD_NONE || s->ep_overlap)
    return 0;
  uint64_t n_experts = p->n_expert - p->n_persistent_experts, n = p->n_params - p->n_expert - p->n_persistent,
           left = most_left_over (s, p), grad = s->grad_dtype == LS_DTYPE_FP32 ? 4 : 2;
  LsTime gather = zero3_gathers_time (c, n, n_experts),
         again = zero3_gathers_time (c, n - MIN (n, left), n_experts - MIN (n_experts, left)),
         reduce = bound_dp_time (c, LS_COLL_REDUCE_SCATTER, (p->n_params - p->n_expert) * grad)
      + bound_edp_time (c, LS_COLL_REDUCE_SCATTER, p->n_expert * grad);
  return (LsTime) n_mb * (MAX (0, gather - p->f) + MAX (0, MAX (reduce, again) - p->b));
}

/* --- Megatron-LM --------------------------------------------------------------------------- */

static bool
is_sharded (const LsStrategy *s)
{
  return s->dp_kind == LS_DP_MEGATRON && s->zero_stage > 0 && s->zero_group == 0
      && s->offload == LS_OFFLOAD_NONE;
}

static bool
deals_tensors (const LsStrategy *s)
{
  return s->optimizer_cut == LS_OPTIMIZER_CUT_TENSORS;
}

static bool
gathers_early (const LsStrategy *s)
{
  return is_sharded (s) && !deals_tensors (s) && s->gather_overlap == 1;
}

/* Of experts, and of all else. */
static LsTime
gathers_time (const BoundComm *c, const BoundPart *p)
{
  uint64_t size = c->s->fp8_params ? 1 : 2;
  return bound_dp_time (c, LS_COLL_ALL_GATHER, (p->n_params - p->n_expert) * size)
      + bound_edp_time (c, LS_COLL_ALL_GATHER, p->n_expert * size);
}

LsTime
bound_first_gathers (const BoundComm *c, const BoundRank *rank)
{
  if (!gathers_early (c->s) || c->s->vpp > 1)
    return 0;
  LsTime time = gathers_time (c, rank->sum);
  return rank->has_embedding ? MAX (0, time - rank->sum->f) : time;
}

LsTime
bound_last_gathers (const BoundComm *c, const BoundRank *rank)
{
  return is_sharded (c->s) && !gathers_early (c->s) ? gathers_time (c, rank->sum) : 0;
}

static LsTime
megatron_reductions (const BoundComm *c, const BoundRank *rank)
{
  const LsStrategy *s = c->s;
  const BoundPart *p = rank->sum;
  LsCollKind kind = s->zero_stage > 0 && !deals_tensors (s) ? LS_COLL_REDUCE_SCATTER : LS_COLL_ALL_REDUCE;
  uint64_t size = s->grad_dtype == LS_DTYPE_FP32 ? 4 : 2;
  if (s->zero_group > 0 || s->offload != LS_OFFLOAD_NONE || (s->dp_overlap && s->vpp > 1))
    return 0;
  LsTime others = bound_dp_time (c, kind, (p->n_params - p->n_expert) * size),
         all = others + bound_edp_time (c, kind, p->n_expert * size);
  if (!s->dp_overlap)
    return all;
  if (rank->has_embedding)
    return MAX (0, all - p->b);
  return rank->first_layer->n_expert > 0 ? MAX (others, all - rank->first_layer->b) : others;
}

/* FSDP2 with a pipeline reduces unit by unit, each copied when the one before is reduced. One call for all
 * takes no longer. */
static LsTime
fsdp2_reductions (const BoundComm *c, const BoundPart *p)
{
  const LsStrategy *s = c->s;
  uint64_t size = s->grad_dtype == LS_DTYPE_FP32 ? 4 : 2;
  if (s->pp == 1 || reduces_each (s) || s->zero_group > 0)
    return 0;
  return p->units.copy_in + bound_dp_time (c, LS_COLL_REDUCE_SCATTER, (p->n_params - p->n_expert) * size)
      + bound_edp_time (c, LS_COLL_REDUCE_SCATTER, p->n_expert * size);
}

LsTime
bound_reductions (const BoundComm *c, const BoundRank *rank)
{
  if (ls_dp_traits (c->s->dp_kind)->reduces_at_the_end)
    return fsdp2_reductions (c, rank->sum);
  return c->s->dp_kind == LS_DP_MEGATRON ? megatron_reductions (c, rank) : 0;
}
