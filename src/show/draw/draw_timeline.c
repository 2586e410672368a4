/* show/draw/draw_timeline.c — a step by ranks and streams, drawn. */
#include "show/draw/pictures.h"

#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "show/run/timeline_boxes.h"
#include "show/text_table.h"

#define MAX_ROWS    64
#define LEFT        138 /* margins, pixels */
#define RIGHT       20
#define BAR         20 /* of passes */
#define STRIP       7
#define LANE        16
#define RANK_HEIGHT 34 /* of a row, with the space below */
#define LANE_HEIGHT 19
#define HELD_HEIGHT 13 /* of a micro-batch that is under way */
#define NARROW      0.33
#define NAME_SIZE   10.0
#define APART       5.0 /* of arrows, pixels */

/* Where a rank is drawn. */
typedef struct {
  uint32_t rank;                  /* whose spans are shown                     */
  double passes;                  /* y of the middle of its bar                */
  double lanes[LS_N_STREAMS + 1]; /* of its streams and the host; 0: no such row */
} Place;

typedef struct {
  const LsTimeline *t;
  const LsTimelinePicture *picture;
  LsDrawing *d;
  LsTime from, to; /* from the start of the step */
  double right, y;
  GArray *places;          /* Place */
  LsXY last_from, last_to; /* of the arrow before */
  guint n_messages, n_waits;
} Plot;

static double
x_of (const Plot *p, LsTime at)
{
  double share = (double) (CLAMP (at, p->from, p->to) - p->from) / (double) (p->to - p->from);
  return LEFT + share * (p->right - LEFT);
}

static bool
is_shown (const Plot *p, LsTime from, LsTime to)
{
  return to > p->from && from < p->to && to > from;
}

/* --- how an op is drawn and called ------------------------------------------------------------------ */

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

static const char *
letters_of (const LsOp *op)
{
  static const char *const tags[LS_N_TAGS]
      = { [LS_TAG_F] = "F",         [LS_TAG_I] = "B",           [LS_TAG_W] = "W",  [LS_TAG_B] = "B",
          [LS_TAG_RECOMPUTE] = "R", [LS_TAG_OPTIMIZER] = "opt", [LS_TAG_SYNC] = "" };
  static const char *const calls[LS_N_COLL_KINDS] = { [LS_COLL_ALL_GATHER] = "AG",
                                                      [LS_COLL_REDUCE_SCATTER] = "RS",
                                                      [LS_COLL_ALL_REDUCE] = "AR",
                                                      [LS_COLL_ALL_TO_ALL] = "A2A" };
  if (op->n_transfers > 0)
    return op->transfers[0].is_send ? "send" : "recv";
  if (ls_op_has (op->kind, LS_HAS_CALL))
    return calls[op->coll] ? calls[op->coll] : "";
  return ls_op_takes (op->kind, LS_TAKES_GPU) ? tags[op->tag] : "";
}

/* Its stream's, or for kernels that of its tag. */
static const char *
ls_op_paint (const LsOp *op)
{
  int stream = ls_lane_of (op);
  bool is_work = stream == LS_STREAM_COMPUTE || stream == LS_STREAM_SHARED;
  return is_work ? ls_box_style (ls_box_kind_of ((LsTag) op->tag))->paint : ls_stream_paint (stream);
}

/* "F 3", "AG"; at most `size` bytes. A job without a pipeline is told by layers, others by micro-batches. */
static void
ls_op_label (const LsTimeline *t, uint32_t rank, const LsSpan *s, char *label, gsize size)
{
  const LsOp *op = ls_span_op (t, rank, s);
  const char *letters = letters_of (op);
  bool has_layers = t->plan->n_chunks <= 1 && t->plan->n_roles == 1;
  label[0] = '\0';
  if (!*letters || op->tag == LS_TAG_OPTIMIZER)
    g_strlcpy (label, letters, size);
  else if (!has_layers)
    g_snprintf (label, size, "%s %u", letters, ls_span_instance (t, rank, s)->mb);
  else if (op->layer != UINT16_MAX)
    g_snprintf (label, size, "%s %u", letters, op->layer);
  else
    g_strlcpy (label, letters, size);
}

/* --- lanes: boxes that follow each other ------------------------------------------------------------- */

typedef struct {
  char *tip; /* owned */
  LsTime from, to;
  const char *paint;
  double opacity, tint; /* 0: 1 */
  char name[96];        /* "F 3" */
  char brief[16];       /* "AG", of a call that has its own name; "": none */
} Item;

