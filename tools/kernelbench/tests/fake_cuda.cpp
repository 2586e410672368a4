/* A CUDA runtime for tests, found as libcudart.so on LD_LIBRARY_PATH, and as libcublasLt.so: one GPU of compute
 * capability 9.0 with 132 SMs, whose memory is the host's and whose kernels compute nothing, each in 10 us of its clock. With these the
 * program that nvcc built runs where there is no GPU, and meets what injected_fault.cpp puts in the way of a call, or the launch of a
 * kernel, by its name.
 *
 * A launch that fails tells at the next cudaGetLastError (), as launches do. Kernels that wait for the host say at once that they began. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cxxabi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../host/fault.h"

/* ---- the clock ---- */

static constexpr double launch_us = 10, event_us = 1; /* of a kernel, whatever it is; of an event */
static double now_us;

/* So much of the device's time. */
static void
pass (double us)
{
  now_us += us;
}

extern "C" int
clock_gettime (clockid_t id, timespec *time)
{
  int status = (int) syscall (SYS_clock_gettime, id, time);
  if (status == 0 && id == CLOCK_MONOTONIC) {
    double ns = (double) time->tv_nsec + 1e3 * now_us;
    time->tv_sec += (time_t) (ns / 1e9);
    time->tv_nsec = (long) (ns - 1e9 * (double) (time_t) (ns / 1e9));
  }
  return status;
}

/* A kernel of the made-up cuDNN. */
void
fake_launch ()
{
  pass (launch_us);
}

/* ---- the runtime ---- */

static constexpr int n_sms = 132;
static constexpr size_t page = 4096;
static constexpr size_t most_touched = 16u << 20; /* of more bytes nothing is written: the memory of a GPU is not here */

static cudaError_t last_error; /* of a launch */

static std::map<const void *, std::string> &
kernels ()
{
  static std::map<const void *, std::string> names;
  return names;
}

static std::map<void *, size_t> &
allocations ()
{
  static std::map<void *, size_t> sizes;
  return sizes;
}

#define MAY_FAIL()                                          \
  if (cudaError_t status = kb::fault_of (__func__); status) \
  return status

/* "_ZN2kbL11spin_kernelEx" is spin_kernel. */
static std::string
function_of (const char *mangled)
{
  int status = 0;
  char *text = abi::__cxa_demangle (mangled, nullptr, nullptr, &status);
  std::string name = text ? text : mangled;
  free (text);
  name = name.substr (0, name.find_first_of ("<("));
  size_t scope = name.find_last_of (": ");
  return scope == std::string::npos ? name : name.substr (scope + 1);
}

/* --- launches ----------------------------------------------------------------------------- */

/* slowdown.cu: kernels that hold SMs until the host says stop. */
struct Shared {
  volatile int stop;
  volatile int has_started[32];
  volatile double bytes[32], ns[32];
};

static void
begin_resident (Shared *shared, unsigned n_blocks)
{
  for (unsigned i = 0; i < n_blocks && i < 32; i++) {
    shared->has_started[i] = 1;
    shared->bytes[i] = 1e3;
    shared->ns[i] = 1e3;
  }
}

static cudaError_t
launch (const void *kernel, dim3 grid, void **arguments)
{
  auto known = kernels ().find (kernel);
  cudaError_t status = kb::fault_of (known == kernels ().end () ? "" : known->second.c_str ());
  if (status == cudaSuccess && known == kernels ().end ())
    status = cudaErrorInvalidDeviceFunction;
  if (status != cudaSuccess)
    return last_error = status;
  pass (launch_us);
  if (known->second.find ("_resident") != std::string::npos)
    begin_resident (*static_cast<Shared **> (arguments[0]), grid.x);
  return cudaSuccess;
}

