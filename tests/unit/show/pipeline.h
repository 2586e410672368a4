/* A pipeline's step written as a timeline, for tests of what io draws and exports:
 * stages, micro-batches and chunks in the order of a schedule of parallel/, with
 * receives, kernels, a tensor-parallel collective and sends. Times are simple
 * (an eager send, one latency), not those of exec. */
#ifndef LS_TEST_PIPELINE_H
#define LS_TEST_PIPELINE_H

#include <string.h>

#include "exec/replay/timeline.h"
#include "network/coll.h"
#include "schedules/sched.h"

typedef struct {
  uint32_t pp, vpp, n_micro_batches;
  LsTime forward, backward, recompute, tp, p2p, optimizer, dp; /* recompute 0: none */
} PipelineShape;

/* Segments: 4 * (0 forward, 1 backward) + 2 * receives + sends, then the end of the
 * step. All have the ops below; those that do not occur leave no span. */
#define PIPELINE_FINISH     8
#define PIPELINE_N_SEGMENTS 9
enum { PIPELINE_RECEIVE, PIPELINE_FIRST, PIPELINE_TP, PIPELINE_SECOND, PIPELINE_SEND, PIPELINE_N_OPS };

typedef struct {
  PipelineShape shape;
  LsPlan plan;
  LsTimeline t;
  LsOp ops[PIPELINE_N_SEGMENTS][PIPELINE_N_OPS];
  LsTransfer transfers[2][2]; /* [direction][send] */
  LsSegment segments[PIPELINE_N_SEGMENTS];
  LsCommunicator comms[2];
  LsTime *sent[2]; /* [direction][stage * n_micro_batches + mb]: end of the send into that stage */
} Pipeline;

static inline LsOp
pipeline_op (LsOpKind kind, LsStream stream, LsTag tag, const char *name)
{
  return (LsOp) { .kind = kind,
                  .stream = stream,
                  .tag = tag,
                  .name = name,
                  .kernel = UINT32_MAX,
                  .layer = UINT16_MAX,
                  .unit = UINT16_MAX };
}

static inline void
pipeline_init_segment (Pipeline *p, int segment)
{
  static const LsTag tags[3] = { LS_TAG_F, LS_TAG_B, LS_TAG_OPTIMIZER };
  static const char *const names[3] = { "forward", "backward", "adam" };
  int i = segment / 4;
  LsStream pp = i == 0 ? LS_STREAM_PP_FWD : LS_STREAM_PP_BWD;
  LsOp *ops = p->ops[segment];
  ops[PIPELINE_RECEIVE] = pipeline_op (LS_OP_P2P, pp, tags[i], "receive");
  ops[PIPELINE_FIRST] = pipeline_op (LS_OP_KERNEL, LS_STREAM_COMPUTE,
                                     i == 1 && p->shape.recompute > 0 ? LS_TAG_RECOMPUTE : tags[i], names[i]);
  ops[PIPELINE_TP] = pipeline_op (LS_OP_COLLECTIVE, i == 2 ? LS_STREAM_DP : LS_STREAM_TP, tags[i], NULL);
  ops[PIPELINE_TP].slot = i == 2 ? LS_SLOT_DP : LS_SLOT_TP;
  ops[PIPELINE_TP].coll = LS_COLL_ALL_REDUCE;
  ops[PIPELINE_TP].bytes = 4096;
  ops[PIPELINE_SECOND] = pipeline_op (LS_OP_KERNEL, LS_STREAM_COMPUTE, tags[i], names[i]);
  ops[PIPELINE_SEND] = pipeline_op (LS_OP_P2P, pp, tags[i], "send");
  p->segments[segment] = (LsSegment) { names[i], PIPELINE_N_OPS, ops };
  if (segment == PIPELINE_FINISH)
    return;
  ops[PIPELINE_RECEIVE].transfers = &p->transfers[i][0];
  ops[PIPELINE_RECEIVE].n_transfers = (segment & 2) != 0;
  ops[PIPELINE_SEND].transfers = &p->transfers[i][1];
  ops[PIPELINE_SEND].n_transfers = (segment & 1) != 0;
}