typedef struct {
  Plot *p;
  double y, height;
  GArray *items; /* Item */
} Lane;

static Lane
lane_open (Plot *p, double y, double height)
{
  return (Lane) { p, y, height, ls_list_new (sizeof (Item), ls_clear_text) };
}

static void
add_item (Lane *l, Item item, const char *what, LsTime took)
{
  g_autofree char *time = ls_format_time (took);
  item.tip = g_strdup_printf ("%s: %s", what, time);
  g_array_append_val (l->items, item);
}

/* Newly allocated; of an op's own name the end may do, from a part of its module's path on
 * ("layers.5.attention.wq: mm": "attention.wq: mm", "wq: mm", "mm"), the first word, the longest part of it
 * ("flash-attention-fwd": "attention"), or of a call "AG". NULL: there is no room. */
static char *
name_within (const Plot *p, const Item *item, double width)
{
  if (*item->name && ls_text_width (item->name, NAME_SIZE) < width)
    return g_strdup (item->name);
  if (p->picture->rows != LS_TIMELINE_OPS)
    return NULL;
  const char *colon = strstr (item->name, ": "), *space = strchr (item->name, ' ');
  for (const char *at = item->name; colon && (at = strchr (at, '.')) && at < colon; at++)
    if (g_ascii_isalpha (at[1]) && ls_text_width (at + 1, NAME_SIZE) < width)
      return g_strdup (at + 1);
  g_autofree char *word = *item->brief ? g_strdup (item->brief)
      : colon                          ? g_strdup (colon + 2)
      : space                          ? g_strndup (item->name, (gsize) (space - item->name))
                                       : NULL;
  if (word && ls_text_width (word, NAME_SIZE) < width)
    return g_steal_pointer (&word);
  g_auto (GStrv) parts = g_strsplit (word ? word : item->name, "-", -1);
  const char *longest = "";
  for (char **part = parts; *part; part++)
    if (strlen (*part) > MAX (strlen (longest), 2) && ls_text_width (*part, NAME_SIZE) < width)
      longest = *part;
  return *longest ? g_strdup (longest) : NULL;
}

static void
draw_item (const Lane *l, const Item *item, double left, double right, guint n)
{
  g_autofree char *many = n > 1 ? g_strdup_printf ("%u ops", n) : NULL;
  const LsDrawnItem box = { .x = left,
                            .y = l->y,
                            .width = MAX (right - left - (right - left > 4 ? 0.6 : 0), 0.2),
                            .height = l->height,
                            .paint = item->paint,
                            .opacity = item->opacity,
                            .tint = item->tint,
                            .tip = right - left < 1 ? NULL
                                : many              ? many
                                                    : item->tip }; /* else no pointer finds it */
  ls_drawing_box (l->p->d, LS_LAYER_BOXES, box);
  double tint = (item->tint > 0 ? item->tint : 1) * (item->opacity > 0 ? item->opacity : 1);
  guint32 color = ls_palette_mix (0xffffff, ls_palette_find (item->paint)->light, tint);
  g_autofree char *name = n == 1 ? name_within (l->p, item, right - left - 2) : NULL;
  if (name)
    ls_drawing_text (l->p->d, (left + right) / 2, l->y + l->height / 2, NAME_SIZE, LS_CENTER,
                     ls_palette_ink (color), name);
}

/* Narrow neighbours of one paint as one box, as much lighter as there are gaps in it. */
static void
lane_close (Lane *l)
{
  for (guint i = 0, next; i < l->items->len; i = next) {
    Item *item = &g_array_index (l->items, Item, i);
    double left = x_of (l->p, item->from), right = x_of (l->p, item->to), filled = right - left;
    bool is_narrow = right - left <= NARROW; /* what is wide keeps its name */
    for (next = i + 1; is_narrow && next < l->items->len; next++) {
      const Item *other = &g_array_index (l->items, Item, next);
      double begin = x_of (l->p, other->from), end = x_of (l->p, other->to);
      if (other->paint != item->paint || begin - right > NARROW || end - begin > NARROW)
        break;
      filled += MAX (0, end - MAX (begin, right));
      right = MAX (right, end);
    }
    if (next - i > 1 && right > left)
      item->opacity = filled / (right - left);
    draw_item (l, item, left, right, next - i);
  }
  g_array_unref (l->items);
}

