/* A legal plan that fits on a page: two stages, two data-parallel replicas, two
 * micro-batches of 1F1B.
 *
 *     rank 0, 1   role 0   F0 F1 B0 B1 step      data groups  {0, 1} {2, 3}
 *     rank 2, 3   role 1   F0 B0 F1 B1 step      peers        0-2, 1-3
 *
 * Everything lies in the struct, so that a test can break one thing. */
#ifndef LS_TEST_TINY_PLAN_H
#define LS_TEST_TINY_PLAN_H

#include <string.h>

#include "plan/plan.h"

enum { F0, B0, F1, B1, STEP, N_SEGMENTS }; /* forward, backward of stage 0, 1 */

typedef struct {
  LsPlan plan;
  LsSegment segments[N_SEGMENTS];
  LsOp ops[N_SEGMENTS][3];
  LsDep after_first[1], after_compute[1];
  LsTransfer to_next[1], from_next[1], to_prev[1], from_prev[1];
  LsBufferEvent alloc[1], release[1];
  LsInstance instances[2][5];
  LsProgram programs[2];
  LsKernel kernels[1];
  LsCommunicator comms[2];
  uint32_t members[2][2];
  LsBinding bindings[4];
  uint32_t gpus[4];
} TinyPlan;

static inline LsOp
tiny_op (const char *name, LsOpKind kind, LsStream stream)
{
  return (LsOp) { .name = name,
                  .kind = kind,
                  .stream = stream,
                  .layer = UINT16_MAX,
                  .unit = UINT16_MAX,
                  .kernel = kind == LS_OP_KERNEL ? 0 : UINT32_MAX,
                  .recorded = LS_TIME_NEVER };
}

static inline LsOp
tiny_kernel (const char *name, const LsBufferEvent *buffer)
{
  LsOp op = tiny_op (name, LS_OP_KERNEL, LS_STREAM_COMPUTE);
  op.buffers = buffer;
  op.n_buffers = buffer ? 1 : 0;
  return op;
}

static inline LsOp
tiny_p2p (const char *name, const LsTransfer *transfer)
{
  LsOp op = tiny_op (name, LS_OP_P2P, LS_STREAM_PP_FWD);
  op.transfers = transfer;
  op.n_transfers = 1;
  return op;
}

static inline LsOp
tiny_after (LsOp op, const LsDep *dep)
{
  op.deps = dep;
  op.n_deps = 1;
  return op;
}

static inline void
tiny_segments (TinyPlan *t)
{
  static const char *const names[N_SEGMENTS]
      = { "forward 0", "backward 0", "forward 1", "backward 1", "step" };
  static const uint32_t n_ops[N_SEGMENTS] = { 2, 3, 2, 3, 3 };
  for (uint32_t i = 0; i < N_SEGMENTS; i++)
    t->segments[i] = (LsSegment) { .name = names[i], .n_ops = n_ops[i], .ops = t->ops[i] };

  t->after_first[0] = (LsDep) { LS_DEP_END, 0 };
  t->after_compute[0] = (LsDep) { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  t->to_next[0] = (LsTransfer) { 1000, LS_SLOT_NEXT, 1 };
  t->from_next[0] = (LsTransfer) { 1000, LS_SLOT_NEXT, 0 };
  t->to_prev[0] = (LsTransfer) { 1000, LS_SLOT_PREV, 1 };
  t->from_prev[0] = (LsTransfer) { 1000, LS_SLOT_PREV, 0 };
  t->alloc[0] = (LsBufferEvent) { .bytes = 100, .id = 7, .category = LS_MEM_ACTIVATIONS };
  t->release[0] = (LsBufferEvent) {
    .bytes = 100, .id = 7, .category = LS_MEM_ACTIVATIONS, .is_free = 1, .when = LS_AT_END
  };

  t->ops[F0][0] = tiny_kernel ("layer", t->alloc);
  t->ops[F0][1] = tiny_after (tiny_p2p ("send activation", t->to_next), t->after_first);
  t->ops[B0][0] = tiny_p2p ("receive gradient", t->from_next);
  t->ops[B0][1] = tiny_after (tiny_kernel ("layer gradient", t->release), t->after_first);
  t->ops[B0][2] = tiny_op ("gradient ready", LS_OP_RECORD, LS_STREAM_COMPUTE);

  t->ops[F1][0] = tiny_p2p ("receive activation", t->from_prev);
  t->ops[F1][1] = tiny_after (tiny_kernel ("layer", t->alloc), t->after_first);
  t->ops[B1][0] = tiny_kernel ("layer gradient", t->release);
  t->ops[B1][1] = tiny_after (tiny_p2p ("send gradient", t->to_prev), t->after_first);
  t->ops[B1][2] = tiny_op ("gradient ready", LS_OP_RECORD, LS_STREAM_COMPUTE);

  t->ops[STEP][0] = tiny_op ("await gradient", LS_OP_WAIT, LS_STREAM_DP);
  t->ops[STEP][1] = tiny_after (tiny_op ("all-reduce", LS_OP_COLLECTIVE, LS_STREAM_DP), t->after_compute);
  t->ops[STEP][1].slot = LS_SLOT_DP;
  t->ops[STEP][1].bytes = 4096;
  t->ops[STEP][2] = tiny_kernel ("adam", NULL);
}

static inline void
tiny_programs (TinyPlan *t)
{
  static const LsInstance of_stage[2][5] = {
    { { F0, 0 }, { F0, 1 }, { B0, 0 }, { B0, 1 }, { STEP, 1 } },
    { { F1, 0 }, { B1, 0 }, { F1, 1 }, { B1, 1 }, { STEP, 1 } },
  };
  memcpy (t->instances, of_stage, sizeof of_stage);
  for (uint16_t role = 0; role < 2; role++)
    t->programs[role]
        = (LsProgram) { .n_instances = 5, .instances = t->instances[role], .n_events = 1, .stage = role };
}

static inline void
tiny_bindings (TinyPlan *t)
{
  for (uint32_t rank = 0; rank < 4; rank++) {
    uint32_t stage = rank / 2;
    LsBinding *b = &t->bindings[rank];
    memset (b, 0xff, sizeof *b);
    b->role = stage;
    b->comm[LS_SLOT_DP] = stage;
    b->member[LS_SLOT_DP] = rank % 2;
    b->peer[stage == 0 ? 1 : 0] = stage == 0 ? rank + 2 : rank - 2;
    t->gpus[rank] = rank;
    t->members[stage][rank % 2] = rank;
  }
  for (uint32_t stage = 0; stage < 2; stage++)
    t->comms[stage] = (LsCommunicator) { .axis = LS_AXIS_DP, .n_ranks = 2, .offsets = t->members[stage] };
}

static inline void
tiny_plan_init (TinyPlan *t)
{
  memset (t, 0, sizeof *t);
  tiny_segments (t);
  tiny_programs (t);
  tiny_bindings (t);
  t->plan = (LsPlan) {
    .n_ranks = 4,
    .n_micro_batches = 2,
    .n_chunks = 1,
    .n_segments = N_SEGMENTS,
    .segments = t->segments,
    .n_roles = 2,
    .programs = t->programs,
    .n_kernels = 1,
    .kernels = t->kernels,
    .n_comms = 2,
    .comms = t->comms,
    .bindings = t->bindings,
    .gpu_of_rank = t->gpus,
  };
}

#endif
