/* Pins the JSON of a kernel's times: each in microseconds under its own name, and what was not measured is
 * null. */
#include "show/fits/write_fits.h"

#include <math.h>

#include "ls_test.h"

static const LsKernelRow example = {
  .kernel = { .kind = LS_KERNEL_GEMM,
              .dtype = LS_DTYPE_BF16,
              .name = "qkv",
              .m = 2,
              .n = 3,
              .k = 4,
              .batch = 1,
              .flops = 48,
              .bytes = 52 },
  .cost = { .compute_s = 10e-6, .memory_s = 20e-6, .launch_s = 3e-6, .bound = LS_BOUND_MEMORY },
  .besides_s = 5e-6,
  .time_s = 28e-6,
  .source = LS_COST_FITTED,
  .extrapolated = true,
  .measured_s = 14e-6,
  .held_out = true,
};

static char *
json_of (LsKernelRow row)
{
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (LsKernelRow));
  g_array_append_val (rows, row);
  return ls_kernel_rows_to_json (&(LsKernelRows) { .gpu = "flat", .rows = rows });
}

static void
each_time_has_its_name (void)
{
  g_autofree char *json = json_of (example);
  LS_CHECK_STR (
      json,
      "{\n  \"schema\": \"lockstep.kernel/1\",\n  \"gpu\": \"flat\",\n  \"rows\": [\n    {\n"
      "      \"kernel\": \"gemm\",\n      \"name\": \"qkv\",\n      \"dtype\": \"bf16\",\n"
      "      \"m\": 2,\n      \"n\": 3,\n      \"k\": 4,\n      \"batch\": 1,\n      \"flops\": 48,\n      \"bytes\": 52,\n"
      "      \"time_us\": 28,\n      \"source\": \"fitted\",\n      \"bound\": \"memory\",\n      \"extrapolated\": true,\n"
      "      \"compute_us\": 10,\n      \"memory_us\": 20,\n      \"launch_us\": 3,\n      \"besides_us\": 5,\n"
      "      \"measured_us\": 14,\n      \"error_pct\": 100,\n      \"held_out\": true\n    }\n  ]\n}\n");
}

static void
what_was_not_measured_is_null (void)
{
  LsKernelRow row = example;
  row.measured_s = NAN;
  g_autofree char *json = json_of (row);
  LS_CHECK (strstr (json, "\"measured_us\": null,\n      \"error_pct\": null,\n") != NULL);
}

LS_TEST_SUITE (LS_TEST (each_time_has_its_name), LS_TEST (what_was_not_measured_is_null))
