/* Clocks, power and driver version from NVML, loaded at run time: its header is not
 * part of every CUDA installation, and the library only comes with the driver. The
 * prototypes are those of the NVML API reference; all return 0 for success. */
#include <dlfcn.h>

#include "bench.cuh"

namespace kb {

namespace {

typedef struct nvmlDevice_st *Device;

enum { clock_sm = 1, clock_memory = 2 }; /* nvmlClockType_t          */
enum { sensor_gpu = 0 };                 /* nvmlTemperatureSensors_t */

struct Nvml {
  Device device = nullptr; /* null: not available */
  int (*init) (void) = nullptr;
  int (*device_by_bus_id) (const char *, Device *) = nullptr;
  int (*clock_mhz) (Device, int, unsigned *) = nullptr;
  int (*power_mw) (Device, unsigned *) = nullptr;
  int (*temperature_c) (Device, int, unsigned *) = nullptr;
  int (*driver_version) (char *, unsigned) = nullptr;

  Nvml ();
};

template <typename F> bool
find (void *library, const char *name, F *ret_function)
{
  *ret_function = reinterpret_cast<F> (dlsym (library, name));
  return *ret_function != nullptr;
}

Nvml::Nvml ()
{
  char bus_id[32];
  void *library = dlopen ("libnvidia-ml.so.1", RTLD_NOW);
  bool usable = library && find (library, "nvmlInit_v2", &init)
    && find (library, "nvmlDeviceGetHandleByPciBusId_v2", &device_by_bus_id)
    && find (library, "nvmlDeviceGetClockInfo", &clock_mhz)
    && find (library, "nvmlDeviceGetPowerUsage", &power_mw)
    && find (library, "nvmlDeviceGetTemperature", &temperature_c)
    && find (library, "nvmlSystemGetDriverVersion", &driver_version)
    && init () == 0;
  if (!usable)
    return;
  KB_CHECK (cudaDeviceGetPCIBusId (bus_id, sizeof bus_id, 0));
  if (device_by_bus_id (bus_id, &device) != 0)
    device = nullptr;
}

const Nvml &
nvml ()
{
  static const Nvml instance;
  return instance;
}

}

GpuState
gpu_state ()
{
  const Nvml &n = nvml ();
  GpuState state = {};
  unsigned mw = 0;
  if (!n.device)
    return state;
  if (n.clock_mhz (n.device, clock_sm, &state.sm_mhz) != 0)
    state.sm_mhz = 0;
  if (n.clock_mhz (n.device, clock_memory, &state.memory_mhz) != 0)
    state.memory_mhz = 0;
  if (n.power_mw (n.device, &mw) == 0)
    state.power_w = 1e-3 * mw;
  if (n.temperature_c (n.device, sensor_gpu, &state.temperature_c) != 0)
    state.temperature_c = 0;
  return state;
}

std::string
state_note (const GpuState &state)
{
  return format ("sm_mhz=%u power_w=%.0f temperature_c=%u", state.sm_mhz, state.power_w, state.temperature_c);
}

std::string
driver_version ()
{
  char text[96];
  const Nvml &n = nvml ();
  if (n.device && n.driver_version (text, sizeof text) == 0)
    return text;
  return "unknown";
}

}
