#include "plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "shapes.h"

namespace kb {

static constexpr uint64_t most = 9007199254740991; /* 2^53 - 1 */
static constexpr double lower_triangle = (softmax_cols + 1.0) / (2.0 * softmax_cols);

/* Kernels of 16-bit tensors and of the optimizer that have one of ours of the same access
 * pattern; it is taken if it also moves as many bytes per element (src/model/operators_*.c
 * has the names and the bytes). Without ours: which share of the bytes is written. */
static const struct {
  const char *name;
  Impl impl;
  double bytes_per_element, write_share;
} named[] = {
  { "layernorm-fwd", Impl::LAYERNORM, 4, 1.0 / 2 },
  { "layernorm-dgrad", Impl::LAYERNORM_DGRAD, 6, 1.0 / 3 },
  { "layernorm-gamma-beta-grad", Impl::LAYERNORM_GAMMA_BETA, 4, 0 },
  { "rmsnorm-fwd", Impl::RMSNORM, 4, 1.0 / 2 },
  { "rmsnorm-bwd", Impl::RMSNORM_BWD, 6, 1.0 / 3 },
  { "scale-mask-softmax", Impl::SOFTMAX, 2 * (1 + lower_triangle), 2.0 / 3 },
  { "scale-mask-softmax-bwd", Impl::SOFTMAX_BWD, 2 * (1 + 2 * lower_triangle), 1.0 / 2 },
  { "bias-gelu", Impl::BIAS_GELU, 4, 1.0 / 2 },
  { "gelu-bwd", Impl::GELU_BWD, 6, 1.0 / 3 },
  { "swiglu", Impl::SWIGLU, 6, 1.0 / 3 },
  { "swiglu-bwd", Impl::SWIGLU_BWD, 10, 2.0 / 5 },
  { "bias-add", Impl::ADD, 6, 1.0 / 3 }, /* x, residual; the bias is a row */
  { "residual-add", Impl::ADD, 6, 1.0 / 3 },
  { "residual-grad-add", Impl::ADD, 6, 1.0 / 3 },
  { "position-add", Impl::ADD, 6, 1.0 / 3 },
  { "grad-accumulate", Impl::ADD, 6, 1.0 / 3 },
  { "embedding-grad-accumulate", Impl::ADD, 6, 1.0 / 3 },
  { "qkv-bias", Impl::BIAS_ADD, 4, 1.0 / 2 },
  { "attention-dropout", Impl::DROPOUT, 5, 3.0 / 5 },
  { "embedding-dropout", Impl::DROPOUT, 5, 3.0 / 5 },
  { "bias-dropout-add", Impl::BIAS_DROPOUT_ADD, 7, 3.0 / 7 },
  { "dropout-add", Impl::BIAS_DROPOUT_ADD, 7, 3.0 / 7 },
  { "attention-dropout-bwd", Impl::DROPOUT_BWD, 5, 2.0 / 5 },
  { "embedding-dropout-bwd", Impl::DROPOUT_BWD, 5, 2.0 / 5 },
  { "bias-dropout-add-bwd", Impl::DROPOUT_BWD, 5, 2.0 / 5 },
  { "embedding-lookup", Impl::GATHER, 4, 1.0 / 2 },
  { "row-bias-grad", Impl::COLUMN_SUM, 2, 0 },
  { "fc1-bias-grad", Impl::COLUMN_SUM, 2, 0 },
  { "qkv-bias-grad", Impl::COLUMN_SUM, 2, 0 },
  { "adam", Impl::ADAM, 28, 3.0 / 7 },
  { "weight-copy", Impl::FLOAT_TO_HALF, 6, 1.0 / 3 },
  { "main-grad-copy", Impl::HALF_TO_FLOAT, 6, 2.0 / 3 },
  { "grad-unscale", Impl::UNSCALE, 8, 1.0 / 2 },
  { "grad-norm", Impl::SUM_SQUARES, 4, 0 },
  { "grad-clip", Impl::SCALE, 8, 1.0 / 2 },
  { "logits-to-fp32", Impl::STREAM, 0, 2.0 / 3 },
  { "logits-grad-from-fp32", Impl::STREAM, 0, 1.0 / 3 },
  { "logits-max", Impl::STREAM, 0, 0 },
  { "logits-sum", Impl::STREAM, 0, 0 },
  { "embedding-grad", Impl::STREAM, 0, 1.0 / 3 },
  { "position-grad", Impl::STREAM, 0, 1.0 / 3 },
};

static const char *const kinds[] = { "gemm", "batched-gemm", "attention-fwd", "attention-bwd", "softmax", "norm",
                                     "elementwise", "reduction", "embedding", "cross-entropy", "optimizer", "memset" };
static const char *const dtypes[] = { "fp32", "tf32", "fp16", "bf16", "fp8", "byte" };

/* Of products that no name ending tells. */
static const struct {
  const char *name, *layout;
} products[] = {
  { "scores-bmm", "TN" }, { "dp-bmm", "TN" }, { "context-bmm", "NN" }, { "dq-bmm", "NN" }, { "dk-bmm", "NT" }, { "dv-bmm", "NT" },
};

void
require_keys (const Json &object, std::initializer_list<const char *> keys)
{
  for (const auto &member : object.members ()) {
    const std::string &key = member.first;
    if (key.compare (0, 2, "x-") != 0 && std::none_of (keys.begin (), keys.end (), [&] (const char *k) { return key == k; }))
      member.second.fail ("unknown key \"" + key + "\"");
  }
}

template <size_t N> static const std::string &
one_of (const Json &json, const char *const (&names)[N])
{
  if (std::none_of (names, names + N, [&] (const char *name) { return json.text () == name; }))
    json.fail ("\"" + json.text () + "\" is not one of those in traces/README.md");
  return json.text ();
}

static bool
ends_with (const std::string &text, const char *end)
{
  size_t n = strlen (end);
  return text.size () >= n && text.compare (text.size () - n, n, end) == 0;
}

static bool
is_about (double a, double b)
{
  return std::fabs (a - b) <= 1e-6 * b;
}

/* Whether ours takes that shape; otherwise the kernel streams. */
static bool
impl_takes (const PlanKernel &k, Impl impl)
{
  bool is_16_bit = k.dtype == "bf16" || k.dtype == "fp16";
  double elements = (double) k.m * (double) k.n * (double) k.batch;
  bool fits = elements < 8.0 * 4294967295.0 && k.n % 8 == 0 && k.batch == 1; /* 32-bit counts of vectors */
  switch (impl) {
  case Impl::LAYERNORM:
  case Impl::LAYERNORM_DGRAD:
  case Impl::RMSNORM:
  case Impl::RMSNORM_BWD: return fits && is_16_bit && norm_supports (k.n);
  case Impl::LAYERNORM_GAMMA_BETA:
  case Impl::COLUMN_SUM: return fits && is_16_bit && k.n % reduce_cols == 0;
  case Impl::SOFTMAX:
  case Impl::SOFTMAX_BWD: return fits && is_16_bit && k.n == softmax_cols;
  case Impl::ADAM:
  case Impl::FLOAT_TO_HALF:
  case Impl::UNSCALE:
  case Impl::SUM_SQUARES:
  case Impl::SCALE: return fits && k.dtype == "fp32";
  default: return fits && is_16_bit;
  }
}

static void
choose_product (const Json &json, PlanKernel &k)
{
  double elt = k.dtype == "fp8" || k.dtype == "byte" ? 1 : k.dtype == "fp32" || k.dtype == "tf32" ? 4 : 2;
  double m = (double) k.m, n = (double) k.n, inner = (double) k.k, batch = (double) k.batch;
  k.impl = Impl::GEMM;
  if (k.m == 0 || k.n == 0 || k.k == 0 || k.m > 2147483647 || k.n > 2147483647 || k.k > 2147483647 || k.batch > 65535)
    json.fail ("the product \"" + k.name + "\" needs m, n and k from 1 to 2147483647, and batch at most 65535");
  if (k.dtype == "byte")
    json.fail ("the product \"" + k.name + "\" cannot be of bytes");
  if (k.dtype == "fp8" && (k.m % 16 || k.n % 16 || k.k % 16))
    json.fail ("the product \"" + k.name + "\": cuBLASLt takes fp8 in multiples of 16 only");
  k.accumulates = is_about (k.bytes, batch * (elt * (m * inner + inner * n) + 8 * m * n));
  for (const auto &p : products)
    if (k.name == p.name)
      k.layout = p.layout;
  if (k.layout.empty () && ends_with (k.name, "-dgrad"))
    k.layout = "NN";
  if (k.layout.empty () && ends_with (k.name, "-wgrad"))
    k.layout = "NT";
}

void
set_layout (PlanKernel &k, const std::string &tag)
{
  if (k.impl != Impl::GEMM || !k.layout.empty ())
    return;
  k.layout = k.accumulates || tag == "W" ? "NT" : tag == "I" ? "NN" : "TN";
}

/* Query heads per key/value head, as the bytes tell: Q and O, K and V of 16 bits each, twice
 * as many backward, with or without the fp32 log-sums. 1 if they fit no number. */
static uint64_t
heads_per_group (const PlanKernel &k, bool is_backward)
{
  double q = (double) k.batch * (double) k.m * (double) k.k, lse = 4 * (double) k.batch * (double) k.m;
  for (uint64_t group = 1; group <= k.batch; group++) {
    double bytes = (is_backward ? 2 : 1) * 2 * (2 * q + 2 * q / (double) group);
    if (k.batch % group == 0 && (is_about (k.bytes, bytes) || is_about (k.bytes, bytes + lse)))
      return group;
  }
  return 1;
}

/* The FLOPs say whether it is causal. */
static void
choose_attention (const Json &json, PlanKernel &k)
{
  bool is_backward = k.kind == "attention-bwd";
  double whole = 4.0 * (double) k.batch * (double) k.m * (double) k.n * (double) k.k * (is_backward ? 2.5 : 1);
  if (k.batch > 65535)
    json.fail ("the attention \"" + k.name + "\": more than 65535 heads");
  k.impl = is_backward ? Impl::ATTENTION_BWD : Impl::ATTENTION;
  k.is_causal = k.flops < 0.75 * whole;
  k.kv_batch = k.batch / heads_per_group (k, is_backward);
  AttentionShape shape = { 1, k.m, k.batch, k.kv_batch, k.k, k.is_causal };
  if ((k.dtype != "bf16" && k.dtype != "fp16") || k.m != k.n || !attention_supports (shape))
    json.fail ("the attention \"" + k.name + "\": kernelbench has it in bf16 and fp16, for heads of width 64, 96 and 128 and as many "
               "queries as keys, a multiple of 64");
}

static void
choose_stream (PlanKernel &k)
{
  double per_element = k.bytes / std::max (1.0, (double) k.m * (double) k.n * (double) k.batch);
  if (k.kind == "reduction")
    k.write_share = 0;
  for (const auto &n : named)
    if (k.name == n.name) {
      k.write_share = n.write_share;
      if (n.impl != Impl::STREAM && is_about (per_element, n.bytes_per_element) && impl_takes (k, n.impl))
        k.impl = n.impl;
    }
}

PlanKernel
read_plan_kernel (const Json &json)
{
  require_keys (json, { "name", "kind", "dtype", "m", "n", "k", "batch", "flops", "bytes", "access", "tag" });
  PlanKernel k;
  auto count = [&] (const char *key, uint64_t otherwise) { return json.find (key) ? json.at (key).count (most) : otherwise; };
  k.name = json.at ("name").text ();
  k.kind = one_of (json.at ("kind"), kinds);
  k.dtype = one_of (json.at ("dtype"), dtypes);
  k.m = count ("m", 0);
  k.n = count ("n", 0);
  k.k = count ("k", 0);
  k.batch = count ("batch", 1);
  bool is_product = k.kind == "gemm" || k.kind == "batched-gemm";
  double elt = k.dtype == "fp8" || k.dtype == "byte" ? 1 : k.dtype == "fp32" || k.dtype == "tf32" ? 4 : 2;
  double m = (double) k.m, n = (double) k.n, inner = (double) k.k, batch = (double) k.batch;
  k.flops = json.find ("flops") ? json.at ("flops").number () : is_product ? 2 * m * n * inner * batch : 0;
  k.bytes = json.find ("bytes") ? (double) bytes_of (json.at ("bytes"))
            : is_product        ? batch * elt * (m * inner + inner * n + m * n)
                                : (json.fail ("missing key \"bytes\""), 0.0);
  if (is_product)
    choose_product (json, k);
  else if (k.kind == "attention-fwd" || k.kind == "attention-bwd")
    choose_attention (json, k);
  else if (k.kind == "memset")
    k.impl = Impl::MEMSET;
  else
    choose_stream (k);
  return k;
}

}
