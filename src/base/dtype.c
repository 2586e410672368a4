#include "base/dtype.h"

#include <glib.h>

/* The first name of each format is the one that is printed. */
static const struct {
  uint32_t n_bytes;
  const char *names[6];
} formats[LS_N_DTYPES] = {
  [LS_DTYPE_FP32] = { 4, { "fp32", "float32", "float", "f32" } },
  [LS_DTYPE_TF32] = { 4, { "tf32" } },
  [LS_DTYPE_FP16] = { 2, { "fp16", "float16", "half", "f16" } },
  [LS_DTYPE_BF16] = { 2, { "bf16", "bfloat16" } },
  [LS_DTYPE_FP8] = { 1, { "fp8", "float8", "float8_e4m3fn", "float8_e5m2" } },
  [LS_DTYPE_BYTE] = { 1, { "byte", "uint8", "int8", "u8" } },
};

uint32_t
ls_dtype_bytes (LsDtype dtype)
{
  g_assert (dtype < LS_N_DTYPES);
  return formats[dtype].n_bytes;
}

const char *
ls_dtype_name (LsDtype dtype)
{
  g_assert (dtype < LS_N_DTYPES);
  return formats[dtype].names[0];
}

bool
ls_dtype_parse (const char *name, LsDtype *ret_dtype)
{
  for (int d = 0; d < LS_N_DTYPES; d++)
    for (const char *const *n = formats[d].names; *n; n++)
      if (g_ascii_strcasecmp (name, *n) == 0) {
        *ret_dtype = (LsDtype) d;
        return true;
      }
  return false;
}
