#include "plan_launch.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "gemm.h"
#include "ops.h"

namespace kb {

static constexpr float p_drop = 0.1f;
static constexpr uint64_t seed = 600;

/* Reads n_read vectors and writes n_write; the flag is never set, but the compiler cannot
 * know. */
static __global__ void
stream_kernel (const uint4 *from, size_t n_read, uint4 *to, size_t n_write, int *flag)
{
  size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x;
  uint4 v = {};
  if (i < n_read)
    v = from[i];
  if (i < n_write)
    to[i] = v;
  else if ((v.x ^ v.y) == 0x9e3779b9 && (v.z ^ v.w) == 0x7f4a7c15)
    *flag = 1;
}

static __global__ void
hold_kernel (unsigned long long ns)
{
  unsigned long long start, now;
  asm volatile ("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do
    asm volatile ("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < ns);
}

static Number
number_of (const std::string &dtype)
{
  for (Number n : { Number::FP32, Number::TF32, Number::FP16, Number::BF16 })
    if (dtype == number_name (n))
      return n;
  return Number::FP8;
}

/* C[m,n] = A[m,k] B[k,n] as the pass that has this layout: gemm.h. Scaled so that a result
 * of normal numbers is one. */
static std::function<void ()>
gemm_launch (const PlanKernel &k, const PlanOp &op, const PlanMemory &memory, cudaStream_t stream)
{
  int m = (int) k.m, n = (int) k.n, inner = (int) k.k, batch = (int) k.batch;
  Pass pass = k.layout == "TN" ? Pass::FORWARD : k.layout == "NN" ? Pass::DGRAD : k.accumulates ? Pass::WGRAD : Pass::WGRAD16;
  GemmShape shape = pass == Pass::FORWARD ? GemmShape { m, n, inner, batch }
                    : pass == Pass::DGRAD ? GemmShape { m, inner, n, batch }
                                          : GemmShape { inner, m, n, batch };
  Gemm gemm (pass, number_of (k.dtype), shape);
  const void *rows = memory.at<void> (op.operands[0]), *cols = memory.at<void> (op.operands[1]);
  void *out = memory.at<void> (op.operands[2]);
  float alpha = 1 / sqrtf ((float) inner);
  return [=] () mutable { gemm.run (stream, cols, rows, out, alpha); };
}

template <typename T> static std::function<void ()>
attention_launch (const PlanKernel &k, const PlanOp &op, const PlanMemory &memory, cudaStream_t stream)
{
  AttentionShape shape = { 1, k.m, k.batch, k.kv_batch, k.k, k.is_causal };
  auto tensor = [&] (int i) { return memory.at<T> (op.operands[(size_t) i]); };
  if (k.impl == Impl::ATTENTION)
    return [=, q = tensor (0), key = tensor (1), v = tensor (2), out = tensor (3), lse = memory.at<float> (op.operands[4])] {
      attention (stream, shape, q, key, v, out, lse);
    };
  return [=, dout = tensor (0), q = tensor (1), key = tensor (2), v = tensor (3), out = tensor (4),
          lse = memory.at<float> (op.operands[5]), scratch = memory.at<float> (op.operands[6]), dq = tensor (7), dk = tensor (8),
          dv = tensor (9)] { attention_bwd (stream, shape, q, key, v, out, lse, dout, scratch, dq, dk, dv); };
}

/* Operands by their place in operands_of (). */
struct Args {
  const PlanOp &op;
  const PlanMemory &memory;
  half *h (size_t i) const { return memory.at<half> (op.operands[i]); }
  float *f (size_t i) const { return memory.at<float> (op.operands[i]); }
  uint8_t *b (size_t i) const { return memory.at<uint8_t> (op.operands[i]); }
  size_t bytes (size_t i) const { return (size_t) op.operands[i].bytes; }
};

static std::function<void ()>
norm_launch (const PlanKernel &k, const Args &a, cudaStream_t s)
{
  size_t m = k.m, n = k.n;
  switch (k.impl) {
  case Impl::LAYERNORM:
    return [=, x = a.h (0), g = a.h (1), b = a.h (2), y = a.h (3), stats = a.f (4)] { layernorm (s, x, g, b, y, stats, stats + m, m, n); };
  case Impl::LAYERNORM_DGRAD:
    return [=, dy = a.h (0), x = a.h (1), g = a.h (2), stats = a.f (3), dx = a.h (4)] {
      layernorm_dgrad (s, dy, x, g, stats, stats + m, dx, m, n);
    };
  case Impl::LAYERNORM_GAMMA_BETA:
    return [=, dy = a.h (0), x = a.h (1), stats = a.f (2), partial = a.f (3), dg = a.h (4), db = a.h (5)] {
      layernorm_gamma_beta (s, dy, x, stats, stats + m, partial, dg, db, m, n);
    };
  case Impl::RMSNORM:
    return [=, x = a.h (0), g = a.h (1), y = a.h (2), stats = a.f (3)] { rmsnorm (s, x, g, y, stats, m, n); };
  default:
    return [=, dy = a.h (0), x = a.h (1), g = a.h (2), stats = a.f (3), partial = a.f (4), dx = a.h (5), dg = a.h (6)] {
      rmsnorm_bwd (s, dy, x, g, stats, partial, dx, dg, m, n);
    };
  }
}

static std::function<void ()>
optimizer_launch (const PlanKernel &k, const Args &a, const PlanMemory &memory, cudaStream_t s)
{
  size_t n = k.m * k.n;
  switch (k.impl) {
  case Impl::ADAM: return [=, g = a.f (0), w = a.f (1), m = a.f (2), v = a.f (3)] { adam (s, g, w, m, v, n, AdamStep ()); };
  case Impl::FLOAT_TO_HALF: return [=, x = a.f (0), y = a.h (1)] { float_to_half (s, x, y, n); };
  case Impl::HALF_TO_FLOAT: return [=, x = a.h (0), y = a.f (1)] { half_to_float (s, x, y, n); };
  case Impl::UNSCALE: return [=, x = a.f (0), flag = memory.flag ()] { unscale (s, x, n, 1, flag); };
  case Impl::SUM_SQUARES: return [=, x = a.f (0), partial = a.f (1)] { sum_squares (s, x, partial, partial + n_square_partials, n); };
  default: return [=, x = a.f (0)] { scale_in_place (s, x, n, 1); };
  }
}

static std::function<void ()>
elementwise_launch (const PlanKernel &k, const Args &a, const PlanMemory &memory, cudaStream_t s)
{
  size_t m = k.m, n = k.n, all = m * n;
  switch (k.impl) {
  case Impl::SOFTMAX: return [=, x = a.h (0), y = a.h (1)] { causal_softmax (s, x, y, m, 0.125f); };
  case Impl::SOFTMAX_BWD: return [=, dy = a.h (0), y = a.h (1), dx = a.h (2)] { causal_softmax_bwd (s, dy, y, dx, m, 0.125f); };
  case Impl::BIAS_GELU: return [=, x = a.h (0), b = a.h (1), y = a.h (2)] { bias_gelu (s, x, b, y, m, n); };
  case Impl::BIAS_ADD: return [=, x = a.h (0), b = a.h (1), y = a.h (2)] { bias_add (s, x, b, y, m, n); };
  case Impl::GELU_BWD: return [=, dy = a.h (0), x = a.h (1), b = a.h (2), dx = a.h (3)] { bias_gelu_bwd (s, dy, x, b, dx, m, n); };
  case Impl::SWIGLU: return [=, x = a.h (0), y = a.h (1)] { swiglu (s, x, y, m, n); };
  case Impl::SWIGLU_BWD: return [=, dy = a.h (0), x = a.h (1), dx = a.h (2)] { swiglu_bwd (s, dy, x, dx, m, n); };
  case Impl::ADD: return [=, x = a.h (0), b = a.h (1), y = a.h (2)] { add (s, x, b, y, all); };
  case Impl::DROPOUT: return [=, x = a.h (0), y = a.h (1), mask = a.b (2)] { dropout (s, x, y, mask, all, p_drop, seed); };
  case Impl::BIAS_DROPOUT_ADD:
    return [=, x = a.h (0), b = a.h (1), r = a.h (2), y = a.h (3), mask = a.b (4)] { bias_dropout_add (s, x, b, r, y, mask, m, n, p_drop, seed); };
  case Impl::DROPOUT_BWD: return [=, dy = a.h (0), mask = a.b (1), dx = a.h (2)] { dropout_bwd (s, dy, mask, dx, all, p_drop); };
  case Impl::GATHER:
    return [=, ids = memory.at<int> (a.op.operands[0]), table = a.h (1), y = a.h (2)] { gather (s, table, ids, y, m, n); };
  default: return [=, x = a.h (0), partial = a.f (1), y = a.h (2)] { column_sum (s, x, partial, y, m, n); };
  }
}

static std::function<void ()>
stream_launch (const Args &a, const PlanMemory &memory, cudaStream_t s)
{
  size_t n_read = a.bytes (0) / sizeof (uint4), n_write = a.bytes (1) / sizeof (uint4);
  unsigned n_blocks = (unsigned) ((std::max (n_read, n_write) + 255) / 256);
  return [=, from = memory.at<uint4> (a.op.operands[0]), to = memory.at<uint4> (a.op.operands[1]), flag = memory.flag ()] {
    if (n_blocks > 0)
      stream_kernel<<<n_blocks, 256, 0, s>>> (from, n_read, to, n_write, flag);
    KB_CHECK_LAUNCH ();
  };
}

static std::function<void ()>
copy_launch (const PlanOp &op, const PlanMemory &memory, cudaStream_t s)
{
  return [=, n = (size_t) op.bytes, is_up = op.to_device, host = memory.host (), device = memory.copied ()] {
    KB_CHECK (is_up ? cudaMemcpyAsync (device, host, n, cudaMemcpyHostToDevice, s)
                    : cudaMemcpyAsync (host, device, n, cudaMemcpyDeviceToHost, s));
  };
}

static std::function<void ()>
hold_launch (uint64_t ps, cudaStream_t s)
{
  return [=] {
    hold_kernel<<<1, 1, 0, s>>> (ps / 1000);
    KB_CHECK_LAUNCH ();
  };
}

std::function<void ()>
make_launch (const Plan &plan, const PlanOp &op, const PlanMemory &memory, cudaStream_t s)
{
  if (op.kind == OpKind::COPY)
    return copy_launch (op, memory, s);
  if (op.kernel < 0 || op.recorded_ps > 0)
    return hold_launch (op.recorded_ps, s);
  const PlanKernel &k = plan.kernels[(size_t) op.kernel];
  Args a = { op, memory };
  switch (k.impl) {
  case Impl::GEMM: return gemm_launch (k, op, memory, s);
  case Impl::ATTENTION:
  case Impl::ATTENTION_BWD:
    return k.dtype == "bf16" ? attention_launch<__nv_bfloat16> (k, op, memory, s) : attention_launch<half> (k, op, memory, s);
  case Impl::LAYERNORM:
  case Impl::LAYERNORM_DGRAD:
  case Impl::LAYERNORM_GAMMA_BETA:
  case Impl::RMSNORM:
  case Impl::RMSNORM_BWD: return norm_launch (k, a, s);
  case Impl::ADAM:
  case Impl::FLOAT_TO_HALF:
  case Impl::HALF_TO_FLOAT:
  case Impl::UNSCALE:
  case Impl::SUM_SQUARES:
  case Impl::SCALE: return optimizer_launch (k, a, memory, s);
  case Impl::MEMSET:
    return [=, y = a.b (0), n = a.bytes (0)] { KB_CHECK (cudaMemsetAsync (y, 0, n, s)); };
  case Impl::STREAM: return stream_launch (a, memory, s);
  default: return elementwise_launch (k, a, memory, s);
  }
}

/* The reader has chosen among ours. */
void
adapt_plan (Plan &, std::string *)
{
}

const char *
product_library ()
{
  return "cublaslt";
}

bool
streams_are_own ()
{
  return false;
}

}
