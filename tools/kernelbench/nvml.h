/* tools/kernelbench/nvml.h — the GPU as the driver sees it: clocks, power, heat, what slows it,
 * who else computes on it. NVML is loaded at run time: its header is not part of every CUDA
 * installation, and the library only comes with the driver. Host code. */
#ifndef LS_KERNELBENCH_NVML_H
#define LS_KERNELBENCH_NVML_H

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "rows.h"

namespace kb {

class Nvml {
public:
  /* Of the GPU on that PCI bus; where NVML or the GPU is not found, all that it reads is 0. */
  explicit Nvml (const std::string &bus_id);
  ~Nvml ();
  Nvml (const Nvml &) = delete;

  bool is_found () const;
  Conditions read () const;           /* now, of all readings that this GPU has */
  std::string driver_version () const; /* "unknown" where it is */
  bool is_mig () const;                /* divided into instances */

private:
  struct Api;
  std::unique_ptr<Api> api_;
};

/* What NVML sees from here until end (), read every few milliseconds by a thread of its own. */
class Watch {
public:
  explicit Watch (const Nvml &nvml);
  ~Watch ();
  Watch (const Watch &) = delete;
  Conditions end ();

private:
  void sample ();

  const Nvml &nvml_;
  Conditions seen_ = {};
  bool has_seen_ = false;
  std::atomic<bool> is_over_ { false };
  std::thread thread_;
};

}

#endif