static inline void
pipeline_init_plan (Pipeline *p)
{
  for (int i = 0; i < 2; i++) {
    p->transfers[i][0] = (LsTransfer) { .bytes = 1024, .slot = i == 0 ? LS_SLOT_PREV : LS_SLOT_NEXT };
    p->transfers[i][1]
        = (LsTransfer) { .bytes = 1024, .slot = i == 0 ? LS_SLOT_NEXT : LS_SLOT_PREV, .is_send = 1 };
  }
  for (int segment = 0; segment < PIPELINE_N_SEGMENTS; segment++)
    pipeline_init_segment (p, segment);
  static uint32_t pair[] = { 0, 1 }; /* of whom a collective is said to be */
  p->comms[0] = (LsCommunicator) { .axis = LS_AXIS_TP, .n_ranks = 2, .offsets = pair };
  p->comms[1] = (LsCommunicator) { .axis = LS_AXIS_DP, .n_ranks = 2, .offsets = pair };

  uint32_t pp = p->shape.pp;
  p->plan = (LsPlan) {
    .n_ranks = pp,
    .n_micro_batches = p->shape.n_micro_batches,
    .n_chunks = p->shape.vpp,
    .n_segments = PIPELINE_N_SEGMENTS,
    .segments = p->segments,
    .n_roles = pp,
    .programs = g_new0 (LsProgram, pp),
    .n_comms = 2,
    .comms = p->comms,
    .bindings = g_new0 (LsBinding, pp),
  };
  for (uint32_t rank = 0; rank < pp; rank++) {
    LsBinding *b = &p->plan.bindings[rank];
    b->role = rank;
    b->comm[LS_SLOT_TP] = 0;
    b->comm[LS_SLOT_DP] = 1;
    b->peer[0] = (rank + pp - 1) % pp;
    b->peer[1] = (rank + 1) % pp;
  }
}

static inline uint32_t
pipeline_add (Pipeline *p, uint32_t rank, uint16_t op, LsTime start, LsTime matched, LsTime end, LsCause kind,
              uint32_t cause)
{
  LsRankSpans *r = &p->t.ranks[rank];
  if (r->n == r->cap) {
    r->cap = MAX (64, 2 * r->cap);
    r->spans = g_renew (LsSpan, r->spans, r->cap);
  }
  r->spans[r->n] = (LsSpan) {
    .start = start,
    .end = end,
    .matched = matched,
    .op = op,
    .cause_kind = (uint8_t) kind,
    .cause = cause,
    .instance = p->plan.programs[rank].n_instances - 1,
  };
  return r->n++;
}

static inline uint32_t
pipeline_kernel (Pipeline *p, uint32_t rank, uint16_t op, LsTime *at, LsTime duration, uint32_t cause)
{
  uint32_t span = pipeline_add (p, rank, op, *at, duration, *at + duration,
                                cause == LS_SPAN_NONE ? LS_CAUSE_NONE : LS_CAUSE_DEP, cause);
  *at += duration;
  return span;
}

/* Runs one instance; false if its input has not been sent yet. */
static inline bool
pipeline_run (Pipeline *p, uint32_t rank, const LsAction *action, LsTime *at, uint32_t *last)
{
  int direction = action->type == LS_ACTION_F ? 0 : 1;
  uint32_t n_stages = p->shape.pp * p->shape.vpp, stage = action->chunk * p->shape.pp + rank, mb = action->mb;
  bool receives = direction == 0 ? stage > 0 : stage + 1 < n_stages;
  bool sends = direction == 0 ? stage + 1 < n_stages : stage > 0;
  LsTime arrival = p->sent[direction][stage * p->shape.n_micro_batches + mb];
  if (receives && arrival == LS_TIME_NEVER)
    return false;

  LsProgram *program = &p->plan.programs[rank];
  program->instances[program->n_instances++] = (LsInstance) {
    .segment = 4 * (uint32_t) direction + 2 * receives + sends,
    .mb = mb,
    .chunk = action->chunk,
    .stage = (uint16_t) stage,
  };
  uint32_t cause = *last;
  if (receives) {
    LsTime end = MAX (*at, arrival);
    cause = pipeline_add (p, rank, PIPELINE_RECEIVE, *at, MAX (*at, arrival - p->shape.p2p), end,
                          LS_CAUSE_DEP, *last);
    *at = end;
  }
  LsTime work = direction == 0 ? p->shape.forward : p->shape.backward;
  LsTime first = direction == 1 && p->shape.recompute > 0 ? p->shape.recompute : work / 2;
  cause = pipeline_kernel (p, rank, PIPELINE_FIRST, at, first, cause);
  if (p->shape.tp > 0) {
    cause = pipeline_add (p, rank, PIPELINE_TP, *at, *at, *at + p->shape.tp, LS_CAUSE_DEP, cause);
    *at += p->shape.tp;
  }
  *last = pipeline_kernel (p, rank, PIPELINE_SECOND, at,
                           direction == 1 && p->shape.recompute > 0 ? work : work - first, cause);
  if (sends) {
    uint32_t to = direction == 0 ? stage + 1 : stage - 1;
    pipeline_add (p, rank, PIPELINE_SEND, *at, *at, *at + p->shape.p2p, LS_CAUSE_DEP, *last);
    p->sent[direction][to * p->shape.n_micro_batches + mb] = *at + p->shape.p2p;
  }
  return true;
}

