/* exec/blocked.c — what a rank waits for, and the report when everybody waits. */
#include "exec/state.h"

typedef struct {
  LsCause kind;
  uint64_t frame;
  uint16_t op; /* NO_OP: the host alone */
} Block;

static Block
block_of_op (Run *x, Rank *r, uint64_t ordinal, uint16_t index, LsCause kind, uint32_t depth);

/* Whatever keeps the stream from reaching a later op: its head. */
static Block
block_of_stream (Run *x, Rank *r, uint32_t s, uint32_t depth)
{
  const Stream *st = &r->streams[s];
  if (st->op == NO_OP || st->frame >= r->frames_end)
    return (Block) { LS_CAUSE_HOST, r->frames_end, NO_OP };
  return block_of_op (x, r, st->frame, st->op, LS_CAUSE_STREAM, depth);
}

static Block
block_of_host (Run *x, Rank *r, uint32_t depth)
{
  Block none = { LS_CAUSE_HOST, r->frames_end, NO_OP };
  if (r->frames_end == r->frames_first)
    return none;
  uint64_t ordinal = r->frames_end - 1;
  const Frame *f = rank_frame (r, ordinal);
  if (f->n_issued == f->seg->n_ops)
    return none;
  Block b = block_of_op (x, r, ordinal, (uint16_t) f->n_issued, LS_CAUSE_HOST, depth);
  b.kind = LS_CAUSE_HOST;
  return b;
}

/* The running op that, at the end of the chain, op `index` waits for. */
static Block
block_of_op (Run *x, Rank *r, uint64_t ordinal, uint16_t index, LsCause kind, uint32_t depth)
{
  Block self = { kind, ordinal, index };
  const Frame *f = rank_frame (r, ordinal);
  const XOp *op = &f->seg->x[index];
  if (f->state[index] == OP_RUNNING || depth > 64)
    return self;
  if (f->state[index] == OP_WAITING && op->kind != LS_OP_HOST_SYNC)
    return block_of_host (x, r, depth + 1);
  for (uint32_t d = 0; d < op->n_deps; d++) {
    LsDep dep = op->deps[d];
    if (dep.kind == LS_DEP_END && f->state[dep.index] != OP_ENDED)
      return block_of_op (x, r, ordinal, dep.index, LS_CAUSE_DEP, depth + 1);
    if (dep.kind == LS_DEP_STREAM && r->streams[dep.index].frame < ordinal)
      return block_of_stream (x, r, dep.index, depth + 1);
  }
  if (op->kind == LS_OP_HOST_SYNC || op->kind == LS_OP_HOST_DELAY)
    return self;
  const Stream *st = &r->streams[op->stream];
  if (st->frame != ordinal || st->op != index)
    return block_of_stream (x, r, op->stream, depth + 1);
  if (op->kind == LS_OP_WAIT) {
    /* its event is recorded by some op that has not got there: whichever stream
     * is busy with communication holds it up */
    for (uint32_t s = 0; s < LS_N_STREAMS; s++)
      if (s != op->stream && r->streams[s].is_busy)
        return (Block) { LS_CAUSE_DEP, r->streams[s].frame, r->streams[s].op };
  }
  return self;
}

void
blocked_by (Run *x, Rank *r, LsCause *ret_kind, uint32_t *ret_span, uint32_t *ret_step)
{
  *ret_kind = LS_CAUSE_HOST;
  *ret_span = LS_SPAN_NONE;
  *ret_step = 0;
  const Stream *st = &r->streams[LS_STREAM_COMPUTE];
  Block b = st->op == NO_OP ? block_of_host (x, r, 0) : block_of_op (x, r, st->frame, st->op, LS_CAUSE_STREAM, 0);
  *ret_kind = b.kind;
  if (b.op == NO_OP)
    return;
  const Frame *f = rank_frame (r, b.frame);
  if (f->state[b.op] == OP_RUNNING || f->state[b.op] == OP_ENDED) {
    *ret_span = f->span[b.op];
    *ret_step = f->step;
  } else if (f->state[b.op] == OP_ISSUED && f->time[b.op] > x->engine.now) {
    *ret_kind = LS_CAUSE_HOST; /* it merely has not been issued yet */
    *ret_span = f->span[b.op];
    *ret_step = f->step;
  }
}

/* --- the report -------------------------------------------------------------- */

static void
describe_missing (Run *x, GString *text, const Comm *c)
{
  const LsCommunicator *group = &x->plan->comms[c->id];
  uint32_t shown = 0, missing = 0;
  for (uint32_t i = 0; i < group->n_ranks; i++) {
    Rank *r = &x->ranks[group->ranks[i]];
    const Frame *f = c->op[i] != NO_OP && c->frame[i] < r->frames_end && c->frame[i] >= r->frames_first ? rank_frame (r, c->frame[i]) : NULL;
    if (f && c->op[i] < f->seg->n_ops && f->state[c->op[i]] == OP_RUNNING)
      continue;
    if (shown++ < 4)
      g_string_append_printf (text, "%s%u", shown == 1 ? "" : ", ", group->ranks[i]);
    missing++;
  }
  if (missing > 4)
    g_string_append_printf (text, " and %u more", missing - 4);
}

