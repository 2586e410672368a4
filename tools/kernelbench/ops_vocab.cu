/* What works on rows picked by number: the gradient of an embedding, the loss over a
 * vocabulary, the routing of tokens to experts. */
#include "ops_row.cuh"

namespace kb {

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
