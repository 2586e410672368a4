/* analysis/logged_step.h — what a log says of a step that was run, next to what is predicted: whether its
 * numbers agree with each other and with this job, and where not, what would explain it.
 *
 *     FLOPs of a step that the log counts = its TFLOP/s of a GPU * GPUs * its step time
 *     tokens of a step                    = its tokens/s * its step time
 *
 * Programs count FLOPs in different ways; those that are known are tried, and the one that fits is named.
 * Nothing here changes the prediction. */
#ifndef LS_ANALYSIS_LOGGED_STEP_H
#define LS_ANALYSIS_LOGGED_STEP_H

#include "analysis/report.h"

#define LS_MEASURED_AGREES 0.02 /* logged numbers are rounded to two or three digits */

/* 0: the log does not say. */
typedef struct {
  double step_s;
  double flops_per_gpu; /* FLOP/s of one, as logged                   */
  double tokens_per_s;  /* of all GPUs, unless:                       */
  double tokens_per_s_per_gpu;
  double memory_bytes;   /* allocated: the peak of the fullest rank    */
  double reserved_bytes; /* by PyTorch's allocator: the same           */
  guint n_lines;         /* of a log, that time a step                 */
  guint n_steady;        /* those of them whose median step_s is       */
  bool is_published;     /* asked for as such: the word before it      */
  char *source;          /* who says so; NULL: not said                */
} LsMeasured;

void ls_measured_clear (LsMeasured *m);                             /* NULL allowed */
void ls_measured_copy (LsMeasured *dest, const LsMeasured *source); /* deep; what dest held is overwritten */

/* Sentences (char *) about the numbers beside the time, none if there are none or what is trained is not
 * known (model NULL). s resolved. Free with g_ptr_array_unref(). */
GPtrArray *ls_measured_explain (const LsMeasured *m, const LsReport *r, const LsModel *model,
                                const LsStrategy *s);
/* Those of the numbers that no rounding and no known way to count explains, with what this job has of them,
 * a clause each: "234 TFLOP/s of a GPU where this job has 487". As above. */
GPtrArray *ls_measured_contradictions (const LsMeasured *m, const LsReport *r, const LsModel *model,
                                       const LsStrategy *s);

#endif
