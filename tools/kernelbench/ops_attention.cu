/* Attention that keeps no scores (Dao et al. 2022, 2023), forward and backward.
 *
 * Forward: a block takes 64 queries of a head, a warp 16 of them, and walks over tiles of
 * 64 keys with a running maximum and sum; the next tile is fetched meanwhile. Backward: a
 * block takes 64 keys of a key/value head, a warp 16 of them, and walks over tiles of
 * queries of all heads that read it; scores are computed again, transposed, so that dK and
 * dV stay in registers, and dQ is added up in fp32 by atomics.
 *
 * Products are mma.sync m16n8k16 on 16-bit operands with fp32 sums: what compute
 * capability 8.0 offers. Hopper's wgmma, which the fastest kernels use, is not used. */
#include <cstdio>
#include <cstdlib>

#include "ops_mma.cuh"

namespace kb {

static constexpr int warps = 4;
static constexpr int threads = 32 * warps;
static constexpr int tile = attention_tile; /* queries of a forward, keys of a backward block; keys per step */
static_assert (tile == 16 * warps);
static constexpr float log2_e = 1.44269504f;

namespace {

template <typename T> struct Tensors {
  const T *q, *k, *v, *out, *dout;
  T *y, *dk, *dv; /* y: the output of the forward */
  float *lse, *delta, *dq_sum;
  int seq, heads, kv_heads;
  bool is_causal;
  float scale;
};

/* The first element of a token's head. */
__device__ inline size_t
at (int sequence, int token, int head, int seq, int heads, int d)
{
  return (((size_t) sequence * seq + token) * heads + head) * d;
}

/* Rows of D elements into shared memory, with 16 bytes more each: eight rows then lie in
 * eight different groups of banks. */
template <int D> constexpr int row_stride = D + 8;

template <typename T, int D, int Rows> __device__ void
fetch (T *to, const T *from, size_t from_stride)
{
  constexpr int per_row = D / 8;
#pragma unroll
  for (int i = (int) threadIdx.x; i < Rows * per_row; i += threads) {
    int row = i / per_row, col = i % per_row * 8;
    copy_async (to + row * row_stride<D> + col, from + row * from_stride + col);
  }
}

/* One warp: acc[n][.] += A B^T for 16 rows of A and N * 8 of B, both row-major in shared
 * memory with D columns. */
template <typename T, int D, int N> __device__ void
multiply_transposed (float (&acc)[N][4], const T *a, const T *b)
{
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    unsigned fa[4], fb[4];
    load_a (fa, a + k, row_stride<D>);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      load_b_transposed (fb, b + n * 8 * row_stride<D> + k, row_stride<D>);
      mma<T> (acc[n], fa, fb);
      mma<T> (acc[n + 1], fa, fb + 2);
    }
  }
}

/* acc[n][.] += P B for a P that a product left in registers, 16 x K * 8, and rows of B. */
template <typename T, int D, int K, int N> __device__ void
multiply_registers (float (&acc)[N][4], const float (&p)[K][4], const T *b)
{
#pragma unroll
  for (int k = 0; k < K; k += 2) {
    unsigned fa[4] = { pack<T> (p[k][0], p[k][1]), pack<T> (p[k][2], p[k][3]), pack<T> (p[k + 1][0], p[k + 1][1]),
                       pack<T> (p[k + 1][2], p[k + 1][3]) };
    unsigned fb[4];
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      load_b (fb, b + k * 8 * row_stride<D> + n * 8, row_stride<D>);
      mma<T> (acc[n], fa, fb);
      mma<T> (acc[n + 1], fa, fb + 2);
    }
  }
}

/* Over the four lanes that share a row. */
__device__ inline float
quad_max (float x)
{
  x = fmaxf (x, __shfl_xor_sync (0xffffffff, x, 1));
  return fmaxf (x, __shfl_xor_sync (0xffffffff, x, 2));
}

__device__ inline float
quad_sum (float x)
{
  x += __shfl_xor_sync (0xffffffff, x, 1);
  return x + __shfl_xor_sync (0xffffffff, x, 2);
}

/* Two rows of a thread: their maximum so far and sum of 2^(score - maximum). */
struct Softmax {
  float top[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 };

  /* Scores to probabilities; out is scaled to the new maximum. */
  template <int K, int N> __device__ void step (float (&s)[K][4], float (&out)[N][4])
  {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float most = top[r], added = 0;
#pragma unroll
      for (int k = 0; k < K; k++)
        most = fmaxf (most, fmaxf (s[k][2 * r], s[k][2 * r + 1]));
      most = quad_max (most);
      float shrink = exp2f (top[r] - most);
#pragma unroll
      for (int k = 0; k < K; k++)
        for (int e = 2 * r; e < 2 * r + 2; e++)
          added += s[k][e] = exp2f (s[k][e] - most);
#pragma unroll
      for (int n = 0; n < N; n++) {
        out[n][2 * r] *= shrink;
        out[n][2 * r + 1] *= shrink;
      }
      sum[r] = sum[r] * shrink + quad_sum (added);
      top[r] = most;
    }
  }
};

}

