/* Calls of the host's runtime that fail as KB_FAULT says: "CALL:N:STATUS" makes the N-th call of
 * that name (from 1) return that cudaError_t; with ":lost" behind it every call after it fails
 * too, as on a GPU that is gone. KB_KILL=CALL:N sends the program SIGKILL there instead. KB_GPUS=N: so many devices. */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../host/fault.h"

namespace kb {

static bool is_lost;

int
device_count ()
{
  const char *text = getenv ("KB_GPUS");
  return text ? atoi (text) : 1;
}

/* Times are not looked at where calls fail. */
long
cache_bytes ()
{
  return 64 << 10;
}

namespace {

/* What one of the variables asks for, and how often that call was made. */
struct Fault {
  char name[64] = "", rest[64] = "";
  int n = 0, status = 0, n_calls = 0;

  explicit Fault (const char *variable)
  {
    const char *text = getenv (variable);
    if (text && sscanf (text, "%63[^:]:%d:%d:%63s", name, &n, &status, rest) < 2)
      n = 0;
  }
  bool is_due (const char *call) { return n > 0 && strcmp (name, call) == 0 && ++n_calls == n; }
};

}

cudaError_t
fault_of (const char *call)
{
  static Fault kill ("KB_KILL"), fault ("KB_FAULT");
  if (is_lost)
    return cudaErrorIllegalAddress;
  if (kill.is_due (call))
    raise (SIGKILL);
  if (!fault.is_due (call))
    return cudaSuccess;
  is_lost = strcmp (fault.rest, "lost") == 0;
  return (cudaError_t) fault.status;
}

}
