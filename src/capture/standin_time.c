/* capture/standin_time.c — the clocks of a process that follow another one, which liblockstep-capture.so
 * has: preloaded, as libc is bound before any other library could stand before it.
 *
 * Problem. A program measures its steps by time.perf_counter() or std::chrono; both are clock_gettime ().
 * Deadlines of waits are times of the same clocks, but it is the machine that waits.
 *
 * Method. Until ls_clock_follow () is called, and in threads that do not follow, every function is libc's.
 * In a thread that follows, a clock says what this machine's said when it began to follow, and what the other
 * clock has moved since. A deadline is moved by as much as both are apart: the wait takes as long as was
 * asked for. A wait that ends by its deadline, and a sleep, move the other clock on by as much, and a read by
 * LS_READ_NS: who waits in a loop until some time comes to its end.
 *
 * Python takes its interpreter's lock by waits of 5 ms, again and again: these move nothing, as how many
 * there are depends on this machine.
 *
 * Deviations. Clocks of processor time, the time stamp counter (PyTorch's profiler reads it) and waits by
 * syscall () are the machine's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "capture/standin.h"

#define LS_READ_NS  50 /* of a clock: `python3 -m timeit time.time` on x86 servers */
#define LS_N_CLOCKS 12 /* CLOCK_TAI is 11 */
#define NS          INT64_C (1000000000)
#define LS_NEVER    (INT64_C (1) << 32) /* s: a deadline that is none */

static LsClockHost *host; /* NULL: nothing follows */
static int64_t base[LS_N_CLOCKS];

/* What libc has. */
static void *
libc (const char *name)
{
  void *found = dlvsym (RTLD_NEXT, name, "GLIBC_2.3.2"); /* of pthread_cond_timedwait () there are two */
  return found ? found : dlsym (RTLD_NEXT, name);
}

