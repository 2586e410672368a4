#include "cudnn_graph.h"

#include "failure.h"

namespace kb {

static constexpr int64_t alignment = 16; /* bytes; of cudaMalloc 256 */

CudnnSizes
dense_strides (const CudnnSizes &s)
{
  return { s[1] * s[2] * s[3], s[2] * s[3], s[3], 1 };
}

/* --- tensors ------------------------------------------------------------------------------- */

CudnnGraph::Tensor
CudnnGraph::add (int64_t id, const CudnnSizes &sizes, const CudnnSizes &strides, CudnnData type, bool is_virtual, bool is_by_value)
{
  CudnnTensor &tensor = tensors_.emplace_back (CudnnTensor { sizes, id, CudnnDescriptor (CudnnKind::TENSOR) });
  CudnnDescriptor &d = tensor.descriptor;
  d.set (CudnnName::TENSOR_UNIQUE_ID, id);
  d.set_enum (CudnnName::TENSOR_DATA_TYPE, CudnnType::DATA_TYPE, type);
  d.set (CudnnName::TENSOR_DIMENSIONS, CudnnType::INT64, 4, sizes.data ());
  d.set (CudnnName::TENSOR_STRIDES, CudnnType::INT64, 4, strides.data ());
  d.set (CudnnName::TENSOR_BYTE_ALIGNMENT, alignment);
  d.set (CudnnName::TENSOR_IS_VIRTUAL, is_virtual);
  d.set (CudnnName::TENSOR_IS_BY_VALUE, is_by_value);
  d.finalize ("a tensor of cuDNN");
  return tensor;
}

CudnnGraph::Tensor
CudnnGraph::memory (int64_t id, const CudnnSizes &sizes, const CudnnSizes &strides, CudnnData type)
{
  return add (id, sizes, strides, type, false, false);
}

CudnnGraph::Tensor
CudnnGraph::temporary (const CudnnSizes &sizes, const CudnnSizes &strides, CudnnData type)
{
  return add (first_own_id + (int64_t) tensors_.size (), sizes, strides, type, true, false);
}

CudnnGraph::Tensor
CudnnGraph::temporary (const CudnnSizes &sizes, CudnnData type)
{
  return temporary (sizes, dense_strides (sizes), type);
}

CudnnGraph::Tensor
CudnnGraph::number (float value)
{
  int64_t id = first_own_id + (int64_t) tensors_.size ();
  numbers_[id] = value;
  return add (id, { 1, 1, 1, 1 }, { 1, 1, 1, 1 }, CudnnData::FLOAT, false, true);
}

/* --- operations ---------------------------------------------------------------------------- */

void
CudnnGraph::matmul (Tensor a, Tensor b, Tensor product)
{
  CudnnDescriptor &how = settings_.emplace_back (CudnnKind::MATMUL), &op = add_operation (CudnnKind::OPERATION_MATMUL);
  how.set_enum (CudnnName::MATMUL_COMP_TYPE, CudnnType::DATA_TYPE, CudnnData::FLOAT);
  how.finalize ("a product of cuDNN");
  op.set (CudnnName::OPERATION_MATMUL_ADESC, a.descriptor);
  op.set (CudnnName::OPERATION_MATMUL_BDESC, b.descriptor);
  op.set (CudnnName::OPERATION_MATMUL_CDESC, product.descriptor);
  op.set (CudnnName::OPERATION_MATMUL_DESC, how);
  op.finalize ("a product of cuDNN");
}

void
CudnnGraph::reduce (CudnnReduction operation, Tensor x, Tensor y)
{
  CudnnDescriptor &how = settings_.emplace_back (CudnnKind::REDUCTION), &op = add_operation (CudnnKind::OPERATION_REDUCTION);
  how.set_enum (CudnnName::REDUCTION_OPERATOR, CudnnType::REDUCTION_OPERATOR, operation);
  how.set_enum (CudnnName::REDUCTION_COMP_TYPE, CudnnType::DATA_TYPE, CudnnData::FLOAT);
  how.finalize ("a reduction of cuDNN");
  op.set (CudnnName::OPERATION_REDUCTION_XDESC, x.descriptor);
  op.set (CudnnName::OPERATION_REDUCTION_YDESC, y.descriptor);
  op.set (CudnnName::OPERATION_REDUCTION_DESC, how);
  op.finalize ("a reduction of cuDNN");
}

void
CudnnGraph::reshape (Tensor x, Tensor y)
{
  CudnnDescriptor &op = add_operation (CudnnKind::OPERATION_RESHAPE);
  op.set (CudnnName::OPERATION_RESHAPE_XDESC, x.descriptor);
  op.set (CudnnName::OPERATION_RESHAPE_YDESC, y.descriptor);
  op.finalize ("a reshape of cuDNN");
}

CudnnDescriptor &
CudnnGraph::add_pointwise (CudnnPointwise mode, CudnnData precision, const int64_t *axis)
{
  CudnnDescriptor &how = settings_.emplace_back (CudnnKind::POINTWISE), &op = add_operation (CudnnKind::OPERATION_POINTWISE);
  how.set_enum (CudnnName::POINTWISE_MODE, CudnnType::POINTWISE_MODE, mode);
  how.set_enum (CudnnName::POINTWISE_MATH_PREC, CudnnType::DATA_TYPE, precision);
  if (axis)
    how.set (CudnnName::POINTWISE_AXIS, *axis);
  how.finalize ("a pointwise operation of cuDNN");
  op.set (CudnnName::OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  return op;
}

void
CudnnGraph::pointwise (CudnnPointwise how, Tensor x, Tensor y)
{
  CudnnDescriptor &op = add_pointwise (how, CudnnData::FLOAT);
  op.set (CudnnName::OPERATION_POINTWISE_XDESC, x.descriptor);
  op.set (CudnnName::OPERATION_POINTWISE_YDESC, y.descriptor);
  op.finalize ("a pointwise operation of cuDNN");
}

void
CudnnGraph::pointwise (CudnnPointwise how, Tensor x, Tensor b, Tensor y)
{
  CudnnDescriptor &op = add_pointwise (how, CudnnData::FLOAT);
  op.set (CudnnName::OPERATION_POINTWISE_XDESC, x.descriptor);
  op.set (CudnnName::OPERATION_POINTWISE_BDESC, b.descriptor);
  op.set (CudnnName::OPERATION_POINTWISE_YDESC, y.descriptor);
  op.finalize ("a pointwise operation of cuDNN");
}

CudnnGraph::Tensor
CudnnGraph::index (Tensor like, int64_t axis)
{
  Tensor y = temporary (like.sizes, CudnnData::INT32);
  CudnnDescriptor &op = add_pointwise (CudnnPointwise::GEN_INDEX, CudnnData::FLOAT, &axis);
  op.set (CudnnName::OPERATION_POINTWISE_XDESC, like.descriptor);
  op.set (CudnnName::OPERATION_POINTWISE_YDESC, y.descriptor);
  op.finalize ("indices of cuDNN");
  return y;
}

CudnnGraph::Tensor
CudnnGraph::compare (CudnnPointwise how, Tensor x, Tensor b)
{
  Tensor y = temporary (x.sizes, CudnnData::BOOLEAN);
  CudnnDescriptor &op = add_pointwise (how, CudnnData::BOOLEAN);
  op.set (CudnnName::OPERATION_POINTWISE_XDESC, x.descriptor);
  op.set (CudnnName::OPERATION_POINTWISE_BDESC, b.descriptor);
  op.set (CudnnName::OPERATION_POINTWISE_YDESC, y.descriptor);
  op.finalize ("a comparison of cuDNN");
  return y;
}

void
CudnnGraph::select (Tensor where, Tensor x, Tensor b, Tensor y)
{
  CudnnDescriptor &op = add_pointwise (CudnnPointwise::BINARY_SELECT, CudnnData::FLOAT);
  op.set (CudnnName::OPERATION_POINTWISE_XDESC, x.descriptor);
  op.set (CudnnName::OPERATION_POINTWISE_BDESC, b.descriptor);
  op.set (CudnnName::OPERATION_POINTWISE_TDESC, where.descriptor);
  op.set (CudnnName::OPERATION_POINTWISE_YDESC, y.descriptor);
  op.finalize ("a selection of cuDNN");
}

/* --- plans --------------------------------------------------------------------------------- */

CudnnPlan::CudnnPlan (std::unique_ptr<CudnnGraph> graph, const CudnnTarget &target)
  : graph_ (std::move (graph)), handle_ (target.handle), operation_graph_ (CudnnKind::OPERATIONGRAPH), numbers_ (graph_->numbers ())
{
  std::vector<void *> operations;
  for (const CudnnDescriptor &operation : graph_->operations ())
    operations.push_back (operation.get ());
  operation_graph_.set (CudnnName::OPERATIONGRAPH_OPS, CudnnType::BACKEND_DESCRIPTOR, (int64_t) operations.size (), operations.data ());
  if (target.handle)
    operation_graph_.set (CudnnName::OPERATIONGRAPH_HANDLE, CudnnType::HANDLE, 1, &target.handle);
  operation_graph_.finalize ("the operation graph of cuDNN");
  choose_engine (target);
}

/* The configurations of engines that cuDNN proposes, best first. */
static std::deque<CudnnDescriptor>
proposals (const CudnnDescriptor &graph, const CudnnTarget &target)
{
  CudnnDescriptor heuristic (CudnnKind::ENGINEHEUR);
  heuristic.set (CudnnName::ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set_enum (CudnnName::ENGINEHEUR_MODE, CudnnType::HEUR_MODE, CudnnHeuristic::MODE_A);
  if (target.device)
    heuristic.set (CudnnName::ENGINEHEUR_DEVICEPROP, *target.device);
  heuristic.finalize ("cuDNN's heuristics");

  auto get = [&] (int64_t n, int64_t *ret_n, void **ret) {
    cudnn ().require (cudnn ().get_attribute (heuristic.get (), (int) CudnnName::ENGINEHEUR_RESULTS,
                                              (int) CudnnType::BACKEND_DESCRIPTOR, n, ret_n, ret),
                      "what cuDNN's heuristics found");
  };
  int64_t n = 0;
  std::deque<CudnnDescriptor> found;
  std::vector<void *> at;
  get (0, &n, nullptr);
  for (int64_t i = 0; i < n; i++)
    at.push_back (found.emplace_back (CudnnKind::ENGINECFG).get ());
  if (n > 0)
    get (n, &n, at.data ());
  while ((int64_t) found.size () > n)
    found.pop_back ();
  return found;
}

bool
CudnnPlan::try_engine (CudnnDescriptor &&config, const CudnnTarget &target, std::string *ret_why)
{
  auto plan = std::make_unique<CudnnDescriptor> (CudnnKind::EXECUTION_PLAN);
  try {
    plan->set (CudnnName::EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (target.handle)
      plan->set (CudnnName::EXECUTION_PLAN_HANDLE, CudnnType::HANDLE, 1, &target.handle);
    if (target.device)
      plan->set (CudnnName::EXECUTION_PLAN_DEVICEPROP, *target.device);
    plan->finalize ("a plan of cuDNN");
  } catch (const Failure &failure) {
    *ret_why = failure.what ();
    return false;
  }
  config_ = std::make_unique<CudnnDescriptor> (std::move (config));
  plan_ = std::move (plan);
  return true;
}

void
CudnnPlan::choose_engine (const CudnnTarget &target)
{
  std::string why = "its heuristics propose none";
  for (CudnnDescriptor &config : proposals (operation_graph_, target))
    if (try_engine (std::move (config), target, &why))
      break;
  if (!plan_)
    throw Failure ("cuDNN has no engine for this graph: " + why);
  int64_t n = 0, bytes = 0;
  cudnn ().require (cudnn ().get_attribute (plan_->get (), (int) CudnnName::EXECUTION_PLAN_WORKSPACE_SIZE, (int) CudnnType::INT64, 1,
                                            &n, &bytes),
                    "the workspace of a cuDNN plan");
  workspace_bytes_ = (size_t) bytes;
}

void
CudnnPlan::bind (const std::map<int64_t, void *> &memory, void *workspace)
{
  std::vector<int64_t> ids;
  std::vector<void *> at;
  for (const auto &tensor : memory) {
    ids.push_back (tensor.first);
    at.push_back (tensor.second);
  }
  for (auto &number : numbers_) {
    ids.push_back (number.first);
    at.push_back (&number.second);
  }
  pack_ = std::make_unique<CudnnDescriptor> (CudnnKind::VARIANT_PACK);
  pack_->set (CudnnName::VARIANT_PACK_UNIQUE_IDS, CudnnType::INT64, (int64_t) ids.size (), ids.data ());
  pack_->set (CudnnName::VARIANT_PACK_DATA_POINTERS, CudnnType::VOID_PTR, (int64_t) at.size (), at.data ());
  pack_->set (CudnnName::VARIANT_PACK_WORKSPACE, CudnnType::VOID_PTR, 1, &workspace);
  pack_->finalize ("the operands of a cuDNN plan");
}

void
CudnnPlan::run ()
{
  cudnn ().require (cudnn ().execute (handle_, plan_->get (), pack_->get ()), "cudnnBackendExecute");
}

}
