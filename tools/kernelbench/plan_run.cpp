/* Executes a plan on the GPU, step after step, and measures it twice.
 *
 * First undisturbed: two events around each step, which is what the step takes. Then with two
 * timed events around every op, which is where the spans come from. An event costs the stream
 * about a microsecond, so these steps take longer; both times are reported. Events are
 * preferred to kernels that write the global timer, which would cost a launch each and stand
 * between two kernels that otherwise follow each other.
 *
 * An op's first event passes as soon as what is before it on its stream, and what it waits
 * for, has ended and the host has issued it: the span contains the start of its kernel; a gap
 * between spans is waiting, for the host or another stream. */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>

#include "ops.h"
#include "plan_launch.h"

namespace kb {

static constexpr int n_event_pairs = 101;
static constexpr int n_warm_up = 3;
static constexpr int max_steps = 50, min_steps = 3;
static constexpr uint64_t max_ring_bytes = 4ull << 30; /* far beyond any L2 */

namespace {

struct Span {
  Event start, end;
};

class Runner {
public:
  Runner (const Plan &plan, const PlanMemory &memory);
  Runner (const Runner &) = delete;
  ~Runner ();

  /* Issues a step; with spans, timed. The step lies between the two events. */
  void step (Event &begin, Event &end, std::vector<Span> *spans);
  void launch (size_t op) const { launches_[op] (); }
  void finish () const { KB_CHECK (cudaDeviceSynchronize ()); }
  bool is_timed (size_t op) const { return (bool) launches_[op]; }

private:
  void wait_on_host (const PlanOp &op) const;
  void issue (size_t i, std::vector<Span> *spans);