/* The one of that name, found once. */
#define LIBC(name)                                                                                           \
  static __typeof__ (name) *own;                                                                             \
  if (!own)                                                                                                  \
  own = (__typeof__ (own)) (uintptr_t) libc (#name)

static int64_t
ns_of (const struct timespec *t)
{
  return t->tv_sec * NS + t->tv_nsec;
}

static struct timespec
time_of (int64_t ns)
{
  return (struct timespec) { ns / NS, ns % NS };
}

static int64_t
machine (clockid_t id)
{
  struct timespec t = { 0, 0 };
  LIBC (clock_gettime);
  own (id, &t);
  return ns_of (&t);
}

void
ls_clock_follow (LsClockHost *of)
{
  int64_t since = of (0);
  for (clockid_t id = 0; id < LS_N_CLOCKS; id++)
    base[id] = machine (id) - (since > 0 ? since : 0);
  host = of;
}

/* Nanoseconds that the other clock has moved, n of them now; -1: this thread does not follow it. */
static int64_t
moved (int64_t n)
{
  return host ? host (n) : -1;
}

static bool
is_time (clockid_t id)
{
  return id >= 0 && id < LS_N_CLOCKS && id != CLOCK_PROCESS_CPUTIME_ID && id != CLOCK_THREAD_CPUTIME_ID;
}

/* --- clocks --- */

static int64_t
now (clockid_t id)
{
  int64_t since = is_time (id) ? moved (LS_READ_NS) : -1;
  return since < 0 ? machine (id) : base[id] + since;
}

int
clock_gettime (clockid_t id, struct timespec *ret)
{
  LIBC (clock_gettime);
  int64_t since = is_time (id) ? moved (LS_READ_NS) : -1;
  if (since < 0)
    return own (id, ret);
  *ret = time_of (base[id] + since);
  return 0;
}

int
gettimeofday (struct timeval *restrict ret, void *restrict zone)
{
  int64_t at = now (CLOCK_REALTIME);
  (void) zone;
  *ret = (struct timeval) { at / NS, at % NS / 1000 };
  return 0;
}

time_t
time (time_t *ret)
{
  time_t seconds = now (CLOCK_REALTIME) / NS;
  if (ret)
    *ret = seconds;
  return seconds;
}

/* --- waits --- */

/* The deadline as this machine has it; NULL and one that is none as they are. ret_left: ns until then; below
 * 0: this thread does not follow. */
static const struct timespec *
deadline (const struct timespec *until, struct timespec *room, int64_t *ret_left)
{
  int64_t since = until && until->tv_sec < LS_NEVER ? moved (0) : -1;
  *ret_left = -1;
  if (since < 0)
    return until;
  /* which of the clocks it is of does not matter but for when they began: dates are far from uptimes */
  int64_t begin = ns_of (until) > base[CLOCK_REALTIME] / 2 ? base[CLOCK_REALTIME] : base[CLOCK_MONOTONIC];
  int64_t left = ns_of (until) - begin - since;
  *ret_left = left > 0 ? left : 0;
  *room = time_of (ns_of (until) + machine (CLOCK_MONOTONIC) - base[CLOCK_MONOTONIC] - since);
  return room;
}

/* What a wait returns. */
static int
ended (int result, bool by_deadline, int64_t left)
{
  int error = errno;
  if (by_deadline && left > 0)
    moved (left);
  errno = error;
  return result;
}

static bool
is_of_python (const void *caller)
{
  Dl_info of_caller, of_python;
  void *python = dlsym (RTLD_DEFAULT, "PyEval_RestoreThread");
  return python && dladdr (python, &of_python) && dladdr (caller, &of_caller)
      && of_python.dli_fbase == of_caller.dli_fbase;
}

int
pthread_cond_timedwait (pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                        const struct timespec *restrict until)
{
  struct timespec room;
  int64_t left;
  LIBC (pthread_cond_timedwait);
  int result = own (c, m, deadline (until, &room, &left));
  return ended (result, result == ETIMEDOUT && !is_of_python (__builtin_return_address (0)), left);
}

int
pthread_cond_clockwait (pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t id,
                        const struct timespec *restrict until)
{
  struct timespec room;
  int64_t left;
  LIBC (pthread_cond_clockwait);
  int result = own (c, m, id, deadline (until, &room, &left));
  return ended (result, result == ETIMEDOUT && !is_of_python (__builtin_return_address (0)), left);
}

int
pthread_mutex_timedlock (pthread_mutex_t *restrict m, const struct timespec *restrict until)
{
  struct timespec room;
  int64_t left;
  LIBC (pthread_mutex_timedlock);
  int result = own (m, deadline (until, &room, &left));
  return ended (result, result == ETIMEDOUT, left);
}

int
sem_timedwait (sem_t *restrict s, const struct timespec *restrict until)
{
  struct timespec room;
  int64_t left;
  LIBC (sem_timedwait);
  int result = own (s, deadline (until, &room, &left));
  return ended (result, result != 0 && errno == ETIMEDOUT, left);
}

int
sem_clockwait (sem_t *restrict s, clockid_t id, const struct timespec *restrict until)
{
  struct timespec room;
  int64_t left;
  LIBC (sem_clockwait);
  int result = own (s, id, deadline (until, &room, &left));
  return ended (result, result != 0 && errno == ETIMEDOUT, left);
}

/* --- sleeps --- */

int
clock_nanosleep (clockid_t id, int flags, const struct timespec *length, struct timespec *ret_rest)
{
  struct timespec room;
  int64_t left = is_time (id) && moved (0) >= 0 ? ns_of (length) : -1;
  LIBC (clock_nanosleep);
  if (flags & TIMER_ABSTIME)
    length = deadline (length, &room, &left);
  int result = own (id, flags, length, ret_rest);
  return ended (result, result == 0, left);
}

int
nanosleep (const struct timespec *length, struct timespec *ret_rest)
{
  int result = clock_nanosleep (CLOCK_REALTIME, 0, length, ret_rest);
  errno = result ? result : errno;
  return result ? -1 : 0;
}

int
usleep (useconds_t us)
{
  struct timespec length = time_of ((int64_t) us * 1000);
  return nanosleep (&length, NULL);
}

unsigned
sleep (unsigned seconds)
{
  struct timespec length = { seconds, 0 }, rest = { 0, 0 };
  return nanosleep (&length, &rest) == 0 ? 0 : (unsigned) rest.tv_sec;
}

/* --- waits for files: how long, not until when --- */

int
poll (struct pollfd *files, nfds_t n, int ms)
{
  LIBC (poll);
  int result = own (files, n, ms);
  return ended (result, result == 0 && ms > 0, ms * INT64_C (1000000));
}

int
epoll_wait (int file, struct epoll_event *events, int n, int ms)
{
  LIBC (epoll_wait);
  int result = own (file, events, n, ms);
  return ended (result, result == 0 && ms > 0, ms * INT64_C (1000000));
}

int
select (int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
        struct timeval *restrict length)
{
  int64_t left = length && length->tv_sec < LS_NEVER ? length->tv_sec * NS + length->tv_usec * 1000 : 0;
  LIBC (select);
  int result = own (n, in, out, other, length);
  return ended (result, result == 0, left);
}
