#include "plan_launch.h"

namespace kb {

/* Those whose check is called otherwise than the kernel; the others have their own name. */
static const struct {
  Impl impl;
  const char *check;
} named[] = {
  { Impl::LAYERNORM, "layernorm-fwd" },   { Impl::LAYERNORM_DGRAD, "layernorm-dgrad" },
  { Impl::LAYERNORM_GAMMA_BETA, "layernorm-gamma-beta-grad" },
  { Impl::RMSNORM, "rmsnorm-fwd" },       { Impl::SOFTMAX, "scale-mask-softmax" },
  { Impl::SOFTMAX_BWD, "scale-mask-softmax-bwd" },
  { Impl::GATHER, "embedding-lookup" },   { Impl::COLUMN_SUM, "bias-grad" },
  { Impl::FLOAT_TO_HALF, "weight-copy" }, { Impl::HALF_TO_FLOAT, "main-grad-copy" },
  { Impl::UNSCALE, "grad-unscale" },      { Impl::SUM_SQUARES, "grad-norm" },
  { Impl::SCALE, "grad-clip" },
};

std::string
check_of (const PlanKernel &k)
{
  if (k.impl == Impl::GEMM)
    return std::string ("gemm ") + (k.layout == "TN" ? "forward" : k.layout == "NN" ? "dgrad" : k.accumulates ? "wgrad" : "wgrad16")
           + " " + k.dtype;
  if (k.impl == Impl::ATTENTION || k.impl == Impl::ATTENTION_BWD)
    return "attention " + k.dtype + (k.impl == Impl::ATTENTION ? " fwd" : " bwd");
  for (const auto &n : named)
    if (k.impl == n.impl)
      return n.check;
  return impl_name (k.impl);
}

}
