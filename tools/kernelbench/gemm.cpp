#include "gemm.h"

#include <map>

#include <cublasLt.h>

namespace kb {

static void
check (cublasStatus_t status, const char *call, const char *file, int line)
{
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Failure (format ("%s:%d: %s: %s", file, line, call, cublasLtGetStatusString (status)));
}

#define BLAS_CHECK(call) check ((call), #call, "gemm.cpp", __LINE__)

static constexpr size_t workspace_bytes = 32u << 20;

namespace {

/* The handle lives as long as the program. Each concurrent stream needs a workspace of
 * its own, made by its first product. */
struct Blas {
  cublasLtHandle_t handle = nullptr;
  std::map<cudaStream_t, Buffer<uint8_t>> workspaces;
  Blas () { BLAS_CHECK (cublasLtCreate (&handle)); }
  uint8_t *workspace (cudaStream_t stream)
  {
    auto found = workspaces.find (stream);
    if (found == workspaces.end ())
      found = workspaces.emplace (stream, Buffer<uint8_t> (workspace_bytes)).first;
    return found->second.get ();
  }
};

}

static Blas &
blas ()
{
  static Blas *instance = new Blas;
  return *instance;
}

struct Gemm::Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm;

  ~Plan ()
  {
    for (cublasLtMatrixLayout_t layout : { left, right, out })
      if (layout)
        cublasLtMatrixLayoutDestroy (layout);
    if (product)
      cublasLtMatmulDescDestroy (product);
  }
};

static const struct {
  const char *name;
  size_t bytes;
  cudaDataType_t type, out_type;
  cublasComputeType_t compute;
  int capability;
} numbers[] = { /* in the order of Number */
  { "fp32", 4, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0 },
  { "tf32", 4, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 80 },
  { "fp16", 2, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 70 },
  { "bf16", 2, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 80 },
  { "fp8", 1, CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 89 },
};

int
gemm_capability (Number number)
{
  return numbers[(int) number].capability;
}

const char *
number_name (Number number)
{
  return numbers[(int) number].name;
}

size_t
element_bytes (Number number)
{
  return numbers[(int) number].bytes;
}

Gemm::Gemm (Pass pass, Number number, const GemmShape &s)
  : transposes_left_ (pass == Pass::FORWARD || number == Number::FP8),
    transposes_right_ ((pass == Pass::WGRAD || pass == Pass::WGRAD16) && number != Number::FP8),
    accumulates_ (pass == Pass::WGRAD), batch_ (s.batch), interleaved_ (s.interleaved), number_ (number),
    out_type_ (accumulates_ ? CUDA_R_32F : numbers[(int) number].out_type)
{
  rows_ = pass == Pass::FORWARD ? s.n : s.k;
  cols_ = pass == Pass::WGRAD || pass == Pass::WGRAD16 ? s.n : s.m;
  inner_ = pass == Pass::FORWARD ? s.k : pass == Pass::DGRAD ? s.n : s.m;
}

const char *
Gemm::layout () const
{
  return transposes_left_ ? "TN" : transposes_right_ ? "NT" : "NN";
}

double
Gemm::flops () const
{
  return 2.0 * rows_ * cols_ * inner_ * batch_;
}

double
Gemm::bytes () const
{
  double out_passes = accumulates_ ? 2 : 1;
  return (double) (element_bytes () * (left_size () + right_size ()))
    + out_passes * (double) (out_element_bytes () * out_size ());
}

/* The shape is that of the row-major result: rows x columns x inner. */
Row
Gemm::row (const char *group, const char *name) const
{
  std::string shape = format ("%dx%dx%d", cols_, rows_, inner_);
  if (batch_ > 1)
    shape = format ("%d*", batch_) + shape;
  Row row { group, name, shape, number_name (number_), bytes (), flops () };
  row.implementation = "cublaslt";
  return row;
}

