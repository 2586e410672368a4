/* What a plan of the made-up cuDNN computes. */
#include <cmath>
#include <functional>
#include <limits>

#include "fake_cudnn.h"

namespace kb {

using K = CudnnKind;
using N = CudnnName;

std::vector<Descriptor *>
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

void
compute_graph (const Descriptor &graph, const std::map<int64_t, void *> &memory)
{
  Machine machine (memory);
  for (Descriptor *op : graph.all<Descriptor *> (N::OPERATIONGRAPH_OPS))
    run_operation (machine, *op);
}

}
