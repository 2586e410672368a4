/* lower/layers/lower_experts.c — what expert parallelism does around operators, as Megatron-LM's
 * all-to-all dispatcher (core/transformer/moe/token_dispatcher.py):
 *
 *     dispatch  forward   count tokens for each expert on all of ep; the host waits for the counts,
 *                         which are the sizes of what follows; all-to-all; gather over etp
 *               backward  reduce-scatter over etp; all-to-all
 *     combine   forward   reduce-scatter over etp; all-to-all
 *               backward  all-to-all; gather over etp
 *
 * Everything blocks the compute stream, unless passes run side by side (lower_layers.h) or shared experts
 * together with the exchange. Where a capacity is padded to, sizes are known and the host need not
 * wait: there is no knob for that. The counts go over ep; Megatron-LM gathers them over etp as well.
 *
 * With DeepEP the exchanges are its dispatch and combine, as Megatron-LM's flex dispatcher calls them: the
 * host waits for the counts in the same way. With HybridEP ranks gather, in the place of counts, which
 * experts each token goes to, a byte for each expert (executor.cu, allgather_routing_map () of deepseek-ai/
 * DeepEP@94a9f8f6, branch hybrid-ep; by NCCL unless enable_custom_allgather is set, which Megatron-LM's
 * fused_a2a.py does not). Worked example. 8,192 tokens of 512 experts on 64 ranks: 268 MB. Deviations: the
 * kernel that then reads it, and rows of scores that are made for gradients on their way back, are left out.
 *
 * Unequal parts: member j of ep receives share w_j of what is sent, or sends it back; all other
 * numbers follow (plan.h, LsParts). */
#include "lower/layers/lower_layers.h"

#define COUNT_BYTES 8 /* torch.long */

static void
exchange (Build *b, const LsOperator *o, bool is_dispatch, LsTag tag, const char *name)
{
  Lower *l = b->l;
  if (l->mesh.ep == 1)
    return;
  build_piece (b, PIECE_EXCHANGE);
  uint16_t index = build_coll (b, LS_STREAM_EP, LS_SLOT_EP, LS_COLL_ALL_TO_ALL,
                               is_dispatch ? o->comm.to_ep_bytes : o->comm.ep_bytes, l->act, tag, name);
  LsOp *op = &g_array_index (b->ops, LsOp, index);
  if (l->n_ep_roles > 1)
    op->parts = is_dispatch ? LS_PARTS_RECEIVED : LS_PARTS_SENT;
  if (l->shard.experts.sends_tokens_once) {
    op->algorithm = is_dispatch ? LS_ALGORITHM_DISPATCH : LS_ALGORITHM_COMBINE;
    op->has_margin = l->s->experts.dispatch_margin;
    op->carries_scores = o->ep == LS_EP_DISPATCH;
  }
  if (b->beside)
    b->beside (b, o->ep == LS_EP_DISPATCH ? LS_BESIDE_DISPATCH : LS_BESIDE_COMBINE);
  build_join (b, index);
  if (b->behind_exchange)
    b->behind_exchange (b);
  build_piece (b, PIECE_COMPUTE);
}

/* Its communicator is tp's if it has the same ranks. */
static void
over_etp (Build *b, const LsOperator *o, int coll, LsTag tag, const char *name)
{
  Lower *l = b->l;
  bool is_tp = l->mesh.etp == l->mesh.tp;
  if (l->mesh.etp > 1)
    build_coll_joined (b, is_tp ? LS_STREAM_TP : LS_STREAM_EP, is_tp ? LS_SLOT_TP : LS_SLOT_ETP, coll,
                       o->comm.etp_bytes, l->act, tag, name);
}

static void
host_counts_tokens (Build *b, LsTag tag)
{
  Lower *l = b->l;
  LsDep dep = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  if (l->mesh.ep > 1) {
    bool has_map = l->plan->spread.is_hybrid;
    uint64_t each = has_map ? l->plan->spread.n_tokens : COUNT_BYTES;
    uint64_t bytes = each * l->model->moe.n_experts * l->mesh.ep;
    const char *name = has_map ? "routing map all-gather" : "token counts all-gather";
    dep = (LsDep) { LS_DEP_END,
                    build_coll (b, LS_STREAM_EP, LS_SLOT_EP, LS_COLL_ALL_GATHER, bytes, LS_DTYPE_BYTE, tag,
                                name) };
  }
  build_host_sync (b, tag, "token counts", &dep, 1);
  uint32_t n_others = l->model->moe.n_experts / l->mesh.ep - 1;
  if (n_others > 0 && ls_recipes_loop (l->shard.recipes, l->model))
    build_waits (b, LS_HOST_SYNC, n_others, tag);
}

