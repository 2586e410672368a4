/* lower/pipeline/lower_action.c — an action of a schedule as instances in the program of a pipeline
 * rank: the pass itself, and what data parallelism and post-validation put around it. */
#include "lower/lower_step.h"
#include "lower/pipeline/lower_order.h"
#include "lower/pipeline/lower_pipe.h"

static uint32_t
stage_of (const Pipe *p, uint32_t chunk)
{
  return stage_at (p->l, p->rank, chunk);
}

void
pipe_add (Pipe *p, uint32_t segment, uint32_t mb, uint32_t chunk)
{
  LsInstance i = { segment, mb, (uint16_t) chunk, (uint16_t) stage_of (p, chunk) };
  g_array_append_val (p->instances, i);
}

const LsAction *
pipe_action (const Pipe *p, guint i)
{
  return i < p->actions->len ? &g_array_index (p->actions, LsAction, i) : NULL;
}

/* Post-validation: before the first backward. */
static void
check_norm (Pipe *p)
{
  uint32_t check = p->has_backward ? UINT32_MAX : segment_check_norm (p->l, p->rank);
  if (check != UINT32_MAX)
    pipe_add (p, check, 0, 0);
  p->has_backward = true;
}

/* For the micro-batch that needs the parameters first. */
void
pipe_add_gather (Pipe *p, uint32_t segment, uint32_t chunk)
{
  const GArray *actions = p->l->orders->ranks[p->rank];
  pipe_add (p, segment, g_array_index (actions, LsAction, p->turns[chunk].first_forward).mb, chunk);
}

static void
gather_between (Pipe *p, guint number)
{
  for (uint32_t c = 0; c < p->l->n_chunks; c++)
    if (p->dp_turns[c].gather_before == number)
      pipe_add_gather (p, segment_gather_chunk (p->l, p->rank, c), c);
}

static void
reduce_between (Pipe *p, guint number)
{
  for (uint32_t c = 0; c < p->l->n_chunks; c++)
    if (p->dp_turns[c].reduce_after == number)
      pipe_add (p, segment_reduce_chunk (p->l, p->rank, c), 0, c);
}

uint16_t
pipe_build_group (Build *b, LsStream stream, uint32_t what, uint64_t bytes, const char *name)
{
  const Lower *l = b->l;
  LsTransfer *t = ls_arena_new_array (l->plan->arena, LsTransfer, 4);
  const uint8_t max_ctas = (uint8_t) l->s->mp.pp_max_ctas;
  uint16_t n = 0;
  /* Megatron's order: send previous, receive previous, send next, receive next. */
  if (what & SEND_B)
    t[n++] = (LsTransfer) { bytes, LS_SLOT_PREV, true, max_ctas };
  if (what & RECV_F)
    t[n++] = (LsTransfer) { bytes, LS_SLOT_PREV, false, max_ctas };
  if (what & SEND_F)
    t[n++] = (LsTransfer) { bytes, LS_SLOT_NEXT, true, max_ctas };
  if (what & RECV_B)
    t[n++] = (LsTransfer) { bytes, LS_SLOT_NEXT, false, max_ctas };
  LsOp op = ls_op_blank (LS_OP_P2P, stream, LS_TAG_SYNC, name);
  op.host = LS_HOST_COMM;
  op.dtype = (uint8_t) l->shard.dtype;
  op.transfers = t;
  op.n_transfers = n;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  return build_op (b, op, &compute, 1);
}

void
pipe_build_synced_group (Build *b, uint32_t what, uint64_t bytes, const char *name)
{
  const Lower *l = b->l;
  uint16_t group
      = pipe_build_group (b, LS_STREAM_PP_FWD, what, bytes / (scatters (l) ? l->mesh.tp : 1), name);
  build_device_sync (b);
  uint32_t n_received = (what & RECV_F ? 1u : 0u) + (what & RECV_B ? 1u : 0u);
  for (uint32_t i = 0; scatters (l) && i < n_received; i++)
    build_join (b,
                build_coll (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_GATHER, bytes, l->shard.dtype,
                            LS_TAG_SYNC, "boundary all-gather"));
  build_join (b, group);
}

static guint
number_of (const Pipe *p, const LsAction *a)
{
  return p->first + (guint) (a - (const LsAction *) p->actions->data);
}

/* Pipes both ways have micro-batches of their own. */
static uint32_t
documents_of (const Pipe *p, const LsAction *a)
{
  const Lower *l = p->l;
  const LsLayout *layout = &l->orders->layout;
  if (!l->packing || !l->packing->number)
    return 0;
  uint32_t pipe = ls_layout_stage (layout, p->rank, a->chunk).pipe;
  size_t mb = (size_t) pipe * layout->n_micro_batches + a->mb;
  return l->packing->number[(size_t) l->dp_rank * l->n_micro_batches + mb] + 1;
}

DpPass
pipe_open_action (Pipe *p, const LsAction *a)
{
  if (a->type != LS_ACTION_F)
    check_norm (p);
  guint number = number_of (p, a);
  const Turns *turns = &p->turns[a->chunk];
  bool is_alone = !ls_sched_is_flushed (p->l->sched)
      && a->type != LS_ACTION_F; /* each micro-batch has an update of its own */
  bool completes = a->type == LS_ACTION_B || a->type == LS_ACTION_W;
  guint first = a->type == LS_ACTION_F ? turns->first_forward
      : completes                      ? turns->first_weights
                                       : turns->first_input;
  guint last = a->type == LS_ACTION_F ? turns->last_forward
      : completes                     ? turns->last_weights
                                      : turns->last_input;
  gather_between (p, number);
  return (DpPass) {
    .c = chunk_at (p->l, p->rank, a->chunk),
    .pp_rank = p->rank,
    .type = (LsActionType) a->type,
    .is_first = number == first || is_alone,
    .is_last = number == last || is_alone,
    .documents = documents_of (p, a),
  };
}

void
pipe_close_action (Pipe *p, const LsAction *a)
{
  reduce_between (p, number_of (p, a));
}

void
pipe_add_action (Pipe *p, const LsAction *a)
{
  DpPass pass = pipe_open_action (p, a);
  pipe_add (p, segment_pass (p->l, &pass), a->mb, a->chunk);
  pipe_close_action (p, a);
}
