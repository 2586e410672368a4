#include "failure.h"

#include <cstring>
#include <string>

namespace kb {

void
check (cudaError_t status, const char *call, const char *file, int line)
{
  if (status == cudaSuccess)
    return;
  cudaGetLastError (); /* forgets one that is not lasting */
  const char *slash = strrchr (file, '/');
  throw Failure (std::string (slash ? slash + 1 : file) + ":" + std::to_string (line) + ": " + call + ": "
                 + cudaGetErrorString (status));
}

void
require_device (const char *after)
{
  cudaError_t status = cudaDeviceSynchronize ();
  if (status == cudaSuccess)
    return;
  throw DeviceLost (std::string ("the GPU does not answer after ") + after + ": " + cudaGetErrorString (status));
}

}
