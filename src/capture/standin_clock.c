/* capture/standin_clock.c — when work on streams is done, for a GPU as it is and of half and double its
 * speed: see standin.h. Work, records, waits and questions that are answered by no cost the host LS_CALL_PS
 * each, and nothing else does: how often PyTorch makes an event, or asks for one that is done, depends on how
 * soon its watchdog took it. The default streams are one.
 *
 * With a table of what was predicted of a step (ls_capture_clock), work takes as long as the table says, by
 * its key and by how often that key was there in this step, and costs the host what it says; so do waits of
 * the host. Work that the table has less often takes the mean of its key; what it does not have takes the
 * crude time, and is counted. */
#define _GNU_SOURCE
#include "capture/standin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LS_CALL_PS                                                                                           \
  INT64_C (5000000) /* 5 us: what a launch takes PyTorch's eager operators, README of kernelbench */
#define LS_LONG        INT64_C (1000) /* ns: no read of a clock */
#define LS_OTHERS_WAIT 60             /* seconds of this machine's clock */

static const double speed[LS_N_SPEEDS] = { 1, 0.5, 2 };
static int64_t host[LS_N_SPEEDS];
static LsStream blank; /* the default stream */
static LsStream **all; /* of all that were made, for a wait for all */
static size_t n_all, max_all;
static _Thread_local bool launches; /* watchdogs and the like only ask */

LsStream *
ls_stream_of (void *stream)
{
  return (uintptr_t) stream <= 2 ? &blank : stream;
}

LsStream *
ls_stream_new (int priority)
{
  LsStream *s = calloc (1, sizeof *s);
  s->priority = priority;
  s->device = *ls_current_device ();
  if (n_all == max_all)
    all = realloc (all, (max_all = max_all ? 2 * max_all : 64) * sizeof (LsStream *));
  all[n_all++] = s;
  return s;
}

/* Others may still hold it: it stays. */
void
ls_stream_free (void *stream)
{
  (void) stream;
}

/* --- what was predicted ----------------------------------------------------------------------------- */

/* Of a piece of work; in the table by key, and of one key in the order of the step. */
typedef struct {
  uint64_t key;
  int64_t ps, host; /* on its stream; of the host, before it is launched */
  int n, n_done;    /* of the first of a key: how many there are; were done in the step */
  int step;         /* of n_done */
  int64_t mean_ps, mean_host;
} Predicted;

static struct {
  Predicted *rows; /* NULL: nothing was predicted */
  size_t n;
  int step;
  int64_t call, wait; /* ps: of the host, for work that the table does not have, and for a wait */
} table;

static int
compare_keys (const void *a, const void *b)
{
  const Predicted *x = a, *y = b;
  return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->n - y->n;
}

