/* lockstep/units.h — time, bytes and rates: one unit per quantity inside, units
 * in every text outside.
 *
 *   time   LsTime, int64_t picoseconds      "2us", "1.5ms", "3s"
 *   size   uint64_t bytes                   "80GiB", "25MB"
 *   rate   double bytes per second          "400Gbit/s", "25GB/s"
 *   FLOPs  double; FLOP/s double            "312TFLOP/s"
 *   count  uint64_t                         "8", "8k", "1M"
 *
 * Decimal and binary prefixes are both read and never confused: GB is 1e9
 * bytes, GiB is 2^30. Of counts and sizes a letter alone is binary, as for GNU's
 * programs and nccl-tests: 8k is 8192, 1M of a size is 1MiB. A quantity without a
 * unit is an error, unless it is a count. */
#ifndef LOCKSTEP_UNITS_H
#define LOCKSTEP_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t LsTime; /* picoseconds; +-106.7 days */

#define LS_PS         ((LsTime) 1)
#define LS_NS         (1000 * LS_PS)
#define LS_US         (1000 * LS_NS)
#define LS_MS         (1000 * LS_US)
#define LS_S          (1000 * LS_MS)
#define LS_TIME_NEVER INT64_MAX

/* Seconds to picoseconds: half away from zero, or up (completion times).
 * Saturate at LS_TIME_NEVER; NaN becomes LS_TIME_NEVER. */
LS_PUBLIC LsTime ls_time_from_s (double seconds);
LS_PUBLIC LsTime ls_time_from_s_up (double seconds);
LS_PUBLIC double ls_time_to_s (LsTime t);

/* Parse a whole string. On success return true and set *ret_value; on failure
 * return false, leave *ret_value alone and point *reterr_expected (if given) at
 * a static text such as "a time with a unit such as \"2us\"". */
LS_PUBLIC bool ls_parse_time (const char *text, LsTime *ret_value, const char **reterr_expected);
LS_PUBLIC bool ls_parse_bytes (const char *text, uint64_t *ret_value, const char **reterr_expected);
LS_PUBLIC bool ls_parse_rate (const char *text, double *ret_value, const char **reterr_expected);
/* A whole number: "1.5k" is 1536, "1.3k" is none. */
LS_PUBLIC bool ls_parse_count (const char *text, uint64_t *ret_value, const char **reterr_expected);
LS_PUBLIC bool ls_parse_flops (const char *text, double *ret_value, const char **reterr_expected);

/* What one of these readers takes, as a regular expression (ECMA 262); newly allocated (g_free). It says
 * the number and the unit; that the quantity is in range is left to the reader. */
typedef enum {
  LS_QUANTITY_TIME,
  LS_QUANTITY_BYTES,
  LS_QUANTITY_RATE,
  LS_QUANTITY_FLOPS,
  LS_QUANTITY_COUNT, /* with a letter */
} LsQuantity;
LS_PUBLIC char *ls_quantity_pattern (LsQuantity quantity);

/* For people; newly allocated (g_free). "13.75 s", "412.3 us"; "59.30 GiB";
 * "300.0 GB/s"; "312.0 TFLOP/s". */
LS_PUBLIC char *ls_format_time (LsTime t);
LS_PUBLIC char *ls_format_bytes (uint64_t bytes);
LS_PUBLIC char *ls_format_rate (double bytes_per_s);
LS_PUBLIC char *ls_format_flops (double flop_per_s);

#ifdef __cplusplus
}
#endif

#endif
