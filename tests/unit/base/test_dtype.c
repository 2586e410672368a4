/* Pins: sizes, printed names, and the spellings of other frameworks. */
#include "ls_test.h"

#include "base/dtype.h"

static void
names_parse_back (void)
{
  for (int d = 0; d < LS_N_DTYPES; d++) {
    LsDtype parsed = LS_N_DTYPES;
    LS_CHECK (ls_dtype_parse (ls_dtype_name ((LsDtype) d), &parsed));
    LS_CHECK_INT (parsed, ==, d);
  }
}

static void
sizes_are_in_bytes (void)
{
  LS_CHECK_INT (ls_dtype_bytes (LS_DTYPE_FP32), ==, 4);
  LS_CHECK_INT (ls_dtype_bytes (LS_DTYPE_TF32), ==, 4);
  LS_CHECK_INT (ls_dtype_bytes (LS_DTYPE_FP16), ==, 2);
  LS_CHECK_INT (ls_dtype_bytes (LS_DTYPE_BF16), ==, 2);
  LS_CHECK_INT (ls_dtype_bytes (LS_DTYPE_FP8), ==, 1);
  LS_CHECK_INT (ls_dtype_bytes (LS_DTYPE_BYTE), ==, 1);
}

/* Sixteen values of four bits and a scale of eight are 9 bytes; a part of a byte counts whole. */
static void
nvfp4_counts_its_scales (void)
{
  LS_CHECK_DOUBLE (ls_dtype_size (LS_DTYPE_NVFP4), ==, 9.0 / 16);
  LS_CHECK_INT (ls_dtype_array_bytes (LS_DTYPE_NVFP4, 16), ==, 9);
  LS_CHECK_INT (ls_dtype_array_bytes (LS_DTYPE_NVFP4, 17), ==, 10);
  LS_CHECK_INT (ls_dtype_array_bytes (LS_DTYPE_NVFP4, UINT64_C (1) << 40), ==, 9 * (UINT64_C (1) << 36));
  LS_CHECK_INT (ls_dtype_array_bytes (LS_DTYPE_FP8, 17), ==, 17);
  LS_CHECK_INT (ls_dtype_cast_bytes (LS_DTYPE_NVFP4, 32), ==, 9);
  LS_CHECK_INT (ls_dtype_cast_bytes (LS_DTYPE_FP8, 32), ==, 16);
  LS_CHECK_INT (ls_dtype_cast_bytes (LS_DTYPE_FP32, 32), ==, 32);
}

static void
scaled_formats_are_for_products_only (void)
{
  for (int d = 0; d < LS_N_DTYPES; d++) {
    bool is_scaled = d == LS_DTYPE_FP8 || d == LS_DTYPE_NVFP4;
    LS_CHECK_INT (ls_dtype_is_scaled ((LsDtype) d), ==, is_scaled);
    LS_CHECK_INT (ls_dtype_between ((LsDtype) d), ==, is_scaled ? LS_DTYPE_BF16 : d);
  }
}

static void
long_spellings_are_accepted (void)
{
  LsDtype d = LS_N_DTYPES;
  LS_CHECK (ls_dtype_parse ("bfloat16", &d) && d == LS_DTYPE_BF16);
  LS_CHECK (ls_dtype_parse ("float16", &d) && d == LS_DTYPE_FP16);
  LS_CHECK (ls_dtype_parse ("Half", &d) && d == LS_DTYPE_FP16);
  LS_CHECK (ls_dtype_parse ("Float", &d) && d == LS_DTYPE_FP32);
  LS_CHECK (!ls_dtype_parse ("bf15", &d));
  LS_CHECK (!ls_dtype_parse ("", &d));
  LS_CHECK_INT (d, ==, LS_DTYPE_FP32); /* untouched by failures */
}

LS_TEST_SUITE (LS_TEST (names_parse_back), LS_TEST (sizes_are_in_bytes), LS_TEST (nvfp4_counts_its_scales),
               LS_TEST (scaled_formats_are_for_products_only), LS_TEST (long_spellings_are_accepted))
