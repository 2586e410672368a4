/* Kernels of a block for a row that stays in its registers: norms, and what works on rows picked by number: the gradient of an
 * embedding, the loss over a vocabulary, the routing of tokens to experts. And what Llama-like layers have: RMSNorm, SwiGLU, rotary
 * positions. A block has `row_threads` threads with up to max_row_vectors vectors of eight halves each. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "ops_map.cuh"

namespace kb {

/* ---- a row in registers ---- */

/* Whether the thread's i-th vector lies within a row of `cols` elements. */
__device__ inline bool
is_in_row (int i, int cols)
{
  return (i * row_threads + (int) threadIdx.x) * 8 < cols;
}

/* Zeros beyond its end. */
template <int Vectors> __device__ void
load_row_vectors (Half8 (&v)[Vectors], const half *row, int cols)
{
#pragma unroll
  for (int i = 0; i < Vectors; i++)
    v[i] = is_in_row (i, cols) ? load8 (row, i * row_threads + threadIdx.x) : Half8 {};
}

/* Sum over the block, known to all its threads. */
__device__ inline float
block_sum (float x, float *scratch)
{
  for (int offset = 16; offset > 0; offset /= 2)
    x += __shfl_xor_sync (0xffffffff, x, offset);
  __syncthreads (); /* scratch may still be read from the last time */
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = x;
  __syncthreads ();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < row_threads / 32; i++)
    sum += scratch[i];
  return sum;
}

template <int N, typename F> void
for_row_vectors_from (const char *what, int cols, const F &f)
{
  if constexpr (N > max_row_vectors) {
    fprintf (stderr, "error: %s: %d columns; expected a multiple of 8, at most %d\n", what, cols,
             max_row_vectors * 8 * row_threads);
    exit (1);
  } else if (cols % 8 == 0 && cols <= N * 8 * row_threads) {
    f (std::integral_constant<int, N> ());
  } else {
    for_row_vectors_from<(N < 4 ? N + 1 : N + 2)> (what, cols, f);
  }
}

/* f (n) with the least compiled number n of vectors per thread that holds a row: 1 to 4,
 * then even ones. */
template <typename F> void
for_row_vectors (const char *what, size_t cols, const F &f)
{
  for_row_vectors_from<1> (what, (int) cols, f);
}

/* ---- LayerNorm ---- */

namespace {

struct NormArgs {
  const half *x, *dy, *gamma, *beta;
  half *y; /* dx in the backward */
  float *mean, *rstd;
  int cols;
};

}

/* A block per row, Vectors * 8 elements per thread. The variance is that of the
 * deviations from the mean, for which the row is still in registers. */
template <int Vectors> static __global__ void
forward_kernel (NormArgs a)
{
  int cols = a.cols;
  __shared__ float scratch[row_threads / 32];
  size_t at = (size_t) blockIdx.x * cols;
  Half8 x[Vectors];
  float sum = 0, squares = 0;

  load_row_vectors (x, a.x + at, cols);
#pragma unroll
  for (int i = 0; i < Vectors * 4; i++) {
    float2 v = get (x[i / 4], i % 4);
    sum += v.x + v.y;
  }
  float mean = block_sum (sum, scratch) / cols;
#pragma unroll
  for (int i = 0; i < Vectors * 4; i++) {
    float2 v = get (x[i / 4], i % 4);
    if (is_in_row (i / 4, cols))
      squares += (v.x - mean) * (v.x - mean) + (v.y - mean) * (v.y - mean);
  }
  float rstd = rsqrtf (block_sum (squares, scratch) / cols + layernorm_epsilon);

#pragma unroll
  for (int i = 0; i < Vectors; i++) {
    if (!is_in_row (i, cols))
      break;
    Half8 gamma = load8 (a.gamma, i * row_threads + threadIdx.x), beta = load8 (a.beta, i * row_threads + threadIdx.x), y;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 v = get (x[i], j), g = get (gamma, j), b = get (beta, j);
      y.pair[j] = __floats2half2_rn ((v.x - mean) * rstd * g.x + b.x, (v.y - mean) * rstd * g.y + b.y);
    }
    store8 (a.y + at, i * row_threads + threadIdx.x, y);
  }
  if (threadIdx.x == 0) {
    a.mean[blockIdx.x] = mean;
    a.rstd[blockIdx.x] = rstd;
  }
}