template <typename T, int D> static __global__ void __launch_bounds__ (threads)
forward_kernel (Tensors<T> a)
{
  extern __shared__ uint4 shared[];
  constexpr int part = tile * row_stride<D>;
  T *q = reinterpret_cast<T *> (shared), *kv = q + part; /* two stages of K and V */
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int query_tile = (int) (gridDim.x - 1 - blockIdx.x), head = blockIdx.y, sequence = blockIdx.z; /* the longest first */
  int kv_head = head / (a.heads / a.kv_heads), n_tiles = a.is_causal ? query_tile + 1 : a.seq / tile;
  size_t q_stride = (size_t) a.heads * D, kv_stride = (size_t) a.kv_heads * D;
  float out[D / 8][4] = {};
  Softmax softmax;

  auto fetch_tile = [&] (int j) {
    T *to = kv + j % 2 * 2 * part;
    size_t from = at (sequence, j * tile, kv_head, a.seq, a.kv_heads, D);
    fetch<T, D, tile> (to, a.k + from, kv_stride);
    fetch<T, D, tile> (to + part, a.v + from, kv_stride);
  };
  fetch<T, D, tile> (q, a.q + at (sequence, query_tile * tile, head, a.seq, a.heads, D), q_stride);
  fetch_tile (0);

  for (int j = 0; j < n_tiles; j++) {
    wait_copies ();
    __syncthreads (); /* tile j is there, and nobody reads j - 1 any more */
    if (j + 1 < n_tiles)
      fetch_tile (j + 1);
    const T *k = kv + j % 2 * 2 * part;
    float s[tile / 8][4] = {};
    multiply_transposed<T, D> (s, q + warp * 16 * row_stride<D>, k);
#pragma unroll
    for (int n = 0; n < tile / 8; n++)
      for (int e = 0; e < 4; e++) {
        int row = warp * 16 + row_of (lane, e), col = n * 8 + col_of (lane, e);
        bool is_hidden = a.is_causal && j == query_tile && col > row;
        s[n][e] = is_hidden ? -INFINITY : s[n][e] * a.scale * log2_e;
      }
    softmax.step (s, out);
    multiply_registers<T, D> (out, s, k + part);
  }

  for (int e = 0; e < 4; e += 2) {
    int token = query_tile * tile + warp * 16 + row_of (lane, e);
    float inverse = 1 / softmax.sum[e / 2];
    T *to = a.y + at (sequence, token, head, a.seq, a.heads, D) + col_of (lane, e);
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      *reinterpret_cast<unsigned *> (to + n * 8) = pack<T> (out[n][e] * inverse, out[n][e + 1] * inverse);
    if (lane % 4 == 0)
      a.lse[((size_t) sequence * a.heads + head) * a.seq + token] = softmax.top[e / 2] / log2_e + logf (softmax.sum[e / 2]);
  }
}

/* delta = sum over the head of dO O; a warp per token and head. */
template <typename T, int D> static __global__ void
delta_kernel (Tensors<T> a, int n_rows)
{
  int row = (int) (blockIdx.x * warps + threadIdx.x / 32), lane = threadIdx.x % 32;
  if (row >= n_rows)
    return;
  float sum = 0;
  for (int i = lane; i < D; i += 32)
    sum += (float) a.dout[(size_t) row * D + i] * (float) a.out[(size_t) row * D + i];
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync (0xffffffff, sum, offset);
  int head = row % a.heads, token = row / a.heads;
  if (lane == 0)
    a.delta[((size_t) (token / a.seq) * a.heads + head) * a.seq + token % a.seq] = sum;
}

/* Queries per step: what registers allow. */
template <int D> constexpr int step_queries = D == 64 ? 64 : 32;

