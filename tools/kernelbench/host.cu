/* What a launch costs the host, and what lies between two kernels of a stream.
 *
 *   launch        time of cudaLaunchKernel on the host, queue never full
 *   period        of empty kernels that were all queued before the first ran
 *   gap           n kernels of d cycles against one of n d cycles: what each of the
 *                 n - 1 more launches adds, its start and its end included
 *   graph-kernel-gap the same gap in a CUDA graph
 *   priority-wait how long a stream of high priority waits while another fills all SMs
 *   event-bracket two events around an empty kernel
 *   event-pair    two events around nothing: what every isolated time contains besides its
 *                 kernel, and lockstep calibrate subtracts */
#include <algorithm>

#include "bench.h"

namespace kb {

static constexpr int n_launches = 500; /* below the 1024 that a stream queues */
static constexpr int n_rounds = 20;    /* 10^4 launches in all                */
static constexpr int n_chained = 200;
static constexpr long long spin_cycles = 10'000;
static constexpr unsigned long long hold_ns = 5'000'000; /* longer than queueing n_launches takes */
static constexpr double case_s = 0.5;

static __global__ void
empty_kernel ()
{
}

static __global__ void
spin_kernel (long long cycles)
{
  long long start = clock64 ();
  while (clock64 () - start < cycles)
    ;
}

static __device__ unsigned long long
global_ns ()
{
  unsigned long long ns;
  asm volatile ("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

static __global__ void
hold_kernel (unsigned long long ns)
{
  unsigned long long start = global_ns ();
  while (global_ns () - start < ns)
    ;
}

static double
host_us ()
{
  using namespace std::chrono;
  return duration<double, std::micro> (steady_clock::now ().time_since_epoch ()).count ();
}

static Timing
launch_cost (Bench &bench)
{
  std::vector<double> us;
  for (int round = 0; round <= n_rounds; round++) {
    double start = host_us ();
    for (int i = 0; i < n_launches; i++)
      KB_CHECK (cudaLaunchKernel ((const void *) empty_kernel, dim3 (1), dim3 (32), nullptr, 0, bench.stream ()));
    if (round > 0) /* the first loads the module */
      us.push_back ((host_us () - start) / n_launches);
    KB_CHECK (cudaStreamSynchronize (bench.stream ()));
  }
  return summarise (us);
}

/* Time on the device of n kernels of `cycles`, queued while another holds the stream. */
static double
chain_us (Bench &bench, int n, long long cycles)
{
  Event start, stop;
  hold_kernel<<<1, 1, 0, bench.stream ()>>> (hold_ns);
  start.record (bench.stream ());
  for (int i = 0; i < n; i++)
    spin_kernel<<<1, 32, 0, bench.stream ()>>> (cycles);
  stop.record (bench.stream ());
  stop.wait ();
  KB_CHECK_LAUNCH ();
  return stop.us_since (start);
}

static Timing
chain_period (Bench &bench)
{
  std::vector<double> us;
  for (int round = 0; round < n_rounds; round++)
    us.push_back ((chain_us (bench, 2 * n_chained, 0) - chain_us (bench, n_chained, 0)) / n_chained);
  return summarise (us);
}

static Timing
chain_gap (Bench &bench)
{
  std::vector<double> us;
  for (int round = 0; round < n_rounds; round++)
    us.push_back ((chain_us (bench, n_chained, spin_cycles) - chain_us (bench, 1, n_chained * spin_cycles))
                  / (n_chained - 1));
  return summarise (us);
}

static Timing
bracket (Bench &bench)
{
  return bench.isolated ([&] { empty_kernel<<<1, 32, 0, bench.stream ()>>> (); }, 101);
}

namespace {

/* n kernels of `cycles` as a CUDA graph. */
class Graph {
public:
  Graph (int n, long long cycles)
  {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    KB_CHECK (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    KB_CHECK (cudaStreamBeginCapture (stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < n; i++)
      spin_kernel<<<1, 32, 0, stream>>> (cycles);
    KB_CHECK (cudaStreamEndCapture (stream, &graph));
    KB_CHECK (cudaGraphInstantiate (&graph_, graph, 0));
    KB_CHECK (cudaGraphDestroy (graph));
    KB_CHECK (cudaStreamDestroy (stream));
  }
  Graph (const Graph &) = delete;
  ~Graph () { cudaGraphExecDestroy (graph_); }

  double us (cudaStream_t stream) const
  {
    Event start, stop;
    start.record (stream);
    KB_CHECK (cudaGraphLaunch (graph_, stream));
    stop.record (stream);
    stop.wait ();
    return stop.us_since (start);
  }

private:
  cudaGraphExec_t graph_ = nullptr;
};

}

static Timing
graph_gap (Bench &bench)
{
  Graph many (n_chained, spin_cycles), one (1, n_chained * spin_cycles);
  std::vector<double> us;
  for (int round = 0; round <= n_rounds; round++) {
    double gap = (many.us (bench.stream ()) - one.us (bench.stream ())) / (n_chained - 1);
    if (round > 0) /* the first uploads the graph */
      us.push_back (gap);
  }
  return summarise (us);
}

/* A kernel of one block on a stream of the highest priority, while blocks of another stream fill
 * every SM, again and again: how much later it ends than alone. */
static Timing
priority_wait (Bench &bench)
{
  int least = 0, greatest = 0;
  cudaStream_t high = nullptr, low = bench.stream ();
  KB_CHECK (cudaDeviceGetStreamPriorityRange (&least, &greatest));
  KB_CHECK (cudaStreamCreateWithPriority (&high, cudaStreamNonBlocking, greatest));
  auto once = [&] {
    Event start, stop;
    start.record (high);
    spin_kernel<<<1, 32, 0, high>>> (spin_cycles);
    stop.record (high);
    stop.wait ();
    return stop.us_since (start);
  };
  std::vector<double> us;
  once ();
  for (int round = 0; round < n_rounds; round++) {
    double alone = once ();
    spin_kernel<<<64 * 32 * bench.n_sms (), 1024, 0, low>>> (spin_cycles);
    us.push_back (once () - alone);
    KB_CHECK (cudaStreamSynchronize (low));
  }
  KB_CHECK (cudaStreamDestroy (high));
  Timing wait = summarise (us);
  return { std::max (wait.us, 0.001), wait.spread_pct };
}

/* Two events with nothing between them. */
static Timing
event_pair (Bench &bench)
{
  return bench.isolated ([] {}, 101);
}

void
bench_host (Bench &bench)
{
  static const struct {
    const char *name, *note;
    Timing (*measure) (Bench &);
  } cases[] = {
    { "launch", "on=host", launch_cost },
    { "empty-kernel-period", "on=device queued=1", chain_period },
    { "kernel-gap", "on=device queued=1", chain_gap },
    { "graph-kernel-gap", "on=device in=graph", graph_gap },
    { "priority-wait", "on=device blocks=of-10000-cycles", priority_wait },
    { "event-bracket", "on=device", bracket },
    { "event-pair", "on=device in=isolated-times", event_pair },
  };
  bench.wake_up ();
  for (const auto &c : cases) {
    Row row { "host", c.name, "1x32", "none" };
    row.note = c.note;
    bench.measure (row, case_s, [&] (Row &) { return c.measure (bench); });
  }
}

}
