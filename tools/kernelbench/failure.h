/* tools/kernelbench/failure.h — calls that fail.
 *
 * A Failure costs the row that was being measured; DeviceLost ends the run, for no call of
 * this process will succeed any more. What was measured before is in the rows file. */
#ifndef LS_KERNELBENCH_FAILURE_H
#define LS_KERNELBENCH_FAILURE_H

#include <stdexcept>

#include <cuda_runtime.h>

namespace kb {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/* Throws Failure, "bench.cpp:12: cudaMalloc (...): out of memory", unless it succeeded. */
void check (cudaError_t status, const char *call, const char *file, int line);

/* After a Failure: throws DeviceLost if the GPU answers no more. */
void require_device (const char *after);

#define KB_CHECK(call) ::kb::check ((call), #call, __FILE__, __LINE__)
#define KB_CHECK_LAUNCH() KB_CHECK (cudaGetLastError ())

}

#endif