extern "C" {

void **
__cudaRegisterFatBinary (void *)
{
  static void *handle;
  return &handle;
}

void
__cudaRegisterFatBinaryEnd (void **)
{
}

void
__cudaUnregisterFatBinary (void **)
{
}

void
__cudaRegisterVar (void **, char *, char *, const char *, int, size_t, int, int)
{
}

void
__cudaRegisterFunction (void **, const char *host, char *, const char *name, int, void *, void *, void *, void *, int *)
{
  kernels ()[host] = function_of (name);
}

static struct {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} pushed;

unsigned
__cudaPushCallConfiguration (dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
  pushed = { grid, block, shared, stream };
  return 0;
}

cudaError_t
__cudaPopCallConfiguration (dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
  *grid = pushed.grid;
  *block = pushed.block;
  *shared = pushed.shared;
  *static_cast<cudaStream_t *> (stream) = pushed.stream;
  return cudaSuccess;
}

cudaError_t
__cudaGetKernel (cudaKernel_t *kernel, const void *function)
{
  *kernel = reinterpret_cast<cudaKernel_t> (const_cast<void *> (function));
  return cudaSuccess;
}

cudaError_t
__cudaLaunchKernel (cudaKernel_t kernel, dim3 grid, dim3, void **arguments, size_t, cudaStream_t)
{
  return launch (kernel, grid, arguments);
}

cudaError_t
cudaLaunchKernel (const void *kernel, dim3 grid, dim3, void **arguments, size_t, cudaStream_t)
{
  return launch (kernel, grid, arguments);
}

cudaError_t
cudaLaunchKernelExC (const cudaLaunchConfig_t *config, const void *kernel, void **arguments)
{
  return launch (kernel, config->gridDim, arguments);
}

cudaError_t
cudaFuncGetAttributes (cudaFuncAttributes *attributes, const void *)
{
  MAY_FAIL ();
  memset (attributes, 0, sizeof *attributes);
  return cudaSuccess;
}

cudaError_t
cudaFuncSetAttribute (const void *, cudaFuncAttribute, int)
{
  MAY_FAIL ();
  return cudaSuccess;
}

cudaError_t
cudaGetLastError ()
{
  cudaError_t status = last_error;
  last_error = cudaSuccess;
  return status;
}

const char *
cudaGetErrorString (cudaError_t error)
{
  switch (error) {
  case cudaSuccess: return "no error";
  case cudaErrorMemoryAllocation: return "out of memory";
  case cudaErrorNoDevice: return "no CUDA-capable device is detected";
  case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
  case cudaErrorNotSupported: return "operation not supported";
  case cudaErrorNoKernelImageForDevice: return "no kernel image is available for execution on the device";
  default: return "another error";
  }
}

/* --- the device ------------------------------------------------------------------------------ */

cudaError_t
cudaRuntimeGetVersion (int *version)
{
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t
cudaGetDeviceCount (int *n)
{
  MAY_FAIL ();
  *n = kb::device_count ();
  return cudaSuccess;
}

cudaError_t
cudaSetDevice (int)
{
  MAY_FAIL ();
  return cudaSuccess;
}

cudaError_t
cudaGetDeviceProperties (cudaDeviceProp *props, int)
{
  MAY_FAIL ();
  memset (props, 0, sizeof *props);
  snprintf (props->name, sizeof props->name, "Fake GPU");
  props->major = 9;
  props->multiProcessorCount = n_sms;
  props->l2CacheSize = 50 << 20;
  props->totalGlobalMem = 80ull << 30;
  props->sharedMemPerBlockOptin = 227 << 10;
  return cudaSuccess;
}

cudaError_t
cudaDeviceGetAttribute (int *value, cudaDeviceAttr attribute, int)
{
  MAY_FAIL ();
  *value = attribute == cudaDevAttrMultiProcessorCount ? n_sms : 1024;
  return cudaSuccess;
}

cudaError_t
cudaDeviceGetPCIBusId (char *id, int n, int)
{
  MAY_FAIL ();
  snprintf (id, (size_t) n, "0000:00:00.0");
  return cudaSuccess;
}

cudaError_t
cudaDeviceGetStreamPriorityRange (int *least, int *greatest)
{
  MAY_FAIL ();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t
cudaDeviceCanAccessPeer (int *can, int, int)
{
  MAY_FAIL ();
  *can = 0;
  return cudaSuccess;
}

cudaError_t
cudaDeviceEnablePeerAccess (int, unsigned)
{
  return cudaErrorNotSupported;
}

cudaError_t
cudaDeviceSynchronize ()
{
  MAY_FAIL ();
  return cudaSuccess;
}

/* --- memory: pages that are there when they are touched ---------------------------------------- */

cudaError_t
cudaMemGetInfo (size_t *free_bytes, size_t *all_bytes)
{
  MAY_FAIL ();
  *free_bytes = 79ull << 30;
  *all_bytes = 80ull << 30;
  return cudaSuccess;
}

cudaError_t
cudaMalloc (void **data, size_t n)
{
  MAY_FAIL ();
  size_t bytes = (n + page) / page * page;
  void *at = mmap (nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return cudaErrorMemoryAllocation;
  allocations ()[at] = bytes;
  *data = at;
  return cudaSuccess;
}

cudaError_t
cudaFree (void *data)
{
  auto found = allocations ().find (data);
  if (found == allocations ().end ())
    return data ? cudaErrorInvalidValue : cudaSuccess;
  munmap (data, found->second);
  allocations ().erase (found);
  return cudaSuccess;
}

cudaError_t
cudaHostAlloc (void **data, size_t n, unsigned)
{
  MAY_FAIL ();
  return cudaMalloc (data, n);
}

cudaError_t
cudaFreeHost (void *data)
{
  return cudaFree (data);
}

cudaError_t
cudaMemset (void *data, int value, size_t n)
{
  MAY_FAIL ();
  if (n <= most_touched)
    memset (data, value, n);
  return cudaSuccess;
}

cudaError_t
cudaMemsetAsync (void *data, int value, size_t n, cudaStream_t)
{
  pass (launch_us);
  return cudaMemset (data, value, n);
}

cudaError_t
cudaMemcpy (void *to, const void *from, size_t n, cudaMemcpyKind)
{
  MAY_FAIL ();
  if (n <= most_touched)
    memcpy (to, from, n);
  return cudaSuccess;
}

cudaError_t
cudaMemcpyAsync (void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t)
{
  pass (launch_us);
  return cudaMemcpy (to, from, n, kind);
}

cudaError_t
cudaMemcpyPeerAsync (void *, int, const void *, int, size_t, cudaStream_t)
{
  return cudaErrorNotSupported;
}

/* --- streams, events, graphs -------------------------------------------------------------------- */

static int a_stream;

cudaError_t
cudaStreamCreateWithFlags (cudaStream_t *stream, unsigned)
{
  MAY_FAIL ();
  *stream = reinterpret_cast<cudaStream_t> (&a_stream);
  return cudaSuccess;
}

cudaError_t
cudaStreamCreateWithPriority (cudaStream_t *stream, unsigned flags, int)
{
  return cudaStreamCreateWithFlags (stream, flags);
}

cudaError_t
cudaStreamSynchronize (cudaStream_t)
{
  MAY_FAIL ();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy (cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphDestroy (cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy (cudaGraphExec_t) { return cudaSuccess; }

cudaError_t
cudaStreamWaitEvent (cudaStream_t, cudaEvent_t, unsigned)
{
  MAY_FAIL ();
  return cudaSuccess;
}

cudaError_t
cudaStreamBeginCapture (cudaStream_t, cudaStreamCaptureMode)
{
  MAY_FAIL ();
  return cudaSuccess;
}

cudaError_t
cudaStreamEndCapture (cudaStream_t, cudaGraph_t *graph)
{
  MAY_FAIL ();
  *graph = nullptr;
  return cudaSuccess;
}

cudaError_t
cudaGraphInstantiate (cudaGraphExec_t *exec, cudaGraph_t, unsigned long long)
{
  MAY_FAIL ();
  *exec = nullptr;
  return cudaSuccess;
}

cudaError_t
cudaGraphLaunch (cudaGraphExec_t, cudaStream_t)
{
  MAY_FAIL ();
  pass (launch_us);
  return cudaSuccess;
}

cudaError_t
cudaEventCreate (cudaEvent_t *event)
{
  MAY_FAIL ();
  *event = reinterpret_cast<cudaEvent_t> (new double (0));
  return cudaSuccess;
}

cudaError_t
cudaEventCreateWithFlags (cudaEvent_t *event, unsigned)
{
  return cudaEventCreate (event);
}

cudaError_t
cudaEventDestroy (cudaEvent_t event)
{
  delete reinterpret_cast<double *> (event);
  return cudaSuccess;
}

cudaError_t
cudaEventRecord (cudaEvent_t event, cudaStream_t)
{
  MAY_FAIL ();
  pass (event_us);
  *reinterpret_cast<double *> (event) = now_us;
  return cudaSuccess;
}

cudaError_t
cudaEventSynchronize (cudaEvent_t)
{
  MAY_FAIL ();
  return cudaSuccess;
}

cudaError_t
cudaEventElapsedTime (float *ms, cudaEvent_t start, cudaEvent_t end)
{
  MAY_FAIL ();
  *ms = (float) (1e-3 * (*reinterpret_cast<double *> (end) - *reinterpret_cast<double *> (start)));
  return cudaSuccess;
}

}

/* ---- cuBLASLt ---- */

/* Takes every product and computes none. KB_FAULT's status, of its calls, is one of this
 * library: 15 is not supported. */

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
  pass (status == CUBLAS_STATUS_SUCCESS ? launch_us : 0);
  return status;
}

}
