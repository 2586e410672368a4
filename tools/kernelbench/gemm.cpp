#include "gemm.h"

#include <algorithm>
#include <map>

#include <cublasLt.h>

#include "compare.h"
#include "ops.h"

namespace kb {

static void
check (cublasStatus_t status, const char *call, const char *file, int line)
{
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Failure (format ("%s:%d: %s: %s", file, line, call, cublasLtGetStatusString (status)));
}

#define BLAS_CHECK(call) check ((call), #call, "gemm.cpp", __LINE__)

static constexpr size_t workspace_bytes = 32u << 20;

namespace {

/* The handle lives as long as the program. Each concurrent stream needs a workspace of
 * its own, made by its first product. */
struct Blas {
  cublasLtHandle_t handle = nullptr;
  std::map<cudaStream_t, Buffer<uint8_t>> workspaces;
  Blas () { BLAS_CHECK (cublasLtCreate (&handle)); }
  uint8_t *workspace (cudaStream_t stream)
  {
    auto found = workspaces.find (stream);
    if (found == workspaces.end ())
      found = workspaces.emplace (stream, Buffer<uint8_t> (workspace_bytes)).first;
    return found->second.get ();
  }
};

}

static Blas &
blas ()
{
  static Blas *instance = new Blas;
  return *instance;
}

struct Gemm::Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm;

  ~Plan ()
  {
    for (cublasLtMatrixLayout_t layout : { left, right, out })
      if (layout)
        cublasLtMatrixLayoutDestroy (layout);
    if (product)
      cublasLtMatmulDescDestroy (product);
  }
};

static const struct {
  const char *name;
  size_t bytes;
  cudaDataType_t type, out_type;
  cublasComputeType_t compute;
  int capability;
} numbers[] = { /* in the order of Number */
  { "fp32", 4, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0 },
  { "tf32", 4, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 80 },
  { "fp16", 2, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 70 },
  { "bf16", 2, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 80 },
  { "fp8", 1, CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 89 },
};

int
gemm_capability (Number number)
{
  return numbers[(int) number].capability;
}

const char *
number_name (Number number)
{
  return numbers[(int) number].name;
}

size_t
element_bytes (Number number)
{
  return numbers[(int) number].bytes;
}

Gemm::Gemm (Pass pass, Number number, const GemmShape &s)
  : transposes_left_ (pass == Pass::FORWARD || number == Number::FP8),
    transposes_right_ ((pass == Pass::WGRAD || pass == Pass::WGRAD16) && number != Number::FP8),
    accumulates_ (pass == Pass::WGRAD), batch_ (s.batch), interleaved_ (s.interleaved), number_ (number),
    out_type_ (accumulates_ ? CUDA_R_32F : numbers[(int) number].out_type)
{
  rows_ = pass == Pass::FORWARD ? s.n : s.k;
  cols_ = pass == Pass::WGRAD || pass == Pass::WGRAD16 ? s.n : s.m;
  inner_ = pass == Pass::FORWARD ? s.k : pass == Pass::DGRAD ? s.n : s.m;
}

const char *
Gemm::layout () const
{
  return transposes_left_ ? "TN" : transposes_right_ ? "NT" : "NN";
}

double
Gemm::flops () const
{
  return 2.0 * rows_ * cols_ * inner_ * batch_;
}

double
Gemm::bytes () const
{
  double out_passes = accumulates_ ? 2 : 1;
  return (double) (element_bytes () * (left_size () + right_size ()))
    + out_passes * (double) (out_element_bytes () * out_size ());
}

/* The shape is that of the row-major result: rows x columns x inner. */
Row
Gemm::row (const char *group, const char *name) const
{
  std::string shape = format ("%dx%dx%d", cols_, rows_, inner_);
  if (batch_ > 1)
    shape = format ("%d*", batch_) + shape;
  Row row { group, name, shape, number_name (number_), bytes (), flops () };
  row.implementation = "cublaslt";
  return row;
}

