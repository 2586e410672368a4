/* show/draw/timeline_draw.h — what the parts of a drawn timeline share (private to draw_timeline.c and its
 * neighbours). */
#ifndef LS_SHOW_DRAW_TIMELINE_DRAW_H
#define LS_SHOW_DRAW_TIMELINE_DRAW_H

#include "exec/replay/timeline.h"
#include "show/draw/drawing.h"
#include "show/run/timeline_boxes.h"

/* Times from the start of the step, and where they are. */
typedef struct {
  LsTime from, to;
  double left, right;
} LsTimeScale;

static inline double
ls_time_x (const LsTimeScale *s, LsTime at)
{
  double share = (double) (CLAMP (at, s->from, s->to) - s->from) / (double) (s->to - s->from);
  return s->left + share * (s->right - s->left);
}

static inline bool
ls_time_is_shown (const LsTimeScale *s, LsTime from, LsTime to)
{
  return to > s->from && from < s->to && to > from;
}

const char *ls_box_paint (LsBoxKind kind);
/* Its stream's, or for kernels that of its tag. */
const char *ls_op_paint (const LsOp *op);
/* "F 3", "AG"; at most `size` bytes. */
void ls_op_label (const LsTimeline *t, uint32_t rank, const LsSpan *span, char *label, gsize size);

/* Where a rank is drawn. */
typedef struct {
  uint32_t rank;                  /* whose spans are shown                     */
  double passes;                  /* y of the middle of its bar                */
  double lanes[LS_N_STREAMS + 1]; /* of its streams and the host; 0: no such row */
} LsRankPlace;

/* From a message's send to its receive, between ranks; and where streams have
 * rows, from what an op waited for to the op, between these. Arrows that begin and end within some pixels of
 * each other are one. Returns how many messages, and how many waits, there are. */
typedef struct {
  guint n_messages, n_waits;
} LsArrowCount;

LsArrowCount ls_draw_timeline_arrows (LsDrawing *d, const LsTimeline *t, const GArray *places,
                                      const LsTimeScale *scale);

#endif
