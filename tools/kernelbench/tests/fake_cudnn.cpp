/* A libcudnn.so.9 for tests: the backend API that attention needs, on the host. Each descriptor is checked as the documentation of the
 * backend API demands (which attributes a kind has, of which type, how many; nothing is set after it was finalized or used before; each
 * tensor of a graph is written once, before it is read; a plan is given an address for each tensor in memory). A plan whose tensors are
 * small computes its graph.
 *
 * KB_CUDNN: "old" (version 8.9), "9.5" and "9.10.0" (these versions), "no-engine" (heuristics propose none), "no-plan" (no proposal can be
 * finalized), "second" (only the second), "no-handle", "execute" (cudnnBackendExecute fails). Built with WITHOUT_EXECUTE it has no
 * cudnnBackendExecute. Statuses are cuDNN's: 2000 a bad parameter, 3000 not supported, 5000 execution failed. */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "../cudnn.h"

namespace kb {

/* ---- descriptors ---- */

struct Descriptor {
  CudnnKind kind;
  bool is_final = false;
  std::map<CudnnName, std::vector<char>> values;
  Descriptor *graph = nullptr; /* of a configuration: for which, and the how manieth proposal */
  int index = 0;

  bool has (CudnnName name) const { return values.count (name) > 0; }
  template <typename T> std::vector<T> all (CudnnName name) const
  {
    auto found = values.find (name);
    if (found == values.end ())
      return {};
    std::vector<T> out (found->second.size () / sizeof (T));
    memcpy (out.data (), found->second.data (), found->second.size ());
    return out;
  }
  template <typename T> T one (CudnnName name) const { return all<T> (name).at (0); }
  Descriptor *at (CudnnName name) const { return has (name) ? one<Descriptor *> (name) : nullptr; }
  bool is_set (CudnnName name) const { return has (name) && one<char> (name); }
};

using Sizes = std::vector<int64_t>;

inline Sizes sizes_of (const Descriptor *tensor) { return tensor->all<int64_t> (CudnnName::TENSOR_DIMENSIONS); }
inline int64_t id_of (const Descriptor *tensor) { return tensor->one<int64_t> (CudnnName::TENSOR_UNIQUE_ID); }
inline CudnnData type_of (const Descriptor *tensor) { return tensor->one<CudnnData> (CudnnName::TENSOR_DATA_TYPE); }

inline int64_t
product (const Sizes &sizes)
{
  int64_t n = 1;
  for (int64_t size : sizes)
    n *= size;
  return n;
}

/* ---- what a plan computes ---- */

using K = CudnnKind;
using N = CudnnName;

/* Tensors of an operation: inputs, then the output. */
static std::vector<Descriptor *>
tensors_of (const Descriptor &op)
{
  std::vector<Descriptor *> out;
  for (N name : { N::OPERATION_MATMUL_ADESC, N::OPERATION_MATMUL_BDESC, N::OPERATION_REDUCTION_XDESC, N::OPERATION_RESHAPE_XDESC,
                  N::OPERATION_POINTWISE_XDESC, N::OPERATION_POINTWISE_BDESC, N::OPERATION_POINTWISE_TDESC, N::OPERATION_MATMUL_CDESC,
                  N::OPERATION_REDUCTION_YDESC, N::OPERATION_RESHAPE_YDESC, N::OPERATION_POINTWISE_YDESC })
    if (Descriptor *tensor = op.at (name))
      out.push_back (tensor);
  return out;
}

namespace {

using Values = std::vector<double>; /* of a tensor, dense */
using Index = std::vector<int64_t>;

double
bfloat16 (double x)
{
  float f = (float) x;
  uint32_t bits;
  memcpy (&bits, &f, 4);
  bits = std::isnan (f) ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1);
  bits &= 0xffff0000u;
  memcpy (&f, &bits, 4);
  return f;
}

double
rounded (CudnnData type, double x)
{
  return type == CudnnData::BFLOAT16 ? bfloat16 (x) : type == CudnnData::FLOAT ? (double) (float) x : x;
}

void
for_each (const Sizes &sizes, const std::function<void (const Index &)> &body)
{
  Index at (sizes.size (), 0);
  for (int64_t n = product (sizes), i = 0; i < n; i++) {
    body (at);
    for (size_t axis = sizes.size (); axis-- > 0 && ++at[axis] == sizes[axis];)
      at[axis] = 0;
  }
}

/* Where an element of a larger tensor lies in this one: sizes that are smaller are shared by as many neighbours each. */
size_t
place (const Sizes &sizes, const Index &at, const Sizes &of)
{
  int64_t i = 0;
  for (size_t axis = 0; axis < sizes.size (); axis++)
    i = i * sizes[axis] + at[axis] / (of[axis] / sizes[axis]);
  return (size_t) i;
}

class Machine {
public:
  explicit Machine (const std::map<int64_t, void *> &memory) : memory_ (memory) {}

