/* data/measured/read_kernels.h — shapes of kernels, one or several a row, with their measured
 * times where the table has them.
 *
 * Tables are told apart by their columns, which are found by name, in any order;
 * others are ignored:
 *   GEMM       m n k (or M N K), dtype (default fp16)
 *   attention  batch seq heads kv_heads head_dim, attn_dtype (default bf16), kv_dtype: causal,
 *              forward, timed with the rotation of Q and K and the copy into the KV
 *              cache before it (TensorRT-LLM's prefill)
 *   streaming  op (add, rmsnorm, silu_mul) tokens hidden bytes_min: vLLM's kernels
 *   layer      n_head n_kv_head n_embd n_expanded_embd use_gated_mlp num_tokens
 *              num_tensor_parallel_workers, and a time per operator: vidur's mlp.csv
 * Times: latency_ms, latency_us, us_median or time_us. A table with a column `gpu` may hold
 * several; its rows for another are passed over.
 *
 * Hold-out. A family is held out of fits if the md5 of its key, taken as a hexadecimal number, is 0 mod 5; a
 * half of them, if it is even. The key is "n,k" for GEMMs, "heads,kv_heads,head_dim" for attention,
 * "rows,columns" for streaming kernels. */
#ifndef LS_DATA_MEASURED_READ_KERNELS_H
#define LS_DATA_MEASURED_READ_KERNELS_H

#include <glib.h>

#include "base/diag.h"
#include "model/kernel.h"

/* Whose kernel was timed: what training runs, or another implementation. */
typedef enum { LS_TIMED_USUAL, LS_TIMED_VLLM_RMSNORM, LS_TIMED_VLLM_SILU_MUL } LsTimedWhat;

typedef struct {
  LsKernel kernel; /* its name is static                                            */
  LsTimedWhat what;
  LsAttentionKernel attention; /* of flash attention: which implementation; AUTO: not said */
  double measured_s;           /* NaN: the table has no times                                 */
  double side_bytes;           /* traffic of another kernel that the timing includes          */
  bool has_host;               /* timed through a framework: a constant host time is in it    */
  guint family;                /* 0 to 9: of its key (see above)                              */
  bool held_out;               /* by the usual rule; a calibration may hold out others        */
  guint row;                   /* of the file, from 0 below its header                        */
} LsTimedKernel;

/* All rows of the file, or of its text if that is not NULL, that are for `gpu` ("a100": the name of a
 * calibration); NULL, with located diagnostics (LS_ERROR_INPUT), if the columns are those of no known
 * table, a cell is wrong or no row is left. A GArray of LsTimedKernel. Rows in a format of which no
 * product is simulated by itself (fp8_block, fp4_block, int8), or with keys and values in another than the
 * rest (kv_dtype), are passed over and counted in `n_foreign`, which may be NULL. */
GArray *ls_read_kernels (const char *path, const char *text, const char *gpu, guint *n_foreign,
                         LsDiagList *diags);

/* The md5 of the key of a family mod 10: "4096,1024". */
guint ls_kernel_family (const char *key);
/* Sets `held_out` of each by the usual rule, or by that for a half. */
void ls_hold_kernels_out (GArray *kernels, bool holds_half);

#endif
