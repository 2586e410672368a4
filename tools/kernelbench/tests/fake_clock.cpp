/* The clock of the made-up GPU. The host's steady clock goes on by it, as if the host had waited for the device: a measurement of
 * seconds takes none in a test. */
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_cuda.h"

static double now_us;

double
fake_now_us ()
{
  return now_us;
}

void
fake_pass (double us)
{
  now_us += us;
}

extern "C" int
clock_gettime (clockid_t id, timespec *time)
{
  int status = (int) syscall (SYS_clock_gettime, id, time);
  if (status == 0 && id == CLOCK_MONOTONIC) {
    double ns = (double) time->tv_nsec + 1e3 * now_us;
    time->tv_sec += (time_t) (ns / 1e9);
    time->tv_nsec = (long) (ns - 1e9 * (double) (time_t) (ns / 1e9));
  }
  return status;
}