void
experts_before (Build *b, const LsOperator *o, bool is_backward, LsTag tag)
{
  if (o->ep == LS_EP_DISPATCH && !is_backward) {
    host_counts_tokens (b, tag);
    exchange (b, o, true, tag, "dispatch all-to-all");
    over_etp (b, o, LS_COLL_ALL_GATHER, tag, "expert all-gather");
  } else if (o->ep == LS_EP_GATHER && !is_backward) {
    over_etp (b, o, LS_COLL_ALL_GATHER, tag, "expert all-gather");
  } else if (o->ep == LS_EP_COMBINE && is_backward) {
    exchange (b, o, true, tag, "combine grad all-to-all");
    over_etp (b, o, LS_COLL_ALL_GATHER, tag, "expert all-gather");
  }
}

void
experts_after (Build *b, const LsOperator *o, bool is_backward, LsTag tag)
{
  if (o->ep == LS_EP_COMBINE && !is_backward) {
    over_etp (b, o, LS_COLL_REDUCE_SCATTER, tag, "expert reduce-scatter");
    exchange (b, o, false, tag, "combine all-to-all");
  } else if (o->ep == LS_EP_DISPATCH && is_backward) {
    over_etp (b, o, LS_COLL_REDUCE_SCATTER, tag, "expert reduce-scatter");
    exchange (b, o, false, tag, "dispatch grad all-to-all");
  }
}

/* ---- shared experts together with the exchange of tokens ---- */

/* Shared experts together with the exchange of tokens, on a stream of their
 * own, as Megatron-LM's moe_shared_expert_overlap has them (core/transformer/moe, shared_experts.py and
 * token_dispatcher.py, 2026):
 *
 *     forward     compute    router  permute |          | sort  experts  sort |         | unpermute  add
 *                 exchange                   | dispatch |                     | combine |
 *                 shared             gather  | fc1  act |                     | fc2  scatter
 *
 *     backward    compute    unpermute |         | sort  experts  sort |          | permute  router  add
 *                 exchange             | combine |                     | dispatch |
 *                 shared               | gather  fc2                   | act  fc1  scatter
 *
 * A piece begins when all that the compute stream has before the exchange is over, is issued behind the
 * exchange, and nothing waits for it but `add`. gather and scatter, with sequence parallelism, are over tp;
 * the gathered input is kept, so that the backward gathers none. With DeepEP, Megatron-LM's flex dispatcher,
 * the first gather is behind dispatch.
 *
 * A GPU runs one kernel at a time: one of the compute stream that gets ready while a shared expert's runs
 * waits for it (exec/replay/rank.c).
 *
 * Deviation. With sequence parallelism, where the gathered input is kept, the output of the norm before it
 * stays too, also with the recompute part norm. */

/* From here on kernels are on their stream; the first waits for all that computes so far. What the compute
 * stream has joined is returned. */
static GArray *
enter (Build *b)
{
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  GArray *joins = b->next_deps;
  b->next_deps = g_array_copy (joins);
  g_array_append_val (b->next_deps, compute);
  b->stream = LS_STREAM_SHARED;
  return joins;
}

static void
leave (Build *b, GArray *joins)
{
  if (b->next_deps->len > 0)
    build_barrier (b);
  g_array_unref (b->next_deps);
  b->next_deps = joins;
  b->stream = LS_STREAM_COMPUTE;
}

static void
gather_beside (Build *b, const SharedExperts *s)
{
  if (b->l->shard.experts.sends_tokens_once || !b->l->shard.sp)
    return;
  GArray *joins = enter (b);
  build_gather (b, s->c, s->first, s->tag);
  leave (b, joins);
}

