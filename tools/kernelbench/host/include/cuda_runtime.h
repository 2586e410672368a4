/* tools/kernelbench/host/include/cuda_runtime.h — the part of CUDA's runtime that kernelbench
 * uses, on the host's processor: names and meanings are CUDA's (CUDA Runtime API reference), the
 * device is the machine itself. Memory is the host's, an event is a thread's processor time, and what is
 * queued on a stream has run when the call returns: a launch costs nothing, and nothing overlaps. */
#ifndef LS_KERNELBENCH_HOST_CUDA_RUNTIME_H
#define LS_KERNELBENCH_HOST_CUDA_RUNTIME_H

#include <cstddef>

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorIllegalAddress = 700,
  cudaErrorNotSupported = 801,
};

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0 };

typedef struct HostStream *cudaStream_t;
typedef struct HostEvent *cudaEvent_t;

struct cudaDeviceProp {
  char name[256];
  struct {
    char bytes[16];
  } uuid;
  int major, minor, multiProcessorCount, l2CacheSize;
  size_t totalGlobalMem, sharedMemPerBlockOptin;
};

cudaError_t cudaGetDeviceCount (int *n);
cudaError_t cudaSetDevice (int device);
cudaError_t cudaGetDeviceProperties (cudaDeviceProp *props, int device);
cudaError_t cudaDeviceGetPCIBusId (char *id, int n, int device);
cudaError_t cudaDeviceSynchronize ();
cudaError_t cudaGetLastError ();
const char *cudaGetErrorString (cudaError_t error);
cudaError_t cudaMemGetInfo (size_t *free_bytes, size_t *all_bytes);
cudaError_t cudaMalloc (void **data, size_t n);
cudaError_t cudaFree (void *data);
cudaError_t cudaHostAlloc (void **data, size_t n, unsigned flags);
cudaError_t cudaFreeHost (void *data);
cudaError_t cudaMemset (void *data, int value, size_t n);
cudaError_t cudaMemsetAsync (void *data, int value, size_t n, cudaStream_t stream);
cudaError_t cudaMemcpy (void *to, const void *from, size_t n, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync (void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags (cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy (cudaStream_t stream);
cudaError_t cudaStreamSynchronize (cudaStream_t stream);
cudaError_t cudaStreamWaitEvent (cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate (cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags (cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy (cudaEvent_t event);
cudaError_t cudaEventRecord (cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize (cudaEvent_t event);
cudaError_t cudaEventElapsedTime (float *ms, cudaEvent_t start, cudaEvent_t end);

#endif
