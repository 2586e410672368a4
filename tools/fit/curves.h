/* tools/fit/curves.h — measured collectives: collectives.csv by curves. */
#ifndef LS_FIT_CURVES_H
#define LS_FIT_CURVES_H

#include <glib.h>

#include "network/coll.h"

typedef struct {
  uint64_t bytes;
  double measured_s;
} LsFitPoint;

/* The sizes that one source's cluster was measured at, for one operation and number of
 * GPUs. Curves of several sources on one cluster are one. */
typedef struct {
  char *cluster;
  LsCollKind kind;
  uint32_t n_gpus, n_nodes;
  GArray *points; /* LsFitPoint, in the order of the file */
} LsFitCurve;

/* Rows of these clusters (a NULL ends the list) and of this trust. NULL and error: no such
 * file. Owned by the caller: LsFitCurve. */
GPtrArray *ls_fit_read_curves (const char *path, const char *const *clusters, const char *trust, GError **error);

/* 4 and 32 GPUs: never fitted. */
bool ls_fit_is_held_out (const LsFitCurve *c);

#endif
