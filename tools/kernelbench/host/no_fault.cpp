#include "fault.h"

namespace kb {

cudaError_t
fault_of (const char *)
{
  return cudaSuccess;
}

int
device_count ()
{
  return 1;
}

long
cache_bytes ()
{
  return 0;
}

}
