/* ask/kernel_times.h — which kernels somebody asks about, and their times on a GPU. */
#ifndef LS_ASK_KERNEL_TIMES_H
#define LS_ASK_KERNEL_TIMES_H

#include <glib.h>

#include "base/diag.h"
#include "compute/cost.h"
#include "model/kernel.h"

typedef struct {
  LsKernel kernel;
  LsKernelCost cost;   /* alone; its source and extrapolation too          */
  double besides_s;    /* what a table's timing holds besides it           */
  double time_s;       /* the whole: cost and besides, or as measured      */
  LsCostSource source; /* of time_s                                       */
  bool extrapolated;
  double measured_s; /* NaN: not measured                                */
  bool held_out;     /* of the fits                                      */
  bool heeds_heat;   /* takes another time with or without --sustained   */
  bool heeds_dtype;  /* the same of --dtype                              */
  bool is_of_table;  /* time_s is that of --measured                     */
  bool lacks_dtype;  /* its table does not say it                        */
} LsKernelRow;

/* Errors in percent of the measurement; NaN without rows. */
typedef struct {
  guint n;
  double mape_pct;
  double median_pct; /* signed */
} LsKernelErrors;

typedef struct {
  const char *gpu;
  GArray *rows; /* of LsKernelRow */
  bool has_measured;
  LsKernelErrors all, held_out; /* if has_measured */
  GPtrArray *notes;             /* char *: that kernels of this GPU are scaled, from what */
  GArray *assumptions;          /* LsAssumption (job/assumptions.h), of a table what its rows do not say */
} LsKernelRows;

double ls_kernel_row_error_pct (const LsKernelRow *row); /* signed; NaN: not measured */

typedef enum { LS_LAYOUT_TN, LS_LAYOUT_NN, LS_LAYOUT_NT, LS_LAYOUT_TT } LsGemmLayout;

typedef struct {
  char *gpu;             /* name or file of topologies/gpu                                */
  char *gpu_calibration; /* NULL: that of the GPU                                       */
  uint64_t gemm[3];      /* m, n, k; 0: not asked for                                     */
  uint64_t attention[5]; /* batch, seq, heads, kv_heads, head_dim                       */
  int op;                /* of a streaming kernel, LsKernelKind; -1: none                 */
  uint64_t shape[2];     /* its rows and columns ...                                      */
  double bytes;          /* ... or its traffic, or both with access                       */
  int access;            /* LsAccess of such a kernel; NONE: its kind alone is known      */
  uint64_t batch;        /* GEMMs at once                                                 */
  int layout;            /* LsGemmLayout: all sweeps were tn, others count as extrapolated */
  bool causal, backward;
  bool has_dtype;
  int dtype;      /* LsDtype; of --from only these rows                            */
  bool sustained; /* as inside a training step, not in a loop of its own           */
  char *from;     /* CSV of data/measured/read_kernels.h                                      */
  char *measured; /* such a CSV whose times are taken before the model             */
  bool holdout;   /* only rows of families that are held out                       */
  uint64_t min_m, min_seq;
  double min_flops, min_bytes;
  uint32_t given; /* a bit for each key that was set */
} LsKernelSpec;

void ls_kernel_spec_init (LsKernelSpec *spec);
void ls_kernel_spec_clear (LsKernelSpec *spec);
/* key: a long flag of `lockstep kernel`; LS_ERROR_USAGE. */
bool ls_kernel_spec_set (LsKernelSpec *spec, const char *key, const char *value, LsDiagList *diags);

/* The kernels with their times. NULL: LS_ERROR_USAGE, LS_ERROR_INPUT (a file),
 * LS_ERROR_CONFLICT (a dtype that the
 * GPU's matrix units lack), LS_ERROR_LIMIT (a time that cannot be represented). Free with
 * ls_kernel_rows_free(). */
LsKernelRows *ls_kernel_rows_new (const LsKernelSpec *spec, GError **error);
void ls_kernel_rows_free (LsKernelRows *rows); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsKernelRows, ls_kernel_rows_free)

#endif