/* First rank that the running op of r waits for, or NO_ID. */
static uint32_t
first_missing (Run *x, Rank *r, const Block *b)
{
  const Frame *f = rank_frame (r, b->frame);
  const LsOp *op = &f->seg->ops[b->op];
  if (op->kind == LS_OP_P2P) {
    for (uint32_t i = 0; i < op->n_transfers; i++) {
      const LsTransfer *t = &op->transfers[i];
      bool is_to_next = t->slot == LS_SLOT_NEXT;
      uint32_t peer = r->binding->peer[is_to_next ? 1 : 0];
      Channel *ch = &x->channels[2 * (t->is_send ? r->id : peer) + (t->is_send == is_to_next ? 0 : 1)];
      if (g_queue_is_empty (t->is_send ? &ch->recvs : &ch->sends))
        return peer;
    }
    return NO_ID;
  }
  if (op->kind != LS_OP_COLLECTIVE)
    return NO_ID;
  const Comm *c = &x->comms[r->binding->comm[op->slot]];
  const LsCommunicator *group = &x->plan->comms[c->id];
  for (uint32_t i = 0; i < group->n_ranks; i++) {
    Rank *m = &x->ranks[group->ranks[i]];
    bool has_arrived = c->frame[i] >= m->frames_first && c->frame[i] < m->frames_end
                       && rank_frame (m, c->frame[i])->state[c->op[i]] == OP_RUNNING
                       && rank_frame (m, c->frame[i])->seg->x[c->op[i]].slot == op->slot;
    if (!has_arrived)
      return group->ranks[i];
  }
  return NO_ID;
}

static Block
block_of_rank (Run *x, Rank *r)
{
  for (uint32_t s = 0; s < LS_N_STREAMS; s++)
    if (r->streams[s].is_busy)
      return (Block) { LS_CAUSE_STREAM, r->streams[s].frame, r->streams[s].op };
  const Stream *st = &r->streams[LS_STREAM_COMPUTE];
  return st->op == NO_OP ? block_of_host (x, r, 0) : block_of_op (x, r, st->frame, st->op, LS_CAUSE_STREAM, 0);
}

static void
describe_rank (Run *x, GString *text, Rank *r, const Block *b)
{
  if (b->op == NO_OP || b->frame >= r->frames_end) {
    g_string_append_printf (text, "  rank %u has finished its program or waits for its host\n", r->id);
    return;
  }
  const Frame *f = rank_frame (r, b->frame);
  const LsOp *op = &f->seg->ops[b->op];
  g_string_append_printf (text, "  rank %u waits in %s (segment %s, micro-batch %u, chunk %u, op %u)", r->id,
                          op->name ? op->name : "an op", x->plan->segments[f->instance->segment].name, f->instance->mb,
                          f->instance->chunk, b->op);
  if (op->kind == LS_OP_COLLECTIVE && f->state[b->op] == OP_RUNNING) {
    const Comm *c = &x->comms[r->binding->comm[op->slot]];
    g_string_append_printf (text, ": %s on the %s communicator; missing: rank ", ls_coll_kind_name (op->coll),
                            ls_axis_name (x->plan->comms[c->id].axis));
    describe_missing (x, text, c);
  } else if (op->kind == LS_OP_P2P && f->state[b->op] == OP_RUNNING) {
    uint32_t peer = first_missing (x, r, b);
    if (peer != NO_ID)
      g_string_append_printf (text, ": no matching send or receive from rank %u", peer);
  } else if (op->kind == LS_OP_WAIT)
    g_string_append (text, ": its event is never recorded");
  g_string_append_c (text, '\n');
}

GError *
deadlock_report (Run *x)
{
  g_autoptr (GString) text = g_string_new (NULL);
  uint32_t n_waiting = 0, first = NO_ID;
  for (uint32_t i = 0; i < x->plan->n_ranks; i++) {
    if (x->ranks[i].steps_done >= x->n_steps)
      continue;
    if (first == NO_ID)
      first = i;
    n_waiting++;
  }
  g_string_append_printf (text, "deadlock: %u of %u ranks wait and no event is left\n", n_waiting, x->plan->n_ranks);

  /* Follow who waits for whom until a rank comes round again. */
  g_autofree uint32_t *visited = g_new0 (uint32_t, x->plan->n_ranks);
  uint32_t at = first, order = 0;
  while (at != NO_ID && visited[at] == 0 && order < 16) {
    visited[at] = ++order;
    Block b = block_of_rank (x, &x->ranks[at]);
    describe_rank (x, text, &x->ranks[at], &b);
    bool has_op = b.op != NO_OP && b.frame < x->ranks[at].frames_end;
    at = has_op ? first_missing (x, &x->ranks[at], &b) : NO_ID;
  }
  if (at != NO_ID && visited[at] > 0)
    g_string_append_printf (text, "  cycle: back to rank %u", at);
  else
    g_string_truncate (text, text->len - 1);
  return g_error_new_literal (LS_ERROR, LS_ERROR_DEADLOCK, text->str);
}
