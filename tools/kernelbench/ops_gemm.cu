/* out[m,n] = x[m,k] w[n,k]^T in bf16, by tiles of 128 x 128: the same blocks launched in three ways, to see what
 * each loses beside a kernel that holds SMs.
 *
 * A block asks for nearly all shared memory of an SM, so one runs there at a time. It is no fast product: 256 threads, mma.sync,
 * operands through two buffers of shared memory by cp.async. What is compared is its time beside with its time alone. */
#include <algorithm>

#include "ops_mma.cuh"

namespace kb {

using T = __nv_bfloat16;

static constexpr int tile = 128;         /* rows and columns of a block   */
static constexpr int depth = 32;         /* of the inner dimension at once */
static constexpr int stride = depth + 8; /* in shared memory: rows on different banks */
static constexpr int n_threads = 256;
static constexpr int warp_rows = 64, warp_cols = 32; /* of a warp: 2 x 4 of them */
static constexpr int cluster_blocks = 2;
static constexpr int stage = 2 * tile * stride; /* elements of both operands */
static constexpr int chunk = 16 / sizeof (T);

static __device__ void
load_rows (T *to, const T *from, int k)
{
  for (int i = threadIdx.x; i < tile * depth / chunk; i += n_threads) {
    int row = i / (depth / chunk), col = i % (depth / chunk) * chunk;
    copy_async (to + row * stride + col, from + (size_t) row * k + col);
  }
}

static __device__ void
load_stage (T *to, const T *x, const T *w, int k)
{
  load_rows (to, x, k);
  load_rows (to + tile * stride, w, k);
}

static __device__ void
multiply_stage (float (&acc)[4][4][4], const T *x, const T *w)
{
  for (int inner = 0; inner < depth; inner += 16) {
    unsigned b[2][4];
    for (int j = 0; j < 2; j++)
      load_b_transposed (b[j], w + j * 16 * stride + inner, stride);
    for (int i = 0; i < 4; i++) {
      unsigned a[4];
      load_a (a, x + i * 16 * stride + inner, stride);
      for (int j = 0; j < 4; j++)
        mma<T> (acc[i][j], a, &b[j / 2][j % 2 * 2]);
    }
  }
}

static __device__ void
store (const float (&acc)[4][4][4], T *out, int n)
{
  int lane = threadIdx.x % 32;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      for (int e = 0; e < 4; e += 2) {
        size_t row = i * 16 + row_of (lane, e), col = j * 8 + col_of (lane, e);
        *reinterpret_cast<unsigned *> (out + row * n + col) = pack<T> (acc[i][j][e], acc[i][j][e + 1]);
      }
}

static __device__ void
multiply_tile (T *shared, const T *x, const T *w, T *out, int n, int k)
{
  int warp = threadIdx.x / 32, row = warp / 4 * warp_rows, col = warp % 4 * warp_cols;
  float acc[4][4][4] = {};
  load_stage (shared, x, w, k);
  wait_copies ();
  __syncthreads ();
  for (int i = 0; i < k / depth; i++) {
    T *now = shared + i % 2 * stage;
    if (i + 1 < k / depth)
      load_stage (shared + (i + 1) % 2 * stage, x + (i + 1) * depth, w + (i + 1) * depth, k);
    multiply_stage (acc, now + row * stride, now + (tile + col) * stride);
    wait_copies ();
    __syncthreads ();
  }
  store (acc, out + (size_t) row * n + col, n);
}

/* Each block goes on by as many tiles as there are blocks: with as many blocks as tiles it has one. */
static __global__ void __launch_bounds__ (n_threads)
multiply_tiles (const T *x, const T *w, T *out, int m, int n, int k)
{
  extern __shared__ uint4 memory[];
  int n_rows = m / tile, n_tiles = n_rows * (n / tile);
  for (int i = blockIdx.x; i < n_tiles; i += gridDim.x) {
    size_t row = (size_t) (i % n_rows) * tile, col = (size_t) (i / n_rows) * tile;
    multiply_tile (reinterpret_cast<T *> (memory), x + row * k, w + col * k, out + row * n + col, n, k);
  }
}

bool
tiled_gemm_supports (int m, int n, int k)
{
  return m % tile == 0 && n % tile == 0 && k % depth == 0 && m / tile * (n / tile) % cluster_blocks == 0;
}

void
tiled_gemm (cudaStream_t stream, GemmBlocks blocks, size_t shared_bytes, int n_sms, int m, int n, int k, const T *x, const T *w, T *out)
{
  int n_tiles = m / tile * (n / tile);
  size_t bytes = std::max (shared_bytes, 2 * stage * sizeof (T));
  KB_CHECK (cudaFuncSetAttribute (multiply_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes));
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = cluster_blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks == GemmBlocks::PERSISTENT ? std::min (n_sms, n_tiles) : n_tiles;
  config.blockDim = n_threads;
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = blocks == GemmBlocks::CLUSTERS ? 1 : 0;
  KB_CHECK (cudaLaunchKernelEx (&config, multiply_tiles, x, w, out, m, n, k));
}

}
