/* Pins: with a table of predicted times work takes what it says, in the order of a step; clocks of the threads
 * that launch follow, and waits until a time of these clocks end when this machine has waited so long. */
#define _GNU_SOURCE
#include "ls_test.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/standin_answers.h"

int cudaStreamCreate (void **stream);
int cudaStreamSynchronize (void *stream);
int cudaEventCreate (void **event);
int cudaEventDestroy (void *event);
int cudaEventRecord (void *event, void *stream);
int cudaEventElapsedTime (float *ms, void *from, void *to);
int cudaStreamBeginCapture (void *stream, int mode);
int cudaStreamEndCapture (void *stream, void **graph);
int cudaGraphLaunch (void *graph, void *stream);

#define NS INT64_C (1000000000)

static const char *const kernels[] = { "short", "long", "unknown" };

enum { GRAPH = 3 };

static void
name_gpu (void)
{
  g_setenv (
      "LOCKSTEP_CAPTURE",
      "name=X memory=8589934592 context=0 capability=90 sm=132 devices=1 cuda=13000 driver=13000 nccl=22707 "
      "cudnn=91000 warps_per_sm=64 blocks_per_sm=32 shared_per_sm=233472 shared_per_block=232448 l2=52428800 "
      "flops16=1e15 flops8=2e15 tf32=5e14 fp32=6.7e13 hbm=3e12 bus=3e11",
      TRUE);
}

static void *graph; /* of a kernel that the table does not have alone */

static void
launch (int kernel, void *stream)
{
  if (kernel == GRAPH)
    cudaGraphLaunch (graph, stream);
  else
    ls_capture_launch (kernels[kernel], 1, 1, 1, 32, stream);
}

/* Of the step short, short, long, graph: 1, 3, 7 and 20 us, 2, 4, 1 and 6 of the host before each; others cost
 * it 10, and a wait 5. The second table is as the first, but what was long is 100 s. */
static void
predict (bool is_slow)
{
  static const char *const first = "1000000 2000000", *const second = "3000000 4000000";
  const char *third = is_slow ? "100000000000000 1000000" : "7000000 1000000";
  char path[] = "/tmp/lockstep-clock-XXXXXX";
  int file = g_mkstemp (path);
  g_autofree char *keys_path = g_strconcat (path, ".keys", NULL), *keys = NULL, *table = NULL;
  ls_capture_record (path, NULL);
  launch (0, NULL);
  launch (0, NULL);
  launch (1, NULL);
  cudaStreamBeginCapture (NULL, 0); /* what it has is no work of the step */
  launch (2, NULL);
  cudaStreamEndCapture (NULL, &graph);
  launch (GRAPH, NULL);
  ls_capture_record (NULL, NULL);
  LS_CHECK (g_file_get_contents (keys_path, &keys, NULL, NULL));
  g_auto (GStrv) key = g_strsplit (keys, "\n", -1);
  if (!LS_CHECK_INT (g_strv_length (key), ==, 5))
    return;
  table = g_strdup_printf ("10000000 5000000\n%s %s\n%s %s\n%s %s\n%s 20000000 6000000\n", key[0], first,
                           key[1], second, key[2], third, key[3]);
  g_file_set_contents (path, table, -1, NULL);
  LS_CHECK_INT (ls_capture_clock ("/nowhere"), ==, 1);
  LS_CHECK_INT (ls_capture_clock (path), ==, 0);
  g_unlink (path);
  g_unlink (keys_path);
  g_close (file, NULL);
}

static int64_t
clock_ns (clockid_t id)
{
  struct timespec t;
  clock_gettime (id, &t);
  return t.tv_sec * NS + t.tv_nsec;
}