template <typename T, int D> static __global__ void __launch_bounds__ (threads)
backward_kernel (Tensors<T> a)
{
  extern __shared__ uint4 shared[];
  constexpr int queries = step_queries<D>, part = tile * row_stride<D>, step_part = queries * row_stride<D>;
  constexpr int ds_stride = queries + 8;
  constexpr int row_tiles = queries / 16, dq_cols = D / (warps / row_tiles); /* of dQ, per warp */
  T *k = reinterpret_cast<T *> (shared), *v = k + part, *q = v + part, *dout = q + step_part, *ds = dout + step_part;
  float *lse = reinterpret_cast<float *> (ds + tile * ds_stride), *delta = lse + queries;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int key_tile = blockIdx.x, kv_head = blockIdx.y, sequence = blockIdx.z, group = a.heads / a.kv_heads;
  size_t q_stride = (size_t) a.heads * D, kv_stride = (size_t) a.kv_heads * D;
  size_t at_keys = at (sequence, key_tile * tile, kv_head, a.seq, a.kv_heads, D);
  int first = a.is_causal ? key_tile * (tile / queries) : 0, per_head = a.seq / queries - first;
  float dk[D / 8][4] = {}, dv[D / 8][4] = {};

  fetch<T, D, tile> (k, a.k + at_keys, kv_stride);
  fetch<T, D, tile> (v, a.v + at_keys, kv_stride);
  for (int step = 0; step < group * per_head; step++) {
    int head = kv_head * group + step / per_head, token = (first + step % per_head) * queries;
    size_t at_queries = at (sequence, token, head, a.seq, a.heads, D);
    size_t at_row = ((size_t) sequence * a.heads + head) * a.seq + token;
    __syncthreads (); /* nobody reads the step before any more */
    fetch<T, D, queries> (q, a.q + at_queries, q_stride);
    fetch<T, D, queries> (dout, a.dout + at_queries, q_stride);
    if ((int) threadIdx.x < queries) {
      lse[threadIdx.x] = a.lse[at_row + threadIdx.x] * log2_e;
      delta[threadIdx.x] = a.delta[at_row + threadIdx.x];
    }
    wait_copies ();
    __syncthreads ();

    float p[queries / 8][4] = {}, dp[queries / 8][4] = {}; /* keys x queries */
    multiply_transposed<T, D> (p, k + warp * 16 * row_stride<D>, q);
    multiply_transposed<T, D> (dp, v + warp * 16 * row_stride<D>, dout);
#pragma unroll
    for (int n = 0; n < queries / 8; n++)
      for (int e = 0; e < 4; e++) {
        int key = key_tile * tile + warp * 16 + row_of (lane, e), query = n * 8 + col_of (lane, e);
        bool is_hidden = a.is_causal && key > token + query;
        p[n][e] = is_hidden ? 0 : exp2f (p[n][e] * a.scale * log2_e - lse[query]);
        dp[n][e] = p[n][e] * (dp[n][e] - delta[query]);
      }
    multiply_registers<T, D> (dv, p, dout);
    multiply_registers<T, D> (dk, dp, q);
#pragma unroll
    for (int n = 0; n < queries / 8; n++)
      for (int e = 0; e < 4; e += 2)
        *reinterpret_cast<unsigned *> (ds + (warp * 16 + row_of (lane, e)) * ds_stride + n * 8 + col_of (lane, e))
          = pack<T> (dp[n][e], dp[n][e + 1]);
    __syncthreads ();

    int row = warp % row_tiles * 16, col = warp / row_tiles * dq_cols;
    float dq[dq_cols / 8][4] = {};
#pragma unroll
    for (int i = 0; i < tile; i += 16) {
      unsigned fa[4], fb[4];
      load_a_transposed (fa, ds + i * ds_stride + row, ds_stride);
#pragma unroll
      for (int n = 0; n < dq_cols / 8; n += 2) {
        load_b (fb, k + i * row_stride<D> + col + n * 8, row_stride<D>);
        mma<T> (dq[n], fa, fb);
        mma<T> (dq[n + 1], fa, fb + 2);
      }
    }
#pragma unroll
    for (int n = 0; n < dq_cols / 8; n++)
      for (int e = 0; e < 4; e++)
        atomicAdd (a.dq_sum + at_queries + (row + row_of (lane, e)) * q_stride + col + n * 8 + col_of (lane, e), dq[n][e]);
  }

  for (int e = 0; e < 4; e += 2) {
    size_t to = at_keys + (warp * 16 + row_of (lane, e)) * kv_stride + col_of (lane, e);
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
      *reinterpret_cast<unsigned *> (a.dk + to + n * 8) = pack<T> (dk[n][e] * a.scale, dk[n][e + 1] * a.scale);
      *reinterpret_cast<unsigned *> (a.dv + to + n * 8) = pack<T> (dv[n][e], dv[n][e + 1]);
    }
  }
}

template <typename T> static __global__ void
round_kernel (const float *x, T *y, size_t n2, float scale)
{
  size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x;
  if (i < n2)
    reinterpret_cast<unsigned *> (y)[i] = pack<T> (x[2 * i] * scale, x[2 * i + 1] * scale);
}

static void
require_support (const AttentionShape &s)
{
  if (attention_supports (s))
    return;
  fprintf (stderr, "error: attention: seq %zu, head width %zu; expected a multiple of %d, and 64, 96 or 128\n", s.seq, s.d, tile);
  exit (1);
}

