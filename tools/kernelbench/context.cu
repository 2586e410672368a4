/* A whole layer, forward and backward, again and again, against the sum of its
 * kernels' isolated times; and each kernel's time inside that loop, hot, with what the
 * one before it left in L2. */
#include "layer.cuh"

namespace kb {

static constexpr double sustained_s = 3;
static constexpr int n_layers = 25;  /* whose steps are timed one by one */
static constexpr int n_isolated = 11;
static constexpr double case_s = 6;

/* GPT of hidden size 6144 (48 heads), 12288 (96) and 20480 (128) on one of 8
 * tensor-parallel ranks; 8192, 2048 and 2048 tokens. */
static const LayerShape shapes[] = {
  { 6144, 6, 128, 3072, 4 },
  { 12288, 12, 128, 6144, 1 },
  { 20480, 16, 160, 10240, 1 },
};

namespace {

struct Total {
  double bytes = 0, flops = 0, in_loop_us = 0, isolated_us = 0;
  void add (const Row &row, double loop, double isolated)
  {
    bytes += row.bytes;
    flops += row.flops;
    in_loop_us += loop;
    isolated_us += isolated;
  }
};

}

static void
run_all (const Layer &layer)
{
  for (const Step &step : layer.steps ())
    step.launch ();
}

static std::vector<double>
isolated_us (Bench &bench, const Layer &layer)
{
  std::vector<double> us;
  for (const Step &step : layer.steps ())
    us.push_back (bench.isolated (step.launch, n_isolated).us);
  return us;
}

/* An event between any two steps: about a microsecond each, which is why the loop as
 * a whole is timed without them. */
static std::vector<Timing>
in_loop (Bench &bench, const Layer &layer)
{
  size_t n = layer.steps ().size ();
  std::vector<Event> marks (n_layers * n + 1);
  marks[0].record (bench.stream ());
  for (size_t i = 0; i < n_layers * n; i++) {
    layer.steps ()[i % n].launch ();
    marks[i + 1].record (bench.stream ());
  }
  KB_CHECK (cudaStreamSynchronize (bench.stream ()));

  std::vector<Timing> times;
  for (size_t step = 0; step < n; step++) {
    std::vector<double> us;
    for (size_t i = n + step; i < n_layers * n; i += n) /* the first layer warms up */
      us.push_back (marks[i + 1].us_since (marks[i]));
    times.push_back (summarise (us));
  }
  return times;
}

static std::string
compare_note (double us, double isolated)
{
  return format ("isolated_us=%.3f ratio=%.4f", isolated, us / isolated);
}

static void
add_total (Bench &bench, const Layer &layer, const char *name, const Total &total, Timing time, const std::string &more)
{
  Row row { "context", name, layer.shape_text (), "fp16", total.bytes, total.flops };
  row.note = compare_note (time.us, total.isolated_us) + more;
  bench.add (row, time);
}

static void
measure (Bench &bench, const Layer &layer)
{
  GpuState state;
  Total all, gemms, streams;
  run_all (layer); /* every tensor holds data before anything is timed */
  std::vector<double> isolated = isolated_us (bench, layer);
  Timing whole = bench.sustained ([&] (int) { run_all (layer); }, sustained_s, &state);
  std::vector<Timing> loop = in_loop (bench, layer);

  for (size_t i = 0; i < isolated.size (); i++) {
    Row row = layer.steps ()[i].row;
    row.note += (row.note.empty () ? "" : " ") + compare_note (loop[i].us, isolated[i]);
    bench.add (row, loop[i]);
    all.add (row, loop[i].us, isolated[i]);
    (row.flops > 0 ? gemms : streams).add (row, loop[i].us, isolated[i]);
  }
  add_total (bench, layer, "layer-gemms", gemms, { gemms.in_loop_us, 0 }, "");
  add_total (bench, layer, "layer-streams", streams, { streams.in_loop_us, 0 }, "");
  add_total (bench, layer, "layer", all, whole, " " + state_note (state));
}

static void
plan (Bench &bench, const Layer &layer)
{
  for (const Step &step : layer.steps ())
    bench.skips (step.row, 0);
}

void
bench_context (Bench &bench)
{
  for (const LayerShape &shape : shapes) {
    Layer layer (shape, bench.stream (), !bench.is_dry ());
    Row row { "context", "layer", layer.shape_text (), "fp16" };
    if (bench.is_dry ())
      plan (bench, layer);
    if (bench.skips (row, case_s))
      continue;
    bench.wake_up ();
    measure (bench, layer);
  }
}

}
