#include <string.h>

#include "show/draw/axis.h"
#include "show/draw/palette.h"
#include "show/draw/pictures.h"
#include "show/run/timeline_boxes.h"

#define MAX_ROWS    64
#define LEFT        138 /* margins, pixels */
#define RIGHT       20
#define BAR         20 /* of passes */
#define STRIP       7
#define LANE        16
#define RANK_HEIGHT 34 /* of a row, with the space below */
#define LANE_HEIGHT 19
#define NARROW      0.33
#define NAME_SIZE   10.0

typedef struct {
  const LsTimeline *t;
  const LsTimelinePicture *picture;
  LsDrawing *d;
  LsTime from, to; /* from the start of the step */
  double y;
} Plot;

static double
x_of (const Plot *p, LsTime at)
{
  double share = (double) (CLAMP (at, p->from, p->to) - p->from) / (double) (p->to - p->from);
  return LEFT + share * ((double) p->picture->width - LEFT - RIGHT);
}

/* --- lanes: boxes that follow each other ------------------------------------------------------------- */

typedef struct {
  LsTime from, to;
  const char *paint;
  double opacity;
  char name[24]; /* "F 3" */
  char *tip;     /* owned */
} Item;

typedef struct {
  Plot *p;
  double y, height;
  GArray *items; /* Item */
} Lane;

static void
item_clear (gpointer item)
{
  g_free (((Item *) item)->tip);
}

static Lane
lane_open (Plot *p, double y, double height)
{
  Lane l = { p, y, height, g_array_new (FALSE, FALSE, sizeof (Item)) };
  g_array_set_clear_func (l.items, item_clear);
  return l;
}

static bool
is_shown (const Plot *p, LsTime from, LsTime to)
{
  return to > p->from && from < p->to && to > from;
}

static void
draw_item (const Lane *l, const Item *item, double left, double right, guint n)
{
  g_autofree char *many = n > 1 ? g_strdup_printf ("%u ops", n) : NULL;
  const LsDrawnBox box = { LS_LAYER_BOXES,
                           left,
                           l->y,
                           MAX (right - left - (right - left > 4 ? 0.6 : 0), 0.2),
                           l->height,
                           item->paint,
                           item->opacity,
                           false,
                           many ? many : item->tip };
  ls_drawing_box (l->p->d, &box);
  guint32 color = ls_palette_tint (ls_palette_find (item->paint)->light, item->opacity);
  if (n == 1 && *item->name && ls_text_width (item->name, NAME_SIZE) < right - left - 2)
    ls_drawing_text (l->p->d, (left + right) / 2, l->y + l->height / 2, NAME_SIZE, LS_CENTER,
                     ls_palette_ink (color), item->name);
}

/* Narrow neighbours of one paint as one box. */
static void
lane_close (Lane *l)
{
  for (guint i = 0, next; i < l->items->len; i = next) {
    const Item *item = &g_array_index (l->items, Item, i);
    double left = x_of (l->p, item->from), right = x_of (l->p, item->to);
    for (next = i + 1; next < l->items->len; next++) {
      const Item *other = &g_array_index (l->items, Item, next);
      double begin = x_of (l->p, other->from), end = x_of (l->p, other->to);
      if (other->paint != item->paint || begin - right > NARROW || end - begin > NARROW)
        break;
      right = MAX (right, end);
    }
    draw_item (l, item, left, right, next - i);
  }
  g_array_unref (l->items);
}

static void
lane_ground (const Plot *p, double y, double height, const char *name, bool is_quiet)
{
  const LsDrawnBox ground = {
    LS_LAYER_GROUND, LEFT, y, (double) p->picture->width - LEFT - RIGHT, height, "idle", 0, false, NULL
  };
  ls_drawing_box (p->d, &ground);
  ls_drawing_text (p->d, LEFT - 8, y + height / 2, 11, LS_RIGHT, is_quiet ? "quiet" : "text", name);
}

/* --- a row of a rank --------------------------------------------------------------------------------- */

static const char *const box_paints[LS_N_BOX_KINDS] = {
  [LS_BOX_FORWARD] = "forward",     [LS_BOX_BACKWARD] = "backward",   [LS_BOX_WEIGHT] = "weight",
  [LS_BOX_RECOMPUTE] = "recompute", [LS_BOX_OPTIMIZER] = "optimizer",
};

/* Later chunks are lighter. */
static double
opacity_of (const Plot *p, uint32_t chunk)
{
  uint32_t n = MAX (p->t->plan->n_chunks, 1);
  return n > 1 ? 1 - 0.45 * chunk / (n - 1) : 1;
}

