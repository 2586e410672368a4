/* Times of kernels on the shipped GPUs: the accuracy that is promised, on families that
 * no fit saw, and published figures that no fit used. Targets: 7 % for 16-bit GEMMs of
 * 1 GFLOP and more, 10 % in fp8, 8 % for attention from 1024 tokens on, 15 % for
 * streaming kernels of 8 MB and more; medians within 2 %. The large tables of the other
 * GPUs are left to fit/kernels, which holds all calibrations to the same. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "ask/kernel_times.h"

typedef struct {
  const char *key, *value;
} Knob;

static LsKernelRows *
rows_of (const Knob *knobs, GError **error)
{
  LsKernelSpec spec;
  ls_kernel_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (; knobs->key; knobs++)
    LS_CHECK (ls_kernel_spec_set (&spec, knobs->key, knobs->value, diags));
  LsKernelRows *rows = ls_kernel_rows_new (&spec, error);
  ls_kernel_spec_clear (&spec);
  return rows;
}

static LsKernelRow
one (const Knob *knobs)
{
  g_autoptr (LsKernelRows) rows = rows_of (knobs, NULL);
  LsKernelRow none = { .time_s = NAN };
  LS_CHECK (rows && rows->rows->len == 1);
  return rows ? g_array_index (rows->rows, LsKernelRow, 0) : none;
}

/* Held-out error of a table, at least `n` rows, must stay under `mape`; the median too. */
static void
check_table (const char *gpu, const char *file, const char *dtype, const char *min_key, const char *min,
             guint n, double mape, double median)
{
  const char *data = ls_test_shared_data ();
  if (!data)
    return;
  g_autofree char *path = g_build_filename (data, "kernels", file, NULL);
  const Knob knobs[] = { { "gpu", gpu },   { "from", path },   { "dtype", dtype },
                         { min_key, min }, { "holdout", "1" }, { NULL } };
  g_autoptr (LsKernelRows) rows = rows_of (knobs, NULL);
  if (!LS_CHECK (rows != NULL))
    return;
  const LsKernelErrors *e = &rows->held_out;
  ls_check_impl (e->n >= n && e->mape_pct <= mape && fabs (e->median_pct) <= median, __FILE__, __LINE__,
                 "%s, %s, %s: %u rows, error %.2f %%, median %+.2f %%", gpu, file, dtype, e->n, e->mape_pct,
                 e->median_pct);
}

static void
gemms_are_within_7_percent (void)
{
  check_table ("a100-80g", "gemm_a100.csv", "bf16", "min-flops", "1e9", 300, 7, 2);
}

static void
attention_is_within_3_percent (void)
{
  check_table ("a100-80g", "attn_fwd_a100.csv", "bf16", "min-seq", "1024", 350, 3, 2);
}

static void
streams_are_within_15_percent (void)
{
  check_table ("a100-80g", "elementwise_vidur.csv", "fp16", "min-bytes", "8MB", 12, 15, 2);
}

/* Worked examples fa-2 and fa-3: FlashAttention-3 on an H100, bf16, no mask, 16,384 tokens:
 * 620.7 and 648 TFLOP/s by two readings, which differ by 4 %. Ours is fitted to another
 * kernel, TensorRT-LLM's, and to causal masks only: slower, but within 15 %. */
static void
attention_without_a_mask_is_near_flash_attention_3 (void)
{
  const Knob knobs[]
      = { { "gpu", "h100" }, { "attention", "1,16384,16,16,128" }, { "causal", "0" }, { NULL } };
  LsKernelRow row = one (knobs);
  LS_CHECK_NEAR (row.kernel.flops / row.time_s, 634e12, 0.15);
}

/* MAMF table (stas00/ml-engineering compute/accelerator: 794.5, 271.2 TFLOP/s): best sustained rates at their
 * shapes. */
static void
best_matmuls_are_near_the_best_sustained_rate (void)
{
  const Knob h100[] = { { "gpu", "h100" }, { "gemm", "2048,2048,13312" }, { NULL } };
  const Knob a100[] = { { "gpu", "a100-80g" }, { "gemm", "1024,10240,5120" }, { NULL } };
  LsKernelRow h = one (h100), a = one (a100);
  LS_CHECK_NEAR (h.kernel.flops / h.time_s, 794.5e12, 0.1);
  LS_CHECK_NEAR (a.kernel.flops / a.time_s, 271.2e12, 0.1);
}

static void
a_step_is_hotter_than_a_loop (void)
{
  const Knob loop[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { NULL } };
  const Knob step[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { "sustained", "1" }, { NULL } };
  LS_CHECK_DOUBLE (one (step).time_s, >, one (loop).time_s);
}

static void
what_was_not_measured_is_flagged (void)
{
  const Knob usual[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { NULL } };
  const Knob layout[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { "layout", "nt" }, { NULL } };
  const Knob dtype[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { "dtype", "tf32" }, { NULL } };
  const Knob huge[] = { { "gpu", "h100" }, { "gemm", "900000,90000,90000" }, { NULL } };
  LS_CHECK (!one (usual).extrapolated);
  LS_CHECK_INT (one (usual).source, ==, LS_COST_FITTED);
  LS_CHECK (one (layout).extrapolated);
  LS_CHECK (one (dtype).extrapolated);
  LS_CHECK (one (huge).extrapolated);
}

static void
an_a100_has_no_fp8 (void)
{
  g_autoptr (GError) error = NULL;
  const Knob knobs[] = { { "gpu", "a100-80g" }, { "gemm", "1,1,1" }, { "dtype", "fp8" }, { NULL } };
  LS_CHECK (rows_of (knobs, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
}

LS_TEST_SUITE (LS_TEST (gemms_are_within_7_percent), LS_TEST (attention_is_within_3_percent),
               LS_TEST (streams_are_within_15_percent),
               LS_TEST (attention_without_a_mask_is_near_flash_attention_3),
               LS_TEST (best_matmuls_are_near_the_best_sustained_rate),
               LS_TEST (a_step_is_hotter_than_a_loop), LS_TEST (what_was_not_measured_is_flagged),
               LS_TEST (an_a100_has_no_fp8))
