/* compute/measured.h — kernels that were timed on a GPU, put before its fit.
 *
 * Problem. A fit smooths over what a library does with one shape. Where that shape was
 * timed, or its neighbours were, the timing knows better.
 *
 * Rule. A row is of the same kernel if kind, number format, FLOPs and traffic per element agree, and for
 * streaming kernels the name too ("bias-gelu" is not "add"), for attention whose it is (LsAttentionKernel).
 * With f the time that the fit gives and t the measured one:
 *
 *   exact         all sizes agree: t
 *   interpolated  all but one of m, n, k and the batch agree, and rows lie on both sides
 *                 of it, at most a factor 4 apart: f of the kernel times t / f, which goes
 *                 as a power of that size from one neighbour to the other. Where several
 *                 sizes would do, the one whose neighbours are nearest
 *   otherwise     nothing: a table is never extrapolated
 *
 * t / f is interpolated, not t, so that waves of tiles between the neighbours stay. Inside
 * a training step, where a fit is slower (LsCalibration.sustained), t is as much slower.
 *
 * Worked example. Measured 1.2 times the fit at m = 1024 and 1.1 times at m = 4096: at
 * 2048, half way in the logarithm, sqrt (1.2 * 1.1) = 1.149 times.
 *
 * Deviations. Layouts (tn, nn, nt) of one shape are one kernel to a plan: their rows are
 * averaged. */
#ifndef LS_COMPUTE_MEASURED_H
#define LS_COMPUTE_MEASURED_H

#include "compute/cost.h"

#define LS_MEASURED_MAX_GAP 4.0 /* of the sizes of two neighbours */

/* One timed kernel, alone on a cool GPU. */
typedef struct {
  char *name;         /* of streaming kernels; NULL: any */
  int kind;           /* LsKernelKind                    */
  int dtype;          /* LsDtype                         */
  int implementation; /* LsAttentionKernel; AUTO: not said */
  uint64_t m, n, k, batch;
  double flops, bytes;
  LsTime time;
} LsMeasuredKernel;

/* Its shape; borrows the name. */
LsKernel ls_measured_shape (const LsMeasuredKernel *row);

/* Frees the names and the array; NULL allowed. */
void ls_measured_free (GArray *table);

/* What the time by `fit` is to be multiplied with, by a table of LsMeasuredKernel (NULL: empty), of attention
 * by the rows of that LsAttentionKernel, and whether that is LS_COST_MEASURED or LS_COST_INTERPOLATED. false:
 * the table does not know. */
bool ls_measured_find (const GArray *table, int implementation, const LsKindFit *fit, const LsGpu *gpu,
                       const LsKernel *kernel, double *ret_factor, LsCostSource *ret_source);

/* Puts the table's time in the place of the fit's, launch and both terms stretched alike. */
void ls_measured_refine (const GArray *table, int implementation, const LsKindFit *fit, const LsGpu *gpu,
                         const LsKernel *kernel, LsKernelCost *cost);

/* Whether it has figures of that implementation, fitted or a stated guess. AUTO: always. */
bool ls_calibration_has_attention (const LsCalibration *calibration, LsAttentionKernel kernel);
/* cuDNN's for operands of that format. */
LsAttentionKernel ls_cudnn_attention (LsDtype dtype, bool by_blocks);
/* Whose attention the job runs for such a kernel; AUTO where that was not measured. */
LsAttentionKernel ls_calibration_implementation (const LsCalibration *calibration, const LsKernel *kernel);
/* The coefficients of a kernel: of attention those of the implementation in the kernel's format, else
 * attention_fp8 forward in fp8, else those of its kind. */
const LsKindFit *ls_calibration_fit (const LsCalibration *calibration, const LsKernel *kernel);

#endif
