#include "cudnn.h"

#include <cmath>
#include <limits>

#include <dlfcn.h>

#include "failure.h"

namespace kb {

static constexpr size_t first_version = 90000; /* the numbers are those of cuDNN 9 */

static void *
open_library ()
{
  for (const char *name : { "libcudnn.so.9", "libcudnn_graph.so.9" })
    if (void *library = dlopen (name, RTLD_NOW))
      return library;
  throw Failure ("libcudnn.so.9 is not found: install cuDNN 9, or name its folder in LD_LIBRARY_PATH");
}

template <typename F> static void
find (void *library, const char *name, F *ret)
{
  *ret = reinterpret_cast<F> (dlsym (library, name));
  if (!*ret)
    throw Failure (std::string ("libcudnn.so.9 has no ") + name);
}

/* 91900 is 9.19.0; before 9, 8902 was 8.9.2. */
static std::string
version_text (size_t version)
{
  size_t major = version < first_version ? version / 1000 : version / 10000, minor = version / 100 % (version < first_version ? 10 : 100);
  return std::to_string (major) + "." + std::to_string (minor) + "." + std::to_string (version % 100);
}

static CudnnApi
load ()
{
  CudnnApi api;
  void *library = open_library ();
  find (library, "cudnnGetVersion", &api.version);
  if (api.version () < first_version)
    throw Failure ("cuDNN " + version_text (api.version ()) + " is too old: attention needs 9.0");
  find (library, "cudnnGetErrorString", &api.error_string);
  find (library, "cudnnGetLastErrorString", &api.last_error);
  find (library, "cudnnCreate", &api.create);
  find (library, "cudnnDestroy", &api.destroy);
  find (library, "cudnnSetStream", &api.set_stream);
  find (library, "cudnnBackendCreateDescriptor", &api.create_descriptor);
  find (library, "cudnnBackendDestroyDescriptor", &api.destroy_descriptor);
  find (library, "cudnnBackendSetAttribute", &api.set_attribute);
  find (library, "cudnnBackendGetAttribute", &api.get_attribute);
  find (library, "cudnnBackendFinalize", &api.finalize);
  find (library, "cudnnBackendExecute", &api.execute);
  return api;
}

const CudnnApi &
cudnn ()
{
  static const CudnnApi api = load (); /* tried again by the next call if it throws */
  return api;
}

void
CudnnApi::require (int status, const std::string &what) const
{
  if (status == 0)
    return;
  char why[512] = "";
  last_error (why, sizeof why);
  std::string text = what + ": " + error_string (status);
  throw Failure (why[0] ? text + ": " + why : text);
}

CudnnDescriptor::CudnnDescriptor (CudnnKind kind)
{
  cudnn ().require (cudnn ().create_descriptor ((int) kind, &at_), "cudnnBackendCreateDescriptor");
}

CudnnDescriptor::~CudnnDescriptor ()
{
  if (at_)
    cudnn ().destroy_descriptor (at_);
}

void
CudnnDescriptor::set (CudnnName name, CudnnType type, int64_t n, const void *values)
{
  cudnn ().require (cudnn ().set_attribute (at_, (int) name, (int) type, n, values),
                    "attribute " + std::to_string ((int) name) + " of a cuDNN descriptor");
}

void
CudnnDescriptor::set (CudnnName name, const CudnnDescriptor &value)
{
  set (name, CudnnType::BACKEND_DESCRIPTOR, 1, &value.at_);
}

void
CudnnDescriptor::set (CudnnName name, int64_t value)
{
  set (name, CudnnType::INT64, 1, &value);
}

void
CudnnDescriptor::set (CudnnName name, bool value)
{
  set (name, CudnnType::BOOLEAN, 1, &value);
}

void
CudnnDescriptor::finalize (const std::string &what)
{
  cudnn ().require (cudnn ().finalize (at_), what);
}

/* ---- graphs and their plans ---- */

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

/* ---- attention ---- */

using Tensor = CudnnGraph::Tensor;
using P = CudnnPointwise;

static constexpr size_t key_tile = 128; /* up to 9.15 a backward needs a padding mask for other lengths */

/* Facts of cudnn-frontend's checks (node/sdpa_support_surface.h and the node of the backward). */
static void
require_support (const AttentionShape &s, size_t version)
{
  if (version == 91000 || version == 91001)
    throw Failure ("attention of cuDNN 9.10.0 and 9.10.1 is known to be wrong: take 9.10.2 or newer");
  if (s.seq % key_tile != 0)
    throw Failure ("cuDNN is asked for sequences in multiples of 128 tokens only");
  if (s.d % 8 != 0 || s.d > 128)
    throw Failure ("attention of cuDNN takes heads of a width up to 128, a multiple of 8");
}

namespace {

/* The tensors that both directions have. */
class Sdpa {
public:
  Sdpa (const AttentionShape &shape, size_t version)
    : graph (std::make_unique<CudnnGraph> ()), g (*graph), b ((int64_t) shape.sequences), n ((int64_t) shape.seq),
      h ((int64_t) shape.heads), h_kv ((int64_t) shape.kv_heads), d ((int64_t) shape.d), is_causal (shape.is_causal),
      masked (version < 91000 ? std::numeric_limits<float>::lowest () : -std::numeric_limits<float>::infinity ())
  {
    require_support (shape, version);
  }