static void
lane_ground (const Plot *p, double y, double height, const char *name, bool is_quiet)
{
  const LsRect rect = { LEFT, y, p->right - LEFT, height };
  ls_drawing_rect (p->d, LS_LAYER_GROUND, rect, "idle", false, NULL);
  ls_drawing_text (p->d, LEFT - 8, y + height / 2, 11, LS_RIGHT, is_quiet ? "quiet" : "text", name);
}

/* --- a row of a rank --------------------------------------------------------------------------------- */

static LsTime
pixel (const Plot *p)
{
  return MAX (1, (p->to - p->from) / (LsTime) p->picture->width);
}

/* Later chunks are lighter. */
static double
tint_of (const Plot *p, uint32_t chunk)
{
  uint32_t n = MAX (p->t->plan->n_chunks, 1);
  return n > 1 ? 1 - 0.45 * chunk / (n - 1) : 1;
}

static void
draw_passes (Plot *p, uint32_t rank)
{
  Lane l = lane_open (p, p->y, BAR);
  g_autoptr (GArray) boxes = ls_timeline_boxes (p->t, rank, pixel (p));
  for (guint i = 0; i < boxes->len; i++) {
    const LsTimelineBox *b = &g_array_index (boxes, LsTimelineBox, i);
    if (!is_shown (p, b->from, b->to))
      continue;
    const char *kind = ls_box_style (b->kind)->name;
    double share = (double) b->work / (double) (b->to - b->from);
    bool has_number = ls_box_has_micro_batch (b);
    Item item = { NULL, b->from, b->to, ls_box_style (b->kind)->paint, share, tint_of (p, b->chunk), "", "" };
    if (has_number)
      g_snprintf (item.name, sizeof item.name, "%u", b->mb);
    g_autofree char *what
        = has_number ? g_strdup_printf ("%s of micro-batch %u, chunk %u", kind, b->mb, b->chunk) : NULL;
    add_item (&l, item, what ? what : kind, b->to - b->from);
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
  g_autoptr (GArray) strips = ls_timeline_strips (p->t, rank, pixel (p));
  Lane l = lane_open (p, p->y + BAR + 1, STRIP);
  for (guint i = 0; i < strips->len; i++) {
    const LsTimelineStrip *s = &g_array_index (strips, LsTimelineStrip, i);
    if (!is_shown (p, s->from, s->to))
      continue;
    const Item item
        = { NULL, s->from, s->to, part_paints[s->part - LS_PART_EXPOSED_TP], s->height, 0, "", "" };
    g_autofree char *name = ls_text_words (ls_part_names[s->part]);
    add_item (&l, item, name, (LsTime) (s->height * (double) (s->to - s->from)));
  }
  lane_close (&l);
}

/* rank: who stands for the one that is shown. */
static void
draw_rank (Plot *p, uint32_t shown, uint32_t rank)
{
  g_autofree char *name = g_strdup_printf ("rank %u, stage %u", shown,
                                           p->t->plan->programs[ls_plan_role (p->t->plan, rank)].stage);
  ls_list_add (p->places, &(Place) { .rank = rank, .passes = p->y + BAR / 2 });
  lane_ground (p, p->y, BAR, name, false);
  draw_passes (p, rank);
  draw_strip (p, rank);
  p->y += RANK_HEIGHT;
}

/* --- rows of micro-batches --------------------------------------------------------------------------- */

/* From the first of its passes to the last. */
typedef struct {
  LsTime from, to;
  uint32_t mb;
} Held;

static const LsSortKey by_start[] = { { LS_RISING (Held, from) }, { LS_RISING (Held, mb) }, { 0 } };

static GArray *
held_of (const Plot *p, uint32_t rank)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Held));
  g_autoptr (GHashTable) at = g_hash_table_new (NULL, NULL); /* micro-batch -> index + 1 */
  g_autoptr (GArray) boxes = ls_timeline_boxes (p->t, rank, LS_TIME_NEVER);
  for (guint i = 0; i < boxes->len; i++) {
    const LsTimelineBox *b = &g_array_index (boxes, LsTimelineBox, i);
    guint known = GPOINTER_TO_UINT (g_hash_table_lookup (at, GUINT_TO_POINTER (b->mb)));
    const Held held = { b->from, b->to, b->mb };
    if (!ls_box_has_micro_batch (b))
      continue;
    if (known > 0) {
      Held *open = &g_array_index (all, Held, known - 1);
      open->to = MAX (open->to, b->to);
      continue;
    }
    g_array_append_val (all, held);
    g_hash_table_insert (at, GUINT_TO_POINTER (b->mb), GUINT_TO_POINTER (all->len));
  }
  ls_sort_by (all, by_start);
  return all;
}