static inline void
pipeline_finish (Pipeline *p, LsTime *at, uint32_t *last)
{
  LsTime all = 0;
  for (uint32_t rank = 0; rank < p->shape.pp; rank++)
    all = MAX (all, at[rank]);
  for (uint32_t rank = 0; rank < p->shape.pp; rank++) {
    LsProgram *program = &p->plan.programs[rank];
    program->instances[program->n_instances++]
        = (LsInstance) { .segment = PIPELINE_FINISH, .stage = (uint16_t) rank };
    uint32_t dp
        = pipeline_add (p, rank, PIPELINE_TP, at[rank], all, all + p->shape.dp, LS_CAUSE_DEP, last[rank]);
    LsTime from = all + p->shape.dp;
    pipeline_kernel (p, rank, PIPELINE_SECOND, &from, p->shape.optimizer, dp);
    p->t.window_end = from;
  }
}

static inline void
pipeline_init (Pipeline *p, const char *schedule, PipelineShape shape)
{
  *p = (Pipeline) { .shape = shape };
  pipeline_init_plan (p);
  uint32_t pp = shape.pp, n_slots = pp * shape.vpp * shape.n_micro_batches;
  const LsSched *sched = ls_sched_find (schedule);
  const LsSchedShape sched_shape = { .pp = pp, .vpp = shape.vpp, .n_micro_batches = shape.n_micro_batches };
  g_autoptr (LsOrders) orders = ls_sched_orders (sched, &sched_shape);
  p->t = (LsTimeline) { .plan = &p->plan,
                        .n_ranks = pp,
                        .n_rows = pp,
                        .ranks = g_new0 (LsRankSpans, pp),
                        .multiplicity = g_new (uint32_t, pp),
                        .digest = 1 };
  for (int d = 0; d < 2; d++) {
    p->sent[d] = g_new (LsTime, n_slots);
    for (uint32_t i = 0; i < n_slots; i++)
      p->sent[d][i] = LS_TIME_NEVER;
  }

  g_autofree LsTime *at = g_new0 (LsTime, pp);
  g_autofree uint32_t *last = g_new (uint32_t, pp), *next = g_new0 (uint32_t, pp);
  for (uint32_t rank = 0; rank < pp; rank++) {
    p->plan.programs[rank].instances = g_new0 (LsInstance, orders->ranks[rank]->len + 1);
    p->plan.programs[rank].stage = (uint16_t) rank;
    p->t.multiplicity[rank] = 1;
    last[rank] = LS_SPAN_NONE;
    p->t.ranks[rank].tail_cause = LS_SPAN_NONE;
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t rank = 0; rank < pp; rank++) {
      const GArray *order = orders->ranks[rank];
      while (
          next[rank] < order->len
          && pipeline_run (p, rank, &g_array_index (order, LsAction, next[rank]), &at[rank], &last[rank])) {
        next[rank]++;
        moved = true;
      }
    }
  }
  pipeline_finish (p, at, last);
}

static inline void
pipeline_clear (Pipeline *p)
{
  for (uint32_t rank = 0; rank < p->shape.pp; rank++) {
    g_free (p->plan.programs[rank].instances);
    g_free (p->t.ranks[rank].spans);
  }
  g_free (p->plan.programs);
  g_free (p->plan.bindings);
  g_free (p->t.ranks);
  g_free (p->t.multiplicity);
  g_free (p->sent[0]);
  g_free (p->sent[1]);
}

#endif