template <int Vectors> static __global__ void
backward_kernel (NormArgs a)
{
  int cols = a.cols;
  __shared__ float scratch[row_threads / 32];
  size_t at = (size_t) blockIdx.x * cols;
  float mean = a.mean[blockIdx.x], rstd = a.rstd[blockIdx.x];
  Half8 x[Vectors], dy[Vectors];
  float sum_g = 0, sum_gz = 0;

  load_row_vectors (x, a.x + at, cols);
  load_row_vectors (dy, a.dy + at, cols);
#pragma unroll
  for (int i = 0; i < Vectors; i++) {
    if (!is_in_row (i, cols))
      break;
    Half8 gamma = load8 (a.gamma, i * row_threads + threadIdx.x);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 v = get (x[i], j), d = get (dy[i], j), w = get (gamma, j);
      float2 g = { d.x * w.x, d.y * w.y };
      sum_g += g.x + g.y;
      sum_gz += g.x * (v.x - mean) * rstd + g.y * (v.y - mean) * rstd;
    }
  }
  float mean_g = block_sum (sum_g, scratch) / cols, mean_gz = block_sum (sum_gz, scratch) / cols;

#pragma unroll
  for (int i = 0; i < Vectors; i++) {
    if (!is_in_row (i, cols))
      break;
    Half8 gamma = load8 (a.gamma, i * row_threads + threadIdx.x), dx;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 v = get (x[i], j), d = get (dy[i], j), w = get (gamma, j);
      dx.pair[j] = __floats2half2_rn (rstd * (d.x * w.x - mean_g - (v.x - mean) * rstd * mean_gz),
                                      rstd * (d.y * w.y - mean_g - (v.y - mean) * rstd * mean_gz));
    }
    store8 (a.y + at, i * row_threads + threadIdx.x, dx);
  }
}

static void
launch (cudaStream_t stream, const NormArgs &args, size_t rows, bool is_backward)
{
  for_row_vectors ("layernorm", args.cols, [&] (auto n) {
    constexpr int vectors = decltype (n)::value;
    if (is_backward)
      backward_kernel<vectors><<<(unsigned) rows, row_threads, 0, stream>>> (args);
    else
      forward_kernel<vectors><<<(unsigned) rows, row_threads, 0, stream>>> (args);
  });
  KB_CHECK_LAUNCH ();
}

void
layernorm (cudaStream_t stream, const half *x, const half *gamma, const half *beta, half *y, float *mean,
           float *rstd, size_t rows, size_t cols)
{
  launch (stream, NormArgs { x, nullptr, gamma, beta, y, mean, rstd, (int) cols }, rows, false);
}

void
layernorm_dgrad (cudaStream_t stream, const half *dy, const half *x, const half *gamma, const float *mean,
                 const float *rstd, half *dx, size_t rows, size_t cols)
{
  NormArgs args = { x, dy, gamma, nullptr, dx, const_cast<float *> (mean), const_cast<float *> (rstd), (int) cols };
  launch (stream, args, rows, true);
}

/* ---- Llama-like layers ---- */

namespace {

struct RmsArgs {
  const half *x, *dy, *gamma;
  half *y; /* dx in the backward */
  float *rstd, *partial;
  int rows, cols;
};

}

template <int Vectors> static __global__ void
rms_forward_kernel (RmsArgs a)
{
  __shared__ float scratch[row_threads / 32];
  size_t at = (size_t) blockIdx.x * a.cols;
  Half8 x[Vectors];
  float squares = 0;

  load_row_vectors (x, a.x + at, a.cols);
#pragma unroll
  for (int i = 0; i < Vectors * 4; i++) {
    float2 v = get (x[i / 4], i % 4);
    squares += v.x * v.x + v.y * v.y;
  }
  float rstd = rsqrtf (block_sum (squares, scratch) / a.cols + rmsnorm_epsilon);
#pragma unroll
  for (int i = 0; i < Vectors; i++) {
    if (!is_in_row (i, a.cols))
      break;
    Half8 gamma = load8 (a.gamma, i * row_threads + threadIdx.x), y;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 v = get (x[i], j), g = get (gamma, j);
      y.pair[j] = __floats2half2_rn (v.x * rstd * g.x, v.y * rstd * g.y);
    }
    store8 (a.y + at, i * row_threads + threadIdx.x, y);
  }
  if (threadIdx.x == 0)
    a.rstd[blockIdx.x] = rstd;
}