static void
build_one (Build *b, const SharedExperts *s, guint i)
{
  if (s->pass != LS_ACTION_F) {
    build_backward_here (b, s->c, i, s->pass);
    return;
  }
  if (b->l->shard.experts.sends_tokens_once)
    build_gather (b, s->c, i, s->tag);
  build_forward_here (b, s->c, i, s->tag, s->keeps);
}

static void
operators_beside (Build *b, const SharedExperts *s, LsBeside beside)
{
  guint end = s->first;
  while (runs_beside (s->c, end))
    end++;
  GArray *joins = enter (b);
  for (guint k = 0; k < end - s->first; k++) {
    guint i = s->pass == LS_ACTION_F ? s->first + k : end - 1 - k;
    if (operator_at (s->c, i)->beside == beside)
      build_one (b, s, i);
  }
  leave (b, joins);
}

void
build_shared_beside (Build *b, LsBeside what)
{
  const SharedExperts s = b->shared;
  if (what == LS_BESIDE_GATHER)
    gather_beside (b, &s);
  else
    operators_beside (b, &s, what);
}

/* --- events between pieces ----------------------------------------------------------------------- */

/* Two a piece, forwards and backwards apart: what it ends with on the compute stream and on that of
 * exchanges. More than these wait for all of a stream. */
static uint16_t
n_events_of_pass (const Lower *l)
{
  guint most = 0;
  for (uint32_t i = 0; i < l->n_stages; i++) {
    guint n = 0;
    const Chunk *c = &l->all_chunks[i];
    for (guint o = 0; o < c->operators->len; o++)
      n += operator_at (c, o)->ep != LS_EP_NONE;
    most = MAX (most, n);
  }
  return (uint16_t) MIN (2 * (2 * most + 1), G_MAXINT16 / 4);
}

uint16_t
n_piece_events (const Lower *l)
{
  return l->s->mp.ep_overlap ? (uint16_t) (2 * n_events_of_pass (l)) : 0;
}

/* A pass while it is cut. */
typedef struct {
  Build *whole;
  guint n_pieces;
  uint16_t *piece; /* [ops] in which piece it is                  */
  uint16_t *event; /* [ops] its end, as other pieces see it; LS_EVENT_NONE */
  uint16_t *place; /* [ops] where it is in its piece               */
  uint16_t next_event, end_events;
} Cutter;

static const LsOp *
op_at (const Cutter *x, guint i)
{
  return &g_array_index (x->whole->ops, LsOp, i);
}

/* The last op of the pass before op i on a stream; NO_OP: none. */
static uint16_t
last_on (const Cutter *x, guint i, uint16_t stream)
{
  while (i-- > 0)
    if (op_at (x, i)->stream == stream && !ls_op_is_of_host (op_at (x, i)->kind))
      return (uint16_t) i;
  return NO_OP;
}

/* The op of another piece that a dependency of op i is on; NO_OP: it holds as it is within the piece, or
 * all of its stream is waited for. */
static uint16_t
source_of (const Cutter *x, guint i, LsDep dep)
{
  const LsOp *op = op_at (x, i);
  if (ls_op_kinds[op->kind].host_waits || dep.kind == LS_DEP_ISSUE)
    return NO_OP;
  uint16_t source = dep.kind == LS_DEP_END ? dep.index : last_on (x, i, dep.index);
  return source == NO_OP || x->piece[source] == x->piece[i] ? NO_OP : source;
}

static void
find_events (Cutter *x)
{
  for (guint i = 0; i < x->whole->ops->len; i++)
    for (uint16_t d = 0; d < op_at (x, i)->n_deps; d++) {
      uint16_t source = source_of (x, i, op_at (x, i)->deps[d]);
      bool is_needed = source != NO_OP && op_at (x, source)->stream != op_at (x, i)->stream;
      if (is_needed && x->event[source] == LS_EVENT_NONE && x->next_event < x->end_events)
        x->event[source] = x->next_event++;
    }
}

static void
append_event (Build *b, LsOpKind kind, LsStream stream, uint16_t event)
{
  build_event (b, kind, stream, kind == LS_OP_RECORD ? "piece over" : "wait for a piece", event, NULL);
}