  const Values &read (Descriptor *tensor)
  {
    auto found = values_.find (tensor);
    return found != values_.end () ? found->second : values_[tensor] = load (tensor);
  }
  void write (Descriptor *tensor, Values values)
  {
    for (double &value : values)
      value = rounded (type_of (tensor), value);
    if (!tensor->is_set (N::TENSOR_IS_VIRTUAL))
      store (tensor, values);
    values_[tensor] = std::move (values);
  }

private:
  void visit (Descriptor *tensor, const std::function<void (size_t i, char *element)> &body)
  {
    Sizes sizes = sizes_of (tensor), strides = tensor->all<int64_t> (N::TENSOR_STRIDES);
    char *base = static_cast<char *> (memory_.at (id_of (tensor)));
    int64_t bytes = type_of (tensor) == CudnnData::BFLOAT16 ? 2 : 4;
    for_each (sizes, [&] (const Index &at) {
      int64_t offset = 0;
      for (size_t axis = 0; axis < sizes.size (); axis++)
        offset += at[axis] * strides[axis];
      body (place (sizes, at, sizes), base + offset * bytes);
    });
  }
  Values load (Descriptor *tensor)
  {
    Values out ((size_t) product (sizes_of (tensor)));
    bool is_short = type_of (tensor) == CudnnData::BFLOAT16;
    visit (tensor, [&] (size_t i, char *element) {
      float f = 0;
      memcpy ((char *) &f + (is_short ? 2 : 0), element, is_short ? 2 : 4);
      out[i] = f;
    });
    return out;
  }
  void store (Descriptor *tensor, const Values &values)
  {
    bool is_short = type_of (tensor) == CudnnData::BFLOAT16;
    visit (tensor, [&] (size_t i, char *element) {
      float f = (float) values[i];
      memcpy (element, (char *) &f + (is_short ? 2 : 0), is_short ? 2 : 4);
    });
  }

