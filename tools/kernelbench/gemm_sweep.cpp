/* GEMMs of training, isolated and sustained. */
#include <algorithm>

#include "bench.h"
#include "gemm.h"
#include "ops.h"

namespace kb {

static constexpr int max_sets = 4;       /* of operands, in the sustained runs           */
static constexpr double isolated_s = 0.3; /* that one product takes at most              */
static constexpr double sustained_s = 3;
static constexpr double small_work_l2 = 4; /* operands of more L2s than this need no sets */
static constexpr float weight_deviation = 0.02f; /* Megatron-LM's init_method_std         */

namespace {

struct Layer {
  int n, k;
};

struct Named {
  const char *name;
  Pass pass;
};

/* Operands and a result for any product up to the given sizes, random normal. */
class Operands {
public:
  Operands (size_t left, size_t right, size_t out_bytes) : left_ (left), right_ (right), out_ (out_bytes) {}

  void fill (Number number, cudaStream_t stream)
  {
    if (left_.size () == 0)
      return;
    fill_side (number, stream, left_, weight_deviation, 10);
    fill_side (number, stream, right_, 1, 11);
    KB_CHECK (cudaMemsetAsync (out_.get (), 0, out_.size (), stream));
  }

  /* How many disjoint sets of operands fit. */
  int n_sets (const Gemm &g, size_t l2_bytes) const
  {
    if (g.bytes () > small_work_l2 * (double) l2_bytes)
      return 1;
    size_t fit = std::min ({ left_.size () / (g.left_size () * g.element_bytes ()),
                             right_.size () / (g.right_size () * g.element_bytes ()),
                             out_.size () / (g.out_size () * g.out_element_bytes ()) });
    return (int) std::min (fit, (size_t) max_sets);
  }

  void run (Gemm &g, cudaStream_t stream, int set) const
  {
    g.run (stream, left_.get () + set * g.left_size () * g.element_bytes (),
           right_.get () + set * g.right_size () * g.element_bytes (),
           out_.get () + set * g.out_size () * g.out_element_bytes ());
  }

private:
  template <typename T> static void
  fill_as (cudaStream_t stream, const Buffer<uint8_t> &side, float deviation, uint64_t seed)
  {
    fill_normal (stream, reinterpret_cast<T *> (side.get ()), side.size () / sizeof (T), deviation, seed);
  }

  /* e4m3 is coarse below 2^-6: scaled to deviation 1, as a framework's scale would. */
  static void fill_side (Number number, cudaStream_t stream, const Buffer<uint8_t> &side, float deviation, uint64_t seed)
  {
    switch (number) {
    case Number::BF16: return fill_as<__nv_bfloat16> (stream, side, deviation, seed);
    case Number::FP16: return fill_as<half> (stream, side, deviation, seed);
    case Number::FP8: return fill_as<__nv_fp8_e4m3> (stream, side, 1, seed);
    case Number::FP32:
    case Number::TF32: return fill_as<float> (stream, side, deviation, seed);
    }
  }