static void
draw_passes (Plot *p, uint32_t rank)
{
  Lane l = lane_open (p, p->y, BAR);
  g_autoptr (GArray) boxes = ls_timeline_boxes (p->t, rank);
  for (guint i = 0; i < boxes->len; i++) {
    const LsTimelineBox *b = &g_array_index (boxes, LsTimelineBox, i);
    if (!is_shown (p, b->from, b->to))
      continue;
    g_autofree char *took = ls_format_time (b->to - b->from);
    Item item = { b->from, b->to, box_paints[b->kind], opacity_of (p, b->chunk), "", NULL };
    bool has_number = b->kind != LS_BOX_OPTIMIZER;
    if (has_number)
      g_snprintf (item.name, sizeof item.name, "%u", b->mb);
    item.tip = has_number ? g_strdup_printf ("%s of micro-batch %u, chunk %u: %s", ls_box_kind_name (b->kind),
                                             b->mb, b->chunk, took)
                          : g_strdup_printf ("%s: %s", ls_box_kind_name (b->kind), took);
    g_array_append_val (l.items, item);
  }
  lane_close (&l);
}

/* By LsPart from LS_PART_EXPOSED_TP on. */
static const char *const part_paints[]
    = { "tp", "dp", "pp", "cp", "ep", "copy", "bubble", "skew", "host", "other" };
G_STATIC_ASSERT (G_N_ELEMENTS (part_paints) == LS_N_PARTS - LS_PART_EXPOSED_TP);

static void
draw_strip (Plot *p, uint32_t rank)
{
  LsTime resolution = MAX (1, (p->to - p->from) / (LsTime) p->picture->width);
  g_autoptr (GPtrArray) parts = ls_timeline_strips (p->t, rank, resolution);
  for (int part = LS_PART_EXPOSED_TP; part < LS_N_PARTS; part++) {
    const GArray *strips = parts->pdata[part];
    Lane l = lane_open (p, p->y + BAR + 1, STRIP);
    for (guint i = 0; i < strips->len; i++) {
      const LsTimelineStrip *s = &g_array_index (strips, LsTimelineStrip, i);
      if (!is_shown (p, s->from, s->to))
        continue;
      g_autofree char *took = ls_format_time ((LsTime) (s->height * (double) (s->to - s->from)));
      Item item = { s->from, s->to, part_paints[part - LS_PART_EXPOSED_TP], s->height, "", NULL };
      g_autofree char *name = g_strdelimit (g_strdup (ls_part_name ((LsPart) part)), "_", ' ');
      item.tip = g_strdup_printf ("%s: %s", name, took);
      g_array_append_val (l.items, item);
    }
    lane_close (&l);
  }
}

/* rank: who stands for the one that is shown. */
static void
draw_rank (Plot *p, uint32_t shown, uint32_t rank)
{
  g_autofree char *name = g_strdup_printf ("rank %u, stage %u", shown,
                                           p->t->plan->programs[p->t->plan->bindings[rank].role].stage);
  lane_ground (p, p->y, BAR, name, false);
  draw_passes (p, rank);
  draw_strip (p, rank);
  p->y += RANK_HEIGHT;
}

/* --- rows of streams --------------------------------------------------------------------------------- */

const char *
ls_stream_paint (int stream)
{
  static const char *const paints[LS_N_STREAMS + 1] = {
    [LS_STREAM_COMPUTE] = "forward", [LS_STREAM_TP] = "tp",          [LS_STREAM_DP] = "dp",
    [LS_STREAM_PP_FWD] = "pp",       [LS_STREAM_PP_FWD_RECV] = "pp", [LS_STREAM_PP_BWD] = "pp",
    [LS_STREAM_PP_BWD_RECV] = "pp",  [LS_STREAM_GLOBAL] = "other",   [LS_STREAM_COPY] = "copy",
    [LS_STREAM_COPY_IN] = "copy",    [LS_STREAM_GATHER] = "dp",      [LS_STREAM_CP] = "cp",
    [LS_STREAM_EP] = "ep",           [LS_STREAM_GATHER_IN] = "copy", [LS_STREAM_REPLICA] = "dp",
    [LS_STREAM_SHARED] = "forward",  [LS_N_STREAMS] = "host",
  };
  return paints[stream];
}

static int
stream_of (const LsOp *op)
{
  return op->kind == LS_OP_HOST_SYNC || op->kind == LS_OP_HOST_DELAY ? LS_N_STREAMS : op->stream;
}

