/* lockstep/units.h — time, bytes and rates: one unit per quantity inside, units
 * in every text outside.
 *
 *   time   LsTime, int64_t picoseconds      "2us", "1.5ms", "3s"
 *   size   uint64_t bytes                   "80GiB", "25MB"
 *   rate   double bytes per second          "400Gbit/s", "25GB/s"
 *   FLOPs  double; FLOP/s double            "312TFLOP/s"
 *
 * Decimal and binary prefixes are both read and never confused: GB is 1e9
 * bytes, GiB is 2^30. A quantity without a unit is an error. */
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
LS_PUBLIC bool ls_parse_flops (const char *text, double *ret_value, const char **reterr_expected);

/* For people; newly allocated (g_free). "13.75 s", "412.3 us"; "59.3 GiB";
 * "300.0 GB/s"; "312.0 TFLOP/s". */
LS_PUBLIC char *ls_format_time (LsTime t);
LS_PUBLIC char *ls_format_bytes (uint64_t bytes);
LS_PUBLIC char *ls_format_rate (double bytes_per_s);
LS_PUBLIC char *ls_format_flops (double flop_per_s);

#ifdef __cplusplus
}
#endif

#endif
