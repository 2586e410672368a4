/* Ops of a plan as calls of plain loops. */
#include <cmath>
#include <thread>

#include "../plan_launch.h"
#include "kernels.h"

namespace kb {

const char *
product_library ()
{
  return "own";
}

bool
streams_are_own ()
{
  return true;
}

static std::string
problem_of (const PlanKernel &k)
{
  if (k.impl == Impl::ATTENTION || k.impl == Impl::ATTENTION_BWD)
    return "the host has no flash attention (\"" + k.name + "\"): take the job with --attention unfused";
  if (k.impl == Impl::GEMM && k.dtype != "bf16")
    return "the host's products are of bf16; \"" + k.name + "\" is of " + k.dtype;
  return "";
}

void
adapt_plan (Plan &plan, std::string *ret_problem)
{
  for (PlanKernel &k : plan.kernels) {
    if (std::string problem = problem_of (k); !problem.empty ())
      *ret_problem = problem;
    if (k.impl != Impl::GEMM && k.impl != Impl::MEMSET && k.impl != Impl::SPIN)
      k.impl = Impl::STREAM;
  }
  for (PlanOp &op : plan.ops)
    if (op.kernel >= 0 && op.recorded_ps == 0)
      op.operands = operands_of (plan.kernels[(size_t) op.kernel]);
}

static std::function<void ()>
gemm_launch (const PlanKernel &k, const PlanOp &op, const PlanMemory &memory)
{
  HostGemm gemm = { k.m, k.n, k.k, k.batch, k.layout == "TN" ? "TN" : k.layout == "NN" ? "NN" : "NT", k.accumulates,
                    1 / std::sqrt ((float) k.k) };
  auto a = memory.at<__nv_bfloat16> (op.operands[0]), b = memory.at<__nv_bfloat16> (op.operands[1]);
  void *c = memory.at<void> (op.operands[2]);
  return [=] { host_gemm (gemm, a, b, c); };
}

static std::function<void ()>
copy_launch (const PlanOp &op, const PlanMemory &memory)
{
  void *host = memory.host (), *device = memory.copied ();
  bool is_up = op.to_device;
  return [=, n = (size_t) op.bytes] { KB_CHECK (cudaMemcpy (is_up ? device : host, is_up ? host : device, n, cudaMemcpyHostToDevice)); };
}

static void
spin (uint64_t ps)
{
  auto until = std::chrono::steady_clock::now () + std::chrono::nanoseconds (ps / 1000);
  while (std::chrono::steady_clock::now () < until)
    ;
}

std::function<void ()>
make_launch (const Plan &plan, const PlanOp &op, const PlanMemory &memory, cudaStream_t)
{
  if (op.kind == OpKind::COPY)
    return copy_launch (op, memory);
  if (op.kernel < 0 || op.recorded_ps > 0)
    return [ps = op.recorded_ps] { spin (ps); };
  const PlanKernel &k = plan.kernels[(size_t) op.kernel];
  if (k.impl == Impl::GEMM)
    return gemm_launch (k, op, memory);
  if (k.impl == Impl::MEMSET)
    return [y = memory.at<uint8_t> (op.operands[0]), n = (size_t) op.operands[0].bytes] { KB_CHECK (cudaMemset (y, 0, n)); };
  const Operand &in = op.operands[0], &out = op.operands[1];
  return [from = memory.at<void> (in), to = memory.at<void> (out), n_read = (size_t) in.bytes, n_write = (size_t) out.bytes,
          flag = memory.flag ()] { host_stream (from, n_read, to, n_write, flag); };
}

}
