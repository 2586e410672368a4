#include "bench.cuh"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace kb {

static constexpr int n_warm_up = 3;
static constexpr int n_groups = 15;           /* of back-to-back launches, in steady () */
static constexpr double group_us = 5e3;
static constexpr double batch_us = 20e3;      /* between two marks of sustained ()      */
static constexpr double last_us = 1e6;        /* the part of sustained () that counts   */
static constexpr double wake_up_s = 0.3;
static constexpr size_t flush_per_l2 = 4;

[[noreturn]] static void
fail (const char *call, const char *why, const char *file, int line)
{
  fprintf (stderr, "%s:%d: error: %s: %s\n", file, line, call, why);
  exit (1);
}

void
check (cudaError_t status, const char *call, const char *file, int line)
{
  if (status != cudaSuccess)
    fail (call, cudaGetErrorString (status), file, line);
}

void
check (cublasStatus_t status, const char *call, const char *file, int line)
{
  if (status != CUBLAS_STATUS_SUCCESS)
    fail (call, cublasLtGetStatusString (status), file, line);
}

std::string
format (const char *pattern, ...)
{
  char text[512];
  va_list args;
  va_start (args, pattern);
  vsnprintf (text, sizeof text, pattern, args);
  va_end (args);
  return text;
}

/* The q-quantile of sorted values, between the two nearest. */
static double
quantile (const std::vector<double> &sorted, double q)
{
  double at = q * (double) (sorted.size () - 1);
  size_t below = (size_t) at, above = std::min (below + 1, sorted.size () - 1);
  return sorted[below] + (at - (double) below) * (sorted[above] - sorted[below]);
}

Timing
summarise (std::vector<double> us)
{
  std::sort (us.begin (), us.end ());
  double median = quantile (us, 0.5);
  return { median, 100 * (quantile (us, 0.9) - quantile (us, 0.1)) / median };
}

Bench::Bench (const Options &options) : options_ (options), start_ (std::chrono::steady_clock::now ())
{
  printf ("group,name,shape,dtype,bytes,flops,time_us,spread_pct,rate,note\n");
  if (options.dry_run)
    return;
  KB_CHECK (cudaGetDeviceProperties (&props_, 0));
  KB_CHECK (cudaStreamCreateWithFlags (&stream_, cudaStreamNonBlocking));
  flush_ = Buffer<uint4> (flush_per_l2 * l2_bytes () / sizeof (uint4));
  KB_CHECK (cudaMemset (flush_.get (), 0x5a, flush_.size () * sizeof (uint4)));
}

double
Bench::elapsed_s () const
{
  return std::chrono::duration<double> (std::chrono::steady_clock::now () - start_).count ();
}

bool
Bench::wants (const char *group) const
{
  const auto &only = options_.only;
  return only.empty () || std::find (only.begin (), only.end (), group) != only.end ();
}

static void
print (const Row &row)
{
  printf ("%s,%s,%s,%s,%.0f,%.0f,", row.group.c_str (), row.name.c_str (), row.shape.c_str (),
          row.dtype.c_str (), row.bytes, row.flops);
  if (row.time.us > 0)
    printf ("%.3f,%.2f,%.2f,%s\n", row.time.us, row.time.spread_pct, row.rate (), row.note.c_str ());
  else
    printf (",,,%s\n", row.note.c_str ());
  fflush (stdout);
}

bool
Bench::skips (const Row &row, double seconds)
{
  if (is_dry ()) {
    print (row);
    return true;
  }
  if (elapsed_s () + seconds <= options_.seconds)
    return false;
  fprintf (stderr, "note: no time left for %s %s %s\n", row.group.c_str (), row.name.c_str (), row.shape.c_str ());
  n_skipped_++;
  return true;
}

void
Bench::add (Row row, Timing time)
{
  row.time = time;
  print (row);
  rows_.push_back (std::move (row));
}

