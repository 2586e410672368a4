/* What a GPU is measured by, and with which libraries. */
#include <cublasLt.h>

#include "bench.h"

namespace kb {

const Group groups[] = {
  { "host", bench_host },
  { "streams", bench_streams },
  { "copies", bench_copies },
  { "operators", bench_operators },
  { "attention", bench_attention },
  { "gemm-isolated", bench_gemm_isolated },
  { "gemm-batched", bench_gemm_batched },
  { "slowdown", bench_slowdown },
  { "context", bench_context },
  { "gemm-sustained", bench_gemm_sustained },
  { nullptr, nullptr },
};

void
describe_software (Machine *machine)
{
  int cuda = 0;
  KB_CHECK (cudaRuntimeGetVersion (&cuda));
  machine->cuda = format ("%d.%d", cuda / 1000, cuda % 1000 / 10);
  machine->cublaslt = cublasLtGetVersion ();
}

void
check_all (Checks &checks, cudaStream_t stream, int capability)
{
  check_streams (checks, stream);
  check_operators (checks, stream, capability);
  check_gemm (checks, stream, capability);
}

}
