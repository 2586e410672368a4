/* lower/pipeline/lower_replicas.c — parameters that are there several times because of the schedule.
 *
 * Pipes both ways (DualPipe, Chimera). Each of K pipes has a replica of the model and runs a
 * K-th of the micro-batches, so a rank holds K stages, and a stage is on K ranks, all of which
 * hold the same K stages (plan/bind.h, slot pipes). A rank has K times the parameters,
 * gradients and optimizer states of one stage, and the gradients of its stages, each of one
 * pipe's micro-batches, must be summed over these ranks.
 *
 * That is done at the end of the step, stage by stage, behind the sum over dp, which may
 * overlap the backward: sums commute. With a distributed optimizer only the part that a rank
 * owns is summed. Deviation: Chimera's eager reduction of stages that are done early is not here,
 * and its paper sums over pipes and dp in one collective.
 *
 * Versions (PipeDream): rank r of p keeps p - r versions of its weights, as each backward must
 * see those of its forward; nothing else is there more than once. */
#include "lower/data/lower_dp.h"
#include "lower/lower_step.h"

/* Elements of a chunk whose gradients this rank owns. */
static uint64_t
n_owned (const Lower *l, const Chunk *c)
{
  const uint64_t n[2] = { c->n_params - c->n_expert, c->n_expert };
  uint64_t owned = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    uint32_t params, grads, optimizer;
    l->backend->cuts (l, is_expert, &params, &grads, &optimizer);
    owned += dp_part (n[is_expert], optimizer);
  }
  return owned;
}

static void
reduce_stage (Build *b, const Chunk *c)
{
  const Lower *l = b->l;
  build_join (b,
              build_coll (b, LS_STREAM_GLOBAL, LS_SLOT_PIPES, LS_COLL_ALL_REDUCE,
                          dp_grad_bytes (l, n_owned (l, c)), l->shard.grad_dtype, LS_TAG_SYNC,
                          "pipes grad all-reduce"));
}

void
reduce_pipes (Build *b, uint32_t pp_rank)
{
  const Lower *l = b->l;
  for (uint32_t stage = 0; has_pipes (l) && stage < l->n_stages; stage++)
    for (uint32_t c = 0; c < l->n_chunks; c++)
      if (stage_at (l, pp_rank, c) == stage)
        reduce_stage (b, chunk_at (l, pp_rank, c));
}

uint32_t
n_weight_versions (const Lower *l, uint32_t pp_rank)
{
  LsSchedShape shape = ls_strategy_sched_shape (l->s, l->n_micro_batches);
  return ls_sched_n_versions (l->sched, &shape, pp_rank);
}
