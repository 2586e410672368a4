/* calibrate/nccl_fit.h — numbers of an NCCL file fitted to measured collectives, with the very
 * functions that predict them.
 *
 * A curve is what one cluster took for one operation on so many GPUs, over sizes. Curves
 * weigh alike, however many points they have, and their points below 1 MiB together half
 * as much as those above. Curves with 4 or 32 GPUs are held out whole.
 *
 * Objective: the sum over curves of the mean Huber loss of log (predicted / measured),
 * delta 0.1, so that outliers count linearly. Minimiser: Nelder-Mead
 * (gsl_multimin_fminimizer_nmsimplex2) on the logarithms, restarted until it stays.
 * Results are rounded to three digits, and judged so. */
#ifndef LS_CALIBRATE_NCCL_FIT_H
#define LS_CALIBRATE_NCCL_FIT_H

#include <glib.h>

#include "cluster/cluster.h"
#include "network/coll.h"

#define LS_NCCL_SMALL_BYTES ((uint64_t) 1024 * 1024) /* errors are told apart here */

typedef struct {
  uint64_t bytes;
  double measured_s;
} LsNcclPoint;

typedef struct {
  char *name; /* of the cluster, or of the file; told in reports */
  LsCollKind kind;
  uint32_t n_gpus, n_nodes; /* the first n_gpus / n_nodes GPUs of each node */
  bool held_out;
  GArray *points; /* LsNcclPoint, in the order of the file */
} LsNcclCurve;

LsNcclCurve *ls_nccl_curve_new (const char *name, LsCollKind kind, uint32_t n_gpus, uint32_t n_nodes);
void ls_nccl_curve_free (void *curve);

/* One number that is fitted: where it lives, how it is printed. Times are LsTime in the
 * struct, and seconds here. */
typedef enum { LS_NCCL_TIME, LS_NCCL_BYTES, LS_NCCL_RATE, LS_NCCL_RATIO } LsNcclUnit;
typedef struct {
  const char *name; /* NULL ends a list */
  size_t offset;
  LsNcclUnit unit;
  double start;
} LsNcclFitted;
#define LS_NCCL_FIT(field, unit, start)                                                                      \
  {                                                                                                          \
#field, offsetof(LsNccl, field), unit, start                                                             \
  }

double ls_nccl_get (const LsNccl *nccl, const LsNcclFitted *f);
/* "8.94us", "7.8MB", "21.3GB/s", "0.4": as a file spells it; newly allocated. */
char *ls_nccl_spell (const LsNccl *nccl, const LsNcclFitted *f);

typedef struct {
  const LsCluster *cluster;
  const LsNccl *fixed;
  const LsNcclFitted *fitted;
  const GPtrArray *curves; /* LsNcclCurve */
  /* Sets what follows from the fitted numbers. */
  void (*complete) (LsNccl *nccl, const LsNcclFitted *fitted);
} LsNcclProblem;

double ls_nccl_predict_s (const LsCluster *cluster, const LsNccl *nccl, const LsNcclCurve *curve,
                          uint64_t bytes, LsArena *arena);
/* Borrows the strings of p->fixed. The loss that was reached, if wanted. */
LsNccl ls_nccl_fit (const LsNcclProblem *p, double *ret_loss);

/* A cluster of that spec whose links inside nodes are wider than any collective, those
 * between nodes as fast as they may be, without latency: what is fitted is then the limit of
 * NCCL, not of a link. NULL: an error of ls_cluster_build(). */
LsCluster *ls_nccl_wide_cluster (const LsClusterSpec *spec, uint32_t n_nodes, GError **error);

/* --- which figures of an NCCL file measured collectives can tell --------------------------------- */

/* J_ij: by how much ln (time) of point i moves for ln (figure j), by differences of 2 % from where the
 * fit of j starts, with the others as they were fitted. Of the points that are fitted
 *
 *   two at least must move by a tenth of what the figure does: else no size depends on it (a bandwidth, of
 *   1 to 16 KiB);
 *   the standard error s sqrt ((J'J)^-1_jj) must be below 0.25: else it trades with others, and the worst
 *   one goes
 *
 * with s the larger of 1 %, what runs of nccl-tests scatter by (a guess), and the root mean square of what is
 * left. */

/* The first of p->fitted that they cannot tell at these figures, and why (static); their number: all are
 * told. ret_error: standard errors of their ln, as far as known. */
size_t ls_nccl_untold (const LsNcclProblem *p, const LsNccl *at, double *ret_error, const char **ret_why);

#endif
