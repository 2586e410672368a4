/* What the host runs and is measured by: plain loops that stand for the kernels of a GPU, ops of a plan as calls of these, and groups
 * of sizes that a processor takes in milliseconds, named and counted as those of a GPU.
 *
 * The loops prove the route from a measurement to a verdict, not a GPU: one thread, no care for
 * caches beyond what the order of loops gives. */
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "../bench.h"
#include "../ops.h"
#include "../plan_launch.h"
#include "../tolerance.h"
#include "fault.h"

namespace kb {

/* C[m,n] = alpha A[m,k] B[k,n], batched, row-major; bf16 times bf16, added up in fp32. "TN": B is
 * stored transposed, "NT": A is; "NN": neither. C is bf16 or, to add to, fp32. */
struct HostGemm {
  size_t m, n, k, batch;
  const char *layout;
  bool accumulates;
  float alpha;
};
static constexpr size_t block = 64; /* rows of B that stay in a cache while all of A's pass */

/* As floats, row-major [rows, cols], from storage of either order. */
static void
unpack (const __nv_bfloat16 *x, size_t rows, size_t cols, bool is_transposed, std::vector<float> *ret)
{
  ret->resize (rows * cols);
  float *y = ret->data ();
  if (!is_transposed)
    for (size_t i = 0; i < rows * cols; i++)
      y[i] = (float) x[i];
  else
    for (size_t i = 0; i < rows; i++)
      for (size_t j = 0; j < cols; j++)
        y[i * cols + j] = (float) x[j * rows + i];
}

static void
multiply (const HostGemm &g, const float *a, const float *b, float *sum)
{
  for (size_t first = 0; first < g.k; first += block)
    for (size_t i = 0; i < g.m; i++)
      for (size_t l = first; l < std::min (first + block, g.k); l++) {
        float x = a[i * g.k + l];
        for (size_t j = 0; j < g.n; j++)
          sum[i * g.n + j] += x * b[l * g.n + j];
      }
}

static void
store (const HostGemm &g, const std::vector<float> &sum, size_t batch, void *c)
{
  size_t n = g.m * g.n;
  if (g.accumulates)
    for (size_t i = 0; i < n; i++)
      ((float *) c)[batch * n + i] += g.alpha * sum[i];
  else
    for (size_t i = 0; i < n; i++)
      ((__nv_bfloat16 *) c)[batch * n + i] = __nv_bfloat16 (g.alpha * sum[i]);
}

static void
host_gemm (const HostGemm &g, const __nv_bfloat16 *a, const __nv_bfloat16 *b, void *c)
{
  static std::vector<float> rows, cols, sum; /* one thread; kept, as a library keeps its workspace */
  KB_CHECK (fault_of ("gemm"));
  for (size_t i = 0; i < g.batch; i++) {
    unpack (a + i * g.m * g.k, g.m, g.k, strcmp (g.layout, "NT") == 0, &rows);
    unpack (b + i * g.k * g.n, g.k, g.n, strcmp (g.layout, "TN") == 0, &cols);
    sum.assign (g.m * g.n, 0);
    multiply (g, rows.data (), cols.data (), sum.data ());
    store (g, sum, i, c);
  }
}

/* Reads n_read bytes and writes n_write, in multiples of 16. */
static void
host_stream (const void *from, size_t n_read, void *to, size_t n_write, int *flag)
{
  const uint64_t *x = (const uint64_t *) from;
  uint64_t *y = (uint64_t *) to, folded = 0;
  size_t nx = n_read / 8, ny = n_write / 8, both = std::min (nx, ny);
  KB_CHECK (fault_of ("stream"));
  for (size_t i = 0; i < both; i++)
    y[i] = x[i];
  for (size_t i = both; i < nx; i++)
    folded |= x[i];
  for (size_t i = both; i < ny; i++)
    y[i] = i;
  *flag |= folded == 1; /* never, but the compiler cannot know */
}

/* ---- ops of a plan ---- */

const char *
product_library ()
{
  return "own";
}

bool
streams_are_own ()
{
  return true;
}

static std::string
problem_of (const PlanKernel &k)
{
  if (k.impl == Impl::ATTENTION || k.impl == Impl::ATTENTION_BWD)
    return "the host has no flash attention (\"" + k.name + "\"): take the job with --attention unfused";
  if (k.impl == Impl::GEMM && k.dtype != "bf16")
    return "the host's products are of bf16; \"" + k.name + "\" is of " + k.dtype;
  return "";
}

void
adapt_plan (Plan &plan, std::string *ret_problem)
{
  for (PlanKernel &k : plan.kernels) {
    if (std::string problem = problem_of (k); !problem.empty ())
      *ret_problem = problem;
    if (k.impl != Impl::GEMM && k.impl != Impl::MEMSET && k.impl != Impl::SPIN)
      k.impl = Impl::STREAM;
  }
  for (PlanOp &op : plan.ops)
    if (op.kernel >= 0 && op.recorded_ps == 0)
      op.operands = operands_of (plan.kernels[(size_t) op.kernel]);
}

static std::function<void ()>
gemm_launch (const PlanKernel &k, const PlanOp &op, const PlanMemory &memory)
{
  HostGemm gemm = { k.m, k.n, k.k, k.batch, k.layout == "TN" ? "TN" : k.layout == "NN" ? "NN" : "NT", k.accumulates,
                    1 / std::sqrt ((float) k.k) };
  auto a = memory.at<__nv_bfloat16> (op.operands[0]), b = memory.at<__nv_bfloat16> (op.operands[1]);
  void *c = memory.at<void> (op.operands[2]);
  return [=] { host_gemm (gemm, a, b, c); };
}

static std::function<void ()>
copy_launch (const PlanOp &op, const PlanMemory &memory)
{
  void *host = memory.host (), *device = memory.copied ();
  bool is_up = op.to_device;
  return [=, n = (size_t) op.bytes] { KB_CHECK (cudaMemcpy (is_up ? device : host, is_up ? host : device, n, cudaMemcpyHostToDevice)); };
}

static void
spin (uint64_t ps)
{
  auto until = std::chrono::steady_clock::now () + std::chrono::nanoseconds (ps / 1000);
  while (std::chrono::steady_clock::now () < until)
    ;
}

std::function<void ()>
make_launch (const Plan &plan, const PlanOp &op, const PlanMemory &memory, cudaStream_t)
{
  if (op.kind == OpKind::COPY)
    return copy_launch (op, memory);
  if (op.kernel < 0 || op.recorded_ps > 0)
    return [ps = op.recorded_ps] { spin (ps); };
  const PlanKernel &k = plan.kernels[(size_t) op.kernel];
  if (k.impl == Impl::GEMM)
    return gemm_launch (k, op, memory);
  if (k.impl == Impl::MEMSET)
    return [y = memory.at<uint8_t> (op.operands[0]), n = (size_t) op.operands[0].bytes] { KB_CHECK (cudaMemset (y, 0, n)); };
  const Operand &in = op.operands[0], &out = op.operands[1];
  return [from = memory.at<void> (in), to = memory.at<void> (out), n_read = (size_t) in.bytes, n_write = (size_t) out.bytes,
          flag = memory.flag ()] { host_stream (from, n_read, to, n_write, flag); };
}

/* ---- groups ---- */

static constexpr int n_launches = 7;
static constexpr double case_s = 0.2;

/* One generator for all: what is random here is not what is measured. */
static std::mt19937_64 &
generator (uint64_t seed)
{
  static std::mt19937_64 g;
  g.seed (seed);
  return g;
}

void
fill_normal (cudaStream_t, float *x, size_t n, float deviation, uint64_t seed)
{
  std::normal_distribution<float> draw (0, deviation);
  auto &g = generator (seed);
  for (size_t i = 0; i < n; i++)
    x[i] = i < 4096 ? draw (g) : x[i - 4096];
}

void
fill_normal (cudaStream_t, __nv_bfloat16 *x, size_t n, float deviation, uint64_t seed)
{
  std::normal_distribution<float> draw (0, deviation);
  auto &g = generator (seed);
  for (size_t i = 0; i < n; i++)
    x[i] = i < 4096 ? __nv_bfloat16 (draw (g)) : x[i - 4096];
}

void
fill_ids (cudaStream_t, int *ids, size_t n, int n_words, uint64_t seed)
{
  auto &g = generator (seed);
  for (size_t i = 0; i < n; i++)
    ids[i] = (int) (g () % (uint64_t) n_words);
}

void
read_all (cudaStream_t, const unsigned *x, size_t n, int)
{
  int flag = 0;
  host_stream (x, n * sizeof *x, nullptr, 0, &flag);
}

cudaError_t
find_code ()
{
  return cudaSuccess;
}

void
describe_software (Machine *machine)
{
  machine->is_host = true;
  machine->driver = machine->cuda = "none: plain loops on the host";
}

/* ---- checks ---- */

static void
check_gemm (Checks &checks, const char *pass, const char *layout, bool accumulates)
{
  constexpr size_t m = 24, n = 40, k = 96, batch = 2;
  std::vector<__nv_bfloat16> a (batch * m * k), b (batch * k * n), c16 (batch * m * n);
  std::vector<float> c32 (batch * m * n, 1);
  fill_normal (nullptr, a.data (), a.size (), 1, 1);
  fill_normal (nullptr, b.data (), b.size (), 1, 2);
  void *c = accumulates ? (void *) c32.data () : (void *) c16.data ();
  host_gemm ({ m, n, k, batch, layout, accumulates, 1 }, a.data (), b.data (), c);
  std::vector<double> got, expected;
  for (size_t i = 0; i < batch * m * n; i++) {
    size_t which = i / (m * n), row = i / n % m, col = i % n;
    double sum = accumulates;
    for (size_t l = 0; l < k; l++)
      sum += (double) (float) a[which * m * k + (strcmp (layout, "NT") == 0 ? l * m + row : row * k + l)]
             * (double) (float) b[which * k * n + (strcmp (layout, "TN") == 0 ? col * k + l : l * n + col)];
    expected.push_back (sum);
    got.push_back (accumulates ? c32[i] : (float) c16[i]);
  }
  checks.expect_close (std::string ("gemm ") + pass + " bf16", got, expected, accumulates ? fp32_tolerance (k) : bf16_tolerance (k));
}

static void
check_stream (Checks &checks)
{
  std::vector<float> x (4096), y (4096, NAN);
  int flag = 0;
  fill_normal (nullptr, x.data (), x.size (), 1, 3);
  host_stream (x.data (), x.size () * sizeof (float), y.data (), y.size () * sizeof (float), &flag);
  checks.expect_close ("stream", std::vector<double> (y.begin (), y.end ()), std::vector<double> (x.begin (), x.end ()), 0);
}

void
check_all (Checks &checks, cudaStream_t, int)
{
  checks.run ({ "gemm forward bf16" }, [&] { check_gemm (checks, "forward", "TN", false); });
  checks.run ({ "gemm dgrad bf16" }, [&] { check_gemm (checks, "dgrad", "NN", false); });
  checks.run ({ "gemm wgrad16 bf16" }, [&] { check_gemm (checks, "wgrad16", "NT", false); });
  checks.run ({ "gemm wgrad bf16" }, [&] { check_gemm (checks, "wgrad", "NT", true); });
  checks.run ({ "stream", "copy", "add", "adam", "grad-norm" }, [&] { check_stream (checks); });
}

/* ---- groups ---- */

static const struct {
  size_t n, k;
} layers[] = {
  { 128, 128 }, { 192, 256 }, { 256, 192 }, { 320, 128 }, { 256, 384 }, { 384, 256 }, { 512, 192 }, { 192, 512 }, { 384, 384 }, { 448, 320 },
  { 160, 160 }, { 128, 320 }, { 320, 320 }, { 512, 256 },
};

static const struct {
  const char *name, *layout;
  bool accumulates;
} passes[] = {
  { "forward", "TN", false }, { "dgrad", "NN", false }, { "wgrad", "NT", true },
};

namespace {

struct Operands {
  Buffer<__nv_bfloat16> a, b;
  Buffer<float> c;

