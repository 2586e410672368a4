/* show/draw/pictures.h — drawings of steps, memory, schedules and machines. Each is newly made; free with
 * ls_drawing_free(), write with ls_drawing_write(). What is lent needs not outlive the call. Texts are lines
 * of UTF-8. */
#ifndef LS_SHOW_DRAW_PICTURES_H
#define LS_SHOW_DRAW_PICTURES_H

#include "analysis/topology.h"
#include "ask/schedule.h"
#include "exec/memory/memory.h"
#include "exec/replay/timeline.h"
#include "show/draw/drawing.h"
#include "train/train.h"

/* A step in rows that the reader asks for.
 *
 *   ranks    a row for each rank, or for one of each role: its passes with their micro-batches, where kernels
 *            run; gaps of less than a pixel make a box lighter by their share; and below a strip of the time
 * in which it computed nothing, by part (analysis/idle.h)
 *   micro-batches  below that a bar for each from the first of its passes to the last, in as many lines as
 *            are under way at once
 *   streams  below that a row for each of its streams. What they run is named where it has room: "F 3" is
 *            the forward of layer 3, "AG 3" an all-gather of it, "RS 3" its reduce-scatter; with a pipeline
 *            the number is the micro-batch
 *
 *   ops      the same, each op by itself with its own name: "qkv", "dispatch all-to-all"
 *
 * Ops that are narrower than a third of a pixel are drawn together with their neighbours of the same kind. */
typedef enum {
  LS_TIMELINE_RANKS,
  LS_TIMELINE_MICRO_BATCHES,
  LS_TIMELINE_STREAMS,
  LS_TIMELINE_OPS,
} LsTimelineRows;

typedef struct {
  const char *title;
  LsTimelineRows rows;
  const GArray *ranks; /* uint32_t; NULL: all, or one of each role             */
  LsTime from, to;     /* from the start of the step; to 0: its end            */
  guint width;         /* pixels                                               */
  bool has_arrows;     /* as of show/draw/draw_timeline.c                      */
} LsTimelinePicture;

#define LS_TIMELINE_WIDTH     1600
#define LS_TIMELINE_MIN_WIDTH 400
#define LS_TIMELINE_MAX_WIDTH 20000

/* The paint of a stream's ops; of those that compute, where their tag says no other. LS_N_STREAMS: the
 * host. */
const char *ls_stream_paint (int stream);

/* Ranks must be of the timeline, and from below to. */
LsDrawing *ls_draw_timeline (const LsTimeline *t, const LsTimelinePicture *picture);

typedef struct {
  const char *title, *note;
  const GArray *samples; /* LsMemorySample, of ls_memory_curve() */
  LsTime window;
  uint64_t capacity_bytes;
} LsMemoryPlot;

/* What a rank holds over a step: areas on top of each other, one for each category, and the capacity as a
 * line. */
LsDrawing *ls_draw_memory (const LsMemoryPlot *plot);

/* Pipeline schedules as in the papers, under each other on one scale: a row per rank, boxes with the number
 * of the micro-batch, a colour for each kind of work, later chunks lighter. A forward and a backward that run
 * together share a box, one above the other. All with a unit, or none. */
LsDrawing *ls_draw_schedules (const LsScheduleView *const *views, guint n, const char *title);

/* How busy links were in a step; free with ls_topo_use_free(). Lent data must outlive it. */
typedef struct LsTopoUse LsTopoUse;
LsTopoUse *ls_topo_use_new (const LsCluster *cluster, const LsTimeline *t);
void ls_topo_use_free (LsTopoUse *use); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTopoUse, ls_topo_use_free)

/* A cluster: one node, and the fabric. What there are too many of to read is drawn in part, and says so. With
 * `use`, which may be NULL, links are coloured by it, in a node each by that of the busiest in its place. */
LsDrawing *ls_draw_topology (const LsTopoMap *map, const LsTopoUse *use);

/* A training run: what held up that of its first seed, in rows of as many days, which the report must have
 * kept, and what is lost by kind and by cause in the mean. */
LsDrawing *ls_draw_train (const LsTrainReport *r, const char *title, const char *subtitle);

/* --- the parts of a drawn topology (private to draw_topology.c and its neighbours) ------------------- */

/* Each draws itself at `top` and says how much room it took. */

#define LS_DRAW_MARGIN 28.0

typedef struct {
  double width, height;
} LsExtent;

/* use: NULL: links have the colours of their kinds. */
LsExtent ls_draw_node (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top);
LsExtent ls_draw_torus (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top);
LsExtent ls_draw_fabric (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top);

/* show/draw/draw_topology.c: the share of its capacity that a link carried, in its busier direction, over
 * the step. Inside of nodes the most of all nodes. 0: idle, or no link; of NULL. */
double ls_topo_use_between (const LsTopoUse *use, uint32_t v, uint32_t w);
/* By its use, or its kind if that is NULL, then as wide as asked. The stroke's tip is in `tip`. */
#define LS_LINK_TIP 80
LsStroke ls_draw_link_stroke (const LsTopoUse *use, const char *name, double share, double width,
                              char tip[LS_LINK_TIP]);

/* Of a vertex and of a link, the same in all parts. */
const char *ls_draw_kind_paint (LsNodeKind kind);

/* A box with its kind and number. */
void ls_draw_vertex (LsDrawing *d, double x, double y, double w, double h, LsNodeKind kind, uint32_t number);

#endif