/* A block takes every gridDim.x-th row and sums its part of dgamma on the way. */
template <int Vectors> static __global__ void
rms_backward_kernel (RmsArgs a)
{
  __shared__ float scratch[row_threads / 32];
  float dgamma[Vectors][8] = {};

  for (int row = (int) blockIdx.x; row < a.rows; row += (int) gridDim.x) {
    size_t at = (size_t) row * a.cols;
    float rstd = a.rstd[row], sum = 0;
    Half8 x[Vectors], dy[Vectors];
    load_row_vectors (x, a.x + at, a.cols);
    load_row_vectors (dy, a.dy + at, a.cols);
#pragma unroll
    for (int i = 0; i < Vectors; i++) {
      if (!is_in_row (i, a.cols))
        break;
      Half8 gamma = load8 (a.gamma, i * row_threads + threadIdx.x);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        float2 v = get (x[i], j), d = get (dy[i], j), g = get (gamma, j);
        sum += (d.x * g.x * v.x + d.y * g.y * v.y) * rstd;
        dgamma[i][2 * j] += d.x * v.x * rstd;
        dgamma[i][2 * j + 1] += d.y * v.y * rstd;
      }
    }
    float mean = block_sum (sum, scratch) / a.cols;
#pragma unroll
    for (int i = 0; i < Vectors; i++) {
      if (!is_in_row (i, a.cols))
        break;
      Half8 gamma = load8 (a.gamma, i * row_threads + threadIdx.x), dx;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        float2 v = get (x[i], j), d = get (dy[i], j), g = get (gamma, j);
        dx.pair[j] = __floats2half2_rn (rstd * (d.x * g.x - v.x * rstd * mean), rstd * (d.y * g.y - v.y * rstd * mean));
      }
      store8 (a.y + at, i * row_threads + threadIdx.x, dx);
    }
  }
#pragma unroll
  for (int i = 0; i < Vectors; i++)
    for (int j = 0; j < 8 && is_in_row (i, a.cols); j++)
      a.partial[(size_t) blockIdx.x * a.cols + (i * row_threads + threadIdx.x) * 8 + j] = dgamma[i][j];
}

namespace {

struct SumRows {
  const float *partial;
  half *out;
  int n, cols;
  __device__ void operator() (unsigned col) const
  {
    float sum = 0;
    for (int i = 0; i < n; i++)
      sum += partial[(size_t) i * cols + col];
    out[col] = __float2half (sum);
  }
};

/* silu (gate) up of eight elements; x holds a row's gates, then its ups. */
struct SwiGlu {
  const half *x;
  half *y;
  unsigned cols8;
  __device__ void operator() (unsigned i) const
  {
    size_t row = i / cols8, col = i % cols8;
    Half8 gate = load8 (x, row * 2 * cols8 + col), up = load8 (x, (row * 2 + 1) * cols8 + col), out;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 g = get (gate, j), u = get (up, j);
      out.pair[j] = __floats2half2_rn (g.x / (1 + __expf (-g.x)) * u.x, g.y / (1 + __expf (-g.y)) * u.y);
    }
    store8 (y, i, out);
  }
};

struct SwiGluBwd {
  const half *dy, *x;
  half *dx;
  unsigned cols8;

  static __device__ float2 gradient (float g, float u, float d) /* of gate and up */
  {
    float s = 1 / (1 + __expf (-g));
    return { d * u * s * (1 + g * (1 - s)), d * g * s };
  }

  __device__ void operator() (unsigned i) const
  {
    size_t row = i / cols8, col = i % cols8, at_gate = row * 2 * cols8 + col, at_up = at_gate + cols8;
    Half8 gate = load8 (x, at_gate), up = load8 (x, at_up), d = load8 (dy, i), dgate, dup;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 g = get (gate, j), u = get (up, j), v = get (d, j);
      float2 low = gradient (g.x, u.x, v.x), high = gradient (g.y, u.y, v.y);
      dgate.pair[j] = __floats2half2_rn (low.x, high.x);
      dup.pair[j] = __floats2half2_rn (low.y, high.y);
    }
    store8 (dx, at_gate, dgate);
    store8 (dx, at_up, dup);
  }
};

/* Eight pairs of a head: elements i and i + d/2. The table holds cos and sin of every
 * position and pair. */
