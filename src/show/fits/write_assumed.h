/* show/fits/write_assumed.h — what the simulator assumes of a machine beside what was measured there. */
#ifndef LS_SHOW_FITS_WRITE_ASSUMED_H
#define LS_SHOW_FITS_WRITE_ASSUMED_H

#include "calibrate/assumed.h"

/* A table with a verdict on each: they agree within a tenth, or how far apart they are. "" of
 * none. Newly allocated. */
char *ls_assumptions_to_text (const GArray *assumptions);

#endif