/* Op i as its piece has it: what it needs of other pieces are events that its stream waits for. */
static void
append_cut_op (Build *b, Cutter *x, guint i)
{
  LsOp op = *op_at (x, i);
  LsDep *deps = ls_arena_new_array (b->l->plan->arena, LsDep, op.n_deps);
  uint16_t n = 0;
  for (uint16_t d = 0; d < op.n_deps; d++) {
    LsDep dep = op.deps[d];
    uint16_t source = source_of (x, i, dep);
    bool is_elsewhere = dep.kind != LS_DEP_STREAM && x->piece[dep.index] != x->piece[i];
    if (source != NO_OP && op_at (x, source)->stream == op.stream)
      continue;
    if (source != NO_OP && x->event[source] != LS_EVENT_NONE)
      append_event (b, LS_OP_WAIT, (LsStream) op.stream, x->event[source]);
    else if (is_elsewhere && dep.kind == LS_DEP_END)
      deps[n++] = (LsDep) { LS_DEP_STREAM, op_at (x, dep.index)->stream };
    else if (!is_elsewhere)
      deps[n++] = (LsDep) { dep.kind, dep.kind == LS_DEP_STREAM ? dep.index : x->place[dep.index] };
  }
  op.deps = deps;
  op.n_deps = n;
  x->place[i] = (uint16_t) b->ops->len;
  g_array_append_val (b->ops, op);
  if (x->event[i] != LS_EVENT_NONE)
    append_event (b, LS_OP_RECORD, (LsStream) op.stream, x->event[i]);
}

/* --- a pass, cut ------------------------------------------------------------------------------- */

static Cutter
cutter_new (Build *whole, LsActionType type)
{
  guint n = MAX (1, whole->ops->len);
  uint16_t n_events = whole->l->n_piece_events / 2; /* of either direction */
  Cutter x = { .whole = whole, .n_pieces = whole->cuts->len };
  x.piece = g_new0 (uint16_t, n);
  x.event = g_new (uint16_t, n);
  x.place = g_new0 (uint16_t, n);
  x.next_event = (uint16_t) (EVENT_PIECES + (type == LS_ACTION_F ? 0 : n_events));
  x.end_events = (uint16_t) (x.next_event + n_events);
  for (guint i = 0, k = 0; i < whole->ops->len; i++) {
    while (k + 1 < x.n_pieces && g_array_index (whole->cuts, PieceStart, k + 1).first <= i)
      k++;
    x.piece[i] = (uint16_t) k;
    x.event[i] = LS_EVENT_NONE;
  }
  return x;
}

static GArray *
cut_pass (Build *whole, LsActionType type, const char *name)
{
  GArray *pieces = g_array_new (FALSE, FALSE, sizeof (Piece));
  Cutter x = cutter_new (whole, type);
  find_events (&x);
  for (guint k = 0, i = 0; k < x.n_pieces; k++) {
    g_autofree char *of = g_strdup_printf ("%s, piece %u", name, k);
    Build b;
    build_init (&b, whole->l);
    for (; i < whole->ops->len && x.piece[i] == k; i++)
      append_cut_op (&b, &x, i);
    b.is_too_long |= b.ops->len > MAX_OPS;
    Piece piece = { build_finish (&b, of), g_array_index (whole->cuts, PieceStart, k).kind };
    g_array_append_val (pieces, piece);
  }
  g_free (x.piece);
  g_free (x.event);
  g_free (x.place);
  return pieces;
}

const GArray *
segment_pieces (Lower *l, DpPass *p)
{
  g_autofree char *name = pass_name (l, p);
  g_autofree char *key = build_role_name (l, name);
  GArray *pieces = g_hash_table_lookup (l->pieces, key);
  if (pieces)
    return pieces;
  Build b;
  build_init (&b, l);
  b.cuts = g_array_new (FALSE, FALSE, sizeof (PieceStart));
  build_piece (&b, PIECE_COMPUTE);
  build_barrier (&b); /* what an exchange at the very beginning waits for */
  build_pass_by (&b, p, l->backend);
  build_scales (&b, p);
  if (b.next_deps->len > 0)
    build_barrier (&b);
  if (b.is_too_long && !l->too_long)
    l->too_long = g_strdup (name);
  pieces = cut_pass (&b, p->type, name);
  build_clear (&b);
  g_hash_table_insert (l->pieces, g_steal_pointer (&key), pieces);
  return pieces;
}
