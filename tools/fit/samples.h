/* tools/fit/samples.h — measured kernels, read from the CSVs of a folder laid out
 * as data/README.md (section kernels/) says.
 *
 * Hold-out. A family is held out if the md5 of its key, taken as a hexadecimal
 * number, is 0 mod 5. The key is "n,k" for GEMMs, "heads,kv_heads,head_dim" for
 * attention, and for streaming kernels, for which no rule is published,
 * "rows,columns" ("hidden" where one table holds thousands of token counts). */
#ifndef LS_FIT_SAMPLES_H
#define LS_FIT_SAMPLES_H

#include "base/diag.h"
#include "model/kernel.h"

typedef struct {
  LsKernel kernel;
  double seconds;
  double side_bytes; /* traffic of another kernel that the timing includes       */
  bool has_host;     /* timed through a framework: a constant host time is in it */
  bool held_out;
} LsSample;

/* Each appends LsSample values to `samples`; trouble goes to diags. A GEMM or
 * attention row of another dtype is passed over. */
typedef struct {
  const char *folder;
  GArray *samples;
  LsDiagList *diags;
} LsSampleSink;

void ls_samples_gemm (LsSampleSink *sink, const char *file, LsDtype dtype);
void ls_samples_attention (LsSampleSink *sink, const char *file, LsDtype dtype);
void ls_samples_vidur_add (LsSampleSink *sink, const char *file, const char *gpu);
void ls_samples_vidur_gemm (LsSampleSink *sink, const char *file, const char *gpu);
void ls_samples_vidur_mlp_gemm (LsSampleSink *sink, const char *file);
void ls_samples_vidur_embedding (LsSampleSink *sink, const char *file);
void ls_samples_llmcompass_gemm (LsSampleSink *sink, const char *file);
void ls_samples_llmcompass_rows (LsSampleSink *sink, const char *file, LsKernelKind kind);
void ls_samples_llmcompass_gelu (LsSampleSink *sink, const char *file);

/* Best sustained FLOP/s of an accelerator in the MAMF table, and its shape.
 * false, with a diagnostic, if it is not there. */
bool ls_samples_mamf (const char *folder, const char *accelerator, const char *dtype, double *ret_flop_per_s,
                      uint64_t ret_mnk[3], LsDiagList *diags);

#endif
