/* show/plot/plot_calibration.h — predicted over measured time of the kernels of a fit, both axes
 * logarithmic: on the line they agree, inside the band they differ by 10 % at most. A
 * colour for each class; open marks were held out. */
#ifndef LS_SHOW_PLOT_PLOT_CALIBRATION_H
#define LS_SHOW_PLOT_PLOT_CALIBRATION_H

#include "show/fits/write_fit.h"

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(). */
gboolean ls_plot_calibration (const LsFitReport *report, const char *path, GError **error);

#endif