  std::unique_ptr<CudnnGraph> graph;

  CudnnSizes scores () const { return { b, h, n, n }; }
  CudnnSizes rows () const { return { b, h, n, 1 }; }
  CudnnSizes queries () const { return { b, h, n, d }; }
  Tensor of_queries (int64_t id) { return g.memory (id, queries (), { n * h * d, d, h * d, 1 }, CudnnData::BFLOAT16); }
  Tensor of_keys (int64_t id) { return g.memory (id, { b, h_kv, n, d }, { n * h_kv * d, d, h_kv * d, 1 }, CudnnData::BFLOAT16); }
  Tensor of_keys_transposed (int64_t id) { return g.memory (id, { b, h_kv, d, n }, { n * h_kv * d, d, 1, h_kv * d }, CudnnData::BFLOAT16); }
  Tensor of_rows (int64_t id) { return g.memory (id, rows (), dense_strides (rows ()), CudnnData::FLOAT); }

  Tensor apply (P how, Tensor x)
  {
    Tensor y = g.temporary (x.sizes);
    g.pointwise (how, x, y);
    return y;
  }
  Tensor apply (P how, Tensor x, Tensor other)
  {
    Tensor y = g.temporary (x.sizes);
    g.pointwise (how, x, other, y);
    return y;
  }
  Tensor product (Tensor a, Tensor other, const CudnnSizes &sizes)
  {
    Tensor y = g.temporary (sizes);
    g.matmul (a, other, y);
    return y;
  }
  Tensor row_reduction (CudnnReduction how, Tensor x)
  {
    Tensor y = g.temporary (rows ());
    g.reduce (how, x, y);
    return y;
  }
  Tensor scale () { return g.number (1 / std::sqrt ((float) d)); }

  /* A query sees itself and what is before it. */
  Tensor mask (Tensor x)
  {
    if (!is_causal)
      return x;
    Tensor query = g.index (x, 2), key = g.index (x, 3), y = g.temporary (x.sizes);
    Tensor sees = g.compare (P::CMP_GE, query, key);
    g.select (sees, x, g.number (masked), y);
    return y;
  }

  /* Scores, or their gradients, with rows for keys, rounded for the product to come. */
  Tensor transposed (Tensor x)
  {
    Tensor y = g.temporary (scores (), { h * n * n, n * n, 1, n }, CudnnData::BFLOAT16);
    g.reshape (x, y);
    return y;
  }

