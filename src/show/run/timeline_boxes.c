#include "show/run/timeline_boxes.h"

#include "analysis/idle.h"
#include "base/order.h"

/* --- which send of a timeline met which receive -------------------------------------------------- */

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
  const LsSpan *span = &ls_timeline_spans (t, rank)->spans[index];
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

static const LsSortKey end_order[] = {
  { LS_RISING (End, from) },
  { LS_RISING (End, to) },
  { LS_RISING (End, is_forward) },
  { LS_RISING (End, step) },
  { LS_RISING (End, ordinal) },
  { LS_RISING (End, is_send) },
  { 0 },
};

/* A receive and the send that it meets lie behind each other. */
static bool
is_pair (const End *receive, const End *send)
{
  End other = *receive;
  other.is_send = true;
  return !receive->is_send && send->is_send && ls_compare_by (&other, send, (gpointer) end_order) == 0;
}

static GArray *
collect_ends (const LsTimeline *t)
{
  GArray *ends = g_array_new (FALSE, FALSE, sizeof (End));
  g_autofree Count **before = g_new0 (Count *, t->plan->n_roles);
  for (uint32_t rank = 0; rank < t->n_ranks; rank++) {
    uint32_t role = ls_plan_role (t->plan, rank);
    for (uint32_t i = 0; i < ls_timeline_spans (t, rank)->n; i++) {
      if (ls_span_op (t, rank, &ls_timeline_spans (t, rank)->spans[i])->n_transfers == 0)
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
  ls_sort_by (ends, end_order);

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

/* A timeline reduced to what a picture of it shows: boxes of compute, and strips of exposed
 * communication. */

const LsBoxStyle *
ls_box_style (LsBoxKind kind)
{
  static const LsBoxStyle styles[LS_N_BOX_KINDS] = {
    [LS_BOX_FORWARD] = { "forward", "forward", "rail_response" },
    [LS_BOX_BACKWARD] = { "backward", "backward", "rail_idle" },
    [LS_BOX_WEIGHT] = { "weight gradient", "weight", "rail_load" },
    [LS_BOX_SYNC] = { "gradient sync", "dp", "thread_state_iowait" },
    [LS_BOX_RECOMPUTE] = { "recompute", "recompute", "light_memory_dump" },
    [LS_BOX_OPTIMIZER] = { "optimizer", "optimizer", "generic_work" },
  };
  return &styles[kind];
}

LsBoxKind
ls_box_kind_of (LsTag tag)
{
  static const LsBoxKind kinds[LS_N_TAGS] = {
    [LS_TAG_F] = LS_BOX_FORWARD,
    [LS_TAG_I] = LS_BOX_BACKWARD,
    [LS_TAG_W] = LS_BOX_WEIGHT,
    [LS_TAG_B] = LS_BOX_BACKWARD,
    [LS_TAG_RECOMPUTE] = LS_BOX_RECOMPUTE,
    [LS_TAG_OPTIMIZER] = LS_BOX_OPTIMIZER,
    [LS_TAG_SYNC] = LS_BOX_SYNC,
  };
  return kinds[tag];
}

static bool
is_of_backward (LsBoxKind kind)
{
  return kind == LS_BOX_BACKWARD || kind == LS_BOX_WEIGHT || kind == LS_BOX_SYNC;
}

/* Input and weight gradients of one instance alternate layer by layer, and what is done for their exchange
 * with both: they are one backward. */
static bool
join_kind (LsBoxKind *kind, LsBoxKind next)
{
  if (*kind == next)
    return true;
  bool is_backward = is_of_backward (*kind) && is_of_backward (next);
  if (is_backward)
    *kind = LS_BOX_BACKWARD;
  return is_backward;
}

GArray *
ls_timeline_boxes (const LsTimeline *t, uint32_t rank, LsTime gap)
{
  GArray *boxes = g_array_new (FALSE, FALSE, sizeof (LsTimelineBox));
  const LsSpan *last = NULL;
  for (uint32_t i = 0; i < ls_timeline_spans (t, rank)->n; i++) {
    const LsSpan *s = &ls_timeline_spans (t, rank)->spans[i];
    LsTime from = MAX (s->start, t->window_start), to = MIN (ls_span_end (t, s), t->window_end);
    if (from >= to || !ls_span_is_compute (t, rank, s))
      continue;
    LsBoxKind kind = ls_box_kind_of ((LsTag) ls_span_op (t, rank, s)->tag);
    LsTimelineBox *open = boxes->len > 0 ? &g_array_index (boxes, LsTimelineBox, boxes->len - 1) : NULL;
    from -= t->window_start;
    to -= t->window_start;
    /* Between the kernels of the optimizer a rank waits for the others, which should be seen. */
    bool is_same = open && last->instance == s->instance && last->step == s->step
        && from - open->to < (kind == LS_BOX_OPTIMIZER ? 1 : gap);
    if (is_same && join_kind (&open->kind, kind)) {
      open->work += MAX (0, to - MAX (from, open->to));
      open->to = MAX (open->to, to);
    } else {
      const LsInstance *instance = ls_span_instance (t, rank, s);
      LsTimelineBox box = { from, to, to - from, instance->mb, instance->chunk, kind };
      g_array_append_val (boxes, box);
    }
    last = s;
  }
  return boxes;
}

typedef struct {
  LsTime origin;
  GArray *strips;
} Collector;

static void
collect (const LsIdlePiece *piece, void *data)
{
  Collector *c = data;
  LsTimelineStrip strip = { piece->from - c->origin, piece->to - c->origin, 1, piece->part };
  if (piece->part >= LS_PART_EXPOSED_TP)
    g_array_append_val (c->strips, strip);
}

static const LsSortKey by_part[]
    = { { LS_RISING (LsTimelineStrip, part) }, { LS_RISING (LsTimelineStrip, from) }, { 0 } };

static void
merge_strips (GArray *strips, LsTime resolution)
{
  guint n = 0;
  LsTime filled = 0;
  for (guint i = 0; i < strips->len; i++) {
    LsTimelineStrip *next = &g_array_index (strips, LsTimelineStrip, i);
    LsTimelineStrip *open = n > 0 ? &g_array_index (strips, LsTimelineStrip, n - 1) : NULL;
    if (open && open->part == next->part && next->from - open->to < resolution) {
      filled += next->to - next->from;
      open->to = next->to;
      open->height = (double) filled / (double) (open->to - open->from);
    } else {
      filled = next->to - next->from;
      g_array_index (strips, LsTimelineStrip, n++) = *next;
    }
  }
  g_array_set_size (strips, n);
}

static void
widen_strips (GArray *strips, LsTime width, LsTime window)
{
  width = MIN (width, window);
  for (guint i = 0; i < strips->len; i++) {
    LsTimelineStrip *strip = &g_array_index (strips, LsTimelineStrip, i);
    LsTime exposed = strip->to - strip->from;
    if (exposed >= width)
      continue;
    strip->from = CLAMP (strip->from - (width - exposed) / 2, 0, window - width);
    strip->to = strip->from + width;
    strip->height *= (double) exposed / (double) width;
  }
}

GArray *
ls_timeline_strips (const LsTimeline *t, uint32_t rank, LsTime resolution)
{
  Collector c = { t->window_start, g_array_new (FALSE, FALSE, sizeof (LsTimelineStrip)) };
  g_autoptr (GArray) kernels = ls_kernel_times_new (t, rank);
  ls_idle_each (t, rank, kernels, collect, &c);
  ls_sort_by (c.strips, by_part);
  merge_strips (c.strips, resolution);
  widen_strips (c.strips, resolution, t->window_end - t->window_start);
  return c.strips;
}

/* The first rank of a role, the turn-th of its stage. */
typedef struct {
  uint32_t rank, role, stage, turn;
} Turn;

static const LsSortKey by_turn[] = { { LS_RISING (Turn, turn) }, { LS_RISING (Turn, stage) }, { 0 } };
static const LsSortKey by_role[] = { { LS_RISING (Turn, role) }, { 0 } };

static GArray *
first_of_roles (const LsTimeline *t)
{
  const LsPlan *plan = t->plan;
  GArray *firsts = g_array_new (FALSE, FALSE, sizeof (Turn));
  g_autofree bool *is_seen = g_new0 (bool, plan->n_roles);
  g_autoptr (GHashTable) turns = g_hash_table_new (NULL, NULL);
  for (uint32_t row = 0; row < t->n_rows; row++) {
    uint32_t rank = ls_timeline_rank (t, row), role = ls_plan_role (plan, rank),
             stage = plan->programs[role].stage;
    if (t->multiplicity[row] == 0 || is_seen[role])
      continue;
    is_seen[role] = true;
    const Turn turn
        = { rank, role, stage, GPOINTER_TO_UINT (g_hash_table_lookup (turns, GUINT_TO_POINTER (stage))) };
    g_hash_table_insert (turns, GUINT_TO_POINTER (stage), GUINT_TO_POINTER (turn.turn + 1));
    g_array_append_val (firsts, turn);
  }
  return firsts;
}

GArray *
ls_timeline_rows (const LsTimeline *t, guint max_rows)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  if (t->n_ranks <= max_rows) {
    for (uint32_t row = 0; row < t->n_rows; row++) {
      uint32_t rank = ls_timeline_rank (t, row);
      if (t->multiplicity[row] > 0)
        g_array_append_val (rows, rank);
    }
    return rows;
  }

  g_autoptr (GArray) firsts = first_of_roles (t);
  ls_sort_by (firsts, by_turn);
  g_array_set_size (firsts, MIN (firsts->len, max_rows));
  ls_sort_by (firsts, by_role);
  for (guint i = 0; i < firsts->len; i++)
    g_array_append_val (rows, g_array_index (firsts, Turn, i).rank);
  return rows;
}
