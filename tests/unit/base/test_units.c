/* Pins quantities and formats of numbers: what their spellings mean, and how they are shown. */
#include "ls_test.h"

#include <math.h>

#include "base/dtype.h"

/* Pins: what a quantity in an input file means to the last picosecond and byte,
 * what is refused, and how numbers are shown. Does not pin the wording of the
 * "expected" texts. */

static LsTime
time_of (const char *text)
{
  LsTime t = -1;
  return ls_parse_time (text, &t, NULL) ? t : -1;
}

static uint64_t
bytes_of (const char *text)
{
  uint64_t n = 0;
  return ls_parse_bytes (text, &n, NULL) ? n : UINT64_MAX;
}

static double
rate_of (const char *text)
{
  double r = -1;
  return ls_parse_rate (text, &r, NULL) ? r : -1;
}

static double
flops_of (const char *text)
{
  double r = -1;
  return ls_parse_flops (text, &r, NULL) ? r : -1;
}

static uint64_t
count_of (const char *text)
{
  uint64_t n = 0;
  return ls_parse_count (text, &n, NULL) ? n : UINT64_MAX;
}

static void
counts_are_whole_and_letters_binary (void)
{
  LS_CHECK_INT (count_of ("8"), ==, 8);
  LS_CHECK_INT (count_of ("0"), ==, 0);
  LS_CHECK_INT (count_of ("8k"), ==, 8192);
  LS_CHECK_INT (count_of ("8K"), ==, 8192);
  LS_CHECK_INT (count_of ("8Ki"), ==, 8192);
  LS_CHECK_INT (count_of ("1M"), ==, 1048576);
  LS_CHECK_INT (count_of ("2G"), ==, INT64_C (2147483648));
  LS_CHECK_INT (count_of ("1.5k"), ==, 1536);
  LS_CHECK_INT (count_of ("0.0009765625k"), ==, 1);
  LS_CHECK (count_of ("18446744073709551614") == UINT64_MAX - 1);
  LS_CHECK_INT (bytes_of ("1M"), ==, 1048576);
  LS_CHECK_INT (bytes_of ("1MB"), ==, 1000000);
  LS_CHECK_INT (bytes_of ("8k"), ==, 8192);
  static const char *const wrong[] = { "",
                                       "k",
                                       "-1",
                                       "+1",
                                       "1e3",
                                       "1.3k",
                                       "1.5",
                                       "8.0",
                                       "8.",
                                       "8 k",
                                       " 8",
                                       "8 ",
                                       "8kB",
                                       "8m",
                                       "8b",
                                       "8t",
                                       "0x8",
                                       "1,024",
                                       "8kk",
                                       "nan",
                                       "8..16",
                                       "18446744073709551616",
                                       "17592186044416M" };
  for (size_t i = 0; i < G_N_ELEMENTS (wrong); i++)
    if (count_of (wrong[i]) != UINT64_MAX)
      ls_check_impl (false, __FILE__, __LINE__, "\"%s\" is assumed to be a count", wrong[i]);
}

static void
times_are_exact_picoseconds (void)
{
  LS_CHECK_INT (time_of ("2us"), ==, 2000000);
  LS_CHECK_INT (time_of ("1.5ms"), ==, 1500000000);
  LS_CHECK_INT (time_of ("3s"), ==, 3 * LS_S);
  LS_CHECK_INT (time_of ("0.1us"), ==, 100000); /* not 100000.00000000001 */
  LS_CHECK_INT (time_of ("1e-6s"), ==, 1000000);
  LS_CHECK_INT (time_of ("2 us"), ==, 2000000);
  LS_CHECK_INT (time_of ("2\u00b5s"), ==, 2000000);
  LS_CHECK_INT (time_of ("2min"), ==, 120 * LS_S);
  LS_CHECK_INT (time_of ("2d"), ==, 172800 * LS_S);
  LS_CHECK_INT (time_of ("1h"), ==, 3600 * LS_S);
  LS_CHECK_INT (time_of ("0s"), ==, 0);
}

static void
parsing_rounds_half_away_from_zero (void)
{
  LS_CHECK_INT (time_of ("0.5ps"), ==, 1);
  LS_CHECK_INT (time_of ("0.49ps"), ==, 0);
  LS_CHECK_INT (time_of ("2.5ps"), ==, 3);
  LS_CHECK_INT (time_of ("1e-30s"), ==, 0);
  LS_CHECK_INT (bytes_of ("1.5B"), ==, 2);
}

