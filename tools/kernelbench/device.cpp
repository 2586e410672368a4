/* Which GPU, whether it can run this program, and what it is. */
#include <cstdio>
#include <ctime>

#include "bench.h"

namespace kb {

static constexpr size_t enough_bytes = 16ull << 30; /* for all groups */

static void
require_driver (int index)
{
  int n = 0;
  cudaError_t status = cudaGetDeviceCount (&n);
  if (status != cudaSuccess)
    throw Failure (std::string ("no GPU can be used: ") + cudaGetErrorString (status));
  if (index >= n)
    throw Failure (format ("--device %d: there %s %d, from 0", index, n == 1 ? "is" : "are", n));
}

static void
require_code (const cudaDeviceProp &props)
{
  cudaError_t status = find_code ();
  cudaGetLastError ();
  if (status != cudaSuccess)
    throw Failure (format ("this program has no code for %s (compute capability %d.%d): %s. Build it with a toolkit that "
                           "nvcc --list-gpu-code shows to know sm_%d%d",
                           props.name, props.major, props.minor, cudaGetErrorString (status), props.major, props.minor));
}

static void
note_memory (const char *name)
{
  size_t free_bytes = 0, all_bytes = 0;
  KB_CHECK (cudaMemGetInfo (&free_bytes, &all_bytes));
  fprintf (stderr, "%s: %.1f of %.1f GB free\n", name, 1e-9 * (double) free_bytes, 1e-9 * (double) all_bytes);
  if (free_bytes < enough_bytes)
    fprintf (stderr, "note: less than %.0f GB are free; what finds no room fails, and the others go on\n", 1e-9 * (double) enough_bytes);
}

Device::Device (int index) : index_ (index)
{
  char bus_id[32] = "";
  require_driver (index);
  KB_CHECK (cudaSetDevice (index));
  KB_CHECK (cudaGetDeviceProperties (&props_, index));
  require_code (props_);
  KB_CHECK (cudaDeviceGetPCIBusId (bus_id, sizeof bus_id, index));
  nvml_ = std::make_unique<Nvml> (bus_id);
  note_memory (props_.name);
  Conditions now = nvml_->read ();
  if (nvml_->is_mig ())
    fprintf (stderr, "note: this is an instance of a GPU that is divided (MIG), with %d SMs: its profile is of the instance\n",
             props_.multiProcessorCount);
  if (now.others > 0)
    fprintf (stderr, "note: %u other processes compute on this GPU; rows that they may disturb are marked\n", now.others);
}

static std::string
utc_now ()
{
  char text[32];
  time_t now = time (nullptr);
  strftime (text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime (&now));
  return text;
}

static std::string
uuid_of (const cudaDeviceProp &props)
{
  std::string text;
  for (char byte : props.uuid.bytes)
    text += format ("%02x", (unsigned char) byte);
  return text;
}

Machine
Device::machine () const
{
  Machine m;
  m.gpu = props_.name;
  m.uuid = uuid_of (props_);
  m.driver = nvml_->driver_version ();
  m.date = utc_now ();
  m.n_sms = (unsigned) props_.multiProcessorCount;
  m.l2_bytes = (uint64_t) props_.l2CacheSize;
  m.memory_bytes = props_.totalGlobalMem;
  m.is_mig = nvml_->is_mig ();
  describe_software (&m);
  return m;
}

}
