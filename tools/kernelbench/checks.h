/* tools/kernelbench/checks.h — which kernels are what their references say.
 *
 * A check has a name, "layernorm-fwd 37x1024" or "gemm forward bf16", that begins with the
 * kernel it is of. A kernel whose check failed, or could not run, is not timed: its rows fail
 * with the reason. Host code. */
#ifndef LS_KERNELBENCH_CHECKS_H
#define LS_KERNELBENCH_CHECKS_H

#include <functional>
#include <map>

#include "rows.h"

namespace kb {

class Checks {
public:
  /* ||out - reference|| / ||reference|| must be at most `allowed` (tolerance.h); a NaN fails, and a reference of zeros
   * unless it must be met exactly: data that were never filled would agree with anything. */
  void expect_close (const std::string &what, const std::vector<double> &out, const std::vector<double> &reference,
                     double allowed);
  /* Runs a check; what throws a Failure fails all kernels that it is of. */
  void run (const std::vector<std::string> &kernels, const std::function<void ()> &check);
  /* "": the kernel of this row passed, or was not checked. */
  std::string objection (const Row &row) const;
  /* The same of any of these kernels. */
  std::string objection (const std::vector<std::string> &kernels) const;
  size_t n_failed () const { return why_.size (); }

private:
  std::map<std::string, std::string> why_; /* by name of the check, or kernel */
};

/* The kernels that a row times, as checks name them. */
std::vector<std::string> kernels_of (const Row &row);

}

#endif
