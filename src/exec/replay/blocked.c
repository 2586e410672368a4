/* exec/replay/blocked.c — what a rank waits for, and the report when everybody waits. */
#include <lockstep/error.h>

#include "exec/replay/state.h"

typedef struct {
  LsCause kind;
  uint64_t frame;
  uint16_t op; /* NO_OP: the host alone */
} Block;

static Block block_of_op (Run *x, Rank *r, uint64_t ordinal, uint16_t index, LsCause kind, uint32_t depth);

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
  if (f->state[index] == OP_WAITING && !ls_op_kinds[op->kind].host_waits)
    return block_of_host (x, r, depth + 1);
  for (uint32_t d = 0; d < op->n_deps; d++) {
    LsDep dep = op->deps[d];
    if (dep.kind == LS_DEP_END && f->state[dep.index] != OP_ENDED)
      return block_of_op (x, r, ordinal, dep.index, LS_CAUSE_DEP, depth + 1);
    if (dep.kind == LS_DEP_STREAM && r->streams[dep.index].frame < ordinal)
      return block_of_stream (x, r, dep.index, depth + 1);
  }
  if (ls_op_is_of_host (op->kind))
    return self;
  const Stream *st = &r->streams[op->stream];
  if (st->frame != ordinal || st->op != index)
    return block_of_stream (x, r, op->stream, depth + 1);
  if (ls_op_awaits (&f->seg->ops[index])) {
    /* its event is recorded by some op that has not got there: whichever stream
     * is busy with communication holds it up */
    for (uint32_t s = 0; s < LS_N_STREAMS; s++)
      if (s != op->stream && r->streams[s].is_busy)
        return (Block) { LS_CAUSE_DEP, r->streams[s].frame, r->streams[s].op };
  }
  return self;
}

void
blocked_by (Run *x, Rank *r, LsCause *ret_kind, SpanRef *ret_span)
{
  *ret_span = LS_SPAN_NONE;
  const Stream *st = &r->streams[LS_STREAM_COMPUTE];
  Block b
      = st->op == NO_OP ? block_of_host (x, r, 0) : block_of_op (x, r, st->frame, st->op, LS_CAUSE_STREAM, 0);
  *ret_kind = b.kind;
  if (b.op == NO_OP)
    return;
  const Frame *f = rank_frame (r, b.frame);
  if (f->state[b.op] != OP_WAITING)
    *ret_span = f->span[b.op];
  if (f->state[b.op] == OP_ISSUED && f->issued[b.op] > x->engine.now)
    *ret_kind = LS_CAUSE_HOST; /* it merely has not been issued yet */
  else if (f->state[b.op] == OP_ISSUED)
    *ret_span = LS_SPAN_NONE; /* that would be what held up the host */
}

/* --- the report -------------------------------------------------------------- */

static bool
has_arrived (Run *x, const Comm *c, uint32_t member)
{
  Rank *r = &x->ranks[ls_comm_rank (&c->group, member)];
  uint64_t frame = c->frame[member];
  uint16_t op = c->op[member];
  if (op == NO_OP || frame < r->frames_first || frame >= r->frames_end)
    return false;
  const Frame *f = rank_frame (r, frame);
  return op < f->seg->n_ops && f->state[op] == OP_RUNNING && ls_op_has (f->seg->x[op].kind, LS_HAS_CALL)
      && r->binding->comm[f->seg->x[op].slot] == c->id;
}

static void
describe_missing (Run *x, GString *text, const Comm *c)
{
  const LsCommunicator *group = &c->group;
  uint32_t n_missing = 0;
  for (uint32_t i = 0; i < group->n_ranks; i++)
    if (!has_arrived (x, c, i) && n_missing++ < 4)
      g_string_append_printf (text, "%s%u", n_missing == 1 ? "" : ", ", ls_comm_rank (group, i));
  if (n_missing > 4)
    g_string_append_printf (text, " and %u more", n_missing - 4);
}

static bool
has_post (GQueue *posts, uint32_t rank, const Block *b)
{
  for (GList *l = posts->head; l; l = l->next) {
    const Post *p = l->data;
    if (p->rank == rank && p->frame == b->frame && p->op == b->op)
      return true;
  }
  return false;
}

/* The peer of the first transfer of the group that is neither over nor matched. */
static uint32_t
missing_peer (Run *x, Rank *r, const Block *b, const LsOp *op)
{
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    Channel *ch = group_channel (x, r, t);
    if (has_post (t->is_send ? &ch->sends : &ch->recvs, r->id, b)
        && g_queue_is_empty (t->is_send ? &ch->recvs : &ch->sends))
      return t->is_send ? ch->to : ch->from;
  }
  return NO_ID;
}

/* First rank that the running op of r waits for, or NO_ID. */
static uint32_t
first_missing (Run *x, Rank *r, const Block *b)
{
  const Frame *f = rank_frame (r, b->frame);
  const LsOp *op = &f->seg->ops[b->op];
  if (ls_op_has (op->kind, LS_HAS_TRANSFERS))
    return missing_peer (x, r, b, op);
  if (!ls_op_has (op->kind, LS_HAS_CALL))
    return NO_ID;
  const Comm *c = &x->comms[r->binding->comm[op->slot]];
  const LsCommunicator *group = &c->group;
  for (uint32_t i = 0; i < group->n_ranks; i++)
    if (!has_arrived (x, c, i))
      return ls_comm_rank (group, i);
  return NO_ID;
}

static Block
block_of_rank (Run *x, Rank *r)
{
  for (uint32_t s = 0; s < LS_N_STREAMS; s++)
    if (r->streams[s].is_busy)
      return (Block) { LS_CAUSE_STREAM, r->streams[s].frame, r->streams[s].op };
  const Stream *st = &r->streams[LS_STREAM_COMPUTE];
  return st->op == NO_OP ? block_of_host (x, r, 0)
                         : block_of_op (x, r, st->frame, st->op, LS_CAUSE_STREAM, 0);
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
                          op->name ? op->name : "an op", x->plan->segments[f->instance->segment].name,
                          f->instance->mb, f->instance->chunk, b->op);
  if (ls_op_has (op->kind, LS_HAS_CALL) && f->state[b->op] == OP_RUNNING) {
    const Comm *c = &x->comms[r->binding->comm[op->slot]];
    g_string_append_printf (text, ": %s on the %s communicator; missing: rank ", ls_coll_kind_name (op->coll),
                            ls_axis_names[c->group.axis].name);
    describe_missing (x, text, c);
  } else if (ls_op_has (op->kind, LS_HAS_TRANSFERS) && f->state[b->op] == OP_RUNNING) {
    uint32_t peer = first_missing (x, r, b);
    if (peer != NO_ID)
      g_string_append_printf (text, ": no matching send or receive from rank %u", peer);
  } else if (ls_op_awaits (op))
    g_string_append (text, ": its event is never recorded");
  g_string_append_c (text, '\n');
}

GError *
deadlock_report (Run *x)
{
  g_autoptr (GString) text = g_string_new (NULL);
  uint32_t n_waiting = 0, first = NO_ID;
  uint32_t n_ranks = 0;
  for (uint32_t i = 0; i < x->plan->n_ranks; i++) {
    n_ranks += !x->ranks[i].job->is_absent;
    if (x->ranks[i].steps_done >= x->n_steps || x->ranks[i].job->is_absent)
      continue;
    if (first == NO_ID)
      first = i;
    n_waiting++;
  }
  g_string_append_printf (text, "deadlock: %u of %u ranks wait and no event is left\n", n_waiting, n_ranks);

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
