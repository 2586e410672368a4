#include <cmath>

#include "ops_map.cuh"

namespace kb {

namespace {

__device__ float4
load4 (const float *x, size_t i)
{
  return reinterpret_cast<const float4 *> (x)[i];
}

__device__ void
store4 (float *x, size_t i, float4 v)
{
  reinterpret_cast<float4 *> (x)[i] = v;
}

/* Kingma and Ba (2015) with decoupled decay (Loshchilov and Hutter 2019). */
struct Adam {
  const float *grad;
  float *weight, *m, *v;
  AdamStep step;
  float correction1, correction2; /* 1 - beta^step */

  __device__ void update (float g, float *w, float *m1, float *m2) const
  {
    *m1 = step.beta1 * *m1 + (1 - step.beta1) * g;
    *m2 = step.beta2 * *m2 + (1 - step.beta2) * g * g;
    float direction = (*m1 / correction1) / (sqrtf (*m2 / correction2) + step.epsilon);
    *w -= step.rate * (direction + step.decay * *w);
  }

  __device__ void operator() (unsigned i) const
  {
    float4 g = load4 (grad, i), w = load4 (weight, i), m1 = load4 (m, i), m2 = load4 (v, i);
    update (g.x, &w.x, &m1.x, &m2.x);
    update (g.y, &w.y, &m1.y, &m2.y);
    update (g.z, &w.z, &m1.z, &m2.z);
    update (g.w, &w.w, &m1.w, &m2.w);
    store4 (weight, i, w);
    store4 (m, i, m1);
    store4 (v, i, m2);
  }
};

struct HalfToFloat {
  const half *x;
  float *y;
  __device__ void operator() (unsigned i) const
  {
    Half8 h = load8 (x, i);
    float2 a = get (h, 0), b = get (h, 1), c = get (h, 2), d = get (h, 3);
    store4 (y, 2 * (size_t) i, make_float4 (a.x, a.y, b.x, b.y));
    store4 (y, 2 * (size_t) i + 1, make_float4 (c.x, c.y, d.x, d.y));
  }
};

struct FloatToHalf {
  const float *x;
  half *y;
  __device__ void operator() (unsigned i) const
  {
    float4 a = load4 (x, 2 * (size_t) i), b = load4 (x, 2 * (size_t) i + 1);
    store8 (y, i, Half8 { { __floats2half2_rn (a.x, a.y), __floats2half2_rn (a.z, a.w),
                            __floats2half2_rn (b.x, b.y), __floats2half2_rn (b.z, b.w) } });
  }
};

__device__ float4
scaled (float4 v, float factor)
{
  return make_float4 (v.x * factor, v.y * factor, v.z * factor, v.w * factor);
}

struct Scale {
  float *x, factor;
  __device__ void operator() (unsigned i) const { store4 (x, i, scaled (load4 (x, i), factor)); }
};

struct Unscale {
  float *x, factor;
  int *found_inf;
  __device__ void operator() (unsigned i) const
  {
    float4 v = load4 (x, i);
    if (!isfinite (v.x) || !isfinite (v.y) || !isfinite (v.z) || !isfinite (v.w))
      *found_inf = 1;
    store4 (x, i, scaled (v, factor));
  }
};

}

void
adam (cudaStream_t stream, const float *grad, float *weight, float *m, float *v, size_t n, const AdamStep &step)
{
  float correction1 = 1 - powf (step.beta1, (float) step.step), correction2 = 1 - powf (step.beta2, (float) step.step);
  map (stream, n / 4, Adam { grad, weight, m, v, step, correction1, correction2 });
}

void
half_to_float (cudaStream_t stream, const half *x, float *y, size_t n)
{
  map (stream, n / 8, HalfToFloat { x, y });
}

void
float_to_half (cudaStream_t stream, const float *x, half *y, size_t n)
{
  map (stream, n / 8, FloatToHalf { x, y });
}

void
scale_in_place (cudaStream_t stream, float *x, size_t n, float factor)
{
  map (stream, n / 4, Scale { x, factor });
}

void
unscale (cudaStream_t stream, float *x, size_t n, float factor, int *found_inf)
{
  map (stream, n / 4, Unscale { x, factor, found_inf });
}

}
