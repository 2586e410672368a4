/* tools/kernelbench/bench.cuh — what every group of measurements shares: checked
 * calls, buffers, the three ways of timing, the rows of the report.
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
#ifndef LS_KERNELBENCH_BENCH_CUH
#define LS_KERNELBENCH_BENCH_CUH

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <cublasLt.h>
#include <cuda_runtime.h>

namespace kb {

void check (cudaError_t status, const char *call, const char *file, int line);
void check (cublasStatus_t status, const char *call, const char *file, int line);

/* Any failure ends the program with exit status 1: a benchmark has no use for a
 * half-valid state. */
#define KB_CHECK(call) ::kb::check ((call), #call, __FILE__, __LINE__)
#define KB_CHECK_LAUNCH() KB_CHECK (cudaGetLastError ())

/* Device memory of n elements; none is allocated for n = 0. */
template <typename T> class Buffer {
public:
  explicit Buffer (size_t n = 0) : n_ (n)
  {
    if (n > 0)
      KB_CHECK (cudaMalloc (&data_, n * sizeof (T)));
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
  cudaEvent_t event_;
};

struct Timing {
  double us;         /* median              */
  double spread_pct; /* (p90 - p10) / median */
};

Timing summarise (std::vector<double> us);

/* Clocks and power as NVML reads them now; 0 where it cannot. */
struct GpuState {
  unsigned sm_mhz, memory_mhz;
  double power_w;
  unsigned temperature_c;
};

GpuState gpu_state ();
std::string state_note (const GpuState &state); /* "sm_mhz=1980 power_w=650" */
std::string driver_version ();

/* One line of the CSV. Notes are key=value, separated by blanks; no commas. */
struct Row {
  std::string group, name, shape, dtype;
  double bytes = 0; /* that must cross device memory once: inputs read, outputs written */
  double flops = 0;
  Timing time = { 0, 0 };
  std::string note = "";

  /* TFLOP/s where there are flops, GB/s where there are only bytes. */
  double rate () const { return time.us <= 0 ? 0 : flops > 0 ? flops / time.us * 1e-6 : bytes / time.us * 1e-3; }
};

struct Options {
  bool dry_run = false;
  double seconds = 300;
  std::string json_file;
  std::vector<std::string> only; /* groups; empty: all */
  std::string plan_file;         /* of --plan; "": the sweep */
  uint64_t rank = 0;             /* of the plan */
};

using Launch = std::function<void (int set)>; /* set counts up: rotate operands by it */

inline bool has_fp8 (const cudaDeviceProp &props) { return props.major * 10 + props.minor >= 89; }

class Bench {
public:
  explicit Bench (const Options &options);

  bool is_dry () const { return options_.dry_run; }
  bool wants (const char *group) const;

  /* True if `row` is not to be measured: because this is a dry run, and then it is
   * printed as part of the plan, or because the time is up. `seconds`: about what
   * the measurement takes. */
  bool skips (const Row &row, double seconds);

  void add (Row row, Timing time);
  void note_state (const char *when);
  void write_json () const;
  size_t n_skipped () const { return n_skipped_; }

  Timing isolated (const std::function<void ()> &launch, int n = 21);
  Timing steady (const Launch &launch);
  Timing sustained (const Launch &launch, double seconds, GpuState *ret_state);
  void wake_up (); /* raise the clocks from idle */

  cudaStream_t stream () const { return stream_; }
  int n_sms () const { return props_.multiProcessorCount; }
  size_t l2_bytes () const { return props_.l2CacheSize; }
  size_t max_shared_bytes () const { return props_.sharedMemPerBlockOptin; }
  bool has_fp8 () const { return is_dry () || kb::has_fp8 (props_); }
  double elapsed_s () const;

  double copy_bytes_per_s = 0; /* set by the streams group */

private:
  void flush_l2 ();
  double estimate_us (const Launch &launch);

  Options options_;
  std::chrono::steady_clock::time_point start_;
  cudaDeviceProp props_ = {};
  cudaStream_t stream_ = nullptr;
  Buffer<uint4> flush_;
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, GpuState>> states_;
  size_t n_skipped_ = 0;
};

std::string format (const char *pattern, ...) __attribute__ ((format (printf, 1, 2)));

struct Plan;
/* --plan: places its operands, executes it or, on a dry run, lists it (plan_run.cu). */
void run_plan (Plan &plan, const Options &options);

/* Runs all checks; ends the program if one fails, for times of wrong kernels are worth
 * nothing. */
void require_checks (cudaStream_t stream, bool has_fp8);

/* The checks, which return how many failed, and the groups, in the order in which
 * they run. */
int check_streams (cudaStream_t stream);
int check_operators (cudaStream_t stream);
int check_gemm (cudaStream_t stream, bool has_fp8);
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

}

#endif