  /* By heads of the queries; those that share a head of the keys are added up. */
  void product_by_keys (Tensor x, Tensor other, Tensor gradient)
  {
    if (h == h_kv) {
      g.matmul (x, other, gradient);
      return;
    }
    Tensor by_query_head = g.temporary (queries (), CudnnData::BFLOAT16);
    g.matmul (x, other, by_query_head);
    g.reduce (CudnnReduction::ADD, by_query_head, gradient);
  }

private:
  CudnnGraph &g;
  int64_t b, n, h, h_kv, d;
  bool is_causal;
  float masked;
};

}

std::unique_ptr<CudnnGraph>
sdpa_forward (const AttentionShape &shape, size_t version)
{
  Sdpa s (shape, version);
  CudnnGraph &g = *s.graph;
  Tensor q = s.of_queries (SDPA_Q), k = s.of_keys_transposed (SDPA_K), v = s.of_keys (SDPA_V);
  Tensor out = s.of_queries (SDPA_OUT), lse = s.of_rows (SDPA_LSE);

  Tensor scores = s.mask (s.apply (P::MUL, s.product (q, k, s.scores ()), s.scale ()));
  Tensor top = s.row_reduction (CudnnReduction::MAX, scores);
  Tensor exponential = s.apply (P::EXP, s.apply (P::SUB, scores, top));
  Tensor sum = s.row_reduction (CudnnReduction::ADD, exponential);
  g.pointwise (P::ADD, top, s.apply (P::LOG, sum), lse);
  Tensor softmax = g.temporary (s.scores (), CudnnData::BFLOAT16);
  g.pointwise (P::DIV, exponential, sum, softmax);
  g.matmul (softmax, v, out);
  return std::move (s.graph);
}

/* With P = softmax, delta = sum (dout * out) of each row: dV = P^T dout, dS = P * (dout V^T - delta) / sqrt (d), dK = dS^T Q,
 * dQ = dS K (Dao 2023, "FlashAttention-2", section 3.2). */
std::unique_ptr<CudnnGraph>
sdpa_backward (const AttentionShape &shape, size_t version)
{
  Sdpa s (shape, version);
  CudnnGraph &g = *s.graph;
  Tensor q = s.of_queries (SDPA_Q), k = s.of_keys_transposed (SDPA_K), v = s.of_keys_transposed (SDPA_V);
  Tensor out = s.of_queries (SDPA_OUT), dout = s.of_queries (SDPA_DOUT), lse = s.of_rows (SDPA_LSE), delta = s.of_rows (SDPA_DELTA);
  Tensor dq = s.of_queries (SDPA_DQ), dk = s.of_keys (SDPA_DK), dv = s.of_keys (SDPA_DV), scale = s.scale ();
  Tensor dq_sum = g.memory (SDPA_DQ_SUM, s.queries (), dense_strides (s.queries ()), CudnnData::FLOAT);

  Tensor sums = s.row_reduction (CudnnReduction::ADD, s.apply (P::MUL, dout, out));
  g.pointwise (P::MUL, sums, g.number (1), delta); /* where a dropout's scale would be */

  Tensor scores = s.apply (P::MUL, s.product (q, k, s.scores ()), scale);
  Tensor softmax = s.apply (P::EXP, s.mask (s.apply (P::SUB, scores, lse)));
  s.product_by_keys (s.transposed (softmax), dout, dv);

  Tensor gradient = s.apply (P::MUL, s.apply (P::SUB, s.product (dout, v, s.scores ()), delta), softmax);
  Tensor dscores = s.apply (P::MUL, gradient, scale);
  s.product_by_keys (s.transposed (dscores), q, dk);

  int64_t kv = (int64_t) shape.kv_heads, d = (int64_t) shape.d, n = (int64_t) shape.seq;
  Tensor keys = g.temporary ({ (int64_t) shape.sequences, kv, n, d }, { n * kv * d, d, kv * d, 1 }, CudnnData::BFLOAT16);
  g.reshape (k, keys);
  g.matmul (dscores, keys, dq_sum);
  g.pointwise (P::IDENTITY, dq_sum, dq);
  return std::move (s.graph);
}

}