template <typename T> static Tensors<T>
tensors (const AttentionShape &s)
{
  Tensors<T> a = {};
  require_support (s);
  a.seq = (int) s.seq;
  a.heads = (int) s.heads;
  a.kv_heads = (int) s.kv_heads;
  a.is_causal = s.is_causal;
  a.scale = 1 / sqrtf ((float) s.d);
  return a;
}

template <typename Kernel> static void
allow_shared (Kernel *kernel, size_t bytes)
{
  KB_CHECK (cudaFuncSetAttribute (kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes));
}

template <typename T, int D> static void
launch_forward (cudaStream_t stream, const AttentionShape &s, const Tensors<T> &a)
{
  constexpr size_t bytes = 5 * tile * row_stride<D> * sizeof (T);
  dim3 grid ((unsigned) (s.seq / tile), (unsigned) s.heads, (unsigned) s.sequences);
  allow_shared (forward_kernel<T, D>, bytes);
  forward_kernel<T, D><<<grid, threads, bytes, stream>>> (a);
  KB_CHECK_LAUNCH ();
}

template <typename T, int D> static void
launch_backward (cudaStream_t stream, const AttentionShape &s, const Tensors<T> &a, T *dq)
{
  constexpr int queries = step_queries<D>;
  constexpr size_t bytes = (2 * (tile + queries) * row_stride<D> + tile * (queries + 8)) * sizeof (T) + 2 * queries * sizeof (float);
  size_t rows = s.sequences * s.seq * s.heads, n = rows * D;
  dim3 grid ((unsigned) (s.seq / tile), (unsigned) s.kv_heads, (unsigned) s.sequences);
  delta_kernel<T, D><<<(unsigned) ((rows + warps - 1) / warps), threads, 0, stream>>> (a, (int) rows);
  KB_CHECK_LAUNCH ();
  KB_CHECK (cudaMemsetAsync (a.dq_sum, 0, n * sizeof (float), stream));
  allow_shared (backward_kernel<T, D>, bytes);
  backward_kernel<T, D><<<grid, threads, bytes, stream>>> (a);
  KB_CHECK_LAUNCH ();
  round_kernel<<<(unsigned) ((n / 2 + threads - 1) / threads), threads, 0, stream>>> (a.dq_sum, dq, n / 2, a.scale);
  KB_CHECK_LAUNCH ();
}

template <typename T> void
attention (cudaStream_t stream, const AttentionShape &s, const T *q, const T *k, const T *v, T *out, float *lse)
{
  Tensors<T> a = tensors<T> (s);
  a.q = q;
  a.k = k;
  a.v = v;
  a.y = out;
  a.lse = lse;
  switch (s.d) {
  case 64: return launch_forward<T, 64> (stream, s, a);
  case 96: return launch_forward<T, 96> (stream, s, a);
  default: return launch_forward<T, 128> (stream, s, a);
  }
}

template <typename T> void
attention_bwd (cudaStream_t stream, const AttentionShape &s, const T *q, const T *k, const T *v, const T *out,
               const float *lse, const T *dout, float *scratch, T *dq, T *dk, T *dv)
{
  Tensors<T> a = tensors<T> (s);
  a.q = q;
  a.k = k;
  a.v = v;
  a.out = out;
  a.dout = dout;
  a.lse = const_cast<float *> (lse);
  a.dq_sum = scratch;
  a.delta = scratch + s.sequences * s.seq * s.heads * s.d;
  a.dk = dk;
  a.dv = dv;
  switch (s.d) {
  case 64: return launch_backward<T, 64> (stream, s, a, dq);
  case 96: return launch_backward<T, 96> (stream, s, a, dq);
  default: return launch_backward<T, 128> (stream, s, a, dq);
  }
}

size_t
attention_scratch (const AttentionShape &s)
{
  return s.sequences * s.seq * s.heads * (s.d + 1);
}

template void attention (cudaStream_t, const AttentionShape &, const half *, const half *, const half *, half *, float *);
template void attention (cudaStream_t, const AttentionShape &, const __nv_bfloat16 *, const __nv_bfloat16 *,
                         const __nv_bfloat16 *, __nv_bfloat16 *, float *);
template void attention_bwd (cudaStream_t, const AttentionShape &, const half *, const half *, const half *, const half *,
                             const float *, const half *, float *, half *, half *, half *);
template void attention_bwd (cudaStream_t, const AttentionShape &, const __nv_bfloat16 *, const __nv_bfloat16 *,
                             const __nv_bfloat16 *, const __nv_bfloat16 *, const float *, const __nv_bfloat16 *, float *,
                             __nv_bfloat16 *, __nv_bfloat16 *, __nv_bfloat16 *);

}
