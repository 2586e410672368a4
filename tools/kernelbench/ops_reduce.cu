#include "ops_map.cuh"

namespace kb {

/* ---- sums ---- */

/* A block sums 64 columns, two per lane, over every 8th row of one of n_partials
 * ranges; its 8 warps then add up. */
static constexpr int lanes = 32;
static constexpr int warps = 8;
static constexpr int block_cols = 2 * lanes;

namespace {

/* What is summed: one value, or two per element. */
struct ColumnSum {
  static constexpr int n_sums = 1;
  const half *x;
  __device__ void add (float2 (&sum)[n_sums], size_t at, size_t) const
  {
    float2 v = __half22float2 (*reinterpret_cast<const half2 *> (x + at));
    sum[0] = { sum[0].x + v.x, sum[0].y + v.y };
  }
};

struct GammaBeta {
  static constexpr int n_sums = 2;
  const half *dy, *x;
  const float *mean, *rstd;
  __device__ void add (float2 (&sum)[n_sums], size_t at, size_t row) const
  {
    float2 d = __half22float2 (*reinterpret_cast<const half2 *> (dy + at));
    float2 v = __half22float2 (*reinterpret_cast<const half2 *> (x + at));
    float m = mean[row], r = rstd[row];
    sum[0] = { sum[0].x + d.x * (v.x - m) * r, sum[0].y + d.y * (v.y - m) * r };
    sum[1] = { sum[1].x + d.x, sum[1].y + d.y };
  }
};

}

/* partial[sum][range][col] */
template <typename F> static __global__ void
partial_kernel (F f, float *partial, unsigned rows, unsigned cols)
{
  __shared__ float2 of_warp[F::n_sums][warps][lanes];
  unsigned col = blockIdx.x * block_cols + 2 * threadIdx.x;
  unsigned per_range = (rows + n_partials - 1) / n_partials;
  unsigned first = blockIdx.y * per_range, end = min (rows, first + per_range);
  float2 sum[F::n_sums] = {};

#pragma unroll 8
  for (unsigned row = first + threadIdx.y; row < end; row += warps)
    f.add (sum, (size_t) row * cols + col, row);
  for (int s = 0; s < F::n_sums; s++)
    of_warp[s][threadIdx.y][threadIdx.x] = sum[s];
  __syncthreads ();
  if (threadIdx.y >= F::n_sums)
    return;
  float2 total = { 0, 0 };
  for (int w = 0; w < warps; w++) {
    float2 v = of_warp[threadIdx.y][w][threadIdx.x];
    total = { total.x + v.x, total.y + v.y };
  }
  size_t at = ((size_t) threadIdx.y * n_partials + blockIdx.y) * cols + col;
  *reinterpret_cast<float2 *> (partial + at) = total;
}

namespace {

struct SumPartials {
  const float *partial;
  half *out[2];
  unsigned cols;
  __device__ void operator() (unsigned i) const
  {
    unsigned sum = i / cols, col = i % cols;
    float total = 0;
    for (int range = 0; range < n_partials; range++)
      total += partial[((size_t) sum * n_partials + range) * cols + col];
    out[sum][col] = __float2half (total);
  }
};

}

template <typename F> static void
reduce_rows (cudaStream_t stream, const F &f, float *partial, half *out0, half *out1, size_t rows, size_t cols)
{
  dim3 grid ((unsigned) (cols / block_cols), n_partials);
  partial_kernel<<<grid, dim3 (lanes, warps), 0, stream>>> (f, partial, (unsigned) rows, (unsigned) cols);
  KB_CHECK_LAUNCH ();
  map (stream, F::n_sums * cols, SumPartials { partial, { out0, out1 }, (unsigned) cols });
}

void
layernorm_gamma_beta (cudaStream_t stream, const half *dy, const half *x, const float *mean, const float *rstd,
                      float *partial, half *dgamma, half *dbeta, size_t rows, size_t cols)
{
  reduce_rows (stream, GammaBeta { dy, x, mean, rstd }, partial, dgamma, dbeta, rows, cols);
}

void
column_sum (cudaStream_t stream, const half *x, float *partial, half *y, size_t rows, size_t cols)
{
  reduce_rows (stream, ColumnSum { x }, partial, y, nullptr, rows, cols);
}

static constexpr int square_threads = 512;

static __device__ float
sum_of_block (float x)
{
  __shared__ float of_warp[square_threads / 32];
  for (int offset = 16; offset > 0; offset /= 2)
    x += __shfl_xor_sync (0xffffffff, x, offset);
  if (threadIdx.x % 32 == 0)
    of_warp[threadIdx.x / 32] = x;
  __syncthreads ();
  float sum = 0;
  for (int i = 0; i < square_threads / 32; i++)
    sum += of_warp[i];
  return sum;
}

static __global__ void
squares_kernel (const float4 *x, size_t n4, float *partial)
{
  float sum = 0;
#pragma unroll 4
  for (size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x; i < n4; i += (size_t) gridDim.x * blockDim.x) {
    float4 v = x[i];
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  sum = sum_of_block (sum);
  if (threadIdx.x == 0)
    partial[blockIdx.x] = sum;
}

static __global__ void
partials_kernel (const float *partial, float *y)
{
  float sum = 0;
  for (int i = (int) threadIdx.x; i < n_square_partials; i += square_threads)
    sum += partial[i];
  sum = sum_of_block (sum);
  if (threadIdx.x == 0)
    *y = sum;
}

void
sum_squares (cudaStream_t stream, const float *x, float *partial, float *y, size_t n)
{
  squares_kernel<<<n_square_partials, square_threads, 0, stream>>> (reinterpret_cast<const float4 *> (x), n / 4, partial);
  KB_CHECK_LAUNCH ();
  partials_kernel<<<1, square_threads, 0, stream>>> (partial, y);
  KB_CHECK_LAUNCH ();
}

/* ---- softmax ---- */

static constexpr int warps_per_block = 4;
static constexpr int n_chunks = softmax_cols / (32 * 4); /* of four elements per lane */
static constexpr unsigned all_lanes = 0xffffffff;

struct alignas (8) Half4 {
  half2 pair[2];
};

static __device__ float
warp_sum (float x)
{
  for (int offset = 16; offset > 0; offset /= 2)
    x += __shfl_xor_sync (all_lanes, x, offset);
  return x;
}

static __device__ float
warp_max (float x)
{
  for (int offset = 16; offset > 0; offset /= 2)
    x = fmaxf (x, __shfl_xor_sync (all_lanes, x, offset));
  return x;
}

/* The lane's elements of a row: columns 128 c + 4 lane + e, c < n_chunks, e < 4;
 * `fill` from column n_valid on, where nothing is read. */
static __device__ void
load_row (float (&v)[n_chunks][4], const half *row, int lane, int n_valid, float fill)
{
#pragma unroll
  for (int c = 0; c < n_chunks; c++) {
    int col = 128 * c + 4 * lane;
    Half4 four = {};
    if (col < n_valid)
      four = *reinterpret_cast<const Half4 *> (row + col);
    float2 low = __half22float2 (four.pair[0]), high = __half22float2 (four.pair[1]);
    v[c][0] = col < n_valid ? low.x : fill;
    v[c][1] = col + 1 < n_valid ? low.y : fill;
    v[c][2] = col + 2 < n_valid ? high.x : fill;
    v[c][3] = col + 3 < n_valid ? high.y : fill;
  }
}

static __device__ void
store_row (const float (&v)[n_chunks][4], half *row, int lane)
{
#pragma unroll
  for (int c = 0; c < n_chunks; c++) {
    Half4 four = { { __floats2half2_rn (v[c][0], v[c][1]), __floats2half2_rn (v[c][2], v[c][3]) } };
    *reinterpret_cast<Half4 *> (row + 128 * c + 4 * lane) = four;
  }
}

static __global__ void
forward_kernel (const half *x, half *y, unsigned rows, float scale)
{
  unsigned row = blockIdx.x * warps_per_block + threadIdx.y;
  if (row >= rows)
    return;
  int lane = threadIdx.x, n_valid = (int) (row % softmax_cols) + 1;
  size_t at = (size_t) row * softmax_cols;
  float v[n_chunks][4], top = -INFINITY, sum = 0;

  load_row (v, x + at, lane, n_valid, -INFINITY);
#pragma unroll
  for (int i = 0; i < n_chunks * 4; i++)
    top = fmaxf (top, v[i / 4][i % 4]);
  top = warp_max (top);
#pragma unroll
  for (int i = 0; i < n_chunks * 4; i++) {
    v[i / 4][i % 4] = __expf (scale * (v[i / 4][i % 4] - top));
    sum += v[i / 4][i % 4];
  }
  float inverse = 1 / warp_sum (sum);
#pragma unroll
  for (int i = 0; i < n_chunks * 4; i++)
    v[i / 4][i % 4] *= inverse;
  store_row (v, y + at, lane);
}

static __global__ void
backward_kernel (const half *dy, const half *y, half *dx, unsigned rows, float scale)
{
  unsigned row = blockIdx.x * warps_per_block + threadIdx.y;
  if (row >= rows)
    return;
  int lane = threadIdx.x, n_valid = (int) (row % softmax_cols) + 1;
  size_t at = (size_t) row * softmax_cols;
  float g[n_chunks][4], v[n_chunks][4], sum = 0;

  load_row (g, dy + at, lane, n_valid, 0);
  load_row (v, y + at, lane, n_valid, 0);
#pragma unroll
  for (int i = 0; i < n_chunks * 4; i++)
    sum += g[i / 4][i % 4] * v[i / 4][i % 4];
  sum = warp_sum (sum);
#pragma unroll
  for (int i = 0; i < n_chunks * 4; i++)
    g[i / 4][i % 4] = scale * v[i / 4][i % 4] * (g[i / 4][i % 4] - sum);
  store_row (g, dx + at, lane);
}

static unsigned
n_blocks (size_t rows)
{
  return (unsigned) ((rows + warps_per_block - 1) / warps_per_block);
}

void
causal_softmax (cudaStream_t stream, const half *x, half *y, size_t rows, float scale)
{
  forward_kernel<<<n_blocks (rows), dim3 (32, warps_per_block), 0, stream>>> (x, y, (unsigned) rows, scale);
  KB_CHECK_LAUNCH ();
}

void
causal_softmax_bwd (cudaStream_t stream, const half *dy, const half *y, half *dx, size_t rows, float scale)
{
  backward_kernel<<<n_blocks (rows), dim3 (32, warps_per_block), 0, stream>>> (dy, y, dx, (unsigned) rows, scale);
  KB_CHECK_LAUNCH ();
}

}