void
Bench::note_state (const char *when)
{
  if (is_dry ())
    return;
  states_.push_back ({ when, gpu_state () });
  fprintf (stderr, "%6.1f s %s: %s\n", elapsed_s (), when, state_note (states_.back ().second).c_str ());
}

/* The store never happens, but the compiler cannot know. */
static __global__ void
read_all (const uint4 *data, size_t n, unsigned *sink)
{
  unsigned folded = 0;
  for (size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x; i < n; i += (size_t) gridDim.x * blockDim.x) {
    uint4 v = data[i];
    folded |= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (folded == 1)
    *sink = folded;
}

void
Bench::flush_l2 ()
{
  read_all<<<8 * n_sms (), 256, 0, stream_>>> (flush_.get (), flush_.size (), (unsigned *) flush_.get ());
  KB_CHECK_LAUNCH ();
}

void
Bench::wake_up ()
{
  if (is_dry ())
    return;
  double until = elapsed_s () + wake_up_s;
  while (elapsed_s () < until) {
    for (int i = 0; i < 20; i++)
      flush_l2 ();
    KB_CHECK (cudaStreamSynchronize (stream_));
  }
}

Timing
Bench::isolated (const std::function<void ()> &launch, int n)
{
  std::vector<Event> start (n_warm_up + n), stop (n_warm_up + n);
  for (size_t i = 0; i < start.size (); i++) {
    flush_l2 ();
    start[i].record (stream_);
    launch ();
    stop[i].record (stream_);
    if (i == 0) /* loads modules, chooses algorithms: nothing may queue behind that */
      KB_CHECK (cudaStreamSynchronize (stream_));
  }
  KB_CHECK (cudaStreamSynchronize (stream_));

  std::vector<double> us;
  for (size_t i = n_warm_up; i < start.size (); i++)
    us.push_back (stop[i].us_since (start[i]));
  return summarise (us);
}

double
Bench::estimate_us (const Launch &launch)
{
  Event start, stop;
  launch (0);
  KB_CHECK (cudaStreamSynchronize (stream_));
  start.record (stream_);
  for (int i = 0; i < n_warm_up; i++)
    launch (i);
  stop.record (stream_);
  stop.wait ();
  return stop.us_since (start) / n_warm_up;
}

static int
launches_in (double us, double launch_us)
{
  return (int) std::min (1000.0, std::max (1.0, std::ceil (us / launch_us)));
}

Timing
Bench::steady (const Launch &launch)
{
  int per_group = launches_in (group_us, estimate_us (launch));
  std::vector<Event> marks (n_groups + 1);
  int set = 0;
  for (int i = 0; i < per_group; i++)
    launch (set++);
  for (Event &mark : marks) {
    mark.record (stream_);
    for (int i = 0; i < per_group && &mark != &marks.back (); i++)
      launch (set++);
  }
  KB_CHECK (cudaStreamSynchronize (stream_));

  std::vector<double> us;
  for (int i = 0; i < n_groups; i++)
    us.push_back (marks[i + 1].us_since (marks[i]) / per_group);
  return summarise (us);
}

/* At most two batches are queued ahead, so that the clocks, read when the last one
 * has been queued, are those under load. */
Timing
Bench::sustained (const Launch &launch, double seconds, GpuState *ret_state)
{
  int per_batch = launches_in (batch_us, estimate_us (launch));
  std::vector<Event> marks (1);
  int set = 0;
  marks[0].record (stream_);
  for (double until = elapsed_s () + seconds; elapsed_s () < until;) {
    for (int i = 0; i < per_batch; i++)
      launch (set++);
    marks.emplace_back ();
    marks.back ().record (stream_);
    if (marks.size () > 3)
      marks[marks.size () - 3].wait ();
  }
  *ret_state = gpu_state ();
  KB_CHECK (cudaStreamSynchronize (stream_));

  std::vector<double> us;
  double counted = 0;
  for (size_t i = marks.size () - 1; i > 0 && counted < last_us; i--) {
    double batch = marks[i].us_since (marks[i - 1]);
    counted += batch;
    us.push_back (batch / per_batch);
  }
  Timing time = summarise (us);
  time.us = counted / ((double) us.size () * per_batch); /* the rate of the whole second */
  return time;
}

void
require_checks (cudaStream_t stream, bool has_fp8)
{
  int n_failed = check_streams (stream) + check_operators (stream) + check_gemm (stream, has_fp8);
  if (n_failed == 0)
    return;
  fprintf (stderr, "error: %d checks failed; nothing was timed\n", n_failed);
  exit (1);
}

static std::string
utc_now ()
{
  char text[32];
  time_t now = time (nullptr);
  strftime (text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime (&now));
  return text;
}

static const char method[] =
  "isolated: one launch between two events, L2 flushed by reading four times its size, median of 21; "
  "steady: back to back over rotating operands, median of 15 groups of at least 5 ms; "
  "sustained: back to back, mean of the last second; "
  "spread: (p90 - p10) / median; random normal data; bytes: inputs read once, outputs written once; "
  "every kernel checked against a CPU reference before it is timed";

static void
write_row (FILE *file, const Row &row, bool is_last)
{
  fprintf (file,
           "    { \"group\": \"%s\", \"name\": \"%s\", \"shape\": \"%s\", \"dtype\": \"%s\", \"bytes\": %.0f, "
           "\"flops\": %.0f, \"time_us\": %.3f, \"spread_pct\": %.2f, \"rate\": %.2f, \"note\": \"%s\" }%s\n",
           row.group.c_str (), row.name.c_str (), row.shape.c_str (), row.dtype.c_str (), row.bytes, row.flops,
           row.time.us, row.time.spread_pct, row.rate (), row.note.c_str (), is_last ? "" : ",");
}

static void
write_state (FILE *file, const std::pair<std::string, GpuState> &state, bool is_last)
{
  const GpuState &s = state.second;
  fprintf (file,
           "    { \"when\": \"%s\", \"sm_mhz\": %u, \"memory_mhz\": %u, \"power_w\": %.0f, \"temperature_c\": %u }%s\n",
           state.first.c_str (), s.sm_mhz, s.memory_mhz, s.power_w, s.temperature_c, is_last ? "" : ",");
}

void
Bench::write_json () const
{
  if (options_.json_file.empty ())
    return;
  FILE *file = fopen (options_.json_file.c_str (), "w");
  if (!file)
    fail (options_.json_file.c_str (), "cannot be written", __FILE__, __LINE__);
  int cuda = 0;
  KB_CHECK (cudaRuntimeGetVersion (&cuda));
  fprintf (file, "{\n  \"schema\": \"lockstep.kernelbench/1\",\n  \"gpu\": \"%s\",\n  \"n_sms\": %d,\n", props_.name, n_sms ());
  fprintf (file, "  \"l2_bytes\": %zu,\n  \"memory_bytes\": %zu,\n", l2_bytes (), props_.totalGlobalMem);
  fprintf (file, "  \"driver\": \"%s\",\n  \"cuda\": \"%d.%d\",\n", driver_version ().c_str (), cuda / 1000, cuda % 1000 / 10);
  fprintf (file, "  \"cublaslt\": %zu,\n  \"date\": \"%s\",\n", cublasLtGetVersion (), utc_now ().c_str ());
  fprintf (file, "  \"method\": \"%s\",\n  \"n_skipped\": %zu,\n  \"states\": [\n", method, n_skipped_);
  for (const auto &state : states_)
    write_state (file, state, &state == &states_.back ());
  fprintf (file, "  ],\n  \"rows\": [\n");
  for (const Row &row : rows_)
    write_row (file, row, &row == &rows_.back ());
  fprintf (file, "  ]\n}\n");
  if (ferror (file) || fclose (file) != 0)
    fail (options_.json_file.c_str (), "could not be written whole", __FILE__, __LINE__);
}

}
