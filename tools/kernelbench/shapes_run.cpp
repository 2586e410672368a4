/* Times the kernels of a job one by one: isolated, as the products and attention of the groups.
 *
 * The group of these rows is `shapes`, their names are the job's; the note has the kind of the
 * kernel as the simulator calls it. A kernel that only streams as many bytes as the job's, for
 * want of one of ours, is a stand-in. */
#include "plan.h"
#include "plan_launch.h"

namespace kb {

static Plan
plan_of (const PlanKernel &kernel)
{
  Plan plan;
  PlanOp op;
  plan.name = op.name = kernel.name;
  op.kind = OpKind::KERNEL;
  op.kernel = 0;
  op.operands = operands_of (kernel);
  plan.kernels.push_back (kernel);
  plan.ops.push_back (op);
  return plan;
}

static Shape
read_shape (const Json &json)
{
  Shape shape;
  shape.name = json.at ("name").text ();
  try {
    PlanKernel kernel = read_plan_kernel (json);
    set_layout (kernel, json.find ("tag") ? json.at ("tag").text () : "");
    shape.plan = plan_of (kernel);
  } catch (const PlanError &error) {
    shape.problem = error.what ();
  }
  return shape;
}

std::vector<Shape>
read_shapes (const std::string &file, const std::string &text)
{
  Json root = Json::parse (file, text);
  std::string schema = root.find ("schema") ? root.at ("schema").text () : "";
  if (schema != "lockstep.shapes/1" && schema != "lockstep.trace/1")
    root.fail ("no shapes: \"schema\" must be \"lockstep.shapes/1\" (lockstep kernel --list-shapes) or \"lockstep.trace/1\"");
  std::vector<Shape> shapes;
  for (const Json &kernel : root.at ("kernels").items ())
    shapes.push_back (read_shape (kernel));
  return shapes;
}

static constexpr double case_s = 0.5;
static constexpr uint64_t max_ring_bytes = 4ull << 30;

static std::string
shape_text (const PlanKernel &k)
{
  auto n = [] (uint64_t size) { return std::to_string (size); };
  if (k.impl == Impl::ATTENTION || k.impl == Impl::ATTENTION_BWD) /* its sequences count as heads */
    return "1x" + n (k.m) + "x" + n (k.batch) + "x" + n (k.kv_batch) + "x" + n (k.k);
  std::string batch = k.batch > 1 ? n (k.batch) + "*" : "";
  return batch + n (k.m) + "x" + n (k.n) + (k.impl == Impl::GEMM ? "x" + n (k.k) : "");
}

static const char *
implementation_of (const PlanKernel &k)
{
  return k.impl == Impl::GEMM ? product_library () : k.impl == Impl::STREAM && !streams_are_own () ? "stand-in" : "own";
}

Row
row_of_shape (const PlanKernel &k)
{
  Row row { "shapes", k.name, shape_text (k), k.dtype, k.bytes, k.flops };
  row.note = "kind=" + k.kind;
  if (k.impl == Impl::GEMM)
    row.note += " layout=" + k.layout + (k.accumulates ? " out=fp32-accumulate" : "");
  if (k.impl == Impl::ATTENTION || k.impl == Impl::ATTENTION_BWD)
    row.note += k.is_causal ? " causal=1" : " causal=0";
  row.implementation = implementation_of (k);
  return row;
}

static void
measure (Bench &bench, Plan &plan)
{
  const PlanKernel &kernel = plan.kernels[0];
  bench.measure (row_of_shape (kernel), case_s, [&] (Row &) {
    std::string objection = bench.checks ().objection (std::vector<std::string> { check_of (kernel) });
    if (!objection.empty ())
      throw Failure (objection);
    place_operands (plan, max_ring_bytes);
    PlanMemory memory (plan);
    return bench.isolated (make_launch (plan, plan.ops[0], memory, bench.stream ()));
  });
}

void
run_shapes (Bench &bench, const std::string &file, const std::string &text)
{
  bench.wake_up ();
  for (Shape &shape : read_shapes (file, text)) {
    if (shape.problem.empty ())
      adapt_plan (shape.plan, &shape.problem);
    if (shape.problem.empty ())
      measure (bench, shape.plan);
    else
      bench.leave_out (Row { "shapes", shape.name, "", "" }, shape.problem);
  }
}

}
