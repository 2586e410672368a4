#include "base/dtype.h"

#include <math.h>

#include <glib.h>

/* The first name of each format is the one that is printed. */
static const struct {
  double n_bytes;
  const char *names[6];
} formats[LS_N_DTYPES] = {
  [LS_DTYPE_FP32] = { 4, { "fp32", "float32", "float", "f32" } },
  [LS_DTYPE_TF32] = { 4, { "tf32" } },
  [LS_DTYPE_FP16] = { 2, { "fp16", "float16", "half", "f16" } },
  [LS_DTYPE_BF16] = { 2, { "bf16", "bfloat16" } },
  [LS_DTYPE_FP8] = { 1, { "fp8", "float8", "float8_e4m3fn", "float8_e5m2" } },
  [LS_DTYPE_BYTE] = { 1, { "byte", "uint8", "int8", "u8" } },
  /* Blocks of 16 values E2M1 with a scale E4M3 (NVIDIA, Pretraining Large Language Models with NVFP4, arXiv
   * 2509.25149, section 2); the scale of the whole tensor, one fp32, counts for nothing. */
  [LS_DTYPE_NVFP4] = { 4.5 / 8, { "nvfp4" } },
};

uint32_t
ls_dtype_bytes (LsDtype dtype)
{
  double size = ls_dtype_size (dtype);
  g_assert (size >= 1);
  return (uint32_t) size;
}

double
ls_dtype_size (LsDtype dtype)
{
  g_assert (dtype < LS_N_DTYPES);
  return formats[dtype].n_bytes;
}

uint64_t
ls_dtype_array_bytes (LsDtype dtype, uint64_t n)
{
  double size = ls_dtype_size (dtype);
  return size >= 1 ? n * (uint64_t) size : (uint64_t) ceil ((double) n * size);
}

bool
ls_dtype_is_scaled (LsDtype dtype)
{
  return dtype == LS_DTYPE_FP8 || dtype == LS_DTYPE_NVFP4;
}

LsDtype
ls_dtype_between (LsDtype dtype)
{
  return ls_dtype_is_scaled (dtype) ? LS_DTYPE_BF16 : dtype;
}

uint64_t
ls_dtype_cast_bytes (LsDtype dtype, uint64_t n_bytes)
{
  return ls_dtype_array_bytes (dtype, n_bytes / ls_dtype_bytes (ls_dtype_between (dtype)));
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
