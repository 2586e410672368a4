/* The three products, batched, in both types, against a double-precision reference
 * written from the definition in gemm.cuh, row-major. */
#include "compare.cuh"
#include "gemm.cuh"

namespace kb {

static constexpr GemmShape shape = { 96, 160, 224, 2 };
static constexpr size_t m = 96, n = 160, k = 224, batch = 2;

using Vector = std::vector<double>;

/* out[i,j] += sum over l of left (i, l) right (l, j) */
template <typename Left, typename Right> static void
multiply (Vector &out, size_t offset, size_t rows, size_t cols, size_t inner, const Left &left, const Right &right)
{
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < cols; j++) {
      double sum = 0;
      for (size_t l = 0; l < inner; l++)
        sum += left (i, l) * right (l, j);
      out[offset + i * cols + j] += sum;
    }
}

static void
add_reference (Pass pass, Vector &out, const Vector &left, const Vector &right)
{
  for (size_t b = 0; b < batch; b++) {
    const double *l = &left[b * left.size () / batch], *r = &right[b * right.size () / batch];
    size_t offset = b * out.size () / batch;
    if (pass == Pass::FORWARD) /* X W^T: W is left, X is right */
      multiply (out, offset, m, n, k, [&] (size_t i, size_t a) { return r[i * k + a]; },
                [&] (size_t a, size_t j) { return l[j * k + a]; });
    else if (pass == Pass::DGRAD) /* dY W */
      multiply (out, offset, m, k, n, [&] (size_t i, size_t a) { return r[i * n + a]; },
                [&] (size_t a, size_t j) { return l[a * k + j]; });
    else /* dY^T X: X is left, dY is right */
      multiply (out, offset, n, k, m, [&] (size_t i, size_t a) { return r[a * n + i]; },
                [&] (size_t a, size_t j) { return l[a * k + j]; });
  }
}

template <typename T, typename Out> static void
check_pass (cudaStream_t stream, Pass pass, const char *name, cudaDataType_t type, double tolerance)
{
  Gemm gemm (pass, type, shape);
  Buffer<T> left = random_normal<T> (stream, gemm.left_size (), 200), right = random_normal<T> (stream, gemm.right_size (), 201);
  Buffer<Out> out = poisoned<Out> (gemm.out_size ());
  Vector reference (gemm.out_size (), 0);

  if (pass == Pass::WGRAD) {
    out = random_normal<Out> (stream, gemm.out_size (), 202, 10);
    reference = download (stream, out);
  }
  add_reference (pass, reference, download (stream, left), download (stream, right));
  gemm.run (stream, left.get (), right.get (), out.get ());
  expect_close (format ("gemm %s %s", name, type_name (type)).c_str (), download (stream, out), reference, tolerance);
}

template <typename T> static void
check_type (cudaStream_t stream, cudaDataType_t type, double tolerance)
{
  check_pass<T, T> (stream, Pass::FORWARD, "forward", type, tolerance);
  check_pass<T, T> (stream, Pass::DGRAD, "dgrad", type, tolerance);
  check_pass<T, float> (stream, Pass::WGRAD, "wgrad", type, fp32_tolerance);
  check_pass<T, T> (stream, Pass::WGRAD16, "wgrad16", type, tolerance);
}

int
check_gemm (cudaStream_t stream)
{
  n_failed_checks = 0;
  check_type<__nv_bfloat16> (stream, CUDA_R_16BF, bf16_tolerance);
  check_type<half> (stream, CUDA_R_16F, fp16_tolerance);
  return n_failed_checks;
}

}
