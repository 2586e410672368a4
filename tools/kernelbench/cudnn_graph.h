/* tools/kernelbench/cudnn_graph.h — operation graphs of cuDNN, and the plans that run them.
 *
 * A graph is tensors and operations on them. Tensors have four sizes; those with an id of the caller's lie in device memory, and the
 * plan is told where; temporaries exist within the kernel only. Arithmetic is fp32. Host code. */
#ifndef LS_KERNELBENCH_CUDNN_GRAPH_H
#define LS_KERNELBENCH_CUDNN_GRAPH_H

#include <array>
#include <deque>
#include <map>
#include <memory>

#include "cudnn_api.h"

namespace kb {

using CudnnSizes = std::array<int64_t, 4>;

/* Strides of a dense tensor whose last size runs fastest. */
CudnnSizes dense_strides (const CudnnSizes &sizes);

struct CudnnTensor {
  CudnnSizes sizes;
  int64_t id;
  CudnnDescriptor descriptor;
};

class CudnnGraph {
public:
  using Tensor = const CudnnTensor &; /* the graph's */

  Tensor memory (int64_t id, const CudnnSizes &sizes, const CudnnSizes &strides, CudnnData type);
  Tensor temporary (const CudnnSizes &sizes, CudnnData type = CudnnData::FLOAT);
  Tensor temporary (const CudnnSizes &sizes, const CudnnSizes &strides, CudnnData type);
  Tensor number (float value); /* that the kernel is passed */

  void matmul (Tensor a, Tensor b, Tensor product); /* of the last two sizes */
  void reduce (CudnnReduction how, Tensor x, Tensor y); /* over the sizes that are 1 in y */
  void reshape (Tensor x, Tensor y);
  void pointwise (CudnnPointwise how, Tensor x, Tensor y);
  void pointwise (CudnnPointwise how, Tensor x, Tensor b, Tensor y);
  Tensor index (Tensor like, int64_t axis); /* of each element along this axis */
  Tensor compare (CudnnPointwise how, Tensor x, Tensor b);
  void select (Tensor where, Tensor x, Tensor b, Tensor y); /* x where true, otherwise b */

  const std::deque<CudnnDescriptor> &operations () const { return operations_; }
  const std::map<int64_t, float> &numbers () const { return numbers_; }

private:
  static constexpr int64_t first_own_id = 1000;

  Tensor add (int64_t id, const CudnnSizes &sizes, const CudnnSizes &strides, CudnnData type, bool is_virtual, bool is_by_value);
  CudnnDescriptor &add_operation (CudnnKind kind) { return operations_.emplace_back (kind); }
  CudnnDescriptor &add_pointwise (CudnnPointwise how, CudnnData precision, const int64_t *axis = nullptr);

  std::deque<CudnnTensor> tensors_;
  std::deque<CudnnDescriptor> settings_, operations_;
  std::map<int64_t, float> numbers_;
};

/* Where plans are to run: on the device of a handle, or on one that is only described, which a plan can be made for but not run on. */
struct CudnnTarget {
  void *handle = nullptr;
  const CudnnDescriptor *device = nullptr;
};

/* A graph made runnable: with the first engine of cuDNN's heuristics (mode A) that takes it. */
class CudnnPlan {
public:
  CudnnPlan (std::unique_ptr<CudnnGraph> graph, const CudnnTarget &target);

  size_t workspace_bytes () const { return workspace_bytes_; }
  /* The addresses in device memory of tensors, by id, and of the workspace. */
  void bind (const std::map<int64_t, void *> &memory, void *workspace);
  void run (); /* queues the kernels on the handle's stream */

private:
  void choose_engine (const CudnnTarget &target);
  bool try_engine (CudnnDescriptor &&config, const CudnnTarget &target, std::string *ret_why);

  std::unique_ptr<CudnnGraph> graph_;
  void *handle_;
  CudnnDescriptor operation_graph_;
  std::unique_ptr<CudnnDescriptor> config_, plan_, pack_;
  size_t workspace_bytes_ = 0;
  std::map<int64_t, float> numbers_; /* their addresses are in pack_ */
};

}

#endif
