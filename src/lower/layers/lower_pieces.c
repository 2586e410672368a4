#include "lower/layers/lower_pieces.h"
#include "lower/layers/lower_layers.h"

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
  LsOp op = ls_op_blank (kind, stream, LS_TAG_SYNC, kind == LS_OP_RECORD ? "piece over" : "wait for a piece");
  op.event = event;
  build_op (b, op, NULL, 0);
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

static void
cutter_clear (Cutter *x)
{
  g_free (x->piece);
  g_free (x->event);
  g_free (x->place);
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
  cutter_clear (&x);
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
