#include "show/run/p2p_pairs.h"

#include "base/order.h"

/* Transfers of a program before each instance: [PREV, NEXT][receive, send]. */
typedef struct {
  uint32_t n[2][2];
} Count;

/* One side of a transfer. */
typedef struct {
  uint32_t from, to;
  uint32_t ordinal;
  uint32_t span;
  uint8_t step;
  uint8_t is_forward; /* to the next stage */
  uint8_t is_send;
} End;

static void
count_op (const LsOp *op, Count *count)
{
  if (op->kind != LS_OP_P2P)
    return;
  for (uint16_t i = 0; i < op->n_transfers; i++)
    count->n[op->transfers[i].slot == LS_SLOT_NEXT][op->transfers[i].is_send != 0]++;
}

/* [n_instances], newly allocated. */
static Count *
count_before_instances (const LsPlan *plan, const LsProgram *program)
{
  Count *before = g_new (Count, program->n_instances);
  Count count = { 0 };
  for (uint32_t i = 0; i < program->n_instances; i++) {
    before[i] = count;
    const LsSegment *segment = &plan->segments[program->instances[i].segment];
    for (uint32_t op = 0; op < segment->n_ops; op++)
      count_op (&segment->ops[op], &count);
  }
  return before;
}

static void
append_ends (const LsTimeline *t, uint32_t rank, uint32_t index, const Count *before, GArray *ends)
{
  const LsSpan *span = &t->ranks[rank].spans[index];
  const LsOp *op = ls_span_op (t, rank, span);
  const LsSegment *segment = &t->plan->segments[ls_span_instance (t, rank, span)->segment];
  const LsBinding binding = ls_plan_binding (t->plan, rank);

  Count count = before[span->instance];
  for (uint32_t i = 0; i < span->op; i++)
    count_op (&segment->ops[i], &count);

  for (uint16_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *transfer = &op->transfers[i];
    bool is_next = transfer->slot == LS_SLOT_NEXT, is_send = transfer->is_send != 0;
    uint32_t peer = ls_timeline_representative (t, binding.peer[is_next]), *n = &count.n[is_next][is_send];
    End end = {
      .from = is_send ? rank : peer,
      .to = is_send ? peer : rank,
      .ordinal = (*n)++,
      .span = index,
      .step = span->step,
      .is_forward = is_send == is_next,
      .is_send = is_send,
    };
    g_array_append_val (ends, end);
  }
}

static int
compare_ends (const void *a, const void *b)
{
  const End *x = a, *y = b;
  LS_SMALLER_FIRST (x->from, y->from);
  LS_SMALLER_FIRST (x->to, y->to);
  LS_SMALLER_FIRST (x->is_forward, y->is_forward);
  LS_SMALLER_FIRST (x->step, y->step);
  LS_SMALLER_FIRST (x->ordinal, y->ordinal);
  return LS_ORDER (x->is_send, y->is_send);
}

static gboolean
is_pair (const End *receive, const End *send)
{
  return receive->from == send->from && receive->to == send->to && receive->is_forward == send->is_forward
      && receive->step == send->step && receive->ordinal == send->ordinal && !receive->is_send
      && send->is_send;
}

static GArray *
collect_ends (const LsTimeline *t)
{
  GArray *ends = g_array_new (FALSE, FALSE, sizeof (End));
  g_autofree Count **before = g_new0 (Count *, t->plan->n_roles);
  for (uint32_t rank = 0; rank < t->n_ranks; rank++) {
    uint32_t role = ls_plan_role (t->plan, rank);
    for (uint32_t i = 0; i < t->ranks[rank].n; i++) {
      if (ls_span_op (t, rank, &t->ranks[rank].spans[i])->kind != LS_OP_P2P)
        continue;
      if (!before[role])
        before[role] = count_before_instances (t->plan, &t->plan->programs[role]);
      append_ends (t, rank, i, before[role], ends);
    }
  }
  for (uint32_t role = 0; role < t->plan->n_roles; role++)
    g_free (before[role]);
  return ends;
}

GArray *
ls_p2p_pairs (const LsTimeline *t)
{
  g_autoptr (GArray) ends = collect_ends (t);
  g_array_sort (ends, compare_ends);

  GArray *pairs = g_array_new (FALSE, FALSE, sizeof (LsP2pPair));
  for (guint i = 1; i < ends->len; i++) {
    const End *receive = &g_array_index (ends, End, i - 1), *send = &g_array_index (ends, End, i);
    if (!is_pair (receive, send))
      continue;
    LsP2pPair pair
        = { .from = send->from, .to = send->to, .from_span = send->span, .to_span = receive->span };
    g_array_append_val (pairs, pair);
  }
  return pairs;
}
