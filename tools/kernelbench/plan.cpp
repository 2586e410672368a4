#include "plan.h"

#include <algorithm>
#include <cstring>

namespace kb {

const char *const plan_streams[] = { "compute", "tp", "dp", "pp-fwd", "pp-fwd-recv", "pp-bwd", "pp-bwd-recv", "global", "copy", nullptr };

const char plan_column_names[] = "rank,stream,name,tag,segment,op,micro_batch,chunk,layer";

static constexpr const char *impl_names[] = {
  "gemm", "attention", "attention-bwd", "layernorm", "layernorm-dgrad", "layernorm-gamma-beta", "rmsnorm", "rmsnorm-bwd",
  "softmax", "softmax-bwd", "bias-gelu", "gelu-bwd", "swiglu", "swiglu-bwd", "add", "bias-add", "dropout",
  "bias-dropout-add", "dropout-bwd", "gather", "column-sum", "adam", "float-to-half", "half-to-float", "unscale",
  "sum-squares", "scale", "memset", "stream", "spin",
};
static_assert (sizeof impl_names / sizeof *impl_names == (size_t) Impl::SPIN + 1);

static constexpr uint64_t alignment = 256;

const char *
impl_name (Impl impl)
{
  return impl_names[(int) impl];
}

static uint64_t
rounded (uint64_t bytes)
{
  return (bytes + alignment - 1) / alignment * alignment;
}

static uint64_t
element_bytes (const std::string &dtype)
{
  return dtype == "fp8" || dtype == "byte" ? 1 : dtype == "fp32" || dtype == "tf32" ? 4 : 2;
}

/* Like in all that are named operands: hot or cold input, output, fp32 state. */
static Operand
input (uint64_t bytes)
{
  return { Region::READ, bytes };
}

static Operand
hot (uint64_t bytes)
{
  return { Region::READ, bytes, true };
}

static Operand
output (uint64_t bytes)
{
  return { Region::WRITE, bytes };
}

static uint64_t
stream_write_bytes (const PlanKernel &k)
{
  return (uint64_t) (k.write_share * k.bytes) / 16 * 16;
}

static std::vector<Operand>
gemm_operands (const PlanKernel &k)
{
  uint64_t elt = element_bytes (k.dtype), out_elt = k.accumulates ? 4 : elt == 1 ? 2 : elt;
  Operand rows = hot (elt * k.batch * k.m * k.k), cols = input (elt * k.batch * k.k * k.n);
  rows.is_hot = elt == 2;
  Operand out = output (out_elt * k.batch * k.m * k.n);
  if (k.accumulates)
    out.region = Region::FLOATS;
  return { rows, cols, out };
}

static std::vector<Operand>
attention_operands (const PlanKernel &k)
{
  uint64_t q = 2 * k.batch * k.m * k.k, kv = 2 * k.kv_batch * k.n * k.k, rows = k.batch * k.m;
  Operand lse = { Region::STATS, 4 * rows };
  if (k.impl == Impl::ATTENTION)
    return { hot (q), input (kv), input (kv), output (q), lse };
  return { hot (q), input (q), input (kv), input (kv), input (q), lse,
           { Region::PARTIAL, 4 * rows * (k.k + 1) }, output (q), output (kv), output (kv) };
}

std::vector<Operand>
operands_of (const PlanKernel &k)
{
  uint64_t n = k.m * k.n * k.batch, row = 2 * k.n, x = 2 * n;
  Operand stats = { Region::STATS, 8 * k.m }, mask = { Region::MASK, n }, floats = { Region::FLOATS, 4 * n };
  switch (k.impl) {
  case Impl::GEMM: return gemm_operands (k);
  case Impl::ATTENTION:
  case Impl::ATTENTION_BWD: return attention_operands (k);
  case Impl::LAYERNORM: return { hot (x), input (row), input (row), output (x), stats };
  case Impl::LAYERNORM_DGRAD: return { hot (x), input (x), input (row), stats, output (x) };
  case Impl::LAYERNORM_GAMMA_BETA: return { hot (x), input (x), stats, { Region::PARTIAL, 2 * 16 * 4 * k.n }, output (row), output (row) };
  case Impl::RMSNORM: return { hot (x), input (row), output (x), stats };
  case Impl::RMSNORM_BWD: return { hot (x), input (x), input (row), stats, { Region::PARTIAL, 512 * 4 * k.n }, output (x), output (row) };
  case Impl::SOFTMAX: return { hot (x), output (x) };
  case Impl::SOFTMAX_BWD: return { hot (x), input (x), output (x) };
  case Impl::BIAS_GELU:
  case Impl::BIAS_ADD: return { hot (x), input (row), output (x) };
  case Impl::GELU_BWD: return { hot (x), input (x), input (row), output (x) };
  case Impl::SWIGLU: return { hot (2 * x), output (x) };
  case Impl::SWIGLU_BWD: return { hot (x), input (2 * x), output (2 * x) };
  case Impl::ADD: return { hot (x), input (x), output (x) };
  case Impl::DROPOUT: return { hot (x), output (x), mask };
  case Impl::BIAS_DROPOUT_ADD: return { hot (x), input (row), input (x), output (x), mask };
  case Impl::DROPOUT_BWD: return { hot (x), mask, output (x) };
  case Impl::GATHER: return { { Region::IDS, 4 * k.m }, input (x), output (x) };
  case Impl::COLUMN_SUM: return { hot (x), { Region::PARTIAL, 16 * 4 * k.n }, output (row) };
  case Impl::ADAM: return { floats, floats, floats, { Region::MOMENT, 4 * n } };
  case Impl::FLOAT_TO_HALF: return { floats, output (x) };
  case Impl::HALF_TO_FLOAT: return { input (x), floats };
  case Impl::UNSCALE:
  case Impl::SUM_SQUARES: return { floats, { Region::PARTIAL, 4 * 1025 } };
  case Impl::SCALE: return { floats };
  case Impl::MEMSET: return { output ((uint64_t) k.bytes) };
  case Impl::STREAM: return { input ((uint64_t) k.bytes - stream_write_bytes (k)), output (stream_write_bytes (k)) };
  case Impl::SPIN: break;
  }
  return {};
}

static bool
is_ring (Region region)
{
  return region == Region::READ || region == Region::WRITE;
}

static uint64_t
bytes_in (const PlanOp &op, int region)
{
  uint64_t bytes = 0;
  for (const Operand &operand : op.operands)
    bytes += (int) operand.region == region ? rounded (operand.bytes) : 0;
  return bytes;
}

static void
size_regions (Plan &plan, uint64_t max_ring_bytes)
{
  for (int r = 0; r < n_regions; r++) {
    uint64_t per_step = 0, largest = 0;
    for (const PlanOp &op : plan.ops) {
      per_step += bytes_in (op, r);
      largest = std::max (largest, bytes_in (op, r));
    }
    plan.region_bytes[r] = is_ring ((Region) r) ? std::max (std::min (per_step, max_ring_bytes), largest) : largest;
  }
}

/* An op's operands lie in a piece of a ring, and from the start of the others. */
static void
start_op (const Plan &plan, const PlanOp &op, uint64_t (&cursor)[n_regions])
{
  for (int r = 0; r < n_regions; r++)
    if (!is_ring ((Region) r) || cursor[r] + bytes_in (op, r) > plan.region_bytes[r])
      cursor[r] = 0;
}

void
place_operands (Plan &plan, uint64_t max_ring_bytes)
{
  uint64_t cursor[n_regions] = {};
  std::vector<Operand> last (sizeof plan_streams / sizeof *plan_streams); /* 16-bit output per stream; 0 bytes: none */
  size_regions (plan, max_ring_bytes);
  for (PlanOp &op : plan.ops) {
    start_op (plan, op, cursor);
    uint64_t writes_from = cursor[(int) Region::WRITE], writes_to = writes_from + bytes_in (op, (int) Region::WRITE);
    Operand &before = last[(size_t) op.stream];
    bool is_16_bit = op.kernel >= 0 && plan.kernels[(size_t) op.kernel].impl != Impl::STREAM
      && plan.kernels[(size_t) op.kernel].impl != Impl::HALF_TO_FLOAT && plan.kernels[(size_t) op.kernel].impl != Impl::MEMSET
      && element_bytes (plan.kernels[(size_t) op.kernel].dtype) <= 2;
    Operand written = { Region::WRITE, 0 };
    for (Operand &operand : op.operands) {
      int r = (int) operand.region;
      bool is_overwritten = before.offset < writes_to && writes_from < before.offset + operand.bytes;
      if (operand.is_hot && before.bytes >= operand.bytes && !is_overwritten) {
        operand.region = before.region;
        operand.offset = before.offset;
      } else {
        operand.offset = cursor[r];
        cursor[r] += rounded (operand.bytes);
      }
      if (operand.region == Region::WRITE && !operand.is_hot && operand.bytes > written.bytes)
        written = operand;
    }
    if (op.kind == OpKind::KERNEL)
      before = is_16_bit ? written : Operand { Region::WRITE, 0 };
  }
}

static std::string
shape_of (const PlanKernel &k)
{
  std::string text = k.batch > 1 ? std::to_string (k.batch) + "*" : "";
  text += std::to_string (k.m) + "x" + std::to_string (k.n);
  return k.k > 0 ? text + "x" + std::to_string (k.k) : text;
}

static std::string
quoted (const std::string &text)
{
  if (text.find_first_of (",\"\r\n") == std::string::npos)
    return text;
  std::string out = "\"";
  for (char c : text)
    out += c == '"' ? std::string ("\"\"") : std::string (1, c);
  return out + "\"";
}

std::string
plan_columns (const Plan &plan, size_t i)
{
  const PlanOp &op = plan.ops[i];
  bool is_host = op.kind == OpKind::HOST_SYNC || op.kind == OpKind::HOST_DELAY;
  return std::to_string (plan.rank) + "," + (is_host ? "host" : plan_streams[op.stream]) + "," + quoted (op.name) + "," + op.tag
    + "," + quoted (op.segment) + "," + std::to_string (i) + "," + std::to_string (op.micro_batch) + "," + std::to_string (op.chunk)
    + "," + (op.layer < 0 ? "" : std::to_string (op.layer));
}

static std::string
what_runs (const Plan &plan, const PlanOp &op)
{
  switch (op.kind) {
  case OpKind::COPY: return std::string (op.to_device ? "copy-host-to-device" : "copy-device-to-host") + ",,byte," + std::to_string (op.bytes);
  case OpKind::JOIN: return "join,,,";
  case OpKind::HOST_SYNC: return "host-sync,,,";
  case OpKind::HOST_DELAY: return "host-delay,,,";
  case OpKind::KERNEL: break;
  }
  if (op.kernel < 0)
    return "spin " + std::to_string (op.recorded_ps) + "ps,,,";
  const PlanKernel &k = plan.kernels[(size_t) op.kernel];
  std::string text = impl_name (op.recorded_ps > 0 ? Impl::SPIN : k.impl);
  if (op.recorded_ps > 0)
    text += " " + std::to_string (op.recorded_ps) + "ps";
  else if (k.impl == Impl::GEMM)
    text += " " + k.layout + (k.accumulates ? " += fp32" : "");
  else if (k.impl == Impl::ATTENTION || k.impl == Impl::ATTENTION_BWD)
    text += " kv=" + std::to_string (k.kv_batch) + (k.is_causal ? " causal" : "");
  else if (k.impl == Impl::STREAM)
    text += " writing " + std::to_string (stream_write_bytes (k));
  return text + "," + shape_of (k) + "," + k.dtype + "," + std::to_string ((uint64_t) k.bytes);
}

std::string
plan_text (const Plan &plan)
{
  std::string text = std::string (plan_column_names) + ",runs,shape,dtype,bytes,waits\n";
  for (size_t i = 0; i < plan.ops.size (); i++) {
    const PlanOp &op = plan.ops[i];
    text += plan_columns (plan, i) + "," + what_runs (plan, op) + ",";
    for (size_t wait : op.waits)
      text += (wait == op.waits[0] ? "" : " ") + std::to_string (wait);
    text += op.waits_for_all ? "all\n" : "\n";
  }
  return text;
}

std::string
plan_summary (const Plan &plan)
{
  size_t n_kernels = 0, n_streamed = 0, n_recorded = 0, n_in_graph = 0;
  for (const PlanOp &op : plan.ops) {
    n_kernels += op.kind == OpKind::KERNEL;
    n_in_graph += op.is_in_graph;
    n_recorded += op.recorded_ps > 0 && op.kind == OpKind::KERNEL;
    n_streamed += op.kernel >= 0 && op.recorded_ps == 0 && plan.kernels[(size_t) op.kernel].impl == Impl::STREAM;
  }
  uint64_t operands = 0;
  for (uint64_t bytes : plan.region_bytes)
    operands += bytes;
  return "plan " + plan.name + ": rank " + std::to_string (plan.rank) + " of " + std::to_string (plan.n_ranks) + ", "
    + std::to_string (plan.ops.size ()) + " ops, " + std::to_string (n_kernels) + " kernels, of which "
    + std::to_string (n_streamed) + " only stream as many bytes and " + std::to_string (n_recorded) + " only last as long\n"
    + (n_in_graph > 0 ? std::to_string (n_in_graph) + " kernels of a CUDA graph are launched one by one here\n" : "")
    + "memory: " + std::to_string (plan.static_bytes) + " bytes static, " + std::to_string (plan.peak_buffer_bytes)
    + " at most in buffers; " + std::to_string (operands) + " of operands here\n";
}

}
