/* The cuBLASLt of the made-up GPU (fake_cuda.cpp): takes every product and computes none. KB_FAULT's status, of its calls, is one of this
 * library: 15 is not supported. */
#include <cstdlib>
#include <cstring>

#include <cublasLt.h>

#include "../host/fault.h"
#include "fake_cuda.h"

extern "C" {

static cublasStatus_t
blas_fault (const char *call)
{
  return (cublasStatus_t) kb::fault_of (call);
}

static int an_object;

cublasStatus_t
cublasLtCreate (cublasLtHandle_t *handle)
{
  *handle = reinterpret_cast<cublasLtHandle_t> (&an_object);
  return blas_fault (__func__);
}

const char *
cublasLtGetStatusString (cublasStatus_t status)
{
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "the functionality requested is not supported" : "another status";
}

size_t
cublasLtGetVersion ()
{
  return 130000;
}

cublasStatus_t
cublasLtMatmulDescCreate (cublasLtMatmulDesc_t *desc, cublasComputeType_t, cudaDataType_t)
{
  *desc = reinterpret_cast<cublasLtMatmulDesc_t> (&an_object);
  return blas_fault (__func__);
}

cublasStatus_t
cublasLtMatmulDescDestroy (cublasLtMatmulDesc_t)
{
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute (cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *, size_t)
{
  return blas_fault (__func__);
}

cublasStatus_t
cublasLtMatrixLayoutCreate (cublasLtMatrixLayout_t *layout, cudaDataType, uint64_t, uint64_t, int64_t)
{
  *layout = reinterpret_cast<cublasLtMatrixLayout_t> (&an_object);
  return blas_fault (__func__);
}

cublasStatus_t
cublasLtMatrixLayoutDestroy (cublasLtMatrixLayout_t)
{
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute (cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void *, size_t)
{
  return blas_fault (__func__);
}

cublasStatus_t
cublasLtMatmulPreferenceCreate (cublasLtMatmulPreference_t *preference)
{
  *preference = reinterpret_cast<cublasLtMatmulPreference_t> (&an_object);
  return blas_fault (__func__);
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy (cublasLtMatmulPreference_t)
{
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute (cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void *, size_t)
{
  return blas_fault (__func__);
}

/* KB_NO_ALGORITHM: it knows none. */
cublasStatus_t
cublasLtMatmulAlgoGetHeuristic (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                                cublasLtMatmulHeuristicResult_t results[], int *n_found)
{
  memset (results, 0, sizeof *results);
  *n_found = getenv ("KB_NO_ALGORITHM") ? 0 : 1;
  return blas_fault (__func__);
}

/* The kernels of this library are launched in clusters of two blocks. */
cublasStatus_t
cublasLtMatmulAlgoConfigGetAttribute (const cublasLtMatmulAlgo_t *, cublasLtMatmulAlgoConfigAttributes_t attribute, void *value,
                                      size_t n, size_t *written)
{
  if (attribute != CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID || n != sizeof (uint16_t))
    return CUBLAS_STATUS_INVALID_VALUE;
  *static_cast<uint16_t *> (value) = CUBLASLT_CLUSTER_SHAPE_2x1x1;
  *written = n;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmul (cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *, cublasLtMatrixLayout_t, const void *,
                cublasLtMatrixLayout_t, const void *, const void *, cublasLtMatrixLayout_t, void *, cublasLtMatrixLayout_t,
                const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t)
{
  cublasStatus_t status = blas_fault (__func__);
  fake_pass (status == CUBLAS_STATUS_SUCCESS ? fake_launch_us : 0);
  return status;
}

}
