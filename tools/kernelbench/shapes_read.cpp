#include "plan_kernels.h"

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

}
