#include <algorithm>
#include <cstring>
#include <map>

#include "plan.h"

namespace kb {

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

}
