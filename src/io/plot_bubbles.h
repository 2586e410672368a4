/* io/plot_bubbles.h — bubbles of pipeline schedules over micro-batches and over stages. */
#ifndef LS_IO_PLOT_BUBBLES_H
#define LS_IO_PLOT_BUBBLES_H

#include <glib.h>
#include <stdint.h>

typedef struct {
  uint32_t x;    /* micro-batches, or stages (ranks) */
  double bubble; /* of the span, 0 to 1 */
} LsBubblePoint;

typedef struct {
  const char *schedule; /* static */
  guint line;           /* its colour and mark, the same in both panels */
  GArray *points;       /* LsBubblePoint, ascending in x */
} LsBubbleCurve;

typedef struct {
  char *title;
  char *notes[2];    /* what is fixed in each panel */
  GArray *panels[2]; /* LsBubbleCurve: over micro-batches, over stages */
} LsBubbles;

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(); LS_ERROR_CONFLICT: there is no point. */
gboolean ls_plot_bubbles (const LsBubbles *b, const char *path, GError **error);

#endif
