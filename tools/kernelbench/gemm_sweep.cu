/* GEMMs of training, isolated and sustained. */
#include <algorithm>

#include "bench.cuh"
#include "gemm.cuh"
#include "ops.cuh"

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

  void fill (cudaDataType_t type, cudaStream_t stream)
  {
    if (left_.size () == 0)
      return;
    fill_side (type, stream, left_, weight_deviation, 10);
    fill_side (type, stream, right_, 1, 11);
    KB_CHECK (cudaMemsetAsync (out_.get (), 0, out_.size (), stream));
  }

  /* How many disjoint sets of operands fit. */
  int n_sets (const Gemm &g, size_t l2_bytes) const
  {
    if (g.bytes () > small_work_l2 * (double) l2_bytes)
      return 1;
    size_t fit = std::min ({ left_.size () / g.left_size (), right_.size () / g.right_size (),
                             out_.size () / (g.out_size () * g.out_element_bytes ()) });
    return (int) std::min (fit, (size_t) max_sets);
  }

  void run (Gemm &g, cudaStream_t stream, int set) const
  {
    g.run (stream, left_.get () + set * g.left_size (), right_.get () + set * g.right_size (),
           out_.get () + set * g.out_size () * g.out_element_bytes ());
  }

private:
  static void fill_side (cudaDataType_t type, cudaStream_t stream, const Buffer<half> &side, float deviation, uint64_t seed)
  {
    if (type == CUDA_R_16BF)
      fill_normal (stream, reinterpret_cast<__nv_bfloat16 *> (side.get ()), side.size (), deviation, seed);
    else
      fill_normal (stream, side.get (), side.size (), deviation, seed);
  }

  Buffer<half> left_, right_; /* either 16-bit type */
  Buffer<uint8_t> out_;
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
  size_t weight = 20480ull * 10240, activation = 20480ull * max_tokens;
  if (bench.is_dry ())
    return Operands (0, 0, 0);
  return Operands (weight, activation, weight * sizeof (float));
}

static std::string
pass_note (Pass pass)
{
  return format ("layout=%s%s", layout_name (pass), pass == Pass::WGRAD ? " out=fp32-accumulate" : "");
}

static void
measure_isolated (Bench &bench, const Operands &operands, const Named &named, cudaDataType_t type, const GemmShape &shape)
{
  Gemm gemm (named.pass, type, shape);
  Row row = gemm.row ("gemm-isolated", named.name);
  row.note = pass_note (named.pass);
  if (!bench.skips (row, isolated_s))
    bench.add (row, bench.isolated ([&] { operands.run (gemm, bench.stream (), 0); }));
}

void
bench_gemm_isolated (Bench &bench)
{
  Operands operands = operands_for_all (bench);
  for (cudaDataType_t type : { CUDA_R_16BF, CUDA_R_16F }) {
    operands.fill (type, bench.stream ());
    bench.wake_up ();
    for (int m : tokens)
      for (const Layer &layer : layers)
        for (const Named &named : passes)
          measure_isolated (bench, operands, named, type, GemmShape { m, layer.n, layer.k });
  }
}

static void
measure_sustained (Bench &bench, const Operands &operands, const Named &named, cudaDataType_t type, const GemmShape &shape)
{
  Gemm gemm (named.pass, type, shape);
  Row row = gemm.row ("gemm-sustained", named.name);
  row.note = pass_note (named.pass);
  if (bench.skips (row, sustained_s + isolated_s))
    return;
  GpuState state;
  int n_sets = operands.n_sets (gemm, bench.l2_bytes ());
  auto launch = [&] (int i) { operands.run (gemm, bench.stream (), i % n_sets); };
  Timing time = bench.sustained (launch, sustained_s, &state);
  row.note += format (" operand_sets=%d ", n_sets) + state_note (state);
  bench.add (row, time);
}

/* What one sustained run is made of; the most telling first, for the time may end. */
namespace {

struct Choice {
  cudaDataType_t type;
  int m;
  Named pass;
  int first, n; /* layers */
};

}

static const Choice choices[] = {
  { CUDA_R_16BF, 2048, passes[0], 4, 7 },  /* hidden 12288 and 20480, forward            */
  { CUDA_R_16BF, 8192, passes[0], 0, 4 },  /* hidden 6144                                */
  { CUDA_R_16BF, 2048, passes[1], 7, 1 },  /* the other passes of two of these           */
  { CUDA_R_16BF, 2048, passes[2], 7, 1 },
  { CUDA_R_16BF, 2048, passes[1], 10, 1 },
  { CUDA_R_16BF, 2048, passes[2], 10, 1 },
  { CUDA_R_16F, 2048, passes[0], 6, 2 },   /* the other type                             */
  { CUDA_R_16F, 2048, passes[0], 10, 1 },
  { CUDA_R_16BF, 2048, passes[0], 0, 4 },  /* hidden 6144 with one sequence              */
  { CUDA_R_16BF, 8192, passes[0], 10, 1 }, /* the largest                                */
};

void
bench_gemm_sustained (Bench &bench)
{
  Operands operands = operands_for_all (bench);
  cudaDataType_t filled = CUDA_R_32F;
  for (const Choice &c : choices) {
    if (c.type != filled)
      operands.fill (filled = c.type, bench.stream ());
    for (int i = c.first; i < c.first + c.n; i++)
      measure_sustained (bench, operands, c.pass, c.type, GemmShape { c.m, layers[i].n, layers[i].k });
  }
}

}
