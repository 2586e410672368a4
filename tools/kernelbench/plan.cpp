#include "plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "shapes.h"

namespace kb {

/* ---- read from a trace ---- */

static constexpr uint64_t most = 9007199254740991; /* 2^53 - 1 */
static constexpr size_t max_ops = 1u << 20;        /* of a step: each needs two events */

namespace {

using Scope = std::pair<uint64_t, uint64_t>; /* micro-batch, chunk */

/* What the slots of the rank join. */
struct Ranks {
  uint64_t n = 1, role = 0;
  std::map<std::string, uint64_t> members; /* by slot */
};

class Reader {
public:
  Reader (Plan &plan, const Json &root) : plan_ (plan), root_ (root) {}

  void read ();

private:
  void read_ranks ();
  void read_mesh (const Json &mesh);
  void read_list (const Json &ranks);
  void read_static (const Json &role);
  void read_instance (const Json &row);
  void read_op (const Json &json, size_t first, const Scope &scope);
  void read_kernel_op (const Json &json, PlanOp &op);
  void refuse_communication (const Json &json) const;
  int stream_of (const Json &json, const std::string &op) const;
  void read_waits (const Json &json, size_t first, PlanOp &op);
  void read_event (const Json &json, const Scope &scope, const std::string &kind, PlanOp &op);
  void read_buffers (const Json &json, const Scope &scope);

