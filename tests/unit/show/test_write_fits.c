/* Pins tables of measurements in each of their forms. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "show/fits/write_fits.h"
#include "show/answers.h"

/* Pins bandwidths as nccl-tests defines them, and the three forms of a table. */

static LsCollectiveRow
row (const char *op, uint32_t n, uint64_t bytes, LsTime time, double bus_factor)
{
  return (LsCollectiveRow) { .cluster = "c, \"x\"",
                             .op = op,
                             .algorithm = "ring",
                             .protocol = "LL",
                             .network = "flow",
                             .n_ranks = n,
                             .n_nodes = 1,
                             .bytes = bytes,
                             .time = time,
                             .bus_factor = bus_factor,
                             .measured_us = NAN };
}

static LsCollectiveTable
table_of (const LsCollectiveRow *rows, guint n)
{
  return (LsCollectiveTable) { .title = "a title", .n_rows = n, .rows = rows, .n_networks = 1 };
}

/* 8 x A100, 16 GiB in 127,997 us: 134.22 and 234.89 GB/s (stas00/ml-engineering
 * network/README.md@744d01e). */
static void
bandwidths_are_those_of_nccl_tests (void)
{
  LsCollectiveRow r = row ("all-reduce", 8, UINT64_C (17179869184), 127997 * LS_US, 1.75);
  LS_CHECK_NEAR (ls_collective_algbw (&r), 134.22e9, 1e-4);
  LS_CHECK_NEAR (ls_collective_busbw (&r), 234.89e9, 1e-4);
  LS_CHECK (isnan (ls_collective_measured_busbw (&r)));
  r.measured_us = 2 * 127997;
  LS_CHECK_NEAR (ls_collective_measured_busbw (&r), 234.89e9 / 2, 1e-4);
}

static void
no_time_and_no_bytes_are_no_bandwidth (void)
{
  const LsCollectiveRow instant = row ("all-reduce", 1, 1024, 0, 0), empty = row ("barrier", 8, 0, LS_US, 0);
  LS_CHECK_DOUBLE (ls_collective_algbw (&instant), ==, 0);
  LS_CHECK_DOUBLE (ls_collective_busbw (&empty), ==, 0);
}

static void
check_says (const char *text, const char *what)
{
  ls_check_impl (strstr (text, what) != NULL, __FILE__, __LINE__, "\"%s\" in:\n%s", what, text);
}

/* What a rank gives to each other is counted where the array is dealt out. */
static void
a_line_has_the_columns_of_nccl_tests (void)
{
  const LsCollectiveRow rows[] = {
    row ("all-reduce", 8, 4096, 20 * LS_US, 1.75),
    row ("all-gather", 8, 4096, 20 * LS_US, 0.875),
    row ("broadcast", 8, UINT64_C (8589934592), 1234567 * LS_US, 1),
  };
  const LsCollectiveTable t = table_of (rows, G_N_ELEMENTS (rows));
  g_autofree char *text = ls_collective_to_text (&t);
  check_says (text, "# a title\n");
  check_says (
      text,
      "        4096          1024     float     sum      -1      20.00     0.20     0.36  ring       LL\n");
  check_says (
      text,
      "        4096           128     float    none      -1      20.00     0.20     0.18  ring       LL\n");
  check_says (
      text,
      "  8589934592    2147483648     float    none       0  1234567.0     6.96     6.96  ring       LL\n");
}

static void
fidelities_stand_beside_each_other (void)
{
  LsCollectiveRow rows[]
      = { row ("all-reduce", 8, 4096, 20 * LS_US, 1.75), row ("all-reduce", 8, 4096, 25 * LS_US, 1.75) };
  rows[1].network = "alphabeta";
  LsCollectiveTable t = table_of (rows, 2);
  t.n_networks = 2;
  g_autofree char *text = ls_collective_to_text (&t);
  check_says (
      text,
      "20.00     0.36      25.00     0.29     25.00  ring       LL\n# Largest disagreement : 25.00 %\n");
}

static void
cells_are_quoted_and_numbers_exact (void)
{
  const LsCollectiveRow r = row ("all-reduce", 8, 4096, 3 * LS_US + 1, 1.75);
  const LsCollectiveTable t = table_of (&r, 1);
  g_autofree char *csv = ls_collective_to_csv (&t);
  check_says (csv, "\n\"c, \"\"x\"\"\",all-reduce,8,1,4096,ring,LL,flow,3.000001");
}

static void
json_has_errors_only_of_a_comparison (void)
{
  LsCollectiveRow r = row ("all-reduce", 8, 4096, 20 * LS_US, 1.75);
  LsCollectiveTable t = table_of (&r, 1);
  g_autofree char *alone = ls_collective_to_json (&t);
  LS_CHECK (!strstr (alone, "measured_us") && !strstr (alone, "summary"));
  r.measured_us = 25;
  t.is_comparison = TRUE;
  t.total = (LsCollectiveFamily) { .name = "all",
                                   .all = { .n = 1, .mape_pct = 20, .bias_pct = -20, .worst_pct = -20 } };
  t.total.large.mape_pct = NAN;
  t.n_skipped = 3;
  g_autofree char *compared = ls_collective_to_json (&t);
  check_says (compared, "\"mape_pct\": 20,");
  check_says (compared, "\"mape_large_pct\": null,");
  check_says (compared, "\"skipped\": 3\n");
  check_says (compared, "\"error_pct\": -19.999999999999996");
}

/* Pins the JSON of a kernel's times: each in microseconds under its own name, and what was not measured is
 * null. */

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

LS_TEST_SUITE (LS_TEST (bandwidths_are_those_of_nccl_tests), LS_TEST (no_time_and_no_bytes_are_no_bandwidth),
               LS_TEST (a_line_has_the_columns_of_nccl_tests), LS_TEST (fidelities_stand_beside_each_other),
               LS_TEST (cells_are_quoted_and_numbers_exact), LS_TEST (json_has_errors_only_of_a_comparison),
               LS_TEST (each_time_has_its_name), LS_TEST (what_was_not_measured_is_null))
