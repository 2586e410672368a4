/* tools/kernelbench/cudnn.h — attention as operation graphs of cuDNN, whose library is loaded at run time.
 *
 * From below: the numbers of its backend API, that API, graphs and the plans that run them, and scaled dot product attention as
 * graphs. Everything that goes wrong is a Failure with the library's own words. Host code. */
#ifndef LS_KERNELBENCH_CUDNN_H
#define LS_KERNELBENCH_CUDNN_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "shapes.h"

namespace kb {

/* ---- the numbers of the backend API ---- */

/* For programs built without cuDNN's headers. Source: cudnn_graph.h of cuDNN 9.19, enums cudnnDataType_t, cudnnBackendAttributeType_t,
 * cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t, cudnnPointwiseMode_t, cudnnReduceTensorOp_t, cudnnBackendHeurMode_t. They
 * are the ABI of all of version 9. */

enum class CudnnData : int { FLOAT = 0, INT32 = 4, BFLOAT16 = 9, BOOLEAN = 11 };

enum class CudnnType : int {
  HANDLE = 0,
  DATA_TYPE = 1,
  BOOLEAN = 2,
  INT64 = 3,
  VOID_PTR = 6,
  HEUR_MODE = 8,
  POINTWISE_MODE = 14,
  BACKEND_DESCRIPTOR = 15,
  REDUCTION_OPERATOR = 18,
  CHAR = 24,
};

enum class CudnnKind : int {
  POINTWISE = 0,
  ENGINECFG = 3,
  ENGINEHEUR = 4,
  EXECUTION_PLAN = 5,
  OPERATION_POINTWISE = 13,
  OPERATIONGRAPH = 15,
  VARIANT_PACK = 16,
  TENSOR = 17,
  MATMUL = 18,
  OPERATION_MATMUL = 19,
  REDUCTION = 21,
  OPERATION_REDUCTION = 22,
  OPERATION_RESHAPE = 31,
  DEVICEPROP = 38,
};

enum class CudnnName : int {
  POINTWISE_MODE = 0,
  POINTWISE_MATH_PREC = 1,
  POINTWISE_AXIS = 9,
  ENGINEHEUR_MODE = 200,
  ENGINEHEUR_OPERATION_GRAPH = 201,
  ENGINEHEUR_RESULTS = 202,
  ENGINEHEUR_DEVICEPROP = 204,
  EXECUTION_PLAN_HANDLE = 400,
  EXECUTION_PLAN_ENGINE_CONFIG = 401,
  EXECUTION_PLAN_WORKSPACE_SIZE = 402,
  EXECUTION_PLAN_DEVICEPROP = 407,
  OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
  OPERATION_POINTWISE_XDESC = 751,
  OPERATION_POINTWISE_BDESC = 752,
  OPERATION_POINTWISE_YDESC = 753,
  OPERATION_POINTWISE_TDESC = 758,
  OPERATIONGRAPH_HANDLE = 800,
  OPERATIONGRAPH_OPS = 801,
  TENSOR_BYTE_ALIGNMENT = 900,
  TENSOR_DATA_TYPE = 901,
  TENSOR_DIMENSIONS = 902,
  TENSOR_STRIDES = 903,
  TENSOR_UNIQUE_ID = 906,
  TENSOR_IS_VIRTUAL = 907,
  TENSOR_IS_BY_VALUE = 908,
  VARIANT_PACK_UNIQUE_IDS = 1000,
  VARIANT_PACK_DATA_POINTERS = 1001,
  VARIANT_PACK_WORKSPACE = 1003,
  MATMUL_COMP_TYPE = 1500,
  OPERATION_MATMUL_ADESC = 1520,
  OPERATION_MATMUL_BDESC = 1521,
  OPERATION_MATMUL_CDESC = 1522,
  OPERATION_MATMUL_DESC = 1523,
  REDUCTION_OPERATOR = 1600,
  REDUCTION_COMP_TYPE = 1601,
  OPERATION_REDUCTION_XDESC = 1610,
  OPERATION_REDUCTION_YDESC = 1611,
  OPERATION_REDUCTION_DESC = 1612,
  OPERATION_RESHAPE_XDESC = 2200,
  OPERATION_RESHAPE_YDESC = 2201,
  DEVICEPROP_JSON_REPRESENTATION = 2702,
};

enum class CudnnPointwise : int {
  ADD = 0,
  MUL = 1,
  DIV = 6,
  SUB = 9,
  EXP = 13,
  LOG = 15,
  IDENTITY = 21,
  CMP_GE = 303,
  GEN_INDEX = 501,
  BINARY_SELECT = 601,
};

enum class CudnnReduction : int { ADD = 0, MAX = 3 };

enum class CudnnHeuristic : int { MODE_A = 3 };

/* ---- the API ---- */

/* The prototypes are those of cudnn_graph.h; ints are cudnnStatus_t, 0 for success. */
struct CudnnApi {
  size_t (*version) () = nullptr; /* 91900 is 9.19.0 */
  const char *(*error_string) (int) = nullptr;
  void (*last_error) (char *, size_t) = nullptr;
  int (*create) (void **handle) = nullptr;
  int (*destroy) (void *handle) = nullptr;
  int (*set_stream) (void *handle, cudaStream_t) = nullptr;
  int (*create_descriptor) (int kind, void **) = nullptr;
  int (*destroy_descriptor) (void *) = nullptr;
  int (*set_attribute) (void *, int name, int type, int64_t n, const void *) = nullptr;
  int (*get_attribute) (void *, int name, int type, int64_t n, int64_t *ret_n, void *) = nullptr;
  int (*finalize) (void *) = nullptr;
  int (*execute) (void *handle, void *plan, void *pack) = nullptr;

