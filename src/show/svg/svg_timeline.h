/* show/svg/svg_timeline.h — the picture of a step as SVG, in rows that the reader asks for.
 *
 *   ranks    a row for each rank, or for one of each role: its passes with their micro-batches, and below a
 *            strip of the time in which it computed nothing, by part (analysis/idle.h)
 *   streams  below that a row for each of its streams. What they run is named where it has room: "F 3" is
 *            the forward of layer 3, "AG 3" an all-gather of it, "RS 3" its reduce-scatter; with a pipeline
 *            the number is the micro-batch
 *
 * Ops that are narrower than a third of a pixel are drawn together with their neighbours of the same kind. */
#ifndef LS_SHOW_SVG_SVG_TIMELINE_H
#define LS_SHOW_SVG_SVG_TIMELINE_H

#include "exec/timeline.h"

typedef enum { LS_TIMELINE_RANKS, LS_TIMELINE_STREAMS } LsTimelineRows;

typedef struct {
  const char *title; /* borrowed */
  LsTimelineRows rows;
  const GArray *ranks; /* uint32_t, borrowed; NULL: all, or one of each role */
  LsTime from, to;     /* from the start of the step; to 0: its end */
  guint width;         /* pixels */
} LsTimelinePicture;

#define LS_TIMELINE_WIDTH     1600
#define LS_TIMELINE_MIN_WIDTH 400
#define LS_TIMELINE_MAX_WIDTH 20000

/* The file, newly allocated. Ranks must be of the timeline, and from below to. */
char *ls_svg_timeline (const LsTimeline *t, const LsTimelinePicture *picture);

#endif
