/* How an op of a timeline is drawn and called. */
#include "show/draw/pictures.h"

#include <math.h>

#include "show/draw/timeline_draw.h"
#include "show/run/timeline_boxes.h"

/* --- how an op is drawn and called ------------------------------------------------------------------ */

const char *
ls_box_paint (LsBoxKind kind)
{
  static const char *const paints[LS_N_BOX_KINDS] = {
    [LS_BOX_FORWARD] = "forward", [LS_BOX_BACKWARD] = "backward",   [LS_BOX_WEIGHT] = "weight",
    [LS_BOX_SYNC] = "dp",         [LS_BOX_RECOMPUTE] = "recompute", [LS_BOX_OPTIMIZER] = "optimizer",
  };
  return paints[kind];
}

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
  if (op->n_transfers > 0)
    return op->transfers[0].is_send ? "send" : "recv";
  if (!ls_op_has (op->kind, LS_HAS_CALL))
    return ls_op_takes (op->kind, LS_TAKES_GPU) ? tags[op->tag] : "";
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
const char *
ls_op_paint (const LsOp *op)
{
  int stream = ls_lane_of (op);
  bool is_work = stream == LS_STREAM_COMPUTE || stream == LS_STREAM_SHARED;
  return is_work ? ls_box_paint (ls_box_kind_of ((LsTag) op->tag)) : ls_stream_paint (stream);
}

/* A job without a pipeline is told by layers, one with by micro-batches. */
void
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

/* --- arrows ----------------------------------------------------------------------------------------- */

#define APART 5.0 /* pixels */

typedef struct {
  LsDrawing *d;
  const LsTimeline *t;
  const GArray *places; /* LsRankPlace */
  const LsTimeScale *scale;
  LsXY last_from, last_to;
} Arrows;

static const LsRankPlace *
place_of (const Arrows *a, uint32_t rank)
{
  for (guint i = 0; i < a->places->len; i++)
    if (g_array_index (a->places, LsRankPlace, i).rank == rank)
      return &g_array_index (a->places, LsRankPlace, i);
  return NULL;
}

static const LsSpan *
span_at (const Arrows *a, uint32_t rank, uint32_t i)
{
  return &ls_timeline_spans (a->t, rank)->spans[i];
}

static double
y_of (const LsRankPlace *place, int lane)
{
  return place->lanes[lane] > 0 ? place->lanes[lane] : place->passes;
}

static bool
is_near (LsXY a, LsXY b)
{
  return fabs (a.x - b.x) < APART && a.y == b.y;
}

static void
draw (Arrows *a, LsXY from, LsXY to, const char *tip)
{
  const LsStroke stroke = { LS_LAYER_OVER, "text", 1, false, tip };
  if (is_near (from, a->last_from) && is_near (to, a->last_to))
    return;
  ls_drawing_arrow (a->d, from, to, &stroke);
  a->last_from = from;
  a->last_to = to;
}

/* --- messages ---------------------------------------------------------------------------------------- */

/* From where data begin to move to where they are there. */
static bool
draw_message (Arrows *a, const LsP2pPair *pair)
{
  const LsRankPlace *from = place_of (a, pair->from), *to = place_of (a, pair->to);
  const LsSpan *send = span_at (a, pair->from, pair->from_span),
               *receive = span_at (a, pair->to, pair->to_span);
  if (!from || !to || from == to || send->matched == LS_TIME_NEVER || receive->end == LS_TIME_NEVER)
    return false;
  LsTime left = send->matched - a->t->window_start, there = receive->end - a->t->window_start;
  if (left < a->scale->from || there > a->scale->to || there < left)
    return false;
  g_autofree char *took = ls_format_time (there - left);
  g_autofree char *tip
      = g_strdup_printf ("message of micro-batch %u, rank %u to rank %u: %s",
                         ls_span_instance (a->t, pair->from, send)->mb, pair->from, pair->to, took);
  draw (a,
        (LsXY) { ls_time_x (a->scale, left), y_of (from, ls_lane_of (ls_span_op (a->t, pair->from, send))) },
        (LsXY) { ls_time_x (a->scale, there), y_of (to, ls_lane_of (ls_span_op (a->t, pair->to, receive))) },
        tip);
  return true;
}

/* --- waits ------------------------------------------------------------------------------------------- */

/* The op that was waited for: behind events, what these had waited for. NULL: nothing that is known. */
static const LsSpan *
awaited (const Arrows *a, uint32_t rank, const LsSpan *s)
{
  while (s->cause != LS_SPAN_NONE && s->cause_kind != LS_CAUSE_HOST) {
    s = span_at (a, rank, s->cause);
    if (!ls_op_has (ls_span_op (a->t, rank, s)->kind, LS_HAS_EVENT))
      return s;
  }
  return NULL;
}

static bool
draw_wait (Arrows *a, const LsRankPlace *place, const LsSpan *s)
{
  const LsOp *op = ls_span_op (a->t, place->rank, s);
  const LsSpan *cause = awaited (a, place->rank, s);
  if (!cause || cause->end == LS_TIME_NEVER || ls_op_has (op->kind, LS_HAS_EVENT))
    return false;
  int from = ls_lane_of (ls_span_op (a->t, place->rank, cause)), to = ls_lane_of (op);
  LsTime ended = cause->end - a->t->window_start, began = s->start - a->t->window_start;
  if (from == to || ended < a->scale->from || began > a->scale->to)
    return false;
  g_autofree char *tip = g_strdup_printf ("%s waited for %s", ls_span_name (a->t, place->rank, s),
                                          ls_span_name (a->t, place->rank, cause));
  draw (a, (LsXY) { ls_time_x (a->scale, ended), y_of (place, from) },
        (LsXY) { ls_time_x (a->scale, began), y_of (place, to) }, tip);
  return true;
}

static guint
draw_waits (Arrows *a, const LsRankPlace *place)
{
  guint n = 0;
  for (uint32_t i = 0; i < ls_timeline_spans (a->t, place->rank)->n; i++)
    n += draw_wait (a, place, span_at (a, place->rank, i));
  return n;
}

static bool
has_lanes (const LsRankPlace *place)
{
  for (int lane = 0; lane <= LS_N_STREAMS; lane++)
    if (place->lanes[lane] > 0)
      return true;
  return false;
}

LsArrowCount
ls_draw_timeline_arrows (LsDrawing *d, const LsTimeline *t, const GArray *places, const LsTimeScale *scale)
{
  LsArrowCount n = { 0, 0 };
  Arrows a = { .d = d, .t = t, .places = places, .scale = scale };
  g_autoptr (GArray) pairs = ls_p2p_pairs (t);
  for (guint i = 0; i < pairs->len; i++)
    n.n_messages += draw_message (&a, &g_array_index (pairs, LsP2pPair, i));
  for (guint i = 0; i < places->len; i++)
    if (has_lanes (&g_array_index (places, LsRankPlace, i)))
      n.n_waits += draw_waits (&a, &g_array_index (places, LsRankPlace, i));
  return n;
}