  explicit Operands (size_t n) : a (n), b (n), c (n)
  {
    fill_normal (nullptr, a.get (), n, 1, 10);
    fill_normal (nullptr, b.get (), n, 1, 11);
    KB_CHECK (cudaMemset (c.get (), 0, n * sizeof (float)));
  }
};

}

static void
bench_gemm (Bench &bench)
{
  std::unique_ptr<Operands> operands;
  for (size_t m : { 96, 384 })
    for (const auto &layer : layers)
      for (const auto &pass : passes) {
        HostGemm gemm = { m, layer.n, layer.k, 1, pass.layout, pass.accumulates, 1 };
        double elements = (double) (m * layer.k + layer.k * layer.n), out = (double) (m * layer.n);
        Row row { "gemm-isolated", pass.name, format ("%zux%zux%zu", m, layer.n, layer.k), "bf16",
                  2 * elements + (pass.accumulates ? 8 : 2) * out, 2 * out * (double) layer.k };
        row.note = format ("layout=%s%s", pass.layout, pass.accumulates ? " out=fp32-accumulate" : "");
        bench.measure (row, case_s, [&] (Row &) {
          if (!operands)
            operands = std::make_unique<Operands> (1u << 18);
          return bench.isolated ([&] { host_gemm (gemm, operands->a.get (), operands->b.get (), operands->c.get ()); }, n_launches);
        });
      }
}

/* Bytes of an element, and how many of them are written, as the simulator counts them. */
static const struct {
  const char *name, *dtype;
  double bytes, written;
} streams[] = {
  { "copy", "bf16", 4, 2 }, { "add", "bf16", 6, 2 }, { "adam", "fp32", 28, 12 }, { "grad-norm", "fp32", 4, 0 },
};

void
bench_streams (Bench &bench)
{
  std::unique_ptr<Buffer<uint8_t>> from, to;
  int flag = 0;
  constexpr size_t rows[] = { 96, 256, 512, 768 }, cols = 1024;
  for (const auto &s : streams)
    for (size_t m : rows) {
      double n = (double) (m * cols);
      Row row { "streams", s.name, format ("%zux%zu", m, cols), s.dtype, n * s.bytes };
      bench.measure (row, case_s, [&] (Row &) {
        if (!to) {
          from = std::make_unique<Buffer<uint8_t>> (28 * 768 * cols);
          to = std::make_unique<Buffer<uint8_t>> (28 * 768 * cols);
          KB_CHECK (cudaMemset (from->get (), 1, from->size ()));
          KB_CHECK (cudaMemset (to->get (), 1, to->size ()));
        }
        size_t n_written = (size_t) (n * s.written), n_read = (size_t) row.bytes - n_written;
        return bench.isolated ([&] { host_stream (from->get (), n_read, to->get (), n_written, &flag); }, n_launches);
      });
    }
}

/* Two marks of the clock with nothing between them. */
void
bench_host (Bench &bench)
{
  bench.measure ({ "host", "event-pair", "1x1", "none" }, case_s, [&] (Row &) { return bench.isolated ([] {}, n_launches); });
}

const Group groups[] = {
  { "host", bench_host },
  { "streams", bench_streams },
  { "gemm-isolated", bench_gemm },
  { nullptr, nullptr },
};

}
