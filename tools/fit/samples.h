/* tools/fit/samples.h — measured kernels, read from the CSVs of a folder laid out
 * as data/README.md (section kernels/) says. What `lockstep kernel --from` reads too
 * is data/measured/read_kernels.h's, with its hold-out; the key of the others is "rows,columns"
 * ("hidden" where one table holds thousands of token counts). */
#ifndef LS_FIT_SAMPLES_H
#define LS_FIT_SAMPLES_H

#include "base/diag.h"
#include "calibrate/calibrate_fit.h"
#include "data/measured/read_kernels.h"
#include "data/text/csv.h"

/* Each appends LsTimedKernel values to `samples`; trouble goes to diags. */
typedef struct {
  const char *folder;
  GArray *samples;
  LsDiagList *diags;
} LsSampleSink;

LsSampleSink ls_samples_sink (const char *folder, LsDiagList *diags); /* its samples are the caller's */

/* Sizes that training has. */
bool ls_sample_is_training_gemm (const LsTimedKernel *sample);

/* Of n columns. A missing one is an error of the file, reported once; false then, and without a file. */
bool ls_samples_find_columns (const LsCsv *csv, LsDiagList *diags, const char *const *names, int *ret_columns, guint n);

void ls_samples_read (LsSampleSink *sink, const char *file, const char *gpu, LsSampleFilter filter);
void ls_samples_vidur_embedding (LsSampleSink *sink, const char *file);
/* LLMCompass times hold a constant host time: has_host. */
void ls_samples_llmcompass_rows (LsSampleSink *sink, const char *file, LsKernelKind kind);
void ls_samples_llmcompass_gelu (LsSampleSink *sink, const char *file);

/* As ls_samples_read(), of a table of several formats or GPUs the rows whose cells are these: `where` is "column=value,
 * column=value". */
void ls_samples_where (LsSampleSink *sink, const char *file, const char *where);
/* Of a table with several formats those in nvfp4. */
void ls_samples_gemm_nvfp4 (LsSampleSink *sink, const char *file);

/* Products alone: nothing else is in the timing, and nothing is held out. In nvfp4 by cuBLASLt; in fp8 of a weight's gradient, both
 * operands with scales of blocks, added to an fp32 result. */
void ls_samples_cublaslt_nvfp4 (LsSampleSink *sink, const char *file);
void ls_samples_deepgemm_wgrad (LsSampleSink *sink, const char *file);

/* SimuMax's measurements (README.md), as shares of `peak`: loops of one GEMM whose warm-up alone
 * takes MIN_HOT_LOOP, so that they run at the rate to which the power limit lets them fall;
 * `accumulates`: weight gradients, added to an fp32 result, else the two others. */
void ls_samples_simumax_gemm (LsSampleSink *sink, const char *file, double peak, bool accumulates);
/* Causal attention, kernel by kernel, in a profile: what lies between two kernels is has_host. */
void ls_samples_simumax_attention (LsSampleSink *sink, const char *file, bool is_backward);

/* Rates of an implementation of attention on a GPU, which papers and others print (README.md). */
typedef struct {
  const char *gpu, *kernel;
  const char *as;           /* not NULL: rates of the A100 times what this implementation reaches here of its rate there,
                               under the same mask, with the same heads and length */
  bool is_backward;
  const LsKindFit *forward; /* backward: what is left of both passes behind this; NULL: both run at one rate */
  const LsGpu *chip;        /* with forward */
  bool only_causal;         /* rows without a mask are left out: other kernels, which other coefficients would describe */
  double head_step;         /* between the widths of heads that it has kernels for; 0: any */
} LsFigure;

/* Whether the table parts forward and backward; if it does, the forward is that alone. */
bool ls_samples_attention_figures (LsSampleSink *sink, const char *file, const LsFigure *of);

/* cuDNN's attention as its frontend's benchmark times it on a GPU, each call behind others that leave the chip cool and the L2 empty
 * (NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training). Not in the samples: windows, which fp8 backward does not skip, and
 * backward passes that sum in a fixed order. launch: of a kernel, which a profiler's time does not hold. */
typedef struct {
  const char *gpu, *dtype; /* "NVIDIA GB200", "mxfp8" */
  bool is_backward, only_causal;
  LsTime launch;
  double slower;           /* what the times are multiplied with */
} LsCudnnRows;

void ls_samples_cudnn_attention (LsSampleSink *sink, const char *file, const LsCudnnRows *of);

/* Median over the calls of both tables that take MIN_CALL or more of the time in `file` over that in `other`; attention in that
 * format ("fp8"). */
double ls_samples_attention_ratio (LsSampleSink *sink, const char *file, const char *other, const char *dtype);

/* Best sustained FLOP/s of an accelerator in the MAMF table, and its shape.
 * false, with a diagnostic, if it is not there. */
bool ls_samples_mamf (const char *folder, const char *accelerator, const char *dtype, double *ret_flop_per_s,
                      uint64_t ret_mnk[3], LsDiagList *diags);

#endif