static cublasLtMatrixLayout_t
new_layout (cudaDataType_t type, int rows, int cols, int batch, bool interleaved)
{
  cublasLtMatrixLayout_t layout;
  int64_t stride = interleaved ? rows : (int64_t) rows * cols;
  BLAS_CHECK (cublasLtMatrixLayoutCreate (&layout, type, rows, cols, interleaved ? (int64_t) rows * batch : rows));
  BLAS_CHECK (cublasLtMatrixLayoutSetAttribute (layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  BLAS_CHECK (cublasLtMatrixLayoutSetAttribute (layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return layout;
}

template <typename T> static void
set (cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, T value)
{
  BLAS_CHECK (cublasLtMatmulDescSetAttribute (product, attribute, &value, sizeof value));
}

static cublasLtMatmulAlgo_t
choose_algorithm (cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t left, cublasLtMatrixLayout_t right,
                  cublasLtMatrixLayout_t out)
{
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t best;
  int n_found = 0;
  BLAS_CHECK (cublasLtMatmulPreferenceCreate (&preference));
  BLAS_CHECK (cublasLtMatmulPreferenceSetAttribute (preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &workspace_bytes, sizeof workspace_bytes));
  BLAS_CHECK (cublasLtMatmulAlgoGetHeuristic (blas ().handle, product, left, right, out, out, preference, 1, &best, &n_found));
  BLAS_CHECK (cublasLtMatmulPreferenceDestroy (preference));
  if (n_found == 0)
    throw Failure ("cublasLt knows no algorithm for this product");
  return best.algo;
}

void
Gemm::make_plan ()
{
  auto plan = std::make_shared<Plan> (); /* kept when it is whole */
  Plan &p = *plan;
  cudaDataType_t type = numbers[(int) number_].type;
  BLAS_CHECK (cublasLtMatmulDescCreate (&p.product, numbers[(int) number_].compute, CUDA_R_32F));
  set (p.product, CUBLASLT_MATMUL_DESC_TRANSA, transposes_left_ ? CUBLAS_OP_T : CUBLAS_OP_N);
  set (p.product, CUBLASLT_MATMUL_DESC_TRANSB, transposes_right_ ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (n_sms_ > 0)
    set (p.product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, n_sms_);
  p.left = transposes_left_ ? new_layout (type, inner_, rows_, batch_, interleaved_)
                            : new_layout (type, rows_, inner_, batch_, interleaved_);
  p.right = transposes_right_ ? new_layout (type, cols_, inner_, batch_, interleaved_)
                              : new_layout (type, inner_, cols_, batch_, interleaved_);
  p.out = new_layout (out_type_, rows_, cols_, batch_, false);
  p.algorithm = choose_algorithm (p.product, p.left, p.right, p.out);
  plan_ = plan;
}

/* The enumerators of cublasLtClusterShape_t that every version from 11.8 on has. */
static int
blocks_of (uint16_t shape)
{
  switch (shape) {
  case CUBLASLT_CLUSTER_SHAPE_1x1x1: return 1;
  case CUBLASLT_CLUSTER_SHAPE_2x1x1:
  case CUBLASLT_CLUSTER_SHAPE_1x2x1: return 2;
  case CUBLASLT_CLUSTER_SHAPE_4x1x1:
  case CUBLASLT_CLUSTER_SHAPE_1x4x1:
  case CUBLASLT_CLUSTER_SHAPE_2x2x1: return 4;
  case CUBLASLT_CLUSTER_SHAPE_8x1x1:
  case CUBLASLT_CLUSTER_SHAPE_1x8x1:
  case CUBLASLT_CLUSTER_SHAPE_4x2x1:
  case CUBLASLT_CLUSTER_SHAPE_2x4x1: return 8;
  case CUBLASLT_CLUSTER_SHAPE_4x4x1:
  case CUBLASLT_CLUSTER_SHAPE_8x2x1:
  case CUBLASLT_CLUSTER_SHAPE_2x8x1:
  case CUBLASLT_CLUSTER_SHAPE_16x1x1:
  case CUBLASLT_CLUSTER_SHAPE_1x16x1: return 16;
  default: return 0;
  }
}

int
Gemm::cluster_blocks () const
{
  uint16_t shape = CUBLASLT_CLUSTER_SHAPE_AUTO;
  size_t n = 0;
  bool is_known = plan_ && cublasLtMatmulAlgoConfigGetAttribute (&plan_->algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &shape, sizeof shape, &n)
                             == CUBLAS_STATUS_SUCCESS;
  return is_known ? blocks_of (shape) : 0;
}

void
Gemm::run (cudaStream_t stream, const void *left, const void *right, void *out, float alpha)
{
  if (!plan_)
    make_plan ();
  float beta = accumulates_ ? 1 : 0;
  BLAS_CHECK (cublasLtMatmul (blas ().handle, plan_->product, &alpha, left, plan_->left, right, plan_->right, &beta, out,
                            plan_->out, out, plan_->out, &plan_->algorithm, blas ().workspace (stream), workspace_bytes,
                            stream));
}

}
