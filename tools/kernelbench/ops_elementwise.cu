#include "ops_map.cuh"

namespace kb {

namespace {

/* y = f (a, b) for eight elements. */
template <typename F> __device__ Half8
combine (const Half8 &a, const Half8 &b, const F &f)
{
  Half8 y;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float2 u = get (a, i), v = get (b, i);
    y.pair[i] = __floats2half2_rn (f (u.x, v.x), f (u.y, v.y));
  }
  return y;
}

struct Sum {
  __device__ float operator() (float a, float b) const { return a + b; }
};

constexpr float sqrt_2_over_pi = 0.79788456f;
constexpr float gelu_cubic = 0.044715f;

struct Gelu {
  __device__ float operator() (float x, float bias) const
  {
    float z = x + bias;
    return 0.5f * z * (1 + tanhf (sqrt_2_over_pi * (z + gelu_cubic * z * z * z)));
  }
};

struct GeluGradient {
  __device__ float operator() (float x, float bias) const
  {
    float z = x + bias;
    float t = tanhf (sqrt_2_over_pi * (z + gelu_cubic * z * z * z));
    float slope = sqrt_2_over_pi * (1 + 3 * gelu_cubic * z * z);
    return 0.5f * (1 + t) + 0.5f * z * (1 - t * t) * slope;
  }
};


struct Copy {
  const half *x;
  half *y;
  __device__ void operator() (unsigned i) const { store8 (y, i, load8 (x, i)); }
};

struct Add {
  const half *a, *b;
  half *y;
  __device__ void operator() (unsigned i) const { store8 (y, i, combine (load8 (a, i), load8 (b, i), Sum ())); }
};

/* With a bias of `cols8` vectors. */
template <typename F> struct WithBias {
  const half *x, *bias;
  half *y;
  unsigned cols8;
  __device__ void operator() (unsigned i) const
  {
    store8 (y, i, combine (load8 (x, i), load8 (bias, i % cols8), F ()));
  }
};

struct BiasGeluBwd {
  const half *dy, *x, *bias;
  half *dx;
  unsigned cols8;
  __device__ void operator() (unsigned i) const
  {
    Half8 a = load8 (x, i), b = load8 (bias, i % cols8), g = load8 (dy, i), y;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 u = get (a, j), v = get (b, j), w = get (g, j);
      y.pair[j] = __floats2half2_rn (w.x * GeluGradient () (u.x, v.x), w.y * GeluGradient () (u.y, v.y));
    }
    store8 (dx, i, y);
  }
};

struct Gather {
  const half *table;
  const int *ids;
  half *y;
  unsigned cols8;
  __device__ void operator() (unsigned i) const
  {
    unsigned row = i / cols8, col = i % cols8;
    store8 (y, i, load8 (table, (size_t) ids[row] * cols8 + col));
  }
};

}

void
copy (cudaStream_t stream, const half *x, half *y, size_t n)
{
  map (stream, n / 8, Copy { x, y });
}

void
add (cudaStream_t stream, const half *a, const half *b, half *y, size_t n)
{
  map (stream, n / 8, Add { a, b, y });
}

void
add_in_place (cudaStream_t stream, half *a, const half *b, size_t n)
{
  map (stream, n / 8, Add { a, b, a });
}

void
bias_add (cudaStream_t stream, const half *x, const half *bias, half *y, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, WithBias<Sum> { x, bias, y, (unsigned) (cols / 8) });
}

void
bias_gelu (cudaStream_t stream, const half *x, const half *bias, half *y, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, WithBias<Gelu> { x, bias, y, (unsigned) (cols / 8) });
}

void
bias_gelu_bwd (cudaStream_t stream, const half *dy, const half *x, const half *bias, half *dx, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, BiasGeluBwd { dy, x, bias, dx, (unsigned) (cols / 8) });
}

void
gather (cudaStream_t stream, const half *table, const int *ids, half *y, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, Gather { table, ids, y, (unsigned) (cols / 8) });
}

}