static void
decimal_and_binary_prefixes_differ (void)
{
  LS_CHECK_INT (bytes_of ("80GiB"), ==, G_GINT64_CONSTANT (85899345920));
  LS_CHECK_INT (bytes_of ("80GB"), ==, G_GINT64_CONSTANT (80000000000));
  LS_CHECK_INT (bytes_of ("25MB"), ==, 25000000);
  LS_CHECK_INT (bytes_of ("25MiB"), ==, 26214400);
  LS_CHECK_INT (bytes_of ("3.84TB"), ==, G_GINT64_CONSTANT (3840000000000));
  LS_CHECK_INT (bytes_of ("4kB"), ==, 4000);
  LS_CHECK_INT (bytes_of ("7B"), ==, 7);
}

static void
bits_per_second_become_bytes (void)
{
  LS_CHECK_DOUBLE (rate_of ("400Gbit/s"), ==, 50e9);
  LS_CHECK_DOUBLE (rate_of ("25GB/s"), ==, 25e9);
  LS_CHECK_DOUBLE (rate_of ("2039GB/s"), ==, 2039e9);
  LS_CHECK_DOUBLE (rate_of ("1GiB/s"), ==, 1073741824.0);
  LS_CHECK_DOUBLE (rate_of ("8bit/s"), ==, 1);
}

static void
flop_rates_keep_their_exponent_letters (void)
{
  LS_CHECK_DOUBLE (flops_of ("312TFLOP/s"), ==, 312e12);
  LS_CHECK_DOUBLE (flops_of ("19.5TFLOP/s"), ==, 19.5e12);
  LS_CHECK_DOUBLE (flops_of ("1EFLOP/s"), ==, 1e18); /* the E is a prefix, not an exponent */
  LS_CHECK_DOUBLE (flops_of ("2e3GFLOP/s"), ==, 2e12);
}

static void
malformed_quantities_are_refused (void)
{
  static const char *const bad[] = {
    "",    " ",      "5",     "us",    "-2us", "+2us",  "2 u s", "2us ", " 2us",
    "2xs", "1.2.3s", "0x10s", "nan s", "infs", "1e99s", "2us!",  ".s",   "12345678901234567890123s",
  };
  for (size_t i = 0; i < G_N_ELEMENTS (bad); i++) {
    LsTime t = 42;
    const char *expected = NULL;
    LS_CHECK (!ls_parse_time (bad[i], &t, &expected));
    LS_CHECK_INT (t, ==, 42); /* untouched */
    LS_CHECK (expected != NULL);
  }
  LS_CHECK_DOUBLE (rate_of ("400"), ==, -1);
  LS_CHECK_DOUBLE (rate_of ("400Gb/s"), ==, -1);   /* bits or bytes? */
  LS_CHECK_DOUBLE (rate_of ("400Gbps"), ==, 50e9); /* bits, as everybody means */
  LS_CHECK_DOUBLE (rate_of ("400GBps"), ==, -1);
  LS_CHECK_DOUBLE (flops_of ("312TFLOPS"), ==, -1);
  LS_CHECK_INT (bytes_of ("80"), ==, -1);
  LS_CHECK_INT (bytes_of ("80Gbit"), ==, -1);
}

static void
overflow_is_refused (void)
{
  LS_CHECK_INT (time_of ("9223372036854775806ps"), ==, INT64_MAX - 1);
  LS_CHECK_INT (time_of ("9223372036854775807ps"), ==, -1); /* means never */
  LS_CHECK_INT (time_of ("107h"), ==, 107 * 3600 * LS_S);
  LS_CHECK_INT (time_of ("2563h"), ==, -1);
  LS_CHECK_INT (time_of ("1e30s"), ==, -1);
  uint64_t n = 0;
  LS_CHECK (ls_parse_bytes ("18446744073709551615B", &n, NULL));
  LS_CHECK (n == UINT64_MAX);
  LS_CHECK (!ls_parse_bytes ("18446744073709551616B", &n, NULL));
  LS_CHECK (!ls_parse_bytes ("16384PiB", &n, NULL));
}

static void
seconds_round_half_away_and_up (void)
{
  LS_CHECK_INT (ls_time_from_s (0.5e-12), ==, 1);
  LS_CHECK_INT (ls_time_from_s (-0.5e-12), ==, -1);
  LS_CHECK_INT (ls_time_from_s (0.4e-12), ==, 0);
  LS_CHECK_INT (ls_time_from_s (1.25), ==, 1250 * LS_MS);
  LS_CHECK_INT (ls_time_from_s_up (0.1e-12), ==, 1);
  LS_CHECK_INT (ls_time_from_s_up (-0.9e-12), ==, 0);
  LS_CHECK_INT (ls_time_from_s_up (1.25), ==, 1250 * LS_MS);
  LS_CHECK_DOUBLE (ls_time_to_s (1250 * LS_MS), ==, 1.25);
}

