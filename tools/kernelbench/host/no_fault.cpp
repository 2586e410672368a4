#include "fault.h"

namespace kb {

cudaError_t
fault_of (const char *)
{
  return cudaSuccess;
}

}