  const Plan &plan_;
  std::map<int, cudaStream_t> streams_;
  std::vector<std::function<void ()>> launches_;       /* empty: nothing to launch */
  std::vector<cudaEvent_t> ended_;                     /* null: nobody waits for it */
  cudaEvent_t joint_ = nullptr;
};

}

static cudaEvent_t
untimed_event ()
{
  cudaEvent_t event;
  KB_CHECK (cudaEventCreateWithFlags (&event, cudaEventDisableTiming));
  return event;
}

Runner::Runner (const Plan &plan, const PlanMemory &memory)
  : plan_ (plan), launches_ (plan.ops.size ()), ended_ (plan.ops.size (), nullptr), joint_ (untimed_event ())
{
  KB_CHECK (cudaStreamCreateWithFlags (&streams_[0], cudaStreamNonBlocking)); /* the step begins and ends there */
  for (size_t i = 0; i < plan.ops.size (); i++) {
    const PlanOp &op = plan.ops[i];
    if (!streams_.count (op.stream))
      KB_CHECK (cudaStreamCreateWithFlags (&streams_[op.stream], cudaStreamNonBlocking));
    if (op.kind == OpKind::KERNEL || op.kind == OpKind::COPY)
      launches_[i] = make_launch (plan, op, memory, streams_[op.stream]);
    for (size_t wait : op.waits)
      if (!ended_[wait])
        ended_[wait] = untimed_event ();
  }
}

Runner::~Runner ()
{
  for (cudaEvent_t event : ended_)
    if (event)
      cudaEventDestroy (event);
  cudaEventDestroy (joint_);
  for (const auto &stream : streams_)
    cudaStreamDestroy (stream.second);
}

void
Runner::wait_on_host (const PlanOp &op) const
{
  if (op.waits_for_all)
    for (const auto &stream : streams_)
      KB_CHECK (cudaStreamSynchronize (stream.second));
  for (size_t wait : op.waits)
    KB_CHECK (cudaEventSynchronize (ended_[wait]));
}

static void
delay_host (uint64_t ps)
{
  auto until = std::chrono::steady_clock::now () + std::chrono::nanoseconds (ps / 1000);
  while (std::chrono::steady_clock::now () < until)
    ;
}

void
Runner::issue (size_t i, std::vector<Span> *spans)
{
  const PlanOp &op = plan_.ops[i];
  cudaStream_t stream = streams_[op.stream];
  if (op.kind == OpKind::HOST_SYNC)
    return wait_on_host (op);
  if (op.kind == OpKind::HOST_DELAY)
    return delay_host (op.recorded_ps);
  for (size_t wait : op.waits)
    KB_CHECK (cudaStreamWaitEvent (stream, ended_[wait], 0));
  if (launches_[i]) {
    if (spans)
      (*spans)[i].start.record (stream);
    launches_[i]();
    if (spans)
      (*spans)[i].end.record (stream);
  }
  if (ended_[i])
    KB_CHECK (cudaEventRecord (ended_[i], stream));
}

void
Runner::step (Event &begin, Event &end, std::vector<Span> *spans)
{
  begin.record (streams_[0]);
  for (const auto &stream : streams_)
    if (stream.first != 0)
      KB_CHECK (cudaStreamWaitEvent (stream.second, begin.get (), 0));
  for (size_t i = 0; i < plan_.ops.size (); i++)
    issue (i, spans);
  for (const auto &stream : streams_)
    if (stream.first != 0) {
      KB_CHECK (cudaEventRecord (joint_, stream.second));
      KB_CHECK (cudaStreamWaitEvent (streams_[0], joint_, 0));
    }
  end.record (streams_[0]);
}

static int
n_steps_within (double seconds, double step_us)
{
  return (int) std::clamp (seconds * 1e6 / std::max (step_us, 1.0), (double) min_steps, (double) max_steps);
}

static Timing
time_steps (Runner &runner, double seconds)
{
  std::vector<Event> begin (max_steps), end (max_steps);
  for (int i = 0; i < n_warm_up; i++)
    runner.step (begin[0], end[0], nullptr);
  runner.finish ();
  int n = n_steps_within (seconds, end[0].us_since (begin[0]));
  for (int i = 0; i < n; i++)
    runner.step (begin[(size_t) i], end[(size_t) i], nullptr);
  runner.finish ();
  std::vector<double> us;
  for (int i = 0; i < n; i++)
    us.push_back (end[(size_t) i].us_since (begin[(size_t) i]));
  return summarise (us);
}

namespace {

struct Measured {
  std::vector<std::vector<double>> start, end; /* by op, from the start of its step */
  std::vector<double> step;
};

}

static void
read_spans (const Runner &runner, const Event &begin, const Event &end, const std::vector<Span> &spans, Measured *ret)
{
  end.wait ();
  for (size_t i = 0; i < spans.size (); i++)
    if (runner.is_timed (i)) {
      ret->start[i].push_back (spans[i].start.us_since (begin));
      ret->end[i].push_back (spans[i].end.us_since (begin));
    }
  ret->step.push_back (end.us_since (begin));
}

/* Two sets of events in turn: the step that is read has another queued behind it. */
static Measured
time_ops (Runner &runner, size_t n_ops, int n)
{
  Event begin[2], end[2];
  std::vector<Span> spans[2];
  Measured result = { std::vector<std::vector<double>> (n_ops), std::vector<std::vector<double>> (n_ops), {} };
  spans[0] = std::vector<Span> (n_ops);
  spans[1] = std::vector<Span> (n_ops);
  runner.step (begin[0], end[0], &spans[0]); /* warms the events up; not read */
  for (int i = 1; i <= n; i++) {
    runner.step (begin[i % 2], end[i % 2], &spans[i % 2]);
    if (i > 1)
      read_spans (runner, begin[(i - 1) % 2], end[(i - 1) % 2], spans[(i - 1) % 2], &result);
  }
  read_spans (runner, begin[n % 2], end[n % 2], spans[n % 2], &result);
  return result;
}

/* The share of the last 16-bit product's result that is no number: data that overflowed draw
 * less power, and time less honestly. */
static double
share_not_finite (const Plan &plan, const Runner &runner, const PlanMemory &memory)
{
  for (size_t i = plan.ops.size (); i-- > 0;) {
    const PlanOp &op = plan.ops[i];
    bool is_product = op.kernel >= 0 && op.recorded_ps == 0 && plan.kernels[(size_t) op.kernel].impl == Impl::GEMM;
    if (!is_product || plan.kernels[(size_t) op.kernel].dtype != "bf16" || plan.kernels[(size_t) op.kernel].accumulates)
      continue;
    std::vector<uint16_t> out (std::min<size_t> (op.operands[2].bytes / 2, 1u << 20));
    runner.launch (i);
    runner.finish ();
    KB_CHECK (cudaMemcpy (out.data (), memory.at<uint16_t> (op.operands[2]), out.size () * 2, cudaMemcpyDeviceToHost));
    auto n = std::count_if (out.begin (), out.end (), [] (uint16_t x) { return (x & 0x7f80) == 0x7f80; });
    return (double) n / (double) out.size ();
  }
  return 0;
}

/* Two events with nothing between them, one pair behind the other: what a span holds besides its kernel. */
static Timing
time_event_pair ()
{
  cudaStream_t stream = nullptr;
  std::vector<Event> start (n_event_pairs), stop (n_event_pairs);
  std::vector<double> us;
  KB_CHECK (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
  for (size_t i = 0; i < start.size (); i++) {
    start[i].record (stream);
    stop[i].record (stream);
  }
  KB_CHECK (cudaStreamSynchronize (stream));
  for (size_t i = 1; i < start.size (); i++)
    us.push_back (stop[i].us_since (start[i]));
  cudaStreamDestroy (stream);
  return summarise (us);
}

/* What an op ran, for lockstep calibrate: nothing of what has no shape. */
static std::string
what_ran (const Plan &plan, size_t i, const std::string &disturbance)
{
  const PlanOp &op = plan.ops[i];
  if (op.kind != OpKind::KERNEL || op.kernel < 0 || op.recorded_ps > 0)
    return ",,0,0,,";
  Row row = row_of_shape (plan.kernels[(size_t) op.kernel]);
  row.note += disturbance.empty () ? "" : " disturbed=" + disturbance;
  return format ("%s,%s,%.0f,%.0f,%s,%s", row.shape.c_str (), row.dtype.c_str (), row.bytes, row.flops, row.note.c_str (),
                 row.implementation.c_str ());
}

static void
write_step_row (const Plan &plan, const char *name, const Timing &time)
{
  printf ("%llu,step,%s,,,,,,,0.000,%.3f,%.2f,,,0,0,,\n", (unsigned long long) plan.rank, name, time.us, time.spread_pct);
}

static void
write_spans (const Plan &plan, const Runner &runner, const Timing &step, const Measured &measured, const std::string &disturbance)
{
  printf ("%s,start_us,end_us,spread_pct,shape,dtype,bytes,flops,note,implementation\n", plan_column_names);
  write_step_row (plan, "step", step);
  write_step_row (plan, "step with events", summarise (measured.step));
  write_step_row (plan, "event-pair", time_event_pair ());
  for (size_t i = 0; i < plan.ops.size (); i++) {
    if (!runner.is_timed (i))
      continue;
    std::vector<double> took;
    for (size_t j = 0; j < measured.start[i].size (); j++)
      took.push_back (measured.end[i][j] - measured.start[i][j]);
    Timing time = summarise (took);
    double start = summarise (measured.start[i]).us;
    printf ("%s,%.3f,%.3f,%.2f,%s\n", plan_columns (plan, i).c_str (), start, start + time.us, time.us > 0 ? time.spread_pct : 0,
            what_ran (plan, i, disturbance).c_str ());
  }
}

/* A plan with a wrong kernel in it is not timed. */
static void
require_checks (const Plan &plan, const Device &device)
{
  Checks checks;
  check_all (checks, nullptr, device.props ().major * 10 + device.props ().minor);
  for (const PlanKernel &kernel : plan.kernels) {
    std::string why = checks.objection (std::vector<std::string> { check_of (kernel) });
    if (!why.empty ())
      throw Failure (kernel.name + ": " + why + "; --skip-checks runs the plan all the same");
  }
}

void
run_plan (Plan &plan, const Options &options)
{
  std::string problem;
  adapt_plan (plan, &problem);
  if (!problem.empty ())
    throw PlanError ("error: " + problem);
  place_operands (plan, max_ring_bytes);
  fprintf (stderr, "%s", plan_summary (plan).c_str ());
  if (options.dry_run) {
    printf ("%s", plan_text (plan).c_str ());
    return;
  }
  Device device (options.device);
  if (!options.skips_checks)
    require_checks (plan, device);
  PlanMemory memory (plan);
  Runner runner (plan, memory);
  Watch watch (device.nvml ());
  Timing step = time_steps (runner, options.seconds / 4);
  Measured measured = time_ops (runner, plan.ops.size (), n_steps_within (options.seconds / 4, step.us));
  Conditions seen = watch.end ();
  write_spans (plan, runner, step, measured, disturbance_of (seen));
  fprintf (stderr, "%s\nstep %.1f us, %.1f us with events around every op; %.2f %% of the last product's results no numbers\n",
           conditions_note (seen).c_str (), step.us, summarise (measured.step).us, 100 * share_not_finite (plan, runner, memory));
  if (std::string disturbance = disturbance_of (seen); !disturbance.empty ())
    fprintf (stderr, "note: disturbed (%s): measure it again\n", disturbance.c_str ());
}

/* --- what it needs of memory --- */

static constexpr double most_of_memory = 0.92; /* the rest: workspaces, modules */
static constexpr uint64_t seed = 600;

static uint64_t
largest_copy (const Plan &plan)
{
  uint64_t bytes = 0;
  for (const PlanOp &op : plan.ops)
    bytes = std::max (bytes, op.kind == OpKind::COPY ? op.bytes : 0);
  return bytes;
}

/* Ids must be rows of every table that is looked up. */
static int
least_rows (const Plan &plan)
{
  uint64_t rows = INT32_MAX;
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.impl == Impl::GATHER)
      rows = std::min (rows, kernel.m);
  return (int) rows;
}

static void
require_memory (const Plan &plan)
{
  size_t free_bytes = 0, all_bytes = 0;
  double needed = (double) largest_copy (plan);
  for (uint64_t bytes : plan.region_bytes)
    needed += (double) bytes;
  KB_CHECK (cudaMemGetInfo (&free_bytes, &all_bytes));
  if (needed <= most_of_memory * (double) free_bytes)
    return;
  throw Failure (format ("the plan needs %.1f GB for its operands; %.1f GB of the memory are free", needed * 1e-9,
                         (double) free_bytes * 1e-9));
}

PlanMemory::PlanMemory (const Plan &plan) : flag_ (1)
{
  require_memory (plan);
  for (uint64_t bytes : plan.region_bytes)
    regions_.emplace_back ((size_t) bytes);
  auto region = [&] (Region r) -> const Buffer<uint8_t> & { return regions_[(size_t) r]; };
  auto fill_floats = [&] (Region r, uint64_t s) {
    fill_normal (nullptr, reinterpret_cast<float *> (region (r).get ()), region (r).size () / sizeof (float), 1, s);
  };
  for (Region r : { Region::READ, Region::WRITE })
    fill_normal (nullptr, reinterpret_cast<__nv_bfloat16 *> (region (r).get ()), region (r).size () / 2, 1, seed + (uint64_t) r);
  fill_floats (Region::FLOATS, seed + 10);
  fill_floats (Region::STATS, seed + 11);
  for (Region r : { Region::MOMENT, Region::PARTIAL, Region::MASK })
    if (region (r).size () > 0)
      KB_CHECK (cudaMemset (region (r).get (), r == Region::MASK, region (r).size ()));
  if (region (Region::IDS).size () > 0)
    fill_ids (nullptr, reinterpret_cast<int *> (region (Region::IDS).get ()), region (Region::IDS).size () / sizeof (int),
              least_rows (plan), seed + 12);
  if (uint64_t bytes = largest_copy (plan)) {
    copied_ = Buffer<uint8_t> ((size_t) bytes);
    KB_CHECK (cudaHostAlloc ((void **) &host_, (size_t) bytes, cudaHostAllocDefault));
    for (uint64_t i = 0; i < bytes; i++)
      host_[i] = (uint8_t) (i * 2654435761u >> 13);
  }
  KB_CHECK (cudaDeviceSynchronize ());
}

PlanMemory::~PlanMemory ()
{
  if (host_)
    cudaFreeHost (host_);
}

/* --- which check a kernel of it rests on --- */

/* Those whose check is called otherwise than the kernel; the others have their own name. */
static const struct {
  Impl impl;
  const char *check;
} named[] = {
  { Impl::LAYERNORM, "layernorm-fwd" },   { Impl::LAYERNORM_DGRAD, "layernorm-dgrad" },
  { Impl::LAYERNORM_GAMMA_BETA, "layernorm-gamma-beta-grad" },
  { Impl::RMSNORM, "rmsnorm-fwd" },       { Impl::SOFTMAX, "scale-mask-softmax" },
  { Impl::SOFTMAX_BWD, "scale-mask-softmax-bwd" },
  { Impl::GATHER, "embedding-lookup" },   { Impl::COLUMN_SUM, "bias-grad" },
  { Impl::FLOAT_TO_HALF, "weight-copy" }, { Impl::HALF_TO_FLOAT, "main-grad-copy" },
  { Impl::UNSCALE, "grad-unscale" },      { Impl::SUM_SQUARES, "grad-norm" },
  { Impl::SCALE, "grad-clip" },
};

std::string
check_of (const PlanKernel &k)
{
  if (k.impl == Impl::GEMM)
    return std::string ("gemm ") + (k.layout == "TN" ? "forward" : k.layout == "NN" ? "dgrad" : k.accumulates ? "wgrad" : "wgrad16")
           + " " + k.dtype;
  if (k.impl == Impl::ATTENTION || k.impl == Impl::ATTENTION_BWD)
    return "attention " + k.dtype + (k.impl == Impl::ATTENTION ? " fwd" : " bwd");
  for (const auto &n : named)
    if (k.impl == n.impl)
      return n.check;
  return impl_name (k.impl);
}

/* ---- the kernels of a job, one by one ---- */

/* Times the kernels of a job one by one: isolated, as the products and attention of the groups.
 *
 * The group of these rows is `shapes`, their names are the job's; the note has the kind of the
 * kernel as the simulator calls it. A kernel that only streams as many bytes as the job's, for
 * want of one of ours, is a stand-in. */

static Plan
plan_of (const PlanKernel &kernel)
{
  Plan plan;
  PlanOp op;
  plan.name = op.name = kernel.name;
  op.kind = OpKind::KERNEL;
  op.kernel = 0;
  op.operands = operands_of (kernel);
  plan.kernels.push_back (kernel);
  plan.ops.push_back (op);
  return plan;
}

static Shape
read_shape (const Json &json)
{
  Shape shape;
  shape.name = json.at ("name").text ();
  try {
    PlanKernel kernel = read_plan_kernel (json);
    set_layout (kernel, json.find ("tag") ? json.at ("tag").text () : "");
    shape.plan = plan_of (kernel);
  } catch (const PlanError &error) {
    shape.problem = error.what ();
  }
  return shape;
}

std::vector<Shape>
read_shapes (const std::string &file, const std::string &text)
{
  Json root = Json::parse (file, text);
  std::string schema = root.find ("schema") ? root.at ("schema").text () : "";
  if (schema != "lockstep.shapes/1" && schema != "lockstep.trace/1")
    root.fail ("no shapes: \"schema\" must be \"lockstep.shapes/1\" (lockstep kernel --list-shapes) or \"lockstep.trace/1\"");
  std::vector<Shape> shapes;
  for (const Json &kernel : root.at ("kernels").items ())
    shapes.push_back (read_shape (kernel));
  return shapes;
}

static constexpr double case_s = 0.5;

static std::string
shape_text (const PlanKernel &k)
{
  auto n = [] (uint64_t size) { return std::to_string (size); };
  if (k.impl == Impl::ATTENTION || k.impl == Impl::ATTENTION_BWD) /* its sequences count as heads */
    return "1x" + n (k.m) + "x" + n (k.batch) + "x" + n (k.kv_batch) + "x" + n (k.k);
  std::string batch = k.batch > 1 ? n (k.batch) + "*" : "";
  return batch + n (k.m) + "x" + n (k.n) + (k.impl == Impl::GEMM ? "x" + n (k.k) : "");
}

static const char *
implementation_of (const PlanKernel &k)
{
  return k.impl == Impl::GEMM ? product_library () : k.impl == Impl::STREAM && !streams_are_own () ? "stand-in" : "own";
}

Row
row_of_shape (const PlanKernel &k)
{
  Row row { "shapes", k.name, shape_text (k), k.dtype, k.bytes, k.flops };
  row.note = "kind=" + k.kind;
  if (k.impl == Impl::GEMM)
    row.note += " layout=" + k.layout + (k.accumulates ? " out=fp32-accumulate" : "");
  if (k.impl == Impl::ATTENTION || k.impl == Impl::ATTENTION_BWD)
    row.note += k.is_causal ? " causal=1" : " causal=0";
  row.implementation = implementation_of (k);
  return row;
}

static void
measure (Bench &bench, Plan &plan)
{
  const PlanKernel &kernel = plan.kernels[0];
  bench.measure (row_of_shape (kernel), case_s, [&] (Row &) {
    std::string objection = bench.checks ().objection (std::vector<std::string> { check_of (kernel) });
    if (!objection.empty ())
      throw Failure (objection);
    place_operands (plan, max_ring_bytes);
    PlanMemory memory (plan);
    return bench.isolated (make_launch (plan, plan.ops[0], memory, bench.stream ()));
  });
}

void
run_shapes (Bench &bench, const std::string &file, const std::string &text)
{
  bench.wake_up ();
  for (Shape &shape : read_shapes (file, text)) {
    if (shape.problem.empty ())
      adapt_plan (shape.plan, &shape.problem);
    if (shape.problem.empty ())
      measure (bench, shape.plan);
    else
      bench.leave_out (Row { "shapes", shape.name, "", "" }, shape.problem);
  }
}

}
