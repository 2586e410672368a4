/* tools/kernelbench/rows.h — what was measured of kernels, and the rows file in which it is written as it comes.
 *
 * The file has JSON lines (lockstep.kernelbench-rows/1): first the machine, then for each case a line when
 * it is begun, one for each of its rows, or one that says why it failed. A line is written at
 * once, so a program that is killed loses the case that it was at. A damaged last line, and
 * rows of a case without its last one, are dropped when the file is read. A case that was begun
 * twice and never ended has failed: it would end the third run too. Host code. */
#ifndef LS_KERNELBENCH_ROWS_H
#define LS_KERNELBENCH_ROWS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "json.h"

namespace kb {

/* ---- a row, and under which conditions it was measured ---- */

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

/* ---- the file ---- */

/* Where the rows come from. */
struct Machine {
  std::string gpu, uuid, driver, cuda, date;
  unsigned n_sms = 0;
  uint64_t l2_bytes = 0, memory_bytes = 0, cublaslt = 0;
  bool is_mig = false;     /* a part of a GPU                                  */
  bool is_host = false;    /* no GPU at all: the twin on the processor         */
  bool is_checked = true;  /* kernels were compared with references beforehand */
};

std::string machine_members (const Machine &machine); /* of a JSON object */

class Journal {
public:
  struct Failed {
    std::string what, why;
  };

  /* In memory only. */
  explicit Journal (const Machine &machine) : machine_ (machine) {}
  Journal (Journal &&other) noexcept;
  ~Journal ();

  /* A new file, or, to resume, one that may be there. Throws PlanError: it exists and is not
   * to be resumed, is of another machine, is damaged before its last line, cannot be written. */
  static Journal open (const std::string &path, const Machine &machine, bool resume);
  /* Only reads. */
  static Journal load (const std::string &path);

  const Machine &machine () const { return machine_; }
  bool has (const std::string &what) const { return done_.count (what) > 0 || why_.count (what) > 0; }
  /* In which it succeeded; none if it failed. */
  std::vector<Row> rows_of (const std::string &what) const;
  const std::vector<Row> &rows () const { return rows_; }
  std::vector<Failed> failed () const; /* in the order in which they did */

  void begin (const std::string &what);
  void end (const std::string &what, const std::vector<Row> &rows);
  void fail (const std::string &what, const std::string &why);

private:
  void read (const std::string &path, const std::string &text);
  void read_line (const Json &line);
  void append (const std::string &line);
  void note_failure (const std::string &what, const std::string &why);

  Machine machine_;
  std::string path_;
  int file_ = -1;
  std::vector<Row> rows_;
  std::map<std::string, std::pair<size_t, size_t>> done_; /* first row, number of rows */
  std::map<std::string, std::string> why_;
  std::vector<std::string> order_; /* of failures */
  std::map<std::string, int> begun_;
  std::vector<Row> pending_; /* while reading: of a case without its last row */
  size_t whole_bytes_ = 0;   /* of the file, up to its last whole line       */
};

/* The measurement as one JSON file (lockstep.kernelbench/1), which lockstep calibrate reads. */
std::string profile_text (const Journal &journal, size_t n_skipped);
/* Writes it beside, then renames it. Throws PlanError. */
void write_profile (const std::string &path, const Journal &journal, size_t n_skipped);

}

#endif