static void
seconds_saturate (void)
{
  LS_CHECK_INT (ls_time_from_s (NAN), ==, LS_TIME_NEVER);
  LS_CHECK_INT (ls_time_from_s_up (NAN), ==, LS_TIME_NEVER);
  LS_CHECK_INT (ls_time_from_s (INFINITY), ==, LS_TIME_NEVER);
  LS_CHECK_INT (ls_time_from_s (1e9), ==, LS_TIME_NEVER);
  LS_CHECK_INT (ls_time_from_s (-1e9), ==, -LS_TIME_NEVER);
  LS_CHECK_INT (ls_time_from_s_up (-INFINITY), ==, -LS_TIME_NEVER);
}

#define CHECK_TEXT(call, text)                                                                               \
  do {                                                                                                       \
    g_autofree char *shown_ = (call);                                                                        \
    LS_CHECK_STR (shown_, text);                                                                             \
  } while (0)

static void
formats_are_for_people (void)
{
  CHECK_TEXT (ls_format_time (13750 * LS_MS), "13.75 s");
  CHECK_TEXT (ls_format_time (412300 * LS_NS), "412.3 us");
  CHECK_TEXT (ls_format_time (-2 * LS_US), "-2.000 us");
  CHECK_TEXT (ls_format_time (0), "0 ps");
  CHECK_TEXT (ls_format_time (999), "999 ps");
  CHECK_TEXT (ls_format_time (999999 * LS_NS), "1.000 ms"); /* never "1000 us" */
  CHECK_TEXT (ls_format_time (12345 * LS_S), "12345 s");
  CHECK_TEXT (ls_format_time (LS_TIME_NEVER), "never");
  CHECK_TEXT (ls_format_bytes (0), "0 B");
  CHECK_TEXT (ls_format_bytes (1023), "1023 B");
  CHECK_TEXT (ls_format_bytes (1024), "1.00 KiB");
  CHECK_TEXT (ls_format_bytes ((1 << 20) - 1), "1.00 MiB");
  CHECK_TEXT (ls_format_bytes (UINT64_C (63672892621)), "59.30 GiB");
  CHECK_TEXT (ls_format_rate (300e9), "300.0 GB/s");
  CHECK_TEXT (ls_format_rate (2.039e12), "2.0 TB/s");
  CHECK_TEXT (ls_format_rate (0), "0 B/s");
  CHECK_TEXT (ls_format_flops (312e12), "312.0 TFLOP/s");
  CHECK_TEXT (ls_format_flops (999.96e12), "1.0 PFLOP/s");
}

/* What is shown reads back as the same value to the digits shown. */
static void
parse_undoes_format (void)
{
  for (LsTime t = 1; t < LS_TIME_NEVER / 7; t *= 7) {
    g_autofree char *text = ls_format_time (t);
    LS_CHECK_NEAR ((double) time_of (text), (double) t, 0.5e-3);
  }
  for (uint64_t n = 1; n < UINT64_MAX / 5; n *= 5) {
    g_autofree char *text = ls_format_bytes (n);
    LS_CHECK_NEAR ((double) bytes_of (text), (double) n, 0.05);
  }
  for (double r = 1; r < 1e17; r *= 3) {
    g_autofree char *rate = ls_format_rate (r), *flops = ls_format_flops (r);
    LS_CHECK_NEAR (rate_of (rate), r, 0.05);
    LS_CHECK_NEAR (flops_of (flops), r, 0.5);
  }
}

/* Pins: sizes, printed names, and the spellings of other frameworks. */

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

LS_TEST_SUITE (LS_TEST (counts_are_whole_and_letters_binary), LS_TEST (times_are_exact_picoseconds),
               LS_TEST (parsing_rounds_half_away_from_zero), LS_TEST (decimal_and_binary_prefixes_differ),
               LS_TEST (bits_per_second_become_bytes), LS_TEST (flop_rates_keep_their_exponent_letters),
               LS_TEST (malformed_quantities_are_refused), LS_TEST (overflow_is_refused),
               LS_TEST (seconds_round_half_away_and_up), LS_TEST (seconds_saturate),
               LS_TEST (formats_are_for_people), LS_TEST (parse_undoes_format), LS_TEST (names_parse_back),
               LS_TEST (sizes_are_in_bytes), LS_TEST (nvfp4_counts_its_scales),
               LS_TEST (scaled_formats_are_for_products_only), LS_TEST (long_spellings_are_accepted))
