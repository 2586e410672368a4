/* tools/kernelbench/row.h — what was measured of one kernel, and under which conditions.
 * Host code. */
#ifndef LS_KERNELBENCH_ROW_H
#define LS_KERNELBENCH_ROW_H

#include <cstdint>
#include <string>
#include <vector>

#include "json.h"

namespace kb {

struct Timing {
  double us;         /* median              */
  double spread_pct; /* (p90 - p10) / median */
};

/* Median and spread of times; 0 and 0 of none. */
Timing summarise (std::vector<double> us);

/* What NVML saw of the GPU; 0 where it cannot say. */
struct Conditions {
  unsigned sm_mhz = 0, sm_mhz_min = 0, memory_mhz = 0; /* the last reading; the lowest under load */
  double power_w = 0;                                  /* the highest                             */
  unsigned temperature_c = 0;                          /* the highest                             */
  uint64_t throttle = 0;                               /* reasons seen: bits of NVML              */
  unsigned others = 0;                                 /* other processes that compute            */
};

/* "sm_mhz=1980 power_w=650 temperature_c=60" */
std::string conditions_note (const Conditions &conditions);

/* Reasons that make a time wrong: heat, a power brake, a slowed or synchronised clock, another
 * process. Power under the limit of the board is what sustained work runs at, and none.
 * "": none; otherwise words, joined by "+". */
std::string disturbance_of (const Conditions &conditions);

/* One line of the CSV. Notes are key=value, separated by blanks; no commas. */
struct Row {
  std::string group, name, shape, dtype;
  double bytes = 0; /* that must cross device memory once: inputs read, outputs written */
  double flops = 0;
  Timing time = { 0, 0 };
  std::string note = "";
  std::string implementation = "own"; /* whose kernel: own, cublaslt, cudnn, fa2, ... */
  Conditions conditions = {};
  std::string disturbance = ""; /* that stayed in all tries; "": none */

  /* TFLOP/s where there are flops, GB/s where there are only bytes. */
  double rate () const { return time.us <= 0 ? 0 : flops > 0 ? flops / time.us * 1e-6 : bytes / time.us * 1e-3; }
};

extern const char row_columns[]; /* the header of the CSV */
std::string row_csv (const Row &row);
/* The members of a JSON object, without braces: "group": "streams", ... */
std::string row_members (const Row &row);
Row row_from (const Json &object); /* throws PlanError */

std::string quoted (const std::string &text); /* as a JSON string */
std::string format (const char *pattern, ...) __attribute__ ((format (printf, 1, 2)));

}

#endif
