#include "gemm.cuh"

#include <cstdio>
#include <cstdlib>

namespace kb {

static constexpr size_t workspace_bytes = 32u << 20;
static constexpr size_t element_bytes = 2; /* of both operand types */

namespace {

/* The handle lives as long as the program. Each concurrent stream needs a workspace
 * of its own; all GEMMs here run on one stream. */
struct Blas {
  cublasLtHandle_t handle = nullptr;
  Buffer<uint8_t> workspace { workspace_bytes };
  Blas () { KB_CHECK (cublasLtCreate (&handle)); }
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
    cublasLtMatrixLayoutDestroy (out);
    cublasLtMatrixLayoutDestroy (right);
    cublasLtMatrixLayoutDestroy (left);
    cublasLtMatmulDescDestroy (product);
  }
};

const char *
type_name (cudaDataType_t type)
{
  return type == CUDA_R_16BF ? "bf16" : "fp16";
}

const char *
layout_name (Pass pass)
{
  return pass == Pass::FORWARD ? "TN" : pass == Pass::DGRAD ? "NN" : "NT";
}

Gemm::Gemm (Pass pass, cudaDataType_t type, const GemmShape &s)
  : transposes_left_ (pass == Pass::FORWARD), transposes_right_ (pass == Pass::WGRAD || pass == Pass::WGRAD16),
    accumulates_ (pass == Pass::WGRAD), batch_ (s.batch), type_ (type), out_type_ (accumulates_ ? CUDA_R_32F : type)
{
  rows_ = pass == Pass::FORWARD ? s.n : s.k;
  cols_ = transposes_right_ ? s.n : s.m;
  inner_ = pass == Pass::FORWARD ? s.k : pass == Pass::DGRAD ? s.n : s.m;
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
  return (double) (element_bytes * (left_size () + right_size ()))
    + out_passes * (double) (out_element_bytes () * out_size ());
}

/* The shape is that of the row-major result: rows x columns x inner. */
Row
Gemm::row (const char *group, const char *name) const
{
  std::string shape = format ("%dx%dx%d", cols_, rows_, inner_);
  if (batch_ > 1)
    shape = format ("%d*", batch_) + shape;
  return Row { group, name, shape, type_name (type_), bytes (), flops () };
}

static cublasLtMatrixLayout_t
dense_layout (cudaDataType_t type, int rows, int cols, int batch)
{
  cublasLtMatrixLayout_t layout;
  int64_t stride = (int64_t) rows * cols;
  KB_CHECK (cublasLtMatrixLayoutCreate (&layout, type, rows, cols, rows));
  KB_CHECK (cublasLtMatrixLayoutSetAttribute (layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  KB_CHECK (cublasLtMatrixLayoutSetAttribute (layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return layout;
}

template <typename T> static void
set (cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, T value)
{
  KB_CHECK (cublasLtMatmulDescSetAttribute (product, attribute, &value, sizeof value));
}

static cublasLtMatmulAlgo_t
choose_algorithm (cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t left, cublasLtMatrixLayout_t right,
                  cublasLtMatrixLayout_t out)
{
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t best;
  int n_found = 0;
  KB_CHECK (cublasLtMatmulPreferenceCreate (&preference));
  KB_CHECK (cublasLtMatmulPreferenceSetAttribute (preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &workspace_bytes, sizeof workspace_bytes));
  KB_CHECK (cublasLtMatmulAlgoGetHeuristic (blas ().handle, product, left, right, out, out, preference, 1, &best, &n_found));
  KB_CHECK (cublasLtMatmulPreferenceDestroy (preference));
  if (n_found == 0) {
    fprintf (stderr, "error: cublasLt knows no algorithm for this product\n");
    exit (1);
  }
  return best.algo;
}

void
Gemm::make_plan ()
{
  plan_ = std::make_shared<Plan> ();
  Plan &p = *plan_;
  KB_CHECK (cublasLtMatmulDescCreate (&p.product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  set (p.product, CUBLASLT_MATMUL_DESC_TRANSA, transposes_left_ ? CUBLAS_OP_T : CUBLAS_OP_N);
  set (p.product, CUBLASLT_MATMUL_DESC_TRANSB, transposes_right_ ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (n_sms_ > 0)
    set (p.product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, n_sms_);
  p.left = transposes_left_ ? dense_layout (type_, inner_, rows_, batch_) : dense_layout (type_, rows_, inner_, batch_);
  p.right = transposes_right_ ? dense_layout (type_, cols_, inner_, batch_) : dense_layout (type_, inner_, cols_, batch_);
  p.out = dense_layout (out_type_, rows_, cols_, batch_);
  p.algorithm = choose_algorithm (p.product, p.left, p.right, p.out);
}

void
Gemm::run (cudaStream_t stream, const void *left, const void *right, void *out)
{
  if (!plan_)
    make_plan ();
  float alpha = 1, beta = accumulates_ ? 1 : 0;
  KB_CHECK (cublasLtMatmul (blas ().handle, plan_->product, &alpha, left, plan_->left, right, plan_->right, &beta, out,
                            plan_->out, out, plan_->out, &plan_->algorithm, blas ().workspace.get (), workspace_bytes,
                            stream));
}

}
