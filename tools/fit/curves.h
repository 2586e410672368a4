/* tools/fit/curves.h — measured collectives: collectives.csv by curves. */
#ifndef LS_FIT_CURVES_H
#define LS_FIT_CURVES_H

#include "calibrate/nccl_fit.h"

/* Rows of these clusters (a NULL ends the list) and of this trust. Curves of several sources
 * on one cluster are one. NULL and error: no such file. Owned by the caller: LsNcclCurve. */
GPtrArray *ls_fit_read_curves (const char *path, const char *const *clusters, const char *trust, GError **error);

#endif
