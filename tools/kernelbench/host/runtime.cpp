/* The runtime of include/cuda_runtime.h. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include <unistd.h>

#include "fault.h"

/* Without a test that says otherwise nothing fails. */
namespace kb {

__attribute__ ((weak)) cudaError_t
fault_of (const char *)
{
  return cudaSuccess;
}

__attribute__ ((weak)) int
device_count ()
{
  return 1;
}

__attribute__ ((weak)) long
cache_bytes ()
{
  return 0;
}

}

struct HostStream {
  int unused;
};

struct HostEvent {
  timespec at; /* processor time of the thread that launches: others on the machine do not count */
};

/* The size of what is read to flush is four times that; the caches of a shared machine are not
 * all ours, whatever they say. */
static constexpr long most_cache = 16l << 20;
static constexpr size_t alignment = 256;

#define MAY_FAIL()                                          \
  if (cudaError_t status = kb::fault_of (__func__); status) \
  return status

static std::string
processor_name ()
{
  std::string name = "processor";
  char line[512];
  FILE *file = fopen ("/proc/cpuinfo", "r");
  while (file && fgets (line, sizeof line, file))
    if (strncmp (line, "model name", 10) == 0 && strchr (line, ':')) {
      name = strchr (line, ':') + 2;
      name.erase (name.find_last_not_of ("\r\n \t") + 1);
      break;
    }
  if (file)
    fclose (file);
  return name;
}

static size_t
pages (int name)
{
  long n = sysconf (name), size = sysconf (_SC_PAGESIZE);
  return n > 0 && size > 0 ? (size_t) n * (size_t) size : 0;
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
  long cache = kb::cache_bytes () > 0 ? kb::cache_bytes () : sysconf (_SC_LEVEL3_CACHE_SIZE);
  *props = cudaDeviceProp ();
  snprintf (props->name, sizeof props->name, "host: one thread of %s", processor_name ().c_str ());
  props->major = 1000; /* takes whatever its own make_launch () takes */
  props->multiProcessorCount = 1;
  props->l2CacheSize = (int) (cache > 0 && cache < most_cache ? cache : most_cache);
  props->totalGlobalMem = pages (_SC_PHYS_PAGES);
  return cudaSuccess;
}

cudaError_t
cudaDeviceGetPCIBusId (char *id, int n, int)
{
  MAY_FAIL ();
  snprintf (id, (size_t) n, "host");
  return cudaSuccess;
}

cudaError_t
cudaDeviceSynchronize ()
{
  MAY_FAIL ();
  return cudaSuccess;
}

cudaError_t
cudaGetLastError ()
{
  return cudaSuccess;
}

const char *
cudaGetErrorString (cudaError_t error)
{
  switch (error) {
  case cudaSuccess: return "no error";
  case cudaErrorMemoryAllocation: return "out of memory";
  case cudaErrorNoDevice: return "no device is there";
  case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
  case cudaErrorNotSupported: return "operation not supported";
  default: return "invalid value";
  }
}

cudaError_t
cudaMemGetInfo (size_t *free_bytes, size_t *all_bytes)
{
  MAY_FAIL ();
  *free_bytes = pages (_SC_AVPHYS_PAGES);
  *all_bytes = pages (_SC_PHYS_PAGES);
  return cudaSuccess;
}

cudaError_t
cudaMalloc (void **data, size_t n)
{
  MAY_FAIL ();
  *data = aligned_alloc (alignment, (n + alignment - 1) / alignment * alignment);
  return *data ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t
cudaFree (void *data)
{
  free (data);
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
  memset (data, value, n);
  return cudaSuccess;
}

cudaError_t
cudaMemsetAsync (void *data, int value, size_t n, cudaStream_t)
{
  return cudaMemset (data, value, n);
}

cudaError_t
cudaMemcpy (void *to, const void *from, size_t n, cudaMemcpyKind)
{
  MAY_FAIL ();
  memcpy (to, from, n);
  return cudaSuccess;
}

cudaError_t
cudaMemcpyAsync (void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t)
{
  return cudaMemcpy (to, from, n, kind);
}

cudaError_t
cudaStreamCreateWithFlags (cudaStream_t *stream, unsigned)
{
  MAY_FAIL ();
  *stream = new HostStream ();
  return cudaSuccess;
}

cudaError_t
cudaStreamDestroy (cudaStream_t stream)
{
  delete stream;
  return cudaSuccess;
}

cudaError_t
cudaStreamSynchronize (cudaStream_t)
{
  MAY_FAIL ();
  return cudaSuccess;
}

cudaError_t
cudaStreamWaitEvent (cudaStream_t, cudaEvent_t, unsigned)
{
  MAY_FAIL ();
  return cudaSuccess;
}

cudaError_t
cudaEventCreate (cudaEvent_t *event)
{
  MAY_FAIL ();
  *event = new HostEvent ();
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
  delete event;
  return cudaSuccess;
}

cudaError_t
cudaEventRecord (cudaEvent_t event, cudaStream_t)
{
  MAY_FAIL ();
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &event->at);
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
  *ms = (float) (1e3 * (double) (end->at.tv_sec - start->at.tv_sec) + 1e-6 * (double) (end->at.tv_nsec - start->at.tv_nsec));
  return cudaSuccess;
}
