#include "ops_map.cuh"

namespace kb {

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