/* Where rows of that key begin, or would. */
static size_t
first_of (uint64_t key)
{
  size_t low = 0, high = table.n;
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (table.rows[mid].key < key)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

/* n of a row: its place in the file, then as above. */
static void
sort_table (void)
{
  qsort (table.rows, table.n, sizeof *table.rows, compare_keys);
  for (size_t i = 0, first = 0; i < table.n; i++) {
    first = table.rows[i].key == table.rows[first].key ? first : i;
    Predicted *p = &table.rows[first];
    p->n = (int) (i - first) + 1;
    p->mean_ps += (table.rows[i].ps - p->mean_ps) / p->n;
    p->mean_host += (table.rows[i].host - p->mean_host) / p->n;
  }
}

static bool
read_table (const char *path)
{
  FILE *file = fopen (path, "r");
  unsigned long long key;
  long long ps, of_host;
  size_t most = table.n = 0;
  if (!file || fscanf (file, "%lld %lld", &ps, &of_host) != 2)
    return false;
  table.call = ps;
  table.wait = of_host;
  while (fscanf (file, "%llx %lld %lld", &key, &ps, &of_host) == 3) {
    if (table.n == most)
      table.rows = realloc (table.rows, (most = most ? 2 * most : 1024) * sizeof *table.rows);
    table.rows[table.n] = (Predicted) { .key = key, .ps = ps, .host = of_host, .n = (int) table.n };
    table.n++;
  }
  fclose (file);
  sort_table ();
  return table.n > 0;
}

/* False: the table does not have it. */
static bool
find_predicted (uint64_t key, int64_t *ret_ps, int64_t *ret_host)
{
  size_t first = first_of (key);
  if (key == 0 || first == table.n || table.rows[first].key != key)
    return false;
  Predicted *p = &table.rows[first];
  p->n_done = p->step == table.step ? p->n_done : 0;
  p->step = table.step;
  const Predicted *is = &p[p->n_done < p->n ? p->n_done : 0];
  bool is_mean = p->n_done++ >= p->n;
  *ret_ps = is_mean ? p->mean_ps : is->ps;
  *ret_host = is_mean ? p->mean_host : is->host;
  if (is_mean)
    ls_count ("launches beyond those of the predicted step", 1);
  return true;
}

/* --- work ------------------------------------------------------------------------------------------- */

static void
take (int64_t ps)
{
  for (int i = 0; i < LS_N_SPEEDS && launches; i++)
    host[i] += ps;
}

/* Of calls that are not work: predictions have none. */
static void
take_a_call (void)
{
  take (table.rows ? 0 : LS_CALL_PS);
}

static void
pass (LsStream *s, const int64_t ps[LS_N_SPEEDS])
{
  for (int i = 0; i < LS_N_SPEEDS; i++)
    s->done[i] = (s->done[i] > host[i] || s->capturing ? s->done[i] : host[i]) + ps[i];
}

/* What is captured into a graph is no work, but its launch is. */
void
ls_stream_pass (void *stream, uint64_t key, const int64_t ps[LS_N_SPEEDS])
{
  LsStream *s = ls_stream_of (stream);
  int64_t is, of_host = table.rows ? table.call : LS_CALL_PS;
  bool is_predicted = table.rows && !s->capturing && find_predicted (key, &is, &of_host);
  int64_t predicted[LS_N_SPEEDS];
  for (int i = 0; i < LS_N_SPEEDS && is_predicted; i++)
    predicted[i] = (int64_t) ((double) is / speed[i]);
  launches = true;
  take (of_host);
  pass (s, is_predicted ? predicted : ps);
  if (table.rows && !s->capturing)
    ls_count (is_predicted ? "launches of predicted times" : "launches of crude times", 1);
  if (key != 0 && !s->capturing)
    ls_record_key (key);
}

void
ls_stream_work (void *stream, uint64_t key, double seconds)
{
  int64_t ps[LS_N_SPEEDS];
  for (int i = 0; i < LS_N_SPEEDS; i++)
    ps[i] = (int64_t) (seconds / ls_device.speed * 1e12 / speed[i]);
  ls_stream_pass (stream, key, ps);
}

/* A graph's time begins at 0; what was there before it goes on after it. */
void
ls_stream_capture (LsStream *s, int id)
{
  memcpy (s->before, s->done, sizeof s->done);
  memset (s->done, 0, sizeof s->done);
  s->capturing = id;
}

static void
end_capture (LsStream *s, int id, int64_t ret_done[LS_N_SPEEDS])
{
  for (int i = 0; s->capturing == id && i < LS_N_SPEEDS; i++) {
    ret_done[i] = s->done[i] > ret_done[i] ? s->done[i] : ret_done[i];
    s->done[i] = s->before[i];
  }
  s->capturing = s->capturing == id ? 0 : s->capturing;
}

void
ls_stream_captured (int id, int64_t ret_done[LS_N_SPEEDS])
{
  end_capture (&blank, id, ret_done);
  for (size_t i = 0; i < n_all; i++)
    end_capture (all[i], id, ret_done);
}

/* Who waits for a graph's event is of the graph; an event from outside is none of its time. */
void
ls_stream_wait (void *stream, const LsEvent *event)
{
  LsStream *s = ls_stream_of (stream);
  take_a_call ();
  ls_record_wait (stream, event);
  if (event->capturing && !s->capturing)
    ls_stream_capture (s, event->capturing);
  for (int i = 0; s->capturing == event->capturing && i < LS_N_SPEEDS; i++)
    if (s->done[i] < event->done[i])
      s->done[i] = event->done[i];
}

/* Not those of the process, which may follow the host's time. */
static int64_t
machine_seconds (void)
{
  struct timespec t = { 0, 0 };
  syscall (SYS_clock_gettime, CLOCK_REALTIME, &t);
  return t.tv_sec;
}

void
ls_event_record (LsEvent *event, void *stream)
{
  const LsStream *s = ls_stream_of (stream);
  take_a_call ();
  ls_record_event (event, stream);
  event->recorded = machine_seconds ();
  event->capturing = s->capturing;
  for (int i = 0; i < LS_N_SPEEDS; i++)
    event->done[i] = s->done[i] > host[i] || s->capturing ? s->done[i] : host[i];
}

static bool
is_done (const int64_t done[LS_N_SPEEDS])
{
  bool now = done[0] <= host[0];
  bool depends = now != (done[1] <= host[1]) || now != (done[2] <= host[2]);
  if (!now)
    take (LS_CALL_PS); /* who asks until it is done comes to an end */
  if (depends && launches)
    ls_count ("answers that depend on the speed of the GPU", 1);
  return now;
}

/* A watchdog that asks when this machine's clock tells it to would take what is done from the thread that
 * launches, now and then: its answer is so late that this thread has asked before, and before it gives up.
 * That all is done then, even where this thread waits for another rank, keeps it from ending the program. */
bool
ls_event_is_done (const LsEvent *event)
{
  if (!launches && event->recorded > 0)
    return machine_seconds () - event->recorded >= LS_OTHERS_WAIT;
  return is_done (event->done);
}

bool
ls_stream_is_done (void *stream)
{
  return is_done (ls_stream_of (stream)->done);
}

/* Other threads than those that launch wait for nothing, and time does not pass for them. */
void
ls_host_waits (const int64_t done[LS_N_SPEEDS])
{
  for (int i = 0; i < LS_N_SPEEDS && launches; i++)
    if (host[i] < done[i])
      host[i] = done[i];
  take (table.wait);
}

void
ls_host_waits_all (void)
{
  int64_t last[LS_N_SPEEDS];
  ls_record_mark ("a");
  memcpy (last, blank.done, sizeof last);
  for (size_t s = 0; s < n_all; s++)
    for (int i = 0; i < LS_N_SPEEDS; i++)
      last[i] = all[s]->done[i] > last[i] ? all[s]->done[i] : last[i];
  ls_host_waits (last);
}

float
ls_event_ms (const LsEvent *from, const LsEvent *to)
{
  return (float) ((double) (to->done[0] - from->done[0]) / 1e9);
}

/* --- for the Python side --- */

/* The thread that the process began with and those that launch. A child of fork () is another process. */
static int64_t
host_moved (int64_t ns)
{
  static pid_t process;
  process = process ? process : getpid ();
  if (getpid () != process || !(launches || gettid () == process))
    return -1;
  ls_enter ("clock");
  bool before = launches;
  launches = true;
  take (1000 * ns);
  launches = before;
  if (ns >= LS_LONG)
    ls_count ("microseconds that the host slept or waited until some time", ns / 1000);
  int64_t moved = host[0] / 1000;
  ls_leave ();
  return moved;
}

int
ls_capture_clock (const char *path)
{
  ls_enter ("clock");
  bool ok = read_table (path);
  ls_leave ();
  void (*follow) (LsClockHost *)
      = (void (*) (LsClockHost *)) (uintptr_t) dlsym (RTLD_DEFAULT, "ls_clock_follow");
  if (ok && follow && host_moved (0) >= 0)
    follow (host_moved);
  return !ok ? 1 : follow ? 0 : 2;
}

void
ls_capture_clock_step (void)
{
  ls_enter ("step");
  table.step++;
  ls_leave ();
}
