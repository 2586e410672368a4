/* tools/kernelbench/journal.h — the rows file: what was measured, written as it comes.
 *
 * JSON lines (lockstep.kernelbench-rows/1): first the machine, then for each case a line when
 * it is begun, one for each of its rows, or one that says why it failed. A line is written at
 * once, so a program that is killed loses the case that it was at. A damaged last line, and
 * rows of a case without its last one, are dropped when the file is read. A case that was begun
 * twice and never ended has failed: it would end the third run too. Host code. */
#ifndef LS_KERNELBENCH_JOURNAL_H
#define LS_KERNELBENCH_JOURNAL_H

#include <map>

#include "row.h"

namespace kb {

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
