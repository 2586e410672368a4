/* Times the kernels of a job one by one: isolated, as the products and attention of the groups.
 *
 * The group of these rows is `shapes`, their names are the job's; the note has the kind of the
 * kernel as the simulator calls it. A kernel that only streams as many bytes as the job's, for
 * want of one of ours, is a stand-in. */
#include "plan_launch.h"

namespace kb {

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