static const char *
letters_of (const LsOp *op)
{
  static const char *const tags[LS_N_TAGS]
      = { [LS_TAG_F] = "F",         [LS_TAG_I] = "B",           [LS_TAG_W] = "W",  [LS_TAG_B] = "B",
          [LS_TAG_RECOMPUTE] = "R", [LS_TAG_OPTIMIZER] = "opt", [LS_TAG_SYNC] = "" };
  if (op->kind == LS_OP_P2P)
    return op->n_transfers > 0 && op->transfers[0].is_send ? "send" : "recv";
  if (op->kind != LS_OP_COLLECTIVE)
    return op->kind == LS_OP_KERNEL ? tags[op->tag] : "";
  switch (op->coll) {
  case LS_COLL_ALL_GATHER:
    return "AG";
  case LS_COLL_REDUCE_SCATTER:
    return "RS";
  case LS_COLL_ALL_REDUCE:
    return "AR";
  case LS_COLL_ALL_TO_ALL:
    return "A2A";
  default:
    return "";
  }
}

/* What an op of a stream is drawn as: its own, or for kernels that of its tag. */
static const char *
paint_of (const LsOp *op)
{
  int stream = stream_of (op);
  bool is_work = stream == LS_STREAM_COMPUTE || stream == LS_STREAM_SHARED;
  return is_work ? box_paints[ls_box_kind_of ((LsTag) op->tag)] : ls_stream_paint (stream);
}

/* A job without a pipeline is told by layers, one with by micro-batches. */
static void
name_op (const Plot *p, const LsOp *op, const LsInstance *instance, char name[24])
{
  const char *letters = letters_of (op);
  bool has_layers = p->t->plan->n_chunks <= 1 && p->t->plan->n_roles == 1;
  name[0] = '\0';
  if (!*letters || op->tag == LS_TAG_OPTIMIZER)
    g_strlcpy (name, letters, 24);
  else if (!has_layers)
    g_snprintf (name, 24, "%s %u", letters, instance->mb);
  else if (op->layer != UINT16_MAX)
    g_snprintf (name, 24, "%s %u", letters, op->layer);
  else
    g_strlcpy (name, letters, 24);
}

static bool
is_backward (const char *paint)
{
  return g_str_equal (paint, "backward") || g_str_equal (paint, "weight");
}

/* Kernels of one pass that have one number are one box, with the gaps between them; so are input and weight
 * gradients of one pass, which alternate. Between the kernels of the optimizer a rank waits for others, which
 * should be seen. */
static bool
joins (const Item *open, uint32_t open_instance, const Item *next, uint32_t instance)
{
  if (open_instance != instance || (g_str_equal (next->paint, "optimizer") && next->from > open->to))
    return false;
  return strcmp (open->name, next->name) == 0
      || (is_backward (open->paint) && is_backward (next->paint)
          && strcmp (open->name + 1, next->name + 1) == 0);
}

static void
join (Item *open, const Item *next)
{
  open->to = MAX (open->to, next->to);
  if (open->paint != next->paint)
    open->paint = box_paints[LS_BOX_BACKWARD];
  if (open->name[0] != next->name[0])
    open->name[0] = 'B';
  g_autofree char *took = ls_format_time (open->to - open->from);
  g_free (open->tip);
  open->tip = g_strdup_printf ("%s: %s", open->name, took);
}

static void
add_span (Lane *l, uint32_t rank, const LsSpan *s, uint32_t *open_instance)
{
  const Plot *p = l->p;
  const LsOp *op = ls_span_op (p->t, rank, s);
  LsTime from = s->start - p->t->window_start,
         to = (s->end == LS_TIME_NEVER ? p->t->window_end : s->end) - p->t->window_start;
  if (!is_shown (p, from, to))
    return;
  Item item = { from, to, paint_of (op), 1, "", NULL };
  name_op (p, op, ls_span_instance (p->t, rank, s), item.name);
  Item *open = l->items->len > 0 ? &g_array_index (l->items, Item, l->items->len - 1) : NULL;
  bool is_kernel = op->kind == LS_OP_KERNEL && op->stream == LS_STREAM_COMPUTE && item.name[0];
  if (open && is_kernel && joins (open, *open_instance, &item, s->instance))
    join (open, &item);
  else {
    g_autofree char *took = ls_format_time (to - from);
    item.tip = g_strdup_printf ("%s %s: %s", item.name, ls_span_name (p->t, rank, s), took);
    g_array_append_val (l->items, item);
  }
  *open_instance = s->instance;
}