static int64_t
machine_ns (void)
{
  struct timespec t;
  syscall (SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return t.tv_sec * NS + t.tv_nsec;
}

/* Microseconds on a stream, of kernels in a row that begin when all is done. */
static double
takes (void *stream, const char *which)
{
  void *begin, *end;
  float ms;
  cudaEventCreate (&begin);
  cudaEventCreate (&end);
  cudaStreamSynchronize (stream);
  cudaEventRecord (begin, stream);
  for (; *which; which++)
    launch (*which - '0', stream);
  cudaEventRecord (end, stream);
  cudaEventElapsedTime (&ms, begin, end);
  cudaEventDestroy (begin);
  cudaEventDestroy (end);
  return rint (ms * 1e6) / 1e3;
}

static const struct {
  const char *which;
  bool is_next; /* the step that came before is over */
  double us;
} steps[] = {
  { "001", true, 16 },       /* 2 until it is launched, 1; 6 and 3; 9 and 7 */
  { "0", false, 3 + 2 },     /* beyond the step: the means */
  { "1", false, 1 + 7 },     /* the same */
  { "0", true, 2 + 1 },      /* the next step begins with the first again */
  { "10", true, 1 + 7 + 1 }, /* in another order: each of its own kind */
  { "3", true, 6 + 20 },     /* as long as the replay of what it has */
  { "2", true, 10 + 2 },     /* not in the table: the crude time, and the host's of others */
};

static void
work_takes_what_was_predicted (void)
{
  void *stream;
  name_gpu ();
  predict (false);
  cudaStreamCreate (&stream);
  for (size_t i = 0; i < G_N_ELEMENTS (steps); i++) {
    if (steps[i].is_next)
      ls_capture_clock_step ();
    double us = takes (stream, steps[i].which);
    ls_check_impl (us == steps[i].us, __FILE__, __LINE__, "%s: %g us", steps[i].which, us);
  }
  char text[4096];
  ls_capture_counts (text, sizeof text);
  LS_CHECK (strstr (text, "launches of predicted times 9\n") != NULL);
  LS_CHECK (strstr (text, "launches beyond those of the predicted step 2\n") != NULL);
  LS_CHECK (strstr (text, "launches of crude times 1\n") != NULL);
}

static void
clocks_follow_the_host (void)
{
  void *stream;
  cudaStreamCreate (&stream);
  cudaStreamSynchronize (stream);
  ls_capture_clock_step ();
  int64_t wall = clock_ns (CLOCK_REALTIME), steady = clock_ns (CLOCK_MONOTONIC), machine = machine_ns ();
  struct timeval day, later;
  gettimeofday (&day, NULL);
  launch (1, stream);
  LS_CHECK_INT (clock_ns (CLOCK_MONOTONIC) - steady, <, 2000); /* of its launch, and of reads of clocks */
  cudaStreamSynchronize (stream);
  LS_CHECK_INT (clock_ns (CLOCK_MONOTONIC) - steady, >=, 13000); /* 1 and 7, and 5 for the wait */
  LS_CHECK_INT (clock_ns (CLOCK_REALTIME) - wall, <, 14000);
  gettimeofday (&later, NULL);
  LS_CHECK_INT ((later.tv_sec - day.tv_sec) * 1000000 + later.tv_usec - day.tv_usec, >=, 12);
  LS_CHECK (ABS (clock_ns (CLOCK_MONOTONIC) - machine) < 60 * NS); /* it began where this machine was */
  LS_CHECK_INT (ABS (time (NULL) - wall / NS), <=, 1);
}

/* The clock is 100 s ahead of this machine's. */
static void
run_ahead (void)
{
  void *stream;
  static bool is_done;
  if (is_done)
    return;
  is_done = true;
  predict (true);
  cudaStreamCreate (&stream);
  ls_capture_clock_step ();
  launch (1, stream);
  cudaStreamSynchronize (stream);
}

static gpointer
ask (gpointer unused)
{
  return (gpointer) (uintptr_t) (clock_ns (CLOCK_MONOTONIC) - machine_ns () < NS);
}

static void
who_does_not_launch_has_the_machines_clock (void)
{
  int status = -1;
  run_ahead ();
  LS_CHECK_INT (clock_ns (CLOCK_MONOTONIC) - machine_ns (), >, 90 * NS);
  LS_CHECK_INT (GPOINTER_TO_INT (g_thread_join (g_thread_new ("other", ask, NULL))), ==, 1);
  pid_t child = fork ();
  if (child == 0)
    _exit (ask (NULL) ? 0 : 1);
  waitpid (child, &status, 0);
  LS_CHECK_INT (status, ==, 0);
}

enum { WAIT_MS = 30 };

static struct timespec
until (clockid_t id)
{
  int64_t at = clock_ns (id) + WAIT_MS * INT64_C (1000000);
  return (struct timespec) { at / NS, at % NS };
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t empty;

static int
on_condition (void)
{
  struct timespec t = until (CLOCK_REALTIME);
  return pthread_cond_timedwait (&never, &mutex, &t);
}

static int
on_steady_condition (void)
{
  struct timespec t = until (CLOCK_MONOTONIC);
  return pthread_cond_clockwait (&never, &mutex, CLOCK_MONOTONIC, &t);
}

static int
on_mutex (void)
{
  struct timespec t = until (CLOCK_REALTIME);
  return pthread_mutex_timedlock (&mutex, &t); /* it is held by this thread */
}

static int
on_semaphore (void)
{
  struct timespec t = until (CLOCK_REALTIME);
  return sem_timedwait (&empty, &t) == 0 ? 0 : errno;
}

static int
on_steady_semaphore (void)
{
  struct timespec t = until (CLOCK_MONOTONIC);
  return sem_clockwait (&empty, CLOCK_MONOTONIC, &t) == 0 ? 0 : errno;
}

static int
in_sleep (void)
{
  return usleep (WAIT_MS * 1000) == 0 ? ETIMEDOUT : errno;
}

static int
in_sleep_until (void)
{
  struct timespec t = until (CLOCK_MONOTONIC);
  int result = clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
  return result == 0 ? ETIMEDOUT : result;
}

static int
in_poll (void)
{
  return poll (NULL, 0, WAIT_MS) == 0 ? ETIMEDOUT : errno;
}

static int
in_select (void)
{
  struct timeval t = { 0, WAIT_MS * 1000 };
  return select (0, NULL, NULL, NULL, &t) == 0 ? ETIMEDOUT : errno;
}

static int
in_epoll (void)
{
  struct epoll_event event;
  int file = epoll_create1 (0), result = epoll_wait (file, &event, 1, WAIT_MS) == 0 ? ETIMEDOUT : errno;
  g_close (file, NULL);
  return result;
}

static int
in_a_loop (void)
{
  int64_t end = clock_ns (CLOCK_MONOTONIC) + INT64_C (1000000); /* which reads alone bring about */
  while (clock_ns (CLOCK_MONOTONIC) < end)
    continue;
  return 0;
}

static const struct {
  const char *name;
  int (*wait) (void);
  int result;
} waits[] = {
  { "condition", on_condition, ETIMEDOUT },
  { "steady condition", on_steady_condition, ETIMEDOUT },
  { "mutex", on_mutex, ETIMEDOUT },
  { "semaphore", on_semaphore, ETIMEDOUT },
  { "steady semaphore", on_steady_semaphore, ETIMEDOUT },
  { "sleep", in_sleep, ETIMEDOUT },
  { "sleep until", in_sleep_until, ETIMEDOUT },
  { "poll", in_poll, ETIMEDOUT },
  { "select", in_select, ETIMEDOUT },
  { "epoll", in_epoll, ETIMEDOUT },
  { "loop", in_a_loop, 0 },
};

/* The machine waits as long as was asked for, not the 100 s that its clock lags, and not for nothing. */
static void
waits_end (void)
{
  run_ahead ();
  sem_init (&empty, 0, 0);
  pthread_mutex_lock (&mutex);
  for (size_t i = 0; i < G_N_ELEMENTS (waits); i++) {
    int64_t machine = machine_ns (), clock = clock_ns (CLOCK_MONOTONIC);
    int result = waits[i].wait ();
    double waited = (double) (machine_ns () - machine) / 1e6,
           moved = (double) (clock_ns (CLOCK_MONOTONIC) - clock) / 1e6;
    ls_check_impl (result == waits[i].result, __FILE__, __LINE__, "%s: %d", waits[i].name, result);
    bool ok = result == 0
        || (waited > WAIT_MS - 1 && waited < 20000 && moved >= WAIT_MS - 1 && moved < WAIT_MS + 1);
    ls_check_impl (ok, __FILE__, __LINE__, "%s: %g ms, of its clock %g", waits[i].name, waited, moved);
  }
  pthread_mutex_unlock (&mutex);
}

/* What ends before its time moves nothing. */
static void
waits_that_end_early_take_no_time (void)
{
  struct timespec t = until (CLOCK_MONOTONIC);
  int64_t clock = clock_ns (CLOCK_MONOTONIC);
  run_ahead ();
  sem_post (&empty);
  LS_CHECK_INT (sem_clockwait (&empty, CLOCK_MONOTONIC, &t), ==, 0);
  LS_CHECK_INT (clock_ns (CLOCK_MONOTONIC) - clock, <, 1000);
}

LS_TEST_SUITE (LS_TEST (work_takes_what_was_predicted), LS_TEST (clocks_follow_the_host),
               LS_TEST (who_does_not_launch_has_the_machines_clock), LS_TEST (waits_end),
               LS_TEST (waits_that_end_early_take_no_time))
