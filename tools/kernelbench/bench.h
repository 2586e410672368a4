/* tools/kernelbench/bench.h — what every group of measurements shares: options, buffers and events, the
 * three ways of timing, how a row is measured and what becomes of one that fails.
 *
 * Three ways of timing, because a kernel has three different times:
 *
 *   isolated   a single launch between two events, inputs not in L2, the chip not
 *              heated by its own work. The L2 is flushed by *reading* a buffer of
 *              four times its size: writing one would leave dirty lines, whose
 *              write-back the timed kernel would then pay for. The flush also hides
 *              the launch: events, kernel and flush are all queued ahead.
 *   steady     launches back to back over rotating operands; time per launch. A
 *              streaming kernel then pays for its own write-backs and for the gap
 *              between launches, as it does in training.
 *   sustained  the same for seconds, the rate of the last one: what the power limit
 *              leaves.
 *
 * All report the median and (p90 - p10) / median. */
#ifndef LS_KERNELBENCH_BENCH_H
#define LS_KERNELBENCH_BENCH_H

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"
#include "failure.h"
#include "nvml.h"
#include "rows.h"

namespace kb {

/* ---- the command line (kernelbench.cpp) ---- */

class Bench;

/* In the order in which they run; the last has no name. Each program has its own. */
struct Group {
  const char *name;
  void (*run) (Bench &);
};
extern const Group groups[];

/* Of --only: a group, or rows of it. Name and shape are patterns of the shell (fnmatch). */
struct RowChoice {
  std::string text; /* GROUP[/NAME[/SHAPE]], as it was given */
  std::string group, name, shape;
};

struct Options {
  bool dry_run = false, resume = false, skips_checks = false, assembles = false, runs_nccl = false;
  double seconds = 360;
  uint64_t max_bytes = 1ull << 30; /* of --nccl */
  int device = 0;
  std::string json_file, rows_file, shapes_file;
  std::vector<RowChoice> only;      /* empty: all */
  std::string plan_file;         /* of --plan; "": the sweep */
  uint64_t rank = 0;             /* of the plan */
};

/* Ends the program, with status 0 after --help, 2 after a wrong word. */
Options parse_options (int argc, char **argv);

bool chooses (const RowChoice &choice, const std::string &group, const std::string &name, const std::string &shape);
/* Whether --only has the group, or rows of it. */
bool wants_group (const Options &options, const std::string &group);
/* Ends the program with status 2, after the reason. */
[[noreturn]] void refuse (const std::string &why);

/* ---- the GPU and its memory ---- */

/* Device memory of n elements; none is allocated for n = 0. */
template <typename T> class Buffer {
public:
  explicit Buffer (size_t n = 0) : n_ (n)
  {
    if (n > 0)
      KB_CHECK (cudaMalloc ((void **) &data_, n * sizeof (T)));
  }
  Buffer (Buffer &&other) noexcept
    : data_ (std::exchange (other.data_, nullptr)), n_ (std::exchange (other.n_, 0)) {}
  Buffer &operator= (Buffer &&other) noexcept
  {
    std::swap (data_, other.data_);
    std::swap (n_, other.n_);
    return *this;
  }
  ~Buffer ()
  {
    if (data_)
      cudaFree (data_);
  }

  T *get () const { return data_; }
  size_t size () const { return n_; }

private:
  T *data_ = nullptr;
  size_t n_;
};

class Event {
public:
  Event () { KB_CHECK (cudaEventCreate (&event_)); }
  Event (Event &&other) noexcept : event_ (std::exchange (other.event_, nullptr)) {}
  ~Event ()
  {
    if (event_)
      cudaEventDestroy (event_);
  }
  void record (cudaStream_t stream) { KB_CHECK (cudaEventRecord (event_, stream)); }
  void wait () const { KB_CHECK (cudaEventSynchronize (event_)); }
  cudaEvent_t get () const { return event_; }
  double us_since (const Event &start) const
  {
    float ms = 0;
    KB_CHECK (cudaEventElapsedTime (&ms, start.event_, event_));
    return 1e3 * ms;
  }

private:
  cudaEvent_t event_ = nullptr;
};

using Launch = std::function<void (int set)>; /* set counts up: rotate operands by it */

/* The GPU that the run is on (bench.cpp). */
class Device {
public:
  /* Throws Failure, with words for people: no driver, no such GPU, none of our code for it. */
  explicit Device (int index);
  const cudaDeviceProp &props () const { return props_; }
  const Nvml &nvml () const { return *nvml_; }
  Machine machine () const;

private:
  int index_;
  cudaDeviceProp props_ = {};
  std::unique_ptr<Nvml> nvml_;
};

/* Of the GPU, for the messages of a plan. */
inline bool has_fp8 (const cudaDeviceProp &props) { return props.major * 10 + props.minor >= 89; }

class Bench {
public:
  /* out: where rows are printed; null: nowhere. */
  explicit Bench (const Options &options, FILE *out = stdout);
  ~Bench ();
  Bench (const Bench &) = delete;