/* Each in the first line that is free: as many lines as micro-batches are under way at once. */
static void
draw_micro_batches (Plot *p, uint32_t rank)
{
  g_autoptr (GArray) all = held_of (p, rank), ends = g_array_new (FALSE, FALSE, sizeof (LsTime));
  for (guint i = 0; i < all->len; i++) {
    const Held *h = &g_array_index (all, Held, i);
    guint line = 0;
    while (line < ends->len && g_array_index (ends, LsTime, line) > h->from)
      line++;
    if (line == ends->len)
      g_array_append_val (ends, h->to);
    g_array_index (ends, LsTime, line) = h->to;
    if (!is_shown (p, h->from, h->to))
      continue;
    Item item = { NULL, h->from, h->to, "micro-batch", 0, 0, "", "" };
    g_snprintf (item.name, sizeof item.name, "%u", h->mb);
    g_autofree char *what = g_strdup_printf ("micro-batch %u under way", h->mb);
    Lane l = lane_open (p, p->y + line * HELD_HEIGHT, HELD_HEIGHT - 1);
    add_item (&l, item, what, h->to - h->from);
    lane_close (&l);
  }
  p->y += ends->len * HELD_HEIGHT + 6;
}

/* --- rows of streams --------------------------------------------------------------------------------- */

static bool
is_backward (const char *paint)
{
  return g_str_equal (paint, "backward") || g_str_equal (paint, "weight");
}

/* Input and weight gradients of one pass alternate: they are one backward. */
static void
unite (Item *open, Item *next)
{
  if (open->paint == next->paint || !is_backward (open->paint) || !is_backward (next->paint)
      || strcmp (open->name + 1, next->name + 1) != 0)
    return;
  open->paint = next->paint = ls_box_style (LS_BOX_BACKWARD)->paint;
  open->name[0] = next->name[0] = 'B';
}

static void
join (Item *open, const Item *next)
{
  open->to = MAX (open->to, next->to);
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
  Item item = { NULL, from, to, ls_op_paint (op), 0, 0, "", "" };
  bool has_own_name = p->picture->rows == LS_TIMELINE_OPS;
  if (has_own_name)
    g_strlcpy (item.name, ls_span_name (p->t, rank, s), sizeof item.name);
  else
    ls_op_label (p->t, rank, s, item.name, sizeof item.name);
  if (has_own_name && ls_op_has (op->kind, LS_HAS_CALL))
    g_strlcpy (item.brief, letters_of (op), sizeof item.brief);
  Item *open = l->items->len > 0 ? &g_array_index (l->items, Item, l->items->len - 1) : NULL;
  bool is_kernel = !has_own_name && ls_op_takes (op->kind, LS_TAKES_GPU) && op->stream == LS_STREAM_COMPUTE
      && item.name[0];
  bool is_of_pass = open && is_kernel && *open_instance == s->instance;
  if (is_of_pass)
    unite (open, &item);
  if (is_of_pass && item.from <= open->to && strcmp (open->name, item.name) == 0)
    join (open, &item);
  else {
    g_autofree char *what
        = g_strdup_printf ("%s%s%s", item.name, *item.name ? " " : "", ls_span_name (p->t, rank, s));
    add_item (l, item, what, to - from);
  }
  *open_instance = s->instance;
}

/* Bit i: its stream i has an op that is shown. */
static uint32_t
streams_of (const Plot *p, uint32_t rank)
{
  G_STATIC_ASSERT (LS_N_STREAMS < 32);
  const LsRankSpans *spans = ls_timeline_spans (p->t, rank);
  uint32_t streams = 0;
  for (uint32_t i = 0; i < spans->n; i++) {
    const LsSpan *s = &spans->spans[i];
    LsTime end = s->end == LS_TIME_NEVER ? p->t->window_end : s->end;
    if (is_shown (p, s->start - p->t->window_start, end - p->t->window_start))
      streams |= 1u << ls_lane_of (ls_span_op (p->t, rank, s));
  }
  return streams;
}

