/* show/plot/plot_bubbles.h — bubbles of pipeline schedules over micro-batches and over stages. */
#ifndef LS_SHOW_PLOT_PLOT_BUBBLES_H
#define LS_SHOW_PLOT_PLOT_BUBBLES_H

#include "ask/schedule.h"

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(); LS_ERROR_CONFLICT: there is no point. */
gboolean ls_plot_bubbles (const LsBubbles *b, const char *path, GError **error);

#endif
