/* calibrate/calibrate_nccl.h — an NCCL file fitted to runs of nccl-tests on one cluster.
 *
 * Each file of data/measured/read_nccl_tests.h is a curve (files of one operation and number of GPUs are one
 * curve). The figures start from the NCCL file of the cluster's GPU; fitted are those that the curves show,
 * in this order:
 *
 *   base_all_reduce                a collective (one base for all of them; the others follow)
 *   ring_bus_intra                 a ring inside a node
 *   nvls_bus                       an all-reduce of a whole node with NVLink SHARP
 *   ring_bus_per_nic               a collective across nodes
 *   p2p_intra; p2p_inter, base_p2p_inter   a send inside a node; across nodes
 *   ramp_bytes                     a collective inside a node
 *   hop_inter                      a collective across nodes
 *   handshake                      a collective
 *   hop_intra                      curves of different numbers of steps inside a node
 *   drain                          such curves, if one is a ring
 *   base_nvls                      as nvls_bus
 *   self_copy                      an all-to-all
 *
 * and of these at most half as many as there are points, and only those that the points can tell: sizes of 1
 * to 16 KiB tell no bandwidth. What the curves show and is not fitted stays, and is named with the reason;
 * what they do not show stays, with its source.
 *
 * Rates are efficiencies of a link (network/nccl/nccl.h). Fitted are those of the cluster's own links;
 * the file has them carried to the links that it names in measured_on, which stay those of the file that it
 * started from. A job on the cluster carries them back, and one on other links to these. */
#ifndef LS_CALIBRATE_CALIBRATE_NCCL_H
#define LS_CALIBRATE_CALIBRATE_NCCL_H

#include <glib.h>

#include "calibrate/fit_report.h"
#include "cluster/cluster.h"
#include "data/text/json_doc.h"
#include "job/hardware.h"
#include "network/coll.h"

/* A figure of the file. */
typedef struct {
  char *key;
  char *was, *now; /* as a file spells it: "0.829us", "0.398" */
  bool is_number;  /* no unit                                 */
  bool is_derived; /* follows from another, which was fitted  */
  double error;    /* standard error of its ln; NaN: not told */
} LsNcclChange;

/* A figure that the points might have told, and did not. */
typedef struct {
  char *value;
  const char *key; /* static */
  const char *why; /* static */
} LsNcclKept;

/* Points below 1 MiB and the others. */
typedef struct {
  char *name; /* "all-reduce, 8 GPUs on 1 node" */
  bool held_out;
  LsFitError error[2];
} LsNcclFitCurve;

typedef struct {
  char *cluster;
  GPtrArray *files;     /* char *: a line for each */
  GArray *changes;      /* LsNcclChange            */
  GArray *kept;         /* LsNcclKept              */
  GArray *curves;       /* LsNcclFitCurve          */
  LsFitError all[2][2]; /* fitted and held out; below 1 MiB and above */
} LsNcclFitReport;

typedef struct {
  const char *const *files; /* at least one, NULL at the end                           */
  const char *cluster;      /* name or file of topologies                              */
  const char *op;           /* "all-reduce"; NULL: the files say what ran              */
} LsCalibrateNcclSpec;

typedef struct LsCalibrateNccl LsCalibrateNccl;

/* NULL: LS_ERROR_USAGE (no file, no cluster, an unknown operation), LS_ERROR_INPUT (a file is
 * missing, damaged or of wrong results; more ranks than the cluster's nodes hold; an
 * operation that is not modelled), LS_ERROR_UNSUPPORTED (a torus). */
LsCalibrateNccl *ls_calibrate_nccl_new (const LsCalibrateNcclSpec *spec, GError **error);
void ls_calibrate_nccl_free (LsCalibrateNccl *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCalibrateNccl, ls_calibrate_nccl_free)

const LsNcclFitReport *ls_calibrate_nccl_report (const LsCalibrateNccl *run);
/* The NCCL file of that name; newly allocated. */
char *ls_calibrate_nccl_json (const LsCalibrateNccl *run, const char *name);

/* --- a fit to runs of nccl-tests on the way ------------------------------------------------------ */

struct LsCalibrateNccl {
  LsHardware *hardware;
  LsJsonDoc *base;   /* the NCCL file that is fitted anew */
  GPtrArray *tests;  /* LsNcclTests                       */
  GPtrArray *curves; /* LsNcclCurve                      */
  LsNcclFitReport report;
};

/* --- numbers of an NCCL file fitted to measured collectives ------------------------------------------ */

/* With the very functions that predict them.
 *
 * A curve is what one cluster took for one operation on so many GPUs, over sizes. Curves
 * weigh alike, however many points they have, and their points below 1 MiB together half
 * as much as those above. Curves with 4 or 32 GPUs are held out whole.
 *
 * Objective: the sum over curves of the mean Huber loss of log (predicted / measured),
 * delta 0.1, so that outliers count linearly. Minimiser: Nelder-Mead
 * (gsl_multimin_fminimizer_nmsimplex2) on the logarithms, restarted until it stays.
 * Results are rounded to three digits, and judged so. */

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

#endif