static void
draw_stream (Plot *p, uint32_t rank, int stream)
{
  const LsRankSpans *spans = ls_timeline_spans (p->t, rank);
  lane_ground (p, p->y, LANE, stream == LS_N_STREAMS ? "host" : ls_stream_names[stream].name, true);
  Lane l = lane_open (p, p->y, LANE);
  uint32_t open_instance = UINT32_MAX;
  for (uint32_t i = 0; i < spans->n; i++)
    if (ls_lane_of (ls_span_op (p->t, rank, &spans->spans[i])) == stream)
      add_span (&l, rank, &spans->spans[i], &open_instance);
  lane_close (&l);
  g_array_index (p->places, Place, p->places->len - 1).lanes[stream] = p->y + LANE / 2;
  p->y += LANE_HEIGHT;
}

/* --- arrows ----------------------------------------------------------------------------------------- */

/* From a message's send to its receive, between ranks; and where streams have rows, from what an op waited
 * for to the op, between these. Arrows that begin and end within some pixels of each other are one. */

static const Place *
place_of (const Plot *p, uint32_t rank)
{
  for (guint i = 0; i < p->places->len; i++)
    if (g_array_index (p->places, Place, i).rank == rank)
      return &g_array_index (p->places, Place, i);
  return NULL;
}

static const LsSpan *
span_at (const Plot *p, uint32_t rank, uint32_t i)
{
  return &ls_timeline_spans (p->t, rank)->spans[i];
}

static double
y_of (const Place *place, int lane)
{
  return place->lanes[lane] > 0 ? place->lanes[lane] : place->passes;
}

static bool
is_near (LsXY a, LsXY b)
{
  return fabs (a.x - b.x) < APART && a.y == b.y;
}

static void
draw_arrow (Plot *p, LsXY from, LsXY to, const char *tip)
{
  const LsStroke stroke = { LS_LAYER_OVER, "text", 1, false, tip };
  if (is_near (from, p->last_from) && is_near (to, p->last_to))
    return;
  ls_drawing_arrow (p->d, from, to, &stroke);
  p->last_from = from;
  p->last_to = to;
}

/* --- messages ---------------------------------------------------------------------------------------- */

/* From where data begin to move to where they are there. */
static bool
draw_message (Plot *p, const LsP2pPair *pair)
{
  const Place *from = place_of (p, pair->from), *to = place_of (p, pair->to);
  const LsSpan *send = span_at (p, pair->from, pair->from_span),
               *receive = span_at (p, pair->to, pair->to_span);
  /* A span of several messages has the times of the last: where the other side's are earlier, they hold. */
  LsTime matched = MIN (send->matched, receive->matched), end = MIN (send->end, receive->end);
  if (!from || !to || from == to || matched == LS_TIME_NEVER || end == LS_TIME_NEVER)
    return false;
  LsTime left = matched - p->t->window_start, there = end - p->t->window_start;
  if (left < p->from || there > p->to || there < left)
    return false;
  g_autofree char *took = ls_format_time (there - left);
  g_autofree char *tip
      = g_strdup_printf ("message of micro-batch %u, rank %u to rank %u: %s",
                         ls_span_instance (p->t, pair->from, send)->mb, pair->from, pair->to, took);
  draw_arrow (p, (LsXY) { x_of (p, left), y_of (from, ls_lane_of (ls_span_op (p->t, pair->from, send))) },
              (LsXY) { x_of (p, there), y_of (to, ls_lane_of (ls_span_op (p->t, pair->to, receive))) }, tip);
  return true;
}

/* --- waits ------------------------------------------------------------------------------------------- */

/* The op that was waited for: behind events, what these had waited for. NULL: nothing that is known. */
static const LsSpan *
awaited (const Plot *p, uint32_t rank, const LsSpan *s)
{
  while (s->cause != LS_SPAN_NONE && s->cause_kind != LS_CAUSE_HOST) {
    s = span_at (p, rank, s->cause);
    if (!ls_op_has (ls_span_op (p->t, rank, s)->kind, LS_HAS_EVENT))
      return s;
  }
  return NULL;
}

static bool
draw_wait (Plot *p, const Place *place, const LsSpan *s)
{
  const LsOp *op = ls_span_op (p->t, place->rank, s);
  const LsSpan *cause = awaited (p, place->rank, s);
  if (!cause || cause->end == LS_TIME_NEVER || ls_op_has (op->kind, LS_HAS_EVENT))
    return false;
  int from = ls_lane_of (ls_span_op (p->t, place->rank, cause)), to = ls_lane_of (op);
  LsTime ended = cause->end - p->t->window_start, began = s->start - p->t->window_start;
  if (from == to || ended < p->from || began > p->to)
    return false;
  g_autofree char *tip = g_strdup_printf ("%s waited for %s", ls_span_name (p->t, place->rank, s),
                                          ls_span_name (p->t, place->rank, cause));
  draw_arrow (p, (LsXY) { x_of (p, ended), y_of (place, from) }, (LsXY) { x_of (p, began), y_of (place, to) },
              tip);
  return true;
}