struct Rope {
  const half *x;
  half *y;
  const float2 *table;
  unsigned seq, heads, half_d8; /* d / 2 / 8 */
  float sign;
  __device__ void operator() (unsigned i) const
  {
    unsigned row = i / half_d8, part = i % half_d8, position = row / heads % seq;
    size_t at = (size_t) row * 2 * half_d8 + part;
    const float2 *turns = table + ((size_t) position * half_d8 + part) * 8;
    Half8 low = load8 (x, at), high = load8 (x, at + half_d8), a, b;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 u = get (low, j), v = get (high, j), s = turns[2 * j], t = turns[2 * j + 1];
      s.y *= sign;
      t.y *= sign;
      a.pair[j] = __floats2half2_rn (u.x * s.x - v.x * s.y, u.y * t.x - v.y * t.y);
      b.pair[j] = __floats2half2_rn (v.x * s.x + u.x * s.y, v.y * t.x + u.y * t.y);
    }
    store8 (y, at, a);
    store8 (y, at + half_d8, b);
  }
};

struct RopeTable {
  float2 *table;
  unsigned half_d;
  float base;
  __device__ void operator() (unsigned i) const
  {
    double angle = (double) (i / half_d) * pow ((double) base, -(double) (i % half_d) / half_d);
    table[i] = { (float) cos (angle), (float) sin (angle) };
  }
};

}

void
rmsnorm (cudaStream_t stream, const half *x, const half *gamma, half *y, float *rstd, size_t rows, size_t cols)
{
  RmsArgs args = { x, nullptr, gamma, y, rstd, nullptr, (int) rows, (int) cols };
  for_row_vectors ("rmsnorm", cols, [&] (auto n) {
    rms_forward_kernel<decltype (n)::value><<<(unsigned) rows, row_threads, 0, stream>>> (args);
  });
  KB_CHECK_LAUNCH ();
}

void
rmsnorm_bwd (cudaStream_t stream, const half *dy, const half *x, const half *gamma, const float *rstd, float *partial,
             half *dx, half *dgamma, size_t rows, size_t cols)
{
  RmsArgs args = { x, dy, gamma, dx, const_cast<float *> (rstd), partial, (int) rows, (int) cols };
  unsigned n_blocks = (unsigned) std::min (rows, (size_t) n_rms_partials);
  for_row_vectors ("rmsnorm backward", cols, [&] (auto n) {
    rms_backward_kernel<decltype (n)::value><<<n_blocks, row_threads, 0, stream>>> (args);
  });
  KB_CHECK_LAUNCH ();
  map (stream, cols, SumRows { partial, dgamma, (int) n_blocks, (int) cols });
}

void
swiglu (cudaStream_t stream, const half *x, half *y, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, SwiGlu { x, y, (unsigned) (cols / 8) });
}

void
swiglu_bwd (cudaStream_t stream, const half *dy, const half *x, half *dx, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, SwiGluBwd { dy, x, dx, (unsigned) (cols / 8) });
}

void
rope_table (cudaStream_t stream, float2 *table, size_t seq, size_t d, float base)
{
  map (stream, seq * d / 2, RopeTable { table, (unsigned) (d / 2), base });
}

void
rope (cudaStream_t stream, const half *x, half *y, const float2 *table, size_t sequences, size_t seq, size_t heads,
      size_t d, bool is_backward)
{
  map (stream, sequences * seq * heads * (d / 16),
       Rope { x, y, table, (unsigned) seq, (unsigned) heads, (unsigned) (d / 16), is_backward ? -1.0f : 1.0f });
}

/* ---- rows picked by number ---- */

namespace {

/* Two atomic additions of two halves would halve the precision of a sum over thousands of
 * tokens: the gradient is fp32, as a main gradient is. */
struct EmbeddingGrad {
  const half *dy;
  const int *ids;
  float *grad;
  unsigned cols8;
  __device__ void operator() (unsigned i) const
  {
    unsigned row = i / cols8, col = i % cols8;
    Half8 d = load8 (dy, i);
    float *to = grad + ((size_t) ids[row] * cols8 + col) * 8;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 v = get (d, j);
      atomicAdd (to + 2 * j, v.x);
      atomicAdd (to + 2 * j + 1, v.y);
    }
  }
};

