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
  LS_DTYPE_BYTE, /* masks, integer payloads */
  LS_N_DTYPES
} LsDtype;

uint32_t ls_dtype_bytes (LsDtype dtype);
const char *ls_dtype_name (LsDtype dtype); /* static: "bf16" */
/* Accepts "bf16" and "bfloat16" and the like; false if unknown. */
bool ls_dtype_parse (const char *name, LsDtype *ret_dtype);

#endif
