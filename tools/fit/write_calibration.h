/* tools/fit/write_calibration.h — a fitted calibration as topologies/calib/NAME.json. */
#ifndef LS_FIT_WRITE_CALIBRATION_H
#define LS_FIT_WRITE_CALIBRATION_H

#include "recipe.h"

/* Writes FOLDER/NAME.json whole or not at all. */
char *ls_fit_calibration_json (LsRecipe *recipe); /* newly allocated: the file */
gboolean ls_fit_write_calibration (LsRecipe *recipe, const char *folder, GError **error);

#endif
