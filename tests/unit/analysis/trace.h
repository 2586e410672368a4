/* A timeline written by hand, for the tests of analysis: one plan whose single
 * segment holds one op of each interesting kind, and spans that name them. Ranks
 * share one role, so a span is (op, start, matched, end, cause). */
#ifndef LS_TEST_TRACE_H
#define LS_TEST_TRACE_H

#include "exec/replay/timeline.h"

enum {
  OP_F,
  OP_I,
  OP_W,
  OP_B,
  OP_RECOMPUTE,
  OP_OPTIMIZER,
  OP_SYNC, /* kernels  */
  OP_TP,
  OP_DP,
  OP_CP,
  OP_EP,
  OP_EMBEDDING,
  OP_NORM,
  OP_P2P, /* transfers */
  OP_COPY,
  OP_HOST_DELAY,
  OP_SIDE_KERNEL,
  N_OPS
};

#define NEVER     LS_TIME_NEVER
#define NONE      LS_SPAN_NONE
#define MAX_RANKS 4

typedef struct {
  int op;
  LsTime start, matched, end; /* matched of a kernel: its time alone */
  LsCause cause_kind;
  uint32_t cause;
} TestSpan;

typedef struct {
  LsOp ops[N_OPS];
  LsSegment segment;
  LsInstance instance;
  LsProgram program;
  LsCommunicator comms[7];
  LsBinding bindings[MAX_RANKS];
  LsPlan plan;
  LsRankSpans ranks[MAX_RANKS];
  LsSpan spans[MAX_RANKS][16];
  uint32_t multiplicity[MAX_RANKS];
  LsTimeline t;
} Trace;

static inline void
trace_op (Trace *trace, int op, LsOpKind kind, LsStream stream, LsTag tag, LsSlot slot)
{
  trace->ops[op] = (LsOp) { .kind = kind, .stream = stream, .tag = tag, .slot = slot, .kernel = UINT32_MAX };
}

static inline void
trace_comm (Trace *trace, LsSlot slot, uint32_t id, LsAxis axis, bool spans_stages)
{
  trace->comms[id] = (LsCommunicator) { .axis = axis, .spans_stages = spans_stages };
  for (int rank = 0; rank < MAX_RANKS; rank++)
    trace->bindings[rank].comm[slot] = id;
}

static inline void
trace_init (Trace *trace, uint32_t n_ranks, LsTime window_start, LsTime window_end)
{
  *trace = (Trace) { 0 };
  static const LsTag tags[]
      = { LS_TAG_F, LS_TAG_I, LS_TAG_W, LS_TAG_B, LS_TAG_RECOMPUTE, LS_TAG_OPTIMIZER, LS_TAG_SYNC };
  for (int op = OP_F; op <= OP_SYNC; op++)
    trace_op (trace, op, LS_OP_KERNEL, LS_STREAM_COMPUTE, tags[op], 0);
  trace_op (trace, OP_TP, LS_OP_COLLECTIVE, LS_STREAM_TP, LS_TAG_F, LS_SLOT_TP);
  trace_op (trace, OP_DP, LS_OP_COLLECTIVE, LS_STREAM_DP, LS_TAG_SYNC, LS_SLOT_DP);
  trace_op (trace, OP_CP, LS_OP_COLLECTIVE, LS_STREAM_TP, LS_TAG_F, LS_SLOT_CP);
  trace_op (trace, OP_EP, LS_OP_COLLECTIVE, LS_STREAM_TP, LS_TAG_F, LS_SLOT_EP);
  trace_op (trace, OP_EMBEDDING, LS_OP_COLLECTIVE, LS_STREAM_GLOBAL, LS_TAG_SYNC, LS_SLOT_EMBEDDING);
  trace_op (trace, OP_NORM, LS_OP_COLLECTIVE, LS_STREAM_GLOBAL, LS_TAG_SYNC, LS_SLOT_MODEL);
  trace_op (trace, OP_P2P, LS_OP_P2P, LS_STREAM_PP_FWD, LS_TAG_F, 0);
  trace_op (trace, OP_COPY, LS_OP_COPY, LS_STREAM_COPY, LS_TAG_F, 0);
  trace_op (trace, OP_HOST_DELAY, LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, LS_TAG_F, 0);
  trace_op (trace, OP_SIDE_KERNEL, LS_OP_KERNEL, LS_STREAM_COPY, LS_TAG_F, 0);
  trace_comm (trace, LS_SLOT_TP, 0, LS_AXIS_TP, false);
  trace_comm (trace, LS_SLOT_DP, 1, LS_AXIS_DP, false);
  trace_comm (trace, LS_SLOT_CP, 2, LS_AXIS_CP, false);
  trace_comm (trace, LS_SLOT_EP, 3, LS_AXIS_EP, false);
  trace_comm (trace, LS_SLOT_EMBEDDING, 4, LS_AXIS_PP, true);
  trace_comm (trace, LS_SLOT_MODEL, 5, LS_AXIS_TP, true);

  trace->segment = (LsSegment) { .name = "all", .n_ops = N_OPS, .ops = trace->ops };
  trace->program = (LsProgram) { .n_instances = 1, .instances = &trace->instance };
  trace->plan = (LsPlan) {
    .n_ranks = n_ranks,
    .n_segments = 1,
    .segments = &trace->segment,
    .n_roles = 1,
    .programs = &trace->program,
    .n_comms = 6,
    .comms = trace->comms,
    .bindings = trace->bindings,
  };
  for (uint32_t rank = 0; rank < n_ranks; rank++) {
    trace->ranks[rank] = (LsRankSpans) { .spans = trace->spans[rank], .cap = 16, .tail_cause = NONE };
    trace->multiplicity[rank] = 1;
  }
  trace->t = (LsTimeline) {
    .plan = &trace->plan,
    .n_ranks = n_ranks,
    .n_rows = n_ranks,
    .ranks = trace->ranks,
    .multiplicity = trace->multiplicity,
    .window_start = window_start,
    .window_end = window_end,
  };
}

static inline void
trace_add (Trace *trace, uint32_t rank, TestSpan s)
{
  LsRankSpans *r = &trace->ranks[rank];
  g_assert (r->n < r->cap);
  r->spans[r->n++] = (LsSpan) {
    .start = s.start,
    .end = s.end,
    .matched = s.matched,
    .op = (uint16_t) s.op,
    .cause = s.cause,
    .cause_kind = (uint8_t) s.cause_kind,
  };
}

#define TRACE_ADD(trace, rank, ...)                                                                          \
  do {                                                                                                       \
    static const TestSpan spans_[] = { __VA_ARGS__ };                                                        \
    for (size_t i_ = 0; i_ < G_N_ELEMENTS (spans_); i_++)                                                    \
      trace_add ((trace), (rank), spans_[i_]);                                                               \
  } while (0)

#endif
