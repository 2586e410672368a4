/* tools/kernelbench/failure.h — calls that fail.
 *
 * A Failure costs the row that was being measured; DeviceLost ends the run, for no call of
 * this process will succeed any more. What was measured before is in the rows file. */
#ifndef LS_KERNELBENCH_FAILURE_H
#define LS_KERNELBENCH_FAILURE_H

#include <cstring>
#include <stdexcept>
#include <string>

#include <cuda_runtime.h>

namespace kb {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/* Throws Failure, "bench.cpp:12: cudaMalloc (...): out of memory", unless it succeeded. */
inline void
check (cudaError_t status, const char *call, const char *file, int line)
{
  if (status == cudaSuccess)
    return;
  cudaGetLastError (); /* forgets one that is not lasting */
  const char *slash = strrchr (file, '/');
  throw Failure (std::string (slash ? slash + 1 : file) + ":" + std::to_string (line) + ": " + call + ": "
                 + cudaGetErrorString (status));
}

/* After a Failure: throws DeviceLost if the GPU answers no more. */
inline void
require_device (const char *after)
{
  cudaError_t status = cudaDeviceSynchronize ();
  if (status == cudaSuccess)
    return;
  throw DeviceLost (std::string ("the GPU does not answer after ") + after + ": " + cudaGetErrorString (status));
}

#define KB_CHECK(call) ::kb::check ((call), #call, __FILE__, __LINE__)
#define KB_CHECK_LAUNCH() KB_CHECK (cudaGetLastError ())

}

#endif
