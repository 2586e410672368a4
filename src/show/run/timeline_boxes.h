/* show/run/timeline_boxes.h — a timeline reduced to what a picture shows: boxes, and which send met
 * which receive. */
#ifndef LS_SHOW_RUN_TIMELINE_BOXES_H
#define LS_SHOW_RUN_TIMELINE_BOXES_H

#include "analysis/report.h"
#include "exec/replay/timeline.h"

typedef enum {
  LS_BOX_FORWARD,
  LS_BOX_BACKWARD, /* input gradients, or input and weight gradients together */
  LS_BOX_WEIGHT,   /* weight gradients alone, as zero-bubble schedules have them */
  LS_BOX_SYNC,     /* of gradients, for their exchange, where it is a pass of its own */
  LS_BOX_RECOMPUTE,
  LS_BOX_OPTIMIZER,
  LS_N_BOX_KINDS
} LsBoxKind;

LsBoxKind ls_box_kind_of (LsTag tag); /* of a kernel that is for that */

typedef struct {
  const char *name;  /* "weight gradient" */
  const char *paint; /* show/draw/palette.c */
  const char *trace; /* of Catapult's colour scheme (tracing/tracing/base/color_scheme.html) */
} LsBoxStyle;
const LsBoxStyle *ls_box_style (LsBoxKind kind); /* static */

/* Kernels of one instance and kind that follow each other: a chunk's forward of one micro-batch is one box,
 * or several with gaps between them. */
typedef struct {
  LsTime from, to; /* from the start of the window, within it */
  LsTime work;     /* of that, with a kernel running          */
  uint32_t mb;
  uint16_t chunk;
  LsBoxKind kind;
} LsTimelineBox;

/* Not the optimizer's, nor an exchange of gradients. */
static inline bool
ls_box_has_micro_batch (const LsTimelineBox *box)
{
  return box->kind != LS_BOX_OPTIMIZER && box->kind != LS_BOX_SYNC;
}

/* LsTimelineBox values of a rank in order of time, none with a gap of `gap` or longer inside;
 * LS_TIME_NEVER: each pass from its first kernel to its last. g_array_unref(). */
GArray *ls_timeline_boxes (const LsTimeline *t, uint32_t rank, LsTime gap);

/* Time in which a rank computed nothing for one reason. Intervals closer than `resolution` are drawn as one
 * and shorter ones are widened to it; the height is the share of a strip that is so, so its area is true at
 * any scale. */
typedef struct {
  LsTime from, to;
  double height; /* (0, 1] */
  LsPart part;   /* from LS_PART_EXPOSED_TP on */
} LsTimelineStrip;

/* LsTimelineStrip values of a rank by part, then time; g_array_unref(). */
GArray *ls_timeline_strips (const LsTimeline *t, uint32_t rank, LsTime resolution);

/* The ranks that a picture of at most max_rows rows shows: all of them, or the
 * first of each role, and with more roles than rows as many of each stage. uint32_t values, by role. */
GArray *ls_timeline_rows (const LsTimeline *t, guint max_rows);

/* --- ops ---------------------------------------------------------------------------------------------- */

/* The lane of an op; the host's is behind those of the streams. */
static inline int
ls_lane_of (const LsOp *op)
{
  return ls_op_is_of_host (op->kind) ? LS_N_STREAMS : op->stream;
}

static inline const char *
ls_lane_name (int lane)
{
  return lane == LS_N_STREAMS ? "host" : ls_stream_names[lane].name;
}

/* --- which send of a timeline met which receive -------------------------------------------------- */

/* The k-th send to the next stage meets the k-th receive of that rank from its previous stage, and the k-th
 * send to the previous stage the k-th receive from the next: one order for each direction, as in exec, even
 * where both neighbours are the same rank. Who stands for a neighbour is taken for it. k counts in the order
 * of the program and within a step, so it does not depend on which spans the window kept. */

typedef struct {
  uint32_t from, to;           /* ranks                       */
  uint32_t from_span, to_span; /* indices in their span lists */
} LsP2pPair;

/* LsP2pPair values, ordered by (from, to, direction, step, k), of transfers whose two spans
 * are both in the timeline. Free with g_array_unref(). */
GArray *ls_p2p_pairs (const LsTimeline *t);

#endif
