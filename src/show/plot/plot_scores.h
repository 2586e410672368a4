/* show/plot/plot_scores.h — predicted over measured step times, both axes logarithmic: on the line
 * they agree, inside the band they differ by 10 % at most; below, the errors over the same axis. A
 * colour and a mark for each family; refused rows are not there. */
#ifndef LS_SHOW_PLOT_PLOT_SCORES_H
#define LS_SHOW_PLOT_PLOT_SCORES_H

#include "show/fits/write_scores.h"

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(); LS_ERROR_FAILED: no row was simulated. */
gboolean ls_plot_scores (const LsScores *scores, const char *path, GError **error);

#endif