  const std::map<int64_t, void *> &memory_;
  std::map<Descriptor *, Values> values_;
};

void
run_matmul (Machine &machine, const Descriptor &op)
{
  Descriptor *a = op.at (N::OPERATION_MATMUL_ADESC), *b = op.at (N::OPERATION_MATMUL_BDESC), *c = op.at (N::OPERATION_MATMUL_CDESC);
  const Values left = machine.read (a), right = machine.read (b);
  Sizes sa = sizes_of (a), sb = sizes_of (b), sc = sizes_of (c);
  Values out ((size_t) product (sc));
  for_each ({ sc[0], sc[1], sc[2] }, [&] (const Index &at) {
    size_t row = (size_t) ((at[0] * sc[1] + at[1]) * sc[2] + at[2]) * (size_t) sc[3];
    const double *x = &left[(size_t) ((at[0] * sa[1] + at[1]) * sa[2] + at[2]) * (size_t) sa[3]];
    const double *y = &right[(size_t) ((at[0] / (sc[0] / sb[0]) * sb[1] + at[1] / (sc[1] / sb[1])) * sb[2] * sb[3])];
    for (int64_t l = 0; l < sa[3]; l++)
      for (int64_t j = 0; j < sc[3]; j++)
        out[row + (size_t) j] += x[l] * y[l * sb[3] + j];
  });
  machine.write (c, out);
}

void
run_reduction (Machine &machine, const Descriptor &op)
{
  Descriptor *x = op.at (N::OPERATION_REDUCTION_XDESC), *y = op.at (N::OPERATION_REDUCTION_YDESC);
  bool is_max = op.at (N::OPERATION_REDUCTION_DESC)->one<CudnnReduction> (N::REDUCTION_OPERATOR) == CudnnReduction::MAX;
  const Values in = machine.read (x);
  Sizes from = sizes_of (x), to = sizes_of (y);
  Values out ((size_t) product (to), is_max ? -std::numeric_limits<double>::infinity () : 0);
  for_each (from, [&] (const Index &at) {
    double &sum = out[place (to, at, from)], value = in[place (from, at, from)];
    sum = is_max ? std::fmax (sum, value) : sum + value;
  });
  machine.write (y, out);
}

double
pointwise (CudnnPointwise mode, double x, double b, double t, double index)
{
  switch (mode) {
  case CudnnPointwise::ADD: return x + b;
  case CudnnPointwise::MUL: return x * b;
  case CudnnPointwise::DIV: return x / b;
  case CudnnPointwise::SUB: return x - b;
  case CudnnPointwise::EXP: return std::exp (x);
  case CudnnPointwise::LOG: return std::log (x);
  case CudnnPointwise::IDENTITY: return x;
  case CudnnPointwise::CMP_GE: return x >= b;
  case CudnnPointwise::GEN_INDEX: return index;
  case CudnnPointwise::BINARY_SELECT: return t != 0 ? x : b;
  }
  return std::nan ("");
}

void
run_pointwise (Machine &machine, const Descriptor &op)
{
  Descriptor *how = op.at (N::OPERATION_POINTWISE_PW_DESCRIPTOR), *y = op.at (N::OPERATION_POINTWISE_YDESC);
  Descriptor *x = op.at (N::OPERATION_POINTWISE_XDESC), *b = op.at (N::OPERATION_POINTWISE_BDESC), *t = op.at (N::OPERATION_POINTWISE_TDESC);
  CudnnPointwise mode = how->one<CudnnPointwise> (N::POINTWISE_MODE);
  size_t axis = how->has (N::POINTWISE_AXIS) ? (size_t) how->one<int64_t> (N::POINTWISE_AXIS) : 0;
  Sizes sizes = sizes_of (y), sizes_b = b ? sizes_of (b) : sizes;
  const Values none, in = machine.read (x), other = b ? machine.read (b) : none, third = t ? machine.read (t) : none;
  Values out ((size_t) product (sizes));
  for_each (sizes, [&] (const Index &at) {
    size_t i = place (sizes, at, sizes);
    out[i] = pointwise (mode, in[i], b ? other[place (sizes_b, at, sizes)] : 0, t ? third[i] : 0, (double) at[axis]);
  });
  machine.write (y, out);
}

void
run_reshape (Machine &machine, const Descriptor &op)
{
  Descriptor *x = op.at (N::OPERATION_RESHAPE_XDESC), *y = op.at (N::OPERATION_RESHAPE_YDESC);
  const Values in = machine.read (x);
  Sizes from = sizes_of (x), to = sizes_of (y);
  Values out (in.size ());
  for_each (to, [&] (const Index &at) { out[place (to, at, to)] = in[place (from, { at[0], at[1], at[3], at[2] }, from)]; });
  machine.write (y, out);
}

void
run_operation (Machine &machine, const Descriptor &op)
{
  switch (op.kind) {
  case K::OPERATION_MATMUL: return run_matmul (machine, op);
  case K::OPERATION_REDUCTION: return run_reduction (machine, op);
  case K::OPERATION_POINTWISE: return run_pointwise (machine, op);
  default: return run_reshape (machine, op);
  }
}

}

