/* A libcudnn.so.9 for tests: the backend API that attention needs, on the host. Each descriptor is checked as the documentation of the
 * backend API demands (which attributes a kind has, of which type, how many; nothing is set after it was finalized or used before; each
 * tensor of a graph is written once, before it is read; a plan is given an address for each tensor in memory). A plan whose tensors are
 * small computes its graph (fake_cudnn_run.cpp).
 *
 * KB_CUDNN: "old" (version 8.9), "9.5" and "9.10.0" (these versions), "no-engine" (heuristics propose none), "no-plan" (no proposal can be
 * finalized), "second" (only the second), "no-handle", "execute" (cudnnBackendExecute fails). Built with WITHOUT_EXECUTE it has no
 * cudnnBackendExecute. Statuses are cuDNN's: 2000 a bad parameter, 3000 not supported, 5000 execution failed. */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "fake_cuda.h"
#include "fake_cudnn.h"

using namespace kb;

__attribute__ ((weak)) void fake_pass (double us); /* of the made-up GPU, where there is one */

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
  if (fake_pass)
    fake_pass (fake_launch_us);
  return run_graph (*plan->at (N::EXECUTION_PLAN_ENGINE_CONFIG)->graph, memory);
}
#endif

}