static guint
draw_waits (Plot *p, const Place *place)
{
  guint n = 0;
  for (uint32_t i = 0; i < ls_timeline_spans (p->t, place->rank)->n; i++)
    n += draw_wait (p, place, span_at (p, place->rank, i));
  return n;
}

static bool
has_lanes (const Place *place)
{
  for (int lane = 0; lane <= LS_N_STREAMS; lane++)
    if (place->lanes[lane] > 0)
      return true;
  return false;
}

static void
draw_arrows (Plot *p)
{
  g_autoptr (GArray) pairs = ls_p2p_pairs (p->t);
  for (guint i = 0; i < pairs->len; i++)
    p->n_messages += draw_message (p, &g_array_index (pairs, LsP2pPair, i));
  for (guint i = 0; i < p->places->len; i++)
    if (has_lanes (&g_array_index (p->places, Place, i)))
      p->n_waits += draw_waits (p, &g_array_index (p->places, Place, i));
}

/* --- around them ------------------------------------------------------------------------------------- */

static void
draw_axis (Plot *p)
{
  LsTime unit;
  const char *unit_name = ls_axis_unit (p->to, &unit);
  g_autofree char *name = g_strdup_printf ("time from the start of the step (%s)", unit_name);
  const LsDrawnAxis axis = { (double) p->from / (double) unit, (double) p->to / (double) unit, name };
  p->y += ls_draw_axis_below (p->d, LEFT, p->right, p->y, &axis);
}

static const LsLegendEntry entries[] = { { "forward", "forward" },
                                         { "backward", "backward" },
                                         { "weight", "weight gradient" },
                                         { "recompute", "recompute" },
                                         { "optimizer", "optimizer" },
                                         { "micro-batch", "micro-batch under way" },
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
  g_autofree char *from = p->from > 0 ? ls_format_time (p->from) : g_strdup ("0 s");
  g_autofree char *to = ls_format_time (p->to);
  bool is_part = p->from > 0 || p->to < p->t->window_end - p->t->window_start;
  g_autofree char *part = is_part ? g_strdup_printf (", of which %s to %s", from, to) : g_strdup ("");
  bool has_all_roles = n_rows >= p->t->plan->n_roles;
  g_autofree char *rest = n_rows == p->t->n_ranks ? g_strdup ("")
      : p->picture->ranks                         ? g_strdup (", those asked for shown")
      : has_all_roles                             ? g_strdup (", one of each role shown")
                      : g_strdup_printf (", %u of them shown, of all stages", n_rows);
  g_autofree char *arrows = p->picture->has_arrows
      ? g_strdup_printf ("; arrows: %u messages between these ranks, %u ops that waited for another stream",
                         p->n_messages, p->n_waits)
      : g_strdup ("");
  g_autofree char *note
      = g_strdup_printf ("one step: %s%s; %u rank%s%s; the strip below a rank is time without a kernel%s",
                         step, part, p->t->n_ranks, p->t->n_ranks == 1 ? "" : "s", rest, arrows);
  p->y += ls_draw_head (p->d, LEFT, p->right, p->picture->title, note, entries, G_N_ELEMENTS (entries));
}

static void
draw_rows (Plot *p, const GArray *ranks)
{
  for (guint i = 0; i < ranks->len; i++) {
    uint32_t shown = g_array_index (ranks, uint32_t, i), rank = ls_timeline_representative (p->t, shown);
    draw_rank (p, shown, rank);
    if (p->picture->rows == LS_TIMELINE_MICRO_BATCHES)
      draw_micro_batches (p, rank);
    if (p->picture->rows < LS_TIMELINE_STREAMS)
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
             .to = picture->to > 0 ? MIN (picture->to, window) : window,
             .right = (double) picture->width - RIGHT,
             .places = g_array_new (FALSE, FALSE, sizeof (Place)) };
  draw_rows (&p, ranks);
  if (picture->has_arrows)
    draw_arrows (&p);
  g_array_unref (p.places);
  draw_axis (&p);
  draw_head (&p, ranks->len);
  ls_drawing_resize (p.d, picture->width, p.y);
  return p.d;
}
