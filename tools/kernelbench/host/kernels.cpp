#include "kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "../failure.h"
#include "fault.h"

namespace kb {

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

void
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

void
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

}
