/* tools/kernelbench/plan_launch.h — ops of a plan as launches, and the memory they use. */
#ifndef LS_KERNELBENCH_PLAN_LAUNCH_H
#define LS_KERNELBENCH_PLAN_LAUNCH_H

#include "bench.h"
#include "plan.h"

namespace kb {

/* The regions of a placed plan on the GPU: random normal numbers where floats are read, zeros
 * in Adam's second moments, ones in masks. Throws Failure if they do not fit. */
class PlanMemory {
public:
  explicit PlanMemory (const Plan &plan);

  template <typename T> T *at (const Operand &operand) const
  {
    return reinterpret_cast<T *> (regions_[(size_t) operand.region].get () + operand.offset);
  }
  uint8_t *host () const { return host_; }     /* pinned; both as large as the largest copy */
  uint8_t *copied () const { return copied_.get (); }
  int *flag () const { return flag_.get (); }

  PlanMemory (const PlanMemory &) = delete;
  ~PlanMemory ();

private:
  std::vector<Buffer<uint8_t>> regions_;
  Buffer<uint8_t> copied_;
  Buffer<int> flag_;
  uint8_t *host_ = nullptr;
};

/* What this program has no kernel for becomes what it has: before operands are placed. Sets the
 * problem, for people, if there is nothing to become. */
void adapt_plan (Plan &plan, std::string *ret_problem);
/* Whose products run; whether plain streams are what this machine runs, or stand in for others. */
const char *product_library ();
bool streams_are_own ();
/* The kernel that stands for one of a plan, as checks name it (checks.h). */
std::string check_of (const PlanKernel &kernel);

/* A row of one of a plan's kernels, without a time: its note has the kind as the simulator calls it. One that only streams as many
 * bytes as the job's, for want of one of ours, is a stand-in. */
Row row_of_shape (const PlanKernel &kernel);

/* What an op of kind KERNEL or COPY does, on that stream. */
std::function<void ()> make_launch (const Plan &plan, const PlanOp &op, const PlanMemory &memory, cudaStream_t stream);

}

#endif
