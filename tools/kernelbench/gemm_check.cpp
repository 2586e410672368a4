/* The three products, batched, in all number formats, against a double-precision reference
 * written from the definition in gemm.h, row-major. */
#include "bench.h"
#include "compare.h"
#include "gemm.h"

namespace kb {

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