static cublasLtMatrixLayout_t
new_layout (cudaDataType_t type, int rows, int cols, int batch, bool interleaved)
{
  cublasLtMatrixLayout_t layout;
  int64_t stride = interleaved ? rows : (int64_t) rows * cols;
  BLAS_CHECK (cublasLtMatrixLayoutCreate (&layout, type, rows, cols, interleaved ? (int64_t) rows * batch : rows));
  BLAS_CHECK (cublasLtMatrixLayoutSetAttribute (layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  BLAS_CHECK (cublasLtMatrixLayoutSetAttribute (layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return layout;
}

template <typename T> static void
set (cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, T value)
{
  BLAS_CHECK (cublasLtMatmulDescSetAttribute (product, attribute, &value, sizeof value));
}

static cublasLtMatmulAlgo_t
choose_algorithm (cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t left, cublasLtMatrixLayout_t right,
                  cublasLtMatrixLayout_t out)
{
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t best;
  int n_found = 0;
  BLAS_CHECK (cublasLtMatmulPreferenceCreate (&preference));
  BLAS_CHECK (cublasLtMatmulPreferenceSetAttribute (preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &workspace_bytes, sizeof workspace_bytes));
  BLAS_CHECK (cublasLtMatmulAlgoGetHeuristic (blas ().handle, product, left, right, out, out, preference, 1, &best, &n_found));
  BLAS_CHECK (cublasLtMatmulPreferenceDestroy (preference));
  if (n_found == 0)
    throw Failure ("cublasLt knows no algorithm for this product");
  return best.algo;
}

void
Gemm::make_plan ()
{
  auto plan = std::make_shared<Plan> (); /* kept when it is whole */
  Plan &p = *plan;
  cudaDataType_t type = numbers[(int) number_].type;
  BLAS_CHECK (cublasLtMatmulDescCreate (&p.product, numbers[(int) number_].compute, CUDA_R_32F));
  set (p.product, CUBLASLT_MATMUL_DESC_TRANSA, transposes_left_ ? CUBLAS_OP_T : CUBLAS_OP_N);
  set (p.product, CUBLASLT_MATMUL_DESC_TRANSB, transposes_right_ ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (n_sms_ > 0)
    set (p.product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, n_sms_);
  p.left = transposes_left_ ? new_layout (type, inner_, rows_, batch_, interleaved_)
                            : new_layout (type, rows_, inner_, batch_, interleaved_);
  p.right = transposes_right_ ? new_layout (type, cols_, inner_, batch_, interleaved_)
                              : new_layout (type, inner_, cols_, batch_, interleaved_);
  p.out = new_layout (out_type_, rows_, cols_, batch_, false);
  p.algorithm = choose_algorithm (p.product, p.left, p.right, p.out);
  plan_ = plan;
}

/* The enumerators of cublasLtClusterShape_t that every version from 11.8 on has. */
static int
blocks_of (uint16_t shape)
{
  switch (shape) {
  case CUBLASLT_CLUSTER_SHAPE_1x1x1: return 1;
  case CUBLASLT_CLUSTER_SHAPE_2x1x1:
  case CUBLASLT_CLUSTER_SHAPE_1x2x1: return 2;
  case CUBLASLT_CLUSTER_SHAPE_4x1x1:
  case CUBLASLT_CLUSTER_SHAPE_1x4x1:
  case CUBLASLT_CLUSTER_SHAPE_2x2x1: return 4;
  case CUBLASLT_CLUSTER_SHAPE_8x1x1:
  case CUBLASLT_CLUSTER_SHAPE_1x8x1:
  case CUBLASLT_CLUSTER_SHAPE_4x2x1:
  case CUBLASLT_CLUSTER_SHAPE_2x4x1: return 8;
  case CUBLASLT_CLUSTER_SHAPE_4x4x1:
  case CUBLASLT_CLUSTER_SHAPE_8x2x1:
  case CUBLASLT_CLUSTER_SHAPE_2x8x1:
  case CUBLASLT_CLUSTER_SHAPE_16x1x1:
  case CUBLASLT_CLUSTER_SHAPE_1x16x1: return 16;
  default: return 0;
  }
}

int
Gemm::cluster_blocks () const
{
  uint16_t shape = CUBLASLT_CLUSTER_SHAPE_AUTO;
  size_t n = 0;
  bool is_known = plan_ && cublasLtMatmulAlgoConfigGetAttribute (&plan_->algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &shape, sizeof shape, &n)
                             == CUBLAS_STATUS_SUCCESS;
  return is_known ? blocks_of (shape) : 0;
}

void
Gemm::run (cudaStream_t stream, const void *left, const void *right, void *out, float alpha)
{
  if (!plan_)
    make_plan ();
  float beta = accumulates_ ? 1 : 0;
  BLAS_CHECK (cublasLtMatmul (blas ().handle, plan_->product, &alpha, left, plan_->left, right, plan_->right, &beta, out,
                            plan_->out, out, plan_->out, &plan_->algorithm, blas ().workspace (stream), workspace_bytes,
                            stream));
}

/* ---- the cases ---- */

/* GEMMs of training, isolated and sustained. */

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

/* ---- against the reference ---- */

/* The three products, batched, in all number formats, against a double-precision reference
 * written from the definition in gemm.h, row-major. */

static constexpr GemmShape shape = { 96, 160, 224, 2 };
static constexpr size_t m = 96, n = 160, k = 224, batch = 2;

static void
add_reference (Pass pass, Vector &out, const Vector &left, const Vector &right)
{
  for (size_t b = 0; b < batch; b++) {
    const double *l = &left[b * left.size () / batch], *r = &right[b * right.size () / batch];
    size_t offset = b * out.size () / batch;
    if (pass == Pass::FORWARD) /* X W^T: W is left, X is right */
      add_product (out, offset, m, n, k, [&] (size_t i, size_t a) { return r[i * k + a]; },
                [&] (size_t a, size_t j) { return l[j * k + a]; });
    else if (pass == Pass::DGRAD) /* dY W */
      add_product (out, offset, m, k, n, [&] (size_t i, size_t a) { return r[i * n + a]; },
                [&] (size_t a, size_t j) { return l[a * k + j]; });
    else /* dY^T X: X is left, dY is right */
      add_product (out, offset, n, k, m, [&] (size_t i, size_t a) { return r[a * n + i]; },
                [&] (size_t a, size_t j) { return l[a * k + j]; });
  }
}

/* Number by number: fp8 operands lie as those of a forward pass of other dimensions. */
static void
add_fp8_reference (Pass pass, Vector &out, const Vector &left, const Vector &right)
{
  size_t rows = pass == Pass::WGRAD ? n : m, cols = pass == Pass::FORWARD ? n : k;
  size_t inner = pass == Pass::FORWARD ? k : pass == Pass::DGRAD ? n : m;
  add_product (out, 0, rows, cols, inner, [&] (size_t i, size_t a) { return right[i * inner + a]; },
               [&] (size_t a, size_t j) { return left[j * inner + a]; });
}

template <typename T, typename Out> static void
check_pass (Checks &checks, cudaStream_t stream, Pass pass, const char *name, Number number, double tolerance)
{
  GemmShape one = shape;
  one.batch = number == Number::FP8 ? 1 : one.batch;
  Gemm gemm (pass, number, one);
  Buffer<T> left = random_normal<T> (stream, gemm.left_size (), 200), right = random_normal<T> (stream, gemm.right_size (), 201);
  Buffer<Out> out = poisoned<Out> (gemm.out_size ());
  Vector reference (gemm.out_size (), 0);

  if (pass == Pass::WGRAD) {
    out = random_normal<Out> (stream, gemm.out_size (), 202, 10);
    reference = download (stream, out);
  }
  (number == Number::FP8 ? add_fp8_reference : add_reference) (pass, reference, download (stream, left), download (stream, right));
  gemm.run (stream, left.get (), right.get (), out.get ());
  checks.expect_close (format ("gemm %s %s", name, number_name (number)), download (stream, out), reference, tolerance);
}

/* Sums are of one of these dimensions; the largest counts. */
static constexpr size_t n_terms = k;

template <typename T, typename Out = T> static void
check_number (Checks &checks, cudaStream_t stream, Number number, double tolerance, double sum_tolerance)
{
  auto check = [&] (const char *name, auto of_pass) {
    checks.run ({ format ("gemm %s %s", name, number_name (number)) }, [&] { of_pass (name); });
  };
  check ("forward", [&] (const char *name) { check_pass<T, Out> (checks, stream, Pass::FORWARD, name, number, tolerance); });
  check ("dgrad", [&] (const char *name) { check_pass<T, Out> (checks, stream, Pass::DGRAD, name, number, tolerance); });
  check ("wgrad", [&] (const char *name) { check_pass<T, float> (checks, stream, Pass::WGRAD, name, number, sum_tolerance); });
  if (sizeof (T) == 2)
    check ("wgrad16", [&] (const char *name) { check_pass<T, Out> (checks, stream, Pass::WGRAD16, name, number, tolerance); });
}

/* Row i of matrix b is row i * batch + b of an operand. */
static void
check_interleaved (Checks &checks, cudaStream_t stream)
{
  GemmShape views = shape;
  views.interleaved = true;
  Gemm gemm (Pass::FORWARD, Number::BF16, views);
  auto left = random_normal<__nv_bfloat16> (stream, gemm.left_size (), 203);
  auto right = random_normal<__nv_bfloat16> (stream, gemm.right_size (), 204);
  auto out = poisoned<__nv_bfloat16> (gemm.out_size ());
  Vector l = download (stream, left), r = download (stream, right), reference (gemm.out_size (), 0);
  for (size_t b = 0; b < batch; b++)
    add_product (reference, b * m * n, m, n, k, [&] (size_t i, size_t a) { return r[(i * batch + b) * k + a]; },
                 [&] (size_t a, size_t j) { return l[(j * batch + b) * k + a]; });
  gemm.run (stream, left.get (), right.get (), out.get ());
  checks.expect_close ("gemm interleaved bf16", download (stream, out), reference, bf16_tolerance ());
}

/* Several tiles each way, so that persistent blocks go on to their next. */
static void
check_tiled (Checks &checks, cudaStream_t stream, const char *name, GemmBlocks blocks)
{
  constexpr size_t rows = 256, cols = 384, inner = 96;
  auto x = random_normal<__nv_bfloat16> (stream, rows * inner, 205), w = random_normal<__nv_bfloat16> (stream, cols * inner, 206);
  auto out = poisoned<__nv_bfloat16> (rows * cols);
  Vector l = download (stream, x), r = download (stream, w), reference (rows * cols, 0);
  add_product (reference, 0, rows, cols, inner, [&] (size_t i, size_t a) { return l[i * inner + a]; },
               [&] (size_t a, size_t j) { return r[j * inner + a]; });
  tiled_gemm (stream, blocks, 0, 4, (int) rows, (int) cols, (int) inner, x.get (), w.get (), out.get ());
  KB_CHECK_LAUNCH ();
  checks.expect_close (name, download (stream, out), reference, bf16_tolerance (inner));
}

static void
check_all_tiled (Checks &checks, cudaStream_t stream, int capability)
{
  static const struct {
    const char *name;
    GemmBlocks blocks;
    int capability;
  } ways[] = { { "gemm tiles", GemmBlocks::TILES, 80 }, { "gemm clusters", GemmBlocks::CLUSTERS, 90 }, { "gemm persistent", GemmBlocks::PERSISTENT, 80 } };
  for (const auto &way : ways)
    if (capability >= way.capability)
      checks.run ({ way.name }, [&] { check_tiled (checks, stream, way.name, way.blocks); });
}

void
check_gemm (Checks &checks, cudaStream_t stream, int capability)
{
  if (capability >= gemm_capability (Number::BF16))
    check_number<__nv_bfloat16> (checks, stream, Number::BF16, bf16_tolerance (n_terms), fp32_tolerance (n_terms));
  check_number<half> (checks, stream, Number::FP16, fp16_tolerance (n_terms), fp32_tolerance (n_terms));
  if (capability >= gemm_capability (Number::TF32))
    check_number<float> (checks, stream, Number::TF32, tf32_tolerance (n_terms), tf32_tolerance (n_terms));
  check_number<float> (checks, stream, Number::FP32, fp32_tolerance (n_terms), fp32_tolerance (n_terms));
  if (capability >= gemm_capability (Number::FP8))
    check_number<__nv_fp8_e4m3, __nv_bfloat16> (checks, stream, Number::FP8, bf16_tolerance () + fp8_tolerance (n_terms),
                                                fp8_tolerance (n_terms));
  if (capability >= gemm_capability (Number::BF16))
    checks.run ({ "gemm interleaved" }, [&] { check_interleaved (checks, stream); });
  check_all_tiled (checks, stream, capability);
}

}
