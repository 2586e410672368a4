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

/* Whether this call is the N-th of its name that the variable's text asks for. */
static bool
is_due (const char *variable, const char *call, int *counter, int *ret_status, bool *ret_lost)
{
  const char *text = getenv (variable);
  char name[64] = "", rest[64] = "";
  int n = 0, status = 0;
  if (!text || sscanf (text, "%63[^:]:%d:%d:%63s", name, &n, &status, rest) < 2 || strcmp (name, call) != 0)
    return false;
  *ret_status = status;
  *ret_lost = strcmp (rest, "lost") == 0;
  return ++*counter == n;
}

cudaError_t
fault_of (const char *call)
{
  static int n_faults, n_kills;
  int status = 0;
  bool loses = false;
  if (is_lost)
    return cudaErrorIllegalAddress;
  if (is_due ("KB_KILL", call, &n_kills, &status, &loses))
    raise (SIGKILL);
  if (!is_due ("KB_FAULT", call, &n_faults, &status, &loses))
    return cudaSuccess;
  is_lost = loses;
  return (cudaError_t) status;
}

}