  Plan &plan_;
  const Json &root_;
  Ranks ranks_;
  std::vector<const Json *> kernels_;
  std::vector<bool> has_kernel_;
  std::map<std::pair<Scope, uint64_t>, size_t> events_;
  std::map<std::pair<Scope, uint64_t>, uint64_t> buffers_;
  std::map<int, size_t> last_; /* op of a stream */
  uint64_t in_buffers_ = 0;
};

}

void
Reader::read_mesh (const Json &mesh)
{
  require_keys (mesh, { "tp", "cp", "dp", "pp" });
  auto axis = [&] (const char *key) { return mesh.find (key) ? std::max<uint64_t> (1, mesh.at (key).count (1048576)) : 1; };
  uint64_t tp = axis ("tp"), cp = axis ("cp"), dp = axis ("dp"), pp = axis ("pp");
  ranks_.n = tp * cp * dp * pp;
  ranks_.role = plan_.rank / (tp * cp * dp);
  ranks_.members = { { "tp", tp }, { "cp", cp }, { "dp", dp }, { "ep", 1 }, { "embedding", std::min<uint64_t> (pp, 2) },
                     { "model", tp * pp }, { "world", tp * dp * pp } };
}

void
Reader::read_list (const Json &ranks)
{
  ranks_.n = ranks.items ().size ();
  if (plan_.rank >= ranks_.n)
    return;
  const Json &rank = ranks.items ()[plan_.rank];
  ranks_.role = rank.at ("role").count (most);
  for (const char *slot : { "tp", "cp", "dp", "ep", "embedding", "model", "world" })
    if (rank.find (slot)) {
      const auto &all = root_.at ("communicators").items ();
      uint64_t index = rank.at (slot).count (most);
      if (index >= all.size ())
        rank.at (slot).fail ("there are only " + std::to_string (all.size ()) + " communicators");
      ranks_.members[slot] = all[index].at ("ranks").items ().size ();
    }
}

void
Reader::read_ranks ()
{
  if (root_.find ("ranks"))
    read_list (root_.at ("ranks"));
  else
    read_mesh (root_.at ("mesh"));
  plan_.n_ranks = ranks_.n;
  if (plan_.rank >= ranks_.n)
    root_.fail ("there is no rank " + std::to_string (plan_.rank) + ": the trace has " + std::to_string (ranks_.n));
  if (ranks_.role >= root_.at ("roles").items ().size ())
    root_.at ("roles").fail ("no role " + std::to_string (ranks_.role) + " for rank " + std::to_string (plan_.rank));
}

void
Reader::read_static (const Json &role)
{
  if (!role.find ("static"))
    return;
  for (const auto &member : role.at ("static").members ())
    plan_.static_bytes += bytes_of (member.second);
}

void
Reader::read_kernel_op (const Json &json, PlanOp &op)
{
  op.kind = OpKind::KERNEL;
  if (json.find ("recorded"))
    op.recorded_ps = picoseconds_of (json.at ("recorded"));
  if (!json.find ("kernel")) {
    if (!json.find ("recorded"))
      json.fail ("a kernel needs \"kernel\" or \"recorded\"");
    op.name = json.find ("name") ? json.at ("name").text () : "kernel";
    return;
  }
  uint64_t index = json.at ("kernel").count (most);
  if (index >= kernels_.size ())
    json.at ("kernel").fail ("there are only " + std::to_string (kernels_.size ()) + " kernels");
  if (!has_kernel_[index]) {
    plan_.kernels[index] = read_plan_kernel (*kernels_[index]);
    has_kernel_[index] = true;
  }
  PlanKernel &kernel = plan_.kernels[index];
  set_layout (kernel, op.tag);
  op.kernel = (int) index;
  op.name = json.find ("name") ? json.at ("name").text () : kernel.name;
  if (op.recorded_ps == 0)
    op.operands = operands_of (kernel);
}

/* One GPU has nobody to talk to; a communicator of one rank moves nothing. */
void
Reader::refuse_communication (const Json &json) const
{
  static const char advice[] = "; kernelbench runs on one GPU, so export a job of one (--gpus 1 --tp 1 --pp 1 --dp 1)";
  if (json.at ("op").text () == "p2p")
    json.fail (std::string ("rank ") + std::to_string (plan_.rank) + " sends to or receives from other ranks" + advice);
  const std::string &slot = json.at ("slot").text ();
  auto found = ranks_.members.find (slot);
  if (found == ranks_.members.end ())
    json.at ("slot").fail ("rank " + std::to_string (plan_.rank) + " has no communicator \"" + slot + "\"");
  if (found->second > 1)
    json.fail ("a collective of " + std::to_string (found->second) + " ranks" + advice);
}

int
Reader::stream_of (const Json &json, const std::string &op) const
{
  std::string name = op == "copy" ? "copy" : op == "collective" ? json.at ("slot").text () : "compute";
  if (op == "collective" && name != "tp" && name != "dp")
    name = "global";
  if (json.find ("stream"))
    name = json.at ("stream").text ();
  for (int i = 0; plan_streams[i]; i++)
    if (name == plan_streams[i])
      return i;
  json.at ("stream").fail ("\"" + name + "\" is no stream");
}

void
Reader::read_waits (const Json &json, size_t first, PlanOp &op)
{
  bool is_host = op.kind == OpKind::HOST_SYNC;
  op.waits_for_all = is_host && !json.find ("after");
  if (!json.find ("after"))
    return;
  for (const Json &after : json.at ("after").items ()) {
    size_t awaited;
    if (after.kind () == Json::Kind::NUMBER) {
      uint64_t index = after.count (most);
      if (index >= plan_.ops.size () - first)
        after.fail ("an op waits for earlier ones of its segment only");
      awaited = first + index;
    } else if (after.text ().compare (0, 6, "issue ") == 0) {
      continue; /* the host issues in order */
    } else {
      auto found = std::find_if (plan_streams, plan_streams + 9, [&] (const char *s) { return after.text () == s; });
      if (found == plan_streams + 9)
        after.fail ("\"" + after.text () + "\" is no stream");
      auto last = last_.find ((int) (found - plan_streams));
      if (last == last_.end ())
        continue;
      awaited = last->second;
    }
    const PlanOp &other = plan_.ops[awaited];
    bool has_end = other.kind != OpKind::HOST_SYNC && other.kind != OpKind::HOST_DELAY;
    if (has_end && (is_host || other.stream != op.stream))
      op.waits.push_back (awaited);
  }
}

void
Reader::read_event (const Json &json, const Scope &scope, const std::string &kind, PlanOp &op)
{
  if (!json.find ("event"))
    return;
  auto key = std::make_pair (scope, json.at ("event").count (65534));
  if (kind == "record") {
    events_[key] = plan_.ops.size ();
    return;
  }
  auto found = events_.find (key);
  if (found == events_.end ())
    json.fail ("the event was not recorded before, which kernelbench needs");
  if (plan_.ops[found->second].stream != op.stream)
    op.waits.push_back (found->second);
}

void
Reader::read_buffers (const Json &json, const Scope &scope)
{
  if (!json.find ("buffers"))
    return;
  for (const Json &buffer : json.at ("buffers").items ()) {
    require_keys (buffer, { "alloc", "free", "category", "bytes", "when" });
    bool is_new = buffer.find ("alloc");
    auto key = std::make_pair (scope, buffer.at (is_new ? "alloc" : "free").count (65535));
    uint64_t bytes = bytes_of (buffer.at ("bytes"));
    if (is_new && !buffers_.emplace (key, bytes).second)
      buffer.fail ("the buffer is allocated already");
    if (!is_new && (buffers_.count (key) == 0 || buffers_[key] != bytes))
      buffer.fail ("no buffer of that id and size is allocated");
    in_buffers_ = is_new ? in_buffers_ + bytes : in_buffers_ - bytes;
    if (!is_new)
      buffers_.erase (key);
    plan_.peak_buffer_bytes = std::max (plan_.peak_buffer_bytes, in_buffers_);
  }
}

void
Reader::read_op (const Json &json, size_t first, const Scope &scope)
{
  require_keys (json, { "op", "name", "stream", "tag", "host", "kernel", "recorded", "slot", "coll", "bytes", "dtype", "root",
                        "direction", "layer", "unit", "graph", "event", "after", "transfers", "buffers" });
  const std::string &kind = json.at ("op").text ();
  PlanOp op;
  op.stream = stream_of (json, kind);
  op.name = json.find ("name") ? json.at ("name").text () : kind;
  op.is_in_graph = json.find ("graph") && json.at ("graph").boolean ();
  op.micro_batch = scope.first;
  op.chunk = scope.second;
  op.tag = json.find ("tag") ? json.at ("tag").text () : kind == "kernel" ? "F" : "sync";
  if (json.find ("layer"))
    op.layer = (int) json.at ("layer").count (65534);
  if (kind == "kernel") {
    read_kernel_op (json, op);
  } else if (kind == "collective" || kind == "p2p") {
    refuse_communication (json);
  } else if (kind == "copy") {
    op.kind = OpKind::COPY;
    op.bytes = bytes_of (json.at ("bytes"));
    op.to_device = !json.find ("direction") || json.at ("direction").text () == "to-device";
  } else if (kind == "host-sync") {
    op.kind = OpKind::HOST_SYNC;
  } else if (kind == "host-delay") {
    op.kind = OpKind::HOST_DELAY;
    op.recorded_ps = picoseconds_of (json.at ("recorded"));
  } else if (kind != "record" && kind != "wait") {
    json.at ("op").fail ("\"" + kind + "\" is no op");
  }
  read_waits (json, first, op);
  read_event (json, scope, kind, op);
  read_buffers (json, scope);
  if (op.kind != OpKind::HOST_SYNC && op.kind != OpKind::HOST_DELAY)
    last_[op.stream] = plan_.ops.size ();
  if (plan_.ops.size () == max_ops)
    json.fail ("more than " + std::to_string (max_ops) + " ops in a step");
  plan_.ops.push_back (std::move (op));
}

void
Reader::read_instance (const Json &row)
{
  const auto &cells = row.items ();
  const auto &segments = root_.at ("segments").items ();
  if (cells.empty () || cells.size () > 4)
    row.fail ("expected 1 to 4 whole numbers: segment, micro-batch, chunk, stage");
  uint64_t index = cells[0].count (most);
  if (index >= segments.size ())
    cells[0].fail ("there are only " + std::to_string (segments.size ()) + " segments");
  Scope scope = { cells.size () > 1 ? cells[1].count (most) : 0, cells.size () > 2 ? cells[2].count (65535) : 0 };
  size_t first = plan_.ops.size ();
  for (const Json &op : segments[index].at ("ops").items ()) {
    read_op (op, first, scope);
    plan_.ops.back ().segment = segments[index].at ("name").text ();
  }
}

void
Reader::read ()
{
  if (!root_.find ("schema") || root_.at ("schema").text () != "lockstep.trace/1")
    root_.fail ("no trace: \"schema\" must be \"lockstep.trace/1\" (lockstep trace export writes one)");
  require_keys (root_, { "schema", "name", "source", "model", "strategy", "mesh", "slots", "communicators", "ranks", "kernels",
                         "segments", "roles" });
  plan_.name = root_.at ("name").text ();
  if (root_.find ("kernels"))
    for (const Json &kernel : root_.at ("kernels").items ())
      kernels_.push_back (&kernel);
  plan_.kernels.resize (kernels_.size ());
  has_kernel_.resize (kernels_.size ());
  read_ranks ();
  const Json &role = root_.at ("roles").items ()[ranks_.role];
  read_static (role);
  for (const Json &row : role.at ("instances").items ())
    read_instance (row);
  if (plan_.ops.empty ())
    role.fail ("the step has no ops");
}

Plan
read_plan (const std::string &file, const std::string &text, uint64_t rank)
{
  Json root = Json::parse (file, text);
  Plan plan;
  plan.rank = rank;
  Reader (plan, root).read ();
  return plan;
}

/* ---- which kernel of ours stands for which ---- */

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

/* ---- operands ---- */

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