/* Bit i: its stream i has an op. */
static uint32_t
streams_of (const Plot *p, uint32_t rank)
{
  G_STATIC_ASSERT (LS_N_STREAMS < 32);
  const LsRankSpans *spans = &p->t->ranks[rank];
  uint32_t streams = 0;
  for (uint32_t i = 0; i < spans->n; i++)
    streams |= 1u << stream_of (ls_span_op (p->t, rank, &spans->spans[i]));
  return streams;
}

static void
draw_stream (Plot *p, uint32_t rank, int stream)
{
  const LsRankSpans *spans = &p->t->ranks[rank];
  lane_ground (p, p->y, LANE, stream == LS_N_STREAMS ? "host" : ls_stream_name ((LsStream) stream), true);
  Lane l = lane_open (p, p->y, LANE);
  uint32_t open_instance = UINT32_MAX;
  for (uint32_t i = 0; i < spans->n; i++)
    if (stream_of (ls_span_op (p->t, rank, &spans->spans[i])) == stream)
      add_span (&l, rank, &spans->spans[i], &open_instance);
  lane_close (&l);
  p->y += LANE_HEIGHT;
}

/* --- around them ------------------------------------------------------------------------------------- */

static void
draw_axis (Plot *p)
{
  LsTime unit;
  const char *unit_name = ls_axis_unit (p->to, &unit);
  g_autofree char *name = g_strdup_printf ("time from the start of the step (%s)", unit_name);
  const LsDrawnAxis axis = { (double) p->from / (double) unit, (double) p->to / (double) unit, name };
  p->y += ls_draw_axis_below (p->d, LEFT, (double) p->picture->width - RIGHT, p->y, &axis);
}

static const LsLegendEntry entries[] = { { "forward", "forward" },
                                         { "backward", "backward" },
                                         { "weight", "weight gradient" },
                                         { "recompute", "recompute" },
                                         { "optimizer", "optimizer" },
                                         { "tp", "tp" },
                                         { "dp", "dp" },
                                         { "pp", "pp" },
                                         { "cp", "cp" },
                                         { "ep", "ep" },
                                         { "copy", "copies" },
                                         { "bubble", "bubble" },
                                         { "skew", "skew" },
                                         { "host", "host" },
                                         { "other", "other" } };

static void
draw_head (Plot *p, guint n_rows)
{
  g_autofree char *step = ls_format_time (p->t->window_end - p->t->window_start);
  g_autofree char *from = ls_format_time (p->from), *to = ls_format_time (p->to);
  bool is_part = p->from > 0 || p->to < p->t->window_end - p->t->window_start;
  g_autofree char *part = is_part ? g_strdup_printf (", of which %s to %s", from, to) : g_strdup ("");
  const char *rest = n_rows == p->t->n_ranks ? ""
      : p->picture->ranks                    ? ", those asked for shown"
                                             : ", one of each role shown";
  g_autofree char *note
      = g_strdup_printf ("one step: %s%s; %u rank%s%s; the strip below a rank is time without a kernel", step,
                         part, p->t->n_ranks, p->t->n_ranks == 1 ? "" : "s", rest);
  p->y += ls_draw_head (p->d, LEFT, (double) p->picture->width - RIGHT, p->picture->title, note, entries,
                        G_N_ELEMENTS (entries));
}

static void
draw_rows (Plot *p, const GArray *ranks)
{
  for (guint i = 0; i < ranks->len; i++) {
    uint32_t shown = g_array_index (ranks, uint32_t, i), rank = ls_timeline_representative (p->t, shown);
    draw_rank (p, shown, rank);
    if (p->picture->rows != LS_TIMELINE_STREAMS)
      continue;
    uint32_t streams = streams_of (p, rank);
    for (int stream = 0; stream <= LS_N_STREAMS; stream++)
      if (streams >> stream & 1)
        draw_stream (p, rank, stream);
    p->y += 6;
  }
}

LsDrawing *
ls_draw_timeline (const LsTimeline *t, const LsTimelinePicture *picture)
{
  LsTime window = t->window_end - t->window_start;
  g_autoptr (GArray) some = picture->ranks ? NULL : ls_timeline_rows (t, MAX_ROWS);
  const GArray *ranks = picture->ranks ? picture->ranks : some;
  Plot p = { .t = t,
             .picture = picture,
             .d = ls_drawing_new (picture->title),
             .from = picture->from,
             .to = picture->to > 0 ? MIN (picture->to, window) : window };
  draw_rows (&p, ranks);
  draw_axis (&p);
  draw_head (&p, ranks->len);
  ls_drawing_resize (p.d, picture->width, p.y);
  return p.d;
}
