/* A whole layer, forward and backward, again and again, against the sum of its
 * kernels' isolated times; and each kernel's time inside that loop, hot, with what the
 * one before it left in L2. */
#include "layer.h"

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

static Row
total_row (const Layer &layer, const char *name, const Total &total, Timing time, const std::string &more)
{
  Row row { "context", name, layer.shape_text (), "fp16", total.bytes, total.flops, time };
  row.note = compare_note (time.us, total.isolated_us) + more;
  return row;
}

static std::vector<Row>
measure (Bench &bench, const Layer &layer)
{
  Conditions loaded;
  Total all, gemms, streams;
  std::vector<Row> rows;
  run_all (layer); /* every tensor holds data before anything is timed */
  std::vector<double> isolated = isolated_us (bench, layer);
  Timing whole = bench.sustained ([&] (int) { run_all (layer); }, sustained_s, &loaded);
  std::vector<Timing> loop = in_loop (bench, layer);

  for (size_t i = 0; i < isolated.size (); i++) {
    Row row = layer.steps ()[i].row;
    row.note += (row.note.empty () ? "" : " ") + compare_note (loop[i].us, isolated[i]);
    row.time = loop[i];
    rows.push_back (row);
    all.add (row, loop[i].us, isolated[i]);
    (row.flops > 0 ? gemms : streams).add (row, loop[i].us, isolated[i]);
  }
  rows.push_back (total_row (layer, "layer-gemms", gemms, { gemms.in_loop_us, 0 }, ""));
  rows.push_back (total_row (layer, "layer-streams", streams, { streams.in_loop_us, 0 }, ""));
  rows.push_back (total_row (layer, "layer", all, whole, " " + conditions_note (loaded)));
  return rows;
}

static void
plan (Bench &bench, const Layer &layer)
{
  for (const Step &step : layer.steps ())
    bench.measure (step.row, 0, [] (Row &) { return Timing (); });
}

/* A layer with a wrong kernel in it is not timed. */
static std::string
objection (Bench &bench, const Layer &layer)
{
  for (const Step &step : layer.steps ())
    if (std::string why = bench.checks ().objection (step.row); !why.empty ())
      return step.row.name + ": " + why;
  return "";
}

static void
bench_layer (Bench &bench, const LayerShape &shape)
{
  Row row { "context", "layer", Layer (shape, bench.stream (), false).shape_text (), "fp16" };
  bench.measure_case (row, case_s, [&] {
    Layer layer (shape, bench.stream (), true);
    std::string why = objection (bench, layer);
    if (!why.empty ())
      throw Failure (why);
    bench.wake_up ();
    return measure (bench, layer);
  });
}

void
bench_context (Bench &bench)
{
  for (const LayerShape &shape : shapes) {
    if (bench.is_dry ())
      plan (bench, Layer (shape, bench.stream (), false));
    bench_layer (bench, shape);
  }
}

}
