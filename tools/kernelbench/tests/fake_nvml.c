/* A driver library for tests, found as libnvidia-ml.so.1 on LD_LIBRARY_PATH: one GPU at 1500 MHz,
 * 300 W and 50 degrees. KB_HOT=N: of the first N times that they are asked for, the reasons for
 * slow clocks are heat. KB_OTHERS=N: so many other processes compute. KB_MIG=1: it is divided. */
#include <stdlib.h>
#include <string.h>

static long
number (const char *variable)
{
  const char *text = getenv (variable);
  return text ? atol (text) : 0;
}

int
nvmlInit_v2 (void)
{
  return 0;
}

int
nvmlDeviceGetHandleByPciBusId_v2 (const char *bus_id, void **device)
{
  static int gpu;
  *device = &gpu;
  return bus_id ? 0 : 2;
}

int
nvmlDeviceGetClockInfo (void *device, int type, unsigned *mhz)
{
  *mhz = type == 1 ? 1500 : 2600;
  return device ? 0 : 2;
}

int
nvmlDeviceGetPowerUsage (void *device, unsigned *mw)
{
  *mw = 300000;
  return device ? 0 : 2;
}

int
nvmlDeviceGetTemperature (void *device, int sensor, unsigned *celsius)
{
  *celsius = sensor == 0 ? 50 : 0;
  return device ? 0 : 2;
}

int
nvmlDeviceGetCurrentClocksThrottleReasons (void *device, unsigned long long *reasons)
{
  static long n;
  *reasons = n++ < number ("KB_HOT") ? 0x20 : 0x4; /* heat; at most the power that is allowed */
  return device ? 0 : 2;
}

int
nvmlDeviceGetComputeRunningProcesses_v3 (void *device, unsigned *n, void *infos)
{
  *n = 1 + (unsigned) number ("KB_OTHERS");
  return device && infos ? 0 : 7; /* insufficient size */
}

int
nvmlDeviceGetMigMode (void *device, unsigned *current, unsigned *pending)
{
  *current = *pending = number ("KB_MIG") == 1;
  return device ? 0 : 2;
}

int
nvmlSystemGetDriverVersion (char *text, unsigned n)
{
  strncpy (text, "999.01", n);
  return 0;
}