struct Unpermute {
  const half *y;
  const int *place;
  const float *weight;
  half *x;
  unsigned k, cols8;
  __device__ void operator() (unsigned i) const
  {
    unsigned token = i / cols8, col = i % cols8;
    float2 sum[4] = {};
    for (unsigned slot = token * k; slot < (token + 1) * k; slot++) {
      Half8 v = load8 (y, (size_t) place[slot] * cols8 + col);
      float w = weight[slot];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        float2 u = get (v, j);
        sum[j] = { sum[j].x + w * u.x, sum[j].y + w * u.y };
      }
    }
    Half8 out;
#pragma unroll
    for (int j = 0; j < 4; j++)
      out.pair[j] = __floats2half2_rn (sum[j].x, sum[j].y);
    store8 (x, i, out);
  }
};

/* Largest value and the sum of exp (x - largest) of what a thread has seen. */
struct Running {
  float top = -INFINITY, sum = 0;
  __device__ void add (float x)
  {
    if (x > top) {
      sum *= __expf (top - x);
      top = x;
    }
    sum += __expf (x - top);
  }
  __device__ void join (float other_top, float other_sum)
  {
    float most = fmaxf (top, other_top);
    if (most == -INFINITY)
      return;
    sum = sum * __expf (top - most) + other_sum * __expf (other_top - most);
    top = most;
  }
};

}

/* A block per row, one pass. lse: log of the sum of exponentials. */
static __global__ void
loss_kernel (const half *x, const int *target, float *loss, float *lse, unsigned cols8)
{
  __shared__ float tops[row_threads / 32], sums[row_threads / 32];
  const half *row = x + (size_t) blockIdx.x * cols8 * 8;
  Running running;

  for (unsigned i = threadIdx.x; i < cols8; i += row_threads) {
    Half8 v = load8 (row, i);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 u = get (v, j);
      running.add (u.x);
      running.add (u.y);
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    float top = __shfl_xor_sync (0xffffffff, running.top, offset), sum = __shfl_xor_sync (0xffffffff, running.sum, offset);
    running.join (top, sum);
  }
  if (threadIdx.x % 32 == 0) {
    tops[threadIdx.x / 32] = running.top;
    sums[threadIdx.x / 32] = running.sum;
  }
  __syncthreads ();
  if (threadIdx.x > 0)
    return;
  for (int w = 1; w < row_threads / 32; w++)
    running.join (tops[w], sums[w]);
  float l = running.top + logf (running.sum);
  lse[blockIdx.x] = l;
  loss[blockIdx.x] = l - __half2float (row[target[blockIdx.x]]);
}

namespace {

struct LossBwd {
  const half *x;
  const int *target;
  const float *lse;
  half *dx;
  unsigned cols8;
  float scale; /* 1 / rows, times that of the loss */
  __device__ void operator() (unsigned i) const
  {
    unsigned row = i / cols8, col = i % cols8 * 8;
    Half8 v = load8 (x, i), out;
    float l = lse[row];
    unsigned hit = (unsigned) target[row] - col; /* below 8: among these */
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 u = get (v, j);
      out.pair[j] = __floats2half2_rn (scale * (__expf (u.x - l) - (hit == 2u * j)),
                                       scale * (__expf (u.y - l) - (hit == 2u * j + 1)));
    }
    store8 (dx, i, out);
  }
};

}

void
embedding_grad (cudaStream_t stream, const half *dy, const int *ids, float *grad, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, EmbeddingGrad { dy, ids, grad, (unsigned) (cols / 8) });
}

void
cross_entropy (cudaStream_t stream, const half *x, const int *target, float *loss, float *lse, size_t rows, size_t cols)
{
  loss_kernel<<<(unsigned) rows, row_threads, 0, stream>>> (x, target, loss, lse, (unsigned) (cols / 8));
  KB_CHECK_LAUNCH ();
}

void
cross_entropy_bwd (cudaStream_t stream, const half *x, const int *target, const float *lse, half *dx, size_t rows,
                   size_t cols, float loss_scale)
{
  map (stream, rows * cols / 8,
       LossBwd { x, target, lse, dx, (unsigned) (cols / 8), loss_scale / (float) rows });
}

void
unpermute (cudaStream_t stream, const half *y, const int *place, const float *weight, half *x, size_t tokens, size_t k,
           size_t cols)
{
  map (stream, tokens * cols / 8, Unpermute { y, place, weight, x, (unsigned) k, (unsigned) (cols / 8) });
}

}
