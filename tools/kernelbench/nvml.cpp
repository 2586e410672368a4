/* The prototypes are those of the NVML API reference; all return 0 for success. */
#include "nvml.h"

#include <algorithm>
#include <chrono>

#include <dlfcn.h>

namespace kb {

static constexpr auto period = std::chrono::milliseconds (10);

typedef struct nvmlDevice_st *Device;

enum { clock_sm = 1, clock_memory = 2 }; /* nvmlClockType_t          */
enum { sensor_gpu = 0 };                 /* nvmlTemperatureSensors_t */

struct Nvml::Api {
  void *library = nullptr;
  Device device = nullptr; /* null: not found */
  int (*clock_mhz) (Device, int, unsigned *) = nullptr;
  int (*power_mw) (Device, unsigned *) = nullptr;
  int (*temperature_c) (Device, int, unsigned *) = nullptr;
  int (*reasons) (Device, unsigned long long *) = nullptr;
  int (*processes) (Device, unsigned *, void *) = nullptr;
  int (*mig_mode) (Device, unsigned *, unsigned *) = nullptr;
  int (*driver) (char *, unsigned) = nullptr;

  template <typename F> bool find (const char *name, F *ret_function) const
  {
    *ret_function = reinterpret_cast<F> (dlsym (library, name));
    return *ret_function != nullptr;
  }
};

Nvml::Nvml (const std::string &bus_id) : api_ (new Api)
{
  Api &a = *api_;
  int (*init) (void) = nullptr;
  int (*device_by_bus_id) (const char *, Device *) = nullptr;
  a.library = dlopen ("libnvidia-ml.so.1", RTLD_NOW);
  if (!a.library || !a.find ("nvmlInit_v2", &init) || !a.find ("nvmlDeviceGetHandleByPciBusId_v2", &device_by_bus_id)
      || init () != 0 || device_by_bus_id (bus_id.c_str (), &a.device) != 0) {
    a.device = nullptr;
    return;
  }
  a.find ("nvmlDeviceGetClockInfo", &a.clock_mhz);
  a.find ("nvmlDeviceGetPowerUsage", &a.power_mw);
  a.find ("nvmlDeviceGetTemperature", &a.temperature_c);
  if (!a.find ("nvmlDeviceGetCurrentClocksEventReasons", &a.reasons)) /* the name since driver 535 */
    a.find ("nvmlDeviceGetCurrentClocksThrottleReasons", &a.reasons);
  a.find ("nvmlDeviceGetComputeRunningProcesses_v3", &a.processes);
  a.find ("nvmlDeviceGetMigMode", &a.mig_mode);
  a.find ("nvmlSystemGetDriverVersion", &a.driver);
}

Nvml::~Nvml ()
{
  if (api_->library)
    dlclose (api_->library);
}

bool
Nvml::is_found () const
{
  return api_->device != nullptr;
}

/* Without room for them, the call says how many there are: one of them is this one. */
static unsigned
count_others (int (*processes) (Device, unsigned *, void *), Device device)
{
  constexpr int insufficient_size = 7;
  unsigned n = 0;
  int status = processes (device, &n, nullptr);
  return (status == 0 || status == insufficient_size) && n > 1 ? n - 1 : 0;
}

Conditions
Nvml::read () const
{
  const Api &a = *api_;
  Conditions c;
  unsigned mw = 0;
  unsigned long long reasons = 0;
  if (!a.device)
    return c;
  if (!a.clock_mhz || a.clock_mhz (a.device, clock_sm, &c.sm_mhz) != 0)
    c.sm_mhz = 0;
  if (!a.clock_mhz || a.clock_mhz (a.device, clock_memory, &c.memory_mhz) != 0)
    c.memory_mhz = 0;
  if (a.power_mw && a.power_mw (a.device, &mw) == 0)
    c.power_w = 1e-3 * mw;
  if (!a.temperature_c || a.temperature_c (a.device, sensor_gpu, &c.temperature_c) != 0)
    c.temperature_c = 0;
  if (a.reasons && a.reasons (a.device, &reasons) == 0)
    c.throttle = reasons;
  if (a.processes)
    c.others = count_others (a.processes, a.device);
  c.sm_mhz_min = c.sm_mhz;
  return c;
}

std::string
Nvml::driver_version () const
{
  char text[96];
  if (api_->device && api_->driver && api_->driver (text, sizeof text) == 0)
    return text;
  return "unknown";
}

bool
Nvml::is_mig () const
{
  unsigned current = 0, pending = 0;
  return api_->device && api_->mig_mode && api_->mig_mode (api_->device, &current, &pending) == 0 && current == 1;
}

Watch::Watch (const Nvml &nvml) : nvml_ (nvml)
{
  if (!nvml.is_found ())
    return;
  thread_ = std::thread ([this] {
    for (std::this_thread::sleep_for (period); !is_over_; std::this_thread::sleep_for (period))
      sample ();
  });
}

void
Watch::sample ()
{
  Conditions now = nvml_.read ();
  has_seen_ = true;
  seen_.sm_mhz = now.sm_mhz;
  seen_.sm_mhz_min = seen_.sm_mhz_min > 0 ? std::min (seen_.sm_mhz_min, now.sm_mhz_min) : now.sm_mhz_min;
  seen_.memory_mhz = now.memory_mhz;
  seen_.power_w = std::max (seen_.power_w, now.power_w);
  seen_.temperature_c = std::max (seen_.temperature_c, now.temperature_c);
  seen_.throttle |= now.throttle;
  seen_.others = std::max (seen_.others, now.others);
}

Conditions
Watch::end ()
{
  is_over_ = true;
  if (thread_.joinable ())
    thread_.join ();
  if (!has_seen_ && nvml_.is_found ()) /* shorter than a period */
    sample ();
  return seen_;
}

Watch::~Watch ()
{
  end ();
}

}