  Buffer<uint8_t> left_, right_, out_;
};

}

/* QKV, projection, first and second MLP layer on one of 8 tensor-parallel ranks, of
 * hidden sizes 6144, 12288 and 20480 (where the QKV of 128 heads is left out). */
static const Layer layers[] = {
  { 2304, 6144 }, { 6144, 768 }, { 3072, 6144 }, { 6144, 3072 },
  { 4608, 12288 }, { 12288, 1536 }, { 6144, 12288 }, { 12288, 6144 },
  { 20480, 2560 }, { 10240, 20480 }, { 20480, 10240 },
};

static const Named passes[] = {
  { "forward", Pass::FORWARD }, { "dgrad", Pass::DGRAD }, { "wgrad", Pass::WGRAD }, { "wgrad16", Pass::WGRAD16 },
};

static const int tokens[] = { 2048, 8192 };
static constexpr int max_tokens = 8192;

static Operands
operands_for_all (const Bench &bench)
{
  size_t weight = 20480ull * 10240 * sizeof (float), activation = 20480ull * max_tokens * sizeof (float);
  if (bench.is_dry ())
    return Operands (0, 0, 0);
  return Operands (weight, activation, weight);
}

static std::string
pass_note (const Gemm &gemm, Pass pass)
{
  return format ("layout=%s%s", gemm.layout (), pass == Pass::WGRAD ? " out=fp32-accumulate" : "");
}

static void
measure_isolated (Bench &bench, const Operands &operands, const char *group, const Named &named, Number number,
                  const GemmShape &shape, const char *more = "")
{
  Gemm gemm (named.pass, number, shape);
  Row row = gemm.row (group, named.name);
  row.note = pass_note (gemm, named.pass) + more;
  bench.measure (row, isolated_s, [&] (Row &) {
    return bench.isolated ([&] { operands.run (gemm, bench.stream (), 0); });
  });
}

/* Only 16-bit numbers are written by a weight gradient as they are; the slow formats are
 * measured with the fewer tokens. */
static bool
has_case (const Named &named, Number number, int m)
{
  bool is_half = number == Number::FP16 || number == Number::BF16;
  return (is_half || named.pass != Pass::WGRAD16) && (is_half || number == Number::FP8 || m == tokens[0]);
}

void
bench_gemm_isolated (Bench &bench)
{
  Operands operands = operands_for_all (bench);
  for (Number number : { Number::BF16, Number::FP16, Number::FP8, Number::TF32, Number::FP32 }) {
    if (bench.capability () < gemm_capability (number))
      continue;
    operands.fill (number, bench.stream ());
    bench.wake_up ();
    for (int m : tokens)
      for (const Layer &layer : layers)
        for (const Named &named : passes)
          if (has_case (named, number, m))
            measure_isolated (bench, operands, "gemm-isolated", named, number, GemmShape { m, layer.n, layer.k });
  }
}

/* Unfused attention of 4 sequences of 2048 tokens and 6 heads, and of 1 of 12 heads; the
 * experts of an MoE layer: 4 of width 4096 and 14336 with 512 tokens each, 64 of width 2048 with 128. */
static const struct {
  const char *scores, *gradient;
  GemmShape shape;
} batches[] = {
  { "scores-bmm", "dk-bmm", { 2048, 2048, 128, 24 } }, { "scores-bmm", "dk-bmm", { 2048, 2048, 128, 12 } },
  { "scores-bmm", "dk-bmm", { 4096, 4096, 128, 8 } },  { "expert-fc1", "expert-fc1-wgrad", { 512, 14336, 4096, 4 } },
  { "expert-fc2", "expert-fc2-wgrad", { 512, 4096, 14336, 4 } }, { "expert-fc1", "expert-fc1-wgrad", { 128, 2048, 2048, 64 } },
};

void
bench_gemm_batched (Bench &bench)
{
  Operands operands = operands_for_all (bench);
  for (Number number : { Number::BF16, Number::FP16 }) {
    if (bench.capability () < gemm_capability (number))
      continue;
    operands.fill (number, bench.stream ());
    bench.wake_up ();
    for (const auto &b : batches) {
      GemmShape views = b.shape;
      views.interleaved = true;
      measure_isolated (bench, operands, "gemm-batched", Named { b.scores, Pass::FORWARD }, number, b.shape);
      measure_isolated (bench, operands, "gemm-batched", Named { b.scores, Pass::FORWARD }, number, views, " operands=interleaved");
      measure_isolated (bench, operands, "gemm-batched", Named { b.scores, Pass::DGRAD }, number, b.shape);
      measure_isolated (bench, operands, "gemm-batched", Named { b.gradient, Pass::WGRAD16 }, number, b.shape);
    }
  }
}

static void
measure_sustained (Bench &bench, const Operands &operands, const Named &named, Number number, const GemmShape &shape)
{
  Gemm gemm (named.pass, number, shape);
  Row row = gemm.row ("gemm-sustained", named.name);
  row.note = pass_note (gemm, named.pass);
  bench.measure (row, sustained_s + isolated_s, [&] (Row &measured) {
    Conditions loaded;
    double burst = bench.isolated ([&] { operands.run (gemm, bench.stream (), 0); }).us;
    int n_sets = operands.n_sets (gemm, bench.l2_bytes ());
    auto launch = [&] (int i) { operands.run (gemm, bench.stream (), i % n_sets); };
    Timing time = bench.sustained (launch, sustained_s, &loaded);
    measured.note += format (" isolated_us=%.3f ratio=%.4f operand_sets=%d ", burst, time.us / burst, n_sets) + conditions_note (loaded);
    return time;
  });
}

/* What one sustained run is made of; the most telling first, for the time may end. */
namespace {

struct Choice {
  Number number;
  int m;
  Named pass;
  int first, n; /* layers */
};

}

static const Choice choices[] = {
  { Number::BF16, 2048, passes[0], 4, 7 },  /* hidden 12288 and 20480, forward            */
  { Number::BF16, 8192, passes[0], 0, 4 },  /* hidden 6144                                */
  { Number::BF16, 2048, passes[1], 7, 1 },  /* the other passes of two of these           */
  { Number::BF16, 2048, passes[2], 7, 1 },
  { Number::BF16, 2048, passes[1], 10, 1 },
  { Number::BF16, 2048, passes[2], 10, 1 },
  { Number::FP16, 2048, passes[0], 6, 2 },   /* the other type                             */
  { Number::FP16, 2048, passes[0], 10, 1 },
  { Number::BF16, 2048, passes[0], 0, 4 },  /* hidden 6144 with one sequence              */
  { Number::BF16, 8192, passes[0], 10, 1 }, /* the largest                                */
  { Number::FP8, 2048, passes[0], 10, 1 },
  { Number::FP8, 8192, passes[0], 10, 1 },
};

void
bench_gemm_sustained (Bench &bench)
{
  Operands operands = operands_for_all (bench);
  const Number *filled = nullptr;
  for (const Choice &c : choices) {
    if (bench.capability () < gemm_capability (c.number))
      continue;
    if (!filled || c.number != *filled)
      operands.fill (*(filled = &c.number), bench.stream ());
    for (int i = c.first; i < c.first + c.n; i++)
      measure_sustained (bench, operands, c.pass, c.number, GemmShape { c.m, layers[i].n, layers[i].k });
  }
}

}