/* Computes a finalized operation graph in double precision; what lies in memory is rounded as its type is. memory: an address for each
 * id of a tensor that is not virtual. */
[[maybe_unused]] static void
compute_graph (const Descriptor &graph, const std::map<int64_t, void *> &memory)
{
  Machine machine (memory);
  for (Descriptor *op : graph.all<Descriptor *> (N::OPERATIONGRAPH_OPS))
    run_operation (machine, *op);
}

}

/* ---- the backend API ---- */

using namespace kb;

__attribute__ ((weak)) void fake_launch (); /* of the made-up GPU, where there is one */

static constexpr int ok = 0, bad_parameter = 2000, not_supported = 3000, execution_failed = 5000;
static constexpr double most_computed = 1 << 22; /* elements of a tensor */
static std::string why;

static int
refuse (const std::string &text, int status = bad_parameter)
{
  why = text;
  return status;
}

static bool
is_asked (const char *fault)
{
  const char *text = getenv ("KB_CUDNN");
  return text && strcmp (text, fault) == 0;
}

/* --- descriptors ----------------------------------------------------------------------------- */

namespace {

struct Rule {
  CudnnKind kind;
  CudnnName name;
  CudnnType type;
  int64_t least, most;
  bool is_needed;
};

constexpr int64_t many = 1000;
using K = CudnnKind;
using N = CudnnName;
using Y = CudnnType;

const Rule rules[] = {
  { K::TENSOR, N::TENSOR_UNIQUE_ID, Y::INT64, 1, 1, true },
  { K::TENSOR, N::TENSOR_DATA_TYPE, Y::DATA_TYPE, 1, 1, true },
  { K::TENSOR, N::TENSOR_DIMENSIONS, Y::INT64, 1, 8, true },
  { K::TENSOR, N::TENSOR_STRIDES, Y::INT64, 1, 8, true },
  { K::TENSOR, N::TENSOR_BYTE_ALIGNMENT, Y::INT64, 1, 1, true },
  { K::TENSOR, N::TENSOR_IS_VIRTUAL, Y::BOOLEAN, 1, 1, false },
  { K::TENSOR, N::TENSOR_IS_BY_VALUE, Y::BOOLEAN, 1, 1, false },
  { K::MATMUL, N::MATMUL_COMP_TYPE, Y::DATA_TYPE, 1, 1, true },
  { K::OPERATION_MATMUL, N::OPERATION_MATMUL_ADESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATION_MATMUL, N::OPERATION_MATMUL_BDESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATION_MATMUL, N::OPERATION_MATMUL_CDESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATION_MATMUL, N::OPERATION_MATMUL_DESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::REDUCTION, N::REDUCTION_OPERATOR, Y::REDUCTION_OPERATOR, 1, 1, true },
  { K::REDUCTION, N::REDUCTION_COMP_TYPE, Y::DATA_TYPE, 1, 1, true },
  { K::OPERATION_REDUCTION, N::OPERATION_REDUCTION_XDESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATION_REDUCTION, N::OPERATION_REDUCTION_YDESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATION_REDUCTION, N::OPERATION_REDUCTION_DESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATION_RESHAPE, N::OPERATION_RESHAPE_XDESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATION_RESHAPE, N::OPERATION_RESHAPE_YDESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::POINTWISE, N::POINTWISE_MODE, Y::POINTWISE_MODE, 1, 1, true },
  { K::POINTWISE, N::POINTWISE_MATH_PREC, Y::DATA_TYPE, 1, 1, true },
  { K::POINTWISE, N::POINTWISE_AXIS, Y::INT64, 1, 1, false },
  { K::OPERATION_POINTWISE, N::OPERATION_POINTWISE_PW_DESCRIPTOR, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATION_POINTWISE, N::OPERATION_POINTWISE_XDESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATION_POINTWISE, N::OPERATION_POINTWISE_BDESC, Y::BACKEND_DESCRIPTOR, 1, 1, false },
  { K::OPERATION_POINTWISE, N::OPERATION_POINTWISE_TDESC, Y::BACKEND_DESCRIPTOR, 1, 1, false },
  { K::OPERATION_POINTWISE, N::OPERATION_POINTWISE_YDESC, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::OPERATIONGRAPH, N::OPERATIONGRAPH_OPS, Y::BACKEND_DESCRIPTOR, 1, many, true },
  { K::OPERATIONGRAPH, N::OPERATIONGRAPH_HANDLE, Y::HANDLE, 1, 1, true },
  { K::ENGINEHEUR, N::ENGINEHEUR_OPERATION_GRAPH, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::ENGINEHEUR, N::ENGINEHEUR_MODE, Y::HEUR_MODE, 1, 1, true },
  { K::EXECUTION_PLAN, N::EXECUTION_PLAN_HANDLE, Y::HANDLE, 1, 1, true },
  { K::EXECUTION_PLAN, N::EXECUTION_PLAN_ENGINE_CONFIG, Y::BACKEND_DESCRIPTOR, 1, 1, true },
  { K::VARIANT_PACK, N::VARIANT_PACK_UNIQUE_IDS, Y::INT64, 1, many, true },
  { K::VARIANT_PACK, N::VARIANT_PACK_DATA_POINTERS, Y::VOID_PTR, 1, many, true },
  { K::VARIANT_PACK, N::VARIANT_PACK_WORKSPACE, Y::VOID_PTR, 1, 1, true },
};

std::set<Descriptor *> living;
void *const a_handle = &living;

size_t
bytes_of (Y type)
{
  switch (type) {
  case Y::BOOLEAN: return sizeof (bool);
  case Y::DATA_TYPE:
  case Y::HEUR_MODE:
  case Y::POINTWISE_MODE:
  case Y::REDUCTION_OPERATOR: return sizeof (int);
  default: return 8;
  }
}

const Rule *
rule_of (K kind, N name)
{
  for (const Rule &rule : rules)
    if (rule.kind == kind && rule.name == name)
      return &rule;
  return nullptr;
}

Descriptor *
living_at (void *at)
{
  auto found = living.find (static_cast<Descriptor *> (at));
  return found == living.end () ? nullptr : *found;
}

/* --- what finalize checks ------------------------------------------------------------------------ */

/* Each size of `from` is that of `to`, or 1; `grouped`: or divides it. */
bool
broadcasts (const Sizes &from, const Sizes &to, size_t n, bool grouped = false)
{
  for (size_t i = 0; i < n; i++)
    if (from[i] != to[i] && from[i] != 1 && !(grouped && to[i] % from[i] == 0))
      return false;
  return true;
}

int
check_tensor (const Descriptor &d)
{
  Sizes sizes = sizes_of (&d), strides = d.all<int64_t> (N::TENSOR_STRIDES);
  if (sizes.size () != strides.size () || product (sizes) <= 0)
    return refuse ("sizes and strides of a tensor");
  return d.is_set (N::TENSOR_IS_VIRTUAL) && d.is_set (N::TENSOR_IS_BY_VALUE) ? refuse ("a tensor that is virtual and by value") : ok;
}

/* Batches of b may be fewer: heads that share keys. */
int
check_matmul (const Descriptor &d)
{
  Sizes a = sizes_of (d.at (N::OPERATION_MATMUL_ADESC)), b = sizes_of (d.at (N::OPERATION_MATMUL_BDESC));
  Sizes c = sizes_of (d.at (N::OPERATION_MATMUL_CDESC));
  size_t n = c.size ();
  bool fits = a.size () == n && b.size () == n && n == 4 && a[2] == c[2] && b[3] == c[3] && a[3] == b[2];
  return fits && broadcasts (a, c, 2) && broadcasts (b, c, 2, true) ? ok : refuse ("sizes of a product");
}

int
check_reduction (const Descriptor &d)
{
  Sizes x = sizes_of (d.at (N::OPERATION_REDUCTION_XDESC)), y = sizes_of (d.at (N::OPERATION_REDUCTION_YDESC));
  return x.size () == y.size () && x != y && broadcasts (y, x, x.size (), true) ? ok : refuse ("sizes of a reduction");
}

size_t
n_inputs (CudnnPointwise mode)
{
  switch (mode) {
  case CudnnPointwise::EXP:
  case CudnnPointwise::LOG:
  case CudnnPointwise::IDENTITY:
  case CudnnPointwise::GEN_INDEX: return 1;
  case CudnnPointwise::BINARY_SELECT: return 3;
  default: return 2;
  }
}

int
check_pointwise (const Descriptor &d)
{
  Descriptor *how = d.at (N::OPERATION_POINTWISE_PW_DESCRIPTOR);
  CudnnPointwise mode = how->one<CudnnPointwise> (N::POINTWISE_MODE);
  Descriptor *b = d.at (N::OPERATION_POINTWISE_BDESC), *t = d.at (N::OPERATION_POINTWISE_TDESC);
  Sizes y = sizes_of (d.at (N::OPERATION_POINTWISE_YDESC)), x = sizes_of (d.at (N::OPERATION_POINTWISE_XDESC));
  if (1 + (b ? 1u : 0u) + (t ? 1u : 0u) != n_inputs (mode) || (t && !b))
    return refuse ("inputs of a pointwise operation");
  if ((mode == CudnnPointwise::GEN_INDEX) != how->has (N::POINTWISE_AXIS))
    return refuse ("the axis of a pointwise operation");
  if (t && type_of (t) != CudnnData::BOOLEAN)
    return refuse ("a selection by what is not boolean");
  bool fits = x == y && (!b || (sizes_of (b).size () == y.size () && broadcasts (sizes_of (b), y, y.size ()))) && (!t || sizes_of (t) == y);
  return fits ? ok : refuse ("sizes of a pointwise operation");
}

int
check_reshape (const Descriptor &d)
{
  Sizes x = sizes_of (d.at (N::OPERATION_RESHAPE_XDESC)), y = sizes_of (d.at (N::OPERATION_RESHAPE_YDESC));
  return x.size () == 4 && y == Sizes { x[0], x[1], x[3], x[2] } ? ok : refuse ("sizes of a transpose");
}

int
check_graph (const Descriptor &graph)
{
  std::map<int64_t, Descriptor *> known;
  std::set<Descriptor *> written, read;
  for (Descriptor *op : graph.all<Descriptor *> (N::OPERATIONGRAPH_OPS)) {
    std::vector<Descriptor *> tensors = tensors_of (*op);
    Descriptor *result = tensors.back ();
    tensors.pop_back ();
    for (Descriptor *tensor : tensors) {
      if (tensor->is_set (N::TENSOR_IS_VIRTUAL) && !written.count (tensor))
        return refuse ("a virtual tensor is read before it is written");
      read.insert (tensor);
    }
    if (result->is_set (N::TENSOR_IS_BY_VALUE) || read.count (result) || !written.insert (result).second)
      return refuse ("a tensor that cannot be written is");
    tensors.push_back (result);
    for (Descriptor *tensor : tensors)
      if (known.insert ({ id_of (tensor), tensor }).first->second != tensor)
        return refuse ("two tensors of one id");
  }
  for (Descriptor *tensor : written)
    if (tensor->is_set (N::TENSOR_IS_VIRTUAL) && !read.count (tensor))
      return refuse ("a virtual tensor is never read");
  return ok;
}

int
check_plan (const Descriptor &plan)
{
  int index = plan.at (N::EXECUTION_PLAN_ENGINE_CONFIG)->index;
  return is_asked ("no-plan") || (is_asked ("second") && index == 0) ? refuse ("this engine takes no such graph", not_supported) : ok;
}

int
check_heuristic (const Descriptor &d)
{
  return d.one<CudnnHeuristic> (N::ENGINEHEUR_MODE) == CudnnHeuristic::MODE_A ? ok : refuse ("an unknown heuristic");
}

int
check_pack (const Descriptor &d)
{
  std::vector<int64_t> ids = d.all<int64_t> (N::VARIANT_PACK_UNIQUE_IDS);
  bool is_fine = ids.size () == d.all<void *> (N::VARIANT_PACK_DATA_POINTERS).size ();
  is_fine &= std::set<int64_t> (ids.begin (), ids.end ()).size () == ids.size ();
  return is_fine ? ok : refuse ("ids and addresses of a variant pack");
}

int
check (const Descriptor &d)
{
  switch (d.kind) {
  case K::TENSOR: return check_tensor (d);
  case K::OPERATION_MATMUL: return check_matmul (d);
  case K::OPERATION_REDUCTION: return check_reduction (d);
  case K::OPERATION_POINTWISE: return check_pointwise (d);
  case K::OPERATION_RESHAPE: return check_reshape (d);
  case K::OPERATIONGRAPH: return check_graph (d);
  case K::ENGINEHEUR: return check_heuristic (d);
  case K::EXECUTION_PLAN: return check_plan (d);
  case K::VARIANT_PACK: return check_pack (d);
  default: return ok;
  }
}

}