  bool is_dry () const { return options_.dry_run; }
  const Options &options () const { return options_; }

  /* Measures one row, or the rows of a case that belong together. Dry: it is printed, as part
   * of the plan. Otherwise it is passed over if --only or the time leaves it out, if an earlier
   * run has it, or if the check of its kernel failed. What throws a Failure costs the row; what
   * was disturbed is measured again, and marked if it stays so. `seconds`: about what it takes.
   * Returns the rows, measured or from the earlier run; none if there are none. */
  std::vector<Row> measure (const Row &row, double seconds, const std::function<Timing (Row &)> &time);
  std::vector<Row> measure_case (const Row &row, double seconds, const std::function<std::vector<Row> ()> &time);
  /* Of --only, what has chosen no row so far. */
  std::vector<std::string> without_row () const;

  /* A group's own preparations; a Failure of them costs what it still had to measure. */
  void run_group (const Group &group);
  /* Of what cannot be measured here, and why; printed as part of the plan on a dry run. */
  void leave_out (const Row &row, const std::string &why);

  void check_kernels ();
  Checks &checks () { return checks_; }
  void finish () const; /* writes the profile */

  Timing isolated (const std::function<void ()> &launch, int n = 21);
  Timing steady (const Launch &launch);
  Timing sustained (const Launch &launch, double seconds, Conditions *ret_conditions);
  void wake_up (); /* raise the clocks from idle */

  cudaStream_t stream () const { return stream_; }
  int n_sms () const { return props ().multiProcessorCount; }
  size_t l2_bytes () const { return (size_t) props ().l2CacheSize; }
  size_t max_shared_bytes () const { return props ().sharedMemPerBlockOptin; }
  bool has_fp8 () const { return is_dry () || kb::has_fp8 (props ()); }
  int capability () const { return is_dry () ? 1000 : props ().major * 10 + props ().minor; }
  double elapsed_s () const;

  double copy_bytes_per_s = 0; /* set by the streams group */

private:
  const cudaDeviceProp &props () const { return device_->props (); }
  void flush_l2 ();
  double estimate_us (const Launch &launch);
  bool wants (const Row &row);
  void print (const Row &row) const;
  bool passes_over (const Row &row, const std::string &what, double seconds);
  std::vector<Row> try_case (const std::function<std::vector<Row> ()> &time);
  std::vector<Row> settle (const std::string &what, const std::function<std::vector<Row> ()> &time);
  void fail (const std::string &what, const std::string &why);

  Options options_;
  FILE *out_;
  std::vector<bool> has_chosen_; /* of each of --only: a row */
  std::chrono::steady_clock::time_point start_;
  std::unique_ptr<Device> device_; /* null on a dry run */
  std::unique_ptr<Journal> journal_;
  Checks checks_;
  cudaStream_t stream_ = nullptr;
  Buffer<unsigned> flush_;
  size_t n_skipped_ = 0, n_resumed_ = 0;
};

/* ops_elementwise.cu: reads all of x; and whether this program has code for the current GPU. */
void read_all (cudaStream_t stream, const unsigned *x, size_t n, int n_blocks);
cudaError_t find_code ();
/* The program's own: which toolkit and libraries it runs with. */
void describe_software (Machine *machine);
/* Compares each kernel with its reference; results go to `checks`. */
void check_all (Checks &checks, cudaStream_t stream, int capability);

struct Plan;
/* --plan: places its operands, executes it or, on a dry run, lists it (plan_run.cpp). */
void run_plan (Plan &plan, const Options &options);
/* --shapes: times the kernels of a job; file: its name (plan_run.cpp). Throws PlanError. */
void run_shapes (Bench &bench, const std::string &file, const std::string &text);

/* --- the groups of a GPU, and the checks of its kernels --- */

/* capability: 90 for 9.0. What a GPU cannot run is not checked. */
void check_streams (Checks &checks, cudaStream_t stream);
void check_operators (Checks &checks, cudaStream_t stream, int capability);
void check_gemm (Checks &checks, cudaStream_t stream, int capability);
void bench_host (Bench &bench);
void bench_streams (Bench &bench);
void bench_copies (Bench &bench);
void bench_operators (Bench &bench);
void bench_attention (Bench &bench);
void bench_gemm_isolated (Bench &bench);
void bench_gemm_batched (Bench &bench);
void bench_slowdown (Bench &bench);
void bench_context (Bench &bench);
void bench_gemm_sustained (Bench &bench);

/* --- collectives over the GPUs of this machine --- */

/* Prints the output of nccl-tests for all-reduce, all-gather and reduce-scatter, one behind the
 * other, up to that size. Returns 1 if a result was wrong. Throws Failure: fewer than two GPUs, no libnccl, a call
 * that failed. */
int run_nccl (size_t most_bytes);

}

#endif
