#include "show/run/timeline_boxes.h"

#include "analysis/idle.h"
#include "base/order.h"

const char *
ls_box_kind_name (LsBoxKind kind)
{
  static const char *const names[LS_N_BOX_KINDS] = {
    [LS_BOX_FORWARD] = "forward",     [LS_BOX_BACKWARD] = "backward",   [LS_BOX_WEIGHT] = "weight gradient",
    [LS_BOX_RECOMPUTE] = "recompute", [LS_BOX_OPTIMIZER] = "optimizer",
  };
  return names[kind];
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
    [LS_TAG_SYNC] = LS_BOX_OPTIMIZER,
  };
  return kinds[tag];
}

/* Input and weight gradients of one instance alternate layer by layer: they are
 * one backward. */
static bool
join_kind (LsBoxKind *kind, LsBoxKind next)
{
  if (*kind == next)
    return true;
  bool is_backward = (*kind == LS_BOX_BACKWARD || *kind == LS_BOX_WEIGHT)
      && (next == LS_BOX_BACKWARD || next == LS_BOX_WEIGHT);
  if (is_backward)
    *kind = LS_BOX_BACKWARD;
  return is_backward;
}

GArray *
ls_timeline_boxes (const LsTimeline *t, uint32_t rank)
{
  GArray *boxes = g_array_new (FALSE, FALSE, sizeof (LsTimelineBox));
  const LsSpan *last = NULL;
  for (uint32_t i = 0; i < t->ranks[rank].n; i++) {
    const LsSpan *s = &t->ranks[rank].spans[i];
    LsTime from = MAX (s->start, t->window_start), to = MIN (ls_span_end (t, s), t->window_end);
    if (from >= to || !ls_span_is_compute (t, rank, s))
      continue;
    LsBoxKind kind = ls_box_kind_of ((LsTag) ls_span_op (t, rank, s)->tag);
    LsTimelineBox *open = boxes->len > 0 ? &g_array_index (boxes, LsTimelineBox, boxes->len - 1) : NULL;
    /* A forward with its tensor-parallel gaps is one box; between the kernels of the
     * optimizer a rank waits for the others, which should be seen. */
    bool is_same = open && last->instance == s->instance && last->step == s->step
        && (kind != LS_BOX_OPTIMIZER || from - t->window_start == open->to);
    if (is_same && join_kind (&open->kind, kind)) {
      open->to = to - t->window_start;
    } else {
      const LsInstance *instance = ls_span_instance (t, rank, s);
      LsTimelineBox box
          = { from - t->window_start, to - t->window_start, instance->mb, instance->chunk, kind };
      g_array_append_val (boxes, box);
    }
    last = s;
  }
  return boxes;
}

typedef struct {
  LsTime origin;
  GPtrArray *parts; /* [LS_N_PARTS] GArray of LsTimelineStrip */
} Collector;

static void
collect (const LsIdlePiece *piece, void *data)
{
  Collector *c = data;
  LsTimelineStrip strip = { piece->from - c->origin, piece->to - c->origin, 1 };
  g_array_append_val ((GArray *) c->parts->pdata[piece->part], strip);
}

static int
compare_strips (const void *a, const void *b)
{
  const LsTimelineStrip *x = a, *y = b;
  return x->from < y->from ? -1 : x->from > y->from;
}

static void
merge_strips (GArray *strips, LsTime resolution)
{
  guint n = 0;
  LsTime filled = 0;
  for (guint i = 0; i < strips->len; i++) {
    LsTimelineStrip *next = &g_array_index (strips, LsTimelineStrip, i);
    LsTimelineStrip *open = n > 0 ? &g_array_index (strips, LsTimelineStrip, n - 1) : NULL;
    if (open && next->from - open->to < resolution) {
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

GPtrArray *
ls_timeline_strips (const LsTimeline *t, uint32_t rank, LsTime resolution)
{
  Collector c = { t->window_start, g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref) };
  for (int part = 0; part < LS_N_PARTS; part++)
    g_ptr_array_add (c.parts, g_array_new (FALSE, FALSE, sizeof (LsTimelineStrip)));
  g_autoptr (GArray) kernels = ls_kernel_times_new (t, rank);
  ls_idle_each (t, rank, kernels, collect, &c);
  for (int part = 0; part < LS_N_PARTS; part++) {
    GArray *strips = c.parts->pdata[part];
    g_array_sort (strips, compare_strips);
    merge_strips (strips, resolution);
    widen_strips (strips, resolution, t->window_end - t->window_start);
  }
  return c.parts;
}

/* The first rank of a role, the turn-th of its stage. */
typedef struct {
  uint32_t rank, role, stage, turn;
} Turn;

static int
compare_turns (gconstpointer a, gconstpointer b)
{
  const Turn *x = a, *y = b;
  return x->turn != y->turn ? LS_ORDER (x->turn, y->turn) : LS_ORDER (x->stage, y->stage);
}

static int
compare_roles (gconstpointer a, gconstpointer b)
{
  return LS_ORDER (((const Turn *) a)->role, ((const Turn *) b)->role);
}

static GArray *
first_of_roles (const LsTimeline *t)
{
  const LsPlan *plan = t->plan;
  GArray *firsts = g_array_new (FALSE, FALSE, sizeof (Turn));
  g_autofree bool *is_seen = g_new0 (bool, plan->n_roles);
  g_autoptr (GHashTable) turns = g_hash_table_new (NULL, NULL);
  for (uint32_t rank = 0; rank < t->n_ranks; rank++) {
    uint32_t role = ls_plan_role (plan, rank), stage = plan->programs[role].stage;
    if (t->multiplicity[rank] == 0 || is_seen[role])
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
    for (uint32_t rank = 0; rank < t->n_ranks; rank++)
      if (t->multiplicity[rank] > 0)
        g_array_append_val (rows, rank);
    return rows;
  }

  g_autoptr (GArray) firsts = first_of_roles (t);
  g_array_sort (firsts, compare_turns);
  g_array_set_size (firsts, MIN (firsts->len, max_rows));
  g_array_sort (firsts, compare_roles);
  for (guint i = 0; i < firsts->len; i++)
    g_array_append_val (rows, g_array_index (firsts, Turn, i).rank);
  return rows;
}
