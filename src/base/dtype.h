/* base/dtype.h — number formats and their sizes. */
#ifndef LS_BASE_DTYPE_H
#define LS_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
  LS_DTYPE_FP32,
  LS_DTYPE_TF32,
  LS_DTYPE_FP16,
  LS_DTYPE_BF16,
  LS_DTYPE_FP8,
  LS_DTYPE_BYTE,  /* masks, integer payloads */
  LS_DTYPE_NVFP4, /* four bits, and for each 16 values a scale of eight */
  LS_N_DTYPES
} LsDtype;

uint32_t ls_dtype_bytes (LsDtype dtype); /* of an element; not of formats that take no whole number */
double ls_dtype_size (LsDtype dtype);    /* the same of any, scales counted: nvfp4 0.5625 */
uint64_t ls_dtype_array_bytes (LsDtype dtype, uint64_t n); /* of n elements, rounded up */
/* fp8 and nvfp4: for the operands of matrix products only, with scaling factors. */
bool ls_dtype_is_scaled (LsDtype dtype);
/* What stands between products: bf16 with a scaled format, else the format itself. */
LsDtype ls_dtype_between (LsDtype dtype);
/* What an array of so many bytes between products takes once it is cast for them. */
uint64_t ls_dtype_cast_bytes (LsDtype dtype, uint64_t n_bytes);
const char *ls_dtype_name (LsDtype dtype); /* static: "bf16" */
/* Accepts "bf16" and "bfloat16" and the like; false if unknown. */
bool ls_dtype_parse (const char *name, LsDtype *ret_dtype);

#endif