  /* Throws unless `status` is success: "what: CUDNN_STATUS_...: why". */
  void require (int status, const std::string &what) const;
};

/* Loads libcudnn.so.9 at the first call. Throws a Failure if it is absent, lacks a function, or is too old for attention. */
const CudnnApi &cudnn ();

/* A descriptor, which this object owns. */
class CudnnDescriptor {
public:
  explicit CudnnDescriptor (CudnnKind kind);
  CudnnDescriptor (CudnnDescriptor &&other) noexcept : at_ (std::exchange (other.at_, nullptr)) {}
  ~CudnnDescriptor ();

  void *get () const { return at_; }
  void set (CudnnName name, CudnnType type, int64_t n, const void *values);
  void set (CudnnName name, const CudnnDescriptor &value);
  void set (CudnnName name, int64_t value);
  void set (CudnnName name, bool value);
  template <typename Enum> void set_enum (CudnnName name, CudnnType type, Enum value)
  {
    int number = static_cast<int> (value);
    set (name, type, 1, &number);
  }
  void finalize (const std::string &what);

private:
  void *at_ = nullptr;
};

/* ---- graphs and their plans ---- */

/* A graph is tensors and operations on them. Tensors have four sizes; those with an id of the caller's lie in device memory, and the
 * plan is told where; temporaries exist within the kernel only. Arithmetic is fp32. */

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

/* ---- attention ---- */

/* softmax (Q K^T / sqrt (d)) V and its gradients, out of products, reductions and pointwise operations, of which cuDNN's attention
 * engines know the pattern: "Graph API", fused flash attention fprop and bprop, of NVIDIA's documentation; what is in which order
 * follows cudnn-frontend (node/scaled_dot_product_flash_attention.h, node/softmax.h, node/diagonal_band_mask.h), whose form for
 * versions before 9.21 this is. Tensors are [sequences, seq, heads, d] in memory, bf16. */

/* The tensors in device memory, by id. */
enum SdpaTensor : int64_t {
  SDPA_Q = 1,
  SDPA_K,
  SDPA_V,
  SDPA_OUT,
  SDPA_LSE, /* fp32 [sequences, heads, seq]: log sum exp of a row's scaled scores */
  SDPA_DOUT,
  SDPA_DQ,
  SDPA_DK,
  SDPA_DV,
  SDPA_DELTA,  /* fp32 as SDPA_LSE, scratch of the backward: sum of dout * out */
  SDPA_DQ_SUM, /* fp32 [sequences, heads, seq, d], scratch of the backward: dq before it is rounded */
};

/* version: cudnnGetVersion (). Both throw a Failure where this version, or the shape, is known not to work. */
std::unique_ptr<CudnnGraph> sdpa_forward (const AttentionShape &shape, size_t version);
std::unique_ptr<CudnnGraph> sdpa_backward (const AttentionShape &shape, size_t version);

/* Before 9.6 the caller has to zero SDPA_DQ_SUM. */
inline bool
sdpa_zeroes_dq_sum (size_t version)
{
  return version >= 90600;
}

}

#endif
