/* What Llama-like layers have instead: RMSNorm, SwiGLU, rotary positions. */
#include <algorithm>

#include "ops_row.cuh"

namespace kb {

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

}