/* --- the library ------------------------------------------------------------------------------------ */

extern "C" {

size_t
cudnnGetVersion ()
{
  return is_asked ("old") ? 8902 : is_asked ("9.5") ? 90500 : is_asked ("9.10.0") ? 91000 : 91900;
}

const char *
cudnnGetErrorString (int status)
{
  return status == bad_parameter      ? "CUDNN_STATUS_BAD_PARAM"
         : status == not_supported    ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status == execution_failed ? "CUDNN_STATUS_EXECUTION_FAILED"
                                      : "CUDNN_STATUS_NOT_INITIALIZED";
}

void
cudnnGetLastErrorString (char *text, size_t n)
{
  snprintf (text, n, "%s", why.c_str ());
}

int
cudnnCreate (void **handle)
{
  *handle = a_handle;
  return is_asked ("no-handle") ? refuse ("no device", 1001) : ok;
}

int
cudnnDestroy (void *)
{
  return ok;
}

int
cudnnSetStream (void *handle, cudaStream_t)
{
  return handle == a_handle ? ok : refuse ("no handle");
}

int
cudnnBackendCreateDescriptor (int kind, void **at)
{
  *at = *living.insert (new Descriptor { (K) kind, false, {} }).first;
  return ok;
}

int
cudnnBackendDestroyDescriptor (void *at)
{
  living.erase (static_cast<Descriptor *> (at));
  delete static_cast<Descriptor *> (at);
  return ok;
}

int
cudnnBackendSetAttribute (void *at, int name, int type, int64_t n, const void *values)
{
  Descriptor *d = living_at (at);
  const Rule *rule = d ? rule_of (d->kind, (N) name) : nullptr;
  if (!rule || d->is_final)
    return refuse (rule ? "an attribute of a descriptor that is final" : "no such attribute, or descriptor");
  if (rule->type != (Y) type || n < rule->least || n > rule->most || !values)
    return refuse ("type or number of attribute " + std::to_string (name));
  if (rule->type == Y::BACKEND_DESCRIPTOR)
    for (int64_t i = 0; i < n; i++) {
      Descriptor *value = living_at (static_cast<void *const *> (values)[i]);
      if (!value || !value->is_final)
        return refuse ("a descriptor that is not final");
    }
  const char *bytes = static_cast<const char *> (values);
  d->values[(N) name].assign (bytes, bytes + (size_t) n * bytes_of (rule->type));
  return ok;
}

int
cudnnBackendFinalize (void *at)
{
  Descriptor *d = living_at (at);
  if (!d || d->is_final)
    return refuse ("finalize");
  for (const Rule &rule : rules)
    if (rule.kind == d->kind && rule.is_needed && !d->has (rule.name))
      return refuse ("attribute " + std::to_string ((int) rule.name) + " is not set");
  int status = check (*d);
  d->is_final = status == ok;
  return status;
}

/* Two proposals for every graph. */
static int
propose (const Descriptor &heuristic, int64_t n, int64_t *ret_n, void *values)
{
  *ret_n = is_asked ("no-engine") ? 0 : values && n < 2 ? n : 2;
  for (int i = 0; values && i < *ret_n; i++) {
    Descriptor *config = living_at (static_cast<void **> (values)[i]);
    if (!config || config->kind != K::ENGINECFG)
      return refuse ("no place for a configuration");
    config->graph = heuristic.at (N::ENGINEHEUR_OPERATION_GRAPH);
    config->index = i;
    config->is_final = true;
  }
  return ok;
}

int
cudnnBackendGetAttribute (void *at, int name, int type, int64_t n, int64_t *ret_n, void *values)
{
  Descriptor *d = living_at (at);
  if (!d || !d->is_final)
    return refuse ("an attribute of what is not final");
  if (d->kind == K::ENGINEHEUR && (N) name == N::ENGINEHEUR_RESULTS && (Y) type == Y::BACKEND_DESCRIPTOR)
    return propose (*d, n, ret_n, values);
  if (d->kind != K::EXECUTION_PLAN || (N) name != N::EXECUTION_PLAN_WORKSPACE_SIZE || (Y) type != Y::INT64 || n != 1)
    return refuse ("no such attribute to read");
  *static_cast<int64_t *> (values) = 256;
  *ret_n = 1;
  return ok;
}

#ifndef WITHOUT_EXECUTE
static int
run_graph (const Descriptor &graph, const std::map<int64_t, void *> &memory)
{
  double largest = 0;
  for (Descriptor *op : graph.all<Descriptor *> (N::OPERATIONGRAPH_OPS))
    for (Descriptor *tensor : tensors_of (*op)) {
      if (!tensor->is_set (N::TENSOR_IS_VIRTUAL) && (!memory.count (id_of (tensor)) || !memory.at (id_of (tensor))))
        return refuse ("no address of tensor " + std::to_string (id_of (tensor)));
      largest = std::fmax (largest, (double) product (sizes_of (tensor)));
    }
  if (largest <= most_computed)
    compute_graph (graph, memory);
  return ok;
}

int
cudnnBackendExecute (void *handle, void *plan_at, void *pack_at)
{
  Descriptor *plan = living_at (plan_at), *pack = living_at (pack_at);
  if (handle != a_handle || !plan || !pack || !plan->is_final || !pack->is_final)
    return refuse ("what is executed");
  if (is_asked ("execute"))
    return refuse ("a kernel failed", execution_failed);
  if (!pack->one<void *> (N::VARIANT_PACK_WORKSPACE))
    return refuse ("no workspace");
  std::map<int64_t, void *> memory;
  std::vector<int64_t> ids = pack->all<int64_t> (N::VARIANT_PACK_UNIQUE_IDS);
  std::vector<void *> addresses = pack->all<void *> (N::VARIANT_PACK_DATA_POINTERS);
  for (size_t i = 0; i < ids.size (); i++)
    memory[ids[i]] = addresses[i];
  if (fake_launch)
    fake_launch ();
  return run_graph (*plan->at (N::EXECUTION_PLAN_ENGINE_CONFIG)->graph, memory);
}
#endif

}
